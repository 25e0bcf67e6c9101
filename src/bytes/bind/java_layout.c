/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The layouts of Java's records
 *
 * Each record has a GroupLayout with everything at its offset and paddings between, so that
 * programs can allocate memory with it and query its offsets. When the class is loaded, size and
 * offsets are compared with the numbers that the accessors were made from. Layouts are unaligned:
 * records come at any address, and so packed structs are no exception. Bit-fields are padding.
 *
 * A struct's layout is the list that its parts return, some hundred members each. Parts are
 * methods, and some of them together a class, Event_L0, so that none exceeds the limits of a method
 * or a class.
 */
#include "bind/java.h"

#include <string.h>

enum { MEMBERS_PER_PART = 300, PARTS_PER_CLASS = 8 };

struct layouts {
	struct bind_file *file;
	const struct bind_record *record;
	VEC(uint32_t) groups; /* resolved ids of structs and unions, in the order they were met */
	struct map group_of;  /* id: its number in groups */
	uint64_t n_methods;   /* of parts, written so far */
	uint32_t n_in_part;
};

static const struct cairn_type *type_of(const struct bind_file *file, uint32_t id)
{
	return cairn_types_get(file->types, cairn_types_resolve(file->types, id));
}

/* ---- methods, some to a class ---- */

static void begin_method(struct layouts *l, char kind, const char *head)
{
	if (l->n_methods % PARTS_PER_CLASS == 0)
		fprintf(l->file->out, "\n    private static final class %s_%c%llu {\n",
			l->record->camel, kind,
			(unsigned long long)(l->n_methods / PARTS_PER_CLASS));
	fprintf(l->file->out, head, (unsigned long long)l->n_methods);
	l->n_methods++;
	l->n_in_part = 0;
}

static void end_method(struct layouts *l, const char *tail)
{
	fputs(tail, l->file->out);
	if (l->n_methods % PARTS_PER_CLASS == 0)
		fputs("    }\n", l->file->out);
}

static void end_methods(const struct layouts *l)
{
	if (l->n_methods % PARTS_PER_CLASS)
		fputs("    }\n", l->file->out);
}

/* ---- members ---- */

static const char *value_layout(const struct cairn_type *t)
{
	if (t->kind == CAIRN_T_FLOAT && t->encoding != CAIRN_ENC_COMPLEX &&
	    t->encoding != CAIRN_ENC_OPAQUE)
		return t->size == 4 ? "FLOAT" : t->size == 8 ? "DOUBLE" : NULL;
	if (t->kind == CAIRN_T_FLOAT || t->encoding == CAIRN_ENC_OPAQUE)
		return NULL;
	return t->size == 1   ? "BYTE"
	       : t->size == 2 ? "SHORT"
	       : t->size == 4 ? "INT"
	       : t->size == 8 ? "LONG"
			      : NULL;
}

/* The number of a struct's list; -1: no memory. */
static int64_t group_number(struct layouts *l, uint32_t id)
{
	uint64_t number;

	id = cairn_types_resolve(l->file->types, id);
	if (map_get(&l->group_of, id, &number))
		return (int64_t)number;
	number = l->groups.n;
	if (VEC_ADD(&l->groups, id) && !map_put(&l->group_of, id, number))
		return (int64_t)number;
	l->file->no_memory = true;
	return -1;
}

static void put_value(const struct layouts *l, const struct cairn_type *t, bool in_swapped)
{
	const char *value = value_layout(t);
	struct bind_field f = {.size = t->size,
			       .big_endian = bind_is_big_endian(l->file, t, in_swapped)};

	if (value)
		fprintf(l->file->out, "%s%s", value, java_with_order(l->file, &f));
	else
		fprintf(l->file->out, "MemoryLayout.sequenceLayout(%llu, BYTE)",
			(unsigned long long)t->size);
}

/*
 * An array that the walk did not go into (no bytes, or flexible) is no layout's, so that this goes
 * no deeper than it did.
 */
static void put_layout(struct layouts *l, uint32_t id, bool in_swapped)
{
	const struct cairn_type *t = type_of(l->file, id);
	unsigned int n_sequences = 0;

	while (t->kind == CAIRN_T_ARRAY && t->has_count && t->count &&
	       cairn_types_size(l->file->types, t->ref)) {
		fprintf(l->file->out, "MemoryLayout.sequenceLayout(%llu, ",
			(unsigned long long)t->count);
		id = t->ref;
		t = type_of(l->file, id);
		n_sequences++;
	}
	if (t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_CLASS || t->kind == CAIRN_T_UNION)
		fprintf(l->file->out, "%s_G.g%lld()", l->record->camel,
			(long long)group_number(l, id));
	else if (t->kind == CAIRN_T_ARRAY)
		fputs("MemoryLayout.sequenceLayout(0, BYTE)", l->file->out);
	else
		put_value(l, t, in_swapped);
	while (n_sequences--)
		fputc(')', l->file->out);
}

static void put_member_name(struct layouts *l, const struct cairn_member *m, uint32_t i)
{
	const char *name = m->name ? bind_identifier(&l->file->arena, m->name)
				   : bind_anonymous(&l->file->arena, i);

	fprintf(l->file->out, ".withName(\"%s\")", name ? name : "");
}

static void put_padding(const struct layouts *l, uint64_t bytes)
{
	if (bytes)
		fprintf(l->file->out, "            list.add(MemoryLayout.paddingLayout(%llu));\n",
			(unsigned long long)bytes);
}

static const char part_head[] = "        static void p%llu(List<MemoryLayout> list) {\n";
static const char part_tail[] = "        }\n";

static void put_member(struct layouts *l, const struct cairn_type *t, uint32_t i)
{
	if (l->n_in_part++ == MEMBERS_PER_PART) {
		end_method(l, part_tail);
		begin_method(l, 'L', part_head);
	}
	fputs("            list.add(", l->file->out);
	put_layout(l, t->members[i].type, t->byte_swapped);
	put_member_name(l, &t->members[i], i);
	fputs(");\n", l->file->out);
}

/* The list of one struct, as one or more parts. */
static void put_parts(struct layouts *l, const struct cairn_type *t)
{
	bool is_union = t->kind == CAIRN_T_UNION;
	uint64_t pos = 0;

	begin_method(l, 'L', part_head);
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		uint64_t off = m->bit_off / 8;

		/* Members that overlap are of damaged input. */
		if (m->dynamic || m->bit_size || m->bit_off % 8 || (!is_union && off < pos))
			continue;
		if (!is_union)
			put_padding(l, off - pos);
		put_member(l, t, i);
		pos = is_union ? 0 : off + cairn_types_size(l->file->types, m->type);
	}
	if (t->size > pos)
		put_padding(l, t->size - pos);
	end_method(l, part_tail);
}

/* ---- groups ---- */

/* Which parts each group has: g0() calls Event_L0.p0() and Event_L0.p1(). */
static void put_groups(const struct layouts *l, const uint64_t *first_of)
{
	FILE *out = l->file->out;
	const char *camel = l->record->camel;

	fprintf(out, "\n    private static final class %s_G {\n", camel);
	for (size_t i = 0; i < l->groups.n; i++) {
		uint64_t end = i + 1 < l->groups.n ? first_of[i + 1] : l->n_methods;

		fprintf(out,
			"        static GroupLayout g%zu() {\n            List<MemoryLayout> list "
			"= new ArrayList<>();\n",
			i);
		for (uint64_t part = first_of[i]; part < end; part++)
			fprintf(out, "            %s_L%llu.p%llu(list);\n", camel,
				(unsigned long long)(part / PARTS_PER_CLASS),
				(unsigned long long)part);
		fprintf(out,
			"            return "
			"MemoryLayout.%sLayout(list.toArray(MemoryLayout[]::new));\n        }\n",
			type_of(l->file, l->groups.p[i])->kind == CAIRN_T_UNION ? "union"
										: "struct");
	}
	fputs("    }\n", out);
}

/* ---- checks ---- */

static void put_path(const struct bind_file *file, const struct bind_field *f)
{
	for (uint32_t i = 0; i < f->n_steps; i++) {
		fputs(i ? ", " : "", file->out);
		if (f->steps[i].name)
			fprintf(file->out, "PathElement.groupElement(\"%s\")", f->steps[i].name);
		else
			fputs("PathElement.sequenceElement(0)", file->out);
	}
}

static uint64_t put_checks(struct layouts *l)
{
	static const char head[] = "        static void c%llu(GroupLayout layout) {\n";
	FILE *out = l->file->out;

	l->n_methods = 0;
	for (size_t i = 0; i < l->record->fields.n; i++) {
		const struct bind_field *f = &l->record->fields.p[i];

		if (f->bits || bind_is_flexible(f))
			continue;
		if (l->n_methods && l->n_in_part == MEMBERS_PER_PART)
			end_method(l, part_tail);
		if (!l->n_methods || l->n_in_part == MEMBERS_PER_PART)
			begin_method(l, 'C', head);
		l->n_in_part++;
		fputs("            check(layout.byteOffset(", out);
		put_path(l->file, f);
		fprintf(out, ") == %llu, \"%s\");\n", (unsigned long long)f->off, f->name);
	}
	if (l->n_methods) {
		end_method(l, part_tail);
		end_methods(l);
	}
	return l->n_methods;
}

uint64_t java_put_layout(struct bind_file *file, const struct bind_record *r)
{
	struct layouts l = {.file = file, .record = r};
	VEC(uint64_t) first_of = {0};

	group_number(&l, r->id);
	for (size_t i = 0; i < l.groups.n; i++) {
		if (!VEC_ADD(&first_of, l.n_methods))
			break;
		put_parts(&l, type_of(file, l.groups.p[i]));
	}
	end_methods(&l);
	file->no_memory |= first_of.n != l.groups.n;
	if (first_of.n == l.groups.n)
		put_groups(&l, first_of.p);
	uint64_t n_checks = put_checks(&l);
	VEC_FREE(&first_of);
	VEC_FREE(&l.groups);
	map_fini(&l.group_of);
	return n_checks;
}

void java_put_layout_use(const struct bind_file *file, const struct bind_record *r,
			 uint64_t n_checks)
{
	FILE *out = file->out;

	fprintf(out,
		"\n        public static final long SIZE = %llu;\n        public static final "
		"GroupLayout LAYOUT = %s_G.g0()",
		(unsigned long long)r->size, r->camel);
	fprintf(out,
		".withName(\"%s\");\n\n        static {\n            check(LAYOUT.byteSize() == "
		"SIZE, \"%s\");\n",
		r->name, r->camel);
	for (uint64_t i = 0; i < n_checks; i++)
		fprintf(out, "            %s_C%llu.c%llu(LAYOUT);\n", r->camel,
			(unsigned long long)(i / PARTS_PER_CLASS), (unsigned long long)i);
	fputs("        }\n", out);
}
