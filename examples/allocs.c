/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often each size is asked for, at a function whose first argument is a size
 *
 *	allocs OBJECT PATH:FUNC COMMAND ARG...
 *
 * docs/libbpf.md has the commands that build and run it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cairn/loc.h>

static int run(char **argv)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return child < 0 || waitpid(child, &status, 0) < 0 ? -1 : status;
}

static int by_size(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void print_sizes(int map)
{
	static __u64 keys[10000];
	size_t n = 0;
	__u64 times;

	while (n < 10000 && !bpf_map_get_next_key(map, n ? &keys[n - 1] : NULL, &keys[n]))
		n++;
	qsort(keys, n, sizeof(keys[0]), by_size);
	for (size_t i = 0; i < n; i++)
		if (!bpf_map_lookup_elem(map, &keys[i], &times))
			printf("%llu bytes: %llu times\n", keys[i], times);
}

static int trace(struct bpf_object *object, const char *target, char **command)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(object, "on_alloc");
	struct cairn_loc_attach_opts opts = {.size = sizeof(opts)};
	struct bpf_link *link;
	struct cairn_err err;
	uint32_t n_sites = 0;

	opts.n_sites = &n_sites;
	if (cairn_loc_attach(prog, target, &opts, &link, &err) < 0)
		return fprintf(stderr, "%s\n", err.msg), 1;
	printf("%u sites\n", n_sites);
	run(command);
	bpf_link__destroy(link);
	print_sizes(bpf_object__find_map_fd_by_name(object, "sizes"));
	return 0;
}

int main(int argc, char **argv)
{
	struct bpf_object *object;
	struct cairn_err err;

	if (argc < 4)
		return fprintf(stderr, "usage: %s OBJECT PATH:FUNC COMMAND ARG...\n", argv[0]), 2;
	if (cairn_loc_register(NULL, &err) < 0)
		return fprintf(stderr, "%s\n", err.msg), 1;
	object = bpf_object__open(argv[1]);
	if (!object || bpf_object__load(object))
		return 1;
	int status = trace(object, argv[2], argv + 3);
	bpf_object__close(object);
	return status;
}
