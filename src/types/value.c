/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes to typed values: structs, arrays, enums
 *
 * A value is printed from a view: where it starts and how many bytes are there. A view never grows
 * on the way down. A member gets its own size at most, so that an array of unknown length in the
 * middle of a struct cannot run over its neighbours, except the last member, which may go on to the
 * end of the bytes: a flexible array is longer than its struct says.
 *
 *	struct { int n; short s; char text[]; }      12 bytes given
 *	  .n     view of 4
 *	  .s     view of 2
 *	  .text  view of 6, although the struct's size is 8
 *
 * The functions call each other in circles; max_depth, which is 64 at most, ends that. Depth does
 * not bound the work: a union of 10 unions of 10 unions ... has 10^16 values over the same four
 * bytes. So each value printed is counted, and the count is bounded by a multiple of the number of
 * bytes.
 */
#include "types/value.h"

#include <errno.h>
#include <string.h>

enum { DEPTH_USUAL = 16, DEPTH_LIMIT = 64 };

/*
 * Values per byte: a bit-field of one bit in each of two arms is 16. Beyond comes a constant for
 * small unions with many arms.
 */
enum { BUDGET_PER_BYTE = 64, BUDGET_BASE = 1 << 16 };

static const char CUT_OFF[] = "cut off";

struct view {
	const uint8_t *p;
	uint64_t n;
};

static void put_value(struct printer *p, uint32_t id, struct view v, unsigned int depth);

static bool is_signed(const struct cairn_type *t)
{
	return t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR;
}

/* Plain char and char8_t. signed char and unsigned char are int8_t and uint8_t: numbers. */
static bool is_char(const struct cairn_type *t)
{
	if (t->kind != CAIRN_T_INT || t->size != 1)
		return false;
	return t->encoding == CAIRN_ENC_UTF || (t->name && !strcmp(t->name, "char"));
}

static bool is_aggregate(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

/* ---- enums ---- */

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

static const char *enumerator_of(const struct cairn_type *t, uint64_t bits, unsigned int width)
{
	for (uint32_t i = 0; i < t->n_enumerators; i++)
		if (low_bits((uint64_t)t->enumerators[i].value, width) == bits)
			return t->enumerators[i].name;
	return NULL;
}

/* Single bits with a name, in order of value, then what is left. */
static void put_flags(struct printer *p, const struct cairn_type *t, uint64_t bits,
		      unsigned int width)
{
	uint64_t left = bits;
	for (unsigned int i = 0; i < 64; i++) {
		uint64_t bit = UINT64_C(1) << i;
		const char *name = bits & bit ? enumerator_of(t, bit, width) : NULL;
		if (!name)
			continue;
		value_put(p, left == bits ? "" : "|");
		value_put_name(p, name);
		left &= ~bit;
	}
	if (left) {
		char text[32];
		snprintf(text, sizeof(text), "|0x%llx", (unsigned long long)left);
		value_put(p, text);
	}
}

static bool has_named_bit(const struct cairn_type *t, uint64_t bits, unsigned int width)
{
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		uint64_t v = low_bits((uint64_t)t->enumerators[i].value, width);
		if (v && !(v & (v - 1)) && (bits & v))
			return true;
	}
	return false;
}

static void put_enum(struct printer *p, const struct cairn_type *t, uint64_t bits,
		     unsigned int width)
{
	const char *name = enumerator_of(t, bits, width);
	bool flags = !name && has_named_bit(t, bits, width) && are_flags(t, width);
	if (!name && !flags) {
		value_put_int(p, bits, width, is_signed(t));
		return;
	}
	value_put(p, p->json ? "\"" : "");
	if (flags)
		put_flags(p, t, bits, width);
	else
		value_put_name(p, name);
	value_put(p, p->json ? "\"" : "");
}

/* ---- scalars ---- */

static bool is_number(const struct cairn_type *t)
{
	return t->encoding != CAIRN_ENC_OPAQUE && t->encoding != CAIRN_ENC_COMPLEX;
}

static void put_bits(struct printer *p, const struct cairn_type *t, value_u128 bits,
		     unsigned int width)
{
	if (!is_number(t)) {
		value_put_hex(p, bits);
		return;
	}
	switch (t->kind) {
	case CAIRN_T_ENUM:
		if (width <= 64)
			put_enum(p, t, (uint64_t)bits, width);
		else
			value_put_int(p, bits, width, is_signed(t));
		break;
	case CAIRN_T_INT:
		if (t->encoding == CAIRN_ENC_BOOL && bits <= 1)
			value_put(p, bits ? "true" : "false");
		else if (is_char(t) && width == 8)
			value_put_char(p, (uint8_t)bits, is_signed(t));
		else
			value_put_int(p, bits, width, is_signed(t));
		break;
	default:
		value_put_hex(p, bits);
	}
}

static void put_scalar(struct printer *p, const struct cairn_type *t, struct view v)
{
	if (!t->size)
		value_put_note(p, "incomplete");
	else if (t->size > v.n)
		value_put_note(p, CUT_OFF);
	else if (t->kind == CAIRN_T_FLOAT)
		value_put_float(p, t, v.p);
	else if (t->size > sizeof(value_u128) || !is_number(t))
		value_put_hex_bytes(p, v.p, t->size);
	else
		put_bits(p, t, value_bits(v.p, 0, (unsigned int)t->size * 8),
			 (unsigned int)t->size * 8);
}

/* A bit-field of a struct that @v shows. */
static void put_bit_field(struct printer *p, const struct cairn_member *m, struct view v)
{
	const struct cairn_type *t =
		cairn_types_get(p->types, cairn_types_resolve(p->types, m->type));
	uint64_t byte = m->bit_off / 8;
	if (m->bit_size > 128)
		value_put_note(p, "wider than 128 bits");
	else if (byte > v.n || (m->bit_off % 8 + m->bit_size + 7) / 8 > v.n - byte)
		value_put_note(p, CUT_OFF);
	else
		put_bits(p, t, value_bits(v.p, m->bit_off, m->bit_size), m->bit_size);
}

/* ---- structs ---- */

/* What member @i may see: see the essay. */
static struct view member_view(const struct printer *p, const struct cairn_type *t, uint32_t i,
			       struct view v)
{
	const struct cairn_member *m = &t->members[i];
	uint64_t off = m->bit_off / 8;
	if (off >= v.n)
		return (struct view){v.p + v.n, 0};
	uint64_t left = v.n - off;
	uint64_t size = cairn_types_size(p->types, m->type);
	bool last = t->kind == CAIRN_T_UNION || i == t->n_members - 1 || off >= t->size ||
		    size >= t->size - off;
	return (struct view){v.p + off, last || size > left ? left : size};
}

static void put_member_value(struct printer *p, const struct cairn_type *t, uint32_t i,
			     struct view v, unsigned int depth)
{
	const struct cairn_member *m = &t->members[i];
	if (m->dynamic)
		value_put_note(p, "place not known");
	else if (m->bit_size)
		put_bit_field(p, m, v);
	else if (m->bit_off % 8)
		value_put_note(p, "not at a byte boundary");
	else if (m->bit_off / 8 > v.n)
		value_put_note(p, CUT_OFF);
	else
		put_value(p, m->type, member_view(p, t, i, v), depth);
}

static void put_separator(const struct printer *p, bool *first)
{
	if (!*first)
		value_put(p, p->json ? "," : ", ");
	*first = false;
}

static void put_base_key(const struct printer *p, const struct cairn_member *m)
{
	const struct cairn_type *base =
		cairn_types_get(p->types, cairn_types_resolve(p->types, m->type));
	value_put(p, "<");
	value_put_name(p, base->name ? base->name : "base class");
	value_put(p, ">");
}

static void put_key(const struct printer *p, const struct cairn_member *m, uint32_t i)
{
	char number[16];
	snprintf(number, sizeof(number), "#%u", i);
	value_put(p, p->json ? "\"" : "");
	if (m->is_base_class) {
		put_base_key(p, m);
	} else if (m->name) {
		value_put(p, p->json ? "" : ".");
		value_put_name(p, m->name);
	} else if (p->json) {
		/* JSON needs some key for an anonymous member that is no struct, or not shown. */
		value_put(p, number);
	}
	value_put(p, p->json ? "\":" : m->name || m->is_base_class ? " = " : "");
}

static void put_members(struct printer *p, const struct cairn_type *t, struct view v,
			unsigned int depth, bool *first);

/* In JSON the members of an anonymous member are keys of the object around it. */
static bool put_hoisted(struct printer *p, const struct cairn_type *t, uint32_t i, struct view v,
			unsigned int depth, bool *first)
{
	const struct cairn_member *m = &t->members[i];
	const struct cairn_type *in =
		cairn_types_get(p->types, cairn_types_resolve(p->types, m->type));
	if (!p->json || m->name || m->is_base_class || !is_aggregate(in))
		return false;
	if (m->dynamic || m->bit_size || m->bit_off % 8 || depth + 1 >= p->max_depth)
		return false;
	put_members(p, in, member_view(p, t, i, v), depth + 1, first);
	return true;
}

static void put_members(struct printer *p, const struct cairn_type *t, struct view v,
			unsigned int depth, bool *first)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		if (!p->budget) {
			put_separator(p, first);
			value_put(p, p->json ? "\"...\":\"...\"" : "...");
			return;
		}
		p->budget--;
		if (put_hoisted(p, t, i, v, depth, first))
			continue;
		put_separator(p, first);
		put_key(p, &t->members[i], i);
		put_member_value(p, t, i, v, depth + 1);
	}
}

static void put_struct(struct printer *p, const struct cairn_type *t, struct view v,
		       unsigned int depth)
{
	bool first = true;
	if (t->declaration || t->unread) {
		value_put_note(p, "incomplete");
		return;
	}
	if (t->size && !v.n) {
		value_put_note(p, CUT_OFF);
		return;
	}
	if (depth >= p->max_depth) {
		value_put_more(p);
		return;
	}
	value_put(p, "{");
	put_members(p, t, v, depth, &first);
	value_put(p, "}");
}

/* ---- arrays ---- */

/*
 * Distance of two elements: more than an element's size where the debug information gives a stride.
 */
static uint64_t stride_of(const struct printer *p, const struct cairn_type *t)
{
	uint64_t elem = cairn_types_size(p->types, t->ref);
	uint64_t each = t->has_count && t->count ? t->size / t->count : 0;
	return each > elem && each * t->count == t->size ? each : elem;
}

static void put_string(struct printer *p, const struct cairn_type *t, struct view v)
{
	uint64_t there = !t->has_count || t->count > v.n ? v.n : t->count;
	const char *tail = there < t->count && t->has_count ? "<cut off>" : NULL;
	if (tail && !there) {
		value_put_note(p, CUT_OFF);
		return;
	}
	const void *nul = there ? memchr(v.p, 0, there) : NULL;
	uint64_t n = nul ? (uint64_t)((const uint8_t *)nul - v.p) : there;
	if (nul)
		tail = NULL;
	if (p->max_elems && n > p->max_elems) {
		n = p->max_elems;
		tail = "...";
	}
	value_put_text(p, (const char *)v.p, n, tail);
}

static void put_elements(struct printer *p, const struct cairn_type *t, struct view v,
			 unsigned int depth)
{
	uint64_t stride = stride_of(p, t);
	uint64_t n = t->has_count ? t->count : stride ? v.n / stride : 0;
	uint64_t shown = p->max_elems && n > p->max_elems ? p->max_elems : n;
	/* Elements without a size are all the same: one stands for 2^60. */
	if (!stride && shown > 1)
		shown = 1;
	bool first = true;
	for (uint64_t i = 0, off = 0; i < shown; i++, off += stride) {
		put_separator(p, &first);
		if (stride && off >= v.n) {
			value_put_note(p, CUT_OFF);
			return;
		}
		if (!p->budget) {
			value_put_more(p);
			return;
		}
		uint64_t left = v.n - off;
		put_value(p, t->ref, (struct view){v.p + off, left < stride ? left : stride},
			  depth + 1);
		if (left < stride)
			return;
	}
	if (shown < n) {
		put_separator(p, &first);
		value_put_more(p);
	}
}

static void put_array(struct printer *p, const struct cairn_type *t, struct view v,
		      unsigned int depth)
{
	const struct cairn_type *elem =
		cairn_types_get(p->types, cairn_types_resolve(p->types, t->ref));
	if (is_char(elem) && !t->vector) {
		put_string(p, t, v);
		return;
	}
	if (t->has_count && t->size && !v.n) {
		value_put_note(p, CUT_OFF);
		return;
	}
	if (depth >= p->max_depth) {
		value_put_more(p);
		return;
	}
	value_put(p, p->json ? "[" : "{");
	put_elements(p, t, v, depth);
	value_put(p, p->json ? "]" : "}");
}

static void put_value(struct printer *p, uint32_t id, struct view v, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(p->types, cairn_types_resolve(p->types, id));
	if (!p->budget) {
		value_put_more(p);
		return;
	}
	p->budget--;
	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		put_struct(p, t, v, depth);
		break;
	case CAIRN_T_ARRAY:
		put_array(p, t, v, depth);
		break;
	case CAIRN_T_INT:
	case CAIRN_T_FLOAT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
	case CAIRN_T_MEMBER_PTR:
		put_scalar(p, t, v);
		break;
	default:
		value_put_note(p, "no value");
	}
}

/* ---- entry points ---- */

static int printer_init(struct printer *p, const struct cairn_types *types,
			const struct cairn_value_opts *opts, size_t n_bytes, FILE *out)
{
	struct cairn_value_opts o = {0};
	if (opts) {
		const uint8_t *tail = (const uint8_t *)opts;
		for (size_t i = sizeof(o); i < opts->size; i++)
			if (tail[i])
				return -EINVAL;
		memcpy(&o, opts, opts->size < sizeof(o) ? opts->size : sizeof(o));
	}
	if (o.style != CAIRN_VALUE_TEXT && o.style != CAIRN_VALUE_JSON)
		return -EINVAL;
	unsigned int depth = o.max_depth ? o.max_depth : DEPTH_USUAL;
	*p = (struct printer){
		.types = types,
		.out = out,
		.json = o.style == CAIRN_VALUE_JSON,
		.hex = o.hex,
		.max_elems = o.max_elems,
		.max_depth = depth < DEPTH_LIMIT ? depth : DEPTH_LIMIT,
		.budget = (uint64_t)n_bytes * BUDGET_PER_BYTE + BUDGET_BASE,
	};
	return 0;
}

/* The stream is locked from here on; errno then tells why it failed, if it does. */
static void start(const struct printer *p)
{
	flockfile(p->out);
	errno = 0;
}

static int finish(const struct printer *p)
{
	int why = errno > 0 ? -errno : -EIO;
	int rc = ferror_unlocked(p->out) ? why : 0;
	funlockfile(p->out);
	return rc;
}

int cairn_value_print(const struct cairn_types *types, uint32_t id, const void *bytes,
		      size_t n_bytes, const struct cairn_value_opts *opts, FILE *out)
{
	struct printer p;
	int rc = printer_init(&p, types, opts, n_bytes, out);
	if (rc < 0)
		return rc;
	start(&p);
	put_value(&p, id, (struct view){bytes, n_bytes}, 0);
	return finish(&p);
}

int cairn_value_print_member(const struct cairn_types *types, const struct cairn_member *member,
			     const void *bytes, size_t n_bytes, const struct cairn_value_opts *opts,
			     FILE *out)
{
	/* The bytes as a struct of this one member, which then may be a flexible array. */
	const struct cairn_type around = {
		.kind = CAIRN_T_STRUCT,
		.n_members = 1,
		.members = member,
	};
	struct printer p;
	int rc = printer_init(&p, types, opts, n_bytes, out);
	if (rc < 0)
		return rc;
	start(&p);
	put_member_value(&p, &around, 0, (struct view){bytes, n_bytes}, 0);
	return finish(&p);
}
