/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prologue and program as one
 *
 * Before each call of a helper that wants the probe's context an instruction is put in, so jumps,
 * calls and addresses of functions change.
 */
#include "cover/cover.h"

#include <errno.h>

#include "base/err.h"

struct build {
	const struct bpf_insn *insns;
	size_t n;
	const struct cover_use *use;
	struct cover_built *out;
	uint32_t *places; /* by instruction of the program: where it is now */
};

static bool is_wide(const struct bpf_insn *insn)
{
	return insn->code == (BPF_LD | BPF_IMM | BPF_DW);
}

static bool is_jump(const struct bpf_insn *insn)
{
	uint8_t class = BPF_CLASS(insn->code), op = BPF_OP(insn->code);

	return (class == BPF_JMP || class == BPF_JMP32) && op != BPF_CALL && op != BPF_EXIT;
}

/* A jump of 32 bits, or what names a function by its distance. */
static bool is_far(const struct bpf_insn *insn)
{
	if (is_wide(insn))
		return insn->src_reg == BPF_PSEUDO_FUNC;
	return insn->code == (BPF_JMP32 | BPF_JA) ||
	       (insn->code == (BPF_JMP | BPF_CALL) && insn->src_reg == BPF_PSEUDO_CALL);
}

static void place_all(struct build *b, uint32_t first)
{
	for (size_t i = 0; i < b->n; i++) {
		b->places[i] = first;
		first += 1u + b->use->context_calls[i];
	}
}

/* The distance from the instruction at @from, now at @at, to where it led. */
static int64_t distance(struct build *b, size_t from, uint32_t at, int64_t led)
{
	int64_t to = (int64_t)from + 1 + led;

	if (to < 0 || (uint64_t)to >= b->n) {
		b->out->why = "a jump leads out of it";
		return 0;
	}
	return (int64_t)b->places[to] - at - 1;
}

static struct bpf_insn moved(struct build *b, size_t i, uint32_t at)
{
	struct bpf_insn insn = b->insns[i];

	if (is_far(&insn)) {
		insn.imm = (int32_t)distance(b, i, at, insn.imm);
	} else if (is_jump(&insn)) {
		int64_t to = distance(b, i, at, insn.off);
		if (to < INT16_MIN || to > INT16_MAX)
			b->out->why = "a jump of it is too far";
		insn.off = (int16_t)to;
	}
	return insn;
}

static void add_program(struct build *b, int16_t context_at)
{
	struct cover_code *c = &b->out->code;

	for (size_t i = 0; i < b->n; i++) {
		if (b->use->context_calls[i])
			code_add(c, BPF_LDX | BPF_MEM | BPF_DW, 1, 1, context_at, 0);
		struct bpf_insn insn = moved(b, i, (uint32_t)c->insns.n);
		c->failed |= !VEC_ADD(&c->insns, insn);
		/* The second half of a constant looks like nothing that moves. */
		if (is_wide(&b->insns[i]) && i + 1 < b->n)
			c->failed |= !VEC_ADD(&c->insns, b->insns[++i]);
	}
}

/* ---- functions ---- */

static void note_function(struct build *b, uint32_t at)
{
	struct cover_built *o = b->out;
	size_t i = o->functions.n;

	for (size_t k = 0; k < o->functions.n; k++)
		if (o->functions.p[k] == at)
			return;
	if (!VEC_ADD(&o->functions, at)) {
		o->code.failed = true;
		return;
	}
	for (; i && o->functions.p[i - 1] > at; i--)
		o->functions.p[i] = o->functions.p[i - 1];
	o->functions.p[i] = at;
}

static void note_functions(struct build *b)
{
	note_function(b, 0);
	note_function(b, b->places[0]);
	for (size_t i = 0; i < b->n; i++) {
		const struct bpf_insn *insn = &b->insns[i];
		int64_t to = (int64_t)i + 1 + insn->imm;
		if (is_far(insn) && insn->code != (BPF_JMP32 | BPF_JA) && to >= 0 &&
		    (uint64_t)to < b->n)
			note_function(b, b->places[to]);
		i += is_wide(insn);
	}
}

int build_program(const struct bpf_insn *insns, size_t n, const struct cover_use *use,
		  const struct cover_site *site, int lost_fd, struct cover_built *ret,
		  struct cairn_err *err)
{
	struct build b = {.insns = insns, .n = n, .use = use, .out = ret};
	struct cover_code *c = &ret->code;
	uint32_t call = 0;
	int16_t context_at = 0;

	*ret = (struct cover_built){0};
	prologue_make(c, use, site, lost_fd, &call, &context_at);
	b.places = calloc(n, sizeof(*b.places));
	c->failed |= !b.places;
	if (!c->failed) {
		c->insns.p[call].imm = (int32_t)(c->insns.n - call - 1);
		place_all(&b, (uint32_t)c->insns.n);
		add_program(&b, context_at);
		if (use->has_callbacks)
			note_functions(&b);
	}
	free(b.places);
	return c->failed ? err_nomem(err, "a program's instructions") : 0;
}

void built_fini(struct cover_built *built)
{
	code_fini(&built->code);
	VEC_FREE(&built->functions);
}
