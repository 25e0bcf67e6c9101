/* SPDX-License-Identifier: BSD-2-Clause */
/* What is mapped in the program, its rows, and where its functions begin. */
#include "steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

bool read_target(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	const struct run *r = ctx;
	struct iovec here = {ret, n}, there = {(void *)(uintptr_t)at.v, n};
	return process_vm_readv(r->pid, &here, 1, &there, 1, 0) == (ssize_t)n;
}

static struct file *file_of(struct run *r, const char *path)
{
	struct cairn_err err = {0};
	for (size_t i = 0; i < r->n_files; i++)
		if (strcmp(r->files[i].path, path) == 0)
			return &r->files[i];
	if (r->n_files == MAX_FILES)
		return NULL;
	struct file *f = &r->files[r->n_files++];
	snprintf(f->path, sizeof(f->path), "%s", path);
	if (cairn_binary_open(path, NULL, &f->bin, &err) < 0 ||
	    cairn_unwind_make(f->bin, 0, &f->table, &err) < 0)
		fprintf(stderr, "steps: %s\n", err.msg);
	return f;
}

void read_maps(struct run *r)
{
	char name[64], line[1024], path[512], perms[8];
	snprintf(name, sizeof(name), "/proc/%d/maps", r->pid);
	FILE *f = fopen(name, "r");
	if (!f)
		die(name);
	r->n_maps = 0;
	while (fgets(line, sizeof(line), f) && r->n_maps < MAX_MAPS) {
		struct map *m = &r->maps[r->n_maps];
		path[0] = 0;
		int n = sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511[^\n]",
			       &m->lo, &m->hi, perms, &m->off, path);
		if (n < 4 || perms[2] != 'x')
			continue;
		m->file = path[0] == '/' ? file_of(r, path) : NULL;
		r->n_maps++;
	}
	fclose(f);
}

const struct map *map_of(const struct run *r, uint64_t at)
{
	for (size_t i = 0; i < r->n_maps; i++)
		if (at >= r->maps[i].lo && at < r->maps[i].hi)
			return &r->maps[i];
	return NULL;
}

const struct cairn_unwind_rule *rule_at(struct run *r, uint64_t at, struct file **ret_file,
					struct cairn_vaddr *ret_at)
{
	const struct map *m = map_of(r, at);
	if (!m) {
		read_maps(r);
		m = map_of(r, at);
	}
	*ret_file = m ? m->file : NULL;
	if (!*ret_file || !(*ret_file)->table ||
	    !cairn_binary_vaddr((*ret_file)->bin, (struct cairn_foff){at - m->lo + m->off}, ret_at))
		return NULL;
	return cairn_unwind_find((*ret_file)->table, *ret_at);
}

bool add_to_set(uint64_t *set, uint64_t key)
{
	for (uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 46;; h = (h + 1) % SEEN) {
		if (set[h] == key)
			return false;
		if (!set[h]) {
			set[h] = key;
			return true;
		}
	}
}

bool is_in_set(const uint64_t *set, uint64_t key)
{
	for (uint64_t h = key * UINT64_C(0x9e3779b97f4a7c15) >> 46; set[h]; h = (h + 1) % SEEN)
		if (set[h] == key)
			return true;
	return false;
}

struct cairn_vaddr function_of(struct file *f, struct cairn_vaddr at)
{
	struct cairn_foff off;
	struct cairn_vaddr start = at;
	find_entries(f);
	if (!cairn_binary_foff(f->bin, at, &off))
		return at;
	for (size_t i = 0; i < f->n_entries && f->entries[i].off <= off.v; i++)
		start.v = at.v - (off.v - f->entries[i].off);
	return start;
}

static int keep_doubt(void *ctx, const struct cairn_unwind_disagreement *found)
{
	struct file *f = ctx;
	struct cairn_unwind_disagreement *more =
		realloc(f->doubts, (f->n_doubts + 1) * sizeof(*more));
	if (!more)
		die("memory");
	f->doubts = more;
	f->doubts[f->n_doubts++] = *found;
	return 0;
}

const struct cairn_unwind_disagreement *doubts_of(struct file *f, size_t *ret_n)
{
	struct cairn_unwind_checked checked;
	struct cairn_err err = {0};
	if (!f->is_checked && cairn_unwind_check(f->bin, keep_doubt, f, &checked, &err) < 0)
		fprintf(stderr, "steps: %s\n", err.msg);
	f->is_checked = true;
	*ret_n = f->n_doubts;
	return f->doubts;
}
