/* SPDX-License-Identifier: BSD-2-Clause */
/* A shared library that the program loads only when it needs it. */
#ifndef CLI_LIBRARY_H
#define CLI_LIBRARY_H

#include <stddef.h>

struct library_symbol {
	const char *name;
	void *to; /* a pointer to a function, which is set */
};

/*
 * The handle of the library @name, and its @n symbols in their pointers. NULL: it is not there, or
 * it lacks one of them; some pointers may have been set, which may not be used then.
 */
void *library_load(const char *name, const struct library_symbol *symbols, size_t n);

#endif
