/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Before anything is attached: is the running code the analysed code?
 *
 * 1. The file. It was opened when it was analysed and the descriptor kept, so it is the same file
 *    whatever was renamed since; its size and times tell whether it was written to in place. A
 *    process must map that very file, not an older one of the same name. If it does, its bytes are
 *    the analysed ones: they are the same pages.
 * 2. The memory. A live process may have been patched: by a debugger's breakpoints, by itself. At
 *    every site the bytes in memory are compared with the file's. An int3 alone may be another
 *    tracer's user probe, and user probes share one. A debugger's int3 is refused: the kernel would
 *    take it for our probe's, and remove it with our probe.
 *
 * Memory is read with process_vm_readv(), a thousand sites per call.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/scope.h"
#include "elf/elf.h"
#include "insn/insn.h"
#include "launch/permission.h"
#include "trace/place/in_kernel.h"
#include "trace/attach/kernel.h"
#include "trace/place/procmap.h"
#include "trace/attach/traced.h"

/* Sites per system call (IOV_MAX), and bytes of each: the longest instruction. */
#define BATCH    1024
#define INSN_MAX 15
#define INT3     0xcc

static int check_unchanged(const struct trace_file *f, struct cairn_err *err)
{
	struct stat now;

	if (f->fd < 0 || fstat(f->fd, &now))
		return err_set(err, -EBADF, "%s: %s", f->shown, strerror(errno));
	if (now.st_size == f->stat.st_size && now.st_mtim.tv_sec == f->stat.st_mtim.tv_sec &&
	    now.st_mtim.tv_nsec == f->stat.st_mtim.tv_nsec)
		return 0;
	return err_set(err, -ESTALE, "%s was written to since it was analysed", f->shown);
}

static const struct procmap_entry *entry_of(const struct procmap *m, const struct trace_file *f,
					    uint64_t off)
{
	for (size_t i = 0; i < m->e.n; i++) {
		const struct procmap_entry *e = &m->e.p[i];
		if (off >= e->off.v && off - e->off.v < e->hi.v - e->lo.v &&
		    procmap_is_file(m, e, &f->stat))
			return e;
	}
	return NULL;
}

/*
 * Returns the error that names what the process maps instead of @f; 0: it may map it later, or
 * another process does.
 */
static int not_mapped(const struct cairn_trace *t, const struct procmap *m,
		      const struct trace_file *f, struct cairn_err *err)
{
	const char *name = strrchr(f->shown, '/');

	name = name ? name + 1 : f->shown;
	for (size_t i = 0; i < m->e.n; i++) {
		const char *mapped = strrchr(m->e.p[i].path, '/');
		if (strcmp(mapped ? mapped + 1 : m->e.p[i].path, name))
			continue;
		return err_set(err, -ESTALE, "process %d does not run %s but %s%s, another file",
			       m->pid, f->shown, m->e.p[i].path,
			       m->e.p[i].deleted ? " (deleted)" : "");
	}
	if (f->is_awaited || t->n_traced > 1)
		return 0;
	return err_set(err, -ENOENT, "process %d does not map %s", m->pid, f->shown);
}

static int tracer_of(int pid)
{
	char path[40], line[200];
	int tracer = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	SCOPE_FCLOSE FILE *f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "TracerPid: %d", &tracer) == 1)
			break;
	return tracer;
}

struct batch {
	struct trace_site *sites[BATCH];
	struct iovec here[BATCH], there[BATCH];
	const uint8_t *expected[BATCH];
	uint8_t found[BATCH][INSN_MAX];
	size_t n;
	int pid;
};

static const char *difference(struct cairn_trace *t, int debugger, const uint8_t *expected,
			      const uint8_t *found, size_t n)
{
	if (!memcmp(expected, found, n))
		return NULL;
	bool breakpoint = found[0] == INT3 && !memcmp(expected + 1, found + 1, n - 1);
	if (breakpoint && !debugger)
		return NULL;
	if (breakpoint)
		return arena_printf(&t->arena, "process %d, a debugger, has a breakpoint there",
				    debugger);
	return arena_printf(&t->arena,
			    "the process's memory differs from the file there: it has %02x %02x "
			    "%02x, the file %02x %02x %02x",
			    found[0], found[1], found[2], expected[0], expected[1], expected[2]);
}

static int refuse(struct cairn_trace *t, struct trace_site *site, const char *why,
		  struct cairn_err *err)
{
	struct trace_probe *p = t->probes.p[site->pub.probe];

	site->pub.refused = why;
	p->pub.n_ready--;
	p->pub.n_refused++;
	if (trace_may_leave_out(t, site))
		return 0;
	return err_set(err, -ESTALE, "%s at 0x%llx: %s", p->pub.function->name,
		       (unsigned long long)site->pub.at.v, why);
}

static int check_batch(struct cairn_trace *t, struct batch *b, int debugger, struct cairn_err *err)
{
	size_t wanted = 0;

	for (size_t i = 0; i < b->n; i++)
		wanted += b->there[i].iov_len;
	ssize_t n = process_vm_readv(b->pid, b->here, b->n, b->there, b->n, 0);
	if (n < 0 && errno == EPERM)
		return permission_error(err, "reading the process's memory");
	if (n < 0 && errno == ESRCH)
		return err_set(err, -ESRCH, "process %d has ended", b->pid);
	if (n < 0 || (size_t)n != wanted)
		return err_set(err, -ESTALE, "the code of process %d cannot be read: %s", b->pid,
			       n < 0 ? strerror(errno) : "parts of it are not mapped any more");
	for (size_t i = 0; i < b->n; i++) {
		const char *why =
			difference(t, debugger, b->expected[i], b->found[i], b->there[i].iov_len);
		int e = why ? refuse(t, b->sites[i], why, err) : 0;
		if (e < 0)
			return e;
	}
	b->n = 0;
	return 0;
}

static void add_to_batch(struct batch *b, struct trace_site *site, const struct procmap_entry *e,
			 const uint8_t *code, size_t n)
{
	uint64_t addr = e->lo.v + (site->pub.off.v - e->off.v);
	size_t i = b->n++;

	n = n < e->hi.v - addr ? n : e->hi.v - addr;
	b->sites[i] = site;
	b->expected[i] = code;
	b->here[i] = (struct iovec){b->found[i], n};
	b->there[i] = (struct iovec){(void *)(uintptr_t)addr, n};
}

/*
 * Length of the instruction at a site: patches after it do not matter.
 */
static size_t code_of(const struct trace_file *f, const struct trace_site *site,
		      const uint8_t **ret)
{
	struct insn insn;
	size_t n;

	if (!elf_code_at(binary_main(f->bin), site->pub.at, ret, &n) ||
	    !insn_decode(*ret, n, 0, &insn))
		return 0;
	return insn.len;
}

static int check_memory(struct cairn_trace *t, const struct procmap *m, struct cairn_err *err)
{
	SCOPE_FREE struct batch *b = malloc(sizeof(*b));
	const struct procmap_entry *entry = NULL;
	const struct trace_file *file = NULL;
	int debugger = tracer_of(m->pid), e = 0;

	if (!b)
		return err_nomem(err, "the process's code");
	b->n = 0;
	b->pid = m->pid;
	for (size_t i = 0; i < t->sites.n && e == 0; i++) {
		struct trace_site *site = t->sites.p[i];
		const struct trace_file *f = t->probes.p[site->pub.probe]->file;
		uint64_t off = site->pub.off.v;
		const uint8_t *code;
		if (site->pub.refused)
			continue;
		/* Nearly always the same mapping as before. */
		if (f != file || !entry || off < entry->off.v ||
		    off - entry->off.v >= entry->hi.v - entry->lo.v)
			entry = entry_of(m, f, off);
		file = f;
		if (!entry) {
			e = not_mapped(t, m, f, err);
			continue;
		}
		size_t n = code_of(f, site, &code);
		if (!n)
			continue;
		add_to_batch(b, site, entry, code, n);
		if (b->n == BATCH)
			e = check_batch(t, b, debugger, err);
	}
	return e == 0 && b->n ? check_batch(t, b, debugger, err) : e;
}

static int verify_process(struct cairn_trace *t, int pid, struct cairn_err *err)
{
	struct procmap m;
	int e = procmap_read(pid, &m, err);

	if (e == -EPERM)
		e = permission_error(err, "looking at the process");
	else if (e == 0)
		e = check_memory(t, &m, err);
	procmap_free(&m);
	return e;
}

int verify_files(struct cairn_trace *t, struct cairn_err *err)
{
	int e = 0;

	if (in_kernel(t))
		return 0;
	for (size_t i = 0; i < t->files.n && e == 0; i++)
		e = check_unchanged(t->files.p[i], err);
	/* Before its exec a command maps none of the files to be probed. */
	if (e < 0 || t->child.pid)
		return e;
	for (size_t i = 0; i < t->n_traced && e == 0; i++)
		e = verify_process(t, t->traced[i].pid, err);
	return e;
}
