/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters that GCC removed: where their values may be those of another call. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include <cairn/sites.h>

#include "loc/removed.h"
#include "workspace.h"

/* Large enough that it is not inlined before its unused parameter is removed. */
static const char source[] =
	"volatile int sink;\n"
	"#define FEW sink = x; sink = x + 1; sink = x + 2; sink = x + 3; sink = x + 4; sink = x + 5;\n"
	"static inline void f(int x, int unused) { FEW FEW FEW sink = 6; }\n"
	"__attribute__((noipa)) void once(int x) { f(x, 6); }\n"
	"__attribute__((noipa)) void again(int x) { f(x, x + 7); }\n"
	"__attribute__((noipa)) void twice(int x) { f(x, 8); f(x, 9); }\n"
	"int main(void) { once(3); again(4); twice(5); return 0; }\n";

/* Of the copies of f in @container: how many have their second argument, and how many may have another call's. */
static void count(const struct cairn_function *f, const char *container, unsigned int *known, unsigned int *doubted)
{
	*known = *doubted = 0;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		if (strcmp(f->sites[i].container, container))
			continue;
		assert_int_equal(f->sites[i].n_args, 2);
		assert_int_equal(f->sites[i].args[0].loc.why, CAIRN_AVAILABLE);
		*known += f->sites[i].args[1].loc.why == CAIRN_AVAILABLE;
		*doubted += f->sites[i].args[1].loc.why == CAIRN_UNAVAIL_ANOTHER_CALL;
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

static void a_copy_has_another_only_in_its_own_container(void **state)
{
	(void)state;
	enum { BODY_A, COPY, DECLARATION, INNER, SAME_IN_A, BODY_B, ALONE_IN_B, N };
	struct dw_func entries[N] = {
		[BODY_A] = {.parent = DW_FUNC_NONE},
		[COPY] = {.parent = BODY_A, .flags = DW_FUNC_INLINED, .origin = 0x100},
		/* A function declared in a block is no end of the container. */
		[DECLARATION] = {.parent = BODY_A, .flags = DW_FUNC_DECLARATION, .origin = 0x200},
		[INNER] = {.parent = COPY, .flags = DW_FUNC_INLINED, .origin = 0x200},
		[SAME_IN_A] = {.parent = INNER, .flags = DW_FUNC_INLINED, .origin = 0x100},
		[BODY_B] = {.parent = DW_FUNC_NONE},
		[ALONE_IN_B] = {.parent = BODY_B, .flags = DW_FUNC_INLINED, .origin = 0x100},
	};
	struct dw_func_index index = {.p = entries, .n = N};
	struct origins origins;
	assert_int_equal(origins_init(&origins, &index, BODY_A), 0);
	assert_int_equal(origins.n, 3);
	assert_true(origins_has_another(&origins, &index, COPY));
	assert_true(origins_has_another(&origins, &index, SAME_IN_A));
	assert_false(origins_has_another(&origins, &index, INNER));
	origins_fini(&origins);
	assert_int_equal(origins_init(&origins, &index, BODY_B), 0);
	assert_false(origins_has_another(&origins, &index, ALONE_IN_B));
	origins_fini(&origins);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_removed_parameter_counts_where_its_function_is_inlined_once),
		cmocka_unit_test(a_copy_has_another_only_in_its_own_container),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
