/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clang lays C out, for any ABI, and its debug information is read here, where only files of few
 * machines are read
 *
 * Clang's front end lays types out for the machine that --target names, and writes them, offsets
 * and all, as metadata of its intermediate language. The rest of the compiler turns this into DWARF
 * in an object file of the target, and computes nothing anew. So the two halves can be for two
 * machines:
 *
 *     clang --target=s390x-linux-gnu -g -S -emit-llvm event.h  layouts of s390x
 *         !12 = !DIDerivedType(tag: DW_TAG_member, name: "d", baseType: !13, size: 64, offset: 128)
 *     keep the lines of metadata, which begin with '!'
 *     clang --target=x86_64-linux-gnu -x ir -c                 an x86-64 file with these layouts
 *
 * Code, data and assembler are dropped between the halves: they would not be the second machine's.
 * A reader of the file needs the ABI as an option, since pointers have no size in Clang's output,
 * except the size of the file's machine.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler.h"
#include "layout_headers.h"

#define CONTAINER "x86_64-linux-gnu"

/* Runs clang; an exit status. */
static int run_clang(const struct compiler_words *w, int input, const char *path,
		     struct compiler_answer *ret)
{
	*ret = compiler_run(w, input, false);
	if (ret->status == 127)
		return fail(STATUS_NOT_HERE,
			    "clang, which --via-compiler is about, is not installed");
	if (!ret->output)
		return fail(STATUS_NOT_HERE, "no memory");
	if (ret->why)
		return fail(STATUS_USAGE, "clang was ended while it compiled %s: %s", path,
			    ret->why);
	return ret->status ? fail(STATUS_USAGE, "clang cannot compile %s", path) : STATUS_YES;
}

/* All types, also those that nothing uses, as the front end laid them out. */
static int front_end_with(const char *path, const struct layout_headers *headers,
			  const struct layout_values *values, struct compiler_answer *ret)
{
	static const char *const words[] = {"-g",
					    "-gdwarf-4",
					    "-fno-eliminate-unused-debug-types",
					    "-fstandalone-debug",
					    "-w",
					    "-S",
					    "-emit-llvm",
					    "-o",
					    "-"};
	struct compiler_words w = {0};

	compiler_word(&w, "", "clang");
	compiler_word(&w, "--target=", headers->abi->triple);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		compiler_word(&w, "", words[i]);
	layout_c_words(&w, values);
	layout_headers_words(headers, &w);
	compiler_word(&w, "", path);
	int status = run_clang(&w, -1, path, ret);
	compiler_words_free(&w);
	return status;
}

static int front_end(const char *path, const struct cairn_abi *abi,
		     const struct layout_values *values, struct compiler_answer *ret)
{
	struct layout_headers headers;
	int status = layout_headers_open(&headers, abi);

	if (!status)
		status = front_end_with(path, &headers, values, ret);
	if (!status)
		layout_headers_tell(&headers, path, ret->output, ret->size);
	layout_headers_close(&headers);
	return status;
}

/* In place; how much is left. */
static size_t keep_metadata(char *text, size_t size)
{
	size_t kept = 0;

	for (size_t at = 0; at < size;) {
		const char *end = memchr(text + at, '\n', size - at);
		size_t n = end ? (size_t)(end - text) + 1 - at : size - at;

		if (text[at] == '!') {
			memmove(text + kept, text + at, n);
			kept += n;
		}
		at += n;
	}
	return kept;
}

static int back_end(const char *path, const char *text, size_t size, const char *out)
{
	static const char *const words[] = {
		"clang", ("--target=" CONTAINER), "-w", "-c", "-x", "ir", "-o"};
	struct compiler_words w = {0};
	struct compiler_answer a = {0};
	int fd = compiler_input(text, size);

	if (fd < 0)
		return fail(STATUS_NOT_HERE, "cannot pass text to clang: %s", strerror(-fd));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		compiler_word(&w, "", words[i]);
	compiler_word(&w, "", out);
	compiler_word(&w, "", "-");
	int status = run_clang(&w, fd, path, &a);
	free(a.output);
	compiler_words_free(&w);
	close(fd);
	return status;
}

int layout_compile(const char *path, const struct cairn_abi *abi,
		   const struct layout_values *values, const char *out)
{
	struct compiler_answer types = {0};
	int status = front_end(path, abi, values, &types);

	if (!status)
		status = back_end(path, types.output, keep_metadata(types.output, types.size), out);
	free(types.output);
	return status;
}
