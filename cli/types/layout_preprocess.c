/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The preprocessor: $CC -E, or cc; for an ABI that is not this machine's, clang --target=... -E, so
 * that macros are that machine's. Its complaints go to stderr unchanged.
 */
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "layout_headers.h"

void layout_c_words(struct compiler_words *w, const struct layout_values *values)
{
	for (size_t i = 0; i < values->include_dirs.n; i++)
		compiler_word(w, "-I", values->include_dirs.items[i]);
	for (size_t i = 0; i < values->defines.n; i++)
		compiler_word(w, "-D", values->defines.items[i]);
	compiler_word(w, "-x", "c");
}

static void set_words(struct compiler_words *w, const char *path,
		      const struct layout_headers *headers, const struct layout_values *values)
{
	if (!strcmp(headers->abi->name, "x86-64")) {
		compiler_command(w, compiler_of_user("cc"));
	} else {
		compiler_word(w, "", "clang");
		compiler_word(w, "--target=", headers->abi->triple);
	}
	compiler_word(w, "", "-E");
	layout_c_words(w, values);
	layout_headers_words(headers, w);
	compiler_word(w, "", path);
}

static int preprocess(const char *path, const struct layout_headers *headers,
		      const struct layout_values *values, struct compiler_answer *ret)
{
	struct compiler_words w = {0};
	int status = STATUS_YES;

	set_words(&w, path, headers, values);
	*ret = compiler_run(&w, -1, false);
	if (ret->status == 127)
		status = fail(STATUS_NOT_HERE,
			      "%s, which would preprocess %s, is not installed\n"
			      "Install it, or name another in CC, or preprocess the file to NAME.i",
			      w.n ? w.p[0] : "cc", path);
	else if (!ret->output)
		status = fail(STATUS_NOT_HERE, "no memory");
	else if (ret->why)
		status = fail(STATUS_USAGE, "%s was ended while it preprocessed %s: %s", w.p[0],
			      path, ret->why);
	else if (ret->status)
		status = fail(STATUS_USAGE,
			      "%s cannot preprocess %s for %s; -I DIR names folders of headers",
			      w.p[0], path, headers->abi->name);
	compiler_words_free(&w);
	return status;
}

int layout_preprocess(const char *path, const struct cairn_abi *abi,
		      const struct layout_values *values, char **ret, size_t *ret_size)
{
	struct compiler_answer a = {0};
	struct layout_headers headers;
	int status = layout_headers_open(&headers, abi ? abi : cairn_abi_find("x86-64"));

	if (!status)
		status = preprocess(path, &headers, values, &a);
	if (!status)
		layout_headers_tell(&headers, path, a.output, a.size);
	layout_headers_close(&headers);
	if (status) {
		free(a.output);
		return status;
	}
	*ret = a.output;
	*ret_size = a.size;
	return STATUS_YES;
}
