/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The variables in scope at a line
 *
 * Parameters are located as when a program is stopped there (scopes_at.c). Variables are those of
 * the function's DIE and of the lexical blocks in it that have code at the address; the same code
 * locates them. What may be wrong about an argument may be wrong about them, and more:
 *
 * Unoptimised code has each variable in a slot for all of its scope. The slot is right once the
 * frame is set up, and after the line of the declaration: at that line, the value is not there yet.
 *
 * Optimised code. A compiler removes or delays stores to variables in memory that it sees nobody
 * read in between (docs/findings/gcc-removed-store-described.md): a variable described by memory
 * has the value of an earlier moment then, and nothing shows it. So memory counts only where the
 * compiler spilled a register: a slot of at most a word that a location list names for a part of
 * the scope, whose address the function does not take. For the same reason a static variable is
 * unavailable, unless it is constant. In a loop, constants and computed integers may belong to
 * another pass, and two integers in one register to another variable
 * (quirks/loop_arithmetic.c).
 *
 * Several statements may begin at one address, and change a variable in between without an
 * instruction. If the value before this line's statement and after all of them differ, the variable
 * is ambiguous.
 */
#include "sites/vars.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "sites/arg_type.h"
#include "sites/quirks/quirks.h"

enum {
	/* Blocks in blocks; compilers' limits are far lower. */
	DEPTH_MAX = 256,
	WORD_BYTES = 8,
	GENERAL_REGISTERS = 16,
};

struct var_search {
	const struct site_env *env;
	const struct active_types *types;
	struct globals *globals;
	const struct cairn_line *line;
	struct site_worker worker;
	struct loc_context ctx;
	struct arena *arena;
	VEC(struct cairn_variable) found;
	VEC(struct dw_die) dies; /* parallel; tag 0: not described here */
	unsigned int depth;
	bool is_in_loop, is_loop_known;
	uint32_t scope_line; /* of the function's declaration */
	struct cairn_err *err;
};

/* ---- what is believed ---- */

static bool is_optimised(const struct var_search *s, const struct dw_unit *u)
{
	const struct dw_die *function = &s->ctx.function;
	if (dw_unit_is_gcc(u))
		return dw_unit_is_optimised(u);
	/* Clang describes all calls of a function that it optimised; others tell nothing. */
	return !dw_unit_is_clang(u) || dw_unit_language(u) == DW_LANG_Rust ||
	       dw_flag(function, DW_AT_call_all_calls) ||
	       dw_flag(function, DW_AT_GNU_all_call_sites);
}

static bool is_in_loop(struct var_search *s)
{
	if (!s->is_loop_known)
		s->is_in_loop = site_is_in_loop(s->env, &s->worker, s->ctx.at);
	s->is_loop_known = true;
	return s->is_in_loop;
}

static void reject(struct cairn_location *loc, enum cairn_unavailable why)
{
	*loc = (struct cairn_location){.why = why};
}

static bool is_width_step(const struct cairn_loc_step *step)
{
	return step->op == CAIRN_LOC_SEXT || step->op == CAIRN_LOC_ZEXT;
}

/* A value's components. */
struct makings {
	bool reads_register, reads_vector, needs_caller;
	bool loads;    /* memory, to compute with it */
	bool computes; /* more than a change of the width */
};

static void note_step(const struct cairn_loc_step *step, struct makings *m)
{
	bool reads = step->op == CAIRN_LOC_REG || step->operand == CAIRN_LOC_OPERAND_REG;
	m->reads_register |= reads;
	m->reads_vector |= reads && step->reg > GENERAL_REGISTERS;
	m->needs_caller |= step->op == CAIRN_LOC_ENTRY_REG || step->op == CAIRN_LOC_ENTRY_PARAM;
	m->loads |= step->op == CAIRN_LOC_LOAD;
	m->computes |= step->op != CAIRN_LOC_REG && step->op != CAIRN_LOC_CONST &&
		       step->op != CAIRN_LOC_ADDR && !is_width_step(step);
}

static struct makings makings_of(const struct cairn_location *loc)
{
	struct makings m = {0};
	for (uint32_t i = 0; i < loc->n_pieces; i++) {
		struct makings one = {0};
		for (uint32_t k = 0; k < loc->pieces[i].n_steps; k++)
			note_step(&loc->pieces[i].steps[k], &one);
		m.reads_register |= one.reads_register;
		m.reads_vector |= one.reads_vector;
		m.needs_caller |= one.needs_caller;
		m.loads |= one.loads;
		m.computes |= one.computes && loc->pieces[i].kind == CAIRN_PIECE_VALUE;
	}
	return m;
}

static bool has_memory(const struct cairn_location *loc)
{
	for (uint32_t i = 0; i < loc->n_pieces; i++)
		if (loc->pieces[i].kind == CAIRN_PIECE_MEMORY)
			return true;
	return false;
}

/* All of it is at a link-time address. */
static bool is_static(const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	return loc->n_pieces == 1 && p->kind == CAIRN_PIECE_MEMORY && p->n_steps == 1 &&
	       p->steps[0].op == CAIRN_LOC_ADDR;
}

static bool is_everywhere(const struct dw_die *die)
{
	struct dw_value v;
	return dw_attr(die, DW_AT_location, &v, NULL) == 1 &&
	       (v.cls == DW_CLASS_EXPRLOC || v.cls == DW_CLASS_BLOCK);
}

static bool is_const(const struct dw_die *die)
{
	struct dw_die type;
	return arg_type_without_names(die, false, &type) && type.tag == DW_TAG_const_type;
}

/* A word that the compiler spilled: a slot without an address, for a part of the scope. */
static bool is_spill(struct var_search *s, const struct dw_die *die,
		     const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	uint64_t bytes = dw_type_bytes(die);
	if (is_everywhere(die) || loc->n_pieces != 1 || !bytes || bytes > WORD_BYTES ||
	    p->steps[0].op != CAIRN_LOC_REG)
		return false;
	bool adds = p->n_steps == 2 && p->steps[1].op == CAIRN_LOC_ADD &&
		    p->steps[1].operand == CAIRN_LOC_IMM;
	if ((p->n_steps != 1 && !adds) || !loc_row(&s->ctx))
		return false;
	const struct cfi_row *row = &s->ctx.row;
	if (row->cfa != CFI_CFA_REG_OFFSET || row->cfa_reg != p->steps[0].reg)
		return false;
	int64_t off = (adds ? p->steps[1].imm : 0) - row->cfa_off;
	return off < 0 && !loc_slot_has_address(&s->ctx, off);
}

/* GCC's code in which the registers of a description may be another variable's. */
static bool may_be_another(const struct dw_unit *u)
{
	return dw_unit_is_gcc(u) &&
	       (dw_unit_renames_webs(u) || dw_unit_is_lto(u) || !dw_unit_follows_assignments(u));
}

static void check_optimised(struct var_search *s, const struct dw_die *die,
			    struct cairn_location *loc)
{
	struct makings m = makings_of(loc);
	bool is_local = die->tag == DW_TAG_variable;
	if (is_static(loc) && is_local && !is_const(die))
		reject(loc, CAIRN_UNAVAIL_MEMORY_WRITTEN);
	else if (is_local && has_memory(loc) && !is_static(loc) && !is_spill(s, die, loc))
		quirk_reject(loc, CAIRN_QUIRK_REMOVED_STORE);
	else if (m.loads && m.computes)
		quirk_reject(loc, CAIRN_QUIRK_MEMORY_AFTER_STORE);
	else if (may_be_another(die->unit) && m.reads_register)
		quirk_reject(loc, CAIRN_QUIRK_WEB_REGISTER);
	else if (m.computes && !arg_is_pointer(die->unit, die->off) && is_in_loop(s))
		quirk_reject(loc, CAIRN_QUIRK_LOOP_ARITHMETIC);
	else if (is_local && !m.reads_register && !has_memory(loc) && !is_const(die) &&
		 is_in_loop(s))
		quirk_reject(loc, CAIRN_QUIRK_COUNTER_CONSTANT);
}

/* The unit's own file, so that lines can be compared. */
static bool is_declared_here_or_later(const struct var_search *s, const struct dw_die *die,
				      uint32_t decl_line)
{
	struct dw_value v;
	struct dw_die owner;
	const char *file = NULL;
	if (dw_attr_deep(die, DW_AT_decl_file, &v, &owner, NULL) == 1)
		file = dw_unit_file(owner.unit, v.u);
	return decl_line >= s->line->line && file && s->line->file && !strcmp(file, s->line->file);
}

/* A slot for all of the scope, in code that is not optimised. */
static int locate_slot(struct var_search *s, const struct dw_die *die, uint32_t decl_line,
		       struct cairn_location *ret)
{
	struct dw_value v;
	struct loc_context *ctx = &s->ctx;
	dw_attr(die, DW_AT_location, &v, NULL);
	int rc = loc_from_expr(ctx, die->unit, v.block.p, v.block.n, s->arena, ret);
	if (rc < 0 || ret->why != CAIRN_AVAILABLE || is_static(ret))
		return rc;
	bool is_set_up = loc_row(ctx) && ctx->row.cfa == CFI_CFA_REG_OFFSET &&
			 loc_frame_is_set_up(ctx, ctx->row.cfa_reg);
	if (!is_set_up || is_declared_here_or_later(s, die, decl_line))
		reject(ret, CAIRN_UNAVAIL_NOT_STORED_YET);
	return rc;
}

/* Before this line's statement, and after all statements at its address. */
static int check_views(struct var_search *s, const struct dw_die *die, struct cairn_location *loc)
{
	struct cairn_location before, after;
	uint64_t view = s->ctx.view;
	s->ctx.view = s->line->view;
	int rc = loc_of_argument(&s->ctx, die, s->arena, &before);
	s->ctx.view = view;
	if (rc >= 0)
		rc = loc_of_argument(&s->ctx, die, s->arena, &after);
	if (rc >= 0 && !loc_equal(&before, &after))
		reject(loc, CAIRN_UNAVAIL_AMBIGUOUS);
	return rc;
}

/* The rules that hold whoever located it. */
static int check(struct var_search *s, const struct dw_die *die, struct cairn_location *loc)
{
	struct makings m = makings_of(loc);
	if (loc->why != CAIRN_AVAILABLE)
		return 0;
	if (m.needs_caller)
		reject(loc, CAIRN_UNAVAIL_ENTRY_VALUE);
	else if (m.reads_vector)
		loc->why = CAIRN_UNAVAIL_VECTOR_REGISTER;
	else if (is_optimised(s, die->unit))
		check_optimised(s, die, loc);
	return loc->why == CAIRN_AVAILABLE && !is_everywhere(die) ? check_views(s, die, loc) : 0;
}

/* ---- what is in scope ---- */

static uint32_t decl_line_of(const struct dw_die *die)
{
	struct dw_value v;
	struct dw_die owner;
	bool is_there = dw_attr_deep(die, DW_AT_decl_line, &v, &owner, NULL) == 1;
	return is_there && v.u <= UINT32_MAX ? (uint32_t)v.u : 0;
}

static bool is_known(const struct var_search *s, const char *name)
{
	for (size_t i = 0; i < s->found.n; i++)
		if (!strcmp(s->found.p[i].name, name))
			return true;
	return false;
}

static int add(struct var_search *s, const struct cairn_variable *v, const struct dw_die *die)
{
	static const struct dw_die none;
	if (!VEC_ADD(&s->found, *v) || !VEC_ADD(&s->dies, die ? *die : none))
		return err_nomem(s->err, "variables");
	return 0;
}

static int add_variable(struct var_search *s, const struct dw_die *die)
{
	struct cairn_variable v = {.kind = CAIRN_VARIABLE_LOCAL,
				   .name = dw_str_deep(die, DW_AT_name)};
	/* A declaration (extern int n;) names what is described elsewhere. */
	if (!v.name || is_known(s, v.name) || dw_flag(die, DW_AT_declaration))
		return 0;
	v.decl_line = decl_line_of(die);
	int rc = s->types->type_of(s->types->ctx, die, &v.type, s->err);
	if (rc < 0)
		return rc;
	if (is_everywhere(die) && !is_optimised(s, die->unit))
		rc = locate_slot(s, die, v.decl_line, &v.loc);
	else
		rc = site_locate(s->env, &s->worker, &s->ctx, die, &v.loc);
	if (rc >= 0 && is_static(&v.loc))
		v.kind = CAIRN_VARIABLE_STATIC;
	if (rc >= 0)
		rc = check(s, die, &v.loc);
	return rc < 0 ? err_nomem(s->err, "variables") : add(s, &v, die);
}

static int add_block(struct var_search *s, const struct dw_die *block);

/* Inner blocks first: a name means the innermost variable. */
static int add_inner(struct var_search *s, const struct dw_die *block)
{
	struct dw_die child;
	int rc = dw_die_child(block, &child, s->err);
	for (; rc == 1; rc = dw_die_sibling(&child, &child, s->err)) {
		if (child.tag != DW_TAG_lexical_block)
			continue;
		int holds = dw_ranges_hold(&child, s->ctx.at, s->err);
		if (holds > 0)
			holds = add_block(s, &child);
		if (holds < 0)
			return holds;
	}
	return rc;
}

static int add_block(struct var_search *s, const struct dw_die *block)
{
	struct dw_die child;
	if (s->depth == DEPTH_MAX)
		return 0;
	s->depth++;
	int rc = add_inner(s, block);
	s->depth--;
	if (rc >= 0)
		rc = dw_die_child(block, &child, s->err);
	for (; rc == 1; rc = dw_die_sibling(&child, &child, s->err)) {
		int added = child.tag == DW_TAG_variable ? add_variable(s, &child) : 0;
		if (added < 0)
			return added;
	}
	return rc;
}

/* Variables of the function itself that this copy does not describe. */
static int add_undescribed(struct var_search *s, const struct dw_die *function)
{
	struct dw_die child, abstract;
	dw_off origin = dw_origin_of(function);
	int rc = origin ? dw_die_near(function->unit, origin, &abstract, s->err) : 0;
	if (rc >= 0 && origin)
		rc = dw_die_child(&abstract, &child, s->err);
	for (; origin && rc == 1; rc = dw_die_sibling(&child, &child, s->err)) {
		struct cairn_variable v = {.kind = CAIRN_VARIABLE_LOCAL,
					   .loc.why = CAIRN_UNAVAIL_NO_DESCRIPTION};
		v.name = child.tag == DW_TAG_variable ? dw_str_deep(&child, DW_AT_name) : NULL;
		if (!v.name || is_known(s, v.name) || dw_flag(&child, DW_AT_declaration))
			continue;
		v.decl_line = (uint32_t)dw_udata(&child, DW_AT_decl_line, 0);
		int added = s->types->type_of(s->types->ctx, &child, &v.type, s->err);
		if (added >= 0)
			added = add(s, &v, NULL);
		if (added < 0)
			return added;
	}
	return rc;
}

/* The concrete DIE of a parameter; false: this copy has none. */
static bool parameter_die(const struct dw_die *function, const char *name, struct dw_die *ret)
{
	int rc = dw_die_child(function, ret, NULL);
	for (; rc == 1; rc = dw_die_sibling(ret, ret, NULL)) {
		const char *own =
			ret->tag == DW_TAG_formal_parameter ? dw_str_deep(ret, DW_AT_name) : NULL;
		if (own && !strcmp(own, name))
			return true;
	}
	return false;
}

static int add_parameters(struct var_search *s, const struct dw_die *function,
			  const struct cairn_scope *scope)
{
	for (uint32_t i = 0; i < scope->n_args; i++) {
		const struct cairn_arg *arg = &scope->args[i];
		struct cairn_variable v = {.kind = CAIRN_VARIABLE_PARAMETER,
					   .name = arg->name,
					   .type = arg->type,
					   .loc = arg->loc};
		struct dw_die die;
		if (!arg->name || is_known(s, arg->name))
			continue;
		bool has_die = parameter_die(function, arg->name, &die);
		/* A body's are stored by its prologue, which is followed; a copy has none. */
		bool is_slot = has_die && s->ctx.inlined && is_everywhere(&die) &&
			       !is_optimised(s, die.unit);
		int rc = is_slot ? locate_slot(s, &die, s->scope_line, &v.loc) : 0;
		if (rc >= 0 && has_die)
			rc = check(s, &die, &v.loc);
		if (rc >= 0)
			rc = add(s, &v, has_die ? &die : NULL);
		if (rc < 0)
			return err_nomem(s->err, "variables");
	}
	return 0;
}

/* The unit's variables, as the function sees them: after its own. */
static int add_globals(struct var_search *s, const struct dw_unit *unit)
{
	struct site_globals globals;
	int rc = globals_of_unit(s->globals, unit, &globals, s->err);
	for (size_t i = 0; rc >= 0 && i < globals.n; i++) {
		const struct site_global *g = &globals.p[i];
		const struct cairn_variable v = {.kind = CAIRN_VARIABLE_GLOBAL,
						 .name = g->name,
						 .type = g->type,
						 .decl_line = g->line,
						 .loc = g->loc};
		if (!is_known(s, g->name))
			rc = add(s, &v, NULL);
	}
	return rc;
}

/* ---- two in one register ---- */

static int register_of(const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	bool is_held = loc->why == CAIRN_AVAILABLE && loc->n_pieces == 1 &&
		       p->kind == CAIRN_PIECE_VALUE && p->n_steps == 1 &&
		       p->steps[0].op == CAIRN_LOC_REG;
	return is_held ? p->steps[0].reg : -1;
}

static bool shares_register(const struct var_search *s, size_t which)
{
	int reg = register_of(&s->found.p[which].loc);
	for (size_t i = 0; reg >= 0 && i < s->found.n; i++)
		if (i != which && register_of(&s->found.p[i].loc) == reg)
			return true;
	return false;
}

static void check_shared(struct var_search *s)
{
	bool *shared = arena_array(s->arena, s->found.n + 1, sizeof(*shared));
	for (size_t i = 0; shared && i < s->found.n; i++) {
		const struct dw_die *die = &s->dies.p[i];
		shared[i] = die->unit && is_optimised(s, die->unit) &&
			    !arg_is_pointer(die->unit, die->off) && shares_register(s, i) &&
			    is_in_loop(s);
	}
	for (size_t i = 0; shared && i < s->found.n; i++)
		if (shared[i])
			quirk_reject(&s->found.p[i].loc, CAIRN_QUIRK_LOOP_ARITHMETIC);
}

static int hand_out(struct var_search *s, struct cairn_variables *ret)
{
	struct cairn_variable *p = arena_array(s->arena, s->found.n + 1, sizeof(*p));
	if (!p)
		return err_nomem(s->err, "variables");
	if (s->found.n)
		memcpy(p, s->found.p, s->found.n * sizeof(*p));
	*ret = (struct cairn_variables){.n = s->found.n, .p = p};
	return (int)s->found.n;
}

/* The entry of the index that has the line, in the code of @function. */
static uint32_t entry_of(const struct site_env *env, uint32_t function, uint64_t die)
{
	const struct dw_func_index *index = env->index;
	for (uint32_t i = function; i < index->n; i++) {
		if (i != function && index->p[i].parent == DW_FUNC_NONE)
			break;
		if (index->p[i].die == die)
			return i;
	}
	return DW_FUNC_NONE;
}

static int search(struct var_search *s, uint32_t function, uint32_t entry)
{
	struct cairn_vaddr at = s->line->site.at;
	struct cairn_scope scope = {0};
	struct dw_die die;
	int rc =
		active_scope(s->env, &s->worker, s->types, function, entry, at, at, &scope, s->err);
	if (rc >= 0)
		rc = site_context_now(s->env, &s->worker, entry, at, at, &s->ctx, s->err);
	if (rc >= 0)
		rc = dw_func_die(s->env->dw, &s->env->index->p[entry], &die, s->err);
	if (rc >= 0)
		s->scope_line = decl_line_of(&die);
	if (rc >= 0)
		rc = add_block(s, &die);
	if (rc >= 0)
		rc = add_parameters(s, &die, &scope);
	if (rc >= 0)
		rc = add_undescribed(s, &die);
	if (rc >= 0)
		check_shared(s);
	return rc < 0 ? rc : add_globals(s, die.unit);
}

int vars_at(const struct site_env *env, const struct active *active,
	    const struct active_types *types, struct globals *globals,
	    const struct cairn_line *line, struct arena *arena, struct cairn_variables *ret,
	    struct cairn_err *err)
{
	struct var_search s = {.env = env,
			       .types = types,
			       .globals = globals,
			       .line = line,
			       .arena = arena,
			       .err = err};
	uint32_t function = active_function(active, line->site.at);
	uint32_t entry =
		function == DW_FUNC_NONE ? DW_FUNC_NONE : entry_of(env, function, line->site.die);
	*ret = (struct cairn_variables){0};
	if (entry == DW_FUNC_NONE)
		return 0;
	site_worker_init(&s.worker, arena);
	int rc = search(&s, function, entry);
	if (rc >= 0)
		rc = hand_out(&s, ret);
	site_worker_fini(&s.worker);
	VEC_FREE(&s.found);
	VEC_FREE(&s.dies);
	return rc;
}
