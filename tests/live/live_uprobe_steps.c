/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which instructions tell the program that they were single-stepped
 *
 * The kernel runs a copy of a probed instruction elsewhere, with the trap flag set, and repairs
 * what depends on either. An instruction of each kind whose result depends on the flags, on the
 * instruction pointer, on the trap flag, or on an entry into the kernel runs twice from one state:
 * plain, and with a probe on it. General registers, flags, memory, and the signal if there is one
 * must be equal, unless insn_uprobe() says CAIRN_HAZARD_SEES_STEP. Then they must differ. And the
 * probe must fire once for each execution, unless insn_uprobe() says CAIRN_HAZARD_REPEATS.
 *
 * Each run is a child of its own: it may end in any way.
 *
 * Needs root and uprobe_multi (Linux 6.6); exits with 77 and the reason otherwise. A kernel that
 * does less harm than 6.18 is no failure: the last two claims are then skipped.
 */
#include <link.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ucontext.h>
#include <sys/wait.h>

#include "insn/insn.h"
#include "live/code_file.h"
#include "live/uprobe_multi.h"

/* What a run leaves. The assembler below knows the offsets. */
struct after {
	uint64_t regs[16]; /* rax rbx rcx rdx rsi rdi rbp r8 to r15, and how far rsp moved */
	uint64_t flags;
	uint64_t signal, code, fault_off, pc_off, trap_flag;
	uint8_t memory[1024];
};

/* Shared with the child that runs. */
struct report {
	struct after after;
	uint64_t hits;
};

static struct report *shared;
__attribute__((used)) static struct after out;
__attribute__((used)) static uint64_t saved_rsp;
__attribute__((used)) static uint64_t cell[8];
__attribute__((used)) static uint64_t far_target[4];

/* What far jumps and calls lead to, below 4 GB: jmp *%rbx. */
static const uint8_t far_stub[] = {0xff, 0xe3};

/*
 * A function around one instruction: rdi points to the memory that is compared, rsi to its second
 * half. @setup may change all but what is below rsp; flags are 0x246 before @insn. @finish takes
 * away what it left on the stack.
 */
#define CASE(id, setup, insn, finish)                                                              \
	extern const char start_##id[], place_##id[], end_##id[];                                  \
	__asm__(".text\nstart_" #id ":\n"                                                          \
		"push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"               \
		"mov %rsp, saved_rsp(%rip)\n"                                                      \
		"lea out+176(%rip), %rdi; lea 512(%rdi), %rsi\n"                                   \
		"mov $0x1111, %eax; mov $0x4444, %ebx; mov $4, %ecx; mov $0x3333, %edx; mov "      \
		"$0x7777, %ebp\n"                                                                  \
		"mov $0x8888, %r8d; mov $0x9999, %r9d; mov $0xaaaa, %r10d; mov $0xbbbb, %r11d; "   \
		"mov $0xcccc, %r12d\n"                                                             \
		"mov $0xdddd, %r13d; mov $0xeeee, %r14d; mov $0xffff, %r15d\n" setup "\n"          \
		"push $0x246; popfq\n"                                                             \
		"place_" #id ": " insn "\n"                                                        \
		"end_" #id ": " finish "\n"                                                        \
		"mov %rax, out(%rip); mov %rbx, out+8(%rip); mov %rcx, out+16(%rip); mov %rdx, "   \
		"out+24(%rip)\n"                                                                   \
		"mov %rsi, out+32(%rip); mov %rdi, out+40(%rip); mov %rbp, out+48(%rip); mov "     \
		"%r8, out+56(%rip)\n"                                                              \
		"mov %r9, out+64(%rip); mov %r10, out+72(%rip); mov %r11, out+80(%rip); mov "      \
		"%r12, out+88(%rip)\n"                                                             \
		"mov %r13, out+96(%rip); mov %r14, out+104(%rip); mov %r15, out+112(%rip); mov "   \
		"%rsp, %rax\n"                                                                     \
		"mov saved_rsp(%rip), %rsp; pushfq; pop out+128(%rip)\n"                           \
		"sub saved_rsp(%rip), %rax; mov %rax, out+120(%rip); cld\n"                        \
		"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");

#include "live/uprobe_steps.h"

struct a_case {
	const char *id, *start, *place, *end;
};

#undef CASE
#define CASE(id, setup, insn, finish) {#id, start_##id, place_##id, end_##id},
static const struct a_case cases[] = {
#include "live/uprobe_steps.h"
};

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

/*
 * What differs, and is not called a hazard: where the last x87 instruction was, which only handlers
 * of its exceptions look at. To refuse it would be to refuse nearly all functions of long double.
 */
static const char *const known_traces[] = {"x87_address"};

/* Hazards of some processors only: Intel's, AMD's, or those below a hypervisor. */
static const char *const of_some_processors[] = {"sysenter", "vmcall", "vmmcall", "cpuid"};

static bool is_among(const char *id, const char *const *ids, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(id, ids[i]))
			return true;
	return false;
}

#define IS_AMONG(id, ids) is_among(id, ids, sizeof(ids) / sizeof((ids)[0]))

/* ---- one run ---- */

static const struct a_case *running;
static int counter = -1; /* of the probe's hits; -1: without a probe */

__attribute__((noreturn)) static void finish_run(void)
{
	if (counter >= 0)
		shared->hits = perf_hits(counter);
	_exit(0);
}

static void on_signal(int nr, siginfo_t *info, void *context)
{
	const mcontext_t *m = &((const ucontext_t *)context)->uc_mcontext;
	struct after *a = &shared->after;
	*a = out;
	a->signal = (uint64_t)nr;
	a->code = (uint64_t)info->si_code;
	a->fault_off = (uint64_t)info->si_addr - (uint64_t)running->place;
	a->pc_off = (uint64_t)m->gregs[REG_RIP] - (uint64_t)running->place;
	a->trap_flag = (uint64_t)m->gregs[REG_EFL] >> 8 & 1;
	finish_run();
}

static void catch_signals(void)
{
	static char stack[65536];
	static const int signals[] = {SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS};
	stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction act = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	sigaltstack(&alt, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &act, NULL);
}

static int find_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	uint64_t *at = arg;
	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uint64_t from = info->dlpi_addr + p->p_vaddr;
		if (p->p_type == PT_LOAD && *at >= from && *at < from + p->p_filesz) {
			*at = *at - from + p->p_offset;
			break;
		}
	}
	return 1; /* the program is the first of the list */
}

static int set_probe(const struct a_case *c)
{
	uint64_t at = (uint64_t)c->place;
	dl_iterate_phdr(find_offset, &at);
	return perf_uprobe("/proc/self/exe", at, 0);
}

__attribute__((noreturn)) static void run_child(const struct a_case *c, bool with_probe)
{
	counter = with_probe ? set_probe(c) : -1;
	running = c;
	catch_signals();
	alarm(10);
	((void (*)(void))(uintptr_t)c->start)();
	shared->after = out;
	finish_run();
}

static struct report run(const struct a_case *c, bool with_probe)
{
	int status;
	memset(shared, 0, sizeof(*shared));
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0)
		run_child(c, with_probe);
	waitpid(pid, &status, 0);
	if (WIFSIGNALED(status))
		shared->after.signal = 1000 + (uint64_t)WTERMSIG(status);
	return *shared;
}

/* ---- all of them ---- */

struct result {
	struct report plain, probed;
	bool refused, differs;
};

static struct result measure_once(const struct a_case *c)
{
	struct result r = {.plain = run(c, false)};
	int fd = set_probe(c);
	r.refused = fd < 0;
	if (fd < 0)
		return r;
	close(fd);
	r.probed = run(c, true);
	r.differs = memcmp(&r.plain.after, &r.probed.after, sizeof(r.plain.after)) != 0;
	return r;
}

/*
 * A switch to another thread in between loses where the last x87 instruction was, which these show.
 * On a busy machine that comes several times in turn.
 */
static const char *const of_x87[] = {"fnstenv_after", "fnsave"};

static struct result measure(const struct a_case *c)
{
	struct result r = {.differs = true};
	int n_tries = IS_AMONG(c->id, of_x87) ? 30 : 1;

	for (int i = 0; i < n_tries && r.differs; i++)
		r = measure_once(c);
	return r;
}

static void print_difference(const struct after *a, const struct after *b)
{
	static const char *const names[] = {
		"rax", "rbx", "rcx", "rdx", "rsi", "rdi",   "rbp",    "r8",   "r9",    "r10", "r11",
		"r12", "r13", "r14", "r15", "rsp", "flags", "signal", "code", "fault", "pc",  "tf"};
	enum { N = sizeof(names) / sizeof(names[0]) };
	const uint64_t *x = (const uint64_t *)a, *y = (const uint64_t *)b;
	for (size_t i = 0; i < sizeof(*a) / 8; i++)
		if (x[i] != y[i])
			printf("    %s %zu: %lx, with a probe %lx\n", i < N ? names[i] : "memory",
			       i < N ? 0 : (i - N) * 8, (unsigned long)x[i], (unsigned long)y[i]);
}

/* Of all cases. */
struct verdict {
	size_t n_compared, n_sees, n_repeats;
	bool unsaid_step, unsaid_repeat; /* the kernel does harm that we do not tell */
	bool no_step, no_repeat;         /* it does less than we say */
};

/* Without the instructions a processor has nothing to show. */
static bool is_unknown_to_processor(const struct result *r)
{
	return r->plain.after.signal == SIGILL;
}

static void judge(const struct a_case *c, struct verdict *v, bool show_all)
{
	enum cairn_hazard hazard =
		insn_uprobe((const uint8_t *)c->place, (size_t)(c->end - c->place)).hazard;
	bool sees = hazard == CAIRN_HAZARD_SEES_STEP, repeats = hazard == CAIRN_HAZARD_REPEATS;
	if (hazard && !sees && !repeats)
		return;
	struct result r = measure(c);
	if (r.refused || show_all || r.differs)
		printf("  %-16s %-10s %s, %lu events\n", c->id, cairn_hazard_id(hazard),
		       r.refused   ? "refused"
		       : r.differs ? "differs"
				   : "the same",
		       (unsigned long)r.probed.hits);
	if (r.differs)
		print_difference(&r.plain.after, &r.probed.after);
	v->n_compared++;
	v->n_sees += sees;
	v->n_repeats += repeats;
	v->unsaid_step |= r.refused || (r.differs && !sees && !IS_AMONG(c->id, known_traces));
	v->no_step |= sees && !r.differs && !is_unknown_to_processor(&r) &&
		      !IS_AMONG(c->id, of_some_processors);
	/* A call that comes by once, or a string instruction with a count of 0 or 1. */
	bool once = r.probed.hits == 1 || r.probed.after.signal;
	bool is_short = strstr(c->id, "_once") || strstr(c->id, "_never");
	v->unsaid_repeat |= !once && !repeats;
	v->no_repeat |= once && repeats && !is_short;
}

static bool map_far_stub(void)
{
	void *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		return false;
	memcpy(low, far_stub, sizeof(far_stub));
	far_target[0] = (uint64_t)low | 0x33ull << 32;
	return true;
}

static bool claim(bool ok, const char *name)
{
	printf("%s %s\n", ok ? "ok" : "not ok", name);
	return ok;
}

int main(int argc, char **argv)
{
	struct verdict v = {0};
	(void)argv;
	if (geteuid() != 0 || uprobe_multi_prog() < 0) {
		puts(geteuid() ? "uprobes need root"
			       : "the kernel does not load a uprobe_multi program");
		return 77;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (shared == MAP_FAILED || !map_far_stub())
		return 1;
	for (size_t i = 0; i < N_CASES; i++)
		judge(&cases[i], &v, argc > 1);
	printf("%zu instructions: %zu tell the program of the single step, %zu repeat\n",
	       v.n_compared, v.n_sees, v.n_repeats);
	bool ok = claim(!v.unsaid_step && v.n_compared > 100,
			"a_probe_changes_a_result_only_where_we_say_sees_step");
	ok &= claim(!v.unsaid_repeat, "an_instruction_gives_one_event_unless_we_say_repeats");
	if (v.no_step)
		puts("skip what_sees_step_ends_otherwise_under_a_probe: this kernel does less "
		     "harm");
	else
		ok &= claim(v.n_sees > 5, "what_sees_step_ends_otherwise_under_a_probe");
	if (v.no_repeat)
		puts("skip what_repeats_gives_an_event_each_time: this kernel does less harm");
	else
		ok &= claim(v.n_repeats > 5, "what_repeats_gives_an_event_each_time");
	return !ok;
}
