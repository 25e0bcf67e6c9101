/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comments of a profile, and their lines in folded stacks
 *
 * Folded stacks have no place for a remark. flamegraph.pl, inferno and speedscope leave out each
 * line that does not end with a number, so a comment is a line that begins with "# " and does not:
 * a comment that would gets a " #".
 */
#include <string.h>

#include "base/utf8.h"
#include "export/profile_impl.h"

int cairn_profile_add_comment(struct cairn_profile *p, const char *text, struct cairn_err *err)
{
	const char *own = profile_string(p, text);

	return own && VEC_ADD(&p->comments, own) ? 0 : err_nomem(err, "a profile");
}

size_t cairn_profile_n_comments(const struct cairn_profile *p)
{
	return p->comments.n;
}

const char *cairn_profile_comment(const struct cairn_profile *p, size_t i)
{
	return i < p->comments.n ? p->comments.p[i] : NULL;
}

int profile_copy_comments(struct cairn_profile *to, const struct cairn_profile *from,
			  struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < from->comments.n && rc == 0; i++)
		rc = cairn_profile_add_comment(to, from->comments.p[i], err);
	return rc;
}

/* ---- folded stacks ---- */

#define FOLDED_START "# "
#define FOLDED_END   " #"

/* So that a comment is one line. */
static void put_text(FILE *out, const char *text)
{
	size_t n = strlen(text), len;
	uint32_t c;

	for (size_t at = 0; at < n; at += len ? len : 1) {
		len = utf8_length((const uint8_t *)text + at, n - at, &c);
		if (len && utf8_is_safe(c))
			fwrite(text + at, 1, len, out);
		else
			fputc('?', out);
	}
}

/*
 * Readers take "12", and "12." too, for the number of a stack; some take off blanks first. A
 * text that ends like a mark would lose it.
 */
static bool needs_mark(const char *text)
{
	size_t n = strlen(text);

	return !n || strchr("0123456789. #", text[n - 1]);
}

void profile_fold_comments(const struct cairn_profile *p, FILE *out)
{
	for (size_t i = 0; i < p->comments.n; i++) {
		fputs(FOLDED_START, out);
		put_text(out, p->comments.p[i]);
		fputs(needs_mark(p->comments.p[i]) ? FOLDED_END "\n" : "\n", out);
	}
}

static bool ends_with(const char *text, size_t n, const char *end)
{
	size_t k = strlen(end);

	return n >= k && !memcmp(text + n - k, end, k);
}

/* Without what the writer or an editor has put after it. */
static size_t comment_length(const char *text, size_t n)
{
	if (ends_with(text, n, "\r"))
		n--;
	return ends_with(text, n, FOLDED_END) ? n - strlen(FOLDED_END) : n;
}

int profile_read_folded_comment(struct cairn_profile *p, const char *line, size_t n,
				struct cairn_err *err)
{
	size_t at = n > 1 && line[1] == ' ' ? 2 : 1, size = comment_length(line + at, n - at);
	char *text;
	int rc;

	if (!size)
		return 0;
	text = strndup(line + at, size);
	rc = text ? cairn_profile_add_comment(p, text, err) : err_nomem(err, "the profile");
	free(text);
	return rc;
}
