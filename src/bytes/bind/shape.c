/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structs beside the accessors
 *
 * A language lays its structs out in its own way, so each one is written with all its padding, and
 * the compiler or the module compares size and offsets. If a language cannot put a member at its
 * offset, the member becomes bytes. If it cannot express a struct at all, there is none, with the
 * reason:
 *
 *	Rust    #[repr(C)]; packed where the alignment of a member does not fit
 *	Python  ctypes, packed
 *	Go      neither packed structs nor unions
 *
 * Bit-fields are bytes in these. Java and TypeScript have objects of values, which have no layout:
 * a record with all members, and a function that reads it.
 */
#include "bind/walk.h"

#include <errno.h>
#include <stdlib.h>

static const struct cairn_type *type_of(const struct bind_file *file, uint32_t id)
{
	return cairn_types_get(file->types, cairn_types_resolve(file->types, id));
}

static bool is_group(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION;
}

struct shaper {
	struct bind_file *file;
	enum cairn_bind_lang lang;
	unsigned int depth;
	bool no_memory;
};

static bool has_layout(const struct shaper *s)
{
	return s->lang != CAIRN_BIND_JAVA && s->lang != CAIRN_BIND_TYPESCRIPT;
}

static struct bind_shape *make_shape(struct shaper *s, uint32_t id, uint32_t type,
				     const char *otherwise);

/* ---- parts ---- */

/* Bytes of all elements. */
static uint64_t size_of(const struct bind_part *p)
{
	uint64_t size = p->value.size;

	for (uint32_t i = 0; i < p->value.n_dims; i++)
		size *= p->value.dims[i].count;
	return size;
}

static void make_bytes(struct bind_part *p)
{
	uint64_t size = size_of(p);

	p->value = (struct bind_field){.kind = BIND_BYTES, .off = p->value.off, .size = size};
	p->shape = NULL;
	p->as_bytes = true;
}

/* The elements of an array; false: it has none, or no number of them. */
static bool take_array(const struct shaper *s, uint32_t id, struct bind_part *p, uint32_t *ret)
{
	const struct cairn_type *t = type_of(s->file, id);

	for (; t->kind == CAIRN_T_ARRAY && !(bind_is_text(type_of(s->file, t->ref)) && !t->vector);
	     t = type_of(s->file, id)) {
		uint64_t size = cairn_types_size(s->file->types, t->ref);

		if (!size || !t->has_count || !t->count || p->value.n_dims == BIND_DIMS_MAX)
			return false;
		/* Elements with gaps between them. */
		if (t->size / t->count != size)
			return false;
		p->value.dims[p->value.n_dims++] = (struct bind_dim){t->count, 0};
		id = t->ref;
	}
	*ret = id;
	return true;
}

/* The type of an element, at p->value.off. */
static bool take_element(struct shaper *s, uint32_t id, bool swapped, const char *otherwise,
			 struct bind_part *p)
{
	const struct cairn_type *t = type_of(s->file, id);
	struct bind_field value;

	if (t->kind == CAIRN_T_ARRAY) {
		value = (struct bind_field){.kind = BIND_TEXT, .size = t->has_count ? t->count : 0};
	} else if (is_group(t)) {
		value = (struct bind_field){.kind = BIND_BYTES, .size = t->size};
		p->shape = t->size ? make_shape(s, cairn_types_resolve(s->file->types, id), id,
						otherwise)
				   : NULL;
	} else if (!bind_value_of(s->file, id, swapped, &value)) {
		return false;
	}
	value.off = p->value.off;
	value.n_dims = p->value.n_dims;
	for (uint32_t i = 0; i < value.n_dims; i++)
		value.dims[i] = p->value.dims[i];
	p->value = value;
	return value.size != 0;
}

static const char *type_name(const struct shaper *s, uint32_t id)
{
	char text[256];

	cairn_types_name(s->file->types, id, text, sizeof(text));
	return arena_strdup(&s->file->arena, text);
}

static const char OFFSET_NOT_KNOWN[] = "it has a member whose offset is not known";

/* False: it is not in the struct, as its place or its size is not known, or it has none. */
static bool take_member(struct shaper *s, const struct cairn_type *t, uint32_t i, const char *owner,
			struct bind_part *p)
{
	const struct cairn_member *m = &t->members[i];
	struct arena *arena = &s->file->arena;
	uint32_t element;

	if (m->dynamic || (!m->bit_size && m->bit_off % 8) || (m->bit_size && !m->name))
		return false;
	p->step = m->name ? bind_identifier(arena, m->name) : bind_anonymous(arena, i);
	p->type = type_name(s, m->type);
	if (!p->step || !p->type)
		return false;
	if (m->bit_size) {
		bool is_bits = bind_bits_of(s->file, m, t->byte_swapped, &p->value);

		p->value.value_size = p->value.bits <= 32 ? 4 : 8;
		return is_bits;
	}
	p->value.off = m->bit_off / 8;
	const char *otherwise = arena_printf(arena, "%s_%s", owner, p->step);
	return otherwise && take_array(s, m->type, p, &element) &&
	       take_element(s, element, t->byte_swapped, otherwise, p);
}

static int add_part(struct shaper *s, struct bind_shape *shape, struct map *names,
		    struct bind_part p, const char *name)
{
	name = name ? bind_part_name(s->file, s->lang, name) : NULL;
	p.name = name ? bind_unique(&s->file->arena, names, name) : NULL;
	if (!p.name || !VEC_ADD(&shape->parts, p))
		return -ENOMEM;
	return p.step ? map_put(&shape->steps, map_hash_str(p.step), shape->parts.n - 1) : 0;
}

/* ---- how a language lays it out ---- */

static uint64_t alignment(const struct shaper *s, const struct bind_part *p)
{
	if (s->lang == CAIRN_BIND_PYTHON)
		return 1;
	if (p->shape)
		return p->shape->align;
	if (p->value.kind == BIND_TEXT || p->value.kind == BIND_BYTES || p->value.kind == BIND_BOOL)
		return 1;
	return p->value.size;
}

/* True if the language has no type for it. */
static bool must_be_bytes(const struct shaper *s, const struct bind_part *p)
{
	const struct bind_field *f = &p->value;
	bool is_number = f->kind == BIND_INT || f->kind == BIND_FLOAT;

	if (p->shape)
		return p->shape->why_not ||
		       (s->lang == CAIRN_BIND_GO && p->value.off % p->shape->align);
	if (f->size == 1 || !is_number)
		return false;
	if (f->size == 16 && s->lang != CAIRN_BIND_RUST)
		return true;
	return f->big_endian != s->file->opts->big_endian ||
	       (s->lang == CAIRN_BIND_GO && f->off % f->size);
}

static int add_gap(struct shaper *s, struct bind_shape *shape, struct map *names, uint64_t off,
		   uint64_t end, bool has_bits)
{
	struct bind_part gap = {.value = {.kind = BIND_BYTES, .off = off, .size = end - off}};
	const char *name = "bytes";

	if (!shape->is_union)
		name = arena_printf(&s->file->arena, "%s_%llu", has_bits ? "bits" : "pad",
				    (unsigned long long)off);
	return add_part(s, shape, names, gap, name);
}

static void fit(struct shaper *s, struct bind_shape *shape, const struct bind_part *p)
{
	uint64_t align = alignment(s, p);

	if (p->value.off % align)
		shape->is_packed = true;
	shape->align = align > shape->align ? align : shape->align;
}

static void finish_layout(struct shaper *s, struct bind_shape *shape)
{
	static const char *const no_multiple =
		"its size is no multiple of its members' alignment, and Go packs no structs";

	if (shape->size % shape->align)
		shape->is_packed = true;
	if (s->lang == CAIRN_BIND_GO && shape->is_union)
		shape->why_not = "Go has no unions";
	else if (s->lang == CAIRN_BIND_GO && shape->is_packed)
		shape->why_not = no_multiple;
	else if (s->lang == CAIRN_BIND_PYTHON && shape->is_union && s->file->opts->big_endian)
		shape->why_not = "ctypes has no unions in big-endian order before Python 3.11";
	if (shape->is_packed)
		shape->align = 1;
}

/* Members in their order, with the bytes between them; of a union, all of it as bytes as well. */
static int take_laid_out(struct shaper *s, struct bind_shape *shape, const struct cairn_type *t,
			 struct map *names, const char *owner)
{
	uint64_t pos = 0;
	bool has_bits = false;
	int rc = 0;

	for (uint32_t i = 0; i < t->n_members && !rc; i++) {
		struct bind_part p = {0};

		if (t->members[i].dynamic) {
			shape->why_not = OFFSET_NOT_KNOWN;
			return 0;
		}
		if (!take_member(s, t, i, owner, &p))
			continue;
		has_bits |= p.value.bits != 0;
		if (p.value.bits)
			continue;
		if (must_be_bytes(s, &p))
			make_bytes(&p);
		if ((!shape->is_union && p.value.off < pos) ||
		    p.value.off + size_of(&p) > shape->size) {
			shape->why_not = "its members overlap";
			return 0;
		}
		fit(s, shape, &p);
		if (!shape->is_union && p.value.off > pos)
			rc = add_gap(s, shape, names, pos, p.value.off, has_bits), has_bits = false;
		pos = shape->is_union ? 0 : p.value.off + size_of(&p);
		rc = rc ? rc : add_part(s, shape, names, p, p.step);
	}
	if (!rc && pos < shape->size)
		rc = add_gap(s, shape, names, pos, shape->size, has_bits && !shape->is_union);
	finish_layout(s, shape);
	return rc;
}

/* ---- values without a layout ---- */

/* A constructor of Java takes 255 arguments with its object; long and double count as two. */
static unsigned int java_slots(const struct bind_part *p)
{
	const struct bind_field *f = &p->value;

	if (p->shape || f->n_dims || (f->kind != BIND_INT && f->kind != BIND_FLOAT))
		return 1;
	return f->bits || f->size == 8 || (f->kind == BIND_INT && f->size == 4 && !f->is_signed)
		       ? 2
		       : 1;
}

static int take_values(struct shaper *s, struct bind_shape *shape, const struct cairn_type *t,
		       struct map *names, const char *owner)
{
	unsigned int slots = 0;
	int rc = 0;

	for (uint32_t i = 0; i < t->n_members && !rc; i++) {
		struct bind_part p = {0};

		if (t->members[i].dynamic)
			shape->why_not = OFFSET_NOT_KNOWN;
		if (!take_member(s, t, i, owner, &p))
			continue;
		if (p.shape && p.shape->why_not)
			make_bytes(&p);
		slots += java_slots(&p);
		rc = add_part(s, shape, names, p, p.step);
	}
	if (s->lang == CAIRN_BIND_JAVA && slots > 254)
		shape->why_not =
			"a record has up to 254 components, where long and double count as two";
	return rc;
}

/* ---- shapes ---- */

/* The record's own, or a new one: "Peer" of struct peer. */
static const char *camel_of(struct shaper *s, uint32_t id, const char *name)
{
	struct bind_file *file = s->file;

	for (size_t i = 0; i < file->records.n; i++)
		if (cairn_types_resolve(file->types, file->records.p[i].id) == id)
			return file->records.p[i].camel;
	const char *ident = bind_identifier(&file->arena, name);
	return ident ? bind_top_name(file, bind_camel_case(&file->arena, ident)) : NULL;
}

static const char *source_name_of(const struct shaper *s, uint32_t id, uint32_t type)
{
	const char *name = type_of(s->file, id)->name;

	for (; !name && type != id; type = cairn_types_get(s->file->types, type)->ref)
		if (cairn_types_get(s->file->types, type)->kind == CAIRN_T_TYPEDEF)
			name = cairn_types_get(s->file->types, type)->name;
	return name;
}

static int fill_shape(struct shaper *s, struct bind_shape *shape, const struct cairn_type *t,
		      const char *owner)
{
	struct map names = {0};
	int rc = has_layout(s) ? take_laid_out(s, shape, t, &names, owner)
			       : take_values(s, shape, t, &names, owner);

	map_fini(&names);
	return rc;
}

static void free_shape(struct bind_shape *shape)
{
	VEC_FREE(&shape->parts);
	map_fini(&shape->steps);
}

/* NULL: no memory. */
static struct bind_shape *new_shape(struct shaper *s, uint32_t id, const char *source_name)
{
	const struct cairn_type *t = cairn_types_get(s->file->types, id);
	const char *camel = camel_of(s, id, source_name);
	struct bind_shape *shape = camel ? arena_alloc(&s->file->arena, sizeof(*shape)) : NULL;

	if (!shape)
		return NULL;
	*shape = (struct bind_shape){.source_name = source_name,
				     .size = t->size,
				     .align = 1,
				     .is_union = t->kind == CAIRN_T_UNION};
	shape->name = arena_printf(&s->file->arena, "%sStruct", camel);
	s->depth++;
	int rc = shape->name ? fill_shape(s, shape, t, source_name) : -ENOMEM;
	s->depth--;
	if (!rc && VEC_ADD(&s->file->shapes, shape))
		return shape;
	free_shape(shape);
	return NULL;
}

/* NULL: no memory, or a struct in itself, which only damaged input has. */
static struct bind_shape *make_shape(struct shaper *s, uint32_t id, uint32_t type,
				     const char *otherwise)
{
	struct bind_file *file = s->file;
	const char *name = source_name_of(s, id, type);
	uint64_t number;

	if (map_get(&file->shape_of, id, &number))
		return number ? file->shapes.p[number - 1] : NULL;
	if (s->depth == BIND_DEPTH_MAX)
		return NULL;
	struct bind_shape *shape = NULL;
	if (map_put(&file->shape_of, id, 0) >= 0)
		shape = new_shape(s, id, name ? name : otherwise);
	if (!shape || map_put(&file->shape_of, id, file->shapes.n) < 0)
		s->no_memory = true;
	return shape;
}

int bind_shape_all(struct bind_file *file, enum cairn_bind_lang lang)
{
	struct shaper s = {.file = file, .lang = lang};

	/* C has its structs, and JSON, which is no language, needs none. */
	if (lang == CAIRN_BIND_C || lang == CAIRN_BIND_JSON)
		return 0;
	for (size_t i = 0; i < file->records.n && !s.no_memory; i++) {
		uint32_t id = cairn_types_resolve(file->types, file->records.p[i].id);

		make_shape(&s, id, file->records.p[i].id, file->records.p[i].name);
	}
	return s.no_memory ? -ENOMEM : 0;
}

void bind_free_shapes(struct bind_file *file)
{
	for (size_t i = 0; i < file->shapes.n; i++)
		free_shape(file->shapes.p[i]);
	VEC_FREE(&file->shapes);
	map_fini(&file->shape_of);
}

const struct bind_shape *bind_shape_of(const struct bind_file *file, const struct bind_record *r)
{
	uint64_t number;

	if (!map_get(&file->shape_of, cairn_types_resolve(file->types, r->id), &number) || !number)
		return NULL;
	return file->shapes.p[number - 1]->why_not ? NULL : file->shapes.p[number - 1];
}

const char *bind_in_struct(struct bind_file *file, const struct bind_record *r,
			   const struct bind_field *f)
{
	const struct bind_shape *shape = bind_shape_of(file, r);
	const struct bind_part *part = NULL;
	const char *path = "";

	for (uint32_t i = 0; i < f->n_steps && path; i++) {
		const char *step = f->steps[i].name;
		uint64_t at;

		if (!step) {
			path = arena_printf(&file->arena, "%s[0]", path);
			continue;
		}
		if (!shape || !map_get(&shape->steps, map_hash_str(step), &at))
			return NULL;
		part = &shape->parts.p[at];
		path = arena_printf(&file->arena, "%s%s%s", path, path[0] ? "." : "", part->name);
		shape = part->shape;
	}
	return part && !part->shape && !part->as_bytes ? path : NULL;
}
