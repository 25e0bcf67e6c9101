/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoding: bytes to typed values, as text or as JSON
 *
 * One value, where speed does not matter:
 *
 *	cairn_value_print(types, id, bytes, n_bytes, NULL, stdout);	// {.x = 1, .name = "ab"}
 *
 * Millions of records of one type: the type is compiled once, into a plan. The plan runs over each
 * record without the type graph, without printf and without allocating:
 *
 *	cairn_decode_new(types, id, &opts, &decode, &err);
 *	char buf[1 << 16];
 *	struct cairn_text_out out = {.buf = buf, .size = sizeof(buf), .flush = write_all};
 *	while (next_record(&bytes, &n_bytes))
 *		cairn_decode_run(decode, bytes, n_bytes, &out);
 *	cairn_decode_free(decode);
 *
 * Both are the same code. Records come from elsewhere: cairn/bpfmap.h reads the maps of BPF
 * programs.
 */
#ifndef CAIRN_DECODE_H
#define CAIRN_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

enum cairn_value_style {
	CAIRN_VALUE_TEXT, /* {.x = 1, .name = "ab"} */
	CAIRN_VALUE_JSON, /* {"x":1,"name":"ab"} */
};

/*
 * Which arm of a union is shown. Without any of these for a union, all its arms are. With some, the
 * first whose condition holds; when none does, the union's bytes in hexadecimal, as a member
 * "<of>".
 */
struct cairn_value_arm {
	const char *of;  /* the union's name as a member; "" for those without a name */
	const char *arm; /* name of the arm */
	/*
	 * the member of the enclosing struct, an integer or enum, that decides; NULL: always NULL:
	 * always
	 */
	const char *when;
	const char *value; /* the value of @when then: an enumerator's name, or a number as in C */
};

/* The format of a long double of 16 bytes. */
enum cairn_long_double {
	CAIRN_LONG_DOUBLE_X87,
	CAIRN_LONG_DOUBLE_QUAD,  /* IEEE, as on aarch64, riscv64 and s390x */
	CAIRN_LONG_DOUBLE_OTHER, /* two doubles, as on ppc64: not read, its bytes are shown */
};

#define CAIRN_VALUE_UNREADABLE_MEMORY SIZE_MAX

struct cairn_value_opts {
	/* sizeof(struct cairn_value_opts) of the caller; a longer, unknown tail must be zero. */
	size_t size;
	enum cairn_value_style style;
	bool hex; /* integers in hexadecimal; in JSON they are strings then */
	/* elements of an array shown before "..."; 0 means all that are there */
	uint32_t max_elems;
	uint32_t max_depth; /* nesting shown before "..."; 0 means 16, and more than 64 means 64 */
	bool big_endian;    /* the bytes, and the positions of bit-fields */
	bool padding; /* bytes of structs that no member covers are shown, as "<padding OFFSET>" */
	enum cairn_long_double long_double; /* of 16 bytes */
	const struct cairn_value_arm *arms;
	size_t n_arms;
	/*
	 * Strings, vectors and slices of C++, Rust and Go are shown as the structs that they are,
	 * and variants as unions.
	 */
	bool raw;
	/*
	 * Reads the memory that such a value points to. It copies up to @n bytes of the memory that
	 * the value is from, and returns the number that it has from @at on. It returns 0 if it
	 * does not have them, CAIRN_VALUE_UNREADABLE_MEMORY if they cannot be read. NULL: no such
	 * memory is available.
	 */
	size_t (*read)(void *ctx, uint64_t at, void *to, size_t n);
	void *read_ctx;
};

/*
 * cairn_value_print - bytes as a typed value
 *
 *	integers        decimal, of any width to 128 bits; JSON: numbers
 *	bool            true, false; a byte that is neither, as a number
 *	char            'c', escaped as in C; JSON: "c", and a number from 0x80 on. signed char and
 *	                unsigned char, which are int8_t and uint8_t, are integers
 *	char arrays     "text" up to the first NUL; bytes that are not UTF-8 are \ooo in text,
 *	                U+FFFD in JSON
 *	pointers        0x...; JSON: "0x..."
 *	enums           RED; A|B for flags, with bits that have no name as in A|0x40; else a number
 *	floats          the shortest decimal that reads back exactly; JSON: "NaN", "Infinity",
 *	                "-Infinity". A format that long double cannot hold exactly, or that is not
 *	                decoded: its bytes as one hexadecimal number
 *	complex         1+2i; JSON: [1,2]
 *	struct, class   {.x = 1, {.in_anonymous = 2}}; base classes first, {<Base> = {...}}. JSON:
 *	                members of anonymous members are keys of the object around them, a base
 *	                class is "<Base>"
 *	unions          every arm, as in a struct, or those that opts->arms choose
 *	strings         of C++ (std::string, std::string_view), Rust (&str, String), Go:
 *	                "text", with ... if only the first bytes could be read
 *	vectors, slices std::vector, &[T], Vec<T>, []T: as arrays. std::unique_ptr: its pointer
 *	                All of these only if the type's layout is the known one, else the struct.
 *	                opts->read reads the memory that they point to. Where it cannot be read:
 *	                <unreadable: N bytes at 0x...>, in JSON {"unreadable":"..."}; where it was
 *	                not read: <unavailable: N bytes at 0x... are not here>
 *	enums of Rust   Some(5), None, Shape::Circle {.r = 3}; JSON, as serde: {"Some":5},
 *	                "None", {"Circle":{"r":3}}. Records of Ada: the members that the
 *	                discriminant selects. A value that selects no variant: the bytes of all
 *	arrays          {1, 2}; JSON: [1,2]. Without a count (flexible array): as many elements as
 *	                the bytes hold
 *	void, function  <no value>; a struct that is only declared or unread: <incomplete>;
 *	                JSON: null
 *
 * A member beyond @n_bytes is shown as unavailable (<cut off>, in JSON null), never read. The first
 * missing element of an array is shown so, too, and ends the array. Parts that max_elems and
 * max_depth leave out are shown as ... (JSON: "..."). A graph that repeats the same bytes endlessly
 * (unions in unions) is cut in the same way once the output is out of all proportion to @n_bytes.
 *
 * @bytes    the value as it was in memory
 * @n_bytes  their number; may be less or more than the type's size
 * @opts     NULL for text in decimal, little-endian
 * Returns 0; -EINVAL for options that are not known here, or arms that the type does not have;
 * -ENOMEM; or a negative errno from @out.
 * Cost: O(nodes of the type) and the output. Threads: any, while no reader adds; @out is locked
 * meanwhile.
 */
int cairn_value_print(const struct cairn_types *types, uint32_t id, const void *bytes,
		      size_t n_bytes, const struct cairn_value_opts *opts, FILE *out);

/*
 * cairn_value_print_member - as cairn_value_print(), for one member, which may be a bit-field
 *
 * @member  from cairn_types_member(): its type, bit_off (counted from @bytes) and bit_size are
 *          used; with bit_size 0 an ordinary member at bit_off
 */
int cairn_value_print_member(const struct cairn_types *types, const struct cairn_member *member,
			     const void *bytes, size_t n_bytes, const struct cairn_value_opts *opts,
			     FILE *out);

/* ---- many records ---- */

/* The smallest buffer of a struct cairn_text_out. */
#define CAIRN_TEXT_OUT_MIN 1024

/* The sink for text: a buffer, which is emptied when it is full. */
struct cairn_text_out {
	char *buf;
	size_t size; /* at least CAIRN_TEXT_OUT_MIN */
	size_t n;    /* bytes in it; the caller writes the remaining ones at the end */
	/*
	 * Takes the first @n bytes. 0, or a negative errno, which ends the output. NULL: the buffer
	 * must do (-ENOSPC).
	 */
	int (*flush)(void *ctx, const char *text, size_t n);
	void *ctx;
	int failed; /* the error of flush; 0 so far */
};

struct cairn_decode;

/*
 * cairn_decode_new - compile a plan for printing values of a type
 *
 * @types  not used afterwards, and may grow or be freed
 * @opts   as for cairn_value_print()
 * Returns 0 with *@ret owned by the caller. -EINVAL: options that are not known, or an arm, its
 * union or its deciding member that is nowhere in the type (err says which). -ENOMEM.
 * Cost: O(nodes of the type with all it holds), cut at 2^17 of them. A plan is never changed: any
 * number of threads.
 */
int cairn_decode_new(const struct cairn_types *types, uint32_t id,
		     const struct cairn_value_opts *opts, struct cairn_decode **ret,
		     struct cairn_err *err);
void cairn_decode_free(struct cairn_decode *decode);

/*
 * cairn_decode_run - one value to @out, without a newline
 *
 * Returns 0, or the error of flush. Cost: O(output), no allocation (but printf's for long double).
 * Threads: any, each with an @out of its own.
 */
int cairn_decode_run(const struct cairn_decode *decode, const void *bytes, size_t n_bytes,
		     struct cairn_text_out *out);

/* A piece of text around values; 0, or the error of flush. */
int cairn_text_put(struct cairn_text_out *out, const char *text, size_t n);
/* The same in quotes, escaped as values of char arrays are: any bytes up to the first NUL. */
int cairn_text_quote(struct cairn_text_out *out, const char *text, size_t n, bool json);

/* ---- lengths ---- */

enum cairn_record_rule {
	/* ring buffers: the type's size; more only when it ends in a flexible array */
	CAIRN_RECORD_EXACT,
	CAIRN_RECORD_PERF, /* perf buffers: up to 7 bytes more, as samples are filled up to 8 */
};

/* The size of the type; a minimum if it ends with a flexible array. */
uint64_t cairn_decode_size(const struct cairn_decode *decode);
bool cairn_decode_is_flexible(const struct cairn_decode *decode);

/*
 * cairn_decode_check - is a record as long as its type demands?
 *
 * A flexible array may begin in the padding at the end of its struct: a record that holds all up to
 * there is long enough.
 * Returns 0; -EBADMSG: too short or too long (err: length found and expected).
 */
int cairn_decode_check(const struct cairn_decode *decode, size_t n_bytes,
		       enum cairn_record_rule rule, struct cairn_err *err);

CAIRN_END_DECLS
#endif
