/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks of one's own stack in several threads, while libraries come and go, tables are made and
 * signals arrive
 *
 *	threads LIBRARY SECONDS		LIBRARY: call_back(), of plugin.c
 *
 * For the thread sanitizer; and each walk that no signal is in the way of has to be complete, of
 * the right number of frames.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include <cairn/backtrace.h>

enum { N_WALKERS = 4, MAX = 256 };

static const char *library;
/*
 * The loader has a lock of its own, which the sanitizer does not see: what it allocates would seem
 * unordered. Walks are not under it.
 */
static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
static bool stop;
static unsigned long n_walks, n_in_handlers, n_loads, n_prepared, n_wrong, n_ends[32];

static void add(unsigned long *to)
{
	__atomic_fetch_add(to, 1, __ATOMIC_RELAXED);
}

static bool is_stopped(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

static void on_signal(int signal, siginfo_t *info, void *context)
{
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	int was = errno;
	size_t n = cairn_backtrace_context(context, pcs, MAX, &walk);
	add(&n_in_handlers);
	if (n == 0 || errno != was)
		add(&n_wrong);
	/* From here the handler and what it interrupted are frames of one stack. */
	cairn_backtrace(pcs, MAX, &walk);
	add(&n_ends[walk.end]);
	(void)signal;
	(void)info;
}

static __attribute__((noinline)) size_t walk_here(void)
{
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	size_t n = cairn_backtrace(pcs, MAX, &walk);
	add(&n_walks);
	if (walk.end != CAIRN_WALK_OUTERMOST)
		add(&n_wrong);
	return n;
}

static __attribute__((noinline)) size_t recurse(int n, size_t (*then)(void))
{
	size_t got = n ? recurse(n - 1, then) : then();
	__asm__ volatile("" ::: "memory");
	return got;
}

static void *load(void)
{
	pthread_mutex_lock(&loading);
	void *handle = dlopen(library, RTLD_NOW);
	pthread_mutex_unlock(&loading);
	return handle;
}

static void unload(void *handle)
{
	pthread_mutex_lock(&loading);
	dlclose(handle);
	pthread_mutex_unlock(&loading);
}

/*
 * Through a library that only this thread has open at the moment, at an address where another one
 * may have been.
 */
static void walk_through_library(void)
{
	void *handle = load();
	size_t (*call_back)(size_t(*)(void), int) =
		handle ? (size_t(*)(size_t(*)(void), int))dlsym(handle, "call_back") : NULL;
	if (!call_back) {
		add(&n_wrong);
		return;
	}
	size_t one = call_back(walk_here, 0), ten = call_back(walk_here, 9);
	if (ten != one + 9)
		add(&n_wrong);
	add(&n_loads);
	unload(handle);
}

static void *walk_often(void *arg)
{
	for (int i = (int)(long)arg; !is_stopped(); i++) {
		size_t n = recurse(i % 40, walk_here);
		if (recurse(i % 40 + 3, walk_here) != n + 3)
			add(&n_wrong);
		if (i % 16 == 0)
			walk_through_library();
	}
	return NULL;
}

static void *prepare_often(void *arg)
{
	while (!is_stopped()) {
		if (cairn_backtrace_prepare(NULL) <= 0)
			add(&n_wrong);
		add(&n_prepared);
		nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t walkers[N_WALKERS], preparer;
	struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART};
	if (argc < 3)
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	library = argv[1];
	sigaction(SIGUSR1, &action, NULL);
	for (long i = 0; i < N_WALKERS; i++)
		if (pthread_create(&walkers[i], NULL, walk_often, (void *)(i * 7)))
			return 3;
	if (pthread_create(&preparer, NULL, prepare_often, NULL))
		return 3;
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
		for (int i = 0; i < N_WALKERS; i++)
			pthread_kill(walkers[i], SIGUSR1);
		nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < N_WALKERS; i++)
		pthread_join(walkers[i], NULL);
	pthread_join(preparer, NULL);
	printf("    %lu walks, %lu in handlers of which %lu reach the outermost frame, %lu "
	       "libraries loaded, %lu times prepared; %lu wrong\n",
	       n_walks, n_in_handlers, n_ends[CAIRN_WALK_OUTERMOST], n_loads, n_prepared, n_wrong);
	return n_wrong || !n_loads || !n_in_handlers || !n_prepared;
}
