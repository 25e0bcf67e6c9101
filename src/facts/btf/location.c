/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOC records in both dialects: docs/formats/btf-loc.md
 *
 * A LOC_PARAM whose words do not make sense (a register that is not there, an offset without its
 * word) reads as "no location": a wrong value must never come out of a damaged record.
 */
#include "btf/location.h"

#include "btf/btf.h"

static enum cairn_btf_dialect dialect_of(const struct cairn_btf *btf, uint32_t id)
{
	const struct cairn_btf *owner = btf_owner(btf, id);
	return owner ? owner->dialect : CAIRN_BTF_NO_LOC;
}

struct cairn_btf_loc cairn_btf_loc(const struct cairn_btf *btf, const struct cairn_btf_type *t,
				   uint32_t i)
{
	if (dialect_of(btf, t->id) == CAIRN_BTF_LOC_V1) {
		const uint32_t *w = t->words + 4 * (size_t)i;
		return (struct cairn_btf_loc){
			.name_off = w[0], .func_proto = w[1], .loc_proto = w[2], .offset = w[3]};
	}
	const uint32_t *w = t->words + 3 * (size_t)i;
	return (struct cairn_btf_loc){.func = w[0], .loc_proto = w[1], .offset = w[2]};
}

/* The low @bytes bytes of a value, extended to 64 bits. */
static int64_t extend(uint64_t value, uint32_t bytes, bool is_signed)
{
	if (!bytes || bytes >= 8)
		return (int64_t)value;
	unsigned int unused = 64 - 8 * bytes;
	return is_signed ? (int64_t)(value << unused) >> unused
			 : (int64_t)(value << unused >> unused);
}

/*
 * One word can express a 64-bit constant too: the other half is zeros, or its sign when it is
 * signed.
 */
static int64_t constant(const uint32_t *w, uint32_t n, uint32_t bytes, bool is_signed)
{
	uint64_t value = w[0];
	if (n > 1)
		value |= (uint64_t)w[1] << 32;
	else if (is_signed)
		value = (uint64_t)(int64_t)(int32_t)w[0];
	return extend(value, bytes, is_signed);
}

static const struct cairn_btf_loc_param *no_location(struct cairn_btf_loc_param *p)
{
	p->flags &= CAIRN_BTF_LOC_SIGNED;
	p->n_regs = 0;
	return p;
}

static struct cairn_btf_loc_param param_n(const struct cairn_btf_type *t)
{
	struct cairn_btf_loc_param p = {.flags = t->words[0], .size = t->ref};
	const uint32_t *w = t->words + 1;
	uint32_t n = t->vlen;
	bool deref = p.flags & CAIRN_BTF_LOC_DEREF, offset = p.flags & CAIRN_BTF_LOC_OFFSET;
	if (p.flags & CAIRN_BTF_LOC_CONST) {
		if (n < 1 || n > 2 || (p.flags & CAIRN_BTF_LOC_REG))
			return *no_location(&p);
		p.value = constant(w, n, p.size, p.flags & CAIRN_BTF_LOC_SIGNED);
		return p;
	}
	if (!(p.flags & CAIRN_BTF_LOC_REG) || n < 1 || (offset && n != 2 && n != 3) ||
	    (!offset && n > (deref ? 1 : 2)))
		return *no_location(&p);
	p.reg[0] = w[0];
	p.n_regs = 1;
	if (offset)
		p.offset = n == 3 ? (int64_t)((uint64_t)w[2] << 32 | w[1]) : (int64_t)(int32_t)w[1];
	else if (n == 2)
		p.reg[p.n_regs++] = w[1];
	return p;
}

static struct cairn_btf_loc_param param_v1(const struct cairn_btf_type *t)
{
	int32_t size = (int32_t)t->ref;
	struct cairn_btf_loc_param p = {.flags = size < 0 ? CAIRN_BTF_LOC_SIGNED : 0,
					.size = size < 0 ? -(uint32_t)size : (uint32_t)size};
	if (t->kflag) {
		p.flags |= CAIRN_BTF_LOC_CONST;
		p.value = extend((uint64_t)t->words[1] << 32 | t->words[0], p.size, size < 0);
		return p;
	}
	uint32_t reg = t->words[0] & 0xffff, flags = t->words[0] >> 16;
	p.n_regs = 1;
	p.reg[0] = reg == BTF_V1_FRAME_BASE ? CAIRN_BTF_LOC_FBREG : reg;
	p.offset = (int32_t)t->words[1];
	p.continues = flags & BTF_V1_CONTINUE;
	p.flags |= CAIRN_BTF_LOC_REG;
	if (flags & BTF_V1_DEREF)
		p.flags |= CAIRN_BTF_LOC_DEREF;
	if (p.offset)
		p.flags |= CAIRN_BTF_LOC_OFFSET;
	return p;
}

struct cairn_btf_loc_param cairn_btf_loc_param(const struct cairn_btf *btf,
					       const struct cairn_btf_type *t)
{
	return dialect_of(btf, t->id) == CAIRN_BTF_LOC_V1 ? param_v1(t) : param_n(t);
}

/* ---- the other direction ---- */

static bool fits_32(int64_t value, bool is_signed)
{
	return is_signed ? value == (int32_t)value : (uint64_t)value <= UINT32_MAX;
}

static int encode_n(const struct cairn_btf_loc_param *p, struct btf_loc_words *ret)
{
	uint32_t *w = ret->words, n = 0;
	uint32_t flags = p->flags;
	if (flags & CAIRN_BTF_LOC_CONST) {
		w[++n] = (uint32_t)p->value;
		if ((flags & CAIRN_BTF_LOC_ADDR) ||
		    !fits_32(p->value, flags & CAIRN_BTF_LOC_SIGNED))
			w[++n] = (uint32_t)((uint64_t)p->value >> 32);
	} else if (flags & CAIRN_BTF_LOC_REG) {
		bool plain = !(flags & (CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET));
		if (p->n_regs < 1 || p->n_regs > 2 || (p->n_regs == 2 && !plain))
			return BTF_LOC_INEXPRESSIBLE;
		for (uint32_t i = 0; i < p->n_regs; i++)
			w[++n] = p->reg[i];
		if (flags & CAIRN_BTF_LOC_OFFSET) {
			flags |= p->offset < 0 ? CAIRN_BTF_LOC_SIGNED : 0;
			w[++n] = (uint32_t)p->offset;
			if (p->offset != (int32_t)p->offset)
				w[++n] = (uint32_t)((uint64_t)p->offset >> 32);
		}
	} else {
		return BTF_LOC_INEXPRESSIBLE;
	}
	w[0] = flags;
	ret->vlen = n;
	ret->n_words = n + 1;
	ret->size = p->size;
	return 0;
}

static int encode_v1(const struct cairn_btf_loc_param *p, struct btf_loc_words *ret)
{
	bool deref = p->flags & CAIRN_BTF_LOC_DEREF;
	if (!p->size || p->size > 8 || (p->size & (p->size - 1)))
		return BTF_LOC_INEXPRESSIBLE;
	ret->size = p->flags & CAIRN_BTF_LOC_SIGNED ? -p->size : p->size;
	ret->n_words = 2;
	if (p->flags & CAIRN_BTF_LOC_CONST) {
		ret->kflag = true;
		ret->words[0] = (uint32_t)p->value;
		ret->words[1] = (uint32_t)((uint64_t)p->value >> 32);
		return 0;
	}
	uint32_t reg = p->reg[0] == CAIRN_BTF_LOC_FBREG ? BTF_V1_FRAME_BASE : p->reg[0];
	if (!(p->flags & CAIRN_BTF_LOC_REG) || p->n_regs != 1 || reg > UINT16_MAX ||
	    p->offset != (int32_t)p->offset || (p->offset && !deref))
		return BTF_LOC_INEXPRESSIBLE;
	uint32_t flags = (deref ? BTF_V1_DEREF : 0) | (p->continues ? BTF_V1_CONTINUE : 0);
	ret->words[0] = flags << 16 | reg;
	ret->words[1] = (uint32_t)p->offset;
	return 0;
}

int btf_loc_encode(enum cairn_btf_dialect dialect, const struct cairn_btf_loc_param *p,
		   struct btf_loc_words *ret)
{
	*ret = (struct btf_loc_words){0};
	return dialect == CAIRN_BTF_LOC_V1 ? encode_v1(p, ret) : encode_n(p, ret);
}
