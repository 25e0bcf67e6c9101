/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From FDEs to SFrame
 *
 * Each FDE is a function. What assemblers do is done here, too: an FDE with one row that cannot be said is left out as a whole.
 * FDEs that overlap an earlier one are left out, since SFrame is searched by address.
 */
#include <errno.h>
#include <stdlib.h>

#include <cairn/sframe.h>

#include "base/err.h"
#include "cfi/index.h"
#include "cfi/program.h"
#include "cfi/rule.h"

struct encode {
	const struct cfi *cfi;
	struct cairn_sframe_writer *w;
	/* The FDE that is being read. */
	const struct frame_fde *fde;
	VEC(struct rule_words) rules;
	VEC(uint32_t) offs;
	VEC(struct cairn_sframe_row) rows;
};

static int take_row(void *ctx, uint64_t lo, uint64_t hi, const struct program_rules *rules)
{
	struct encode *e = ctx;
	struct rule_words w;
	rule_of(e->cfi->machine, e->fde->cie.is_signal_frame, rules, &w);
	return VEC_ADD(&e->rules, w) && VEC_ADD(&e->offs, (uint32_t)(lo - e->fde->lo)) ? 0 : -ENOMEM;
}

/* 1 when it was taken, 0 when it is left out. */
static int put_fde(struct encode *e, const struct frame_section *sec, const struct frame_fde *fde,
		   struct cairn_err *err)
{
	e->fde = fde;
	e->rules.n = e->offs.n = e->rows.n = 0;
	if (fde->hi - fde->lo > UINT32_MAX)
		return 0;
	int rc = program_run(sec, fde, take_row, e, NULL);
	if (rc == -ENOMEM)
		return err_nomem(err, "an SFrame section");
	if (rc < 0)
		return 0;
	for (size_t i = 0; i < e->rules.n; i++) {
		struct cairn_sframe_row row = {e->offs.p[i], (const struct cairn_unwind_rule *)e->rules.p[i].words};
		if (!VEC_ADD(&e->rows, row))
			return err_nomem(err, "an SFrame section");
	}
	return cairn_sframe_add(e->w, (struct cairn_vaddr){fde->lo}, (uint32_t)(fde->hi - fde->lo), e->rows.p, e->rows.n,
				err);
}

static int put_all(struct encode *e, struct cairn_sframe_encoded *ret, struct cairn_err *err)
{
	struct cie_cache cache = {0};
	uint64_t end = 0;
	for (size_t i = 0; i < e->cfi->items.n; i++) {
		const struct fde_item *item = &e->cfi->items.p[i];
		const struct frame_section *sec;
		struct frame_fde fde;
		int rc = item->lo >= end && index_fde(e->cfi, item, &cache, &sec, &fde) == 0 ? put_fde(e, sec, &fde, err) : 0;
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

int cairn_sframe_encode(const struct cairn_binary *bin, unsigned int version, struct cairn_vaddr section,
			struct cairn_sframe_encoded *ret, struct cairn_err *err)
{
	struct encode e = {0};
	struct cairn_sframe_encoded made = {.machine = elf_machine(binary_main(bin))};
	struct cfi *cfi = NULL;
	int rc = cfi_open(bin, &cfi, err);
	if (rc < 0)
		return rc;
	e.cfi = cfi;
	rc = cairn_sframe_writer_new(version, made.machine, &e.w, err);
	if (rc == 0)
		rc = put_all(&e, &made, err);
	if (rc == 0)
		rc = cairn_sframe_finish(e.w, section, &made.bytes, &made.size, err);
	if (rc == 0)
		*ret = made;
	cairn_sframe_writer_free(e.w);
	VEC_FREE(&e.rules);
	VEC_FREE(&e.offs);
	VEC_FREE(&e.rows);
	cfi_close(cfi);
	return rc;
}
