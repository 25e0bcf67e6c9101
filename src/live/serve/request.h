/* SPDX-License-Identifier: BSD-2-Clause */
/* The arguments of a call, fetched from the process that waits in it. Within this module only. */
#ifndef SERVE_REQUEST_H
#define SERVE_REQUEST_H

#include "agent/arguments.h"

/* How memory of the caller is read. */
struct caller {
	/*
	 * Exactly @n bytes. Returns 0; -EFAULT; -ESRCH when it does not wait in this call any more.
	 */
	int (*read)(void *ctx, uint64_t at, void *ret, size_t n);
	void *ctx;
};

/* A request with its strings. */
struct fetched {
	struct codectl_request request;
	char path[CODECTL_PATH_MAX], debug_link[CODECTL_PATH_MAX];
	uint8_t build_id[CODECTL_BUILD_ID_MAX];
};

/*
 * request_fetch - read and judge the arguments, as a kernel does
 *
 * @args  option, info, info_size, flags, from the caller's registers
 * Returns 0; -ESRCH, or the caller's result: -EFAULT, -EINVAL, -E2BIG, -ERANGE, -ENAMETOOLONG.
 */
int request_fetch(const struct caller *caller, enum codectl_numbers numbers, const uint64_t args[4],
		  struct fetched *ret);

#endif
