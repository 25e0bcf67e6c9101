/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Versions of symbols
 *
 * The names of .dynsym have no versions. A second table has a number for each of its symbols, and a
 * third one names the numbers:
 *
 *	.gnu.version_d	14: "GLIBC_2.14"
 *	.dynsym		2530: memcpy at 0x9b2a0		2531: memcpy at 0x9c1c0
 *	.gnu.version	2530: 14			2531: 0x8000 + 2, hidden: not the default
 */
#include "elf/versions.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "elf/section_raw.h"

enum { HIDDEN = 0x8000 };

struct table {
	struct cursor_src src;
	const uint8_t *bytes; /* NULL: there is none */
	uint64_t n;
	uint32_t link;
};

static int open_table(const struct elf *e, uint32_t i, struct table *ret, struct cairn_err *err)
{
	*ret = (struct table){0};
	if (i == NO_SECTION || i >= e->n_sections)
		return 0;
	const struct section *s = &e->sections[i];
	int rc = section_raw(e, i, &ret->bytes, err);
	ret->src = (struct cursor_src){e->path, s->file.name, ret->bytes};
	ret->n = ret->bytes ? s->file_size : 0;
	ret->link = s->link;
	return rc;
}

static struct cursor cursor_at(const struct table *t, uint64_t off)
{
	uint64_t from = off < t->n ? off : t->n;
	return cursor_of(&t->src, t->bytes + from, t->n - from, false, NULL);
}

static bool is_string(const struct table *strings, uint64_t off, const char *text)
{
	size_t n = strlen(text) + 1;
	return off < strings->n && n <= strings->n - off && !memcmp(strings->bytes + off, text, n);
}

/* The number of a version that the file defines; 0: there is none. */
static uint16_t number_of(const struct elf *e, const struct table *defined, const char *version)
{
	struct table strings;
	uint64_t off = 0;
	if (open_table(e, defined->link, &strings, NULL) < 0 || !strings.bytes)
		return 0;
	/* Each entry lies after the one before it. */
	while (off < defined->n) {
		struct cursor c = cursor_at(defined, off);
		cur_skip(&c, 4); /* vd_version, vd_flags */
		uint16_t number = cur_u16(&c);
		cur_skip(&c, 6); /* vd_cnt, vd_hash */
		uint32_t aux = cur_u32(&c), next = cur_u32(&c);
		struct cursor name = cursor_at(defined, off + aux);
		uint32_t at = cur_u32(&name);
		if (c.failed || name.failed)
			return 0;
		if (is_string(&strings, at, version))
			return number & ~HIDDEN;
		off = next ? off + next : defined->n;
	}
	return 0;
}

struct symbols {
	struct table symbols, strings, numbers;
};

static int open_symbols(const struct elf *e, struct symbols *s, struct cairn_err *err)
{
	int rc = open_table(e, section_of_type(e, SHT_DYNSYM), &s->symbols, err);
	if (rc >= 0)
		rc = open_table(e, s->symbols.link, &s->strings, err);
	return rc < 0 ? rc : open_table(e, section_of_type(e, SHT_GNU_versym), &s->numbers, err);
}

/* Number 0 is wanted if it is the version that the linker takes for the bare name. */
static bool is_version(uint16_t has, uint16_t number)
{
	if (!number)
		return !(has & HIDDEN) && has > VER_NDX_GLOBAL;
	return (has & ~HIDDEN) == number;
}

/* Symbol @i, if it has the name and the version. */
static bool is_wanted(const struct symbols *s, uint64_t i, const char *name, uint16_t number,
		      struct cairn_vaddr *ret)
{
	struct cursor version = cursor_at(&s->numbers, i * sizeof(Elf64_Versym));
	if (!is_version(cur_u16(&version), number) || version.failed)
		return false;
	struct cursor c = cursor_at(&s->symbols, i * sizeof(Elf64_Sym));
	uint32_t at = cur_u32(&c);
	cur_skip(&c, 2); /* st_info, st_other */
	uint16_t section = cur_u16(&c);
	ret->v = cur_u64(&c);
	return !c.failed && section != SHN_UNDEF && is_string(&s->strings, at, name);
}

int elf_visit_version(const struct elf *e, const char *name, const char *version,
		      int (*visit)(void *ctx, struct cairn_vaddr at), void *ctx,
		      struct cairn_err *err)
{
	struct table defined;
	struct symbols s = {0};
	int rc = open_table(e, section_of_type(e, SHT_GNU_verdef), &defined, err);
	uint16_t number = 0;
	if (rc >= 0 && defined.bytes && version)
		number = number_of(e, &defined, version);
	if (rc < 0 || !defined.bytes || (version && !number))
		return rc;
	rc = open_symbols(e, &s, err);
	for (uint64_t i = 0; rc == 0 && i < s.symbols.n / sizeof(Elf64_Sym); i++) {
		struct cairn_vaddr at;
		if (is_wanted(&s, i, name, number, &at))
			rc = visit(ctx, at);
	}
	return rc;
}
