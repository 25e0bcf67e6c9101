/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/cfg.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "loc/code.h"

struct calls {
	VEC(uint32_t) v;
};

enum { RBP = 1 << 6, RSP = 1 << 7 };

/* lea of another address than one in the stack frame or in the file: a sum. */
static bool is_sum(const uint8_t *insn, size_t n, uint16_t reads)
{
	size_t i = n && (insn[0] & 0xf0) == 0x40;
	return i < n && insn[i] == 0x8d && reads & (uint16_t) ~(RSP | RBP);
}

static bool only_moves(const uint8_t *bytes, const struct insn *insn)
{
	uint16_t sources = insn->reads & (uint16_t) ~(RSP | RBP);
	bool one = !(sources & (sources - 1));
	bool in_frame = insn->reads & (RSP | RBP);
	if (insn_is_zeroing(bytes, insn->len))
		return true;
	if (insn->flow == INSN_CALL || insn->flow == INSN_CALL_INDIRECT ||
	    is_sum(bytes, insn->len, insn->reads))
		return false;
	if (insn->writes_memory)
		return in_frame && one && !insn->reads_memory;
	if (insn->reads_memory)
		return !sources;
	return !(insn->reads & insn->writes) && (one || !insn->writes);
}

/* The facts that all instructions of a flow share. GRAPH_NONE | i + 1 is GRAPH_NONE. */
static const struct cfg_insn by_flow[] = {
	[INSN_NEXT] = {.target = GRAPH_NONE, .order = UINT32_MAX},
	[INSN_JUMP] = {.next = GRAPH_NONE,
		       .target = GRAPH_NONE,
		       .order = UINT32_MAX,
		       .is_branch = true},
	[INSN_JUMP_INDIRECT] = {.next = GRAPH_NONE,
				.target = GRAPH_NONE,
				.order = UINT32_MAX,
				.is_indirect = true},
	[INSN_BRANCH] = {.target = GRAPH_NONE, .order = UINT32_MAX, .is_branch = true},
	[INSN_CALL] = {.target = GRAPH_NONE, .order = UINT32_MAX, .is_call = true},
	[INSN_CALL_INDIRECT] = {.target = GRAPH_NONE, .order = UINT32_MAX, .is_call = true},
	[INSN_RETURN] = {.next = GRAPH_NONE,
			 .target = GRAPH_NONE,
			 .order = UINT32_MAX,
			 .is_return = true},
	[INSN_TRAP] = {.target = GRAPH_NONE, .order = UINT32_MAX},
};

/*
 * Records facts for later about an instruction after which control may not go on, or may go
 * elsewhere.
 */
static int note_flow(struct cfg *g, uint32_t i, const struct insn_step *step)
{
	bool is_jump = step->flow == INSN_JUMP || step->flow == INSN_BRANCH;
	bool goes_on = step->flow == INSN_BRANCH || step->flow == INSN_TRAP;
	bool ok = goes_on || VEC_ADD(&g->ends, i);
	if (ok && is_jump)
		ok = VEC_ADD(&g->found, ((struct cfg_jump){.from = i, .to = step->target}));
	if (ok && step->flow == INSN_CALL)
		ok = VEC_ADD(&g->calls, ((struct cfg_call){.from = i, .to = step->target}));
	if (ok && step->flow == INSN_JUMP_INDIRECT)
		ok = VEC_ADD(&g->indirect, i);
	return ok ? 0 : -ENOMEM;
}

/* Control does not continue across a gap. */
static int end_at_gap(struct cfg *g, const struct code_run *run)
{
	struct cfg_insn *last = g->v.n ? &g->v.p[g->v.n - 1] : NULL;
	if (!last || last->at + last->len == run->at || last->next == GRAPH_NONE)
		return 0;
	bool is_listed = last->is_call;
	last->next = GRAPH_NONE;
	return is_listed || VEC_ADD(&g->ends, (uint32_t)g->v.n - 1) ? 0 : -ENOMEM;
}

/* Room for the starts of a run's bytes, cleared. */
static int extend_pieces(struct cfg *g, const struct code_run *run)
{
	size_t bytes = run->n_bytes;
	struct cfg_piece *last = g->pieces.n ? &g->pieces.p[g->pieces.n - 1] : NULL;
	struct cfg_piece piece = {.lo = run->at,
				  .hi = run->at + bytes,
				  .first = (uint32_t)g->v.n,
				  .starts = (uint32_t)g->starts.n};
	if (!VEC_RESERVE(&g->starts, bytes))
		return -ENOMEM;
	memset(g->starts.p + g->starts.n, 0, bytes * sizeof(*g->starts.p));
	if (last && last->hi == run->at)
		last->hi += bytes;
	else if (!VEC_ADD(&g->pieces, piece))
		return -ENOMEM;
	return 0;
}

static int add_run(void *arg, const struct code_run *run)
{
	struct cfg *g = arg;
	if (end_at_gap(g, run) < 0 || extend_pieces(g, run) < 0 || !VEC_RESERVE(&g->v, run->n))
		return -ENOMEM;
	uint32_t i = (uint32_t)g->v.n, *starts = g->starts.p + g->starts.n;
	struct cfg_insn *insn = g->v.p + i;
	size_t off = 0;
	for (const struct insn_step *step = run->steps, *end = step + run->n; step < end;
	     step++, insn++) {
		*insn = by_flow[step->flow];
		insn->at = run->at + off;
		insn->len = step->len;
		insn->has_effect = step->writes_memory; /* as a call does */
		insn->is_nop = step->is_nop;
		if (step->flow != INSN_NEXT && note_flow(g, i, step) < 0)
			return -ENOMEM;
		insn->next |= ++i;
		starts[off] = i;
		off += step->len;
	}
	g->v.n = i;
	g->starts.n += off;
	return 0;
}

/* The pieces that begin at @at or before it. */
static size_t pieces_to(const struct cfg *g, uint64_t at)
{
	size_t lo = SEARCH(0, g->pieces.n, mid, g->pieces.p[mid].lo <= at);
	return lo;
}

size_t cfg_from(const struct cfg *g, uint64_t at)
{
	size_t n = pieces_to(g, at);
	if (n) {
		const struct cfg_piece *p = &g->pieces.p[n - 1];
		const uint32_t *starts = g->starts.p + p->starts;
		for (uint64_t off = at - p->lo; off < p->hi - p->lo; off++)
			if (starts[off])
				return starts[off] - 1;
	}
	return n < g->pieces.n ? g->pieces.p[n].first : g->v.n;
}

uint32_t cfg_at(const struct cfg *g, uint64_t at)
{
	size_t n = pieces_to(g, at);
	if (!n || at >= g->pieces.p[n - 1].hi)
		return GRAPH_NONE;
	const struct cfg_piece *p = &g->pieces.p[n - 1];
	uint32_t number = g->starts.p[p->starts + (at - p->lo)];
	return number ? number - 1 : GRAPH_NONE;
}

static void resolve(struct cfg *g)
{
	if (g->v.n)
		g->v.p[g->v.n - 1].next = GRAPH_NONE;
	for (size_t i = 0; i < g->found.n; i++) {
		uint32_t to = cfg_at(g, g->found.p[i].to);
		g->v.p[g->found.p[i].from].target = to;
		if (to == GRAPH_NONE)
			continue;
		g->v.p[to].is_target = true;
		g->has_jump_back |= to <= g->found.p[i].from;
	}
}

/*
 * The instruction at @i is not fallen into. The walk ends where an earlier walk ended, or another
 * one begins: all of them together are one pass.
 */
static int add_orphan(struct cfg *g, uint32_t i)
{
	for (; i < g->v.n && !g->v.p[i].is_target && i != g->entry; i++) {
		struct cfg_insn *insn = &g->v.p[i];
		if (insn->is_orphan || (insn->is_nop && insn->next == GRAPH_NONE))
			return 0;
		insn->is_orphan = !insn->is_nop;
		if (insn->is_orphan)
			return VEC_ADD(&g->orphans, i) ? 0 : -ENOMEM;
		insn->next = GRAPH_NONE;
	}
	return 0;
}

/*
 * No path reaches the padding after a jump, and it must not seem to lead to the code after it. A
 * call that padding or the end follows does not return; those before padding are added to @silent.
 */
static int find_orphans(struct cfg *g, struct calls *silent)
{
	int rc = add_orphan(g, 0);
	for (size_t n = 0; n < g->ends.n && !rc; n++) {
		uint32_t i = g->ends.p[n], next = g->v.p[i].next;
		if (g->v.p[i].is_call && next != GRAPH_NONE) {
			if (!g->v.p[next].is_nop || g->v.p[next].is_target || next == g->entry)
				continue;
			g->v.p[i].next = GRAPH_NONE;
			rc = VEC_ADD(&silent->v, i) ? 0 : -ENOMEM;
		}
		rc = rc ? rc : add_orphan(g, i + 1);
	}
	return rc;
}

/*
 * The instruction after the padding after a call, if it can be the head of a loop: all jumps to it
 * come from later code.
 */
static uint32_t loop_after(const struct cfg *g, uint32_t call)
{
	size_t i = call + 1;
	while (i < g->v.n && g->v.p[i].is_nop &&
	       g->v.p[i].at == g->v.p[i - 1].at + g->v.p[i - 1].len)
		i++;
	if (i == g->v.n || !g->v.p[i].is_target ||
	    g->v.p[i].at != g->v.p[i - 1].at + g->v.p[i - 1].len)
		return GRAPH_NONE;
	for (uint32_t k = g->jumps_to[i]; k < g->jumps_to[i + 1]; k++)
		if (g->jumps[k] < i)
			return GRAPH_NONE;
	return (uint32_t)i;
}

/*
 * Loops are aligned, too. A call before a loop returns if nothing else leads to the loop: then
 * control passes the padding.
 */
static int join_loops(struct cfg *g, const struct calls *silent)
{
	/*
	 * A call that follows another call's loop may precede it in memory; chains of such loops
	 * are short.
	 */
	enum { REACHED = 1, ROUNDS = 4 };
	bool any = false;
	for (size_t n = 0; n < silent->v.n && !any; n++)
		any = loop_after(g, silent->v.p[n]) != GRAPH_NONE;
	if (!any || g->entry == GRAPH_NONE)
		return 0;
	uint8_t *marks = calloc(g->v.n + 1, 1);
	if (!marks)
		return -ENOMEM;
	marks[g->entry] = REACHED;
	int rc = cfg_spread(g, &g->entry, 1, marks, REACHED, 0, 0);
	for (size_t n = 0; n < ROUNDS * silent->v.n && !rc; n++) {
		uint32_t call = silent->v.p[n % silent->v.n], head = loop_after(g, call);
		if (!marks[call] || head == GRAPH_NONE || marks[head])
			continue;
		for (uint32_t i = call; i < head; i++)
			g->v.p[i].next = i + 1;
		rc = cfg_spread(g, &call, 1, marks, REACHED, 0, 0);
	}
	free(marks);
	return rc;
}

/* Room for @n numbers, whatever its old content. */
static bool room_for(uint32_t **p, size_t *cap, size_t n)
{
	if (n <= *cap)
		return true;
	free(*p);
	*p = malloc(2 * n * sizeof(**p));
	*cap = *p ? 2 * n : 0;
	return *p;
}

/* Edges are counted by target first; the counts give the position of each target's edges. */
static int list_jumps(struct cfg *g)
{
	if (!room_for(&g->jumps_to, &g->cap_jumps_to, g->v.n + 2) ||
	    !room_for(&g->jumps, &g->cap_jumps, g->found.n + 1))
		return -ENOMEM;
	memset(g->jumps_to, 0, (g->v.n + 2) * sizeof(*g->jumps_to));
	for (size_t i = 0; i < g->found.n; i++) {
		uint32_t to = g->v.p[g->found.p[i].from].target;
		if (to != GRAPH_NONE)
			g->jumps_to[to + 2]++;
	}
	uint32_t sum = 0;
	for (size_t i = 2; i < g->v.n + 2; i++)
		g->jumps_to[i] = sum += g->jumps_to[i];
	for (size_t i = 0; i < g->found.n; i++) {
		uint32_t to = g->v.p[g->found.p[i].from].target;
		if (to != GRAPH_NONE)
			g->jumps[g->jumps_to[to + 1]++] = g->found.p[i].from;
	}
	return 0;
}

/* ---- paths ---- */

static size_t first_edge(const struct cfg *g, uint32_t from)
{
	size_t first = SEARCH((size_t)0, g->edges.n, i, g->edges.p[i].from < from);

	return first;
}

bool cfg_is_known_jump(const struct cfg *g, uint32_t i)
{
	size_t first = first_edge(g, i);

	return first < g->edges.n && g->edges.p[first].from == i;
}

uint32_t cfg_indirect_target(const struct cfg *g, uint32_t i, uint32_t n)
{
	size_t at;

	if (!cfg_is_known_jump(g, i))
		return n < g->orphans.n ? g->orphans.p[n] : GRAPH_NONE;
	at = first_edge(g, i) + n;
	return at < g->edges.n && g->edges.p[at].from == i ? g->edges.p[at].to : GRAPH_NONE;
}

uint32_t cfg_indirect_before(const struct cfg *g, uint32_t i, uint32_t n)
{
	size_t first = SEARCH((size_t)0, g->edges_to.n, k, g->edges_to.p[k].to < i);
	size_t end = SEARCH(first, g->edges_to.n, k, g->edges_to.p[k].to == i);

	if (n < end - first)
		return g->edges_to.p[first + n].from;
	n -= (uint32_t)(end - first);
	return g->v.p[i].is_orphan && n < g->indirect.n ? g->indirect.p[n] : GRAPH_NONE;
}

uint32_t cfg_before(const struct cfg *g, uint32_t i, uint32_t *k)
{
	uint32_t n_jumps = g->jumps_to[i + 1] - g->jumps_to[i];
	if (*k == 0) {
		++*k;
		if (i && g->v.p[i - 1].next == i)
			return i - 1;
	}
	uint32_t n = (*k)++ - 1;
	if (n < n_jumps)
		return g->jumps[g->jumps_to[i] + n];
	return cfg_indirect_before(g, i, n - n_jumps);
}

int cfg_spread(const struct cfg *g, const uint32_t *from, size_t n, uint8_t *marks, uint8_t bit,
	       uint8_t within, uint8_t without)
{
	VEC(uint32_t) todo = {0};
	int rc = 0;
	bool orphans_done = false;
	for (size_t i = 0; i < n && !rc; i++)
		rc = VEC_ADD(&todo, from[i]) ? 0 : -ENOMEM;
	while (todo.n && !rc) {
		uint32_t i = todo.p[--todo.n], k = 0, s;
		bool is_unknown = g->v.p[i].is_indirect && !cfg_is_known_jump(g, i);
		bool skip = is_unknown && orphans_done;
		orphans_done |= is_unknown;
		while (!skip && !rc && (s = cfg_next(g, i, &k)) != GRAPH_NONE) {
			if (marks[s] & bit || (within && !(marks[s] & within)) ||
			    marks[s] & without)
				continue;
			marks[s] |= bit;
			rc = VEC_ADD(&todo, s) ? 0 : -ENOMEM;
		}
	}
	VEC_FREE(&todo);
	return rc;
}

int cfg_may_come_back(struct cfg *g, uint32_t i)
{
	/* The targets of indirect jumps are not known. */
	if (g->indirect.n || g->edges.n)
		return 1;
	if (!g->has_jump_back)
		return 0;
	int rc = g->is_loops_known ? 0 : cfg_find_loops(g);
	return rc ? rc : g->v.p[i].is_in_loop;
}

int cfg_is_reached(struct cfg *g, uint32_t i)
{
	if (!g->indirect.n && !g->edges.n) {
		int rc = g->is_loops_known ? 0 : cfg_find_loops(g);
		return rc ? rc : g->v.p[i].is_reached;
	}
	int rc = cfg_number(g);
	return rc ? rc : g->v.p[i].order != UINT32_MAX;
}

struct step {
	uint32_t insn, k;
};

int cfg_number(struct cfg *g)
{
	if (g->is_numbered)
		return 0;
	VEC(struct step) path = {0};
	uint32_t left = (uint32_t)g->v.n;
	uint8_t *seen = calloc(g->v.n + 1, 1);
	bool orphans_done = false;
	int rc = seen && VEC_RESERVE(&g->by_order, g->v.n) ? 0 : -ENOMEM;
	if (!rc && g->entry != GRAPH_NONE) {
		seen[g->entry] = 1;
		if (!VEC_ADD(&path, ((struct step){.insn = g->entry})))
			rc = -ENOMEM;
	}
	while (path.n && !rc) {
		struct step *top = &path.p[path.n - 1];
		uint32_t i = top->insn;
		/*
		 * Only the first indirect jump that the walk meets leads to the orphans: else the
		 * cost would be their product.
		 */
		bool is_unknown = g->v.p[i].is_indirect && !cfg_is_known_jump(g, i);
		bool skip = is_unknown && orphans_done && top->k == 0;
		orphans_done |= is_unknown;
		uint32_t s = skip ? GRAPH_NONE : cfg_next(g, i, &top->k);
		if (s == GRAPH_NONE) {
			g->v.p[i].order = --left;
			g->by_order.p[g->by_order.n++] = i;
			path.n--;
		} else if (!seen[s]) {
			seen[s] = 1;
			if (!VEC_ADD(&path, ((struct step){.insn = s})))
				rc = -ENOMEM;
		}
	}
	VEC_FREE(&path);
	free(seen);
	g->is_numbered = !rc;
	return rc;
}

static int finish(struct cfg *g, struct cairn_vaddr entry)
{
	resolve(g);
	g->entry = cfg_at(g, entry.v);
	struct calls silent = {0};
	int rc = find_orphans(g, &silent);
	if (!rc)
		rc = list_jumps(g);
	if (!rc)
		rc = join_loops(g, &silent);
	VEC_FREE(&silent.v);
	return rc;
}

static void note_line0(struct cfg *g, struct cfg_insn *insn, const struct elf *code)
{
	struct insn decoded;
	const uint8_t *bytes;
	size_t n;
	insn->is_line0 = g->has_line0 = true;
	insn->only_moves = elf_code_at(code, (struct cairn_vaddr){insn->at}, &bytes, &n) &&
			   insn_decode(bytes, n, insn->at, &decoded) && only_moves(bytes, &decoded);
}

/* GCC has a line for everything. */
static int add_positions(struct cfg *g, const struct elf *code, const struct dw_unit *u)
{
	int64_t n = dw_unit_is_gcc(u) && !dw_unit_is_lto(u)
			    ? 0
			    : dw_unit_positions(u, &g->positions, NULL);
	if (n <= 0 || !g->v.n)
		return n < 0 ? -ENOMEM : 0;
	g->n_positions = (size_t)n;
	size_t k = g->n_positions;
	for (size_t i = 0; i < g->v.n; i++) {
		bool follows = i && g->v.p[i - 1].at + g->v.p[i - 1].len == g->v.p[i].at;
		if (!follows || k == g->n_positions)
			k = dw_positions_from(g->positions, g->n_positions, g->v.p[i].at);
		while (k + 1 < g->n_positions && g->positions[k + 1].at <= g->v.p[i].at)
			k++;
		if (k < g->n_positions && !g->positions[k].line && !g->positions[k].is_end)
			note_line0(g, &g->v.p[i], code);
	}
	return 0;
}

bool cfg_returns(const struct cfg *g, uint32_t call)
{
	uint64_t to = 0;
	for (size_t i = 0; i < g->calls.n && !to; i++)
		to = g->calls.p[i].from == call ? g->calls.p[i].to : 0;
	for (size_t i = 0; i < g->calls.n && to; i++) {
		uint32_t next = g->v.p[g->calls.p[i].from].next;
		if (g->calls.p[i].to == to && next != GRAPH_NONE && !g->v.p[next].is_target &&
		    !g->v.p[next].is_nop)
			return true;
	}
	return false;
}

const struct dw_position *cfg_position(const struct cfg *g, uint32_t i)
{
	size_t k = dw_positions_from(g->positions, g->n_positions, g->v.p[i].at);
	return k == g->n_positions || g->positions[k].is_end || !g->positions[k].line
		       ? NULL
		       : &g->positions[k];
}

/* An empty graph, with the memory of another one if there is one. */
static struct cfg *empty_graph(struct cfg *old)
{
	struct cfg *g = old ? old : calloc(1, sizeof(*g));
	if (!g)
		return NULL;
	g->v.n = g->orphans.n = g->indirect.n = g->calls.n = g->pieces.n = g->starts.n =
		g->by_order.n = g->found.n = g->ends.n = g->edges.n = g->edges_to.n = 0;
	g->is_numbered = g->is_loops_known = g->is_packed_known = g->has_line0 = g->has_jump_back =
		false;
	g->positions = NULL;
	g->n_positions = 0;
	return g;
}

/* ---- edges that instructions do not show ---- */

static int by_from(const void *a, const void *b)
{
	const struct cfg_edge *x = a, *y = b;

	return x->from != y->from ? (x->from > y->from) - (x->from < y->from)
				  : (x->to > y->to) - (x->to < y->to);
}

static int by_to(const void *a, const void *b)
{
	const struct cfg_edge *x = a, *y = b;

	return x->to != y->to ? (x->to > y->to) - (x->to < y->to)
			      : (x->from > y->from) - (x->from < y->from);
}

/* Jumps with edges are no longer among those that lead anywhere. */
int cfg_use_edges(struct cfg *g)
{
	size_t n = 0;

	if (!g->edges.n)
		return 0;
	if (!VEC_RESERVE(&g->edges_to, g->edges.n))
		return -ENOMEM;
	qsort(g->edges.p, g->edges.n, sizeof(*g->edges.p), by_from);
	memcpy(g->edges_to.p, g->edges.p, g->edges.n * sizeof(*g->edges.p));
	g->edges_to.n = g->edges.n;
	qsort(g->edges_to.p, g->edges_to.n, sizeof(*g->edges_to.p), by_to);
	for (size_t i = 0; i < g->indirect.n; i++)
		if (!cfg_is_known_jump(g, g->indirect.p[i]))
			g->indirect.p[n++] = g->indirect.p[i];
	g->indirect.n = n;
	return 0;
}

int cfg_add_edge(struct cfg *g, uint32_t from, uint32_t to)
{
	struct cfg_insn *insn = &g->v.p[from];

	insn->is_nop = false;
	if (insn->is_indirect || insn->next == to)
		return 0;
	insn->has_edges = true;
	g->v.p[to].is_target = true;
	return VEC_ADD(&g->edges, ((struct cfg_edge){.from = from, .to = to})) ? 0 : -ENOMEM;
}

static int change_nothing(void *ctx, struct cfg *g)
{
	(void)ctx;
	(void)g;
	return 0;
}

int cfg_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry,
	    struct cfg **ret)
{
	return cfg_new_changed(code, function, entry, change_nothing, NULL, ret);
}

int cfg_new_changed(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry,
		    int (*change)(void *ctx, struct cfg *g), void *ctx, struct cfg **ret)
{
	struct cfg *g = empty_graph(*ret);
	*ret = NULL;
	if (!g)
		return -ENOMEM;
	int rc = code_visit_runs(code, function, add_run, g);
	if (!rc)
		rc = change(ctx, g);
	if (!rc)
		rc = cfg_use_edges(g);
	if (!rc)
		rc = finish(g, entry);
	if (!rc)
		rc = add_positions(g, code, function->unit);
	if (!rc)
		*ret = g;
	else
		cfg_free(g);
	return rc == -ENOMEM ? rc : 0;
}

void cfg_free(struct cfg *g)
{
	if (!g)
		return;
	VEC_FREE(&g->v);
	VEC_FREE(&g->orphans);
	VEC_FREE(&g->indirect);
	VEC_FREE(&g->calls);
	VEC_FREE(&g->pieces);
	VEC_FREE(&g->starts);
	VEC_FREE(&g->by_order);
	VEC_FREE(&g->found);
	VEC_FREE(&g->ends);
	VEC_FREE(&g->edges);
	VEC_FREE(&g->edges_to);
	free(g->jumps);
	free(g->jumps_to);
	free(g);
}
