/* SPDX-License-Identifier: BSD-2-Clause */
/* A symbol that a user took for a function. */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf.h"

static const struct elf_symbol *find(struct elf *e, const char *name)
{
	const struct elf_symbol *p;
	size_t n;
	if (elf_symbols(e, &p, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++)
		if (!strcmp(p[i].name, name))
			return &p[i];
	return NULL;
}

static const char *kind_of(const struct elf_symbol *s, bool is_code)
{
	if (s->type == STT_NOTYPE)
		return is_code ? "a label without a type, in the code"
			       : "a label without a type, outside of the code";
	return s->type == STT_OBJECT || s->type == STT_COMMON ? "a variable" : NULL;
}

bool cairn_binary_symbol_text(const struct cairn_binary *bin, const char *name, char *buf,
			      size_t size)
{
	struct elf *e = binary_symbol_file(bin);
	const struct elf_symbol *s = find(e, name);
	const uint8_t *code;
	uint64_t n;
	const char *kind = s ? kind_of(s, elf_is_code(e, s->at, &code, &n)) : NULL;
	char bytes[40] = "unknown size";
	if (!kind)
		return false;
	if (s->size)
		snprintf(bytes, sizeof(bytes), "%" PRIu64 " byte%s", s->size,
			 s->size == 1 ? "" : "s");
	snprintf(buf, size, "%s is %s at 0x%" PRIx64 ", of %s", name, kind, s->at.v, bytes);
	return true;
}
