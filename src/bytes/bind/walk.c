/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From types to flat lists of fields
 *
 * The walk goes into structs, unions and arrays with the data that it has collected on the way: the
 * name so far, the offset, the dimensions. Depth is limited, as hostile input may nest types. By
 * value they cannot be recursive when their sizes are right, and a struct in itself ends at the
 * limit.
 */
#include "bind/structs.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"
#include "base/map.h"

/* The data collected above a type. */
struct way {
	const char *name, *path;
	bool renamed; /* some name of the path is no identifier */
	uint64_t off;
	uint64_t end; /* of the visible part; UINT64_MAX: flexible arrays may go on */
	uint32_t n_dims;
	struct bind_dim dims[BIND_DIMS_MAX];
	uint32_t n_steps;
	struct bind_step steps[2 * BIND_DEPTH_MAX];
	unsigned int depth;
	bool swapped; /* directly inside of a struct whose enums are in the other byte order */
};

struct walker {
	struct bind_file *file;
	struct bind_record *record;
	struct map names; /* of fields, for bind_unique() */
	uint32_t n_visits;
	uint64_t n_text; /* characters of names and paths */
	struct cairn_err *err;
};

/* Structs of structs without members are no fields, and could still be gone through for ever. */
enum { VISITS_MAX = 4 * BIND_FIELDS_MAX };

/*
 * Long names of structs in structs that repeat one another, written out for each member: 350 KB of
 * C became 4 GB.
 */
enum { TEXT_MAX = 64 << 20 };

static int walk_type(struct walker *w, uint32_t id, const struct way *way);

static const struct cairn_type *type_of(const struct walker *w, uint32_t id)
{
	return cairn_types_get(w->file->types, cairn_types_resolve(w->file->types, id));
}

/* ---- names ---- */

const char *bind_anonymous(struct arena *arena, uint32_t i)
{
	return arena_printf(arena, "anonymous_%u", i);
}

static char *upper_case(struct arena *arena, const char *name)
{
	char *upper = arena_strdup(arena, name);

	for (char *c = upper; c && *c; c++)
		*c = (char)toupper((unsigned char)*c);
	return upper;
}

static const char *type_name(struct walker *w, uint32_t id)
{
	char text[256];

	cairn_types_name(w->file->types, id, text, sizeof(text));
	return arena_strdup(&w->file->arena, text);
}

/* ---- fields ---- */

/* An enum without a name is named after its record and member: "event_kind". */
static int64_t enum_number(struct walker *w, uint32_t type, const struct bind_field *f)
{
	struct arena *arena = &w->file->arena;
	uint32_t id = cairn_types_resolve(w->file->types, type);

	if (f->kind != BIND_INT || type_of(w, type)->kind != CAIRN_T_ENUM)
		return 0;
	const char *otherwise = arena_printf(arena, "%s_%s", w->record->name, f->name);
	return otherwise ? bind_enum_number(w->file, id, type, otherwise) : -ENOMEM;
}

/* A bit-field is as wide as its enum, so that it can be compared with the constants. */
static uint8_t value_size(const struct walker *w, uint32_t type, const struct bind_field *f)
{
	uint64_t size = type_of(w, type)->size;

	if (!f->bits)
		return (uint8_t)(f->size <= 16 ? f->size : 0);
	if (f->enum_no && f->bits <= 8 * size)
		return (uint8_t)size;
	return f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8;
}

static int add_field(struct walker *w, uint32_t type, const struct way *way, struct bind_field f)
{
	struct arena *arena = &w->file->arena;
	struct bind_step *steps = arena_array(arena, way->n_steps + 1, sizeof(*steps));

	if (w->record->fields.n == BIND_FIELDS_MAX)
		return err_set(w->err, -ERANGE, "%s has more than %d members", w->record->name,
			       BIND_FIELDS_MAX);
	f.name = bind_unique(arena, &w->names, way->name[0] ? way->name : "value");
	f.path = way->path;
	f.path_is_c = !way->renamed;
	f.type = type_name(w, type);
	f.n_dims = way->n_dims;
	memcpy(f.dims, way->dims, sizeof(f.dims));
	f.n_steps = way->n_steps;
	f.steps = steps;
	int64_t number = steps && f.name ? enum_number(w, type, &f) : -ENOMEM;
	if (number < 0 || !f.type)
		return err_nomem(w->err, "accessors");
	f.enum_no = (uint32_t)number;
	f.value_size = value_size(w, type, &f);
	memcpy(steps, way->steps, way->n_steps * sizeof(*steps));
	w->file->has_big |= f.big_endian;
	w->file->has_little |= !f.big_endian;
	w->file->has_bits |= f.bits != 0;
	w->file->has_text |= f.kind == BIND_TEXT;
	w->file->has_bytes |= f.kind == BIND_BYTES;
	w->file->has_wide |= f.kind == BIND_INT && f.size == 16 && !f.bits;
	return VEC_ADD(&w->record->fields, f) ? 0 : err_nomem(w->err, "accessors");
}

static bool is_signed(const struct cairn_type *t)
{
	return t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR;
}

static bool is_integer(const struct cairn_type *t)
{
	return t->encoding != CAIRN_ENC_OPAQUE &&
	       (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_ENUM);
}

/* Numbers say it themselves; of enums the struct around them does. */
bool bind_is_big_endian(const struct bind_file *file, const struct cairn_type *t, bool in_swapped)
{
	return file->opts->big_endian !=
	       (t->byte_swapped || (in_swapped && t->kind == CAIRN_T_ENUM));
}

static bool is_power_size(uint64_t size, uint64_t max)
{
	return size && size <= max && !(size & (size - 1));
}

static enum bind_kind kind_of(const struct cairn_type *t)
{
	switch (t->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_ENUM:
		if (t->encoding == CAIRN_ENC_BOOL && t->size == 1)
			return BIND_BOOL;
		return is_integer(t) && is_power_size(t->size, 16) ? BIND_INT : BIND_BYTES;
	case CAIRN_T_PTR:
	case CAIRN_T_REF:
	case CAIRN_T_RREF:
		return is_power_size(t->size, 8) ? BIND_INT : BIND_BYTES;
	case CAIRN_T_FLOAT:
		return t->encoding != CAIRN_ENC_COMPLEX && t->encoding != CAIRN_ENC_OPAQUE &&
				       (t->size == 4 || t->size == 8)
			       ? BIND_FLOAT
			       : BIND_BYTES;
	default:
		return BIND_BYTES;
	}
}

/* ---- the walk ---- */

bool bind_bits_of(const struct bind_file *file, const struct cairn_member *m, bool in_swapped,
		  struct bind_field *ret)
{
	const struct cairn_type *t =
		cairn_types_get(file->types, cairn_types_resolve(file->types, m->type));
	uint8_t shift = m->bit_off % 8;

	/* Wider ones are of __int128 only, and no language has a word for them. */
	if (m->bit_size > 64 || !is_integer(t))
		return false;
	*ret = (struct bind_field){.kind = t->encoding == CAIRN_ENC_BOOL ? BIND_BOOL : BIND_INT,
				   .is_signed = is_signed(t),
				   .big_endian = bind_is_big_endian(file, t, in_swapped),
				   .off = m->bit_off / 8,
				   .size = (shift + m->bit_size + 7) / 8,
				   .shift = shift,
				   .bits = (uint8_t)m->bit_size};
	return true;
}

bool bind_value_of(const struct bind_file *file, uint32_t type, bool in_swapped,
		   struct bind_field *ret)
{
	const struct cairn_type *t =
		cairn_types_get(file->types, cairn_types_resolve(file->types, type));

	*ret = (struct bind_field){.kind = kind_of(t),
				   .is_signed = is_signed(t) && is_integer(t),
				   .big_endian = bind_is_big_endian(file, t, in_swapped),
				   .size = t->size,
				   .value_size = (uint8_t)(t->size <= 16 ? t->size : 0)};
	return t->size != 0;
}

static int walk_bit_field(struct walker *w, const struct cairn_member *m, const struct way *way)
{
	struct bind_field f;

	if (!bind_bits_of(w->file, m, way->swapped, &f))
		return 0;
	f.off += way->off;
	return add_field(w, m->type, way, f);
}

/* A virtual base class that several ways lead to is one object. */
static bool is_left_out(const struct bind_record *r, const char *path)
{
	for (size_t i = 0; i < r->left_out.n; i++)
		if (!strcmp(r->left_out.p[i].path, path))
			return true;
	return false;
}

static int leave_out(struct walker *w, const struct cairn_member *m, const struct way *from,
		     const char *why)
{
	const char *name = m->name;

	if (!name && m->is_base_class)
		name = cairn_types_get(w->file->types, m->type)->name;
	name = name ? name : "(anonymous)";
	struct bind_left_out l = {
		from->path[0] ? arena_printf(&w->file->arena, "%s.%s", from->path, name) : name,
		why};
	if (l.path && is_left_out(w->record, l.path))
		return 0;
	w->file->n_left_out++;
	return l.path && VEC_ADD(&w->record->left_out, l) ? 0 : err_nomem(w->err, "accessors");
}

static int walk_member(struct walker *w, const struct cairn_type *t, uint32_t i,
		       const struct way *from)
{
	struct arena *arena = &w->file->arena;
	const struct cairn_member *m = &t->members[i];
	struct way way = *from;

	way.swapped = t->byte_swapped;
	if (m->dynamic)
		return leave_out(w, m, from, "offset not known");
	if (!m->bit_size && m->bit_off % 8)
		return leave_out(w, m, from, "not at a byte boundary");
	if (m->bit_size && !m->name)
		return 0;
	if (m->name) {
		char *id = bind_identifier(arena, m->name);
		bool renamed = !id || strcmp(id, m->name);
		way.renamed |= renamed;
		w->file->n_renamed += renamed;
		way.name = from->name[0] ? arena_printf(arena, "%s_%s", from->name, id) : id;
		way.path =
			from->path[0] ? arena_printf(arena, "%s.%s", from->path, m->name) : m->name;
		way.steps[way.n_steps++].name = id;
	} else {
		way.steps[way.n_steps++].name = bind_anonymous(arena, i);
	}
	if (!way.name || !way.path || !way.steps[way.n_steps - 1].name)
		return err_nomem(w->err, "accessors");
	w->n_text += strlen(way.name) + strlen(way.path);
	if (w->n_text > TEXT_MAX)
		return err_set(w->err, -ERANGE,
			       "%s: the names of its members have more than %d MiB",
			       w->record->name, TEXT_MAX >> 20);
	if (m->bit_size)
		return walk_bit_field(w, m, &way);
	way.off += m->bit_off / 8;
	return walk_type(w, m->type, &way);
}

static int walk_struct(struct walker *w, const struct cairn_type *t, const struct way *way)
{
	int rc = 0;

	for (uint32_t i = 0; i < t->n_members && !rc; i++)
		rc = walk_member(w, t, i, way);
	return rc;
}

bool bind_is_text(const struct cairn_type *elem)
{
	return elem->kind == CAIRN_T_INT && elem->size == 1 && elem->name &&
	       !strcmp(elem->name, "char");
}

static int walk_array(struct walker *w, uint32_t id, const struct cairn_type *t,
		      const struct way *from)
{
	const struct cairn_type *elem = type_of(w, t->ref);
	uint64_t size = cairn_types_size(w->file->types, t->ref),
		 count = t->has_count ? t->count : 0;
	struct way way = *from;

	if (bind_is_text(elem) && !t->vector)
		return add_field(w, id, from,
				 (struct bind_field){.kind = BIND_TEXT,
						     .big_endian = w->file->opts->big_endian,
						     .off = from->off,
						     .size = count});
	/* Elements without bytes, and a flexible array inside of an array, which has no length. */
	if (!size || (!count && way.n_dims))
		return 0;
	if (way.n_dims == BIND_DIMS_MAX)
		return err_set(w->err, -ERANGE, "%s: an array of more than %d dimensions",
			       w->record->name, BIND_DIMS_MAX);
	way.dims[way.n_dims++] =
		(struct bind_dim){count, count && t->size / count > size ? t->size / count : size};
	way.steps[way.n_steps++].name = NULL;
	way.path = arena_printf(&w->file->arena, "%s[0]", from->path);
	return way.path ? walk_type(w, t->ref, &way) : err_nomem(w->err, "accessors");
}

static int walk_type(struct walker *w, uint32_t id, const struct way *from)
{
	const struct cairn_type *t = type_of(w, id);
	struct way way = *from;
	struct bind_field f;

	if (way.depth++ == BIND_DEPTH_MAX - 1 ||
	    way.n_steps + 2 > sizeof(way.steps) / sizeof(way.steps[0]))
		return err_set(w->err, -ERANGE, "%s: nested deeper than %d", w->record->name,
			       BIND_DEPTH_MAX);
	if (w->n_visits++ > VISITS_MAX)
		return err_set(w->err, -ERANGE, "%s: its types repeat one another endlessly",
			       w->record->name);
	if (way.off > UINT32_MAX)
		return err_set(w->err, -ERANGE, "%s: a member beyond 4 GiB", w->record->name);
	switch (t->kind) {
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
		return walk_struct(w, t, &way);
	case CAIRN_T_ARRAY:
		return walk_array(w, id, t, &way);
	default:
		if (!bind_value_of(w->file, id, way.swapped, &f))
			return 0;
		f.off = way.off;
		return add_field(w, id, &way, f);
	}
}

/* ---- records ---- */

static int walk_enum(struct walker *w, uint32_t id, const char *name)
{
	int64_t number =
		bind_enum_number(w->file, cairn_types_resolve(w->file->types, id), id, "unnamed");

	if (number < 0)
		return err_nomem(w->err, "accessors");
	return number ? 0
		      : err_set(w->err, -EINVAL, "enum %s has no constants that can be written",
				name ? name : "");
}

/* A requested type: its accessors, or the constants of an enum. */
static int walk_record(struct walker *w, uint32_t id)
{
	static const struct way start = {.name = "", .path = ""};
	struct bind_file *file = w->file;
	const struct cairn_type *t = type_of(w, id);
	const char *name = cairn_types_get(file->types, id)->name;

	if (!name)
		name = t->name;
	if (t->kind == CAIRN_T_ENUM)
		return walk_enum(w, id, name);
	if (!name || !t->n_members || !t->size ||
	    (t->kind != CAIRN_T_STRUCT && t->kind != CAIRN_T_UNION && t->kind != CAIRN_T_CLASS))
		return err_set(w->err, -EINVAL, "%s is no struct or union with members",
			       name ? name : "a type without a name");
	struct bind_record *r = VEC_PUSH(&file->records);
	if (!r)
		return err_nomem(w->err, "accessors");
	w->record = r;
	r->id = id;
	r->size = t->size;
	r->is_union = t->kind == CAIRN_T_UNION;
	r->source_name = name;
	const char *ident = bind_identifier(&file->arena, name);
	file->n_renamed += ident && strcmp(ident, name);
	r->name = ident ? bind_unique(&file->arena, &file->idents, ident) : NULL;
	r->upper = r->name ? upper_case(&file->arena, r->name) : NULL;
	r->camel = ident ? bind_top_name(file, bind_camel_case(&file->arena, ident)) : NULL;
	if (!r->upper || !r->camel)
		return err_nomem(w->err, "accessors");
	return walk_struct(w, t, &start);
}

int bind_walk(struct bind_file *file, const uint32_t *ids, size_t n_ids, struct cairn_err *err)
{
	struct map seen = {0};
	uint64_t before;
	int rc = 0;

	for (size_t i = 0; i < n_ids && !rc; i++) {
		struct walker w = {.file = file, .err = err};

		if (map_get(&seen, ids[i], &before))
			continue;
		rc = map_put(&seen, ids[i], 1) < 0 ? err_nomem(err, "accessors")
						   : walk_record(&w, ids[i]);
		map_fini(&w.names);
	}
	map_fini(&seen);
	return rc;
}

/* ---- shared text ---- */

void bind_put_comment(const struct bind_file *file, const char *name)
{
	cairn_quote_put(name, CAIRN_QUOTE_COMMENT, file->out);
}

void bind_put_origin(const struct bind_file *file, enum cairn_quote as)
{
	fputs("Accessors made by cairn bind", file->out);
	if (file->opts->origin) {
		fputs(" of ", file->out);
		cairn_quote_put(file->opts->origin, as, file->out);
	}
	fputs(". Do not edit.", file->out);
}

void bind_put_why_not(const struct bind_file *file, const struct bind_shape *s, const char *before)
{
	fprintf(file->out, "%sNo %s: %s.\n", before, s->name, s->why_not);
}

void bind_put_left_out(const struct bind_file *file, const char *before, const char *after)
{
	for (size_t i = 0; i < file->records.n; i++) {
		const struct bind_record *r = &file->records.p[i];

		for (size_t k = 0; k < r->left_out.n; k++) {
			fprintf(file->out, "%sNo accessor of ", before);
			bind_put_comment(file, r->source_name);
			fputc('.', file->out);
			bind_put_comment(file, r->left_out.p[k].path);
			fprintf(file->out, ": %s.%s", r->left_out.p[k].why, after);
		}
	}
}

bool bind_is_flexible(const struct bind_field *f)
{
	if (f->kind == BIND_TEXT && !f->size)
		return true;
	for (uint32_t i = 0; i < f->n_dims; i++)
		if (!f->dims[i].count)
			return true;
	return false;
}

void bind_put_indices(const struct bind_file *file, const struct bind_field *f, const char *before,
		      const char *after)
{
	for (uint32_t i = 0; i < f->n_dims; i++)
		fprintf(file->out, "%si%u%s", before, i, after);
}

void bind_put_offset(const struct bind_file *file, const struct bind_field *f, const char *suffix)
{
	bool first = f->off != 0 || !f->n_dims;

	if (first)
		fprintf(file->out, "%llu%s", (unsigned long long)f->off, suffix);
	for (uint32_t i = 0; i < f->n_dims; i++) {
		fprintf(file->out, "%si%u", first ? " + " : "", i);
		if (f->dims[i].stride != 1)
			fprintf(file->out, " * %llu%s", (unsigned long long)f->dims[i].stride,
				suffix);
		first = true;
	}
}
