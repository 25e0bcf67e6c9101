/* SPDX-License-Identifier: BSD-2-Clause */
#include "trace/attach/link.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/bpf.h>
#include <linux/perf_event.h>

/*
 * The part of union bpf_attr that BPF_LINK_CREATE takes for uprobe_multi:
 *
 *	OFFSET SIZE  MEANING
 *	0      4     program
 *	4      4     target, unused
 *	8      4     attach type, 48
 *	12     4     flags, 0
 *	16     8     pointer to the path
 *	24     8     pointer to offsets
 *	32     8     pointer to reference counter offsets, or 0
 *	40     8     pointer to cookies
 *	48     4     number of offsets
 *	52     4     flags; 1: at return
 *	56     4     process, or 0
 */
struct uprobe_multi_attr {
	uint32_t prog_fd, target_fd, attach_type, link_flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t n, flags, pid;
	uint32_t pad;
};

#define FLAG_RETURN 1

int link_multi(int prog_fd, const char *path, const struct link_places *places, int pid)
{
	struct uprobe_multi_attr attr = {
		.prog_fd = (uint32_t)prog_fd,
		.attach_type =
			places->moment == LINK_IN_SESSION ? LINK_UPROBE_SESSION : LINK_UPROBE_MULTI,
		.flags = places->moment == LINK_AT_RETURN ? FLAG_RETURN : 0,
		.path = link_pointer(path),
		.offsets = link_pointer(places->offsets),
		.ref_ctr_offsets = link_pointer(places->semaphores),
		.cookies = link_pointer(places->cookies),
		.n = places->n,
		.pid = (uint32_t)pid,
	};
	long fd = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : (int)fd;
}

int link_load_nothing_for(uint32_t attach_type)
{
	/* r0 = 0; exit */
	static const struct bpf_insn insns[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
						{.code = BPF_JMP | BPF_EXIT}};
	union bpf_attr attr = {0};

	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.insns = link_pointer(insns);
	attr.insn_cnt = 2;
	attr.license = link_pointer("Dual BSD/GPL");
	attr.expected_attach_type = attach_type;
	long fd = syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : (int)fd;
}

static bool is_known(uint32_t attach_type, enum link_moment moment)
{
	uint64_t offset = 0;
	const struct link_places places = {.offsets = &offset, .n = 1, .moment = moment};
	int prog = link_load_nothing_for(attach_type);

	/* Without permission nothing can be found out; the real attempt will say so. */
	if (prog < 0)
		return prog == -EPERM || prog == -EACCES;
	/*
	 * A directory is no file to probe: EBADF by kernels that got that far, EINVAL by those that
	 * did not.
	 */
	int fd = link_multi(prog, "/", &places, 0);
	if (fd >= 0)
		close(fd);
	close(prog);
	return fd == -EBADF;
}

bool link_multi_is_known(void)
{
	return is_known(LINK_UPROBE_MULTI, LINK_AT_HIT);
}

int link_load_nothing(void)
{
	return link_load_nothing_for(link_multi_is_known() ? LINK_UPROBE_MULTI : 0);
}

bool link_session_is_known(void)
{
	return is_known(LINK_UPROBE_SESSION, LINK_IN_SESSION);
}

/* Number of the uprobe type of perf events; negative errno. */
static int uprobe_type(void)
{
	FILE *f = fopen("/sys/bus/event_source/devices/uprobe/type", "re");
	int type;

	if (!f)
		return -EOPNOTSUPP;
	if (fscanf(f, "%d", &type) != 1)
		type = -EOPNOTSUPP;
	fclose(f);
	return type;
}

/* Bits 32 to 63 of the event's config: see format/ref_ctr_offset beside the type. */
#define SEMAPHORE_SHIFT 32
/* Bit 0: see format/retprobe. */
#define PERF_RETURN     1

/* The link of a perf event and a program; negative errno. */
static int link_event(int prog_fd, int event, uint64_t cookie)
{
	union bpf_attr attr = {0};

	attr.link_create.prog_fd = (uint32_t)prog_fd;
	attr.link_create.target_fd = (uint32_t)event;
	attr.link_create.attach_type = BPF_PERF_EVENT;
	attr.link_create.perf_event.bpf_cookie = cookie;
	long link = syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return link < 0 ? -errno : (int)link;
}

int link_single(int prog_fd, const char *path, const struct link_places *place, int pid,
		int *ret_event)
{
	struct perf_event_attr event = {.size = sizeof(event)};
	int type = uprobe_type();
	uint64_t semaphore = place->semaphores ? place->semaphores[0] : 0;

	if (type < 0)
		return type;
	if (semaphore > UINT32_MAX)
		return -ERANGE;
	event.config = semaphore << SEMAPHORE_SHIFT;
	if (place->moment == LINK_AT_RETURN)
		event.config |= PERF_RETURN;
	event.type = (uint32_t)type;
	event.config1 = link_pointer(path);
	event.config2 = place->offsets[0];
	/*
	 * The program runs for every thread whose address space has the probe, whatever the event's
	 * target is.
	 */
	long fd = syscall(SYS_perf_event_open, &event, pid ? pid : -1, pid ? -1 : 0, -1,
			  PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int link = link_event(prog_fd, (int)fd, place->cookies[0]);
	if (link < 0)
		close((int)fd);
	else
		*ret_event = (int)fd;
	return link;
}

/* The program runs on every processor, whatever the event's is. */
int link_kernel(int prog_fd, int type, const struct link_places *place)
{
	struct perf_event_attr event = {
		.size = sizeof(event), .type = (uint32_t)type, .config2 = place->offsets[0]};

	if (place->moment == LINK_AT_RETURN)
		event.config |= PERF_RETURN;
	long fd = syscall(SYS_perf_event_open, &event, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	if (fd < 0)
		return -errno;
	int link = link_event(prog_fd, (int)fd, place->cookies[0]);
	close((int)fd);
	return link;
}

size_t link_info(int link_fd, void *ret, size_t size)
{
	union bpf_attr attr = {0};

	attr.info.bpf_fd = (uint32_t)link_fd;
	attr.info.info_len = (uint32_t)size;
	attr.info.info = link_pointer(ret);
	if (syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr)))
		return 0;
	return attr.info.info_len;
}

/*
 * The part of struct bpf_link_info that BPF_OBJ_GET_INFO_BY_FD fills for a kprobe:
 *
 *	OFFSET SIZE  MEANING
 *	0      16    type of the link, its number, its program, padding
 *	16     4     3: a kprobe, 4: at a return; 0 in kernels that do not tell
 *	24     16    the function's name, not asked for, and the offset in it
 *	40     8     address
 *	48     8     hits that were missed
 */
enum { KPROBE_INFO = 3 };

struct kprobe_info {
	uint32_t link[4];
	uint32_t type, pad;
	uint64_t name;
	uint32_t name_len, offset;
	uint64_t address, missed, cookie;
};

bool link_kernel_missed(int link_fd, uint64_t *ret)
{
	struct kprobe_info info = {0};
	size_t n = link_info(link_fd, &info, sizeof(info));

	/* Of a uprobe something else is there. */
	*ret = info.type >= KPROBE_INFO ? info.missed : 0;
	return info.type && n >= offsetof(struct kprobe_info, cookie);
}
