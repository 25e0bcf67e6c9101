/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/section_raw.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "elf/guard.h"

bool section_is(const struct elf *e, uint32_t i, uint32_t type)
{
	return i < e->n_sections && e->sections[i].file.type == type;
}

uint32_t section_of_type(const struct elf *e, uint32_t type)
{
	for (size_t i = 0; i < e->n_sections; i++)
		if (e->sections[i].file.type == type)
			return i;
	return NO_SECTION;
}

bool section_has_bytes(const struct section *s)
{
	return s->file.type != SHT_NOBITS && s->file.type != SHT_NULL && s->file_size;
}

int section_raw(const struct elf *e, size_t i, const uint8_t **ret, struct cairn_err *err)
{
	const struct section *s = &e->sections[i];
	*ret = NULL;
	if (!section_has_bytes(s))
		return 0;
	uint64_t off = s->file.foff.v;
	if (off > e->size || s->file_size > e->size - off)
		return err_set(err, -EBADMSG,
			       "%s: %s (section %zu): offset 0x%" PRIx64 ", 0x%" PRIx64
			       " bytes: ends after the end of the file, 0x%zx",
			       e->path, s->file.name ? s->file.name : "section names", i, off,
			       s->file_size, e->size);
	if (e->guard && !guard_check(e->guard, e->bytes + off, s->file_size))
		return guard_verdict(e->guard, e->path, err);
	*ret = e->bytes + off;
	return 0;
}

size_t elf_n_sections(const struct elf *e)
{
	return e->n_sections;
}

const struct elf_section *elf_section_at(const struct elf *e, size_t i)
{
	return &e->sections[i].file;
}

uint64_t elf_lowest_address(const struct elf *e)
{
	uint64_t lowest = UINT64_MAX;
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (!(s->flags & SHF_ALLOC) || !strcmp(s->name, ".data..percpu"))
			continue;
		if (s->addr.v < lowest)
			lowest = s->addr.v;
	}
	return lowest == UINT64_MAX ? 0 : lowest;
}
