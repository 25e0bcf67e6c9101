/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualified names
 *
 * "std::vector<int>::size" is the name of a DIE behind the names of the scopes around it. A definition
 * outside its class, a concrete body and an inlined copy refer to the DIE that stands in the right place,
 * at the end of the chain of origins. DIEs do not know their parents, so the unit is walked down to it:
 * one pass in order of offset, with a stack of the DIEs that are open; DW_AT_sibling shortens it. In C nothing
 * has a scope, and no walk is made.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"

struct scopes {
	VEC(uint64_t) open; /* offsets in the unit's section, outermost first */
};

static bool language_has_scopes(uint16_t language)
{
	switch (language) {
	case DW_LANG_C:
	case DW_LANG_C89:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_C17:
	case DW_LANG_C23:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

/* Finds the DIEs around the one at @target. */
static int find_scopes(const struct dw_unit *u, uint64_t target, struct scopes *ret,
		       struct cairn_err *err)
{
	const uint8_t *goal = u->sec->p + target;
	for (const uint8_t *p = u->dies; p < goal;) {
		struct dw_die die;
		struct cursor c = dw_unit_cursor(u, p, err);
		uint64_t off = cur_off(&c);
		int rc = dw_die_parse(u, p, &die, err);
		if (rc < 0)
			return rc;
		if (!rc) {
			cur_uleb(&c);
			p = c.pos;
			if (ret->open.n)
				ret->open.n--;
			continue;
		}
		c = dw_unit_cursor(u, die.attrs, err);
		dw_abbrev_skip(u, die.abbrev, &c);
		if (c.failed)
			return -EBADMSG;
		p = c.pos;
		const uint8_t *next;
		if (!die.has_children)
			continue;
		if (dw_die_jump(&die, p, &next) && next <= goal)
			p = next;
		else if (!VEC_ADD(&ret->open, off))
			return err_nomem(err, "scopes");
	}
	return 0;
}

/* snprintf at the end of what is there. */
struct text {
	char *buf;
	size_t size, len;
};

static void add(struct text *t, const char *s)
{
	size_t room = t->len < t->size ? t->size - t->len : 0;
	int n = snprintf(room ? t->buf + t->len : NULL, room, "%s", s);
	t->len += n > 0 ? (size_t)n : 0;
}

/* What a scope adds in front, "" when nothing. */
static void add_scope(struct text *t, const struct dw_die *die)
{
	const char *name = dw_str_deep(die, DW_AT_name);
	switch (die->tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		add(t, name ? name : "(anonymous namespace)");
		break;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_interface_type:
		add(t, name ? name : "(anonymous)");
		break;
	case DW_TAG_subprogram:
		if (!name)
			return;
		add(t, name);
		add(t, "()");
		break;
	default:
		return;
	}
	add(t, "::");
}

/* The DIE at the end of the chain of origins: the one that stands in the scope it belongs to. */
static int last_origin(const struct dw_die *die, struct dw_die *ret, struct cairn_err *err)
{
	*ret = *die;
	for (int link = 0; link <= DW_ORIGIN_MAX; link++) {
		struct dw_die origin;
		int rc = dw_die_origin(ret, &origin, err);
		if (rc <= 0)
			return rc;
		*ret = origin;
	}
	return err_set(err, -EBADMSG, "%s: the origins of the DIE at 0x%" PRIx64 " form a ring",
		       die->unit->file->path, die->off);
}

int dw_qualified_name(const struct dwarf *dw, const struct dw_die *die, char *buf, size_t size)
{
	struct text t = {.buf = buf, .size = size};
	struct scopes scopes = {0};
	struct dw_die last, scope;
	int rc = last_origin(die, &last, NULL);
	if (size)
		buf[0] = 0;
	if (rc >= 0 && language_has_scopes(last.unit->language))
		rc = find_scopes(last.unit, dw_off_in_section(last.off), &scopes, NULL);
	for (size_t i = 0; rc >= 0 && i < scopes.open.n; i++) {
		rc = dw_die_parse(last.unit, last.unit->sec->p + scopes.open.p[i], &scope, NULL);
		if (rc > 0)
			add_scope(&t, &scope);
	}
	VEC_FREE(&scopes.open);
	const char *name = dw_str_deep(die, DW_AT_name);
	add(&t, name ? name : "");
	return rc < 0 ? rc : t.len > INT32_MAX ? -EBADMSG : (int)t.len;
}
