/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbol files in memory: the ELF files that JITs make for GDB
 *
 * Such a file has the sections of one compiled object, with their load addresses in sh_addr:
 * symbols, .eh_frame, .debug_frame and lines can be read from it. LLVM's are relocatable files
 * whose .eh_frame was relocated in loaded memory, so it is read there; for others it is in the
 * file. QEMU's have .debug_frame only; FDEs of LuaJIT and PHP count from the section of code.
 */
#ifndef CODE_SYMFILE_H
#define CODE_SYMFILE_H

#include <cairn/err.h>

#include "base/vec.h"
#include "cfi/eh_block.h"
#include "code/memory.h"
#include "code/name_map.h"

/* A JIT's object is some kilobytes; a whole program's with DWARF is not larger than this. */
enum { SYMFILE_MAX = 64 << 20 };

struct symfile_symbol {
	uint64_t lo;
	const char *name;
};

struct symfile_range {
	uint64_t lo, hi;
};

struct symfile {
	uint8_t *bytes;                   /* the copy; names point into it */
	VEC(struct symfile_range) ranges; /* loaded code */
	VEC(struct symfile_symbol) symbols;
	struct name_map names;
	struct eh_block *eh, *debug_frame; /* NULL: none */
	struct symfile_lines *lines;       /* NULL: not queried yet */
	uint64_t size;
};

/*
 * symfile_read - copy and read the file at [@at, @at + @size)
 *
 * @ret  symfile_fini(), also after an error
 * Returns 0; -EFAULT when it is not in memory; -EBADMSG if it is no such file; -ERANGE; -ENOMEM.
 */
int symfile_read(const struct code_memory *memory, uint64_t at, uint64_t size, struct symfile *ret,
		 struct cairn_err *err);
void symfile_fini(struct symfile *s);

/* The same, on the heap; *@ret only on success. */
int symfile_new(const struct code_memory *memory, uint64_t at, uint64_t size, struct symfile **ret,
		struct cairn_err *err);
void symfile_free(struct symfile *s); /* takes NULL */

/* The rule at @at, by .eh_frame and else by .debug_frame; undescribed when neither has one. */
void symfile_rule(const struct symfile *s, uint64_t at, struct rule_words *ret);
size_t symfile_n_fdes(const struct symfile *s);

/*
 * symfile_line - the line at @at by .debug_line; 0: none is known
 *
 * @ret_file  lasts as long as @s. Cost: the first call opens the debug information. Threads: one at
 *	       a time.
 */
uint32_t symfile_line(struct symfile *s, uint64_t at, const char **ret_file);

/* Within this module: the state of symfile_line(); takes NULL. */
struct symfile_lines;
void symfile_lines_free(struct symfile_lines *lines);

/* The function at @at and where it begins; NULL: none. */
const char *symfile_find(const struct symfile *s, uint64_t at, uint64_t *ret_lo);

#endif
