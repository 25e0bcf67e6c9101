/* SPDX-License-Identifier: BSD-2-Clause */
/* --lint: goes over the structs with the rules that were asked for, and shows what they find. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/retarget.h>

#include "json.h"
#include "layout_lint.h"
#include "say.h"

enum { RULES_MAX = 32 };

struct lint {
	const struct layout_run *run;
	bool wanted[RULES_MAX];
	const char *told[RULES_MAX]; /* reasons that were given; each is given once */
	size_t n_told;
	uint64_t n_found;
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
	for (const char *name = list; name; name = name[strcspn(name, ",")] ? name + strcspn(name, ",") + 1 : NULL) {
		const char *word = name + (*name == '-');
		size_t n = strcspn(word, ","), i = 0;

		while (layout_lint_rules[i].id &&
		       (strlen(layout_lint_rules[i].id) != n || memcmp(layout_lint_rules[i].id, word, n)))
			i++;
		if (!layout_lint_rules[i].id)
			return unknown_rule(word, n);
		lint->wanted[i] = *name != '-';
	}
	return STATUS_YES;
}

/* ---- findings ---- */

static void show_json(const struct lint_subject *s, const struct lint_finding *f)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "rule", f->rule);
	json_text(&j, "kind", layout_kind(s->run->types, s->id));
	json_text(&j, "type", cairn_types_get(s->run->types, s->id)->name);
	json_text(&j, "member", f->member);
	json_uint(&j, "offset", f->offset);
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
	say(stdout, "%s %s", layout_kind(s->run->types, s->id), cairn_types_get(s->run->types, s->id)->name);
	if (f->member)
		say(stdout, ", %s%s", strcmp(f->rule, "padding-leak") ? "" : "behind ", f->member);
	say(stdout, ", offset %" PRIu64 ": %s [%s]\n", f->offset, f->what, f->rule);
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

static int lint_one(struct lint *lint, struct lint_subject *s)
{
	struct cairn_layout_facts facts = {0};
	struct cairn_layout_member *m;

	s->t = cairn_types_get(s->run->types, cairn_types_resolve(s->run->types, s->id));
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
		if (lint->wanted[i])
			layout_lint_rules[i].look(s, &layout_lint_rules[i]);
	free(m);
	return s->no_memory ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;
}

/* i386 has the smallest alignments of all, so that what is the same there is the same on ARM. */
static int see_on_32_bits(const struct layout_run *run, const struct cairn_source_list *list, struct lint_subject *s,
			  struct cairn_retarget **ret)
{
	*ret = NULL;
	if (s->abi->scalars[CAIRN_C_PTR].size != 8 || s->abi->big_endian)
		return STATUS_YES;
	s->small_abi = cairn_abi_find("i386");
	int rc = cairn_layout_retarget(run->types, s->abi, s->small_abi, list->ids, list->n, ret, NULL);
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
	for (size_t i = 0; i < list->n && !status && !ferror(stdout); i++) {
		s.id = list->ids[i];
		status = lint_one(&lint, &s);
	}
	cairn_retarget_free(r);
	return status ? status : lint.n_found ? STATUS_NO : STATUS_YES;
}
