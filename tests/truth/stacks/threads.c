/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with stacks of every kind, for stacks.py
 *
 *	threads SEED          a dozen threads that go on until they are killed
 *	threads SEED CRASH    the same, and one of them ends the process by CRASH
 */
#define _GNU_SOURCE
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define KEEP __attribute__((noinline, noclone))

static volatile long sink;
static const char *crash = "";

static KEEP void leaf(long n)
{
	for (long i = 0; i < n; i++)
		sink += i * n;
}

/* ---- frames ---- */

static KEEP long deep(long n)
{
	char here[32];
	snprintf(here, sizeof(here), "%ld", n);
	if (n <= 0) {
		leaf(5000);
		return here[0];
	}
	return deep(n - 1) + here[0];
}

static KEEP long with_alloca(long n)
{
	char *p = alloca((size_t)(n % 300 + 16));
	memset(p, (int)n, 16);
	long got = n ? with_alloca(n - 1) : (leaf(3000), 0);
	return got + p[n & 15];
}

static KEEP long realigned(long n)
{
	_Alignas(128) volatile char here[128];
	here[n & 127] = (char)n;
	long got = n ? realigned(n - 1) : (leaf(3000), 0);
	return got + here[n & 127];
}

static KEEP long realigned_alloca(long n)
{
	_Alignas(64) volatile char here[64];
	char *p = alloca((size_t)(n * 8 + 16));
	here[n & 63] = (char)n;
	p[0] = here[n & 63];
	long got = n ? realigned_alloca(n - 1) : with_alloca(3);
	return got + here[1] + p[0];
}

static KEEP int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	leaf(20);
	return x < y ? -1 : x > y;
}

static KEEP void sort(void)
{
	int n[200];
	for (int i = 0; i < 200; i++)
		n[i] = i * 7919 % 211;
	qsort(n, 200, sizeof(n[0]), compare);
	sink += n[3];
}

/* Its last instruction is the call. */
static KEEP __attribute__((noreturn)) void never_returns(void)
{
	for (;;)
		deep(5);
}

static KEEP void ends_in_a_call(long n)
{
	if (n)
		ends_in_a_call(n - 1);
	else
		never_returns();
	leaf(1);
}

/* ---- what threads do ---- */

static void *do_deep(void *arg)
{
	for (;;)
		sink += deep((long)arg % 150 + 20);
}

static void *do_alloca(void *arg)
{
	for (;;)
		sink += with_alloca((long)arg % 40) + realigned_alloca(12);
}

static void *do_realigned(void *arg)
{
	for (;;)
		sink += realigned((long)arg % 30 + 1);
}

static void *do_sort(void *arg)
{
	for (;;)
		sort();
}

static void *do_clock(void *arg)
{
	struct timespec t;
	for (;;) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		sink += t.tv_nsec;
	}
}

/* getppid() is one system call after one PLT entry. */
static void *do_plt(void *arg)
{
	for (;;)
		sink += getppid() + (long)strlen(crash);
}

static void *do_wait(void *arg)
{
	for (;;)
		usleep(200000);
}

static void *do_block(void *arg)
{
	static int ends[2];
	char c;
	if (pipe(ends) == 0)
		sink += read(ends[0], &c, 1);
	return NULL;
}

static void *do_lock(void *arg)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_mutex_lock(&lock);
	pthread_mutex_lock(&lock);
	return NULL;
}

static void *do_noreturn(void *arg)
{
	ends_in_a_call(4);
	return NULL;
}

static KEEP void on_signal(int signal)
{
	deep(signal > 0 ? 8 : 0);
}

static void use_other_stack(void)
{
	stack_t other = {.ss_size = 1 << 16};
	other.ss_sp = malloc(other.ss_size);
	sigaltstack(&other, NULL);
}

static void *do_handler(void *arg)
{
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	if (arg)
		use_other_stack();
	sigaction(arg ? SIGUSR1 : SIGUSR2, &action, NULL);
	for (;;) {
		raise(arg ? SIGUSR1 : SIGUSR2);
		leaf(10);
	}
}

/* ---- crashes ---- */

static KEEP void touch(volatile int *p)
{
	*p = 1;
}

static KEEP long overflow(long n)
{
	volatile char here[4096];
	here[n & 4095] = (char)n;
	return overflow(n + 1) + here[n & 4095];
}

static void *volatile no_code;

static KEEP long call(void)
{
	long (*f)(void) = (long (*)(void))no_code;
	return f() + 1;
}

static void bad_handler(int signal)
{
	touch((volatile int *)0x18);
}

static void abort_in_handler(int signal)
{
	abort();
}

static KEEP void die(void)
{
	struct sigaction in_handler = {.sa_handler = bad_handler, .sa_flags = SA_ONSTACK};
	struct sigaction aborts = {.sa_handler = abort_in_handler, .sa_flags = SA_ONSTACK};
	void *data = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	use_other_stack();
	if (!strcmp(crash, "null"))
		touch((volatile int *)0x10);
	if (!strcmp(crash, "abort"))
		abort();
	if (!strcmp(crash, "overflow"))
		sink += overflow(0);
	if (!strcmp(crash, "handler")) {
		sigaction(SIGUSR1, &in_handler, NULL);
		raise(SIGUSR1);
	}
	if (!strcmp(crash, "call-in-handler"))
		sigaction(SIGSEGV, &aborts, NULL);
	if (!strcmp(crash, "bad-pointer"))
		no_code = (void *)0x123456789;
	if (!strcmp(crash, "data"))
		no_code = data;
	if (!strcmp(crash, "trap"))
		__builtin_trap();
	if (!strcmp(crash, "noncanonical"))
		touch((volatile int *)0x8000000000000000);
	call();
}

static KEEP long sink_deep(long n)
{
	long got = n ? sink_deep(n - 1) : (die(), 0);
	return got + sink;
}

static void *do_crash(void *arg)
{
	usleep(30000);
	sink += sink_deep(10);
	return NULL;
}

static void start(const char *name, void *(*f)(void *), long arg)
{
	pthread_t t;
	if (pthread_create(&t, NULL, f, (void *)arg) != 0)
		exit(3);
	pthread_setname_np(t, name);
}

int main(int argc, char **argv)
{
	long seed = argc > 1 ? atol(argv[1]) : 1;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (argc > 2)
		crash = argv[2];
	start("deep", do_deep, seed * 131);
	start("alloca", do_alloca, seed * 17);
	start("realigned", do_realigned, seed * 7);
	start("sort", do_sort, 0);
	start("clock", do_clock, 0);
	start("plt", do_plt, 0);
	start("wait", do_wait, 0);
	start("block", do_block, 0);
	start("lock", do_lock, 0);
	start("noreturn", do_noreturn, 0);
	start("handler", do_handler, 0);
	start("altstack", do_handler, 1);
	if (argc > 2)
		start("crash", do_crash, 0);
	if (write(1, "ready\n", 6) != 6)
		return 3;
	do_sort(NULL);
}
