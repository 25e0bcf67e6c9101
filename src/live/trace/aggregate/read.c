/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From maps to rows
 *
 * A group is a key with its cells, added up over the processors. Keys that are shown alike become
 * one group: of "abc" cut to two characters and "abd" one row "ab..." is left. Then each group's
 * cells become values.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "base/scope.h"
#include "trace/aggregate/aggregate.h"
#include "trace/attach/kernel.h"
#include "trace/stacks/stacks.h"
#include "trace.skel.h"

/* How long a set of maps is waited for that hits in progress still write to. */
#define QUIET_NS    1000000000u
#define LOOK_NS_MIN 20000
#define LOOK_NS_MAX 2000000
/* From so many hits on, the sum of low halves may have wrapped. */
#define SUMS_MAX    UINT32_MAX

struct group {
	uint8_t *key; /* NULL: the row of a probe without keys, or its others */
	uint32_t probe;
	bool may_have_wrapped;
	uint64_t *cells;
};

struct reading {
	struct cairn_trace *t;
	const struct aggregates *a;
	struct arena arena;
	VEC(struct group) groups;
	bool is_max[AGGREGATE_CELLS_MAX];
	uint32_t n_cpus;  /* 1: the map is shared */
	uint64_t *values; /* of one key, of all processors */
};

struct result {
	struct cairn_aggregates pub;
	struct arena arena;
};

/* ---- hits in progress ---- */

static bool wait_a_little(uint64_t end_ns, uint64_t *pause_ns)
{
	struct timespec pause = {.tv_nsec = (long)*pause_ns};

	if (trace_now_ns() >= end_ns)
		return false;
	nanosleep(&pause, NULL);
	*pause_ns = *pause_ns * 2 < LOOK_NS_MAX ? *pause_ns * 2 : LOOK_NS_MAX;
	return true;
}

static bool wait_for_slots(const uint8_t *slots, uint32_t n, size_t stride)
{
	uint64_t end_ns = trace_now_ns() + QUIET_NS, pause_ns = LOOK_NS_MIN;

	for (uint32_t i = 0; i < n; i++) {
		const uint64_t *turn = (const uint64_t *)(const void *)(slots + i * stride);
		uint64_t first = __atomic_load_n(turn, __ATOMIC_SEQ_CST);
		while (first & 1 && __atomic_load_n(turn, __ATOMIC_SEQ_CST) == first)
			if (!wait_a_little(end_ns, &pause_ns))
				return false;
	}
	return true;
}

/* Waits until no hit that began before is in progress. -EAGAIN: one is for too long. */
static int wait_for_hits(const struct trace_kernel *k)
{
	const struct bpf_map *map = k->bpf->maps.slots;
	uint32_t n = bpf_map__max_entries(map);
	size_t stride = (bpf_map__value_size(map) + 7u) / 8 * 8;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (n * stride + page - 1) / page * page;
	uint8_t *slots = mmap(NULL, size, PROT_READ, MAP_SHARED, bpf_map__fd(map), 0);

	if (slots == MAP_FAILED)
		return -errno;
	bool is_quiet = wait_for_slots(slots, n, stride);
	munmap(slots, size);
	return is_quiet ? 0 : -EAGAIN;
}

/* ---- groups ---- */

/* So that keys that are shown alike are alike. */
static void canonical_string(uint8_t *key, const struct aggregate_part *part, uint32_t from)
{
	struct key_string *s = (struct key_string *)(void *)(key + part->out - from);
	uint16_t cut = s->length & TRACE_STRING_CUT;
	uint16_t n = s->length & (uint16_t)~TRACE_STRING_CUT;

	n = n ? (uint16_t)(n - 1) : 0; /* without the NUL */
	n = n < part->n_bytes ? n : part->n_bytes;
	if (n > part->n_shown) {
		n = part->n_shown;
		cut = TRACE_STRING_CUT;
	}
	memset(s->bytes + n, 0, part->n_bytes - n);
	s->length = (uint16_t)(n | cut);
}

static bool is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Whether two inlined copies are of one call, as it is shown. */
static bool has_same_caller(const struct cairn_site *a, const struct cairn_site *b)
{
	const struct cairn_inlined_call *x = &a->chain[0], *y = &b->chain[0];

	if (!a->n_chain || !b->n_chain || x->call_line != y->call_line ||
	    !is_same(x->call_file, y->call_file) || (a->n_chain == 1) != (b->n_chain == 1))
		return false;
	return a->n_chain == 1 ? is_same(a->container, b->container)
			       : is_same(a->chain[1].function, b->chain[1].function);
}

/* Copies that are called from one line of one function have one caller: the first of them. */
static void canonical_caller(const struct reading *r, const struct trace_probe *p, uint8_t *at)
{
	uint64_t id, site;

	memcpy(&id, at, sizeof(id));
	site = id / 2 - 1;
	if (!id || id % 2 || site >= r->t->sites.n)
		return;
	for (uint64_t i = p->pub.first_site; i < site; i++)
		if (has_same_caller(r->t->sites.p[i]->pub.site, r->t->sites.p[site]->pub.site)) {
			id = (i + 1) * 2;
			memcpy(at, &id, sizeof(id));
			return;
		}
}

static void canonical_key(const struct reading *r, const struct trace_probe *p, uint8_t *key)
{
	const struct aggregates *a = r->a;
	uint32_t from = 8 * a->n_numbers;

	for (uint32_t i = a->n_numbers; i < p->pub.n_values; i++)
		if (p->parts[i].kind == PART_STRING)
			canonical_string(key, &p->parts[i], from);
	if (a->plan.stack)
		canonical_caller(r, p, key + a->plan.stack - from);
	if (a->plan.comm) {
		char *comm = (char *)key + a->plan.comm - from;
		size_t n = strnlen(comm, 15);
		memset(comm + n, 0, 16 - n);
	}
}

static bool is_empty(const struct reading *r)
{
	uint64_t any = 0;

	for (uint32_t c = 0; c < r->n_cpus; c++)
		any |= r->values[(size_t)c * r->a->plan.n_cells];
	return !any;
}

/* Adds the cells of all processors to a group's. */
static void add_cells(const struct reading *r, struct group *g)
{
	uint32_t n = r->a->plan.n_cells;

	for (uint32_t c = 0; c < r->n_cpus; c++) {
		const uint64_t *from = r->values + (size_t)c * n;
		g->may_have_wrapped |= from[0] > SUMS_MAX;
		for (uint32_t i = 0; i < n; i++) {
			if (!r->is_max[i])
				g->cells[i] += from[i];
			else if (from[i] > g->cells[i])
				g->cells[i] = from[i];
		}
	}
}

static int keep_group(struct reading *r, const uint8_t *key, uint32_t probe)
{
	const struct aggregates *a = r->a;
	struct group g = {.probe = probe};

	if (is_empty(r) || probe >= r->t->probes.n)
		return 0;
	g.cells = arena_array(&r->arena, a->plan.n_cells, sizeof(*g.cells));
	g.key = key ? arena_alloc(&r->arena, a->plan.n_key) : NULL;
	if (!g.cells || (key && !g.key))
		return -ENOMEM;
	add_cells(r, &g);
	if (key) {
		memcpy(g.key, key, a->plan.n_key);
		canonical_key(r, r->t->probes.p[probe], g.key);
	}
	return VEC_ADD(&r->groups, g) ? 0 : -ENOMEM;
}

static int read_groups(struct reading *r, int fd)
{
	uint8_t key[AGGREGATE_SLOT_MAX] = {0};
	uint8_t *stored = key + r->a->key_from;
	void *before = NULL;
	uint32_t probe;
	int e = 0;

	while (e == 0 && bpf_map_get_next_key(fd, before, stored) == 0) {
		before = stored;
		memcpy(&probe, key, sizeof(probe));
		e = bpf_map_lookup_elem(fd, stored, r->values) ? -errno : keep_group(r, key, probe);
	}
	return e;
}

/* No hit uses these maps any more. */
static int empty_groups(int fd)
{
	uint8_t key[AGGREGATE_SLOT_MAX];

	while (bpf_map_get_next_key(fd, NULL, key) == 0)
		if (bpf_map_delete_elem(fd, key))
			return -errno;
	return 0;
}

static int read_totals(struct reading *r, int fd, uint32_t first, bool clears)
{
	size_t n_bytes = (size_t)r->n_cpus * r->a->plan.n_cells * 8;
	int e = 0;

	for (uint32_t i = 0; e == 0 && i < r->t->probes.n; i++) {
		uint32_t at = first + i;
		if (bpf_map_lookup_elem(fd, &at, r->values))
			return -errno;
		e = keep_group(r, NULL, i);
		if (e || !clears || is_empty(r))
			continue;
		memset(r->values, 0, n_bytes);
		if (bpf_map_update_elem(fd, &at, r->values, BPF_ANY))
			e = -errno;
	}
	return e;
}

static int read_set(struct reading *r, bool is_other)
{
	const struct trace_bpf *bpf = r->t->kernel->bpf;
	int groups = bpf_map__fd(is_other ? bpf->maps.groups_other : bpf->maps.groups);
	uint32_t first = is_other ? r->a->plan.n_probes : 0;
	bool clears = r->a->clears;
	int e = r->a->plan.n_key ? read_groups(r, groups) : 0;

	e = e ? e : read_totals(r, bpf_map__fd(bpf->maps.totals), first, clears);
	return !e && clears && r->a->plan.n_key ? empty_groups(groups) : e;
}

/*
 * Reads the maps, or, when the trace clears, the set that hits no longer use. Once the probes are
 * gone both sets are read: a set that was waited for in vain may have been left.
 */
static int read_maps(struct reading *r)
{
	struct trace_kernel *k = r->t->kernel;
	bool is_over = !k->links.fds.n, is_other = k->bpf->bss->epoch & 1;

	if (r->a->clears && !is_over)
		__atomic_fetch_xor(&k->bpf->bss->epoch, 1, __ATOMIC_SEQ_CST);
	int e = r->a->clears || is_over ? wait_for_hits(k) : 0;
	e = e ? e : read_set(r, is_other);
	return !e && r->a->clears && is_over ? read_set(r, !is_other) : e;
}

/* ---- rows ---- */

static int compare_keys(const void *a, const void *b, void *ctx)
{
	const struct group *x = a, *y = b;
	const struct aggregates *all = ctx;

	if (!x->key || !y->key)
		return x->key ? -1 : y->key ? 1 : (x->probe > y->probe) - (x->probe < y->probe);
	return memcmp(x->key, y->key, all->plan.n_key);
}

static void merge_into(const struct reading *r, struct group *to, const struct group *from)
{
	to->may_have_wrapped |= from->may_have_wrapped;
	for (uint32_t i = 0; i < r->a->plan.n_cells; i++) {
		if (!r->is_max[i])
			to->cells[i] += from->cells[i];
		else if (from->cells[i] > to->cells[i])
			to->cells[i] = from->cells[i];
	}
}

static void merge_alike(struct reading *r)
{
	size_t n = 0;

	if (r->groups.n)
		qsort_r(r->groups.p, r->groups.n, sizeof(r->groups.p[0]), compare_keys,
			(void *)(uintptr_t)r->a);
	for (size_t i = 0; i < r->groups.n; i++) {
		struct group *g = &r->groups.p[i];
		if (n && !compare_keys(&r->groups.p[n - 1], g, (void *)(uintptr_t)r->a))
			merge_into(r, &r->groups.p[n - 1], g);
		else
			r->groups.p[n++] = *g;
	}
	r->groups.n = n;
}

static struct cairn_number number_of_word(uint64_t v, bool is_signed)
{
	return aggregate_number(is_signed ? (__int128)(int64_t)v : (__int128)v);
}

/* Bucket @i of a histogram by powers of two. */
static void hist_bounds(const struct trace_update *u, uint32_t i, struct cairn_aggregate_bucket *b)
{
	bool is_negative = i < u->n_below;
	uint32_t power = is_negative ? u->n_below - 1 - i : i - u->n_below - 1;

	if (i == u->n_below)
		return;
	struct cairn_number small = aggregate_number((__int128)1 << power);
	struct cairn_number large = aggregate_number(((__int128)1 << power << 1) - 1);
	/* The least signed number has no counterpart. */
	if (is_negative && power == 63)
		large = small;
	b->from = is_negative ? large : small;
	b->to = is_negative ? small : large;
	b->from.is_negative = b->to.is_negative = is_negative;
}

static void lhist_bounds(const struct trace_update *u, uint32_t i, struct cairn_aggregate_bucket *b)
{
	__int128 from = u->from + (__int128)u->step * ((__int128)i - 1);

	b->is_below = i == 0;
	b->is_above = i == u->n_buckets - 1;
	b->from = b->is_below ? aggregate_number(0) : aggregate_number(from);
	b->to = b->is_above ? aggregate_number(0) : aggregate_number(from + u->step - 1);
}

static int make_buckets(struct arena *arena, const struct trace_update *u, const uint64_t *cells,
			struct cairn_aggregate_value *v)
{
	uint32_t first = 0, end = u->n_buckets;

	while (end && !cells[end - 1])
		end--;
	while (first < end && !cells[first])
		first++;
	struct cairn_aggregate_bucket *b = arena_array(arena, end - first + 1u, sizeof(*b));
	if (!b)
		return -ENOMEM;
	v->buckets = b;
	v->n_buckets = end - first;
	for (uint32_t i = first; i < end; i++, b++) {
		b->count = cells[i];
		if (u->kind == TRACE_UPDATE_HIST)
			hist_bounds(u, i, b);
		else
			lhist_bounds(u, i, b);
	}
	return 0;
}

static __int128 sum_of(const uint64_t *cells, bool is_signed)
{
	__int128 high = is_signed ? (__int128)(int64_t)cells[1] : (__int128)cells[1];

	return high * ((__int128)1 << 32) + cells[0];
}

static int make_value(struct arena *arena, const struct group *g, const struct trace_update *u,
		      bool is_signed, struct cairn_aggregate_value *v)
{
	const uint64_t *cells = g->cells + u->cell + 1;
	uint64_t sign = is_signed ? UINT64_C(1) << 63 : 0;

	v->n = g->cells[0];
	v->is_known = true;
	if (u->kind == TRACE_UPDATE_NONE)
		return 0;
	v->unreadable = g->cells[u->cell];
	v->n -= v->unreadable < v->n ? v->unreadable : v->n;
	if (u->kind == TRACE_UPDATE_HIST || u->kind == TRACE_UPDATE_LHIST)
		return make_buckets(arena, u, cells, v);
	if (u->kind == TRACE_UPDATE_QUANTILES)
		aggregate_quantiles(u, cells, is_signed, v);
	v->is_known = u->kind == TRACE_UPDATE_SUM ? !g->may_have_wrapped : v->n > 0;
	v->number = u->kind == TRACE_UPDATE_SUM   ? aggregate_number(sum_of(cells, is_signed))
		    : u->kind == TRACE_UPDATE_MIN ? number_of_word(~cells[0] ^ sign, is_signed)
						  : number_of_word(cells[0] ^ sign, is_signed);
	return 0;
}

static int make_row(const struct reading *r, struct result *result, const struct group *g,
		    struct cairn_aggregate_row *row)
{
	const struct aggregates *a = r->a;
	const struct trace_probe *p = r->t->probes.p[g->probe];
	struct cairn_aggregate_value *values =
		arena_array(&result->arena, a->n_items, sizeof(*values));
	uint8_t *key = g->key ? arena_alloc(&result->arena, a->plan.n_key) : NULL;
	int e = values && (key || !g->key) ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < a->n_items && e == 0; i++) {
		e = make_value(&result->arena, g, &a->plan.updates[i], p->is_signed >> i & 1,
			       &values[i]);
		if (a->items[i].kind == CAIRN_AGGREGATE_AVG && !values[i].n)
			values[i].is_known = false;
	}
	if (key)
		memcpy(key, g->key, a->plan.n_key);
	*row = (struct cairn_aggregate_row){.probe = &p->pub,
					    .is_others = !g->key && a->by,
					    .hits = g->cells[0],
					    .values = values,
					    .key = key};
	return e;
}

static long double approximately(const struct cairn_number *n)
{
	long double size = (long double)n->high * 0x1p64L + (long double)n->low;

	return n->is_negative ? -size : size;
}

/* Rows are in this order; the largest comes first. */
static long double rank(const struct aggregates *a, const struct cairn_aggregate_row *row)
{
	const struct cairn_aggregate_value *v = &row->values[0];

	switch (a->items[0].kind) {
	case CAIRN_AGGREGATE_SUM:
	case CAIRN_AGGREGATE_MAX:
		return approximately(&v->number);
	case CAIRN_AGGREGATE_MIN:
		return -approximately(&v->number);
	case CAIRN_AGGREGATE_AVG:
		return v->n ? approximately(&v->number) / (long double)v->n : 0;
	default:
		return (long double)row->hits;
	}
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct cairn_aggregate_row *x = a, *y = b;
	const struct aggregates *all = ctx;
	bool known_x = x->values[0].is_known, known_y = y->values[0].is_known;

	if (x->is_others != y->is_others)
		return x->is_others - y->is_others;
	if (known_x != known_y)
		return known_y - known_x;
	long double rank_x = rank(all, x), rank_y = rank(all, y);
	if (rank_x != rank_y)
		return rank_x < rank_y ? 1 : -1;
	if (x->key && y->key)
		return memcmp(x->key, y->key, all->plan.n_key);
	return (x->probe > y->probe) - (x->probe < y->probe);
}

/* The counters of the summary are those of the rows. */
static void count_events(const struct reading *r)
{
	struct cairn_trace *t = r->t;

	for (size_t i = 0; i < t->probes.n; i++)
		t->probes.p[i]->events = r->a->cleared[i];
	for (size_t i = 0; i < r->groups.n; i++) {
		const struct group *g = &r->groups.p[i];
		t->probes.p[g->probe]->events += g->cells[0];
		if (r->a->clears)
			r->a->cleared[g->probe] += g->cells[0];
	}
}

/* Hits of which the stack that is their key is not complete. */
static uint64_t n_of_cut_stacks(const struct reading *r)
{
	const struct trace_stacks *s = r->t->stacks;
	uint64_t n = 0;

	for (size_t i = 0; i < r->groups.n; i++) {
		const struct group *g = &r->groups.p[i];
		uint64_t id[2];

		if (!g->key)
			continue;
		memcpy(id, g->key + r->a->plan.stack - 8 * r->a->n_numbers, sizeof(id));
		n += stacks_key_is_cut(s, id) ? g->cells[0] : 0;
	}
	return n;
}

static void count_cut(const struct reading *r)
{
	struct trace_stacks *s = r->t->stacks;

	if (s && s->of == STACKS_WHOLE && r->a->plan.stack)
		s->n_cut = (r->a->clears ? s->n_cut : 0) + n_of_cut_stacks(r);
}

static int make_rows(struct reading *r, struct result *result)
{
	struct cairn_aggregate_row *rows =
		arena_array(&result->arena, r->groups.n + 1, sizeof(*rows));
	int e = rows ? 0 : -ENOMEM;

	for (size_t i = 0; i < r->groups.n && e == 0; i++) {
		e = make_row(r, result, &r->groups.p[i], &rows[i]);
		result->pub.hits += rows[i].hits;
	}
	if (e)
		return e;
	qsort_r(rows, r->groups.n, sizeof(*rows), compare_rows, (void *)(uintptr_t)r->a);
	result->pub.rows = rows;
	result->pub.n_rows = r->groups.n;
	return 0;
}

static void begin_reading(struct cairn_trace *t, struct reading *r)
{
	const struct bpf_map *totals = t->kernel->bpf->maps.totals;
	int n_cpus = libbpf_num_possible_cpus();

	r->t = t;
	r->a = t->aggregates;
	r->n_cpus = bpf_map__type(totals) == BPF_MAP_TYPE_PERCPU_ARRAY && n_cpus > 0
			    ? (uint32_t)n_cpus
			    : 1;
	r->values = calloc((size_t)r->n_cpus * r->a->plan.n_cells, 8);
	arena_init(&r->arena);
	for (uint32_t i = 0; i < r->a->n_items; i++) {
		const struct trace_update *u = &r->a->plan.updates[i];
		if (u->kind == TRACE_UPDATE_MIN || u->kind == TRACE_UPDATE_MAX ||
		    u->kind == TRACE_UPDATE_QUANTILES)
			r->is_max[u->cell + 1] = true;
	}
}

static int read_all(struct reading *r, struct result *result)
{
	struct aggregates *a = r->t->aggregates;
	int e = r->values ? 0 : -ENOMEM;

	if (e == 0 && r->t->stacks && a->clears)
		stacks_begin_interval(r->t->stacks);
	e = e ? e : read_maps(r);
	if (e)
		return e;
	result->pub.from_ns = a->from_ns;
	result->pub.to_ns = trace_now_ns();
	if (a->clears)
		a->from_ns = result->pub.to_ns;
	merge_alike(r);
	count_events(r);
	count_cut(r);
	return make_rows(r, result);
}

static int reading_error(int e, struct cairn_err *err)
{
	if (e == -EAGAIN)
		return err_set(err, e, "a hit has been in progress for a second");
	return err_set(err, e, "reading the maps: %s", strerror(-e));
}

int cairn_trace_aggregates(struct cairn_trace *t, struct cairn_aggregates **ret,
			   struct cairn_err *err)
{
	if (!t->aggregates || !t->kernel)
		return err_set(err, -EINVAL, t->kernel ? "this trace has events" : "not attached");
	struct reading *r = calloc(1, sizeof(*r));
	struct result *result = calloc(1, sizeof(*result));
	int e = r && result ? 0 : -ENOMEM;

	if (e == 0) {
		arena_init(&result->arena);
		begin_reading(t, r);
		e = read_all(r, result);
		arena_fini(&r->arena);
		VEC_FREE(&r->groups);
		free(r->values);
	}
	free(r);
	if (e == 0) {
		*ret = &result->pub;
		return 0;
	}
	if (result)
		cairn_aggregates_free(&result->pub);
	return reading_error(e, err);
}

void cairn_aggregates_free(struct cairn_aggregates *a)
{
	struct result *result = (struct result *)a;

	if (!a)
		return;
	arena_fini(&result->arena);
	free(result);
}

size_t cairn_number_text(const struct cairn_number *n, char *buf, size_t size)
{
	char digits[48];
	size_t at = sizeof(digits) - 1;
	unsigned __int128 left = (unsigned __int128)n->high << 64 | n->low;

	digits[at] = 0;
	do {
		digits[--at] = (char)('0' + (int)(left % 10));
		left /= 10;
	} while (left);
	if (n->is_negative)
		digits[--at] = '-';
	int length = snprintf(buf, size, "%s", digits + at);
	return length < 0 ? 0 : (size_t)length;
}
