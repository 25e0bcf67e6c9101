/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Vector instructions give the same results under a probe, but for those that we call misemulated
 *
 * Every register form of a VEX or EVEX instruction that this processor has is run twice from one
 * fixed state of all registers: plain, and with a probe on it. The states afterwards (XSAVE area,
 * general registers, flags, rsp) or the signals must be equal, unless insn_uprobe() says
 * CAIRN_HAZARD_MISEMULATED; then they must differ. Each run is a child of its own: what the kernel
 * makes of a misread instruction may be anything.
 *
 * Needs root, AVX and uprobe_multi (Linux 6.6); exits with 77 and the reason otherwise. Where a
 * kernel reads these instructions right, "must differ" is skipped and said so.
 */
#include <cpuid.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>

#include "insn/insn.h"
#include "live/code_file.h"
#include "live/uprobe_multi.h"

enum {
	SLOT = 64,    /* the instruction, a few nops, ret */
	NOPS_TO = 40, /* beyond the 16 bytes that the kernel copies for its single step */
	CASES_MAX = 8192,
	XSAVE_SIZE = 4096,
	XSTATE_SSE_AVX = 6,
	XSTATE_OPMASK = 5, /* component numbers of CPUID leaf 13 */
	XSTATE_AVX = 2,
	XSAVE_XMM0 = 160, /* offsets in the XSAVE area */
	XSAVE_BITS = 512,
};

/* What one run leaves behind. The offsets are known to run_from(). */
struct after {
	uint8_t xsave[XSAVE_SIZE];
	uint64_t rax, rcx, rdx, rsp_moved, flags;
	uint64_t signal;
} __attribute__((aligned(64)));

/* void run_from(void (*func)(void), const void *state, struct after *ret, void *scratch) */
void run_from(void (*func)(void), const void *state, struct after *ret, void *scratch);
__asm__(".globl run_from\n"
	"run_from:\n"
	"	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
	"	mov %rdi,%r12; mov %rsi,%r13; mov %rdx,%r14\n"
	"	mov $-1,%eax; mov $-1,%edx\n"
	"	xrstor (%r13)\n"
	"	mov %rcx,%rdi; mov %rcx,%rsi\n"
	"	mov $0x1111,%eax; mov $5,%ecx; mov $0x3333,%edx; mov $0x4444,%ebx; mov "
	"$0x7777,%ebp\n"
	"	mov $0x8888,%r8d; mov $0x9999,%r9d; mov $0xaaaa,%r10d; mov $0xbbbb,%r11d\n"
	"	mov %rsp,%r15\n"
	"	test %r8,%r8\n"
	"	call *%r12\n"
	"	pushf; pop 4128(%r14)\n"
	"	sub %rsp,%r15; mov %r15,4120(%r14); add %r15,%rsp\n"
	"	mov %rax,4096(%r14); mov %rcx,4104(%r14); mov %rdx,4112(%r14)\n"
	"	mov $-1,%eax; mov $-1,%edx\n"
	"	xsave (%r14)\n"
	"	vzeroupper\n"
	"	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
	"	ret\n");

struct cases {
	uint8_t *code; /* SLOT bytes each */
	size_t n;
};

/* ---- the instructions ---- */

/* Only register forms: an operand in memory would need an address. */
static void add_case(struct cases *c, const uint8_t *bytes, size_t n)
{
	struct insn insn;
	if (c->n == CASES_MAX || !insn_decode(bytes, n, 0, &insn))
		return;
	if (insn.reads_memory || insn.writes_memory || insn.flow != INSN_NEXT)
		return;
	uint8_t *slot = c->code + c->n++ * SLOT;
	memset(slot, 0xc3, SLOT);
	memset(slot, 0x90, NOPS_TO);
	memcpy(slot, bytes, insn.len);
}

static void add_vex(struct cases *c)
{
	for (unsigned int map = 1; map < 4; map++)
		for (unsigned int lpp = 0; lpp < 8; lpp++)
			for (unsigned int op = 0; op < 256; op++)
				for (unsigned int vvvv = 0; vvvv < 2; vvvv++) {
					uint8_t b[] = {0xc4,
						       (uint8_t)(0xe0 | map),
						       (uint8_t)((vvvv ? 0x78 : 0x68) | lpp),
						       (uint8_t)op,
						       0xc1,
						       0x05};
					add_case(c, b, sizeof(b));
				}
}

static void add_evex(struct cases *c)
{
	for (unsigned int map = 1; map < 4; map++)
		for (unsigned int wpp = 0; wpp < 8; wpp++)
			for (unsigned int op = 0; op < 256; op++)
				for (unsigned int vvvv = 0; vvvv < 2; vvvv++) {
					uint8_t b[] = {
						0x62,
						(uint8_t)(0xf0 | map),
						(uint8_t)((wpp & 4) << 5 | (vvvv ? 0x7c : 0x6c) | (wpp & 3)),
						0x48,
						(uint8_t)op,
						0xc1,
						0x05};
					add_case(c, b, sizeof(b));
				}
}

/* ---- running them ---- */

static sigjmp_buf out;

static void on_signal(int sig)
{
	siglongjmp(out, sig);
}

static void catch_signals(void)
{
	static const int signals[] = {SIGILL, SIGSEGV, SIGTRAP, SIGBUS, SIGFPE, SIGALRM};
	static uint8_t stack[1 << 16];
	stack_t alt = {.ss_sp = stack, .ss_size = sizeof(stack)};
	sigaltstack(&alt, NULL);
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		struct sigaction act = {.sa_handler = on_signal,
					.sa_flags = SA_ONSTACK | SA_NODEFER};
		sigaction(signals[i], &act, NULL);
	}
}

static void run_one(void (*func)(void), const void *state, struct after *ret)
{
	static uint8_t scratch[256];
	int sig = sigsetjmp(out, 1);
	if (sig) {
		memset(ret, 0, sizeof(*ret));
		ret->signal = (uint64_t)sig;
	} else {
		memset(scratch, 0, sizeof(scratch));
		ualarm(200000, 0);
		run_from(func, state, ret, scratch);
		/*
		 * Which components are in their initial state is noise: a context switch may change
		 * it.
		 */
		memset(ret->xsave + XSAVE_BITS, 0, sizeof(uint64_t));
	}
	ualarm(0, 0);
	/* A misread popf leaves the trap flag set. */
	__asm__ volatile("pushf; andq $~0x100,(%%rsp); popf" ::: "memory", "cc");
}

static bool run_all(const struct cases *c, const uint8_t *map, const void *state, struct after *ret)
{
	pid_t pid = fork();
	if (pid == 0) {
		catch_signals();
		for (size_t i = 0; i < c->n; i++)
			run_one((void (*)(void))(uintptr_t)(map + i * SLOT), state, &ret[i]);
		_exit(0);
	}
	int status = -1;
	return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static uint32_t component_offset(unsigned int component)
{
	uint32_t size = 0, offset = 0, c, d;
	__get_cpuid_count(13, component, &size, &offset, &c, &d);
	return size && offset + size <= XSAVE_SIZE ? offset : 0;
}

/* All vector registers different, masks different; the rest as it is now. */
static void make_state(uint8_t *state)
{
	uint32_t avx = component_offset(XSTATE_AVX), opmask = component_offset(XSTATE_OPMASK);
	uint64_t bits = XSTATE_SSE_AVX | (opmask ? 1u << XSTATE_OPMASK : 0), old;
	__asm__ volatile("xsave (%0)" ::"r"(state), "a"(-1), "d"(-1) : "memory");
	for (uint32_t i = 0; i < 256; i++) {
		state[XSAVE_XMM0 + i] = (uint8_t)(i * 37 + 11);
		state[avx + i] = (uint8_t)(i * 53 + 7);
	}
	for (uint32_t i = 0; opmask && i < 64; i++)
		state[opmask + i] = (uint8_t)(i * 29 + 3);
	memcpy(&old, state + XSAVE_BITS, sizeof(old));
	bits |= old;
	memcpy(state + XSAVE_BITS, &bits, sizeof(bits));
}

static uint32_t xsave_size(void)
{
	uint32_t a, b = 0, c, d;
	__get_cpuid_count(13, 0, &a, &b, &c, &d);
	return b;
}

static int attach_where_possible(const struct cases *c, const struct code_file *f)
{
	uint64_t *offs = calloc(c->n, sizeof(*offs));
	size_t n = 0;
	for (size_t i = 0; offs && i < c->n; i++) {
		enum cairn_hazard hazard = insn_uprobe(c->code + i * SLOT, SLOT).hazard;
		if (hazard == CAIRN_HAZARD_NONE || hazard == CAIRN_HAZARD_MISEMULATED)
			offs[n++] = i * SLOT;
	}
	int prog = uprobe_multi_prog();
	int link = prog < 0 ? prog : uprobe_multi_attach(prog, f->path, offs, n);
	free(offs);
	return link;
}

/* ---- the verdict ---- */

struct verdict {
	size_t same, differ, silent_harm, harmless_warnings, trapped;
};

static struct verdict judge(const struct cases *c, const struct after *plain,
			    const struct after *probed)
{
	struct verdict v = {0};
	for (size_t i = 0; i < c->n; i++) {
		const uint8_t *bytes = c->code + i * SLOT;
		enum cairn_hazard hazard = insn_uprobe(bytes, SLOT).hazard;
		if (plain[i].signal || (hazard && hazard != CAIRN_HAZARD_MISEMULATED))
			continue;
		bool differs = memcmp(&plain[i], &probed[i], sizeof(plain[i])) != 0;
		bool warned = hazard == CAIRN_HAZARD_MISEMULATED;
		v.trapped += probed[i].signal != 0;
		v.differ += differs && warned;
		v.same += !differs && !warned;
		v.silent_harm += differs && !warned;
		v.harmless_warnings += !differs && warned;
		if (differs == warned)
			continue;
		printf("  %s (signal %lu):",
		       differs ? "other result, not warned" : "same result, warned",
		       (unsigned long)probed[i].signal);
		for (size_t j = 0; j < 7; j++)
			printf(" %02x", bytes[j]);
		puts("");
	}
	return v;
}

static void report(const struct verdict *v)
{
	printf("%zu instructions with the same result, %zu misemulated (%zu of them end in a "
	       "signal)\n",
	       v->same, v->differ, v->trapped);
	printf("%s probed_vector_instructions_keep_their_result_unless_we_warn\n",
	       v->silent_harm || !v->same ? "not ok" : "ok");
	if (v->differ == 0)
		puts("skip warned_vector_instructions_do_lose_their_result: this kernel reads them "
		     "right");
	else
		printf("%s warned_vector_instructions_do_lose_their_result\n",
		       v->harmless_warnings ? "not ok" : "ok");
}

int main(void)
{
	if (geteuid() != 0 || !__builtin_cpu_supports("avx") || xsave_size() > XSAVE_SIZE) {
		puts(geteuid() ? "uprobes need root"
			       : "the processor has no AVX, or more state than expected");
		return 77;
	}
	struct cases c = {.code = calloc(CASES_MAX, SLOT)};
	uint8_t *state = aligned_alloc(64, XSAVE_SIZE);
	size_t size = CASES_MAX * sizeof(struct after);
	struct after *plain =
		mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!c.code || !state || plain == MAP_FAILED)
		return 1;
	struct after *probed = plain + CASES_MAX;
	memset(state, 0, XSAVE_SIZE);
	make_state(state);
	add_vex(&c);
	add_evex(&c);
	struct code_file f = code_file_new(c.code, c.n * SLOT);
	code_file_map(&f);
	bool ok = run_all(&c, f.map, state, plain);
	int link = attach_where_possible(&c, &f);
	struct verdict v = {.silent_harm = 1};
	if (link < 0) {
		printf("attaching: %s\n", strerror(-link));
	} else if (ok && run_all(&c, f.map, state, probed)) {
		v = judge(&c, plain, probed);
	} else {
		puts("a run ended early");
	}
	report(&v);
	if (link >= 0)
		close(link);
	code_file_free(&f);
	free(c.code);
	free(state);
	return v.silent_harm || v.harmless_warnings;
}
