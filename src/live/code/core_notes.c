/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The notes of a core file
 *
 * The kernel writes the notes of the thread that got the signal first, with those of the whole
 * process after its registers, then the other threads. gcore writes an NT_SIGINFO for each thread.
 *
 *	OFFSET  SIZE  NT_PRSTATUS, one per thread       OFFSET  SIZE  NT_SIGINFO
 *	0       4     si_signo                          0       4     si_signo
 *	12      2     signal                            8       4     si_code
 *	32      4     tid                               16      8     si_addr, of a fault
 *	112     216   struct user_regs_struct;
 *	        272   of AArch64 struct user_pt_regs
 *							OFFSET  SIZE  NT_AUXV, pairs
 *	OFFSET  SIZE  NT_PRPSINFO                       0       8     AT_*
 *	24      4     pid                               8       8     value
 *	40      16    name of the main thread
 *
 *	OFFSET  SIZE  NT_ARM_PAC_MASK, of "LINUX"
 *	0       8     bits of a pointer to data that a signature takes
 *	8       8     of one to code
 *
 *	OFFSET  SIZE  NT_FILE
 *	0       8     number n of mappings
 *	8       8     unit of their file offsets, bytes
 *	16      24    n times: from, to, offset
 *	..            n strings: paths
 *
 * A note that does not fit ends the list; the notes before it count.
 */
#include <elf.h>
#include <signal.h>
#include <string.h>

#include "base/err.h"
#include "code/core.h"

static int read_prstatus(struct core *core, struct cursor *c, struct cairn_err *err)
{
	struct core_thread t = {0};
	cur_skip(c, 12);
	t.signal = cur_u16(c);
	cur_skip(c, 18);
	t.tid = (int)cur_u32(c);
	cur_skip(c, 76);
	for (size_t i = 0; i < (core->machine == EM_AARCH64 ? 34 : 27); i++)
		t.user[i] = cur_u64(c);
	if (c->failed)
		return 0;
	/*
	 * The kernel gives every thread the signal that killed the process; it was the first one's.
	 */
	if (core->threads.n)
		t.signal = 0;
	return VEC_ADD(&core->threads, t) ? 0 : err_nomem(err, "the threads of a core file");
}

/* They follow the NT_PRSTATUS of their thread. */
static void read_vectors(struct core *core, struct cursor *c)
{
	uint8_t bytes[VECTORS_FXSAVE];
	const uint8_t *at = cur_bytes(c, sizeof(bytes));
	if (c->failed || !core->threads.n || core->machine != EM_X86_64)
		return;
	memcpy(bytes, at, sizeof(bytes));
	vectors_take(&core->threads.p[core->threads.n - 1].vectors, bytes);
}

/*
 * si_code above 0: the kernel found it; SI_KERNEL is a fault whose address the processor does not
 * report.
 */
static bool is_fault(uint32_t signal, int32_t code)
{
	return (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
		signal == SIGTRAP) &&
	       code > 0 && code != SI_KERNEL;
}

static void read_siginfo(struct core *core, struct cursor *c)
{
	uint32_t signal = cur_u32(c);
	cur_skip(c, 4);
	int32_t code = (int32_t)cur_u32(c);
	cur_skip(c, 4);
	uint64_t addr = cur_u64(c);
	if (c->failed || !core->threads.n)
		return;
	struct core_thread *t = &core->threads.p[core->threads.n - 1];
	t->signal = (int)signal;
	t->has_fault = is_fault(signal, code);
	t->fault = addr;
}

static void read_psinfo(struct core *core, struct cursor *c)
{
	cur_skip(c, 24);
	uint32_t pid = cur_u32(c);
	cur_skip(c, 12);
	const uint8_t *name = cur_bytes(c, 16);
	if (c->failed)
		return;
	core->pid = (int)pid;
	memcpy(core->comm, name, 16);
}

static void read_auxv(struct core *core, struct cursor *c)
{
	while (cur_left(c) >= 16) {
		uint64_t type = cur_u64(c), value = cur_u64(c);
		if (type == AT_NULL)
			return;
		if (type == AT_SYSINFO_EHDR)
			core->vdso = value;
		if (type == AT_PHDR)
			core->phdr = value;
		if (type == AT_ENTRY)
			core->entry = value;
		if (type == AT_PHNUM)
			core->phnum = value;
		if (type == AT_EXECFN)
			core->execfn = value;
	}
}

static int read_files(struct core *core, struct cursor *c, struct cairn_err *err)
{
	uint64_t n = cur_u64(c), unit = cur_u64(c);
	struct cursor paths = *c;
	if (c->failed || n > cur_left(c) / 24)
		return 0;
	cur_skip(&paths, n * 24);
	for (uint64_t i = 0; i < n; i++) {
		struct core_file f = {.lo = cur_u64(c),
				      .hi = cur_u64(c),
				      .off = cur_u64(c) * unit,
				      .path = cur_str(&paths)};
		if (paths.failed)
			return 0;
		/* One without a name is memory. */
		if (f.lo < f.hi && f.path[0] && !VEC_ADD(&core->files, f))
			return err_nomem(err, "the files of a core file");
	}
	return 0;
}

/* One per thread, the same for all. */
static void read_signature(struct core *core, struct cursor *c)
{
	cur_skip(c, 8);
	uint64_t mask = cur_u64(c);
	if (!c->failed)
		core->signature = mask;
}

static int read_note(struct core *core, uint32_t type, struct cursor desc, struct cairn_err *err)
{
	switch (type) {
	case NT_PRSTATUS:
		return read_prstatus(core, &desc, err);
	case NT_PRFPREG:
		read_vectors(core, &desc);
		return 0;
	case NT_FILE:
		return read_files(core, &desc, err);
	case NT_SIGINFO:
		read_siginfo(core, &desc);
		return 0;
	case NT_PRPSINFO:
		read_psinfo(core, &desc);
		return 0;
	case NT_AUXV:
		read_auxv(core, &desc);
		return 0;
	}
	return 0;
}

int core_read_notes(struct core *core, struct cursor notes, struct cairn_err *err)
{
	int rc = 0;
	while (rc == 0 && cur_left(&notes) >= sizeof(Elf64_Nhdr)) {
		uint64_t n_name = cur_u32(&notes), n_desc = cur_u32(&notes);
		uint32_t type = cur_u32(&notes);
		const uint8_t *name = cur_bytes(&notes, n_name);
		cur_skip(&notes, -n_name & 3);
		struct cursor desc = cur_sub(&notes, n_desc);
		if (notes.failed)
			return 0;
		/* The last one may have no padding after it. */
		if (cur_left(&notes) >= (-n_desc & 3))
			cur_skip(&notes, -n_desc & 3);
		if (n_name == 5 && !memcmp(name, "CORE", 5))
			rc = read_note(core, type, desc, err);
		if (n_name == 6 && !memcmp(name, "LINUX", 6) && type == NT_ARM_PAC_MASK)
			read_signature(core, &desc);
	}
	return rc;
}
