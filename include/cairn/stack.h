/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a process or of a core file
 *
 * All threads are stopped, their registers and the used part of their stacks are copied, and they
 * continue. The copies are walked afterwards, by the unwind tables of the mapped files. No frame
 * pointers are needed. JIT code is unwound by the rows its owner registered (cairn/code.h).
 * Unregistered code is unwound by the frame pointer, and such frames are marked as assumed. A stack
 * with an assumed frame is not certain to be complete: it ends with CAIRN_WALK_ASSUMED.
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
 * The result has no names for functions of files: a frame has its file and the address in it, which
 * cairn/sidecar.h and cairn/binary.h resolve. It has the names of functions made at run time, since
 * they are valid only at that moment.
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
	CAIRN_WALK_OUTERMOST,   /* complete: the last frame has no caller */
	CAIRN_WALK_UNDESCRIBED, /* no unwind row describes the last frame's address */
	/* its address is in no file: code made at run time without a description, or no code */
	CAIRN_WALK_NO_FILE,
	CAIRN_WALK_UNREADABLE, /* the stack is not where it should be */
	CAIRN_WALK_LOST,       /* a register that is needed was not saved */
	CAIRN_WALK_LOOP,       /* the stack leads back to itself */
	CAIRN_WALK_LIMIT,      /* more frames than the limit */
	CAIRN_WALK_GONE,       /* the thread ended before it could be stopped */
	/*
	 * the return address does not follow a call: the stack was overwritten. cairn/backtrace.h
	 */
	CAIRN_WALK_NO_CALL,
	CAIRN_WALK_NO_ROOM,     /* too little stack is left to go on. cairn/backtrace.h */
	CAIRN_WALK_NOT_STOPPED, /* the thread waits in the kernel and cannot be interrupted */
	/*
	 * complete by assumption: the last frame has no caller, and one of the frames before it is
	 * assumed
	 */
	CAIRN_WALK_ASSUMED,
	/* Only stacks at events (cairn/trace.h) have these: */
	CAIRN_WALK_NO_MAPPING, /* no mapping is known at its address */
	CAIRN_WALK_NOT_READY,  /* the file's unwind table was not made yet, or its code changed */
	CAIRN_WALK_READS,      /* more memory was to be read than a hit may */
	CAIRN_WALK_NOT_TAKEN,  /* there was no room for it */
};

struct cairn_stack_frame {
	/*
	 * the instruction that was about to run, or the one after a call. Registers:
	 * cairn_stacks_regs(). At an event 0 if it is not known where the process had the file;
	 * without a path 0 is the address itself
	 */
	struct cairn_addr pc;
	/*
	 * The frame's position in its code: pc, or the byte before it if pc is a return address.
	 * Names and lines are those of this address.
	 */
	struct cairn_addr at;
	bool is_exact; /* pc is an instruction that was about to run; else the one after a call */
	/* the frame is a signal trampoline: the frame outside of it was interrupted */
	bool is_signal;
	/*
	 * The frame is assumed, in one of two cases. The frame inside of it is at an address
	 * without code, as after a call through a bad pointer, and the top of the stack holds a
	 * return address. Or the code there has no description, and the frame pointer, as that code
	 * has it, leads to a return address.
	 */
	bool is_assumed;
	bool has_off;
	enum cairn_code_unwind unwind; /* the means by which it is left */
	const char *assumed;           /* the assumption, in static words; NULL: none NULL */
	struct cairn_vaddr vaddr;      /* @at as an address in the binary */
	/* NULL if there is no file, or it cannot be read. Borrowed */
	const struct cairn_binary *bin;
	/* the file's sidecar, when find_sidecar found one. Borrowed */
	const struct cairn_sidecar *sidecar;
	/*
	 * as the process has it mapped, "[vdso]"; NULL if there is no file. NULL when no file is
	 * there. Borrowed
	 */
	const char *path;
	/*
	 * The description of the code, if there is no file or its rows do not cover it. All of
	 * these are borrowed.
	 */
	const struct cairn_code_range *code; /* NULL: no description */
	size_t n_functions;                  /* innermost first; 0: no name is known */
	const struct cairn_frame *functions;
	enum cairn_code_source named_by; /* the source of the names; valid with n_functions */
	uint64_t off; /* of @at from the beginning of the outermost function; valid with has_off */
	const char
		*unnamed; /* why there is no name, unless the file has none; static words or NULL */
};

struct cairn_thread_stack {
	int tid;
	char comm[16]; /* "" if it is not known: a core has only that of the main thread */
	size_t n_frames;
	/* innermost first; a frame that occurs in several stacks is shared by them */
	const struct cairn_stack_frame *const *frames;
	enum cairn_walk_end end;
	const char *why;     /* the end in words, with address and file */
	uint64_t stopped_ns; /* how long the thread did not run; 0 for a core */
	/*
	 * For a core: the signal that the thread got, 0 for none, and the address that it is about.
	 */
	int signal;
	bool has_fault;
	struct cairn_addr fault;
};

struct cairn_stacks_opts {
	size_t size; /* sizeof(struct cairn_stacks_opts); a longer, unknown tail must be zero */
	size_t max_frames;    /* per thread; 0: 1024 */
	unsigned int threads; /* for making unwind tables; 0: one per processor */
	/* For a core file; they have to last until cairn_stacks_close(). */
	const char *sysroot;           /* a prefix to the paths of mapped files; NULL: none */
	const char *const *debug_dirs; /* as in struct cairn_binary_opts */
	size_t n_debug_dirs;
	/*
	 * Finds the sidecar of a file that a frame is in; its unwind table is then used. NULL:
	 * there are no sidecars, and tables are built. Called once for each file. *@ret is NULL at
	 * the call, stays NULL if there is none, and is closed with the stacks. -ENOMEM ends the
	 * call; any other error means that there is none.
	 */
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	/*
	 * for a process, read vector registers, too: one more system call for each thread. A core's
	 * vector registers are always available
	 */
	bool vectors;
	/*
	 * do not keep the registers of frames, which takes time: cairn_stacks_regs() then has only
	 * the pc
	 */
	bool no_registers;
	/*
	 * For a core file: the path of the program, if the core does not record it; not used if the
	 * core contradicts it. NULL
	 */
	const char *program;
};

struct cairn_stacks;

/*
 * cairn_stacks_open_pid - the stacks of all threads of a running process
 *
 * @opts  may be NULL
 * @ret   cairn_stacks_close()
 * Returns 0, or negative:
 *   -ESRCH       no such process
 *   -EPERM       the caller may not trace it (err: what would allow it)
 *   -EBUSY       another tracer has it (err: which)
 *   -EOPNOTSUPP  a 32-bit process
 *   -EINVAL      @opts has something set that this version does not know
 *   -ETIMEDOUT   the process handles its own page faults (userfaultfd) and did not answer (err:
 *                address). A few such pages are skipped first; cairn_stacks_note() lists them
 *   -ENOMEM, and the errors of ptrace(2)
 * The kernel restarts a system call that a thread waits in, as after SIGSTOP and SIGCONT. The few
 * calls that signal(7) lists there (epoll_wait, semop, sigtimedwait, ...) return EINTR, which
 * programs have to expect anyway. A thread that waits in the kernel uninterruptibly is left out
 * (CAIRN_WALK_NOT_STOPPED). It continues with the others.
 * Cost: each thread is stopped for tens of microseconds; the walk happens while it runs again.
 * Threads: the call starts and ends a tracer thread, which has helpers; one call per process at a
 * time. No other code of the caller's process may wait for arbitrary children meanwhile
 * (waitpid(-1) without __WNOTHREAD takes our stops). Signals: no.
 */
int cairn_stacks_open_pid(int pid, const struct cairn_stacks_opts *opts, struct cairn_stacks **ret,
			  struct cairn_err *err);

/*
 * cairn_stacks_open_core - the stacks of all threads of a core file, from the kernel, gcore or
 * QEMU's user emulation
 *
 * The thread that crashed is the first. A mapped file is used only if its build-id is the one in
 * the core's memory. QEMU's cores name no files: the files of the dynamic loader's list are used,
 * if their dynamic section is the one in memory. A truncated file is used as far as it goes.
 *
 * @path  a core file
 * @opts  may be NULL
 * @ret   cairn_stacks_close()
 * Returns 0, also without any thread.
 * Negative:
 *   -EBADMSG     no core file
 *   -EOPNOTSUPP  of a 32-bit process, or of an architecture other than x86-64 and AArch64
 *   -EINVAL      @opts has something set that this version does not know
 *   -ENOMEM, and the errors of open(2), fstat(2) and mmap(2)
 * Cost: only the memory of stacks is read, whatever the file's size. Threads: any. Signals: no.
 */
int cairn_stacks_open_core(const char *path, const struct cairn_stacks_opts *opts,
			   struct cairn_stacks **ret, struct cairn_err *err);

/*
 * A part that is missing as a whole, "core: 4096 of 8192 bytes: ...", "a page at 0x7f... is left
 * out: ..."; NULL if nothing is missing. Borrowed.
 */
const char *cairn_stacks_note(const struct cairn_stacks *stacks);

/*
 * cairn_stacks_again - stop the same process once more; data borrowed from the stacks before
 * becomes invalid
 *
 * Files and tables stay open. Errors as above, and -EINVAL for a core; @stacks then has no threads.
 * After -ETIMEDOUT it can only be closed, and its memory is not freed.
 */
int cairn_stacks_again(struct cairn_stacks *stacks, struct cairn_err *err);

/* Takes NULL. */
void cairn_stacks_close(struct cairn_stacks *stacks);

size_t cairn_stacks_n_threads(const struct cairn_stacks *stacks);
/*
 * By number: the main thread first, then by tid. For a core in its order, the thread that crashed
 * first.
 */
const struct cairn_thread_stack *cairn_stacks_thread(const struct cairn_stacks *stacks, size_t i);

/*
 * The registers of frame number @frame. Outer frames know only callee-saved registers; none with
 * opts.no_registers. Threads: any.
 */
void cairn_stacks_regs(const struct cairn_thread_stack *thread, size_t frame,
		       struct cairn_regs *ret);

/*
 * cairn_stacks_value - the value of a location in a frame, at the moment of the stop
 *
 * The registers are those of the frame. Outer frames know only callee-saved registers; none with
 * opts.no_registers. For vector registers (x86-64) the lower 8 bytes are known in the innermost
 * frame, with cairn_stacks_opts.vectors. Callees save none of them. Memory is the copied part of
 * the stacks, or the core's; never that of the running process, which may have changed since.
 *
 * @frame  its number
 * @sites  of the frame's binary: @loc is its cairn_sites_at() for the frame, and a caller in the
 *         same binary is queried for the value that it passed
 * @ret    @n bytes, those of the value's type; all of them are set if the value is available
 * Returns CAIRN_AVAILABLE, or why there is no value: loc->why, CAIRN_UNAVAIL_NOT_KEPT,
 * CAIRN_UNAVAIL_VECTOR_REGISTER, CAIRN_UNAVAIL_NOT_COPIED, CAIRN_UNAVAIL_NOT_LIVE for an address
 * outside of the frame, CAIRN_UNAVAIL_UNSUPPORTED.
 * Cost: the steps of the location, and cairn_sites_call_value() if it needs that.
 * Threads: as @sites. Signals: no.
 */
enum cairn_unavailable cairn_stacks_value(const struct cairn_stacks *stacks,
					  const struct cairn_thread_stack *thread, size_t frame,
					  struct cairn_sites *sites,
					  const struct cairn_location *loc, void *ret, size_t n);

/* The cost for the process. */
struct cairn_stacks_moment {
	uint64_t stopped_ns; /* from the first thread's stop until the last one continues */
	/* there was a moment at which all threads were stopped, and all data was read then */
	bool is_consistent;
	size_t copied_bytes; /* of their stacks */
};
void cairn_stacks_moment(const struct cairn_stacks *stacks, struct cairn_stacks_moment *ret);

/*
 * "no unwind row at 0x1234 in /usr/lib/..."; static words for each end, without address and file.
 */
const char *cairn_walk_end_text(enum cairn_walk_end end);

CAIRN_END_DECLS
#endif
