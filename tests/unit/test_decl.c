/* SPDX-License-Identifier: BSD-2-Clause */
/* src/decl: C declarations to types; errors with line, column and caret; hostile text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/decl.h>

#include "alloc_fail.h"

static struct cairn_decl *decl;

static int teardown(void **state)
{
	cairn_decl_free(decl);
	decl = NULL;
	return 0;
}

static const struct cairn_types *parse_on(const char *abi, const char *text)
{
	struct cairn_err err = {0};

	cairn_decl_free(decl);
	decl = NULL;
	if (cairn_decl_parse(text, strlen(text), "test.h", cairn_abi_find(abi), &decl, &err) < 0)
		fail_msg("%s", err.msg);
	return cairn_decl_types(decl);
}

/* Size of "struct s" there. */
static uint64_t size_on(const char *abi, const char *text)
{
	const struct cairn_types *types = parse_on(abi, text);
	uint32_t id = cairn_decl_find(decl, CAIRN_T_STRUCT, "s");

	assert_int_not_equal(id, 0);
	return cairn_types_get(types, id)->size;
}

#define assert_size(text, n) assert_int_equal(size_on("x86-64", text), n)

static void assert_refused(const char *text, int code, const char *story)
{
	struct cairn_err err = {0};
	struct cairn_decl *none = NULL;
	int rc = cairn_decl_parse(text, strlen(text), "test.h", cairn_abi_find("i386"), &none, &err);

	if (!rc)
		cairn_decl_free(none);
	assert_int_equal(rc, code);
	if (!strstr(err.msg, story))
		fail_msg("\"%s\" is not in: %s", story, err.msg);
}

static void constants_are_computed(void **state)
{
	assert_size("struct s { char a[(1 << 4) | 3]; };", 19);
	assert_size("enum { N = 5, M = N * 2 }; struct s { char a[M - 1]; };", 9);
	assert_size("struct s { char a[sizeof(long) == 8 ? 3 : 4]; };", 3);
	assert_size("struct t { char c; int m[4]; }; struct s { char a[__builtin_offsetof(struct t, m[2])]; };", 12);
	assert_size("struct t { int x; char y; }; struct s { char a[(unsigned long)&((struct t *)0)->y]; };", 4);
	assert_size("struct s { char a[-1 > 0u ? 2 : 7]; };", 2);
	assert_size("struct s { char a['a' == 97 && '\\n' == 012]; };", 1);
	assert_size("struct s { char a[(unsigned char)300]; };", 44);
	assert_size("struct s { char a[sizeof(((struct t { long l[3]; } *)0)->l)]; };", 24);
	assert_size("struct s { char a[_Alignof(double) + 0x10UL % 7]; };", 10);
}

static void attributes_are_obeyed_wherever_they_stand(void **state)
{
	assert_size("struct s { char c; int i; } __attribute__((packed));", 5);
	assert_size("struct __attribute__((__packed__)) s { char c; int i; };", 5);
	assert_size("struct s { char c; int i __attribute__((packed)); };", 5);
	assert_size("struct s { char c; int i __attribute__((aligned(16))); };", 32);
	assert_size("typedef int a __attribute__((aligned(8))); struct s { char c; a i; };", 16);
	assert_size("typedef int v4 __attribute__((vector_size(16))); struct s { char c; v4 v; };", 32);
	assert_size("struct s { char c; _Alignas(8) char d; };", 16);
	assert_size("typedef unsigned w __attribute__((mode(DI))); struct s { w x; };", 8);
	assert_size("#pragma pack(push, 2)\nstruct s { char c; int i; };\n#pragma pack(pop)\n", 6);
	assert_size("#pragma pack(1)\n#pragma pack()\nstruct s { char c; int i; };", 8);
	assert_size("struct [[gnu::packed]] s { char c; int i; };", 5);
}

static void abis_differ(void **state)
{
	const char *text = "struct s { int a, b; unsigned c; unsigned long long d; char e[12]; };";

	assert_int_equal(size_on("bpf", text), 40);
	assert_int_equal(size_on("i386", text), 32);
	assert_int_equal(size_on("arm", text), 40);
	assert_int_equal(size_on("x86-64", "struct s { char c; long double d; };"), 32);
	assert_int_equal(size_on("bpf", "struct s { char c; long double d; };"), 16);
	assert_int_equal(size_on("s390x", "struct s { char c; __int128 d; };"), 24);
	assert_int_equal(size_on("windows-x64", "struct s { char c; long l; int i; void *x; };"), 24);
}

static void declarators_read_as_in_c(void **state)
{
	const struct cairn_types *types =
		parse_on("x86-64", "struct s { const char *const (*table[4])(int, char *); };");
	const struct cairn_type *s = cairn_types_get(types, cairn_decl_find(decl, CAIRN_T_STRUCT, "s"));
	char text[128];

	cairn_types_declare(types, s->members[0].type, "table", text, sizeof(text));
	assert_string_equal(text, "const char *const (*table[4])(int, char *)");
	assert_int_equal(s->size, 32);
}

static void what_has_no_layout_is_skipped(void **state)
{
	assert_size("static inline int f(int a) { if (a) { return \"}\"[0]; } return 0; }\n"
		    "extern int g(const char *, ...) __asm__(\"_g\") __attribute__((nothrow));\n"
		    "__asm__(\".symver x, y\");\n"
		    "int table[] = {1, 2, (3, 4)}, other = 5;\n"
		    "_Static_assert(sizeof(int) == 4, \"int\");\n"
		    "struct s { int a; };",
		    4);
}

static void errors_point_at_the_place(void **state)
{
	assert_refused("struct a {\n\tint x\n};\n", -EBADMSG, "test.h:3:1: expected ';'");
	assert_refused("# 7 \"other.h\"\nint y[;\n", -EBADMSG, "other.h:7:7: expected an expression\n    int y[;\n          ^");
	assert_refused("struct s { struct s x; };", -EBADMSG, "test.h:1:21: struct s is not complete here: its size is not known");
	assert_refused("struct s { void x; };", -EBADMSG, "size of the member's type is not known");
	assert_refused("union u { int x; union u v[2]; };", -EBADMSG, "elements whose size is not known");
	assert_refused("struct s { int x; struct { int y; } z; long x; };", -EBADMSG, "test.h:1:45: a second member of this name");
	assert_refused("struct s { int a[]; int b; };", -EBADMSG, "test.h:1:16: a flexible array that is not the last member");
	assert_refused("struct s { int x; }; struct s { int y; };", -EBADMSG, "defined a second time");
	assert_refused("struct s { __int128 x; };", -EBADMSG, "i386 has no __int128");
	assert_refused("struct s { int x : 40; };", -EBADMSG, "a bit-field of 40 bits in a type of 32");
	assert_refused("struct s { int x __attribute__((aligned(3))); };", -EBADMSG, "power of 2");
	assert_refused("int x[1 / 0];", -EBADMSG, "division by 0");
	assert_refused("char x[-1];", -EBADMSG, "cannot have -1 elements");
	assert_refused("#include <stdio.h>\n", -EBADMSG, "preprocessor");
	assert_refused("_Static_assert(sizeof(long) == 8, \"LP64\");", -EBADMSG, "does not hold on i386");
	assert_refused("int f(void) { {", -EBADMSG, "not closed");
	assert_refused("/* endless", -EBADMSG, "without an end");
	assert_refused("struct { char a[1UL << 31]; char b[1ULL << 40]; char c[1ULL << 40]; } x;", -ERANGE, "2^40");
}

/* @n times @what. */
static char *repeat(const char *what, size_t n, const char *end)
{
	size_t len = strlen(what);
	char *text = malloc(n * len + strlen(end) + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(text + i * len, what, len);
	strcpy(text + n * len, end);
	return text;
}

static void endless_nesting_is_an_error(void **state)
{
	static const char *const deep[] = {"struct { ", "int (", "typedef char x[sizeof(", "int x = (int)(", "enum { A = (",
					   "int f(int (", "typeof("};
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		char *text = repeat(deep[i], 300000, ";");
		struct cairn_decl *none;
		struct cairn_err err = {0};

		assert_true(cairn_decl_parse(text, strlen(text), "deep.h", cairn_abi_find("x86-64"), &none, &err) < 0);
		assert_true(err.msg[0]);
		free(text);
	}
	/* Depth that costs nothing is no error. */
	char *body = repeat("{", 1000000, "");
	char *close = repeat("}", 1000000, "");
	char *text = malloc(3000000);
	sprintf(text, "int f(void) %s%s struct s { int a; };", body, close);
	assert_size(text, 4);
	free(body);
	free(close);
	free(text);
}

static void a_chain_of_typedefs_ends(void **state)
{
	char *text = malloc(100001 * 40), *at = text + sprintf(text, "typedef int t0;\n");
	struct cairn_decl *none;
	struct cairn_err err = {0};

	for (int i = 1; i < 100000; i++)
		at += sprintf(at, "typedef t%d t%d;\n", i - 1, i);
	assert_int_equal(cairn_decl_parse(text, (size_t)(at - text), "chain.h", cairn_abi_find("x86-64"), &none, &err),
			 -ERANGE);
	assert_non_null(strstr(err.msg, "chain.h:1001:"));
	free(text);
}

static const char everything[] =
	"# 1 \"all.h\" 3\n"
	"typedef unsigned char u8; typedef u8 v8 __attribute__((vector_size(8)));\n"
	"enum e { A = -1, B = 'x', C = sizeof(u8) << 2 };\n"
	"#pragma pack(push, label, 2)\n"
	"struct s { u8 a : 3, : 0; enum e e; union { int i; float _Complex f; }; int (*f)(struct s *, ...); v8 v[2]; }\n"
	"\t__attribute__((aligned(8), unknown(1, (2)))) *p = 0, *q;\n"
	"#pragma pack(pop, label)\n"
	"static inline int f(int a[static 3]) { return a[0] ? '}' : \"{\"[1]; }\n"
	"_Static_assert(__builtin_offsetof(struct s, e) == 2 || 1, \"\");\n"
	"__typeof__(((struct s *)0)->v[1]) w; extern char q[];\n";

static void text_cut_anywhere_is_harmless(void **state)
{
	assert_size(everything, 40);
	for (size_t n = 0; n < sizeof(everything) - 1; n++) {
		char *copy = malloc(n ? n : 1);
		struct cairn_err err = {0};
		struct cairn_decl *d = NULL;

		memcpy(copy, everything, n);
		int rc = cairn_decl_parse(copy, n, "cut.h", cairn_abi_find("x86-64"), &d, &err);
		assert_true(rc == 0 || (err.code == rc && err.msg[0]));
		if (!rc)
			cairn_decl_free(d);
		free(copy);
	}
}

static void text_with_flipped_bits_is_harmless(void **state)
{
	for (size_t i = 0; i < 8 * (sizeof(everything) - 1); i++) {
		char copy[sizeof(everything)];
		struct cairn_decl *d = NULL;

		memcpy(copy, everything, sizeof(copy));
		copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
		if (!cairn_decl_parse(copy, sizeof(copy) - 1, "bits.h", cairn_abi_find("arm"), &d, NULL))
			cairn_decl_free(d);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	unsigned int n_refused = 0;

	for (unsigned int n = 1;; n++) {
		struct cairn_err err = {0};
		struct cairn_decl *d = NULL;

		alloc_fail_at(n);
		int rc = cairn_decl_parse(everything, sizeof(everything) - 1, "mem.h", cairn_abi_find("x86-64"), &d, &err);
		bool failed = alloc_fail_end();
		if (!rc)
			cairn_decl_free(d);
		if (!failed)
			break;
		/* Looking for a member remembers anonymous ones, and can do without. */
		assert_true(rc == -ENOMEM || rc == 0);
		n_refused += rc == -ENOMEM;
	}
	assert_true(n_refused > 20);
}

static void preprocessor_is_asked_for_when_it_is_needed(void **state)
{
	static const char no[] = "# 1 \"a\"\n#pragma pack(1)\nint x;\n", yes[] = "int x;\n #  include <a.h>\n";

	assert_false(cairn_decl_needs_preprocessor(no, strlen(no)));
	assert_true(cairn_decl_needs_preprocessor(yes, strlen(yes)));
	assert_true(cairn_decl_needs_preprocessor("#define A 1", 11));
	assert_false(cairn_decl_needs_preprocessor("", 0));
}

#define CLAIM(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(constants_are_computed),
		CLAIM(attributes_are_obeyed_wherever_they_stand),
		CLAIM(abis_differ),
		CLAIM(declarators_read_as_in_c),
		CLAIM(what_has_no_layout_is_skipped),
		CLAIM(errors_point_at_the_place),
		CLAIM(endless_nesting_is_an_error),
		CLAIM(a_chain_of_typedefs_ends),
		CLAIM(text_cut_anywhere_is_harmless),
		CLAIM(text_with_flipped_bits_is_harmless),
		CLAIM(every_failed_allocation_is_reported),
		CLAIM(preprocessor_is_asked_for_when_it_is_needed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
