/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writers and readers in one process, for ThreadSanitizer
 *
 *	threads [SECONDS]
 *
 * Two threads write a region each, one registers objects, and two read all of it by the header
 * alone, with loads of their own: entries, then tables, then the epoch again. Exits with 1 when a
 * row was of another generation; the sanitizer tells what is not ordered.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "agent/process.h"

enum {
	WRITERS = 2,
	READERS = 2,
	PLACES = 8,
	PLACE = 64,
	OBJECTS = 4,
	TABLES_MAX = 1000,
	GENERATION = 1 << 12
};

static char *const regions[WRITERS] = {(char *)0x100000000, (char *)0x200000000};
static bool is_over;
static const struct codectl_registry *head;
static unsigned long n_rows, n_again, n_wrong;

static bool goes_on(void)
{
	return !__atomic_load_n(&is_over, __ATOMIC_RELAXED);
}

/* A row's CFA and return address say the same number; its place is in the CFA. */
static void *write_region(void *which)
{
	char *region = regions[(size_t)which];
	struct cairn_jit *jit;
	if (cairn_jit_open(region, 4096, NULL, &jit))
		abort();
	for (unsigned i = 0; goes_on(); i++) {
		char *at = region + i * 5 % PLACES * PLACE;
		struct cairn_jit_frame f;
		struct cairn_jit_info info = {.size = sizeof(info), .name = "code"};
		cairn_jit_withdraw(jit, at, at + PLACE);
		cairn_jit_begin(&f, at);
		cairn_jit_cfa(&f, at, CAIRN_JIT_SP,
			      (int32_t)(i % GENERATION * PLACES + i * 5 % PLACES));
		cairn_jit_ra_saved(&f, at, (int32_t)(i % GENERATION));
		if (cairn_jit_publish(jit, &f, at + PLACE, &info))
			abort();
	}
	return NULL;
}

static void *register_objects(void *unused)
{
	for (uint64_t i = 0; goes_on(); i++) {
		uint64_t lo = (i % OBJECTS + 1) << 20;
		struct code_elf_info elf = {.elf_start = lo,
					    .elf_end = lo + 4096,
					    .text_start = lo,
					    .text_end = lo + 4096,
					    .pathname = (uintptr_t) "/object"};
		struct code_unregister_info range = {lo, lo + 4096};
		if (codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0) ||
		    codectl(CODE_UNREGISTER, &range, sizeof(range), 0))
			abort();
	}
	return NULL;
}

static uint64_t load(const void *at)
{
	return __atomic_load_n((const uint64_t *)at, __ATOMIC_ACQUIRE);
}

/*
 * Counts live rows, and those that are not of their place: only one generation has both numbers of
 * a row.
 */
static void read_table(const struct code_jit_table *t, unsigned long *rows, unsigned long *wrong)
{
	uint64_t used = load(&t->used_len);
	for (uint64_t off = 0; off < used; off += sizeof(struct code_jit_unwind_fre)) {
		const uint8_t *row = (const uint8_t *)(t + 1) + off;
		uint64_t place = load(row), rule = load(row + 8);
		if (!(uint32_t)place)
			continue;
		++*rows;
		*wrong += (uint32_t)rule != (rule >> 32) * PLACES + (place >> 32) / PLACE;
	}
}

static void read_entry(const struct codectl_entry *e)
{
	unsigned long rows = 0, wrong = 0;
	uint64_t epoch = load(&e->epoch), option = load(&e->option),
		 unwind = load(&e->info.jit.unwind_head);
	if (!epoch || load(&e->epoch) != epoch || (uint32_t)option != CODE_REGISTER_JIT)
		return;
	for (int i = 0; unwind && i < TABLES_MAX; i++) {
		const struct code_jit_table *t = (const void *)(uintptr_t)unwind;
		read_table(t, &rows, &wrong);
		unwind = load(&t->next);
	}
	bool is_same = load(&e->epoch) == epoch;
	__atomic_fetch_add(is_same ? &n_rows : &n_again, rows, __ATOMIC_RELAXED);
	if (is_same)
		__atomic_fetch_add(&n_wrong, wrong, __ATOMIC_RELAXED);
}

static void *read_all(void *unused)
{
	while (goes_on()) {
		uint64_t n = load(&head->entry_stride) >> 32;
		for (uint64_t i = 0; i < n; i++)
			read_entry((const struct codectl_entry *)(uintptr_t)head->entries + i);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	struct timespec seconds = {.tv_sec = argc > 1 ? atoi(argv[1]) : 10};
	struct registry_writer *w;
	pthread_t threads[WRITERS + READERS + 1];
	size_t n = 0;
	if (process_enter(&w))
		return 1;
	head = w->head;
	process_leave();
	for (size_t i = 0; i < WRITERS; i++)
		pthread_create(&threads[n++], NULL, write_region, (void *)i);
	pthread_create(&threads[n++], NULL, register_objects, NULL);
	for (size_t i = 0; i < READERS; i++)
		pthread_create(&threads[n++], NULL, read_all, NULL);
	nanosleep(&seconds, NULL);
	__atomic_store_n(&is_over, true, __ATOMIC_RELAXED);
	while (n)
		pthread_join(threads[--n], NULL);
	printf("%lu rows, %lu read again, %lu wrong\n", n_rows, n_again, n_wrong);
	return n_wrong || !n_rows;
}
