/* SPDX-License-Identifier: BSD-2-Clause */
#include "sites/spelling.h"

#include <ctype.h>
#include <string.h>

/* Templates of templates; ranges and iterators of libstdc++ have some 20. */
enum { DEPTH_MAX = 64 };

struct speller {
	const char *at;
	char *buf;
	size_t size, n;
	unsigned int depth;
	bool failed;
};

/*
 * The components of an argument, in the order of output: qualifiers, words of an integer type,
 * anything.
 */
struct argument {
	bool is_const, is_volatile;
	bool is_unsigned, is_signed, has_int, has_char;
	unsigned int n_long, n_short;
	size_t from;       /* in the output, of a component that is neither */
	bool has_pointer;  /* qualifiers are the pointer's from here on */
	bool ends_in_word; /* a blank is needed before the next word */
};

static void put(struct speller *s, const char *text, size_t n)
{
	if (n >= s->size - s->n) {
		s->failed = true;
		return;
	}
	memcpy(s->buf + s->n, text, n);
	s->n += n;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$' || c == ':' || c == '~';
}

static bool is(const char *word, size_t n, const char *what)
{
	return strlen(what) == n && !memcmp(word, what, n);
}

/* Words of integer types, and qualifiers that are not a pointer's, are noted. Any other is put. */
static bool note_word(struct argument *a, const char *word, size_t n)
{
	bool may_be_type = !a->has_pointer;
	if (is(word, n, "const") && may_be_type)
		return a->is_const = true;
	if (is(word, n, "volatile") && may_be_type)
		return a->is_volatile = true;
	if (is(word, n, "unsigned"))
		return a->is_unsigned = true;
	if (is(word, n, "signed"))
		return a->is_signed = true;
	if (is(word, n, "int"))
		return a->has_int = true;
	if (is(word, n, "char"))
		return a->has_char = true;
	if (is(word, n, "long"))
		return ++a->n_long;
	if (is(word, n, "short"))
		return ++a->n_short;
	return false;
}

static void put_word(struct speller *s, struct argument *a, const char *word, size_t n)
{
	if (isdigit((unsigned char)*word))
		while (n > 1 && strchr("uUlL", word[n - 1]))
			n--;
	if (a->ends_in_word)
		put(s, " ", 1);
	put(s, word, n);
	a->ends_in_word = true;
}

/*
 * The first words, as C would have them at their shortest: "unsigned long", "int", "const char".
 */
static size_t words_of(const struct argument *a, char *buf)
{
	bool is_plain = a->has_int && !a->n_long && !a->n_short;
	*buf = '\0';
	strcat(buf, a->is_const ? "const " : "");
	strcat(buf, a->is_volatile ? "volatile " : "");
	strcat(buf, a->is_unsigned ? "unsigned " : a->is_signed && a->has_char ? "signed " : "");
	strcat(buf, a->n_long > 1 ? "long long " : a->n_long ? "long " : "");
	strcat(buf, a->n_short ? "short " : "");
	strcat(buf, a->has_char ? "char " : "");
	strcat(buf, is_plain || ((a->is_unsigned || a->is_signed) && !a->has_char && !a->n_long &&
				 !a->n_short)
			    ? "int "
			    : "");
	return strlen(buf);
}

/*
 * Inserts the words before the argument's existing output; without the last blank if none of it is
 * a word.
 */
static void put_words(struct speller *s, const struct argument *a)
{
	char words[80];
	size_t n = words_of(a, words), after = s->n - a->from;
	if (n && (!after || !is_word(s->buf[a->from])))
		n--;
	if (s->failed || n >= s->size - s->n) {
		s->failed = true;
		return;
	}
	memmove(s->buf + a->from + n, s->buf + a->from, after);
	memcpy(s->buf + a->from, words, n);
	s->n += n;
}

static void put_list(struct speller *s, char end);

/* {lambda(int)#1} is <lambda(int)>, whichever it is. */
static void put_other(struct speller *s, struct argument *a)
{
	char c = *s->at++;
	a->ends_in_word = false;
	a->has_pointer |= c == '*' || c == '&';
	if (c == '#') {
		s->at += strspn(s->at, "0123456789");
		return;
	}
	put(s, c == '{' ? "<" : &c, 1);
	if (c == '<' || c == '(' || c == '{')
		put_list(s, c == '<' ? '>' : c == '(' ? ')' : '}');
}

/* Up to the comma or the end of the list. */
static void put_argument(struct speller *s, char end)
{
	struct argument a = {.from = s->n};
	while (*s->at && *s->at != ',' && *s->at != end && !s->failed) {
		const char *word = s->at;
		if (*s->at == ' ') {
			s->at++;
			continue;
		}
		while (is_word(*s->at))
			s->at++;
		size_t n = (size_t)(s->at - word);
		if (!n)
			put_other(s, &a);
		else if (!note_word(&a, word, n))
			put_word(s, &a, word, n);
	}
	put_words(s, &a);
}

/* The part after its beginning, up to and with its end. */
static void put_list(struct speller *s, char end)
{
	if (++s->depth > DEPTH_MAX)
		s->failed = true;
	while (*s->at && !s->failed) {
		put_argument(s, end);
		char c = *s->at;
		if (c)
			put(s, c == '}' ? ">" : s->at, 1);
		s->at += c != '\0';
		if (c == end)
			break;
	}
	s->depth--;
}

bool spelling_of(const char *name, char *buf, size_t size)
{
	struct speller s = {.at = name, .buf = buf, .size = size};
	while (*s.at && !s.failed) {
		bool is_operator = s.at - name >= 8 && !memcmp(s.at - 8, "operator", 8);
		char c = *s.at++;
		put(&s, &c, 1);
		/* operator<, operator<<, operator<=: no argument follows at once. */
		while (is_operator && *s.at && strchr("<=>", *s.at))
			put(&s, s.at++, 1);
		if (c == '<' && !is_operator)
			put_list(&s, '>');
	}
	if (!s.failed)
		buf[s.n] = '\0';
	return !s.failed;
}
