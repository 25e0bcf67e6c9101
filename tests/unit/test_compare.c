/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/layout: two layouts compared, laid out for another ABI, locked. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/layout/compare.h>
#include <cairn/layout/retarget.h>

#include "alloc_fail.h"
#include "decl/decl.h"

static struct decl *decls[2];

static int teardown(void **state)
{
	for (int i = 0; i < 2; i++) {
		decl_free(decls[i]);
		decls[i] = NULL;
	}
	return 0;
}

/* The struct or enum s of C text. */
static uint32_t parse(int side, const char *abi, const char *text)
{
	struct cairn_err err = {0};
	static const enum cairn_type_kind kinds[] = {CAIRN_T_STRUCT, CAIRN_T_UNION, CAIRN_T_ENUM};
	uint32_t id = 0;

	decl_free(decls[side]);
	decls[side] = NULL;
	if (decl_parse(text, strlen(text), "test.h", cairn_abi_find(abi), &decls[side], &err) < 0)
		fail_msg("%s", err.msg);
	for (size_t i = 0; i < 3 && !id; i++)
		id = decl_find(decls[side], kinds[i], "s");
	assert_int_not_equal(id, 0);
	return id;
}

static const struct cairn_types *types_of(int side)
{
	return decl_types(decls[side]);
}

/* ---- comparing ---- */

/* "moved a, added b": what differs, as words. */
static void changes_between(const char *a, const char *b, bool other_language, char *buf,
			    size_t size)
{
	struct cairn_compare_opts opts = {.size = sizeof(opts), .other_language = other_language};
	uint32_t ids[2] = {parse(0, "x86-64", a), parse(1, "x86-64", b)};
	struct cairn_changes *changes;
	size_t n = 0;

	*buf = 0;
	assert_int_equal(
		cairn_compare(types_of(0), ids[0], types_of(1), ids[1], &opts, &changes, NULL), 0);
	for (size_t i = 0; i < cairn_changes_n_changes(changes) && n < size; i++) {
		const struct cairn_change *c = cairn_changes_at(changes, i);

		n += (size_t)snprintf(buf + n, size - n, "%s%s %s", i ? ", " : "",
				      cairn_change_id(c->kind), c->path);
	}
	cairn_changes_free(changes);
}

static void assert_changes(const char *a, const char *b, const char *wanted)
{
	char found[512];

	changes_between(a, b, false, found, sizeof(found));
	assert_string_equal(found, wanted);
}

/* @b as another language would have it. */
static void assert_belief(const char *a, const char *b, const char *wanted)
{
	char found[512];

	changes_between(a, b, true, found, sizeof(found));
	assert_string_equal(found, wanted);
}

static void the_first_difference_of_each_member_is_named(void **state)
{
	assert_changes("struct s { int a; long b; };", "struct s { int a; long b; };", "");
	assert_changes("struct s { int a; int b; };", "struct s { int b; int a; };",
		       "moved a, moved b");
	assert_changes("struct s { int a; };", "struct s { unsigned a; };", "sign a");
	assert_changes("struct s { int a; };", "struct s { float a; };", "type a");
	assert_changes("struct s { _Bool a; };", "struct s { char a; };", "type a");
	assert_changes("struct s { char a[4]; };", "struct s { char a[8]; };", "length a");
	assert_changes("struct s { char a[2][6]; };", "struct s { char a[3][4]; };", "");
	assert_changes("struct s { long a; };", "struct s { int a; int b; };",
		       "resized a, added b");
	assert_changes("struct s { int a : 3, b : 5; };", "struct s { int a : 4, b : 4; };",
		       "bits a, moved b");
	assert_changes("struct s { int a : 32; };", "struct s { int a; };", "");
	assert_changes("struct s { int a; };", "union s { int a; };", "kind ");
	assert_changes("struct s { struct x *a; };", "struct s { struct y *a; };", "type a");
	assert_changes("struct s { struct x *a; };", "typedef struct x t; struct s { t *a; };", "");
	assert_changes("enum s { A, B };", "enum s { A = 1, C = 1 };",
		       "enumerator A, removed B, added C");
	assert_changes("enum s { A, B };", "enum s { A, B, C = 0x100000000 };", "resized ");
}

static void what_is_new_or_gone_is_told_by_its_place(void **state)
{
	assert_changes("struct s { int a; char b; };", "struct s { int a; char b; int c; };",
		       "added-at-end c");
	assert_changes("struct s { int a; char b; };", "struct s { int a; char b, c; };",
		       "added-at-end c");
	assert_changes("struct s { char a; int b; };", "struct s { char a, c; int b; };",
		       "added-in-padding c");
	assert_changes("struct s { int a; int b; };", "struct s { int a; };", "removed b");
	assert_changes("struct s { int a; int b; };", "struct s { int x; int b; };", "renamed a");
	assert_changes("union s { int a; };", "union s { int a; char b; };", "added b");
	assert_changes("struct s { long a; char b; };",
		       "struct s { long a; char b; } __attribute__((packed));", "tail ");
	assert_changes("struct s { int a; char b; };",
		       "struct s { int a; char b; } __attribute__((aligned(16)));", "tail ");
}

static void structs_inside_are_compared_from_their_own_start(void **state)
{
	assert_changes("struct s { struct { int x, y; } in; };",
		       "struct s { int a; struct { int x, y; } in; };", "moved in, added a");
	assert_changes("struct s { struct { int x, y; } in; };",
		       "struct s { struct { int x; long y; } in; };", "moved in.y");
	assert_changes("struct s { struct { int x; } in[2]; };",
		       "struct s { struct { unsigned x; } in[2]; };", "sign in[].x");
	assert_changes("struct s { union { int a; char b; }; int c; };",
		       "struct s { int a; int c; };", "removed b");
	assert_changes("enum k { A, B }; struct s { enum k k; };",
		       "enum k { A, B = 4 }; struct s { enum k k; };", "enumerator k.B");
}

static void another_language_has_other_words_for_the_same(void **state)
{
	assert_belief("struct s { int e_pid; char *name; };",
		      "struct s { int EPid; unsigned long long Name; };", "");
	assert_belief("struct s { int e_pid; char comm[16]; };",
		      "struct s { int pid; unsigned char comm[16]; };", "");
	assert_belief("struct s { int a; int b; };", "struct s { int b; int a; };",
		      "moved a, moved b");
	assert_belief("struct s { char a; int b; };", "struct s { char a; char _pad[3]; int b; };",
		      "");
	assert_belief("struct s { char a; char pad1[3]; int b; };", "struct s { char a; int b; };",
		      "");
	assert_belief("struct s { union { int x; float y; } u; int b; };",
		      "struct s { unsigned char u[4]; int b; };", "");
	assert_belief("struct s { int n; char data[]; };", "struct s { int n; };", "");
	assert_belief("enum k { A, B }; struct s { enum k k; };", "struct s { int k; };", "");
	assert_belief("enum k { A = -1 }; struct s { enum k k; };", "struct s { unsigned k; };",
		      "type k");
	assert_belief("struct s { _Bool a; };", "struct s { unsigned char a; };", "");
	assert_belief("struct s { unsigned char a; };", "struct s { _Bool a; };", "type a");
	assert_belief("struct s { unsigned a; };",
		      "struct w { unsigned v; }; struct s { struct w a; };", "");
	assert_belief("struct s { unsigned a; };", "struct s { int a; };", "sign a");
	assert_belief("struct s { unsigned a : 4, b : 4; };", "struct s { unsigned char a, b; };",
		      "bits a, moved b");
	assert_belief("struct s { int a; int b; };", "struct s { int a; };", "removed b");
}

static void byte_order_matters_beyond_one_byte(void **state)
{
	struct cairn_compare_opts opts = {.size = sizeof(opts), .byte_order_differs = true};
	uint32_t a = parse(0, "bpfeb", "struct s { char c; short h; };"),
		 b = parse(1, "x86-64", "struct s { char c; short h; };");
	struct cairn_changes *changes;

	assert_int_equal(cairn_compare(types_of(0), a, types_of(1), b, &opts, &changes, NULL), 0);
	assert_int_equal(cairn_changes_n_changes(changes), 1);
	assert_string_equal(cairn_changes_at(changes, 0)->path, "h");
	assert_int_equal(cairn_changes_at(changes, 0)->kind, CAIRN_CHANGE_BYTE_ORDER);
	cairn_changes_free(changes);
}

static void names_are_folded(void **state)
{
	assert_true(cairn_compare_names("e_pid", "EPid"));
	assert_true(cairn_compare_names("PADDED_EVENT", "PaddedEvent"));
	assert_false(cairn_compare_names("event", "events"));
	assert_false(cairn_compare_names("a1", "a2"));
}

static void the_list_has_an_end(void **state)
{
	char *text[2];
	size_t size;
	struct cairn_changes *changes;

	for (int side = 0; side < 2; side++) {
		FILE *out = open_memstream(&text[side], &size);

		fputs("struct i0 { int v; ", out);
		for (int i = 0; i < 3000; i++)
			fprintf(out, "%s m%d; ", side ? "int" : "unsigned", i);
		fputs("};", out);
		/* 2^20 of them, by doubling: those that are equal are looked at once. */
		for (int i = 1; i <= 20; i++)
			fprintf(out, "struct i%d { struct i%d a, b; }; ", i, i - 1);
		fputs("struct s { struct i5 x; };", out);
		fclose(out);
	}
	uint32_t a = parse(0, "x86-64", text[0]), b = parse(1, "x86-64", text[1]);
	assert_int_equal(cairn_compare(types_of(0), a, types_of(1), b, NULL, &changes, NULL), 0);
	assert_int_equal(cairn_changes_n_changes(changes), CAIRN_CHANGES_MAX);
	assert_true(cairn_changes_cut(changes));
	cairn_changes_free(changes);
	uint32_t deep = decl_find(decls[0], CAIRN_T_STRUCT, "i20");
	assert_int_equal(cairn_compare(types_of(0), deep, types_of(0), deep, NULL, &changes, NULL),
			 0);
	assert_int_equal(cairn_changes_n_changes(changes), 0);
	cairn_changes_free(changes);
	free(text[0]);
	free(text[1]);
}

/* ---- another ABI ---- */

/* Laid out from offsets alone, for @to, a struct is what its declaration is there. */
static struct cairn_deduced assert_retargets(const char *from, const char *to, const char *text)
{
	uint32_t id = parse(0, from, text), there = parse(1, to, text);
	struct cairn_retarget *r;
	struct cairn_changes *changes;
	struct cairn_deduced d;

	assert_int_equal(cairn_layout_retarget(types_of(0), cairn_abi_find(from),
					       cairn_abi_find(to), &id, 1, &r, NULL),
			 0);
	assert_int_equal(cairn_compare(cairn_retarget_types(r), id, types_of(1), there, NULL,
				       &changes, NULL),
			 0);
	if (cairn_changes_n_changes(changes))
		fail_msg("%s to %s: %s: %s", from, to, text, cairn_changes_at(changes, 0)->path);
	assert_int_equal(cairn_types_size(cairn_retarget_types(r), id),
			 cairn_types_size(types_of(1), there));
	cairn_changes_free(changes);
	cairn_retarget_deduced(r, id, &d);
	cairn_retarget_free(r);
	return d;
}

static void attributes_are_deduced_from_offsets(void **state)
{
	struct cairn_deduced d = assert_retargets(
		"x86-64", "i386", "struct s { char c; long l; void *p; long long q; double d; };");

	assert_false(d.packed || d.n_aligned || d.unexplained);
	d = assert_retargets("x86-64", "i386",
			     "struct s { char c; long l; } __attribute__((packed));");
	assert_true(d.packed);
	d = assert_retargets("x86-64", "arm",
			     "struct s { char c; int i; } __attribute__((aligned(64)));");
	/*
	 * It is written down, so nothing is deduced; of BTF, which does not have it, it is:
	 * tests/cli/test_layout_compare.py
	 */
	assert_int_equal(d.aligned, 0);
	d = assert_retargets("x86-64", "i386",
			     "#pragma pack(2)\nstruct s { char c; long l; int i; };");
	assert_int_equal(d.pack, 2);
	d = assert_retargets(
		"bpf", "i386",
		"struct s { char c; int : 0; int b : 3; long l; int : 5; int e : 2; };");
	assert_false(d.unexplained);
	d = assert_retargets("x86-64", "s390x",
			     "struct s { char c; long l __attribute__((packed)); int i; };");
	assert_int_equal(d.n_packed, 1);
	assert_retargets("i386", "x86-64",
			 "struct s { long long a; char b; void *c; _Complex double d; };");
	assert_retargets("x86-64", "arm", "union s { long l; char c[9]; };");
	assert_retargets(
		"x86-64", "i386",
		"struct i { char c; long l; }; struct s { struct i a[3]; short b; struct i d; };");
	assert_retargets("x86-64", "x86-64", "struct s { char c; __int128 i; long double d; };");
}

/* What holds a deduced layout has its offsets and size from it. */
static void a_deduced_layout_makes_those_around_it_deduced(void **state)
{
	struct cairn_deduced d = assert_retargets(
		"x86-64", "i386",
		"struct i { char c; long l; } __attribute__((packed));\n"
		"struct o { char c; struct i in[2]; }; struct s { struct o o; struct i *p; };");

	assert_false(d.packed || d.unexplained);
	assert_int_equal(d.n_deduced_members, 1);
	assert_int_equal(d.n_guessed_members, 0);
	d = assert_retargets("x86-64", "i386",
			     "struct s { char c; struct { char d; long l; } "
			     "__attribute__((packed)); long e; };");
	assert_int_equal(d.n_deduced_members, 1);
}

static void a_guess_makes_those_around_it_guesses(void **state)
{
	uint32_t id = parse(0, "x86-64",
			    "struct i { char c; __int128 i; }; struct s { char c; struct i i; };");
	struct cairn_retarget *r;
	struct cairn_deduced d;

	assert_int_equal(cairn_layout_retarget(types_of(0), cairn_abi_find("x86-64"),
					       cairn_abi_find("i386"), &id, 1, &r, NULL),
			 0);
	assert_true(cairn_retarget_deduced(r, id, &d));
	assert_int_equal(d.n_guessed_members, 1);
	cairn_retarget_free(r);
}

/* Compilers write the number that results, which aligned(1) has here as well as aligned(16). */
static void a_written_alignment_that_members_have_anyway_is_deduced(void **state)
{
	const char *text = "struct s { long double d; char c; } __attribute__((aligned(16)));";
	struct cairn_deduced d = assert_retargets("x86-64", "i386", text);

	assert_int_equal(d.aligned, 16);
	assert_int_equal(assert_retargets("x86-64", "aarch64", text).aligned, 0);
	d = assert_retargets("x86-64", "i386",
			     "struct s { char c; long double d __attribute__((aligned(16))); };");
	assert_int_equal(d.n_aligned, 1);
}

static void what_the_other_abi_lacks_is_a_guess(void **state)
{
	uint32_t id = parse(0, "x86-64", "struct s { char c; __int128 i; };");
	struct cairn_retarget *r;
	struct cairn_deduced d;

	assert_int_equal(cairn_layout_retarget(types_of(0), cairn_abi_find("x86-64"),
					       cairn_abi_find("i386"), &id, 1, &r, NULL),
			 0);
	assert_true(cairn_retarget_deduced(r, id, &d) && d.unexplained);
	cairn_retarget_free(r);
}

static void the_abi_is_guessed_from_what_needs_no_attributes(void **state)
{
	static const char *const abis[] = {"x86-64", "i386", "arm"};
	const char *text = "struct s { char c; long long q; void *p; };";

	for (size_t i = 0; i < sizeof(abis) / sizeof(abis[0]); i++) {
		const struct cairn_abi *abi = cairn_abi_find(abis[i]);
		uint32_t id = parse(0, abis[i], text);

		const struct cairn_abi *guessed = cairn_layout_guess_abi(
			types_of(0), &id, 1, abi->scalars[CAIRN_C_PTR].size, abi->big_endian);
		assert_non_null(guessed);
		assert_string_equal(guessed->name, abis[i]);
	}
}

/* ---- lock ---- */

static char *lock_of(uint32_t id)
{
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_int_equal(cairn_lock_write(types_of(0), &id, 1, "x86-64", out, NULL), 0);
	fclose(out);
	return text;
}

static void a_lock_file_is_read_as_it_was_written(void **state)
{
	uint32_t id = parse(
		0, "x86-64",
		"enum k { A, B = -3 }; struct s { char a; struct { int x : 3, y; } in[2][3]; enum "
		"k k; union u { float f; void *p; } u; "
		"_Bool b; double _Complex c; struct s *next; struct { short h; }; char data[]; };");
	char *text = lock_of(id);
	struct cairn_lock *lock;
	struct cairn_changes *changes;
	size_t n;

	assert_int_equal(cairn_lock_read(text, strlen(text), "lock", &lock, NULL), 0);
	const uint32_t *ids = cairn_lock_ids(lock, &n);
	assert_int_equal(n, 1);
	assert_string_equal(cairn_lock_abi(lock), "x86-64");
	/* Pointers have lost what they point to. */
	assert_int_equal(cairn_compare(types_of(0), id, cairn_lock_types(lock), ids[0], NULL,
				       &changes, NULL),
			 0);
	for (size_t i = 0; i < cairn_changes_n_changes(changes); i++)
		assert_non_null(strstr("next u.p", cairn_changes_at(changes, i)->path));
	cairn_changes_free(changes);
	char *again;
	size_t size;
	FILE *out = open_memstream(&again, &size);
	assert_int_equal(cairn_lock_write(cairn_lock_types(lock), ids, n, "x86-64", out, NULL), 0);
	fclose(out);
	assert_string_equal(again, text);
	cairn_lock_free(lock);
	free(again);
	free(text);
}

static void any_prefix_of_a_lock_file_is_read_or_refused(void **state)
{
	char *text = lock_of(
		parse(0, "x86-64", "enum k { A }; struct s { char a[2]; int b : 3; enum k k; };"));
	size_t all = strlen(text);

	for (size_t n = 0; n <= all; n++) {
		struct cairn_err err = {0};
		struct cairn_lock *lock;
		char *cut = malloc(n ? n : 1);

		assert_non_null(cut);
		memcpy(cut, text, n);
		int rc = cairn_lock_read(cut, n, "lock", &lock, &err);
		free(cut);
		assert_true(rc == 0 || ((rc == -EBADMSG || rc == -EOPNOTSUPP) && err.msg[0]));
		if (!rc)
			cairn_lock_free(lock);
	}
	free(text);
}

/* ---- no memory ---- */

static int do_all(uint32_t a, uint32_t b)
{
	struct cairn_changes *changes;
	struct cairn_retarget *r;
	int rc = cairn_compare(types_of(0), a, types_of(1), b, NULL, &changes, NULL);

	if (rc)
		return rc;
	cairn_changes_free(changes);
	rc = cairn_layout_retarget(types_of(0), cairn_abi_find("x86-64"), cairn_abi_find("i386"),
				   &a, 1, &r, NULL);
	if (!rc)
		cairn_retarget_free(r);
	return rc;
}

static int lock_and_read(FILE *out, uint32_t id, const char *text)
{
	struct cairn_lock *lock;
	int rc = cairn_lock_write(types_of(0), &id, 1, "x86-64", out, NULL);

	rc = rc ? rc : cairn_lock_read(text, strlen(text), "lock", &lock, NULL);
	if (!rc)
		cairn_lock_free(lock);
	return rc;
}

static void failing_allocations_are_told(void **state)
{
	uint32_t a = parse(0, "x86-64",
			   "enum k { A }; struct s { char c; struct { int x; } in[2]; enum k k; "
			   "long l; int : 0; int b : 2; } "
			   "__attribute__((aligned(32)));");
	uint32_t b = parse(
		1, "x86-64",
		"enum k { B }; struct s { char c; struct { long x; } in[2]; enum k k; int z; };");
	char *text = lock_of(a);
	FILE *out = fopen("/dev/null", "w");
	bool failed = true;

	assert_non_null(out);
	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int rc = do_all(a, b);

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
	}
	failed = true;
	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int rc = lock_and_read(out, a, text);

		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
	}
	fclose(out);
	free(text);
}

#define CLAIM(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(the_first_difference_of_each_member_is_named),
		CLAIM(what_is_new_or_gone_is_told_by_its_place),
		CLAIM(structs_inside_are_compared_from_their_own_start),
		CLAIM(another_language_has_other_words_for_the_same),
		CLAIM(byte_order_matters_beyond_one_byte),
		CLAIM(names_are_folded),
		CLAIM(the_list_has_an_end),
		CLAIM(attributes_are_deduced_from_offsets),
		CLAIM(a_deduced_layout_makes_those_around_it_deduced),
		CLAIM(a_guess_makes_those_around_it_guesses),
		CLAIM(a_written_alignment_that_members_have_anyway_is_deduced),
		CLAIM(what_the_other_abi_lacks_is_a_guess),
		CLAIM(the_abi_is_guessed_from_what_needs_no_attributes),
		CLAIM(a_lock_file_is_read_as_it_was_written),
		CLAIM(any_prefix_of_a_lock_file_is_read_or_refused),
		CLAIM(failing_allocations_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
