/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hits that are summed up: the options, and which writer gets a table
 */
#include "trace_aggregate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cairn/text.h>

#include "say.h"
#include "profile.h"
#include "trace_aggregate_cells.h"
#include "trace_aggregate_html.h"
#include "trace_profile.h"
#include "trace_stack.h"

/* Lines of a terminal that are no rows. */
enum { OTHER_LINES = 5 };

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

/* False when there is no room for them. */
static bool add_items(struct aggregate_session *a, enum cairn_aggregate_kind kind,
		      const struct opt_list *list)
{
	for (size_t i = 0; i < list->n; i++) {
		if (a->n_items == AGGREGATE_ITEMS_MAX)
			return false;
		a->items[a->n_items++] =
			(struct cairn_aggregate){.kind = kind, .text = list->items[i]};
		a->has_histogram |= aggregate_is_histogram(kind);
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
	bool is_terminal = !session->out_name && isatty(STDOUT_FILENO);

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
			    AGGREGATE_ITEMS_MAX);
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
		return fail_asked(r, &err);
	for (uint32_t i = 0; i < cairn_trace_n_keys(session->trace); i++)
		a->has_lines |= trace_stack_has_lines(session, i);
	return trace_stack_is_key(session) ? trace_stack_name(session) : STATUS_YES;
}

bool aggregate_is_page(const char *name)
{
	return profile_name_ends(name, ".html");
}

const char *aggregate_not_in_profile(const struct session *session)
{
	static const char *const options[] = {
		[CAIRN_AGGREGATE_AVG] = "--avg",     [CAIRN_AGGREGATE_MIN] = "--min",
		[CAIRN_AGGREGATE_MAX] = "--max",     [CAIRN_AGGREGATE_HIST] = "--hist",
		[CAIRN_AGGREGATE_LHIST] = "--lhist", [CAIRN_AGGREGATE_QUANTILES] = "--quantiles",
	};
	const struct aggregate_session *a = session->aggregates;
	unsigned int n_sums = 0;

	for (size_t i = 0; i < a->n_items; i++) {
		enum cairn_aggregate_kind kind = a->items[i].kind;
		if (kind == CAIRN_AGGREGATE_COUNT)
			continue;
		if (kind != CAIRN_AGGREGATE_SUM)
			return options[kind];
		if (n_sums++)
			return "a second --sum";
	}
	return NULL;
}

int aggregate_open_page(struct session *session, const char *name)
{
	struct aggregate_session *a = session->aggregates;

	if (a->clears)
		return fail(STATUS_USAGE, "%s has the hits of the whole trace: not with --clear",
			    name);
	a->page = aggregate_page_new(name);
	return a->page ? STATUS_YES : fail(STATUS_NOT_HERE, "no memory");
}

void aggregate_close(struct session *session)
{
	if (session->aggregates)
		aggregate_page_free(session->aggregates->page);
	free(session->aggregates);
	session->aggregates = NULL;
}

/* ---- tables ---- */

/* For the summary. */
static void note(const struct session *session, const struct cairn_aggregates *table)
{
	struct aggregate_session *a = session->aggregates;

	if (!a->clears)
		a->n_others = a->n_unreadable = 0;
	for (size_t i = 0; i < table->n_rows; i++) {
		const struct cairn_aggregate_row *row = &table->rows[i];
		a->n_others += row->is_others ? row->hits : 0;
		a->n_unreadable += aggregate_unreadable_in(session, row);
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

/* Its file, if there is to be one. False: the table is shown, too. */
static bool write_whole(struct session *session, const struct cairn_aggregates *table, bool is_last)
{
	struct aggregate_session *a = session->aggregates;

	if (a->page) {
		aggregate_page_note(a->page, table);
		if (is_last)
			session->status = aggregate_page_write(a->page, session, table);
		return !session->every_ns && !session->out_name;
	}
	if (session->profile)
		session->status =
			trace_profile_write(session, table, first_sum(a), session->profile);
	return session->profile;
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
	if (write_whole(session, table, is_last)) {
		cairn_aggregates_free(table);
		return 0;
	}
	if (!is_last || !a->clears || !a->n_tables || table->n_rows) {
		a->n_tables++;
		r = session->json ? aggregate_show_json(session, table)
				  : aggregate_show_text(session, table);
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
