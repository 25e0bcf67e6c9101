/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .gopclntab: the table by which the Go runtime itself unwinds and names
 *
 * Strip takes symbols and debug information and leaves it, since programs need it. Versions of Go
 * 1.18 and of 1.20 and later:
 *
 *	HEADER                                  FUNCTION, at functions + its offset
 *	0       4  f0ffffff (1.18), f1ffffff    0       4  entry, from text on
 *	6       1  size of an instruction       4       4  name, from names on
 *	7       1  bytes of a pointer: 8        16      4  pcsp, from pcs on
 *	8       8  number of functions          36      4  (1.20) first line
 *	24      8  text                         36/40   1  what the runtime knows it by
 *	32      8  names, from here on          37/41   1  flags: 1 outermost, 2 writes the stack
 *	                                                   pointer
 *	56      8  pcs
 *	64      8  functions: entry and offset, 4 bytes each; an entry that ends the last one
 *
 *	pcsp: pairs of a change of the value, with its sign in bit 0, and how many instructions it
 *	then holds; a change of 0 ends them. The value begins with -1.
 */
#include "elf/gopclntab.h"

#include <elf.h>
#include <string.h>

#include "elf/elf_impl.h"

enum {
	MAGIC_1_18 = 0xfffffff0,
	MAGIC_1_20 = 0xfffffff1,
	FLAG_1_18 = 37,
	FLAG_1_20 = 41,
	IS_OUTERMOST = 1,
	WRITES_SP = 2,
	RECORD = 8,
	MAX_FUNCTIONS = 1 << 24,
	MAX_PAIRS = 1 << 20,
};

static struct cursor at(const struct gopclntab *t, uint64_t off)
{
	uint64_t from = off < t->size ? off : t->size;
	return cursor_of(&t->src, t->bytes + from, t->size - from, false, NULL);
}

/* Linkers of C name it otherwise in a program that is position-independent. */
static const struct section *find(const struct elf *e)
{
	for (size_t i = 1; i < e->n_sections; i++) {
		const struct section *s = &e->sections[i];
		if (s->file.data && !(s->file.flags & SHF_COMPRESSED) && s->file.name &&
		    (!strcmp(s->file.name, ".gopclntab") ||
		     !strcmp(s->file.name, ".data.rel.ro.gopclntab")))
			return s;
	}
	return NULL;
}

static bool read_header(struct gopclntab *t)
{
	struct cursor c = at(t, 0);
	uint32_t magic = cur_u32(&c);
	cur_skip(&c, 2);
	t->quantum = cur_u8(&c);
	uint8_t pointer = cur_u8(&c);
	uint64_t n = cur_u64(&c);
	cur_skip(&c, 8);
	t->text = cur_u64(&c);
	t->names = cur_u64(&c);
	cur_skip(&c, 16);
	t->pcs = cur_u64(&c);
	t->functions = cur_u64(&c);
	t->n = (uint32_t)n;
	t->flag_at = magic == MAGIC_1_20 ? FLAG_1_20 : FLAG_1_18;
	/* Without the address of its code, as before it is relocated, nothing is known. */
	return !c.failed && (magic == MAGIC_1_18 || magic == MAGIC_1_20) && pointer == 8 &&
	       t->quantum && n && n < MAX_FUNCTIONS && t->text && t->functions < t->size &&
	       n * RECORD + 4 <= t->size - t->functions;
}

bool gopclntab_open(const struct elf *e, struct gopclntab *ret)
{
	const struct section *s = e->machine == EM_X86_64 ? find(e) : NULL;
	if (!s)
		return false;
	*ret = (struct gopclntab){
		.src = {.file = e->path, .section = s->file.name, .base = s->file.data},
		.bytes = s->file.data,
		.size = s->file.size};
	return read_header(ret);
}

bool gopclntab_function(const struct gopclntab *t, uint32_t i, struct go_function *ret)
{
	struct cursor c = at(t, t->functions + (uint64_t)i * RECORD);
	uint64_t entry = cur_u32(&c), record = t->functions + cur_u32(&c), end = cur_u32(&c);
	struct cursor f = at(t, record);
	bool is_same = cur_u32(&f) == entry;
	uint64_t name = t->names + cur_u32(&f);
	cur_skip(&f, 8);
	uint32_t pcsp = cur_u32(&f);
	cur_skip(&f, t->flag_at - 20);
	uint8_t flags = cur_u8(&f);
	struct cursor text = at(t, name);
	*ret = (struct go_function){.lo = t->text + entry,
				    .hi = t->text + end,
				    .name = cur_str(&text),
				    .pcsp = pcsp,
				    .is_outermost = flags & IS_OUTERMOST,
				    .switches_stack = flags & WRITES_SP};
	return !c.failed && !f.failed && !text.failed && is_same && ret->lo < ret->hi &&
	       ret->name[0];
}

int gopclntab_frames(const struct gopclntab *t, const struct go_function *f,
		     int (*visit)(void *ctx, uint64_t lo, uint64_t hi, int64_t below), void *ctx)
{
	struct cursor c = at(t, t->pcs + f->pcsp);
	uint64_t lo = f->lo;
	int64_t value = -1;
	if (!f->pcsp)
		return 0;
	for (unsigned int i = 0; i < MAX_PAIRS && lo < f->hi; i++) {
		uint64_t change = cur_uleb(&c);
		if (!change && i)
			break;
		uint64_t n = cur_uleb(&c) * t->quantum, hi = lo + n;
		value = (int64_t)((uint64_t)value + ((change >> 1) ^ -(change & 1)));
		if (c.failed || !n || hi < lo || hi > f->hi || value < 0)
			break;
		int rc = visit(ctx, lo, hi, value);
		if (rc)
			return rc;
		lo = hi;
	}
	return 0;
}
