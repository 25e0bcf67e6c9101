/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The code around a site
 *
 * BTF has an address, and no function around it. The symbol table gives the symbol that covers it,
 * and from its start instructions are decoded up to the site: so a site that is in the middle of an
 * instruction is seen. A file without .symtab has unwind entries, which begin where functions
 * begin; they give no name.
 */
#include <string.h>

#include "base/err.h"
#include "base/search.h"
#include "btfsites/btfsites.h"
#include "elf/functions.h"

enum {
	INT3 = 0xcc,
	JUMP = 0xe9,
	JUMP_BYTES = 5,
};

/* The piece of a function symbol that covers @at; NULL: none. */
static const struct function_range *piece_at(const struct functions *f, uint64_t at)
{
	size_t lo = f ? SEARCH(0, f->ranges.n, mid, f->ranges.p[mid].hi <= at) : 0;
	return f && lo < f->ranges.n && f->ranges.p[lo].lo <= at ? &f->ranges.p[lo] : NULL;
}

/*
 * Code that no symbol covers: from the end of the one before, in the section, to the next one.
 */
static void see_gap(struct btf_sites *s, const struct functions *f, uint64_t at)
{
	const char *section;
	uint64_t off;
	size_t n = f ? f->ranges.n : 0;
	size_t next = f ? SEARCH(0, n, mid, f->ranges.p[mid].hi <= at) : 0;
	if (!cairn_binary_section_of(s->sites.bin, (struct cairn_vaddr){at}, &section, &off))
		return;
	uint64_t start = at - off, before = next ? f->ranges.p[next - 1].hi : 0;
	s->around.lo = s->around.from = before > start ? before : start;
	s->around.hi = next < n ? f->ranges.p[next].lo : UINT64_MAX;
}

static int by_symbol(struct btf_sites *s, uint64_t at, struct cairn_err *err)
{
	const struct functions *functions;
	int rc = btfsites_functions_at(s, at, &functions, err);
	const struct function_range *piece = rc < 0 ? NULL : piece_at(functions, at);
	if (!piece && rc >= 0)
		see_gap(s, functions, at);
	if (!piece)
		return rc;
	s->around.lo = piece->symbol->at.v;
	s->around.from = piece->lo;
	s->around.hi = piece->hi;
	s->around.symbol = piece->symbol->name;
	s->around.symbol_at = piece->symbol->at.v;
	return 0;
}

/* The bounds. The name is that of .dynsym, if there is one at the entry's start. */
static int by_unwind_entry(struct btf_sites *s, uint64_t at, struct cairn_err *err)
{
	struct cairn_vaddr lo, hi;
	int rc = s->cfi ? 0 : cfi_open(s->sites.bin, &s->cfi, err);
	/* Damaged unwind information gives no bounds. */
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	if (!cfi_fde_at(s->cfi, (struct cairn_vaddr){at}, &lo, &hi))
		return 0;
	s->around.lo = s->around.from = lo.v;
	s->around.hi = hi.v;
	if (s->around.symbol_at != lo.v)
		s->around.symbol = NULL;
	return 0;
}

static int decode(struct btf_sites *s, struct cairn_err *err)
{
	struct surroundings *a = &s->around;
	size_t n;
	if (a->lo >= a->hi ||
	    !elf_code_at(binary_main(s->sites.bin), (struct cairn_vaddr){a->lo}, &a->code, &n)) {
		a->code = NULL;
		return 0;
	}
	if (n > a->hi - a->lo)
		n = (size_t)(a->hi - a->lo);
	a->hi = a->lo + n;
	return insn_starts_find(&a->starts, a->code, n) ? 0 : err_nomem(err, "code");
}

int btfsites_surround(struct btf_sites *s, struct cairn_vaddr at, struct cairn_err *err)
{
	struct surroundings *a = &s->around;
	if (a->from <= at.v && at.v < a->hi)
		return 0;
	*a = (struct surroundings){.starts = a->starts};
	int rc = by_symbol(s, at.v, err);
	if (rc >= 0 && !binary_has_symtab(s->sites.bin))
		rc = by_unwind_entry(s, at.v, err);
	return rc < 0 ? rc : decode(s, err);
}

/* Where a probe of others is, the instruction has this byte, and others may follow by mistake. */
static bool is_breakpoint(const struct btf_sites *s, size_t off)
{
	return s->is_running && s->around.code[off] == INT3;
}

static bool has_breakpoint_before(const struct btf_sites *s, size_t off)
{
	for (size_t i = off; i--;)
		if (insn_starts_at(&s->around.starts, i) && is_breakpoint(s, i))
			return true;
	return false;
}

/* An optimised probe is a jump to code that the kernel made, over more than one instruction. */
static bool is_in_optimised_probe(const struct btf_sites *s, size_t off)
{
	const struct surroundings *a = &s->around;
	int32_t distance;
	const char *section;
	uint64_t section_off;
	size_t from = off;
	while (from && off - from < JUMP_BYTES && !insn_starts_at(&a->starts, from))
		from--;
	if (!s->is_running || off - from >= JUMP_BYTES || a->code[from] != JUMP ||
	    a->hi - a->lo - from < JUMP_BYTES)
		return false;
	memcpy(&distance, a->code + from + 1, sizeof(distance));
	uint64_t to = a->lo + from + JUMP_BYTES + (uint64_t)(int64_t)distance;
	return !cairn_binary_section_of(s->sites.bin, (struct cairn_vaddr){to}, &section,
					&section_off);
}

/* The kernel has the bytes that a probe replaced, and looks at boundaries itself. */
static enum cairn_hazard off_boundary(const struct btf_sites *s, size_t off)
{
	return has_breakpoint_before(s, off) || is_in_optimised_probe(s, off)
		       ? CAIRN_HAZARD_NONE
		       : CAIRN_HAZARD_NOT_A_BOUNDARY;
}

bool btfsites_is_off_boundary(const struct btf_sites *s, struct cairn_vaddr at)
{
	const struct surroundings *a = &s->around;
	size_t off = (size_t)(at.v - a->lo);
	return a->code && at.v >= a->from && at.v < a->hi && !insn_starts_at(&a->starts, off) &&
	       off_boundary(s, off) != CAIRN_HAZARD_NONE;
}

enum cairn_hazard btfsites_hazard(const struct btf_sites *s, struct cairn_vaddr at)
{
	const struct surroundings *a = &s->around;
	if (!a->code || at.v < a->from || at.v >= a->hi)
		return CAIRN_HAZARD_NOT_CHECKED;
	size_t off = (size_t)(at.v - a->lo), n = (size_t)(a->hi - a->lo);
	if (!insn_starts_at(&a->starts, off))
		return off_boundary(s, off);
	if (is_breakpoint(s, off))
		return CAIRN_HAZARD_NONE;
	if (s->kernel)
		return btfsites_kernel_hazard(s, at);
	enum cairn_hazard hazard = insn_uprobe(a->code + off, n - off).hazard;
	return hazard == CAIRN_HAZARD_NOP5_RED_ZONE ? insn_hazard_in(a->code, n, off) : hazard;
}

/* foo.isra.0 is foo's code; foo.cold is, too, but how far it is from foo's entry is not known. */
static int set_container(const char *symbol, struct arena *arena, struct cairn_site *site)
{
	const char *dot = strchr(symbol, '.');
	if (strstr(symbol, ".cold"))
		return 0;
	site->container = dot && dot != symbol
				  ? arena_strndup(arena, symbol, (size_t)(dot - symbol))
				  : symbol;
	site->container_off = (int64_t)site->symbol_off;
	return site->container ? 0 : -ENOMEM;
}

int btfsites_place(const struct btf_sites *s, struct arena *arena, struct cairn_site *site)
{
	const struct surroundings *a = &s->around;
	if (!a->symbol || site->at.v < a->symbol_at)
		return 0;
	site->symbol = a->symbol;
	site->symbol_off = site->at.v - a->symbol_at;
	if (!strstr(a->symbol, ".cold"))
		site->body = a->symbol_at + 1;
	return set_container(a->symbol, arena, site);
}
