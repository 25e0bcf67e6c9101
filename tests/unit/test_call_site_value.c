/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a caller passed to a function that stands on the stack: told where only its call can have
 * entered the function.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairn/sites.h>

#include "calls.h"
#include "workspace.h"

/* Each function is called by main() with a constant, and ends in another way. */
static const char source[] =
	"volatile long sink;\n"
	"#define FUNCTION __attribute__((noinline)) long\n"
	"FUNCTION last(long a) { sink = a; return sink; }\n"
	"FUNCTION returns(long a) { last(a + 1); return sink; }\n"
	"FUNCTION middle(long a) { sink = a; return last(a + sink); }\n"
	"FUNCTION goes_on(long a) { last(a + 2); return middle(sink); }\n"
	"FUNCTION pong(long a);\n"
	"FUNCTION ping(long a) { last(a + 3); return pong(sink); }\n"
	"FUNCTION pong(long a) { if (last(a) & 1) return ping(sink); return sink; }\n"
	"FUNCTION again(long a) { last(a + 4); if (sink == 77) return again(sink + 9); last(2); "
	"return sink; }\n"
	"long (*volatile pointer)(long) = last;\n"
	"FUNCTION anywhere(long a) { last(a + 5); return pointer(sink); }\n"
	"FUNCTION chooses(long a)\n"
	"{\n"
	"	long i = sink;\n"
	"	switch (i) {\n"
	"	case 0: return 3 * a; case 1: sink = 5; return 1; case 2: return a - sink; case 3: "
	"return sink + 7; case 4: return a >> i;\n"
	"	case 5: return sink * sink; case 6: sink = a; return 9;\n"
	"	}\n"
	"	last(a + 6);\n"
	"	return sink;\n"
	"}\n"
	"long (*volatile table[8])(long);\n"
	"FUNCTION by_table(long a) { last(a + 7); return table[sink & 7](sink); }\n"
	"int main(void)\n"
	"{\n"
	"	sink += returns(101); sink += goes_on(102); sink += ping(103); sink += "
	"again(104);\n"
	"	sink += anywhere(105); sink += chooses(106); sink += by_table(107);\n"
	"	return sink == 7;\n"
	"}\n";

static const struct {
	const char *function;
	int64_t passed; /* 0: not certain */
	const char *why;
	bool is_gcc_s; /* Clang makes it a loop after the entry */
} cases[] = {
	{"returns", 101, "no jump leaves it"},
	{"goes_on", 102, "it jumps to functions that do not come back"},
	{"ping", 0, "pong() jumps back"},
	{"again", 0, "it jumps to its own entry", true},
	{"anywhere", 0, "a pointer may lead to it"},
	{"chooses", 106, "a switch stays in the function"},
	{"by_table", 0, "a table of pointers may lead to it"},
};

enum { RDI = 5 };

static void check_case(const struct cairn_binary *bin, struct cairn_sites *sites, size_t i)
{
	const struct cairn_loc_step in_rdi = {.op = CAIRN_LOC_ENTRY_REG, .reg = RDI};
	struct cairn_vaddr function = address_of(bin, cases[i].function),
			   pc = return_address_of(bin, address_of(bin, "main"), function);
	const struct cairn_scope *active;
	struct cairn_location loc;
	assert_int_equal(cairn_sites_at(sites, function, true, &active, NULL), 1);
	assert_int_equal(cairn_sites_call_value(sites, function, pc, &in_rdi, &loc, NULL), 0);
	bool is_told = loc.why == CAIRN_AVAILABLE;
	if (is_told != (cases[i].passed != 0))
		fail_msg("%s, of which %s: %s", cases[i].function, cases[i].why,
			 cairn_unavailable_text(loc.why));
	if (is_told) {
		assert_int_equal(loc.n_pieces, 1);
		assert_int_equal(loc.pieces[0].steps[0].imm, cases[i].passed);
	}
}

static void check(const char *compile, bool is_gcc)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = 1};
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c", source);
	if (!workspace_try(&w, "%s", compile)) {
		workspace_close(&w);
		skip();
	}
	assert_int_equal(cairn_binary_open(workspace_path(&w, "a"), NULL, &bin, NULL), 0);
	assert_int_equal(cairn_sites_open(bin, &opts, &sites, NULL), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (is_gcc || !cases[i].is_gcc_s)
			check_case(bin, sites, i);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
	workspace_close(&w);
}

static void it_is_certain_where_gcc_s_tail_calls_do_not_come_back(void **state)
{
	(void)state;
	check("gcc -O2 -g -fpie -pie -fno-inline -fno-ipa-cp -fno-ipa-sra -fno-ipa-icf "
	      "-fno-optimize-strlen -o a a.c",
	      true);
}

static void it_is_certain_where_clang_s_tail_calls_do_not_come_back(void **state)
{
	(void)state;
	check("clang -O2 -g -fpie -pie -o a a.c", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_certain_where_gcc_s_tail_calls_do_not_come_back),
		cmocka_unit_test(it_is_certain_where_clang_s_tail_calls_do_not_come_back),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
