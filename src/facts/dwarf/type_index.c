/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Definitions of types by name
 *
 * "struct foo" may be declared where it is used and defined in another unit. To find it, all units
 * are scanned once for definitions of structs, classes, unions and enums, by as many threads as
 * there are processors. A kernel defines each of its types in a thousand units. So a worker keeps
 * for each name only the definition with the lowest offset, and the workers' lists are merged by
 * the same rule. The result does not depend on which worker scanned a unit.
 *
 *	entry     hash of "s" "ns::foo"  ──►  DIE 0x1234, look 0x58
 *
 * "look" is a hash of size and line of declaration. In C two units may define different structs of
 * one name (every other program has a "struct node"). If the looks of a name differ, the name
 * stands for no single type, and the answer says so; a choice would print garbage with confidence.
 *
 * If two names have one 64-bit hash, the comparison with the name of the found type fails, and the
 * type is not found.
 *
 * Typedefs and base types are listed when a caller wants them: few do, and the others do not pay
 * for it.
 */
#include "base/err.h"
#include "base/map.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/scopes.h"
#include "dwarf/type_index.h"
#include "dwarf/type_names.h"
#include "dwarf/walk.h"

#include <errno.h>
#include <stdio.h>

struct entry {
	uint64_t hash;
	dw_off off;
	uint64_t look;
	bool ambiguous;
	uint8_t names; /* enum dw_type_names: of which it is */
};

struct list {
	VEC(struct entry) v;
	struct map at; /* hash to index in v */
};

struct dw_type_index {
	const struct dwarf *dw;
	struct list list;
};

/* ---- the listed types ---- */

/* C++ may declare "class foo" and define "struct foo". */
static char group_of(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		return 's';
	case DW_TAG_union_type:
		return 'u';
	case DW_TAG_enumeration_type:
		return 'e';
	case DW_TAG_typedef:
		return 't';
	case DW_TAG_base_type:
		return 'b';
	}
	return 0;
}

/* Zero for a group that is not listed. */
static enum dw_type_names names_of(char group)
{
	if (!group)
		return 0;
	return group == 't' || group == 'b' ? DW_TYPEDEFS : DW_DEFINITIONS;
}

static uint64_t hash_of(char group, const char *name, size_t n)
{
	return map_hash_bytes(name, n) ^ (uint64_t)(unsigned char)group << 32;
}

enum slot { NAME, DECLARATION, SPECIFICATION, BYTE_SIZE, DECL_LINE };

static const uint16_t attrs[] = {
	[NAME] = DW_AT_name,
	[DECLARATION] = DW_AT_declaration,
	[SPECIFICATION] = DW_AT_specification,
	[BYTE_SIZE] = DW_AT_byte_size,
	[DECL_LINE] = DW_AT_decl_line,
};

static uint64_t look_at_hand(struct dw_walker *w)
{
	const uint64_t facts[] = {dw_seen_uint(w, BYTE_SIZE, 0), dw_seen_uint(w, DECL_LINE, 0)};
	return map_hash_bytes(facts, sizeof(facts));
}

/* ---- one unit ---- */

struct scan {
	const struct dw_unit *unit;
	enum dw_type_names names;
	/* Lengths of prefix at each open level, and whether the types below are private. */
	VEC(struct {
		size_t n;
		bool private;
	})
	open;
	char prefix[DW_TYPE_NAME_MAX];
	struct dw_walker walker;
	int (*found)(void *ctx, uint64_t hash, struct dw_walker *at);
	void *ctx;
};

static size_t prefix_len(const struct scan *s)
{
	return s->open.n ? s->open.p[s->open.n - 1].n : 0;
}

/*
 * The name of a definition whose declaration is elsewhere: out of its class, or in a type unit,
 * whose scopes are skeletons. Length, 0 for none, negative.
 */
static int64_t specified_name(struct scan *s, const struct dw_die *die, struct cairn_err *err)
{
	bool private;
	dw_off at = dw_ref(die, DW_AT_specification);
	const char *name = dw_str_deep(die, DW_AT_name);
	if (!name)
		return 0;
	size_t base = prefix_len(s);
	int64_t n = dw_type_name(s->unit->dw, at, name, s->prefix + base, sizeof(s->prefix) - base,
				 &private, err);
	return n > 0 && private ? 0 : n;
}

/* The DIE that the walker is at. */
static int look_at(struct scan *s, struct cairn_err *err)
{
	struct dw_walker *w = &s->walker;
	char group = group_of(dw_walker_tag(w));
	if (!(names_of(group) & s->names) || dw_seen_flag(w, DECLARATION))
		return 0;
	size_t base = prefix_len(s);
	if (dw_seen(w, SPECIFICATION) && dw_has_scopes(s->unit)) {
		struct dw_die die = dw_walker_die(w);
		int64_t n = specified_name(s, &die, err);
		return n <= 0 ? (int)n
			      : s->found(s->ctx, hash_of(group, s->prefix + base, (size_t)n), w);
	}
	const char *name = dw_seen_str(w, NAME);
	if (!name || (s->open.n && s->open.p[s->open.n - 1].private))
		return 0;
	size_t n = strlen(name);
	if (!base)
		return s->found(s->ctx, hash_of(group, name, n), w);
	if (base + n >= sizeof(s->prefix))
		return 0;
	memcpy(s->prefix + base, name, n);
	return s->found(s->ctx, hash_of(group, s->prefix, base + n), w);
}

/*
 * The length of the name of a scope, which is written after the prefix; 0 for one that cannot be
 * looked up. Clang's skeletons in type units have a signature instead of a name.
 */
static int64_t scope_name(struct scan *s, const struct dw_die *die, struct cairn_err *err)
{
	size_t base = prefix_len(s);
	struct dw_value v;
	if (dw_attr(die, DW_AT_specification, &v, NULL) > 0)
		/* The name is a complete one; there is no prefix for it. */
		return base ? 0 : specified_name(s, die, err);
	const char *name = dw_str_deep(die, DW_AT_name);
	size_t n = name ? strlen(name) : 0;
	if (base + n >= sizeof(s->prefix))
		return 0;
	if (n)
		memcpy(s->prefix + base, name, n);
	return (int64_t)n;
}

/* Open the level below a scope, with its name and "::" as prefix. */
static int open_scope(struct scan *s, const struct dw_die *die, struct cairn_err *err)
{
	size_t base = prefix_len(s);
	bool is_root = !s->open.n;
	bool private = !is_root && s->open.p[s->open.n - 1].private;
	int64_t n = is_root || private ? 0 : scope_name(s, die, err);
	if (n < 0)
		return (int)n;
	if (n && base + (size_t)n + 2 < sizeof(s->prefix)) {
		memcpy(s->prefix + base + n, "::", 2);
		base += (size_t)n + 2;
	} else {
		private = !is_root;
	}
	__typeof__(s->open.p) level = VEC_PUSH(&s->open);
	if (!level)
		return err_nomem(err, "definitions of types");
	level->n = base;
	level->private = private;
	return 0;
}

enum { ROOT = 1, DEFINITION };

/* No type in a function is listed, nor in a type that is none of these. */
static uint8_t role_of(uint16_t tag, enum dw_type_names names)
{
	if (dw_is_unit(tag))
		return ROOT;
	return names_of(group_of(tag)) & names || dw_is_scope(tag) ? DEFINITION : DW_ROLE_PRUNE;
}

static uint8_t role_of_definition(uint16_t tag)
{
	return role_of(tag, DW_DEFINITIONS);
}

static uint8_t role_of_typedef(uint16_t tag)
{
	return role_of(tag, DW_TYPEDEFS);
}

static uint8_t role_of_any(uint16_t tag)
{
	return role_of(tag, DW_ALL_NAMES);
}

static int scan_die(struct scan *s, int role, struct cairn_err *err)
{
	int rc = role == ROOT ? 0 : look_at(s, err);
	if (rc || !dw_walker_has_children(&s->walker))
		return rc;
	struct dw_die die = dw_walker_die(&s->walker);
	if (role == ROOT || (dw_is_scope(die.tag) && dw_has_scopes(s->unit)))
		return open_scope(s, &die, err);
	dw_walker_skip_children(&s->walker);
	return 0;
}

/* 0 at the unit's end, or a result of @found other than 0. */
static int scan_unit(struct scan *s, struct cairn_err *err)
{
	enum { N_ATTRS = sizeof(attrs) / sizeof(attrs[0]) };
	static const struct dw_query queries[] = {
		[DW_DEFINITIONS] = {attrs, N_ATTRS, role_of_definition},
		[DW_TYPEDEFS] = {attrs, N_ATTRS, role_of_typedef},
		[DW_ALL_NAMES] = {attrs, N_ATTRS, role_of_any}};
	struct dw_walker *w = &s->walker;
	if (!w->query)
		dw_walker_init(w, &queries[s->names]);
	int rc = dw_walker_enter(w, s->unit, err);
	s->open.n = 0;
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0) {
		if (s->open.n > w->depth)
			s->open.n = w->depth;
		rc = scan_die(s, rc, err);
		if (rc)
			return rc;
	}
	return rc;
}

static void scan_fini(struct scan *s)
{
	dw_walker_fini(&s->walker);
	VEC_FREE(&s->open);
}

/* ---- all units ---- */

/* Keeps the definition with the lowest offset. */
static int list_add(struct list *l, const struct entry *e)
{
	uint64_t at;
	if (!map_get(&l->at, e->hash, &at)) {
		if (!VEC_ADD(&l->v, *e) || map_put(&l->at, e->hash, l->v.n - 1) < 0)
			return -ENOMEM;
		return 0;
	}
	struct entry *known = &l->v.p[at];
	known->ambiguous |= e->ambiguous || e->look != known->look;
	if (e->off < known->off)
		known->off = e->off;
	return 0;
}

static void list_fini(struct list *l)
{
	VEC_FREE(&l->v);
	map_fini(&l->at);
}

static int list_found(void *ctx, uint64_t hash, struct dw_walker *at)
{
	const struct entry e = {.hash = hash,
				.off = dw_walker_off(at),
				.look = look_at_hand(at),
				.names = (uint8_t)names_of(group_of(dw_walker_tag(at)))};
	return list_add(ctx, &e);
}

struct job {
	const struct dwarf *dw;
	enum dw_type_names names;
	struct list *lists; /* one per worker */
	struct scan *scans;
};

static int scan_item(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct job *job = ctx;
	struct scan *s = &job->scans[worker];
	s->unit = dwarf_unit(job->dw, item);
	s->names = job->names;
	s->found = list_found;
	s->ctx = &job->lists[worker];
	int rc = scan_unit(s, err);
	return rc == -ENOMEM ? err_nomem(err, "definitions of types") : rc;
}

static int merge(struct list *to, struct list *lists, unsigned int n, struct cairn_err *err)
{
	for (unsigned int i = 0; i < n; i++)
		for (size_t k = 0; k < lists[i].v.n; k++)
			if (list_add(to, &lists[i].v.p[k]) < 0)
				return err_nomem(err, "definitions of types");
	return 0;
}

int dw_type_index_new(const struct dwarf *dw, enum dw_type_names names, unsigned int threads,
		      struct dw_type_index **ret, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct job job = {.dw = dw,
			  .names = names,
			  .lists = calloc(width, sizeof(*job.lists)),
			  .scans = calloc(width, sizeof(*job.scans))};
	struct dw_type_index *index = calloc(1, sizeof(*index));
	int rc = index && job.lists && job.scans ? 0 : err_nomem(err, "definitions of types");
	if (!rc)
		rc = pool_run(dwarf_n_units(dw), width, scan_item, &job, err);
	if (rc >= 0)
		rc = merge(&index->list, job.lists, width, err);
	for (unsigned int i = 0; job.lists && i < width; i++)
		list_fini(&job.lists[i]);
	for (unsigned int i = 0; job.scans && i < width; i++)
		scan_fini(&job.scans[i]);
	free(job.lists);
	free(job.scans);
	if (rc < 0) {
		dw_type_index_free(index);
		return err_while(err, rc, "listing the definitions of types");
	}
	index->dw = dw;
	*ret = index;
	return 0;
}

void dw_type_index_free(struct dw_type_index *index)
{
	if (!index)
		return;
	list_fini(&index->list);
	free(index);
}

static int compare_offsets(const void *a, const void *b)
{
	dw_off x = *(const dw_off *)a, y = *(const dw_off *)b;
	return (x > y) - (x < y);
}

dw_off *dw_type_index_offsets(const struct dw_type_index *index, enum dw_type_names names,
			      size_t *ret_n)
{
	const struct list *list = &index->list;
	dw_off *offs = calloc(list->v.n + 1, sizeof(*offs));
	size_t n = 0;
	if (!offs)
		return NULL;
	for (size_t i = 0; i < list->v.n; i++)
		if (list->v.p[i].names & names)
			offs[n++] = list->v.p[i].off;
	qsort(offs, n, sizeof(*offs), compare_offsets);
	*ret_n = n;
	return offs;
}

/* ---- looking up ---- */

struct wanted {
	uint64_t hash;
	dw_off off;
};

static int is_wanted(void *ctx, uint64_t hash, struct dw_walker *at)
{
	struct wanted *w = ctx;
	if (hash != w->hash)
		return 0;
	w->off = dw_walker_off(at);
	return 1;
}

int dw_type_index_in_unit(const struct dw_unit *u, uint16_t tag, const char *name, dw_off *ret,
			  struct cairn_err *err)
{
	struct scan *s = calloc(1, sizeof(*s));
	if (!s)
		return err_nomem(err, "definitions of types");
	struct wanted w = {.hash = hash_of(group_of(tag), name, strlen(name))};
	s->unit = u;
	s->names = DW_DEFINITIONS;
	s->found = is_wanted;
	s->ctx = &w;
	int rc = scan_unit(s, err);
	scan_fini(s);
	free(s);
	if (rc <= 0)
		return rc;
	*ret = w.off;
	return 1;
}

int dw_type_index_find(const struct dw_type_index *index, uint16_t tag, const char *name,
		       dw_off *ret, struct cairn_err *err)
{
	uint64_t at;
	if (!map_get(&index->list.at, hash_of(group_of(tag), name, strlen(name)), &at))
		return 0;
	const struct entry *e = &index->list.v.p[at];
	if (e->ambiguous)
		return err_set(err, -ENOTUNIQ,
			       "%s: units define different types named \"%s\", one of them at "
			       ".debug_info+0x%llx",
			       index->dw->file[0].path, name,
			       (unsigned long long)dw_off_in_section(e->off));
	*ret = e->off;
	return 1;
}
