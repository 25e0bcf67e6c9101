/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/target.h"

#include <ctype.h>
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"
#include "code/timed_read.h"

/* of the short files below /proc: a status is 1.5 KB, an auxiliary vector 400 bytes */
enum { MAX_TEXT = 4096 };

size_t target_read_proc(int pid, const char *name, void *buf, size_t size)
{
	char path[64];
	size_t n = 0;
	ssize_t r;
	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	while (n < size - 1 && (r = read(fd, (char *)buf + n, size - 1 - n)) > 0)
		n += (size_t)r;
	((char *)buf)[n] = 0;
	return n;
}

static int status_number(int pid, const char *key)
{
	char text[MAX_TEXT];
	if (!target_read_proc(pid, "status", text, sizeof(text)))
		return 0;
	const char *at = strstr(text, key);
	return at ? atoi(at + strlen(key)) : 0;
}

int target_process_of(int tid)
{
	return status_number(tid, "\nTgid:");
}

int target_parent_of(int pid)
{
	return status_number(pid, "\nPPid:");
}

bool target_read(int pid, uint64_t at, void *buf, size_t n)
{
	return timed_read_read(pid, at, buf, n) == (ssize_t)n;
}

/* After the command's name, which may contain anything, also blanks and parentheses. */
static bool parse_stat(const char *text, struct target_stat *ret)
{
	const char *after = strrchr(text, ')');
	unsigned long user, system, threads;
	unsigned long long start;

	if (!after || sscanf(after + 1,
			     " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d "
			     "%lu %*d %llu",
			     &ret->state, &ret->parent, &user, &system, &threads, &start) != 6)
		return false;
	ret->ticks = (uint64_t)user + system;
	ret->n_threads = threads;
	ret->start = start;
	return true;
}

bool target_stat(int pid, struct target_stat *ret)
{
	char text[MAX_TEXT];

	*ret = (struct target_stat){0};
	return target_read_proc(pid, "stat", text, sizeof(text)) && parse_stat(text, ret);
}

char target_thread_state(int pid, int tid)
{
	struct target_stat stat = {0};
	char text[MAX_TEXT], name[32];

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	return target_read_proc(pid, name, text, sizeof(text)) && parse_stat(text, &stat)
		       ? stat.state
		       : 'X';
}

bool target_thread_has_ended(int pid, int tid)
{
	char state = target_thread_state(pid, tid);

	return state == 'Z' || state == 'X';
}

int target_living_thread(int pid)
{
	char name[64];
	int found = 0;

	if (!target_thread_has_ended(pid, pid))
		return pid;
	snprintf(name, sizeof(name), "/proc/%d/task", pid);
	DIR *dir = opendir(name);
	for (struct dirent *e; dir && !found && (e = readdir(dir));)
		if (isdigit((unsigned char)e->d_name[0]) &&
		    !target_thread_has_ended(pid, atoi(e->d_name)))
			found = atoi(e->d_name);
	if (dir)
		closedir(dir);
	return found;
}

static bool read_program(int pid, uint64_t ret[2])
{
	Elf64_auxv_t v[MAX_TEXT / sizeof(Elf64_auxv_t)];
	size_t n = target_read_proc(pid, "auxv", v, sizeof(v)) / sizeof(*v);
	for (size_t i = 0; i < n; i++)
		if (v[i].a_type == AT_RANDOM)
			return target_read(pid, v[i].a_un.a_val, ret, 2 * sizeof(*ret));
	return false;
}

bool target_identify(int pid, struct target_id *ret)
{
	struct target_stat stat;

	*ret = (struct target_id){.pid = pid};
	if (!target_stat(pid, &stat))
		return false;
	ret->start = stat.start;
	return read_program(pid, ret->program);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Start times count from boot, with the time that the machine was asleep. */
uint64_t target_forked_ns(const struct target_id *id)
{
	uint64_t tick = 1000000000 / (uint64_t)sysconf(_SC_CLK_TCK);
	uint64_t asleep = clock_ns(CLOCK_BOOTTIME) - clock_ns(CLOCK_MONOTONIC);
	return (id->start + 1) * tick - asleep;
}
