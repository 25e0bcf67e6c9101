/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A stack of 46 frames of different functions, and what a walk of it costs; for the programs of
 * bench/unwind.py.
 */
#ifndef BENCH_UNWIND_H
#define BENCH_UNWIND_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { MAX_FRAMES = 128, WALK_ROUNDS = 9 };

static inline double seconds_of(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static inline double thread_seconds(void)
{
	return seconds_of(CLOCK_THREAD_CPUTIME_ID);
}

static inline double process_seconds(void)
{
	return seconds_of(CLOCK_PROCESS_CPUTIME_ID);
}

static struct {
	size_t (*walk)(void);
	int n;
	double best;
	size_t frames;
} measured;

static __attribute__((noinline)) int bottom(int x)
{
	for (int round = 0; round < WALK_ROUNDS; round++) {
		double start = thread_seconds();
		for (int i = 0; i < measured.n; i++)
			measured.frames = measured.walk();
		double t = (thread_seconds() - start) / measured.n;
		measured.best = t < measured.best ? t : measured.best;
	}
	return x;
}

/* Frames of 48 to 112 bytes. */
#define FRAME(N, CALLEE)                                                                           \
	static __attribute__((noinline)) int f##N(int x)                                           \
	{                                                                                          \
		volatile char pad[24 + (N) % 5 * 16];                                              \
		pad[0] = (char)x;                                                                  \
		int r = CALLEE(x + 1);                                                             \
		return r + pad[0];                                                                 \
	}
/* clang-format off */
FRAME(0, bottom) FRAME(1, f0) FRAME(2, f1) FRAME(3, f2) FRAME(4, f3)
FRAME(5, f4) FRAME(6, f5) FRAME(7, f6) FRAME(8, f7) FRAME(9, f8)
FRAME(10, f9) FRAME(11, f10) FRAME(12, f11) FRAME(13, f12) FRAME(14, f13)
FRAME(15, f14) FRAME(16, f15) FRAME(17, f16) FRAME(18, f17) FRAME(19, f18)
FRAME(20, f19) FRAME(21, f20) FRAME(22, f21) FRAME(23, f22) FRAME(24, f23)
FRAME(25, f24) FRAME(26, f25) FRAME(27, f26) FRAME(28, f27) FRAME(29, f28)
FRAME(30, f29) FRAME(31, f30) FRAME(32, f31) FRAME(33, f32) FRAME(34, f33)
FRAME(35, f34) FRAME(36, f35) FRAME(37, f36) FRAME(38, f37) FRAME(39, f38)
	/* clang-format on */

	static inline void measure(const char *what, size_t (*walk)(void), int n)
{
	measured.walk = walk;
	measured.n = n;
	measured.best = 1e9;
	f39(1);
	printf("%-44s %3zu frames %9.1f ns %8.2f ns per frame\n", what, measured.frames,
	       measured.best * 1e9, measured.best * 1e9 / (double)measured.frames);
}

#endif
