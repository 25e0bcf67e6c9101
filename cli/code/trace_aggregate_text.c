/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of hits that were summed up, as text
 *
 * A column per key and number; with a histogram a block per row.
 */
#include "trace_aggregate_cells.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "say.h"
#include "trace_sample.h"
#include "trace_stack.h"

enum { BAR_COLUMNS = 52 };

/* ---- a table ---- */

struct grid {
	char **cells;
	size_t n_columns, n_lines;
	size_t n_left; /* columns of words, which begin at the left */
};

static size_t width_of(const struct grid *g, size_t column)
{
	size_t width = 0;

	for (size_t line = 0; line < g->n_lines; line++) {
		const char *cell = g->cells[line * g->n_columns + column];
		size_t n = cell ? strlen(cell) : 0;
		width = n > width ? n : width;
	}
	return width;
}

static void print_cell(const struct grid *g, const char *cell, size_t column, size_t width,
		       FILE *out)
{
	bool is_last = column + 1 == g->n_columns;

	fputs(column ? "  " : "", out);
	if (column >= g->n_left)
		say(out, "%*s", (int)width, cell ? cell : "");
	else if (is_last)
		say(out, "%s", cell ? cell : "");
	else
		say(out, "%-*s", (int)width, cell ? cell : "");
}

static void print_grid(const struct grid *g, FILE *out)
{
	size_t widths[64];

	for (size_t i = 0; i < g->n_columns; i++)
		widths[i] = width_of(g, i);
	for (size_t line = 0; line < g->n_lines; line++) {
		for (size_t i = 0; i < g->n_columns; i++)
			print_cell(g, g->cells[line * g->n_columns + i], i, widths[i], out);
		fputc('\n', out);
	}
}

static int show_grid(const struct session *session, const struct cairn_aggregates *table,
		     size_t shown, size_t n_keyed)
{
	size_t n_lines = 1 + shown + table->n_rows - n_keyed;
	struct grid g = {.n_lines = n_lines};

	g.n_left = aggregate_n_words(session);
	g.n_columns = g.n_left + aggregate_n_columns(session);
	g.cells = calloc(n_lines * g.n_columns, sizeof(*g.cells));
	if (!g.cells)
		return -ENOMEM;
	aggregate_fill_line(session, NULL, g.cells);
	for (size_t line = 1; line < n_lines; line++) {
		size_t i = line <= shown ? line - 1 : n_keyed + line - 1 - shown;
		aggregate_fill_line(session, &table->rows[i], g.cells + line * g.n_columns);
	}
	print_grid(&g, session->out);
	for (size_t i = 0; i < n_lines * g.n_columns; i++)
		free(g.cells[i]);
	free(g.cells);
	return 0;
}

/* ---- histograms ---- */

static void show_bucket(const char *label, uint64_t count, uint64_t most, FILE *out)
{
	char bar[BAR_COLUMNS + 1];
	unsigned int n = most ? (unsigned int)((unsigned __int128)count * BAR_COLUMNS / most) : 0;

	memset(bar, '@', n);
	bar[n] = 0;
	say(out, "%-20s %10" PRIu64 " |%-*s|\n", label, count, BAR_COLUMNS, bar);
}

static void show_histogram(enum cairn_aggregate_kind kind, const struct cairn_aggregate_value *v,
			   FILE *out)
{
	uint64_t most = 0;
	char label[AGGREGATE_LABEL_MAX];

	for (uint32_t i = 0; i < v->n_buckets; i++)
		most = v->buckets[i].count > most ? v->buckets[i].count : most;
	for (uint32_t i = 0; i < v->n_buckets; i++) {
		aggregate_bucket_label(kind, &v->buckets[i], label, sizeof(label));
		show_bucket(label, v->buckets[i].count, most, out);
	}
}

/* "tid 12, name "x": count 5, avg(n) 2.5" */
static void show_heading(const struct session *session, const struct cairn_aggregate_row *row)
{
	uint32_t n_keys = row->is_others ? 1 : cairn_trace_n_keys(session->trace);
	const char *separator = "";

	if (aggregate_has_names(session)) {
		char *name = aggregate_cell_of_name(session, row);
		say(session->out, "%s", name ? name : "");
		separator = ", ";
		free(name);
	}
	for (uint32_t i = 0; i < n_keys; i++) {
		if (!row->is_others && trace_stack_has_lines(session, i))
			continue;
		char *cell = aggregate_cell_of_key(session, row, i);
		say(session->out, "%s%s%s%s", separator,
		    row->is_others ? "" : cairn_trace_key_text(session->trace, i),
		    row->is_others ? "" : " ", cell ? cell : "");
		separator = ", ";
		free(cell);
	}
	say(session->out, "%scount %" PRIu64, *separator ? ": " : "", row->hits);
}

/* Its lines, under the heading. */
static void show_stack(const struct session *session, const struct cairn_aggregate_row *row)
{
	uint32_t n_keys = row->is_others ? 0 : cairn_trace_n_keys(session->trace);

	for (uint32_t i = 0; i < n_keys; i++)
		if (trace_stack_has_lines(session, i))
			trace_stack_put_key(session, row, i, false, session->out);
}

/* ", avg(n) 2.5" */
static void show_in_heading(const struct session *session, const struct cairn_aggregate_row *row,
			    size_t i)
{
	char *titles[AGGREGATE_N_QUANTILES] = {0}, *cells[AGGREGATE_N_QUANTILES] = {0};
	size_t n = aggregate_fill_item(session, NULL, i, titles);

	aggregate_fill_item(session, row, i, cells);
	for (size_t k = 0; k < n; k++) {
		say(session->out, ", %s %s", titles[k] ? titles[k] : "", cells[k] ? cells[k] : "");
		free(titles[k]);
		free(cells[k]);
	}
}

static void show_block(const struct session *session, const struct cairn_aggregate_row *row)
{
	const struct aggregate_session *a = session->aggregates;

	show_heading(session, row);
	for (size_t i = 0; i < a->n_items; i++) {
		if (aggregate_is_histogram(a->items[i].kind) ||
		    a->items[i].kind == CAIRN_AGGREGATE_COUNT)
			continue;
		show_in_heading(session, row, i);
	}
	fputc('\n', session->out);
	show_stack(session, row);
	for (size_t i = 0; i < a->n_items; i++) {
		if (!aggregate_is_histogram(a->items[i].kind))
			continue;
		char *title = aggregate_title_of(session, i);
		say(session->out, "%s:\n", title ? title : "");
		free(title);
		show_histogram(a->items[i].kind, &row->values[i], session->out);
	}
}

static void show_blocks(const struct session *session, const struct cairn_aggregates *table,
			size_t shown, size_t n_keyed)
{
	for (size_t i = 0; i < table->n_rows; i++) {
		if (i >= shown && i < n_keyed)
			continue;
		fputs(i ? "\n" : "", session->out);
		show_block(session, &table->rows[i]);
	}
}

int aggregate_show_text(const struct session *session, const struct cairn_aggregates *table)
{
	struct aggregate_session *a = session->aggregates;
	size_t n = aggregate_n_with_keys(table), shown = a->top && a->top < n ? a->top : n;
	char share[80];
	int r = 0;

	if (a->is_refreshed)
		fprintf(session->out, "\033[H\033[J%.1f s, %s\n",
			(double)(table->to_ns - a->begin_ns) / 1e9,
			cairn_counted(table->hits, "hit").text);
	if (session->sample > 1 && table->n_rows) {
		trace_sample_text(session, share, sizeof(share));
		say(session->out, "of %s:\n", share);
	}
	if (a->has_histogram || a->has_lines)
		show_blocks(session, table, shown, n);
	else if (table->n_rows)
		r = show_grid(session, table, shown, n);
	if (shown < n)
		say(session->out, "and %s more\n", cairn_counted(n - shown, "row").text);
	return r;
}
