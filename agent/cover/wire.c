/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connection, and who uses it
 *
 * A process has one. A child that fork() made keeps its parent's open, so that what it inherited
 * stays covered until both have ended, and makes its own when it has something to say.
 *
 * The lock has the number of the process that took it. In a child it may be held by a thread that
 * does not exist there: then the number is another one, and the lock is free. A signal handler that
 * interrupts the thread in here finds is_inside, and goes on without reporting.
 */
#include "cover.h"
#include "system.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

enum { PAUSE_NS = 200000 };

static long lock;
static _Thread_local volatile bool is_inside __attribute__((tls_model("initial-exec")));
static int connection = -1;
static long connection_of; /* the process that made it */
static bool has_failed;
static struct cairn_cover_answer hello;

/* ---- the lock ---- */

static long own_number(void)
{
	return system_call(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

static void take_lock(long self)
{
	const struct timespec pause = {.tv_nsec = PAUSE_NS};

	for (;;) {
		long holder = 0;
		if (__atomic_compare_exchange_n(&lock, &holder, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return;
		if (holder != self &&
		    __atomic_compare_exchange_n(&lock, &holder, self, false, __ATOMIC_ACQUIRE,
						__ATOMIC_RELAXED))
			return;
		system_call(SYS_nanosleep, (long)&pause, 0, 0, 0, 0, 0);
	}
}

/* ---- bytes ---- */

static bool send_all(const void *bytes, size_t n)
{
	const char *at = bytes;

	while (n) {
		long done =
			system_call(SYS_sendto, connection, (long)at, (long)n, MSG_NOSIGNAL, 0, 0);
		if (done == -EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static bool receive_all(void *ret, size_t n)
{
	char *at = ret;

	while (n) {
		long done = system_call(SYS_recvfrom, connection, (long)at, (long)n, 0, 0, 0);
		if (done == -EINTR)
			continue;
		if (done <= 0)
			return false;
		at += done;
		n -= (size_t)done;
	}
	return true;
}

static void give_up(void)
{
	system_call(SYS_close, connection, 0, 0, 0, 0, 0);
	connection = -1;
	has_failed = true;
}

/* ---- connecting ---- */

static bool connect_to(const char *name)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	size_t n = strlen(name);

	if (!n || n > sizeof(to.sun_path) - 1)
		return false;
	memcpy(to.sun_path + 1, name, n);
	connection = (int)system_call(SYS_socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, 0, 0, 0);
	if (connection < 0)
		return false;
	long size = (long)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
	return system_call(SYS_connect, connection, (long)&to, size, 0, 0, 0) == 0 &&
	       receive_all(&hello, sizeof(hello));
}

static bool is_ready(long self)
{
	if (connection_of == self)
		return !has_failed;
	const char *name = getenv(CAIRN_COVER_VARIABLE);
	connection_of = self;
	has_failed = false;
	probes_forget();
	if (!name || !connect_to(name))
		give_up();
	return !has_failed;
}

bool cover_enter(void)
{
	int saved = errno;
	long self = own_number();
	bool ready;

	if (is_inside)
		return false;
	is_inside = true;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	take_lock(self);
	ready = is_ready(self);
	errno = saved;
	if (!ready)
		cover_leave();
	return ready;
}

void cover_leave(void)
{
	__atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	is_inside = false;
}

bool cover_is_connected(void)
{
	return __atomic_load_n(&connection_of, __ATOMIC_RELAXED) == own_number();
}

uint32_t cover_kprobe_type(void)
{
	return (uint32_t)hello.result;
}

uint32_t cover_uprobe_type(void)
{
	return hello.value;
}

int cover_ask(struct cairn_cover_request *request, const void *bytes, size_t n, uint32_t *ret_value)
{
	struct cairn_cover_answer answer = {0};

	*ret_value = 0;
	request->size = (uint32_t)(sizeof(*request) + n);
	if (has_failed)
		return 0;
	if (!send_all(request, sizeof(*request)) || !send_all(bytes, n) ||
	    !receive_all(&answer, sizeof(answer))) {
		give_up();
		return 0;
	}
	*ret_value = answer.value;
	return answer.result;
}
