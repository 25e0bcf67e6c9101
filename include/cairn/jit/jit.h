/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Publishes how to unwind code that is made at run time, and its names
 *
 * A JIT opens its region once. While it writes a function, it records where the canonical frame
 * address (CFA) moves, which is the stack pointer before the call. It does so after each push, each
 * pop, and each adjustment of the stack pointer. Then it publishes the function, before any code
 * calls it, and withdraws it when the code is gone:
 *
 *	struct cairn_jit *jit;
 *	rc = cairn_jit_open(area, area_bytes, NULL, &jit);
 *
 *	struct cairn_jit_frame frame;				//	start:	CFA = rsp + 8
 *	cairn_jit_begin(&frame, start);
 *	... write "push %rbx"
 *	cairn_jit_cfa(&frame, here, CAIRN_JIT_SP, 16);		//	after the push
 *	... write the body
 *	... write "pop %rbx"
 *	cairn_jit_cfa(&frame, here, CAIRN_JIT_SP, 8);		//	after the pop
 *	... write "ret"
 *	struct cairn_jit_info info = {sizeof(info), "fib", NULL, 0, NULL, 0};
 *	rc = cairn_jit_publish(jit, &frame, end, &info);
 *	...
 *	cairn_jit_withdraw(jit, start, end);
 *
 * Publishing stores rows of 24 bytes and makes them visible with one store. It makes no system call
 * unless a table is full or addresses are used again. Profilers and tracers read them from outside
 * at any moment, and the program does not wait for them. docs/formats/codectl.md describes their
 * view.
 *
 * One thread at a time per region; regions are independent. Not for signal handlers. Link with
 * -lcairn-codectl.
 */
#ifndef CAIRN_JIT_JIT_H
#define CAIRN_JIT_JIT_H

#include <cairn/shared/codectl.h>
#include <cairn/api.h>

CAIRN_BEGIN_DECLS

struct cairn_jit;

enum cairn_jit_flags {
	/*
	 * Names that are passed may change after cairn_jit_publish(); without it they stay until
	 * cairn_jit_close().
	 */
	CAIRN_JIT_COPY_NAMES = 1,
	/* Code that nothing is published for keeps a frame pointer. */
	CAIRN_JIT_FRAME_POINTERS = 2,
};

struct cairn_jit_opts {
	size_t size;      /* of this struct */
	const char *name; /* of the region, "traces"; copied; NULL: none */
	uint32_t flags;   /* enum cairn_jit_flags */
};

/*
 * cairn_jit_open - register a region
 *
 * @text     its first byte; need not be mapped yet
 * @n_bytes  at most 4 GiB
 * @opts     NULL: no name, no flags
 * @ret      to be closed with cairn_jit_close()
 * Returns 0; -EINVAL (@opts: unknown members or flags), -ENOMEM, and what codectl() returns:
 * -EEXIST when something is registered there.
 * Cost: a few microseconds, system calls. Threads: any.
 */
int cairn_jit_open(const void *text, size_t n_bytes, const struct cairn_jit_opts *opts,
		   struct cairn_jit **ret);

/*
 * The region is not registered any more, and its tables are freed. Takes NULL. Not while another
 * thread is in it.
 */
void cairn_jit_close(struct cairn_jit *jit);

/* ---- a function's frame, described while it is written ---- */

/* rsp and rbp on x86-64, sp and x29 on AArch64 */
enum cairn_jit_base { CAIRN_JIT_SP, CAIRN_JIT_FP };

enum {
	CAIRN_JIT_ROWS_MAX = 64,
#ifdef __aarch64__
	CAIRN_JIT_ENTRY_CFA = 0, /* the return address is in x30 */
#else
	CAIRN_JIT_ENTRY_CFA = 8, /* just above the return address */
#endif
};

/*
 * The words of a struct code_jit_unwind_fre: size and ip_off, cfa_off and ra_off, fp_off and info,
 * the first of each in the lower half. They are read and written whole: a processor that loads data
 * which it has just stored in parts waits for its caches.
 */
struct cairn_jit_rule {
	uint64_t word[3];
};

/* The caller's, of any storage; its members are private. */
struct cairn_jit_frame {
	const char *start;
	uint32_t n_rows;
	int32_t error; /* of the first call that made no sense; cairn_jit_publish() returns it */
	struct cairn_jit_rule now, kept; /* now: the rule from ip_off on; its size is 0 */
	struct cairn_jit_rule rows[CAIRN_JIT_ROWS_MAX];
};

static inline void cairn_jit_set_low(uint64_t *word, int32_t value)
{
	*word = (*word & ~(uint64_t)UINT32_MAX) | (uint32_t)value;
}

static inline void cairn_jit_set_high(uint64_t *word, int32_t value)
{
	*word = (*word & UINT32_MAX) | (uint64_t)(uint32_t)value << 32;
}

/* Bits of enum code_jit_row_info. */
static inline void cairn_jit_set_info(struct cairn_jit_frame *frame, uint8_t clear, uint8_t set)
{
	frame->now.word[2] = (frame->now.word[2] & ~((uint64_t)clear << 32)) | (uint64_t)set << 32;
}

/*
 * cairn_jit_begin - the state at the entry, before any push: CFA = SP + CAIRN_JIT_ENTRY_CFA, the
 * caller's frame pointer is in its register
 *
 * This and the following calls are a few stores into @frame. cairn_jit_publish() reports calls that
 * make no sense.
 */
static inline void cairn_jit_begin(struct cairn_jit_frame *frame, const void *start)
{
	frame->start = (const char *)start;
	frame->n_rows = 0;
	frame->error = 0;
	frame->now.word[0] = 0;
	frame->now.word[1] = CAIRN_JIT_ENTRY_CFA;
	frame->now.word[2] = 0;
	frame->kept = frame->now;
}

/* The rule up to @pc is complete; for the functions below. */
static inline void cairn_jit_advance(struct cairn_jit_frame *frame, const void *pc)
{
	uint64_t at = (uint64_t)((const char *)pc - frame->start), from = frame->now.word[0] >> 32;
	if (at == from)
		return;
	if (at < from || at > UINT32_MAX || frame->n_rows == CAIRN_JIT_ROWS_MAX) {
		/* -ERANGE, -EINVAL */
		frame->error = frame->n_rows == CAIRN_JIT_ROWS_MAX ? -34 : -22;
		return;
	}
	uint64_t *row = frame->rows[frame->n_rows++].word;
	row[0] = frame->now.word[0] | (at - from);
	/* Two loads, which a compiler would make one of. */
	row[1] = __atomic_load_n(&frame->now.word[1], __ATOMIC_RELAXED);
	row[2] = __atomic_load_n(&frame->now.word[2], __ATOMIC_RELAXED);
	frame->now.word[0] = at << 32;
}

/*
 * From @pc on, CFA = @base + @off. @pc is where the next instruction begins, at or after that of
 * the previous call.
 */
static inline void cairn_jit_cfa(struct cairn_jit_frame *frame, const void *pc,
				 enum cairn_jit_base base, int32_t off)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_low(&frame->now.word[1], off);
	cairn_jit_set_info(frame, CODE_ROW_CFA_FP, base == CAIRN_JIT_FP ? CODE_ROW_CFA_FP : 0);
}

/* From @pc on, the caller's frame pointer is in memory at CFA + @off. */
static inline void cairn_jit_fp_saved(struct cairn_jit_frame *frame, const void *pc, int32_t off)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_low(&frame->now.word[2], off);
	cairn_jit_set_info(frame, 0, CODE_ROW_FP);
}

/* From @pc on, it is in its register again. */
static inline void cairn_jit_fp_restored(struct cairn_jit_frame *frame, const void *pc)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_low(&frame->now.word[2], 0);
	cairn_jit_set_info(frame, CODE_ROW_FP, 0);
}

/*
 * From @pc on, the return address is in memory at CFA + @off. On x86-64 it always is at CFA - 8,
 * without saying so.
 */
static inline void cairn_jit_ra_saved(struct cairn_jit_frame *frame, const void *pc, int32_t off)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_high(&frame->now.word[1], off);
	cairn_jit_set_info(frame, 0, CODE_ROW_RA);
}

/* From @pc on, it is in its register again: x30. */
static inline void cairn_jit_ra_restored(struct cairn_jit_frame *frame, const void *pc)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_high(&frame->now.word[1], 0);
	cairn_jit_set_info(frame, CODE_ROW_RA, 0);
}

/* From @pc on, there is no caller: code that the JIT starts a stack with. */
static inline void cairn_jit_outermost(struct cairn_jit_frame *frame, const void *pc)
{
	cairn_jit_advance(frame, pc);
	cairn_jit_set_info(frame, 0, CODE_ROW_OUTERMOST);
}

/*
 * An epilogue in the middle: save the rule before it, and restore it for the code after its return.
 */
static inline void cairn_jit_remember(struct cairn_jit_frame *frame)
{
	frame->kept = frame->now;
}

static inline void cairn_jit_recall(struct cairn_jit_frame *frame, const void *pc)
{
	cairn_jit_advance(frame, pc);
	uint64_t at = frame->now.word[0];
	frame->now = frame->kept;
	frame->now.word[0] = at;
}

/* ---- functions ---- */

/* A copy of a function that was inlined; those of one function by address, outer before inner. */
struct cairn_jit_inline {
	uint32_t start, end; /* bytes from the function's start, [start, end) */
	uint32_t depth;      /* 1: inlined into the function itself */
	uint32_t call_line;  /* of the call in the function that it is inlined into; 0: not known */
	const char *name;
	const char *call_file; /* NULL: not known */
};

struct cairn_jit_line {
	uint32_t start; /* bytes from the function's start; rising */
	uint32_t line;  /* 0: no line */
	const char *file;
};

struct cairn_jit_info {
	size_t size;      /* of this struct */
	const char *name; /* NULL: none, and then no inlines */
	const struct cairn_jit_inline *inlines;
	size_t n_inlines;
	const struct cairn_jit_line *lines;
	size_t n_lines;
};

/*
 * cairn_jit_publish - make it possible to unwind and name a function; call it before the function
 * runs
 *
 * @frame  from cairn_jit_begin() on; not changed
 * @end    the address after its last byte
 * @info   NULL: no name. Names are copied or stay, as the region's flags say; names of files stay
 *         in any case
 * Returns 0, or negative, with nothing published:
 *   -EINVAL   addresses that go back, are not in the region, or are empty; inlines or lines outside
 *             of the function
 *   -ERANGE   more than CAIRN_JIT_ROWS_MAX changes
 *   -EEXIST   a part of it is described already
 *   -ENOMEM; -ENOSPC and -EBUSY from codectl(), when addresses are used again
 * Cost: some nanoseconds per row, symbol and line. If addresses are used again, or lie below
 * others, a table is copied and the region's registration renewed: some microseconds, no system
 * call.
 */
int cairn_jit_publish(struct cairn_jit *jit, const struct cairn_jit_frame *frame, const void *end,
		      const struct cairn_jit_info *info);

/*
 * cairn_jit_withdraw - code in [@start, @end) is gone, whole functions
 *
 * To be called when nothing runs it any more and before it is overwritten. Cost: O(log functions)
 * and a store for each row, symbol and line.
 */
void cairn_jit_withdraw(struct cairn_jit *jit, const void *start, const void *end);

CAIRN_END_DECLS
#endif
