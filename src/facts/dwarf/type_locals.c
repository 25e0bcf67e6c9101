/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types that functions define for themselves
 *
 *	int f(void) { struct inner { int a; } in; ... }		"f::inner"
 *
 * Only its function can name such a type. So the index of definitions skips functions, which makes
 * it fast. Here all functions are walked, if a wanted type is nowhere else. A name is made when a
 * type is found, which is rare, and not for each function that is passed.
 *
 * An inline function of a header defines its types in each unit. Among those that look alike (name,
 * size, line) the first is kept.
 */
#include "dwarf/type_locals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/scopes.h"
#include "dwarf/type_names.h"
#include "dwarf/walk.h"

enum slot { NAME, DECLARATION, BYTE_SIZE, DECL_LINE };

static const uint16_t attrs[] = {
	[NAME] = DW_AT_name,
	[DECLARATION] = DW_AT_declaration,
	[BYTE_SIZE] = DW_AT_byte_size,
	[DECL_LINE] = DW_AT_decl_line,
};

enum { ROOT = 1, BLOCK, FUNCTION, SCOPE, TYPE };

static uint8_t role_of(uint16_t tag)
{
	if (dw_is_unit(tag))
		return ROOT;
	switch (tag) {
	case DW_TAG_lexical_block:
		return BLOCK;
	case DW_TAG_subprogram:
		return FUNCTION;
	case DW_TAG_enumeration_type:
	case DW_TAG_typedef:
		return TYPE;
	}
	return dw_is_scope(tag) ? SCOPE : DW_ROLE_PRUNE;
}

static bool is_type(uint16_t tag)
{
	return tag != DW_TAG_namespace && tag != DW_TAG_module;
}

/* ---- one unit ---- */

struct scan {
	const struct dw_unit *unit;
	struct dw_walker walker;
	VEC(struct level {
		dw_off off;
		uint16_t tag;
		bool in_function;
	})
	open; /* the DIEs around */
	char name[DW_TYPE_NAME_MAX];
	struct dw_type_locals found;
};

static bool append(struct scan *s, size_t *at, const char *part)
{
	size_t n = strlen(part);

	if (*at + n + 2 >= sizeof(s->name))
		return false;
	memcpy(s->name + *at, part, n);
	memcpy(s->name + *at + n, "::", 3);
	*at += n + 2;
	return true;
}

/*
 * The outermost function with its namespaces and classes, which its declaration may have.
 *
 * Clang 14 puts the types of functions that it inlined everywhere into a second DIE of the
 * function, which has no name.
 */
static int64_t function_name(struct scan *s, const struct dw_die *die, struct cairn_err *err)
{
	const char *name = dw_str_deep(die, DW_AT_name);
	dw_off at = dw_ref(die, DW_AT_abstract_origin);
	struct dw_die origin;

	if (!name)
		name = "(unnamed function)";
	if (at && dw_die_at(s->unit->dw, at, &origin, err) > 0 &&
	    dw_ref(&origin, DW_AT_specification))
		at = dw_ref(&origin, DW_AT_specification);
	if (!at)
		at = dw_ref(die, DW_AT_specification);
	return dw_type_name(s->unit->dw, at ? at : die->off, name, s->name, sizeof(s->name) - 2,
			    NULL, err);
}

/*
 * The names of the levels from the outermost function on, each with "::" after it. Length, 0: none;
 * negative.
 */
static int64_t scope_names(struct scan *s, struct cairn_err *err)
{
	size_t i = 0, at;
	struct dw_die die;

	while (i < s->open.n && s->open.p[i].tag != DW_TAG_subprogram)
		i++;
	if (i == s->open.n || dw_die_at(s->unit->dw, s->open.p[i].off, &die, err) <= 0)
		return 0;
	int64_t n = function_name(s, &die, err);
	if (n <= 0)
		return n;
	memcpy(s->name + n, "::", 3);
	at = (size_t)n + 2;
	while (++i < s->open.n) {
		const char *part = dw_die_at(s->unit->dw, s->open.p[i].off, &die, err) > 0
					   ? dw_str_deep(&die, DW_AT_name)
					   : NULL;

		if (part && !append(s, &at, part))
			return 0;
	}
	return (int64_t)at;
}

static int keep(struct scan *s, const char *name, struct cairn_err *err)
{
	const uint64_t look[] = {dw_seen_uint(&s->walker, BYTE_SIZE, 0),
				 dw_seen_uint(&s->walker, DECL_LINE, 0),
				 dw_walker_tag(&s->walker) == DW_TAG_typedef};
	struct dw_type_local local = {.off = dw_walker_off(&s->walker)};
	int64_t n = scope_names(s, err);

	if (n <= 0)
		return (int)n;
	if ((size_t)n + strlen(name) >= sizeof(s->name))
		return 0;
	strcpy(s->name + n, name);
	local.key = map_hash_bytes(s->name, strlen(s->name)) ^ map_hash_bytes(look, sizeof(look));
	local.name = strdup(s->name);
	if (local.name && VEC_ADD(&s->found.v, local))
		return 0;
	free(local.name);
	return err_nomem(err, "types of functions");
}

static int look_at(struct scan *s, int role, struct cairn_err *err)
{
	struct dw_walker *w = &s->walker;
	bool in_function = s->open.n && s->open.p[s->open.n - 1].in_function;
	uint16_t tag = dw_walker_tag(w);

	if (in_function && (role == TYPE || role == SCOPE) && is_type(tag) &&
	    !dw_seen_flag(w, DECLARATION)) {
		const char *name = dw_seen_str(w, NAME);
		int rc = name ? keep(s, name, err) : 0;
		if (rc < 0)
			return rc;
	}
	if (!dw_walker_has_children(w))
		return 0;
	/* In C nothing is defined in a struct. */
	if (role == TYPE || (role == SCOPE && !dw_has_scopes(s->unit))) {
		dw_walker_skip_children(w);
		return 0;
	}
	struct level level = {dw_walker_off(w), tag, in_function || role == FUNCTION};
	return VEC_ADD(&s->open, level) ? 0 : err_nomem(err, "types of functions");
}

static int scan_unit(struct scan *s, struct cairn_err *err)
{
	static const struct dw_query query = {attrs, sizeof(attrs) / sizeof(attrs[0]), role_of};
	struct dw_walker *w = &s->walker;

	if (!w->query)
		dw_walker_init(w, &query);
	int rc = dw_walker_enter(w, s->unit, err);
	s->open.n = 0;
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0) {
		if (s->open.n > w->depth)
			s->open.n = w->depth;
		rc = look_at(s, rc, err);
	}
	return rc;
}

/* ---- all units ---- */

struct job {
	const struct dwarf *dw;
	const bool *in_units;
	struct scan *scans; /* by worker */
	struct dw_type_locals *by_unit;
};

static int scan_item(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = ctx;
	struct scan *s = &job->scans[worker];

	if (job->in_units && !job->in_units[item])
		return 0;
	s->unit = dwarf_unit(job->dw, item);
	int rc = scan_unit(s, err);
	job->by_unit[item] = s->found;
	s->found = (struct dw_type_locals){0};
	return rc < 0 ? rc : 0;
}

/* The first of those that look alike; the others stay where they are. */
static int join(struct dw_type_locals *to, struct dw_type_locals *units, size_t n,
		struct cairn_err *err)
{
	struct map known = {0};
	uint64_t unused;
	bool fits = true;

	for (size_t i = 0; fits && i < n; i++)
		for (size_t k = 0; fits && k < units[i].v.n; k++) {
			struct dw_type_local *local = &units[i].v.p[k];

			if (map_get(&known, local->key, &unused))
				continue;
			fits = VEC_ADD(&to->v, *local);
			if (fits)
				local->name = NULL;
			fits = fits && map_put(&known, local->key, 1) >= 0;
		}
	map_fini(&known);
	return fits ? 0 : err_nomem(err, "types of functions");
}

void dw_type_locals_fini(struct dw_type_locals *list)
{
	for (size_t i = 0; i < list->v.n; i++)
		free(list->v.p[i].name);
	VEC_FREE(&list->v);
}

int dw_type_locals_list(const struct dwarf *dw, unsigned int threads, const bool *in_units,
			struct dw_type_locals *ret, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	size_t n = dwarf_n_units(dw);
	struct job job = {.dw = dw,
			  .in_units = in_units,
			  .scans = calloc(width, sizeof(*job.scans)),
			  .by_unit = calloc(n + 1, sizeof(*job.by_unit))};
	int rc = job.scans && job.by_unit ? 0 : err_nomem(err, "types of functions");

	*ret = (struct dw_type_locals){0};
	if (!rc)
		rc = pool_run(n, width, scan_item, &job, err);
	if (rc >= 0)
		rc = join(ret, job.by_unit, n, err);
	for (unsigned int i = 0; job.scans && i < width; i++) {
		dw_walker_fini(&job.scans[i].walker);
		VEC_FREE(&job.scans[i].open);
	}
	for (size_t i = 0; job.by_unit && i < n; i++)
		dw_type_locals_fini(&job.by_unit[i]);
	free(job.scans);
	free(job.by_unit);
	return rc < 0 ? err_while(err, rc, "listing the types of functions") : 0;
}
