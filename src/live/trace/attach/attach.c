/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attaching
 *
 * Sites are grouped by file and size of record. Each group becomes one uprobe_multi link, whose
 * cookies are the sites' numbers. The same offset may be in a link several times: when three
 * inlined copies share an address, one pass of the program through it is three calls, and gives
 * three events.
 *
 * The file is named by /proc/self/fd/N of a descriptor that was open when the file was analysed, so
 * that no rename can put another file under the probes.
 *
 * Of the kernel, the group is what is probed in it or in a module. Entries of functions go by one
 * link where the kernel has such links (kernel_multi.h), and each other site has a link.
 *
 * When the kernel refuses a group, the group is halved until the sites at fault are known: the
 * errors of BPF_LINK_CREATE name none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cairn/text.h>

#include "base/scope.h"
#include "launch/permission.h"
#include "trace/attach/copies.h"
#include "trace/attach/kernel_multi.h"
#include "trace/attach/link.h"
#include "trace/attach/links.h"
#include "trace/locate.h"

/* Levels of halving: 2^20 sites at most, one stack entry for each. */
#define HALVINGS_MAX 24

/* Which of a site's instructions a group is of. */
enum group_of { OF_SITES, OF_EXITS, OF_RESETS };

struct group {
	struct trace_file *file;
	unsigned int class;
	uint32_t n;
	uint64_t *offsets, *cookies, *semaphores;
	uint32_t *numbers; /* of the places' sites */
	bool has_semaphores;
	enum link_follows follows;
	enum link_moment moment;
	enum group_of of;
	int program;
	bool by_multi; /* of sites that go by one link */
	uint32_t located_program;
};

static enum link_role role_of(const struct group *g)
{
	static const enum link_role of_copies[] = {[OF_SITES] = LINK_OF_COPIES,
						   [OF_EXITS] = LINK_OF_COPY_EXITS,
						   [OF_RESETS] = LINK_OF_COPY_RESETS};

	if (g->follows == LINKS_FOLLOW_COPIES)
		return of_copies[g->of];
	if (g->by_multi)
		return LINK_OF_MULTI;
	if (g->moment == LINK_AT_RETURN)
		return LINK_OF_RETURNS;
	return g->follows == LINKS_FOLLOW_RETURNS ? LINK_OF_ENTRIES : LINK_OF_HITS;
}

static int keep_link(struct trace_links *l, enum link_role role, int event, int link)
{
	if (event >= 0 && !VEC_ADD(&l->fds, event)) {
		close(event);
		close(link);
		return -ENOMEM;
	}
	if (!VEC_ADD(&l->roles, (uint8_t)role) || !VEC_ADD(&l->fds, link)) {
		close(link);
		return -ENOMEM;
	}
	l->n++;
	return 0;
}

/* Attach [from, from + n) of a group: by one link, or one by one. */
static int attach_some(struct cairn_trace *t, struct trace_links *l, const struct group *g,
		       uint32_t from, uint32_t n)
{
	int prog = g->program, event = -1, link;
	const struct link_places places = {.offsets = g->offsets + from,
					   .semaphores =
						   g->has_semaphores ? g->semaphores + from : NULL,
					   .cookies = g->cookies + from,
					   .n = n,
					   .moment = g->moment};
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", g->file->fd);
	if (g->by_multi)
		link = kernel_multi_link(prog, &places);
	else if (l->backend == CAIRN_BACKEND_UPROBE_MULTI)
		link = link_multi(prog, path, &places, l->pid);
	else if (n > 1)
		return -E2BIG; /* halve */
	else if (l->backend == CAIRN_BACKEND_KPROBE)
		link = link_kernel(prog, g->file->kprobe_type, &places);
	else
		link = link_single(prog, path, &places, l->pid, &event);
	if (link < 0)
		return link;
	int e = keep_link(l, role_of(g), event, link);
	if (g->moment == LINK_AT_RETURN || g->of != OF_SITES)
		return e;
	for (uint32_t i = 0; !e && i < n; i++)
		t->sites.p[g->numbers[from + i]]->attached = true;
	l->n_attached += e ? 0 : n;
	return e;
}

/* The kernel's result for an instruction that it does not probe; no errno of user space. */
#define KERNEL_ENOTSUPP 524

static const char *kernel_text(int e)
{
	if (e == -EILSEQ)
		return "no instruction begins there in the code that runs";
	return e == -KERNEL_ENOTSUPP ? "it does not probe this instruction" : strerror(-e);
}

static int refuse(struct cairn_trace *t, struct trace_site *site, int e, struct cairn_err *err)
{
	const struct trace_probe *p = t->probes.p[site->pub.probe];
	char where[200];

	site->pub.refused = arena_printf(&t->arena, "refused by the kernel: %s", kernel_text(e));
	t->probes.p[site->pub.probe]->pub.n_ready--;
	t->probes.p[site->pub.probe]->pub.n_refused++;
	if (!site->pub.refused)
		return err_nomem(err, "a site");
	if (trace_may_leave_out(t, site))
		return 0;
	cairn_site_text(p->pub.function, site->pub.site, t->opts.show_name, where, sizeof(where));
	if (p->file->kernel)
		return err_set(err, -ENOENT,
			       "%s: the kernel refuses a probe on %s, %s (0x%llx): %s",
			       p->file->shown, p->pub.function->name, where,
			       (unsigned long long)site->pub.running, kernel_text(e));
	return err_set(err, -ENOENT, "%s: the kernel refuses a probe on %s, %s (offset 0x%llx): %s",
		       p->file->shown, p->pub.function->name, where,
		       (unsigned long long)site->pub.off.v, kernel_text(e));
}

/* Errors that are about everything, not about one site. */
static bool is_general(int e)
{
	return e == -EPERM || e == -EACCES || e == -ENOMEM || e == -EMFILE || e == -ENFILE ||
	       e == -ESRCH || e == -EINTR;
}

static unsigned long long descriptor_limit(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) ? 0 : (unsigned long long)limit.rlim_cur;
}

static int general_error(const struct cairn_trace *t, const struct group *g, int e,
			 struct cairn_err *err)
{
	if (e == -EMFILE)
		return err_set(err, e,
			       "setting %s in %s: each needs a file descriptor, and the limit is "
			       "%llu (ulimit -Hn)",
			       cairn_counted(g->n, "probe").text, g->file->shown,
			       descriptor_limit());
	if (e == -EPERM || e == -EACCES)
		return permission_error(err, "setting probes");
	if (e == -ESRCH)
		return err_set(err, e, "process %d has ended", t->pid);
	return err_set(err, e, "setting %s in %s: %s", cairn_counted(g->n, "probe").text,
		       g->file->shown, strerror(-e));
}

static int attach_group(struct cairn_trace *t, struct trace_links *l, const struct group *g,
			struct cairn_err *err)
{
	struct {
		uint32_t from, n;
	} todo[HALVINGS_MAX * 2] = {{0, g->n}};
	unsigned int depth = 1;

	while (depth) {
		uint32_t from = todo[depth - 1].from, n = todo[depth - 1].n;
		int e = attach_some(t, l, g, from, n);
		depth--;
		if (e == 0 || (g->by_multi && n == 1))
			continue;
		if (is_general(e) && g->by_multi)
			return 0;
		if (is_general(e))
			return general_error(t, g, e, err);
		if (n == 1) {
			e = refuse(t, t->sites.p[g->numbers[from]], e, err);
			if (e < 0)
				return e;
			continue;
		}
		/* The first half on top, so that sites are attached in order. */
		todo[depth].from = from + n / 2;
		todo[depth++].n = n - n / 2;
		todo[depth].from = from;
		todo[depth++].n = n / 2;
	}
	return 0;
}

static void add_place(struct group *g, size_t number, uint64_t offset, uint64_t semaphore,
		      uint64_t cookie)
{
	g->offsets[g->n] = offset;
	g->semaphores[g->n] = semaphore;
	g->has_semaphores |= semaphore != 0;
	g->numbers[g->n] = (uint32_t)number;
	g->cookies[g->n++] = cookie;
}

static uint64_t entry_cookie(const struct trace_site *site, size_t number)
{
	if (site->located)
		return site->located->cookie;
	return copies_cookie(number, site->copy ? site->copy->entry_frame : 0);
}

static void add_site(struct group *g, const struct trace_site *site, size_t number)
{
	const struct trace_copy *copy = site->copy;

	if (g->of == OF_SITES)
		add_place(g, number, g->file->kernel ? site->pub.running : site->pub.off.v,
			  site->semaphore, entry_cookie(site, number));
	for (uint32_t i = 0; g->of == OF_EXITS && i < site->n_exits; i++)
		add_place(g, number, site->exits[i], 0,
			  copies_cookie(number, copy ? copy->exit_frames[i] : 0));
	if (g->of == OF_RESETS && copy && copy->has_reset)
		add_place(g, number, copy->reset, 0, number);
}

static size_t n_places(const struct cairn_trace *t)
{
	size_t n = 1;

	for (size_t i = 0; i < t->sites.n; i++)
		n += 2 + t->sites.p[i]->n_exits;
	return n;
}

static bool is_of_group(const struct trace_site *site, const struct trace_probe *p,
			const struct group *g)
{
	unsigned int class;

	if (site->pub.refused || site->attached || p->file != g->file ||
	    g->follows != links_follow_site(p, site))
		return false;
	if (g->moment == LINK_AT_RETURN && !site->follows)
		return false;
	if (g->by_multi && !site->by_multi)
		return false;
	if (site->located && site->located->program != g->located_program)
		return false;
	return trace_record_class(p->n_record, &class) && class == g->class;
}

/*
 * Collects the ready sites of @file and @class; n is 0 when there are none. Backwards: of several
 * probes at one instruction the kernel runs the last one first, and calls that begin there began in
 * the order of the sites.
 */
static void fill_group(const struct cairn_trace *t, struct group *g)
{
	g->n = 0;
	g->has_semaphores = false;
	for (size_t i = t->sites.n; i-- > 0;) {
		const struct trace_site *site = t->sites.p[i];
		if (is_of_group(site, t->probes.p[site->pub.probe], g))
			add_site(g, site, i);
	}
}

/*
 * Up to two descriptors per site without uprobe_multi: far beyond the usual limit of 1024. The
 * superuser may exceed the hard limit, too.
 */
static void raise_descriptor_limit(size_t n_sites)
{
	struct rlimit limit, higher;

	if (getrlimit(RLIMIT_NOFILE, &limit))
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
	higher.rlim_cur = higher.rlim_max = 2 * n_sites + 1024;
	if (higher.rlim_max > limit.rlim_max)
		setrlimit(RLIMIT_NOFILE, &higher);
}

static int attach_class(struct cairn_trace *t, struct trace_links *l, struct group *g,
			enum link_moment moment, int program, struct cairn_err *err)
{
	if (program < 0)
		return 0;
	g->moment = moment;
	g->program = program;
	fill_group(t, g);
	return g->n ? attach_group(t, l, g, err) : 0;
}

/* Probes at hits, on some of the sites' instructions. */
static int attach_of(struct cairn_trace *t, struct trace_links *l, struct group *g,
		     enum group_of of, int program, struct cairn_err *err)
{
	g->of = of;
	int e = attach_class(t, l, g, LINK_AT_HIT, program, err);
	g->of = OF_SITES;
	return e;
}

static int attach_by_exits(struct cairn_trace *t, struct trace_links *l, struct group *g,
			   struct cairn_err *err)
{
	int e = attach_of(t, l, g, OF_EXITS, l->exit_fds[g->class], err);

	return e ? e : attach_of(t, l, g, OF_SITES, l->enter_fds[g->class], err);
}

static int attach_copies(struct cairn_trace *t, struct trace_links *l, struct group *g,
			 struct cairn_err *err)
{
	int e = attach_of(t, l, g, OF_RESETS, l->copy_reset_fds[g->class], err);

	e = e ? e : attach_of(t, l, g, OF_EXITS, l->copy_exit_fds[g->class], err);
	return e ? e : attach_of(t, l, g, OF_SITES, l->copy_enter_fds[g->class], err);
}

/* What ftrace refuses is left to kprobes. */
static int attach_entries(struct cairn_trace *t, struct trace_links *l, struct group *g,
			  struct cairn_err *err)
{
	if (!l->has_kernel_multi || l->multi_fds[g->class] < 0)
		return 0;
	g->by_multi = true;
	int e = attach_class(t, l, g, LINK_AT_HIT, l->multi_fds[g->class], err);
	g->by_multi = false;
	return e;
}

/* Returns first, and away last: a call that is seen to begin is seen to end. */
static int attach_file(struct cairn_trace *t, struct trace_links *l, struct group *g,
		       struct cairn_err *err)
{
	enum link_moment entry = l->has_sessions ? LINK_IN_SESSION : LINK_AT_HIT;
	int e = 0;

	for (g->class = 0; g->class < TRACE_N_CLASSES && e == 0; g->class ++) {
		g->follows = LINKS_FOLLOW_NONE;
		e = attach_entries(t, l, g, err);
		if (e == 0)
			e = attach_class(t, l, g, LINK_AT_HIT, l->program_fds[g->class], err);
		g->follows = LINKS_FOLLOW_RETURNS;
		if (e == 0 && !l->has_sessions)
			e = attach_class(t, l, g, LINK_AT_RETURN, l->return_fds[g->class], err);
		if (e == 0)
			e = attach_class(t, l, g, entry, l->follow_fds[g->class], err);
		g->follows = LINKS_FOLLOW_EXITS;
		if (e == 0)
			e = attach_by_exits(t, l, g, err);
		g->follows = LINKS_FOLLOW_COPIES;
		if (e == 0)
			e = attach_copies(t, l, g, err);
	}
	return e;
}

int links_attach(struct cairn_trace *t, struct trace_links *l, struct cairn_err *err)
{
	SCOPE_FREE uint64_t *offsets = calloc(n_places(t), sizeof(*offsets));
	SCOPE_FREE uint64_t *cookies = calloc(n_places(t), sizeof(*cookies));
	SCOPE_FREE uint64_t *semaphores = calloc(n_places(t), sizeof(*semaphores));
	SCOPE_FREE uint32_t *numbers = calloc(n_places(t), sizeof(*numbers));
	struct group g = {.offsets = offsets,
			  .cookies = cookies,
			  .semaphores = semaphores,
			  .numbers = numbers,
			  .located_program = l->located_program};
	int e = 0;

	if (!offsets || !cookies || !semaphores || !numbers)
		return err_nomem(err, "the list of sites");
	if (l->backend != CAIRN_BACKEND_UPROBE_MULTI)
		raise_descriptor_limit(t->sites.n);
	for (size_t f = 0; f < t->files.n && e == 0; f++) {
		g.file = t->files.p[f];
		e = attach_file(t, l, &g, err);
	}
	if (e < 0)
		links_detach(l);
	return e;
}

/*
 * A hit that is missed at an entry is missed by both of its links. The exits of a copy are not those
 * of its entries: a call that is missed as a whole counts as both.
 */
struct links_missed links_missed(const struct trace_links *l)
{
	struct links_missed m = l->missed;
	uint64_t n[LINK_N_ROLES] = {0}, one = 0;

	for (size_t i = 0; l->backend == CAIRN_BACKEND_KPROBE && i < l->fds.n; i++) {
		m.is_unknown |=
			!(l->roles.p[i] == LINK_OF_MULTI ? kernel_multi_missed(l->fds.p[i], &one)
							 : link_kernel_missed(l->fds.p[i], &one));
		n[l->roles.p[i]] += one;
	}
	m.hits += n[LINK_OF_HITS] + n[LINK_OF_ENTRIES] + n[LINK_OF_COPIES] + n[LINK_OF_MULTI];
	m.returns += n[LINK_OF_COPY_EXITS];
	if (n[LINK_OF_RETURNS] > n[LINK_OF_ENTRIES])
		m.returns += n[LINK_OF_RETURNS] - n[LINK_OF_ENTRIES];
	return m;
}

void links_detach(struct trace_links *l)
{
	l->missed = links_missed(l);
	while (l->fds.n)
		close(l->fds.p[--l->fds.n]);
}

void links_fini(struct trace_links *l)
{
	VEC_FREE(&l->fds);
	VEC_FREE(&l->roles);
}
