/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by all writers of tables: the items that were asked for, and the texts of cells
 *
 * A text that is allocated is NULL where there was no memory, and shown as nothing.
 */
#ifndef CLI_TRACE_AGGREGATE_CELLS_H
#define CLI_TRACE_AGGREGATE_CELLS_H

#include "cmd.h"
#include "trace.h"

enum {
	AGGREGATE_ITEMS_MAX = 8,
	AGGREGATE_NUMBER_MAX = 80,
	AGGREGATE_N_QUANTILES = CAIRN_N_QUANTILES + 1, /* and the maximum */
	AGGREGATE_LABEL_MAX = 2 * AGGREGATE_NUMBER_MAX + 8,
};

struct aggregate_session {
	struct cairn_aggregate items[AGGREGATE_ITEMS_MAX];
	size_t n_items;
	unsigned long top;
	unsigned long max_keys;
	bool is_refreshed, has_histogram, has_by;
	bool has_lines; /* $stack is a key */
	uint64_t n_tables, begin_ns;
	/*
	 * The number for the summary: of all intervals when the trace clears, else of the last
	 * table.
	 */
	bool clears;
	uint64_t n_others, n_unreadable;
	struct aggregate_page *page; /* NULL: none is written */
};

/* By enum cairn_aggregate_kind. */
extern const char *const aggregate_kind_words[];
/* The titles of a quantile's columns. */
extern const char *const aggregate_quantile_words[AGGREGATE_N_QUANTILES];

bool aggregate_is_histogram(enum cairn_aggregate_kind kind);

/* @unknown  for a number of no hit. @scale: an average is rounded to 1/@scale. */
void aggregate_value_text(enum cairn_aggregate_kind kind, const struct cairn_aggregate_value *v,
			  uint64_t scale, const char *unknown, char *buf, size_t size);
const struct cairn_number *aggregate_quantile(const struct cairn_aggregate_value *v, size_t i);
/* The interval of a bucket, such as "[4, 8)". @size: AGGREGATE_LABEL_MAX. */
void aggregate_bucket_label(enum cairn_aggregate_kind kind, const struct cairn_aggregate_bucket *b,
			    char *buf, size_t size);

void aggregate_put_key(const struct session *session, const struct cairn_aggregate_row *row,
		       uint32_t i, enum cairn_value_style style, FILE *out);
bool aggregate_is_first_of_its_number(const struct session *session, uint32_t i);
uint64_t aggregate_unreadable_in(const struct session *session,
				 const struct cairn_aggregate_row *row);
/* Rows before those of "others". */
size_t aggregate_n_with_keys(const struct cairn_aggregates *table);

/* Whether each row has the name of its function: there are several. */
bool aggregate_has_names(const struct session *session);
char *aggregate_cell_of_key(const struct session *session, const struct cairn_aggregate_row *row,
			    uint32_t i);
char *aggregate_cell_of_name(const struct session *session, const struct cairn_aggregate_row *row);
/* "avg(n)" */
char *aggregate_title_of(const struct session *session, size_t i);
/* The cells of one aggregate, or its titles when @row is NULL. Returns their number. */
size_t aggregate_fill_item(const struct session *session, const struct cairn_aggregate_row *row,
			   size_t i, char **cells);
/*
 * All cells of a row; of titles when @row is NULL: names, keys, then numbers. Returns how many of
 * aggregate_n_words() and aggregate_n_columns() there are: histograms have none.
 */
size_t aggregate_fill_line(const struct session *session, const struct cairn_aggregate_row *row,
			   char **cells);
/* Columns of words, and of numbers. */
size_t aggregate_n_words(const struct session *session);
size_t aggregate_n_columns(const struct session *session);

/* The table, each in its own form; 0 or -ENOMEM. */
int aggregate_show_json(const struct session *session, const struct cairn_aggregates *table);
int aggregate_show_text(const struct session *session, const struct cairn_aggregates *table);

#endif
