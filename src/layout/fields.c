/* SPDX-License-Identifier: BSD-2-Clause */
/* The members of a struct as those who use it see them: anonymous structs and unions are not there. */
#include <ctype.h>
#include <errno.h>

#include "layout/compare.h"
#include "layout/view.h"

/* Structs in structs by value that contain one another, and unions that repeat one another, have members without end. */
enum { FIELDS_MAX = 1 << 17 };

static int add_members(const struct cairn_types *types, uint32_t id, const struct field *in, unsigned int depth,
		       struct fields *ret)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));

	for (uint32_t i = 0; i < t->n_members && ret->v.n < FIELDS_MAX; i++) {
		const struct cairn_member *m = &t->members[i];
		const struct cairn_type *of = cairn_types_get(types, cairn_types_resolve(types, m->type));
		struct field f = {.name = m->name,
				  .type = m->type,
				  .bit_size = m->bit_size,
				  .bit_off = in->bit_off + m->bit_off,
				  .size = cairn_types_size(types, m->type),
				  .in_union = in->in_union || t->kind == CAIRN_T_UNION};

		if (m->dynamic)
			continue;
		if (!m->name && is_aggregate(of) && !m->is_base_class && depth < NEST_MAX) {
			int rc = add_members(types, m->type, &f, depth + 1, ret);

			if (rc)
				return rc;
			continue;
		}
		uint64_t end = f.bit_off + (f.bit_size ? f.bit_size : 8 * f.size);
		ret->end = end > ret->end ? end : ret->end;
		if (!VEC_ADD(&ret->v, f))
			return -ENOMEM;
	}
	return 0;
}

int fields_collect(const struct cairn_types *types, uint32_t id, struct fields *ret)
{
	return add_members(types, id, &(struct field){0}, 0, ret);
}

void fields_free(struct fields *fields)
{
	VEC_FREE(&fields->v);
}

bool fields_cover(const struct fields *fields, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < fields->v.n; i++) {
		const struct field *f = &fields->v.p[i];
		uint64_t end = f->bit_off + (f->bit_size ? f->bit_size : 8 * f->size);

		if (f->bit_off < hi && end > lo)
			return true;
	}
	return false;
}

/* ---- names ---- */

static bool is_letter_or_digit(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* The next character that counts, in lower case; 0 at the end. */
static char next_folded(const char **p)
{
	while (**p && !is_letter_or_digit(**p))
		(*p)++;
	return **p ? (char)tolower((unsigned char)*(*p)++) : 0;
}

bool cairn_compare_names(const char *a, const char *b)
{
	char c;

	do {
		c = next_folded(&a);
		if (c != next_folded(&b))
			return false;
	} while (c);
	return true;
}

uint64_t folded_hash(const char *name)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);

	for (char c; (c = next_folded(&name));)
		hash = (hash ^ (unsigned char)c) * UINT64_C(0x100000001b3);
	return hash;
}

bool is_padding_name(const char *name)
{
	static const char *const words[] = {"pad", "padding", "reserved", "rsvd", "unused", "spare", "hole"};
	const char *p = name;
	char folded[16];
	size_t n = 0;

	for (char c; n + 1 < sizeof(folded) && (c = next_folded(&p));)
		if (!isdigit((unsigned char)c))
			folded[n++] = c;
	folded[n] = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(folded, words[i]))
			return true;
	return !n;
}
