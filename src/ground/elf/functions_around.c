/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions around a few addresses
 *
 * An order of all symbols answers any question, but it takes longer than many a question. Which
 * function an address belongs to depends on the symbols that hold it or begin near it. So pages
 * around the addresses are marked, and one pass over the table takes the symbols that touch one:
 *
 *	pages      . . . x x x x . . .       x: wanted
 *	symbols        [---)                 its end is in a wanted page
 *	                 [-----------)       it goes through them
 *	                     [)[---)         they begin there
 *
 * Flattened (functions.c), they give the pieces that all symbols would give, in these pages. The
 * answer for an address holds if what it depends on is in pages around it that are all wanted:
 * where the symbol begins, where the piece ends, and if there is none, or it has no size, the
 * functions before and after. Else more pages are wanted, and the pass is made again.
 */
#include "elf/functions_around.h"

#include <elf.h>

#include "base/search.h"
#include "elf/segments.h"
#include "elf/symbol_scan.h"

enum {
	PAGE_BITS = 12,
	BEFORE = FUNCTIONS_AROUND_BEFORE >> PAGE_BITS,
	AFTER = 1,
	/* Pages before the first address and after the last one that may become wanted. */
	MARGIN = 512,
	PAGES_MAX = 1 << 18,
	ROUNDS = 6,
};

/* ---- pages ---- */

static int pages_init(struct address_pages *p, uint64_t first, uint64_t last)
{
	uint64_t lo = first >> PAGE_BITS, hi = last >> PAGE_BITS;

	lo = lo > MARGIN ? lo - MARGIN : 0;
	if (hi - lo >= PAGES_MAX - MARGIN)
		return 0;
	p->base = lo << PAGE_BITS;
	p->n = (size_t)(hi - lo) + MARGIN;
	p->is_wanted = calloc(p->n, sizeof(*p->is_wanted));
	p->next = calloc(p->n, sizeof(*p->next));
	return p->is_wanted && p->next ? 1 : -ENOMEM;
}

/* Of [lo, hi]. False: a page is too far away. */
static bool want(struct address_pages *p, uint64_t lo, uint64_t hi)
{
	uint64_t from = (lo - p->base) >> PAGE_BITS, to = (hi - p->base) >> PAGE_BITS;

	if (lo < p->base || hi < lo || to >= p->n)
		return false;
	memset(p->is_wanted + from, 1, (size_t)(to - from + 1));
	return true;
}

static void number_pages(struct address_pages *p)
{
	uint32_t next = (uint32_t)p->n;

	for (size_t i = p->n; i--;) {
		next = p->is_wanted[i] ? (uint32_t)i : next;
		p->next[i] = next;
	}
}

/* Whether a symbol touches a wanted page. */
static inline bool touches(const struct address_pages *p, uint64_t at, uint64_t size)
{
	uint64_t last = at + (size ? size - 1 : 0);
	uint64_t from, to = (last - p->base) >> PAGE_BITS;

	if (last < at || last < p->base)
		return last < at;
	from = at > p->base ? (at - p->base) >> PAGE_BITS : 0;
	return from < p->n && p->next[from] <= to;
}

/* ---- symbols ---- */

static int take(const struct symbol_table *t, const struct address_pages *p,
		struct symbol_list *ret)
{
	Elf64_Sym s;
	uint64_t i = 0;
	int rc;

	while ((rc = symbol_scan_next(t, &i, &s)) > 0) {
		rc = touches(p, s.st_value, s.st_size) ? symbol_scan_add(t, &s, ret) : 0;
		if (rc < 0)
			break;
	}
	return rc;
}

static int collect(struct functions_around *f, const struct elf *e, const struct symbol_table *t)
{
	struct symbol_list found = {0};

	number_pages(&f->pages);
	int rc = take(t, &f->pages, &found);
	f->n_symbols = found.v.n;
	f->symbols = rc == 0 ? calloc(found.v.n + 1, sizeof(*f->symbols)) : NULL;
	if (rc == 0)
		rc = f->symbols ? symbols_sort(found.v.p, found.v.n, f->symbols) : -ENOMEM;
	VEC_FREE(&found.v);
	return rc < 0 ? rc : functions_flatten(&f->functions, e, f->symbols, f->n_symbols);
}

static void forget(struct functions_around *f)
{
	functions_fini(&f->functions);
	free(f->symbols);
	f->symbols = NULL;
	f->n_symbols = 0;
}

/* ---- whether an answer holds ---- */

/* The wanted pages around an address, and what was found there. */
struct view {
	const struct functions_around *f;
	uint64_t at, lo, hi; /* all of [lo, hi) is wanted */
	uint64_t section_lo, section_hi;
	size_t next; /* index of the first range that begins after it */
};

static struct view view_of(const struct functions_around *f, const struct elf *e, uint64_t at)
{
	const struct address_pages *p = &f->pages;
	const struct section *section = elf_section_holding(e, (struct cairn_vaddr){at});
	size_t lo = (size_t)((at - p->base) >> PAGE_BITS), hi = lo;

	while (lo && p->is_wanted[lo - 1])
		lo--;
	while (hi < p->n && p->is_wanted[hi])
		hi++;
	struct view v = {.f = f,
			 .at = at,
			 .lo = p->base + ((uint64_t)lo << PAGE_BITS),
			 .hi = p->base + ((uint64_t)hi << PAGE_BITS)};
	v.section_lo = section ? section->file.addr.v : 0;
	v.section_hi = section ? v.section_lo + section->file_size : UINT64_MAX;
	v.next = SEARCH(0, f->functions.ranges.n, i, f->functions.ranges.p[i].lo <= at);
	return v;
}

static const struct function_range *range_before(const struct view *v, size_t n)
{
	return v->next >= n ? &v->f->functions.ranges.p[v->next - n] : NULL;
}

/* The first address that has to be known. */
static uint64_t least_of(const struct view *v)
{
	const struct function_range *r = range_before(v, 1), *before = range_before(v, 2);
	const uint64_t n = v->hi - v->lo, more = v->lo > n ? v->lo - n : 0;

	if (v->lo <= v->section_lo)
		return v->lo;
	/* What began in pages that are not wanted is not all known. */
	if (!r || r->hi <= v->lo)
		return more;
	if (functions_is_local_label(r->symbol) && (!before || before->hi <= v->lo))
		return more;
	return r->symbol->at.v;
}

/* The end of what has to be known. */
static uint64_t end_of(const struct view *v)
{
	const struct functions *f = &v->f->functions;
	const struct function_range *r = range_before(v, 1);

	if (r && r->hi > v->at && r->symbol->size)
		return r->hi;
	if (v->next < f->ranges.n && f->ranges.p[v->next].lo < v->hi)
		return v->hi;
	return v->hi >= v->section_hi ? v->hi : v->hi + (v->hi - v->lo);
}

/* 1: the answer holds; 0: more pages are wanted now; -EAGAIN: too many. */
static int settle(struct functions_around *f, const struct elf *e, uint64_t at)
{
	const struct view v = view_of(f, e, at);
	uint64_t lo = least_of(&v), end = end_of(&v);

	if (lo >= v.lo && end <= v.hi)
		return 1;
	lo = lo < v.lo ? lo : v.lo;
	end = end > v.hi ? end : v.hi;
	return want(&f->pages, lo, end - 1) ? 0 : -EAGAIN;
}

static int settle_all(struct functions_around *f, const struct elf *e)
{
	int all = 1;

	for (size_t i = 0; i < f->at.n && all >= 0; i++) {
		int rc = settle(f, e, f->at.p[i]);
		all = rc < 0 || !rc ? rc : all;
	}
	return all;
}

/* ---- all of it ---- */

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int begin(struct functions_around *f, const uint64_t *at, size_t n)
{
	bool ok = true;

	if (!n)
		return 0;
	if (!VEC_APPEND(&f->at, at, n))
		return -ENOMEM;
	qsort(f->at.p, n, sizeof(*f->at.p), by_number);
	int rc = pages_init(&f->pages, f->at.p[0], f->at.p[n - 1]);
	for (size_t i = 0; i < n && rc > 0 && ok; i++) {
		uint64_t page = f->at.p[i] >> PAGE_BITS << PAGE_BITS;
		ok = want(&f->pages, page - FUNCTIONS_AROUND_BEFORE,
			  page + ((uint64_t)AFTER << PAGE_BITS));
	}
	return rc > 0 ? ok : rc;
}

static int search(struct functions_around *f, const struct elf *e, const struct symbol_table *t)
{
	int rc = 0;

	for (int round = 0; round < ROUNDS && rc == 0; round++) {
		forget(f);
		rc = collect(f, e, t);
		if (rc == 0)
			rc = settle_all(f, e);
	}
	return rc == -EAGAIN ? 0 : rc;
}

int functions_around_init(struct functions_around *f, struct elf *e, const uint64_t *at, size_t n)
{
	bool has_all = atomic_load_explicit(&e->symbols_ready, memory_order_acquire);
	struct symbol_table t;

	*f = (struct functions_around){0};
	if (has_all || !symbol_scan_begin(e, &t))
		return 0;
	int rc = begin(f, at, n);
	if (rc > 0)
		rc = search(f, e, &t);
	if (rc <= 0)
		functions_around_fini(f);
	return rc;
}

void functions_around_fini(struct functions_around *f)
{
	forget(f);
	VEC_FREE(&f->at);
	free(f->pages.is_wanted);
	free(f->pages.next);
	*f = (struct functions_around){0};
}

bool functions_around_has(const struct functions_around *f, uint64_t at)
{
	size_t i = SEARCH(0, f->at.n, mid, f->at.p[mid] < at);

	return i < f->at.n && f->at.p[i] == at;
}
