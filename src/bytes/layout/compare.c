/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparing two structs member by member
 *
 * Members are listed as their users see them (fields.c), and paired by name. Members left over on
 * both sides at the same point of the order are a pair, too, when they are one member under another
 * name:
 *
 *	struct v1 { int pid; char comm[16]; };      struct v2 { int tgid; int cpu; char comm[16]; };
 *
 *	pid  0 4   tgid 0 4     the same place and size: renamed
 *	           cpu  4 4     left over on the second side only: added; comm, after it, moved
 *	comm 4 16  comm 8 16    moved
 *
 * A pair is compared in the order in which a reader would notice: position, size, meaning. Structs
 * in structs are compared relative to their own start, so a struct which moved as a whole is one
 * change.
 *
 * The results bound the work: each pair of inner structs without a difference is compared once, and
 * one with a difference adds a change to a list with a limit.
 */
#include "layout/compare.h"

#include <errno.h>

#include "base/err.h"
#include "base/opts.h"
#include "layout/view.h"

static const enum cairn_change_kind SAME = CAIRN_CHANGE_N_KINDS;

/* ---- the list ---- */

static uint64_t place_of(const struct cairn_change *change)
{
	const struct cairn_change_side *side = &change->side[change->side[0].there ? 0 : 1];

	return side->unplaced ? UINT64_MAX : side->bit_off;
}

/*
 * Sorts by offset; changes at one offset stay in their order, those without one come last. The list
 * is short.
 */
static void sort_changes(struct cairn_changes *changes)
{
	for (size_t i = 1; i < changes->v.n; i++) {
		struct cairn_change one = changes->v.p[i];
		size_t k = i;

		for (; k && place_of(&changes->v.p[k - 1]) > place_of(&one); k--)
			changes->v.p[k] = changes->v.p[k - 1];
		changes->v.p[k] = one;
	}
}

/* ---- unions in languages that have none ---- */

/* The other side has this field of a union, without a union of its own. */
static void show_arm(struct fields *a, const struct field *f)
{
	uint32_t arm = f->arm;

	for (uint32_t in = f->in; in; in = a->unions.p[in - 1].in) {
		struct field_union *u = &a->unions.p[in - 1];

		if (!u->shown)
			u->shown = arm + 1;
		arm = u->arm;
	}
}

/*
 * The other side shows another arm of a union that the field is in, or all of it as bytes. *@ret:
 * the index plus 1 of the field that does the latter; 0: none.
 */
static bool is_shown_otherwise(const struct compare *c, const struct fields *a,
			       const struct field *f, size_t *ret)
{
	uint32_t arm = f->arm;
	bool shown = false;

	*ret = 0;
	if (!c->opts.other_language)
		return false;
	for (uint32_t in = f->in; in; in = a->unions.p[in - 1].in) {
		const struct field_union *u = &a->unions.p[in - 1];

		*ret = u->bytes ? u->bytes : *ret;
		shown |= u->bytes || (u->shown && u->shown != arm + 1);
		arm = u->arm;
	}
	return shown;
}

static bool is_within(const struct fields *a, const struct field *f, uint32_t of)
{
	uint32_t in = f->in;

	while (in && in != of)
		in = a->unions.p[in - 1].in;
	return in;
}

/* Anon0 [16]byte where the program has an anonymous union of 16 bytes. */
static void pair_unions_with_bytes(const struct compare *c, struct fields *a, struct fields *b)
{
	for (size_t i = 0; a->unions.n && i < b->v.n; i++) {
		struct field *f = &b->v.p[i];
		uint64_t key = field_range_key(f->bit_off, f->bit_off + 8 * f->size), of;

		if (f->in_union || f->bit_size || f->unplaced || !f->name ||
		    is_padding_name(f->name) || !are_bytes(c, f->type) ||
		    !map_get(&a->anonymous, key, &of) || !of)
			continue;
		if (f->partner && !is_within(a, &a->v.p[f->partner - 1], (uint32_t)of))
			continue;
		if (f->partner)
			a->v.p[f->partner - 1].partner = PARTNER_UNION;
		f->partner = PARTNER_UNION;
		a->unions.p[of - 1].bytes = i + 1;
	}
}

/* ---- pairing ---- */

static uint64_t name_key(const struct compare *c, const char *name)
{
	return c->opts.other_language ? folded_hash(name) : map_hash_str(name);
}

static bool same_name(const struct compare *c, const char *a, const char *b)
{
	return c->opts.other_language ? cairn_compare_names(a, b) : !strcmp(a, b);
}

static void join(struct fields *a, size_t i, struct fields *b, size_t k)
{
	a->v.p[i].partner = k + 1;
	b->v.p[k].partner = i + 1;
	if (!b->v.p[k].in_union)
		show_arm(a, &a->v.p[i]);
}

static void pair_by_name(struct compare *c, struct fields *a, struct fields *b)
{
	struct map index = {0};
	uint64_t at;

	/* If a name occurs twice, which no compiler accepts, the first counts. */
	for (size_t i = b->v.n; i-- > 0;)
		if (b->v.p[i].name && map_put(&index, name_key(c, b->v.p[i].name), i) < 0)
			c->no_memory = true;
	for (size_t i = 0; i < a->v.n; i++) {
		const char *name = a->v.p[i].name;

		if (!name || (c->opts.other_language && is_padding_name(name)) ||
		    !map_get(&index, name_key(c, name), &at))
			continue;
		if (!b->v.p[at].partner && same_name(c, name, b->v.p[at].name))
			join(a, i, b, at);
	}
	map_fini(&index);
}

static uint64_t bits_of(const struct field *f)
{
	return f->bit_size ? f->bit_size : 8 * f->size;
}

/* Two members without an offset may be at one place. */
static bool same_place(const struct field *a, const struct field *b)
{
	return a->unplaced == b->unplaced && (a->unplaced || a->bit_off == b->bit_off);
}

/* Two that have no partner by name: one member under two names? */
static bool is_renamed(struct compare *c, const struct field *a, const struct field *b)
{
	bool pad_a = !a->name || is_padding_name(a->name),
	     pad_b = !b->name || is_padding_name(b->name);

	if (c->opts.other_language)
		return !a->name || !b->name || pad_a == pad_b;
	return same_place(a, b) && bits_of(a) == bits_of(b) &&
	       compare_type(c, 0, a->type)->kind == compare_type(c, 1, b->type)->kind &&
	       compare_values(c, a->type, b->type) == SAME;
}

/* Another arm of the same union has the size of @other, and this one has not. */
static bool fits_another_arm(const struct compare *c, const struct fields *a, size_t i,
			     const struct field *other)
{
	const struct field *f = &a->v.p[i];

	if (!c->opts.other_language || !f->in || bits_of(f) == bits_of(other))
		return false;
	/* A union of many arms is no way to many comparisons. */
	for (size_t k = i + 1; k < a->v.n && k - i < NEST_MAX && is_within(a, &a->v.p[k], f->in);
	     k++)
		if (!a->v.p[k].partner && a->v.p[k].bit_off == f->bit_off &&
		    bits_of(&a->v.p[k]) == bits_of(other))
			return true;
	return false;
}

/* Pairs the members between the same two pairs on both sides. */
static void pair_by_order(struct compare *c, struct fields *a, struct fields *b)
{
	size_t k = 0, bytes;

	for (size_t i = 0; i < a->v.n; i++) {
		struct field *f = &a->v.p[i];

		if (is_shown_otherwise(c, a, f, &bytes) || f->partner) {
			if (f->partner && f->partner != PARTNER_UNION)
				k = f->partner;
			k = bytes > k ? bytes : k;
			continue;
		}
		/*
		 * A reader may have padding that the program does not name; it stands for nothing.
		 */
		while (c->opts.other_language && k < b->v.n && !b->v.p[k].partner &&
		       b->v.p[k].name && is_padding_name(b->v.p[k].name) && f->name &&
		       !is_padding_name(f->name))
			k++;
		if (k < b->v.n && !b->v.p[k].partner && is_renamed(c, f, &b->v.p[k]) &&
		    !fits_another_arm(c, a, i, &b->v.p[k]))
			join(a, i, b, k++);
	}
}

/* ---- a pair ---- */

static void compare_records(struct compare *c, uint32_t a, uint32_t b);

/* Changes inside of a member have its place, and paths that begin with its name. */
static struct compare inside(struct compare *c, const struct field *a, const struct field *b)
{
	bool array = compare_type(c, 0, a->type)->kind == CAIRN_T_ARRAY;
	const char *name = a->name ? a->name : b->name ? b->name : "";
	struct compare inner = *c;

	inner.depth++;
	inner.base[0] += a->bit_off;
	inner.base[1] += b->bit_off;
	inner.unplaced[0] |= a->unplaced;
	inner.unplaced[1] |= b->unplaced;
	inner.path = arena_printf(&c->to->arena, "%s%s%s.", c->path, name, array ? "[]" : "");
	inner.no_memory |= !inner.path;
	return inner;
}

/* True when any change was reported. */
static bool compare_inside(struct compare *c, const struct field *a, const struct field *b)
{
	size_t before = n_reported(c);
	uint32_t of[2];
	bool records = inner_records(c, a->type, b->type, of);
	const struct cairn_type *types[2] = {compare_type(c, 0, innermost(c, 0, a->type)),
					     compare_type(c, 1, innermost(c, 1, b->type))};
	bool enums = types[0]->kind == CAIRN_T_ENUM && types[1]->kind == CAIRN_T_ENUM;

	if ((!records && !enums) || c->depth == NEST_MAX)
		return false;
	struct compare inner = inside(c, a, b);
	if (!inner.no_memory && records)
		compare_records(&inner, of[0], of[1]);
	else if (!inner.no_memory)
		compare_enums(&inner, types[0], types[1]);
	c->no_memory |= inner.no_memory;
	return n_reported(c) > before;
}

static enum cairn_change_kind size_change(const struct compare *c, const struct field *a,
					  const struct field *b)
{
	const struct cairn_type *of[2] = {compare_type(c, 0, a->type), compare_type(c, 1, b->type)};

	if (of[0]->kind != CAIRN_T_ARRAY || of[1]->kind != CAIRN_T_ARRAY)
		return CAIRN_CHANGE_RESIZED;
	return cairn_types_size(c->types[0], of[0]->ref) ==
			       cairn_types_size(c->types[1], of[1]->ref)
		       ? CAIRN_CHANGE_LENGTH
		       : CAIRN_CHANGE_RESIZED;
}

static enum cairn_change_kind pair_change(const struct compare *c, const struct field *a,
					  const struct field *b)
{
	if (a->unplaced != b->unplaced)
		return CAIRN_CHANGE_UNPLACED;
	if (!same_place(a, b))
		return CAIRN_CHANGE_MOVED;
	if ((a->bit_size || b->bit_size) && bits_of(a) != bits_of(b))
		return CAIRN_CHANGE_BITS;
	if (!a->bit_size && !b->bit_size && a->size != b->size && !is_one_arm(c, a->type, b->type))
		return size_change(c, a, b);
	enum cairn_change_kind kind = compare_values(c, a->type, b->type);
	if (kind == SAME && !c->opts.other_language && a->name && b->name &&
	    strcmp(a->name, b->name))
		kind = CAIRN_CHANGE_RENAMED;
	return kind;
}

static void compare_pair(struct compare *c, const struct field *a, const struct field *b)
{
	enum cairn_change_kind kind = pair_change(c, a, b);
	bool told = compare_inside(c, a, b);

	c->to->n_unplaced += a->unplaced && b->unplaced;
	/* The changes inside a struct say more than the change of its size. */
	if (kind != SAME && !(told && kind == CAIRN_CHANGE_RESIZED))
		change_add(c, kind, a, b);
}

/* ---- those without a partner ---- */

static void report_removed(struct compare *c, const struct field *f)
{
	/* Another language leaves out members that it cannot express, and empty ones. */
	if (c->opts.other_language && (!f->size || !f->name || is_padding_name(f->name)))
		return;
	change_add(c, CAIRN_CHANGE_REMOVED, f, NULL);
}

static void report_added(struct compare *c, const struct fields *a, const struct field *f)
{
	bool fresh = !f->unplaced && !fields_cover(a, f->bit_off, f->bit_off + bits_of(f));
	enum cairn_change_kind kind = CAIRN_CHANGE_ADDED;

	if (c->opts.other_language && (!f->size || !f->name || is_padding_name(f->name)))
		return;
	if (fresh && !f->in_union && f->bit_off >= a->end)
		kind = CAIRN_CHANGE_ADDED_AT_END;
	else if (fresh)
		kind = CAIRN_CHANGE_ADDED_IN_PADDING;
	change_add(c, kind, NULL, f);
}

static void compare_fields(struct compare *c, struct fields *a, struct fields *b)
{
	size_t bytes;

	pair_by_name(c, a, b);
	if (c->opts.other_language)
		pair_unions_with_bytes(c, a, b);
	pair_by_order(c, a, b);
	for (size_t i = 0; i < a->v.n && !c->to->cut; i++) {
		const struct field *f = &a->v.p[i];

		if (f->partner && f->partner != PARTNER_UNION)
			compare_pair(c, f, &b->v.p[f->partner - 1]);
		else if (!f->partner && !is_shown_otherwise(c, a, f, &bytes))
			report_removed(c, f);
	}
	for (size_t i = 0; i < b->v.n && !c->to->cut; i++)
		if (!b->v.p[i].partner)
			report_added(c, a, &b->v.p[i]);
}

/* ---- a pair of structs ---- */

static void compare_wholes(struct compare *c, uint32_t id_a, uint32_t id_b, const struct fields *a,
			   const struct fields *b, bool told)
{
	const struct cairn_type *of[2] = {compare_type(c, 0, id_a), compare_type(c, 1, id_b)};
	struct field whole[2] = {{.type = id_a, .size = of[0]->size},
				 {.type = id_b, .size = of[1]->size}};

	if ((of[0]->kind == CAIRN_T_UNION) != (of[1]->kind == CAIRN_T_UNION) &&
	    !c->opts.other_language)
		change_add(c, CAIRN_CHANGE_KIND, &whole[0], &whole[1]);
	if (of[0]->size != of[1]->size && (!told || a->end == b->end))
		change_add(c, CAIRN_CHANGE_TAIL, &whole[0], &whole[1]);
}

static void compare_records(struct compare *c, uint32_t a, uint32_t b)
{
	uint64_t key = (uint64_t)cairn_types_resolve(c->types[0], a) << 32 |
		       cairn_types_resolve(c->types[1], b);
	struct fields fields[2] = {{.end = 0}, {.end = 0}};
	uint64_t known;
	size_t before = n_reported(c);

	if (c->to->cut || c->no_memory || (map_get(c->same, key, &known) && known))
		return;
	/* While it is compared it counts as the same: so a type that contains itself has an end. */
	if (map_put(c->same, key, 1) < 0 || fields_collect(c->types[0], a, NULL, &fields[0]) < 0 ||
	    fields_collect(c->types[1], b, c->opts.other_language ? &fields[0] : NULL, &fields[1]) <
		    0)
		c->no_memory = true;
	if (!c->no_memory) {
		compare_fields(c, &fields[0], &fields[1]);
		compare_wholes(c, a, b, &fields[0], &fields[1], n_reported(c) > before);
		if (n_reported(c) > before && map_put(c->same, key, 0) < 0)
			c->no_memory = true;
	}
	fields_free(&fields[0]);
	fields_free(&fields[1]);
}

static void compare_any(struct compare *c, uint32_t a, uint32_t b)
{
	const struct cairn_type *of[2] = {compare_type(c, 0, a), compare_type(c, 1, b)};
	struct field whole[2] = {{.type = a, .size = of[0]->size},
				 {.type = b, .size = of[1]->size}};
	enum cairn_change_kind kind = CAIRN_CHANGE_KIND;

	if (is_aggregate(of[0]) && is_aggregate(of[1])) {
		compare_records(c, a, b);
		return;
	}
	/* struct Kind(u32) counts as its content. */
	if (is_aggregate(of[0]) == is_aggregate(of[1]) || c->opts.other_language)
		kind = of[0]->size != of[1]->size ? CAIRN_CHANGE_RESIZED : compare_values(c, a, b);
	if (kind != SAME)
		change_add(c, kind, &whole[0], &whole[1]);
	else if (of[0]->kind == CAIRN_T_ENUM && of[1]->kind == CAIRN_T_ENUM)
		compare_enums(c, of[0], of[1]);
}

/* ---- public ---- */

int cairn_compare(const struct cairn_types *a, uint32_t id_a, const struct cairn_types *b,
		  uint32_t id_b, const struct cairn_compare_opts *opts, struct cairn_changes **ret,
		  struct cairn_err *err)
{
	struct map same = {0};
	struct compare c = {.types = {a, b}, .path = "", .same = &same};
	int rc = opts_take(&c.opts, sizeof(c.opts), opts, err);

	if (rc < 0)
		return rc;
	c.to = calloc(1, sizeof(*c.to));
	if (!c.to)
		return err_nomem(err, "the differences");
	arena_init(&c.to->arena);
	compare_any(&c, id_a, id_b);
	map_fini(&same);
	if (c.no_memory) {
		cairn_changes_free(c.to);
		return err_nomem(err, "the differences");
	}
	sort_changes(c.to);
	*ret = c.to;
	return 0;
}

void cairn_changes_free(struct cairn_changes *changes)
{
	if (!changes)
		return;
	VEC_FREE(&changes->v);
	arena_fini(&changes->arena);
	free(changes);
}

size_t cairn_changes_n_changes(const struct cairn_changes *changes)
{
	return changes->v.n;
}

const struct cairn_change *cairn_changes_at(const struct cairn_changes *changes, size_t i)
{
	return &changes->v.p[i];
}

size_t cairn_changes_ignored(const struct cairn_changes *changes)
{
	return changes->n_ignored;
}

size_t cairn_changes_unplaced(const struct cairn_changes *changes)
{
	return changes->n_unplaced;
}

bool cairn_changes_cut(const struct cairn_changes *changes)
{
	return changes->cut;
}

static const struct {
	const char *word, *text;
} names[CAIRN_CHANGE_N_KINDS] = {
	[CAIRN_CHANGE_KIND] = {"kind", "another kind of type"},
	[CAIRN_CHANGE_MOVED] = {"moved", "moved"},
	[CAIRN_CHANGE_UNPLACED] = {"offset-not-known", "offset not known"},
	[CAIRN_CHANGE_BITS] = {"bits", "another width in bits"},
	[CAIRN_CHANGE_LENGTH] = {"length", "array length changed"},
	[CAIRN_CHANGE_RESIZED] = {"resized", "resized"},
	[CAIRN_CHANGE_TYPE] = {"type", "type changed"},
	[CAIRN_CHANGE_SIGN] = {"sign", "sign changed"},
	[CAIRN_CHANGE_BYTE_ORDER] = {"byte-order", "byte order differs"},
	[CAIRN_CHANGE_RENAMED] = {"renamed", "renamed"},
	[CAIRN_CHANGE_ADDED] = {"added", "added"},
	[CAIRN_CHANGE_ADDED_AT_END] = {"added-at-end", "added at the end"},
	[CAIRN_CHANGE_ADDED_IN_PADDING] = {"added-in-padding", "added in padding"},
	[CAIRN_CHANGE_REMOVED] = {"removed", "removed"},
	[CAIRN_CHANGE_ENUMERATOR] = {"enumerator", "enumerator has another value"},
	[CAIRN_CHANGE_TAIL] = {"tail", "padding at the end"},
};

const char *cairn_change_id(enum cairn_change_kind kind)
{
	return kind < CAIRN_CHANGE_N_KINDS ? names[kind].word : "same";
}

const char *cairn_change_text(enum cairn_change_kind kind)
{
	return kind < CAIRN_CHANGE_N_KINDS ? names[kind].text : "the same";
}
