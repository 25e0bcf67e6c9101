/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of a sidecar by the names of their symbols. */
#include "base/search.h"
#include "sidecar/symbol_table.h"

#include <errno.h>
#include <string.h>

static const char *name_at(const struct cairn_sidecar *p, uint32_t i)
{
	const char *name = sidecar_string(p, sidecar_symbol(p, i)->name);
	return name ? name : "";
}

struct named_symbols symbols_named(const struct cairn_sidecar *p, const char *name)
{
	uint32_t lo = SEARCH(0, p->n_symbol_names, mid, strcmp(name_at(p, mid), name) < 0);
	uint32_t end;
	for (end = lo; end < p->n_symbol_names && !strcmp(name_at(p, end), name);)
		end++;
	return end == lo ? (struct named_symbols){0}
			 : (struct named_symbols){p->symbol_names + lo, end - lo};
}

int bare_function(const struct cairn_sidecar *p, const struct sidecar_symbol_name *s,
		  struct arena *arena, struct cairn_function *ret)
{
	struct cairn_site *site = arena_alloc(arena, sizeof(*site));
	struct cairn_vaddr start;
	uint32_t hazard = s->what & SYMBOL_FUNCTION_MASK;
	if (!site)
		return -ENOMEM;
	*site = (struct cairn_site){
		.kind = CAIRN_SITE_OUT_OF_LINE,
		.rule = CAIRN_AT_SYMBOL,
		.at.v = p->header->base + s->at,
		.off.v = s->off,
		.has_off = s->off != SYMBOL_NOWHERE,
		.hazard = sidecar_hazard(hazard),
		.n_shared = 1,
	};
	if (cairn_sidecar_symbol_of(p, site->at, &site->symbol, &start))
		site->symbol_off = site->at.v - start.v;
	*ret = (struct cairn_function){
		.name = site->symbol && !site->symbol_off ? site->symbol
							  : sidecar_string(p, s->name),
		.params_unknown = true,
		.n_sites = 1,
		.sites = site,
	};
	if (!ret->name)
		ret->name = "";
	return 0;
}
