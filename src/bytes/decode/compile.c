/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a type to a plan
 *
 * The type graph is walked once, and structs in structs become one flat array of operations; only
 * arrays stay loops. The part of the record that a member may see is computed here as far as the
 * type determines it. A view never grows on the way down: a member gets at most its own size, so
 * that an array of unknown length in the middle of a struct cannot run over its neighbours. The
 * exception is the last member, which may go on to the end of the record: a flexible array is
 * longer than its struct's size.
 *
 *	struct { int n; short s; char text[]; }      12 bytes given
 *	  .n     sees 4
 *	  .s     sees 2
 *	  .text  sees 6, although the struct's size is 8
 *
 * The functions call each other in circles; max_depth, which is 64 at most, ends that. Depth does
 * not bound the work: a union of 10 unions of 10 unions ... has 10^16 values over the same four
 * bytes. So the number of operations is limited.
 */
#include "decode/compile.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"
#include "base/opts.h"

enum { DEPTH_USUAL = 16 };

/* The largest structs of a kernel, with everything in them to a depth of 16, need some 10,000. */
enum { OPS_MAX = 1 << 17 };

static const char CUT_OFF[] = "cut off";

static void compile_value(struct compiler *c, uint32_t id, struct view v, unsigned int depth);

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

static bool is_number(const struct cairn_type *t)
{
	return t->encoding != CAIRN_ENC_OPAQUE && t->encoding != CAIRN_ENC_COMPLEX;
}

/* ---- the output ---- */

static void add_more(struct compiler *c)
{
	add_text(c, c->look.json ? "\"...\"" : "...");
}

/* A value of @size bytes at the view's start. */
static void emit_at(struct compiler *c, struct view v, uint64_t size, struct op op)
{
	if (is_outside(v, 0, size)) {
		add_note(c, CUT_OFF);
		return;
	}
	op.off = v.off;
	op.size = size;
	emit(c, op);
}

/* ---- scalars ---- */

/* Bits of a number, whole or a bit-field: @op has width and shift. */
static void compile_bits(struct compiler *c, const struct cairn_type *t, struct view v,
			 uint64_t size, struct op op)
{
	bool whole = !op.shift && op.width == size * 8;

	op.big_endian = is_big_endian(c, t, v);
	op.is_signed = is_signed(t);
	if (!is_number(t) || (t->kind != CAIRN_T_ENUM && t->kind != CAIRN_T_INT)) {
		op.code = OP_POINTER;
	} else if (t->kind == CAIRN_T_ENUM && op.width <= 64) {
		op.code = OP_ENUM;
		op.aux = compile_enum(c, t, op.width);
	} else if (t->kind == CAIRN_T_INT && t->encoding == CAIRN_ENC_BOOL) {
		op.code = OP_BOOL;
	} else if (is_char(t) && op.width == 8) {
		op.code = whole ? OP_CHAR : OP_BITS;
	} else if (whole && !c->look.hex && (size == 1 || size == 2 || size == 4 || size == 8)) {
		op.code = op.is_signed ? OP_SINT : OP_UINT;
	} else {
		op.code = OP_BITS;
	}
	emit_at(c, v, size, op);
}

static void compile_real(struct compiler *c, const struct cairn_type *t, struct view v)
{
	struct cairn_type copy = {.kind = t->kind, .encoding = t->encoding, .size = t->size};

	if (t->name && !(copy.name = arena_strdup(c->arena, t->name)))
		out_of_memory(c);
	if (!VEC_ADD(&c->reals, copy))
		out_of_memory(c);
	emit_at(c, v, t->size,
		(struct op){.code = OP_REAL,
			    .aux = (uint32_t)c->reals.n - 1,
			    .big_endian = is_big_endian(c, t, v)});
}

static void compile_scalar(struct compiler *c, const struct cairn_type *t, struct view v)
{
	if (!t->size)
		add_note(c, "incomplete");
	else if (t->kind == CAIRN_T_FLOAT)
		compile_real(c, t, v);
	else if (t->size > sizeof(value_u128) || !is_number(t))
		emit_at(c, v, t->size,
			(struct op){.code = OP_HEX, .big_endian = is_big_endian(c, t, v)});
	else
		compile_bits(c, t, v, t->size, (struct op){.width = (uint8_t)(t->size * 8)});
}

/* A bit-field of the struct that @v shows. */
static void compile_bit_field(struct compiler *c, const struct cairn_member *m, struct view v)
{
	uint64_t byte = m->bit_off / 8;
	uint8_t shift = m->bit_off % 8;

	if (m->bit_size > 128) {
		add_note(c, "wider than 128 bits");
		return;
	}
	uint64_t size = (shift + m->bit_size + 7) / 8;
	if (is_outside(v, byte, size))
		add_note(c, CUT_OFF);
	else
		compile_bits(c, type_of(c, m->type), (struct view){v.off + byte, v.end, v.swapped},
			     size, (struct op){.shift = shift, .width = (uint8_t)m->bit_size});
}

/* ---- structs ---- */

/* The part that member @i may see: see the comment at the top. */
static struct view member_view(const struct compiler *c, const struct cairn_type *t, uint32_t i,
			       struct view v)
{
	const struct cairn_member *m = &t->members[i];
	uint64_t off = m->bit_off / 8, size = cairn_types_size(c->types, m->type);
	bool last = t->kind == CAIRN_T_UNION || i == t->n_members - 1 || off >= t->size ||
		    size >= t->size - off;
	uint64_t end = v.off + off + size;

	return (struct view){v.off + off, last || size > OFF_MAX || end > v.end ? v.end : end,
			     t->byte_swapped};
}

void compile_member(struct compiler *c, const struct cairn_type *t, uint32_t i, struct view v,
		    unsigned int depth)
{
	const struct cairn_member *m = &t->members[i];

	if (m->dynamic)
		add_note(c, "offset not known");
	else if (m->bit_size)
		compile_bit_field(c, m, (struct view){v.off, v.end, t->byte_swapped});
	else if (m->bit_off % 8)
		add_note(c, "not at a byte boundary");
	else if (is_outside(v, m->bit_off / 8, 0))
		add_note(c, CUT_OFF);
	else
		compile_value(c, m->type, member_view(c, t, i, v), depth);
}

/* Bytes [from, to) of the struct that @v shows belong to no member. */
static void compile_padding(struct compiler *c, struct view v, uint64_t from, uint64_t to,
			    bool *first)
{
	char key[64];

	if (is_outside(v, from, to - from))
		return;
	add_separator(c, first);
	snprintf(key, sizeof(key), c->look.json ? "\"<padding %llu>\":" : "<padding %llu> = ",
		 (unsigned long long)(v.off + from));
	add_text(c, key);
	emit(c, (struct op){.code = OP_DUMP, .off = v.off + from, .size = to - from});
}

/* Bytes that member @m covers end here. */
static uint64_t end_of(const struct compiler *c, const struct cairn_member *m)
{
	uint64_t size = cairn_types_size(c->types, m->type);

	if (m->bit_size)
		return m->bit_off / 8 + (m->bit_off % 8 + m->bit_size + 7) / 8;
	return size > OFF_MAX ? OFF_MAX : m->bit_off / 8 + size;
}

/*
 * In JSON the members of an anonymous member are keys of the object around it. So are, in both
 * styles, the chosen arms of a union's members.
 */
static bool compile_hoisted(struct compiler *c, uint32_t id, const struct cairn_type *t, uint32_t i,
			    struct view v, unsigned int depth, bool *first)
{
	const struct cairn_member *m = &t->members[i];
	const struct cairn_type *in = type_of(c, m->type);

	if (m->is_base_class || !is_aggregate(in) || m->dynamic || m->bit_size || m->bit_off % 8 ||
	    depth + 1 >= c->max_depth || is_outside(v, m->bit_off / 8, 0))
		return false;
	bool chosen = in->kind == CAIRN_T_UNION && has_choice(c, in, m->name);
	bool hoisted = c->look.json && !m->name;
	struct view inner = member_view(c, t, i, v);
	/* A variant may show nothing: it stands where the separators are right all the same. */
	if (!chosen && variants_of(c, m) && (!*first || i + 1 == t->n_members)) {
		compile_variants(c, m->type, inner, depth + 1, first);
		return true;
	}
	if (chosen && !hoisted) {
		bool inner_first = true;
		add_separator(c, first);
		add_key(c, m, i);
		add_text(c, "{");
		compile_arms(c, id, v, m, in, inner, depth + 1, &inner_first);
		add_text(c, "}");
	} else if (chosen) {
		compile_arms(c, id, v, m, in, inner, depth + 1, first);
	} else if (hoisted) {
		compile_members(c, m->type, inner, depth + 1, first);
	}
	return chosen || hoisted;
}

/* A discriminant shows in the name of its variant. */
static bool is_left_out(const struct compiler *c, const struct cairn_member *m)
{
	return m->is_discriminant && !c->raw;
}

void compile_members(struct compiler *c, uint32_t id, struct view v, unsigned int depth,
		     bool *first)
{
	const struct cairn_type *t = type_of(c, id);
	uint64_t covered = 0;
	/* The next gap, and the end, may hold members whose offset is not known. */
	bool unplaced = false, tail_unplaced = false;

	for (uint32_t i = 0; i < t->n_members && !c->rc; i++) {
		const struct cairn_member *m = &t->members[i];

		if (c->ops.n > OPS_MAX) {
			add_separator(c, first);
			add_text(c, c->look.json ? "\"...\":\"...\"" : "...");
			return;
		}
		if (c->padding && t->kind != CAIRN_T_UNION && !m->dynamic && !unplaced &&
		    m->bit_off / 8 > covered)
			compile_padding(c, v, covered, m->bit_off / 8, first);
		unplaced = m->dynamic ? unplaced || !m->is_base_class : false;
		tail_unplaced |= m->dynamic && m->is_base_class;
		covered = !m->dynamic && end_of(c, m) > covered ? end_of(c, m) : covered;
		if (is_left_out(c, m) || compile_hoisted(c, id, t, i, v, depth, first))
			continue;
		add_separator(c, first);
		add_key(c, m, i);
		compile_member(c, t, i, v, depth + 1);
	}
	if (c->padding && t->size > covered && !unplaced && !tail_unplaced)
		compile_padding(c, v, covered, t->size, first);
}

/*
 * A struct or array that is completely absent is one <cut off>; the rest is compiled up to
 * end_group().
 */
static uint32_t begin_group(struct compiler *c, struct view v, bool may_be_empty)
{
	return emit(c, (struct op){.code = OP_GROUP, .off = v.off, .has_count = !may_be_empty});
}

static void end_group(struct compiler *c, uint32_t group)
{
	set_next(c, group, label(c));
}

static void compile_struct(struct compiler *c, uint32_t id, const struct cairn_type *t,
			   struct view v, unsigned int depth)
{
	bool first = true;

	if (t->declaration || t->unread) {
		add_note(c, "incomplete");
		return;
	}
	uint32_t group = begin_group(c, v, !t->size);
	if (t->size && v.off >= v.end) {
		add_note(c, CUT_OFF);
	} else if (depth >= c->max_depth) {
		add_more(c);
	} else if (!compile_enum_value(c, t, v, depth)) {
		add_text(c, "{");
		compile_members(c, id, v, depth, &first);
		add_text(c, "}");
	}
	end_group(c, group);
}

/* ---- arrays ---- */

/*
 * Distance of two elements: more than an element's size where the debug information gives a stride.
 */
static uint64_t stride_of(const struct compiler *c, const struct cairn_type *t)
{
	uint64_t elem = cairn_types_size(c->types, t->ref);
	uint64_t each = t->has_count && t->count ? t->size / t->count : 0;

	return each > elem && each * t->count == t->size ? each : elem;
}

static uint64_t bytes_seen(struct view v)
{
	return v.end == UINT64_MAX ? UINT64_MAX : v.end > v.off ? v.end - v.off : 0;
}

/* @unit: bytes of a character. */
static void compile_string(struct compiler *c, const struct cairn_type *t, struct view v,
			   uint8_t unit)
{
	emit(c, (struct op){.code = unit == 1 ? OP_STRING : OP_WIDE_STRING,
			    .width = (uint8_t)(8 * unit),
			    .off = v.off,
			    .size = t->count * unit,
			    .has_count = t->has_count,
			    .limit = bytes_seen(v)});
}

/* Bytes of a character of an array that is text; 0: it is none. */
static uint8_t unit_of_string(const struct compiler *c, const struct cairn_type *t, struct view v)
{
	uint8_t wide = wide_char_bytes(c->types, t->ref);

	if (t->vector)
		return 0;
	if (is_char(type_of(c, t->ref)))
		return 1;
	bool has_size = !t->has_count || t->size == t->count * wide;
	return c->raw || c->look.hex || v.swapped || !has_size ? 0 : wide;
}

static void compile_array(struct compiler *c, const struct cairn_type *t, struct view v,
			  unsigned int depth)
{
	uint64_t stride = stride_of(c, t);
	struct loop loop = {.has_count = t->has_count,
			    .count = t->count,
			    .stride = stride,
			    .limit = bytes_seen(v)};

	uint8_t unit = unit_of_string(c, t, v);

	if (unit) {
		compile_string(c, t, v, unit);
		return;
	}
	uint32_t group = begin_group(c, v, !t->has_count || !t->size);
	if (t->has_count && t->size && v.off >= v.end) {
		add_note(c, CUT_OFF);
	} else if (depth >= c->max_depth) {
		add_more(c);
	} else {
		add_text(c, c->look.json ? "[" : "{");
		if (!VEC_ADD(&c->loops, loop))
			out_of_memory(c);
		uint32_t at = emit(c, (struct op){.code = OP_LOOP,
						  .off = v.off,
						  .aux = (uint32_t)c->loops.n - 1});
		compile_value(c, t->ref,
			      (struct view){0, stride < OFF_MAX ? stride : UINT64_MAX, v.swapped},
			      depth + 1);
		emit(c, (struct op){.code = OP_NEXT});
		set_next(c, at, (uint32_t)c->ops.n);
		add_text(c, c->look.json ? "]" : "}");
	}
	end_group(c, group);
}

/* ---- values that are elsewhere ---- */

/* Elements are seen from the start of each. */
static void compile_elements(struct compiler *c, const struct recipe *recipe, uint32_t at,
			     unsigned int depth)
{
	const struct view element = {0, recipe->element_bytes, false};

	if (depth + 1 >= c->max_depth)
		add_more(c);
	else
		compile_value(c, recipe->element, element, depth + 1);
	emit(c, (struct op){.code = OP_NEXT});
	set_next(c, at, (uint32_t)c->ops.n);
}

static bool compile_recipe(struct compiler *c, uint32_t id, struct view v, unsigned int depth)
{
	struct recipe_plan p = {0};

	/* Words in the other byte order are no machine's that has these types. */
	if (c->raw || c->look.big_endian || !recipe_of(c->types, id, &p.recipe))
		return false;
	if (p.recipe.kind == RECIPE_POINTER) {
		v.off += p.recipe.ptr;
		emit_at(c, v, 8, (struct op){.code = OP_POINTER, .width = 64});
		return true;
	}
	p.loop = (struct loop){
		.stride = p.recipe.element_bytes, .limit = UINT64_MAX, .closes = true};
	if (is_outside(v, 0, p.recipe.size)) {
		add_note(c, CUT_OFF);
		return true;
	}
	if (!VEC_ADD(&c->recipes, p))
		out_of_memory(c);
	uint32_t at = emit(c, (struct op){.code = OP_RECIPE,
					  .off = v.off,
					  .size = p.recipe.size,
					  .aux = (uint32_t)c->recipes.n - 1});
	if (p.recipe.kind == RECIPE_ARRAY)
		compile_elements(c, &p.recipe, at, depth);
	return true;
}

static void compile_value(struct compiler *c, uint32_t id, struct view v, unsigned int depth)
{
	const struct cairn_type *t = type_of(c, id);

	if (c->ops.n > OPS_MAX) {
		add_more(c);
		return;
	}
	if (compile_recipe(c, id, v, depth))
		return;
	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		compile_struct(c, id, t, v, depth);
		break;
	case CAIRN_T_ARRAY:
		compile_array(c, t, v, depth);
		break;
	case CAIRN_T_INT:
	case CAIRN_T_FLOAT:
	case CAIRN_T_ENUM:
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
	case CAIRN_T_MEMBER_PTR:
		compile_scalar(c, t, v);
		break;
	default:
		add_note(c, "no value");
	}
}

/* ---- flexible arrays ---- */

/*
 * Unions of structs that end in unions; more than this, in each other or in all, is no one's
 * layout.
 */
enum { TAIL_DEPTH = 16, TAILS_MAX = 1 << 16 };

/* Offset of the flexible array that @id ends in; UINT64_MAX: it does not. */
static uint64_t flexible_at(struct compiler *c, uint32_t id, uint64_t off, unsigned int depth)
{
	const struct cairn_type *t = type_of(c, id);
	uint64_t least = UINT64_MAX;

	if (t->kind == CAIRN_T_ARRAY)
		return !t->has_count || !t->count ? off : UINT64_MAX;
	if (!is_aggregate(t) || depth == TAIL_DEPTH || c->n_tails++ > TAILS_MAX)
		return UINT64_MAX;
	uint32_t from = t->kind == CAIRN_T_UNION || !t->n_members ? 0 : t->n_members - 1;
	for (uint32_t i = from; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		if (m->dynamic || m->bit_size || m->bit_off / 8 > OFF_MAX)
			continue;
		uint64_t at = flexible_at(c, m->type, off + m->bit_off / 8, depth + 1);
		least = at < least ? at : least;
	}
	return least;
}

/* ---- entry ---- */

static int read_opts(const struct cairn_value_opts *opts, struct compiler *c,
		     struct cairn_decode *d)
{
	struct cairn_value_opts o;
	int rc = opts_take(&o, sizeof(o), opts, NULL);
	if (rc < 0)
		return rc;
	if (o.style != CAIRN_VALUE_TEXT && o.style != CAIRN_VALUE_JSON)
		return -EINVAL;
	unsigned int depth = o.max_depth ? o.max_depth : DEPTH_USUAL;
	c->look = (struct look){.json = o.style == CAIRN_VALUE_JSON,
				.hex = o.hex,
				.big_endian = o.big_endian,
				.long_double = o.long_double};
	c->padding = o.padding;
	c->max_elems = o.max_elems;
	c->max_depth = depth < DEPTH_LIMIT ? depth : DEPTH_LIMIT;
	c->raw = o.raw;
	c->arms = o.arms;
	c->n_arms = o.n_arms;
	d->read = o.read;
	d->read_ctx = o.read_ctx;
	return 0;
}

static void *keep(struct compiler *c, const void *p, size_t n, size_t size)
{
	void *copy = arena_array(c->arena, n + 1, size);

	if (!copy)
		out_of_memory(c);
	else if (n)
		memcpy(copy, p, n * size);
	return copy;
}

static void finish(struct compiler *c, struct cairn_decode *d)
{
	emit(c, (struct op){.code = OP_END});
	d->look = c->look;
	d->max_elems = c->max_elems;
	d->n_ops = (uint32_t)c->ops.n;
	d->ops = keep(c, c->ops.p, c->ops.n, sizeof(*c->ops.p));
	d->text = keep(c, c->text.p, c->text.n, 1);
	d->loops = keep(c, c->loops.p, c->loops.n, sizeof(*c->loops.p));
	d->recipes = keep(c, c->recipes.p, c->recipes.n, sizeof(*c->recipes.p));
	d->enums = keep(c, c->enums.p, c->enums.n, sizeof(*c->enums.p));
	d->cases = keep(c, c->cases.p, c->cases.n, sizeof(*c->cases.p));
	d->variants = keep(c, c->variants.p, c->variants.n, sizeof(*c->variants.p));
	d->ranges = keep(c, c->ranges.p, c->ranges.n, sizeof(*c->ranges.p));
	d->reals = keep(c, c->reals.p, c->reals.n, sizeof(*c->reals.p));
}

static void compile_root(struct compiler *c, uint32_t id, const struct cairn_member *member,
			 struct cairn_decode *d)
{
	const struct view all = {0, UINT64_MAX, false};

	if (member) {
		/* The bytes as a struct of this one member, which then may be a flexible array. */
		const struct cairn_type around = {
			.kind = CAIRN_T_STRUCT, .n_members = 1, .members = member};
		compile_member(c, &around, 0, all, 0);
		return;
	}
	uint64_t flexible = flexible_at(c, id, 0, 0);
	d->size = cairn_types_size(c->types, id);
	d->flexible = flexible != UINT64_MAX;
	d->least = flexible < d->size ? flexible : d->size;
	compile_value(c, id, all, 0);
}

int plan_compile(const struct cairn_types *types, uint32_t id, const struct cairn_member *member,
		 const struct cairn_value_opts *opts, struct cairn_decode **ret,
		 struct cairn_err *err)
{
	struct cairn_decode *d = calloc(1, sizeof(*d));
	struct compiler c = {.types = types, .err = err};

	if (!d)
		return err_nomem(err, "a plan for decoding");
	if (read_opts(opts, &c, d) < 0) {
		free(d);
		return err_set(err, -EINVAL, "options of values that are not known here");
	}
	arena_init(&d->arena);
	c.arena = &d->arena;
	c.arm_used = calloc(c.n_arms + 1, sizeof(*c.arm_used));
	if (!c.arm_used)
		out_of_memory(&c);
	else
		compile_root(&c, id, member, d);
	finish(&c, d);
	if (!c.rc)
		c.rc = check_arms(&c, err);
	map_fini(&c.enum_of);
	VEC_FREE(&c.ops);
	VEC_FREE(&c.text);
	VEC_FREE(&c.loops);
	VEC_FREE(&c.recipes);
	VEC_FREE(&c.enums);
	VEC_FREE(&c.cases);
	VEC_FREE(&c.variants);
	VEC_FREE(&c.ranges);
	VEC_FREE(&c.reals);
	free(c.arm_used);
	if (c.rc) {
		cairn_decode_free(d);
		return c.rc;
	}
	*ret = d;
	return 0;
}

void cairn_decode_free(struct cairn_decode *d)
{
	if (!d)
		return;
	arena_fini(&d->arena);
	free(d);
}
