/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Option structs of the public API
 *
 * Their first member is `size_t size`, the caller's sizeof. A shorter one is an older caller's: its
 * missing members are 0. A longer one is a newer caller's: its unknown members must be 0, or the
 * call is refused.
 */
#ifndef BASE_OPTS_H
#define BASE_OPTS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* True if no byte is set after the first @known bytes of @opts, whose first member is its size. */
bool opts_tail_is_zero(const void *opts, size_t known);

/*
 * opts_take - @from as a struct of @known bytes
 *
 * @from  may be NULL: then *@ret is all 0
 * Returns 0; -EINVAL when @from has something set that is not known, or no size.
 */
int opts_take(void *ret, size_t known, const void *from, struct cairn_err *err);

#endif
