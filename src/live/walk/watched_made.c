/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code made at run time that processes describe to others: when it is looked at, and what of it is
 * laid over the memory that the code is in
 *
 * A look finds what has changed since the one before, and notes what did not hold any more. So a
 * sample is certain after the next look at its process. Looks take a twentieth of the time at most,
 * and what the first ones take, which read all that is there.
 */
#include <errno.h>
#include <time.h>

#include "base/err.h"
#include "code/jitdump.h"
#include "walk/watched_impl.h"

/* From look to look; how long all looks of a round may take. */
#define EVERY_NS UINT64_C(5000000)
#define ROUND_NS UINT64_C(10000000)
/* The time that looks may take before they have to rest. */
#define BURST_NS UINT64_C(200000000)

enum {
	MAX_SOURCES = 16,
	REST = 20, /* for each moment of looks so many of other work */
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Memory, with or without rows, that is no region's. */
static bool is_memory(const struct walk_mapping *m)
{
	return !m->at && !m->region;
}

int known_note_memory(struct watched *p, struct walk_known *k, const struct code_mapping *m)
{
	if (k->has_memory || !code_is_anonymous(m))
		return 0;
	k->has_memory = true;
	return VEC_ADD(&p->with_memory, (size_t)(k - p->list.p)) ? 0 : -ENOMEM;
}

/* ---- sources ---- */

static int add_descriptor(struct made_sources *s, uint64_t at)
{
	for (size_t i = 0; i < s->descriptors.n; i++)
		if (s->descriptors.p[i] == at)
			return 0;
	return s->descriptors.n == MAX_SOURCES || VEC_ADD(&s->descriptors, at) ? 0 : -ENOMEM;
}

static int add_dump(struct made_sources *s, const char *path)
{
	return s->dumps.n == MAX_SOURCES || VEC_ADD(&s->dumps, path) ? 0 : -ENOMEM;
}

static int find_sources(const struct watched *p, const struct walk_known *k, struct made_sources *s)
{
	uint64_t at;
	int rc = 0;

	s->pid = k->via;
	for (size_t i = 0; i < k->mappings.n && rc == 0; i++) {
		const struct walk_mapping *m = &k->mappings.p[i];
		if (!m->file)
			continue;
		if (jitdump_is_name(p->files->list.p[m->file]->path))
			rc = add_dump(s, p->files->list.p[m->file]->path);
		else if (m->at && files_gdb_list(p->files, m->file, &at))
			rc = add_descriptor(s, at - (m->at & WALK_AT_MASK) + m->lo);
	}
	return rc;
}

static void sources_fini(struct made_sources *s)
{
	VEC_FREE(&s->descriptors);
	VEC_FREE(&s->dumps);
}

/* ---- laying ---- */

struct laying {
	VEC(struct walk_mapping) to;
};

static bool put(struct laying *l, struct walk_mapping m)
{
	struct walk_mapping *last = l->to.n ? &l->to.p[l->to.n - 1] : NULL;

	/* Memory that a page had cut in two. */
	if (last && last->hi == m.lo && is_memory(last) && is_memory(&m) && !last->made &&
	    !m.made && last->file == m.file) {
		last->hi = m.hi;
		return true;
	}
	return m.lo >= m.hi || VEC_ADD(&l->to, m);
}

/* A mapping of memory in parts: those that pages have, and the rest. */
static bool lay_over(struct laying *l, struct walk_mapping m, const struct made_code *made,
		     size_t *next)
{
	bool ok = true;

	while (*next < made->pages.n && made->pages.p[*next].at + (1 << WALK_PAGE_SHIFT) <= m.lo)
		++*next;
	for (size_t i = *next; ok && i < made->pages.n && made->pages.p[i].at < m.hi; i++) {
		uint64_t lo = made->pages.p[i].at, hi = lo + (1 << WALK_PAGE_SHIFT);
		struct walk_mapping part = m;
		lo = lo > m.lo ? lo : m.lo;
		hi = hi < m.hi ? hi : m.hi;
		part.hi = lo;
		ok = put(l, part);
		part.lo = lo;
		part.hi = hi;
		part.made = made->pages.p[i].record + 1;
		ok = ok && put(l, part);
		m.lo = hi;
	}
	return ok && put(l, m);
}

int known_lay_made(struct walk_known *k)
{
	struct laying l = {0};
	size_t next = 0;
	bool ok = true;

	if (!k->made)
		return 0;
	for (size_t i = 0; i < k->mappings.n && ok; i++) {
		struct walk_mapping m = k->mappings.p[i];
		if (is_memory(&m))
			m.made = 0;
		ok = is_memory(&m) ? lay_over(&l, m, k->made, &next) : VEC_ADD(&l.to, m);
	}
	if (!ok) {
		VEC_FREE(&l.to);
		return -ENOMEM;
	}
	VEC_FREE(&k->mappings);
	k->mappings.p = l.to.p;
	k->mappings.n = l.to.n;
	k->mappings.cap = l.to.cap;
	return 0;
}

static int free_later(struct watched *p, uint32_t record)
{
	struct walk_freed f = {record, FREED_PAGE, p->round};

	return VEC_ADD(&p->freed, f) ? 0 : -ENOMEM;
}

/* It cannot be looked at again. A JIT that never made code anew is believed not to have since. */
static int note_end(struct watched *p, const struct walk_known *k)
{
	const struct made_code *made = k->made;

	if (!made || !made->has_replaced || !made->rows.n)
		return 0;
	return dated_stale(p, k, made->rows.p[0].at, made->rows.p[made->rows.n - 1].at);
}

int known_forget_made(struct watched *p, struct walk_known *k)
{
	int rc = note_end(p, k);

	for (size_t i = 0; k->made && i < k->made->pages.n; i++)
		rc = free_later(p, k->made->pages.p[i].record) < 0 ? -ENOMEM : rc;
	for (size_t i = 0; k->made && i < k->mappings.n; i++)
		k->mappings.p[i].made = 0;
	p->n_made -= k->made != NULL;
	made_free(k->made);
	k->made = NULL;
	VEC_FREE(&k->remade);
	return rc;
}

/* ---- looks ---- */

static int memory_of(const struct walk_known *k, struct made_interval **ret, size_t *ret_n)
{
	*ret_n = 0;
	*ret = calloc(k->mappings.n ? k->mappings.n : 1, sizeof(**ret));
	for (size_t i = 0; *ret && i < k->mappings.n; i++) {
		const struct walk_mapping *m = &k->mappings.p[i];
		if (!is_memory(m))
			continue;
		if (*ret_n && (*ret)[*ret_n - 1].hi == m->lo)
			(*ret)[*ret_n - 1].hi = m->hi;
		else
			(*ret)[(*ret_n)++] = (struct made_interval){m->lo, m->hi};
	}
	return *ret ? 0 : -ENOMEM;
}

/* What @change says does not hold since the last look. */
static int note_change(struct watched *p, const struct walk_known *k,
		       const struct made_change *change)
{
	int rc = 0;

	for (size_t i = 0; i < change->stale.n && rc == 0; i++)
		rc = dated_stale(p, k, change->stale.p[i].lo, change->stale.p[i].hi);
	return rc;
}

/* Mappings do not lead there any more. */
static int drop(struct watched *p, const struct made_change *change)
{
	int rc = 0;

	for (size_t i = 0; i < change->dropped.n && rc == 0; i++)
		rc = free_later(p, change->dropped.p[i]);
	return rc;
}

static int build(struct watched *p, struct walk_known *k)
{
	struct made_change change = {0};
	struct made_interval *within;
	size_t n_within;
	int rc = memory_of(k, &within, &n_within);

	rc = rc ? rc : made_build(k->made, p->tables, within, n_within, &change);
	rc = rc ? rc : note_change(p, k, &change);
	rc = rc ? rc : known_lay_made(k);
	rc = rc ? rc : known_mark(p, k);
	rc = rc ? rc : drop(p, &change);
	made_change_fini(&change);
	free(within);
	if (k->made->is_cut)
		watched_leave_out(p, k);
	return rc;
}

static int look(struct watched *p, struct walk_known *k)
{
	struct made_sources from = {0};
	/* What came after that may be reported after this look. */
	uint64_t now = p->reported_ns ? p->reported_ns : now_ns();
	bool is_changed = false;
	int rc = find_sources(p, k, &from);

	if (rc == 0 && !k->made && (from.descriptors.n || from.dumps.n)) {
		k->made = calloc(1, sizeof(*k->made));
		rc = k->made ? 0 : -ENOMEM;
		p->n_made += k->made != NULL;
	}
	if (rc == 0 && k->made)
		rc = made_read(k->made, &from, p->tables, &is_changed);
	sources_fini(&from);
	k->is_searched = rc == 0;
	if (rc == 0 && k->made && (is_changed || k->made->is_moved))
		rc = build(p, k);
	if (rc == 0 && k->made) {
		k->made->looked_ns = k->made->is_behind ? k->made->looked_ns : now;
		k->made->is_moved = k->made->is_unsure = false;
		k->remade.n = 0;
	}
	return rc;
}

/* Those that have memory with code; a process that has ended is not among them any more. */
static void forget_gone(struct watched *p)
{
	size_t to = 0;

	for (size_t i = 0; i < p->with_memory.n; i++) {
		struct walk_known *k = &p->list.p[p->with_memory.p[i]];
		k->has_memory = !k->has_ended;
		if (k->has_memory)
			p->with_memory.p[to++] = p->with_memory.p[i];
	}
	p->with_memory.n = to;
}

/* When the next round may begin. */
static uint64_t rest_after(struct watched *p, uint64_t now, uint64_t took)
{
	uint64_t allowed;

	if (!p->made_began_ns)
		p->made_began_ns = now;
	p->made_took_ns += took;
	allowed = BURST_NS + (now - p->made_began_ns) / REST;
	if (p->made_took_ns <= allowed)
		return now + EVERY_NS;
	return now + (p->made_took_ns - allowed) * REST;
}

int watched_look_at_made(struct watched *p, bool is_last, struct cairn_err *err)
{
	uint64_t began = now_ns(), took = 0;
	int rc = 0;

	if (!p->tables || !p->with_memory.n || (!is_last && began < p->made_after_ns))
		return 0;
	forget_gone(p);
	/* The next round begins where the last one ended. */
	for (size_t n = p->with_memory.n; n && rc == 0 && (is_last || took < ROUND_NS); n--) {
		p->next_made = (p->next_made + 1) % p->with_memory.n;
		struct walk_known *k = &p->list.p[p->with_memory.p[p->next_made]];
		if (k->made || (!k->is_searched && !is_last))
			rc = look(p, k);
		took = now_ns() - began;
	}
	p->made_after_ns = rest_after(p, began + took, took);
	return rc < 0 ? err_nomem(err, "code made at run time") : 0;
}

bool watched_is_uncertain(const struct watched *p, int pid, uint64_t time_ns)
{
	const struct walk_known *k = watched_find(p, pid);

	return k && k->made && k->made->pages.n && time_ns >= k->made->looked_ns;
}
