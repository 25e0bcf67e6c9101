/* SPDX-License-Identifier: BSD-2-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "doctor.h"
#include "doctor_target.h"

enum { PASSED = 4711 };

static int last_seen;

/* The library as a file in memory, loaded. */
struct target {
	int fd;
	void *library;
	void (*call)(int number);
};

static int target_load(struct target *target, char *path, size_t size, struct cairn_err *err)
{
	size_t n = sizeof(doctor_target_bytes);
	void *symbol = NULL;

	target->fd = memfd_create("cairn-doctor", MFD_CLOEXEC);
	if (target->fd < 0 || write(target->fd, doctor_target_bytes, n) != (ssize_t)n) {
		snprintf(err->msg, sizeof(err->msg), "no file in memory to probe: %m");
		return -errno;
	}
	snprintf(path, size, "/proc/self/fd/%d", target->fd);
	target->library = dlopen(path, RTLD_NOW);
	if (target->library)
		symbol = dlsym(target->library, "cairn_doctor_target");
	if (!symbol) {
		snprintf(err->msg, sizeof(err->msg), "no library to probe: %s", dlerror());
		return -ENOEXEC;
	}
	memcpy(&target->call, &symbol, sizeof(symbol));
	return 0;
}

static void target_unload(struct target *target)
{
	if (target->library)
		dlclose(target->library);
	if (target->fd >= 0)
		close(target->fd);
}

static int see(void *ctx, const struct cairn_event *event)
{
	if (event->n_values == 1 && event->values[0].state == CAIRN_VALUE_OK &&
	    event->values[0].n_bytes == sizeof(last_seen))
		memcpy(&last_seen, event->values[0].bytes, sizeof(last_seen));
	return 0;
}

static int probe(struct cairn_trace *t, const char *path, struct cairn_err *err)
{
	char text[128];
	int r;

	snprintf(text, sizeof(text), "%s:cairn_doctor_target(number)", path);
	r = cairn_trace_add(t, text, err);
	if (r >= 0)
		r = cairn_trace_attach(t, err);
	return r < 0 ? r : cairn_trace_start(t, err);
}

int doctor_try_tracing(enum cairn_trace_backend backend, struct cairn_err *err)
{
	struct cairn_trace_opts trace_opts = {
		.size = sizeof(trace_opts), .pid = getpid(), .backend = backend};
	struct target target = {.fd = -1};
	struct cairn_trace *t = NULL;
	char path[64];
	int r = target_load(&target, path, sizeof(path), err);

	if (r >= 0)
		r = cairn_trace_open(&trace_opts, &t, err);
	if (r >= 0)
		r = probe(t, path, err);
	last_seen = 0;
	if (r >= 0) {
		target.call(PASSED);
		cairn_trace_detach(t);
		r = cairn_trace_poll(t, 1000, see, NULL, err);
	}
	cairn_trace_close(t);
	target_unload(&target);
	return r < 0 ? r : last_seen == PASSED;
}
