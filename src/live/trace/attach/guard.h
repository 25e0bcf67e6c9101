/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The overload guard: how much a trace slows its processes down, and what is done about it
 *
 *	guard.c       what is measured, and acting
 *	guard_trap.c  the cost of a trap, on a child that is thrown away
 */
#ifndef TRACE_GUARD_H
#define TRACE_GUARD_H

#include <unistd.h>

#include "trace/trace.h"

/* What happened between two looks. */
struct guard_window {
	uint64_t wall_ns;
	uint64_t cpu_ns; /* of the traced processes, all that the hits cost included */
	uint64_t n_hits;
	uint64_t run_ns;  /* of the kernel's program */
	uint64_t trap_ns; /* of one hit, without the program */
	uint32_t sample;  /* one of so many hits was taken */
};

enum guard_action { GUARD_GO_ON, GUARD_THIN, GUARD_DETACH };

struct guard_decision {
	enum guard_action action;
	double slowdown; /* 0.1: a tenth more processor time than without the trace */
	uint32_t sample; /* of GUARD_THIN */
};

/* @max  the slowdown that is allowed */
struct guard_decision guard_decide(const struct guard_window *w, double max);

static inline void trace_guard_close(struct trace_guard *g)
{
	if (g->is_open)
		close(g->stats_fd);
	g->is_open = false;
}

/*
 * guard_trap_ns - what one hit costs besides its program
 *
 * @emulated  the kernel emulates the instruction instead of stepping over it
 * Returns 0 or a negative errno: a child cannot be made, or a probe set.
 * Cost: some ten milliseconds.
 */
int guard_trap_ns(bool emulated, uint64_t *ret);

#endif
