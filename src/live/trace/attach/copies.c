/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/attach/copies.h"

#include <errno.h>

#include "sites/copy_exits.h"
#include "trace/attach/returns.h"

/* As copies.bpf.h takes it from a cookie. */
static uint32_t frame_bits(struct copy_frame f)
{
	return (uint32_t)f.reg << 28 | ((uint32_t)f.off & 0xfffffff);
}

void copies_forget_file(struct trace_file *f)
{
	copy_ends_free(f->ends);
	f->ends = NULL;
	f->knows_ends = false;
}

static int own_ends(struct trace_file *f)
{
	if (f->knows_ends || !f->sites)
		return 0;
	f->knows_ends = true;
	return copy_ends_new(f->sites, &f->ends);
}

static const char *no_end(struct cairn_trace *t, const char *why)
{
	return arena_printf(&t->arena, "where the inlined copy ends is not known: %s", why);
}

/* Where a probe on an instruction is set: in the file, or in the kernel that runs. */
static bool place_of(const struct trace_file *f, struct cairn_vaddr at, uint64_t *ret)
{
	struct cairn_foff off;

	if (f->kernel)
		return cairn_kernel_address(f->kernel, at, ret);
	if (!cairn_binary_foff(f->bin, at, &off))
		return false;
	*ret = off.v;
	return true;
}

/* False: an address that is not in the file, or no memory. */
static bool take_exits(struct cairn_trace *t, const struct trace_probe *p,
		       const struct copy_exits *from, struct trace_copy *copy, uint64_t *offsets)
{
	uint32_t *frames = arena_array(&t->arena, from->n, sizeof(*frames));

	for (uint32_t i = 0; frames && i < from->n; i++) {
		if (!place_of(p->file, from->p[i].at, &offsets[i]))
			return false;
		frames[i] = frame_bits(from->p[i].frame);
	}
	copy->exit_frames = frames;
	copy->entry_frame = frame_bits(from->entry);
	copy->has_reset = from->is_shared;
	if (!from->is_shared)
		return frames;
	return place_of(p->file, from->container, &copy->reset) && frames;
}

const char copies_no_result[] = "an inlined copy leaves its result where no convention says";

static int follow(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		  const struct copy_exits *from, struct cairn_err *err)
{
	static const struct cairn_location no_result = {.why = CAIRN_UNAVAIL_NO_END};
	struct trace_copy *copy = arena_alloc(&t->arena, sizeof(*copy));
	uint64_t *offsets = arena_array(&t->arena, from->n, sizeof(*offsets));

	if (!copy || !offsets)
		return err_nomem(err, "a site");
	if (!take_exits(t, p, from, copy, offsets)) {
		site->no_end = no_end(t, "an exit of it is not in the file");
		return site->no_end ? 0 : err_nomem(err, "a site");
	}
	site->copy = copy;
	site->n_exits = from->n;
	site->exits = offsets;
	site->follows = true;
	site->result = &no_result;
	site->no_end = copies_no_result;
	return 0;
}

static int find_exits(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		      struct copy_exits *ret, const char **ret_why)
{
	struct trace_file *f = p->file;
	int r = own_ends(f);

	if (r < 0)
		return r;
	if (f->ends)
		return copy_ends_find(f->ends, p->pub.function, site->pub.site, &t->arena, ret,
				      ret_why);
	f->wants_debug_info = true;
	*ret_why = "only the debug information says which code is the copy's";
	return 0;
}

int copies_plan_site(struct cairn_trace *t, const struct trace_probe *p, struct trace_site *site,
		     struct cairn_err *err)
{
	struct copy_exits exits;
	const char *why = NULL;

	if (!p->returns->has_duration || t->opts.shows_calls || site->pub.refused ||
	    site->pub.site->kind != CAIRN_SITE_INLINED)
		return 0;
	if (find_exits(t, p, site, &exits, &why) < 0)
		return err_nomem(err, "the exits of a copy");
	if (!why)
		return follow(t, p, site, &exits, err);
	site->no_end = no_end(t, why);
	return site->no_end ? 0 : err_nomem(err, "a site");
}
