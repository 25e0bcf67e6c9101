/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From FDEs to SFrame
 *
 * Each FDE is a function; that of a procedure linkage table is two, as linkers write them: its
 * first entry, and blocks with the same rows each. As in assemblers, an FDE with one row that
 * cannot be expressed is left out as a whole. FDEs that overlap an earlier one are left out, since
 * SFrame is searched by address.
 *
 * Readers of SFrame believe it, a kernel's unwinder among them. So rows that the instructions
 * disprove are not written. There are two unwind tables of the file: one of the rows as written,
 * one of the weakened rows. A function in which they differ about the CFA, the return address or
 * the frame pointer gets the rows of the second. Mostly it gets none, since a weakened row is "not
 * described" or "lost", which SFrame cannot express.
 */
#include <errno.h>
#include <stdlib.h>

#include <cairn/unwind.h>

#include "base/err.h"
#include "cfi/expr.h"
#include "cfi/index.h"
#include "cfi/program.h"
#include "cfi/rule.h"
#include "cfi/sframe_format.h"
#include "cfi/table.h"

/* A table, and how far in it the functions are that came so far: they are taken by address. */
struct rows {
	uint8_t *bytes;
	struct unwind_table t;
	uint32_t next;
};

struct encode {
	const struct cfi *cfi;
	struct cairn_sframe_writer *w;
	struct sframe_abi abi;
	struct rows written, proved;
	/* The FDE that is being read. */
	const struct frame_fde *fde;
	VEC(struct rule_words) rules;
	VEC(uint32_t) offs;
	VEC(struct cairn_sframe_row) rows;
	uint64_t plt_lo; /* where blocks begin in it; valid with has_plt */
	struct expr_plt plt;
	bool has_plt;
};

static int take_row(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *rules)
{
	struct encode *e = ctx;
	struct rule_words w;
	/* Linkers put it last. */
	if (!e->has_plt && hi == e->fde->hi && rules->cfa == CFI_CFA_EXPR &&
	    expr_is_plt(rules->cfa_expr, rules->cfa_expr_len, &e->plt)) {
		e->has_plt = true;
		e->plt_lo = lo;
		return 0;
	}
	rule_of(e->cfi->machine, e->fde->cie.is_signal_frame, rules, &w);
	return VEC_ADD(&e->rules, w) && VEC_ADD(&e->offs, (uint32_t)(lo - e->fde->lo)) ? 0
										       : -ENOMEM;
}

/* ---- disproved rows ---- */

static int read_rows(const struct cfi *cfi, enum unwind_belief belief, struct rows *ret,
		     struct cairn_err *err)
{
	size_t size;
	int rc = unwind_table_build(cfi, belief, 0, &ret->bytes, &size, err);
	return rc < 0 ? rc
		      : unwind_table_open(ret->bytes, size, cairn_binary_path(cfi->bin),
					  "unwind table", &ret->t, err);
}

/*
 * The row of a table that is there at @at, and where it ends; rule 0 where there is none. @at
 * ascends from call to call.
 */
static const struct cairn_unwind_rule *row_at(struct rows *rows, uint64_t at, uint64_t *ret_hi)
{
	struct cairn_vaddr lo, hi;
	for (; rows->next < rows->t.n_rows; rows->next++) {
		const struct cairn_unwind_rule *rule =
			unwind_table_row(&rows->t, rows->next, &lo, &hi);
		if (at < lo.v)
			break;
		if (at < hi.v) {
			*ret_hi = hi.v;
			return rule;
		}
	}
	*ret_hi = rows->next < rows->t.n_rows ? lo.v : UINT64_MAX;
	return (const struct cairn_unwind_rule *)rows->t.rules;
}

/* As far as SFrame can express it. */
static bool says_the_same(const struct sframe_abi *abi, const struct cairn_unwind_rule *a,
			  const struct cairn_unwind_rule *b)
{
	return a == b ||
	       (a->cfa == b->cfa && a->flags == b->flags && a->reg == b->reg && a->off == b->off &&
		a->add == b->add && rule_word_of(a, abi->ra) == rule_word_of(b, abi->ra) &&
		rule_word_of(a, abi->fp) == rule_word_of(b, abi->fp));
}

/* Whether a row of the FDE is; then e->rows are those that are left of them. -ENOMEM. */
static int disproved_rows(struct encode *e, const struct frame_fde *fde)
{
	bool is_disproved = false, ok = true;
	e->rows.n = 0;
	for (uint64_t at = fde->lo, hi; ok && at < fde->hi; at = hi) {
		uint64_t written_hi, proved_hi;
		const struct cairn_unwind_rule *written = row_at(&e->written, at, &written_hi);
		const struct cairn_unwind_rule *proved = row_at(&e->proved, at, &proved_hi);
		hi = written_hi < proved_hi ? written_hi : proved_hi;
		is_disproved |= !says_the_same(&e->abi, written, proved);
		ok = VEC_ADD(&e->rows,
			     ((struct cairn_sframe_row){(uint32_t)(at - fde->lo), proved}));
	}
	return ok ? is_disproved : -ENOMEM;
}

/* ---- functions ---- */

/* 1 when it was taken, 0 when it is left out; so the next one. */
static int put_proved(struct encode *e, const struct frame_fde *fde,
		      struct cairn_sframe_encoded *ret, struct cairn_err *err)
{
	int rc = cairn_sframe_add(e->w, (struct cairn_vaddr){fde->lo},
				  (uint32_t)(fde->hi - fde->lo), e->rows.p, e->rows.n, err);
	ret->n_mended += rc == 1;
	ret->n_disproved += rc == 0;
	return rc;
}

/* The FDE up to @hi, which is its end or where blocks begin. */
static int put_rows(struct encode *e, const struct frame_fde *fde, uint64_t hi,
		    struct cairn_err *err)
{
	e->rows.n = 0;
	for (size_t i = 0; i < e->rules.n; i++) {
		struct cairn_sframe_row row = {
			e->offs.p[i], (const struct cairn_unwind_rule *)e->rules.p[i].words};
		if (!VEC_ADD(&e->rows, row))
			return err_nomem(err, "an SFrame section");
	}
	return cairn_sframe_add(e->w, (struct cairn_vaddr){fde->lo}, (uint32_t)(hi - fde->lo),
				e->rows.p, e->rows.n, err);
}

/* Blocks of a linkage table: rsp + off, and a word more from a byte of each on. */
static int put_blocks(struct encode *e, const struct frame_fde *fde, struct cairn_err *err)
{
	struct rule_words before, after;
	uint32_t block = (uint32_t)e->plt.mask + 1, from = e->plt.from;
	bool is_whole = from && from < block;
	rule_cfa(&before, CAIRN_UNWIND_CFA_REG, 0, e->abi.sp, (int32_t)e->plt.off, 0);
	rule_cfa(&after, CAIRN_UNWIND_CFA_REG, 0, e->abi.sp,
		 (int32_t)(e->plt.off + (INT64_C(1) << e->plt.shift)), 0);
	const struct cairn_sframe_row rows[] = {
		{0, (const struct cairn_unwind_rule *)(from ? before.words : after.words)},
		{from, (const struct cairn_unwind_rule *)after.words}};
	return cairn_sframe_add_blocks(e->w, (struct cairn_vaddr){e->plt_lo},
				       (uint32_t)(fde->hi - e->plt_lo), block, rows, 1 + is_whole,
				       err);
}

/* True if it can be written as blocks, which have to be whole and aligned to their size. */
static bool can_put_plt(const struct encode *e, const struct frame_fde *fde)
{
	uint32_t block = (uint32_t)e->plt.mask + 1;
	return block <= UINT8_MAX && e->plt_lo % block == 0 && (fde->hi - e->plt_lo) % block == 0 &&
	       e->plt.off >= 0 && e->plt.off <= INT16_MAX;
}

/* As put_fde(). */
static int put_plt(struct encode *e, const struct frame_fde *fde, struct cairn_sframe_encoded *ret,
		   struct cairn_err *err)
{
	if (!can_put_plt(e, fde))
		return 0;
	bool has_first = e->plt_lo > fde->lo;
	int rc = has_first ? put_rows(e, fde, e->plt_lo, err) : 1;
	if (rc == 1)
		rc = put_blocks(e, fde, err);
	ret->n_functions += rc == 1 && has_first;
	return rc;
}

static int put_fde(struct encode *e, const struct frame_section *sec, const struct frame_fde *fde,
		   struct cairn_sframe_encoded *ret, struct cairn_err *err)
{
	e->fde = fde;
	e->rules.n = e->offs.n = e->rows.n = 0;
	e->has_plt = false;
	if (fde->hi - fde->lo > UINT32_MAX)
		return 0;
	int rc = program_run(sec, fde, take_row, e, NULL);
	if (rc == -ENOMEM)
		return err_nomem(err, "an SFrame section");
	if (rc < 0)
		return 0;
	rc = disproved_rows(e, fde);
	if (rc)
		return rc < 0 ? err_nomem(err, "an SFrame section") : put_proved(e, fde, ret, err);
	return e->has_plt ? put_plt(e, fde, ret, err) : put_rows(e, fde, fde->hi, err);
}

static int put_all(struct encode *e, struct cairn_sframe_encoded *ret, struct cairn_err *err)
{
	struct cie_cache cache = {0};
	uint64_t end = 0;
	for (size_t i = 0; i < e->cfi->items.n; i++) {
		const struct fde_item *item = &e->cfi->items.p[i];
		const struct frame_section *sec;
		struct frame_fde fde;
		int rc = item->lo >= end && index_fde(e->cfi, item, &cache, &sec, &fde) == 0
				 ? put_fde(e, sec, &fde, ret, err)
				 : 0;
		if (rc < 0)
			return rc;
		if (item->hi > end)
			end = item->hi;
		ret->n_functions += rc;
		ret->n_left_out += !rc;
		*(rc ? &ret->text_bytes : &ret->left_out_bytes) += item->hi - item->lo;
	}
	return 0;
}

/* Debug files have none. */
static bool has_code(const struct cfi *cfi)
{
	const uint8_t *code;
	size_t n;
	for (size_t i = 0; i < cfi->items.n; i++)
		if (elf_code_at(binary_main(cfi->bin), (struct cairn_vaddr){cfi->items.p[i].lo},
				&code, &n))
			return true;
	return false;
}

int cairn_sframe_encode(const struct cairn_binary *bin, unsigned int version,
			struct cairn_vaddr section, struct cairn_sframe_encoded *ret,
			struct cairn_err *err)
{
	struct encode e = {0};
	struct cairn_sframe_encoded made = {.machine = elf_machine(binary_main(bin))};
	struct cfi *cfi = NULL;
	int rc = cfi_open(bin, &cfi, err);
	if (rc < 0)
		return rc;
	e.cfi = cfi;
	if (cfi->items.n && !has_code(cfi)) {
		cfi_close(cfi);
		return err_set(err, -ENODATA, "%s: has no code that its rows could be held against",
			       cairn_binary_path(bin));
	}
	rc = cairn_sframe_writer_new(version, made.machine, &e.w, err);
	if (rc == 0) {
		e.abi = sframe_abi_of(made.machine);
		rc = read_rows(cfi, UNWIND_AS_WRITTEN, &e.written, err);
	}
	if (rc == 0)
		rc = read_rows(cfi, UNWIND_PROVED, &e.proved, err);
	if (rc == 0)
		rc = put_all(&e, &made, err);
	if (rc == 0)
		rc = cairn_sframe_finish(e.w, section, &made.bytes, &made.size, err);
	if (rc == 0)
		rc = binary_check_inputs(bin, err);
	if (rc == 0)
		*ret = made;
	else
		free(made.bytes);
	cairn_sframe_writer_free(e.w);
	free(e.written.bytes);
	free(e.proved.bytes);
	VEC_FREE(&e.rules);
	VEC_FREE(&e.offs);
	VEC_FREE(&e.rows);
	cfi_close(cfi);
	return rc;
}
