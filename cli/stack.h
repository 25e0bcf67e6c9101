/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cairn stack` share: frames with their names, and how they are written. */
#ifndef CLI_STACK_H
#define CLI_STACK_H

#include <cairn/stack.h>

#include "sidecar.h"

/* Sidecars of the files that frames are in, opened when the first frame of a file is named. */
struct stack_names {
	struct sidecar_wish wish;
	bool symbols_only; /* no sidecars: the symbol table's names */
	struct stack_file *files;
	size_t n;
};

/* The functions of one frame, innermost first; n 0: no name is known. */
struct stack_place {
	size_t n;
	struct cairn_frame functions[CAIRN_FRAMES_MAX];
	bool has_start;
	uint64_t off; /* from the start of the symbol that holds it; valid when has_start */
	const char *unnamed; /* why there is no name; NULL: there is one, or nothing is there */
};

void stack_names_find(struct stack_names *names, const struct cairn_stack_frame *frame, struct stack_place *ret);
void stack_names_fini(struct stack_names *names);

void stack_text(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names);
/* One object per thread; @round counts the -n repetitions from 1. */
void stack_json(FILE *out, const struct cairn_thread_stack *thread, struct stack_names *names, unsigned long round);

#endif
