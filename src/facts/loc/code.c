/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/code.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

struct ranges {
	VEC(struct dw_range) v;
};

static int note_range(void *arg, struct dw_range range)
{
	return VEC_ADD(&((struct ranges *)arg)->v, range) ? 0 : -ENOMEM;
}

static int by_address(const void *a, const void *b)
{
	const struct dw_range *x = a, *y = b;
	return x->lo.v < y->lo.v ? -1 : x->lo.v > y->lo.v;
}

/* Instructions of a run. */
enum { RUN = 64 };

struct walk {
	const struct elf *code;
	int (*visit)(void *ctx, const struct code_run *run);
	void *ctx;
	size_t n;
};

static int walk_range(struct walk *w, struct dw_range range)
{
	struct insn_step steps[RUN];
	const uint8_t *bytes;
	size_t n, readable;
	if (!elf_code_at(w->code, range.lo, &bytes, &readable) ||
	    range.hi.v - range.lo.v > readable)
		return -EBADMSG;
	n = (size_t)(range.hi.v - range.lo.v);
	for (size_t off = 0; off < n;) {
		struct code_run run = {
			.at = range.lo.v + off, .bytes = bytes + off, .steps = steps};
		run.n = insn_steps(run.bytes, n - off, readable - off, run.at, steps, RUN,
				   &run.n_bytes);
		w->n += run.n;
		if (w->n > CODE_INSNS_MAX)
			return -ERANGE;
		int rc = w->visit(w->ctx, &run);
		if (rc < 0)
			return rc;
		off += run.n_bytes;
		if (run.n < RUN && off < n)
			return -EBADMSG;
	}
	return 0;
}

int code_visit_runs(const struct elf *code, const struct dw_die *function,
		    int (*visit)(void *ctx, const struct code_run *run), void *ctx)
{
	struct walk w = {.code = code, .visit = visit, .ctx = ctx};
	struct ranges ranges = {0};
	int rc = dw_ranges(function, note_range, &ranges, NULL);
	if (ranges.v.n > 1)
		qsort(ranges.v.p, ranges.v.n, sizeof(*ranges.v.p), by_address);
	if (!rc)
		rc = -EBADMSG;
	for (size_t i = 0; i < ranges.v.n && rc >= 0; i++)
		rc = walk_range(&w, ranges.v.p[i]);
	VEC_FREE(&ranges.v);
	return rc < 0 ? rc : 0;
}

struct one_by_one {
	int (*visit)(void *ctx, const struct code_insn *insn);
	void *ctx;
};

static int visit_each(void *arg, const struct code_run *run)
{
	const struct one_by_one *to = arg;
	struct code_insn insn = {.at = run->at, .bytes = run->bytes};
	for (size_t i = 0; i < run->n; i++) {
		insn.step = run->steps[i];
		int rc = to->visit(to->ctx, &insn);
		if (rc < 0)
			return rc;
		insn.at += insn.step.len;
		insn.bytes += insn.step.len;
	}
	return 0;
}

int code_visit(const struct elf *code, const struct dw_die *function,
	       int (*visit)(void *ctx, const struct code_insn *insn), void *ctx)
{
	struct one_by_one to = {.visit = visit, .ctx = ctx};
	return code_visit_runs(code, function, visit_each, &to);
}

int code_visit_range(const struct elf *code, struct dw_range range,
		     int (*visit)(void *ctx, const struct code_insn *insn), void *ctx)
{
	struct one_by_one to = {.visit = visit, .ctx = ctx};
	struct walk w = {.code = code, .visit = visit_each, .ctx = &to};
	return range.lo.v < range.hi.v ? walk_range(&w, range) : -EBADMSG;
}
