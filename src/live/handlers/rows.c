/* SPDX-License-Identifier: BSD-2-Clause */
#include "handlers/handlers.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"

#define NO_ROW UINT32_MAX

/* The words of struct pt_regs that the registers of DWARF are, and the instruction pointer. */
#if defined(__x86_64__)
static const uint8_t words[] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
#else
#error "the words of struct pt_regs of this processor are not known"
#endif

static const uint8_t codes[FETCH_N_CODES] = {
	[FETCH_REG] = CAIRN_LOC_OP_REG,     [FETCH_CONST] = CAIRN_LOC_OP_CONST,
	[FETCH_LOAD] = CAIRN_LOC_OP_LOAD,   [FETCH_COPY] = CAIRN_LOC_OP_COPY,
	[FETCH_STORE] = CAIRN_LOC_OP_STORE, [FETCH_STORE_REG] = CAIRN_LOC_OP_STORE,
	[FETCH_SAVE] = CAIRN_LOC_OP_SAVE,   [FETCH_SEXT] = CAIRN_LOC_OP_SEXT,
	[FETCH_ZEXT] = CAIRN_LOC_OP_ZEXT,   [FETCH_NEG] = CAIRN_LOC_OP_NEG,
	[FETCH_NOT] = CAIRN_LOC_OP_NOT,     [FETCH_ADD] = CAIRN_LOC_OP_ADD,
	[FETCH_SUB] = CAIRN_LOC_OP_SUB,     [FETCH_MUL] = CAIRN_LOC_OP_MUL,
	[FETCH_AND] = CAIRN_LOC_OP_AND,     [FETCH_OR] = CAIRN_LOC_OP_OR,
	[FETCH_XOR] = CAIRN_LOC_OP_XOR,     [FETCH_SHL] = CAIRN_LOC_OP_SHL,
	[FETCH_SHR] = CAIRN_LOC_OP_SHR,     [FETCH_SAR] = CAIRN_LOC_OP_SAR,
	[FETCH_EQ] = CAIRN_LOC_OP_EQ,       [FETCH_NE] = CAIRN_LOC_OP_NE,
	[FETCH_LT] = CAIRN_LOC_OP_LT,       [FETCH_LE] = CAIRN_LOC_OP_LE,
	[FETCH_GT] = CAIRN_LOC_OP_GT,       [FETCH_GE] = CAIRN_LOC_OP_GE,
};

struct row {
	const struct trace_located_arg *arg;
	uint8_t memory; /* CAIRN_LOC_F_KERNEL, or 0 */
	VEC(struct cairn_loc_entry) v;
};

static bool add(struct row *r, struct cairn_loc_entry entry)
{
	return VEC_ADD(&r->v, entry);
}

/* ---- operations ---- */

static bool is_slot(uint8_t reg)
{
	return reg >= FETCH_SLOT && reg < FETCH_SLOT + CAIRN_LOC_TABLE_SLOTS;
}

static bool is_register(uint8_t reg)
{
	return reg < sizeof(words);
}

/* What the program can do of an operation; the planner makes others for expressions only. */
static bool can_do(const struct trace_located_arg *arg, const struct fetch_op *op)
{
	uint32_t to = op->out - arg->out;

	if (op->code != FETCH_REG && op->code != FETCH_STORE_REG && !codes[op->code])
		return false;
	if (op->code == FETCH_REG || op->code == FETCH_STORE_REG)
		return is_register(op->reg);
	if (op->code == FETCH_SAVE)
		return is_slot(op->reg);
	if (op->code == FETCH_STORE)
		return to / 8 == (to + op->size - 1) / 8;
	if (op->code == FETCH_COPY)
		return op->size <= 4;
	return !(op->flags & FETCH_F_FILE) || is_register(op->reg) || is_slot(op->reg);
}

static bool can_do_all(const struct trace_located_arg *arg)
{
	for (uint32_t i = 0; i < arg->n_ops; i++)
		if (!can_do(arg, &arg->ops[i]))
			return false;
	return arg->n_ops > 0;
}

static struct cairn_loc_entry operand(const struct fetch_op *op, uint8_t memory)
{
	struct cairn_loc_entry e = {
		.kind = codes[op->code], .size = op->size, .flags = memory, .imm = op->imm};

	if (op->code == FETCH_REG || (op->flags & FETCH_F_FILE && is_register(op->reg))) {
		e.flags |= CAIRN_LOC_F_REG;
		e.reg = words[op->reg];
	} else if (op->code == FETCH_SAVE || op->flags & FETCH_F_FILE) {
		e.flags |= CAIRN_LOC_F_SLOT;
		e.reg = (uint8_t)(op->reg - FETCH_SLOT);
	}
	if (op->flags & FETCH_F_SWAP)
		e.flags |= CAIRN_LOC_F_SWAP;
	return e;
}

/* In steps of at most 8 bytes, none of them across the middle of the result. */
static bool add_copy(struct row *r, const struct fetch_op *op)
{
	uint32_t n = 1u << op->size, to = op->out - r->arg->out;

	for (uint32_t i = 0; i < n;) {
		uint32_t room = 8 - (to + i) % 8, size = n - i < room ? n - i : room;
		if (!add(r, (struct cairn_loc_entry){.kind = CAIRN_LOC_OP_COPY,
						     .size = (uint8_t)size,
						     .flags = r->memory,
						     .to = to + i,
						     .imm = op->imm + i}))
			return false;
		i += size;
	}
	return true;
}

static bool add_op(struct row *r, const struct fetch_op *op)
{
	if (op->code == FETCH_COPY)
		return add_copy(r, op);
	if (op->code == FETCH_STORE_REG &&
	    !add(r, (struct cairn_loc_entry){.kind = CAIRN_LOC_OP_REG, .reg = words[op->reg]}))
		return false;
	struct cairn_loc_entry e = operand(op, r->memory);
	if (op->code == FETCH_STORE || op->code == FETCH_STORE_REG) {
		e.to = op->out - r->arg->out;
		e.reg = e.flags = 0;
	}
	/* The address of a load is in the accumulator alone. */
	if (op->code == FETCH_LOAD)
		e.imm = 0;
	return add(r, e);
}

/* ---- arguments ---- */

static struct cairn_loc_entry entry_of(const struct row *r, enum cairn_loc_kind kind)
{
	return (struct cairn_loc_entry){
		.kind = (uint8_t)kind,
		.size = r->arg->n_bytes,
		.flags = (uint8_t)(r->memory | (r->arg->is_signed ? CAIRN_LOC_F_SIGNED : 0))};
}

static struct cairn_loc_entry none(int error)
{
	return (struct cairn_loc_entry){.kind = CAIRN_LOC_IS_NONE, .imm = (uint64_t)(int64_t)error};
}

static bool is_whole_register(const struct trace_located_arg *arg)
{
	const struct fetch_op *op = arg->ops;

	return arg->n_ops == 1 && op->code == FETCH_STORE_REG && op->size == arg->n_bytes &&
	       is_register(op->reg);
}

/* "reg; copy", as often as it takes: all of it is from one address on. */
static bool is_at_register(const struct trace_located_arg *arg)
{
	uint32_t done = 0;

	if (arg->n_ops < 2 || arg->ops->code != FETCH_REG || !is_register(arg->ops->reg))
		return false;
	for (uint32_t i = 1; i < arg->n_ops; i++) {
		const struct fetch_op *op = &arg->ops[i];
		if (op->code != FETCH_COPY || op->out - arg->out != done ||
		    op->imm != arg->ops[1].imm + done)
			return false;
		done += 1u << op->size;
	}
	return done == arg->n_bytes;
}

static bool add_constant(struct row *r, struct cairn_loc_entry *ret)
{
	const struct trace_located_arg *arg = r->arg;
	uint64_t halves[2] = {0};

	memcpy(halves, arg->constant, arg->n_bytes);
	*ret = entry_of(r, CAIRN_LOC_IS_CONST);
	ret->imm = halves[0];
	if (arg->n_bytes <= 8)
		return true;
	*ret = entry_of(r, CAIRN_LOC_BY_OPS);
	ret->to = (uint32_t)r->v.n;
	for (unsigned int i = 0; i < 2; i++)
		if (!add(r,
			 (struct cairn_loc_entry){.kind = CAIRN_LOC_OP_CONST, .imm = halves[i]}) ||
		    !add(r, (struct cairn_loc_entry){
				    .kind = CAIRN_LOC_OP_STORE, .size = 8, .to = 8 * i}))
			return false;
	return add(r, (struct cairn_loc_entry){.kind = CAIRN_LOC_OP_END});
}

static bool add_ops(struct row *r, struct cairn_loc_entry *ret)
{
	size_t from = r->v.n;

	*ret = none(-ENOENT);
	if (!can_do_all(r->arg))
		return true;
	for (uint32_t i = 0; i < r->arg->n_ops; i++)
		if (!add_op(r, &r->arg->ops[i]))
			return false;
	if (!add(r, (struct cairn_loc_entry){.kind = CAIRN_LOC_OP_END}))
		return false;
	if (r->v.n - from > CAIRN_LOC_TABLE_OPS_MAX) {
		r->v.n = from;
		return true;
	}
	*ret = entry_of(r, CAIRN_LOC_BY_OPS);
	ret->to = (uint32_t)from;
	return true;
}

static bool add_arg(struct row *r, struct cairn_loc_entry *ret)
{
	const struct trace_located_arg *arg = r->arg;

	if (arg->is_large || !arg->is_available) {
		*ret = none(arg->is_large ? -E2BIG : -ENOENT);
		return true;
	}
	if (arg->constant)
		return add_constant(r, ret);
	if (is_whole_register(arg)) {
		*ret = entry_of(r, CAIRN_LOC_IN_REG);
		ret->reg = words[arg->ops->reg];
		return true;
	}
	if (is_at_register(arg)) {
		*ret = entry_of(r, CAIRN_LOC_IN_MEMORY);
		ret->reg = words[arg->ops->reg];
		ret->imm = arg->ops[1].imm;
		return true;
	}
	return add_ops(r, ret);
}

/* The head and the arguments come first, then the operations. */
static bool fill_row(const struct cairn_trace *t, uint32_t site, uint64_t cookie, struct row *r)
{
	uint32_t n = trace_located_n(t, site);
	bool is_done = true;

	r->v.n = 0;
	r->memory = t->probes.p[t->sites.p[site]->pub.probe]->file->kernel ? CAIRN_LOC_F_KERNEL : 0;
	for (uint32_t i = 0; i <= n && is_done; i++)
		is_done = add(r, none(-ENOENT));
	if (is_done)
		r->v.p[0] =
			(struct cairn_loc_entry){.kind = CAIRN_LOC_IS_HEAD, .to = n, .imm = cookie};
	for (uint32_t i = 0; i < n && is_done; i++) {
		struct trace_located_arg arg;
		struct cairn_loc_entry entry = {0};
		trace_located_arg(t, site, i, &arg);
		r->arg = &arg;
		is_done = add_arg(r, &entry);
		if (is_done)
			r->v.p[i + 1] = entry;
	}
	return is_done;
}

/* ---- all sites ---- */

static bool is_row(const struct loc_rows *rows, uint32_t i, const struct row *r)
{
	size_t from = rows->starts.p[i];
	size_t to = i + 1 < rows->starts.n ? rows->starts.p[i + 1] : rows->entries.n;

	return to - from == r->v.n &&
	       !memcmp(rows->entries.p + from, r->v.p, r->v.n * sizeof(*r->v.p));
}

/* Rows of one hash that are others are rare, and added again. */
static int keep_row(struct loc_rows *rows, struct map *seen, const struct row *r, uint32_t *ret)
{
	uint64_t hash = map_hash_bytes(r->v.p, r->v.n * sizeof(*r->v.p)), found;

	if (map_get(seen, hash, &found) && is_row(rows, (uint32_t)found, r)) {
		*ret = rows->starts.p[found];
		return 0;
	}
	*ret = (uint32_t)rows->entries.n;
	if (map_put(seen, hash, rows->starts.n) < 0 || !VEC_ADD(&rows->starts, *ret))
		return -ENOMEM;
	for (size_t i = 0; i < r->v.n; i++)
		if (!VEC_ADD(&rows->entries, r->v.p[i]))
			return -ENOMEM;
	return 0;
}

int rows_make(const struct cairn_trace *t, uint64_t cookie, struct loc_rows *ret,
	      struct cairn_err *err)
{
	struct map seen;
	struct row row = {0};
	uint32_t n = cairn_trace_n_sites(t);
	int e = 0;

	*ret = (struct loc_rows){.row_of = calloc(n + 1u, sizeof(*ret->row_of))};
	map_init(&seen);
	for (uint32_t i = 0; ret->row_of && i < n && !e; i++) {
		ret->row_of[i] = NO_ROW;
		if (cairn_trace_site(t, i)->refused)
			continue;
		e = fill_row(t, i, cookie, &row) ? keep_row(ret, &seen, &row, &ret->row_of[i])
						 : -ENOMEM;
	}
	map_fini(&seen);
	VEC_FREE(&row.v);
	return !ret->row_of || e ? err_nomem(err, "the rows of arguments") : 0;
}

/* ---- cookies ---- */

/* Its byte of a cookie. */
static uint32_t near_of(const struct cairn_loc_entry *e)
{
	bool is_whole = e->size && e->size <= 8 && !(e->size & (e->size - 1));

	if (e->kind != CAIRN_LOC_IN_REG || e->reg >= CAIRN_LOC_NEAR_WORDS || !is_whole)
		return 0;
	return CAIRN_LOC_NEAR(e->reg, __builtin_ctz(e->size), e->flags & CAIRN_LOC_F_SIGNED);
}

uint64_t rows_cookie(const struct loc_rows *rows, uint32_t site, uint32_t first)
{
	const struct cairn_loc_entry *head = rows->entries.p + rows->row_of[site];
	uint32_t near = 0;

	for (uint32_t i = 0; i < head->to && i < CAIRN_LOC_NEAR_ARGS; i++)
		near |= near_of(head + 1 + i) << (8 * i);
	return CAIRN_LOC_COOKIE(first + rows->row_of[site], near);
}

void rows_fini(struct loc_rows *rows)
{
	VEC_FREE(&rows->entries);
	VEC_FREE(&rows->starts);
	free(rows->row_of);
}
