/* SPDX-License-Identifier: BSD-2-Clause */
#include "source/query.h"

#include <fnmatch.h>
#include <string.h>

#include "source/spelling.h"

struct type_query type_query_of(const char *pattern)
{
	static const struct {
		const char *word;
		enum cairn_type_kind kind;
	} words[] = {{"struct ", CAIRN_T_STRUCT},
		     {"class ", CAIRN_T_STRUCT},
		     {"union ", CAIRN_T_UNION},
		     {"enum ", CAIRN_T_ENUM}};
	struct type_query w = {.name = pattern, .any_kind = true};

	for (size_t i = 0; pattern && i < sizeof(words) / sizeof(words[0]); i++) {
		size_t n = strlen(words[i].word);

		if (strncmp(pattern, words[i].word, n))
			continue;
		w = (struct type_query){.name = pattern + n, .kind = words[i].kind};
		break;
	}
	w.is_glob = w.name && strpbrk(w.name, "*?[");
	return w;
}

/* "Job" is the tail of "ns::Job". */
static bool is_tail(const char *name, const char *tail)
{
	size_t n = strlen(name), m = strlen(tail);

	return n > m + 2 && !strcmp(name + n - m, tail) && name[n - m - 1] == ':' &&
	       name[n - m - 2] == ':';
}

static bool is_named(const struct type_query *w, const char *name)
{
	if (w->is_glob)
		return !fnmatch(w->name, name, 0);
	return w->tail ? is_tail(name, w->name) : !strcmp(name, w->name);
}

const char *type_query_name(const struct type_query *w)
{
	return w->is_glob || w->values ? NULL : w->name;
}

static bool has_inside(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION ||
	       t->kind == CAIRN_T_ENUM;
}

/*
 * "typedef struct { ... } name;" is how some have their name; by its own any typedef of a struct is
 * wanted.
 */
static bool is_typedef(const struct type_query *w, const struct cairn_types *types,
		       const struct cairn_type *t)
{
	if (t->kind != CAIRN_T_TYPEDEF || !w->any_kind)
		return false;
	if (w->name && !w->is_glob)
		t = cairn_types_get(types, cairn_types_resolve(types, t->ref));
	else
		t = cairn_types_get(types, t->ref);
	/* "typedef struct a a;" adds nothing. */
	return has_inside(t) && (!t->name || (w->name && !w->is_glob && strcmp(t->name, w->name)));
}

/* A typedef of anything that has bytes, or a number by any of its spellings. */
static bool is_value(const struct type_query *w, const struct cairn_types *types,
		     const struct cairn_type *t)
{
	if (t->kind == CAIRN_T_TYPEDEF)
		return cairn_types_size(types, t->ref) && is_named(w, t->name);
	return (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_FLOAT) && t->name &&
	       spelled_alike(w->name, t->name);
}

static bool is_defined(const struct cairn_type *t)
{
	return has_inside(t) && !t->declaration && t->name;
}

bool type_query_takes(const struct type_query *w, const struct cairn_types *types,
		      const struct cairn_type *t, bool with_typedefs)
{
	enum cairn_type_kind kind = t->kind == CAIRN_T_CLASS ? CAIRN_T_STRUCT : t->kind;

	if (w->values)
		return is_value(w, types, t);
	if (!is_defined(t) && !((w->name || with_typedefs) && is_typedef(w, types, t)))
		return false;
	if (!w->any_kind && kind != w->kind)
		return false;
	if (!w->name)
		return kind != CAIRN_T_ENUM;
	return is_named(w, t->name);
}

bool type_query_takes_local(const struct type_query *w, const struct cairn_types *types,
			    const struct cairn_type *t, const char *name)
{
	enum cairn_type_kind kind = t->kind == CAIRN_T_CLASS ? CAIRN_T_STRUCT : t->kind;

	if (w->is_glob ? fnmatch(w->name, name, 0) != 0
		       : strcmp(w->name, name) != 0 && !is_tail(name, w->name))
		return false;
	if (kind != CAIRN_T_TYPEDEF)
		return is_defined(t) && (w->any_kind || kind == w->kind);
	return w->any_kind &&
	       (w->values ? cairn_types_size(types, t->ref) != 0
			  : has_inside(cairn_types_get(types, cairn_types_resolve(types, t->ref))));
}

bool type_query_may_take(const struct type_query *w, const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		break;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
	case CAIRN_BTF_TYPEDEF:
		if (w->name)
			break;
		return false;
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		return w->values && spelled_alike(w->name, t->name);
	default:
		return false;
	}
	if (!w->name)
		return t->name[0];
	return is_named(w, t->name);
}
