/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where control goes in a kernel, beyond what the instructions in its file show
 *
 * The essay is in kernel_flow.c.
 */
#ifndef INSN_KERNEL_FLOW_H
#define INSN_KERNEL_FLOW_H

#include <cairn/binary.h>

enum kernel_flow_kind {
	KERNEL_FLOW_LEADS,     /* control may also go on at @to */
	KERNEL_FLOW_CHANGED,   /* the code up to @to may be other code when it runs: no padding */
	KERNEL_FLOW_CALLS,     /* what replaces it has a call or a loop */
	KERNEL_FLOW_DEAD,      /* a jump that is replaced before it can run */
	KERNEL_FLOW_RETURNS,   /* a jump that returns from the function */
	KERNEL_FLOW_ELSEWHERE, /* what replaces it may leave the function */
};

struct kernel_flow_fact {
	uint64_t at, to;
	enum kernel_flow_kind kind;
};

struct kernel_flow;

/*
 * kernel_flow_new - read the tables of a kernel or a module
 *
 * Returns 0; -ENODATA: a table is not understood; -ENOMEM. Cost: 10 ms for a kernel.
 */
int kernel_flow_new(const struct cairn_binary *bin, struct kernel_flow **ret);
/* Takes NULL. */
void kernel_flow_free(struct kernel_flow *f);

/* The facts about code from @lo up to @hi, in order of address. */
const struct kernel_flow_fact *kernel_flow_between(const struct kernel_flow *f, uint64_t lo,
						   uint64_t hi, size_t *ret_n);

/* Whether the ud2 at an address is that of WARN(), after which the kernel goes on. */
bool kernel_flow_warns(const struct kernel_flow *f, uint64_t at);

/* Whether a function of the kernel never returns, by its name. */
bool kernel_flow_never_returns(const char *name);

#endif
