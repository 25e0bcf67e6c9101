/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that GCC removed: where their values may be those of another call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <cairn/sites.h>

#include "dwarf/constants.h"
#include "sites/quirks/removed_param.h"
#include "workspace.h"

/* Large enough that it is not inlined before its unused parameter is removed. */
static const char source[] = "volatile int sink;\n"
			     "#define FEW sink = x; sink = x + 1; sink = x + 2; sink = x + 3; sink "
			     "= x + 4; sink = x + 5;\n"
			     "static inline void f(int x, int unused) { FEW FEW FEW sink = 6; }\n"
			     "__attribute__((noipa)) void once(int x) { f(x, 6); }\n"
			     "__attribute__((noipa)) void again(int x) { f(x, x + 7); }\n"
			     "__attribute__((noipa)) void twice(int x) { f(x, 8); f(x, 9); }\n"
			     "int main(void) { once(3); again(4); twice(5); return 0; }\n";

/*
 * Of the copies of f in @container: how many have their second argument, and how many may have
 * another call's.
 */
static void count(const struct cairn_function *f, const char *container, unsigned int *known,
		  unsigned int *doubted)
{
	*known = *doubted = 0;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		if (strcmp(f->sites[i].container, container))
			continue;
		assert_int_equal(f->sites[i].n_args, 2);
		assert_int_equal(f->sites[i].args[0].loc.why, CAIRN_AVAILABLE);
		*known += f->sites[i].args[1].loc.why == CAIRN_AVAILABLE;
		*doubted += f->sites[i].args[1].loc.why == CAIRN_UNAVAIL_OTHER_CALL;
	}
}

static void check(const char *path, const struct cairn_sites_opts *opts, unsigned int known_of_two)
{
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
	unsigned int known, doubted;
	assert_int_equal(cairn_binary_open(path, NULL, &bin, NULL), 0);
	assert_int_equal(cairn_sites_open(bin, opts, &sites, NULL), 0);
	assert_int_equal(cairn_sites_find(sites, "f", &found, NULL), 1);
	count(found.p[0], "once", &known, &doubted);
	assert_int_equal(known, 1);
	count(found.p[0], "again", &known, &doubted);
	assert_int_equal(known, 1);
	count(found.p[0], "twice", &known, &doubted);
	assert_int_equal(known, known_of_two);
	assert_int_equal(doubted, 2 - known_of_two);
	cairn_sites_close(sites);
	cairn_binary_close(bin);
}

static void a_removed_parameter_counts_where_its_function_is_inlined_once(void **state)
{
	(void)state;
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "r.c", source);
	if (!workspace_try(&w, "gcc -O2 -finline-limit=1000 -g -o r r.c")) {
		workspace_close(&w);
		print_message("no gcc\n");
		skip();
	}
	check(workspace_path(&w, "r"), NULL, 0);
	check(workspace_path(&w, "r"), &(struct cairn_sites_opts){.assume_unmodified = true}, 2);
	workspace_close(&w);
}

/* One copy with one argument. */
struct copy {
	struct built_site site;
	struct cairn_arg arg;
	uint8_t bound;
};

static struct built_site *copy(struct copy *c, uint32_t container, dw_off die, enum bound bound)
{
	*c = (struct copy){.bound = (uint8_t)bound};
	c->site = (struct built_site){
		.container = container,
		.die = {.off = die,
			.tag = container == die ? DW_TAG_subprogram : DW_TAG_inlined_subroutine},
		.formals = {.n = 1},
		.args = &c->arg,
		.bound = &c->bound,
		.site = {.n_shared = 1},
	};
	return &c->site;
}

static void only_copies_beside_one_another_are_doubted(void **state)
{
	(void)state;
	enum { BODY = 7, MAIN = 20, LOOP = 40, OTHER = 60, N = 8 };
	struct copy c[N];
	struct built_site *sites[N] = {
		copy(&c[0], LOOP, 41, BOUND_AFTER), /* alone, with two sites */
		copy(&c[1], BODY, BODY, BOUND_ALWAYS),
		copy(&c[2], MAIN, 21, BOUND_ALWAYS),
		copy(&c[3], MAIN, 22, BOUND_AFTER),
		copy(&c[4], MAIN, 23, BOUND_BEFORE),
		copy(&c[5], LOOP, 41, BOUND_AFTER),
		copy(&c[6], BODY, 8, BOUND_AFTER), /* recursion, inlined once */
		copy(&c[7], OTHER, 61, BOUND_ALWAYS),
	};
	assert_true(removed_param_any(&c[0].site));
	assert_false(removed_param_any(&c[2].site));
	removed_param_check(sites, N);
	for (unsigned int i = 0; i < N; i++)
		assert_int_equal(c[i].arg.loc.why,
				 i == 2 || i == 3 ? CAIRN_UNAVAIL_OTHER_CALL : CAIRN_AVAILABLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_parameter_counts_where_its_function_is_inlined_once),
		cmocka_unit_test(only_copies_beside_one_another_are_doubted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
