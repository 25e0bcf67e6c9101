/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Abbreviation tables, compiled to skip programs (the picture is in abbrev.h)
 *
 *	.debug_abbrev     ULEB code, 0 ends the table
 *	                  ULEB tag
 *	                  u8   has children
 *	                  ULEB attribute, ULEB form [, SLEB value of DW_FORM_implicit_const]
 *	                  ... 0, 0
 *
 * GCC and Clang number the codes 1, 2, ... n in order; then the code is an index. Any other
 * numbering is legal, up to 64 bits, and is found by binary search.
 *
 * The attributes are not copied: a vmlinux has five megabytes of tables, and the few DIEs that are
 * read closely can read the bytes again. They are checked here once, so that dw_spec_next() need
 * not.
 *
 * An abbreviation holds its first step itself, because for most it is the only one; the others
 * follow at @more.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/search.h"
#include "dwarf/abbrev_pool.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/impl.h"
#include "dwarf/index.h"

struct builder {
	struct dw_abbrevs *t;
	struct dw_abbrev_pool *pool;
	bool dense;
};

/* The facts gathered while the attributes of one abbreviation are read. */
struct shape {
	struct dw_step first, open; /* @open: the step being extended */
	bool has_first;
	uint16_t sibling;
	struct dw_func_abbrev func;
	bool has_specification;
};

/* The step that is being extended is complete. */
static bool close_step(struct builder *b, struct shape *s, uint8_t then)
{
	s->open.then = then;
	if (!s->has_first) {
		s->first = s->open;
		s->has_first = true;
	} else if (!VEC_ADD(&b->pool->steps, s->open)) {
		return false;
	}
	s->open = (struct dw_step){0};
	return true;
}

/* Byte offset in the first run, when the attribute lies in it. */
static uint16_t place(const struct shape *s)
{
	return s->has_first ? DW_NO_FAST : s->open.fixed;
}

static bool is_ref4(uint16_t form)
{
	return form == DW_FORM_ref4;
}

static void note_declaration(struct dw_func_abbrev *f, const struct dw_spec *spec)
{
	if (spec->form == DW_FORM_flag_present ||
	    (spec->form == DW_FORM_implicit_const && spec->implicit))
		f->flags |= DW_FUNC_DECLARATION;
	else
		f->flags_need_values = true;
}

static void note_strp(const struct shape *s, const struct dw_spec *spec, bool four_bytes, bool *has,
		      bool *is_strp, uint16_t *ret)
{
	*has = true;
	*is_strp = spec->form == DW_FORM_strp && four_bytes;
	*ret = *is_strp ? place(s) : DW_NO_FAST;
}

/*
 * Record the offset of an attribute that the index needs. Called before the attribute's size is
 * added.
 */
static void note(struct builder *b, struct shape *s, const struct dw_spec *spec)
{
	struct dw_func_abbrev *f = &s->func;
	/* The filter of names knows offsets in the strings of the binary only. */
	bool four_bytes = b->t->offset_size == 4 && !b->t->file->is_split;
	switch (spec->at) {
	case DW_AT_sibling:
		if (is_ref4(spec->form))
			s->sibling = place(s);
		break;
	case DW_AT_name:
		note_strp(s, spec, four_bytes, &f->has_name, &f->name_is_strp, &f->name);
		break;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name:
		note_strp(s, spec, four_bytes, &f->has_linkage_name, &f->linkage_name_is_strp,
			  &f->linkage_name);
		break;
	case DW_AT_specification:
		s->has_specification = true;
		if (f->has_origin)
			break; /* an abstract origin has more facts */
		f->origin = is_ref4(spec->form) ? place(s) : DW_NO_FAST;
		break;
	case DW_AT_abstract_origin:
		f->has_origin = true;
		f->origin = is_ref4(spec->form) ? place(s) : DW_NO_FAST;
		break;
	case DW_AT_low_pc:
	case DW_AT_ranges:
	case DW_AT_entry_pc:
		f->flags |= DW_FUNC_HAS_CODE;
		break;
	case DW_AT_GNU_entry_view:
		f->flags |= DW_FUNC_ENTRY_VIEW;
		break;
	case DW_AT_inline:
		f->flags |= DW_FUNC_ABSTRACT;
		break;
	case DW_AT_declaration:
		note_declaration(f, spec);
		break;
	}
}

const uint8_t dw_slots[] = {
	[DW_AT_sibling] = DW_SLOT_SIBLING,
	[DW_AT_location] = DW_SLOT_LOCATION,
	[DW_AT_const_value] = DW_SLOT_CONST_VALUE,
	[DW_AT_name] = DW_SLOT_NAME,
	[DW_AT_byte_size] = DW_SLOT_BYTE_SIZE,
	[DW_AT_type] = DW_SLOT_TYPE,
	[DW_AT_low_pc] = DW_SLOT_LOW_PC,
	[DW_AT_high_pc] = DW_SLOT_HIGH_PC,
	[DW_AT_ranges] = DW_SLOT_RANGES,
	[DW_AT_entry_pc] = DW_SLOT_ENTRY_PC,
	[DW_AT_frame_base] = DW_SLOT_FRAME_BASE,
	[DW_AT_abstract_origin] = DW_SLOT_ORIGIN,
	[DW_AT_specification] = DW_SLOT_SPECIFICATION,
	[DW_AT_decl_file] = DW_SLOT_DECL_FILE,
	[DW_AT_decl_line] = DW_SLOT_DECL_LINE,
	[DW_AT_decl_column] = DW_SLOT_DECL_COLUMN,
	[DW_AT_call_file] = DW_SLOT_CALL_FILE,
	[DW_AT_call_line] = DW_SLOT_CALL_LINE,
	[DW_AT_call_column] = DW_SLOT_CALL_COLUMN,
};

const uint8_t dw_gnu_slots[] = {DW_SLOT_LOCVIEWS, DW_SLOT_ENTRY_VIEW};

/* The form, when dw_near_value() reads it. */
static uint8_t near_form(const struct dw_abbrevs *t, uint16_t form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_sdata:
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
	case DW_FORM_exprloc:
	case DW_FORM_ref4:
		return (uint8_t)form;
	case DW_FORM_addr:
		return t->addr_size == 8 ? DW_FORM_addr : DW_NEAR_BY_PAIR;
	case DW_FORM_strp:
	case DW_FORM_sec_offset:
		return t->offset_size == 4 ? (uint8_t)form : DW_NEAR_BY_PAIR;
	}
	return DW_NEAR_BY_PAIR;
}

/*
 * Called before the attribute's size is added. @after: the pair, and its implicit value, in
 * .debug_abbrev
 */
static void note_near(const struct builder *b, struct dw_abbrev *a, const struct shape *s,
		      const struct dw_spec *spec, const uint8_t *after)
{
	enum dw_slot slot = dw_slot_of(spec->at);
	struct dw_near *n = &a->near[slot];
	uint64_t off = place(s);
	/* If there are several, the first counts. */
	if (slot == DW_SLOT_NONE || n->form)
		return;
	if (spec->form == DW_FORM_implicit_const) {
		/* Its bytes end at the first one without the highest bit. */
		const uint8_t *from = after - 1;
		while (from > a->specs && from[-1] >= 0x80)
			from--;
		off = (uint64_t)(from - a->specs);
	}
	*n = (struct dw_near){off <= UINT8_MAX ? near_form(b->t, spec->form) : DW_NEAR_BY_PAIR,
			      (uint8_t)off};
}

/* Add one attribute's size to the program. */
static bool extend(struct builder *b, struct shape *s, uint16_t form)
{
	struct dw_form_size size =
		dw_form_size(form, b->t->addr_size, b->t->offset_size, b->t->ref_addr_size);
	if (s->open.fixed + size.fixed > UINT16_MAX && !close_step(b, s, DW_THEN_MORE))
		return false;
	s->open.fixed += size.fixed;
	return size.then == DW_THEN_END || close_step(b, s, size.then);
}

/* Reads one pair; false at its end, which is 0, 0. */
static bool read_spec(struct cursor *c, struct dw_spec *ret)
{
	/* Two small numbers, nearly always. */
	if (cur_left(c) >= 2 && c->pos[0] < 0x80 && c->pos[1] &&
	    c->pos[1] < DW_FORM_implicit_const) {
		*ret = (struct dw_spec){.at = c->pos[0], .form = c->pos[1]};
		c->pos += 2;
		return true;
	}
	uint64_t at = cur_uleb(c), form = cur_uleb(c);
	ret->implicit = form == DW_FORM_implicit_const ? cur_sleb(c) : 0;
	if (at > UINT16_MAX || form > UINT16_MAX || (at && !form))
		dw_expected(c, "an attribute and its form, two numbers from 1 to 0xffff");
	ret->at = (uint16_t)at;
	ret->form = (uint16_t)form;
	return !c->failed && (at || form);
}

static bool push(struct builder *b, uint64_t code, const struct dw_abbrev *a)
{
	struct dw_abbrev_pool *pool = b->pool;
	if (!VEC_ADD(&pool->table, a))
		return false;
	if (b->dense && code == pool->table.n)
		return true;
	/* The first code out of order: from here on every code is written down. */
	for (uint64_t i = pool->codes.n + 1; b->dense && i < pool->table.n; i++)
		if (!VEC_ADD(&pool->codes, i))
			return false;
	b->dense = false;
	return VEC_ADD(&pool->codes, code);
}

/* A copy that stays; NULL of nothing, and when out of memory. */
static void *keep(struct dw_abbrev_pool *pool, const void *p, size_t n, size_t size)
{
	void *kept = n ? arena_array(&pool->arena, n, size) : NULL;
	if (kept)
		memcpy(kept, p, n * size);
	return kept;
}

static const struct dw_func_abbrev *keep_func(struct builder *b, const struct dw_abbrev *a,
					      struct shape *s)
{
	if (s->has_specification && !s->func.has_origin)
		s->func.flags |= DW_FUNC_SPECIFICATION;
	s->func.has_origin |= s->has_specification;
	if (a->tag == DW_TAG_inlined_subroutine)
		s->func.flags |= DW_FUNC_INLINED;
	return keep(b->pool, &s->func, 1, sizeof(s->func));
}

/* The permanent form of an abbreviation that was read. NULL: out of memory. */
static const struct dw_abbrev *keep_abbrev(struct builder *b, struct dw_abbrev *a, struct shape *s)
{
	struct dw_abbrev_pool *pool = b->pool;
	bool is_func = a->tag == DW_TAG_subprogram || a->tag == DW_TAG_inlined_subroutine;
	a->first = s->first;
	a->sibling = s->sibling;
	a->more = keep(pool, pool->steps.p, pool->steps.n, sizeof(*pool->steps.p));
	a->func = is_func ? keep_func(b, a, s) : NULL;
	if ((pool->steps.n && !a->more) || (is_func && !a->func))
		return NULL;
	return keep(pool, a, 1, sizeof(*a));
}

/* Reads an abbreviation after its code. 0 or negative. */
static int compile_new(struct builder *b, struct cursor *c, uint64_t code,
		       const struct dw_abbrev **ret)
{
	uint64_t tag = cur_uleb(c);
	uint8_t children = cur_u8(c);
	if (tag > UINT16_MAX || children > 1)
		dw_expected(c, "a tag up to 0xffff and the children flag, 0 or 1");
	struct dw_abbrev a = {.specs = c->pos, .tag = (uint16_t)tag, .has_children = children};
	struct shape s = {
		.sibling = DW_NO_FAST,
		.func = {.name = DW_NO_FAST, .linkage_name = DW_NO_FAST, .origin = DW_NO_FAST}};
	struct dw_spec spec;
	unsigned int n = 0;
	b->pool->steps.n = 0;
	for (; read_spec(c, &spec); n++) {
		if (n == DW_ATTRS_MAX)
			return err_set(c->err, -ERANGE,
				       "%s: .debug_abbrev+0x%" PRIx64 ": abbreviation %" PRIu64
				       " has more than %d attributes",
				       b->t->file->path, cur_off(c), code, DW_ATTRS_MAX);
		a.has |= dw_attr_bit(spec.at);
		note(b, &s, &spec);
		note_near(b, &a, &s, &spec, c->pos);
		if (!extend(b, &s, spec.form))
			return err_nomem(c->err, "abbreviations");
	}
	if (c->failed)
		return -EBADMSG;
	*ret = close_step(b, &s, DW_THEN_END) ? keep_abbrev(b, &a, &s) : NULL;
	return *ret ? 0 : err_nomem(c->err, "abbreviations");
}

/* One abbreviation, which most often another table has. 1, 0 at the end of the table, negative. */
static int compile_one(struct builder *b, struct cursor *c)
{
	uint64_t code = cur_uleb(c);
	if (c->failed || !code)
		return c->failed ? -EBADMSG : 0;
	const uint8_t *bytes = c->pos;
	size_t n = dw_abbrev_bytes(bytes, bytes + cur_left(c));
	const struct dw_abbrev *a = n ? dw_abbrev_pool_find(b->pool, b->t, bytes, n) : NULL;
	if (a) {
		cur_skip(c, n);
	} else {
		int rc = compile_new(b, c, code, &a);
		if (rc < 0)
			return rc;
		if (n && c->pos == bytes + n && dw_abbrev_pool_add(b->pool, b->t, bytes, n, a) < 0)
			return err_nomem(c->err, "abbreviations");
	}
	b->t->has_siblings |= a->near[DW_SLOT_SIBLING].form != 0;
	return push(b, code, a) ? 1 : err_nomem(c->err, "abbreviations");
}

struct by_code {
	uint64_t code;
	size_t i;
};

static int compare_codes(const void *a, const void *b)
{
	const struct by_code *x = a, *y = b;
	return x->code < y->code ? -1 : x->code > y->code;
}

/* Codes out of order: sort the abbreviations by them. */
static int sort_sparse(struct dw_abbrevs *t, struct cairn_err *err)
{
	struct by_code *order = calloc(t->n, sizeof(*order));
	const struct dw_abbrev **sorted = calloc(t->n, sizeof(struct dw_abbrev *));
	int rc = order && sorted ? 0 : err_nomem(err, "abbreviations");
	for (size_t i = 0; !rc && i < t->n; i++)
		order[i] = (struct by_code){t->codes[i], i};
	if (!rc)
		qsort(order, t->n, sizeof(*order), compare_codes);
	for (size_t i = 0; !rc && i < t->n; i++) {
		sorted[i] = t->p[order[i].i];
		t->codes[i] = order[i].code;
		if (i && order[i].code == order[i - 1].code)
			rc = err_set(err, -EBADMSG,
				     "%s: .debug_abbrev+0x%" PRIx64 ": abbreviation code %" PRIu64
				     " is defined twice in one table",
				     t->file->path, t->off, order[i].code);
	}
	if (!rc) {
		free(t->p);
		t->p = TAKE(sorted);
	}
	free(order);
	free(sorted);
	return rc;
}

static void *copy(const void *p, size_t n, size_t size)
{
	void *copied = malloc(n * size + 1);
	if (copied && n)
		memcpy(copied, p, n * size);
	return copied;
}

/* From the scratch of the worker to the table. */
static int take_table(struct builder *b, struct cairn_err *err)
{
	struct dw_abbrevs *t = b->t;
	t->n = b->pool->table.n;
	t->p = copy(b->pool->table.p, t->n, sizeof(struct dw_abbrev *));
	if (!b->dense)
		t->codes = copy(b->pool->codes.p, t->n, sizeof(*t->codes));
	if (!t->p || (!b->dense && !t->codes))
		return err_nomem(err, "abbreviations");
	return b->dense ? 0 : sort_sparse(t, err);
}

/*
 * @t       key filled in; dw_abbrevs_fini() is due also after a failure
 * @pool    of the worker
 * @budget  bytes of tables that may still be compiled, shared by all workers
 */
int dw_abbrevs_compile(struct dw_abbrevs *t, struct dw_abbrev_pool *pool, _Atomic uint64_t *budget,
		       struct cairn_err *err)
{
	const struct dw_section *sec = &t->file->sec[DW_SEC_ABBREV];
	struct cursor c = dw_section_cursor(sec, t->off, err);
	struct builder b = {.t = t, .pool = pool, .dense = true};
	pool->table.n = pool->codes.n = 0;
	for (int rc = 1; rc > 0;) {
		const uint8_t *from = c.pos;
		rc = compile_one(&b, &c);
		uint64_t used = (uint64_t)(c.pos - from);
		if (rc > 0 && atomic_fetch_sub(budget, used) < used)
			rc = err_set(
				err, -ERANGE,
				"%s: .debug_abbrev: tables overlap: together they are more than %d "
				"times as long as the section",
				t->file->path, DW_ABBREV_OVERLAP_MAX);
		if (rc < 0)
			return rc;
	}
	return take_table(&b, err);
}

void dw_abbrevs_fini(struct dw_abbrevs *t)
{
	free(t->p);
	free(t->codes);
}

size_t dw_abbrev_index_sparse(const struct dw_abbrevs *t, uint64_t code)
{
	size_t lo = SEARCH(0, t->n, mid, t->codes[mid] < code);
	return lo < t->n && t->codes[lo] == code ? lo : t->n;
}

/* A LEB128 that was checked when the table was compiled. */
static uint64_t checked_leb(const uint8_t **p, bool is_signed)
{
	uint64_t v = 0;
	unsigned int shift = 0;
	uint8_t byte;
	do {
		byte = *(*p)++;
		if (shift < 64)
			v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte >= 0x80);
	if (is_signed && shift < 64 && (byte & 0x40))
		v |= ~(uint64_t)0 << shift;
	return v;
}

bool dw_spec_next(const uint8_t **p, struct dw_spec *ret)
{
	ret->at = (uint16_t)checked_leb(p, false);
	ret->form = (uint16_t)checked_leb(p, false);
	ret->implicit = ret->form == DW_FORM_implicit_const ? (int64_t)checked_leb(p, true) : 0;
	return ret->form != 0;
}

static void skip_then(const struct dw_unit *u, struct cursor *c, uint8_t then)
{
	switch ((enum dw_then)then) {
	case DW_THEN_END:
	case DW_THEN_MORE:
		break;
	case DW_THEN_LEB:
		cur_skip_leb(c);
		break;
	case DW_THEN_STR:
		cur_str(c);
		break;
	case DW_THEN_BLOCK:
		cur_skip(c, cur_uleb(c));
		break;
	case DW_THEN_BLOCK1:
		cur_skip(c, cur_u8(c));
		break;
	case DW_THEN_BLOCK2:
		cur_skip(c, cur_u16(c));
		break;
	case DW_THEN_BLOCK4:
		cur_skip(c, cur_u32(c));
		break;
	case DW_THEN_INDIRECT: {
		uint64_t form = cur_uleb(c);
		if (form == DW_FORM_indirect || form == DW_FORM_implicit_const || form > UINT16_MAX)
			dw_expected(c, "a form after DW_FORM_indirect that can stand there");
		else
			dw_form_skip(u, c, (uint16_t)form);
		break;
	}
	case DW_THEN_UNKNOWN:
		dw_unknown(c, "the form of an attribute in the table at .debug_abbrev",
			   u->abbrev_off);
		break;
	}
}

void dw_step_skip(const struct dw_unit *u, struct dw_step step, struct cursor *c)
{
	cur_skip(c, step.fixed);
	skip_then(u, c, step.then);
}

void dw_abbrev_skip_slow(const struct dw_unit *u, const struct dw_abbrev *a, struct cursor *c)
{
	struct dw_step step = a->first;
	for (const struct dw_step *next = a->more;; step = *next++) {
		dw_step_skip(u, step, c);
		if (step.then == DW_THEN_END || c->failed)
			return;
	}
}

void dw_form_skip(const struct dw_unit *u, struct cursor *c, uint16_t form)
{
	const struct dw_abbrevs *t = u->abbrevs;
	struct dw_form_size size =
		dw_form_size(form, t->addr_size, t->offset_size, t->ref_addr_size);
	cur_skip(c, size.fixed);
	skip_then(u, c, size.then);
}
