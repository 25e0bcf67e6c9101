/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blobs for the tests of BTF: built in a few words each, opened or failed with the library's story.
 */
#ifndef BTF_FIXTURE_H
#define BTF_FIXTURE_H

#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include <cairn/btf.h>

#include "btf/btf.h"
#include "btf/build.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* A blob with its bytes. */
struct blob {
	void *bytes;
	size_t size;
	struct cairn_btf *btf;
};

static inline void blob_free(struct blob *b)
{
	cairn_btf_close(b->btf);
	free(b->bytes);
	*b = (struct blob){0};
}

/* What cairn_btf_check_for_kernel() takes. */
static inline uint32_t running_linux(void)
{
	struct utsname here;
	unsigned int major = 0, minor = 0;
	assert_int_equal(uname(&here), 0);
	assert_int_equal(sscanf(here.release, "%u.%u", &major, &minor), 2);
	return CAIRN_BTF_LINUX(major, minor);
}

static inline struct cairn_btf *must_open_mem(const void *bytes, size_t size,
					      const struct cairn_btf *base)
{
	struct cairn_err err = {0};
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_btf *btf;
	if (cairn_btf_open_mem(bytes, size, "built", &opts, &btf, &err) < 0)
		fail_msg("%s", err.msg);
	return btf;
}

static inline struct cairn_btf_builder *builder(struct cairn_btf_build_opts opts)
{
	struct cairn_err err = {0};
	struct cairn_btf_builder *b;
	opts.size = sizeof(opts);
	if (cairn_btf_builder_new(&opts, &b, &err) < 0)
		fail_msg("%s", err.msg);
	return b;
}

/* The builder's blob, opened on @base; the builder is freed. */
static inline struct blob finish(struct cairn_btf_builder *b, const struct cairn_btf *base)
{
	struct cairn_err err = {0};
	struct blob blob = {0};
	if (cairn_btf_finish(b, &blob.bytes, &blob.size, &err) < 0)
		fail_msg("%s", err.msg);
	cairn_btf_builder_free(b);
	blob.btf = must_open_mem(blob.bytes, blob.size, base);
	return blob;
}

static inline uint32_t str(struct cairn_btf_builder *b, const char *s)
{
	uint32_t off;
	assert_int_equal(cairn_btf_add_string(b, s, &off), 0);
	return off;
}

/* ADD(int, b, str(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32): the id of what btf_add_int() adds. */
#define ADD(what, b, ...)                                                                          \
	({                                                                                         \
		uint32_t id_;                                                                      \
		assert_int_equal(btf_add_##what(b, __VA_ARGS__, &id_), 0);                         \
		id_;                                                                               \
	})

/* Kinds that nobody knows, as a layout section tells them. */
enum { KIND_OF_8_BYTES = 40, KIND_OF_4_BYTES_AND_8_PER_ELEMENT = 41 };

static inline void learn_made_up_kinds(struct cairn_btf_builder *b)
{
	uint8_t layout[4 * 42] = {0};
	struct cairn_btf teacher = {.layout = layout, .n_layout = 42};
	layout[4 * KIND_OF_8_BYTES] = 8;
	layout[4 * KIND_OF_4_BYTES_AND_8_PER_ELEMENT] = 4;
	layout[4 * KIND_OF_4_BYTES_AND_8_PER_ELEMENT + 1] = 8;
	btf_builder_learn_kinds(b, &teacher);
}

/* As many words as kind and vlen demand. */
static inline uint32_t add_made_up(struct cairn_btf_builder *b, uint32_t kind, uint32_t vlen,
				   const uint32_t *words)
{
	struct cairn_btf_type t = {.kind = kind, .vlen = vlen};
	uint32_t id;
	assert_int_equal(
		cairn_btf_add_record(b, &t, words, kind == KIND_OF_8_BYTES ? 2 : 1 + 2 * vlen, &id),
		0);
	return id;
}

static inline uint32_t add_int(struct cairn_btf_builder *b)
{
	return ADD(int, b, str(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32);
}

static inline struct cairn_btf_type must_have(const struct cairn_btf *btf, uint32_t id)
{
	struct cairn_btf_type t;
	if (!cairn_btf_type(btf, id, &t))
		fail_msg("no record %u", id);
	return t;
}

/*
 * One record of each kind, in kind order where references allow; FUNCs, places and all. Returns the
 * id of the FUNC.
 */
static inline uint32_t add_each_kind(struct cairn_btf_builder *b, bool with_loc)
{
	uint32_t i = add_int(b);
	uint32_t ptr = ADD(ref, b, CAIRN_BTF_PTR, 0, i);
	uint32_t array = ADD(array, b, i, i, 7);
	struct cairn_btf_member members[] = {{str(b, "next"), ptr, 0, 0},
					     {str(b, "low"), i, 64, 3},
					     {str(b, "all"), array, 96, 0}};
	uint32_t s = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "node"), 40, members, 3);
	struct cairn_btf_member wide[] = {{str(b, "a"), i, 0, 0}, {str(b, "b"), array, 0, 0}};
	ADD(struct, b, CAIRN_BTF_UNION, str(b, "either"), 28, wide, 2);
	struct cairn_btf_enumerator values[] = {{str(b, "MINUS"), -1}, {str(b, "ONE"), 1}};
	ADD(enum, b, str(b, "small"), 4, true, values, 2);
	struct cairn_btf_enumerator big[] = {{str(b, "HIGH"), INT64_MIN}};
	ADD(enum, b, str(b, "big"), 8, false, big, 1);
	ADD(fwd, b, str(b, "later"), true);
	uint32_t t = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "node_t"), s);
	uint32_t v = ADD(ref, b, CAIRN_BTF_VOLATILE, 0, t);
	uint32_t c = ADD(ref, b, CAIRN_BTF_CONST, 0, v);
	uint32_t p = ADD(ref, b, CAIRN_BTF_PTR, 0, c);
	uint32_t r = ADD(ref, b, CAIRN_BTF_RESTRICT, 0, p);
	struct cairn_btf_param params[] = {{str(b, "first"), r}, {str(b, "second"), i}, {0, 0}};
	uint32_t proto = ADD(func_proto, b, i, params, 3);
	uint32_t func = ADD(func, b, str(b, "visit"), CAIRN_BTF_GLOBAL, proto);
	uint32_t var = ADD(var, b, str(b, "count"), CAIRN_BTF_STATIC, i);
	struct cairn_btf_secinfo vars[] = {{var, 16, 4}};
	ADD(datasec, b, str(b, ".data"), 64, vars, 1);
	ADD(float, b, str(b, "double"), 8);
	ADD(decl_tag, b, str(b, "user"), s, 1, false);
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "rcu"), i);
	ADD(ref, b, CAIRN_BTF_PTR, 0, tag);
	if (!with_loc)
		return func;
	struct cairn_btf_loc_param in_reg = {
		.flags = CAIRN_BTF_LOC_REG, .size = 8, .n_regs = 1, .reg = {5}};
	struct cairn_btf_loc_param minus = {
		.flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_SIGNED, .size = 4, .value = -1};
	uint32_t slots[] = {ADD(loc_param, b, &in_reg), ADD(loc_param, b, &minus)};
	uint32_t loc_proto = ADD(loc_proto, b, slots, 2);
	struct cairn_btf_loc locs[] = {{.func = func,
					.loc_proto = loc_proto,
					.offset = 64,
					.name_off = str(b, "visit"),
					.func_proto = proto},
				       {.func = func,
					.loc_proto = 0,
					.offset = 128,
					.name_off = str(b, "visit"),
					.func_proto = proto}};
	ADD(locsec, b, str(b, ".text"), locs, 2);
	return func;
}

static inline struct blob each_kind(struct cairn_btf_build_opts opts)
{
	struct cairn_btf_builder *b = builder(opts);
	add_each_kind(b, opts.dialect != CAIRN_BTF_NO_LOC);
	return finish(b, opts.base);
}

#endif
