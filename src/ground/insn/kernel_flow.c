/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where control goes in a kernel
 *
 * A kernel changes its own code, and goes on elsewhere after some faults. So the instructions of its
 * file do not show all paths. The tables by which it does so do:
 *
 *	between these symbols, or in     entry
 *	this section of a module         bytes   what
 *	__start___jump_table                16   distances to the instruction and the target, key
 *	__alt_instructions              12, 14   kernel_tables.h
 *	__start___ex_table                  12   distances to the instruction and where it goes on after
 *	                                         a fault, how
 *	__start___bug_table             12, 16   distance to ud2; the last two bytes are flags
 *	__return_sites                       4   distance to a jump that returns
 *
 *  - A jump label is a nop or a jump, whatever the file has.
 *  - Code with alternatives may be the original or any of them. The tests of the processor's features
 *    (static_cpu_has()) begin as a jump to .altinstr_aux, which is replaced in each case.
 *  - BUG() and WARN() are an invalid instruction. Control goes on after that of WARN().
 *  - Kernels that defend their returns jump to a thunk, or to nothing but a return where the
 *    processor needs no defence.
 *
 * Static calls stay calls or jumps to other functions. Calls of ftrace, and those of pv_ops, which
 * the kernel may replace by an instruction, go on after themselves. So these need no facts.
 */
#include "insn/kernel_flow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/vec.h"
#include "elf/elf.h"
#include "insn/insn.h"
#include "insn/kernel_tables.h"

enum {
	JUMP_ENTRY = 16,
	FAULT_ENTRY = 12,
	BUG_ENTRY = 12,
	BUG_ENTRY_FORMAT = 16,
	RETURN_ENTRY = 4,
	BUG_IS_WARNING = 1,
};

enum { JUMPS, ALTERNATIVES, FAULTS, BUGS, RETURNS, N_BOUNDS };

static const struct kernel_bound bounds[N_BOUNDS] = {
	[JUMPS] = {"__start___jump_table", "__stop___jump_table", "__jump_table"},
	[ALTERNATIVES] = {"__alt_instructions", "__alt_instructions_end", ".altinstructions"},
	[FAULTS] = {"__start___ex_table", "__stop___ex_table", "__ex_table"},
	[BUGS] = {"__start___bug_table", "__stop___bug_table", "__bug_table"},
	[RETURNS] = {"__return_sites", "__return_sites_end", ".return_sites"},
};

struct kernel_flow {
	VEC(struct kernel_flow_fact) v;
	VEC(uint64_t) warnings; /* sorted */
};

struct reading {
	struct elf *elf;
	struct kernel_flow *flow;
	struct kernel_area aux; /* .altinstr_aux */
};

static int add(struct reading *r, enum kernel_flow_kind kind, uint64_t at, uint64_t to)
{
	return VEC_ADD(&r->flow->v, ((struct kernel_flow_fact){at, to, kind})) ? 0 : -ENOMEM;
}

static bool is_code(const struct reading *r, uint64_t at)
{
	const uint8_t *code;
	uint64_t left;

	return elf_is_code(r->elf, (struct cairn_vaddr){at}, &code, &left);
}

/* ---- tables of distances ---- */

static int read_jumps(struct reading *r, struct cursor *c, uint64_t base)
{
	int rc = 0;

	for (uint64_t at = base; cur_left(c) >= JUMP_ENTRY && rc >= 0; at += JUMP_ENTRY) {
		uint64_t code = kernel_table_distance(c, at);
		uint64_t target = kernel_table_distance(c, at + 4);
		cur_skip(c, JUMP_ENTRY - 8);
		rc = add(r, KERNEL_FLOW_LEADS, code, target);
		if (rc >= 0)
			rc = add(r, KERNEL_FLOW_LEADS, code,
				 code + kernel_jump_label_bytes(r->elf, code));
	}
	return rc;
}

static int read_faults(struct reading *r, struct cursor *c, uint64_t base)
{
	int rc = cur_left(c) % FAULT_ENTRY ? -ENODATA : 0;

	for (uint64_t at = base; cur_left(c) >= FAULT_ENTRY && rc >= 0; at += FAULT_ENTRY) {
		uint64_t code = kernel_table_distance(c, at);
		uint64_t to = kernel_table_distance(c, at + 4);
		cur_skip(c, FAULT_ENTRY - 8);
		rc = is_code(r, code) && is_code(r, to) ? add(r, KERNEL_FLOW_LEADS, code, to)
							: -ENODATA;
	}
	return rc;
}

static int read_returns(struct reading *r, struct cursor *c, uint64_t base)
{
	int rc = 0;

	for (uint64_t at = base; cur_left(c) >= RETURN_ENTRY && rc >= 0; at += RETURN_ENTRY) {
		uint64_t code = kernel_table_distance(c, at);
		rc = add(r, KERNEL_FLOW_RETURNS, code, code);
	}
	return rc;
}

/* ---- BUG() and WARN() ---- */

/* ud2, or ud1 after prefixes, which newer kernels have for warnings with arguments. */
static bool is_invalid_insn(const struct reading *r, uint64_t at)
{
	const uint8_t *code;
	size_t n, i = 0;

	if (!elf_code_at(r->elf, (struct cairn_vaddr){at}, &code, &n))
		return false;
	while (i < n && i < 2 && (code[i] == 0x67 || (code[i] & 0xf0) == 0x40))
		i++;
	return i + 1 < n && code[i] == 0x0f && (code[i + 1] == 0x0b || code[i + 1] == 0xb9);
}

static bool is_bug_size(const struct reading *r, struct cursor c, uint64_t base, size_t size)
{
	if (cur_left(&c) % size)
		return false;
	for (uint64_t at = base; cur_left(&c); at += size) {
		uint64_t code = kernel_table_distance(&c, at);
		cur_skip(&c, size - 4);
		/* A call that is replaced by such an instruction is one, too. */
		if (!is_invalid_insn(r, code) && !is_code(r, code))
			return false;
	}
	return true;
}

static int read_bugs(struct reading *r, struct cursor *c, uint64_t base)
{
	size_t size = is_bug_size(r, *c, base, BUG_ENTRY) ? BUG_ENTRY : BUG_ENTRY_FORMAT;

	if (size == BUG_ENTRY_FORMAT && !is_bug_size(r, *c, base, size))
		return -ENODATA;
	for (uint64_t at = base; cur_left(c); at += size) {
		uint64_t code = kernel_table_distance(c, at);
		cur_skip(c, size - 6);
		if (cur_u16(c) & BUG_IS_WARNING && !VEC_ADD(&r->flow->warnings, code))
			return -ENOMEM;
	}
	return 0;
}

/* ---- alternatives ---- */

static bool is_in(const struct kernel_area *a, uint64_t at)
{
	return a->lo <= at && at < a->hi;
}

/* A jump of what replaces code, which keeps its target. */
static int see_jump(struct reading *r, const struct kernel_alternative *a, uint64_t target)
{
	uint64_t end = a->with + a->n_with;

	if (target == end)
		return add(r, KERNEL_FLOW_LEADS, a->code, a->code + a->n);
	if (target >= a->with && target < end)
		return add(r, KERNEL_FLOW_CALLS, a->code, a->code);
	return add(r, KERNEL_FLOW_LEADS, a->code, target);
}

/* *@goes_on: whether control comes to what follows. */
static int see_step(struct reading *r, const struct kernel_alternative *a,
		    const struct insn_step *step, bool *goes_on)
{
	*goes_on = true;
	switch (step->flow) {
	case INSN_JUMP:
		*goes_on = false;
		return see_jump(r, a, step->target);
	case INSN_BRANCH:
		return see_jump(r, a, step->target);
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return add(r, KERNEL_FLOW_CALLS, a->code, a->code);
	case INSN_RETURN:
	case INSN_JUMP_INDIRECT:
		*goes_on = false;
		return add(r, KERNEL_FLOW_ELSEWHERE, a->code, a->code);
	default:
		return 0;
	}
}

static int see_replacement(struct reading *r, const struct kernel_alternative *a)
{
	const uint8_t *code = NULL;
	struct insn_step step;
	bool goes_on = true;
	size_t n;
	int rc = 0;

	if (a->n_with &&
	    (!elf_code_at(r->elf, (struct cairn_vaddr){a->with}, &code, &n) || n < a->n_with))
		return add(r, KERNEL_FLOW_ELSEWHERE, a->code, a->code);
	for (size_t i = 0; i < a->n_with && rc >= 0; i += step.len) {
		if (!insn_step(code + i, a->n_with - i, a->with + i, &step))
			return add(r, KERNEL_FLOW_ELSEWHERE, a->code, a->code);
		rc = see_step(r, a, &step, &goes_on);
	}
	if (rc >= 0 && goes_on)
		rc = add(r, KERNEL_FLOW_LEADS, a->code, a->code + a->n);
	return rc;
}

static int see_alternative(void *ctx, const struct kernel_alternative *a)
{
	struct reading *r = ctx;
	const uint8_t *code;
	struct insn_step step;
	size_t n;
	int rc = add(r, KERNEL_FLOW_CHANGED, a->code, a->code + a->n);

	if (rc >= 0 && elf_code_at(r->elf, (struct cairn_vaddr){a->code}, &code, &n) &&
	    insn_step(code, n, a->code, &step) && step.flow == INSN_JUMP &&
	    is_in(&r->aux, step.target))
		rc = add(r, KERNEL_FLOW_DEAD, a->code, a->code);
	return rc < 0 ? rc : see_replacement(r, a);
}

static void find_aux(struct reading *r)
{
	for (size_t i = 0; i < elf_n_sections(r->elf); i++) {
		const struct elf_section *s = elf_section_at(r->elf, i);
		if (!strcmp(s->name, ".altinstr_aux"))
			r->aux = (struct kernel_area){s->addr.v, s->addr.v + s->size};
	}
}

static int read_alternatives(struct reading *r, struct cursor *c, uint64_t base)
{
	find_aux(r);
	int rc = kernel_alternatives_visit(r->elf, *c, base, see_alternative, r);
	return rc > 0 ? -ENODATA : rc;
}

/* ---- all of them ---- */

static int read_table(struct reading *r, int which, const struct kernel_area *a)
{
	static int (*const readers[N_BOUNDS])(struct reading *, struct cursor *, uint64_t) = {
		[JUMPS] = read_jumps, [ALTERNATIVES] = read_alternatives, [FAULTS] = read_faults,
		[BUGS] = read_bugs,   [RETURNS] = read_returns,
	};
	struct cursor_src src;
	struct cursor c;
	int rc;

	if (a->hi <= a->lo)
		return 0;
	rc = kernel_table_open(r->elf, a, &src, &c);
	if (rc <= 0)
		return rc < 0 ? rc : -ENODATA;
	return readers[which](r, &c, a->lo);
}

static int by_address(const void *a, const void *b)
{
	const struct kernel_flow_fact *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

static int compare_addresses(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void sort(struct kernel_flow *f)
{
	if (f->v.n)
		qsort(f->v.p, f->v.n, sizeof(*f->v.p), by_address);
	if (f->warnings.n)
		qsort(f->warnings.p, f->warnings.n, sizeof(*f->warnings.p), compare_addresses);
}

int kernel_flow_new(const struct cairn_binary *bin, struct kernel_flow **ret)
{
	struct kernel_area areas[N_BOUNDS] = {0};
	struct reading r = {.elf = binary_main(bin), .flow = calloc(1, sizeof(*r.flow))};
	int rc = r.flow ? kernel_tables_find(bin, bounds, N_BOUNDS, areas, NULL) : -ENOMEM;

	for (int i = 0; i < N_BOUNDS && rc >= 0; i++)
		rc = read_table(&r, i, &areas[i]);
	/* Every kernel has BUG(): without its table the symbols are not there. */
	if (rc >= 0 && !cairn_binary_is_relocatable(bin) && areas[BUGS].hi <= areas[BUGS].lo)
		rc = -ENODATA;
	if (rc < 0) {
		kernel_flow_free(r.flow);
		return rc == -ENOMEM ? rc : -ENODATA;
	}
	sort(r.flow);
	*ret = r.flow;
	return 0;
}

void kernel_flow_free(struct kernel_flow *f)
{
	if (!f)
		return;
	VEC_FREE(&f->v);
	VEC_FREE(&f->warnings);
	free(f);
}

const struct kernel_flow_fact *kernel_flow_between(const struct kernel_flow *f, uint64_t lo,
						   uint64_t hi, size_t *ret_n)
{
	size_t first = SEARCH((size_t)0, f->v.n, i, f->v.p[i].at < lo);
	size_t end = SEARCH(first, f->v.n, i, f->v.p[i].at < hi);

	*ret_n = end - first;
	return end > first ? f->v.p + first : NULL;
}

bool kernel_flow_warns(const struct kernel_flow *f, uint64_t at)
{
	return f->warnings.n && bsearch(&at, f->warnings.p, f->warnings.n, sizeof(*f->warnings.p),
					compare_addresses);
}

/* ---- functions that never return ---- */

/* In the order of strcmp(). Most are objtool's (noreturns.h). */
static const char *const never_return[] = {
	"__fortify_panic",
	"__invalid_creds",
	"__module_put_and_kthread_exit",
	"__stack_chk_fail",
	"__ubsan_handle_builtin_unreachable",
	"__x64_sys_exit",
	"__x64_sys_exit_group",
	"acpi_processor_ffh_play_dead",
	"arch_call_rest_init",
	"arch_cpu_idle_dead",
	"btrfs_assertfail",
	"cpu_bringup_and_idle",
	"cpu_startup_entry",
	"do_exit",
	"do_group_exit",
	"do_task_dead",
	"ex_handler_msr_mce",
	"fortify_panic",
	"hlt_play_dead",
	"hv_ghcb_terminate",
	"kthread_complete_and_exit",
	"kthread_exit",
	"machine_real_restart",
	"make_task_dead",
	"mpt_halt_firmware",
	"nmi_panic_self_stop",
	"panic",
	"panic_smp_self_stop",
	"rest_init",
	"rewind_stack_and_make_dead",
	"sev_es_terminate",
	"snp_abort",
	"start_kernel",
	"start_secondary",
	"stop_this_cpu",
	"usercopy_abort",
	"vpanic",
	"x86_64_start_kernel",
	"x86_64_start_reservations",
	"xen_cpu_bringup_again",
	"xen_start_kernel",
};

static int compare_name(const void *name, const void *entry)
{
	return strcmp(name, *(const char *const *)entry);
}

bool kernel_flow_never_returns(const char *name)
{
	return bsearch(name, never_return, sizeof(never_return) / sizeof(never_return[0]),
		       sizeof(never_return[0]), compare_name);
}
