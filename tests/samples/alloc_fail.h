/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Allocations that fail on purpose
 *
 *	for (unsigned int n = 1;; n++) {
 *		alloc_fail_at(n);
 *		int r = operation();
 *		if (!alloc_fail_end())
 *			break;		// it makes fewer than n allocations
 *		assert_int_equal(r, -ENOMEM);
 *	}
 *
 * Works on what is linked statically (the library, the test), through the linker's --wrap; calls
 * that libc makes for itself do not fail.
 */
#ifndef SAMPLES_ALLOC_FAIL_H
#define SAMPLES_ALLOC_FAIL_H

#include <stdbool.h>

/* The @n-th malloc, calloc, realloc, strdup or vasprintf from now on fails; later ones work. */
void alloc_fail_at(unsigned int n);

/* Back to normal; true when one did fail. */
bool alloc_fail_end(void);

/*
 * The next allocation of an operation that takes long and makes thousands of them alike. Under
 * sanitizers, where it takes twenty times as long, the later ones are sampled.
 */
static inline unsigned int alloc_fail_next(unsigned int n)
{
#ifdef __SANITIZE_ADDRESS__
	return n + 1 + n / 32;
#else
	return n + 1;
#endif
}

#endif
