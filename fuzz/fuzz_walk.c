/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks: of a core file's threads, and of this process
 *
 *	0   16  struct head
 *	16  n   code that was made at run time
 *	    ... words of the stack, of 2 bytes each (walk_program.h)
 *
 * The core has the program of walk_program.h mapped, code of no file, a stack and some data;
 * registers and stack are the input's. A walk of this process is given the same registers, over
 * code of its own that has the same functions.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cairn/backtrace.h>
#include <cairn/stack.h>

#include "core_builder.h"
#include "unwind/backtrace_object.h"
#include "walk_program.h"
#include "workspace.h"

/* Each input is a core to open. */
const unsigned int fuzz_places_max = 40;

enum {
	TEXT = 0x402000,
	STUBS = 0x401000,
	GOT = 0x404000,
	JIT = 0x10000000,
	STACK = 0x70000000,
	DATA = 0x20000000,
	PAGE = 0x1000
};
enum { N_WORDS = 1024, SP_FIRST = 0x100, FILE_MAX = 1 << 16, N_OTHERS = 3 };

enum {
	IS_SELF = 1,
	IS_AARCH64 = 2,
	IS_PREPARED = 4,
	IS_STRIPPED = 8,
	NO_REGISTERS = 16,
	HAS_NO_PROGRAM = 32,
	NO_CACHE = 64,
	IS_CUT = 128
};

struct head {
	uint8_t flags, n_jit;
	uint16_t pc, sp, fp, lr, other[N_OTHERS];
};
_Static_assert(sizeof(struct head) == 16, "as the comment says");

__asm__(WALK_IN_TARGET);
extern const char walk_text[];

static struct {
	struct workspace place;
	uint8_t file[2][FILE_MAX]; /* the program; the same without symbols */
	size_t n_file[2];
	int core;
} world = {.core = -1};

static const uint64_t core_bases[WALK_N_BASES] = {[WALK_AT_TEXT] = TEXT,
						  [WALK_AT_JIT] = JIT,
						  [WALK_AT_STACK] = STACK,
						  [WALK_AT_DATA] = DATA,
						  [WALK_AT_STUBS] = STUBS};

/* ---- the world ---- */

static void clean_up(void)
{
	workspace_close(&world.place);
}

static size_t read_file(const char *name, uint8_t *to)
{
	FILE *in = fopen(workspace_path(&world.place, name), "re");
	size_t n = in ? fread(to, 1, FILE_MAX, in) : 0;
	if (in)
		fclose(in);
	return n < FILE_MAX ? n : 0;
}

static void set_up(void)
{
	workspace_open(&world.place);
	atexit(clean_up);
	workspace_write(&world.place, "a.S", WALK_FILE);
	world.core = memfd_create("core", MFD_CLOEXEC);
	if (world.core < 0)
		abort();
	if (!workspace_try(&world.place,
			   "gcc -nostdlib -static -Wl,--build-id=sha1 -Wl,-Ttext=0x402000 -o prog0 "
			   "a.S && strip -o prog1 prog0"))
		return;
	world.n_file[0] = read_file("prog0", world.file[0]);
	world.n_file[1] = read_file("prog1", world.file[1]);
}

/* ---- a core ---- */

static uint64_t at_core(uint16_t word)
{
	return walk_value(core_bases, word);
}

/*
 * A page of code: the input's bytes; after them calls at the places that walk_program.h has them
 * at.
 */
static void fill_jit(uint8_t page[PAGE], const uint8_t *code, size_t n)
{
	memset(page, 0x90, PAGE);
	for (size_t i = 0; i + WALK_FUNCTION_BYTES <= PAGE; i += WALK_FUNCTION_BYTES) {
		page[i] = 0x55;
		memcpy(page + i + 1, "\x48\x89\xe5", 3);
		page[i + WALK_CALL_1 - 5] = 0xe8;
		memcpy(page + i + WALK_CALL_2 - 2, "\xff\xd0", 2);
	}
	memcpy(page, code, n);
}

static void put_thread(struct core_builder *b, const struct head *h, uint32_t tid, uint16_t pc)
{
	/* rax rdx rcx rbx rsi rdi rbp rsp r8 to r15 in the order of the kernel. */
	uint64_t user[34] = {0};
	uint8_t desc[392] = {0};
	if (h->flags & IS_AARCH64) {
		user[29] = at_core(h->fp);
		user[30] = at_core(h->lr);
		user[31] = at_core(h->sp);
		user[32] = at_core(pc);
		memcpy(desc + 32, &tid, sizeof(tid));
		memcpy(desc + 112, user, sizeof(user));
		cb_note(b, NT_PRSTATUS, desc, sizeof(desc));
		return;
	}
	user[16] = at_core(pc);
	user[19] = at_core(h->sp);
	user[4] = at_core(h->fp);
	user[5] = at_core(h->other[0]);
	user[3] = at_core(h->other[1]);
	user[2] = at_core(h->other[2]);
	cb_thread(b, tid, tid == 1 ? 11 : 0, user);
}

/* As the kernel does: the first page of a file, what can be written, what is in no file. */
static void put_program(struct core_builder *b, const struct head *h)
{
	bool is_stripped = h->flags & IS_STRIPPED;
	const uint8_t *file = world.file[is_stripped];
	const char *path = is_stripped ? "/prog1" : "/prog0";
	if (h->flags & HAS_NO_PROGRAM || world.n_file[is_stripped] < GOT - STUBS + 2 * PAGE)
		return;
	cb_file(b, STUBS - PAGE, STUBS, 0, path);
	cb_file(b, STUBS, TEXT + PAGE, PAGE, path);
	cb_file(b, TEXT + PAGE, GOT, TEXT + PAGE - STUBS + PAGE, path);
	cb_file(b, GOT, GOT + PAGE, GOT - STUBS + PAGE, path);
	cb_memory(b, (struct cb_segment){STUBS - PAGE, PAGE, PF_R, file, PAGE});
	cb_memory(b, (struct cb_segment){STUBS, TEXT + PAGE - STUBS, PF_R | PF_X, NULL, 0});
	cb_memory(b, (struct cb_segment){TEXT + PAGE, PAGE, PF_R, NULL, 0});
	cb_memory(b, (struct cb_segment){GOT, PAGE, PF_R | PF_W, file + (GOT - STUBS) + PAGE, 16});
}

static void write_core(const struct head *h, const uint8_t *code, const uint64_t *stack,
		       size_t n_stack)
{
	static uint8_t jit[PAGE];
	static uint64_t data[N_WORDS / 2];
	struct core_builder b = {0};
	fill_jit(jit, code, h->n_jit);
	for (size_t i = 0; i < N_WORDS / 2; i++)
		data[i] = STACK + 8 * i;
	put_thread(&b, h, 1, h->pc);
	cb_siginfo(&b, 11, 1, 0x10);
	put_thread(&b, h, 2, h->lr);
	put_program(&b, h);
	cb_memory(&b, (struct cb_segment){JIT, PAGE, PF_R | PF_X, jit, PAGE});
	cb_memory(&b, (struct cb_segment){DATA, sizeof(data), PF_R | PF_W, data, sizeof(data)});
	cb_memory(&b, (struct cb_segment){STACK, sizeof(uint64_t) * N_WORDS, PF_R | PF_W, stack,
					  sizeof(uint64_t) * n_stack});
	cb_finish(&b);
	if (h->flags & IS_AARCH64)
		((Elf64_Ehdr *)(void *)b.bytes)->e_machine = EM_AARCH64;
	size_t n = h->flags & IS_CUT ? b.n - 8 * n_stack / 2 : b.n;
	if (ftruncate(world.core, 0) < 0 || pwrite(world.core, b.bytes, n, 0) != (ssize_t)n)
		abort();
	cb_free(&b);
}

static void check_thread(const struct cairn_thread_stack *t)
{
	bool is_assumed = false;
	struct cairn_regs regs;
	assert(t->n_frames && t->why && cairn_walk_end_text(t->end));
	for (size_t i = 0; i < t->n_frames; i++) {
		const struct cairn_stack_frame *f = t->frames[i];
		is_assumed |= f->is_assumed;
		assert(!f->is_assumed == !f->assumed);
		cairn_stacks_regs(t, i, &regs);
		assert(!regs.known || regs.pc.v == f->pc.v);
	}
	/* What an assumption led through is no fact. */
	assert(!is_assumed || t->end != CAIRN_WALK_OUTERMOST);
}

static void walk_core(const struct head *h)
{
	char path[64], root[128], program[128];
	struct cairn_stacks *stacks;
	struct cairn_err err = {0};
	snprintf(path, sizeof(path), "/proc/self/fd/%d", world.core);
	snprintf(root, sizeof(root), "%s", world.place.dir);
	snprintf(program, sizeof(program), "%s/prog0", world.place.dir);
	const struct cairn_stacks_opts opts = {
		.size = sizeof(opts),
		.sysroot = root,
		.threads = 1,
		.no_registers = h->flags & NO_REGISTERS,
		.vectors = true,
		.program = h->flags & HAS_NO_PROGRAM && h->flags & NO_CACHE ? program : NULL};
	int rc = cairn_stacks_open_core(path, &opts, &stacks, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc < 0)
		return;
	for (size_t i = 0; i < cairn_stacks_n_threads(stacks); i++)
		check_thread(cairn_stacks_thread(stacks, i));
	assert(cairn_stacks_again(stacks, &err) < 0);
	cairn_stacks_note(stacks);
	cairn_stacks_close(stacks);
}

/* ---- this process ---- */

static void walk_self(const struct head *h, const uint16_t *words, size_t n)
{
	static uint64_t stack[N_WORDS] __attribute__((aligned(16)));
	const uint64_t bases[WALK_N_BASES] = {[WALK_AT_TEXT] = (uint64_t)(uintptr_t)walk_text,
					      [WALK_AT_JIT] = (uint64_t)(uintptr_t)&qsort,
					      [WALK_AT_STACK] = (uint64_t)(uintptr_t)stack,
					      [WALK_AT_DATA] = (uint64_t)(uintptr_t)&h - 64,
					      [WALK_AT_STUBS] = (uint64_t)(uintptr_t)&walk_self};
	struct cairn_addr pcs[64];
	struct cairn_backtrace walk;
	ucontext_t context;
	memset(stack, 0, sizeof(stack));
	memset(&context, 0, sizeof(context));
	for (size_t i = 0; i < n; i++)
		stack[i] = walk_value(bases, words[i]);
	/* What the kernel writes for a signal's frame: the code segment of user space. */
	for (size_t i = 0; h->flags & IS_STRIPPED && i < N_WORDS; i++)
		stack[i] = i % 8 == 5 && !stack[i] ? 0x33 : stack[i];
	greg_t *r = context.uc_mcontext.gregs;
	r[REG_RIP] = (greg_t)walk_value(bases, h->pc);
	r[REG_RSP] = (greg_t)walk_value(bases, h->sp);
	r[REG_RBP] = (greg_t)walk_value(bases, h->fp);
	r[REG_RBX] = (greg_t)walk_value(bases, h->other[0]);
	r[REG_R12] = (greg_t)walk_value(bases, h->other[1]);
	if (h->flags & IS_PREPARED)
		cairn_backtrace_prepare(NULL);
	backtrace_cache_use(!(h->flags & NO_CACHE));
	size_t max = h->flags & NO_REGISTERS ? 2 : 64, n_first = 0;
	/* The second time the cache answers, and says the same. */
	for (int i = 0; i < 2; i++) {
		size_t found = cairn_backtrace_context(&context, pcs, max, &walk);
		assert(found <= max && walk.n_exact <= 4 && cairn_walk_end_text(walk.end) &&
		       (i == 0 || found == n_first));
		n_first = found;
	}
	assert(cairn_backtrace(pcs, 64, &walk) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint64_t stack[N_WORDS];
	uint16_t words[N_WORDS];
	struct head h;
	if (world.core < 0)
		set_up();
	if (size < sizeof(h))
		return 0;
	memcpy(&h, bytes, sizeof(h));
	bytes += sizeof(h);
	size -= sizeof(h);
	if (h.n_jit > size)
		h.n_jit = (uint8_t)size;
	size_t n = (size - h.n_jit) / sizeof(*words);
	n = n < N_WORDS ? n : N_WORDS;
	if (n)
		memcpy(words, bytes + h.n_jit, n * sizeof(*words));
	if (h.flags & IS_SELF) {
		walk_self(&h, words, n);
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		stack[i] = at_core(words[i]);
	write_core(&h, bytes, stack, n);
	walk_core(&h);
	return 0;
}

/* ---- seeds ---- */

#define FN(n)      WALK_WORD(WALK_AT_TEXT, WALK_FUNCTION_BYTES *(n) + 4)
#define CALL(n, k) WALK_WORD(WALK_AT_TEXT, WALK_FUNCTION_BYTES *(n) + (k))
#define RUN(n)     WALK_WORD(WALK_AT_JIT, n)
#define SP(n)      WALK_WORD(WALK_AT_STACK, n)
#define NUMBER(n)  WALK_WORD(WALK_AT_NUMBER, n)
#define WORDS(...)                                                                                 \
	(const uint16_t[]){__VA_ARGS__}, sizeof((const uint16_t[]){__VA_ARGS__}) / sizeof(uint16_t)
#define JIT_CODE(s) (s), sizeof(s) - 1

struct seed {
	struct head h;
	const char *code;
	size_t n_code;
	const uint16_t *words; /* from the stack pointer, which is at SP_FIRST */
	size_t n_words;
};

static void put_one(const struct seed *s, uint8_t flags,
		    void (*put)(const void *bytes, size_t size))
{
	uint8_t all[4096] = {0};
	struct head h = s->h;
	uint16_t first[SP_FIRST / 8] = {0};
	h.flags |= flags;
	h.n_jit = (uint8_t)s->n_code;
	h.sp = h.sp ? h.sp : SP(SP_FIRST);
	memcpy(all, &h, sizeof(h));
	memcpy(all + sizeof(h), s->code, s->n_code);
	for (size_t i = 0; i < SP_FIRST / 8; i++)
		first[i] = NUMBER(0);
	memcpy(all + sizeof(h) + s->n_code, first, sizeof(first));
	memcpy(all + sizeof(h) + s->n_code + sizeof(first), s->words, 2 * s->n_words);
	put(all, sizeof(h) + s->n_code + sizeof(first) + 2 * s->n_words);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	const uint16_t outer = CALL(WALK_START, WALK_CALL_1), zero = NUMBER(0);
	/* clang-format off */
	const struct seed seeds[] = {
		/* Rows: a frame pointer, a fixed frame, the outermost. */
		{{.pc = CALL(WALK_FP, 20), .fp = SP(SP_FIRST + 16)}, JIT_CODE(""), WORDS(zero, zero, SP(SP_FIRST + 96), CALL(WALK_SP, WALK_CALL_2), zero, zero, zero, zero, zero, outer)},
		/* Each other kind of rule, one after the other. */
		{{.pc = FN(WALK_EXPRESSION)}, JIT_CODE(""), WORDS(zero, NUMBER(7), SP(SP_FIRST + 64), zero, zero, NUMBER(3), zero, CALL(WALK_VALUES, WALK_CALL_1), zero, zero, zero, zero, zero, outer)},
		{{.pc = FN(WALK_VALUES), .other = {SP(SP_FIRST + 32)}}, JIT_CODE(""), WORDS(zero, zero, zero, NUMBER(9), zero, CALL(WALK_REGISTERS, WALK_CALL_1), zero, zero, outer, zero, zero, outer)},
		{{.pc = FN(WALK_REGISTERS), .other = {SP(SP_FIRST + 8), NUMBER(8)}}, JIT_CODE(""), WORDS(zero, zero, zero, outer)},
		{{.pc = FN(WALK_RA_VALUE)}, JIT_CODE(""), WORDS(CALL(WALK_SP, WALK_CALL_1), outer, zero, zero, zero, zero, outer)},
		{{.pc = FN(WALK_SIGNAL)}, JIT_CODE(""), WORDS(zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero,
								  SP(SP_FIRST + 0x100), FN(WALK_SP), zero, NUMBER(0x33), zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, zero, outer)},
		/* A call through a bad pointer. */
		{{.pc = NUMBER(0)}, JIT_CODE(""), WORDS(CALL(WALK_SP, WALK_CALL_1), zero, zero, zero, zero, zero, outer)},
		{{.pc = NUMBER(0x10)}, JIT_CODE(""), WORDS(CALL(WALK_FP, WALK_CALL_2), zero, outer)},
		/*
		 * Code that nobody describes: rbp leads on, or to a frame whose call leads
		 * elsewhere, or not at all.
		 */
		{{.pc = RUN(2), .fp = SP(SP_FIRST + 16)}, JIT_CODE("\x48\x01\xd8\x48\x89\x45\xf8"), WORDS(zero, zero, SP(SP_FIRST + 48), CALL(WALK_FP, WALK_CALL_2), zero, zero, zero, outer)},
		{{.pc = RUN(0), .fp = SP(SP_FIRST + 48)}, JIT_CODE("\x55\x48\x89\xe5"), WORDS(RUN(WALK_CALL_1), zero, zero, zero, zero, zero, zero, outer)},
		{{.pc = RUN(1), .fp = SP(SP_FIRST + 48)}, JIT_CODE("\x55\x48\x89\xe5"), WORDS(SP(SP_FIRST + 32), RUN(WALK_CALL_2), zero, zero, SP(SP_FIRST + 64), CALL(WALK_SP, WALK_CALL_1), zero, zero, zero, zero, outer)},
		{{.pc = RUN(70), .fp = SP(SP_FIRST + 16)}, JIT_CODE(""), WORDS(zero, zero, SP(SP_FIRST + 48), CALL(WALK_SP, WALK_CALL_2), zero, zero, zero, zero, zero, zero, outer)},
		{{.pc = RUN(70), .fp = SP(SP_FIRST + 16)}, JIT_CODE(""), WORDS(zero, zero, SP(SP_FIRST + 48), CALL(WALK_SP, WALK_CALL_1), zero, zero, zero, zero, zero, zero, outer)},
		{{.pc = RUN(70), .fp = NUMBER(5)}, JIT_CODE(""), WORDS(zero, CALL(WALK_FP, WALK_CALL_2), zero, CALL(WALK_INDIRECT, WALK_CALL_1), outer, CALL(WALK_TAIL, WALK_CALL_2), outer)},
		{{.pc = RUN(70), .fp = NUMBER(5)}, JIT_CODE(""), WORDS(zero, zero, zero, CALL(WALK_SWITCH, WALK_CALL_2), zero, CALL(WALK_PUSHES, WALK_CALL_1), zero, outer, zero, CALL(WALK_NO_ROW, WALK_CALL_1), zero, WALK_WORD(WALK_AT_STUBS, 0x26))},
		/*
		 * Its own way to a return: out of a loop by a guard; by a number in a register;
		 * past a call that disagrees with it.
		 */
		{{.pc = RUN(0), .fp = NUMBER(5)}, JIT_CODE("\x75\x02\xeb\xfc\x48\x8b\x6c\x24\x08\x48\x83\xc4\x10\xc3"), WORDS(zero, SP(SP_FIRST + 48), CALL(WALK_SP, WALK_CALL_2), zero, zero, zero, zero, zero, outer)},
		{{.pc = RUN(0), .fp = NUMBER(5)}, JIT_CODE("\x49\xbb\x24\x00\x00\x10\x00\x00\x00\x00\x4d\x8d\x9b\xf0\xff\xff\xff\x41\xff\xe3\x5d\xc2\x08\x00"), WORDS(zero, CALL(WALK_SP, WALK_CALL_2), zero, zero, zero, zero, zero, outer)},
		{{.pc = RUN(0), .fp = NUMBER(5)}, JIT_CODE("\xff\xd0\x74\x01\x50\x48\x8d\x6c\x24\x08\xc9\xc3"), WORDS(zero, zero, CALL(WALK_SP, WALK_CALL_1), outer)},
		{{.pc = RUN(0), .fp = NUMBER(5)}, JIT_CODE("\xff\xd0\x48\x8d\x6c\x24\x08\xc9\xc3"), WORDS(zero, zero, CALL(WALK_SP, WALK_CALL_1), zero, zero, zero, zero, outer)},
		{{.pc = RUN(0), .fp = SP(SP_FIRST + 512)}, JIT_CODE("\xff\xd0\xc9\x75\x01\xc3\x48\x83\xec\x08\x5d\x5d\xc3"), WORDS(zero, zero, outer)},
		/*
		 * In the frame of an interpreter, whose state has it: data is a table of stack
		 * addresses.
		 */
		{{.pc = RUN(70)}, JIT_CODE(""), WORDS(zero, zero, zero, zero, zero, zero, WALK_WORD(WALK_AT_DATA, SP_FIRST + 0x10), zero, zero, NUMBER(1), NUMBER(2), CALL(WALK_VALUES, WALK_CALL_1), zero, zero, zero, zero, zero, outer)},
		/* Contexts that begin by hand. */
		{{.pc = FN(WALK_PUSHES)}, JIT_CODE(""), WORDS(zero, CALL(WALK_CONTEXT, 0))},
		{{.pc = FN(WALK_PUSHES)}, JIT_CODE(""), WORDS(zero, CALL(WALK_SHADOW, 0))},
		{{.pc = FN(WALK_PUSHES)}, JIT_CODE(""), WORDS(zero, CALL(WALK_BOOST, 3))},
		/* A cycle, a lost end, an odd stack pointer, memory that is not there. */
		{{.pc = RUN(70), .fp = SP(SP_FIRST)}, JIT_CODE(""), WORDS(SP(SP_FIRST), RUN(WALK_CALL_1))},
		{{.pc = FN(WALK_INTERPRETER)}, JIT_CODE(""), WORDS(zero, zero)},
		{{.pc = FN(WALK_SP), .sp = SP(SP_FIRST + 1)}, JIT_CODE(""), WORDS(outer, outer)},
		{{.pc = FN(WALK_LARGE)}, JIT_CODE(""), WORDS(outer)},
		{{.pc = FN(WALK_NO_ROW)}, JIT_CODE(""), WORDS(outer)},
		{{.pc = WALK_WORD(WALK_AT_WILD, 9), .sp = WALK_WORD(WALK_AT_WILD, 5)}, JIT_CODE(""), WORDS(outer)},
	};
	/* clang-format on */
	static const uint8_t flags[] = {0,
					IS_STRIPPED,
					IS_SELF,
					IS_SELF | IS_STRIPPED | NO_CACHE,
					IS_SELF | IS_PREPARED | IS_STRIPPED,
					NO_REGISTERS | IS_CUT,
					HAS_NO_PROGRAM | NO_CACHE};
	for (size_t k = 0; k < sizeof(flags); k++)
		for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
			put_one(&seeds[i], flags[k], put);
	/* AArch64: stp x29, x30, [sp, #-16]!; mov x29, sp; bl. */
	static const char arm[] =
		"\xfd\x7b\xbf\xa9\xfd\x03\x00\x91\x00\x00\x00\x94\x00\x00\x00\x94\xc0\x03\x5f\xd6"
		"\x00\x00\x00\x94\xfd\x7b\xc1\xa8\xc0\x03\x5f\xd6";
	/* clang-format off */
	const struct seed arms[] = {
		{{.pc = RUN(8), .fp = SP(SP_FIRST), .lr = RUN(12)}, JIT_CODE(arm), WORDS(SP(SP_FIRST + 32), RUN(16), zero, zero, zero, zero)},
		{{.pc = RUN(0), .fp = SP(SP_FIRST), .lr = RUN(12)}, JIT_CODE(arm), WORDS(SP(SP_FIRST + 32), RUN(16), zero, zero, SP(SP_FIRST + 48), RUN(24))},
		{{.pc = RUN(28), .fp = SP(SP_FIRST), .lr = RUN(12)}, JIT_CODE(arm), WORDS(SP(SP_FIRST), RUN(16))},
		{{.pc = NUMBER(0), .fp = NUMBER(0), .lr = RUN(12)}, JIT_CODE(arm), WORDS(zero)},
		{{.pc = RUN(16), .fp = WALK_WORD(WALK_AT_WILD, 1), .lr = RUN(14)}, JIT_CODE(arm), WORDS(zero)},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(arms) / sizeof(arms[0]); i++)
		put_one(&arms[i], IS_AARCH64, put);
}
