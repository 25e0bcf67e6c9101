/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module serve answers codectl(2) for another program, by a seccomp filter.
 *
 * This header: the registry of one served process; it is in this process's memory, with a notice
 * that leads there. Within this module only.
 */
#ifndef SERVE_SERVED_H
#define SERVE_SERVED_H

#include <cairn/err.h>

#include "agent/arguments.h"
#include "code/target.h"

struct served;

/*
 * served_new - an empty registry
 *
 * @id   of the process that owns it
 * @ret  served_end()
 * Returns 0; -ENOMEM, the errors of mmap(2) and open(2).
 */
int served_new(const struct target_id *id, struct served **ret, struct cairn_err *err);

/* The same, with the entries that @from had at @at_ns (CLOCK_MONOTONIC). */
int served_copy(const struct served *from, uint64_t at_ns, const struct target_id *id,
		struct served **ret, struct cairn_err *err);

/*
 * served_apply - perform the call
 *
 * @request  its strings are in memory of this process
 * Returns 0; -EEXIST, -ENOENT, -ENOSPC, -ENAMETOOLONG: the caller's result.
 */
int served_apply(struct served *s, const struct codectl_request *request);

/* Readers find nothing any more. Takes NULL. */
void served_end(struct served *s);

#endif
