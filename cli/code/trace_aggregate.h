/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of `cairn trace --count` and the like. */
#ifndef CLI_TRACE_AGGREGATE_H
#define CLI_TRACE_AGGREGATE_H

#include "cmd.h"
#include "trace.h"

struct aggregate_values {
	bool count, clear;
	struct opt_list sum, avg, min, max, hist, lhist, quantiles;
	const char *by;
	unsigned long top, max_keys;
	double every;
};

#define AGGREGATE_OPTS(at)                                                                         \
	{0,                                                                                        \
	 "count",                                                                                  \
	 OPT_FLAG,                                                                                 \
	 NULL,                                                                                     \
	 (at) + offsetof(struct aggregate_values, count),                                          \
	 "sum up in the kernel instead of printing events: how many"},                             \
		{0,                                                                                \
		 "sum",                                                                            \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, sum),                                    \
		 "the sum of EXPR; this and the next six may be repeated and combined"},           \
		{0,                                                                                \
		 "avg",                                                                            \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, avg),                                    \
		 "the average of EXPR"},                                                           \
		{0,                                                                                \
		 "min",                                                                            \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, min),                                    \
		 "the smallest EXPR"},                                                             \
		{0,                                                                                \
		 "max",                                                                            \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, max),                                    \
		 "the largest EXPR"},                                                              \
		{0,                                                                                \
		 "hist",                                                                           \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, hist),                                   \
		 "a histogram of EXPR by powers of two"},                                          \
		{0,                                                                                \
		 "lhist",                                                                          \
		 OPT_LIST,                                                                         \
		 "EXPR,FROM,TO,STEP",                                                              \
		 (at) + offsetof(struct aggregate_values, lhist),                                  \
		 "a histogram of EXPR by steps"},                                                  \
		{0,                                                                                \
		 "quantiles",                                                                      \
		 OPT_LIST,                                                                         \
		 "EXPR",                                                                           \
		 (at) + offsetof(struct aggregate_values, quantiles),                              \
		 "the 50th, 90th, 99th and 99.9th percentile of EXPR, to within 3.2 %, and the "   \
		 "largest"},                                                                       \
		{0,                                                                                \
		 "by",                                                                             \
		 OPT_TEXT,                                                                         \
		 "KEY,...",                                                                        \
		 (at) + offsetof(struct aggregate_values, by),                                     \
		 "a row for each value of these: expressions, $pid, $tid, $comm, $cpu, $cgroup, "  \
		 "$site, $caller, $stack"},                                                        \
		{0,                                                                                \
		 "top",                                                                            \
		 OPT_COUNT,                                                                        \
		 "N",                                                                              \
		 (at) + offsetof(struct aggregate_values, top),                                    \
		 "show the first N rows, and how many more there are"},                            \
		{0,                                                                                \
		 "every",                                                                          \
		 OPT_SECONDS,                                                                      \
		 "TIME",                                                                           \
		 (at) + offsetof(struct aggregate_values, every),                                  \
		 "show the table each TIME: on a terminal it is refreshed, else it is one JSON "   \
		 "object"},                                                                        \
		{0,                                                                                \
		 "clear",                                                                          \
		 OPT_FLAG,                                                                         \
		 NULL,                                                                             \
		 (at) + offsetof(struct aggregate_values, clear),                                  \
		 "with --every: begin anew each time"},                                            \
	{                                                                                          \
		0, "max-keys", OPT_COUNT, "N", (at) + offsetof(struct aggregate_values, max_keys), \
			"most rows of --by; hits of further keys are added to \"others\" (8192, "  \
			"with --quantiles 2048)"                                                   \
	}

/* Whether one of the options was given that sum up. */
bool aggregate_is_wanted(const struct aggregate_values *v);
/* Checks the options and sets up session->trace; an exit status. */
int aggregate_open(const struct aggregate_values *v, struct session *session);
/*
 * Reads the rows and writes them; of intervals the last one only if there was a hit in it. Returns
 * 0 or a negative errno.
 */
int aggregate_show(struct session *session, bool is_last, struct cairn_err *err);
/* Whether a file's name asks for a page. */
bool aggregate_is_page(const char *name);
/* The last table becomes a page, with the hits of each interval. An exit status. */
/*
 * The option whose number a profile of stacks has no place for, as "--hist"; NULL: there is none. It
 * has the hits, and one sum.
 */
const char *aggregate_not_in_profile(const struct session *session);
int aggregate_open_page(struct session *session, const char *name);
/* Lines of the summary. */
void aggregate_summary(const struct session *session);
void aggregate_close(struct session *session);

#endif
