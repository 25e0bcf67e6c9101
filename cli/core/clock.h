/* SPDX-License-Identifier: BSD-2-Clause */
/* The time that goes on whatever somebody sets the clock to: CLOCK_MONOTONIC. */
#ifndef CLI_CLOCK_H
#define CLI_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline double clock_now_seconds(void)
{
	return (double)clock_now_ns() / 1e9;
}

#endif
