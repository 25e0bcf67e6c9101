/* SPDX-License-Identifier: BSD-2-Clause */
/* The frames of a stack: one for each function of a location, those inlined into it included. */
#include "export/profile_impl.h"

#include <stdlib.h>

static int visit_location(const struct cairn_profile *p, struct profile_frame *f,
			  profile_frame_fn *visit, void *ctx)
{
	const struct cairn_profile_location *l = cairn_profile_location(p, f->location);
	bool is_last = f->is_innermost;
	int rc = 0;

	f->code = profile_code(p, l);
	f->function = 0;
	f->is_inlined = false;
	if (!l->n_lines)
		return visit(ctx, f);
	for (size_t i = l->n_lines; rc == 0 && i-- > 0;) {
		f->function = l->lines[i].function;
		f->is_inlined = i + 1 < l->n_lines;
		f->is_innermost = is_last && i == 0;
		rc = visit(ctx, f);
	}
	return rc;
}

int profile_walk(const struct cairn_profile *p, const struct cairn_profile_sample *s,
		 profile_frame_fn *visit, void *ctx)
{
	int rc = 0;

	for (size_t i = s->n_stack; rc == 0 && i-- > 0;) {
		struct profile_frame f = {.location = s->stack[i], .is_innermost = i == 0};

		rc = visit_location(p, &f, visit, ctx);
	}
	return rc;
}

int profile_walk_location(const struct cairn_profile *p, uint32_t location, profile_frame_fn *visit,
			  void *ctx)
{
	struct profile_frame f = {.location = location, .is_innermost = true};

	return visit_location(p, &f, visit, ctx);
}

const char *profile_frame_name(const struct cairn_profile *p, const struct profile_frame *f,
			       char **to_free)
{
	*to_free = NULL;
	if (f->function)
		return cairn_profile_function(p, f->function)->name;
	*to_free = profile_unknown_name(p, cairn_profile_location(p, f->location));
	return *to_free;
}
