/* SPDX-License-Identifier: BSD-2-Clause */
/* Differences that GCC describes as constants, and constants that are some. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <cairn/sites.h>

#include "workspace.h"

/*
 * changes(): as git's xdl_build_script(). passed(): the difference is described, and 0 and 7 are
 * passed.
 */
static const char source[] =
	"#include <stdlib.h>\n"
	"struct change { struct change *next; long i1, i2, n1, n2; };\n"
	"static struct change *add(struct change *next, long i1, long i2, long n1, long n2)\n"
	"{\n"
	"	struct change *c = malloc(sizeof(*c));\n"
	"	if (!c)\n"
	"		return 0;\n"
	"	c->next = next; c->i1 = i1; c->i2 = i2; c->n1 = n1; c->n2 = n2;\n"
	"	return c;\n"
	"}\n"
	"__attribute__((noipa)) struct change *changes(const char *a, const char *b, long i1, long "
	"i2)\n"
	"{\n"
	"	struct change *c = 0, *x;\n"
	"	long l1, l2;\n"
	"	for (; i1 >= 0 || i2 >= 0; i1--, i2--)\n"
	"		if (a[i1 - 1] || b[i2 - 1]) {\n"
	"			for (l1 = i1; a[i1 - 1]; i1--);\n"
	"			for (l2 = i2; b[i2 - 1]; i2--);\n"
	"			if (!(x = add(c, i1, i2, l1 - i1, l2 - i2)))\n"
	"				return 0;\n"
	"			c = x;\n"
	"		}\n"
	"	return c;\n"
	"}\n"
	"__attribute__((noipa)) struct change *passed(const char *a, long i1, long i2)\n"
	"{\n"
	"	struct change *c = 0, *x;\n"
	"	for (; i1 >= 0; i1--)\n"
	"		if (a[i1]) {\n"
	"			if (!(x = add(c, i1, i2 - i1, 0, 7)))\n"
	"				return 0;\n"
	"			c = x;\n"
	"		}\n"
	"	return c;\n"
	"}\n"
	"int main(void)\n"
	"{\n"
	"	static const char a[12] = {0, 0, 1, 1, 0, 0, 0}, b[12] = {0, 0, 0, 1, 1, 1, 0};\n"
	"	return !changes(a + 1, b + 1, 6, 6) + !passed(a, 6, 9);\n"
	"}\n";

/* Arguments n1 and n2 at add()'s copy in a function; false: there is no compiler. */
static bool arguments(const char *options, const char *container, struct cairn_location ret[2],
		      int64_t values[2])
{
	struct workspace w;
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
	unsigned int n = 0;
	workspace_open(&w);
	workspace_write(&w, "a.c", source);
	if (!workspace_try(&w, "%s", options)) {
		workspace_close(&w);
		print_message("no gcc\n");
		return false;
	}
	assert_int_equal(cairn_binary_open(workspace_path(&w, "a"), NULL, &bin, NULL), 0);
	assert_int_equal(cairn_sites_open(bin, NULL, &sites, NULL), 0);
	assert_int_equal(cairn_sites_find(sites, "add", &found, NULL), 1);
	for (uint32_t i = 0; i < found.p[0]->n_sites; i++) {
		const struct cairn_site *s = &found.p[0]->sites[i];
		if (strcmp(s->container, container))
			continue;
		assert_int_equal(s->n_args, 5);
		for (unsigned int k = 0; k < 2; k++) {
			ret[k] = s->args[3 + k].loc;
			values[k] = ret[k].why == CAIRN_AVAILABLE ? ret[k].pieces->steps->imm : -1;
		}
		n++;
	}
	assert_int_equal(n, 1);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
	workspace_close(&w);
	return true;
}

static void a_difference_is_not_believed_to_be_constant(void **state)
{
	static const char *const options[] = {"gcc -O2 -g -o a a.c", "gcc -O3 -g -o a a.c"};
	struct cairn_location loc[2];
	int64_t values[2];
	for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
		if (!arguments(options[i], "changes", loc, values))
			skip();
		for (unsigned int k = 0; k < 2; k++)
			if (loc[k].why == CAIRN_AVAILABLE)
				/* Another compiler may describe it rightly. */
				assert_true(loc[k].pieces->steps->op != CAIRN_LOC_CONST);
			else
				assert_true(loc[k].why == CAIRN_UNAVAIL_STALE ||
					    loc[k].why == CAIRN_UNAVAIL_OPTIMISED_OUT);
	}
}

static void a_constant_beside_a_difference_that_is_described_is_believed(void **state)
{
	struct cairn_location loc[2];
	int64_t values[2];
	if (!arguments("gcc -O2 -g -o a a.c", "passed", loc, values))
		skip();
	assert_true(loc[0].why == CAIRN_AVAILABLE && loc[1].why == CAIRN_AVAILABLE);
	assert_true(values[0] == 0 && values[1] == 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_difference_is_not_believed_to_be_constant),
		cmocka_unit_test(a_constant_beside_a_difference_that_is_described_is_believed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
