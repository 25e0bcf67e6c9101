/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn bind: accessors in other languages. */
#include <stdlib.h>
#include <string.h>

#include <cairn/bind.h>
#include <cairn/text.h>

#include "cmd.h"
#include "layout.h"
#include "say.h"
#include "truncated.h"

struct bind_values {
	struct layout_values file; /* how FILE is opened */
	const char *lang, *output, *package;
	bool json;
};

#define OFF(member) offsetof(struct bind_values, member)

static const struct opt opts[] = {
	{'l', "lang", OPT_TEXT, "c|rust|java|python|go|typescript", OFF(lang), "the language"},
	{'o', "output", OPT_TEXT, "PATH", OFF(output), "write there, and not to standard output"},
	{0, "package", OPT_TEXT, "NAME", OFF(package),
	 "the package of Java's class Records, or of Go"},
	{0, "json", OPT_FLAG, NULL, OFF(json),
	 "the members instead: their offsets, one JSON object per type; with --lang the names of "
	 "the accessors"},
	{0, "abi", OPT_TEXT, "ABI", OFF(file.abi),
	 "lay C declarations out for this ABI, and use its byte order"},
	LAYOUT_OPTS_FILE(OFF(file)),
	{0},
};

static const struct example examples[] = {
	{"cairn bind --lang java prog.bpf.o event >Records.java",
	 "the records of a BPF program, for a reader in Java"},
	{"cairn bind --lang rust --abi aarch64 event.h event -o event.rs",
	 "a header's struct as another machine lays it out"},
	{"cairn bind --lang c prog.bpf.o event >event_bind.h",
	 "with -DEVENT_TYPE='struct event' the compiler compares"},
	{0},
};

static const struct {
	const char *word;
	enum cairn_bind_lang lang;
} langs[] = {{"c", CAIRN_BIND_C},       {"rust", CAIRN_BIND_RUST},
	     {"java", CAIRN_BIND_JAVA}, {"python", CAIRN_BIND_PYTHON},
	     {"go", CAIRN_BIND_GO},     {"typescript", CAIRN_BIND_TYPESCRIPT}};

static enum cairn_bind_lang lang_of(const struct bind_values *values)
{
	for (size_t i = 0; i < sizeof(langs) / sizeof(langs[0]) && values->lang; i++)
		if (!strcmp(values->lang, langs[i].word))
			return langs[i].lang;
	return CAIRN_BIND_JSON;
}

static int write_to(FILE *out, const struct bind_values *values, const struct cairn_source *source,
		    const struct cairn_source_list *list, const char *path)
{
	const char *origin = strrchr(path, '/');
	size_t n_renamed = 0, n_left_out = 0;
	struct cairn_bind_opts o = {.size = sizeof(o),
				    .big_endian = cairn_source_is_big_endian(source),
				    .package = values->package,
				    .origin = origin ? origin + 1 : path,
				    .n_renamed = &n_renamed,
				    .n_left_out = &n_left_out,
				    .accessors = values->json && values->lang,
				    .names_of = lang_of(values)};
	struct cairn_err err = {0};
	enum cairn_bind_lang lang = values->json ? CAIRN_BIND_JSON : lang_of(values);
	int rc = cairn_bind_write(cairn_source_types(source), list->ids, list->n, lang, &o, out,
				  &err);

	warn_of_renamed(n_renamed);
	if (n_left_out)
		say(stderr, "cairn: warning: %s left out; see the comments\n",
		    cairn_counted(n_left_out, "member").text);
	return rc < 0 ? fail_err(rc, &err, STATUS_NO) : STATUS_YES;
}

static int write_out(const struct bind_values *values, const struct cairn_source *source,
		     const struct cairn_source_list *list, const char *path)
{
	if (!values->output)
		return write_to(stdout, values, source, list, path);
	char *text = NULL;
	size_t size = 0;
	struct cairn_err err = {0};
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return fail(STATUS_NOT_HERE, "no memory");
	int status = write_to(out, values, source, list, path);
	bool failed = ferror(out);
	if ((fclose(out) || failed || !text) && !status)
		status = fail(STATUS_NOT_HERE, "no memory");
	int rc = status ? 0 : write_whole_answer(values->output, text, size, &err);
	free(text);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : status;
}

/* The types of one name; of an enum, which has no members, its constants. */
static int select_one(struct cairn_source *source, char *const *name, struct cairn_source_list *ret)
{
	struct cairn_source_list one = {0};

	if (cairn_source_select_value(source, *name, &one, NULL) > 0) {
		const struct cairn_types *types = cairn_source_types(source);
		enum cairn_type_kind kind =
			cairn_types_get(types, cairn_types_resolve(types, one.ids[0]))->kind;

		free(one.ids);
		if (kind == CAIRN_T_ENUM)
			return layout_select_value(source, *name, ret);
	}
	size_t before = ret->n;
	int status = layout_select(source, name, 1, ret);
	/* The types that other names found are enough. */
	return !status && ret->n == before ? STATUS_NO : status;
}

/*
 * Every name must have types, or nothing is written: else a build would go on without a requested
 * type.
 */
static int select_all(struct cairn_source *source, char *const *names, size_t n,
		      struct cairn_source_list *ret)
{
	int worst = STATUS_YES;

	for (size_t i = 0; i < n; i++) {
		int status = select_one(source, &names[i], ret);

		worst = status ? status : worst;
	}
	return worst;
}

static int run(void *v, const struct operands *operands)
{
	const struct bind_values *values = v;
	const struct cairn_abi *abi = values->file.abi ? cairn_abi_find(values->file.abi) : NULL;
	struct layout_source source;
	struct cairn_source_list list = {0};

	if (!values->lang && !values->json)
		return fail(STATUS_USAGE,
			    "choose a language: --lang c, rust, java, python, go or typescript");
	if (operands->n < 2)
		return fail(STATUS_USAGE, "name the types: cairn bind --lang LANG FILE TYPE...");
	if (values->file.abi && !abi)
		return fail(STATUS_USAGE, "no such ABI is known: %s", values->file.abi);
	int status = layout_open(operands->items[0], abi, &values->file, &source);
	if (!status)
		status = select_all(source.source, operands->items + 1, operands->n - 1, &list);
	if (!status)
		status = write_out(values, source.source, &list, operands->items[0]);
	free(list.ids);
	layout_close(&source);
	return status;
}

const struct cmd cmd_bind = {
	.name = "bind",
	.summary = "accessors for C, Rust, Java, Python, Go and TypeScript, generated from offsets",
	.operands = "FILE TYPE...",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct bind_values),
	.run = run,
};
