/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts the calls of every function of a program built with -finstrument-functions, by caller
 *
 * Linked into the program. At exit it writes a line "FUNCTION CALLER CALLS" per function and place
 * of a call to the file that CALL_COUNTS names: link-time addresses, the caller's is where the call
 * returns to; all in hexadecimal.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define UNCOUNTED __attribute__((no_instrument_function))

/* Far more than any of the programs has calls in its text, so that probing ends. */
enum { SLOTS_LOG2 = 18, SLOTS = 1 << SLOTS_LOG2 };

static struct slot {
	uintptr_t caller, function;
	uint64_t calls;
	int state; /* 0 free, 1 being taken, 2 taken */
} slots[SLOTS];

void __cyg_profile_func_enter(void *function, void *caller) UNCOUNTED;
void __cyg_profile_func_exit(void *function, void *caller) UNCOUNTED;

/* Threads may call at the same time. */
static struct slot *UNCOUNTED slot_of(uintptr_t function, uintptr_t caller)
{
	for (size_t i = (caller ^ function << 1) * 0x9e3779b97f4a7c15 >> (64 - SLOTS_LOG2);;
	     i = (i + 1) % SLOTS) {
		struct slot *s = &slots[i];
		int state = 0;

		if (__atomic_compare_exchange_n(&s->state, &state, 1, 0, __ATOMIC_ACQUIRE,
						__ATOMIC_ACQUIRE)) {
			s->function = function;
			s->caller = caller;
			__atomic_store_n(&s->state, 2, __ATOMIC_RELEASE);
			return s;
		}
		while (state == 1)
			state = __atomic_load_n(&s->state, __ATOMIC_ACQUIRE);
		if (s->function == function && s->caller == caller)
			return s;
	}
}

void __cyg_profile_func_enter(void *function, void *caller)
{
	__atomic_fetch_add(&slot_of((uintptr_t)function, (uintptr_t)caller)->calls, 1,
			   __ATOMIC_RELAXED);
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
		if (slots[i].state)
			fprintf(out, "%lx %lx %lx\n", (unsigned long)(slots[i].function - base),
				(unsigned long)(slots[i].caller - base),
				(unsigned long)slots[i].calls);
	fclose(out);
}
