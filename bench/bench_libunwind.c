/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The same stack as bench_unwind.c's, walked by libunwind: its fast trace, and steps with and
 * without its cache.
 */
#define UNW_LOCAL_ONLY
#include <libunwind.h>

#include "bench_unwind.h"

static void *addresses[MAX_FRAMES];

static size_t fast_trace(void)
{
	return (size_t)unw_backtrace(addresses, MAX_FRAMES);
}

static size_t steps(void)
{
	unw_context_t context;
	unw_cursor_t cursor;
	unw_word_t ip;
	size_t n = 0;
	unw_getcontext(&context);
	unw_init_local(&cursor, &context);
	do {
		unw_get_reg(&cursor, UNW_REG_IP, &ip);
		addresses[n++] = (void *)ip;
	} while (n < MAX_FRAMES && unw_step(&cursor) > 0);
	return n;
}

int main(void)
{
	unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_PER_THREAD);
	measure("libunwind unw_backtrace(), cached", fast_trace, 5000);
	measure("libunwind unw_step(), cached", steps, 500);
	unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
	measure("libunwind unw_step(), not cached", steps, 100);
	return 0;
}
