/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long it takes to attach to and detach from 10,000 sites of a live process
 *
 *	bench_attach [SITES]
 *
 * A program with that many inlined copies of one function is generated and compiled; it runs and
 * waits while it is traced. Targets: attach in 50 ms, detach in 150 ms. Exits with 77 and the
 * reason where nothing can be traced.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "copies.h"

#define SITES_DEFAULT 10000
#define ROUNDS        5

static int measure(pid_t pid)
{
	struct attaching best = {1e9, 1e9, 1e9, 0};

	for (int i = 0; i < ROUNDS; i++) {
		int e = attach_copies(pid, NULL, &best);
		if (e)
			return e;
	}
	printf("best of %d: %u sites, attach %.1f ms (target 50), detach %.1f ms (target 150), "
	       "load %.1f ms\n",
	       ROUNDS, best.n_sites, best.attach_ms, best.detach_ms, best.load_ms);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int sites = argc > 1 ? (unsigned int)atoi(argv[1]) : SITES_DEFAULT;
	char dir[] = "/tmp/cairn-bench-XXXXXX";

	if (geteuid()) {
		puts("tracing needs root");
		return COPIES_SKIPPED;
	}
	pid_t pid = start_copies(dir, sites);
	int e = pid > 0 ? measure(pid) : 1;
	end_copies(dir, pid);
	return e;
}
