/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which probes may be moved: every condition of the proof in src/live/trace/place/move.c, each
 * broken once.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "elf/elf.h"
#include "trace/place/move.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

/*
 * Each function's site is its entry; the body follows. @to is the distance of the instruction to
 * which the probe goes, 0 when it must stay. @reads: registers that the fetch program reads;
 * @memory: it reads memory.
 */
static const struct {
	const char *name, *body;
	unsigned int to;
	uint16_t reads;
	bool memory;
} cases[] = {
	/* ways to go */
	{"plain", "mov %rdi, %rbx; xor %eax, %eax; test %rsi, %rsi; je 1f; inc %eax; 1: ret", 8,
	 1 << RDI, true},
	{"to_nop", "mov %rdi, %rbx; nop; ret", 3, 1 << RDI, false},
	{"to_push", "mov %edi, %eax; push %rbx; pop %rbx; ret", 2, 1 << RDI, false},
	{"over_lea", "lea 8(%rsi), %rax; jmp 1f; ud2; 1: ret", 4, 1 << RDI, true},
	{"over_own_stack", "mov 8(%rsp), %rax; nop; ret", 5, 1 << RDI, true},
	{"over_a_store_for_registers", "mov %rax, 8(%rsp); nop; ret", 5, 1 << RDI, false},
	{"over_endbr", "endbr64; mov %edi, %eax; nop; ret", 6, 1 << RDI, false},
	{"over_integers",
	 "add $1, %eax; movzbl %al, %eax; imul %ecx, %eax; neg %eax; cltq; shl $3, %rax; sete %dl; "
	 "cmovne %ecx, %eax; bswap %eax; nop; ret",
	 25, 1 << RDI, true},
	/* nothing to be gained */
	{"no_cheap_one", "mov %rdi, %rax; add %rsi, %rax; hlt", 0, 1 << RDI, false},
	/* 1. falls through and cannot fault */
	{"call_between", "mov %rdi, %rbx; call plain; nop; ret", 3, 1 << RDI, false},
	{"call_is_cheap_but_not_skipped", "xor %eax, %eax; call *%rax; nop; ret", 0, 0, false},
	{"trap_between", "mov %rdi, %rbx; ud2; nop; ret", 0, 1 << RDI, false},
	{"load_may_fault", "mov (%rdi), %rbx; nop; ret", 0, 1 << RDI, false},
	{"store_may_fault", "mov %rbx, (%rdi); nop; ret", 0, 1 << RDI, false},
	{"extended_base_may_fault", "mov 8(%r12), %rbx; nop; ret", 0, 1 << RDI, false},
	{"index_may_fault", "mov 8(%rsp,%rax,8), %rbx; nop; ret", 0, 1 << RDI, false},
	{"below_the_stack_may_fault", "mov -8(%rsp), %rbx; nop; ret", 0, 1 << RDI, false},
	{"division_may_fault", "div %ecx; nop; ret", 0, 0, false},
	{"signed_division_may_fault", "idiv %rcx; nop; ret", 0, 0, false},
	{"vectors_may_fault", "divps %xmm0, %xmm1; nop; ret", 0, 0, false},
	{"repeated", "rep stosb; nop; ret", 0, 0, false},
	/* 2. no other way in */
	{"short_jump_into", "mov %rdi, %rbx; 1: mov %rsi, %rcx; nop; test %ecx, %ecx; jne 1b; ret",
	 0, 1 << RDI, false},
	{"jump_to_the_site_itself", "mov %rdi, %rbx; 1: nop; dec %ebx; jne 1b; ret", 0, 1 << RDI,
	 false},
	{"jump_to_the_site_is_fine", "1: mov %rsi, %rbx; nop; dec %ebx; jne 1b; ret", 3, 1 << RDI,
	 false},
	{"jump_after_is_fine", "mov %rsi, %rbx; nop; 1: dec %ebx; jne 1b; ret", 3, 1 << RDI, false},
	{"indirect_jump", "mov %rsi, %rbx; nop; jmp *%rax", 0, 1 << RDI, false},
	{"reaches_an_indirect_jump", "mov %rsi, %rbx; nop; jmp indirect_jump", 0, 1 << RDI, false},
	{"symbol_between",
	 "mov %rsi, %rbx; .globl another_entry; another_entry: mov %rsi, %rcx; nop; ret", 0,
	 1 << RDI, false},
	{"jumped_into_from_elsewhere", "mov %rsi, %rbx; .Lelsewhere: mov %rsi, %rcx; nop; ret", 0,
	 1 << RDI, false},
	{"the_jumper", "ret; .skip 300, 0x90; jmp .Lelsewhere", 0, 0, false},
	{"data_that_could_be_a_jump", "mov %rsi, %rbx; .Ltable: mov %rsi, %rcx; nop; ret", 0,
	 1 << RDI, false},
	{"the_data",
	 "ret; .skip 300, 0x90; movabs $0, %rax; .byte 0xb8, 0x0f, 0x84; .long .Ltable - . - 4", 0,
	 0, false},
	/* 3. what the program reads stays */
	{"writes_what_is_read", "mov %rsi, %rdi; nop; ret", 0, 1 << RDI, false},
	{"writes_a_part_of_it", "mov $1, %dil; nop; ret", 0, 1 << RDI, false},
	{"writes_it_perhaps", "cmove %rsi, %rdi; nop; ret", 0, 1 << RDI, false},
	{"exchanges_it", "xchg %rsi, %rdi; nop; ret", 0, 1 << RSI, false},
	{"writes_memory", "mov %rax, 8(%rsp); nop; ret", 0, 1 << RDI, true},
	{"push_changes_rsp", "mov %rax, %rbx; pushq $1; nop; pop %rax; ret", 0, 1 << RSP, false},
	{"push_for_others", "mov %rax, %rbx; pushq $1; nop; pop %rax; ret", 5, 1 << RDI, false},
	{"push_is_memory", "mov %rax, 16(%rsp); push %rbx; pop %rbx; ret", 0, 0, true},
	/* 4. no hazard at the new site: a 5-byte nop is none to move to */
	{"five_byte_nop", "mov %rsi, %rbx; .byte 0x0f, 0x1f, 0x44, 0x00, 0x00; ret", 0, 1 << RDI,
	 false},
};

/*
 * Each function's site is @at bytes after its entry, and has a hazard. @by is how far before it the
 * probe goes, or, negative, how far after; 0 when it is refused as before.
 */
static const struct {
	const char *name, *body;
	unsigned int at;
	int by;
	uint16_t reads;
	bool memory;
} hazards[] = {
	{"to_before", "xor %eax, %eax; mov %rdi, %rbx; rep stosb; ret", 5, 3, 1 << RDI, true},
	{"to_a_nop_before", "ret; nop; rep stosb; ret", 2, 1, 1 << RDI, true},
	{"past_a_step", "ret; mov %eax, %ecx; mov $5, %dil; pushfq; pop %rax; ret", 6, 3, 1 << RSI,
	 false},
	{"past_a_lock", "mov %rdi, %rbx; lock incl (%rbx); ret", 3, 3, 1 << RDI, false},
	{"after_a_nop", "ret; .byte 0x0f, 0x1f, 0x44, 0x00, 0x00; nop; ret", 1, -5, 1 << RDI,
	 false},
	{"jump_to_the_hazard", "mov %edi, %ebx; 1: rep stosb; jne 1b; ret", 2, 0, 1 << RDI, false},
	{"nothing_before", "rep stosb; ret", 0, 0, 0, false},
	{"call_before", "call plain; rep stosb; ret", 5, 0, 0, false},
	{"may_fault_before", "mov (%rsi), %ebx; rep stosb; ret", 2, 0, 1 << RDI, false},
	{"writes_it_before", "mov $5, %edi; rep stosb; ret", 5, 0, 1 << RDI, false},
	{"writes_memory_before", "mov %eax, 8(%rsp); rep stosb; ret", 4, 0, 1 << RDI, true},
	{"hazard_before", "ret; pushfq; rep stosb; ret", 2, 0, 0, false},
	{"no_boundary_before", "ret; .byte 0x48; rep stosb; ret", 2, 0, 0, false},
};

static struct workspace ws;
static struct cairn_binary *bin;

static int build(void **state)
{
	char *source = NULL;
	size_t size;
	FILE *out = open_memstream(&source, &size);

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		fprintf(out,
			".globl %s\n.type %s, @function\n.balign "
			"64\n%s:\n.cfi_startproc\n%s\n.cfi_endproc\n"
			".size %s, . - %s\n",
			cases[i].name, cases[i].name, cases[i].name, cases[i].body, cases[i].name,
			cases[i].name);
	for (size_t i = 0; i < ARRAY_SIZE(hazards); i++)
		fprintf(out,
			".globl %s\n.type %s, @function\n.balign "
			"64\n%s:\n.cfi_startproc\n%s\n.cfi_endproc\n.size %s, . - %s\n",
			hazards[i].name, hazards[i].name, hazards[i].name, hazards[i].body,
			hazards[i].name, hazards[i].name);
	fclose(out);
	workspace_open(&ws);
	workspace_write(&ws, "moves.s", source);
	free(source);
	/* -Bsymbolic: a direct call stays direct. */
	workspace_run(&ws, "gcc -shared -nostdlib -Wl,-Bsymbolic -o moves.so moves.s");
	workspace_write(&ws, "throws.cc",
			"void may_throw(int); int caught;\n"
			"int lands(int a, int b) { try { may_throw(a); } catch (int e) { caught = "
			"e; } return b; }\n"
			"int does_not(int a, int b) { if (a) may_throw(b); return b; }\n");
	return cairn_binary_open(workspace_path(&ws, "moves.so"), NULL, &bin, NULL);
}

static int clean(void **state)
{
	cairn_binary_close(bin);
	workspace_close(&ws);
	return 0;
}

static bool symbol(const struct cairn_binary *in, const char *name, struct cairn_vaddr *ret)
{
	const struct elf_symbol *symbols;
	size_t n;

	if (elf_symbols(binary_main(in), &symbols, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(symbols[i].name, name))
			continue;
		*ret = symbols[i].at;
		return true;
	}
	return false;
}

static void make_program(struct fetch_program *p, uint16_t reads, bool memory)
{
	*p = (struct fetch_program){0};
	for (uint8_t reg = 0; reg < 16; reg++)
		if (reads >> reg & 1)
			fetch_emit(p, FETCH_REG)->reg = reg;
	if (memory)
		fetch_emit(p, FETCH_LOAD)->size = 8;
	fetch_emit(p, FETCH_END);
}

static void probes_move_exactly_when_nobody_can_tell(void **state)
{
	static struct cairn_site sites[ARRAY_SIZE(cases)];
	static struct trace_site planned[ARRAY_SIZE(cases)];
	struct mover *m;
	unsigned int expected = 0;
	bool failed = false;

	assert_int_equal(mover_new(bin, &m, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct fetch_program p;
		assert_true(symbol(bin, cases[i].name, &sites[i].at));
		planned[i].pub.site = &sites[i];
		planned[i].pub.at = sites[i].at;
		make_program(&p, cases[i].reads, cases[i].memory);
		assert_int_equal(mover_add(m, &planned[i], &p), 0);
		expected += cases[i].to != 0;
	}
	unsigned int moved = mover_finish(m);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint64_t by = planned[i].pub.at.v - sites[i].at.v;
		if (by == cases[i].to && planned[i].pub.moved == (cases[i].to != 0))
			continue;
		print_error("%s: moved by %llu\n", cases[i].name, (unsigned long long)by);
		failed = true;
	}
	assert_false(failed);
	assert_int_equal(moved, expected);
	mover_free(m);
}

static void hazards_are_left_where_nobody_can_tell(void **state)
{
	struct mover *m;
	bool failed = false;

	for (size_t i = 0; i < ARRAY_SIZE(hazards); i++) {
		struct cairn_site site = {.hazard = CAIRN_HAZARD_REPEATS};
		struct trace_site planned = {.pub = {.site = &site, .refused = "a hazard"}};
		struct fetch_program p;
		assert_int_equal(mover_new(bin, &m, NULL), 0);
		assert_true(symbol(bin, hazards[i].name, &site.at));
		site.container_off = hazards[i].at;
		site.at.v += hazards[i].at;
		planned.pub.at = site.at;
		make_program(&p, hazards[i].reads, hazards[i].memory);
		assert_int_equal(mover_add(m, &planned, &p), 0);
		mover_finish(m);
		bool moved = hazards[i].by != 0;
		if ((int64_t)(site.at.v - planned.pub.at.v) != hazards[i].by ||
		    planned.pub.moved != moved || (planned.pub.refused == NULL) != moved) {
			print_error("%s: moved by %lld\n", hazards[i].name,
				    (long long)(planned.pub.at.v - site.at.v));
			failed = true;
		}
		mover_free(m);
	}
	assert_false(failed);
}

/* An inlined copy in the middle; the same in a part that does not hold the function's entry. */
static void only_the_part_with_the_entry_is_trusted(void **state)
{
	struct cairn_site site = {.container_off = 3};
	struct trace_site planned = {.pub.site = &site};
	struct fetch_program p;
	struct mover *m;

	assert_int_equal(mover_new(bin, &m, NULL), 0);
	assert_true(symbol(bin, "plain", &site.at));
	site.at.v += 3;
	make_program(&p, 1 << RDI, true);
	assert_int_equal(mover_add(m, &planned, &p), 0);
	assert_int_equal(mover_finish(m), 1);
	assert_int_equal(planned.pub.at.v, site.at.v + 5);
	planned = (struct trace_site){.pub.site = &site};
	site.container_off = 3 + 64;
	assert_int_equal(mover_add(m, &planned, &p), 0);
	assert_int_equal(mover_finish(m), 0);
	assert_false(planned.pub.moved);
	mover_free(m);
}

static void functions_with_landing_pads_are_left_alone(void **state)
{
	struct cairn_binary *cc;
	struct cairn_site site = {0};
	struct trace_site planned = {.pub.site = &site};
	struct fetch_program p;
	struct mover *m;

	if (!workspace_try(&ws, "g++ -O2 -shared -fPIC -o throws.so throws.cc")) {
		print_message("no g++\n");
		skip();
	}
	assert_int_equal(cairn_binary_open(workspace_path(&ws, "throws.so"), NULL, &cc, NULL), 0);
	assert_int_equal(mover_new(cc, &m, NULL), 0);
	make_program(&p, 0, false);
	assert_true(symbol(cc, "_Z8does_notii", &site.at));
	assert_int_equal(mover_add(m, &planned, &p), 0);
	assert_int_equal(mover_finish(m), 1);
	planned = (struct trace_site){.pub.site = &site};
	assert_true(symbol(cc, "_Z5landsii", &site.at));
	assert_int_equal(mover_add(m, &planned, &p), 0);
	assert_int_equal(mover_finish(m), 0);
	mover_free(m);
	cairn_binary_close(cc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_move_exactly_when_nobody_can_tell),
		cmocka_unit_test(hazards_are_left_where_nobody_can_tell),
		cmocka_unit_test(only_the_part_with_the_entry_is_trusted),
		cmocka_unit_test(functions_with_landing_pads_are_left_alone),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
