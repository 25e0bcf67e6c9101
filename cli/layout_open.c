/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of types: C, BTF on its bases, binaries. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decl.h>

#include "layout.h"

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

static int read_text(const char *path, char **ret, size_t *ret_size)
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
		return fail(STATUS_USAGE, "cannot read %s as C declarations", path);
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
	int status = read_text(path, &text, &size);

	if (status)
		return status;
	if (!ends_with(path, ".i") && cairn_decl_needs_preprocessor(text, size)) {
		free(text);
		status = layout_preprocess(path, abi, values, &text, &size);
		if (status)
			return status;
	}
	int rc = cairn_source_parse(text, size, path, abi ? abi : cairn_abi_find("x86-64"), &ret->source, &err);
	free(text);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

/* The bases alone, to be that of another file. */
static int open_bases(const struct opt_list *bases, struct layout_source *ret)
{
	struct opt_list parents = {bases->items, bases->n - 1};
	struct btf_source source = {.path = bases->items[bases->n - 1], .bases = &parents};

	ret->has_bases = true;
	return btf_open(&source, &ret->bases);
}

int layout_open(const char *path, const struct cairn_abi *abi, const struct layout_values *values,
		struct layout_source *ret)
{
	struct cairn_source_opts opts = {.size = sizeof(opts), .btf = values->btf};
	struct cairn_err err = {0};
	int status = STATUS_YES;

	*ret = (struct layout_source){0};
	if (layout_is_c(path))
		return open_c(path, abi, values, ret);
	if (values->bases.n)
		status = open_bases(&values->bases, ret);
	if (status)
		return status;
	if (ret->has_bases)
		opts.base = btf_of(&ret->bases);
	int rc = cairn_source_open(path, &opts, &ret->source, &err);
	return rc < 0 ? fail_err(rc, &err, STATUS_USAGE) : STATUS_YES;
}

void layout_close(struct layout_source *source)
{
	cairn_source_close(source->source);
	if (source->has_bases)
		btf_close(&source->bases);
}
