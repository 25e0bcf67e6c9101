/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Arguments that are described as a variable of the caller was at another moment: what GCC really
 * writes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <cairn/sites.h>

#include "workspace.h"

static const char source[] =
	"volatile long sink;\n"
	"char v[8];\n"
	"int a[8];\n"
	"static inline void number(long n, unsigned s) { sink = s; }\n"
	"static inline void pointer(char *n, unsigned s) { sink = s; }\n"
	"#define FUNCTION __attribute__((noipa)) void\n"
	"FUNCTION after_loop(long x, int *p)\n"
	"{ long n = x & 7; long sum = 0; while (n--) sum += *p++; sink = sum; number(n, 1); sink = "
	"x; }\n"
	"static inline void sum_up(long n, int *p) { long sum = 0; while (n--) sum += *p++; sink = "
	"sum; number(n, 1); }\n"
	"FUNCTION other_register(long x, int *p) { long y = (x << 1) | x; sink = y; sum_up(y & 7, "
	"p); sink = x; }\n"
	"FUNCTION computed(long n) { sink = n; number(n - 1, 1); sink = n; }\n"
	"FUNCTION still_so(long n) { long m = n - 1; sink = 2; number(m, 1); sink = n; number(m, "
	"2); sink = n; }\n"
	"FUNCTION counter(unsigned s) { for (int i = 0; i < 7; i++) { s++; number(i, s); } }\n"
	"FUNCTION address(unsigned s) { for (int i = 0; i < 7; i++) { s++; pointer(&v[i], s); } }\n"
	"FUNCTION of_the_pass(unsigned s) { for (int i = 0; i < 7; i++) { int no = 0; number(no, "
	"1); sink = i; } }\n"
	"FUNCTION constant(unsigned s) { for (int i = 0; i < 7; i++) { number(0, 1); sink = i; } "
	"}\n"
	"FUNCTION no_loop(unsigned s) { int no = 0; s++; number(no, s); pointer(v, s); }\n"
	"int main(void)\n"
	"{ after_loop(4, a); other_register(4, a); computed(3); still_so(3); counter(1); "
	"address(1); of_the_pass(1); constant(2); no_loop(3); return 0; }\n";

/* Why the first argument is not known at the copies in @container; all say the same. */
static enum cairn_unavailable why(const struct cairn_function_list *found, const char *container)
{
	enum cairn_unavailable ret = CAIRN_N_UNAVAILABLE;
	for (uint32_t k = 0; k < found->n; k++) {
		for (uint32_t i = 0; i < found->p[k]->n_sites; i++) {
			const struct cairn_site *s = &found->p[k]->sites[i];
			if (strcmp(s->container, container))
				continue;
			assert_true(ret == CAIRN_N_UNAVAILABLE || ret == s->args[0].loc.why);
			ret = s->args[0].loc.why;
			/* The other argument is never concerned. */
			assert_int_equal(s->args[1].loc.why, CAIRN_AVAILABLE);
		}
	}
	assert_int_not_equal(ret, CAIRN_N_UNAVAILABLE);
	return ret;
}

struct looked_up {
	struct workspace w;
	struct cairn_binary *bin;
	struct cairn_sites *sites;
};

static bool look_up(struct looked_up *l, const char *name, const struct cairn_sites_opts *opts,
		    struct cairn_function_list *ret)
{
	workspace_open(&l->w);
	workspace_write(&l->w, "a.c", source);
	if (!workspace_try(&l->w, "gcc -O1 -g -o a a.c")) {
		workspace_close(&l->w);
		print_message("no gcc\n");
		return false;
	}
	assert_int_equal(cairn_binary_open(workspace_path(&l->w, "a"), NULL, &l->bin, NULL), 0);
	assert_int_equal(cairn_sites_open(l->bin, opts, &l->sites, NULL), 0);
	assert_int_equal(cairn_sites_find(l->sites, name, ret, NULL), 1);
	return true;
}

static void let_go(struct looked_up *l)
{
	cairn_sites_close(l->sites);
	cairn_binary_close(l->bin);
	workspace_close(&l->w);
}

static void a_value_that_a_variable_had_before_a_loop_is_not_believed(void **state)
{
	(void)state;
	struct looked_up l;
	struct cairn_function_list found;
	if (!look_up(&l, "number", NULL, &found))
		skip();
	assert_int_equal(why(&found, "after_loop"), CAIRN_UNAVAIL_STALE);
	assert_int_equal(why(&found, "other_register"), CAIRN_UNAVAIL_STALE);
	assert_int_equal(why(&found, "computed"), CAIRN_AVAILABLE);
	assert_int_equal(why(&found, "still_so"), CAIRN_AVAILABLE);
	let_go(&l);
}

static void a_counter_that_is_a_constant_is_not_believed(void **state)
{
	(void)state;
	struct looked_up l;
	struct cairn_function_list found;
	if (!look_up(&l, "number", NULL, &found))
		skip();
	assert_int_equal(why(&found, "counter"), CAIRN_UNAVAIL_STALE);
	assert_int_equal(why(&found, "of_the_pass"), CAIRN_AVAILABLE);
	assert_int_equal(why(&found, "constant"), CAIRN_AVAILABLE);
	assert_int_equal(why(&found, "no_loop"), CAIRN_AVAILABLE);
	let_go(&l);
}

static void an_address_made_from_such_a_counter_is_not_believed(void **state)
{
	(void)state;
	struct looked_up l;
	struct cairn_function_list found;
	if (!look_up(&l, "pointer", NULL, &found))
		skip();
	assert_int_equal(why(&found, "address"), CAIRN_UNAVAIL_STALE);
	assert_int_equal(why(&found, "no_loop"), CAIRN_AVAILABLE);
	let_go(&l);
}

static void all_are_believed_when_asked_to(void **state)
{
	(void)state;
	struct looked_up l;
	struct cairn_function_list found;
	if (!look_up(&l, "number", &(struct cairn_sites_opts){.assume_unmodified = true}, &found))
		skip();
	assert_int_equal(why(&found, "after_loop"), CAIRN_AVAILABLE);
	assert_int_equal(why(&found, "counter"), CAIRN_AVAILABLE);
	let_go(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_value_that_a_variable_had_before_a_loop_is_not_believed),
		cmocka_unit_test(a_counter_that_is_a_constant_is_not_believed),
		cmocka_unit_test(an_address_made_from_such_a_counter_is_not_believed),
		cmocka_unit_test(all_are_believed_when_asked_to),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
