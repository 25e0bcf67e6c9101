/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module decode turns bytes into the text of typed values.
 *
 * This header: a plan, which compile.c writes and run.c runs.
 *
 * A flat array of operations. Each puts a piece of text that is known beforehand, then a value:
 *
 *	struct event { u32 pid; char comm[16]; };	{"pid":7,"comm":"sh"}
 *
 *	OP_UINT    {"pid":      at 0, 4 bytes
 *	OP_STRING  ,"comm":     at 4, 16 bytes
 *	OP_TEXT    }
 *
 * Offsets count from a base: the record's start, and inside a loop the start of its element. The
 * visible size from there is kept with it, so that every operation compares its own end with one
 * number and nothing is read beyond the record. A group (struct, array) that lies completely beyond
 * it is one <cut off>.
 */
#ifndef DECODE_PLAN_H
#define DECODE_PLAN_H

#include "base/arena.h"
#include "decode/out.h"
#include "decode/recipe.h"

enum op_code {
	OP_TEXT,
	OP_UINT, /* size 1, 2, 4, 8 */
	OP_SINT,
	OP_WIDE, /* integers of any other size to 16: width, is_signed */
	OP_BITS, /* bit-field: width bits at bit off * 8 + shift; is_signed */
	OP_BOOL, /* width bits at off, shift: this and the next two */
	OP_ENUM, /* aux: enums */
	OP_POINTER,
	OP_CHAR, /* is_signed */
	/* all of size, or up to the end of the view when not has_count; cut at limit */
	OP_STRING,
	OP_WIDE_STRING, /* the same of characters of width bits, 16 or 32 */
	OP_REAL,        /* aux: reals */
	/*
	 * aux: recipes; of an array the elements' operations follow, up to an OP_NEXT; on at next
	 */
	OP_RECIPE,
	OP_HEX,   /* bytes as one number */
	OP_DUMP,  /* bytes as they lie */
	OP_GROUP, /* when nothing of it is there: <cut off>, and on at next */
	OP_LOOP,  /* aux: loops; the body ends with OP_NEXT; on at next when there is none */
	OP_NEXT,
	OP_IF,      /* aux: cases; on at next when the deciding member is another or not there */
	OP_VARIANT, /* aux: variants; on at next when the discriminant has another value */
	OP_JUMP,    /* on at next */
	OP_END,
};

struct op {
	uint8_t code;
	uint8_t shift;
	uint8_t width; /* bits */
	bool is_signed;
	bool has_count;
	bool big_endian;
	uint32_t text, n_text; /* in plan->text, put before anything else */
	uint32_t next, aux;
	uint64_t off, size; /* bytes from the base; their sum does not overflow */
	uint64_t limit;     /* bytes of it that may be seen when it has no count of its own */
};

struct loop {
	bool has_count;
	/* it puts the bracket after its elements, since an array elsewhere may have no elements */
	bool closes;
	uint64_t count, stride, limit;
};

/* An array elsewhere is a loop without a count over the part of it that was read. */
struct recipe_plan {
	struct recipe recipe;
	struct loop loop;
};

struct enum_value {
	uint64_t bits;
	uint32_t text, n_text;
};

struct enum_plan {
	uint32_t width;
	bool is_signed, flags;
	uint64_t named_bits;
	uint32_t n;
	struct enum_value *values; /* by bits, each once */
};

struct case_of {
	uint64_t off;
	uint8_t shift, width;
	bool big_endian;
	uint64_t bits;
};

/* Whether a discriminant is in one of @n ranges; without ranges: whether it can be read at all. */
struct variant_test {
	uint64_t off;
	uint8_t shift, width;
	bool big_endian, is_signed;
	uint32_t first, n; /* in plan->ranges */
};

/* No type is nested deeper; arrays of arrays count. */
enum { DEPTH_LIMIT = 64 };

struct cairn_decode {
	struct arena arena;
	struct look look;
	uint32_t max_elems;
	uint64_t size;
	uint64_t least; /* bytes up to the flexible array */
	bool flexible;
	const struct op *ops;
	uint32_t n_ops;
	const char *text;
	const struct loop *loops;
	const struct recipe_plan *recipes;
	size_t (*read)(void *ctx, uint64_t at, void *to, size_t n); /* cairn_value_opts */
	void *read_ctx;
	const struct enum_plan *enums;
	const struct case_of *cases;
	const struct variant_test *variants;
	/* of signed discriminants sign-extended, of others the low bits */
	const struct cairn_variant_range *ranges;
	struct cairn_type *reals;
};

/*
 * plan_compile - the work of cairn_decode_new(); for a member when @member is given, else for the
 * type
 * @id
 */
int plan_compile(const struct cairn_types *types, uint32_t id, const struct cairn_member *member,
		 const struct cairn_value_opts *opts, struct cairn_decode **ret,
		 struct cairn_err *err);

#endif
