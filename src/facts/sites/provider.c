/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/provider.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/err.h"
#include "base/search.h"
#include "elf/elf.h"

void cairn_sites_close(struct cairn_sites *s)
{
	if (s)
		s->ops->close(s);
}

const struct cairn_binary *cairn_sites_binary(const struct cairn_sites *s)
{
	return s->bin;
}

size_t cairn_sites_missing(const struct cairn_sites *s, const char **ret)
{
	return s->ops->missing(s, ret);
}

const struct cairn_types *cairn_sites_types(const struct cairn_sites *s)
{
	return s->graph;
}

int cairn_sites_complete_type(struct cairn_sites *s, uint32_t id, struct cairn_err *err)
{
	return s->ops->complete_type(s, id, err);
}

int cairn_sites_find(struct cairn_sites *s, const char *spec, struct cairn_function_list *ret,
		     struct cairn_err *err)
{
	return s->ops->find(s, spec, ret, err);
}

int cairn_sites_visit_matching(struct cairn_sites *s, const char *pattern, sites_visitor *visit,
			       void *ctx, struct cairn_err *err)
{
	return s->ops->visit(s, pattern, visit, ctx, err);
}

int cairn_sites_visit(struct cairn_sites *s, sites_visitor *visit, void *ctx, struct cairn_err *err)
{
	return s->ops->visit(s, NULL, visit, ctx, err);
}

int cairn_sites_suggest(struct cairn_sites *s, const char *spec, const char **ret, size_t max,
			struct cairn_err *err)
{
	return s->ops->suggest(s, spec, ret, max, err);
}

bool cairn_sites_imports(const struct cairn_sites *s, const char *name)
{
	return s->ops->imports(s, name);
}

int cairn_sites_at(struct cairn_sites *s, struct cairn_vaddr pc, bool is_exact,
		   const struct cairn_scope **ret, struct cairn_err *err)
{
	return s->ops->at(s, pc, is_exact, ret, err);
}

int cairn_sites_call_value(struct cairn_sites *s, struct cairn_vaddr callee,
			   struct cairn_vaddr caller_pc, const struct cairn_loc_step *asked,
			   struct cairn_location *ret, struct cairn_err *err)
{
	return s->ops->passed(s, callee, caller_pc, asked, ret, err);
}

int cairn_sites_lines(struct cairn_sites *s, const char *spec, struct cairn_lines *ret,
		      struct cairn_err *err)
{
	if (!s->ops->lines)
		return err_set(err, -EOPNOTSUPP,
			       "only the debug information has the lines of functions");
	return s->ops->lines(s, spec, ret, err);
}

int cairn_sites_vars(struct cairn_sites *s, const struct cairn_line *line,
		     struct cairn_variables *ret, struct cairn_err *err)
{
	if (!s->ops->vars)
		return err_set(err, -EOPNOTSUPP,
			       "only the debug information has the variables of functions");
	return s->ops->vars(s, line, ret, err);
}

bool cairn_sites_symbol(void *ctx, struct cairn_vaddr at, char *name, size_t size)
{
	struct cairn_sites *s = ctx;
	return s->ops->symbol(s, at, name, size);
}

void sites_count_shared(struct cairn_site *sites, uint32_t n)
{
	for (uint32_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && sites[j].at.v == sites[i].at.v;)
			j++;
		for (uint32_t k = i; k < j; k++)
			sites[k].n_shared = j - i;
	}
}

bool sites_symbol_of_binary(struct cairn_sites *sites, struct cairn_vaddr at, char *name,
			    size_t size)
{
	struct elf *debug = binary_debug(sites->bin), *e = debug ? debug : binary_main(sites->bin);
	const struct elf_symbol *symbols;
	size_t n;
	return elf_symbols(e, &symbols, &n, NULL) >= 0 &&
	       sites_symbol_among(symbols, n, at, name, size);
}

bool sites_symbol_among(const struct elf_symbol *symbols, size_t n, struct cairn_vaddr at,
			char *name, size_t size)
{
	/* The last symbol at or below the address; symbols are sorted by it. */
	size_t lo = SEARCH(0, n, mid, symbols[mid].at.v <= at.v);
	for (size_t i = lo; i-- > 0 && symbols[lo - 1].at.v - symbols[i].at.v < 4096;) {
		uint64_t off = at.v - symbols[i].at.v;
		if (off && off >= symbols[i].size)
			continue;
		if (off)
			snprintf(name, size, "%s+0x%" PRIx64, symbols[i].name, off);
		else
			snprintf(name, size, "%s", symbols[i].name);
		return true;
	}
	return false;
}
