/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace_aggregate_cells.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "demangled.h"
#include "trace_stack.h"

const char *const aggregate_kind_words[] = {
	[CAIRN_AGGREGATE_COUNT] = "count", [CAIRN_AGGREGATE_SUM] = "sum",
	[CAIRN_AGGREGATE_AVG] = "avg",     [CAIRN_AGGREGATE_MIN] = "min",
	[CAIRN_AGGREGATE_MAX] = "max",     [CAIRN_AGGREGATE_HIST] = "hist",
	[CAIRN_AGGREGATE_LHIST] = "lhist", [CAIRN_AGGREGATE_QUANTILES] = "quantiles",
};

/* The titles of the columns of CAIRN_AGGREGATE_QUANTILES. */
const char *const aggregate_quantile_words[AGGREGATE_N_QUANTILES] = {
	[CAIRN_P50] = "p50",     [CAIRN_P90] = "p90",         [CAIRN_P99] = "p99",
	[CAIRN_P99_9] = "p99.9", [CAIRN_N_QUANTILES] = "max",
};

bool aggregate_is_histogram(enum cairn_aggregate_kind kind)
{
	return kind == CAIRN_AGGREGATE_HIST || kind == CAIRN_AGGREGATE_LHIST;
}

/* "512.250": the rounded quotient of two sizes. */
static void quotient_text(unsigned __int128 sum, uint64_t n, bool is_negative, uint64_t scale,
			  char *buf, size_t size)
{
	unsigned __int128 quotient = sum / n;
	uint64_t rest = (uint64_t)((sum % n * scale + n / 2) / n);
	char whole[AGGREGATE_NUMBER_MAX], text[2 * AGGREGATE_NUMBER_MAX];

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

void aggregate_value_text(enum cairn_aggregate_kind kind, const struct cairn_aggregate_value *v,
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

void aggregate_put_key(const struct session *session, const struct cairn_aggregate_row *row,
		       uint32_t i, enum cairn_value_style style, FILE *out)
{
	if (!session->names ||
	    !trace_stack_put_key(session, row, i, style == CAIRN_VALUE_JSON, out))
		cairn_aggregate_key_print(session->trace, row, i, style, out);
}

const struct cairn_number *aggregate_quantile(const struct cairn_aggregate_value *v, size_t i)
{
	return i < CAIRN_N_QUANTILES ? &v->quantiles[i] : &v->number;
}

bool aggregate_is_first_of_its_number(const struct session *session, uint32_t i)
{
	const char *text = cairn_trace_aggregate_text(session->trace, i);

	for (uint32_t k = 0; k < i; k++) {
		const char *other = cairn_trace_aggregate_text(session->trace, k);
		if (text && other && !strcmp(text, other))
			return false;
	}
	return text;
}

uint64_t aggregate_unreadable_in(const struct session *session,
				 const struct cairn_aggregate_row *row)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < session->aggregates->n_items; i++)
		if (aggregate_is_first_of_its_number(session, i))
			n += row->values[i].unreadable;
	return n;
}

size_t aggregate_n_with_keys(const struct cairn_aggregates *table)
{
	size_t n = 0;

	while (n < table->n_rows && !table->rows[n].is_others)
		n++;
	return n;
}

/* A cell's text by @put; NULL when out of memory. */
char *aggregate_cell_of_key(const struct session *session, const struct cairn_aggregate_row *row,
			    uint32_t i)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return NULL;
	if (row->key)
		aggregate_put_key(session, row, i, CAIRN_VALUE_TEXT, out);
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

char *aggregate_cell_of_name(const struct session *session, const struct cairn_aggregate_row *row)
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
	char text[AGGREGATE_NUMBER_MAX] = "-";

	if (v->is_known)
		cairn_number_text(aggregate_quantile(v, quantile), text, sizeof(text));
	return strdup(text);
}

/* "p50(n)" */
static char *title_of_quantile(const struct session *session, size_t i, size_t quantile)
{
	const char *text = cairn_trace_aggregate_text(session->trace, (uint32_t)i);
	char title[256];

	snprintf(title, sizeof(title), "%s(%s)", aggregate_quantile_words[quantile], text);
	return strdup(title);
}

static char *cell_of_value(const struct session *session, const struct cairn_aggregate_row *row,
			   size_t i)
{
	char text[AGGREGATE_NUMBER_MAX];

	aggregate_value_text(session->aggregates->items[i].kind, &row->values[i], 1000, "-", text,
			     sizeof(text));
	return strdup(text);
}

char *aggregate_title_of(const struct session *session, size_t i)
{
	const char *text = cairn_trace_aggregate_text(session->trace, (uint32_t)i);
	const char *word = aggregate_kind_words[session->aggregates->items[i].kind];
	char title[256];

	snprintf(title, sizeof(title), text ? "%s(%s)" : "%s", word, text);
	return strdup(title);
}

bool aggregate_has_names(const struct session *session)
{
	return cairn_trace_n_probes(session->trace) > 1;
}

/* The cells of one aggregate. Returns their number. */
size_t aggregate_fill_item(const struct session *session, const struct cairn_aggregate_row *row,
			   size_t i, char **cells)
{
	enum cairn_aggregate_kind kind = session->aggregates->items[i].kind;

	if (aggregate_is_histogram(kind))
		return 0;
	if (kind != CAIRN_AGGREGATE_QUANTILES) {
		cells[0] = row ? cell_of_value(session, row, i) : aggregate_title_of(session, i);
		return 1;
	}
	for (size_t k = 0; k < AGGREGATE_N_QUANTILES; k++)
		cells[k] = row ? cell_of_quantile(session, row, i, k)
			       : title_of_quantile(session, i, k);
	return AGGREGATE_N_QUANTILES;
}

/* Fills one line: of titles when there is no row. */
size_t aggregate_fill_line(const struct session *session, const struct cairn_aggregate_row *row,
			   char **cells)
{
	size_t at = 0;

	if (aggregate_has_names(session))
		cells[at++] = row ? aggregate_cell_of_name(session, row) : strdup("function");
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		cells[at++] = row ? aggregate_cell_of_key(session, row, i)
				  : strdup(cairn_trace_key_text(session->trace, i));
	for (size_t i = 0; i < session->aggregates->n_items; i++)
		at += aggregate_fill_item(session, row, i, cells + at);
	return at;
}

size_t aggregate_n_columns(const struct session *session)
{
	size_t n = 0;

	for (size_t i = 0; i < session->aggregates->n_items; i++)
		n += session->aggregates->items[i].kind == CAIRN_AGGREGATE_QUANTILES
			     ? AGGREGATE_N_QUANTILES
			     : 1;
	return n;
}

size_t aggregate_n_words(const struct session *session)
{
	return aggregate_has_names(session) + cairn_trace_n_keys(session->trace);
}

/* ---- buckets ---- */

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
	char from[AGGREGATE_NUMBER_MAX], to[AGGREGATE_NUMBER_MAX];

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
	char from[AGGREGATE_NUMBER_MAX], to[AGGREGATE_NUMBER_MAX];

	cairn_number_text(&b->from, from, sizeof(from));
	cairn_number_text(&b->to, to, sizeof(to));
	if (b->is_below)
		snprintf(buf, size, "(..., %s]", to);
	else if (b->is_above)
		snprintf(buf, size, "[%s, ...)", from);
	else
		snprintf(buf, size, "[%s, %s]", from, to);
}

void aggregate_bucket_label(enum cairn_aggregate_kind kind, const struct cairn_aggregate_bucket *b,
			    char *buf, size_t size)
{
	if (kind == CAIRN_AGGREGATE_HIST)
		hist_label(b, buf, size);
	else
		lhist_label(b, buf, size);
}
