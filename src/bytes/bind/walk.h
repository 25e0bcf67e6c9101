/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module bind writes accessors for records of bytes in C, Rust, Java, Python, Go and TypeScript.
 *
 * This header: the one walk over members that all languages are written from.
 *
 * A field is a value that is not divided further, with where it lies: a fixed offset, and for each
 * array around it a count and a stride. event.peer[i].port is {off 4, dims {{2, 2}}}.
 */
#ifndef BIND_WALK_H
#define BIND_WALK_H

#include <cairn/bind.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/quote.h"
#include "base/vec.h"

enum bind_kind {
	BIND_INT,   /* size 1, 2, 4, 8 or 16; or a bit-field: bits not 0 */
	BIND_BOOL,  /* a byte or a bit-field */
	BIND_FLOAT, /* size 4 or 8 */
	BIND_TEXT,  /* size bytes; 0: to the end of the record */
	BIND_BYTES,
};

/* Arrays of arrays of structs with arrays; more than this has no place in an argument list. */
enum { BIND_DIMS_MAX = 8, BIND_DEPTH_MAX = 32, BIND_FIELDS_MAX = 65536 };

struct bind_dim {
	uint64_t count; /* 0: flexible, up to the end of the record */
	uint64_t stride;
};

/* On the way from the record to a field: into a member, or (name NULL) into an element. */
struct bind_step {
	const char *name;
};

struct bind_field {
	const char *name;      /* an identifier, unique in its record: "peer_port" */
	const char *get, *set; /* the accessors as the language names them (names.c) */
	const char *path;      /* with the names of the source: "peer[0].port" */
	bool path_is_c;        /* offsetof() takes it: all names are identifiers */
	const char *type;      /* as C writes it, for comments */
	enum bind_kind kind;
	bool is_signed;
	bool big_endian;     /* of the bytes, and of the places of bits */
	uint64_t off, size;  /* bytes; of a bit-field: all that it touches */
	uint8_t shift, bits; /* of a bit-field, in the order of the machine's bits */
	/* bytes of the integer that is returned: of a bit-field, one that it fits in */
	uint8_t value_size;
	uint32_t enum_no; /* its constants are those of enums.p[enum_no - 1]; 0: it has none */
	uint32_t n_dims;
	struct bind_dim dims[BIND_DIMS_MAX];
	uint32_t n_steps;
	const struct bind_step *steps;
};

/* A member that no accessor reads. */
struct bind_left_out {
	const char *path; /* as above; a base class has the name of its class */
	const char *why;  /* static */
};

struct bind_record {
	const char *source_name;
	const char *name;  /* of the source when that is an identifier, else one that is like it */
	const char *upper; /* PADDED_EVENT */
	const char *camel; /* PaddedEvent */
	uint32_t id;
	uint64_t size;
	bool is_union;
	VEC(struct bind_field) fields;
	VEC(struct bind_left_out) left_out;
};

struct bind_constant {
	const char *source_name;
	const char *name; /* as the language takes it, unique in its enum */
	int64_t value;    /* cut to the size of the enum, as its members are read */
};

/* An enum that a member has, or that was requested itself. */
struct bind_enum {
	const char *source_name;
	const char *name;   /* an identifier: "color" */
	const char *camel;  /* "Color" */
	const char *module; /* "color", of Rust */
	uint64_t size;      /* 1, 2, 4 or 8 */
	bool is_signed;
	uint32_t n_constants;
	struct bind_constant *constants;
};

/* A member of a struct that is written beside the accessors; or bytes that are of none. */
struct bind_part {
	const char *name; /* as the language has it, unique in its struct */
	const char *step; /* its bind_step.name; NULL: padding, or bytes of bit-fields */
	const char *type; /* as C writes it, for comments */
	/* kind, sign, order; off in the struct, size of an element; counts of its dims */
	struct bind_field value;
	const struct bind_shape *shape; /* a struct of this file; NULL: a value */
	bool as_bytes; /* the language cannot say its type there: bytes of the same size */
};

/* A struct as a type of the language: event, and struct peer in it. */
struct bind_shape {
	const char *source_name;
	const char *name;     /* "EventStruct" */
	const char *why_not;  /* the language has none like it; NULL: it has */
	uint64_t size, align; /* align: as the language aligns it */
	bool is_union, is_packed;
	VEC(struct bind_part) parts;
	struct map steps; /* hash of a part's step: its index */
};

struct bind_file {
	const struct cairn_types *types;
	const struct cairn_bind_opts *opts;
	struct arena arena;
	VEC(struct bind_record) records;
	VEC(struct bind_enum) enums;
	VEC(struct bind_shape *) shapes; /* those that others are made of come first */
	struct map shape_of;             /* id of a type, resolved: its number in shapes, from 1 */
	struct map enum_of;              /* id of a type: its number in enums, from 1 */
	/* for bind_unique(): names of types, and those at the top of the generated file */
	struct map idents, tops;
	bool has_little, has_big;                     /* numbers of either order */
	bool has_bits, has_bytes, has_text, has_wide; /* which helpers are needed */
	FILE *out;
	size_t n_renamed;  /* names that were no identifiers */
	size_t n_left_out; /* members of all records that no accessor reads */
	bool no_memory;    /* while writing: the output is not complete */
};

/* Fills records and enums; opts, types and arena are set. */
int bind_walk(struct bind_file *file, const uint32_t *ids, size_t n_ids, struct cairn_err *err);

/* A value that is no array and has no members; @in_swapped as above. False: it has no bytes. */
bool bind_value_of(const struct bind_file *file, uint32_t type, bool in_swapped,
		   struct bind_field *ret);
/* A bit-field, with the offset in its struct; false: it is none that is written. */
bool bind_bits_of(const struct bind_file *file, const struct cairn_member *m, bool in_swapped,
		  struct bind_field *ret);
bool bind_is_text(const struct cairn_type *element);

/* ---- shape.c ---- */

/* The structs of all records, as @lang can say them. 0 or -ENOMEM. */
int bind_shape_all(struct bind_file *file, enum cairn_bind_lang lang);
/* NULL: the language has no struct for it. */
const struct bind_shape *bind_shape_of(const struct bind_file *file, const struct bind_record *r);
/*
 * The field as a member of the record's struct, "peers[0].port"; NULL: it is not in there, or as
 * bytes.
 */
const char *bind_in_struct(struct bind_file *file, const struct bind_record *r,
			   const struct bind_field *f);
void bind_free_shapes(struct bind_file *file);

/* ---- enums.c ---- */

/*
 * The number of enum @id (resolved), which gets one when it has constants; 0: it has none. An enum
 * without a name is named after @type, which may be a typedef of it, or as @otherwise says.
 * -ENOMEM.
 */
int64_t bind_enum_number(struct bind_file *file, uint32_t id, uint32_t type, const char *otherwise);

/* ---- names.c ---- */

/* An identifier of every language: letters, digits, underscores, no digit first. */
char *bind_identifier(struct arena *arena, const char *name);
/* "PaddedEvent", of any identifier; no word that a generated file uses itself. */
char *bind_camel_case(struct arena *arena, const char *name);
/* @name, or with a number when @names has it already; NULL: no memory. */
const char *bind_unique(struct arena *arena, struct map *names, const char *name);
/*
 * A name that is free at the top of the generated file, and so are the names made from it: NewName,
 * NameStruct.
 */
const char *bind_top_name(struct bind_file *file, const char *name);
/* Names accessors and constants as the language does. 0 or -ENOMEM. */
int bind_name_all(struct bind_file *file, enum cairn_bind_lang lang);
/* The name of a member in a struct of the language; @name is an identifier. */
const char *bind_part_name(struct bind_file *file, enum cairn_bind_lang lang, const char *name);

/*
 * The order of the bytes of a scalar; @in_swapped: cairn_type.byte_swapped of the struct that it is
 * right inside of.
 */
bool bind_is_big_endian(const struct bind_file *file, const struct cairn_type *t, bool in_swapped);

/* A name for an anonymous member of which the @i-th is one. */
const char *bind_anonymous(struct arena *arena, uint32_t i);

/* ---- text that the writers share ---- */

/* A name of the source inside of a comment. */
void bind_put_comment(const struct bind_file *file, const char *name);
/* "Accessors made by cairn bind of FILE. Do not edit." with the file's name quoted. */
void bind_put_origin(const struct bind_file *file, enum cairn_quote as);

/* The members without accessors, a line of comment each, between @before and @after. */
void bind_put_left_out(const struct bind_file *file, const char *before, const char *after);

/*
 * An element of a flexible array, or text up to the record's end: its length is known at run time.
 */
bool bind_is_flexible(const struct bind_field *f);

/* "i0, i1", each with @before before it; nothing for a field that is in no array. */
void bind_put_indices(const struct bind_file *file, const struct bind_field *f, const char *before,
		      const char *after);
/* "4 + i0 * 2"; without terms that add or multiply nothing. */
void bind_put_offset(const struct bind_file *file, const struct bind_field *f, const char *suffix);

/* One file per language. */
void bind_write_c(const struct bind_file *file);
void bind_write_rust(const struct bind_file *file);
void bind_write_java(struct bind_file *file);
void bind_write_python(const struct bind_file *file);
void bind_write_go(const struct bind_file *file);
void bind_write_typescript(const struct bind_file *file);
void bind_write_json(struct bind_file *file);

#endif
