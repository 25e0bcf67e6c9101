/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading and building BTF. What is done with it is in test_btf_*.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

static const struct cairn_btf_build_opts forms[] = {
	{.dialect = CAIRN_BTF_NO_LOC},
	{.dialect = CAIRN_BTF_LOC_N},
	{.dialect = CAIRN_BTF_LOC_V1},
	{.dialect = CAIRN_BTF_LOC_N, .layout = true},
	{.dialect = CAIRN_BTF_LOC_V1, .layout = true},
	{.dialect = CAIRN_BTF_LOC_N, .big_endian = true},
	{.dialect = CAIRN_BTF_LOC_V1, .big_endian = true},
	{.dialect = CAIRN_BTF_LOC_V1, .layout = true, .big_endian = true},
};

/* The blob built again, record by record, from what the accessors give. */
static struct blob rebuild(const struct cairn_btf *btf, struct cairn_btf_build_opts opts)
{
	struct cairn_btf_type t;
	uint32_t id;
	opts.base = cairn_btf_base(btf);
	struct cairn_btf_builder *b = builder(opts);
	assert_int_equal(btf_builder_adopt_strings(b, btf), 0);
	for (uint32_t i = cairn_btf_start_id(btf); cairn_btf_type(btf, i, &t); i++) {
		assert_int_equal(cairn_btf_add_record(b, &t, t.words, t.n_words, &id), 0);
		assert_int_equal(id, i);
	}
	return finish(b, opts.base);
}

static void what_was_built_reads_back(void **state)
{
	struct blob b = each_kind((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	struct cairn_btf_type t = must_have(b.btf, 4);
	assert_int_equal(t.kind, CAIRN_BTF_STRUCT);
	assert_string_equal(t.name, "node");
	assert_int_equal(t.ref, 40);
	assert_int_equal(t.vlen, 3);
	struct cairn_btf_member low = cairn_btf_member(&t, 1), all = cairn_btf_member(&t, 2);
	assert_string_equal(cairn_btf_string(b.btf, low.name_off), "low");
	assert_int_equal(low.bit_off, 64);
	assert_int_equal(low.bit_size, 3);
	assert_int_equal(all.bit_off, 96);
	assert_int_equal(all.bit_size, 0);
	t = must_have(b.btf, cairn_btf_find(b.btf, "small", CAIRN_BTF_ENUM, 0));
	assert_int_equal(cairn_btf_enumerator(&t, 0).value, -1);
	t = must_have(b.btf, cairn_btf_find(b.btf, "big", CAIRN_BTF_ENUM64, 0));
	assert_true(cairn_btf_enumerator(&t, 0).value == INT64_MIN);
	t = must_have(b.btf, cairn_btf_find(b.btf, ".data", 0, 0));
	assert_int_equal(cairn_btf_secinfo(&t, 0).offset, 16);
	t = must_have(b.btf, cairn_btf_find(b.btf, ".text", CAIRN_BTF_LOCSEC, 0));
	assert_int_equal(cairn_btf_loc(b.btf, &t, 1).offset, 128);
	assert_int_equal(cairn_btf_loc(b.btf, &t, 0).func, cairn_btf_find(b.btf, "visit", 0, 0));
	assert_false(cairn_btf_type(b.btf, 0, &t));
	assert_false(cairn_btf_type(b.btf, cairn_btf_end_id(b.btf), &t));
	assert_false(cairn_btf_type(b.btf, UINT32_MAX, &t));
	assert_null(cairn_btf_string(b.btf, UINT32_MAX));
	blob_free(&b);
}

static void bytes_are_those_of_the_specification(void **state)
{
	static const uint8_t expected[] = {
		0x9f, 0xeb, 1, 0, 24, 0, 0, 0, 0, 0, 0, 0, 44, 0, 0, 0, 44, 0, 0, 0, 5, 0, 0, 0,
		/* *(r7 + 8), 8 bytes; then {1, 0} */
		0, 0, 0, 0, 2, 0, 0, 0x14, 8, 0, 0, 0, 0x38, 0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 0, 0,
		0, 0, 2, 0, 0, 0x15, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 'i', 'n', 't', 0};
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	struct cairn_btf_loc_param p = {.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF |
						 CAIRN_BTF_LOC_OFFSET,
					.size = 8,
					.n_regs = 1,
					.reg = {7},
					.offset = 8};
	uint32_t slots[] = {ADD(loc_param, b, &p), 0};
	ADD(loc_proto, b, slots, 2);
	str(b, "int");
	struct blob blob = finish(b, NULL);
	assert_int_equal(blob.size, sizeof(expected));
	assert_memory_equal(blob.bytes, expected, sizeof(expected));
	blob_free(&blob);
}

static void built_again_it_has_the_same_bytes(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct blob b = each_kind(forms[i]), again = rebuild(b.btf, forms[i]);
		assert_int_equal(cairn_btf_dialect(b.btf), forms[i].dialect);
		assert_int_equal(cairn_btf_has_layout(b.btf), forms[i].layout);
		assert_int_equal(cairn_btf_is_big_endian(b.btf), forms[i].big_endian);
		assert_int_equal(again.size, b.size);
		assert_memory_equal(again.bytes, b.bytes, b.size);
		blob_free(&again);
		blob_free(&b);
	}
}

static void kernel_btf_built_again_has_the_same_bytes(void **state)
{
	struct cairn_btf *btf;
	struct cairn_err err = {0};
	int rc = cairn_btf_open(KERNEL_BTF, NULL, &btf, &err);
	if (rc == -ENOENT || rc == -EACCES) {
		print_message("%s\n", err.msg);
		skip();
	}
	assert_int_equal(rc, 0);
	assert_true(cairn_btf_end_id(btf) > 1000);
	struct blob again =
		rebuild(btf, (struct cairn_btf_build_opts){.layout = cairn_btf_has_layout(btf)});
	assert_int_equal(again.size, btf->map_size);
	assert_memory_equal(again.bytes, btf->map, again.size);
	struct cairn_btf_type t =
		must_have(btf, cairn_btf_find(btf, "task_struct", CAIRN_BTF_STRUCT, 0));
	assert_true(t.vlen > 50);
	blob_free(&again);
	cairn_btf_close(btf);
}

static void both_byte_orders_and_unaligned_bytes_read_the_same(void **state)
{
	struct cairn_btf_type x, y;
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		struct blob little = each_kind((struct cairn_btf_build_opts){.dialect = dialect});
		struct blob big = each_kind(
			(struct cairn_btf_build_opts){.dialect = dialect, .big_endian = true});
		char *odd = malloc(little.size + 1);
		memcpy(odd + 1, little.bytes, little.size);
		struct cairn_btf *unaligned = must_open_mem(odd + 1, little.size, NULL);
		for (uint32_t id = 1; cairn_btf_type(little.btf, id, &x); id++) {
			assert_true(cairn_btf_type(big.btf, id, &y));
			assert_int_equal(x.kind, y.kind);
			assert_memory_equal(x.words, y.words, x.n_words * 4);
			assert_true(cairn_btf_type(unaligned, id, &y));
			assert_memory_equal(x.words, y.words, x.n_words * 4);
		}
		cairn_btf_close(unaligned);
		free(odd);
		blob_free(&big);
		blob_free(&little);
	}
}

static void equal_strings_have_one_offset(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	char name[32];
	uint32_t offs[5000];
	assert_int_equal(str(b, ""), 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(offs); i++) {
		snprintf(name, sizeof(name), "%x_is_a_name", i * 2654435761u);
		offs[i] = str(b, name);
	}
	for (uint32_t i = 0; i < ARRAY_SIZE(offs); i++) {
		snprintf(name, sizeof(name), "%x_is_a_name", i * 2654435761u);
		assert_int_equal(str(b, name), offs[i]);
		assert_string_equal(btf_builder_string(b, offs[i]), name);
	}
	cairn_btf_builder_free(b);
}

static void split_blob_uses_ids_and_strings_of_all_its_bases(void **state)
{
	struct blob kernel = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = kernel.btf});
	uint32_t name = str(b, "node");
	uint32_t own = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "module_t"), 4);
	struct blob module = finish(b, kernel.btf);
	b = builder((struct cairn_btf_build_opts){.base = module.btf, .dialect = CAIRN_BTF_LOC_N});
	uint32_t locs = ADD(locsec, b, str(b, ".text"), NULL, 0);
	assert_int_equal(str(b, "module_t"), must_have(module.btf, own).name_off);
	struct blob inline_data = finish(b, module.btf);

	assert_int_equal(name, must_have(kernel.btf, 4).name_off);
	assert_int_equal(own, cairn_btf_end_id(kernel.btf));
	assert_int_equal(locs, own + 1);
	assert_string_equal(must_have(inline_data.btf, 4).name, "node");
	assert_string_equal(must_have(inline_data.btf, own).name, "module_t");
	assert_string_equal(must_have(inline_data.btf, locs).name, ".text");
	assert_int_equal(cairn_btf_find(inline_data.btf, "node", 0, 0), 4);
	assert_int_equal(cairn_btf_find(inline_data.btf, "node", 0, 4), 0);
	blob_free(&inline_data);
	blob_free(&module);
	blob_free(&kernel);
}

static void find_gives_all_ids_of_a_name_own_ones_first(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t i = add_int(b);
	uint32_t x1 = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "x"), i);
	uint32_t x2 = ADD(fwd, b, str(b, "x"), false);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t x3 = ADD(float, b, str(b, "x"), 4), x4 = ADD(fwd, b, str(b, "x"), true);
	struct blob split = finish(b, base.btf);
	assert_int_equal(cairn_btf_find(split.btf, "x", 0, 0), x3);
	assert_int_equal(cairn_btf_find(split.btf, "x", 0, x3), x4);
	assert_int_equal(cairn_btf_find(split.btf, "x", 0, x4), x1);
	assert_int_equal(cairn_btf_find(split.btf, "x", 0, x1), x2);
	assert_int_equal(cairn_btf_find(split.btf, "x", 0, x2), 0);
	assert_int_equal(cairn_btf_find(split.btf, "x", CAIRN_BTF_FWD, x4), x2);
	assert_int_equal(cairn_btf_find(split.btf, "y", 0, 0), 0);
	blob_free(&split);
	blob_free(&base);
}

static void more_than_65535_elements_are_one_record(void **state)
{
	enum { N = 200000 };
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	struct cairn_btf_loc *locs = calloc(N, sizeof(*locs));
	for (uint32_t i = 0; i < N; i++)
		locs[i] = (struct cairn_btf_loc){.func = 1, .offset = i};
	ADD(func, b, str(b, "f"), CAIRN_BTF_STATIC, 0);
	uint32_t id = ADD(locsec, b, str(b, ".text"), locs, N), after = add_int(b);
	struct blob blob = finish(b, NULL);
	struct cairn_btf_type t = must_have(blob.btf, id);
	assert_int_equal(t.vlen, N);
	assert_int_equal(cairn_btf_loc(blob.btf, &t, N - 1).offset, N - 1);
	assert_string_equal(must_have(blob.btf, after).name, "int");
	blob_free(&blob);
	free(locs);
}

/* ---- LOC_PARAM ---- */

static void assert_same_location(struct cairn_btf_loc_param x, struct cairn_btf_loc_param y)
{
	assert_int_equal(x.flags, y.flags);
	assert_int_equal(x.size, y.size);
	assert_int_equal(x.n_regs, y.n_regs);
	assert_int_equal(x.reg[0], y.reg[0]);
	assert_int_equal(x.reg[1], y.reg[1]);
	assert_true(x.offset == y.offset);
	assert_true(x.value == y.value);
	assert_int_equal(x.continues, y.continues);
}

static void location_reads_back_in_both_dialects(void **state)
{
	enum {
		S = CAIRN_BTF_LOC_SIGNED,
		C = CAIRN_BTF_LOC_CONST,
		A = CAIRN_BTF_LOC_ADDR,
		R = CAIRN_BTF_LOC_REG,
		D = CAIRN_BTF_LOC_DEREF,
		O = CAIRN_BTF_LOC_OFFSET
	};
	/* clang-format off */
	static const struct {
		struct cairn_btf_loc_param p;
		uint32_t words; /* in N, with flags */
		bool v1;
	} cases[] = {
		{{.flags = C, .size = 8, .value = 42}, 2, true},
		{{.flags = C, .size = 8, .value = 0xffffffff}, 2, true},
		{{.flags = C, .size = 8, .value = 0x100000000}, 3, true},
		{{.flags = C | S, .size = 8, .value = -1}, 2, true},
		{{.flags = C | S, .size = 8, .value = INT64_MIN}, 3, true},
		{{.flags = C | S, .size = 1, .value = -128}, 2, true},
		{{.flags = C | A, .size = 8, .value = 0x1000}, 3, false},
		{{.flags = R, .size = 4, .n_regs = 1, .reg = {5}}, 2, true},
		{{.flags = R, .size = 16, .n_regs = 2, .reg = {5, 4}}, 3, false},
		{{.flags = R | D, .size = 2, .n_regs = 1, .reg = {7}}, 2, true},
		{{.flags = R | D | O, .size = 8, .n_regs = 1, .reg = {7}, .offset = 16}, 3, true},
		{{.flags = R | O, .size = 8, .n_regs = 1, .reg = {7}, .offset = 16}, 3, false},
		{{.flags = R | D | O | S, .size = 8, .n_regs = 1, .reg = {CAIRN_BTF_LOC_FBREG}, .offset = -8},
		 3, false},
		{{.flags = R | O | S, .size = 8, .n_regs = 1, .reg = {0}, .offset = -(1ll << 40)}, 4, false},
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_builder *n =
			builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
		struct cairn_btf_builder *v1 =
			builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_V1});
		uint32_t id = ADD(loc_param, n, &cases[i].p);
		struct blob b = finish(n, NULL);
		struct cairn_btf_type t = must_have(b.btf, id);
		struct cairn_btf_loc_param back = cairn_btf_loc_param(b.btf, &t);
		assert_int_equal(t.n_words, cases[i].words);
		assert_same_location(back, cases[i].p);
		blob_free(&b);
		int rc = btf_add_loc_param(v1, &cases[i].p, &id);
		assert_true(cases[i].v1 ? rc == 0 : rc == 0 || rc == -EOPNOTSUPP);
		if (rc == 0 && cases[i].v1) {
			b = finish(v1, NULL);
			t = must_have(b.btf, id);
			back = cairn_btf_loc_param(b.btf, &t);
			assert_same_location(back, cases[i].p);
			blob_free(&b);
		} else {
			cairn_btf_builder_free(v1);
		}
	}
}

static void malformed_location_reads_as_none(void **state)
{
	/* clang-format off */
	static const struct {
		uint32_t flags, vlen;
	} cases[] = {
		{0, 1}, {CAIRN_BTF_LOC_SIGNED, 1}, {CAIRN_BTF_LOC_CONST, 0}, {CAIRN_BTF_LOC_CONST, 3},
		{CAIRN_BTF_LOC_REG, 0}, {CAIRN_BTF_LOC_REG, 3},
		{CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF, 2},
		{CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_OFFSET, 1},
		{CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_OFFSET, 4},
		{CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_CONST, 1},
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_builder *b =
			builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
		uint32_t words[8] = {cases[i].flags, 1, 2, 3, 4}, id;
		struct cairn_btf_type t = {
			.kind = CAIRN_BTF_LOC_PARAM, .vlen = cases[i].vlen, .ref = 8};
		assert_int_equal(cairn_btf_add_record(b, &t, words, 1 + cases[i].vlen, &id), 0);
		struct cairn_btf_loc_param ok = {
			.flags = CAIRN_BTF_LOC_REG, .n_regs = 1, .size = 8};
		ADD(loc_param, b, &ok);
		void *bytes;
		size_t size;
		assert_int_equal(cairn_btf_finish(b, &bytes, &size, NULL), 0);
		cairn_btf_builder_free(b);
		struct cairn_btf_open_opts opts = {.size = sizeof(opts),
						   .dialect = CAIRN_BTF_LOC_N};
		struct cairn_btf *btf;
		assert_int_equal(cairn_btf_open_mem(bytes, size, "built", &opts, &btf, NULL), 0);
		t = must_have(btf, id);
		struct cairn_btf_loc_param p = cairn_btf_loc_param(btf, &t);
		assert_false(p.flags & (CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_CONST));
		cairn_btf_close(btf);
		free(bytes);
	}
}

/* ---- refusals ---- */

static void assert_refused(const void *bytes, size_t size, const struct cairn_btf *base,
			   int expected, const char *words)
{
	struct cairn_err err = {0};
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_btf *btf;
	int rc = cairn_btf_open_mem(bytes, size, "bad.btf", &opts, &btf, &err);
	if (rc >= 0) {
		cairn_btf_close(btf);
		fail_msg("opened; expected an error with '%s'", words);
	}
	if (rc != expected || !strstr(err.msg, words))
		fail_msg("%d '%s'; expected %d '%s'", rc, err.msg, expected, words);
	assert_non_null(strstr(err.msg, "bad.btf"));
}

static void damaged_header_is_refused_by_offset(void **state)
{
	static const struct {
		uint32_t off, value;
		int code;
		const char *words;
	} cases[] = {
		{0, 0x00010000, -EBADMSG, "magic"},
		{0, 0x0002eb9f, -EOPNOTSUPP, "version 2"},
		{4, 20, -EBADMSG, "header's size"},
		{4, 1u << 30, -EBADMSG, "header's size"},
		{8, 2, -EBADMSG, "4-byte words"},
		{8, 0xfffffffc, -EBADMSG, "type section"},
		{12, 0xfffffffc, -EBADMSG, "type section"},
		{16, 0xfffffff0, -EBADMSG, "string section ends"},
		{16, 4, -EBADMSG, "offset 0x8: the type section does not end before the strings"},
		{24, 4, -EBADMSG, "offset 0x18: the layout section is not between"},
		{20, 0xfffffff0, -EBADMSG, "string section ends"},
		{20, 0, -EBADMSG, "split BTF"},
		{20, 2, -EBADMSG, "has no end"},
		{24, 0, -EBADMSG, "not between"},
		{24, 1, -EBADMSG, "4-byte entries"},
		{28, 0xfffffffc, -EBADMSG, "not between"},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct blob b = each_kind((struct cairn_btf_build_opts){.layout = true});
		memcpy((char *)b.bytes + cases[i].off, &cases[i].value, 4);
		assert_refused(b.bytes, b.size, NULL, cases[i].code, cases[i].words);
		blob_free(&b);
	}
}

static void layout_that_lies_is_refused(void **state)
{
	struct blob b = each_kind((struct cairn_btf_build_opts){.layout = true});
	uint8_t *entry = (uint8_t *)b.bytes + b.btf->layout_off + 4 * CAIRN_BTF_STRUCT;
	entry[1] = 16;
	assert_refused(b.bytes, b.size, NULL, -EBADMSG, "gives a STRUCT");
	blob_free(&b);
}

static void record_that_leaves_the_section_is_named(void **state)
{
	struct cairn_btf_builder *builder_ = builder((struct cairn_btf_build_opts){0});
	add_int(builder_);
	ADD(array, builder_, 1, 1, 3);
	struct blob b = finish(builder_, NULL);
	uint32_t info = BTF_INFO(CAIRN_BTF_STRUCT, 0, 2);
	memcpy((char *)b.bytes + 24 + 16 + 4, &info, 4);
	assert_refused(b.bytes, b.size, NULL, -EBADMSG, "record 2 (STRUCT) at offset 0x28");
	blob_free(&b);
}

static void unknown_kind_needs_a_layout_anywhere_in_the_chain(void **state)
{
	struct blob kernel = each_kind((struct cairn_btf_build_opts){.layout = true});
	/* A kernel that knows kind 23: 4 bytes and 8 per element. It is its layout that grows. */
	size_t at = kernel.btf->layout_off + 4 * kernel.btf->n_layout,
	       more = 4 * (24 - kernel.btf->n_layout);
	uint8_t *bytes = calloc(1, kernel.size + more);
	memcpy(bytes, kernel.bytes, at);
	static const uint8_t loc[] = {4, 4, 0, 0, 0, 4, 0, 0, 0, 12, 0, 0, 4, 8, 0, 0};
	memcpy(bytes + at, loc, more);
	memcpy(bytes + at + more, (char *)kernel.bytes + at, kernel.size - at);
	((uint32_t *)bytes)[4] += more;
	((uint32_t *)bytes)[7] += more;
	struct cairn_btf *knows = must_open_mem(bytes, kernel.size + more, NULL);
	struct blob module = each_kind((struct cairn_btf_build_opts){.base = knows});

	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = module.btf});
	struct cairn_btf_type t = {.kind = 23, .vlen = 2}, back;
	uint32_t words[] = {1, 2, 3, 4, 5}, id;
	assert_int_equal(cairn_btf_add_record(b, &t, words, 5, &id), -EINVAL);
	btf_builder_learn_kinds(b, module.btf);
	assert_int_equal(cairn_btf_add_record(b, &t, words, 5, &id), 0);
	uint32_t after = add_int(b);
	struct blob strange = finish(b, module.btf);
	back = must_have(strange.btf, id);
	assert_int_equal(back.kind, 23);
	assert_int_equal(back.n_words, 5);
	assert_string_equal(must_have(strange.btf, after).name, "int");

	struct blob plain = each_kind((struct cairn_btf_build_opts){0});
	assert_refused(strange.bytes, strange.size, plain.btf, -EOPNOTSUPP, "kind 23 is not known");
	blob_free(&plain);
	blob_free(&strange);
	blob_free(&module);
	cairn_btf_close(knows);
	free(bytes);
	blob_free(&kernel);
}

static void wrong_base_is_refused(void **state)
{
	struct blob kernel = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	ADD(fwd, b, str(b, "something_else_that_is_long"), false);
	for (int i = 0; i < 40; i++)
		ADD(ref, b, CAIRN_BTF_PTR, 0, 1);
	struct blob other = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = kernel.btf});
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "node"), 4);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "own"), 4);
	struct blob module = finish(b, kernel.btf);
	assert_refused(module.bytes, module.size, NULL, -EBADMSG, "needs its base");
	assert_refused(module.bytes, module.size, other.btf, -EBADMSG, "not the base");
	blob_free(&module);
	blob_free(&other);
	blob_free(&kernel);
}

static void cut_at_any_byte_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		struct blob b = each_kind(forms[i]);
		for (size_t n = 0; n < b.size; n++) {
			char *cut = malloc(n ? n : 1);
			memcpy(cut, b.bytes, n);
			struct cairn_btf *btf;
			struct cairn_err err = {0};
			assert_int_equal(cairn_btf_open_mem(cut, n, "cut", NULL, &btf, &err),
					 -EBADMSG);
			free(cut);
		}
		blob_free(&b);
	}
}

static void no_memory_is_said(void **state)
{
	struct blob base = each_kind((struct cairn_btf_build_opts){.big_endian = true});
	for (unsigned int n = 1;; n++) {
		struct cairn_btf_open_opts opts = {.size = sizeof(opts)};
		struct cairn_btf *btf = NULL;
		alloc_fail_at(n);
		int rc = cairn_btf_open_mem(base.bytes, base.size, "built", &opts, &btf, NULL);
		if (rc == 0)
			cairn_btf_find(btf, "node", 0, 0);
		bool failed = alloc_fail_end();
		if (rc == 0)
			cairn_btf_close(btf);
		else
			assert_int_equal(rc, -ENOMEM);
		if (!failed)
			break;
	}
	for (unsigned int n = 1;; n++) {
		struct cairn_btf_build_opts opts = {.size = sizeof(opts), .base = base.btf};
		struct cairn_btf_builder *b = NULL;
		void *bytes = NULL;
		size_t size;
		uint32_t off, id;
		alloc_fail_at(n);
		int rc = cairn_btf_builder_new(&opts, &b, NULL);
		if (rc == 0)
			rc = cairn_btf_add_string(b, "a_new_string", &off);
		if (rc == 0)
			rc = btf_add_fwd(b, off, false, &id);
		if (rc == 0)
			rc = cairn_btf_finish(b, &bytes, &size, NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		cairn_btf_builder_free(b);
		free(bytes);
		if (!failed)
			break;
	}
	blob_free(&base);
}

static void files_that_hold_no_btf_say_so(void **state)
{
	struct cairn_err err = {0};
	struct cairn_btf *btf;
	assert_int_equal(cairn_btf_open("/nonexistent", NULL, &btf, &err), -ENOENT);
	assert_int_equal(cairn_btf_open("/proc/self/exe", NULL, &btf, &err), -ENODATA);
	assert_non_null(strstr(err.msg, ".BTF"));
	assert_int_equal(cairn_btf_open("/dev/null", NULL, &btf, &err), -EOPNOTSUPP);
	assert_int_equal(cairn_btf_open("/tmp", NULL, &btf, &err), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_built_reads_back),
		cmocka_unit_test(bytes_are_those_of_the_specification),
		cmocka_unit_test(built_again_it_has_the_same_bytes),
		cmocka_unit_test(kernel_btf_built_again_has_the_same_bytes),
		cmocka_unit_test(both_byte_orders_and_unaligned_bytes_read_the_same),
		cmocka_unit_test(equal_strings_have_one_offset),
		cmocka_unit_test(split_blob_uses_ids_and_strings_of_all_its_bases),
		cmocka_unit_test(find_gives_all_ids_of_a_name_own_ones_first),
		cmocka_unit_test(more_than_65535_elements_are_one_record),
		cmocka_unit_test(location_reads_back_in_both_dialects),
		cmocka_unit_test(malformed_location_reads_as_none),
		cmocka_unit_test(damaged_header_is_refused_by_offset),
		cmocka_unit_test(layout_that_lies_is_refused),
		cmocka_unit_test(record_that_leaves_the_section_is_named),
		cmocka_unit_test(unknown_kind_needs_a_layout_anywhere_in_the_chain),
		cmocka_unit_test(wrong_base_is_refused),
		cmocka_unit_test(cut_at_any_byte_is_refused),
		cmocka_unit_test(no_memory_is_said),
		cmocka_unit_test(files_that_hold_no_btf_say_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
