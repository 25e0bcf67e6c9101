/* SPDX-License-Identifier: BSD-2-Clause */
#include <cairn/btf/from_dwarf.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/pool.h"
#include "btf/build.h"
#include "btfgen/base.h"
#include "btfgen/meanings.h"
#include "btfgen/sites.h"
#include "btfgen/read.h"
#include "btfgen/tags.h"
#include "btfgen/vars.h"

/* Everything about one binary while its blobs are made. */
struct distil {
	const struct cairn_binary *bin;
	const struct cairn_btfgen_opts *opts;
	struct cairn_btfgen *ret;
	struct meanings *meanings;   /* NULL: not wanted */
	struct dw_func_index *index; /* of all functions; NULL: not wanted */
	const struct dwarf *dw;
	struct dwarf *own_dw; /* NULL: the caller's is used */
	struct readers *readers;
	struct classes classes;
	struct variants variants;
	struct emit emit;
	struct func_table functions;
	struct site_search *search;
	struct sites sites;
	struct site_blob *blob;
	struct cairn_btf_builder *main;
	struct cairn_btf *base_of_parts; /* main, read */
};

static const char *const loss_texts[CAIRN_N_LOSSES] = {
	[CAIRN_LOSS_REFERENCE] = "references, written as pointers",
	[CAIRN_LOSS_MEMBER_POINTER] = "pointers to members, written as opaque bytes",
	[CAIRN_LOSS_COMPLEX] = "complex and decimal numbers, written as opaque bytes",
	[CAIRN_LOSS_UNPLACED] = "members and base classes, offset not known, left out",
	[CAIRN_LOSS_VARIANT] = "parts of types that depend on a discriminant, left out",
	[CAIRN_LOSS_FAR_MEMBER] =
		"members farther into their type, or wider, than BTF can record, left out",
	[CAIRN_LOSS_BEYOND_MEMBER] = "members that reach beyond the size of their type, left out",
	[CAIRN_LOSS_TYPE] = "types of a kind that BTF does not have, written as opaque bytes",
	[CAIRN_LOSS_LARGE] = "types of more bytes or elements than BTF can count, written without "
			     "their number or as nested arrays",
	[CAIRN_LOSS_ELEMENTS] =
		"arrays of types that are only declared, or too large, written as void",
	[CAIRN_LOSS_FUNC_VALUE] = "function values, written as pointers",
	[CAIRN_LOSS_TAG] = "tags of things that have no tags in BTF, left out",
	[CAIRN_LOSS_FUNC_PROTO] =
		"functions with code whose name has several prototypes, not in the main part",
	[CAIRN_LOSS_FUNC_CHANGED] =
		"functions with parameters that the compiler changed, not in the main part",
	[CAIRN_LOSS_FUNC_SILENT] = "functions whose parameters the debug information does not "
				   "describe, not in the main part",
	[CAIRN_LOSS_VARIABLE] = "variables without a fixed address, left out",
	[CAIRN_LOSS_LOC_LONG] = "arguments whose location takes more steps than a LOC record has",
	[CAIRN_LOSS_LOC_PIECES] = "arguments in pieces that are not two registers",
	[CAIRN_LOSS_LOC_BYTES] = "constant arguments longer than 8 bytes",
	[CAIRN_LOSS_LOC_FAR] = "address arguments outside the object, or of one without addresses",
	[CAIRN_LOSS_SITE] = "sites in no section with code, left out",
};

const char *cairn_btfgen_loss_text(enum cairn_btfgen_loss loss)
{
	return (unsigned int)loss < CAIRN_N_LOSSES ? loss_texts[loss] : "unknown";
}

static int progress(const struct distil *d, enum cairn_btfgen_stage stage, uint64_t done,
		    uint64_t total, struct cairn_err *err)
{
	if (!d->opts->progress || !d->opts->progress(d->opts->ctx, stage, done, total))
		return 0;
	return err_set(err, -ECANCELED, "cancelled");
}

static bool wants_vars(const struct cairn_btfgen_opts *o)
{
	return o->vars != CAIRN_BTFGEN_VARS_NONE;
}

/* The variables that go to main; of a program there are no per-processor ones. */
static int emit_vars(struct distil *d, struct cairn_err *err)
{
	if (!wants_vars(d->opts))
		return 0;
	enum vars_which which = d->opts->vars == CAIRN_BTFGEN_VARS_ALL ? VARS_EVERY : VARS_PERCPU;
	return vars_emit(d->bin, &d->emit, which, d->main, d->ret->losses, &d->ret->n_variables,
			 err);
}

/* Tasks that run once the types are joined. They do not depend on one another. */
enum { NUMBER_FUNCTIONS, SEE_BODIES, N_WHEN_JOINED };

static int do_when_joined(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct distil *d = arg;
	if (item == SEE_BODIES)
		return func_bodies_see(d->dw, &d->classes, err);
	int rc = name_variants_find(&d->classes, &d->variants, err);
	if (rc >= 0 && d->meanings)
		rc = meanings_find(&d->variants, dwarf_n_units(d->dw), d->meanings, err);
	return rc < 0 ? rc : func_table_number(&d->variants, &d->functions, err);
}

static int join_types(struct distil *d, struct cairn_err *err)
{
	int rc = distil_join(d->readers, &d->classes, err);
	d->ret->n_left_out = distil_n_left_out(d->readers);
	distil_readers_free(d->readers);
	d->readers = NULL;
	if (rc >= 0 && d->opts->base)
		rc = base_keep_known(&d->classes, err);
	return rc < 0 ? rc : pool_run(N_WHEN_JOINED, d->opts->threads, do_when_joined, d, err);
}

static int make_main(struct distil *d, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = d->opts->base,
					    /*
					     * The records are in the inline part; its layout
					     * records their sizes, too.
					     */
					    .dialect = d->opts->dialect,
					    .layout = d->opts->layout};
	int rc = join_types(d, err);
	if (rc >= 0)
		rc = func_table_choose(d->dw, &d->functions, d->ret->losses, err);
	if (rc >= 0)
		rc = cairn_btf_builder_new(&opts, &d->main, err);
	if (rc < 0)
		return rc;
	d->emit = (struct emit){.c = &d->classes,
				.v = &d->variants,
				.b = d->main,
				.base = d->opts->base,
				.skip = d->functions.skip,
				.ptr_bytes = 8,
				.losses = d->ret->losses};
	rc = emit_types(&d->emit, err);
	if (rc >= 0)
		rc = func_table_emit(&d->functions, &d->emit, &d->ret->n_functions, err);
	if (rc >= 0 && (rc = tags_emit_of_functions(&d->functions, true, d->main)) < 0)
		err_set(err, rc, "tags of functions: more than BTF can number, or out of memory");
	if (rc >= 0)
		rc = emit_vars(d, err);
	return rc;
}

static int finish_main(struct distil *d, struct cairn_err *err)
{
	type_classes_trim(&d->classes);
	uint32_t first = d->opts->base ? cairn_btf_end_id(d->opts->base) : 1;
	d->ret->n_types = btf_builder_next_id(d->main) - first;
	int rc = cairn_btf_finish(d->main, &d->ret->main.bytes, &d->ret->main.size, err);
	cairn_btf_builder_free(d->main);
	d->main = d->emit.b = NULL;
	return rc;
}

/* v1 is a subset of N: its records are made from the records of N. */
static int inlined_to_v1(struct distil *d, struct cairn_err *err)
{
	struct cairn_btf_open_opts open = {
		.size = sizeof(open), .base = d->base_of_parts, .dialect = CAIRN_BTF_LOC_N};
	struct cairn_btf_convert_opts how = {.size = sizeof(how),
					     .base = d->base_of_parts,
					     .dialect = CAIRN_BTF_LOC_V1,
					     .layout = true};
	struct cairn_btfgen_blob n = d->ret->inlined;
	struct cairn_btf_losses losses = {0};
	struct cairn_btf *btf = NULL;
	if (!n.bytes)
		return 0;
	int rc = cairn_btf_open_mem(n.bytes, n.size, "the inline part", &open, &btf, err);
	if (rc >= 0)
		rc = cairn_btf_convert(btf, &how, &losses, &d->ret->inlined.bytes,
				       &d->ret->inlined.size, err);
	if (rc >= 0)
		free(n.bytes);
	d->ret->losses[CAIRN_LOSS_LOC_LONG] += losses.loc_params;
	cairn_btf_close(btf);
	return rc;
}

/* Tasks that run once the sites are found. The two do not depend on each other. */
enum { JOIN_SITES, WRITE_FUNCTIONS, N_WHEN_FOUND };

static int do_when_found(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct distil *d = arg;
	if (item == JOIN_SITES)
		return sites_join(d->search, err);
	return sites_blob_funcs(d->blob, &d->ret->n_inlined_functions, err);
}

/* The last tasks. Memory that is no longer read is released meanwhile, which takes equally long. */
enum { WRITE_SITES, RELEASE_UNITS, N_AT_LAST };

static int do_at_last(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct distil *d = arg;
	if (item == WRITE_SITES)
		return sites_blob_finish(d->blob, &d->ret->inlined, err);
	dwarf_release(d->dw);
	return 0;
}

static int make_inlined(struct distil *d, struct cairn_err *err)
{
	int rc = sites_find(d->search, &d->functions, &d->emit, d->ret, &d->sites, err);
	/* Before others ask for memory: they get this one, which is still in the caches. */
	sites_search_trim(d->search);
	if (rc >= 0)
		rc = sites_blob_new(d->base_of_parts, &d->sites, &d->functions, &d->emit, &d->blob,
				    err);
	if (rc >= 0)
		rc = pool_run(N_WHEN_FOUND, d->opts->threads, do_when_found, d, err);
	d->ret->n_sites = d->sites.v.n;
	if (rc >= 0)
		rc = pool_run(N_AT_LAST, d->opts->threads, do_at_last, d, err);
	if (rc >= 0 && d->opts->dialect == CAIRN_BTF_LOC_V1)
		rc = inlined_to_v1(d, err);
	return rc;
}

static int make_vars(struct distil *d, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts), .base = d->base_of_parts};
	struct cairn_btf_builder *b = NULL;
	uint32_t n = 0;
	int rc = cairn_btf_builder_new(&opts, &b, err);
	if (rc >= 0)
		rc = vars_emit(d->bin, &d->emit, VARS_OTHERS, b, d->ret->losses, &n, err);
	if (rc >= 0 && n)
		rc = cairn_btf_finish(b, &d->ret->vars.bytes, &d->ret->vars.size, err);
	cairn_btf_builder_free(b);
	d->ret->n_variables += n;
	return rc;
}

/* The blobs that are split from main. */
static int make_parts(struct distil *d, struct cairn_err *err)
{
	struct cairn_btf_open_opts open = {.size = sizeof(open), .base = d->opts->base};
	bool vars = d->opts->vars == CAIRN_BTFGEN_VARS_SPLIT,
	     inlined = d->opts->dialect != CAIRN_BTF_NO_LOC;
	if (!vars && !inlined)
		return 0;
	int rc = cairn_btf_open_mem(d->ret->main.bytes, d->ret->main.size, "the main part", &open,
				    &d->base_of_parts, err);
	if (rc >= 0 && vars)
		rc = make_vars(d, err);
	if (rc >= 0 && inlined)
		rc = make_inlined(d, err);
	return rc;
}

static int begin_search(struct distil *d, struct cairn_err *err)
{
	struct site_opts opts = {.threads = d->opts->threads,
				 .assume_unmodified = d->opts->assume_unmodified,
				 .progress = d->opts->progress,
				 .ctx = d->opts->ctx};
	return d->opts->dialect == CAIRN_BTF_NO_LOC
		       ? 0
		       : sites_search_new(d->bin, &opts, d->dw, &d->search, err);
}

static int open_unwind_information(void *ctx, struct cairn_err *err)
{
	const struct distil *d = ctx;
	return d->search ? sites_open_cfi(d->search, err) : 0;
}

static int note_missing(struct distil *d, struct cairn_err *err)
{
	const char *which;
	d->ret->n_missing = dwarf_missing(d->dw, &which);
	d->ret->missing = strdup(which);
	return d->ret->missing ? 0 : err_nomem(err, "the names of missing files");
}

static int open_debug_information(struct distil *d, struct cairn_err *err)
{
	if (d->dw)
		return 0;
	int rc = dwarf_open(d->bin, d->opts->threads, &d->own_dw, err);
	d->dw = d->own_dw;
	return rc;
}

/* All parallel work, so that it does not wait for single-threaded work. */
static int read_units(struct distil *d, struct cairn_err *err)
{
	int rc = open_debug_information(d, err);
	if (rc >= 0)
		rc = note_missing(d, err);
	if (rc >= 0)
		rc = begin_search(d, err);
	if (rc >= 0 && type_classes_init(&d->classes) < 0)
		rc = err_nomem(err, "types");
	struct read_opts opts = {.threads = d->opts->threads,
				 .base = d->opts->base,
				 .want_vars = wants_vars(d->opts),
				 .want_contents = d->meanings,
				 .asked = d->opts,
				 .index = d->search ? sites_index(d->search) : d->index,
				 .beside = open_unwind_information,
				 .ctx = d};
	return rc < 0 ? rc : distil_read(d->dw, &opts, &d->readers, err);
}

/* Each of these has stretches that one thread does alone. They need nothing of each other. */
enum { MAKE_MAIN, PREPARE_SITES, FIND_FOLDS, N_AT_ONCE };

static int do_at_once(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	struct distil *d = arg;
	if (item == PREPARE_SITES)
		return d->search ? sites_prepare(d->search, err) : 0;
	if (item == FIND_FOLDS)
		return d->search ? sites_find_folds(d->search, err) : 0;
	int rc = make_main(d, err);
	return rc < 0 ? rc : finish_main(d, err);
}

static int run(struct distil *d, struct cairn_err *err)
{
	int rc = progress(d, CAIRN_BTFGEN_TYPES, 0, 1, err);
	if (rc >= 0)
		rc = read_units(d, err);
	if (rc >= 0)
		rc = progress(d, CAIRN_BTFGEN_TYPES, 1, 1, err);
	if (rc >= 0)
		rc = pool_run(N_AT_ONCE, d->opts->threads, do_at_once, d, err);
	if (rc >= 0)
		rc = make_parts(d, err);
	if (rc >= 0)
		rc = progress(d, CAIRN_BTFGEN_WRITE, 1, 1, err);
	for (int i = 0; i < CAIRN_N_LOSSES; i++)
		d->ret->losses[i] += d->classes.losses[i];
	return rc;
}

static void distil_fini(struct distil *d)
{
	sites_blob_free(d->blob);
	sites_fini(&d->sites);
	sites_search_free(d->search);
	func_table_fini(&d->functions);
	emit_fini(&d->emit);
	cairn_btf_builder_free(d->main);
	cairn_btf_close(d->base_of_parts);
	name_variants_fini(&d->variants);
	distil_readers_free(d->readers);
	type_classes_fini(&d->classes);
	dwarf_close(d->own_dw);
}

/* The options as this version knows them. -EINVAL when the caller's newer ones are set. */
static int take_opts(const struct cairn_btfgen_opts *opts, struct cairn_btfgen_opts *ret,
		     struct cairn_err *err)
{
	*ret = (struct cairn_btfgen_opts){.dialect = CAIRN_BTF_LOC_N};
	if (!opts)
		return 0;
	return opts_take(ret, sizeof(*ret), opts, err);
}

/* @d has the binary, and more than that only if the caller shares it. */
static int distil(struct distil *d, const struct cairn_btfgen_opts *opts, struct cairn_btfgen *ret,
		  struct cairn_err *err)
{
	struct cairn_btfgen_opts taken;
	*ret = (struct cairn_btfgen){0};
	d->opts = &taken;
	d->ret = ret;
	int rc = take_opts(opts, &taken, err);
	if (rc < 0)
		return rc;
	if (taken.dialect != CAIRN_BTF_NO_LOC)
		rc = elf_need_x86_64(binary_main(d->bin),
				     "sites of functions, which can be left out, are known", err);
	if (rc == 0)
		rc = run(d, err);
	distil_fini(d);
	if (rc < 0)
		cairn_btfgen_free(ret);
	return rc < 0 ? err_while(err, rc, "while making BTF of %s", cairn_binary_path(d->bin)) : 0;
}

int distil_with_meanings(const struct dwarf *dw, const struct cairn_btfgen_opts *opts,
			 struct cairn_btfgen *ret, struct meanings *ret_meanings,
			 struct dw_func_index *ret_functions, struct cairn_err *err)
{
	struct distil d = {.bin = dwarf_binary(dw),
			   .dw = dw,
			   .meanings = ret_meanings,
			   .index = ret_functions};
	return distil(&d, opts, ret, err);
}

int cairn_btf_from_dwarf(const struct cairn_binary *bin, const struct cairn_btfgen_opts *opts,
			 struct cairn_btfgen *ret, struct cairn_err *err)
{
	struct distil d = {.bin = bin};
	int rc = distil(&d, opts, ret, err);
	if (rc >= 0 && binary_check_inputs(bin, err) < 0) {
		cairn_btfgen_free(ret);
		return -EBADMSG;
	}
	return rc;
}

void cairn_btfgen_free(struct cairn_btfgen *d)
{
	if (!d)
		return;
	free(d->main.bytes);
	free(d->inlined.bytes);
	free(d->vars.bytes);
	free(d->missing);
	*d = (struct cairn_btfgen){0};
}
