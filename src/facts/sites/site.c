/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One site: its address, its container and its arguments
 *
 * The address. Three sources describe where an inlined copy begins: DW_AT_entry_pc, the ranges, and
 * the line table. The rule, explained with examples in docs/address.md:
 *
 *	1. DW_AT_entry_pc, if it lies in the code of the containing function. GCC puts it where the
 *	   inlined body's entry marker ended up, together with the view that the arguments belong
 *	   to.
 *	2. The start of the first range, in the input's order (DWARF 5, section 2.17: the base
 *	   address of a scope without entry_pc). Not the lowest address: a cold part may lie lower.
 *
 * The arguments. The parameters are those of the abstract instance. A concrete formal is matched by
 * DW_AT_abstract_origin, never by position: compilers leave out the DIE of a removed parameter, and
 * all formals after it would shift.
 */
#include "sites/site.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/vec.h"
#include "dwarf/constants.h"
#include "dwarf/params.h"
#include "insn/kernel_code.h"
#include "sites/args_check.h"
#include "sites/own_symbol.h"
#include "sites/quirks/quirks.h"
#include "sites/quirks/split_part.h"
#include "sites/event_count.h"
#include "sites/symbol_names.h"

enum {
	/* Depth of inlining; GCC's and Clang's own limits keep real chains below 100. */
	CHAIN_MAX = 512,
};

void site_worker_init(struct site_worker *w, struct arena *arena)
{
	*w = (struct site_worker){.arena = arena, .container = DW_FUNC_NONE};
	abstracts_init(&w->abstracts, arena);
}

void site_worker_fini(struct site_worker *w)
{
	flow_free(w->flow);
	cfg_free(w->cfg);
	w->flow = NULL;
	w->cfg = NULL;
	boundary_fini(&w->boundary);
	abstracts_fini(&w->abstracts);
	VEC_FREE(&w->ranges);
	VEC_FREE(&w->own);
}

/* ---- address ---- */

/* Returns their number, -EBADMSG, -ENOMEM. */
static int ranges_of(const struct dw_die *die, struct dw_range_list *to, struct cairn_err *err)
{
	to->n = 0;
	int rc = dw_ranges_append(die, to, err);
	return rc == -ENOMEM ? err_nomem(err, "ranges of code") : rc;
}

static bool holds(const struct dw_range_list *code, struct cairn_vaddr at)
{
	for (size_t i = 0; i < code->n; i++)
		if (code->p[i].lo.v <= at.v && at.v < code->p[i].hi.v)
			return true;
	return false;
}

/* DW_AT_entry_pc: an address, or in DWARF 5 also an offset from the start of the scope. */
static bool entry_pc(const struct dw_die *die, struct cairn_vaddr base, struct cairn_vaddr *ret)
{
	struct dw_value v;
	if (dw_attr_at(die, DW_SLOT_ENTRY_PC, DW_AT_entry_pc, &v, NULL) != 1)
		return false;
	if (v.cls == DW_CLASS_ADDRESS)
		*ret = v.addr;
	else if (v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA)
		ret->v = base.v + v.u;
	else
		return false;
	return true;
}

struct address {
	struct cairn_vaddr at;
	uint64_t view;
	bool has_view; /* DW_AT_GNU_entry_view is there */
	enum cairn_address_rule rule;
};

/*
 * @container has code around the DIE, or is the DIE itself; @own its own. False for one without
 * code.
 */
static bool address_of(const struct dw_die *die, const struct dw_range_list *container,
		       const struct dw_range_list *own, struct address *ret)
{
	struct cairn_vaddr pc, first = own->n ? own->p[0].lo : (struct cairn_vaddr){0};
	*ret = (struct address){.at = first,
				.rule = own->n > 1 ? CAIRN_AT_FIRST_RANGE : CAIRN_AT_LOW_PC};
	if (!entry_pc(die, first, &pc) || !holds(container, pc))
		return own->n > 0;
	/* An entry at the start of the only range is that: say the simpler thing. */
	if (own->n != 1 || pc.v != first.v)
		ret->rule = CAIRN_AT_ENTRY_PC;
	ret->at = pc;
	ret->view = dw_udata_at(die, DW_SLOT_ENTRY_VIEW, DW_AT_GNU_entry_view, UINT64_MAX);
	ret->has_view = ret->view != UINT64_MAX;
	if (!ret->has_view)
		ret->view = 0;
	return true;
}

/* The code of a body, and its address. */
static int enter_body(const struct dw_die *body, struct dw_range_list *code, struct address *ret,
		      struct cairn_err *err)
{
	int rc = ranges_of(body, code, err);
	return rc < 0 ? rc : address_of(body, code, code, ret);
}

int site_entry_of(const struct dw_die *body, struct cairn_vaddr *ret)
{
	struct dw_range_list code = {0};
	struct address a;
	int rc = enter_body(body, &code, &a, NULL);
	if (rc == 1)
		*ret = a.at;
	VEC_FREE(&code);
	return rc;
}

/* ---- where it stands ---- */

/*
 * The out-of-line function around an entry of the index; the entry itself when it is one;
 * DW_FUNC_NONE.
 */
static uint32_t container_of(const struct dw_func_index *index, uint32_t entry)
{
	uint32_t i = entry;
	while (i != DW_FUNC_NONE && index->p[i].flags & DW_FUNC_INLINED)
		i = index->p[i].parent;
	return i;
}

/* Make @container the worker's current one. */
static int enter_container(const struct site_env *env, struct site_worker *w, uint32_t container,
			   struct cairn_err *err)
{
	struct address a = {0};
	if (w->container == container)
		return 0;
	w->container = DW_FUNC_NONE;
	int rc = dw_func_die(env->dw, &env->index->p[container], &w->function, err);
	if (rc >= 0)
		rc = enter_body(&w->function, &w->ranges, &a, err);
	if (rc < 0)
		return rc;
	flow_free(w->flow);
	w->flow = NULL;
	w->flow_made = w->cfg_made = false; /* its memory is used again */
	w->taken.is_known = w->taken.is_uncertain = false;
	w->taken.n = 0;
	w->taken.n_visits = 0;
	/* ranges of two functions may overlap; each is decoded by itself */
	w->boundary.code = NULL;
	w->container = container;
	w->container_entry = a.at;
	w->container_has_code = rc > 0;
	w->container_name = env->bare ? NULL : dw_str_deep(&w->function, DW_AT_name);
	return 0;
}

/* Without an entry from the compiler the copy begins where other code leads to it first. */
static int find_cfg_entries(const struct site_env *env, struct site_worker *w, struct built_site *b,
			    struct address *a)
{
	struct cairn_vaddr entries[CFG_ENTRIES_MAX];
	if (!w->cfg_made) {
		if (cfg_new(env->code, &w->function, w->container_entry, &w->cfg) < 0)
			return -ENOMEM;
		w->cfg_made = true;
	}
	unsigned int n = w->cfg ? event_count_cfg_entries(w->cfg, b, entries) : 0;
	if (!n)
		return 0;
	struct cairn_vaddr *more = arena_array(w->arena, n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	memcpy(more, entries + 1, (n - 1) * sizeof(*more));
	b->cfg_entries = more;
	b->n_cfg_entries = n - 1;
	if (entries[0].v != a->at.v)
		a->rule = CAIRN_AT_CFG_ENTRY;
	a->at = entries[0];
	return 0;
}

static int read_call(const struct site_env *env, uint32_t entry, struct cairn_inlined_call *ret,
		     struct cairn_err *err)
{
	struct dw_die die;
	int rc = dw_func_die(env->dw, &env->index->p[entry], &die, err);
	if (rc < 0)
		return rc;
	ret->function = dw_str_deep(&die, DW_AT_name);
	ret->call_file = dw_unit_file(die.unit, dw_udata(&die, DW_AT_call_file, 0));
	ret->call_line = (uint32_t)dw_udata(&die, DW_AT_call_line, 0);
	ret->call_column = (uint32_t)dw_udata(&die, DW_AT_call_column, 0);
	return 0;
}

/* The call of the copy that an entry of the index is. */
static int call_of(const struct site_env *env, struct site_worker *w, uint32_t entry,
		   struct cairn_inlined_call *ret, struct cairn_err *err)
{
	struct known_call *known = &w->calls[entry % KNOWN_CALLS];
	if (known->entry != entry + 1) {
		known->entry = 0;
		int rc = read_call(env, entry, &known->call, err);
		if (rc < 0)
			return rc;
		known->entry = entry + 1;
	}
	*ret = known->call;
	return 0;
}

static int chain_of(const struct site_env *env, struct site_worker *w, uint32_t entry,
		    struct cairn_site *site, struct cairn_err *err)
{
	uint32_t n = 0;
	for (uint32_t i = entry;
	     i != DW_FUNC_NONE && env->index->p[i].flags & DW_FUNC_INLINED && n < CHAIN_MAX;
	     i = env->index->p[i].parent)
		n++;
	struct cairn_inlined_call *chain = arena_array(w->arena, n, sizeof(*chain));
	if (!chain)
		return err_nomem(err, "a chain of inlined calls");
	site->n_chain = n;
	site->chain = chain;
	for (uint32_t i = entry, k = 0; k < n; i = env->index->p[i].parent, k++) {
		int rc = call_of(env, w, i, &chain[k], err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void symbol_of(const struct site_env *env, struct cairn_site *site)
{
	struct cairn_vaddr start;
	if (cairn_binary_symbol_of(env->bin, site->at, &site->symbol, &start))
		site->symbol_off = site->at.v - start.v;
	/* The rest of a function that was split for partial inlining, named by GCC. */
	if (site->kind == CAIRN_SITE_OUT_OF_LINE && site->symbol && !site->symbol_off &&
	    symbol_has(site->symbol, ".part."))
		site->kind = CAIRN_SITE_PART;
}

/* ---- arguments ---- */

uint32_t site_search_formal(const struct formals *f, const struct dw_die *formal, dw_off origin)
{
	for (int links = 0; origin && links < DW_ORIGIN_MAX; links++) {
		for (uint32_t i = 0; i < f->n; i++)
			if (f->die[i] == origin)
				return i;
		struct dw_die die;
		if (dw_die_near(formal->unit, origin, &die, NULL) != 1)
			return f->n;
		origin = dw_ref(&die, DW_AT_abstract_origin);
	}
	for (uint32_t i = 0; i < f->n; i++)
		if (f->die[i] == formal->off)
			return i;
	return f->n;
}

/* The flow of the function is costly, and most sites do not need it. */
static struct flow *need_flow(const struct site_env *env, struct site_worker *w,
			      struct loc_context *ctx)
{
	if (!w->flow_made) {
		w->flow = flow_new(env->code, &ctx->function, ctx->entry);
		w->flow_made = true;
	}
	ctx->flow = w->flow;
	return ctx->flow;
}

static inline int locate(const struct site_env *env, struct site_worker *w, struct loc_context *ctx,
			 const struct dw_die *formal, struct cairn_location *ret)
{
	int rc = loc_of_argument(ctx, formal, w->arena, ret);
	bool flow_helps = ret->why == CAIRN_UNAVAIL_ENTRY_VALUE ||
			  (ctx->is_now && ret->why == CAIRN_UNAVAIL_NOT_STORED_YET);
	if (rc >= 0 && flow_helps && !ctx->flow && need_flow(env, w, ctx))
		rc = loc_of_argument(ctx, formal, w->arena, ret);
	if (rc >= 0 &&
	    (ret->why == CAIRN_UNAVAIL_ENTRY_VALUE || ret->why == CAIRN_UNAVAIL_CALLER) &&
	    ctx->is_now) {
		ctx->has_caller = true;
		rc = loc_of_argument(ctx, formal, w->arena, ret);
		ctx->has_caller = false;
	}
	return rc;
}

int site_locate(const struct site_env *env, struct site_worker *w, struct loc_context *ctx,
		const struct dw_die *formal, struct cairn_location *ret)
{
	return locate(env, w, ctx, formal, ret);
}

/*
 * True if a parameter that is described only after the prologue was proven to have a location at
 * the entry. Optimised code has no prologue of this kind; Clang's lists of calls show that code is
 * optimised.
 */
static int prove_arrival(const struct loc_context *ctx, const struct dw_die *formal,
			 struct arena *arena, struct cairn_location *ret)
{
	bool is_open = ret->why == CAIRN_UNAVAIL_NOT_STORED_YET ||
		       (ret->why == CAIRN_UNAVAIL_NOT_LIVE &&
			dw_unit_language(formal->unit) == DW_LANG_Rust);
	if (!is_open || ctx->inlined || ctx->is_now || ctx->must_begin ||
	    !dw_unit_is_clang(formal->unit) || dw_flag(&ctx->function, DW_AT_call_all_calls) ||
	    dw_flag(&ctx->function, DW_AT_GNU_all_call_sites))
		return 0;
	return loc_from_prologue(ctx, formal, arena, ret);
}

static int args_of(const struct site_env *env, struct site_worker *w, struct loc_context *ctx,
		   struct built_site *b, struct cairn_err *err)
{
	b->args = arena_array(w->arena, b->formals.n,
			      sizeof(*b->args) + sizeof(*b->exprs) + sizeof(*b->bound) +
				      sizeof(*b->proven));
	if (!b->args)
		return err_nomem(err, "the arguments of a site");
	b->exprs = (struct expression *)(b->args + b->formals.n);
	b->bound = (uint8_t *)(b->exprs + b->formals.n);
	b->proven = (bool *)(b->bound + b->formals.n);
	b->site.args = b->args;
	b->site.n_args = b->formals.n;
	for (uint32_t i = 0; i < b->formals.n; i++)
		b->args[i].loc.why = CAIRN_UNAVAIL_NO_DESCRIPTION;
	struct dw_die child;
	uint32_t next = 0;
	int rc = dw_param_child(&b->die, &child, err);
	/*
	 * To the end: GCC may describe a parameter twice, the second time after the variables, and
	 * then the second one counts.
	 */
	for (; rc == 1; rc = dw_param_next(&child, &child, err)) {
		if (child.tag != DW_TAG_formal_parameter)
			continue;
		uint32_t i = site_match_formal(&b->formals, &child, next);
		if (i == b->formals.n)
			continue;
		next = i + 1;
		int proven = locate(env, w, ctx, &child, &b->args[i].loc);
		if (proven >= 0)
			proven = prove_arrival(ctx, &child, w->arena, &b->args[i].loc);
		if (proven < 0)
			return err_nomem(err, "a location");
		b->proven[i] = proven > 0;
		b->bound[i] = (uint8_t)ctx->bound;
		b->exprs[i] = ctx->expr;
	}
	return rc;
}

/* GCC marks entries where it optimises, but not at link time. */
static bool marks_entries(const struct dw_unit *unit)
{
	return dw_unit_is_gcc(unit) && dw_unit_is_optimised(unit) && !dw_unit_is_lto(unit);
}

/*
 * False for GCC's code without its markers. At link time (-flto) code is read back from the object
 * files without them, and positions that a view would separate are one. A copy whose entry marker
 * was lost has no view, either. Without -fvar-tracking-assignments the entries have views, but
 * nothing binds a variable to one.
 */
static bool has_markers(const struct loc_context *ctx, const struct dw_unit *unit)
{
	if (!dw_unit_is_gcc(unit) || dw_unit_is_lto(unit) || !dw_unit_follows_assignments(unit))
		return false;
	return !ctx->inlined || ctx->has_entry_view;
}

static void note_trust(const struct site_env *env, struct site_worker *w, struct loc_context *ctx,
		       struct built_site *b)
{
	b->no_views = !has_markers(ctx, b->die.unit) || ctx->plain_list;
	if (ctx->inlined || !b->no_views || !need_flow(env, w, ctx))
		return;
	for (unsigned int reg = 0; reg < 16; reg++)
		if (flow_used(ctx->flow, ctx->at, reg))
			b->used |= (uint16_t)(1u << reg);
}

bool site_is_clone(const struct site_env *env, const struct cairn_site *s)
{
	const char *symbol = s->symbol;
	/* If code was folded, the shown symbol may be another function's. */
	if (s->kind == CAIRN_SITE_OUT_OF_LINE && env->icf_groups &&
	    symbol_name_has(env->icf_groups, s->at))
		symbol = own_symbol(env->dw, s->at, s->die);
	return !symbol || symbol_has(symbol, ".isra") || symbol_has(symbol, ".constprop") ||
	       symbol_has(symbol, ".part");
}

bool site_is_plain_body(const struct site_env *env, const struct cairn_site *s)
{
	return env->bare && s->kind == CAIRN_SITE_OUT_OF_LINE && !site_is_clone(env, s);
}

/*
 * The facts that a reader wants about a site; for a bare site only those that other files decide
 * by.
 */
static int describe(const struct site_env *env, struct site_worker *w, uint32_t entry,
		    struct cairn_site *s, struct cairn_err *err)
{
	if (env->bare) {
		if (s->kind == CAIRN_SITE_OUT_OF_LINE)
			symbol_of(env, s);
		s->n_chain = s->kind == CAIRN_SITE_INLINED;
		return 0;
	}
	s->has_off = cairn_binary_foff(env->bin, s->at, &s->off);
	s->container = w->container_name;
	s->container_off = (int64_t)(s->at.v - w->container_entry.v);
	s->body = env->index->p[w->container].die;
	symbol_of(env, s);
	return chain_of(env, w, entry, s, err);
}

/* Keeps the ranges of the current site, for the checks of its code. */
static int keep_ranges(struct site_worker *w, struct built_site *b)
{
	struct dw_range *ranges = arena_array(w->arena, w->own.n, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	if (w->own.n)
		memcpy(ranges, w->own.p, w->own.n * sizeof(*ranges));
	b->ranges = ranges;
	b->n_ranges = (uint32_t)w->own.n;
	return 0;
}

enum cairn_hazard site_hazard(const struct site_env *env, struct site_worker *w,
			      struct cairn_vaddr at)
{
	enum cairn_hazard hazard =
		boundary_hazard(&w->boundary, env->code, &w->function, at, env->kernel);
	return hazard || !env->kernel ? hazard : kernel_code_hazard(env->bin, at);
}

struct padding_search {
	const struct site_env *env;
	struct site_worker *w;
};

static struct cairn_vaddr find_padding(void *of, struct cairn_vaddr at)
{
	const struct padding_search *s = of;
	boundary_hazard(&s->w->boundary, s->env->code, &s->w->function, at, true);
	return boundary_padding(&s->w->boundary, at);
}

int site_build(const struct site_env *env, struct site_worker *w,
	       const struct site_request *request, struct built_site *ret, struct cairn_err *err)
{
	uint32_t entry = request->entry;
	const struct dw_func *f = &env->index->p[entry];
	bool inlined = f->flags & DW_FUNC_INLINED;
	uint32_t container = container_of(env->index, entry);
	const struct abstract *abstract;
	struct address a;
	*ret = (struct built_site){.container = container};
	int rc = dw_func_die(env->dw, f, &ret->die, err);
	if (rc < 0)
		return rc;
	if (container == DW_FUNC_NONE)
		return err_set(err, -EBADMSG,
			       "%s: .debug_info: DIE 0x%" PRIx64
			       ": an inlined copy outside any function",
			       cairn_binary_debug_path(env->bin), f->die);
	rc = enter_container(env, w, container, err);
	if (rc < 0)
		return rc;
	/*
	 * A function that the linker dropped (a second copy of a C++ template) starts at address 0,
	 * which shows it. The copies inlined into it have small addresses, which would not.
	 */
	if (!w->container_has_code)
		return 0;
	rc = ranges_of(&ret->die, &w->own, err);
	if (rc < 0 || !address_of(&ret->die, &w->ranges, &w->own, &a))
		return rc < 0 ? rc : 0;
	boundary_prefetch(&w->boundary, a.at);
	if (keep_ranges(w, ret) < 0)
		return err_nomem(err, "ranges of code");

	if (request->is_cfg_entry)
		a = (struct address){.at = request->at, .rule = CAIRN_AT_CFG_ENTRY};
	else if (inlined && !a.has_view && a.rule != CAIRN_AT_ENTRY_PC &&
		 find_cfg_entries(env, w, ret, &a) < 0)
		return err_nomem(err, "entries of a copy");
	if (request->has_row)
		a = (struct address){.at = request->at,
				     .view = request->view,
				     .has_view = true,
				     .rule = CAIRN_AT_ENTRY_ROW};

	ret->view = a.view;
	ret->has_view = a.has_view;
	ret->container_entry = w->container_entry;
	struct cairn_site *s = &ret->site;
	s->kind = inlined ? CAIRN_SITE_INLINED : CAIRN_SITE_OUT_OF_LINE;
	s->rule = a.rule;
	s->at = a.at;
	s->die = f->die;
	s->n_shared = 1;
	if (!env->bare)
		s->hazard = site_hazard(env, w, s->at);
	rc = describe(env, w, entry, s, err);
	if (rc < 0)
		return rc;
	if (site_is_plain_body(env, s))
		return 1;

	/* Copies of one function in one unit have one origin. */
	rc = abstract_of(&w->abstracts, env->dw, ret->die.unit,
			 inlined && f->origin ? f->origin : f->die, &abstract, err);
	if (rc >= 0 && inlined) {
		rc = split_part_is(env, entry, &ret->die, abstract, err);
		if (rc == 1)
			s->kind = CAIRN_SITE_PART;
	}
	if (rc < 0)
		return rc;
	ret->formals = abstract->formals;
	struct padding_search padding = {env, w};
	struct loc_context ctx;
	memset(&ctx, 0, offsetof(struct loc_context, row));
	ctx.dw = env->dw;
	ctx.cfi = env->cfi;
	ctx.code = env->code;
	ctx.function = w->function;
	ctx.entry = w->container_entry;
	ctx.at = a.at;
	ctx.view = a.view;
	ctx.has_entry_view = a.has_view;
	ctx.must_begin = request->has_row;
	ctx.view_from = request->view_from;
	ctx.inlined = inlined;
	/* A body begins where its range does: the nops before it are not its own. */
	ctx.padding = inlined ? boundary_least_padding(&w->boundary, env->code, a.at) : a.at;
	ctx.padding_of = &padding;
	ctx.flow = w->flow;
	ctx.taken = &w->taken;
	if (ctx.padding.v < a.at.v)
		ctx.find_padding = find_padding;
	rc = args_of(env, w, &ctx, ret, err);
	if (rc < 0)
		return rc;
	note_trust(env, w, &ctx, ret);
	ret->around = request->around;
	ret->lost_marker = inlined && !a.has_view && marks_entries(ret->die.unit);
	return 1;
}

/*
 * Clang's callers do not pass values that the callee does not use, though the description places
 * them in their registers. A value that has left its register was moved by code that needs it.
 */
static void reject_unused(const struct site_env *env, struct site_worker *w,
			  struct loc_context *ctx, struct built_site *b)
{
	if (ctx->inlined || !dw_unit_is_clang(b->die.unit) || env->assume_unmodified)
		return;
	for (uint32_t i = 0; i < b->formals.n; i++) {
		struct cairn_location *loc = &b->args[i].loc;
		const struct cairn_piece *p = loc->pieces;
		if (loc->why != CAIRN_AVAILABLE || !loc->n_pieces || !p->n_steps ||
		    p->steps[0].op != CAIRN_LOC_REG || p->steps[0].reg >= 16)
			continue;
		struct flow *flow = need_flow(env, w, ctx);
		if (flow_unchanged(flow, ctx->at, p->steps[0].reg) &&
		    !flow_used(flow, ctx->entry, p->steps[0].reg))
			quirk_reject(loc, CAIRN_QUIRK_UNUSED_NOT_PASSED);
	}
}

static bool is_plain(const struct cairn_piece *p)
{
	return p->kind == CAIRN_PIECE_VALUE && p->n_steps == 1 && p->steps[0].op == CAIRN_LOC_REG;
}

/*
 * A stopped thread's vector registers may be available; a probe has none. A value computed from one
 * is left as it is. No check is made whether Clang's callers passed one that the function does not
 * use.
 */
static void take_vectors(const struct site_env *env, const struct loc_context *ctx,
			 struct built_site *b)
{
	bool may_be_garbage =
		!ctx->inlined && dw_unit_is_clang(b->die.unit) && !env->assume_unmodified;
	for (uint32_t i = 0; i < b->formals.n; i++) {
		struct cairn_location *loc = &b->args[i].loc;
		bool is_plain_all = loc->why == CAIRN_UNAVAIL_VECTOR_REGISTER && loc->n_pieces;
		for (uint32_t k = 0; is_plain_all && k < loc->n_pieces; k++)
			is_plain_all = is_plain(&loc->pieces[k]);
		if (!is_plain_all)
			continue;
		loc->why = CAIRN_AVAILABLE;
		if (may_be_garbage)
			quirk_reject(loc, CAIRN_QUIRK_UNUSED_NOT_PASSED);
	}
}

int site_context_now(const struct site_env *env, struct site_worker *w, uint32_t entry,
		     struct cairn_vaddr at, struct cairn_vaddr next, struct loc_context *ret,
		     struct cairn_err *err)
{
	int rc = enter_container(env, w, container_of(env->index, entry), err);
	*ret = (struct loc_context){
		.dw = env->dw,
		.cfi = env->cfi,
		.code = env->code,
		.function = w->function,
		.entry = w->container_entry,
		.at = at,
		.next = next,
		.is_now = true,
		.view = UINT64_MAX,
		.inlined = env->index->p[entry].flags & DW_FUNC_INLINED,
		.padding = at,
		.flow = w->flow,
		.taken = &w->taken,
	};
	return rc;
}

bool site_is_in_loop(const struct site_env *env, struct site_worker *w, struct cairn_vaddr at)
{
	if (!w->cfg_made) {
		if (cfg_new(env->code, &w->function, w->container_entry, &w->cfg) < 0)
			return true;
		w->cfg_made = true;
	}
	uint32_t i = w->cfg ? cfg_at(w->cfg, at.v) : GRAPH_NONE;
	return i == GRAPH_NONE || cfg_may_come_back(w->cfg, i) != 0;
}

int site_build_now(const struct site_env *env, struct site_worker *w, uint32_t entry,
		   struct cairn_vaddr at, struct cairn_vaddr next, struct built_site *ret,
		   struct cairn_err *err)
{
	const struct dw_func *f = &env->index->p[entry];
	bool inlined = f->flags & DW_FUNC_INLINED;
	uint32_t container = container_of(env->index, entry);
	const struct abstract *abstract;
	*ret = (struct built_site){.container = container,
				   .site = {.at = at, .n_chain = inlined, .n_shared = 1}};
	int rc = dw_func_die(env->dw, f, &ret->die, err);
	if (rc >= 0)
		rc = abstract_of(&w->abstracts, env->dw, ret->die.unit,
				 inlined && f->origin ? f->origin : f->die, &abstract, err);
	if (rc < 0)
		return rc;
	ret->formals = abstract->formals;
	struct loc_context ctx;
	rc = site_context_now(env, w, entry, at, next, &ctx, err);
	if (rc < 0)
		return rc;
	rc = args_of(env, w, &ctx, ret, err);
	if (rc < 0)
		return rc;
	reject_unused(env, w, &ctx, ret);
	take_vectors(env, &ctx, ret);
	if (args_check_args(env, ret, w->arena) < 0)
		return err_nomem(err, "locations");
	args_check_now(env, ret);
	return 1;
}
