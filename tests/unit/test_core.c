/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <ucontext.h>
#include <unistd.h>

#include <cairn/stack.h>

#include "alloc_fail.h"
#include "code/core.h"
#include "core_builder.h"
#include "noinline.h"
#include "workspace.h"

/* Places in struct user_regs_struct. */
enum { U_RBP = 4, U_RBX = 5, U_RIP = 16, U_RSP = 19 };

static void put_file(const struct workspace *w, const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(workspace_path(w, name), "wb");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* ---- reading ---- */

static const uint8_t stack_bytes[32] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
static const uint8_t more_bytes[16] = {0xaa, 0xbb};

/* Two threads, two mapped files, a stack in two segments that touch, memory that was not dumped. */
static void build_small(struct core_builder *b)
{
	const uint64_t crashed[27] = {[U_RIP] = 0x401000, [U_RSP] = 0x7000},
		       other[27] = {[U_RIP] = 0x402000};
	cb_thread(b, 12, SIGSEGV, crashed);
	cb_psinfo(b, 11, "server");
	cb_siginfo(b, SIGSEGV, SEGV_MAPERR, 0x10);
	cb_auxv(b, 0x9000);
	cb_thread(b, 11, SIGSEGV, other);
	cb_file(b, 0x401000, 0x403000, 0x1000, "/bin/server");
	cb_file(b, 0x600000, 0x601000, 0, "/lib/gone.so (deleted)");
	cb_memory(b,
		  (struct cb_segment){0x7000, 0x20, PF_R | PF_W, stack_bytes, sizeof(stack_bytes)});
	cb_memory(b,
		  (struct cb_segment){0x7020, 0x100, PF_R | PF_W, more_bytes, sizeof(more_bytes)});
	cb_memory(b, (struct cb_segment){0x401000, 0x2000, PF_R | PF_X, NULL, 0});
	cb_memory(b, (struct cb_segment){0x9000, 0x1000, PF_R | PF_X, NULL, 0});
	cb_finish(b);
}

static void threads_signals_and_files_of_a_core_are_read(void **state)
{
	struct core_builder b = {0};
	struct core *core;
	build_small(&b);
	assert_int_equal(core_open_mem(b.bytes, b.n, "core", &core, NULL), 0);
	assert_int_equal(core->threads.n, 2);
	assert_int_equal(core->threads.p[0].tid, 12);
	assert_int_equal(core->threads.p[0].signal, SIGSEGV);
	assert_true(core->threads.p[0].has_fault);
	assert_int_equal(core->threads.p[0].fault, 0x10);
	assert_int_equal(core->threads.p[0].user[U_RSP], 0x7000);
	/* The kernel writes the signal to every thread; one got it. */
	assert_int_equal(core->threads.p[1].signal, 0);
	assert_int_equal(core->pid, 11);
	assert_string_equal(core->comm, "server");
	assert_int_equal(core->vdso, 0x9000);
	assert_int_equal(core->files.n, 2);
	assert_int_equal(core->files.p[0].off, 0x1000);
	assert_int_equal(core->whole, core->size);
	core_close(core);
	cb_free(&b);
}

static void memory_is_read_where_it_was_dumped(void **state)
{
	struct core_builder b = {0};
	struct core *core;
	uint8_t got[8];
	build_small(&b);
	assert_int_equal(core_open_mem(b.bytes, b.n, "core", &core, NULL), 0);
	assert_true(core_read(core, 0x7000, got, 8));
	assert_memory_equal(got, stack_bytes, 8);
	/* Over the border of two segments. */
	assert_true(core_read(core, 0x701f, got, 3));
	assert_int_equal(got[0], 0);
	assert_int_equal(got[1], 0xaa);
	assert_int_equal(got[2], 0xbb);
	assert_true(core_read(core, 0x702f, got, 1));
	assert_false(core_read(core, 0x702f, got, 2));
	assert_false(core_read(core, 0x6fff, got, 2));
	assert_false(core_read(core, 0x401000, got, 1));
	assert_false(core_read(core, UINT64_MAX, got, 8));
	core_close(core);
	cb_free(&b);
}

static void a_signal_that_somebody_sent_has_no_fault_address(void **state)
{
	const uint64_t regs[27] = {0};
	const int codes[] = {SI_USER, SI_TKILL, SI_KERNEL};
	for (size_t i = 0; i < 3; i++) {
		struct core_builder b = {0};
		struct core *core;
		cb_thread(&b, 1, SIGSEGV, regs);
		cb_siginfo(&b, SIGSEGV, codes[i], 0x1234);
		cb_finish(&b);
		assert_int_equal(core_open_mem(b.bytes, b.n, "core", &core, NULL), 0);
		assert_int_equal(core->threads.p[0].signal, SIGSEGV);
		assert_false(core->threads.p[0].has_fault);
		core_close(core);
		cb_free(&b);
	}
}

static void mappings_are_those_of_the_files_and_of_memory(void **state)
{
	struct core_builder b = {0};
	struct core_search search = {.sysroot = NULL};
	struct core *core;
	struct code_space *space;
	build_small(&b);
	assert_int_equal(core_open_mem(b.bytes, b.n, "core", &core, NULL), 0);
	search.core = core;
	assert_int_equal(code_space_open_core(&search, &space, NULL), 0);
	const struct code_maps *maps = code_space_maps(space);
	assert_int_equal(maps->p.n, 5);
	assert_string_equal(code_maps_find(maps, 0x402000)->path, "/bin/server");
	assert_true(code_maps_find(maps, 0x402000)->is_executable);
	assert_string_equal(code_maps_find(maps, 0x600fff)->path, "/lib/gone.so");
	assert_true(code_maps_find(maps, 0x600fff)->is_deleted);
	assert_string_equal(code_maps_find(maps, 0x9000)->path, "[vdso]");
	assert_string_equal(code_maps_find(maps, 0x7000)->path, "");
	code_space_free(space);
	core_close(core);
	cb_free(&b);
}

static void assert_refused(uint8_t *bytes, size_t n, int code, const char *words)
{
	struct core *core;
	struct cairn_err err = {0};
	assert_int_equal(core_open_mem(bytes, n, "core", &core, &err), code);
	if (!strstr(err.msg, words))
		fail_msg("%s", err.msg);
}

static void a_core_of_another_class_machine_or_type_is_refused_by_name(void **state)
{
	struct core_builder b = {0};
	build_small(&b);
	Elf64_Ehdr *eh = (Elf64_Ehdr *)b.bytes;
	eh->e_ident[EI_CLASS] = ELFCLASS32;
	assert_refused(b.bytes, b.n, -EOPNOTSUPP, "32-bit");
	eh->e_ident[EI_CLASS] = ELFCLASS64;
	eh->e_machine = EM_RISCV;
	assert_refused(b.bytes, b.n, -EOPNOTSUPP, "machine 243");
	eh->e_machine = EM_X86_64;
	eh->e_type = ET_DYN;
	assert_refused(b.bytes, b.n, -EBADMSG, "a program or library, and no core file");
	eh->e_ident[0] = 0;
	assert_refused(b.bytes, b.n, -EBADMSG, "core file");
	cb_free(&b);
}

/*
 * Opens @n bytes and uses all of it; what is told of a thread or of memory must be that of the
 * whole file.
 */
static void use(const uint8_t *bytes, size_t n, bool is_cut)
{
	uint8_t *copy = malloc(n ? n : 1), got[64];
	struct core_search search = {.sysroot = NULL};
	struct core *core;
	struct code_space *space;
	memcpy(copy, bytes, n);
	if (core_open_mem(copy, n, "core", &core, NULL) == 0) {
		search.core = core;
		assert_int_equal(code_space_open_core(&search, &space, NULL), 0);
		if (core_read(core, 0x7000, got, 32) && is_cut)
			assert_memory_equal(got, stack_bytes, 32);
		assert_true(!is_cut || core->whole > core->size);
		if (is_cut && core->threads.n)
			assert_int_equal(core->threads.p[0].tid, 12);
		for (size_t i = 0; i < core->segments.n; i++)
			core_read(core, core->segments.p[i].lo, got, sizeof(got));
		code_space_free(space);
		core_close(core);
	}
	free(copy);
}

static void a_core_cut_at_every_byte_gives_what_it_still_has(void **state)
{
	struct core_builder b = {0};
	build_small(&b);
	for (size_t n = 0; n < b.n; n++)
		use(b.bytes, n, true);
	/* Half of the memory is cut off: threads and files are there. */
	struct core *core;
	assert_int_equal(core_open_mem(b.bytes, b.n - 40, "core", &core, NULL), 0);
	assert_int_equal(core->threads.n, 2);
	assert_int_equal(core->files.n, 2);
	core_close(core);
	cb_free(&b);
}

static void flipped_bits_never_crash(void **state)
{
	struct core_builder b = {0};
	build_small(&b);
	for (size_t i = 0; i < b.n * 8; i++) {
		b.bytes[i / 8] ^= 1u << i % 8;
		use(b.bytes, b.n, false);
		b.bytes[i / 8] ^= 1u << i % 8;
	}
	cb_free(&b);
}

/* ---- walking: a core of this very process ---- */

struct mapping {
	unsigned long lo, hi, off;
	char flags[8], path[512];
};

enum { MAX_MAPPINGS = 1024, MAX_BACKTRACE = 64 };
static struct mapping mappings[MAX_MAPPINGS];
static size_t n_mappings;

static void read_own_maps(void)
{
	char line[1024];
	FILE *f = fopen("/proc/self/maps", "r");
	assert_non_null(f);
	n_mappings = 0;
	while (n_mappings < MAX_MAPPINGS && fgets(line, sizeof(line), f)) {
		struct mapping *m = &mappings[n_mappings++];
		m->path[0] = 0;
		assert_true(sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &m->lo, &m->hi,
				   m->flags, &m->off, m->path) >= 4);
	}
	fclose(f);
}

/* Memory as it is, which a sanitizer lets nobody read from here. */
static void *copies[MAX_MAPPINGS];
static size_t n_copies;

static const void *copy_memory(uint64_t lo, size_t n)
{
	FILE *f = fopen("/proc/self/mem", "rb");
	void *copy = malloc(n);
	assert_true(f && copy && n_copies < MAX_MAPPINGS && fseeko(f, (off_t)lo, SEEK_SET) == 0 &&
		    fread(copy, 1, n, f) == n);
	fclose(f);
	copies[n_copies++] = copy;
	return copy;
}

static bool is_stack(const struct mapping *m, uint64_t sp)
{
	return sp >= m->lo && sp < m->hi;
}

static void dump_stack(struct core_builder *b, const struct mapping *m, uint64_t sp)
{
	struct cb_segment s = {.lo = sp & ~UINT64_C(4095), .flags = PF_R | PF_W};
	s.n = s.size = m->hi - s.lo;
	s.data = copy_memory(s.lo, s.size);
	cb_memory(b, s);
}

/* As the kernel does: the stack, and the first page of files; [vdso] whole. */
static void dump_mapping(struct core_builder *b, const struct mapping *m, uint64_t sp)
{
	struct cb_segment s = {.lo = m->lo,
			       .size = m->hi - m->lo,
			       .flags = (m->flags[0] == 'r' ? PF_R : 0) |
					(m->flags[2] == 'x' ? PF_X : 0),
			       .data = (const void *)m->lo};
	if (!strcmp(m->path, "[vdso]"))
		s.n = s.size;
	else if (m->path[0] == '/' && !m->off && m->flags[0] == 'r')
		s.n = 4096;
	if (m->path[0] == '/')
		cb_file(b, m->lo, m->hi, m->off, m->path);
	if (is_stack(m, sp))
		dump_stack(b, m, sp);
	else
		cb_memory(b, s);
}

/*
 * The loader's list lies in memory of its own, which the kernel may have merged with a sanitizer's:
 * then the mapping is larger than those that are worth keeping.
 */
static bool holds_loaders_list(const struct mapping *m)
{
	for (const struct link_map *l = _r_debug.r_map; l; l = l->l_next)
		if (((uintptr_t)l >= m->lo && (uintptr_t)l < m->hi) ||
		    ((uintptr_t)l->l_name >= m->lo && (uintptr_t)l->l_name < m->hi))
			return true;
	return false;
}

/* As QEMU does: what may have been written to, without the names of files, or their first pages. */
static void dump_mapping_unnamed(struct core_builder *b, const struct mapping *m, uint64_t sp)
{
	struct cb_segment s = {.lo = m->lo,
			       .size = m->hi - m->lo,
			       .flags = PF_R | (m->flags[2] == 'x' ? PF_X : 0)};
	bool is_data = m->flags[0] == 'r' && m->flags[2] != 'x' && (m->off || m->path[0] != '/') &&
		       m->path[0] != '[';
	if (is_stack(m, sp)) {
		dump_stack(b, m, sp);
		return;
	}
	if (is_data && s.size <= (holds_loaders_list(m) ? 1 << 26 : 1 << 20)) {
		s.data = copy_memory(s.lo, s.size);
		s.n = s.size;
	}
	cb_memory(b, s);
}

static void put_auxv(struct core_builder *b)
{
	const uint64_t desc[] = {
		AT_PHDR, getauxval(AT_PHDR), AT_EXECFN, getauxval(AT_EXECFN), AT_NULL, 0};
	cb_note(b, NT_AUXV, desc, sizeof(desc));
}

static void dump_self(struct core_builder *b, const ucontext_t *now, bool has_names)
{
	/* r8 to r15, rdi rsi rbp rbx rdx rax rcx rsp rip, as <sys/ucontext.h> numbers them. */
	static const int from[16] = {7, 6, 5, 4, 10, 11, 3, 2, 1, 0, 13, 14, 12, 9, 8, 13};
	uint64_t user[27] = {0};
	for (size_t i = 0; i < 16; i++)
		user[i] = (uint64_t)now->uc_mcontext.gregs[from[i]];
	user[U_RIP] = (uint64_t)now->uc_mcontext.gregs[16];
	user[U_RSP] = (uint64_t)now->uc_mcontext.gregs[15];
	read_own_maps();
	cb_thread(b, (uint32_t)getpid(), 0, user);
	cb_psinfo(b, (uint32_t)getpid(), "test_core");
	if (has_names)
		cb_auxv(b, getauxval(AT_SYSINFO_EHDR));
	else
		put_auxv(b);
	for (size_t i = 0; i < n_mappings; i++)
		(has_names ? dump_mapping : dump_mapping_unnamed)(b, &mappings[i], user[U_RSP]);
	cb_finish(b);
	while (n_copies)
		free(copies[--n_copies]);
}

struct self {
	struct core_builder core;
	bool is_unnamed;
	int n;
	void *pcs[MAX_BACKTRACE];
};

static NOINLINE int dump_here(struct self *self)
{
	ucontext_t now;
	self->n = backtrace(self->pcs, MAX_BACKTRACE);
#ifdef __SANITIZE_ADDRESS__
	/* The sanitizer puts a function of its own around backtrace(). */
	memmove(self->pcs, self->pcs + 1, (size_t)--self->n * sizeof(*self->pcs));
#endif
	getcontext(&now);
	dump_self(&self->core, &now, !self->is_unnamed);
	return self->n;
}

static NOINLINE int nest(struct self *self, int n)
{
	_Alignas(64) volatile char realigned[64];
	realigned[0] = (char)n;
	/*
	 * A direct call leads to dump_here() and nowhere else: that the program counter is no code
	 * would contradict it.
	 */
	int (*volatile dump)(struct self *) = dump_here;
	return (n ? nest(self, n - 1) : dump(self)) + realigned[0];
}

static struct cairn_stacks *open_core(const struct workspace *w, const char *name)
{
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	if (cairn_stacks_open_core(workspace_path(w, name), NULL, &stacks, &err) < 0)
		fail_msg("%s", err.msg);
	return stacks;
}

static void the_stack_of_a_core_is_that_of_its_own_backtrace(void **state)
{
	struct workspace w;
	struct self self = {.n = 0};
	workspace_open(&w);
	nest(&self, 20);
	put_file(&w, "core", self.core.bytes, self.core.n);
	struct cairn_stacks *stacks = open_core(&w, "core");
	const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, 0);
	assert_true(self.n > 20);
	if (t->n_frames != (size_t)self.n)
		fail_msg("%zu frames of %d: %s", t->n_frames, self.n, t->why);
	for (int i = 1; i < self.n; i++)
		assert_int_equal(t->frames[i]->pc.v, (uint64_t)(uintptr_t)self.pcs[i]);
	assert_int_equal(t->end, CAIRN_WALK_OUTERMOST);
	assert_string_equal(t->comm, "test_core");
	assert_null(cairn_stacks_note(stacks));
	assert_int_equal(cairn_stacks_again(stacks, NULL), -EINVAL);
	cairn_stacks_close(stacks);
	cb_free(&self.core);
	workspace_close(&w);
}

extern Elf64_Dyn _DYNAMIC[];

static void files_that_a_core_does_not_name_are_those_of_the_loaders_list(void **state)
{
	struct workspace w;
	struct self self = {.is_unnamed = true};
	workspace_open(&w);
	nest(&self, 20);
	put_file(&w, "core", self.core.bytes, self.core.n);
	struct cairn_stacks *stacks = open_core(&w, "core");
	const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, 0);
	if (t->n_frames != (size_t)self.n || t->end != CAIRN_WALK_OUTERMOST)
		fail_msg("%zu frames of %d: %s", t->n_frames, self.n, t->why);
	for (int i = 1; i < self.n; i++)
		assert_int_equal(t->frames[i]->pc.v, (uint64_t)(uintptr_t)self.pcs[i]);
	cairn_stacks_close(stacks);
	for (size_t n = sizeof(Elf64_Ehdr); n < self.core.n; n += self.core.n / 23) {
		put_file(&w, "core", self.core.bytes, n);
		stacks = open_core(&w, "core");
		for (size_t i = 0; i < cairn_stacks_n_threads(stacks); i++)
			assert_true(cairn_stacks_thread(stacks, i)->why[0]);
		cairn_stacks_close(stacks);
	}
	/*
	 * Another file would have had another dynamic section in memory. A page of the file may be
	 * mapped twice.
	 */
	size_t n_changed = 0;
	for (uint8_t *p = self.core.bytes;
	     (p = memmem(p, self.core.n - (size_t)(p - self.core.bytes), _DYNAMIC, 64));
	     n_changed++)
		p[offsetof(Elf64_Dyn, d_un)] ^= 1;
	assert_true(n_changed > 0);
	put_file(&w, "core", self.core.bytes, self.core.n);
	stacks = open_core(&w, "core");
	assert_null(cairn_stacks_thread(stacks, 0)->frames[0]->path);
	assert_non_null(strstr(cairn_stacks_note(stacks), "not the file that was mapped"));
	cairn_stacks_close(stacks);
	cb_free(&self.core);
	workspace_close(&w);
}

static void the_bits_of_a_signature_are_read(void **state)
{
	struct core_builder b = {0};
	const uint64_t regs[34] = {0}, masks[] = {0x7f000000000000, 0x7fff8000000000};
	const Elf64_Nhdr head = {6, sizeof(masks), NT_ARM_PAC_MASK};
	struct core *core;
	cb_thread(&b, 1, 0, regs);
	cb_put(&b, &head, sizeof(head));
	cb_put(&b, "LINUX\0\0\0", 8);
	cb_put(&b, masks, sizeof(masks));
	cb_finish(&b);
	((Elf64_Ehdr *)b.bytes)->e_machine = EM_AARCH64;
	assert_int_equal(core_open_mem(b.bytes, b.n, "core", &core, NULL), 0);
	assert_int_equal(core->machine, EM_AARCH64);
	assert_int_equal(core->signature, masks[1]);
	core_close(core);
	cb_free(&b);
}

static void a_cut_core_ends_with_its_reason_and_invents_no_frame(void **state)
{
	struct workspace w;
	struct self self = {.n = 0};
	size_t n_ends[8] = {0}, most = 0;
	workspace_open(&w);
	nest(&self, 3);
	size_t step = self.core.n / 97 + 1;
	for (size_t n = sizeof(Elf64_Ehdr); n < self.core.n; n += step) {
		put_file(&w, "core", self.core.bytes, n);
		struct cairn_stacks *stacks = open_core(&w, "core");
		assert_non_null(strstr(cairn_stacks_note(stacks), "cut off"));
		for (size_t i = 0; i < cairn_stacks_n_threads(stacks); i++) {
			const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, i);
			assert_true(t->why[0]);
			n_ends[t->end]++;
			most = t->n_frames > most ? t->n_frames : most;
			for (size_t k = 1; k < t->n_frames; k++)
				assert_int_equal(t->frames[k]->pc.v,
						 (uint64_t)(uintptr_t)self.pcs[k]);
		}
		cairn_stacks_close(stacks);
	}
	/*
	 * Files without their first page are not taken; then the stack is missing; then parts of
	 * it.
	 */
	assert_true(n_ends[CAIRN_WALK_UNDESCRIBED] + n_ends[CAIRN_WALK_UNREADABLE] > 20);
	assert_true(most > 1);
	cb_free(&self.core);
	workspace_close(&w);
}

static void a_file_with_another_build_id_is_not_taken(void **state)
{
	struct workspace w;
	struct self self = {.n = 0};
	workspace_open(&w);
	nest(&self, 3);
	/* In the dumped first pages: the note's name, "GNU", after type 3. */
	static const uint8_t head[] = {3, 0, 0, 0, 'G', 'N', 'U', 0};
	size_t n_changed = 0;
	for (uint8_t *p = self.core.bytes;
	     (p = memmem(p, self.core.n - (size_t)(p - self.core.bytes), head, 8)); p += 8) {
		p[8] ^= 1;
		n_changed++;
	}
	assert_true(n_changed > 1);
	put_file(&w, "core", self.core.bytes, self.core.n);
	struct cairn_stacks *stacks = open_core(&w, "core");
	const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, 0);
	assert_int_equal(t->n_frames, 1);
	assert_null(t->frames[0]->bin);
	assert_int_equal(t->end, CAIRN_WALK_UNDESCRIBED);
	if (!strstr(t->why, "its build-id is another one"))
		fail_msg("%s", t->why);
	cairn_stacks_close(stacks);
	cb_free(&self.core);
	workspace_close(&w);
}

static void a_call_to_nowhere_leads_to_its_caller_and_is_marked(void **state)
{
	volatile uint64_t no_code[2] = {0x20, 0};
	struct workspace w;
	struct self self = {.n = 0};
	workspace_open(&w);
	nest(&self, 3);
	/*
	 * The stack as it is, one word above nowhere: the return address of dump_here() is where
	 * its CFA says.
	 */
	struct cairn_stacks *stacks;
	put_file(&w, "core", self.core.bytes, self.core.n);
	stacks = open_core(&w, "core");
	struct cairn_regs caller;
	cairn_stacks_regs(cairn_stacks_thread(stacks, 0), 1, &caller);
	uint64_t sp = caller.r[7] - 8;
	cairn_stacks_close(stacks);
	/*
	 * NT_PRSTATUS is the first note: registers are 20 + 112 bytes into the notes, which are
	 * after the headers.
	 */
	const Elf64_Phdr *notes = (const Elf64_Phdr *)(self.core.bytes + sizeof(Elf64_Ehdr));
	uint64_t *user = (uint64_t *)(self.core.bytes + notes->p_offset + 20 + 112), nowhere = 0x10;
	memcpy(&user[U_RIP], &nowhere, 8);
	memcpy(&user[U_RBP], &caller.r[6], 8);
	memcpy(&user[U_RBX], &caller.r[3], 8);
	memcpy(&user[U_RSP], &sp, 8);
	put_file(&w, "core", self.core.bytes, self.core.n);
	stacks = open_core(&w, "core");
	const struct cairn_thread_stack *t = cairn_stacks_thread(stacks, 0);
	assert_int_equal(t->n_frames, self.n);
	assert_false(t->frames[0]->is_assumed);
	assert_true(t->frames[1]->is_assumed);
	assert_false(t->frames[2]->is_assumed);
	for (int i = 1; i < self.n; i++)
		assert_int_equal(t->frames[i]->pc.v, (uint64_t)(uintptr_t)self.pcs[i]);
	cairn_stacks_close(stacks);
	/* What is on top of the stack is no address of code: no frame is made of it. */
	sp = (uint64_t)(uintptr_t)no_code;
	memcpy(&user[U_RSP], &sp, 8);
	put_file(&w, "core", self.core.bytes, self.core.n);
	stacks = open_core(&w, "core");
	t = cairn_stacks_thread(stacks, 0);
	assert_int_equal(t->n_frames, 1);
	assert_int_equal(t->end, CAIRN_WALK_NO_FILE);
	cairn_stacks_close(stacks);
	cb_free(&self.core);
	workspace_close(&w);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct workspace w;
	struct self self = {.n = 0};
	unsigned int n_failed = 0;
	workspace_open(&w);
	nest(&self, 1);
	put_file(&w, "core", self.core.bytes, self.core.n);
	for (unsigned int n = 1;; n = alloc_fail_next(n)) {
		struct cairn_stacks *stacks = NULL;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_stacks_open_core(workspace_path(&w, "core"), NULL, &stacks, &err);
		bool was_hit = alloc_fail_end();
		if (rc == 0)
			cairn_stacks_close(stacks);
		else if (rc != -ENOMEM)
			fail_msg("allocation %u: %d %s", n, rc, err.msg);
		n_failed += rc < 0;
		if (!was_hit)
			break;
	}
	assert_true(n_failed > 10);
	cb_free(&self.core);
	workspace_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_signals_and_files_of_a_core_are_read),
		cmocka_unit_test(memory_is_read_where_it_was_dumped),
		cmocka_unit_test(a_signal_that_somebody_sent_has_no_fault_address),
		cmocka_unit_test(mappings_are_those_of_the_files_and_of_memory),
		cmocka_unit_test(a_core_of_another_class_machine_or_type_is_refused_by_name),
		cmocka_unit_test(a_core_cut_at_every_byte_gives_what_it_still_has),
		cmocka_unit_test(flipped_bits_never_crash),
		cmocka_unit_test(the_stack_of_a_core_is_that_of_its_own_backtrace),
		cmocka_unit_test(files_that_a_core_does_not_name_are_those_of_the_loaders_list),
		cmocka_unit_test(the_bits_of_a_signature_are_read),
		cmocka_unit_test(a_cut_core_ends_with_its_reason_and_invents_no_frame),
		cmocka_unit_test(a_file_with_another_build_id_is_not_taken),
		cmocka_unit_test(a_call_to_nowhere_leads_to_its_caller_and_is_marked),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
