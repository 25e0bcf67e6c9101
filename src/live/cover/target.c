/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The function that a probe of the kernel's interface is at
 *
 *	kprobe      a name, or an address
 *	uprobe      a file, and an offset in it: the function whose symbol begins there
 *	fentry      a number among the kernel's types
 */
#include "cover/command.h"

#include <errno.h>
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <bpf/btf.h>

#include "base/err.h"
#include "elf/elf.h"
#include "kernel/symbols.h"

struct finding {
	const struct request *request;
	const struct loaded_program *program;
	pid_t pid;
	struct arena *arena;
	struct target *ret;
};

static int no_memory(struct cairn_err *err)
{
	return err_nomem(err, "a function's name");
}

/* ---- kprobe ---- */

static int find_address(struct finding *f, uint64_t at)
{
	struct kernel_names names = {0};
	const struct kernel_symbol *s = NULL;
	int e = kernel_names_read(&names, "/proc/kallsyms");

	if (!e)
		s = kernel_names_find(&names, at);
	if (s && s->at == at)
		f->ret->section.target =
			arena_printf(f->arena, "%s%s%s", s->module ? s->module : "",
				     s->module ? ":" : "", s->name);
	f->ret->is_of_no_function = s && s->at != at;
	if (!s)
		f->ret->why = "the function at its address is not known";
	kernel_names_fini(&names);
	return e || (s && s->at == at && !f->ret->section.target) ? -ENOMEM : 0;
}

static int find_kprobe(struct finding *f)
{
	const struct request *r = f->request;

	f->ret->section.of_kernel = true;
	if (!r->n)
		return find_address(f, r->head.at);
	f->ret->is_of_no_function = r->head.at != 0;
	f->ret->section.target = arena_printf(f->arena, "%.*s", (int)r->n, (const char *)r->bytes);
	return f->ret->section.target ? 0 : -ENOMEM;
}

/* ---- uprobe ---- */

/* A file of the process, as this one finds it. */
static const char *path_of(const struct finding *f)
{
	const char *theirs = arena_printf(f->arena, "/proc/%d/root%.*s", (int)f->pid,
					  (int)f->request->n, (const char *)f->request->bytes);
	struct stat a, b;

	if (!theirs)
		return NULL;
	const char *ours = strchr(theirs + strlen("/proc/"), '/') + strlen("/root");
	bool is_same = !stat(theirs, &a) && !stat(ours, &b) && a.st_dev == b.st_dev &&
		       a.st_ino == b.st_ino;
	return is_same ? ours : theirs;
}

static bool is_better(const struct elf_symbol *s, const struct elf_symbol *than)
{
	return !than || (s->binding != STB_LOCAL && than->binding == STB_LOCAL);
}

/* Sets @ret_within if a function has it and does not begin there. */
static const struct elf_symbol *symbol_at(struct elf *e, uint64_t at, bool *ret_within)
{
	const struct elf_symbol *symbols, *best = NULL;
	size_t n;

	*ret_within = false;
	if (elf_symbols(e, &symbols, &n, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < n; i++) {
		const struct elf_symbol *s = &symbols[i];
		bool is_function = s->name && (s->type == STT_FUNC || s->type == STT_GNU_IFUNC);
		*ret_within |= is_function && s->at.v < at && at - s->at.v < s->size;
		if (is_function && s->at.v == at && is_better(s, best))
			best = s;
	}
	return best;
}

static int find_in(struct finding *f, const char *path, const struct cairn_binary *bin)
{
	const struct cairn_foff off = {f->request->head.at};
	const struct elf_symbol *s = NULL;
	struct cairn_vaddr at;
	bool is_within = false;

	if (cairn_binary_vaddr(bin, off, &at))
		s = symbol_at(binary_symbol_file(bin), at.v, &is_within);
	if (s) {
		f->ret->section.target = arena_printf(f->arena, "%s:%s", path, s->name);
		return f->ret->section.target ? 0 : -ENOMEM;
	}
	f->ret->is_of_no_function = is_within;
	f->ret->why = "no symbol of a function is at its offset";
	return 0;
}

static int find_uprobe(struct finding *f)
{
	const char *path = path_of(f);
	struct cairn_binary *bin;

	if (!path)
		return -ENOMEM;
	int e = cairn_binary_open(path, NULL, &bin, NULL);
	if (e < 0) {
		f->ret->why = "its file cannot be read";
		return e == -ENOMEM ? e : 0;
	}
	e = find_in(f, path, bin);
	cairn_binary_close(bin);
	return e;
}

/* ---- fentry ---- */

static const char *name_of(struct finding *f, const struct btf *btf, const char *module)
{
	const struct btf_type *t = btf ? btf__type_by_id(btf, f->program->function) : NULL;
	const char *name = t ? btf__name_by_offset(btf, t->name_off) : NULL;

	return name ? arena_printf(f->arena, "%s%s%s", module, *module ? ":" : "", name) : NULL;
}

static int find_fentry(struct finding *f)
{
	char module[64];
	struct btf *base = btf__load_vmlinux_btf(), *of_module = NULL;

	f->ret->section.of_kernel = true;
	if (base && typed_module(f->program->of_btf, module, sizeof(module))) {
		if (*module)
			of_module = btf__load_from_kernel_by_id_split(f->program->of_btf, base);
		f->ret->section.target = name_of(f, *module ? of_module : base, module);
	}
	if (!f->ret->section.target)
		f->ret->why = "its function is not among the kernel's types";
	btf__free(of_module);
	btf__free(base);
	return 0;
}

/* ---- all ---- */

static enum section_kind kind_of(const struct finding *f)
{
	switch (f->request->head.probe) {
	case CAIRN_COVER_KPROBE:
		return SECTION_KPROBE;
	case CAIRN_COVER_UPROBE:
		return SECTION_UPROBE;
	case CAIRN_COVER_SEVERAL:
		return SECTION_PATTERN;
	case CAIRN_COVER_TRACEPOINT:
		return SECTION_TRACEFS;
	case CAIRN_COVER_FENTRY:
		return f->program->attach_type == BPF_TRACE_FENTRY ? SECTION_FENTRY
								   : SECTION_RETURN;
	}
	return SECTION_RETURN;
}

static const char *prefix_of(const struct finding *f)
{
	switch (f->request->head.probe) {
	case CAIRN_COVER_KPROBE:
		return "kprobe/";
	case CAIRN_COVER_UPROBE:
		return "uprobe/";
	case CAIRN_COVER_KPROBE_RETURN:
		return "kretprobe/";
	case CAIRN_COVER_UPROBE_RETURN:
		return "uretprobe/";
	case CAIRN_COVER_FENTRY:
		return f->ret->section.kind == SECTION_FENTRY ? "fentry/" : "fexit/";
	case CAIRN_COVER_SEVERAL:
		return "a link for several functions";
	}
	return "an event of tracefs";
}

static int find(struct finding *f)
{
	switch (f->request->head.probe) {
	case CAIRN_COVER_KPROBE:
	case CAIRN_COVER_KPROBE_RETURN:
		return find_kprobe(f);
	case CAIRN_COVER_UPROBE:
	case CAIRN_COVER_UPROBE_RETURN:
		return find_uprobe(f);
	case CAIRN_COVER_FENTRY:
		return find_fentry(f);
	}
	f->ret->why = section_obstacle(f->ret->section.kind);
	return 0;
}

/* Programs at entries and returns of functions; others, such as those of a tracepoint, are not ours. */
static bool is_of_function(const struct loaded_program *p)
{
	return p->type == BPF_PROG_TYPE_KPROBE ||
	       (p->type == BPF_PROG_TYPE_TRACING &&
		(p->attach_type == BPF_TRACE_FENTRY || p->attach_type == BPF_TRACE_FEXIT ||
		 p->attach_type == BPF_MODIFY_RETURN));
}

int target_find(const struct request *r, const struct loaded_program *program, pid_t pid,
		struct arena *arena, struct target *ret, struct cairn_err *err)
{
	struct finding f = {r, program, pid, arena, ret};

	*ret = (struct target){.is_of_no_function = !is_of_function(program) || program->is_idle};
	if (ret->is_of_no_function)
		return 0;
	ret->section.kind = kind_of(&f);
	int e = find(&f);
	if (e < 0)
		return no_memory(err);
	ret->shown = arena_printf(arena, "%s%s", prefix_of(&f),
				  ret->section.target ? ret->section.target : "");
	return ret->shown ? 0 : no_memory(err);
}
