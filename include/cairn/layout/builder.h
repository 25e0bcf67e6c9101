/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Building types: declare members, get offsets
 *
 * An annotation processor, a schema or a user interface describes a struct with these calls. The
 * result is types with the layout that one ABI gives them. They can be described, printed, turned
 * into BTF (cairn_btf_add_types()) or C, without parsing any C.
 *
 *	struct cairn_layout_builder *b = cairn_layout_builder_new(cairn_abi_find("bpf"));
 *	uint32_t u32 = cairn_build_int(b, "unsigned int", CAIRN_C_INT, true);
 *	uint32_t c = cairn_build_int(b, "char", CAIRN_C_CHAR, false);
 *	struct cairn_build_member members[] = {
 *		{.name = "e_pid", .type = u32},
 *		{.name = "e_filename", .type = cairn_build_array(b, c, 256)},
 *		{.name = "e_comm", .type = cairn_build_array(b, c, 16)},
 *	};
 *	uint32_t event = cairn_build_struct(b, "event", members, 3, NULL);
 *	if (cairn_layout_builder_types(b, &types, &err) < 0)	// any failure on the way
 *		return fail(err.msg);
 *	printf("%" PRIu64 "\n", cairn_types_get(types, event)->members[2].bit_off / 8);	// 260
 *	cairn_layout_builder_free(b);
 *
 * The first failure is kept, and everything after it returns id 0, so that one check at the end is
 * enough. Names and members are copied. One builder belongs to one thread at a time.
 */
#ifndef CAIRN_LAYOUT_BUILDER_H
#define CAIRN_LAYOUT_BUILDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_layout_builder;

/* NULL when there is no memory. @abi: NULL is x86-64. */
struct cairn_layout_builder *cairn_layout_builder_new(const struct cairn_abi *abi);
void cairn_layout_builder_free(struct cairn_layout_builder *b);

/*
 * An integer, a char or a bool of the ABI's size, under any name. char is what CAIRN_C_CHAR is;
 * @is_unsigned says whether it is decoded so. Failure: -EINVAL, the ABI has no such type.
 */
uint32_t cairn_build_int(struct cairn_layout_builder *b, const char *name, enum cairn_scalar kind,
			 bool is_unsigned);
/* FLOAT16 to FLOAT128. */
uint32_t cairn_build_float(struct cairn_layout_builder *b, const char *name,
			   enum cairn_scalar kind);
/* @to: 0 for void *. */
uint32_t cairn_build_pointer(struct cairn_layout_builder *b, uint32_t to);
/* @count: 0 makes a flexible array, "[]". */
uint32_t cairn_build_array(struct cairn_layout_builder *b, uint32_t element, uint64_t count);
uint32_t cairn_build_typedef(struct cairn_layout_builder *b, const char *name, uint32_t to);
/* @bytes: 1, 2, 4 or 8; 4 is what C makes of an enum without attributes. */
uint32_t cairn_build_enum(struct cairn_layout_builder *b, const char *name, uint32_t bytes,
			  bool is_signed, const struct cairn_enumerator *values, uint32_t n);

struct cairn_build_member {
	/* NULL: an anonymous struct or union, or a bit-field that only takes room */
	const char *name;
	uint32_t type;
	bool bit_field;
	uint32_t bits;    /* of a bit-field; 0 closes the unit */
	uint32_t aligned; /* __attribute__((aligned(N))); 0: none */
	bool packed;
};

struct cairn_build_opts {
	size_t size; /* sizeof(struct cairn_build_opts) */
	bool packed;
	uint32_t aligned; /* 0: none */
	uint32_t pack;    /* #pragma pack(N); 0: none */
};

/*
 * A struct or union; @name may be NULL, @opts too. Failures: -EINVAL: a member's type is not of
 * this builder or has no size, a bit-field that is no integer or wider than its type, an alignment
 * that is no power of 2 (the error names the member); -ERANGE.
 */
uint32_t cairn_build_struct(struct cairn_layout_builder *b, const char *name,
			    const struct cairn_build_member *members, uint32_t n,
			    const struct cairn_build_opts *opts);
uint32_t cairn_build_union(struct cairn_layout_builder *b, const char *name,
			   const struct cairn_build_member *members, uint32_t n,
			   const struct cairn_build_opts *opts);

/*
 * cairn_layout_builder_types - everything that was built, or the first failure
 *
 * @ret  borrowed until cairn_layout_builder_free(); grows when more is built
 * Returns 0; the first failure: -EINVAL, -ERANGE, -ENOMEM.
 */
int cairn_layout_builder_types(struct cairn_layout_builder *b, const struct cairn_types **ret,
			       struct cairn_err *err);

CAIRN_END_DECLS
#endif
