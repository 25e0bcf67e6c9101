/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cairn/code.h: the mapped files, and the code made at run time, in one list
 *
 * Everything is read while the process goes on. An entry's epoch shows if it changed meanwhile;
 * then all of it is read again, a bounded number of times. A process that registers faster than it
 * can be read is reported as unsteady.
 */
#include <cairn/code.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/opts.h"
#include "code/core.h"
#include "code/runtime.h"
#include "code/timed_read.h"
#include "elf/elf.h"

enum { MAX_ROUNDS = 4 };

struct cairn_code {
	int pid; /* 0: a core file */
	struct core *core;
	struct core_search search;
	struct core_memory core_memory;
	struct code_space *space;
	struct code_runtime *rt;
	/* since the last refresh */
	struct arena arena;
	VEC(struct cairn_code_range *) files;
	VEC(const struct cairn_code_range *) all; /* by address, then by source */
	const char *unsteady;                     /* NULL: it is not */
	struct timed_read stall;
	char timed_read_note[CAIRN_ERR_MSG_MAX];
};

/* ---- mapped files ---- */

static bool is_same_file(const struct code_mapping *a, const struct code_mapping *b)
{
	return a->ino == b->ino && a->dev == b->dev && !strcmp(a->path, b->path);
}

/* .debug_frame alone counts: it is read, too. */
static bool has_cfi(const struct cairn_binary *bin)
{
	const struct elf *elf = binary_main(bin);
	for (size_t i = 0; i < elf_n_sections(elf); i++) {
		const struct elf_section *s = elf_section_at(elf, i);
		if (s->size && (!strcmp(s->name, ".eh_frame") || !strcmp(s->name, ".debug_frame")))
			return true;
	}
	return false;
}

static int describe_file(struct cairn_code *code, const struct code_mapping *m,
			 struct cairn_code_range *r, struct cairn_err *err)
{
	const struct code_image *image;
	struct cairn_vaddr at;
	int rc = code_space_peek(code->space, (struct cairn_addr){m->lo}, &image, &at, err);
	if (rc < 0)
		return rc;
	r->owner = arena_strdup(&code->arena, m->path);
	if (image && image->bin && has_cfi(image->bin))
		r->unwind = CAIRN_CODE_UNWIND_FILE;
	if (image && !image->bin)
		r->why = arena_strdup(&code->arena, image->note);
	else if (m->is_deleted)
		r->why = "the file was deleted or replaced since";
	return 0;
}

static int add_file(struct cairn_code *code, const struct code_mapping *m, struct cairn_err *err)
{
	bool is_vdso = !strcmp(m->path, "[vdso]");
	struct cairn_code_range *r = arena_alloc(&code->arena, sizeof(*r));
	if (!r || !VEC_ADD(&code->files, r))
		return err_nomem(err, "the ranges of a process");
	*r = (struct cairn_code_range){.lo = {m->lo},
				       .hi = {m->hi},
				       .is_trusted = true,
				       .source = is_vdso ? CAIRN_CODE_VDSO : CAIRN_CODE_FILE};
	return describe_file(code, m, r, err);
}

/*
 * Mappings that touch and are one file's are one range: permissions of a part of it may have been
 * changed.
 */
static int add_files(struct cairn_code *code, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(code->space);
	const struct code_mapping *last = NULL;
	for (size_t i = 0; i < maps->p.n; i++) {
		const struct code_mapping *m = &maps->p.p[i];
		if (!m->is_executable || code_is_anonymous(m) || m->path[0] == 0 ||
		    !strcmp(m->path, "[vsyscall]"))
			continue;
		if (last && last->hi == m->lo && is_same_file(last, m)) {
			code->files.p[code->files.n - 1]->hi.v = m->hi;
		} else {
			int rc = add_file(code, m, err);
			if (rc < 0)
				return rc;
		}
		last = m;
	}
	return 0;
}

/* ---- all of them ---- */

static int by_address(const void *a, const void *b)
{
	const struct cairn_code_range *x = *(const struct cairn_code_range *const *)a,
				      *y = *(const struct cairn_code_range *const *)b;
	if (x->lo.v != y->lo.v)
		return x->lo.v < y->lo.v ? -1 : 1;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return x->generation < y->generation ? -1 : x->generation > y->generation;
}

/* Described addresses, joined if they touch. */
struct described {
	VEC(struct code_mapping) p;
};

static bool describe_all(const struct code_runtime *rt, struct described *ret)
{
	bool ok = true;
	for (size_t i = 0; ok && i < code_runtime_n_ranges(rt); i++) {
		const struct cairn_code_range *r = code_runtime_range(rt, i);
		struct code_mapping *last = ret->p.n ? &ret->p.p[ret->p.n - 1] : NULL;
		bool counts = r->source == CAIRN_CODE_ELF || r->source == CAIRN_CODE_JIT ||
			      r->source == CAIRN_CODE_GDB;
		if (!counts || !r->is_trusted || r->is_removed)
			continue;
		if (!last || last->hi < r->lo.v)
			ok = VEC_ADD(&ret->p,
				     ((struct code_mapping){.lo = r->lo.v, .hi = r->hi.v}));
		else if (last->hi < r->hi.v)
			last->hi = r->hi.v;
	}
	return ok;
}

/* Memory that is completely described is not also listed as undescribed memory. */
static bool is_said_by_others(const struct described *d, const struct cairn_code_range *r)
{
	const struct code_maps maps = {.p = {.p = d->p.p, .n = d->p.n}};
	const struct code_mapping *found =
		r->source == CAIRN_CODE_ANONYMOUS ? code_maps_find(&maps, r->lo.v) : NULL;
	return found && found->hi >= r->hi.v;
}

static int list(struct cairn_code *code, struct cairn_err *err)
{
	struct described described = {0};
	bool ok = describe_all(code->rt, &described);
	for (size_t i = 0; ok && i < code->files.n; i++)
		ok = VEC_ADD(&code->all, code->files.p[i]);
	for (size_t i = 0; ok && i < code_runtime_n_ranges(code->rt); i++) {
		const struct cairn_code_range *r = code_runtime_range(code->rt, i);
		ok = is_said_by_others(&described, r) || VEC_ADD(&code->all, r);
	}
	if (ok && code->all.n)
		qsort(code->all.p, code->all.n, sizeof(*code->all.p), by_address);
	VEC_FREE(&described.p);
	return ok ? 0 : err_nomem(err, "the ranges of a process");
}

static int settle(struct cairn_code *code, struct cairn_err *err)
{
	int rc = code_runtime_prepare(code->rt, code->space, err);
	if (rc == 0)
		rc = code_runtime_freeze(code->rt, err);
	if (rc == 0)
		rc = code_runtime_resolve(code->rt, err);
	return rc < 0 ? rc : code_runtime_load_all(code->rt, err);
}

/* Reports why memory cannot be read although /proc can: the latter needs fewer permissions. */
static int check_memory(const struct cairn_code *code, struct cairn_err *err)
{
	const struct code_maps *maps = code_space_maps(code->space);
	for (size_t i = 0; i < maps->p.n; i++) {
		char byte;
		if (!maps->p.p[i].is_readable || maps->p.p[i].path[0] == '[')
			continue;
		if (timed_read_read(code->pid, maps->p.p[i].lo, &byte, 1) == 1)
			return 0;
		if (errno == EPERM)
			return err_set(err, -EPERM, "the memory of process %d may not be read",
				       code->pid);
	}
	return 0;
}

static int refuse(int pid, int why, struct cairn_err *err)
{
	if (why != -EACCES && why != -EPERM)
		return why;
	return err_set(err, -EPERM,
		       "process %d may not be read: reading needs the same permission as ptrace: "
		       "the same user, or root (CAP_SYS_PTRACE), and kernel.yama.ptrace_scope 0 "
		       "unless it is a child",
		       pid);
}

static void forget(struct cairn_code *code)
{
	code->files.n = code->all.n = 0;
	arena_fini(&code->arena);
	arena_init(&code->arena);
	code->unsteady = NULL;
}

static int refresh(struct cairn_code *code, struct cairn_err *err)
{
	int rc = code->pid ? check_memory(code, err) : 0;
	for (int round = 0; rc == 0; round++) {
		rc = settle(code, err);
		if (rc < 0 || code_runtime_is_steady(code->rt))
			break;
		if (round + 1 == MAX_ROUNDS) {
			code->unsteady = "registrations change faster than they are read: those "
					 "that changed each time are not trusted";
			break;
		}
		if (code->pid)
			rc = code_space_refresh_pid(code->space, code->pid, err);
	}
	if (rc == 0)
		rc = add_files(code, err);
	return rc < 0 ? rc : list(code, err);
}

static int read_again(void *ctx, struct cairn_err *err)
{
	struct cairn_code *code = ctx;
	forget(code);
	int rc = code_space_refresh_pid(code->space, code->pid, err);
	return rc < 0 ? rc : refresh(code, err);
}

int cairn_code_refresh(struct cairn_code *code, struct cairn_err *err)
{
	if (!code->pid)
		return err_set(err, -EINVAL, "a core file does not change");
	return refuse(code->pid, timed_read_run(&code->stall, read_again, code, err), err);
}

/* ---- life ---- */

static int new_code(int pid, const struct cairn_code_opts *opts, struct cairn_code **ret,
		    struct cairn_err *err)
{
	struct cairn_code_opts o = {0};
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc < 0)
		return rc;
	struct cairn_code *code = calloc(1, sizeof(*code));
	if (!code)
		return err_nomem(err, "the code of a process");
	arena_init(&code->arena);
	code->pid = pid;
	code->search = (struct core_search){
		.sysroot = o.sysroot, .debug_dirs = o.debug_dirs, .n_debug_dirs = o.n_debug_dirs};
	*ret = code;
	return 0;
}

void cairn_code_close(struct cairn_code *code)
{
	/* Memory that an unfinished read may still fill is not freed. */
	if (!code || code->stall.is_left)
		return;
	code_runtime_free(code->rt);
	code_space_free(code->space);
	core_close(code->core);
	VEC_FREE(&code->files);
	VEC_FREE(&code->all);
	arena_fini(&code->arena);
	free(code);
}

static int read_first(struct cairn_code *code, struct cairn_err *err)
{
	code_runtime_list_removed(code->rt);
	return refresh(code, err);
}

static int open_process(void *ctx, struct cairn_err *err)
{
	struct cairn_code *code = ctx;
	int rc = code_space_open_pid(code->pid, 0, &code->space, err);
	if (rc == 0)
		rc = code_runtime_new(code_memory_of_process(code->pid), code->pid, EM_X86_64,
				      &code->rt, err);
	return rc < 0 ? rc : read_first(code, err);
}

/* Pages that stall are left out the next time; the read has to start again. */
static int open_once(const struct cairn_code_opts *opts, struct timed_read *stall,
		     struct cairn_code **ret, struct cairn_err *err)
{
	struct cairn_code *code = NULL;
	int rc = new_code(stall->pid, opts, &code, err);
	if (rc < 0)
		return rc;
	code->stall = *stall;
	rc = timed_read_run(&code->stall, open_process, code, err);
	*stall = code->stall;
	timed_read_note(stall, code->timed_read_note);
	if (rc < 0)
		cairn_code_close(code);
	else
		*ret = code;
	return rc;
}

int cairn_code_open_pid(int pid, const struct cairn_code_opts *opts, struct cairn_code **ret,
			struct cairn_err *err)
{
	struct timed_read stall = {.pid = pid};
	int rc;
	do
		rc = open_once(opts, &stall, ret, err);
	while (rc == -ETIMEDOUT && timed_read_may_retry(&stall));
	return refuse(pid, rc, err);
}

int cairn_code_open_core(const char *path, const struct cairn_code_opts *opts,
			 struct cairn_code **ret, struct cairn_err *err)
{
	struct cairn_code *code = NULL;
	int rc = new_code(0, opts, &code, err);
	if (rc < 0)
		return rc;
	rc = core_open_all(path, &code->search, &code->core, &code->space, err);
	code->core_memory = (struct core_memory){code->core, code->space};
	if (rc == 0)
		rc = code_runtime_new(code_memory_of_core_and_files(&code->core_memory), 0,
				      code->core->machine, &code->rt, err);
	if (rc == 0)
		rc = read_first(code, err);
	if (rc < 0)
		cairn_code_close(code);
	else
		*ret = code;
	return rc;
}

/* ---- questions ---- */

size_t cairn_code_n_ranges(const struct cairn_code *code)
{
	return code->all.n;
}

const struct cairn_code_range *cairn_code_range(const struct cairn_code *code, size_t i)
{
	return code->all.p[i];
}

static bool was_there(const struct cairn_code_range *r, uint64_t time_ns)
{
	if (!time_ns)
		return !r->is_removed;
	return r->since_ns <= time_ns && (!r->is_removed || r->until_ns > time_ns);
}

/*
 * Larger is better: trusted, a file, declared before assumed, the source, the younger registration.
 */
static bool is_better(const struct cairn_code_range *a, const struct cairn_code_range *b)
{
	bool a_is_assumed = a->unwind == CAIRN_CODE_UNWIND_ASSUMED,
	     b_is_assumed = b->unwind == CAIRN_CODE_UNWIND_ASSUMED;
	bool a_is_file = a->source <= CAIRN_CODE_VDSO, b_is_file = b->source <= CAIRN_CODE_VDSO;
	if (a->is_trusted != b->is_trusted)
		return a->is_trusted;
	if (a_is_file != b_is_file)
		return a_is_file;
	if (a_is_assumed != b_is_assumed)
		return b_is_assumed;
	if (a->source != b->source)
		return a->source < b->source;
	return a->since_ns != b->since_ns ? a->since_ns > b->since_ns
					  : a->generation > b->generation;
}

const struct cairn_code_range *cairn_code_find(const struct cairn_code *code, struct cairn_addr at,
					       uint64_t time_ns)
{
	const struct cairn_code_range *found = NULL;
	for (size_t i = 0; i < code->all.n && code->all.p[i]->lo.v <= at.v; i++) {
		const struct cairn_code_range *r = code->all.p[i];
		if (at.v < r->hi.v && was_there(r, time_ns) && (!found || is_better(r, found)))
			found = r;
	}
	return found;
}

struct asked {
	struct cairn_code *code;
	uint64_t at;
	struct code_found found;
};

static int ask(void *ctx, struct cairn_err *err)
{
	struct asked *a = ctx;
	return code_runtime_find(a->code->rt, a->at, &a->found, err);
}

int cairn_code_frames(struct cairn_code *code, struct cairn_addr at, struct cairn_frame *ret,
		      size_t max, uint64_t *ret_off, struct cairn_err *err)
{
	const struct cairn_code_range *range = cairn_code_find(code, at, 0);
	struct asked a = {.code = code, .at = at.v};
	if (!range || range->source <= CAIRN_CODE_VDSO)
		return 0;
	/* Names are read from the process on demand. */
	int rc = code->pid ? timed_read_run(&code->stall, ask, &a, err) : ask(&a, err);
	if (rc < 0)
		return rc;
	size_t n = a.found.n_functions < max ? a.found.n_functions : max;
	if (n)
		memcpy(ret, a.found.functions, n * sizeof(*ret));
	if (n && ret_off)
		*ret_off = a.found.off;
	return (int)n;
}

const char *cairn_code_note(const struct cairn_code *code, size_t i)
{
	const char *own[2];
	size_t n = 0;
	if (code->timed_read_note[0])
		own[n++] = code->timed_read_note;
	if (code->unsteady)
		own[n++] = code->unsteady;
	return i < n ? own[i] : code_runtime_note(code->rt, i - n);
}

uint64_t cairn_code_changes(const struct cairn_code *code)
{
	return code_runtime_changes(code->rt);
}
