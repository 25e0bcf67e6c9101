/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * LOC records in the other dialect
 *
 *	                    v1                                      N
 *	a site              name, FUNC_PROTO                        FUNC
 *	two registers       two slots, the first "continues"        one LOC_PARAM
 *	slots               one per value                           one per parameter
 *	reg + offset        not expressible                         REG | OFFSET
 *	address             a constant; shown by parameter type     ADDR
 *	sites               LOCSECs "inline" of at most 65,535      one LOCSEC per section
 *	offsets             from .text, also of other sections      from the LOCSEC's section
 *	order               by offset                               by (func, offset, loc_proto)
 *
 * A location that cannot be expressed becomes a slot without one; sites of sections other than
 * .text cannot be expressed in v1 and are dropped. Both are counted.
 *
 * The parameter of v1's constant decides whether it is an address. So a LOC_PROTO may become
 * several of the other dialect, one per FUNC_PROTO that it is used with. The results are looked up
 * by the ids that they were made from.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "btf/convert.h"
#include "btf/location.h"

/* How v1 names its LOCSECs, and how many sites one has. */
#define V1_SECTION   "inline"
#define V1_SITES_MAX 0xffff

struct loc_convert {
	struct btf_convert *c;
	struct map params; /* LOC_PARAM id(s), as a key, to the new id */
	struct map protos; /* LOC_PROTO and FUNC_PROTO to the new id */
	struct map funcs;  /* name and FUNC_PROTO to FUNC; N only */
	VEC(struct cairn_btf_loc) sites;
	VEC(uint32_t) slots;
};

static bool get(const struct map *m, uint64_t key, uint32_t *ret)
{
	uint64_t value;
	if (!map_get(m, key, &value))
		return false;
	*ret = (uint32_t)value;
	return true;
}

static uint64_t pair(uint32_t a, uint32_t b)
{
	return (uint64_t)a << 32 | b;
}

/* The LOC_PARAM of the input in a slot; false when the slot has none. */
static bool param_of(const struct btf_convert *c, uint32_t id, struct cairn_btf_loc_param *ret)
{
	struct cairn_btf_type t;
	if (!cairn_btf_type(c->btf, id, &t) || t.kind != CAIRN_BTF_LOC_PARAM)
		return false;
	*ret = cairn_btf_loc_param(c->btf, &t);
	return true;
}

/* A new LOC_PARAM in *@ret, the same for the same key; 0 when the dialect cannot say it. */
static int add_param(struct loc_convert *l, uint64_t key, const struct cairn_btf_loc_param *p,
		     uint32_t *ret)
{
	if (get(&l->params, key, ret))
		return 0;
	int rc = btf_add_loc_param(l->c->b, p, ret);
	if (rc == BTF_LOC_INEXPRESSIBLE) {
		l->c->losses.loc_params++;
		*ret = 0;
		rc = 0;
	}
	return rc < 0 ? rc : map_put(&l->params, key, *ret);
}

static int add_slot(struct loc_convert *l, uint32_t id)
{
	return VEC_ADD(&l->slots, id) ? 0 : -ENOMEM;
}

/* ---- addresses in v1 ---- */

/* Without facts about a parameter the answer is open. */
enum pointer { NO_POINTER, MAY_BE_POINTER, POINTER };

static enum pointer is_pointer(const struct cairn_btf *btf, uint32_t func_proto, uint32_t param)
{
	struct cairn_btf_type t;
	const uint64_t through = 1ull << CAIRN_BTF_TYPEDEF | 1ull << CAIRN_BTF_CONST |
				 1ull << CAIRN_BTF_VOLATILE | 1ull << CAIRN_BTF_RESTRICT |
				 1ull << CAIRN_BTF_TYPE_TAG;
	if (!cairn_btf_type(btf, func_proto, &t) || t.kind != CAIRN_BTF_FUNC_PROTO ||
	    param >= t.vlen)
		return MAY_BE_POINTER;
	uint32_t id = cairn_btf_param(&t, param).type;
	/* A loop of qualifiers ends after as many steps as there are ids. */
	for (uint32_t left = btf->end_id; left && cairn_btf_type(btf, id, &t); left--) {
		if (t.kind == CAIRN_BTF_PTR)
			return POINTER;
		if (t.kind > CAIRN_BTF_TYPE_TAG || !(through >> t.kind & 1))
			return NO_POINTER;
		id = t.ref;
	}
	return NO_POINTER;
}

/*
 * True if v1 gives a constant of N the same meaning. There a constant of 8 bytes is an address when
 * the parameter is a pointer, and a number otherwise; NULL is the same either way.
 */
static bool means_the_same(const struct loc_convert *l, const struct cairn_btf_loc_param *p,
			   uint32_t func_proto, uint32_t param)
{
	if (!(p->flags & CAIRN_BTF_LOC_CONST))
		return true;
	enum pointer pointer = p->size == 8 ? is_pointer(l->c->btf, func_proto, param) : NO_POINTER;
	return p->flags & CAIRN_BTF_LOC_ADDR ? pointer == POINTER
					     : pointer == NO_POINTER || !p->value;
}

/* ---- from v1 to N ---- */

/* The parameter that starts at slot *@i; *@i is left at its last slot. */
static int slot_to_n(struct loc_convert *l, const struct cairn_btf_type *t, uint32_t func_proto,
		     uint32_t *i)
{
	struct cairn_btf_loc_param p, second;
	uint32_t id = t->words[*i], next = 0, ret = 0;
	if (!param_of(l->c, id, &p))
		return add_slot(l, 0);
	if ((p.flags & CAIRN_BTF_LOC_CONST) && p.size == 8 && p.value &&
	    is_pointer(l->c->btf, func_proto, (uint32_t)l->slots.n) != NO_POINTER) {
		l->c->losses.loc_params++;
		return add_slot(l, 0);
	}
	if (p.continues) {
		next = *i + 1 < t->vlen ? t->words[++*i] : 0;
		if (!param_of(l->c, next, &second) || second.n_regs != 1)
			return add_slot(l, 0);
		p.size += second.size;
		p.reg[p.n_regs++] = second.reg[0];
		/* Memory, or a sum, in two parts: N has no words for it. */
		if (((p.flags | second.flags) & ~CAIRN_BTF_LOC_SIGNED) != CAIRN_BTF_LOC_REG)
			p.n_regs = 3;
	}
	int rc = add_param(l, pair(id, next), &p, &ret);
	return rc < 0 ? rc : add_slot(l, ret);
}

static int proto_to_n(struct loc_convert *l, uint32_t id, uint32_t func_proto, uint32_t *ret)
{
	struct cairn_btf_type t;
	uint64_t key = pair(id, func_proto);
	int rc = 0;
	*ret = 0;
	if (!cairn_btf_type(l->c->btf, id, &t) || t.kind != CAIRN_BTF_LOC_PROTO ||
	    get(&l->protos, key, ret))
		return 0;
	l->slots.n = 0;
	for (uint32_t i = 0; rc == 0 && i < t.vlen; i++)
		rc = slot_to_n(l, &t, func_proto, &i);
	if (rc == 0)
		rc = btf_add_loc_proto(l->c->b, l->slots.p, (uint32_t)l->slots.n, ret);
	return rc < 0 ? rc : map_put(&l->protos, key, *ret);
}

/* The FUNC of a name, which exists, and prototype; a new static one when there is none. */
static int func_of(struct loc_convert *l, uint32_t name_off, uint32_t func_proto, uint32_t *ret)
{
	const struct cairn_btf *btf = l->c->btf;
	const char *name = cairn_btf_string(btf, name_off);
	struct cairn_btf_type t;
	uint32_t new_name;
	if (get(&l->funcs, pair(name_off, func_proto), ret))
		return 0;
	uint32_t id = cairn_btf_find(btf, name, CAIRN_BTF_FUNC, 0);
	while (id && cairn_btf_type(btf, id, &t) && t.ref != func_proto)
		id = cairn_btf_find(btf, name, CAIRN_BTF_FUNC, id);
	int rc = 0;
	if (id)
		*ret = l->c->map[id];
	else
		rc = cairn_btf_add_string(l->c->b, name, &new_name);
	if (!id && rc == 0)
		rc = btf_add_func(l->c->b, new_name, CAIRN_BTF_STATIC,
				  func_proto < btf->end_id ? l->c->map[func_proto] : func_proto,
				  ret);
	return rc < 0 ? rc : map_put(&l->funcs, pair(name_off, func_proto), *ret);
}

static int site_to_n(struct loc_convert *l, struct cairn_btf_loc v1)
{
	struct cairn_btf_loc n = {.offset = v1.offset};
	if (!cairn_btf_string(l->c->btf, v1.name_off)) {
		l->c->losses.locs++;
		return 0;
	}
	int rc = func_of(l, v1.name_off, v1.func_proto, &n.func);
	if (rc == 0)
		rc = proto_to_n(l, v1.loc_proto, v1.func_proto, &n.loc_proto);
	if (rc == 0 && !VEC_ADD(&l->sites, n))
		rc = -ENOMEM;
	return rc;
}

/* All sites, in order, as records of at most @max of them. */
static int add_locsecs(struct loc_convert *l, const char *section, size_t max,
		       int (*order)(const void *a, const void *b))
{
	uint32_t name, id;
	int rc = cairn_btf_add_string(l->c->b, section, &name);
	if (l->sites.n)
		qsort(l->sites.p, l->sites.n, sizeof(l->sites.p[0]), order);
	for (size_t i = 0; rc == 0 && i < l->sites.n; i += max) {
		size_t n = l->sites.n - i < max ? l->sites.n - i : max;
		rc = btf_add_locsec(l->c->b, name, l->sites.p + i, (uint32_t)n, &id);
	}
	return rc;
}

static int by_func(const void *a, const void *b)
{
	const struct cairn_btf_loc *x = a, *y = b;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return (x->loc_proto > y->loc_proto) - (x->loc_proto < y->loc_proto);
}

/* All LOCSECs of v1 are of .text. */
static int finish_n(struct loc_convert *l)
{
	return add_locsecs(l, ".text", BTF_VLEN_MAX, by_func);
}

/* ---- from N to v1 ---- */

static int slots_to_v1(struct loc_convert *l, uint32_t id, uint32_t func_proto, uint32_t param)
{
	struct cairn_btf_loc_param p;
	uint32_t ret = 0;
	if (!param_of(l->c, id, &p))
		return add_slot(l, 0);
	if (!means_the_same(l, &p, func_proto, param)) {
		l->c->losses.loc_params++;
		return add_slot(l, 0);
	}
	uint32_t n = p.n_regs, second = p.reg[1], bytes = p.size;
	if (n == 2) {
		p.size = bytes > 8 ? 8 : bytes / 2;
		p.n_regs = 1;
		p.continues = true;
	}
	int rc = add_param(l, pair(id, 0), &p, &ret);
	if (rc == 0)
		rc = add_slot(l, ret);
	if (n != 2 || rc < 0)
		return rc;
	p.continues = false;
	p.reg[0] = second;
	p.size = bytes > 8 ? bytes - 8 : bytes - p.size;
	rc = ret ? add_param(l, pair(id, 1), &p, &ret) : 0;
	/* Half a value is none; and the first half must not say that another follows. */
	if (rc == 0 && !ret)
		l->slots.p[l->slots.n - 1] = 0;
	return rc == 0 && ret ? add_slot(l, ret) : rc;
}

static int proto_to_v1(struct loc_convert *l, uint32_t id, uint32_t func_proto, uint32_t *ret)
{
	struct cairn_btf_type t;
	uint64_t key = pair(id, func_proto);
	int rc = 0;
	*ret = 0;
	if (!cairn_btf_type(l->c->btf, id, &t) || t.kind != CAIRN_BTF_LOC_PROTO ||
	    get(&l->protos, key, ret))
		return 0;
	l->slots.n = 0;
	for (uint32_t i = 0; rc == 0 && i < t.vlen; i++)
		rc = slots_to_v1(l, t.words[i], func_proto, i);
	if (rc == 0)
		rc = btf_add_loc_proto(l->c->b, l->slots.p, (uint32_t)l->slots.n, ret);
	return rc < 0 ? rc : map_put(&l->protos, key, *ret);
}

static int site_to_v1(struct loc_convert *l, struct cairn_btf_loc n)
{
	struct cairn_btf_type func;
	struct cairn_btf_loc v1 = {.offset = n.offset};
	if (!cairn_btf_type(l->c->btf, n.func, &func) || func.kind != CAIRN_BTF_FUNC) {
		l->c->losses.locs++;
		return 0;
	}
	v1.name_off = btf_convert_name(l->c, func.name_off);
	v1.func_proto = func.ref < l->c->btf->end_id ? l->c->map[func.ref] : func.ref;
	int rc = proto_to_v1(l, n.loc_proto, func.ref, &v1.loc_proto);
	if (rc == 0 && !VEC_ADD(&l->sites, v1))
		rc = -ENOMEM;
	return rc;
}

static int by_offset(const void *a, const void *b)
{
	const struct cairn_btf_loc *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->name_off != y->name_off)
		return x->name_off < y->name_off ? -1 : 1;
	if (x->func_proto != y->func_proto)
		return x->func_proto < y->func_proto ? -1 : 1;
	return (x->loc_proto > y->loc_proto) - (x->loc_proto < y->loc_proto);
}

static int finish_v1(struct loc_convert *l)
{
	return add_locsecs(l, V1_SECTION, V1_SITES_MAX, by_offset);
}

/* ---- both ---- */

static bool is_text(const char *section)
{
	return !strcmp(section, ".text") || !strcmp(section, "inline.text");
}

static int convert_locsec(struct loc_convert *l, const struct cairn_btf_type *t)
{
	bool to_n = l->c->dialect == CAIRN_BTF_LOC_N;
	int rc = 0;
	if (!to_n && !is_text(t->name)) {
		l->c->losses.locsecs++;
		l->c->losses.locs += t->vlen;
		return 0;
	}
	for (uint32_t i = 0; rc == 0 && i < t->vlen; i++) {
		struct cairn_btf_loc loc = cairn_btf_loc(l->c->btf, t, i);
		rc = to_n ? site_to_n(l, loc) : site_to_v1(l, loc);
	}
	return rc;
}

int btf_convert_loc(struct btf_convert *c)
{
	struct loc_convert l = {.c = c};
	struct cairn_btf_type t;
	int rc = 0;
	for (uint32_t id = c->btf->start_id; rc == 0 && id < c->btf->end_id; id++)
		if (cairn_btf_type(c->btf, id, &t) && t.kind == CAIRN_BTF_LOCSEC)
			rc = convert_locsec(&l, &t);
	if (rc == 0)
		rc = c->dialect == CAIRN_BTF_LOC_N ? finish_n(&l) : finish_v1(&l);
	map_fini(&l.params);
	map_fini(&l.protos);
	map_fini(&l.funcs);
	VEC_FREE(&l.sites);
	VEC_FREE(&l.slots);
	return rc;
}
