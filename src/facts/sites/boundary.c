/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/boundary.h"

void boundary_fini(struct boundary *b)
{
	insn_starts_fini(&b->starts);
	*b = (struct boundary){0};
}

struct range_search {
	uint64_t at;
	struct dw_range found;
	bool has;
};

static int holds_address(void *arg, struct dw_range r)
{
	struct range_search *s = arg;
	if (s->at < r.lo.v || s->at >= r.hi.v)
		return 0;
	s->found = r;
	s->has = true;
	return 1;
}

/* Decode the range of @function that holds @at, unless it is the current one. */
static bool walk(struct boundary *b, const struct elf *code, const struct dw_die *function,
		 uint64_t at)
{
	if (b->code && b->lo <= at && at - b->lo < b->n)
		return true;
	struct range_search s = {.at = at};
	const uint8_t *bytes;
	size_t n;
	b->code = NULL;
	dw_ranges(function, holds_address, &s, NULL);
	if (!s.has || !elf_code_at(code, s.found.lo, &bytes, &n))
		return false;
	if (n > s.found.hi.v - s.found.lo.v)
		n = (size_t)(s.found.hi.v - s.found.lo.v);
	if (at - s.found.lo.v >= n)
		return false;
	if (!insn_starts_find(&b->starts, bytes, n))
		return false;
	b->code = bytes;
	b->lo = s.found.lo.v;
	b->n = n;
	return true;
}

enum cairn_hazard boundary_hazard(struct boundary *b, const struct elf *code,
				  const struct dw_die *function, struct cairn_vaddr at, bool kernel)
{
	if (!walk(b, code, function, at.v))
		return elf_lacks_code_at(code, at) ? CAIRN_HAZARD_NOT_CHECKED
						   : CAIRN_HAZARD_NOT_A_BOUNDARY;
	size_t off = (size_t)(at.v - b->lo);
	if (!insn_starts_at(&b->starts, off))
		return CAIRN_HAZARD_NOT_A_BOUNDARY;
	if (kernel)
		return CAIRN_HAZARD_NONE;
	enum cairn_hazard hazard = insn_uprobe(b->code + off, b->n - off).hazard;
	/* The entry rules for a 5-byte nop need the function's start; few sites get here. */
	return hazard == CAIRN_HAZARD_NOP5_RED_ZONE ? insn_hazard_in(b->code, b->n, off) : hazard;
}

struct cairn_vaddr boundary_padding(const struct boundary *b, struct cairn_vaddr at)
{
	if (!b->code || at.v < b->lo || at.v - b->lo >= b->n)
		return at;
	size_t end = (size_t)(at.v - b->lo);
	for (size_t start = end; start-- > 0;) {
		if (!insn_starts_at(&b->starts, start))
			continue;
		if (!insn_is_padding(b->code + start, end - start))
			break;
		end = start;
	}
	return (struct cairn_vaddr){b->lo + end};
}

/* The number of bytes before a site that are searched. */
enum { BEFORE = 64 };

/*
 * The position in [0, at) of @bytes of the last nop that can end at @at or up to @gap bytes before
 * it: a byte that only nops have.
 */
static size_t nop_before(const uint8_t *bytes, size_t at, size_t gap)
{
	size_t least = at > INSN_MAX_BYTES + gap ? at - INSN_MAX_BYTES - gap : 0;
	for (size_t i = at; i-- > least;)
		if ((bytes[i] == 0x90 && i + gap >= at - 1) ||
		    (bytes[i] == 0x0f && i + 1 < at && bytes[i + 1] == 0x1f))
			return i;
	return at;
}

static uint64_t load_8(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* Whether one of the 8 bytes of @v is @byte. */
static bool has_byte(uint64_t v, uint8_t byte)
{
	const uint64_t ones = UINT64_C(0x0101010101010101);
	v ^= ones * byte;
	return (v - ones) & ~v & ones * 0x80;
}

/* As many of BEFORE bytes as there are before @at in its section, which end at *@ret. */
static unsigned int bytes_before(struct boundary *b, const struct elf *code, uint64_t at,
				 const uint8_t **ret)
{
	const uint8_t *bytes;
	size_t n;
	unsigned int before = BEFORE;
	if (at - b->near_lo < b->near_n && at - b->near_lo >= BEFORE) {
		*ret = b->near + (at - b->near_lo);
		return BEFORE;
	}
	while (before &&
	       (before > at || !elf_code_at(code, (struct cairn_vaddr){at - before}, &bytes, &n) ||
		n < before))
		before = before > INSN_MAX_BYTES ? INSN_MAX_BYTES : before - 1;
	if (before) {
		b->near = bytes;
		b->near_lo = at - before;
		b->near_n = n;
		*ret = bytes + before;
	}
	return before;
}

struct cairn_vaddr boundary_least_padding(struct boundary *b, const struct elf *code,
					  struct cairn_vaddr at)
{
	const uint8_t *end;
	unsigned int before = bytes_before(b, code, at.v, &end);
	/* Nearly always there is no such byte. */
	if (before > INSN_MAX_BYTES && end[-1] != 0x90 &&
	    !has_byte(load_8(end - INSN_MAX_BYTES), 0x1f) && !has_byte(load_8(end - 8), 0x1f))
		return at;
	size_t nop = before ? nop_before(end - before, before, 0) : 0;
	if (nop == before)
		return at;
	/* Prefixes stand before it, and another nop ends there. */
	for (size_t last = before; nop < last;) {
		last = nop;
		nop = nop_before(end - before, last, INSN_MAX_BYTES);
	}
	return (struct cairn_vaddr){nop > INSN_MAX_BYTES ? at.v - before + nop - INSN_MAX_BYTES
							 : 0};
}
