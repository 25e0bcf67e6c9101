/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwinding: from a frame to its caller
 *
 * An unwind table (cairn/shared/unwind.h) has for each address of a file the rules for the caller's
 * registers. It is made from .eh_frame and .debug_frame, without symbols or debug information. One
 * step:
 *
 *	const struct cairn_unwind_rule *rule = cairn_unwind_find(table, at);
 *	if (cairn_unwind_step(rule, machine, read, ctx, &regs) == CAIRN_STEP_OK)
 *		... regs is the caller's frame
 *
 * Whole stacks of processes and core files are in cairn/stack.h.
 */
#ifndef CAIRN_UNWIND_H
#define CAIRN_UNWIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/shared/unwind.h>
#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

/* ---- tables ---- */

struct cairn_unwind;

/*
 * cairn_unwind_make - the unwind table of a binary
 *
 * @bin      borrowed for the call
 * @threads  0: one per processor; the bytes are the same for any number
 * @ret      cairn_unwind_close()
 * Rows that the instructions of x86-64 disprove are left out. A file that has no code, as debug
 * files, has its rows as they are written.
 * Returns 0, also when the binary has no call frame information: then nothing is described.
 * Negative:
 *   -EBADMSG  the entries of a section lead out of it (err: section, offset)
 *   -ERANGE   more than 2^32 rows or words of rules
 *   -ENOMEM
 * Cost: one run of each FDE's program, about a microsecond each. Threads: any.
 */
int cairn_unwind_make(const struct cairn_binary *bin, unsigned int threads,
		      struct cairn_unwind **ret, struct cairn_err *err);

/*
 * cairn_unwind_open_mem - a table that was made before
 *
 * @bytes  aligned to 8, must outlive the result; every number in it is checked now
 * @name   for errors
 * Returns 0; -EBADMSG (err: the record that is wrong); -EOPNOTSUPP of another version or
 * architecture; -ENOMEM.
 */
int cairn_unwind_open_mem(const void *bytes, size_t size, const char *name,
			  struct cairn_unwind **ret, struct cairn_err *err);

/* Takes NULL. */
void cairn_unwind_close(struct cairn_unwind *table);

/* The bytes of a table, borrowed: cairn/shared/unwind.h. */
const void *cairn_unwind_bytes(const struct cairn_unwind *table, size_t *ret_size);

/*
 * cairn_unwind_find - the rule for one address; never NULL: CAIRN_UNWIND_UNDESCRIBED if there is
 * none
 *
 * For a return address look up the byte before it, unless the frame inside of it was a signal
 * trampoline.
 * Cost: O(log rows). Threads: any. Signals: safe.
 */
const struct cairn_unwind_rule *cairn_unwind_find(const struct cairn_unwind *table,
						  struct cairn_vaddr at);

/*
 * Row number @row, below n_rows of the header: [*@ret_lo, *@ret_hi) and its rule. The last one is
 * empty.
 */
const struct cairn_unwind_rule *cairn_unwind_row(const struct cairn_unwind *table, uint32_t row,
						 struct cairn_vaddr *ret_lo,
						 struct cairn_vaddr *ret_hi);

/* ---- a step ---- */

/* The registers of a frame. */
struct cairn_regs {
	struct cairn_addr pc;
	/*
	 * By DWARF number: x86-64 0 to 15, the stack pointer is 7; AArch64 x0 to x30, the stack
	 * pointer is 31.
	 */
	uint64_t r[32];
	/* Bit n: r[n] has the frame's value. Callees did not keep the others. */
	uint32_t known;
};

/* Reads @n bytes of the target's memory; false when they are not there. */
typedef bool (*cairn_read_memory)(void *ctx, struct cairn_addr at, void *ret, size_t n);

enum cairn_step {
	CAIRN_STEP_OK,
	CAIRN_STEP_OUTERMOST,   /* the frame has no caller, by its rule */
	CAIRN_STEP_UNDESCRIBED, /* the rule is none */
	CAIRN_STEP_UNREADABLE,  /* the stack is not at the rule's address */
	CAIRN_STEP_LOST,        /* the rule starts from a register whose value is not known here */
	CAIRN_STEP_STUCK,       /* the caller's frame would not be further up the stack */
};

/*
 * cairn_unwind_step - from the registers of a frame to those of its caller
 *
 * @rule     for regs->pc
 * @machine  EM_X86_64, EM_AARCH64
 * @read     memory of the target; @ctx is handed to it
 * @regs     changed only when the result is CAIRN_STEP_OK
 * Threads: any. Signals: safe when @read is. No allocation.
 */
enum cairn_step cairn_unwind_step(const struct cairn_unwind_rule *rule, uint16_t machine,
				  cairn_read_memory read, void *ctx, struct cairn_regs *regs);

/*
 * Whether call frame information is true: held against the instructions, frame pointers and SFrame.
 */

enum cairn_unwind_doubt {
	/* the instructions before it leave the CFA at another distance than the row says */
	CAIRN_UNWIND_DOUBT_INSN,
	/*
	 * a register that the row leaves as the caller had it is overwritten, and not restored at a
	 * return
	 */
	CAIRN_UNWIND_DOUBT_KEPT,
	CAIRN_UNWIND_DOUBT_SFRAME, /* SFrame has another CFA, frame pointer or return address */
};

/* One disagreement. Its consequences are not reported. */
struct cairn_unwind_disagreement {
	enum cairn_unwind_doubt kind;
	/* KEPT: the return, or the jump out of the function; reported once for each register */
	struct cairn_vaddr at;
	struct cairn_vaddr function; /* where its FDE begins */
	/* INSN: the instruction before it. KEPT: the one that overwrites */
	struct cairn_vaddr from;
	/* INSN: the CFA is counted from this register, by DWARF number. KEPT: the register */
	unsigned int reg;
	/* INSN: bytes from there to the CFA, by the row and by the instructions */
	int64_t row, found;
};

struct cairn_unwind_checked {
	uint64_t text_bytes; /* of code that rows describe */
	/* bytes of these whose instructions were reached and whose row could be compared */
	uint64_t followed_bytes;
	uint64_t fp_bytes;     /* where a walk by frame pointers finds the same caller */
	uint64_t sframe_bytes; /* that SFrame describes, too; 0 without a section .sframe */
	uint64_t n_fdes;
	/*
	 * where following ended: an indirect jump, a stack pointer from somewhere, a call that does
	 * not return
	 */
	uint64_t n_ends;
	uint64_t n_disagreements;
};

/*
 * cairn_unwind_check - check unwind rows against the instructions
 *
 * If the first row of an FDE has the CFA at rsp + 8, the instructions are followed from there along
 * all direct jumps.
 *
 * @bin   x86-64
 * @tell  called for each disagreement, by FDE; a result other than 0 ends the check
 * Returns 0, the result of @tell, or -EOPNOTSUPP for another architecture, -ENOMEM, and as
 * cairn_unwind_make(); for a damaged section .sframe as cairn_sframe_open().
 * Cost: a decode per instruction. Threads: any.
 */
int cairn_unwind_check(const struct cairn_binary *bin,
		       int (*tell)(void *ctx, const struct cairn_unwind_disagreement *found),
		       void *ctx, struct cairn_unwind_checked *ret, struct cairn_err *err);

CAIRN_END_DECLS
#endif
