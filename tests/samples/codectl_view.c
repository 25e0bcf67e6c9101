/* SPDX-License-Identifier: BSD-2-Clause */
#include "codectl_view.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

static bool read_memory(pid_t pid, uint64_t at, void *to, size_t n)
{
	struct iovec local = {to, n}, remote = {(void *)(uintptr_t)at, n};
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == (ssize_t)n;
}

bool view_find(pid_t pid, struct view *ret)
{
	char path[64], line[600];
	*ret = (struct view){.pid = pid};
	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	FILE *maps = fopen(path, "r");
	while (maps && fgets(line, sizeof(line), maps)) {
		struct codectl_registry head;
		uint64_t at = strtoull(line, NULL, 16);
		if (strstr(line, "/memfd:" CODECTL_REGISTRY_NAME) &&
		    read_memory(pid, at, &head, sizeof(head)) &&
		    !memcmp(head.magic, CODECTL_REGISTRY_MAGIC, sizeof(head.magic)))
			ret->at = at;
	}
	if (maps)
		fclose(maps);
	return ret->at != 0;
}

bool view_read(struct view *v)
{
	if (!read_memory(v->pid, v->at, &v->head, sizeof(v->head)))
		return false;
	v->n = v->head.n_entries;
	if (v->n > v->room) {
		v->room = v->n * 2;
		v->entries = realloc(v->entries, v->room * sizeof(v->entries[0]));
	}
	return !v->n ||
	       read_memory(v->pid, v->head.entries, v->entries, v->n * sizeof(v->entries[0]));
}

void view_free(struct view *v)
{
	free(v->entries);
}

static bool covers(const struct codectl_entry *e, uint64_t address)
{
	if (!e->epoch)
		return false;
	if (e->option == CODE_REGISTER_ELF)
		return address >= e->info.elf.text_start && address < e->info.elf.text_end;
	return address >= e->info.jit.text_start && address < e->info.jit.text_end;
}

const struct codectl_entry *view_at(const struct view *v, uint64_t address)
{
	const struct codectl_entry *best = NULL;
	for (uint32_t i = 0; i < v->n; i++)
		if (covers(&v->entries[i], address) && (!best || v->entries[i].epoch > best->epoch))
			best = &v->entries[i];
	return best;
}

size_t view_count(const struct view *v)
{
	size_t n = 0;
	for (uint32_t i = 0; i < v->n; i++)
		n += v->entries[i].epoch != 0;
	return n;
}

const char *view_string(const struct view *v, uint64_t at)
{
	static char text[4097];
	for (size_t i = 0; at && i < sizeof(text) - 1; i++) {
		if (!read_memory(v->pid, at + i, &text[i], 1))
			return NULL;
		if (!text[i])
			return text;
	}
	return at ? NULL : "";
}

/* Offset of an element, which a line has first and the others second. */
static uint32_t offset_of(const uint8_t *element, size_t stride)
{
	uint32_t words[2];
	memcpy(words, element, sizeof(words));
	return words[stride == sizeof(struct code_jit_line) ? 0 : 1];
}

long view_chain(const struct view *v, uint64_t head, size_t stride, void *ret, size_t max)
{
	uint8_t *to = ret;
	size_t n = 0;
	struct code_jit_table t;
	for (uint64_t at = head; at; at = t.next) {
		if (!read_memory(v->pid, at, &t, sizeof(t)) || t.stride != stride ||
		    t.used_len > t.reserved_len || t.used_len % stride ||
		    n + t.used_len / stride > max)
			return -1;
		if (t.used_len && !read_memory(v->pid, at + sizeof(t), to + n * stride, t.used_len))
			return -1;
		n += t.used_len / stride;
	}
	for (size_t i = 1; i < n; i++)
		if (offset_of(to + i * stride, stride) < offset_of(to + (i - 1) * stride, stride))
			return -1;
	return (long)n;
}

const struct code_jit_unwind_fre *view_row(const struct code_jit_unwind_fre *rows, long n,
					   uint64_t off)
{
	for (long i = 0; i < n; i++)
		if (off >= rows[i].ip_off && off < (uint64_t)rows[i].ip_off + rows[i].size)
			return &rows[i];
	return NULL;
}
