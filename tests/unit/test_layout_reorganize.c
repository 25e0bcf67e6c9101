/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/layout/reorganize.c and what it stands on, against all orders there are. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/layout/reorganize.h>

#include "alloc_fail.h"
#include "decl/decl.h"

struct sample {
	struct decl *decl;
	struct cairn_layout *layout;
	uint32_t id;
};

static struct sample open_sample(const char *text, const char *abi)
{
	struct cairn_layout_opts o = {.size = sizeof(o), .abi = cairn_abi_find(abi)};
	struct cairn_err err = {0};
	struct sample s;

	if (decl_parse(text, strlen(text), "test.h", o.abi, &s.decl, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(cairn_layout_new(decl_types(s.decl), &o, &s.layout, &err), 0);
	s.id = decl_find(s.decl, CAIRN_T_STRUCT, "s");
	assert_int_not_equal(s.id, 0);
	return s;
}

static void close_sample(struct sample *s)
{
	cairn_layout_free(s->layout);
	decl_free(s->decl);
}

/*
 * Sizes before and after, and the members' first letters in their new order, unless that is NULL.
 */
static void expect(const char *text, const struct cairn_reorganize_opts *opts, uint64_t old_size,
		   uint64_t new_size, const char *order)
{
	struct sample s = open_sample(text, "x86-64");
	const struct cairn_type *t = cairn_types_get(decl_types(s.decl), s.id);
	struct cairn_reorganized r;
	struct cairn_err err = {0};
	char letters[64] = "";

	if (cairn_layout_reorganize(s.layout, s.id, opts, &r, &err) < 0)
		fail_msg("%s", err.msg);
	for (uint32_t i = 0; i < r.n_members; i++)
		letters[i] = t->members[r.members[i].index].name
				     ? t->members[r.members[i].index].name[0]
				     : '-';
	assert_int_equal(r.old_size, old_size);
	assert_int_equal(r.new_size, new_size);
	assert_true(r.proven);
	if (order)
		assert_string_equal(letters, order);
	cairn_reorganized_free(&r);
	close_sample(&s);
}

static void padded_event_becomes_24_bytes(void **state)
{
	expect("struct s { char c; long l; int i; void *x; };", NULL, 32, 24, "cilx");
}

static void what_cannot_be_smaller_stays_as_it_is(void **state)
{
	expect("struct s { int b; char a; };", NULL, 8, 8, "ba");
}

static void a_flexible_array_stays_last(void **state)
{
	expect("struct s { char a; long l; char b; char f[]; };", NULL, 24, 16, "labf");
}

static void alignment_that_was_asked_for_is_kept(void **state)
{
	/* pahole 1.32 says 20 bytes of this. */
	expect("struct s { int a; char b; int c __attribute__((aligned(16))); char d; };", NULL, 32,
	       16, "cabd");
	expect("struct s { char a; long l; char b; } __attribute__((aligned(32)));", NULL, 32, 32,
	       "alb");
}

static void a_run_of_bit_fields_moves_as_one(void **state)
{
	expect("struct s { char a; long l; int x : 3, y : 5; };", NULL, 24, 16, "laxy");
}

static void runs_are_merged_when_it_is_allowed(void **state)
{
	struct cairn_reorganize_opts o = {.size = sizeof(o), .merge_bit_fields = true};
	const char *text = "struct s { unsigned char a : 4; int n; unsigned char b : 4; short h; "
			   "unsigned char c; };";

	expect(text, NULL, 16, 12, NULL);
	expect(text, &o, 16, 8, NULL);
}

static void a_marker_stays_in_front_of_what_it_marks(void **state)
{
	expect("struct s { char a; struct {} m[0]; long l; char b; };", NULL, 24, 16, "abml");
}

static void the_first_member_can_be_pinned(void **state)
{
	struct cairn_reorganize_opts o = {.size = sizeof(o), .pin_first = true};

	expect("struct s { char a; long l; int i; char b; };", &o, 24, 16, "abil");
}

static void members_are_kept_together(void **state)
{
	const char *together[] = {"b,a"};
	struct cairn_reorganize_opts o = {.size = sizeof(o), .together = together, .n_together = 1};
	struct sample s = open_sample("struct s { char a; long l; int i; char b; };", "x86-64");
	struct cairn_reorganized r;
	struct cairn_err err = {0};

	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, &o, &r, &err), 0);
	assert_int_equal(r.new_size, 16);
	for (uint32_t i = 0; i < 4; i++)
		if (r.members[i].index == 3)
			assert_int_equal(r.members[i + 1].index, 0);
	cairn_reorganized_free(&r);
	together[0] = "a,nothing";
	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, &o, &r, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no member nothing"));
	close_sample(&s);
}

static uint64_t weight(void *ctx, const char *member)
{
	return *member == 'h' ? 10 : 0;
}

static void hot_members_share_a_cache_line(void **state)
{
	struct cairn_reorganize_opts o = {.size = sizeof(o), .weight = weight};
	struct sample s = open_sample(
		"struct s { int h1; char c[100]; long h2; char d[60]; int h3; };", "x86-64");
	struct cairn_reorganized r;

	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, &o, &r, NULL), 0);
	assert_int_equal(r.old_lines, 3);
	assert_int_equal(r.new_lines, 1);
	assert_true(r.new_size <= r.old_size && r.proven);
	cairn_reorganized_free(&r);
	close_sample(&s);
}

static void what_the_rules_do_not_explain_is_refused(void **state)
{
	struct sample s = open_sample(
		"#pragma pack(push, 2)\nstruct s { char a; long b; char c; };\n#pragma pack(pop)\n",
		"x86-64");
	struct cairn_reorganized r;
	struct cairn_err err = {0};

	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, NULL, &r, &err), -EOPNOTSUPP);
	assert_null(r.members);
	close_sample(&s);
}

/* ---- all orders ---- */

enum { GROUPS = 6 };

static const char *const kinds[] = {"char %s;",        "short %s;",
				    "int %s;",         "long %s;",
				    "long double %s;", "char %s[3];",
				    "int %s[3];",      "short %s[5];",
				    "void *%s;",       "int %s __attribute__((aligned(16)));",
				    "double %s[2];",   "long %s : 40;"};

static uint64_t size_of(const char *const *groups, const uint32_t *perm, uint32_t n,
			const char *abi)
{
	char text[512] = "struct s {";
	const struct cairn_type *t;
	struct decl *decl;

	for (uint32_t i = 0; i < n; i++) {
		char name[8], member[80];

		/* Two bit-fields side by side stay apart. */
		if (i && strchr(groups[perm[i]], ':') && strchr(groups[perm[i - 1]], ':'))
			strcat(text, "char : 0;");
		snprintf(name, sizeof(name), "m%u", perm[i]);
		snprintf(member, sizeof(member), groups[perm[i]], name);
		strcat(text, member);
	}
	strcat(text, "};");
	assert_int_equal(decl_parse(text, strlen(text), "p.h", cairn_abi_find(abi), &decl, NULL),
			 0);
	t = cairn_types_get(decl_types(decl), decl_find(decl, CAIRN_T_STRUCT, "s"));
	uint64_t size = t->size;
	decl_free(decl);
	return size;
}

static uint64_t smallest(const char *const *groups, uint32_t *perm, uint32_t at, uint32_t n,
			 const char *abi)
{
	uint64_t best = UINT64_MAX;

	if (at == n)
		return size_of(groups, perm, n, abi);
	for (uint32_t i = at; i < n; i++) {
		uint32_t was = perm[at];

		perm[at] = perm[i];
		perm[i] = was;
		uint64_t size = smallest(groups, perm, at + 1, n, abi);
		best = size < best ? size : best;
		perm[i] = perm[at];
		perm[at] = was;
	}
	return best;
}

static void no_order_of_random_structs_is_smaller(void **state)
{
	static const char *const abis[] = {"x86-64", "i386", "arm", "s390x"};
	unsigned int seed = 7;

	for (int round = 0; round < 60; round++) {
		const char *groups[GROUPS], *abi = abis[round % 4];
		uint32_t perm[GROUPS], n = 2 + (uint32_t)rand_r(&seed) % (GROUPS - 1);
		char text[512] = "struct s {";

		for (uint32_t i = 0; i < n; i++) {
			char name[8], member[80];

			do
				groups[i] = kinds[(unsigned int)rand_r(&seed) %
						  (sizeof(kinds) / sizeof(kinds[0]))];
			while (strchr(groups[i], ':') &&
			       ((i && strchr(groups[i - 1], ':')) || !strcmp(abi, "i386") ||
				!strcmp(abi, "arm")));
			perm[i] = i;
			snprintf(name, sizeof(name), "m%u", i);
			snprintf(member, sizeof(member), groups[i], name);
			strcat(text, member);
		}
		strcat(text, "};");
		struct sample s = open_sample(text, abi);
		struct cairn_reorganized r;
		struct cairn_err err = {0};
		if (cairn_layout_reorganize(s.layout, s.id, NULL, &r, &err) < 0)
			fail_msg("%s: %s: %s", abi, text, err.msg);
		if (r.new_size != smallest(groups, perm, 0, n, abi) || !r.proven)
			fail_msg("%s: %s: %d", abi, text, (int)r.new_size);
		cairn_reorganized_free(&r);
		close_sample(&s);
	}
}

/* 40 groups of 3 kinds: far beyond what is promised, and still exact. */
static void many_groups_of_few_kinds_are_proven(void **state)
{
	char text[1024] = "struct s {";

	for (int i = 0; i < 13; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "char c%d; long l%d; short h%d[3];", i, i, i);
	strcat(text, "};");
	struct sample s = open_sample(text, "x86-64");
	struct cairn_reorganized r;
	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, NULL, &r, NULL), 0);
	assert_true(r.proven);
	assert_int_equal(r.n_groups, 39);
	assert_int_equal(r.new_size, (13 * (1 + 8 + 6) + 7) / 8 * 8);
	cairn_reorganized_free(&r);
	close_sample(&s);
}

/* ---- without memory ---- */

/* The outcome without memory is an error, and never another order. */
static void expect_an_answer_or_enomem(const char *text, const struct cairn_reorganize_opts *opts)
{
	struct sample s = open_sample(text, "x86-64");
	struct cairn_reorganized whole, r;
	bool failed = true;
	unsigned int n;

	assert_int_equal(cairn_layout_reorganize(s.layout, s.id, opts, &whole, NULL), 0);
	for (n = 0; failed; n++) {
		alloc_fail_at(n + 1);
		int rc = cairn_layout_reorganize(s.layout, s.id, opts, &r, NULL);

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		if (failed)
			assert_null(r.members);
	}
	assert_true(n > 2);
	assert_int_equal(r.new_size, whole.new_size);
	assert_memory_equal(r.members, whole.members, r.n_members * sizeof(*r.members));
	cairn_reorganized_free(&r);
	cairn_reorganized_free(&whole);
	close_sample(&s);
}

static void without_memory_there_is_no_order(void **state)
{
	const char *together[] = {"d,a"};
	struct cairn_reorganize_opts o = {.size = sizeof(o),
					  .weight = weight,
					  .together = together,
					  .n_together = 1,
					  .pin_first = true,
					  .merge_bit_fields = true};

	expect_an_answer_or_enomem(
		"struct s { char a; long l; char b; short h; int i : 3, j : 7; char c[3]; };",
		NULL);
	expect_an_answer_or_enomem("struct s { char p; char a; long h1; int b : 3; short d; int "
				   "h2; int c : 4; char z[]; };",
				   &o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(padded_event_becomes_24_bytes),
		cmocka_unit_test(what_cannot_be_smaller_stays_as_it_is),
		cmocka_unit_test(a_flexible_array_stays_last),
		cmocka_unit_test(alignment_that_was_asked_for_is_kept),
		cmocka_unit_test(a_run_of_bit_fields_moves_as_one),
		cmocka_unit_test(runs_are_merged_when_it_is_allowed),
		cmocka_unit_test(a_marker_stays_in_front_of_what_it_marks),
		cmocka_unit_test(the_first_member_can_be_pinned),
		cmocka_unit_test(members_are_kept_together),
		cmocka_unit_test(hot_members_share_a_cache_line),
		cmocka_unit_test(what_the_rules_do_not_explain_is_refused),
		cmocka_unit_test(no_order_of_random_structs_is_smaller),
		cmocka_unit_test(many_groups_of_few_kinds_are_proven),
		cmocka_unit_test(without_memory_there_is_no_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
