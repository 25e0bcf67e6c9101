/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A number for the names that a file has
 *
 * A tool that renames symbols or edits strings leaves build-id, code and sizes as they were. So the
 * number is made of the headers and the bytes of symbol and debug sections: all of the strings, all
 * of small sections, and samples of large ones. A kernel's 400 MB would take as long to read as its
 * question to answer; its strings have 6 MB, which take 1 ms.
 *
 * Names in other files are told by what binds these files. A .dwo or .dwp belongs to a unit by an
 * id that compilers make of all that it describes, and skeletons of units are small: all of their
 * bytes are read. A file of shared debug information is named with its build-id.
 */
#include <elf.h>
#include <libdeflate.h>
#include <string.h>

#include "elf/elf_impl.h"

enum {
	WHOLE_MAX = 1 << 16,
	/* of some 10,000 skeletons; 0.2 ms */
	INFO_WHOLE_MAX = 1 << 20,
	N_SAMPLES = 16,
	SAMPLE = 512,
};

/* strip leaves it in files that have no names. */
static bool is_link(const struct section *s)
{
	return !strcmp(s->file.name, ".gnu_debugaltlink");
}

static bool has_names(const struct section *s)
{
	const char *name = s->file.name;
	if (s->file.flags & SHF_ALLOC || s->file.type == SHT_NOBITS)
		return false;
	return s->file.type == SHT_SYMTAB || !strcmp(name, ".strtab") || is_link(s) ||
	       !strncmp(name, ".debug_", 7) || !strncmp(name, ".zdebug_", 8);
}

static bool is_strings(const char *name)
{
	return !strcmp(name, ".strtab") || !strcmp(name, ".debug_str") ||
	       !strcmp(name, ".debug_line_str");
}

static bool is_read_whole(const struct section *s, uint64_t n)
{
	if (!strcmp(s->file.name, ".debug_info"))
		return n <= INFO_WHOLE_MAX;
	return n <= WHOLE_MAX || is_strings(s->file.name);
}

static uint32_t add_bytes(uint32_t crc, const struct section *s, const uint8_t *p, uint64_t n)
{
	if (is_read_whole(s, n))
		return libdeflate_crc32(crc, p, n);
	uint64_t step = (n - SAMPLE) / (N_SAMPLES - 1);
	for (unsigned int i = 0; i < N_SAMPLES; i++)
		crc = libdeflate_crc32(crc, p + i * step, SAMPLE);
	return crc;
}

uint32_t elf_names_print(const struct elf *e)
{
	uint32_t crc = 0;
	bool any = false;
	for (size_t i = 0; i < e->n_sections; i++) {
		const struct section *s = &e->sections[i];
		uint64_t at = s->file.foff.v, n = s->file_size;
		if (!has_names(s) || at > e->size || n > e->size - at)
			continue;
		crc = libdeflate_crc32(crc, s->file.name, strlen(s->file.name) + 1);
		crc = libdeflate_crc32(crc, &n, sizeof(n));
		crc = add_bytes(crc, s, e->bytes + at, n);
		any |= !is_link(s);
	}
	/* 0 says that there are none. */
	if (!any)
		return 0;
	return crc ? crc : 1;
}
