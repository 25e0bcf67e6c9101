/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a probe needs of its calls' returns: $ret and $duration
 *
 * The program of a site that follows its calls has two parts (abi.h), and each expression belongs
 * to one of them. An expression that needs both arguments and $ret or $duration belongs to the
 * return; the largest parts of it that need none of these two are numbers that the entry keeps. So
 * arguments are those of the entry, whatever the function does with them.
 *
 *	f(n, $ret) if n > 3 && $duration > n * 1000
 *
 *	at the entry:   if n > 3; n; keep 0 = n * 1000
 *	at the return:  if $duration > kept 0; $ret
 */
#ifndef TRACE_RETURNS_H
#define TRACE_RETURNS_H

#include "trace/expr/compile.h"
#include "trace/trace.h"

struct probe_returns {
	uint32_t n_kept;
	bool has_duration; /* $duration is needed, which inlined copies may have */
	struct {
		const struct expr *expr;
		uint8_t value; /* as fetch_op.value */
	} kept[FETCH_KEPT_MAX];
	/* The two parts of the condition; NULL: there is none. */
	const struct expr *at_entry, *at_return;
};

/*
 * Why an expression of the probe cannot have $ret and $duration; NULL: it can, and p->by_exits is
 * set.
 */
const char *returns_refused(struct cairn_trace *t, struct trace_probe *p);

/*
 * True if a thread of the program may have several stacks. Then only a session can leave those
 * calls alone for which the kernel would end the program.
 */
bool returns_has_stacks(const struct trace_file *f);

/* True if the expression, which has types, needs the return. */
bool returns_needs(const struct expr *e);

/*
 * returns_take - take a value apart
 *
 * @e      replaced if it needs both; p->returns is made if it needs the return at all
 * @value  its number
 * Returns 0; -ERANGE: too many numbers to keep; -EOPNOTSUPP: a float, or an index that
 * needs both; -ENOMEM.
 */
int returns_take(struct cairn_trace *t, struct trace_probe *p, const struct expr **e,
		 uint32_t value, struct cairn_err *err);
/* The same of buf(): both the address and the number of bytes, if one needs the return. */
int returns_take_bytes(struct cairn_trace *t, struct trace_probe *p, struct probe_value_text *v,
		       uint32_t value, struct cairn_err *err);
/* The same of the condition, after all values. */
int returns_take_condition(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/*
 * In a trace that shows calls: the probe's calls are followed, whatever its values are, unless they
 * cannot be. Returns 0, -EOPNOTSUPP for functions of the kernel, or -ENOMEM.
 */
int returns_of_calls(struct cairn_trace *t, struct trace_probe *p, struct cairn_err *err);

/* The smallest record, or slot, of probes that follow their calls; 0: none is large enough. */
uint32_t returns_class(uint32_t n_bytes);

/* Whether a site's calls are followed, and where they leave the result. Returns 0 or -ENOMEM. */
int returns_plan_site(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		      struct cairn_err *err);

/* Appends the numbers that the entry keeps; as compile_value(). */
enum cairn_unavailable returns_keep(const struct trace_probe *p, struct compiler *c);

#endif
