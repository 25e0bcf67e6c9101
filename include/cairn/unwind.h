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
 * Rows are also checked against the instructions here, and written and read as SFrame. Whole stacks
 * of processes and core files are in cairn/stack.h.
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

/* ---- SFrame ---- */

/*
 * Reads and writes SFrame stack trace information, versions 1 to 3
 *
 * A table of functions and of rows in each, as assemblers write it into .sframe and kernels read
 * it. Rows are the rules of cairn/shared/unwind.h. SFrame has those that most code needs: the CFA
 * from the stack or frame pointer, the return address and the frame pointer in memory; version 3 a
 * few more. A function with a row that SFrame cannot express is left out as a whole, and counted:
 * no reader may take a part of a function for all of it.
 *
 *	struct cairn_sframe_row rows[] = {{0, &at_entry}, {1, &pushed}, {4, &framed}};
 *	cairn_sframe_writer_new(3, EM_X86_64, &w, &err);
 *	cairn_sframe_add(w, (struct cairn_vaddr){0x1000}, 0x40, rows, 3, &err);
 *	cairn_sframe_finish(w, (struct cairn_vaddr){0x8000}, &bytes, &size, &err);
 *
 * Format: "The SFrame Format", binutils; versions 1 (2.40), 2 (2.41 to 2.45), 3 (2.46).
 */

struct cairn_sframe_writer;

/* From @off, in bytes from the start of the function, this rule holds. */
struct cairn_sframe_row {
	uint32_t off;
	const struct cairn_unwind_rule *rule; /* its words follow it */
};

/*
 * cairn_sframe_writer_new - begin a section
 *
 * @version  2 or 3
 * @machine  EM_X86_64, EM_AARCH64
 * @ret      cairn_sframe_writer_free()
 * Returns 0; -EOPNOTSUPP for another version or architecture; -ENOMEM.
 */
int cairn_sframe_writer_new(unsigned int version, uint16_t machine,
			    struct cairn_sframe_writer **ret, struct cairn_err *err);
void cairn_sframe_writer_free(struct cairn_sframe_writer *w); /* takes NULL */

/*
 * cairn_sframe_add - one more function
 *
 * @at, @size  where its code is, in bytes; functions may come in any order and must not overlap
 * @rows       by offset; the first one's is 0. Rows that repeat the one before are dropped
 * Returns 1 if it was taken, 0 if this version cannot express one of its rows: it is left out.
 * -EINVAL: the offsets do not ascend within @size. -ENOMEM.
 */
int cairn_sframe_add(struct cairn_sframe_writer *w, struct cairn_vaddr at, uint32_t size,
		     const struct cairn_sframe_row *rows, size_t n_rows, struct cairn_err *err);

/*
 * cairn_sframe_add_blocks - one more function, which repeats the same code: a procedure linkage
 * table
 *
 * @block  bytes of each, at most 255, to which @rows belong; @at is a multiple of it
 * Otherwise as cairn_sframe_add(); 0 also means that @size or @at is no multiple.
 */
int cairn_sframe_add_blocks(struct cairn_sframe_writer *w, struct cairn_vaddr at, uint32_t size,
			    uint32_t block, const struct cairn_sframe_row *rows, size_t n_rows,
			    struct cairn_err *err);

/*
 * cairn_sframe_finish - the bytes of the section
 *
 * @section  where the section will be: functions are stored by their distance from it
 * @ret      the caller's, free()
 * Returns 0; -ERANGE if a function is further away than the version can express (2 GiB in version
 * 2), or there are more than 4 GiB of rows; -ENOMEM.
 */
int cairn_sframe_finish(struct cairn_sframe_writer *w, struct cairn_vaddr section, uint8_t **ret,
			size_t *ret_size, struct cairn_err *err);

/* The outcome of encoding a binary's call frame information. */
struct cairn_sframe_encoded {
	uint8_t *bytes; /* the caller's, free() */
	size_t size;
	/* one for each FDE, two where a linkage table's first entry is another than the rest */
	uint32_t n_functions;
	/*
	 * FDEs that are not: damaged, or with a row that the version cannot say, or a disproved one
	 */
	uint32_t n_left_out;
	/*
	 * of the first: the function's instructions disproved a row, and its valid part is written
	 */
	uint32_t n_mended;
	/* of the second: a row was disproved, and SFrame cannot express its valid part */
	uint32_t n_disproved;
	uint64_t text_bytes;     /* the code of the first */
	uint64_t left_out_bytes; /* of the second */
	uint16_t machine;        /* EM_* of the binary */
};

/*
 * cairn_sframe_encode - .eh_frame and .debug_frame of a binary as SFrame
 *
 * Rows that the instructions of x86-64 disprove are not written: readers take every row for the
 * truth. Rows of AArch64 are written as they are.
 *
 * @section  where the section will be; 0 for one that is not loaded
 * Returns 0; -ENODATA for a file with rows and without code; as cairn_sframe_writer_new(),
 * cairn_sframe_finish() and cairn_unwind_make().
 * Cost: three runs of each FDE's program. Threads: any; the call starts and ends some.
 */
int cairn_sframe_encode(const struct cairn_binary *bin, unsigned int version,
			struct cairn_vaddr section, struct cairn_sframe_encoded *ret,
			struct cairn_err *err);

struct cairn_sframe; /* an opened section; the bytes are the caller's */

struct cairn_sframe_info {
	unsigned int version;
	uint16_t machine;
	uint8_t flags; /* as in the header */
	uint32_t n_functions, n_rows;
	/* functions with a row that is none: cairn_sframe_rows() has none of theirs */
	uint32_t n_refused;
};

struct cairn_sframe_function {
	struct cairn_vaddr at;
	uint32_t size; /* bytes of code */
	uint32_t n_rows;
	/*
	 * Not 0: the code is blocks of this size, with the same rows each: a procedure linkage
	 * table.
	 */
	uint8_t block_size;
	bool is_signal, is_flexible;
	const char *refused; /* why its rows are not believed, in static words; NULL */
};

/*
 * cairn_sframe_open - check a section
 *
 * @bytes    must outlive the result
 * @section  its address; functions are relative to it
 * @name     for errors
 * Every function and row is read once. A function with an odd row is refused, and counted. Returns
 * 0; -EBADMSG (err: the record that is wrong); -EOPNOTSUPP for another version, byte order or
 * architecture (s390x is named), or a flag that the version does not have; -ENOMEM.
 */
int cairn_sframe_open(const void *bytes, size_t size, struct cairn_vaddr section, const char *name,
		      struct cairn_sframe **ret, struct cairn_err *err);
void cairn_sframe_close(struct cairn_sframe *s); /* takes NULL */

/*
 * cairn_sframe_open_binary - the section .sframe of a binary
 *
 * @bin  must outlive the result
 * Returns 0; -ENOENT when it has none; as cairn_sframe_open().
 */
int cairn_sframe_open_binary(const struct cairn_binary *bin, struct cairn_sframe **ret,
			     struct cairn_err *err);

void cairn_sframe_info(const struct cairn_sframe *s, struct cairn_sframe_info *ret);

/* By number, below n_functions. */
void cairn_sframe_function(const struct cairn_sframe *s, uint32_t number,
			   struct cairn_sframe_function *ret);

/*
 * cairn_sframe_rows - the rows of a function, in their order
 *
 * @row  is called with the offset of each in the function (or in a block) and its rule, which lives
 *       until it returns; a result other than 0 ends the walk
 * Returns 0 or the result of @row. Threads: any. No allocation.
 */
int cairn_sframe_rows(const struct cairn_sframe *s, uint32_t number,
		      int (*row)(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule),
		      void *ctx);

CAIRN_END_DECLS
#endif
