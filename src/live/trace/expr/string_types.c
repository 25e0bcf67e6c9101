/* SPDX-License-Identifier: BSD-2-Clause */
/* Comparisons of strings in memory with strings that are written. */
#include "trace/expr/check.h"

#include <string.h>

/* Something that may be the address of a string. */
static int check_address(const struct check *c, struct expr *e)
{
	int r = check_condition(c, e);

	if (r < 0 || e->is_pointer || (!e->is_float && e->is_long))
		return r;
	return WRONG(c, e, "str() needs a pointer, an array or a number of 8 bytes");
}

/* The string at an address: str(), wstr(). */
static int check_text_at(const struct check *c, struct expr *e, struct expr *both)
{
	int r = e->b ? WRONG(c, e->b, "%sstr() has no limit where it is compared",
			     e->is_wide ? "w" : "")
		     : check_address(c, e->a);

	both->unit = r == 0 && e->is_wide ? expr_wide_unit(c->scope, e->a, true) : 0;
	return r;
}

/*
 * A string in memory: of char, counted, of wide characters, the address in str() or wstr(), or
 * $comm.
 */
static int check_text(const struct check *c, struct expr **text, struct expr *both)
{
	struct expr *e = *text;

	if (e->kind == EXPR_NAME && !strcmp(e->name, "$comm")) {
		e->kind = EXPR_KNOWN;
		return 0;
	}
	if (e->kind == EXPR_STR) {
		*text = e->a;
		return check_text_at(c, e, both);
	}
	int r = check_path(c, e);
	if (r == 0)
		r = expr_may_be_text(c->scope, e, c->err);
	if (r < 0)
		return r;
	both->text = r ? TEXT_COUNTED : TEXT_TO_NUL;
	both->unit = e->is_path && e->is_address ? 0 : expr_wide_unit(c->scope, e, false);
	bool is_text = e->is_path ? !e->is_address && (type_is_char_pointer(c->types, e->type) ||
						       type_is_char_array(c->types, e->type))
				  : e->is_text;
	return is_text || both->text == TEXT_COUNTED || both->unit
		       ? 0
		       : WRONG(c, e, "this is not a string; str(p) is the one at an address");
}

static int check_wide_literal(const struct check *c, const struct expr *literal, uint8_t unit)
{
	uint32_t units[EXPR_WIDE_MAX];
	int n = expr_wide_text(literal, unit, units, EXPR_WIDE_MAX);

	if (n == -1)
		return WRONG(c, literal, "a string of wide characters is written in UTF-8");
	if (n < 0)
		return WRONG(c, literal,
			     "wide strings in conditions have at most %d characters; p[0] == 'x' "
			     "compares one of them",
			     EXPR_WIDE_MAX);
	return 0;
}

/* Whether a literal can be compared with such a string. */
static int check_literal(const struct check *c, const struct expr *e, const struct expr *literal)
{
	uint32_t most = e->text == TEXT_COUNTED ? EXPR_TEXT_MAX : FETCH_STREQ_BYTES - 2;

	if (e->text == TEXT_WIDE)
		return check_wide_literal(c, literal, e->unit);
	if (literal->is_wide)
		return WRONG(c, literal, "the other side has no wide characters: write \"...\"");
	if (literal->n_bytes > most)
		return WRONG(c, literal, "strings in conditions have at most %u characters%s", most,
			     e->text == TEXT_COUNTED ? " beside text that is counted" : "");
	return 0;
}

/* @text is the string in memory, @literal the one that is written. */
int check_string(const struct check *c, struct expr *e, struct expr *text, struct expr *literal)
{
	if (e->op != FETCH_EQ && e->op != FETCH_NE)
		return WRONG(c, e, "strings can only be compared with == and !=");
	int r = check_text(c, &text, e);
	if (r < 0)
		return r;
	if (e->unit)
		e->text = TEXT_WIDE;
	r = check_literal(c, e, literal);
	if (r < 0)
		return r;
	if (literal == e->a || e->a != text) {
		e->a = text;
		e->b = literal;
	}
	e->is_string = true;
	return 0;
}
