/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn sidecar: make the sidecar of a file; keep the cache small. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "malloc_tuning.h"
#include "json.h"
#include "say.h"
#include "shared_opts.h"
#include "sidecar.h"
#include "truncated.h"

struct sidecar_values {
	struct opt_list debug_dirs;
	const char *debug_file;
	const char *out;
	const char *served; /* --debuginfod */
	const char *keep;
	unsigned long jobs, max_mib;
	bool json, verbose, prune, check, lines, btf_inline, args;
};

#define AT(field) offsetof(struct sidecar_values, field)

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", AT(out),
	 "write the sidecar to OUT; otherwise to FILE.cairn"},
	{0, "keep", OPT_MAYBE, "background", AT(keep),
	 "write it to the cache, unless it is there; with =background, which other verbs start, "
	 "not when that failed "
	 "minutes ago"},
	{0, "debuginfod", OPT_TEXT, "DIR", AT(served),
	 "write a file to DIR that \"debuginfod -F DIR\" serves"},
	{'v', "verbose", OPT_FLAG, NULL, AT(verbose), "show the size of each section"},
	{0, "lines", OPT_FLAG, NULL, AT(lines),
	 "for cairn addr only: leave out the sites of functions, which takes a tenth of the time"},
	{0, "btf-inline", OPT_FLAG, NULL, AT(btf_inline),
	 "add the sites as BTF, the section .BTF.inline, for other tools and for cairn btf"},
	{0, "args", OPT_FLAG, NULL, AT(args),
	 "add the data that cairn stack --args needs: locations of parameters inside functions"},
	{0, "json", OPT_FLAG, NULL, AT(json),
	 "one JSON object: the sidecar's size and sections, or the removed files"},
	{0, "check", OPT_FLAG, NULL, AT(check),
	 "FILE is a sidecar: check all checksums and every record, and report the errors; with "
	 "BINARY compare its code"},
	{0, "prune", OPT_FLAG, NULL, AT(prune),
	 "remove the least recently used files from the cache"},
	{0, "max", OPT_COUNT, "MIB", AT(max_mib), "with --prune: down to this size in MiB (1024)"},
	OPT_DEBUG_DIR(AT(debug_dirs)),
	OPT_DEBUG_FILE(AT(debug_file)),
	OPT_JOBS(AT(jobs)),
	{0},
};

static const struct example examples[] = {
	{"cairn sidecar vmlinux -v", "make vmlinux.cairn, and show the size of each section"},
	{"cairn sidecar ./server && strip ./server && cairn addr ./server 0x4011d6",
	 "the sidecar answers for the stripped program"},
	{"cairn sidecar --args ./server && strip ./server",
	 "cairn stack --args shows the parameters of the stripped program, too"},
	{"cairn sidecar vmlinux --debuginfod /srv/sidecars; debuginfod -F /srv/sidecars",
	 "serve it to all machines that use --debuginfod"},
	{"cairn sidecar --check server.cairn ./server",
	 "is the sidecar whole, and of this very program?"},
	{"cairn sidecar --prune --max 200", "keep at most 200 MiB of sidecars in the cache"},
	{0},
};

static void report_json(const char *path, const struct cairn_sidecar_image *image)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "path", path);
	json_uint(&j, "size", image->size);
	json_uint(&j, "overlaps", image->n_overlaps);
	json_open(&j, "sections", '[');
	for (size_t i = 0; i < image->n_sections; i++) {
		const struct cairn_sidecar_image_section *s = &image->sections[i];

		json_open(&j, NULL, '{');
		json_text(&j, "name", s->name);
		json_uint(&j, "size", s->size);
		json_uint(&j, "n", s->n);
		json_text(&j, "what", s->what);
		json_close(&j);
	}
	json_close(&j);
	json_close(&j);
}

static void report_text(const char *path, const struct cairn_sidecar_image *image, bool verbose)
{
	for (size_t i = 0; verbose && i < image->n_sections; i++) {
		const struct cairn_sidecar_image_section *s = &image->sections[i];

		say(stdout, "%10" PRIu64 "  %s", s->size, s->name);
		if (s->n)
			say(stdout, "  %" PRIu64 " %s", s->n, s->what);
		putchar('\n');
	}
	say(stdout, "%10zu  %s\n", image->size, path);
}

/* ---- where it goes ---- */

static int no_cache(void)
{
	return fail(STATUS_NOT_HERE, "there is no cache: neither XDG_CACHE_HOME nor HOME is set");
}

static void tell(const char *path, const struct cairn_sidecar_image *image,
		 const struct sidecar_values *values)
{
	if (values->json)
		report_json(path, image);
	else
		report_text(path, image, values->verbose);
}

/*
 * "DIR/0123abcd.cairn.debug" for a server, else as --output says, else beside @file; to be freed.
 */
static char *path_for(const struct cairn_binary *bin, const char *file,
		      const struct sidecar_values *values)
{
	size_t len, n = values->served ? strlen(values->served) : 0;
	const uint8_t *id = cairn_binary_build_id(bin, &len);
	char *path = NULL, *to;

	if (values->out)
		return strdup(values->out);
	if (!values->served)
		return asprintf(&path, "%s.cairn", file) < 0 ? NULL : path;
	path = malloc(n + 2 * len + sizeof("/.cairn.debug"));
	if (!path)
		return NULL;
	to = path + sprintf(path, "%s/", values->served);
	for (size_t i = 0; i < len; i++)
		to += sprintf(to, "%02x", id[i]);
	strcpy(to, ".cairn.debug");
	return path;
}

static int write_wrapped(const struct cairn_sidecar_image *image, const char *path,
			 struct cairn_err *err)
{
	void *file;
	size_t size;
	int r = cairn_sidecar_wrap(image->bytes, image->size, path, &file, &size, err);

	if (r < 0)
		return r;
	r = write_whole_answer(path, file, size, err);
	free(file);
	return r;
}

static int make_at(const struct cairn_binary *bin, const struct sidecar_values *values,
		   const char *path)
{
	struct cairn_sidecar_make_opts make_opts = {.size = sizeof(make_opts),
						    .threads = (unsigned int)values->jobs,
						    .sites = !values->lines,
						    .btf_inline = values->btf_inline,
						    .args = values->args};
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	int r = cairn_sidecar_make(bin, &make_opts, &image, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	warn_of_missing_dwo(image.n_missing, image.missing,
			    "code that only they describe is not in the sidecar");
	r = values->served ? write_wrapped(&image, path, &err)
			   : write_whole_answer(path, image.bytes, image.size, &err);
	if (r >= 0 && image.n_left_out)
		fail_lines(STATUS_YES, image.left_out_why.msg,
			   "%s: %u damaged unit%s left out: ", cairn_binary_path(bin),
			   image.n_left_out, image.n_left_out == 1 ? "" : "s");
	if (r >= 0)
		tell(path, &image, values);
	cairn_sidecar_image_free(&image);
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int keep(const struct cairn_binary *bin, const struct sidecar_values *values)
{
	char dir[4096];
	struct cairn_sidecar_search search = {.size = sizeof(search),
					      .threads = (unsigned int)values->jobs,
					      .cache_dir = dir,
					      .background = values->keep[0],
					      .args = values->args};
	struct cairn_sidecar_image image;
	struct cairn_err err = {0};
	int r;

	if (!sidecar_cache_dir(dir, sizeof(dir)))
		return no_cache();
	r = cairn_sidecar_keep(bin, &search, &image, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (r)
		tell(dir, &image, values);
	cairn_sidecar_image_free(&image);
	return STATUS_YES;
}

static int make(const char *file, const struct sidecar_values *values)
{
	struct cairn_binary_opts bin_opts = {
		.size = sizeof(bin_opts),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.debug_file = values->debug_file,
	};
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	char *path;
	int r;

	if (sidecar_is_named(file))
		return fail(
			STATUS_USAGE,
			"%s is a sidecar already: name the program, or let --check read all of it",
			file);
	malloc_return_large_blocks();
	r = cairn_binary_open(file, &bin_opts, &bin, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	path = path_for(bin, file, values);
	if (values->keep)
		r = keep(bin, values);
	else
		r = path ? make_at(bin, values, path) : fail(STATUS_NOT_HERE, "no memory");
	free(path);
	cairn_binary_close(bin);
	return r;
}

/* -ESTALE: an answer, and not a thing that is missing here. */
static int refused(int r, const struct cairn_err *err, int missing)
{
	return r == -ESTALE ? fail_told(STATUS_NO, err) : fail_err(r, err, missing);
}

static int check_against(const char *file, const struct cairn_binary *bin)
{
	struct cairn_sidecar_opts sidecar_opts = {.size = sizeof(sidecar_opts), .binary = bin};
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	int r = cairn_sidecar_open(file, &sidecar_opts, &sidecar, &err);

	if (r < 0)
		return refused(r, &err, STATUS_USAGE);
	sidecar_say_unbound(sidecar);
	r = cairn_sidecar_check(sidecar, &err);
	if (r >= 0 && bin)
		r = cairn_sidecar_compare(sidecar, &err);
	cairn_sidecar_close(sidecar);
	return r < 0 ? refused(r, &err, STATUS_DAMAGED) : STATUS_YES;
}

/* @binary may be NULL. */
static int check(const char *file, const char *binary)
{
	struct cairn_binary *bin = NULL;
	struct cairn_err err = {0};
	int r = binary ? cairn_binary_open(binary, NULL, &bin, &err) : 0;

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	r = check_against(file, bin);
	cairn_binary_close(bin);
	return r;
}

static int prune(const struct sidecar_values *values)
{
	char dir[4096];
	uint64_t max =
		values->max_mib ? (uint64_t)values->max_mib << 20 : CAIRN_SIDECAR_CACHE_BYTES;
	struct cairn_sidecar_pruned pruned;
	struct cairn_err err = {0};
	struct json j = {.out = stdout};
	int r;

	if (!sidecar_cache_dir(dir, sizeof(dir)))
		return no_cache();
	r = cairn_sidecar_prune(dir, max, &pruned, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (!values->json) {
		say(stdout, "%s: removed %" PRIu64 " (%s), kept %" PRIu64 " (%s)\n", dir,
		    pruned.n_removed, cairn_counted(pruned.removed_bytes, "byte").text,
		    pruned.n_kept, cairn_counted(pruned.kept_bytes, "byte").text);
		return STATUS_YES;
	}
	json_open(&j, NULL, '{');
	json_text(&j, "path", dir);
	json_uint(&j, "removed", pruned.n_removed);
	json_uint(&j, "removed_bytes", pruned.removed_bytes);
	json_uint(&j, "kept", pruned.n_kept);
	json_uint(&j, "kept_bytes", pruned.kept_bytes);
	json_close(&j);
	return STATUS_YES;
}

static int run(void *v, const struct operands *operands)
{
	struct sidecar_values *values = v;
	int n_targets = !!values->out + !!values->served + !!values->keep;

	if (n_targets > 1)
		return fail(STATUS_USAGE,
			    "--output, --debuginfod and --keep are three sites for it; choose one");
	if (values->keep && values->keep[0] && strcmp(values->keep, "background"))
		return fail(STATUS_USAGE, "--keep takes background, not %s", values->keep);
	if (values->keep && values->lines)
		return fail(STATUS_USAGE, "the cache has whole sidecars: --lines is not for it");
	if (values->btf_inline && (values->keep || values->lines))
		return fail(STATUS_USAGE,
			    "--btf-inline belongs to a sidecar of its own, with sites");
	if (values->args && values->lines)
		return fail(STATUS_USAGE,
			    "--args belongs to a sidecar with sites: --lines leaves them out");
	if (values->prune && (operands->n || n_targets || values->check))
		return fail(STATUS_USAGE, "--prune is about the cache, not about a file");
	if (values->max_mib && !values->prune)
		return fail(STATUS_USAGE, "--max belongs to --prune");
	if (values->prune)
		return prune(values);
	if (!operands->n)
		return fail(STATUS_USAGE, "a FILE is missing\nTry: cairn sidecar --help");
	if (operands->n > (values->check ? 2 : 1))
		return fail(STATUS_USAGE, values->check
						  ? "--check is about one SIDECAR and one BINARY"
						  : "one FILE at a time");
	if (values->check)
		return check(operands->items[0], operands->n > 1 ? operands->items[1] : NULL);
	return make(operands->items[0], values);
}

const struct cmd cmd_sidecar = {
	.name = "sidecar",
	.summary = "make the sidecar of a file: its debug information, ready to be used",
	.operands = "[FILE [BINARY]]",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct sidecar_values),
	.run = run,
};
