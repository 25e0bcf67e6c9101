/* SPDX-License-Identifier: BSD-2-Clause */
#include "loc/graph.h"

#include <errno.h>
#include <stdlib.h>

#include "loc/code.h"

struct decode {
	struct graph *graph;
	VEC(uint64_t) targets; /* one for each instruction; 0 without */
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

static bool goes_on(enum insn_flow flow)
{
	return flow != INSN_JUMP && flow != INSN_JUMP_INDIRECT && flow != INSN_RETURN;
}

static int add_insn(void *arg, const struct code_insn *insn)
{
	struct decode *d = arg;
	enum insn_flow flow = insn->decoded.flow;
	bool direct = flow == INSN_JUMP || flow == INSN_BRANCH;
	bool call = flow == INSN_CALL || flow == INSN_CALL_INDIRECT;
	struct graph_insn g = {
		.at = insn->at,
		.next = goes_on(flow) ? 0 : GRAPH_NONE,
		.target = GRAPH_NONE,
		.order = UINT32_MAX,
		.len = insn->decoded.len,
		.is_indirect = flow == INSN_JUMP_INDIRECT,
		.is_branch = direct,
		.is_call = call,
		.has_effect = call || insn->decoded.writes_memory,
		.is_nop = is_nop(insn->bytes, insn->decoded.len),
	};
	return VEC_ADD(&d->graph->v, g) && VEC_ADD(&d->targets, direct ? insn->decoded.target : 0) ? 0 : -ENOMEM;
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

static int by_address(const void *a, const void *b)
{
	const struct graph_insn *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

/*
 * Ranges come in any order, so targets are kept by address until all instructions have their place: in a copy of the
 * decoded order.
 */
static void resolve(struct graph *g, const uint64_t *decoded_at, const uint64_t *targets, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t at = graph_at(g, decoded_at[i]);
		if (at != GRAPH_NONE && targets[i])
			g->v.p[at].target = graph_at(g, targets[i]);
	}
	for (size_t i = 0; i < n; i++) {
		struct graph_insn *insn = &g->v.p[i];
		bool adjacent = i + 1 < n && g->v.p[i + 1].at == insn->at + insn->len;
		if (insn->next != GRAPH_NONE)
			insn->next = adjacent ? (uint32_t)i + 1 : GRAPH_NONE;
	}
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
	if (!silent->v.n || g->entry == GRAPH_NONE)
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
static int list_jumps(struct graph *g)
{
	g->jumps_to = calloc(g->v.n + 2, sizeof(*g->jumps_to));
	g->jumps = calloc(g->v.n + 1, sizeof(*g->jumps));
	if (!g->jumps_to || !g->jumps)
		return -ENOMEM;
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.p[i].target != GRAPH_NONE)
			g->jumps_to[g->v.p[i].target + 2]++;
	for (size_t i = 2; i < g->v.n + 2; i++)
		g->jumps_to[i] += g->jumps_to[i - 1];
	for (size_t i = 0; i < g->v.n; i++)
		if (g->v.p[i].target != GRAPH_NONE)
			g->jumps[g->jumps_to[g->v.p[i].target + 1]++] = (uint32_t)i;
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

struct step {
	uint32_t insn, k;
};

/* Number the instructions so that, loops aside, each has a higher number than those before it. */
static int number(struct graph *g)
{
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
	uint64_t *decoded_at = calloc(g->v.n + 1, sizeof(*decoded_at));
	if (!decoded_at)
		return -ENOMEM;
	for (size_t i = 0; i < g->v.n; i++)
		decoded_at[i] = g->v.p[i].at;
	qsort(g->v.p, g->v.n, sizeof(*g->v.p), by_address);
	resolve(g, decoded_at, d->targets.p, g->v.n);
	free(decoded_at);
	g->entry = graph_at(g, entry.v);
	struct calls silent = {0};
	int rc = find_orphans(g, &silent);
	if (!rc)
		rc = list_jumps(g);
	if (!rc)
		rc = join_loops(g, &silent);
	VEC_FREE(&silent.v);
	return rc ? rc : number(g);
}

int graph_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry, struct graph **ret)
{
	struct graph *g = calloc(1, sizeof(*g));
	struct decode d = {.graph = g};
	*ret = NULL;
	if (!g)
		return -ENOMEM;
	int rc = code_visit(code, function, add_insn, &d);
	if (!rc)
		rc = finish(g, &d, entry);
	VEC_FREE(&d.targets);
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
	free(g->jumps);
	free(g->jumps_to);
	free(g->by_order);
	free(g);
}
