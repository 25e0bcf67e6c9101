/* SPDX-License-Identifier: BSD-2-Clause */
/* The size of a frame without a description, by its code's own way out. Within this module only. */
#ifndef UNWIND_RETURN_PATH_H
#define UNWIND_RETURN_PATH_H

#include <cairn/err.h>
#include <cairn/unwind.h>

#include "code/maps.h"
#include "code/memory.h"

struct return_path {
	const struct code_maps *maps;
	const struct code_memory *code; /* instructions */
	cairn_read_memory read;         /* the stack */
	void *ctx;
};

/*
 * return_path_follow - follow code in no file from a frame's address to its returns
 *
 * @regs  the frame's, at the next instruction that it runs
 * @ret   the caller's, as the returns leave them: pc, stack pointer, and rbp if its value is known
 * Returns 1; 0 if no return is reached, or two paths disagree about the stack pointer; -ENOMEM.
 * Cost: up to 1,024 instructions, four decodes each, and a read for each page of code.
 */
int return_path_follow(const struct return_path *p, const struct cairn_regs *regs,
		       struct cairn_regs *ret, struct cairn_err *err);

#endif
