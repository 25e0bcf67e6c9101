/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/bytes/source: a list of types is read once, however many names are looked for in it, and the
 * answers stay the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/source.h>

#include "decl/decl.h"
#include "source/names.h"

struct list {
	const char *const *names;
	size_t n, n_read;
};

static const char *at(const void *ctx, size_t place)
{
	struct list *l = (struct list *)ctx;

	assert_true(place > 0 && place <= l->n);
	l->n_read++;
	return l->names[place - 1];
}

static size_t walk_over(struct names *names, struct list *l, const char *name, size_t *places)
{
	struct names_walk walk;
	size_t n = 0;

	assert_int_equal(names_find(names, name, l->n, at, l, &walk, NULL), 0);
	while (names_next(&walk))
		places[n++] = walk.at;
	return n;
}

static const char *const some[] = {
	"job", NULL, "ns::job", "other", "job", "a<ns::job>", "ns::deep::job", "b<x::job>", ""};

static void places_come_in_their_order_and_with_any_scope(void **state)
{
	struct list l = {some, sizeof(some) / sizeof(some[0]), 0};
	struct names names = {0};
	size_t places[16];

	/* The first question reads all. */
	assert_int_equal(walk_over(&names, &l, "job", places), l.n);
	assert_int_equal(l.n_read, 0);
	assert_int_equal(walk_over(&names, &l, "job", places), 4);
	assert_int_equal(places[0], 1);
	assert_int_equal(places[1], 3);
	assert_int_equal(places[2], 5);
	assert_int_equal(places[3], 7);
	assert_int_equal(walk_over(&names, &l, "deep::job", places), 4);
	assert_int_equal(walk_over(&names, &l, "none", places), 0);
	assert_int_equal(walk_over(&names, &l, "", places), 1);
	assert_int_equal(places[0], 9);
	/* "job>" is the last component of two. */
	assert_int_equal(walk_over(&names, &l, "b<x::job>", places), 2);
	/* Whoever wants all gets all. */
	assert_int_equal(walk_over(&names, &l, NULL, places), l.n);
	assert_int_equal(l.n_read, l.n);
	names_fini(&names);
}

static void a_list_without_types_has_no_name(void **state)
{
	struct list l = {NULL, 0, 0};
	struct names names = {0};
	size_t places[1];

	for (int i = 0; i < 3; i++)
		assert_int_equal(walk_over(&names, &l, "job", places), 0);
	names_fini(&names);
}

enum { N = 300 };

static struct cairn_source *parsed(void)
{
	static char text[N * 100];
	struct cairn_source *s;
	size_t used = 0;

	for (int i = 0; i < N; i++)
		used += (size_t)sprintf(text + used,
					i % 3 ? "struct s%d { int a[%d]; };\n"
					      : "typedef struct { char b[%d]; } s%d;\n",
					i % 3 ? i : i + 1, i % 3 ? i + 1 : i);
	assert_int_equal(cairn_source_parse(text, used, "text", cairn_abi_find("x86-64"), &s, NULL),
			 0);
	return s;
}

static void a_question_has_the_same_answer_at_any_time(void **state)
{
	struct cairn_source *one = parsed();

	for (int i = 0; i < N + 3; i++) {
		struct cairn_source_list first = {0}, later = {0};
		struct cairn_source *fresh = parsed();
		char name[32];

		sprintf(name, i % 5 ? "s%d" : "struct s%d", i);
		int64_t n = cairn_source_select(fresh, name, &first, NULL);
		assert_int_equal(n, i < N && (i % 3 || i % 5));
		assert_int_equal(cairn_source_select(one, name, &later, NULL), n);
		assert_memory_equal(first.ids, later.ids, (size_t)n * sizeof(*first.ids));
		free(first.ids);
		free(later.ids);
		cairn_source_close(fresh);
	}
	cairn_source_close(one);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places_come_in_their_order_and_with_any_scope),
		cmocka_unit_test(a_list_without_types_has_no_name),
		cmocka_unit_test(a_question_has_the_same_answer_at_any_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
