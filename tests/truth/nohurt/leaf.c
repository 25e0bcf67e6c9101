/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites where a user probe does harm or is lost, each in an inlined function of its own name
 *
 *	leaf ROUNDS       prints the results, one line per function: NAME CALLS WRONG CHECKSUM
 *
 * red_zone()   a leaf that keeps its locals below the stack pointer. In the middle stands a 5-byte
 * nop, the first
 *              instruction of the inlined nop_here(). The kernel turns a probe on it into a call, whose return address
 *              overwrites the locals.
 * counted()    the inlined locked_here() begins with a lock prefix: a probe attaches and never
 * fires. entered()    begins with the 5-byte nop when built with -mnop-mcount: there no red zone is
 * live yet, the probe is harmless and must count exactly.
 */
#include <stdio.h>
#include <stdlib.h>

volatile long sink;
static long shared;

static inline __attribute__((always_inline)) long nop_here(long round)
{
	__asm__ volatile(".byte 0x0f, 0x1f, 0x44, 0x00, 0x00" : "+r"(round));
	return round;
}

static inline __attribute__((always_inline)) void locked_here(long round)
{
	__asm__ volatile("lock incq %0" : "+m"(shared));
	sink = round;
}

/* Returns 3 * round + 28; its eight locals lie in the red zone. */
__attribute__((noinline)) long red_zone(long round)
{
	volatile long local[8];
	long sum = 0;

	for (int i = 0; i < 8; i++)
		local[i] = i;
	sum += nop_here(round) * 3;
	for (int i = 0; i < 8; i++)
		sum += local[i];
	return sum;
}

__attribute__((noinline)) void counted(long round)
{
	locked_here(round);
}

__attribute__((noinline)) long entered(long round)
{
	volatile long local[8];
	long sum = round;

	for (int i = 0; i < 8; i++)
		local[i] = i;
	for (int i = 0; i < 8; i++)
		sum += local[i];
	return sum;
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 1000;
	long wrong_red = 0, wrong_entered = 0, check = 0;

	for (long i = 0; i < rounds; i++) {
		long got = red_zone(i);

		wrong_red += got != 3 * i + 28;
		check = check * 31 + got;
		counted(i);
		got = entered(i);
		wrong_entered += got != i + 28;
		check = check * 31 + got;
	}
	printf("red_zone %ld %ld\ncounted %ld %ld\nentered %ld %ld\nchecksum %ld\n", rounds,
	       wrong_red, rounds, rounds - shared, rounds, wrong_entered, check);
	return 0;
}
