/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of hits that were summed up, as a page: -o NAME.html without $stack. */
#ifndef CLI_TRACE_AGGREGATE_HTML_H
#define CLI_TRACE_AGGREGATE_HTML_H

#include "cmd.h"
#include "trace.h"

struct aggregate_page;

/* NULL when out of memory. @name: borrowed. */
struct aggregate_page *aggregate_page_new(const char *name);
void aggregate_page_free(struct aggregate_page *page);

/* The hits since the last table, for the chart over time. @table: of all hits until now. */
void aggregate_page_note(struct aggregate_page *page, const struct cairn_aggregates *table);
/* The file, with the last table. An exit status: what fails is reported. */
int aggregate_page_write(const struct aggregate_page *page, const struct session *session,
			 const struct cairn_aggregates *table);

#endif
