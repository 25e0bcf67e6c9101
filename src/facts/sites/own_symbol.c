/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/own_symbol.h"

#include <elf.h>
#include <string.h>

#include "base/search.h"
#include "dwarf/constants.h"
#include "elf/elf.h"

/*
 * The first of the function symbols at @at in a table that is sorted by address, and how many there
 * are.
 */
static const struct elf_symbol *symbols_at(struct elf *e, struct cairn_vaddr at, size_t *ret_n)
{
	const struct elf_symbol *p;
	size_t n, end;
	*ret_n = 0;
	if (!e || elf_symbols(e, &p, &n, NULL) < 0)
		return NULL;
	size_t lo = SEARCH(0, n, i, p[i].at.v < at.v);
	for (end = lo; end < n && p[end].at.v == at.v; end++)
		;
	*ret_n = end - lo;
	return p + lo;
}

static const char *name_of(const struct dwarf *dw, dw_off body)
{
	struct dw_die die;
	const char *name;
	if (dw_die_at(dw, body, &die, NULL) != 1)
		return NULL;
	name = dw_str_deep(&die, DW_AT_linkage_name);
	return name ? name : dw_str_deep(&die, DW_AT_name);
}

/* 2: the function's own name, 1: the name of a clone of it, 0: another name. */
static int closeness(const char *symbol, const char *name)
{
	size_t n = strlen(name);
	if (strncmp(symbol, name, n))
		return 0;
	return !symbol[n] || symbol[n] == '@' ? 2 : symbol[n] == '.';
}

const char *own_symbol(const struct dwarf *dw, struct cairn_vaddr at, dw_off die)
{
	const struct cairn_binary *bin = dwarf_binary(dw);
	struct elf *e = elf_has_symtab(binary_main(bin)) ? binary_main(bin) : binary_debug(bin);
	const struct elf_symbol *p;
	const char *name, *best;
	struct cairn_vaddr start;
	size_t n;
	int closest = 0;
	if (!cairn_binary_symbol_of(bin, at, &best, &start) || start.v != at.v)
		return NULL;
	p = symbols_at(e, at, &n);
	if (n < 2 || !(name = name_of(dw, die)))
		return best;
	for (size_t i = 0; i < n; i++) {
		int close = p[i].type == STT_FUNC ? closeness(p[i].name, name) : 0;
		if (close > closest) {
			closest = close;
			best = p[i].name;
		}
	}
	return best;
}
