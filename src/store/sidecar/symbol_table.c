/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/symbol_table.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "sidecar/site_table.h"
#include "sites/symbol_names.h"

struct candidate {
	uint64_t first; /* bytes of the name, in order of weight */
	const char *name;
	uint64_t at, size;
	enum symbol_origin origin;
};

/* The bodies that begin at an address, next to each other. */
struct bodies {
	uint64_t at;
	const struct body *p;
	size_t n;
};

struct name_table {
	const struct site_table *sites;
	const struct cairn_binary *bin;
	struct bytes *out;
	VEC(struct candidate) v;
	struct bodies last; /* what bodies_at() found last */
	struct cairn_err *err;
};

/* ---- which names ---- */

static bool leads_to(const struct name_table *t, const char *name, uint32_t function)
{
	uint64_t found;
	return map_get(&t->sites->known_names, known_pair(map_hash_str(name), function), &found);
}

/*
 * Functions have the name, and a query for it gets only them. A pattern also gets the functions
 * that begin at the symbol.
 */
static bool is_known(const struct name_table *t, const char *name)
{
	uint64_t found;
	return map_get(&t->sites->known_names, map_hash_str(name), &found);
}

/* Numbers in the order that strcmp() gives to names: a comparison mostly ends here. */
static uint64_t first_bytes(const char *name)
{
	uint64_t first = 0;
	for (int shift = 56; shift >= 0 && *name; shift -= 8)
		first |= (uint64_t)(unsigned char)*name++ << shift;
	return first;
}

static int add(void *ctx, const char *name, struct cairn_vaddr at, uint64_t size,
	       enum symbol_origin origin)
{
	struct name_table *t = ctx;
	if (!name[0] || (origin == SYMBOL_OF_ELSEWHERE && is_known(t, name)))
		return 0;
	struct candidate c = {first_bytes(name), name, at.v, size, origin};
	return VEC_ADD(&t->v, c) ? 0 : -ENOMEM;
}

static int by_name(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	int order = strcmp(x->name, y->name);
	return order ? order : x->at < y->at ? -1 : x->at > y->at;
}

/* ---- meanings of names ---- */

static int put(struct name_table *t, const char *name, uint32_t at, uint32_t what, uint32_t off)
{
	struct sidecar_symbol_name s = {.at = at, .what = what, .off = off};
	int rc = strings_add(t->sites->strings, name, &s.name);
	put_bytes(t->out, &s, sizeof(s));
	return rc;
}

static int put_bare(struct name_table *t, const char *name, struct cairn_vaddr at, uint32_t flags)
{
	uint64_t distance = at.v - t->sites->span.base;
	struct cairn_foff off;
	bool has_off = cairn_binary_foff(t->bin, at, &off) && off.v < SYMBOL_NOWHERE;
	if (distance >= t->sites->span.size)
		return 0;
	return put(t, name, (uint32_t)distance,
		   flags | SYMBOL_BARE | cairn_hazard_at(t->bin, at, true),
		   has_off ? (uint32_t)off.v : SYMBOL_NOWHERE);
}

static int body_by_address(const void *key, const void *item)
{
	const struct body *b = item;
	uint64_t at = *(const uint64_t *)key;
	return at < b->at ? -1 : at > b->at;
}

static void find_bodies(const struct name_table *t, struct bodies *b)
{
	size_t n = t->sites->bodies.n;
	const struct body *all = t->sites->bodies.p, *end = all + n;
	b->n = 0;
	b->p = n ? bsearch(&b->at, all, n, sizeof(*b->p), body_by_address) : NULL;
	if (!b->p)
		return;
	while (b->p > all && b->p[-1].at == b->at)
		b->p--;
	while (b->p + b->n < end && b->p[b->n].at == b->at)
		b->n++;
}

/* A name has one address, mostly, which is asked for several times. */
static const struct body *bodies_at(struct name_table *t, uint64_t at, size_t *ret_n)
{
	if (!t->last.p || t->last.at != at) {
		t->last.at = at;
		find_bodies(t, &t->last);
	}
	*ret_n = t->last.n;
	return t->last.p;
}

/*
 * Functions of which the body or a part begins at one of the addresses: once each, in order of
 * their numbers.
 */
static int put_functions(struct name_table *t, const char *name, const struct symbol_name *symbol,
			 bool parts, uint32_t flags)
{
	uint32_t last = 0;
	for (;;) {
		/* The smallest number above the last; functions of one name are few. */
		uint32_t next = SYMBOL_FUNCTION_MASK;
		for (size_t i = 0, n; i < symbol->at.n; i++) {
			const struct body *b = bodies_at(t, symbol->at.p[i].v, &n);
			for (size_t k = 0; k < n; k++)
				if (b[k].is_part == parts && b[k].function >= last &&
				    b[k].function < next && !leads_to(t, name, b[k].function))
					next = b[k].function;
		}
		if (next == SYMBOL_FUNCTION_MASK)
			return 0;
		int rc = put(t, name, SYMBOL_NOWHERE, flags | next, SYMBOL_NOWHERE);
		if (rc < 0)
			return rc;
		last = next + 1;
	}
}

/*
 * The functions that begin at one of the addresses, then parts of functions, then addresses without
 * a description.
 */
static int put_addresses(struct name_table *t, const char *name, const struct symbol_name *symbol)
{
	uint32_t flags = symbol->indirect ? SYMBOL_INDIRECT : 0;
	int rc = put_functions(t, name, symbol, false, flags);
	if (rc >= 0)
		rc = put_functions(t, name, symbol, true, flags | SYMBOL_PART);
	for (size_t i = 0, n; i < symbol->at.n && rc >= 0; i++) {
		const struct body *b = bodies_at(t, symbol->at.p[i].v, &n);
		bool has_part = false, has_body = false;
		for (size_t k = 0; k < n; k++) {
			has_part |= b[k].is_part;
			has_body |= !b[k].is_part;
		}
		rc = has_body ? 0
			      : put_bare(t, name, symbol->at.p[i],
					 flags | (has_part ? SYMBOL_PART : 0));
	}
	return rc;
}

static bool is_indirect(const struct candidate *c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (c[i].origin == SYMBOL_OF_RESOLVER)
			return true;
	return false;
}

/* Candidates of one name are in order of address. A debug file repeats those of the binary. */
static bool is_repeated(const struct candidate *c, size_t i)
{
	return i && c[i - 1].at == c[i].at && c[i - 1].size == c[i].size &&
	       c[i - 1].origin == c[i].origin;
}

/* The addresses of @n candidates of one name, as symbol_name_find() would find them. */
static int addresses_of(const struct name_table *t, const struct candidate *c, size_t n,
			struct symbol_name *ret)
{
	int rc = 0;
	*ret = (struct symbol_name){.indirect = is_indirect(c, n)};
	for (size_t i = 0; i < n && rc >= 0; i++) {
		bool again = ret->at.n && ret->at.p[ret->at.n - 1].v == c[i].at;
		if (c[i].origin == SYMBOL_OF_RESOLVER && !is_repeated(c, i))
			rc = symbol_name_add_implementations(t->bin, (struct cairn_vaddr){c[i].at},
							     c[i].size, ret, t->err);
		else if (c[i].origin == SYMBOL_OF_CODE && !again)
			rc = VEC_ADD(&ret->at, (struct cairn_vaddr){c[i].at}) ? 0 : -ENOMEM;
	}
	if (ret->indirect)
		symbol_name_settle(ret);
	return rc;
}

static int put_name(struct name_table *t, const struct candidate *c, size_t n)
{
	struct symbol_name symbol;
	int rc = addresses_of(t, c, n, &symbol);
	if (rc >= 0 && symbol.at.n)
		rc = put_addresses(t, c->name, &symbol);
	else if (rc >= 0 && !is_known(t, c->name))
		rc = put(t, c->name, SYMBOL_NOWHERE,
			 symbol.indirect ? SYMBOL_INDIRECT | SYMBOL_BARE : SYMBOL_IMPORTED,
			 SYMBOL_NOWHERE);
	symbol_name_fini(&symbol);
	return rc;
}

int encode_symbol_names(const struct site_table *p, const struct cairn_binary *bin,
			struct bytes *ret, struct cairn_err *err)
{
	struct name_table t = {.sites = p, .bin = bin, .out = ret, .err = err};
	int rc = symbol_names_visit(bin, add, &t);
	if (rc >= 0 && t.v.n)
		qsort(t.v.p, t.v.n, sizeof(*t.v.p), by_name);
	for (size_t i = 0, n; i < t.v.n && rc >= 0; i += n) {
		for (n = 1; i + n < t.v.n && !strcmp(t.v.p[i].name, t.v.p[i + n].name);)
			n++;
		rc = put_name(&t, &t.v.p[i], n);
	}
	VEC_FREE(&t.v);
	return rc;
}
