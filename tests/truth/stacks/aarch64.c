/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose crash is in a stack of a known shape, for aarch64.py: down() nine times, crash(),
 * and touch() at the end.
 */
#include <alloca.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP __attribute__((noinline, noclone))

static volatile long sink;
static const char *how;

static KEEP void touch(volatile int *p)
{
	*p = 1;
	sink++;
}

static KEEP long crash(long n);

static KEEP int compare(const void *a, const void *b)
{
	sink += crash(-1);
	return *(const int *)a - *(const int *)b;
}

static KEEP long with_alloca(long n)
{
	char *p = alloca((size_t)n * 16 + 16);
	memset(p, (int)n, 16);
	touch((volatile int *)0x10);
	return p[3];
}

static KEEP long realigned(long n)
{
	_Alignas(128) volatile char here[256];
	here[n & 127] = (char)n;
	touch((volatile int *)0x10);
	return here[n & 127];
}

static KEEP __attribute__((noreturn)) void never_returns(void)
{
	for (;;)
		touch((volatile int *)0x10);
}

static void *volatile no_code;

static KEEP long crash(long n)
{
	int numbers[4] = {3, 1, 2, 4};
	if (!strcmp(how, "alloca"))
		sink += with_alloca(n + 5);
	if (!strcmp(how, "realigned"))
		sink += realigned(n);
	if (!strcmp(how, "noreturn"))
		never_returns();
	if (!strcmp(how, "pointer"))
		sink += ((long (*)(long))no_code)(n);
	touch((volatile int *)0x10);
	sink += numbers[n & 3];
	return n + sink;
}

static KEEP long down(long n)
{
	char text[48];
	snprintf(text, sizeof(text), "%ld", n);
	long got = n > 1 ? down(n - 1) : 0;
	if (n == 1 && (!strcmp(how, "sort") || !strcmp(how, "library"))) {
		int numbers[3] = {3, 1, 2};
		size_t count = 3;
		if (!strcmp(how, "sort"))
			qsort(numbers, 3, sizeof(int), compare);
		else
			lfind(numbers, numbers, &count, sizeof(int), compare);
		got += numbers[0];
	} else if (n == 1) {
		got += crash(n);
	}
	return got + text[0];
}

int main(int argc, char **argv)
{
	how = argc > 1 ? argv[1] : "plain";
	return (int)down(9);
}
