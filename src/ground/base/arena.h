/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arena: memory that is freed all at once, with the object it belongs to
 *
 * One arena per loaded thing (a file, a type graph, a list of sites). Pieces stay where they are
 * until arena_fini(), so pointers into it may be kept as long as its owner lives. Not for threads:
 * a parallel stage gives each worker an arena of its own.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>
#include <string.h>

/* The blocks are arena.c's, but for the part that is not yet used. */
enum { ARENA_ALIGN = 16 };
struct arena_block {
	struct arena_block *next;
	size_t used, size;
	_Alignas(ARENA_ALIGN) char bytes[];
};

struct arena {
	struct arena_block *head;
};

static inline void arena_init(struct arena *a)
{
	a->head = NULL;
}
void arena_fini(struct arena *a);

/* arena_alloc() when the first block has not enough left. */
void *arena_alloc_block(struct arena *a, size_t size);

/* @size zeroed bytes, aligned to 16; NULL when out of memory. Inline: there are millions. */
static inline void *arena_alloc(struct arena *a, size_t size)
{
	struct arena_block *b = a->head;
	size_t left = b ? b->size - b->used : 0;
	/* The rest is a multiple of the alignment, so @size fits rounded up, too. */
	if (!left || size > left)
		return arena_alloc_block(a, size);
	void *p = b->bytes + b->used;
	b->used += (size + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
	return memset(p, 0, size);
}

/* As arena_alloc, for @n items of @size bytes; NULL also when the product overflows. */
static inline void *arena_array(struct arena *a, size_t n, size_t size)
{
	size_t bytes;
	return __builtin_mul_overflow(n, size, &bytes) ? NULL : arena_alloc(a, bytes);
}

/* Copies; NULL when out of memory. The second takes the first @n bytes and adds a NUL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *a, const char *fmt, ...);

/* Everything that @from holds belongs to @to afterwards; @from is empty and may be used again. */
void arena_adopt(struct arena *to, struct arena *from);

#endif
