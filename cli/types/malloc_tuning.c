/* SPDX-License-Identifier: BSD-2-Clause */
#include "malloc_tuning.h"

#include <malloc.h>

/* Smaller limits gain little more and cost time in page faults. */
enum { LARGE = 1 << 20 };

void malloc_return_large_blocks(void)
{
#ifdef M_MMAP_THRESHOLD
	mallopt(M_MMAP_THRESHOLD, LARGE);
#endif
}
