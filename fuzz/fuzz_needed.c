/* SPDX-License-Identifier: BSD-2-Clause */
/* A program's first bytes, which name its loader or interpreter, and what a loader prints. */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "launch/needed.h"
#include "launch/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct needed n = {0};
	struct script_line line;
	char loader[64];
	if (needed_loader(bytes, size, loader, sizeof(loader)))
		assert(loader[0] == '/' && memchr(loader, 0, sizeof(loader)));
	assert(needed_parse((const char *)bytes, size, &n) == 0);
	for (size_t i = 0; i < n.paths.n; i++)
		assert(n.paths.p[i][0] == '/');
	needed_free(&n);
	if (script_parse((const char *)bytes, size, &line))
		assert(line.interpreter[0] && strlen(line.interpreter) < SCRIPT_LINE_MAX &&
		       strlen(line.argument) < SCRIPT_LINE_MAX);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char glibc[] = "\tlinux-vdso.so.1 (0x00007ffd0a1f2000)\n"
				    "\tlibc.so.6 => /lib/libc.so.6 (0x00007f1b3a000000)\n"
				    "\t/lib64/ld-linux-x86-64.so.2 (0x00007f1b3a3f2000)\n";
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr segment;
		char path[28];
	} program = {
		.head = {.e_phoff = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
		.segment = {.p_type = PT_INTERP,
			    .p_offset = sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr),
			    .p_filesz = 28},
		.path = "/lib64/ld-linux-x86-64.so.2",
	};
	memcpy(program.head.e_ident, ELFMAG, SELFMAG);
	program.head.e_ident[EI_CLASS] = ELFCLASS64;
	program.head.e_ident[EI_DATA] = ELFDATA2LSB;
	put(glibc, strlen(glibc));
	put(&program, sizeof(program));
}
