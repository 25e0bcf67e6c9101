/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions of the kernel that a return probe does not see return
 *
 * The kernel itself refuses probes on code that entries, interrupts and traps need, which is known
 * as a hazard. What it would accept is here, by name: objtool (noreturns.h) and the code of the
 * scheduler have the same lists.
 */
#include "trace/attach/kernel_returns.h"

#include <stdlib.h>
#include <string.h>

/* In the order of strcmp(). */
static const char *const never_return[] = {
	"__fortify_panic",
	"__module_put_and_kthread_exit",
	"__stack_chk_fail",
	"__ubsan_handle_builtin_unreachable",
	"__x64_sys_exit",
	"__x64_sys_exit_group",
	"arch_cpu_idle_dead",
	"cpu_bringup_and_idle",
	"cpu_startup_entry",
	"do_exit",
	"do_group_exit",
	"do_task_dead",
	"hlt_play_dead",
	"kthread_complete_and_exit",
	"kthread_exit",
	"machine_real_restart",
	"make_task_dead",
	"nmi_panic_self_stop",
	"panic",
	"panic_smp_self_stop",
	"rest_init",
	"rewind_stack_and_make_dead",
	"start_kernel",
	"start_secondary",
	"stop_this_cpu",
	"usercopy_abort",
};

/* They return on another stack than that of their call. */
static const char *const switch_stacks[] = {
	"__switch_to",
	"__switch_to_asm",
	"ret_from_fork",
	"ret_from_fork_asm",
};

static int compare(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

static bool is_among(const char *name, const char *const *names, size_t n)
{
	return bsearch(name, names, n, sizeof(*names), compare);
}

const char *kernel_returns_refused(const struct cairn_trace *t, const struct cairn_function *f)
{
	if (t->stacks)
		return "calls of kernel functions with stacks are not followed yet";
	if (is_among(f->name, never_return, sizeof(never_return) / sizeof(never_return[0])))
		return "the function never returns";
	if (is_among(f->name, switch_stacks, sizeof(switch_stacks) / sizeof(switch_stacks[0])))
		return "the function returns on another stack than that of its call";
	return NULL;
}
