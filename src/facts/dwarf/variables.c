/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Variables by name
 *
 * A variable of a file or a function that lives as long as the program has one expression as its
 * location: an address, or an offset in the block of thread-local variables.
 *
 *	DW_OP_addr 0x4030			int counter;
 *	DW_OP_addr 0x4030; DW_OP_plus_uconst 8	one of several that Clang merged
 *	DW_OP_const8u 16; DW_OP_form_tls_address	_Thread_local int counter;
 *
 * The compiler leaves out the location of a variable that it folded, and the linker leaves 0 in
 * that of one that it dropped. Such a variable still hides others of its name, and is listed.
 *
 * No section lists them by name, so all units are walked, and every variable is compared. One that
 * is defined apart from its declaration (a member of a class, or of a function that was inlined)
 * has its name in another DIE.
 */
#include "dwarf/variables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/walk.h"

enum { ROLE_VARIABLE = 1, ROLE_FUNCTION };

enum slot { NAME, LOCATION, ORIGIN, SPECIFICATION, DECLARATION, N_SLOTS };

static const uint16_t attrs[N_SLOTS] = {
	[NAME] = DW_AT_name,
	[LOCATION] = DW_AT_location,
	[ORIGIN] = DW_AT_abstract_origin,
	[SPECIFICATION] = DW_AT_specification,
	[DECLARATION] = DW_AT_declaration,
};

static uint8_t role_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_variable:
		return ROLE_VARIABLE;
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return ROLE_FUNCTION;
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
		return DW_ROLE_PRUNE;
	}
	return DW_ROLE_PASS;
}

static const struct dw_query query = {attrs, N_SLOTS, role_of};

/* ---- the place ---- */

static bool read_address(struct cursor *c, const struct dw_unit *u, uint8_t op, uint64_t *ret)
{
	switch (op) {
	case DW_OP_addr:
		*ret = cur_uint(c, dw_unit_addr_size(u));
		return true;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		return dw_unit_addrx(u, cur_uleb(c), ret, NULL) == 1;
	}
	return false;
}

/* The offset of a thread-local variable, before the operation that makes an address of it. */
static bool read_offset(struct cursor *c, const struct dw_unit *u, uint8_t op, uint64_t *ret)
{
	switch (op) {
	case DW_OP_const4u:
		*ret = cur_u32(c);
		return true;
	case DW_OP_const8u:
		*ret = cur_u64(c);
		return true;
	case DW_OP_constu:
		*ret = cur_uleb(c);
		return true;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		return dw_unit_addrx(u, cur_uleb(c), ret, NULL) == 1;
	}
	return false;
}

static bool is_tls_operation(uint8_t op)
{
	return op == DW_OP_form_tls_address || op == DW_OP_GNU_push_tls_address;
}

static bool read_place(struct cursor *c, const struct dw_unit *u, struct dw_variable_place *ret)
{
	uint8_t op = cur_u8(c);

	*ret = (struct dw_variable_place){0};
	if (!read_address(c, u, op, &ret->at)) {
		if (!read_offset(c, u, op, &ret->at) || !is_tls_operation(cur_u8(c)))
			return false;
		ret->is_thread_local = true;
	}
	if (cur_more(c) && cur_u8(c) == DW_OP_plus_uconst)
		ret->at += cur_uleb(c);
	return !cur_more(c) && !c->failed;
}

static bool place_of(const struct dw_unit *u, const struct dw_value *v,
		     struct dw_variable_place *ret)
{
	static const struct cursor_src src;

	if ((v->cls != DW_CLASS_EXPRLOC && v->cls != DW_CLASS_BLOCK) || !v->block.n)
		return false;
	struct cursor c = cursor_of(&src, v->block.p, v->block.n, false, NULL);
	/* The linker leaves 0 or -1 for a variable that it dropped. */
	return read_place(&c, u, ret) && ret->at != UINT64_MAX && (ret->is_thread_local || ret->at);
}

bool dw_variable_place(const struct dw_die *die, struct dw_variable_place *ret)
{
	struct dw_value v;

	return dw_attr(die, DW_AT_location, &v, NULL) == 1 && place_of(die->unit, &v, ret);
}

/* ---- one unit ---- */

struct open_function {
	uint64_t depth;
	struct dw_die die;
};

struct scan {
	const char *name;
	struct dw_walker walker;
	VEC(struct open_function) open;
	struct dw_variable_list found;
};

static void leave_functions(struct scan *s)
{
	while (s->open.n && s->open.p[s->open.n - 1].depth >= s->walker.lowest)
		s->open.n--;
}

static bool has_name(struct scan *s)
{
	struct dw_walker *w = &s->walker;
	const char *name = dw_seen_str(w, NAME);

	if (!name && (dw_seen(w, ORIGIN) || dw_seen(w, SPECIFICATION))) {
		struct dw_die die = dw_walker_die(w);
		name = dw_str_deep(&die, DW_AT_name);
	}
	return name && (!s->name || !strcmp(name, s->name));
}

/*
 * A variable without a place is listed where it hides others. The copies of a function are left
 * out: they have the variables of its abstract description.
 */
static bool hides_others(struct scan *s, const struct dw_variable *v)
{
	enum { OF_UNIT = 1 };
	struct dw_walker *w = &s->walker;

	if (!s->name || v->is_nested || dw_seen(w, ORIGIN))
		return false;
	return !v->is_declaration || (!v->function.tag && w->depth > OF_UNIT);
}

static int read_location(struct scan *s, struct dw_variable *ret)
{
	struct dw_walker *w = &s->walker;
	struct dw_value v;
	int rc = dw_seen(w, LOCATION) ? dw_seen_value(w, LOCATION, &v) : 0;

	ret->has_place = rc > 0 && place_of(w->unit, &v, &ret->place);
	return rc;
}

static int see_variable(struct scan *s)
{
	struct dw_walker *w = &s->walker;
	struct dw_variable found = {.is_declaration = dw_seen_flag(w, DECLARATION)};
	int rc = read_location(s, &found);

	if (s->open.n) {
		const struct open_function *f = &s->open.p[s->open.n - 1];
		found.function = f->die;
		found.is_nested = w->depth > f->depth + 1;
	}
	if (rc < 0 || (!found.has_place && !hides_others(s, &found)) || !has_name(s))
		return rc < 0 ? rc : 0;
	found.die = dw_walker_die(w);
	return VEC_ADD(&s->found.v, found) ? 0 : -ENOMEM;
}

static int see_function(struct scan *s)
{
	const struct open_function f = {.depth = s->walker.depth, .die = dw_walker_die(&s->walker)};

	if (!dw_walker_has_children(&s->walker))
		return 0;
	return VEC_ADD(&s->open, f) ? 0 : -ENOMEM;
}

static int scan_unit(struct scan *s, const struct dw_unit *u, struct cairn_err *err)
{
	struct dw_walker *w = &s->walker;

	if (!w->query)
		dw_walker_init(w, &query);
	int rc = dw_walker_enter(w, u, err);
	s->open.n = 0;
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0) {
		leave_functions(s);
		rc = rc == ROLE_VARIABLE ? see_variable(s) : see_function(s);
	}
	return rc == -ENOMEM ? err_nomem(err, "variables") : rc;
}

static void scan_fini(struct scan *s)
{
	dw_walker_fini(&s->walker);
	VEC_FREE(&s->open);
	dw_variable_list_fini(&s->found);
}

int dw_unit_variables(const struct dw_unit *u, struct dw_variable_list *ret, struct cairn_err *err)
{
	struct scan s = {0};
	int rc = scan_unit(&s, u, err);

	*ret = s.found;
	s.found = (struct dw_variable_list){0};
	scan_fini(&s);
	return rc;
}

/* ---- all units ---- */

struct job {
	const struct dwarf *dw;
	struct scan *scans; /* one per worker */
};

static int scan_item(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = ctx;

	return scan_unit(&job->scans[worker], dwarf_unit(job->dw, item), err);
}

static int by_offset(const void *a, const void *b)
{
	const struct dw_variable *x = a, *y = b;

	return (x->die.off > y->die.off) - (x->die.off < y->die.off);
}

static int merge(const struct scan *scans, unsigned int n, struct dw_variable_list *ret)
{
	for (unsigned int i = 0; i < n; i++)
		for (size_t k = 0; k < scans[i].found.v.n; k++)
			if (!VEC_ADD(&ret->v, scans[i].found.v.p[k]))
				return -ENOMEM;
	if (ret->v.n)
		qsort(ret->v.p, ret->v.n, sizeof(*ret->v.p), by_offset);
	return 0;
}

int dwarf_variables_named(const struct dwarf *dw, unsigned int threads, const char *name,
			  struct dw_variable_list *ret, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct job job = {.dw = dw, .scans = calloc(width, sizeof(*job.scans))};
	int rc = job.scans ? 0 : err_nomem(err, "variables");

	*ret = (struct dw_variable_list){0};
	for (unsigned int i = 0; job.scans && i < width; i++)
		job.scans[i].name = name;
	if (rc == 0)
		rc = pool_run(dwarf_n_units(dw), width, scan_item, &job, err);
	if (rc >= 0 && merge(job.scans, width, ret) < 0)
		rc = err_nomem(err, "variables");
	for (unsigned int i = 0; job.scans && i < width; i++)
		scan_fini(&job.scans[i]);
	free(job.scans);
	return rc < 0 ? err_while(err, rc, "looking for the variable %s", name) : 0;
}

void dw_variable_list_fini(struct dw_variable_list *list)
{
	VEC_FREE(&list->v);
}
