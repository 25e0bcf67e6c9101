/* SPDX-License-Identifier: BSD-2-Clause */
/* ELF: headers, compressed and relocated sections, symbols, both directions of addresses. */
#include "fuzz.h"

#include <string.h>

#include "elf/bindings.h"
#include "elf/elf.h"
#include "elf/imports.h"
#include "elf/versions.h"
#include "elf_builder.h"

/* Reads every byte, so that a sanitizer sees a section that leaves its buffer. */
static void touch(const uint8_t *data, uint64_t size)
{
	__attribute__((unused)) static volatile uint8_t sink;
	for (uint64_t i = 0; data && i < size; i++)
		sink ^= data[i];
}

static void read_sections(struct elf *e)
{
	struct cairn_err err;
	const struct elf_section *s;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *plain = elf_section_at(e, i);
		touch(plain->data, plain->size);
		touch((const uint8_t *)plain->name, strlen(plain->name));
		if (elf_section_bytes(e, i, &s, &err) == 0)
			touch(s->data, s->size);
	}
	elf_section(e, ".debug_info", &s, &err);
}

static void look_up(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	const char *name;
	const uint8_t *code;
	uint64_t off;
	size_t len;
	struct cairn_vaddr start;
	struct cairn_foff foff;
	if (cairn_binary_foff(bin, at, &foff))
		cairn_binary_vaddr(bin, foff, &start);
	if (elf_code_at(binary_main(bin), at, &code, &len))
		touch(code, len);
	if (cairn_binary_section_of(bin, at, &name, &off))
		touch((const uint8_t *)name, strlen(name));
	if (cairn_binary_symbol_of(bin, at, &name, &start))
		touch((const uint8_t *)name, strlen(name));
}

static int touch_stub(void *ctx, const char *name, struct cairn_vaddr at)
{
	touch((const uint8_t *)name, strlen(name));
	return 0;
}

static int touch_version(void *ctx, struct cairn_vaddr at)
{
	return at.v == UINT64_MAX;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_err err;
	const struct elf_symbol *symbols;
	struct cairn_vaddr slot;
	size_t n;
	if (binary_open_mem(bytes, size, "input", &bin, &err) < 0)
		return 0;
	read_sections(binary_main(bin));
	const uint8_t *id = cairn_binary_build_id(bin, &n);
	touch(id, n);
	look_up(bin, (struct cairn_vaddr){0});
	elf_visit_stubs(binary_main(bin), touch_stub, NULL, &err);
	elf_visit_version(binary_main(bin), "x", "V", touch_version, NULL, &err);
	elf_visit_version(binary_main(bin), "x", NULL, touch_version, NULL, &err);
	elf_binding_of(binary_main(bin), (struct cairn_vaddr){0x1000}, "x", &slot, &err);
	if (elf_symbols(binary_main(bin), &symbols, &n, &err) == 0)
		for (size_t i = 0; i < n && i < 1000; i++)
			look_up(bin, symbols[i].at);
	cairn_binary_close(bin);
	return 0;
}

static const uint8_t code[48] = {0x55, 0x48, 0x89, 0xe5, 0xc3};
static const char text[400] = "text that repeats, text that repeats, text that repeats";

static void put_built(struct elf_builder *b, void (*put)(const void *bytes, size_t size))
{
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	put(bytes, size);
	eb_free(b);
}

static void put_executable(void (*put)(const void *bytes, size_t size))
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t at = eb_section(b, (struct eb_section){.name = ".text",
							.flags = SHF_ALLOC | SHF_EXECINSTR,
							.addr = 0x1000,
							EB_BYTES(code)});
	eb_load(b, at);
	eb_symbol(b, (struct eb_symbol){"inner", at, 0x1008, 8, STT_FUNC, STB_LOCAL});
	eb_symbol(b, (struct eb_symbol){"outer@@V1", at, 0x1000, 32, STT_FUNC, STB_GLOBAL});
	eb_build_id(b, "0123456789", 10);
	eb_section(b, (struct eb_section){
			      .name = ".debug_info", .compression = EB_ZLIB, EB_BYTES(text)});
	eb_section(b, (struct eb_section){
			      .name = ".debug_str", .compression = EB_ZSTD, EB_BYTES(text)});
	eb_section(b, (struct eb_section){
			      .name = ".zdebug_line", .compression = EB_ZDEBUG, EB_BYTES(text)});
	put_built(b, put);
}

/* jmp *slot(%rip), where a relocation of the dynamic linker is of that slot. */
static void put_stubs(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t stubs[] = {0xff, 0x25, 0xfa, 0x0f, 0x00, 0x00, 0x66, 0x90,
					0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xf9,
					0x0f, 0x00, 0x00, 0x90, 0x90, 0x90, 0x90, 0x90};
	static const Elf64_Rela relocations[] = {
		{.r_offset = 0x2000, .r_info = ELF64_R_INFO(1, R_X86_64_JUMP_SLOT)},
		{.r_offset = 0x2010, .r_info = ELF64_R_INFO(2, R_X86_64_GLOB_DAT)},
	};
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t at = eb_section(b, (struct eb_section){.name = ".plt",
							.flags = SHF_ALLOC | SHF_EXECINSTR,
							.addr = 0x1000,
							EB_BYTES(stubs)});
	eb_load(b, at);
	eb_section(b, (struct eb_section){.name = ".rela.plt",
					  .type = SHT_RELA,
					  .flags = SHF_ALLOC,
					  EB_BYTES(relocations)});
	eb_symbols_in(b, ".dynsym");
	eb_symbol(b, (struct eb_symbol){"malloc", 0, 0, 0, STT_FUNC, STB_GLOBAL});
	eb_symbol(b, (struct eb_symbol){"free", 0, 0, 0, STT_FUNC, STB_GLOBAL});
	put_built(b, put);
}

static void put_relocatable(void (*put)(const void *bytes, size_t size))
{
	struct elf_builder *b = eb_new(ET_REL);
	uint32_t at = eb_section(b, (struct eb_section){.name = ".text",
							.flags = SHF_ALLOC | SHF_EXECINSTR,
							.align = 16,
							EB_BYTES(code)});
	uint32_t bss = eb_section(b, (struct eb_section){.name = ".bss",
							 .type = SHT_NOBITS,
							 .flags = SHF_ALLOC | SHF_WRITE,
							 .align = 32,
							 .size = 64});
	uint32_t info = eb_section(b, (struct eb_section){.name = ".debug_info", EB_BYTES(text)});
	uint32_t f = eb_symbol(b, (struct eb_symbol){"f", at, 8, 8, STT_FUNC, STB_LOCAL});
	uint32_t v = eb_symbol(b, (struct eb_symbol){"v", bss, 8, 8, STT_OBJECT, STB_GLOBAL});
	eb_rela(b, info, 0, R_X86_64_64, f, 4);
	eb_rela(b, info, 8, R_X86_64_32, v, 0);
	eb_rela(b, info, 12, R_X86_64_PC32, v, -4);
	put_built(b, put);
}

/* It claims to be a sidecar, and the section that says so has no bytes. */
static void put_empty_sidecar(void (*put)(const void *bytes, size_t size))
{
	struct elf_builder *b = eb_new(ET_DYN);
	eb_section(b, (struct eb_section){.name = ".cairn", .type = SHT_NOBITS, .size = 64});
	put_built(b, put);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_executable(put);
	put_stubs(put);
	put_relocatable(put);
	put_empty_sidecar(put);
}
