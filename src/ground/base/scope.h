/* SPDX-License-Identifier: BSD-2-Clause */
/* Scope guards: a resource opened in a block is closed at the end of the block, on every path. */
#ifndef BASE_SCOPE_H
#define BASE_SCOPE_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline void scope_free_(void *p)
{
	free(*(void **)p);
}

static inline void scope_close_(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void scope_fclose_(FILE **f)
{
	if (*f)
		fclose(*f);
}

#define SCOPE_FREE   __attribute__((cleanup(scope_free_)))
#define SCOPE_CLOSE  __attribute__((cleanup(scope_close_)))
#define SCOPE_FCLOSE __attribute__((cleanup(scope_fclose_)))

/* Hand a guarded pointer out of its scope: "*ret = TAKE(x);" */
#define TAKE(p)                                                                                    \
	({                                                                                         \
		__typeof__(p) take_ = (p);                                                         \
		(p) = NULL;                                                                        \
		take_;                                                                             \
	})

#endif
