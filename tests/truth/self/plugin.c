/* SPDX-License-Identifier: BSD-2-Clause */
/* A library that calls back from a frame of its own, and from @n more. */
#include <stddef.h>

size_t call_back(size_t (*then)(void), int n);

__attribute__((noinline)) size_t call_back(size_t (*then)(void), int n)
{
	size_t got = n ? call_back(then, n - 1) : then();
	__asm__ volatile("" ::: "memory");
	return got;
}
