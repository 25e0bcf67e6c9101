/* SPDX-License-Identifier: BSD-2-Clause */
/* Types by name, from each kind of source. */
#include "source/source_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "btf/btf.h"
#include "source/query.h"

/* The target of a typedef may be declared only. */
static int append(const struct cairn_types *types, struct cairn_source_list *list, uint32_t id,
		  struct cairn_err *err)
{
	if (cairn_types_get(types, cairn_types_resolve(types, id))->declaration)
		return 0;
	if (list->n == list->cap) {
		size_t cap = list->cap ? 2 * list->cap : 16;
		uint32_t *grown = realloc(list->ids, cap * sizeof(*grown));

		if (!grown)
			return err_nomem(err, "the list of types");
		list->ids = grown;
		list->cap = cap;
	}
	list->ids[list->n++] = id;
	return 0;
}

/* ---- of a provider: of its scopes ---- */

struct named_list {
	const struct cairn_types *types;
	const struct listed *list;
};

static const char *name_listed(const void *ctx, size_t place)
{
	const struct named_list *l = ctx;

	return cairn_types_get(l->types, l->list->ids.p[place - 1])->name;
}

static int add_listed(void *ctx, uint32_t id, struct cairn_err *err)
{
	struct listed *to = ctx;

	return VEC_ADD(&to->ids, id) ? 0 : err_nomem(err, "the list of types");
}

static int append_complete(struct cairn_source *s, struct cairn_source_list *found, uint32_t id,
			   struct cairn_err *err)
{
	int rc = s->ops->complete(s->provider, id, err);

	return rc < 0 ? rc : append(cairn_source_types(s), found, id, err);
}

/* A provider lists once. */
static int list(struct cairn_source *s, bool typedefs, struct listed *to, struct cairn_err *err)
{
	int rc = to->is_read ? 0 : s->ops->list(s->provider, typedefs, add_listed, to, err);

	to->is_read = rc >= 0;
	return rc;
}

static int select_listed(struct cairn_source *s, struct listed *from, const struct type_query *w,
			 struct cairn_source_list *found, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	struct named_list named = {types, from};
	struct names_walk walk = {0};
	int rc = names_find(&from->by_name, type_query_name(w), from->ids.n, name_listed, &named,
			    &walk, err);

	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = from->ids.p[walk.at - 1];

		if (type_query_takes(w, types, cairn_types_get(types, id), s->with_typedefs))
			rc = append_complete(s, found, id, err);
	}
	return rc;
}

/* ---- of a provider: of its functions ---- */

static int add_local(void *ctx, uint32_t id, const char *name, struct cairn_err *err)
{
	struct listed *to = ctx;
	char *copy = strdup(name);

	if (copy && VEC_ADD(&to->names, copy))
		return VEC_ADD(&to->ids, id) ? 0 : err_nomem(err, "the list of types");
	free(copy);
	return err_nomem(err, "the list of types");
}

static const char *name_local(const void *ctx, size_t place)
{
	return ((const struct listed *)ctx)->names.p[place - 1];
}

static int select_locals(struct cairn_source *s, const struct type_query *w,
			 struct cairn_source_list *found, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	struct names_walk walk = {0};
	int rc = s->locals.is_read ? 0
				   : s->ops->list_locals(s->provider, add_local, &s->locals, err);

	s->locals.is_read = rc >= 0;
	if (rc >= 0)
		rc = names_find(&s->locals.by_name, w->is_glob ? NULL : w->name, s->locals.ids.n,
				name_local, &s->locals, &walk, err);
	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = s->locals.ids.p[walk.at - 1];

		if (type_query_takes_local(w, types, cairn_types_get(types, id),
					   s->locals.names.p[walk.at - 1]))
			rc = append_complete(s, found, id, err);
	}
	return rc;
}

/* ---- of a provider ---- */

static bool may_be_typedef(const struct cairn_source *s, const struct type_query *w)
{
	return w->any_kind && (w->name || s->with_typedefs);
}

/* Typedefs cost a second pass over the binary, and are looked for when the name may be one. */
static int select_provided(struct cairn_source *s, const struct type_query *w,
			   struct cairn_source_list *found, struct cairn_err *err)
{
	size_t before = found->n;
	int rc = w->values ? 0 : list(s, false, &s->defs, err);

	if (rc >= 0 && !w->values)
		rc = select_listed(s, &s->defs, w, found, err);
	if (rc < 0 || !may_be_typedef(s, w) || (w->name && !w->is_glob && found->n > before))
		return rc;
	rc = list(s, true, &s->typedefs, err);
	return rc < 0 ? rc : select_listed(s, &s->typedefs, w, found, err);
}

/* ---- of BTF and declarations ---- */

/* By its kind alone: could it be wanted? Most records are not. */
static inline bool has_wanted_kind(uint32_t kind)
{
	enum {
		WANTED = 1 << CAIRN_BTF_STRUCT | 1 << CAIRN_BTF_UNION | 1 << CAIRN_BTF_ENUM |
			 1 << CAIRN_BTF_ENUM64 | 1 << CAIRN_BTF_TYPEDEF | 1 << CAIRN_BTF_INT |
			 1 << CAIRN_BTF_FLOAT
	};
	return kind < 32 && WANTED >> kind & 1;
}

static const char *name_in_btf(const void *ctx, size_t place)
{
	struct cairn_btf_type t;

	return cairn_btf_type(ctx, (uint32_t)place, &t) ? t.name : NULL;
}

static int select_btf(struct cairn_source *s, const struct type_query *w,
		      struct cairn_source_list *list, struct cairn_err *err)
{
	struct cairn_btf_type t;
	struct names_walk walk = {0};
	int rc = names_find(&s->by_name, type_query_name(w), cairn_btf_end_id(s->btf) - 1,
			    name_in_btf, s->btf, &walk, err);

	while (rc >= 0 && names_next(&walk)) {
		uint32_t id = (uint32_t)walk.at;

		if (!has_wanted_kind(btf_kind_at(s->btf, id)) || !cairn_btf_type(s->btf, id, &t) ||
		    !type_query_may_take(w, &t))
			continue;
		rc = btf_types_read(s->btf_reader, id, err);
		if (rc >= 0 && type_query_takes(w, s->types, cairn_types_get(s->types, id), false))
			rc = append(s->types, list, id, err);
	}
	return rc;
}

static const char *name_in_graph(const void *ctx, size_t place)
{
	return cairn_types_get(ctx, (uint32_t)place)->name;
}

/* The graph is there, whole. */
static int select_decl(struct cairn_source *s, const struct type_query *w,
		       struct cairn_source_list *list, struct cairn_err *err)
{
	const struct cairn_types *types = cairn_source_types(s);
	struct names_walk walk = {0};
	int rc = names_find(&s->by_name, type_query_name(w), cairn_types_n_types(types) - 1,
			    name_in_graph, types, &walk, err);

	while (rc >= 0 && names_next(&walk))
		if (type_query_takes(w, types, cairn_types_get(types, (uint32_t)walk.at), true))
			rc = append(types, list, (uint32_t)walk.at, err);
	return rc;
}

static int select_by(struct cairn_source *s, const struct type_query *w,
		     struct cairn_source_list *list, struct cairn_err *err)
{
	switch (s->kind) {
	case CAIRN_SOURCE_DWARF:
		return select_provided(s, w, list, err);
	case CAIRN_SOURCE_BTF:
		return select_btf(s, w, list, err);
	default:
		return select_decl(s, w, list, err);
	}
}

int cairn_source_read_all(struct cairn_source *s, struct cairn_err *err)
{
	return s->btf_reader ? btf_types_read_all(s->btf_reader, err) : 0;
}

/* Types without their scopes, and those that functions have: for a name that is nothing else. */
static int select_far(struct cairn_source *s, const struct type_query *w,
		      struct cairn_source_list *list, struct cairn_err *err)
{
	struct type_query tail = *w;
	size_t before = list->n;
	int rc = 0;

	tail.tail = true;
	if (!w->is_glob)
		rc = select_by(s, &tail, list, err);
	return rc < 0 || (!w->is_glob && list->n > before) || !s->ops
		       ? rc
		       : select_locals(s, w, list, err);
}

/* Exactly that name; as a value, too, with @values; else the possible meanings. */
static int64_t select_name(struct cairn_source *s, const char *pattern, bool values,
			   struct cairn_source_list *list, struct cairn_err *err)
{
	struct type_query w = type_query_of(pattern);
	size_t before = list->n;
	int rc = select_by(s, &w, list, err);

	if (rc >= 0 && list->n == before && values && w.any_kind) {
		w.values = true;
		rc = select_by(s, &w, list, err);
	}
	bool is_open = w.is_glob ? strstr(pattern, "::") != NULL : pattern && list->n == before;
	if (rc >= 0 && is_open) {
		w.values = false;
		rc = select_far(s, &w, list, err);
	}
	if (rc >= 0 && list->n == before && values && w.any_kind) {
		w.values = true;
		rc = select_far(s, &w, list, err);
	}
	return rc < 0 ? rc : (int64_t)(list->n - before);
}

int64_t cairn_source_select(struct cairn_source *s, const char *pattern,
			    struct cairn_source_list *list, struct cairn_err *err)
{
	return select_name(s, pattern, false, list, err);
}

int64_t cairn_source_select_value(struct cairn_source *s, const char *name,
				  struct cairn_source_list *list, struct cairn_err *err)
{
	return select_name(s, name, name && !strpbrk(name, "*?["), list, err);
}
