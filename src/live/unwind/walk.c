/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/walk.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include <cairn/text.h>

#include "base/err.h"
#include "cfi/convention.h"
#include "unwind/fp_fallback.h"
#include "unwind/begin.h"
#include "unwind/scan.h"

struct walker {
	struct walk *walk;
	const struct walk_target *target;
	size_t max;
	struct cairn_regs regs;  /* of the frame at hand */
	struct cairn_regs inner; /* of the last one that was added, where registers are kept */
	bool is_assumed;         /* a frame up to here is an assumption */
	uint32_t touched;        /* those that may be others in @regs than in @inner */
	/* A frame seen before, renewed at each power of two: Brent's way to notice a cycle. */
	uint64_t seen_pc, seen_sp, seen_fp;
};

/* How a frame is left. */
struct way {
	const struct cairn_unwind_rule *rule; /* NULL: there is none */
	struct rule_words words;              /* of code made at run time */
	bool by_frame_pointer;                /* if it looks as if there were one */
	bool is_said;                         /* its owner says that there is one */
	const char *why; /* the reason if there is no way; NULL: no description exists */
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
		[CAIRN_WALK_LIMIT] = "more frames than requested",
		[CAIRN_WALK_GONE] = "the thread is gone",
		[CAIRN_WALK_NO_CALL] = "the return address does not follow a call",
		[CAIRN_WALK_NO_ROOM] = "too little stack is left",
		[CAIRN_WALK_NOT_STOPPED] = "the thread cannot be stopped",
		[CAIRN_WALK_ASSUMED] = "outermost frame, by an assumption",
		[CAIRN_WALK_NO_MAPPING] = "no mapping is known there",
		[CAIRN_WALK_NOT_READY] = "the unwind table was not ready",
		[CAIRN_WALK_READS] = "too much memory to read",
		[CAIRN_WALK_NOT_TAKEN] = "there was no room for its stack",
	};
	return texts[end];
}

__attribute__((format(printf, 3, 4))) static int finish(struct walker *w, enum cairn_walk_end end,
							const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(w->walk->why, sizeof(w->walk->why), format, args);
	va_end(args);
	w->walk->end = end;
	return 1;
}

/* There is no caller; that is as sure as the frames on the way. */
static int finish_outermost(struct walker *w, const char *why)
{
	if (!w->is_assumed)
		return finish(w, CAIRN_WALK_OUTERMOST, "%s", why);
	return finish(w, CAIRN_WALK_ASSUMED, "%s, by way of frames that are assumed", why);
}

static bool is_code(const struct walker *w, uint64_t at)
{
	const struct code_mapping *m = code_maps_find(code_space_maps(w->target->space), at);
	return m && m->is_executable;
}

static const char *why_unnamed(const struct code_found *found)
{
	if (found->n_functions)
		return NULL;
	if (found->why)
		return found->why;
	if (!found->range || found->range->source == CAIRN_CODE_ANONYMOUS)
		return "no registry, GDB list, jitdump or perf map has a function there";
	return "the maker of the code there names no function";
}

/* Queries the description of code that no file's row describes. */
static int ask_about_code(struct walker *w, struct cairn_stack_frame *f, struct way *way,
			  struct cairn_err *err)
{
	struct code_found found = {.unwind = CAIRN_CODE_UNWIND_ASSUMED};
	int rc = 0;
	if (!is_code(w, f->at.v))
		return 0;
	if (w->target->runtime)
		rc = code_runtime_find(w->target->runtime, f->at.v, &found, err);
	if (rc < 0)
		return rc;
	f->code = found.range;
	f->unwind = found.unwind;
	f->n_functions = found.n_functions;
	f->functions = found.functions;
	f->named_by = found.named_by;
	f->has_off = found.has_off;
	f->off = found.off;
	f->unnamed = f->path ? NULL : why_unnamed(&found);
	way->why = found.why ? found.why : way->why;
	way->is_said = found.unwind == CAIRN_CODE_UNWIND_FP;
	way->by_frame_pointer = way->is_said || found.unwind == CAIRN_CODE_UNWIND_ASSUMED;
	way->words = found.rule;
	if (way->by_frame_pointer || found.unwind == CAIRN_CODE_UNWIND_NONE)
		return 0;
	way->rule = (const struct cairn_unwind_rule *)way->words.words;
	f->is_signal = way->rule->flags & CAIRN_UNWIND_SIGNAL;
	return 0;
}

static struct walk_place *place_of(struct walk *walk, struct cairn_addr at)
{
	return &walk->places[(at.v ^ at.v >> 8) % WALK_PLACES];
}

/* A place of a file that is described is kept. Returns 0, -ENOMEM. */
static int find_place(struct walker *w, struct cairn_addr at, struct walk_place *ret,
		      struct cairn_err *err)
{
	struct walk_place *known = place_of(w->walk, at);
	if (known->at == at.v && at.v) {
		*ret = *known;
		return 0;
	}
	*ret = (struct walk_place){.at = at.v};
	int rc = code_space_find(w->target->space, at, &ret->image, &ret->vaddr, err);
	if (rc < 0)
		return rc;
	if (ret->image && ret->image->bin && unwind_table_is_open(&ret->image->table))
		ret->rule = unwind_table_find(&ret->image->table, ret->vaddr);
	if (ret->rule && ret->rule->cfa == CAIRN_UNWIND_UNDESCRIBED)
		ret->rule = NULL;
	if (ret->rule)
		*known = *ret;
	return 0;
}

/*
 * JITs share memory with themselves, to write it at another address than it runs at: a name of the
 * kernel's, and no file.
 */
static bool is_memory(const struct walker *w, uint64_t at)
{
	const struct code_mapping *m = code_maps_find(code_space_maps(w->target->space), at);
	return m && code_is_anonymous(m);
}

/* Finds the frame's place, and how it is left. */
static int locate(struct walker *w, struct cairn_stack_frame *f, struct way *way,
		  struct cairn_err *err)
{
	struct walk_place place;
	f->at.v = f->pc.v - !f->is_exact;
	int rc = find_place(w, f->at, &place, err);
	if (rc < 0)
		return rc;
	f->vaddr = place.vaddr;
	if (place.image && (place.image->bin || !is_memory(w, f->at.v))) {
		f->path = place.image->path;
		f->bin = place.image->bin;
		f->sidecar = place.image->sidecar;
	}
	if (!place.rule) {
		way->why = f->path && place.image->note[0] ? place.image->note : NULL;
		return ask_about_code(w, f, way, err);
	}
	way->rule = place.rule;
	f->is_signal = place.rule->flags & CAIRN_UNWIND_SIGNAL;
	f->unwind = CAIRN_CODE_UNWIND_FILE;
	return 0;
}

/* Reports why a frame cannot be left; @why_no_assumption is NULL when none was tried. */
static int report_no_way(struct walker *w, const struct cairn_stack_frame *f, const struct way *way,
			 const char *why_no_assumption)
{
	const char *more = way->why ? way->why : "", *colon = way->why ? ": " : "";
	const char *and = why_no_assumption ? "; " : "",
		   *assumption = why_no_assumption ? why_no_assumption : "";
	if (f->bin)
		return finish(w, CAIRN_WALK_UNDESCRIBED,
			      "no unwind row at 0x%" PRIx64 " in %s%s%s%s%s", f->vaddr.v, f->path,
			      colon, more, and, assumption);
	if (f->path)
		return finish(w, CAIRN_WALK_UNDESCRIBED,
			      "0x%" PRIx64 " is in %s, which cannot be read%s%s%s%s", f->at.v,
			      f->path, colon, more, and, assumption);
	if (!is_code(w, f->at.v))
		return finish(w, CAIRN_WALK_NO_FILE, "0x%" PRIx64 " is in no file", f->at.v);
	if (f->code && f->code->source != CAIRN_CODE_ANONYMOUS)
		return finish(w, CAIRN_WALK_UNDESCRIBED,
			      "no unwind information at 0x%" PRIx64
			      ", in code made at run time%s%s%s%s",
			      f->at.v, colon, more, and, assumption);
	return finish(w, CAIRN_WALK_NO_FILE,
		      "0x%" PRIx64 " is in no file, in code without a description%s%s%s%s", f->at.v,
		      colon, more, and, assumption);
}

/* To the caller; @assumed: the assumption; NULL: none. */
static void go_out(struct walker *w, struct cairn_stack_frame *f, const struct cairn_regs *caller,
		   const char *assumed)
{
	w->regs = *caller;
	w->touched = UINT32_MAX;
	w->is_assumed |= assumed != NULL;
	*f = (struct cairn_stack_frame){
		.pc = caller->pc, .is_assumed = assumed, .assumed = assumed};
}

static struct called called_of(struct walker *w)
{
	const struct walk_target *t = w->target;
	return (struct called){.machine = t->machine,
			       .space = t->space,
			       .code = &t->code,
			       .known = w->walk->called};
}

/* Whether the call before @ret_addr leads elsewhere than to @callee; as called_is_other(). */
static int calls_another(struct walker *w, uint64_t callee, uint64_t ret_addr, uint64_t *ret_target,
			 struct cairn_err *err)
{
	const struct called how = called_of(w);
	return called_is_other(&how, callee, ret_addr, ret_target, err);
}

/*
 * The state after a call through a bad pointer: the program counter is in no code, and the call has
 * just put its return address on top of the stack, or into x30. The cause may also be a jump, or a
 * return over a damaged stack. So the address must be in code, and the frame is marked.
 */
static const struct cairn_unwind_rule just_called = {
	.cfa = CAIRN_UNWIND_CFA_REG, .reg = 7, .off = 8};
static const struct cairn_unwind_rule just_called_aarch64 = {.cfa = CAIRN_UNWIND_CFA_REG,
							     .reg = 31};

/* 1: the caller is assumed; 0: it cannot be; -ENOMEM. */
static int fp_fallback_call(struct walker *w, struct cairn_stack_frame *f, struct cairn_err *err)
{
	uint64_t target;
	struct cairn_regs caller = w->regs;
	const struct walk_target *t = w->target;
	const struct cairn_unwind_rule *rule =
		t->machine == EM_AARCH64 ? &just_called_aarch64 : &just_called;
	if (!f->is_exact || is_code(w, f->pc.v) ||
	    cairn_unwind_step(rule, t->machine, t->read, t->ctx, &caller) != CAIRN_STEP_OK ||
	    !is_code(w, caller.pc.v - 1))
		return 0;
	int rc = calls_another(w, f->at.v, caller.pc.v, &target, err);
	if (rc)
		return rc < 0 ? rc : 0;
	go_out(w, f, &caller, "its callee is no code");
	return 1;
}

/* For code without a file and without a rule: 1 when it runs in the frame of another function. */
static int step_out_of_borrowed(struct walker *w, struct cairn_stack_frame *f,
				struct cairn_err *err)
{
	const struct walk_target *t = w->target;
	const struct borrow how = {.machine = t->machine,
				   .space = t->space,
				   .memory = &t->code,
				   .states = t->states,
				   .read = t->read,
				   .ctx = t->ctx};
	struct cairn_regs caller = w->regs;
	int rc = f->path || !is_code(w, f->at.v) ? 0 : interpreter_frame_caller(&how, &caller, err);
	if (rc == 1)
		go_out(w, f, &caller, "its callee runs in the frame of an interpreter");
	return rc;
}

/*
 * Steps by the code's way to its return or by the words on the stack, if nothing else leads on;
 * @why: the frame pointer's reason.
 */
static int step_by_scan(struct walker *w, const struct way *way, struct cairn_stack_frame *f,
			const char *why, struct cairn_err *err)
{
	const struct called called = called_of(w);
	const struct scan how = {.called = &called, .read = w->target->read, .ctx = w->target->ctx};
	struct cairn_regs caller = w->regs;
	const char *assumed = "its callee's code leads to a return, which leads here";
	bool is_unknown_code = !f->path && is_code(w, f->at.v);
	int rc = is_unknown_code ? scan_return_path(&how, f->at.v, &caller, err) : 0;
	if (rc == 0 && is_unknown_code) {
		rc = scan_caller(&how, f->at.v, &caller, err);
		assumed = "a return address found on the stack, from which rows lead on";
	}
	if (rc == 1)
		go_out(w, f, &caller, assumed);
	return rc < 0 ? rc : rc ? 0 : report_no_way(w, f, way, why);
}

/* Steps by the frame pointer. If the owner of the code declares one, the frame is no assumption. */
static int step_by_frame_pointer(struct walker *w, const struct way *way,
				 struct cairn_stack_frame *f, struct cairn_err *err)
{
	const struct walk_target *t = w->target;
	const struct assume how = {.machine = t->machine,
				   .maps = code_space_maps(t->space),
				   .code = &t->code,
				   .read = t->read,
				   .ctx = t->ctx};
	const char *why;
	char other[128];
	uint64_t target;
	struct cairn_regs caller = w->regs;
	if (t->machine == EM_AARCH64 && fp_fallback_outermost_arm(f->is_exact, &caller)) {
		w->is_assumed = true;
		return finish_outermost(w, "frame pointer 0");
	}
	if (!fp_fallback_caller(&how, f->is_exact, &caller, &why))
		return step_by_scan(w, way, f, why, err);
	int rc = calls_another(w, f->at.v, caller.pc.v, &target, err);
	if (rc < 0)
		return rc;
	if (rc) {
		snprintf(other, sizeof(other),
			 "rbp leads to 0x%" PRIx64 ", but the call before that leads to 0x%" PRIx64,
			 caller.pc.v, target);
		return step_by_scan(w, way, f, other, err);
	}
	go_out(w, f, &caller, way->is_said ? NULL : why);
	return 0;
}

static bool was_here(struct walker *w, const struct cairn_regs *regs, size_t n)
{
	const struct convention *abi = convention_of(w->target->machine);
	uint64_t sp = regs->r[abi->sp], fp = regs->r[abi->fp];
	/* Only where the stack pointer is not known do frames differ by the frame pointer alone. */
	bool has_sp = regs->known & UINT32_C(1) << abi->sp;
	if (n && regs->pc.v == w->seen_pc && sp == w->seen_sp && (has_sp || fp == w->seen_fp))
		return true;
	if ((n & (n - 1)) == 0) {
		w->seen_pc = regs->pc.v;
		w->seen_sp = sp;
		w->seen_fp = fp;
	}
	return false;
}

/* The registers that a step may change among those that stay known. */
static uint32_t touched_by(const struct walker *w, const struct cairn_unwind_rule *rule)
{
	uint32_t touched = UINT32_C(1) << convention_of(w->target->machine)->sp;
	for (uint32_t i = 0; i < rule->n_regs; i++)
		touched |= UINT32_C(1) << cairn_unwind_word_reg(cairn_unwind_words(rule)[i]);
	return touched;
}

/* Names the code of a frame in an explanation. */
static const char *code_of(const struct cairn_stack_frame *f)
{
	return f->path ? f->path : "code made at run time";
}

/* From the frame @here to its caller, *@f; they may be the same. */
static int step(struct walker *w, const struct cairn_unwind_rule *rule,
		const struct cairn_stack_frame *here, struct cairn_stack_frame *f)
{
	const struct walk_target *t = w->target;
	uint64_t at = here->bin ? here->vaddr.v : here->at.v;
	switch (cairn_unwind_step(rule, t->machine, t->read, t->ctx, &w->regs)) {
	case CAIRN_STEP_OK:
		break;
	case CAIRN_STEP_OUTERMOST:
		return finish_outermost(w, "outermost frame");
	case CAIRN_STEP_UNDESCRIBED:
		return finish(w, CAIRN_WALK_UNDESCRIBED, "no unwind row");
	case CAIRN_STEP_UNREADABLE:
		return finish(w, CAIRN_WALK_UNREADABLE,
			      "the stack of the frame at 0x%" PRIx64 " in %s cannot be read", at,
			      code_of(here));
	case CAIRN_STEP_LOST:
		return finish(w, CAIRN_WALK_LOST,
			      "the frame at 0x%" PRIx64
			      " in %s needs a register that its callee did not keep",
			      at, code_of(here));
	case CAIRN_STEP_STUCK:
		return finish(w, CAIRN_WALK_LOOP,
			      "the caller of the frame at 0x%" PRIx64 " in %s would be below it",
			      at, code_of(here));
	}
	if (!t->no_registers)
		w->touched = touched_by(w, rule);
	/*
	 * If addresses have less than 48 bits, a signature begins below the bits that a step
	 * removes.
	 */
	w->regs.pc.v &= ~t->signature;
	/*
	 * A return address of 0 is how some programs mark the outermost frame, without a rule that
	 * says so.
	 */
	if (!w->regs.pc.v && !here->is_signal)
		return finish_outermost(w, "return address 0");
	*f = (struct cairn_stack_frame){.pc = w->regs.pc, .is_exact = here->is_signal};
	return 0;
}

/* The registers of @touched that the frame inside does not have, or has with another value. */
static uint32_t changed_regs(const struct cairn_regs *inner, const struct cairn_regs *regs,
			     uint32_t touched)
{
	uint32_t changed = regs->known & ~inner->known;
	for (uint32_t left = regs->known & inner->known & touched; left; left &= left - 1) {
		unsigned int r = (unsigned int)__builtin_ctz(left);
		changed |= (uint32_t)(regs->r[r] != inner->r[r]) << r;
	}
	return changed;
}

static bool add_regs(struct walker *w)
{
	struct walk *walk = w->walk;
	const struct cairn_regs *regs = &w->regs;
	const struct frame_regs kept = {.known = regs->known,
					.changed = changed_regs(&w->inner, regs, w->touched),
					.first = (uint32_t)walk->words.n};
	for (uint32_t left = kept.changed; left; left &= left - 1)
		if (!VEC_ADD(&walk->words, regs->r[__builtin_ctz(left)]))
			return false;
	w->inner = w->regs;
	return VEC_ADD(&walk->regs, kept);
}

/* For a frame of a file, its address and how it was found determine the rest. */
static bool is_same_frame(const struct cairn_stack_frame *a, const struct cairn_stack_frame *b)
{
	return a && a->pc.v == b->pc.v && a->is_exact == b->is_exact && a->assumed == b->assumed;
}

/* The place at which a frame like it was last found; NULL: it has to be located. */
static const struct walk_place *same_as_before(struct walk *walk, const struct cairn_stack_frame *f)
{
	const struct cairn_addr at = {f->pc.v - !f->is_exact};
	const struct walk_place *place = place_of(walk, at);
	return place->rule && place->at == at.v && is_same_frame(place->frame, f) ? place : NULL;
}

/* One like it, which stays; NULL when out of memory. */
static const struct cairn_stack_frame *keep_frame(struct walk *walk,
						  const struct cairn_stack_frame *f)
{
	struct walk_place *place = place_of(walk, f->at);
	bool is_known_place = place->at == f->at.v && place->rule;
	if (is_known_place && is_same_frame(place->frame, f))
		return place->frame;
	struct cairn_stack_frame *kept = arena_alloc(&walk->kept, sizeof(*kept));
	if (kept)
		*kept = *f;
	if (is_known_place)
		place->frame = kept;
	return kept;
}

static bool add_frame(struct walker *w, const struct cairn_stack_frame *kept)
{
	return kept && VEC_ADD(&w->walk->frames, kept) && (w->target->no_registers || add_regs(w));
}

static int visit_new(struct walker *w, struct cairn_stack_frame *f, struct cairn_err *err)
{
	struct way way = {0};
	int rc = locate(w, f, &way, err);
	if (rc < 0)
		return rc;
	if (!add_frame(w, keep_frame(w->walk, f)))
		return err_nomem(err, "the frames of a stack");
	const char *begin;
	if (!f->is_exact && begin_of_context(w->target->machine, &w->target->code, f->pc.v, &begin))
		return finish_outermost(w, begin);
	if (way.rule)
		return step(w, way.rule, f, f);
	rc = way.is_said ? 0 : step_out_of_borrowed(w, f, err);
	if (rc)
		return rc < 0 ? rc : 0;
	if (way.by_frame_pointer)
		return step_by_frame_pointer(w, &way, f, err);
	rc = fp_fallback_call(w, f, err);
	if (rc)
		return rc < 0 ? rc : 0;
	return report_no_way(w, f, &way, NULL);
}

static int visit(struct walker *w, struct cairn_stack_frame *f, struct cairn_err *err)
{
	size_t n = w->walk->frames.n;
	if (n == w->max)
		return finish(w, CAIRN_WALK_LIMIT, "%s", cairn_counted(n, "frame").text);
	if (was_here(w, &w->regs, n))
		return finish(w, CAIRN_WALK_LOOP, "the stack leads back to 0x%" PRIx64, f->pc.v);
	const struct walk_place *known = same_as_before(w->walk, f);
	if (!known)
		return visit_new(w, f, err);
	return add_frame(w, known->frame) ? step(w, known->rule, known->frame, f)
					  : err_nomem(err, "the frames of a stack");
}

void walk_empty(struct walk *walk)
{
	walk->frames.n = walk->regs.n = walk->words.n = 0;
}

void walk_forget(struct walk *walk)
{
	memset(walk->places, 0, sizeof(walk->places));
	memset(walk->called, 0, sizeof(walk->called));
	arena_fini(&walk->kept);
	walk_empty(walk);
}

void walk_fini(struct walk *walk)
{
	arena_fini(&walk->kept);
	VEC_FREE(&walk->frames);
	VEC_FREE(&walk->regs);
	VEC_FREE(&walk->words);
}

int walk_run(struct walk *walk, const struct walk_target *target, const struct cairn_regs *regs,
	     size_t max, struct cairn_err *err)
{
	struct walker w = {.walk = walk,
			   .target = target,
			   .max = max ? max : WALK_MAX_FRAMES,
			   .regs = *regs,
			   .touched = UINT32_MAX};
	struct cairn_stack_frame f = {.pc = regs->pc, .is_exact = true};
	int rc = 0;
	walk_empty(walk);
	while (rc == 0)
		rc = visit(&w, &f, err);
	return rc < 0 ? rc : 0;
}
