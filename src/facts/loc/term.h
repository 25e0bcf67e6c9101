/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms: the computation of one entry of the symbolic stack, as steps
 *
 * A term that exceeds CAIRN_LOC_STEPS_MAX steps, needs more than CAIRN_LOC_SLOTS slots, or has no
 * form as steps, is marked failed and stays so.
 */
#ifndef LOC_TERM_H
#define LOC_TERM_H

#include <cairn/location.h>

/* First DWARF number of a vector register; those below are the general ones. */
enum { TERM_VECTOR_FIRST = 17 };

/* The integer type that a typed operation gave to a term; size 0 is the generic type, 64 bits. */
struct int_type {
	uint8_t size;
	bool is_signed;
};

struct term {
	uint8_t n;
	uint8_t slots; /* slots 0 ... slots-1 are used while it is computed */
	bool failed;
	struct int_type type;
	struct cairn_loc_step steps[CAIRN_LOC_STEPS_MAX];
};

/* Empty; the steps are not cleared. */
void term_init(struct term *t);

/* Append a step as it is. */
void term_add(struct term *t, struct cairn_loc_step step);

/* term + @imm, merged with an addition before it. */
void term_add_imm(struct term *t, int64_t imm);

/* @l OP @r into @l; @op is a binary enum cairn_loc_op. @r is used up. */
void term_binary(struct term *l, struct term *r, uint8_t op);

/* NEG, NOT, or LOAD of @size bytes. */
void term_unary(struct term *t, uint8_t op, uint8_t size);

/* Cut it to the integer type it has, so that its 64 bits are that type's value. */
void term_canonical(struct term *t);

/*
 * Make the upper bits of a term with an integer type zeros, or copies of its top bit, whatever the
 * type's sign: DW_OP_shr brings down the one, DW_OP_shra the other. The type stays.
 */
void term_extend(struct term *t, bool is_signed);

/*
 * True if the upper bits of a term are those of the value it stands for, whatever the value's
 * width. An operation that shifts them down, DW_OP_shr or DW_OP_shra, is right then. @is_signed for
 * DW_OP_shra.
 */
bool term_is_extended(const struct term *t, bool is_signed);

/* Whether a step cuts the term to less than 64 bits. */
bool term_is_cut(const struct term *t);

bool term_reads_vector(const struct term *t);

#endif
