/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/globals.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "elf/bindings.h"
#include "sites/provider.h"

enum { SCOPED_NAME_MAX = 1024 };

struct globals_search {
	struct globals_search *next;
	const char *name; /* NULL: of a unit */
	const struct dw_unit *unit;
	struct site_globals found;
};

/* ---- one variable ---- */

/* The scopes of C++ are written "f()::" where they are functions. */
static void remove_parentheses(char *name)
{
	char *to = name;

	for (const char *from = name; *from;) {
		if (!strncmp(from, "()::", 4))
			from += 2;
		else
			*to++ = *from++;
	}
	*to = 0;
}

/* In C no scope is listed, and the function around it is one. */
static char *scoped_name(const struct globals *g, const struct dw_variable *v)
{
	char name[SCOPED_NAME_MAX];
	int n = dw_qualified_name(g->dw, &v->die, name, sizeof(name));
	const char *own = dw_str_deep(&v->die, DW_AT_name);
	const char *function = v->function.tag ? dw_str_deep(&v->function, DW_AT_name) : NULL;

	if (n <= 0 || (size_t)n >= sizeof(name))
		return arena_strdup(g->arena, own);
	if (function && !strcmp(name, own))
		return arena_printf(g->arena, "%s::%s", function, own);
	remove_parentheses(name);
	return arena_strdup(g->arena, name);
}

static void set_declaration(const struct dw_variable *v, struct site_global *ret)
{
	struct dw_die owner = v->die;
	struct dw_value value;

	if (dw_attr_deep(&v->die, DW_AT_decl_file, &value, &owner, NULL) == 1)
		ret->file = dw_unit_file(owner.unit, value.u);
	ret->unit = dw_unit_name(owner.unit);
	if (dw_attr_deep(&v->die, DW_AT_decl_line, &value, NULL, NULL) == 1)
		ret->line = (uint32_t)value.u;
	ret->is_external =
		dw_attr_deep(&v->die, DW_AT_external, &value, NULL, NULL) == 1 && value.u;
	ret->is_in_function = v->function.tag;
	ret->is_nested = v->is_nested;
	ret->is_declaration = v->is_declaration;
	ret->has_place = v->has_place;
}

/* In memory at the end of some steps. */
static int in_memory(struct arena *arena, const struct cairn_loc_step *steps, uint32_t n,
		     struct cairn_location *ret, struct cairn_err *err)
{
	struct cairn_loc_step *copy = arena_array(arena, n, sizeof(*copy));
	struct cairn_piece *piece = arena_alloc(arena, sizeof(*piece));

	if (!copy || !piece)
		return err_nomem(err, "variables");
	memcpy(copy, steps, n * sizeof(*copy));
	*piece = (struct cairn_piece){.kind = CAIRN_PIECE_MEMORY, .n_steps = n, .steps = copy};
	*ret = (struct cairn_location){.n_pieces = 1, .pieces = piece};
	return 0;
}

/* The name of its symbol. */
static const char *linkage_name(const struct dw_die *die)
{
	const char *name = dw_str_deep(die, DW_AT_linkage_name);

	return name ? name : dw_str_deep(die, DW_AT_name);
}

enum { SLOT_MODULE, SLOT_TABLE, SLOT_IS_VALID, SLOT_ENTRY, WORD = sizeof(uint64_t) };

static struct cairn_loc_step step_of(enum cairn_loc_op op, int64_t imm)
{
	return (struct cairn_loc_step){
		.op = (uint8_t)op, .size = op == CAIRN_LOC_LOAD ? WORD : 0, .imm = imm};
}

static struct cairn_loc_step step_with(enum cairn_loc_op op, int slot)
{
	return (struct cairn_loc_step){.op = (uint8_t)op, .operand = CAIRN_LOC_SLOT, .imm = slot};
}

/*
 * glibc's table of a thread is at the second word after the thread pointer. The entry of a module
 * is 16 bytes: the address of its block, or -1; and what to free, which is 0 for blocks that the
 * thread has from its start. The entry before the first one has the number of entries.
 *
 * Blocks of libraries that were loaded later are refused: after dlclose() an entry may be that of
 * another library. Where there is no block, the address is in the first page, which no program
 * maps.
 */
static int in_module(const struct globals *g, const struct elf_thread_place *place,
		     struct cairn_location *ret, struct cairn_err *err)
{
	enum { ENTRY = 16 };
	const struct cairn_loc_step steps[] = {step_of(CAIRN_LOC_ADDR, (int64_t)place->slot.v),
					       step_of(CAIRN_LOC_LOAD, 0),
					       step_of(CAIRN_LOC_SAVE, SLOT_MODULE),
					       step_of(CAIRN_LOC_THREAD, 0),
					       step_of(CAIRN_LOC_ADD, WORD),
					       step_of(CAIRN_LOC_LOAD, 0),
					       step_of(CAIRN_LOC_SAVE, SLOT_TABLE),
					       step_of(CAIRN_LOC_SUB, ENTRY),
					       step_of(CAIRN_LOC_LOAD, 0),
					       step_with(CAIRN_LOC_LE, SLOT_MODULE),
					       step_of(CAIRN_LOC_SAVE, SLOT_IS_VALID),
					       step_of(CAIRN_LOC_CONST, ENTRY),
					       step_with(CAIRN_LOC_MUL, SLOT_MODULE),
					       step_with(CAIRN_LOC_ADD, SLOT_TABLE),
					       step_of(CAIRN_LOC_SAVE, SLOT_ENTRY),
					       step_of(CAIRN_LOC_ADD, WORD),
					       step_of(CAIRN_LOC_LOAD, 0),
					       step_of(CAIRN_LOC_EQ, 0),
					       step_with(CAIRN_LOC_MUL, SLOT_IS_VALID),
					       step_of(CAIRN_LOC_SAVE, SLOT_IS_VALID),
					       step_of(CAIRN_LOC_CONST, 0),
					       step_with(CAIRN_LOC_ADD, SLOT_ENTRY),
					       step_of(CAIRN_LOC_LOAD, 0),
					       step_with(CAIRN_LOC_MUL, SLOT_IS_VALID),
					       step_of(CAIRN_LOC_ADD, place->add)};

	return in_memory(g->arena, steps, sizeof(steps) / sizeof(steps[0]), ret, err);
}

static int set_thread_location(const struct globals *g, const struct dw_variable *v,
			       struct site_global *ret, struct cairn_err *err)
{
	enum { FIRST_PAGE = 4096 };
	struct elf_thread_place place;
	int rc = elf_thread_place_of(binary_main(dwarf_binary(g->dw)), v->place.at, &place, err);
	const struct cairn_loc_step fixed[] = {step_of(CAIRN_LOC_THREAD, 0),
					       step_of(CAIRN_LOC_ADD, place.add)};
	const struct cairn_loc_step by_slot[] = {step_of(CAIRN_LOC_ADDR, (int64_t)place.slot.v),
						 step_of(CAIRN_LOC_LOAD, 0),
						 step_of(CAIRN_LOC_SAVE, 0),
						 step_of(CAIRN_LOC_THREAD, 0),
						 step_with(CAIRN_LOC_ADD, 0),
						 step_of(CAIRN_LOC_ADD, place.add)};

	ret->loc.why = CAIRN_UNAVAIL_THREAD_LOCAL;
	if (rc < 0)
		return rc;
	switch (place.way) {
	case ELF_THREAD_FIXED:
		return in_memory(g->arena, fixed, 2, &ret->loc, err);
	case ELF_THREAD_OFFSET:
		return in_memory(g->arena, by_slot, 6, &ret->loc, err);
	case ELF_THREAD_MODULE:
		return place.add >= FIRST_PAGE ? 0 : in_module(g, &place, &ret->loc, err);
	case ELF_THREAD_UNKNOWN:
		break;
	}
	return 0;
}

/* The linker leaves 0 for a thread-local variable that it dropped, which is also the first offset. */
static bool is_dropped(const struct globals *g, const struct dw_variable *v)
{
	const struct cairn_binary *bin = dwarf_binary(g->dw);
	const char *name = linkage_name(&v->die);

	if (!v->place.is_thread_local || v->place.at)
		return false;
	return !elf_has_thread_symbol(binary_main(bin), name, 0) &&
	       (!binary_debug(bin) || !elf_has_thread_symbol(binary_debug(bin), name, 0));
}

static int set_location(const struct globals *g, const struct dw_variable *v,
			struct site_global *ret, struct cairn_err *err)
{
	struct cairn_vaddr at = {v->place.at}, slot = {0};
	int binding = ELF_BOUND_HERE;

	ret->loc.why = v->is_declaration ? CAIRN_UNAVAIL_OTHER_FILE : CAIRN_UNAVAIL_OPTIMISED_OUT;
	if (!v->has_place || is_dropped(g, v))
		return 0;
	if (v->place.is_thread_local)
		return set_thread_location(g, v, ret, err);
	if (ret->is_external)
		binding = elf_binding_of(binary_main(dwarf_binary(g->dw)), at,
					 linkage_name(&v->die), &slot, err);
	ret->loc.why = CAIRN_UNAVAIL_OTHER_FILE;
	if (binding < 0 || binding == ELF_BOUND_UNKNOWN)
		return binding < 0 ? binding : 0;
	const struct cairn_loc_step steps[] = {
		{.op = CAIRN_LOC_ADDR,
		 .imm = (int64_t)(binding == ELF_BOUND_BY_SLOT ? slot.v : at.v)},
		{.op = CAIRN_LOC_LOAD, .size = sizeof(uint64_t)}};
	return in_memory(g->arena, steps, binding == ELF_BOUND_BY_SLOT ? 2 : 1, &ret->loc, err);
}

static int make(const struct globals *g, const struct dw_variable *v, struct site_global *ret,
		struct cairn_err *err)
{
	ret->name = scoped_name(g, v);
	set_declaration(v, ret);
	if (!ret->name)
		return err_nomem(err, "variables");
	int rc = set_location(g, v, ret, err);
	return rc < 0 ? rc : dwarf_type_of(g->types, &v->die, &ret->type, err);
}

/* The DIE that has the name; a definition, and the copies of a function, refer to it. */
static struct dw_die named_die(const struct dw_variable *v)
{
	struct dw_die owner = v->die;
	struct dw_value value;

	dw_attr_deep(&v->die, DW_AT_name, &value, &owner, NULL);
	return owner;
}

/* A thread-local variable at 0 may be one that the linker dropped. */
static bool has_own_place(const struct dw_variable *v)
{
	return !v->place.is_thread_local || v->place.at;
}

/* LTO, too, describes a variable twice, and only once with its place. */
static bool is_same(const struct dw_variable *v, const struct dw_variable *other)
{
	struct dw_die a, b;

	if (v->has_place && other->has_place && has_own_place(v) && has_own_place(other))
		return v->place.at == other->place.at &&
		       v->place.is_thread_local == other->place.is_thread_local;
	a = named_die(v);
	b = named_die(other);
	return a.unit == b.unit && a.off == b.off;
}

/* The units that include a header, and the copies of a function, describe one variable each. */
static bool is_known(const struct dw_variable_list *list, size_t i)
{
	const struct dw_variable *v = &list->v.p[i], *other = list->v.p;

	for (size_t k = 0; k < list->v.n; k++, other++)
		if (k != i &&
		    (v->has_place ? other->has_place && k < i : other->has_place || k < i) &&
		    is_same(v, other))
			return true;
	return false;
}

/* ---- searches ---- */

static bool is_wanted(const struct dw_variable_list *list, size_t i, bool with_static)
{
	return (with_static || !list->v.p[i].function.tag) && !is_known(list, i);
}

static int take(struct globals *g, const struct dw_variable_list *list,
		struct globals_search *search, struct cairn_err *err)
{
	struct site_global *found = arena_array(g->arena, list->v.n + 1, sizeof(*found));
	size_t n = 0;

	if (!found)
		return err_nomem(err, "variables");
	for (size_t i = 0; i < list->v.n; i++) {
		if (!is_wanted(list, i, search->name))
			continue;
		int rc = make(g, &list->v.p[i], &found[n++], err);
		if (rc < 0)
			return rc;
	}
	search->found = (struct site_globals){.n = n, .p = found};
	return 0;
}

static const struct globals_search *known_search(const struct globals *g, const char *name,
						 const struct dw_unit *unit)
{
	for (const struct globals_search *s = g->searches; s; s = s->next)
		if (s->unit == unit && !s->name == !name && (!name || !strcmp(s->name, name)))
			return s;
	return NULL;
}

static int make_search(struct globals *g, const char *name, const struct dw_unit *unit,
		       struct site_globals *ret, struct cairn_err *err)
{
	struct globals_search *search = arena_alloc(g->arena, sizeof(*search));
	struct dw_variable_list list = {0};
	int rc = unit ? dw_unit_variables(unit, &list, err)
		      : dwarf_variables_named(g->dw, g->threads, name, &list, err);

	if (rc >= 0 && !search)
		rc = err_nomem(err, "variables");
	if (rc >= 0) {
		search->unit = unit;
		search->name = name ? arena_strdup(g->arena, name) : NULL;
		rc = name && !search->name ? err_nomem(err, "variables")
					   : take(g, &list, search, err);
	}
	dw_variable_list_fini(&list);
	if (rc < 0)
		return rc;
	search->next = g->searches;
	g->searches = search;
	*ret = search->found;
	return (int)ret->n;
}

static int find(struct globals *g, const char *name, const struct dw_unit *unit,
		struct site_globals *ret, struct cairn_err *err)
{
	const struct globals_search *known = known_search(g, name, unit);

	if (!known)
		return make_search(g, name, unit, ret, err);
	*ret = known->found;
	return (int)ret->n;
}

int globals_find(struct globals *g, const char *name, struct site_globals *ret,
		 struct cairn_err *err)
{
	return find(g, name, NULL, ret, err);
}

int globals_of_unit(struct globals *g, const struct dw_unit *unit, struct site_globals *ret,
		    struct cairn_err *err)
{
	return find(g, NULL, unit, ret, err);
}

int sites_globals(struct cairn_sites *sites, const char *name, struct site_globals *ret,
		  struct cairn_err *err)
{
	if (!sites->ops->globals)
		return err_set(err, -EOPNOTSUPP,
			       "only the debug information has the variables of files");
	return sites->ops->globals(sites, name, ret, err);
}

/* ---- names ---- */

/* @tail is all of the first @n characters of @whole, or the end of them after @separator. */
static bool is_tail(const char *whole, size_t n, const char *tail, size_t n_tail, char separator)
{
	return n_tail <= n && !strncmp(whole + n - n_tail, tail, n_tail) &&
	       (n_tail == n || whole[n - n_tail - 1] == separator);
}

static bool is_of_file(const char *path, const char *file, size_t n)
{
	return path && is_tail(path, strlen(path), file, n, '/');
}

/* The length of the scopes in a name, without the "::" after them. */
static size_t scopes_length(const char *name)
{
	size_t n = 0;

	for (const char *at = strstr(name, "::"); at; at = strstr(at + 2, "::"))
		n = (size_t)(at - name);
	return n;
}

bool global_is_in(const struct site_global *g, const char *scopes)
{
	size_t n = scopes_length(g->name);
	const char *colons = strstr(scopes, "::"), *rest = colons ? colons + 2 : "";
	size_t n_first = colons ? (size_t)(colons - scopes) : strlen(scopes);

	if (is_tail(g->name, n, scopes, strlen(scopes), ':'))
		return true;
	return (is_of_file(g->file, scopes, n_first) || is_of_file(g->unit, scopes, n_first)) &&
	       (!*rest || is_tail(g->name, n, rest, strlen(rest), ':'));
}
