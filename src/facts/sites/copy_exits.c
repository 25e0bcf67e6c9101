/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The exits of an inlined copy
 *
 * A call of a copy begins when control passes its site, and ends when control leaves the copy's
 * code for good. Compilers mix the caller's instructions with those of the copy, so the first
 * instruction that is not the copy's need not be the end:
 *
 *	E	site			   E
 *	o	the copy's	         o   o
 *	.	the caller's	         |   |
 *	o	the copy's	         X   o
 *	X	exit			     X
 *
 * An instruction is inside of the call if it is reached from the site, and if the copy's code is
 * still ahead of it on a path that does not pass the site again. An exit is where an edge leads from
 * inside to an instruction that is not; or a return instruction inside. The copy's instructions that
 * were moved ahead of the site belong to the next call: from them the site is ahead.
 *
 * A call that is left by an exit has its end there, whatever the path. What can go wrong is refused:
 *
 *  - An exit is not seen: an indirect jump inside, unless it is a switch whose table is found
 *    (loc/jump_tables.c); a jump into another function, which then goes on
 *    with the call; a landing pad, to which an exception leads; a site that is hit without a call,
 *    or is not the only one (count caveats).
 *  - The exit is too early: the end of the copy was merged with that of another copy of the
 *    function, which owns the code; or with code of no line (Clang).
 *  - The exit is too late: the caller's code inside has a call or a loop.
 *  - An entry is paired with the exit of another call. A call that is left by longjmp() leaves its
 *    entry behind. The next call of the container may come to the exit without passing the site:
 *    copy_exits.is_shared. Then the entry must be forgotten when the container is entered. That is
 *    not enough if longjmp() may lead into the same call of the container, and from there to an exit
 *    without passing the site. It may lead to where a call of setjmp() returns; to where any call
 *    returns whose function is not known, or was not made by a compiler; and to a label whose
 *    address is taken, as by __builtin_setjmp().
 *
 * In a kernel, the paths that its file does not show are known from its tables (kernel_paths.h). It
 * has no longjmp(). An entry is left behind there if the kernel does not tell of an exit.
 */
#include "sites/copy_exits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/vec.h"
#include "cfi/cfi.h"
#include "dwarf/constants.h"
#include "elf/functions.h"
#include "elf/imports.h"
#include "insn/insn.h"
#include "loc/cfg.h"
#include "sites/kernel_paths.h"
#include "sites/provider.h"
#include "sites/site.h"

enum {
	OWN = 1 << 0,
	SITE = 1 << 1,
	AROUND =
		1
		<< 2, /* reached without passing the site; at last only from where longjmp() leads */
	AHEAD = 1 << 3,   /* the site is ahead, loops aside */
	REACHED = 1 << 4, /* from the site */
	INSIDE = 1 << 5,
	OTHER = 1 << 6,  /* of another copy of the function */
	BEYOND = 1 << 7, /* reached from an exit */
};

enum {
	EXITS_MAX = 64,
	/* Jump labels after each other. */
	LABELS_MAX = 64,
	/* Instructions of line 0, after an exit. */
	TAIL_MAX = 32,
};

#define CAVEATS                                                                                    \
	(CAIRN_COUNT_NO_ENTRY | CAIRN_COUNT_LOOPED | CAIRN_COUNT_BYPASSED |                        \
	 CAIRN_COUNT_SHARED_PC | CAIRN_COUNT_MERGED | CAIRN_COUNT_BEFORE_TEST |                    \
	 CAIRN_COUNT_VECTORISED | CAIRN_COUNT_UNKNOWN)

struct copy_ends {
	struct site_env env;
	uint64_t body; /* of the container that the graph is of; 0: none */
	struct dw_die function;
	struct cairn_vaddr entry;
	struct cfg *g; /* NULL: it cannot be decoded */
	bool may_land;
	bool may_land_anywhere; /* not only from calls */
	uint8_t *marks;
	size_t cap;
	struct dw_range_list ranges;
	VEC(uint32_t) own, exits;
	struct map callees; /* by address: 1 for functions that return twice; 0 for other imports */
	bool has_callees;
	const struct functions *functions;
	struct kernel_paths *kernel; /* NULL: of a program, or its tables are not understood */
	/* The search in progress. */
	struct arena *arena;
	uint32_t site, n_passed;
	const char *why;
	int rc;
};

int copy_ends_new(struct cairn_sites *sites, struct copy_ends **ret)
{
	struct site_env env;

	*ret = NULL;
	if (!sites_debug_info(sites, &env))
		return 0;
	*ret = calloc(1, sizeof(**ret));
	if (!*ret)
		return -ENOMEM;
	(*ret)->env = env;
	if (env.kernel && kernel_paths_new(env.bin, &(*ret)->kernel) == -ENOMEM) {
		copy_ends_free(*ret);
		*ret = NULL;
		return -ENOMEM;
	}
	return 0;
}

void copy_ends_free(struct copy_ends *e)
{
	if (!e)
		return;
	cfg_free(e->g);
	free(e->marks);
	VEC_FREE(&e->ranges);
	VEC_FREE(&e->own);
	VEC_FREE(&e->exits);
	map_fini(&e->callees);
	kernel_paths_free(e->kernel);
	free(e);
}

static void refuse(struct copy_ends *e, const char *why)
{
	if (!e->why)
		e->why = why;
}

static void refuse_address(struct copy_ends *e, const char *why, uint64_t at)
{
	const char *text = arena_printf(e->arena, "%s at 0x%llx", why, (unsigned long long)at);

	if (!text)
		e->rc = -ENOMEM;
	refuse(e, text);
}

/* With the address of an instruction. */
static void refuse_at(struct copy_ends *e, const char *why, uint32_t i)
{
	refuse_address(e, why, e->g->v.p[i].at);
}

static bool is_done(const struct copy_ends *e)
{
	return e->why || e->rc;
}

/* ---- the function around the copy ---- */

static bool returns_twice(const char *name)
{
	static const char *const names[] = {"setjmp", "sigsetjmp", "getcontext", "returns_twice"};

	name += strspn(name, "_");
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strncmp(name, names[i], strlen(names[i])))
			return true;
	return false;
}

static int note_stub(void *ctx, const char *name, struct cairn_vaddr at)
{
	struct copy_ends *e = ctx;

	return map_put(&e->callees, at.v, returns_twice(name));
}

static int find_callees(struct copy_ends *e)
{
	const struct elf_symbol *symbols;
	size_t n;

	e->has_callees = true;
	if (elf_symbols(e->env.code, &symbols, &n, NULL) < 0)
		n = 0;
	for (size_t i = 0; i < n; i++)
		if (returns_twice(symbols[i].name) && map_put(&e->callees, symbols[i].at.v, 1) < 0)
			return -ENOMEM;
	if (elf_visit_stubs(e->env.code, note_stub, e, NULL) == -ENOMEM)
		return -ENOMEM;
	return binary_functions(e->env.bin, &e->functions, NULL) == -ENOMEM ? -ENOMEM : 0;
}

/* Whether an exception may be caught in the function. */
static bool may_land(const struct copy_ends *e)
{
	for (size_t i = 0; i < e->g->pieces.n; i++)
		if (cfi_may_land(e->env.cfi, (struct cairn_vaddr){e->g->pieces.p[i].lo}))
			return true;
	return false;
}

static int make_graph(struct copy_ends *e)
{
	if (!e->kernel)
		return cfg_new(e->env.code, &e->function, e->entry, &e->g);
	return cfg_new_changed(e->env.code, &e->function, e->entry, kernel_paths_change, e->kernel,
			       &e->g);
}

static int enter_container(struct copy_ends *e, uint64_t body)
{
	if (e->body == body)
		return 0;
	e->body = 0;
	if (!body || dw_die_at(e->env.dw, body, &e->function, NULL) != 1 ||
	    site_entry_of(&e->function, &e->entry) != 1) {
		cfg_free(e->g);
		e->g = NULL;
		return 0;
	}
	if (make_graph(e) < 0 || (!e->has_callees && find_callees(e) < 0))
		return -ENOMEM;
	if (e->g && (cfg_find_tables(e->env.code, e->g) < 0 || cfg_number(e->g) < 0))
		return -ENOMEM;
	e->body = body;
	if (!e->g)
		return 0;
	e->may_land = may_land(e);
	e->may_land_anywhere = e->may_land && dw_unit_may_throw_anywhere(e->function.unit);
	return 0;
}

static int clear_marks(struct copy_ends *e)
{
	size_t n = e->g->v.n + 1;

	if (n > e->cap) {
		free(e->marks);
		e->marks = malloc(2 * n);
		e->cap = e->marks ? 2 * n : 0;
	}
	if (!e->marks)
		return -ENOMEM;
	memset(e->marks, 0, n);
	return 0;
}

/* ---- the copy ---- */

/* The code of a copy in e->ranges; false if it has none. */
static bool ranges_of(struct copy_ends *e, uint64_t die_off)
{
	struct dw_die die;

	e->ranges.n = 0;
	if (dw_die_at(e->env.dw, die_off, &die, NULL) != 1 || die.tag != DW_TAG_inlined_subroutine)
		return false;
	int n = dw_ranges_append(&die, &e->ranges, NULL);
	if (n == -ENOMEM)
		e->rc = n;
	return n > 0;
}

static bool holds(const struct dw_range_list *ranges, uint64_t at)
{
	for (size_t i = 0; i < ranges->n; i++)
		if (ranges->p[i].lo.v <= at && at < ranges->p[i].hi.v)
			return true;
	return false;
}

static void mark_range(struct copy_ends *e, struct dw_range r, uint8_t bit)
{
	const struct cfg *g = e->g;

	for (size_t i = cfg_from(g, r.lo.v); i < g->v.n && g->v.p[i].at < r.hi.v && !e->rc; i++) {
		if (g->v.p[i].is_nop || e->marks[i] & OWN)
			continue;
		e->marks[i] |= bit;
		if (bit == OWN && !VEC_ADD(&e->own, (uint32_t)i))
			e->rc = -ENOMEM;
	}
}

static void mark_ranges(struct copy_ends *e, uint8_t bit)
{
	for (size_t i = 0; i < e->ranges.n; i++)
		mark_range(e, e->ranges.p[i], bit);
}

static void spread(struct copy_ends *e, uint32_t from, uint8_t bit)
{
	e->marks[from] |= bit;
	if (!e->rc)
		e->rc = cfg_spread(e->g, &from, 1, e->marks, bit, 0, SITE);
}

/* Paths that do not pass the site. A landing pad, and an indirect jump's target, are on one. */
static void mark_around(struct copy_ends *e)
{
	const struct cfg *g = e->g;

	if (g->entry != e->site)
		spread(e, g->entry, AROUND);
	for (size_t i = 0; i < g->orphans.n && (g->indirect.n || e->may_land || e->kernel); i++)
		if (g->orphans.p[i] != e->site)
			spread(e, g->orphans.p[i], AROUND);
}

/* Code of the copy that nothing leads to, as far as is known: then something else does. */
static void check_reached(struct copy_ends *e)
{
	for (size_t n = 0; n < e->own.n && !is_done(e); n++)
		if (e->g->v.p[e->own.p[n]].order == UINT32_MAX)
			refuse_at(e, "nothing known leads to its code", e->own.p[n]);
}

/* Instructions have falling order in by_order: successors without loops come first. */
static void mark_ahead(struct copy_ends *e)
{
	const struct cfg *g = e->g;

	for (size_t n = 0; n < g->by_order.n; n++) {
		uint32_t i = g->by_order.p[n], k = 0, s;
		bool is_ahead = i == e->site;
		while (!is_ahead && (s = cfg_next(g, i, &k)) != GRAPH_NONE)
			is_ahead = e->marks[s] & AHEAD && g->v.p[s].order > g->v.p[i].order;
		if (is_ahead)
			e->marks[i] |= AHEAD;
	}
}

/*
 * Whether an instruction does some of the call's work. Copies of values where paths meet have no
 * line, and Clang attributes them to the code of either path.
 */
static bool is_work(const struct copy_ends *e, uint32_t i)
{
	const struct cfg_insn *insn = &e->g->v.p[i];

	return (e->marks[i] & (OWN | REACHED)) == (OWN | REACHED) &&
	       (i == e->site || !(e->marks[i] & AHEAD)) && !(insn->is_line0 && insn->only_moves);
}

/* Goes back from the copy's work to the site. */
static void mark_inside(struct copy_ends *e)
{
	VEC(uint32_t) todo = {0};

	e->marks[e->site] |= INSIDE;
	for (size_t n = 0; n < e->own.n && !e->rc; n++) {
		uint32_t i = e->own.p[n];
		if (!is_work(e, i) || i == e->site)
			continue;
		e->marks[i] |= INSIDE;
		e->rc = VEC_ADD(&todo, i) ? 0 : -ENOMEM;
	}
	while (todo.n && !e->rc) {
		uint32_t i = todo.p[--todo.n], k = 0, b;
		while (!e->rc && (b = cfg_before(e->g, i, &k)) != GRAPH_NONE) {
			if (!(e->marks[b] & REACHED) || e->marks[b] & INSIDE)
				continue;
			e->marks[b] |= INSIDE;
			e->rc = VEC_ADD(&todo, b) ? 0 : -ENOMEM;
		}
	}
	VEC_FREE(&todo);
}

static bool is_inside(const struct copy_ends *e, uint32_t i)
{
	return e->marks[i] & INSIDE;
}

/* A system call, or a string instruction that repeats. */
static bool may_take_long(const struct copy_ends *e, const struct cfg_insn *insn)
{
	struct insn decoded;
	const uint8_t *code;
	size_t n;

	return !elf_code_at(e->env.code, (struct cairn_vaddr){insn->at}, &code, &n) ||
	       !insn_decode(code, n, insn->at, &decoded) || decoded.flow == INSN_TRAP ||
	       decoded.has_rep;
}

/* Whether it may lead back to the caller's code inside. */
static bool goes_back(const struct copy_ends *e, uint32_t i)
{
	uint32_t k = 0, s;

	while ((s = cfg_next(e->g, i, &k)) != GRAPH_NONE)
		if (s <= i && is_inside(e, s) && !(e->marks[s] & OWN))
			return true;
	return false;
}

/* Only straight pieces of the caller's code inside are let through. */
static void check_gap(struct copy_ends *e, uint32_t i)
{
	const struct cfg_insn *insn = &e->g->v.p[i];

	if (e->marks[i] & OWN || i == e->site)
		return;
	if (insn->is_call)
		refuse_at(e, "the caller's code is mixed with it, and has a call", i);
	else if (may_take_long(e, insn))
		refuse_at(e, "the caller's code is mixed with it, and may wait or repeat", i);
	else if (goes_back(e, i))
		refuse_at(e, "the caller's code is mixed with it, and has a loop", i);
}

/* ---- exits ---- */

static void add_exit(struct copy_ends *e, uint32_t i);

/*
 * No probe can be set on a jump label of the kernel, which does nothing but lead on. So the call
 * ends at the next instructions. Returns whether it is one.
 */
static bool pass_label(struct copy_ends *e, uint32_t i)
{
	const struct cfg_insn *insn = &e->g->v.p[i];
	uint32_t k = 0, s;

	if (!e->kernel || !insn->has_edges || i == e->site || e->n_passed == LABELS_MAX ||
	    cairn_hazard_at(e->env.bin, (struct cairn_vaddr){insn->at}, false) !=
		    CAIRN_HAZARD_JUMP_LABEL)
		return false;
	e->n_passed++;
	while (!is_done(e) && (s = cfg_next(e->g, i, &k)) != GRAPH_NONE)
		add_exit(e, s);
	return true;
}

static void add_exit(struct copy_ends *e, uint32_t i)
{
	const struct cfg *g = e->g;

	/* No probe is needed on padding, and a long nop takes none. */
	while (g->v.p[i].is_nop && g->v.p[i].next != GRAPH_NONE && !is_inside(e, g->v.p[i].next))
		i = g->v.p[i].next;
	if (i == e->site)
		refuse_at(e, "its end leads to its beginning again,", i);
	if (pass_label(e, i))
		return;
	for (size_t k = 0; k < e->exits.n; k++)
		if (e->exits.p[k] == i)
			return;
	if (e->exits.n == EXITS_MAX)
		refuse(e, "it is left at too many places");
	else if (!VEC_ADD(&e->exits, i))
		e->rc = -ENOMEM;
}

/* Nothing follows in the function. */
static void add_end(struct copy_ends *e, uint32_t i)
{
	const struct cfg_insn *insn = &e->g->v.p[i];

	if (insn->is_call || insn->is_end)
		return;
	if (insn->is_return)
		add_exit(e, i);
	else
		refuse_at(e, "its code is not known after the instruction", i);
}

static void leave_by(struct copy_ends *e, uint32_t i)
{
	const struct cfg_insn *insn = &e->g->v.p[i];
	uint32_t k = 0, s;

	check_gap(e, i);
	if (insn->is_indirect && !cfg_is_known_jump(e->g, i))
		refuse_at(e, "it has a jump whose targets are not known,", i);
	else if ((insn->is_branch && insn->target == GRAPH_NONE) || insn->goes_elsewhere)
		refuse_at(e, "it goes on in another function by the jump", i);
	else if ((insn->is_call && e->may_land) || e->may_land_anywhere)
		refuse(e, "an exception may be caught in the function around it");
	else if (!insn->is_indirect && insn->next == GRAPH_NONE && insn->target == GRAPH_NONE &&
		 !insn->has_edges)
		add_end(e, i);
	while (!is_done(e) && (s = cfg_next(e->g, i, &k)) != GRAPH_NONE)
		if (s == e->site || !is_inside(e, s))
			add_exit(e, s);
}

static void find_exits(struct copy_ends *e)
{
	e->exits.n = e->n_passed = 0;
	for (uint32_t i = 0; i < e->g->v.n && !is_done(e); i++)
		if (is_inside(e, i))
			leave_by(e, i);
	if (!e->exits.n)
		refuse(e, "no end of it was found");
}

/* ---- merged ends ---- */

/* Clang gives code no line where it merged two ends. */
static void check_tail(struct copy_ends *e, uint32_t i)
{
	const struct cfg *g = e->g;

	for (unsigned int n = 0; n < TAIL_MAX && i != GRAPH_NONE && g->v.p[i].is_line0; n++) {
		if (g->v.p[i].has_effect) {
			refuse_at(
				e,
				"its end may have been merged with other code, which has no line,",
				i);
			return;
		}
		i = g->v.p[i].next != GRAPH_NONE ? g->v.p[i].next : g->v.p[i].target;
	}
}

/* The function's other copies in the container, but for those around this one and in it. */
static void mark_others(struct copy_ends *e, const struct cairn_function *f,
			const struct cairn_site *site)
{
	for (uint32_t i = 0; i < f->n_sites && !e->rc; i++) {
		const struct cairn_site *other = &f->sites[i];
		uint32_t at = cfg_at(e->g, other->at.v);
		if (other->body != site->body || other->die == site->die ||
		    other->kind != CAIRN_SITE_INLINED || !ranges_of(e, other->die) ||
		    holds(&e->ranges, site->at.v))
			continue;
		mark_ranges(e, OTHER);
		if (at != GRAPH_NONE && !(e->marks[at] & OWN))
			e->marks[at] |= SITE;
	}
}

/* GCC merges equal ends of copies, and one of them owns the code: it is reached past its site. */
static void check_others(struct copy_ends *e, const struct cairn_function *f,
			 const struct cairn_site *site)
{
	mark_others(e, f, site);
	for (size_t i = 0; i < e->exits.n && !e->rc; i++)
		if (!(e->marks[e->exits.p[i]] & SITE))
			spread(e, e->exits.p[i], BEYOND);
	for (uint32_t i = 0; i < e->g->v.n && !is_done(e); i++)
		if ((e->marks[i] & (OTHER | BEYOND | OWN)) == (OTHER | BEYOND) &&
		    e->g->v.p[i].has_effect)
			refuse_at(e, "its end may have been merged with that of another copy,", i);
}

/* ---- frames ---- */

static struct copy_frame frame_at(struct copy_ends *e, uint64_t at)
{
	enum { GENERAL = 16, OFF_MAX = 1 << 27, RETURN_ADDRESS = 8 };
	struct cfi_row row;

	if (cfi_row_at(e->env.cfi, (struct cairn_vaddr){at}, &row, NULL) != 1 ||
	    row.cfa != CFI_CFA_REG_OFFSET || row.cfa_reg >= GENERAL || row.cfa_off > OFF_MAX ||
	    row.cfa_off < -OFF_MAX + RETURN_ADDRESS) {
		refuse(e, "no unwind row gives the frame of the function around it");
		return (struct copy_frame){0};
	}
	return (struct copy_frame){.reg = (uint8_t)row.cfa_reg,
				   .off = (int32_t)(row.cfa_off - RETURN_ADDRESS)};
}

static void check_probe(struct copy_ends *e, uint64_t at, bool is_entry)
{
	if (!e->why &&
	    cairn_hazard_at(e->env.bin, (struct cairn_vaddr){at}, is_entry) != CAIRN_HAZARD_NONE)
		refuse_address(e, "no probe can be set on the instruction", at);
}

/* ---- where longjmp() may lead ---- */

static bool has_call(const struct copy_ends *e)
{
	for (uint32_t i = 0; i < e->g->v.n; i++)
		if (is_inside(e, i) && e->g->v.p[i].is_call)
			return true;
	return false;
}

/* Whether it is known that a direct call returns once: a compiler made the function. */
static bool is_compiled(const struct copy_ends *e, uint64_t to)
{
	const struct elf_symbol *s =
		e->functions ? functions_at(e->functions, (struct cairn_vaddr){to}) : NULL;

	return s && s->at.v == to && s->size;
}

/* From a call's end, unless control is in the copy there, as it was. */
static void spread_call(struct copy_ends *e, uint32_t i)
{
	uint32_t next = e->g->v.p[i].next;

	if (!is_inside(e, i) && next != GRAPH_NONE && next != e->site && !is_inside(e, next))
		spread(e, next, AROUND);
}

/* @in_doubt  also from calls that are not known to return once */
static void spread_calls(struct copy_ends *e, bool in_doubt)
{
	const struct cfg *g = e->g;
	size_t k = 0;

	for (uint32_t i = 0; i < g->v.n; i++) {
		uint64_t twice = in_doubt;
		if (!g->v.p[i].is_call)
			continue;
		if (k < g->calls.n && g->calls.p[k].from == i) {
			uint64_t to = g->calls.p[k++].to;
			if (!map_get(&e->callees, to, &twice) && is_compiled(e, to))
				twice = 0;
		}
		if (twice)
			spread_call(e, i);
	}
}

/* The instruction whose address another one has: lea label(%rip), mov $label */
static uint32_t label_of(const struct copy_ends *e, const struct cfg_insn *insn)
{
	enum { OPERAND = 4 };
	const uint8_t *code;
	uint64_t label;
	int32_t value;
	size_t n;

	if (insn->len <= OPERAND || insn->is_branch || insn->is_call || insn->is_nop ||
	    !elf_code_at(e->env.code, (struct cairn_vaddr){insn->at}, &code, &n) || n < insn->len)
		return GRAPH_NONE;
	if (insn_takes_address(code, n, insn->at, &label))
		return cfg_at(e->g, label);
	memcpy(&value, code + insn->len - OPERAND, sizeof(value));
	return cfg_at(e->g, (uint64_t)(int64_t)value);
}

static void spread_labels(struct copy_ends *e)
{
	const struct cfg *g = e->g;

	for (uint32_t i = 0; i < g->v.n; i++) {
		uint32_t label = label_of(e, &g->v.p[i]);
		if (label != GRAPH_NONE && label != g->entry && label != e->site)
			spread(e, label, AROUND);
	}
}

/* A handler of signals may leave a copy without calls, too, but in doubt it does not. */
static void check_longjmp(struct copy_ends *e)
{
	bool in_doubt = has_call(e);

	for (uint32_t i = 0; i < e->g->v.n; i++)
		e->marks[i] &= (uint8_t)~AROUND;
	spread_calls(e, in_doubt);
	if (in_doubt)
		spread_labels(e);
	for (size_t i = 0; i < e->exits.n; i++)
		if (e->marks[e->exits.p[i]] & AROUND)
			refuse(e, "longjmp() may lead into the function around it");
}

/* The container's beginning is probed, too, where exits are shared. */
static void check_shared(struct copy_ends *e, struct copy_exits *ret)
{
	for (size_t i = 0; i < e->exits.n && e->site != e->g->entry; i++)
		ret->is_shared |= e->marks[e->exits.p[i]] & AROUND || e->g->indirect.n;
	ret->container = e->entry;
	if (ret->is_shared)
		check_probe(e, e->entry.v, true);
	/* The kernel has none. */
	if (!e->kernel)
		check_longjmp(e);
}

static void hand_out(struct copy_ends *e, struct copy_exits *ret)
{
	struct copy_exit *p = arena_array(e->arena, e->exits.n, sizeof(*p));

	if (!p) {
		e->rc = -ENOMEM;
		return;
	}
	ret->entry = frame_at(e, e->g->v.p[e->site].at);
	for (size_t i = 0; i < e->exits.n; i++) {
		uint64_t at = e->g->v.p[e->exits.p[i]].at;
		p[i] = (struct copy_exit){.at = {at}, .frame = frame_at(e, at)};
		check_probe(e, at, false);
		check_tail(e, e->exits.p[i]);
	}
	check_shared(e, ret);
	ret->n = (uint32_t)e->exits.n;
	ret->p = p;
}

/* ---- one copy ---- */

static bool has_several_sites(const struct cairn_function *f, const struct cairn_site *site)
{
	unsigned int n = 0;

	for (uint32_t i = 0; i < f->n_sites; i++)
		n += f->sites[i].die == site->die && f->sites[i].kind == site->kind;
	return n > 1;
}

static void check_site(struct copy_ends *e, const struct cairn_function *f,
		       const struct cairn_site *site)
{
	if (e->env.kernel && !e->kernel)
		refuse(e, "the tables by which the kernel changes its code are not known");
	else if (site->count_caveats & CAVEATS)
		refuse(e, cairn_count_caveat_text(site->count_caveats & CAVEATS &
						  -(site->count_caveats & CAVEATS)));
	else if (has_several_sites(f, site))
		refuse(e, "the copy has several entries");
}

static void begin(struct copy_ends *e, const struct cairn_site *site)
{
	if (is_done(e))
		return;
	e->rc = enter_container(e, site->body);
	if (e->rc)
		return;
	e->site = e->g ? cfg_at(e->g, site->at.v) : GRAPH_NONE;
	if (e->site == GRAPH_NONE || e->g->entry == GRAPH_NONE)
		refuse(e, "the code of the function around it cannot be decoded");
	else
		e->rc = clear_marks(e);
	e->own.n = 0;
	if (!is_done(e) && !ranges_of(e, site->die))
		refuse(e, "the debug information does not say which code is the copy's");
}

static void search(struct copy_ends *e)
{
	mark_ranges(e, OWN);
	e->marks[e->site] |= SITE;
	mark_around(e);
	spread(e, e->site, REACHED);
	if (e->kernel)
		check_reached(e);
	mark_ahead(e);
	mark_inside(e);
	if (!is_done(e))
		find_exits(e);
}

int copy_ends_find(struct copy_ends *e, const struct cairn_function *f,
		   const struct cairn_site *site, struct arena *arena, struct copy_exits *ret,
		   const char **ret_why)
{
	*ret = (struct copy_exits){0};
	e->arena = arena;
	e->why = NULL;
	e->rc = 0;
	check_site(e, f, site);
	begin(e, site);
	if (!is_done(e))
		search(e);
	if (!is_done(e))
		hand_out(e, ret);
	if (!is_done(e))
		check_others(e, f, site);
	*ret_why = e->why;
	return e->rc;
}
