/* SPDX-License-Identifier: BSD-2-Clause */
#include "pack/sites_types.h"

#include <errno.h>
#include <stdlib.h>

int pack_types_init(struct pack_types *t, const struct cairn_pack *pack)
{
	*t = (struct pack_types){.pack = pack, .graph = types_new()};
	map_init(&t->from_whole);
	map_init(&t->to_whole);
	t->known = calloc(pack->types.n + 1, 1);
	if (!t->graph || !t->known)
		return -ENOMEM;
	/* Number 0 is void, as id 0 is. Few of the others are looked at. */
	return types_reserve_to(t->graph, pack->types.n) ? 0 : -ENOMEM;
}

void pack_types_fini(struct pack_types *t)
{
	types_free(t->graph);
	types_free(t->whole);
	cairn_btf_close(t->btf);
	map_fini(&t->from_whole);
	map_fini(&t->to_whole);
	VEC_FREE(&t->inside);
	free(t->known);
	VEC_FREE(&t->wanted);
}

static uint32_t want(struct pack_types *t, uint64_t number, int *rc)
{
	if (!number || number >= t->pack->types.n)
		return 0;
	if (!t->known[number]) {
		t->known[number] = 1;
		if (!VEC_ADD(&t->wanted, (uint32_t)number))
			*rc = -ENOMEM;
	}
	return (uint32_t)number;
}

static int read_params(struct pack_types *t, struct cursor *c, struct cairn_type *type)
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
		m[i].type = want(t, cur_uleb(c), &rc);
	type->members = m;
	type->n_members = (uint32_t)n;
	return rc;
}

static int read_one(struct pack_types *t, uint32_t number)
{
	struct cursor c = record_at(&t->pack->types, number, NULL);
	struct cairn_type type = {0};
	int rc = 0;
	uint8_t kind = cur_u8(&c), encoding = cur_u8(&c), flags = cur_u8(&c);
	type.kind = kind <= CAIRN_T_UNSPECIFIED ? (enum cairn_type_kind)kind : CAIRN_T_VOID;
	type.encoding = encoding <= CAIRN_ENC_OPAQUE ? (enum cairn_type_encoding)encoding : CAIRN_ENC_OPAQUE;
	type.bare_name = flags & TYPE_BARE_NAME;
	type.declaration = flags & TYPE_DECLARATION;
	type.unread = flags & TYPE_UNREAD;
	type.prototyped = flags & TYPE_PROTOTYPED;
	type.variadic = flags & TYPE_VARIADIC;
	type.has_count = flags & TYPE_HAS_COUNT;
	type.vector = flags & TYPE_VECTOR;
	type.name = pack_string(t->pack, (uint32_t)cur_uleb(&c));
	type.size = cur_uleb(&c);
	type.ref = want(t, cur_uleb(&c), &rc);
	type.container = want(t, cur_uleb(&c), &rc);
	type.count = cur_uleb(&c);
	if (rc >= 0)
		rc = read_params(t, &c, &type);
	if (rc >= 0 && !c.failed)
		types_set(t->graph, number, &type);
	return rc;
}

uint32_t pack_types_read(struct pack_types *t, uint32_t number, int *rc)
{
	uint32_t id = want(t, number, rc);
	while (*rc >= 0 && t->wanted.n) {
		uint32_t next = t->wanted.p[--t->wanted.n];
		*rc = read_one(t, next);
	}
	return id;
}
