/* SPDX-License-Identifier: BSD-2-Clause */
/* The same declarations on two ABIs. The text is parsed for each: its constants and macros may differ, too. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "json.h"
#include "layout.h"

struct side {
	const struct cairn_abi *abi;
	struct layout_source source;
	const struct cairn_types *types;
	struct cairn_source_list list;
};

static const struct cairn_type *type_of(const struct side *s, uint32_t id)
{
	return cairn_types_get(s->types, cairn_types_resolve(s->types, id));
}

static bool is_record(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_STRUCT || t->kind == CAIRN_T_UNION;
}

/* The type of that name and kind on the other side; 0: there is none. */
static uint32_t counterpart(const struct side *of, uint32_t id, const struct side *in)
{
	const struct cairn_type *t = cairn_types_get(of->types, id);

	for (size_t i = 0; i < in->list.n; i++) {
		const struct cairn_type *other = cairn_types_get(in->types, in->list.ids[i]);

		if (other->kind == t->kind && !strcmp(other->name, t->name))
			return in->list.ids[i];
	}
	return 0;
}

static bool same_member(const struct side *s, const struct cairn_member *a, const struct cairn_member *b)
{
	return a->bit_off == b->bit_off && a->bit_size == b->bit_size &&
	       cairn_types_size(s[0].types, a->type) == cairn_types_size(s[1].types, b->type);
}

static bool same_names(const struct cairn_type *a, const struct cairn_type *b)
{
	if (a->n_members != b->n_members)
		return false;
	for (uint32_t i = 0; i < a->n_members; i++) {
		const char *x = a->members[i].name, *y = b->members[i].name;

		if (!x != !y || (x && strcmp(x, y)))
			return false;
	}
	return true;
}

static bool same_layout(const struct side *s, const struct cairn_type *a, const struct cairn_type *b)
{
	if (a->size != b->size || !is_record(a))
		return a->size == b->size;
	if (!same_names(a, b))
		return false;
	for (uint32_t i = 0; i < a->n_members; i++)
		if (!same_member(s, &a->members[i], &b->members[i]))
			return false;
	return true;
}

/* "16..23", "16:3..16:5" */
static void place_text(const struct side *s, const struct cairn_member *m, char *buf, size_t size)
{
	uint64_t bytes = cairn_types_size(s->types, m->type), off = m->bit_off / 8;

	if (m->bit_size)
		snprintf(buf, size, "%" PRIu64 ":%" PRIu64 " %u bits", off, m->bit_off % 8, m->bit_size);
	else
		snprintf(buf, size, "%" PRIu64 " %" PRIu64 " bytes", off, bytes);
}

static void show_text(const struct side *s, const uint32_t *ids, const struct cairn_type *const *t)
{
	char places[2][64];

	printf("%s %s: %" PRIu64 " bytes on %s, %" PRIu64 " on %s\n", layout_kind(s[0].types, ids[0]),
	       cairn_types_get(s[0].types, ids[0])->name, t[0]->size, s[0].abi->name, t[1]->size, s[1].abi->name);
	if (!is_record(t[0]))
		return;
	if (!same_names(t[0], t[1])) {
		puts("    the members are not the same");
		return;
	}
	for (uint32_t i = 0; i < t[0]->n_members; i++) {
		if (same_member(s, &t[0]->members[i], &t[1]->members[i]))
			continue;
		for (int k = 0; k < 2; k++)
			place_text(&s[k], &t[k]->members[i], places[k], sizeof(places[k]));
		printf("    %-24s %-20s %s\n", t[0]->members[i].name ? t[0]->members[i].name : "(anonymous)", places[0],
		       places[1]);
	}
}

static void put_pair(struct json *j, const char *key, uint64_t a, uint64_t b)
{
	json_open(j, key, '[');
	json_uint(j, NULL, a);
	json_uint(j, NULL, b);
	json_close(j);
}

static void show_json(const struct side *s, const uint32_t *ids, const struct cairn_type *const *t, bool same)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(s[0].types, ids[0]));
	json_text(&j, "name", cairn_types_get(s[0].types, ids[0])->name);
	json_open(&j, "abi", '[');
	json_text(&j, NULL, s[0].abi->name);
	json_text(&j, NULL, s[1].abi->name);
	json_close(&j);
	json_bool(&j, "same", same);
	put_pair(&j, "size", t[0]->size, t[1]->size);
	json_open(&j, "differing", '[');
	for (uint32_t i = 0; is_record(t[0]) && same_names(t[0], t[1]) && i < t[0]->n_members; i++) {
		const struct cairn_member *a = &t[0]->members[i], *b = &t[1]->members[i];

		if (same_member(s, a, b))
			continue;
		json_open(&j, NULL, '{');
		json_text(&j, "name", a->name);
		put_pair(&j, "bit_offset", a->bit_off, b->bit_off);
		put_pair(&j, "size", cairn_types_size(s[0].types, a->type), cairn_types_size(s[1].types, b->type));
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

static int compare_one(const struct side *s, uint32_t id, bool json)
{
	uint32_t ids[2] = {id, counterpart(&s[0], id, &s[1])};
	const struct cairn_type *t[2] = {type_of(&s[0], ids[0]), type_of(&s[1], ids[1])};

	if (!ids[1]) {
		fprintf(stderr, "cairn: %s is not declared on %s\n", cairn_types_get(s[0].types, id)->name, s[1].abi->name);
		return STATUS_NO;
	}
	bool same = same_layout(s, t[0], t[1]);
	if (json)
		show_json(s, ids, t, same);
	else if (!same)
		show_text(s, ids, t);
	return same ? STATUS_YES : STATUS_NO;
}

static int open_side(const char *path, const struct layout_values *values, char *const *patterns, size_t n_patterns,
		     struct side *s)
{
	int status = layout_open(path, s->abi, values, &s->source);

	if (status)
		return status;
	status = layout_select(s->source.source, patterns, n_patterns, &s->list);
	s->types = cairn_source_types(s->source.source);
	return status;
}

int layout_compare(const char *path, const struct cairn_abi *const *abis, const struct layout_values *values,
		   char *const *patterns, size_t n_patterns)
{
	struct side sides[2] = {{.abi = abis[0]}, {.abi = abis[1]}};
	int status = STATUS_YES;

	for (int i = 0; i < 2 && !status; i++)
		status = open_side(path, values, patterns, n_patterns, &sides[i]);
	if (!status)
		for (size_t i = 0; i < sides[0].list.n; i++)
			if (compare_one(sides, sides[0].list.ids[i], values->json))
				status = STATUS_NO;
	for (int i = 0; i < 2; i++) {
		free(sides[i].list.ids);
		layout_close(&sides[i].source);
	}
	return status;
}
