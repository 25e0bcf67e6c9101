/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables by which a kernel finds the code that it changes
 *
 * They are in vmlinux, between symbols of its linker script, and in sections of a module's file. The
 * essay is in kernel_code.c. Only files of this module include it.
 */
#ifndef INSN_KERNEL_TABLES_H
#define INSN_KERNEL_TABLES_H

#include <cairn/binary.h>

#include "base/cursor.h"
#include "elf/elf.h"

struct kernel_bound {
	const char *start, *stop; /* symbols of a kernel */
	const char *section;      /* of a module */
};

struct kernel_area {
	uint64_t lo, hi; /* equal: there is none */
};

enum { KERNEL_TABLES_MAX = 16 };

/*
 * kernel_tables_find - where tables are
 *
 * @ret  one for each of @n bounds, KERNEL_TABLES_MAX at most; was zero
 * Returns 0, or as elf_visit_bounds(). Cost: a pass over the symbols.
 */
int kernel_tables_find(const struct cairn_binary *bin, const struct kernel_bound *bounds, size_t n,
		       struct kernel_area *ret, struct cairn_err *err);

/* The bytes of a table: 1. 0 where the file has none, or damaged ones; -ENOMEM. */
int kernel_table_open(struct elf *elf, const struct kernel_area *a, struct cursor_src *src,
		      struct cursor *ret);

/* Code that was asked for last. */
struct kernel_known_code {
	uint64_t lo, hi;
};

/* Code that the kernel replaces when it starts, if the processor has a feature. */
struct kernel_alternative {
	uint64_t code, with;
	uint8_t n, n_with;
};

/*
 * kernel_alternatives_visit - the entries of the table of alternatives
 *
 * An entry has 12 bytes, and 14 from Linux 6.3 on. Nothing says which, but with the other size most
 * distances lead nowhere.
 * Returns 0, or the first negative result of @visit; 1: the table is not understood.
 */
int kernel_alternatives_visit(struct elf *elf, struct cursor table, uint64_t base,
			      int (*visit)(void *ctx, const struct kernel_alternative *a),
			      void *ctx);

/* A distance in a table, which is at @at: what it leads to. */
static inline uint64_t kernel_table_distance(struct cursor *c, uint64_t at)
{
	return at + (uint64_t)(int64_t)(int32_t)cur_u32(c);
}

/* Whether an instruction of a jump label has 2 bytes or 5; 0: there is no code. */
uint64_t kernel_jump_label_bytes(const struct elf *elf, uint64_t at);

#endif
