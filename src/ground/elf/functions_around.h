/* SPDX-License-Identifier: BSD-2-Clause */
/* Function symbols around a few addresses; the essay is in functions_around.c. */
#ifndef ELF_FUNCTIONS_AROUND_H
#define ELF_FUNCTIONS_AROUND_H

#include "elf/functions.h"

/* Pages of addresses, from @base on. */
struct address_pages {
	uint64_t base;
	size_t n;
	uint8_t *is_wanted;
	uint32_t *next; /* by page: the next one that is wanted, itself included; n: none */
};

struct functions_around {
	/* At @at, and at the beginnings of the functions there, it says what all symbols say. */
	struct functions functions;
	struct elf_symbol *symbols; /* that begin or go on in these pages, in order */
	size_t n_symbols;
	VEC(uint64_t) at; /* in order */
	struct address_pages pages;
};

/*
 * functions_around_init - the functions around some addresses of code
 *
 * Returns 1; 0 where the symbols have to be read as a whole: damaged ones, those of no .symtab, those
 * of addresses far from each other, and where elf_symbols() has read them; -ENOMEM. Cost: some passes over the symbol table, and a sort of what is near.
 */
int functions_around_init(struct functions_around *f, struct elf *e, const uint64_t *at, size_t n);
void functions_around_fini(struct functions_around *f);

/* Whether it is about an address. */
bool functions_around_has(const struct functions_around *f, uint64_t at);

/* Whether an address is in a wanted page: all symbols there are known. O(1). */
static inline bool functions_around_sees(const struct functions_around *f, uint64_t at)
{
	uint64_t page = (at - f->pages.base) >> 12;

	return page < f->pages.n && f->pages.is_wanted[page];
}

/* The distance before an address within which it sees all. */
enum { FUNCTIONS_AROUND_BEFORE = 8192 };

#endif
