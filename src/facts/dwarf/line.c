/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line programs: the rows
 *
 * A program is run over one row of registers; some opcodes append the row to the table. Rows
 * between two DW_LNE_end_sequence belong together and rise by address. A special opcode does all at
 * once:
 *
 *	line base -5, line range 14, opcode base 13, opcode 0x4b (75):
 *	75 - 13 = 62 = 4 * 14 + 6    address += 4, line += -5 + 6, append
 *
 * The effect of each special opcode is computed once per program: a division for each of a kernel's
 * seven million rows would be a fifth of the work.
 *
 * Views. Several rows may have one address; GCC numbers them and refers to the numbers in location
 * lists (loclists.c). The assembler and we count alike: from 0, one more per appended row, back to
 * 0 when an opcode moves the address. DW_LNS_fixed_advance_pc does not reset it: the writer of that
 * opcode does not know yet whether it moves.
 *
 * Order. Sequences come in any order, and those of a linked file meet: the end row of one has the
 * address of the first row of the next. The result is sorted by address; at one address end rows
 * come first, so that the last row at or below an address is the one that describes it. Only the
 * end of an empty sequence stays after its own rows. Sequences that a linker dropped (they start at
 * 0 or the largest address) are left out.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/line.h"
#include "dwarf/lists.h"

struct dw_rows {
	struct dw_row *p;
	size_t n;
};

struct sequence {
	size_t from, n;
	uint64_t start;
};

struct machine {
	const struct dw_unit *u;
	const struct dw_line_header *h;
	struct cursor *c;
	/* the registers, as they are appended; view counts no farther than it can */
	struct dw_row row;
	uint32_t op_index;
	struct {
		uint8_t operations;
		int16_t lines;
	} special[256]; /* by opcode, when the line range is not 0 */
	VEC(struct dw_row) rows;
	VEC(struct sequence) sequences;
	size_t from; /* first row of the open sequence */
	/*
	 * Instead of keeping rows: the receiver of those that are gathered in rows, and the result
	 * other than 0 that ended the run.
	 */
	int (*visit)(void *ctx, const struct dw_row *rows, size_t n);
	void *ctx;
	int ended;
	/* With visit: end rows are wanted too, and no sequence that the linker dropped. */
	bool whole;
	bool started; /* the open sequence has a row */
	bool dropped;
};

void dw_rows_free(struct dw_rows *rows)
{
	if (rows)
		free(rows->p);
	free(rows);
}

static void reset(struct machine *m)
{
	m->row = (struct dw_row){.file = 1, .line = 1, .is_stmt = m->h->default_is_stmt};
	m->op_index = 0;
	m->from = m->rows.n;
	m->started = m->dropped = false;
}

/* Move by @n operations. */
static inline void advance(struct machine *m, uint64_t n)
{
	uint64_t ops = m->op_index + n;
	if (!n)
		return;
	m->row.view = 0;
	if (m->h->max_ops == 1) {
		m->row.at.v += m->h->min_inst * n;
		return;
	}
	m->row.at.v += m->h->min_inst * (ops / m->h->max_ops);
	m->op_index = (uint32_t)(ops % m->h->max_ops);
}

/* Rows that were gathered, to their visitor; false when it ends the run. */
static bool hand_over(struct machine *m)
{
	size_t n = m->rows.n;
	m->rows.n = 0;
	m->ended = n && !m->ended ? m->visit(m->ctx, m->rows.p, n) : m->ended;
	return !m->ended;
}

/* Room for a row; false when there is no memory, or the visitor ends the run. */
static bool make_room(struct machine *m)
{
	if (m->rows.n < m->rows.cap)
		return true;
	return m->visit ? hand_over(m) : VEC_RESERVE(&m->rows, 1);
}

static bool add_row(struct machine *m, const struct dw_row *row)
{
	bool ok = make_room(m);
	if (ok)
		m->rows.p[m->rows.n++] = *row;
	return ok;
}

static bool append(struct machine *m)
{
	if (m->whole && !m->started)
		m->dropped = dw_is_discarded(m->u, m->row.at.v);
	m->started = true;
	bool ok = m->dropped || add_row(m, &m->row);
	m->row.view += m->row.view < UINT16_MAX;
	m->row.prologue_end = false;
	return ok;
}

/* For an end row, until the table is sorted: its sequence covers something. */
enum { NOT_EMPTY = 1 };

static bool end_sequence(struct machine *m)
{
	if (m->visit) {
		struct dw_row end = {.at = m->row.at, .end_sequence = true};
		bool ok = !m->whole || !m->started || m->dropped || add_row(m, &end);
		reset(m);
		return ok;
	}
	uint64_t start = m->rows.n > m->from ? m->rows.p[m->from].at.v : m->row.at.v;
	if (dw_is_discarded(m->u, start)) {
		m->rows.n = m->from;
		reset(m);
		return true;
	}
	struct dw_row end = {.at = m->row.at,
			     .end_sequence = true,
			     .column = start < m->row.at.v ? NOT_EMPTY : 0};
	if (!add_row(m, &end))
		return false;
	struct sequence s = {.from = m->from, .n = m->rows.n - m->from, .start = start};
	reset(m);
	return VEC_ADD(&m->sequences, s);
}

static void learn_specials(struct machine *m)
{
	const struct dw_line_header *h = m->h;
	for (unsigned int op = h->opcode_base; op < 256 && h->line_range; op++) {
		uint8_t adjusted = (uint8_t)(op - h->opcode_base);
		m->special[op].operations = adjusted / h->line_range;
		m->special[op].lines = (int16_t)(h->line_base + adjusted % h->line_range);
	}
}

static inline bool special(struct machine *m, uint8_t op)
{
	if (!m->h->line_range) {
		dw_expected(m->c, "no special opcode, since the line range is 0");
		return true;
	}
	advance(m, m->special[op].operations);
	m->row.line += (uint32_t)m->special[op].lines;
	return append(m);
}

static bool extended(struct machine *m)
{
	struct cursor op = cur_sub(m->c, cur_uleb(m->c));
	uint8_t code = cur_u8(&op);
	if (op.failed) {
		m->c->failed = true;
		return true;
	}
	switch (code) {
	case DW_LNE_end_sequence:
		return end_sequence(m);
	case DW_LNE_set_address:
		m->row.at.v = cur_uint(&op, (unsigned int)(cur_left(&op) <= 8 ? cur_left(&op) : 8));
		m->op_index = 0;
		m->row.view = 0;
		break;
	default: /* discriminators, files defined late (until DWARF 4), vendors' */
		break;
	}
	return true;
}

static bool standard(struct machine *m, uint8_t op)
{
	uint64_t column;
	switch (op) {
	case DW_LNS_copy:
		return append(m);
	case DW_LNS_advance_pc:
		advance(m, cur_uleb(m->c));
		break;
	case DW_LNS_advance_line:
		m->row.line += (uint32_t)cur_sleb(m->c);
		break;
	case DW_LNS_set_file:
		m->row.file = (uint32_t)cur_uleb(m->c);
		break;
	case DW_LNS_set_column:
		column = cur_uleb(m->c);
		m->row.column = column > UINT16_MAX ? UINT16_MAX : (uint16_t)column;
		break;
	case DW_LNS_negate_stmt:
		m->row.is_stmt = !m->row.is_stmt;
		break;
	case DW_LNS_set_basic_block:
	case DW_LNS_set_epilogue_begin:
		break;
	case DW_LNS_const_add_pc:
		if (!m->h->line_range)
			dw_expected(m->c, "no DW_LNS_const_add_pc, since the line range is 0");
		else
			advance(m, (255 - m->h->opcode_base) / m->h->line_range);
		break;
	case DW_LNS_fixed_advance_pc:
		m->row.at.v += cur_u16(m->c);
		m->op_index = 0;
		break;
	case DW_LNS_set_prologue_end:
		m->row.prologue_end = true;
		break;
	case DW_LNS_set_isa:
		cur_skip_leb(m->c);
		break;
	default: /* an opcode of a later version: the header gives its number of operands */
		for (uint8_t i = 0; i < m->h->opcode_lengths[op - 1]; i++)
			cur_skip_leb(m->c);
	}
	return true;
}

/* A number of one or two bytes, which are there; false for a longer one. */
static inline bool short_uleb(const uint8_t **p, uint32_t *ret)
{
	const uint8_t *at = *p;
	*ret = at[0];
	*p = at + 1;
	if (at[0] < 0x80)
		return true;
	*ret = (at[0] & 0x7fu) | (uint32_t)at[1] << 7;
	*p = at + 2;
	return at[1] < 0x80;
}

/* The sign of the bytes that short_uleb() read, which gave @v. */
static inline int32_t sign_of(uint32_t v, size_t bytes)
{
	uint32_t sign = bytes == 1 ? 0x40 : 0x2000;
	return (int32_t)((v ^ sign) - sign);
}

/*
 * Runs the opcodes that compilers write nearly always, with the registers in local variables. It
 * stops at one that standard(), extended() or append() has to run; those also report errors.
 */
static void run_usual(struct machine *m)
{
	enum { LONGEST = 3 }; /* bytes that are examined for one */
	const uint8_t *p = m->c->pos, *end = m->c->end,
		      *safe = end - p >= LONGEST ? end - LONGEST : p;
	const uint8_t base = m->h->opcode_base;
	const uint64_t inst = m->h->min_inst;
	if (m->h->max_ops != 1 || !m->h->line_range || m->dropped || (m->whole && !m->started) ||
	    m->rows.n >= m->rows.cap)
		return;
	/* The registers are where the next row goes. */
	struct dw_row *r = m->rows.p + m->rows.n, *full = m->rows.p + m->rows.cap - 1;
	*r = m->row;
	while (p < safe) {
		uint8_t op = *p;
		const uint8_t *next = p + 1;
		uint32_t v;
		if (op >= base || op == DW_LNS_copy) {
			if (r == full)
				break;
			if (op >= base) {
				v = m->special[op].operations;
				r->at.v += inst * v;
				if (v)
					r->view = 0;
				r->line += (uint32_t)m->special[op].lines;
			}
			r[1] = r[0];
			r++;
			r->view += r->view < UINT16_MAX;
			r->prologue_end = false;
			p = next;
			continue;
		}
		if (op == DW_LNS_set_column && short_uleb(&next, &v)) {
			r->column = (uint16_t)v;
		} else if (op == DW_LNS_negate_stmt) {
			r->is_stmt = !r->is_stmt;
		} else if (op == DW_LNS_advance_line && short_uleb(&next, &v)) {
			r->line += (uint32_t)sign_of(v, (size_t)(next - p) - 1);
		} else if (op == DW_LNS_set_file && short_uleb(&next, &v)) {
			r->file = v;
		} else if (op == DW_LNS_advance_pc && short_uleb(&next, &v)) {
			r->at.v += inst * v;
			if (v)
				r->view = 0;
		} else if (!op && p[1] && p[1] < 0x80 && p[2] == DW_LNE_set_discriminator &&
			   p[1] <= end - p - 2) {
			next = p + 2 + p[1];
		} else {
			break;
		}
		p = next;
	}
	m->started |= r != m->rows.p + m->rows.n;
	m->row = *r;
	m->c->pos = p;
	m->rows.n = (size_t)(r - m->rows.p);
}

static int run(struct machine *m)
{
	bool ok = true;
	reset(m);
	learn_specials(m);
	while (cur_more(m->c)) {
		run_usual(m);
		if (!cur_more(m->c))
			break;
		uint8_t op = cur_u8(m->c);
		ok = op >= m->h->opcode_base ? special(m, op) : op ? standard(m, op) : extended(m);
		if (!ok)
			break;
	}
	/* The rows before damage count, too. */
	if (m->visit && !m->ended)
		hand_over(m);
	if (m->ended)
		return m->ended;
	if (!ok)
		return err_nomem(m->c->err, "line rows");
	if (!m->c->failed && !m->visit && m->rows.n > m->from)
		dw_expected(m->c, "DW_LNE_end_sequence before the end");
	return m->c->failed ? -EBADMSG : 0;
}

/* ---- order ---- */

static bool goes_before(const struct dw_row *a, const struct dw_row *b)
{
	if (a->at.v != b->at.v)
		return a->at.v < b->at.v;
	bool a_end = a->end_sequence && a->column == NOT_EMPTY;
	bool b_end = b->end_sequence && b->column == NOT_EMPTY;
	return a_end && !b_end;
}

static int compare_sequences(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

static bool sorted(const struct dw_row *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (goes_before(&p[i], &p[i - 1]))
			return false;
	return true;
}

/* Merges [lo, mid) and [mid, hi) of @from; of equal rows the left one comes first. */
static void merge(const struct dw_row *from, struct dw_row *to, size_t lo, size_t mid, size_t hi)
{
	size_t a = lo, b = mid;
	for (size_t i = lo; i < hi; i++) {
		bool right = a == mid || (b < hi && goes_before(&from[b], &from[a]));
		to[i] = right ? from[b++] : from[a++];
	}
}

/*
 * Stable sort of @p with the help of @other, which is as long; the result is in the one returned.
 */
static struct dw_row *merge_sort(struct dw_row *p, struct dw_row *other, size_t n)
{
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * width) {
			size_t mid = lo + width < n ? lo + width : n;
			size_t hi = lo + 2 * width < n ? lo + 2 * width : n;
			merge(p, other, lo, mid, hi);
		}
		struct dw_row *swap = p;
		p = other;
		other = swap;
	}
	return p;
}

static int put_in_order(struct machine *m, struct dw_rows *ret, struct cairn_err *err)
{
	size_t n = m->rows.n, at = 0;
	struct dw_row *p = calloc(n ? n : 1, sizeof(*p));
	if (!p)
		return err_nomem(err, "line rows");
	if (m->sequences.n)
		qsort(m->sequences.p, m->sequences.n, sizeof(*m->sequences.p), compare_sequences);
	for (size_t i = 0; i < m->sequences.n; i++) {
		const struct sequence *s = &m->sequences.p[i];
		memcpy(p + at, m->rows.p + s->from, s->n * sizeof(*p));
		at += s->n;
	}
	/* Only damaged programs, and sequences that lie inside one another, need this. */
	if (!sorted(p, at) && merge_sort(p, m->rows.p, at) != p) {
		struct dw_row *swap = p;
		p = m->rows.p;
		m->rows.p = swap;
	}
	for (size_t i = 0; i < at; i++)
		if (p[i].end_sequence)
			p[i].column = 0;
	ret->p = p;
	ret->n = at;
	return 0;
}

static int make_rows(const struct dw_unit *u, struct dw_rows *ret, struct cairn_err *err)
{
	struct dw_line_header h;
	int rc = dw_line_header_read(u, &h, err);
	if (rc <= 0)
		return rc;
	struct machine m = {.u = u, .h = &h, .c = &h.program};
	rc = run(&m);
	if (rc >= 0)
		rc = put_in_order(&m, ret, err);
	VEC_FREE(&m.rows);
	VEC_FREE(&m.sequences);
	return rc;
}

static int visit_rows(const struct dw_unit *u, bool whole,
		      int (*visit)(void *ctx, const struct dw_row *rows, size_t n), void *ctx,
		      struct cairn_err *err)
{
	struct dw_row gathered[DW_ROWS_AT_ONCE];
	struct dw_line_header h;
	int rc = dw_line_header_read(u, &h, err);
	if (rc <= 0)
		return rc;
	struct machine m = {.u = u,
			    .h = &h,
			    .c = &h.program,
			    .visit = visit,
			    .ctx = ctx,
			    .whole = whole,
			    .rows = {.p = gathered, .cap = DW_ROWS_AT_ONCE}};
	return run(&m);
}

int dw_unit_visit_rows(const struct dw_unit *u,
		       int (*visit)(void *ctx, const struct dw_row *rows, size_t n), void *ctx,
		       struct cairn_err *err)
{
	return visit_rows(u, false, visit, ctx, err);
}

int dw_unit_visit_sequences(const struct dw_unit *u,
			    int (*visit)(void *ctx, const struct dw_row *rows, size_t n), void *ctx,
			    struct cairn_err *err)
{
	return visit_rows(u, true, visit, ctx, err);
}

int64_t dw_unit_rows(const struct dw_unit *u, const struct dw_row **ret, struct cairn_err *err)
{
	/* The unit is ours; only its users see it as constant. */
	struct dw_unit *own = (struct dw_unit *)u;
	struct dw_rows *rows = atomic_load(&own->rows), *none = NULL;
	if (!rows) {
		rows = calloc(1, sizeof(*rows));
		int rc = rows ? make_rows(u, rows, err) : err_nomem(err, "line rows");
		if (rc < 0) {
			dw_rows_free(rows);
			return rc;
		}
		if (!atomic_compare_exchange_strong(&own->rows, &none, rows)) {
			dw_rows_free(rows);
			rows = none;
		}
	}
	*ret = rows->p;
	return (int64_t)rows->n;
}
