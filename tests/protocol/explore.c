/* SPDX-License-Identifier: BSD-2-Clause */
/* What is recorded elsewhere is done here. */
#undef memcpy
#undef __atomic_thread_fence
#undef __atomic_store_n

#include "explore.h"

#include <assert.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	MEMORIES_MAX = 64,
	STORES_MAX = 4096,
	EXPLORED_MAX = 512,
	WORDS_OF_STORES = EXPLORED_MAX / 64,
	WORDS_MAX = 96, /* that a reader reads */
	WORD = sizeof(uint64_t),
};

/* ---- recording ---- */

struct store {
	uint64_t at, value, before; /* whole words */
	size_t moment;              /* number among all stores */
	bool is_release;
	size_t n_fences; /* before it */
};

static struct {
	const uint8_t *at;
	size_t n_bytes;
} memories[MEMORIES_MAX];
static size_t n_memories;
static struct store all[STORES_MAX];
static size_t n_all, n_fences;
static bool is_recording;

void record_memory(const void *at, size_t n_bytes)
{
	assert(n_memories < MEMORIES_MAX);
	memories[n_memories].at = at;
	memories[n_memories++].n_bytes = n_bytes;
}

void record_start(void)
{
	is_recording = true;
}

void record_stop(void)
{
	is_recording = false;
}

size_t recorded(void)
{
	return n_all;
}

void record_forget(void)
{
	n_all = n_fences = n_memories = 0;
}

static bool is_of_memory(const volatile void *at)
{
	for (size_t i = 0; i < n_memories; i++)
		if ((const volatile uint8_t *)at >= memories[i].at &&
		    (const volatile uint8_t *)at < memories[i].at + memories[i].n_bytes)
			return true;
	return false;
}

/* The store has been done; @before is what the word was. */
static void add(uint64_t *word, uint64_t before, bool is_release)
{
	assert(n_all < STORES_MAX);
	all[n_all] = (struct store){.at = (uintptr_t)word,
				    .value = *word,
				    .before = before,
				    .moment = n_all,
				    .is_release = is_release,
				    .n_fences = n_fences};
	n_all++;
}

static uint64_t *word_of(const volatile void *at)
{
	return (uint64_t *)((uintptr_t)at & ~(uintptr_t)(WORD - 1));
}

void record_store(volatile void *at, size_t n_bytes, uint64_t value, int order)
{
	bool is = is_recording && is_of_memory(at);
	uint64_t before = is ? *word_of(at) : 0;
	assert(order == __ATOMIC_RELAXED || order == __ATOMIC_RELEASE);
	switch (n_bytes) {
	case 1:
		*(volatile uint8_t *)at = (uint8_t)value;
		break;
	case 4:
		*(volatile uint32_t *)at = (uint32_t)value;
		break;
	default:
		*(volatile uint64_t *)at = value;
	}
	if (is)
		add(word_of(at), before, order == __ATOMIC_RELEASE);
}

void record_fence(int order)
{
	n_fences++;
	__atomic_thread_fence(order);
}

/* Bytes one by one would be more orders; that of the words is enough for what is read in words. */
void *record_copy(void *to, const void *from, size_t n_bytes)
{
	uint8_t *at = to;
	if (!is_recording || !is_of_memory(to))
		return memcpy(to, from, n_bytes);
	for (size_t i = 0; i < n_bytes;) {
		uint64_t *word = word_of(at + i), before = *word;
		size_t in_word = WORD - (uintptr_t)(at + i) % WORD,
		       n = in_word < n_bytes - i ? in_word : n_bytes - i;
		memcpy(at + i, (const uint8_t *)from + i, n);
		add(word, before, false);
		i += n;
	}
	return to;
}

/* ---- what is explored: the stores of interest ---- */

static struct store stores[STORES_MAX];
static size_t n_stores;
static bool is_lawless;

static void choose(const struct explorer *e)
{
	n_stores = 0;
	for (size_t i = 0; i < n_all; i++)
		if (!e->is_of_interest || e->is_of_interest(all[i].at))
			stores[n_stores++] = all[i];
	assert(n_stores <= EXPLORED_MAX);
	is_lawless = e->is_lawless;
}

/* Has store @j to be visible before store @i, which comes later? */
static bool is_ordered(size_t j, size_t i)
{
	if (stores[j].at == stores[i].at)
		return true;
	return !is_lawless && (stores[i].is_release || stores[j].n_fences < stores[i].n_fences);
}

/* What is visible at least. */
struct seen {
	uint64_t bits[WORDS_OF_STORES];
};

static bool has(const struct seen *s, size_t i)
{
	return s->bits[i / 64] >> (i % 64) & 1;
}

static void unite(struct seen *s, const struct seen *with)
{
	for (size_t w = 0; w < WORDS_OF_STORES; w++)
		s->bits[w] |= with->bits[w];
}

/* For each store: it, and all that is visible when it is. */
static struct seen implied[EXPLORED_MAX];

static void imply(void)
{
	for (size_t i = 0; i < n_stores; i++) {
		implied[i] = (struct seen){0};
		implied[i].bits[i / 64] |= UINT64_C(1) << (i % 64);
		for (size_t j = 0; j < i; j++)
			if (is_ordered(j, i))
				unite(&implied[i], &implied[j]);
	}
}

/* ---- the reader ---- */

struct view {
	struct seen seen;
	size_t from; /* moment at which it began: all before are visible */
	uint64_t words[WORDS_MAX];
	size_t n, asked;
	uint64_t next; /* address of the word that it waits for */
	jmp_buf wait;
};

uint64_t view_word(struct view *v, uint64_t at)
{
	if (v->asked < v->n)
		return v->words[v->asked++];
	v->next = at;
	longjmp(v->wait, 1);
}

/* True when it has come to an end; else it waits for v->next. */
static bool run(const struct explorer *e, struct view *v, uint64_t *ret)
{
	v->asked = 0;
	if (setjmp(v->wait))
		return false;
	*ret = e->read(v);
	return true;
}

/* ---- states that were there before ---- */

static uint64_t *states; /* hashes; 0: free */
static size_t n_states, room;

static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 29;
}

/*
 * Two halves of 64 bits: states that are two are taken for one with a probability of 2^-80 for
 * millions of them.
 */
static uint64_t hash(const struct view *v, uint64_t seed)
{
	uint64_t h = seed;
	for (size_t w = 0; w < WORDS_OF_STORES; w++)
		h = mix(h, v->seen.bits[w]);
	for (size_t i = 0; i < v->n; i++)
		h = mix(h, v->words[i] + i);
	return h;
}

static bool insert(uint64_t a, uint64_t b)
{
	for (size_t i = a & (room - 1);; i = (i + 1) & (room - 1)) {
		uint64_t *place = &states[2 * i];
		if (place[0] == a && place[1] == b)
			return false;
		if (place[0] || place[1])
			continue;
		place[0] = a;
		place[1] = b;
		n_states++;
		return true;
	}
}

static void grow(void)
{
	uint64_t *old = states;
	size_t n_old = room;
	room = room ? 2 * room : 1 << 16;
	states = calloc(room, 2 * sizeof(*states));
	if (!states) {
		fprintf(stderr, "no memory for %zu states\n", room);
		exit(1);
	}
	n_states = 0;
	for (size_t i = 0; i < n_old; i++)
		if (old[2 * i] || old[2 * i + 1])
			insert(old[2 * i], old[2 * i + 1]);
	free(old);
}

static bool is_new(const struct view *v)
{
	if (2 * n_states >= room)
		grow();
	return insert(hash(v, 1), hash(v, 2));
}

/* ---- all of them ---- */

/* After the last store that is visible for certain. */
static size_t moment_after(const struct view *v)
{
	size_t moment = v->from;
	for (size_t i = 0; i < n_stores; i++)
		if (has(&v->seen, i) && stores[i].moment >= moment)
			moment = stores[i].moment + 1;
	return moment;
}

static void visit(const struct explorer *e, struct view *v, struct explored *ret);

/* The reader gets @value; what is visible then is visible from then on. */
static void reads(const struct explorer *e, struct view *v, uint64_t value, const struct seen *with,
		  struct explored *ret)
{
	struct seen seen = v->seen;
	assert(v->n < WORDS_MAX);
	if (with)
		unite(&v->seen, with);
	v->words[v->n++] = value;
	visit(e, v, ret);
	v->n--;
	v->seen = seen;
}

/*
 * The last store to @at that is visible for certain, or any later one; without one, what was there
 * before.
 */
static void reads_any(const struct explorer *e, struct view *v, uint64_t at, struct explored *ret)
{
	size_t first = n_stores, i;
	bool is_certain = false;
	for (i = n_stores; i-- > 0 && !is_certain;) {
		if (stores[i].at != at)
			continue;
		first = i;
		is_certain = has(&v->seen, i);
		reads(e, v, stores[i].value, &implied[i], ret);
	}
	if (!is_certain)
		reads(e, v,
		      first < n_stores ? stores[first].before : *(const uint64_t *)(uintptr_t)at,
		      NULL, ret);
}

static void visit(const struct explorer *e, struct view *v, struct explored *ret)
{
	uint64_t result;
	if (!is_new(v) || (is_lawless && ret->n_wrong))
		return;
	if (!run(e, v, &result)) {
		reads_any(e, v, v->next, ret);
		return;
	}
	ret->n_results++;
	if (!e->is_right(result, v->from, moment_after(v)) && !ret->n_wrong++)
		ret->wrong = result;
}

static void explore_from(const struct explorer *e, size_t from, struct explored *ret)
{
	struct view v = {.from = from};
	for (size_t i = 0; i < n_stores && stores[i].moment < from; i++)
		v.seen.bits[i / 64] |= UINT64_C(1) << (i % 64);
	n_states = room = 0;
	visit(e, &v, ret);
	ret->n_states += n_states;
	free(states);
	states = NULL;
}

void explore(const struct explorer *e, const size_t *from, size_t n_from, struct explored *ret)
{
	*ret = (struct explored){0};
	choose(e);
	imply();
	for (size_t i = 0; i < n_from; i++)
		explore_from(e, from[i], ret);
	ret->n_stores = n_stores;
}
