/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One pass over a symbol table of which nothing is kept, for a question about few of its symbols.
 * Only files of this module include it.
 */
#ifndef ELF_SYMBOL_SCAN_H
#define ELF_SYMBOL_SCAN_H

#include <errno.h>

#include "elf/symbol_table.h"

/*
 * symbol_scan_begin - whether a file has a table that can be read in passes
 *
 * False for the functions of a Go program, which have another table, and where there is none.
 */
bool symbol_scan_begin(const struct elf *e, struct symbol_table *ret);

/*
 * symbol_scan_next - the next symbol that has an address, from index *@i on
 *
 * @ret  its address is the one that elf_symbols() gives
 * Returns 1; 0 at the end; -EAGAIN for what only elf_symbols() can read, or reports as damaged.
 */
static inline int symbol_scan_next(const struct symbol_table *t, uint64_t *i, Elf64_Sym *ret)
{
	const uint64_t n = t->size / sizeof(*ret);

	while (*i < n) {
		memcpy(ret, t->symbols + (*i)++ * sizeof(*ret), sizeof(*ret));
		if (!symbol_has_address(ELF64_ST_TYPE(ret->st_info), ret->st_shndx))
			continue;
		if (ret->st_shndx >= t->e->n_sections || ret->st_shndx == SHN_XINDEX ||
		    ret->st_name >= t->strings_size)
			return -EAGAIN;
		if (t->e->type == ET_REL)
			ret->st_value += t->e->sections[ret->st_shndx].file.addr.v;
		return 1;
	}
	return 0;
}

static inline const char *symbol_scan_name(const struct symbol_table *t, const Elf64_Sym *s)
{
	return (const char *)t->strings + s->st_name;
}

/* As elf_symbols() has it. -EAGAIN for a name with a version, which would have to be copied. */
static inline int symbol_scan_take(const struct symbol_table *t, const Elf64_Sym *s,
				   struct elf_symbol *ret)
{
	const char *name = symbol_scan_name(t, s), *version = strchr(name, '@');

	*ret = (struct elf_symbol){.name = name,
				   .at = {s->st_value},
				   .size = s->st_size,
				   .type = ELF64_ST_TYPE(s->st_info),
				   .binding = ELF64_ST_BIND(s->st_info)};
	return version && version != name ? -EAGAIN : 0;
}

/* The same, at the end of a list. */
static inline int symbol_scan_add(const struct symbol_table *t, const Elf64_Sym *s,
				  struct symbol_list *ret)
{
	struct elf_symbol symbol;
	int rc = symbol_scan_take(t, s, &symbol);

	if (rc < 0)
		return rc;
	return VEC_ADD(&ret->v, symbol) ? 0 : -ENOMEM;
}

#endif
