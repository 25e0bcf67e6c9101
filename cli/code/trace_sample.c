/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Some of the hits
 *
 * Counts and sums are those of the hits that were taken. They are never multiplied: what is shown
 * is what was seen, with 1/N beside it, and the number of the others.
 */
#include "trace_sample.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "cmd.h"
#include "say.h"

int trace_sample_read(const char *text, uint32_t *ret)
{
	char *end = NULL;

	errno = 0;
	unsigned long n = !strncmp(text, "1/", 2) && isdigit((unsigned char)text[2])
				  ? strtoul(text + 2, &end, 10)
				  : 0;
	if (!n || *end || n > CAIRN_TRACE_SAMPLE_MAX)
		return fail(STATUS_USAGE, "--sample %s: write 1/N with N from 1 to %u", text,
			    CAIRN_TRACE_SAMPLE_MAX);
	*ret = (uint32_t)n;
	return STATUS_YES;
}

void trace_sample_summary(const struct cairn_trace_stats *stats)
{
	uint64_t undrawn = stats->total.undrawn;

	if (stats->sample <= 1 && !undrawn)
		return;
	say(stderr, "1/%" PRIu32 " of the hits were taken: %s %s left out\n", stats->sample,
	    cairn_counted(undrawn, "hit").text, undrawn == 1 ? "was" : "were");
}

void trace_sample_put(struct json *j, const struct cairn_trace_stats *stats)
{
	if (stats->sample > 1)
		json_uint(j, "sample", stats->sample);
}
