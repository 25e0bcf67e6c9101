/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * For tests of src/ground/types: a type graph, written down. One graph per test, made by CLAIM().
 */
#ifndef UNIT_TYPE_GRAPH_H
#define UNIT_TYPE_GRAPH_H

#include "types/build.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a graph, written down ---- */

static struct cairn_types *types;

static inline int setup(void **state)
{
	types = types_new();
	return types ? 0 : -1;
}

static inline int teardown(void **state)
{
	types_free(types);
	return 0;
}

static inline uint32_t add(struct cairn_type t)
{
	uint32_t id = types_reserve(types);
	assert_int_not_equal(id, 0);
	types_set(types, id, &t);
	return id;
}

static inline uint32_t scalar(const char *name, uint64_t size, enum cairn_type_encoding encoding)
{
	return add((struct cairn_type){
		.kind = CAIRN_T_INT, .name = name, .size = size, .encoding = encoding});
}

static inline uint32_t t_int(void)
{
	return scalar("int", 4, CAIRN_ENC_SIGNED);
}

static inline uint32_t t_char(void)
{
	return scalar("char", 1, CAIRN_ENC_SIGNED_CHAR);
}

static inline uint32_t t_float(const char *name, uint64_t size)
{
	return add((struct cairn_type){.kind = CAIRN_T_FLOAT, .name = name, .size = size});
}

static inline uint32_t derived(enum cairn_type_kind kind, uint32_t ref)
{
	return add((struct cairn_type){
		.kind = kind, .ref = ref, .size = kind == CAIRN_T_PTR ? sizeof(void *) : 0});
}

static inline uint32_t ptr(uint32_t to)
{
	return derived(CAIRN_T_PTR, to);
}

static inline uint32_t array(uint32_t of, uint64_t count)
{
	return add((struct cairn_type){.kind = CAIRN_T_ARRAY,
				       .ref = of,
				       .has_count = true,
				       .count = count,
				       .size = count * cairn_types_size(types, of)});
}

static inline uint32_t flexible(uint32_t of)
{
	return add((struct cairn_type){.kind = CAIRN_T_ARRAY, .ref = of});
}

/* @members: kept by reference, so mostly compound literals of the test. */
static inline uint32_t aggregate(enum cairn_type_kind kind, const char *name, uint64_t size,
				 const struct cairn_member *members, uint32_t n)
{
	return add((struct cairn_type){
		.kind = kind, .name = name, .size = size, .members = members, .n_members = n});
}
#define MEMBERS(...)                                                                               \
	(const struct cairn_member[]){__VA_ARGS__},                                                \
		ARRAY_SIZE(((const struct cairn_member[]){__VA_ARGS__}))

static inline uint32_t func(uint32_t ret, const struct cairn_member *params, uint32_t n,
			    bool variadic)
{
	return add((struct cairn_type){.kind = CAIRN_T_FUNC,
				       .ref = ret,
				       .members = params,
				       .n_members = n,
				       .prototyped = true,
				       .variadic = variadic});
}

static inline uint32_t enumeration(const char *name, uint64_t size,
				   enum cairn_type_encoding encoding,
				   const struct cairn_enumerator *e, uint32_t n)
{
	return add((struct cairn_type){.kind = CAIRN_T_ENUM,
				       .name = name,
				       .size = size,
				       .encoding = encoding,
				       .enumerators = e,
				       .n_enumerators = n});
}
#define ENUMERATORS(...)                                                                           \
	(const struct cairn_enumerator[]){__VA_ARGS__},                                            \
		ARRAY_SIZE(((const struct cairn_enumerator[]){__VA_ARGS__}))

#define CLAIM(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
