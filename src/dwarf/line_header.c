/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line programs: the header, and the files it names
 *
 *	SIZE     DWARF 2 to 4                       DWARF 5
 *	4 / 12   length                             the same
 *	2        version                            version
 *	                                            u8 size of an address, u8 of a segment selector
 *	O        header length                      the same: the program starts behind it
 *	1        minimum instruction length         the same
 *	1        4: operations per instruction      the same
 *	1 1 1    default is_stmt, s8 line base, line range
 *	1        first special opcode, then the operand counts of those before it
 *	         directories: strings up to ""      u8 n, n pairs of ULEB (what, form); ULEB count, entries
 *	         files: string, ULEB directory,     the same, for files
 *	         ULEB time, ULEB size, up to ""
 *
 * Directory 0 is the compilation directory; up to DWARF 4 it is not written down. Files count from 1, in
 * DWARF 5 from 0. Paths are put together when they are first asked for: a kernel's unit names 500 files, of
 * which a few matter.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/line.h"

struct file {
	const char *name;
	uint64_t dir;
	_Atomic(char *) path;
};

struct dw_files {
	const char *comp_dir;
	VEC(const char *) dirs;
	VEC(struct file) files;
	uint64_t first; /* number of files.p[0] */
};

void dw_files_free(struct dw_files *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->files.n; i++)
		free(atomic_load(&t->files.p[i].path));
	VEC_FREE(&t->files);
	VEC_FREE(&t->dirs);
	free(t);
}

/* ---- header ---- */

static int read_fields(struct dw_line_header *h, struct cursor *c)
{
	h->version = cur_u16(c);
	if (!c->failed && (h->version < 2 || h->version > 5))
		return err_set(c->err, -EOPNOTSUPP,
			       "%s: %s+0x%" PRIx64 ": line program of version %u, expected 2 to 5",
			       c->src->file, c->src->section, cur_off(c) - 2, h->version);
	if (h->version == 5) {
		h->addr_size = cur_u8(c);
		cur_u8(c); /* segment selectors: none on the machines at hand */
	}
	uint64_t header_length = cur_uint(c, h->offset_size);
	h->program = *c;
	cur_skip(&h->program, header_length);
	h->tables = *c;
	h->tables.end = h->program.pos;
	struct cursor *t = &h->tables;
	h->min_inst = cur_u8(t);
	h->max_ops = h->version >= 4 ? cur_u8(t) : 1;
	h->default_is_stmt = cur_u8(t);
	h->line_base = (int8_t)cur_u8(t);
	h->line_range = cur_u8(t);
	h->opcode_base = cur_u8(t);
	if (!t->failed && (!h->max_ops || !h->opcode_base))
		dw_expected(t, "operations per instruction and an opcode base, both at least 1");
	h->opcode_lengths = cur_bytes(t, h->opcode_base ? h->opcode_base - 1u : 0);
	return c->failed || t->failed || h->program.failed ? -EBADMSG : 1;
}

int dw_line_header_read(const struct dw_unit *u, struct dw_line_header *ret, struct cairn_err *err)
{
	if (!u->has_stmt_list)
		return 0;
	struct cursor c = dw_section_cursor(&u->line_file->sec[DW_SEC_LINE], u->stmt_list, err);
	*ret = (struct dw_line_header){.addr_size = u->addr_size, .offset_size = 4};
	uint64_t length = cur_u32(&c);
	if (length == UINT32_MAX) {
		ret->offset_size = 8;
		length = cur_u64(&c);
	}
	struct cursor body = cur_sub(&c, length);
	return body.failed ? -EBADMSG : read_fields(ret, &body);
}

/* ---- tables ---- */

static int read_tables_v4(struct dw_files *t, struct cursor *c)
{
	t->first = 1;
	if (!VEC_ADD(&t->dirs, t->comp_dir))
		return err_nomem(c->err, "file names");
	while (cur_more(c) && *c->pos) {
		const char *dir = cur_str(c);
		if (!VEC_ADD(&t->dirs, dir))
			return err_nomem(c->err, "file names");
	}
	cur_u8(c);
	while (cur_more(c) && *c->pos) {
		struct file f = {.name = cur_str(c)};
		f.dir = cur_uleb(c);
		cur_skip_leb(c);
		cur_skip_leb(c);
		if (!VEC_ADD(&t->files, f))
			return err_nomem(c->err, "file names");
	}
	cur_u8(c);
	return c->failed ? -EBADMSG : 0;
}

/* One entry of a table of DWARF 5: its columns are described by @format. */
static int read_entry(const struct dw_unit *shape, struct cursor *c, struct cursor format,
		      struct file *ret)
{
	const uint8_t *from = c->pos;
	*ret = (struct file){.name = ""};
	while (cur_more(&format)) {
		struct dw_value v;
		struct dw_spec spec = {0};
		uint64_t content = cur_uleb(&format), form = cur_uleb(&format);
		spec.form = form > UINT16_MAX ? 0 : (uint16_t)form;
		int rc = dw_form_read(shape, c, &spec, &v);
		if (rc < 0)
			return rc;
		if (content == DW_LNCT_path && v.cls == DW_CLASS_STRING)
			ret->name = v.str;
		if (content == DW_LNCT_directory_index && v.cls == DW_CLASS_UDATA)
			ret->dir = v.u;
	}
	/* Or a count of 2^60 would keep us busy. */
	if (c->pos == from)
		dw_expected(c, "an entry of at least one byte");
	return c->failed ? -EBADMSG : 0;
}

/* The columns of a table: a cursor over the pairs. */
static struct cursor read_format(struct cursor *c)
{
	struct cursor format = *c;
	uint8_t n = cur_u8(c);
	format.pos = c->pos;
	for (unsigned int i = 0; i < 2u * n; i++)
		cur_skip_leb(c);
	format.end = c->pos;
	return format;
}

/* Columns that usual_entry() knows, without the numbers of their forms in between. */
struct columns {
	enum { PATH, DIRECTORY, MD5 } p[4];
	unsigned int n; /* 0: there are others */
};

/* A path of DW_FORM_line_strp, perhaps a directory of DW_FORM_udata and a sum of 16 bytes: what compilers write. */
static struct columns usual_columns(const struct dw_unit *shape, struct cursor format)
{
	struct columns ret = {.n = 0};
	while (cur_more(&format)) {
		uint64_t content = cur_uleb(&format), form = cur_uleb(&format);
		if (ret.n == sizeof(ret.p) / sizeof(ret.p[0]) || shape->offset_size != 4)
			return (struct columns){.n = 0};
		if (content == DW_LNCT_path && form == DW_FORM_line_strp)
			ret.p[ret.n++] = PATH;
		else if (content == DW_LNCT_directory_index && form == DW_FORM_udata)
			ret.p[ret.n++] = DIRECTORY;
		else if (content == DW_LNCT_MD5 && form == DW_FORM_data16)
			ret.p[ret.n++] = MD5;
		else
			return (struct columns){.n = 0};
	}
	return ret;
}

/* False for an entry that is for read_entry(), which tells as well what is wrong with it. */
static bool usual_entry(const struct dw_unit *shape, struct cursor *c, const struct columns *columns, struct file *ret)
{
	enum { LONGEST = 16 };
	const uint8_t *p = c->pos;
	*ret = (struct file){.name = ""};
	for (unsigned int i = 0; i < columns->n; i++) {
		if (c->end - p < LONGEST)
			return false;
		if (columns->p[i] == PATH) {
			ret->name = dw_section_str(shape->file, DW_SEC_LINE_STR, dw_load_u32(p), NULL);
			if (!ret->name)
				return false;
			p += 4;
		} else if (columns->p[i] == MD5) {
			p += 16;
		} else if (*p < 0x80) {
			ret->dir = *p++;
		} else {
			return false;
		}
	}
	c->pos = p;
	return columns->n;
}

static int read_table_v5(struct dw_files *t, const struct dw_unit *shape, struct cursor *c,
			 bool files)
{
	struct cursor format = read_format(c);
	struct columns columns = usual_columns(shape, format);
	for (uint64_t n = cur_uleb(c); n && !c->failed; n--) {
		struct file f;
		int rc = usual_entry(shape, c, &columns, &f) ? 0 : read_entry(shape, c, format, &f);
		if (rc < 0)
			return rc;
		if (!(files ? VEC_ADD(&t->files, f) : VEC_ADD(&t->dirs, f.name)))
			return err_nomem(c->err, "file names");
	}
	return c->failed ? -EBADMSG : 0;
}

static int read_tables(struct dw_files *t, const struct dw_unit *u, struct dw_line_header *h)
{
	if (h->version < 5)
		return read_tables_v4(t, &h->tables);
	/* Forms are read as in a unit, but with the sizes of this table. */
	struct dw_unit shape = {.dw = u->dw,
				.file = u->line_file,
				.sec = &u->line_file->sec[DW_SEC_LINE],
				.abbrevs = u->abbrevs,
				.off = u->stmt_list,
				.addr_size = h->addr_size,
				.offset_size = h->offset_size,
				.has_str_offsets_base = u->has_str_offsets_base,
				.str_offsets_base = u->str_offsets_base};
	int rc = read_table_v5(t, &shape, &h->tables, false);
	return rc < 0 ? rc : read_table_v5(t, &shape, &h->tables, true);
}

/* ---- paths ---- */

static struct dw_files *make_files(const struct dw_unit *u)
{
	struct dw_files *t = calloc(1, sizeof(*t));
	struct dw_line_header h;
	if (!t)
		return NULL;
	t->comp_dir = u->comp_dir;
	/* A damaged table knows the files up to the damage; a lack of memory may pass. */
	if (dw_line_header_read(u, &h, NULL) <= 0 || read_tables(t, u, &h) != -ENOMEM)
		return t;
	dw_files_free(t);
	return NULL;
}

static struct dw_files *files_of(const struct dw_unit *u)
{
	/* The unit is ours; only its users see it as constant. */
	struct dw_unit *own = (struct dw_unit *)u;
	struct dw_files *t = atomic_load(&own->files), *none = NULL;
	if (t)
		return t;
	t = make_files(u);
	if (t && !atomic_compare_exchange_strong(&own->files, &none, t)) {
		dw_files_free(t);
		t = none;
	}
	return t;
}

/* For each file that is asked about, which are many. */
static char *join(const char *a, const char *b, const char *c)
{
	size_t n_a = strlen(a), n_b = strlen(b), n_c = strlen(c);
	char *path = malloc(n_a + n_b + n_c + 3), *at = path;
	if (!path)
		return NULL;
	at = mempcpy(at, a, n_a);
	if (n_a)
		*at++ = '/';
	at = mempcpy(at, b, n_b);
	if (n_b)
		*at++ = '/';
	memcpy(at, c, n_c + 1);
	return path;
}

static char *make_path(const struct dw_files *t, const struct file *f)
{
	const char *comp = t->dirs.n && t->dirs.p[0][0] == '/' ? t->dirs.p[0] : t->comp_dir;
	const char *dir = f->dir < t->dirs.n ? t->dirs.p[f->dir] : "";
	if (f->name[0] == '/')
		return strdup(f->name);
	if (dir[0] == '/' || (f->dir == 0 && !*comp))
		return join("", dir, f->name);
	return join(comp, f->dir ? dir : "", f->name);
}

const char *dw_unit_file(const struct dw_unit *u, uint64_t file)
{
	struct dw_files *t = files_of(u);
	if (!t || file < t->first || file - t->first >= t->files.n)
		return NULL;
	struct file *f = &t->files.p[file - t->first];
	char *path = atomic_load(&f->path), *none = NULL;
	if (path)
		return path;
	path = make_path(t, f);
	if (path && !atomic_compare_exchange_strong(&f->path, &none, path)) {
		free(path);
		path = none;
	}
	return path;
}
