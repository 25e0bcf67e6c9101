/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks of a program's own stack. The second opinion is libgcc's, which reads the same .eh_frame by
 * other code, or, where there is none to ask, what the test itself put on the stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <alloca.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include <cairn/backtrace.h>

#include "alloc_fail.h"
#include "between.h"
#include "cfi/eh_memory.h"
#include "noinline.h"
#include "unwind/backtrace_object.h"
#include "workspace.h"

enum { MAX = 512 };

/* The work after the call keeps it from becoming a jump. */
#define BARRIER() __asm__ volatile("" ::: "memory")

/* ---- both walks, from one place ---- */

struct both {
	struct cairn_addr ours[MAX];
	void *theirs[MAX];
	struct cairn_backtrace walk;
	size_t n_ours, n_theirs;
	unsigned int n_calls;
};

static struct both both;

/* What backtrace() does. The sanitizers replace that by one with a frame of theirs. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *ctx)
{
	struct both *b = ctx;
	if (b->n_theirs == MAX)
		return _URC_END_OF_STACK;
	b->theirs[b->n_theirs] = (void *)_Unwind_GetIP(context);
	b->n_theirs += b->theirs[b->n_theirs] != NULL;
	return _URC_NO_REASON;
}

static inline __attribute__((always_inline)) void walk_theirs(void)
{
	both.n_theirs = 0;
	_Unwind_Backtrace(take_frame, &both);
}

static NOINLINE void walk_both(void)
{
	alloc_fail_at(1);
	both.n_ours = cairn_backtrace(both.ours, MAX, &both.walk);
	bool has_allocated = alloc_fail_end();
	walk_theirs();
	both.n_calls++;
	assert_false(has_allocated);
	BARRIER();
}

/* The first is in walk_both(), after another call of it. */
static void assert_same(void)
{
	assert_int_equal(both.walk.end, CAIRN_WALK_OUTERMOST);
	assert_int_equal(both.n_ours, both.n_theirs);
	for (size_t i = 1; i < both.n_ours; i++)
		assert_int_equal(both.ours[i].v, (uintptr_t)both.theirs[i]);
}

/* ---- frames of many kinds ---- */

/* Its address is that of no return: before it there is no call that never returns, but nops. */
static NOINLINE __attribute__((patchable_function_entry(8, 8))) int recurse(int depth,
									    void (*then)(void))
{
	volatile char pad[24];
	pad[0] = (char)depth;
	if (depth)
		recurse(depth - 1, then);
	else
		then();
	return pad[0];
}

static NOINLINE int realigned(void (*then)(void))
{
	volatile char pad[64] __attribute__((aligned(64)));
	pad[0] = 1;
	then();
	return pad[0];
}

static NOINLINE int with_alloca(size_t n, void (*then)(void))
{
	volatile char *p = alloca(n);
	p[0] = 1;
	then();
	return p[0];
}

/* One that an entry of the cache has room for, and one that it has not. */
static NOINLINE int large(void (*then)(void))
{
	volatile char pad[15000];
	pad[0] = 1;
	then();
	return pad[0];
}

static NOINLINE int too_large(void (*then)(void))
{
	volatile char pad[17000];
	pad[0] = 1;
	then();
	return pad[0];
}

/*
 * A realigned frame whose CFA is in a register that is saved: the one that GCC makes for arguments
 * after alloca().
 */
static NOINLINE int realigned_alloca(size_t n, int a, int b, int c, int d, int e, int f, int g,
				     void (*then)(void))
{
	volatile char pad[64] __attribute__((aligned(64)));
	volatile char *p = alloca(n + (size_t)(a + b + c + d + e + f + g));
	pad[0] = p[0] = 1;
	then();
	return pad[0] + p[0] + g;
}

static NOINLINE int many_registers(int *p, void (*then)(void))
{
	int a = p[0], b = p[1], c = p[2], d = p[3], e = p[4], f = p[5];
	then();
	return a ^ b << 1 ^ c << 2 ^ d << 3 ^ e << 4 ^ f << 5;
}

static void (*in_callback)(void);

static int compare_ints(const void *a, const void *b)
{
	if (in_callback)
		in_callback();
	in_callback = NULL;
	return *(const int *)a - *(const int *)b;
}

static NOINLINE int in_qsort(void (*then)(void))
{
	int numbers[] = {3, 1, 2};
	in_callback = then;
	qsort(numbers, 3, sizeof(numbers[0]), compare_ints);
	return numbers[0];
}

static void rest(void)
{
	walk_both();
	BARRIER();
}

static NOINLINE void inner(void)
{
	int numbers[8] = {1, 2, 3, 4, 5, 6};
	many_registers(numbers, rest);
	BARRIER();
}

static NOINLINE void middle(void)
{
	realigned_alloca(100, 1, 2, 3, 4, 5, 6, 7, inner);
	BARRIER();
}

static NOINLINE void nested(void)
{
	realigned(middle);
	BARRIER();
}

/* Frames are found the same way the first time, by rows or by programs, and again, by the cache. */
static void walks_equal_those_of_libgcc(void **state)
{
	for (int i = 0; i < 3; i++) {
		recurse(40, walk_both);
		assert_same();
		assert_true(both.n_ours > 40);
		recurse(i * 7, walk_both);
		assert_same();
		realigned(walk_both);
		assert_same();
		with_alloca(100 + (size_t)i * 1000, walk_both);
		assert_same();
		realigned_alloca(100, 1, 2, 3, 4, 5, 6, 7, walk_both);
		assert_same();
		in_qsort(walk_both);
		assert_same();
		nested();
		assert_same();
		with_alloca(50000, nested);
		assert_same();
		large(nested);
		assert_same();
		too_large(nested);
		assert_same();
		in_qsort(nested);
		assert_same();
	}
}

static void a_walk_ends_at_its_limit(void **state)
{
	struct cairn_addr few[3];
	struct cairn_backtrace walk;
	errno = 77;
	assert_int_equal(cairn_backtrace(few, 3, &walk), 3);
	assert_int_equal(walk.end, CAIRN_WALK_LIMIT);
	assert_int_equal(cairn_backtrace(few, 0, &walk), 0);
	assert_int_equal(walk.end, CAIRN_WALK_LIMIT);
	assert_int_equal(errno, 77);
}

static void *walk_in_thread(void *arg)
{
	recurse(20, walk_both);
	return NULL;
}

static void a_threads_stack_ends_where_it_was_begun(void **state)
{
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, walk_in_thread, NULL), 0);
	pthread_join(thread, NULL);
	assert_same();
	assert_true(both.n_ours > 20);
}

/* ---- handlers ---- */

static struct {
	struct cairn_addr context[MAX];
	struct cairn_backtrace walk;
	size_t n_context;
	unsigned int n_seen, n_wrong, n_cut;
	char first_wrong[200];
} handled;

static void note_wrong(const char *why, size_t i)
{
	if (!handled.n_wrong++)
		snprintf(handled.first_wrong, sizeof(handled.first_wrong),
			 "%s %zu: at 0x%lx, pc 0x%lx, ended: %s", why, i,
			 (unsigned long)handled.walk.at.v, (unsigned long)handled.context[0].v,
			 cairn_walk_end_text(handled.walk.end));
}

/* What was interrupted begins, in the other's list, after the trampoline. */
static void compare_contexts(size_t n_theirs)
{
	size_t first = 0;
	handled.n_seen++;
	while (first < n_theirs && (uintptr_t)both.theirs[first] != handled.context[0].v)
		first++;
	if (handled.walk.end != CAIRN_WALK_OUTERMOST || n_theirs - first != handled.n_context) {
		/*
		 * libgcc stops at the pc of a PLT stub's half-done push or of code without rules as
		 * we do, but without a reason.
		 */
		note_wrong("number of frames", n_theirs - first);
		return;
	}
	for (size_t i = 0; i < handled.n_context; i++)
		if (handled.context[i].v != (uintptr_t)both.theirs[first + i])
			note_wrong("frame", i);
	for (size_t i = 1; i < both.n_ours; i++)
		if (both.n_ours != n_theirs || both.ours[i].v != (uintptr_t)both.theirs[i])
			note_wrong("frame of the handler", i);
}

/*
 * Between the pop of rbp and the return of a function that realigned its stack GCC's rows say that
 * rbp is still in memory at rbp (docs/findings/gcc-realigned-epilogue.md): what is found by them is
 * not worth comparing.
 */
static bool is_described_wrongly(const ucontext_t *context)
{
	static const uint8_t restore_rsp[] = {0x49, 0x8d, 0x62,
					      0xf8}; /* lea -8(%r10),%rsp, and ret after it */
	const uint8_t *pc = (const uint8_t *)(uintptr_t)context->uc_mcontext.gregs[REG_RIP];
	return !memcmp(pc, restore_rsp, sizeof(restore_rsp)) ||
	       (*pc == 0xc3 && !memcmp(pc - sizeof(restore_rsp), restore_rsp, sizeof(restore_rsp)));
}

static void handle(int sig, siginfo_t *info, void *ucontext)
{
	if (is_described_wrongly(ucontext))
		return;
	alloc_fail_at(1);
	handled.n_context = cairn_backtrace_context(ucontext, handled.context, MAX, &handled.walk);
	both.n_ours = cairn_backtrace(both.ours, MAX, &both.walk);
	if (alloc_fail_end())
		note_wrong("an allocation", 0);
	walk_theirs();
	compare_contexts(both.n_theirs);
}

static void on_signal(int sig, void (*fn)(int, siginfo_t *, void *), void *stack, size_t size)
{
	stack_t alternate = {.ss_sp = stack, .ss_size = size, .ss_flags = stack ? 0 : SS_DISABLE};
	struct sigaction action = {.sa_sigaction = fn,
				   .sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK};
	assert_int_equal(sigaltstack(&alternate, NULL), 0);
	assert_int_equal(sigaction(sig, &action, NULL), 0);
}

static void raise_usr1(void)
{
	raise(SIGUSR1);
	BARRIER();
}

static void a_handler_sees_what_it_interrupted(void **state)
{
	static char stack[128 << 10];
	for (int with = 0; with < 2; with++) {
		memset(&handled, 0, sizeof(handled));
		on_signal(SIGUSR1, handle, with ? stack : NULL, sizeof(stack));
		for (int i = 0; i < 3; i++)
			recurse(10, raise_usr1);
		in_qsort(raise_usr1);
		realigned(raise_usr1);
		assert_string_equal(handled.first_wrong, "");
		assert_int_equal(handled.n_seen, 5);
		/*
		 * The interrupted instruction, and for the handler's own walk that one as well,
		 * after the trampoline.
		 */
		assert_int_equal(handled.walk.n_exact, 1);
		assert_int_equal(handled.walk.exact[0], 0);
		assert_int_equal(both.walk.n_exact, 1);
		assert_true(both.walk.exact[0] >= 2);
		assert_int_equal(both.ours[both.walk.exact[0]].v, handled.context[0].v);
	}
	on_signal(SIGUSR1, handle, NULL, 0);
}

static struct {
	size_t n;
	struct cairn_backtrace walk;
} cramped;

static void walk_cramped(int sig, siginfo_t *info, void *ucontext)
{
	static struct cairn_addr pcs[MAX];
	cramped.n = cairn_backtrace(pcs, MAX, &cramped.walk);
}

/*
 * What runs an FDE's program takes some kilobytes of stack; an alternate stack may not have them.
 */
static void too_little_stack_ends_the_walk_with_that_reason(void **state)
{
	enum { LITTLE = 18 << 10 }; /* a signal frame with AVX-512 is some 4 KiB of it */
	static char little[LITTLE] __attribute__((aligned(16))), enough[128 << 10];
	backtrace_cache_use(false);
	on_signal(SIGUSR1, walk_cramped, little, sizeof(little));
	raise_usr1();
	assert_int_equal(cramped.walk.end, CAIRN_WALK_NO_ROOM);
	assert_int_equal(cramped.n, 1);
	on_signal(SIGUSR1, walk_cramped, enough, sizeof(enough));
	raise_usr1();
	assert_int_equal(cramped.walk.end, CAIRN_WALK_OUTERMOST);
	assert_true(cramped.n > 3);
	backtrace_cache_use(true);
	on_signal(SIGUSR1, handle, NULL, 0);
}

static volatile unsigned int sink;

static void work(void)
{
	char text[64];
	int numbers[64];
	for (int i = 0; i < 64; i++)
		numbers[i] = i * 7919 % 64;
	qsort(numbers, 64, sizeof(numbers[0]), compare_ints);
	for (int i = 0; i < 20; i++)
		sink += (unsigned int)snprintf(text, sizeof(text), "%d %s %g", i, "text", i * 0.5);
	sink += (unsigned int)strtol("12345", NULL, 10);
}

static void stacks_at_random_instructions_equal_those_of_libgcc(void **state)
{
	static char stack[128 << 10];
	enum { WANTED = 2000, SECONDS = 20 };
	struct itimerval every = {{0, 211}, {0, 211}}, never = {{0, 0}, {0, 0}};
	time_t end = time(NULL) + SECONDS;
	memset(&handled, 0, sizeof(handled));
	on_signal(SIGALRM, handle, stack, sizeof(stack));
	setitimer(ITIMER_REAL, &every, NULL);
	for (int i = 0; time(NULL) < end && handled.n_seen < WANTED; i++) {
		recurse(i % 30, work);
		realigned_alloca(100, 1, 2, 3, 4, 5, 6, 7, work);
	}
	setitimer(ITIMER_REAL, &never, NULL);
	signal(SIGALRM, SIG_IGN);
	on_signal(SIGUSR1, handle, NULL, 0);
	print_message("%u stacks at random instructions, %u wrong %s\n", handled.n_seen,
		      handled.n_wrong, handled.first_wrong);
	assert_true(handled.n_seen >= 200);
	assert_int_equal(handled.n_wrong, 0);
}

/* ---- another library at the same address ---- */

/* Of equal size and with the same addresses; only what the function keeps on the stack differs. */
static bool make_library(const struct workspace *ws, const char *name, unsigned int frame,
			 const char *build_id)
{
	char file[32], text[512];
	snprintf(file, sizeof(file), "%s.s", name);
	snprintf(
		text, sizeof(text),
		".text\n.globl call\n.type call,@function\ncall:\n.cfi_startproc\n"
		".byte 0x48,0x81,0xec\n.4byte %u\n" /* sub $frame,%%rsp, of one length for any frame */
		".cfi_def_cfa_offset %u\ncall *%%rdi\n.byte 0x48,0x81,0xc4\n.4byte %u\n"
		".cfi_def_cfa_offset 8\nret\n.cfi_endproc\n.size call,.-call\n"
		".section .note.GNU-stack,\"\",@progbits\n",
		frame, frame + 8, frame);
	workspace_write(ws, file, text);
	return workspace_try(ws, "gcc -shared -nostdlib -Wl,--build-id=%s -o %s.so %s.s", build_id,
			     name, name);
}

/* Returns where it was loaded. */
static uintptr_t walk_through(const struct workspace *ws, const char *name)
{
	void *lib = dlopen(workspace_path(ws, name), RTLD_NOW);
	assert_non_null(lib);
	void (*call)(void (*)(void)) = (void (*)(void (*)(void)))dlsym(lib, "call");
	assert_non_null(call);
	for (int i = 0; i < 3; i++) {
		call(walk_both);
		/* libgcc asks the loader each time. */
		assert_same();
	}
	dlclose(lib);
	return (uintptr_t)call;
}

static void another_library_at_the_same_address_has_its_own_rules(void **state)
{
	/* With no id they cannot be told apart, and nothing may be kept. */
	static const char *const ids[2][2] = {{"0x1111111111111111", "0x2222222222222222"},
					      {"none", "none"}};
	struct workspace ws;
	workspace_open(&ws);
	bool has_gcc = true;
	for (int k = 0; k < 2 && has_gcc; k++) {
		has_gcc = make_library(&ws, "a", 24, ids[k][0]) &&
			  make_library(&ws, "b", 120, ids[k][1]);
		for (int round = 0; round < 4 && has_gcc; round++) {
			uintptr_t a = walk_through(&ws, "a.so"), b = walk_through(&ws, "b.so");
			/* Otherwise nothing was tested. */
			assert_int_equal(a, b);
		}
	}
	workspace_close(&ws);
	if (!has_gcc) {
		print_message("skipped: no gcc\n");
		skip();
	}
}

static void a_prepared_library_that_was_replaced_is_not_believed(void **state)
{
	struct workspace ws;
	workspace_open(&ws);
	bool has_gcc = make_library(&ws, "a", 24, "0x31") && make_library(&ws, "b", 120, "0x32");
	for (int round = 0; round < 3 && has_gcc; round++) {
		void *lib = dlopen(workspace_path(&ws, round & 1 ? "b.so" : "a.so"), RTLD_NOW);
		assert_non_null(lib);
		assert_true(cairn_backtrace_prepare(NULL) > 0);
		dlclose(lib);
		walk_through(&ws, "b.so");
		walk_through(&ws, "a.so");
	}
	workspace_close(&ws);
	if (!has_gcc) {
		print_message("skipped: no gcc\n");
		skip();
	}
}

/* ---- stacks that were overwritten ---- */

enum { SMASHES = 10000, DEPTH = 30 };

static uint64_t random_state;

static uint64_t random_u64(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return random_state;
}

/* Data that are no code's: a frame may be looked for in them, and beside them. */
static uint64_t zeros[4096];

/*
 * What overwrites: noise, addresses of code that is not after a call, of data, of nothing, and of
 * the stack: of the part that is overwritten, since elsewhere the return addresses of calls long
 * over may lie, which nobody can tell from true ones.
 */
static uint64_t random_word(uint64_t stack, uint64_t size)
{
	switch (random_u64() % 6) {
	case 0:
		return random_u64();
	case 1:
		return stack + random_u64() % size;
	case 2:
		return (uint64_t)(uintptr_t)recurse;
	case 3:
		return (uint64_t)(uintptr_t)&zeros[128];
	case 4:
		return random_u64() >> 17;
	default:
		return random_u64() % 4096;
	}
}

#define RAW __attribute__((noinline, no_sanitize("address", "undefined")))

static struct {
	uint64_t *top; /* what is above stays */
	unsigned int n_done, n_short;
	char wrong[200];
} smashed;

static uint64_t kept[4096];

/* Up from @from. Words, one by one: the sanitizers know of a memcpy() over frames. */
static RAW void overwrite(uint64_t *from)
{
	for (volatile uint64_t *p = from; p < smashed.top; p++) {
		kept[p - (volatile uint64_t *)from] = *p;
		*p = random_word((uint64_t)(uintptr_t)from,
				 (uint64_t)(smashed.top - from) * sizeof(*from));
	}
}

static RAW void put_back(uint64_t *from)
{
	for (volatile uint64_t *p = from; p < smashed.top; p++)
		*p = kept[p - (volatile uint64_t *)from];
}

/* Every frame is a true one, in the true order. */
static void check_smashed(const struct cairn_addr *pcs, size_t n, const struct cairn_addr *truth,
			  size_t n_truth)
{
	size_t t = 0;
	for (size_t i = 0; i < n; i++, t++) {
		while (t < n_truth && truth[t].v != pcs[i].v)
			t++;
		if (t == n_truth) {
			snprintf(smashed.wrong, sizeof(smashed.wrong),
				 "smash %u: frame %zu of %zu, 0x%lx, was invented", smashed.n_done,
				 i, n, (unsigned long)pcs[i].v);
			return;
		}
	}
	smashed.n_short += n < n_truth;
}

/* From a random place on, everything is overwritten up to the frame in which this began. */
static RAW void smash(void)
{
	static struct cairn_addr truth[MAX], pcs[MAX];
	struct cairn_backtrace walk;
	uint64_t *lowest = (uint64_t *)__builtin_frame_address(0) + 2;
	uint64_t *from = lowest + random_u64() % (uint64_t)(smashed.top - lowest);
	size_t n_truth = cairn_backtrace(truth, MAX, &walk);
	overwrite(from);
	size_t n = cairn_backtrace(pcs, MAX, &walk);
	put_back(from);
	smashed.n_done++;
	/* The first is this place, after another call. */
	check_smashed(pcs + 1, n - 1, truth + 1, n_truth - 1);
	if (n == 0)
		snprintf(smashed.wrong, sizeof(smashed.wrong), "smash %u: no frame",
			 smashed.n_done);
}

static RAW void smash_often(void)
{
	uint64_t local[8];
	smashed.top = local;
	random_state = 0x9e3779b97f4a7c15;
	__asm__ volatile("" ::"r"(local) : "memory");
	while (smashed.n_done < SMASHES && !smashed.wrong[0]) {
		switch (smashed.n_done % 3) {
		case 0:
			recurse(DEPTH, smash);
			break;
		case 1:
			with_alloca(400, smash);
			break;
		default:
			realigned_alloca(100, 1, 2, 3, 4, 5, 6, 7, smash);
		}
	}
	smashed.top = NULL;
}

/* In a child, since what would be wrong is a crash or a hang. */
static void an_overwritten_stack_ends_the_walk(void **state)
{
	pid_t pid = fork();
	if (pid == 0) {
		alarm(60);
		smash_often();
		if (smashed.wrong[0])
			fprintf(stderr, "%s\n", smashed.wrong);
		/* Most places lead to a return address. */
		_exit(smashed.wrong[0] ? 1 : smashed.n_short < SMASHES / 2 ? 2 : 0);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- contexts that lie ---- */

static void a_context_with_any_registers_ends_the_walk(void **state)
{
	static ucontext_t uc;
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	random_state = 1;
	for (int i = 0; i < 20000; i++) {
		for (int r = 0; r < NGREG; r++)
			uc.uc_mcontext.gregs[r] =
				(greg_t)random_word((uint64_t)(uintptr_t)&walk, 8192);
		size_t n = cairn_backtrace_context(&uc, pcs, MAX, &walk);
		assert_between(n, 1, MAX);
		assert_int_equal(pcs[0].v, uc.uc_mcontext.gregs[REG_RIP]);
	}
}

static void a_stack_that_cannot_be_read_ends_the_walk(void **state)
{
	static ucontext_t uc;
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	uint8_t *pages =
		mmap(NULL, 2 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(pages, MAP_FAILED);
	assert_int_equal(mprotect(pages + 4096, 4096, PROT_NONE), 0);
	uc.uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)recurse;
	uc.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(pages + 4096);
	assert_int_equal(cairn_backtrace_context(&uc, pcs, MAX, &walk), 1);
	assert_int_equal(walk.end, CAIRN_WALK_UNREADABLE);
	uc.uc_mcontext.gregs[REG_RSP] = (greg_t)(uintptr_t)(pages + 4088);
	assert_int_equal(cairn_backtrace_context(&uc, pcs, MAX, &walk), 1);
	assert_int_equal(walk.end, CAIRN_WALK_OUTERMOST);
	munmap(pages, 2 * 4096);
}

static void a_call_to_nowhere_is_reported(void **state)
{
	static ucontext_t uc;
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	uc.uc_mcontext.gregs[REG_RIP] = 0;
	assert_int_equal(cairn_backtrace_context(&uc, pcs, MAX, &walk), 1);
	assert_int_equal(walk.end, CAIRN_WALK_NO_FILE);
	assert_int_equal(walk.at.v, 0);
}

/* ---- call frame information in memory ---- */

static int find_eh(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct eh_memory *eh = ctx;
	uint64_t hdr = 0;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++)
		if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME)
			hdr = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t lo = info->dlpi_addr + p->p_vaddr;
		if (p->p_type != PT_LOAD || hdr < lo || hdr >= lo + p->p_memsz)
			continue;
		eh->hdr = (const uint8_t *)(uintptr_t)hdr;
		eh->lo = (const uint8_t *)(uintptr_t)lo;
		eh->hi = eh->lo + p->p_memsz;
	}
	return 1;
}

static void damaged_information_in_memory_is_survived(void **state)
{
	struct eh_memory eh = {.machine = EM_X86_64};
	struct rule_words rule;
	dl_iterate_phdr(find_eh, &eh);
	assert_non_null(eh.hdr);
	size_t before = (size_t)(eh.hdr - eh.lo), n = (size_t)(eh.hi - eh.hdr);
	uint64_t at = (uint64_t)(uintptr_t)recurse;
	assert_int_equal(eh_memory_rule(&eh, at, &rule), 0);
	assert_int_equal(((const struct cairn_unwind_rule *)rule.words)->cfa, CAIRN_UNWIND_CFA_REG);
	/* A copy elsewhere describes the code that is as far from it. */
	uint8_t *copy = malloc(n);
	assert_non_null(copy);
	memcpy(copy, eh.hdr, n);
	struct eh_memory moved = {.hdr = copy, .lo = copy, .hi = copy + n, .machine = EM_X86_64};
	uint64_t moved_at = at + (uint64_t)(copy - eh.hdr);
	assert_int_equal(eh_memory_rule(&moved, moved_at, &rule), 0);
	assert_int_equal(((const struct cairn_unwind_rule *)rule.words)->cfa, CAIRN_UNWIND_CFA_REG);
	for (size_t cut = 0; cut < n; cut += cut < 4096 ? 1 : 97) {
		/* A copy of that size: the sanitizer sees what reads after it. */
		uint8_t *part = malloc(cut ? cut : 1);
		assert_non_null(part);
		memcpy(part, copy, cut);
		struct eh_memory shorter = {
			.hdr = part, .lo = part, .hi = part + cut, .machine = EM_X86_64};
		eh_memory_rule(&shorter, at + (uint64_t)(part - eh.hdr), &rule);
		free(part);
	}
	random_state = 3;
	for (int i = 0; i < 50000; i++) {
		size_t byte = random_u64() % (i & 1 ? n : 64);
		copy[byte] ^= (uint8_t)(1u << random_u64() % 8);
		eh_memory_rule(&moved, moved_at + random_u64() % 4096, &rule);
		copy[byte] = eh.hdr[byte];
	}
	assert_true(before < (size_t)(eh.hi - eh.lo));
	free(copy);
}

/* ---- many threads ---- */

static volatile bool stop;

static NOINLINE void walk_alone(void)
{
	struct cairn_addr pcs[MAX];
	struct cairn_backtrace walk;
	size_t first = cairn_backtrace(pcs, MAX, &walk);
	for (int i = 0; i < 50; i++) {
		size_t n = cairn_backtrace(pcs, MAX, &walk);
		if (walk.end != CAIRN_WALK_OUTERMOST || n != first)
			abort();
	}
	BARRIER();
}

static void *walk_until_stopped(void *arg)
{
	for (int i = 0; !__atomic_load_n(&stop, __ATOMIC_RELAXED); i++)
		recurse(i % 40, walk_alone);
	return NULL;
}

static void threads_walk_while_tables_are_published(void **state)
{
	enum { N = 4 };
	pthread_t threads[N];
	struct cairn_err err = {0};
	int n = 1;
	stop = false;
	for (int i = 0; i < N; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, walk_until_stopped, NULL), 0);
	for (int i = 0; i < 5 && n > 0; i++) {
		n = cairn_backtrace_prepare(&err);
		usleep(20000);
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int i = 0; i < N; i++)
		pthread_join(threads[i], NULL);
	if (n <= 0)
		fail_msg("%d: %s", n, err.msg);
}

static void preparing_says_how_many_objects_have_a_table(void **state)
{
	struct cairn_err err = {0};
	int n = cairn_backtrace_prepare(&err);
	assert_true(n >= 3);
	assert_int_equal(cairn_backtrace_prepare(&err), n);
}

int main(void)
{
	/*
	 * Each claim holds with the programs of FDEs, before anything is prepared, and with tables.
	 */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_equal_those_of_libgcc),
		cmocka_unit_test(a_walk_ends_at_its_limit),
		cmocka_unit_test(a_threads_stack_ends_where_it_was_begun),
		cmocka_unit_test(a_handler_sees_what_it_interrupted),
		cmocka_unit_test(stacks_at_random_instructions_equal_those_of_libgcc),
		cmocka_unit_test(another_library_at_the_same_address_has_its_own_rules),
		cmocka_unit_test(an_overwritten_stack_ends_the_walk),
		cmocka_unit_test(a_context_with_any_registers_ends_the_walk),
		cmocka_unit_test(a_stack_that_cannot_be_read_ends_the_walk),
		cmocka_unit_test(a_call_to_nowhere_is_reported),
	};
	/* With tables it takes no more stack. */
	const struct CMUnitTest with_programs[] = {
		cmocka_unit_test(too_little_stack_ends_the_walk_with_that_reason),
	};
	const struct CMUnitTest others[] = {
		cmocka_unit_test(threads_walk_while_tables_are_published),
		cmocka_unit_test(preparing_says_how_many_objects_have_a_table),
		cmocka_unit_test(a_prepared_library_that_was_replaced_is_not_believed),
		cmocka_unit_test(damaged_information_in_memory_is_survived),
	};
	/* Its first call takes memory. */
	walk_theirs();
	int failed = cmocka_run_group_tests_name("not prepared", tests, NULL, NULL);
	failed += cmocka_run_group_tests_name("not prepared, little stack", with_programs, NULL,
					      NULL);
	failed += cmocka_run_group_tests_name("both", others, NULL, NULL);
	failed += cmocka_run_group_tests_name("prepared", tests, NULL, NULL);
	return failed;
}
