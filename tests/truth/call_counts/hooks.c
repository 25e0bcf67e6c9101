/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the calls of every function of a program built with -finstrument-functions
 *
 * Linked into the program. At exit it writes one line per function, "ADDRESS CALLS", to the file that
 * CALL_COUNTS names; the address is the link-time one, both in hexadecimal.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define UNCOUNTED __attribute__((no_instrument_function))

/* Far more than any of the programs has functions, so that probing ends. */
enum { SLOTS = 1 << 16 };

static struct slot {
	uintptr_t function;
	uint64_t calls;
} slots[SLOTS];

void __cyg_profile_func_enter(void *function, void *caller) UNCOUNTED;
void __cyg_profile_func_exit(void *function, void *caller) UNCOUNTED;

/* Threads may call at the same time. */
void __cyg_profile_func_enter(void *function, void *caller)
{
	uintptr_t f = (uintptr_t)function;

	(void)caller;
	for (size_t i = f * 0x9e3779b97f4a7c15 >> 48;; i = (i + 1) % SLOTS) {
		uintptr_t old = 0;
		if (slots[i].function != f &&
		    !__atomic_compare_exchange_n(&slots[i].function, &old, f, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
		    old != f)
			continue;
		__atomic_fetch_add(&slots[i].calls, 1, __ATOMIC_RELAXED);
		return;
	}
}

void __cyg_profile_func_exit(void *function, void *caller)
{
	(void)function;
	(void)caller;
}

static int UNCOUNTED first_base(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	*(uintptr_t *)ret = info->dlpi_addr;
	return 1;
}

static void UNCOUNTED __attribute__((destructor)) write_counts(void)
{
	const char *path = getenv("CALL_COUNTS");
	FILE *out = path ? fopen(path, "w") : NULL;
	uintptr_t base = 0;

	if (!out)
		return;
	dl_iterate_phdr(first_base, &base);
	for (size_t i = 0; i < SLOTS; i++)
		if (slots[i].function)
			fprintf(out, "%lx %lx\n", (unsigned long)(slots[i].function - base), (unsigned long)slots[i].calls);
	fclose(out);
}
