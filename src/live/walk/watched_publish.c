/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Segments of processes, in pieces of powers of two. Those that a process leaves are used again
 * after some rounds: a walk that began before may be in them.
 */
#include <errno.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "walk/watched_impl.h"

enum { SMALLEST_CLASS = 3 /* 8 segments */ };

static struct walk_segment segment_of(const struct watched *p, const struct walk_mapping *m)
{
	const struct walk_file *file = m->at ? p->files->list.p[m->file] : NULL;
	bool is_ready = file && file->pages.n;

	if (m->region)
		return (struct walk_segment){.lo = m->lo,
					     .hi = m->hi,
					     .first_page = WALK_IN_REGION,
					     .n_pages = m->region - 1};

	if (m->made)
		return (struct walk_segment){.lo = m->lo,
					     .hi = m->hi,
					     .at = m->lo & ((1 << WALK_PAGE_SHIFT) - 1),
					     .first_page = m->made - 1,
					     .n_pages = 1};

	/* Without a table there is nothing to wait for: the frame pointer is tried. */
	return (struct walk_segment){
		.lo = m->lo,
		.hi = m->hi,
		.at = m->at,
		.n_pages = is_ready ? file->pages.n : 0,
		.first_page =
			is_ready || (file && file->is_made) ? file->pages.first : WALK_NO_PAGES,
	};
}

static uint32_t class_for(size_t n)
{
	uint32_t class = SMALLEST_CLASS;

	while ((size_t)1 << class < n)
		class ++;
	return class;
}

/* False: there is no room, in the kernel or in what the program can search. */
static bool take_segments(struct watched *p, uint32_t class, uint32_t *ret)
{
	struct cairn_err full = {0};

	if (class >= WALK_SIZE_CLASSES)
		return false;
	if (p->unused[class].n) {
		*ret = p->unused[class].p[--p->unused[class].n];
		return true;
	}
	while (p->next_segment + ((size_t)1 << class) > p->segments.blocks.n * WALK_CHUNK_SEGMENTS)
		if (chunks_grow(&p->segments, &full) < 0)
			return false;
	*ret = p->next_segment;
	p->next_segment += 1u << class;
	return true;
}

int known_forget_segments(struct watched *p, struct walk_known *k)
{
	struct walk_freed f = {k->first, k->size_class, p->round};
	bool kept = !k->size_class || VEC_ADD(&p->freed, f);

	k->size_class = 0;
	return kept ? 0 : -ENOMEM;
}

static bool tell_kernel(const struct watched *p, const struct walk_known *k, uint32_t n)
{
	uint32_t key = (uint32_t)k->pid;
	struct walk_process entry = {
		.first = k->first,
		.n = n,
		.generation = k->generation,
		.flags = (k->is_target ? WALK_IS_TARGET : 0u) |
			 (k->is_command ? WALK_IS_COMMAND : 0u) |
			 (k->has_mappings && k->size_class ? WALK_HAS_MAPPINGS : 0u),
	};

	return bpf_map_update_elem(p->map_fd, &key, &entry, BPF_ANY) == 0;
}

/* The stacks of a process that has no room are taken, and say that nothing is known of it. */
static int publish(struct watched *p, struct walk_known *k)
{
	uint32_t class = class_for(k->mappings.n), first = 0;
	bool fits = take_segments(p, class, &first);

	for (size_t i = 0; i < k->mappings.n && fits; i++)
		*(struct walk_segment *)chunks_at(&p->segments, first + i) =
			segment_of(p, &k->mappings.p[i]);
	int rc = known_forget_segments(p, k);
	if (rc < 0)
		return rc;
	k->first = first;
	k->size_class = fits ? class : 0;
	k->generation = ++p->generation;
	if (!tell_kernel(p, k, fits ? (uint32_t)k->mappings.n : 0) || !fits)
		watched_leave_out(p, k);
	return 0;
}

/* Segments that were free for long enough can be used again. */
static int reuse_freed(struct watched *p)
{
	size_t to = 0;

	for (size_t i = 0; i < p->freed.n; i++) {
		struct walk_freed f = p->freed.p[i];
		if (p->round - f.round < WATCHED_ROUNDS_KEPT)
			p->freed.p[to++] = f;
		else if (f.size_class == FREED_PAGE)
			tables_drop_page(p->tables, f.first);
		else if (f.size_class ? !VEC_ADD(&p->unused[f.size_class], f.first)
				      : !VEC_ADD(&p->unused_regions, f.first))
			return -ENOMEM;
	}
	p->freed.n = to;
	return 0;
}

int watched_publish(struct watched *p, struct cairn_err *err)
{
	size_t n_again = 0;
	int rc = 0;

	p->round++;
	past_forget(p);
	dated_forget(p);
	if (reuse_freed(p) < 0)
		return err_nomem(err, "segments");
	for (size_t i = 0; i < p->changed.n && rc == 0; i++) {
		size_t number = p->changed.p[i];
		struct walk_known *k = &p->list.p[number];
		k->is_changed = k->is_young && !k->has_ended;
		k->is_young = false;
		if (k->is_changed)
			p->changed.p[n_again++] = number;
		if (!k->has_ended)
			rc = publish(p, k);
	}
	p->changed.n = n_again;
	return rc < 0 ? err_nomem(err, "segments") : 0;
}

void watched_file_ready(struct watched *p, uint32_t number, const struct walk_file *file)
{
	for (size_t i = 0; i < p->list.n; i++) {
		const struct walk_known *k = &p->list.p[i];

		for (size_t m = 0; m < k->mappings.n && k->size_class && !k->is_changed; m++) {
			if (k->mappings.p[m].file != number || !k->mappings.p[m].at)
				continue;
			struct walk_segment *s = chunks_at(&p->segments, k->first + m);
			s->n_pages = file->pages.n;
			__atomic_store_n(&s->first_page, file->pages.first, __ATOMIC_RELEASE);
		}
	}
}
