/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Planning a probe, in three steps; for the files that plan
 *
 *	values.c    which values, with their types; layout.c has their positions in a record
 *	programs.c  a site -> the operations that fetch them there
 *	sites.c     which sites, refused or not, and where their probes are set
 */
#ifndef TRACE_PLAN_H
#define TRACE_PLAN_H

#include "trace/trace.h"

/*
 * Gives each value of a probe its position in the record, with at most @targets of recipes.
 * Returns the bytes needed, which may be more than a record can have.
 */
uint32_t plan_layout(struct cairn_trace *t, struct trace_probe *p, unsigned int targets);

/*
 * The values of a probe, and its condition, get their types.
 *
 * Returns 0; -ERANGE: they do not fit a record; -ENOMEM; or what expr_type_value() does.
 */
int plan_values(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/*
 * True if reaching a site is no call of its own: a split part, or a call that was merged with
 * another one, which has a site.
 */
bool plan_is_no_call(const struct cairn_site *site);

/* The same for the number of a hit, an expression like a condition. */
int plan_weight(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/* The condition of the part of the program that is run at the hit; NULL: there is none. */
const struct expr *plan_first_condition(const struct trace_probe *p);

/*
 * The program for a site, in its present state; a refused site keeps its reason. If its calls are
 * followed, it is the part of the entry.
 *
 * Returns 0; -ERANGE: it takes too many operations; -ENOMEM.
 */
int plan_site_program(struct cairn_trace *t, struct trace_probe *p, struct trace_site *planned,
		      struct fetch_program *program, struct cairn_err *err);

/* The part of the return, after that of the entry. Errors as plan_site_program(). */
int plan_return_program(struct cairn_trace *t, struct trace_probe *p, struct trace_site *site,
			struct fetch_program *program, struct cairn_err *err);

/* The index of a program with these operations, added when it is new. Returns 0, or -ENOMEM. */
int plan_keep_program(struct cairn_trace *t, const struct fetch_program *p, bool has_condition,
		      uint32_t *ret, struct cairn_err *err);

#endif
