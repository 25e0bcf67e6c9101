/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From spans to pages
 *
 *	spans, the newest last     [0x1000,0x1100) A   [0x1080,0x1200) B
 *	flat                       [0x1000,0x1080) A   [0x1080,0x1200) B
 *	rows                       0x1000 rule 7, 0x1010 rule 9, 0x1080 rule 7, 0x1200 none
 *
 * A page whose rows are as before keeps its record. Where a rule was that is not there any more, or
 * is another one, stacks that went through it may never have been.
 */
#include "walk/made.h"

#include <errno.h>
#include <string.h>

#include "base/search.h"
#include "code/name_map.h"

enum {
	MAX_PAGES = 8192, /* 512 MB of code of one process */
	MAX_ROWS = 1 << 20,
	MAX_INTERVALS = 64, /* beyond, they are joined */
	PAGE = 1 << WALK_PAGE_SHIFT,
};

struct building {
	VEC(const struct made_rows *) of; /* parallel to spans */
	VEC(const struct made_span *) spans;
	struct name_map map;
	const struct made_interval *within;
	size_t n_within;
	VEC(struct made_row) rows;
	VEC(struct made_page) pages;
	bool is_cut;
};

static void building_fini(struct building *b)
{
	VEC_FREE(&b->of);
	VEC_FREE(&b->spans);
	VEC_FREE(&b->rows);
	VEC_FREE(&b->pages);
	name_map_fini(&b->map);
}

/* ---- rows ---- */

static int add_spans(struct building *b, const struct made_rows *rows)
{
	for (size_t i = 0; i < rows->spans.n; i++) {
		const struct made_span *s = &rows->spans.p[i];
		if (!name_map_add(&b->map, s->lo, s->hi, (uint32_t)b->spans.n) ||
		    !VEC_ADD(&b->spans, s) || !VEC_ADD(&b->of, rows))
			return -ENOMEM;
	}
	return 0;
}

/* The newest last. A list for GDB counts more than a dump. */
static int add_all(struct building *b, const struct made_code *made)
{
	int rc = 0;

	for (size_t i = 0; i < made->dumps.n && rc == 0; i++)
		rc = add_spans(b, &made->dumps.p[i].rows);
	for (size_t i = 0; i < made->lists.n && rc == 0; i++)
		for (size_t k = made->lists.p[i].symfiles.n; k-- > 0 && rc == 0;)
			rc = add_spans(b, &made->lists.p[i].symfiles.p[k].rows);
	return rc ? rc : name_map_flatten(&b->map);
}

/* From @at on. */
static int put_row(struct building *b, uint64_t at, uint16_t rule)
{
	struct made_row *last = b->rows.n ? &b->rows.p[b->rows.n - 1] : NULL;

	if (last && last->at == at) {
		last->rule = rule;
		return 0;
	}
	if (last ? last->rule == rule : !rule)
		return 0;
	return VEC_ADD(&b->rows, ((struct made_row){at, rule})) ? 0 : -ENOMEM;
}

/* The rows of a span within [lo, hi), and their end. */
static int put_span(struct building *b, uint32_t item, uint64_t lo, uint64_t hi)
{
	const struct made_span *s = b->spans.p[item];
	const struct made_row *rows = b->of.p[item]->rows.p + s->first;
	size_t i = s->n ? SEARCH((size_t)0, s->n, k, rows[k].at <= lo) : 0;
	int rc = put_row(b, lo, i ? rows[i - 1].rule : 0);

	for (; i < s->n && rows[i].at < hi && rc == 0; i++)
		rc = put_row(b, rows[i].at, rows[i].rule);
	return rc ? rc : put_row(b, hi, 0);
}

/* The part of a flat range that is within memory that can have code. */
static int put_range(struct building *b, const struct name_range *r)
{
	size_t i = SEARCH((size_t)0, b->n_within, k, b->within[k].hi <= r->lo);
	int rc = 0;

	for (; i < b->n_within && b->within[i].lo < r->hi && rc == 0; i++) {
		uint64_t lo = r->lo > b->within[i].lo ? r->lo : b->within[i].lo;
		uint64_t hi = r->hi < b->within[i].hi ? r->hi : b->within[i].hi;
		if (b->rows.n >= MAX_ROWS)
			b->is_cut = true;
		else
			rc = put_span(b, r->item, lo, hi);
	}
	return rc;
}

static int put_rows(struct building *b)
{
	int rc = 0;

	for (size_t i = 0; i < b->map.ranges.n && rc == 0; i++)
		rc = put_range(b, &b->map.ranges.p[i]);
	return rc;
}

/* ---- pages ---- */

static uint64_t page_of(uint64_t at)
{
	return at & ~(uint64_t)(PAGE - 1);
}

/* Pages up to @until in which a rule only goes on. */
static bool carry_on(struct building *b, uint64_t from, uint64_t until, size_t row, uint16_t rule)
{
	for (uint64_t at = from; rule && at < until; at += PAGE) {
		if (b->pages.n >= MAX_PAGES) {
			b->is_cut = true;
			return true;
		}
		if (!VEC_ADD(&b->pages, ((struct made_page){at, 0, rule, row, 0})))
			return false;
	}
	return true;
}

static int make_pages(struct building *b)
{
	uint64_t next = 0; /* the page after the last one */
	uint16_t rule = 0;

	for (size_t i = 0, end; i < b->rows.n; i = end) {
		uint64_t at = page_of(b->rows.p[i].at);
		for (end = i; end < b->rows.n && page_of(b->rows.p[end].at) == at;)
			end++;
		if (!carry_on(b, next, at, i, rule))
			return -ENOMEM;
		if (b->pages.n >= MAX_PAGES) {
			b->is_cut = true;
			break;
		}
		if (!VEC_ADD(&b->pages, ((struct made_page){at, 0, rule, i, end - i})))
			return -ENOMEM;
		rule = b->rows.p[end - 1].rule;
		next = at + PAGE;
	}
	return 0;
}

static bool same_rows(const struct made_row *a, const struct made_row *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (a[i].at != b[i].at || a[i].rule != b[i].rule)
			return false;
	return true;
}

/* The earlier page with the same rows; NULL: there is none. */
static const struct made_page *earlier(const struct made_code *made, const struct building *b,
				       const struct made_page *page)
{
	size_t i = SEARCH((size_t)0, made->pages.n, k, made->pages.p[k].at < page->at);
	const struct made_page *old = &made->pages.p[i];

	if (i == made->pages.n || old->at != page->at || old->n != page->n ||
	    old->before != page->before ||
	    !same_rows(made->rows.p + old->first, b->rows.p + page->first, page->n))
		return NULL;
	return old;
}

/* Those that are not there before; the ones that have no room are left out. */
static int put_pages(struct building *b, const struct made_code *made, struct walk_tables *tables)
{
	size_t to = 0;
	int rc = 0;

	for (size_t i = 0; i < b->pages.n; i++) {
		struct made_page *page = &b->pages.p[i];
		const struct made_page *old = earlier(made, b, page);
		rc = 0;
		if (old)
			page->record = old->record;
		else
			rc = tables_put_page(tables, page->at, b->rows.p + page->first, page->n,
					     page->before, &page->record);
		if (rc == -ENOMEM)
			break;
		b->is_cut |= rc < 0;
		if (rc == 0)
			b->pages.p[to++] = *page;
	}
	b->pages.n = to;
	return rc == -ENOMEM ? rc : 0;
}

static bool has_record(const struct building *b, const struct made_page *old)
{
	size_t i = SEARCH((size_t)0, b->pages.n, k, b->pages.p[k].at < old->at);

	return i < b->pages.n && b->pages.p[i].at == old->at && b->pages.p[i].record == old->record;
}

static int drop_pages(const struct made_code *made, const struct building *b,
		      struct made_change *ret)
{
	for (size_t i = 0; i < made->pages.n; i++)
		if (!has_record(b, &made->pages.p[i]) &&
		    !VEC_ADD(&ret->dropped, made->pages.p[i].record))
			return -ENOMEM;
	return 0;
}

/* ---- what holds no more ---- */

static int add_interval(struct made_change *c, uint64_t lo, uint64_t hi)
{
	struct made_interval *last = c->stale.n ? &c->stale.p[c->stale.n - 1] : NULL;

	if (last && (last->hi == lo || c->stale.n >= MAX_INTERVALS)) {
		last->lo = lo < last->lo ? lo : last->lo;
		last->hi = hi > last->hi ? hi : last->hi;
		return 0;
	}
	return VEC_ADD(&c->stale, ((struct made_interval){lo, hi})) ? 0 : -ENOMEM;
}

/* Both are functions from addresses to rules, which change at their rows. */
static int find_stale(const struct made_code *made, const struct building *b,
		      struct made_change *ret)
{
	const struct made_row *x = made->rows.p, *y = b->rows.p;
	size_t i = 0, k = 0;
	uint16_t old = 0, new = 0;
	uint64_t at = 0;
	int rc = 0;

	while (rc == 0 && (i < made->rows.n || k < b->rows.n)) {
		bool is_old = k == b->rows.n || (i < made->rows.n && x[i].at <= y[k].at);
		bool is_new = i == made->rows.n || (k < b->rows.n && y[k].at <= x[i].at);
		uint64_t next = is_old ? x[i].at : y[k].at;
		if (old && old != new &&at < next)
			rc = add_interval(ret, at, next);
		old = is_old ? x[i++].rule : old;
		new = is_new ? y[k++].rule : new;
		at = next;
	}
	return rc;
}

/* Code that was made anew where a rule was. */
static int add_touched(const struct made_code *made, struct made_change *ret)
{
	int rc = 0;

	for (size_t i = 0; i < made->touched.n && rc == 0; i++) {
		struct made_interval t = made->touched.p[i];
		size_t k = SEARCH((size_t)0, made->rows.n, r, made->rows.p[r].at <= t.lo);
		bool had_rule = k && made->rows.p[k - 1].rule;
		for (; k < made->rows.n && made->rows.p[k].at < t.hi && !had_rule; k++)
			had_rule = made->rows.p[k].rule;
		if (had_rule)
			rc = add_interval(ret, t.lo, t.hi);
	}
	return rc;
}

static void take_over(struct made_code *made, struct building *b)
{
	VEC_FREE(&made->rows);
	VEC_FREE(&made->pages);
	made->rows.p = b->rows.p;
	made->rows.n = b->rows.n;
	made->rows.cap = b->rows.cap;
	made->pages.p = b->pages.p;
	made->pages.n = b->pages.n;
	made->pages.cap = b->pages.cap;
	memset(&b->rows, 0, sizeof(b->rows));
	memset(&b->pages, 0, sizeof(b->pages));
	made->touched.n = 0;
	made->is_cut |= b->is_cut;
}

/* New pages that lead nowhere yet. */
static void give_back(const struct made_code *made, const struct building *b,
		      struct walk_tables *tables)
{
	for (size_t i = 0; i < b->pages.n; i++) {
		const struct made_page *page = &b->pages.p[i];
		size_t at = SEARCH((size_t)0, made->pages.n, k, made->pages.p[k].at < page->at);
		if (at == made->pages.n || made->pages.p[at].record != page->record)
			tables_drop_page(tables, page->record);
	}
}

int made_build(struct made_code *made, struct walk_tables *tables,
	       const struct made_interval *within, size_t n_within, struct made_change *ret)
{
	struct building b = {.within = within, .n_within = n_within};
	int rc = add_all(&b, made);

	*ret = (struct made_change){0};
	rc = rc ? rc : put_rows(&b);
	rc = rc ? rc : find_stale(made, &b, ret);
	rc = rc ? rc : add_touched(made, ret);
	rc = rc ? rc : make_pages(&b);
	if (rc == 0) {
		rc = put_pages(&b, made, tables);
		rc = rc ? rc : drop_pages(made, &b, ret);
		if (rc)
			give_back(made, &b, tables);
	}
	if (rc == 0)
		take_over(made, &b);
	made->has_replaced |= ret->stale.n > 0;
	building_fini(&b);
	return rc;
}

void made_change_fini(struct made_change *c)
{
	VEC_FREE(&c->stale);
	VEC_FREE(&c->dropped);
}
