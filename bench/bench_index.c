/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long the function index and the search for one name take on a large file
 *
 *	bench_index FILE [FUNC [THREADS]]
 *
 * Prints wall seconds of opening, of each pass, DIEs per second and the peak of private memory.
 * Each pass is repeated, the best of five is shown.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dwarf/index.h"

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Peak of anonymous memory in MB: RssAnon has no peak of its own, so it is what is there now. */
static double private_mb(void)
{
	char line[256];
	double kb = 0;
	FILE *f = fopen("/proc/self/status", "r");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %lf kB", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb / 1024;
}

struct timing {
	double open, pass;
	size_t n;
	uint64_t n_dies;
	double mb;
};

static int once(const char *path, const char *func, unsigned int threads, struct timing *ret,
		struct cairn_err *err)
{
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct dw_func_index index;
	double start = now();
	int rc = cairn_binary_open(path, NULL, &bin, err);
	if (rc < 0)
		return rc;
	rc = dwarf_open(bin, threads, &dw, err);
	double opened = now();
	if (rc >= 0) {
		rc = func ? dwarf_functions_named(dw, threads, func, &index, err)
			  : dwarf_index_functions(dw, threads, &index, err);
		*ret = (struct timing){.open = opened - start, .pass = now() - opened};
		if (rc >= 0) {
			ret->n = index.n;
			ret->n_dies = index.n_dies;
			ret->mb = private_mb();
			dw_func_index_fini(&index);
		}
		dwarf_close(dw);
	}
	cairn_binary_close(bin);
	return rc;
}

static int best_of_five(const char *what, const char *path, const char *func, unsigned int threads)
{
	struct timing best = {0}, t;
	struct cairn_err err = {0};
	for (int i = 0; i < 5; i++) {
		if (once(path, func, threads, &t, &err) < 0) {
			fprintf(stderr, "%s\n", err.msg);
			return 1;
		}
		if (!i || t.open + t.pass < best.open + best.pass)
			best = t;
	}
	printf("%-24s open %.3f s, pass %.3f s, together %.3f s; %" PRIu64
	       " DIEs, %.1f M/s; %zu entries; "
	       "%.1f MB private\n",
	       what, best.open, best.pass, best.open + best.pass, best.n_dies,
	       (double)best.n_dies / best.pass / 1e6, best.n, best.mb);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2) {
		fprintf(stderr, "usage: bench_index FILE [FUNC [THREADS]]\n");
		return 2;
	}
	const char *func = argc > 2 ? argv[2] : "list_add";
	unsigned int threads = argc > 3 ? (unsigned int)atoi(argv[3]) : 0;
	int bad = best_of_five(func, argv[1], func, threads);
	return bad | best_of_five("full index", argv[1], NULL, threads);
}
