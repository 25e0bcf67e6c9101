/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding: hostile BTF as types, and hostile bytes as records of every one of them
 *
 * The input is a length of 2 bytes, a BTF blob of that length, and bytes of a record. Types that
 * lie about their sizes, contain themselves or repeat one another without end, records that are
 * cut: text must come out, JSON must be JSON, and accessors of all languages must be written or
 * refused.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/bind.h>
#include <cairn/btf.h>
#include <cairn/decode.h>

#include "btf/types.h"
#include "types/build.h"

static void insist(bool holds)
{
	if (!holds)
		abort();
}

/*
 * No control character is in it, and of JSON, in which names are quoted: brackets and quotes are
 * closed.
 */
struct shape {
	bool json;
	uint64_t depth;
	bool in_string, escaped;
};

static int look_at(void *ctx, const char *text, size_t n)
{
	struct shape *s = ctx;

	for (size_t i = 0; i < n; i++) {
		insist((unsigned char)text[i] >= 0x20);
		if (!s->json)
			continue;
		if (s->in_string && s->escaped)
			s->escaped = false;
		else if (s->in_string && text[i] == '\\')
			s->escaped = true;
		else if (text[i] == '"')
			s->in_string = !s->in_string;
		else if (!s->in_string && (text[i] == '{' || text[i] == '['))
			s->depth++;
		else if (!s->in_string && (text[i] == '}' || text[i] == ']'))
			insist(s->depth-- > 0);
	}
	return 0;
}

/* The record in memory of its own, so that a read beyond it is seen. */
static void decode(const struct cairn_types *types, uint32_t id, const uint8_t *bytes, size_t n,
		   const struct cairn_value_opts *opts)
{
	char buf[CAIRN_TEXT_OUT_MIN];
	struct shape shape = {.json = opts->style == CAIRN_VALUE_JSON};
	struct cairn_text_out out = {
		.buf = buf, .size = sizeof(buf), .flush = look_at, .ctx = &shape};
	struct cairn_decode *d;

	if (cairn_decode_new(types, id, opts, &d, NULL) < 0)
		return;
	uint8_t *copy = malloc(n ? n : 1);
	if (copy) {
		if (n)
			memcpy(copy, bytes, n);
		insist(cairn_decode_run(d, copy, n, &out) == 0);
		look_at(&shape, buf, out.n);
		insist(!shape.depth && !shape.in_string);
		cairn_decode_check(d, n, CAIRN_RECORD_PERF, NULL);
	}
	free(copy);
	cairn_decode_free(d);
}

static void bind_all(const struct cairn_types *types, uint32_t id, bool big_endian)
{
	struct cairn_bind_opts opts = {.size = sizeof(opts), .big_endian = big_endian};
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	for (int lang = CAIRN_BIND_C; out && lang <= CAIRN_BIND_TYPESCRIPT; lang++) {
		cairn_bind_write(types, &id, 1, (enum cairn_bind_lang)lang, &opts, out, NULL);
		opts.accessors = true;
		opts.names_of = (enum cairn_bind_lang)lang;
		cairn_bind_write(types, &id, 1, CAIRN_BIND_JSON, &opts, out, NULL);
	}
	if (out)
		fclose(out);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	/*
	 * A whole kernel's worth of unions in each other would be the fuzzer's slowest input and
	 * teach nothing.
	 */
	enum { TYPES_MAX = 24, ELEMS_MAX = 64, RECORD_MAX = 256 };
	struct cairn_btf *btf;
	struct cairn_types *types;

	if (size < 2)
		return 0;
	size_t n_btf = bytes[0] | (size_t)bytes[1] << 8;
	if (n_btf > size - 2)
		n_btf = size - 2;
	const uint8_t *record = bytes + 2 + n_btf;
	size_t n_record = size - 2 - n_btf < RECORD_MAX ? size - 2 - n_btf : RECORD_MAX;
	if (cairn_btf_open_mem(bytes + 2, n_btf, "input", NULL, &btf, NULL) < 0)
		return 0;
	bool big = cairn_btf_is_big_endian(btf);
	static const struct cairn_value_arm arm = {
		.of = "u", .arm = "i", .when = "k", .value = "1"};
	struct cairn_value_opts text = {
		.size = sizeof(text), .big_endian = big, .max_elems = ELEMS_MAX, .padding = true};
	struct cairn_value_opts json = {.size = sizeof(json),
					.style = CAIRN_VALUE_JSON,
					.big_endian = big,
					.max_elems = ELEMS_MAX,
					.max_depth = 64,
					.arms = &arm,
					.n_arms = 1};
	struct cairn_value_opts plain = json;
	plain.n_arms = 0;
	plain.max_depth = 8;
	if (btf_types(btf, 8, &types, NULL) == 0) {
		for (uint32_t id = 1; id < cairn_types_n_types(types) && id < TYPES_MAX; id++) {
			decode(types, id, record, n_record, &text);
			decode(types, id, record, n_record, &json);
			decode(types, id, record, n_record, &plain);
			if (cairn_types_size(types, id) < 1 << 16)
				bind_all(types, id, big);
		}
		types_free(types);
	}
	cairn_btf_close(btf);
	return 0;
}

/* ---- seeds ---- */

struct seed {
	struct cairn_btf_builder *b;
	uint32_t last;
};

static uint32_t add(struct seed *s, uint32_t kind, const char *name, uint32_t ref, bool kflag,
		    const uint32_t *words, uint32_t n_words, uint32_t vlen)
{
	struct cairn_btf_type t = {.kind = kind, .kflag = kflag, .vlen = vlen, .ref = ref};

	insist(cairn_btf_add_string(s->b, name, &t.name_off) == 0);
	insist(cairn_btf_add_record(s->b, &t, words, n_words, &s->last) == 0);
	return s->last;
}

static uint32_t name(struct seed *s, const char *text)
{
	uint32_t off;

	insist(cairn_btf_add_string(s->b, text, &off) == 0);
	return off;
}

static void put_seed(void (*put)(const void *bytes, size_t size), bool big_endian)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts), .big_endian = big_endian};
	struct seed s;
	void *blob;
	size_t n;

	insist(cairn_btf_builder_new(&opts, &s.b, NULL) == 0);
	uint32_t i = add(&s, CAIRN_BTF_INT, "int", 4, false,
			 (uint32_t[]){CAIRN_BTF_INT_SIGNED << 24 | 32}, 1, 0);
	uint32_t c = add(&s, CAIRN_BTF_INT, "char", 1, false,
			 (uint32_t[]){CAIRN_BTF_INT_SIGNED << 24 | 8}, 1, 0);
	uint32_t d = add(&s, CAIRN_BTF_FLOAT, "double", 8, false, NULL, 0, 0);
	uint32_t text = add(&s, CAIRN_BTF_ARRAY, "", 0, false, (uint32_t[]){c, i, 8}, 3, 0);
	uint32_t tail = add(&s, CAIRN_BTF_ARRAY, "", 0, false, (uint32_t[]){i, i, 0}, 3, 0);
	uint32_t e = add(&s, CAIRN_BTF_ENUM, "e", 4, false,
			 (uint32_t[]){name(&s, "A"), 1, name(&s, "B"), 4}, 4, 2);
	uint32_t u = add(&s, CAIRN_BTF_UNION, "u", 8, false,
			 (uint32_t[]){name(&s, "i"), i, 0, name(&s, "d"), d, 0}, 6, 2);
	uint32_t many = add(&s, CAIRN_BTF_ARRAY, "", 0, false, (uint32_t[]){u, i, 2}, 3, 0);
	/* Members with widths in the upper 8 bits. */
	add(&s, CAIRN_BTF_STRUCT, "s", 44, true,
	    (uint32_t[]){name(&s, "k"), e, 0, name(&s, "b"), i, 5u << 24 | 35, name(&s, "u"), u, 64,
			 name(&s, "text"), text, 128, name(&s, "many"), many, 192, name(&s, "tail"),
			 tail, 352},
	    18, 6);
	insist(cairn_btf_finish(s.b, &blob, &n, NULL) == 0);
	uint8_t *whole = malloc(2 + n + 64);
	insist(whole != NULL);
	whole[0] = (uint8_t)n;
	whole[1] = (uint8_t)(n >> 8);
	memcpy(whole + 2, blob, n);
	for (size_t k = 0; k < 64; k++)
		whole[2 + n + k] = (uint8_t)(k * 7 + 1);
	put(whole, 2 + n + 64);
	free(whole);
	free(blob);
	cairn_btf_builder_free(s.b);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_seed(put, false);
	put_seed(put, true);
}
