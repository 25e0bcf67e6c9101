/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/args_check.h"

#include <errno.h>
#include <string.h>

#include "dwarf/constants.h"
#include "sites/arg_type.h"
#include "sites/go.h"
#include "sites/quirks/quirks.h"
#include "sites/symbol_names.h"

/* const T (through typedefs), T &, T &&, this: the function cannot assign to it. */
static bool cannot_be_assigned(const struct dw_unit *unit, dw_off formal)
{
	struct dw_die die, type;
	if (dw_die_near(unit, formal, &die, NULL) != 1)
		return false;
	if (dw_flag(&die, DW_AT_artificial))
		return true;
	if (!arg_type_without_names(&die, false, &type))
		return false;
	return type.tag == DW_TAG_const_type || type.tag == DW_TAG_immutable_type ||
	       type.tag == DW_TAG_reference_type || type.tag == DW_TAG_rvalue_reference_type;
}

/*
 * GCC computes a _Bool as a whole byte: "not; and 255" for the opposite of a condition gives 254
 * and 255 (docs/findings/gcc-bool-has-eight-bits.md). The lowest bit is right in every shape seen,
 * and of a value that is 0 or 1 already it changes nothing.
 */
static int keep_lowest_bit(const struct dw_unit *unit, dw_off formal, struct cairn_location *loc,
			   struct arena *arena)
{
	const struct cairn_piece *p = loc->pieces;
	if (loc->n_pieces != 1 || p->kind != CAIRN_PIECE_VALUE || p->n_steps < 2 ||
	    p->n_steps == CAIRN_LOC_STEPS_MAX || !arg_is_bool(unit, formal))
		return 0;
	struct cairn_loc_step *steps = arena_array(arena, p->n_steps + 1, sizeof(*steps));
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	if (!steps || !piece)
		return -ENOMEM;
	memcpy(steps, p->steps, p->n_steps * sizeof(*steps));
	steps[p->n_steps] = (struct cairn_loc_step){.op = CAIRN_LOC_AND, .imm = 1};
	*piece = *p;
	piece->steps = steps;
	piece->n_steps++;
	loc->pieces = piece;
	return 0;
}

/*
 * True if the site is hit again in a loop, in recursion made a loop, or by code that is no call.
 * Constants, and registers that the loop does not write, then describe the call alone
 * (docs/findings/gcc-entry-is-a-loop-head.md).
 */
static bool is_passed_by_others(const struct built_site *b)
{
	return b->site.count_caveats & ~(b->grows_stack ? CAIRN_COUNT_LOOPED : 0) &
	       (CAIRN_COUNT_LOOPED | CAIRN_COUNT_SHARED_PC | CAIRN_COUNT_BEFORE_TEST);
}

/* A load from a slot of the frame: only the compiler writes those, and it knows. */
static bool loads_slot(const struct cairn_loc_step *steps, uint32_t load)
{
	enum { RSP = 7 };
	uint32_t base = load;
	if (base && steps[base - 1].op == CAIRN_LOC_ADD && steps[base - 1].operand == CAIRN_LOC_IMM)
		base--;
	return base && steps[base - 1].op == CAIRN_LOC_REG && steps[base - 1].reg == RSP;
}

/*
 * GCC computes a lost value from the memory that it was made of. GCC does not check whether the
 * memory is written between the call and the copy, or will be because a store was moved
 * (docs/findings/gcc-memory-read-after-store.md). A value that is simply in memory is another
 * matter: GCC followed it there.
 */
static bool is_computed_from_memory(const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		for (uint32_t k = 0; p->kind == CAIRN_PIECE_VALUE && k < p->n_steps; k++)
			if (p->steps[k].op == CAIRN_LOC_LOAD && !loads_slot(p->steps, k))
				return true;
	}
	return false;
}

static bool renames_webs(const struct site_env *env, const struct dw_unit *unit)
{
	return dw_unit_is_gcc(unit) && !env->assume_unmodified && dw_unit_renames_webs(unit) &&
	       dw_unit_is_optimised(unit);
}

/*
 * The stack pointer is no register of a web. The address of a frame's slot is computed from it, and
 * a value that the compiler spilled there is found by the slot. A value at the function's entry may
 * be the one of a register that has another name since.
 */
static bool reads_register(const struct cairn_location *loc)
{
	enum { RSP = 7 };
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		const struct cairn_piece *p = &loc->pieces[i];
		for (uint32_t k = 0; k < p->n_steps; k++) {
			const struct cairn_loc_step *step = &p->steps[k];
			if (step->op == CAIRN_LOC_ENTRY_REG || step->op == CAIRN_LOC_ENTRY_PARAM ||
			    ((step->op == CAIRN_LOC_REG ||
			      step->operand == CAIRN_LOC_OPERAND_REG) &&
			     step->reg != RSP))
				return true;
		}
	}
	return false;
}

int args_check_args(const struct site_env *env, struct built_site *b, struct arena *arena)
{
	bool may_change = b->site.n_chain && b->no_views && !env->assume_unmodified;
	bool by_others = is_passed_by_others(b) && !env->assume_unmodified;
	bool by_gcc = b->site.n_chain && dw_unit_is_gcc(b->die.unit) && !env->assume_unmodified;
	bool by_web = b->site.n_chain && renames_webs(env, b->die.unit);
	for (uint32_t i = 0; i < b->formals.n; i++) {
		struct cairn_location *loc = &b->args[i].loc;
		if (keep_lowest_bit(b->die.unit, b->formals.die[i], loc, arena) < 0)
			return -ENOMEM;
		if (b->site.n_chain && dw_unit_go(b->die.unit))
			go_check_pieces(b, i);
		if (may_change && loc->why == CAIRN_AVAILABLE &&
		    !cannot_be_assigned(b->die.unit, b->formals.die[i]))
			quirk_reject(loc, CAIRN_QUIRK_NO_VIEWS);
		if (by_gcc && is_computed_from_memory(loc))
			quirk_reject(loc, CAIRN_QUIRK_MEMORY_AFTER_STORE);
		if (by_web && reads_register(loc))
			quirk_reject(loc, CAIRN_QUIRK_WEB_REGISTER);
		if (by_others)
			quirk_reject(loc, CAIRN_QUIRK_LOOP_HEAD_ENTRY);
	}
	return 0;
}

void args_check_now(const struct site_env *env, struct built_site *b)
{
	if (!renames_webs(env, b->die.unit))
		return;
	for (uint32_t i = 0; i < b->formals.n; i++)
		if (reads_register(&b->args[i].loc))
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_WEB_REGISTER);
}

void args_check_clone(const struct site_env *env, struct built_site *b, bool is_clone)
{
	bool folded = env->icf_groups && symbol_name_has(env->icf_groups, b->site.at);
	bool may_change = b->no_views && !env->assume_unmodified;
	for (uint32_t i = 0; i < b->site.n_args; i++) {
		struct cairn_location *loc = &b->args[i].loc;
		if (may_change && !args_check_is_proven(b, i) && is_clone)
			quirk_reject(loc, CAIRN_QUIRK_NO_VIEWS);
		else if (may_change && !args_check_is_proven(b, i))
			arg_reject(loc, CAIRN_UNAVAIL_NO_CONVENTION);
		if (folded)
			quirk_reject(loc, CAIRN_QUIRK_ICF_ARGS);
	}
}
