/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two sources of types side by side: --abi A,B and --diff. The output is the result of
 * cairn_compare().
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "layout_compare.h"
#include "say.h"

/* ---- printing ---- */

static const struct cairn_type *type_of(const struct layout_side *s, uint32_t id)
{
	return cairn_types_get(s->types, cairn_types_resolve(s->types, id));
}

/* "16 8 bytes", "16:3 5 bits", "= 7"; "-" where there is nothing. */
static void place_text(const struct cairn_change *change, const struct cairn_change_side *s,
		       char *buf, size_t size)
{
	if (!s->there)
		snprintf(buf, size, "-");
	else if (change->is_enumerator)
		snprintf(buf, size, "= %" PRId64, s->value);
	else if (s->unplaced && s->bit_size)
		snprintf(buf, size, "? %u bits", s->bit_size);
	else if (s->unplaced)
		snprintf(buf, size, "? %" PRIu64 " byte%s", s->size, s->size == 1 ? "" : "s");
	else if (s->bit_size)
		snprintf(buf, size, "%" PRIu64 ":%" PRIu64 " %u bits", s->bit_off / 8,
			 s->bit_off % 8, s->bit_size);
	else
		snprintf(buf, size, "%" PRIu64 " %" PRIu64 " byte%s", s->bit_off / 8, s->size,
			 s->size == 1 ? "" : "s");
}

/* The details that the position does not show: the types, or the other name. */
static void print_detail(const struct layout_side *sides, const struct cairn_change *change)
{
	char name[2][256];
	enum cairn_change_kind kind = change->kind;

	if (kind == CAIRN_CHANGE_RENAMED)
		say(stdout, ": %s", change->side[1].name);
	if (kind != CAIRN_CHANGE_SIGN && kind != CAIRN_CHANGE_TYPE && kind != CAIRN_CHANGE_LENGTH &&
	    kind != CAIRN_CHANGE_RESIZED && kind != CAIRN_CHANGE_BYTE_ORDER)
		return;
	for (int i = 0; i < 2; i++)
		cairn_types_name(sides[i].types, change->side[i].type, name[i], sizeof(name[i]));
	say(stdout, ": %s, %s", name[0], name[1]);
}

void layout_print_changes(const struct layout_side *sides, const struct cairn_changes *changes)
{
	for (size_t i = 0; i < cairn_changes_n_changes(changes); i++) {
		const struct cairn_change *change = cairn_changes_at(changes, i);
		char places[2][64];

		for (int k = 0; k < 2; k++)
			place_text(change, &change->side[k], places[k], sizeof(places[k]));
		say(stdout, "    %-24s %-20s %-20s %s",
		    change->path[0] ? change->path : "(the whole)", places[0], places[1],
		    cairn_change_text(change->kind));
		print_detail(sides, change);
		putchar('\n');
	}
	if (cairn_changes_unplaced(changes))
		say(stdout, "    offset not known: %s, not compared\n",
		    cairn_counted(cairn_changes_unplaced(changes), "member").text);
	if (cairn_changes_cut(changes))
		say(stdout, "    and more than %d others\n", CAIRN_CHANGES_MAX);
}

static void put_pair(struct json *j, const char *key, const struct cairn_change *change, uint64_t a,
		     uint64_t b)
{
	uint64_t values[2] = {a, b};

	json_open(j, key, '[');
	for (int i = 0; i < 2; i++) {
		if (change->side[i].there)
			json_uint(j, NULL, values[i]);
		else
			json_null(j, NULL);
	}
	json_close(j);
}

/* null also if the offset is not known. */
static void put_places(struct json *j, const struct cairn_change *change)
{
	json_open(j, "bit_offset", '[');
	for (int i = 0; i < 2; i++) {
		if (change->side[i].there && !change->side[i].unplaced)
			json_uint(j, NULL, change->side[i].bit_off);
		else
			json_null(j, NULL);
	}
	json_close(j);
}

static void put_types(struct json *j, const struct layout_side *sides,
		      const struct cairn_change *change)
{
	char name[4096];

	json_open(j, "type", '[');
	for (int i = 0; i < 2; i++) {
		if (change->side[i].there)
			cairn_types_name(sides[i].types, change->side[i].type, name, sizeof(name));
		json_text(j, NULL, change->side[i].there ? name : NULL);
	}
	json_close(j);
}

static void put_change(struct json *j, const struct layout_side *sides,
		       const struct cairn_change *change)
{
	const struct cairn_change_side *a = &change->side[0], *b = &change->side[1];

	json_open(j, NULL, '{');
	json_text(j, "name", change->path[0] ? change->path : NULL);
	json_text(j, "change", cairn_change_id(change->kind));
	if (change->is_enumerator) {
		put_pair(j, "value", change, (uint64_t)a->value, (uint64_t)b->value);
	} else {
		put_places(j, change);
		put_pair(j, "size", change, a->size, b->size);
		if (a->bit_size || b->bit_size)
			put_pair(j, "bits", change, a->bit_size, b->bit_size);
		put_types(j, sides, change);
	}
	json_close(j);
}

void layout_json_changes(struct json *j, const struct layout_side *sides,
			 const struct cairn_changes *changes)
{
	json_open(j, "differing", '[');
	for (size_t i = 0; changes && i < cairn_changes_n_changes(changes); i++)
		put_change(j, sides, cairn_changes_at(changes, i));
	json_close(j);
	if (changes && cairn_changes_unplaced(changes))
		json_uint(j, "unplaced", cairn_changes_unplaced(changes));
	if (changes && cairn_changes_cut(changes))
		json_bool(j, "more", true);
}

/* ---- pairs of types ---- */

struct named {
	const char *kind, *name;
	uint32_t id;
	size_t order;
	bool paired;
};

static struct named named_of(const struct layout_side *s, size_t i)
{
	uint32_t id = s->list.ids[i];
	const char *kind = layout_kind(s->types, id);

	return (struct named){.kind = strcmp(kind, "class") ? kind : "struct",
			      .name = cairn_types_get(s->types, id)->name,
			      .id = id,
			      .order = i};
}

static int compare_named(const struct named *a, const struct named *b)
{
	int by_name = strcmp(a->name, b->name);

	return by_name ? by_name : strcmp(a->kind, b->kind);
}

static int by_name_and_order(const void *x, const void *y)
{
	const struct named *a = x, *b = y;
	int order = compare_named(a, b);

	return order ? order : (a->order > b->order) - (a->order < b->order);
}

/* The first of that name which is not paired yet; NULL: none. */
static struct named *find(struct named *sorted, size_t n, const struct named *key)
{
	size_t lo = 0, hi = n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (compare_named(&sorted[mid], key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	while (lo < n && !compare_named(&sorted[lo], key) && sorted[lo].paired)
		lo++;
	return lo < n && !compare_named(&sorted[lo], key) ? &sorted[lo] : NULL;
}

int layout_for_pairs(const struct layout_side *sides,
		     int (*each)(void *ctx, uint32_t a, uint32_t b), void *ctx)
{
	const struct layout_side *old = &sides[0], *new = &sides[1];
	struct named *sorted = calloc(new->list.n + 1, sizeof(*sorted));
	int status = STATUS_YES, one;

	if (!sorted)
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < new->list.n; i++)
		sorted[i] = named_of(new, i);
	qsort(sorted, new->list.n, sizeof(*sorted), by_name_and_order);
	for (size_t i = 0; i < old->list.n && status <= STATUS_NO; i++) {
		struct named key = named_of(old, i), *other = find(sorted, new->list.n, &key);

		if (other)
			other->paired = true;
		one = each(ctx, key.id, other ? other->id : 0);
		status = one > status ? one : status;
	}
	for (size_t i = 0; i < new->list.n &&status <= STATUS_NO; i++) {
		one = sorted[i].paired ? STATUS_YES : each(ctx, 0, sorted[i].id);
		status = one > status ? one : status;
	}
	free(sorted);
	return status;
}

/* ---- one pair ---- */

struct comparison {
	const struct layout_side *sides;
	const char *word; /* "on" an ABI, "in" a file */
	bool json;
};

static void json_pair(const struct comparison *c, const uint32_t *ids,
		      const struct cairn_changes *changes, bool same)
{
	struct json j = {.out = stdout};
	int of = ids[0] ? 0 : 1;

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(c->sides[of].types, ids[of]));
	json_text(&j, "name", cairn_types_get(c->sides[of].types, ids[of])->name);
	json_open(&j, "abi", '[');
	for (int i = 0; i < 2; i++)
		json_text(&j, NULL, c->sides[i].abi ? c->sides[i].abi->name : NULL);
	json_close(&j);
	json_bool(&j, "same", same);
	json_open(&j, "size", '[');
	for (int i = 0; i < 2; i++) {
		if (ids[i])
			json_uint(&j, NULL, type_of(&c->sides[i], ids[i])->size);
		else
			json_null(&j, NULL);
	}
	json_close(&j);
	layout_json_changes(&j, c->sides, changes);
	json_close(&j);
}

static void print_pair(const struct comparison *c, const uint32_t *ids,
		       const struct cairn_changes *changes)
{
	int of = ids[0] ? 0 : 1;

	say(stdout, "%s %s: ", layout_kind(c->sides[of].types, ids[of]),
	    cairn_types_get(c->sides[of].types, ids[of])->name);
	if (!ids[0] || !ids[1]) {
		say(stdout, "only %s %s\n", c->word, c->sides[of].label);
		return;
	}
	say(stdout, "%s %s %s, %" PRIu64 " %s %s\n",
	    cairn_counted(type_of(&c->sides[0], ids[0])->size, "byte").text, c->word,
	    c->sides[0].label, type_of(&c->sides[1], ids[1])->size, c->word, c->sides[1].label);
	layout_print_changes(c->sides, changes);
}

/* Nothing differs as far as it is known. */
static void note_unplaced(const struct comparison *c, uint32_t id,
			  const struct cairn_changes *changes)
{
	say(stderr, "cairn: note: %s %s: offset not known: %s, not compared\n",
	    layout_kind(c->sides[0].types, id), cairn_types_get(c->sides[0].types, id)->name,
	    cairn_counted(cairn_changes_unplaced(changes), "member").text);
}

static int compare_pair(void *ctx, uint32_t a, uint32_t b)
{
	const struct comparison *c = ctx;
	const uint32_t ids[2] = {a, b};
	struct cairn_changes *changes = NULL;
	struct cairn_err err = {0};

	if (a && b) {
		int rc = cairn_compare(c->sides[0].types, a, c->sides[1].types, b, NULL, &changes,
				       &err);

		if (rc < 0)
			return fail_err(rc, &err, STATUS_NOT_HERE);
	}
	bool same = changes && !cairn_changes_n_changes(changes);
	if (c->json)
		json_pair(c, ids, changes, same);
	else if (!same)
		print_pair(c, ids, changes);
	else if (cairn_changes_unplaced(changes))
		note_unplaced(c, ids[0], changes);
	cairn_changes_free(changes);
	return same ? STATUS_YES : STATUS_NO;
}

/* ---- sides ---- */

int layout_open_side(const char *path, const struct cairn_abi *abi,
		     const struct layout_values *values, char *const *patterns, size_t n_patterns,
		     struct layout_side *ret)
{
	int status = layout_open(path, abi, values, &ret->source);

	if (status)
		return status;
	/* Types that one side lacks are reported when both sides are known. */
	status = layout_select(ret->source.source, patterns, n_patterns, &ret->list);
	if (!status && abi)
		status = layout_retarget(&ret->source, abi, &ret->list);
	ret->types = layout_types(&ret->source);
	ret->abi = layout_abi(&ret->source);
	return status;
}

void layout_close_side(struct layout_side *side)
{
	free(side->list.ids);
	layout_close(&side->source);
}

int layout_compare_sides(const struct layout_side *sides, const char *word, bool json)
{
	struct comparison c = {.sides = sides, .word = word, .json = json};

	return layout_for_pairs(sides, compare_pair, &c);
}

/* Against @first, which is open. */
static int compare_with(const char *path, const struct layout_side *first,
			const struct cairn_abi *abi, const struct layout_values *values,
			char *const *patterns, size_t n_patterns)
{
	struct layout_side sides[2] = {*first, {.label = abi->name}};
	int status = layout_open_side(path, abi, values, patterns, n_patterns, &sides[1]);

	if (!status)
		status = layout_compare_sides(sides, "on", values->json);
	layout_close_side(&sides[1]);
	return status;
}

int layout_compare(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		   const struct layout_values *values, char *const *patterns, size_t n_patterns)
{
	struct layout_side first = {.label = abis[0]->name};
	int status = layout_open_side(path, abis[0], values, patterns, n_patterns, &first);

	bool is_open = !status;

	for (size_t i = 1; is_open && i < n_abis && status <= STATUS_NO; i++) {
		int one = compare_with(path, &first, abis[i], values, patterns, n_patterns);

		status = one > status ? one : status;
	}
	layout_close_side(&first);
	return status;
}

int layout_diff(const struct cairn_abi *abi, const struct layout_values *values,
		const struct operands *operands)
{
	struct layout_side sides[2] = {{.label = NULL}, {.label = NULL}};
	int status = STATUS_YES, missing = 0;

	if (operands->n < 2)
		return fail(STATUS_USAGE, "--diff compares two files: OLD NEW [TYPE...]");
	for (int i = 0; i < 2 && status <= STATUS_NO; i++) {
		sides[i].label = operands->items[i];
		status = layout_open_side(operands->items[i], abi, values, operands->items + 2,
					  operands->n - 2, &sides[i]);
		missing += status == STATUS_NO;
	}
	/* A type that one of them lacks is a difference. */
	if (status <= STATUS_NO && missing < 2) {
		status = layout_compare_sides(sides, "in", values->json);
		status = missing && !status ? STATUS_NO : status;
	}
	for (int i = 0; i < 2; i++)
		layout_close_side(&sides[i]);
	return status;
}
