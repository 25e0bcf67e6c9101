/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of constant expressions: expr.c parses, number.c and text.c read literals, arith.c
 * computes.
 */
#ifndef DECL_EXPR_H
#define DECL_EXPR_H

#include "decl/parse.h"

/* The literal that is next, and reads it. */
int parse_number(struct parser *p, struct value *ret);
int parse_char(struct parser *p, struct value *ret);
/* Strings side by side are one. */
int parse_string(struct parser *p, struct value *ret);

bool is_unsigned_type(const struct parser *p, uint32_t type);
bool is_integer(const struct parser *p, uint32_t type);
/* @v as @type holds it: cut to its size, extended by its sign. */
uint64_t fit_to(const struct parser *p, uint32_t type, uint64_t v);
/* A value of @type; not known when it does not fit an integer or pointer of at most 64 bits. */
struct value value_of(const struct parser *p, uint32_t type, uint64_t v);
static inline struct value unknown_of(uint32_t type)
{
	return (struct value){.type = type};
}
/* int for smaller types; arrays and functions as pointers; no lvalue. */
int promote(struct parser *p, struct value *v);
/* @a OP @b; @op is a punctuator. */
int compute(struct parser *p, const struct token *op, struct value *a, const struct value *b);
/* Operators + - ~ ! before a value. */
int compute_unary(struct parser *p, int op, struct value *v);
/* A cast. */
void convert(const struct parser *p, uint32_t type, struct value *v);

#endif
