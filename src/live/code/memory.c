/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/memory.h"

#include <string.h>

#include "code/core.h"
#include "code/timed_read.h"

static size_t read_process(void *ctx, uint64_t at, void *ret, size_t n)
{
	ssize_t got = timed_read_read((int)(intptr_t)ctx, at, ret, n);
	return got < 0 ? 0 : (size_t)got;
}

struct code_memory code_memory_of_process(int pid)
{
	return (struct code_memory){read_process, (void *)(intptr_t)pid};
}

/* A core's segments end at page borders, so that a part is a number of pages. */
static size_t read_core(void *ctx, uint64_t at, void *ret, size_t n)
{
	enum { PAGE = 4096 };
	size_t done = 0;
	if (core_read(ctx, at, ret, n))
		return n;
	while (done < n) {
		size_t part = PAGE - (at + done) % PAGE;
		if (part > n - done)
			part = n - done;
		if (!core_read(ctx, at + done, (uint8_t *)ret + done, part))
			break;
		done += part;
	}
	return done;
}

struct code_memory code_memory_of_core(const struct core *core)
{
	return (struct code_memory){read_core, (void *)(uintptr_t)core};
}

static size_t read_block(void *ctx, uint64_t at, void *ret, size_t n)
{
	const struct code_block *b = ctx;
	if (at < b->at || at - b->at >= b->n)
		return 0;
	size_t left = b->n - (at - b->at);
	if (n > left)
		n = left;
	memcpy(ret, b->bytes + (at - b->at), n);
	return n;
}

struct code_memory code_memory_of_block(const struct code_block *block)
{
	return (struct code_memory){read_block, (void *)(uintptr_t)block};
}
