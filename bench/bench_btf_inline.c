/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What btf_inline.py runs: opens a file's .BTF.inline and asks for one function, and beside it
 * libbpf opens the .BTF that it was split from and finds the same name.
 *
 *	bench_btf_inline FILE BTF ROUNDS FUNCTION...
 *
 * Prints medians of microseconds of processor time: FUNCTION SITES OPEN FIND PEER-OPEN PEER-FIND. Each round opens
 * all anew. libbpf knows no sites, so its find is the name alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <bpf/btf.h>
#include <cairn/binary.h>
#include <cairn/btf/sites.h>
#include <cairn/sites.h>

enum { OPEN, FIND, PEER_OPEN, PEER_FIND, N_STEPS, ROUNDS_MAX = 1000 };

static double times[N_STEPS][ROUNDS_MAX];

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_time(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static double median(int step, int rounds)
{
	qsort(times[step], (size_t)rounds, sizeof(times[step][0]), by_time);
	return times[step][rounds / 2];
}

/* Returns the number of sites. */
static unsigned int ours(const struct cairn_binary *bin, const char *btf, const char *name,
			 int round)
{
	const struct cairn_btf_sites_opts opts = {.size = sizeof(opts), .file = btf};
	struct cairn_function_list found = {0};
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	unsigned int n = 0;
	double start = now_us();

	if (cairn_btf_sites_open(bin, &opts, &sites, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		exit(1);
	}
	times[OPEN][round] = now_us() - start;
	start = now_us();
	if (cairn_sites_find(sites, name, &found, &err) < 0)
		fprintf(stderr, "%s\n", err.msg);
	times[FIND][round] = now_us() - start;
	for (size_t i = 0; i < found.n; i++)
		n += found.p[i]->n_sites;
	cairn_sites_close(sites);
	return n;
}

static void peer(const char *btf, const char *name, int round)
{
	double start = now_us();
	struct btf *b = btf__parse(btf, NULL);

	times[PEER_OPEN][round] = now_us() - start;
	start = now_us();
	if (b)
		btf__find_by_name_kind(b, name, BTF_KIND_FUNC);
	times[PEER_FIND][round] = now_us() - start;
	btf__free(b);
}

static void measure(const char *file, const char *btf, int rounds, const char *name)
{
	unsigned int n = 0;

	for (int i = 0; i < rounds; i++) {
		struct cairn_binary *bin;
		struct cairn_err err = {0};
		if (cairn_binary_open(file, NULL, &bin, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			exit(1);
		}
		n = ours(bin, btf, name, i);
		cairn_binary_close(bin);
		peer(btf, name, i);
	}
	printf("%s %u", name, n);
	for (int step = 0; step < N_STEPS; step++)
		printf(" %.0f", median(step, rounds));
	printf("\n");
}

int main(int argc, char **argv)
{
	int rounds = argc > 4 ? atoi(argv[3]) : 0;

	if (rounds < 1 || rounds > ROUNDS_MAX)
		return 2;
	for (int i = 4; i < argc; i++)
		measure(argv[1], argv[2], rounds, argv[i]);
	return 0;
}
