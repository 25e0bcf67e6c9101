/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes as text: parsing, and giving types to expressions
 *
 *	/usr/bin/redis-server:lookupKey(db->id, key->ptr:str) if flags & 4 && db
 *	`------------ head ------------'`------ values ------'   `- condition -'
 *
 * Parsing knows no types. Then path_types.c, operator_types.c and the files beside them resolve
 * every name against one function, parameters first, and write into each node the data that the
 * code generators need. A user's typing mistake is reported with the text and a caret under the
 * error.
 */
#ifndef TRACE_EXPR_H
#define TRACE_EXPR_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/sites.h>
#include <cairn/types.h>

#include "base/arena.h"
#include "base/err.h"
#include "trace/abi_host.h"

/*
 * Longest probe, deepest nesting. Both far beyond a user's typing; the depth bounds our recursion.
 */
#define PROBE_TEXT_MAX 4096
#define EXPR_DEPTH_MAX 32

enum expr_kind {
	EXPR_NAME,
	EXPR_INT,
	EXPR_STRING,
	EXPR_MEMBER,  /* a.name */
	EXPR_ARROW,   /* a->name */
	EXPR_INDEX,   /* a[b] */
	EXPR_DEREF,   /* *a */
	EXPR_ADDRESS, /* &a */
	EXPR_MINUS,
	EXPR_INVERT, /* ~a */
	EXPR_NOT,    /* !a */
	EXPR_BINARY, /* a OP b, a code from FETCH_ADD to FETCH_GE, signed until compiled */
	EXPR_AND,    /* a && b */
	EXPR_OR,
	EXPR_CAST,   /* (type_name)a */
	EXPR_SIZEOF, /* sizeof(a), or without a sizeof(type_name) */
	EXPR_KNOWN,  /* $pid and so on: what the kernel knows, a code of enum fetch_known */
	EXPR_STR,    /* str(a), str(a, value): the string at an address */
	EXPR_BUF,    /* buf(a, b): b bytes at an address */
	EXPR_FLOAT,  /* 1.5: value has the bits of the double */
	EXPR_CHOICE, /* a ? b : c */
};

/* A type as it is written: "const struct rec *" is the words "struct rec" and one pointer. */
struct expr_type_name {
	const char *words;
	unsigned int n_pointers;
};

/* How the text of a comparison ends. */
enum expr_text {
	TEXT_TO_NUL,  /* char, up to a NUL */
	TEXT_COUNTED, /* a recipe says how many bytes: std::string, &str */
	TEXT_WIDE,    /* characters of 2 or 4 bytes, up to one that is 0 */
};

/* The longest strings of comparisons, in characters; of char it is FETCH_STREQ_BYTES. */
enum { EXPR_TEXT_MAX = 64, EXPR_WIDE_MAX = 15 };

/* A name that is no parameter. The kept numbers are made by returns.c; param is which one. */
enum expr_special { EXPR_PLAIN, EXPR_RETURN, EXPR_DURATION, EXPR_KEPT };

struct site_global;

struct expr {
	enum expr_kind kind;
	enum expr_special special;              /* NAME */
	enum fetch_code op;                     /* BINARY */
	uint32_t at;                            /* offset in the probe's text, for the caret */
	const char *name;                       /* NAME, MEMBER, ARROW; STRING: its bytes */
	const char *scopes;                     /* NAME: "a.c" of a.c::x; NULL: it has none */
	uint32_t n_bytes;                       /* STRING */
	uint64_t value;                         /* INT */
	bool is_unsigned, is_long;              /* INT: of the literal; checked: of every number */
	const struct expr_type_name *type_name; /* CAST, SIZEOF */
	struct expr *a, *b, *c;

	/* Set by expr_type_path() and expr_type_condition(). */
	bool is_path;    /* made of names, members, dereferences: has a type of the graph */
	bool is_string;  /* a comparison of strings, or a literal */
	bool is_address; /* &a, $duration: no type of the graph */
	uint32_t param;  /* NAME */
	const struct site_global *global; /* NAME: a variable of a file; NULL: a parameter */
	uint32_t type;                    /* of a path, in the graph; typedefs kept */
	/* MEMBER, ARROW, INDEX: from the start of the object that a is or points to */
	uint64_t bit_off;
	uint32_t bit_size; /* of a bit-field, else 0 */
	int64_t byte_off;  /* INDEX of a pointer, which may be negative */
	/* INDEX that is no constant: the size of an element, and their number; 0: it is not known */
	bool is_variable;
	uint64_t stride, n_elements;
	/*
	 * A number that is a pointer: what it points to, 0: void or not known, and the size of that
	 * (in stride), by which additions count.
	 */
	bool is_pointer;
	uint32_t pointee;
	/* CAST: bytes that are kept, and whether any of them make a 1 */
	uint8_t cast_bytes;
	bool is_bool, is_cast_unsigned;
	bool is_text; /* CAST to char * */
	uint8_t unit; /* CAST to wchar_t * and the like, BINARY of TEXT_WIDE: bytes of a character */
	bool is_wide;        /* STRING: L"x"; STR: wstr() */
	enum expr_text text; /* BINARY, if is_string */
	bool is_float;       /* a path of a floating type, or a literal of it */
};

struct probe_value_text {
	const char *text;
	struct expr *expr;
	bool as_string, hex;
	bool is_wide;         /* of wstr() */
	uint32_t most;        /* of str(p, most): bytes; 0: as many as of any string */
	struct expr *n_bytes; /* of buf(p, n_bytes); NULL: it is none */
	const char *unit;     /* of a weight; NULL: it has none */
	bool is_of_format;    /* its position is in the format, not in the probe */
};

enum probe_kind {
	PROBE_OF_FUNCTION, /* [PATH:][FILE[:LINE]:]FUNC, a uprobe */
	PROBE_OF_USDT,     /* [PATH:]PROVIDER:NAME */
	PROBE_OF_PLACE,    /* [PATH:] and FUNC:LINE, FILE:LINE or FUNC+OFF */
};

struct probe_text {
	const char *text; /* all of it, in the arena */
	enum probe_kind kind;
	const char *head;  /* without the kind's prefix */
	const char *types; /* of the function's parameters: "(int, char *)"; NULL: not written */
	bool has_list;
	uint32_t n_values;
	struct probe_value_text *values;
	uint8_t *format_values;     /* by field of the format, the value's number; NULL without */
	const char *condition_text; /* NULL without */
	struct expr *condition;
};

/*
 * probe_parse - text to tree
 *
 * @arena  owns everything in @ret
 * Returns 0; -EINVAL with the site; -ERANGE: too long, too deep or too many values; -EOPNOTSUPP:
 * another kind of probe (kprobe: and so on); -ENOMEM.
 */
int probe_parse(struct arena *arena, const char *text, struct probe_text *ret,
		struct cairn_err *err);

/*
 * The same for a probe whose hits have a number: the list has at most one value, which is an
 * expression as in a condition, with a unit after it: "n * size:bytes".
 */
int probe_parse_weighed(struct arena *arena, const char *text, struct probe_text *ret,
			struct cairn_err *err);

/*
 * The number of an aggregate.
 *
 * @range  ",FROM,TO,STEP" comes after it, and is returned there; NULL: nothing does
 * Errors as probe_parse().
 */
int probe_parse_number(struct arena *arena, const char *text, int64_t *range,
		       struct probe_value_text *ret, struct cairn_err *err);

/* "KEY, ...", at most @max of them. Errors as probe_parse(). */
int probe_parse_keys(struct arena *arena, const char *text, uint32_t max,
		     struct probe_value_text *ret, uint32_t *ret_n, struct cairn_err *err);

/*
 * An expression in a longer text, from *@at on; *@at is moved to what comes after it. Errors as
 * probe_parse().
 */
int probe_parse_field(struct arena *arena, const char *text, uint32_t *at,
		      struct probe_value_text *ret, struct cairn_err *err);

/* States that something is wrong at @at of @text, with a caret. Returns @code. */
__attribute__((format(printf, 5, 6))) int
probe_error(struct cairn_err *err, int code, const char *text, uint32_t at, const char *fmt, ...);

/* The meanings of names: a function's parameters, and the types that they lead to. */
struct expr_scope {
	const struct cairn_types *types;
	struct cairn_sites *sites;      /* completes types on demand; NULL when all are complete */
	const struct cairn_binary *bin; /* of the function; NULL in tests */
	const struct cairn_function *function;
	const char *text; /* of the probe, for errors */
	/* What an expression is part of, for errors: "an aggregate"; NULL: "a condition". */
	const char *part_of;
	/* Why there is no $ret and no $duration; NULL: they are names. */
	const char *no_returns;
	/* Its arguments have no other types than numbers: a word may be an address. */
	bool has_words;
};

/* The reason why a function's parameters are not known. */
const char *why_no_params(const struct cairn_function *f);

/*
 * expr_type_path - give types to a fetched value
 *
 * Returns 0; -EINVAL: no such parameter or member, or an expression that makes no sense (err, with
 * caret); or the result of cairn_sites_complete_type().
 */
int expr_type_path(const struct expr_scope *scope, struct expr *e, struct cairn_err *err);

/*
 * expr_type_value - the same for a value that may also be arithmetic
 *
 * What is made of names, members and dereferences is_path; anything else is a number, as in a
 * condition.
 */
int expr_type_value(const struct expr_scope *scope, struct expr *e, struct cairn_err *err);

/* The same for a key, which may be an enumerator: a number that is always the same. */
int expr_type_key(const struct expr_scope *scope, struct expr *e, struct cairn_err *err);

/*
 * The same for a condition: every node gets its C arithmetic type (int, unsigned, long, unsigned
 * long).
 */
int expr_type_condition(const struct expr_scope *scope, struct expr *e, struct cairn_err *err);

/*
 * The words of a type of C that is an integer: "unsigned long", "uint8_t". False: it is another
 * one, or none.
 */
struct base_type {
	uint8_t bytes;
	bool is_unsigned, is_bool;
};
bool base_type_of(const char *words, struct base_type *ret);

/* Whether a type is a pointer to char (or an array of it), which is fetched as a string. */
/* Whether :str has a meaning for an expression that expr_type_path() gave a type. */
bool expr_may_be_string(const struct expr_scope *scope, const struct expr *e);

/*
 * expr_may_be_text - whether a path is text whose bytes are counted, by a recipe, or a reference to
 * it
 *
 * Returns 1, 0, or the result of cairn_sites_complete_type().
 */
int expr_may_be_text(const struct expr_scope *scope, const struct expr *e, struct cairn_err *err);

/* Bytes of a character of a pointer to wide ones, or of an array of them; 0: it is none. */
uint8_t type_wide_unit(const struct cairn_types *types, uint32_t id);

/* The same of a type by its words, which is @id if the graph has it. */
uint8_t type_wide_unit_of_words(const struct cairn_types *types, const char *words, uint32_t id);

/*
 * expr_wide_unit - bytes of a character of a string at an expression's address
 *
 * @is_wide  wstr() says that there are wide ones: those of an unknown type are wchar_t
 * Returns 0 for none.
 */
uint8_t expr_wide_unit(const struct expr_scope *scope, const struct expr *e, bool is_wide);

/*
 * expr_wide_text - the characters of a literal, as units of 2 or 4 bytes
 *
 * Returns how many, at most @max; -1: it is not UTF-8; -2: there are more.
 */
int expr_wide_text(const struct expr *literal, uint8_t unit, uint32_t *ret, int max);

bool type_is_char_pointer(const struct cairn_types *types, uint32_t id);
bool type_is_signed(const struct cairn_types *types, uint32_t id); /* integers and enumerations */
bool type_is_char_array(const struct cairn_types *types, uint32_t id);

#endif
