/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/code_map.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "elf/elf.h"
#include "sidecar/format.h"

/*
 * Code this near to other code shares its pages: the bytes between cost less than a record for
 * each.
 */
enum { SPAN_GAP_MAX = 4096 };

bool is_code_section(const struct elf_section *s)
{
	return (s->flags & SHF_EXECINSTR) && (s->flags & SHF_ALLOC) && s->size;
}

static int by_address(const void *a, const void *b)
{
	const struct elf_section *const *x = a, *const *y = b;
	return (*x)->addr.v < (*y)->addr.v ? -1 : (*x)->addr.v > (*y)->addr.v;
}

/* Adds [lo, hi), of which no start is below an earlier one. */
static bool add_span(struct code_map *m, uint64_t lo, uint64_t hi)
{
	struct span *last = m->spans.n ? &m->spans.p[m->spans.n - 1] : NULL;
	lo -= m->all.base;
	hi -= m->all.base;
	uint64_t end = last ? (uint64_t)last->at + last->size : 0;
	if (last && lo <= end + SPAN_GAP_MAX) {
		last->size = (uint32_t)((hi > end ? hi : end) - last->at);
		return true;
	}
	return VEC_ADD(&m->spans, ((struct span){.at = (uint32_t)lo, .size = (uint32_t)(hi - lo)}));
}

static int read_spans(const struct elf_section **code, size_t n, struct code_map *ret)
{
	uint32_t page = 0;
	for (size_t i = 0; i < n; i++)
		if (!add_span(ret, code[i]->addr.v, code[i]->addr.v + code[i]->size))
			return -ENOMEM;
	for (size_t i = 0; i < ret->spans.n; i++) {
		ret->spans.p[i].first_page = page;
		page += (uint32_t)(((uint64_t)ret->spans.p[i].size + SIDECAR_PAGE_SIZE - 1) /
				   SIDECAR_PAGE_SIZE);
	}
	return 0;
}

int code_map_make(const struct cairn_binary *bin, struct code_map *ret, struct cairn_err *err)
{
	const struct elf *e = binary_main(bin);
	VEC(const struct elf_section *) code = {0};
	uint64_t hi = 0;
	bool ok = true;
	for (size_t i = 0; ok && i < elf_n_sections(e); i++)
		if (is_code_section(elf_section_at(e, i)))
			ok = VEC_ADD(&code, elf_section_at(e, i));
	if (code.n)
		qsort(code.p, code.n, sizeof(*code.p), by_address);
	for (size_t i = 0; i < code.n; i++)
		hi = code.p[i]->addr.v + code.p[i]->size > hi ? code.p[i]->addr.v + code.p[i]->size
							      : hi;
	ret->all.base = code.n ? code.p[0]->addr.v : 0;
	bool fits = hi - ret->all.base < UINT32_MAX;
	ret->all.size = code.n && fits ? (uint32_t)(hi - ret->all.base) : 0;
	ok = ok && (!fits || read_spans(code.p, code.n, ret) >= 0);
	VEC_FREE(&code);
	if (!fits)
		return err_set(err, -ERANGE,
			       "%s: its code spans 0x%llx bytes, expected less than 4 GiB",
			       cairn_binary_path(bin), (unsigned long long)(hi - ret->all.base));
	return ok ? 0 : err_nomem(err, "the code of a binary");
}

void code_map_fini(struct code_map *map)
{
	VEC_FREE(&map->spans);
}
