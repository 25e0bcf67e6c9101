/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The targets of a switch's jump
 *
 * A compiler makes of a switch a table of targets in constant data, and a jump through it, after a
 * comparison that keeps the index within the table (insn/table.h has the instructions). The targets
 * of a jump are known if all of this is seen:
 *
 *  - The jump goes to table + entry, or to an entry that is a whole address.
 *  - The table's address is one constant, on all paths to the jump. A compiler may take it long
 *    before the jump, before a loop for instance.
 *  - The index is compared with a constant, or masked, on the only path to the jump.
 *  - The table is in constant data. No other table of the function begins in it. Each of its
 *    entries leads to an instruction of the function.
 *
 * A compiler's index may have a narrower range than the comparison shows. Then entries are read
 * that no jump takes; they can only add edges.
 */
#include <errno.h>
#include <stdlib.h>

#include "insn/insn.h"
#include "insn/table.h"
#include "loc/cfg.h"

enum {
	REGISTERS = 16,
	ENTRIES_MAX = 4096,
	EDGES_MAX = 1 << 18,
	/* Instructions between the comparison and the jump. */
	BACK_MAX = 64,
	/* Instructions that the search for addresses looks at, in all of one function. */
	LOOKS_MAX = 1 << 20,
};

struct table {
	uint32_t jump;
	uint64_t at;
	uint64_t n;
	bool is_whole; /* entries are addresses of 8 bytes, not distances of 4 */
};

struct tables {
	const struct elf *code;
	struct cfg *g;
	VEC(struct table) v;
	VEC(uint32_t) todo;
	uint8_t *seen; /* by instruction */
	size_t looks;
	int rc;
};

/* ---- instructions, backwards ---- */

static bool look(struct tables *t, uint32_t i, struct insn_table *ret)
{
	const struct cfg_insn *insn = &t->g->v.p[i];
	const uint8_t *bytes;
	size_t n;

	return elf_code_at(t->code, (struct cairn_vaddr){insn->at}, &bytes, &n) &&
	       insn_table(bytes, n, insn->at, ret);
}

/* The instruction that control always comes from; GRAPH_NONE: there are several, or none. */
static uint32_t only_before(const struct cfg *g, uint32_t i)
{
	uint32_t k = 0, b;

	if (i == g->entry || g->v.p[i].is_orphan)
		return GRAPH_NONE;
	b = cfg_before(g, i, &k);
	return b != GRAPH_NONE && cfg_before(g, i, &k) == GRAPH_NONE ? b : GRAPH_NONE;
}

static bool has(uint16_t registers, uint8_t reg)
{
	return registers >> reg & 1;
}

/* ---- where the table is ---- */

/* All instructions from which control may come, that were not looked at. */
static bool add_before(struct tables *t, uint32_t i)
{
	const struct cfg *g = t->g;
	uint32_t k = 0, b;
	bool any = false;

	if (i == g->entry)
		return false;
	while ((b = cfg_before(g, i, &k)) != GRAPH_NONE) {
		any = true;
		if (t->seen[b])
			continue;
		t->seen[b] = 1;
		if (!VEC_ADD(&t->todo, b)) {
			t->rc = -ENOMEM;
			return false;
		}
	}
	return any;
}

/* Whether an instruction leaves the register as it is. */
static bool passes(struct tables *t, uint32_t i, uint8_t reg)
{
	const struct cfg_insn *insn = &t->g->v.p[i];
	const uint8_t *bytes;
	uint8_t len;
	size_t n;

	return elf_code_at(t->code, (struct cairn_vaddr){insn->at}, &bytes, &n) &&
	       !has(insn_named_registers(bytes, n, &len), reg);
}

/*
 * The constant address that a register holds before an instruction. Indirect jumps are assumed to
 * lead to all instructions that nothing else leads to, as in all of the graph.
 */
static bool address_before(struct tables *t, uint32_t i, uint8_t reg, uint64_t *ret)
{
	bool any = false, ok;

	memset(t->seen, 0, t->g->v.n);
	t->todo.n = 0;
	ok = add_before(t, i);
	while (ok && t->todo.n) {
		uint32_t b = t->todo.p[--t->todo.n];
		struct insn_table step = {0};
		ok = ++t->looks < LOOKS_MAX;
		if (!ok)
			break;
		if (passes(t, b, reg) || (look(t, b, &step) && !has(step.writes, reg))) {
			ok = add_before(t, b);
			continue;
		}
		ok = step.kind == INSN_TABLE_ADDRESS && step.to == reg &&
		     (!any || *ret == step.value);
		*ret = step.value;
		any = true;
	}
	return ok && any;
}

/* ---- how large the index may be ---- */

/* On the way back to a comparison. */
struct bounds {
	uint64_t of[REGISTERS]; /* UINT64_MAX: unknown */
	uint8_t reg;            /* what holds the index here */
	/* The result that a comparison further back had, as control came here. */
	enum insn_relation relation;
};

static enum insn_relation opposite(enum insn_relation r)
{
	static const enum insn_relation of[] = {
		[INSN_ABOVE] = INSN_BELOW_OR_EQUAL,
		[INSN_ABOVE_OR_EQUAL] = INSN_BELOW,
		[INSN_BELOW] = INSN_ABOVE_OR_EQUAL,
		[INSN_BELOW_OR_EQUAL] = INSN_ABOVE,
	};

	return of[r];
}

/* A branch at @i, after which control came to @to. */
static void note_branch(struct bounds *b, const struct cfg *g, uint32_t i, uint32_t to,
			const struct insn_table *step)
{
	enum insn_relation r = g->v.p[i].target == to ? step->relation : opposite(step->relation);

	if (r == INSN_BELOW || r == INSN_BELOW_OR_EQUAL)
		b->relation = r;
}

static void note_comparison(struct bounds *b, const struct insn_table *step)
{
	if (b->relation == INSN_BELOW_OR_EQUAL)
		b->of[step->from] = step->value;
	else if (b->relation == INSN_BELOW && step->value)
		b->of[step->from] = step->value - 1;
	b->relation = INSN_UNRELATED;
}

/* An instruction that changes registers. False: where the index comes from is not seen. */
static bool note_change(struct bounds *b, const struct insn_table *step)
{
	bool is_copy = step->kind == INSN_TABLE_COPY;

	if (step->writes_flags)
		b->relation = INSN_UNRELATED;
	if (is_copy && step->to == step->from)
		return true;
	for (uint8_t r = 0; r < REGISTERS; r++)
		if (has(step->writes, r))
			b->of[r] = UINT64_MAX;
	if (step->kind == INSN_TABLE_MASK)
		b->of[step->to] = step->value;
	else if (has(step->writes, b->reg))
		b->reg = is_copy && step->to == b->reg ? step->from : REGISTERS;
	return b->reg < REGISTERS;
}

/* The largest number that a register may hold before an instruction. */
static bool bound_before(struct tables *t, uint32_t i, uint8_t reg, uint64_t *ret)
{
	struct bounds b = {.reg = reg};
	struct insn_table step;
	uint32_t to;

	for (uint8_t r = 0; r < REGISTERS; r++)
		b.of[r] = UINT64_MAX;
	for (unsigned int n = 0; n < BACK_MAX && b.of[b.reg] == UINT64_MAX; n++) {
		to = i;
		i = only_before(t->g, i);
		if (i == GRAPH_NONE || !look(t, i, &step))
			return false;
		if (step.kind == INSN_TABLE_BRANCH)
			note_branch(&b, t->g, i, to, &step);
		else if (step.kind == INSN_TABLE_COMPARE)
			note_comparison(&b, &step);
		else if (!note_change(&b, &step))
			return false;
	}
	*ret = b.of[b.reg];
	return *ret < ENTRIES_MAX;
}

/* ---- one jump ---- */

/* The sum that a register holds before an instruction. */
static bool find_sum(struct tables *t, uint32_t i, uint8_t reg, uint32_t *ret,
		     struct insn_table *sum)
{
	for (unsigned int n = 0; n < BACK_MAX; n++) {
		i = only_before(t->g, i);
		if (i == GRAPH_NONE || !look(t, i, sum))
			return false;
		*ret = i;
		if (has(sum->writes, reg))
			return sum->kind == INSN_TABLE_SUM && sum->to == reg &&
			       sum->from != sum->to;
	}
	return false;
}

/* The load of the entry that is one of the sum's parts. */
static bool find_load(struct tables *t, uint32_t i, const struct insn_table *sum, uint32_t *ret,
		      struct insn_table *load)
{
	for (unsigned int n = 0; n < BACK_MAX; n++) {
		i = only_before(t->g, i);
		if (i == GRAPH_NONE || !look(t, i, load))
			return false;
		*ret = i;
		if (load->kind == INSN_TABLE_LOAD && (load->to == sum->to || load->to == sum->from))
			return true;
		if ((has(load->writes, sum->to) || has(load->writes, sum->from)) &&
		    load->kind != INSN_TABLE_ADDRESS)
			return false;
	}
	return false;
}

/* A jump to table + entry. */
static bool find_table(struct tables *t, uint32_t jump, uint8_t reg, struct table *ret)
{
	struct insn_table sum, load;
	uint32_t sum_at, load_at;
	uint64_t added;

	return find_sum(t, jump, reg, &sum_at, &sum) &&
	       find_load(t, sum_at, &sum, &load_at, &load) &&
	       bound_before(t, load_at, load.index, &ret->n) &&
	       address_before(t, load_at, load.base, &ret->at) &&
	       address_before(t, sum_at, load.to == sum.to ? sum.from : sum.to, &added) &&
	       added == ret->at;
}

static void look_at_jump(struct tables *t, uint32_t jump)
{
	struct table table = {.jump = jump};
	struct insn_table step;
	bool ok = look(t, jump, &step);

	if (ok && step.kind == INSN_TABLE_JUMP) {
		ok = find_table(t, jump, step.from, &table);
	} else if (ok && step.kind == INSN_TABLE_JUMP_WHOLE) {
		table.is_whole = true;
		table.at = step.value;
		ok = bound_before(t, jump, step.index, &table.n);
	} else {
		ok = false;
	}
	table.n++; /* the largest index is one of them */
	if (ok && !VEC_ADD(&t->v, table))
		t->rc = -ENOMEM;
}

/* ---- entries ---- */

static unsigned int entry_bytes(const struct table *table)
{
	return table->is_whole ? 8 : 4;
}

/* The section of constants that has the whole table. */
static const struct elf_section *section_of(const struct tables *t, const struct table *table)
{
	enum { WRITE = 1, ALLOC = 2 };
	uint64_t size = table->n * entry_bytes(table);

	for (size_t i = 0; i < elf_n_sections(t->code); i++) {
		const struct elf_section *s = elf_section_at(t->code, i);
		if (s->data && (s->flags & (WRITE | ALLOC)) == ALLOC && s->addr.v <= table->at &&
		    table->at - s->addr.v <= s->size && s->size - (table->at - s->addr.v) >= size)
			return s;
	}
	return NULL;
}

static bool overlaps_another(const struct tables *t, const struct table *table)
{
	for (size_t i = 0; i < t->v.n; i++)
		if (t->v.p[i].at > table->at &&
		    t->v.p[i].at - table->at < table->n * entry_bytes(table))
			return true;
	return false;
}

static struct cursor entries_of(const struct table *table, const struct elf_section *s)
{
	return cursor_of(&s->src, s->data + (table->at - s->addr.v), table->n * entry_bytes(table),
			 false, NULL);
}

static uint64_t next_target(const struct table *table, struct cursor *c)
{
	if (table->is_whole)
		return cur_u64(c);
	return table->at + (uint64_t)(int64_t)(int32_t)cur_u32(c);
}

static bool add_edge(struct tables *t, uint32_t from, uint64_t at)
{
	uint32_t to = cfg_at(t->g, at);

	if (to == GRAPH_NONE)
		return false;
	if (!t->seen[to] && !VEC_ADD(&t->g->edges, ((struct cfg_edge){.from = from, .to = to})))
		t->rc = -ENOMEM;
	t->seen[to] = 1;
	return !t->rc;
}

/* None, unless all entries lead to instructions of the function. */
static void add_edges(struct tables *t, const struct table *table)
{
	const struct elf_section *s = section_of(t, table);
	size_t first = t->g->edges.n;
	struct cursor c;
	bool ok = s && !overlaps_another(t, table) && first + table->n <= EDGES_MAX;

	if (!ok)
		return;
	memset(t->seen, 0, t->g->v.n);
	c = entries_of(table, s);
	while (ok && cur_more(&c))
		ok = add_edge(t, table->jump, next_target(table, &c));
	if (!ok)
		t->g->edges.n = first;
}

/* ---- all of them ---- */

int cfg_find_tables(const struct elf *code, struct cfg *g)
{
	struct tables t = {.code = code, .g = g};

	if (!g->indirect.n || g->entry == GRAPH_NONE)
		return 0;
	t.seen = malloc(g->v.n);
	t.rc = t.seen ? 0 : -ENOMEM;
	for (size_t i = 0; i < g->indirect.n && !t.rc; i++)
		look_at_jump(&t, g->indirect.p[i]);
	for (size_t i = 0; i < t.v.n && !t.rc; i++)
		add_edges(&t, &t.v.p[i]);
	VEC_FREE(&t.v);
	VEC_FREE(&t.todo);
	free(t.seen);
	return t.rc ? t.rc : cfg_use_edges(g);
}
