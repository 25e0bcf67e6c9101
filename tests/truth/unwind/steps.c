/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every instruction of a running program, unwound one frame and compared with what really happened
 *
 *	steps SEED WINDOWS STEPS FRESH FUNCTIONS INSTRUCTIONS COMMAND... [+ COMMAND...]...
 *
 * The program runs; at random times it is single-stepped for STEPS instructions, WINDOWS times, or
 * fewer when FUNCTIONS functions and INSTRUCTIONS instructions have been seen. A window that shows
 * no new function any more ends early: another time shows more. From its calls and returns, seen as
 * changes of the stack pointer, a shadow stack is kept:
 *
 *	call	rsp falls by 8 and the word there is the address after the call: a frame begins, and its caller's registers
 *		are those before the call
 *	return	rsp is at or above the frame's CFA: it is over, and all above it too (longjmp, exceptions)
 *	signal	the handler begins: the frame outside of its trampoline is what was interrupted
 *
 *	move	libffi's calls put their return address elsewhere, and return from there with another stack pointer than their
 *		caller had: what the row says first has to be what happens
 *	longjmp	glibc's says that the caller of its last instructions is where it jumps to: remembered, and compared there
 *
 * At every instruction the row is held against it (steps_judge.c).
 *
 * A function that is called once in a second is not met at random times. So after those windows,
 * where FRESH says how many, the program runs on until it calls one that was not seen before (a
 * breakpoint at the beginning of each FDE), and is stepped from there. Only the main thread is
 * traced: this is for programs whose other threads do nothing new. Further commands are such that
 * end soon: each is run from its first instruction from one new function to the next.
 *
 * A window goes on while a frame is open in which something was told that its return will prove or
 * not.
 *
 * Output: one line "counts ..." of totals, a line "wrong ..." for each different place where a rule
 * is, or "disproved ..." when its instructions say so, too, and a line "bug ..." for each function
 * that breaks the ABI.
 */
#include "steps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { FRESH_STEPS = 300, PENDING_STEPS = 20000, MAX_COMMANDS = 64 };

void die(const char *what)
{
	fprintf(stderr, "steps: %s: %s\n", what, strerror(errno));
	exit(2);
}

/* True while the program lives. */
static bool wait_stop(struct run *r, int *ret_signal)
{
	int status;
	if (waitpid(r->pid, &status, __WALL) < 0 || WIFEXITED(status) || WIFSIGNALED(status))
		return false;
	*ret_signal = WSTOPSIG(status);
	if (*ret_signal == SIGTRAP || status >> 16)
		*ret_signal = 0;
	return true;
}

static bool step_once(struct run *r, struct cairn_regs *regs, int *signal)
{
	struct cairn_regs before = *regs;
	int delivered = *signal;
	unplant(r, regs->pc.v);
	if (ptrace(PTRACE_SINGLESTEP, r->pid, NULL, (void *)(intptr_t)delivered) < 0 ||
	    !wait_stop(r, signal))
		return false;
	take_regs(r, regs);
	/* A signal with a handler: the step ends at the handler's first instruction. */
	if (delivered && regs->r[RSP] != before.r[RSP])
		enter_handler(r, &before, regs);
	else
		follow(r, &before, regs);
	return true;
}

static bool window(struct run *r, uint64_t n, bool is_at_entry)
{
	struct cairn_regs regs;
	int signal = 0;
	forget_frames(r);
	r->promise_file = NULL;
	r->is_called = false;
	r->linked_from = NULL;
	r->new_at_step = r->n_steps;
	read_maps(r);
	take_regs(r, &regs);
	if (is_at_entry)
		begin_called(r, &regs);
	for (uint64_t i = 0; i < n && (i < n / 3 || r->n_steps - r->new_at_step < n / 3); i++) {
		if (!step_once(r, &regs, &signal))
			return false;
		check(r, &regs);
	}
	for (uint64_t i = 0; i < PENDING_STEPS && r->n_pending; i++) {
		if (!step_once(r, &regs, &signal))
			return false;
		check(r, &regs);
	}
	forget_frames(r);
	return true;
}

/* Runs freely for a while; true when it is stopped again and lives. */
static bool run_free(struct run *r, uint64_t us)
{
	int signal;
	struct timespec t = {.tv_sec = (time_t)(us / 1000000),
			     .tv_nsec = (long)(us % 1000000) * 1000};
	if (r->is_stopped && ptrace(PTRACE_CONT, r->pid, NULL, NULL) < 0)
		return false;
	r->is_stopped = true;
	nanosleep(&t, NULL);
	ptrace(PTRACE_INTERRUPT, r->pid, NULL, NULL);
	for (;;) {
		int status;
		if (waitpid(r->pid, &status, __WALL) < 0 || WIFEXITED(status) ||
		    WIFSIGNALED(status))
			return false;
		if (status >> 16 == PTRACE_EVENT_STOP)
			return true;
		/* A signal, or the stop at exec. */
		signal = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
		if (ptrace(PTRACE_CONT, r->pid, NULL, (void *)(intptr_t)signal) < 0)
			return false;
	}
}

/*
 * The program stands still: up to @n windows where it calls something new. Returns whether it
 * lives.
 */
static bool windows_at_new(struct run *r, uint64_t n, uint64_t n_steps, uint64_t n_functions,
			   uint64_t n_instructions)
{
	open_memory(r);
	for (uint64_t i = 0; i < n && (r->n_functions < n_functions || r->n_steps < n_instructions);
	     i++) {
		/* What has been loaded meanwhile. */
		if (i % 64 == 0)
			plant(r);
		bool is_new = run_to_new(r);
		r->n_fresh += is_new;
		if (!is_new || !window(r, n_steps, true)) {
			r->n_exhausted++;
			close(r->memory);
			return false;
		}
	}
	close(r->memory);
	return true;
}

static void start(struct run *r, char **command, bool stops_at_exec)
{
	int go[2];
	char byte = 0;
	if (pipe(go) < 0)
		die("pipe");
	r->is_stopped = false;
	r->pid = fork();
	if (r->pid == 0) {
		int null = open("/dev/null", O_RDWR);
		if (read(go[0], &byte, 1) != 1 || dup2(null, 0) < 0 || dup2(null, 1) < 0 ||
		    dup2(null, 2) < 0)
			_exit(126);
		execvp(command[0], command);
		_exit(127);
	}
	/* Nothing is left over when this program ends. */
	uintptr_t options = PTRACE_O_EXITKILL | (stops_at_exec ? PTRACE_O_TRACEEXEC : 0);
	if (ptrace(PTRACE_SEIZE, r->pid, NULL, (void *)options) < 0)
		die("seize");
	if (write(go[1], &byte, 1) != 1)
		die("pipe");
	close(go[0]);
	close(go[1]);
}

/* To the stop at exec. */
static bool run_to_exec(struct run *r)
{
	int status;
	while (waitpid(r->pid, &status, __WALL) == r->pid && WIFSTOPPED(status)) {
		if (status >> 16 == PTRACE_EVENT_EXEC)
			return true;
		if (ptrace(PTRACE_CONT, r->pid, NULL, NULL) < 0)
			return false;
	}
	return false;
}

struct plan {
	unsigned int seed;
	uint64_t n_windows, n_steps, n_fresh, n_functions, n_instructions, done;
};

static bool is_enough(const struct run *r, const struct plan *p)
{
	return r->n_functions >= p->n_functions && r->n_steps >= p->n_instructions;
}

/* It may run, stand still, or have been waited for. */
static void end(struct run *r)
{
	forget_frames(r);
	for (pid_t got = r->pid; got == r->pid;) {
		int status;
		got = waitpid(r->pid, &status, __WALL | WNOHANG);
		if (got == 0) {
			kill(r->pid, SIGKILL);
			waitpid(r->pid, NULL, __WALL);
		}
	}
}

/* Into the workload, beyond the start of the program; then to what is new. */
static void run_long(struct run *r, struct plan *p, char **command)
{
	start(r, command, false);
	bool lives = run_free(r, 20000 + (uint64_t)(rand_r(&p->seed) % 200000));
	while (lives && !is_enough(r, p) && p->done < p->n_windows) {
		p->done++;
		lives = window(r, p->n_steps, false) &&
			run_free(r, 500 + (uint64_t)(rand_r(&p->seed) % 50000));
	}
	if (lives && p->n_fresh)
		windows_at_new(r, p->n_fresh, FRESH_STEPS, p->n_functions, p->n_instructions);
	end(r);
}

/* One that ends soon. */
static void run_short(struct run *r, const struct plan *p, char **command)
{
	start(r, command, true);
	bool lives = run_to_exec(r) && run_to_entry(r);
	r->is_stopped = true;
	if (lives)
		windows_at_new(r, p->n_fresh, FRESH_STEPS, p->n_functions, p->n_instructions);
	end(r);
}

/* "A b + C d" are two. Returns how many. */
static size_t commands_of(char **words, char **ret[MAX_COMMANDS])
{
	size_t n = 1;
	ret[0] = words;
	for (; *words; words++)
		if (!strcmp(*words, "+") && n < MAX_COMMANDS) {
			*words = NULL;
			ret[n++] = ++words;
		}
	return n;
}

int main(int argc, char **argv)
{
	char **commands[MAX_COMMANDS];
	if (argc < 8)
		return 2;
	struct plan p = {
		.seed = (unsigned int)atoi(argv[1]),
		.n_windows = strtoull(argv[2], NULL, 10),
		.n_steps = strtoull(argv[3], NULL, 10),
		.n_fresh = strtoull(argv[4], NULL, 10),
		.n_functions = strtoull(argv[5], NULL, 10),
		.n_instructions = strtoull(argv[6], NULL, 10),
	};
	struct run *r = calloc(1, sizeof(*r));
	r->frames = calloc(MAX_DEPTH, sizeof(*r->frames));
	size_t n_commands = commands_of(argv + 7, commands);
	for (int tries = 0; !is_enough(r, &p) && p.done < p.n_windows && tries < 50; tries++)
		run_long(r, &p, commands[0]);
	for (size_t i = 1; i < n_commands && !is_enough(r, &p); i++)
		run_short(r, &p, commands[i]);
	printf("counts windows %" PRIu64 " steps %" PRIu64 " outside %" PRIu64 " right %" PRIu64
	       " undescribed %" PRIu64 " wrong %" PRIu64 " proven %" PRIu64 " lost %" PRIu64
	       " needless %" PRIu64 " functions %" PRIu64 " bound %" PRIu64 " jumps %" PRIu64
	       " fresh %" PRIu64 " exhausted %" PRIu64 " signals %" PRIu64 "\n",
	       p.done, r->n_steps, r->n_unknown, r->n_right, r->n_undescribed, r->n_wrong,
	       r->n_proven, r->n_lost, r->n_needless, r->n_functions, r->n_bound, r->n_jumps,
	       r->n_fresh, r->n_exhausted, r->n_signals);
	report_bugs(r);
	return 0;
}
