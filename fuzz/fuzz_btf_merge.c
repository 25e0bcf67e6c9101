/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merging BTF
 *
 *	0   2   bytes of the first blob, little-endian
 *	2   2   bytes of the second one
 *	4   1   bit 0: the second and the third are split from the first, and only these two are merged
 *	5       the first, the second, the third blob
 *
 * The result is judged: sound blobs give a sound one that libbpf reads, with every name that they
 * had. Nothing is left in it to make one.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

#include <bpf/btf.h>
#include <bpf/libbpf.h>

#include "btf_touch.h"

/* Each input is checked, made smaller and merged many times. */
const unsigned int fuzz_places_max = 400;

enum { HEAD_SIZE = 5, MAX_BLOBS = 3 };

/* Blobs that opened, in the order in which they are merged. */
struct blobs {
	const struct cairn_btf *p[MAX_BLOBS];
	size_t n;
	bool sound;
};

static struct cairn_btf *open_blob(const void *bytes, size_t size, const struct cairn_btf *base)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .base = base};
	struct cairn_btf *btf;
	struct cairn_err err = {0};
	int rc = cairn_btf_open_mem(bytes, size, "input", &opts, &btf, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	return rc == 0 ? btf : NULL;
}

/* ---- what must hold ---- */

static void complain(void *ctx, uint32_t id, uint64_t off, const char *text)
{
	fprintf(stderr, "type %u at %llu: %s\n", id, (unsigned long long)off, text);
}

static bool is_thing(uint32_t kind)
{
	return kind == CAIRN_BTF_VAR || kind == CAIRN_BTF_DATASEC || kind == CAIRN_BTF_LOCSEC;
}

static uint32_t count_things(const struct cairn_btf *btf)
{
	uint32_t n = 0;
	struct cairn_btf_type t;
	for (uint32_t id = cairn_btf_start_id(btf); id < cairn_btf_end_id(btf); id++)
		n += cairn_btf_type(btf, id, &t) && is_thing(t.kind);
	return n;
}

/* Things are never made one, and nothing is made up. */
static void check_numbers(const struct blobs *in, const struct cairn_btf *out)
{
	uint32_t things = 0, own = 0;
	for (size_t i = 0; i < in->n; i++) {
		things += count_things(in->p[i]);
		own += cairn_btf_end_id(in->p[i]) - cairn_btf_start_id(in->p[i]);
	}
	assert(count_things(out) == things);
	assert(cairn_btf_end_id(out) - cairn_btf_start_id(out) <= own);
}

static bool has_like(const struct cairn_btf *btf, const struct cairn_btf_type *like)
{
	struct cairn_btf_type t;
	for (uint32_t id = 0; (id = cairn_btf_find(btf, like->name, like->kind, id)) != 0;)
		if (cairn_btf_type(btf, id, &t) && t.vlen == like->vlen && t.kflag == like->kflag)
			return true;
	return false;
}

/* A declaration may be replaced by what it declares. */
static void check_names(const struct blobs *in, const struct cairn_btf *out)
{
	struct cairn_btf_type t;
	for (size_t i = 0; i < in->n; i++)
		for (uint32_t id = cairn_btf_start_id(in->p[i]); id < cairn_btf_end_id(in->p[i]);
		     id++)
			assert(!cairn_btf_type(in->p[i], id, &t) || !t.name[0] ||
			       t.kind == CAIRN_BTF_FWD || has_like(out, &t));
}

static bool is_definition_of(const struct cairn_btf_type *fwd, const struct cairn_btf_type *t)
{
	return fwd->kind == CAIRN_BTF_FWD &&
	       t->kind == (fwd->kflag ? CAIRN_BTF_UNION : CAIRN_BTF_STRUCT);
}

static void check_map(const struct cairn_btf *from, const uint32_t *map, const struct cairn_btf *to)
{
	struct cairn_btf_type a, b;
	for (uint32_t id = cairn_btf_start_id(from); id < cairn_btf_end_id(from); id++) {
		assert(cairn_btf_type(from, id, &a) &&
		       cairn_btf_type(to, map[id - cairn_btf_start_id(from)], &b));
		assert(!strcmp(a.name, b.name) && (a.kind == b.kind || is_definition_of(&a, &b)));
	}
}

/* Dedup of what dedup gave changes nothing. */
static void check_is_final(const struct cairn_btf *btf, const void *bytes, size_t size)
{
	uint32_t *map = calloc(cairn_btf_end_id(btf), sizeof(*map));
	void *again;
	size_t again_size;
	struct cairn_err err = {0};
	assert(map);
	int rc = cairn_btf_dedup(btf, map, &again, &again_size, &err);
	assert(rc == 0);
	assert(again_size == size && !memcmp(again, bytes, size));
	for (uint32_t i = 0, first = cairn_btf_start_id(btf); i < cairn_btf_end_id(btf) - first;
	     i++)
		assert(map[i] == first + i);
	free(again);
	free(map);
}

static int stay_quiet(enum libbpf_print_level level, const char *format, va_list args)
{
	return 0;
}

/* As the oldest libbpf knows BTF. */
static void check_libbpf(const struct cairn_btf *btf)
{
	struct cairn_btf_convert_opts opts = {.size = sizeof(opts), .downgrade = true};
	struct cairn_err err = {0};
	struct cairn_btf *old;
	struct btf *theirs;
	void *bytes;
	size_t size;
	int rc = cairn_btf_convert(btf, &opts, NULL, &bytes, &size, &err);
	assert(rc == 0);
	old = open_blob(bytes, size, NULL);
	theirs = btf__new(bytes, (uint32_t)size);
	assert(old && theirs && !libbpf_get_error(theirs));
	assert(btf__type_cnt(theirs) == cairn_btf_end_id(old));
	for (uint32_t id = 1; id < cairn_btf_end_id(old); id++) {
		const struct btf_type *t = btf__type_by_id(theirs, id);
		const char *name = t ? btf__name_by_offset(theirs, t->name_off) : NULL;
		struct cairn_btf_type own;
		assert(cairn_btf_type(old, id, &own) && name && !strcmp(name, own.name));
	}
	btf__free(theirs);
	cairn_btf_close(old);
	free(bytes);
}

static void judge(const struct blobs *in, const void *bytes, size_t size)
{
	const struct cairn_btf *base = cairn_btf_base(in->p[0]);
	struct cairn_btf *out = open_blob(bytes, size, base);
	assert(out);
	check_is_final(out, bytes, size);
	check_numbers(in, out);
	if (in->sound) {
		assert(cairn_btf_check(out, complain, NULL) == 0);
		check_names(in, out);
	}
	if (in->sound && !base)
		check_libbpf(out);
	cairn_btf_close(out);
}

static void merge(const struct blobs *in)
{
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	int rc = cairn_btf_merge(in->p, in->n, &bytes, &size, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc == 0) {
		judge(in, bytes, size);
		free(bytes);
	}
}

/* Tags may be those of things, and so as many. */
static uint32_t count_types(const struct cairn_btf *btf)
{
	uint32_t n = 0;
	struct cairn_btf_type t;
	for (uint32_t id = cairn_btf_start_id(btf); id < cairn_btf_end_id(btf); id++)
		n += cairn_btf_type(btf, id, &t) && !is_thing(t.kind) &&
		     t.kind != CAIRN_BTF_DECL_TAG;
	return n;
}

/* A blob merged with itself has no type more than one that was only made smaller, @alone. */
static void check_twice(const struct cairn_btf *btf, const struct cairn_btf *alone)
{
	const struct cairn_btf *twice[] = {btf, btf};
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	if (cairn_btf_merge(twice, 2, &bytes, &size, &err) < 0)
		return;
	struct cairn_btf *out = open_blob(bytes, size, cairn_btf_base(btf));
	assert(out && count_types(out) == count_types(alone));
	cairn_btf_close(out);
	free(bytes);
}

/* One blob alone: where each of its types went. */
static void dedup(const struct cairn_btf *btf, bool sound)
{
	uint32_t *map = calloc(cairn_btf_end_id(btf), sizeof(*map));
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	assert(map);
	int rc = cairn_btf_dedup(btf, map, &bytes, &size, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc == 0) {
		struct cairn_btf *out = open_blob(bytes, size, cairn_btf_base(btf));
		assert(out);
		check_map(btf, map, out);
		check_is_final(out, bytes, size);
		if (sound)
			check_twice(btf, out);
		cairn_btf_close(out);
		free(bytes);
	}
	free(map);
}

/* ---- the target ---- */

static void add_blob(struct blobs *b, const struct cairn_btf *btf)
{
	if (!btf)
		return;
	b->sound &= cairn_btf_check(btf, NULL, NULL) == 0;
	b->p[b->n++] = btf;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_btf *all[MAX_BLOBS];
	if (size < HEAD_SIZE)
		return 0;
	libbpf_set_print(stay_quiet);
	size_t first = bytes[0] | bytes[1] << 8, second = bytes[2] | bytes[3] << 8;
	bool is_split = bytes[4] & 1;
	bytes += HEAD_SIZE;
	size -= HEAD_SIZE;
	first = first < size ? first : size;
	second = second < size - first ? second : size - first;
	all[0] = open_blob(bytes, first, NULL);
	all[1] = open_blob(bytes + first, second, is_split ? all[0] : NULL);
	all[2] = open_blob(bytes + first + second, size - first - second, is_split ? all[0] : NULL);
	struct blobs in = {.sound = true};
	for (int i = 0; i < MAX_BLOBS; i++)
		if (!is_split || i > 0)
			add_blob(&in, all[i]);
	in.sound &= !is_split || !all[0] || cairn_btf_check(all[0], NULL, NULL) == 0;
	for (size_t i = 0; i < in.n; i++)
		dedup(in.p[i], in.sound);
	if (in.n)
		merge(&in);
	for (int i = MAX_BLOBS - 1; i >= 0; i--)
		cairn_btf_close(all[i]);
	return 0;
}

/* ---- seeds ---- */

/*
 * struct list with a pointer to itself, a function of it, a variable; @variant: what differs from
 * one blob to the next.
 */
static void add_types(struct cairn_btf_builder *b, int variant)
{
	uint32_t i, ptr, s, p, f, v, first = btf_builder_next_id(b);
	btf_add_int(b, seed_string(b, "int"), 4, CAIRN_BTF_INT_SIGNED, 32, &i);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, first + 2, &ptr);
	struct cairn_btf_member members[] = {{seed_string(b, "next"), ptr, 0, 0},
					     {seed_string(b, "priv"), first + 3, 64, 0}};
	btf_add_struct(b, CAIRN_BTF_STRUCT, seed_string(b, "list"), 16, members, 2, &s);
	btf_add_ref(b, CAIRN_BTF_PTR, 0, first + 4, &v);
	if (variant & 1)
		btf_add_fwd(b, seed_string(b, "priv"), variant & 4, &v);
	else
		btf_add_struct(b, variant & 4 ? CAIRN_BTF_UNION : CAIRN_BTF_STRUCT,
			       seed_string(b, "priv"), 8, members, 1, &v);
	struct cairn_btf_param params[] = {{seed_string(b, "l"), ptr}, {seed_string(b, "n"), i}};
	btf_add_func_proto(b, i, params, 2, &p);
	btf_add_func(b, seed_string(b, variant & 2 ? "walk" : "sum"), CAIRN_BTF_GLOBAL, p, &f);
	btf_add_decl_tag(b, seed_string(b, "tag"), f, 0, false, &v);
	btf_add_var(b, seed_string(b, "head"), CAIRN_BTF_GLOBAL, s, &v);
	struct cairn_btf_secinfo vars[] = {{v, 0, 16}};
	btf_add_datasec(b, seed_string(b, ".data"), 16, vars, 1, &v);
	struct cairn_btf_enumerator values[] = {{seed_string(b, "A"), variant},
						{seed_string(b, "B"), 1ll << 40}};
	btf_add_enum(b, seed_string(b, "e"), variant & 2 ? 8 : 4, true, values, variant & 2 ? 2 : 1,
		     &v);
	btf_add_array(b, v, i, 3, &v);
	btf_add_ref(b, CAIRN_BTF_CONST, 0, v, &v);
	btf_add_ref(b, CAIRN_BTF_TYPEDEF, seed_string(b, "t"), v, &v);
	btf_add_float(b, seed_string(b, "double"), 8, &v);
}

static size_t append(uint8_t *seed, size_t at, const struct cairn_btf *base, int variant)
{
	struct cairn_btf_builder *b = seed_builder((struct cairn_btf_build_opts){
		.base = base, .layout = variant & 2 && !base, .big_endian = variant & 8});
	void *bytes;
	size_t size;
	add_types(b, variant);
	if (cairn_btf_finish(b, &bytes, &size, NULL) < 0)
		abort();
	memcpy(seed + at, bytes, size);
	free(bytes);
	cairn_btf_builder_free(b);
	return at + size;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (int form = 0; form < 16; form++) {
		uint8_t seed[8192] = {[4] = form & 1};
		int order = form & 8 && !(form & 1) ? 8 : 0;
		size_t first = append(seed, HEAD_SIZE, NULL, form >> 1 & 1);
		struct cairn_btf *base =
			form & 1 ? open_blob(seed + HEAD_SIZE, first - HEAD_SIZE, NULL) : NULL;
		size_t second = append(seed, first, base, (form >> 1 & 7) ^ 1);
		size_t end = append(seed, second, base, order | (form >> 2 & 3));
		for (int i = 0; i < 2; i++) {
			seed[i] = (uint8_t)((first - HEAD_SIZE) >> 8 * i);
			seed[2 + i] = (uint8_t)((second - first) >> 8 * i);
		}
		put(seed, end);
		cairn_btf_close(base);
	}
}
