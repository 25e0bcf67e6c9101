/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types of C++, Rust and Go that are more than their bytes; the table and the essay are in
 * recipe.c.
 */
#ifndef DECODE_RECIPE_H
#define DECODE_RECIPE_H

#include <cairn/types.h>

enum recipe_kind {
	RECIPE_NONE,
	RECIPE_TEXT,    /* bytes of text elsewhere, any of them NUL */
	RECIPE_ARRAY,   /* elements elsewhere, one after the other */
	RECIPE_POINTER, /* nothing but a pointer */
};

/* The positions of the parts of such a value; two different words of its bytes. */
struct recipe {
	enum recipe_kind kind;
	uint64_t size;  /* of the value */
	uint64_t ptr;   /* offset of the pointer to the data elsewhere */
	uint64_t count; /* offset of the number of elements, or of the pointer to the end of them */
	bool count_is_end;
	/*
	 * Text that may be inside: if its length is shifted by 1 in a byte whose lowest bit is 0,
	 * it is the bytes at inside, at most n_inside of them, which is 0 for types without text.
	 */
	uint64_t length, inside, n_inside;
	uint32_t element; /* type; 0 of text and of pointers */
	uint64_t element_bytes;
};

/*
 * recipe_of - how a value of type @id is read
 *
 * Returns false, with RECIPE_NONE, for a type that has no recipe, or whose layout does not match
 * its recipe. Cost: compares its name with those of the table. Threads: any, while no reader adds.
 */
bool recipe_of(const struct cairn_types *types, uint32_t id, struct recipe *ret);

/*
 * True if its name is that of a recipe: a caller that completes types completes it, and then its
 * element.
 */
bool recipe_may_be(const struct cairn_types *types, uint32_t id);

/*
 * wide_char_bytes - the size of a type of wide characters, 2 or 4
 *
 * They are wchar_t, char16_t and char32_t: in C typedefs of these names, in C++ types. 0: it is
 * another type.
 */
uint8_t wide_char_bytes(const struct cairn_types *types, uint32_t id);

/* A value with a recipe, at a fixed place of a larger one. */
struct recipe_at {
	uint64_t off;
	struct recipe recipe;
};

/*
 * recipe_all - those of a type and of the structs in it that point to something; returns how many,
 * at most @max
 */
unsigned int recipe_all(const struct cairn_types *types, uint32_t id, struct recipe_at *ret,
			unsigned int max);

/*
 * The data elsewhere: false when the words contradict each other (the end before the begin, more
 * than any memory has).
 */
struct recipe_target {
	uint64_t at, n_bytes;
};
bool recipe_target(const struct recipe *recipe, const uint8_t *bytes, struct recipe_target *ret);

/*
 * The text that is among the @bytes of the value. 1 and *@text, *@n; 0: it is elsewhere; -1: its
 * length contradicts its room.
 */
int recipe_inside(const struct recipe *recipe, const uint8_t *bytes, const uint8_t **text,
		  uint64_t *n);

#endif
