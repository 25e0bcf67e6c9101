/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/place/boundary.h"

#include "trace/place/move.h"

void code_walk_fini(struct code_walk *w)
{
	insn_starts_fini(&w->starts);
	*w = (struct code_walk){0};
}

/* Decodes @n bytes from @lo on. */
static bool walk(struct code_walk *w, uint64_t lo, const uint8_t *code, size_t n)
{
	w->n = 0;
	if (!insn_starts_find(&w->starts, code, n))
		return false;
	w->lo = lo;
	w->n = n;
	return true;
}

/* The nearest start before @at, and how far code may be decoded from there. */
static bool nearest_start(const struct cairn_binary *bin, const struct mover *mover,
			  struct cairn_vaddr at, uint64_t *lo, uint64_t *hi)
{
	struct cairn_vaddr fde_lo, fde_hi, symbol;
	const char *name;
	bool has_fde = mover && mover_fde_at(mover, at, &fde_lo, &fde_hi);
	/*
	 * Symbols of a debug file are another file's claim, and are used only if the file itself
	 * has no answer.
	 */
	bool has_symbol = (!has_fde || elf_has_symtab(binary_main(bin))) &&
			  cairn_binary_symbol_of(bin, at, &name, &symbol);
	if (!has_fde && !has_symbol)
		return false;
	*lo = has_fde ? fde_lo.v : symbol.v;
	if (has_symbol && symbol.v > *lo)
		*lo = symbol.v;
	*hi = has_fde ? fde_hi.v : at.v + INSN_MAX_BYTES;
	return true;
}

enum boundary_verdict boundary_at(struct code_walk *w, const struct cairn_binary *bin,
				  const struct mover *mover, struct cairn_vaddr at)
{
	uint64_t lo, hi;
	const uint8_t *code;
	size_t n;
	if (!elf_code_at(binary_main(bin), at, &code, &n))
		return BOUNDARY_NO;
	if (!nearest_start(bin, mover, at, &lo, &hi))
		return BOUNDARY_UNKNOWN;
	if (w->lo != lo || at.v - w->lo >= w->n) {
		if (!elf_code_at(binary_main(bin), (struct cairn_vaddr){lo}, &code, &n))
			return BOUNDARY_NO;
		if (at.v - lo >= n)
			return BOUNDARY_NO;
		if (!walk(w, lo, code, hi - lo < n ? (size_t)(hi - lo) : n))
			return BOUNDARY_UNKNOWN;
	}
	size_t off = (size_t)(at.v - lo);
	return insn_starts_at(&w->starts, off) ? BOUNDARY_YES : BOUNDARY_NO;
}
