/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory that protobuf-c may take for messages that others wrote. */
#ifndef EXPORT_MESSAGES_H
#define EXPORT_MESSAGES_H

#include <stddef.h>

#include <protobuf-c/protobuf-c.h>

struct messages_memory {
	size_t max;  /* bytes in all */
	size_t used; /* without what was freed */
	int rc;      /* -ERANGE: more was needed; -ENOMEM; 0: protobuf-c did not like the bytes */
};

/* An allocator that keeps its account in @memory. */
ProtobufCAllocator messages_allocator(struct messages_memory *memory);

#endif
