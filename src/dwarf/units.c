/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Units: headers, and the facts of each root DIE that everything below it depends on
 *
 *	OFFSET    SIZE    .debug_info, DWARF 2 to 4        .debug_info, DWARF 5
 *	0         4       length of what follows           the same
 *	          (0xffffffff: 64-bit DWARF, 8 bytes of length follow; offsets "O" have 8 bytes, else 4)
 *	4         2       version                          version
 *	6         O / 1   abbreviations                    unit type
 *	6+O / 7   1       size of an address               size of an address
 *	      / 8   O                                        abbreviations
 *	then              .debug_types: u64 signature,     type units: u64 signature, O type
 *	                  O offset of the type             skeletons: u64 id of the .dwo
 *
 * Headers are walked one after the other; that touches one page per unit. Then two parallel passes: compile
 * each distinct abbreviation table, read each root DIE. The root is read twice, because its strings and
 * addresses may be indices into tables whose place is told by a later attribute of the same DIE.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"

struct units {
	VEC(struct dw_unit) v;
};

static int bad_unit(const struct dw_unit *u, int code, const char *found, uint64_t value,
		    const char *expected, struct cairn_err *err)
{
	return err_set(err, code, "%s: %s+0x%" PRIx64 ": unit header: %s %" PRIu64 ", expected %s",
		       u->file->path, u->sec->src.section, u->off, found, value, expected);
}

/* Length at the cursor; a cursor over the rest of the unit. */
static struct cursor read_length(struct cursor *c, struct dw_unit *u)
{
	uint64_t length = cur_u32(c);
	u->offset_size = 4;
	if (length == UINT32_MAX) {
		length = cur_u64(c);
		u->offset_size = 8;
	} else if (length >= 0xfffffff0) {
		dw_expected(c, "a unit length below 0xfffffff0");
	}
	return cur_sub(c, length);
}

static bool is_type_unit(const struct dw_unit *u)
{
	return u->unit_type == DW_UT_type || u->unit_type == DW_UT_split_type;
}

static int read_v5(struct dw_unit *u, struct cursor *c)
{
	u->unit_type = cur_u8(c);
	u->addr_size = cur_u8(c);
	u->abbrev_off = cur_uint(c, u->offset_size);
	switch (u->unit_type) {
	case DW_UT_compile:
	case DW_UT_partial:
		break;
	case DW_UT_type:
	case DW_UT_split_type:
		u->signature = cur_u64(c);
		u->type_off = cur_uint(c, u->offset_size);
		break;
	case DW_UT_skeleton:
	case DW_UT_split_compile:
		cur_skip(c, 8);
		break;
	default:
		if (!c->failed)
			return bad_unit(u, -EOPNOTSUPP, "unit type", u->unit_type, "1 to 6",
					c->err);
	}
	return 0;
}

static void read_v4(struct dw_unit *u, struct cursor *c)
{
	u->abbrev_off = cur_uint(c, u->offset_size);
	u->addr_size = cur_u8(c);
	u->unit_type = DW_UT_compile;
	if (!(u->tag & DW_OFF_TYPES))
		return;
	u->unit_type = DW_UT_type;
	u->signature = cur_u64(c);
	u->type_off = cur_uint(c, u->offset_size);
}

static int read_header(struct dw_unit *u, struct cursor *c)
{
	u->version = cur_u16(c);
	if (!c->failed && (u->version < 2 || u->version > 5))
		return bad_unit(u, -EOPNOTSUPP, "DWARF version", u->version, "2 to 5", c->err);
	if (u->version == 5) {
		int rc = read_v5(u, c);
		if (rc < 0)
			return rc;
	} else {
		read_v4(u, c);
	}
	if (!c->failed && u->addr_size != 4 && u->addr_size != 8)
		return bad_unit(u, -EOPNOTSUPP, "address size", u->addr_size, "4 or 8", c->err);
	if (!c->failed && u->abbrev_off > u->file->sec[DW_SEC_ABBREV].n)
		return bad_unit(u, -EBADMSG, "offset of abbreviations", u->abbrev_off,
				"one inside .debug_abbrev", c->err);
	u->is_type_unit = is_type_unit(u);
	return c->failed ? -EBADMSG : 0;
}

static int read_headers(struct dwarf *dw, const struct dw_file *file, enum dw_sec id,
			struct units *units, struct cairn_err *err)
{
	const struct dw_section *sec = &file->sec[id];
	struct cursor c = dw_section_cursor(sec, 0, err);
	while (cur_more(&c)) {
		struct dw_unit u = {.dw = dw,
				    .file = file,
				    .sec = sec,
				    .tag = file->tag | (id == DW_SEC_TYPES ? DW_OFF_TYPES : 0),
				    .off = cur_off(&c),
				    .index = (uint32_t)units->v.n,
				    .name = "",
				    .comp_dir = "",
				    .producer = ""};
		struct cursor body = read_length(&c, &u);
		/* Zeroed bytes between units: padding of a linker. */
		if (!c.failed && body.pos == body.end)
			continue;
		int rc = c.failed ? -EBADMSG : read_header(&u, &body);
		if (rc < 0)
			return err_while(err, rc, "reading the unit at %s+0x%" PRIx64,
					 sec->src.section, u.off);
		u.dies = body.pos;
		u.end = body.end;
		if (units->v.n == DW_UNITS_MAX)
			return err_set(err, -ERANGE, "%s: %s: more than %d units", file->path,
				       sec->src.section, DW_UNITS_MAX);
		if (!VEC_ADD(&units->v, u))
			return err_nomem(err, "units");
	}
	return 0;
}

/* ---- abbreviation tables ---- */

static uint8_t ref_addr_size(const struct dw_unit *u)
{
	return u->version == 2 ? u->addr_size : u->offset_size;
}

static int compare_tables(const void *a, const void *b)
{
	const struct dw_unit *x = *(const struct dw_unit *const *)a;
	const struct dw_unit *y = *(const struct dw_unit *const *)b;
	if (x->file != y->file)
		return x->file < y->file ? -1 : 1;
	if (x->abbrev_off != y->abbrev_off)
		return x->abbrev_off < y->abbrev_off ? -1 : 1;
	if (x->addr_size != y->addr_size)
		return x->addr_size - y->addr_size;
	if (x->offset_size != y->offset_size)
		return x->offset_size - y->offset_size;
	return ref_addr_size(x) - ref_addr_size(y);
}

/* Give units of the same table the same struct dw_abbrevs. */
static int assign_tables(struct dwarf *dw, struct cairn_err *err)
{
	struct dw_unit **order = calloc(dw->n_units + 1, sizeof(struct dw_unit *));
	dw->tables = calloc(dw->n_units + 1, sizeof(*dw->tables));
	if (!order || !dw->tables) {
		free(order);
		return err_nomem(err, "abbreviation tables");
	}
	for (size_t i = 0; i < dw->n_units; i++)
		order[i] = &dw->units[i];
	qsort(order, dw->n_units, sizeof(struct dw_unit *), compare_tables);
	for (size_t i = 0; i < dw->n_units; i++) {
		if (!i || compare_tables(&order[i - 1], &order[i])) {
			const struct dw_unit *u = order[i];
			dw->tables[dw->n_tables++] =
				(struct dw_abbrevs){.file = u->file,
						    .off = u->abbrev_off,
						    .addr_size = u->addr_size,
						    .offset_size = u->offset_size,
						    .ref_addr_size = ref_addr_size(u)};
		}
		order[i]->abbrevs = &dw->tables[dw->n_tables - 1];
	}
	free(order);
	return 0;
}

struct compile {
	struct dwarf *dw;
	_Atomic uint64_t budget[2]; /* per file */
};

static int compile_table(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct compile *job = ctx;
	struct dw_abbrevs *t = &job->dw->tables[item];
	return dw_abbrevs_compile(t, &job->budget[t->file - job->dw->file], err);
}

static int compile_tables(struct dwarf *dw, unsigned int threads, struct cairn_err *err)
{
	struct compile job = {.dw = dw};
	for (int i = 0; i < 2; i++)
		job.budget[i] = dw->file[i].sec[DW_SEC_ABBREV].n * DW_ABBREV_OVERLAP_MAX;
	return pool_run(dw->n_tables, threads, compile_table, &job, err);
}

/* ---- root DIEs ---- */

int dw_die_parse(const struct dw_unit *u, const uint8_t *p, struct dw_die *ret,
		 struct cairn_err *err)
{
	struct cursor c = dw_unit_cursor(u, p, err);
	uint64_t off = cur_off(&c), code = cur_uleb(&c);
	if (c.failed)
		return -EBADMSG;
	if (!code)
		return 0;
	const struct dw_abbrev *a = dw_abbrev_find(u->abbrevs, code);
	if (!a)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64 ": DIE with abbreviation %" PRIu64
			       ", which the table at .debug_abbrev+0x%" PRIx64 " does not have",
			       u->file->path, u->sec->src.section, off, code, u->abbrev_off);
	*ret = (struct dw_die){.unit = u,
			       .abbrev = a,
			       .off = off | u->tag,
			       .tag = a->tag,
			       .has_children = a->has_children,
			       .attrs = c.pos};
	return 1;
}

int dw_unit_root(const struct dw_unit *u, struct dw_die *ret, struct cairn_err *err)
{
	return u->dies == u->end ? 0 : dw_die_parse(u, u->dies, ret, err);
}

/* Calls @fact for each attribute of the root that is in one of its two passes. */
static int each_root_attr(struct dw_unit *u, const struct dw_die *root, bool (*wanted)(uint16_t at),
			  int (*fact)(struct dw_unit *u, uint16_t at, const struct dw_value *v,
				      struct cairn_err *err),
			  struct cairn_err *err)
{
	const uint8_t *specs = root->abbrev->specs;
	struct cursor c = dw_unit_cursor(u, root->attrs, err);
	struct dw_spec spec;
	while (dw_spec_next(&specs, &spec)) {
		if (!wanted(spec.at)) {
			dw_form_skip(u, &c, spec.form);
			if (c.failed)
				return dw_failure(&c);
			continue;
		}
		struct dw_value v;
		int rc = dw_form_read(u, &c, &spec, &v);
		if (rc >= 0)
			rc = fact(u, spec.at, &v, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_base(uint16_t at)
{
	return at == DW_AT_str_offsets_base || at == DW_AT_addr_base || at == DW_AT_rnglists_base ||
	       at == DW_AT_loclists_base || at == DW_AT_stmt_list;
}

static int base_fact(struct dw_unit *u, uint16_t at, const struct dw_value *v,
		     struct cairn_err *err)
{
	if (v->cls != DW_CLASS_SECOFF && v->cls != DW_CLASS_UDATA)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": attribute 0x%x of the unit is no offset (form 0x%x)",
			       u->file->path, u->sec->src.section, u->off, at, v->form);
	switch (at) {
	case DW_AT_str_offsets_base:
		u->has_str_offsets_base = true;
		u->str_offsets_base = v->u;
		break;
	case DW_AT_addr_base:
		u->has_addr_base = true;
		u->addr_base = v->u;
		break;
	case DW_AT_rnglists_base:
		u->has_rnglists_base = true;
		u->rnglists_base = v->u;
		break;
	case DW_AT_loclists_base:
		u->has_loclists_base = true;
		u->loclists_base = v->u;
		break;
	case DW_AT_stmt_list:
		u->has_stmt_list = true;
		u->stmt_list = v->u;
		break;
	}
	return 0;
}

static bool is_plain(uint16_t at)
{
	return at == DW_AT_name || at == DW_AT_comp_dir || at == DW_AT_producer ||
	       at == DW_AT_language || at == DW_AT_low_pc || at == DW_AT_dwo_name ||
	       at == DW_AT_GNU_dwo_name;
}

static int plain_fact(struct dw_unit *u, uint16_t at, const struct dw_value *v,
		      struct cairn_err *err)
{
	const char *str = v->cls == DW_CLASS_STRING ? v->str : "";
	switch (at) {
	case DW_AT_name:
		u->name = str;
		break;
	case DW_AT_comp_dir:
		u->comp_dir = str;
		break;
	case DW_AT_producer:
		u->producer = str;
		u->gcc = strncmp(str, "GNU ", 4) == 0;
		u->clang = strstr(str, "clang") != NULL;
		break;
	case DW_AT_language:
		u->language =
			v->cls == DW_CLASS_UDATA || v->cls == DW_CLASS_SDATA ? (uint16_t)v->u : 0;
		break;
	case DW_AT_low_pc:
		u->low_pc = v->cls == DW_CLASS_ADDRESS ? v->addr.v : 0;
		break;
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
		return err_set(err, -EOPNOTSUPP,
			       "%s: the DWARF of a unit is in a separate file, %s: .dwo files "
			       "(split DWARF) "
			       "are not read; build without -gsplit-dwarf",
			       u->file->path, str);
	}
	return 0;
}

static int read_root(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct dwarf *dw = ctx;
	struct dw_unit *u = &dw->units[item];
	struct dw_die root;
	int rc = dw_unit_root(u, &root, err);
	if (rc > 0) {
		rc = each_root_attr(u, &root, is_base, base_fact, err);
		if (!rc)
			rc = each_root_attr(u, &root, is_plain, plain_fact, err);
	}
	if (rc < 0)
		return err_while(err, rc, "reading the unit at %s+0x%" PRIx64, u->sec->src.section,
				 u->off);
	return 0;
}

static int index_signatures(struct dwarf *dw, struct cairn_err *err)
{
	for (size_t i = 0; i < dw->n_units; i++) {
		const struct dw_unit *u = &dw->units[i];
		uint64_t known;
		if (!u->is_type_unit || map_get(&dw->signatures, u->signature, &known))
			continue;
		if (map_put(&dw->signatures, u->signature, i) < 0)
			return err_nomem(err, "type units");
	}
	return 0;
}

int dw_units_read(struct dwarf *dw, unsigned int threads, struct cairn_err *err)
{
	struct units units = {0};
	int rc = read_headers(dw, &dw->file[0], DW_SEC_INFO, &units, err);
	if (rc >= 0)
		rc = read_headers(dw, &dw->file[0], DW_SEC_TYPES, &units, err);
	if (rc >= 0)
		rc = read_headers(dw, &dw->file[1], DW_SEC_INFO, &units, err);
	dw->units = units.v.p;
	dw->n_units = units.v.n;
	if (rc >= 0)
		rc = assign_tables(dw, err);
	if (rc >= 0)
		rc = compile_tables(dw, threads, err);
	if (rc >= 0)
		rc = pool_run(dw->n_units, threads, read_root, dw, err);
	return rc < 0 ? rc : index_signatures(dw, err);
}

/* ---- questions ---- */

size_t dwarf_n_units(const struct dwarf *dw)
{
	return dw->n_units;
}

const struct dw_unit *dwarf_unit(const struct dwarf *dw, size_t i)
{
	return &dw->units[i];
}

const struct dw_unit *dwarf_unit_of(const struct dwarf *dw, dw_off off)
{
	size_t lo = 0, hi = dw->n_units;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct dw_unit *u = &dw->units[mid];
		if ((u->off | u->tag) <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return NULL;
	const struct dw_unit *u = &dw->units[lo - 1];
	uint64_t end = (uint64_t)(u->end - u->sec->p) | u->tag;
	return off < end ? u : NULL;
}

dw_off dwarf_type_of_signature(const struct dwarf *dw, uint64_t signature)
{
	uint64_t i;
	if (!map_get(&dw->signatures, signature, &i))
		return 0;
	const struct dw_unit *u = &dw->units[i];
	uint64_t header = (uint64_t)(u->dies - u->sec->p) - u->off;
	uint64_t length = (uint64_t)(u->end - u->sec->p) - u->off;
	if (u->type_off < header || u->type_off >= length)
		return 0;
	return (u->off + u->type_off) | u->tag;
}

dw_off dw_unit_off(const struct dw_unit *u)
{
	return u->off | u->tag;
}

size_t dw_unit_index(const struct dw_unit *u)
{
	return u->index;
}

uint16_t dw_unit_version(const struct dw_unit *u)
{
	return u->version;
}

uint8_t dw_unit_addr_size(const struct dw_unit *u)
{
	return u->addr_size;
}

uint8_t dw_unit_offset_size(const struct dw_unit *u)
{
	return u->offset_size;
}

bool dw_unit_is_type_unit(const struct dw_unit *u)
{
	return u->is_type_unit;
}

const char *dw_unit_name(const struct dw_unit *u)
{
	return u->name;
}

const char *dw_unit_comp_dir(const struct dw_unit *u)
{
	return u->comp_dir;
}

const char *dw_unit_producer(const struct dw_unit *u)
{
	return u->producer;
}

uint16_t dw_unit_language(const struct dw_unit *u)
{
	return u->language;
}

bool dw_unit_is_gcc(const struct dw_unit *u)
{
	return u->gcc;
}

bool dw_unit_is_clang(const struct dw_unit *u)
{
	return u->clang;
}
