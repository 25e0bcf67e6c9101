/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Running a plan over one record
 *
 * The state is the base's position, the number of bytes visible from there, and the open loops: at
 * most 64, as types are nested no deeper. The plan's length bounds the work outside of loops.
 * Repetitions of loops are counted against a budget that grows with the record, because arrays of
 * unions of arrays may show the same bytes many times over.
 */
#include "base/err.h"
#include "base/search.h"
#include "decode/plan.h"

#include <errno.h>

#include <cairn/text.h>

/*
 * Elements per byte: a bit-field of one bit in each of two arms is 16. Beyond comes a constant for
 * small unions with many arms.
 */
enum { BUDGET_PER_BYTE = 64, BUDGET_BASE = 1 << 16 };

/* Bytes of strings and arrays elsewhere that are shown at most. */
enum { ROOM_MAX = 1 << 13 };

/* The visible bytes, and their base. */
struct base {
	const uint8_t *p;
	uint64_t n;
};

struct frame {
	struct base around, in; /* in: the bytes that the loop runs over */
	size_t room;            /* bytes of it that were taken before */
	const struct loop *loop;
	const struct op *body;
	uint64_t i, shown, n;
	uint64_t off, end; /* of the element, and of the array's visible part, from around.p */
};

struct run {
	const struct cairn_decode *d;
	struct cairn_text_out *out;
	struct base base;
	uint64_t budget;
	unsigned int depth;
	struct frame frames[DEPTH_LIMIT + 1];
	/* The data read elsewhere for the open loops. */
	size_t n_room;
	uint8_t room[ROOM_MAX];
};

static void put_note(struct run *r, const char *text)
{
	out_put(r->out, r->d->look.json ? "null" : text);
}

static void put_more(struct run *r)
{
	out_put(r->out, r->d->look.json ? "\"...\"" : "...");
}

static void put_text(struct run *r, const struct op *op)
{
	const char *text = r->d->text + op->text;

	if (op->n_text > OUT_ROOM) {
		out_bytes(r->out, text, op->n_text);
		return;
	}
	char *at = out_room(r->out);
	memcpy(at, text, op->n_text);
	out_end(r->out, at + op->n_text);
}

/* ---- numbers ---- */

static uint64_t load(const uint8_t *p, uint64_t size, bool big_endian)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	switch (size) {
	case 1:
		return *p;
	case 2:
		memcpy(&v2, p, sizeof(v2));
		return big_endian ? __builtin_bswap16(v2) : v2;
	case 4:
		memcpy(&v4, p, sizeof(v4));
		return big_endian ? __builtin_bswap32(v4) : v4;
	default:
		memcpy(&v8, p, sizeof(v8));
		return big_endian ? __builtin_bswap64(v8) : v8;
	}
}

static value_u128 bits_of(const struct run *r, const struct op *op)
{
	return bits_at(r->base.p + op->off, op->shift, op->width, op->big_endian);
}

static void put_uint(struct run *r, const struct op *op)
{
	uint64_t v = load(r->base.p + op->off, op->size, op->big_endian);

	out_end(r->out, put_u64(out_room(r->out), v));
}

static void put_sint(struct run *r, const struct op *op)
{
	uint64_t v = load(r->base.p + op->off, op->size, op->big_endian);
	char *at = out_room(r->out);

	if (v >> (op->width - 1)) {
		*at++ = '-';
		v = -v;
		if (op->width < 64)
			v &= (UINT64_C(1) << op->width) - 1;
	}
	out_end(r->out, put_u64(at, v));
}

static void put_bool(struct run *r, const struct op *op)
{
	value_u128 v = bits_of(r, op);

	if (v <= 1)
		out_put(r->out, v ? "true" : "false");
	else
		out_int(r->out, &r->d->look, v, op->width, op->is_signed);
}

/* ---- enums ---- */

static const struct enum_value *find_value(const struct enum_plan *e, uint64_t bits)
{
	uint32_t lo = SEARCH(0, e->n, mid, e->values[mid].bits < bits);
	return lo < e->n && e->values[lo].bits == bits ? &e->values[lo] : NULL;
}

/* Single bits with a name, in order of value, then the remaining bits. */
static void put_flags(struct run *r, const struct enum_plan *e, uint64_t bits)
{
	uint64_t left = bits & ~e->named_bits;

	for (uint64_t rest = bits & e->named_bits; rest; rest &= rest - 1) {
		const struct enum_value *v = find_value(e, rest & -rest);
		if (v)
			out_bytes(r->out, r->d->text + v->text, v->n_text);
		if (rest & (rest - 1) || left)
			out_put(r->out, "|");
	}
	if (left)
		out_end(r->out, put_hex(out_room(r->out), left));
}

static void put_enum(struct run *r, const struct op *op)
{
	const struct enum_plan *e = &r->d->enums[op->aux];
	uint64_t bits = (uint64_t)bits_of(r, op);
	const struct enum_value *v = find_value(e, bits);
	const char *quote = r->d->look.json ? "\"" : "";

	if (!v && !(e->flags && bits & e->named_bits)) {
		out_int(r->out, &r->d->look, bits, e->width, e->is_signed);
		return;
	}
	out_put(r->out, quote);
	if (v)
		out_bytes(r->out, r->d->text + v->text, v->n_text);
	else
		put_flags(r, e, bits);
	out_put(r->out, quote);
}

/* ---- text ---- */

static void put_characters(struct run *r, const struct op *op, uint64_t n, const char *tail)
{
	const uint8_t *s = r->base.p + op->off;

	if (op->code == OP_WIDE_STRING)
		out_wide_text(r->out, &r->d->look, s, n, op->width / 8, tail);
	else
		out_text(r->out, &r->d->look, s, n, tail);
}

static void put_string(struct run *r, const struct op *op)
{
	uint64_t seen = r->base.n > op->off ? r->base.n - op->off : 0;

	seen = seen < op->limit ? seen : op->limit;
	uint64_t there = !op->has_count || op->size > seen ? seen : op->size;
	bool cut = op->has_count && there < op->size;
	uint64_t max = r->d->max_elems * (op->code == OP_WIDE_STRING ? op->width / 8u : 1u);
	if ((cut && !there) || (!op->has_count && op->off > r->base.n)) {
		put_note(r, "<cut off>");
		return;
	}
	if (max && there > max)
		put_characters(r, op, max, "...");
	else
		put_characters(r, op, there, cut ? "<cut off>" : NULL);
}

/* ---- loops ---- */

static void put_separator(struct run *r)
{
	out_put(r->out, r->d->look.json ? "," : ", ");
}

/* The loop is over; reports the rest of its array. */
static const struct op *leave(struct run *r, bool more)
{
	const struct frame *f = &r->frames[--r->depth];

	if (more && f->shown) {
		put_separator(r);
		put_more(r);
	}
	if (f->loop->closes)
		out_put(r->out, r->d->look.json ? "]" : "}");
	r->base = f->around;
	r->n_room = f->room;
	return r->d->ops + f->body[-1].next;
}

/* The base for the element at f->off, or out of the loop. */
static const struct op *element(struct run *r)
{
	struct frame *f = &r->frames[r->depth - 1];
	uint64_t stride = f->loop->stride;

	if (f->i == f->shown)
		return leave(r, f->shown < f->n);
	if (f->i)
		put_separator(r);
	if (stride && f->off >= f->end) {
		put_note(r, "<cut off>");
		return leave(r, false);
	}
	if (!r->budget || r->out->failed) {
		put_more(r);
		return leave(r, false);
	}
	r->budget--;
	uint64_t left = f->end - f->off;
	r->base = (struct base){f->in.p + f->off, left < stride ? left : stride};
	return f->body;
}

static const struct op *begin_loop(struct run *r, const struct op *op)
{
	const struct loop *loop = &r->d->loops[op->aux];
	struct frame *f = &r->frames[r->depth++];
	uint64_t max = r->d->max_elems;
	uint64_t seen = r->base.n > op->off ? r->base.n - op->off : 0;

	seen = seen < loop->limit ? seen : loop->limit;
	*f = (struct frame){.around = r->base,
			    .in = r->base,
			    .room = r->n_room,
			    .loop = loop,
			    .body = op + 1,
			    .off = op->off};
	/* Nothing is visible of an array after the end, and no address is made for it. */
	if (f->off > r->base.n)
		f->off = r->base.n;
	f->end = f->off + seen;
	f->n = loop->has_count ? loop->count : loop->stride ? seen / loop->stride : 0;
	f->shown = max && f->n > max ? max : f->n;
	/* Elements without a size are all the same: one stands for 2^60. */
	if (!loop->stride && f->shown > 1)
		f->shown = 1;
	return element(r);
}

static const struct op *next_element(struct run *r)
{
	struct frame *f = &r->frames[r->depth - 1];

	/* An element that was cut off ends its array. */
	if (r->base.n < f->loop->stride)
		return leave(r, false);
	f->i++;
	f->off += f->loop->stride;
	return element(r);
}

/* ---- data elsewhere ---- */

/* Nothing is at @target: it could not be read, or no read was tried. */
static void put_absent(struct run *r, const struct recipe_target *target, bool is_unreadable)
{
	static const char *const texts[2][2] = {{"<unavailable: ", "{\"unavailable\":\""},
						{"<unreadable: ", "{\"unreadable\":\""}};
	bool json = r->d->look.json;

	out_put(r->out, texts[is_unreadable][json]);
	out_end(r->out, put_u64(out_room(r->out), target->n_bytes));
	out_put(r->out, " bytes at ");
	out_end(r->out, put_hex(out_room(r->out), target->at));
	out_put(r->out, is_unreadable ? "" : " are not here");
	out_put(r->out, json ? "\"}" : ">");
}

/*
 * The bytes at @target, as far as there are any and there is room; false when none of them can be
 * read.
 */
static bool fetch(struct run *r, const struct recipe_target *target, struct base *ret,
		  bool *is_unreadable)
{
	size_t room = ROOM_MAX - r->n_room;

	*ret = (struct base){r->room + r->n_room, target->n_bytes < room ? target->n_bytes : room};
	if (!target->n_bytes)
		return true;
	if (!r->d->read)
		return false;
	size_t n = r->d->read(r->d->read_ctx, target->at, r->room + r->n_room, ret->n);
	*is_unreadable = n == CAIRN_VALUE_UNREADABLE_MEMORY;
	if (*is_unreadable)
		return false;
	ret->n = n < ret->n ? n : ret->n;
	r->n_room += ret->n;
	return ret->n;
}

static void put_target_text(struct run *r, const struct base *text, uint64_t n)
{
	uint32_t max = r->d->max_elems;
	uint64_t shown = max && text->n > max ? max : text->n;

	out_all_text(r->out, &r->d->look, text->p, shown, shown < n);
}

/* The elements' operations run over the bytes that were read. */
static const struct op *begin_elements(struct run *r, const struct op *op,
				       const struct recipe_plan *p, struct base elements,
				       uint64_t n, size_t room)
{
	struct frame *f = &r->frames[r->depth++];
	uint64_t max = r->d->max_elems, there = elements.n / p->loop.stride;

	*f = (struct frame){.around = r->base,
			    .in = elements,
			    .room = room,
			    .loop = &p->loop,
			    .body = op + 1,
			    .n = n};
	f->end = there * p->loop.stride;
	f->shown = max && there > max ? max : there;
	return element(r);
}

static const struct op *recipe(struct run *r, const struct op *op)
{
	const struct recipe_plan *p = &r->d->recipes[op->aux];
	const struct op *after = p->recipe.kind == RECIPE_ARRAY ? r->d->ops + op->next : op + 1;
	bool is_unreadable = false;
	size_t room = r->n_room;
	struct recipe_target target;
	struct base is;

	if (op->off > r->base.n || op->size > r->base.n - op->off) {
		put_note(r, "<cut off>");
		return after;
	}
	int inside = recipe_inside(&p->recipe, r->base.p + op->off, &is.p, &is.n);
	if (inside > 0) {
		put_target_text(r, &is, is.n);
		return after;
	}
	if (inside < 0 || !recipe_target(&p->recipe, r->base.p + op->off, &target)) {
		put_note(r, "<not a value of its type>");
		return after;
	}
	bool there = fetch(r, &target, &is, &is_unreadable);
	if (!there || (p->recipe.kind == RECIPE_ARRAY && target.n_bytes && is.n < p->loop.stride)) {
		put_absent(r, &target, is_unreadable);
		r->n_room = room;
		return after;
	}
	if (p->recipe.kind == RECIPE_ARRAY) {
		out_put(r->out, r->d->look.json ? "[" : "{");
		return begin_elements(r, op, p, is, target.n_bytes / p->loop.stride, room);
	}
	put_target_text(r, &is, target.n_bytes);
	r->n_room = room;
	return after;
}

/* ---- jumps ---- */

static bool holds(const struct run *r, const struct case_of *c)
{
	uint64_t size = (c->shift + c->width + 7u) / 8;

	if (c->off > r->base.n || size > r->base.n - c->off)
		return false;
	return (uint64_t)bits_at(r->base.p + c->off, c->shift, c->width, c->big_endian) == c->bits;
}

/* For a signed discriminant with its sign. */
static uint64_t discriminant(const struct run *r, const struct variant_test *t)
{
	uint64_t v = (uint64_t)bits_at(r->base.p + t->off, t->shift, t->width, t->big_endian);
	bool negative = t->is_signed && t->width < 64 && v >> (t->width - 1);

	return negative ? v | UINT64_MAX << t->width : v;
}

static bool is_variant(const struct run *r, const struct variant_test *t)
{
	uint64_t size = (t->shift + t->width + 7u) / 8;

	if (t->off > r->base.n || size > r->base.n - t->off)
		return false;
	uint64_t v = discriminant(r, t);
	for (uint32_t i = 0; i < t->n; i++) {
		const struct cairn_variant_range *in = &r->d->ranges[t->first + i];
		if (t->is_signed ? (int64_t)v >= (int64_t)in->lo && (int64_t)v <= (int64_t)in->hi
				 : v >= in->lo && v <= in->hi)
			return true;
	}
	return !t->n;
}

static const struct op *group(struct run *r, const struct op *op)
{
	bool there = op->has_count ? op->off < r->base.n : op->off <= r->base.n;

	if (there)
		return op + 1;
	put_note(r, "<cut off>");
	return r->d->ops + op->next;
}

/* An operation that puts one value of op->size bytes. */
static void put_value(struct run *r, const struct op *op)
{
	const struct look *look = &r->d->look;
	const struct look own = {look->json, look->hex, op->big_endian, look->long_double};
	const uint8_t *p = r->base.p + op->off;

	switch ((enum op_code)op->code) {
	case OP_UINT:
		put_uint(r, op);
		break;
	case OP_SINT:
		put_sint(r, op);
		break;
	case OP_BITS:
		out_int(r->out, look, bits_of(r, op), op->width, op->is_signed);
		break;
	case OP_BOOL:
		put_bool(r, op);
		break;
	case OP_ENUM:
		put_enum(r, op);
		break;
	case OP_POINTER:
		out_hex(r->out, look, bits_of(r, op));
		break;
	case OP_CHAR:
		out_char(r->out, look, *p, op->is_signed);
		break;
	case OP_REAL:
		out_real(r->out, &own, &r->d->reals[op->aux], p);
		break;
	case OP_HEX:
		out_hex_number(r->out, &own, p, op->size);
		break;
	default:
		out_hex_dump(r->out, look, p, op->size);
	}
}

static const struct op *step(struct run *r, const struct op *op)
{
	switch ((enum op_code)op->code) {
	case OP_TEXT:
		return op + 1;
	case OP_STRING:
	case OP_WIDE_STRING:
		put_string(r, op);
		return op + 1;
	case OP_GROUP:
		return group(r, op);
	case OP_LOOP:
		return begin_loop(r, op);
	case OP_RECIPE:
		return recipe(r, op);
	case OP_NEXT:
		return next_element(r);
	case OP_IF:
		return holds(r, &r->d->cases[op->aux]) ? op + 1 : r->d->ops + op->next;
	case OP_VARIANT:
		return is_variant(r, &r->d->variants[op->aux]) ? op + 1 : r->d->ops + op->next;
	case OP_JUMP:
		return r->d->ops + op->next;
	default:
		if (op->off > r->base.n || op->size > r->base.n - op->off)
			put_note(r, "<cut off>");
		else
			put_value(r, op);
		return op + 1;
	}
}

int cairn_decode_run(const struct cairn_decode *d, const void *bytes, size_t n_bytes,
		     struct cairn_text_out *out)
{
	struct run r;

	r.d = d;
	r.out = out;
	r.base = (struct base){bytes, n_bytes};
	r.budget = (uint64_t)n_bytes * BUDGET_PER_BYTE + BUDGET_BASE;
	r.depth = 0;
	r.n_room = 0;
	for (const struct op *op = d->ops;; op = step(&r, op)) {
		put_text(&r, op);
		if (op->code == OP_END)
			return out->failed;
	}
}

/* ---- lengths ---- */

uint64_t cairn_decode_size(const struct cairn_decode *d)
{
	return d->flexible ? d->least : d->size;
}

bool cairn_decode_is_flexible(const struct cairn_decode *d)
{
	return d->flexible;
}

/* A perf sample is a length of 4 bytes and the record, filled up to a multiple of 8 together. */
enum { PERF_FILL_MAX = 7 };

int cairn_decode_check(const struct cairn_decode *d, size_t n_bytes, enum cairn_record_rule rule,
		       struct cairn_err *err)
{
	uint64_t least = cairn_decode_size(d), most = d->size;

	if (n_bytes < least)
		return err_set(err, -EBADMSG, "%s, but the type has %llu%s",
			       cairn_counted(n_bytes, "byte").text, (unsigned long long)least,
			       d->flexible ? " before its flexible array" : "");
	if (d->flexible)
		return 0;
	if (rule == CAIRN_RECORD_PERF)
		most += PERF_FILL_MAX;
	if (n_bytes > most)
		return err_set(err, -EBADMSG, "%s, %llu more than the type%s",
			       cairn_counted(n_bytes, "byte").text,
			       (unsigned long long)(n_bytes - d->size),
			       rule == CAIRN_RECORD_PERF ? ", where a perf buffer adds 7 at most"
							 : "");
	return 0;
}
