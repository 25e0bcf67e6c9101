/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vector: a growing array
 *
 * The untyped part is one function; a typed vector is a struct with the members p, n and cap, and
 * VEC_PUSH grows it:
 *
 *	struct { struct range *p; size_t n, cap; } ranges = {0};
 *	struct range *r = VEC_PUSH(&ranges);	// zeroed; NULL when out of memory
 *	free(ranges.p);
 */
#ifndef BASE_VEC_H
#define BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A zeroed item of @size bytes after the last; NULL when out of memory. */
static inline void *vec_push_bytes(void **p, size_t *n, size_t *cap, size_t size)
{
	if (*n == *cap) {
		size_t more = *cap ? *cap * 2 : 8;
		if (more > SIZE_MAX / 2 / size)
			return NULL;
		void *grown = realloc(*p, more * size);
		if (!grown)
			return NULL;
		*p = grown;
		*cap = more;
	}
	return memset((char *)*p + (*n)++ * size, 0, size);
}

/* Room for @more items after the last; they are not zeroed. False when out of memory. */
static inline int vec_reserve_bytes(void **p, const size_t *n, size_t *cap, size_t more,
				    size_t size)
{
	size_t want = *cap ? *cap : 8;
	if (more > SIZE_MAX / 4 / size || *n > SIZE_MAX / 4 / size)
		return 0;
	if (*p && *n + more <= *cap)
		return 1;
	while (want < *n + more)
		want *= 2;
	void *grown = realloc(*p, want * size);
	if (!grown)
		return 0;
	*p = grown;
	*cap = want;
	return 1;
}

#define VEC(type)                                                                                  \
	struct {                                                                                   \
		type *p;                                                                           \
		size_t n, cap;                                                                     \
	}

/* Pointer to a zeroed new last item, or NULL when out of memory. */
#define VEC_PUSH(v)                                                                                \
	((__typeof__((v)->p))vec_push_bytes((void **)&(v)->p, &(v)->n, &(v)->cap, sizeof(*(v)->p)))

/* Append a value; false when out of memory. */
#define VEC_ADD(v, value)                                                                          \
	({                                                                                         \
		__typeof__((v)->p) vec_slot_ = VEC_PUSH(v);                                        \
		if (vec_slot_)                                                                     \
			*vec_slot_ = (value);                                                      \
		vec_slot_ != NULL;                                                                 \
	})

/* Room for @more items, which the caller stores and counts; false when out of memory. */
#define VEC_RESERVE(v, more)                                                                       \
	(vec_reserve_bytes((void **)&(v)->p, &(v)->n, &(v)->cap, more, sizeof(*(v)->p)))

/*
 * @count items from @from after the last; false when out of memory. Nothing is a valid number of
 * them, whatever @from is then.
 */
#define VEC_APPEND(v, from, count)                                                                 \
	({                                                                                         \
		const __typeof__(*(v)->p) *vec_from_ = (from);                                     \
		size_t vec_count_ = (count);                                                       \
		bool vec_fits_ = VEC_RESERVE(v, vec_count_);                                       \
		if (vec_fits_ && vec_count_) {                                                     \
			memcpy((v)->p + (v)->n, vec_from_, vec_count_ * sizeof(*(v)->p));          \
			(v)->n += vec_count_;                                                      \
		}                                                                                  \
		vec_fits_;                                                                         \
	})

#define VEC_FREE(v) (free((v)->p), (v)->p = NULL, (v)->n = (v)->cap = 0)

#endif
