/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a name to FUNCs
 *
 * An index of all names takes longer than one question: sorting a kernel's 300,000 takes 20 ms. So
 * a name is looked for in the strings first, which is one search through some megabytes. A name
 * that is the end of a longer string is found, too: "size" in "std::vector<int>::size". Then
 * records are looked through for a FUNC whose name is at one of the offsets; that compares numbers
 * only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "btf/btf.h"
#include "btfsites/btfsites.h"
#include "sites/symbol_names.h"

/* Offsets in the strings of the chain, in order. */
struct offsets {
	VEC(uint32_t) v;
};

static int add_offsets(const struct cairn_btf *btf, const char *name, struct offsets *ret)
{
	size_t n = strlen(name) + 1;
	const char *at = btf->strings, *end = at + btf->strings_size;
	while ((at = memmem(at, (size_t)(end - at), name, n))) {
		const char *begin = at;
		/* The string that ends in it. */
		while (begin > btf->strings && begin[-1])
			begin--;
		if (!VEC_ADD(&ret->v, btf->start_string + (uint32_t)(begin - btf->strings)))
			return -ENOMEM;
		at++;
	}
	return 0;
}

static bool has_offset(const struct offsets *o, uint32_t off)
{
	size_t lo = SEARCH(0, o->v.n, mid, o->v.p[mid] < off);
	return lo < o->v.n && o->v.p[lo] == off;
}

/* A FUNC of a base is another binary's, unless it has a site in this one. */
static bool has_place(const struct btf_sites *s, uint32_t id)
{
	for (size_t i = 0; i < s->sections.n; i++)
		for (uint32_t k = 0; k < s->sections.p[i].n; k++)
			if (s->sections.p[i].words[3 * k] == id)
				return true;
	return false;
}

static int add_funcs(const struct btf_sites *s, const struct cairn_btf *btf,
		     const struct offsets *o, struct func_ids *ret)
{
	for (uint32_t id = btf->start_id; id < btf->end_id; id++) {
		const uint32_t *p = btf_record(btf, id);
		if (BTF_KIND_OF(p[BTF_RECORD_INFO]) != CAIRN_BTF_FUNC ||
		    !has_offset(o, p[BTF_RECORD_NAME]))
			continue;
		if (id < s->main->start_id && !has_place(s, id))
			continue;
		if (!VEC_ADD(&ret->v, id))
			return -ENOMEM;
	}
	return 0;
}

int btfsites_named(const struct btf_sites *s, const char *name, struct func_ids *ret)
{
	struct offsets o = {0};
	int rc = 0;
	/* Bases first, so that the offsets are in order. */
	for (size_t i = 0; i < s->n_chain && rc >= 0; i++)
		rc = add_offsets(s->chain[i], name, &o);
	for (size_t i = 0; i < s->n_chain && rc >= 0 && o.v.n; i++)
		rc = add_funcs(s, s->chain[i], &o, ret);
	VEC_FREE(&o.v);
	return rc;
}

/* ---- patterns, and all ---- */

struct named {
	const char *name;
	uint32_t id;
};

static int by_name(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->id > y->id) - (x->id < y->id);
}

static bool is_in(const struct place_list *places, uint32_t id)
{
	size_t lo = SEARCH(0, places->v.n, mid, places->v.p[mid].func < id);
	return lo < places->v.n && places->v.p[lo].func == id;
}

int btfsites_matching(const struct btf_sites *s, const struct group_filter *want,
		      const struct place_list *places, struct func_ids *ret)
{
	VEC(struct named) found = {0};
	struct cairn_btf_type t;
	int rc = 0;
	for (uint32_t id = 1; id < s->inlined->end_id && !rc; id++) {
		if (btf_kind_at(s->inlined, id) != CAIRN_BTF_FUNC ||
		    !cairn_btf_type(s->inlined, id, &t))
			continue;
		if (id < s->main->start_id && !is_in(places, id))
			continue;
		if (group_passes(want, &(struct group){.name = t.name}) &&
		    !VEC_ADD(&found, ((struct named){t.name, id})))
			rc = -ENOMEM;
	}
	if (found.n)
		qsort(found.p, found.n, sizeof(*found.p), by_name);
	for (size_t i = 0; i < found.n && !rc; i++)
		rc = VEC_ADD(&ret->v, found.p[i].id) ? 0 : -ENOMEM;
	VEC_FREE(&found);
	return rc;
}

/* ---- symbols ---- */

static int add_body(void *ctx, const char *name, struct cairn_vaddr at, uint64_t size,
		    enum symbol_origin origin)
{
	struct body_names *b = ctx;
	if (origin != SYMBOL_OF_CODE)
		return 0;
	return VEC_ADD(&b->v, ((struct body_name){name, at})) ? 0 : -ENOMEM;
}

static int by_name_and_address(const void *a, const void *b)
{
	const struct body_name *x = a, *y = b;
	int order = strcmp(x->name, y->name);
	return order ? order : (x->at.v > y->at.v) - (x->at.v < y->at.v);
}

int btfsites_bodies(const struct cairn_binary *bin, struct body_names *ret)
{
	size_t n = 0;
	int rc = symbol_names_visit(bin, add_body, ret);
	if (rc < 0 || !ret->v.n)
		return rc;
	qsort(ret->v.p, ret->v.n, sizeof(*ret->v.p), by_name_and_address);
	/* The binary and its debug file have the same symbols. */
	for (size_t i = 0; i < ret->v.n; i++)
		if (!n || by_name_and_address(&ret->v.p[n - 1], &ret->v.p[i]))
			ret->v.p[n++] = ret->v.p[i];
	ret->v.n = n;
	return 0;
}

size_t btfsites_bodies_of(const struct body_names *b, const char *name,
			  const struct body_name **ret)
{
	size_t n = 0;
	size_t lo = SEARCH(0, b->v.n, mid, strcmp(b->v.p[mid].name, name) < 0);
	while (lo + n < b->v.n && !strcmp(b->v.p[lo + n].name, name))
		n++;
	*ret = n ? &b->v.p[lo] : NULL;
	return n;
}
