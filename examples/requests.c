/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many requests block devices are asked for while a command runs
 *
 *	requests [-k KERNEL-FILE] OBJECT COMMAND ARG...
 *
 * KERNEL-FILE: vmlinux with debug information, or a sidecar. docs/libbpf.md has the commands that
 * build and run it. /sys/dev/block/MAJOR:MINOR/stat counts the same.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cairn/loc.h>

#include "requests.h"

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

/* As the kernel counts them. */
static const char *kind(unsigned int operation)
{
	if (operation == 3)
		return "discards";
	return operation & 1 ? "writes" : "reads";
}

static void print_requests(int map)
{
	struct request_key key, *last = NULL;
	__u64 n;

	for (; !bpf_map_get_next_key(map, last, &key); last = &key)
		if (!bpf_map_lookup_elem(map, &key, &n))
			printf("%u:%u %s %llu\n", key.major, key.minor, kind(key.operation), n);
}

static int trace(struct bpf_object *object, char **command)
{
	struct bpf_program *prog = bpf_object__find_program_by_name(object, "on_start");
	struct bpf_link *link = bpf_program__attach(prog);

	if (!link)
		return 1;
	run(command);
	bpf_link__destroy(link);
	print_requests(bpf_object__find_map_fd_by_name(object, "requests"));
	return 0;
}

int main(int argc, char **argv)
{
	struct cairn_loc_opts opts = {.size = sizeof(opts)};
	struct bpf_object *object;
	struct cairn_err err;
	int option;

	while ((option = getopt(argc, argv, "+k:")) == 'k')
		opts.kernel_file = optarg;
	if (option != -1 || argc - optind < 2)
		return fprintf(stderr, "usage: %s [-k KERNEL-FILE] OBJECT COMMAND ARG...\n",
			       argv[0]),
		       2;
	if (cairn_loc_register(&opts, &err) < 0)
		return fprintf(stderr, "%s\n", err.msg), 1;
	object = bpf_object__open(argv[optind]);
	if (!object || bpf_object__load(object))
		return 1;
	int status = trace(object, argv + optind + 1);
	bpf_object__close(object);
	return status;
}
