/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Registrations, compared with the mappings
 *
 * Code made at run time does not lie where a file is mapped. An object is the file that is mapped
 * where its code is, by its build-id and by its name, which the process may have used in another
 * form than the kernel shows:
 *
 *	registered	/usr/lib/x86_64-linux-gnu/libstdc++.so.6	a symbolic link
 *	mapped		/usr/lib/x86_64-linux-gnu/libstdc++.so.6.0.30
 *
 * So if the names differ, the registered file is looked up as the process sees it.
 */
#include "code/runtime_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/scope.h"

static bool is_memory(const struct code_mapping *m)
{
	if (m->path[0] == '/')
		return runtime_is_memory_file(m->path);
	return strcmp(m->path, "[vdso]") && strcmp(m->path, "[stack]") &&
	       strcmp(m->path, "[vsyscall]");
}

static void refuse_for(struct code_runtime *rt, struct region *r, const struct code_mapping *m)
{
	const char *why = arena_printf(&rt->arena, "%s is mapped there", m->path);
	runtime_distrust(r, why ? why : "a file is mapped there");
}

/* Whether it can be executed may change at any moment, and is not checked. */
void runtime_verify_jit(struct code_runtime *rt, struct region *r)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	size_t first = code_maps_first(maps, r->range.lo.v), i = first;
	for (; i < maps->p.n && maps->p.p[i].lo < r->range.hi.v; i++) {
		if (is_memory(&maps->p.p[i]))
			continue;
		refuse_for(rt, r, &maps->p.p[i]);
		return;
	}
	if (i == first)
		runtime_distrust(r, "nothing is mapped there");
}

/* ---- objects ---- */

/* The mapping of its code, which may be several that differ in permissions; NULL and distrust. */
static const struct code_mapping *mapping_of(struct code_runtime *rt, struct region *r)
{
	const struct code_maps *maps = code_space_maps(rt->space);
	size_t first = code_maps_first(maps, r->range.lo.v), i = first;
	uint64_t at = r->range.lo.v;
	for (; i < maps->p.n && maps->p.p[i].lo <= at && at < r->range.hi.v; i++) {
		const struct code_mapping *m = &maps->p.p[i];
		if (!m->is_executable || m->ino != maps->p.p[first].ino ||
		    m->dev != maps->p.p[first].dev)
			break;
		at = m->hi;
	}
	if (i == first)
		runtime_distrust(r, i < maps->p.n && maps->p.p[i].lo <= at
					    ? "the mapping there is no code"
					    : "nothing is mapped there");
	else if (at < r->range.hi.v)
		runtime_distrust(r, "less code is mapped there");
	return i == first ? NULL : &maps->p.p[first];
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

/* A symbolic link with an absolute path begins at the process's root, not at ours. */
static bool is_file(int pid, const char *path, const struct code_mapping *m)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	char root[32];
	struct stat st;
	snprintf(root, sizeof(root), "/proc/%d/root", pid);
	SCOPE_CLOSE int dir = pid ? open(root, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
	if (dir < 0)
		return false;
	SCOPE_CLOSE int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	return fd >= 0 && fstat(fd, &st) == 0 && st.st_ino == m->ino;
}

static void verify_name(struct code_runtime *rt, struct region *r, const char *name,
			const struct code_mapping *m)
{
	if (strcmp(base_name(name), base_name(m->path)) && !is_file(rt->pid, name, m))
		refuse_for(rt, r, m);
}

static void verify_build_id(struct region *r, const struct registry_entry *e,
			    const struct cairn_binary *bin)
{
	size_t n;
	const uint8_t *id = cairn_binary_build_id(bin, &n);
	if (n != e->elf.build_id_len || (n && memcmp(id, e->build_id, n) != 0))
		runtime_distrust(r, "its build-id is not that of the file that is mapped");
}

int runtime_verify_elf(struct code_runtime *rt, struct region *r, const struct registry_entry *e,
		       bool *ret_has_file, struct cairn_err *err)
{
	const struct code_mapping *m = mapping_of(rt, r);
	const struct code_image *image = NULL;
	struct cairn_vaddr at;
	*ret_has_file = m && !code_is_anonymous(m);
	if (!*ret_has_file || !r->range.is_trusted)
		return 0;
	int rc = code_space_peek(rt->space, r->range.lo, &image, &at, err);
	if (rc < 0)
		return rc;
	bool has_id = e->build_id && image && image->bin;
	if (has_id)
		verify_build_id(r, e, image->bin);
	/* A link to a deleted file leads nowhere; its build-id is enough. */
	if (e->name && m->path[0] == '/' && !(has_id && m->is_deleted))
		verify_name(rt, r, e->name, m);
	return 0;
}
