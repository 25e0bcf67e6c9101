/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Split DWARF (-gsplit-dwarf): units of which the linked file has only a skeleton
 *
 *	prog  .debug_info  skeleton: "a.dwo", id 0x22cf...,
 *	                   addresses at +0x8 of .debug_addr, lines at +0x0
 *	                        │
 *	                        ▼
 *	a.dwo .debug_info.dwo   unit with id 0x22cf...: all DIEs
 *	      .debug_abbrev.dwo .debug_str.dwo .debug_loclists.dwo ...
 *
 * Data that needs no relocation went to the .dwo file, so that the linker need not see it. The unit
 * there refers to "address 3" and "list 5"; the tables for that are given by the skeleton:
 *
 *	from the skeleton          DW_AT_addr_base, DW_AT_GNU_ranges_base (DWARF 4), DW_AT_low_pc,
 *	                           DW_AT_stmt_list (the line table is linked), DW_AT_comp_dir
 *	in sections of prog        .debug_addr, .debug_line, and in DWARF 4 .debug_ranges
 *	in sections of a.dwo       everything else
 *	by convention              tables of offsets start after their section's header
 *
 * All .dwo files of a program may have been put into one package, prog.dwp (package.c); then each
 * of these starts at the offset in the package's index.
 *
 * The unit in the .dwo file becomes one of the dwarf's units. Its skeleton stays one, without the
 * DIEs below its root. Clang writes inlined copies there for symbolizers that have no .dwo file,
 * and all of them would be seen twice. If the .dwo file is missing, only those are left to be seen.
 *
 * A .dwo file belongs to its skeleton if their ids are equal: one of another build is reported, not
 * used.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cairn/text.h>

#include "base/err.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/impl.h"
#include "dwarf/package.h"

enum {
	/* The largest number that fits into a dw_off. */
	DW_FILES_MAX = (1 << 22) - 1,
	/* Missing files with a message; the others are only counted. */
	STORIES_MAX = 4,
};

/* A file that skeletons name. */
struct wanted {
	const char *comp_dir, *name;
	struct elf *elf;
	bool found;
	char *log;
};

struct split {
	struct dwarf *dw;
	VEC(uint32_t) skeletons; /* indices of units */
	VEC(struct wanted) wanted;
	struct map by_path; /* hash of directory and name: index into wanted */
	struct map by_id;   /* of skeletons */
	struct dw_package package;
	bool has_package;
	char *package_log;
};

/* ---- skeletons ---- */

static int find_skeletons(struct split *s, struct cairn_err *err)
{
	for (size_t i = 0; i < s->dw->n_units; i++) {
		const struct dw_unit *u = &s->dw->units[i];
		uint64_t known;
		if (!u->dwo_name || u->file != &s->dw->file[0])
			continue;
		if (!VEC_ADD(&s->skeletons, (uint32_t)i))
			return err_nomem(err, "skeleton units");
		if (u->has_dwo_id && !map_get(&s->by_id, u->dwo_id, &known) &&
		    map_put(&s->by_id, u->dwo_id, i) < 0)
			return err_nomem(err, "skeleton units");
	}
	return 0;
}

static struct dw_unit *skeleton_of(const struct split *s, const struct dw_unit *u)
{
	uint64_t i;
	bool found = u->has_dwo_id && map_get(&s->by_id, u->dwo_id, &i);
	return found ? &s->dw->units[i] : NULL;
}

/* ---- files ---- */

static int open_package(struct split *s, struct cairn_err *err)
{
	struct dw_split *split = &s->dw->split;
	struct elf *elf;
	int rc = binary_open_dwp(s->dw->bin, &elf, &s->package_log, err);
	if (rc < 0 || !elf)
		return rc;
	split->file[0].elf = elf; /* from here on it is closed with the dwarf */
	split->n_files = 1;
	rc = dw_file_init(&split->file[0], s->dw, elf, true, err);
	if (rc >= 0)
		rc = dw_package_read(elf, &s->package, err);
	s->has_package = rc >= 0;
	return rc < 0 ? err_while(err, rc, "reading the package of .dwo files") : 0;
}

static struct wanted *wanted_of(const struct split *s, const struct dw_unit *u)
{
	uint64_t i;
	uint64_t hash = map_hash_str(u->dwo_name) * 31 + map_hash_str(u->comp_dir);
	if (!map_get(&s->by_path, hash, &i))
		return NULL;
	struct wanted *w = &s->wanted.p[i];
	return strcmp(w->name, u->dwo_name) || strcmp(w->comp_dir, u->comp_dir) ? NULL : w;
}

static int want(struct split *s, const struct dw_unit *u)
{
	uint64_t hash = map_hash_str(u->dwo_name) * 31 + map_hash_str(u->comp_dir);
	if (wanted_of(s, u))
		return 0;
	if (map_put(&s->by_path, hash, s->wanted.n) < 0)
		return -ENOMEM;
	struct wanted w = {.comp_dir = u->comp_dir, .name = u->dwo_name};
	return VEC_ADD(&s->wanted, w) ? 0 : -ENOMEM;
}

/* Files that skeletons name and whose unit is not in the package, each once. */
static int list_files(struct split *s, struct cairn_err *err)
{
	struct map packed;
	int rc = 0;
	map_init(&packed);
	for (size_t i = 0; rc >= 0 && i < s->package.units.n; i++)
		rc = map_put(&packed, s->package.units.p[i].signature, 1);
	for (size_t i = 0; rc >= 0 && i < s->skeletons.n; i++) {
		const struct dw_unit *u = &s->dw->units[s->skeletons.p[i]];
		uint64_t known;
		if (!u->has_dwo_id || !map_get(&packed, u->dwo_id, &known))
			rc = want(s, u);
	}
	map_fini(&packed);
	return rc < 0 ? err_nomem(err, "the list of .dwo files") : 0;
}

static int open_file(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct split *s = ctx;
	struct wanted *w = &s->wanted.p[item];
	return binary_open_dwo(s->dw->bin, w->comp_dir, w->name, &w->elf, &w->log, err);
}

static int open_files(struct split *s, unsigned int threads, struct cairn_err *err)
{
	struct dw_split *split = &s->dw->split;
	int rc = pool_run(s->wanted.n, threads, open_file, s, err);
	for (size_t i = 0; rc >= 0 && i < s->wanted.n; i++) {
		struct wanted *w = &s->wanted.p[i];
		if (!w->elf)
			continue;
		w->found = true;
		struct dw_file *file = &split->file[split->n_files++];
		file->elf = w->elf;
		rc = dw_file_init(file, s->dw, w->elf, true, err);
		w->elf = NULL;
	}
	return rc;
}

/* ---- units ---- */

static int by_off(const void *a, const void *b)
{
	const struct dw_unit *x = a, *y = b;
	uint64_t x_off = x->off | x->tag, y_off = y->off | y->tag;
	return x_off < y_off ? -1 : x_off > y_off;
}

/* Adds the units of all files; those of the linked file keep their indices. */
static int read_headers(struct split *s, struct cairn_err *err)
{
	struct dwarf *dw = s->dw;
	struct dw_unit_list units = {.p = dw->units, .n = dw->n_units, .cap = dw->n_units};
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < dw->split.n_files; i++) {
		struct dw_file *file = &dw->split.file[i];
		file->tag = (i + 1) * DW_OFF_DWO;
		rc = dw_headers_read(dw, file, DW_SEC_INFO, &units, err);
		if (rc >= 0)
			rc = dw_headers_read(dw, file, DW_SEC_TYPES, &units, err);
	}
	qsort(units.p, units.n, sizeof(*units.p), by_off);
	for (size_t i = 0; i < units.n; i++)
		units.p[i].index = (uint32_t)i;
	dw->units = units.p;
	dw->n_units = units.n;
	return rc;
}

/* Sets the starts of the parts of a unit of the package. */
static int place(struct dw_unit *u, const struct dw_package *package, struct cairn_err *err)
{
	const struct dw_package_unit *at = dw_package_at(package, u->tag & DW_OFF_TYPES, u->off);
	if (!at)
		return err_set(err, -EBADMSG,
			       "%s: %s+0x%" PRIx64
			       ": a unit that the index of the package does not have",
			       u->file->path, u->sec->src.section, u->off);
	u->abbrev_off += at->part[DW_PART_ABBREV];
	u->str_offsets_base += at->part[DW_PART_STR_OFFSETS];
	u->loclists_base += at->part[DW_PART_LOC];
	u->rnglists_base += at->part[DW_PART_RNGLISTS];
	u->locations_at = at->part[DW_PART_LOC];
	u->ranges_at = u->version < 5 ? 0 : at->part[DW_PART_RNGLISTS];
	u->stmt_list = at->part[DW_PART_LINE];
	if (!u->has_dwo_id && !u->is_type_unit) {
		u->has_dwo_id = true;
		u->dwo_id = at->signature;
	}
	return 0;
}

/* Tables of offsets start after the header of their section; up to DWARF 4 there is none. */
static int place_all(struct split *s, struct cairn_err *err)
{
	const struct dw_file *package = s->has_package ? &s->dw->split.file[0] : NULL;
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < s->dw->n_units; i++) {
		struct dw_unit *u = &s->dw->units[i];
		unsigned int length = u->offset_size == 8 ? 12 : 4;
		if (!u->file->is_split)
			continue;
		u->has_str_offsets_base = true;
		if (u->version >= 5) {
			u->has_loclists_base = u->has_rnglists_base = true;
			u->str_offsets_base = length + 4;
			u->loclists_base = u->rnglists_base = length + 8;
		}
		if (u->file == package && s->package.units.n)
			rc = place(u, &s->package, err);
	}
	return rc;
}

/* The unit keeps its index, and is empty. */
static void forget(struct dw_unit *u)
{
	u->end = u->dies;
	u->has_stmt_list = false;
}

/* A package may have range lists of other units only. */
static bool has_own_ranges(const struct split *s, const struct dw_unit *u)
{
	if (!u->file->sec[DW_SEC_RNGLISTS].n)
		return false;
	if (!s->package.units.n || u->file != &s->dw->split.file[0])
		return true;
	const struct dw_package_unit *at =
		dw_package_at(&s->package, u->tag & DW_OFF_TYPES, u->off);
	return at && at->has_ranges;
}

/*
 * GCC before 11 has all range lists of split DWARF 5 with the skeleton, whose DW_AT_rnglists_base
 * is their table, and its .dwo files have no .debug_rnglists.dwo. (The standard has had a word on
 * it since 2021.)
 */
static void inherit_ranges(const struct split *s, struct dw_unit *u, const struct dw_unit *skeleton)
{
	if (has_own_ranges(s, u) || !skeleton->file->sec[DW_SEC_RNGLISTS].n)
		return;
	u->ranges_file = skeleton->file;
	u->has_rnglists_base = skeleton->has_rnglists_base;
	u->rnglists_base = skeleton->rnglists_base;
	u->ranges_at = 0;
}

static void inherit(const struct split *s, struct dw_unit *u, const struct dw_unit *skeleton)
{
	u->has_addr_base = skeleton->has_addr_base;
	u->addr_base = skeleton->addr_base;
	u->low_pc = skeleton->low_pc;
	u->comp_dir = skeleton->comp_dir;
	u->has_stmt_list = skeleton->has_stmt_list;
	u->stmt_list = skeleton->stmt_list;
	u->line_file = skeleton->file;
	if (u->version < 5)
		u->ranges_at = skeleton->gnu_ranges_base;
	else
		inherit_ranges(s, u, skeleton);
}

static int read_unit(void *ctx, size_t item, unsigned int worker, struct cairn_err *err)
{
	const struct split *s = ctx;
	struct dw_unit *u = &s->dw->units[item];
	uint64_t line_part = u->stmt_list;
	if (!u->file->is_split)
		return 0;
	int rc = dw_root_read_bases(u, err);
	if (rc < 0)
		return rc;
	const struct dw_unit *skeleton = u->is_type_unit ? NULL : skeleton_of(s, u);
	if (skeleton)
		inherit(s, u, skeleton);
	else if (u->is_type_unit)
		u->stmt_list += u->has_stmt_list ? line_part : 0;
	else
		forget(u); /* of no skeleton: nothing in it has an address */
	return dw_root_read_facts(u, err);
}

/* ---- complete and missing units ---- */

/* Leaves a skeleton its root. */
static int trim(struct dw_unit *skeleton, struct cairn_err *err)
{
	struct dw_die root;
	int rc = dw_unit_root(skeleton, &root, err);
	if (rc <= 0)
		return rc;
	struct cursor c = dw_unit_cursor(skeleton, root.attrs, err);
	dw_abbrev_skip(skeleton, root.abbrev, &c);
	if (c.failed)
		return dw_failure(&c);
	skeleton->end = c.pos;
	skeleton->has_stmt_list = false; /* its rows are the other unit's */
	skeleton->dwo_name = NULL;
	return 0;
}

static int trim_all(struct split *s, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; rc >= 0 && i < s->dw->n_units; i++) {
		struct dw_unit *u = &s->dw->units[i];
		struct dw_unit *skeleton =
			u->file->is_split && !u->is_type_unit ? skeleton_of(s, u) : NULL;
		if (skeleton && skeleton->dwo_name)
			rc = trim(skeleton, err);
		else if (skeleton)
			forget(u); /* the same unit once more, in another file */
	}
	return rc;
}

__attribute__((format(printf, 2, 3))) static bool tell(struct dw_split *split, const char *fmt, ...)
{
	char *line;
	bool ok = true;
	va_list ap;
	va_start(ap, fmt);
	int n = vasprintf(&line, fmt, ap);
	va_end(ap);
	if (n < 0)
		return false;
	if (split->missing.n)
		split->missing.p[split->missing.n - 1] = '\n'; /* over the NUL of the line before */
	for (int i = 0; ok && i <= n; i++)
		ok = VEC_ADD(&split->missing, line[i]);
	free(line);
	return ok;
}

/* Skeletons that were not trimmed have no rest. */
static int note_missing(struct split *s, struct cairn_err *err)
{
	struct dw_split *split = &s->dw->split;
	for (size_t i = 0; i < s->skeletons.n; i++) {
		const struct dw_unit *u = &s->dw->units[s->skeletons.p[i]];
		if (!u->dwo_name || split->n_missing++ >= STORIES_MAX)
			continue;
		const struct wanted *w = wanted_of(s, u);
		const char *log = w && w->log ? w->log : "";
		const char *stale =
			w && w->found ? "\nno unit in it has this id: it is of another build" : "";
		bool first = split->n_missing == 1 && s->package_log;
		char name[4096];
		cairn_quote(u->dwo_name, CAIRN_QUOTE_TEXT, name, sizeof(name));
		if (!tell(split,
			  "%s with id %016" PRIx64 ", in which the DWARF of a unit is:\n%s%s%s%s",
			  name, u->dwo_id, first ? s->package_log : "", first ? "\n" : "", log,
			  stale))
			return err_nomem(err, "the list of missing .dwo files");
	}
	return 0;
}

static int read_all(struct split *s, unsigned int threads, struct cairn_err *err)
{
	struct dwarf *dw = s->dw;
	if (s->skeletons.n >= DW_FILES_MAX)
		return err_set(err, -ERANGE, "%s: more than %d skeleton units", dw->file[0].path,
			       DW_FILES_MAX);
	dw->split.file = calloc(s->skeletons.n + 1, sizeof(*dw->split.file));
	int rc = dw->split.file ? open_package(s, err) : err_nomem(err, ".dwo files");
	if (rc >= 0)
		rc = list_files(s, err);
	if (rc >= 0)
		rc = open_files(s, threads, err);
	if (rc >= 0)
		rc = read_headers(s, err);
	if (rc >= 0)
		rc = place_all(s, err);
	if (rc >= 0)
		rc = dw_tables_compile(&dw->split_tables, dw->units, dw->n_units, threads, err);
	if (rc >= 0)
		rc = pool_run(dw->n_units, threads, read_unit, s, err);
	if (rc >= 0)
		rc = trim_all(s, err);
	return rc < 0 ? rc : note_missing(s, err);
}

int dw_split_read(struct dwarf *dw, unsigned int threads, struct cairn_err *err)
{
	struct split s = {.dw = dw};
	map_init(&s.by_path);
	map_init(&s.by_id);
	int rc = find_skeletons(&s, err);
	if (rc >= 0 && s.skeletons.n)
		rc = read_all(&s, threads, err);
	for (size_t i = 0; i < s.wanted.n; i++) {
		elf_unref(s.wanted.p[i].elf);
		free(s.wanted.p[i].log);
	}
	VEC_FREE(&s.wanted);
	VEC_FREE(&s.skeletons);
	map_fini(&s.by_path);
	map_fini(&s.by_id);
	dw_package_fini(&s.package);
	free(s.package_log);
	return rc;
}

void dw_split_fini(struct dw_split *split)
{
	for (size_t i = 0; i < split->n_files; i++) {
		dw_file_fini(&split->file[i]);
		elf_unref(split->file[i].elf);
	}
	free(split->file);
	VEC_FREE(&split->missing);
}

size_t dwarf_missing(const struct dwarf *dw, const char **ret)
{
	*ret = dw->split.missing.n ? dw->split.missing.p : "";
	return dw->split.n_missing;
}
