/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of removed parameters
 *
 * GCC removes a parameter that the code does not need (-fipa-sra, -fipa-cp). For the debugger each call then binds a
 * temporary to the argument, and the body reads it:
 *
 *	# DEBUG D#2 => 6		in the caller, in front of the copy
 *	# DEBUG INLINE_ENTRY f		the entry: a line row, view k
 *	# DEBUG D#1 => D#2		behind it, in the copy
 *	# DEBUG unused => D#1		the location begins at view k + 1
 *
 * But there is one D#2 for all copies of f in a function. Where a call's argument cannot be told any more, the binding
 * of D#2 is missing, and that of another call is in force (docs/findings/gcc-removed-parameter-value.md).
 *
 * An argument that is passed is bound in front of the entry. So what begins one view behind it was removed, and if the
 * containing function has another copy of the same function, it may be that one's.
 *
 * What stays unseen: a copy whose DIE GCC dropped, and a call of the removed parameter's function that was not inlined. Both bind
 * the temporary, too.
 */
#include "loc/removed.h"

#include <errno.h>
#include <stdlib.h>

#include "base/vec.h"

static int by_offset(const void *a, const void *b)
{
	dw_off x = *(const dw_off *)a, y = *(const dw_off *)b;
	return x < y ? -1 : x > y;
}

/* Entries stand in order, parents first: those inside the container follow it, until one's parent stands before it. */
static bool is_inside(const struct dw_func *f, uint32_t container)
{
	return f->parent != DW_FUNC_NONE && f->parent >= container;
}

int origins_init(struct origins *origins, const struct dw_func_index *index, uint32_t container)
{
	VEC(dw_off) found = {0};
	for (size_t i = (size_t)container + 1; i < index->n && is_inside(&index->p[i], container); i++) {
		if (index->p[i].flags & DW_FUNC_INLINED && !VEC_ADD(&found, index->p[i].origin)) {
			VEC_FREE(&found);
			return -ENOMEM;
		}
	}
	if (found.n)
		qsort(found.p, found.n, sizeof(*found.p), by_offset);
	*origins = (struct origins){.p = found.p, .n = found.n};
	return 0;
}

void origins_fini(struct origins *origins)
{
	free(origins->p);
	*origins = (struct origins){0};
}

bool origins_has_another(const struct origins *origins, const struct dw_func_index *index, uint32_t entry)
{
	dw_off origin = index->p[entry].origin;
	const dw_off *hit = origins->n ? bsearch(&origin, origins->p, origins->n, sizeof(origin), by_offset) : NULL;
	if (!hit)
		return false;
	return (hit > origins->p && hit[-1] == origin) || (hit + 1 < origins->p + origins->n && hit[1] == origin);
}
