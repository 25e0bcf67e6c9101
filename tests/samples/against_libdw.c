/* SPDX-License-Identifier: BSD-2-Clause */
#include "against_libdw.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dwarf/constants.h"
#include "dwarf/impl.h"

enum { SHOWN = 20, DEPTH_MAX = 512 };

struct compare {
	struct against_libdw *r;
	const struct dw_die *ours;
	Dwarf_Die *theirs;
	size_t n_attrs;
};

__attribute__((format(printf, 2, 3))) static void differ(struct compare *c, const char *fmt, ...)
{
	if (c->r->differences++ >= SHOWN)
		return;
	va_list ap;
	va_start(ap, fmt);
	fprintf(stderr, "DIE 0x%" PRIx64 ": ", c->ours ? c->ours->off : 0);
	vfprintf(stderr, fmt, ap);
	fputc('\n', stderr);
	va_end(ap);
}

/* ---- attributes ---- */

static bool same_value(const struct dw_value *v, Dwarf_Attribute *a)
{
	Dwarf_Addr addr;
	Dwarf_Word u;
	Dwarf_Sword s;
	Dwarf_Block block;
	Dwarf_Die die;
	bool flag;
	const char *str;
	switch (v->cls) {
	case DW_CLASS_NONE:
		return false;
	case DW_CLASS_ADDRESS:
		return dwarf_formaddr(a, &addr) == 0 && addr == v->addr.v;
	case DW_CLASS_UDATA:
		return dwarf_formudata(a, &u) == 0 && u == v->u;
	case DW_CLASS_SDATA:
		return dwarf_formsdata(a, &s) == 0 && s == v->s;
	case DW_CLASS_BLOCK:
	case DW_CLASS_EXPRLOC:
		return dwarf_formblock(a, &block) == 0 && block.length == v->block.n &&
		       !memcmp(block.data, v->block.p, block.length);
	case DW_CLASS_FLAG:
		return dwarf_formflag(a, &flag) == 0 && flag == !!v->u;
	case DW_CLASS_STRING:
		str = dwarf_formstring(a);
		return str && !strcmp(str, v->str);
	case DW_CLASS_REF:
		return dwarf_formref_die(a, &die) &&
		       dwarf_dieoffset(&die) == (v->ref & ~(DW_OFF_ALT | DW_OFF_TYPES));
	case DW_CLASS_SIGNATURE:
		return true; /* libdw gives the DIE, not the number; compared below */
	case DW_CLASS_SECOFF:
		/* libdw refuses to show loclistx and rnglistx; their lists are compared instead. */
		return v->form != DW_FORM_sec_offset || (dwarf_formudata(a, &u) == 0 && u == v->u);
	}
	return false;
}

static int compare_attr(Dwarf_Attribute *a, void *ctx)
{
	struct compare *c = ctx;
	struct dw_value v;
	struct cairn_err err = {0};
	Dwarf_Die die;
	uint16_t at = (uint16_t)dwarf_whatattr(a);
	c->n_attrs++;
	c->r->attrs++;
	if (dw_attr(c->ours, at, &v, &err) != 1)
		differ(c, "attribute 0x%x: %s", at, err.msg);
	else if (v.form != dwarf_whatform(a))
		differ(c, "attribute 0x%x: form 0x%x, libdw 0x%x", at, v.form, dwarf_whatform(a));
	else if (!same_value(&v, a))
		differ(c, "attribute 0x%x: form 0x%x: not the value that libdw has", at, v.form);
	else if (v.cls == DW_CLASS_SIGNATURE && dwarf_formref_die(a, &die) &&
		 dwarf_dieoffset(&die) != (dw_ref(c->ours, at) & ~(DW_OFF_ALT | DW_OFF_TYPES)))
		differ(c, "attribute 0x%x: not the type that libdw finds", at);
	return DWARF_CB_OK;
}

static void compare_attrs(struct compare *c)
{
	const uint8_t *specs = c->ours->abbrev->specs;
	struct dw_spec spec;
	size_t n = 0;
	while (dw_spec_next(&specs, &spec))
		n++;
	c->n_attrs = 0;
	if (dwarf_getattrs(c->theirs, compare_attr, c, 0) != 1)
		differ(c, "libdw: %s", dwarf_errmsg(-1));
	if (n != c->n_attrs)
		differ(c, "%zu attributes, libdw %zu", n, c->n_attrs);
}

/* ---- ranges and locations ---- */

struct bounds {
	VEC(struct dw_range) v;
	VEC(uint8_t) op; /* first byte of the expression, 0 for none */
	bool uninit;     /* one has DW_OP_GNU_uninit */
};

static int keep_range(void *ctx, struct dw_range range)
{
	struct bounds *b = ctx;
	return VEC_ADD(&b->v, range) ? 0 : -ENOMEM;
}

static int keep_location(void *ctx, const struct dw_loc_entry *e)
{
	struct bounds *b = ctx;
	struct dw_range range = {e->lo, e->hi};
	if (e->everywhere)
		range = (struct dw_range){{0}, {UINT64_MAX}};
	b->uninit |= memchr(e->expr, DW_OP_GNU_uninit, e->expr_len) != NULL;
	return VEC_ADD(&b->v, range) && VEC_ADD(&b->op, e->expr_len ? e->expr[0] : 0) ? 0 : -ENOMEM;
}

static void compare_ranges(struct compare *c)
{
	struct bounds b = {0};
	struct cairn_err err = {0};
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;
	size_t i = 0;
	int n = dw_ranges(c->ours, keep_range, &b, &err);
	if (n < 0)
		differ(c, "ranges: %s", err.msg);
	while (n >= 0 && (at = dwarf_ranges(c->theirs, at, &base, &lo, &hi)) > 0) {
		/* libdw also gives what the linker dropped. */
		if (lo == hi || lo == 0)
			continue;
		if (i >= b.v.n || b.v.p[i].lo.v != lo || b.v.p[i].hi.v != hi)
			differ(c, "range %zu: libdw [0x%" PRIx64 ", 0x%" PRIx64 ")", i, lo, hi);
		i++;
		c->r->ranges++;
	}
	if (n >= 0 && i != b.v.n)
		differ(c, "%zu ranges, libdw %zu", b.v.n, i);
	VEC_FREE(&b.v);
}

static void compare_locations(struct compare *c, uint16_t at)
{
	struct bounds b = {0};
	struct cairn_err err = {0};
	Dwarf_Attribute attr;
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *ops;
	size_t n_ops, i = 0;
	ptrdiff_t off = 0;
	int n = dw_locations(c->ours, at, keep_location, &b, &err);
	if (n < 0)
		differ(c, "locations: %s", err.msg);
	if (n > 0 && !dwarf_attr(c->theirs, at, &attr))
		differ(c, "locations of attribute 0x%x, which libdw does not have", at);
	while (n > 0 && (off = dwarf_getlocations(&attr, off, &base, &lo, &hi, &ops, &n_ops)) > 0) {
		if (i >= b.v.n || b.v.p[i].lo.v != lo || b.v.p[i].hi.v != hi)
			differ(c, "location %zu: libdw [0x%" PRIx64 ", 0x%" PRIx64 ")", i, lo, hi);
		else if (b.op.p[i] != (n_ops ? ops[0].atom : 0))
			differ(c, "location %zu: first operation 0x%x, libdw 0x%x", i, b.op.p[i],
			       ops[0].atom);
		i++;
		c->r->locations++;
	}
	/* libdw refuses a list with DW_OP_GNU_uninit, which GCC writes. */
	if (n > 0 && off < 0 && b.uninit)
		c->r->refused_by_libdw++;
	else if (n > 0 && off < 0)
		differ(c, "locations: libdw: %s", dwarf_errmsg(-1));
	else if (n >= 0 && i != b.v.n)
		differ(c, "%zu locations, libdw %zu", b.v.n, i);
	VEC_FREE(&b.v);
	VEC_FREE(&b.op);
}

/* ---- lines ---- */

struct line {
	uint64_t at;
	int end, line, column, stmt;
};

static int compare_lines(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return memcmp(&x->end, &y->end, sizeof(*x) - sizeof(x->at));
}

static struct line *our_lines(const struct dw_unit *u, size_t *ret_n)
{
	const struct dw_row *rows;
	int64_t n = dw_unit_rows(u, &rows, NULL);
	struct line *l = n > 0 ? calloc((size_t)n, sizeof(*l)) : NULL;
	*ret_n = 0;
	for (int64_t i = 0; l && i < n; i++) {
		const struct dw_row *r = &rows[i];
		l[i] = (struct line){.at = r->at.v, .end = r->end_sequence};
		if (!r->end_sequence) {
			l[i].line = (int)r->line;
			l[i].column = r->column;
			l[i].stmt = r->is_stmt;
		}
		(*ret_n)++;
	}
	return l;
}

/*
 * Sequences that the linker dropped start at 0, and may be long: no code lies below the first
 * section.
 */
static uint64_t lowest_code(const struct elf *e)
{
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if ((s->flags & SHF_EXECINSTR) && s->addr.v < lowest)
			lowest = s->addr.v;
	}
	return lowest;
}

static struct line *their_lines(Dwarf_Die *cu, uint64_t lowest, size_t *ret_n)
{
	Dwarf_Lines *lines;
	size_t n;
	*ret_n = 0;
	if (dwarf_getsrclines(cu, &lines, &n) != 0 || !n)
		return NULL;
	struct line *l = calloc(n, sizeof(*l));
	uint64_t end_at = 0;
	for (size_t i = 0; l && i < n; i++) {
		Dwarf_Line *from = dwarf_onesrcline(lines, i);
		struct line to = {0};
		bool end, stmt;
		dwarf_lineaddr(from, &to.at);
		dwarf_lineendsequence(from, &end);
		dwarf_linebeginstatement(from, &stmt);
		if (to.at < lowest)
			continue;
		/*
		 * libdw marks its last row as an end, also when the end was sorted in front of it.
		 */
		if (i == n - 1 && to.at == end_at)
			end = false;
		if (end)
			end_at = to.at;
		to.end = end;
		if (!end) {
			dwarf_lineno(from, &to.line);
			dwarf_linecol(from, &to.column);
			to.stmt = stmt;
		}
		l[(*ret_n)++] = to;
	}
	return l;
}

static void compare_rows(struct compare *c, const struct dw_unit *u)
{
	size_t n, n_theirs;
	uint64_t lowest = lowest_code(u->file->elf);
	struct line *ours = our_lines(u, &n), *theirs = their_lines(c->theirs, lowest, &n_theirs);
	if (n)
		qsort(ours, n, sizeof(*ours), compare_lines);
	if (n_theirs)
		qsort(theirs, n_theirs, sizeof(*theirs), compare_lines);
	if (n != n_theirs)
		differ(c, "%zu rows, libdw %zu", n, n_theirs);
	for (size_t i = 0; i < n && n == n_theirs; i++) {
		c->r->rows++;
		if (compare_lines(&ours[i], &theirs[i]))
			differ(c, "row at 0x%" PRIx64 " line %d, libdw 0x%" PRIx64 " line %d",
			       ours[i].at, ours[i].line, theirs[i].at, theirs[i].line);
	}
	free(ours);
	free(theirs);
}

/* ---- the tree ---- */

static void compare_die(struct compare *c)
{
	struct against_libdw *r = c->r;
	r->dies++;
	if (c->ours->tag != dwarf_tag(c->theirs))
		differ(c, "tag 0x%x, libdw 0x%x", c->ours->tag, dwarf_tag(c->theirs));
	if ((c->ours->off & ~(DW_OFF_ALT | DW_OFF_TYPES)) != dwarf_dieoffset(c->theirs))
		differ(c, "libdw is at 0x%" PRIx64, dwarf_dieoffset(c->theirs));
	bool code = dwarf_hasattr(c->theirs, DW_AT_low_pc) ||
		    dwarf_hasattr(c->theirs, DW_AT_ranges) ||
		    dwarf_hasattr(c->theirs, DW_AT_entry_pc);
	r->inlined_with_code += code && c->ours->tag == DW_TAG_inlined_subroutine;
	r->subprograms_with_code += code && c->ours->tag == DW_TAG_subprogram;
	compare_attrs(c);
	compare_ranges(c);
	compare_locations(c, DW_AT_location);
	compare_locations(c, DW_AT_frame_base);
}

/* Walks both trees in step. Any difference of shape shows as one of offsets. */
static void compare_unit(struct against_libdw *r, const struct dw_unit *u, Dwarf_Die *cu)
{
	struct dw_die *ours = calloc(DEPTH_MAX, sizeof(*ours));
	Dwarf_Die *theirs = calloc(DEPTH_MAX, sizeof(*theirs));
	struct compare c = {.r = r, .theirs = &theirs[0]};
	int depth = 0;
	theirs[0] = *cu;
	if (dw_unit_root(u, &ours[0], NULL) != 1) {
		differ(&c, "no root of the unit at 0x%" PRIx64, u->off);
		depth = -1;
	}
	while (depth >= 0) {
		c.ours = &ours[depth];
		c.theirs = &theirs[depth];
		compare_die(&c);
		if (!depth && !dw_unit_is_type_unit(u))
			compare_rows(&c, u);
		if (depth + 1 < DEPTH_MAX) {
			int rc = dw_die_child(&ours[depth], &ours[depth + 1], NULL);
			if (rc != (dwarf_child(&theirs[depth], &theirs[depth + 1]) == 0))
				differ(&c, "children: %d", rc);
			if (rc == 1) {
				depth++;
				continue;
			}
		}
		for (; depth > 0; depth--) {
			c.ours = &ours[depth];
			struct dw_die next = {0};
			Dwarf_Die their_next;
			int rc = dw_die_sibling(&ours[depth], &next, NULL);
			if (rc != (dwarf_siblingof(&theirs[depth], &their_next) == 0)) {
				differ(&c, "sibling: %d", rc);
				rc = 0;
			}
			if (rc != 1)
				continue;
			ours[depth] = next;
			theirs[depth] = their_next;
			break;
		}
		if (!depth)
			break;
	}
	free(ours);
	free(theirs);
}

static void compare_units(struct against_libdw *r, const struct dwarf *dw, Dwarf *libdw, bool types)
{
	Dwarf_Off off = 0, next, abbrev;
	size_t header, i = 0;
	uint8_t addr_size, offset_size;
	uint64_t signature;
	Dwarf_Half version;
	struct compare c = {.r = r};
	while (i < dw->n_units && !!(dw->units[i].tag & DW_OFF_TYPES) != types)
		i++;
	while (dwarf_next_unit(libdw, off, &next, &header, &version, &abbrev, &addr_size,
			       &offset_size, types ? &signature : NULL, NULL) == 0) {
		Dwarf_Die cu;
		const struct dw_unit *u = &dw->units[i];
		if (i >= dw->n_units || u->off != off || u->version != version) {
			differ(&c, "unit at 0x%" PRIx64 " of libdw", off);
			return;
		}
		if (types ? dwarf_offdie_types(libdw, off + header, &cu)
			  : dwarf_offdie(libdw, off + header, &cu))
			compare_unit(r, u, &cu);
		off = next;
		i++;
	}
}

int against_libdw(const struct dwarf *dw, const char *path, struct against_libdw *ret)
{
	*ret = (struct against_libdw){0};
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Dwarf *libdw = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!libdw) {
		if (fd >= 0)
			close(fd);
		return -ENOENT;
	}
	compare_units(ret, dw, libdw, false);
	if (dw->file[0].sec[DW_SEC_TYPES].n)
		compare_units(ret, dw, libdw, true);
	dwarf_end(libdw);
	close(fd);
	return 0;
}

bool index_agrees(const struct dw_func_index *index, const struct against_libdw *libdw)
{
	uint64_t inlined = 0, subprograms = 0;
	for (size_t i = 0; i < index->n; i++) {
		if (!(index->p[i].flags & DW_FUNC_HAS_CODE))
			continue;
		if (index->p[i].flags & DW_FUNC_INLINED)
			inlined++;
		else
			subprograms++;
	}
	return inlined == libdw->inlined_with_code && subprograms == libdw->subprograms_with_code;
}
