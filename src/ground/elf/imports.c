/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stubs of imported functions
 *
 * A call of a function that is in another file goes to a stub, which jumps to the address in a slot
 * of the global offset table. The dynamic linker writes that address; a relocation says of which
 * symbol:
 *
 *	1030: ff 25 ca 2f 00 00   jmp *0x2fca(%rip)     slot 4000
 *	4000: R_X86_64_JUMP_SLOT  malloc
 *
 * So a stub has no symbol of its own, and its name comes from its slot. What comes before the jump
 * depends on the linker:
 *
 *	endbr64                   with -fcf-protection
 *	mov $index,%r11d          mold, with -fcf-protection
 *	bnd                       a prefix, GNU ld before 2.40
 *
 * Stubs are in .plt, .plt.sec and .plt.got and begin at multiples of 8. The stubs of .plt that only
 * bind lazily jump to the first one and not through a slot, so they do not count.
 */
#include "elf/imports.h"

#include <elf.h>
#include <errno.h>

#include "base/map.h"
#include "elf/section_raw.h"

enum { STUB_ALIGN = 8 };

struct imports {
	const struct elf *e;
	struct cursor_src src; /* of .dynsym */
	const uint8_t *symbols;
	const char *strings;
	uint64_t n_symbols, n_strings;
	struct map names; /* address of a slot to index of the symbol */
	struct cairn_err *err;
};

/* Returns 1, or 0 when the file has no symbols for a dynamic linker. */
static int open_symbols(struct imports *im)
{
	const struct elf *e = im->e;
	const uint8_t *strings = NULL;
	uint32_t i = section_of_type(e, SHT_DYNSYM);
	int rc = i == NO_SECTION ? 0 : section_raw(e, i, &im->symbols, im->err);
	if (rc < 0 || !im->symbols)
		return rc;
	uint32_t link = e->sections[i].link;
	if (!section_is(e, link, SHT_STRTAB))
		return 0;
	rc = section_raw(e, link, &strings, im->err);
	if (rc < 0 || !strings || strings[e->sections[link].file_size - 1])
		return rc;
	im->src = (struct cursor_src){e->path, e->sections[i].file.name, im->symbols};
	im->n_symbols = e->sections[i].file_size / sizeof(Elf64_Sym);
	im->strings = (const char *)strings;
	im->n_strings = e->sections[link].file_size;
	return 1;
}

/* NULL: a symbol that the file has itself, or a damaged one. */
static const char *name_of(const struct imports *im, uint64_t index)
{
	if (index >= im->n_symbols)
		return NULL;
	struct cursor c = cursor_of(&im->src, im->symbols + index * sizeof(Elf64_Sym),
				    sizeof(Elf64_Sym), false, NULL);
	uint32_t off = cur_u32(&c);
	cur_skip(&c, 2); /* st_info, st_other */
	uint16_t section = cur_u16(&c);
	if (section != SHN_UNDEF || off >= im->n_strings || !im->strings[off])
		return NULL;
	return im->strings + off;
}

/* Relocations that write a function's address to a slot. */
static int read_relocations(struct imports *im, size_t i)
{
	const struct section *s = &im->e->sections[i];
	const uint8_t *bytes = NULL;
	int rc = section_raw(im->e, i, &bytes, im->err);
	if (rc < 0 || !bytes)
		return rc;
	struct cursor_src src = {im->e->path, s->file.name, bytes};
	struct cursor c =
		cursor_of(&src, bytes, s->file_size / sizeof(Elf64_Rela) * sizeof(Elf64_Rela),
			  false, im->err);
	while (cur_more(&c) && !rc) {
		uint64_t slot = cur_u64(&c), info = cur_u64(&c);
		cur_skip(&c, 8); /* r_addend */
		uint32_t type = ELF64_R_TYPE(info);
		if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
			rc = map_put(&im->names, slot, ELF64_R_SYM(info));
	}
	return rc < 0 ? err_nomem(im->err, "imported functions") : 0;
}

static int read_slots(struct imports *im)
{
	int rc = 0;
	for (size_t i = 0; i < im->e->n_sections && !rc; i++) {
		const struct section *s = &im->e->sections[i];
		if (s->file.type == SHT_RELA && s->file.flags & SHF_ALLOC)
			rc = read_relocations(im, i);
	}
	return rc;
}

static bool skip_bytes(struct cursor *c, const void *bytes, size_t n)
{
	if (cur_left(c) < n || memcmp(c->pos, bytes, n) != 0)
		return false;
	cur_skip(c, n);
	return true;
}

/* The slot through which a stub jumps that begins at @c; false: no stub does. */
static bool slot_of(struct cursor c, uint64_t at, uint64_t *ret)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa}, mov_r11d[] = {0x41, 0xbb};
	static const uint8_t bnd[] = {0xf2}, jmp[] = {0xff, 0x25};
	const uint8_t *start = c.pos;
	skip_bytes(&c, endbr64, sizeof(endbr64));
	if (skip_bytes(&c, mov_r11d, sizeof(mov_r11d)))
		cur_u32(&c);
	skip_bytes(&c, bnd, sizeof(bnd));
	if (c.failed || !skip_bytes(&c, jmp, sizeof(jmp)))
		return false;
	int64_t distance = (int32_t)cur_u32(&c);
	*ret = at + (uint64_t)(c.pos - start) + (uint64_t)distance;
	return !c.failed;
}

struct visit {
	int (*fn)(void *ctx, const char *name, struct cairn_vaddr at);
	void *ctx;
};

static int visit_section(const struct imports *im, size_t i, const struct visit *v)
{
	const struct section *s = &im->e->sections[i];
	const uint8_t *code = NULL;
	int rc = section_raw(im->e, i, &code, im->err);
	struct cursor_src src = {im->e->path, s->file.name, code};
	for (uint64_t off = 0; code && off < s->file_size && !rc; off += STUB_ALIGN) {
		struct cursor c = cursor_of(&src, code + off, s->file_size - off, false, NULL);
		uint64_t slot, symbol, at = s->file.addr.v + off;
		if (!slot_of(c, at, &slot) || !map_get(&im->names, slot, &symbol))
			continue;
		const char *name = name_of(im, symbol);
		if (name)
			rc = v->fn(v->ctx, name, (struct cairn_vaddr){at});
	}
	return rc;
}

static bool has_stubs(const struct section *s)
{
	return s->file.flags & SHF_EXECINSTR && !strncmp(s->file.name, ".plt", 4);
}

int elf_visit_stubs(const struct elf *e,
		    int (*visit)(void *ctx, const char *name, struct cairn_vaddr at), void *ctx,
		    struct cairn_err *err)
{
	struct imports im = {.e = e, .err = err};
	const struct visit v = {visit, ctx};
	if (e->machine != EM_X86_64)
		return 0;
	map_init(&im.names);
	int rc = open_symbols(&im);
	if (rc > 0)
		rc = read_slots(&im);
	for (size_t i = 0; rc == 0 && im.strings && i < e->n_sections; i++)
		if (has_stubs(&e->sections[i]))
			rc = visit_section(&im, i, &v);
	map_fini(&im.names);
	return rc;
}
