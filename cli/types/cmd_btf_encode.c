/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn btf encode: DWARF to BTF, with the sites of functions and their arguments. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cairn/btf/from_dwarf.h>
#include <cairn/file.h>
#include <cairn/text.h>

#include "btf.h"
#include "btf_encode.h"
#include "malloc_tuning.h"
#include "json.h"
#include "languages.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "style.h"
#include "truncated.h"

struct encode_values {
	struct opt_list bases, debug_dirs;
	const char *out, *dialect, *vars, *debug_file, *lang, *lang_exclude;
	unsigned long jobs;
	bool layout, assume_unmodified, json, embed;
	struct sidecar_wish wish;
};

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", offsetof(struct encode_values, out),
	 "write types to OUT and sites to OUT.inline; otherwise to FILE.btf and FILE.btf.inline in "
	 "this directory"},
	{0, "embed", OPT_FLAG, NULL, offsetof(struct encode_values, embed),
	 "write OUT as a copy of FILE with the sections .BTF, .BTF.inline and .BTF.vars"},
	{'B', "base", OPT_LIST, "BASE", offsetof(struct encode_values, bases),
	 "leave out types that BASE has (for a module, its kernel); may be repeated, parents "
	 "first"},
	OPT_JOBS(offsetof(struct encode_values, jobs)),
	{0, "global-vars", OPT_MAYBE, "split", offsetof(struct encode_values, vars),
	 "all global variables, not only per-processor ones of kernels; split: in OUT.vars"},
	{0, "dialect", OPT_TEXT, "n|v1|none", offsetof(struct encode_values, dialect),
	 "dialect of location records (n); none: types only"},
	{0, "lang", OPT_TEXT, "LANG,...", offsetof(struct encode_values, lang),
	 "only units of these languages, which are named as by pahole: c11,c89,asm"},
	{0, "lang-exclude", OPT_TEXT, "LANG,...", offsetof(struct encode_values, lang_exclude),
	 "all units but those of these languages: rust"},
	{0, "layout", OPT_FLAG, NULL, offsetof(struct encode_values, layout),
	 "write a layout section, with which readers skip kinds they do not know, into OUT, too; "
	 "OUT.inline has one always"},
	OPT_ASSUME_UNMODIFIED(offsetof(struct encode_values, assume_unmodified)),
	OPT_DEBUG_DIR(offsetof(struct encode_values, debug_dirs)),
	OPT_DEBUG_FILE(offsetof(struct encode_values, debug_file)),
	SIDECAR_OPT_SIDECAR(offsetof(struct encode_values, wish.file)),
	SIDECAR_OPT_NO_CACHE(offsetof(struct encode_values, wish.no_cache)),
	SIDECAR_OPT_DEBUGINFOD(offsetof(struct encode_values, wish.debuginfod)),
	{0, "json", OPT_FLAG, NULL, offsetof(struct encode_values, json),
	 "the output and the losses, as a JSON object"},
	{0},
};

static const struct example examples[] = {
	{"cairn btf encode vmlinux -o k.btf -j2 && cairn btf check k.btf",
	 "a kernel's types, and the sites of its functions"},
	{"cairn btf encode --lang-exclude rust vmlinux -o k.btf",
	 "the same without its parts in Rust, as kernels are built"},
	{"cairn btf encode ./server && cairn btf dump --pretty -B server.btf server.btf.inline",
	 "the same of a program, as text"},
	{0},
};

/* ---- work ---- */

static int show(void *ctx, enum cairn_btfgen_stage stage, uint64_t done, uint64_t total)
{
	static const char *const what[] = {[CAIRN_BTFGEN_TYPES] = "units",
					   [CAIRN_BTFGEN_SITES] = "functions",
					   [CAIRN_BTFGEN_WRITE] = "records"};
	struct progress *progress = ctx;

	progress->what = what[stage];
	progress_at(progress, done, total);
	return 0;
}

static enum cairn_btfgen_vars vars_of(const char *word)
{
	if (!word)
		return CAIRN_BTFGEN_VARS_PERCPU;
	return *word ? CAIRN_BTFGEN_VARS_SPLIT : CAIRN_BTFGEN_VARS_ALL;
}

static int distil(const struct cairn_binary *bin, const struct cairn_btf *base,
		  const struct encode_values *values, struct cairn_btfgen *ret)
{
	struct progress progress = {0};
	struct languages languages = {.n = 0};
	struct cairn_btfgen_opts how = {
		.size = sizeof(how),
		.threads = (unsigned int)values->jobs,
		.base = base,
		.vars = vars_of(values->vars),
		.dialect = values->dialect ? btf_dialect(values->dialect) : CAIRN_BTF_LOC_N,
		.layout = values->layout,
		.assume_unmodified = values->assume_unmodified,
		.progress = show,
		.ctx = &progress,
		.langs = languages.codes,
		.exclude_langs = values->lang_exclude != NULL,
	};
	struct cairn_err err = {0};
	const char *list = values->lang ? values->lang : values->lang_exclude;
	int status = list ? languages_parse(list, &languages) : STATUS_YES;

	if (status)
		return status;
	how.n_langs = languages.n;
	int r = cairn_btf_from_dwarf(bin, &how, ret, &err);

	progress_end(&progress);
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* ---- files ---- */

struct output {
	const char *suffix, *section, *what;
	const struct cairn_btfgen_blob *blob;
	char *path; /* NULL: there is nothing to say */
};

#define N_OUTPUTS 3

static char *path_of(const struct encode_values *values, const char *elf, const char *suffix)
{
	const char *slash = strrchr(elf, '/');
	char *path;

	if (values->out)
		return asprintf(&path, "%s%s", values->out, suffix) < 0 ? NULL : path;
	return asprintf(&path, "%s.btf%s", slash ? slash + 1 : elf, suffix) < 0 ? NULL : path;
}

/* A file of an earlier run continues other types than those that are written now. */
static void warn_of_leftover(const struct output *o, const struct encode_values *values,
			     const char *elf)
{
	char *path = path_of(values, elf, o->suffix);

	if (path && !access(path, F_OK))
		say(stderr, "cairn: %s is left from an earlier run: this time there are no %s\n",
		    path, o->what);
	free(path);
}

/* Together: sites that go on where other types end would be read as sites of these. */
static int write_outputs(struct output *outputs, const struct encode_values *values,
			 const char *elf)
{
	struct cairn_file files[N_OUTPUTS];
	struct cairn_err err = {0};
	size_t n = 0;

	for (struct output *o = outputs; o < outputs + N_OUTPUTS; o++) {
		if (!o->blob->bytes) {
			warn_of_leftover(o, values, elf);
			continue;
		}
		o->path = path_of(values, elf, o->suffix);
		if (!o->path)
			return fail(STATUS_NOT_HERE, "no memory");
		files[n++] = (struct cairn_file){o->path, o->blob->bytes, o->blob->size};
	}
	int r = write_whole_answers(files, n, &err);

	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* A copy of the file with all of it, instead of files. */
static int embed(struct output *outputs, const struct encode_values *values, const char *elf)
{
	struct cairn_embed_section sections[N_OUTPUTS];
	struct cairn_err err = {0};
	size_t n = 0;

	for (int i = 0; i < N_OUTPUTS; i++) {
		struct output *o = &outputs[i];

		if (!o->blob->bytes)
			continue;
		sections[n++] =
			(struct cairn_embed_section){o->section, o->blob->bytes, o->blob->size};
		if (asprintf(&o->path, "%s: %s", values->out, o->section) < 0) {
			o->path = NULL;
			return fail(STATUS_NOT_HERE, "no memory");
		}
	}
	int r = check_inputs(&err);
	if (r == 0)
		r = cairn_embed(elf, values->out, sections, n, &err);

	/*
	 * A kernel's .BTF is mapped with its data: in a bootable image it cannot be replaced.
	 */
	if (r == -EEXIST) {
		fail_told(STATUS_USAGE, &err);
		return fail(STATUS_USAGE, "without --embed, %s and %s.inline are written beside it",
			    values->out, values->out);
	}
	return r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
}

/* ---- the result ---- */

static void report_counts(const struct cairn_btfgen *d)
{
	say(stdout, "%s, %s, %s\n", cairn_counted(d->n_types, "record").text,
	    cairn_counted(d->n_functions, "function").text,
	    cairn_counted(d->n_variables, "variable").text);
	if (!d->n_sites)
		return;
	say(stdout, "%s of functions; of %s there %" PRIu64 " %s a location\n",
	    cairn_counted(d->n_sites, "site").text, cairn_counted(d->n_arguments, "argument").text,
	    d->n_located, d->n_located == 1 ? "has" : "have");
	for (int i = 0; i < CAIRN_N_UNAVAILABLE; i++)
		if (d->unavailable[i])
			say(stdout, "unavailable: %" PRIu64 " %s\n", d->unavailable[i],
			    cairn_unavailable_text(i));
}

static void report(const struct cairn_btfgen *d, const struct cairn_sidecar *sidecar,
		   const struct output *outputs)
{
	for (int i = 0; i < N_OUTPUTS; i++)
		if (outputs[i].path)
			say(stdout, "%s: %s, %zu bytes\n", outputs[i].path, outputs[i].what,
			    outputs[i].blob->size);
	report_counts(d);
	if (sidecar)
		say(stdout, "from %s, which does not list the losses\n",
		    cairn_sidecar_path(sidecar));
	if (d->n_left_out)
		say(stdout, "left out: %zu unit%s of other languages\n", d->n_left_out,
		    d->n_left_out == 1 ? "" : "s");
	for (int i = 0; i < CAIRN_N_LOSSES; i++)
		if (d->losses[i])
			say(stdout, "lost: %" PRIu64 " %s\n", d->losses[i],
			    cairn_btfgen_loss_text(i));
}

static void put_output(struct json *j, const char *key, const struct output *o)
{
	if (!o->path) {
		json_null(j, key);
		return;
	}
	json_open(j, key, '{');
	json_text(j, "path", o->path);
	json_uint(j, "bytes", o->blob->size);
	json_close(j);
}

/* Sites and losses, which a sidecar does not count, are not included. */
static void json_counts(struct json *j, const struct cairn_btfgen *d)
{
	json_uint(j, "records", d->n_types);
	json_uint(j, "functions", d->n_functions);
	json_uint(j, "variables", d->n_variables);
}

static void report_json(const char *elf, const struct cairn_btfgen *d,
			const struct cairn_sidecar *sidecar, const struct output *outputs)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "path", elf);
	put_output(&j, "types", &outputs[0]);
	put_output(&j, "inline", &outputs[1]);
	put_output(&j, "vars", &outputs[2]);
	json_text(&j, "sidecar", sidecar ? cairn_sidecar_path(sidecar) : NULL);
	json_counts(&j, d);
	if (sidecar) {
		json_close(&j);
		return;
	}
	json_uint(&j, "missing_dwo", d->n_missing);
	json_uint(&j, "left_out_units", d->n_left_out);
	json_uint(&j, "inlined_functions", d->n_inlined_functions);
	json_uint(&j, "sites", d->n_sites);
	json_uint(&j, "arguments", d->n_arguments);
	json_uint(&j, "located", d->n_located);
	json_open(&j, "unavailable", '{');
	for (int i = 0; i < CAIRN_N_UNAVAILABLE; i++)
		if (d->unavailable[i])
			json_uint(&j, cairn_unavailable_id(i), d->unavailable[i]);
	json_close(&j);
	json_open(&j, "lost", '[');
	for (int i = 0; i < CAIRN_N_LOSSES; i++) {
		if (!d->losses[i])
			continue;
		json_open(&j, NULL, '{');
		json_uint(&j, "n", d->losses[i]);
		json_text(&j, "text", cairn_btfgen_loss_text(i));
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

/* ---- the verb ---- */

/* The option that only the debug information can answer; NULL: there is none. */
static const char *asks_for_more(const struct encode_values *values)
{
	const struct {
		bool is_set;
		const char *option;
	} options[] = {
		{values->bases.n, "--base"},
		{values->vars, "--global-vars"},
		{values->dialect && btf_dialect(values->dialect) == CAIRN_BTF_LOC_V1,
		 "--dialect v1"},
		{values->lang, "--lang"},
		{values->lang_exclude, "--lang-exclude"},
		{values->layout, "--layout"},
		{values->assume_unmodified, "--assume-unmodified"},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (options[i].is_set)
			return options[i].option;
	return NULL;
}

/*
 * The sidecar that answers, where a person named it or there is no debug information; *@ret NULL:
 * none does.
 */
static int find_sidecar(const struct cairn_binary *bin, const struct encode_values *values,
			struct cairn_sidecar **ret)
{
	struct sidecar_wish wish = values->wish;
	struct cairn_err err = {0};
	bool named = wish.file || sidecar_is_named(cairn_binary_path(bin));

	*ret = NULL;
	if (!named && cairn_binary_has_dwarf(bin))
		return STATUS_YES;
	wish.jobs = (unsigned int)values->jobs;
	wish.debug_dirs = values->debug_dirs;
	int r = sidecar_find(&wish, bin, ret, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	if (!*ret || !asks_for_more(values))
		return STATUS_YES;
	int status = fail(STATUS_NOT_HERE,
			  "%s: a sidecar does not answer to %s: it takes the debug information",
			  cairn_sidecar_path(*ret), asks_for_more(values));
	cairn_sidecar_close(*ret);
	*ret = NULL;
	return status;
}

static int encode(const struct cairn_binary *bin, const struct cairn_btf *base,
		  const struct encode_values *values, const char *elf)
{
	struct cairn_btfgen d = {0};
	struct cairn_sidecar *sidecar;
	struct output outputs[N_OUTPUTS] = {
		{"", ".BTF", "types", &d.main, NULL},
		{".inline", ".BTF.inline", "sites and arguments", &d.inlined, NULL},
		{".vars", ".BTF.vars", "variables", &d.vars, NULL},
	};
	bool want_sites = !values->dialect || btf_dialect(values->dialect) != CAIRN_BTF_NO_LOC;
	int status = find_sidecar(bin, values, &sidecar);

	if (!status && sidecar)
		status = encode_by_sidecar(sidecar, want_sites, &d);
	else if (!status)
		status = distil(bin, base, values, &d);

	if (!status)
		warn_of_missing_dwo(d.n_missing, d.missing,
				    "types and sites that only they describe are not written");
	if (!status && values->embed)
		status = embed(outputs, values, elf);
	else if (!status)
		status = write_outputs(outputs, values, elf);
	if (!status && values->json)
		report_json(elf, &d, sidecar, outputs);
	else if (!status)
		report(&d, sidecar, outputs);
	for (int i = 0; i < N_OUTPUTS; i++)
		free(outputs[i].path);
	if (!sidecar)
		cairn_btfgen_free(&d);
	cairn_sidecar_close(sidecar);
	return status;
}

static int run(void *v, const struct operands *operands)
{
	const struct encode_values *values = v;
	struct cairn_binary_opts bin_opts = {
		.size = sizeof(bin_opts),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.debug_file = values->debug_file,
	};
	struct btf_chain bases = {0};
	struct cairn_binary *bin = NULL;
	struct cairn_err err = {0};
	int status = STATUS_YES;

	if (operands->n > 1)
		return fail(STATUS_USAGE, "one file at a time: %s", operands->items[1]);
	if (values->lang && values->lang_exclude)
		return fail(STATUS_USAGE, "--lang and --lang-exclude are two answers; choose one");
	if (values->embed && !values->out)
		return fail(STATUS_USAGE, "--embed needs -o OUT: it writes a copy of %s",
			    operands->items[0]);
	malloc_return_large_blocks();
	if (values->bases.n)
		status = btf_open_bases(&values->bases, &bases);
	if (!status) {
		int r = cairn_binary_open(operands->items[0], &bin_opts, &bin, &err);

		status = r < 0 ? fail_err(r, &err, STATUS_USAGE) : STATUS_YES;
	}
	if (!status)
		status = encode(bin, bases.n ? btf_of(&bases) : NULL, values, operands->items[0]);
	if (bin)
		cairn_binary_close(bin);
	btf_close(&bases);
	return status;
}

const struct cmd cmd_btf_encode = {
	.name = "btf encode",
	.summary = "make BTF of a file's debug information, with the sites of its functions",
	.operands = "FILE",
	.n_operands_min = 1,
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct encode_values),
	.run = run,
};
