/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text, quoted and escaped
 *
 * Most of it needs no escape. Eight bytes are copied at a time and tested as one integer. If no
 * byte is below 0x20, or 0x7f and above, or a quote or a backslash, they are done. A byte x is
 * below n when (x - n) borrows: the usual (word - 0x01..*n) & ~word & 0x80.. may also flag bytes
 * after one that is flagged rightly, but it never misses one.
 */
#include "base/utf8.h"
#include "base/wide.h"
#include "decode/out.h"

static char *put_unicode(char *at, unsigned int c)
{
	static const char digits[] = "0123456789abcdef";

	*at++ = '\\';
	*at++ = 'u';
	for (int shift = 12; shift >= 0; shift -= 4)
		*at++ = digits[c >> shift & 15];
	return at;
}

/* One byte of ASCII, or a byte of an unsafe character; at most 6 bytes. */
static char *put_escaped(char *at, uint8_t c, char quote, bool json)
{
	static const char codes[] = "\aa\bb\ff\nn\rr\tt\vv";

	if (c == (uint8_t)quote || c == '\\') {
		*at++ = '\\';
		*at++ = (char)c;
		return at;
	}
	if (c >= 0x20 && c < 0x7f) {
		*at++ = (char)c;
		return at;
	}
	if (json)
		return put_unicode(at, c >= 0x80 ? 0xfffd : c);
	*at++ = '\\';
	for (size_t i = 0; codes[i]; i += 2) {
		if (c == (uint8_t)codes[i]) {
			*at++ = codes[i + 1];
			return at;
		}
	}
	/* Octal, always three digits: "\0331" is unambiguous, "\x1b1" is another character. */
	*at++ = (char)('0' + (c >> 6));
	*at++ = (char)('0' + (c >> 3 & 7));
	*at++ = (char)('0' + (c & 7));
	return at;
}

/* The character at @s, or one byte of an invalid one; returns the number of bytes taken. */
static size_t put_one(char **at, const uint8_t *s, size_t n, char quote, bool json)
{
	uint32_t c;
	size_t len = s[0] >= 0x80 ? utf8_length(s, n, &c) : 0;

	if (len && utf8_is_safe(c)) {
		*at = (char *)memcpy(*at, s, len) + len;
		return len;
	}
	if (len && json) {
		*at = put_unicode(*at, c);
		return len;
	}
	*at = put_escaped(*at, s[0], quote, json);
	return 1;
}

/* Whether eight bytes are as they should be; @quotes has the quote in each byte. */
static bool is_plain(uint64_t w, uint64_t quotes)
{
	static const uint64_t ones = UINT64_C(0x0101010101010101), tops = ones << 7;
	uint64_t quote = w ^ quotes, backslash = w ^ ones * '\\', del = w ^ ones * 0x7f;
	uint64_t odd = (w - ones * 0x20) | (quote - ones) | (backslash - ones) | (del - ones) | w;

	/* A byte with its top bit set is odd by itself; of the others, those that borrow. */
	return !(odd & tops);
}

/*
 * Up to 64 bytes at @s, of which @n can be seen; stops at a NUL when @to_nul. Writes at most 6
 * bytes for each, and 3 more for the rest of a sequence that begins with the last.
 */
enum { BLOCK = 64 };

static size_t put_block(char **at, const uint8_t *s, size_t n, char quote, bool json, bool to_nul,
			bool *ret_nul)
{
	uint64_t quotes = UINT64_C(0x0101010101010101) * (uint8_t)quote;
	size_t i = 0;

	while (i < n && i < BLOCK) {
		uint64_t w;
		if (n - i >= sizeof(w)) {
			memcpy(&w, s + i, sizeof(w));
			memcpy(*at, &w, sizeof(w));
			if (is_plain(w, quotes)) {
				*at += sizeof(w);
				i += sizeof(w);
				continue;
			}
		}
		if (to_nul && !s[i]) {
			*ret_nul = true;
			return i;
		}
		i += put_one(at, s + i, n - i, quote, json);
	}
	return i;
}

/* False when a NUL ended it. */
static bool out_escaped(struct cairn_text_out *out, const uint8_t *s, size_t n, char quote,
			bool json, bool to_nul)
{
	bool nul = false;

	_Static_assert(OUT_ROOM >= 6 * BLOCK + 16, "a block has room");
	while (n && !nul && !out->failed) {
		char *at = out_room(out);
		size_t done = put_block(&at, s, n, quote, json, to_nul, &nul);

		out_end(out, at);
		s += done;
		n -= done;
	}
	return !nul;
}

void out_char(struct cairn_text_out *out, const struct look *look, uint8_t byte, bool is_signed)
{
	char *at = out_room(out), quote = look->json ? '"' : '\'';

	if (look->json && byte >= 0x80) {
		out_int(out, look, byte, 8, is_signed);
		return;
	}
	*at++ = quote;
	if (!look->json && !byte)
		at = (char *)memcpy(at, "\\0", 2) + 2;
	else
		at = put_escaped(at, byte, quote, look->json);
	*at++ = quote;
	out_end(out, at);
}

void out_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s, uint64_t n,
	      const char *tail)
{
	out_put(out, "\"");
	if (!out_escaped(out, s, n, '"', look->json, true))
		tail = NULL;
	if (tail && look->json)
		out_put(out, "...");
	out_put(out, "\"");
	if (tail && !look->json)
		out_put(out, tail);
}

void out_wide_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s,
		   uint64_t n, unsigned int unit, const char *tail)
{
	size_t shown = wide_length(s, n, unit);
	bool has_end = n - shown >= unit;

	out_put(out, "\"");
	for (size_t i = 0; i < shown && !out->failed;) {
		struct wide_char c;
		char escape[16];
		i += wide_take(s + i, shown - i, unit, look->big_endian, &c);
		if (c.n_utf8)
			out_escaped(out, c.utf8, c.n_utf8, '"', look->json, false);
		else
			out_put(out, wide_escape(c.number, look->json, escape));
	}
	if (tail && !has_end && look->json)
		out_put(out, "...");
	out_put(out, "\"");
	if (tail && !has_end && !look->json)
		out_put(out, tail);
}

void out_all_text(struct cairn_text_out *out, const struct look *look, const uint8_t *s, uint64_t n,
		  bool more)
{
	out_put(out, "\"");
	out_escaped(out, s, n, '"', look->json, false);
	out_put(out, more && look->json ? "...\"" : "\"");
	if (more && !look->json)
		out_put(out, "...");
}

void out_name(struct cairn_text_out *out, bool json, const char *name)
{
	/* Text has no quotes around names; a NUL as the quote escapes none. */
	out_escaped(out, (const uint8_t *)name, strlen(name), json ? '"' : 0, json, false);
}
