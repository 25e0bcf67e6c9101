/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two ways: tracefs has a number for each event, which a perf event is opened by; and the kernel
 * knows most tracepoints by their names alone, which needs no tracefs. Those of system calls
 * (syscalls:sys_enter_read) have the first way only.
 */
#include "prof/tracepoint.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/permission.h"
#include "perf/ring.h"

static const char *const mounts[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

/* tracefs where it is mounted; NULL, with errno. */
static const char *find_tracefs(void)
{
	int e = ENOENT;

	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++) {
		char path[64];

		snprintf(path, sizeof(path), "%s/events", mounts[i]);
		if (!access(path, R_OK | X_OK))
			return mounts[i];
		e = errno == EACCES ? EACCES : e;
	}
	errno = e;
	return NULL;
}

/* The number of "CATEGORY:NAME"; negative errno. */
static int number_of(const char *tracefs, const char *name)
{
	const char *colon = strchr(name, ':');
	char path[256];
	int id, n;

	n = snprintf(path, sizeof(path), "%s/events/%.*s/%s/id", tracefs, (int)(colon - name), name,
		     colon + 1);
	if (n >= (int)sizeof(path))
		return -ENOENT;
	SCOPE_FCLOSE FILE *f = fopen(path, "re");
	if (!f)
		return -errno;
	return fscanf(f, "%d", &id) == 1 && id >= 0 ? id : -EBADMSG;
}

/* The program runs for the events of all processors, whatever the perf event's own is. */
static int attach_by_number(int id, int program)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_TRACEPOINT,
				       .config = (uint64_t)id,
				       .sample_period = 1};
	int fd = perf_open(&attr, -1, 0), e;

	if (fd < 0)
		return fd;
	if (!ioctl(fd, PERF_EVENT_IOC_SET_BPF, program) && !ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
		return fd;
	e = -errno;
	close(fd);
	return e;
}

static int no_tracefs(const char *name, int why, struct cairn_err *err)
{
	if (why == EACCES)
		return err_lines(err, -EACCES, "sudo mount -o remount,mode=755 /sys/kernel/tracing",
				 "%s: its number is in tracefs, which this user may not read; this "
				 "would let all users read it:",
				 name);
	return err_lines(
		err, -EACCES, "sudo mount -t tracefs none /sys/kernel/tracing",
		"%s: its number is in tracefs, which is not mounted; this mounts it:", name);
}

/* @why: of tracefs. */
static int attach_by_name(const char *name, int program, int why, struct cairn_err *err)
{
	int fd = bpf_raw_tracepoint_open(strchr(name, ':') + 1, program);

	if (fd >= 0)
		return fd;
	if (errno == EPERM)
		return permission_error(err, "attaching to a tracepoint");
	if (errno == ENOENT)
		return no_tracefs(name, why, err);
	return err_set(err, -errno, "%s: %s", name, strerror(errno));
}

int tracepoint_attach(const char *name, int program, int raw_program, struct cairn_err *err)
{
	const char *tracefs = find_tracefs();
	int id = tracefs ? number_of(tracefs, name) : -errno, fd;

	if (!tracefs || id == -EACCES)
		return attach_by_name(name, raw_program, -id, err);
	if (id == -ENOENT)
		return err_set(err, -ENOENT,
			       "this kernel has no tracepoint %s; %s/events has a directory for "
			       "each category, and in it one for each tracepoint",
			       name, tracefs);
	fd = id < 0 ? id : attach_by_number(id, program);
	if (fd == -EPERM || fd == -EACCES)
		return permission_error(err, "attaching to a tracepoint");
	return fd < 0 ? err_set(err, fd, "%s: %s", name, strerror(-fd)) : fd;
}
