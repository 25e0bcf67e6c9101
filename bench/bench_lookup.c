/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lookups in a sidecar cost
 *
 *	bench_lookup SIDECAR LO HI [N]
 *
 * Opens it, looks N random addresses of [LO, HI) up, then N names of its functions. Prints
 * nanoseconds of processor time for each; lookup.py runs it beside other tools.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cairn/sidecar.h>

enum { NAMES_MAX = 1 << 20 };

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static uint64_t state = 1;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	return state ^= state << 17;
}

static void by_address(const struct cairn_sidecar *sidecar, uint64_t lo, uint64_t hi, size_t n)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	uint64_t *at = calloc(n, sizeof(*at));
	size_t found = 0;
	for (size_t i = 0; at && i < n; i++)
		at[i] = lo + next_random() % (hi - lo);
	double start = now_ns();
	for (size_t i = 0; at && i < n; i++)
		found += cairn_sidecar_frames(sidecar, (struct cairn_vaddr){at[i]}, frames,
					      CAIRN_FRAMES_MAX);
	printf("by address: %.0f ns, %.2f frames on average\n", (now_ns() - start) / (double)n,
	       (double)found / (double)n);
	free(at);
}

static void by_name(const struct cairn_sidecar *sidecar, size_t n)
{
	static const char *names[NAMES_MAX];
	struct cairn_sidecar_function f;
	size_t n_names = 0, found = 0;
	uint32_t numbers[8];
	for (uint32_t i = 1; n_names < NAMES_MAX && cairn_sidecar_function(sidecar, i, &f); i++)
		if (f.name)
			names[n_names++] = f.name;
	double start = now_ns();
	for (size_t i = 0; n_names && i < n; i++)
		found += cairn_sidecar_find(sidecar, names[next_random() % n_names], numbers, 8);
	printf("by name: %.0f ns, %.2f functions on average\n", (now_ns() - start) / (double)n,
	       (double)found / (double)n);
}

int main(int argc, char **argv)
{
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	if (argc < 4) {
		fprintf(stderr, "usage: bench_lookup SIDECAR LO HI [N]\n");
		return 2;
	}
	double start = now_ns();
	if (cairn_sidecar_open(argv[1], NULL, &sidecar, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return 1;
	}
	printf("open: %.1f us\n", (now_ns() - start) / 1e3);
	size_t n = argc > 4 ? strtoul(argv[4], NULL, 10) : 1000000;
	by_address(sidecar, strtoull(argv[2], NULL, 16), strtoull(argv[3], NULL, 16), n);
	by_name(sidecar, n);
	cairn_sidecar_close(sidecar);
	return 0;
}
