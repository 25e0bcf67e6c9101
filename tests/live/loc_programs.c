/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds the programs of an object while a command runs, and prints the records that they made.
 *
 *	loc_programs [-1mp] [-b DIR] [-k FILE] [-f FILE] [-t PROGRAM TARGET COOKIE]... OBJECT COMMAND ARG...
 *
 * Programs with a target in their SEC() are attached by libbpf. What libbpf and the library say
 * goes to standard error. -p: print how long the programs ran. -1: do not run the command once more
 * when they are gone. -k: what describes the kernel. -b: where its BTF is. -f: lines of what -t has.
 * -m: print how many hits the links missed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <cairn/loc.h>

#include "loc_record.h"

enum { LINKS_MAX = 256, WANTED_MAX = 256 };

struct wanted {
	const char *program, *target;
	uint64_t cookie;
};

static struct bpf_link *links[LINKS_MAX];
static unsigned int n_links;
static int prints_times, prints_missed, runs_once;

static int on_record(void *ctx, void *data, size_t size)
{
	const struct loc_record *r = data;

	(void)ctx;
	(void)size;
	printf("%u %d %llu", r->id, r->n, (unsigned long long)r->cookie);
	for (int i = 0; i < r->n && i < LOC_RECORD_ARGS; i++) {
		if (r->args[i].error) {
			printf(" %d", r->args[i].error);
			continue;
		}
		printf(" =");
		for (int k = 0; k < 16; k++)
			printf("%02x", r->args[i].bytes[k]);
	}
	putchar('\n');
	return 0;
}

static int attach_all(struct bpf_object *object)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
	{
		if (!strchr(bpf_program__section_name(prog), '/'))
			continue;
		links[n_links] = bpf_program__attach(prog);
		if (!links[n_links])
			return -1;
		if (++n_links == LINKS_MAX)
			return -1;
	}
	return 0;
}

static int attach_one(struct bpf_object *object, const struct wanted *w)
{
	struct cairn_loc_attach_opts opts = {.size = sizeof(opts), .cookie = w->cookie};
	struct cairn_err err = {0};
	struct bpf_program *prog = bpf_object__find_program_by_name(object, w->program);

	if (prog && !cairn_loc_attach(prog, w->target, &opts, &links[n_links], &err)) {
		n_links++;
		return 0;
	}
	fprintf(stderr, "%s\n", err.msg);
	return -1;
}

static int run(char **argv)
{
	int status = -1;
	pid_t child = fork();

	if (!child) {
		execvp(argv[0], argv);
		_exit(127);
	}
	return waitpid(child, &status, 0) < 0 ? -1 : status;
}

static void print_times(struct bpf_object *object)
{
	struct bpf_program *prog;

	bpf_object__for_each_program(prog, object)
	{
		struct bpf_prog_info info = {0};
		__u32 size = sizeof(info);
		if (!bpf_obj_get_info_by_fd(bpf_program__fd(prog), &info, &size))
			fprintf(stderr, "%s: %llu runs, %llu ns\n", bpf_program__name(prog),
				info.run_cnt, info.run_time_ns);
	}
}

static void print_missed(void)
{
	struct cairn_err err = {0};
	uint64_t n, all = 0;

	for (unsigned int i = 0; i < n_links; i++) {
		if (cairn_loc_missed(links[i], &n, &err)) {
			fprintf(stderr, "missed unknown: %s\n", err.msg);
			return;
		}
		all += n;
	}
	fprintf(stderr, "missed %llu\n", (unsigned long long)all);
}

static int read_wanted(const char *path, struct wanted *ret, int n)
{
	FILE *f = fopen(path, "re");
	char program[64], target[256];
	unsigned long long cookie;

	while (f && n < WANTED_MAX && fscanf(f, "%63s %255s %llu", program, target, &cookie) == 3)
		ret[n++] = (struct wanted){strdup(program), strdup(target), cookie};
	if (f)
		fclose(f);
	return n;
}

static int hold(struct bpf_object *object, const struct wanted *wanted, int n, char **command,
		struct ring_buffer *ring)
{
	int status;

	for (int i = 0; i < n; i++)
		if (attach_one(object, &wanted[i]))
			return 3;
	if (!ring || attach_all(object))
		return 3;
	status = run(command);
	if (prints_times)
		print_times(object);
	if (prints_missed)
		print_missed();
	while (n_links)
		if (bpf_link__destroy(links[--n_links]))
			return 4;
	/* Nothing is attached any more. */
	if (!runs_once && run(command) != status)
		return 5;
	ring_buffer__consume(ring);
	return status ? 6 : 0;
}

int main(int argc, char **argv)
{
	static struct wanted wanted[WANTED_MAX];
	int n = 0, option, status;
	struct ring_buffer *ring;
	struct bpf_object *object;
	struct cairn_loc_opts opts = {.size = sizeof(opts)};
	struct cairn_err err = {0};

	while ((option = getopt(argc, argv, "+1b:f:k:mpt:")) != -1) {
		prints_times |= option == 'p';
		prints_missed |= option == 'm';
		runs_once |= option == '1';
		if (option == 'b')
			opts.sysfs = optarg;
		if (option == 'k')
			opts.kernel_file = optarg;
		if (option == 'f')
			n = read_wanted(optarg, wanted, n);
		if (option != 't' || n == WANTED_MAX)
			continue;
		wanted[n++] =
			(struct wanted){optarg, argv[optind], strtoull(argv[optind + 1], 0, 0)};
		optind += 2;
	}
	if (optind + 2 > argc || cairn_loc_register(&opts, &err))
		return 2;
	object = bpf_object__open(argv[optind]);
	if (!object || bpf_object__load(object))
		return 77;
	ring = ring_buffer__new(bpf_object__find_map_fd_by_name(object, "records"), on_record, NULL,
				NULL);
	status = hold(object, wanted, n, argv + optind + 1, ring);
	ring_buffer__free(ring);
	bpf_object__close(object);
	cairn_loc_unregister();
	return status;
}
