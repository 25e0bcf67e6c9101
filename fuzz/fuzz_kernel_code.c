/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of a kernel and of a module: jump labels, static calls, alternatives, ftrace. */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>

#include "elf/elf.h"
#include "elf_builder.h"
#include "insn/insn.h"

enum { TEXT_BYTES = 64 };

static int see(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard)
{
	unsigned int *n = ctx;
	assert(hazard && cairn_hazard_text(hazard));
	return ++*n < 10000 ? 0 : 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_err err;
	unsigned int n = 0;
	if (binary_open_mem(bytes, size, "input", &bin, &err) < 0)
		return 0;
	cairn_hazards(bin, see, &n, &err);
	for (size_t i = 0; i < elf_n_sections(binary_main(bin)) && i < 16; i++)
		cairn_hazard_at(bin, elf_section_at(binary_main(bin), i)->addr, false);
	cairn_binary_close(bin);
	return 0;
}

static const uint8_t code[TEXT_BYTES] = {0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x90,
					 0xe8, 0,    0,    0, 0, 0xcc};
static const uint8_t jump[16] = {0xf0, 0xff, 0xff, 0xff};
static const uint8_t call[8] = {0xf0, 0xff, 0xff, 0xff};
static const uint8_t number[8] = {0, 0, 0, 0x81, 0xff, 0xff, 0xff, 0xff};
static const uint8_t alternative[12] = {0xf0, 0xff, 0xff, 0xff, 0xf0, 0xff, 0xff, 0xff, 0, 0, 4, 3};

static const struct {
	const char *section, *start, *stop;
	const uint8_t *bytes;
	size_t n;
} tables[] = {
	{"__jump_table", "__start___jump_table", "__stop___jump_table", jump, sizeof(jump)},
	{".static_call_sites", "__start_static_call_sites", "__stop_static_call_sites", call,
	 sizeof(call)},
	{"_kprobe_blacklist", "__start_kprobe_blacklist", "__stop_kprobe_blacklist", number,
	 sizeof(number)},
	{"__mcount_loc", "__start_mcount_loc", "__stop_mcount_loc", number, sizeof(number)},
	{".altinstructions", "__alt_instructions", "__alt_instructions_end", alternative,
	 sizeof(alternative)},
};

static void put_kernel(uint16_t type, uint64_t base, void (*put)(const void *bytes, size_t size))
{
	struct elf_builder *b = eb_new(type);
	uint64_t at = base + TEXT_BYTES;
	size_t size;
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = base,
							  EB_BYTES(code)});
	eb_symbol(b, (struct eb_symbol){"f", text, base, 32, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"f.cold", text, base + 32, 8, STT_FUNC, STB_LOCAL});
	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++) {
		uint32_t s = eb_section(b, (struct eb_section){.name = tables[i].section,
							       .flags = SHF_ALLOC,
							       .addr = base ? at : 0,
							       .data = tables[i].bytes,
							       .size = tables[i].n});
		eb_symbol(b, (struct eb_symbol){tables[i].start, s, base ? at : 0, 0, STT_NOTYPE,
						STB_GLOBAL});
		at += tables[i].n;
		eb_symbol(b, (struct eb_symbol){tables[i].stop, s, base ? at : tables[i].n, 0,
						STT_NOTYPE, STB_GLOBAL});
	}
	eb_section(b, (struct eb_section){.name = ".modinfo", EB_BYTES(call)});
	const uint8_t *bytes = eb_finish(b, &size);
	put(bytes, size);
	eb_free(b);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_kernel(ET_EXEC, 0xffffffff81000000, put);
	put_kernel(ET_REL, 0, put);
}
