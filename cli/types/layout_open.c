/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of types: C, BTF on its bases, binaries. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layout.h"
#include "near.h"
#include "say.h"

/* No header is larger; a mistaken file is. */
static const size_t TEXT_MAX = (size_t)1 << 28;

static bool ends_with(const char *path, const char *suffix)
{
	size_t n = strlen(path), m = strlen(suffix);

	return n > m && !strcmp(path + n - m, suffix);
}

bool layout_is_c(const char *path)
{
	return ends_with(path, ".h") || ends_with(path, ".c") || ends_with(path, ".i");
}

bool layout_is_text(const char *path)
{
	return layout_is_c(path) || cairn_lang_of_path(path) != CAIRN_LANG_N;
}

int layout_read_text(const char *path, char **ret, size_t *ret_size)
{
	FILE *in = fopen(path, "re");
	size_t n = 0, cap = 1 << 16;
	char *text = in ? malloc(cap) : NULL;

	if (!in)
		return fail(STATUS_USAGE, "cannot open %s: %m", path);
	while (text && n < TEXT_MAX) {
		size_t got = fread(text + n, 1, cap - n, in);

		n += got;
		if (!got)
			break;
		if (n < cap)
			continue;
		char *grown = realloc(text, cap *= 2);
		if (!grown)
			free(text);
		text = grown;
	}
	bool failed = ferror(in) || n >= TEXT_MAX;
	fclose(in);
	if (!text)
		return fail(STATUS_NOT_HERE, "no memory");
	if (failed) {
		free(text);
		return fail(STATUS_USAGE, "cannot read %s as declarations", path);
	}
	*ret = text;
	*ret_size = n;
	return STATUS_YES;
}

static int open_c(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		  struct layout_source *ret)
{
	struct cairn_err err = {0};
	size_t size;
	char *text;
	int status = layout_read_text(path, &text, &size);

	if (status)
		return status;
	if (!ends_with(path, ".i") && cairn_source_needs_preprocessor(text, size)) {
		free(text);
		status = layout_preprocess(path, abi, values, &text, &size);
		if (status)
			return status;
	}
	int rc = cairn_source_parse(text, size, path, abi ? abi : cairn_abi_find("x86-64"),
				    &ret->source, &err);
	free(text);
	if (rc < 0)
		status = fail_err(rc, &err, STATUS_USAGE);
	if (rc == -EBADMSG || rc == -ERANGE)
		say(stderr,
		    "If clang can read it: \"cairn layout --via-compiler\" has clang lay it out\n");
	return status;
}

static int open_foreign(const char *path, enum cairn_lang lang, const struct cairn_abi *abi,
			struct layout_source *ret)
{
	struct cairn_err err = {0};
	size_t size;
	char *text;
	int status = layout_read_text(path, &text, &size);

	if (status)
		return status;
	int rc = cairn_source_parse_foreign(
		text, size, path, lang, abi ? abi : cairn_abi_find("x86-64"), &ret->source, &err);
	free(text);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

/* The bases alone, to be that of another file. */
static int open_bases(const struct opt_list *bases, struct layout_source *ret)
{
	struct btf_source source = {.bases = {bases->items, bases->n - 1}};

	ret->has_bases = true;
	return btf_open(bases->items[bases->n - 1], &source, &ret->bases);
}

/*
 * Clang lays it out, and its debug information is read. A result without structs is no error here.
 */
static int open_compiled(const char *path, const struct cairn_abi *abi,
			 const struct layout_values *values, struct layout_source *ret)
{
	struct cairn_source_opts opts = {.size = sizeof(opts),
					 .abi = abi ? abi : cairn_abi_find("x86-64"),
					 .typedefs = true};
	char object[] = "/tmp/cairn-layout-XXXXXX";
	struct cairn_err err = {0};
	int fd = mkstemp(object);

	if (fd < 0)
		return fail(STATUS_NOT_HERE, "cannot write %s: %m", object);
	close(fd);
	int status = layout_compile(path, opts.abi, values, object);
	if (!status) {
		int rc = cairn_source_open(object, &opts, &ret->source, &err);

		status = rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
	}
	unlink(object);
	return status;
}

/*
 * A binary's sidecar, wherever it lies, answers as its debug information does; ret->source stays
 * NULL when there is none.
 */
static int open_sidecar(const char *path, const struct layout_values *values,
			struct layout_source *ret)
{
	struct cairn_err err = {0};

	/* A file that is no binary may be BTF; errors are reported then. */
	if (cairn_binary_open(path, NULL, &ret->bin, NULL) < 0)
		return STATUS_YES;
	ret->wish = values->wish;
	ret->wish.many = values->diff || values->beside;
	int rc = sidecar_find(&ret->wish, ret->bin, &ret->pack, &err);
	if (rc >= 0 && ret->pack)
		rc = cairn_sidecar_source(ret->pack, &ret->source, &err);
	/* One of another file: the debug information answers. */
	if (rc == -ESTALE && ret->pack && cairn_binary_has_dwarf(ret->bin)) {
		fail_told(STATUS_YES, &err);
		cairn_sidecar_close(ret->pack);
		ret->pack = NULL;
		return STATUS_YES;
	}
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

int layout_open(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		struct layout_source *ret)
{
	struct cairn_source_opts opts = {.size = sizeof(opts), .btf = values->btf};
	struct cairn_err err = {0};
	int status = STATUS_YES;

	*ret = (struct layout_source){0};
	if (layout_is_c(path))
		return values->via_compiler ? open_compiled(path, abi, values, ret)
					    : open_c(path, abi, values, ret);
	if (layout_is_text(path))
		return open_foreign(path, cairn_lang_of_path(path), abi, ret);
	if (values->bases.n)
		status = open_bases(&values->bases, ret);
	else if (!values->btf)
		status = open_sidecar(path, values, ret);
	if (status || ret->source)
		return status;
	opts.binary = ret->bin;
	if (ret->has_bases)
		opts.base = btf_of(&ret->bases);
	if (values->btf || values->bases.n)
		sidecar_say_unbound_file(path);
	int rc = cairn_source_open(path, &opts, &ret->source, &err);
	if (rc < 0)
		return fail_err(rc, &err, STATUS_USAGE);
	const char *which;
	size_t n = cairn_source_missing(ret->source, &which);
	warn_of_missing_dwo(n, which, "types that only they describe are not known");
	return STATUS_YES;
}

/* For BTF the ABI may have to be guessed, from all structs that have no attributes. */
static const struct cairn_abi *abi_of(struct layout_source *source)
{
	const struct cairn_abi *abi = cairn_source_abi(source->source);
	const struct cairn_types *types = cairn_source_types(source->source);
	struct cairn_source_list all = {0};
	unsigned int pointer = 8;

	if (abi || cairn_source_select(source->source, NULL, &all, NULL) < 0)
		return abi;
	for (uint32_t id = 1; id < cairn_types_n_types(types); id++)
		if (cairn_types_get(types, id)->kind == CAIRN_T_PTR) {
			pointer = (unsigned int)cairn_types_get(types, id)->size;
			break;
		}
	abi = cairn_layout_guess_abi(types, all.ids, all.n, pointer,
				     cairn_source_is_big_endian(source->source));
	free(all.ids);
	return abi;
}

int layout_retarget(struct layout_source *source, const struct cairn_abi *abi,
		    const struct cairn_source_list *list)
{
	const struct cairn_abi *from;
	struct cairn_err err = {0};

	if (cairn_source_kind(source->source) == CAIRN_SOURCE_DECL)
		return STATUS_YES;
	from = abi_of(source);
	if (from == abi)
		return STATUS_YES;
	if (!from)
		return fail(STATUS_NOT_HERE, "no ABI is known that these types are of");
	int rc = cairn_layout_retarget(cairn_source_types(source->source), from, abi, list->ids,
				       list->n, &source->retarget, &err);
	source->abi = abi;
	return rc < 0 ? fail_err(rc, &err, STATUS_NOT_HERE) : STATUS_YES;
}

const struct cairn_types *layout_types(const struct layout_source *source)
{
	return source->retarget ? cairn_retarget_types(source->retarget)
				: cairn_source_types(source->source);
}

const struct cairn_abi *layout_abi(const struct layout_source *source)
{
	return source->retarget ? source->abi : cairn_source_abi(source->source);
}

/* The answer came from the debug information: the next one shall not have to. */
static void keep(const struct layout_source *source)
{
	if (source->source && source->bin && !source->pack && cairn_binary_has_dwarf(source->bin))
		sidecar_keep(source->bin, &source->wish);
}

void layout_close(struct layout_source *source)
{
	keep(source);
	cairn_retarget_free(source->retarget);
	cairn_source_close(source->source);
	cairn_sidecar_close(source->pack);
	cairn_binary_close(source->bin);
	if (source->has_bases)
		btf_close(&source->bases);
}

/* Reports near names, too. They are taken from all that a failed search has read. */
static int fail_unknown(struct cairn_source *source, const char *name)
{
	const char *near[SUGGESTIONS_MAX];

	fail(STATUS_NO, "no type is named %s", name);
	if (strpbrk(name, "*?["))
		return STATUS_NO;
	/* Records of BTF are read when they are needed: without memory for them there are fewer. */
	cairn_source_read_all(source, NULL);
	say_near(near,
		 (int)cairn_types_suggest(cairn_source_types(source), name, near, SUGGESTIONS_MAX));
	return STATUS_NO;
}

/* A name was not found: it may exist and have no members. */
static int fail_no_type(struct cairn_source *source, const char *name)
{
	struct cairn_source_list list = {0};
	const struct cairn_types *types = cairn_source_types(source);
	char text[256];

	if (cairn_source_select_value(source, name, &list, NULL) <= 0) {
		free(list.ids);
		return fail_unknown(source, name);
	}
	uint32_t id = cairn_types_resolve(types, list.ids[0]);
	uint64_t size = cairn_types_size(types, id);
	cairn_types_name(types, id, text, sizeof(text));
	free(list.ids);
	return fail(STATUS_NO, "%s has no members: it is %s, %" PRIu64 " byte%s", name, text, size,
		    size == 1 ? "" : "s");
}

int layout_select(struct cairn_source *source, char *const *patterns, size_t n_patterns,
		  struct cairn_source_list *ret)
{
	struct cairn_err err = {0};
	int status = STATUS_YES;

	for (size_t i = 0; i < (n_patterns ? n_patterns : 1); i++) {
		const char *pattern = n_patterns ? patterns[i] : NULL;
		int64_t n = cairn_source_select(source, pattern, ret, &err);

		if (n < 0)
			return fail_err((int)n, &err, STATUS_NO);
		if (!n)
			status = pattern ? fail_no_type(source, pattern)
					 : fail(STATUS_NO, "the file defines no struct or union");
	}
	/* Results are still shown. */
	return ret->n ? STATUS_YES : status;
}

int layout_select_value(struct cairn_source *source, const char *name,
			struct cairn_source_list *ret)
{
	struct cairn_err err = {0};
	int64_t n = cairn_source_select_value(source, name, ret, &err);

	if (n < 0)
		return fail_err((int)n, &err, STATUS_NO);
	return n ? STATUS_YES : fail_unknown(source, name);
}
