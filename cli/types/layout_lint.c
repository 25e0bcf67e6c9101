/* SPDX-License-Identifier: BSD-2-Clause */
/* --lint: applies the selected rules to the structs, and shows the findings. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/retarget.h>

#include "json.h"
#include "layout_lint.h"
#include "layout_records.h"
#include "say.h"

enum {
	RULES_MAX = 32,
	/*
	 * Structs inside of one: real ones have some 500. The limit also ends a struct that
	 * contains itself.
	 */
	INNER_MAX = 1 << 14,
	NEST_MAX = 32,
	PATH_LEN_MAX = 1024,
};

struct lint {
	const struct layout_run *run;
	bool wanted[RULES_MAX];
	const char *told[RULES_MAX]; /* reasons that were given; each is given once */
	size_t n_told;
	uint64_t n_found;
	bool *listed;                    /* by id: looked at by itself */
	const struct cairn_type **named; /* n_named of these that have a name, sorted */
	size_t n_named;
	size_t n_inner;
};

/* ---- rules that are wanted ---- */

static int unknown_rule(const char *name, size_t n)
{
	fail(STATUS_USAGE, "no such rule: %.*s\nKnown:", (int)n, name);
	for (size_t i = 0; layout_lint_rules[i].id; i++)
		say(stderr, "  %-18s %s\n", layout_lint_rules[i].id, layout_lint_rules[i].what);
	return STATUS_USAGE;
}

/* "a,b": only these; "-a": all but this. */
static int choose_rules(const char *list, struct lint *lint)
{
	bool exclude = list && *list == '-';

	for (size_t i = 0; i < RULES_MAX; i++)
		lint->wanted[i] = !list || exclude;
	for (const char *name = list; name;
	     name = name[strcspn(name, ",")] ? name + strcspn(name, ",") + 1 : NULL) {
		const char *word = name + (*name == '-');
		size_t n = strcspn(word, ","), i = 0;

		while (layout_lint_rules[i].id && (strlen(layout_lint_rules[i].id) != n ||
						   memcmp(layout_lint_rules[i].id, word, n)))
			i++;
		if (!layout_lint_rules[i].id)
			return unknown_rule(word, n);
		lint->wanted[i] = *name != '-';
	}
	return STATUS_YES;
}

/* ---- findings ---- */

/* "in.c"; "in" is the struct inside as a whole. False: the outer struct as a whole. */
static bool path_of(const struct lint_subject *s, const struct lint_finding *f, char *ret,
		    size_t size)
{
	size_t n = strlen(s->path);

	if (f->member)
		snprintf(ret, size, "%s%s", s->path, f->member);
	else
		snprintf(ret, size, "%.*s", n ? (int)n - 1 : 0, s->path);
	return *ret;
}

static void show_json(const struct lint_subject *s, const struct lint_finding *f)
{
	struct json j = {.out = stdout};
	char path[2 * PATH_LEN_MAX];

	json_open(&j, NULL, '{');
	json_text(&j, "rule", f->rule);
	json_text(&j, "kind", layout_kind(s->run->types, s->outer));
	json_text(&j, "type", cairn_types_get(s->run->types, s->outer)->name);
	json_text(&j, "member", path_of(s, f, path, sizeof(path)) ? path : NULL);
	if (f->unplaced)
		json_null(&j, "offset");
	else
		json_uint(&j, "offset", s->base + f->offset);
	json_text(&j, "what", f->what);
	json_text(&j, "why", f->why);
	json_text(&j, "mend", f->mend);
	json_close(&j);
}

static bool is_told(struct lint *lint, const char *why)
{
	for (size_t i = 0; i < lint->n_told; i++)
		if (lint->told[i] == why)
			return true;
	if (lint->n_told < RULES_MAX)
		lint->told[lint->n_told++] = why;
	return false;
}

static void show_text(struct lint *lint, const struct lint_subject *s, const struct lint_finding *f)
{
	char path[2 * PATH_LEN_MAX];

	say(stdout, "%s %s", layout_kind(s->run->types, s->outer),
	    cairn_types_get(s->run->types, s->outer)->name);
	if (path_of(s, f, path, sizeof(path)))
		say(stdout, ", %s%s", strcmp(f->rule, "padding-leak") ? "" : "after ", path);
	if (f->unplaced)
		say(stdout, ": %s [%s]\n", f->what, f->rule);
	else
		say(stdout, ", offset %" PRIu64 ": %s [%s]\n", s->base + f->offset, f->what,
		    f->rule);
	if (!is_told(lint, f->why))
		say(stdout, "    why: %s\n", f->why);
	say(stdout, "    mend: %s\n", f->mend);
}

static void report(const struct lint_subject *s, const struct lint_finding *f, void *ctx)
{
	struct lint *lint = ctx;

	lint->n_found++;
	if (s->run->values->json)
		show_json(s, f);
	else
		show_text(lint, s, f);
}

/* ---- the structs ---- */

static bool is_wanted(const struct lint *lint, const struct lint_subject *s, size_t rule)
{
	const struct lint_rule *r = &layout_lint_rules[rule];

	return lint->wanted[rule] &&
	       (s->outer == s->id || (!r->whole && (r->placed || !s->listed)));
}

/* The rules, for one struct. */
static int look_at(struct lint *lint, struct lint_subject *s)
{
	struct cairn_layout_facts facts = {0};
	struct cairn_layout_member *m;

	if (s->t->kind != CAIRN_T_STRUCT && s->t->kind != CAIRN_T_CLASS)
		return STATUS_YES;
	m = calloc(s->t->n_members + 1, sizeof(*m));
	if (!m || cairn_layout_facts(s->run->layout, s->id, &facts, m) < 0) {
		free(m);
		return fail(STATUS_NOT_HERE, "no memory");
	}
	s->facts = &facts;
	s->members = m;
	for (size_t i = 0; layout_lint_rules[i].id && s->t->n_members; i++)
		if (is_wanted(lint, s, i))
			layout_lint_rules[i].look(s, &layout_lint_rules[i]);
	free(m);
	return s->no_memory ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;
}

static int lint_one(struct lint *lint, struct lint_subject *s, unsigned int depth);

static int by_name(const void *a, const void *b)
{
	const struct cairn_type *x = *(const struct cairn_type *const *)a,
				*y = *(const struct cairn_type *const *)b;
	int c = strcmp(x->name, y->name);

	return c ? c : x->size < y->size ? -1 : x->size > y->size;
}

/* Debug information may describe a type more than once, as a member's and as one of its own. */
static bool is_listed(const struct lint *lint, uint32_t id, const struct cairn_type *t)
{
	return lint->listed[id] ||
	       (t->name && *t->name && lint->n_named &&
		bsearch(&t, lint->named, lint->n_named, sizeof(*lint->named), by_name));
}

/* A member's struct, through const and arrays. */
static int lint_inside(struct lint *lint, const struct lint_subject *outer,
		       const struct cairn_member *m, unsigned int depth)
{
	const struct cairn_types *types = outer->run->types;
	struct lint_subject s = *outer;
	const struct cairn_type *t;
	char path[PATH_LEN_MAX];
	bool array = false;

	s.id = cairn_types_resolve(types, m->type);
	for (t = cairn_types_get(types, s.id); t->kind == CAIRN_T_ARRAY && depth < NEST_MAX;
	     depth++) {
		array = true;
		s.id = cairn_types_resolve(types, t->ref);
		t = cairn_types_get(types, s.id);
	}
	if (m->bit_size || m->dynamic || !t->n_members || depth >= NEST_MAX)
		return STATUS_YES;
	s.base += m->bit_off / 8;
	s.strides |= array ? t->size : 0;
	s.listed = is_listed(lint, s.id, t);
	/* It is nowhere but where it is by itself. */
	if (s.listed && (s.base | s.strides) % s.cacheline == 0)
		return STATUS_YES;
	if (lint->n_inner++ == INNER_MAX)
		say(stderr,
		    "cairn: %s has more than %d structs inside: the others are not looked at\n",
		    cairn_types_get(types, s.outer)->name, INNER_MAX);
	if (lint->n_inner > INNER_MAX)
		return STATUS_YES;
	int n = snprintf(path, sizeof(path), "%s%s%s.", s.path, layout_lint_name(types, m),
			 array ? "[]" : "");
	s.path = n < (int)sizeof(path) ? path : "(long).";
	return lint_one(lint, &s, depth + 1);
}

static int lint_one(struct lint *lint, struct lint_subject *s, unsigned int depth)
{
	int status;

	s->t = cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, s->id));
	status = look_at(lint, s);
	for (uint32_t i = 0; i < s->t->n_members && !status; i++)
		status = lint_inside(lint, s, &s->t->members[i], depth);
	return status;
}

static bool note_listed(struct lint *lint, const struct cairn_types *types,
			const struct cairn_source_list *list)
{
	lint->listed = calloc(cairn_types_n_types(types), sizeof(*lint->listed));
	lint->named = calloc(list->n + 1, sizeof(*lint->named));
	if (!lint->listed || !lint->named) {
		free(lint->listed);
		free(lint->named);
		return false;
	}
	for (size_t i = 0; i < list->n; i++) {
		uint32_t id = cairn_types_resolve(types, list->ids[i]);
		const struct cairn_type *t = cairn_types_get(types, id);

		lint->listed[id] = true;
		if (t->name && *t->name)
			lint->named[lint->n_named++] = t;
	}
	if (lint->n_named)
		qsort(lint->named, lint->n_named, sizeof(*lint->named), by_name);
	return true;
}

static int lint_all(struct lint *lint, struct lint_subject *s, const struct cairn_source_list *list)
{
	const struct cairn_types *types = lint->run->types;
	int status = STATUS_YES;

	if (!note_listed(lint, types, list))
		return fail(STATUS_NOT_HERE, "no memory");
	for (size_t i = 0; i < list->n && !status && !ferror(stdout); i++) {
		if (layout_is_map_definition(types, list->ids[i]))
			continue;
		s->id = s->outer = list->ids[i];
		lint->n_inner = 0;
		status = lint_one(lint, s, 0);
	}
	free(lint->listed);
	free(lint->named);
	return status;
}

/* i386 has the smallest alignments of all, so a type that is the same there is the same on ARM. */
static int see_on_32_bits(const struct layout_run *run, const struct cairn_source_list *list,
			  struct lint_subject *s, struct cairn_retarget **ret)
{
	*ret = NULL;
	if (s->abi->scalars[CAIRN_C_PTR].size != 8 || s->abi->big_endian)
		return STATUS_YES;
	s->small_abi = cairn_abi_find("i386");
	int rc = cairn_layout_retarget(run->types, s->abi, s->small_abi, list->ids, list->n, ret,
				       NULL);
	if (rc == -ENOMEM)
		return fail(STATUS_NOT_HERE, "no memory");
	if (!rc)
		s->small = cairn_retarget_types(*ret);
	return STATUS_YES;
}

int layout_lint(const struct layout_run *run, const struct cairn_source_list *list)
{
	struct lint lint = {.run = run};
	struct lint_subject s = {
		.run = run,
		.path = "",
		.cacheline = run->values->cacheline ? run->values->cacheline : 64,
		.report = report,
		.ctx = &lint,
	};
	int status = choose_rules(run->values->rules, &lint);

	if (status)
		return status;
	s.abi = cairn_source_abi(run->source);
	s.abi = s.abi ? s.abi : cairn_abi_find("bpf");
	struct cairn_retarget *r;
	status = see_on_32_bits(run, list, &s, &r);
	status = status ? status : lint_all(&lint, &s, list);
	cairn_retarget_free(r);
	return status ? status : lint.n_found ? STATUS_NO : STATUS_YES;
}
