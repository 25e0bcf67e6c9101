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

struct walk {
	const struct elf *code;
	int (*visit)(void *ctx, const struct code_insn *insn);
	void *ctx;
	size_t n;
};

static int walk_range(struct walk *w, struct dw_range range)
{
	const uint8_t *bytes;
	size_t n;
	if (!elf_code_at(w->code, range.lo, &bytes, &n) || range.hi.v - range.lo.v > n)
		return -EBADMSG;
	n = (size_t)(range.hi.v - range.lo.v);
	for (size_t off = 0; off < n;) {
		struct code_insn insn = {.at = range.lo.v + off, .bytes = bytes + off};
		if (++w->n > CODE_INSNS_MAX)
			return -ERANGE;
		if (!insn_step(insn.bytes, n - off, insn.at, &insn.step))
			return -EBADMSG;
		int rc = w->visit(w->ctx, &insn);
		if (rc < 0)
			return rc;
		off += insn.step.len;
	}
	return 0;
}

int code_visit(const struct elf *code, const struct dw_die *function,
	       int (*visit)(void *ctx, const struct code_insn *insn), void *ctx)
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
