/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control-flow graph of a function of the kernel, with the paths that its file does not show
 * (insn/kernel_flow.h)
 */
#ifndef SITES_KERNEL_PATHS_H
#define SITES_KERNEL_PATHS_H

#include "loc/cfg.h"

struct kernel_paths;

/* Returns 0; -ENODATA: a table of the kernel is not understood; -ENOMEM. */
int kernel_paths_new(const struct cairn_binary *bin, struct kernel_paths **ret);
/* Takes NULL. */
void kernel_paths_free(struct kernel_paths *p);

/* For cfg_new_changed(); @ctx is a struct kernel_paths. */
int kernel_paths_change(void *ctx, struct cfg *g);

#endif
