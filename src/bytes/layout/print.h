/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing layouts in pahole's text: shared by the files
 *
 *	print.c         structs, unions and enums, nested ones too
 *	print_member.c  one member: type, name, offset, size
 *	print_variant.c  when it is there, in enums of Rust and records of Ada
 *	print_sums.c    the comments below the members
 *	type_text.c     types as pahole writes them
 *
 * Columns: the type has 26 characters, the name 23; each level of nesting takes 8 from the type,
 * and a union at the outermost level 2 from the name.
 */
#ifndef LAYOUT_PRINT_H
#define LAYOUT_PRINT_H

#include <stdio.h>

#include "layout/view.h"

enum {
	TYPE_COLUMN = 26,
	NAME_COLUMN = 23,
	TYPE_TEXT_MAX = 4096,
};

struct print {
	struct cairn_layout *l;
	FILE *out;
	uint64_t cacheline_seen; /* number of the last cache line that a comment named */
	uint32_t n_members;      /* written so far, of all levels */
};

/*
 * The largest structs of a kernel have some 10,000 with everything in them; unions that repeat one
 * another have no end.
 */
enum { PRINTED_MAX = 1 << 18 };

/*
 * The position on the page: the level, the remaining columns, and the base of the members' offsets.
 */
struct place {
	unsigned int indent;
	int type_column, name_column;
	uint64_t base;         /* bytes */
	bool may_end_flexible; /* no union is around: the last member may be a flexible array */
	bool first_line;       /* directly after the brace */
	/* of a struct in another one: pahole prints the sums of those that are const */
	bool has_sums;
	bool is_unknown; /* base means nothing: an outer member's offset is not known */
};

void print_tabs(const struct print *p, const struct place *at);

/* A name as text; its width. */
int print_name(const struct print *p, const char *name);

/* print.c: "struct { ... }", with its attributes; no offset, no newline. */
void print_body(struct print *p, const struct cairn_type *t, const struct place *at,
		unsigned int depth);

/*
 * The @i-th member of @of; its type is written out when it has no name or opts.expand says so.
 * Without a newline.
 */
void print_member(struct print *p, const struct cairn_type *of, uint32_t i,
		  const struct cairn_layout_member *m, const struct place *at, unsigned int depth);

/*
 * After the @i-th member of @of: the values of the discriminant for which it is present, if known.
 */
void print_variant(const struct print *p, const struct cairn_type *of, uint32_t i);

void print_sums(struct print *p, const struct cairn_type *t, const struct cairn_layout_facts *facts,
		const struct cairn_layout_member *m, const struct place *at);

/* Its last member is a flexible array. */
bool ends_flexible(const struct cairn_layout *l, const struct cairn_type *t);
/* A struct in it, by value, ends so, or has one in it. @depth 0. */
bool embeds_flexible(const struct cairn_layout *l, uint32_t id, unsigned int depth);

/*
 * The comment "--- cacheline 1 boundary (64 bytes) ---" when @off is the first member's in its
 * cache line.
 */
void print_cacheline(struct print *p, uint64_t off, const struct place *at);

/* ---- type_text.c ---- */

/*
 * The text before a member's name and the text after it: "int" and "[4]", "int" and ")(char)". The
 * name of a function pointer goes between "(*" and the second text.
 */
struct type_text {
	char before[TYPE_TEXT_MAX], behind[TYPE_TEXT_MAX];
	const char *mark; /* directly before the name: "" or "(*" */
};

/* "const " and the like; "" for a kind that is no qualifier, or that comes after. */
const char *qualifier_text(enum cairn_type_kind kind);

/* @flexible: an array without a count is [], else [0]. */
void type_text(const struct cairn_layout *l, uint32_t id, bool flexible, struct type_text *ret);

#endif
