/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/kernel_ftrace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "elf/elf.h"

enum { ENTRY_BYTES = 8 };

void ftrace_calls_init(struct ftrace_calls *c)
{
	*c = (struct ftrace_calls){0};
	map_init(&c->traced);
}

void ftrace_calls_fini(struct ftrace_calls *c)
{
	map_fini(&c->traced);
	VEC_FREE(&c->at);
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* A kernel's is sorted when it is linked, a module's when it is loaded. */
int ftrace_calls_read(struct ftrace_calls *c, struct cursor *table)
{
	bool is_sorted = true;
	if (!VEC_RESERVE(&c->at, cur_left(table) / ENTRY_BYTES + 1))
		return -ENOMEM;
	while (cur_left(table) >= ENTRY_BYTES) {
		uint64_t at = cur_u64(table);
		is_sorted &= !c->at.n || c->at.p[c->at.n - 1] <= at;
		c->at.p[c->at.n++] = at;
	}
	if (!is_sorted)
		qsort(c->at.p, c->at.n, sizeof(*c->at.p), by_number);
	return 0;
}

static bool has_call(const struct ftrace_calls *c, const struct function_range *r)
{
	uint64_t lo = r->symbol->at.v, hi = r->hi > lo ? r->hi : lo;
	if (r->symbol->size && lo + r->symbol->size > hi)
		hi = lo + r->symbol->size;
	size_t i = SEARCH(0, c->at.n, mid, c->at.p[mid] < lo);
	return i < c->at.n && c->at.p[i] < hi;
}

static bool is_part(const struct function_range *r)
{
	return strchr(r->symbol->name, '.');
}

static uint64_t name_hash(const char *name)
{
	return map_hash_bytes(name, strcspn(name, "."));
}

static int see_traced(struct ftrace_calls *c, const struct functions *functions)
{
	int rc = 0;
	for (size_t i = 0; i < functions->ranges.n && rc >= 0; i++) {
		const struct function_range *r = &functions->ranges.p[i];
		if (!is_part(r) && has_call(c, r))
			rc = map_put(&c->traced, name_hash(r->symbol->name), 1);
	}
	return rc;
}

static bool is_traced(const struct ftrace_calls *c, const struct function_range *r)
{
	uint64_t one;
	return has_call(c, r) ||
	       (is_part(r) && map_get(&c->traced, name_hash(r->symbol->name), &one));
}

int ftrace_visit_silent(struct ftrace_calls *c, const struct functions *functions,
			silent_visitor *visit, void *ctx)
{
	int rc = c->at.n ? see_traced(c, functions) : 0;
	for (size_t i = 0; c->at.n && i < functions->ranges.n && rc >= 0; i++)
		if (!is_traced(c, &functions->ranges.p[i]))
			rc = visit(ctx, &functions->ranges.p[i]);
	return rc;
}

/* ---- around some addresses ---- */

/* Ranges in order, each once. */
struct range_list {
	VEC(const struct function_range *) v;
};

static int find_ranges(const struct functions_around *around, struct range_list *ret)
{
	const struct functions *f = &around->functions;
	for (size_t i = 0; i < around->at.n; i++) {
		uint64_t at = around->at.p[i];
		size_t n = SEARCH(0, f->ranges.n, mid, f->ranges.p[mid].lo <= at);
		const struct function_range *r = n ? &f->ranges.p[n - 1] : NULL;
		if (!r || r->hi <= at || (ret->v.n && ret->v.p[ret->v.n - 1] == r))
			continue;
		if (!VEC_ADD(&ret->v, r))
			return -ENOMEM;
	}
	return 0;
}

/* The names of the functions that parts without a call are of: "foo" of "foo.cold". */
static int find_names(const struct ftrace_calls *c, const struct range_list *ranges,
		      struct name_set *ret)
{
	int rc = 0;
	for (size_t i = 0; i < ranges->v.n && rc == 0; i++) {
		const struct function_range *r = ranges->v.p[i];
		if (is_part(r) && !has_call(c, r))
			rc = name_set_add(ret, r->symbol->name, strcspn(r->symbol->name, "."));
	}
	return rc;
}

/* Which of these functions are traced; they are elsewhere. */
static int see_named(struct ftrace_calls *c, const struct cairn_binary *bin,
		     const struct symbol_list *named)
{
	const struct functions *all = NULL;
	struct functions_around f;
	VEC(uint64_t) at = {0};
	bool ok = true;
	for (size_t i = 0; i < named->v.n && ok; i++)
		ok = VEC_ADD(&at, named->v.p[i].at.v);
	int rc = ok ? functions_around_init(&f, binary_symbol_file(bin), at.p, at.n) : -ENOMEM;
	VEC_FREE(&at);
	if (rc > 0) {
		rc = see_traced(c, &f.functions);
		functions_around_fini(&f);
		return rc;
	}
	if (rc == 0)
		rc = binary_functions(bin, &all, NULL);
	return rc < 0 || !all ? rc : see_traced(c, all);
}

static int see_bases(struct ftrace_calls *c, const struct cairn_binary *bin,
		     const struct range_list *ranges)
{
	struct name_set names = {0};
	struct symbol_list named = {0};
	int rc = find_names(c, ranges, &names);
	if (rc == 0 && names.v.n)
		rc = elf_symbols_of_names(binary_symbol_file(bin), &names, &named, NULL);
	if (rc == 0 && named.v.n)
		rc = see_named(c, bin, &named);
	VEC_FREE(&named.v);
	name_set_fini(&names);
	/* A damaged symbol table gives no functions. */
	return rc == -ENOMEM ? rc : 0;
}

int ftrace_visit_silent_around(struct ftrace_calls *c, const struct cairn_binary *bin,
			       const struct functions_around *around, silent_visitor *visit,
			       void *ctx)
{
	struct range_list ranges = {0};
	int rc = c->at.n ? find_ranges(around, &ranges) : 0;
	if (rc == 0 && ranges.v.n)
		rc = see_bases(c, bin, &ranges);
	for (size_t i = 0; i < ranges.v.n && rc >= 0; i++)
		if (!is_traced(c, ranges.v.p[i]))
			rc = visit(ctx, ranges.v.p[i]);
	VEC_FREE(&ranges.v);
	return rc;
}
