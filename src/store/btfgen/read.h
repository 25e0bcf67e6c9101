/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module btfgen makes BTF from the DWARF of a program.
 *
 * This header: all units of a binary to classes, in parallel.
 */
#ifndef BTFGEN_READ_H
#define BTFGEN_READ_H

#include "btfgen/type_classes.h"
#include "dwarf/index.h"

struct readers;

struct read_opts {
	unsigned int threads;
	/* the base of main, whose classes come first; NULL: none */
	const struct cairn_btf *base;
	bool want_vars;
	bool want_contents;                    /* classes.contents */
	const struct cairn_btfgen_opts *asked; /* which languages; NULL: all */
	/* of the same units' functions; dw_func_index_fini(). NULL: not wanted */
	struct dw_func_index *index;
	/* one thread's work that needs no units; may be NULL */
	int (*beside)(void *ctx, struct cairn_err *err);
	void *ctx;
};

/*
 * distil_read - the types, functions, variables and bodies of all units, by whichever worker read
 * them
 *
 * @ret  for distil_join(); NULL after an error. distil_readers_free().
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ERANGE, -ENOMEM, -ENOENT (an alternate file that is not
 * there), or beside()'s.
 */
int distil_read(const struct dwarf *dw, const struct read_opts *opts, struct readers **ret,
		struct cairn_err *err);

/*
 * distil_join - join the workers' results, in the order of units
 *
 * One thread does it alone. @ret: from type_classes_init(); also after an error to be given to
 * type_classes_fini().
 * Returns 0, -ENOMEM, -ERANGE.
 */
int distil_join(struct readers *r, struct classes *ret, struct cairn_err *err);

/* The number of units of languages that were not requested. */
size_t distil_n_left_out(const struct readers *r);

/* Takes NULL. */
void distil_readers_free(struct readers *r);

#endif
