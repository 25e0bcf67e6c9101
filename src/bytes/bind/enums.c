/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Enums and their constants
 *
 * A constant has the value that an accessor returns for it: the enumerator's bits, cut to the
 * enum's size and extended by its sign. Debug information may write FAIL = 4294967295 where the
 * enum is signed.
 */
#include "bind/walk.h"

#include <errno.h>
#include <string.h>

static int64_t cut(int64_t value, uint64_t size, bool is_signed)
{
	unsigned int unused = 64 - 8 * (unsigned int)size;
	uint64_t bits = (uint64_t)value << unused;

	return is_signed ? (int64_t)bits >> unused : (int64_t)(bits >> unused);
}

/* The enum's name; of one without a name that of the first typedef on the way to it. */
static const char *name_of(const struct bind_file *file, uint32_t id, uint32_t type)
{
	const char *name = cairn_types_get(file->types, id)->name;

	while (!name && type != id) {
		const struct cairn_type *t = cairn_types_get(file->types, type);

		if (t->kind == CAIRN_T_TYPEDEF)
			name = t->name;
		type = t->ref;
	}
	return name;
}

static int add_constants(struct bind_file *file, struct bind_enum *e, const struct cairn_type *t)
{
	e->constants = arena_array(&file->arena, t->n_enumerators, sizeof(*e->constants));
	if (!e->constants)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		const struct cairn_enumerator *from = &t->enumerators[i];

		if (!from->name)
			continue;
		e->constants[e->n_constants++] =
			(struct bind_constant){.source_name = from->name,
					       .value = cut(from->value, t->size, e->is_signed)};
	}
	return 0;
}

static int add_enum(struct bind_file *file, uint32_t id, const char *name)
{
	const struct cairn_type *t = cairn_types_get(file->types, id);
	const char *ident = bind_identifier(&file->arena, name);
	struct bind_enum e = {
		.source_name = name, .size = t->size, .is_signed = t->encoding == CAIRN_ENC_SIGNED};

	e.name = ident ? bind_unique(&file->arena, &file->idents, ident) : NULL;
	e.camel = ident ? bind_top_name(file, bind_camel_case(&file->arena, ident)) : NULL;
	if (!e.name || !e.camel || add_constants(file, &e, t) < 0 || !VEC_ADD(&file->enums, e))
		return -ENOMEM;
	return map_put(&file->enum_of, id, file->enums.n);
}

static bool has_constants(const struct cairn_type *t)
{
	return t->n_enumerators && t->encoding != CAIRN_ENC_OPAQUE &&
	       (t->size == 1 || t->size == 2 || t->size == 4 || t->size == 8);
}

static bool is_same(const struct bind_enum *e, const struct cairn_type *t, const char *name)
{
	uint32_t n = 0;

	if (strcmp(e->source_name, name) || e->size != t->size ||
	    e->is_signed != (t->encoding == CAIRN_ENC_SIGNED))
		return false;
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		const struct cairn_enumerator *from = &t->enumerators[i];

		if (!from->name)
			continue;
		if (n == e->n_constants || strcmp(e->constants[n].source_name, from->name) ||
		    e->constants[n].value != cut(from->value, t->size, e->is_signed))
			return false;
		n++;
	}
	return n == e->n_constants;
}

/*
 * Each unit that includes a header has the header's enums in its debug information once more. 0:
 * there is none like it.
 */
static size_t same_enum(const struct bind_file *file, const struct cairn_type *t, const char *name)
{
	for (size_t i = 0; i < file->enums.n; i++)
		if (is_same(&file->enums.p[i], t, name))
			return i + 1;
	return 0;
}

int64_t bind_enum_number(struct bind_file *file, uint32_t id, uint32_t type, const char *otherwise)
{
	const struct cairn_type *t = cairn_types_get(file->types, id);
	uint64_t number;

	if (!has_constants(t))
		return 0;
	if (map_get(&file->enum_of, id, &number))
		return (int64_t)number;
	const char *name = name_of(file, id, type);
	name = name ? name : otherwise;
	number = same_enum(file, t, name);
	if (number)
		return map_put(&file->enum_of, id, number) < 0 ? -ENOMEM : (int64_t)number;
	return add_enum(file, id, name) < 0 ? -ENOMEM : (int64_t)file->enums.n;
}
