/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chains of tables
 *
 * Code is mostly made at rising addresses, and then an element is stored after the last one, and
 * used_len after it. When a table is full, another is chained. Tables may have been put between
 * others, so the table that covers the address decides what "after the last one" means:
 *
 *	T1 [100 .. 400)  T2 [900 .. a00)  T3 [a00 .. c00)
 *	next at 500: T1, when it has room; next at 950: no table
 *
 * If an address was described before, or lies between elements of one table, the order of a table
 * cannot be kept. Then that table is split at the address, in a new generation: T2a with the live
 * elements below and room for new ones, T2b with the live elements above. All other tables stay
 * unchanged. Withdrawn elements are dropped, so in the new generation every address is free to be
 * described once:
 *
 *	plan	T2a, T2b are filled; no reader sees them
 *	splice	T1.next = T2a: readers of the old epoch see the same live elements
 *	(registry: the new epoch is valid, the old one is not)
 *	finish	T2 is used for something else
 *
 * The cost is that of one table, not of the region. Tables that have become small are taken into
 * the window with their neighbour, so that many such steps do not leave many small tables.
 */
#include "jit_chain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ELEMENTS_BYTES = JIT_BLOCK_BYTES - (int)sizeof(struct code_jit_table) };

static const struct {
	uint32_t stride;
	uint32_t size; /* end of the last member */
} shapes[JIT_N_KINDS] = {
	[JIT_ROWS] = {sizeof(struct code_jit_unwind_fre), CODE_JIT_UNWIND_FRE_RFC_SIZE},
	[JIT_SYMBOLS] = {sizeof(struct code_jit_symbol), sizeof(struct code_jit_symbol)},
	[JIT_LINES] = {sizeof(struct code_jit_line), sizeof(struct code_jit_line)},
};

static uint32_t capacity(const struct jit_chain *chain)
{
	return ELEMENTS_BYTES / shapes[chain->kind].stride;
}

/* ---- elements: the first two words of 32 bits are enough here ---- */

static uint32_t *element_at(const struct jit_chain *chain, const struct code_jit_table *table,
			    size_t i)
{
	return (uint32_t *)((uint8_t *)(table + 1) + i * shapes[chain->kind].stride);
}

static size_t count(const struct jit_chain *chain, const struct code_jit_table *table)
{
	return table->used_len / shapes[chain->kind].stride;
}

static uint64_t offset_of(const struct jit_chain *chain, const uint32_t *element)
{
	return element[chain->kind == JIT_LINES ? 0 : 1];
}

/* The word that is 0 when it is withdrawn. */
static uint32_t *life_of(const struct jit_chain *chain, uint32_t *element)
{
	return &element[chain->kind == JIT_LINES ? 1 : 0];
}

static uint64_t end_of(const struct jit_chain *chain, const uint32_t *element)
{
	return chain->kind == JIT_LINES ? element[0] : (uint64_t)element[1] + element[0];
}

/* Number of the first element at or after @at. */
static size_t search(const struct jit_chain *chain, const struct code_jit_table *table, uint64_t at)
{
	size_t lo = 0, hi = count(chain, table);
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (offset_of(chain, element_at(chain, table, mid)) < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* ---- tables ---- */

static void put(uint64_t *to, uint64_t value)
{
	__atomic_store_n(to, value, __ATOMIC_RELAXED);
}

/* Also readers that are late may look at it. */
static struct code_jit_table *new_table(struct jit_chain *chain)
{
	struct code_jit_table *t = jit_pool_take(chain->pool);
	if (!t)
		return NULL;
	uint64_t shape = (uint64_t)shapes[chain->kind].size << 32 | shapes[chain->kind].stride;
	put(&t->reserved_len, (uint64_t)capacity(chain) * shapes[chain->kind].stride);
	put(&t->used_len, 0);
	put(&t->next, 0);
	__atomic_store_n(&t->stride, (uint32_t)shape, __ATOMIC_RELAXED);
	__atomic_store_n(&t->size, (uint32_t)(shape >> 32), __ATOMIC_RELAXED);
	return t;
}

static void link_to(struct code_jit_table *from, const struct code_jit_table *to)
{
	__atomic_store_n(&from->next, (uintptr_t)to, __ATOMIC_RELEASE);
}

static bool make_refs(struct jit_chain *chain, uint32_t n_more)
{
	if (chain->n_refs + n_more <= chain->room)
		return true;
	uint32_t room = chain->room * 2 + 16;
	struct jit_ref *grown = realloc(chain->refs, room * sizeof(*grown));
	if (!grown)
		return false;
	chain->refs = grown;
	chain->room = room;
	return true;
}

/* [@first, @first + @n) become @made. There is room. */
static void replace_refs(struct jit_chain *chain, uint32_t first, uint32_t n,
			 const struct jit_ref *made, uint32_t n_made)
{
	memmove(&chain->refs[first + n_made], &chain->refs[first + n],
		(chain->n_refs - first - n) * sizeof(*made));
	memcpy(&chain->refs[first], made, n_made * sizeof(*made));
	chain->n_refs += n_made - n;
}

/* Appending goes on in table @i. */
static void use_table(struct jit_chain *chain, uint32_t i)
{
	if (chain->table)
		chain->refs[chain->current].end = chain->lo;
	chain->current = i;
	chain->table = chain->refs[i].table;
	chain->lo = chain->refs[i].end;
	chain->hi = i + 1 < chain->n_refs ? chain->refs[i + 1].lo : chain->region_bytes;
}

void jit_chain_init(struct jit_chain *chain, enum jit_kind kind, struct jit_pool *pool,
		    uint64_t region_bytes)
{
	*chain = (struct jit_chain){
		.kind = kind, .pool = pool, .region_bytes = region_bytes, .lo = UINT64_MAX};
}

void jit_chain_fini(struct jit_chain *chain)
{
	free(chain->refs);
}

struct code_jit_table *jit_chain_head(const struct jit_chain *chain)
{
	if (chain->plan.is_made && chain->plan.first == 0)
		return chain->plan.made[0].table;
	return chain->n_refs ? chain->refs[0].table : NULL;
}

/* ---- finding room ---- */

/* The last table that begins at or before @at; the first one when none does. */
static uint32_t ref_of(const struct jit_chain *chain, uint64_t at)
{
	uint32_t lo = 0, hi = chain->n_refs;
	while (hi - lo > 1) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (chain->refs[mid].lo <= at)
			lo = mid;
		else
			hi = mid;
	}
	return lo;
}

/* A new table after table @i, which keeps the order: no new generation. */
static int chain_after(struct jit_chain *chain, uint32_t i, uint64_t lo)
{
	struct jit_ref ref = {.lo = lo, .end = lo};
	if (!make_refs(chain, 1) || !(ref.table = new_table(chain)))
		return -ENOMEM;
	struct code_jit_table *before = chain->refs[i].table;
	put(&ref.table->next, before->next);
	link_to(before, ref.table);
	/* Before its number changes. */
	chain->refs[chain->current].end = chain->lo;
	replace_refs(chain, i + 1, 0, &ref, 1);
	chain->table = NULL;
	use_table(chain, i + 1);
	return 0;
}

static bool has_room(const struct jit_chain *chain, const struct code_jit_table *table, size_t n)
{
	return (table->reserved_len - table->used_len) / shapes[chain->kind].stride >= n;
}

/* Copies the live elements in [@first, @last) of a table. */
static void copy_live(const struct jit_chain *chain, const struct code_jit_table *from,
		      size_t first, size_t last, struct jit_ref *to)
{
	struct code_jit_table *t = to->table;
	size_t n_words = shapes[chain->kind].stride / sizeof(uint64_t);
	uint64_t used = t->used_len;
	for (size_t i = first; i < last; i++) {
		uint32_t *element = element_at(chain, from, i);
		/* A withdrawn line still ends the one before it; two in a row do not. */
		bool is_live = *life_of(chain, element) ||
			       (chain->kind == JIT_LINES && used &&
				*life_of(chain, element_at(chain, t,
							   used / shapes[chain->kind].stride - 1)));
		if (!is_live)
			continue;
		uint64_t *words = (uint64_t *)((uint8_t *)(t + 1) + used);
		for (size_t w = 0; w < n_words; w++)
			put(&words[w], ((const uint64_t *)(const void *)element)[w]);
		if (!used)
			to->lo = offset_of(chain, element);
		to->end = end_of(chain, element);
		used += shapes[chain->kind].stride;
	}
	put(&t->used_len, used);
}

/* Something live in the window that overlaps [@lo, @hi). */
static bool is_taken(const struct jit_chain *chain, uint32_t first, uint32_t n_tables, uint64_t lo,
		     uint64_t hi)
{
	if (chain->kind == JIT_LINES)
		return false;
	for (uint32_t r = first; r < first + n_tables; r++) {
		const struct code_jit_table *t = chain->refs[r].table;
		size_t n = count(chain, t), i = 0;
		/* Rows are not in one another, so only the last one before @lo can reach it. */
		if (chain->kind == JIT_ROWS && (i = search(chain, t, lo)))
			i--;
		for (; i < n; i++) {
			uint32_t *element = element_at(chain, t, i);
			if (offset_of(chain, element) >= hi)
				break;
			if (*life_of(chain, element) && end_of(chain, element) > lo)
				return true;
		}
	}
	return false;
}

static size_t count_window(const struct jit_chain *chain, uint32_t first, uint32_t n)
{
	size_t sum = 0;
	for (uint32_t r = first; r < first + n; r++)
		sum += count(chain, chain->refs[r].table);
	return sum;
}

/* The tables that [@lo, @hi) touches, and a neighbour on each side when they are small. */
static void choose_window(const struct jit_chain *chain, uint64_t lo, uint64_t hi,
			  struct jit_plan *plan)
{
	plan->first = chain->n_refs ? ref_of(chain, lo) : 0;
	plan->n = chain->n_refs ? 1 : 0;
	while (plan->first + plan->n < chain->n_refs && chain->refs[plan->first + plan->n].lo < hi)
		plan->n++;
	if (plan->n && plan->first &&
	    count_window(chain, plan->first - 1, plan->n + 1) <= capacity(chain) / 2) {
		plan->first--;
		plan->n++;
	}
	if (plan->n && plan->first + plan->n < chain->n_refs &&
	    count_window(chain, plan->first, plan->n + 1) <= capacity(chain) / 2)
		plan->n++;
}

static bool add_table(struct jit_chain *chain, struct jit_plan *plan, uint64_t lo)
{
	struct jit_ref ref = {.table = new_table(chain), .lo = lo, .end = lo};
	if (!ref.table)
		return false;
	plan->made[plan->n_made++] = ref;
	return true;
}

static void copy_window(struct jit_chain *chain, const struct jit_plan *plan, uint64_t lo,
			bool is_below, struct jit_ref *to)
{
	/* The end of the lines before is at @lo, too, and belongs to them. */
	uint64_t at = chain->kind == JIT_LINES ? lo + 1 : lo;
	for (uint32_t r = plan->first; r < plan->first + plan->n; r++) {
		const struct code_jit_table *t = chain->refs[r].table;
		size_t middle = search(chain, t, at), n = count(chain, t);
		copy_live(chain, t, is_below ? 0 : middle, is_below ? middle : n, to);
	}
}

/* The elements below, room for @n at @lo, the elements above: two or three tables. */
static bool fill_plan(struct jit_chain *chain, struct jit_plan *plan, uint64_t lo, size_t n)
{
	if (!add_table(chain, plan, lo))
		return false;
	copy_window(chain, plan, lo, true, &plan->made[0]);
	/* A table that is nearly full would be full soon. */
	size_t want = n > capacity(chain) / 4 ? n : capacity(chain) / 4;
	if (!has_room(chain, plan->made[0].table, want) && !add_table(chain, plan, lo))
		return false;
	plan->current = plan->n_made - 1;
	if (!add_table(chain, plan, lo))
		return false;
	struct jit_ref *above = &plan->made[plan->n_made - 1];
	copy_window(chain, plan, lo, false, above);
	if (!above->table->used_len) {
		jit_pool_give(chain->pool, above->table);
		plan->n_made--;
	}
	return true;
}

static void link_plan(struct jit_chain *chain, struct jit_plan *plan)
{
	uint32_t after = plan->first + plan->n;
	for (uint32_t i = 0; i + 1 < plan->n_made; i++)
		link_to(plan->made[i].table, plan->made[i + 1].table);
	if (after < chain->n_refs)
		link_to(plan->made[plan->n_made - 1].table, chain->refs[after].table);
}

static int make_plan(struct jit_chain *chain, uint64_t lo, uint64_t hi, size_t n)
{
	struct jit_plan *plan = &chain->plan;
	*plan = (struct jit_plan){.is_made = true};
	choose_window(chain, lo, hi, plan);
	int rc = is_taken(chain, plan->first, plan->n, lo, hi) ? -EEXIST : 1;
	if (rc == 1 && (!make_refs(chain, 3) || !fill_plan(chain, plan, lo, n)))
		rc = -ENOMEM;
	if (rc < 0) {
		jit_chain_cancel(chain);
		return rc;
	}
	link_plan(chain, plan);
	return 1;
}

int jit_chain_find_room(struct jit_chain *chain, uint64_t lo, uint64_t hi, size_t n)
{
	if (!n || jit_chain_fits(chain, lo, hi, n * jit_stride(chain->kind)))
		return 0;
	if (chain->table) {
		chain->refs[chain->current].end = chain->lo;
		uint32_t i = ref_of(chain, lo);
		uint64_t limit =
			i + 1 < chain->n_refs ? chain->refs[i + 1].lo : chain->region_bytes;
		if (lo >= chain->refs[i].end && hi <= limit) {
			if (!has_room(chain, chain->refs[i].table, n))
				return chain_after(chain, i, lo);
			use_table(chain, i);
			return 0;
		}
	}
	return make_plan(chain, lo, hi, n);
}

/* ---- generations ---- */

void jit_chain_splice(struct jit_chain *chain)
{
	const struct jit_plan *plan = &chain->plan;
	if (plan->is_made && plan->first)
		link_to(chain->refs[plan->first - 1].table, plan->made[0].table);
}

void jit_chain_finish(struct jit_chain *chain, void (*drop)(void *ctx, const void *element),
		      void *ctx)
{
	struct jit_plan *plan = &chain->plan;
	if (!plan->is_made)
		return;
	for (uint32_t r = plan->first; r < plan->first + plan->n; r++) {
		struct code_jit_table *t = chain->refs[r].table;
		for (size_t i = 0; drop && i < count(chain, t); i++)
			if (!*life_of(chain, element_at(chain, t, i)))
				drop(ctx, element_at(chain, t, i));
		jit_pool_give(chain->pool, t);
	}
	if (chain->table)
		chain->refs[chain->current].end = chain->lo;
	chain->table = NULL;
	replace_refs(chain, plan->first, plan->n, plan->made, plan->n_made);
	use_table(chain, plan->first + plan->current);
	plan->is_made = false;
}

void jit_chain_cancel(struct jit_chain *chain)
{
	struct jit_plan *plan = &chain->plan;
	for (uint32_t i = 0; plan->is_made && i < plan->n_made; i++)
		jit_pool_give(chain->pool, plan->made[i].table);
	plan->is_made = false;
}

/* ---- withdrawing ---- */

static uint32_t *element_off(const struct code_jit_table *table, uint64_t off)
{
	return (uint32_t *)((uint8_t *)(table + 1) + off);
}

/*
 * Is table @r the one that has @lo, and the element at byte @off of it the first at or after @lo?
 */
static bool is_first(const struct jit_chain *chain, uint32_t r, uint64_t off, uint64_t lo)
{
	uint32_t stride = shapes[chain->kind].stride;
	if (r >= chain->n_refs || chain->refs[r].lo > lo ||
	    (r + 1 < chain->n_refs && chain->refs[r + 1].lo <= lo))
		return false;
	const struct code_jit_table *t = chain->refs[r].table;
	return off < t->used_len && offset_of(chain, element_off(t, off)) >= lo &&
	       (!off || offset_of(chain, element_off(t, off - stride)) < lo);
}

/* Those of one table from byte @off on; returns where it stopped. */
static uint64_t withdraw_from(const struct jit_chain *chain, const struct code_jit_table *t,
			      uint64_t off, uint64_t hi)
{
	uint32_t stride = shapes[chain->kind].stride;
	for (uint64_t end = t->used_len; off < end; off += stride) {
		uint32_t *element = element_off(t, off);
		if (offset_of(chain, element) >= hi)
			break;
		__atomic_store_n(life_of(chain, element), 0, __ATOMIC_RELEASE);
	}
	return off;
}

void jit_chain_withdraw(struct jit_chain *chain, uint64_t lo, uint64_t hi)
{
	uint32_t r = chain->swept;
	uint64_t off = chain->swept_at;
	if (!chain->n_refs)
		return;
	if (!is_first(chain, r, off, lo)) {
		r = ref_of(chain, lo);
		off = search(chain, chain->refs[r].table, lo) * shapes[chain->kind].stride;
	}
	for (;; r++, off = 0) {
		off = withdraw_from(chain, chain->refs[r].table, off, hi);
		if (r + 1 == chain->n_refs || chain->refs[r + 1].lo >= hi)
			break;
	}
	chain->swept = r;
	chain->swept_at = off;
}

void jit_chain_each(const struct jit_chain *chain, void (*each)(void *ctx, const void *element),
		    void *ctx)
{
	for (uint32_t r = 0; r < chain->n_refs; r++)
		for (size_t i = 0; i < count(chain, chain->refs[r].table); i++)
			each(ctx, element_at(chain, chain->refs[r].table, i));
}
