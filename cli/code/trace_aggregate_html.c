/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of hits that were summed up, as a page
 *
 * Every figure is text in a table; a bar beside it shows its share of the largest one. The page has
 * no script, and looks at nothing outside of itself.
 */
#include "trace_aggregate_html.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>
#include <cairn/text.h>

#include "trace_aggregate_cells.h"
#include "trace_sample.h"

/* More are joined by twos: a chart has no more room for them. */
enum { INTERVALS_MAX = 240 };

struct interval {
	uint64_t from_ns, to_ns, hits;
};

struct aggregate_page {
	const char *name;
	struct interval intervals[INTERVALS_MAX];
	size_t n_intervals;
	uint64_t hits_before, began_ns, ended_ns;
};

/* All that a page is written from. */
struct writing {
	FILE *out;
	const struct session *session;
	const struct cairn_aggregates *table;
	const struct aggregate_page *page;
	size_t n_shown, n_keyed;
	char **titles; /* of the columns */
	size_t n_titles;
	bool has_no_memory;
};

static const char style[] =
	":root{color-scheme:light dark;--page:#f7f6f2;--card:#fff;--ink:#1d2226;--faint:#5b656d;"
	"--rule:#dcd9d0;--bar:#2a78b0}\n"
	"@media(prefers-color-scheme:dark){:root{--page:#14181b;--card:#1d2327;--ink:#eceff1;"
	"--faint:#a3adb4;--rule:#343d43;--bar:#6bb3e3}}\n"
	"*{box-sizing:border-box}\n"
	"body{margin:0;background:var(--page);color:var(--ink);font:16px/1.45 system-ui,"
	"-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;overflow-wrap:anywhere}\n"
	"header,main{max-width:76rem;margin:0 auto;padding:0 1.25rem}\n"
	"header{padding-top:1.75rem}\n"
	"h1{margin:0;font-size:1.35rem;font-weight:650}\n"
	"header p{margin:.2rem 0 0;color:var(--faint);font-size:.9rem}\n"
	"section{background:var(--card);border:1px solid var(--rule);border-radius:12px;"
	"padding:1.15rem 1.25rem 1.3rem;margin:1.25rem 0;overflow-x:auto}\n"
	"h2{margin:0 0 .7rem;font-size:1.05rem}h3{margin:1rem 0 .3rem;font-size:.95rem}\n"
	"pre{margin:.4rem 0;font:.82rem/1.4 ui-monospace,Menlo,'DejaVu Sans Mono',monospace;"
	"white-space:pre-wrap}\n"
	"table{border-collapse:collapse;width:100%;font-size:.86rem}\n"
	"th{font-weight:500;color:var(--faint);text-align:left;white-space:nowrap}\n"
	"th.long{white-space:normal;min-width:14rem}\n"
	"td,th{padding:.28rem .5rem;border-bottom:1px solid var(--rule);vertical-align:top}\n"
	"tbody tr:last-child td{border-bottom:0}\n"
	".num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\n"
	".bar{width:30%;min-width:4rem}\n"
	".bar i{display:block;height:1.1em;min-width:1px;background:var(--bar);"
	"border-radius:0 3px 3px 0}\n"
	".time{display:flex;align-items:flex-end;height:9rem;gap:1px;margin-bottom:.8rem;"
	"border-bottom:1px solid var(--rule)}\n"
	".note{margin:0 0 .5rem;color:var(--faint);font-size:.86rem}\n"
	".time i{flex:1 1 0;background:var(--bar);min-width:1px}\n"
	"@media(max-width:30rem){header,main{padding-left:.7rem;padding-right:.7rem}"
	"section{padding:.9rem .7rem 1rem}td,th{padding:.25rem .3rem}}\n"
	/* A row becomes a block of lines, each with its title. */
	"@media(max-width:40rem){.rows thead{display:none}.rows tr{display:block;padding:.5rem 0;"
	"border-bottom:1px solid var(--rule)}.rows tbody tr:last-child{border-bottom:0}"
	".rows td{display:flex;justify-content:space-between;gap:1rem;border:0;padding:.1rem .3rem;"
	"text-align:right}.rows td::before{content:attr(data-title);color:var(--faint);"
	"text-align:left;white-space:normal;flex:none;max-width:45%}.rows td:empty{display:none}"
	".rows td.bar:not(:empty){display:block;width:auto}.rows td.bar::before{content:none}}\n"
	"@media print{section{break-inside:avoid}}\n";

struct aggregate_page *aggregate_page_new(const char *name)
{
	struct aggregate_page *page = calloc(1, sizeof(*page));

	if (page)
		page->name = name;
	return page;
}

void aggregate_page_free(struct aggregate_page *page)
{
	free(page);
}

/* ---- over time ---- */

static void join_intervals(struct aggregate_page *page)
{
	for (size_t i = 0; i < page->n_intervals / 2; i++) {
		const struct interval *a = &page->intervals[2 * i], *b = a + 1;
		page->intervals[i] = (struct interval){a->from_ns, b->to_ns, a->hits + b->hits};
	}
	page->n_intervals /= 2;
}

void aggregate_page_note(struct aggregate_page *page, const struct cairn_aggregates *table)
{
	uint64_t before = page->hits_before;
	struct interval i = {page->ended_ns, table->to_ns, 0};

	if (!page->began_ns)
		page->began_ns = i.from_ns = table->from_ns;
	i.hits = table->hits > before ? table->hits - before : 0;
	page->hits_before = table->hits;
	page->ended_ns = table->to_ns;
	if (page->n_intervals == INTERVALS_MAX)
		join_intervals(page);
	page->intervals[page->n_intervals++] = i;
}

static double percent(double value, double most)
{
	return most > 0 && value > 0 ? 100 * value / most : 0;
}

static void put_bar(double value, double most, FILE *out)
{
	fputs("<td class=bar>", out);
	if (value > 0)
		fprintf(out, "<i style=\"width:%.2f%%\"></i>", percent(value, most));
	fputs("</td>", out);
}

static double seconds_of(const struct interval *i)
{
	return (double)(i->to_ns - i->from_ns) / 1e9;
}

static double rate_of(const struct interval *i)
{
	return i->to_ns > i->from_ns ? (double)i->hits / seconds_of(i) : 0;
}

/* The last interval is shorter than the others: a bar is as wide as its interval. */
static void put_chart(const struct writing *w)
{
	const struct aggregate_page *page = w->page;
	double most = 0;

	for (size_t i = 0; i < page->n_intervals; i++) {
		double rate = rate_of(&page->intervals[i]);
		most = rate > most ? rate : most;
	}
	fputs("<div class=time aria-hidden=true>", w->out);
	for (size_t i = 0; i < page->n_intervals; i++)
		fprintf(w->out, "<i style=\"flex-grow:%.6f;height:%.2f%%\"></i>",
			seconds_of(&page->intervals[i]),
			percent(rate_of(&page->intervals[i]), most));
	fputs("</div>", w->out);
}

static void put_time(const struct writing *w)
{
	const struct aggregate_page *page = w->page;

	fputs("<section><h2>Hits over time</h2><p class=note>The height of a bar is the number of "
	      "hits in a second.</p>",
	      w->out);
	put_chart(w);
	fputs("<table><thead><tr><th class=num>from, s<th class=num>to, s"
	      "<th class=num>hits</tr></thead><tbody>\n",
	      w->out);
	for (size_t i = 0; i < page->n_intervals; i++)
		fprintf(w->out,
			"<tr><td class=num>%.3f<td class=num>%.3f<td class=num>%" PRIu64 "</tr>\n",
			(double)(page->intervals[i].from_ns - page->began_ns) / 1e9,
			(double)(page->intervals[i].to_ns - page->began_ns) / 1e9,
			page->intervals[i].hits);
	fputs("</tbody></table></section>\n", w->out);
}

/* ---- rows ---- */

/* For the length of a bar only. */
static double number_of(const struct cairn_number *n)
{
	double v = (double)n->high * 18446744073709551616.0 + (double)n->low;

	return n->is_negative ? -v : v;
}

/* The first number that a row shows, which its bar is of. */
static double length_of(const struct writing *w, const struct cairn_aggregate_row *row)
{
	const struct cairn_aggregate_value *v = &row->values[0];
	enum cairn_aggregate_kind kind = w->session->aggregates->items[0].kind;

	if (kind == CAIRN_AGGREGATE_COUNT)
		return (double)row->hits;
	if (!v->is_known)
		return 0;
	if (kind == CAIRN_AGGREGATE_QUANTILES)
		return number_of(aggregate_quantile(v, 0));
	return kind == CAIRN_AGGREGATE_AVG ? number_of(&v->number) / (double)v->n
					   : number_of(&v->number);
}

static bool is_shown(const struct writing *w, size_t i)
{
	return i < w->n_shown || i >= w->n_keyed;
}

static const char *title_of(const struct writing *w, size_t i)
{
	return i < w->n_titles && w->titles[i] ? w->titles[i] : "";
}

/* @most: what a whole bar stands for; 0: there are no bars. */
static void put_titles(const struct writing *w, double most)
{
	enum { LONG = 32 };
	size_t n_words = aggregate_n_words(w->session);

	fputs("<tr>", w->out);
	for (size_t i = 0; i < w->n_titles; i++) {
		const char *word = strlen(title_of(w, i)) > LONG ? " long" : "";
		fprintf(w->out, "<th class=\"%s%s\">", i < n_words ? "key" : "num", word);
		cairn_quote_put(title_of(w, i), CAIRN_QUOTE_HTML, w->out);
	}
	if (most > 0) {
		fputs("<th class=bar>", w->out);
		cairn_quote_put(title_of(w, n_words), CAIRN_QUOTE_HTML, w->out);
	}
	fputs("</tr>\n", w->out);
}

/* A narrow page has no line of titles: each cell has its own. */
static void put_cell(const struct writing *w, size_t i, const char *text, bool is_number)
{
	fprintf(w->out, "<td%s data-title=\"", is_number ? " class=num" : "");
	cairn_quote_put(title_of(w, i), CAIRN_QUOTE_HTML, w->out);
	fputs("\">", w->out);
	cairn_quote_put(text, CAIRN_QUOTE_HTML, w->out);
}

static void put_cells(struct writing *w, const struct cairn_aggregate_row *row, double most)
{
	size_t n_words = aggregate_n_words(w->session);
	size_t n = n_words + aggregate_n_columns(w->session);
	char **cells = calloc(n, sizeof(*cells));

	w->has_no_memory |= !cells;
	if (!cells)
		return;
	n = aggregate_fill_line(w->session, row, cells);
	fputs("<tr>", w->out);
	for (size_t i = 0; i < n; i++) {
		put_cell(w, i, cells[i] ? cells[i] : "", i >= n_words);
		free(cells[i]);
	}
	free(cells);
	if (most > 0)
		put_bar(length_of(w, row), most, w->out);
	fputs("</tr>\n", w->out);
}

static void put_rows(struct writing *w)
{
	double most = 0;

	for (size_t i = 0; i < w->table->n_rows; i++) {
		double length = is_shown(w, i) ? length_of(w, &w->table->rows[i]) : 0;
		most = length > most ? length : most;
	}
	fputs("<section><table class=rows><thead>", w->out);
	put_titles(w, most);
	fputs("</thead><tbody>\n", w->out);
	for (size_t i = 0; i < w->table->n_rows; i++)
		if (is_shown(w, i))
			put_cells(w, &w->table->rows[i], most);
	fputs("</tbody></table></section>\n", w->out);
}

/* ---- histograms ---- */

static void put_histogram(const struct writing *w, const struct cairn_aggregate_row *row, size_t at)
{
	const struct cairn_aggregate_value *v = &row->values[at];
	enum cairn_aggregate_kind kind = w->session->aggregates->items[at].kind;
	char label[AGGREGATE_LABEL_MAX], *title = aggregate_title_of(w->session, at);
	uint64_t most = 0;

	for (uint32_t i = 0; i < v->n_buckets; i++)
		most = v->buckets[i].count > most ? v->buckets[i].count : most;
	fputs("<h3>", w->out);
	cairn_quote_put(title ? title : "", CAIRN_QUOTE_HTML, w->out);
	free(title);
	fputs("</h3><table><thead><tr><th>value<th class=num>hits<th></tr></thead><tbody>\n",
	      w->out);
	for (uint32_t i = 0; i < v->n_buckets; i++) {
		aggregate_bucket_label(kind, &v->buckets[i], label, sizeof(label));
		fputs("<tr><td>", w->out);
		cairn_quote_put(label, CAIRN_QUOTE_HTML, w->out);
		fprintf(w->out, "<td class=num>%" PRIu64, v->buckets[i].count);
		put_bar((double)v->buckets[i].count, (double)most, w->out);
		fputs("</tr>\n", w->out);
	}
	fputs("</tbody></table>\n", w->out);
}

/* Its hits, its other cells, and its histograms. */
static void put_block(struct writing *w, const struct cairn_aggregate_row *row)
{
	const struct aggregate_session *a = w->session->aggregates;

	fprintf(w->out, "<section><h2>%s</h2>\n<table class=rows><thead>",
		cairn_counted(row->hits, "hit").text);
	put_titles(w, 0);
	fputs("</thead><tbody>\n", w->out);
	put_cells(w, row, 0);
	fputs("</tbody></table>\n", w->out);
	for (size_t i = 0; i < a->n_items; i++)
		if (aggregate_is_histogram(a->items[i].kind))
			put_histogram(w, row, i);
	fputs("</section>\n", w->out);
}

/* ---- the page ---- */

static void put_head(const struct writing *w)
{
	struct cairn_trace_stats stats = {.size = sizeof(stats)};
	uint64_t lost = 0;
	char share[80];

	if (cairn_trace_stats(w->session->trace, &stats, NULL, NULL) >= 0)
		lost = stats.total.lost + stats.missed;
	fputs("<!doctype html>\n<html lang=en><meta charset=utf-8>"
	      "<meta name=viewport content=\"width=device-width,initial-scale=1\">"
	      "<title>cairn trace</title><style>\n",
	      w->out);
	fputs(style, w->out);
	fputs("</style>\n<header><h1>cairn trace</h1><p>", w->out);
	for (uint32_t i = 0; i < cairn_trace_n_probes(w->session->trace); i++) {
		fputs(i ? ", " : "", w->out);
		cairn_quote_put(cairn_trace_probe(w->session->trace, i)->text, CAIRN_QUOTE_HTML,
				w->out);
	}
	fprintf(w->out, "</p><p>%.3f s, %s, %" PRIu64 " lost",
		(double)(w->page->ended_ns - w->page->began_ns) / 1e9,
		cairn_counted(w->table->hits, "hit").text, lost);
	if (w->session->sample > 1) {
		trace_sample_text(w->session, share, sizeof(share));
		fprintf(w->out, ", of %s", share);
	}
	if (w->session->has_given_up)
		fputs(", the probes were removed before the end: later hits were not counted",
		      w->out);
	fputs("</p></header>\n<main>\n", w->out);
}

static void put_page(struct writing *w)
{
	put_head(w);
	if (w->page->n_intervals > 1)
		put_time(w);
	if (!w->session->aggregates->has_histogram)
		put_rows(w);
	for (size_t i = 0; i < w->table->n_rows && w->session->aggregates->has_histogram; i++)
		if (is_shown(w, i))
			put_block(w, &w->table->rows[i]);
	if (w->n_shown < w->n_keyed)
		fprintf(w->out, "<p>and %s more</p>\n",
			cairn_counted(w->n_keyed - w->n_shown, "row").text);
	fputs("</main>\n", w->out);
}

static void fill_titles(struct writing *w)
{
	size_t n = aggregate_n_words(w->session) + aggregate_n_columns(w->session);

	w->titles = calloc(n, sizeof(*w->titles));
	w->has_no_memory |= !w->titles;
	if (w->titles)
		w->n_titles = aggregate_fill_line(w->session, NULL, w->titles);
}

static void free_titles(struct writing *w)
{
	for (size_t i = 0; i < w->n_titles; i++)
		free(w->titles[i]);
	free(w->titles);
}

int aggregate_page_write(const struct aggregate_page *page, const struct session *session,
			 const struct cairn_aggregates *table)
{
	struct writing w = {.session = session, .table = table, .page = page};
	unsigned long top = session->aggregates->top;
	struct cairn_err err = {0};
	char *text = NULL;
	size_t size;
	int r;

	w.n_keyed = aggregate_n_with_keys(table);
	w.n_shown = top && top < w.n_keyed ? top : w.n_keyed;
	w.out = open_memstream(&text, &size);
	if (!w.out)
		return fail(STATUS_NOT_HERE, "no memory");
	fill_titles(&w);
	put_page(&w);
	free_titles(&w);
	w.has_no_memory |= fclose(w.out) != 0;
	r = w.has_no_memory ? -ENOMEM : cairn_file_write(page->name, text, size, &err);
	free(text);
	if (w.has_no_memory)
		return fail(STATUS_NOT_HERE, "no memory");
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}
