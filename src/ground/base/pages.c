/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/pages.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
	LARGE_PAGE = 2 << 20,
};

/* Whole large pages; 0 when that is more than there can be. */
static size_t rounded(size_t bytes)
{
	return bytes <= SIZE_MAX / 2 ? (bytes + LARGE_PAGE - 1) & ~(size_t)(LARGE_PAGE - 1) : 0;
}

/* Mapped with room for the first large page to begin, which is given back on both sides. */
static void *map_large(size_t bytes)
{
	size_t n = rounded(bytes);
	char *p = n ? mmap(NULL, n + LARGE_PAGE, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		    : MAP_FAILED;
	if (p == MAP_FAILED)
		return NULL;
	size_t front = -(uintptr_t)p & (LARGE_PAGE - 1);
	if (front)
		munmap(p, front);
	munmap(p + front + n, LARGE_PAGE - front);
	madvise(p + front, n, MADV_HUGEPAGE);
	return p + front;
}

void *pages_zeroed(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	return bytes < LARGE_PAGE ? calloc(n, size) : map_large(bytes);
}

void *pages_cleared(size_t n, size_t size)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, size, &bytes))
		return NULL;
	/*
	 * Not malloc(): together with the code below, the compiler makes it calloc(), which leaves
	 * a new page alone.
	 */
	enum { CACHE_LINE = 64 };
	size_t lines = (bytes / CACHE_LINE + 1) * CACHE_LINE;
	void *p = bytes < LARGE_PAGE ? aligned_alloc(CACHE_LINE, lines) : map_large(bytes);
	if (p && bytes < LARGE_PAGE)
		memset(p, 0, bytes);
	else if (p)
		madvise(p, rounded(bytes), MADV_POPULATE_WRITE);
	return p;
}

void *pages_grown(void *p, size_t n, size_t want, size_t size)
{
	size_t now = n * size, bytes;
	if (__builtin_mul_overflow(want, size, &bytes))
		return NULL;
	if (bytes < LARGE_PAGE)
		return realloc(p, bytes);
	/* It begins at a large page, and is moved as large pages. */
	void *to = map_large(bytes);
	if (!to)
		return NULL;
	if (now < LARGE_PAGE) {
		if (now)
			memcpy(to, p, now);
		free(p);
	} else if (mremap(p, rounded(now), rounded(bytes), MREMAP_MAYMOVE | MREMAP_FIXED, to) ==
		   MAP_FAILED) {
		munmap(to, rounded(bytes));
		return NULL;
	}
	return to;
}

void pages_free(void *p, size_t n, size_t size)
{
	if (p && n * size >= LARGE_PAGE)
		munmap(p, rounded(n * size));
	else
		free(p);
}
