/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions, in two stages
 *
 *	parallel   every site by itself: address, chain, locations		site.c
 *	one by one parameters and their types, which extend the type graph;
 *	           what may be believed, which needs the types; order		here
 *
 * Sites are built in slots given by their position, so the outcome does not depend on the threads.
 *
 * What may be believed. GCC's locations come with views, which say to which moment at an address they belong.
 * Where views are missing (Clang has none), what is said for the first instruction of a function may belong
 * to a later statement. From
 *
 *	static inline int f(int n) { n |= 1; return g(n); }
 *
 * and a call f(x) Clang leaves "n is rdi | 1" at the first instruction, and nothing that tells it from the "n is
 * rdi | 1" of a call f(x | 1).
 *
 *  - At a body's entry the calling convention knows better. For a function that other files can call it is
 *    certain, and taken. For one that they cannot, Clang may have changed it: where description and
 *    convention agree it is right, else nothing is known.
 *  - Even then Clang's callers do not pass what the function does not use (flow.c).
 *  - In an inlined copy there is no convention. A parameter that the language does not let the function
 *    change (const, a reference, C++'s this) is what it was; of any other the value is shown as perhaps
 *    modified, and not taken for the argument.
 *
 * With views or without, a stack slot that holds for the whole function is not written yet at its entry; the
 * convention has it (abi.c).
 */
#include "loc/function.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "loc/judge.h"
#include "loc/merged.h"
#include "loc/removed.h"

/*
 * Sites are asked for function by function, and worked on container by container: what is found out about the
 * container's code then serves all of them. An entry of the index stands behind its container's and in front of
 * the next container's, so that is the order of entries.
 */
struct turn {
	uint32_t entry, request;
};

static int by_entry(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;
	if (x->entry != y->entry)
		return x->entry < y->entry ? -1 : 1;
	return x->request < y->request ? -1 : x->request > y->request;
}

static struct turn *make_turns(const struct site_request *requests, size_t n, struct cairn_err *err)
{
	struct turn *turns = n < UINT32_MAX ? calloc(n + 1, sizeof(*turns)) : NULL;
	if (!turns) {
		err_nomem(err, "sites");
		return NULL;
	}
	for (size_t i = 0; i < n; i++)
		turns[i] = (struct turn){.entry = requests[i].entry, .request = (uint32_t)i};
	qsort(turns, n, sizeof(*turns), by_entry);
	return turns;
}

/* Sites that a worker takes at once: neighbours share their container's flow and unit. */
enum { CHUNK = 256 };

struct job {
	const struct site_env *env;
	const struct site_request *requests;
	const struct turn *turns;
	size_t n;
	struct built_site *sites; /* n; site.n_shared is 0 where there turned out to be no code */
	struct arena *arenas;     /* per worker */
};

static int build_chunk(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = arg;
	struct site_worker w;
	site_worker_init(&w, &job->arenas[worker]);
	int rc = 0;
	size_t end = (item + 1) * CHUNK < job->n ? (item + 1) * CHUNK : job->n;
	for (size_t turn = item * CHUNK; turn < end && rc >= 0; turn++) {
		uint32_t i = job->turns[turn].request;
		rc = site_build(job->env, &w, &job->requests[i], &job->sites[i], err);
		if (rc == 0)
			job->sites[i].site.n_shared = 0;
	}
	site_worker_fini(&w);
	return rc < 0 ? rc : 0;
}

/* Build @n requested sites into @ret. */
static int build_sites(const struct site_env *env, unsigned int threads, const struct site_request *requests, size_t n,
		       struct built_site *ret, struct arena *arena, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct turn *turns = make_turns(requests, n, err);
	struct job job = {.env = env, .requests = requests, .turns = turns, .n = n, .sites = ret};
	if (!turns)
		return -ENOMEM;
	job.arenas = calloc(width, sizeof(*job.arenas));
	if (!job.arenas) {
		free(turns);
		return err_nomem(err, "worker memory");
	}
	int rc = pool_run((n + CHUNK - 1) / CHUNK, threads, build_chunk, &job, err);
	for (unsigned int i = 0; i < width; i++)
		arena_adopt(arena, &job.arenas[i]);
	free(job.arenas);
	free(turns);
	return rc;
}

/* ---- further entries ---- */

/* How far behind an address the nearest code of a copy begins; 0 when the address is in it. */
struct nearest {
	uint64_t at, distance;
};

static int note_distance(void *arg, struct dw_range r)
{
	struct nearest *n = arg;
	uint64_t d = r.lo.v > n->at ? r.lo.v - n->at : r.hi.v > n->at ? 0 : UINT64_MAX;
	if (d < n->distance)
		n->distance = d;
	return 0;
}

/*
 * A row that is not the first entry of any copy is a further entry of the innermost copy around it. An instruction
 * of the caller may have been moved to where the copy begins, as it can be with DW_AT_entry_pc; then it
 * belongs to the copy whose code begins nearest behind.
 */
struct owner_search {
	const struct site_env *env;
	const struct group *group;
	const struct built_site *sites; /* one for each of the group's entries */
	/* Entries, and rows, of the unit at hand: a function may have 50,000 of each in all units. */
	uint32_t unit;
	size_t first, end, first_row, end_row;
};

static uint32_t unit_of(const struct owner_search *s, size_t i)
{
	return i < s->group->entries.n ? s->env->index->p[s->group->entries.p[i]].unit : DW_FUNC_NONE;
}

/* Rows come unit by unit, and entries in order of DIE, so those of a unit are together. */
static void go_to_unit(struct owner_search *s, size_t row)
{
	const struct group *g = s->group;
	size_t lo = 0, hi = g->entries.n;
	s->unit = g->rows.p[row].unit;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (unit_of(s, mid) < s->unit)
			lo = mid + 1;
		else
			hi = mid;
	}
	s->first = s->end = lo;
	while (s->end < g->entries.n && unit_of(s, s->end) == s->unit)
		s->end++;
	s->first_row = s->end_row = row;
	while (s->end_row < g->rows.n && g->rows.p[s->end_row].unit == s->unit)
		s->end_row++;
}

static bool is_first_entry(const struct owner_search *s, const struct entry_row *row)
{
	for (size_t i = s->first; i < s->end; i++)
		if (s->sites[i].site.n_shared && s->sites[i].site.at.v == row->at.v && s->sites[i].view == row->view)
			return true;
	return false;
}

static uint32_t owner_of(const struct owner_search *s, const struct entry_row *row)
{
	/* Code farther away than a few instructions is another copy's. */
	enum { FAR = 64 };
	uint32_t owner = DW_FUNC_NONE;
	uint64_t best = FAR;
	for (size_t i = s->first; i < s->end; i++) {
		uint32_t entry = s->group->entries.p[i];
		const struct dw_func *f = &s->env->index->p[entry];
		struct nearest n = {.at = row->at.v, .distance = UINT64_MAX};
		if (!(f->flags & DW_FUNC_INLINED) || !s->sites[i].site.n_shared)
			continue;
		dw_ranges(&s->sites[i].die, note_distance, &n, NULL);
		/* Entries are in order of DIE: of copies inside one another the last one is the innermost. */
		if (n.distance <= best) {
			best = n.distance;
			owner = entry;
		}
	}
	return owner;
}

/*
 * The first view at the row's address that belongs to it and not to an entry before it: that entry's arguments
 * begin at its own view or at the next.
 */
static uint64_t view_from(const struct owner_search *s, const struct entry_row *row)
{
	uint64_t from = 0;
	for (size_t i = s->first_row; i < s->end_row; i++) {
		const struct entry_row *r = &s->group->rows.p[i];
		if (r->at.v == row->at.v && r->view < row->view && r->view + 2 > from)
			from = r->view + 2;
	}
	return from;
}

struct requests {
	VEC(struct site_request) v;
};

/*
 * Whether the function comes out of a macro. Then its declaration, each of its statements, and whatever else the
 * macro makes have one position, that of the macro's use, and the rows do not tell an entry. It shows by two such rows
 * that follow each other at one address: the entry and the first statement.
 */
static bool is_from_macro(const struct group *g)
{
	for (size_t i = 1; i < g->rows.n; i++) {
		const struct entry_row *a = &g->rows.p[i - 1], *b = &g->rows.p[i];
		if (a->unit == b->unit && a->at.v == b->at.v && a->view + 1 == b->view)
			return true;
	}
	return false;
}

/* Append requests for the further entries of @group's copies. */
static int add_further(struct owner_search *s, struct requests *ret, struct cairn_err *err)
{
	if (is_from_macro(s->group))
		return 0;
	for (size_t i = 0; i < s->group->rows.n; i++) {
		const struct entry_row *row = &s->group->rows.p[i];
		if (!i || row->unit != s->unit)
			go_to_unit(s, i);
		uint32_t owner = is_first_entry(s, row) ? DW_FUNC_NONE : owner_of(s, row);
		struct site_request r = {.entry = owner,
					 .has_row = true,
					 .at = row->at,
					 .view = row->view,
					 .view_from = view_from(s, row)};
		if (owner != DW_FUNC_NONE && !VEC_ADD(&ret->v, r))
			return err_nomem(err, "sites");
	}
	return 0;
}

/* Append requests for the other ways into copies without an entry. */
static int add_ways(const struct owner_search *s, struct requests *ret, struct cairn_err *err)
{
	for (size_t i = 0; i < s->group->entries.n; i++)
		for (unsigned int k = 0; k < s->sites[i].n_ways; k++) {
			struct site_request r = {.entry = s->group->entries.p[i], .is_way_in = true, .at = s->sites[i].ways[k]};
			if (!VEC_ADD(&ret->v, r))
				return err_nomem(err, "sites");
		}
	return 0;
}

/* ---- parameters and types ---- */

/* Names and types of one abstract instance's parameters. */
struct signature {
	dw_off function;
	struct cairn_param *params;
	bool *fixed; /* the function cannot assign to it */
};

/* const T (through typedefs), T &, T &&. */
static bool cannot_be_assigned(const struct cairn_types *types, uint32_t id)
{
	/* Longer chains of typedefs are damaged. */
	enum { CHAIN_MAX = 64 };
	for (int i = 0; i < CHAIN_MAX; i++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		if (t->kind == CAIRN_T_CONST || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF)
			return true;
		if (t->kind != CAIRN_T_TYPEDEF && t->kind != CAIRN_T_VOLATILE && t->kind != CAIRN_T_RESTRICT &&
		    t->kind != CAIRN_T_ATOMIC)
			return false;
		id = t->ref;
	}
	return false;
}

static int read_type(const struct site_env *env, struct dw_types *types, dw_off die, uint32_t *ret,
		     struct cairn_err *err)
{
	*ret = 0;
	struct dw_die d;
	int rc = dw_die_at(env->dw, die, &d, err);
	if (rc == 1)
		rc = dwarf_type_of(types, &d, ret, err);
	/* A damaged type is named as such in the graph; the place is right all the same. */
	return rc == -EBADMSG ? 0 : rc;
}

static int read_signature(const struct site_env *env, struct dw_types *types, const struct formals *f,
			  struct arena *arena, struct signature *ret, struct cairn_err *err)
{
	if (ret->function == f->function)
		return 0;
	ret->params = arena_array(arena, f->n, sizeof(*ret->params));
	ret->fixed = arena_array(arena, f->n, sizeof(*ret->fixed));
	if (!ret->params || !ret->fixed)
		return err_nomem(err, "the parameters of a function");
	ret->function = f->function;
	for (uint32_t i = 0; i < f->n; i++) {
		struct dw_die die;
		int rc = dw_die_at(env->dw, f->die[i], &die, err);
		if (rc == 1)
			ret->params[i].name = dw_str_deep(&die, DW_AT_name);
		if (rc >= 0)
			rc = read_type(env, types, f->die[i], &ret->params[i].type, err);
		if (rc < 0)
			return rc;
		ret->fixed[i] = dw_flag(&die, DW_AT_artificial) ||
				cannot_be_assigned(dw_types_graph(types), ret->params[i].type);
	}
	return 0;
}

/* ---- calling convention ---- */

static int symbol_order(const void *key, const void *symbol)
{
	uint64_t at = *(const uint64_t *)key, s = ((const struct elf_symbol *)symbol)->at.v;
	return at < s ? -1 : at > s;
}

/* Whether other files can call the code at @at: then its convention is the platform's. */
static bool is_global(const struct site_env *env, struct cairn_vaddr at)
{
	const struct elf_symbol *symbols, *hit;
	size_t n;
	if (elf_symbols(env->code, &symbols, &n, NULL) < 0 || !n)
		return false;
	hit = bsearch(&at.v, symbols, n, sizeof(*symbols), symbol_order);
	if (!hit)
		return false;
	while (hit > symbols && hit[-1].at.v == at.v)
		hit--;
	for (; hit < symbols + n && hit->at.v == at.v; hit++)
		if (hit->type == STT_FUNC && hit->binding != STB_LOCAL)
			return true;
	return false;
}

static bool passes_classes(const struct cairn_types *types, const struct cairn_function *f)
{
	for (uint32_t i = 0; i <= f->n_params; i++) {
		uint32_t id = i < f->n_params ? f->params[i].type : f->return_type;
		enum cairn_type_kind kind = cairn_types_get(types, cairn_types_resolve(types, id))->kind;
		if (kind == CAIRN_T_STRUCT || kind == CAIRN_T_CLASS || kind == CAIRN_T_UNION)
			return true;
	}
	return false;
}

static bool is_c(const struct dw_unit *u)
{
	uint16_t lang = dw_unit_language(u);
	return lang == DW_LANG_C || lang == DW_LANG_C89 || lang == DW_LANG_C99 || lang == DW_LANG_C11;
}

/* Whether the function uses all of what the convention passes. */
static bool is_used(const struct site_env *env, const struct built_site *b, const struct cairn_location *abi)
{
	enum { RET_ADDR_BYTES = 8 };
	for (uint32_t i = 0; i < abi->n_pieces; i++) {
		const struct cairn_piece *p = &abi->pieces[i];
		if (p->kind == CAIRN_PIECE_MEMORY) {
			int64_t off = p->steps[1].imm - RET_ADDR_BYTES;
			if (!loc_stack_argument_is_used(env->code, env->cfi, &b->die, off))
				return false;
		} else if (p->steps[0].reg < 16 && !(b->used & 1u << p->steps[0].reg)) {
			return false;
		}
	}
	return true;
}

static void doubt(struct cairn_location *loc, enum cairn_unavailable why)
{
	if (loc->why == CAIRN_AVAILABLE)
		loc->why = why;
}

/* What is said about one parameter at the entry, put right by what the convention says. */
static void reconcile(const struct site_env *env, struct cairn_location *said, const struct cairn_location *abi,
		      const struct built_site *b, bool global)
{
	bool known = abi->why == CAIRN_AVAILABLE || abi->why == CAIRN_UNAVAIL_VECTOR_REGISTER;
	if (said->why == CAIRN_UNAVAIL_NOT_STORED && known && (global || !b->no_views))
		*said = *abi;
	if (!b->no_views)
		return;
	if (known && global)
		*said = *abi;
	if (env->assume_unmodified)
		return;
	if (!known || !loc_equal(said, abi))
		doubt(said, CAIRN_UNAVAIL_MAY_HAVE_CHANGED);
	else if (!is_used(env, b, abi))
		doubt(said, CAIRN_UNAVAIL_MAY_NOT_BE_PASSED);
}

static int apply_convention(const struct site_env *env, struct dw_types *reader,
			    const struct cairn_function *f, struct built_site *b, struct arena *arena,
			    struct cairn_err *err)
{
	bool trust = env->assume_unmodified;
	const struct cairn_types *types = dw_types_graph(reader);
	if (b->site.n_chain || !f->n_params)
		return 0;
	if (b->site.kind == CAIRN_SITE_PART || site_is_clone(&b->site) ||
	    (!is_c(b->die.unit) && passes_classes(types, f))) {
		for (uint32_t i = 0; i < b->site.n_args && b->no_views && !trust; i++)
			doubt(&b->args[i].loc, CAIRN_UNAVAIL_MAY_HAVE_CHANGED);
		return 0;
	}
	struct cairn_location *abi = arena_array(arena, f->n_params, sizeof(*abi));
	uint32_t *params = arena_array(arena, f->n_params, sizeof(*params));
	if (!abi || !params)
		return err_nomem(err, "locations");
	for (uint32_t i = 0; i <= f->n_params; i++) {
		uint32_t id = i < f->n_params ? f->params[i].type : f->return_type;
		int rc = dwarf_type_complete(reader, id, err);
		if (rc < 0 && rc != -EBADMSG)
			return rc;
		if (i < f->n_params)
			params[i] = id;
	}
	if (abi_locations(types, f->return_type, params, f->n_params, arena, abi) < 0)
		return err_nomem(err, "locations");
	bool global = is_global(env, b->site.at);
	for (uint32_t i = 0; i < b->site.n_args; i++)
		reconcile(env, &b->args[i].loc, &abi[i], b, global);
	return 0;
}

/* ---- one function ---- */

static int by_address(const void *a, const void *b)
{
	const struct cairn_site *x = a, *y = b;
	if (x->at.v != y->at.v)
		return x->at.v < y->at.v ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static void count_shared(struct cairn_site *sites, uint32_t n)
{
	for (uint32_t i = 0, j; i < n; i = j) {
		for (j = i + 1; j < n && sites[j].at.v == sites[i].at.v;)
			j++;
		for (uint32_t k = i; k < j; k++)
			sites[k].n_shared = j - i;
	}
}

/* The function's own parameters: those of the first instance that has the most. */
static int choose_signature(const struct site_env *env, struct dw_types *types, const struct built_site *b,
			    size_t n, struct arena *arena, struct cairn_function *f, struct cairn_err *err)
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
	return read_type(env, types, best->function, &f->return_type, err);
}

/*
 * GCC computes a _Bool as a whole byte: "not; and 255" for the opposite of a condition gives 254 and 255. The lowest bit is
 * right in every shape seen, and of a value that is 0 or 1 already it changes nothing.
 */
static int keep_lowest_bit(const struct cairn_types *types, struct cairn_arg *arg, struct arena *arena,
			   struct cairn_err *err)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, arg->type));
	const struct cairn_piece *p = arg->loc.pieces;
	if (t->encoding != CAIRN_ENC_BOOL || arg->loc.n_pieces != 1 || p->kind != CAIRN_PIECE_VALUE ||
	    p->n_steps < 2 || p->n_steps == CAIRN_LOC_STEPS_MAX)
		return 0;
	struct cairn_loc_step *steps = arena_array(arena, p->n_steps + 1, sizeof(*steps));
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));
	if (!steps || !piece)
		return err_nomem(err, "a location");
	memcpy(steps, p->steps, p->n_steps * sizeof(*steps));
	steps[p->n_steps] = (struct cairn_loc_step){.op = CAIRN_LOC_AND, .imm = 1};
	*piece = *p;
	piece->steps = steps;
	piece->n_steps++;
	arg->loc.pieces = piece;
	return 0;
}

/*
 * A place that is passed again, in a loop or in recursion made one, or by code that is no call: the description is that
 * of the call alone, for constants and registers that the loop does not write as well (docs/findings/gcc-entry-is-a-loop-head.md).
 */
static bool is_passed_by_others(const struct cairn_site *s)
{
	return s->count_doubts & (CAIRN_COUNT_AGAIN | CAIRN_COUNT_SHARED);
}

/* Give the site as many args as the function has parameters, with names and types. */
static int finish_args(const struct site_env *env, struct dw_types *types, const struct cairn_function *f,
		       struct signature *s, struct arena *arena, struct built_site *b, struct cairn_err *err)
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
		rc = keep_lowest_bit(dw_types_graph(types), &b->args[i], arena, err);
		if (rc < 0)
			return rc;
		if (b->site.n_chain && b->no_views && !env->assume_unmodified &&
		    !(i < b->formals.n && s->fixed[i]))
			doubt(&b->args[i].loc, CAIRN_UNAVAIL_MAY_HAVE_CHANGED);
		if (is_passed_by_others(&b->site) && !env->assume_unmodified)
			doubt(&b->args[i].loc, CAIRN_UNAVAIL_PASSED_AGAIN);
	}
	return 0;
}

/* The built sites of one group: those of its entries, and the further ones. */
struct group_sites {
	struct built_site *first, *further;
	size_t n_first, n_further;
};

static struct built_site *nth(const struct group_sites *gs, size_t i)
{
	return i < gs->n_first ? &gs->first[i] : &gs->further[i - gs->n_first];
}

/* Most functions have no removed parameter. */
static int doubt_removed(const struct group_sites *gs)
{
	size_t total = gs->n_first + gs->n_further, n = 0;
	for (size_t i = 0; i < total; i++)
		n += removed_any(nth(gs, i));
	struct built_site **sites = n ? calloc(total, sizeof(struct built_site *)) : NULL;
	if (!sites)
		return n ? -ENOMEM : 0;
	for (size_t i = 0; i < total; i++)
		sites[i] = nth(gs, i);
	removed_doubt(sites, total);
	free(sites);
	return 0;
}

static int finish_function(const struct site_env *env, struct dw_types *types, const struct group *g,
			   const struct group_sites *gs, struct arena *arena, struct cairn_function *ret,
			   struct cairn_err *err)
{
	size_t total = gs->n_first + gs->n_further;
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
	if (!env->assume_unmodified && doubt_removed(gs) < 0)
		return err_nomem(err, "the copies of a function");
	struct cairn_site *sites = arena_array(arena, total, sizeof(*sites));
	if (!sites)
		return err_nomem(err, "the sites of a function");
	struct signature s = {0};
	uint32_t n = 0;
	for (size_t i = 0; i < total; i++) {
		struct built_site *b = nth(gs, i);
		if (!b->site.n_shared) {
			ret->n_without_code += b->die.tag == DW_TAG_inlined_subroutine;
			continue;
		}
		if (site_is_plain_body(env, &b->site))
			continue;
		rc = finish_args(env, types, ret, &s, arena, b, err);
		if (rc >= 0)
			rc = apply_convention(env, types, ret, b, arena, err);
		if (rc < 0)
			return rc;
		sites[n++] = b->site;
	}
	if (n)
		qsort(sites, n, sizeof(*sites), by_address);
	count_shared(sites, n);
	if (merged_settle(sites, n, arena) < 0)
		return err_nomem(err, "the arguments of a site");
	ret->sites = sites;
	ret->n_sites = n;
	return 0;
}

/* Everything about a batch of groups while it is built. */
struct batch {
	const struct group *groups;
	size_t n;
	struct requests first, further;
	struct built_site *first_sites, *further_sites;
	size_t *n_further; /* of each group */
};

static int request_first(struct batch *b, struct cairn_err *err)
{
	for (size_t g = 0; g < b->n; g++)
		for (size_t i = 0; i < b->groups[g].entries.n; i++)
			if (!VEC_ADD(&b->first.v, ((struct site_request){.entry = b->groups[g].entries.p[i]})))
				return err_nomem(err, "sites");
	b->first_sites = calloc(b->first.v.n + 1, sizeof(*b->first_sites));
	b->n_further = calloc(b->n + 1, sizeof(*b->n_further));
	return b->first_sites && b->n_further ? 0 : err_nomem(err, "sites");
}

static int request_further(struct batch *b, const struct site_env *env, struct cairn_err *err)
{
	size_t at = 0;
	for (size_t g = 0; g < b->n; at += b->groups[g++].entries.n) {
		struct owner_search s = {.env = env, .group = &b->groups[g], .sites = b->first_sites + at};
		size_t before = b->further.v.n;
		int rc = add_ways(&s, &b->further, err);
		if (rc >= 0)
			rc = add_further(&s, &b->further, err);
		if (rc < 0)
			return rc;
		b->n_further[g] = b->further.v.n - before;
	}
	b->further_sites = calloc(b->further.v.n + 1, sizeof(*b->further_sites));
	return b->further_sites ? 0 : err_nomem(err, "sites");
}

static int finish_batch(struct batch *b, const struct site_env *env, struct dw_types *types, struct arena *arena,
			struct cairn_function *ret, struct cairn_err *err)
{
	struct group_sites gs = {.first = b->first_sites, .further = b->further_sites};
	for (size_t g = 0; g < b->n; g++) {
		gs.n_first = b->groups[g].entries.n;
		gs.n_further = b->n_further[g];
		int rc = finish_function(env, types, &b->groups[g], &gs, arena, &ret[g], err);
		if (rc < 0)
			return rc;
		gs.first += gs.n_first;
		gs.further += gs.n_further;
	}
	return 0;
}

int functions_build(const struct site_env *env, unsigned int threads, const struct group *groups, size_t n,
		    struct dw_types *types, struct arena *arena, struct cairn_function *ret,
		    struct cairn_err *err)
{
	struct batch b = {.groups = groups, .n = n};
	int rc = request_first(&b, err);
	if (rc >= 0)
		rc = build_sites(env, threads, b.first.v.p, b.first.v.n, b.first_sites, arena, err);
	if (rc >= 0)
		rc = request_further(&b, env, err);
	if (rc >= 0)
		rc = build_sites(env, threads, b.further.v.p, b.further.v.n, b.further_sites, arena, err);
	if (rc >= 0)
		rc = judge_counts(env, threads, &(struct judge_input){
			.groups = groups, .n_groups = n, .n_further = b.n_further,
			.first = b.first.v.p, .further = b.further.v.p,
			.first_sites = b.first_sites, .further_sites = b.further_sites}, err);
	if (rc >= 0)
		rc = finish_batch(&b, env, types, arena, ret, err);
	VEC_FREE(&b.first.v);
	VEC_FREE(&b.further.v);
	free(b.first_sites);
	free(b.further_sites);
	free(b.n_further);
	return rc;
}
