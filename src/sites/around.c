/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables around a copy
 *
 * What is passed to a function is mostly made from variables of its caller, and GCC tells where those are, too. Two of its mistakes
 * about an argument show there.
 *
 * The value before a loop. Behind a loop GCC describes what the loop changed by what it was in front
 * (docs/findings/gcc-value-before-loop.md). The variable itself was lost, and is described no more:
 *
 *	while (n--)		n	[0x5cba, 0x5cc2)  r15
 *		...			[0x5cc2, 0x5cce)  r15 - 1
 *	f(n);			f's a	[0x5d0a, 0x5d2c)  r15 - 1
 *
 * So an argument that is computed from registers is not believed where a variable around it was described by the very same
 * expression, and is so no more; or by one that ends in the same steps, when its register was needed for something else. What is
 * simply in a register is not meant: registers are used again for anything. Nor is a constant, unless a parameter around the copy had it
 * and is another constant now.
 *
 * A counter that is a constant. GCC keeps one of several counters of a loop, and describes the others by the difference of two names that
 * have one register, which is the value they begin with (docs/findings/gcc-dead-name-shares-register.md):
 *
 *	for (int i = 0; i < n; i++)	i	constant 0
 *		f(i, &v[i]);		f's a	constant 0, address of v
 *
 * Here the variable and the argument agree. But a variable that is declared around a loop and keeps one value in it is rarely there for
 * being passed. So in a loop that a variable with a constant is declared around, the same constant is not believed of an argument, nor is
 * an address, which may be made from it. What is declared in the loop is made anew in each pass, and does not count, nor do parameters.
 */
#include "sites/around.h"

#include <errno.h>
#include <string.h>

#include "dwarf/constants.h"
#include "sites/believe.h"

enum {
	/*
	 * Children of one scope that are looked at, and variables and scopes for one copy, also those that nothing is compared with. Of the
	 * others there are up to 332 in vmlinux, 1,134 in libjvm. A function made by a program may have any number, and as many copies.
	 */
	DIES_MAX = 1 << 14,
	/* Arguments of one copy. A function with more has what is behind them believed. */
	ARGS_MAX = 64,
	/*
	 * Entries of location lists that are kept of one function; those behind are not compared. Many variables could share one long list,
	 * so that their number is not bounded by the size of the input.
	 */
	ENTRIES_MAX = 1 << 17,
	/* Bytes at the end of an expression: two steps with a constant each, and that it is a value. */
	ALIKE = 5,
};

static uint32_t print_of(const uint8_t *p, uint64_t n)
{
	uint64_t v = 0;
	memcpy(&v, p, n < sizeof(v) ? n : sizeof(v));
	return (uint32_t)((v + n) * 0x9e3779b97f4a7c15 >> 32);
}

static struct expr_print expr_print(const uint8_t *p, uint64_t n)
{
	if (!n)
		return (struct expr_print){0};
	return (struct expr_print){.whole = print_of(p, n), .end = n > ALIKE ? print_of(p + n - ALIKE, ALIKE) | 1 : 0};
}

static void add_to_set(struct print_set *set, const struct expr_print *print)
{
	set->wholes |= UINT64_C(1) << (print->whole >> 26);
	if (print->end)
		set->ends |= UINT64_C(1) << (print->end >> 26);
}

enum told {
	TOLD_OTHERWISE,
	TOLD_COMPUTED, /* from registers, by more than one step */
	TOLD_CONSTANT,
	TOLD_ADDRESS,
};

/* An argument that may be doubted, and what the variable in question says. */
struct candidate {
	uint32_t arg;
	enum told told;
	int64_t value; /* of a constant */
	struct expression expr;
	struct expr_print print;
	bool now, before; /* the variable is described by the same at the place; was, in front of it */
};

struct search {
	const struct around *in;
	struct built_site *b;
	uint32_t at; /* its instruction */
	struct candidate args[ARGS_MAX];
	unsigned int n;
	bool has_computed, has_constant; /* among them */
	bool in_loop;
	struct print_set prints; /* of the arguments */
	unsigned int dies_left;
	uint32_t scope; /* in->known->scopes */
	int loop; /* a loop within the scope has the place: -1 not asked yet */
	bool is_constant; /* the variable in question, at the place */
};

static enum told kind_of(const struct cairn_location *loc)
{
	const struct cairn_piece *p = loc->pieces;
	if (loc->why != CAIRN_AVAILABLE || loc->n_pieces != 1 || p->kind != CAIRN_PIECE_VALUE || !p->n_steps)
		return TOLD_OTHERWISE;
	if (p->n_steps == 1 && p->steps[0].op != CAIRN_LOC_REG)
		return p->steps[0].op == CAIRN_LOC_CONST ? TOLD_CONSTANT : TOLD_ADDRESS;
	return p->n_steps > 1 ? TOLD_COMPUTED : TOLD_OTHERWISE;
}

/* Returns 1; 0; -ENOMEM. */
static int may_be_in_loop(const struct search *s)
{
	return s->at == GRAPH_NONE ? 0 : graph_may_come_back(s->in->graph, s->at);
}

/* An address is doubted in a loop only. Returns 0 or -ENOMEM. */
static int list_args(struct search *s)
{
	const struct built_site *b = s->b;
	bool is_loop_known = false;
	for (uint32_t i = 0; i < b->formals.n && s->n < ARGS_MAX; i++) {
		enum told told = kind_of(&b->args[i].loc);
		if (told == TOLD_OTHERWISE)
			continue;
		if ((told == TOLD_ADDRESS || told == TOLD_CONSTANT) && !is_loop_known) {
			int in_loop = may_be_in_loop(s);
			if (in_loop < 0)
				return in_loop;
			s->in_loop = in_loop;
			is_loop_known = true;
		}
		if (told == TOLD_ADDRESS && !s->in_loop)
			continue;
		s->has_computed |= told == TOLD_COMPUTED;
		s->has_constant |= told == TOLD_CONSTANT;
		s->args[s->n++] = (struct candidate){.arg = i,
						     .told = told,
						     .value = b->args[i].loc.pieces->steps[0].imm,
						     .expr = b->exprs[i],
						     .print = expr_print(b->exprs[i].p, b->exprs[i].n)};
		add_to_set(&s->prints, &s->args[s->n - 1].print);
	}
	return 0;
}

/*
 * Whether a variable can tell anything about the arguments. What is computed is compared with all; a constant with parameters around, and in a
 * loop with variables; an address with variables.
 */
static bool is_asked(const struct search *s, uint16_t tag)
{
	return s->has_computed || (tag == DW_TAG_formal_parameter ? s->has_constant : s->in_loop);
}

/* Bytes of an operation that pushes a constant, its operand included; 0: it does something else. */
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

/*
 * The last steps are the same, of other registers: (%rdx & 7) - 1, and ((%r11 << 1 | %r11) & 7) - 1 when %rdx had that and is gone.
 */
static bool ends_alike(const struct expression *a, const struct dw_loc_entry *b)
{
	return a->n > ALIKE && b->expr_len > ALIKE &&
	       !memcmp(a->p + a->n - ALIKE, b->expr + b->expr_len - ALIKE, ALIKE);
}

static void compare_entry(struct search *s, const struct dw_loc_entry *e, bool is_constant)
{
	if (is_constant && loc_entry_holds(e, s->b->site.at, s->b->view))
		s->is_constant = true;
	for (unsigned int i = 0; i < s->n; i++) {
		struct candidate *c = &s->args[i];
		bool same = c->expr.n && c->expr.n == e->expr_len && !memcmp(c->expr.p, e->expr, e->expr_len);
		if (!same && !(c->told == TOLD_COMPUTED && ends_alike(&c->expr, e)))
			continue;
		if (loc_entry_holds(e, s->b->site.at, s->b->view))
			c->now = true;
		else
			c->before |= e->hi.v <= s->b->site.at.v;
	}
}

/* False: the expressions are unequal, and so are their ends where those count. */
static bool may_be_argument(const struct search *s, const struct expr_print *print)
{
	bool may = false;
	for (unsigned int i = 0; i < s->n; i++)
		may |= s->args[i].print.whole == print->whole || (print->end && s->args[i].print.end == print->end);
	return may;
}

static void compare_entries(struct search *s, const struct known_variable *variable)
{
	const struct around_scopes *known = s->in->known;
	for (uint32_t i = variable->entries; i < variable->entries + variable->n_entries; i++) {
		const struct known_print *print = &known->prints.p[i];
		if (print->is_constant || may_be_argument(s, &print->expr))
			compare_entry(s, &known->entries.p[i], print->is_constant);
	}
}

static void compare_constant(struct search *s, int64_t value)
{
	s->is_constant = true;
	for (unsigned int i = 0; i < s->n; i++)
		s->args[i].now = s->args[i].told == TOLD_CONSTANT && s->args[i].value == value;
}

/* Within the scope the place leads to itself. */
static int has_loop(struct search *s)
{
	if (s->loop >= 0 || !s->in->graph)
		return s->loop > 0;
	s->loop = may_be_in_loop(s);
	if (s->loop > 0)
		s->loop = passage_comes_back(s->in->graph, &s->in->known->scopes.p[s->scope].die, s->b->site.at, s->in->scratch);
	return s->loop;
}

/* ---- variables ---- */

/* One byte is a register by itself, or a stack slot: nothing that is compared. Not 0 ends the list. */
static int keep_entry(void *arg, const struct dw_loc_entry *e)
{
	struct around_scopes *known = arg;
	if (known->entries.n >= ENTRIES_MAX)
		return 1;
	if (e->expr_len < 2)
		return 0;
	struct known_print print = {.expr = expr_print(e->expr, e->expr_len),
				    .is_constant = is_constant_expr(e->expr, e->expr_len)};
	return VEC_ADD(&known->entries, *e) && VEC_ADD(&known->prints, print) ? 0 : -ENOMEM;
}

/* What is damaged has the entries in front of the damage. Returns 0 or -ENOMEM. */
static int read_location(struct around_scopes *known, struct known_variable *v)
{
	struct dw_value value;
	v->entries = (uint32_t)known->entries.n;
	if (dw_attr(&v->die, DW_AT_const_value, &value, NULL) == 1) {
		v->is_constant = value.cls == DW_CLASS_SDATA || value.cls == DW_CLASS_UDATA;
		v->value = value.cls == DW_CLASS_SDATA ? value.s : (int64_t)value.u;
		return 0;
	}
	int rc = dw_locations(&v->die, DW_AT_location, keep_entry, known, NULL);
	v->n_entries = (uint32_t)known->entries.n - v->entries;
	return rc == -ENOMEM ? rc : 0;
}

/* Returns 0 or -ENOMEM. */
static int read_variable(struct around_scopes *known, struct known_variable *v)
{
	if (read_location(known, v) < 0)
		return -ENOMEM;
	v->has_constant = v->is_constant;
	for (uint32_t i = v->entries; i < v->entries + v->n_entries; i++) {
		add_to_set(&v->prints, &known->prints.p[i].expr);
		v->has_constant |= known->prints.p[i].is_constant;
	}
	v->is_read = true;
	return 0;
}

/* Most variables have nothing to do with the arguments: none is described as they are, nor is a variable constant in a loop. */
static bool may_tell(const struct search *s, const struct known_variable *v)
{
	bool is_alike = v->prints.wholes & s->prints.wholes || v->prints.ends & s->prints.ends;
	return is_alike || (v->has_constant && v->die.tag == DW_TAG_variable && s->in_loop);
}

/* Returns 0 or -ENOMEM. */
static int compare_variable(struct search *s, struct known_variable *variable)
{
	if (!is_asked(s, variable->die.tag))
		return 0;
	if (!variable->is_read && read_variable(s->in->known, variable) < 0)
		return -ENOMEM;
	if (!may_tell(s, variable))
		return 0;
	s->is_constant = false;
	for (unsigned int i = 0; i < s->n; i++)
		s->args[i].now = s->args[i].before = false;
	if (variable->is_constant)
		compare_constant(s, variable->value);
	compare_entries(s, variable);
	bool counts = s->is_constant && variable->die.tag == DW_TAG_variable;
	bool is_argument = s->is_constant && variable->die.tag == DW_TAG_formal_parameter;
	for (unsigned int i = 0; i < s->n; i++) {
		const struct candidate *c = &s->args[i];
		bool by_loop = counts && (c->told == TOLD_ADDRESS || (c->told == TOLD_CONSTANT && c->now));
		bool changed = c->before && !c->now;
		bool doubt = changed && (c->told == TOLD_COMPUTED || (c->told == TOLD_CONSTANT && is_argument));
		int rc = by_loop ? has_loop(s) : 0;
		if (rc < 0)
			return rc;
		if (doubt || rc)
			believe_not(&s->b->args[c->arg].loc, CAIRN_UNAVAIL_ANOTHER_MOMENT);
	}
	return 0;
}

/* ---- scopes ---- */

static bool is_variable(uint16_t tag)
{
	return tag == DW_TAG_variable || tag == DW_TAG_formal_parameter;
}

static bool is_scope(uint16_t tag)
{
	return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block;
}

/* As the last of the known ones. Returns 0 or -ENOMEM. */
static int know_scope(struct around_scopes *known, const struct dw_die *die)
{
	struct known_scope scope = {
		.die = *die, .variables = (uint32_t)known->variables.n, .inners = (uint32_t)known->inners.n};
	struct dw_die child;
	unsigned int n = 0;
	int rc = dw_die_child(die, &child, NULL);
	for (; rc == 1 && n < DIES_MAX; rc = dw_die_sibling(&child, &child, NULL), n++) {
		if (is_variable(child.tag) && !VEC_ADD(&known->variables, ((struct known_variable){.die = child})))
			return -ENOMEM;
		if (is_scope(child.tag) && !VEC_ADD(&known->inners, ((struct known_inner){.off = child.off})))
			return -ENOMEM;
	}
	scope.n_variables = (uint32_t)known->variables.n - scope.variables;
	scope.n_inners = (uint32_t)known->inners.n - scope.inners;
	return VEC_ADD(&known->scopes, scope) ? 0 : -ENOMEM;
}

static int know_container(const struct around *a)
{
	struct around_scopes *known = a->known;
	if (known->scopes.n && known->container == a->container->off)
		return 0;
	known->scopes.n = known->variables.n = known->inners.n = known->entries.n = known->prints.n = 0;
	known->container = a->container->off;
	return know_scope(known, a->container);
}

void around_scopes_fini(struct around_scopes *s)
{
	VEC_FREE(&s->scopes);
	VEC_FREE(&s->variables);
	VEC_FREE(&s->inners);
	VEC_FREE(&s->entries);
	VEC_FREE(&s->prints);
}

/* To a scope in the one at hand. Returns 1; 0 when it is damaged; -ENOMEM. */
static int enter_scope(struct search *s, uint32_t inner)
{
	struct around_scopes *known = s->in->known;
	struct dw_die die;
	if (!known->inners.p[inner].scope) {
		if (dw_die_near(s->in->container->unit, known->inners.p[inner].off, &die, NULL) != 1)
			return 0;
		if (know_scope(known, &die) < 0)
			return -ENOMEM;
		known->inners.p[inner].scope = (uint32_t)known->scopes.n;
	}
	s->scope = known->inners.p[inner].scope - 1;
	return 1;
}

/* The last scope in @scope that begins at or in front of the copy; UINT32_MAX when none does. They are in order of DIE. */
static uint32_t inner_around(const struct search *s, const struct known_scope *scope)
{
	const struct known_inner *p = s->in->known->inners.p;
	uint32_t lo = scope->inners, hi = scope->inners + scope->n_inners;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (p[mid].off <= s->b->die.off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo > scope->inners ? lo - 1 : UINT32_MAX;
}

/*
 * Compare the variables of s->scope, and make the scope in it that has the copy the next one. Returns 1; 0 when there is none;
 * -ENOMEM. What is damaged ends the search.
 */
static int visit_scope(struct search *s)
{
	const struct around_scopes *known = s->in->known;
	const struct known_scope *scope = &known->scopes.p[s->scope];
	uint32_t inner = inner_around(s, scope), end = scope->variables + scope->n_variables;
	s->loop = -1;
	for (uint32_t i = scope->variables; i < end && known->variables.p[i].die.off <= s->b->die.off && s->dies_left; i++) {
		s->dies_left--;
		if (compare_variable(s, &known->variables.p[i]) < 0)
			return -ENOMEM;
	}
	if (inner == UINT32_MAX || known->inners.p[inner].off == s->b->die.off || !s->dies_left)
		return 0;
	s->dies_left--;
	return enter_scope(s, inner);
}

int around_doubt(const struct around *a, struct built_site *b, uint32_t at)
{
	struct search s; /* not cleared: s.args is large, and its first s.n are all that is read */
	s.in = a;
	s.b = b;
	s.at = at;
	s.n = 0;
	s.has_computed = s.has_constant = s.in_loop = false;
	s.prints = (struct print_set){0};
	s.scope = 0;
	s.loop = -1;
	s.is_constant = false;
	s.dies_left = DIES_MAX;
	int rc = list_args(&s);
	if (rc >= 0 && s.n)
		rc = know_container(a) < 0 ? -ENOMEM : 1;
	while (rc == 1)
		rc = visit_scope(&s);
	return rc;
}
