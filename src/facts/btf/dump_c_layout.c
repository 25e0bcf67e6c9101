/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The attributes and padding that make a compiler put members at the offsets of the BTF
 *
 * BTF has offsets and a size; C has rules. The walk goes over the members as a compiler does, and
 * compares:
 *
 *	where the compiler would put it   where it is   the output
 *	4                                 4             nothing
 *	4                                 8             "int: 32;" before it: bit-fields without a
 *	                                                name are padding
 *	4                                 64            __attribute__((aligned(64))) if the size is
 *	                                                a multiple too
 *	16                                200           "unsigned char __gap_16[184];"
 *	8 (aligned)                       5             the struct is packed
 *	8                                 2, overlaps   the struct is an overlay
 *
 * A bit-field goes to the next bit unless it would cross the boundary of its type's alignment once
 * more than its type does; then to that boundary (the rule of System V's ABIs; GCC's and Clang's on
 * all Linux targets that BTF serves).
 *
 * An overlay can express any offsets: every member is packed with a gap of its own, side by side in
 * a union. C++ needs it if a class reuses the padding at the end of its base.
 *
 *	union { struct { unsigned char __gap_0[5]; int x; } __attribute__((packed)); ...
 *		unsigned char __bytes[16]; };
 *
 * The alignment of a struct is not in BTF. The alignment *as printed* counts, from which its users
 * are laid out; so all of this is right whatever the source had.
 */
#include "btf/dump_c.h"

#include <elf.h>

/* A gap that needs more bit-fields than this is worth an attribute. */
#define BIT_GAPS_MAX 2

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

/* ---- INT, FLOAT ---- */

struct int_words {
	unsigned int n_char, n_short, n_int, n_long, n_int128, n_bool, n_sign, n;
};

static bool count_word(struct int_words *w, const char *word, size_t len)
{
	const struct {
		const char *word;
		unsigned int *n;
	} known[] = {{"char", &w->n_char},   {"short", &w->n_short},     {"int", &w->n_int},
		     {"long", &w->n_long},   {"__int128", &w->n_int128}, {"_Bool", &w->n_bool},
		     {"signed", &w->n_sign}, {"unsigned", &w->n_sign}};

	w->n++;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strlen(known[i].word) != len || memcmp(known[i].word, word, len))
			continue;
		++*known[i].n;
		return true;
	}
	return false;
}

/* Bytes of "long unsigned int"; 0: these words are no integer type of C. */
static uint32_t bytes_of_words(const struct dump_c *d, const char *name)
{
	struct int_words w = {0};

	for (const char *p = name; *p;) {
		size_t len = strcspn(p, " ");

		if (!count_word(&w, p, len))
			return 0;
		p += len + (p[len] == ' ');
	}
	unsigned int others = w.n - w.n_sign - w.n_int;

	if (!w.n || w.n_sign > 1 || w.n_int > 1 || w.n_short > 1)
		return 0;
	if (w.n_char || w.n_int128 || w.n_bool) {
		if (others != 1 || w.n_int || (w.n_bool && w.n_sign))
			return 0;
		return w.n_int128 ? 16 : 1;
	}
	if (w.n_short)
		return w.n_long ? 0 : 2;
	if (w.n_long > 2)
		return 0;
	return w.n_long == 2 ? 8 : w.n_long ? d->ptr_bytes : 4;
}

static uint32_t long_double_bytes(const struct dump_c *d)
{
	return d->machine == EM_386 ? 12 : d->machine == EM_ARM ? 8 : 16;
}

static bool is_float_name(const struct dump_c *d, const struct cairn_btf_type *t)
{
	return (!strcmp(t->name, "float") && t->ref == 4) ||
	       (!strcmp(t->name, "double") && t->ref == 8) ||
	       (!strcmp(t->name, "long double") && t->ref == long_double_bytes(d));
}

const char *c_builtin(const struct dump_c *d, const struct cairn_btf_type *t)
{
	if (t->kind == CAIRN_BTF_FLOAT)
		return is_float_name(d, t) ? t->name : NULL;
	uint32_t bytes = bytes_of_words(d, t->name);

	return bytes && bytes == t->ref ? t->name : NULL;
}

const char *c_builtin_like(const struct dump_c *d, const struct cairn_btf_type *t)
{
	static const char *const ints[2][5] = {
		{"unsigned char", "unsigned short", "unsigned int", "unsigned long long",
		 "unsigned __int128"},
		{"signed char", "short", "int", "long long", "__int128"}};

	if (t->kind == CAIRN_BTF_FLOAT)
		return t->ref == 4                      ? "float"
		       : t->ref == 8                    ? "double"
		       : t->ref == long_double_bytes(d) ? "long double"
							: NULL;
	uint32_t encoding = CAIRN_BTF_INT_ENCODING(t->words[0]);

	if ((encoding & CAIRN_BTF_INT_BOOL) && t->ref == 1)
		return "_Bool";
	for (unsigned int i = 0; i < 5; i++)
		if (t->ref == 1u << i)
			return ints[!!(encoding & CAIRN_BTF_INT_SIGNED)][i];
	return NULL;
}

static uint32_t scalar_align(const struct dump_c *d, const struct cairn_btf_type *t, uint64_t bytes)
{
	bool is_number = t->kind == CAIRN_BTF_INT || t->kind == CAIRN_BTF_FLOAT;

	if (is_number && !c_builtin(d, t) && !c_builtin_like(d, t))
		return 1;
	if (d->machine == EM_386 && bytes > 4)
		return bytes == 16 ? 16 : 4;
	return bytes ? (uint32_t)bytes : 1;
}

/* ---- any type ---- */

static uint32_t enum_bytes(const struct cairn_btf_type *t)
{
	return t->ref == 1 || t->ref == 2 || t->ref == 8 ? t->ref : 4;
}

static bool base_size(const struct dump_c *d, const struct cairn_btf_type *t, uint64_t *ret)
{
	switch (t->kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		*ret = t->ref;
		return true;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		*ret = enum_bytes(t);
		return true;
	case CAIRN_BTF_PTR:
		*ret = d->ptr_bytes;
		return true;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		*ret = t->ref;
		return d->types[t->id].align != 0;
	default:
		return false;
	}
}

bool c_size(const struct dump_c *d, uint32_t id, uint64_t *ret)
{
	struct cairn_btf_type t = c_resolve(d, id);
	uint64_t n = 1, bytes;

	for (uint32_t i = 0; t.kind == CAIRN_BTF_ARRAY; i++) {
		if (i >= C_CHAIN_MAX || __builtin_mul_overflow(n, t.words[2], &n))
			return false;
		t = c_resolve(d, t.words[0]);
	}
	return base_size(d, &t, &bytes) && !__builtin_mul_overflow(n, bytes, ret);
}

uint32_t c_align(const struct dump_c *d, uint32_t id)
{
	struct cairn_btf_type t = c_resolve(d, id);
	uint64_t bytes = 0;

	for (uint32_t i = 0; t.kind == CAIRN_BTF_ARRAY && i < C_CHAIN_MAX; i++)
		t = c_resolve(d, t.words[0]);
	if (c_is_struct(t.kind))
		return d->types[t.id].align ? d->types[t.id].align : 1;
	return base_size(d, &t, &bytes) ? scalar_align(d, &t, bytes) : 1;
}

/* ---- members ---- */

/* Old encoders say a bit-field by its INT. */
static void bit_field_of_int(const struct dump_c *d, struct c_member *m)
{
	struct cairn_btf_type t = c_resolve(d, m->m.type);

	if (m->m.bit_size || t.kind != CAIRN_BTF_INT)
		return;
	uint32_t bits = CAIRN_BTF_INT_BITS(t.words[0]);

	if (!bits || bits >= 8 * (uint64_t)t.ref)
		return;
	m->m.bit_size = bits;
	m->bit_off += CAIRN_BTF_INT_OFFSET(t.words[0]);
}

static const char *wrong_bit_field(const struct dump_c *d, const struct c_member *m, uint64_t bytes)
{
	struct cairn_btf_type t = c_resolve(d, m->m.type);

	if (t.kind != CAIRN_BTF_INT && !c_is_enum(t.kind))
		return "a bit-field of a type that has none";
	if (t.kind == CAIRN_BTF_INT && !c_builtin(d, &t) && !c_builtin_like(d, &t))
		return "a bit-field of a type that C does not have";
	bool is_bool = t.kind == CAIRN_BTF_INT &&
		       (CAIRN_BTF_INT_ENCODING(t.words[0]) & CAIRN_BTF_INT_BOOL);

	if (m->m.bit_size > (is_bool ? 1 : 8 * bytes))
		return "a bit-field wider than its type";
	return NULL;
}

/* The member as BTF has it, without a site. */
static struct c_member member(const struct dump_c *d, const struct cairn_btf_type *t, uint32_t i)
{
	struct c_member m = {.m = cairn_btf_member(t, i)};
	uint64_t bytes = 0;

	m.bit_off = m.m.bit_off;
	if (!c_size(d, m.m.type, &bytes) || bytes > UINT32_MAX) {
		m.why_not = "not complete";
		return m;
	}
	bit_field_of_int(d, &m);
	m.align = c_align(d, m.m.type);
	m.bits = m.m.bit_size ? m.m.bit_size : 8 * bytes;
	if (m.m.bit_size)
		m.why_not = wrong_bit_field(d, &m, bytes);
	else if (m.bit_off % 8)
		m.why_not = "not at a byte";
	if (m.bit_off + m.bits > 8 * (uint64_t)t->ref)
		m.why_not = "beyond the end";
	return m;
}

/* The offset at which a compiler puts a member if the next free bit is @at. */
static uint64_t site(const struct dump_c *d, const struct c_member *m, uint64_t at, bool packed)
{
	uint64_t align = 8 * (uint64_t)m->align, bytes = 0;

	if (!m->m.bit_size)
		return round_up(at, packed ? 8 : align);
	if (packed)
		return at;
	c_size(d, m->m.type, &bytes);
	return (at % align + m->bits + align - 1) / align > 8 * bytes / align ? round_up(at, align)
									      : at;
}

/*
 * An alignment that takes the next free bit to @bit_off, and that the size is a multiple of; 0:
 * none.
 */
static uint32_t aligning(const struct c_walk *w, uint64_t at, uint64_t bit_off)
{
	uint32_t unit = w->natural < 8 ? w->natural : 8;

	if (bit_off - at <= BIT_GAPS_MAX * 8 * (uint64_t)unit)
		return 0;
	for (uint32_t align = 2; align <= C_ALIGN_MAX; align *= 2)
		if (round_up(at, 8 * (uint64_t)align) == bit_off && w->t.ref % align == 0)
			return align;
	return 0;
}

struct c_walk c_walk_of(const struct dump_c *d, const struct cairn_btf_type *t)
{
	return (struct c_walk){.t = *t, .align = 1, .natural = 1, .packed = d->types[t->id].packed};
}

struct c_member c_step(const struct dump_c *d, struct c_walk *w, uint32_t i)
{
	const uint32_t *order = d->types[w->t.id].order;
	struct c_member m = member(d, &w->t, order ? order[i] : i);
	bool is_union = w->t.kind == CAIRN_BTF_UNION;
	uint64_t at = is_union ? 0 : w->at;

	m.gap_from = m.bit_off;
	if (m.why_not)
		return m;
	if (!w->packed && m.align > w->natural)
		w->natural = m.align;
	if (w->natural > w->align)
		w->align = w->natural;
	m.overlaps = m.bit_off < at || (is_union && m.bit_off);
	if (site(d, &m, at, w->packed) != m.bit_off) {
		m.gap_from = at;
		m.misplaced = site(d, &m, m.bit_off, w->packed) != m.bit_off;
		m.attr_align =
			w->packed || m.m.bit_size || m.misplaced ? 0 : aligning(w, at, m.bit_off);
	}
	if (m.attr_align > w->align)
		w->align = m.attr_align;
	if (m.attr_align)
		m.gap_from = m.bit_off;
	if (m.bit_off + m.bits > w->at)
		w->at = m.bit_off + m.bits;
	return m;
}

uint32_t c_rest(const struct c_walk *w, uint64_t *gap_from)
{
	uint64_t end = 8 * (uint64_t)w->t.ref, at = round_up(w->at, 8 * (uint64_t)w->align);

	*gap_from = end;
	if (at >= end)
		return 0;
	uint32_t align = w->packed ? 0 : aligning(w, w->at, end);

	if (align <= w->align)
		align = 0;
	if (!align)
		*gap_from = w->at;
	return align;
}

/* Try the rules of C; false: something is not where they can put it. */
static bool lay_out(const struct dump_c *d, const struct cairn_btf_type *t, struct c_walk *w,
		    bool *overlaps)
{
	bool ok = true;

	*w = c_walk_of(d, t);
	*overlaps = false;
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct c_member m = c_step(d, w, i);

		ok = ok && !m.misplaced;
		*overlaps = *overlaps || m.overlaps;
	}
	return ok && !*overlaps && t->ref % w->align == 0;
}

static int by_offset(const void *a, const void *b, void *t)
{
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	uint32_t x = cairn_btf_member(t, i).bit_off, y = cairn_btf_member(t, j).bit_off;

	return x != y ? (x > y) - (x < y) : (i > j) - (i < j);
}

/* The numbers of members by offset; NULL when that is their order, and out of memory. */
static const uint32_t *sorted(struct dump_c *d, const struct cairn_btf_type *t)
{
	uint32_t i = 1;

	while (i < t->vlen && cairn_btf_member(t, i - 1).bit_off <= cairn_btf_member(t, i).bit_off)
		i++;
	if (t->kind == CAIRN_BTF_UNION || i >= t->vlen)
		return NULL;
	uint32_t *order = arena_array(&d->arena, t->vlen, sizeof(*order));

	if (!order) {
		d->nomem = true;
		return NULL;
	}
	for (i = 0; i < t->vlen; i++)
		order[i] = i;
	qsort_r(order, t->vlen, sizeof(*order), by_offset, (void *)t);
	return order;
}

void c_layout(struct dump_c *d, const struct cairn_btf_type *t)
{
	struct c_type *c = &d->types[t->id];
	struct c_walk w;
	bool overlaps;
	uint64_t gap;

	/* Rust writes members down as the source has them, and moves them. */
	c->order = sorted(d, t);
	c->packed = false;
	if (!lay_out(d, t, &w, &overlaps) && !overlaps) {
		c->packed = true;
		lay_out(d, t, &w, &overlaps);
	}
	if (overlaps) {
		c->overlay = true;
		c->order = NULL;
		c->align = 1;
		return;
	}
	uint32_t rest = c_rest(&w, &gap);

	c->align = (uint16_t)(rest > w.align ? rest : w.align);
}
