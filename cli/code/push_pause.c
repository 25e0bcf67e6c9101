/* SPDX-License-Identifier: BSD-2-Clause */
#include "push_pause.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A server that asks for more is tried every day. */
enum { PAUSE_MAX = 86400 };
/* Some thirty addresses of the greatest length. Others are tried too early. */
enum { PAUSES_SIZE = 1 << 16 };

/* To be freed; "" if there is none, NULL: out of memory. */
static char *read_pauses(const struct spool *s)
{
	int fd = openat(s->dir, SPOOL_PAUSES, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char *text = malloc(PAUSES_SIZE);
	ssize_t n = fd >= 0 && text ? read(fd, text, PAUSES_SIZE - 1) : 0;

	if (fd >= 0)
		close(fd);
	if (text)
		text[n > 0 ? n : 0] = 0;
	return text;
}

/* Seconds that are left by a line, whose address is *@url; 0: over, or not such a line. */
static int64_t left_by(const char *line, int64_t now, const char **url)
{
	char *end;
	int64_t until = strtoll(line, &end, 10);

	*url = *end == ' ' ? end + 1 : "";
	/* The clock was set back, or it is somebody else's line. */
	if (until <= now || until - now > PAUSE_MAX)
		return 0;
	return until - now;
}

int64_t pause_left(const struct spool *s, const char *url)
{
	char *text = read_pauses(s), *rest = NULL;
	int64_t now = time(NULL), left = 0;
	const char *found;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line && !left;
	     line = strtok_r(NULL, "\n", &rest)) {
		int64_t seconds = left_by(line, now, &found);

		if (!strcmp(found, url))
			left = seconds;
	}
	free(text);
	return left;
}

/* Those of others that are not over. */
static void keep_others(FILE *out, char *text, const char *url, int64_t now)
{
	const char *found;
	char *rest = NULL;

	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		if (left_by(line, now, &found) && strcmp(found, url) != 0 &&
		    ftell(out) + (long)strlen(line) + 1 < PAUSES_SIZE)
			fprintf(out, "%s\n", line);
}

int pause_set(struct spool *s, const char *url, int64_t seconds, struct cairn_err *err)
{
	int64_t now = time(NULL);
	char *before = read_pauses(s), *text = NULL;
	size_t size = 0;
	FILE *out = before ? open_memstream(&text, &size) : NULL;
	int r = -ENOMEM;

	if (out) {
		fprintf(out, "%" PRId64 " %s\n", now + (seconds < PAUSE_MAX ? seconds : PAUSE_MAX),
			url);
		keep_others(out, before, url, now);
		r = fclose(out) == 0 ? spool_write(s, SPOOL_PAUSES, text, size, err) : -ENOMEM;
	}
	free(text);
	free(before);
	return r;
}
