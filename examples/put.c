/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The first screen of README.md: one call, inlined, whose first argument the compiler computes
 * later.
 */
#include <stdio.h>

static unsigned long slots[64], n_calls;

static inline void put(unsigned long idx, unsigned long s)
{
	n_calls += s != 0;
	slots[idx & 63] = s;
}

__attribute__((noinline)) void work(unsigned long n, unsigned long s)
{
	put((n - 17) >> 4, s);
}

int main(void)
{
	work(1000, 7);
	return slots[61] != 7 || n_calls != 1;
}
