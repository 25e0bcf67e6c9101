/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which compilers and languages the code of a file is of
 *
 * BTF does not record it. What decides where arguments are is found elsewhere in the file.
 */
#include <string.h>

#include "btfsites/btfsites.h"
#include "elf/elf.h"
#include "sites/convention.h"

static bool is_mangled(const char *name)
{
	return !strncmp(name, "_Z", 2) || !strncmp(name, "_R", 2);
}

/* A Go program has a table of its functions, also if it is stripped. */
static bool is_go(const struct elf *e)
{
	for (size_t i = 0; i < elf_n_sections(e); i++)
		if (strstr(elf_section_at(e, i)->name, ".gopclntab"))
			return true;
	return false;
}

/* Some FUNC has a linker's name, or a name with scopes, or the file has Go's tables. */
static bool is_foreign(const struct btf_sites *s)
{
	struct cairn_btf_type t;
	if (is_go(binary_main(s->sites.bin)))
		return true;
	for (uint32_t id = cairn_btf_start_id(s->main); cairn_btf_type(s->inlined, id, &t); id++)
		if (t.kind == CAIRN_BTF_FUNC && (is_mangled(t.name) || strchr(t.name, ':')))
			return true;
	return false;
}

void btfsites_see_producers(struct btf_sites *s)
{
	if (s->has_producers)
		return;
	s->has_producers = true;
	s->is_gcc = convention_is_all_gcc(binary_main(s->sites.bin));
	s->is_foreign = is_foreign(s);
}
