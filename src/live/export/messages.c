/* SPDX-License-Identifier: BSD-2-Clause */
#include "export/messages.h"

#include <errno.h>
#include <stdlib.h>

static void *allocate(void *data, size_t size)
{
	struct messages_memory *memory = data;
	void *p = NULL;

	if (size > memory->max - memory->used)
		memory->rc = -ERANGE;
	else if (!(p = malloc(size ? size : 1)))
		memory->rc = -ENOMEM;
	if (p)
		memory->used += size;
	return p;
}

static void release(void *data, void *p)
{
	free(p);
}

ProtobufCAllocator messages_allocator(struct messages_memory *memory)
{
	return (ProtobufCAllocator){allocate, release, memory};
}
