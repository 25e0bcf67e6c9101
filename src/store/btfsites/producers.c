/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which compilers and languages the code of a file is of
 *
 * BTF does not record it. What decides where arguments are is found elsewhere in the file.
 */
#include <string.h>

#include "btf/btf.h"
#include "btfsites/btfsites.h"
#include "elf/elf.h"
#include "sites/convention.h"

static bool is_mangled(const char *name)
{
	return name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
}

/* A Go program has a table of its functions, also if it is stripped. */
static bool is_go(const struct elf *e)
{
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (strstr(elf_section_at(e, i)->name, ".gopclntab"))
			return true;
	return false;
}

/* For a blob's own FUNCs. A kernel in C has no colon in any string. */
static bool has_foreign_func(const struct cairn_btf *btf)
{
	bool has_colons = false;
	for (const struct cairn_btf *b = btf; b && !has_colons; b = b->base)
		has_colons = b->strings_size && memchr(b->strings, ':', b->strings_size);
	for (uint32_t id = btf->start_id; id < btf->end_id; id++) {
		const uint32_t *p = btf_record(btf, id);
		if (BTF_KIND_OF(p[BTF_RECORD_INFO]) != CAIRN_BTF_FUNC)
			continue;
		const char *name = cairn_btf_string(btf, p[BTF_RECORD_NAME]);
		if (name && (is_mangled(name) || (has_colons && strchr(name, ':'))))
			return true;
	}
	return false;
}

/* Some FUNC has a linker's name, or a name with scopes, or the file has Go's tables. */
static bool is_foreign(const struct btf_sites *s)
{
	if (is_go(binary_main(s->sites.bin)))
		return true;
	return has_foreign_func(s->main) || has_foreign_func(s->inlined);
}

void btfsites_see_producers(struct btf_sites *s)
{
	if (s->has_producers)
		return;
	s->has_producers = true;
	s->is_gcc = convention_is_all_gcc(binary_main(s->sites.bin));
	s->is_foreign = is_foreign(s);
}
