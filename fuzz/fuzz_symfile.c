/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * GDB's list and the symbol files in it: the input is a process's memory, a descriptor first, then
 * a file.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "code/gdb_list.h"
#include "code/symfile.h"
#include "elf_builder.h"
#include "frame_builder.h"
#include "workspace.h"

/* Each input is a file whose lines are read. */
const unsigned int fuzz_places_max = 300;

enum { AT = 0x100000, FILE_OFF = 128 };

static void read_file(const struct code_memory *memory, uint64_t at, uint64_t size)
{
	struct symfile f;
	struct cairn_err err = {0};
	struct rule_words rule;
	uint64_t lo;
	int rc = symfile_read(memory, at, size, &f, &err);
	assert(rc == 0 || err.code == rc);
	assert(rc != -ENOMEM);
	for (size_t i = 0; rc == 0 && i < f.names.ranges.n && i < 64; i++)
		assert(symfile_find(&f, f.names.ranges.p[i].lo, &lo) &&
		       lo <= f.names.ranges.p[i].lo);
	for (size_t i = 0; rc == 0 && i < f.ranges.n && i < 64; i++) {
		const char *file = NULL;
		symfile_rule(&f, f.ranges.p[i].lo, &rule);
		symfile_line(&f, f.ranges.p[i].lo + 1, &file);
	}
	symfile_fini(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct code_block block = {bytes, size, AT};
	struct code_memory memory = code_memory_of_block(&block);
	struct gdb_list list = {0};
	assert(gdb_list_read(&memory, AT, 1024, &list) == 0);
	for (size_t i = 0; i < list.entries.n && i < 16; i++)
		if (gdb_entry_is_same(&memory, &list.entries.p[i]))
			read_file(&memory, list.entries.p[i].symfile, list.entries.p[i].size);
	VEC_FREE(&list.entries);
	return 0;
}

/*
 * Descriptor, one entry, and the file of an object with a function and an FDE that is still to be
 * relocated.
 */
static void put_seed(void (*put)(const void *bytes, size_t size), uint16_t type, uint64_t eh_addr,
		     const char *section_name)
{
	static const uint8_t code[64] = {0x55};
	struct frames eh = {0};
	struct elf_builder *b = eb_new(type);
	size_t n;
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = 0x400000,
							  EB_BYTES(code)});
	size_t cie = frames_cie_eh(&eh, "zR", "\x1b");
	frames_fde_eh(&eh, eh_addr, cie, eh_addr ? 0x400000 : 0, 64,
		      (const uint8_t *)"\x41\x0e\x10", 3);
	uint32_t section = eb_section(b, (struct eb_section){.name = section_name,
							     .flags = SHF_ALLOC,
							     .addr = eh_addr,
							     .data = eh.bytes,
							     .size = eh.n});
	uint32_t local = eb_symbol(b, (struct eb_symbol){"", text, 0, 0, STT_SECTION, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"f", text, 0, 32, STT_FUNC, STB_GLOBAL});
	if (!eh_addr)
		eb_rela(b, section, (uint32_t)eh.last + 8, R_X86_64_PC32, local, 0);
	uint8_t *file = eb_finish(b, &n);
	const uint64_t head[FILE_OFF / 8] = {1, 0, AT + 32, 0, 0, 0, AT + FILE_OFF, n};
	struct frames all = {0};
	frames_put(&all, head, sizeof(head));
	frames_put(&all, file, n);
	put(all.bytes, all.n);
	frames_free(&all);
	frames_free(&eh);
	eb_free(b);
}

/* ---- what compilers make ---- */

/* clang-format off */
static const struct {
	const char *command;
	/*
	 * Relocatable files are laid out by the library: .text, and what has a name that begins so,
	 * from here on.
	 */
	bool is_laid_out;
} compiled[] = {
	{"gcc -g -O1 -fno-pic -c -o jit a.c", true},
	{"gcc -g -gdwarf-4 -O1 -fno-pic -ffunction-sections -c -o jit a.c", true},
	/* Two sections of one name; and none that has one. */
	{"gcc -g -O1 -fno-pic -ffunction-sections -c -o jit a.c && objcopy --rename-section .text.f=.text jit", true},
	{"gcc -g -O1 -fno-pic -c -o jit a.c && objcopy --rename-section .text=.none jit", false},
	{"gcc -g -O1 -fno-pic -no-pie -nostdlib -static -Wl,-e,f -Wl,-Ttext=0x400000 -o jit a.c", false},
	{"gcc -g -gz -O1 -fno-pic -no-pie -nostdlib -static -Wl,-e,f -Wl,-Ttext=0x400000 -o jit a.c", false},
	{"gcc -O1 -fno-pic -c -o jit a.c", true},
};
/* clang-format on */

static void lay_out(uint8_t *file)
{
	Elf64_Ehdr *eh = (Elf64_Ehdr *)file;
	Elf64_Shdr *sh = (Elf64_Shdr *)(file + eh->e_shoff);
	for (int i = 0; i < eh->e_shnum; i++)
		if (sh[i].sh_flags & SHF_EXECINSTR)
			sh[i].sh_addr = 0x400000 + 0x1000 * (uint64_t)i;
}

static void put_compiled(const struct workspace *w, size_t which,
			 void (*put)(const void *bytes, size_t size))
{
	_Alignas(8) static uint8_t bytes[FILE_OFF + (1 << 16)];
	FILE *in = fopen(workspace_path(w, "jit"), "re");
	size_t n = in ? fread(bytes + FILE_OFF, 1, sizeof(bytes) - FILE_OFF, in) : 0;
	const uint64_t head[FILE_OFF / 8] = {1, 0, AT + 32, 0, 0, 0, AT + FILE_OFF, n};
	if (in)
		fclose(in);
	if (n < sizeof(Elf64_Ehdr) || n == sizeof(bytes) - FILE_OFF)
		return;
	if (compiled[which].is_laid_out)
		lay_out(bytes + FILE_OFF);
	memcpy(bytes, head, sizeof(head));
	put(bytes, FILE_OFF + n);
}

static void put_lines(void (*put)(const void *bytes, size_t size))
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c",
			"int g(int n)\n{\n\treturn n * 3;\n}\n\nint f(int n)\n{\n\treturn g(n) "
			"+\n\t\t1;\n}\n");
	for (size_t i = 0; i < sizeof(compiled) / sizeof(compiled[0]); i++)
		if (workspace_try(&w, "%s", compiled[i].command))
			put_compiled(&w, i, put);
	workspace_close(&w);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_seed(put, ET_REL, 0, ".eh_frame");
	put_seed(put, ET_EXEC, 0x400100, ".eh_frame");
	put_seed(put, ET_EXEC, 0, ".debug_frame");
	put_lines(put);
}
