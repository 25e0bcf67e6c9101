/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quoted names: what an interpreter makes of them is tests/cli/test_quote.py's; here, what holds
 * for each of them.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/quote.h"
#include "base/utf8.h"

static void check_safe(const char *quoted)
{
	uint32_t c;

	for (const uint8_t *at = (const uint8_t *)quoted; *at;) {
		size_t n = utf8_length(at, strlen((const char *)at), &c);

		assert(n && utf8_is_safe(c));
		at += n;
	}
}

static void check(const char *name, enum cairn_quote as, size_t cut)
{
	ssize_t n = cairn_quote(name, as, NULL, 0);
	char *whole = n < 0 ? NULL : malloc((size_t)n + 1), *part = malloc(cut + 1);

	if (whole && part) {
		assert(cairn_quote(name, as, whole, (size_t)n + 1) == n &&
		       strlen(whole) == (size_t)n);
		check_safe(whole);
		assert(cairn_quote(name, as, part, cut + 1) == n && strlen(part) <= cut);
		assert(!strncmp(whole, part, strlen(part)));
		check_safe(part);
	}
	free(whole);
	free(part);
}

static void check_word(const char *name, enum cairn_quote as)
{
	struct arena arena;

	arena_init(&arena);
	const char *quoted = arena_quote(&arena, name, as);
	const char *back = quoted ? arena_unquote(&arena, quoted, strlen(quoted)) : NULL;
	assert(!back || !strcmp(back, name));
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *name = malloc(size + 1);

	if (!name)
		return 0;
	memcpy(name, bytes, size);
	name[size] = 0;
	for (int as = 0; as <= CAIRN_QUOTE_TYPESCRIPT; as++)
		check(name, (enum cairn_quote)as, size ? bytes[size - 1] % (size + 1) : 0);
	check_word(name, CAIRN_QUOTE_WORD);
	check_word(name, CAIRN_QUOTE_COMMENT);
	free(name);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char shell[] = "f\nid>PWNED;#'\"\\$(x)`y`";
	static const char marks[] =
		"*/ ?"
		"?/ --> %n \x1b[2J \xc2\x9b \xe2\x80\xae \xf0\x9f\x92\xa9 \xff \xed\xa0\x80";

	put(shell, strlen(shell));
	put(marks, strlen(marks));
}
