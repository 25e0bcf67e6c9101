/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Binary searches in anything that an index reaches
 *
 *	size_t n = SEARCH(0, v->n, i, v->p[i].at <= at);       how many begin at or before @at
 *	return n ? &v->p[n - 1] : NULL;
 *
 * @i is a name for the index, and @holds an expression with it: true up to some index, and false
 * from there on. It is evaluated some log2(end - from) times, inline; nothing is called.
 */
#ifndef BASE_SEARCH_H
#define BASE_SEARCH_H

/* The first index in [@from, @end) for which @holds is false, or @end: of the type of @end. */
#define SEARCH(from, end, i, holds)                                                                \
	__extension__({                                                                            \
		__auto_type search_hi = (end);                                                     \
		__auto_type search_lo = search_hi;                                                 \
		search_lo = (from);                                                                \
		while (search_lo < search_hi) {                                                    \
			__auto_type i = search_lo + (search_hi - search_lo) / 2;                   \
			if (holds)                                                                 \
				search_lo = i + 1;                                                 \
			else                                                                       \
				search_hi = i;                                                     \
		}                                                                                  \
		search_lo;                                                                         \
	})

/*
 * The last of @n indices from @from on for which @holds is true, and @from when there is none. It
 * has no branch that depends on the data, so it is the better one where each search meets other
 * data: a branch that is guessed wrong costs more than a step.
 */
#define SEARCH_LAST(from, n, i, holds)                                                             \
	__extension__({                                                                            \
		__auto_type search_at = (n);                                                       \
		search_at = (from);                                                                \
		for (__auto_type search_n = (n); search_n > 1;) {                                  \
			__auto_type search_half = search_n / 2;                                    \
			__auto_type i = search_at + search_half;                                   \
			search_at = (holds) ? i : search_at;                                       \
			search_n -= search_half;                                                   \
		}                                                                                  \
		search_at;                                                                         \
	})

#endif
