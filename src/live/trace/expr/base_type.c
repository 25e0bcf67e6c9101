/* SPDX-License-Identifier: BSD-2-Clause */
/* Integer types: the words of C for them, and their signs. */
#include "trace/expr/check.h"

#include <string.h>

/* How often a word is in @words, which are @length long. */
static unsigned int count_word(const char *words, const char *word, size_t *length)
{
	size_t n = strlen(word);
	unsigned int count = 0;

	for (const char *s = words; *s; s += strspn(s, " ")) {
		size_t k = strcspn(s, " ");
		count += k == n && !memcmp(s, word, n);
		s += k;
	}
	*length += count * (n + 1);
	return count;
}

/* "unsigned long int": the words of C in any order. */
static bool base_type_of_words(const char *words, struct base_type *ret)
{
	size_t length = 0;
	unsigned int is_char = count_word(words, "char", &length);
	unsigned int is_int = count_word(words, "int", &length);
	unsigned int shorts = count_word(words, "short", &length);
	unsigned int longs = count_word(words, "long", &length);
	unsigned int is_signed = count_word(words, "signed", &length);
	unsigned int is_unsigned = count_word(words, "unsigned", &length);

	if (length != strlen(words) + 1 || is_char + is_int > 1 || shorts > 1 || longs > 2 ||
	    is_signed + is_unsigned > 1 || (is_char && shorts + longs) || (shorts && longs))
		return false;
	*ret = (struct base_type){.bytes = 4, .is_unsigned = is_unsigned};
	if (is_char)
		ret->bytes = 1;
	else if (shorts)
		ret->bytes = 2;
	else if (longs)
		ret->bytes = 8;
	return true;
}

bool base_type_of(const char *words, struct base_type *ret)
{
	static const struct {
		const char *words;
		struct base_type is;
	} known[] = {
		{"bool", {1, true, true}},       {"_Bool", {1, true, true}},
		{"char", {1, false, false}},     {"int8_t", {1, false, false}},
		{"uint8_t", {1, true, false}},   {"int16_t", {2, false, false}},
		{"uint16_t", {2, true, false}},  {"int32_t", {4, false, false}},
		{"uint32_t", {4, true, false}},  {"int64_t", {8, false, false}},
		{"uint64_t", {8, true, false}},  {"size_t", {8, true, false}},
		{"ssize_t", {8, false, false}},  {"intptr_t", {8, false, false}},
		{"uintptr_t", {8, true, false}}, {"ptrdiff_t", {8, false, false}},
		{"wchar_t", {4, false, false}},  {"char16_t", {2, true, false}},
		{"char32_t", {4, true, false}},
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (strcmp(known[i].words, words))
			continue;
		*ret = known[i].is;
		return true;
	}
	return base_type_of_words(words, ret);
}

bool type_is_signed(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = type_resolved(types, id);

	/* An enumeration may say it itself or through its underlying type. */
	if (t->kind == CAIRN_T_ENUM && t->ref && t->encoding == CAIRN_ENC_UNSIGNED)
		t = type_resolved(types, t->ref);
	return (t->kind == CAIRN_T_INT || t->kind == CAIRN_T_ENUM) &&
	       (t->encoding == CAIRN_ENC_SIGNED || t->encoding == CAIRN_ENC_SIGNED_CHAR);
}
