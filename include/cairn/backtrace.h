/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stack of the calling thread, without frame pointers, also inside of signal handlers
 *
 *	cairn_backtrace_prepare(NULL);		// at start, and after dlopen(): makes walks fast
 *	...
 *	struct cairn_addr pcs[64];		// in a handler, with its third argument:
 *	struct cairn_backtrace walk;
 *	size_t n = cairn_backtrace_context(ucontext, pcs, 64, &walk);
 *	if (walk.end != CAIRN_WALK_OUTERMOST)
 *		... the stack is not complete: cairn_walk_end_text(walk.end), and where: walk.at
 *
 * A walk neither allocates nor locks nor formats. It reads only memory that is known to be
 * readable, so it survives a stack that was overwritten, and ends there. Every reported pc follows
 * a call instruction of a loaded object.
 *
 * Linux on x86-64 with glibc 2.35 or later. Elsewhere cairn_backtrace_prepare() returns -EOPNOTSUPP
 * and walks are empty. Code made at run time ends a walk. The caller resolves the frames' addresses
 * (cairn/addr.h) outside of the handler.
 */
#ifndef CAIRN_BACKTRACE_H
#define CAIRN_BACKTRACE_H

#include <cairn/stack.h>

CAIRN_BEGIN_DECLS

/*
 * cairn_backtrace_prepare - build unwind tables for the objects that are loaded now
 *
 * Walks work without it, too: they then run the FDE's program for each address that is new, and
 * need more stack. May be called again after dlopen(); objects that have a table keep it. Tables
 * are never freed, since a walk may be reading them. An unloaded object leaves its table; if the
 * object is loaded again, it is found by its build-id.
 * Returns the number of objects that have a table. An object that cannot be read is left out, and
 * so is one that can be unloaded but has no build-id.
 * Negative: -EOPNOTSUPP (not this system), -ENOMEM, or the error of reading /proc/self/maps.
 * Cost: about a microsecond per function of the program and its libraries. Threads: any. Signals:
 * no.
 */
int cairn_backtrace_prepare(struct cairn_err *err);

/* How a walk went. */
struct cairn_backtrace {
	enum cairn_walk_end end;
	/*
	 * the pc where it ended: that of the last frame, or the one that was refused as the next
	 * frame's
	 */
	struct cairn_addr at;
	/*
	 * Frames whose pc is an instruction that was about to run: the first one of a context, and
	 * those that a signal interrupted. The pc of all others is the instruction after a call:
	 * look up the byte before it. Only the first four are recorded.
	 */
	uint32_t n_exact, exact[4];
};

/*
 * cairn_backtrace - the frames of the calling thread, from the caller of this function outwards
 *
 * @ret_pcs   room for @max; the first one is where this call returns to
 * @ret_walk  why it ended
 * Returns how many there are.
 * Cost: a few nanoseconds per frame seen before, tens for others in prepared objects, about a
 * microsecond for the rest. Stack: 2 KB; with objects that are not prepared 16 KB, and where an
 * alternate stack does not have them, the walk ends with CAIRN_WALK_NO_ROOM. No allocation.
 * Threads: any. Signals: safe, also on alternate stacks; errno is kept.
 */
size_t cairn_backtrace(struct cairn_addr *ret_pcs, size_t max, struct cairn_backtrace *ret_walk);

/*
 * The same from the code that a signal interrupted: @ucontext is the third argument of an
 * SA_SIGINFO handler.
 */
size_t cairn_backtrace_context(const void *ucontext, struct cairn_addr *ret_pcs, size_t max,
			       struct cairn_backtrace *ret_walk);

CAIRN_END_DECLS
#endif
