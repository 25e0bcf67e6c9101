/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --check: the reader's declarations of the types that a BPF program writes
 *
 * The BPF object's BTF is the truth: its compiler laid those types out. The other side is
 * declarations, laid out as the reader's language and ABI do. Types are paired by name, where
 * event, Event and EVENT are one; TYPE on the command line chooses, and TYPE=OTHER pairs two of
 * different names.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "layout_compare.h"
#include "layout_records.h"
#include "say.h"

/* The most surprising rule. */
#define KEEPS "Compilers keep a type that something global has: const struct event *unused;"

struct check {
	struct layout_side sides[2];
	const struct layout_values *values;
	const struct cairn_source *readers; /* the declarations of the reader */
	struct layout_ways ways;
	size_t n_checked;
};

/* ---- one pair ---- */

static const char *name_of(const struct layout_side *side, uint32_t id)
{
	return cairn_types_get(side->types, id)->name;
}

static void json_pair(const struct check *c, uint32_t a, uint32_t b,
		      const struct cairn_changes *changes, const struct layout_record *record)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "kind", layout_kind(c->sides[0].types, a));
	json_text(&j, "name", name_of(&c->sides[0], a));
	json_text(&j, "against", name_of(&c->sides[1], b));
	json_text(&j, "file", c->sides[1].label);
	json_text(&j, "abi", c->sides[1].abi->name);
	json_bool(&j, "same", !cairn_changes_n_changes(changes));
	json_open(&j, "size", '[');
	json_uint(&j, NULL, record->size);
	json_uint(&j, NULL, record->believed);
	json_close(&j);
	layout_json_changes(&j, c->sides, changes);
	if (c->values->ignore.n)
		json_uint(&j, "ignored", cairn_changes_ignored(changes));
	layout_json_record(&j, record, &c->ways);
	json_close(&j);
}

static void print_pair(const struct check *c, uint32_t a, uint32_t b,
		       const struct cairn_changes *changes, const struct layout_record *record)
{
	const struct layout_side *reader = &c->sides[1];

	say(stdout, "%s %s: %" PRIu64 " bytes, ", layout_kind(c->sides[0].types, a),
	    name_of(&c->sides[0], a), record->size);
	if (cairn_changes_n_changes(changes))
		say(stdout, "%" PRIu64 " in %s (%s, %s)\n", record->believed, name_of(reader, b),
		    reader->label, reader->abi->name);
	else
		say(stdout, "the same in %s (%s, %s)\n", name_of(reader, b), reader->label,
		    reader->abi->name);
	layout_print_changes(c->sides, changes);
	if (cairn_changes_ignored(changes))
		say(stdout, "    ignored: %zu difference%s in members that --ignore names\n",
		    cairn_changes_ignored(changes), cairn_changes_ignored(changes) == 1 ? "" : "s");
	layout_print_record(record, &c->ways);
}

static int check_pair(struct check *c, uint32_t a, uint32_t b)
{
	struct cairn_compare_opts opts = {.size = sizeof(opts),
					  .other_language = true,
					  .ignore = (const char *const *)c->values->ignore.items,
					  .n_ignore = c->values->ignore.n};
	struct cairn_changes *changes;
	struct cairn_err err = {0};

	opts.byte_order_differs = cairn_source_is_big_endian(c->sides[0].source.source) !=
				  cairn_source_is_big_endian(c->sides[1].source.source);
	int rc = cairn_compare(c->sides[0].types, a, c->sides[1].types, b, &opts, &changes, &err);
	if (rc < 0)
		return fail_err(rc, &err, STATUS_NOT_HERE);
	struct layout_record record =
		layout_record_of(c->sides[0].types, a, cairn_types_size(c->sides[1].types, b));
	int status = cairn_changes_n_changes(changes) ? STATUS_NO : STATUS_YES;

	c->n_checked++;
	if (c->values->json)
		json_pair(c, a, b, changes, &record);
	else
		print_pair(c, a, b, changes, &record);
	cairn_changes_free(changes);
	return status;
}

/* ---- types that could not be laid out ---- */

static int report_problem(const struct check *c, const struct cairn_decl_problem *p,
			  const char *truth)
{
	if (!c->values->json || p->laid_out)
		return fail(p->laid_out ? STATUS_YES : STATUS_NO, "%s: %s", p->type, p->text);
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "name", truth);
	json_text(&j, "against", p->type);
	json_text(&j, "file", c->sides[1].label);
	json_bool(&j, "same", false);
	json_text(&j, "problem", p->text);
	json_close(&j);
	return STATUS_NO;
}

/* Reports problems of the type of that name; sets @ret_any when there was one without a layout. */
static int report_problems(const struct check *c, const char *believed, const char *truth,
			   bool *ret_any)
{
	const struct cairn_decl_problem *p;
	int status = STATUS_YES;

	for (size_t i = 0; (p = cairn_source_problem(c->readers, i)); i++) {
		if (!cairn_compare_names(p->type, believed))
			continue;
		int one = report_problem(c, p, truth);

		*ret_any |= !p->laid_out;
		status = one > status ? one : status;
	}
	return status;
}

/* ---- pairing ---- */

/* The type of that name, exactly or else folded; 0: none. */
static uint32_t find(const struct layout_side *side, const char *name, size_t n)
{
	char text[512];
	uint32_t folded = 0;

	snprintf(text, sizeof(text), "%.*s", (int)(n < sizeof(text) ? n : sizeof(text) - 1), name);
	for (size_t i = 0; i < side->list.n; i++) {
		const char *known = name_of(side, side->list.ids[i]);

		if (!strcmp(known, text))
			return side->list.ids[i];
		if (!folded && cairn_compare_names(known, text))
			folded = side->list.ids[i];
	}
	return folded;
}

/* TYPE, TYPE=OTHER, perhaps with struct before it. */
static int check_named(struct check *c, const char *pattern)
{
	static const char *const words[] = {"struct ", "union ", "enum "};
	char other[512];
	bool problem = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(pattern, words[i], strlen(words[i])))
			pattern += strlen(words[i]);
	size_t n = strcspn(pattern, "=");
	const char *believed = pattern[n] ? pattern + n + 1 : pattern;
	uint32_t a = find(&c->sides[0], pattern, n),
		 b = find(&c->sides[1], believed, strlen(believed));
	if (!a)
		return fail(STATUS_NO, "%.*s is no type of %s\n" KEEPS, (int)n, pattern,
			    c->sides[0].label);
	snprintf(other, sizeof(other), "%s", believed);
	int status = report_problems(c, other, name_of(&c->sides[0], a), &problem);
	if (problem) {
		c->n_checked++;
		return status;
	}
	return b ? check_pair(c, a, b)
		 : fail(STATUS_NO, "%s is no type of %s", believed, c->sides[1].label);
}

/* Every type of the reader's that the object has, too. */
static int check_all(struct check *c)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < c->sides[1].list.n && status <= STATUS_NO; i++) {
		uint32_t b = c->sides[1].list.ids[i];
		const char *name = name_of(&c->sides[1], b);
		uint32_t a = find(&c->sides[0], name, strlen(name));
		bool problem = false;

		if (!a) {
			say(stderr, "cairn: %s of %s is not in %s, and not compared\n", name,
			    c->sides[1].label, c->sides[0].label);
			continue;
		}
		report_problems(c, name, name, &problem);
		int one = check_pair(c, a, b);
		status = one > status ? one : status;
	}
	/* Those without a layout are in no list. */
	const struct cairn_decl_problem *p;
	for (size_t i = 0; (p = cairn_source_problem(c->readers, i)) && status <= STATUS_NO; i++) {
		uint32_t a = p->laid_out ? 0 : find(&c->sides[0], p->type, strlen(p->type));

		if (!a)
			continue;
		c->n_checked++;
		status = report_problem(c, p, name_of(&c->sides[0], a));
	}
	return status;
}

static int check_types(struct check *c, char *const *patterns, size_t n_patterns)
{
	int status = n_patterns ? STATUS_YES : check_all(c);

	for (size_t i = 0; i < n_patterns && status <= STATUS_NO; i++) {
		int one = check_named(c, patterns[i]);

		status = one > status ? one : status;
	}
	if (status == STATUS_YES && !c->n_checked)
		return fail(STATUS_NO,
			    "no type of %s is in %s\n" KEEPS
			    "\nTYPE=OTHER pairs types of different names",
			    c->sides[1].label, c->sides[0].label);
	return status;
}

/* ---- sides ---- */

/* The object's own debug information is DWARF; the kernel and the loader see BTF. */
static int open_object(struct check *c, const char *path)
{
	static char any[] = "*", *const all[] = {any};
	struct layout_values values = *c->values;

	values.btf = !layout_is_text(path);
	c->sides[0].label = path;
	return layout_open_side(path, layout_is_text(path) ? cairn_abi_find("bpf") : NULL, &values,
				all, 1, &c->sides[0]);
}

static int open_reader(struct check *c, const struct cairn_abi *abi)
{
	const char *path = c->values->against;
	struct layout_side *side = &c->sides[1];
	int status;

	if (!layout_is_text(path))
		return fail(STATUS_USAGE,
			    "%s is neither C nor Java, Rust, Go or Python, by its name", path);
	side->label = path;
	side->abi = abi ? abi : cairn_abi_find("x86-64");
	status = layout_open(path, side->abi, c->values, &side->source);
	if (status)
		return status;
	c->readers = side->source.source;
	side->types = layout_types(&side->source);
	/*
	 * Perhaps none of them has a layout; this is reported when their names are known to the
	 * object.
	 */
	int64_t n = cairn_source_select(side->source.source, "*", &side->list, NULL);
	return n < 0 ? fail(STATUS_NOT_HERE, "no memory") : STATUS_YES;
}

static int check_on(const char *path, const struct cairn_abi *abi,
		    const struct layout_values *values, char *const *patterns, size_t n_patterns)
{
	struct check c = {.values = values};
	int status = open_object(&c, path);

	if (!status)
		status = open_reader(&c, abi);
	/* Maps' types have no names to be selected by. */
	if (!status && cairn_source_read_all(c.sides[0].source.source, NULL) < 0)
		status = fail(STATUS_NOT_HERE, "no memory");
	if (!status) {
		c.ways = layout_ways_of(c.sides[0].types);
		status = check_types(&c, patterns, n_patterns);
	}
	layout_close_side(&c.sides[0]);
	layout_close_side(&c.sides[1]);
	return status;
}

int layout_check(const char *path, const struct cairn_abi *const *abis, size_t n_abis,
		 const struct layout_values *values, char *const *patterns, size_t n_patterns)
{
	int status = STATUS_YES;

	for (size_t i = 0; i < (n_abis ? n_abis : 1) && status <= STATUS_NO; i++) {
		int one = check_on(path, abis[i], values, patterns, n_patterns);

		status = one > status ? one : status;
	}
	return status;
}
