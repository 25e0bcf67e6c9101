/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions that the linker folded, and values that are computed from memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <cairn/sites.h>

#include "workspace.h"

static const char folded[] =
	"volatile int sink;\n"
	"__attribute__((noinline)) int first(int a, int b) { sink = a; return b * 3 + a; }\n"
	"__attribute__((noinline)) int second(int b, int a) { sink = b; return a * 3 + b; }\n"
	"__attribute__((noinline)) int other(int a) { sink = a; return 7; }\n"
	"int alias(int a) __attribute__((alias(\"other\")));\n"
	"int main(void) { return first(1, 2) + second(3, 4) + other(5) + alias(6) == 0; }\n";

struct opened {
	struct cairn_binary *bin;
	struct cairn_sites *sites;
};

static struct opened open_sites(const char *path)
{
	struct opened o;
	assert_int_equal(cairn_binary_open(path, NULL, &o.bin, NULL), 0);
	assert_int_equal(cairn_sites_open(o.bin, NULL, &o.sites, NULL), 0);
	return o;
}

static void close_sites(struct opened *o)
{
	cairn_sites_close(o->sites);
	cairn_binary_close(o->bin);
}

/* The marks of the only site of a function, whose arguments are all known. */
static uint32_t doubts(const struct opened *o, const char *function)
{
	struct cairn_function_list found;
	assert_int_equal(cairn_sites_find(o->sites, function, &found, NULL), 1);
	assert_int_equal(found.p[0]->n_sites, 1);
	const struct cairn_site *s = &found.p[0]->sites[0];
	for (uint32_t i = 0; i < s->n_args; i++)
		assert_int_equal(s->args[i].loc.why, CAIRN_AVAILABLE);
	return s->count_caveats;
}

static void check_folded(const char *command)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "f.c", folded);
	if (!workspace_try(&w, "%s -O2 -g -ffunction-sections -o f f.c", command)) {
		workspace_close(&w);
		print_message("%s does not work here\n", command);
		skip();
	}
	struct opened o = open_sites(workspace_path(&w, "f"));
	assert_int_equal(doubts(&o, "first"), CAIRN_COUNT_FOLDED);
	assert_int_equal(doubts(&o, "second"), CAIRN_COUNT_FOLDED);
	/* Two names, and one function. */
	assert_int_equal(doubts(&o, "other"), 0);
	assert_int_equal(doubts(&o, "alias"), 0);
	close_sites(&o);
	workspace_close(&w);
}

static void functions_folded_by_gold_are_marked(void **state)
{
	check_folded("gcc -fno-ipa-icf -fuse-ld=gold -Wl,--icf=all");
}

static void functions_folded_by_lld_are_marked(void **state)
{
	check_folded("clang -fuse-ld=lld -Wl,--icf=all");
}

static void functions_beside_each_other_are_not(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "f.c", folded);
	workspace_run(&w, "gcc -O2 -g -fno-ipa-icf -o f f.c");
	struct opened o = open_sites(workspace_path(&w, "f"));
	assert_int_equal(doubts(&o, "first"), 0);
	assert_int_equal(doubts(&o, "alias"), 0);
	close_sites(&o);
	workspace_close(&w);
}

/*
 * See docs/findings/gcc-memory-read-after-store.md: s is described as counter + 1, after the store
 * to counter.
 */
static const char stored[] = "volatile int sink, n = 3;\n"
			     "unsigned counter;\n"
			     "__attribute__((noipa)) void use(unsigned a) { sink = a; }\n"
			     "static inline void f(unsigned s) { use(s * 37); }\n"
			     "int main(void)\n"
			     "{\n"
			     "	for (int i = 0; i < n; i++)\n"
			     "		use(++counter);\n"
			     "	unsigned s = ++counter;\n"
			     "	f(s);\n"
			     "	return 0;\n"
			     "}\n";

static void what_is_computed_from_memory_may_be_another_value(void **state)
{
	struct workspace w;
	struct cairn_function_list found;
	workspace_open(&w);
	workspace_write(&w, "m.c", stored);
	if (!workspace_try(&w, "gcc -Os -g -o m m.c")) {
		workspace_close(&w);
		print_message("no gcc\n");
		skip();
	}
	struct opened o = open_sites(workspace_path(&w, "m"));
	assert_int_equal(cairn_sites_find(o.sites, "f", &found, NULL), 1);
	assert_int_equal(found.p[0]->sites[0].args[0].loc.why, CAIRN_UNAVAIL_MEMORY_WRITTEN);
	close_sites(&o);
	workspace_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_folded_by_gold_are_marked),
		cmocka_unit_test(functions_folded_by_lld_are_marked),
		cmocka_unit_test(functions_beside_each_other_are_not),
		cmocka_unit_test(what_is_computed_from_memory_may_be_another_value),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
