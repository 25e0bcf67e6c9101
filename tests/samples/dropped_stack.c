/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A thread 40 frames of two pages deep, whose pages another thread drops every few milliseconds
 *
 * The stack is in shared memory of a file, so that nothing is lost by that. It is busy for as many
 * milliseconds as the first argument says; the second is from drop to drop.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
enum { STACK = 1 << 20, DEPTH = 40 };
static atomic_int is_over;
static double seconds;
volatile unsigned long sink;
static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
__attribute__((noinline)) static void burn(void)
{
	for (unsigned long i = 0; i < 20000; i++)
		sink += i;
}
__attribute__((noinline)) int descend(int depth)
{
	volatile char pages[8000];
	int n;

	memset((char *)pages, depth, sizeof(pages));
	if (!depth) {
		while (used() < seconds)
			burn();
		return 1;
	}
	n = descend(depth - 1);
	return n + pages[depth];
}
static void *work(void *arg)
{
	descend(DEPTH - 1);
	is_over = 1;
	return arg;
}
int main(int argc, char **argv)
{
	int fd = memfd_create("stack", 0);
	pthread_attr_t attr;
	pthread_t thread;
	char *stack;

	if (argc != 3)
		return 2;
	seconds = atoi(argv[1]) / 1e3;
	if (ftruncate(fd, STACK))
		return 1;
	stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, stack, STACK);
	pthread_create(&thread, &attr, work, NULL);
	while (!is_over) {
		usleep((unsigned int)atoi(argv[2]) * 1000);
		madvise(stack, STACK, MADV_DONTNEED);
	}
	pthread_join(thread, NULL);
	return 0;
}
