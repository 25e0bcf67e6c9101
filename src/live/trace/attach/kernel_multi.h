/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of kernel functions by one link
 *
 * A kprobe is a perf event and a link of its own, and the kernel waits for all processors when it
 * is closed. A kprobe_multi link (Linux 5.18, CONFIG_FPROBE) sets any number of function entries by
 * ftrace at once. It is taken for the sites at which it gives what a kprobe gives: kernel_multi.c
 * has the conditions. All other sites of the same trace, or of the same probe, are kprobes.
 */
#ifndef TRACE_KERNEL_MULTI_H
#define TRACE_KERNEL_MULTI_H

#include "trace/attach/link.h"
#include "trace/trace.h"

/* Below that many sites a second program costs more than the kprobes. */
#define KERNEL_MULTI_MIN 4

/* Whether the kernel has such links. Cost: one program of two instructions, one failing bpf(2). */
bool kernel_multi_is_known(void);

/*
 * kernel_multi_choose - the sites that go by such links: sets their by_multi
 *
 * Returns their number; 0: none, or fewer than KERNEL_MULTI_MIN, or no memory.
 */
uint32_t kernel_multi_choose(struct cairn_trace *t);

/*
 * kernel_multi_link - one link for entries of functions
 *
 * @places  addresses in @places->offsets, each of another function
 * Returns a file descriptor that detaches when closed, or a negative errno: ftrace does not know
 * one of the addresses.
 */
int kernel_multi_link(int prog_fd, const struct link_places *places);

/* As link_kernel_missed(). */
bool kernel_multi_missed(int link_fd, uint64_t *ret);

#endif
