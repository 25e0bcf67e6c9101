/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of an enum's values; whether they are flags. */
#include "decode/compile.h"

#include "base/err.h"

static uint64_t low_bits(uint64_t v, unsigned int width)
{
	return width < 64 ? v & ((UINT64_C(1) << width) - 1) : v;
}

/*
 * Whether the enumerators are flags: at least two single bits, and all others made of those. A run
 * like 0, 1, 2, 3, 4 satisfies that too but is an enumeration; calling an invalid 5 of it "B|E"
 * would be a lie.
 */
static bool are_flags(const struct cairn_type *t, unsigned int width)
{
	uint64_t singles = 0, min = UINT64_MAX, max = 0;
	unsigned int n_singles = 0;

	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		uint64_t v = low_bits((uint64_t)t->enumerators[i].value, width);
		if (v && !(v & (v - 1)) && !(singles & v)) {
			singles |= v;
			n_singles++;
		}
		min = v < min ? v : min;
		max = v > max ? v : max;
	}
	for (uint32_t i = 0; i < t->n_enumerators; i++)
		if (low_bits((uint64_t)t->enumerators[i].value, width) & ~singles)
			return false;
	bool run = t->n_enumerators > 2 && max - min < t->n_enumerators;
	return n_singles > 1 && !run;
}

/* An enumerator and its place in the declaration: of two with one value, the first is shown. */
struct ranked {
	uint64_t bits;
	uint32_t rank;
};

static int by_bits(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->bits != y->bits)
		return x->bits < y->bits ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* The name as a piece of the plan's text, which stands before no operation. */
static void put_value(struct compiler *c, struct enum_value *to, const char *name)
{
	to->text = (uint32_t)c->text.n;
	add_name(c, name ? name : "");
	to->n_text = (uint32_t)c->text.n - to->text;
}

/*
 * Whether a bit-field of that width can hold the value: 3 bits that are all set are -1 of a signed
 * enum, and not the 7 that has the same bits. Encoders of BTF do not always say that an enum is
 * signed, so of others a small negative number, which is a large one then, is let through.
 */
static bool fits(const struct cairn_type *t, int64_t value, unsigned int width, bool is_signed)
{
	unsigned int whole = t->size < 8 ? (unsigned int)t->size * 8 : 64;

	if (width >= whole)
		return true;
	int64_t extended = (int64_t)((uint64_t)value << (64 - width)) >> (64 - width);
	bool fits_signed = low_bits((uint64_t)extended, whole) == low_bits((uint64_t)value, whole);
	bool fits_unsigned = low_bits((uint64_t)value, whole) == low_bits((uint64_t)value, width);
	return fits_signed || (!is_signed && fits_unsigned);
}

static void fill(struct compiler *c, const struct cairn_type *t, struct enum_plan *e)
{
	struct ranked *order = calloc(t->n_enumerators + 1, sizeof(*order));

	e->values = arena_array(c->arena, t->n_enumerators + 1, sizeof(*e->values));
	if (!order || !e->values)
		c->rc = err_nomem(c->err, "a plan for decoding");
	for (uint32_t i = 0; i < t->n_enumerators && !c->rc; i++)
		order[i] =
			(struct ranked){low_bits((uint64_t)t->enumerators[i].value, e->width), i};
	if (!c->rc)
		qsort(order, t->n_enumerators, sizeof(*order), by_bits);
	for (uint32_t i = 0; i < t->n_enumerators && !c->rc; i++) {
		uint64_t bits = order[i].bits;
		if (e->n && e->values[e->n - 1].bits == bits)
			continue;
		if (!fits(t, t->enumerators[order[i].rank].value, e->width, e->is_signed))
			continue;
		e->values[e->n].bits = bits;
		put_value(c, &e->values[e->n++], t->enumerators[order[i].rank].name);
		if (bits && !(bits & (bits - 1)))
			e->named_bits |= bits;
	}
	free(order);
}

uint32_t compile_enum(struct compiler *c, const struct cairn_type *t, unsigned int width)
{
	struct enum_plan e = {
		.width = width,
		.is_signed =
			t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR,
		.flags = are_flags(t, width),
	};
	/* Nodes stay where they are. */
	uint64_t key = ((uint64_t)(uintptr_t)t << 8) | width, at;

	if (map_get(&c->enum_of, key, &at))
		return (uint32_t)at;
	/*
	 * Pending text stands before the value, and the names must not come between: they go before
	 * the text.
	 */
	size_t n_pending = c->text.n - c->pending;
	char *pending = malloc(n_pending + 1);
	if (!pending) {
		c->rc = err_nomem(c->err, "a plan for decoding");
		return 0;
	}
	if (n_pending)
		memcpy(pending, c->text.p + c->pending, n_pending);
	pending[n_pending] = 0;
	c->text.n = c->pending;
	fill(c, t, &e);
	c->pending = (uint32_t)c->text.n;
	add_text(c, pending);
	free(pending);
	if (!c->rc && (!VEC_ADD(&c->enums, e) || map_put(&c->enum_of, key, c->enums.n - 1) < 0))
		c->rc = err_nomem(c->err, "a plan for decoding");
	return c->rc ? 0 : (uint32_t)c->enums.n - 1;
}
