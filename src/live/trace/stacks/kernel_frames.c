/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Frames of the kernel
 *
 * The kernel gives addresses as they are. In the code of a source of the trace (the kernel, a
 * module), a frame has the source's link-time address, and is named like any other, inlined calls
 * included. Elsewhere the kernel's list of symbols has a name.
 *
 * An address is the one to return to. Where an interrupt or a fault came in it is the interrupted
 * instruction instead; the entry code of these is known by its names.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "trace/stacks/impl.h"

/* How often the list of symbols is read again, for modules that were loaded meanwhile. */
#define NAMES_EVERY_NS UINT64_C(1000000000)

static const char is_unlisted[] = "/proc/kallsyms has no function there";
static const char is_hidden[] = "/proc/kallsyms does not show addresses (kernel.kptr_restrict)";

/* Without permission or memory no frame has a name of it. */
static const struct kernel_symbol *symbol_at(struct trace_stacks *s, uint64_t at)
{
	if (!s->kernel_names.is_read && !kernel_names_read(&s->kernel_names, "/proc/kallsyms"))
		s->names_read_ns = trace_now_ns();
	const struct kernel_symbol *symbol = kernel_names_find(&s->kernel_names, at);
	s->misses_names |= !symbol && !s->kernel_names.is_hidden;
	return symbol;
}

void stacks_refresh_kernel(struct trace_stacks *s)
{
	if (!s->misses_names || trace_now_ns() - s->names_read_ns < NAMES_EVERY_NS)
		return;
	s->misses_names = false;
	kernel_names_fini(&s->kernel_names);
}

/* The source in whose code it is. A module that was unloaded is none. */
static const struct trace_file *source_at(const struct cairn_trace *t, uint64_t at,
					  struct cairn_vaddr *ret)
{
	for (size_t i = 0; i < t->files.n; i++) {
		const struct trace_file *f = t->files.p[i];
		if (cairn_kernel_link_address(f->kernel, at, ret) &&
		    (!f->module || cairn_kernel_is_there(f->kernel)))
			return f;
	}
	return NULL;
}

/* NULL: it has none. */
static const char *name_at(struct cairn_trace *t, uint64_t at)
{
	struct cairn_vaddr link, start;
	const struct trace_file *f = source_at(t, at, &link);
	const struct kernel_symbol *symbol = f ? NULL : symbol_at(t->stacks, at);
	const char *name = NULL;
	bool has_name;

	if (!f)
		return symbol ? symbol->name : NULL;
	has_name = f->kernel_sidecar
			   ? cairn_sidecar_symbol_of(f->kernel_sidecar, link, &name, &start)
			   : cairn_binary_symbol_of(f->bin, link, &name, &start);
	return has_name ? name : NULL;
}

static bool begins_with_one(const char *name, const char *const *begins, size_t n)
{
	for (size_t i = 0; name && i < n; i++)
		if (!strncmp(name, begins[i], strlen(begins[i])))
			return true;
	return false;
}

/* The code that interrupts and faults enter the kernel by, and do not call. */
static bool is_of_interrupt(const char *name)
{
	static const char *const begins[] = {"asm_exc_", "asm_sysvec_", "asm_common_interrupt",
					     "asm_spurious_interrupt"};

	return begins_with_one(name, begins, sizeof(begins) / sizeof(begins[0]));
}

/* The code that a task of the kernel begins in. */
static bool is_outermost(const char *name)
{
	static const char *const begins[] = {
		"entry_",       "asm_",           "ret_from_fork",   "secondary_startup",
		"x86_64_start", "common_startup", "start_secondary", "start_kernel"};

	return begins_with_one(name, begins, sizeof(begins) / sizeof(begins[0]));
}

static bool is_at_site(const struct cairn_trace *t, size_t i)
{
	return t->stacks->of == STACKS_WHOLE && i == 0;
}

/* Whether frame @i was interrupted by the one before it. */
static bool is_interrupted(struct cairn_trace *t, const struct stack_kept *k, size_t i)
{
	return i > 1 && is_of_interrupt(name_at(t, k->in->frames.p[k->first + i - 1] - 1));
}

/* A symbol of the kernel's list, as a frame has it; until the next stack is shown. */
static void name_by_list(struct trace_stacks *s, size_t i, struct cairn_stack_frame *f)
{
	const struct kernel_symbol *symbol = symbol_at(s, f->at.v);

	f->path = symbol && symbol->module ? symbol->module : "[kernel]";
	f->unnamed = s->kernel_names.is_hidden ? is_hidden : is_unlisted;
	if (!symbol)
		return;
	s->kernel_functions[i] = (struct cairn_frame){.function = symbol->name};
	f->functions = &s->kernel_functions[i];
	f->n_functions = 1;
	f->has_off = true;
	f->off = f->at.v - symbol->at;
	f->unnamed = NULL;
}

static void name_by_source(const struct trace_file *file, struct cairn_stack_frame *f)
{
	f->path = file->in_brackets;
	f->bin = file->bin;
	f->sidecar = file->kernel_sidecar;
}

void stacks_show_kernel(struct cairn_trace *t, const struct stack_kept *k, size_t i,
			struct cairn_stack_frame *f)
{
	uint64_t frame = k->in->frames.p[k->first + i];
	const struct trace_site *site = is_at_site(t, i) ? stacks_site_of_frame(t, frame) : NULL;
	const struct trace_file *file;

	f->is_exact = site || is_interrupted(t, k, i);
	f->pc.v = site ? site->pub.running : frame;
	f->at.v = f->pc.v - !f->is_exact;
	file = source_at(t, f->at.v, &f->vaddr);
	if (file)
		name_by_source(file, f);
	else
		name_by_list(t->stacks, i, f);
}

const struct trace_site *stacks_site_of_frame(const struct cairn_trace *t, uint64_t frame)
{
	uint64_t number = frame & ~WALK_KERNEL;

	return number < t->sites.n ? t->sites.p[number] : NULL;
}

/* ---- the end ---- */

void stacks_check_kernel(struct cairn_trace *t, struct stack_kept *k)
{
	uint64_t last = k->n_kernel > 1 ? k->in->frames.p[k->first + k->n_kernel - 1] : 0;

	if (!last || k->is_checked)
		return;
	k->is_checked = true;
	if (k->end == WALK_END_LIMIT && k->n == k->n_kernel)
		return;
	const char *name = name_at(t, last - 1);
	if (is_outermost(name) || (!name && t->stacks->kernel_names.is_hidden))
		return;
	k->n = k->n_kernel;
	k->end = WALK_END_UNDESCRIBED;
}

bool stacks_kernel_is_cut(const struct stack_kept *k)
{
	return k->n_kernel == WALK_MAX_KERNEL && k->n == k->n_kernel && k->end == WALK_END_LIMIT;
}

const char *stacks_kernel_end(const struct stack_kept *k, uint8_t end)
{
	if (!k->n_kernel || k->n != k->n_kernel)
		return NULL;
	switch (end) {
	case WALK_END_LOST:
		return "the kernel cannot walk on from an instruction of one byte that moves the "
		       "stack pointer, or that could not be read";
	case WALK_END_UNDESCRIBED:
		return "the kernel cannot walk on from its own code there";
	case WALK_END_NO_PROCESS:
		return "the program was being replaced (execve)";
	case WALK_END_LIMIT:
		return stacks_kernel_is_cut(k) ? "the kernel walks no further than 127 frames"
					       : NULL;
	default:
		return NULL;
	}
}
