/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Quoting, one function per language
 *
 * A name is split into units: a character of UTF-8, or a byte that belongs to none. A language has
 * one function, which writes one unit. Most units are letters and digits, which no language
 * changes: those never reach it.
 *
 * tests/cli/test_quote.py gives hostile names to each function and lets an interpreter of the
 * language read them back.
 */
#include "base/quote.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

/*
 * A UTF-8 character has up to 4 bytes; \xNN and \NNN of each are the longest that is written for a
 * byte.
 */
enum { UNIT_MAX = 24, NOT_UTF8 = 0x110000 };

struct unit {
	const unsigned char *name; /* all of it */
	const unsigned char *at;
	size_t n;      /* bytes */
	uint32_t code; /* the character; NOT_UTF8: a byte that is part of none */
};

/* Writes the text of one unit; returns its length, or -EILSEQ. */
typedef int (*unit_writer)(const struct unit *u, char to[UNIT_MAX]);

/* ---- units ---- */

static struct unit unit_at(const unsigned char *name, const unsigned char *at)
{
	struct unit u = {.name = name, .at = at, .code = NOT_UTF8};

	/* NUL, which ends the name, is part of no longer character. */
	u.n = utf8_length(at, 4, &u.code);
	if (!u.n) {
		u.n = 1;
		u.code = NOT_UTF8;
	}
	return u;
}

static bool is_safe(const struct unit *u)
{
	return u->code != NOT_UTF8 && utf8_is_safe(u->code);
}

/* ---- the output for units ---- */

static int put_same(const struct unit *u, char *to)
{
	memcpy(to, u->at, u->n);
	return (int)u->n;
}

/* "\" and the character. */
static int put_escaped(const struct unit *u, char *to)
{
	to[0] = '\\';
	return 1 + put_same(u, to + 1);
}

/* printf() and fixed formats only; @format takes a byte. */
#define PUT_BYTES(u, to, format)                                                                   \
	({                                                                                         \
		int put_ = 0;                                                                      \
		for (size_t i_ = 0; i_ < (u)->n; i_++)                                             \
			put_ += snprintf((to) + put_, UNIT_MAX - (size_t)put_, format,             \
					 (u)->at[i_]);                                             \
		put_;                                                                              \
	})

static int put_utf16(uint32_t code, char *to)
{
	if (code < 0x10000)
		return snprintf(to, UNIT_MAX, "\\u%04x", code);
	return snprintf(to, UNIT_MAX, "\\u%04x\\u%04x", 0xd800 + ((code - 0x10000) >> 10),
			0xdc00 + (code & 0x3ff));
}

static int put_text(const char *text, char *to)
{
	return (int)(stpcpy(to, text) - to);
}

/* ---- languages ---- */

/* Go takes a byte order mark at the beginning of a file only. */
enum { BYTE_ORDER_MARK = 0xfeff };

static int text_unit(const struct unit *u, char to[UNIT_MAX])
{
	return is_safe(u) ? put_same(u, to) : PUT_BYTES(u, to, "\\x%02x");
}

/*
 * A backslash at the end of a line would join the next one to it, and so would its trigraph; Java
 * reads \u000a in a comment as the end of the line. Comments of Rust nest.
 */
static int comment_unit(const struct unit *u, char to[UNIT_MAX])
{
	unsigned char before = u->at > u->name ? u->at[-1] : 0;

	if (u->code == '\\' || u->code == BYTE_ORDER_MARK ||
	    (u->code == '/' && (before == '*' || before == '?' || u->at[1] == '*')))
		return PUT_BYTES(u, to, "\\x%02x");
	return text_unit(u, to);
}

static int sh_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '\'')
		return put_text("'\\''", to);
	return is_safe(u) ? put_same(u, to) : -EILSEQ;
}

/* Three octal digits, as hexadecimal ones would continue into the next character. */
static int c_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '"' || u->code == '\\' || u->code == '?')
		return put_escaped(u, to);
	return is_safe(u) ? put_same(u, to) : PUT_BYTES(u, to, "\\%03o");
}

static int python_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '"' || u->code == '\\')
		return put_escaped(u, to);
	if (u->code == NOT_UTF8)
		return snprintf(to, UNIT_MAX, "\\udc%02x", u->at[0]);
	return is_safe(u) ? put_same(u, to) : snprintf(to, UNIT_MAX, "\\u%04x", u->code);
}

static int python_bytes_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '"' || u->code == '\\')
		return put_escaped(u, to);
	return u->code < 0x80 && is_safe(u) ? put_same(u, to) : PUT_BYTES(u, to, "\\x%02x");
}

/* bpftrace (0.17) takes the "%n" of "%%n" for a conversion. */
static int format_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '%')
		return put_text("\\\\x25", to);
	if (u->code == '"' || u->code == '\\')
		return put_escaped(u, to);
	return is_safe(u) ? put_same(u, to) : PUT_BYTES(u, to, "\\\\x%02x");
}

static int bpftrace_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '"')
		return put_escaped(u, to);
	return is_safe(u) && !memchr("\\*[]", (int)u->at[0], 4) ? put_same(u, to) : -EILSEQ;
}

static int html_unit(const struct unit *u, char to[UNIT_MAX])
{
	switch (u->code) {
	case '<':
		return put_text("&lt;", to);
	case '>':
		return put_text("&gt;", to);
	case '&':
		return put_text("&amp;", to);
	case '"':
		return put_text("&quot;", to);
	case '\'':
		return put_text("&#39;", to);
	default:
		return text_unit(u, to);
	}
}

static int json_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == NOT_UTF8)
		return put_text("\xef\xbf\xbd", to);
	if (u->code == '"' || u->code == '\\')
		return put_escaped(u, to);
	return is_safe(u) ? put_same(u, to) : put_utf16(u->code, to);
}

static int word_unit(const struct unit *u, char to[UNIT_MAX])
{
	return u->code == '\\' || u->code == ' ' ? PUT_BYTES(u, to, "\\x%02x") : text_unit(u, to);
}

static int go_unit(const struct unit *u, char to[UNIT_MAX])
{
	if (u->code == '"' || u->code == '\\')
		return put_escaped(u, to);
	return is_safe(u) && u->code != BYTE_ORDER_MARK ? put_same(u, to)
							: PUT_BYTES(u, to, "\\x%02x");
}

/* clang-format off */
static const unit_writer writers[] = {
	[CAIRN_QUOTE_TEXT] = text_unit,
	[CAIRN_QUOTE_COMMENT] = comment_unit,
	[CAIRN_QUOTE_SH] = sh_unit,
	[CAIRN_QUOTE_C] = c_unit,
	[CAIRN_QUOTE_PYTHON] = python_unit,
	[CAIRN_QUOTE_PYTHON_BYTES] = python_bytes_unit,
	[CAIRN_QUOTE_FORMAT] = format_unit,
	[CAIRN_QUOTE_BPFTRACE] = bpftrace_unit,
	[CAIRN_QUOTE_HTML] = html_unit,
	[CAIRN_QUOTE_JSON] = json_unit,
	[CAIRN_QUOTE_WORD] = word_unit,
	[CAIRN_QUOTE_GO] = go_unit,
	[CAIRN_QUOTE_TYPESCRIPT] = json_unit,
};
/* clang-format on */

/* ---- names ---- */

/* ASCII that every language accepts unchanged. */
static bool is_ordinary(unsigned char c)
{
	return c > ' ' && c < 0x7f && !memchr("\"'\\%/*<>&?[]", c, 12);
}

/* Any of 8 bytes is a control character, DEL, or not of ASCII. */
static bool has_unprintable(const unsigned char *at)
{
	const uint64_t each = 0x0101010101010101;
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	/* The upper bit of a byte: it is below 0x20; it is above 0x7e. */
	return (((v - each * 0x20) & ~v) | (v + each) | v) & each * 0x80;
}

/* How many of the @n bytes from @at on are printable ASCII, which a text has as they are. */
static size_t printable_bytes(const unsigned char *at, size_t n)
{
	size_t i = 0;

	while (i + 8 <= n && !has_unprintable(at + i))
		i += 8;
	while (i < n && at[i] >= ' ' && at[i] < 0x7f)
		i++;
	return i;
}

/* How many of the @n bytes from @at on stay as they are. */
static size_t same_bytes(const unsigned char *at, size_t n, enum cairn_quote as)
{
	size_t i = 0;

	if (as == CAIRN_QUOTE_TEXT)
		return printable_bytes(at, n);
	while (i < n && is_ordinary(at[i]))
		i++;
	return i;
}

struct sink {
	FILE *out; /* NULL: the buffer */
	char *buf;
	size_t size, n; /* n: of all, also when it did not fit */
	bool full;
};

/* Most names are short: a call of fwrite() takes longer than their characters. */
static void put_stream(FILE *out, const char *chars, size_t n)
{
	enum { SHORT = 24 };

	if (n > SHORT) {
		fwrite_unlocked(chars, 1, n, out);
		return;
	}
	for (size_t i = 0; i < n; i++)
		putc_unlocked(chars[i], out);
}

static void sink_put(struct sink *s, const char *chars, size_t n)
{
	if (s->out)
		put_stream(s->out, chars, n);
	else if (!s->full && s->size && n < s->size - s->n)
		memcpy(s->buf + s->n, chars, n), s->buf[s->n + n] = 0;
	else
		s->full = true;
	s->n += n;
}

/* Unchanged bytes may be cut anywhere. */
static void sink_put_same(struct sink *s, const unsigned char *at, size_t n)
{
	size_t room = s->out || s->full || !s->size ? n : s->size - 1 - s->n;
	size_t fits = room < n ? room : n;

	sink_put(s, (const char *)at, fits);
	if (fits < n)
		s->full = true, s->n += n - fits;
}

static int put_all(const unsigned char *name, size_t length, enum cairn_quote as, struct sink *s)
{
	for (const unsigned char *at = name, *end = name + length; at < end;) {
		size_t same = same_bytes(at, (size_t)(end - at), as);
		char to[UNIT_MAX];

		if (same) {
			sink_put_same(s, at, same);
			at += same;
			continue;
		}
		struct unit u = unit_at(name, at);
		int n = writers[as](&u, to);

		if (n < 0)
			return n;
		sink_put(s, to, (size_t)n);
		at += u.n;
	}
	return 0;
}

ssize_t cairn_quote(const char *name, enum cairn_quote as, char *buf, size_t size)
{
	struct sink s = {.buf = buf, .size = size};
	size_t length = strlen(name);

	/* Nearly all names stay as they are. */
	if ((length < size || !size) &&
	    same_bytes((const unsigned char *)name, length, as) == length) {
		if (size)
			memcpy(buf, name, length + 1);
		return (ssize_t)length;
	}
	if (size)
		buf[0] = 0;
	int rc = put_all((const unsigned char *)name, length, as, &s);
	if (rc < 0 && size)
		buf[0] = 0;
	return rc < 0 ? rc : (ssize_t)s.n;
}

int cairn_quote_put(const char *name, enum cairn_quote as, FILE *out)
{
	size_t length = strlen(name);

	if (same_bytes((const unsigned char *)name, length, as) == length) {
		put_stream(out, name, length);
		return 0;
	}
	struct sink s = {.out = out};
	ssize_t n = as == CAIRN_QUOTE_SH || as == CAIRN_QUOTE_BPFTRACE
			    ? cairn_quote(name, as, NULL, 0)
			    : 0;

	return n < 0 ? (int)n : put_all((const unsigned char *)name, length, as, &s);
}

char *arena_quote(struct arena *arena, const char *name, enum cairn_quote as)
{
	ssize_t n = cairn_quote(name, as, NULL, 0);
	char *to = n < 0 ? NULL : arena_alloc(arena, (size_t)n + 1);

	if (to)
		cairn_quote(name, as, to, (size_t)n + 1);
	return to;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

char *arena_unquote(struct arena *arena, const char *quoted, size_t n)
{
	char *name = arena_strndup(arena, quoted, n), *to = name;

	for (const char *at = name; at && *at; at++) {
		int high = at[0] == '\\' && at[1] == 'x' ? hex_digit(at[2]) : -1;
		int low = high < 0 ? -1 : hex_digit(at[3]);

		/* A NUL would end the name: none was written. */
		*to++ = low < 0 || !(high | low) ? *at : (char)(high << 4 | low);
		at += low < 0 || !(high | low) ? 0 : 3;
	}
	if (to)
		*to = 0;
	return name;
}
