/* SPDX-License-Identifier: BSD-2-Clause */
/* cairn pack: make the sidecar of a file; keep the cache small. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/file.h>

#include "cmd.h"
#include "json.h"
#include "sidecar.h"

struct pack_values {
	struct opt_list debug_dirs;
	const char *debug_file;
	const char *out;
	unsigned long jobs, max_mib;
	bool json, verbose, prune, check, lines;
};

#define AT(field) offsetof(struct pack_values, field)

static const struct opt opts[] = {
	{'o', "output", OPT_TEXT, "OUT", AT(out), "write the sidecar to OUT; otherwise to FILE.cairn"},
	{'v', "verbose", OPT_FLAG, NULL, AT(verbose), "tell what each section takes"},
	{0, "lines", OPT_FLAG, NULL, AT(lines),
	 "for cairn addr only: leave out the places of functions, which takes a tenth of the time"},
	{0, "json", OPT_FLAG, NULL, AT(json), "one JSON object: the sidecar's size and sections, or what was removed"},
	{0, "check", OPT_FLAG, NULL, AT(check), "FILE is a sidecar: read all of it, and tell what is wrong"},
	{0, "prune", OPT_FLAG, NULL, AT(prune), "remove from the cache what was used longest ago"},
	{0, "max", OPT_COUNT, "MIB", AT(max_mib), "with --prune: down to this size in MiB (1024)"},
	{0, "debug-dir", OPT_LIST, "DIR", AT(debug_dirs),
	 "look for debug files in DIR, then in /usr/lib/debug; may be repeated"},
	{0, "debug-file", OPT_TEXT, "FILE", AT(debug_file), "take the debug information from FILE"},
	{'j', "jobs", OPT_COUNT, "N", AT(jobs), "use N threads; otherwise one per processor"},
	{0},
};

static const struct example examples[] = {
	{"cairn pack vmlinux -v", "make vmlinux.cairn, and show where its bytes go"},
	{"cairn pack ./server && strip ./server && cairn addr ./server 0x4011d6",
	 "the sidecar answers for the stripped program"},
	{"cairn pack --prune --max 200", "keep at most 200 MiB of sidecars in the cache"},
	{0},
};

static void tell_json(const char *path, const struct cairn_packed *packed)
{
	struct json j = {.out = stdout};

	json_open(&j, NULL, '{');
	json_text(&j, "path", path);
	json_uint(&j, "size", packed->size);
	json_uint(&j, "overlaps", packed->n_overlaps);
	json_open(&j, "sections", '[');
	for (size_t i = 0; i < packed->n_sections; i++) {
		const struct cairn_packed_section *s = &packed->sections[i];

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

static void tell_text(const char *path, const struct cairn_packed *packed, bool verbose)
{
	for (size_t i = 0; verbose && i < packed->n_sections; i++) {
		const struct cairn_packed_section *s = &packed->sections[i];

		printf("%10" PRIu64 "  %s", s->size, s->name);
		if (s->n)
			printf("  %" PRIu64 " %s", s->n, s->what);
		putchar('\n');
	}
	printf("%10zu  %s\n", packed->size, path);
}

static int write_sidecar(const struct cairn_binary *bin, const struct pack_values *values, const char *path)
{
	struct cairn_pack_make_opts make_opts = {.size = sizeof(make_opts), .threads = (unsigned int)values->jobs,
						 .places = !values->lines};
	struct cairn_packed packed;
	struct cairn_err err = {0};
	int r = cairn_pack_make(bin, &make_opts, &packed, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	r = cairn_file_write(path, packed.bytes, packed.size, &err);
	if (r >= 0 && values->json)
		tell_json(path, &packed);
	else if (r >= 0)
		tell_text(path, &packed, values->verbose);
	cairn_packed_free(&packed);
	return r < 0 ? fail_err(r, &err, STATUS_NOT_HERE) : STATUS_YES;
}

static int make(const char *file, const struct pack_values *values)
{
	struct cairn_binary_opts bin_opts = {
		.size = sizeof(bin_opts),
		.debug_dirs = values->debug_dirs.items,
		.n_debug_dirs = values->debug_dirs.n,
		.debug_file = values->debug_file,
	};
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	char *path = NULL;
	int r = cairn_binary_open(file, &bin_opts, &bin, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	if (values->out)
		path = strdup(values->out);
	else if (asprintf(&path, "%s.cairn", file) < 0)
		path = NULL;
	r = path ? write_sidecar(bin, values, path) : fail(STATUS_NOT_HERE, "no memory");
	free(path);
	cairn_binary_close(bin);
	return r;
}

static int check(const char *file)
{
	struct cairn_pack *pack;
	struct cairn_err err = {0};
	int r = cairn_pack_open(file, NULL, &pack, &err);

	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	r = cairn_pack_check(pack, &err);
	cairn_pack_close(pack);
	return r < 0 ? fail_err(r, &err, STATUS_DAMAGED) : STATUS_YES;
}

static int prune(const struct pack_values *values)
{
	char dir[4096];
	uint64_t max = values->max_mib ? (uint64_t)values->max_mib << 20 : CAIRN_PACK_CACHE_BYTES;
	struct cairn_pack_pruned pruned;
	struct cairn_err err = {0};
	struct json j = {.out = stdout};
	int r;

	if (!sidecar_cache_dir(dir, sizeof(dir)))
		return fail(STATUS_NOT_HERE, "there is no cache: neither XDG_CACHE_HOME nor HOME is set");
	r = cairn_pack_prune(dir, max, &pruned, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_NOT_HERE);
	if (!values->json) {
		printf("%s: removed %" PRIu64 " (%" PRIu64 " bytes), kept %" PRIu64 " (%" PRIu64 " bytes)\n", dir,
		       pruned.n_removed, pruned.removed_bytes, pruned.n_kept, pruned.kept_bytes);
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
	struct pack_values *values = v;

	if (values->prune && (operands->n || values->out || values->check))
		return fail(STATUS_USAGE, "--prune is about the cache, not about a file");
	if (values->max_mib && !values->prune)
		return fail(STATUS_USAGE, "--max belongs to --prune");
	if (values->prune)
		return prune(values);
	if (operands->n != 1)
		return fail(STATUS_USAGE, operands->n ? "one FILE at a time" : "a FILE is missing\nTry: cairn pack --help");
	return values->check ? check(operands->items[0]) : make(operands->items[0], values);
}

const struct cmd cmd_pack = {
	.name = "pack",
	.summary = "make the sidecar of a file: its debug information, ready to be used",
	.operands = "[FILE]",
	.opts = opts,
	.examples = examples,
	.values_size = sizeof(struct pack_values),
	.run = run,
};
