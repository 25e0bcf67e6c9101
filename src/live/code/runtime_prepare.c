/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds a process's codectl registries and GDB's lists of JIT code (__jit_debug_descriptor). */
#include "code/runtime_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "code/supervised.h"
#include "elf/elf.h"

bool runtime_is_memory_file(const char *path)
{
	static const char *const begin[] = {"/memfd:", "/dev/zero", "/dev/shm/", "/SYSV"};
	for (size_t i = 0; i < sizeof(begin) / sizeof(begin[0]); i++)
		if (!strncmp(path, begin[i], strlen(begin[i])))
			return true;
	return false;
}

bool code_is_anonymous(const struct code_mapping *m)
{
	return m->is_executable && strcmp(m->path, "[vdso]") && strcmp(m->path, "[vsyscall]") &&
	       (m->path[0] != '/' || runtime_is_memory_file(m->path));
}

/* ---- registries ---- */

static bool is_registry(const struct code_mapping *m)
{
	return !m->off && !strcmp(m->path, "/memfd:" CODECTL_REGISTRY_NAME);
}

/* A mapping whose permissions were changed in part has several entries in the list. */
static uint64_t end_of_file(const struct code_maps *maps, size_t i)
{
	uint64_t hi = maps->p.p[i].hi;
	for (size_t k = i + 1; k < maps->p.n; k++) {
		const struct code_mapping *m = &maps->p.p[k];
		if (m->lo != hi || m->ino != maps->p.p[i].ino || m->dev != maps->p.p[i].dev ||
		    !m->off)
			break;
		hi = m->hi;
	}
	return hi;
}

/* A slot keeps the buffers of the registry that had it before. NULL: no room for more. */
static struct registry *next_registry(struct code_runtime *rt)
{
	if (rt->n_registries == RUNTIME_MAX_REGISTRIES) {
		rt->has_more = true;
		return NULL;
	}
	struct registry *r = &rt->registries[rt->n_registries++];
	r->memory = rt->memory;
	r->as_of_ns = 0;
	r->n = 0;
	r->entries.n = 0;
	r->head = (struct codectl_registry){0};
	return r;
}

/*
 * A shared mapping is left out: other processes could write it, and fork would not copy it.
 * note_shared() in runtime_resolve.c reports it.
 */
static void find_registries(struct code_runtime *rt, const struct code_maps *maps)
{
	for (size_t i = 0; i < maps->p.n; i++) {
		struct registry *r = is_registry(&maps->p.p[i]) && !maps->p.p[i].is_shared
					     ? next_registry(rt)
					     : NULL;
		if (!r)
			continue;
		r->lo = maps->p.p[i].lo;
		r->hi = end_of_file(maps, i);
	}
}

static void find_supervised(struct code_runtime *rt)
{
	struct cairn_err err = {0};
	struct registry found = {0};
	rt->notice_story[0] = 0;
	int rc = rt->pid ? supervised_find(rt->pid, &found, &err) : 0;
	if (rc < 0)
		snprintf(rt->notice_story, sizeof(rt->notice_story), "%s", err.msg);
	struct registry *r = rc == 1 ? next_registry(rt) : NULL;
	if (!r)
		return;
	r->memory = found.memory;
	r->lo = found.lo;
	r->hi = found.hi;
	r->as_of_ns = found.as_of_ns;
}

/* ---- GDB's lists ---- */

static struct runtime_searched *search(struct code_runtime *rt, const struct cairn_binary *bin)
{
	const struct elf_symbol *symbols;
	size_t n;
	for (size_t i = 0; i < rt->searched.n; i++)
		if (rt->searched.p[i].bin == bin)
			return &rt->searched.p[i];
	struct runtime_searched *s = VEC_PUSH(&rt->searched);
	if (!s)
		return NULL;
	s->bin = bin;
	if (elf_symbols(binary_main(bin), &symbols, &n, NULL) < 0)
		return s;
	for (size_t i = 0; i < n && !s->has_it; i++)
		if (!strcmp(symbols[i].name, "__jit_debug_descriptor")) {
			s->has_it = true;
			s->at = symbols[i].at;
		}
	return s;
}

/* @m: code of a file, whose link-time address is @at. */
static int add_list(struct code_runtime *rt, const struct code_mapping *m,
		    const struct runtime_searched *s, struct cairn_vaddr at, struct cairn_err *err)
{
	uint64_t descriptor = m->lo - at.v + s->at.v;
	for (size_t i = 0; i < rt->n_lists; i++)
		if (rt->lists.p[i].descriptor == descriptor)
			return 0;
	if (rt->n_lists == RUNTIME_MAX_LISTS) {
		rt->has_more = true;
		return 0;
	}
	if (rt->n_lists == rt->lists.n && !VEC_PUSH(&rt->lists))
		return err_nomem(err, "GDB's lists of a process");
	rt->lists.p[rt->n_lists++].descriptor = descriptor;
	return 0;
}

static int find_lists(struct code_runtime *rt, const struct code_maps *maps, struct cairn_err *err)
{
	for (size_t i = 0; i < maps->p.n; i++) {
		const struct code_mapping *m = &maps->p.p[i];
		const struct code_image *image;
		struct cairn_vaddr at;
		if (!m->is_executable || code_is_anonymous(m))
			continue;
		int rc = code_space_peek(rt->space, (struct cairn_addr){m->lo}, &image, &at, err);
		if (rc < 0)
			return rc;
		const struct runtime_searched *s =
			image && image->bin ? search(rt, image->bin) : NULL;
		if (image && image->bin && !s)
			return err_nomem(err, "GDB's lists of a process");
		if (s && s->has_it)
			rc = add_list(rt, m, s, at, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool has_anonymous(const struct code_maps *maps)
{
	for (size_t i = 0; i < maps->p.n; i++)
		if (code_is_anonymous(&maps->p.p[i]))
			return true;
	return false;
}

int code_runtime_prepare(struct code_runtime *rt, struct code_space *space, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(space);
	rt->space = space;
	rt->n_lists = rt->n_registries = 0;
	rt->has_more = false;
	find_registries(rt, maps);
	find_supervised(rt);
	return has_anonymous(maps) ? find_lists(rt, maps, err) : 0;
}
