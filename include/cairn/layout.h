/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layout: computes the offsets of a struct's members, on every ABI
 *
 * An ABI is a row of data: sizes and alignments of the arithmetic types, and a few rules in which
 * ABIs differ. Placing members needs no more than their sizes and alignments:
 *
 *	struct cairn_place_member m[] = {{.size = 1, .align = 1}, {.size = 8, .align = 8}};
 *	struct cairn_place_record r = {.members = m, .n_members = 2};
 *	cairn_layout_place(cairn_abi_find("x86-64"), &r, &err);	// m[1].bit_off 64, r.size 16
 *
 * Types that have been laid out, by a compiler or here, are described (holes, padding) and printed,
 * in the text of pahole:
 *
 *	cairn_layout_new(types, NULL, &layout, &err);
 *	cairn_layout_print(layout, id, stdout);
 *	cairn_layout_free(layout);
 *
 * Rules: the System V ABIs' and Microsoft's, as GCC and Clang have them for C. C++ classes are not
 * placed here.
 */
#ifndef CAIRN_LAYOUT_H
#define CAIRN_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

/* ---- languages ---- */

/* Those with rules of their own for structs; cairn/source.h reads their declarations. */
enum cairn_lang {
	CAIRN_LANG_JAVA,
	CAIRN_LANG_RUST,
	CAIRN_LANG_GO,
	CAIRN_LANG_PYTHON,
	CAIRN_LANG_N
};

/* A type whose layout the language does not fix, or that has a member which is not known here. */
struct cairn_decl_problem {
	const char *type; /* its name */
	const char *text; /* file, line, column, reason, the line and a caret */
	/* it is laid out all the same; the reason is something that its user should know */
	bool laid_out;
};

/* ---- ABIs ---- */

enum cairn_scalar {
	CAIRN_C_BOOL,
	CAIRN_C_CHAR,
	CAIRN_C_SHORT,
	CAIRN_C_INT,
	CAIRN_C_LONG,
	CAIRN_C_LLONG,
	CAIRN_C_INT128,
	CAIRN_C_FLOAT16,
	CAIRN_C_FLOAT,
	CAIRN_C_DOUBLE,
	CAIRN_C_LDOUBLE,
	CAIRN_C_FLOAT128,
	CAIRN_C_PTR,
	CAIRN_C_FLOAT64X,
	CAIRN_C_GNU_FLOAT128, /* __float128; aarch64 and others know it as _Float128 only */
	CAIRN_C_IBM128,
	CAIRN_C_DECIMAL32,
	CAIRN_C_DECIMAL64,
	CAIRN_C_DECIMAL128,
	CAIRN_C_N_SCALARS
};

/*
 * Bytes; a size of 0: the ABI has no such type. The alignment is that of a struct member (_Alignof
 * of a struct with it), not GCC's __alignof__.
 */
struct cairn_scalar_layout {
	uint8_t size, align;
};

struct cairn_abi {
	const char *name;   /* "x86-64" */
	const char *triple; /* its name for clang --target= */
	struct cairn_scalar_layout scalars[CAIRN_C_N_SCALARS];
	bool big_endian;
	bool char_unsigned; /* plain char */
	bool wchar_unsigned;
	uint8_t wchar_size;
	/* Bit-fields by Microsoft's rules, also in struct ms_struct elsewhere. */
	bool ms;
	/* A bit-field without a name, also of width 0, raises the alignment of the struct. */
	bool unnamed_counts;
	uint8_t bare_aligned;      /* __attribute__((aligned)) */
	uint32_t vector_align_max; /* bytes; a vector is aligned to its size up to here */
	/* bytes; an _Atomic up to here is aligned to its size, rounded up to a power of 2 */
	uint8_t atomic_max;
	uint8_t empty_size;   /* of a struct without members */
	uint8_t va_list_size; /* of the struct that __builtin_va_list is; 0: it is a pointer */
	bool va_list_array;   /* it is an array of one such struct */
	/* bytes; _BitInt(N) is aligned to N rounded up to a power of 2, up to here */
	uint8_t bit_int_align;
	uint32_t bit_int_max; /* bits; 0: there is no _BitInt */
};

/* The ABI of that name; NULL when it is not known. */
const struct cairn_abi *cairn_abi_find(const char *name);

/* The @i-th, NULL after the last. */
const struct cairn_abi *cairn_abi_at(size_t i);

/* The ABI of an ELF file, by the fields of its header; NULL when none here is of that kind. */
const struct cairn_abi *cairn_abi_of_elf(unsigned int machine, bool is_64, bool big_endian,
					 uint32_t flags);

/* ---- placing ---- */

struct cairn_place_member {
	uint64_t size;    /* bytes of the type; for a bit-field of its declared type */
	uint32_t align;   /* bytes, of the type */
	uint32_t aligned; /* __attribute__((aligned(N))) on the member; 0: none */
	bool packed;      /* __attribute__((packed)) on the member */
	bool named;
	bool bit_field;
	uint32_t width; /* of a bit-field in bits; 0 closes the unit */
	/*
	 * The type demands its alignment even if the struct is packed: a struct that is itself
	 * declared aligned. MS only.
	 */
	uint32_t required;
	/*
	 * For a number, or an array of numbers: the bytes of one. Used only for ms_struct on ABIs
	 * that are not Microsoft's.
	 */
	uint32_t number;
	/* result: from the start of the struct; big endian: to the most significant bit */
	uint64_t bit_off;
};

struct cairn_place_record {
	struct cairn_place_member *members;
	size_t n_members;
	bool is_union;
	bool packed;    /* __attribute__((packed)) */
	bool ms_struct; /* __attribute__((ms_struct)) */
	/* __attribute__((gcc_struct)): not Microsoft's rules, on an ABI that has them */
	bool gcc_struct;
	uint32_t aligned; /* __attribute__((aligned(N))) on the struct; 0: none */
	uint32_t pack;    /* #pragma pack(N); 0: none */
	uint64_t size;    /* result, bytes */
	uint32_t align;   /* result, bytes */
};

/*
 * A struct may have at most this many bytes: offsets in bits then fit anywhere, and nothing real
 * comes near.
 */
#define CAIRN_LAYOUT_SIZE_MAX (UINT64_C(1) << 40)

/*
 * cairn_layout_place - compute offsets of the members of one struct or union, its size and
 * alignment
 *
 * @rec  in: members and attributes; alignments are powers of 2, 0 counts as 1. out: bit_off of each
 *       member, size, align
 * Returns 0. -EINVAL: an alignment that is no power of 2 or above 2^28, or a bit-field wider than
 * its type (err says which member, counted from 0). -ERANGE: larger than CAIRN_LAYOUT_SIZE_MAX.
 * Results are then undefined.
 * Cost: O(members), no allocation. Threads: any. Signals: safe, with @err NULL.
 */
int cairn_layout_place(const struct cairn_abi *abi, struct cairn_place_record *rec,
		       struct cairn_err *err);

/* ---- the waste in a layout ---- */

struct cairn_layout;

struct cairn_layout_opts {
	size_t size; /* sizeof(struct cairn_layout_opts); a longer, unknown tail must be zero */
	uint32_t cacheline; /* bytes; 0: 64 */
	bool expand;        /* print: write out the structs of members, and theirs */
	bool hex;           /* print: offsets and sizes in hexadecimal */
	/* the types are of such a machine: this gives the position of a bit-field in its unit */
	bool big_endian;
	/*
	 * The types do not record which alignments the source requested (BTF): infer them from the
	 * offsets, as pahole does.
	 */
	bool infer_aligned;
	const struct cairn_abi *abi; /* that the types were laid out for; NULL: x86-64 */
};

/*
 * cairn_layout_new - a view of laid-out types, for describing and printing any number of them
 *
 * @types  outlives the result and does not grow meanwhile
 * @opts   may be NULL
 * Returns 0 with *@ret owned by the caller; -EINVAL for options that are not known here; -ENOMEM.
 * Cost: 32 bytes per type. A view belongs to one thread at a time.
 */
int cairn_layout_new(const struct cairn_types *types, const struct cairn_layout_opts *opts,
		     struct cairn_layout **ret, struct cairn_err *err);
void cairn_layout_free(struct cairn_layout *layout);

/* A member as it lies in memory. */
struct cairn_layout_member {
	/* bytes; for a bit-field the offset of the unit of its type that holds it */
	uint64_t offset;
	uint64_t size;     /* bytes of the type */
	uint32_t bit_pos;  /* of a bit-field in its unit, from the least significant bit */
	uint32_t aligned;  /* bytes, requested or inferred; 0: none */
	uint64_t hole;     /* bytes between it and the next */
	uint32_t bit_hole; /* unused bits after it in the unit */
};

/*
 * Sums over one struct as pahole has them. They cover the direct members; members of anonymous
 * members are not counted.
 */
struct cairn_layout_facts {
	uint64_t size; /* bytes */
	uint32_t n_members;
	/*
	 * Members whose offset is not known (cairn_member.dynamic), and base classes that have such
	 * members. No sum below has their bytes. A gap that may hold them counts neither as a hole
	 * nor as padding.
	 */
	uint32_t n_unplaced, n_unplaced_bases;
	uint64_t sum_members;    /* bytes of members that are no bit-fields */
	uint64_t sum_bit_fields; /* bits */
	uint32_t n_holes, n_bit_holes;
	uint64_t sum_holes;     /* bytes */
	uint64_t sum_bit_holes; /* bits */
	uint64_t first_hole;    /* bytes before the first member; counted in the sums */
	uint32_t first_bit_hole;
	uint64_t padding;     /* bytes after the last member */
	uint32_t bit_padding; /* bits left over in the last unit */
	uint32_t aligned; /* bytes that the struct was declared aligned to, or seems to; 0: none */
	/* the largest among its members, as far as their types show; at least 1 */
	uint32_t natural_align;
	bool packed; /* it must have been: members are not where they would be */
};

/*
 * cairn_layout_facts - describe a struct, class or union
 *
 * @id       may be a typedef or qualified type of one
 * @members  NULL, or room for all of its members
 * Returns 1; 0 if @id has no members (another kind, only declared, unread), and results are then
 * untouched; -ENOMEM. Cost: O(members); those of nested structs once per view.
 */
int cairn_layout_facts(struct cairn_layout *layout, uint32_t id, struct cairn_layout_facts *ret,
		       struct cairn_layout_member *members);

/*
 * cairn_layout_order - the members in the order of their offsets; Rust does not declare them in
 * that order
 *
 * @order  of all members: which one comes first, second, ...
 * Returns 1 when that is another order than the declared one, 0, or -ENOMEM.
 */
int cairn_layout_order(struct cairn_layout *layout, uint32_t id, uint32_t *order);

/* ---- text ---- */

/*
 * cairn_layout_print - a struct, union or enum as C with offsets and sizes, holes and cache lines:
 * pahole's text
 *
 * Structs nested deeper than 64 are "...". Nothing is printed for other kinds.
 * Returns 0; -ENOMEM. ferror() reports errors of @out.
 * Cost: O(output).
 */
int cairn_layout_print(struct cairn_layout *layout, uint32_t id, FILE *out);

CAIRN_END_DECLS
#endif
