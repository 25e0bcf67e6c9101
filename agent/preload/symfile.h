/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A symbol file in memory, as JITs make them for GDB: which code it is about, its functions, its
 * CFI.
 */
#ifndef AGENT_SYMFILE_H
#define AGENT_SYMFILE_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct symfile {
	const uint8_t *at;
	uint64_t n_bytes;
	const Elf64_Shdr *sections;
	unsigned n_sections;
};

struct symfile_function {
	uint64_t lo, hi;  /* [lo, hi) */
	const char *name; /* in the symbol file */
};

/* False when it is no ELF file of this machine's kind, or its sections are not within @n_bytes. */
bool symfile_open(const void *at, uint64_t n_bytes, struct symfile *ret);

/*
 * The next section of code that has an address, from number @i on; NULL: none. @i is then after it.
 */
const Elf64_Shdr *symfile_code(const struct symfile *s, unsigned *i);

/*
 * CFI about [@lo, @hi): where it was loaded to, else in the file. False when neither is about it.
 */
bool symfile_cfi(const struct symfile *s, uint64_t lo, uint64_t hi, uint64_t *ret_lo,
		 uint64_t *ret_hi);

/*
 * Functions within [@lo, @hi), at most @max, by address and without overlaps. @ret may be NULL: how
 * many at most.
 */
size_t symfile_functions(const struct symfile *s, uint64_t lo, uint64_t hi,
			 struct symfile_function *ret, size_t max);

#endif
