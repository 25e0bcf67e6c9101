/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same function for everyone: push %rbx at its start, pop %rbx before its end, so three rows.
 * Its CFI is made once per function, in memory that is there already; what a peer does with it is
 * its cost.
 */
#include "codectl_peers.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cairn/jit/jit.h>

/* ---- ours ---- */

static struct cairn_jit *jit;
static const uint8_t *area;

static void codectl_open(size_t n)
{
	area = mmap(NULL, n * FUNCTION_BYTES, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area == MAP_FAILED || cairn_jit_open(area, n * FUNCTION_BYTES, NULL, &jit) < 0)
		exit(1);
}

static void publish_rows(size_t i, const struct cairn_jit_info *info)
{
	const uint8_t *start = area + i * FUNCTION_BYTES, *end = start + FUNCTION_BYTES;
	struct cairn_jit_frame frame;
	cairn_jit_begin(&frame, start);
	cairn_jit_cfa(&frame, start + 1, CAIRN_JIT_SP, 16);
	cairn_jit_cfa(&frame, end - 1, CAIRN_JIT_SP, 8);
	if (cairn_jit_publish(jit, &frame, end, info) < 0)
		exit(1);
}

static void codectl_publish(size_t i, const uint8_t *code, const char *name)
{
	publish_rows(i, NULL);
}

static void codectl_publish_named(size_t i, const uint8_t *code, const char *name)
{
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	publish_rows(i, &info);
}

static void codectl_withdraw(size_t i)
{
	cairn_jit_withdraw(jit, area + i * FUNCTION_BYTES, area + (i + 1) * FUNCTION_BYTES);
}

static void codectl_close(void)
{
	cairn_jit_close(jit);
}

const struct peer codectl_rows = {"codectl, rows", "how to unwind",  codectl_open,
				  codectl_publish, codectl_withdraw, codectl_close};
const struct peer codectl_named = {"codectl, rows and name", "name, how to unwind", codectl_open,
				   codectl_publish_named,    codectl_withdraw,      codectl_close};

/* ---- CFI, for those that want it ---- */

enum { CIE_BYTES = 24, FDE_BYTES = 32, CFI_BYTES = CIE_BYTES + FDE_BYTES + 8 };

/* CIE, FDE, and the length of 0 that ends a section. */
static void put_cfi(uint8_t *to, const uint8_t *code)
{
	static const uint8_t cie[CIE_BYTES] = {20, 0,    0,  0, 0,    0,  0, 0, 1,    'z', 'R', 0,
					       1,  0x78, 16, 1, 0x00, 12, 7, 8, 0x90, 1,   0,   0};
	/* advance 1, CFA = rsp + 16; advance 62, CFA = rsp + 8 */
	static const uint8_t program[] = {0, 0x41, 14, 16, 0x7e, 14, 8};
	uint32_t length = FDE_BYTES - 4 + 4, back = CIE_BYTES + 4;
	uint64_t lo = (uintptr_t)code, n = FUNCTION_BYTES;
	memcpy(to, cie, sizeof(cie));
	memcpy(to + 24, &length, 4);
	memcpy(to + 28, &back, 4);
	memcpy(to + 32, &lo, 8);
	memcpy(to + 40, &n, 8);
	memcpy(to + 48, program, sizeof(program));
	memset(to + 48 + sizeof(program), 0, CFI_BYTES - 48 - sizeof(program));
}

/* ---- libgcc ---- */

extern void __register_frame(void *), __deregister_frame(void *);

static uint8_t *cfi;

static void frames_open(size_t n)
{
	cfi = calloc(n, CFI_BYTES);
}

static void frames_publish(size_t i, const uint8_t *code, const char *name)
{
	put_cfi(cfi + i * CFI_BYTES, code);
	__register_frame(cfi + i * CFI_BYTES);
}

static void frames_withdraw(size_t i)
{
	__deregister_frame(cfi + i * CFI_BYTES);
}

static void frames_close(void)
{
	free(cfi);
}

const struct peer register_frame = {"__register_frame", "how to unwind, this process only",
				    frames_open,        frames_publish,
				    frames_withdraw,    frames_close};

/* ---- jitdump: records as perf's specification has them, through a buffer of the C library ---- */

struct jitdump_load {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct jitdump_unwinding {
	uint32_t id, total_size;
	uint64_t timestamp;
	uint64_t unwinding_size, eh_frame_hdr_size, mapped_size;
	uint8_t header[20]; /* .eh_frame_hdr of one FDE */
	uint8_t cfi[CFI_BYTES];
	uint8_t pad[4];
};

static FILE *out;

static void file_open(size_t n)
{
	out = tmpfile();
	if (!out)
		exit(1);
}

static void file_close(void)
{
	fclose(out);
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void jitdump_publish(size_t i, const uint8_t *code, const char *name)
{
	size_t n_name = strlen(name) + 1;
	/* clang-format off */
	struct jitdump_load load = {
		.total_size = (uint32_t)(sizeof(load) + n_name + FUNCTION_BYTES), .timestamp = now_ns(), .pid = 1, .tid = 1,
		.vma = (uintptr_t)code, .code_addr = (uintptr_t)code, .code_size = FUNCTION_BYTES, .code_index = i,
	};
	/* clang-format on */
	fwrite_unlocked(&load, sizeof(load), 1, out);
	fwrite_unlocked(name, n_name, 1, out);
	fwrite_unlocked(code, FUNCTION_BYTES, 1, out);
	fflush_unlocked(out);
}

static void jitdump_publish_unwind(size_t i, const uint8_t *code, const char *name)
{
	/* clang-format off */
	struct jitdump_unwinding record = {
		.id = 4, .total_size = sizeof(record), .timestamp = now_ns(), .unwinding_size = 20 + CFI_BYTES,
		.eh_frame_hdr_size = 20, .mapped_size = 20 + CFI_BYTES, .header = {1, 0x1b, 3, 0x3b},
	};
	/* clang-format on */
	put_cfi(record.cfi, code);
	fwrite_unlocked(&record, sizeof(record), 1, out);
	jitdump_publish(i, code, name);
}

const struct peer jitdump = {"jitdump", "name, code", file_open, jitdump_publish, NULL, file_close};
const struct peer jitdump_unwind = {"jitdump, unwinding too",
				    "name, code, how to unwind",
				    file_open,
				    jitdump_publish_unwind,
				    NULL,
				    file_close};

/* ---- perf map: a line of text; CPython flushes after each, others let the C library write ---- */

static void perf_map_buffered_publish(size_t i, const uint8_t *code, const char *name)
{
	fprintf(out, "%lx %x %s\n", (unsigned long)code, FUNCTION_BYTES, name);
}

static void perf_map_publish(size_t i, const uint8_t *code, const char *name)
{
	perf_map_buffered_publish(i, code, name);
	fflush(out);
}

const struct peer perf_map = {"perf map", "name", file_open, perf_map_publish, NULL, file_close};
const struct peer perf_map_buffered = {"perf map, buffered",      "name, later", file_open,
				       perf_map_buffered_publish, NULL,          file_close};

/* ---- GDB: a symbol file in memory, in a list; the function is where GDB would stop ---- */

struct entry {
	struct entry *next, *prev;
	const void *symfile;
	uint64_t n_bytes;
};

static struct {
	uint32_t version, action;
	struct entry *relevant, *first;
} descriptor = {1, 0, NULL, NULL};

__attribute__((noinline)) static void register_code(void)
{
	__asm__ volatile("" ::: "memory");
}

enum { NO_SECTION, TEXT, EH_FRAME, SYMTAB, STRTAB, SHSTRTAB, N_SECTIONS };

/*
 * The least that can be filled in for each function: headers, sections, one symbol, its CFI. LuaJIT
 * and V8 add DWARF.
 */
struct symfile {
	struct entry entry;
	Elf64_Ehdr head;
	Elf64_Shdr section[N_SECTIONS];
	Elf64_Sym symbol[2];
	uint8_t cfi[CFI_BYTES];
	char shstrtab[48];
	char strtab[64];
};

static struct symfile **symfiles;

static void gdb_open(size_t n)
{
	symfiles = calloc(n, sizeof(*symfiles));
}

static size_t within(const struct symfile *s, const void *part)
{
	return (size_t)((const char *)part - (const char *)&s->head);
}

static void set_section(struct symfile *s, int i, uint32_t name, uint32_t type, const void *part,
			size_t n)
{
	s->section[i] = (Elf64_Shdr){.sh_name = name,
				     .sh_type = type,
				     .sh_offset = part ? within(s, part) : 0,
				     .sh_size = n,
				     .sh_addralign = 8};
}

static void set_sections(struct symfile *s, const uint8_t *code)
{
	static const char names[] = "\0.text\0.eh_frame\0.symtab\0.strtab\0.shstrtab";
	memcpy(s->shstrtab, names, sizeof(names));
	set_section(s, TEXT, 1, SHT_NOBITS, NULL, FUNCTION_BYTES);
	s->section[TEXT].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
	s->section[TEXT].sh_addr = (uintptr_t)code;
	set_section(s, EH_FRAME, 7, SHT_PROGBITS, s->cfi, CFI_BYTES);
	s->section[EH_FRAME].sh_flags = SHF_ALLOC;
	set_section(s, SYMTAB, 17, SHT_SYMTAB, s->symbol, sizeof(s->symbol));
	s->section[SYMTAB].sh_link = STRTAB;
	s->section[SYMTAB].sh_info = 1;
	s->section[SYMTAB].sh_entsize = sizeof(Elf64_Sym);
	set_section(s, STRTAB, 25, SHT_STRTAB, s->strtab, sizeof(s->strtab));
	set_section(s, SHSTRTAB, 33, SHT_STRTAB, s->shstrtab, sizeof(s->shstrtab));
}

static void gdb_publish(size_t i, const uint8_t *code, const char *name)
{
	struct symfile *s = calloc(1, sizeof(*s));
	if (!s)
		exit(1);
	/* clang-format off */
	s->head = (Elf64_Ehdr){
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT}, .e_type = ET_REL, .e_machine = EM_X86_64,
		.e_version = EV_CURRENT, .e_shoff = within(s, s->section), .e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = N_SECTIONS, .e_shstrndx = SHSTRTAB,
	};
	/* clang-format on */
	set_sections(s, code);
	strncpy(s->strtab + 1, name, sizeof(s->strtab) - 2);
	s->symbol[1] = (Elf64_Sym){.st_name = 1,
				   .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				   .st_shndx = TEXT,
				   .st_size = FUNCTION_BYTES};
	put_cfi(s->cfi, code);
	s->entry = (struct entry){.next = descriptor.first,
				  .symfile = &s->head,
				  .n_bytes = sizeof(*s) - sizeof(s->entry)};
	if (descriptor.first)
		descriptor.first->prev = &s->entry;
	descriptor.first = descriptor.relevant = &s->entry;
	descriptor.action = 1;
	register_code();
	symfiles[i] = s;
}

static void gdb_withdraw(size_t i)
{
	struct entry *e = &symfiles[i]->entry;
	if (e->next)
		e->next->prev = e->prev;
	*(e->prev ? &e->prev->next : &descriptor.first) = e->next;
	descriptor.relevant = e;
	descriptor.action = 2;
	register_code();
	free(symfiles[i]);
}

static void gdb_close(void)
{
	free(symfiles);
}

const struct peer gdb_list = {"GDB's list, symbol file",
			      "name, how to unwind",
			      gdb_open,
			      gdb_publish,
			      gdb_withdraw,
			      gdb_close};
