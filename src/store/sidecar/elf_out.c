/* SPDX-License-Identifier: BSD-2-Clause */
/*
 *	OFFSET  SIZE         MEANING
 *	0       64           ELF header: 64-bit, little-endian, ET_DYN, EM_X86_64, no segments
 *	64      24 + 4 x n   .cairn.seal: checksums of the rest (elf/guard.h)
 *	        as they are  sections, each aligned to 8
 *	        ...          .shstrtab
 *	        64 each      section headers: the empty one, .cairn.seal, the sections, .shstrtab
 *
 * Every byte between is 0, so that equal content gives equal files.
 */
#include "sidecar/elf_out.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/guard.h"

enum { ALIGNMENT = 8 };

struct layout {
	size_t seal_size, names_off, names_size, headers_off, size;
};

/* Before the sections of the caller: none, and the seal. */
enum { OWN_FIRST = 2 };

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
	/* Counted from the end of the seal, whose size depends on the sections after it. */
	struct layout l = {.names_size = 1 + sizeof(".shstrtab") + sizeof(GUARD_SECTION)};
	for (size_t i = 0; i < n; i++) {
		l.names_off = aligned(l.names_off) + file_size(&sections[i]);
		l.names_size += strlen(sections[i].name) + 1;
	}
	l.headers_off = aligned(l.names_off + l.names_size);
	l.size = l.headers_off + (n + OWN_FIRST + 1) * sizeof(Elf64_Shdr);
	l.seal_size = guard_section_size(l.size);
	size_t head = sizeof(Elf64_Ehdr) + l.seal_size;
	l.names_off += head;
	l.headers_off += head;
	l.size += head;
	return l;
}

static void put_elf_header(uint8_t *to, const struct layout *l, size_t n)
{
	Elf64_Ehdr h = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			    EV_CURRENT},
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = l->headers_off,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(n + OWN_FIRST + 1),
		.e_shstrndx = (Elf64_Half)(n + OWN_FIRST),
	};
	memcpy(to, &h, sizeof(h));
}

/* Writes a header for @size bytes at @off, and its name at *@name. */
static void put_section_header(uint8_t *file, const struct layout *l, size_t i,
			       const struct out_section *s, size_t off, size_t *name)
{
	Elf64_Shdr h = {
		.sh_name = (Elf64_Word)*name,
		.sh_type = s->type,
		.sh_flags = s->flags,
		.sh_addr = s->addr,
		.sh_offset = off,
		.sh_size = s->size,
		.sh_addralign = s->type == SHT_STRTAB ? 1
				: s->type == SHT_NOTE ? 4
						      : ALIGNMENT,
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
	struct out_section seal = {GUARD_SECTION, SHT_PROGBITS, NULL, l.seal_size};
	size_t off = GUARD_AT + l.seal_size, name = 1;
	put_section_header(file, &l, 1, &seal, GUARD_AT, &name);
	for (size_t i = 0; i < n; i++) {
		off = aligned(off);
		put_section_header(file, &l, i + OWN_FIRST, &sections[i], off, &name);
		if (file_size(&sections[i]))
			memcpy(file + off, sections[i].bytes, sections[i].size);
		off += file_size(&sections[i]);
	}
	struct out_section names = {".shstrtab", SHT_STRTAB, NULL, l.names_size};
	put_section_header(file, &l, n + OWN_FIRST, &names, l.names_off, &name);
	guard_seal(file, l.size);
	*ret = file;
	*ret_size = l.size;
	return 0;
}
