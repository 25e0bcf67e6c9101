/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control: a user probe as any other tool sets it, without looking at the bytes
 *
 *	plain_uprobe OFFSET PROGRAM ARG...
 *
 * Runs PROGRAM with a counting probe at the file offset, then prints "hits N" on stderr. Exit code
 * 3: not permitted.
 */
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int uprobe_type(void)
{
	FILE *file = fopen("/sys/bus/event_source/devices/uprobe/type", "r");
	int type = -1;

	if (file && fscanf(file, "%d", &type) != 1)
		type = -1;
	if (file)
		fclose(file);
	return type;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = {.size = sizeof(attr)};
	uint64_t hits = 0;
	int go[2], status, fd;
	char byte;
	pid_t pid;

	if (argc < 3 || pipe(go) != 0)
		return 2;
	pid = fork();
	if (pid == 0) {
		/* Wait until the probe is set. */
		if (read(go[0], &byte, 1) != 1)
			_exit(2);
		execv(argv[2], argv + 2);
		_exit(2);
	}
	attr.type = (unsigned int)uprobe_type();
	attr.uprobe_path = (uintptr_t)argv[2];
	attr.probe_offset = strtoull(argv[1], NULL, 0);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		perror("perf_event_open");
	if (write(go[1], "g", 1) != 1)
		return 2;
	waitpid(pid, &status, 0);
	if (fd < 0 || read(fd, &hits, sizeof(hits)) != sizeof(hits))
		return 3;
	fprintf(stderr, "hits %llu\n", (unsigned long long)hits);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
