/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The value of an expression while operations are made of it; for the files that compile
 *
 * compile.c has the essay on the three states.
 */
#ifndef TRACE_OPERAND_H
#define TRACE_OPERAND_H

#include "trace/expr/compile.h"

enum operand_state { LOCATED, MEMORY, SCALAR };

struct operand {
	enum operand_state state;
	const struct cairn_location *loc; /* LOCATED */
	uint64_t param_bytes;             /* LOCATED: size of the whole parameter */
	int64_t off;                      /* bytes */
	uint32_t type;
	uint32_t bit_shift, bit_size; /* bit-field, from off */
};

#define TRY(x)                                                                                     \
	do {                                                                                       \
		enum cairn_unavailable why_ = (x);                                                 \
		if (why_ != CAIRN_AVAILABLE)                                                       \
			return why_;                                                               \
	} while (0)

/* Temporaries of values that are stored: no expression is computed meanwhile. */
enum { TEMP_VALUE = FETCH_TEMP, TEMP_POINTER };

/*
 * All of them append operations, and return CAIRN_AVAILABLE, or why there is no value; then the
 * caller takes the operations back.
 */
enum cairn_unavailable operand_of_path(struct compiler *c, const struct expr *e,
				       struct operand *ret);
/* acc = the operand's @n bytes, at most 8. */
enum cairn_unavailable operand_load(struct compiler *c, const struct operand *o, uint64_t n);
/* acc = the operand's address; a value in a register has none. */
enum cairn_unavailable operand_address(struct compiler *c, const struct operand *o);
/* acc = the address of an array's first element, or a pointer's value. */
enum cairn_unavailable operand_base(struct compiler *c, struct operand *o);
/* A LOCATED operand, to its place in the record. */
enum cairn_unavailable operand_store(struct compiler *c, struct operand o,
				     const struct value_layout *layout);
/* acc = an expression's number, with the temporaries from @temp on. */
enum cairn_unavailable operand_value(struct compiler *c, const struct expr *e, unsigned int temp);
/* A temporary for a value that is needed later; all in use: the program counts as full. */
bool operand_has_temp(struct compiler *c, unsigned int temp);

/* A value with its layout's targets (recipes.c). */
enum cairn_unavailable recipes_store(struct compiler *c, const struct expr *e,
				     const struct value_layout *layout, uint32_t value);

/* acc = whether text that a recipe reads is a string (recipes.c). */
enum cairn_unavailable text_compare(struct compiler *c, const struct expr *e, unsigned int temp);

/* A string of wide characters, with its head (wide.c). */
enum cairn_unavailable wide_store(struct compiler *c, const struct expr *e,
				  const struct value_layout *layout, uint32_t value);

/* acc = whether a string of wide characters is a literal (wide.c). */
enum cairn_unavailable wide_compare(struct compiler *c, const struct expr *e, unsigned int temp);

/* acc = whether two floats, or one and a constant, compare (floats.c). */
enum cairn_unavailable floats_compare(struct compiler *c, const struct expr *e, unsigned int temp);

#endif
