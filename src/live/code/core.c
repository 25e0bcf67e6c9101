/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core files: headers and memory
 *
 *	ELF header		type ET_CORE
 *	program headers		PT_NOTE, then a PT_LOAD per mapping
 *	notes			core_notes.c
 *	memory			p_filesz bytes at p_offset; the rest of p_memsz was not dumped
 *
 * A core is often cut: the disk was full, a limit was reached, a pipe broke. The order above is
 * also the order in the file, so a cut takes memory first. No part is needed as a whole: segments
 * are clipped to the file's end, and a read after the end fails, which ends a walk with that
 * reason.
 *
 * Counts are bounded by the file: a header takes 56 bytes in it, a thread 336, a mapped file 24.
 */
#include "code/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cairn/text.h>

#include "base/err.h"
#include "base/inputs.h"
#include "base/scope.h"
#include "base/search.h"

/* The fields of the ELF header that are needed. */
struct core_header {
	uint16_t type, machine, phentsize, phnum;
	uint64_t phoff, shoff;
};

static struct cursor core_cursor(const struct core *core, const struct cursor_src *src,
				 uint64_t off)
{
	uint64_t at = off < core->size ? off : core->size;
	return cursor_of(src, core->bytes + at, core->size - at, false, NULL);
}

/* A caller that names a program means where it is now, or was when it crashed. */
static int refuse_type(const struct core *core, const struct core_header *h, struct cairn_err *err)
{
	if (h->type == ET_EXEC || h->type == ET_DYN)
		return err_set(err, -EBADMSG,
			       "%s: a program or library, and no core file: give the process "
			       "number of one that runs it (pidof NAME)",
			       core->path);
	if (h->type == ET_REL)
		return err_set(err, -EBADMSG, "%s: an object file, and no core file", core->path);
	return err_set(err, -EBADMSG, "%s: ELF header+0x10: type %u; a core file has %d",
		       core->path, h->type, ET_CORE);
}

static int check_header(const struct core *core, const struct core_header *h, struct cairn_err *err)
{
	if (core->bytes[EI_CLASS] == ELFCLASS32)
		return err_set(
			err, -EOPNOTSUPP,
			"%s: the core of a 32-bit process; only x86-64 and AArch64 are supported",
			core->path);
	if (core->bytes[EI_DATA] != ELFDATA2LSB || core->bytes[EI_CLASS] != ELFCLASS64)
		return err_set(err, -EOPNOTSUPP,
			       "%s: ELF header+0x4: class %u, data %u; only x86-64 and AArch64 are "
			       "supported (2, 1)",
			       core->path, core->bytes[EI_CLASS], core->bytes[EI_DATA]);
	if (h->type != ET_CORE)
		return refuse_type(core, h, err);
	if (h->machine != EM_X86_64 && h->machine != EM_AARCH64)
		return err_set(err, -EOPNOTSUPP,
			       "%s: the core of a process of machine %u; only x86-64 (62) and "
			       "AArch64 (183) are supported",
			       core->path, h->machine);
	if (h->phentsize != sizeof(Elf64_Phdr))
		return err_set(
			err, -EBADMSG, "%s: ELF header+0x36: program headers of %s; expected %zu",
			core->path, cairn_counted(h->phentsize, "byte").text, sizeof(Elf64_Phdr));
	return 0;
}

static int read_header(const struct core *core, struct core_header *h, struct cairn_err *err)
{
	struct cursor_src src = {core->path, "ELF header", core->bytes};
	struct cursor c = cursor_of(&src, core->bytes, core->size, false, err);
	if (core->size < SELFMAG || memcmp(core->bytes, ELFMAG, SELFMAG))
		return err_set(err, -EBADMSG, "%s: neither a process's number nor a core file",
			       core->path);
	cur_skip(&c, EI_NIDENT);
	h->type = cur_u16(&c);
	h->machine = cur_u16(&c);
	cur_skip(&c, 4 + 8); /* e_version, e_entry */
	h->phoff = cur_u64(&c);
	h->shoff = cur_u64(&c);
	cur_skip(&c, 4 + 2); /* e_flags, e_ehsize */
	h->phentsize = cur_u16(&c);
	h->phnum = cur_u16(&c);
	return c.failed ? -EBADMSG : check_header(core, h, err);
}

/*
 * A process with 65535 mappings or more has their number in section header 0, at the end: a cut
 * takes it.
 */
static uint32_t count_segments(const struct core *core, const struct core_header *h)
{
	struct cursor_src src = {core->path, "section header 0", core->bytes};
	struct cursor c = core_cursor(core, &src, h->shoff);
	if (h->phnum != PN_XNUM || !h->shoff)
		return h->phnum;
	cur_skip(&c, offsetof(Elf64_Shdr, sh_info));
	uint32_t n = cur_u32(&c);
	return c.failed ? h->phnum : n;
}

static Elf64_Phdr read_segment_header(struct cursor *c)
{
	Elf64_Phdr ph = {.p_type = cur_u32(c)};
	ph.p_flags = cur_u32(c);
	ph.p_offset = cur_u64(c);
	ph.p_vaddr = cur_u64(c);
	cur_skip(c, 8); /* p_paddr */
	ph.p_filesz = cur_u64(c);
	ph.p_memsz = cur_u64(c);
	cur_skip(c, 8); /* p_align */
	return ph;
}

static int add_memory(struct core *core, const Elf64_Phdr *ph, uint64_t n_bytes,
		      struct cairn_err *err)
{
	uint64_t dumped = n_bytes < ph->p_memsz ? n_bytes : ph->p_memsz;
	if (!ph->p_memsz || ph->p_vaddr + ph->p_memsz < ph->p_vaddr)
		return 0;
	struct core_segment s = {.lo = ph->p_vaddr,
				 .hi = ph->p_vaddr + ph->p_memsz,
				 .dumped = ph->p_vaddr + dumped,
				 .off = ph->p_offset,
				 .is_executable = ph->p_flags & PF_X,
				 .is_readable = ph->p_flags & PF_R};
	return VEC_ADD(&core->segments, s) ? 0 : err_nomem(err, "the memory of a core file");
}

static int add_segment(struct core *core, const Elf64_Phdr *ph, struct cairn_err *err)
{
	uint64_t end = ph->p_offset + ph->p_filesz, left = 0;
	if (ph->p_offset < core->size)
		left = core->size - ph->p_offset;
	if (left > ph->p_filesz)
		left = ph->p_filesz;
	if (end >= ph->p_offset && end > core->whole)
		core->whole = end;
	if (ph->p_type == PT_LOAD)
		return add_memory(core, ph, left, err);
	if (ph->p_type != PT_NOTE || !left)
		return 0;
	struct cursor_src src = {core->path, "notes", core->bytes};
	return core_read_notes(core, cursor_of(&src, core->bytes + ph->p_offset, left, false, NULL),
			       err);
}

static int by_address(const void *a, const void *b)
{
	const struct core_segment *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* A segment that begins before the end of the previous one is left out: no process has that. */
static void sort_segments(struct core *core)
{
	struct core_segment *p = core->segments.p;
	size_t n = 0;
	if (core->segments.n)
		qsort(p, core->segments.n, sizeof(*p), by_address);
	for (size_t i = 0; i < core->segments.n; i++)
		if (!n || p[i].lo >= p[n - 1].hi)
			p[n++] = p[i];
	core->segments.n = n;
}

static int read_core(struct core *core, struct cairn_err *err)
{
	struct core_header h = {0};
	struct cursor_src src = {core->path, "program headers", core->bytes};
	int rc = read_header(core, &h, err);
	if (rc < 0)
		return rc;
	core->machine = h.machine;
	struct cursor c = core_cursor(core, &src, h.phoff);
	uint64_t n = count_segments(core, &h);
	core->whole = n ? h.phoff + n * sizeof(Elf64_Phdr) : 0;
	for (uint64_t i = 0; rc == 0 && i < n && cur_left(&c) >= sizeof(Elf64_Phdr); i++) {
		Elf64_Phdr ph = read_segment_header(&c);
		rc = add_segment(core, &ph, err);
	}
	sort_segments(core);
	return rc;
}

static int open_bytes(const void *bytes, size_t size, bool is_mapped, const char *name,
		      struct core **ret, struct cairn_err *err)
{
	struct core *core = calloc(1, sizeof(*core));
	int rc = -ENOMEM;
	if (core) {
		*core = (struct core){
			.path = strdup(name), .bytes = bytes, .size = size, .is_mapped = is_mapped};
		rc = core->path ? read_core(core, err) : -ENOMEM;
	} else if (is_mapped) {
		input_unmap(bytes, size);
	}
	if (rc < 0)
		core_close(core);
	else
		*ret = core;
	return rc == -ENOMEM ? err_nomem(err, "a core file") : rc;
}

int core_open_mem(const void *bytes, size_t size, const char *name, struct core **ret,
		  struct cairn_err *err)
{
	return open_bytes(bytes, size, false, name, ret, err);
}

int core_open(const char *path, struct core **ret, struct cairn_err *err)
{
	struct stat st;
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode) || !st.st_size)
		return err_set(err, -EBADMSG, "%s: neither a process's number nor a core file",
			       path);
	void *bytes = input_map(fd, (size_t)st.st_size, path);
	if (!bytes)
		return err_set(err, -errno, "%s: %s", path, strerror(errno));
	return open_bytes(bytes, (size_t)st.st_size, true, path, ret, err);
}

void core_close(struct core *core)
{
	if (!core)
		return;
	if (core->is_mapped)
		input_unmap(core->bytes, core->size);
	VEC_FREE(&core->segments);
	VEC_FREE(&core->threads);
	VEC_FREE(&core->files);
	for (size_t i = 0; i < core->names.n; i++)
		free(core->names.p[i]);
	VEC_FREE(&core->names);
	free(core->path);
	free(core);
}

/* ---- memory ---- */

const struct core_segment *core_segment_at(const struct core *core, uint64_t at)
{
	size_t lo = SEARCH(0, core->segments.n, mid, core->segments.p[mid].hi <= at);
	return lo < core->segments.n && core->segments.p[lo].lo <= at ? &core->segments.p[lo]
								      : NULL;
}

/* A stack may lie in two segments: the kernel splits mappings that differ in their flags. */
bool core_read(const struct core *core, uint64_t at, void *ret, size_t n)
{
	uint8_t *to = ret;
	while (n) {
		const struct core_segment *s = core_segment_at(core, at);
		if (!s || at >= s->dumped)
			return false;
		size_t part = s->dumped - at < n ? s->dumped - at : n;
		memcpy(to, core->bytes + s->off + (at - s->lo), part);
		to += part;
		at += part;
		n -= part;
	}
	return true;
}
