/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reconstructs a register's value at function entry from the call site in the caller
 *
 *	caller:	mov  %ebx, %edi		rbx is kept by all callees: it has its old value
 *		call f			call site: rdi was passed rbx
 *		...			the return address on the stack is here
 *
 *	f:	xor  %edi, %edi		n is described as entry_value(rdi)
 *
 * n is the caller's rbx if this very call entered f and f was not entered again since. The stack
 * does not prove that: the call may have been of g, which jumped to f (a tail call) with another
 * value in rdi and left no frame. So
 *
 *	1. the instruction before the return address is a direct call of f's entry;
 *	2. f's jumps do not lead back to its entry, through other functions either (reentry.c).
 *
 * For "mov %rbx, %rdx; movabs $3, %rbx; call f" Clang describes f's argument as the content of rbx,
 * which is 3 while f is on the stack (docs/findings/clang-call-site-value-overwritten.md). So
 *
 *	3. the registers in the value's expression are not written between the last instruction that
 *	   writes the argument and the call.
 *
 * GCC makes clones from which it removed a parameter (.isra, .constprop), and describes it by
 * DW_OP_GNU_parameter_ref: the value is the one at the call site. No register holds it, so only
 * conditions 1 and 2 apply.
 *
 * The call site's expression is then used as far as it cannot have changed since: constants, and
 * values computed from registers of the caller's frame. f may have written memory.
 */
#include "sites/call_site_value.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "loc/code.h"
#include "loc/loc.h"
#include "sites/reentry.h"

enum {
	/* call rel32 */
	CALL_BYTES = 5,
	CALL_OPCODE = 0xe8,
	/* Scopes nested in each other; the innermost one has the call. */
	DEPTH_MAX = 128,
	RSP = 7,
};

/* ---- the call entered the callee, once ---- */

static bool is_direct_call(const struct site_env *env, struct cairn_vaddr ret_pc,
			   struct cairn_vaddr entry)
{
	const uint8_t *code;
	size_t n;
	struct insn insn;
	struct cairn_vaddr at = {ret_pc.v - CALL_BYTES};
	return ret_pc.v >= CALL_BYTES && elf_code_at(env->code, at, &code, &n) && n >= CALL_BYTES &&
	       code[0] == CALL_OPCODE && insn_decode(code, n, at.v, &insn) &&
	       insn.flow == INSN_CALL && insn.len == CALL_BYTES && insn.target == entry.v;
}

/* 1, 0, -ENOMEM. */
static int is_certain(const struct site_env *env, const struct passed_call *call)
{
	struct dw_die callee;
	struct cairn_vaddr entry;
	int rc = dw_die_at(env->dw, env->index->p[call->callee].die, &callee, NULL);
	if (rc == 1)
		rc = site_entry_of(&callee, &entry);
	if (rc != 1 || !is_direct_call(env, call->ret_pc, entry))
		return rc == -ENOMEM ? rc : 0;
	return reentry_is_excluded(env, call->active, call->callee);
}

/* ---- the call site ---- */

bool call_site_return(const struct dw_die *site, struct cairn_vaddr *ret)
{
	struct dw_value v;
	uint16_t at = site->tag == DW_TAG_call_site ? DW_AT_call_return_pc : DW_AT_low_pc;
	bool is_there = dw_attr(site, at, &v, NULL) == 1 && v.cls == DW_CLASS_ADDRESS;
	if (is_there)
		*ret = v.addr;
	return is_there;
}

static bool may_hold_sites(const struct dw_die *die)
{
	return die->has_children &&
	       (die->tag == DW_TAG_lexical_block || die->tag == DW_TAG_inlined_subroutine);
}

int call_sites_visit(const struct dw_die *function,
		     int (*visit)(void *ctx, const struct dw_die *site), void *ctx,
		     struct cairn_err *err)
{
	struct dw_die path[DEPTH_MAX];
	unsigned int depth = 0;
	int rc = dw_die_child(function, &path[0], err);
	while (rc >= 0) {
		struct dw_die *die = &path[depth];
		if (rc == 0) {
			if (!depth--)
				return 0;
			rc = dw_die_sibling(&path[depth], &path[depth], err);
			continue;
		}
		bool is_site = die->tag == DW_TAG_call_site || die->tag == DW_TAG_GNU_call_site;
		int end = is_site ? visit(ctx, die) : 0;
		if (end)
			return end;
		if (may_hold_sites(die) && depth + 1 < DEPTH_MAX) {
			rc = dw_die_child(die, &path[depth + 1], err);
			depth++;
		} else {
			rc = dw_die_sibling(die, die, err);
		}
	}
	return rc;
}

struct site_search {
	struct cairn_vaddr ret_pc;
	struct dw_die *found;
};

static int is_wanted(void *arg, const struct dw_die *site)
{
	struct site_search *s = arg;
	struct cairn_vaddr at;
	bool is_it = call_site_return(site, &at) && at.v == s->ret_pc.v;
	if (is_it)
		*s->found = *site;
	return is_it;
}

/* Returns 1 and *@ret, 0 if the function does not record the call, -EBADMSG. */
static int find_site(const struct dw_die *function, struct cairn_vaddr ret_pc, struct dw_die *ret,
		     struct cairn_err *err)
{
	return call_sites_visit(function, is_wanted, &(struct site_search){ret_pc, ret}, err);
}

void call_param_of(const struct dw_die *param, struct call_param *ret)
{
	bool is_gnu = param->tag == DW_TAG_GNU_call_site_parameter;
	struct dw_value v;
	*ret = (struct call_param){.reg = CALL_PARAM_NO_REG};
	if (!is_gnu && param->tag != DW_TAG_call_site_parameter)
		return;
	if (dw_attr(param, is_gnu ? DW_AT_GNU_call_site_value : DW_AT_call_value, &v, NULL) != 1 ||
	    (v.cls != DW_CLASS_EXPRLOC && v.cls != DW_CLASS_BLOCK))
		return;
	ret->is_told = true;
	ret->value = (struct expression){v.block.p, v.block.n};
	ret->removed = dw_ref(param, is_gnu ? DW_AT_abstract_origin : DW_AT_call_parameter);
	if (dw_attr(param, DW_AT_location, &v, NULL) == 1 &&
	    (v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK) && v.block.n == 1 &&
	    v.block.p[0] >= DW_OP_reg0 && v.block.p[0] <= DW_OP_reg31)
		ret->reg = v.block.p[0] - DW_OP_reg0;
}

/*
 * True if a child of a call site describes the wanted value; sets the expression of the passed
 * value.
 */
static bool tells(const struct dw_die *param, const struct cairn_loc_step *asked,
		  struct expression *ret)
{
	struct call_param p;
	call_param_of(param, &p);
	*ret = p.value;
	return p.is_told && (asked->op == CAIRN_LOC_ENTRY_REG ? p.reg == asked->reg
							      : p.removed == (dw_off)asked->imm);
}

/* ---- the registers in the value's expression ---- */

struct origin {
	uint64_t call_at;
	uint16_t argument, told_by; /* registers, one bit each */
	bool is_defined, is_overwritten;
};

static int follow_origin(void *arg, const struct code_insn *code)
{
	/* rax rdx rcx rsi rdi r8-r11: the registers that a call may change. */
	enum { CALL_CHANGES = 1 << 0 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 0xf << 8 };
	struct origin *o = arg;
	struct insn insn;
	if (code->at >= o->call_at)
		return 0;
	if (!insn_decode(code->bytes, code->step.len, code->at, &insn))
		return -EBADMSG;
	bool is_call =
		insn.flow == INSN_CALL || insn.flow == INSN_CALL_INDIRECT || insn.flow == INSN_TRAP;
	unsigned int writes = insn.writes | (is_call ? CALL_CHANGES : 0);
	/* Control reaches the code after a jump or a return from elsewhere. */
	bool is_end = !is_call && insn.flow != INSN_NEXT && insn.flow != INSN_BRANCH;
	if (is_end || writes & o->argument)
		o->is_defined = o->is_overwritten = false;
	o->is_defined |= !is_end && writes & o->argument;
	o->is_overwritten |= !is_end && writes & o->told_by;
	return 0;
}

/* 1, 0, -ENOMEM. */
static int origin_holds(const struct site_env *env, const struct dw_die *caller,
			struct cairn_vaddr ret_pc, unsigned int reg, const struct cairn_piece *p)
{
	struct origin o = {.call_at = ret_pc.v - CALL_BYTES, .argument = (uint16_t)(1u << reg)};
	for (uint32_t i = 0; i < p->n_steps; i++) {
		bool has_reg = p->steps[i].op == CAIRN_LOC_REG ||
			       p->steps[i].operand == CAIRN_LOC_OPERAND_REG;
		if (has_reg && p->steps[i].reg < 16)
			o.told_by |= (uint16_t)(1u << p->steps[i].reg);
	}
	o.told_by &= (uint16_t)~o.argument;
	/* Nothing overwrites a constant, and the stack pointer is the one of the unwind row. */
	o.told_by &= (uint16_t) ~(1u << RSP);
	if (!o.told_by)
		return 1;
	int rc = code_visit(env->code, caller, follow_origin, &o);
	if (rc == -ENOMEM)
		return rc;
	return rc == 0 && !o.is_overwritten && (o.is_defined || dw_unit_is_gcc(caller->unit));
}

static bool reads_memory(const struct cairn_piece *p)
{
	for (uint32_t i = 0; i < p->n_steps; i++)
		if (p->steps[i].op == CAIRN_LOC_LOAD)
			return true;
	return false;
}

/*
 * DW_AT_call_value is a value without DW_OP_stack_value: the address that an expression leaves is
 * the value. DW_OP_regN does not occur in it.
 */
static void as_value(struct cairn_location *loc, struct cairn_piece *piece)
{
	bool ok = loc->why == CAIRN_AVAILABLE && loc->n_pieces == 1 && !loc->pieces[0].size &&
		  (loc->pieces[0].kind == CAIRN_PIECE_MEMORY ||
		   loc->pieces[0].kind == CAIRN_PIECE_VALUE) &&
		  !reads_memory(&loc->pieces[0]);
	if (!ok) {
		*loc = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
		return;
	}
	*piece = loc->pieces[0];
	piece->kind = CAIRN_PIECE_VALUE;
	loc->pieces = piece;
}

int passed_in(const struct site_env *env, const struct passed_call *call,
	      const struct cairn_loc_step *asked, struct arena *arena, struct cairn_location *ret,
	      struct cairn_err *err)
{
	struct dw_die caller, site, param;
	struct expression value = {0};
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
	int rc = is_certain(env, call);
	if (rc <= 0)
		return rc < 0 ? err_nomem(err, "the code of a function") : 0;
	rc = dw_die_at(env->dw, env->index->p[call->caller].die, &caller, err);
	if (rc == 1)
		rc = find_site(&caller, call->ret_pc, &site, err);
	if (rc <= 0)
		return rc;
	rc = dw_die_child(&site, &param, err);
	while (rc == 1 && !tells(&param, asked, &value))
		rc = dw_die_sibling(&param, &param, err);
	if (rc <= 0)
		return rc;
	struct loc_context ctx = {
		.dw = env->dw,
		.cfi = env->cfi,
		.code = env->code,
		.function = caller,
		.at = {call->ret_pc.v - 1},
		.next = call->ret_pc,
		.is_now = true,
		.has_caller = true,
		.view = UINT64_MAX,
		.padding = {call->ret_pc.v - 1},
	};
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	if (!piece || loc_from_expr(&ctx, param.unit, value.p, value.n, arena, ret) < 0)
		return err_nomem(err, "a location");
	as_value(ret, piece);
	rc = 1;
	if (ret->why == CAIRN_AVAILABLE && asked->op == CAIRN_LOC_ENTRY_REG)
		rc = origin_holds(env, &caller, call->ret_pc, asked->reg, piece);
	if (rc < 0)
		return err_nomem(err, "the code of a function");
	if (!rc)
		ret->why = CAIRN_UNAVAIL_ENTRY_VALUE;
	return 0;
}

int passed_between(const struct site_env *env, const struct active *active,
		   struct cairn_vaddr callee, struct cairn_vaddr ret_pc,
		   const struct cairn_loc_step *asked, struct arena *arena,
		   struct cairn_location *ret, struct cairn_err *err)
{
	struct passed_call call = {
		.active = active,
		.callee = active_function(active, callee),
		.caller = active_function(active, (struct cairn_vaddr){ret_pc.v - 1}),
		.ret_pc = ret_pc};
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_ENTRY_VALUE};
	if (call.callee == DW_FUNC_NONE || call.caller == DW_FUNC_NONE)
		return 0;
	return passed_in(env, &call, asked, arena, ret, err);
}
