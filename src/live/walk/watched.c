/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/watched_impl.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "code/memory.h"
#include "code/registry.h"
#include "code/target.h"

enum {
	/* A process with more mappings is read anew once in a while, and not changed by reports. */
	MANY_MAPPINGS = 4096,
	/* Ended processes whose numbers are kept before they are forgotten together. */
	MANY_ENDED = 4096,
};
#define LOOK_EVERY_NS      UINT64_C(100000000)
/* Memory for the processes' segments and regions, in blocks of a megabyte. */
#define MAX_SEGMENT_BLOCKS 128
#define MAX_REGION_BLOCKS  64

void watched_init(struct watched *p, struct walk_files *files, int segments_fd, int regions_fd,
		  int map_fd, bool all)
{
	*p = (struct watched){.files = files, .map_fd = map_fd, .all = all};
	chunks_init(&p->segments, "segments", segments_fd, sizeof(struct walk_segment),
		    WALK_CHUNK_SEGMENTS);
	chunks_init(&p->regions, "regions", regions_fd, sizeof(struct walk_region),
		    WALK_CHUNK_REGIONS);
	p->segments.max_blocks = MAX_SEGMENT_BLOCKS;
	p->regions.max_blocks = MAX_REGION_BLOCKS;
}

void watched_fini(struct watched *p)
{
	for (size_t i = 0; i < p->list.n; i++) {
		VEC_FREE(&p->list.p[i].mappings);
		VEC_FREE(&p->list.p[i].registered);
		VEC_FREE(&p->list.p[i].remade);
		made_free(p->list.p[i].made);
	}
	VEC_FREE(&p->unused_regions);
	chunks_fini(&p->regions);
	for (size_t i = 0; i < WALK_SIZE_CLASSES; i++)
		VEC_FREE(&p->unused[i]);
	VEC_FREE(&p->list);
	VEC_FREE(&p->freed);
	past_fini(p);
	VEC_FREE(&p->undated);
	VEC_FREE(&p->slots);
	VEC_FREE(&p->outdated);
	VEC_FREE(&p->with_registry);
	VEC_FREE(&p->without_main);
	VEC_FREE(&p->with_memory);
	VEC_FREE(&p->changed);
	map_fini(&p->ids);
	chunks_fini(&p->segments);
}

/* A place in the list; one of a process that has ended, if there is one. */
static struct walk_known *take_slot(struct watched *p)
{
	if (!p->slots.n)
		return VEC_PUSH(&p->list);
	struct walk_known *k = &p->list.p[p->slots.p[--p->slots.n]];
	/* It may still be in the list of what has changed. */
	*k = (struct walk_known){.is_changed = k->is_changed,
				 .has_registry = k->has_registry,
				 .has_memory = k->has_memory,
				 .has_no_main = k->has_no_main};
	return k;
}

static struct walk_known *add(struct watched *p, int pid)
{
	struct walk_known *k = watched_find(p, pid);

	if (k)
		return k;
	k = take_slot(p);
	if (!k)
		return NULL;
	k->pid = k->via = pid;
	k->is_target = true;
	if (map_put(&p->ids, (uint64_t)pid, (uint64_t)(k - p->list.p) + 1) == 0)
		return k;
	k->has_ended = true;
	return NULL;
}

/* *@ret: @m as it is kept. @time_ns: as files_number(). 0 or -ENOMEM. */
static int describe(struct watched *p, const struct walk_known *k, uint64_t time_ns,
		    const struct code_mapping *m, struct walk_mapping *ret, struct cairn_err *err)
{
	*ret = (struct walk_mapping){
		.lo = m->lo,
		.hi = m->hi,
		.is_writable = m->is_writable || m->is_shared || m->ino,
	};
	int rc = files_number(p->files, k->via, time_ns, m, &ret->file, err);

	/* JITs share memory with themselves: a name of the kernel's, and no file. */
	if (!code_is_anonymous(m) || (ret->file && p->files->list.p[ret->file]->bin))
		ret->at = files_at(p->files, ret->file, m);
	return rc;
}

static int map_one(struct watched *p, struct walk_known *k, const struct code_mapping *m,
		   struct walk_mapping new, struct cairn_err *err)
{
	int rc = known_put(k, new);

	rc = rc ? rc : known_note_memory(p, k, m);
	k->is_searched = false;
	if (k->made)
		k->made->is_moved = true;
	return rc < 0 ? err_nomem(err, "mappings of a process") : 0;
}

static bool is_registry(const struct code_mapping *m)
{
	return !m->off && !m->is_shared && strcmp(m->path, "/memfd:" CODECTL_REGISTRY_NAME) == 0;
}

static bool has_changed(const struct walk_known *k)
{
	uint64_t changes;
	struct code_memory memory = code_memory_of_process(k->via);

	return k->registry_lo &&
	       code_memory_all(&memory, k->registry_lo + offsetof(struct codectl_registry, changes),
			       &changes, sizeof(changes)) &&
	       changes != k->registry_changes;
}

/* Its end is looked for from now on. */
static int note_no_main(struct watched *p, struct walk_known *k)
{
	if (k->has_no_main)
		return 0;
	k->has_no_main = true;
	return VEC_ADD(&p->without_main, (size_t)(k - p->list.p)) ? 0 : -ENOMEM;
}

/* Its registry is looked at from now on. */
static int note_registry(struct watched *p, struct walk_known *k)
{
	if (!k->registry_lo || k->has_registry)
		return 0;
	k->has_registry = true;
	return VEC_ADD(&p->with_registry, (size_t)(k - p->list.p)) ? 0 : -ENOMEM;
}

/* Its main thread may have ended while others go on: /proc has its mappings by those. */
static int read_maps(struct watched *p, struct walk_known *k, struct code_maps *ret,
		     struct cairn_err *err)
{
	int rc = code_maps_read(k->via, ret, err), tid;

	/* A thread of the kernel lives, and has none. */
	if ((rc == 0 && ret->p.n) || !(tid = target_living_thread(k->pid)) || tid == k->via)
		return rc;
	if (rc == 0)
		code_maps_fini(ret);
	k->via = tid;
	rc = note_no_main(p, k);
	return rc < 0 ? rc : code_maps_read(tid, ret, err);
}

static int read_mappings(struct watched *p, struct walk_known *k, struct cairn_err *err)
{
	struct walk_mapping new;
	struct code_maps maps;
	int rc = read_maps(p, k, &maps, err);

	if (rc < 0)
		return rc;
	k->mappings.n = 0;
	k->registry_lo = k->registry_hi = 0;
	for (size_t i = 0; i < maps.p.n && rc == 0; i++) {
		const struct code_mapping *m = &maps.p.p[i];
		if (is_registry(m)) {
			k->registry_lo = m->lo;
			k->registry_hi = m->hi;
		}
		if (!m->is_executable)
			continue;
		rc = describe(p, k, 0, m, &new, err);
		rc = rc ? rc : map_one(p, k, m, new, err);
	}
	code_maps_fini(&maps);
	k->has_mappings = true;
	if (rc == 0 && (k->registry_lo || k->registered.n))
		rc = known_read_registry(p, k, err);
	rc = rc ? rc : known_lay_made(k);
	rc = rc ? rc : known_lay_regions(k);
	rc = rc ? rc : note_registry(p, k);
	return rc ? rc : known_mark(p, k);
}

int watched_add(struct watched *p, int pid, bool is_listed, struct cairn_err *err)
{
	struct walk_known *k = add(p, pid);

	if (!k)
		return err_nomem(err, "processes");
	p->n_listed += is_listed && !k->is_listed;
	k->is_listed |= is_listed;
	return read_mappings(p, k, err);
}

int watched_add_command(struct watched *p, int pid, struct cairn_err *err)
{
	struct walk_known *k = add(p, pid);

	if (!k || known_mark(p, k) < 0)
		return err_nomem(err, "processes");
	p->n_listed += !k->is_listed;
	k->is_listed = true;
	k->is_target = false;
	k->is_command = true;
	return 0;
}

/* Processor time that a process has used: its files are needed first. */
static uint64_t used_ticks(int pid)
{
	struct target_stat stat;

	return target_stat(pid, &stat) ? stat.ticks : 0;
}

struct running {
	int pid;
	uint64_t ticks;
};

static int by_ticks(const void *a, const void *b)
{
	const struct running *x = a, *y = b;

	return (x->ticks < y->ticks) - (x->ticks > y->ticks);
}

int watched_add_running(struct watched *p, struct cairn_err *err)
{
	VEC(struct running) list = {0};
	DIR *proc = opendir("/proc");
	struct cairn_err unread = {0};
	struct dirent *d;
	int rc = 0;

	while (proc && rc == 0 && (d = readdir(proc))) {
		int pid = atoi(d->d_name);
		if (pid > 0 && pid != getpid() &&
		    !VEC_ADD(&list, ((struct running){pid, used_ticks(pid)})))
			rc = -ENOMEM;
	}
	if (proc)
		closedir(proc);
	if (list.n > 1)
		qsort(list.p, list.n, sizeof(*list.p), by_ticks);
	/* A process may end while it is looked at, and the kernel's have no mappings. */
	for (size_t i = 0; i < list.n && rc != -ENOMEM; i++)
		rc = watched_add(p, list.p[i].pid, false, &unread);
	VEC_FREE(&list);
	return rc == -ENOMEM ? err_nomem(err, "processes") : 0;
}

int watched_note_outdated(struct watched *p, struct walk_known *k, struct cairn_err *err)
{
	if (k->is_outdated)
		return 0;
	/* Once in the list. */
	k->is_outdated = true;
	return VEC_ADD(&p->outdated, (size_t)(k - p->list.p)) ? 0 : err_nomem(err, "mappings");
}

int watched_mapped(struct watched *p, int pid, uint64_t time_ns, const struct code_mapping *m,
		   struct cairn_err *err)
{
	struct walk_known *k = p->all ? add(p, pid) : watched_find(p, pid);
	struct walk_mapping new;
	int rc;

	if (!k)
		return p->all ? err_nomem(err, "processes") : 0;
	rc = describe(p, k, time_ns, m, &new, err);
	rc = rc ? rc : past_note_replaced(p, k, time_ns, m, new.at);
	rc = rc ? rc : dated_note(p, k, time_ns, m);
	if (rc == 0 && k->mappings.n >= MANY_MAPPINGS)
		return watched_note_outdated(p, k, err);
	rc = rc ? rc : known_cut_out(k, m->lo, m->hi);
	rc = rc ? rc : map_one(p, k, m, new, err);
	/* A JIT that writes and runs its memory by turns has the same code there as before. */
	rc = rc || !code_is_anonymous(m) ? rc : known_lay_made(k);
	rc = rc ? rc : known_mark(p, k);
	/* The others of a process that runs already are not known yet. */
	if (rc == 0 && !k->has_mappings)
		k->has_mappings = k->mappings.n > 0;
	return rc < 0 ? err_nomem(err, "mappings of a process") : 0;
}

/* A region's rows are in the memory of its own process: the child's are read from its registry. */
static int copy_mappings(const struct walk_known *from, struct walk_known *to)
{
	to->mappings.n = 0;
	/* A thread of the kernel has none. */
	if (!VEC_RESERVE(&to->mappings, from->mappings.n))
		return -ENOMEM;
	for (size_t i = 0; i < from->mappings.n; i++)
		if (!from->mappings.p[i].region) {
			struct walk_mapping *m = &to->mappings.p[to->mappings.n++];
			*m = from->mappings.p[i];
			m->made = 0;
		}
	to->has_mappings = from->has_mappings;
	to->registry_lo = from->registry_lo;
	to->registry_hi = from->registry_hi;
	/* Not what it has read: nothing. */
	to->registry_changes = ~from->registry_changes;
	return 0;
}

int watched_forked(struct watched *p, int parent, int child, uint64_t time_ns,
		   struct cairn_err *err)
{
	struct walk_known *from = watched_find(p, parent), *to;

	if (parent == child || !from)
		return 0;
	to = add(p, child);
	if (!to)
		return err_nomem(err, "processes");
	/* The list may lie elsewhere now. */
	from = watched_find(p, parent);
	to->since_ns = time_ns;
	to->is_young = true;
	if (from->has_memory && !to->has_memory) {
		to->has_memory = true;
		if (!VEC_ADD(&p->with_memory, (size_t)(to - p->list.p)))
			return err_nomem(err, "processes");
	}
	if (copy_mappings(from, to) < 0 || note_registry(p, to) < 0 || known_mark(p, to) < 0)
		return err_nomem(err, "processes");
	return 0;
}

int watched_execed(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err)
{
	struct walk_known *k = watched_find(p, pid);
	struct cairn_err unread = {0};

	if (!k)
		return 0;
	k->is_target |= k->is_command;
	k->is_command = false;
	if (past_note_stale(p, k, time_ns, 0, 0) < 0 || past_keep(p, k, time_ns) < 0)
		return err_nomem(err, "mappings of a process");
	k->has_mappings = false;
	k->registry_lo = k->registry_hi = 0;
	if (known_forget_made(p, k) < 0)
		return err_nomem(err, "code made at run time");
	/* Its vDSO is in no report. One that has ended by now has none. */
	int rc = read_mappings(p, k, &unread);
	if (rc == -ENOMEM || known_mark(p, k) < 0)
		return err_nomem(err, "mappings of a process");
	return 0;
}

/* The numbers of those that have ended, when there are many. */
static int forget_ended(struct watched *p)
{
	struct map live = {0};
	int rc = 0;

	if (p->ids.n < MANY_ENDED || p->ids.n < 2 * (p->list.n - p->slots.n))
		return 0;
	for (size_t i = 0; i < p->list.n && rc == 0; i++)
		if (!p->list.p[i].has_ended)
			rc = map_put(&live, (uint64_t)p->list.p[i].pid, i + 1);
	map_fini(&p->ids);
	p->ids = live;
	return rc;
}

int watched_ended(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err)
{
	struct walk_known *k = watched_find(p, pid);
	uint32_t key = (uint32_t)pid;

	/* The kernel's program may know a child of one that is not followed any more. */
	if (k || p->all)
		bpf_map_delete_elem(p->map_fd, &key);
	if (!k)
		return 0;
	p->n_listed -= k->is_listed;
	k->is_listed = false;
	int rc = known_forget_segments(p, k);
	rc = rc ? rc : known_forget_regions(p, k);
	rc = rc ? rc : known_forget_made(p, k);
	rc = rc ? rc : past_keep(p, k, time_ns);
	VEC_FREE(&k->registered);
	k->has_ended = true;
	rc = rc ? rc : map_put(&p->ids, (uint64_t)pid, 0);
	if (rc == 0 && !VEC_ADD(&p->slots, (size_t)(k - p->list.p)))
		rc = -ENOMEM;
	rc = rc ? rc : forget_ended(p);
	return rc < 0 ? err_nomem(err, "processes") : 0;
}

/*
 * The report of a main thread's end comes while the process ends, too: other threads may be about
 * to end. They are looked at later.
 */
int watched_exited(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err)
{
	struct walk_known *k = watched_find(p, pid);
	struct target_stat stat;

	if (!k || !target_stat(pid, &stat) || stat.n_threads < 2)
		return watched_ended(p, pid, time_ns, err);
	return note_no_main(p, k) < 0 ? err_nomem(err, "processes") : 0;
}

int watched_look_for_ends(struct watched *p, uint64_t now_ns, struct cairn_err *err)
{
	size_t to = 0;
	int rc = 0;

	if (!p->without_main.n || now_ns - p->ends_looked_ns < LOOK_EVERY_NS)
		return 0;
	p->ends_looked_ns = now_ns;
	for (size_t i = 0; i < p->without_main.n; i++) {
		struct walk_known *k = &p->list.p[p->without_main.p[i]];
		k->has_no_main = !k->has_ended && target_living_thread(k->pid);
		if (k->has_no_main)
			p->without_main.p[to++] = p->without_main.p[i];
		else if (!k->has_ended && rc == 0)
			rc = watched_ended(p, k->pid, now_ns, err);
	}
	p->without_main.n = to;
	return rc;
}

static void mark_used(const struct watched *p, const struct walk_mapping *mappings, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (mappings[i].file)
			p->files->list.p[mappings[i].file]->is_used = true;
}

void watched_mark_used(const struct watched *p)
{
	for (size_t i = 0; i < p->list.n; i++)
		if (!p->list.p[i].has_ended)
			mark_used(p, p->list.p[i].mappings.p, p->list.p[i].mappings.n);
	for (size_t i = 0; i < p->past.n; i++)
		mark_used(p, p->past.p[i].mappings.p, p->past.p[i].mappings.n);
}

int watched_file_written(struct watched *p, uint32_t number, struct cairn_err *err)
{
	int rc = 0;

	for (size_t i = 0; i < p->list.n && rc == 0; i++) {
		struct walk_known *k = &p->list.p[i];
		for (size_t m = 0; m < k->mappings.n && rc == 0 && !k->is_outdated; m++)
			if (k->mappings.p[m].file == number)
				rc = watched_note_outdated(p, k, err);
	}
	return rc;
}

/* A microsecond a mapping: so that it takes a tenth of the time at most. */
static uint64_t wait_ns(const struct walk_known *k)
{
	uint64_t wait = (uint64_t)k->mappings.n * 10000;

	return wait > LOOK_EVERY_NS ? wait : LOOK_EVERY_NS;
}

int watched_look(struct watched *p, int pid, uint64_t now_ns, struct cairn_err *err)
{
	bool is_new = !watched_find(p, pid);
	struct walk_known *k = p->all ? add(p, pid) : watched_find(p, pid);
	struct cairn_err unread = {0};

	if (!k || (k->read_ns && now_ns - k->read_ns < wait_ns(k)))
		return !k && p->all ? err_nomem(err, "processes") : 0;
	k->read_ns = now_ns;
	if (read_mappings(p, k, &unread) == -ENOMEM)
		return err_nomem(err, "mappings");
	/* It has ended, and was told to have before this sample of it was taken over. */
	return is_new && !k->mappings.n ? watched_exited(p, pid, now_ns, err) : 0;
}

int watched_look_at_registries(struct watched *p, struct cairn_err *err)
{
	struct cairn_err unread = {0};
	size_t to = 0;
	int rc = 0;

	for (size_t i = 0; i < p->with_registry.n; i++) {
		struct walk_known *k = &p->list.p[p->with_registry.p[i]];
		k->has_registry = !k->has_ended && k->registry_lo;
		if (!k->has_registry)
			continue;
		p->with_registry.p[to++] = p->with_registry.p[i];
		if (rc != -ENOMEM && has_changed(k))
			rc = read_mappings(p, k, &unread);
	}
	p->with_registry.n = to;
	return rc == -ENOMEM ? err_nomem(err, "regions of JITs") : 0;
}

int watched_read_outdated(struct watched *p, uint64_t now_ns, struct cairn_err *err)
{
	struct cairn_err unread = {0};
	size_t to = 0;
	int rc = 0;

	for (size_t i = 0; i < p->outdated.n; i++) {
		struct walk_known *k = &p->list.p[p->outdated.p[i]];
		if (k->has_ended || !k->is_outdated)
			continue;
		if (rc == -ENOMEM || now_ns - k->read_ns < wait_ns(k)) {
			p->outdated.p[to++] = p->outdated.p[i];
			continue;
		}
		k->is_outdated = false;
		k->read_ns = now_ns;
		rc = read_mappings(p, k, &unread);
	}
	p->outdated.n = to;
	return rc == -ENOMEM ? err_nomem(err, "mappings of processes") : 0;
}
