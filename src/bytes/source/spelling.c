/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Spellings of base types
 *
 * C allows its words in any order, and lets "int" and "signed" be left out. GCC writes "long
 * unsigned int" into its debug information, Clang "unsigned long", people "unsigned long" or
 * "unsigned long int". The words are counted, and two names are alike when their counts are.
 */
#include "source/spelling.h"

#include <stddef.h>
#include <string.h>

struct counts {
	unsigned char is_long, is_short, is_signed, is_unsigned, is_int, is_char, is_double,
		is_float, is_int128, is_complex;
};

static const struct {
	const char *word;
	size_t at;
} words[] = {
	{"long", offsetof(struct counts, is_long)},
	{"short", offsetof(struct counts, is_short)},
	{"signed", offsetof(struct counts, is_signed)},
	{"unsigned", offsetof(struct counts, is_unsigned)},
	{"int", offsetof(struct counts, is_int)},
	{"char", offsetof(struct counts, is_char)},
	{"double", offsetof(struct counts, is_double)},
	{"float", offsetof(struct counts, is_float)},
	{"__int128", offsetof(struct counts, is_int128)},
	{"_Complex", offsetof(struct counts, is_complex)},
	{"complex", offsetof(struct counts, is_complex)},
};

static bool count_word(const char *word, size_t n, struct counts *c)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strncmp(words[i].word, word, n) != 0 || words[i].word[n])
			continue;
		unsigned char *count = (unsigned char *)c + words[i].at;

		return ++*count <= 2;
	}
	return false;
}

/* False: it is not made of C's words alone. */
static bool count_words(const char *name, struct counts *ret)
{
	*ret = (struct counts){0};
	for (name += strspn(name, " "); *name; name += strspn(name, " ")) {
		size_t n = strcspn(name, " ");

		if (!count_word(name, n, ret))
			return false;
		name += n;
	}
	/* "signed" matters to char alone; "int" to nothing that another word says. */
	if (!ret->is_char) {
		ret->is_signed = 0;
		ret->is_int = !ret->is_double && !ret->is_float && !ret->is_int128;
	}
	return true;
}

bool spelled_alike(const char *a, const char *b)
{
	struct counts x, y;

	if (!strcmp(a, b))
		return true;
	/* C++ and Clang say bool, C says _Bool. */
	if ((!strcmp(a, "bool") && !strcmp(b, "_Bool")) ||
	    (!strcmp(a, "_Bool") && !strcmp(b, "bool")))
		return true;
	return *a && *b && count_words(a, &x) && count_words(b, &y) && !memcmp(&x, &y, sizeof(x));
}
