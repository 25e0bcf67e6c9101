/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Single-stepping a program under a shadow stack: what the parts share; steps.c tells what it is.
 */
#ifndef TRUTH_UNWIND_STEPS_H
#define TRUTH_UNWIND_STEPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <cairn/unwind.h>

enum {
	RBX = 3,
	RBP = 6,
	RSP = 7,
	MAX_DEPTH = 1 << 16,
	MAX_FILES = 256,
	MAX_MAPS = 4096,
	MAX_BUGS = 512,
	SEEN = 1 << 18
};

/* rbx, rbp, r12 to r15: psABI, figure 3.4 */
static const unsigned int kept[] = {RBX, RBP, 12, 13, 14, 15};
enum { N_KEPT = sizeof(kept) / sizeof(kept[0]) };

/* The beginning of a function: an FDE. */
struct entry {
	uint64_t off; /* in the file */
	uint8_t byte; /* where there is a breakpoint: what was there */
	bool is_planted;
};

struct file {
	char path[512];
	struct entry *entries; /* by offset */
	size_t n_entries;
	struct cairn_binary *bin;
	struct cairn_unwind *table;
	/* What the instructions say against its rows as they are written, once somebody asked. */
	struct cairn_unwind_disagreement *doubts;
	size_t n_doubts;
	bool is_checked;
};

struct map {
	uint64_t lo, hi, off;
	struct file *file; /* NULL: no file */
};

/* A frame whose beginning was seen. */
struct frame {
	uint64_t ret_addr, cfa, saved[N_KEPT];
	bool is_moved; /* it has put its return address elsewhere: cfa is what the row says, and what its return is compared with */
	bool is_handler; /* entered by a signal: what was interrupted is compared, two steps out */
	struct cairn_regs interrupted;
	/*
	 * Steps at which a kept register was told that is not the caller's, under a row that leaves
	 * it as it is; proven or not at its end.
	 */
	uint64_t n_doubted,
		n_lost; /* lost: its row said that it is not known, and the caller's value was gone indeed */
	uint32_t doubted, lost; /* registers of these steps, by number */
	struct file *file;      /* where the first of these steps was */
	struct cairn_vaddr first;
};

/* A function that does not restore what the ABI has it keep. */
struct bug {
	const struct file *file;
	struct cairn_vaddr function,
		ret; /* ret: the return at which it was seen; 0: only the instructions say so */
	uint32_t regs;
	uint64_t n_wrong, n_lost;
};

struct run {
	pid_t pid;
	bool is_stopped; /* it was seized running */
	struct file files[MAX_FILES];
	size_t n_files;
	struct map maps[MAX_MAPS];
	size_t n_maps;
	struct frame *frames;
	size_t depth, n_pending; /* of these, with such steps */
	uint64_t n_steps, n_unknown, n_right, n_undescribed, n_wrong, n_proven, n_lost, n_needless,
		n_functions, n_signals, n_bound, n_jumps, n_fresh, n_exhausted;
	uint64_t new_at_step; /* when the last new function was seen */
	bool is_called; /* the last call has not arrived after its entry of a linkage table yet */
	const struct file *linked_from; /* whose entry it is in; NULL: in none */
	struct cairn_regs promise;      /* where longjmp is about to go */
	struct file *promise_file;
	struct cairn_vaddr promised_at;
	int memory;                             /* /proc/PID/mem */
	uint64_t functions[SEEN], wrongs[SEEN]; /* sets by address */
	struct bug bugs[MAX_BUGS];
	size_t n_bugs;
};

void die(const char *what);

/* ---- steps_files.c: what is mapped ---- */

/* cairn_read_memory; @ctx is the run. */
bool read_target(void *ctx, struct cairn_addr at, void *ret, size_t n);
void read_maps(struct run *r);
const struct map *map_of(const struct run *r, uint64_t at);
/* The rule for an address, and its file; NULL where no file or table is. */
const struct cairn_unwind_rule *rule_at(struct run *r, uint64_t at, struct file **ret_file,
					struct cairn_vaddr *ret_at);
/* True when @key was not in the set. */
bool add_to_set(uint64_t *set, uint64_t key);
bool is_in_set(const uint64_t *set, uint64_t key);
/* Where the FDE around an address begins; the address itself when it is not known. */
struct cairn_vaddr function_of(struct file *f, struct cairn_vaddr at);
/* What the instructions say against the file's rows. */
const struct cairn_unwind_disagreement *doubts_of(struct file *f, size_t *ret_n);

/* ---- steps_new.c: functions that were not called yet ---- */

void find_entries(struct file *f);
/* The function that was called last, as soon as it is seen. */
void note_function(struct run *r, uint64_t pc);
/* Breakpoints where there is no function yet that has been seen. */
void open_memory(struct run *r);
void plant(struct run *r);
/* Takes the breakpoint at @at away; false when there was none. */
bool unplant(struct run *r, uint64_t at);
/* Runs to a breakpoint; false: the program has ended, or calls nothing new any more. */
bool run_to_new(struct run *r);
/* From the stop at exec to the program's first instruction, where its libraries are there. */
bool run_to_entry(struct run *r);

/* ---- steps_frames.c: the shadow stack ---- */

void take_regs(struct run *r, struct cairn_regs *ret);
/* What one instruction did to the stack. */
void follow(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now);
void enter_handler(struct run *r, const struct cairn_regs *before, const struct cairn_regs *now);
/* The first instruction of a function that has just been called: what its caller has is known. */
void begin_called(struct run *r, const struct cairn_regs *regs);
/* Nothing is known any more of who called whom. */
void forget_frames(struct run *r);

/* ---- steps_judge.c: rows against what happened ---- */

/* At each instruction. */
void check(struct run *r, const struct cairn_regs *regs);
/*
 * A frame is over: @before its last instruction, @now in the caller; NULL: nobody saw its return.
 */
void judge_frame(struct run *r, const struct frame *f, const struct cairn_regs *before,
		 const struct cairn_regs *now);
void wrong(struct run *r, struct file *file, struct cairn_vaddr at, const struct frame *f,
	   const char *what);
void report_bugs(const struct run *r);

#endif
