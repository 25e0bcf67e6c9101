/* SPDX-License-Identifier: BSD-2-Clause */
#include "cover.h"
#include "system.h"

#include <errno.h>
#include <stdarg.h>

#include "../preload/next.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT long syscall(long nr, ...);
EXPORT int ioctl(int fd, unsigned long request, ...);
EXPORT int close(int fd);

static long result(long r)
{
	if (r >= 0 || r < -4095)
		return r;
	errno = (int)-r;
	return -1;
}

/* A call that is not reported must not change errno. */
static long call_bpf(long command, const void *attr, size_t size)
{
	if (command == BPF_LINK_CREATE || command == BPF_RAW_TRACEPOINT_OPEN)
		return attach_link(command, attr, size);
	long r = system_bpf(command, attr, size);
	int saved = errno;
	if (command == BPF_PROG_LOAD && r >= 0)
		loads_report(attr, size, (int)r);
	errno = saved;
	return r;
}

static void note_closing(int fd)
{
	int saved = errno;

	if (probe_may_have(fd))
		attach_closing(fd);
	errno = saved;
}

long syscall(long nr, ...)
{
	long a[6];
	va_list args;

	va_start(args, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	switch (nr) {
	case SYS_bpf:
		return result(
			call_bpf(a[0] & INT32_MAX, (const void *)a[1], (size_t)(uint32_t)a[2]));
	case SYS_perf_event_open:
		return result(
			attach_open((const void *)a[0], a[1], a[2], a[3], (unsigned long)a[4]));
	case SYS_ioctl:
		return result(attach_ioctl((int)a[0], (unsigned long)a[1], (unsigned long)a[2]));
	case SYS_close:
		note_closing((int)a[0]);
		break;
	}
	return result(system_call(nr, a[0], a[1], a[2], a[3], a[4], a[5]));
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;

	va_start(args, request);
	unsigned long arg = va_arg(args, unsigned long);
	va_end(args);
	return (int)result(attach_ioctl(fd, request, arg));
}

int close(int fd)
{
	static struct next next = {.name = "close"};
	int (*real)(int) = (int (*)(int))next_function(&next, __builtin_return_address(0));

	note_closing(fd);
	return real ? real(fd) : (int)result(system_call(SYS_close, fd, 0, 0, 0, 0, 0));
}
