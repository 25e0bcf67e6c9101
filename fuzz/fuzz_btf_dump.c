/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing BTF: whatever the reader opens can be printed in every form, with bounded text and
 * without a fault. The input is split BTF on the first seed's blob when its first byte, which is
 * not part of it, is odd.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "btf/build.h"

/*
 * Lines that one byte of input may become: C's nameless structs and prototypes are printed once for
 * each user.
 */
enum { TEXT_PER_BYTE = 64 * 1024, TEXT_MORE = 1 << 16 };

static void insist(bool holds)
{
	if (!holds)
		abort();
}

static void dump(const struct cairn_btf *btf, enum cairn_btf_format format, const uint32_t *ids,
		 size_t n_ids, int machine, size_t input)
{
	struct cairn_err err = {0};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return;
	int r = cairn_btf_dump(btf, format, ids, n_ids, machine, out, &err);
	fclose(out);
	insist(r == 0 || (r == err.code && err.msg[0]));
	insist(size <= input * TEXT_PER_BYTE + TEXT_MORE);
	free(text);
}

static void dump_all(const struct cairn_btf *btf, size_t input)
{
	uint32_t last = cairn_btf_end_id(btf) - 1;

	dump(btf, CAIRN_BTF_RAW, NULL, 0, 0, input);
	dump(btf, CAIRN_BTF_PRETTY, NULL, 0, EM_AARCH64, input);
	dump(btf, CAIRN_BTF_C, NULL, 0, 0, input);
	dump(btf, CAIRN_BTF_C, NULL, 0, EM_386, input);
	dump(btf, CAIRN_BTF_C, &last, 1, 0, input);
}

/* ---- seeds ---- */

struct seed {
	void *bytes;
	size_t size;
};

static uint32_t str(struct cairn_btf_builder *b, const char *s)
{
	uint32_t off = 0;

	cairn_btf_add_string(b, s, &off);
	return off;
}

/* Struct, nameless union in it, bit-fields, pointers in circles, functions in parameters. */
static void put_types(struct cairn_btf_builder *b)
{
	uint32_t i, ptr, array, nameless, node, t, proto, fn, e, tag;
	struct cairn_btf_enumerator values[] = {{str(b, "A"), -1}, {str(b, "true"), 1}};

	btf_add_int(b, str(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32, &i);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, 7, &ptr);
	btf_add_array(b, i, i, 3, &array);
	struct cairn_btf_member either[] = {{str(b, "a"), i, 0, 0}, {str(b, "b"), array, 0, 0}};
	btf_add_struct(b, CAIRN_BTF_UNION, 0, 12, either, 2, &nameless);
	btf_add_enum(b, 0, 4, true, values, 2, &e);
	btf_add_ref(b, CAIRN_BTF_TYPE_TAG, str(b, "user"), i, &tag);
	struct cairn_btf_member members[] = {
		{str(b, "next"), ptr, 0, 0},      {str(b, "low"), i, 64, 3},
		{str(b, "int"), i, 72, 7},        {0, nameless, 96, 0},
		{str(b, "std::e<1>"), e, 192, 0}, {str(b, "far"), i, 2048, 0}};
	btf_add_struct(b, CAIRN_BTF_STRUCT, str(b, "node"), 264, members, 6, &node);
	btf_add_ref(b, CAIRN_BTF_TYPEDEF, str(b, "fn"), 11, &t);
	struct cairn_btf_param params[] = {{0, ptr}, {str(b, "f"), t}, {0, 0}};
	btf_add_func_proto(b, t, params, 3, &proto);
	btf_add_func(b, str(b, "run"), CAIRN_BTF_GLOBAL, proto, &fn);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, proto, &t);
	btf_add_ref(b, CAIRN_BTF_CONST, 0, t, &t);
	btf_add_fwd(b, str(b, "node"), true, &t);
	btf_add_float(b, str(b, "_Float128"), 16, &t);
}

static void put_locs(struct cairn_btf_builder *b)
{
	struct cairn_btf_loc_param p = {.flags = CAIRN_BTF_LOC_REG | CAIRN_BTF_LOC_DEREF |
						 CAIRN_BTF_LOC_OFFSET,
					.size = 8,
					.n_regs = 1,
					.reg = {7},
					.offset = -16};
	uint32_t slots[2] = {0}, proto, sec;

	btf_add_loc_param(b, &p, &slots[1]);
	btf_add_loc_proto(b, slots, 2, &proto);
	struct cairn_btf_loc loc = {.func = 10, .loc_proto = proto, .offset = 64, .func_proto = 9};
	btf_add_locsec(b, str(b, ".text"), &loc, 1, &sec);
}

static struct seed make(enum cairn_btf_dialect dialect, bool big_endian)
{
	struct cairn_btf_build_opts opts = {
		.size = sizeof(opts), .dialect = dialect, .big_endian = big_endian, .layout = true};
	struct cairn_btf_builder *b;
	struct seed seed = {0};

	if (cairn_btf_builder_new(&opts, &b, NULL) < 0)
		return seed;
	put_types(b);
	if (dialect != CAIRN_BTF_NO_LOC)
		put_locs(b);
	cairn_btf_finish(b, &seed.bytes, &seed.size, NULL);
	cairn_btf_builder_free(b);
	return seed;
}

static struct cairn_btf *base(void)
{
	static struct cairn_btf *btf;

	if (!btf) {
		static struct seed seed;
		struct cairn_btf_open_opts opts = {.size = sizeof(opts)};

		seed = make(CAIRN_BTF_NO_LOC, false);
		insist(cairn_btf_open_mem(seed.bytes, seed.size, "base", &opts, &btf, NULL) == 0);
	}
	return btf;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts)};
	struct cairn_btf *btf;

	if (!size)
		return 0;
	opts.base = bytes[0] & 1 ? base() : NULL;
	/* At an address of its own, so that reading past the end is seen. */
	uint8_t *copy = malloc(size);
	if (!copy)
		return 0;
	memcpy(copy, bytes + 1, size - 1);
	if (cairn_btf_open_mem(copy, size - 1, "input", &opts, &btf, NULL) == 0) {
		dump_all(btf, size);
		cairn_btf_close(btf);
	}
	free(copy);
	return 0;
}

static void put_seed(void (*put)(const void *bytes, size_t size), struct seed seed, uint8_t first)
{
	uint8_t *bytes = malloc(seed.size + 1);

	if (bytes && seed.bytes) {
		bytes[0] = first;
		memcpy(bytes + 1, seed.bytes, seed.size);
		put(bytes, seed.size + 1);
	}
	free(bytes);
	free(seed.bytes);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_seed(put, make(CAIRN_BTF_NO_LOC, false), 0);
	put_seed(put, make(CAIRN_BTF_LOC_N, false), 0);
	put_seed(put, make(CAIRN_BTF_LOC_N, false), 1);
	put_seed(put, make(CAIRN_BTF_LOC_V1, true), 0);
}
