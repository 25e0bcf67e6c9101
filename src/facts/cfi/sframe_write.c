/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing SFrame: the bytes are described in sframe_format.h
 *
 * A rule becomes up to three locations: of the CFA, the return address and the frame pointer. A
 * function is "default" if all of its rows have two properties. The CFA is the stack or frame
 * pointer plus an offset. The others are in memory at an offset from the CFA, the return address at
 * the one that the architecture fixes. Otherwise it is "flexible", which version 3 has, or left
 * out.
 *
 *	rsp+16, rbp at CFA-16           default    info 1 | 2 << 1, words 16 -16
 *	r10+0                           flexible   words 51 00                    10 << 3 | 1
 *	*(rbp-8), rbp at *(rbp+0)       flexible   words 33 f8 00 33 00
 *	                                           the 00 stands for the fixed return address
 *
 * A row that repeats the one before is dropped, since many rows of call frame information are about
 * other registers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/unwind.h>

#include "base/err.h"
#include "base/vec.h"
#include "cfi/sframe_format.h"

/* A location: the control and offset of a flexible row express just this. */
struct place {
	bool is_there;
	uint8_t control;
	int32_t off;
};

struct row {
	uint32_t off;
	bool is_outermost, is_signed;
	struct place cfa, ra, fp;
};

struct function {
	uint64_t at;
	uint32_t size, n_rows, rows_off;
	uint8_t info, kind, block;
};

struct cairn_sframe_writer {
	unsigned int version;
	uint16_t machine;
	struct sframe_abi abi;
	VEC(struct function) functions;
	VEC(uint8_t) rows;
	VEC(struct row) now; /* of the function that is being added */
	uint64_t n_rows;
};

int cairn_sframe_writer_new(unsigned int version, uint16_t machine,
			    struct cairn_sframe_writer **ret, struct cairn_err *err)
{
	if (version != 2 && version != 3)
		return err_set(err, -EOPNOTSUPP, "SFrame version %u cannot be written; 2 and 3 can",
			       version);
	if (machine != EM_X86_64 && machine != EM_AARCH64)
		return err_set(err, -EOPNOTSUPP, "SFrame of machine %u cannot be written", machine);
	struct cairn_sframe_writer *w = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(err, "an SFrame section");
	w->version = version;
	w->machine = machine;
	w->abi = sframe_abi_of(machine);
	*ret = w;
	return 0;
}

void cairn_sframe_writer_free(struct cairn_sframe_writer *w)
{
	if (!w)
		return;
	VEC_FREE(&w->functions);
	VEC_FREE(&w->rows);
	VEC_FREE(&w->now);
	free(w);
}

/* ---- rules to locations ---- */

static struct place at_reg(uint8_t reg, bool deref, int32_t off)
{
	uint8_t control = (uint8_t)(reg << SFRAME_CONTROL_SHIFT) | SFRAME_CONTROL_REG;
	return (struct place){true, deref ? control | SFRAME_CONTROL_DEREF : control, off};
}

static struct place at_cfa(int32_t off)
{
	return (struct place){true, SFRAME_CONTROL_DEREF, off};
}

/* The location that a rule's word gives a register; false if a control cannot express it. */
static bool place_of(const struct cairn_sframe_writer *w, const struct cairn_unwind_rule *rule,
		     uint32_t word, struct place *ret)
{
	int32_t value = cairn_unwind_word_value(word);
	switch (cairn_unwind_word_saved(word)) {
	case CAIRN_UNWIND_AT_CFA:
		*ret = at_cfa(value);
		return true;
	case CAIRN_UNWIND_AT_BASE:
		*ret = at_reg(rule->reg, true, value);
		return true;
	case CAIRN_UNWIND_AT_FP:
		*ret = at_reg(w->abi.fp, true, value);
		return true;
	case CAIRN_UNWIND_IN_REG:
		*ret = at_reg((uint8_t)value, false, 0);
		return true;
	case CAIRN_UNWIND_SAME:
		*ret = (struct place){0};
		return true;
	case CAIRN_UNWIND_IS_CFA:
	case CAIRN_UNWIND_IS_PC:
	case CAIRN_UNWIND_LOST:
		break;
	}
	return false;
}

static bool row_of(const struct cairn_sframe_writer *w, const struct cairn_unwind_rule *rule,
		   struct row *ret)
{
	ret->is_outermost = rule->flags & CAIRN_UNWIND_OUTERMOST;
	ret->is_signed = rule->flags & CAIRN_UNWIND_RA_SIGNED;
	if (ret->is_outermost)
		return true;
	/* A control has no room for an addition after the dereference. */
	if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED ||
	    (rule->cfa == CAIRN_UNWIND_CFA_DEREF && rule->add))
		return false;
	ret->cfa = at_reg(rule->reg, rule->cfa == CAIRN_UNWIND_CFA_DEREF, rule->off);
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];
		unsigned int reg = cairn_unwind_word_reg(word);
		/* The stack pointer of the caller is the CFA, always. */
		if (reg == w->abi.sp || (reg == w->abi.ra && !place_of(w, rule, word, &ret->ra)) ||
		    (reg == w->abi.fp && !place_of(w, rule, word, &ret->fp)))
			return false;
	}
	return true;
}

static bool is_in_frame(struct place p)
{
	return !p.is_there || p.control == SFRAME_CONTROL_DEREF;
}

static bool is_default(const struct cairn_sframe_writer *w, const struct row *r)
{
	uint8_t reg = r->cfa.control >> SFRAME_CONTROL_SHIFT;
	if (r->is_outermost)
		return true;
	if (r->cfa.control & SFRAME_CONTROL_DEREF || (reg != w->abi.sp && reg != w->abi.fp) ||
	    !is_in_frame(r->ra) || !is_in_frame(r->fp))
		return false;
	/*
	 * In rows with a return address, it comes before the frame pointer, and the frame pointer
	 * never comes without it.
	 */
	return w->abi.fixed_ra ? !r->ra.is_there
			       : r->fp.is_there == r->ra.is_there || !r->fp.is_there;
}

/* ---- rows to bytes ---- */

static unsigned int bytes_log2(int64_t lo, int64_t hi)
{
	if (lo >= INT8_MIN && hi <= INT8_MAX)
		return 0;
	return lo >= INT16_MIN && hi <= INT16_MAX ? 1 : 2;
}

struct words {
	int64_t w[SFRAME_MAX_WORDS];
	bool is_control[SFRAME_MAX_WORDS];
	unsigned int n;
};

static void put(struct words *to, int64_t word, bool is_control)
{
	to->w[to->n] = word;
	to->is_control[to->n++] = is_control;
}

static void put_place(struct words *to, struct place p)
{
	put(to, p.control, true);
	put(to, p.off, false);
}

static void words_of(const struct row *r, bool is_flexible, struct words *to)
{
	to->n = 0;
	if (r->is_outermost)
		return;
	if (!is_flexible) {
		put(to, r->cfa.off, false);
		if (r->ra.is_there)
			put(to, r->ra.off, false);
		if (r->fp.is_there)
			put(to, r->fp.off, false);
		return;
	}
	put_place(to, r->cfa);
	if (r->ra.is_there)
		put_place(to, r->ra);
	else if (r->fp.is_there)
		put(to, 0, true);
	if (r->fp.is_there)
		put_place(to, r->fp);
}

/*
 * A control is unsigned, an offset signed; all words of a row have the size that the largest needs.
 */
static unsigned int word_size_log2(const struct words *words)
{
	unsigned int size = 0;
	for (unsigned int i = 0; i < words->n; i++) {
		unsigned int need = words->is_control[i] ? words->w[i] > UINT8_MAX
							 : bytes_log2(words->w[i], words->w[i]);
		size = need > size ? need : size;
	}
	return size;
}

static bool put_bytes(struct cairn_sframe_writer *w, uint64_t value, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (!VEC_ADD(&w->rows, (uint8_t)(value >> 8 * i)))
			return false;
	return true;
}

static bool put_row(struct cairn_sframe_writer *w, const struct row *r, bool is_flexible,
		    unsigned int off_log2)
{
	struct words words;
	words_of(r, is_flexible, &words);
	unsigned int size = word_size_log2(&words), info = words.n << 1 | size << 5;
	if (!is_flexible && words.n && r->cfa.control >> SFRAME_CONTROL_SHIFT == w->abi.sp)
		info |= SFRAME_ROW_SP;
	if (r->is_signed)
		info |= SFRAME_ROW_SIGNED;
	bool ok = put_bytes(w, r->off, 1u << off_log2) && put_bytes(w, info, 1);
	for (unsigned int i = 0; ok && i < words.n; i++)
		ok = put_bytes(w, (uint64_t)words.w[i], 1u << size);
	return ok;
}

/* ---- functions ---- */

static bool same_place(struct place a, struct place b)
{
	return a.is_there == b.is_there && a.control == b.control && a.off == b.off;
}

static bool says_the_same(const struct row *a, const struct row *b)
{
	return a->is_outermost == b->is_outermost && a->is_signed == b->is_signed &&
	       same_place(a->cfa, b->cfa) && same_place(a->ra, b->ra) && same_place(a->fp, b->fp);
}

/* 1 if all rows can be expressed, 0 if not. */
static int take_rows(struct cairn_sframe_writer *w, uint32_t size,
		     const struct cairn_sframe_row *rows, size_t n, struct cairn_err *err)
{
	w->now.n = 0;
	for (size_t i = 0; i < n; i++) {
		struct row r = {.off = rows[i].off};
		if (i ? r.off <= rows[i - 1].off || r.off >= size : r.off != 0)
			return err_set(err, -EINVAL, "row %zu of a function is at offset %u of %u",
				       i, r.off, size);
		if (!row_of(w, rows[i].rule, &r))
			return 0;
		if (w->now.n && says_the_same(&w->now.p[w->now.n - 1], &r))
			continue;
		if (!VEC_ADD(&w->now, r))
			return err_nomem(err, "an SFrame section");
	}
	return 1;
}

/* The rows of a signal frame have no meaning: its mark is enough. */
static bool is_signal(const struct cairn_sframe_row *rows, size_t n)
{
	return n && rows[0].rule->flags & CAIRN_UNWIND_SIGNAL;
}

static int add_function(struct cairn_sframe_writer *w, struct function f, struct cairn_err *err)
{
	uint32_t reach = f.block ? f.block : f.size;
	unsigned int off_log2 = reach <= UINT8_MAX ? 0 : reach <= UINT16_MAX ? 1 : 2;
	bool ok = true, is_flexible = f.kind == SFRAME_KIND_FLEXIBLE;
	f.n_rows = (uint32_t)w->now.n;
	f.rows_off = (uint32_t)w->rows.n;
	f.info |= (uint8_t)(off_log2 | (f.block ? SFRAME_INFO_BLOCKS : 0));
	if (w->version == 3)
		ok = put_bytes(w, f.n_rows, 2) && put_bytes(w, f.info, 1) &&
		     put_bytes(w, f.kind, 1) && put_bytes(w, f.block, 1);
	for (size_t i = 0; ok && i < w->now.n; i++)
		ok = put_row(w, &w->now.p[i], is_flexible, off_log2);
	if (!ok || !VEC_ADD(&w->functions, f))
		return err_nomem(err, "an SFrame section");
	w->n_rows += f.n_rows;
	return 1;
}

static int add(struct cairn_sframe_writer *w, struct function f,
	       const struct cairn_sframe_row *rows, size_t n_rows, struct cairn_err *err)
{
	bool is_flexible = false;
	w->now.n = 0;
	if (is_signal(rows, n_rows)) {
		if (w->version < 3)
			return 0;
		f.info = SFRAME_INFO_SIGNAL;
	} else {
		int rc = take_rows(w, f.block ? f.block : f.size, rows, n_rows, err);
		if (rc <= 0)
			return rc;
	}
	for (size_t i = 0; i < w->now.n; i++)
		is_flexible |= !is_default(w, &w->now.p[i]);
	if ((is_flexible && (w->version < 3 || w->machine != EM_X86_64)) || w->now.n > UINT16_MAX)
		return 0;
	if (w->rows.n > UINT32_MAX / 2)
		return err_set(err, -ERANGE, "more than 2 GiB of SFrame rows");
	f.kind = is_flexible ? SFRAME_KIND_FLEXIBLE : 0;
	return add_function(w, f, err);
}

int cairn_sframe_add(struct cairn_sframe_writer *w, struct cairn_vaddr at, uint32_t size,
		     const struct cairn_sframe_row *rows, size_t n_rows, struct cairn_err *err)
{
	return add(w, (struct function){.at = at.v, .size = size}, rows, n_rows, err);
}

int cairn_sframe_add_blocks(struct cairn_sframe_writer *w, struct cairn_vaddr at, uint32_t size,
			    uint32_t block, const struct cairn_sframe_row *rows, size_t n_rows,
			    struct cairn_err *err)
{
	if (!block || block > UINT8_MAX || size % block || at.v % block)
		return 0;
	return add(w, (struct function){.at = at.v, .size = size, .block = (uint8_t)block}, rows,
		   n_rows, err);
}

/* ---- the section ---- */

struct out {
	uint8_t *at;
};

static void out_uint(struct out *o, uint64_t value, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		*o->at++ = (uint8_t)(value >> 8 * i);
}

static int function_order(const void *a, const void *b)
{
	const struct function *x = a, *y = b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static void out_header(struct out *o, const struct cairn_sframe_writer *w)
{
	uint32_t functions = (uint32_t)w->functions.n;
	out_uint(o, SFRAME_MAGIC, 2);
	out_uint(o, w->version, 1);
	out_uint(o, SFRAME_SORTED | SFRAME_PCREL, 1);
	out_uint(o, w->abi.arch, 1);
	out_uint(o, 0, 1);
	out_uint(o, (uint8_t)w->abi.fixed_ra, 1);
	out_uint(o, 0, 1);
	out_uint(o, functions, 4);
	out_uint(o, w->n_rows, 4);
	out_uint(o, w->rows.n, 4);
	out_uint(o, 0, 4);
	out_uint(o, (uint64_t)functions * sframe_function_size(w->version), 4);
}

/* @field: the address of the record, from which the function's address is counted. */
static int out_function(struct out *o, const struct cairn_sframe_writer *w,
			const struct function *f, uint64_t field, struct cairn_err *err)
{
	int64_t distance = (int64_t)(f->at - field);
	if (w->version == 3) {
		out_uint(o, (uint64_t)distance, 8);
		out_uint(o, f->size, 4);
		out_uint(o, f->rows_off, 4);
		return 0;
	}
	if (distance != (int32_t)distance)
		return err_set(err, -ERANGE,
			       "the function at 0x%llx is more than 2 GiB from the section; SFrame "
			       "version 3 can say that",
			       (unsigned long long)f->at);
	out_uint(o, (uint64_t)distance, 4);
	out_uint(o, f->size, 4);
	out_uint(o, f->rows_off, 4);
	out_uint(o, f->n_rows, 4);
	out_uint(o, f->info, 1);
	out_uint(o, f->block, 1);
	out_uint(o, 0, 2);
	return 0;
}

int cairn_sframe_finish(struct cairn_sframe_writer *w, struct cairn_vaddr section, uint8_t **ret,
			size_t *ret_size, struct cairn_err *err)
{
	size_t record = sframe_function_size(w->version);
	size_t size = SFRAME_HEADER_SIZE + w->functions.n * record + w->rows.n;
	uint8_t *bytes = malloc(size);
	if (!bytes)
		return err_nomem(err, "an SFrame section");
	if (w->functions.n)
		qsort(w->functions.p, w->functions.n, sizeof(*w->functions.p), function_order);
	struct out o = {bytes};
	int rc = 0;
	out_header(&o, w);
	for (size_t i = 0; rc == 0 && i < w->functions.n; i++)
		rc = out_function(&o, w, &w->functions.p[i],
				  section.v + SFRAME_HEADER_SIZE + i * record, err);
	if (rc < 0) {
		free(bytes);
		return rc;
	}
	if (w->rows.n)
		memcpy(o.at, w->rows.p, w->rows.n);
	*ret = bytes;
	*ret_size = size;
	return 0;
}
