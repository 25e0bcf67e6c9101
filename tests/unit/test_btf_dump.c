/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF as records and as C. What the C means is asked of compilers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"
#include "space.h"

#define PLAIN                                                                                      \
	(struct cairn_btf_build_opts)                                                              \
	{                                                                                          \
		0                                                                                  \
	}
#define INT_BYTES 4

/* ---- asking ---- */

static int try_dump(const struct cairn_btf *btf, enum cairn_btf_format format, const uint32_t *ids,
		    size_t n_ids, char **text, struct cairn_err *err)
{
	size_t size;
	FILE *out = open_memstream(text, &size);

	assert_non_null(out);
	int r = cairn_btf_dump(btf, format, ids, n_ids, 0, out, err);
	fclose(out);
	return r;
}

static char *dump(const struct cairn_btf *btf, enum cairn_btf_format format)
{
	struct cairn_err err = {0};
	char *text;

	if (try_dump(btf, format, NULL, 0, &text, &err) < 0)
		fail_msg("%s", err.msg);
	return text;
}

static void assert_has(const char *text, const char *part)
{
	if (!strstr(text, part))
		fail_msg("no \"%s\" in\n%.4000s", part, text);
}

static void assert_has_not(const char *text, const char *part)
{
	if (strstr(text, part))
		fail_msg("\"%s\" in\n%.4000s", part, text);
}

/* @claims: C that must compile after the declarations; the builder is freed. */
static void assert_compiles(struct cairn_btf_builder *b, const char *claims, const char *part)
{
	static const char *const compilers[] = {"gcc -std=gnu11", "clang -std=gnu11",
						"gcc -std=gnu2x"};
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_C);
	char *file = NULL;

	if (part)
		assert_has(text, part);
	assert_true(asprintf(&file,
			     "%s\n#define AT(t, m, at) _Static_assert(__builtin_offsetof(t, m) == "
			     "(at), #m);\n"
			     "#define SIZE(t, n) _Static_assert(sizeof(t) == (n), #t);\n%s\n",
			     text, claims) > 0);
	workspace_write(&space, "claims.c", file);
	for (size_t i = 0; i < ARRAY_SIZE(compilers); i++) {
		if (!workspace_try(&space, "command -v %s >/dev/null", compilers[i]))
			continue;
		if (!workspace_try(&space, "%s -Werror -fsyntax-only claims.c 2>errors",
				   compilers[i])) {
			workspace_try(&space, "cat errors >&2");
			fail_msg("%s refuses\n%.8000s", compilers[i], file);
		}
	}
	free(file);
	free(text);
	blob_free(&blob);
}

/* ---- records ---- */

static uint32_t add_loc(struct cairn_btf_builder *b, struct cairn_btf_loc_param p)
{
	return ADD(loc_param, b, &p);
}

enum {
	REG = CAIRN_BTF_LOC_REG,
	DEREF = CAIRN_BTF_LOC_DEREF,
	OFFSET = CAIRN_BTF_LOC_OFFSET,
	CONST = CAIRN_BTF_LOC_CONST,
	ADDR = CAIRN_BTF_LOC_ADDR,
	SIGNED = CAIRN_BTF_LOC_SIGNED
};

/* The shapes of upstream's tests: docs/formats/btf-loc.md. */
static void records_of_n_look_as_upstreams_tests_expect(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint32_t i = add_int(b);
	uint32_t proto = ADD(func_proto, b, i, NULL, 0);
	uint32_t func = ADD(func, b, str(b, "foo"), CAIRN_BTF_STATIC, proto);
	/* clang-format off */
	uint32_t slots[] = {
		add_loc(b, (struct cairn_btf_loc_param){.flags = REG, .size = 8, .n_regs = 1, .reg = {1}}),
		add_loc(b, (struct cairn_btf_loc_param){
				   .flags = REG | DEREF | OFFSET, .size = 8, .n_regs = 1, .reg = {2}, .offset = 16}),
		0};
	/* clang-format on */
	add_loc(b, (struct cairn_btf_loc_param){.flags = REG | OFFSET,
						.size = 8,
						.n_regs = 1,
						.reg = {CAIRN_BTF_LOC_FBREG},
						.offset = -16});
	add_loc(b, (struct cairn_btf_loc_param){.flags = REG | DEREF | OFFSET,
						.size = 8,
						.n_regs = 1,
						.reg = {CAIRN_BTF_LOC_FBREG},
						.offset = -32});
	add_loc(b, (struct cairn_btf_loc_param){
			   .flags = CONST | ADDR, .size = 8, .value = 0x123456789abcdef0});
	add_loc(b, (struct cairn_btf_loc_param){
			   .flags = CONST, .size = 8, .value = (int64_t)0xdeadbeeffeedface});
	uint32_t loc_proto = ADD(loc_proto, b, slots, 3);
	struct cairn_btf_loc locs[] = {{.func = func, .loc_proto = loc_proto, .offset = 64}};
	ADD(locsec, b, str(b, "inline.text"), locs, 1);
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_RAW);

	assert_string_equal(
		strstr(text, "[4]"),
		"[4] LOC_PARAM '(anon)' size=8 flags=0x8 vlen=1 values='reg1'\n"
		"[5] LOC_PARAM '(anon)' size=8 flags=0x38 vlen=2 values='*(reg2 + 0x10)'\n"
		"[6] LOC_PARAM '(anon)' size=8 flags=0x29 vlen=2 values='fbreg - 0x10'\n"
		"[7] LOC_PARAM '(anon)' size=8 flags=0x39 vlen=2 values='*(fbreg - 0x20)'\n"
		"[8] LOC_PARAM '(anon)' size=8 flags=0x6 vlen=2 values='0x123456789abcdef0 "
		"(addr)'\n"
		"[9] LOC_PARAM '(anon)' size=8 flags=0x2 vlen=2 values='0xdeadbeeffeedface'\n"
		"[10] LOC_PROTO '(anon)' vlen=3\n"
		"\ttype_id=4 value='reg1'\n"
		"\ttype_id=5 value='*(reg2 + 0x10)'\n"
		"\ttype_id=0 value='(unavailable)'\n"
		"[11] LOCSEC 'inline.text' vlen=1\n"
		"\tname='foo' func_type_id=3 loc_proto_type_id=10 offset=64\n");
	free(text);
	blob_free(&blob);
}

static void records_of_v1_look_as_in_the_rfc(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_V1});
	uint32_t i = add_int(b);
	uint32_t proto = ADD(func_proto, b, i, NULL, 0);
	uint32_t slots[] = {add_loc(b, (struct cairn_btf_loc_param){.flags = CONST | SIGNED,
								    .size = 8,
								    .value = -1}),
			    add_loc(b, (struct cairn_btf_loc_param){
					       .flags = REG, .size = 8, .n_regs = 1, .reg = {1}})};
	uint32_t loc_proto = ADD(loc_proto, b, slots, 2);
	struct cairn_btf_loc locs[] = {{.loc_proto = loc_proto,
					.offset = 128,
					.name_off = str(b, "foo"),
					.func_proto = proto}};
	ADD(locsec, b, str(b, "inline"), locs, 1);
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_RAW);

	assert_string_equal(strstr(text, "[3]"),
			    "[3] LOC_PARAM '(anon)' size=-8 value=-1\n"
			    "[4] LOC_PARAM '(anon)' size=8 reg=1 flags=0x0 offset=0\n"
			    "[5] LOC_PROTO '(anon)' vlen=2\n"
			    "\t type_id=3\n"
			    "\t type_id=4\n"
			    "[6] LOCSEC 'inline' vlen=1\n"
			    "\t 'foo' func_proto_type_id=2 loc_proto_type_id=5 offset=128\n");
	free(text);
	blob_free(&blob);
}

static void pretty_locations_have_the_machines_registers(void **state)
{
	static const struct {
		struct cairn_btf_loc_param p;
		int machine;
		const char *text;
	} cases[] = {
		{{.flags = REG, .size = 8, .n_regs = 1, .reg = {5}}, 0, "rdi"},
		{{.flags = REG, .size = 8, .n_regs = 1, .reg = {5}}, EM_AARCH64, "x5"},
		{{.flags = REG, .size = 8, .n_regs = 1, .reg = {31}}, EM_AARCH64, "sp"},
		{{.flags = REG, .size = 8, .n_regs = 1, .reg = {31}}, EM_S390, "reg31"},
		{{.flags = REG, .size = 16, .n_regs = 2, .reg = {5, 4}}, 0, "{rdi, rsi}"},
		{{.flags = REG | DEREF | OFFSET, .size = 8, .n_regs = 1, .reg = {7}, .offset = 16},
		 0,
		 "*(u64 *)(rsp + 16)"},
		{{.flags = REG | DEREF | OFFSET,
		  .size = 2,
		  .n_regs = 1,
		  .reg = {7},
		  .offset = INT64_MIN},
		 0,
		 "*(u16 *)(rsp - 9223372036854775808)"},
		{{.flags = REG | DEREF, .size = 12, .n_regs = 1, .reg = {0}},
		 0,
		 "*(u8 (*)[12])(rax)"},
		{{.flags = REG | OFFSET, .size = 8, .n_regs = 1, .reg = {3}, .offset = -8},
		 0,
		 "rbx - 8"},
		{{.flags = REG | DEREF | OFFSET,
		  .size = 4,
		  .n_regs = 1,
		  .reg = {CAIRN_BTF_LOC_FBREG},
		  .offset = -20},
		 0,
		 "*(u32 *)(frame base - 20)"},
		{{.flags = CONST, .size = 8, .value = 42}, 0, "42"},
		{{.flags = CONST, .size = 8, .value = -1}, 0, "18446744073709551615"},
		{{.flags = CONST | SIGNED, .size = 4, .value = -1}, 0, "-1"},
		{{.flags = CONST | ADDR, .size = 8, .value = 0x1230}, 0, "base + 0x1230"},
		{{.flags = SIGNED, .size = 8}, 0, "(unavailable)"},
		{{.flags = REG, .size = 8}, 0, "(unavailable)"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char text[64];

		cairn_btf_loc_text(&cases[i].p, cases[i].machine, text, sizeof(text));
		assert_string_equal(text, cases[i].text);
		/* A buffer that is too small gets the beginning. */
		cairn_btf_loc_text(&cases[i].p, cases[i].machine, text, 3);
		assert_int_equal(strlen(text), 2);
		assert_memory_equal(text, cases[i].text, 2);
	}
}

static void an_unknown_kind_is_shown_with_its_words(void **state)
{
	/* Header, one record of kind 30 with 1 + 2 * 1 words, a layout of 31 kinds, strings. */
	static const uint32_t header[] = {0x0001eb9f, 32, 0, 24, 24 + 124, 5, 24, 124};
	static const uint32_t record[] = {1, 0x80000000 | 30 << 24 | 2, 99, 0xa, 0xb, 0xc};
	uint8_t bytes[32 + 24 + 124 + 5] = {0};

	/* Bytes of the fixed part and of each element. */
	static const uint8_t sizes[31][2] = {
		[1] = {4, 0},  [3] = {12, 0}, [4] = {0, 12},  [5] = {0, 12}, [6] = {0, 8},
		[13] = {0, 8}, [14] = {4, 0}, [15] = {0, 12}, [17] = {4, 0}, [19] = {0, 12},
		[20] = {4, 4}, [21] = {0, 4}, [22] = {0, 12}, [30] = {4, 4}};

	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + 32, record, sizeof(record));
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		memcpy(bytes + 32 + 24 + 4 * i, sizes[i], 2);
	memcpy(bytes + 32 + 24 + 124, "\0new", 5);
	struct cairn_btf *btf = must_open_mem(bytes, sizeof(bytes), NULL);
	char *text = dump(btf, CAIRN_BTF_RAW), *c = dump(btf, CAIRN_BTF_C);

	assert_string_equal(text, "[1] UNKNOWN 'new' kind=30 kind_flag=1 vlen=2 size_or_type=99\n"
				  "\t0x0000000a 0x0000000b 0x0000000c\n");
	assert_has_not(c, "new");
	free(text);
	free(c);
	cairn_btf_close(btf);
}

static void a_name_cannot_make_up_a_line(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	ADD(fwd, b, str(b, "a\n[2] INT 'x'\033[2J"), false);
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_RAW);

	assert_string_equal(text, "[1] FWD 'a\\x0a[2] INT 'x'\\x1b[2J' fwd_kind=struct\n");
	free(text);
	blob_free(&blob);
}

/* ---- order ---- */

static uint32_t add_struct_1(struct cairn_btf_builder *b, const char *name, uint32_t bytes,
			     const char *member, uint32_t type)
{
	struct cairn_btf_member m = {*member ? str(b, member) : 0, type, 0, 0};

	return ADD(struct, b, CAIRN_BTF_STRUCT, *name ? str(b, name) : 0, bytes, &m, 1);
}

static void structs_in_a_circle_through_typedefs_and_prototypes(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	/*
	 * struct a { fn_t *call; }; typedef b_t *fn_t(struct a *); typedef struct b b_t; struct b {
	 * struct a first; }
	 */
	add_struct_1(b, "a", 8, "call", 2);                        /* 1 */
	ADD(ref, b, CAIRN_BTF_PTR, 0, 3);                          /* 2 */
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "fn_t"), 4);         /* 3 */
	ADD(func_proto, b, 5, &(struct cairn_btf_param){0, 6}, 1); /* 4 */
	ADD(ref, b, CAIRN_BTF_PTR, 0, 7);                          /* 5 */
	ADD(ref, b, CAIRN_BTF_PTR, 0, 1);                          /* 6 */
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "b_t"), 8);          /* 7 */
	add_struct_1(b, "b", 8, "first", 1);                       /* 8 */
	assert_compiles(b, "b_t *f(struct a *a) { return a->call(&a->call(a)->first); }",
			"struct a;\n");
}

static void a_circle_without_a_struct_is_cut_at_a_pointer(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	/* type fn func(fn) fn, as Go has it; and type p *p */
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "fn"), 2);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 3);
	ADD(func_proto, b, 1, &(struct cairn_btf_param){0, 1}, 1);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "p"), 5);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 4);
	assert_compiles(b, "fn f(fn x) { return (p)x; }", "/* a pointer to itself */");
}

static void a_struct_that_contains_itself_is_refused(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	add_struct_1(b, "a", 8, "b", 4);
	add_struct_1(b, "b", 8, "a", 2);
	ADD(array, b, 3, i, 1);
	struct blob blob = finish(b, NULL);
	struct cairn_err err = {0};
	char *text;

	assert_int_equal(try_dump(blob.btf, CAIRN_BTF_C, NULL, 0, &text, &err), -EBADMSG);
	assert_string_equal(err.msg, "built: record 2 (STRUCT 'a') contains itself");
	free(text);
	blob_free(&blob);
}

static void a_hundred_thousand_nested_structs_need_no_stack(void **state)
{
	enum { N = 100000 };
	struct cairn_btf_builder *b = builder(PLAIN);
	char name[16];

	/* Each contains the next, so that the first needs all others. */
	for (uint32_t i = 1; i < N; i++) {
		snprintf(name, sizeof(name), "s%u", i);
		add_struct_1(b, name, INT_BYTES, "in", i + 1);
	}
	add_int(b);
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_C);

	assert_has(text, "struct s1 {\n\tstruct s2 in;\n};\n");
	assert_true(strstr(text, "struct s2 {") < strstr(text, "struct s1 {"));
	free(text);
	blob_free(&blob);
}

static void endless_chains_end(void **state)
{
	static const uint32_t kinds[] = {CAIRN_BTF_PTR, CAIRN_BTF_CONST, CAIRN_BTF_TYPEDEF};

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		struct cairn_btf_builder *b = builder(PLAIN);
		struct cairn_err err = {0};
		char *text;

		add_struct_1(b, "s", 8, "m", 2);
		ADD(ref, b, kinds[k], kinds[k] == CAIRN_BTF_TYPEDEF ? str(b, "t") : 0, 2);
		struct blob blob = finish(b, NULL);
		int r = try_dump(blob.btf, CAIRN_BTF_C, NULL, 0, &text, &err);

		assert_int_equal(r, kinds[k] == CAIRN_BTF_PTR ? 0 : -EBADMSG);
		free(text);
		blob_free(&blob);
	}
}

/* Each of two hundred levels has the level below twice: 2^200 lines in place. */
static void nameless_types_are_hoisted_before_text_explodes(void **state)
{
	enum { LEVELS = 28 }; /* as many as a size of 32 bits allows */
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t below = ADD(int, b, str(b, "char"), 1, CAIRN_BTF_INT_SIGNED, 8);
	uint32_t bytes = 1;

	for (int i = 0; i < LEVELS; i++, bytes *= 2) {
		struct cairn_btf_member two[] = {{str(b, "x"), below, 0, 0},
						 {str(b, "y"), below, 8 * bytes, 0}};
		below = ADD(struct, b, CAIRN_BTF_STRUCT, i + 1 < LEVELS ? 0 : str(b, "top"),
			    2 * bytes, two, 2);
	}
	struct cairn_btf_param params[2] = {{0, 1}, {0, 1}};
	for (int i = 0; i < 200; i++) {
		uint32_t proto = ADD(func_proto, b, 1, params, 2);
		params[0].type = params[1].type = ADD(ref, b, CAIRN_BTF_PTR, 0, proto);
	}
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "top_fn"), params[0].type);
	struct blob blob = finish(b, NULL);
	char *text = dump(blob.btf, CAIRN_BTF_C);

	assert_true(strlen(text) < 1000000);
	workspace_write(&space, "text.c", text);
	workspace_run(&space, "gcc -w -fsyntax-only text.c");
	free(text);
	blob_free(&blob);
}

/* ---- names ---- */

static void types_of_one_name_get_a_suffix(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t c = ADD(int, b, str(b, "char"), 1, CAIRN_BTF_INT_SIGNED, 8);
	ADD(fwd, b, str(b, "file"), false);
	add_struct_1(b, "file", 4, "a", i);
	add_struct_1(b, "file", 1, "b", c);
	ADD(struct, b, CAIRN_BTF_UNION, str(b, "file"), 4,
	    &(struct cairn_btf_member){str(b, "c"), i, 0, 0}, 1);
	struct cairn_btf_enumerator v[] = {{str(b, "ONE"), 1}};
	ADD(enum, b, str(b, "file"), 4, false, v, 1);
	v[0].value = 2;
	ADD(enum, b, str(b, "other"), 4, false, v, 1);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "ONE"), i);
	assert_compiles(
		b,
		"SIZE(struct file, 4) SIZE(struct file___2, 1) AT(union file___3, c, 0)\n"
		"_Static_assert(ONE == 1 && ONE___2 == 2, \"\"); enum file___4 e; ONE___3 x;",
		NULL);
}

static void names_that_c_does_not_take_become_identifiers(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	struct cairn_btf_member m[] = {
		{str(b, "int"), i, 0, 0},     {str(b, "operator*/"), i, 32, 0},
		{str(b, "7th"), i, 64, 0},    {str(b, "operator_"), i, 96, 0},
		{str(b, "linux"), i, 128, 0}, {str(b, "\xc3\xa9"), i, 160, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "std::vector<int, 3>"), 24, m, 6);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "while"), i);
	assert_compiles(b,
			"AT(struct std__vector_int__3_, int_, 0) AT(struct std__vector_int__3_, "
			"operator__, 4)\n"
			"AT(struct std__vector_int__3_, _7th, 8) AT(struct std__vector_int__3_, "
			"operator_, 12)\n"
			"AT(struct std__vector_int__3_, linux, 16) AT(struct std__vector_int__3_, "
			"__, 20) while_ w;",
			"/* std::vector<int, 3> */");
}

static void bool_true_and_false_are_what_each_c_has(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t bool_ = ADD(int, b, str(b, "_Bool"), 1, CAIRN_BTF_INT_BOOL, 8);
	struct cairn_btf_enumerator v[] = {{str(b, "false"), 0}, {str(b, "true"), 1}};
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "bool"), bool_);
	ADD(enum, b, 0, 4, false, v, 2);
	assert_compiles(b, "bool b = true; _Static_assert(!false && sizeof(bool) == 1, \"\");",
			NULL);
}

static void scalars_of_other_languages_get_a_typedef(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	/* clang-format off */
	struct cairn_btf_member m[] = {
		{str(b, "a"), ADD(int, b, str(b, "u8"), 1, 0, 8), 0, 0},
		{str(b, "b"), ADD(int, b, str(b, "bool"), 1, CAIRN_BTF_INT_BOOL, 8), 8, 0},
		{str(b, "c"), ADD(int, b, str(b, "char16_t"), 2, 0, 16), 16, 0},
		{str(b, "d"), ADD(int, b, str(b, "long long int"), 4, CAIRN_BTF_INT_SIGNED, 32), 32, 0},
		{str(b, "e"), ADD(int, b, str(b, "i128"), 16, CAIRN_BTF_INT_SIGNED, 128), 128, 0},
		{str(b, "f"), ADD(float, b, str(b, "_Float128"), 16), 256, 0},
		{str(b, "g"), ADD(float, b, str(b, "f16"), 2), 384, 0}};
	/* clang-format on */
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 64, m, 7);
	assert_compiles(b,
			"SIZE(struct s, 64) AT(struct s, c, 2) AT(struct s, d, 4) AT(struct s, e, "
			"16) AT(struct s, f, 32)\n"
			"AT(struct s, g, 48)",
			"typedef unsigned char u8;");
}

static void nameless_enums_that_are_used_twice_are_declared_once(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	struct cairn_btf_enumerator v[] = {{str(b, "A"), 0}};
	uint32_t e = ADD(enum, b, 0, 4, false, v, 1);
	v[0].name_off = str(b, "B");
	uint32_t once = ADD(enum, b, 0, 4, false, v, 1);
	v[0].name_off = str(b, "LOOSE");
	ADD(enum, b, 0, 4, false, v, 1);
	struct cairn_btf_member m[] = {
		{str(b, "x"), e, 0, 0}, {str(b, "y"), e, 32, 0}, {str(b, "z"), once, 64, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 12, m, 3);
	assert_compiles(b, "struct s s = {A, A, B}; int loose = LOOSE;",
			"\tenum {\n\t\tB = 0,\n\t} z;");
}

/* ---- layout ---- */

static void members_that_overlap_are_an_overlay(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t c = ADD(int, b, str(b, "char"), 1, CAIRN_BTF_INT_SIGNED, 8);
	struct cairn_btf_member base[] = {{str(b, "a"), i, 0, 0}, {str(b, "b"), c, 32, 0}};
	uint32_t s = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "base"), 8, base, 2);
	/* As C++ lays out: c is in the padding at the end of the base. */
	struct cairn_btf_member m[] = {{str(b, "base"), s, 0, 0},
				       {str(b, "c"), c, 40, 0},
				       {str(b, "d"), c, 48, 0},
				       {str(b, "bit"), i, 59, 3}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "derived"), 8, m, 4);
	assert_compiles(
		b,
		"SIZE(struct derived, 8) AT(struct derived, base, 0) AT(struct derived, c, 5)\n"
		"AT(struct derived, d, 6) int f(struct derived *d) { return d->bit + d->base.b; }",
		NULL);
}

static void members_in_another_order_than_their_offsets_are_a_struct(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t c = ADD(int, b, str(b, "char"), 1, CAIRN_BTF_INT_SIGNED, 8);
	struct cairn_btf_member m[] = {
		{str(b, "last"), c, 64, 0}, {str(b, "first"), i, 0, 0}, {str(b, "mid"), i, 32, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 12, m, 3);
	assert_compiles(b,
			"SIZE(struct s, 12) AT(struct s, last, 8) AT(struct s, first, 0) AT(struct "
			"s, mid, 4)",
			"struct s {\n\tint first;\n\tint mid;\n\tchar last;\n};\n");
}

static void members_that_c_cannot_say_are_gaps(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t later = ADD(fwd, b, str(b, "later"), false);
	uint32_t proto = ADD(func_proto, b, i, NULL, 0);
	struct cairn_btf_member m[] = {{str(b, "a"), later, 0, 0},  {str(b, "b"), i, 64, 0},
				       {str(b, "c"), proto, 96, 0}, {str(b, "d"), 999, 128, 0},
				       {str(b, "e"), 0, 160, 0},    {str(b, "f"), i, 190, 33},
				       {str(b, "g*/"), i, 256, 0},  {str(b, "end"), i, 224, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 32, m, 8);
	assert_compiles(b, "SIZE(struct s, 32) AT(struct s, b, 8) AT(struct s, end, 28)",
			"/* a: not complete (type 2 at bit 0) */");
}

static void functions_that_return_arrays_compile(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t array = ADD(array, b, i, i, 4);
	uint32_t t = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "four"), array);
	uint32_t f1 = ADD(func_proto, b, array, NULL, 0);
	uint32_t f2 = ADD(func_proto, b, t, NULL, 0);
	uint32_t nothings = ADD(array, b, 0, i, 4);
	uint32_t p1 = ADD(ref, b, CAIRN_BTF_PTR, 0, f1);
	uint32_t p2 = ADD(ref, b, CAIRN_BTF_PTR, 0, f2);
	uint32_t voids = ADD(ref, b, CAIRN_BTF_PTR, 0, nothings);
	struct cairn_btf_member m[] = {
		{str(b, "x"), p1, 0, 0}, {str(b, "y"), p2, 64, 0}, {str(b, "z"), voids, 128, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 24, m, 3);
	assert_compiles(b, "SIZE(struct s, 24)", "void /* four */");
}

static void what_has_no_name_or_no_type_still_compiles(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	struct cairn_btf_enumerator v[] = {{0, 1}, {0, 2}};
	uint32_t var = ADD(var, b, str(b, "v"), CAIRN_BTF_GLOBAL, i);
	uint32_t nothing = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "nothing"), 0);
	uint32_t odd = ADD(float, b, str(b, "odd"), 11);
	struct cairn_btf_param params[] = {{0, var}, {0, nothing}, {0, i}};
	uint32_t proto = ADD(func_proto, b, odd, params, 3);
	uint32_t ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, proto);
	ADD(enum, b, str(b, "e"), 4, false, v, 2);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, 0, ptr);
	add_struct_1(b, "s", 8, "call", ptr);
	assert_compiles(b, "SIZE(struct s, 8) SIZE(odd, 11)", NULL);
}

static void enums_have_the_size_and_values_of_the_btf(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	struct cairn_btf_enumerator v[] = {{str(b, "LO"), -1}, {str(b, "HI"), 127}};
	struct cairn_btf_enumerator w[] = {{str(b, "MIN"), INT64_MIN}, {str(b, "MAX"), INT64_MAX}};
	struct cairn_btf_enumerator u[] = {{str(b, "UMAX"), -1}};
	struct cairn_btf_enumerator x[] = {{str(b, "SMALL"), 1}};
	ADD(enum, b, str(b, "e1"), 1, true, v, 2);
	ADD(enum, b, str(b, "e8"), 8, true, w, 2);
	ADD(enum, b, str(b, "u8"), 8, false, u, 1);
	ADD(enum, b, str(b, "x8"), 8, false, x, 1);
	ADD(enum, b, str(b, "x2"), 2, false, (&(struct cairn_btf_enumerator){str(b, "TWO"), 65535}),
	    1);
	ADD(enum, b, str(b, "none"), 4, false, NULL, 0);
	assert_compiles(b,
			"SIZE(enum e1, 1) SIZE(enum e8, 8) SIZE(enum u8, 8) SIZE(enum x8, 8) "
			"SIZE(enum x2, 2) SIZE(enum none, 4)\n"
			"_Static_assert(LO == -1 && HI == 127 && MIN == -__LONG_MAX__ - 1 && MAX "
			"== __LONG_MAX__ &&\n"
			"UMAX == -1UL && SMALL == 1 && TWO == 65535, \"\");",
			NULL);
}

static void type_tags_are_attributes_where_they_are_known(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "user\"\\"), i);
	uint32_t ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, tag);
	add_struct_1(b, "s", 8, "p", ptr);
	assert_compiles(b, "int f(struct s *s) { return *s->p; }",
			"int __btf_type_tag(\"user\\\"\\\\\") *p;");
}

/* ---- what is asked for ---- */

static void only_what_was_asked_for_and_what_it_needs_is_printed(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t needed = add_struct_1(b, "needed", 4, "a", i);
	uint32_t named = add_struct_1(b, "named", 4, "a", i);
	uint32_t ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, named);
	add_struct_1(b, "unrelated", 4, "a", i);
	struct cairn_btf_param params[] = {{str(b, "x"), ptr}, {0, 0}};
	uint32_t proto = ADD(func_proto, b, needed, params, 2);
	uint32_t func = ADD(func, b, str(b, "call"), CAIRN_BTF_GLOBAL, proto);
	uint32_t var = ADD(var, b, str(b, "here"), CAIRN_BTF_GLOBAL, needed);
	uint32_t ids[] = {func, var};
	struct blob blob = finish(b, NULL);
	char *text;

	assert_int_equal(try_dump(blob.btf, CAIRN_BTF_C, ids, 2, &text, NULL), 0);
	assert_has(text, "extern struct needed call(struct named *x, ...);");
	assert_has(text, "struct needed {");
	assert_has(text, "extern struct needed here;");
	assert_has(text, "struct named;");
	assert_has_not(text, "struct named {");
	assert_has_not(text, "unrelated");
	free(text);
	ids[0] = 999;
	assert_int_equal(try_dump(blob.btf, CAIRN_BTF_C, ids, 1, &text, NULL), -ENOENT);
	free(text);
	blob_free(&blob);
}

static void split_btf_brings_what_it_needs_of_its_base(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t in_base = add_struct_1(b, "in_base", 4, "a", i);
	add_struct_1(b, "unrelated", 4, "a", i);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	add_struct_1(b, "own", 4, "m", in_base);
	struct blob split = finish(b, base.btf);
	char *text = dump(split.btf, CAIRN_BTF_C);

	assert_has(text,
		   "struct in_base {\n\tint a;\n};\n\nstruct own {\n\tstruct in_base m;\n};\n");
	assert_has_not(text, "unrelated");
	free(text);
	blob_free(&split);
	blob_free(&base);
}

static void a_kernels_header_has_what_bpf_programs_expect(void **state)
{
	struct cairn_btf_builder *b = builder(PLAIN);
	uint32_t i = add_int(b);
	uint32_t record = add_struct_1(b, "task_struct", 4, "pid", i);
	uint32_t task = ADD(ref, b, CAIRN_BTF_PTR, 0, record);
	struct cairn_btf_param params[] = {{str(b, "task"), task}, {str(b, "int"), i}};
	uint32_t proto = ADD(func_proto, b, i, params, 2);
	uint32_t func = ADD(func, b, str(b, "bpf_task_do"), CAIRN_BTF_STATIC, proto);
	ADD(func, b, str(b, "other"), CAIRN_BTF_STATIC, proto);
	ADD(decl_tag, b, str(b, "bpf_kfunc"), func, -1, false);
	ADD(decl_tag, b, str(b, "bpf_kfunc"), func, -1, false);
	assert_compiles(b,
			"#ifndef __VMLINUX_H__\n#error no macro\n#endif\n"
			"int other; int f(struct task_struct *t) { return bpf_task_do(t, 1); }",
			"\nextern int bpf_task_do(struct task_struct *task, int int_) __weak "
			"__ksym;\n#endif");
}

static void every_failing_allocation_is_an_error(void **state)
{
	struct blob blob = each_kind((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});

	for (unsigned int n = 1;; n++) {
		char *text = NULL;
		size_t size;
		FILE *out = open_memstream(&text, &size);

		assert_non_null(out);
		alloc_fail_at(n);
		int r = cairn_btf_dump(blob.btf, CAIRN_BTF_C, NULL, 0, 0, out, NULL);
		bool failed = alloc_fail_end();

		fclose(out);
		free(text);
		/* A name table that could not be made is done without. */
		assert_true(r == -ENOMEM || (r == 0 && (!failed || n < 3)));
		if (!failed)
			break;
	}
	blob_free(&blob);
}

static void a_full_disk_is_an_error(void **state)
{
	struct blob blob = each_kind(PLAIN);
	struct cairn_err err = {0};
	FILE *full = fopen("/dev/full", "we");

	assert_non_null(full);
	assert_int_equal(cairn_btf_dump(blob.btf, CAIRN_BTF_RAW, NULL, 0, 0, full, &err), -ENOSPC);
	assert_has(err.msg, "cannot write the dump");
	fclose(full);
	blob_free(&blob);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_of_n_look_as_upstreams_tests_expect),
		cmocka_unit_test(records_of_v1_look_as_in_the_rfc),
		cmocka_unit_test(pretty_locations_have_the_machines_registers),
		cmocka_unit_test(an_unknown_kind_is_shown_with_its_words),
		cmocka_unit_test(a_name_cannot_make_up_a_line),
		cmocka_unit_test(structs_in_a_circle_through_typedefs_and_prototypes),
		cmocka_unit_test(a_circle_without_a_struct_is_cut_at_a_pointer),
		cmocka_unit_test(a_struct_that_contains_itself_is_refused),
		cmocka_unit_test(a_hundred_thousand_nested_structs_need_no_stack),
		cmocka_unit_test(endless_chains_end),
		cmocka_unit_test(nameless_types_are_hoisted_before_text_explodes),
		cmocka_unit_test(types_of_one_name_get_a_suffix),
		cmocka_unit_test(names_that_c_does_not_take_become_identifiers),
		cmocka_unit_test(bool_true_and_false_are_what_each_c_has),
		cmocka_unit_test(scalars_of_other_languages_get_a_typedef),
		cmocka_unit_test(nameless_enums_that_are_used_twice_are_declared_once),
		cmocka_unit_test(members_that_overlap_are_an_overlay),
		cmocka_unit_test(members_in_another_order_than_their_offsets_are_a_struct),
		cmocka_unit_test(members_that_c_cannot_say_are_gaps),
		cmocka_unit_test(functions_that_return_arrays_compile),
		cmocka_unit_test(what_has_no_name_or_no_type_still_compiles),
		cmocka_unit_test(enums_have_the_size_and_values_of_the_btf),
		cmocka_unit_test(type_tags_are_attributes_where_they_are_known),
		cmocka_unit_test(only_what_was_asked_for_and_what_it_needs_is_printed),
		cmocka_unit_test(split_btf_brings_what_it_needs_of_its_base),
		cmocka_unit_test(a_kernels_header_has_what_bpf_programs_expect),
		cmocka_unit_test(every_failing_allocation_is_an_error),
		cmocka_unit_test(a_full_disk_is_an_error),
	};

	return cmocka_run_group_tests(tests, open_space, close_space);
}
