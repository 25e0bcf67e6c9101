/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/sites_read.h"

#include <errno.h>

#include <cairn/location.h>

#include "base/err.h"
#include "base/map.h"
#include "base/vec.h"
#include "sites/provider.h"
#include "sites/quirks/icf_args.h"

struct mark {
	uint64_t at, die;
	uint32_t attrs, arguments;
	bool is_set, has_own_off;
	int64_t container_off; /* when it is its own */
};

/*
 * Marks are distances from the previous marks in their block, so they are read from the block's
 * first on.
 */
struct marks {
	struct cursor c;
	uint32_t block, next; /* the one to be read next, in the block; 0: none is read yet */
	struct mark last;
};

/* Reading one record. */
struct reader {
	const struct cairn_sidecar *sidecar;
	struct sidecar_types *types;
	struct arena *arena;
	struct cursor c;
	int rc;
	struct map args;          /* those that marks share: pointers, by number of the arguments */
	VEC(struct frame) frames; /* from the site at hand outwards */
	struct marks marks;
	uint32_t symbol; /* near which the next site's is */
};

static void reader_fini(struct reader *r)
{
	map_fini(&r->args);
	VEC_FREE(&r->frames);
}

static const char *read_string(struct reader *r)
{
	return sidecar_string(r->sidecar, cur_number(&r->c));
}

static uint32_t read_type(struct reader *r)
{
	return sidecar_types_read(r->types, cur_number(&r->c), &r->rc);
}

/*
 * @n items of @size bytes, each of which takes at least a byte of the record; NULL when they are
 * not there.
 */
static void *read_array(struct reader *r, uint64_t n, size_t size)
{
	if (r->rc < 0 || r->c.failed || n > cur_left(&r->c)) {
		cur_fail(&r->c, "the number of items that the record gives");
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

/* The reason why there is no value, and the rule that gave it. False: no known one. */
static bool read_reason(struct cursor *c, struct cairn_location *ret)
{
	uint8_t byte = cur_u8(c);
	const struct cairn_quirk_rule *rule =
		byte & LOCATION_BY_QUIRK ? cairn_quirk_rule(byte & ~LOCATION_BY_QUIRK) : NULL;
	*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_DAMAGED};
	if (byte & LOCATION_BY_QUIRK ? !rule || rule->why == CAIRN_AVAILABLE
				     : byte >= CAIRN_N_UNAVAILABLE)
		return false;
	ret->why = rule ? rule->why : (enum cairn_unavailable)byte;
	ret->quirk = rule ? byte & ~LOCATION_BY_QUIRK : 0;
	return true;
}

static void read_location(struct reader *r, uint32_t number, struct cairn_location *ret)
{
	struct cursor c = record_at(&r->sidecar->locations, number, NULL);
	struct cairn_location loc;
	bool is_known = read_reason(&c, &loc);
	uint64_t n = cur_uleb(&c);
	struct cairn_piece *pieces = n <= cur_left(&c) && n <= UINT16_MAX
					     ? arena_array(r->arena, n, sizeof(*pieces))
					     : NULL;
	for (uint64_t i = 0; pieces && i < n && !c.failed; i++)
		read_piece(r, &c, &pieces[i]);
	*ret = loc;
	if (!pieces || c.failed || !is_known) {
		*ret = (struct cairn_location){.why = CAIRN_UNAVAIL_DAMAGED};
		return;
	}
	ret->n_pieces = (uint16_t)n;
	ret->pieces = pieces;
}

/* ---- where a site stands ---- */

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

/*
 * The chain of frame @number. A frame is written after all of its containers, so the number of
 * frames bounds the depth. Returns the frame of the out-of-line function around it.
 */
static uint32_t read_frames(struct reader *r, uint32_t number, struct cairn_site *s)
{
	const struct cairn_sidecar *p = r->sidecar;
	struct frame f;
	r->frames.n = 0;
	for (uint32_t at = number; frame_at(p, at, &f); at -= f.distance) {
		if (!VEC_ADD(&r->frames, f)) {
			r->rc = -ENOMEM;
			return number;
		}
		if (!f.distance)
			break;
	}
	uint32_t n = r->frames.n ? (uint32_t)r->frames.n - 1 : 0;
	struct cairn_inlined_call *chain = arena_array(r->arena, n, sizeof(*chain));
	if (!chain) {
		r->rc = -ENOMEM;
		return number;
	}
	if (!r->frames.n) {
		cur_fail(&r->c, "the number of a frame");
		return number;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct frame *own = &r->frames.p[i];
		struct position call = call_of(p, own, own + 1);
		chain[i] = (struct cairn_inlined_call){
			function_string(p, own->function, FUNCTION_NAME),
			sidecar_file(p, call.file), call.line, call.column};
		number -= own->distance;
	}
	s->container = function_string(p, r->frames.p[n].function, FUNCTION_NAME);
	s->body = (uint64_t)number + 1;
	s->chain = chain;
	s->n_chain = n;
	return number;
}

/* ---- sites ---- */

/* Reads the output of put_site_attrs(). */
static void read_site_attrs(struct cursor *c, struct cairn_site *s)
{
	uint8_t flags = cur_u8(c), what = cur_u8(c);
	s->kind = (enum cairn_site_kind)((what & 3) % (CAIRN_SITE_PART + 1));
	s->rule = (enum cairn_address_rule)((what >> 2) % (CAIRN_AT_SYMBOL + 1));
	s->has_off = flags & SITE_HAS_OFF;
	if (s->has_off)
		s->off.v = (uint64_t)cur_folded(c);
	if (flags & SITE_HAZARD)
		s->hazard = sidecar_hazard(cur_uleb(c));
	if (flags & SITE_DOUBTS) {
		s->count_caveats = cur_number(c);
		s->n_bypasses = cur_number(c);
	}
}

static struct cairn_arg *new_args(struct reader *r, const struct cairn_function *f,
				  struct cairn_site *s)
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

/* Reads the output of put_own_site(). */
static void read_own_site(struct reader *r, const struct cairn_function *f, struct cairn_site *s)
{
	uint8_t flags = cur_u8(&r->c);
	read_site_attrs(&r->c, s);
	s->at.v = r->sidecar->header->base + (uint64_t)cur_folded(&r->c);
	s->die = cur_uleb(&r->c);
	s->container_off = cur_folded(&r->c);
	if (flags & SITE_OWN_CHAIN)
		read_own_chain(r, s);
	else
		read_frames(r, cur_number(&r->c), s);
	struct cairn_arg *args = flags & SITE_OWN_ARGS ? read_own_args(r, s) : new_args(r, f, s);
	for (uint32_t i = 0; args && i < s->n_args; i++)
		read_location(r, cur_number(&r->c), &args[i].loc);
}

/* ---- marks ---- */

static void next_mark(struct marks *marks)
{
	struct cursor *c = &marks->c;
	struct mark *m = &marks->last;
	uint32_t head = cur_number(c);
	marks->next++;
	m->is_set = head;
	if (!head)
		return;
	m->has_own_off = head & 1;
	m->attrs = (head >> 1) - 1;
	m->at += (uint64_t)cur_folded(c);
	m->die += (uint64_t)cur_folded(c);
	m->arguments = cur_number(c);
	if (m->has_own_off)
		m->container_off = cur_folded(c);
}

/*
 * The mark of frame @number; false when there is none. Cheap when it follows the last requested one
 * in the same block.
 */
static bool mark_at(struct reader *r, uint32_t number, struct mark *ret)
{
	uint32_t block = number / SIDECAR_MARKS_PER_BLOCK, i = number % SIDECAR_MARKS_PER_BLOCK;
	struct marks *marks = &r->marks;
	if (!marks->next || marks->block != block || marks->next > i + 1)
		*marks = (struct marks){.c = record_at(&r->sidecar->marks, block, NULL),
					.block = block,
					.last.at = r->sidecar->header->base};
	while (marks->next <= i)
		next_mark(marks);
	*ret = marks->last;
	return ret->is_set && !marks->c.failed;
}

/*
 * The arguments with @number, all of them of the function's parameters. Few differ from site to
 * site: each is read once.
 */
static void read_shared_args(struct reader *r, const struct cairn_function *f, uint32_t number,
			     struct cairn_site *s)
{
	uint64_t known;
	if (map_get(&r->args, number, &known)) {
		s->args = (const struct cairn_arg *)(uintptr_t)known;
		s->n_args = f->n_params;
		return;
	}
	struct cursor locations = record_at(&r->sidecar->arguments, number, NULL);
	struct cairn_arg *args = new_args(r, f, s);
	for (uint32_t i = 0; args && i < s->n_args; i++)
		read_location(r, cur_number(&locations), &args[i].loc);
	if (locations.failed)
		cur_fail(&r->c, "a mark with arguments");
	if (map_put(&r->args, number, (uintptr_t)args) < 0)
		r->rc = -ENOMEM;
}

static void read_marked_site(struct reader *r, const struct cairn_function *f, uint32_t frame,
			     struct cairn_site *s)
{
	struct mark m, container;
	/* The container's mark comes before the frame's, often in the same block. */
	uint32_t root = read_frames(r, frame, s);
	bool has_container = root != frame && mark_at(r, root, &container);
	if (!mark_at(r, frame, &m)) {
		cur_fail(&r->c, "the number of a frame with a mark");
		return;
	}
	struct cursor attrs = record_at(&r->sidecar->site_attrs, m.attrs, NULL);
	read_site_attrs(&attrs, s);
	s->at.v = m.at;
	s->die = m.die;
	if (m.has_own_off)
		s->container_off = m.container_off;
	else if (has_container)
		s->container_off = (int64_t)(m.at - container.at);
	read_shared_args(r, f, m.arguments, s);
	if (attrs.failed)
		cur_fail(&r->c, "a mark with a attrs");
}

static void read_site(struct reader *r, const struct cairn_function *f, bool own_sites,
		      uint32_t *frame, struct cairn_site *s)
{
	struct cairn_vaddr start;
	if (own_sites && cur_u8(&r->c)) {
		read_own_site(r, f, s);
	} else {
		*frame += unfold(cur_number(&r->c));
		read_marked_site(r, f, *frame, s);
	}
	if (s->has_off)
		s->off.v += s->at.v;
	if (sidecar_symbol_near(r->sidecar, &r->symbol, s->at, &s->symbol, &start))
		s->symbol_off = s->at.v - start.v;
}

/* ---- functions ---- */

/* The front of a record: the names of the function. Returns its flags. */
static uint8_t read_front(struct reader *r, struct cairn_function *f)
{
	const struct cairn_sidecar *p = r->sidecar;
	uint8_t flags = cur_u8(&r->c);
	*f = (struct cairn_function){0};
	if (flags & SITES_OWN_FUNCTION) {
		f->decl_file = read_string(r);
		f->decl_line = cur_number(&r->c);
	} else {
		uint32_t number = cur_number(&r->c);
		f->name = function_string(p, number, FUNCTION_NAME);
		f->linkage_name = function_string(p, number, FUNCTION_LINKAGE);
		f->decl_file = sidecar_file(p, table_get(&p->functions, number, FUNCTION_FILE));
		f->decl_line = table_get(&p->functions, number, FUNCTION_LINE);
	}
	if (flags & SITES_OWN_NAME) {
		f->name = read_string(r);
		f->linkage_name = read_string(r);
	}
	if (!f->name)
		f->name = "";
	return flags;
}

static void read_prototype(struct reader *r, struct cairn_function *f)
{
	const struct cairn_sidecar *p = r->sidecar;
	struct cursor c = record_at(&p->prototypes, cur_number(&r->c), NULL);
	uint8_t flags = cur_u8(&c);
	f->variadic = flags & PROTOTYPE_VARIADIC;
	f->params_unknown = flags & PROTOTYPE_PARAMS_UNKNOWN;
	f->return_type = sidecar_types_read(r->types, cur_number(&c), &r->rc);
	/* A parameter is a byte or more. */
	struct cairn_param *params = arena_array(r->arena, cur_left(&c), sizeof(*params));
	if (!params) {
		r->rc = -ENOMEM;
		return;
	}
	for (; cur_more(&c) && r->rc >= 0; f->n_params++) {
		uint32_t number = cur_number(&c);
		params[f->n_params].name =
			sidecar_string(p, table_get(&p->parameters, number, PARAMETER_NAME));
		params[f->n_params].type = sidecar_types_read(
			r->types, table_get(&p->parameters, number, PARAMETER_TYPE), &r->rc);
	}
	f->params = params;
	if (c.failed)
		cur_fail(&r->c, "the number of a prototype");
}

bool sites_read_name(const struct cairn_sidecar *p, uint32_t number, struct cairn_function *ret)
{
	struct reader r = {.sidecar = p, .c = record_at(&p->sites, number, NULL)};
	read_front(&r, ret);
	return !r.c.failed;
}

/* No site is handed out before the code there was seen, where it can be. */
static int check_code(const struct cairn_sidecar *p, const struct cairn_function *f,
		      struct cairn_err *err)
{
	bool same = true;
	for (uint32_t i = 0; i < f->n_sites && same; i++)
		same = cairn_sidecar_covers(p, f->sites[i].at);
	return cairn_sidecar_trouble(p, err);
}

int sites_read_function(struct sidecar_types *types, struct arena *arena, uint32_t number,
			struct cairn_function *ret, struct cairn_err *err)
{
	const struct cairn_sidecar *p = types->sidecar;
	struct reader r = {.sidecar = p,
			   .types = types,
			   .arena = arena,
			   .c = record_at(&p->sites, number, err)};
	uint8_t flags = read_front(&r, ret);
	uint32_t frame = 0;
	read_prototype(&r, ret);
	ret->n_without_code = cur_number(&r.c);
	uint64_t n = cur_uleb(&r.c);
	struct cairn_site *sites = read_array(&r, n, sizeof(*sites));
	for (uint64_t i = 0; sites && i < n && r.rc >= 0 && !r.c.failed; i++)
		read_site(&r, ret, flags & SITES_OWN_SITES, &frame, &sites[i]);
	reader_fini(&r);
	if (r.rc < 0)
		return err_nomem(err, "the sites of a function");
	/* A wrong checksum explains more than unexpected contents. */
	if (r.c.failed)
		return cairn_sidecar_trouble(p, err) < 0 ? cairn_sidecar_trouble(p, err) : -EBADMSG;
	sites_count_shared(sites, (uint32_t)n);
	if (icf_args_settle(sites, (uint32_t)n, r.arena) < 0)
		return err_nomem(err, "the sites of a function");
	ret->sites = sites;
	ret->n_sites = (uint32_t)n;
	return check_code(p, ret, err);
}
