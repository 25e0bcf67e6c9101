/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Many descriptors as one struct bpf_link
 *
 * libbpf has no function that makes a link of a descriptor. So a program that does nothing is
 * attached to an event that never happens, and the descriptor of that link is made one of ours
 * (dup2): bpf_link__destroy() closes it. When there are many, ours is a socket in whose queue they
 * are (SCM_RIGHTS). The kernel closes them with the socket, and they count against no limit of
 * descriptors meanwhile. Looking at the queue (MSG_PEEK) gives copies of them.
 */
#include "handlers/handlers.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include "base/err.h"
#include "base/scope.h"
#include "nothing.skel.h"
#include "trace/attach/link.h"

enum {
	FDS_PER_MESSAGE = 250, /* SCM_MAX_FD is 253 */
	LINK_OF_EVENT = 7,     /* BPF_LINK_TYPE_PERF_EVENT */
};

static int send_some(int to, const int *fds, size_t n)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
	} control = {0};
	char byte = 0;
	struct iovec data = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = CMSG_SPACE(sizeof(int) * n)};
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof(int) * n);
	memcpy(CMSG_DATA(head), fds, sizeof(int) * n);
	return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* A descriptor that holds all of @l, or a negative errno. */
static int hold_all(const struct trace_links *l)
{
	int ends[2], e = 0;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	for (size_t i = 0; i < l->fds.n && !e; i += FDS_PER_MESSAGE) {
		size_t left = l->fds.n - i;
		e = send_some(ends[0], l->fds.p + i,
			      left < FDS_PER_MESSAGE ? left : FDS_PER_MESSAGE);
	}
	close(ends[0]);
	if (!e)
		return ends[1];
	close(ends[1]);
	return e;
}

static int open_silent_event(void)
{
	struct perf_event_attr attr = {.size = sizeof(attr),
				       .type = PERF_TYPE_SOFTWARE,
				       .config = PERF_COUNT_SW_DUMMY,
				       .sample_period = 1,
				       .disabled = 1};
	long fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

/* A link that libbpf made, of nothing. */
static int make_link(struct bpf_link **ret)
{
	struct nothing_bpf *nothing = nothing_bpf__open_and_load();
	int event = nothing ? open_silent_event() : -errno;

	if (event >= 0) {
		*ret = bpf_program__attach_perf_event(nothing->progs.nothing, event);
		if (!*ret) {
			int e = -errno;
			close(event);
			event = e;
		}
	}
	nothing_bpf__destroy(nothing);
	return event < 0 ? event : 0;
}

static uint32_t link_id(const struct trace_links *l)
{
	/* Before the link may be the descriptor of its event. */
	for (size_t i = 0; i < l->fds.n && i < 2; i++) {
		struct bpf_link_info info = {0};
		__u32 size = sizeof(info);
		if (!bpf_obj_get_info_by_fd(l->fds.p[i], &info, &size) && info.id)
			return info.id;
	}
	return 0;
}

static int bundle(const struct trace_links *l, struct bpf_link **ret)
{
	int held = l->fds.n == 1 ? fcntl(l->fds.p[0], F_DUPFD_CLOEXEC, 0) : hold_all(l);
	struct bpf_link *link = NULL;
	int e = held < 0 ? held : make_link(&link);

	if (!e && dup3(held, bpf_link__fd(link), O_CLOEXEC) < 0)
		e = -errno;
	if (held >= 0)
		close(held);
	if (e && link)
		bpf_link__destroy(link);
	if (!e)
		*ret = link;
	return e;
}

int link_bundle(const struct trace_links *l, struct bpf_link **ret, uint32_t *ret_id,
		struct cairn_err *err)
{
	int e = bundle(l, ret);

	*ret_id = link_id(l);
	return e ? err_set(err, e, "making a bpf_link: %s", strerror(-e)) : 0;
}

/* ---- missed hits ---- */

struct missed {
	uint64_t n;
	bool is_unknown;
};

/* A descriptor that is no link of a kprobe, as that of its event, has none. */
static void add_missed(int fd, struct missed *m)
{
	struct bpf_link_info info = {0};
	__u32 size = sizeof(info);
	uint64_t n = 0;

	if (bpf_obj_get_info_by_fd(fd, &info, &size) || info.type != LINK_OF_EVENT)
		return;
	m->is_unknown |= !link_kernel_missed(fd, &n);
	m->n += n;
}

/* Looks at the next descriptors in a socket's queue, which stay there. 1: there were some. */
static int peek_some(int from, struct missed *m)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * FDS_PER_MESSAGE)];
	} control;
	char byte;
	struct iovec data = {.iov_base = &byte, .iov_len = 1};
	struct msghdr message = {.msg_iov = &data,
				 .msg_iovlen = 1,
				 .msg_control = control.bytes,
				 .msg_controllen = sizeof(control)};
	ssize_t got = recvmsg(from, &message, MSG_PEEK | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	if (got <= 0)
		return got < 0 && errno != EAGAIN ? -errno : 0;
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	size_t n = head ? (head->cmsg_len - CMSG_LEN(0)) / sizeof(int) : 0;
	for (size_t i = 0; i < n; i++) {
		int fd;
		memcpy(&fd, CMSG_DATA(head) + i * sizeof(fd), sizeof(fd));
		add_missed(fd, m);
		close(fd);
	}
	return message.msg_flags & MSG_CTRUNC ? -EMFILE : 1;
}

static int peek_all(int fd, struct missed *m)
{
	const int start = 0, off = -1;
	int e;

	if (setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &start, sizeof(start)))
		return -errno;
	while ((e = peek_some(fd, m)) > 0)
		;
	setsockopt(fd, SOL_SOCKET, SO_PEEK_OFF, &off, sizeof(off));
	return e;
}

int cairn_loc_missed(const struct bpf_link *link, uint64_t *ret, struct cairn_err *err)
{
	struct missed m = {0};
	struct stat st;
	int fd = bpf_link__fd(link), e = 0;

	*ret = 0;
	if (fstat(fd, &st))
		e = -errno;
	else if (S_ISSOCK(st.st_mode))
		e = peek_all(fd, &m);
	else
		add_missed(fd, &m);
	if (e < 0)
		return err_set(err, e, "looking at a link: %s", strerror(-e));
	if (m.is_unknown)
		return err_set(
			err, -EOPNOTSUPP,
			"this kernel does not count the hits that a kprobe misses (Linux 6.7 "
			"does)");
	*ret = m.n;
	return 0;
}
