/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The members of a struct as its users see them: without anonymous structs and unions.
 */
#include <ctype.h>
#include <errno.h>

#include "layout/compare.h"
#include "layout/view.h"

/*
 * Structs in structs by value that contain one another, and unions that repeat one another, have
 * members without end.
 */
enum { FIELDS_MAX = 1 << 17 };

/* The input of the traversal, and the names that tell members apart. */
struct collect {
	const struct cairn_types *types;
	const struct fields *like; /* NULL: none */
	struct map names;          /* folded hashes of @like's names */
	struct fields *to;
};

/* ---- anonymous members, and those that stand for them ---- */

/* "__bindgen_anon_1", "Anon0": made up by a generator. */
static bool is_made_up(const char *name)
{
	const char *anon = strstr(name, "anon") ? strstr(name, "anon") : strstr(name, "Anon");

	if (!anon || (anon != name && strncmp(name, "__bindgen_", 10)))
		return false;
	for (anon += 4; *anon == '_' || isdigit((unsigned char)*anon); anon++)
		;
	return !*anon;
}

/*
 * True if the other side has no member of that name, and the owner of the name is at the position
 * of an anonymous member there.
 */
static bool stands_for_anonymous(const struct collect *c, const struct field *f)
{
	uint64_t ignored;

	if (!c->like || !c->like->n_anonymous || f->unplaced ||
	    map_get(&c->names, folded_hash(f->name), &ignored))
		return false;
	return is_made_up(f->name) ||
	       map_get(&c->like->anonymous, field_range_key(f->bit_off, f->bit_off + 8 * f->size),
		       &ignored);
}

/* The members of @t, at @f, are about to be added. Sets @f->in for them. 0; -ENOMEM. */
static int enter_anonymous(struct collect *c, const struct cairn_type *t, struct field *f,
			   bool root)
{
	uint64_t lo = f->bit_off, hi = lo + 8 * t->size, key = field_range_key(lo, hi), known;
	struct field_union u = {.lo = lo, .hi = hi, .in = f->in, .arm = f->arm};

	if (t->kind == CAIRN_T_UNION) {
		if (!VEC_ADD(&c->to->unions, u))
			return -ENOMEM;
		f->in = (uint32_t)c->to->unions.n;
	}
	c->to->n_anonymous += !root;
	/* If several have the same bytes, the outermost union counts. */
	if (f->unplaced || (root && t->kind != CAIRN_T_UNION) ||
	    (map_get(&c->to->anonymous, key, &known) && known))
		return 0;
	return map_put(&c->to->anonymous, key, t->kind == CAIRN_T_UNION ? f->in : 0);
}

static int index_names(struct collect *c)
{
	for (size_t i = 0; c->like && c->like->n_anonymous && i < c->like->v.n; i++)
		if (c->like->v.p[i].name &&
		    map_put(&c->names, folded_hash(c->like->v.p[i].name), 1) < 0)
			return -ENOMEM;
	return 0;
}

/* ---- members ---- */

static int add_members(struct collect *c, uint32_t id, const struct field *in, unsigned int depth)
{
	const struct cairn_types *types = c->types;
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));
	struct fields *ret = c->to;
	struct field around = *in;

	if (enter_anonymous(c, t, &around, !depth))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->n_members && ret->v.n < FIELDS_MAX; i++) {
		const struct cairn_member *m = &t->members[i];
		const struct cairn_type *of =
			cairn_types_get(types, cairn_types_resolve(types, m->type));
		struct field f = {.name = m->name,
				  .type = m->type,
				  .bit_size = m->bit_size,
				  .bit_off = in->bit_off + m->bit_off,
				  .size = cairn_types_size(types, m->type),
				  .unplaced = in->unplaced || m->dynamic,
				  .in_union = in->in_union || t->kind == CAIRN_T_UNION,
				  .in = around.in,
				  .arm = t->kind == CAIRN_T_UNION ? i : in->arm};
		bool anonymous = !f.name ||
				 (is_aggregate(of) && !m->bit_size && stands_for_anonymous(c, &f));

		if (anonymous && is_aggregate(of) && !m->is_base_class && depth < NEST_MAX) {
			int rc = add_members(c, m->type, &f, depth + 1);

			if (rc)
				return rc;
			continue;
		}
		uint64_t end = f.bit_off + (f.bit_size ? f.bit_size : 8 * f.size);
		if (!f.unplaced)
			ret->end = end > ret->end ? end : ret->end;
		if (!VEC_ADD(&ret->v, f))
			return -ENOMEM;
	}
	return 0;
}

int fields_collect(const struct cairn_types *types, uint32_t id, const struct fields *like,
		   struct fields *ret)
{
	struct collect c = {.types = types, .like = like, .to = ret};
	int rc = index_names(&c);

	if (!rc)
		rc = add_members(&c, id, &(struct field){0}, 0);
	map_fini(&c.names);
	return rc;
}

void fields_free(struct fields *fields)
{
	VEC_FREE(&fields->v);
	VEC_FREE(&fields->unions);
	map_fini(&fields->anonymous);
}

bool fields_cover(const struct fields *fields, uint64_t lo, uint64_t hi)
{
	for (size_t i = 0; i < fields->v.n; i++) {
		const struct field *f = &fields->v.p[i];
		uint64_t end = f->bit_off + (f->bit_size ? f->bit_size : 8 * f->size);

		if (!f->unplaced && f->bit_off < hi && end > lo)
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
	static const char *const words[] = {"pad",    "padding", "reserved", "rsvd",
					    "unused", "spare",   "hole"};
	const char *p = name;
	char folded[16];
	size_t n = 0;

	/* The members of Rust's tuples. */
	if (isdigit((unsigned char)*name))
		return false;

	for (char c; n + 1 < sizeof(folded) && (c = next_folded(&p));)
		if (!isdigit((unsigned char)c))
			folded[n++] = c;
	folded[n] = 0;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(folded, words[i]))
			return true;
	return !n;
}
