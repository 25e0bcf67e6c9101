/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that were not called yet: a breakpoint at the beginning of each FDE
 *
 * A function is where a call leads, by file and address in it, after a procedure linkage table's
 * entry; its first call may go on to the dynamic linker, which binds it.
 */
#include "steps.h"

#include <elf.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NEW_MS = 4000 };

static int by_off(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/*
 * .eh_frame_hdr: version 1, then encodings; pairs of 4 bytes relative to the section, as linkers
 * write it.
 */
static void read_entries(struct file *f, const uint8_t *bytes, const Elf64_Phdr *ph)
{
	const uint8_t *hdr = bytes + ph->p_offset;
	struct cairn_foff off;
	uint32_t n;
	memcpy(&n, hdr + 8, sizeof(n));
	if (hdr[0] != 1 || hdr[2] != 3 || hdr[3] != 0x3b)
		return;
	f->entries = calloc(n + 1, sizeof(*f->entries));
	for (uint32_t i = 0; f->entries && i < n; i++) {
		int32_t at;
		memcpy(&at, hdr + 12 + i * 8, sizeof(at));
		if (cairn_binary_foff(f->bin,
				      (struct cairn_vaddr){ph->p_vaddr + (uint64_t)(int64_t)at},
				      &off))
			f->entries[f->n_entries++].off = off.v;
	}
	qsort(f->entries, f->n_entries, sizeof(*f->entries), by_off);
}

void find_entries(struct file *f)
{
	struct stat st;
	int fd = open(f->path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) < 0 || !f->bin || f->entries)
		return;
	const uint8_t *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (bytes == MAP_FAILED)
		return;
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)bytes;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)(bytes + eh->e_phoff);
	for (int i = 0; i < eh->e_phnum; i++)
		if (ph[i].p_type == PT_GNU_EH_FRAME)
			read_entries(f, bytes, &ph[i]);
	munmap((void *)(uintptr_t)bytes, (size_t)st.st_size);
}

static uint64_t key_of(const struct run *r, const struct map *m, uint64_t at)
{
	return m && m->file ? (uint64_t)(m->file - r->files + 1) << 48 | (at - m->lo + m->off) : at;
}

static void plant_map(struct run *r, const struct map *m)
{
	static const uint8_t int3 = 0xcc;
	find_entries(m->file);
	for (size_t i = 0; i < m->file->n_entries; i++) {
		struct entry *e = &m->file->entries[i];
		uint64_t at = m->lo + e->off - m->off;
		if (e->is_planted || e->off < m->off || at >= m->hi ||
		    is_in_set(r->functions, key_of(r, m, at)))
			continue;
		e->is_planted = pread(r->memory, &e->byte, 1, (off_t)at) == 1 &&
				pwrite(r->memory, &int3, 1, (off_t)at) == 1;
	}
}

void plant(struct run *r)
{
	read_maps(r);
	for (size_t i = 0; i < r->n_maps; i++)
		if (r->maps[i].file)
			plant_map(r, &r->maps[i]);
}

bool unplant(struct run *r, uint64_t at)
{
	const struct map *m = map_of(r, at);
	if (!m || !m->file || !m->file->n_entries)
		return false;
	struct entry key = {.off = at - m->lo + m->off};
	struct entry *e = bsearch(&key, m->file->entries, m->file->n_entries, sizeof(key), by_off);
	if (!e || !e->is_planted)
		return false;
	e->is_planted = false;
	return pwrite(r->memory, &e->byte, 1, (off_t)at) == 1;
}

/*
 * An entry of a procedure linkage table: it jumps by a word, or pushes a number and jumps to the
 * first entry.
 */
static bool is_link(const struct run *r, uint64_t at)
{
	uint8_t p[16];
	size_t i = 0;
	if (!read_target((void *)(uintptr_t)r, (struct cairn_addr){at}, p, sizeof(p)))
		return false;
	if (!memcmp(p, "\xf3\x0f\x1e\xfa", 4))
		i = 4; /* endbr64 */
	if (p[i] == 0x68)
		return true;
	if (p[i] == 0xff && p[i + 1] == 0x35)
		return true; /* the first entry */
	i += p[i] == 0xf2;   /* bnd */
	/* What follows the number. */
	if (r->linked_from && p[i] == 0xe9)
		return true;
	return p[i] == 0xff && p[i + 1] == 0x25;
}

void note_function(struct run *r, uint64_t pc)
{
	const struct map *m = map_of(r, pc);
	const struct file *file = m ? m->file : NULL;
	if (is_link(r, pc)) {
		r->linked_from = file;
		return;
	}
	r->n_bound +=
		r->linked_from && r->linked_from != file && file && strstr(file->path, "/ld-");
	r->is_called = false;
	r->linked_from = NULL;
	if (add_to_set(r->functions, key_of(r, m, pc))) {
		r->n_functions++;
		r->new_at_step = r->n_steps;
	}
}

void open_memory(struct run *r)
{
	char name[64];
	snprintf(name, sizeof(name), "/proc/%d/mem", r->pid);
	r->memory = open(name, O_RDWR | O_CLOEXEC);
	for (size_t i = 0; i < r->n_files; i++)
		for (size_t k = 0; k < r->files[i].n_entries; k++)
			r->files[i].entries[k].is_planted = false;
}

bool run_to_new(struct run *r)
{
	int status, signal = 0;
	for (;;) {
		pid_t got = 0;
		if (ptrace(PTRACE_CONT, r->pid, NULL, (void *)(intptr_t)signal) < 0)
			return false;
		for (int i = 0; i < NEW_MS * 5 && got == 0; i++) {
			got = waitpid(r->pid, &status, __WALL | WNOHANG);
			if (got == 0)
				nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
		}
		if (got <= 0 || WIFEXITED(status) || WIFSIGNALED(status))
			return false;
		signal = status >> 16 ? 0 : WSTOPSIG(status);
		if (signal != SIGTRAP)
			continue;
		struct user_regs_struct u;
		if (ptrace(PTRACE_GETREGS, r->pid, NULL, &u) < 0)
			return false;
		if (unplant(r, u.rip - 1)) {
			u.rip--;
			return ptrace(PTRACE_SETREGS, r->pid, NULL, &u) == 0;
		}
		signal = 0;
	}
}

/* 0: not there */
static uint64_t entry_point(const struct run *r)
{
	char name[64];
	uint64_t pair[2], ret = 0;
	snprintf(name, sizeof(name), "/proc/%d/auxv", r->pid);
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	while (!ret && fd >= 0 && read(fd, pair, sizeof(pair)) == sizeof(pair))
		ret = pair[0] == AT_ENTRY ? pair[1] : 0;
	close(fd);
	return ret;
}

bool run_to_entry(struct run *r)
{
	static const uint8_t int3 = 0xcc;
	uint64_t at = entry_point(r);
	uint8_t byte;
	struct user_regs_struct u;
	int status;
	open_memory(r);
	bool is_set = at && pread(r->memory, &byte, 1, (off_t)at) == 1 &&
		      pwrite(r->memory, &int3, 1, (off_t)at) == 1;
	bool is_there = is_set && ptrace(PTRACE_CONT, r->pid, NULL, NULL) == 0 &&
			waitpid(r->pid, &status, __WALL) == r->pid && WIFSTOPPED(status) &&
			status >> 8 == SIGTRAP && ptrace(PTRACE_GETREGS, r->pid, NULL, &u) == 0 &&
			u.rip == at + 1 && pwrite(r->memory, &byte, 1, (off_t)at) == 1;
	close(r->memory);
	if (!is_there)
		return false;
	u.rip = at;
	return ptrace(PTRACE_SETREGS, r->pid, NULL, &u) == 0;
}
