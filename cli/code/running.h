/* SPDX-License-Identifier: BSD-2-Clause */
/* `cairn sites --running`: the kernel that runs, or a module of it, instead of a file. */
#ifndef CLI_RUNNING_H
#define CLI_RUNNING_H

#include <stdbool.h>
#include <stddef.h>

#include <cairn/binary.h>
#include <cairn/kernel.h>
#include <cairn/sites.h>

#include "sidecar.h"

/* The running kernel, and the source of answers about it. */
struct running {
	struct cairn_kernel *kernel;
	const struct cairn_binary *bin;
	struct cairn_binary *own; /* to be closed; NULL: @bin is the kernel's image */
	char *file;               /* a path that the wish points to */
	char *base;
	const char *bases[1];
	struct cairn_site *sites; /* of the function that is shown, without those left out */
	size_t n_left_out;        /* sites in code that is not there any more */
};

/*
 * running_open - find a source: a file of the kernel, a sidecar in the cache, BTF, or a debug file
 * from a debuginfod
 *
 * @module  "": the kernel itself
 * @opts    of the command line: debug directories, or the debug file
 * @wish    changed so that the source is used; it then borrows from @ret
 * Returns an exit status. running_close() also after a failure.
 */
int running_open(const char *module, const struct cairn_binary_opts *opts,
		 struct sidecar_wish *wish, struct running *ret);
void running_close(struct running *r);

/* Whether the source describes what runs; an exit status. @is_whole as cairn_kernel_bind(). */
int running_bind(struct running *r, const struct cairn_sidecar *sidecar, bool is_whole);

/*
 * running_function - a function without the sites that are not there
 *
 * @room  for the result
 * Returns @function or @room; NULL: no memory. Valid until the next call.
 */
const struct cairn_function *running_function(struct running *r,
					      const struct cairn_function *function,
					      struct cairn_function *room);

/* Reports the number of sites that were left out. */
void running_report(const struct running *r);

#endif
