/* SPDX-License-Identifier: BSD-2-Clause */
/* The check: every rule by a blob that breaks it, and the running kernel as a second opinion. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"

/* ---- what was reported ---- */

struct story {
	uint32_t id;
	uint64_t off;
	char text[4096];
};

static void listen(void *ctx, uint32_t id, uint64_t off, const char *text)
{
	struct story *s = ctx;
	size_t n = strlen(s->text);
	if (!n) {
		s->id = id;
		s->off = off;
	}
	snprintf(s->text + n, sizeof(s->text) - n, "%s\n", text);
}

static void assert_sound(const struct cairn_btf *btf)
{
	struct story s = {0};
	if (cairn_btf_check(btf, listen, &s) != 0)
		fail_msg("record %u: %s", s.id, s.text);
}

/*
 * Built without a check by the builder, refused by the check with these words about the record @id.
 */
static void assert_broken(struct cairn_btf_builder *b, const struct cairn_btf *base, uint32_t id,
			  const char *words)
{
	struct story s = {0};
	struct blob blob = finish(b, base);
	int n = cairn_btf_check(blob.btf, listen, &s);
	if (n <= 0 || !strstr(s.text, words) || s.id != id)
		fail_msg("%d broken, record %u: '%s'; expected record %u: '%s'", n, s.id, s.text,
			 id, words);
	if (id)
		assert_int_equal(s.off, btf_record_off(blob.btf, id));
	blob_free(&blob);
}

/* ---- sound ones ---- */

static void each_kind_is_sound_in_every_form(void **state)
{
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		for (int form = 0; form < 4; form++) {
			struct blob b = each_kind((struct cairn_btf_build_opts){
				.dialect = dialect, .layout = form & 1, .big_endian = form & 2});
			assert_sound(b.btf);
			struct blob split = each_kind(
				(struct cairn_btf_build_opts){.base = b.btf, .dialect = dialect});
			assert_sound(split.btf);
			blob_free(&split);
			blob_free(&b);
		}
	}
}

static void struct_with_a_pointer_to_itself_is_sound(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	struct cairn_btf_member next = {str(b, "next"), 2, 0, 0};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "list"), 8, &next, 1);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 1);
	struct blob blob = finish(b, NULL);
	assert_sound(blob.btf);
	blob_free(&blob);
}

static void names_of_other_languages_are_sound_but_not_for_the_kernel(void **state)
{
	struct story s = {0};
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "std::vector<int>"), 24, NULL, 0);
	struct blob blob = finish(b, NULL);
	assert_sound(blob.btf);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, 0, listen, &s), 1);
	assert_non_null(strstr(s.text, "no C identifier"));
	blob_free(&blob);
}

/* Whether Linux of a version, and of one before, takes the blob. */
static void assert_since(struct cairn_btf_builder *b, uint32_t since)
{
	struct blob blob = finish(b, NULL);
	struct story s = {0};
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, since - 1, listen, &s), 1);
	assert_non_null(strstr(s.text, "from Linux"));
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, 0, NULL, NULL), 1);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, since, NULL, NULL), 0);
	blob_free(&blob);
}

static void what_kernels_take_depends_on_their_version(void **state)
{
	enum { MANY = 70000 };
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	struct cairn_btf_enumerator *values = calloc(MANY, sizeof(*values));
	for (uint32_t i = 0; i < MANY; i++)
		values[i].name_off = str(b, "A");
	ADD(enum, b, str(b, "many"), 4, false, values, MANY);
	free(values);
	assert_since(b, CAIRN_BTF_LINUX(7, 2));
	b = builder((struct cairn_btf_build_opts){0});
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "rcu"), 0);
	ADD(ref, b, CAIRN_BTF_CONST, 0, tag);
	assert_since(b, CAIRN_BTF_LINUX(7, 2));
	b = builder((struct cairn_btf_build_opts){.layout = true});
	add_int(b);
	assert_since(b, CAIRN_BTF_LINUX(7, 1));
	b = builder((struct cairn_btf_build_opts){0});
	uint32_t type = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "t"), 0);
	ADD(decl_tag, b, str(b, "noreturn"), type, -1, true);
	assert_since(b, CAIRN_BTF_LINUX(6, 15));
	b = builder((struct cairn_btf_build_opts){0});
	ADD(datasec, b, str(b, ".data@1"), 0, NULL, 0);
	assert_since(b, CAIRN_BTF_LINUX(6, 9));
}

/*
 * A struct with a kptr to what is no struct, and one with nodes of 16 and 24 bytes: what a version
 * says.
 */
static void assert_fields(const char *node, uint32_t bytes, bool kptr, uint32_t version,
			  int expected)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t value = add_int(b);
	struct cairn_btf_member val = {str(b, "val"), value, 0, 0};
	uint32_t type = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, node), bytes, &val, 1);
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "kptr"), value);
	uint32_t pointer = ADD(ref, b, CAIRN_BTF_PTR, 0, kptr ? tag : value);
	struct cairn_btf_member m[] = {{str(b, "p"), pointer, 0, 0}, {str(b, "n"), type, 64, 0}};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 8 + bytes, m, 2);
	struct blob blob = finish(b, NULL);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, version, NULL, NULL), expected);
	blob_free(&blob);
}

static void a_kernel_passes_over_fields_that_came_later(void **state)
{
	/*
	 * Pointers to kernel objects are looked for at loading since 6.12, in values of maps since
	 * 5.19.
	 */
	assert_fields("bpf_spin_lock", 4, true, CAIRN_BTF_LINUX(6, 1), 0);
	assert_fields("bpf_spin_lock", 4, true, CAIRN_BTF_LINUX(6, 11), 0);
	assert_fields("bpf_spin_lock", 4, true, CAIRN_BTF_LINUX(6, 12), 1);
	assert_fields("bpf_spin_lock", 4, true, 0, 1);
	/* A node has got its owner with 6.6. */
	assert_fields("bpf_list_node", 16, false, CAIRN_BTF_LINUX(6, 5), 0);
	assert_fields("bpf_list_node", 16, false, CAIRN_BTF_LINUX(6, 6), 1);
	assert_fields("bpf_list_node", 24, false, CAIRN_BTF_LINUX(6, 5), 1);
	assert_fields("bpf_list_node", 24, false, CAIRN_BTF_LINUX(6, 6), 0);
	/* Trees came with 6.3, counts with 6.4: before, a wrong size is nobody's concern. */
	assert_fields("bpf_rb_node", 8, false, CAIRN_BTF_LINUX(6, 2), 0);
	assert_fields("bpf_rb_node", 8, false, CAIRN_BTF_LINUX(6, 3), 1);
	assert_fields("bpf_refcount", 8, false, CAIRN_BTF_LINUX(6, 3), 0);
	assert_fields("bpf_refcount", 8, false, CAIRN_BTF_LINUX(6, 4), 1);
}

/*
 * "struct s { T a, b; }", or with @is_nested "struct s { T a; struct { T b; } c; }": what Linux
 * 6.18 and 7.2 say.
 */
static void assert_twice(const char *name, bool is_nested, int before, int since)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t value = add_int(b);
	struct cairn_btf_member val = {str(b, "val"), value, 0, 0};
	uint32_t type = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, name), 4, &val, 1);
	struct cairn_btf_member m[] = {{str(b, "a"), type, 0, 0}, {str(b, "b"), type, 32, 0}};
	if (is_nested)
		m[1].type = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "inner"), 4, m, 1);
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 8, m, 2);
	struct blob blob = finish(b, NULL);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, CAIRN_BTF_LINUX(6, 18), NULL, NULL),
			 before);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, CAIRN_BTF_LINUX(7, 1), NULL, NULL),
			 before);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, CAIRN_BTF_LINUX(7, 2), NULL, NULL),
			 since);
	blob_free(&blob);
}

static void kernels_count_locks_and_counts_by_struct_and_since_by_record(void **state)
{
	assert_twice("bpf_refcount", false, 0, 1);
	assert_twice("bpf_refcount", true, 0, 1);
	assert_twice("bpf_spin_lock", false, 1, 1);
	assert_twice("bpf_spin_lock", true, 0, 1);
	assert_twice("bpf_wq", false, 0, 0);
}

/* A struct of a name that the kernel knows, of one INT. */
static uint32_t known_struct(struct cairn_btf_builder *b, const char *name, uint32_t bytes)
{
	struct cairn_btf_member val = {str(b, "val"), add_int(b), 0, 0};
	return ADD(struct, b, CAIRN_BTF_STRUCT, str(b, name), bytes, &val, 1);
}

static void assert_verdict(struct cairn_btf_builder *b, uint32_t version, int expected)
{
	struct blob blob = finish(b, NULL);
	int n = cairn_btf_check_for_kernel(blob.btf, version, NULL, NULL);
	if (n != expected)
		fail_msg("Linux %u.%u: %d rules broken instead of %d", version >> 8, version & 0xff,
			 n, expected);
	blob_free(&blob);
}

/* "struct s { struct bpf_list_node n0, n1, ...; }" */
static void assert_nodes(uint32_t n, uint32_t version, int expected)
{
	enum { BYTES = 24, MOST = 12 };
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t node = known_struct(b, "bpf_list_node", BYTES);
	struct cairn_btf_member m[MOST];
	for (uint32_t i = 0; i < n; i++) {
		const char name[] = {(char)('a' + i), 0};
		m[i] = (struct cairn_btf_member){str(b, name), node, i * BYTES * 8, 0};
	}
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), n * BYTES, m, n);
	assert_verdict(b, version, expected);
}

static void a_record_has_ten_fields_and_since_6_10_eleven(void **state)
{
	assert_nodes(10, CAIRN_BTF_LINUX(6, 6), 0);
	assert_nodes(11, CAIRN_BTF_LINUX(6, 9), 1);
	assert_nodes(11, CAIRN_BTF_LINUX(6, 10), 0);
	assert_nodes(11, 0, 1);
	assert_nodes(12, CAIRN_BTF_LINUX(6, 10), 1);
	assert_nodes(12, CAIRN_BTF_LINUX(7, 2), 1);
}

/*
 * "struct s { struct bpf_spin_lock l; struct NAME a[2] __contains(e, n); }", or of a struct with
 * one in it.
 */
static void assert_array(const char *name, uint32_t bytes, const char *of, uint32_t of_bytes,
			 uint32_t version, int expected)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t index = add_int(b), lock = known_struct(b, "bpf_spin_lock", 4);
	uint32_t type = known_struct(b, name, bytes);
	if (of) {
		struct cairn_btf_member node = {str(b, "n"), known_struct(b, of, of_bytes), 0, 0};
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "e"), of_bytes, &node, 1);
	}
	struct cairn_btf_member m[] = {{str(b, "l"), lock, 0, 0},
				       {str(b, "a"), ADD(array, b, type, index, 2), 64, 0}};
	uint32_t s = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 8 + 2 * bytes, m, 2);
	if (of)
		ADD(decl_tag, b, str(b, "contains:e:n"), s, 1, false);
	assert_verdict(b, version, expected);
}

static void
arrays_are_looked_into_since_6_11_and_only_heads_roots_and_pointers_are_repeated(void **state)
{
	static const uint32_t versions[] = {CAIRN_BTF_LINUX(6, 10), CAIRN_BTF_LINUX(6, 11),
					    CAIRN_BTF_LINUX(6, 18), CAIRN_BTF_LINUX(7, 2)};
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		assert_array("bpf_list_head", 16, "bpf_list_node", 24, versions[i], 0);
		assert_array("bpf_rb_root", 16, "bpf_rb_node", 32, versions[i], 0);
		assert_array("bpf_list_head", 16, NULL, 0, versions[i], i > 0);
		assert_array("bpf_list_node", 24, NULL, 0, versions[i], i > 0);
		assert_array("bpf_refcount", 4, NULL, 0, versions[i], i > 0);
	}
}

/*
 * "struct s { struct bpf_spin_lock l; struct { struct bpf_list_head h; } in; }": a head without
 * contents.
 */
static void nested_structs_are_looked_into_since_6_11(void **state)
{
	for (uint32_t minor = 10; minor <= 11; minor++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		uint32_t lock = known_struct(b, "bpf_spin_lock", 4);
		struct cairn_btf_member inner = {str(b, "h"), known_struct(b, "bpf_list_head", 16),
						 0, 0};
		uint32_t in = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "inner"), 16, &inner, 1);
		struct cairn_btf_member m[] = {{str(b, "l"), lock, 0, 0},
					       {str(b, "in"), in, 64, 0}};
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 24, m, 2);
		/* The inner struct alone has neither a lock nor contents. */
		assert_verdict(b, CAIRN_BTF_LINUX(6, minor), minor == 10 ? 2 : 3);
	}
}

/*
 * "struct NAME { struct bpf_spin_lock l; struct bpf_list_head h __contains(OF, n); struct
 * bpf_list_node n; }"
 */
static void add_owner(struct cairn_btf_builder *b, const uint32_t types[3], const char *name,
		      bool is_node, const char *contains)
{
	struct cairn_btf_member m[] = {{str(b, "l"), types[0], 0, 0},
				       {str(b, "h"), types[1], 64, 0},
				       {str(b, "n"), types[2], 192, 0}};
	uint32_t id = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, name), is_node ? 48 : 24, m,
			  is_node ? 3 : 2);
	ADD(decl_tag, b, str(b, contains), id, 1, false);
}

static void a_node_that_owns_others_owns_only_what_owns_nothing(void **state)
{
	static const struct {
		const char *of_s;
		bool is_node;
		int expected;
	} cases[] = {{"contains:leaf:n", true, 0},
		     {"contains:s:n", true, 1},
		     {"contains:owner:n", true, 1},
		     {"contains:owner:n", false, 0}};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		uint32_t types[] = {known_struct(b, "bpf_spin_lock", 4),
				    known_struct(b, "bpf_list_head", 16),
				    known_struct(b, "bpf_list_node", 24)};
		struct cairn_btf_member leaf = {str(b, "n"), types[2], 0, 0};
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "leaf"), 24, &leaf, 1);
		add_owner(b, types, "owner", true, "contains:leaf:n");
		add_owner(b, types, "s", cases[i].is_node, cases[i].of_s);
		assert_verdict(b, CAIRN_BTF_LINUX(6, 18), cases[i].expected);
	}
}

/* "struct s { struct bpf_list_node n; struct t __uptr *p; }" */
static void a_user_pointer_is_known_since_6_13(void **state)
{
	static const uint32_t versions[] = {CAIRN_BTF_LINUX(6, 11), CAIRN_BTF_LINUX(6, 12),
					    CAIRN_BTF_LINUX(6, 13), CAIRN_BTF_LINUX(7, 2)};
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		uint32_t tag =
			ADD(ref, b, CAIRN_BTF_TYPE_TAG, str(b, "uptr"), known_struct(b, "t", 4));
		struct cairn_btf_member m[] = {
			{str(b, "n"), known_struct(b, "bpf_list_node", 24), 0, 0},
			{str(b, "p"), ADD(ref, b, CAIRN_BTF_PTR, 0, tag), 192, 0}};
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 32, m, 2);
		assert_verdict(b, versions[i], versions[i] == CAIRN_BTF_LINUX(6, 12));
	}
}

/* "struct s { struct bpf_list_node n; struct bpf_rb_node r; }" of the sizes that nodes had then */
static void nodes_of_both_kinds_want_a_count_since_there_are_counts(void **state)
{
	for (uint32_t minor = 3; minor <= 5; minor++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		struct cairn_btf_member m[] = {
			{str(b, "n"), known_struct(b, "bpf_list_node", 16), 0, 0},
			{str(b, "r"), known_struct(b, "bpf_rb_node", 24), 128, 0}};
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 40, m, 2);
		assert_verdict(b, CAIRN_BTF_LINUX(6, minor), minor > 3);
	}
}

static void kernel_wants_whole_integers_for_bit_fields(void **state)
{
	struct story s = {0};
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	struct cairn_btf_member m = {str(b, "m"), ADD(int, b, str(b, "odd"), 4, 0, 20), 0, 3};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 4, &m, 1);
	struct blob blob = finish(b, NULL);
	assert_sound(blob.btf);
	assert_int_equal(cairn_btf_check_for_kernel(blob.btf, 0, listen, &s), 1);
	assert_non_null(strstr(s.text, "a bit-field of an INT that has 20 bits"));
	blob_free(&blob);
}

/* ---- broken ones ---- */

/*
 * Words of a record, counted from its start, that may hold any number. DWARF can number any
 * register.
 */
static bool is_free(enum cairn_btf_kind kind, size_t word, uint32_t value)
{
	switch (kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
	case CAIRN_BTF_DATASEC:
		return word == 2; /* its size */
	case CAIRN_BTF_ENUM:
		return word >= 3 && word % 2 == 0; /* values */
	case CAIRN_BTF_ENUM64:
		return word >= 3 && word % 3 != 0;
	case CAIRN_BTF_ARRAY:
		return word == 5; /* how many */
	case CAIRN_BTF_DECL_TAG:
		return word == 3 && value == UINT32_MAX; /* -1: the whole */
	case CAIRN_BTF_LOC_PARAM:
		return word == 2 || word >= 4; /* size; registers, a constant */
	case CAIRN_BTF_LOCSEC:
		return word >= 3 && word % 3 == 2; /* where in the section */
	default:
		return false;
	}
}

/* Opened and checked: the first that is said about it. False: it is sound. */
static bool is_refused(const void *bytes, size_t size, struct story *s)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts), .dialect = CAIRN_BTF_LOC_N};
	struct cairn_btf *btf;
	struct cairn_err err = {0};
	*s = (struct story){0};
	if (cairn_btf_open_mem(bytes, size, "damaged", &opts, &btf, &err) < 0) {
		snprintf(s->text, sizeof(s->text), "%s", err.msg);
		return true;
	}
	int n = cairn_btf_check(btf, listen, s);
	cairn_btf_close(btf);
	return n > 0;
}

static void each_field_of_each_record_out_of_range_is_refused_by_its_site(void **state)
{
	static const uint32_t extremes[] = {UINT32_MAX, UINT32_MAX - 15, INT32_MAX,
					    (uint32_t)1 << 31};
	struct blob b = each_kind((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint8_t *bytes = b.bytes;
	size_t n_refused = 0;
	for (uint32_t id = 1; id < cairn_btf_end_id(b.btf); id++) {
		struct cairn_btf_type t;
		assert_true(cairn_btf_type(b.btf, id, &t));
		size_t from = (size_t)btf_record_off(b.btf, id);
		/* The last one is the LOCSEC, with three words for each site. */
		size_t end = id + 1 < cairn_btf_end_id(b.btf)
				     ? (size_t)btf_record_off(b.btf, id + 1)
				     : from + (3 + 3 * (size_t)t.vlen) * 4;
		for (size_t off = from; off < end; off += 4) {
			for (size_t i = 0; i < ARRAY_SIZE(extremes); i++) {
				struct story s;
				uint32_t saved;
				char site[32];
				memcpy(&saved, bytes + off, 4);
				memcpy(bytes + off, &extremes[i], 4);
				bool refused = is_refused(bytes, b.size, &s);
				memcpy(bytes + off, &saved, 4);
				snprintf(site, sizeof(site), "0x%zx", from);
				/* A size may be any, and then what has it as a part is wrong. */
				if (is_free((enum cairn_btf_kind)t.kind, (off - from) / 4,
					    extremes[i]))
					continue;
				if (!refused)
					fail_msg("record %u (%s), word %zu = 0x%x is taken", id,
						 btf_kind_name(t.kind), (off - from) / 4,
						 extremes[i]);
				if (s.id ? s.off != from || s.id != id : !strstr(s.text, site))
					fail_msg("record %u at %s, word %zu = 0x%x: record %u: %s",
						 id, site, (off - from) / 4, extremes[i], s.id,
						 s.text);
				n_refused += refused;
			}
		}
	}
	assert_true(n_refused > 200);
	blob_free(&b);
}

static void broken_record_is_named_with_its_rule(void **state)
{
	/*
	 * One record {kind, kflag, vlen, name, ref, words...}; ids: 1 int, 2 FUNC_PROTO of no
	 * parameter.
	 */
	/* clang-format off */
	static const struct {
		uint32_t kind, kflag, vlen;
		const char *name;
		uint32_t ref, n_words, words[8];
		const char *broken;
	} cases[] = {
		{CAIRN_BTF_INT, 1, 0, "x", 4, 1, {32}, "flag"},
		{CAIRN_BTF_INT, 0, 1, "x", 4, 1, {32}, "vlen 1 means nothing"},
		{CAIRN_BTF_INT, 0, 0, "x", 4, 1, {33}, "33 bits do not fit in 4"},
		{CAIRN_BTF_INT, 0, 0, "x", 4, 1, {0x03000020}, "more than one"},
		{CAIRN_BTF_INT, 0, 0, "x", 4, 1, {0x80000020}, "mean nothing"},
		{CAIRN_BTF_PTR, 0, 0, "x", 1, 0, {0}, "it has none"},
		{CAIRN_BTF_PTR, 0, 0, "", 99, 0, {0}, "id 99, which does not exist"},
		{CAIRN_BTF_PTR, 0, 0, "", 3, 0, {0}, "leads back to itself"},
		{CAIRN_BTF_CONST, 0, 0, "", 3, 0, {0}, "leads back to itself"},
		{CAIRN_BTF_TYPEDEF, 0, 0, "", 1, 0, {0}, "name is missing"},
		{CAIRN_BTF_TYPEDEF, 0, 0, "x", 4, 0, {0}, "id 4, which does not exist"},
		{CAIRN_BTF_ARRAY, 0, 0, "", 0, 3, {0, 1, 3}, "element is id 0, a VOID"},
		{CAIRN_BTF_ARRAY, 0, 0, "", 0, 3, {1, 2, 3}, "index type is id 2, a FUNC_PROTO"},
		{CAIRN_BTF_ARRAY, 0, 0, "", 7, 3, {1, 1, 3}, "third word"},
		{CAIRN_BTF_ARRAY, 0, 0, "", 0, 3, {3, 1, 3}, "consists of itself"},
		{CAIRN_BTF_STRUCT, 0, 1, "x", 4, 3, {0, 0, 0}, "member's type is id 0"},
		{CAIRN_BTF_STRUCT, 0, 1, "x", 4, 3, {0, 3, 0}, "consists of itself"},
		{CAIRN_BTF_STRUCT, 0, 1, "x", 4, 3, {0, 1, 8}, "ends after its 4 bytes"},
		{CAIRN_BTF_STRUCT, 0, 1, "x", 4, 3, {0, 1, 64}, "outside its 4 bytes"},
		{CAIRN_BTF_STRUCT, 1, 1, "x", 8, 3, {0, 1, 0x21000000}, "33 bits of a type that has 32"},
		{CAIRN_BTF_UNION, 0, 1, "x", 8, 3, {0, 1, 8}, "has offset 8"},
		{CAIRN_BTF_STRUCT, 0, 1, "x", 4, 3, {1u << 30, 1, 0}, "after the strings"},
		{CAIRN_BTF_ENUM, 0, 0, "x", 3, 0, {0}, "3 bytes"},
		{CAIRN_BTF_ENUM, 0, 1, "x", 4, 2, {0, 7}, "a value's name is missing"},
		{CAIRN_BTF_ENUM64, 0, 1, "x", 8, 3, {0, 7, 0}, "a value's name is missing"},
		{CAIRN_BTF_FWD, 0, 0, "x", 1, 0, {0}, "third word"},
		{CAIRN_BTF_FWD, 0, 0, "", 0, 0, {0}, "name is missing"},
		{CAIRN_BTF_FUNC, 0, 3, "x", 2, 0, {0}, "linkage 3"},
		{CAIRN_BTF_FUNC, 0, 0, "x", 1, 0, {0}, "prototype is id 1, a INT"},
		{CAIRN_BTF_FUNC_PROTO, 0, 2, "", 0, 4, {0, 0, 0, 1}, "parameter's type is id 0"},
		{CAIRN_BTF_FUNC_PROTO, 0, 1, "", 0, 2, {1, 0}, "'...' has a name"},
		{CAIRN_BTF_VAR, 0, 0, "x", 1, 1, {3}, "linkage 3"},
		{CAIRN_BTF_VAR, 0, 0, "x", 0, 1, {0}, "id 0, a VOID"},
		{CAIRN_BTF_DATASEC, 0, 1, ".x", 8, 3, {1, 0, 4}, "variable is id 1, a INT"},
		{CAIRN_BTF_FLOAT, 0, 0, "x", 5, 0, {0}, "5 bytes"},
		{CAIRN_BTF_DECL_TAG, 0, 0, "x", 1, 1, {-1u}, "target is id 1, a INT"},
		{CAIRN_BTF_TYPE_TAG, 0, 0, "", 1, 0, {0}, "name is missing"},
		{CAIRN_BTF_LOC_PARAM, 1, 1, "", 8, 2, {CAIRN_BTF_LOC_REG, 1}, "flag"},
		{CAIRN_BTF_LOC_PARAM, 0, 1, "", 8, 2, {0x40, 1}, "not known"},
		{CAIRN_BTF_LOC_PARAM, 0, 1, "", 8, 2, {0x0a, 1}, "of a constant and of a register"},
		{CAIRN_BTF_LOC_PARAM, 0, 1, "", 8, 2, {0x04, 1}, "no constant"},
		{CAIRN_BTF_LOC_PARAM, 0, 1, "", 8, 2, {0x10, 1}, "without a register"},
		{CAIRN_BTF_LOC_PARAM, 0, 2, "", 8, 3, {0x18, 1, 2}, "2 words do not go with flags 0x18"},
		{CAIRN_BTF_LOC_PARAM, 0, 1, "", 8, 2, {0x38, 1}, "1 word does not go with flags 0x38"},
		{CAIRN_BTF_LOC_PROTO, 0, 1, "", 0, 1, {1}, "slot is id 1, a INT"},
		{CAIRN_BTF_LOC_PROTO, 0, 0, "", 1, 0, {0}, "third word is id 1"},
		{CAIRN_BTF_LOCSEC, 0, 0, "", 0, 0, {0}, "name is missing"},
		{CAIRN_BTF_LOCSEC, 0, 1, ".text", 0, 3, {2, 0, 0}, "function is id 2, a FUNC_PROTO"},
	};
	/* clang-format on */
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_btf_builder *b = builder(
			(struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N, .layout = true});
		uint32_t id;
		add_int(b);
		ADD(func_proto, b, 0, NULL, 0);
		struct cairn_btf_type t = {.kind = cases[i].kind,
					   .kflag = cases[i].kflag,
					   .vlen = cases[i].vlen,
					   .ref = cases[i].ref,
					   .name_off = str(b, cases[i].name)};
		assert_int_equal(cairn_btf_add_record(b, &t, cases[i].words, cases[i].n_words, &id),
				 0);
		assert_broken(b, NULL, id, cases[i].broken);
	}
}

static void declaration_tag_numbers_a_component_that_exists(void **state)
{
	for (int32_t component = -3; component < 5; component++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		uint32_t func = add_each_kind(b, false);
		uint32_t tag = ADD(decl_tag, b, str(b, "x"), func, component, false);
		if (component < -1 || component > 2) {
			assert_broken(b, NULL, tag, "component");
			continue;
		}
		struct blob blob = finish(b, NULL);
		assert_sound(blob.btf);
		blob_free(&blob);
	}
}

static void site_with_more_slots_than_parameters_is_broken(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	uint32_t func = add_each_kind(b, true);
	uint32_t slots[4] = {0};
	struct cairn_btf_loc loc = {.func = func, .loc_proto = ADD(loc_proto, b, slots, 4)};
	uint32_t id = ADD(locsec, b, str(b, ".text"), &loc, 1);
	assert_broken(b, NULL, id, "'visit' at 0x0 has 4 slots for 3 parameters");
}

/* Found by the fuzzer: a base that nobody has checked. */
static void float_of_no_bytes_in_the_base_is_survived(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t f = ADD(float, b, str(b, "empty"), 0);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	struct cairn_btf_member m = {str(b, "m"), f, 8, 0};
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s"), 4, &m, 1);
	struct blob split = finish(b, base.btf);
	assert_int_equal(cairn_btf_check_for_kernel(split.btf, running_linux(), NULL, NULL), 0);
	assert_true(cairn_btf_check(base.btf, NULL, NULL) > 0);
	blob_free(&split);
	blob_free(&base);
}

/* So deep that a recursive walk would run out of stack. */
static void a_million_nested_types_are_checked(void **state)
{
	enum { N = 1000000 };
	for (int damage = 0; damage < 2; damage++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		uint32_t i = add_int(b);
		/* Each consists of the one behind it: the walk goes down all of them at once. */
		for (uint32_t n = 1; n < N; n++)
			ADD(array, b, n == N - 1 ? (damage ? 2 : i) : n + 2, i, 1);
		if (damage) {
			struct story s = {0};
			struct blob blob = finish(b, NULL);
			assert_true(cairn_btf_check(blob.btf, listen, &s) > 0);
			assert_non_null(strstr(s.text, "consists of itself"));
			blob_free(&blob);
			continue;
		}
		struct blob blob = finish(b, NULL);
		assert_sound(blob.btf);
		blob_free(&blob);
	}
}

static void no_memory_is_said(void **state)
{
	struct blob b = each_kind((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	for (unsigned int n = 1;; n++) {
		alloc_fail_at(n);
		int rc = cairn_btf_check(b.btf, NULL, NULL);
		bool failed = alloc_fail_end();
		/* The sorted names are dispensable. */
		assert_true(rc == 0 || (failed && rc == -ENOMEM));
		if (!failed)
			break;
	}
	blob_free(&b);
}

/* ---- the kernel ---- */

static char kernel_log[16384];

/* 0, or the negative errno of BPF_BTF_LOAD; then kernel_log ends with the reason. */
static int kernel_load(const void *bytes, size_t size)
{
	union bpf_attr attr = {.btf = (uintptr_t)bytes,
			       .btf_size = (uint32_t)size,
			       .btf_log_buf = (uintptr_t)kernel_log,
			       .btf_log_size = sizeof(kernel_log),
			       .btf_log_level = 1};
	int fd = (int)syscall(SYS_bpf, BPF_BTF_LOAD, &attr, sizeof(attr));
	if (fd < 0)
		return -errno;
	close(fd);
	return 0;
}

static const char *last_line(char *text)
{
	size_t n = strlen(text);
	while (n && text[n - 1] == '\n')
		text[--n] = '\0';
	char *line = strrchr(text, '\n');
	return line ? line + 1 : text;
}

static int check_for_kernel(const void *bytes, size_t size, struct story *s)
{
	struct cairn_btf *btf;
	struct cairn_err err;
	int rc = cairn_btf_open_mem(bytes, size, "damaged", NULL, &btf, &err);
	if (rc < 0) {
		snprintf(s->text, sizeof(s->text), "%s", err.msg);
		return rc;
	}
	rc = cairn_btf_check_for_kernel(btf, running_linux(), listen, s);
	cairn_btf_close(btf);
	return rc;
}

static struct blob sound_for_kernel(void)
{
	struct blob b = each_kind((struct cairn_btf_build_opts){0});
	struct story s = {0};
	int rc = kernel_load(b.bytes, b.size);
	if (rc == -EPERM || rc == -ENOSYS) {
		print_message("BPF_BTF_LOAD: %s\n", strerror(-rc));
		blob_free(&b);
		skip();
	}
	assert_int_equal(rc, 0);
	if (cairn_btf_check_for_kernel(b.btf, running_linux(), listen, &s) != 0)
		fail_msg("%s", s.text);
	return b;
}

/* Where the check is stricter than the kernel on purpose, by the words it uses. */
static bool stricter(const struct story *s)
{
	static const char *const words[] = {"control characters", "mean nothing"};
	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (strstr(s->text, words[i]))
			return true;
	return false;
}

static void what_the_kernel_refuses_is_refused(void **state)
{
	static const uint32_t values[] = {
		0,  1,   2,    3,    4,     5,      7,       8,        9,          12,
		13, 14,  16,   18,   20,    23,     24,      31,       32,         33,
		64, 100, 0x80, 0xff, 0x100, 0xffff, 0x10000, 0xffffff, 0x7fffffff, 0xffffffff};
	struct blob b = sound_for_kernel();
	uint32_t *words = (uint32_t *)((char *)b.bytes + b.btf->types_off);
	unsigned int n_refused = 0, n_missed = 0, n_stricter = 0;
	for (uint32_t i = 0; i < b.btf->n_words; i++) {
		uint32_t was = words[i];
		for (size_t v = 0; v < ARRAY_SIZE(values) + 32; v++) {
			words[i] = v < ARRAY_SIZE(values) ? values[v]
							  : was ^ 1u << (v - ARRAY_SIZE(values));
			struct story s = {0};
			int kernel = kernel_load(b.bytes, b.size),
			    ours = check_for_kernel(b.bytes, b.size, &s);
			n_refused += kernel < 0;
			if (kernel < 0 && ours == 0) {
				n_missed++;
				print_message("word %u 0x%x -> 0x%x: only the kernel says: %s\n", i,
					      was, words[i], last_line(kernel_log));
			}
			if (kernel == 0 && ours != 0 && !stricter(&s)) {
				n_stricter++;
				print_message("word %u 0x%x -> 0x%x: only the check says: %s\n", i,
					      was, words[i], s.text);
			}
		}
		words[i] = was;
	}
	print_message("%u refused by the kernel, %u more by the check\n", n_refused, n_stricter);
	assert_true(n_refused > 1000);
	assert_int_equal(n_missed, 0);
	assert_int_equal(n_stricter, 0);
	blob_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_is_sound_in_every_form),
		cmocka_unit_test(struct_with_a_pointer_to_itself_is_sound),
		cmocka_unit_test(names_of_other_languages_are_sound_but_not_for_the_kernel),
		cmocka_unit_test(what_kernels_take_depends_on_their_version),
		cmocka_unit_test(a_kernel_passes_over_fields_that_came_later),
		cmocka_unit_test(kernels_count_locks_and_counts_by_struct_and_since_by_record),
		cmocka_unit_test(a_record_has_ten_fields_and_since_6_10_eleven),
		cmocka_unit_test(
			arrays_are_looked_into_since_6_11_and_only_heads_roots_and_pointers_are_repeated),
		cmocka_unit_test(nested_structs_are_looked_into_since_6_11),
		cmocka_unit_test(a_node_that_owns_others_owns_only_what_owns_nothing),
		cmocka_unit_test(a_user_pointer_is_known_since_6_13),
		cmocka_unit_test(nodes_of_both_kinds_want_a_count_since_there_are_counts),
		cmocka_unit_test(kernel_wants_whole_integers_for_bit_fields),
		cmocka_unit_test(each_field_of_each_record_out_of_range_is_refused_by_its_site),
		cmocka_unit_test(broken_record_is_named_with_its_rule),
		cmocka_unit_test(declaration_tag_numbers_a_component_that_exists),
		cmocka_unit_test(site_with_more_slots_than_parameters_is_broken),
		cmocka_unit_test(float_of_no_bytes_in_the_base_is_survived),
		cmocka_unit_test(a_million_nested_types_are_checked),
		cmocka_unit_test(no_memory_is_said),
		cmocka_unit_test(what_the_kernel_refuses_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
