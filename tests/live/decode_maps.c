/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds the maps of a BPF object for test_decode_maps.py, and does to them what it is told
 *
 *	decode_maps OBJECT
 *
 * First it prints "NAME ID" for each map and an empty line. Then for each line of its input one
 * line of output:
 *
 *	run N          run the object's program N times              "ok"
 *	put MAP N      N entries: numbers from 0 on in all words     "ok"
 *	push MAP N     the same without keys                         "ok"
 *	name MAP N     N values of 276 bytes: number, path, command  "ok"
 *	own MAP        a value each for this thread, its program, a socket, the root of
 *	               the cgroups, in the map of that kind: 7 in all words    "ok"
 *	drain          what the ring buffer's reader gets            "COUNT"
 *	storm MS       writing and reading at full speed             "COUNT"
 *
 * Exit status 77: the kernel or this user cannot have BPF programs.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

static struct bpf_object *object;
static volatile bool stop;
static unsigned long n_read;

static int run(unsigned int times)
{
	static char packet[64];
	struct bpf_program *prog = bpf_object__next_program(object, NULL);
	LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = packet, .data_size_in = sizeof(packet),
		    .repeat = (int)times);

	return bpf_prog_test_run_opts(bpf_program__fd(prog), &opts);
}

static void fill(uint32_t *words, uint32_t bytes, uint32_t value)
{
	for (uint32_t i = 0; i < bytes / 4; i++)
		words[i] = value;
}

static int put(const char *name, uint32_t n, bool keys)
{
	static uint32_t key[64], value[65536];
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	int rc = map ? 0 : -ENOENT;

	for (uint32_t i = 0; i < n && !rc; i++) {
		fill(key, bpf_map__key_size(map), i);
		if (bpf_map__type(map) == BPF_MAP_TYPE_LPM_TRIE)
			key[0] = 32;
		/* Per CPU: all processors have the same. */
		fill(value, sizeof(value) / 8, i);
		rc = bpf_map_update_elem(bpf_map__fd(map), keys ? key : NULL, value, BPF_ANY);
	}
	return rc;
}

static int put_names(const char *name, uint32_t n)
{
	static struct {
		uint32_t pid;
		char filename[256], comm[16];
	} value = {.comm = "systemd-journal"};
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	int rc = !map ? -ENOENT : bpf_map__value_size(map) == sizeof(value) ? 0 : -EINVAL;

	for (uint32_t i = 0; i < n && !rc; i++) {
		value.pid = i;
		snprintf(value.filename, sizeof(value.filename),
			 "/usr/lib/x86_64-linux-gnu/libexample-%u.so.6", i);
		rc = bpf_map_update_elem(bpf_map__fd(map), &i, &value, BPF_ANY);
	}
	return rc;
}

/* A descriptor of an owner of each kind, kept open as long as this program runs. */
static int owner_for(enum bpf_map_type type)
{
	int fd;

	switch (type) {
	case BPF_MAP_TYPE_TASK_STORAGE:
		return (int)syscall(SYS_pidfd_open, getpid(), 0);
	case BPF_MAP_TYPE_SK_STORAGE:
		return socket(AF_INET, SOCK_DGRAM, 0);
	case BPF_MAP_TYPE_INODE_STORAGE:
		return open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	default:
		fd = open("/sys/fs/cgroup/unified", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? open("/sys/fs/cgroup", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : fd;
	}
}

static int own(const char *name)
{
	static uint32_t value[1024];
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);
	int fd = map ? owner_for(bpf_map__type(map)) : -1;

	if (fd < 0)
		return -ENOENT;
	fill(value, sizeof(value), 7);
	return bpf_map_update_elem(bpf_map__fd(map), &fd, value, BPF_ANY);
}

static int on_record(void *ctx, void *data, size_t size)
{
	n_read++;
	return 0;
}

static struct ring_buffer *reader(void)
{
	return ring_buffer__new(bpf_object__find_map_fd_by_name(object, "events"), on_record, NULL,
				NULL);
}

static unsigned long drain(void)
{
	struct ring_buffer *ring = reader();

	n_read = 0;
	ring_buffer__consume(ring);
	ring_buffer__free(ring);
	return n_read;
}

static void *write_on(void *ctx)
{
	while (!stop)
		run(100);
	return NULL;
}

static unsigned long storm(unsigned long ms)
{
	struct ring_buffer *ring = reader();
	struct timespec now, end;
	pthread_t writer;

	n_read = 0;
	stop = false;
	pthread_create(&writer, NULL, write_on, NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += (time_t)(ms / 1000);
	do {
		ring_buffer__consume(ring);
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (now.tv_sec < end.tv_sec ||
		 (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
	stop = true;
	pthread_join(writer, NULL);
	ring_buffer__free(ring);
	return n_read;
}

static void obey(char *line)
{
	char name[32];
	unsigned long n;
	int rc = 0;

	if (sscanf(line, "run %lu", &n) == 1) {
		rc = run((unsigned int)n);
	} else if (sscanf(line, "put %31s %lu", name, &n) == 2) {
		rc = put(name, (uint32_t)n, true);
	} else if (sscanf(line, "push %31s %lu", name, &n) == 2) {
		rc = put(name, (uint32_t)n, false);
	} else if (sscanf(line, "name %31s %lu", name, &n) == 2) {
		rc = put_names(name, (uint32_t)n);
	} else if (sscanf(line, "own %31s", name) == 1) {
		rc = own(name);
	} else if (!strncmp(line, "drain", 5)) {
		printf("%lu\n", drain());
		return;
	} else if (sscanf(line, "storm %lu", &n) == 1) {
		printf("%lu\n", storm(n));
		return;
	}
	printf(rc ? "failed: %d\n" : "ok\n", rc);
}

int main(int argc, char **argv)
{
	char line[256];
	struct bpf_map *map;

	if (argc != 2)
		return 2;
	object = bpf_object__open_file(argv[1], NULL);
	if (!object || bpf_object__load(object)) {
		printf("BPF objects cannot be loaded here: %s\n", strerror(errno));
		return 77;
	}
	bpf_object__for_each_map(map, object)
	{
		struct bpf_map_info info = {0};
		uint32_t size = sizeof(info);
		bpf_obj_get_info_by_fd(bpf_map__fd(map), &info, &size);
		printf("%s %u\n", bpf_map__name(map), info.id);
	}
	puts("");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		obey(line);
		fflush(stdout);
	}
	bpf_object__close(object);
	return 0;
}
