/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A base and a blob split from it. The input is the size of the base as 32 bits, lowest byte first,
 * the base, the split blob.
 */
#include "fuzz.h"

#include "btf_touch.h"

static struct cairn_btf *open_on(const uint8_t *bytes, size_t size, const struct cairn_btf *base)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_btf *btf;
	struct cairn_err err;
	return cairn_btf_open_mem(bytes, size, base ? "split" : "base", &opts, &btf, &err) < 0
		       ? NULL
		       : btf;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (size < 4)
		return 0;
	size_t base_size = bytes[0] | bytes[1] << 8 | bytes[2] << 16 | (size_t)bytes[3] << 24;
	bytes += 4;
	size -= 4;
	if (base_size > size)
		return 0;
	struct cairn_btf *base = open_on(bytes, base_size, NULL);
	if (!base)
		return 0;
	struct cairn_btf *split = open_on(bytes + base_size, size - base_size, base);
	if (split)
		touch_btf(split);
	cairn_btf_close(split);
	cairn_btf_close(base);
	return 0;
}

/* struct dev { struct priv *p; }, and struct priv as defined, or only declared. */
static void add_dev(struct cairn_btf_builder *b, bool defined)
{
	uint32_t ptr = btf_builder_next_id(b), id;
	btf_add_ref(b, CAIRN_BTF_PTR, 0, ptr + 1, &id);
	if (defined)
		btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "priv"), 4, NULL, 0, &id);
	else
		btf_add_fwd(b, seed_string(b, "priv"), false, &id);
	struct cairn_btf_member m = {seed_string(b, "p"), ptr, 0, 0};
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "dev"), 8, &m, 1, &id);
}

static void append(uint8_t *seed, size_t *at, struct cairn_btf_builder *b)
{
	void *bytes;
	size_t size;
	if (cairn_btf_finish(b, &bytes, &size, NULL) < 0)
		abort();
	memcpy(seed + *at, bytes, size);
	*at += size;
	free(bytes);
	cairn_btf_builder_free(b);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (int form = 0; form < 4; form++) {
		uint8_t seed[4096] = {0};
		size_t at = 4;
		struct cairn_btf_builder *b =
			seed_builder((struct cairn_btf_build_opts){.layout = form & 1});
		add_dev(b, form & 2);
		append(seed, &at, b);
		seed[0] = (uint8_t)(at - 4);
		seed[1] = (uint8_t)((at - 4) >> 8);
		struct cairn_btf *base = open_on(seed + 4, at - 4, NULL);
		if (!base)
			abort();
		b = seed_builder((struct cairn_btf_build_opts){.base = base});
		uint32_t id;
		add_dev(b, true);
		btf_add_ref(b, CAIRN_BTF_TYPEDEF, seed_string(b, "own"), 3, &id);
		append(seed, &at, b);
		put(seed, at);
		cairn_btf_close(base);
	}
}
