/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text for people and for other programs: quoted names, numbers with their nouns, near names
 *
 * A name comes from a file that any user may have made. It may hold any byte but NUL: an escape
 * sequence for the terminal, or a newline and a command for a shell. Each value of enum cairn_quote
 * is a position in a text where a name may stand. Code that writes such a text quotes every name,
 * string and path by these functions.
 *
 *	fputs("x = \"", out);
 *	if (cairn_quote_put(path, CAIRN_QUOTE_PYTHON, out) < 0)
 *		return fail(...);
 *	fputs("\"\n", out);
 *
 * No output holds an unsafe character. These are control characters (U+0000 to U+001F, U+007F to
 * U+009F), line and paragraph separators, characters that change the direction of text, and bytes
 * that are not UTF-8.
 */
#ifndef CAIRN_TEXT_H
#define CAIRN_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <cairn/api.h>

CAIRN_BEGIN_DECLS

/* The positions. The caller writes the quotation marks around the name. */
enum cairn_quote {
	/* In a line for people. Each byte of an unsafe character is \xNN; a backslash stays one. */
	CAIRN_QUOTE_TEXT,
	/*
	 * In a comment of sh, gdb, bpftrace, C, Rust, Java, Python, Go or TypeScript, to the end of
	 * its line or up to its end mark. As text, but a backslash is \x5c, a slash beside an
	 * asterisk or after a question mark \x2f; the bytes of a byte order mark are escaped, too.
	 */
	CAIRN_QUOTE_COMMENT,
	/* Between '...' of a shell. An unsafe character cannot be expressed. */
	CAIRN_QUOTE_SH,
	/* Between "..." of C, bytes as they are; no trigraphs. */
	CAIRN_QUOTE_C,
	/*
	 * Between "..." or three quotation marks of Python, a str; a byte that is not UTF-8 as
	 * os.fsdecode() has it.
	 */
	CAIRN_QUOTE_PYTHON,
	/* Between b"..." of Python. */
	CAIRN_QUOTE_PYTHON_BYTES,
	/*
	 * In the format of a printf of gdb or bpftrace, which prints CAIRN_QUOTE_TEXT of the name,
	 * with "%" as \x25.
	 */
	CAIRN_QUOTE_FORMAT,
	/*
	 * Between "..." of a path in a probe of bpftrace. An unsafe character, a backslash and the
	 * pattern characters of bpftrace (* [ ]) cannot be expressed.
	 */
	CAIRN_QUOTE_BPFTRACE,
	/*
	 * In the text of an HTML element, or between "..." of an attribute: CAIRN_QUOTE_TEXT of the
	 * name is shown.
	 */
	CAIRN_QUOTE_HTML,
	/* Between "..." of JSON. A byte that is not UTF-8 becomes U+FFFD. */
	CAIRN_QUOTE_JSON,
	/*
	 * As text, with a backslash as \x5c and a blank as \x20: one word of a line, from which the
	 * name can be recovered.
	 */
	CAIRN_QUOTE_WORD,
	/* Between "..." of Go, bytes as they are. */
	CAIRN_QUOTE_GO,
	/* Between "..." of TypeScript or JavaScript. A byte that is not UTF-8 becomes U+FFFD. */
	CAIRN_QUOTE_TYPESCRIPT,
};

/*
 * cairn_quote - quote a name into memory
 *
 * @name  ends with NUL; any bytes
 * @buf   gets as many whole characters as fit, and NUL; may be NULL when @size is 0
 * Returns the length of all of it without the NUL, as snprintf() does; -EILSEQ when the name cannot
 * be expressed there, with @buf empty. Threads: any.
 */
ssize_t cairn_quote(const char *name, enum cairn_quote as, char *buf, size_t size);

/*
 * cairn_quote_put - quote a name into a stream
 *
 * Returns 0; -EILSEQ when the name cannot be expressed there: nothing was written. ferror() reports
 * errors of the stream.
 */
int cairn_quote_put(const char *name, enum cairn_quote as, FILE *out);

/* "3 files": the text of a number and what it counts. */
struct cairn_counted {
	char text[64];
};

/*
 * cairn_counted - "0 events", "1 event", "2 bodies", "3 processes"
 *
 * @one  the noun for one, at most 40 letters; its plural is a regular one
 * The text lives as long as the result: in cairn_counted(n, "file").text, to the end of the
 * statement. Threads: any. Signals: no.
 */
struct cairn_counted cairn_counted(uint64_t n, const char *one);

/* Longer names are compared by their beginning only. */
enum { CAIRN_NEAR_LENGTH_MAX = 63 };

/*
 * cairn_near_distance - the slips of the finger between two names
 *
 * A slip is a letter that is missing, added, replaced, or swapped with its neighbour (optimal
 * string alignment).
 *
 * @a, @b  @n and @m bytes of them count, at most CAIRN_NEAR_LENGTH_MAX of each
 * Returns the smallest number of slips; 0: what counts is equal.
 * Cost: O(n * m), no allocation. Threads: any. Signals: safe.
 */
unsigned int cairn_near_distance(const char *a, size_t n, const char *b, size_t m);

CAIRN_END_DECLS
#endif
