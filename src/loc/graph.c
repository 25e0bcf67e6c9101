/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/graph.h"

#include <errno.h>
#include <stdlib.h>

#include "loc/code.h"

/* A direct jump, before it is known which instruction it leads to. */
struct jump {
	uint32_t from;
	uint64_t to;
};

struct decode {
	struct graph *graph;
	VEC(struct jump) jumps;
};

struct calls {
	VEC(uint32_t) v;
};

static bool is_nop(const uint8_t *insn, size_t n)
{
	size_t i = 0;
	while (i < n && (insn[i] == 0x66 || insn[i] == 0x2e))
		i++;
	return i < n && (insn[i] == 0x90 || (n - i >= 3 && insn[i] == 0x0f && insn[i + 1] == 0x1f));
}

enum { RBP = 1 << 6, RSP = 1 << 7 };

/* xor of a register with itself: a constant. */
static bool is_zeroing(const uint8_t *insn, size_t n)
{
	size_t i = n && (insn[0] & 0xf0) == 0x40;
	return n == i + 2 && (insn[i] == 0x31 || insn[i] == 0x33) && insn[i + 1] >= 0xc0 &&
	       (insn[i + 1] >> 3 & 7) == (insn[i + 1] & 7);
}

/* lea of another address than one in the stack frame or in the file: a sum. */
static bool is_sum(const uint8_t *insn, size_t n, uint16_t reads)
{
	size_t i = n && (insn[0] & 0xf0) == 0x40;
	return i < n && insn[i] == 0x8d && reads & (uint16_t)~(RSP | RBP);
}

static bool only_moves(const uint8_t *bytes, const struct insn *insn)
{
	uint16_t sources = insn->reads & (uint16_t)~(RSP | RBP);
	bool one = !(sources & (sources - 1));
	bool in_frame = insn->reads & (RSP | RBP);
	if (is_zeroing(bytes, insn->len))
		return true;
	if (insn->flow == INSN_CALL || insn->flow == INSN_CALL_INDIRECT || is_sum(bytes, insn->len, insn->reads))
		return false;
	if (insn->writes_memory)
		return in_frame && one && !insn->reads_memory;
	if (insn->reads_memory)
		return !sources;
	return !(insn->reads & insn->writes) && (one || !insn->writes);
}

static bool goes_on(enum insn_flow flow)
{
	return flow != INSN_JUMP && flow != INSN_JUMP_INDIRECT && flow != INSN_RETURN;
}

static int add_insn(void *arg, const struct code_insn *insn)
{
	struct decode *d = arg;
	struct graph *graph = d->graph;
	enum insn_flow flow = insn->step.flow;
	bool direct = flow == INSN_JUMP || flow == INSN_BRANCH;
	bool call = flow == INSN_CALL || flow == INSN_CALL_INDIRECT;
	uint32_t i = (uint32_t)graph->v.n;
	struct graph_insn *last = i ? &graph->v.p[i - 1] : NULL;
	/* Until here it seemed to lead nowhere, or to what would come next. */
	if (last && last->next != GRAPH_NONE)
		last->next = last->at + last->len == insn->at ? i : GRAPH_NONE;
	struct graph_insn g = {
		.at = insn->at,
		.next = goes_on(flow) ? 0 : GRAPH_NONE,
		.target = GRAPH_NONE,
		.order = UINT32_MAX,
		.len = insn->step.len,
		.is_indirect = flow == INSN_JUMP_INDIRECT,
		.is_branch = direct,
		.is_call = call,
		.has_effect = call || insn->step.writes_memory,
		.is_nop = is_nop(insn->bytes, insn->step.len),
	};
	if (flow == INSN_CALL && !VEC_ADD(&graph->calls, ((struct graph_call){.from = i, .to = insn->step.target})))
		return -ENOMEM;
	if (direct && !VEC_ADD(&d->jumps, ((struct jump){.from = i, .to = insn->step.target})))
		return -ENOMEM;
	if (graph->v.n == graph->v.cap && !VEC_RESERVE(&graph->v, 1))
		return -ENOMEM;
	graph->v.p[graph->v.n++] = g;
	return 0;
}

size_t graph_from(const struct graph *g, uint64_t at)
{
	size_t lo = 0, hi = g->v.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (g->v.p[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t graph_at(const struct graph *g, uint64_t at)
{
	size_t i = graph_from(g, at);
	return i < g->v.n && g->v.p[i].at == at ? (uint32_t)i : GRAPH_NONE;
}

static void resolve(struct graph *g, const struct decode *d)
{
	if (g->v.n)
		g->v.p[g->v.n - 1].next = GRAPH_NONE;
	for (size_t i = 0; i < d->jumps.n; i++)
		g->v.p[d->jumps.p[i].from].target = graph_at(g, d->jumps.p[i].to);
}

/*
 * Padding behind a jump is reached by nobody, and must not seem to lead to what follows it. A call with padding or the end
 * behind it does not return; those in front of padding are added to @silent.
 */
static int find_orphans(struct graph *g, struct calls *silent)
{
	uint8_t *led = calloc(g->v.n + 1, 1);
	if (!led)
		return -ENOMEM;
	if (g->entry != GRAPH_NONE)
		led[g->entry] = 1;
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.p[i].target != GRAPH_NONE)
			led[g->v.p[i].target] = g->v.p[g->v.p[i].target].is_target = true;
	int rc = 0;
	for (size_t i = 0; i < g->v.n && !rc; i++) {
		struct graph_insn *insn = &g->v.p[i];
		uint32_t next = insn->next;
		if (insn->is_call && next != GRAPH_NONE && g->v.p[next].is_nop && !led[next]) {
			insn->next = GRAPH_NONE;
			rc = VEC_ADD(&silent->v, (uint32_t)i) ? 0 : -ENOMEM;
		}
		if (insn->is_nop && !led[i])
			insn->next = GRAPH_NONE;
		else if (!led[i] && !VEC_ADD(&g->orphans, (uint32_t)i))
			rc = -ENOMEM;
		insn->is_orphan = !led[i] && !insn->is_nop;
		if (insn->is_indirect && !VEC_ADD(&g->indirect, (uint32_t)i))
			rc = -ENOMEM;
		if (insn->next != GRAPH_NONE)
			led[insn->next] = 1;
	}
	free(led);
	return rc;
}

/* What follows the padding behind a call, when it can be the head of a loop: all jumps to it come from behind it. */
static uint32_t loop_behind(const struct graph *g, uint32_t call)
{
	size_t i = call + 1;
	while (i < g->v.n && g->v.p[i].is_nop && g->v.p[i].at == g->v.p[i - 1].at + g->v.p[i - 1].len)
		i++;
	if (i == g->v.n || !g->v.p[i].is_target || g->v.p[i].at != g->v.p[i - 1].at + g->v.p[i - 1].len)
		return GRAPH_NONE;
	for (uint32_t k = g->jumps_to[i]; k < g->jumps_to[i + 1]; k++)
		if (g->jumps[k] < i)
			return GRAPH_NONE;
	return (uint32_t)i;
}

/*
 * Loops are aligned, too. A call in front of one returns when nothing else leads to the loop: then the padding is passed.
 */
static int join_loops(struct graph *g, const struct calls *silent)
{
	/* One call behind another's loop may stand in front of it in memory; chains of such loops are short. */
	enum { REACHED = 1, ROUNDS = 4 };
	bool any = false;
	for (size_t n = 0; n < silent->v.n && !any; n++)
		any = loop_behind(g, silent->v.p[n]) != GRAPH_NONE;
	if (!any || g->entry == GRAPH_NONE)
		return 0;
	uint8_t *marks = calloc(g->v.n + 1, 1);
	if (!marks)
		return -ENOMEM;
	marks[g->entry] = REACHED;
	int rc = graph_spread(g, &g->entry, 1, marks, REACHED, 0, 0);
	for (size_t n = 0; n < ROUNDS * silent->v.n && !rc; n++) {
		uint32_t call = silent->v.p[n % silent->v.n], head = loop_behind(g, call);
		if (!marks[call] || head == GRAPH_NONE || marks[head])
			continue;
		for (uint32_t i = call; i < head; i++)
			g->v.p[i].next = i + 1;
		rc = graph_spread(g, &call, 1, marks, REACHED, 0, 0);
	}
	free(marks);
	return rc;
}

/* Counted by target first, which says where those of each target stand. */
static int list_jumps(struct graph *g, const struct decode *d)
{
	g->jumps_to = calloc(g->v.n + 2, sizeof(*g->jumps_to));
	g->jumps = calloc(d->jumps.n + 1, sizeof(*g->jumps));
	if (!g->jumps_to || !g->jumps)
		return -ENOMEM;
	for (size_t i = 0; i < d->jumps.n; i++) {
		uint32_t to = g->v.p[d->jumps.p[i].from].target;
		if (to != GRAPH_NONE)
			g->jumps_to[to + 2]++;
	}
	for (size_t i = 2; i < g->v.n + 2; i++)
		g->jumps_to[i] += g->jumps_to[i - 1];
	for (size_t i = 0; i < d->jumps.n; i++) {
		uint32_t to = g->v.p[d->jumps.p[i].from].target;
		if (to != GRAPH_NONE)
			g->jumps[g->jumps_to[to + 1]++] = d->jumps.p[i].from;
	}
	return 0;
}

/* ---- paths ---- */

uint32_t graph_next(const struct graph *g, uint32_t i, uint32_t *k)
{
	const struct graph_insn *insn = &g->v.p[i];
	for (;; ++*k) {
		uint32_t s = *k == 0 ? insn->next : *k == 1 ? insn->target : GRAPH_NONE;
		if (*k >= 2 && insn->is_indirect && *k - 2 < g->orphans.n)
			s = g->orphans.p[*k - 2];
		if (s == GRAPH_NONE && *k < 2)
			continue;
		++*k;
		return s;
	}
}

uint32_t graph_before(const struct graph *g, uint32_t i, uint32_t *k)
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
	n -= n_jumps;
	return g->v.p[i].is_orphan && n < g->indirect.n ? g->indirect.p[n] : GRAPH_NONE;
}

int graph_spread(const struct graph *g, const uint32_t *from, size_t n, uint8_t *marks, uint8_t bit, uint8_t within,
		 uint8_t without)
{
	VEC(uint32_t) todo = {0};
	int rc = 0;
	bool orphans_done = false;
	for (size_t i = 0; i < n && !rc; i++)
		rc = VEC_ADD(&todo, from[i]) ? 0 : -ENOMEM;
	while (todo.n && !rc) {
		uint32_t i = todo.p[--todo.n], k = 0, s;
		bool skip = g->v.p[i].is_indirect && orphans_done;
		orphans_done |= g->v.p[i].is_indirect;
		while (!skip && !rc && (s = graph_next(g, i, &k)) != GRAPH_NONE) {
			if (marks[s] & bit || (within && !(marks[s] & within)) || marks[s] & without)
				continue;
			marks[s] |= bit;
			rc = VEC_ADD(&todo, s) ? 0 : -ENOMEM;
		}
	}
	VEC_FREE(&todo);
	return rc;
}

/* Counted where each begins and ends, and summed up. */
static int count_backward(struct graph *g)
{
	g->backward = calloc(g->v.n + 2, sizeof(*g->backward));
	if (!g->backward)
		return -ENOMEM;
	for (uint32_t to = 0; to < g->v.n; to++)
		for (uint32_t k = g->jumps_to[to]; k < g->jumps_to[to + 1]; k++)
			if (g->jumps[k] >= to) {
				g->backward[to]++;
				g->backward[g->jumps[k] + 1]--;
			}
	for (size_t i = 1; i < g->v.n; i++)
		g->backward[i] += g->backward[i - 1];
	return 0;
}

int graph_may_come_back(struct graph *g, uint32_t i)
{
	/* Where indirect jumps go is not known. */
	if (g->indirect.n)
		return 1;
	int rc = g->backward ? 0 : count_backward(g);
	return rc ? rc : g->backward[i] != 0;
}

struct step {
	uint32_t insn, k;
};

int graph_number(struct graph *g)
{
	if (g->by_order)
		return 0;
	VEC(struct step) path = {0};
	uint32_t left = (uint32_t)g->v.n;
	uint8_t *seen = calloc(g->v.n + 1, 1);
	bool orphans_done = false;
	g->by_order = calloc(g->v.n + 1, sizeof(*g->by_order));
	int rc = seen && g->by_order ? 0 : -ENOMEM;
	if (!rc && g->entry != GRAPH_NONE) {
		seen[g->entry] = 1;
		if (!VEC_ADD(&path, ((struct step){.insn = g->entry})))
			rc = -ENOMEM;
	}
	while (path.n && !rc) {
		struct step *top = &path.p[path.n - 1];
		uint32_t i = top->insn;
		/* Of many indirect jumps the first one seen leads to the orphans: else the cost would be their product. */
		bool skip = g->v.p[i].is_indirect && orphans_done && top->k == 0;
		orphans_done |= g->v.p[i].is_indirect;
		uint32_t s = skip ? GRAPH_NONE : graph_next(g, i, &top->k);
		if (s == GRAPH_NONE) {
			g->v.p[i].order = --left;
			g->by_order[g->n_ordered++] = i;
			path.n--;
		} else if (!seen[s]) {
			seen[s] = 1;
			if (!VEC_ADD(&path, ((struct step){.insn = s})))
				rc = -ENOMEM;
		}
	}
	VEC_FREE(&path);
	free(seen);
	return rc;
}

static int finish(struct graph *g, const struct decode *d, struct cairn_vaddr entry)
{
	resolve(g, d);
	g->entry = graph_at(g, entry.v);
	struct calls silent = {0};
	int rc = find_orphans(g, &silent);
	if (!rc)
		rc = list_jumps(g, d);
	if (!rc)
		rc = join_loops(g, &silent);
	VEC_FREE(&silent.v);
	return rc;
}

static void note_line0(struct graph *g, struct graph_insn *insn, const struct elf *code)
{
	struct insn decoded;
	const uint8_t *bytes;
	size_t n;
	insn->is_line0 = g->has_line0 = true;
	insn->only_moves = elf_code_at(code, (struct cairn_vaddr){insn->at}, &bytes, &n) &&
			   insn_decode(bytes, n, insn->at, &decoded) && only_moves(bytes, &decoded);
}

/* GCC has a line for everything. */
static int add_positions(struct graph *g, const struct elf *code, const struct dw_unit *u)
{
	int64_t n = dw_unit_is_gcc(u) ? 0 : dw_unit_positions(u, &g->positions, NULL);
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

bool graph_returns(const struct graph *g, uint32_t call)
{
	uint64_t to = 0;
	for (size_t i = 0; i < g->calls.n && !to; i++)
		to = g->calls.p[i].from == call ? g->calls.p[i].to : 0;
	for (size_t i = 0; i < g->calls.n && to; i++) {
		uint32_t next = g->v.p[g->calls.p[i].from].next;
		if (g->calls.p[i].to == to && next != GRAPH_NONE && !g->v.p[next].is_target && !g->v.p[next].is_nop)
			return true;
	}
	return false;
}

const struct dw_position *graph_position(const struct graph *g, uint32_t i)
{
	size_t k = dw_positions_from(g->positions, g->n_positions, g->v.p[i].at);
	return k == g->n_positions || g->positions[k].is_end || !g->positions[k].line ? NULL : &g->positions[k];
}

/* An empty graph, with the memory of another one's instructions if there is one. */
static struct graph *empty_graph(struct graph *old)
{
	struct graph *g = calloc(1, sizeof(*g));
	if (g && old) {
		g->v.p = old->v.p;
		g->v.cap = old->v.cap;
		g->calls.p = old->calls.p;
		g->calls.cap = old->calls.cap;
		old->v.p = NULL;
		old->calls.p = NULL;
	}
	graph_free(old);
	return g;
}

int graph_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry, struct graph **ret)
{
	struct graph *g = empty_graph(*ret);
	struct decode d = {.graph = g};
	*ret = NULL;
	if (!g)
		return -ENOMEM;
	int rc = code_visit(code, function, add_insn, &d);
	if (!rc)
		rc = finish(g, &d, entry);
	if (!rc)
		rc = add_positions(g, code, function->unit);
	VEC_FREE(&d.jumps);
	if (!rc)
		*ret = g;
	else
		graph_free(g);
	return rc == -ENOMEM ? rc : 0;
}

void graph_free(struct graph *g)
{
	if (!g)
		return;
	VEC_FREE(&g->v);
	VEC_FREE(&g->orphans);
	VEC_FREE(&g->indirect);
	VEC_FREE(&g->calls);
	free(g->jumps);
	free(g->jumps_to);
	free(g->by_order);
	free(g->backward);
	free(g);
}
