/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which compilers and languages the code of a file is of
 *
 * BTF does not record it. What decides where arguments are is found elsewhere in the file.
 */
#include <string.h>

#include "btfsites/btfsites.h"
#include "elf/elf.h"

/* Every string of .comment is a producer's; "GCC: (Debian 12.2.0-14) 12.2.0". */
static bool is_all_gcc(struct elf *e)
{
	const struct elf_section *comment;
	size_t n = 0;
	if (elf_section(e, ".comment", &comment, NULL) < 0 || !comment || !comment->data)
		return false;
	const char *text = (const char *)comment->data;
	for (size_t at = 0; at < comment->size; at += strnlen(text + at, comment->size - at) + 1) {
		size_t left = comment->size - at, len = strnlen(text + at, left);
		if (len && strncmp(text + at, "GCC: ", len < 5 ? len : 5))
			return false;
		n += len > 5;
	}
	return n;
}

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
	s->is_gcc = is_all_gcc(binary_main(s->sites.bin));
	s->is_foreign = is_foreign(s);
}
