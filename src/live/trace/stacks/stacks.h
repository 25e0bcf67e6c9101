/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks of hits
 *
 * The kernel's program walks a hit's stack and sends it once, with two hashes; events and keys have
 * the hashes. Here stacks are kept by them. A frame is a number (walk/abi.h); it becomes a frame of
 * cairn/stack.h when it is shown, and has no names but those of code made at run time, which are
 * looked for while it is there.
 *
 * Rows of a JIT that it describes to GDB or in a jitdump are read now and then. A hit that went
 * through such code after the last look waits for the next one, and the hits after it wait, too.
 */
#ifndef TRACE_STACKS_H
#define TRACE_STACKS_H

#include <cairn/stack.h>

#include "kernel/symbols.h"
#include "trace/trace.h"
#include "walk/walker.h"

/* A stack as it was sent, with its frames as they were known then. */
struct stack_kept {
	uint64_t id[2];
	uint64_t time_ns;
	int pid;
	uint32_t generation;
	struct stack_generation *in;
	size_t first, n;  /* in its frames */
	uint8_t n_kernel; /* of them, the first ones */
	uint8_t end;      /* enum walk_end */
	uint8_t n_exact;
	uint16_t exact[WALK_EXACT_MAX];
	bool is_checked; /* its frames of the kernel are all of them, or it ends there */
	bool is_settled; /* its frames are as they were known when it came; it is of a key */
};

/* Stacks that are forgotten together (kept.c). */
struct stack_generation {
	VEC(struct stack_kept) list;
	VEC(uint64_t) frames;
	VEC(uint64_t) addresses; /* of stacks that are settled, parallel to frames */
	struct map ids;          /* of the first hash: the newest index + 1 */
};

/* Code made at run time at one address: what it was called. */
struct stack_made {
	int pid;
	uint64_t at; /* walk_unfiled() */
	uint64_t looked_ns, wait_ns;
	struct cairn_code_range range;
	bool has_range, has_off;
	uint64_t off;
	size_t n_functions;
	const struct cairn_frame *functions;
	enum cairn_code_source named_by;
};

/* Asked of a file once in a while. */
struct stack_file_state {
	uint64_t asked_ns;
	bool is_asked, is_as_it_ran, is_searched;
};

struct stack_waiting {
	void *record;
	size_t size;
};

struct trace_stacks {
	enum trace_stacks_of {
		STACKS_WHOLE = TRACE_STACKS_WHOLE,
		STACKS_CALLER = TRACE_STACKS_CALLER,
	} of;
	uint32_t max_frames;
	bool is_open;
	struct walker walker;
	struct arena arena;
	struct stack_generation generations[2], *now, *past;
	void *seen;       /* what the kernel's program remembers to have sent */
	size_t max_kept;  /* in a generation */
	bool keeps_first; /* and no more than those */
	uint64_t n_different, n_turns;
	uint64_t n_forgotten; /* events that waited longer than their stack was kept */
	VEC(struct stack_made *) made;
	struct map made_ids;
	struct cairn_code *code; /* of the process @code_pid; NULL */
	int code_pid;
	uint64_t code_ns; /* when it was read */
	VEC(struct stack_file_state) files;
	VEC(struct stack_waiting) waiting;
	size_t next_waiting, waiting_bytes;
	/* The stack that is shown. */
	struct cairn_thread_stack shown;
	VEC(struct cairn_stack_frame) shown_frames;
	VEC(const struct cairn_stack_frame *) shown_list;
	bool shown_is_cut; /* by a limit of the kernel's own */
	char why[120];
	/*
	 * For frames in the kernel: its list of symbols, and the names of the stack that is shown.
	 */
	struct kernel_names kernel_names;
	uint64_t names_read_ns;
	bool misses_names;
	struct cairn_frame kernel_functions[WALK_MAX_KERNEL];
	uint64_t n_broken; /* records that cannot be ours */
	uint64_t n_cut;    /* events whose stack is not complete */
};

/* Wanted from now on; before probes are added. 0 or -ENOMEM. */
int stacks_want(struct cairn_trace *t, enum trace_stacks_of of, uint32_t max_frames,
		struct cairn_err *err);
void stacks_free(struct trace_stacks *s); /* takes NULL */

/* Before a command is forked: its files. Returns 0; -ENOMEM, the errors of files_init(). */
int stacks_prepare(struct cairn_trace *t, struct cairn_err *err);
/*
 * The program is loaded, and the command is forked: maps are kept up to date from now on. Waits a
 * moment for unwind tables. @seen_fd: the map of the stacks that were sent. Returns 0; -ENOMEM,
 * -ESRCH, -EACCES, the errors of perf_event_open(2).
 */
int stacks_open(struct cairn_trace *t, const struct walker_maps *maps, int seen_fd,
		struct cairn_err *err);

/* To be called ten times a second at least, before records are read and after. 0 or -ENOMEM. */
int stacks_update(struct cairn_trace *t, struct cairn_err *err);
int stacks_look(struct cairn_trace *t, struct cairn_err *err);

/* Whether a record of the ring is a stack. */
bool stacks_is_stack(const void *record, size_t size);
/* Before rows of an interval are read: stacks of the one before the last may be forgotten. */
void stacks_begin_interval(struct trace_stacks *s);
/*
 * Takes it over; @settles: it is of a key, and its frames are those that are known now. 0 or
 * -ENOMEM.
 */
int stacks_take(struct cairn_trace *t, const void *record, size_t size, bool settles);

/* A record that waits, as a copy; NULL: none has waited long enough. @all: each. free() it. */
void *stacks_next_waiting(struct trace_stacks *s, bool all, size_t *ret_size);
/* Whether the record of an event has to wait; then it is kept. Negative: -ENOMEM. */
int stacks_make_wait(struct trace_stacks *s, const void *record, size_t size, int pid,
		     uint64_t time_ns);

/*
 * stacks_show - the stack of a hit
 *
 * @ref   of the hit
 * @site  where it was; NULL: a key, whose stack may not begin at the hit
 * Returns it, until the next call. Without frames: they are not known. NULL: no memory.
 */
struct stack_hit {
	struct trace_stack_ref ref;
	int pid, tid; /* pid 0: that with which the stack was sent */
	const char *comm;
	uint64_t time_ns;
	const struct cairn_trace_site *site;
	const struct trace_probe
		*probe; /* of a key: its site is searched among the probe's; NULL */
};
/* The site of a probe where a stack begins; NULL: it is not known. */
const struct trace_site *stacks_site(const struct cairn_trace *t, uint64_t id, uint64_t other,
				     const struct trace_probe *probe);

/* Whether it is not complete, but for the number of frames that is wanted. */
bool stacks_is_cut(const struct trace_stacks *s, const struct cairn_thread_stack *stack);
/* The same of the stack of a key, once what is known of it is settled. */
bool stacks_key_is_cut(const struct trace_stacks *s, const uint64_t id[2]);
const struct cairn_thread_stack *stacks_show(struct cairn_trace *t, const struct stack_hit *hit);

#endif
