/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations: how to read a value at one address
 *
 * DWARF gives an expression for a stack machine that may ask for the frame base, the caller's
 * registers or other DIEs. At one address all of that is known. So the expression is folded into a
 * short straight line of steps over one accumulator, which a probe can run and a person can read:
 *
 *	DW_OP_fbreg -24                        at an address where CFA = rsp + 64
 *	REG rsp; ADD imm 40                    kind MEMORY        *(%rsp+0x28)
 *
 *	DW_OP_breg5 0; DW_OP_lit3; DW_OP_shl; DW_OP_stack_value
 *	REG rdi; SHL imm 3                     kind VALUE         %rdi<<3
 *
 *	DW_OP_breg5 0; DW_OP_breg4 0; DW_OP_breg1 0; DW_OP_mul; DW_OP_plus; DW_OP_stack_value
 *	REG rdi; SAVE 0; REG rsi; MUL reg rdx; ADD slot 0         %rdi+(%rsi*%rdx)
 *
 * Arithmetic is on 64 bits, unsigned, wrapping; the value's type cuts it to size. At the end: the
 * rules about what compilers get wrong, which a location without a value may name.
 */
#ifndef CAIRN_LOCATION_H
#define CAIRN_LOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>

CAIRN_BEGIN_DECLS

/* Longest program of one piece; real code needs 1 to 6 steps. Slots for SAVE. */
#define CAIRN_LOC_STEPS_MAX 32
#define CAIRN_LOC_SLOTS     4

enum cairn_loc_op {
	/* Set the accumulator. */
	CAIRN_LOC_REG,   /* DWARF register number in reg; 0-15 general, 17-32 vector */
	CAIRN_LOC_CONST, /* imm */
	CAIRN_LOC_ADDR,  /* run-time address of the link-time address imm */
	/* Change it. */
	CAIRN_LOC_LOAD, /* the size bytes at that address, zero-extended */
	CAIRN_LOC_SEXT, /* its low size bytes, sign-extended */
	CAIRN_LOC_ZEXT, /* its low size bytes */
	CAIRN_LOC_NEG,
	CAIRN_LOC_NOT,  /* bitwise */
	CAIRN_LOC_SAVE, /* slot imm = accumulator */
	/* acc = acc OP operand, or with the operand SLOT: acc = slot OP acc. */
	CAIRN_LOC_ADD,
	CAIRN_LOC_SUB,
	CAIRN_LOC_MUL,
	CAIRN_LOC_AND,
	CAIRN_LOC_OR,
	CAIRN_LOC_XOR,
	CAIRN_LOC_SHL, /* by 64 or more: 0 */
	CAIRN_LOC_SHR, /* logical; by 64 or more: 0 */
	CAIRN_LOC_SAR, /* arithmetic; by 64 or more: all sign bits */
	/* Comparisons are signed and give 0 or 1. */
	CAIRN_LOC_EQ,
	CAIRN_LOC_NE,
	CAIRN_LOC_LT,
	CAIRN_LOC_LE,
	CAIRN_LOC_GT,
	CAIRN_LOC_GE,
	/*
	 * ENTRY_REG: the value of reg at function entry. ENTRY_PARAM: the argument passed for a
	 * parameter that GCC removed from a clone (.isra, .constprop); its DIE is at imm in
	 * .debug_info. Only cairn_sites_at() returns them; cairn_sites_call_value() resolves them
	 * with the caller's frame.
	 */
	CAIRN_LOC_ENTRY_REG,
	CAIRN_LOC_ENTRY_PARAM,
	/* Set the accumulator: the thread pointer, on x86-64 the base of %fs. */
	CAIRN_LOC_THREAD,
};

enum cairn_loc_operand {
	CAIRN_LOC_IMM,
	CAIRN_LOC_OPERAND_REG,
	CAIRN_LOC_SLOT,
};

struct cairn_loc_step {
	uint8_t op;      /* enum cairn_loc_op */
	uint8_t operand; /* enum cairn_loc_operand, for the binary operations */
	uint8_t reg;     /* DWARF register number: for REG, and for an operand register */
	uint8_t size;    /* bytes: for LOAD, SEXT, ZEXT: 1 to 8 */
	uint32_t reserved;
	int64_t imm; /* constant, link-time address, or slot number */
};

enum cairn_piece_kind {
	CAIRN_PIECE_VALUE,   /* the accumulator is the value */
	CAIRN_PIECE_MEMORY,  /* the value is in memory at the accumulator */
	CAIRN_PIECE_BYTES,   /* the value is these bytes (DW_OP_implicit_value, block constants) */
	CAIRN_PIECE_MISSING, /* optimised out */
};

/* A value, or a part of one: bytes [off, off + size) of it. */
struct cairn_piece {
	enum cairn_piece_kind kind;
	uint32_t off;
	uint32_t size; /* 0: all of the value, independent of its type's size */
	uint32_t n_steps;
	const struct cairn_loc_step *steps;
	const uint8_t *bytes; /* BYTES: size of them */
};

/* Why a value is not available at an address. */
enum cairn_unavailable {
	CAIRN_AVAILABLE,
	CAIRN_UNAVAIL_NO_DESCRIPTION, /* the compiler left this parameter out at this site */
	CAIRN_UNAVAIL_OPTIMISED_OUT,  /* the debug information says that there is no value */
	CAIRN_UNAVAIL_NOT_LIVE,       /* it has a location elsewhere, not at this address */
	CAIRN_UNAVAIL_PARTLY,         /* parts of it are missing */
	/* value of a register at function entry that may have changed since */
	CAIRN_UNAVAIL_ENTRY_VALUE,
	CAIRN_UNAVAIL_CALLER,           /* needs the caller's frame */
	CAIRN_UNAVAIL_IMPLICIT_POINTER, /* points to something that is not in memory */
	CAIRN_UNAVAIL_NO_CFA, /* relative to the frame, and no unwind row gives the CFA here */
	CAIRN_UNAVAIL_THREAD_LOCAL,    /* in thread-local storage */
	CAIRN_UNAVAIL_VECTOR_REGISTER, /* in a register that a probe cannot read */
	CAIRN_UNAVAIL_AMBIGUOUS,       /* several locations hold here and differ */
	/* in a stack slot or register that may not have been written yet */
	CAIRN_UNAVAIL_NOT_STORED_YET,
	/* known, but perhaps already modified by the function itself */
	CAIRN_UNAVAIL_MAY_HAVE_CHANGED,
	/* the function does not use it, and its callers may know that */
	CAIRN_UNAVAIL_MAY_NOT_BE_PASSED,
	CAIRN_UNAVAIL_OTHER_PARAMETER, /* this unit declares another parameter there, by #if */
	CAIRN_UNAVAIL_UNSUPPORTED,     /* an operation that has no step */
	CAIRN_UNAVAIL_DAMAGED,         /* the description is damaged */
	/* the compiler removed it, and the description may be of another call */
	CAIRN_UNAVAIL_OTHER_CALL,
	CAIRN_UNAVAIL_WITHOUT_CALL, /* may be hit without a call: by a loop, or by code around it */
	/*
	 * computed from memory that may be written between the call and here, or later
	 */
	CAIRN_UNAVAIL_MEMORY_WRITTEN,
	/* may be stale: described by a variable's value at another point, or computed in a loop */
	CAIRN_UNAVAIL_STALE,
	/* in an outer frame: in a register that its callee did not save */
	CAIRN_UNAVAIL_NOT_KEPT,
	/*
	 * in a process or core: in memory that was not copied, or is not in the file
	 */
	CAIRN_UNAVAIL_NOT_COPIED,
	/* described as the address of a stack slot, but Clang may mean the slot's content */
	CAIRN_UNAVAIL_SLOT_ADDRESS,
	/* described at a body's entry, but the language's convention does not confirm it */
	CAIRN_UNAVAIL_NO_CONVENTION,
	/* BTF has no location for it, and does not record why (cairn/btf/sites.h) */
	CAIRN_UNAVAIL_NOT_RECORDED,
	/* at a symbol that the symbol tables do not have: a stripped file, an assembler's label */
	CAIRN_UNAVAIL_NO_SYMBOL,
	/* $ret and $duration of an inlined copy: where it ends is not known */
	CAIRN_UNAVAIL_NO_END,
	/* $ret of a function that other files cannot call: the compiler may return nothing */
	CAIRN_UNAVAIL_MAY_NOT_RETURN,
	/* a library's variable: the process may use that of another file, and which is not known */
	CAIRN_UNAVAIL_OTHER_FILE,
	CAIRN_N_UNAVAILABLE
};

/* "needs the caller's frame": for people. Static. */
const char *cairn_unavailable_text(enum cairn_unavailable why);
/* "caller": the word in JSON. Static. */
const char *cairn_unavailable_id(enum cairn_unavailable why);

struct cairn_location {
	/*
	 * CAIRN_AVAILABLE, or the reason. Pieces are then present only if they are worth showing
	 * (the vector register, the perhaps modified value); they must not be read as the argument.
	 */
	enum cairn_unavailable why;
	uint16_t n_pieces;
	/* the rule that made the value unavailable: enum cairn_quirk; 0: none did */
	uint16_t quirk;
	const struct cairn_piece *pieces; /* in order of off */
};

/*
 * cairn_location_text - the location as people write it: "%rdi", "*(%rsp+0x18)", "%rbx+8", "const
 * 16", "&symbol", "{%rdi, %rsi}", or "unavailable: REASON"
 *
 * @symbol  names a link-time address for CAIRN_LOC_ADDR: fills @name and returns true; may be NULL
 * @buf, @size  as snprintf: always terminated; the result is the length that was needed
 */
size_t cairn_location_text(const struct cairn_location *loc,
			   bool (*symbol)(void *ctx, struct cairn_vaddr at, char *name,
					  size_t size),
			   void *ctx, char *buf, size_t size);

/*
 * Quirks: what compilers get wrong in their debug information, and what Cairn does about it
 *
 * Each rule has a row. The row names the producers in which the error was seen, the page of
 * docs/findings/ that reproduces it, and the effect: a value is unavailable, a description is
 * corrected, or a caveat is set.
 *
 *	const struct cairn_quirk_rule *r = cairn_quirk_rule(arg->loc.quirk);
 *	if (r)
 *		printf("%s: docs/findings/%s.md\n", r->id, r->finding);
 */
enum cairn_quirk {
	CAIRN_QUIRK_NONE,
	/* Values */
	CAIRN_QUIRK_STALE_OUTER_VARIABLE,
	CAIRN_QUIRK_LOOP_ARITHMETIC,
	CAIRN_QUIRK_HIDDEN_DIFFERENCE,
	CAIRN_QUIRK_COUNTER_CONSTANT,
	CAIRN_QUIRK_REMOVED_PARAM,
	CAIRN_QUIRK_MEMORY_AFTER_STORE,
	CAIRN_QUIRK_LOOP_HEAD_ENTRY,
	CAIRN_QUIRK_NO_VIEWS,
	CAIRN_QUIRK_UNUSED_NOT_PASSED,
	CAIRN_QUIRK_SPILL_ADDRESS,
	CAIRN_QUIRK_WHOLE_SCOPE_REGISTER,
	CAIRN_QUIRK_STACK_ARG_BEFORE_PROLOGUE,
	CAIRN_QUIRK_REMOVED_STORE,
	CAIRN_QUIRK_HALF_PAIR,
	CAIRN_QUIRK_ICF_ARGS,
	CAIRN_QUIRK_GO_PIECES,
	CAIRN_QUIRK_CALL_VALUE_OVERWRITTEN,
	CAIRN_QUIRK_BOOL_BITS,
	CAIRN_QUIRK_NARROW_OPERAND,
	CAIRN_QUIRK_SPLIT_VIEW_OFFSETS,
	CAIRN_QUIRK_WEB_REGISTER,
	/* Counts of events */
	CAIRN_QUIRK_SPLIT_PART,
	CAIRN_QUIRK_CLANG_ENTRY_LINES,
	CAIRN_QUIRK_TESTED_AFTER_CALL,
	CAIRN_QUIRK_VECTOR_CALLS,
	/* Types and unwind rows */
	CAIRN_QUIRK_FULL_WIDTH_BIT_FIELD,
	CAIRN_QUIRK_STORAGE_ORDER,
	CAIRN_QUIRK_REALIGNED_EPILOGUE,
	CAIRN_N_QUIRKS /* how many there are; no quirk itself */
};

struct cairn_quirk_rule {
	const char *id;         /* "stale-outer-variable": the word in JSON */
	const char *producers;  /* "GCC 12 and 16": those in which it was seen */
	const char *finding;    /* the page docs/findings/FINDING.md; NULL: none */
	const char *no_finding; /* why there is none; NULL when there is one */
	const char *effect;     /* what goes wrong and what Cairn does: one or two sentences */
	const char *file;       /* of src/facts: the code that applies it */
	/* the reason that the rule gives; CAIRN_AVAILABLE: it makes no value unavailable */
	enum cairn_unavailable why;
};

/*
 * cairn_quirk_rule - the row of a quirk
 *
 * Returns NULL for CAIRN_QUIRK_NONE and for numbers that are no quirk. Static. Any thread.
 */
const struct cairn_quirk_rule *cairn_quirk_rule(unsigned int quirk);

CAIRN_END_DECLS
#endif
