/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * By address and by name
 *
 * An address leads to a page, in it to a row by a binary search over bytes, and from there to the
 * frame, the frames around it and their functions, each by its number. By name it is a hash, and
 * the three names or so that share its bucket.
 */
#include "base/search.h"
#include "sidecar/sidecar_impl.h"

#include <string.h>

/* ---- symbols ---- */

#define NO_SYMBOL UINT32_MAX

static bool symbol_holds(const struct cairn_sidecar *p, uint32_t i, uint32_t at)
{
	return at - table_get(&p->symbols, i, SYMBOL_AT) < table_get(&p->symbols, i, SYMBOL_SIZE);
}

static bool is_rest(const struct cairn_sidecar *p, uint32_t i)
{
	return table_get(&p->symbols, i, SYMBOL_KIND) == SYMBOL_KIND_REST;
}

/* The record with the start and the name of the symbol of record @i. */
static uint32_t symbol_start(const struct cairn_sidecar *p, uint32_t i)
{
	if (i == NO_SYMBOL || !is_rest(p, i))
		return i;
	uint32_t start = table_get(&p->symbols, i, SYMBOL_NAME);
	return start < p->symbols.n && !is_rest(p, start) ? start : NO_SYMBOL;
}

/* The last of @n records from @i on that begins at or before @at; @i, when none does. */
static uint32_t last_at(const struct cairn_sidecar *p, uint32_t i, uint32_t n, uint32_t at)
{
	return SEARCH_LAST(i, n, k, table_get(&p->symbols, k, SYMBOL_AT) <= at);
}

/* The record with the start and the name of the symbol that holds @at, or NO_SYMBOL. */
static uint32_t symbol_at(const struct cairn_sidecar *p, uint32_t at)
{
	uint32_t i = last_at(p, 0, p->symbols.n, at);
	return p->symbols.n && symbol_holds(p, i, at) ? symbol_start(p, i) : NO_SYMBOL;
}

/*
 * The same, in steps that double from record @near on, where the last lookup ended;
 * @near is set.
 */
static uint32_t symbol_near(const struct cairn_sidecar *p, uint32_t *near, uint32_t at)
{
	uint32_t i = *near, step = 1;
	if (i >= p->symbols.n || table_get(&p->symbols, i, SYMBOL_AT) > at)
		i = 0;
	while (step < p->symbols.n - i && table_get(&p->symbols, i + step, SYMBOL_AT) <= at) {
		i += step;
		step *= 2;
	}
	*near = last_at(p, i, step < p->symbols.n - i ? step : p->symbols.n - i, at);
	return p->symbols.n && symbol_holds(p, *near, at) ? symbol_start(p, *near) : NO_SYMBOL;
}

/* The same, from the first symbol of the page on. */
static uint32_t symbol_from(const struct cairn_sidecar *p, uint32_t i, uint32_t at)
{
	if (i >= p->symbols.n)
		return NO_SYMBOL;
	while (i + 1 < p->symbols.n && table_get(&p->symbols, i + 1, SYMBOL_AT) <= at)
		i++;
	return symbol_holds(p, i, at) ? symbol_start(p, i) : NO_SYMBOL;
}

static const char *symbol_name(const struct cairn_sidecar *p, uint32_t i)
{
	return i == NO_SYMBOL ? NULL : sidecar_string(p, table_get(&p->symbols, i, SYMBOL_NAME));
}

/* False when @at is outside the code that is described. */
static bool offset_of(const struct cairn_sidecar *p, struct cairn_vaddr at, uint32_t *ret)
{
	*ret = (uint32_t)(at.v - p->header->base);
	return at.v - p->header->base < p->header->span;
}

bool sidecar_symbol_near(const struct cairn_sidecar *p, uint32_t *near, struct cairn_vaddr at,
			 const char **ret_name, struct cairn_vaddr *ret_start)
{
	uint32_t off;
	uint32_t i = offset_of(p, at, &off) ? symbol_near(p, near, off) : NO_SYMBOL;
	const char *name = symbol_name(p, i);
	if (!name)
		return false;
	*ret_name = name;
	ret_start->v = p->header->base + table_get(&p->symbols, i, SYMBOL_AT);
	return true;
}

bool cairn_sidecar_symbol_of(const struct cairn_sidecar *p, struct cairn_vaddr at,
			     const char **ret_name, struct cairn_vaddr *ret_start)
{
	uint32_t near = 0;
	return cairn_sidecar_covers(p, at) &&
	       sidecar_symbol_near(p, &near, at, ret_name, ret_start);
}

/* ---- frames ---- */

static void set_function(const struct cairn_sidecar *p, uint32_t number, struct cairn_frame *ret)
{
	const char *linkage = function_string(p, number, FUNCTION_LINKAGE);
	ret->name = function_string(p, number, FUNCTION_NAME);
	ret->function = linkage ? linkage : ret->name;
}

static void set_position(const struct cairn_sidecar *p, const struct position *at,
			 struct cairn_frame *ret)
{
	ret->file = sidecar_file(p, at->file);
	ret->line = at->line;
	ret->column = at->column;
}

/* The frame at hand and those around it. */
static size_t walk_out(const struct cairn_sidecar *p, const struct here *here,
		       struct cairn_frame *ret, size_t max)
{
	struct position position = here->position;
	struct frame f = here->frame, parent;
	size_t n = 0;
	for (uint32_t number = here->number - 1;; f = parent) {
		struct cairn_frame *to = &ret[n < max ? n : max - 1];
		set_function(p, f.function, to);
		set_position(p, &position, to);
		n++;
		number -= f.distance;
		if (!f.distance || !frame_at(p, number, &parent))
			return n < max ? n : max;
		position = call_of(p, &f, &parent);
	}
}

size_t cairn_sidecar_frames(const struct cairn_sidecar *p, struct cairn_vaddr at,
			    struct cairn_frame *ret, size_t max)
{
	struct here here = {0};
	struct page page;
	uint32_t off, symbol;
	size_t n = 0;
	if (!max || !offset_of(p, at, &off) || !cairn_sidecar_covers(p, at))
		return 0;
	if (page_of(p, off, &page)) {
		bits_prefetch(&p->symbols.bits, (uint64_t)page.symbol * p->symbols.record_width);
		if (!page_here(p, &page, page_row(&page, off), &here))
			here = (struct here){0};
		n = here.number ? walk_out(p, &here, ret, max) : 0;
		symbol = symbol_from(p, page.symbol, off);
	} else {
		symbol = symbol_at(p, off);
	}
	const char *name = symbol_name(p, symbol);
	if (!n) {
		if (!here.has_position && symbol == NO_SYMBOL)
			return 0;
		ret[0] = (struct cairn_frame){0};
		set_position(p, &here.position, &ret[0]);
		n = 1;
	}
	if (name)
		ret[n - 1].function = name;
	return n;
}

/* ---- names ---- */

static bool is_named(const struct cairn_sidecar *p, uint32_t function, const char *name)
{
	const char *own = function_string(p, function, FUNCTION_NAME);
	const char *linkage = function_string(p, function, FUNCTION_LINKAGE);
	return (own && !strcmp(own, name)) || (linkage && !strcmp(linkage, name));
}

size_t cairn_sidecar_find(const struct cairn_sidecar *p, const char *name, uint32_t *ret,
			  size_t max)
{
	size_t n = 0;
	uint32_t from, to;
	names_find(&p->names, name, &from, &to);
	for (uint32_t i = from; i < to; i++) {
		uint32_t function = table_get(&p->names.entries, i, 0);
		if (!is_named(p, function, name))
			continue;
		if (n < max)
			ret[n] = function;
		n++;
	}
	return n;
}

bool cairn_sidecar_function(const struct cairn_sidecar *p, uint32_t number,
			    struct cairn_sidecar_function *ret)
{
	if (!number || number >= p->functions.n)
		return false;
	*ret = (struct cairn_sidecar_function){
		.name = function_string(p, number, FUNCTION_NAME),
		.linkage = function_string(p, number, FUNCTION_LINKAGE),
		.file = sidecar_file(p, table_get(&p->functions, number, FUNCTION_FILE)),
		.line = table_get(&p->functions, number, FUNCTION_LINE)};
	return true;
}
