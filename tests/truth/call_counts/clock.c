/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A clock that advances by a step each time it is asked, and a process id that is always the same
 *
 * Linked into a program, in place of the C library's: what it does by time and seeds with either,
 * it then does the same way in each run, however long that takes.
 */
#include <stddef.h>
#include <stdint.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/* Some date; and a step by which a thousand commands take some of the program's timers. */
enum { START_S = 1600000000, STEP_US = 10 };

static uint64_t now_us(void)
{
	static uint64_t asked;

	return START_S * UINT64_C(1000000) +
	       STEP_US * __atomic_add_fetch(&asked, 1, __ATOMIC_RELAXED);
}

int clock_gettime(clockid_t id, struct timespec *ret)
{
	uint64_t us = now_us();

	(void)id;
	*ret = (struct timespec){.tv_sec = (time_t)(us / 1000000),
				 .tv_nsec = (long)(us % 1000000 * 1000)};
	return 0;
}

int gettimeofday(struct timeval *restrict ret, void *restrict zone)
{
	uint64_t us = now_us();

	(void)zone;
	*ret = (struct timeval){.tv_sec = (time_t)(us / 1000000),
				.tv_usec = (suseconds_t)(us % 1000000)};
	return 0;
}

time_t time(time_t *ret)
{
	time_t s = (time_t)(now_us() / 1000000);

	if (ret)
		*ret = s;
	return s;
}

pid_t getpid(void)
{
	return 1000;
}
