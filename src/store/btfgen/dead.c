/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/dead.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "dwarf/constants.h"
#include "elf/elf.h"

#define NONE UINT32_MAX

static const char *linkage_name(const struct dw_die *die)
{
	const char *name = dw_str_deep(die, DW_AT_linkage_name);
	name = name ? name : dw_str_deep(die, DW_AT_MIPS_linkage_name);
	return name ? name : dw_str_deep(die, DW_AT_name);
}

static bool is_external(const struct dw_die *die)
{
	struct dw_value v;
	return dw_attr_deep(die, DW_AT_external, &v, NULL, NULL) == 1 && v.u;
}

int dead_note(struct dead *d, const struct dw_die *die, struct body *body)
{
	const char *name = is_external(die) ? linkage_name(die) : NULL;
	uint64_t last = NONE;
	if (!name)
		return 0;
	map_get(&d->by_name, map_hash_str(name), &last);
	struct dead_body b = {.name = name, .body = body, .next = (uint32_t)last};
	return VEC_ADD(&d->v, b) ? map_put(&d->by_name, map_hash_str(name), d->v.n - 1) : -ENOMEM;
}

static void find_one(struct dead *d, const struct elf_symbol *s)
{
	uint64_t at;
	if (s->type != STT_FUNC || !map_get(&d->by_name, map_hash_str(s->name), &at))
		return;
	for (uint32_t i = (uint32_t)at; i != NONE; i = d->v.p[i].next) {
		if (strcmp(d->v.p[i].name, s->name) != 0)
			continue;
		d->v.p[i].body->is_dead = true;
		d->v.p[i].body->is_whole = false;
	}
}

int dead_find(struct dead *d, const struct dwarf *dw)
{
	const struct cairn_binary *bin = dwarf_binary(dw);
	struct elf *e = elf_has_symtab(binary_main(bin)) ? binary_main(bin) : binary_debug(bin);
	const struct elf_symbol *p;
	size_t n = 0;
	int rc = d->v.n && e ? elf_symbols(e, &p, &n, NULL) : 0;
	for (size_t i = 0; rc >= 0 && i < n; i++)
		find_one(d, &p[i]);
	return rc == -ENOMEM ? rc : 0;
}

void dead_fini(struct dead *d)
{
	VEC_FREE(&d->v);
	map_fini(&d->by_name);
}
