/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites from a sidecar
 *
 * A name leads to the numbers of functions that end in it; what else was typed (a file, a line, namespaces) is compared
 * with the front of each record. Then the record is read into the same structs that the debug information fills in, and
 * they live until close.
 */
#include <cairn/pack.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "loc/provider.h"
#include "loc/spec.h"
#include "loc/suggest.h"
#include "loc/symbol_names.h"
#include "pack/sites_types.h"
#include "pack/symbol_table.h"

struct pack_sites {
	struct cairn_sites sites; /* first */
	const struct cairn_pack *pack;
	struct pack_types types;
	struct arena arena; /* what was handed out */
};

/* Reading one record. */
struct reader {
	struct pack_sites *s;
	struct arena *arena;
	struct cursor c;
	int rc;
};

static struct pack_sites *own(struct cairn_sites *sites)
{
	return (struct pack_sites *)sites;
}

static const char *read_string(struct reader *r)
{
	return pack_string(r->s->pack, cur_number(&r->c));
}

static uint32_t read_type(struct reader *r)
{
	return pack_types_read(&r->s->types, cur_number(&r->c), &r->rc);
}

/* @n items of @size bytes, each of which takes at least a byte of the record; NULL when they are not there. */
static void *read_array(struct reader *r, uint64_t n, size_t size)
{
	if (r->rc < 0 || r->c.failed || n > cur_left(&r->c)) {
		cur_fail(&r->c, "as many items as are said to be there");
		return NULL;
	}
	void *p = arena_array(r->arena, n, size);
	if (!p)
		r->rc = -ENOMEM;
	return p;
}

/* ---- locations ---- */

static void read_piece(struct reader *r, struct cursor *c, struct cairn_piece *ret)
{
	ret->kind = (enum cairn_piece_kind)(cur_u8(c) % (CAIRN_PIECE_MISSING + 1));
	ret->off = (uint32_t)cur_uleb(c);
	ret->size = (uint32_t)cur_uleb(c);
	uint64_t n = cur_uleb(c);
	if (n > CAIRN_LOC_STEPS_MAX || c->failed) {
		cur_fail(c, "steps of a location");
		return;
	}
	struct cairn_loc_step *steps = arena_array(r->arena, n, sizeof(*steps));
	if (!steps) {
		r->rc = -ENOMEM;
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		steps[i].op = cur_u8(c);
		uint8_t both = cur_u8(c);
		steps[i].operand = both & 15;
		steps[i].size = both >> 4;
		steps[i].reg = cur_u8(c);
		steps[i].imm = cur_folded(c);
		if (steps[i].op > CAIRN_LOC_GE || steps[i].operand > CAIRN_LOC_SLOT)
			cur_fail(c, "a known step");
	}
	ret->steps = steps;
	ret->n_steps = (uint32_t)n;
	if (ret->kind == CAIRN_PIECE_BYTES)
		ret->bytes = cur_bytes(c, ret->size);
}

static void read_location(struct reader *r, uint32_t number, struct cairn_location *ret)
{
	struct cursor c = record_at(&r->s->pack->locations, number, NULL);
	uint8_t why = cur_u8(&c);
	uint64_t n = cur_uleb(&c);
	struct cairn_piece *pieces = n <= cur_left(&c) ? arena_array(r->arena, n, sizeof(*pieces)) : NULL;
	for (uint64_t i = 0; pieces && i < n && !c.failed; i++)
		read_piece(r, &c, &pieces[i]);
	if (!pieces || c.failed || why >= CAIRN_N_UNAVAILABLE) {
		ret->why = CAIRN_UNAVAIL_DAMAGED;
		return;
	}
	*ret = (struct cairn_location){.why = (enum cairn_unavailable)why, .n_pieces = (uint32_t)n, .pieces = pieces};
}

/* ---- where a place stands ---- */

static void read_own_chain(struct reader *r, struct cairn_site *s)
{
	s->container = read_string(r);
	uint64_t n = cur_uleb(&r->c);
	struct cairn_inlined_call *chain = read_array(r, n, sizeof(*chain));
	for (uint64_t i = 0; chain && i < n; i++) {
		chain[i].function = read_string(r);
		chain[i].call_file = read_string(r);
		chain[i].call_line = cur_number(&r->c);
		chain[i].call_column = cur_number(&r->c);
	}
	s->chain = chain;
	s->n_chain = chain ? (uint32_t)n : 0;
}

/* The chain of frame @number; depth is bounded by the number of frames, each of which stands before its children. */
static void read_frames(struct reader *r, uint32_t number, struct cairn_site *s)
{
	const struct cairn_pack *p = r->s->pack;
	struct frame f, parent;
	uint32_t n = 0;
	for (uint32_t i = number; frame_at(p, i, &f) && f.distance; i -= f.distance)
		n++;
	struct cairn_inlined_call *chain = arena_array(r->arena, n, sizeof(*chain));
	if (!chain) {
		r->rc = -ENOMEM;
		return;
	}
	if (!frame_at(p, number, &f)) {
		cur_fail(&r->c, "the number of a frame");
		return;
	}
	for (; s->n_chain < n && frame_at(p, number - f.distance, &parent); number -= f.distance, f = parent) {
		struct position call = call_of(p, &f, &parent);
		chain[s->n_chain++] = (struct cairn_inlined_call){function_string(p, f.function, FUNCTION_NAME),
								  pack_file(p, call.file), call.line, call.column};
	}
	s->container = function_string(p, f.function, FUNCTION_NAME);
	s->chain = chain;
}

/* ---- places ---- */

/* What put_manner() wrote. */
static void read_manner(struct cursor *c, struct cairn_site *s)
{
	uint8_t flags = cur_u8(c), what = cur_u8(c);
	s->kind = (enum cairn_site_kind)((what & 3) % (CAIRN_SITE_PART + 1));
	s->rule = (enum cairn_address_rule)((what >> 2) % (CAIRN_AT_SYMBOL + 1));
	s->has_off = flags & PLACE_HAS_OFF;
	if (s->has_off)
		s->off.v = (uint64_t)cur_folded(c);
	if (flags & PLACE_HAZARD)
		s->hazard = (enum cairn_hazard)(cur_uleb(c) % (CAIRN_HAZARD_MISEMULATED + 1));
	if (flags & PLACE_DOUBTS) {
		s->count_doubts = cur_number(c);
		s->n_behind = cur_number(c);
	}
}

static struct cairn_arg *new_args(struct reader *r, const struct cairn_function *f, struct cairn_site *s)
{
	struct cairn_arg *args = arena_array(r->arena, f->n_params, sizeof(*args));
	if (!args) {
		r->rc = -ENOMEM;
		return NULL;
	}
	for (uint32_t i = 0; i < f->n_params; i++)
		args[i] = (struct cairn_arg){.name = f->params[i].name, .type = f->params[i].type};
	s->args = args;
	s->n_args = f->n_params;
	return args;
}

static struct cairn_arg *read_own_args(struct reader *r, struct cairn_site *s)
{
	uint64_t n = cur_uleb(&r->c);
	struct cairn_arg *args = read_array(r, n, sizeof(*args));
	for (uint64_t i = 0; args && i < n && r->rc >= 0; i++) {
		args[i].name = read_string(r);
		args[i].type = read_type(r);
	}
	s->args = args;
	s->n_args = args ? (uint32_t)n : 0;
	return args;
}

/* What put_own_place() wrote. */
static void read_own_place(struct reader *r, const struct cairn_function *f, struct cairn_site *s)
{
	uint8_t flags = cur_u8(&r->c);
	read_manner(&r->c, s);
	s->at.v = r->s->pack->header->base + (uint64_t)cur_folded(&r->c);
	s->die = cur_uleb(&r->c);
	s->container_off = cur_folded(&r->c);
	if (flags & PLACE_OWN_CHAIN)
		read_own_chain(r, s);
	else
		read_frames(r, cur_number(&r->c), s);
	struct cairn_arg *args = flags & PLACE_OWN_ARGS ? read_own_args(r, s) : new_args(r, f, s);
	for (uint32_t i = 0; args && i < s->n_args; i++)
		read_location(r, cur_number(&r->c), &args[i].loc);
}

/* ---- marks ---- */

struct mark {
	uint64_t at, die;
	uint32_t manner, arguments;
	bool is_set, has_own_off;
	int64_t container_off; /* when it is its own */
};

/* The mark of frame @number; false when there is none. */
static bool mark_at(const struct cairn_pack *p, uint32_t number, struct mark *m)
{
	struct cursor c = record_at(&p->marks, number / PACK_MARKS_PER_BLOCK, NULL);
	*m = (struct mark){.at = p->header->base};
	for (uint32_t i = 0; i <= number % PACK_MARKS_PER_BLOCK; i++) {
		uint32_t head = cur_number(&c);
		m->is_set = head;
		if (!head)
			continue;
		m->has_own_off = head & 1;
		m->manner = (head >> 1) - 1;
		m->at += (uint64_t)cur_folded(&c);
		m->die += (uint64_t)cur_folded(&c);
		m->arguments = cur_number(&c);
		if (m->has_own_off)
			m->container_off = cur_folded(&c);
	}
	return m->is_set && !c.failed;
}

/* The out-of-line function around frame @number. */
static uint32_t root_of(const struct cairn_pack *p, uint32_t number)
{
	struct frame f;
	while (frame_at(p, number, &f) && f.distance)
		number -= f.distance;
	return number;
}

static void read_marked_place(struct reader *r, const struct cairn_function *f, uint32_t frame, struct cairn_site *s)
{
	const struct cairn_pack *p = r->s->pack;
	struct mark m, container;
	if (!mark_at(p, frame, &m)) {
		cur_fail(&r->c, "the number of a frame with a mark");
		return;
	}
	struct cursor manner = record_at(&p->manners, m.manner, NULL), locations = record_at(&p->arguments, m.arguments, NULL);
	read_manner(&manner, s);
	s->at.v = m.at;
	s->die = m.die;
	if (m.has_own_off)
		s->container_off = m.container_off;
	else if (mark_at(p, root_of(p, frame), &container))
		s->container_off = (int64_t)(m.at - container.at);
	read_frames(r, frame, s);
	struct cairn_arg *args = new_args(r, f, s);
	for (uint32_t i = 0; args && i < s->n_args; i++)
		read_location(r, cur_number(&locations), &args[i].loc);
	if (manner.failed || locations.failed)
		cur_fail(&r->c, "a mark with a manner and arguments");
}

static void read_place(struct reader *r, const struct cairn_function *f, bool own_places, uint32_t *frame,
		       struct cairn_site *s)
{
	struct cairn_vaddr start;
	if (own_places && cur_u8(&r->c)) {
		read_own_place(r, f, s);
	} else {
		*frame += unfold(cur_number(&r->c));
		read_marked_place(r, f, *frame, s);
	}
	if (s->has_off)
		s->off.v += s->at.v;
	if (cairn_pack_symbol_of(r->s->pack, s->at, &s->symbol, &start))
		s->symbol_off = s->at.v - start.v;
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

/* ---- functions ---- */

/* The front of a record: what names the function. Returns its flags. */
static uint8_t read_front(struct reader *r, struct cairn_function *f)
{
	const struct cairn_pack *p = r->s->pack;
	uint8_t flags = cur_u8(&r->c);
	*f = (struct cairn_function){0};
	if (flags & PLACES_OWN_FUNCTION) {
		f->decl_file = read_string(r);
		f->decl_line = cur_number(&r->c);
	} else {
		uint32_t number = cur_number(&r->c);
		f->name = function_string(p, number, FUNCTION_NAME);
		f->linkage_name = function_string(p, number, FUNCTION_LINKAGE);
		f->decl_file = pack_file(p, table_get(&p->functions, number, FUNCTION_FILE));
		f->decl_line = table_get(&p->functions, number, FUNCTION_LINE);
	}
	if (flags & PLACES_OWN_NAME) {
		f->name = read_string(r);
		f->linkage_name = read_string(r);
	}
	if (!f->name)
		f->name = "";
	return flags;
}

static void read_prototype(struct reader *r, struct cairn_function *f)
{
	const struct cairn_pack *p = r->s->pack;
	struct cursor c = record_at(&p->prototypes, cur_number(&r->c), NULL);
	uint8_t flags = cur_u8(&c);
	f->variadic = flags & PROTOTYPE_VARIADIC;
	f->params_unknown = flags & PROTOTYPE_PARAMS_UNKNOWN;
	f->return_type = pack_types_read(&r->s->types, cur_number(&c), &r->rc);
	/* A parameter is a byte or more. */
	struct cairn_param *params = arena_array(r->arena, cur_left(&c), sizeof(*params));
	if (!params) {
		r->rc = -ENOMEM;
		return;
	}
	for (; cur_more(&c) && r->rc >= 0; f->n_params++) {
		uint32_t number = cur_number(&c);
		params[f->n_params].name = pack_string(p, table_get(&p->parameters, number, PARAMETER_NAME));
		params[f->n_params].type =
			pack_types_read(&r->s->types, table_get(&p->parameters, number, PARAMETER_TYPE), &r->rc);
	}
	f->params = params;
	if (c.failed)
		cur_fail(&r->c, "the number of a prototype");
}

static struct reader reader_of(struct pack_sites *s, struct arena *arena, uint32_t number, struct cairn_err *err)
{
	return (struct reader){.s = s, .arena = arena, .c = record_at(&s->pack->places, number, err)};
}

static int read_function(struct pack_sites *s, struct arena *arena, uint32_t number, struct cairn_function *f,
			 struct cairn_err *err)
{
	struct reader r = reader_of(s, arena, number, err);
	uint8_t flags = read_front(&r, f);
	uint32_t frame = 0;
	read_prototype(&r, f);
	f->n_without_code = cur_number(&r.c);
	uint64_t n = cur_uleb(&r.c);
	struct cairn_site *sites = read_array(&r, n, sizeof(*sites));
	for (uint64_t i = 0; sites && i < n && r.rc >= 0 && !r.c.failed; i++)
		read_place(&r, f, flags & PLACES_OWN_PLACES, &frame, &sites[i]);
	if (r.rc < 0)
		return err_nomem(err, "the places of a function");
	if (r.c.failed)
		return -EBADMSG;
	count_shared(sites, (uint32_t)n);
	f->sites = sites;
	f->n_sites = (uint32_t)n;
	return 0;
}

/* Whether function @number is one of those that were asked for. */
static bool is_wanted(struct pack_sites *s, uint32_t number, const struct group_filter *want)
{
	struct reader r = reader_of(s, &s->arena, number, NULL);
	struct cairn_function f;
	read_front(&r, &f);
	struct group g = {.name = f.name, .linkage_name = f.linkage_name, .file = f.decl_file, .line = f.decl_line};
	return !r.c.failed && group_passes(want, &g);
}

/* ---- operations ---- */

/* Hand out @n functions. */
static int hand_out(struct pack_sites *s, const struct cairn_function *const *found, size_t n,
		    struct cairn_function_list *ret, struct cairn_err *err)
{
	const struct cairn_function **list = arena_array(&s->arena, n, sizeof(*list));
	if (!list)
		return err_nomem(err, "functions");
	if (n)
		memcpy(list, found, n * sizeof(*list));
	ret->n = n;
	ret->p = list;
	return (int)n;
}

/* Adds the functions among [@from, @to) of @numbers that are wanted. */
static int find_among(struct pack_sites *s, const struct table *numbers, uint32_t from, uint32_t to,
		      const struct group_filter *want, struct cairn_function_list *ret, struct cairn_err *err)
{
	VEC(const struct cairn_function *) found = {0};
	int rc = 0;
	for (uint32_t i = from; i < to && rc >= 0; i++) {
		uint32_t number = table_get(numbers, i, 0);
		if (number >= s->pack->places.n || !is_wanted(s, number, want))
			continue;
		struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
		rc = f ? read_function(s, &s->arena, number, f, err) : err_nomem(err, "a function");
		if (rc >= 0 && (f->n_sites || f->n_without_code) && !VEC_ADD(&found, f))
			rc = err_nomem(err, "functions");
	}
	if (rc >= 0)
		rc = hand_out(s, found.p, found.n, ret, err);
	VEC_FREE(&found);
	return rc;
}

/* ---- patterns ---- */

/* What a pattern matches, by the names that functions answer to and by those of their symbols. */
struct matches {
	bool *functions; /* by number */
	VEC(const struct pack_symbol_name *) bare; /* by address, each once */
};

static int by_address(const void *a, const void *b)
{
	const struct pack_symbol_name *x = *(const struct pack_symbol_name *const *)a, *y = *(const struct pack_symbol_name *const *)b;
	return x->at < y->at ? -1 : x->at > y->at;
}

static bool is_matched_symbol(const struct cairn_pack *p, const struct pack_symbol_name *s, const char *pattern)
{
	const char *name = pack_string(p, s->name);
	bool nowhere = s->what & SYMBOL_IMPORTED || (s->what & SYMBOL_BARE && s->at == SYMBOL_NOWHERE);
	return name && !nowhere && symbol_name_matches(pattern, name);
}

static int match_symbols(struct pack_sites *s, const char *pattern, struct matches *m)
{
	const struct cairn_pack *p = s->pack;
	size_t n = 0;
	for (uint32_t i = 0; i < p->n_symbol_names; i++) {
		const struct pack_symbol_name *symbol = &p->symbol_names[i];
		uint32_t number = symbol->what & SYMBOL_FUNCTION_MASK;
		if (!is_matched_symbol(p, symbol, pattern))
			continue;
		if (!(symbol->what & SYMBOL_BARE) && number < p->places.n)
			m->functions[number] = true;
		if (symbol->what & SYMBOL_BARE && !VEC_ADD(&m->bare, symbol))
			return -ENOMEM;
	}
	if (m->bare.n)
		qsort(m->bare.p, m->bare.n, sizeof(*m->bare.p), by_address);
	for (size_t i = 0; i < m->bare.n; i++)
		if (!n || m->bare.p[n - 1]->at != m->bare.p[i]->at)
			m->bare.p[n++] = m->bare.p[i];
	m->bare.n = n;
	return 0;
}

/* Frees in both cases: matches_fini(). */
static int match(struct pack_sites *s, const struct group_filter *want, struct matches *ret, struct cairn_err *err)
{
	*ret = (struct matches){.functions = calloc(s->pack->places.n + 1, sizeof(*ret->functions))};
	if (!ret->functions)
		return err_nomem(err, "functions");
	for (uint32_t i = 0; i < s->pack->places.n; i++)
		ret->functions[i] = is_wanted(s, i, want);
	bool symbols = want->is_pattern && !want->file;
	return symbols && match_symbols(s, want->name, ret) < 0 ? err_nomem(err, "symbols") : 0;
}

static void matches_fini(struct matches *m)
{
	free(m->functions);
	VEC_FREE(&m->bare);
}

/* @visitor gets each match; what it points to is in @arena, NULL: freed after the call. */
static int visit_matches(struct pack_sites *s, const struct matches *m, struct arena *arena, sites_visitor *visitor, void *ctx,
			 struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < s->pack->places.n + m->bare.n && !rc; i++) {
		bool bare = i >= s->pack->places.n;
		struct arena own;
		if (!bare && !m->functions[i])
			continue;
		arena_init(&own);
		struct arena *a = arena ? arena : &own;
		struct cairn_function *f = arena_alloc(a, sizeof(*f));
		if (!f)
			rc = err_nomem(err, "a function");
		else if (bare)
			rc = bare_function(s->pack, m->bare.p[i - s->pack->places.n], a, f);
		else
			rc = read_function(s, a, (uint32_t)i, f, err);
		if (!rc)
			rc = visitor(ctx, f);
		arena_fini(&own);
	}
	return rc;
}

struct found {
	VEC(const struct cairn_function *) v;
	const char *pattern;
	struct cairn_err *err;
};

static int keep(void *ctx, const struct cairn_function *f)
{
	struct found *found = ctx;
	if (!f->n_sites && !f->n_without_code)
		return 0;
	if (found->v.n == CAIRN_FIND_MAX)
		return err_set(found->err, -E2BIG, "%s matches more than %d functions; at most so many can be asked about at once",
			       found->pattern, CAIRN_FIND_MAX);
	return VEC_ADD(&found->v, f) ? 0 : err_nomem(found->err, "functions");
}

static int find_pattern(struct pack_sites *s, const struct group_filter *want, struct cairn_function_list *ret,
			struct cairn_err *err)
{
	struct found found = {.pattern = want->name, .err = err};
	struct matches m;
	int rc = match(s, want, &m, err);
	if (!rc)
		rc = visit_matches(s, &m, &s->arena, keep, &found, err);
	if (rc >= 0)
		rc = hand_out(s, found.v.p, found.v.n, ret, err);
	ret->found = CAIRN_FOUND_PATTERN;
	VEC_FREE(&found.v);
	matches_fini(&m);
	return rc;
}

/* ---- names of symbols ---- */

/* What a name stands for that no function has. */
static int find_symbol(struct pack_sites *s, const char *name, struct cairn_function_list *ret, struct cairn_err *err)
{
	struct named_symbols named = symbols_named(s->pack, name);
	VEC(const struct cairn_function *) found = {0};
	int rc = 0;
	for (uint32_t i = 0; i < named.n && rc >= 0; i++) {
		uint32_t what = named.p[i].what;
		bool bare = what & SYMBOL_BARE;
		ret->found = what & SYMBOL_INDIRECT ? CAIRN_FOUND_INDIRECT : CAIRN_FOUND_SYMBOL;
		if (what & SYMBOL_IMPORTED || (bare && named.p[i].at == SYMBOL_NOWHERE))
			continue;
		struct cairn_function *f = arena_alloc(&s->arena, sizeof(*f));
		if (!f)
			rc = -ENOMEM;
		else if (bare)
			rc = bare_function(s->pack, &named.p[i], &s->arena, f);
		else
			rc = read_function(s, &s->arena, what & SYMBOL_FUNCTION_MASK, f, err);
		if (rc >= 0 && !VEC_ADD(&found, f))
			rc = -ENOMEM;
	}
	if (rc >= 0)
		rc = hand_out(s, found.p, found.n, ret, err);
	VEC_FREE(&found);
	return rc == -ENOMEM ? err_nomem(err, "functions") : rc;
}

static int find(struct cairn_sites *sites, const char *spec, struct cairn_function_list *ret, struct cairn_err *err)
{
	struct pack_sites *s = own(sites);
	const struct cairn_pack *p = s->pack;
	struct group_filter want;
	char *copy = arena_strdup(&s->arena, spec);
	*ret = (struct cairn_function_list){0};
	if (!copy)
		return err_nomem(err, "a search");
	spec_parse(copy, &want);
	if (want.is_pattern)
		return find_pattern(s, &want, ret, err);
	uint32_t from, to;
	names_find(&p->place_names, spec_base_name(want.name), &from, &to);
	int rc = find_among(s, &p->place_names.entries, from, to, &want, ret, err);
	return rc || want.file ? rc : find_symbol(s, want.name, ret, err);
}

static int visit(struct cairn_sites *sites, const char *pattern, sites_visitor *visitor, void *ctx,
		 struct cairn_err *err)
{
	struct pack_sites *s = own(sites);
	struct group_filter want = {0};
	char *copy = pattern ? arena_strdup(&s->arena, pattern) : NULL;
	if (pattern && !copy)
		return err_nomem(err, "a pattern");
	if (copy)
		spec_parse(copy, &want);
	struct matches m;
	int rc = match(s, &want, &m, err);
	if (!rc)
		rc = visit_matches(s, &m, NULL, visitor, ctx, err);
	matches_fini(&m);
	return rc;
}

static uint64_t address_at(const struct cairn_pack *p, uint32_t i)
{
	return (uint64_t)table_get(&p->addresses, i, ADDRESS_HIGH) << 32 | table_get(&p->addresses, i, ADDRESS_LOW);
}

static bool symbol(struct cairn_sites *sites, struct cairn_vaddr at, char *name, size_t size)
{
	const struct cairn_pack *p = own(sites)->pack;
	uint32_t lo = 0, hi = p->addresses.n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		if (address_at(p, mid) < at.v)
			lo = mid + 1;
		else
			hi = mid;
	}
	bool found = lo < p->addresses.n && address_at(p, lo) == at.v;
	const char *text = found ? pack_string(p, table_get(&p->addresses, lo, ADDRESS_NAME)) : NULL;
	if (!text)
		return false;
	snprintf(name, size, "%s", text);
	return true;
}

static size_t missing(const struct cairn_sites *sites, const char **ret)
{
	*ret = "";
	return 0;
}

static int complete_type(struct cairn_sites *sites, uint32_t id, struct cairn_err *err)
{
	return pack_types_complete(&own(sites)->types, id, err);
}

/* Among the last components of names, as the debug information has them, and names of symbols. */
static int suggest(struct cairn_sites *sites, const char *spec, const char **ret, size_t max, struct cairn_err *err)
{
	struct pack_sites *s = own(sites);
	struct suggestions near = {.max = max < SUGGEST_MAX ? max : SUGGEST_MAX};
	struct group_filter want;
	char *copy = arena_strdup(&s->arena, spec);
	if (!copy)
		return err_nomem(err, "a name");
	spec_parse(copy, &want);
	near.wanted = spec_base_name(want.name);
	for (uint32_t i = 0; i < s->pack->places.n && near.max; i++) {
		struct reader r = reader_of(s, &s->arena, i, NULL);
		struct cairn_function f;
		read_front(&r, &f);
		if (!r.c.failed && f.name[0])
			suggest_offer(&near, spec_base_name(f.name));
		if (!r.c.failed && f.linkage_name)
			suggest_symbol(&near, f.linkage_name);
	}
	for (uint32_t i = 0; i < s->pack->n_symbol_names && near.max; i++) {
		const char *name = pack_string(s->pack, s->pack->symbol_names[i].name);
		if (name)
			suggest_symbol(&near, name);
	}
	memcpy(ret, near.names, near.n * sizeof(*ret));
	return (int)near.n;
}

static bool imports(const struct cairn_sites *sites, const char *name)
{
	struct named_symbols named = symbols_named(((const struct pack_sites *)sites)->pack, name);
	return named.n && named.p->what & SYMBOL_IMPORTED;
}

static void close_sites(struct cairn_sites *sites)
{
	struct pack_sites *s = own(sites);
	pack_types_fini(&s->types);
	arena_fini(&s->arena);
	free(s);
}

static const struct sites_ops ops = {
	.close = close_sites,
	.missing = missing,
	.complete_type = complete_type,
	.find = find,
	.visit = visit,
	.suggest = suggest,
	.imports = imports,
	.symbol = symbol,
};

size_t cairn_pack_sites_lost(const struct cairn_sites *sites)
{
	return ((const struct pack_sites *)sites)->types.n_lost;
}

bool cairn_pack_has_places(const struct cairn_pack *p)
{
	return p->places.n;
}

int cairn_pack_sites(const struct cairn_pack *p, const struct cairn_binary *bin, struct cairn_sites **ret,
		     struct cairn_err *err)
{
	if (!cairn_pack_has_places(p))
		return err_set(err, -ENODATA, "%s: a sidecar without the places of functions; make it with: cairn pack FILE",
			       elf_path(p->elf));
	struct pack_sites *s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, "the sites of a binary");
	s->pack = p;
	arena_init(&s->arena);
	if (pack_types_init(&s->types, p) < 0) {
		close_sites(&s->sites);
		return err_nomem(err, "types");
	}
	s->sites = (struct cairn_sites){.ops = &ops, .bin = bin, .graph = s->types.graph};
	*ret = &s->sites;
	return 0;
}
