/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/kernel_tables.h"

#include <errno.h>
#include <string.h>

#include <elf.h>

enum {
	ALT_ENTRY = 12,
	ALT_ENTRY_FLAGS = 14,
};

/* ---- bounds ---- */

struct search {
	const struct kernel_bound *bounds;
	size_t n;
	struct kernel_area *areas;
};

/* The linker script makes them, without a type; all begin so. */
static void see_symbol(void *ctx, const struct elf_symbol *s)
{
	const struct search *search = ctx;

	if (s->name[0] != '_' || s->name[1] != '_')
		return;
	for (size_t i = 0; i < search->n; i++) {
		if (!strcmp(s->name, search->bounds[i].start))
			search->areas[i].lo = s->at.v;
		else if (!strcmp(s->name, search->bounds[i].stop))
			search->areas[i].hi = s->at.v;
	}
}

static void find_in_module(const struct elf *elf, const struct search *search)
{
	for (size_t k = 0; k < elf_n_sections(elf); k++) {
		const struct elf_section *s = elf_section_at(elf, k);
		for (size_t i = 0; i < search->n; i++)
			if (s->flags & SHF_ALLOC && !strcmp(s->name, search->bounds[i].section))
				search->areas[i] =
					(struct kernel_area){s->addr.v, s->addr.v + s->size};
	}
}

int kernel_tables_find(const struct cairn_binary *bin, const struct kernel_bound *bounds, size_t n,
		       struct kernel_area *ret, struct cairn_err *err)
{
	struct search search = {.bounds = bounds, .n = n, .areas = ret};

	if (!cairn_binary_is_relocatable(bin))
		return elf_visit_bounds(binary_symbol_file(bin), see_symbol, &search, err);
	find_in_module(binary_main(bin), &search);
	return 0;
}

int kernel_table_open(struct elf *elf, const struct kernel_area *a, struct cursor_src *src,
		      struct cursor *ret)
{
	for (size_t i = 0; i < elf_n_sections(elf); i++) {
		const struct elf_section *s = elf_section_at(elf, i);
		if (!(s->flags & SHF_ALLOC) || a->lo < s->addr.v || a->hi <= a->lo ||
		    a->hi - s->addr.v > s->size)
			continue;
		int rc = elf_section_bytes(elf, i, &s, NULL);
		if (rc == -ENOMEM)
			return rc;
		if (rc < 0 || !s->data)
			continue;
		*src = s->src;
		*ret = cursor_of(src, s->data + (a->lo - s->addr.v), a->hi - a->lo, false, NULL);
		return 1;
	}
	return 0;
}

/* ---- alternatives ---- */

static struct kernel_alternative alternative_at(struct cursor *c, uint64_t at, size_t size)
{
	struct kernel_alternative a;

	a.code = kernel_table_distance(c, at);
	a.with = kernel_table_distance(c, at + 4);
	cur_skip(c, size - 10);
	a.n = cur_u8(c);
	a.n_with = cur_u8(c);
	return a;
}

/* The code of a kernel is in few sections, and that of two tables alternates. */
static bool is_in_code(const struct elf *elf, struct kernel_known_code *known, uint64_t at,
		       uint64_t n)
{
	const uint8_t *code;
	uint64_t left;

	if (at < known->lo || at >= known->hi) {
		if (!elf_is_code(elf, (struct cairn_vaddr){at}, &code, &left))
			return false;
		*known = (struct kernel_known_code){at, at + left};
	}
	return n <= known->hi - at;
}

static bool is_size(const struct elf *elf, struct cursor c, uint64_t base, size_t size)
{
	struct kernel_known_code known[2] = {{0}};

	if (!cur_left(&c) || cur_left(&c) % size)
		return false;
	for (uint64_t at = base; cur_left(&c); at += size) {
		struct kernel_alternative a = alternative_at(&c, at, size);
		if (!a.n || a.n_with > a.n || !is_in_code(elf, &known[0], a.code, a.n) ||
		    (a.n_with && !is_in_code(elf, &known[1], a.with, a.n_with)))
			return false;
	}
	return true;
}

int kernel_alternatives_visit(struct elf *elf, struct cursor table, uint64_t base,
			      int (*visit)(void *ctx, const struct kernel_alternative *a),
			      void *ctx)
{
	size_t size = is_size(elf, table, base, ALT_ENTRY) ? ALT_ENTRY : ALT_ENTRY_FLAGS;
	int rc = 0;

	if (size == ALT_ENTRY_FLAGS && !is_size(elf, table, base, size))
		return 1;
	for (uint64_t at = base; cur_left(&table) && rc >= 0; at += size) {
		struct kernel_alternative a = alternative_at(&table, at, size);
		rc = visit(ctx, &a);
	}
	return rc < 0 ? rc : 0;
}

/* ---- jump labels ---- */

/* A nop or a jump, of 2 or 5 bytes. */
uint64_t kernel_jump_label_bytes(const struct elf *elf, uint64_t at)
{
	const uint8_t *code;
	size_t n;

	if (!elf_code_at(elf, (struct cairn_vaddr){at}, &code, &n) || !n)
		return 0;
	if (code[0] == 0x66 || code[0] == 0xeb)
		return 2;
	return code[0] == 0xe9 || code[0] == 0x0f ? 5 : 1;
}
