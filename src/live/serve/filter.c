/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "launch/child.h"
#include "serve/filter.h"

#ifndef SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV /* Linux 5.19 */
#define SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV (1UL << 5)
#endif

enum {
	LAST_OF_FIRST = 334, /* rseq: the first run of numbers of x86-64 ends here */
	FIRST_OF_X32 = 512,  /* numbers of x32, which the 64-bit table has, too */
	LAST_OF_X32 = 547,
	LAST_NUMBER = 0xffff, /* far beyond any kernel's numbers */
};

/* ---- the filter ---- */

#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define IF_EQUAL(k, yes, no)                                                                       \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, k, yes, no) /* how many instructions are left out */
#define RETURN(k) BPF_STMT(BPF_RET | BPF_K, k)

/*
 * Nothing else is sent here: a call that is interrupted while it waits for a supervisor fails with
 * EINTR, and one without a supervisor with ENOSYS, which a program expects of a call that no kernel
 * has, and of no other one. A 32-bit call, or one of x32, has numbers of its own: none of them is
 * served.
 */
static long install(int nr, unsigned int flags)
{
	struct sock_filter code[] = {
		LOAD(arch),
		IF_EQUAL(AUDIT_ARCH_X86_64, 0, 2),
		LOAD(nr),
		IF_EQUAL((uint32_t)nr, 1, 0),
		RETURN(SECCOMP_RET_ALLOW),
		RETURN(SECCOMP_RET_USER_NOTIF),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(*code), .filter = code};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* ---- the child ---- */

/*
 * The child's message on its socket: the listener comes with it, or the number of the step that
 * failed.
 */
struct answer {
	int error; /* 0 */
	bool is_restricted;
};

static void send_answer(int to, struct answer answer, int listener)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec bytes = {&answer, sizeof(answer)};
	struct msghdr msg = {.msg_iov = &bytes, .msg_iovlen = 1};
	if (listener >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		control.head = (struct cmsghdr){CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS};
		memcpy(CMSG_DATA(&control.head), &listener, sizeof(listener));
	}
	while (sendmsg(to, &msg, MSG_NOSIGNAL) < 0 && errno == EINTR)
		;
}

static bool receive_answer(int from, struct answer *ret, int *ret_listener)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct iovec bytes = {ret, sizeof(*ret)};
	struct msghdr msg = {.msg_iov = &bytes,
			     .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control)};
	ssize_t n;
	*ret_listener = -1;
	do
		n = recvmsg(from, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != sizeof(*ret))
		return false;
	const struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS &&
	    c->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(ret_listener, CMSG_DATA(c), sizeof(int));
	return true;
}

/* Without the privilege to filter other programs, the program must never gain any. */
static int listen_for(int nr, bool *ret_restricted)
{
	const unsigned int flags = SECCOMP_FILTER_FLAG_NEW_LISTENER;
	*ret_restricted = false;
	long fd = install(nr, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (fd < 0 && errno == EACCES) {
		*ret_restricted = true;
		if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
			fd = install(nr, flags | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	}
	/* before 5.19: a signal may end a call that is being served */
	if (fd < 0 && errno == EINVAL)
		fd = install(nr, flags);
	return fd < 0 ? -errno : (int)fd;
}

__attribute__((noreturn)) static void run_child(int nr, int socket, const char *exe,
						char *const argv[])
{
	struct answer answer = {0};
	int listener = listen_for(nr, &answer.is_restricted);
	if (listener < 0)
		answer.error = -listener;
	send_answer(socket, answer, listener);
	if (listener < 0)
		_exit(EXIT_NOT_RUN);
	close(listener);
	/* The socket ends when the supervisor does. */
	send_answer(socket, (struct answer){.error = child_become(socket, exe, argv)}, -1);
	_exit(EXIT_NOT_RUN);
}

/* ---- the supervisor's side ---- */

static int explain(int e, struct cairn_err *err)
{
	switch (e) {
	case EBUSY:
		return err_set(err, -EBUSY,
			       "another supervisor listens to this process's system calls already: "
			       "one at a time");
	case EINVAL:
	case ENOSYS:
		return err_set(err, -ENOSYS,
			       "this kernel has no seccomp notification (Linux 5.0, "
			       "CONFIG_SECCOMP_FILTER)");
	}
	return err_set(err, -e, "seccomp: %s", strerror(e));
}

static int take_child(struct filter_child *child, const char *exe, struct cairn_err *err)
{
	struct answer answer;
	if (!receive_answer(child->socket, &answer, &child->listener))
		return err_set(err, -ESRCH, "the process for %s has ended before its exec", exe);
	if (answer.error)
		return explain(answer.error, err);
	child->is_restricted = answer.is_restricted;
	if (child->listener < 0)
		return err_set(err, -EMFILE, "the listener of %s could not be received", exe);
	if (write(child->socket, "g", 1) != 1)
		return err_set(err, -ESRCH, "the process for %s has ended before its exec", exe);
	return 0;
}

int filter_start(int nr, const char *exe, char *const argv[], struct filter_child *ret,
		 struct cairn_err *err)
{
	int sockets[2];
	*ret = (struct filter_child){.listener = -1, .socket = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets))
		return err_set(err, -errno, "socketpair: %s", strerror(errno));
	pid_t pid = fork();
	if (pid == 0) {
		close(sockets[0]);
		run_child(nr, sockets[1], exe, argv);
	}
	int e = errno;
	close(sockets[1]);
	ret->socket = sockets[0];
	ret->pid = pid;
	int rc = pid < 0 ? err_set(err, -e, "fork: %s", strerror(e)) : take_child(ret, exe, err);
	if (rc < 0)
		filter_child_end(ret);
	return rc;
}

int filter_exec_error(struct filter_child *child)
{
	struct answer answer;
	int none;
	bool failed = receive_answer(child->socket, &answer, &none);
	close(child->socket);
	child->socket = -1;
	return failed ? answer.error : 0;
}

void filter_child_end(struct filter_child *child)
{
	/* Before its exec the child leaves when the socket ends; then nothing of it must remain. */
	bool is_waiting = child->socket >= 0;
	if (is_waiting)
		close(child->socket);
	if (child->listener >= 0)
		close(child->listener);
	if (is_waiting && child->pid > 0)
		while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
			;
	*child = (struct filter_child){.listener = -1, .socket = -1};
}

/* ---- numbers ---- */

/*
 * In a process of its own, which can be spared; all bits set are no descriptor, no address, and no
 * set of flags.
 */
static int try_number(long nr)
{
	pid_t pid = fork();
	int status;
	if (pid < 0)
		return -errno;
	if (pid == 0) {
		long r = syscall(nr, -1L, -1L, -1L, -1L, -1L, -1L);
		_exit(r < 0 && errno == ENOSYS);
	}
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	return WIFEXITED(status) && WEXITSTATUS(status) == 1 ? 0 : -EINVAL;
}

int filter_may_serve(long nr, struct cairn_err *err)
{
	if (nr <= LAST_OF_FIRST || nr > LAST_NUMBER || (nr >= FIRST_OF_X32 && nr <= LAST_OF_X32))
		return err_set(err, -EINVAL,
			       "%ld: serve a number from %d to %d or %d to %d that the kernel has "
			       "no system call for",
			       nr, LAST_OF_FIRST + 1, FIRST_OF_X32 - 1, LAST_OF_X32 + 1,
			       LAST_NUMBER);
	int rc = try_number(nr);
	if (rc == -EINVAL)
		return err_set(err, rc, "%ld is the number of a system call that this kernel has",
			       nr);
	return rc < 0 ? err_set(err, rc, "fork: %s", strerror(-rc)) : 0;
}
