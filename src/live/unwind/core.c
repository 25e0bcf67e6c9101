/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks of a core file: its registers and memory, walked like those of a process. */
#include <elf.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "unwind/stacks.h"

/*
 * The index of each DWARF register in struct user_regs_struct: rax rdx rcx rbx rsi rdi rbp rsp r8
 * to r15.
 */
static const uint8_t user_of[16] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0};
enum { USER_RIP = 16 };

/* x0 to x30 and the stack pointer have the numbers that DWARF gives them. */
static struct cairn_regs regs_of_aarch64(const struct core_thread *t)
{
	struct cairn_regs regs = {.pc = {t->user[32]}, .known = UINT32_MAX};
	memcpy(regs.r, t->user, sizeof(regs.r));
	return regs;
}

static struct cairn_regs regs_of(const struct core_thread *t)
{
	struct cairn_regs regs = {.pc = {t->user[USER_RIP]}, .known = 0xffff};
	for (size_t i = 0; i < 16; i++)
		regs.r[i] = t->user[user_of[i]];
	return regs;
}

static bool read_memory(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	return core_read(ctx, at.v, ret, n);
}

static int walk_thread(struct cairn_stacks *stacks, const struct core_thread *t,
		       struct cairn_err *err)
{
	struct core *core = stacks->core;
	struct cairn_regs regs = core->machine == EM_AARCH64 ? regs_of_aarch64(t) : regs_of(t);
	struct thread_walk *to = stacks_add(stacks, t->tid, t->tid == core->pid ? core->comm : "");
	if (!to)
		return err_nomem(err, "the threads of a core file");
	to->vectors = t->vectors;
	to->stack.signal = t->signal;
	to->stack.has_fault = t->has_fault;
	to->stack.fault.v = t->fault;
	const struct walk_target target = {
		.machine = core->machine,
		.signature = core->signature,
		.space = stacks->space,
		.runtime = stacks->runtime,
		.code = code_memory_of_core_and_files(&stacks->core_memory),
		.no_registers = stacks->no_registers,
		.read = read_memory,
		.ctx = core};
	int rc = walk_run(&stacks->walk, &target, &regs, stacks->max_frames, err);
	return rc < 0 ? rc : stacks_keep(stacks, to, err);
}

static int open_runtime(struct cairn_stacks *stacks, struct cairn_err *err)
{
	stacks->core_memory = (struct core_memory){stacks->core, stacks->space};
	struct code_memory memory = code_memory_of_core_and_files(&stacks->core_memory);
	int rc = code_runtime_new(memory, 0, stacks->core->machine, &stacks->runtime, err);
	if (rc == 0)
		rc = code_runtime_prepare(stacks->runtime, stacks->space, err);
	if (rc == 0)
		rc = code_runtime_freeze(stacks->runtime, err);
	return rc < 0 ? rc : code_runtime_resolve(stacks->runtime, err);
}

static void report_what_is_missing(struct cairn_stacks *stacks)
{
	const struct core *core = stacks->core;
	if (core->whole > core->size)
		snprintf(stacks->note, sizeof(stacks->note),
			 "%s: cut off: %zu of %" PRIu64 " bytes", core->path, core->size,
			 core->whole);
	else if (!core->threads.n)
		snprintf(stacks->note, sizeof(stacks->note), "%s: no thread is in it", core->path);
	else
		memcpy(stacks->note, core->note, sizeof(stacks->note));
}

int cairn_stacks_open_core(const char *path, const struct cairn_stacks_opts *opts,
			   struct cairn_stacks **ret, struct cairn_err *err)
{
	struct cairn_stacks *stacks;
	int rc = stacks_new(opts, &stacks, err);
	if (rc < 0)
		return rc;
	rc = core_open_all(path, &stacks->search, &stacks->core, &stacks->space, err);
	if (rc == 0) {
		code_space_use_sidecars(stacks->space, &stacks->sidecars);
		rc = open_runtime(stacks, err);
	}
	if (rc == 0)
		report_what_is_missing(stacks);
	for (size_t i = 0; rc == 0 && i < stacks->core->threads.n; i++)
		rc = walk_thread(stacks, &stacks->core->threads.p[i], err);
	if (rc == 0)
		stacks_take_note(stacks);
	if (rc < 0)
		cairn_stacks_close(stacks);
	else
		*ret = stacks;
	return rc;
}
