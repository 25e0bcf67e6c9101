/* SPDX-License-Identifier: BSD-2-Clause */
#include "heap.h"

#include <malloc.h>

/* Smaller limits gain little more and cost time in page faults. */
enum { LARGE = 1 << 20 };

void heap_give_back(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
}
