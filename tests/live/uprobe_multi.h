/* SPDX-License-Identifier: BSD-2-Clause */
/* uprobe_multi by the bare system call: Debian 12's headers do not have it yet. For live tests. */
#ifndef LIVE_UPROBE_MULTI_H
#define LIVE_UPROBE_MULTI_H

#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { ATTACH_TRACE_UPROBE_MULTI = 48 };

/* The part of union bpf_attr that BPF_LINK_CREATE reads for this attach type. */
struct uprobe_multi_link_attr {
	uint32_t prog_fd, target_fd, attach_type, flags;
	uint64_t path, offsets, ref_ctr_offsets, cookies;
	uint32_t cnt, multi_flags, pid, unused;
};

/* A program that does @insns; a negative errno when the kernel does not take it. */
static inline int uprobe_multi_load(const struct bpf_insn *insns, uint32_t n)
{
	union bpf_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.prog_type = BPF_PROG_TYPE_KPROBE;
	attr.expected_attach_type = ATTACH_TRACE_UPROBE_MULTI;
	attr.insns = (uintptr_t)insns;
	attr.insn_cnt = n;
	attr.license = (uintptr_t) "GPL";
	int fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

/* A program that returns 0 and does nothing. */
static inline int uprobe_multi_prog(void)
{
	static const struct bpf_insn insns[] = {
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	return uprobe_multi_load(insns, 2);
}

/* A link on all offsets of the file, for every process; a negative errno. */
static inline int uprobe_multi_attach(int prog, const char *path, const uint64_t *offs, size_t n)
{
	struct uprobe_multi_link_attr attr;
	memset(&attr, 0, sizeof(attr));
	attr.prog_fd = (uint32_t)prog;
	attr.attach_type = ATTACH_TRACE_UPROBE_MULTI;
	attr.path = (uintptr_t)path;
	attr.offsets = (uintptr_t)offs;
	attr.cnt = (uint32_t)n;
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));
	return fd < 0 ? -errno : fd;
}

#endif
