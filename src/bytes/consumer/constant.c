/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constant expressions: array lengths, offsets, widths
 *
 * Numbers in every spelling, + - * / % << >> & | ^ ~, parentheses, casts of Rust ("N as usize"),
 * and names of constants, which are computed on demand at their declaration. Precedence is climbed;
 * Go's shifts and & bind as tightly as *.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "consumer/impl.h"

static int parse_sum(struct reader *r, int weakest, int64_t *ret);

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

/* 0x1f, 1_000, 0b11, 0o17, 017, 16usize, 16L */
static int parse_number(struct reader *r, int64_t *ret)
{
	const char *p = r->tok.p, *end = p + r->tok.n;
	uint64_t base = 10, n = 0;

	if (end - p > 2 && *p == '0') {
		char letter = (char)(p[1] | 0x20);

		base = letter == 'x' ? 16 : letter == 'b' ? 2 : letter == 'o' ? 8 : 10;
		p += base == 10 ? 0 : 2;
	}
	if (base == 10 && end - p > 1 && *p == '0' && r->lang->id != CAIRN_LANG_RUST &&
	    digit_of(p[1]) < 8)
		base = 8;
	for (; p < end && (*p == '_' || digit_of(*p) < (int)base); p++)
		if (*p != '_' && (__builtin_mul_overflow(n, base, &n) ||
				  __builtin_add_overflow(n, digit_of(*p), &n)))
			return complain(r, "a number beyond 2^64");
	/* A suffix is a type; anything else, as in 1.5, is no integer. */
	if (p < end && *p == '.')
		return complain(r, "expected an integer");
	*ret = (int64_t)n;
	return read_token(r);
}

/* The last part of crate::N, Event.N counts. */
static int parse_constant_name(struct reader *r, int64_t *ret)
{
	struct token name = r->tok;
	int rc = read_token(r);

	while (!rc && (at_punct(r, '.') || at_punct(r, ':'))) {
		rc = read_token(r);
		if (!rc && at_name(r)) {
			name = r->tok;
			rc = read_token(r);
		}
	}
	const struct declared *d = rc ? NULL : find_declared(r, name.p, name.n);
	if (rc)
		return rc;
	if (!d || !d->value.p)
		return complain_at(r, &name, -EBADMSG, "%.*s is no constant of this file",
				   (int)name.n, name.p);
	rc = enter_nesting(r);
	if (rc)
		return rc;
	rc = constant_at(r, d->value, ret);
	leave_nesting(r);
	return rc;
}

static int parse_operand(struct reader *r, int64_t *ret)
{
	int sign = at_punct(r, '-') || at_punct(r, '+') || at_punct(r, '~') || at_punct(r, '^')
			   ? r->tok.punct
			   : 0;
	int rc = enter_nesting(r);

	if (rc)
		return rc;
	if (sign) {
		rc = read_token(r);
		rc = rc ? rc : parse_operand(r, ret);
		if (!rc && sign != '+')
			*ret = sign == '-' ? (int64_t) - (uint64_t)*ret : ~*ret;
	} else if (at_punct(r, '(')) {
		rc = read_token(r);
		rc = rc ? rc : parse_sum(r, 0, ret);
		rc = rc ? rc : need_punct(r, ')');
	} else if (r->tok.kind == TOKEN_NUMBER) {
		rc = parse_number(r, ret);
	} else if (at_name(r)) {
		rc = parse_constant_name(r, ret);
	} else {
		rc = complain(r, "expected a constant");
	}
	leave_nesting(r);
	/* Rust: N as usize */
	while (!rc && at_word(r, "as")) {
		rc = read_token(r);
		rc = rc ? rc : read_token(r);
	}
	return rc;
}

/* How tightly the operator that is next binds, 0: it is none; *@ret is its character. */
static int binding_of(const struct reader *r, int *ret)
{
	const char *p = r->tok.p;
	bool twice = r->lx.end - p > 1 && p[1] == *p;

	if (r->tok.kind != TOKEN_PUNCT)
		return 0;
	*ret = r->tok.punct;
	switch (r->tok.punct) {
	case '*':
	case '/':
	case '%':
		return 6;
	case '+':
	case '-':
		return 5;
	case '<':
	case '>':
		return !twice ? 0 : r->lang->shift_binds ? 6 : 4;
	case '&':
		return twice ? 0 : r->lang->shift_binds ? 6 : 3;
	case '^':
		return 2;
	case '|':
		return twice ? 0 : 1;
	default:
		return 0;
	}
}

/*
 * Overflow wraps. Operations that C and all these languages forbid give 0, and are refused as an
 * array length.
 */
static int64_t apply(int op, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;

	switch (op) {
	case '*':
		return (int64_t)(x * y);
	case '/':
		return b && !(a == INT64_MIN && b == -1) ? a / b : 0;
	case '%':
		return b && !(a == INT64_MIN && b == -1) ? a % b : 0;
	case '+':
		return (int64_t)(x + y);
	case '-':
		return (int64_t)(x - y);
	case '<':
		return y < 64 ? (int64_t)(x << y) : 0;
	case '>':
		return y < 64 ? a >> y : 0;
	case '&':
		return a & b;
	case '^':
		return a ^ b;
	default:
		return a | b;
	}
}

static int parse_sum(struct reader *r, int weakest, int64_t *ret)
{
	int rc = parse_operand(r, ret), op = 0, binding;
	int64_t right;

	while (!rc && (binding = binding_of(r, &op)) > weakest) {
		rc = read_token(r);
		if (!rc && (op == '<' || op == '>'))
			rc = read_token(r);
		rc = rc ? rc : parse_sum(r, binding, &right);
		if (!rc)
			*ret = apply(op, *ret, right);
	}
	return rc;
}

static int value_at(struct reader *r, struct spot at, int weakest, int64_t *ret)
{
	struct lexer lx = r->lx;
	struct token tok = r->tok;
	bool begins_line = r->begins_line;
	int rc = go_to(r, at);

	rc = rc ? rc : parse_sum(r, weakest, ret);
	r->lx = lx;
	r->tok = tok;
	r->begins_line = begins_line;
	return rc;
}

int constant_at(struct reader *r, struct spot at, int64_t *ret)
{
	return value_at(r, at, 0, ret);
}

int factor_at(struct reader *r, struct spot at, int64_t *ret)
{
	return value_at(r, at, INT_MAX, ret);
}
