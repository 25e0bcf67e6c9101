/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hazards: sites where a user probe is lost or does harm
 *
 * Attaching a uprobe succeeds in cases where it must not. Measured on Linux 6.18, x86-64:
 *
 *  - An instruction with a lock, es, cs, ss or ds prefix is refused only when the page is mapped. A
 *    probe attached before exec reports success and never fires.
 *  - A 5-byte nop (0f 1f 44 00 00) is rewritten to a call into a trampoline. The call pushes its
 *    return address over the red zone of a leaf function, whose results are then wrong.
 *  - Some AVX instructions (vpor, vpcmpeqb, vzeroupper, ...) are taken for a jump of the same
 *    opcode number and not executed: the program goes on without their result.
 *  - A single step sets the trap flag and runs a copy elsewhere. pushf stores that flag, and
 *    SIGTRAP ends the program when it loads the flag back. A child made by a probed syscall
 *    instruction is ended at once.
 *  - A string instruction with a rep prefix is stepped once for each repetition, and gives as many
 *    events.
 *
 * A kernel is probed by kprobes, which have other rules: it refuses them in code that a probe's own
 * trap runs through, and on instructions that it rewrites itself. Its tables of these are read.
 *
 * So the bytes decide, before attaching, and for any tracer's users:
 *
 *	cairn_hazards(bin, show_one, NULL, &err);	// every hazardous site of a file
 */
#ifndef CAIRN_HAZARDS_H
#define CAIRN_HAZARDS_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/binary.h>

CAIRN_BEGIN_DECLS

enum cairn_hazard {
	CAIRN_HAZARD_NONE,
	CAIRN_HAZARD_LOCK_PREFIX,    /* silently never hit */
	CAIRN_HAZARD_SEGMENT_PREFIX, /* es, cs, ss, ds: silently never hit */
	CAIRN_HAZARD_MASKS_TRAPS,    /* mov ss, pop ss: refused by the kernel */
	/* an opcode the kernel does not probe (also: not decodable by it) */
	CAIRN_HAZARD_NOT_PROBEABLE,
	CAIRN_HAZARD_TRAP, /* already int3: another program's breakpoint, or padding */
	/* 5-byte nop not at a function's entry: corrupts the red zone */
	CAIRN_HAZARD_NOP5_RED_ZONE,
	CAIRN_HAZARD_NOT_A_BOUNDARY, /* not the start of an instruction of executable code */
	CAIRN_HAZARD_MISEMULATED,    /* taken for another instruction (many of AVX): not executed */
	/* pushf, syscall, sgdt, ...: the single step changes its result or ends the program */
	CAIRN_HAZARD_SEES_STEP,
	CAIRN_HAZARD_REPEATS, /* rep movs and the like: one event for each repetition */
	/* the file that was read has no code: a debug file alone, or its unbound sidecar */
	CAIRN_HAZARD_NOT_CHECKED,
	/* of a kernel, on which a kprobe is refused, or meets other code than that of the file */
	CAIRN_HAZARD_KPROBE_BLACKLIST, /* noinstr, __kprobes, entry code, NOKPROBE_SYMBOL */
	CAIRN_HAZARD_JUMP_LABEL,       /* the kernel rewrites it when a static key changes */
	CAIRN_HAZARD_STATIC_CALL,      /* the kernel rewrites it when its target changes */
	/* ftrace does not trace the function: perf and tracefs refuse a kprobe */
	CAIRN_HAZARD_NOTRACE,
	CAIRN_HAZARD_ALTERNATIVE, /* replaced when the kernel started: no longer that code */
	CAIRN_HAZARD_N            /* how many there are; no hazard itself */
};

/* "lock prefix: the probe attaches and never fires"; a sentence without a full stop. Static. */
const char *cairn_hazard_text(enum cairn_hazard hazard);
/* "lock-prefix": the word in JSON. Static. */
const char *cairn_hazard_id(enum cairn_hazard hazard);

/*
 * cairn_hazard_at - the hazard of a uprobe at one address
 *
 * Instruction boundaries are found by decoding from the start of the function symbol that covers
 * @at. Without such a symbol, @at is believed to be a boundary.
 *
 * @is_function_entry  the address is a function's first instruction, where no red zone is live yet;
 *                     it is then believed to be a boundary. Anywhere else (except after the endbr64
 *                     at a function symbol) a 5-byte nop is CAIRN_HAZARD_NOP5_RED_ZONE, whatever
 *                     the function does.
 * Returns CAIRN_HAZARD_NONE if a probe is safe there.
 * Cost: decodes from the function's start to @at. Threads: any. Signals: no.
 */
enum cairn_hazard cairn_hazard_at(const struct cairn_binary *bin, struct cairn_vaddr at,
				  bool is_function_entry);

/*
 * cairn_hazards - visit every instruction of the binary's functions on which a uprobe is lost or
 * does harm, in address order
 *
 * Functions are those of the symbol tables of the binary and its debug file; in a stripped binary
 * all executable code is decoded. A 5-byte nop is visited if it is not at a function's entry and
 * the function uses the red zone, or is unknown. Nops and int3 that control does not fall into are
 * left out.
 *
 * In a kernel or module it visits the functions and instructions on which the kernel refuses a
 * kprobe, and the code that it replaced when it started.
 *
 * @visit  a result other than 0 ends the walk and is returned
 * Returns 0, also if there is no code; the result of @visit; -EBADMSG for a damaged file, -ENOMEM.
 * Cost: decodes all code once (libc: 50 ms). Threads: any. Signals: no.
 */
int cairn_hazards(const struct cairn_binary *bin,
		  int (*visit)(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard),
		  void *ctx, struct cairn_err *err);

CAIRN_END_DECLS
#endif
