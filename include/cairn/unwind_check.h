/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether call frame information is true: held against the instructions, frame pointers and SFrame.
 */
#ifndef CAIRN_UNWIND_CHECK_H
#define CAIRN_UNWIND_CHECK_H

#include <cairn/unwind.h>

CAIRN_BEGIN_DECLS

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
