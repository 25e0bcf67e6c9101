/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The graph of types as BTF
 *
 * Each node that is reached becomes one record, in the order in which it was reached. So a node has
 * its id as soon as it is in the queue, and circles need no care:
 *
 *	queue   struct list   PTR list   int
 *	id      5             6          7      the builder had 4 records; struct list refers to
 *	                                        6 and 7
 *
 * The type of array indices stands first: BTF needs it, and no other format has it.
 */
#include <cairn/btf.h>

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "btf/build.h"

struct writer {
	struct cairn_btf_builder *b;
	const struct cairn_types *types;
	VEC(uint32_t) queue;
	struct map ids; /* node -> number in the queue */
	uint32_t first; /* id of the first of the queue */
	uint32_t index; /* id of the type of array indices */
	bool no_memory;
};

/* Nodes without a BTF record are replaced by their targets. */
static uint32_t skip(const struct writer *w, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(w->types, id);

	for (int i = 0;
	     i < 1024 && (t->kind == CAIRN_T_ATOMIC || (t->kind == CAIRN_T_TYPEDEF && !t->name));
	     i++) {
		id = t->ref;
		t = cairn_types_get(w->types, id);
	}
	return t->kind == CAIRN_T_VOID ? 0 : id;
}

static uint32_t id_of(struct writer *w, uint32_t id)
{
	uint64_t at;

	id = skip(w, id);
	if (!id)
		return 0;
	if (map_get(&w->ids, id, &at))
		return w->first + (uint32_t)at;
	at = w->queue.n;
	if (map_put(&w->ids, id, at) < 0 || !VEC_ADD(&w->queue, id))
		w->no_memory = true;
	return w->first + (uint32_t)at;
}

static int name_of(struct writer *w, const char *name, uint32_t *ret)
{
	*ret = 0;
	return name ? cairn_btf_add_string(w->b, name, ret) : 0;
}

static int add_int(struct writer *w, const struct cairn_type *t, uint32_t name)
{
	uint32_t encoding =
		t->encoding == CAIRN_ENC_BOOL ? CAIRN_BTF_INT_BOOL
		: t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR
			? CAIRN_BTF_INT_SIGNED
			: 0;
	uint32_t id;

	return btf_add_int(w->b, name, (uint32_t)t->size, encoding, (uint32_t)(8 * t->size), &id);
}

static int add_float(struct writer *w, const struct cairn_type *t, uint32_t name)
{
	bool known = t->size == 2 || t->size == 4 || t->size == 8 || t->size == 12 || t->size == 16;
	uint32_t id;

	return known ? btf_add_float(w->b, name, (uint32_t)t->size, &id)
		     : btf_add_struct(w->b, CAIRN_BTF_STRUCT, name, (uint32_t)t->size, NULL, 0,
				      &id);
}

static int add_members(struct writer *w, const struct cairn_type *t, struct cairn_btf_member *m)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *in = &t->members[i];
		int rc = name_of(w, in->name, &m[i].name_off);

		if (rc)
			return rc;
		if (in->dynamic || in->bit_off > UINT32_MAX)
			return -EINVAL;
		m[i].type = id_of(w, in->type);
		m[i].bit_off = (uint32_t)in->bit_off;
		m[i].bit_size = in->bit_size;
	}
	return 0;
}

static int add_record(struct writer *w, const struct cairn_type *t, uint32_t name)
{
	bool is_union = t->kind == CAIRN_T_UNION;
	struct cairn_btf_member *m;
	uint32_t id;

	if (t->declaration || t->unread)
		return btf_add_fwd(w->b, name, is_union, &id);
	if (t->size > UINT32_MAX)
		return -EINVAL;
	m = calloc(t->n_members + 1, sizeof(*m));
	int rc = m ? add_members(w, t, m) : -ENOMEM;
	if (!rc)
		rc = btf_add_struct(w->b, is_union ? CAIRN_BTF_UNION : CAIRN_BTF_STRUCT, name,
				    (uint32_t)t->size, m, t->n_members, &id);
	free(m);
	return rc;
}

static int add_enum(struct writer *w, const struct cairn_type *t, uint32_t name)
{
	struct cairn_btf_enumerator *e = calloc(t->n_enumerators + 1, sizeof(*e));
	int rc = e ? 0 : -ENOMEM;
	uint32_t id;

	for (uint32_t i = 0; i < t->n_enumerators && !rc; i++) {
		rc = name_of(w, t->enumerators[i].name, &e[i].name_off);
		e[i].value = t->enumerators[i].value;
	}
	if (!rc)
		rc = btf_add_enum(w->b, name, (uint32_t)t->size, t->encoding != CAIRN_ENC_UNSIGNED,
				  e, t->n_enumerators, &id);
	free(e);
	return rc;
}

static int add_function(struct writer *w, const struct cairn_type *t)
{
	uint32_t n = t->n_members + t->variadic, id;
	struct cairn_btf_param *p = calloc(n + 1, sizeof(*p));
	int rc = p ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < t->n_members && !rc; i++) {
		rc = name_of(w, t->members[i].name, &p[i].name_off);
		p[i].type = id_of(w, t->members[i].type);
	}
	if (!rc)
		rc = btf_add_func_proto(w->b, id_of(w, t->ref), p, n, &id);
	free(p);
	return rc;
}

static int add_ref(struct writer *w, enum cairn_btf_kind kind, uint32_t name, uint32_t to)
{
	uint32_t id;

	return btf_add_ref(w->b, kind, name, id_of(w, to), &id);
}

static int add_array(struct writer *w, const struct cairn_type *t)
{
	uint64_t count = t->count;
	uint32_t id;

	if (t->vector && cairn_types_size(w->types, t->ref))
		count = t->size / cairn_types_size(w->types, t->ref);
	if (count > UINT32_MAX)
		return -EINVAL;
	return btf_add_array(w->b, id_of(w, t->ref), w->index, (uint32_t)count, &id);
}

/* Exactly one record. */
static int add_one(struct writer *w, const struct cairn_type *t)
{
	uint32_t name, id;
	int rc = name_of(w, t->name, &name);

	if (rc)
		return rc;
	switch (t->kind) {
	case CAIRN_T_INT:
		return add_int(w, t, name);
	case CAIRN_T_FLOAT:
		return add_float(w, t, name);
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		return add_ref(w, CAIRN_BTF_PTR, 0, t->ref);
	case CAIRN_T_ARRAY:
		return add_array(w, t);
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return add_record(w, t, name);
	case CAIRN_T_ENUM:
		return add_enum(w, t, name);
	case CAIRN_T_TYPEDEF:
		return add_ref(w, CAIRN_BTF_TYPEDEF, name, t->ref);
	case CAIRN_T_CONST:
		return add_ref(w, CAIRN_BTF_CONST, 0, t->ref);
	case CAIRN_T_VOLATILE:
		return add_ref(w, CAIRN_BTF_VOLATILE, 0, t->ref);
	case CAIRN_T_RESTRICT:
		return add_ref(w, CAIRN_BTF_RESTRICT, 0, t->ref);
	case CAIRN_T_FUNC:
		return add_function(w, t);
	default:
		/* Pointers to members, decltype(nullptr): as many bytes. */
		return btf_add_struct(w->b, CAIRN_BTF_STRUCT, name, (uint32_t)t->size, NULL, 0,
				      &id);
	}
}

static int add_all(struct writer *w, struct cairn_err *err)
{
	for (size_t i = 0; i < w->queue.n; i++) {
		const struct cairn_type *t = cairn_types_get(w->types, w->queue.p[i]);
		int rc = add_one(w, t);

		if (w->no_memory || rc == -ENOMEM)
			return err_nomem(err, "BTF of types");
		if (rc)
			return err_set(err, rc, "%s cannot be expressed in BTF",
				       t->name ? t->name : "a type without a name");
	}
	/* Nothing may be in the queue for that reason. */
	return w->no_memory ? err_nomem(err, "BTF of types") : 0;
}

int cairn_btf_add_types(struct cairn_btf_builder *b, const struct cairn_types *types,
			const uint32_t *ids, size_t n, uint32_t *ret_ids, struct cairn_err *err)
{
	struct writer w = {.b = b, .types = types};
	uint32_t name;
	int rc = cairn_btf_add_string(b, "__ARRAY_SIZE_TYPE__", &name);

	rc = rc ? rc : btf_add_int(b, name, 4, 0, 32, &w.index);
	if (rc)
		return err_nomem(err, "BTF of types");
	w.first = btf_builder_next_id(b);
	map_init(&w.ids);
	for (size_t i = 0; i < n; i++) {
		uint32_t id = id_of(&w, ids[i]);

		if (ret_ids)
			ret_ids[i] = id;
	}
	rc = add_all(&w, err);
	map_fini(&w.ids);
	VEC_FREE(&w.queue);
	return rc;
}
