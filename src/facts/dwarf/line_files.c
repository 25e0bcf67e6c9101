/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Line programs: the files that the header names
 *
 * Directory 0 is the compilation directory; up to DWARF 4 it is not written down. Files count from
 * 1, in DWARF 5 from 0. A kernel's unit names 500 files, of which a few matter, and 2,800 units
 * name nearly the same. So an entry is read when it is needed. If all entries have one size, as
 * mostly, its offset is a multiple of that; otherwise the offset is kept.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "dwarf/forms.h"
#include "dwarf/line.h"

/* Columns that usual_entry() knows, without the numbers of their forms in between. */
struct columns {
	enum { PATH, DIRECTORY, MD5 } p[4];
	unsigned int n; /* 0: there are others */
};

/* Directories, or files. */
struct table {
	struct cursor format; /* DWARF 5: the pairs of content and form */
	struct columns columns;
	size_t n;
	uint32_t start, stride; /* stride 0: see @at */
	VEC(uint32_t) at;       /* where each entry begins; from the tables' start, as is @start */
};

struct entry {
	const char *name;
	uint64_t dir;
};

struct dw_files {
	struct dw_line_header h;
	struct table dirs, files;
	_Atomic(_Atomic(char *) *) paths; /* by file; NULL until one is needed */
};

void dw_files_free(struct dw_files *t)
{
	if (!t)
		return;
	_Atomic(char *) *paths = atomic_load(&t->paths);
	for (size_t i = 0; paths && i < t->files.n; i++)
		free(atomic_load(&paths[i]));
	free(paths);
	VEC_FREE(&t->files.at);
	VEC_FREE(&t->dirs.at);
	free(t);
}

/* ---- entries ---- */

/* One of DWARF 5, as its columns say. */
static int read_entry_v5(const struct dw_unit *shape, struct cursor *c, struct cursor format,
			 struct entry *ret)
{
	const uint8_t *from = c->pos;
	*ret = (struct entry){.name = ""};
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

/*
 * The usual form of compilers: a path of DW_FORM_line_strp, perhaps a directory of DW_FORM_udata
 * and a sum of 16 bytes.
 */
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

/* False for an entry that read_entry_v5() has to read, which also reports errors. */
static bool usual_entry(const struct dw_unit *shape, struct cursor *c,
			const struct columns *columns, struct entry *ret)
{
	enum { LONGEST = 16 };
	const uint8_t *p = c->pos;
	*ret = (struct entry){.name = ""};
	for (unsigned int i = 0; i < columns->n; i++) {
		if (c->end - p < LONGEST)
			return false;
		if (columns->p[i] == PATH) {
			ret->name =
				dw_section_str(shape->file, DW_SEC_LINE_STR, dw_load_u32(p), NULL);
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

/* Forms are read as in a unit, but with the sizes of its line table. */
static struct dw_unit shape_of(const struct dw_unit *u, const struct dw_line_header *h)
{
	return (struct dw_unit){.dw = u->dw,
				.file = u->line_file,
				.sec = &u->line_file->sec[DW_SEC_LINE],
				.abbrevs = u->abbrevs,
				.off = u->stmt_list,
				.addr_size = h->addr_size,
				.offset_size = h->offset_size,
				.has_str_offsets_base = u->has_str_offsets_base,
				.str_offsets_base = u->str_offsets_base};
}

static int read_entry(const struct dw_files *t, const struct table *table,
		      const struct dw_unit *shape, struct cursor *c, struct entry *ret)
{
	if (t->h.version == 5)
		return usual_entry(shape, c, &table->columns, ret)
			       ? 0
			       : read_entry_v5(shape, c, table->format, ret);
	*ret = (struct entry){.name = cur_str(c)};
	if (table == &t->dirs)
		return c->failed ? -EBADMSG : 0;
	ret->dir = cur_uleb(c);
	cur_skip_leb(c);
	cur_skip_leb(c);
	return c->failed ? -EBADMSG : 0;
}

/* ---- tables ---- */

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

/* Find where the entry at @c begins, and pass it. */
static int add_entry(const struct dw_files *t, struct table *table, const struct dw_unit *shape,
		     struct cursor *c)
{
	struct entry e;
	size_t at = (size_t)(c->pos - t->h.tables.pos);
	int rc = at > UINT32_MAX ? -EBADMSG : read_entry(t, table, shape, c, &e);
	if (rc >= 0 && !VEC_ADD(&table->at, (uint32_t)at))
		rc = err_nomem(c->err, "file names");
	table->n = table->at.n;
	return rc;
}

static int read_table_v4(const struct dw_files *t, struct table *table, const struct dw_unit *shape,
			 struct cursor *c)
{
	while (cur_more(c) && *c->pos) {
		int rc = add_entry(t, table, shape, c);
		if (rc < 0)
			return rc;
	}
	cur_u8(c);
	return c->failed ? -EBADMSG : 0;
}

/* Pass @n entries of one size, with which usual_entry() is content unless a name is nowhere. */
static bool pass_even(const struct dw_files *t, struct table *table, struct cursor *c, uint64_t n)
{
	static const uint8_t sizes[] = {[PATH] = 4, [DIRECTORY] = 1, [MD5] = 16};
	uint32_t stride = 0, dir = 0;
	bool has_dir = false;
	for (unsigned int i = 0; i < table->columns.n; i++) {
		if (table->columns.p[i] == DIRECTORY) {
			if (has_dir)
				return false;
			has_dir = true;
			dir = stride;
		}
		stride += sizes[table->columns.p[i]];
	}
	size_t start = (size_t)(c->pos - t->h.tables.pos);
	if (!stride || n > cur_left(c) / stride || start > UINT32_MAX)
		return false;
	for (uint64_t i = 0; has_dir && i < n; i++)
		if (c->pos[i * stride + dir] >= 0x80)
			return false;
	c->pos += n * stride;
	table->start = (uint32_t)start;
	table->stride = stride;
	table->n = n;
	return true;
}

static int read_table_v5(const struct dw_files *t, struct table *table, const struct dw_unit *shape,
			 struct cursor *c)
{
	table->format = read_format(c);
	table->columns = usual_columns(shape, table->format);
	uint64_t n = cur_uleb(c);
	if (!c->failed && pass_even(t, table, c, n))
		return 0;
	for (; n && !c->failed; n--) {
		int rc = add_entry(t, table, shape, c);
		if (rc < 0)
			return rc;
	}
	return c->failed ? -EBADMSG : 0;
}

static int read_tables(struct dw_files *t, const struct dw_unit *u)
{
	const struct dw_unit shape = shape_of(u, &t->h);
	struct cursor c = t->h.tables;
	int (*read)(const struct dw_files *, struct table *, const struct dw_unit *,
		    struct cursor *) = t->h.version < 5 ? read_table_v4 : read_table_v5;
	int rc = read(t, &t->dirs, &shape, &c);
	return rc < 0 ? rc : read(t, &t->files, &shape, &c);
}

static struct dw_files *make_files(const struct dw_unit *u)
{
	struct dw_files *t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	/* A damaged table knows the files up to the damage; a lack of memory may pass. */
	if (dw_line_header_read(u, &t->h, NULL) <= 0 || read_tables(t, u) != -ENOMEM)
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

/* ---- paths ---- */

static bool entry_at(const struct dw_files *t, const struct table *table,
		     const struct dw_unit *shape, uint64_t i, struct entry *ret)
{
	struct cursor c = t->h.tables;
	if (i >= table->n)
		return false;
	c.pos += table->stride ? table->start + i * table->stride : table->at.p[i];
	return read_entry(t, table, shape, &c, ret) >= 0;
}

static const char *directory(const struct dw_files *t, const struct dw_unit *u,
			     const struct dw_unit *shape, uint64_t i)
{
	struct entry dir;
	if (t->h.version < 5 && !i--)
		return u->comp_dir;
	return entry_at(t, &t->dirs, shape, i, &dir) ? dir.name : "";
}

/* False for an unknown number. */
static bool file_at(const struct dw_files *t, const struct dw_unit *shape, uint64_t file,
		    struct entry *ret)
{
	return entry_at(t, &t->files, shape, file - (t->h.version < 5), ret);
}

bool dw_unit_path(const struct dw_unit *u, uint64_t file, struct dw_path *ret)
{
	const struct dw_files *t = files_of(u);
	if (!t)
		return false;
	const struct dw_unit shape = shape_of(u, &t->h);
	struct entry f;
	if (!file_at(t, &shape, file, &f))
		return false;
	const char *dir = directory(t, u, &shape, f.dir), *comp = directory(t, u, &shape, 0);
	if (*comp != '/')
		comp = u->comp_dir;
	if (*f.name == '/')
		*ret = (struct dw_path){"", "", f.name};
	else if (*dir == '/' || (!f.dir && !*comp))
		*ret = (struct dw_path){"", dir, f.name};
	else
		*ret = (struct dw_path){comp, f.dir ? dir : "", f.name};
	return true;
}

size_t dw_path_write(const struct dw_path *path, char *buf)
{
	const char *const pieces[] = {path->base, path->dir, path->name};
	char *at = buf;
	size_t size = 0;
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		bool is_last = i == 2;
		size_t n = strlen(pieces[i]);
		size += n + (n || is_last);
		if (!buf || (!n && !is_last))
			continue;
		at = mempcpy(at, pieces[i], n);
		*at++ = is_last ? 0 : '/';
	}
	return size;
}

/* As long as the table, all unknown. */
static _Atomic(char *) *paths_of(struct dw_files *t)
{
	_Atomic(char *) *paths = atomic_load(&t->paths), *none = NULL;
	if (paths)
		return paths;
	paths = calloc(t->files.n, sizeof(*paths));
	if (paths && !atomic_compare_exchange_strong(&t->paths, &none, paths)) {
		free(paths);
		paths = none;
	}
	return paths;
}

const char *dw_unit_file(const struct dw_unit *u, uint64_t file)
{
	struct dw_files *t = files_of(u);
	uint64_t i = t ? file - (t->h.version < 5) : 0;
	if (!t || i >= t->files.n)
		return NULL;
	_Atomic(char *) *paths = paths_of(t);
	char *path = paths ? atomic_load(&paths[i]) : NULL, *none = NULL;
	struct dw_path pieces;
	if (path || !paths || !dw_unit_path(u, file, &pieces))
		return path;
	path = malloc(dw_path_write(&pieces, NULL));
	if (!path)
		return NULL;
	dw_path_write(&pieces, path);
	if (!atomic_compare_exchange_strong(&paths[i], &none, path)) {
		free(path);
		path = none;
	}
	return path;
}
