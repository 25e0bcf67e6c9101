/* SPDX-License-Identifier: BSD-2-Clause */
/* USDT probes as functions: what a tracer of functions needs. */
#ifndef SITES_USDT_H
#define SITES_USDT_H

#include <cairn/sites.h>
#include <cairn/usdt.h>

#include "base/arena.h"

/* A probe of one provider and name, as if it were a function whose parameters are $arg1, $arg2. */
struct usdt_function {
	struct cairn_function function;
	/* Parallel to the sites: file offsets for the kernel, 0 without a semaphore. */
	const uint64_t *semaphores;
};

/* The file has no byte for the semaphore: the kernel cannot increment it. */
#define USDT_SEMAPHORE_NOWHERE UINT64_MAX

struct usdt_functions {
	struct usdt_function *p;
	size_t n;
};

/*
 * usdt_functions_find - the probes that a provider and a name mean, which may be patterns
 *
 * @arena  owns the result
 * Returns 0, -ENOMEM.
 */
int usdt_functions_find(struct cairn_usdt *usdt, const char *provider, const char *name,
			struct arena *arena, struct usdt_functions *ret, struct cairn_err *err);

/* The graph of the types of all parameters. */
const struct cairn_types *usdt_types(const struct cairn_usdt *usdt);

#endif
