/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_builder.h"

#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"
#include "elf_builder.h"

struct buf {
	uint8_t *p;
	size_t n, cap;
};

struct label {
	bool bound;
	uint64_t off;
	enum db_sec sec;
};

/* A reference written before its label was bound. */
struct fixup {
	enum db_sec sec;
	uint64_t at, base; /* what is subtracted from the label's offset */
	unsigned int size;
	int label;
};

struct db {
	struct db_format format;
	struct buf sec[DB_N_SECS];
	struct buf shapes; /* abbreviations of the current table, as they are in .debug_abbrev */
	struct buf shape_starts; /* size_t each */
	uint64_t table;          /* offset of the current table */
	bool table_open;
	struct buf labels, fixups; /* struct label, struct fixup */
	enum db_sec unit_sec;
	uint64_t unit, unit_length;
	struct elf_builder *elf;
	const uint8_t *code;
	size_t n_code;
	bool is_cut[DB_N_SECS];
	uint64_t cut[DB_N_SECS];
};

static void *xrealloc(void *p, size_t n)
{
	p = realloc(p, n);
	if (!p)
		abort();
	return p;
}

static void add(struct buf *b, const void *p, size_t n)
{
	if (b->n + n > b->cap) {
		b->cap = (b->n + n) * 2;
		b->p = xrealloc(b->p, b->cap);
	}
	if (n)
		memcpy(b->p + b->n, p, n);
	b->n += n;
}

static void add_uint(struct buf *b, uint64_t v, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++) {
		uint8_t byte = i < 8 ? (uint8_t)(v >> 8 * i) : 0;
		add(b, &byte, 1);
	}
}

static void add_uleb(struct buf *b, uint64_t v)
{
	do {
		uint8_t byte = (v & 0x7f) | (v >= 0x80 ? 0x80 : 0);
		add(b, &byte, 1);
		v >>= 7;
	} while (v);
}

static void add_sleb(struct buf *b, int64_t v)
{
	for (;;) {
		uint8_t byte = v & 0x7f;
		v >>= 7;
		bool last = (v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40));
		byte |= last ? 0 : 0x80;
		add(b, &byte, 1);
		if (last)
			return;
	}
}

static struct db_format with_defaults(struct db_format f)
{
	f.version = f.version ? f.version : 5;
	f.offset_size = f.offset_size ? f.offset_size : 4;
	f.addr_size = f.addr_size ? f.addr_size : 8;
	f.code_step = f.code_step ? f.code_step : 1;
	return f;
}

struct db *db_new(struct db_format format)
{
	struct db *d = xrealloc(NULL, sizeof(*d));
	memset(d, 0, sizeof(*d));
	d->format = with_defaults(format);
	db_label(d); /* 0 is none */
	return d;
}

void db_free(struct db *d)
{
	for (int i = 0; i < DB_N_SECS; i++)
		free(d->sec[i].p);
	free(d->shapes.p);
	free(d->shape_starts.p);
	free(d->labels.p);
	free(d->fixups.p);
	if (d->elf)
		eb_free(d->elf);
	free(d);
}

static void close_table(struct db *d)
{
	if (d->table_open)
		db_u8(d, DB_ABBREV, 0);
	d->table_open = false;
	d->shapes.n = d->shape_starts.n = 0;
}

static void open_table(struct db *d)
{
	if (d->table_open)
		return;
	d->table = db_at(d, DB_ABBREV);
	d->table_open = true;
}

void db_format(struct db *d, struct db_format format)
{
	close_table(d);
	d->format = with_defaults(format);
}

/* ---- bytes ---- */

uint64_t db_at(const struct db *d, enum db_sec sec)
{
	return d->sec[sec].n;
}

void db_u8(struct db *d, enum db_sec sec, uint8_t v)
{
	add(&d->sec[sec], &v, 1);
}

void db_uint(struct db *d, enum db_sec sec, uint64_t v, unsigned int size)
{
	add_uint(&d->sec[sec], v, size);
}

void db_uleb(struct db *d, enum db_sec sec, uint64_t v)
{
	add_uleb(&d->sec[sec], v);
}

void db_sleb(struct db *d, enum db_sec sec, int64_t v)
{
	add_sleb(&d->sec[sec], v);
}

void db_bytes(struct db *d, enum db_sec sec, const void *p, size_t n)
{
	add(&d->sec[sec], p, n);
}

void db_cstr(struct db *d, enum db_sec sec, const char *s)
{
	add(&d->sec[sec], s, strlen(s) + 1);
}

void db_off(struct db *d, enum db_sec sec, uint64_t v)
{
	db_uint(d, sec, v, d->format.offset_size);
}

void db_addr(struct db *d, enum db_sec sec, uint64_t v)
{
	db_uint(d, sec, v, d->format.addr_size);
}

static uint64_t intern(struct buf *b, const char *s)
{
	size_t len = strlen(s) + 1;
	for (size_t i = 0; i + len <= b->n; i += strlen((char *)b->p + i) + 1)
		if (!strcmp((char *)b->p + i, s))
			return i;
	add(b, s, len);
	return b->n - len;
}

uint64_t db_str(struct db *d, const char *s)
{
	return intern(&d->sec[DB_STR_SEC], s);
}

uint64_t db_length(struct db *d, enum db_sec sec)
{
	if (d->format.offset_size == 8)
		db_uint(d, sec, UINT32_MAX, 4);
	db_off(d, sec, 0);
	return db_at(d, sec);
}

void db_length_end(struct db *d, enum db_sec sec, uint64_t mark)
{
	db_patch(d, sec, mark - d->format.offset_size, db_at(d, sec) - mark, d->format.offset_size);
}

void db_patch(struct db *d, enum db_sec sec, uint64_t at, uint64_t v, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		d->sec[sec].p[at + i] = (uint8_t)(v >> 8 * i);
}

void db_cut(struct db *d, enum db_sec sec, uint64_t n)
{
	d->is_cut[sec] = true;
	d->cut[sec] = n;
}

/* ---- labels ---- */

int db_label(struct db *d)
{
	add(&d->labels, &(struct label){0}, sizeof(struct label));
	return (int)(d->labels.n / sizeof(struct label)) - 1;
}

static struct label *label_of(const struct db *d, int label)
{
	return (struct label *)d->labels.p + label;
}

void db_here(struct db *d, int label)
{
	*label_of(d, label) = (struct label){true, db_at(d, d->unit_sec), d->unit_sec};
}

uint64_t db_offset(const struct db *d, int label)
{
	return label_of(d, label)->off;
}

static void refer(struct db *d, int label, uint64_t base, unsigned int size)
{
	struct fixup f = {d->unit_sec, db_at(d, d->unit_sec), base, size, label};
	add(&d->fixups, &f, sizeof(f));
	db_uint(d, d->unit_sec, 0, size);
}

static void resolve(struct db *d)
{
	const struct fixup *f = (struct fixup *)d->fixups.p;
	for (size_t i = 0; i < d->fixups.n / sizeof(*f); i++)
		db_patch(d, f[i].sec, f[i].at, label_of(d, f[i].label)->off - f[i].base, f[i].size);
	d->fixups.n = 0;
}

/* ---- units and DIEs ---- */

static void begin(struct db *d, uint8_t type, uint64_t signature, int type_label)
{
	bool is_type = type == DW_UT_type || type == DW_UT_split_type;
	uint16_t version = d->format.version;
	d->unit_sec = is_type && version < 5 ? DB_TYPES : DB_INFO;
	open_table(d);
	d->unit = db_at(d, d->unit_sec);
	d->unit_length = db_length(d, d->unit_sec);
	db_uint(d, d->unit_sec, version, 2);
	if (version >= 5) {
		db_u8(d, d->unit_sec, type);
		db_u8(d, d->unit_sec, d->format.addr_size);
		db_off(d, d->unit_sec, d->table);
	} else {
		db_off(d, d->unit_sec, d->table);
		db_u8(d, d->unit_sec, d->format.addr_size);
	}
	if (is_type) {
		db_uint(d, d->unit_sec, signature, 8);
		refer(d, type_label, d->unit, d->format.offset_size);
	}
	if (type == DW_UT_skeleton || type == DW_UT_split_compile)
		db_uint(d, d->unit_sec, signature, 8);
}

void db_unit(struct db *d, uint8_t type)
{
	begin(d, type, 0, 0);
}

void db_type_unit(struct db *d, uint64_t signature, int type_label)
{
	begin(d, DW_UT_type, signature, type_label);
}

void db_unit_end(struct db *d)
{
	db_length_end(d, d->unit_sec, d->unit_length);
}

/* The code of the abbreviation with this shape; new ones are written to .debug_abbrev. */
static uint64_t shape_code(struct db *d, uint16_t tag, bool children, const struct db_attr *attrs)
{
	struct buf shape = {0};
	add_uleb(&shape, tag);
	add(&shape, &(uint8_t){children}, 1);
	for (const struct db_attr *a = attrs; a->at; a++) {
		add_uleb(&shape, a->at);
		add_uleb(&shape, a->form);
		if (a->form == DW_FORM_implicit_const)
			add_sleb(&shape, (int64_t)a->u);
	}
	add(&shape, "\0", 2);
	size_t n = d->shape_starts.n / sizeof(size_t), i;
	const size_t *starts = (size_t *)d->shape_starts.p;
	for (i = 0; i < n; i++) {
		size_t end = i + 1 < n ? starts[i + 1] : d->shapes.n;
		if (end - starts[i] == shape.n &&
		    !memcmp(d->shapes.p + starts[i], shape.p, shape.n))
			break;
	}
	uint64_t code = 1 + i * d->format.code_step;
	if (i == n) {
		size_t start = d->shapes.n;
		add(&d->shape_starts, &start, sizeof(start));
		add(&d->shapes, shape.p, shape.n);
		db_uleb(d, DB_ABBREV, code);
		db_bytes(d, DB_ABBREV, shape.p, shape.n);
	}
	free(shape.p);
	return code;
}

static unsigned int fixed_size(const struct db *d, uint16_t form)
{
	switch (form) {
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1:
		return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2:
		return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3:
		return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4:
		return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sup8:
	case DW_FORM_ref_sig8:
		return 8;
	case DW_FORM_addr:
		return d->format.addr_size;
	case DW_FORM_ref_addr:
		return d->format.version == 2 ? d->format.addr_size : d->format.offset_size;
	}
	return d->format.offset_size;
}

static void write_value(struct db *d, const struct db_attr *a, uint16_t form)
{
	enum db_sec sec = d->unit_sec;
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const:
		return;
	case DW_FORM_string:
		db_cstr(d, sec, a->str);
		return;
	case DW_FORM_strp:
		db_off(d, sec, a->str ? db_str(d, a->str) : a->u);
		return;
	case DW_FORM_line_strp:
		db_off(d, sec, a->str ? intern(&d->sec[DB_LINE_STR], a->str) : a->u);
		return;
	case DW_FORM_exprloc:
	case DW_FORM_block:
		db_uleb(d, sec, a->n);
		break;
	case DW_FORM_block1:
		db_uint(d, sec, a->n, 1);
		break;
	case DW_FORM_block2:
		db_uint(d, sec, a->n, 2);
		break;
	case DW_FORM_block4:
		db_uint(d, sec, a->n, 4);
		break;
	case DW_FORM_data16:
		break;
	case DW_FORM_sdata:
		db_sleb(d, sec, (int64_t)a->u);
		return;
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
		db_uleb(d, sec, a->u);
		return;
	default:
		if (a->label)
			refer(d, a->label, form == DW_FORM_ref_addr ? 0 : d->unit,
			      fixed_size(d, form));
		else
			db_uint(d, sec, a->u, fixed_size(d, form));
		return;
	}
	db_bytes(d, sec, a->bytes, a->n);
}

void db_die(struct db *d, uint16_t tag, bool children, const struct db_attr *attrs)
{
	db_uleb(d, d->unit_sec, shape_code(d, tag, children, attrs));
	for (const struct db_attr *a = attrs; a->at; a++) {
		if (a->form != DW_FORM_indirect) {
			write_value(d, a, a->form);
			continue;
		}
		struct db_attr inner = *a;
		inner.u = a->n;
		db_uleb(d, d->unit_sec, a->u);
		write_value(d, &inner, (uint16_t)a->u);
	}
}

void db_null(struct db *d)
{
	db_u8(d, d->unit_sec, 0);
}

/* ---- the file ---- */

void db_code(struct db *d, const uint8_t *code, size_t n)
{
	d->code = code;
	d->n_code = n;
}

uint8_t *db_finish(struct db *d, size_t *ret_size)
{
	static const char *const names[DB_N_SECS] = {
		".debug_info",     ".debug_types",       ".debug_abbrev",   ".debug_str",
		".debug_line_str", ".debug_str_offsets", ".debug_addr",     ".debug_ranges",
		".debug_rnglists", ".debug_loc",         ".debug_loclists", ".debug_line",
		".eh_frame"};
	uint8_t text[0x1000] = {0};
	if (d->n_code)
		memcpy(text, d->code, d->n_code);
	close_table(d);
	resolve(d);
	for (int i = 0; i < DB_N_SECS; i++)
		if (d->is_cut[i] && d->cut[i] < d->sec[i].n)
			d->sec[i].n = d->cut[i];
	d->elf = eb_new(d->format.relocatable ? ET_REL : ET_DYN);
	eb_load(d->elf,
		eb_section(d->elf, (struct eb_section){.name = ".text",
						       .flags = SHF_ALLOC | SHF_EXECINSTR,
						       .addr = d->format.relocatable ? 0 : 0x1000,
						       EB_BYTES(text)}));
	for (int i = 0; i < DB_N_SECS; i++)
		if (d->sec[i].n)
			eb_section(d->elf, (struct eb_section){
						   .name = names[i],
						   .flags = i == DB_EH_FRAME ? SHF_ALLOC : 0,
						   .addr = i == DB_EH_FRAME ? DB_EH_FRAME_AT : 0,
						   .data = d->sec[i].p,
						   .size = d->sec[i].n});
	return eb_finish(d->elf, ret_size);
}
