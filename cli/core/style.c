/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "pager.h"
#include "style.h"

/* Often enough to be alive, rarely enough to cost nothing. */
#define PROGRESS_EVERY_NS 100000000
/* The clock is read once in this number of steps. */
#define PROGRESS_STEPS    256

struct style style_for(FILE *out)
{
	static const struct style plain = {"", "", "", ""};
	static const struct style colour = {"\033[1m", "\033[2m", "\033[31m", "\033[0m"};
	const char *no_color = getenv("NO_COLOR");
	const char *term = getenv("TERM");

	if (!pager_is_terminal(out) || (no_color && *no_color) || !term || !strcmp(term, "dumb"))
		return plain;
	return colour;
}

static bool is_time(struct progress *progress)
{
	uint64_t now;

	if (!isatty(STDERR_FILENO))
		return false;
	now = clock_now_ns();
	if (progress->shown_ns && now - progress->shown_ns < PROGRESS_EVERY_NS)
		return false;
	progress->shown_ns = now;
	return true;
}

void progress_at(struct progress *progress, uint64_t done, uint64_t total)
{
	if (!is_time(progress))
		return;
	fprintf(stderr, "\r\033[K%" PRIu64 " of %" PRIu64 " %s", done, total, progress->what);
	fflush(stderr);
}

void progress_step(struct progress *progress)
{
	progress->count++;
	if (progress->count % PROGRESS_STEPS || !is_time(progress))
		return;
	fprintf(stderr, "\r%" PRIu64 " %s", progress->count, progress->what);
	fflush(stderr);
}

void progress_end(struct progress *progress)
{
	if (progress->shown_ns)
		fputs("\r\033[K", stderr);
	progress->shown_ns = 0;
}
