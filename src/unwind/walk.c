/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/err.h"

struct walker {
	struct walk *walk;
	struct code_space *space;
	uint16_t machine;
	cairn_read_memory read;
	void *ctx;
	size_t max;
	/* A frame seen before, renewed at each power of two: Brent's way to notice a cycle. */
	uint64_t seen_pc, seen_sp;
};

const char *cairn_walk_end_text(enum cairn_walk_end end)
{
	static const char *const texts[] = {
		[CAIRN_WALK_OUTERMOST] = "outermost frame",
		[CAIRN_WALK_UNDESCRIBED] = "no unwind row",
		[CAIRN_WALK_NO_FILE] = "no file",
		[CAIRN_WALK_UNREADABLE] = "unreadable memory",
		[CAIRN_WALK_LOST] = "a register is lost",
		[CAIRN_WALK_LOOP] = "the stack leads back to itself",
		[CAIRN_WALK_LIMIT] = "more frames than asked for",
		[CAIRN_WALK_GONE] = "the thread is gone",
		[CAIRN_WALK_NO_CALL] = "the return address is not behind a call",
		[CAIRN_WALK_NO_ROOM] = "too little stack is left",
		[CAIRN_WALK_NOT_STOPPED] = "the thread cannot be stopped",
	};
	return texts[end];
}

__attribute__((format(printf, 3, 4))) static int finish(struct walker *w, enum cairn_walk_end end, const char *format,
							 ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(w->walk->why, sizeof(w->walk->why), format, args);
	va_end(args);
	w->walk->end = end;
	return 1;
}

/* Where the frame is, and its rule; NULL when the walk is over, with *@rc as finish() or an error. */
static const struct cairn_unwind_rule *locate(struct walker *w, struct cairn_stack_frame *f, int *rc,
					      struct cairn_err *err)
{
	const struct code_image *image;
	f->at.v = f->regs.pc.v - !f->is_exact;
	*rc = code_space_find(w->space, f->at, &image, &f->vaddr, err);
	if (*rc < 0)
		return NULL;
	if (!image) {
		*rc = finish(w, CAIRN_WALK_NO_FILE, "0x%" PRIx64 " is in no file", f->at.v);
		return NULL;
	}
	f->path = image->path;
	f->bin = image->bin;
	const struct cairn_unwind_rule *rule = image->bin && image->table.rows ?
						       unwind_table_find(&image->table, f->vaddr) :
						       NULL;
	if (rule && rule->cfa != CAIRN_UNWIND_UNDESCRIBED) {
		f->is_signal = rule->flags & CAIRN_UNWIND_SIGNAL;
		return rule;
	}
	if (!image->bin)
		*rc = finish(w, CAIRN_WALK_UNDESCRIBED, "0x%" PRIx64 " is in %s, which cannot be read: %s", f->at.v,
			     image->path, image->note);
	else
		*rc = finish(w, CAIRN_WALK_UNDESCRIBED, "no unwind row at 0x%" PRIx64 " in %s%s%s", f->vaddr.v, image->path,
		     image->note[0] ? ": " : "", image->note);
	return NULL;
}

/*
 * What a call through a bad pointer leaves: the program counter is nowhere, and the call has just put its return address on
 * top of the stack. It may also be a jump, or a return over a damaged stack: so the address must be one of code, and the
 * frame is marked.
 */
static const struct cairn_unwind_rule just_called = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = 7, .off = 8};

static bool is_code(const struct walker *w, uint64_t at)
{
	const struct code_mapping *m = code_maps_find(code_space_maps(w->space), at);
	return m && m->is_executable;
}

static bool assume_call(struct walker *w, struct cairn_stack_frame *f)
{
	struct cairn_regs caller = f->regs;
	if (w->machine != EM_X86_64 || !f->is_exact || is_code(w, f->regs.pc.v) ||
	    cairn_unwind_step(&just_called, w->machine, w->read, w->ctx, &caller) != CAIRN_STEP_OK ||
	    !is_code(w, caller.pc.v - 1))
		return false;
	*f = (struct cairn_stack_frame){.regs = caller, .is_assumed = true};
	return true;
}

static bool was_here(struct walker *w, const struct cairn_regs *regs, size_t n)
{
	uint64_t sp = regs->r[w->machine == EM_AARCH64 ? 31 : 7];
	if (n && regs->pc.v == w->seen_pc && sp == w->seen_sp)
		return true;
	if ((n & (n - 1)) == 0) {
		w->seen_pc = regs->pc.v;
		w->seen_sp = sp;
	}
	return false;
}

static int step(struct walker *w, const struct cairn_unwind_rule *rule, struct cairn_stack_frame *f)
{
	struct cairn_regs caller = f->regs;
	switch (cairn_unwind_step(rule, w->machine, w->read, w->ctx, &caller)) {
	case CAIRN_STEP_OK:
		break;
	case CAIRN_STEP_OUTERMOST:
		return finish(w, CAIRN_WALK_OUTERMOST, "outermost frame");
	case CAIRN_STEP_UNDESCRIBED:
		return finish(w, CAIRN_WALK_UNDESCRIBED, "no unwind row");
	case CAIRN_STEP_UNREADABLE:
		return finish(w, CAIRN_WALK_UNREADABLE, "the stack of the frame at 0x%" PRIx64 " in %s cannot be read",
			      f->vaddr.v, f->path);
	case CAIRN_STEP_LOST:
		return finish(w, CAIRN_WALK_LOST, "the frame at 0x%" PRIx64 " in %s needs a register that its callee did not keep",
			      f->vaddr.v, f->path);
	case CAIRN_STEP_STUCK:
		return finish(w, CAIRN_WALK_LOOP, "the caller of the frame at 0x%" PRIx64 " in %s would be below it",
			      f->vaddr.v, f->path);
	}
	/* A return address of 0 is how some programs mark the outermost frame, without a rule that says so. */
	if (!caller.pc.v && !f->is_signal)
		return finish(w, CAIRN_WALK_OUTERMOST, "return address 0");
	*f = (struct cairn_stack_frame){.regs = caller, .is_exact = f->is_signal};
	return 0;
}

static int visit(struct walker *w, struct cairn_stack_frame *f, struct cairn_err *err)
{
	size_t n = w->walk->frames.n;
	int rc;
	if (n == w->max)
		return finish(w, CAIRN_WALK_LIMIT, "%zu frames", n);
	if (was_here(w, &f->regs, n))
		return finish(w, CAIRN_WALK_LOOP, "the stack leads back to 0x%" PRIx64, f->regs.pc.v);
	const struct cairn_unwind_rule *rule = locate(w, f, &rc, err);
	if (rc >= 0 && !VEC_ADD(&w->walk->frames, *f))
		return err_nomem(err, "the frames of a stack");
	if (rc == 1 && w->walk->end == CAIRN_WALK_NO_FILE && assume_call(w, f))
		return 0;
	return rule ? step(w, rule, f) : rc;
}

int walk_run(struct walk *walk, struct code_space *space, uint16_t machine, const struct cairn_regs *regs,
	     cairn_read_memory read, void *ctx, size_t max, struct cairn_err *err)
{
	struct walker w = {.walk = walk, .space = space, .machine = machine, .read = read, .ctx = ctx,
			   .max = max ? max : WALK_MAX_FRAMES};
	struct cairn_stack_frame f = {.regs = *regs, .is_exact = true};
	int rc = 0;
	walk->frames.n = 0;
	while (rc == 0)
		rc = visit(&w, &f, err);
	return rc < 0 ? rc : 0;
}
