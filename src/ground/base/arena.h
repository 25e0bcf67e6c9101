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

struct arena_block;

struct arena {
	struct arena_block *head;
};

static inline void arena_init(struct arena *a)
{
	a->head = NULL;
}
void arena_fini(struct arena *a);

/* @size zeroed bytes, aligned to 16; NULL when out of memory. */
void *arena_alloc(struct arena *a, size_t size);

/* As arena_alloc, for @n items of @size bytes; NULL also when the product overflows. */
void *arena_array(struct arena *a, size_t n, size_t size);

/* Copies; NULL when out of memory. The second takes the first @n bytes and adds a NUL. */
char *arena_strdup(struct arena *a, const char *s);
char *arena_strndup(struct arena *a, const char *s, size_t n);
__attribute__((format(printf, 2, 3))) char *arena_printf(struct arena *a, const char *fmt, ...);

/* Everything that @from holds belongs to @to afterwards; @from is empty and may be used again. */
void arena_adopt(struct arena *to, struct arena *from);

#endif
