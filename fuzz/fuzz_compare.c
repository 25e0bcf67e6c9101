/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What works on type graphs: the input is C declarations, and behind a NUL others. They are
 * compared, laid out for another ABI, locked, and read back. An input that begins like a lock file
 * is read as one.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/layout/compare.h>
#include <cairn/layout/retarget.h>

#include "decl/decl.h"
#include "fuzz.h"

static bool is_record(const struct cairn_types *types, uint32_t id)
{
	enum cairn_type_kind kind = cairn_types_get(types, id)->kind;

	return kind == CAIRN_T_STRUCT || kind == CAIRN_T_UNION || kind == CAIRN_T_ENUM;
}

static void read_lock(const char *text, size_t size)
{
	struct cairn_err err = {0};
	struct cairn_lock *lock;
	int rc = cairn_lock_read(text, size, "fuzz.lock", &lock, &err);

	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (!rc)
		cairn_lock_free(lock);
}

/* What was written is read, and is what it was. */
static void lock_again(const struct cairn_types *types, uint32_t id)
{
	char *text[2] = {NULL, NULL};
	size_t size[2], n;
	struct cairn_lock *lock;
	FILE *out = open_memstream(&text[0], &size[0]);

	assert(out && !cairn_lock_write(types, &id, 1, "x86-64", out, NULL) && !fclose(out));
	assert(!cairn_lock_read(text[0], size[0], "lock", &lock, NULL));
	const uint32_t *ids = cairn_lock_ids(lock, &n);
	out = open_memstream(&text[1], &size[1]);
	assert(out &&
	       !cairn_lock_write(cairn_lock_types(lock), ids, n, cairn_lock_abi(lock), out, NULL) &&
	       !fclose(out));
	cairn_lock_free(lock);
	free(text[0]);
	free(text[1]);
}

static void try_pair(const struct cairn_types *a, uint32_t id_a, const struct cairn_types *b,
		     uint32_t id_b)
{
	struct cairn_compare_opts opts = {.size = sizeof(opts)};
	struct cairn_changes *changes;

	for (int i = 0; i < 2; i++) {
		opts.other_language = i;
		assert(!cairn_compare(a, id_a, b, id_b, &opts, &changes, NULL));
		for (size_t k = 0; k < cairn_changes_n_changes(changes); k++)
			assert(cairn_changes_at(changes, k)->path &&
			       cairn_changes_at(changes, k)->kind < CAIRN_CHANGE_N_KINDS);
		cairn_changes_free(changes);
	}
}

static void try_all(const struct cairn_types *a, const struct cairn_types *b)
{
	struct cairn_retarget *r;
	uint32_t first = 0;

	for (uint32_t id = 1; id < cairn_types_n_types(a) && id < 200; id++) {
		if (!is_record(a, id))
			continue;
		first = first ? first : id;
		lock_again(a, id);
		assert(!cairn_layout_retarget(a, cairn_abi_find("x86-64"), cairn_abi_find("i386"),
					      &id, 1, &r, NULL));
		try_pair(a, id, cairn_retarget_types(r), id);
		cairn_retarget_free(r);
		for (uint32_t k = 1; k < cairn_types_n_types(b) && k < 100; k++)
			if (is_record(b, k))
				try_pair(a, id, b, k);
	}
	cairn_layout_guess_abi(a, &first, first != 0, 8, false);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const char *text = (const char *)bytes, *second;
	const struct cairn_abi *abi = cairn_abi_find("x86-64");
	struct decl *a, *b;

	if (!size || size > 1 << 14)
		return 0;
	if (*text == '#')
		read_lock(text, size);
	second = memchr(text, 0, size);
	second = second ? second : text + size;
	if (decl_parse(text, (size_t)(second - text), "a.h", abi, &a, NULL) < 0)
		return 0;
	second += second < text + size;
	if (!decl_parse(second, (size_t)(text + size - second), "b.h", abi, &b, NULL)) {
		try_all(decl_types(a), decl_types(b));
		decl_free(b);
	}
	decl_free(a);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char pair[] =
		"struct i { int x, y; }; enum k { A, B }; struct s { char a; long b; struct i "
		"c[2]; union { int d; char e; }; unsigned f : "
		"3, : 2, g : 5; enum k h; } __attribute__((packed, aligned(4)));\0"
		"struct i { int x, z; }; enum k { A, C = 5 }; struct s { char a; int b; struct i "
		"c[3]; int d; unsigned f : 4; struct { "
		"int e; } j; float g; char h __attribute__((aligned(32))); };";
	/* clang-format off */
	static const char *const locks[] = {
		"# cairn layout lock 1\nabi i386\n\nenum k u32\n\tA -1\n\ninner union s.u 4\n\t0 x f32\n\nstruct s 24\n\t0 a s8[2][3]\n"
		"\t8 u union s.u\n\t12:3+5 b u32\n\t16 k enum k[]\n\t20 p ptr32\n\t24 c swapped u16\n",
		"# cairn layout lock 2\n",
	};
	/* clang-format on */
	put(pair, sizeof(pair) - 1);
	for (size_t i = 0; i < sizeof(locks) / sizeof(locks[0]); i++)
		put(locks[i], strlen(locks[i]));
}
