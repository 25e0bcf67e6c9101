/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Core files for tests, written in readable code
 *
 *	struct core_builder b = {0};
 *	cb_thread(&b, 7, SIGSEGV, regs);
 *	cb_siginfo(&b, SIGSEGV, SEGV_MAPERR, 0x10);
 *	cb_file(&b, 0x400000, 0x401000, 0, "/bin/a");
 *	cb_memory(&b, (struct cb_segment){.lo = 0x400000, .size = 0x1000, .flags = PF_R | PF_X});
 *	cb_finish(&b);
 *	... b.bytes, b.n
 *	cb_free(&b);
 *
 * The file is: ELF header, program headers, notes, memory. Nothing is checked. Out of memory
 * aborts.
 */
#ifndef SAMPLES_CORE_BUILDER_H
#define SAMPLES_CORE_BUILDER_H

#include <elf.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { CB_MAX_FILES = 512, CB_MAX_SEGMENTS = 1024 };

struct cb_segment {
	uint64_t lo, size;
	uint32_t flags;   /* PF_* */
	const void *data; /* borrowed until cb_finish() */
	size_t n;         /* bytes that are dumped */
};

struct core_builder {
	uint8_t *bytes; /* notes, until cb_finish() */
	size_t n;
	struct {
		uint64_t lo, hi, off;
		const char *path;
	} files[CB_MAX_FILES];
	size_t n_files;
	struct cb_segment segments[CB_MAX_SEGMENTS];
	size_t n_segments;
};

static inline void cb_put(struct core_builder *b, const void *bytes, size_t n)
{
	uint8_t *grown = realloc(b->bytes, b->n + n + 1);
	if (!grown)
		abort();
	b->bytes = grown;
	if (n)
		memcpy(b->bytes + b->n, bytes, n);
	b->n += n;
}

static inline void cb_note(struct core_builder *b, uint32_t type, const void *desc, size_t n)
{
	const Elf64_Nhdr head = {5, (uint32_t)n, type};
	cb_put(b, &head, sizeof(head));
	cb_put(b, "CORE\0\0\0", 8);
	cb_put(b, desc, n);
	cb_put(b, "\0\0\0", -n & 3);
}

static inline void cb_thread(struct core_builder *b, uint32_t tid, uint16_t signal,
			     const uint64_t user[27])
{
	uint8_t desc[336] = {0};
	memcpy(desc + 12, &signal, sizeof(signal));
	memcpy(desc + 32, &tid, sizeof(tid));
	memcpy(desc + 112, user, 27 * sizeof(*user));
	cb_note(b, NT_PRSTATUS, desc, sizeof(desc));
}

static inline void cb_siginfo(struct core_builder *b, int32_t signal, int32_t code, uint64_t addr)
{
	uint8_t desc[128] = {0};
	memcpy(desc, &signal, sizeof(signal));
	memcpy(desc + 8, &code, sizeof(code));
	memcpy(desc + 16, &addr, sizeof(addr));
	cb_note(b, NT_SIGINFO, desc, sizeof(desc));
}

static inline void cb_psinfo(struct core_builder *b, uint32_t pid, const char *name)
{
	uint8_t desc[136] = {0};
	const size_t length = strlen(name);
	memcpy(desc + 24, &pid, sizeof(pid));
	memcpy(desc + 40, name, length < 16 ? length : 16);
	cb_note(b, NT_PRPSINFO, desc, sizeof(desc));
}

static inline void cb_auxv(struct core_builder *b, uint64_t vdso)
{
	const uint64_t desc[] = {AT_PAGESZ, 4096, AT_SYSINFO_EHDR, vdso, AT_NULL, 0};
	cb_note(b, NT_AUXV, desc, sizeof(desc));
}

static inline void cb_file(struct core_builder *b, uint64_t lo, uint64_t hi, uint64_t off,
			   const char *path)
{
	if (b->n_files == CB_MAX_FILES)
		abort();
	b->files[b->n_files].lo = lo;
	b->files[b->n_files].hi = hi;
	b->files[b->n_files].off = off;
	b->files[b->n_files++].path = path;
}

static inline void cb_memory(struct core_builder *b, struct cb_segment segment)
{
	if (b->n_segments == CB_MAX_SEGMENTS)
		abort();
	b->segments[b->n_segments++] = segment;
}

static inline void cb_put_files(struct core_builder *b)
{
	struct core_builder desc = {0};
	const uint64_t head[] = {b->n_files, 4096};
	cb_put(&desc, head, sizeof(head));
	for (size_t i = 0; i < b->n_files; i++) {
		const uint64_t row[] = {b->files[i].lo, b->files[i].hi, b->files[i].off / 4096};
		cb_put(&desc, row, sizeof(row));
	}
	for (size_t i = 0; i < b->n_files; i++)
		cb_put(&desc, b->files[i].path, strlen(b->files[i].path) + 1);
	cb_note(b, NT_FILE, desc.bytes, desc.n);
	free(desc.bytes);
}

static inline void cb_finish(struct core_builder *b)
{
	if (b->n_files)
		cb_put_files(b);
	struct core_builder out = {0};
	Elf64_Ehdr eh = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_CORE,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(eh),
			 .e_ehsize = sizeof(eh),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = (uint16_t)(b->n_segments + 1)};
	uint64_t off = sizeof(eh) + (b->n_segments + 1) * sizeof(Elf64_Phdr);
	const Elf64_Phdr notes = {.p_type = PT_NOTE, .p_offset = off, .p_filesz = b->n};
	cb_put(&out, &eh, sizeof(eh));
	cb_put(&out, &notes, sizeof(notes));
	off += b->n;
	for (size_t i = 0; i < b->n_segments; i++) {
		const struct cb_segment *s = &b->segments[i];
		const Elf64_Phdr load = {.p_type = PT_LOAD,
					 .p_flags = s->flags,
					 .p_offset = off,
					 .p_vaddr = s->lo,
					 .p_filesz = s->n,
					 .p_memsz = s->size};
		cb_put(&out, &load, sizeof(load));
		off += s->n;
	}
	cb_put(&out, b->bytes, b->n);
	for (size_t i = 0; i < b->n_segments; i++)
		cb_put(&out, b->segments[i].data, b->segments[i].n);
	free(b->bytes);
	b->bytes = out.bytes;
	b->n = out.n;
}

static inline void cb_free(struct core_builder *b)
{
	free(b->bytes);
}

#endif
