/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stale outer variables
 *
 * Most arguments are made from variables of the caller, and GCC describes where those are, too. Two
 * of its mistakes about an argument show there.
 *
 * The value before a loop. After a loop GCC describes a variable that the loop changed by its value
 * before the loop (docs/findings/gcc-value-before-loop.md). The variable itself was lost and has no
 * description any more:
 *
 *	while (n--)		n	[0x5cba, 0x5cc2)  r15
 *		...			[0x5cc2, 0x5cce)  r15 - 1
 *	f(n);			f's a	[0x5d0a, 0x5d2c)  r15 - 1
 *
 * So a register-computed argument is rejected if a variable around the copy had the very same
 * expression before the site and no longer has it. The same holds if the variable's expression ends
 * in the same operations, since only the register may have changed. A plain register does not
 * count: registers are reused for anything. A constant does not count either, unless a parameter
 * around the copy had it and is another constant now.
 *
 * A counter that is a constant. GCC keeps one of several counters of a loop. It describes the
 * others by the difference of two names that share one register, so the difference is the counters'
 * first value (docs/findings/gcc-dead-name-shares-register.md):
 *
 *	for (int i = 0; i < n; i++)	i	constant 0
 *		f(i, &v[i]);		f's a	constant 0, address of v
 *
 * Here the variable and the argument agree. But a variable that is declared around a loop and keeps
 * one value in it is rarely there to be passed. So at a site in a loop that is inside the scope of
 * a variable with a constant, an argument with the same constant is rejected. So is an address,
 * which may be made from it. Variables declared in the loop are made anew in each pass and do not
 * count; parameters do not count either.
 */
#include "sites/quirks/stale_outer_variable.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/loclists.h"
#include "dwarf/near.h"

enum {
	/*
	 * Variables for one copy. There are up to 332 in vmlinux, 1,134 in libjvm. A generated
	 * function may have any number.
	 */
	VARIABLES_MAX = 1 << 14,
	/*
	 * Arguments of one copy. In a function with more arguments, the ones after these are
	 * believed.
	 */
	ARGS_MAX = 64,
	/*
	 * Entries of location lists that are read for one function; later ones are not compared.
	 * Many variables could share one long list, so that their number is not bounded by the size
	 * of the input.
	 */
	ENTRIES_MAX = 1 << 18,
	/*
	 * Bytes at the end of an expression: two operations with a constant each, and the mark of a
	 * value.
	 */
	ALIKE = 5,
};

static uint64_t bit_of(const uint8_t *p, uint64_t n)
{
	uint64_t v = 0;
	memcpy(&v, p, n < sizeof(v) ? n : sizeof(v));
	return UINT64_C(1) << ((v + n) * 0x9e3779b97f4a7c15 >> 58);
}

static void add_to_set(struct expr_set *set, const uint8_t *p, uint64_t n)
{
	set->wholes |= bit_of(p, n);
	if (n > ALIKE)
		set->ends |= bit_of(p + n - ALIKE, ALIKE);
}

enum told {
	TOLD_OTHERWISE,
	TOLD_COMPUTED, /* from registers, by more than one operation */
	TOLD_CONSTANT,
	TOLD_ADDRESS,
};

/*
 * An argument that may be rejected, and what is recorded of the variable that it is compared with.
 */
struct candidate {
	uint32_t arg;
	enum told told;
	int64_t value; /* of a constant */
	struct expression expr;
	/* the variable has the same description at the site; had it before the site */
	bool now, before;
};

struct search {
	const struct quirk_query *q;
	struct built_site *b; /* the site of the query */
	struct candidate args[ARGS_MAX];
	unsigned int n;
	bool has_computed, has_constant, has_address; /* in the list above */
	bool has_folded; /* a constant that takes more than one operation */
	int in_loop;     /* a path may lead from the site to it again: -1 not computed yet */
	struct expr_set computed, constant; /* of the arguments */
	const struct dw_die *scope;         /* of the current variable */
	int loop;                           /* the same within that scope */
	bool is_constant;                   /* the current variable, at the site */
};

static enum told kind_of(const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	if (loc->why != CAIRN_AVAILABLE || loc->n_pieces != 1 || p->kind != CAIRN_PIECE_VALUE ||
	    !p->n_steps)
		return TOLD_OTHERWISE;
	if (p->n_steps == 1 && p->steps[0].op != CAIRN_LOC_REG)
		return p->steps[0].op == CAIRN_LOC_CONST ? TOLD_CONSTANT : TOLD_ADDRESS;
	return p->n_steps > 1 ? TOLD_COMPUTED : TOLD_OTHERWISE;
}

/* Returns 1; 0; -ENOMEM. */
static int may_be_in_loop(struct search *s)
{
	if (s->in_loop < 0)
		s->in_loop = cfg_may_come_back(s->q->cfg, s->q->at);
	return s->in_loop;
}

/* Bytes of an operation that pushes a constant, with its operand; 0: another operation. */
static uint64_t constant_length(const uint8_t *expr, uint64_t n)
{
	uint64_t i = 1;
	if (expr[0] >= DW_OP_lit0 && expr[0] <= DW_OP_lit31)
		return 1;
	switch (expr[0]) {
	case DW_OP_const1u:
	case DW_OP_const1s:
		return 2;
	case DW_OP_const2u:
	case DW_OP_const2s:
		return 3;
	case DW_OP_const4u:
	case DW_OP_const4s:
		return 5;
	case DW_OP_const8u:
	case DW_OP_const8s:
		return 9;
	case DW_OP_constu:
	case DW_OP_consts:
		while (i < n && expr[i] & 0x80)
			i++;
		return i + 1;
	}
	return 0;
}

static bool is_constant_expr(const uint8_t *expr, uint64_t n)
{
	return n > 1 && expr[n - 1] == DW_OP_stack_value && constant_length(expr, n) == n - 1;
}

static void add_candidate(struct search *s, uint32_t arg, enum told told)
{
	const struct built_site *b = s->b;
	struct expression expr = b->exprs[arg];
	s->args[s->n++] = (struct candidate){.arg = arg,
					     .told = told,
					     .value = b->args[arg].loc.pieces->steps[0].imm,
					     .expr = expr};
	if (told == TOLD_COMPUTED) {
		s->has_computed = true;
		if (expr.n)
			add_to_set(&s->computed, expr.p, expr.n);
	} else if (told == TOLD_CONSTANT) {
		s->has_constant = true;
		s->has_folded |= expr.n && !is_constant_expr(expr.p, expr.n);
		if (expr.n)
			add_to_set(&s->constant, expr.p, expr.n);
	} else {
		s->has_address = true;
	}
}

/* An address is rejected in a loop only. */
static void list_args(struct search *s)
{
	const struct built_site *b = s->b;
	for (uint32_t i = 0; i < b->formals.n && s->n < ARGS_MAX; i++) {
		enum told told = kind_of(&b->args[i].loc);
		if (told != TOLD_OTHERWISE && (told != TOLD_ADDRESS || s->in_loop))
			add_candidate(s, i, told);
	}
}

/*
 * The last operations are the same, on other registers: (%rdx & 7) - 1, and ((%r11 << 1 | %r11) &
 * 7) - 1 when %rdx had that and is gone.
 */
static bool ends_alike(const struct expression *a, const struct dw_loc_entry *b)
{
	return a->n > ALIKE && b->expr_len > ALIKE &&
	       !memcmp(a->p + a->n - ALIKE, b->expr + b->expr_len - ALIKE, ALIKE);
}

static void compare_entry(struct search *s, const struct dw_loc_entry *e)
{
	if (is_constant_expr(e->expr, e->expr_len) && loc_entry_holds(e, s->b->site.at, s->b->view))
		s->is_constant = true;
	for (unsigned int i = 0; i < s->n; i++) {
		struct candidate *c = &s->args[i];
		bool same = c->expr.n && c->expr.n == e->expr_len &&
			    !memcmp(c->expr.p, e->expr, e->expr_len);
		if (!same && !(c->told == TOLD_COMPUTED && ends_alike(&c->expr, e)))
			continue;
		if (loc_entry_holds(e, s->b->site.at, s->b->view))
			c->now = true;
		else
			c->before |= e->hi.v <= s->b->site.at.v;
	}
}

static void compare_constant(struct search *s, int64_t value)
{
	s->is_constant = true;
	for (unsigned int i = 0; i < s->n; i++)
		s->args[i].now = s->args[i].told == TOLD_CONSTANT && s->args[i].value == value;
}

/* True if a path within the scope leads from the site to it again. */
static int has_loop(struct search *s)
{
	if (s->loop >= 0 || !s->q->cfg)
		return s->loop > 0;
	s->loop = may_be_in_loop(s);
	if (s->loop > 0)
		s->loop = event_count_comes_back(s->q->cfg, s->scope, s->b->site.at, s->q->scratch);
	return s->loop;
}

/* ---- variables ---- */

/*
 * True if a variable, or one of several, can say anything about the arguments: most have nothing to
 * do with them. A computed argument is compared with all variables. A constant is compared with
 * parameters that are another constant at another point, and in a loop with variables. An address
 * is compared with variables.
 */
static bool may_tell(const struct search *s, const struct known *of)
{
	bool is_same = of->exprs.wholes & s->constant.wholes;
	bool by_loop = s->in_loop && ((of->has_constant && (is_same || s->has_address)) ||
				      (of->has_value && (s->has_constant || s->has_address)));
	return of->exprs.wholes & s->computed.wholes || of->exprs.ends & s->computed.ends ||
	       by_loop || (is_same && (of->has_another || s->has_folded));
}

static void compare_entries(struct search *s, const struct known_variable *v)
{
	s->is_constant = false;
	for (unsigned int i = 0; i < s->n; i++)
		s->args[i].now = s->args[i].before = false;
	if (v->is_constant)
		compare_constant(s, v->value);
	for (uint32_t i = v->entries; i < v->entries + v->n_entries; i++)
		compare_entry(s, &s->q->outer->entries.p[i]);
}

/* Returns 0 or -ENOMEM. */
static int compare_variable(struct search *s, const struct known_variable *v)
{
	compare_entries(s, v);
	bool counts = s->is_constant && !v->is_parameter;
	bool is_argument = s->is_constant && v->is_parameter;
	for (unsigned int i = 0; i < s->n; i++) {
		const struct candidate *c = &s->args[i];
		bool by_loop =
			counts && (c->told == TOLD_ADDRESS || (c->told == TOLD_CONSTANT && c->now));
		bool changed = c->before && !c->now;
		bool is_stale = changed && (c->told == TOLD_COMPUTED ||
					    (c->told == TOLD_CONSTANT && is_argument));
		int rc = by_loop ? has_loop(s) : 0;
		if (rc < 0)
			return rc;
		if (is_stale || rc)
			quirk_reject(&s->b->args[c->arg].loc,
				     is_stale ? CAIRN_QUIRK_STALE_OUTER_VARIABLE
					      : CAIRN_QUIRK_COUNTER_CONSTANT);
	}
	return 0;
}

/* ---- scopes ---- */

/* A single byte is a plain register or a stack slot: nothing that is compared. */
static bool keep_entry(struct outer_scopes *known, struct known_variable *v,
		       const struct dw_loc_entry *e)
{
	if (e->expr_len < 2)
		return true;
	add_to_set(&v->is.exprs, e->expr, e->expr_len);
	v->n_entries++;
	return VEC_ADD(&known->entries, *e);
}

/* A damaged list has the entries before the damage. */
static bool read_entries(struct outer_scopes *known, struct known_variable *v)
{
	struct dw_loc_list list;
	struct dw_loc_entry e;
	const struct dw_loc_entry *first = NULL;
	bool ok = true;
	if (dw_loc_begin(&list, &v->die, DW_AT_location, NULL) != 1)
		return true;
	for (; ok && known->entries_left && dw_loc_next(&list, &e) == 1; known->entries_left--)
		ok = keep_entry(known, v, &e);
	for (uint32_t i = v->entries; i < known->entries.n; i++) {
		const struct dw_loc_entry *at = &known->entries.p[i];
		if (!is_constant_expr(at->expr, at->expr_len))
			continue;
		first = first ? first : at;
		v->is.has_constant = !v->is_parameter;
		v->is.has_another |=
			v->is_parameter && (at->expr_len != first->expr_len ||
					    memcmp(at->expr, first->expr, first->expr_len));
	}
	return ok;
}

static bool read_variable(struct outer_scopes *known, struct known_scope *scope,
			  struct known_variable *v)
{
	struct dw_value value;
	bool ok = true;
	v->is_read = true;
	v->entries = (uint32_t)known->entries.n;
	if (dw_attr_at(&v->die, DW_SLOT_CONST_VALUE, DW_AT_const_value, &value, NULL) == 1) {
		v->is_constant = value.cls == DW_CLASS_SDATA || value.cls == DW_CLASS_UDATA;
		v->is.has_value = v->is_constant && !v->is_parameter;
		v->value = value.cls == DW_CLASS_SDATA ? value.s : (int64_t)value.u;
	} else {
		ok = read_entries(known, v);
	}
	scope->has.exprs.wholes |= v->is.exprs.wholes;
	scope->has.exprs.ends |= v->is.exprs.ends;
	scope->has.has_value |= v->is.has_value;
	scope->has.has_constant |= v->is.has_constant;
	scope->has.has_another |= v->is.has_another;
	return ok;
}

/* Adds it to the innermost scope. */
static bool add_variable(struct outer_scopes *known, const struct dw_die *die)
{
	struct known_scope *scope = &known->open.p[known->open.n - 1];
	bool is_parameter = die->tag == DW_TAG_formal_parameter;
	scope->has_unread_parameters |= is_parameter;
	scope->has_unread_others |= !is_parameter;
	return VEC_ADD(&known->variables,
		       ((struct known_variable){.die = *die, .is_parameter = is_parameter}));
}

static bool open_scope(struct outer_scopes *known, const struct dw_die *die)
{
	return VEC_ADD(
		&known->open,
		((struct known_scope){.die = *die, .variables = (uint32_t)known->variables.n}));
}

static bool begin(struct outer_scopes *known, const struct dw_die *container)
{
	known->container = container->off;
	known->open.n = known->variables.n = known->entries.n = 0;
	known->entries_left = ENTRIES_MAX;
	dw_locals_enter(&known->walk, container);
	return open_scope(known, container);
}

/* Go on to a copy. Damage ends the walk. */
static bool advance(struct outer_scopes *known, const struct dw_die *container, dw_off to)
{
	struct dw_die die;
	enum dw_local what;
	bool is_after = known->open.n && known->container == container->off && to >= known->to;
	bool ok = is_after || begin(known, container);
	known->to = to;
	while (ok && known->open.n &&
	       (what = dw_locals_next(&known->walk, to, &die)) != DW_LOCAL_NONE) {
		if (what == DW_LOCAL_END)
			known->variables.n = known->open.p[--known->open.n].variables;
		else
			ok = what == DW_LOCAL_SCOPE ? open_scope(known, &die)
						    : add_variable(known, &die);
	}
	return ok;
}

void outer_scopes_fini(struct outer_scopes *s)
{
	VEC_FREE(&s->open);
	VEC_FREE(&s->variables);
	VEC_FREE(&s->entries);
}

/* Read those of a scope that are compared, up to the @n-th of all. */
static bool read_scope(const struct search *s, struct known_scope *scope, size_t n)
{
	struct outer_scopes *known = s->q->outer;
	bool parameters = scope->has_unread_parameters && (s->has_computed || s->has_constant);
	bool others = scope->has_unread_others && (s->has_computed || s->in_loop);
	bool ok = true;
	for (size_t i = scope->variables; i < n && ok && (parameters || others); i++) {
		struct known_variable *v = &known->variables.p[i];
		if (!v->is_read && (v->is_parameter ? parameters : others))
			ok = read_variable(known, scope, v);
	}
	scope->has_unread_parameters &= !parameters;
	scope->has_unread_others &= !others;
	return ok;
}

/* Returns 0 or -ENOMEM. */
static int compare_scope(struct search *s, struct known_scope *scope, size_t n)
{
	const struct outer_scopes *known = s->q->outer;
	if (!read_scope(s, scope, n))
		return -ENOMEM;
	if (!may_tell(s, &scope->has))
		return 0;
	s->scope = &scope->die;
	s->loop = -1;
	for (size_t i = scope->variables; i < n; i++)
		if (may_tell(s, &known->variables.p[i].is) &&
		    compare_variable(s, &known->variables.p[i]) < 0)
			return -ENOMEM;
	return 0;
}

/* Returns 0 or -ENOMEM. */
static int compare_scopes(struct search *s)
{
	const struct outer_scopes *known = s->q->outer;
	int rc = 0;
	for (size_t k = 0; k < known->open.n && !rc; k++) {
		size_t n =
			k + 1 < known->open.n ? known->open.p[k + 1].variables : known->variables.n;
		rc = compare_scope(s, &known->open.p[k], n < VARIABLES_MAX ? n : VARIABLES_MAX);
	}
	return rc;
}

int stale_outer_variable_check(const struct quirk_query *q)
{
	struct search s; /* not cleared: s.args is large, and its first s.n are all that is read */
	memset(&s.n, 0, sizeof(s) - offsetof(struct search, n));
	s.q = q;
	s.b = q->site;
	s.in_loop = q->at == GRAPH_NONE || cfg_is_straight(q->cfg, q->at) ? 0 : -1;
	list_args(&s);
	if (!s.n)
		return 0;
	return advance(q->outer, q->container, s.b->die.off) ? compare_scopes(&s) : -ENOMEM;
}
