/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the kernel that a return probe does not see return
 *
 * The kernel itself refuses probes on code that entries, interrupts and traps need, which is known
 * as a hazard. What it would accept is known by name: objtool (noreturns.h) and the code of the
 * scheduler have the same lists.
 */
#include "trace/attach/kernel_returns.h"

#include <string.h>

#include "insn/kernel_flow.h"

/* These return on another stack than that of their call. */
static const char *const switch_stacks[] = {
	"__switch_to",
	"__switch_to_asm",
	"ret_from_fork",
	"ret_from_fork_asm",
};

const char *kernel_returns_refused(const struct cairn_function *f)
{
	if (kernel_flow_never_returns(f->name))
		return "the function never returns";
	for (size_t i = 0; i < sizeof(switch_stacks) / sizeof(switch_stacks[0]); i++)
		if (!strcmp(f->name, switch_stacks[i]))
			return "the function returns on another stack than that of its call";
	return NULL;
}
