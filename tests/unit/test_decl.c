/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/decl: C declarations to types; errors with line, column and caret; hostile text. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "alloc_fail.h"
#include "decl/decl.h"

static struct decl *decl;

static int teardown(void **state)
{
	decl_free(decl);
	decl = NULL;
	return 0;
}

static const struct cairn_types *parse_on(const char *abi, const char *text)
{
	struct cairn_err err = {0};

	decl_free(decl);
	decl = NULL;
	if (decl_parse(text, strlen(text), "test.h", cairn_abi_find(abi), &decl, &err) < 0)
		fail_msg("%s", err.msg);
	return decl_types(decl);
}

/* Size of "struct s" there. */
static uint64_t size_on(const char *abi, const char *text)
{
	const struct cairn_types *types = parse_on(abi, text);
	uint32_t id = decl_find(decl, CAIRN_T_STRUCT, "s");

	assert_int_not_equal(id, 0);
	return cairn_types_get(types, id)->size;
}

#define assert_size(text, n) assert_int_equal(size_on("x86-64", text), n)

static void assert_refused(const char *text, int code, const char *story)
{
	struct cairn_err err = {0};
	struct decl *none = NULL;
	int rc = decl_parse(text, strlen(text), "test.h", cairn_abi_find("i386"), &none, &err);

	if (!rc)
		decl_free(none);
	assert_int_equal(rc, code);
	if (!strstr(err.msg, story))
		fail_msg("\"%s\" is not in: %s", story, err.msg);
}

static void constants_are_computed(void **state)
{
	assert_size("struct s { char a[(1 << 4) | 3]; };", 19);
	assert_size("enum { N = 5, M = N * 2 }; struct s { char a[M - 1]; };", 9);
	assert_size("struct s { char a[sizeof(long) == 8 ? 3 : 4]; };", 3);
	assert_size("struct t { char c; int m[4]; }; struct s { char a[__builtin_offsetof(struct "
		    "t, m[2])]; };",
		    12);
	assert_size("struct t { int x; char y; }; struct s { char a[(unsigned long)&((struct t "
		    "*)0)->y]; };",
		    4);
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
	assert_size("typedef int v4 __attribute__((vector_size(16))); struct s { char c; v4 v; };",
		    32);
	assert_size("typedef int v __attribute__((vector_size(1024))); struct s { char c; v v; };",
		    2048);
	assert_int_equal(size_on("aarch64", "typedef int v __attribute__((vector_size(1024))); "
					    "struct s { char c; v v; };"),
			 1040);
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
	assert_int_equal(size_on("windows-x64", "struct s { char c; long l; int i; void *x; };"),
			 24);
}

/* What GCC's and Clang's headers define for the compiler that has no such keyword. */
static void keywords_of_one_compiler_are_names_for_another(void **state)
{
	assert_size("typedef float _Float32; typedef double _Float64; typedef long double "
		    "_Float64x; struct s { _Float32 a; "
		    "_Float64x b; };",
		    32);
	assert_size("typedef __float128 _Float128; typedef _Complex float cf "
		    "__attribute__((__mode__(__TC__)));"
		    "struct s { char c; _Float128 a; cf b; };",
		    64);
	/* The typedef counts, not what the word is elsewhere. */
	assert_int_equal(
		size_on("arm", "typedef double _Float128; struct s { char c; _Float128 a; };"), 16);
	assert_size("typedef unsigned __int128 __uint128_t; struct s { char c; __uint128_t a; };",
		    32);
	assert_size("typedef char __bf16; struct s { __bf16 a[3]; };", 3);
}

/* Sizes as by gcc 12 (x86-64, i386, s390x) and clang 19. */
static void types_beyond_the_standard_s_are_as_the_compilers_have_them(void **state)
{
	/* clang-format off */
	static const struct {
		const char *abi, *type;
		unsigned int size; /* of struct { char c; TYPE t; }; 0: the ABI has none */
	} samples[] = {
		{"x86-64", "_Complex int", 12},		  {"i386", "_Complex long long", 20},
		{"x86-64", "unsigned char _Complex", 3},  {"x86-64", "_Complex", 24},
		{"i386", "long double _Complex", 28},	  {"x86-64", "_Complex _Float128", 48},
		{"x86-64", "_Decimal128", 32},		  {"i386", "_Decimal64", 16},
		{"s390x", "_Decimal128", 24},		  {"ppc64le", "_Decimal32", 8},
		{"arm", "_Decimal64", 0},		  {"bpf", "_Decimal32", 0},
		{"i386", "_Float64x", 16},		  {"x86-64", "_Float64x", 32},
		{"i386", "__float128", 32},		  {"s390x", "_Float128", 24},
		{"aarch64", "_Float128", 32},		  {"aarch64", "__float128", 0},
		{"arm", "_Float128", 0},		  {"bpf", "__float128", 0},
		{"windows-x64", "_Float128", 0},	  {"ppc64", "__ibm128", 32},
		{"ppc64", "_Float128", 0},		  {"x86-64", "__ibm128", 0},
		{"x86-64", "_BitInt(7)", 2},		  {"x86-64", "unsigned _BitInt(17)", 8},
		{"x86-64", "_BitInt(65)", 24},		  {"i386", "_BitInt(65)", 16},
		{"aarch64", "_BitInt(65)", 32},		  {"x86-64", "_BitInt(200)", 40},
		{"i386", "unsigned _BitInt(200)", 32},	  {"riscv64", "_BitInt(128)", 24},
		{"riscv64", "_BitInt(129)", 0},		  {"bpf", "_BitInt(8)", 0},
		{"windows-x64", "_BitInt(33)", 16},	  {"windows-x86", "_ExtInt(33) unsigned", 16},
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		struct cairn_err err = {0};
		struct decl *d;
		char text[128];

		snprintf(text, sizeof(text), "struct s { char c; %s t; };", samples[i].type);
		if (samples[i].size) {
			assert_int_equal(size_on(samples[i].abi, text), samples[i].size);
			continue;
		}
		assert_int_equal(decl_parse(text, strlen(text), "t.h",
					    cairn_abi_find(samples[i].abi), &d, &err),
				 -EBADMSG);
		assert_non_null(strstr(err.msg, samples[i].abi));
	}
}

static void bit_ints_have_bit_fields_of_their_width(void **state)
{
	const char *text =
		"struct s { _BitInt(17) a : 17; unsigned _BitInt(40) b : 24; _BitInt(8) c; };";
	const struct cairn_types *types = parse_on("x86-64", text);
	const struct cairn_type *s = cairn_types_get(types, decl_find(decl, CAIRN_T_STRUCT, "s"));

	assert_int_equal(s->size, 8);
	assert_int_equal(s->members[1].bit_off, 17);
	/* Which bits of its bytes are its value no one says, unless all of them are. */
	assert_int_equal(cairn_types_get(types, s->members[0].type)->encoding, CAIRN_ENC_OPAQUE);
	assert_int_equal(cairn_types_get(types, s->members[2].type)->encoding, CAIRN_ENC_SIGNED);
	assert_string_equal(cairn_types_get(types, s->members[1].type)->name,
			    "unsigned _BitInt(40)");
	assert_size("struct s { char a[sizeof(3wb) + sizeof(70000uwb)]; };", 5);
	assert_refused("struct s { _BitInt(17) a : 18; };", -EBADMSG,
		       "a bit-field of 18 bits in a type of 17");
	assert_refused("_BitInt(1) x;", -EBADMSG,
		       "a _BitInt of 1 bits; on i386 it may have 2 to 8388608");
	assert_refused("_BitInt(8388609) x;", -EBADMSG, "8388609 bits");
	assert_refused("long _BitInt(9) x;", -EBADMSG, "these words make no type");
	assert_refused("_BitInt(9) _BitInt(9) x;", -EBADMSG, "these words make no type");
	assert_refused("struct s { _Complex int x : 3; };", -EBADMSG,
		       "a bit-field must have an integer type");
	assert_refused("_Complex _Bool x;", -EBADMSG, "no _Complex of this type");
	assert_refused("_Complex _Decimal32 x;", -EBADMSG, "no _Complex of this type");
	assert_refused("_Complex void x;", -EBADMSG, "these words make no type");
}

static void strings_have_the_size_of_their_units(void **state)
{
	assert_size("struct s { char a[sizeof(\"\\n\")]; };", 2);
	assert_size("struct s { char a[sizeof(\"a\\x41\\101\\\\\" \"\\\"b\")]; };", 7);
	assert_size("struct s { char a[sizeof(L\"ab\")]; };", 12);
	assert_int_equal(size_on("windows-x64", "struct s { char a[sizeof(L\"ab\")]; };"), 6);
	assert_size("struct s { char a[sizeof(\"a\" u\"b\")]; };", 6);
	/* One character of two and of four bytes in UTF-8, of one and two units in UTF-16. */
	assert_size("struct s { char a[sizeof(u8\"\\u00e9\")]; };", 3);
	assert_size("struct s { char a[sizeof(\"\xc3\xa9\")]; };", 3);
	assert_size("struct s { char a[sizeof(u\"\xc3\xa9\")]; };", 4);
	assert_size("struct s { char a[sizeof(u\"\\U0001f600\")]; };", 6);
	assert_size("struct s { char a[sizeof(U\"\xf0\x9f\x98\x80\")]; };", 8);
	assert_size("struct s { char a[L'\\u00e9' == 0xe9 && L'\xc3\xa9' == 0xe9 && sizeof(u'a') "
		    "== 2]; };",
		    1);
}

/*
 * Clang's answers; GCC's are the same where it knows the attribute, but for the alignment of
 * unions.
 */
static void ms_struct_is_neither_microsoft_s_nor_system_v_s(void **state)
{
	static const struct {
		const char *members;
		unsigned int size, align;
	} samples[] = {
		{"long long a : 31; int b; unsigned long : 0;", 16, 8},
		{"int a : 2 __attribute__((packed));", 4, 4},
		{"char a; long long b[2];", 24, 8},
		{"char a; _Complex double b;", 20, 4},
		{"char a; int b : 4; char z;", 12, 4},
		{"char a; int b : 4; short : 0; char z;", 12, 4},
	};

	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
		char text[128];

		snprintf(text, sizeof(text), "struct s { %s } __attribute__((ms_struct));",
			 samples[i].members);
		const struct cairn_types *types = parse_on("i386", text);
		const struct cairn_type *s =
			cairn_types_get(types, decl_find(decl, CAIRN_T_STRUCT, "s"));

		assert_int_equal(s->size, samples[i].size);
		assert_int_equal(s->abi_align, samples[i].align);
	}
	assert_int_equal(size_on("i386", "#pragma pack(1)\nstruct s { short c : 14 "
					 "__attribute__((aligned(4))); char d; } "
					 "__attribute__((ms_struct));"),
			 3);
	assert_int_equal(size_on("arm", "#pragma pack(1)\nstruct s { char a; _Alignas(32) int d; } "
					"__attribute__((ms_struct));"),
			 5);
	assert_refused("struct s { _BitInt(65) a : 3; } __attribute__((ms_struct));", -EBADMSG,
		       "aligned to none");
}

static void alignments_of_typedefs_are_obeyed_as_the_compilers_do(void **state)
{
	const char *low =
		"typedef long long low __attribute__((aligned(2))); struct s { char c; low x; };";

	assert_size(low, 10);
	/* There a typedef can raise only; an array of it is another matter, for Clang. */
	assert_int_equal(size_on("windows-x64", low), 16);
	assert_int_equal(size_on("windows-x64",
				 "typedef long long low __attribute__((aligned(2))); struct "
				 "s { char c; low x[1]; };"),
			 10);
	assert_refused("typedef short high __attribute__((aligned(8))); high a[3];", -EBADMSG,
		       "an array of elements of 2 bytes that are aligned to 8");
	assert_refused(
		"typedef struct { char c[12]; } t __attribute__((aligned(8))); int f(t x[]);",
		-EBADMSG, "12 bytes that are");
	assert_size("typedef struct { char c[16]; } t __attribute__((aligned(8))); struct s { t "
		    "x[2]; };",
		    32);
}

/* Sizes that clang gives. */
static void arrays_are_as_long_as_their_initialisers(void **state)
{
	assert_size("static const char t[] = \"abc\"; struct s { char c[sizeof(t)]; };", 4);
	assert_size("int t[] = {1, f(2, 3), 3,}, u[] = {4}; struct s { char c[sizeof(t) / "
		    "sizeof(t[0])], d[sizeof(u)]; };",
		    7);
	assert_size("int t[] = {[2 ... 9] = 1, 5}; struct s { char c[sizeof(t)]; };", 44);
	assert_size("int t[][2] = {{1, 2}, {3}, [7] = {1}}; struct s { typeof(t) t; };", 64);
	assert_size("struct s { char c[sizeof((char[]){1, 2, 3})]; };", 3);
	/* Not counted here, and never 0. */
	assert_refused(
		"struct e { int a, b; } t[] = {1, 2, 3, 4}; struct s { char c[sizeof(t)]; };",
		-EBADMSG, "test.h:1:62: sizeof of a type whose size is not known here");
	assert_refused("struct e { int a, b; } t[] = {1, 2, 3, 4}; struct s { typeof(t) c; };",
		       -EBADMSG, "size of the member's type");
	assert_refused("char t[] = {\"abc\"}; struct s { char c[sizeof(t)]; };", -EBADMSG,
		       "not known here");
	assert_refused("extern int t[]; struct s { char c[sizeof(t)]; };", -EBADMSG,
		       "not known here");
	assert_refused(
		"struct f { int n; char t[]; }; struct s { char c[sizeof(((struct f *)0)->t)]; };",
		-EBADMSG, "not known here");
	assert_refused("int t[] = {1, 2; struct s { int a; };", -EBADMSG, "expected '}'");
	assert_refused("int t[] = {[1 ; };", -EBADMSG, "expected ']'");
	assert_size("int f(a, b) int a; char b; { return a; } int n; struct s { char "
		    "c[sizeof(n++)]; };",
		    4);
}

static void words_of_microsoft_are_known_on_windows(void **state)
{
	const char *text = "struct s { char c; unsigned __int64 a; __int8 b; int *__ptr32 p; int "
			   "(__stdcall *f)(int __unaligned *); };"
			   "__forceinline int __cdecl g(void) { return 0; }";

	assert_int_equal(size_on("windows-x64", text), 32);
	assert_int_equal(size_on("windows-x86", text), 32);
	assert_size(
		"typedef long __int64; struct s { char c; __int64 a; int (__cdecl *f)(void); };",
		24);
	assert_int_equal(size_on("windows-x64", "__declspec(align(16)) struct s { int a; } *p;"),
			 16);
	assert_int_equal(
		size_on("windows-x64",
			"struct s { char c; __declspec(align(16)) struct { int a; } in; };"),
		32);
}

static void vectors_of_arm_s_headers_are_vectors(void **state)
{
	assert_int_equal(size_on("aarch64", "typedef __attribute__((neon_vector_type(8))) signed "
					    "char v; struct s { char c; v x[2]; };"),
			 24);
	assert_int_equal(size_on("aarch64", "typedef __attribute__((__neon_polyvector_type__(16))) "
					    "unsigned char v; struct s { char c; v x; };"),
			 32);
	assert_refused("typedef float m __attribute__((matrix_type(2, 2))); struct s { m x; };",
		       -EBADMSG, "size of a matrix");
}

static void microsoft_s_anonymous_members_have_a_tag_or_a_typedef(void **state)
{
	const char *text = "typedef struct { int a; } t; struct u { short b; struct fwd; struct in "
			   "{ int c; }; t; struct u *p; };"
			   "struct s { struct u; char d; };";

	/* Elsewhere they declare nothing: u is { b, p }, s is { d }. */
	assert_int_equal(size_on("windows-x64", text), 32);
	assert_int_equal(size_on("x86-64", text), 1);
	parse_on("windows-x64", text);
	struct cairn_member m;
	assert_true(cairn_types_member(decl_types(decl), decl_find(decl, CAIRN_T_STRUCT, "s"), "a",
				       &m));
	assert_int_equal(m.bit_off, 64);
}

static void declarators_read_as_in_c(void **state)
{
	const struct cairn_types *types =
		parse_on("x86-64", "struct s { const char *const (*table[4])(int, char *); };");
	const struct cairn_type *s = cairn_types_get(types, decl_find(decl, CAIRN_T_STRUCT, "s"));
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
	assert_refused("# 7 \"other.h\"\nint y[;\n", -EBADMSG,
		       "other.h:7:7: expected an expression\n    int y[;\n          ^");
	assert_refused("struct s { struct s x; };", -EBADMSG,
		       "test.h:1:21: struct s is not complete here: its size is not known");
	assert_refused("struct s { void x; };", -EBADMSG, "size of the member's type is not known");
	assert_refused("union u { int x; union u v[2]; };", -EBADMSG,
		       "elements whose size is not known");
	assert_refused("struct s { int x; struct { int y; } z; long x; };", -EBADMSG,
		       "test.h:1:45: a second member of this name");
	assert_refused("struct s { int a[]; int b; };", -EBADMSG,
		       "test.h:1:16: a flexible array that is not the last member");
	assert_refused("struct s { int x; }; struct s { int y; };", -EBADMSG,
		       "defined a second time");
	assert_refused("struct s { __int128 x; };", -EBADMSG, "i386 has no __int128");
	assert_refused("struct s { int x : 40; };", -EBADMSG,
		       "a bit-field of 40 bits in a type of 32");
	assert_refused("struct s { int x __attribute__((aligned(3))); };", -EBADMSG, "power of 2");
	assert_refused("int x[1 / 0];", -EBADMSG, "division by 0");
	assert_refused("char x[-1];", -EBADMSG, "cannot have -1 elements");
	assert_refused("#include <stdio.h>\n", -EBADMSG, "preprocessor");
	assert_refused("_Static_assert(sizeof(long) == 8, \"LP64\");", -EBADMSG,
		       "does not hold on i386");
	assert_refused("int f(void) { {", -EBADMSG, "not closed");
	assert_refused("/* endless", -EBADMSG, "without an end");
	assert_refused("struct { char a[1UL << 31]; char b[1ULL << 40]; char c[1ULL << 40]; } x;",
		       -ERANGE, "2^40");
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
	static const char *const deep[] = {
		"struct { ",   "int (",  "typedef char x[sizeof(", "int x = (int)(", "enum { A = (",
		"int f(int (", "typeof("};
	for (size_t i = 0; i < sizeof(deep) / sizeof(deep[0]); i++) {
		char *text = repeat(deep[i], 300000, ";");
		struct decl *none;
		struct cairn_err err = {0};

		assert_true(decl_parse(text, strlen(text), "deep.h", cairn_abi_find("x86-64"),
				       &none, &err) < 0);
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
	struct decl *none;
	struct cairn_err err = {0};

	for (int i = 1; i < 100000; i++)
		at += sprintf(at, "typedef t%d t%d;\n", i - 1, i);
	assert_int_equal(decl_parse(text, (size_t)(at - text), "chain.h", cairn_abi_find("x86-64"),
				    &none, &err),
			 -ERANGE);
	assert_non_null(strstr(err.msg, "chain.h:1001:"));
	free(text);
}

static const char everything[] =
	"# 1 \"all.h\" 3\n"
	"typedef unsigned char u8; typedef u8 v8 __attribute__((vector_size(8)));\n"
	"enum e { A = -1, B = 'x', C = sizeof(u8) << 2 };\n"
	"#pragma pack(push, label, 2)\n"
	"struct s { u8 a : 3, : 0; enum e e; union { int i; float _Complex f; }; int (*f)(struct s "
	"*, ...); v8 v[2]; }\n"
	"\t__attribute__((aligned(8), unknown(1, (2)))) *p = 0, *q;\n"
	"#pragma pack(pop, label)\n"
	"static inline int f(int a[static 3]) { return a[0] ? '}' : \"{\"[1]; }\n"
	"_Static_assert(__builtin_offsetof(struct s, e) == 2 || 1, \"\");\n"
	"__typeof__(((struct s *)0)->v[1]) w; extern char q[];\n"
	"typedef float _Float32; unsigned _BitInt(17) bi; _Complex int ci; typedef int tf "
	"__attribute__((mode(DI)));\n"
	"char text[sizeof(\"\\u00e9\\n\" L\"\\x1\")]; double h[sizeof(1.5f16 + 3uwb)];\n"
	"struct m { long long a : 3; int : 0; } __attribute__((ms_struct));\n"
	"char l[] = \"x\", l2[] = {[3 ... 4] = 1, (2, 3)}; int old(a) int a; { } struct n { char "
	"c[sizeof(l2) + sizeof((int[]){1})]; };\n"
	"__declspec(align(8)) struct o { int (__cdecl *f)(void); };\n";

static void text_cut_anywhere_is_harmless(void **state)
{
	assert_size(everything, 40);
	for (size_t n = 0; n < sizeof(everything) - 1; n++) {
		char *copy = malloc(n ? n : 1);
		struct cairn_err err = {0};
		struct decl *d = NULL;

		memcpy(copy, everything, n);
		int rc = decl_parse(copy, n, "cut.h", cairn_abi_find("x86-64"), &d, &err);
		assert_true(rc == 0 || (err.code == rc && err.msg[0]));
		if (!rc)
			decl_free(d);
		free(copy);
	}
}

static void text_with_flipped_bits_is_harmless(void **state)
{
	for (size_t i = 0; i < 8 * (sizeof(everything) - 1); i++) {
		char copy[sizeof(everything)];
		struct decl *d = NULL;

		memcpy(copy, everything, sizeof(copy));
		copy[i / 8] = (char)(copy[i / 8] ^ 1 << i % 8);
		if (!decl_parse(copy, sizeof(copy) - 1, "bits.h", cairn_abi_find("arm"), &d, NULL))
			decl_free(d);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	unsigned int n_refused = 0;

	for (unsigned int n = 1;; n++) {
		struct cairn_err err = {0};
		struct decl *d = NULL;

		alloc_fail_at(n);
		int rc = decl_parse(everything, sizeof(everything) - 1, "mem.h",
				    cairn_abi_find("x86-64"), &d, &err);
		bool failed = alloc_fail_end();
		if (!rc)
			decl_free(d);
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
	static const char no[] = "# 1 \"a\"\n#pragma pack(1)\nint x;\n",
			  yes[] = "int x;\n #  include <a.h>\n";

	assert_false(decl_needs_preprocessor(no, strlen(no)));
	assert_true(decl_needs_preprocessor(yes, strlen(yes)));
	assert_true(decl_needs_preprocessor("#define A 1", 11));
	assert_false(decl_needs_preprocessor("", 0));
}

#define CLAIM(f) cmocka_unit_test_teardown(f, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(constants_are_computed),
		CLAIM(attributes_are_obeyed_wherever_they_stand),
		CLAIM(abis_differ),
		CLAIM(keywords_of_one_compiler_are_names_for_another),
		CLAIM(types_beyond_the_standard_s_are_as_the_compilers_have_them),
		CLAIM(bit_ints_have_bit_fields_of_their_width),
		CLAIM(strings_have_the_size_of_their_units),
		CLAIM(ms_struct_is_neither_microsoft_s_nor_system_v_s),
		CLAIM(alignments_of_typedefs_are_obeyed_as_the_compilers_do),
		CLAIM(arrays_are_as_long_as_their_initialisers),
		CLAIM(words_of_microsoft_are_known_on_windows),
		CLAIM(vectors_of_arm_s_headers_are_vectors),
		CLAIM(microsoft_s_anonymous_members_have_a_tag_or_a_typedef),
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
