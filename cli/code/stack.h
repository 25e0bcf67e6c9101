/* SPDX-License-Identifier: BSD-2-Clause */
/* The files of `cairn stack` share this: frames with their names, and their output. */
#ifndef CLI_STACK_H
#define CLI_STACK_H

#include <cairn/stack.h>

#include <cairn/sites.h>
#include <cairn/trace.h>

#include "json.h"
#include "sidecar.h"
#include "stack_memo.h"

/*
 * How frames are named: by the sidecar that the frame's file has, or one that is made when its
 * first frame is named.
 */
struct stack_names {
	struct sidecar_wish wish;
	/* --debuginfod; not in wish, by which is looked while a process may stand still */
	const char *debuginfod;
	bool symbols_only; /* the symbol table's names; no sidecar is made for them */
	/* The stacks whose frames' arguments are wanted; NULL: none. */
	const struct cairn_stacks *with_args;
	const struct cairn_thread_stack *thread; /* the thread of the last queried frame */
	/* The frame that is at the site of a probe, which says what it is; NULL. */
	const struct cairn_stack_frame *at_site;
	const struct cairn_function *function;
	const struct cairn_site *site;
	size_t frame;
	struct stack_debug *debug; /* per file whose arguments were queried */
	size_t n_debug;
	struct stack_file *files; /* for which one was made */
	size_t n;
	const struct cairn_sidecar **found; /* for the walk, which closes them */
	size_t n_found;
	struct stack_memo memo;
	/* The lines of one frame, written over for the next. */
	FILE *lines;
	char *lines_text;
	size_t lines_size;
};

/* The functions of one frame, innermost first; n 0: no name is known. */
struct stack_place {
	size_t n;
	struct cairn_frame functions[CAIRN_FRAMES_MAX];
	bool has_start;
	uint64_t off;        /* from the start of the symbol that holds it; valid when has_start */
	const char *unnamed; /* why there is no name; NULL: there is one, or nothing is there */
	/* Their parameters: of functions[i] that of active[i], valid when has_active. */
	bool has_active;
	const struct cairn_scope *active; /* until the next frame's */
	struct cairn_sites *sites;
};

/* find_sidecar of struct cairn_stacks_opts; @ctx is a struct stack_names. */
int stack_names_find_sidecar(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			     struct cairn_err *err);

/* @names has the caller's options. False: no memory. stack_names_fini() in both cases. */
bool stack_names_init(struct stack_names *names);
void stack_names_fini(struct stack_names *names);
/* Say which sidecars were not believed, and why. Before the stacks are closed. */
void stack_names_tell_trouble(const struct stack_names *names);

void stack_names_find(struct stack_names *names, const struct cairn_stack_frame *frame,
		      struct stack_place *ret);

/*
 * Find the parameters of the functions of frame @number, which was named; @place is as it was when
 * there are none.
 */
void stack_args_find(struct stack_names *names, const struct cairn_thread_stack *thread,
		     size_t number, struct stack_place *place);
void stack_args_fini(struct stack_names *names);

/* "(n=4, p=<unavailable: REASON>)" of function number @i; nothing when they are not known. */
void stack_args_text(FILE *out, const struct stack_names *names, const struct stack_place *place,
		     size_t i);
/* The same as the member "args"; null when they are not known. */
void stack_args_json(struct json *j, const struct stack_names *names,
		     const struct stack_place *place, size_t i);

/* A word: "outermost", "lost-register". Static. */
const char *stack_end_id(enum cairn_walk_end end);

/* The frames, and the reason why they end if they are not all; as members of an object in JSON. */
void stack_frames_text(FILE *out, const struct cairn_thread_stack *thread,
		       struct stack_names *names);
void stack_frames_json(struct json *j, const struct cairn_thread_stack *thread,
		       struct stack_names *names);

void stack_text(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names);
/* One object per thread; @round counts the -n repetitions from 1. */
void stack_json(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names,
		unsigned long round);

#endif
