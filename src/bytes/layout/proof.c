/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A reorganised struct as C that proves it
 *
 * It needs no header. To the rules a type is its size and alignment, so members are written with
 * plain types of the same kind. Members that are structs are written out, too, each once and before
 * its users. The compiler then checks all sizes, alignments and offsets.
 *
 *	struct t7 { unsigned char m0; unsigned int m2; unsigned long long m1; void * m3; };
 *	_Static_assert(sizeof(struct t7) == 24, "size");
 *	_Static_assert(__builtin_offsetof(struct t7, m2) == 4, "i");
 *
 * Members keep their numbers. An inner struct that the rules do not explain (of C++, or with fields
 * without a name) becomes an array of bytes with its size and alignment.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "layout/reorganize.h"

struct proof {
	struct cairn_layout *l;
	FILE *out;
	bool *written; /* per id */
};

static const char *integer_of(uint64_t size)
{
	switch (size) {
	case 1:
		return "unsigned char";
	case 2:
		return "unsigned short";
	case 4:
		return "unsigned int";
	case 8:
		return "unsigned long long";
	case 16:
		return "unsigned __int128";
	default:
		return NULL;
	}
}

/*
 * NULL: no type has its size and alignment on every ABI (_Float128, _Decimal64, _Complex int,
 * _BitInt).
 */
static const char *real_of(const struct cairn_type *t)
{
	uint64_t size = t->encoding == CAIRN_ENC_COMPLEX ? t->size / 2 : t->size;

	if (t->name && !strstr(t->name, "long double") && size > 8)
		return NULL;
	switch (size) {
	case 2:
		return "_Float16";
	case 4:
		return "float";
	case 8:
		return "double";
	default:
		return size ? "long double" : NULL;
	}
}

static bool is_atomic(const struct proof *p, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, id);

	for (unsigned int i = 0;
	     i < NEST_MAX && t->kind >= CAIRN_T_TYPEDEF && t->kind < CAIRN_T_FUNC; i++) {
		if (t->kind == CAIRN_T_ATOMIC)
			return true;
		t = cairn_types_get(p->l->types, t->ref);
	}
	return false;
}

/* "unsigned int" of an array's innermost elements or of the type itself. */
static void put_base(const struct proof *p, uint32_t id)
{
	uint32_t base = cairn_types_resolve(p->l->types, id);
	const struct cairn_type *t = cairn_types_get(p->l->types, base);
	const char *word = NULL;

	if (is_aggregate(t)) {
		fprintf(p->out, "%s t%" PRIu32, t->kind == CAIRN_T_UNION ? "union" : "struct",
			base);
		return;
	}
	if ((t->kind == CAIRN_T_INT && t->encoding != CAIRN_ENC_OPAQUE) || t->kind == CAIRN_T_ENUM)
		word = integer_of(t->size);
	else if (t->kind == CAIRN_T_FLOAT)
		word = real_of(t);
	else if (t->size && t->kind != CAIRN_T_INT)
		word = "void *";
	if (!word && t->size && (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_FLOAT)) {
		fprintf(p->out,
			"struct { unsigned char bytes[%" PRIu64
			"]; } __attribute__((aligned(%" PRIu32 ")))",
			t->size, layout_align(p->l, base));
		return;
	}
	word = word ? word : "unsigned char";
	if (is_atomic(p, id))
		fprintf(p->out, "_Atomic(%s)", word);
	else
		fprintf(p->out, "%s%s",
			t->kind == CAIRN_T_FLOAT && t->encoding == CAIRN_ENC_COMPLEX ? "_Complex "
										     : "",
			word);
}

static const struct cairn_type *array_at(const struct proof *p, uint32_t id)
{
	const struct cairn_type *t = layout_resolve(p->l, id);

	return t->kind == CAIRN_T_ARRAY && !t->vector ? t : NULL;
}

/* "unsigned int NAME[4]" */
static void put_declaration(const struct proof *p, uint32_t id, const char *name)
{
	const struct cairn_type *array, *t;
	uint32_t element = id;

	for (unsigned int i = 0; i < NEST_MAX && (array = array_at(p, element)); i++)
		element = array->ref;
	t = layout_resolve(p->l, element);
	put_base(p, t->kind == CAIRN_T_ARRAY ? t->ref : element);
	if (t->kind == CAIRN_T_ARRAY)
		fprintf(p->out, " __attribute__((vector_size(%" PRIu64 ")))", t->size);
	fprintf(p->out, " %s", name);
	element = id;
	for (unsigned int i = 0; i < NEST_MAX && (array = array_at(p, element)); i++) {
		fprintf(p->out, "[%" PRIu64 "]", array->count);
		element = array->ref;
	}
}

enum { NAME_BYTES = 32 };

static void put_aligned(const struct proof *p, uint32_t align)
{
	if (align > 1)
		fprintf(p->out, " __attribute__((aligned(%" PRIu32 ")))", align);
}

/* A typedef can lower an alignment; an attribute of the member cannot. */
static bool has_own_align(const struct proof *p, const struct cairn_member *in)
{
	uint32_t plain = cairn_types_resolve(p->l->types, in->type);

	return !in->bit_size && !is_atomic(p, in->type) &&
	       layout_align(p->l, in->type) != layout_align(p->l, plain);
}

static void put_typedefs(const struct proof *p, const struct cairn_type *t, uint32_t id)
{
	char name[NAME_BYTES];

	for (uint32_t i = 0; i < t->n_members; i++) {
		if (!has_own_align(p, &t->members[i]))
			continue;
		snprintf(name, sizeof(name), "d%" PRIu32 "_%" PRIu32, id, i);
		fputs("typedef ", p->out);
		put_declaration(p, t->members[i].type, name);
		fprintf(p->out, " __attribute__((aligned(%" PRIu32 ")));\n",
			layout_align(p->l, t->members[i].type));
	}
}

static void put_member(const struct proof *p, const struct cairn_type *t, uint32_t id, uint32_t i,
		       uint32_t aligned)
{
	const struct cairn_member *in = &t->members[i];
	const struct cairn_type *opaque = layout_resolve(p->l, in->type);
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "m%" PRIu32, i);
	putc('\t', p->out);
	if (has_own_align(p, in))
		fprintf(p->out, "d%" PRIu32 "_%" PRIu32 " %s", id, i, name);
	else if (in->bit_size && opaque->encoding == CAIRN_ENC_OPAQUE && integer_of(opaque->size))
		fprintf(p->out, "%s %s", integer_of(opaque->size), name);
	else
		put_declaration(p, in->type, name);
	if (in->bit_size)
		fprintf(p->out, " : %u", in->bit_size);
	put_aligned(p, aligned);
	fputs(";\n", p->out);
}

static const char *word_of(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_UNION ? "union" : "struct";
}

static void put_end(const struct proof *p, const struct cairn_type *t, uint32_t id,
		    const struct cairn_layout_facts *f, uint64_t size)
{
	fputs(f->packed ? "} __attribute__((packed))" : "}", p->out);
	put_aligned(p, f->aligned);
	fprintf(p->out,
		";\n_Static_assert(sizeof(%s t%" PRIu32 ") == %" PRIu64 ", \"size of %s\");\n",
		word_of(t), id, size, t->name ? t->name : "an anonymous one");
}

/*
 * True if the rules put its members at their offsets (all of them, unlike in a reorganised one),
 * and give it its alignment: packed does not show if all members have their alignment anyway.
 */
static bool follows_rules(const struct proof *p, const struct cairn_type *t, uint32_t id,
			  const struct cairn_layout_facts *f, const struct cairn_layout_member *m)
{
	struct cairn_place_member *members = calloc(t->n_members + 1, sizeof(*members));
	struct cairn_place_record rec = {.members = members,
					 .n_members = t->n_members,
					 .packed = f->packed,
					 .aligned = f->aligned,
					 .is_union = t->kind == CAIRN_T_UNION};
	bool same;

	p->l->no_memory |= !members;
	for (uint32_t i = 0; members && i < t->n_members; i++)
		members[i] = layout_member_as_placed(p->l, &t->members[i], &m[i]);
	same = members && !layout_place_from(p->l->opts.abi, &rec, 0, NULL) &&
	       rec.size == t->size && rec.align == layout_align(p->l, id);
	for (uint32_t i = 0; same && i < t->n_members; i++)
		same = members[i].bit_off == t->members[i].bit_off && !t->members[i].is_base_class;
	free(members);
	return same;
}

static void put_bytes(const struct proof *p, const struct cairn_type *t, uint32_t id)
{
	fprintf(p->out, "%s t%" PRIu32 " { unsigned char bytes[%" PRIu64 "]; }", word_of(t), id,
		t->size);
	put_aligned(p, layout_align(p->l, id));
	fputs(";\n", p->out);
}

static void put_needed(struct proof *p, const struct cairn_type *t, unsigned int depth);

/* A struct or union inside, once. */
static void put_inner(struct proof *p, uint32_t id, unsigned int depth)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, id);
	struct cairn_layout_member *m = layout_members_new(p->l, t);
	struct cairn_layout_facts f;
	bool described = m && layout_facts(p->l, id, &f, m) > 0;

	p->written[id] = true;
	if (!described || depth >= NEST_MAX || !follows_rules(p, t, id, &f, m)) {
		put_bytes(p, t, id);
	} else {
		put_needed(p, t, depth + 1);
		put_typedefs(p, t, id);
		fprintf(p->out, "%s t%" PRIu32 " {\n", word_of(t), id);
		for (uint32_t i = 0; i < t->n_members; i++)
			put_member(p, t, id, i, m[i].aligned);
		put_end(p, t, id, &f, t->size);
	}
	free(m);
}

static void put_needed(struct proof *p, const struct cairn_type *t, unsigned int depth)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		uint32_t id = cairn_types_resolve(p->l->types, t->members[i].type);
		const struct cairn_type *in = cairn_types_get(p->l->types, id);

		for (unsigned int k = 0; k < NEST_MAX && in->kind == CAIRN_T_ARRAY; k++) {
			id = cairn_types_resolve(p->l->types, in->ref);
			in = cairn_types_get(p->l->types, id);
		}
		if (is_aggregate(in) && id < p->l->n && !p->written[id])
			put_inner(p, id, depth);
	}
}

static void put_struct(struct proof *p, uint32_t id, const struct cairn_reorganized *r,
		       const struct cairn_layout_facts *f, const struct cairn_layout_member *m)
{
	const struct cairn_type *t = cairn_types_get(p->l->types, id);

	put_needed(p, t, 0);
	put_typedefs(p, t, id);
	fprintf(p->out, "struct t%" PRIu32 " {\n", id);
	for (uint32_t i = 0; i < r->n_members; i++) {
		if (r->members[i].separate)
			fputs("\tchar : 0;\n", p->out);
		put_member(p, t, id, r->members[i].index, m[r->members[i].index].aligned);
	}
	put_end(p, t, id, f, r->new_size);
	for (uint32_t i = 0; i < r->n_members; i++) {
		const struct cairn_member *in = &t->members[r->members[i].index];

		if (!in->bit_size)
			fprintf(p->out,
				"_Static_assert(__builtin_offsetof(struct t%" PRIu32 ", m%" PRIu32
				") == %" PRIu64 ", \"%s\");\n",
				id, r->members[i].index, r->members[i].bit_off / 8,
				in->name ? in->name : "an anonymous member");
	}
	fprintf(p->out,
		"_Static_assert(_Alignof(struct t%" PRIu32 ") == %" PRIu32 ", \"alignment\");\n",
		id, r->align);
}

int cairn_reorganized_verify_text(struct cairn_layout *l, uint32_t id,
				  const struct cairn_reorganized *r, FILE *out,
				  struct cairn_err *err)
{
	struct proof p = {.l = l, .out = out, .written = calloc(l->n + 1, sizeof(bool))};
	struct cairn_layout_member *m;
	struct cairn_layout_facts f = {0};

	layout_begin(l);
	id = cairn_types_resolve(l->types, id);
	m = layout_members_new(l, cairn_types_get(l->types, id));
	l->no_memory |= !p.written;
	if (!l->no_memory && layout_facts(l, id, &f, m) > 0) {
		f.packed = r->packed;
		put_struct(&p, id, r, &f, m);
	}
	free(p.written);
	free(m);
	return l->no_memory ? err_nomem(err, "a proof") : 0;
}
