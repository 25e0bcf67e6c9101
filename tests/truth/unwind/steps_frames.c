/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shadow stack: frames that begin with calls and signals and end with returns, seen as changes
 * of the stack pointer.
 */
#include "steps.h"

#include <sys/ptrace.h>
#include <sys/user.h>
#include <string.h>

void take_regs(struct run *r, struct cairn_regs *ret)
{
	struct user_regs_struct u;
	if (ptrace(PTRACE_GETREGS, r->pid, NULL, &u) < 0)
		die("registers");
	const uint64_t regs[16] = {u.rax, u.rdx, u.rcx, u.rbx, u.rsi, u.rdi, u.rbp, u.rsp,
				   u.r8,  u.r9,  u.r10, u.r11, u.r12, u.r13, u.r14, u.r15};
	memcpy(ret->r, regs, sizeof(regs));
	ret->known = 0xffff;
	ret->pc.v = u.rip;
}

static void save(struct frame *f, const struct cairn_regs *regs)
{
	for (size_t i = 0; i < N_KEPT; i++)
		f->saved[i] = regs->r[kept[i]];
}

static struct frame *push(struct run *r, uint64_t ret_addr, uint64_t cfa)
{
	if (r->depth == MAX_DEPTH)
		forget_frames(r);
	struct frame *f = &r->frames[r->depth++];
	*f = (struct frame){.ret_addr = ret_addr, .cfa = cfa};
	return f;
}

static void end_frame(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	const struct frame *f = &r->frames[--r->depth];
	struct file *file;
	struct cairn_vaddr at;
	judge_frame(r, f, before, now);
	if (!f->is_moved || (now->pc.v == f->ret_addr && now->r[RSP] == f->cfa))
		return;
	rule_at(r, before->pc.v, &file, &at);
	wrong(r, file, at, f, "the return from a frame that was moved");
}

void forget_frames(struct run *r)
{
	while (r->depth)
		judge_frame(r, &r->frames[--r->depth], NULL, NULL);
}

void follow(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	uint64_t sp = now->r[RSP], word;
	/* Entries of a linkage table go on by a jump, but for the number that they push. */
	if (r->is_called && (sp == before->r[RSP] || r->linked_from))
		note_function(r, now->pc.v);
	r->is_called &= r->linked_from != NULL;
	while (r->depth && r->frames[r->depth - 1].cfa <= sp)
		end_frame(r, before, now);
	/* Another stack (coroutines): nothing is known of it. */
	if (r->depth && r->frames[r->depth - 1].cfa - sp > 64 << 20)
		forget_frames(r);
	if (sp != before->r[RSP] - 8 ||
	    !read_target(r, (struct cairn_addr){sp}, &word, sizeof(word)) ||
	    word - before->pc.v < 2 || word - before->pc.v > 8 || now->pc.v == word)
		return;
	save(push(r, word, sp + 8), before);
	r->is_called = true;
	note_function(r, now->pc.v);
}

void enter_handler(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now)
{
	uint64_t word;
	if (!read_target(r, (struct cairn_addr){now->r[RSP]}, &word, sizeof(word)))
		return;
	struct frame *f = push(r, word, now->r[RSP] + 8);
	save(f, now);
	f->is_handler = true;
	f->interrupted = *before;
	r->n_signals++;
}

/* What is at @ret_addr - 2 to - 7 calls: e8 with an offset, or ff /2 with any operand. */
static bool is_after_call(const struct run *r, uint64_t ret_addr)
{
	uint8_t p[7];
	if (!read_target((void *)(uintptr_t)r, (struct cairn_addr){ret_addr - sizeof(p)}, p,
			 sizeof(p)))
		return false;
	if (p[2] == 0xe8)
		return true;
	for (size_t n = 2; n <= sizeof(p); n++)
		if (p[sizeof(p) - n] == 0xff && (p[sizeof(p) - n + 1] & 0x38) == 0x10)
			return true;
	return false;
}

void begin_called(struct run *r, const struct cairn_regs *regs)
{
	uint64_t word;
	if (!read_target(r, (struct cairn_addr){regs->r[RSP]}, &word, sizeof(word)) ||
	    !map_of(r, word) || !is_after_call(r, word))
		return;
	save(push(r, word, regs->r[RSP] + 8), regs);
	note_function(r, regs->pc.v);
}
