/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks: the sites of frames
 *
 * A site's frame already gives its function, the functions it was inlined into, and the calls. The
 * rest is a mark: the address, the DIE, the locations of the arguments, and the attrs (the rule
 * that found the address, whether it is in the file, hazards, caveats). A kernel has some 300
 * different attrs. Marks are in the order of frames, in which addresses and DIEs rise, so that one
 * mark takes some 5 bytes:
 *
 *	frame 17  entry             attrs 2  at + 0x1f0  die + 0x5a1  arguments 31
 *	frame 18  copy              attrs 0  at + 0x04   die + 0x3c   arguments 7
 *	frame 19  copy in a copy    attrs 0  at + 0x00   die + 0x19   arguments 0
 *
 * The distance from the entry of the container is that of two marks; where it is not, it is
 * written.
 *
 * A site is in full in its function's record when it has no frame that says the same, or the frame
 * has a mark already: code that was duplicated has one DIE and several sites.
 */
#include <errno.h>

#include "base/search.h"
#include "sidecar/bits_out.h"
#include "sidecar/format.h"
#include "sidecar/site_table.h"
#include "sites/provider.h"

/* ---- which frame ---- */

/* The unit that has frame @number. */
static size_t unit_of(const struct joined *j, uint32_t number)
{
	size_t lo = SEARCH(1, j->n_units, mid, j->numbers[mid].first_frame <= number) - 1;
	return lo;
}

uint32_t function_of(const struct joined *j, uint32_t frame)
{
	size_t unit = unit_of(j, frame);
	uint32_t function = j->units[unit].frames.p[frame - j->numbers[unit].first_frame].function;
	return function == NO_FUNCTION ? 0 : j->numbers[unit].function[function];
}

static const char *name_of(const struct unit_facts *f, const struct unit_frame *frame)
{
	return frame->function == NO_FUNCTION ? NULL : f->functions.p[frame->function].name;
}

/* The frames from @frame of @f outwards say the same as the site. */
static bool frame_says(const struct unit_facts *f, const struct unit_frame *frame,
		       const struct cairn_site *s)
{
	for (uint32_t i = 0; i < s->n_chain; i++) {
		const struct cairn_inlined_call *call = &s->chain[i];
		if (frame->parent == NO_FRAME || !same_string(name_of(f, frame), call->function) ||
		    !same_string(f->files.p[frame->call_file], call->call_file) ||
		    frame->call_line != call->call_line || frame->call_column != call->call_column)
			return false;
		frame = &f->frames.p[frame->parent];
	}
	return frame->parent == NO_FRAME && same_string(name_of(f, frame), s->container);
}

uint32_t frame_of_site(const struct site_table *p, const struct cairn_site *s)
{
	uint64_t found;
	if (!map_get(&p->frame_of_die, s->die, &found))
		return NO_FRAME;
	uint32_t unit = (uint32_t)(found >> 32), i = (uint32_t)found;
	const struct unit_facts *f = &p->joined->units[unit];
	return frame_says(f, &f->frames.p[i], s) ? p->joined->numbers[unit].first_frame + i
						 : NO_FRAME;
}

/* ---- gathering ---- */

void put_site_attrs(const struct cairn_site *s, struct bytes *b)
{
	bool doubts = s->count_caveats || s->n_bypasses;
	put_u8(b, (uint8_t)((s->has_off ? SITE_HAS_OFF : 0) | (s->hazard ? SITE_HAZARD : 0) |
			    (doubts ? SITE_DOUBTS : 0)));
	put_u8(b, (uint8_t)(s->kind | s->rule << 2));
	if (s->has_off)
		put_sleb(b, (int64_t)(s->off.v - s->at.v));
	if (s->hazard)
		put_uleb(b, s->hazard);
	if (doubts) {
		put_uleb(b, s->count_caveats);
		put_uleb(b, s->n_bypasses);
	}
}

int mark_site(struct site_table *p, const struct cairn_function *f, const struct cairn_site *s,
	      uint32_t *ret)
{
	struct mark mark = {
		.at = s->at.v, .die = s->die, .container_off = s->container_off, .is_set = true};
	uint32_t frame = frame_of_site(p, s);
	bool plain;
	*ret = NO_FRAME;
	if (frame == NO_FRAME || p->marks[frame].is_set)
		return 0;
	int rc = args_are_params(p, f, s, &plain);
	if (rc < 0 || !plain)
		return rc;
	put_site_attrs(s, &p->site_attrs.records.record);
	rc = ranked_set_add(&p->site_attrs, &mark.attrs);
	if (rc >= 0)
		rc = add_arguments(p, s, &mark.arguments);
	if (rc < 0)
		return rc;
	p->marks[frame] = mark;
	*ret = frame;
	return 0;
}

/* ---- writing ---- */

/* The mark before in the block. */
struct before {
	uint64_t at, die;
};

static void put_mark(const struct site_table *p, const struct mark *m, const struct mark *container,
		     struct before *before, struct bytes *b)
{
	if (!m->is_set) {
		put_uleb(b, 0);
		return;
	}
	bool own = !container->is_set || m->container_off != (int64_t)(m->at - container->at);
	put_uleb(b, ((uint64_t)p->site_attrs.ranking.rank.p[m->attrs] + 1) << 1 | own);
	put_sleb(b, (int64_t)(m->at - before->at));
	put_sleb(b, (int64_t)(m->die - before->die));
	put_uleb(b, p->arguments.ranking.rank.p[m->arguments]);
	if (own)
		put_sleb(b, m->container_off);
	*before = (struct before){m->at, m->die};
}

void encode_marks(const struct site_table *p, struct bytes *ret)
{
	const struct joined *j = p->joined;
	struct bytes data = {0};
	struct before before = {0};
	VEC(uint32_t) starts = {0};
	VEC(uint32_t) roots = {0}; /* of the unit's frames */
	uint32_t number = 0;
	/* Not all when there was no memory for them. */
	if (p->site_attrs.ranking.rank.n < p->site_attrs.ranking.uses.n ||
	    p->arguments.ranking.rank.n < p->arguments.ranking.uses.n) {
		ret->failed = true;
		return;
	}
	for (size_t u = 0; u < j->n_units; u++, roots.n = 0)
		for (uint32_t i = 0; i < j->units[u].frames.n; i++, number++) {
			uint32_t parent = j->units[u].frames.p[i].parent;
			uint32_t root =
				parent == NO_FRAME || parent >= roots.n ? number : roots.p[parent];
			ret->failed |= !VEC_ADD(&roots, root);
			if (number % SIDECAR_MARKS_PER_BLOCK == 0) {
				before = (struct before){.at = p->span.base};
				ret->failed |= !VEC_ADD(&starts, (uint32_t)data.v.n);
			}
			put_mark(p, &p->marks[number], &p->marks[root], &before, &data);
		}
	ret->failed |= data.v.n > UINT32_MAX;
	if (!ret->failed)
		put_records(&data, starts.p, starts.n, NULL, ret);
	VEC_FREE(&starts);
	VEC_FREE(&roots);
	VEC_FREE(&data.v);
}
