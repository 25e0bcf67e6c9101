/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cairn/stack.h>

#include "alloc_fail.h"
#include "code/maps.h"
#include "noinline.h"
#include "unwind/snapshot.h"

enum { RBX = 3, RBP = 6, RSP = 7, RA = 16 };

/* ---- one step ---- */

/* Sixteen words of stack at 0x1000. */
struct memory {
	uint64_t words[16];
};

static bool read_memory(void *ctx, struct cairn_addr at, void *ret, size_t n)
{
	const struct memory *m = ctx;
	if (at.v < 0x1000 || at.v + n > 0x1000 + sizeof(m->words) || at.v + n < at.v)
		return false;
	memcpy(ret, (const uint8_t *)m->words + (at.v - 0x1000), n);
	return true;
}

/* A rule and its words. */
struct built_rule {
	struct cairn_unwind_rule rule;
	uint32_t words[4];
};

static uint32_t word(unsigned int reg, enum cairn_unwind_saved saved, int32_t value)
{
	return reg | (uint32_t)saved << 5 | (uint32_t)value << 8;
}

static struct cairn_regs frame(uint64_t sp)
{
	struct cairn_regs regs = {.pc = {0x400000}, .known = 0xffff};
	for (unsigned int i = 0; i < 16; i++)
		regs.r[i] = 100 + i;
	regs.r[RSP] = sp;
	return regs;
}

static enum cairn_step step(const struct built_rule *r, struct memory *m, struct cairn_regs *regs)
{
	return cairn_unwind_step(&r->rule, EM_X86_64, read_memory, m, regs);
}

static void a_step_finds_the_caller(void **state)
{
	struct memory m = {.words = {[2] = 0xbb, [3] = 0x401234}};
	struct built_rule r = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 32, .n_regs = 1},
			       {word(RBX, CAIRN_UNWIND_AT_CFA, -16)}};
	struct cairn_regs regs = frame(0x1000);
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, 0x401234);
	assert_int_equal(regs.r[RSP], 0x1020);
	assert_int_equal(regs.r[RBX], 0xbb);
	assert_int_equal(regs.r[12], 112);
	/* rbx, rbp, rsp, r12 to r15; the callee need not have kept the others. */
	assert_int_equal(regs.known, 0xf0c8);
}

static void a_cfa_from_memory_and_registers_by_its_base(void **state)
{
	/* A realigned stack: CFA = *(rbp - 8), rbx at rbp - 16. */
	struct memory m = {.words = {[2] = 0xbb, [3] = 0x1058, [4] = 0x1070, [10] = 0x404242}};
	struct built_rule r = {
		{.cfa = CAIRN_UNWIND_CFA_DEREF, .reg = RBP, .off = -8, .n_regs = 2},
		{word(RBP, CAIRN_UNWIND_AT_BASE, 0), word(RBX, CAIRN_UNWIND_AT_BASE, -16)}};
	struct cairn_regs regs = frame(0x1000);
	regs.r[RBP] = 0x1020;
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.r[RSP], 0x1058);
	assert_int_equal(regs.pc.v, 0x404242);
	assert_int_equal(regs.r[RBP], 0x1070);
	assert_int_equal(regs.r[RBX], 0xbb);
}

/* What is saved at the CFA has a way of its own: the same rule, said by its base. */
static void most_rules_take_a_shorter_way_to_the_same_frame(void **state)
{
	struct memory m;
	for (unsigned int i = 0; i < 16; i++)
		m.words[i] = 0x400000 + i;
	for (int off = -16; off <= 160; off += 8)
		for (int saved = -48; saved <= 16; saved += 8)
			for (unsigned int reg = 0; reg < 16; reg++) {
				struct built_rule r = {{.cfa = CAIRN_UNWIND_CFA_REG,
							.reg = RSP,
							.off = off,
							.n_regs = 2},
						       {word(reg, CAIRN_UNWIND_AT_CFA, saved),
							word(12, CAIRN_UNWIND_AT_CFA, -16)}};
				struct built_rule other = r;
				struct cairn_regs regs = frame(0x1000), same;
				other.words[0] = word(reg, CAIRN_UNWIND_AT_BASE, saved + off);
				memcpy(&same, &regs, sizeof(same));
				assert_int_equal(step(&r, &m, &regs), step(&other, &m, &same));
				assert_memory_equal(&regs, &same, sizeof(regs));
			}
}

static void a_signal_trampoline_gives_every_register_back(void **state)
{
	struct memory m = {.words = {[1] = 0xaa, [2] = 0x1010, [3] = 0x405555}};
	struct built_rule r = {
		{.cfa = CAIRN_UNWIND_CFA_DEREF,
		 .flags = CAIRN_UNWIND_SIGNAL,
		 .reg = RSP,
		 .off = 16,
		 .n_regs = 2},
		{word(0, CAIRN_UNWIND_AT_BASE, 8), word(RA, CAIRN_UNWIND_AT_BASE, 24)}};
	struct cairn_regs regs = frame(0x1000);
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.r[0], 0xaa);
	assert_int_equal(regs.pc.v, 0x405555);
	assert_int_equal(regs.known, 0xffff);
}

static void a_return_address_is_counted_from_the_pc(void **state)
{
	struct memory m = {0};
	struct built_rule r = {{.cfa = CAIRN_UNWIND_CFA_REG,
				.flags = CAIRN_UNWIND_SIGNAL,
				.reg = RSP,
				.off = -128,
				.n_regs = 1},
			       {word(RA, CAIRN_UNWIND_IS_PC, -0x20)}};
	struct cairn_regs regs = frame(0x1000);
	uint64_t pc = regs.pc.v;
	m.words[0] = 1;
	regs.r[RSP] = 0x1080 + 8; /* of what was jumped from, below the red zone */
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, pc - 0x20);
	assert_int_equal(regs.r[RSP], 0x1008);
}

/* vfork() has popped it. */
static void a_return_address_in_a_register_needs_no_room_on_the_stack(void **state)
{
	struct memory m = {0};
	struct built_rule r = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .n_regs = 1},
			       {word(RA, CAIRN_UNWIND_IN_REG, 5)}};
	struct cairn_regs regs = frame(0x1008);
	regs.r[5] = 0x401234;
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, 0x401234);
	assert_int_equal(regs.r[RSP], 0x1008);
	/* To itself it would lead for ever. */
	regs = frame(0x1008);
	regs.r[5] = regs.pc.v;
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_STUCK);
}

/* A stub that is jumped to calls with the stack of what jumped there. */
static void a_return_address_counted_from_the_pc_needs_no_room_on_the_stack(void **state)
{
	struct memory m = {0};
	struct built_rule r = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .n_regs = 1},
			       {word(RA, CAIRN_UNWIND_IS_PC, -0x20)}};
	struct built_rule same = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .n_regs = 1},
				  {word(RA, CAIRN_UNWIND_IS_PC, 0)}};
	struct cairn_regs regs = frame(0x1008);
	uint64_t pc = regs.pc.v;
	assert_int_equal(step(&r, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, pc - 0x20);
	assert_int_equal(regs.r[RSP], 0x1008);
	assert_int_equal(step(&same, &m, &regs), CAIRN_STEP_STUCK);
}

static struct built_rule counted_from_pc(int32_t cfa, int32_t away)
{
	return (struct built_rule){
		{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = cfa, .n_regs = 1},
		{word(RA, CAIRN_UNWIND_IS_PC, away)}};
}

/* The first row of glibc's lock stubs leads to that of their call, and that one to the function. */
static void a_thread_at_the_first_instruction_of_a_lock_stub_has_its_callers(void **state)
{
	struct memory m = {0};
	struct built_rule first = counted_from_pc(-128, 15), call = counted_from_pc(128, -887);
	struct cairn_regs regs = frame(0x1088);
	uint64_t pc = regs.pc.v;
	assert_int_equal(step(&first, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, pc + 15);
	assert_int_equal(regs.r[RSP], 0x1008);
	assert_int_equal(step(&call, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, pc + 15 - 887);
	assert_int_equal(regs.r[RSP], 0x1088);
	/* No other distance, no way to itself, and no return address from elsewhere. */
	const struct built_rule others[] = {
		counted_from_pc(-120, 15),
		counted_from_pc(-256, 15),
		counted_from_pc(-128, 0),
		{{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = -128, .n_regs = 1},
		 {word(RA, CAIRN_UNWIND_IN_REG, 5)}}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		regs = frame(0x1108);
		assert_int_equal(step(&others[i], &m, &regs), CAIRN_STEP_STUCK);
	}
}

static void a_step_says_why_it_is_none(void **state)
{
	struct memory m = {.words = {[1] = 0x401234}};
	struct built_rule outermost = {
		.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .flags = CAIRN_UNWIND_OUTERMOST}};
	struct built_rule undescribed = {.rule = {.cfa = CAIRN_UNWIND_UNDESCRIBED}};
	struct built_rule by_rcx = {.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = 2, .off = 16}};
	struct built_rule plain = {.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 16}};
	struct built_rule back = {.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 8}};
	struct built_rule ra_lost = {
		{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 16, .n_regs = 1},
		{word(RA, CAIRN_UNWIND_LOST, 0)}};
	struct cairn_regs regs = frame(0x1000), before = regs;
	assert_int_equal(step(&outermost, &m, &regs), CAIRN_STEP_OUTERMOST);
	assert_int_equal(step(&undescribed, &m, &regs), CAIRN_STEP_UNDESCRIBED);
	assert_int_equal(step(&ra_lost, &m, &regs), CAIRN_STEP_LOST);
	regs.known &= ~4u;
	assert_int_equal(step(&by_rcx, &m, &regs), CAIRN_STEP_LOST);
	regs = before;
	back.rule.off = 0;
	regs.r[RSP] = 0x1010;
	before = regs;
	assert_int_equal(step(&back, &m, &regs), CAIRN_STEP_STUCK);
	assert_memory_equal(&regs, &before, sizeof(regs));
	regs.r[RSP] = 0x2000;
	assert_int_equal(step(&plain, &m, &regs), CAIRN_STEP_UNREADABLE);
}

static void a_frame_pointer_that_leads_nowhere_loses_a_register_and_no_caller(void **state)
{
	struct memory m = {.words = {[1] = 0x401234}};
	struct built_rule rule = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 16, .n_regs = 1},
				  {word(RBP, CAIRN_UNWIND_AT_FP, 0)}};
	struct built_rule ra = {{.cfa = CAIRN_UNWIND_CFA_REG, .reg = RSP, .off = 16, .n_regs = 1},
				{word(RA, CAIRN_UNWIND_AT_FP, 0)}};
	struct cairn_regs regs = frame(0x1000), before = regs;
	assert_int_equal(step(&rule, &m, &regs), CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, 0x401234);
	assert_false(regs.known & 1u << RBP);
	assert_true(regs.known & 1u << RBX);
	assert_int_equal(step(&ra, &m, &before), CAIRN_STEP_UNREADABLE);
}

static void a_leaf_of_aarch64_has_its_return_address_in_x30(void **state)
{
	struct memory m = {.words = {[0] = 0x1234, [1] = UINT64_C(0x2b00000000456780)}};
	struct built_rule leaf = {.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = 31}};
	struct built_rule framed = {
		{.cfa = CAIRN_UNWIND_CFA_REG,
		 .flags = CAIRN_UNWIND_RA_SIGNED,
		 .reg = 31,
		 .off = 16,
		 .n_regs = 2},
		{word(29, CAIRN_UNWIND_AT_CFA, -16), word(30, CAIRN_UNWIND_AT_CFA, -8)}};
	struct cairn_regs regs = {.pc = {0x400000}, .known = UINT32_MAX};
	regs.r[31] = 0x1000;
	regs.r[30] = 0x400100;
	assert_int_equal(cairn_unwind_step(&leaf.rule, EM_AARCH64, read_memory, &m, &regs),
			 CAIRN_STEP_OK);
	assert_int_equal(regs.pc.v, 0x400100);
	assert_int_equal(cairn_unwind_step(&framed.rule, EM_AARCH64, read_memory, &m, &regs),
			 CAIRN_STEP_OK);
	/* The signature is gone. */
	assert_int_equal(regs.pc.v, 0x456780);
	assert_int_equal(regs.r[29], 0x1234);
	assert_int_equal(regs.r[31], 0x1010);
}

/* ---- mappings ---- */

static void mappings_are_read_and_searched(void **state)
{
	static const char text[] =
		"55d0c0a00000-55d0c0a01000 r--p 00000000 fe:01 77   /usr/bin/a file\n"
		"55d0c0a01000-55d0c0a02000 r-xp 00001000 fe:01 77   /usr/bin/a file (deleted)\n"
		"no mapping at all\n"
		"7f10a2c28000-7f10a2d7d000 rw-p 00000000 00:00 0\n"
		"7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0    [stack]\n";
	struct code_maps maps;
	assert_int_equal(code_maps_parse(strdup(text), &maps, NULL), 0);
	assert_int_equal(maps.p.n, 4);
	const struct code_mapping *m = code_maps_find(&maps, 0x55d0c0a01fff);
	assert_string_equal(m->path, "/usr/bin/a file");
	assert_true(m->is_deleted && m->is_executable);
	assert_int_equal(m->off, 0x1000);
	assert_int_equal(m->ino, 77);
	assert_null(code_maps_find(&maps, 0x55d0c0a02000));
	assert_string_equal(code_maps_find(&maps, 0x7f10a2c28000)->path, "");
	assert_string_equal(code_maps_find(&maps, 0x7ffd00020fff)->path, "[stack]");
	code_maps_fini(&maps);
}

static void of_mappings_that_changed_while_they_were_written_the_first_counts(void **state)
{
	struct code_maps maps;
	assert_int_equal(
		code_maps_parse(
			strdup("2000-3000 r-xp 0 0:0 0 /a\n1000-4000 r-xp 5000 fe:01 77 /b\n"
			       "3800-3900 r-xp 0 0:0 0 /c\n"),
			&maps, NULL),
		0);
	assert_int_equal(maps.p.n, 2);
	const struct code_mapping *m = code_maps_find(&maps, 0x3800);
	assert_string_equal(m->path, "/b");
	assert_true(m->lo == 0x3000 && m->hi == 0x4000 && m->off == 0x7000);
	assert_string_equal(code_maps_find(&maps, 0x2000)->path, "/a");
	assert_null(code_maps_find(&maps, 0x1000));
	code_maps_fini(&maps);
}

/* Two threads that split and merge mappings all the time; the list of them takes several reads. */
static volatile bool is_over;
static char *churned;
enum { CHURNED = 4000 };

static void *change_mappings(void *arg)
{
	for (uint32_t s = 1; !is_over;) {
		s = s * 1103515245 + 12345;
		char *at = churned + (s >> 16) % CHURNED * 4096;
		size_t n = 4096 * (1 + (s >> 28));
		mprotect(at, s & 0x1000 ? n : n * 8,
			 s & 0x1000 ? PROT_READ : PROT_READ | PROT_WRITE);
	}
	return arg;
}

static void mappings_of_a_process_that_changes_them_are_read(void **state)
{
	pthread_t threads[2];
	size_t size = (CHURNED + 200) * 4096ul;
	churned = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(churned != MAP_FAILED);
	is_over = false;
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, change_mappings, NULL), 0);
	for (int i = 0; i < 2000; i++) {
		struct code_maps maps;
		struct cairn_err err = {0};
		if (code_maps_read(getpid(), &maps, &err) < 0)
			fail_msg("%s", err.msg);
		for (size_t k = 1; k < maps.p.n; k++)
			assert_true(maps.p.p[k].lo >= maps.p.p[k - 1].hi &&
				    maps.p.p[k].lo < maps.p.p[k].hi);
		assert_non_null(code_maps_find(&maps, (uintptr_t)change_mappings));
		code_maps_fini(&maps);
	}
	is_over = true;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	munmap(churned, size);
}

static void mappings_cut_at_every_byte_never_crash(void **state)
{
	static const char text[] =
		"1000-2000 r-xp 00001000 fe:01 77  /a (deleted)\n3000-4000 r--p 0 0:0 0\n";
	for (size_t n = 0; n < sizeof(text); n++) {
		struct code_maps maps;
		char *cut = strndup(text, n);
		assert_int_equal(code_maps_parse(cut, &maps, NULL), 0);
		code_maps_fini(&maps);
	}
}

/* ---- a process, against glibc's own unwinder ---- */

struct told {
	int n;
	void *pcs[64];
};

static int tell_fd;

/* What backtrace() in the process says, then it waits to be looked at. */
static NOINLINE int report_and_wait(void)
{
	struct told told;
	told.n = backtrace(told.pcs, 64);
#ifdef __SANITIZE_ADDRESS__
	/* The sanitizer puts a function of its own around backtrace(). */
	memmove(told.pcs, told.pcs + 1, (size_t)--told.n * sizeof(*told.pcs));
#endif
	if (write(tell_fd, &told, sizeof(told)) != sizeof(told))
		_exit(1);
	pause();
	return 1;
}

static NOINLINE int nest(int n)
{
	_Alignas(64) volatile char realigned[64];
	realigned[0] = (char)n;
	return n ? nest(n - 1) + realigned[0] : report_and_wait();
}

static void on_signal(int signal)
{
	nest(signal > 0 ? 3 : 0);
}

static void child_main(int fd, bool in_handler)
{
	/* Whatever becomes of the test, nobody is left who waits. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	tell_fd = fd;
	if (in_handler) {
		static char stack[65536];
		stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
		struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
		sigaltstack(&other, NULL);
		sigaction(SIGUSR1, &action, NULL);
		raise(SIGUSR1);
	}
	nest(20);
	_exit(0);
}

static pid_t start_child(bool in_handler, struct told *ret)
{
	int ends[2];
	assert_int_equal(pipe(ends), 0);
	pid_t pid = fork();
	if (pid == 0)
		child_main(ends[1], in_handler);
	assert_true(pid > 0);
	close(ends[1]);
	assert_int_equal(read(ends[0], ret, sizeof(*ret)), sizeof(*ret));
	close(ends[0]);
	/* From the write to the pause. */
	usleep(20000);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/*
 * The same return addresses, from nest() outwards: backtrace() was called at another place of
 * report_and_wait() than pause().
 */
static void assert_same_frames(const struct cairn_thread_stack *t, const struct told *told)
{
	size_t i = 0;
	while (i < t->n_frames && t->frames[i]->pc.v != (uint64_t)(uintptr_t)told->pcs[1])
		i++;
	if (i == t->n_frames)
		fail_msg("%zu frames, %s", t->n_frames, t->why);
	for (int k = 1; k < told->n; k++, i++) {
		if (i == t->n_frames)
			fail_msg("frame %d of %d is missing: %s", k, told->n, t->why);
		assert_int_equal(t->frames[i]->pc.v, (uint64_t)(uintptr_t)told->pcs[k]);
	}
	assert_int_equal(i, t->n_frames);
	assert_int_equal(t->end, CAIRN_WALK_OUTERMOST);
}

static void compare_child(bool in_handler)
{
	struct told told;
	pid_t pid = start_child(in_handler, &told);
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	assert_true(told.n > (in_handler ? 8 : 24));
	int rc = cairn_stacks_open_pid(pid, NULL, &stacks, &err);
	if (rc < 0)
		fail_msg("%s", err.msg);
	for (int round = 0; round < 3; round++) {
		struct cairn_stacks_moment moment;
		assert_int_equal(cairn_stacks_n_threads(stacks), 1);
		assert_same_frames(cairn_stacks_thread(stacks, 0), &told);
		cairn_stacks_moment(stacks, &moment);
		assert_true(moment.stopped_ns > 0 && moment.copied_bytes > 0);
		/* The stack that a handler interrupted was copied, too. */
		assert_true(moment.is_consistent);
		assert_int_equal(cairn_stacks_again(stacks, &err), 0);
	}
	/* It runs again: it can be killed, and nobody traces it. */
	cairn_stacks_close(stacks);
	end_child(pid);
}

static void the_stack_of_a_process_is_that_of_its_own_backtrace(void **state)
{
	compare_child(false);
}

static void a_signal_handler_on_its_own_stack_is_walked_through(void **state)
{
	compare_child(true);
}

/* [stack] as it was before it grew: it begins @above bytes above @sp. */
static void take_grown(struct snapshot *s, uint64_t sp, uint64_t above, const char *name)
{
	struct code_maps maps = {0};
	struct cairn_err err = {0};
	struct stopped_thread thread = {
		.tid = getpid(), .is_main = true, .is_stopped = true, .has_regs = true};
	struct stop stop = {.pid = getpid()};
	char *text;
	uint64_t lo = (sp + above) & ~UINT64_C(4095);
	thread.regs.r[RSP] = sp;
	assert_true(asprintf(&text, "%lx-%lx rw-p 00000000 00:00 0    %s\n", (unsigned long)lo,
			     (unsigned long)lo + 4096, name) > 0);
	assert_int_equal(code_maps_parse(text, &maps, &err), 0);
	assert_true(VEC_ADD(&stop.threads, thread));
	*s = (struct snapshot){.pid = getpid()};
	assert_int_equal(snapshot_take(s, &maps, &stop, &err), 0);
	VEC_FREE(&stop.threads);
	code_maps_fini(&maps);
}

static void a_stack_that_grew_after_the_reading_of_the_mappings_is_copied(void **state)
{
	struct snapshot s;
	volatile uint64_t pages[3 * 512] = {[8] = 0x1234567890abcdef};
	uint64_t sp = (uint64_t)(uintptr_t)pages, value = 0;
	take_grown(&s, sp, 4096, "[stack]");
	assert_true(snapshot_read(&s, 0, sp + 64, &value, sizeof(value)));
	assert_int_equal(value, pages[8]);
	assert_false(snapshot_read(&s, 0, sp - 65536, &value, sizeof(value)));
	snapshot_fini(&s);
	/* What is above a gap and no stack is something else. */
	take_grown(&s, sp, 4096, "[heap]");
	assert_false(snapshot_read(&s, 0, sp + 64, &value, sizeof(value)));
	snapshot_fini(&s);
}

/* Its parent waits for it in the kernel, and nothing but a kill ends that. */
static void wait_for_a_vforked_child(int go_on)
{
	char byte;
	pid_t child = vfork();
	if (child == 0) {
		(void)!read(go_on, &byte, 1);
		_exit(0);
	}
}

static void a_thread_that_could_not_be_stopped_goes_on_when_it_leaves_the_kernel(void **state)
{
	int go_on[2], done[2];
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	struct pollfd end = {.events = POLLIN};
	assert_int_equal(pipe(go_on) | pipe(done), 0);
	pid_t pid = fork();
	if (pid == 0) {
		wait_for_a_vforked_child(go_on[0]);
		_exit(write(done[1], "x", 1) != 1);
	}
	usleep(50000);
	int rc = cairn_stacks_open_pid(pid, NULL, &stacks, &err);
	if (rc < 0)
		fail_msg("%s", err.msg);
	/* Once more, which finds it let go. */
	assert_int_equal(cairn_stacks_again(stacks, &err), 0);
	assert_int_equal(cairn_stacks_n_threads(stacks), 1);
	assert_int_equal(write(go_on[1], "x", 1), 1);
	end.fd = done[0];
	/* This process has not ended, nor closed the stacks. */
	int n = poll(&end, 1, 5000);
	cairn_stacks_close(stacks);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, __WALL), pid);
	for (int i = 0; i < 2; i++) {
		close(go_on[i]);
		close(done[i]);
	}
	assert_int_equal(n, 1);
}

static void a_process_that_is_not_there_is_said_so(void **state)
{
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	assert_int_equal(cairn_stacks_open_pid(pid, NULL, &stacks, &err), -ESRCH);
	assert_non_null(strstr(err.msg, "no process"));
}

static void every_failing_allocation_is_reported(void **state)
{
	struct told told;
	pid_t pid = start_child(false, &told);
	unsigned int n = 1, n_failed = 0;
	for (;; n = alloc_fail_next(n)) {
		struct cairn_stacks *stacks = NULL;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_stacks_open_pid(pid, NULL, &stacks, &err);
		bool was_hit = alloc_fail_end();
		if (rc == 0)
			cairn_stacks_close(stacks);
		else if (rc != -ENOMEM)
			fail_msg("allocation %u: %d %s", n, rc, err.msg);
		n_failed += rc < 0;
		if (!was_hit)
			break;
	}
	assert_true(n_failed > 5);
	end_child(pid);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_finds_the_caller),
		cmocka_unit_test(a_cfa_from_memory_and_registers_by_its_base),
		cmocka_unit_test(most_rules_take_a_shorter_way_to_the_same_frame),
		cmocka_unit_test(a_signal_trampoline_gives_every_register_back),
		cmocka_unit_test(a_return_address_is_counted_from_the_pc),
		cmocka_unit_test(a_return_address_in_a_register_needs_no_room_on_the_stack),
		cmocka_unit_test(a_return_address_counted_from_the_pc_needs_no_room_on_the_stack),
		cmocka_unit_test(a_thread_at_the_first_instruction_of_a_lock_stub_has_its_callers),
		cmocka_unit_test(a_step_says_why_it_is_none),
		cmocka_unit_test(a_frame_pointer_that_leads_nowhere_loses_a_register_and_no_caller),
		cmocka_unit_test(a_leaf_of_aarch64_has_its_return_address_in_x30),
		cmocka_unit_test(mappings_are_read_and_searched),
		cmocka_unit_test(of_mappings_that_changed_while_they_were_written_the_first_counts),
		cmocka_unit_test(mappings_of_a_process_that_changes_them_are_read),
		cmocka_unit_test(mappings_cut_at_every_byte_never_crash),
		cmocka_unit_test(the_stack_of_a_process_is_that_of_its_own_backtrace),
		cmocka_unit_test(a_signal_handler_on_its_own_stack_is_walked_through),
		cmocka_unit_test(a_stack_that_grew_after_the_reading_of_the_mappings_is_copied),
		cmocka_unit_test(
			a_thread_that_could_not_be_stopped_goes_on_when_it_leaves_the_kernel),
		cmocka_unit_test(a_process_that_is_not_there_is_said_so),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
