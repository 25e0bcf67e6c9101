/* SPDX-License-Identifier: BSD-2-Clause */
/* src/bytes/consumer: structs of Java, Rust, Go and Python, as those languages lay them out. */
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
#include "consumer/consumer.h"

static struct consumer *f;

static int teardown(void **state)
{
	consumer_free(f);
	f = NULL;
	return 0;
}

static const struct cairn_types *parse_on(enum cairn_lang lang, const char *abi, const char *text)
{
	struct cairn_err err = {0};

	consumer_free(f);
	f = NULL;
	if (consumer_parse(text, strlen(text), "test", lang, cairn_abi_find(abi), &f, &err) < 0)
		fail_msg("%s", err.msg);
	return consumer_types(f);
}

/*
 * "size: name@offset name@offset" of the struct or union of that name; bit-fields
 * "name@offset:bit+width".
 */
static void assert_layout(enum cairn_lang lang, const char *abi, const char *text, const char *name,
			  const char *wanted)
{
	const struct cairn_types *types = parse_on(lang, abi, text);
	char found[512] = "none";

	for (uint32_t id = 1; id < cairn_types_n_types(types); id++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		size_t n;

		if ((t->kind != CAIRN_T_STRUCT && t->kind != CAIRN_T_UNION) || !t->name ||
		    strcmp(t->name, name))
			continue;
		n = (size_t)snprintf(found, sizeof(found), "%u:", (unsigned int)t->size);
		for (uint32_t i = 0; i < t->n_members; i++) {
			const struct cairn_member *m = &t->members[i];

			n += (size_t)snprintf(found + n, sizeof(found) - n, " %s@%u",
					      m->name ? m->name : "-",
					      (unsigned int)(m->bit_off / 8));
			if (m->bit_size)
				n += (size_t)snprintf(found + n, sizeof(found) - n, ":%u+%u",
						      (unsigned int)(m->bit_off % 8), m->bit_size);
		}
	}
	if (consumer_problem(f, 0) && !strcmp(found, "none"))
		fail_msg("%s", consumer_problem(f, 0)->text);
	assert_string_equal(found, wanted);
}

#define java(text, name, wanted)   assert_layout(CAIRN_LANG_JAVA, "x86-64", text, name, wanted)
#define rust(text, name, wanted)   assert_layout(CAIRN_LANG_RUST, "x86-64", text, name, wanted)
#define python(text, name, wanted) assert_layout(CAIRN_LANG_PYTHON, "x86-64", text, name, wanted)
#define go_on(abi, text, name, wanted)                                                             \
	assert_layout(CAIRN_LANG_GO, abi, "package p\n" text, name, wanted)

static void assert_problem(enum cairn_lang lang, const char *text, const char *type,
			   const char *story)
{
	parse_on(lang, "x86-64", text);
	const struct cairn_decl_problem *p = consumer_problem(f, 0);

	assert_non_null(p);
	assert_string_equal(p->type, type);
	if (!strstr(p->text, story))
		fail_msg("\"%s\" is not in: %s", story, p->text);
}

static void assert_refused(enum cairn_lang lang, const char *text, int code, const char *story)
{
	struct cairn_err err = {0};
	struct consumer *none = NULL;
	int rc = consumer_parse(text, strlen(text), "test", lang, cairn_abi_find("x86-64"), &none,
				&err);

	consumer_free(none);
	assert_int_equal(rc, code);
	if (!strstr(err.msg, story))
		fail_msg("\"%s\" is not in: %s", story, err.msg);
}

/* ---- Java ---- */

static void java_records_classes_and_unions(void **state)
{
	java("@Type record E(@Unsigned int pid, @Size(256) String f, @Size(16) String c) {}", "E",
	     "276: pid@0 f@4 c@260");
	java("class A { @Type static class E extends Struct { public @Unsigned int a; long b, c; "
	     "static int N = 3; E() {} "
	     "int f(int x) { return x; } byte d; } }",
	     "E", "25: a@0 b@8 c@16 d@24");
	java("@Type static class U extends Union { int a; long b; }", "U", "8: a@0 b@0");
	java("@a.b.Type(name = \"e\", noCCodeGeneration = true) record E(byte a) {}", "e",
	     "1: a@0");
}

static void java_arrays_take_their_sizes_outermost_first(void **state)
{
	java("@Type record E(@Size(2) @Size(3) int[][] a, @Size(4) @Size(5) String[] b, int "
	     "@Size(6)[] @Size(7)[] c, byte d) {}",
	     "E", "213: a@0 b@24 c@44 d@212");
	java("class A { static final int N = 3 * (1 + 1) << 1; @Type record E(@Size(N) byte[] a, "
	     "byte b) {} }",
	     "E", "13: a@0 b@12");
	assert_problem(CAIRN_LANG_JAVA, "@Type record E(int[] a) {}", "E", "no @Size");
}

/* Each of these is where hello-ebpf and C part. */
static void java_is_laid_out_as_hello_ebpf_does(void **state)
{
	java("@Type record E(byte a, long b, int c, long d, boolean e) {}", "E",
	     "33: a@0 b@8 c@16 d@24 e@32");
	java("@Type record I(int a, byte b) {} @Type record E(I i, byte c) {}", "E", "6: i@0 c@5");
	java("@Type record I(int a, byte b) {} @Type record E(@Size(2) I[] i, byte c) {}", "E",
	     "17: i@0 c@16");
	java("@Type record E(@Offset(4) int a, int b) {}", "E", "8: a@4 b@4");
	java("@Type enum K implements TypedEnum<K, Short> { A } @Type record E(K k, byte b) {}",
	     "E", "3: k@0 b@2");
	java("@Type record E(@InlineUnion(1) int a, @InlineUnion(1) long b, @InlineUnion(2) int c) "
	     "{}",
	     "E", "12: a@0 b@0 c@8");
	assert_problem(CAIRN_LANG_JAVA, "@Type record E(long a, @Offset(4) int b) {}", "E",
		       "@Offset(4), but");
}

static void java_types_without_the_annotation_are_no_structs(void **state)
{
	parse_on(CAIRN_LANG_JAVA, "x86-64",
		 "record E(int a) {} class F { int b; } @interface G { int c(); } enum H { A }");
	assert_int_equal(cairn_types_n_types(consumer_types(f)), 1);
	assert_null(consumer_problem(f, 0));
}

/* ---- Rust ---- */

static void rust_representations(void **state)
{
	rust("#[repr(C)] struct S { a: u8, b: u32 }", "S", "8: a@0 b@4");
	rust("#[repr(C, packed)] struct S { a: u8, b: u32 }", "S", "5: a@0 b@1");
	rust("#[repr(C, packed(2))] struct S { a: u8, b: u32 }", "S", "6: a@0 b@2");
	rust("#[repr(C)]\n#[repr(align(16))]\nstruct S { a: u8 }", "S", "16: a@0");
	rust("#[repr(C)] union U { a: u8, b: [u16; 3] }", "U", "6: a@0 b@0");
	rust("#[repr(C)] pub struct S(pub u8, u64);", "S", "16: 0@0 1@8");
	assert_problem(CAIRN_LANG_RUST, "struct S { a: u8 }", "S", "without #[repr(C)]");
	assert_problem(CAIRN_LANG_RUST, "enum E { A }", "E", "the size of an enum");
	assert_problem(CAIRN_LANG_RUST, "#[repr(C)] struct S<T> { a: T }", "S", "generic");
	assert_problem(CAIRN_LANG_RUST, "#[repr(C)] struct S { a: Vec<u8> }", "S", "not fixed");
	assert_problem(CAIRN_LANG_RUST, "#[repr(C)] struct S { a: Missing }", "S",
		       "Missing is not known");
}

static void rust_types(void **state)
{
	rust("const N: usize = 1_0; type A = u16; #[repr(u8)] enum E { X = 3, Y } #[repr(C)] "
	     "struct S { a: [A; N - 8], e: E, "
	     "p: *const [u8; 4], o: Option<&'static u8>, f: Option<extern \"C\" fn(u8) -> u32>, m: "
	     "core::mem::MaybeUninit<u8>, "
	     "t: std::sync::atomic::AtomicU64, z: PhantomData<u8>, s: &'a str }",
	     "S", "64: a@0 e@4 p@8 o@16 f@24 m@32 t@40 z@48 s@48");
	assert_layout(CAIRN_LANG_RUST, "i386", "#[repr(C)] struct S { a: u8, b: u64, c: usize }",
		      "S", "16: a@0 b@4 c@12");
}

/* ---- Go ---- */

static void go_alignment_is_that_of_a_word(void **state)
{
	const char *text = "package p\ntype S struct {\n\tA uint8\n\tB int64\n\tC float64\n\tD "
			   "complex128\n\tE string\n}\n";

	assert_layout(CAIRN_LANG_GO, "x86-64", text, "S", "56: A@0 B@8 C@16 D@24 E@40");
	assert_layout(CAIRN_LANG_GO, "i386", text, "S", "44: A@0 B@4 C@12 D@20 E@36");
	/* Where C aligns to 8. */
	assert_layout(CAIRN_LANG_GO, "arm", text, "S", "44: A@0 B@4 C@12 D@20 E@36");
}

static void go_fields(void **state)
{
	go_on("x86-64",
	      "type T struct{ X uint16 }\ntype S struct {\n\t_ structs.HostLayout\n\tA, B byte "
	      "`x:\"y\"` // said\n\tT\n\t*U\n\t_ "
	      "[4]byte\n}\n",
	      "S", "24: _@0 A@0 B@1 -@2 U@8 _@16");
	go_on("x86-64", "type S struct { A uint32; B struct{} }", "S", "8: A@0 B@4");
	go_on("x86-64",
	      "const (\n\tN = 2\n\tM = N << 1 + 1\n)\ntype S struct { A [M]uint8; B [N][2]uint16 }",
	      "S", "14: A@0 B@6");
	go_on("x86-64",
	      "type S struct { F func(a int) (int, error)\nM map[string][]int\nI interface{ X() "
	      "}\nC chan int }",
	      "S", "40: F@0 M@8 I@16 C@32");
	assert_problem(CAIRN_LANG_GO, "package p\ntype S struct { A net.IP }", "S",
		       "not fixed, or not known");
	assert_problem(CAIRN_LANG_GO, "package p\ntype S struct { A T }\ntype T struct { B S }",
		       "T", "contains itself");
}

/* ---- Python ---- */

static void python_structures(void **state)
{
	python("class S(Structure):\n  _fields_ = [('a', c_char), ('b', c_int)]\n", "S",
	       "8: a@0 b@4");
	python("class S(ctypes.Structure):\n  _pack_ = 1\n  _fields_ = [('a', c_char), ('b', "
	       "c_int)]\n",
	       "S", "5: a@0 b@1");
	python("class S(Union):\n  _fields_ = [(\"a\", c_char * 3), (\"b\", c_int)]\n", "S",
	       "4: a@0 b@0");
	python("N = 2\npid_t = c_int\nclass S(Structure):\n  pass\nS._fields_ = [('a', pid_t * N * "
	       "3), ('b', POINTER(S))]\n",
	       "S", "32: a@0 b@24");
	python("class U(Union):\n  _fields_ = [('x', c_int), ('y', c_char)]\nclass S(Structure):\n "
	       " _anonymous_ = ('u',)\n  _fields_ = "
	       "[('u', U), ('z', c_short)]\n",
	       "S", "8: -@0 z@4");
	/* A field may have no name at all. */
	python("class U(Union):\n  _fields_ = [('x', c_int)]\nclass S(Structure):\n  _anonymous_ = "
	       "('u',)\n  _fields_ = "
	       "[('', c_char), ('u', U), ('z', c_short)]\n",
	       "S", "12: -@0 -@4 z@8");
	assert_problem(CAIRN_LANG_PYTHON, "class S(Structure):\n  _fields_ = make()\n", "S",
		       "computed");
}

static void python_bit_fields_before_3_14(void **state)
{
	const char *text = "class S(Structure):\n  _fields_ = [('a', c_ubyte, 4), ('b', c_int, 7), "
			   "('c', c_int, 30)]\n";

	python(text, "S", "8: a@0:0+4 b@0:4+7 c@4:0+30");
	python("class S(Structure):\n  _fields_ = [('a', c_short, 4), ('b', c_char), ('c', c_int, "
	       "8)]\n",
	       "S", "8: a@0:0+4 b@2 c@4:0+8");
	assert_non_null(consumer_problem(f, 0));
	assert_true(consumer_problem(f, 0)->laid_out);
}

static void python_formats(void **state)
{
	python("F = struct.Struct('<IQ16s')\n", "F", "28: -@0 -@4 -@12");
	python("F = struct.Struct('@cI2xH')\n", "F", "12: -@0 -@4 _pad@8 -@10");
	python("EVENT_FMT = '=lq'\n", "EVENT_FMT", "12: -@0 -@4");
	python("F = struct.Struct('cI0Q')\n", "F", "8: -@0 -@4");
	assert_problem(CAIRN_LANG_PYTHON, "F = struct.Struct('<n')\n", "F", "byte order");
	assert_problem(CAIRN_LANG_PYTHON, "F = struct.Struct('4000000000I')\n", "F", "more than");
}

static void python_byte_order(void **state)
{
	const struct cairn_types *types =
		parse_on(CAIRN_LANG_PYTHON, "x86-64",
			 "class S(BigEndianStructure):\n  _fields_ = [('a', c_int)]\n");
	unsigned int swapped = 0;

	for (uint32_t id = 1; id < cairn_types_n_types(types); id++)
		swapped += cairn_types_get(types, id)->byte_swapped;
	assert_int_equal(swapped, 1);
}

/* ---- bad input ---- */

static void errors_have_line_column_and_caret(void **state)
{
	assert_refused(
		CAIRN_LANG_GO, "package p\ntype S struct {\n\tA uint8 uint8\n}\n", -EBADMSG,
		"test:3:10: expected the end of a field\n    \tA uint8 uint8\n    \t        ^");
	assert_refused(CAIRN_LANG_RUST, "#[repr(C)] struct S { a u8 }", -EBADMSG, "expected ':'");
	assert_refused(CAIRN_LANG_RUST, "#[repr(>)] struct S { a: u8 }", -EBADMSG,
		       "expected a name");
	assert_refused(CAIRN_LANG_JAVA, "@Type record E(int a", -EBADMSG, "the text ends");
	assert_refused(CAIRN_LANG_JAVA, "class A { String s = \"x", -EBADMSG,
		       "a string without an end");
	assert_refused(CAIRN_LANG_RUST, "/* /* */", -EBADMSG, "a comment without an end");
	assert_refused(CAIRN_LANG_PYTHON, "class S(Structure):\n  _fields_ = [('a')]\n", -EBADMSG,
		       "expected ','");
}

/* What nests a million deep is refused and does not overflow the stack. */
static void nesting_has_an_end(void **state)
{
	static const struct {
		enum cairn_lang lang;
		const char *head, *unit;
	} cases[] = {
		{CAIRN_LANG_RUST, "#[repr(C)] struct S { a: ", "["},
		{CAIRN_LANG_RUST, "#[repr(C)] struct S { a: ", "Option<"},
		{CAIRN_LANG_RUST, "#[repr(C)] struct S { a: ", "&"},
		{CAIRN_LANG_GO, "package p\ntype S struct { a ", "*"},
		{CAIRN_LANG_GO, "package p\ntype S ", "struct { A "},
		{CAIRN_LANG_GO, "package p\nconst N = 1\ntype S struct { a ", "[N]"},
		{CAIRN_LANG_PYTHON, "class S(Structure):\n _fields_ = [('a', ", "("},
		{CAIRN_LANG_JAVA, "", "@Type class A { "},
	};
	enum { N = 1000000 };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t head = strlen(cases[i].head), unit = strlen(cases[i].unit);
		char *text = malloc(head + N * unit + 1);
		struct consumer *none = NULL;

		assert_non_null(text);
		memcpy(text, cases[i].head, head);
		for (size_t k = 0; k < N; k++)
			memcpy(text + head + k * unit, cases[i].unit, unit);
		int rc = consumer_parse(text, head + N * unit, "deep", cases[i].lang,
					cairn_abi_find("x86-64"), &none, NULL);
		consumer_free(none);
		free(text);
		assert_int_equal(rc, -ERANGE);
	}
	/* A chain of constants or types, each of which needs the next. */
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	fputs("package p\n", out);
	for (int i = 0; i < 100000; i++)
		fprintf(out, "type S%d struct { A S%d; B [C%d]byte }\nconst C%d = C%d\n", i, i + 1,
			i, i, i + 1);
	fclose(out);
	parse_on(CAIRN_LANG_GO, "x86-64", text);
	assert_non_null(consumer_problem(f, 0));
	free(text);
}

/* clang-format off */
static const struct sample {
	enum cairn_lang lang;
	const char *text;
} samples[] = {
	{CAIRN_LANG_JAVA, "class A { static final int N = 2; @Type(name = \"e\") record E(@Size(N) @Size(3) String[] s, K k) {} @Type enum K "
			  "implements Enum<K> { X, @EnumMember(value = 2) Y } @Type class C extends Union { @Unsigned long a; int f() {} } }"},
	{CAIRN_LANG_RUST, "const N: usize = 2; #[repr(C, align(8))] struct S<'a> { a: [u8; N], b: Option<&'a T>, c: E } #[repr(u8)] enum E { A "
			  "= 1 } type T = (u8, u8); #[repr(C)] struct B { a: T }"},
	{CAIRN_LANG_GO, "package p\nconst N = 2\ntype S struct {\n\tA, B [N]uint8 `x`\n\tC struct{ D string }\n\tT\n}\ntype T = uint16\ntype B struct{ X "
			"y.Z }\n"},
	{CAIRN_LANG_PYTHON, "import ctypes\nN = 2\nclass S(ctypes.BigEndianStructure):\n  _pack_ = 1\n  _fields_ = [('a', c_int * N), ('b', "
			    "c_long)]\nF = struct.Struct('<2I3s')\nclass B(Structure):\n  _fields_ = [('x', c_int, 3), ('y', nothing)]\n"},
};
/* clang-format on */

static void any_prefix_is_read_or_refused(void **state)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (size_t n = 0; n <= strlen(samples[i].text); n++) {
			/* The bytes after it are not there: a copy of exactly that size. */
			char *text = malloc(n ? n : 1);
			struct cairn_err err = {0};

			assert_non_null(text);
			memcpy(text, samples[i].text, n);
			int rc = consumer_parse(text, n, "cut", samples[i].lang,
						cairn_abi_find("x86-64"), &f, &err);
			free(text);
			assert_true(rc == 0 || rc == -EBADMSG);
			assert_true(rc == 0 || err.msg[0]);
			consumer_free(f);
			f = NULL;
		}
}

static void failing_allocations_are_told(void **state)
{
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		for (unsigned int n = 1;; n++) {
			struct cairn_err err = {0};

			alloc_fail_at(n);
			int rc =
				consumer_parse(samples[i].text, strlen(samples[i].text), "test",
					       samples[i].lang, cairn_abi_find("x86-64"), &f, &err);
			if (!alloc_fail_end()) {
				assert_int_equal(rc, 0);
				teardown(NULL);
				break;
			}
			assert_int_equal(rc, -ENOMEM);
		}
}

#define CLAIM(name) cmocka_unit_test_teardown(name, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CLAIM(java_records_classes_and_unions),
		CLAIM(java_arrays_take_their_sizes_outermost_first),
		CLAIM(java_is_laid_out_as_hello_ebpf_does),
		CLAIM(java_types_without_the_annotation_are_no_structs),
		CLAIM(rust_representations),
		CLAIM(rust_types),
		CLAIM(go_alignment_is_that_of_a_word),
		CLAIM(go_fields),
		CLAIM(python_structures),
		CLAIM(python_bit_fields_before_3_14),
		CLAIM(python_formats),
		CLAIM(python_byte_order),
		CLAIM(errors_have_line_column_and_caret),
		CLAIM(nesting_has_an_end),
		CLAIM(any_prefix_is_read_or_refused),
		CLAIM(failing_allocations_are_told),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
