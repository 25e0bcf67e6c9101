/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Prints BTF as C declarations that compile, with the layout of the BTF
 *
 *	dump_c.c          the requested records, one by one
 *	dump_c_record.c   one record
 *	dump_c_type.c     what a record is, and whether it is printed at its use
 *	dump_c_order.c    an order in which everything is declared before it is used
 *	dump_c_layout.c   attributes and padding that put members at their offsets
 *	dump_c_decl.c     declarators: int (*name[4])(const char *)
 *	dump_c_body.c     structs, unions and enums with the types nested in them
 *	dump_c_names.c    identifiers: unique, no keywords, valid in C
 *
 * C expresses some things less freely than BTF. A nameless type is printed at its use. It gets a
 * name of ours and is *hoisted* before its users where C cannot express it in place: in a
 * parameter, twice with the same enumerators, or so deep that text would explode. A pointer that
 * closes a circle without a struct is *cut*: "type fn func() fn" of Go has no C form but void *. A
 * member that cannot be expressed is a comment, and its bytes are a gap.
 */
#ifndef BTF_DUMP_C_H
#define BTF_DUMP_C_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "btf/dump.h"

/*
 * Pointers, arrays, qualifiers, typedefs in a row. Compilers give up at little more; a circle has
 * no end.
 */
#define C_CHAIN_MAX 256

/*
 * Levels of nameless structs, of parameters that are functions: C promises 63, and 12 in
 * declarators.
 */
#define C_BODY_DEPTH_MAX    60
#define C_PROTO_DEPTH_MAX   8
/*
 * Members and parameters printed in place by each of several users, so that no input makes text of
 * 2^n lines.
 */
#define C_SHARED_WEIGHT_MAX 256

/* The largest alignment that an attribute is used for: a page. */
#define C_ALIGN_MAX       4096
/* Gaps longer than this are an array with a name; shorter ones have none. */
#define C_GAP_ARRAY_BYTES 64

enum c_goal { C_DECLARED, C_DEFINED, C_N_GOALS };
enum c_state { C_NONE, C_OPEN, C_DONE };

#define C_MANY UINT32_MAX

/* The facts about a record. */
struct c_type {
	const char *name; /* as printed; NULL: none yet */
	/* the record that something nameless is printed in; 0: none; C_MANY: several times */
	uint32_t user;
	uint32_t depth, weight; /* of nameless structs and prototypes: levels and lines in place */
	uint32_t frame[C_N_GOALS]; /* while a goal is open: its site on the stack */
	const uint32_t *order;     /* of a struct's members by offset; NULL: as they are */
	uint16_t align;            /* of structs and unions as printed, in bytes */
	uint8_t state[C_N_GOALS];
	bool hoisted, cut;
	bool packed;
	bool overlay; /* members overlap: each is printed with a gap of its own in a union */
};

struct c_names;

struct dump_c {
	const struct cairn_btf *btf;
	FILE *out;
	int machine;
	uint32_t ptr_bytes;
	struct c_type *types; /* by id */
	struct arena arena;
	struct c_names *names;
	struct cairn_err *err;
	bool was_line;      /* the last output was one line */
	uint32_t n_renamed; /* names that were no identifiers */
	bool nomem;         /* a name or a text could not be made; reported at the end */
};

/* ---- dump_c_record.c ---- */

/* An empty line before it, unless it and the last output are lines. */
void c_begin(struct dump_c *d, bool is_line);
/* A function or variable; @attributes: the text before the semicolon. */
void c_print_extern(struct dump_c *d, const struct cairn_btf_type *t, const char *attributes);
/* Print one record to reach a goal; its parts are printed already. Called by c_need(). */
void c_print(struct dump_c *d, uint32_t id, enum c_goal goal);

/* ---- dump_c_order.c ---- */

/*
 * c_need - print everything that is needed to use the type: by name only, or complete
 *
 * Returns 0, -ENOMEM, -EBADMSG (a type contains itself).
 */
int c_need(struct dump_c *d, uint32_t id, enum c_goal goal);

/* ---- dump_c_type.c ---- */

/* The record; one of kind VOID for 0 and for ids that are not there. */
struct cairn_btf_type c_get(const struct dump_c *d, uint32_t id);

static inline bool c_is_qualifier(uint32_t kind)
{
	return kind == CAIRN_BTF_CONST || kind == CAIRN_BTF_VOLATILE ||
	       kind == CAIRN_BTF_RESTRICT || kind == CAIRN_BTF_TYPE_TAG;
}

static inline bool c_is_struct(uint32_t kind)
{
	return kind == CAIRN_BTF_STRUCT || kind == CAIRN_BTF_UNION;
}

static inline bool c_is_enum(uint32_t kind)
{
	return kind == CAIRN_BTF_ENUM || kind == CAIRN_BTF_ENUM64;
}

/* The type without qualifiers and typedefs; VOID if the chain has no end. */
struct cairn_btf_type c_resolve(const struct dump_c *d, uint32_t id);

/*
 * The type of a declarator's first word: without pointers, arrays and qualifiers, and without
 * functions if @returns. 0: void.
 */
uint32_t c_base(const struct dump_c *d, uint32_t id, bool returns);
/* One step of that way: false, and *@t as it was, at the end. */
bool c_next_link(const struct dump_c *d, struct cairn_btf_type *t, bool returns);

/* Printed where it is used: a struct, union or enum that has no name and is not hoisted. */
bool c_in_place(const struct dump_c *d, const struct cairn_btf_type *t);

/* ---- dump_c_decl.c ---- */

/* Growing text. */
struct c_text {
	char *p; /* NUL-terminated; NULL while empty */
	size_t n, cap;
};
void c_append(struct dump_c *d, struct c_text *t, const char *s);
void c_prepend(struct dump_c *d, struct c_text *t, const char *s);
__attribute__((format(printf, 3, 4))) void c_appendf(struct dump_c *d, struct c_text *t,
						     const char *fmt, ...);
/* " / * text * /" */
void c_append_comment(struct dump_c *d, struct c_text *t, const char *text);
static inline const char *c_str(const struct c_text *t)
{
	return t->p ? t->p : "";
}
void c_text_fini(struct c_text *t);

/*
 * A declaration in two parts: "const int " and "(*name)[4]". When the base is printed in place its
 * first part is the qualifiers only, and the body comes between them.
 */
struct c_decl {
	uint32_t base;
	struct c_text first, second;
};
void c_declare(struct dump_c *d, uint32_t id, const char *name, struct c_decl *ret);
void c_decl_fini(struct c_decl *decl);

/* ---- dump_c_layout.c ---- */

/* Bytes of a type as printed; false when it is not complete. */
bool c_size(const struct dump_c *d, uint32_t id, uint64_t *ret);
/* Alignment in bytes of a complete type as printed. */
uint32_t c_align(const struct dump_c *d, uint32_t id);

/* The words that C has for an INT or FLOAT, or NULL: then it gets a typedef by c_print(). */
const char *c_builtin(const struct dump_c *d, const struct cairn_btf_type *t);
/* The type that this typedef is made from; NULL: bytes. */
const char *c_builtin_like(const struct dump_c *d, const struct cairn_btf_type *t);

/*
 * Choose how a struct or union is printed (align, packed, overlay), its members' types being done.
 */
void c_layout(struct dump_c *d, const struct cairn_btf_type *t);

/*
 * Going over the members in the order of printing, which is that of their offsets unless they
 * overlap.
 */
struct c_walk {
	struct cairn_btf_type t;
	uint64_t at;      /* bits: where the next member would begin */
	uint32_t align;   /* bytes: of the whole, up to here */
	uint32_t natural; /* bytes: without attributes */
	bool packed;
};
struct c_member {
	struct cairn_btf_member m;
	const char *why_not; /* it cannot be expressed; the other fields are then void */
	uint64_t bit_off, bits;
	uint32_t align;      /* bytes */
	uint64_t gap_from;   /* bits: explicit padding from here to bit_off; == bit_off: none */
	uint32_t attr_align; /* bytes: an attribute pads instead; 0: none */
	bool misplaced;      /* not where a compiler can put it: packed or overlay is needed */
	bool overlaps;
};
struct c_walk c_walk_of(const struct dump_c *d, const struct cairn_btf_type *t);
/* The @i-th of that order. */
struct c_member c_step(const struct dump_c *d, struct c_walk *w, uint32_t i);
/* After the last member: bytes of alignment that pad the rest, or 0 and the gap's first bit. */
uint32_t c_rest(const struct c_walk *w, uint64_t *gap_from);

/* ---- dump_c_body.c ---- */

/* "PREFIX type name ATTRIBUTES;" with a body in place where the base has no name. */
void c_print_decl(struct dump_c *d, const char *prefix, uint32_t id, const char *name,
		  const char *attributes);
/* "struct name { ... };", the same for enums. */
void c_print_definition(struct dump_c *d, const struct cairn_btf_type *t);

/* ---- dump_c_names.c ---- */

struct c_names *c_names_new(struct arena *arena);
void c_names_free(struct c_names *names);

/* "struct", "union" or "enum". */
const char *c_keyword(const struct cairn_btf_type *t);

/* The identifier a type is printed with, made at the first call; "" out of memory. */
const char *c_name(struct dump_c *d, const struct cairn_btf_type *t);

/*
 * The identifier of an enumerator, which shares its name space with typedefs, functions and
 * variables.
 */
const char *c_ordinary(struct dump_c *d, const char *name);

/* One of a struct's or prototype's own names; @scope has those that are taken. */
const char *c_scoped(struct dump_c *d, struct map *scope, const char *name);

/* Is it a keyword of C23 only, which older programs define themselves? */
bool c_is_c23_word(const char *name);
#define C_BEFORE_C23 "#if !defined(__STDC_VERSION__) || __STDC_VERSION__ < 202311L\n"

/* A comment with the name as it was, when it had to be changed; else nothing. */
void c_put_original(struct dump_c *d, const char *printed, const char *original);
/* Note that a name is printed as another one. */
void c_count_renamed(struct dump_c *d, const char *printed, const char *original);
/* Text inside a comment that it cannot end. */
void c_put_quoted(FILE *out, const char *text);

#endif
