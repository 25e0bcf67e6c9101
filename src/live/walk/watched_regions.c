/* SPDX-License-Identifier: BSD-2-Clause */
/* Regions of JITs that registered themselves: what their process's registry says of them. */
#include <errno.h>
#include <stddef.h>

#include "base/err.h"
#include "code/memory.h"
#include "code/registry.h"
#include "walk/watched_impl.h"

/* Entries of a registry that are looked at; a large process has a thousand. */
enum { MAX_REGISTERED = 1 << 14 };

static int take_region(struct watched *p, uint32_t *ret, struct cairn_err *err)
{
	if (p->unused_regions.n) {
		*ret = p->unused_regions.p[--p->unused_regions.n];
		return 0;
	}
	if (p->n_regions >= p->regions.blocks.n * WALK_CHUNK_REGIONS &&
	    chunks_grow(&p->regions, err) < 0)
		return -ENOSPC;
	*ret = p->n_regions++;
	return 0;
}

/* A region's rows are its process's own; its frames have the addresses of the process. */
static int add_region(struct watched *p, struct walk_known *k, const struct registry *r,
		      const struct registry_entry *e, struct cairn_err *err)
{
	struct walk_registered new = {e->epoch, e->jit.text_start, e->jit.text_end, 0};
	bool is_extended = e->jit.extended == CODE_JIT_EXTENDED;
	uint32_t number;
	int rc = take_region(p, &number, err);

	if (rc < 0)
		return rc;
	*(struct walk_region *)chunks_at(&p->regions, number) = (struct walk_region){
		.text_start = e->jit.text_start,
		.text_end = e->jit.text_end,
		.epoch = e->epoch,
		.unwind_head = e->jit.unwind_head,
		.n_entries_at = r->lo + offsetof(struct codectl_registry, n_entries),
		.entries = r->head.entries,
		.stride = r->head.entry_stride,
		.entry = e->number,
		.is_extended = is_extended,
		.flags = is_extended ? e->jit.flags : 0,
	};
	new.region = number + 1;
	return VEC_ADD(&k->registered, new) ? 0 : err_nomem(err, "regions of JITs");
}

int known_forget_regions(struct watched *p, struct walk_known *k)
{
	for (size_t i = 0; i < k->registered.n; i++)
		if (!VEC_ADD(&p->freed,
			     ((struct walk_freed){k->registered.p[i].region - 1, 0, p->round})))
			return -ENOMEM;
	k->registered.n = 0;
	return 0;
}

static int add_regions(struct watched *p, struct walk_known *k, const struct registry *r)
{
	struct cairn_err unread = {0};
	int rc = 0;

	for (size_t i = 0; i < r->entries.n && rc == 0; i++) {
		const struct registry_entry *e = &r->entries.p[i];
		if (e->option == CODE_REGISTER_JIT && !e->why &&
		    (e->jit.unwind_head || e->jit.flags & CODE_JIT_FRAME_POINTER))
			rc = add_region(p, k, r, e, &unread);
	}
	/* The process's other code can still be walked. */
	if (rc == -ENOSPC)
		watched_leave_out(p, k);
	return rc == -ENOSPC ? 0 : rc;
}

int known_read_registry(struct watched *p, struct walk_known *k, struct cairn_err *err)
{
	struct registry r = {.memory = code_memory_of_process(k->via),
			     .lo = k->registry_lo,
			     .hi = k->registry_hi};
	struct cairn_err unread = {0};
	int rc = known_forget_regions(p, k);

	if (rc == 0)
		rc = registry_copy(&r, MAX_REGISTERED, &unread);
	if (rc == 0)
		rc = registry_parse(&r, false, &unread);
	if (rc == 0)
		rc = add_regions(p, k, &r);
	k->registry_changes = r.head.changes;
	registry_fini(&r);
	return rc == -ENOMEM ? err_nomem(err, "regions of JITs") : 0;
}

int known_lay_regions(struct walk_known *k)
{
	int rc = 0;

	for (size_t i = 0; i < k->registered.n && rc == 0; i++) {
		const struct walk_registered *r = &k->registered.p[i];
		rc = known_cut_out(k, r->lo, r->hi);
		rc = rc ? rc
			: known_put(k, (struct walk_mapping){
					       .lo = r->lo, .hi = r->hi, .region = r->region});
	}
	return rc;
}
