/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The floor: the same stack as bench_unwind.c's, built with frame pointers, by the chain of them.
 */
#include "bench_unwind.h"

static void *addresses[MAX_FRAMES];

/* The C library has none: the chain is followed as long as it rises by less than a page. */
static size_t chain(void)
{
	void **frame = __builtin_frame_address(0);
	size_t n = 0;
	for (;;) {
		void **next = *frame;
		addresses[n++] = frame[1];
		if (n == MAX_FRAMES || next <= frame || (uintptr_t)next - (uintptr_t)frame > 4096)
			return n;
		frame = next;
	}
}

int main(void)
{
	measure("frame pointers", chain, 20000);
	return 0;
}
