/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of one function by several threads, each on a processor of its own, which logs them itself
 *
 *	calls LOG CALLS	waits for a byte on its standard input before the first call
 *
 * Threads log in memory after each call, so that nothing of the traced code depends on the log. LOG
 * is JSON of the threads, one a line, a blank line, and then one struct call for each call. Every
 * 200 calls a thread sleeps: readers of events need time on the same processors.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define KEYS    12000
#define TEXTS   8
#define AT_ONCE 200

struct call {
	uint64_t u;
	int32_t n;
	uint16_t key;
	int16_t h;
	uint8_t y, c, text, way, thread, pad[3];
};

static const char *const texts[TEXTS] = {
	"a",
	"bb",
	"a longer one",
	"",
	NULL,
	"caf\303\251 \"q\"",
	"0123456789012345678901234567890123456789012345678901234567890123456789",
	"/index.html"};
static volatile long sink;
static unsigned long rounds;

__attribute__((noinline)) void hit(int n, uint64_t u, short h, unsigned char y, char c,
				   const char *s, int k)
{
	sink = n;
	__asm__ volatile("" : : "r"(u), "r"(h), "r"(y), "r"(c), "r"(s), "r"(k) : "memory");
}

static inline __attribute__((always_inline)) void call(const struct call *c)
{
	hit(c->n, c->u, c->h, c->y, (char)c->c, texts[c->text], c->key);
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void way_0(const struct call *c)
{
	call(c);
}

__attribute__((noinline)) static void way_1(const struct call *c)
{
	sink = 1;
	call(c);
}

__attribute__((noinline)) static void way_2(const struct call *c)
{
	way_1(c);
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void way_3(const struct call *c, int depth)
{
	if (depth)
		way_3(c, depth - 1);
	else
		call(c);
	__asm__ volatile("" : : : "memory");
}

static void go(const struct call *c)
{
	if (c->way == 0)
		way_0(c);
	else if (c->way == 1)
		way_1(c);
	else if (c->way == 2)
		way_2(c);
	else
		way_3(c, 3);
}

/* Few keys have most of the calls. */
static struct call make(uint64_t *seed, unsigned long i)
{
	uint64_t x = *seed = *seed * 6364136223846793005u + 1442695040888963407u;
	unsigned int shift = (x >> 58) & 31;

	x ^= x >> 29;
	return (struct call){.n = i % 97 ? (int32_t)x >> shift : 0,
			     .u = i % 11 ? x << 1 >> shift : ~(uint64_t)i,
			     .key = (uint16_t)(x >> 20 & 3 ? (x >> 33) % 97 : (x >> 33) % KEYS),
			     .h = (int16_t)x,
			     .y = (uint8_t)(x >> 3),
			     .c = (uint8_t)('a' + x % 26),
			     .text = x >> 12 & 7,
			     .way = x >> 17 & 3};
}

struct thread {
	uint64_t seed;
	struct call *calls;
	int number, tid, cpu;
};

static void *run(void *arg)
{
	struct thread *t = arg;
	struct timespec pause = {.tv_nsec = 1000000};
	char name[16];

	snprintf(name, sizeof(name), "agg-%d", t->number);
	pthread_setname_np(pthread_self(), name);
	t->tid = gettid();
	t->cpu = sched_getcpu();
	for (unsigned long i = 0; i < rounds; i++) {
		struct call c = make(&t->seed, i);
		c.thread = (uint8_t)t->number;
		go(&c);
		t->calls[i] = c;
		if (i % AT_ONCE == 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* On one of the processors that this process may use. */
static void start(struct thread *t, pthread_t *id)
{
	pthread_attr_t attr;
	cpu_set_t all, one;
	int cpu = -1;

	sched_getaffinity(0, sizeof(all), &all);
	for (int left = t->number % CPU_COUNT(&all); left >= 0; left--)
		for (cpu++; !CPU_ISSET(cpu, &all); cpu++)
			;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	pthread_create(id, &attr, run, t);
}

static int write_log(const char *path, const struct thread *threads)
{
	FILE *out = fopen(path, "w");

	if (!out)
		return 1;
	for (int i = 0; i < THREADS; i++)
		fprintf(out, "{\"tid\": %d, \"cpu\": %d, \"comm\": \"agg-%d\"}\n", threads[i].tid,
			threads[i].cpu, i);
	fputc('\n', out);
	for (int i = 0; i < THREADS; i++)
		fwrite(threads[i].calls, sizeof(struct call), rounds, out);
	return fclose(out);
}

int main(int argc, char **argv)
{
	struct thread threads[THREADS];
	pthread_t ids[THREADS];

	if (argc < 3 || getchar() == EOF)
		return 2;
	rounds = strtoul(argv[2], NULL, 10) / THREADS;
	for (int i = 0; i < THREADS; i++) {
		threads[i] = (struct thread){.number = i,
					     .seed = 77u * (i + 1),
					     .calls = calloc(rounds, sizeof(struct call))};
		start(&threads[i], &ids[i]);
	}
	for (int i = 0; i < THREADS; i++)
		pthread_join(ids[i], NULL);
	return write_log(argv[1], threads);
}
