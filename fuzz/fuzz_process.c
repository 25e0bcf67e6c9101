/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of a process whose stack, and whose registers, are the input's
 *
 *	0   8   struct head
 *	8   n   words of the stack, of 2 bytes each (walk_program.h)
 *
 * A small program waits in the kernel, with a stack pointer that it was told: in a function with
 * rows, or in code of no file. It has three threads; one of them waits for the child of its
 * vfork(2), and cannot be stopped, when the input says so. Without a compiler there is no such
 * program. What is not reached: threads that end or start while they are stopped.
 */
#include "fuzz.h"

#include <assert.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cairn/stack.h>

#include "walk_program.h"
#include "workspace.h"

/* Each input is a process to stop. */
const unsigned int fuzz_places_max = 12;

enum { SHARE_FD = 9, N_WORDS = 480, SP_FIRST = 0x100, TEXT = 0x402000, JIT = 0x10000000 };

#define SHARE_AT 0x20000000

enum place { IN_ROWS, BY_FRAME_POINTER, IN_NO_FILE, N_PLACES };

enum { IS_NEW = 4, NO_REGISTERS = 8, TWICE = 16, BLOCKED = 32, PLACE = 3 };

/* Looks at the program until it waits, some 50 microseconds apart. */
enum { WAITS = 100 };

struct head {
	uint8_t flags, max_frames;
	uint16_t sp, fp, rbx;
};
_Static_assert(sizeof(struct head) == 8, "as the comment says");

/* What both see; the program knows its offsets by number. */
struct share {
	uint32_t turn, seen;
	uint64_t kept[4];       /* rsp, rbp, rbx, r12 of the program */
	uint64_t regs[4];       /* the same while it waits */
	uint32_t number, value; /* futex(2): and what it waits on */
	uint32_t place, is_blocked, blocked_tid, reserved;
	uint64_t unused[4];
	uint64_t stack[N_WORDS];
};
_Static_assert(offsetof(struct share, stack) == 128 && sizeof(struct share) <= 4096, "one page");

/*
 * wait_N(share): with other registers, wait for the next turn; the stack pointer comes back from
 * memory.
 */
#define WAIT(n, rows)                                                                              \
	".globl wait_" #n "\n.type wait_" #n ", @function\nwait_" #n ":\n.cfi_startproc\n"         \
	"mov %rsp, 8(%rdi)\nmov %rbp, 16(%rdi)\nmov %rbx, 24(%rdi)\nmov %r12, 32(%rdi)\n"          \
	"mov 40(%rdi), %rsp\nmov 48(%rdi), %rbp\nmov 56(%rdi), %rbx\nmov 64(%rdi), %r12\n" rows    \
	"mov 72(%rdi), %eax\nmov 76(%rdi), %edx\nxor %esi, %esi\nxor %r10d, %r10d\nsyscall\n"      \
	"mov 8(%rdi), %rsp\nmov 16(%rdi), %rbp\nmov 24(%rdi), %rbx\nmov 32(%rdi), %r12\nret\n"     \
	".cfi_endproc\n.globl end_" #n "\nend_" #n ":\n.size wait_" #n ", . - wait_" #n "\n"

/*
 * third_thread: while share->is_blocked (84) is 1, in vfork(2) with a child that waits for 0, and
 * ends with the thread. Its stack is the input's.
 */
#define THIRD_THREAD                                                                               \
	".globl third_thread\n.type third_thread, @function\nthird_thread:\n"                      \
	"mov %rdi, %rbx\nmov $186, %eax\nsyscall\nmov %eax, 88(%rbx)\n"                            \
	"1: mov $202, %eax\nlea 84(%rbx), %rdi\nxor %esi, %esi\nxor %edx, %edx\nxor %r10d, "       \
	"%r10d\nsyscall\n"                                                                         \
	"cmpl $1, 84(%rbx)\njne 1b\nmov $58, %eax\nsyscall\ntest %eax, %eax\nje 2f\n"              \
	"mov $61, %eax\nmov $-1, %rdi\nxor %esi, %esi\nxor %edx, %edx\nxor %r10d, "                \
	"%r10d\nsyscall\njmp 1b\n"                                                                 \
	"2: mov $157, %eax\nmov $1, %edi\nmov $9, %esi\nsyscall\n"                                 \
	"3: mov $202, %eax\nlea 84(%rbx), %rdi\nxor %esi, %esi\nmov $1, %edx\nxor %r10d, "         \
	"%r10d\nsyscall\n"                                                                         \
	"cmpl $1, 84(%rbx)\nje 3b\nmov $60, %eax\nxor %edi, %edi\nsyscall\nhlt\n"

static const char program_asm[] =
	WALK_FILE ".text\n" WAIT(0, "") WAIT(1, ".cfi_def_cfa rbp, 16\n.cfi_offset rbp, -16\n")
		THIRD_THREAD ".globl begin\nbegin: mov %rsp, %rdi\ncall run\nhlt\n";

static const char program_c[] =
	"void wait_0(void *), wait_1(void *); extern const char end_0[];\n"
	"static long call(long n, long a, long b, long c, long d, long e, long f)\n"
	"{ register long r10 asm(\"r10\") = d, r8 asm(\"r8\") = e, r9 asm(\"r9\") = f; long r;\n"
	"  asm volatile(\"syscall\" : \"=a\"(r) : \"0\"(n), \"D\"(a), \"S\"(b), \"d\"(c), "
	"\"r\"(r10), \"r\"(r8), \"r\"(r9) : \"rcx\", \"r11\", \"memory\"); return r; }\n"
	"static void second_thread(char *stack)\n"
	"{ long clone = 56; asm volatile(\"syscall\\ntest %%eax, %%eax\\njne 1f\\n0: mov $34, "
	"%%eax\\nsyscall\\njmp 0b\\n1:\"\n"
	"  : \"+a\"(clone) : \"D\"(0x10f00), \"S\"(stack), \"d\"(0) : \"rcx\", \"r11\", "
	"\"memory\"); }\n"
	"static void start_third(char *stack, void *share)\n"
	"{ register void *r12 asm(\"r12\") = share; long clone = 56;\n"
	"  asm volatile(\"syscall\\ntest %%eax, %%eax\\njne 1f\\nmov %%r12, %%rdi\\njmp "
	"third_thread\\n1:\"\n"
	"  : \"+a\"(clone) : \"D\"(0x10f00), \"S\"(stack), \"d\"(0), \"r\"(r12) : \"rcx\", "
	"\"r11\", \"memory\"); }\n"
	"void run(long *sp)\n"
	"{ volatile unsigned *share = (void *)call(9, SHARE_AT, 4096, 3, 0x11, SHARE_FD, 0);\n"
	"  char *jit = (void *)call(9, JIT, 8192, 7, 0x32, -1, 0);\n"
	"  for (const char *p = (const char *)wait_0; p < end_0; p++) jit[p - (const char "
	"*)wait_0] = *p;\n"
	"  second_thread(jit + 8192); start_third((char *)SHARE_AT + 128 + SP_FIRST, (void "
	"*)share);\n"
	"  for (;;) { share[1] = share[0];\n"
	"    unsigned place = share[20];\n"
	"    (place == 1 ? wait_1 : place == 2 ? (void (*)(void *))jit : wait_0)((void *)share);\n"
	" } }\n";

static struct {
	struct workspace place;
	struct share *share;
	struct cairn_stacks *stacks;
	pid_t pid; /* -1: there is no such program */
} world;

static const uint64_t bases[WALK_N_BASES] = {[WALK_AT_TEXT] = TEXT,
					     [WALK_AT_JIT] = JIT,
					     [WALK_AT_STACK] = SHARE_AT + 128,
					     [WALK_AT_DATA] = SHARE_AT,
					     [WALK_AT_STUBS] = TEXT - 0x1000};

/* ---- the process ---- */

static void clean_up(void)
{
	cairn_stacks_close(world.stacks);
	if (world.pid > 0) {
		kill(world.pid, SIGKILL);
		waitpid(world.pid, NULL, 0);
	}
	workspace_close(&world.place);
}

static bool make_program(void)
{
	workspace_write(&world.place, "a.S", program_asm);
	workspace_write(&world.place, "run.c", program_c);
	return workspace_try(&world.place,
			     "gcc -O1 -ffreestanding -fno-stack-protector -fno-pie -no-pie "
			     "-nostdlib -static -DSHARE_AT=%d -DSHARE_FD=%d -DJIT=%d -DSP_FIRST=%d "
			     "-Wl,-Ttext=0x402000 -Wl,-e,begin -Wl,--build-id -o program a.S run.c",
			     SHARE_AT, SHARE_FD, JIT, SP_FIRST);
}

static pid_t start(int fd)
{
	const char *path = workspace_path(&world.place, "program");
	char *const args[] = {(char *)(uintptr_t)path, NULL};
	pid_t pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (dup2(fd, SHARE_FD) == SHARE_FD)
			execv(path, args);
		_exit(127);
	}
	return pid;
}

static void set_up(void)
{
	int fd = memfd_create("share", 0);
	world.pid = -1;
	workspace_open(&world.place);
	atexit(clean_up);
	if (fd < 0 || ftruncate(fd, 4096) < 0)
		abort();
	world.share = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	world.share->number = SYS_futex;
	world.share->regs[0] = SHARE_AT + 128 + SP_FIRST;
	world.share->seen = UINT32_MAX;
	if (make_program())
		world.pid = start(fd);
	close(fd);
}

/* As /proc says: S of one that waits. */
static char state_of(pid_t tid)
{
	char name[64], line[256] = "";
	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", (int)world.pid, (int)tid);
	FILE *f = fopen(name, "re");
	if (f && !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	const char *after = strrchr(line, ')');
	return after && after[1] ? after[2] : 'X';
}

static void pause_a_little(void)
{
	static const struct timespec t = {0, 30000};
	nanosleep(&t, NULL);
}

/* The third thread waits for its child, or for the next time. */
static void block(bool is_blocked)
{
	struct share *s = world.share;
	uint32_t value = is_blocked;
	if (s->is_blocked == value)
		return;
	__atomic_store_n(&s->is_blocked, value, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->is_blocked, FUTEX_WAKE, 9, NULL, NULL, 0);
	for (int i = 0; i < WAITS && state_of((pid_t)s->blocked_tid) != (is_blocked ? 'D' : 'S');
	     i++)
		pause_a_little();
}

/* The program goes on with the next turn, and waits in it. */
static void take_turn(const struct head *h)
{
	struct share *s = world.share;
	s->place = (h->flags & PLACE) % N_PLACES;
	s->regs[0] = walk_value(bases, h->sp);
	s->regs[1] = walk_value(bases, h->fp);
	s->regs[2] = s->regs[3] = walk_value(bases, h->rbx);
	s->value = s->turn + 1;
	__atomic_store_n(&s->turn, s->turn + 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &s->turn, FUTEX_WAKE, 9, NULL, NULL, 0);
	for (int i = 0; i < WAITS && __atomic_load_n(&s->seen, __ATOMIC_SEQ_CST) != s->turn; i++)
		pause_a_little();
	for (int i = 0; i < WAITS && state_of(world.pid) != 'S'; i++)
		pause_a_little();
}

/* ---- what is asked ---- */

static void check(const struct cairn_thread_stack *t)
{
	bool is_assumed = false;
	struct cairn_regs regs;
	assert(t->why && cairn_walk_end_text(t->end));
	for (size_t i = 0; i < t->n_frames; i++) {
		is_assumed |= t->frames[i]->is_assumed;
		cairn_stacks_regs(t, i, &regs);
	}
	assert(!is_assumed || t->end != CAIRN_WALK_OUTERMOST);
	if (t->n_frames) {
		static const struct cairn_loc_step steps[] = {{.op = CAIRN_LOC_REG, .reg = 7},
							      {.op = CAIRN_LOC_ADD, .imm = 8}};
		static const struct cairn_piece piece = {
			.kind = CAIRN_PIECE_MEMORY, .n_steps = 2, .steps = steps};
		static const struct cairn_location loc = {.n_pieces = 1, .pieces = &piece};
		uint64_t value;
		cairn_stacks_value(world.stacks, t, t->n_frames - 1, NULL, &loc, &value,
				   sizeof(value));
	}
}

static int take(const struct head *h, struct cairn_err *err)
{
	const struct cairn_stacks_opts opts = {.size = sizeof(opts),
					       .threads = 1,
					       .max_frames = h->max_frames,
					       .vectors = true,
					       .no_registers = h->flags & NO_REGISTERS};
	if (world.stacks && h->flags & IS_NEW) {
		cairn_stacks_close(world.stacks);
		world.stacks = NULL;
	}
	return world.stacks ? cairn_stacks_again(world.stacks, err)
			    : cairn_stacks_open_pid(world.pid, &opts, &world.stacks, err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_stacks_moment moment;
	struct cairn_err err = {0};
	struct head h;
	if (!world.share)
		set_up();
	if (size < sizeof(h) || world.pid < 0)
		return 0;
	memcpy(&h, bytes, sizeof(h));
	for (size_t i = 0; i < N_WORDS; i++) {
		uint16_t word = 0;
		if (sizeof(h) + 2 * i + 2 <= size)
			memcpy(&word, bytes + sizeof(h) + 2 * i, sizeof(word));
		world.share->stack[i] = word ? walk_value(bases, word) : 0;
	}
	take_turn(&h);
	block(h.flags & BLOCKED);
	for (int i = 0; i < 1 + !!(h.flags & TWICE); i++) {
		int rc = take(&h, &err);
		assert(rc == 0 || (err.code == rc && err.msg[0]));
		if (rc < 0)
			return 0;
		assert(cairn_stacks_n_threads(world.stacks) >= 1);
		for (size_t k = 0; k < cairn_stacks_n_threads(world.stacks); k++)
			check(cairn_stacks_thread(world.stacks, k));
		cairn_stacks_moment(world.stacks, &moment);
		cairn_stacks_note(world.stacks);
	}
	return 0;
}

/* ---- seeds ---- */

#define CALL(n, k) WALK_WORD(WALK_AT_TEXT, WALK_FUNCTION_BYTES *(n) + (k))
#define SP(n)      WALK_WORD(WALK_AT_STACK, n)

static void put_one(struct head h, const uint16_t *words, size_t n,
		    void (*put)(const void *bytes, size_t size))
{
	uint16_t all[4 + 512] = {0};
	memcpy(all, &h, sizeof(h));
	memcpy(all + 4 + SP_FIRST / 8, words, 2 * n);
	put(all, 2 * (4 + SP_FIRST / 8 + n));
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint16_t outer = CALL(WALK_START, WALK_CALL_1);
	const uint16_t by_rows[] = {CALL(WALK_SP, WALK_CALL_2), 0, 0, 0, 0, 0, outer};
	const uint16_t by_rbp[] = {
		0, 0, SP(SP_FIRST + 64), CALL(WALK_FP, WALK_CALL_2), 0, 0, 0, 0, 0, outer};
	const uint16_t on[] = {CALL(WALK_SP, WALK_CALL_1),
			       0,
			       0,
			       0,
			       0,
			       0,
			       WALK_WORD(WALK_AT_JIT, 0x40),
			       0,
			       WALK_WORD(WALK_AT_DATA, 8),
			       CALL(WALK_VALUES, WALK_CALL_1)};
	for (uint8_t place = 0; place < N_PLACES; place++) {
		put_one((struct head){place, 0, SP(SP_FIRST), SP(SP_FIRST + 16), 0}, by_rows,
			sizeof(by_rows) / 2, put);
		put_one((struct head){place | IS_NEW, 0, SP(SP_FIRST), SP(SP_FIRST + 16), 0},
			by_rbp, sizeof(by_rbp) / 2, put);
		put_one((struct head){place | NO_REGISTERS | IS_NEW, 3, SP(SP_FIRST),
				      SP(SP_FIRST + 48), 0},
			on, sizeof(on) / 2, put);
		put_one((struct head){place | TWICE | BLOCKED | IS_NEW, 0, SP(SP_FIRST),
				      SP(SP_FIRST + 16), 0},
			by_rows, sizeof(by_rows) / 2, put);
		put_one((struct head){place | TWICE, 0, WALK_WORD(WALK_AT_WILD, 3), SP(SP_FIRST),
				      0},
			on, sizeof(on) / 2, put);
	}
}
