/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Split parts: code that GCC split off and inlined again
 *
 * GCC splits a function whose first lines often return at once (-fpartial-inlining), so that
 * callers inline only the head:
 *
 *	323: int utf8esc(char *buff, unsigned long x)      utf8esc:       if (x < 0x80) {...}
 *	     { if (x < 0x80) {...} else {...} }            utf8esc.part:  else {...}
 *
 * The call of the part in the head is GCC's own. It is not in the source, so it has the position of
 * the function's declaration. When that call is inlined in turn, the part becomes an inlined copy
 * of utf8esc inside a copy (or the body) of utf8esc, and one call passes two copies. The head has
 * the entry and the arguments: it is the call. A debugger at the part is in the middle of the call.
 *
 *	inlined utf8esc, called at 517:19		the call
 *	    inlined utf8esc, called at 323:5		its part: utf8esc is declared at 323:5
 *
 * Functions that a macro makes also have calls at their own declaration: all of their text is at
 * the macro's use. Their parameters and variables show it, which then have that position, too. Two
 * functions of one macro have the same position.
 */
#include "sites/quirks/split_part.h"

#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/near.h"

/* As a unit records it. */
struct position {
	const struct dw_unit *unit;
	uint64_t file, line, column;
};

/* Paths come last: nearly all lines differ, and writing a path takes longer than all else. */
static bool same_position(const struct position *a, const struct position *b)
{
	if (a->line != b->line || a->column != b->column)
		return false;
	const char *one = dw_unit_file(a->unit, a->file);
	if (!one || (a->unit == b->unit && a->file == b->file))
		return one;
	const char *other = dw_unit_file(b->unit, b->file);
	return other && !strcmp(one, other);
}

static struct position call_position(const struct dw_die *copy)
{
	return (struct position){
		.unit = copy->unit,
		.file = dw_udata_at(copy, DW_SLOT_CALL_FILE, DW_AT_call_file, 0),
		.line = dw_udata_at(copy, DW_SLOT_CALL_LINE, DW_AT_call_line, 0),
		.column = dw_udata_at(copy, DW_SLOT_CALL_COLUMN, DW_AT_call_column, 0),
	};
}

static struct position declared_at(const struct dw_die *die)
{
	return (struct position){
		.unit = die->unit,
		.file = dw_udata_at(die, DW_SLOT_DECL_FILE, DW_AT_decl_file, 0),
		.line = dw_udata_at(die, DW_SLOT_DECL_LINE, DW_AT_decl_line, 0),
		.column = dw_udata_at(die, DW_SLOT_DECL_COLUMN, DW_AT_decl_column, 0),
	};
}

static bool is_from_macro(const struct dw_die *function, const struct position *at)
{
	struct dw_die child;
	int rc = dw_die_child(function, &child, NULL);
	for (; rc == 1; rc = dw_die_sibling(&child, &child, NULL)) {
		struct position p = declared_at(&child);
		if (same_position(&p, at))
			return true;
	}
	return false;
}

int split_part_is(const struct site_env *env, uint32_t entry, const struct dw_die *copy,
		  const struct abstract *abstract, struct cairn_err *err)
{
	/* Nearly all copies are called elsewhere. */
	if (!abstract->line ||
	    dw_udata_at(copy, DW_SLOT_CALL_LINE, DW_AT_call_line, 0) != abstract->line)
		return 0;
	/* Without a column a recursive call on the line of the declaration would look the same. */
	struct position call = call_position(copy), decl = declared_at(&abstract->die);
	if (!call.column || !same_position(&call, &decl) || is_from_macro(&abstract->die, &decl))
		return 0;
	uint32_t around = env->index->p[entry].parent;
	struct dw_die caller;
	if (around == DW_FUNC_NONE)
		return 0;
	int rc = abstract_die(env->dw, copy->unit, env->index->p[around].die, &caller, err);
	if (rc < 0)
		return rc;
	if (caller.off == abstract->die.off)
		return 1;
	struct position other = declared_at(&caller);
	return !same_position(&other, &decl);
}
