/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_builder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

struct bytes {
	uint8_t *p;
	size_t n;
};

struct section {
	Elf64_Shdr header;
	struct bytes data;
};

struct elf_builder {
	uint16_t type;
	struct section *sections;
	size_t n_sections;
	Elf64_Phdr *loads; /* p_offset holds the section's index until eb_finish() */
	size_t n_loads;
	struct bytes symbols, strings, section_names, file;
	const char *symbol_section;
	size_t headers_off;
};

static void *grow(void *p, size_t size)
{
	p = realloc(p, size ? size : 1);
	if (!p)
		abort();
	return p;
}

/* Appends and returns the offset at which @data is now. */
static size_t append(struct bytes *b, const void *data, size_t n)
{
	size_t off = b->n;
	b->p = grow(b->p, b->n + n);
	if (n)
		memcpy(b->p + b->n, data, n);
	b->n += n;
	return off;
}

static void pad(struct bytes *b, size_t align)
{
	while (b->n % align)
		append(b, "", 1);
}

static size_t append_str(struct bytes *b, const char *s)
{
	if (!b->n)
		append(b, "", 1);
	return *s ? append(b, s, strlen(s) + 1) : 0;
}

struct elf_builder *eb_new(uint16_t type)
{
	struct elf_builder *b = grow(NULL, sizeof(*b));
	*b = (struct elf_builder){.type = type, .symbol_section = ".symtab"};
	b->sections = grow(NULL, sizeof(*b->sections));
	b->sections[b->n_sections++] = (struct section){0};
	return b;
}

void eb_free(struct elf_builder *b)
{
	for (size_t i = 0; i < b->n_sections; i++)
		free(b->sections[i].data.p);
	free(b->sections);
	free(b->loads);
	free(b->symbols.p);
	free(b->strings.p);
	free(b->section_names.p);
	free(b->file.p);
	free(b);
}

static void append_zlib(struct bytes *b, const void *data, size_t size)
{
	uLongf n = compressBound(size);
	uint8_t *out = grow(NULL, n);
	if (compress(out, &n, data, size) != Z_OK)
		abort();
	append(b, out, n);
	free(out);
}

static void append_zstd(struct bytes *b, const void *data, size_t size)
{
	size_t bound = ZSTD_compressBound(size);
	uint8_t *out = grow(NULL, bound);
	size_t n = ZSTD_compress(out, bound, data, size, 3);
	if (ZSTD_isError(n))
		abort();
	append(b, out, n);
	free(out);
}

static void append_data(struct bytes *b, const struct eb_section *s)
{
	Elf64_Chdr chdr = {.ch_size = s->size, .ch_addralign = s->align ? s->align : 1};
	uint8_t size_be[8];
	switch (s->compression) {
	case EB_PLAIN:
		append(b, s->data, s->size);
		break;
	case EB_ZLIB:
		chdr.ch_type = 1;
		append(b, &chdr, sizeof(chdr));
		append_zlib(b, s->data, s->size);
		break;
	case EB_ZSTD:
		chdr.ch_type = 2;
		append(b, &chdr, sizeof(chdr));
		append_zstd(b, s->data, s->size);
		break;
	case EB_ZDEBUG:
		for (int i = 0; i < 8; i++)
			size_be[i] = (uint64_t)s->size >> (56 - 8 * i);
		append(b, "ZLIB", 4);
		append(b, size_be, sizeof(size_be));
		append_zlib(b, s->data, s->size);
		break;
	}
}

uint32_t eb_section(struct elf_builder *b, struct eb_section s)
{
	b->sections = grow(b->sections, (b->n_sections + 1) * sizeof(*b->sections));
	struct section *to = &b->sections[b->n_sections];
	*to = (struct section){.header = {.sh_name = append_str(&b->section_names, s.name),
					  .sh_type = s.type ? s.type : SHT_PROGBITS,
					  .sh_flags = s.flags,
					  .sh_addr = s.addr,
					  .sh_size = s.size,
					  .sh_link = s.link,
					  .sh_info = s.info,
					  .sh_addralign = s.align ? s.align : 1,
					  .sh_entsize = s.entsize}};
	if (s.compression == EB_ZLIB || s.compression == EB_ZSTD)
		to->header.sh_flags |= SHF_COMPRESSED;
	if (to->header.sh_type != SHT_NOBITS)
		append_data(&to->data, &s);
	return b->n_sections++;
}

void eb_load(struct elf_builder *b, uint32_t section)
{
	const Elf64_Shdr *sh = &b->sections[section].header;
	b->loads = grow(b->loads, (b->n_loads + 1) * sizeof(*b->loads));
	b->loads[b->n_loads++] =
		(Elf64_Phdr){.p_type = PT_LOAD,
			     .p_flags = PF_R | (sh->sh_flags & SHF_EXECINSTR ? PF_X : 0),
			     .p_offset = section,
			     .p_vaddr = sh->sh_addr,
			     .p_paddr = sh->sh_addr,
			     .p_filesz = sh->sh_type == SHT_NOBITS ? 0 : sh->sh_size,
			     .p_memsz = sh->sh_size,
			     .p_align = 1};
}

uint32_t eb_symbol(struct elf_builder *b, struct eb_symbol s)
{
	Elf64_Sym none = {0};
	if (!b->symbols.n)
		append(&b->symbols, &none, sizeof(none));
	Elf64_Sym sym = {.st_name = append_str(&b->strings, s.name),
			 .st_info = ELF64_ST_INFO(s.binding, s.type),
			 .st_shndx = s.section,
			 .st_value = s.value,
			 .st_size = s.size};
	return append(&b->symbols, &sym, sizeof(sym)) / sizeof(sym);
}

void eb_symbols_in(struct elf_builder *b, const char *section)
{
	b->symbol_section = section;
}

void eb_rela(struct elf_builder *b, uint32_t target, uint64_t off, uint32_t type, uint32_t symbol,
	     int64_t addend)
{
	Elf64_Rela rela = {.r_offset = off,
			   .r_info = ELF64_R_INFO((uint64_t)symbol, type),
			   .r_addend = addend};
	uint32_t i;
	for (i = 1; i < b->n_sections; i++)
		if (b->sections[i].header.sh_type == SHT_RELA &&
		    b->sections[i].header.sh_info == target)
			break;
	if (i == b->n_sections)
		eb_section(b, (struct eb_section){.name = ".rela",
						  .type = SHT_RELA,
						  .flags = SHF_INFO_LINK,
						  .info = target,
						  .align = 8,
						  .entsize = sizeof(rela)});
	append(&b->sections[i].data, &rela, sizeof(rela));
	b->sections[i].header.sh_size = b->sections[i].data.n;
}

uint32_t eb_build_id(struct elf_builder *b, const void *id, size_t n)
{
	struct bytes note = {0};
	Elf64_Nhdr header = {.n_namesz = 4, .n_descsz = n, .n_type = NT_GNU_BUILD_ID};
	append(&note, &header, sizeof(header));
	append(&note, "GNU", 4);
	append(&note, id, n);
	pad(&note, 4);
	uint32_t i = eb_section(b, (struct eb_section){.name = ".note.gnu.build-id",
						       .type = SHT_NOTE,
						       .align = 4,
						       .data = note.p,
						       .size = note.n});
	free(note.p);
	return i;
}

uint32_t eb_debug_link(struct elf_builder *b, const char *name, uint32_t crc)
{
	struct bytes link = {0};
	append(&link, name, strlen(name) + 1);
	pad(&link, 4);
	append(&link, &crc, sizeof(crc));
	uint32_t i = eb_section(
		b, (struct eb_section){
			   .name = ".gnu_debuglink", .align = 4, .data = link.p, .size = link.n});
	free(link.p);
	return i;
}

uint32_t eb_alt_link(struct elf_builder *b, const char *name, const void *id, size_t n)
{
	struct bytes link = {0};
	append(&link, name, strlen(name) + 1);
	append(&link, id, n);
	uint32_t i = eb_section(
		b,
		(struct eb_section){.name = ".gnu_debugaltlink", .data = link.p, .size = link.n});
	free(link.p);
	return i;
}

/* .symtab and .strtab, and the symbol table's index in every relocation section. */
static void add_symbols(struct elf_builder *b)
{
	if (!b->symbols.n)
		return;
	const Elf64_Sym *symbols = (const Elf64_Sym *)b->symbols.p;
	uint32_t n = b->symbols.n / sizeof(*symbols), first_global = 0;
	while (first_global < n && ELF64_ST_BIND(symbols[first_global].st_info) == STB_LOCAL)
		first_global++;
	uint32_t symtab = b->n_sections;
	eb_section(b, (struct eb_section){.name = b->symbol_section,
					  .type = strcmp(b->symbol_section, ".dynsym") ? SHT_SYMTAB
										       : SHT_DYNSYM,
					  .align = 8,
					  .data = b->symbols.p,
					  .size = b->symbols.n,
					  .link = symtab + 1,
					  .info = first_global,
					  .entsize = sizeof(Elf64_Sym)});
	eb_section(b, (struct eb_section){.name = ".strtab",
					  .type = SHT_STRTAB,
					  .data = b->strings.p,
					  .size = b->strings.n});
	for (uint32_t i = 1; i < symtab; i++)
		if (b->sections[i].header.sh_type == SHT_RELA && !b->sections[i].header.sh_link)
			b->sections[i].header.sh_link = symtab;
}

static void add_section_names(struct elf_builder *b)
{
	uint32_t i = eb_section(b, (struct eb_section){.name = ".shstrtab", .type = SHT_STRTAB});
	append(&b->sections[i].data, b->section_names.p, b->section_names.n);
	b->sections[i].header.sh_size = b->sections[i].data.n;
}

static void place_sections(struct elf_builder *b)
{
	for (size_t i = 1; i < b->n_sections; i++) {
		struct section *s = &b->sections[i];
		pad(&b->file, s->header.sh_addralign);
		s->header.sh_offset = append(&b->file, s->data.p, s->data.n);
		if (s->header.sh_type != SHT_NOBITS)
			s->header.sh_size = s->data.n;
	}
}

uint8_t *eb_finish(struct elf_builder *b, size_t *ret_size)
{
	Elf64_Ehdr eh = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = b->type,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phoff = b->n_loads ? sizeof(Elf64_Ehdr) : 0,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = b->n_loads,
			 .e_shentsize = sizeof(Elf64_Shdr)};
	add_symbols(b);
	add_section_names(b);
	append(&b->file, &eh, sizeof(eh));
	append(&b->file, b->loads, b->n_loads * sizeof(*b->loads));
	place_sections(b);
	pad(&b->file, 8);
	b->headers_off = b->file.n;
	for (size_t i = 0; i < b->n_sections; i++)
		append(&b->file, &b->sections[i].header, sizeof(Elf64_Shdr));
	eh.e_shoff = b->headers_off;
	eh.e_shnum = b->n_sections;
	eh.e_shstrndx = b->n_sections - 1;
	memcpy(b->file.p, &eh, sizeof(eh));
	for (size_t i = 0; i < b->n_loads; i++) {
		b->loads[i].p_offset = b->sections[b->loads[i].p_offset].header.sh_offset;
		memcpy(b->file.p + sizeof(eh) + i * sizeof(Elf64_Phdr), &b->loads[i],
		       sizeof(Elf64_Phdr));
	}
	*ret_size = b->file.n;
	return b->file.p;
}

void eb_write(const struct elf_builder *b, const char *path)
{
	FILE *f = fopen(path, "wbe");
	if (!f || fwrite(b->file.p, 1, b->file.n, f) != b->file.n || fclose(f)) {
		perror(path);
		abort();
	}
}

Elf64_Shdr *eb_header(struct elf_builder *b, uint32_t i)
{
	return (Elf64_Shdr *)(b->file.p + b->headers_off) + i;
}

uint8_t *eb_data(struct elf_builder *b, uint32_t i)
{
	return b->file.p + b->sections[i].header.sh_offset;
}
