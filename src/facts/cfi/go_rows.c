/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of Go programs
 *
 * A stripped Go program has no call frame information. Its runtime unwinds by .gopclntab, which
 * gives the distance of the stack pointer from the return address; this makes a row. Go's functions
 * save no register for their callers: all are lost. A function that switches to another stack has
 * no row that could lead to the caller, and none is made. Two of these never return: the functions
 * that they call on the scheduler's stack begin there. Go's own traceback ends at them, too.
 *
 * Linkers write .debug_frame for Go's functions, but it does not know where a goroutine or a thread
 * begins. It describes the frame of a function that was not called, and its rows would lead out of
 * the stack. There .gopclntab counts.
 */
#include "cfi/go_rows.h"

#include <errno.h>
#include <string.h>

#include "elf/gopclntab.h"
#include "insn/stack.h"

enum {
	RSP = 7,
	RETURN_ADDRESS = 8,
	/*
	 * Large programs have some 2 million. Functions of a damaged table may share one long list
	 * of frames.
	 */
	RUNS_MAX = 1 << 24,
};

/* The facts of .gopclntab from an address on. */
struct go_run {
	uint64_t lo;
	uint32_t rule; /* 0: nothing */
	bool is_outermost;
};

struct go_rows {
	const struct elf *elf;
	struct rule_set *rules;
	VEC(struct go_run) runs;
	int rc;
};

static int put(struct go_rows *g, uint64_t lo, const struct rule_words *w, bool is_outermost)
{
	struct go_run run = {.lo = lo, .is_outermost = is_outermost};
	int rc = w ? rule_set_put(g->rules, w->words, w->n, &run.rule) : 0;
	/* A run that ends where the next one begins is replaced by it. */
	if (rc == 0 && g->runs.n && g->runs.p[g->runs.n - 1].lo == lo)
		g->runs.n--;
	return rc < 0 || !VEC_ADD(&g->runs, run) ? -ENOMEM : 0;
}

static int put_frame(void *ctx, uint64_t lo, uint64_t hi, int64_t below)
{
	static const uint8_t kept_by_c[] = {3, 6, 12, 13, 14, 15};
	struct go_rows *g = ctx;
	struct rule_words w;
	if (g->runs.n >= RUNS_MAX)
		return 1;
	if (below > INT32_MAX - RETURN_ADDRESS)
		return 0;
	rule_cfa(&w, CAIRN_UNWIND_CFA_REG, 0, RSP, (int32_t)below + RETURN_ADDRESS, 0);
	for (size_t i = 0; i < sizeof(kept_by_c); i++)
		rule_add(&w, kept_by_c[i], CAIRN_UNWIND_LOST, 0);
	return put(g, lo, &w, false);
}

static int put_outermost(struct go_rows *g, uint64_t lo)
{
	struct rule_words w;
	rule_cfa(&w, CAIRN_UNWIND_CFA_REG, CAIRN_UNWIND_OUTERMOST, RSP, 0, 0);
	return put(g, lo, &w, true);
}

static bool leaves_for_good(const char *name)
{
	return strcmp(name, "runtime.mcall") == 0 || strcmp(name, "runtime.morestack") == 0;
}

/* After the instruction that loads the stack pointer; 0 when there is none. */
static uint64_t on_the_other_stack(const struct elf *e, const struct go_function *f)
{
	const uint8_t *code;
	struct insn_stack insn;
	size_t n;
	if (!elf_code_at(e, (struct cairn_vaddr){f->lo}, &code, &n) || n < f->hi - f->lo)
		return 0;
	for (uint64_t at = f->lo; at < f->hi; at += insn.len) {
		if (!insn_stack(code + (at - f->lo), f->hi - at, at, &insn))
			return 0;
		if (insn.sp == STACK_UNKNOWN)
			return at + insn.len;
	}
	return 0;
}

static int put_function(struct go_rows *g, const struct gopclntab *t, const struct go_function *f)
{
	uint64_t away =
		f->switches_stack && leaves_for_good(f->name) ? on_the_other_stack(g->elf, f) : 0;
	int rc = 0;
	if (f->is_outermost)
		rc = put_outermost(g, f->lo);
	else if (!f->switches_stack)
		rc = gopclntab_frames(t, f, put_frame, g);
	else if (away && away < f->hi)
		rc = put_outermost(g, away);
	return rc < 0 ? rc : put(g, f->hi, NULL, false);
}

static int read_functions(struct go_rows *g, const struct gopclntab *t)
{
	struct go_function f;
	uint64_t end = 0;
	int rc = 0;
	for (uint32_t i = 0; rc == 0 && i < t->n && g->runs.n < RUNS_MAX; i++)
		if (gopclntab_function(t, i, &f) && f.lo >= end) {
			rc = put_function(g, t, &f);
			end = f.hi;
		}
	return rc;
}

static bool add_run(struct rule_runs *to, uint64_t lo, uint32_t rule)
{
	uint32_t before = to->v.n ? to->v.p[to->v.n - 1].rule : 0;
	return before == rule || VEC_ADD(&to->v, ((struct rule_run){lo, rule}));
}

/* Both from each address on at which either changes. */
static int merge(const struct go_rows *g, const struct rule_runs *old, struct rule_runs *to,
		 uint64_t *ret_bytes)
{
	struct go_run go = {0};
	uint32_t rule = 0;
	size_t i = 0, k = 0;
	while (i < old->v.n || k < g->runs.n) {
		uint64_t a = i < old->v.n ? old->v.p[i].lo : UINT64_MAX,
			 b = k < g->runs.n ? g->runs.p[k].lo : UINT64_MAX;
		uint64_t lo = a < b ? a : b;
		if (a == lo)
			rule = old->v.p[i++].rule;
		if (b == lo)
			go = g->runs.p[k++];
		bool is_go = go.is_outermost || !rule;
		uint64_t next_a = i < old->v.n ? old->v.p[i].lo : UINT64_MAX,
			 next_b = k < g->runs.n ? g->runs.p[k].lo : UINT64_MAX;
		if (!rule && go.rule)
			*ret_bytes += (next_a < next_b ? next_a : next_b) - lo;
		if (!add_run(to, lo, is_go ? go.rule : rule))
			return -ENOMEM;
	}
	return 0;
}

int go_rows_merge(const struct elf *e, struct rule_runs *runs, struct rule_set *rules,
		  uint64_t *ret_bytes)
{
	struct go_rows g = {.elf = e, .rules = rules};
	struct rule_runs merged = {0};
	struct gopclntab t;
	if (!gopclntab_open(e, &t))
		return 0;
	int rc = read_functions(&g, &t);
	if (rc == 0)
		rc = merge(&g, runs, &merged, ret_bytes);
	if (rc == 0) {
		struct rule_runs old = *runs;
		*runs = merged;
		merged = old;
	}
	VEC_FREE(&merged.v);
	VEC_FREE(&g.runs);
	return rc;
}
