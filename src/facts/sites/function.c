/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions, in two stages
 *
 *	parallel    every site by itself: address, chain, locations              site.c
 *	one by one  parameters and their types, which extend the type graph;     here
 *	            the beliefs, which need the types; order
 *
 * Sites are built in slots given by their position, so the outcome does not depend on the threads.
 *
 * Which descriptions are believed. GCC's locations come with views, which say to which point at an
 * address they belong. Without views (Clang has none), the description at a function's first
 * instruction may belong to a later statement. From
 *
 *	static inline int f(int n) { n |= 1; return g(n); }
 *
 * and a call f(x) Clang leaves "n is rdi | 1" at the first instruction. Nothing distinguishes it
 * from the "n is rdi | 1" of a call f(x | 1).
 *
 *  - At a body's entry the calling convention is the better source. If other files can call the
 *    function, the convention is certain and is used. If they cannot, Clang may have changed it:
 *    the description is right if it agrees with the convention, and otherwise nothing is known.
 *  - A function may follow another convention (ms_abi). Clang records it; for GCC a parameter shows
 *    it that is described where the platform's convention does not put it (convention.c).
 *  - Even then Clang's callers do not pass arguments that the function does not use (flow.c).
 *  - An inlined copy has no convention. A parameter that the language does not let the function
 *    change (const, a reference, C++'s this) still has its first value. The value of any other
 *    parameter is shown as perhaps modified, and not used as the argument.
 *
 * With or without views, a stack slot that is described for the whole function is not written yet
 * at its entry; the convention has the value (abi.c).
 */
#include "sites/function.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "sites/batch.h"
#include "sites/args_check.h"
#include "sites/convention.h"
#include "sites/go.h"
#include "sites/analyse.h"
#include "sites/provider.h"
#include "sites/quirks/icf_args.h"
#include "sites/quirks/quirks.h"
#include "sites/symbol_names.h"

/* ---- parameters and types ---- */

/* Names and types of one abstract instance's parameters. */
struct signature {
	dw_off function;
	struct cairn_param *params;
};

static int type_of(struct dw_types *types, const struct dw_die *die, uint32_t *ret,
		   struct cairn_err *err)
{
	int rc = dwarf_type_of(types, die, ret, err);
	/* A damaged type is named as such in the graph; the site is right all the same. */
	return rc == -EBADMSG ? 0 : rc;
}

static int read_result_type(const struct site_env *env, struct dw_types *types, dw_off off,
			    uint32_t *ret, struct cairn_err *err)
{
	struct dw_die die;
	int rc = dw_die_at(env->dw, off, &die, err);
	*ret = 0;
	if (rc == 1)
		rc = type_of(types, &die, ret, err);
	return rc == -EBADMSG ? 0 : rc;
}

static int read_signature(const struct site_env *env, struct dw_types *types,
			  const struct formals *f, struct arena *arena, struct signature *ret,
			  struct cairn_err *err)
{
	if (ret->function == f->function)
		return 0;
	ret->params = arena_array(arena, f->n, sizeof(*ret->params));
	if (!ret->params)
		return err_nomem(err, "the parameters of a function");
	ret->function = f->function;
	const struct dw_unit *unit = dwarf_unit_of(env->dw, f->function);
	for (uint32_t i = 0; i < f->n; i++) {
		struct dw_die die;
		int rc = dw_die_near(unit, f->die[i], &die, err);
		if (rc == 1) {
			ret->params[i].name = dw_str_deep(&die, DW_AT_name);
			rc = type_of(types, &die, &ret->params[i].type, err);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

/* ---- calling convention ---- */

/*
 * True if the function is called by the platform's convention. C and C++ functions are; in other
 * languages only functions that pass words.
 */
static bool has_convention(const struct dw_unit *unit, const struct cairn_types *types,
			   const struct cairn_function *f)
{
	if (dw_unit_is_c(unit) || dw_unit_is_cxx(unit) ||
	    dw_unit_language(unit) == DW_LANG_Mips_Assembler)
		return true;
	if (dw_unit_language(unit) == DW_LANG_Go)
		return false;
	for (uint32_t i = 0; i < f->n_params; i++)
		if (!convention_is_word(types, f->params[i].type))
			return false;
	return convention_is_word(types, f->return_type);
}

/*
 * GCC lists two more parameters for a constructor or destructor of a class with virtual bases. No
 * instance gets the first. The instance that makes a base class within an object gets the second,
 * and only this instance has a DIE for it.
 */
static bool is_passed(const struct cairn_param *p, const struct cairn_location *said)
{
	if (!p->name || strcmp(p->name, "__vtt_parm") != 0)
		return !p->name || strcmp(p->name, "__in_chrg") != 0;
	return said->why != CAIRN_UNAVAIL_NO_DESCRIPTION;
}

static int read_passings(struct dw_types *reader, const struct built_site *b,
			 const struct cairn_function *f, struct abi_param *result,
			 struct abi_param *params, struct cairn_err *err)
{
	int rc = convention_passing(reader, b->die.unit, f->return_type, result, err);
	for (uint32_t i = 0; i < f->n_params && rc >= 0; i++) {
		rc = convention_passing(reader, b->die.unit, f->params[i].type, &params[i], err);
		if (rc >= 0 && !is_passed(&f->params[i], &b->args[i].loc))
			params[i].how = ABI_NOT_PASSED;
	}
	return rc;
}

/* True if the function uses all values that the convention passes. */
static bool is_used(const struct site_env *env, const struct built_site *b,
		    const struct cairn_location *abi)
{
	enum { RET_ADDR_BYTES = 8 };
	for (uint32_t i = 0; i < abi->n_pieces; i++) {
		const struct cairn_piece *p = &abi->pieces[i];
		if (p->kind == CAIRN_PIECE_MEMORY && p->n_steps > 1) {
			int64_t off = p->steps[1].imm - RET_ADDR_BYTES;
			if (!loc_stack_argument_is_used(env->code, env->cfi, &b->die, off))
				return false;
		} else if (p->n_steps && p->steps[0].reg < 16 &&
			   !(b->used & 1u << p->steps[0].reg)) {
			return false;
		}
	}
	return true;
}

/*
 * A function that Clang did not optimise, whose callers pass all arguments: in DWARF 5 Clang lists
 * the calls of every other function.
 */
static bool is_untouched(const struct dw_die *body)
{
	bool is_own = dw_unit_is_c(body->unit) || dw_unit_is_cxx(body->unit);
	return is_own && dw_unit_is_clang(body->unit) && dw_unit_version(body->unit) >= 5 &&
	       !dw_flag(body, DW_AT_call_all_calls) && !dw_flag(body, DW_AT_GNU_all_call_sites);
}

/* Corrects the description of one parameter at the entry by the convention. */
static void reconcile(const struct site_env *env, struct cairn_location *said,
		      const struct cairn_location *abi, const struct built_site *b, bool global)
{
	bool known = abi->why == CAIRN_AVAILABLE || abi->why == CAIRN_UNAVAIL_VECTOR_REGISTER;
	bool untouched = is_untouched(&b->die);
	if (said->why == CAIRN_UNAVAIL_NOT_STORED_YET && known &&
	    (global || untouched || !b->no_views))
		*said = *abi;
	if (!b->no_views)
		return;
	if (known && (global || untouched))
		*said = *abi;
	if (env->assume_unmodified)
		return;
	if (!known || !loc_equal(said, abi))
		quirk_reject(said, CAIRN_QUIRK_NO_VIEWS);
	else if (!untouched && !is_used(env, b, abi))
		quirk_reject(said, CAIRN_QUIRK_UNUSED_NOT_PASSED);
}

/* True if a parameter is described where the platform's convention does not put it. */
static bool is_contradicted(const struct built_site *b, const struct cairn_location *abi)
{
	for (uint32_t i = 0; i < b->site.n_args && dw_unit_is_gcc(b->die.unit); i++)
		if (convention_is_contradicted(&b->args[i].loc, &abi[i]))
			return true;
	return false;
}

/*
 * For ms_abi GCC describes unoptimised parameters in the 32 bytes that the caller leaves for them
 * above the return address. The function itself stores them there.
 */
static bool is_in_home_space(const struct cairn_location *said)
{
	enum { RSP = 7, FIRST = 8, END = 40 };
	const struct cairn_piece *p = said->pieces;
	if (said->why != CAIRN_AVAILABLE || said->n_pieces != 1 || p->n_steps < 2)
		return false;
	const struct cairn_loc_step *s = p->steps;
	return s[0].op == CAIRN_LOC_REG && s[0].reg == RSP && s[1].op == CAIRN_LOC_ADD &&
	       s[1].operand == CAIRN_LOC_IMM && s[1].imm >= FIRST && s[1].imm < END;
}

static void distrust_convention(const struct site_env *env, struct built_site *b)
{
	for (uint32_t i = 0; i < b->site.n_args; i++)
		if (!args_check_is_proven(b, i) && is_in_home_space(&b->args[i].loc))
			b->args[i].loc.why = CAIRN_UNAVAIL_NOT_STORED_YET;
	args_check_clone(env, b, false);
}

static int apply_convention(const struct site_env *env, struct dw_types *reader,
			    const struct cairn_function *f, struct built_site *b,
			    struct arena *arena, struct cairn_err *err)
{
	const struct cairn_types *types = dw_types_graph(reader);
	const struct dw_unit *unit = b->die.unit;
	bool folded =
		!b->site.n_chain && env->icf_groups && symbol_name_has(env->icf_groups, b->site.at);
	b->site.count_caveats |= folded ? CAIRN_COUNT_FOLDED : 0;
	if (b->site.n_chain || !f->n_params)
		return 0;
	if (dw_unit_go(unit))
		return go_believe(env, reader, b, arena, err);
	bool is_clone = b->site.kind == CAIRN_SITE_PART || site_is_clone(env, &b->site);
	if (is_clone || !has_convention(unit, types, f) || convention_is_foreign(&b->die)) {
		args_check_clone(env, b, is_clone);
		return 0;
	}
	struct cairn_location *abi = arena_array(arena, f->n_params, sizeof(*abi));
	struct abi_param *params = arena_array(arena, f->n_params, sizeof(*params)), result;
	if (!abi || !params)
		return err_nomem(err, "locations");
	int rc = read_passings(reader, b, f, &result, params, err);
	if (rc < 0)
		return rc;
	if (abi_locations(types, &result, params, f->n_params, arena, abi) < 0)
		return err_nomem(err, "locations");
	if (is_contradicted(b, abi)) {
		distrust_convention(env, b);
		return 0;
	}
	bool global = convention_is_certain(env->code, b->site.at);
	for (uint32_t i = 0; i < b->site.n_args; i++) {
		if (!args_check_is_proven(b, i))
			reconcile(env, &b->args[i].loc, &abi[i], b, global);
		/*
		 * For the code that identical code folding kept, only the convention's description
		 * is as good as the function's own.
		 */
		if (folded && !loc_equal(&b->args[i].loc, &abi[i]))
			quirk_reject(&b->args[i].loc, CAIRN_QUIRK_ICF_ARGS);
	}
	return 0;
}

/* ---- one function ---- */

/*
 * If calls begin at one address, the views of their entries show which is the first: GCC's DIEs are
 * not in that order. Without views they are in the order of their DIEs, which is that of the source
 * with Clang.
 */
static int by_moment(const void *a, const void *b)
{
	const struct built_site *x = *(struct built_site *const *)a,
				*y = *(struct built_site *const *)b;
	if (x->site.at.v != y->site.at.v)
		return x->site.at.v < y->site.at.v ? -1 : 1;
	/* One without a view, as of a copy in that copy, is not before one that has it. */
	if (x->has_view != y->has_view)
		return x->has_view ? -1 : 1;
	if (x->view != y->view)
		return x->view < y->view ? -1 : 1;
	return x->site.die < y->site.die ? -1 : x->site.die > y->site.die;
}

static void put_in_order(struct built_site **built, uint32_t n, struct cairn_site *ret)
{
	bool in_order = true;
	for (uint32_t i = 1; i < n && in_order; i++)
		in_order = by_moment(&built[i - 1], &built[i]) <= 0;
	if (!in_order)
		qsort(built, n, sizeof(*built), by_moment);
	for (uint32_t i = 0; i < n; i++)
		ret[i] = built[i]->site;
}

/* The function's own parameters: those of the first instance that has the most. */
static int choose_signature(const struct site_env *env, struct dw_types *types,
			    const struct built_site *b, size_t n, struct arena *arena,
			    struct cairn_function *f, struct cairn_err *err)
{
	const struct formals *best = NULL;
	for (size_t i = 0; i < n; i++)
		if (b[i].site.n_shared && (!best || b[i].formals.n > best->n))
			best = &b[i].formals;
	if (!best)
		return 0;
	struct signature s = {0};
	int rc = read_signature(env, types, best, arena, &s, err);
	if (rc < 0)
		return rc;
	f->params = s.params;
	f->n_params = best->n;
	f->variadic = best->variadic;
	rc = read_result_type(env, types, best->result ? best->result : best->function,
			      &f->return_type, err);
	if (rc >= 0 && best->n_results > 1)
		rc = go_results(env, types, best->function, &f->return_type, err);
	return rc;
}

/* Give the site as many args as the function has parameters, with names and types. */
static int finish_args(const struct site_env *env, struct dw_types *types,
		       const struct cairn_function *f, struct signature *s, struct arena *arena,
		       struct built_site *b, struct cairn_err *err)
{
	int rc = read_signature(env, types, &b->formals, arena, s, err);
	if (rc < 0)
		return rc;
	if (b->site.n_args < f->n_params) {
		struct cairn_arg *more = arena_array(arena, f->n_params, sizeof(*more));
		if (!more)
			return err_nomem(err, "the arguments of a site");
		memcpy(more, b->args, b->site.n_args * sizeof(*more));
		for (uint32_t i = b->site.n_args; i < f->n_params; i++)
			more[i].loc.why = CAIRN_UNAVAIL_NO_DESCRIPTION;
		b->site.args = b->args = more;
		b->site.n_args = f->n_params;
	}
	for (uint32_t i = 0; i < b->site.n_args; i++) {
		const struct cairn_param *p = i < b->formals.n ? &s->params[i] : &f->params[i];
		b->args[i].name = p->name;
		b->args[i].type = p->type;
	}
	return args_check_args(env, b, arena) < 0 ? err_nomem(err, "a location") : 0;
}

static int finish_function(const struct site_env *env, struct dw_types *types,
			   const struct group *g, const struct group_sites *gs, struct arena *arena,
			   struct cairn_function *ret, struct cairn_err *err)
{
	size_t total = gs->n_first + gs->n_extra;
	*ret = (struct cairn_function){
		.name = g->name,
		.linkage_name = g->linkage_name,
		.decl_file = g->file,
		.decl_line = g->line,
		.n_without_code = g->n_without_code,
	};
	int rc = choose_signature(env, types, gs->first, gs->n_first, arena, ret, err);
	if (rc < 0)
		return rc;
	if (!env->assume_unmodified && batch_check_removed_params(gs) < 0)
		return err_nomem(err, "the copies of a function");
	struct cairn_site *sites = arena_array(arena, total, sizeof(*sites));
	struct built_site **built = arena_array(arena, total, sizeof(*built));
	if (!sites || !built)
		return err_nomem(err, "the sites of a function");
	struct signature s = {0};
	uint32_t n = 0;
	for (size_t i = 0; i < total; i++) {
		struct built_site *b = group_site(gs, i);
		if (!b->site.n_shared) {
			ret->n_without_code += b->die.tag == DW_TAG_inlined_subroutine;
			continue;
		}
		rc = finish_args(env, types, ret, &s, arena, b, err);
		if (rc >= 0)
			rc = apply_convention(env, types, ret, b, arena, err);
		if (rc < 0)
			return rc;
		built[n++] = b;
	}
	put_in_order(built, n, sites);
	sites_count_shared(sites, n);
	if (icf_args_settle(sites, n, arena) < 0)
		return err_nomem(err, "the arguments of a site");
	ret->sites = sites;
	ret->n_sites = n;
	return 0;
}

static int finish_batch(const struct batch *b, const struct site_env *env, struct dw_types *types,
			struct arena *arena, struct cairn_function *ret, struct cairn_err *err)
{
	struct group_sites gs = {0};
	for (size_t g = 0; g < b->n; g++) {
		batch_next_group(b, g, &gs);
		int rc = finish_function(env, types, &b->groups[g], &gs, arena, &ret[g], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int functions_build(const struct site_env *env, unsigned int threads, const struct group *groups,
		    size_t n, struct dw_types *types, struct arena *arena,
		    struct cairn_function *ret, struct cairn_err *err)
{
	struct batch b;
	int rc = batch_build(&b, env, threads, groups, n, arena, err);
	if (rc >= 0)
		rc = analyse_counts(env, threads, &b, err);
	if (rc >= 0)
		rc = finish_batch(&b, env, types, arena, ret, err);
	batch_fini(&b);
	return rc;
}
