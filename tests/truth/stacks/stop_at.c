/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sends SIGSTOP to a process at user probes
 *
 *	stop_at PATH PID OFFSET...	offsets in the file; prints "ready" and waits until it is ended
 *
 * The process stops after the instruction at the offset: while the kernel steps over it, signals
 * wait.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "live/uprobe_multi.h"

enum { GET_CURRENT_PID_TGID = 14, SEND_SIGNAL = 109, OFFSETS_MAX = 4096 };

static int load(int pid)
{
	const struct bpf_insn insns[] = {
		{.code = BPF_JMP | BPF_CALL, .imm = GET_CURRENT_PID_TGID},
		{.code = BPF_ALU64 | BPF_RSH | BPF_K, .dst_reg = 0, .imm = 32},
		{.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = 0, .off = 2, .imm = pid},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 1, .imm = SIGSTOP},
		{.code = BPF_JMP | BPF_CALL, .imm = SEND_SIGNAL},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 0, .imm = 0},
		{.code = BPF_JMP | BPF_EXIT},
	};
	return uprobe_multi_load(insns, sizeof(insns) / sizeof(insns[0]));
}

int main(int argc, char **argv)
{
	static uint64_t offsets[OFFSETS_MAX];
	size_t n = 0;

	for (int i = 3; i < argc && n < OFFSETS_MAX; i++)
		offsets[n++] = strtoull(argv[i], NULL, 0);
	int prog = argc > 3 ? load(atoi(argv[2])) : -EINVAL;
	int link = prog < 0 ? prog : uprobe_multi_attach(prog, argv[1], offsets, n);
	if (link < 0) {
		printf("uprobe_multi: %s\n", strerror(-link));
		return 1;
	}
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}
