/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/sites_types.h"

#include <errno.h>
#include <stdlib.h>

int sidecar_types_init(struct sidecar_types *t, const struct cairn_sidecar *sidecar)
{
	*t = (struct sidecar_types){.sidecar = sidecar, .graph = types_new()};
	t->known = calloc(sidecar->types.n + 1, 1);
	if (!t->graph || !t->known)
		return -ENOMEM;
	/* Number 0 is void, as id 0 is. Few of the others are looked at. */
	return types_reserve_to(t->graph, sidecar->types.n) ? 0 : -ENOMEM;
}

void sidecar_types_fini(struct sidecar_types *t)
{
	types_free(t->graph);
	VEC_FREE(&t->inside);
	free(t->known);
	VEC_FREE(&t->wanted);
}

uint32_t sidecar_types_want(struct sidecar_types *t, uint64_t number, int *rc)
{
	if (!number || number >= t->sidecar->types.n)
		return 0;
	if (!t->known[number]) {
		t->known[number] = 1;
		if (!VEC_ADD(&t->wanted, (uint32_t)number))
			*rc = -ENOMEM;
	}
	return (uint32_t)number;
}

static int read_params(struct sidecar_types *t, struct cursor *c, struct cairn_type *type)
{
	uint64_t n = cur_uleb(c);
	int rc = 0;
	/* A parameter is at least a byte. */
	if (c->failed || n > cur_left(c))
		return 0;
	struct cairn_member *m = arena_array(types_arena(t->graph), n, sizeof(*m));
	if (!m)
		return -ENOMEM;
	for (uint64_t i = 0; i < n; i++)
		m[i].type = sidecar_types_want(t, cur_uleb(c), &rc);
	type->members = m;
	type->n_members = (uint32_t)n;
	return rc;
}

/* Stands for the data after the members. */
static const struct cairn_variants not_read;

int sidecar_types_outside(struct sidecar_types *t, struct cursor *c, struct cairn_type *ret)
{
	uint8_t kind = cur_u8(c), encoding = 0;
	uint64_t facts = cur_uleb(c);
	int rc = 0;
	*ret = (struct cairn_type){.kind = kind <= CAIRN_T_UNSPECIFIED ? (enum cairn_type_kind)kind
								       : CAIRN_T_VOID,
				   .bare_name = facts & TYPE_BARE_NAME,
				   .has_count = facts & TYPE_HAS_COUNT,
				   .declaration = facts & TYPE_DECLARATION,
				   .prototyped = facts & TYPE_PROTOTYPED,
				   .variadic = facts & TYPE_VARIADIC,
				   .vector = facts & TYPE_VECTOR,
				   .is_variant = facts & TYPE_IS_VARIANT,
				   .byte_swapped = facts & TYPE_BYTE_SWAPPED};
	if (facts & TYPE_NAME)
		ret->name = sidecar_string(t->sidecar, (uint32_t)cur_uleb(c));
	ret->size = facts & TYPE_SIZE ? cur_uleb(c) : sidecar_usual_size(ret->kind);
	if (facts & TYPE_REF)
		ret->ref = sidecar_types_want(t, cur_uleb(c), &rc);
	if (facts & TYPE_ENCODING)
		encoding = cur_u8(c);
	ret->encoding = encoding <= CAIRN_ENC_OPAQUE ? (enum cairn_type_encoding)encoding
						     : CAIRN_ENC_OPAQUE;
	if (facts & TYPE_HAS_COUNT)
		ret->count = cur_uleb(c);
	if (facts & TYPE_CONTAINER)
		ret->container = sidecar_types_want(t, cur_uleb(c), &rc);
	if (facts & TYPE_ALIGN)
		ret->align = (uint32_t)cur_uleb(c);
	if (facts & TYPE_VARIANTS && ret->kind == CAIRN_T_UNION)
		ret->variants = &not_read;
	return rc < 0 ? rc : (facts & TYPE_INSIDE) != 0;
}

static bool has_content(enum cairn_type_kind kind)
{
	return kind == CAIRN_T_STRUCT || kind == CAIRN_T_CLASS || kind == CAIRN_T_UNION ||
	       kind == CAIRN_T_ENUM;
}

/* The facts about a struct, union or enum that are known before its inside is read. */
static int read_one(struct sidecar_types *t, uint32_t number)
{
	struct cursor c = record_at(&t->sidecar->types, number, NULL);
	struct cairn_type type;
	int rc = sidecar_types_outside(t, &c, &type);
	if (has_content(type.kind)) {
		type.unread = true;
		type.encoding = type.kind == CAIRN_T_ENUM ? CAIRN_ENC_OPAQUE : CAIRN_ENC_UNSIGNED;
		type.byte_swapped = false;
		type.variants = NULL;
		type.is_variant = false;
	} else if (rc > 0) {
		rc = read_params(t, &c, &type);
	}
	if (rc >= 0 && !c.failed)
		types_set(t->graph, number, &type);
	return rc;
}

int sidecar_types_drain(struct sidecar_types *t)
{
	int rc = 0;
	while (rc >= 0 && t->wanted.n) {
		uint32_t next = t->wanted.p[--t->wanted.n];
		rc = read_one(t, next);
	}
	return rc < 0 ? rc : 0;
}

uint32_t sidecar_types_read(struct sidecar_types *t, uint32_t number, int *rc)
{
	uint32_t id = sidecar_types_want(t, number, rc);
	if (*rc >= 0)
		*rc = sidecar_types_drain(t);
	return id;
}
