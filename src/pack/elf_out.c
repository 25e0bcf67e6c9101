/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	OFFSET  SIZE         MEANING
 *	0       64           ELF header: 64-bit, little-endian, ET_DYN, EM_X86_64, no segments
 *	64      as they are  sections, each aligned to 8
 *	        ...          .shstrtab
 *	        64 each      section headers: the empty one, the sections, .shstrtab
 *
 * Every byte between is 0, so that equal content gives equal files.
 */
#include "pack/elf_out.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGNMENT = 8 };

struct layout {
	size_t names_off, names_size, headers_off, size;
};

static size_t aligned(size_t off)
{
	return (off + ALIGNMENT - 1) & ~(size_t)(ALIGNMENT - 1);
}

static size_t file_size(const struct out_section *s)
{
	return s->type == SHT_NOBITS ? 0 : s->size;
}

static struct layout lay_out(const struct out_section *sections, size_t n)
{
	struct layout l = {.names_off = sizeof(Elf64_Ehdr), .names_size = 1 + sizeof(".shstrtab")};
	for (size_t i = 0; i < n; i++) {
		l.names_off = aligned(l.names_off) + file_size(&sections[i]);
		l.names_size += strlen(sections[i].name) + 1;
	}
	l.headers_off = aligned(l.names_off + l.names_size);
	l.size = l.headers_off + (n + 2) * sizeof(Elf64_Shdr);
	return l;
}

static void put_elf_header(uint8_t *to, const struct layout *l, size_t n)
{
	Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = l->headers_off,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(n + 2),
		.e_shstrndx = (Elf64_Half)(n + 1),
	};
	memcpy(to, &h, sizeof(h));
}

/* Writes a header for @size bytes at @off, and its name at *@name. */
static void put_section_header(uint8_t *file, const struct layout *l, size_t i, const struct out_section *s,
			       size_t off, size_t *name)
{
	Elf64_Shdr h = {
		.sh_name = (Elf64_Word)*name,
		.sh_type = s->type,
		.sh_flags = s->flags,
		.sh_addr = s->addr,
		.sh_offset = off,
		.sh_size = s->size,
		.sh_addralign = s->type == SHT_STRTAB ? 1 : s->type == SHT_NOTE ? 4 : ALIGNMENT,
	};
	memcpy(file + l->headers_off + i * sizeof(h), &h, sizeof(h));
	size_t len = strlen(s->name) + 1;
	memcpy(file + l->names_off + *name, s->name, len);
	*name += len;
}

int elf_out_make(const struct out_section *sections, size_t n, uint8_t **ret, size_t *ret_size,
		 struct cairn_err *err)
{
	struct layout l = lay_out(sections, n);
	uint8_t *file = calloc(1, l.size);
	if (!file)
		return err_nomem(err, "a sidecar");
	put_elf_header(file, &l, n);
	size_t off = sizeof(Elf64_Ehdr), name = 1;
	for (size_t i = 0; i < n; i++) {
		off = aligned(off);
		put_section_header(file, &l, i + 1, &sections[i], off, &name);
		if (file_size(&sections[i]))
			memcpy(file + off, sections[i].bytes, sections[i].size);
		off += file_size(&sections[i]);
	}
	struct out_section names = {".shstrtab", SHT_STRTAB, NULL, l.names_size};
	put_section_header(file, &l, n + 1, &names, l.names_off, &name);
	*ret = file;
	*ret_size = l.size;
	return 0;
}
