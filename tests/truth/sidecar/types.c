/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * types BINARY SIDECAR [DEBUG-FILE]: whether the sidecar has the types that the debug information
 * has
 *
 * Two graphs are walked side by side, from every parameter, argument and result of every function,
 * and from every type that has a name, through members and pointers. Each pair of types that is met
 * together must be described alike. It prints what differs, at most LINES_MAX of it, and a last
 * line that counts; status 1 when anything did.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/sidecar.h>
#include <cairn/source.h>

enum { LINES_MAX = 40 };

struct ids {
	uint32_t *p;
	const char **names; /* whose type each is; NULL: its own name tells */
	size_t n, cap;
};

static void *need(void *p)
{
	if (!p) {
		fprintf(stderr, "no memory\n");
		exit(2);
	}
	return p;
}

static void ids_add(struct ids *ids, uint32_t id, const char *name)
{
	if (ids->n == ids->cap) {
		ids->cap = ids->cap ? 2 * ids->cap : 1024;
		ids->p = need(realloc(ids->p, ids->cap * sizeof(*ids->p)));
		ids->names = need(realloc(ids->names, ids->cap * sizeof(*ids->names)));
	}
	ids->names[ids->n] = name;
	ids->p[ids->n++] = id;
}

static int fail(const struct cairn_err *err)
{
	fprintf(stderr, "%s\n", err->msg);
	return 2;
}

/* ---- pairs ---- */

struct pair {
	uint32_t a, b;
	uint32_t from;  /* the pair that led here, + 1 */
	const char *by; /* the member */
};

/* One side of the comparison. */
struct side {
	const struct cairn_types *types;
	struct cairn_sites *sites; /* completes types; NULL: they are as they are */
};

struct walk {
	struct side a, b;
	struct pair *pairs;
	size_t n, cap;
	uint32_t *slots; /* of a hash table: pair + 1 */
	size_t n_slots;
	size_t n_different;
};

static size_t slot_of(const struct walk *w, uint32_t a, uint32_t b)
{
	uint64_t h = ((uint64_t)a << 32 | b) * UINT64_C(0x9e3779b97f4a7c15);
	size_t i = (size_t)(h >> 20) & (w->n_slots - 1);

	while (w->slots[i] &&
	       (w->pairs[w->slots[i] - 1].a != a || w->pairs[w->slots[i] - 1].b != b))
		i = (i + 1) & (w->n_slots - 1);
	return i;
}

static void grow(struct walk *w)
{
	w->cap = w->cap ? 2 * w->cap : 1024;
	w->pairs = need(realloc(w->pairs, w->cap * sizeof(*w->pairs)));
	free(w->slots);
	w->n_slots = 4 * w->cap;
	w->slots = need(calloc(w->n_slots, sizeof(*w->slots)));
	for (size_t i = 0; i < w->n; i++)
		w->slots[slot_of(w, w->pairs[i].a, w->pairs[i].b)] = (uint32_t)i + 1;
}

static void meet(struct walk *w, uint32_t a, uint32_t b, uint32_t from, const char *by)
{
	if (w->n == w->cap)
		grow(w);
	size_t i = slot_of(w, a, b);
	if (w->slots[i])
		return;
	w->pairs[w->n++] = (struct pair){a, b, from, by};
	w->slots[i] = (uint32_t)w->n;
}

static void print_way(const struct walk *w, size_t i)
{
	char text[256];

	for (size_t steps = 0; steps < 24; steps++) {
		cairn_types_name(w->a.types, w->pairs[i].a, text, sizeof(text));
		printf(" <- %s%s%s", w->pairs[i].by ? w->pairs[i].by : "",
		       w->pairs[i].by ? ": " : "", text);
		if (!w->pairs[i].from)
			break;
		i = w->pairs[i].from - 1;
	}
	printf("\n");
}

static void differ(struct walk *w, size_t i, const char *what, uint64_t a, uint64_t b)
{
	if (w->n_different++ >= LINES_MAX)
		return;
	printf("%s is %" PRIu64 ", in the sidecar %" PRIu64, what, a, b);
	print_way(w, i);
}

static bool same_text(const char *a, const char *b)
{
	/* A sidecar has no names of no length. */
	return !strcmp(a ? a : "", b ? b : "");
}

static void compare_members(struct walk *w, size_t i, const struct cairn_type *a,
			    const struct cairn_type *b)
{
	for (uint32_t k = 0; k < a->n_members; k++) {
		const struct cairn_member *x = &a->members[k], *y = &b->members[k];

		if (a->kind != CAIRN_T_FUNC && !same_text(x->name, y->name))
			differ(w, i, "the name of member", k, k);
		if (x->bit_off != y->bit_off)
			differ(w, i, "an offset", x->bit_off, y->bit_off);
		if (x->bit_size != y->bit_size)
			differ(w, i, "a width", x->bit_size, y->bit_size);
		if (x->dynamic != y->dynamic || x->is_base_class != y->is_base_class ||
		    x->align != y->align || x->is_discriminant != y->is_discriminant)
			differ(w, i, "what is said of member", k, k);
		meet(w, x->type, y->type, (uint32_t)i + 1, x->name);
	}
}

static void compare_enumerators(struct walk *w, size_t i, const struct cairn_type *a,
				const struct cairn_type *b)
{
	for (uint32_t k = 0; k < a->n_enumerators; k++)
		if (!same_text(a->enumerators[k].name, b->enumerators[k].name) ||
		    a->enumerators[k].value != b->enumerators[k].value)
			differ(w, i, "an enumerator", (uint64_t)a->enumerators[k].value,
			       (uint64_t)b->enumerators[k].value);
}

/* The ranges of discriminants, as bytes. */
static bool same_ranges(const struct cairn_variant *a, const struct cairn_variant *b)
{
	return a->n_ranges == b->n_ranges &&
	       (!a->n_ranges || !memcmp(a->ranges, b->ranges, a->n_ranges * sizeof(*a->ranges)));
}

static void compare_variants(struct walk *w, size_t i, const struct cairn_type *a,
			     const struct cairn_type *b)
{
	const struct cairn_variants *x = a->variants, *y = b->variants;

	if (!x || !y)
		return;
	if (x->bit_off != y->bit_off || x->bit_size != y->bit_size)
		differ(w, i, "the site of a discriminant", (uint64_t)x->bit_off,
		       (uint64_t)y->bit_off);
	meet(w, x->type, y->type, (uint32_t)i + 1, "discriminant");
	for (uint32_t k = 0; k < a->n_members; k++)
		if (!same_ranges(&x->of[k], &y->of[k]))
			differ(w, i, "the values of variant", k, k);
}

static uint64_t flags_of(const struct cairn_type *t)
{
	/* What several units define differently stays unread, as a declaration. */
	const bool flags[] = {t->bare_name,  t->declaration,  t->unread && !t->declaration,
			      t->prototyped, t->variadic,     t->has_count,
			      t->vector,     t->byte_swapped, t->is_variant,
			      t->variants};
	uint64_t ret = 0;

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		ret |= (uint64_t)flags[i] << i;
	return ret;
}

static void complete(const struct side *s, uint32_t id)
{
	struct cairn_err err;

	/* What units define differently stays a declaration. */
	if (s->sites && cairn_types_get(s->types, id)->unread)
		cairn_sites_complete_type(s->sites, id, &err);
}

static void compare(struct walk *w, size_t i)
{
	struct pair p = w->pairs[i];
	const struct cairn_type *a = cairn_types_get(w->a.types, p.a),
				*b = cairn_types_get(w->b.types, p.b);

	bool was_declared = a->declaration;

	complete(&w->a, p.a);
	complete(&w->b, p.b);
	/*
	 * A declaration whose unit has no definition. The reader of DWARF takes that of another
	 * unit by its name alone, or none where there are several; the sidecar the one that other
	 * units with the same types mean. So it may know more, and below it another.
	 */
	if (was_declared) {
		if (!same_text(a->name, b->name) || a->bare_name != b->bare_name)
			differ(w, i, "the name", 0, 1);
		if (!a->declaration && (a->size != b->size || a->n_members != b->n_members))
			differ(w, i, "the size", a->size, b->size);
		return;
	}
	/*
	 * After a pointer, of which a source shows the name only. One graph may know more of it
	 * than the other.
	 */
	if (!w->a.sites && (a->unread || b->unread)) {
		if (!same_text(a->name, b->name) || a->bare_name != b->bare_name)
			differ(w, i, "the name", 0, 1);
		return;
	}
	const struct {
		const char *what;
		uint64_t a, b;
	} facts[] = {
		{"the kind", a->kind, b->kind},
		{"the encoding", a->encoding, b->encoding},
		{"the size", a->size, b->size},
		{"a fact", flags_of(a), flags_of(b)},
		{"the count", a->count, b->count},
		{"the alignment", a->align, b->align},
		{"the number of members", a->n_members, b->n_members},
		{"the number of enumerators", a->n_enumerators, b->n_enumerators},
	};
	size_t before = w->n_different;

	if (!same_text(a->name, b->name))
		differ(w, i, "the name", 0, 1);
	for (size_t k = 0; k < sizeof(facts) / sizeof(facts[0]); k++)
		if (facts[k].a != facts[k].b)
			differ(w, i, facts[k].what, facts[k].a, facts[k].b);
	if (w->n_different > before)
		return;
	compare_members(w, i, a, b);
	compare_enumerators(w, i, a, b);
	compare_variants(w, i, a, b);
	meet(w, a->ref, b->ref, (uint32_t)i + 1, NULL);
	meet(w, a->container, b->container, (uint32_t)i + 1, NULL);
}

static void walk_all(struct walk *w, const struct ids *a, const struct ids *b)
{
	for (size_t i = 0; i < a->n && i < b->n; i++)
		meet(w, a->p[i], b->p[i], 0, a->names ? a->names[i] : NULL);
	for (size_t i = 0; i < w->n; i++)
		compare(w, i);
	if (a->n != b->n)
		differ(w, 0, "the number of types", a->n, b->n);
}

static void walk_free(struct walk *w)
{
	free(w->pairs);
	free(w->slots);
}

/* ---- of functions ---- */

static int see_function(void *ctx, const struct cairn_function *f)
{
	struct ids *ids = ctx;
	const char *name = need(strdup(f->name));

	ids_add(ids, f->return_type, name);
	for (uint32_t i = 0; i < f->n_params; i++)
		ids_add(ids, f->params[i].type, name);
	for (uint32_t i = 0; i < f->n_sites; i++)
		for (uint32_t k = 0; k < f->sites[i].n_args; k++)
			ids_add(ids, f->sites[i].args[k].type, name);
	return 0;
}

/* The types of one function share its name. */
static void ids_free(struct ids *ids)
{
	for (size_t i = 0; i < ids->n; i++)
		if (!i || ids->names[i] != ids->names[i - 1])
			free((char *)ids->names[i]);
	free(ids->names);
	free(ids->p);
}

static int compare_functions(const struct cairn_binary *bin, const struct cairn_sidecar *sidecar,
			     size_t *n, size_t *n_different)
{
	struct walk w = {0};
	struct ids a = {0}, b = {0};
	struct cairn_err err;
	int rc = cairn_sites_open(bin, NULL, &w.a.sites, &err);

	if (rc >= 0)
		rc = cairn_sidecar_sites(sidecar, bin, &w.b.sites, &err);
	if (rc >= 0)
		rc = cairn_sites_visit(w.a.sites, see_function, &a, &err);
	if (rc >= 0)
		rc = cairn_sites_visit(w.b.sites, see_function, &b, &err);
	if (rc >= 0) {
		w.a.types = cairn_sites_types(w.a.sites);
		w.b.types = cairn_sites_types(w.b.sites);
		walk_all(&w, &a, &b);
	}
	*n += w.n;
	*n_different += w.n_different;
	cairn_sites_close(w.a.sites);
	cairn_sites_close(w.b.sites);
	walk_free(&w);
	ids_free(&a);
	ids_free(&b);
	return rc < 0 ? fail(&err) : 0;
}

/* ---- of names ---- */

static int compare_names(const struct cairn_binary *bin, const struct cairn_sidecar *sidecar,
			 size_t *n, size_t *n_different)
{
	struct cairn_source_opts opts = {.size = sizeof(opts), .binary = bin};
	struct walk w = {0};
	struct cairn_source *a = NULL, *b = NULL;
	struct cairn_source_list x = {0}, y = {0};
	struct cairn_err err;
	int64_t rc = cairn_source_open(cairn_binary_path(bin), &opts, &a, &err);

	if (rc >= 0)
		rc = cairn_sidecar_source(sidecar, &b, &err);
	if (rc >= 0)
		rc = cairn_source_select(a, "*", &x, &err);
	if (rc >= 0)
		rc = cairn_source_select(b, "*", &y, &err);
	if (rc >= 0) {
		w.a.types = cairn_source_types(a);
		w.b.types = cairn_source_types(b);
		walk_all(&w, &(struct ids){x.ids, NULL, x.n, x.n},
			 &(struct ids){y.ids, NULL, y.n, y.n});
	}
	*n += w.n;
	*n_different += w.n_different;
	cairn_source_close(a);
	cairn_source_close(b);
	walk_free(&w);
	free(x.ids);
	free(y.ids);
	return rc < 0 ? fail(&err) : 0;
}

int main(int argc, char **argv)
{
	struct cairn_binary *bin = NULL;
	struct cairn_sidecar *sidecar = NULL;
	struct cairn_err err;
	size_t n = 0, n_different = 0;

	if (argc != 3 && argc != 4) {
		fprintf(stderr, "usage: types BINARY SIDECAR [DEBUG-FILE]\n");
		return 2;
	}
	struct cairn_binary_opts opts = {.size = sizeof(opts),
					 .debug_file = argc == 4 ? argv[3] : NULL};
	if (cairn_binary_open(argv[1], &opts, &bin, &err) < 0 ||
	    cairn_sidecar_open(argv[2], NULL, &sidecar, &err) < 0)
		return fail(&err);
	int status = compare_functions(bin, sidecar, &n, &n_different);
	if (!status)
		status = compare_names(bin, sidecar, &n, &n_different);
	cairn_sidecar_close(sidecar);
	cairn_binary_close(bin);
	if (status)
		return status;
	printf("%zu types, %zu differences\n", n, n_different);
	return n_different ? 1 : 0;
}
