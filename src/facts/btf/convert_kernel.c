/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rewrites BTF of C++, Rust and Go programs that BPF_BTF_LOAD would refuse
 *
 *	names of types, members, functions, variables, enumerators and parameters: letters, digits,
 *	'_' and '.', no digit first, 511 bytes at most
 *		core::option::Option<u32>	core.option.Option_u32_
 *		~r0				_r0
 *	members of a struct in the order of their offsets, which is not that in which Rust declares
 *	them
 *	parameters of a function with names
 *		fn(u32)				fn(u32 arg0)
 *
 * "::" becomes '.', and any other character that is not allowed '_'. If two names would become one,
 * or a name is too long, the hash of the old name is appended (".5f3a01c7"), so that different
 * names stay different. Names of integers, floats and tags may be any text for the kernel, and are
 * kept; those of sections since Linux 6.12 only.
 *
 * Functions with a parameter or result of a type that is only declared (C++ passes such by
 * reference) are left out: the kernel requires all sizes.
 *
 * Objects that are declared here and defined elsewhere (extern) are left out. So are sections that
 * have no size before an object is linked, variables in a section that overlap or have no size, and
 * tags that only new kernels know or that come after qualifiers. A member that is a float at an odd
 * offset (packed) becomes bytes.
 *
 * Names are rewritten as records are copied; the rest is done in the result.
 */
#include "btf/convert.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "btf/check.h"

struct renamed {
	const char *from, *to;
};

struct btf_kernel_names {
	struct arena arena;
	VEC(struct renamed) v;
	struct map by_from; /* hash to v */
	struct map taken;   /* hash of a name in the result to the text */
};

/* ---- names ---- */

static bool is_text(uint32_t kind)
{
	return kind == CAIRN_BTF_INT || kind == CAIRN_BTF_FLOAT || kind == CAIRN_BTF_DECL_TAG ||
	       kind == CAIRN_BTF_TYPE_TAG;
}

/* Whether another name is, or will be, called so; if not, this one is. 1, 0, -ENOMEM. */
static int take(struct btf_kernel_names *k, const char *name)
{
	uint64_t at, h;
	for (h = map_hash_str(name); map_get(&k->taken, h, &at); h++)
		if (!strcmp((const char *)(uintptr_t)at, name))
			return 1;
	return map_put(&k->taken, h, (uint64_t)(uintptr_t)name);
}

/* Names that stay as they are come first, whoever has them. */
static int take_all_good(struct btf_kernel_names *k, const struct cairn_btf *btf)
{
	for (uint32_t off = btf->start_string, end = btf_end_string(btf); off < end;) {
		const char *name = cairn_btf_string(btf, off);
		if (!name)
			return 0;
		off += (uint32_t)strlen(name) + 1;
		if (btf_is_kernel_name(name) && take(k, name) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Room for the name, one more at its beginning, and a hash. */
static char *rewrite(struct btf_kernel_names *k, const char *name)
{
	char *to = arena_alloc(&k->arena, strlen(name) + 16), *p = to;
	if (!to)
		return NULL;
	if (isdigit((unsigned char)*name))
		*p++ = '_';
	for (; *name; name++) {
		bool colons = name[0] == ':' && name[1] == ':';
		bool good = isalnum((unsigned char)*name) || *name == '_' || *name == '.';
		*p++ = colons ? '.' : good ? *name : '_';
		name += colons;
	}
	return to;
}

static void append_hash(char *name, uint64_t hash)
{
	enum { HASH_CHARS = 9 };
	size_t n = strlen(name);
	if (n > BTF_KERNEL_NAME_MAX - HASH_CHARS)
		n = BTF_KERNEL_NAME_MAX - HASH_CHARS;
	snprintf(name + n, HASH_CHARS + 1, ".%08x", (unsigned int)(uint32_t)(hash ^ hash >> 32));
}

static int add(struct btf_convert *c, const char *name, uint64_t key, const char **ret)
{
	struct btf_kernel_names *k = c->kernel_names;
	struct renamed r = {.from = name};
	char *to = rewrite(k, name);
	int rc = to ? 0 : -ENOMEM;
	if (rc == 0 && strlen(to) > BTF_KERNEL_NAME_MAX)
		append_hash(to, map_hash_str(name));
	if (rc == 0)
		rc = take(k, to);
	/*
	 * The hash is of the whole name, so the second of two that look alike differs, and so would
	 * a third.
	 */
	for (uint64_t more = 0; rc == 1; more++) {
		to = rewrite(k, name);
		if (!to)
			return -ENOMEM;
		append_hash(to, map_hash_str(name) + more);
		rc = take(k, to);
	}
	if (rc < 0)
		return rc;
	r.to = *ret = to;
	c->losses.names++;
	return VEC_ADD(&k->v, r) ? map_put(&k->by_from, key, k->v.n - 1) : -ENOMEM;
}

int btf_kernel_name(struct btf_convert *c, uint32_t kind, uint32_t off, uint32_t *ret)
{
	const char *name = cairn_btf_string(c->btf, off);
	uint64_t at, key;
	*ret = 0;
	/* An offset beyond the strings: nothing here repairs it, and the check reports it. */
	if (!off || !name || !*name)
		return 0;
	if (is_text(kind) || btf_is_kernel_name(name))
		return cairn_btf_add_string(c->b, name, ret);
	for (key = map_hash_str(name); map_get(&c->kernel_names->by_from, key, &at); key++)
		if (!strcmp(c->kernel_names->v.p[at].from, name))
			return cairn_btf_add_string(c->b, c->kernel_names->v.p[at].to, ret);
	int rc = add(c, name, key, &name);
	return rc < 0 ? rc : cairn_btf_add_string(c->b, name, ret);
}

int btf_kernel_names_new(struct btf_convert *c)
{
	c->kernel_names = calloc(1, sizeof(*c->kernel_names));
	return c->kernel_names ? take_all_good(c->kernel_names, c->btf) : -ENOMEM;
}

void btf_kernel_names_free(struct btf_kernel_names *k)
{
	if (!k)
		return;
	arena_fini(&k->arena);
	VEC_FREE(&k->v);
	map_fini(&k->by_from);
	map_fini(&k->taken);
	free(k);
}

/* ---- functions ---- */

/* The kernel follows no more. */
enum { AROUND_MAX = 32 };

/* No value can be of it: declared only, or another name of void. */
static bool has_no_size(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;
	bool is_named = false;
	for (int i = 0; i < AROUND_MAX && cairn_btf_type(btf, id, &t); i++) {
		is_named = true;
		switch (t.kind) {
		case CAIRN_BTF_FWD:
			return true;
		case CAIRN_BTF_TYPEDEF:
		case CAIRN_BTF_CONST:
		case CAIRN_BTF_VOLATILE:
		case CAIRN_BTF_RESTRICT:
		case CAIRN_BTF_TYPE_TAG:
			id = t.ref;
			break;
		default:
			return false;
		}
	}
	return is_named && !id;
}

static bool is_refused_proto(const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	if (has_no_size(btf, t->ref))
		return true;
	for (uint32_t i = 0; i < t->vlen; i++)
		if (has_no_size(btf, cairn_btf_param(t, i).type))
			return true;
	return false;
}

/*
 * Declared here and defined elsewhere; an attribute, which not all kernels know; a section that has
 * no size yet.
 */
static bool is_refused_alone(const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_FUNC:
		return t->vlen > CAIRN_BTF_GLOBAL;
	case CAIRN_BTF_VAR:
		return t->words[0] > CAIRN_BTF_GLOBAL;
	case CAIRN_BTF_DATASEC:
		return !t->ref && t->vlen;
	case CAIRN_BTF_DECL_TAG:
		return t->kflag;
	default:
		return false;
	}
}

bool btf_kernel_refuses(const struct cairn_btf *btf, const struct cairn_btf_type *t)
{
	struct cairn_btf_type at = *t;
	if (is_refused_alone(&at))
		return true;
	if (at.kind == CAIRN_BTF_DECL_TAG &&
	    (!cairn_btf_type(btf, at.ref, &at) || is_refused_alone(&at)))
		return at.id != t->id;
	if (at.kind == CAIRN_BTF_FUNC && !cairn_btf_type(btf, at.ref, &at))
		return false;
	return at.kind == CAIRN_BTF_FUNC_PROTO && is_refused_proto(btf, &at);
}

/* ---- type tags ---- */

bool *btf_kernel_refused_tags(const struct cairn_btf *btf)
{
	const uint64_t modifiers = KIND(TYPEDEF) | KIND(VOLATILE) | KIND(CONST) | KIND(RESTRICT);
	bool *refused = calloc(btf->end_id, sizeof(*refused));
	struct cairn_btf_type t;
	for (uint32_t id = 1; refused && id < btf->end_id; id++) {
		cairn_btf_type(btf, id, &t);
		if (t.kind == CAIRN_BTF_TYPE_TAG && t.kflag)
			refused[id] = true;
		if (t.kind >= CAIRN_BTF_N_KINDS || !(modifiers >> t.kind & 1))
			continue;
		/* As many tags after the qualifier as there are. */
		while (cairn_btf_type(btf, t.ref, &t) && t.kind == CAIRN_BTF_TYPE_TAG &&
		       !refused[t.id])
			refused[t.id] = true;
	}
	return refused;
}

/* ---- variables ---- */

uint32_t btf_kernel_variables(const struct btf_convert *c, const struct cairn_btf_type *t,
			      uint32_t *words)
{
	uint32_t n = 0;
	uint64_t end = 0;
	struct cairn_btf_type var;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_secinfo v = cairn_btf_secinfo(t, i);
		if (!cairn_btf_type(c->btf, v.type, &var) || var.kind != CAIRN_BTF_VAR ||
		    !c->map[v.type] || !v.size || v.offset < end ||
		    (uint64_t)v.offset + v.size > t->ref)
			continue;
		end = (uint64_t)v.offset + v.size;
		memcpy(words + 3 * (size_t)n++, t->words + 3 * (size_t)i, 3 * sizeof(*words));
	}
	return n;
}

/* ---- floats ---- */

enum { FLOAT_BYTES_MAX = 16 };

static uint32_t bit_off(const uint32_t *record, const uint32_t *member)
{
	return BTF_KFLAG_OF(record[BTF_RECORD_INFO]) ? member[2] & 0xffffff : member[2];
}

/* The record of an id of the result or its base. */
static const uint32_t *result_record(const struct btf_convert *c, uint32_t id)
{
	if (c->base && id < c->base->end_id)
		return id ? btf_record(btf_owner(c->base, id), id) : NULL;
	return btf_builder_record(c->b, id);
}

/* Bytes of a FLOAT, through qualifiers and typedefs; 0: it is none. */
static uint32_t float_bytes(const struct btf_convert *c, uint32_t id)
{
	const uint64_t through =
		KIND(TYPEDEF) | KIND(VOLATILE) | KIND(CONST) | KIND(RESTRICT) | KIND(TYPE_TAG);
	const uint32_t *record;
	for (int i = 0; i < AROUND_MAX && (record = result_record(c, id)); i++) {
		uint32_t kind = BTF_KIND_OF(record[BTF_RECORD_INFO]);
		if (kind == CAIRN_BTF_FLOAT)
			return record[BTF_RECORD_REF] <= FLOAT_BYTES_MAX ? record[BTF_RECORD_REF]
									 : 0;
		if (kind >= CAIRN_BTF_N_KINDS || !(through >> kind & 1))
			return 0;
		id = record[BTF_RECORD_REF];
	}
	return 0;
}

/* Calls for each member that is a FLOAT at an offset that the kernel does not take. */
static void for_unaligned(const struct btf_convert *c, uint32_t first,
			  void (*visit)(uint32_t *ids, uint32_t bytes, uint32_t *member),
			  uint32_t *ids)
{
	for (uint32_t id = first, *record; (record = btf_builder_record(c->b, id)); id++) {
		uint32_t kind = BTF_KIND_OF(record[BTF_RECORD_INFO]);
		if (kind != CAIRN_BTF_STRUCT && kind != CAIRN_BTF_UNION)
			continue;
		for (uint32_t i = 0; i < BTF_VLEN_OF(record[BTF_RECORD_INFO]); i++) {
			uint32_t *member = record + BTF_RECORD_WORDS + 3 * (size_t)i;
			uint32_t bytes =
				bit_off(record, member) % 64 ? float_bytes(c, member[1]) : 0;
			if (bytes && bit_off(record, member) % (8 * (bytes < 8 ? bytes : 8)))
				visit(ids, bytes, member);
		}
	}
}

static void need_opaque(uint32_t *ids, uint32_t bytes, uint32_t *member)
{
	ids[bytes] = 1;
}

static void make_opaque(uint32_t *ids, uint32_t bytes, uint32_t *member)
{
	member[1] = ids[bytes];
	ids[0]++;
}

/* Such members become bytes: a struct of that size without members. */
static int hide_floats(struct btf_convert *c, uint32_t first)
{
	uint32_t ids[FLOAT_BYTES_MAX + 1] = {0};
	int rc = 0;
	for_unaligned(c, first, need_opaque, ids);
	for (uint32_t bytes = 1; rc >= 0 && bytes <= FLOAT_BYTES_MAX; bytes++)
		if (ids[bytes])
			rc = btf_add_struct(c->b, CAIRN_BTF_STRUCT, 0, bytes, NULL, 0, &ids[bytes]);
	if (rc >= 0)
		for_unaligned(c, first, make_opaque, ids);
	c->losses.floats += ids[0];
	return rc;
}

/* ---- members ---- */

struct placed {
	uint32_t words[3];
	uint32_t at, number; /* bits from the start; its old position */
};

static int by_site(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

static bool is_sorted(const uint32_t *record, uint32_t n)
{
	const uint32_t *m = record + BTF_RECORD_WORDS;
	for (uint32_t i = 1; i < n; i++)
		if (bit_off(record, m + 3 * i) < bit_off(record, m + 3 * (i - 1)))
			return false;
	return true;
}

/* Sort the members of a record; *@ret has the new index of each, by the old one, malloc()ed. */
static int sort_members(uint32_t *record, uint32_t n, uint32_t **ret)
{
	uint32_t *m = record + BTF_RECORD_WORDS;
	struct placed *p = malloc(n * sizeof(*p));
	*ret = malloc(n * sizeof(**ret));
	if (!p || !*ret) {
		free(p);
		free(*ret);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < n; i++) {
		memcpy(p[i].words, m + 3 * i, sizeof(p[i].words));
		p[i].at = bit_off(record, m + 3 * i);
		p[i].number = i;
	}
	qsort(p, n, sizeof(*p), by_site);
	for (uint32_t i = 0; i < n; i++) {
		memcpy(m + 3 * i, p[i].words, sizeof(p[i].words));
		(*ret)[p[i].number] = i;
	}
	free(p);
	return 0;
}

struct moved {
	VEC(uint32_t *) to; /* for a struct: the new indices of its members */
	VEC(uint32_t) n;
	struct map by_id;
};

static int sort_structs(struct btf_convert *c, uint32_t first, struct moved *moved)
{
	for (uint32_t id = first, *record; (record = btf_builder_record(c->b, id)); id++) {
		uint32_t n = BTF_VLEN_OF(record[BTF_RECORD_INFO]), *to;
		if (BTF_KIND_OF(record[BTF_RECORD_INFO]) != CAIRN_BTF_STRUCT ||
		    is_sorted(record, n))
			continue;
		if (sort_members(record, n, &to) < 0)
			return -ENOMEM;
		c->losses.member_orders++;
		if (!VEC_ADD(&moved->to, to)) {
			free(to);
			return -ENOMEM;
		}
		if (!VEC_ADD(&moved->n, n) || map_put(&moved->by_id, id, moved->to.n - 1) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* A tag of a member goes where the member went. */
static void move_tags(struct btf_convert *c, uint32_t first, const struct moved *moved)
{
	for (uint32_t id = first, *record; (record = btf_builder_record(c->b, id)); id++) {
		uint32_t *component = record + BTF_RECORD_WORDS;
		uint64_t at;
		if (BTF_KIND_OF(record[BTF_RECORD_INFO]) != CAIRN_BTF_DECL_TAG ||
		    !map_get(&moved->by_id, record[BTF_RECORD_REF], &at))
			continue;
		if (*component < moved->n.p[at])
			*component = moved->to.p[at][*component];
	}
}

static int order_members(struct btf_convert *c, uint32_t first)
{
	struct moved moved = {0};
	int rc = sort_structs(c, first, &moved);
	if (rc == 0 && moved.to.n)
		move_tags(c, first, &moved);
	for (size_t i = 0; i < moved.to.n; i++)
		free(moved.to.p[i]);
	VEC_FREE(&moved.to);
	VEC_FREE(&moved.n);
	map_fini(&moved.by_id);
	return rc;
}

/* ---- parameters ---- */

/* "arg3"; a last one, "...", gets no name. */
static int name_param(struct btf_convert *c, uint32_t *param, uint32_t number)
{
	char name[16];
	if (param[0] || !param[1])
		return 0;
	snprintf(name, sizeof(name), "arg%u", number);
	c->losses.params++;
	return cairn_btf_add_string(c->b, name, &param[0]);
}

static int name_params(struct btf_convert *c, uint32_t first)
{
	int rc = 0;
	for (uint32_t id = first, *record; rc == 0 && (record = btf_builder_record(c->b, id));
	     id++) {
		if (BTF_KIND_OF(record[BTF_RECORD_INFO]) != CAIRN_BTF_FUNC)
			continue;
		uint32_t *proto = btf_builder_record(c->b, record[BTF_RECORD_REF]);
		if (!proto || BTF_KIND_OF(proto[BTF_RECORD_INFO]) != CAIRN_BTF_FUNC_PROTO)
			continue;
		uint32_t n = BTF_VLEN_OF(proto[BTF_RECORD_INFO]);
		for (uint32_t i = 0; i < n && rc == 0; i++)
			rc = name_param(c, proto + BTF_RECORD_WORDS + 2 * i, i);
	}
	return rc;
}

int btf_kernel_records(struct btf_convert *c)
{
	uint32_t first = c->base ? c->base->end_id : 1;
	int rc = order_members(c, first);
	if (rc >= 0)
		rc = hide_floats(c, first);
	return rc < 0 ? rc : name_params(c, first);
}
