/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's list of code made at run time: __jit_debug_descriptor
 *
 *	descriptor	u32 version 1, u32 action, u64 relevant entry, u64 first entry
 *	entry		u64 next, u64 previous, u64 symbol file, u64 its size
 *
 * A debugger stops in __jit_debug_register_code(). From outside the list alone is followed; the
 * variable is found by its name in whatever file has it (libLLVM, libluajit). It has no
 * generations: an entry counts while the list leads to the same symbol file.
 */
#ifndef CODE_GDB_LIST_H
#define CODE_GDB_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "code/memory.h"

struct gdb_entry {
	uint64_t at, symfile, size;
};

struct gdb_list {
	VEC(struct gdb_entry) entries;
	const char *why; /* why it ends where it does not end; static words; NULL */
};

/* Registering is quadratic in GDB, and no program has more. */
enum { GDB_LIST_MAX = 1 << 16 };

/* The list whose descriptor is at @at, up to @max entries. 0, -ENOMEM. Cost: a read per entry. */
int gdb_list_read(const struct code_memory *memory, uint64_t at, size_t max, struct gdb_list *ret);

/* True if an entry has not changed. */
bool gdb_entry_is_same(const struct code_memory *memory, const struct gdb_entry *e);

#endif
