/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions among all DIEs of a unit
 *
 * A kernel has 14 million DIEs, of which one in ten is a function or an inlined copy. The walker
 * steps over the others. In C, nothing inside a struct, union, enum, array or function type can
 * hold code, and those have half of all DIEs: they are left out. Enclosing functions stand on a
 * stack of their own, so that it is as deep as functions nest, not as DIEs do.
 *
 * A search for a name passes a million functions and wants some ten: struct dw_func_abbrev reads
 * the compared value of each in one load.
 */
#include "dwarf/scan.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* ---- the name ---- */

/* "max" and "max<int>" for the name "max". */
static bool is_name(const struct dw_name_filter *f, const char *s)
{
	return !strncmp(s, f->name, f->n) && (!s[f->n] || s[f->n] == '<');
}

/* The offsets of the name with @after as the next byte. */
static bool find_offsets(struct dw_name_offsets *o, const struct dw_section *s, const char *name,
			 size_t n, uint8_t after)
{
	const uint8_t *p = s->p, *end = s->p + s->n;
	char *whole = strndup(name, n);
	if (!whole)
		return false;
	whole[n] = (char)after; /* over its NUL */
	while ((p = memmem(p, (size_t)(end - p), whole, n + 1)) && o->v.n < DW_NAME_OFFSETS_MAX) {
		uint64_t off = (uint64_t)(p++ - s->p);
		if (!VEC_ADD(&o->v, off))
			break;
		o->bits[off % DW_NAME_BITS / 64] |= (uint64_t)1 << off % 64;
	}
	free(whole);
	o->complete = o->complete && !p;
	return !p || o->v.n == DW_NAME_OFFSETS_MAX;
}

static int by_offset(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

bool dw_name_filter_init(struct dw_name_filter *f, const struct dwarf *dw, const char *name)
{
	*f = (struct dw_name_filter){.name = name, .n = strlen(name)};
	for (int i = 0; i < 2; i++) {
		const struct dw_section *s = &dw->file[i].sec[DW_SEC_STR];
		struct dw_name_offsets *o = &f->in[i];
		o->complete = true;
		if (!find_offsets(o, s, name, f->n, 0) || !find_offsets(o, s, name, f->n, '<'))
			return false;
		if (o->v.n)
			qsort(o->v.p, o->v.n, sizeof(*o->v.p), by_offset);
	}
	return true;
}

void dw_name_filter_fini(struct dw_name_filter *f)
{
	for (int i = 0; i < 2; i++)
		VEC_FREE(&f->in[i].v);
}

static bool strp_matches(const struct dw_name_filter *f, const struct dw_file *file, uint64_t off)
{
	const struct dw_name_offsets *o = &f->in[file - file->dw->file];
	if (unlikely(!o->complete)) {
		const char *s = dw_section_str(file, DW_SEC_STR, off, NULL);
		return s && is_name(f, s);
	}
	if (likely(!(o->bits[off % DW_NAME_BITS / 64] >> off % 64 & 1)))
		return false;
	size_t lo = SEARCH(0, o->v.n, mid, o->v.p[mid] < off);
	return lo < o->v.n && o->v.p[lo] == off;
}

static bool str_matches(const struct dw_scanner *s, const struct dw_die *die, uint16_t at)
{
	const char *str = dw_str(die, at);
	return str && is_name(s->filter, str);
}

static bool name_matches(const struct dw_scanner *s, const struct dw_func_abbrev *fa,
			 const struct dw_die *die)
{
	const struct dw_file *file = die->unit->file;
	if (fa->name != DW_NO_FAST) {
		if (strp_matches(s->filter, file, dw_load_u32(die->attrs + fa->name)))
			return true;
	} else if (fa->has_name && str_matches(s, die, DW_AT_name)) {
		return true;
	}
	if (fa->linkage_name != DW_NO_FAST)
		return strp_matches(s->filter, file, dw_load_u32(die->attrs + fa->linkage_name));
	return fa->has_linkage_name && (str_matches(s, die, DW_AT_linkage_name) ||
					str_matches(s, die, DW_AT_MIPS_linkage_name));
}

/* Returns 1 and the name, 0 without one, -EBADMSG. */
static int read_name(const struct dw_func_abbrev *fa, const struct dw_die *die, const char **ret,
		     struct cairn_err *err)
{
	if (!fa->has_name)
		return 0;
	if (likely(fa->name != DW_NO_FAST)) {
		*ret = dw_section_str(die->unit->file, DW_SEC_STR,
				      dw_load_u32(die->attrs + fa->name), err);
		return *ret ? 1 : -EBADMSG;
	}
	struct dw_value v;
	int rc = dw_attr(die, DW_AT_name, &v, err);
	if (rc > 0 && v.cls == DW_CLASS_STRING)
		*ret = v.str;
	return rc;
}

/* ---- functions ---- */

static int read_origin_slow(const struct dw_die *die, bool specification, dw_off *ret,
			    struct cairn_err *err)
{
	struct dw_value v;
	int rc = dw_attr(die, specification ? DW_AT_specification : DW_AT_abstract_origin, &v, err);
	if (rc > 0 && v.cls == DW_CLASS_REF)
		*ret = v.ref;
	else if (rc > 0 && v.cls == DW_CLASS_SIGNATURE)
		*ret = dwarf_type_of_signature(die->unit->dw, v.u);
	return rc;
}

static int read_origin(const struct dw_func_abbrev *fa, const struct dw_die *die, dw_off *ret,
		       struct cairn_err *err)
{
	const struct dw_unit *u = die->unit;
	if (!fa->has_origin)
		return 0;
	if (likely(fa->origin != DW_NO_FAST)) {
		uint64_t off = u->off + dw_load_u32(die->attrs + fa->origin);
		const uint8_t *to = u->sec->p + off;
		if (likely(to >= u->dies && to < u->end)) {
			*ret = off | u->tag;
			return 1;
		}
	}
	return read_origin_slow(die, fa->flags & DW_FUNC_SPECIFICATION, ret, err);
}

static int read_func(struct dw_scanner *s, const struct dw_die *die, struct dw_func *f,
		     struct cairn_err *err)
{
	const struct dw_func_abbrev *fa = die->abbrev->func;
	f->flags = fa->flags;
	if (unlikely(fa->flags_need_values) && dw_flag(die, DW_AT_declaration))
		f->flags |= DW_FUNC_DECLARATION;
	int rc = read_origin(fa, die, &f->origin, err);
	if (rc < 0)
		return rc;
	if (!s->filter)
		return read_name(fa, die, &f->name, err);
	if (!(fa->flags & DW_FUNC_INLINED) && name_matches(s, fa, die)) {
		f->flags |= DW_FUNC_MATCHED;
		s->any_matched = true;
	}
	return 0;
}

_Static_assert(DW_UNITS_MAX < 1 << 24, "a function's unit has 24 bits");

/* *@ret is its index. */
static int add_func(struct dw_scanner *s, const struct dw_die *die, uint32_t *ret,
		    struct cairn_err *err)
{
	struct dw_func f = {.die = die->off,
			    .unit = die->unit->index,
			    .parent = s->open.n ? s->open.p[s->open.n - 1].i : DW_FUNC_NONE};
	int rc = read_func(s, die, &f, err);
	if (rc < 0)
		return rc;
	if (s->funcs.n >= DW_FUNC_NONE)
		return err_set(err, -ERANGE, "%s: more than %u functions in one unit",
			       die->unit->file->path, DW_FUNC_NONE - 1);
	*ret = (uint32_t)s->funcs.n;
	return VEC_ADD(&s->funcs, f) ? 0 : err_nomem(err, "functions");
}

/* ---- the walk ---- */

enum { ROLE_FUNC = 1 };

/*
 * Outside of C, GCC puts the member functions of a local class, with their bodies, inside the
 * class.
 */
static uint8_t role_elsewhere(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
		return ROLE_FUNC;
	case DW_TAG_call_site:
	case DW_TAG_GNU_call_site:
		return DW_ROLE_PRUNE;
	}
	return DW_ROLE_PASS;
}

static uint8_t role_in_c(uint16_t tag)
{
	switch (tag) {
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
	case DW_TAG_array_type:
	case DW_TAG_subroutine_type:
		return DW_ROLE_PRUNE;
	}
	return role_elsewhere(tag);
}

void dw_scanner_init(struct dw_scanner *s, const struct dw_name_filter *filter)
{
	static const struct dw_query in_c = {.role = role_in_c},
				     elsewhere = {.role = role_elsewhere};
	*s = (struct dw_scanner){.filter = filter};
	dw_walker_init(&s->in_c, &in_c);
	dw_walker_init(&s->elsewhere, &elsewhere);
}

void dw_scanner_begin(struct dw_scanner *s)
{
	s->funcs.n = 0;
	s->open.n = 0;
	s->any_matched = false;
}

int dw_scanner_see(struct dw_scanner *s, const struct dw_walker *w, struct cairn_err *err)
{
	struct dw_die die = dw_walker_die(w);
	uint32_t i = DW_FUNC_NONE;
	dw_scanner_leave(s, w);
	int rc = add_func(s, &die, &i, err);
	if (rc < 0 || !die.has_children)
		return rc;
	struct dw_open_func open = {.depth = w->depth, .i = i};
	return VEC_ADD(&s->open, open) ? 0 : err_nomem(err, "enclosing functions");
}

int dw_scan_unit(struct dw_scanner *s, const struct dw_unit *u, struct cairn_err *err)
{
	struct dw_walker *w = dw_unit_is_c(u) ? &s->in_c : &s->elsewhere;
	uint64_t n_dies = w->n_dies;
	dw_scanner_begin(s);
	int rc = dw_walker_enter(w, u, err);
	while (rc >= 0 && (rc = dw_walker_next(w)) > 0)
		rc = dw_scanner_see(s, w, err);
	s->n_dies += w->n_dies - n_dies;
	return rc < 0 ? err_while(err, rc, "scanning the unit at %s+0x%" PRIx64 " (%s)",
				  u->sec->src.section, u->off, u->name)
		      : 0;
}

void dw_scanner_fini(struct dw_scanner *s)
{
	VEC_FREE(&s->funcs);
	VEC_FREE(&s->open);
	dw_walker_fini(&s->in_c);
	dw_walker_fini(&s->elsewhere);
}
