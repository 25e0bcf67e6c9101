/* SPDX-License-Identifier: BSD-2-Clause */
#include "prof/sampled.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "base/search.h"
#include "code/memory.h"
#include "code/registry.h"

enum {
	SMALLEST_CLASS = 3, /* 8 segments */
	/* A child's fork is reported before the second round after it. */
	ROUNDS_KEPT = 3,
	/* Entries of a registry that are looked at; a large process has a thousand. */
	MAX_REGISTERED = 1 << 14,
};
#define LOOK_EVERY_NS UINT64_C(100000000)

void sampled_init(struct sampled *p, struct prof_files *files, int segments_fd, int regions_fd,
		  int map_fd, bool all)
{
	*p = (struct sampled){.files = files, .map_fd = map_fd, .all = all};
	chunks_init(&p->segments, "segments", segments_fd, sizeof(struct prof_segment),
		    PROF_CHUNK_SEGMENTS);
	chunks_init(&p->regions, "regions", regions_fd, sizeof(struct prof_region),
		    PROF_CHUNK_REGIONS);
}

void sampled_fini(struct sampled *p)
{
	for (size_t i = 0; i < p->list.n; i++) {
		VEC_FREE(&p->list.p[i].mappings);
		VEC_FREE(&p->list.p[i].registered);
	}
	VEC_FREE(&p->unused_regions);
	chunks_fini(&p->regions);
	for (size_t i = 0; i < PROF_SIZE_CLASSES; i++)
		VEC_FREE(&p->unused[i]);
	VEC_FREE(&p->list);
	VEC_FREE(&p->freed);
	VEC_FREE(&p->stale);
	VEC_FREE(&p->changed);
	map_fini(&p->ids);
	chunks_fini(&p->segments);
}

/* NULL: it is not followed. */
static struct prof_known *find(const struct sampled *p, int pid)
{
	uint64_t i;

	return map_get(&p->ids, (uint64_t)pid, &i) && i ? &p->list.p[i - 1] : NULL;
}

static int mark(struct sampled *p, struct prof_known *k)
{
	if (k->is_changed)
		return 0;
	k->is_changed = true;
	return VEC_ADD(&p->changed, (size_t)(k - p->list.p)) ? 0 : -ENOMEM;
}

static struct prof_known *add(struct sampled *p, int pid)
{
	struct prof_known *k = find(p, pid);

	if (k)
		return k;
	k = VEC_PUSH(&p->list);
	if (!k)
		return NULL;
	k->pid = pid;
	k->is_target = true;
	if (map_put(&p->ids, (uint64_t)pid, p->list.n) == 0)
		return k;
	p->list.n--;
	return NULL;
}

/* ---- what was there before ---- */

static int note_stale(struct sampled *p, const struct prof_known *k, uint64_t time_ns, uint64_t at,
		      uint64_t size)
{
	struct prof_stale stale = {k->pid, k->generation, time_ns, p->round, at, size};

	return k->generation && !VEC_ADD(&p->stale, stale) ? -ENOMEM : 0;
}

/* Those of @k that a mapping at [lo, hi) replaces. */
static int note_replaced(struct sampled *p, const struct prof_known *k, uint64_t time_ns,
			 uint64_t lo, uint64_t hi)
{
	int rc = 0;

	for (size_t i = 0; i < k->mappings.n && rc == 0; i++) {
		const struct prof_mapping *m = &k->mappings.p[i];
		uint64_t from = m->lo > lo ? m->lo : lo, to = m->hi < hi ? m->hi : hi;
		if (m->at && from < to)
			rc = note_stale(p, k, time_ns, m->at + (from - m->lo), to - from);
	}
	return rc;
}

static void forget_stale(struct sampled *p)
{
	size_t to = 0;

	for (size_t i = 0; i < p->stale.n; i++)
		if (p->round - p->stale.p[i].round < ROUNDS_KEPT)
			p->stale.p[to++] = p->stale.p[i];
	p->stale.n = to;
}

static bool is_stale(const struct prof_stale *t, uint64_t frame)
{
	frame &= ~PROF_ASSUMED;
	return !(frame & PROF_KERNEL) &&
	       (!t->size || (!(frame & PROF_RAW) && frame - t->at < t->size));
}

size_t sampled_sound(const struct sampled *p, const struct prof_sample *s, const uint64_t *frames,
		     size_t n)
{
	for (size_t i = 0; i < p->stale.n; i++) {
		const struct prof_stale *t = &p->stale.p[i];
		if (t->pid != (int)s->pid || s->generation > t->generation || !s->generation ||
		    s->time_ns < t->time_ns)
			continue;
		for (size_t k = 0; k < n; k++)
			if (is_stale(t, frames[k]))
				n = k;
	}
	return n;
}

/* ---- mappings of one process ---- */

/* Put in at its place. */
static int put_in(struct prof_known *k, struct prof_mapping m)
{
	size_t i;

	if (!VEC_PUSH(&k->mappings))
		return -ENOMEM;
	for (i = k->mappings.n - 1; i && k->mappings.p[i - 1].lo > m.lo; i--)
		k->mappings.p[i] = k->mappings.p[i - 1];
	k->mappings.p[i] = m;
	return 0;
}

/* What @m has after @hi. */
static struct prof_mapping rest_of(struct prof_mapping m, uint64_t hi)
{
	m.at += m.at ? hi - m.lo : 0;
	m.lo = hi;
	return m;
}

/* [lo, hi) belongs to nothing; parts of mappings on both sides stay. */
static int cut_out(struct prof_known *k, uint64_t lo, uint64_t hi)
{
	struct prof_mapping rest = {0};
	size_t to = 0;

	for (size_t i = 0; i < k->mappings.n; i++) {
		struct prof_mapping m = k->mappings.p[i];

		if (m.hi > hi && m.lo < hi)
			rest = rest_of(m, hi);
		if (m.hi > lo && m.lo < hi)
			m.hi = lo;
		if (m.lo < m.hi)
			k->mappings.p[to++] = m;
	}
	k->mappings.n = to;
	return rest.hi ? put_in(k, rest) : 0;
}

static int map_one(struct sampled *p, struct prof_known *k, const struct code_mapping *m,
		   struct cairn_err *err)
{
	struct prof_mapping new = {.lo = m->lo, .hi = m->hi};
	int rc = files_number(p->files, k->pid, m, &new.file, err);

	new.at = files_at(p->files, new.file, m);
	rc = rc ? rc : put_in(k, new);
	return rc < 0 ? err_nomem(err, "mappings of a process") : 0;
}

/* ---- regions of JITs ---- */

static int take_region(struct sampled *p, uint32_t *ret, struct cairn_err *err)
{
	if (p->unused_regions.n) {
		*ret = p->unused_regions.p[--p->unused_regions.n];
		return 0;
	}
	int rc = p->n_regions < p->regions.blocks.n * PROF_CHUNK_REGIONS
			 ? 0
			 : chunks_grow(&p->regions, err);
	*ret = p->n_regions;
	p->n_regions += rc >= 0;
	return rc < 0 ? rc : 0;
}

/* A region's rows are its process's own; its frames have the addresses of the process. */
static int add_region(struct sampled *p, struct prof_known *k, const struct registry *r,
		      const struct registry_entry *e, struct cairn_err *err)
{
	struct prof_registered new = {e->epoch, e->jit.text_start, e->jit.text_end, 0};
	bool is_extended = e->jit.extended == CODE_JIT_EXTENDED;
	uint32_t number;
	int rc = take_region(p, &number, err);

	if (rc < 0)
		return rc;
	*(struct prof_region *)chunks_at(&p->regions, number) = (struct prof_region){
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

static int forget_regions(struct sampled *p, struct prof_known *k)
{
	for (size_t i = 0; i < k->registered.n; i++)
		if (!VEC_ADD(&p->freed,
			     ((struct prof_freed){k->registered.p[i].region - 1, 0, p->round})))
			return -ENOMEM;
	k->registered.n = 0;
	return 0;
}

/* What its registry has now. One that cannot be read has nothing. */
static int read_registry(struct sampled *p, struct prof_known *k, struct cairn_err *err)
{
	struct registry r = {.memory = code_memory_of_process(k->pid),
			     .lo = k->registry_lo,
			     .hi = k->registry_hi};
	struct cairn_err unread = {0};
	int rc = forget_regions(p, k);

	if (rc == 0)
		rc = registry_copy(&r, MAX_REGISTERED, &unread);
	if (rc == 0)
		rc = registry_parse(&r, false, &unread);
	for (size_t i = 0; i < r.entries.n && rc == 0; i++) {
		const struct registry_entry *e = &r.entries.p[i];
		if (e->option == CODE_REGISTER_JIT && !e->why &&
		    (e->jit.unwind_head || e->jit.flags & CODE_JIT_FRAME_POINTER))
			rc = add_region(p, k, &r, e, err);
	}
	k->registry_changes = r.head.changes;
	registry_fini(&r);
	return rc == -ENOMEM ? err_nomem(err, "regions of JITs") : 0;
}

/* They lie over the anonymous memory that the code is in. */
static int lay_regions(struct prof_known *k)
{
	int rc = 0;

	for (size_t i = 0; i < k->registered.n && rc == 0; i++) {
		const struct prof_registered *r = &k->registered.p[i];
		rc = cut_out(k, r->lo, r->hi);
		rc = rc ? rc
			: put_in(k, (struct prof_mapping){
					    .lo = r->lo, .hi = r->hi, .region = r->region});
	}
	return rc;
}

static bool is_registry(const struct code_mapping *m)
{
	return !m->off && !m->is_shared && strcmp(m->path, "/memfd:" CODECTL_REGISTRY_NAME) == 0;
}

static bool has_changed(const struct prof_known *k)
{
	uint64_t changes;
	struct code_memory memory = code_memory_of_process(k->pid);

	return k->registry_lo &&
	       code_memory_all(&memory, k->registry_lo + offsetof(struct codectl_registry, changes),
			       &changes, sizeof(changes)) &&
	       changes != k->registry_changes;
}

static int read_mappings(struct sampled *p, struct prof_known *k, struct cairn_err *err)
{
	struct code_maps maps;
	int rc = code_maps_read(k->pid, &maps, err);

	if (rc < 0)
		return rc;
	k->mappings.n = 0;
	k->registry_lo = k->registry_hi = 0;
	for (size_t i = 0; i < maps.p.n && rc == 0; i++) {
		const struct code_mapping *m = &maps.p.p[i];
		if (m->is_executable)
			rc = map_one(p, k, m, err);
		if (is_registry(m)) {
			k->registry_lo = m->lo;
			k->registry_hi = m->hi;
		}
	}
	code_maps_fini(&maps);
	k->has_mappings = true;
	if (rc == 0 && (k->registry_lo || k->registered.n))
		rc = read_registry(p, k, err);
	rc = rc ? rc : lay_regions(k);
	return rc ? rc : mark(p, k);
}

/* ---- events ---- */

int sampled_add(struct sampled *p, int pid, bool is_listed, struct cairn_err *err)
{
	struct prof_known *k = add(p, pid);

	if (!k)
		return err_nomem(err, "processes");
	p->n_listed += is_listed && !k->is_listed;
	k->is_listed |= is_listed;
	return read_mappings(p, k, err);
}

int sampled_add_command(struct sampled *p, int pid, struct cairn_err *err)
{
	int rc = sampled_add(p, pid, true, err);
	struct prof_known *k = find(p, pid);

	if (rc == 0 && k) {
		k->is_target = false;
		k->is_command = true;
	}
	return rc;
}

int sampled_add_running(struct sampled *p, struct cairn_err *err)
{
	DIR *proc = opendir("/proc");
	struct cairn_err unread = {0};
	struct dirent *d;
	int rc = 0;

	while (proc && rc != -ENOMEM && (d = readdir(proc))) {
		int pid = atoi(d->d_name);
		/* A process may end while it is looked at, and the kernel's have no mappings. */
		if (pid > 0 && pid != getpid())
			rc = sampled_add(p, pid, false, &unread);
	}
	if (proc)
		closedir(proc);
	return rc == -ENOMEM ? err_nomem(err, "processes") : 0;
}

int sampled_mapped(struct sampled *p, int pid, uint64_t time_ns, const struct code_mapping *m,
		   struct cairn_err *err)
{
	struct prof_known *k = p->all ? add(p, pid) : find(p, pid);
	int rc;

	if (!k)
		return p->all ? err_nomem(err, "processes") : 0;
	rc = note_replaced(p, k, time_ns, m->lo, m->hi);
	rc = rc ? rc : cut_out(k, m->lo, m->hi);
	rc = rc ? rc : map_one(p, k, m, err);
	rc = rc ? rc : mark(p, k);
	/* Of a process that runs already others are not known yet. */
	if (rc == 0 && !k->has_mappings)
		k->has_mappings = k->mappings.n > 0;
	return rc < 0 ? err_nomem(err, "mappings of a process") : 0;
}

int sampled_forked(struct sampled *p, int parent, int child, struct cairn_err *err)
{
	struct prof_known *from = find(p, parent), *to;

	if (parent == child || !from)
		return 0;
	to = add(p, child);
	if (!to)
		return err_nomem(err, "processes");
	/* The list may lie elsewhere now. */
	from = find(p, parent);
	to->mappings.n = 0;
	/* A thread of the kernel has none. */
	if (!VEC_APPEND(&to->mappings, from->mappings.p, from->mappings.n))
		return err_nomem(err, "mappings of a process");
	to->has_mappings = from->has_mappings;
	return mark(p, to) < 0 ? err_nomem(err, "processes") : 0;
}

int sampled_execed(struct sampled *p, int pid, uint64_t time_ns, struct cairn_err *err)
{
	struct prof_known *k = find(p, pid);
	struct cairn_err unread = {0};

	if (!k)
		return 0;
	k->is_target |= k->is_command;
	k->is_command = false;
	if (note_stale(p, k, time_ns, 0, 0) < 0)
		return err_nomem(err, "mappings of a process");
	k->mappings.n = 0;
	k->has_mappings = false;
	/* Its vDSO is in no report. One that has ended by now has none. */
	int rc = read_mappings(p, k, &unread);
	if (rc == -ENOMEM || mark(p, k) < 0)
		return err_nomem(err, "mappings of a process");
	return 0;
}

static int forget_segments(struct sampled *p, struct prof_known *k)
{
	struct prof_freed f = {k->first, k->size_class, p->round};
	bool kept = !k->size_class || VEC_ADD(&p->freed, f);

	k->size_class = 0;
	return kept ? 0 : -ENOMEM;
}

int sampled_exited(struct sampled *p, int pid, struct cairn_err *err)
{
	struct prof_known *k = find(p, pid);
	uint32_t key = (uint32_t)pid;

	if (!k)
		return 0;
	p->n_listed -= k->is_listed;
	k->is_listed = false;
	k->has_ended = true;
	bpf_map_delete_elem(p->map_fd, &key);
	int rc = forget_segments(p, k);
	rc = rc ? rc : forget_regions(p, k);
	VEC_FREE(&k->mappings);
	VEC_FREE(&k->registered);
	rc = rc ? rc : map_put(&p->ids, (uint64_t)pid, 0);
	return rc < 0 ? err_nomem(err, "processes") : 0;
}

int sampled_look(struct sampled *p, int pid, uint64_t now_ns, struct cairn_err *err)
{
	struct prof_known *k = p->all ? add(p, pid) : find(p, pid);
	struct cairn_err unread = {0};

	if (!k || (k->read_ns && now_ns - k->read_ns < LOOK_EVERY_NS))
		return !k && p->all ? err_nomem(err, "processes") : 0;
	k->read_ns = now_ns;
	return read_mappings(p, k, &unread) == -ENOMEM ? err_nomem(err, "mappings") : 0;
}

int sampled_look_at_registries(struct sampled *p, struct cairn_err *err)
{
	struct cairn_err unread = {0};

	for (size_t i = 0; i < p->list.n; i++) {
		struct prof_known *k = &p->list.p[i];
		if (!k->has_ended && has_changed(k) && read_mappings(p, k, &unread) == -ENOMEM)
			return err_nomem(err, "regions of JITs");
	}
	return 0;
}

uint64_t sampled_frame(const struct sampled *p, int pid, uint64_t at)
{
	const struct prof_known *k = find(p, pid);
	size_t n = k ? SEARCH((size_t)0, k->mappings.n, i, k->mappings.p[i].lo <= at) : 0;
	const struct prof_mapping *m = n ? &k->mappings.p[n - 1] : NULL;

	return m && at < m->hi && m->at ? m->at + (at - m->lo) : 0;
}

/* ---- to the kernel ---- */

static struct prof_segment segment_of(const struct sampled *p, const struct prof_mapping *m)
{
	const struct prof_file *file = m->at ? p->files->list.p[m->file] : NULL;
	bool is_ready = file && file->pages.n;

	if (m->region)
		return (struct prof_segment){.lo = m->lo,
					     .hi = m->hi,
					     .first_page = PROF_IN_REGION,
					     .n_pages = m->region - 1};

	/* Without a table there is nothing to wait for: the frame pointer is tried. */
	return (struct prof_segment){
		.lo = m->lo,
		.hi = m->hi,
		.at = m->at,
		.n_pages = is_ready ? file->pages.n : 0,
		.first_page =
			is_ready || (file && file->is_made) ? file->pages.first : PROF_NO_PAGES,
	};
}

static uint32_t class_for(size_t n)
{
	uint32_t class = SMALLEST_CLASS;

	while ((size_t)1 << class < n)
		class ++;
	return class;
}

static int take_segments(struct sampled *p, uint32_t class, uint32_t *ret, struct cairn_err *err)
{
	int rc = 0;

	if (class >= PROF_SIZE_CLASSES)
		return err_set(err, -ENOSPC, "a process with more than 2^19 mappings of code");
	if (p->unused[class].n) {
		*ret = p->unused[class].p[--p->unused[class].n];
		return 0;
	}
	while (rc >= 0 &&
	       p->next_segment + ((size_t)1 << class) > p->segments.blocks.n * PROF_CHUNK_SEGMENTS)
		rc = chunks_grow(&p->segments, err);
	if (rc < 0)
		return rc;
	*ret = p->next_segment;
	p->next_segment += 1u << class;
	return 0;
}

static int publish(struct sampled *p, struct prof_known *k, struct cairn_err *err)
{
	uint32_t class = class_for(k->mappings.n), first = 0, key = (uint32_t)k->pid;
	int rc = take_segments(p, class, &first, err);

	if (rc < 0)
		return rc;
	for (size_t i = 0; i < k->mappings.n; i++)
		*(struct prof_segment *)chunks_at(&p->segments, first + i) =
			segment_of(p, &k->mappings.p[i]);
	rc = forget_segments(p, k);
	if (rc < 0)
		return err_nomem(err, "segments");
	k->first = first;
	k->size_class = class;
	k->generation = ++p->generation;
	struct prof_process entry = {
		.first = first,
		.n = (uint32_t)k->mappings.n,
		.generation = k->generation,
		.flags = (k->is_target ? PROF_IS_TARGET : 0u) |
			 (k->is_command ? PROF_IS_COMMAND : 0u) |
			 (k->has_mappings ? PROF_HAS_MAPPINGS : 0u),
	};
	if (bpf_map_update_elem(p->map_fd, &key, &entry, BPF_ANY))
		return err_set(err, -errno, "telling the kernel of process %d: %s", k->pid,
			       strerror(errno));
	return 0;
}

/* Segments that were free for long enough can be used again. */
static int reuse_freed(struct sampled *p)
{
	size_t to = 0;

	for (size_t i = 0; i < p->freed.n; i++) {
		struct prof_freed f = p->freed.p[i];
		if (p->round - f.round < ROUNDS_KEPT)
			p->freed.p[to++] = f;
		else if (f.size_class ? !VEC_ADD(&p->unused[f.size_class], f.first)
				      : !VEC_ADD(&p->unused_regions, f.first))
			return -ENOMEM;
	}
	p->freed.n = to;
	return 0;
}

int sampled_publish(struct sampled *p, struct cairn_err *err)
{
	int rc = 0;

	p->round++;
	forget_stale(p);
	if (reuse_freed(p) < 0)
		return err_nomem(err, "segments");
	for (size_t i = 0; i < p->changed.n && rc == 0; i++) {
		struct prof_known *k = &p->list.p[p->changed.p[i]];
		k->is_changed = false;
		if (!k->has_ended)
			rc = publish(p, k, err);
	}
	p->changed.n = 0;
	return rc;
}

void sampled_file_ready(struct sampled *p, uint32_t number, const struct prof_file *file)
{
	for (size_t i = 0; i < p->list.n; i++) {
		const struct prof_known *k = &p->list.p[i];

		for (size_t m = 0; m < k->mappings.n && k->size_class && !k->is_changed; m++) {
			if (k->mappings.p[m].file != number || !k->mappings.p[m].at)
				continue;
			struct prof_segment *s = chunks_at(&p->segments, k->first + m);
			s->n_pages = file->pages.n;
			__atomic_store_n(&s->first_page, file->pages.first, __ATOMIC_RELEASE);
		}
	}
}
