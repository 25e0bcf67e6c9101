/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Blocks double from the first size to the last, so that a small object stays small. */
enum { BLOCK_FIRST = 4 << 10, BLOCK_LAST = 1 << 20 };

void arena_fini(struct arena *a)
{
	for (struct arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		free(b);
	}
	a->head = NULL;
}

static struct arena_block *block_new(struct arena *a, size_t need)
{
	size_t size = a->head ? a->head->size * 2 : BLOCK_FIRST;
	if (size > BLOCK_LAST)
		size = BLOCK_LAST;
	if (size < need)
		size = need;
	struct arena_block *b = malloc(sizeof(*b) + size);
	if (!b)
		return NULL;
	b->next = a->head;
	b->used = 0;
	b->size = size;
	a->head = b;
	return b;
}

void *arena_alloc_block(struct arena *a, size_t size)
{
	if (size > SIZE_MAX / 2)
		return NULL;
	size_t need = (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	struct arena_block *b = block_new(a, need);
	if (!b)
		return NULL;
	b->used = need;
	return memset(b->bytes, 0, size);
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = arena_alloc(a, n + 1);
	if (copy)
		memcpy(copy, s, n);
	return copy;
}

char *arena_strdup(struct arena *a, const char *s)
{
	return arena_strndup(a, s, strlen(s));
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *s = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
	if (s)
		vsnprintf(s, (size_t)n + 1, fmt, again);
	va_end(again);
	return s;
}

void arena_adopt(struct arena *to, struct arena *from)
{
	struct arena_block **tail = &from->head;
	while (*tail)
		tail = &(*tail)->next;
	*tail = to->head;
	if (from->head)
		to->head = from->head;
	from->head = NULL;
}
