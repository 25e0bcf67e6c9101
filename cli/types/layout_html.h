/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * --html: structs as a picture
 *
 *	layout_html.c        the page: two sides, their types, tables of members
 *	layout_map.c         the byte map of one struct
 *	layout_html_style.c  how it looks
 *
 * A page is one file without scripts. A row is a word of 8 bytes, a cache line a block of rows:
 *
 *	0   [1 c][///////////// 7 bytes hole //////////////]
 *	8   [2 l                                           ]
 *
 * Three features tell what a piece is: its colour, its pattern, and its text.
 */
#ifndef CLI_LAYOUT_HTML_H
#define CLI_LAYOUT_HTML_H

#include "layout.h"

/* The style sheet; static. */
extern const char layout_html_style[];

/* One of the layouts that stand side by side. */
struct html_side {
	const char *label; /* "x86-64", or the file */
	const struct cairn_types *types;
	struct cairn_layout *layout;
	struct layout_source source;
	struct cairn_source_list list;
};

/* A member, also one of an anonymous struct, and with --expand of any struct inside. */
struct html_leaf {
	char *name; /* "a.b" */
	uint32_t type;
	uint64_t bit_off;  /* from the start of the struct */
	uint64_t size;     /* bytes of the type */
	uint32_t bit_size; /* 0: no bit-field */
	bool unplaced;     /* its offset is not known, bit_off means nothing */
	bool is_base;      /* a base class of the struct itself */
	size_t order;      /* in which it was declared */
};

struct html_leaves {
	struct html_leaf *p;
	size_t n, cap;
	uint64_t n_text; /* characters of all names */
	bool no_memory, too_long;
};

void html_leaves_collect(const struct html_side *side, uint32_t id, bool expand,
			 struct html_leaves *ret);
void html_leaves_free(struct html_leaves *leaves);

/* The class of CSS that a type has: "int", "float", "pointer", "array", "struct", "bits". */
const char *html_class(const struct cairn_types *types, const struct html_leaf *leaf);

/* Text where markup would be understood. */
void html_text(const char *text);

/* The byte map of a struct with these members on stdout; @cacheline in bytes. */
void html_map(const struct html_side *side, uint32_t id, const struct html_leaves *leaves,
	      uint64_t cacheline, bool hex);

#endif
