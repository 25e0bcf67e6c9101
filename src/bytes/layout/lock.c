/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing a lock file
 *
 * Types are collected from the requested ones inwards, each once, given a name, and sorted by it. A
 * type without a name of its own gets the name of the member that has it, "event.pos". Debug
 * information describes a type in each unit that uses it: descriptions that would be written alike
 * are one. If different types have one name the later ones are "name#2". Their order depends on
 * their written form, not on the order in which they were met, so the file does not change when it
 * is written again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/compare.h>

#include "base/err.h"
#include "base/quote.h"
#include "layout/compare.h"
#include "layout/view.h"

struct locked {
	uint32_t id;
	char *name;
	const char *word; /* struct, union, enum */
	bool inner;       /* not requested itself */
	uint64_t print;   /* hash of its written form, and of all types inside */
};

struct writer {
	const struct cairn_types *types;
	struct arena arena;
	VEC(struct locked) v;
	struct map by_id;  /* to index in v */
	struct map prints; /* by id; while they are made, they stand for names */
	bool printing;
	FILE *out;
};

static const char *word_of(const struct cairn_type *t)
{
	if (t->kind == CAIRN_T_ENUM)
		return "enum";
	return t->kind == CAIRN_T_UNION ? "union" : "struct";
}

static bool is_locked_kind(const struct cairn_type *t)
{
	return is_aggregate(t) || t->kind == CAIRN_T_ENUM;
}

/* ---- names ---- */

/* Its own name, or the last typedef's before it; NULL: neither. */
static const char *name_of(const struct writer *w, uint32_t id)
{
	const char *name = NULL;
	const struct cairn_type *t = cairn_types_get(w->types, id);

	for (unsigned int i = 0; i < 1024 && !is_locked_kind(t) && t->ref; i++) {
		if (t->kind == CAIRN_T_TYPEDEF && t->name)
			name = t->name;
		t = cairn_types_get(w->types, t->ref);
	}
	return t->name ? t->name : name;
}

/* ---- collecting ---- */

static uint32_t element_of(const struct writer *w, uint32_t id)
{
	for (unsigned int i = 0; i < NEST_MAX; i++) {
		const struct cairn_type *t =
			cairn_types_get(w->types, cairn_types_resolve(w->types, id));

		if (t->kind != CAIRN_T_ARRAY)
			break;
		id = t->ref;
	}
	return id;
}

static int collect(struct writer *w, uint32_t id, const char *otherwise, bool inner)
{
	uint32_t resolved = cairn_types_resolve(w->types, id);
	const char *name = name_of(w, id);
	uint64_t known;
	struct locked l = {.id = resolved, .inner = inner};

	if (!is_locked_kind(cairn_types_get(w->types, resolved)) ||
	    map_get(&w->by_id, resolved, &known))
		return 0;
	l.word = word_of(cairn_types_get(w->types, resolved));
	l.name = arena_quote(&w->arena, name ? name : otherwise, CAIRN_QUOTE_COMMENT);
	return l.name && VEC_ADD(&w->v, l) && !map_put(&w->by_id, resolved, w->v.n - 1) ? 0
											: -ENOMEM;
}

/* The types of its members, by value. */
static int collect_inner(struct writer *w, size_t at)
{
	struct fields fields = {.end = 0};
	const char *name = w->v.p[at].name;
	int rc = is_aggregate(cairn_types_get(w->types, w->v.p[at].id))
			 ? fields_collect(w->types, w->v.p[at].id, NULL, &fields)
			 : 0;

	for (size_t i = 0; i < fields.v.n && !rc; i++) {
		const struct field *f = &fields.v.p[i];
		char *path = arena_printf(&w->arena, "%s.%s", name, f->name ? f->name : "");

		rc = path ? collect(w, element_of(w, f->type), path, true) : -ENOMEM;
	}
	fields_free(&fields);
	return rc;
}

/* ---- writing ---- */

static void write_scalar(struct writer *w, const struct cairn_type *t)
{
	uint64_t bits = 8 * t->size;

	if (t->byte_swapped)
		fputs("swapped ", w->out);
	if (t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF)
		fprintf(w->out, "ptr%" PRIu64, bits);
	else if (t->kind == CAIRN_T_FLOAT && t->encoding != CAIRN_ENC_OPAQUE)
		fprintf(w->out, "%c%" PRIu64, t->encoding == CAIRN_ENC_COMPLEX ? 'c' : 'f', bits);
	else if (t->kind != CAIRN_T_INT || t->encoding == CAIRN_ENC_OPAQUE)
		fprintf(w->out, "raw%" PRIu64, bits);
	else if (t->encoding == CAIRN_ENC_BOOL)
		fprintf(w->out, "bool%" PRIu64, bits);
	else
		fprintf(w->out, "%c%" PRIu64,
			t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR
				? 's'
				: 'u',
			bits);
}

static void write_type(struct writer *w, uint32_t id)
{
	uint32_t element = element_of(w, id), at = id;
	const struct cairn_type *t =
		cairn_types_get(w->types, cairn_types_resolve(w->types, element));
	uint64_t index;

	if (w->printing && is_locked_kind(t))
		fprintf(w->out, "%s %016" PRIx64, word_of(t),
			map_get(&w->prints, cairn_types_resolve(w->types, element), &index) ? index
											    : 0);
	else if (map_get(&w->by_id, cairn_types_resolve(w->types, element), &index))
		fprintf(w->out, "%s %s", w->v.p[index].word, w->v.p[index].name);
	else
		write_scalar(w, t);
	for (unsigned int i = 0; i < NEST_MAX; i++) {
		t = cairn_types_get(w->types, cairn_types_resolve(w->types, at));
		if (t->kind != CAIRN_T_ARRAY)
			break;
		if (t->has_count)
			fprintf(w->out, "[%" PRIu64 "]", t->count);
		else
			fputs("[]", w->out);
		at = t->ref;
	}
}

static void write_place(struct writer *w, const struct field *f)
{
	if (f->unplaced)
		fputs("\t?", w->out);
	else
		fprintf(w->out, "\t%" PRIu64, f->bit_off / 8);
	if (f->bit_size)
		fprintf(w->out, ":%" PRIu64 "+%u", f->unplaced ? 0 : f->bit_off % 8, f->bit_size);
}

static int write_members(struct writer *w, const struct locked *l)
{
	struct fields fields = {.end = 0};
	int rc = fields_collect(w->types, l->id, NULL, &fields);

	for (size_t i = 0; i < fields.v.n && !rc; i++) {
		const struct field *f = &fields.v.p[i];
		char *name = arena_quote(&w->arena, f->name ? f->name : "(none)", CAIRN_QUOTE_WORD);

		if (!name) {
			rc = -ENOMEM;
			break;
		}
		write_place(w, f);
		fprintf(w->out, " %s ", name);
		write_type(w, f->type);
		fputc('\n', w->out);
	}
	fields_free(&fields);
	return rc;
}

static int write_one(struct writer *w, const struct locked *l)
{
	const struct cairn_type *t = cairn_types_get(w->types, l->id);

	fprintf(w->out, "\n%s%s %s ", l->inner ? "inner " : "", l->word, l->name);
	if (is_aggregate(t)) {
		fprintf(w->out, "%" PRIu64 "\n", t->size);
		return write_members(w, l);
	}
	bool is_signed = t->encoding == CAIRN_ENC_SIGNED;
	fprintf(w->out, "%c%" PRIu64 "\n", is_signed ? 's' : 'u', 8 * t->size);
	for (uint32_t i = 0; i < t->n_enumerators; i++) {
		char *name = arena_quote(&w->arena, t->enumerators[i].name, CAIRN_QUOTE_WORD);

		if (!name)
			return -ENOMEM;
		fprintf(w->out, "\t%s %" PRId64 "\n", name, t->enumerators[i].value);
	}
	return 0;
}

/* ---- equal types ---- */

static int print_of(struct writer *w, uint32_t id, unsigned int depth, uint64_t *ret);

/* Prints of the types inside, which the text of this one has. */
static int print_inner(struct writer *w, uint32_t id, unsigned int depth)
{
	struct fields fields = {.end = 0};
	uint64_t unused;
	int rc = is_aggregate(cairn_types_get(w->types, id))
			 ? fields_collect(w->types, id, NULL, &fields)
			 : 0;

	for (size_t i = 0; i < fields.v.n && !rc; i++) {
		uint32_t in = cairn_types_resolve(w->types, element_of(w, fields.v.p[i].type));

		if (is_locked_kind(cairn_types_get(w->types, in)))
			rc = print_of(w, in, depth + 1, &unused);
	}
	fields_free(&fields);
	return rc;
}

/* The hash of its text, in which types stand for themselves by their hashes. */
static int print_of(struct writer *w, uint32_t id, unsigned int depth, uint64_t *ret)
{
	const struct locked l = {
		.id = id, .name = (char *)"", .word = word_of(cairn_types_get(w->types, id))};
	char *text = NULL;
	size_t size = 0;

	if (map_get(&w->prints, id, ret))
		return 0;
	*ret = 0;
	/* Only damaged types are in themselves, or as deep. */
	int rc = depth < NEST_MAX ? print_inner(w, id, depth) : 0;
	w->out = rc ? NULL : open_memstream(&text, &size);
	if (!w->out)
		return -ENOMEM;
	rc = write_one(w, &l);
	if (fclose(w->out) || !text)
		rc = -ENOMEM;
	if (!rc)
		*ret = map_hash_bytes(text, size);
	free(text);
	return rc ? rc : map_put(&w->prints, id, *ret);
}

static int make_prints(struct writer *w)
{
	FILE *out = w->out;
	int rc = 0;

	w->printing = true;
	for (size_t i = 0; i < w->v.n && !rc; i++)
		rc = print_of(w, w->v.p[i].id, 0, &w->v.p[i].print);
	w->printing = false;
	w->out = out;
	return rc;
}

static int compare_names(const struct locked *a, const struct locked *b)
{
	int order = strcmp(a->name, b->name);

	return order ? order : strcmp(a->word, b->word);
}

static int by_name(const void *x, const void *y)
{
	const struct locked *a = x, *b = y;
	int order = compare_names(a, b);

	return order ? order : (a->print > b->print) - (a->print < b->print);
}

/* Sorted, each once; the index by id is of the new order. */
static int sort(struct writer *w)
{
	size_t n = 0;
	int rc = make_prints(w);

	if (!rc && w->v.n)
		qsort(w->v.p, w->v.n, sizeof(*w->v.p), by_name);
	for (size_t i = 0; i < w->v.n && !rc; i++) {
		struct locked l = w->v.p[i];

		if (n && !by_name(&w->v.p[n - 1], &l))
			w->v.p[n - 1].inner &= l.inner;
		else
			w->v.p[n++] = l;
		rc = map_put(&w->by_id, l.id, n - 1);
	}
	if (!rc)
		w->v.n = n;
	return rc;
}

/* Makes names distinct; from the end, so that the compared names have not been changed yet. */
static int number(struct writer *w)
{
	for (size_t i = w->v.n; i-- > 0;) {
		struct locked *l = &w->v.p[i];
		size_t same;

		for (same = 1; same <= i && !compare_names(&w->v.p[i - same], l);)
			same++;
		if (same > 1 && !(l->name = arena_printf(&w->arena, "%s#%zu", l->name, same)))
			return -ENOMEM;
	}
	return 0;
}

int cairn_lock_write(const struct cairn_types *types, const uint32_t *ids, size_t n,
		     const char *abi, FILE *out, struct cairn_err *err)
{
	struct writer w = {.types = types, .out = out};
	int rc = 0;

	arena_init(&w.arena);
	for (size_t i = 0; i < n && !rc; i++)
		rc = collect(&w, ids[i], "(anonymous)", false);
	/*
	 * Types without a name are named by the first member that leads to them: sorted, the first
	 * is always the same.
	 */
	rc = rc ? rc : sort(&w);
	for (size_t i = 0; i < w.v.n && !rc; i++)
		rc = collect_inner(&w, i);
	rc = rc ? rc : sort(&w);
	rc = rc ? rc : number(&w);
	if (!rc) {
		fputs("# cairn layout lock 1\n", out);
		if (abi)
			fprintf(out, "abi %s\n", abi);
	}
	for (size_t i = 0; i < w.v.n && !rc && !ferror(out); i++)
		rc = write_one(&w, &w.v.p[i]);
	VEC_FREE(&w.v);
	map_fini(&w.by_id);
	map_fini(&w.prints);
	arena_fini(&w.arena);
	return rc ? err_nomem(err, "a lock file") : 0;
}
