/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of the symbol files of JITs
 *
 * A file without relocations has the addresses of the process, even if it calls itself relocatable
 * (LuaJIT, PHP): it is opened as an executable, whose addresses are left alone. A file with
 * relocations (LLVM) is laid out and relocated like any other object file, so an address is looked
 * up by its distance from the begin of its section.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/symfile.h"
#include "dwarf/dwarf.h"
#include "elf/elf.h"

struct symfile_lines {
	uint8_t *bytes;
	struct cairn_binary *bin;
	struct dwarf *dw; /* NULL: there is nothing that could be read */
	bool is_laid_out;
};

/* Section headers: symfile_read() has checked their positions. */
static bool header_at(const struct symfile *s, uint64_t i, Elf64_Shdr *ret)
{
	Elf64_Ehdr eh;
	memcpy(&eh, s->bytes, sizeof(eh));
	if (i >= eh.e_shnum)
		return false;
	memcpy(ret, s->bytes + eh.e_shoff + i * sizeof(*ret), sizeof(*ret));
	return true;
}

static bool has_relocations(const struct symfile *s)
{
	Elf64_Shdr sh;
	for (uint64_t i = 0; header_at(s, i, &sh); i++)
		if (sh.sh_type == SHT_RELA || sh.sh_type == SHT_REL)
			return true;
	return false;
}

void symfile_lines_free(struct symfile_lines *lines)
{
	if (!lines)
		return;
	dwarf_close(lines->dw);
	cairn_binary_close(lines->bin);
	free(lines->bytes);
	free(lines);
}

static struct symfile_lines *open_lines(const struct symfile *s)
{
	struct symfile_lines *l = calloc(1, sizeof(*l));
	uint8_t *bytes = l ? malloc(s->size) : NULL;
	Elf64_Ehdr eh;
	if (!bytes) {
		free(l);
		return NULL;
	}
	memcpy(bytes, s->bytes, s->size);
	memcpy(&eh, bytes, sizeof(eh));
	l->bytes = bytes;
	l->is_laid_out = eh.e_type == ET_REL && has_relocations(s);
	if (!l->is_laid_out)
		eh.e_type = ET_EXEC;
	memcpy(bytes, &eh, sizeof(eh));
	if (binary_open_mem(bytes, s->size, "symbol file in memory", &l->bin, NULL) < 0) {
		l->bin = NULL;
		return l;
	}
	if (dwarf_open(l->bin, 1, &l->dw, NULL) < 0)
		l->dw = NULL;
	return l;
}

/*
 * Converts @at to the address in the library's layout of the section that holds it in the process;
 * false when the section is not known.
 */
static bool lay_out(const struct symfile *s, const struct symfile_lines *l, uint64_t *at)
{
	Elf64_Ehdr eh;
	Elf64_Shdr sh, names;
	const struct elf_section *section;
	memcpy(&eh, s->bytes, sizeof(eh));
	if (!l->is_laid_out)
		return true;
	for (uint64_t i = 0; header_at(s, i, &sh); i++) {
		if (!(sh.sh_flags & SHF_EXECINSTR) || *at < sh.sh_addr ||
		    *at - sh.sh_addr >= sh.sh_size)
			continue;
		/* A section is found by its name: so it has to be the only one of that. */
		if (!header_at(s, eh.e_shstrndx, &names) || names.sh_offset > s->size ||
		    sh.sh_name >= s->size - names.sh_offset)
			return false;
		const char *name = (const char *)s->bytes + names.sh_offset + sh.sh_name;
		if (!memchr(name, 0, s->size - names.sh_offset - sh.sh_name) ||
		    elf_section(binary_main(l->bin), name, &section, NULL) < 0 || !section ||
		    section->size != sh.sh_size)
			return false;
		*at += section->addr.v - sh.sh_addr;
		return true;
	}
	return false;
}

struct line_search {
	uint64_t at;
	struct dw_row last, found;
	bool has_last, is_found;
};

static int see_rows(void *ctx, const struct dw_row *rows, size_t n)
{
	struct line_search *s = ctx;
	for (size_t i = 0; i < n; i++) {
		bool holds = s->has_last && !s->last.end_sequence && s->last.at.v <= s->at &&
			     s->at < rows[i].at.v;
		if (holds) {
			s->found = s->last;
			s->is_found = true;
			return 1;
		}
		s->last = rows[i];
		s->has_last = true;
	}
	return 0;
}

uint32_t symfile_line(struct symfile *s, uint64_t at, const char **ret_file)
{
	struct line_search search = {.at = at};
	if (!s->lines)
		s->lines = open_lines(s);
	if (!s->lines || !s->lines->dw || !lay_out(s, s->lines, &search.at))
		return 0;
	for (size_t i = 0; i < dwarf_n_units(s->lines->dw); i++) {
		const struct dw_unit *u = dwarf_unit(s->lines->dw, i);
		search.has_last = false;
		dw_unit_visit_sequences(u, see_rows, &search, NULL);
		if (!search.is_found)
			continue;
		*ret_file = search.found.line ? dw_unit_file(u, search.found.file) : NULL;
		return search.found.line;
	}
	return 0;
}
