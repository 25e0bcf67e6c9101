/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames at sites of probes
 *
 * A hit is a call of the probed function, so that is where its stack ends. At its first instruction
 * there may be copies of other functions, which it calls: they are not of the stack. And the
 * address may have been given to other code than the copy's; then the copy's own chain of calls
 * says what is around it.
 */
#include <string.h>

#include "trace/stacks/site_frames.h"
#include "trace/trace.h"

static bool is_same(const char *a, const char *b)
{
	return a && b && !strcmp(a, b);
}

/* Whether @name is the last part of the qualified @whole. */
static bool is_last_part(const char *whole, const char *name)
{
	size_t n = strlen(whole), k = strlen(name);

	return n >= k && !strcmp(whole + n - k, name) &&
	       (n == k || whole[n - k - 1] == ':' || whole[n - k - 1] == '.');
}

static bool is_probed(const struct cairn_frame *frame, const struct cairn_function *f)
{
	return is_same(frame->function, f->linkage_name) || is_same(frame->function, f->name) ||
	       (frame->name && is_last_part(f->name, frame->name));
}

/* From the description of the copy alone. */
static size_t chain_frames(const struct cairn_function *f, const struct cairn_site *site,
			   struct cairn_frame *frames)
{
	size_t n = 1;

	frames[0] = (struct cairn_frame){.function = f->linkage_name,
					 .name = f->name,
					 .file = f->decl_file,
					 .line = f->decl_line};
	for (uint32_t i = 0; i < site->n_chain && n < CAIRN_FRAMES_MAX; i++) {
		const struct cairn_inlined_call *call = &site->chain[i];
		bool is_last = i + 1 == site->n_chain;

		frames[n++] = (struct cairn_frame){.function = is_last ? site->symbol : NULL,
						   .name = is_last ? site->container
								   : site->chain[i + 1].function,
						   .file = call->call_file,
						   .line = call->call_line};
	}
	return n;
}

size_t site_frames(const struct cairn_function *f, const struct cairn_site *site,
		   struct cairn_frame *frames, size_t n)
{
	size_t around = (size_t)site->n_chain + 1;

	if (n < around || !is_probed(&frames[n - around], f))
		return chain_frames(f, site, frames);
	memmove(frames, frames + (n - around), around * sizeof(*frames));
	return around;
}

size_t cairn_site_frames(const struct cairn_function *function, const struct cairn_site *site,
			 struct cairn_frame *frames, size_t n)
{
	/* A line or an offset is of what is there, and no call. */
	return site->kind == CAIRN_SITE_PLACE ? n : site_frames(function, site, frames, n);
}
