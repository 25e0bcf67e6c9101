/* SPDX-License-Identifier: BSD-2-Clause */
/* Notes about code that was left out, or that is not trusted. */
#include "code/runtime_impl.h"

void runtime_note(struct code_runtime *rt, const char *text)
{
	const char *copy = rt->n_notes < RUNTIME_MAX_NOTES ? arena_strdup(&rt->arena, text) : NULL;
	if (copy)
		rt->notes[rt->n_notes++] = copy;
}

void runtime_distrust(struct region *r, const char *why)
{
	if (r->range.is_trusted)
		r->range.why = why;
	r->range.is_trusted = false;
}
