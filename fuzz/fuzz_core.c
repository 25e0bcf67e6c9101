/* SPDX-License-Identifier: BSD-2-Clause */
/* Core files: headers, notes, mappings, memory. No file that a core names is opened. */
#include "fuzz.h"

#include <assert.h>
#include <signal.h>

#include "code/core.h"
#include "core_builder.h"

static void read_everywhere(const struct core *core)
{
	uint8_t got[256];
	for (size_t i = 0; i < core->segments.n; i++) {
		const struct core_segment *s = &core->segments.p[i];
		core_read(core, s->lo, got, sizeof(got));
		core_read(core, s->dumped - 8, got, 16);
	}
	for (size_t i = 0; i < core->threads.n; i++)
		core_read(core, core->threads.p[i].user[19], got, 8);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_err err = {0};
	struct core_search search = {.sysroot = "/nowhere"};
	struct code_space *space;
	struct core *core;
	int rc = core_open_mem(bytes, size, "input", &core, &err);
	assert(rc == 0 || err.code == rc);
	if (rc < 0)
		return 0;
	read_everywhere(core);
	search.core = core;
	if (code_space_open_core(&search, &space, &err) == 0) {
		const struct code_maps *maps = code_space_maps(space);
		for (size_t i = 0; i < maps->p.n && i < 64; i++) {
			const struct code_image *image;
			struct cairn_vaddr at;
			code_space_find(space, (struct cairn_addr){maps->p.p[i].lo}, &image, &at,
					&err);
		}
		code_space_free(space);
	}
	core_close(core);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint64_t regs[27] = {[16] = 0x401000, [19] = 0x7000};
	static const struct {
		Elf64_Ehdr eh;
		Elf64_Phdr ph;
		Elf64_Nhdr head;
		char note[12];
	} page = {
		{.e_ident = {0x7f, 'E', 'L', 'F'}, .e_phoff = 64, .e_phentsize = 56, .e_phnum = 1},
		{.p_type = PT_NOTE, .p_offset = 120, .p_filesz = 24, .p_align = 4},
		{4, 8, NT_GNU_BUILD_ID},
		"GNU\0id"};
	struct core_builder b = {0};
	cb_thread(&b, 1, SIGSEGV, regs);
	cb_psinfo(&b, 1, "a");
	cb_siginfo(&b, SIGSEGV, 1, 0x10);
	cb_auxv(&b, 0x9000);
	cb_thread(&b, 2, 0, regs);
	cb_file(&b, 0x400000, 0x402000, 0, "/bin/a");
	cb_memory(&b, (struct cb_segment){0x400000, 0x2000, PF_R | PF_X, &page, sizeof(page)});
	cb_memory(&b, (struct cb_segment){0x7000, 64, PF_R | PF_W, regs, 64});
	cb_memory(&b, (struct cb_segment){0x9000, 64, PF_R | PF_X, &page, 64});
	cb_finish(&b);
	put(b.bytes, b.n);
	cb_free(&b);
}
