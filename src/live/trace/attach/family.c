/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Children that run before tracing begins
 *
 * The purpose of tracing a master process is its workers, and they were started long ago. The
 * kernel reports forks from now on; the others are found in /proc by their parents' numbers. A
 * process that /proc shows may fork meanwhile, so the search is repeated until it finds no new one.
 * A process whose parent was known before the fork was reported by the kernel.
 *
 * One that ends meanwhile may be forgotten by the kernel before it is noted here. So it is looked
 * for once more after it was noted.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/map.h"
#include "code/target.h"
#include "trace/attach/family.h"
#include "trace/attach/kernel.h"
#include "trace/attach/traced.h"
#include "trace.skel.h"

struct search {
	struct trace_bpf *bpf;
	struct map known; /* of the family: number of the process to 1 */
	uint64_t n_found;
	bool follow;
};

/* Note a process for the program that filters; the counters are shared with it. */
static int follow(struct search *s, uint32_t pid)
{
	uint8_t child = FAMILY_CHILD;
	__u64 *alive = &s->bpf->bss->n_children_alive;

	__atomic_add_fetch(alive, 1, __ATOMIC_RELAXED);
	int e = bpf_map__update_elem(s->bpf->maps.family, &pid, sizeof(pid), &child, sizeof(child),
				     BPF_NOEXIST);
	bool gone = !e && kill((pid_t)pid, 0) && errno == ESRCH &&
		    !bpf_map__delete_elem(s->bpf->maps.family, &pid, sizeof(pid), 0);
	/* The kernel has reported it already; or it is gone, and no other process noticed. */
	if (e || gone)
		__atomic_sub_fetch(alive, 1, __ATOMIC_RELAXED);
	if (e == -E2BIG)
		__atomic_add_fetch(&s->bpf->bss->n_family_full, 1, __ATOMIC_RELAXED);
	s->n_found += !e && !gone;
	return e == -ENOMEM ? e : 0;
}

/* Returns 1 when the process is new in the family, 0, or -ENOMEM. */
static int look_at(struct search *s, const char *name)
{
	uint64_t pid = strtoul(name, NULL, 10), ignored;
	struct target_stat stat;

	if (map_get(&s->known, pid, &ignored) || !target_stat((int)pid, &stat) ||
	    !map_get(&s->known, (uint64_t)stat.parent, &ignored))
		return 0;
	if (map_put(&s->known, pid, 1) < 0)
		return -ENOMEM;
	if (!s->follow) {
		s->n_found++;
		return 1;
	}
	int e = follow(s, (uint32_t)pid);
	return e < 0 ? e : 1;
}

static int look_at_all(struct search *s, DIR *proc)
{
	const struct dirent *entry;
	int found = 0;

	rewinddir(proc);
	while (found >= 0 && (entry = readdir(proc))) {
		int r = isdigit((unsigned char)entry->d_name[0]) ? look_at(s, entry->d_name) : 0;
		found = r < 0 ? r : found | r;
	}
	return found;
}

static int know_traced(struct search *s, const struct cairn_trace *t)
{
	int e = 0;

	for (size_t i = 0; i < t->n_traced && e == 0; i++)
		e = map_put(&s->known, (uint64_t)t->traced[i].pid, 1);
	return e;
}

int family_note_traced(const struct cairn_trace *t, struct trace_bpf *bpf)
{
	uint8_t traced = FAMILY_TRACED;
	int e = 0;

	for (size_t i = 0; i < t->n_traced && e == 0; i++) {
		uint32_t pid = (uint32_t)t->traced[i].pid;
		e = bpf_map__update_elem(bpf->maps.family, &pid, sizeof(pid), &traced,
					 sizeof(traced), BPF_ANY);
	}
	return e;
}

void family_forget(struct cairn_trace *t, int pid)
{
	uint32_t key = (uint32_t)pid;

	if (t->kernel && traced_has_table(t))
		bpf_map__delete_elem(t->kernel->bpf->maps.family, &key, sizeof(key), 0);
}

int family_find_running(const struct cairn_trace *t, struct trace_kernel *k)
{
	struct search s = {.bpf = k->bpf, .follow = t->opts.follow_children};
	DIR *proc = opendir("/proc");
	int r = -ENOMEM;

	map_init(&s.known);
	if (proc && know_traced(&s, t) == 0)
		while ((r = look_at_all(&s, proc)) > 0)
			;
	if (proc)
		closedir(proc);
	map_fini(&s.known);
	k->n_running = s.n_found;
	return proc ? r : 0;
}
