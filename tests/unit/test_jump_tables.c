/* SPDX-License-Identifier: BSD-2-Clause */
/* The targets of switches' jumps, in functions whose instructions are written by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc_fail.h"
#include "insn/table.h"
#include "loc/cfg.h"
#include "sites/provider.h"
#include "sites/site.h"
#include "workspace.h"

/* Three targets, 1: to 3:, from a table at 9: that has @entries. */
#define TARGETS                 "1: nop\nret\n2: nop\nret\n3: ret\n"
#define TABLE(section, entries) ".pushsection " section "\n.balign 8\n9: " entries "\n.popsection\n"
#define THREE                   ".long 1b-9b, 2b-9b, 3b-9b"
#define JUMP                    "movslq (%rdx,%rax,4), %rax\nadd %rdx, %rax\njmp *%rax\n"
#define LEA                     "lea 9f(%rip), %rdx\n"
#define RODATA                  ".rodata"

/* clang-format off */
static const struct {
	const char *name, *code;
	unsigned int n_targets; /* 0: they must not be found */
} cases[] = {
	{"plain", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"notrack", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
		    "movslq (%rdx,%rax,4), %rax\nadd %rdx, %rax\nnotrack jmp *%rax\n"
		    TARGETS TABLE(RODATA, THREE), 3},
	{"same_twice", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
		       JUMP TARGETS TABLE(RODATA, ".long 1b-9b, 1b-9b, 3b-9b"), 2},
	{"below", "cmp $3, %edi\njae 3f\nmov %edi, %eax\n" LEA JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"taken", "cmp $2, %edi\njbe 4f\nret\n4: mov %edi, %eax\n" LEA
		  JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"branch_between", "cmp $2, %edi\nja 3f\nje 3f\nmov %edi, %eax\n" LEA
			   JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"byte", "movzbl (%rsi), %eax\ncmp $2, %al\nja 3f\nmovzbl %al, %eax\n" LEA
		 JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"masked", "mov %edi, %eax\nand $1, %eax\n" LEA
		   JUMP TARGETS TABLE(RODATA, ".long 1b-9b, 2b-9b"), 2},
	{"compared_after_copy", "mov %edi, %eax\ncmp $2, %edi\nja 3f\n" LEA
				JUMP TARGETS TABLE(RODATA, THREE), 3},
	{"other_way_round", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
			    "movslq (%rdx,%rax,4), %rcx\nadd %rcx, %rdx\njmp *%rdx\n"
			    TARGETS TABLE(RODATA, THREE), 3},
	{"before_loop", LEA "5: test %esi, %esi\nje 6f\ndec %esi\n6: cmp $2, %edi\nja 3f\n"
			"mov %edi, %eax\n" JUMP
			"1: dec %edi\njmp 5b\n2: nop\nret\n3: ret\n" TABLE(RODATA, THREE), 3},
	{"no_comparison", "mov %edi, %eax\n" LEA JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"signed", "cmp $2, %edi\njg 3f\nmov %edi, %eax\n" LEA JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"other_register", "cmp $2, %esi\nja 3f\nmov %edi, %eax\n" LEA
			   JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"signed_byte", "movzbl (%rsi), %eax\ncmp $130, %al\nja 3f\nmovsbq %al, %rax\n" LEA
			JUMP TARGETS TABLE(RODATA, ".rept 131\n.long 1b-9b\n.endr"), 0},
	{"changed", "cmp $2, %edi\nja 3f\nmov %edi, %eax\ninc %eax\n" LEA
		    JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"changed_low", "cmp $2, %edi\nja 3f\nmov %edi, %eax\nmov $7, %al\n" LEA
			JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"flags_changed", "cmp $2, %edi\ninc %esi\nja 3f\nmov %edi, %eax\n" LEA
			  JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"after_a_call", "cmp $2, %edi\nja 3f\ncall other\nmov %edi, %eax\n" LEA
			 JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"way_past_it", "test %esi, %esi\nje 5f\ncmp $2, %edi\nja 3f\n5: mov %edi, %eax\n" LEA
			JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"two_tables", LEA "test %esi, %esi\nje 5f\nlea 8f(%rip), %rdx\n5: cmp $2, %edi\nja 3f\n"
		       "mov %edi, %eax\n" JUMP TARGETS TABLE(RODATA, THREE)
		       ".pushsection .rodata\n8: .long 1b-8b, 2b-8b, 3b-8b\n.popsection\n", 0},
	{"table_by_argument", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" JUMP TARGETS, 0},
	{"table_after_call", LEA "call other\ncmp $2, %edi\nja 3f\nmov %edi, %eax\n"
			     JUMP TARGETS TABLE(RODATA, THREE), 0},
	{"writable", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA JUMP TARGETS TABLE(".data", THREE), 0},
	{"leads_out", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
		      JUMP TARGETS TABLE(RODATA, ".long 1b-9b, 2b-9b, other-9b"), 0},
	{"in_the_middle", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
			  JUMP TARGETS TABLE(RODATA, ".long 1b-9b, 2b-9b, 4f+1-9b") "4: mov $1, %eax\nret\n", 0},
	{"past_the_section", "cmp $3000, %edi\nja 3f\nmov %edi, %eax\n" LEA
			     JUMP TARGETS TABLE(".rodata.end,\"a\"", THREE), 0},
	{"another_begins_in_it",
	 "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA JUMP
	 "1: cmp $1, %esi\nja 3f\nmov %esi, %eax\nlea 8f(%rip), %rdx\n" JUMP "2: nop\nret\n3: ret\n"
	 TABLE(RODATA, ".long 1b-9b\n8: .long 2b-8b, 3b-8b"), 2},
	{"other_scale", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
			"movslq (%rdx,%rax,8), %rax\nadd %rdx, %rax\njmp *%rax\n"
			TARGETS TABLE(RODATA, THREE), 0},
	{"other_sum", "cmp $2, %edi\nja 3f\nmov %edi, %eax\n" LEA
		      "movslq (%rdx,%rax,4), %rax\nadd %rsi, %rax\njmp *%rax\n"
		      TARGETS TABLE(RODATA, THREE), 0},
};
static const char whole[] = "cmp $2, %edi\nja 3f\nmov %edi, %eax\njmp *9f(,%rax,8)\n" TARGETS
	TABLE(RODATA, ".quad 1b, 2b, 3b");
/* clang-format on */

enum { N_CASES = sizeof(cases) / sizeof(cases[0]) };

static struct workspace ws;

struct opened {
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct site_env env;
};

static void write_function(FILE *f, const char *name, const char *code)
{
	fprintf(f, "__attribute__((naked)) void f_%s(void)\n{\n\t__asm__(\"", name);
	for (; *code; code++) {
		if (*code == '\n')
			fputs("\\n", f);
		else if (*code == '"')
			fputs("\\\"", f);
		else
			fputc(*code, f);
	}
	fprintf(f, "\");\n}\n");
}

static void open_program(const char *name, struct opened *ret)
{
	assert_int_equal(cairn_binary_open(workspace_path(&ws, name), NULL, &ret->bin, NULL), 0);
	assert_int_equal(cairn_sites_open(ret->bin, NULL, &ret->sites, NULL), 0);
	assert_true(sites_debug_info(ret->sites, &ret->env));
}

static void close_program(struct opened *o)
{
	cairn_sites_close(o->sites);
	cairn_binary_close(o->bin);
}

static struct cfg *graph_of(const struct opened *o, const char *name)
{
	char function[64];
	struct cairn_function_list found;
	struct cfg *g = NULL;
	struct dw_die die;

	snprintf(function, sizeof(function), "f_%s", name);
	assert_int_equal(cairn_sites_find(o->sites, function, &found, NULL), 1);
	const struct cairn_site *site = &found.p[0]->sites[0];
	assert_int_equal(dw_die_at(o->env.dw, site->die, &die, NULL), 1);
	assert_int_equal(cfg_new(o->env.code, &die, site->at, &g), 0);
	assert_non_null(g);
	return g;
}

static unsigned int n_from(const struct cfg *g, uint32_t i)
{
	unsigned int n = 0;

	for (uint32_t k = 0; cfg_next(g, i, &k) != GRAPH_NONE; n++)
		;
	return n;
}

/* Both directions say the same, and each instruction of the graph gets its number. */
static void check_edges(struct cfg *g, unsigned int n_targets)
{
	unsigned int n = 0;

	assert_int_equal(g->edges.n, n_targets);
	for (uint32_t i = 0; i < g->v.n; i++) {
		uint32_t k = 0, b;
		while ((b = cfg_before(g, i, &k)) != GRAPH_NONE)
			n += g->v.p[b].is_indirect && cfg_is_known_jump(g, b);
		if (g->v.p[i].is_indirect && cfg_is_known_jump(g, i))
			n -= n_from(g, i);
	}
	assert_int_equal(n, 0);
	assert_int_equal(cfg_number(g), 0);
	assert_int_equal(cfg_may_come_back(g, 0), 1);
}

static void tables_are_found_where_they_are_certain(void **state)
{
	struct opened o;

	open_program("tables", &o);
	for (size_t i = 0; i < N_CASES; i++) {
		struct cfg *g = graph_of(&o, cases[i].name);
		size_t n_jumps = g->indirect.n;
		assert_int_equal(cfg_find_tables(o.env.code, g), 0);
		if (g->edges.n != cases[i].n_targets)
			fail_msg("%s: %zu targets", cases[i].name, g->edges.n);
		check_edges(g, cases[i].n_targets);
		assert_int_equal(g->indirect.n, n_jumps - !!cases[i].n_targets);
		cfg_free(g);
	}
	close_program(&o);
}

static void tables_of_whole_addresses_are_found_where_code_is_not_moved(void **state)
{
	struct opened o;

	open_program("fixed", &o);
	struct cfg *g = graph_of(&o, "whole");
	assert_int_equal(cfg_find_tables(o.env.code, g), 0);
	check_edges(g, 3);
	cfg_free(g);
	close_program(&o);
}

static void finding_tables_survives_lack_of_memory(void **state)
{
	struct opened o;
	int r = -ENOMEM;

	open_program("tables", &o);
	for (unsigned int n = 1; r; n++) {
		struct cfg *g = graph_of(&o, "before_loop");
		alloc_fail_at(n);
		r = cfg_find_tables(o.env.code, g);
		assert_int_equal(r, alloc_fail_end() ? -ENOMEM : 0);
		cfg_free(g);
	}
	close_program(&o);
}

static void bytes_that_are_no_instruction_are_not_described(void **state)
{
	static const uint8_t code[] = {0x48, 0x63, 0x04, 0x82}; /* movslq (%rdx,%rax,4), %rax */
	struct insn_table step;

	assert_true(insn_table(code, sizeof(code), 0, &step));
	assert_int_equal(step.kind, INSN_TABLE_LOAD);
	for (size_t n = 0; n < sizeof(code); n++)
		assert_false(insn_table(code, n, 0, &step));
}

static int build(void **state)
{
	workspace_open(&ws);
	FILE *f = fopen(workspace_path(&ws, "tables.c"), "w");
	assert_non_null(f);
	fputs("__attribute__((noinline)) void other(void) { __asm__(\"\"); }\n", f);
	for (size_t i = 0; i < N_CASES; i++)
		write_function(f, cases[i].name, cases[i].code);
	fputs("int main(void) { other(); return 0; }\n", f);
	assert_int_equal(fclose(f), 0);
	f = fopen(workspace_path(&ws, "fixed.c"), "w");
	assert_non_null(f);
	write_function(f, "whole", whole);
	fputs("int main(void) { return 0; }\n", f);
	assert_int_equal(fclose(f), 0);
	workspace_run(&ws, "gcc -g -O1 -o tables tables.c");
	workspace_run(&ws, "gcc -g -O1 -fno-pie -no-pie -o fixed fixed.c");
	return 0;
}

static int clean(void **state)
{
	workspace_close(&ws);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_are_found_where_they_are_certain),
		cmocka_unit_test(tables_of_whole_addresses_are_found_where_code_is_not_moved),
		cmocka_unit_test(finding_tables_survives_lack_of_memory),
		cmocka_unit_test(bytes_that_are_no_instruction_are_not_described),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
