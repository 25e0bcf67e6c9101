/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of hits that were summed up: an object for each table. */
#include "trace_aggregate_cells.h"

#include "json.h"
#include "trace_sample.h"

static void put_number(struct json *j, const char *key, const struct cairn_number *n)
{
	char text[AGGREGATE_NUMBER_MAX];

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

static void put_quantiles(struct json *j, const char *key, const struct cairn_aggregate_value *v)
{
	json_open(j, key, '{');
	for (size_t i = 0; i < AGGREGATE_N_QUANTILES; i++) {
		if (v->is_known)
			put_number(j, aggregate_quantile_words[i], aggregate_quantile(v, i));
		else
			json_null(j, aggregate_quantile_words[i]);
	}
	json_close(j);
}

static void put_value(struct json *j, const char *key, enum cairn_aggregate_kind kind,
		      const struct cairn_aggregate_value *v)
{
	char text[AGGREGATE_NUMBER_MAX];

	if (kind == CAIRN_AGGREGATE_QUANTILES) {
		put_quantiles(j, key, v);
		return;
	}
	if (!aggregate_is_histogram(kind)) {
		aggregate_value_text(kind, v, 1000000, "null", text, sizeof(text));
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
			json_open(j, aggregate_kind_words[kind], '{');
		put_value(j, cairn_trace_aggregate_text(session->trace, (uint32_t)i), kind,
			  &row->values[i]);
		if (i + 1 == a->n_items || a->items[i + 1].kind != kind)
			json_close(j);
	}
}

static void put_unreadable(const struct session *session, struct json *j,
			   const struct cairn_aggregate_row *row)
{
	if (!aggregate_unreadable_in(session, row))
		return;
	json_open(j, "unreadable", '{');
	for (uint32_t i = 0; i < session->aggregates->n_items; i++)
		if (aggregate_is_first_of_its_number(session, i) && row->values[i].unreadable)
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
			aggregate_put_key(session, row, i, CAIRN_VALUE_JSON, j->out);
		}
		json_close(j);
		put_cut_keys(session, j, row);
	}
	json_uint(j, "count", row->hits);
	put_values(session, j, row);
	put_unreadable(session, j, row);
	json_close(j);
}

int aggregate_show_json(const struct session *session, const struct cairn_aggregates *table)
{
	const struct aggregate_session *a = session->aggregates;
	size_t n = aggregate_n_with_keys(table), shown = a->top && a->top < n ? a->top : n;
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
