/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A fuzz target without a fuzzer
 *
 *	replay_FORMAT              run the seeds, cut and damaged: part of make check
 *	replay_FORMAT FILE...      run these inputs: a crash that libFuzzer wrote down
 *	replay_FORMAT --write DIR  write the seeds into DIR: where libFuzzer starts
 *
 * Each input is copied to a heap block of exactly its size, so that a sanitizer sees a read beyond
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

/*
 * A seed is cut and damaged at no more than so many places, evenly spread: `make check` replays,
 * `make fuzz` searches.
 */
enum { PLACES_MAX = 500 };

static const char *seed_dir;
static unsigned int n_seeds, n_runs;

static void run(const uint8_t *bytes, size_t size)
{
	uint8_t *copy = calloc(1, size ? size : 1);

	if (!copy)
		abort();
	if (size)
		memcpy(copy, bytes, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
	n_runs++;
}

static void run_damaged(const void *bytes, size_t size)
{
	size_t stride = size / (&fuzz_places_max ? fuzz_places_max : PLACES_MAX) + 1;
	uint8_t *damaged = calloc(1, size ? size : 1);

	if (!damaged)
		abort();
	if (size)
		memcpy(damaged, bytes, size);
	n_seeds++;
	run(damaged, size);
	for (size_t i = 0; i < size; i += stride) {
		uint8_t was = damaged[i];

		run(damaged, i);
		damaged[i] = was ^ (1u << (i / stride % 8));
		run(damaged, size);
		damaged[i] = 0xff;
		run(damaged, size);
		damaged[i] = was;
	}
	free(damaged);
}

static void write_seed(const void *bytes, size_t size)
{
	char path[4096];
	FILE *out;

	snprintf(path, sizeof(path), "%s/seed%u", seed_dir, n_seeds++);
	out = fopen(path, "we");
	if (!out || fwrite(bytes, 1, size, out) != size || fclose(out)) {
		perror(path);
		exit(1);
	}
}

static int run_file(const char *path)
{
	FILE *in = fopen(path, "re");
	uint8_t *bytes = NULL;
	size_t size = 0, room = 0;

	if (!in) {
		perror(path);
		return 1;
	}
	do {
		if (size == room) {
			room = room ? 2 * room : 65536;
			bytes = realloc(bytes, room);
			if (!bytes)
				abort();
		}
		size += fread(bytes + size, 1, room - size, in);
	} while (size == room);
	fclose(in);
	run(bytes, size);
	free(bytes);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "--write")) {
		seed_dir = argv[2];
		fuzz_seeds(write_seed);
		return 0;
	}
	for (int i = 1; i < argc; i++)
		if (run_file(argv[i]))
			return 1;
	if (argc > 1)
		return 0;
	fuzz_seeds(run_damaged);
	printf("%u seeds, %u inputs\n", n_seeds, n_runs);
	return n_seeds ? 0 : 1;
}
