/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of a core file
 *
 * NT_FILE lists which file was mapped where, but the file that has the name today may be another
 * one: a package was upgraded, the core comes from another machine. Unwinding by another file's
 * rows invents frames. The kernel dumps the first page of every mapped ELF file (coredump_filter
 * bit 4, set by default), which nearly always contains the build-id note: only a file with the same
 * build-id is taken. These paths are tried in this order:
 *
 *	SYSROOT/path              the name in the core
 *	DIR/.build-id/ab/cdef...  of each debug directory, where packages link the binary of that
 *	                          build-id
 *
 * /usr/lib/debug is the last of the debug directories.
 */
#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "code/core.h"
#include "code/vdso.h"

enum {
	MAX_HEADERS = 64,    /* program headers that are looked at; binaries have a dozen */
	MAX_NOTES = 1 << 14, /* bytes of notes of a binary; they have a hundred */
	MAX_PATH = 4200,
};

/* The text that d_path() adds to the name of a file that has been deleted. */
static const char deleted[] = " (deleted)";

/* ---- the build-id in memory ---- */

static bool find_in_notes(struct cursor c, uint64_t align, struct core_build_id *ret)
{
	while (cur_left(&c) >= sizeof(Elf64_Nhdr)) {
		uint64_t n_name = cur_u32(&c), n_desc = cur_u32(&c);
		uint32_t type = cur_u32(&c);
		const uint8_t *name = cur_bytes(&c, n_name);
		cur_skip(&c, -(sizeof(Elf64_Nhdr) + n_name) & (align - 1));
		const uint8_t *desc = cur_bytes(&c, n_desc);
		if (c.failed)
			return false;
		if (type == NT_GNU_BUILD_ID && n_name == 4 && !memcmp(name, "GNU", 4) && n_desc &&
		    n_desc <= CORE_MAX_BUILD_ID) {
			memcpy(ret->bytes, desc, n_desc);
			ret->n = n_desc;
			return true;
		}
		if (cur_left(&c) < (-n_desc & (align - 1)))
			return false;
		cur_skip(&c, -n_desc & (align - 1));
	}
	return false;
}

static bool read_build_id(const struct core *core, uint64_t base, const Elf64_Phdr *ph,
			  struct core_build_id *ret)
{
	uint8_t bytes[MAX_NOTES];
	size_t n = ph->p_filesz < sizeof(bytes) ? ph->p_filesz : sizeof(bytes);
	struct cursor_src src = {core->path, "notes in memory", bytes};
	if (!core_read(core, base + ph->p_offset, bytes, n))
		return false;
	return find_in_notes(cursor_of(&src, bytes, n, false, NULL), ph->p_align == 8 ? 8 : 4, ret);
}

/*
 * @base: where offset 0 of the file is. Notes are in the first segment, so that their offset counts
 * from there.
 */
bool core_build_id_at(const struct core *core, uint64_t base, struct core_build_id *ret)
{
	Elf64_Ehdr eh;
	Elf64_Phdr ph;
	if (!core_read(core, base, &eh, sizeof(eh)) || memcmp(eh.e_ident, ELFMAG, SELFMAG) ||
	    eh.e_phentsize != sizeof(ph))
		return false;
	for (uint64_t i = 0; i < eh.e_phnum && i < MAX_HEADERS; i++) {
		if (!core_read(core, base + eh.e_phoff + i * sizeof(ph), &ph, sizeof(ph)))
			return false;
		if (ph.p_type == PT_NOTE && read_build_id(core, base, &ph, ret))
			return true;
	}
	return false;
}

/* A path of the core names the file of a mapping, whose path is without " (deleted)". */
static bool is_same_file(const char *path, const struct code_mapping *m)
{
	size_t n = strlen(m->path);
	return !strncmp(path, m->path, n) && (!path[n] || !strcmp(path + n, deleted));
}

/* A mapping whose file has been compared already. */
static bool is_known(const struct core *core, const struct code_mapping *m)
{
	for (size_t i = 0; i < core->files.n; i++)
		if (core->files.p[i].lo == m->lo && core->files.p[i].is_known)
			return true;
	return false;
}

/*
 * The mapping of a file's first byte which is nearest below the given one: a file may be loaded
 * twice.
 */
static bool build_id_of(const struct core *core, const struct code_mapping *m,
			struct core_build_id *ret)
{
	const struct core_file *first = NULL;
	for (size_t i = 0; i < core->files.n; i++) {
		const struct core_file *f = &core->files.p[i];
		if (!f->off && f->lo <= m->lo && is_same_file(f->path, m) &&
		    (!first || f->lo > first->lo))
			first = f;
	}
	return first && core_build_id_at(core, first->lo, ret);
}

/* ---- files ---- */

static int open_binary(const struct core_search *search, const char *path,
		       struct cairn_binary **ret, struct cairn_err *err)
{
	struct cairn_binary_opts how = {.size = sizeof(how),
					.debug_dirs = search->debug_dirs,
					.n_debug_dirs = search->n_debug_dirs};
	return cairn_binary_open(path, &how, ret, err);
}

/* Opens @path if it has the build-id; otherwise sets the note. Only -ENOMEM is an error. */
static int try_file(const struct core_search *search, const char *path,
		    const struct core_build_id *id, struct cairn_binary **ret,
		    struct cairn_err *err)
{
	struct cairn_binary *bin;
	size_t n;
	int rc = open_binary(search, path, &bin, err);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	const uint8_t *has = cairn_binary_build_id(bin, &n);
	if (n == id->n && !memcmp(has, id->bytes, n)) {
		*ret = bin;
		return 0;
	}
	cairn_binary_close(bin);
	err_set(err, -ESTALE, "%s: not the file that was mapped: its build-id is another one",
		path);
	return 0;
}

/*
 * @err keeps the fault of the file of that name, which says more than that a directory has none.
 */
static int try_directory(const struct core_search *search, const char *dir,
			 const struct core_build_id *id, struct cairn_binary **ret)
{
	char path[MAX_PATH];
	int n = snprintf(path, sizeof(path), "%s/.build-id/%02x/", dir, id->bytes[0]);
	for (size_t i = 1; i < id->n && n > 0 && (size_t)n < sizeof(path) - 3; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", id->bytes[i]);
	return try_file(search, path, id, ret, NULL);
}

static int read_memory(const void *ctx, uint64_t at, void *ret, size_t n, struct cairn_err *err)
{
	return core_read(ctx, at, ret, n) ? 0
					  : err_set(err, -ENODATA, "[vdso]: not in the core file");
}

static int open_file(void *ctx, const struct code_mapping *m, struct cairn_binary **ret,
		     uint8_t **ret_bytes, struct cairn_err *err)
{
	const struct core_search *search = ctx;
	struct core_build_id id = {.n = 0};
	char path[MAX_PATH];
	if (!m->ino)
		return vdso_open(m, read_memory, search->core, ret, ret_bytes, err);
	if (is_known(search->core, m)) {
		int rc = open_binary(search, m->path, ret, err);
		return rc == -ENOMEM ? rc : 0;
	}
	if (!build_id_of(search->core, m, &id)) {
		err_set(err, -ENODATA,
			"%s: the core file does not have its build-id, so no file can be "
			"identified as it",
			m->path);
		return 0;
	}
	snprintf(path, sizeof(path), "%s%s", search->sysroot ? search->sysroot : "", m->path);
	int rc = try_file(search, path, &id, ret, err);
	for (size_t i = 0; rc == 0 && !*ret && i < search->n_debug_dirs; i++)
		rc = try_directory(search, search->debug_dirs[i], &id, ret);
	if (rc == 0 && !*ret)
		rc = try_directory(search, "/usr/lib/debug", &id, ret);
	return rc;
}

/* ---- mappings ---- */

static int by_path(const void *a, const void *b)
{
	const struct code_mapping *x = a, *y = b;
	return strcmp(x->path, y->path);
}

static int by_address(const void *a, const void *b)
{
	const struct code_mapping *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* A substitute for an inode: a number per path. */
static void number_files(struct code_maps *maps)
{
	ino_t ino = 0;
	qsort(maps->p.p, maps->p.n, sizeof(*maps->p.p), by_path);
	for (size_t i = 0; i < maps->p.n; i++) {
		struct code_mapping *m = &maps->p.p[i];
		bool is_same = i && !strcmp(m->path, m[-1].path);
		ino += !is_same;
		m->ino = m->path[0] == '/' ? ino : 0;
	}
}

static void sort_by_address(struct code_maps *maps)
{
	size_t n = 0;
	qsort(maps->p.p, maps->p.n, sizeof(*maps->p.p), by_address);
	for (size_t i = 0; i < maps->p.n; i++)
		if (!n || maps->p.p[i].lo >= maps->p.p[n - 1].hi)
			maps->p.p[n++] = maps->p.p[i];
	maps->p.n = n;
}

/*
 * The part of a path before " (deleted)" is as long as the file's name; the core's bytes are not
 * ours to cut.
 */
static void keep_path(struct code_maps *maps, size_t *used, const char *path,
		      struct code_mapping *m)
{
	size_t n = strlen(path), tail = sizeof(deleted) - 1;
	m->is_deleted = n >= tail && !strcmp(path + n - tail, deleted);
	n -= m->is_deleted ? tail : 0;
	memcpy(maps->text + *used, path, n);
	m->path = maps->text + *used;
	*used += n + 1;
}

static int add_files(const struct core *core, struct code_maps *maps, struct cairn_err *err)
{
	size_t n = 1, used = 0;
	for (size_t i = 0; i < core->files.n; i++)
		n += strlen(core->files.p[i].path) + 1;
	maps->text = calloc(n, 1);
	if (!maps->text)
		return err_nomem(err, "the mappings of a core file");
	for (size_t i = 0; i < core->files.n; i++) {
		const struct core_file *f = &core->files.p[i];
		const struct core_segment *s = core_segment_at(core, f->lo);
		struct code_mapping m = {
			.lo = f->lo, .hi = f->hi, .off = f->off, .is_readable = true};
		/*
		 * A mapping that was not dumped at all may have no segment: then the file decides
		 * if it is code.
		 */
		m.is_executable = !s || s->is_executable;
		keep_path(maps, &used, f->path, &m);
		if (!VEC_ADD(&maps->p, m))
			return err_nomem(err, "the mappings of a core file");
	}
	return 0;
}

/* The vsyscall page is the kernel's, at an address that no process can map. */
static const char *name_of(const struct core *core, const struct core_segment *s)
{
	if (s->lo >> 63)
		return "[vsyscall]";
	return core->vdso >= s->lo && core->vdso < s->hi ? "[vdso]" : "";
}

/* The segments that are no file's. */
static int add_segments(const struct core *core, struct code_maps *maps, size_t n_files,
			struct cairn_err *err)
{
	struct code_maps files = {.p = {.p = maps->p.p, .n = n_files}};
	for (size_t i = 0; i < core->segments.n; i++) {
		const struct core_segment *s = &core->segments.p[i];
		struct code_mapping m = {.lo = s->lo,
					 .hi = s->hi,
					 .is_executable = s->is_executable,
					 .is_readable = s->is_readable,
					 .path = name_of(core, s)};
		files.p.p = maps->p.p;
		if (code_maps_find(&files, s->lo))
			continue;
		if (!VEC_ADD(&maps->p, m))
			return err_nomem(err, "the mappings of a core file");
	}
	return 0;
}

static int make_maps(const struct core *core, struct code_maps *maps, struct cairn_err *err)
{
	int rc = add_files(core, maps, err);
	if (rc < 0)
		return rc;
	if (maps->p.n) {
		number_files(maps);
		sort_by_address(maps);
	}
	rc = add_segments(core, maps, maps->p.n, err);
	if (rc == 0 && maps->p.n)
		sort_by_address(maps);
	return rc;
}

int code_space_open_core(const struct core_search *search, struct code_space **ret,
			 struct cairn_err *err)
{
	struct code_source source = {
		.open = open_file, .ctx = (void *)(uintptr_t)search, .threads = search->threads};
	struct code_maps maps = {0};
	int rc = make_maps(search->core, &maps, err);
	if (rc == 0)
		return code_space_new(&maps, &source, ret, err);
	code_maps_fini(&maps);
	return rc;
}
