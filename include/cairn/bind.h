/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Accessors in other languages, generated from offsets
 *
 *	cairn_bind_write(types, ids, n, CAIRN_BIND_RUST, &opts, stdout, &err);
 *
 * The generated code reads and writes bytes at offsets. If the language has structs, a struct comes
 * with it, with all padding written out. The compiler, or the module when it is loaded, refuses the
 * struct if its layout is another. Members of structs in structs, of arrays and of unions all
 * become one flat list:
 *
 *	struct event { u32 pid; struct { u16 port; } peer[2]; u8 kind : 3; };
 *
 *	pid()  peer_port(i)  kind()  and set_... of each; or getPid(), as the language has its names
 *
 * Each binding checks, at compile time or when it is loaded, that sizes and offsets are those that
 * it was made for.
 */
#ifndef CAIRN_BIND_H
#define CAIRN_BIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

enum cairn_bind_lang {
	CAIRN_BIND_C,          /* a header of static inline functions, C11 */
	CAIRN_BIND_RUST,       /* a module over byte slices, no_std, Rust 1.77 */
	CAIRN_BIND_JAVA,       /* classes over java.lang.foreign, final since Java 22 */
	CAIRN_BIND_PYTHON,     /* a module over memoryview, without dependencies, Python 3.6 */
	CAIRN_BIND_JSON,       /* what the others are made from: one object per type */
	CAIRN_BIND_GO,         /* a package over byte slices, Go 1.18 */
	CAIRN_BIND_TYPESCRIPT, /* a module over DataView, ES2020 */
};

struct cairn_bind_opts {
	size_t size;     /* sizeof(struct cairn_bind_opts); a longer, unknown tail must be zero */
	bool big_endian; /* of the bytes, and of the places of bit-fields */
	/*
	 * Java: names of ASCII letters, digits and _ with dots between them; NULL: none. Go: one
	 * such name; NULL: records.
	 */
	const char *package;
	const char *origin; /* named in the first comment; NULL: not */
	/*
	 * set to the number of names that are no identifiers and are written in another way; NULL:
	 * not
	 */
	size_t *n_renamed;
	/* set to the number of members that no accessor reads, see the comments; NULL: not */
	size_t *n_left_out;
	bool accessors; /* JSON: also what the accessors are called, in @names_of */
	enum cairn_bind_lang names_of;
};

/*
 * cairn_bind_write - accessors of structs and unions
 *
 *	integers, enums, pointers  integers of their width and sign; 128 bits: __int128, i128,
 *	                           BigInteger, int
 *	bool                       bool; float, double: the same
 *	char arrays                text up to the first NUL; set: cut, and filled up with NULs
 *	bit-fields to 64 bits      as integers
 *	anything else              bytes (long double, _Complex, integers of odd sizes)
 *	enumerators                constants of the type and value that accessors return
 *	arrays                     an index for each dimension, checked; a flexible one extends to
 *	                           the end of the record
 *
 * A member whose offset is not known (cairn_member.dynamic) has no accessors, and its struct has no
 * counterpart: a comment says so, in JSON "left_out".
 *
 * @ids   structs or unions with names, perhaps typedefs of such; enums, for their constants
 * Returns 0. -EINVAL: a type without members or name, or options that are not known. -ERANGE: more
 * than 65,536 members in all, or nested deeper than 32. -ENOMEM. ferror() reports errors of @out.
 */
int cairn_bind_write(const struct cairn_types *types, const uint32_t *ids, size_t n_ids,
		     enum cairn_bind_lang lang, const struct cairn_bind_opts *opts, FILE *out,
		     struct cairn_err *err);

CAIRN_END_DECLS
#endif
