/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of hits that were summed up
 *
 * Text: a column per key and number; with a histogram a block per row. JSON: an object per table.
 */
#include "trace_aggregate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cairn/text.h>

#include "demangled.h"
#include "json.h"
#include "say.h"
#include "trace_profile.h"
#include "trace_sample.h"
#include "trace_stack.h"

enum {
	ITEMS_MAX = 8,
	BAR_COLUMNS = 52,
	NUMBER_MAX = 80,
	/* Lines of a terminal that are no rows. */
	OTHER_LINES = 5,
};

struct aggregate_session {
	struct cairn_aggregate items[ITEMS_MAX];
	size_t n_items;
	unsigned long top;
	unsigned long max_keys;
	bool is_refreshed, has_histogram, has_by;
	bool has_lines; /* $stack is a key */
	uint64_t n_tables, begin_ns;
	/* What the summary says: of all intervals when the trace clears, else of the last table. */
	bool clears;
	uint64_t n_others, n_unreadable;
};

static const char *const kind_words[] = {
	[CAIRN_AGGREGATE_COUNT] = "count", [CAIRN_AGGREGATE_SUM] = "sum",
	[CAIRN_AGGREGATE_AVG] = "avg",     [CAIRN_AGGREGATE_MIN] = "min",
	[CAIRN_AGGREGATE_MAX] = "max",     [CAIRN_AGGREGATE_HIST] = "hist",
	[CAIRN_AGGREGATE_LHIST] = "lhist", [CAIRN_AGGREGATE_QUANTILES] = "quantiles",
};

/* Of CAIRN_AGGREGATE_QUANTILES: the titles of its columns. */
static const char *const quantile_words[] = {
	[CAIRN_P50] = "p50",     [CAIRN_P90] = "p90",         [CAIRN_P99] = "p99",
	[CAIRN_P99_9] = "p99.9", [CAIRN_N_QUANTILES] = "max",
};

#define N_QUANTILE_WORDS (sizeof(quantile_words) / sizeof(quantile_words[0]))

/* ---- the options ---- */

static bool has_items(const struct aggregate_values *v)
{
	return v->count || v->sum.n || v->avg.n || v->min.n || v->max.n || v->hist.n ||
	       v->lhist.n || v->quantiles.n;
}

bool aggregate_is_wanted(const struct aggregate_values *v)
{
	return has_items(v) || v->by;
}

static bool is_histogram(enum cairn_aggregate_kind kind)
{
	return kind == CAIRN_AGGREGATE_HIST || kind == CAIRN_AGGREGATE_LHIST;
}

/* False when there is no room for them. */
static bool add_items(struct aggregate_session *a, enum cairn_aggregate_kind kind,
		      const struct opt_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (a->n_items == ITEMS_MAX)
			return false;
		a->items[a->n_items++] =
			(struct cairn_aggregate){.kind = kind, .text = list->items[i]};
		a->has_histogram |= is_histogram(kind);
	}
	return true;
}

static bool add_all_items(struct aggregate_session *a, const struct aggregate_values *v)
{
	if (v->count || !has_items(v))
		a->items[a->n_items++].kind = CAIRN_AGGREGATE_COUNT;
	return add_items(a, CAIRN_AGGREGATE_SUM, &v->sum) &&
	       add_items(a, CAIRN_AGGREGATE_AVG, &v->avg) &&
	       add_items(a, CAIRN_AGGREGATE_MIN, &v->min) &&
	       add_items(a, CAIRN_AGGREGATE_MAX, &v->max) &&
	       add_items(a, CAIRN_AGGREGATE_HIST, &v->hist) &&
	       add_items(a, CAIRN_AGGREGATE_LHIST, &v->lhist) &&
	       add_items(a, CAIRN_AGGREGATE_QUANTILES, &v->quantiles);
}

static int check_options(const struct aggregate_values *v, const struct session *session)
{
	if (v->clear && !v->every)
		return fail(STATUS_USAGE, "--clear begins anew after each --every TIME; give one");
	if (session->max_events)
		return fail(STATUS_USAGE, "hits that are summed up make no events, so that -n has "
					  "nothing to count; --duration TIME ends the trace");
	return STATUS_YES;
}

/* A table that is refreshed shows what fits, unless --top says otherwise. */
static unsigned long rows_of_terminal(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) || size.ws_row <= 2 * OTHER_LINES)
		return 0;
	return size.ws_row - OTHER_LINES;
}

static void choose_output(const struct aggregate_values *v, struct session *session)
{
	struct aggregate_session *a = session->aggregates;
	bool is_terminal = session->out == stdout && isatty(STDOUT_FILENO);

	if (!v->every)
		return;
	session->json |= !is_terminal;
	a->is_refreshed = is_terminal && !session->json;
	if (a->is_refreshed && !a->top && !a->has_histogram)
		a->top = rows_of_terminal();
}

int aggregate_open(const struct aggregate_values *v, struct session *session)
{
	struct aggregate_session *a = calloc(1, sizeof(*a));
	struct cairn_err err = {0};
	int status = check_options(v, session);

	if (!a)
		return fail(STATUS_NOT_HERE, "no memory");
	session->aggregates = a;
	a->top = v->top;
	a->max_keys = v->quantiles.n ? 2048 : 8192;
	if (v->max_keys)
		a->max_keys = v->max_keys;
	a->clears = v->clear;
	a->has_by = v->by;
	if (status)
		return status;
	if (!add_all_items(a, v))
		return fail(STATUS_USAGE, "at most %d of --count, --sum and so on in one trace",
			    ITEMS_MAX);
	choose_output(v, session);
	const struct cairn_aggregate_opts opts = {
		.size = sizeof(opts),
		.items = a->items,
		.n_items = a->n_items,
		.by = v->by,
		.max_keys = a->max_keys > UINT32_MAX ? UINT32_MAX : (uint32_t)a->max_keys,
		.clears = v->clear,
	};
	int r = cairn_trace_aggregate(session->trace, &opts, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		a->has_lines |= trace_stack_has_lines(session, i);
	return trace_stack_is_key(session) ? trace_stack_name(session) : STATUS_YES;
}

void aggregate_close(struct session *session)
{
	free(session->aggregates);
	session->aggregates = NULL;
}

/* ---- numbers ---- */

/* "512.250": the rounded quotient of two sizes. */
static void quotient_text(unsigned __int128 sum, uint64_t n, bool is_negative, uint64_t scale,
			  char *buf, size_t size)
{
	unsigned __int128 quotient = sum / n;
	uint64_t rest = (uint64_t)((sum % n * scale + n / 2) / n);
	char whole[NUMBER_MAX], text[2 * NUMBER_MAX];

	quotient += rest / scale;
	rest %= scale;
	const struct cairn_number number = {.is_negative = is_negative && (quotient || rest),
					    .high = (uint64_t)(quotient >> 64),
					    .low = (uint64_t)quotient};
	cairn_number_text(&number, whole, sizeof(whole));
	rest = rest * (1000000 / scale) % 1000000;
	snprintf(text, sizeof(text), "%s.%06u", whole, (unsigned int)rest);
	snprintf(buf, size, "%.70s", text);
}

/* Zeroes at the end are left out. */
static void average_text(const struct cairn_aggregate_value *v, uint64_t scale, char *buf,
			 size_t size)
{
	unsigned __int128 sum = (unsigned __int128)v->number.high << 64 | v->number.low;

	quotient_text(sum, v->n, v->number.is_negative, scale, buf, size);
	size_t n = strlen(buf);
	while (n && buf[n - 1] == '0')
		n--;
	buf[n && buf[n - 1] == '.' ? n - 1 : n] = 0;
}

static void value_text(enum cairn_aggregate_kind kind, const struct cairn_aggregate_value *v,
		       uint64_t scale, const char *unknown, char *buf, size_t size)
{
	if (!v->is_known)
		snprintf(buf, size, "%s", unknown);
	else if (kind == CAIRN_AGGREGATE_COUNT)
		snprintf(buf, size, "%" PRIu64, v->n);
	else if (kind == CAIRN_AGGREGATE_AVG)
		average_text(v, scale, buf, size);
	else
		cairn_number_text(&v->number, buf, size);
}

static void put_key(const struct session *session, const struct cairn_aggregate_row *row,
		    uint32_t i, enum cairn_value_style style, FILE *out)
{
	if (!session->names ||
	    !trace_stack_put_key(session, row, i, style == CAIRN_VALUE_JSON, out))
		cairn_aggregate_key_print(session->trace, row, i, style, out);
}

/* ---- JSON ---- */

static void put_number(struct json *j, const char *key, const struct cairn_number *n)
{
	char text[NUMBER_MAX];

	cairn_number_text(n, text, sizeof(text));
	json_key(j, key);
	fputs(text, j->out);
}

static void put_bucket(struct json *j, const struct cairn_aggregate_bucket *b)
{
	json_open(j, NULL, '{');
	if (b->is_below)
		json_null(j, "min");
	else
		put_number(j, "min", &b->from);
	if (b->is_above)
		json_null(j, "max");
	else
		put_number(j, "max", &b->to);
	json_uint(j, "count", b->count);
	json_close(j);
}

static const struct cairn_number *quantile_of(const struct cairn_aggregate_value *v, size_t i)
{
	return i < CAIRN_N_QUANTILES ? &v->quantiles[i] : &v->number;
}

static void put_quantiles(struct json *j, const char *key, const struct cairn_aggregate_value *v)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < N_QUANTILE_WORDS; i++) {
		if (v->is_known)
			put_number(j, quantile_words[i], quantile_of(v, i));
		else
			json_null(j, quantile_words[i]);
	}
	json_close(j);
}

static void put_value(struct json *j, const char *key, enum cairn_aggregate_kind kind,
		      const struct cairn_aggregate_value *v)
{
	char text[NUMBER_MAX];

	if (kind == CAIRN_AGGREGATE_QUANTILES) {
		put_quantiles(j, key, v);
		return;
	}
	if (!is_histogram(kind)) {
		value_text(kind, v, 1000000, "null", text, sizeof(text));
		json_key(j, key);
		fputs(text, j->out);
		return;
	}
	json_open(j, key, '[');
	for (uint32_t i = 0; i < v->n_buckets; i++)
		put_bucket(j, &v->buckets[i]);
	json_close(j);
}

/* One object per kind; its keys are the expressions. */
static void put_values(const struct session *session, struct json *j,
		       const struct cairn_aggregate_row *row)
{
	const struct aggregate_session *a = session->aggregates;

	for (size_t i = 0; i < a->n_items; i++) {
		enum cairn_aggregate_kind kind = a->items[i].kind;
		if (kind == CAIRN_AGGREGATE_COUNT)
			continue;
		if (!i || a->items[i - 1].kind != kind)
			json_open(j, kind_words[kind], '{');
		put_value(j, cairn_trace_aggregate_text(session->trace, (uint32_t)i), kind,
			  &row->values[i]);
		if (i + 1 == a->n_items || a->items[i + 1].kind != kind)
			json_close(j);
	}
}

static bool is_first_of_its_number(const struct session *session, uint32_t i)
{
	const char *text = cairn_trace_aggregate_text(session->trace, i);

	for (uint32_t k = 0; k < i; k++) {
		const char *other = cairn_trace_aggregate_text(session->trace, k);
		if (text && other && !strcmp(text, other))
			return false;
	}
	return text;
}

static uint64_t unreadable_in(const struct session *session, const struct cairn_aggregate_row *row)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->aggregates->n_items; i++)
		if (is_first_of_its_number(session, i))
			n += row->values[i].unreadable;
	return n;
}

static void put_unreadable(const struct session *session, struct json *j,
			   const struct cairn_aggregate_row *row)
{
	if (!unreadable_in(session, row))
		return;
	json_open(j, "unreadable", '{');
	for (uint32_t i = 0; i < session->aggregates->n_items; i++)
		if (is_first_of_its_number(session, i) && row->values[i].unreadable)
			json_uint(j, cairn_trace_aggregate_text(session->trace, i),
				  row->values[i].unreadable);
	json_close(j);
}

static void put_cut_keys(const struct session *session, struct json *j,
			 const struct cairn_aggregate_row *row)
{
	bool any = false;

	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++) {
		if (!cairn_aggregate_key_is_cut(session->trace, row, i))
			continue;
		if (!any)
			json_open(j, "truncated", '[');
		any = true;
		json_text(j, NULL, cairn_trace_key_text(session->trace, i));
	}
	if (any)
		json_close(j);
}

static void put_row(const struct session *session, struct json *j,
		    const struct cairn_aggregate_row *row)
{
	json_open(j, NULL, '{');
	json_text(j, "function", row->probe->function->name);
	if (row->key) {
		json_open(j, "by", '{');
		for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++) {
			json_key(j, cairn_trace_key_text(session->trace, i));
			put_key(session, row, i, CAIRN_VALUE_JSON, j->out);
		}
		json_close(j);
		put_cut_keys(session, j, row);
	}
	json_uint(j, "count", row->hits);
	put_values(session, j, row);
	put_unreadable(session, j, row);
	json_close(j);
}

static size_t n_with_keys(const struct cairn_aggregates *table)
{
	size_t n = 0;

	while (n < table->n_rows && !table->rows[n].is_others)
		n++;
	return n;
}

static int show_json(const struct session *session, const struct cairn_aggregates *table)
{
	const struct aggregate_session *a = session->aggregates;
	size_t n = n_with_keys(table), shown = a->top && a->top < n ? a->top : n;
	struct json j = {.out = session->out};

	json_open(&j, NULL, '{');
	json_uint(&j, "interval", a->n_tables);
	json_uint(&j, "from_ns", table->from_ns);
	json_uint(&j, "to_ns", table->to_ns);
	json_uint(&j, "count", table->hits);
	trace_sample_put(&j, session);
	json_open(&j, "rows", '[');
	for (size_t i = 0; i < shown; i++)
		put_row(session, &j, &table->rows[i]);
	json_close(&j);
	json_uint(&j, "more_rows", n - shown);
	json_open(&j, "others", '[');
	for (size_t i = n; i < table->n_rows; i++)
		put_row(session, &j, &table->rows[i]);
	json_close(&j);
	json_close(&j);
	return 0;
}

/* ---- text: a table ---- */

struct grid {
	char **cells;
	size_t n_columns, n_lines;
	size_t n_left; /* columns of words, which begin at the left */
};

/* A cell's text by @put; NULL when out of memory. */
static char *cell_of_key(const struct session *session, const struct cairn_aggregate_row *row,
			 uint32_t i)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	if (row->key)
		put_key(session, row, i, CAIRN_VALUE_TEXT, out);
	else if (!i)
		fputs("(others)", out);
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static size_t name_of(const struct cairn_trace_probe *probe, char *buf, size_t size)
{
	return shown_name(probe->function->linkage_name, probe->function->name, buf, size);
}

/* True for instances of a generic function of Rust, whose symbols do not have their types. */
static bool is_name_of_another(const struct session *session, const struct cairn_trace_probe *probe,
			       const char *name)
{
	char other[512];

	for (uint32_t i = 0; i < cairn_trace_n_probes(session->trace); i++) {
		const struct cairn_trace_probe *p = cairn_trace_probe(session->trace, i);
		name_of(p, other, sizeof(other));
		if (p != probe && !strcmp(other, name))
			return true;
	}
	return false;
}

static char *cell_of_name(const struct session *session, const struct cairn_aggregate_row *row)
{
	char name[512];

	name_of(row->probe, name, sizeof(name));
	return strdup(is_name_of_another(session, row->probe, name) ? row->probe->function->name
								    : name);
}

static char *cell_of_quantile(const struct session *session, const struct cairn_aggregate_row *row,
			      size_t i, size_t quantile)
{
	const struct cairn_aggregate_value *v = &row->values[i];
	char text[NUMBER_MAX] = "-";

	if (v->is_known)
		cairn_number_text(quantile_of(v, quantile), text, sizeof(text));
	return strdup(text);
}

/* "p50(n)" */
static char *title_of_quantile(const struct session *session, size_t i, size_t quantile)
{
	const char *text = cairn_trace_aggregate_text(session->trace, (uint32_t)i);
	char title[256];

	snprintf(title, sizeof(title), "%s(%s)", quantile_words[quantile], text);
	return strdup(title);
}

static char *cell_of_value(const struct session *session, const struct cairn_aggregate_row *row,
			   size_t i)
{
	char text[NUMBER_MAX];

	value_text(session->aggregates->items[i].kind, &row->values[i], 1000, "-", text,
		   sizeof(text));
	return strdup(text);
}

static char *title_of(const struct session *session, size_t i)
{
	const char *text = cairn_trace_aggregate_text(session->trace, (uint32_t)i);
	const char *word = kind_words[session->aggregates->items[i].kind];
	char title[256];

	snprintf(title, sizeof(title), text ? "%s(%s)" : "%s", word, text);
	return strdup(title);
}

static bool has_names(const struct session *session)
{
	return cairn_trace_n_probes(session->trace) > 1;
}

/* The cells of one aggregate. Returns their number. */
static size_t fill_item(const struct session *session, const struct cairn_aggregate_row *row,
			size_t i, char **cells)
{
	enum cairn_aggregate_kind kind = session->aggregates->items[i].kind;

	if (is_histogram(kind))
		return 0;
	if (kind != CAIRN_AGGREGATE_QUANTILES) {
		cells[0] = row ? cell_of_value(session, row, i) : title_of(session, i);
		return 1;
	}
	for (size_t k = 0; k < N_QUANTILE_WORDS; k++)
		cells[k] = row ? cell_of_quantile(session, row, i, k)
			       : title_of_quantile(session, i, k);
	return N_QUANTILE_WORDS;
}

/* Fills one line: of titles when there is no row. */
static void fill_line(const struct session *session, const struct cairn_aggregate_row *row,
		      char **cells)
{
	size_t at = 0;

	if (has_names(session))
		cells[at++] = row ? cell_of_name(session, row) : strdup("function");
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		cells[at++] = row ? cell_of_key(session, row, i)
				  : strdup(cairn_trace_key_text(session->trace, i));
	for (size_t i = 0; i < session->aggregates->n_items; i++)
		at += fill_item(session, row, i, cells + at);
}

static size_t n_columns_of(const struct session *session)
{
	size_t n = 0;

	for (size_t i = 0; i < session->aggregates->n_items; i++)
		n += session->aggregates->items[i].kind == CAIRN_AGGREGATE_QUANTILES
			     ? N_QUANTILE_WORDS
			     : 1;
	return n;
}

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

	g.n_left = has_names(session) + cairn_trace_n_keys(session->trace);
	g.n_columns = g.n_left + n_columns_of(session);
	g.cells = calloc(n_lines * g.n_columns, sizeof(*g.cells));
	if (!g.cells)
		return -ENOMEM;
	fill_line(session, NULL, g.cells);
	for (size_t line = 1; line < n_lines; line++) {
		size_t i = line <= shown ? line - 1 : n_keyed + line - 1 - shown;
		fill_line(session, &table->rows[i], g.cells + line * g.n_columns);
	}
	print_grid(&g, session->out);
	for (size_t i = 0; i < n_lines * g.n_columns; i++)
		free(g.cells[i]);
	free(g.cells);
	return 0;
}

/* ---- text: histograms ---- */

/* Powers of two from 1024 on as K, M and so on. */
static void bound_text(const struct cairn_number *n, uint64_t more, char *buf, size_t size)
{
	static const char letters[] = "KMGTPE";
	uint64_t v = n->low + more;
	int power = -1;

	if (n->high || (more && !v) || v < 1024 || v & (v - 1)) {
		const struct cairn_number plain = {
			.is_negative = n->is_negative, .high = n->high + (more && !v), .low = v};
		cairn_number_text(&plain, buf, size);
		return;
	}
	for (; v >= 1024; v /= 1024)
		power++;
	snprintf(buf, size, "%s%" PRIu64 "%c", n->is_negative ? "-" : "", v, letters[power]);
}

static void hist_label(const struct cairn_aggregate_bucket *b, char *buf, size_t size)
{
	char from[NUMBER_MAX], to[NUMBER_MAX];

	if (b->from.low == b->to.low && b->from.high == b->to.high) {
		bound_text(&b->from, 0, from, sizeof(from));
		snprintf(buf, size, "[%s]", from);
		return;
	}
	bound_text(&b->from, b->from.is_negative, from, sizeof(from));
	bound_text(&b->to, !b->to.is_negative, to, sizeof(to));
	snprintf(buf, size, b->from.is_negative ? "(%s, %s]" : "[%s, %s)", from, to);
}

static void lhist_label(const struct cairn_aggregate_bucket *b, char *buf, size_t size)
{
	char from[NUMBER_MAX], to[NUMBER_MAX];

	cairn_number_text(&b->from, from, sizeof(from));
	cairn_number_text(&b->to, to, sizeof(to));
	if (b->is_below)
		snprintf(buf, size, "(..., %s]", to);
	else if (b->is_above)
		snprintf(buf, size, "[%s, ...)", from);
	else
		snprintf(buf, size, "[%s, %s]", from, to);
}

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
	char label[2 * NUMBER_MAX + 8];

	for (uint32_t i = 0; i < v->n_buckets; i++)
		most = v->buckets[i].count > most ? v->buckets[i].count : most;
	for (uint32_t i = 0; i < v->n_buckets; i++) {
		if (kind == CAIRN_AGGREGATE_HIST)
			hist_label(&v->buckets[i], label, sizeof(label));
		else
			lhist_label(&v->buckets[i], label, sizeof(label));
		show_bucket(label, v->buckets[i].count, most, out);
	}
}

/* "tid 12, name "x": count 5, avg(n) 2.5" */
static void show_heading(const struct session *session, const struct cairn_aggregate_row *row)
{
	uint32_t n_keys = row->is_others ? 1 : cairn_trace_n_keys(session->trace);
	const char *separator = "";

	if (has_names(session)) {
		char *name = cell_of_name(session, row);
		say(session->out, "%s", name ? name : "");
		separator = ", ";
		free(name);
	}
	for (uint32_t i = 0; i < n_keys; i++) {
		if (!row->is_others && trace_stack_has_lines(session, i))
			continue;
		char *cell = cell_of_key(session, row, i);
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
	char *titles[N_QUANTILE_WORDS] = {0}, *cells[N_QUANTILE_WORDS] = {0};
	size_t n = fill_item(session, NULL, i, titles);

	fill_item(session, row, i, cells);
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
		if (is_histogram(a->items[i].kind) || a->items[i].kind == CAIRN_AGGREGATE_COUNT)
			continue;
		show_in_heading(session, row, i);
	}
	fputc('\n', session->out);
	show_stack(session, row);
	for (size_t i = 0; i < a->n_items; i++) {
		if (!is_histogram(a->items[i].kind))
			continue;
		char *title = title_of(session, i);
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

/* ---- tables ---- */

static int show_text(const struct session *session, const struct cairn_aggregates *table)
{
	struct aggregate_session *a = session->aggregates;
	size_t n = n_with_keys(table), shown = a->top && a->top < n ? a->top : n;
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

/* For the summary. */
static void note(const struct session *session, const struct cairn_aggregates *table)
{
	struct aggregate_session *a = session->aggregates;

	if (!a->clears)
		a->n_others = a->n_unreadable = 0;
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct cairn_aggregate_row *row = &table->rows[i];
		a->n_others += row->is_others ? row->hits : 0;
		a->n_unreadable += unreadable_in(session, row);
	}
}

/* The number of the first one; -1: there is none. */
static int first_sum(const struct aggregate_session *a)
{
	for (size_t i = 0; i < a->n_items; i++)
		if (a->items[i].kind == CAIRN_AGGREGATE_SUM)
			return (int)i;
	return -1;
}

int aggregate_show(struct session *session, bool is_last, struct cairn_err *err)
{
	struct aggregate_session *a = session->aggregates;
	struct cairn_aggregates *table = NULL;
	int r = cairn_trace_aggregates(session->trace, &table, err);

	if (r < 0)
		return r;
	if (!a->begin_ns)
		a->begin_ns = table->from_ns;
	note(session, table);
	if (session->profile) {
		r = trace_profile_write(session, table, first_sum(a), session->profile);
		session->status = r;
		cairn_aggregates_free(table);
		return 0;
	}
	if (!is_last || !a->clears || !a->n_tables || table->n_rows) {
		a->n_tables++;
		r = session->json ? show_json(session, table) : show_text(session, table);
	}
	cairn_aggregates_free(table);
	return r;
}

void aggregate_summary(const struct session *session)
{
	const struct aggregate_session *a = session->aggregates;

	for (size_t i = 0; i < a->n_items; i++) {
		if (a->items[i].kind != CAIRN_AGGREGATE_QUANTILES)
			continue;
		say(stderr,
		    "quantiles from 32 on are within 1/32 (3.2 %%) of the exact ones; smaller "
		    "ones and the maximum are exact\n");
		break;
	}
	if (a->n_others)
		say(stderr,
		    "%s among the others: more than %lu keys; --max-keys N gives more of them "
		    "rows\n",
		    cairn_counted(a->n_others, "hit").text, a->max_keys);
	if (a->n_unreadable)
		say(stderr,
		    "%s %s not summed up: memory that could not be read, or a division by 0\n",
		    cairn_counted(a->n_unreadable, "number").text,
		    a->n_unreadable == 1 ? "was" : "were");
}
