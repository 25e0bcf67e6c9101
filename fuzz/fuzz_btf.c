/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF that stands alone: header, layout, records of all kinds up to 19, in both byte orders. */
#include "fuzz.h"

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
	struct cairn_btf_member members[] = {{seed_string(b, "next"), ptr, 0, 0}, {seed_string(b, "bits"), i, 64, 5}};
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "list"), 16, members, 2, &s);
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "list"), 16, members, 2, &s);
	btf_add_fwd(b, seed_string(b, "list"), false, &v);
	btf_add_ref(b, CAIRN_BTF_CONST, 0, v, &v);
	btf_add_array(b, v, i, 3, &v);
	struct cairn_btf_enumerator values[] = {{seed_string(b, "A"), -1}, {seed_string(b, "B"), 1ll << 40}};
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

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (int form = 0; form < 4; form++) {
		struct cairn_btf_builder *b = seed_builder(
			(struct cairn_btf_build_opts){.layout = form & 1, .big_endian = form & 2});
		add_types(b);
		put_blob(b, put);
	}
}
