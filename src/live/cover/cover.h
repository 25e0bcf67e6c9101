/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module cover lets BPF programs of others see the calls of functions that were inlined.
 *
 * A program at a function's first instruction reads its arguments from the registers of the calling
 * convention. At an inlined copy they are elsewhere. So the program is loaded a second time for
 * each set of locations, as a function after code that puts the arguments where it expects them:
 *
 *	prologue:	r6 = r1				// the probe's registers
 *			*(u64 *)(fp - 16) = rbx		// %rdi of the copy: where the argument is
 *			*(u64 *)(fp - 8) = r6
 *			r1 = fp - 128			// struct pt_regs, as far as it is read
 *			call program
 *			exit
 *	program:	...
 *			r2 = *(u64 *)(r1 + 112)
 *
 * The verifier lets a function read its caller's stack. A helper wants the probe's own context, so
 * each call of such a helper loads it first. Maps are those of the first program.
 *
 *	cover.c     the public interface
 *	program.c   one program: its function's sites, the programs for them, the links
 *	section.c   what a SEC() name is about
 *	use.c       which registers a program reads, and which calls have its context
 *	params.c    which argument is in which register
 *	typed.c     the arguments of an fentry program, which have types
 *	prologue.c  the code before the program
 *	fetch.c     one argument's part of it
 *	build.c     prologue and program as one
 *	load.c      loading that
 *
 * Programs that a command loads and attaches itself:
 *
 *	command.c   the command, and the processes that it starts
 *	client.c    one process: what it attaches
 *	request.c   what its library tells (cairn/shared/cover.h)
 *	loaded.c    the programs that were loaded
 *	target.c    the function that a probe is at
 */
#ifndef COVER_COVER_H
#define COVER_COVER_H

#include <linux/bpf.h>

#include <cairn/cover.h>

#include "base/vec.h"
#include "trace/locate.h"

struct bpf_link;

/* struct pt_regs of x86-64. */
enum { WORDS = 21, WORD_IP = 16, WORD_CS = 17, WORD_FLAGS = 18, WORD_SS = 20 };

/* "%rdi", for people. */
const char *word_name(unsigned int word);

/* ---- section.c ---- */

enum section_kind {
	SECTION_OTHER,  /* of no function */
	SECTION_KPROBE, /* these three can be covered */
	SECTION_UPROBE,
	SECTION_FENTRY,
	SECTION_RETURN,
	SECTION_SLEEPABLE,
	SECTION_PATTERN,
	SECTION_OFFSET,
	SECTION_TRACEFS, /* an event that tracefs made, of a program that attaches itself */
};

struct section {
	enum section_kind kind;
	bool of_kernel;
	const char *target; /* FUNC, or PATH:FUNC; NULL: the name does not say it */
};

/* @given: the target if the name does not say it, or NULL. */
struct section section_of(const char *name, const char *given);
/* Why such a program cannot be covered; NULL: it can. */
const char *section_obstacle(enum section_kind kind);

/* ---- use.c ---- */

struct cover_use {
	uint32_t words;         /* that it reads, as bits */
	uint8_t *context_calls; /* by instruction: whether it calls a helper with the context */
	uint32_t n_context_calls;
	bool has_callbacks;
	const char *why; /* it cannot be covered; NULL: it can */
};

/* Beyond it a program is not looked at: each instruction has a state. */
#define COVER_INSNS_MAX 32768

/*
 * use_find - what a program does with its context
 *
 * @insns  as they were loaded
 * Returns 0, also with @ret->why; -ENOMEM. use_fini() in all cases.
 */
int use_find(const struct bpf_insn *insns, size_t n, struct cover_use *ret, struct cairn_err *err);
void use_fini(struct cover_use *use);

/* ---- params.c ---- */

/* By word: the parameter that a call has there; -1: none, -2: it is not known. */
struct cover_params {
	int8_t of_word[WORDS];
	/* For fentry, word i is argument i. */
	bool is_array;
	uint32_t structs[WORDS]; /* to which it points, among the kernel's types; 0: a number */
	uint32_t cast;           /* bpf_rdonly_cast(), there; 0: the kernel has none */
	const char *why;         /* they are not known; NULL */
};
enum { NO_PARAM = -1, PARAM_UNKNOWN = -2 };

/* Returns 0 or -ENOMEM. */
int params_find(const struct cairn_types *types, const struct cairn_function *f,
		struct cover_params *ret, struct cairn_err *err);

/* ---- typed.c ---- */

/*
 * typed_find - the same of an fentry program, a descriptor
 *
 * Returns 0, also with @ret->why; the errors of bpf(2), and those of reading the kernel's types.
 */
int typed_find(int program, const struct cairn_function *f, struct cover_params *ret,
	       struct cairn_err *err);
/* The module whose types have this number, "": the kernel's own. False: there are none. */
bool typed_module(uint32_t number, char *ret, size_t n);

/* ---- fetch.c ---- */

struct cover_code {
	VEC(struct bpf_insn) insns;
	VEC(uint32_t) faults; /* jumps to be taken when memory cannot be read */
	bool failed;          /* no memory */
};

void code_add(struct cover_code *c, uint8_t code, uint8_t dst, uint8_t src, int16_t off,
	      int32_t imm);
void code_add_wide(struct cover_code *c, uint8_t dst, uint8_t src, uint64_t imm);
void code_fini(struct cover_code *c);

/* The place of an argument in the frame of the prologue, and room for what it needs meanwhile. */
struct cover_slot {
	int16_t at, spare;
	bool of_kernel;
};

/* True if fetch_arg() can do it. */
bool fetch_is_known(const struct trace_located_arg *arg);
/* The argument, extended to 8 bytes, at @slot->at. r6 has the probe's registers. */
void fetch_arg(struct cover_code *c, const struct trace_located_arg *arg,
	       const struct cover_slot *slot);

/* ---- prologue.c ---- */

/* The arguments of one site. */
struct cover_site {
	const struct cairn_trace *trace;
	uint32_t site;
	bool of_kernel;
	const struct cover_params *params;
};

/* Why an argument that the program reads is not there; NULL: all are. */
const char *prologue_obstacle(const struct cover_use *use, const struct cover_site *site,
			      unsigned int *ret_word);

/*
 * prologue_make - the code before the program, but for the number of its call
 *
 * @lost_fd        a map of one u64, which counts calls with memory that cannot be read
 * @ret_call       index of the call
 * @ret_context_at where the program finds the probe's context, from its own one
 */
void prologue_make(struct cover_code *c, const struct cover_use *use, const struct cover_site *site,
		   int lost_fd, uint32_t *ret_call, int16_t *ret_context_at);

/* ---- build.c ---- */

struct cover_built {
	struct cover_code code;
	VEC(uint32_t) functions; /* where each begins, ascending; only with callbacks */
	const char *why;         /* it cannot be built */
};

/* Returns 0, also with @ret->why; -ENOMEM. built_fini() in all cases. */
int build_program(const struct bpf_insn *insns, size_t n, const struct cover_use *use,
		  const struct cover_site *site, int lost_fd, struct cover_built *ret,
		  struct cairn_err *err);
void built_fini(struct cover_built *built);

/* ---- load.c ---- */

/* The program as it was loaded first. */
struct cover_first {
	const char *name;
	const struct bpf_insn *insns; /* with descriptors of this process */
	size_t n;
	int fd;
};

/*
 * load_program - load it as the first one was
 *
 * @ret_why  what the verifier said last, of at most @n_why bytes
 * Returns a descriptor or a negative errno.
 */
int load_program(const struct cover_first *first, const struct cover_built *built, bool of_kernel,
		 char *ret_why, size_t n_why);
/* False: the kernel has no links of perf events, and no cookies. */
bool load_can_link(void);
/* A map of one u64. Returns a descriptor or a negative errno. */
int load_counter(void);

/* ---- program.c ---- */

struct covered {
	struct cairn_covered pub; /* is_attached: to the symbol of the function */
	struct cover_first first;
	struct section section;
	uint64_t cookie;     /* that the program gets at the other sites, too */
	int pid;             /* of a process's hits alone; 0: of all */
	const char *missing; /* why its instructions are not known; NULL */
	int lost_fd;
	VEC(int) fds; /* of the second programs */
	struct trace_links links;
	char why[CAIRN_ERR_MSG_MAX];
	char caveat[400];
};

/*
 * program_cover - attach one program wherever its function is
 *
 * Returns 0; with best_effort also where sites are left out (pub.why). Errors as
 * cairn_cover_attach(). program_fini() in all cases.
 */
int program_cover(struct covered *p, const struct cairn_cover_opts *opts, struct cairn_err *err);
/* Detaches and frees what that made; its counts stay. */
void program_fini(struct covered *p);
void program_count(struct covered *p);
/* Whether a function of the kernel has sites, be it of all its code. */
bool program_has_sites(const char *function, const struct cairn_cover_opts *opts);

#endif
