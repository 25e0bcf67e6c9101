/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ELF files for tests, written in readable code
 *
 *	struct elf_builder *b = eb_new(ET_DYN);
 *	uint32_t text = eb_section(b, (struct eb_section){
 *		.name = ".text", .flags = SHF_ALLOC | SHF_EXECINSTR, .addr = 0x1000, EB_BYTES(code)});
 *	eb_load(b, text);
 *	eb_symbol(b, (struct eb_symbol){"main", text, 0x1000, sizeof(code), STT_FUNC, STB_GLOBAL});
 *	size_t size;
 *	uint8_t *bytes = eb_finish(b, &size);
 *	...
 *	eb_free(b);
 *
 * 64-bit little-endian x86-64. The file is: ELF header, program headers, sections in the order
 * they were added, then .symtab .strtab .shstrtab, then section headers. Nothing is checked, so
 * that wrong files can be written too; what eb_finish() gives may also be damaged by hand. Out of
 * memory aborts.
 */
#ifndef SAMPLES_ELF_BUILDER_H
#define SAMPLES_ELF_BUILDER_H

#include <elf.h>
#include <stddef.h>
#include <stdint.h>

struct elf_builder;

/* @type  ET_REL, ET_EXEC, ET_DYN */
struct elf_builder *eb_new(uint16_t type);
void eb_free(struct elf_builder *b);

enum eb_compression {
	EB_PLAIN,
	EB_ZLIB,   /* SHF_COMPRESSED, type 1 */
	EB_ZSTD,   /* SHF_COMPRESSED, type 2 */
	EB_ZDEBUG, /* the older form; give it a name that begins with .zdebug_ */
};

#define EB_BYTES(array) .data = (array), .size = sizeof(array)

struct eb_section {
	const char *name;
	uint32_t type; /* 0 means SHT_PROGBITS */
	uint64_t flags, addr;
	uint64_t align; /* 0 means 1 */
	const void *data;
	size_t size; /* of data; of SHT_NOBITS: in memory */
	enum eb_compression compression;
	uint32_t link, info;
	uint64_t entsize;
};

/* Adds a section (data is copied) and returns its index; the first is 1. */
uint32_t eb_section(struct elf_builder *b, struct eb_section section);

/* A PT_LOAD segment that is exactly one section. */
void eb_load(struct elf_builder *b, uint32_t section);

struct eb_symbol {
	const char *name;
	uint32_t section; /* index, or SHN_ABS, SHN_COMMON, 0 for undefined */
	uint64_t value, size;
	uint8_t type, binding; /* STT_*, STB_* */
};

/* Adds a symbol and returns its index; the first is 1. ELF wants local ones first. */
uint32_t eb_symbol(struct elf_builder *b, struct eb_symbol symbol);

/* Where the symbols go instead of .symtab: ".dynsym" makes it SHT_DYNSYM. */
void eb_symbols_in(struct elf_builder *b, const char *section);

/* Adds a relocation of section @target; type is R_X86_64_*. */
void eb_rela(struct elf_builder *b, uint32_t target, uint64_t off, uint32_t type, uint32_t symbol,
	     int64_t addend);

/* Sections with known content. */
uint32_t eb_build_id(struct elf_builder *b, const void *id, size_t n);
uint32_t eb_debug_link(struct elf_builder *b, const char *name, uint32_t crc);
uint32_t eb_alt_link(struct elf_builder *b, const char *name, const void *id, size_t n);

/* The file; owned by @b, may be changed by the caller. Call it once. */
uint8_t *eb_finish(struct elf_builder *b, size_t *ret_size);

/* After eb_finish(): write it to @path. */
void eb_write(const struct elf_builder *b, const char *path);

/* After eb_finish(): where section header @i and that section's bytes are, to damage them. */
Elf64_Shdr *eb_header(struct elf_builder *b, uint32_t i);
uint8_t *eb_data(struct elf_builder *b, uint32_t i);

#endif
