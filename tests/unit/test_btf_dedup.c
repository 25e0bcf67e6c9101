/* SPDX-License-Identifier: BSD-2-Clause */
/* Dedup: what becomes one, what does not, and libbpf on the same input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <bpf/btf.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "btf/btf.h"
#include "btf_fixture.h"

#define KERNEL_BTF "/sys/kernel/btf/vmlinux"

/*
 * The deduped blob; doing it again changes nothing; @map, when not NULL, has room for all own ids.
 */
static struct blob dedup(const struct cairn_btf *btf, uint32_t *map)
{
	struct cairn_err err = {0};
	struct blob b = {0};
	void *again;
	size_t again_size;
	if (cairn_btf_dedup(btf, map, &b.bytes, &b.size, &err) < 0)
		fail_msg("%s", err.msg);
	b.btf = must_open_mem(b.bytes, b.size, cairn_btf_base(btf));
	assert_int_equal(cairn_btf_dedup(b.btf, NULL, &again, &again_size, &err), 0);
	assert_int_equal(again_size, b.size);
	assert_memory_equal(again, b.bytes, b.size);
	free(again);
	return b;
}

static uint32_t n_types(const struct cairn_btf *btf)
{
	return cairn_btf_end_id(btf) - cairn_btf_start_id(btf);
}

/* How many own records have this name. */
static uint32_t n_named(const struct cairn_btf *btf, const char *name)
{
	uint32_t n = 0, id = 0;
	while ((id = cairn_btf_find(btf, name, 0, id)) >= cairn_btf_start_id(btf))
		n++;
	return n;
}

/*
 * A translation unit: struct list with a pointer to itself and one to "struct other", which is
 * defined with a member of type @other, or declared only when that is NULL. Returns the id of
 * struct list.
 */
static uint32_t add_unit(struct cairn_btf_builder *b, const char *other)
{
	uint32_t o;
	uint32_t first = btf_builder_next_id(b);
	struct cairn_btf_member members[] = {{str(b, "next"), first + 1, 0, 0},
					     {str(b, "other"), first + 2, 64, 0}};
	uint32_t list = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "list"), 16, members, 2);
	ADD(ref, b, CAIRN_BTF_PTR, 0, list);
	ADD(ref, b, CAIRN_BTF_PTR, 0, first + 3);
	if (!other) {
		ADD(fwd, b, str(b, "other"), false);
		return list;
	}
	struct cairn_btf_member m = {str(b, "x"), first + 4, 0, 0};
	o = ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "other"), 4, &m, 1);
	assert_int_equal(o, first + 3);
	ADD(int, b, str(b, other), 4, CAIRN_BTF_INT_SIGNED, 32);
	return list;
}

static void each_kind_twice_becomes_each_kind_once(void **state)
{
	for (int dialect = CAIRN_BTF_NO_LOC; dialect <= CAIRN_BTF_LOC_V1; dialect++) {
		struct cairn_btf_build_opts opts = {.dialect = dialect};
		struct cairn_btf_builder *b = builder(opts);
		add_each_kind(b, dialect != CAIRN_BTF_NO_LOC);
		uint32_t n = btf_builder_next_id(b) - 1;
		struct cairn_btf_builder *twice = b;
		struct blob once = each_kind(opts);
		/* The same records again, with ids moved. */
		struct cairn_btf_type t;
		for (uint32_t id = 1; cairn_btf_type(once.btf, id, &t); id++) {
			uint32_t again, *p;
			const struct btf_shape *shape = btf_shape(t.kind, dialect);
			assert_int_equal(
				cairn_btf_add_record(twice, &t, t.words, t.n_words, &again), 0);
			struct btf_fields f = btf_ids_of(shape, btf_builder_record(twice, again));
			while ((p = btf_next(&f)))
				*p += *p ? n : 0;
		}
		struct blob two = finish(twice, NULL);
		uint32_t *map = calloc(2 * n, sizeof(*map));
		struct blob one = dedup(two.btf, map);
		/* VAR, DATASEC and LOCSEC are things; a site is not another's double. */
		uint32_t things = 0;
		for (uint32_t id = 1; cairn_btf_type(once.btf, id, &t); id++)
			things += t.kind == CAIRN_BTF_VAR || t.kind == CAIRN_BTF_DATASEC ||
				  t.kind == CAIRN_BTF_LOCSEC;
		assert_int_equal(n_types(one.btf), n + things);
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(map[i], i + 1);
			t = must_have(once.btf, i + 1);
			assert_int_equal(must_have(one.btf, map[n + i]).kind, t.kind);
		}
		assert_int_equal(cairn_btf_check(one.btf, NULL, NULL), 0);
		free(map);
		blob_free(&one);
		blob_free(&two);
		blob_free(&once);
	}
}

static void circles_are_compared_as_graphs(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_unit(b, "int");
	add_unit(b, "int");
	add_unit(b, "long");
	struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
	/* The third list leads to another struct other, in a circle through itself. */
	assert_int_equal(n_named(out.btf, "list"), 2);
	assert_int_equal(n_named(out.btf, "other"), 2);
	assert_int_equal(n_types(out.btf), 10);
	blob_free(&out);
	blob_free(&in);
}

static void declaration_becomes_the_only_definition(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	uint32_t map[14];
	add_unit(b, NULL);
	uint32_t known = add_unit(b, "int");
	add_unit(b, NULL);
	struct blob in = finish(b, NULL);
	assert_int_equal(n_types(in.btf), 13);
	struct blob out = dedup(in.btf, map);
	assert_int_equal(n_named(out.btf, "list"), 1);
	assert_int_equal(n_named(out.btf, "other"), 1);
	assert_int_equal(n_types(out.btf), 5);
	assert_int_equal(map[3], map[known + 3 - 1]);
	assert_int_equal(must_have(out.btf, map[3]).kind, CAIRN_BTF_STRUCT);
	blob_free(&out);
	blob_free(&in);
}

static void struct_that_knows_less_is_replaced_by_one_that_knows_more(void **state)
{
	/* In any order of the three units. */
	static const char *const orders[][3] = {
		{"int", "long", NULL}, {NULL, "int", "long"}, {"int", NULL, "long"}};
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
		for (int k = 0; k < 3; k++)
			add_unit(b, orders[i][k]);
		struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
		assert_int_equal(n_named(out.btf, "list"), 2);
		blob_free(&out);
		blob_free(&in);
	}
}

static void declaration_of_several_definitions_stays(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_unit(b, "int");
	add_unit(b, "long");
	ADD(fwd, b, str(b, "other"), false);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "which"), btf_builder_next_id(b) - 1);
	struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
	struct cairn_btf_type t = must_have(out.btf, cairn_btf_find(out.btf, "which", 0, 0));
	assert_int_equal(must_have(out.btf, t.ref).kind, CAIRN_BTF_FWD);
	blob_free(&out);
	blob_free(&in);
}

/* GCC 12 writes such declarations, with another number in each unit. */
static void number_in_a_declaration_means_nothing(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	ADD(fwd, b, str(b, "s"), false);
	uint32_t again = ADD(fwd, b, str(b, "s"), false);
	btf_builder_record(b, again)[BTF_RECORD_REF] = 77;
	struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
	assert_int_equal(n_types(out.btf), 1);
	blob_free(&out);
	blob_free(&in);
}

static void enum_without_values_becomes_the_enum(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	struct cairn_btf_enumerator v = {str(b, "A"), 1};
	uint32_t fwd = ADD(enum, b, str(b, "e"), 4, false, NULL, 0);
	ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "e_t"), fwd);
	uint32_t full = ADD(enum, b, str(b, "e"), 4, false, &v, 1), map[3];
	struct blob in = finish(b, NULL), out = dedup(in.btf, map);
	assert_int_equal(map[0], map[full - 1]);
	assert_int_equal(n_types(out.btf), 2);
	blob_free(&out);
	blob_free(&in);
}

/* v1's first form of upstream merged what had an equal first parameter. */
static void location_records_are_compared_in_full(void **state)
{
	struct cairn_btf_builder *b =
		builder((struct cairn_btf_build_opts){.dialect = CAIRN_BTF_LOC_N});
	struct cairn_btf_loc_param a = {.flags = CAIRN_BTF_LOC_REG,
					.size = 8,
					.n_regs = 1,
					.reg = {1}},
				   c = a, s = a;
	c.reg[0] = 2;
	s.size = 4;
	uint32_t x = ADD(loc_param, b, &a), y = ADD(loc_param, b, &c), z = ADD(loc_param, b, &s);
	uint32_t x2 = ADD(loc_param, b, &a), map[8];
	uint32_t p1[] = {x, y}, p2[] = {x2, z}, p3[] = {x2, y}, p4[] = {x, 0};
	ADD(loc_proto, b, p1, 2);
	ADD(loc_proto, b, p2, 2);
	ADD(loc_proto, b, p3, 2);
	ADD(loc_proto, b, p4, 2);
	struct blob in = finish(b, NULL), out = dedup(in.btf, map);
	assert_int_equal(map[x2 - 1], map[x - 1]);
	assert_int_equal(map[6], map[4]);
	assert_int_equal(n_types(out.btf), 6);
	blob_free(&out);
	blob_free(&in);
}

static void equal_strings_at_several_offsets_are_equal(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_int(b);
	uint32_t other = str(b, "jnt");
	ADD(int, b, other, 4, CAIRN_BTF_INT_SIGNED, 32);
	struct blob in = finish(b, NULL);
	char *strings = (char *)in.bytes + in.size - in.btf->strings_size;
	strings[other] = 'i';
	struct blob out = dedup(in.btf, NULL);
	assert_int_equal(n_types(out.btf), 1);
	blob_free(&out);
	blob_free(&in);
}

static void own_type_equal_to_the_bases_is_replaced(void **state)
{
	struct blob base = each_kind((struct cairn_btf_build_opts){0});
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t start = btf_builder_next_id(b), map[4];
	uint32_t i = add_int(b);
	ADD(ref, b, CAIRN_BTF_PTR, 0, i);
	uint32_t tag = ADD(ref, b, CAIRN_BTF_TYPEDEF, str(b, "own"), i);
	ADD(ref, b, CAIRN_BTF_PTR, 0, tag);
	struct blob in = finish(b, base.btf), out = dedup(in.btf, map);
	assert_int_equal(map[0], 1);
	assert_int_equal(map[1], 2);
	assert_int_equal(map[2], start);
	assert_int_equal(map[3], start + 1);
	assert_int_equal(must_have(out.btf, start).ref, 1);
	blob_free(&out);
	blob_free(&in);
	blob_free(&base);
}

/* A module defines what the kernel only declares: what leads to the definition stays its own. */
static void definition_is_not_replaced_by_the_bases_declaration(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_unit(b, NULL);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t list = add_unit(b, "int"), n = btf_builder_next_id(b) - cairn_btf_end_id(base.btf);
	struct blob in = finish(b, base.btf), out = dedup(in.btf, NULL);
	assert_int_equal(n_types(out.btf), n);
	assert_true(list >= cairn_btf_start_id(in.btf));
	assert_int_equal(n_named(out.btf, "other"), 1);
	blob_free(&out);
	blob_free(&in);
	blob_free(&base);
}

/* ---- refusals ---- */

static void broken_reference_is_named(void **state)
{
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_int(b);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 77);
	struct blob in = finish(b, NULL);
	assert_int_equal(cairn_btf_dedup(in.btf, NULL, &bytes, &size, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "record 2 at offset 0x28 refers to id 77"));
	blob_free(&in);
	b = builder((struct cairn_btf_build_opts){0});
	ADD(fwd, b, 1000, false);
	in = finish(b, NULL);
	assert_int_equal(cairn_btf_dedup(in.btf, NULL, &bytes, &size, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "string 1000"));
	blob_free(&in);
}

/* The own strings go on where the base's end: what the base names there is no name. */
static void base_has_none_of_the_own_strings(void **state)
{
	struct cairn_err err = {0};
	void *bytes;
	size_t size;
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_int(b);
	struct blob intact = finish(b, NULL);
	uint32_t end = intact.btf->strings_size;
	blob_free(&intact);
	b = builder((struct cairn_btf_build_opts){0});
	add_int(b);
	ADD(fwd, b, end, false);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	ADD(fwd, b, str(b, "own"), false);
	struct blob in = finish(b, base.btf);
	assert_string_equal(cairn_btf_string(in.btf, end), "own");
	assert_int_equal(cairn_btf_dedup(in.btf, NULL, &bytes, &size, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "record 2 "));
	blob_free(&in);
	blob_free(&base);
}

static void loops_that_mean_nothing_end(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	ADD(ref, b, CAIRN_BTF_CONST, 0, 2);
	ADD(ref, b, CAIRN_BTF_CONST, 0, 1);
	ADD(ref, b, CAIRN_BTF_PTR, 0, 3);
	struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
	assert_int_equal(n_types(out.btf), 2);
	blob_free(&out);
	blob_free(&in);
}

/*
 * A million types in one chain, twice, that differ at the far end only: the worst order for telling
 * apart.
 */
static void long_chains_are_told_apart_in_time(void **state)
{
	enum { N = 200000 };
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	for (uint32_t chain = 0; chain < 2; chain++) {
		uint32_t first = btf_builder_next_id(b);
		for (uint32_t i = 1; i < N; i++)
			ADD(ref, b, CAIRN_BTF_PTR, 0, first + i);
		ADD(fwd, b, str(b, chain ? "x" : "y"), false);
	}
	struct blob in = finish(b, NULL), out = dedup(in.btf, NULL);
	assert_int_equal(n_types(out.btf), 2 * N);
	blob_free(&out);
	blob_free(&in);
}

static void no_memory_is_said(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_unit(b, NULL);
	add_unit(b, "int");
	add_unit(b, "long");
	struct blob in = finish(b, NULL);
	for (unsigned int n = 1;; n++) {
		void *bytes = NULL;
		size_t size;
		alloc_fail_at(n);
		int rc = cairn_btf_dedup(in.btf, NULL, &bytes, &size, NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		free(bytes);
		if (!failed)
			break;
	}
	blob_free(&in);
}

/* ---- libbpf ---- */

/* @copies of the kernel's BTF one after another, as bytes of libbpf's making. */
static struct btf *kernel_copies(int copies)
{
	struct btf *kernel = btf__parse(KERNEL_BTF, NULL), *all = btf__new_empty();
	if (!kernel || !all) {
		print_message("%s: %s\n", KERNEL_BTF, strerror(errno));
		btf__free(all);
		return NULL;
	}
	for (int i = 0; i < copies; i++)
		assert_true(btf__add_btf(all, kernel) > 0);
	btf__free(kernel);
	return all;
}

static void libbpf_finds_as_many_types(void **state)
{
	struct btf *all = kernel_copies(3);
	uint32_t size;
	if (!all)
		skip();
	const void *bytes = btf__raw_data(all, &size);
	struct cairn_btf *in = must_open_mem(bytes, size, NULL);
	struct blob out = dedup(in, NULL);
	cairn_btf_close(in);
	assert_int_equal(btf__dedup(all, NULL), 0);
	assert_int_equal(cairn_btf_end_id(out.btf), btf__type_cnt(all));
	assert_int_equal(cairn_btf_check(out.btf, NULL, NULL), 0);
	struct btf *theirs = btf__new(out.bytes, (uint32_t)out.size);
	assert_non_null(theirs);
	assert_int_equal(btf__dedup(theirs, NULL), 0);
	assert_int_equal(btf__type_cnt(theirs), btf__type_cnt(all));
	btf__free(theirs);
	btf__free(all);
	blob_free(&out);
}

/* ---- random programs ---- */

enum { N_STRUCTS = 30, N_MEMBERS_MAX = 4 };

struct program {
	uint64_t seed;
	unsigned int n_units;
	struct {
		uint32_t n_members;
		uint32_t to
			[N_MEMBERS_MAX]; /* struct that a member points to; N_STRUCTS: it is an int */
		bool ambiguous;          /* units disagree about what it is */
	} structs[N_STRUCTS];
};

static uint32_t random_below(struct program *p, uint32_t n)
{
	p->seed = p->seed * 6364136223846793005 + 1442695040888963407;
	return (uint32_t)(p->seed >> 33) % n;
}

static struct program random_program(uint64_t seed, bool ambiguous)
{
	struct program p = {.seed = seed};
	p.n_units = 2 + random_below(&p, 8);
	for (int k = 0; k < N_STRUCTS; k++) {
		p.structs[k].n_members = 1 + random_below(&p, N_MEMBERS_MAX);
		p.structs[k].ambiguous = random_below(&p, 8) == 0 && ambiguous;
		for (int m = 0; m < N_MEMBERS_MAX; m++)
			p.structs[k].to[m] = random_below(&p, N_STRUCTS + 10);
	}
	return p;
}

/* An int, all structs (each fourth only declared), pointers to them, and a function for some. */
static void add_random_unit(struct cairn_btf_builder *b, struct program *p)
{
	char name[16];
	uint32_t first = btf_builder_next_id(b), pointers = first + 1 + N_STRUCTS;
	add_int(b);
	for (uint32_t k = 0; k < N_STRUCTS; k++) {
		struct cairn_btf_member members[N_MEMBERS_MAX + 1];
		uint32_t n = 0;
		for (; n < p->structs[k].n_members; n++) {
			uint32_t to = p->structs[k].to[n];
			snprintf(name, sizeof(name), "m%u", n);
			members[n] = (struct cairn_btf_member){
				str(b, name), to < N_STRUCTS ? pointers + to : first, 64 * n, 0};
		}
		if (p->structs[k].ambiguous && random_below(p, 2)) {
			members[n] = (struct cairn_btf_member){str(b, "more"), first, 64 * n, 0};
			n++;
		}
		snprintf(name, sizeof(name), "s%u", k);
		if (random_below(p, 4))
			ADD(struct, b, CAIRN_BTF_STRUCT, str(b, name), 8 * n, members, n);
		else
			ADD(fwd, b, str(b, name), false);
	}
	for (uint32_t k = 0; k < N_STRUCTS; k++)
		ADD(ref, b, CAIRN_BTF_PTR, 0, first + 1 + k);
	for (uint32_t k = 0; k < N_STRUCTS; k += 5) {
		struct cairn_btf_param arg = {str(b, "arg"), pointers + k};
		snprintf(name, sizeof(name), "f%u", k);
		uint32_t proto = ADD(func_proto, b, first, &arg, 1);
		ADD(func, b, str(b, name), CAIRN_BTF_GLOBAL, proto);
	}
}

static struct blob random_blob(uint64_t seed, bool ambiguous)
{
	struct program p = random_program(seed, ambiguous);
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	for (unsigned int u = 0; u < p.n_units; u++)
		add_random_unit(b, &p);
	return finish(b, NULL);
}

/* Where every name has one meaning, dedup has one right result. */
static void libbpf_finds_as_many_types_in_random_programs(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct blob in = random_blob(seed, false), out = dedup(in.btf, NULL);
		struct btf *theirs = btf__new(in.bytes, (uint32_t)in.size);
		assert_int_equal(btf__dedup(theirs, NULL), 0);
		assert_int_equal(cairn_btf_end_id(out.btf), btf__type_cnt(theirs));
		btf__free(theirs);
		blob_free(&out);
		blob_free(&in);
	}
}

static void assert_points_to_no_less(const struct cairn_btf *in, uint32_t x,
				     const struct cairn_btf *out, uint32_t y)
{
	struct cairn_btf_type from = must_have(in, x), to = must_have(out, y);
	assert_int_equal(from.kind, to.kind);
	if (from.kind != CAIRN_BTF_PTR)
		return;
	from = must_have(in, from.ref);
	to = must_have(out, to.ref);
	assert_string_equal(from.name, to.name);
	if (from.kind == CAIRN_BTF_STRUCT) {
		assert_int_equal(to.kind, CAIRN_BTF_STRUCT);
		assert_int_equal(to.vlen, from.vlen);
	}
}

/* A declaration may have become a definition, never the reverse. */
static void assert_loses_no_definition(const struct cairn_btf *in, const struct cairn_btf *out,
				       const uint32_t *map)
{
	struct cairn_btf_type x, y;
	for (uint32_t id = cairn_btf_start_id(in); cairn_btf_type(in, id, &x); id++) {
		y = must_have(out, map[id - cairn_btf_start_id(in)]);
		assert_string_equal(x.name, y.name);
		if (x.kind == CAIRN_BTF_FWD)
			continue;
		assert_int_equal(x.kind, y.kind);
		assert_int_equal(x.vlen, y.vlen);
		for (uint32_t m = 0; x.kind == CAIRN_BTF_STRUCT && m < x.vlen; m++)
			assert_points_to_no_less(in, cairn_btf_member(&x, m).type, out,
						 cairn_btf_member(&y, m).type);
	}
}

/*
 * Where a name has several meanings, declarations say less; dedup() makes sure that doing it again
 * changes nothing.
 */
static void ambiguous_names_lose_no_definition(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct blob in = random_blob(seed, true);
		uint32_t *map = calloc(n_types(in.btf), sizeof(*map));
		struct blob out = dedup(in.btf, map);
		assert_int_equal(cairn_btf_check(out.btf, NULL, NULL), 0);
		assert_loses_no_definition(in.btf, out.btf, map);
		free(map);
		blob_free(&out);
		blob_free(&in);
	}
}

/* ---- split ---- */

/* A base of some units, and a split blob of others, which define what the base only declares. */
struct split {
	struct blob base, in;
};

static struct split random_split(uint64_t seed)
{
	struct program p = random_program(seed, false);
	struct split s;
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	for (unsigned int u = 0; u < p.n_units / 2; u++)
		add_random_unit(b, &p);
	struct blob units = finish(b, NULL);
	s.base = dedup(units.btf, NULL);
	b = builder((struct cairn_btf_build_opts){.base = s.base.btf});
	for (unsigned int u = p.n_units / 2; u < p.n_units; u++)
		add_random_unit(b, &p);
	s.in = finish(b, s.base.btf);
	blob_free(&units);
	return s;
}

static void split_free(struct split *s)
{
	blob_free(&s->in);
	blob_free(&s->base);
}

static void bases_declaration_replaces_no_definition(void **state)
{
	for (uint64_t seed = 1; seed <= 100; seed++) {
		struct split s = random_split(seed);
		uint32_t *map = calloc(n_types(s.in.btf), sizeof(*map));
		struct blob out = dedup(s.in.btf, map);
		assert_int_equal(cairn_btf_check(out.btf, NULL, NULL), 0);
		assert_loses_no_definition(s.in.btf, out.btf, map);
		free(map);
		blob_free(&out);
		split_free(&s);
	}
}

/* libbpf 1.1 reads split BTF from files only. */
static struct btf *their_split(const struct blob *blob, struct btf *base)
{
	char path[32];
	int fd = memfd_create("split", 0);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, blob->bytes, blob->size), blob->size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct btf *btf = btf__parse_split(path, base);
	assert_non_null(btf);
	close(fd);
	return btf;
}

/*
 * The base only declares s2, to which its s1 points, and its s0 points to s1. libbpf keeps an own
 * s1, too. (Which other structs it keeps depends on their order: the one that is compared first.)
 */
static uint32_t add_split_unit(struct cairn_btf_builder *b, bool defines)
{
	uint32_t i = add_int(b), first = btf_builder_next_id(b);
	struct cairn_btf_member to_s2 = {str(b, "p"), first + 1, 0, 0},
				to_s1 = {str(b, "q"), first + 3, 0, 0};
	struct cairn_btf_member value = {str(b, "x"), i, 0, 0};
	if (defines)
		ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s2"), 4, &value, 1);
	else
		ADD(fwd, b, str(b, "s2"), false);
	ADD(ref, b, CAIRN_BTF_PTR, 0, first);
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s1"), 8, &to_s2, 1);
	ADD(ref, b, CAIRN_BTF_PTR, 0, first + 2);
	ADD(struct, b, CAIRN_BTF_STRUCT, str(b, "s0"), 8, &to_s1, 1);
	return first;
}

static void libbpf_keeps_as_many_types_of_a_split(void **state)
{
	struct cairn_btf_builder *b = builder((struct cairn_btf_build_opts){0});
	add_split_unit(b, false);
	struct blob base = finish(b, NULL);
	b = builder((struct cairn_btf_build_opts){.base = base.btf});
	uint32_t map[6], s2 = add_split_unit(b, true) - cairn_btf_end_id(base.btf);
	struct blob in = finish(b, base.btf), out = dedup(in.btf, map);
	struct btf *their_base = btf__new(base.bytes, (uint32_t)base.size);
	struct btf *theirs = their_split(&in, their_base);
	assert_int_equal(btf__dedup(theirs, NULL), 0);
	assert_int_equal(cairn_btf_end_id(out.btf), btf__type_cnt(theirs));
	assert_true(map[s2] >= cairn_btf_start_id(out.btf));
	assert_int_equal(must_have(out.btf, map[s2 + 1]).ref, map[s2]);
	struct cairn_btf_type s1 = must_have(out.btf, map[s2 + 2]);
	assert_int_equal(cairn_btf_member(&s1, 0).type, map[s2 + 1]);
	assert_true(map[s2 + 4] < cairn_btf_start_id(out.btf));
	btf__free(theirs);
	btf__free(their_base);
	blob_free(&out);
	blob_free(&in);
	blob_free(&base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_kind_twice_becomes_each_kind_once),
		cmocka_unit_test(circles_are_compared_as_graphs),
		cmocka_unit_test(declaration_becomes_the_only_definition),
		cmocka_unit_test(struct_that_knows_less_is_replaced_by_one_that_knows_more),
		cmocka_unit_test(declaration_of_several_definitions_stays),
		cmocka_unit_test(number_in_a_declaration_means_nothing),
		cmocka_unit_test(enum_without_values_becomes_the_enum),
		cmocka_unit_test(location_records_are_compared_in_full),
		cmocka_unit_test(equal_strings_at_several_offsets_are_equal),
		cmocka_unit_test(own_type_equal_to_the_bases_is_replaced),
		cmocka_unit_test(definition_is_not_replaced_by_the_bases_declaration),
		cmocka_unit_test(broken_reference_is_named),
		cmocka_unit_test(base_has_none_of_the_own_strings),
		cmocka_unit_test(loops_that_mean_nothing_end),
		cmocka_unit_test(long_chains_are_told_apart_in_time),
		cmocka_unit_test(no_memory_is_said),
		cmocka_unit_test(libbpf_finds_as_many_types),
		cmocka_unit_test(libbpf_finds_as_many_types_in_random_programs),
		cmocka_unit_test(ambiguous_names_lose_no_definition),
		cmocka_unit_test(bases_declaration_replaces_no_definition),
		cmocka_unit_test(libbpf_keeps_as_many_types_of_a_split),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
