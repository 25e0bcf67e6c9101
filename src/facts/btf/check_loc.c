/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of the LOC kinds: docs/formats/btf-loc.md. */
#include <string.h>

#include <cairn/text.h>

#include "btf/check.h"
#include "btf/location.h"

#define FLAGS_KNOWN                                                                                \
	(CAIRN_BTF_LOC_SIGNED | CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR | CAIRN_BTF_LOC_REG |     \
	 CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET)

/* Words that a location of these flags may have; a mask with bit n for n words. */
static uint32_t words_allowed(uint32_t flags)
{
	if (flags & CAIRN_BTF_LOC_CONST)
		return 1 << 1 | 1 << 2;
	if (!(flags & CAIRN_BTF_LOC_REG))
		return ~0u; /* no location: its content is not read */
	if (flags & CAIRN_BTF_LOC_OFFSET)
		return 1 << 2 | 1 << 3;
	return flags & CAIRN_BTF_LOC_DEREF ? 1 << 1 : 1 << 1 | 1 << 2;
}

static void check_param_n(struct btf_check *c, const struct cairn_btf_type *t)
{
	uint32_t flags = t->words[0];
	bool is_const = flags & CAIRN_BTF_LOC_CONST, is_reg = flags & CAIRN_BTF_LOC_REG;
	if (t->kflag)
		btf_broken(c, t->id, "LOC_PARAM: the flag in its info means nothing");
	if (flags & ~FLAGS_KNOWN)
		btf_broken(c, t->id, "LOC_PARAM: flags 0x%x have bits that are not known", flags);
	else if (is_const && is_reg)
		btf_broken(c, t->id, "LOC_PARAM: flags 0x%x are of a constant and of a register",
			   flags);
	else if ((flags & CAIRN_BTF_LOC_ADDR) && !is_const)
		btf_broken(c, t->id, "LOC_PARAM: flags 0x%x are of an address that is no constant",
			   flags);
	else if ((flags & (CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET)) && !is_reg)
		btf_broken(c, t->id, "LOC_PARAM: flags 0x%x load or add without a register", flags);
	else if (t->vlen > 31 || !(words_allowed(flags) >> t->vlen & 1))
		btf_broken(c, t->id, "LOC_PARAM: %s %s not go with flags 0x%x",
			   cairn_counted(t->vlen, "word").text, t->vlen == 1 ? "does" : "do",
			   flags);
}

static void check_param_v1(struct btf_check *c, const struct cairn_btf_type *t)
{
	int32_t size = (int32_t)t->ref;
	uint32_t bytes = size < 0 ? -(uint32_t)size : (uint32_t)size;
	if (t->vlen)
		btf_broken(c, t->id, "LOC_PARAM: vlen %u means nothing in v1", t->vlen);
	if (!bytes || bytes > 8 || (bytes & (bytes - 1)))
		btf_broken(c, t->id, "LOC_PARAM: size %d; v1 has 1, 2, 4, 8 and those negative",
			   size);
	if (!t->kflag && t->words[0] >> 16 & ~(uint32_t)(BTF_V1_DEREF | BTF_V1_CONTINUE))
		btf_broken(c, t->id, "LOC_PARAM: flags 0x%x have bits that are not known",
			   t->words[0] >> 16);
}

static bool continues(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;
	return cairn_btf_type(btf, id, &t) && t.kind == CAIRN_BTF_LOC_PARAM &&
	       cairn_btf_loc_param(btf, &t).continues;
}

static void check_proto(struct btf_check *c, const struct cairn_btf_type *t)
{
	bool v1 = c->btf->dialect == CAIRN_BTF_LOC_V1;
	btf_check_ref(c, t, "third word", t->ref, KIND(VOID) | (v1 ? KIND(FUNC_PROTO) : 0));
	for (uint32_t i = 0; i < t->vlen; i++) {
		btf_check_ref(c, t, "a slot", t->words[i], KIND(VOID) | KIND(LOC_PARAM));
		if (v1 && continues(c->btf, t->words[i]) && (i + 1 == t->vlen || !t->words[i + 1]))
			btf_broken(c, t->id, "LOC_PROTO: slot %u is continued, but no slot follows",
				   i);
	}
}

/* N has a slot per parameter; fewer are allowed, more cannot be meant. */
static void check_slots(struct btf_check *c, const struct cairn_btf_type *t,
			struct cairn_btf_loc loc)
{
	struct cairn_btf_type func, proto, slots;
	if (!cairn_btf_type(c->btf, loc.loc_proto, &slots) ||
	    !cairn_btf_type(c->btf, loc.func, &func) || !cairn_btf_type(c->btf, func.ref, &proto) ||
	    proto.kind != CAIRN_BTF_FUNC_PROTO)
		return;
	if (slots.vlen > proto.vlen)
		btf_broken(c, t->id, "LOCSEC: the site of '%.60s' at 0x%x has %s for %s", func.name,
			   loc.offset, cairn_counted(slots.vlen, "slot").text,
			   cairn_counted(proto.vlen, "parameter").text);
}

static void check_locsec(struct btf_check *c, const struct cairn_btf_type *t)
{
	bool v1 = c->btf->dialect == CAIRN_BTF_LOC_V1;
	if (t->ref)
		btf_broken(c, t->id, "LOCSEC: its third word is %u, not 0", t->ref);
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_loc loc = cairn_btf_loc(c->btf, t, i);
		const char *name = cairn_btf_string(c->btf, loc.name_off);
		bool fits = btf_check_ref(c, t, "a site's location", loc.loc_proto,
					  KIND(VOID) | KIND(LOC_PROTO));
		if (v1) {
			btf_check_ref(c, t, "a site's prototype", loc.func_proto, KIND(FUNC_PROTO));
			if (!name || !*name)
				btf_broken(c, t->id, "LOCSEC: site %u has no name", i);
		} else if (btf_check_ref(c, t, "a site's function", loc.func, KIND(FUNC)) && fits) {
			check_slots(c, t, loc);
		}
	}
}

void btf_check_loc_record(struct btf_check *c, const struct cairn_btf_type *t)
{
	if (c->kernel)
		btf_broken(c, t->id, "%s: no released kernel knows this kind",
			   btf_kind_name(t->kind));
	else if (t->kind == CAIRN_BTF_LOC_PROTO)
		check_proto(c, t);
	else if (t->kind == CAIRN_BTF_LOCSEC)
		check_locsec(c, t);
	else if (c->btf->dialect == CAIRN_BTF_LOC_V1)
		check_param_v1(c, t);
	else
		check_param_n(c, t);
}
