/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code of a kernel that no kprobe may be set on, or that is not in memory as it is in the file
 *
 * The essay is in kernel_code.c.
 */
#ifndef INSN_KERNEL_CODE_H
#define INSN_KERNEL_CODE_H

#include <cairn/hazards.h>

/*
 * kernel_code_hazard - the hazard of a kprobe at the start of an instruction
 *
 * @bin  a kernel or a module with code
 * Returns CAIRN_HAZARD_NOT_CHECKED also without memory. Cost: the first call reads tables of the
 * kernel (10 ms); later ones O(log entries). Threads: any.
 */
enum cairn_hazard kernel_code_hazard(const struct cairn_binary *bin, struct cairn_vaddr at);

struct kernel_code;
struct functions_around;

/*
 * kernel_code_around - what concerns a few addresses, without tables of the whole kernel
 *
 * @around  the functions there; not needed later
 * Returns 0 or -ENOMEM. Cost: 1 ms and more for each thousand addresses.
 */
int kernel_code_around(const struct cairn_binary *bin, const struct functions_around *around,
		       struct kernel_code **ret, struct cairn_err *err);
void kernel_code_free(struct kernel_code *k);

/* As kernel_code_hazard(), at an address that functions_around_has(). */
enum cairn_hazard kernel_code_hazard_in(const struct kernel_code *k, const struct cairn_binary *bin,
					struct cairn_vaddr at);

/* All of them, in the order of addresses: as cairn_hazards(), for a kernel. */
int kernel_code_visit(const struct cairn_binary *bin,
		      int (*visit)(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard),
		      void *ctx, struct cairn_err *err);

#endif
