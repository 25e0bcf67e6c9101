/* SPDX-License-Identifier: BSD-2-Clause */
#include <time.h>

#include "trace/trace.h"

uint64_t trace_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}
