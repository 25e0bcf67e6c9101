/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * BTF that stands alone: header, layout, records of all kinds up to 19 and of kinds that nobody
 * knows, in both byte orders.
 */
#include "fuzz.h"

#include "btf/btf.h"
#include "btf_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_btf *btf;
	struct cairn_err err;
	if (cairn_btf_open_mem(bytes, size, "input", NULL, &btf, &err) < 0)
		return 0;
	touch_btf(btf);
	cairn_btf_close(btf);
	return 0;
}

static void add_types(struct cairn_btf_builder *b)
{
	uint32_t i, ptr, s, p, f, v;
	btf_add_int(b, seed_string(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32, &i);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, i + 2, &ptr);
	struct cairn_btf_member members[] = {{seed_string(b, "next"), ptr, 0, 0},
					     {seed_string(b, "bits"), i, 64, 5}};
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "list"), 16, members, 2, &s);
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "list"), 16, members, 2, &s);
	btf_add_fwd(b, seed_string(b, "list"), false, &v);
	btf_add_ref(b, CAIRN_BTF_CONST, 0, v, &v);
	btf_add_array(b, v, i, 3, &v);
	struct cairn_btf_enumerator values[] = {{seed_string(b, "A"), -1},
						{seed_string(b, "B"), 1ll << 40}};
	btf_add_enum(b, seed_string(b, "small"), 4, true, values, 1, &v);
	btf_add_enum(b, seed_string(b, "large"), 8, true, values, 2, &v);
	struct cairn_btf_param params[] = {{seed_string(b, "p"), ptr}, {0, 0}};
	btf_add_func_proto(b, i, params, 2, &p);
	btf_add_func(b, seed_string(b, "f"), CAIRN_BTF_GLOBAL, p, &f);
	btf_add_decl_tag(b, seed_string(b, "tag"), f, 0, false, &v);
	btf_add_var(b, seed_string(b, "v"), CAIRN_BTF_STATIC, i, &v);
	struct cairn_btf_secinfo vars[] = {{v, 0, 4}};
	btf_add_datasec(b, seed_string(b, ".data"), 8, vars, 1, &v);
	btf_add_float(b, seed_string(b, "double"), 8, &v);
	btf_add_ref(b, CAIRN_BTF_TYPE_TAG, seed_string(b, "rcu"), i, &v);
	btf_add_ref(b, CAIRN_BTF_TYPEDEF, seed_string(b, "t"), v, &v);
}

/*
 * A struct with fields that a kernel knows: a lock, a node and a head that says what it contains.
 */
static void add_fields(struct cairn_btf_builder *b)
{
	static const struct {
		const char *name;
		uint32_t bytes;
	} known[] = {{"bpf_spin_lock", 4}, {"bpf_list_head", 16}, {"bpf_list_node", 24}};
	uint32_t id[3], s, tag;
	for (int i = 0; i < 3; i++)
		btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, known[i].name), known[i].bytes,
			       NULL, 0, &id[i]);
	struct cairn_btf_member members[] = {{seed_string(b, "head"), id[1], 0, 0},
					     {seed_string(b, "lock"), id[0], 128, 0},
					     {seed_string(b, "node"), id[2], 192, 0}};
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "elem"), 48, members, 3, &s);
	btf_add_decl_tag(b, seed_string(b, "contains:elem:node"), s, 0, false, &tag);
}

/* Two kinds that only the layout section knows, between types of which some are there twice. */
static void add_unknown_kinds(struct cairn_btf_builder *b)
{
	enum { FIXED = 40, ELEMENTS = 41, N = 42 };
	static const uint8_t layout[4 * N] = {
		[4 * FIXED] = 8, [4 * ELEMENTS] = 4, [4 * ELEMENTS + 1] = 8};
	static const struct cairn_btf teacher = {.layout = layout, .n_layout = N};
	static const uint32_t words[] = {1, 0x10000, 0, 0x20000, 2};
	struct cairn_btf_type fixed = {.kind = FIXED}, elements = {.kind = ELEMENTS, .vlen = 2};
	uint32_t id;
	btf_builder_learn_kinds(b, &teacher);
	cairn_btf_add_record(b, &fixed, words, 2, &id);
	add_types(b);
	cairn_btf_add_record(b, &elements, words, 5, &id);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, id, &id);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (int form = 0; form < 6; form++) {
		bool unknown = form > 3;
		struct cairn_btf_builder *b = seed_builder((struct cairn_btf_build_opts){
			.layout = unknown || form & 1, .big_endian = form & (unknown ? 1 : 2)});
		add_types(b);
		if (form == 1)
			add_fields(b);
		if (unknown)
			add_unknown_kinds(b);
		put_blob(b, put);
	}
}
