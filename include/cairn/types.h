/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The type graph that all sources share
 *
 * The types in DWARF, BTF and C declarations are read into one graph of nodes with 32-bit ids. Id 0
 * is void. A node never changes once its reader has finished it; until then it is marked unread.
 *
 *	char text[256];
 *	cairn_types_name(types, id, text, sizeof(text));	// "const struct list_head *"
 *	id = cairn_types_resolve(types, id);	// without typedefs, const, ...
 *	const struct cairn_type *t = cairn_types_get(types, id);
 *	for (uint32_t i = 0; i < t->n_members; i++)
 *		puts(t->members[i].name);
 *
 * It computes no layout of its own: sizes and offsets are those that the compiler wrote down.
 */
#ifndef CAIRN_TYPES_H
#define CAIRN_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>

CAIRN_BEGIN_DECLS

enum cairn_type_kind {
	CAIRN_T_VOID,
	CAIRN_T_INT, /* encoding distinguishes signed, bool, char */
	CAIRN_T_FLOAT,
	CAIRN_T_PTR,
	CAIRN_T_REF,        /* C++ & */
	CAIRN_T_RREF,       /* C++ && */
	CAIRN_T_MEMBER_PTR, /* C++ pointer to member */
	CAIRN_T_ARRAY,
	CAIRN_T_STRUCT,
	CAIRN_T_CLASS,
	CAIRN_T_UNION,
	CAIRN_T_ENUM,
	CAIRN_T_TYPEDEF,
	CAIRN_T_CONST,
	CAIRN_T_VOLATILE,
	CAIRN_T_RESTRICT,
	CAIRN_T_ATOMIC,
	CAIRN_T_FUNC,        /* function type: ref is the return type, members are parameters */
	CAIRN_T_UNSPECIFIED, /* decltype(nullptr) and the like: has a name only */
};

enum cairn_type_encoding {
	CAIRN_ENC_UNSIGNED,
	CAIRN_ENC_SIGNED,
	CAIRN_ENC_BOOL,
	CAIRN_ENC_SIGNED_CHAR,
	CAIRN_ENC_UNSIGNED_CHAR,
	CAIRN_ENC_UTF,     /* char8_t, char16_t, char32_t */
	CAIRN_ENC_COMPLEX, /* of a FLOAT */
	/*
	 * Not decoded: decimal floats, an enum that is unread or only declared.
	 */
	CAIRN_ENC_OPAQUE,
};

/* A member of a struct, union or class; a parameter of a function type. */
struct cairn_member {
	const char *name; /* NULL for an anonymous member */
	uint32_t type;
	/* Bit-field: its width in bits, else 0. */
	uint32_t bit_size;
	/*
	 * Offset from the start of the struct in bits. For a bit-field on a little-endian machine:
	 * the position of its least significant bit.
	 */
	uint64_t bit_off;
	/*
	 * bit_off means nothing: the offset is known only at run time (virtual base class), or the
	 * debug information contradicts itself about it.
	 */
	bool dynamic;
	bool is_base_class;
	/*
	 * It selects the variant (cairn_variants), and has no name of its own in the program. It is
	 * the first member of Rust's variants, and a member of each variant's struct if no other
	 * member has its bytes.
	 */
	bool is_discriminant;
	/* bytes that an attribute of the member requests; 0: none was written down */
	uint32_t align;
};

/*
 * Values of a discriminant from @lo to @hi, each as written: sign-extended for a signed
 * discriminant, or not.
 */
struct cairn_variant_range {
	uint64_t lo, hi;
};

struct cairn_variant {
	const struct cairn_variant_range *ranges;
	uint32_t n_ranges; /* 0: the member is there for every value that no other one has */
};

/*
 * Which member of a union is there: enums of Rust, variant records of Ada. The discriminant is
 * anywhere in the struct around the union, also in bytes of one of the members.
 */
struct cairn_variants {
	/* of the discriminant: an integer, enum or pointer; 0: there is none, and one variant */
	uint32_t type;
	uint32_t bit_size;              /* of a bit-field; else 0 */
	int64_t bit_off;                /* from the start of the union; may be below 0 */
	const struct cairn_variant *of; /* for each member; not used for a discriminant */
};

struct cairn_enumerator {
	const char *name;
	/*
	 * Sign-extended from the enum's width; for an unsigned enum wider than 63 bits: the same
	 * bits.
	 */
	int64_t value;
};

struct cairn_type {
	enum cairn_type_kind kind;
	enum cairn_type_encoding encoding;
	const char *name; /* NULL when anonymous; C++: qualified, "std::vector<int>" */
	/* Size in bytes; 0 when unknown or a declaration. For an array: of the whole array. */
	uint64_t size;
	/*
	 * Pointee, element, aliased, return or underlying type. STRUCT of Rust, once it is read:
	 * the type that it is made for, the T of Vec<T>; 0 otherwise.
	 */
	uint32_t ref;
	uint32_t container; /* MEMBER_PTR: the class that it points into */
	/* Struct, class, union, enum: the name stands alone, as in C++; C says "struct NAME". */
	bool bare_name;
	/* Struct or union that is only declared in this unit and defined in none that was read. */
	bool declaration;
	/*
	 * Members or enumerators have not been read yet (a reader that goes through a whole kernel
	 * for one pointer would be useless). The rest is right. Its reader can complete the node in
	 * place.
	 */
	bool unread;
	bool prototyped; /* FUNC: false for the old style "int f()" */
	bool variadic;   /* FUNC */
	/* Array: number of elements; has_count is false for "[]" and variable length. */
	bool has_count;
	uint64_t count;
	/*
	 * STRUCT of Rust, once it is read: it is the content of an enum, and as large; its tail is
	 * not its own
	 */
	bool is_variant;
	bool vector; /* ARRAY: __attribute__((vector_size(...))), passed and named as one value */
	/* bytes that an attribute requests, also for a typedef; 0: none was written down */
	uint32_t align;
	/*
	 * Bytes; its alignment as a member. 0: unknown, DWARF and BTF do not say it of all types.
	 */
	uint32_t abi_align;
	/*
	 * INT, FLOAT: stored in the byte order that the machine does not have
	 * (scalar_storage_order, ctypes.BigEndianStructure). STRUCT, UNION: so are the enums among
	 * its members, and arrays of enums, which say nothing themselves.
	 */
	bool byte_swapped;
	uint32_t n_members;
	const struct cairn_member *members;
	uint32_t n_enumerators;
	const struct cairn_enumerator *enumerators;
	/* UNION: which of its members is there; NULL: unknown. */
	const struct cairn_variants *variants;
	/*
	 * ENUM: whether a value of 32 bits with the highest one set is negative was not written
	 * down, as in BTF of compilers before 2022. It counts as negative when it is a small number
	 * then.
	 */
	bool unsure_sign;
};

struct cairn_types;

/*
 * The node; @id must come from the same graph (any other number gives void). Borrowed until the
 * graph is freed, also while it grows. Threads: any, while no reader adds. Signals: safe.
 */
const struct cairn_type *cairn_types_get(const struct cairn_types *types, uint32_t id);

/* Number of ids, void included: ids are [0, count). */
uint32_t cairn_types_n_types(const struct cairn_types *types);

/*
 * The id without typedefs and qualifiers. A cycle of typedefs or a chain of more than 1024, which
 * only damaged input has, ends at void. Cost: O(length of the chain), no allocation. Threads,
 * signals: as cairn_types_get().
 */
uint32_t cairn_types_resolve(const struct cairn_types *types, uint32_t id);

/* The size in bytes, without typedefs and qualifiers; 0 if unknown. */
uint64_t cairn_types_size(const struct cairn_types *types, uint32_t id);

/*
 * cairn_types_name - the type as C (or C++) writes it, without a declared name: "char *[4]"
 *
 * Qualifiers stand where C programmers put them ("const char *", "char *const"), a struct without a
 * name is "struct {...}". A type more than 64 derivations deep (pointer to array of function ...),
 * which only damaged input has, is cut with "...".
 *
 * @buf, @size  as snprintf: always terminated, result is the length that was needed; @buf may be
 *              NULL when @size is 0
 * Cost: O(length of the name), no allocation. Threads: any, while no reader adds.
 */
size_t cairn_types_name(const struct cairn_types *types, uint32_t id, char *buf, size_t size);

/* A declaration: cairn_types_declare(t, id, "argv") gives "char *argv[4]". Result as above. */
size_t cairn_types_declare(const struct cairn_types *types, uint32_t id, const char *name,
			   char *buf, size_t size);

/*
 * cairn_types_member - find a member by name, also in anonymous structs, unions and base classes
 *
 * A name of the class itself hides the same name of its base classes.
 *
 * @id   a struct, union or class, perhaps a typedef or qualified type of one
 * @ret  the member, with bit_off counted from the start of @id; dynamic if any step on the way is
 * Returns false if @id has no such member, and if there is no memory for the search.
 * Cost: O(members visited). Threads: any, while no reader adds.
 */
bool cairn_types_member(const struct cairn_types *types, uint32_t id, const char *name,
			struct cairn_member *ret);

/*
 * cairn_types_suggest - names of the graph near to one that was not found
 *
 * Near are names with few slips of the finger, then names that contain it. Without scopes @name is
 * compared with last components: "Jbo" finds "ns::Job".
 *
 * @name  perhaps with "struct ", "class ", "union " or "enum " before it
 * @ret   up to @max names, at most 16; nearest first; borrowed from the graph
 * Returns their number. Types that are only declared do not count. Cost: O(types). Threads: any,
 * while no reader adds.
 */
size_t cairn_types_suggest(const struct cairn_types *types, const char *name, const char **ret,
			   size_t max);

CAIRN_END_DECLS
#endif
