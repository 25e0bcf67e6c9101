/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a process or of a core file
 *
 * All threads are stopped, their registers and the used part of their stacks are copied, and they
 * go on; the copies are walked afterwards, by the unwind tables of the files that are mapped. No
 * frame pointers are needed. Through code made at run time the way leads by what its maker says of
 * it (cairn/code.h), and where nobody says anything by the frame pointer, as an assumption. A stack
 * with such a frame is not complete as a fact: it ends with CAIRN_WALK_ASSUMED.
 *
 *	struct cairn_stacks *stacks;
 *	if (cairn_stacks_open_pid(pid, NULL, &stacks, &err) < 0)
 *		return fail(err.msg);
 *	for (size_t i = 0; i < cairn_stacks_n_threads(stacks); i++) {
 *		const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, i);
 *		for (size_t k = 0; k < t->n_frames; k++)
 *			printf("%#lx\n", t->frames[k]->pc.v);
 *		printf("(%s)\n", t->why);
 *	}
 *	cairn_stacks_close(stacks);
 *
 * Names of files' functions are not in it: a frame has its file and the address in it, which
 * cairn/sidecar.h and cairn/binary.h name. Those of code made at run time are, since they are of
 * the moment.
 */
#ifndef CAIRN_STACK_H
#define CAIRN_STACK_H

#include <cairn/code.h>
#include <cairn/sidecar.h>
#include <cairn/sites.h>
#include <cairn/unwind.h>

CAIRN_BEGIN_DECLS

/* Why a walk ended. */
enum cairn_walk_end {
	CAIRN_WALK_OUTERMOST,	/* complete: the last frame has no caller */
	CAIRN_WALK_UNDESCRIBED, /* nothing says how to unwind at the last frame's address */
	/* its address is in no file: code made at run time that nobody describes, or no code */
	CAIRN_WALK_NO_FILE,
	CAIRN_WALK_UNREADABLE,	/* the stack is not where it should be */
	CAIRN_WALK_LOST,	/* a register that is needed was not kept */
	CAIRN_WALK_LOOP,	/* the stack leads back to itself */
	CAIRN_WALK_LIMIT,	/* more frames than were asked for */
	CAIRN_WALK_GONE,	/* the thread ended before it could be stopped */
	/* the return address is not behind a call: the stack was overwritten. cairn/backtrace.h */
	CAIRN_WALK_NO_CALL,
	CAIRN_WALK_NO_ROOM,	/* too little stack is left to go on. cairn/backtrace.h */
	CAIRN_WALK_NOT_STOPPED, /* the thread waits in the kernel for what cannot be interrupted */
	/*
	 * complete by assumption: the last frame has no caller, and a frame on the way there is
	 * assumed
	 */
	CAIRN_WALK_ASSUMED,
};

struct cairn_stack_frame {
	/*
	 * the instruction that was about to run, or the one behind a call. Registers:
	 * cairn_stacks_regs()
	 */
	struct cairn_addr pc;
	/*
	 * Where the frame is in its code: pc, or the byte before it when that is where a call
	 * returns to. Names and lines are those of this address.
	 */
	struct cairn_addr at;
	bool is_exact; /* pc is an instruction that was about to run; else the one behind a call */
	/* the frame is a signal trampoline: what is outside of it was interrupted */
	bool is_signal;
	/*
	 * It is an assumption. The frame inside of it is at an address that is no code, as after a
	 * call through a bad pointer, and the top of the stack holds a return address; or nobody
	 * describes the code there, and the frame pointer, as the code there has it, leads to a
	 * return address.
	 */
	bool is_assumed;
	bool has_off;
	enum cairn_code_unwind unwind; /* by what it is left */
	const char *assumed; /* what was, in static words; NULL */
	struct cairn_vaddr vaddr; /* of at in the binary */
	/* NULL when no file is there, or it cannot be read. Borrowed */
	const struct cairn_binary *bin;
	/* the file's sidecar, when find_sidecar found one. Borrowed */
	const struct cairn_sidecar *sidecar;
	/* as the process has it mapped, "[vdso]"; NULL when no file is there. Borrowed */
	const char *path;
	/*
	 * Where no file is, or its rows do not tell: what is said of the code there. All are
	 * borrowed.
	 */
	const struct cairn_code_range *code; /* NULL: nobody says anything */
	size_t n_functions; /* innermost first; 0: no name is known */
	const struct cairn_frame *functions;
	enum cairn_code_source named_by; /* who names them; valid with n_functions */
	uint64_t off; /* of at from the beginning of the outermost function; valid with has_off */
	const char *unnamed; /* why there is no name, where no file is; static words or NULL */
};

struct cairn_thread_stack {
	int tid;
	char comm[16]; /* "" when it is not known: a core has that of the main thread only */
	size_t n_frames;
	/* innermost first; one that occurs in several stacks is in them as one */
	const struct cairn_stack_frame *const *frames;
	enum cairn_walk_end end;
	const char *why; /* the end in words, with address and file */
	uint64_t stopped_ns; /* how long the thread did not run; 0 of a core */
	/*
	 * Of a core: the signal that the thread got, 0 for none, and the address that it is about.
	 */
	int signal;
	bool has_fault;
	struct cairn_addr fault;
};

struct cairn_stacks_opts {
	size_t size; /* sizeof(struct cairn_stacks_opts); a longer, unknown tail must be zero */
	size_t max_frames; /* per thread; 0: 1024 */
	unsigned int threads; /* for making unwind tables; 0: one per processor */
	/* Of a core file; they have to last until cairn_stacks_close(). */
	const char *sysroot; /* in front of the paths of mapped files; NULL: none */
	const char *const *debug_dirs; /* as in struct cairn_binary_opts */
	size_t n_debug_dirs;
	/*
	 * Finds the sidecar of a file that a frame is in, which then has the unwind table; NULL:
	 * none has one, and tables are made. Asked once for each file. *@ret, which is NULL at the
	 * call, is closed with the stacks; it stays NULL when there is none. Of errors -ENOMEM ends
	 * the call; with any other it is as if there were none.
	 */
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	/*
	 * of a process, read vector registers, too: a system call more for each thread. Of a core
	 * what it has is there
	 */
	bool vectors;
	/*
	 * do not keep those of frames, which takes time: cairn_stacks_regs() tells none but the pc
	 * then
	 */
	bool no_registers;
	/*
	 * Of a core file: the program's, where the core does not tell which it was; not taken where
	 * the core contradicts. NULL
	 */
	const char *program;
};

struct cairn_stacks;

/*
 * cairn_stacks_open_pid - the stacks of all threads of a running process
 *
 * @opts  may be NULL
 * @ret   cairn_stacks_close()
 * Returns 0. Negative:
 *   -ESRCH       no such process
 *   -EPERM       it may not be traced (err: what would allow it)
 *   -EBUSY       another tracer has it (err: which)
 *   -EOPNOTSUPP  a 32-bit process
 *   -EINVAL      @opts has something set that this version does not know
 *   -ETIMEDOUT   pages of it that it answers the faults of itself, and does not (err: where); some
 *                of them are passed over, and told by cairn_stacks_note()
 *   -ENOMEM, and what ptrace(2) returns
 * A system call that a thread waits in is restarted by the kernel, as after SIGSTOP and SIGCONT;
 * those few that signal(7) lists there (epoll_wait, semop, sigtimedwait, ...) return EINTR then,
 * which programs have to expect anyway. A thread that waits in the kernel uninterruptibly is left
 * out (CAIRN_WALK_NOT_STOPPED). It is let go with the others.
 * Cost: each thread is stopped for tens of microseconds; the walk is done while it runs again.
 * Threads: the tracer is a thread that is started and ended, with the help of others; one call per
 * process at a time. Nobody else in the caller's process may wait for any child meanwhile
 * (waitpid(-1) without __WNOTHREAD takes our stops). Signals: no.
 */
int cairn_stacks_open_pid(int pid, const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
			    struct cairn_err *err);

/*
 * cairn_stacks_open_core - the stacks of all threads of a core file, of the kernel, of gcore or of
 * QEMU's user emulation
 *
 * The thread that crashed is the first. Mapped files are taken only when their build-id is the one
 * in the core's memory. QEMU's cores name no files: those of the dynamic loader's list are taken,
 * when their dynamic section is the one in memory. What a file that was cut off still has is used.
 *
 * @path  a core file
 * @opts  may be NULL
 * @ret   cairn_stacks_close()
 * Returns 0, also without any thread. Negative:
 *   -EBADMSG     no core file
 *   -EOPNOTSUPP  of a 32-bit process or another architecture than x86-64 and AArch64
 *   -EINVAL      @opts has something set that this version does not know
 *   -ENOMEM, and what open(2), fstat(2) and mmap(2) return
 * Cost: memory is read where stacks are, whatever the file's size. Threads: any. Signals: no.
 */
int cairn_stacks_open_core(const char *path, const struct cairn_stacks_opts *opts,
			   struct cairn_stacks **ret, struct cairn_err *err);

/*
 * What is missing as a whole, "core: 4096 of 8192 bytes: ...", "a page at 0x7f... is left out:
 * ..."; NULL when nothing is. Borrowed.
 */
const char *cairn_stacks_note(const struct cairn_stacks *stacks);

/*
 * cairn_stacks_again - stop the same process once more; what was borrowed from the stacks before
 * ends
 *
 * Files and tables stay open. Errors as above, -EINVAL of a core; @stacks then has no threads.
 * After -ETIMEDOUT it is only good for being closed, and its memory is not freed.
 */
int cairn_stacks_again(struct cairn_stacks *stacks, struct cairn_err *err);

/* Takes NULL. */
void cairn_stacks_close(struct cairn_stacks *stacks);

size_t cairn_stacks_n_threads(const struct cairn_stacks *stacks);
/*
 * By number: the main thread first, then by tid; of a core as they are in it, the one that crashed
 * first.
 */
const struct cairn_thread_stack *cairn_stacks_thread(const struct cairn_stacks *stacks, size_t i);

/*
 * The registers of frame number @frame; of one further out only what its callees kept is known,
 * with cairn_stacks_opts.no_registers none. Threads: any.
 */
void cairn_stacks_regs(const struct cairn_thread_stack *thread, size_t frame,
		       struct cairn_regs *ret);

/*
 * cairn_stacks_value - what a location holds in a frame, as it was at that moment
 *
 * Registers are those of the frame: of one further out only what its callees kept is known, with
 * cairn_stacks_opts.no_registers none. Of vector registers (x86-64) the lower 8 bytes are known in
 * the innermost frame, with cairn_stacks_opts.vectors; nobody keeps them for a caller. Memory is
 * what was copied of the stacks, or what the core has; never that of a process that goes on, which
 * may hold something else by now.
 *
 * @frame  its number
 * @sites  of the frame's binary: @loc is its cairn_sites_at() for the frame, and a caller in the
 *         same binary is asked for what it passed
 * @ret    @n bytes, those of the value's type; all of them are set when it is available
 * Returns CAIRN_AVAILABLE, or why there is no value: loc->why, CAIRN_UNAVAIL_NOT_KEPT,
 * CAIRN_UNAVAIL_VECTOR_REGISTER, CAIRN_UNAVAIL_NOT_COPIED, CAIRN_UNAVAIL_NOT_LIVE of a place
 * outside of the frame, CAIRN_UNAVAIL_UNSUPPORTED.
 * Cost: as many steps as the location has, and cairn_sites_call_value() where it asks for that.
 * Threads: as @sites. Signals: no.
 */
enum cairn_unavailable cairn_stacks_value(const struct cairn_stacks *stacks,
					  const struct cairn_thread_stack *thread, size_t frame,
					  struct cairn_sites *sites,
					  const struct cairn_location *loc, void *ret, size_t n);

/* What it cost the process. */
struct cairn_stacks_moment {
	uint64_t stopped_ns;  /* from the first thread's stop to the last one's going on */
	/* there was a moment at which all of them stood still, and all was read then */
	bool is_consistent;
	size_t copied_bytes;  /* of their stacks */
};
void cairn_stacks_moment(const struct cairn_stacks *stacks, struct cairn_stacks_moment *ret);

/*
 * "no unwind row at 0x1234 in /usr/lib/..."; static words for each end, without address and file.
 */
const char *cairn_walk_end_text(enum cairn_walk_end end);

CAIRN_END_DECLS
#endif
