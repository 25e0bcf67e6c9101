/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * btf_decl_tag and btf_type_tag
 *
 *	struct s { int b DECL("m1") DECL("m2"); };	int TYPE("t1") TYPE("t2") *p;
 *
 *	Clang  children of the tagged DIE (DW_TAG_LLVM_annotation), in the order of the source
 *	GCC    DW_AT_GNU_annotation of the tagged DIE leads to the last tag, and each tag to the
 *	       previous one
 *
 * In both, tags of a type are on the pointer to it. Tags of a type or member are part of the type's
 * description, and elements of it. Functions and variables are known by their names and have their
 * tags in a separate list.
 */
#include "btfgen/unit_impl.h"

static bool is_function_or_variable(uint32_t owner)
{
	return owner & (OWNER_FUNC | OWNER_VAR);
}

/* Whether BTF has a record for a tag of that name there. */
static bool takes(const struct unit_types *u, uint32_t owner, const char *name)
{
	enum type_kind kind =
		is_function_or_variable(owner) ? TYPE_VOID : (enum type_kind)u->types.p[owner].kind;
	if (!strcmp(name, "btf_type_tag"))
		return kind == TYPE_PTR;
	if (strcmp(name, "btf_decl_tag"))
		return false;
	return is_function_or_variable(owner) || kind == TYPE_STRUCT || kind == TYPE_UNION ||
	       kind == TYPE_TYPEDEF;
}

static int add_tag(struct unit_types *u, uint32_t owner, int32_t component, const char *name,
		   const char *text)
{
	if (owner == SCOPE_ONLY || !name || !text || !*text)
		return 0;
	if (!takes(u, owner, name)) {
		u->losses[CAIRN_LOSS_TAG]++;
		return 0;
	}
	if (is_function_or_variable(owner)) {
		struct tag_die t = {.text = text, .owner = owner, .component = component};
		return VEC_ADD(&u->tags, t) ? 0 : -ENOMEM;
	}
	struct elem *e = unit_add_elem(u, owner);
	if (!e)
		return u->walker.rc;
	e->name = text;
	e->what = component < 0 ? ELEM_TAG : ELEM_MEMBER_TAG;
	return 0;
}

int unit_see_annotation(struct unit_types *u)
{
	struct dw_walker *w = &u->walker;
	const struct open_scope *s = u->open.n ? &u->open.p[u->open.n - 1] : NULL;
	if (!s || s->depth + 1 != w->depth || dw_walker_tag(w) == DW_TAG_GNU_annotation)
		return 0;
	return add_tag(u, s->tagged, s->component, unit_own_name(u), dw_seen_str(w, CONST_VALUE));
}

int unit_see_annotations_of(struct unit_types *u, uint32_t owner, int32_t component)
{
	enum { TAGS_MAX = 64 }; /* of one thing: a list that is a circle ends */
	struct dw_die tags[TAGS_MAX];
	int n = 0;
	if (!dw_seen(&u->walker, ANNOTATION))
		return 0;
	for (dw_off at = dw_seen_ref(&u->walker, ANNOTATION); at && n < TAGS_MAX; n++) {
		int rc = dw_die_at(u->dw, at, &tags[n], NULL);
		if (rc != 1)
			return rc;
		at = dw_ref(&tags[n], DW_AT_GNU_annotation);
	}
	while (n-- > 0) {
		int rc = add_tag(u, owner, component, dw_str(&tags[n], DW_AT_name),
				 dw_str(&tags[n], DW_AT_const_value));
		if (rc < 0)
			return rc;
	}
	return 0;
}
