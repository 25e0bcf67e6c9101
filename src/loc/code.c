/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/code.h"

#include <errno.h>

struct walk {
	const struct elf *code;
	int (*visit)(void *ctx, const struct code_insn *insn);
	void *ctx;
	size_t n;
};

static int walk_range(void *arg, struct dw_range range)
{
	struct walk *w = arg;
	const uint8_t *bytes;
	size_t n;
	if (!elf_code_at(w->code, range.lo, &bytes, &n) || range.hi.v - range.lo.v > n)
		return -EBADMSG;
	n = (size_t)(range.hi.v - range.lo.v);
	for (size_t off = 0; off < n;) {
		struct code_insn insn = {.at = range.lo.v + off, .bytes = bytes + off};
		if (++w->n > CODE_INSNS_MAX)
			return -ERANGE;
		if (!insn_decode(insn.bytes, n - off, insn.at, &insn.decoded))
			return -EBADMSG;
		int rc = w->visit(w->ctx, &insn);
		if (rc < 0)
			return rc;
		off += insn.decoded.len;
	}
	return 0;
}

int code_visit(const struct elf *code, const struct dw_die *function,
	       int (*visit)(void *ctx, const struct code_insn *insn), void *ctx)
{
	struct walk w = {.code = code, .visit = visit, .ctx = ctx};
	int rc = dw_ranges(function, walk_range, &w, NULL);
	return rc > 0 ? 0 : rc ? rc : -EBADMSG;
}
