/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing the registry
 *
 * A registration is valid by one store, of its epoch, and ends by one store, of 0. A reader that
 * looks between any two stores, or finds the memory of a process that was killed there, sees the
 * state before or the state after:
 *
 *	add	last_epoch = 0 | strings, times, option, info | epoch = 9 | changes
 *	remove	until_ns, last_epoch = 9 | epoch = 0 | place is queued, changes
 *	renew	add under 10 | remove 9
 *
 * A bar is an enforced order: the stores to its left are in memory before those to its right. The
 * first bar makes the removed registration, which was there before, unreadable before it is
 * overwritten. The bar after "epoch = 0" does the same for the memory that the registration named.
 *
 * Places are used again in the order of their removal, and only when CODECTL_MIN_REMOVED wait. So a
 * late reader still finds removed entries, a program that loads and unloads all day keeps a short
 * registry, and an epoch never comes back.
 *
 * All other state (ranges, queue, unused blocks) is beside the registry. After fork() in another
 * thread's add it is made again from the entries; a block or two of strings may be lost then.
 */
#include "registry_writer.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096,
	UNIT = 32,
	NONE = UINT32_MAX,
	CAPACITY = 1 << 16,
	CAPACITY_MIN = 1 << 12,
	/* bytes, on average: a path of a hundred, a build-id, a debug link */
	STRINGS_PER_ENTRY = 192,
};

/* Eight bytes of whatever type. */
typedef uint64_t __attribute__((may_alias)) word_t;

static void put(void *to, uint64_t value)
{
	__atomic_store_n((word_t *)to, value, __ATOMIC_RELAXED);
}

static void publish(void *to, uint64_t value)
{
	__atomic_store_n((word_t *)to, value, __ATOMIC_RELEASE);
}

/* Earlier stores are in memory before later ones. */
static void keep_order(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

/* Word by word, since readers in this process are promised that, too. @n is a multiple of 8. */
static void put_words(void *to, const void *from, size_t n)
{
	for (size_t i = 0; i < n / sizeof(uint64_t); i++) {
		uint64_t word;
		memcpy(&word, (const uint8_t *)from + i * sizeof(word), sizeof(word));
		put((word_t *)to + i, word);
	}
}

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- memory ---- */

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static size_t entries_bytes(uint32_t capacity)
{
	return round_up(capacity * sizeof(struct codectl_entry), PAGE);
}

static size_t registry_bytes(uint32_t capacity)
{
	return PAGE + entries_bytes(capacity) + (size_t)capacity * STRINGS_PER_ENTRY;
}

static size_t slots_bytes(uint32_t capacity)
{
	return capacity * sizeof(struct registry_slot);
}

/* A file larger than this would raise SIGXFSZ. */
static bool is_file_allowed(size_t n)
{
	struct rlimit limit;
	return getrlimit(RLIMIT_FSIZE, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY ||
	       limit.rlim_cur >= n;
}

/*
 * Private: fork() copies it. The name of a memfd is shown in the maps of every kernel that has
 * them.
 */
static void *map_named(size_t n)
{
	int fd = is_file_allowed(n) ? memfd_create(CODECTL_REGISTRY_NAME, MFD_CLOEXEC) : -1;
	void *at = MAP_FAILED;
	if (fd < 0)
		return at;
	if (ftruncate(fd, (off_t)n) == 0)
		at = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd, 0);
	int saved = errno;
	close(fd);
	errno = saved;
	return at;
}

static int open_sized(struct registry_writer *w, uint32_t capacity)
{
	size_t n = registry_bytes(capacity),
	       beside = slots_bytes(capacity) + ranges_bytes(capacity);
	errno = EFBIG;
	uint8_t *at = map_named(n);
	if (at == MAP_FAILED)
		return -errno;
	uint8_t *memory = mmap(NULL, beside, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED) {
		int rc = -errno;
		munmap(at, n);
		return rc;
	}
	*w = (struct registry_writer){
		.head = (struct codectl_registry *)at,
		.entries = (struct codectl_entry *)(at + PAGE),
		.strings = at + PAGE + entries_bytes(capacity),
		.slots = (struct registry_slot *)memory,
		.ranges_memory = memory + slots_bytes(capacity),
		.capacity = capacity,
		.first_removed = NONE,
		.last_removed = NONE,
		.n_units = 1,
		.max_units = (uint32_t)((size_t)capacity * STRINGS_PER_ENTRY / UNIT),
	};
	ranges_init(&w->ranges, w->ranges_memory, capacity);
	return 0;
}

int registry_writer_open(struct registry_writer *ret)
{
	int rc = open_sized(ret, CAPACITY);
	if (rc == -ENOMEM || rc == -EFBIG)
		rc = open_sized(ret, CAPACITY_MIN);
	return rc;
}

void registry_writer_show(struct registry_writer *w)
{
	static const char magic[8] = CODECTL_REGISTRY_MAGIC;
	uint64_t word;
	struct codectl_registry *head = w->head;
	head->version = CODECTL_REGISTRY_VERSION;
	head->header_size = sizeof(*head);
	head->self = (uintptr_t)head;
	head->size = registry_bytes(w->capacity);
	head->entries = (uintptr_t)w->entries;
	head->entry_stride = sizeof(struct codectl_entry);
	memcpy(&word, magic, sizeof(word));
	publish(head->magic, word);
}

void registry_writer_close(struct registry_writer *w)
{
	munmap(w->slots, slots_bytes(w->capacity) + ranges_bytes(w->capacity));
	munmap(w->head, registry_bytes(w->capacity));
}

/* ---- strings ---- */

struct strings {
	const char *text[2];
	size_t n_text[2]; /* with the NUL; 0: none */
	const void *build_id;
	size_t n_build_id;
	size_t n; /* bytes of all */
};

static const void *pointer(uint64_t at)
{
	return (const void *)(uintptr_t)at;
}

static int measure(const struct codectl_request *request, struct strings *ret)
{
	bool is_elf = request->option == CODE_REGISTER_ELF;
	*ret = (struct strings){
		.text = {pointer(is_elf ? request->elf.pathname : request->jit.name),
			 is_elf ? pointer(request->elf.debug_link_pathname) : NULL},
		.build_id = is_elf ? pointer(request->elf.build_id) : NULL,
		.n_build_id = is_elf ? request->elf.build_id_len : 0,
	};
	ret->n = ret->n_build_id;
	for (size_t i = 0; i < 2; i++) {
		if (!ret->text[i])
			continue;
		ret->n_text[i] = strnlen(ret->text[i], CODECTL_PATH_MAX) + 1;
		if (ret->n_text[i] > CODECTL_PATH_MAX)
			return -ENAMETOOLONG;
		ret->n += ret->n_text[i];
	}
	return 0;
}

static uint32_t class_of(size_t n)
{
	uint32_t class = 0;
	while (n > (size_t)UNIT << class)
		class ++;
	return class;
}

static uint8_t *block_at(const struct registry_writer *w, uint32_t unit)
{
	return w->strings + (size_t)unit * UNIT;
}

/* unit << 4 | class; 0: no room. */
static uint32_t take_block(struct registry_writer *w, uint32_t class)
{
	uint32_t unit = w->unused[class];
	if (unit) {
		memcpy(&w->unused[class], block_at(w, unit), sizeof(unit));
	} else {
		unit = w->n_units;
		if (w->max_units - unit < UINT32_C(1) << class)
			return 0;
		w->n_units += UINT32_C(1) << class;
	}
	return unit << 4 | class;
}

static void give_block(struct registry_writer *w, uint32_t block)
{
	uint32_t unit = block >> 4, class = block & 15;
	memcpy(block_at(w, unit), &w->unused[class], sizeof(unit));
	w->unused[class] = unit;
}

static uint64_t put_bytes(uint8_t **at, const void *from, size_t n)
{
	uint8_t *to = *at;
	if (!n)
		return 0;
	memcpy(to, from, n);
	*at += n;
	return (uintptr_t)to;
}

/* The request then names the copies. */
static void copy_strings(uint8_t *at, const struct strings *s, struct codectl_request *request)
{
	uint64_t text = put_bytes(&at, s->text[0], s->n_text[0]);
	if (request->option == CODE_REGISTER_JIT) {
		request->jit.name = text;
		return;
	}
	request->elf.pathname = text;
	request->elf.debug_link_pathname = put_bytes(&at, s->text[1], s->n_text[1]);
	request->elf.build_id = put_bytes(&at, s->build_id, s->n_build_id);
}

/* ---- places ---- */

/* Which place comes next, and a block for its strings. */
struct place {
	uint32_t number;
	uint32_t block; /* a new one; 0: the slot's own is good, or none is needed */
};

static void queue_removed(struct registry_writer *w, uint32_t number)
{
	w->slots[number].next_removed = NONE;
	if (w->n_removed++)
		w->slots[w->last_removed].next_removed = number;
	else
		w->first_removed = number;
	w->last_removed = number;
}

static uint32_t unqueue_removed(struct registry_writer *w)
{
	uint32_t number = w->first_removed;
	w->first_removed = w->slots[number].next_removed;
	w->n_removed--;
	return number;
}

/* No reader can read the registration there any more. */
static void forget(struct registry_writer *w, uint32_t number)
{
	put(&w->entries[number].last_epoch, 0);
	keep_order();
}

/* Strings of removed registrations, the oldest first, make room for new ones. 0: they do not. */
static uint32_t reclaim_block(struct registry_writer *w, uint32_t class)
{
	for (uint32_t i = w->n_removed; i; i--) {
		uint32_t number = unqueue_removed(w), block = w->slots[number].block;
		queue_removed(w, number);
		if (!block)
			continue;
		forget(w, number);
		w->slots[number].block = 0;
		give_block(w, block);
		if (w->unused[class])
			return take_block(w, class);
	}
	return 0;
}

static int find_place(struct registry_writer *w, const struct strings *s, struct place *ret)
{
	uint32_t fresh = w->head->n_entries;
	bool is_again = w->n_removed >= CODECTL_MIN_REMOVED || fresh == w->capacity;
	if (is_again && !w->n_removed)
		return -ENOSPC;
	*ret = (struct place){.number = is_again ? w->first_removed : fresh};
	uint32_t own = w->slots[ret->number].block, class = class_of(s->n);
	if (!s->n || (own && class <= (own & 15)))
		return 0;
	ret->block = take_block(w, class);
	if (!ret->block)
		ret->block = reclaim_block(w, class);
	if (is_again)
		ret->number = w->first_removed;
	return ret->block ? 0 : -ENOSPC;
}

/* No registration owns the place now, and readers of removed ones see that. */
static struct codectl_entry *take_place(struct registry_writer *w, const struct place *place)
{
	struct registry_slot *slot = &w->slots[place->number];
	struct codectl_entry *e = &w->entries[place->number];
	if (place->number == w->head->n_entries) {
		__atomic_store_n(&w->head->n_entries, place->number + 1, __ATOMIC_RELEASE);
	} else {
		unqueue_removed(w);
		forget(w, place->number);
	}
	if (place->block) {
		uint32_t old = slot->block;
		slot->block = place->block;
		if (old)
			give_block(w, old);
	}
	return e;
}

/* ---- registrations ---- */

static void count_change(struct registry_writer *w)
{
	publish(&w->head->changes, w->head->changes + 1);
}

static void add_at(struct registry_writer *w, const struct place *place, const struct strings *s,
		   struct codectl_request *request, uint64_t when_ns)
{
	struct codectl_entry *e = take_place(w, place);
	copy_strings(block_at(w, w->slots[place->number].block >> 4), s, request);
	put(&e->since_ns, when_ns);
	put(&e->until_ns, 0);
	uint64_t option = request->option; /* with the reserved word after it */
	put(&e->option, option);
	put_words(&e->info, &request->elf, sizeof(request->elf));
	publish(&e->epoch, ++w->last_epoch);
	count_change(w);
}

static void remove_at(struct registry_writer *w, uint32_t number, uint64_t when_ns)
{
	struct codectl_entry *e = &w->entries[number];
	put(&e->until_ns, when_ns);
	put(&e->last_epoch, e->epoch);
	publish(&e->epoch, 0);
	keep_order();
	queue_removed(w, number);
	count_change(w);
}

int registry_writer_add(struct registry_writer *w, const struct codectl_request *request)
{
	struct codectl_request copy = *request;
	struct strings s;
	struct place place;
	struct range range;
	codectl_request_text(request, &range.lo, &range.hi);
	if (ranges_find(&w->ranges, range.lo, range.hi))
		return -EEXIST;
	int rc = measure(request, &s);
	if (rc == 0)
		rc = find_place(w, &s, &place);
	if (rc < 0)
		return rc;
	range.number = place.number;
	ranges_insert(&w->ranges, &range);
	add_at(w, &place, &s, &copy, now_ns());
	return 0;
}

static struct range *find_exactly(struct registry_writer *w, uint64_t lo, uint64_t hi)
{
	struct range *range = ranges_find(&w->ranges, lo, hi);
	return range && range->lo == lo && range->hi == hi ? range : NULL;
}

int registry_writer_remove(struct registry_writer *w, uint64_t lo, uint64_t hi)
{
	const struct range *range = find_exactly(w, lo, hi);
	if (!range)
		return -ENOENT;
	uint32_t number = (uint32_t)range->number;
	ranges_erase(&w->ranges, lo);
	remove_at(w, number, now_ns());
	return 0;
}

int registry_writer_renew(struct registry_writer *w, const struct code_jit_info *jit,
			  void (*prepare)(void *ctx), void *ctx)
{
	struct codectl_request request = {.option = CODE_REGISTER_JIT, .jit = *jit};
	struct range *range = find_exactly(w, jit->text_start, jit->text_end);
	struct strings s;
	struct place place;
	if (!range)
		return -ENOENT;
	int rc = measure(&request, &s);
	if (rc == 0)
		rc = find_place(w, &s, &place);
	if (rc < 0)
		return rc;
	prepare(ctx);
	uint32_t old = (uint32_t)range->number;
	uint64_t when_ns = now_ns();
	add_at(w, &place, &s, &request, when_ns);
	range->number = place.number;
	remove_at(w, old, when_ns);
	return 0;
}

const struct codectl_entry *registry_writer_find(const struct registry_writer *w, uint64_t lo,
						 uint64_t hi)
{
	const struct range *range = ranges_find(&w->ranges, lo, hi);
	return range ? &w->entries[range->number] : NULL;
}

const struct codectl_entry *registry_writer_before(const struct registry_writer *w, uint64_t at)
{
	const struct range *range = ranges_before(&w->ranges, at);
	return range ? &w->entries[range->number] : NULL;
}

/* ---- after a fork ---- */

static void repair_entry(struct registry_writer *w, uint32_t number)
{
	const struct codectl_entry *e = &w->entries[number];
	struct codectl_request request = {.option = (enum code_opt)e->option};
	struct range range = {.number = number};
	if (e->epoch) {
		memcpy(&request.elf, &e->info, sizeof(request.elf));
		codectl_request_text(&request, &range.lo, &range.hi);
		struct range *other = ranges_find(&w->ranges, range.lo, range.hi);
		if (!other) {
			ranges_insert(&w->ranges, &range);
			return;
		}
		/* A new generation is valid, and the old one was not removed yet. */
		if (w->entries[other->number].epoch < e->epoch) {
			uint32_t old = (uint32_t)other->number;
			other->number = number;
			number = old;
		}
		remove_at(w, number, now_ns());
		return;
	}
	queue_removed(w, number);
}

void registry_writer_repair(struct registry_writer *w)
{
	w->first_removed = w->last_removed = NONE;
	w->n_removed = 0;
	memset(w->unused, 0, sizeof(w->unused));
	ranges_init(&w->ranges, w->ranges_memory, w->capacity);
	for (uint32_t i = 0; i < w->head->n_entries; i++)
		repair_entry(w, i);
}
