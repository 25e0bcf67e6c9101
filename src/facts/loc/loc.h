/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Computes the location of a parameter or variable from a DIE and an address
 *
 *	expr.c           one DWARF expression, folded into pieces of straight-line steps
 *	one_op.c         expressions of one operation
 *	term.c           arithmetic on the entries of the expression's stack
 *	clang_spill.c    values of Clang's that are described by an address
 *	argument.c       the one of a parameter's locations that holds at an address and view
 *	abi.c            where the calling convention puts parameters, for unoptimised code
 *	abi_go.c         where Go's conventions put them
 *	stack_args.c     descriptions of arguments on the stack of the containing function
 *	prologue.c       parameters that are stored to their slots before the first statement
 *	slot_init.c      whether a value described for a whole function is in its slot yet
 *	spill_slot.c     whether a parameter was stored to its slot on all paths
 *	removed_store.c  whether the code shows that memory was written
 *	by_reference.c   arguments that a language passes by an address
 *	code.c           the instructions of one function, one by one
 *	flow.c           the registers that still hold their values at the function's entry
 *	cfg.c            the instructions of one function and the edges between them
 *	jump_tables.c    where the jumps of switches lead
 *	loops.c          the instructions that are in a loop
 *	text.c           locations and reasons as text
 */
#ifndef LOC_LOC_H
#define LOC_LOC_H

#include <cairn/location.h>
#include <cairn/sites.h>

#include "base/arena.h"
#include "cfi/cfi.h"
#include "dwarf/dwarf.h"

struct flow;

/*
 * The point at which a copy's parameter is bound: arguments are passed before the entry's row
 * (quirks/removed_param.c).
 */
enum bound {
	BOUND_BEFORE,
	BOUND_AFTER,
	BOUND_ALWAYS, /* a constant for the whole copy, which does not decide it */
};

/* The bytes of a DWARF expression, borrowed from the file. */
struct expression {
	const uint8_t *p;
	uint64_t n;
};

enum { FRAME_ADDRESSES_MAX = 64 };

/* Slots of a function's frame whose address it takes; one per function, found when first asked */
struct frame_addresses {
	bool is_known;
	bool is_uncertain; /* there are more, or the code cannot be read */
	unsigned int n;
	int64_t off[FRAME_ADDRESSES_MAX]; /* from the CFA */
	uint64_t n_visits; /* of instructions, by searches for stores; CODE_VISITS_MAX ends them */
};

/*
 * The address and function for which locations are wanted. Built once per site; the costly parts
 * (the unwind row, the flow of the function) are filled in when a location needs them.
 */
struct loc_context {
	const struct dwarf *dw;
	const struct cfi *cfi;
	struct elf *code;         /* the file with the instructions */
	struct dw_die function;   /* containing out-of-line subprogram */
	struct cairn_vaddr entry; /* its entry */
	struct cairn_vaddr at;
	/*
	 * The query is for the current value of a variable, not for the argument that was passed.
	 * The program is stopped at @at and continues at next: that is @at, or the address after
	 * the call whose last byte is @at.
	 */
	bool is_now;
	struct cairn_vaddr next;
	/*
	 * the value that was passed may be returned as CAIRN_LOC_ENTRY_REG and _PARAM: the caller's
	 * frame is available
	 */
	bool has_caller;
	uint64_t view;
	bool has_entry_view; /* view is from DW_AT_GNU_entry_view: the entry has a line row */
	/*
	 * An extra entry (entry_rows.h): an argument's location has to begin at the address, at
	 * view_from or later. A location that only continues may be the argument of the call around
	 * it: recursion that was inlined has such rows too.
	 */
	bool must_begin;
	uint64_t view_from;
	/*
	 * Start of the nops just before @at; @at if there are none. @find_padding finds it, never
	 * at an earlier address than that. It is called if a bound is that near: it decodes the
	 * function, and most sites have no such bound.
	 */
	struct cairn_vaddr padding;
	struct cairn_vaddr (*find_padding)(void *of, struct cairn_vaddr at);
	void *padding_of;
	bool inlined; /* the site is a copy, not the body's entry */
	/* the parameter whose location is read, NULL outside loc_of_argument() */
	const struct dw_die *formal;
	enum bound bound;       /* of the location found last */
	struct expression expr; /* of the location found last; none for DW_AT_const_value */
	bool plain_list;        /* set when a location came from a list without views */
	int row_state;          /* 0 not looked up yet, 1 found, -1 none */
	struct flow *flow;      /* of function; shared between its sites, owned by the caller */
	struct frame_addresses *taken; /* of function, as flow; NULL: not kept */
	/* valid when row_state is 1; the last, as it is large and need not be cleared */
	struct cfi_row row;
};

/*
 * The unwind row at ctx->at, ctx->row; false when there is none. Looked up on the first call.
 */
bool loc_row(struct loc_context *ctx);

/*
 * loc_from_expr - fold one expression
 *
 * @expr   the bytes, of a unit @unit
 * @arena  holds steps, pieces and literal bytes of the result
 * Returns 0 and *@ret, whose why says whether there is a value; -ENOMEM. A damaged or unknown
 * expression is no error: it makes the value unavailable.
 */
int loc_from_expr(struct loc_context *ctx, const struct dw_unit *unit, const uint8_t *expr,
		  uint64_t len, struct arena *arena, struct cairn_location *ret);

/* A constant as a location. 0 or -ENOMEM. */
int loc_constant(int64_t value, struct arena *arena, struct cairn_location *ret);

/*
 * loc_of_argument - where a formal parameter is at ctx->at, ctx->view
 *
 * @formal  concrete DW_TAG_formal_parameter DIE of the site
 * Returns 0 and *@ret, or -ENOMEM.
 */
int loc_of_argument(struct loc_context *ctx, const struct dw_die *formal, struct arena *arena,
		    struct cairn_location *ret);

/* Whether an entry of a location list holds at an address and view. */
bool loc_entry_holds(const struct dw_loc_entry *e, struct cairn_vaddr at, uint64_t view);

/*
 * loc_function_keeps_register - whether the function around ctx->at reads the register @reg and
 * never writes it
 *
 * Such a register has one value from the entry to the end, and a description by it for the whole
 * function is right everywhere or nowhere. False for a copy, whose function the register does not
 * describe. A call counts as writing the registers that the convention lets it write.
 * Cost: decodes the function.
 */
bool loc_function_keeps_register(const struct loc_context *ctx, unsigned int reg);

/*
 * loc_frame_is_set_up - whether a frame base that is the register @reg holds at ctx->at: its row is
 * that of most of the function
 *
 * False in a prologue and an epilogue, where the stack or frame pointer does not yet have, or no
 * longer has, the value that the frame base needs.
 * Cost: runs the rows of the function.
 */
bool loc_frame_is_set_up(const struct loc_context *ctx, unsigned int reg);

/*
 * loc_holds_now - whether the described value can be there when a program is stopped at ctx->at;
 * the essay is in slot_init.c
 *
 * @since       where the describing entry begins, or the first of several adjacent ones with the
 *              same description; unused with @everywhere
 * @everywhere  the description is for all of its scope
 * Cost: may decode the function.
 */
bool loc_holds_now(const struct loc_context *ctx, const struct dw_unit *unit,
		   const struct cairn_location *loc, struct cairn_vaddr since, bool everywhere);

/*
 * loc_is_stored_since - whether the code stores all of the @bytes at the CFA + @off
 *
 * GCC describes an address-taken variable as being in memory even if it deleted the store because
 * nothing reads it (docs/findings/gcc-removed-store-described.md). So we search for the store: the
 * instruction before @since, where the description begins, or one on a straight line from there to
 * the site or stopped program's position. False, too, once the searches in one function took longer
 * than CODE_VISITS_MAX.
 * Cost: decodes the function up to there.
 */
bool loc_is_stored_since(const struct loc_context *ctx, struct cairn_vaddr since, int64_t off,
			 uint64_t bytes);

/*
 * loc_is_shown - whether the code shows that memory by which GCC's optimised code describes a value
 * was written; the essay is in removed_store.c
 *
 * @since  where the describing entry begins
 * Cost: may decode the function.
 */
bool loc_is_shown(struct loc_context *ctx, const struct cairn_location *loc,
		  struct cairn_vaddr since);

/*
 * Whether a slot at the CFA + @off may be in an object whose address the function takes. Cost: a
 * look at the bytes of the function, once for ctx->taken.
 */
bool loc_slot_has_address(const struct loc_context *ctx, int64_t off);

/* Whether C++ has the caller make the object and pass its address; @formal may be NULL: no. */
bool loc_is_by_reference(const struct dw_die *formal);

/*
 * Whether an argument may be an object whose address was passed: false in C, and in C++ for scalars
 * and for structs without base classes and member functions whose members are such
 */
bool loc_may_be_by_reference(const struct dw_die *formal);

/*
 * loc_is_spilled - whether ctx->formal was stored to the slot at the CFA + @off on all paths to the
 * stopped program's position
 *
 * @bytes  of the parameter
 * False if that is not certain; the essay is in spill_slot.c. Cost: decodes the function.
 */
bool loc_is_spilled(const struct loc_context *ctx, int64_t off, uint64_t bytes);

/*
 * loc_from_prologue - the location of a parameter at a body's entry, deduced from the prologue
 *
 * @ctx     at the entry
 * @formal  its description holds after the prologue
 * Returns 1 and *@ret; 0 when the code does not prove it, -ENOMEM.
 * Cost: decodes the prologue; the unit's line table when it is the first to ask for it.
 */
int loc_from_prologue(const struct loc_context *ctx, const struct dw_die *formal,
		      struct arena *arena, struct cairn_location *ret);

bool loc_equal(const struct cairn_location *a, const struct cairn_location *b);

/*
 * loc_stack_argument_holds - whether the value that @unit describes at the frame base + @off, @off
 * not negative, is there at @ctx->at
 *
 * False if GCC describes, for an inlined copy, a value that is no stack argument of the containing
 * function, or is not there yet. The row has been looked up if the frame base is the CFA.
 * Cost: reads the function's rows up to the first that differs, and its parameters.
 */
bool loc_stack_argument_holds(const struct loc_context *ctx, const struct dw_unit *unit,
			      int64_t off);

/*
 * loc_stack_argument_is_used - whether some instruction of @function loads from the CFA + @off, or
 * takes that address
 *
 * @off   of the first byte of the argument
 * False also when the code or its unwind information cannot be read.
 * Cost: decodes the function up to the load.
 */
bool loc_stack_argument_is_used(struct elf *code, const struct cfi *cfi,
				const struct dw_die *function, int64_t off);

/*
 * flow_new - of every instruction of a function (all its ranges), which general registers still
 * hold the value that they held at @entry on every path
 *
 * NULL when out of memory or when its code cannot be decoded to the end: then nothing is known.
 * Cost: one step per instruction; with the first question that needs them, a decode of each and
 * some passes.
 */
struct flow *flow_new(struct elf *code, const struct dw_die *function, struct cairn_vaddr entry);
/* The same of a function whose code is one range, and whose entry is the range's start. */
struct flow *flow_of_range(struct elf *code, struct dw_range range);
void flow_free(struct flow *flow);

/*
 * True when register @dwarf_reg provably holds its entry value at @at; @flow may be NULL (false).
 */
bool flow_unchanged(struct flow *flow, struct cairn_vaddr at, unsigned int dwarf_reg);

/*
 * True when some path from @at reads register @dwarf_reg before writing it; @flow may be NULL
 * (false).
 */
bool flow_used(struct flow *flow, struct cairn_vaddr at, unsigned int dwarf_reg);

enum abi_passing {
	ABI_BY_VALUE,
	ABI_BY_ADDRESS, /* C++: the address of an object that the caller made */
	ABI_NOT_PASSED, /* described, but no argument of this instance */
	ABI_UNKNOWN,
};

struct abi_param {
	uint32_t type;
	enum abi_passing how;
};

/*
 * abi_locations - where the System V x86-64 convention puts the parameters of a function at its
 * entry
 *
 * @types   of the parameters, in order; @n of them
 * @result  decides whether rdi holds the address of the result
 * @ret     @n locations; why is CAIRN_UNAVAIL_NOT_STORED_YET from the first parameter on whose
 *          class is not known
 * Returns 0 or -ENOMEM.
 */
int abi_locations(const struct cairn_types *types, const struct abi_param *result,
		  const struct abi_param *params, uint32_t n, struct arena *arena,
		  struct cairn_location *ret);

/*
 * abi_result - where the System V x86-64 convention leaves the result of a function that has
 * returned
 *
 * @ret  why is CAIRN_UNAVAIL_VECTOR_REGISTER if a part of it is in one, or in a register of the
 *       x87; CAIRN_UNAVAIL_UNSUPPORTED if the type's class is not known
 * Returns 0 or -ENOMEM.
 */
int abi_result(const struct cairn_types *types, const struct abi_param *result, struct arena *arena,
	       struct cairn_location *ret);

/*
 * abi_go_locations - where Go's convention for x86-64 puts the parameters of a function at its
 * entry
 *
 * @in_registers  ABIInternal; else ABI0
 * @params        receiver and arguments, in order, without results; @n of them, their types
 *                complete
 * @ret           @n locations; why is CAIRN_UNAVAIL_NOT_STORED_YET from the first on whose location
 *                is not known
 * Returns 0 or -ENOMEM.
 */
int abi_go_locations(const struct cairn_types *types, bool in_registers,
		     const struct cairn_param *params, uint32_t n, struct arena *arena,
		     struct cairn_location *ret);

/* True if the description for the entry and the convention agree, part by part. */
bool abi_go_agrees(const struct cairn_location *said, const struct cairn_location *abi);

#endif
