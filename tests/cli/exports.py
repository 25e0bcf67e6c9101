# SPDX-License-Identifier: BSD-2-Clause
"""A program with values of all kinds, threads, and calls that longjmp() leaves: for the tests of
formats that cairn trace writes events in."""

PROGRAM = r"""
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
enum color { RED, GREEN = 5 };
struct pair { int low; const char *text; long list[3]; };
static volatile long sink;
static __thread jmp_buf point;
#define F __attribute__((noipa))
F void values(int i, unsigned long u, const char *s, const struct pair *p, enum color c, bool b, const double *d)
{
	sink += i + (long)u + c + b + (int)*d + (p == 0) + (s == 0);
}
static inline __attribute__((always_inline)) int half(int unused, int n) { return n / 2; }
F long down(int n)
{
	if (n == 13)
		longjmp(point, 1);
	return n ? down(n - 1) + half(n, (int)sink) : sink;
}
F long top(int n) { return setjmp(point) ? -1 : down(n) * 2; }
static void *again(void *arg)
{
	prctl(PR_SET_NAME, arg ? "wor\"ker\n" : "other");
	for (int i = 0; i < 40; i++)
		top(i % 20);
	return 0;
}
int main(void)
{
	static const char *const words[] = {"", "zw\303\266lf", "\033[1m\"q\"\\\n", "\377\xe2\x80\xa8", 0};
	pthread_t t;
	for (int i = 0; i < 8; i++) {
		struct pair p = {-i, words[i % 4], {i, -1, 1l << 60}};
		double d = i % 3 ? i / 3.0 : -1e300 * i;
		values(i - 4, (unsigned long)-i, words[i % 4], i == 7 ? (void *)8 : &p, i % 2 ? GREEN : 9, i % 2, &d);
	}
	pthread_create(&t, 0, again, &t);
	again(0);
	pthread_join(t, 0);
	return 0;
}
"""
# Calls that tell by their arguments what they return.
TELLING = r"""
#include <stdlib.h>
#define F __attribute__((noipa))
F int leaf(int a) { return a; }
F int mid(int a) { int r = leaf(a * 10); __asm__ volatile(""); return r; }
int main(int argc, char **argv)
{
	int n = atoi(argv[argc - 1]);
	for (int i = 0; i < n; i++)
		leaf(i), mid(i);
	return 0;
}
"""
VALUES = "values(i, u, s, *p, p->text, c, b, *d, i + 1, u:hex, buf(s, 2), p->list)"
