/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A heap that is always at the same address
 *
 * Linked into a program, in place of the C library's: two builds that allocate the same then have
 * their objects at the same addresses, and what they index by addresses is in the same order. One
 * thread; memory is not given back.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Far from where the kernel puts programs, libraries and stacks. */
#define START ((char *)0x100000000000)

enum { BYTES = 1 << 30, CLASSES = 32, HEADER = 16 };

static char *top;
static void *unused[CLASSES]; /* freed blocks of 2^n bytes, each with the address of the next one */

static size_t *size_class(void *block)
{
	return (size_t *)((char *)block - HEADER);
}

static void *new_block(size_t bytes)
{
	if (!top) {
		top = mmap(START, BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1,
			   0);
		if (top != START)
			abort();
	}
	if (bytes + HEADER > (size_t)(START + BYTES - top))
		return NULL;
	top += bytes + HEADER;
	return top - bytes;
}

void *malloc(size_t bytes)
{
	size_t n = 5;

	while (n < CLASSES && (size_t)1 << n < bytes)
		n++;
	if (n == CLASSES) {
		errno = ENOMEM;
		return NULL;
	}
	void *block = unused[n];
	if (block)
		unused[n] = *(void **)block;
	else
		block = new_block((size_t)1 << n);
	if (block)
		*size_class(block) = n;
	return block;
}

void free(void *block)
{
	if (!block)
		return;
	size_t n = *size_class(block);
	*(void **)block = unused[n];
	unused[n] = block;
}

size_t malloc_usable_size(void *block)
{
	return block ? (size_t)1 << *size_class(block) : 0;
}

void *calloc(size_t n, size_t bytes)
{
	void *block = bytes && n > SIZE_MAX / bytes ? NULL : malloc(n * bytes);

	return block ? memset(block, 0, n * bytes) : NULL;
}

void *realloc(void *block, size_t bytes)
{
	size_t old = malloc_usable_size(block);

	if (block && bytes <= old)
		return block;
	void *ret = malloc(bytes);
	if (ret && block) {
		memcpy(ret, block, old);
		free(block);
	}
	return ret;
}
