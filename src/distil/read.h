/* SPDX-License-Identifier: BSD-2-Clause */
/* All units of a binary to classes, in parallel. */
#ifndef DISTIL_READ_H
#define DISTIL_READ_H

#include "distil/classes.h"

/*
 * distil_read - the classes, functions, variables and bodies of all units
 *
 * @base  what main is split from, its classes come first; NULL: none
 * @ret  from classes_init(); also after an error to be given to classes_fini()
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ERANGE, -ENOMEM, -ENOENT (an alternate file that is not there).
 */
int distil_read(const struct dwarf *dw, unsigned int threads, const struct cairn_btf *base, bool want_vars,
		struct classes *ret, struct cairn_err *err);

#endif
