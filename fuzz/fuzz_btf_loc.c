/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF with LOC kinds of both dialects, which nothing but the records may tell apart. */
#include "fuzz.h"

#include "btf_touch.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	/* What the caller says of the dialect matters too. */
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		struct cairn_btf_open_opts opts = {.size = sizeof(opts), .dialect = dialect};
		struct cairn_btf *btf;
		struct cairn_err err;
		if (cairn_btf_open_mem(bytes, size, "input", &opts, &btf, &err) < 0)
			continue;
		touch_btf(btf);
		cairn_btf_close(btf);
	}
	return 0;
}

static void add_sites(struct cairn_btf_builder *b)
{
	/* clang-format off */
	static const struct cairn_btf_loc_param params[] = {
		{.flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_SIGNED, .size = 4, .value = -7},
		{.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF | CAIRN_BTF_LOC_OFFSET,
		 .size = 8, .n_regs = 1, .reg = {7}, .offset = -8},
		{.flags = CAIRN_BTF_LOC_REG, .size = 8, .n_regs = 1, .reg = {5}, .continues = true},
		{.flags = CAIRN_BTF_LOC_REG, .size = 16, .n_regs = 2, .reg = {5, 4}},
		{.flags = CAIRN_BTF_LOC_CONST | CAIRN_BTF_LOC_ADDR, .size = 8, .value = 4096},
	};
	/* clang-format on */
	uint32_t i, p, f, slots[5], proto, id;
	btf_add_int(b, seed_string(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32, &i);
	struct cairn_btf_param formals[] = {{seed_string(b, "a"), i},
					    {seed_string(b, "b"), i},
					    {seed_string(b, "c"), i},
					    {seed_string(b, "d"), i},
					    {seed_string(b, "e"), i}};
	btf_add_func_proto(b, i, formals, 5, &p);
	btf_add_func(b, seed_string(b, "f"), CAIRN_BTF_STATIC, p, &f);
	for (int n = 0; n < 5; n++)
		if (btf_add_loc_param(b, &params[n], &slots[n]) < 0)
			slots[n] = 0;
	btf_add_loc_proto(b, slots, 5, &proto);
	/* clang-format off */
	struct cairn_btf_loc locs[] = {
		{.func = f, .loc_proto = proto, .offset = 16, .name_off = seed_string(b, "f"), .func_proto = p},
		{.func = f, .loc_proto = 0, .offset = 99, .name_off = seed_string(b, "g"), .func_proto = p}};
	/* clang-format on */
	btf_add_locsec(b, seed_string(b, ".text"), locs, 2, &id);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (int form = 0; form < 8; form++) {
		struct cairn_btf_builder *b = seed_builder((struct cairn_btf_build_opts){
			.dialect = form & 1 ? CAIRN_BTF_LOC_V1 : CAIRN_BTF_LOC_N,
			.layout = form & 2,
			.big_endian = form & 4});
		add_sites(b);
		put_blob(b, put);
	}
}
