/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk: shapes, and the loop over them
 *
 * A vmlinux has 14 million DIEs in 163 MB, so the loop has some ten nanoseconds for each, of which
 * a mispredicted branch takes five. Three things make that enough:
 *
 *  - The position of a wanted value is computed per abbreviation and not per DIE. Values of fixed
 *    size have a fixed offset from the end of the last one of variable size; such a stretch is a
 *    "run":
 *
 *	name string, line data1, location exprloc, type ref4
 *	run 0: name at +0      run 1: line at +0, location at +1      run 2: type at +0
 *
 *    Run 0 starts after the code. The starts of the others are recorded while the DIE is stepped
 *    over, which has to be done anyway to find the next one.
 *  - The loop itself reads 16 bytes per abbreviation (struct dw_shape); the positions, a hundred
 *    bytes, are read for delivered DIEs only.
 *  - Values that no caller wants are not read.
 *
 * The fast steps are written out with one comparison per run of bytes. Rare or wrong DIEs are read
 * again through a cursor, which reports the error.
 */
#include "dwarf/walk.h"

#include <errno.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/lists.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

int dw_walker_init(struct dw_walker *w, const struct dw_query *query)
{
	*w = (struct dw_walker){.query = query};
	if (query->n_attrs > DW_QUERY_MAX)
		return -EINVAL;
	for (unsigned int i = query->n_attrs; i-- > 0;)
		w->slot_of[query->attrs[i] & 0xff] = (uint8_t)(i + 1);
	return 0;
}

void dw_walker_fini(struct dw_walker *w)
{
	free(w->shapes);
	map_fini(&w->known_at);
	VEC_FREE(&w->known);
	VEC_FREE(&w->all_places);
	VEC_FREE(&w->implicit);
}

/* ---- shapes ---- */

enum {
	/*
	 * Shapes that are kept from unit to unit: several times those of the largest files, some
	 * megabytes with their positions.
	 */
	KNOWN_MAX = 1 << 15,
};

/* The slot of an attribute; query->n_attrs if the query does not have it. */
static unsigned int slot_of(const struct dw_walker *w, uint16_t at)
{
	const struct dw_query *query = w->query;
	unsigned int slot = w->slot_of[at & 0xff];
	if (!slot)
		return query->n_attrs;
	for (slot--; slot < query->n_attrs && query->attrs[slot] != at;)
		slot++;
	return slot;
}

static enum dw_how how_of(const struct dw_abbrevs *t, uint16_t form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_flag:
		return DW_HOW_U8;
	case DW_FORM_data2:
		return DW_HOW_U16;
	case DW_FORM_data4:
		return DW_HOW_U32;
	case DW_FORM_data8:
		return DW_HOW_U64;
	case DW_FORM_udata:
		return DW_HOW_ULEB;
	case DW_FORM_sdata:
		return DW_HOW_SLEB;
	case DW_FORM_implicit_const:
		return DW_HOW_IMPLICIT;
	case DW_FORM_flag_present:
		return DW_HOW_PRESENT;
	case DW_FORM_ref4:
		return DW_HOW_REF4;
	case DW_FORM_string:
		return DW_HOW_STRING;
	case DW_FORM_strp:
		return t->offset_size == 4 ? DW_HOW_STRP : DW_HOW_FORM;
	case DW_FORM_addr:
		return t->addr_size == 8 ? DW_HOW_ADDR : DW_HOW_FORM;
	}
	return DW_HOW_FORM;
}

/* Once per walk, for most files. Abbreviations of units of another kind are others, too. */
static void learn_forms(struct dw_walker *w, const struct dw_abbrevs *t)
{
	struct dw_form_table *forms = &w->forms;
	if (forms->addr_size == t->addr_size && forms->offset_size == t->offset_size &&
	    forms->ref_addr_size == t->ref_addr_size)
		return;
	forms->addr_size = t->addr_size;
	forms->offset_size = t->offset_size;
	forms->ref_addr_size = t->ref_addr_size;
	for (unsigned int form = 0; form < 256; form++) {
		forms->of[form].size = dw_form_size((uint16_t)form, t->addr_size, t->offset_size,
						    t->ref_addr_size);
		forms->of[form].how = (uint8_t)how_of(t, (uint16_t)form);
	}
}

static struct dw_form_size size_of(const struct dw_walker *w, uint16_t form)
{
	const struct dw_form_table *forms = &w->forms;
	return likely(form < 256) ? forms->of[form].size
				  : dw_form_size(form, forms->addr_size, forms->offset_size,
						 forms->ref_addr_size);
}

static bool add_place(struct dw_walker *w, struct dw_attr_slot *attr, const struct dw_spec *spec,
		      unsigned int run, unsigned int off)
{
	attr->form = spec->form;
	attr->how = spec->form < 256 ? w->forms.of[spec->form].how : DW_HOW_FORM;
	attr->off = (uint16_t)off;
	attr->run = (uint8_t)run;
	if (run >= DW_RUNS_MAX)
		attr->how = DW_HOW_FAR;
	if (attr->how != DW_HOW_IMPLICIT)
		return true;
	/* A value beyond the range of an index is read again from the abbreviation. */
	if (w->implicit.n > UINT16_MAX) {
		attr->how = DW_HOW_FAR;
		return true;
	}
	attr->off = (uint16_t)w->implicit.n;
	return VEC_ADD(&w->implicit, spec->implicit);
}

/* As dw_spec_next(), with the usual case of two small numbers first. */
static inline bool next_spec(const uint8_t **p, struct dw_spec *ret)
{
	uint8_t at = (*p)[0];
	if (unlikely(at >= 0x80 || (*p)[1] >= DW_FORM_implicit_const))
		return dw_spec_next(p, ret);
	ret->at = at;
	ret->form = (*p)[1];
	*p += 2;
	return ret->form != 0;
}

/* Positions of one abbreviation. Runs are those of its steps, see dw_abbrevs_compile(). */
static bool add_places(struct dw_walker *w, const struct dw_abbrev *a, struct dw_attr_slot *places)
{
	const uint8_t *specs = a->specs;
	unsigned int run = 0, off = 0, n_attrs = w->query->n_attrs;
	struct dw_spec spec;
	memset(places, 0, n_attrs * sizeof(*places));
	while (next_spec(&specs, &spec)) {
		struct dw_form_size size = size_of(w, spec.form);
		unsigned int slot = slot_of(w, spec.at);
		if (off + size.fixed > UINT16_MAX) {
			run++;
			off = 0;
		}
		/* If an attribute is there twice, the first counts, as in dw_attr(). */
		if (slot < n_attrs && !places[slot].how &&
		    !add_place(w, &places[slot], &spec, run, off))
			return false;
		off += size.fixed;
		if (size.then != DW_THEN_END) {
			run++;
			off = 0;
		}
	}
	return true;
}

static bool reserve(struct dw_walker *w, size_t n)
{
	if (n <= w->cap)
		return true;
	size_t cap = n < 2 * w->cap ? 2 * w->cap : n;
	struct dw_shape *shapes = realloc(w->shapes, cap * sizeof(*shapes));
	if (!shapes)
		return false;
	w->shapes = shapes;
	w->cap = cap;
	return true;
}

static void forget(struct dw_walker *w)
{
	map_fini(&w->known_at);
	w->known.n = w->all_places.n = w->implicit.n = 0;
}

/* The shape of an abbreviation that was not met before. */
static bool learn_shape(struct dw_walker *w, const struct dw_abbrev *a, struct dw_shape *ret)
{
	struct dw_shape s = {.fixed = a->first.fixed,
			     .then = a->first.then,
			     .sibling = a->sibling,
			     .tag = a->tag,
			     .has_children = a->has_children,
			     .role = w->query->role(a->tag),
			     .places = (uint32_t)w->all_places.n};
	if (s.role != DW_ROLE_PASS && s.role != DW_ROLE_PRUNE) {
		/* One more, so that the array exists also if the query has no attributes. */
		if (!VEC_RESERVE(&w->all_places, w->query->n_attrs + 1) ||
		    !add_places(w, a, w->all_places.p + w->all_places.n))
			return false;
		w->all_places.n += w->query->n_attrs;
	}
	*ret = s;
	return VEC_ADD(&w->known, s) && map_put(&w->known_at, (uintptr_t)a, w->known.n - 1) >= 0;
}

static bool make_shapes(struct dw_walker *w, const struct dw_abbrevs *t)
{
	w->table = t;
	learn_forms(w, t);
	/*
	 * This and a table bound the number of known shapes, whatever is in the file. A position
	 * can number this many constants.
	 */
	if (w->known.n > KNOWN_MAX || w->implicit.n > UINT16_MAX / 2)
		forget(w);
	if (t->n > UINT32_MAX / 2 / DW_QUERY_MAX - KNOWN_MAX || !reserve(w, t->n))
		return false;
	for (size_t i = 0; i < t->n; i++) {
		uint64_t known;
		if (map_get(&w->known_at, (uintptr_t)t->p[i], &known))
			w->shapes[i] = w->known.p[known];
		else if (!learn_shape(w, t->p[i], &w->shapes[i]))
			return false;
	}
	return true;
}

int dw_walker_enter(struct dw_walker *w, const struct dw_unit *u, struct cairn_err *err)
{
	w->unit = u;
	w->err = err;
	w->rc = 0;
	w->level = w->depth = w->lowest = 0;
	w->shape = NULL;
	w->next = u->dies;
	w->end = u->end;
	w->ref_lo = (uint64_t)(u->dies - u->sec->p) - u->off;
	w->ref_n = (uint64_t)(u->end - u->dies);
	if (w->table == u->abbrevs || make_shapes(w, u->abbrevs))
		return 0;
	w->table = NULL;
	return err_nomem(err, "abbreviations");
}

/* ---- stepping ---- */

/* Steps over a DIE by a cursor; notes its runs. */
static __attribute__((noinline, cold)) const uint8_t *
skip_die_slow(struct dw_walker *w, const struct dw_abbrev *a, const uint8_t *p)
{
	struct cursor c = dw_unit_cursor(w->unit, p, w->err);
	struct dw_step step = a->first;
	const struct dw_step *more = a->more;
	for (unsigned int run = 0;; step = *more++) {
		if (run < DW_RUNS_MAX)
			w->run[run++] = c.pos;
		dw_step_skip(w->unit, step, &c);
		if (step.then == DW_THEN_END || c.failed)
			break;
	}
	if (c.failed)
		w->rc = dw_failure(&c);
	return c.failed ? NULL : c.pos;
}

/* Steps over the attributes at @p; notes where each run starts. NULL on failure. */
static __attribute__((noinline)) const uint8_t *skip_die(struct dw_walker *w,
							 const struct dw_shape *s, const uint8_t *p)
{
	const struct dw_abbrev *a = w->table->p[s - w->shapes];
	const uint8_t *end = w->unit->end, *at = p;
	const struct dw_step *more = a->more;
	struct dw_step step = {.fixed = s->fixed, .then = s->then};
	for (unsigned int run = 1;; step = *more++) {
		if (unlikely(step.fixed > (size_t)(end - at)))
			break;
		at += step.fixed;
		if (step.then == DW_THEN_END)
			return at;
		at = dw_after_value(at, end, step.then);
		if (unlikely(!at))
			break;
		if (likely(run < DW_RUNS_MAX))
			w->run[run++] = at;
	}
	return skip_die_slow(w, a, p);
}

/* The shape of the DIE at *@p, which moves past the code; NULL for a null entry or a failure. */
static __attribute__((noinline, cold)) const struct dw_shape *take_code_slow(struct dw_walker *w,
									     const uint8_t **p)
{
	struct dw_die die;
	int rc = dw_die_parse(w->unit, *p, &die, w->err);
	if (rc < 0) {
		w->rc = rc;
		return NULL;
	}
	/* Both may be written long. */
	struct cursor c = dw_unit_cursor(w->unit, *p, NULL);
	uint64_t code = cur_uleb(&c);
	*p = c.pos;
	return rc ? &w->shapes[dw_abbrev_index(w->table, code)] : NULL;
}

static inline const struct dw_shape *take_code(struct dw_walker *w, const uint8_t **p)
{
	const struct dw_abbrevs *t = w->table;
	const uint8_t *at = *p;
	uint64_t code = *at++;
	if (code >= 0x80) {
		if (unlikely(at == w->unit->end || *at >= 0x80))
			return take_code_slow(w, p);
		code = (code & 0x7f) | (uint64_t)*at++ << 7;
	}
	if (unlikely(t->codes || code - 1 >= t->n))
		return take_code_slow(w, p);
	*p = at;
	return &w->shapes[code - 1];
}

/* The target of DW_AT_sibling, if it is forward and inside the unit; else NULL. */
static inline const uint8_t *sibling(const struct dw_walker *w, const struct dw_shape *s,
				     const uint8_t *attrs, const uint8_t *p)
{
	const struct dw_unit *u = w->unit;
	if (s->sibling == DW_NO_FAST)
		return NULL;
	uint64_t off = u->off + dw_load_u32(attrs + s->sibling);
	if (off <= (uint64_t)(p - u->sec->p) || off > (uint64_t)(u->end - u->sec->p))
		return NULL;
	return u->sec->p + off;
}

/* The address after the children that start at @p; NULL on failure. */
static __attribute__((noinline)) const uint8_t *skip_children(struct dw_walker *w, const uint8_t *p)
{
	const uint8_t *end = w->unit->end;
	for (uint64_t open = 1; open && p < end;) {
		if (*p == 0) {
			p++;
			open--;
			continue;
		}
		const struct dw_shape *s = take_code(w, &p);
		if (unlikely(!s)) {
			if (w->rc < 0)
				return NULL;
			open--;
			continue;
		}
		const uint8_t *attrs = p;
		p = skip_die(w, s, p);
		if (!p)
			return NULL;
		w->n_dies++;
		const uint8_t *jump = s->has_children ? sibling(w, s, attrs, p) : NULL;
		if (jump)
			p = jump;
		else
			open += s->has_children;
	}
	return p;
}

/* The address after the children of a DIE, whose attributes end at @p. */
static const uint8_t *prune(struct dw_walker *w, const struct dw_shape *s, const uint8_t *attrs,
			    const uint8_t *p)
{
	const uint8_t *jump = s->has_children ? sibling(w, s, attrs, p) : p;
	return jump ? jump : skip_children(w, p);
}

/* At a null entry. Null entries after the root's end are padding. */
static inline void close_children(struct dw_walker *w)
{
	w->level -= w->level > 0;
	if (w->level < w->lowest)
		w->lowest = w->level;
}

int dw_walker_next(struct dw_walker *w)
{
	const uint8_t *p = w->next, *end = w->end;
	w->lowest = w->level;
	while (p < end) {
		if (*p == 0) {
			p++;
			close_children(w);
			continue;
		}
		const uint8_t *start = p;
		const struct dw_shape *s = take_code(w, &p);
		if (unlikely(!s)) {
			if (w->rc < 0)
				break;
			close_children(w);
			continue;
		}
		w->run[0] = p;
		if (likely(s->then == DW_THEN_END && s->fixed <= (size_t)(end - p)))
			p += s->fixed;
		else if (unlikely(!(p = skip_die(w, s, p))))
			break;
		w->n_dies++;
		if (s->role == DW_ROLE_PASS) {
			w->level += s->has_children;
		} else if (s->role != DW_ROLE_PRUNE) {
			w->next = p;
			w->die = start;
			w->shape = s;
			w->places = w->all_places.p + s->places;
			w->depth = w->level;
			w->level += s->has_children;
			return s->role;
		} else if (unlikely(!(p = prune(w, s, w->run[0], p)))) {
			break;
		}
	}
	w->next = end;
	return w->rc;
}

void dw_walker_skip_children(struct dw_walker *w)
{
	if (!w->shape || w->level == w->depth || w->rc < 0)
		return;
	/* Stepping over the children notes their runs where this DIE's are. */
	const uint8_t *run[DW_RUNS_MAX];
	memcpy(run, w->run, sizeof(run));
	const uint8_t *p = prune(w, w->shape, w->run[0], w->next);
	memcpy(w->run, run, sizeof(run));
	w->next = p ? p : w->end;
	w->level = w->depth;
}

/* ---- values ---- */

int dw_seen_value(struct dw_walker *w, unsigned int slot, struct dw_value *ret)
{
	struct dw_attr_slot attr = w->places[slot];
	struct dw_spec spec = {.at = w->query->attrs[slot], .form = attr.form};
	int rc;
	if (attr.how == DW_HOW_ABSENT)
		return 0;
	if (attr.how == DW_HOW_FAR) {
		struct dw_die die = dw_walker_die(w);
		rc = dw_attr(&die, spec.at, ret, w->err);
	} else {
		bool implicit = attr.how == DW_HOW_IMPLICIT;
		spec.implicit = implicit ? w->implicit.p[attr.off] : 0;
		struct cursor c =
			dw_unit_cursor(w->unit, implicit ? w->run[0] : dw_seen_at(w, attr), w->err);
		rc = dw_form_read(w->unit, &c, &spec, ret);
	}
	if (rc < 0 && w->rc >= 0) {
		w->rc = rc;
		w->next = w->end;
	}
	return rc;
}

uint64_t dw_seen_uint_slow(struct dw_walker *w, unsigned int slot, uint64_t otherwise)
{
	struct dw_attr_slot attr = w->places[slot];
	struct dw_value v;
	switch ((enum dw_how)attr.how) {
	case DW_HOW_U32:
		return dw_load_u32(dw_seen_at(w, attr));
	case DW_HOW_U64:
		return dw_load_u64(dw_seen_at(w, attr));
	case DW_HOW_IMPLICIT:
		return (uint64_t)w->implicit.p[attr.off];
	case DW_HOW_PRESENT:
		return 1;
	case DW_HOW_ADDR:
	case DW_HOW_REF4:
	case DW_HOW_STRP:
	case DW_HOW_STRING:
		return otherwise;
	default:
		break;
	}
	if (dw_seen_value(w, slot, &v) <= 0)
		return otherwise;
	bool is_number =
		v.cls == DW_CLASS_UDATA || v.cls == DW_CLASS_SDATA || v.cls == DW_CLASS_FLAG;
	return is_number ? v.u : otherwise;
}

dw_off dw_seen_ref_slow(struct dw_walker *w, unsigned int slot)
{
	struct dw_value v;
	if (dw_seen_value(w, slot, &v) <= 0)
		return 0;
	if (v.cls == DW_CLASS_SIGNATURE)
		return dwarf_type_of_signature(w->unit->dw, v.u);
	return v.cls == DW_CLASS_REF ? v.ref : 0;
}

const char *dw_seen_str_slow(struct dw_walker *w, unsigned int slot)
{
	struct dw_attr_slot attr = w->places[slot];
	struct dw_value v;
	/* Its NUL was seen when the DIE was stepped over. */
	if (attr.how == DW_HOW_STRING)
		return (const char *)dw_seen_at(w, attr);
	return dw_seen_value(w, slot, &v) > 0 && v.cls == DW_CLASS_STRING ? v.str : NULL;
}

bool dw_seen_addr(struct dw_walker *w, unsigned int slot, struct cairn_vaddr *ret)
{
	struct dw_attr_slot attr = w->places[slot];
	struct dw_value v;
	if (attr.how == DW_HOW_ADDR) {
		ret->v = dw_load_u64(dw_seen_at(w, attr));
		return true;
	}
	if (dw_seen_value(w, slot, &v) <= 0 || v.cls != DW_CLASS_ADDRESS)
		return false;
	*ret = v.addr;
	return true;
}

bool dw_seen_range(struct dw_walker *w, unsigned int low, unsigned int high, struct dw_range *ret)
{
	struct dw_range r;
	if (!dw_seen(w, low) || !dw_seen(w, high) || !dw_seen_addr(w, low, &r.lo))
		return false;
	if (w->places[high].how == DW_HOW_U64 || !dw_seen_addr(w, high, &r.hi))
		r.hi.v = r.lo.v + dw_seen_uint(w, high, 0);
	if (dw_is_discarded(w->unit, r.lo.v) || r.lo.v >= r.hi.v)
		return false;
	*ret = r;
	return true;
}
