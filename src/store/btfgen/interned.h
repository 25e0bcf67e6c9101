/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms: descriptions of types, by number
 *
 * Two DIEs are equal when they describe the same with the same words. The target of a reference is
 * part of the description, up to the next struct, union or enum with a name; only its kind and name
 * count. So references end soon and have no cycles (in C no unnamed type can refer to itself). A
 * description can be a term made of smaller terms:
 *
 *	struct file { struct inode *i; };	4  the name "struct inode"
 *						5  a pointer to 4
 *						6  the name "struct file"
 *						7  struct file, 8 bytes, "i" at 0: 5
 *
 * A kernel has 100,000 different descriptions, and each of them thirty times. So a worker keeps
 * every term that it has met under a cheap key: the addresses of names, not their text, and the
 * numbers of the inner terms. A pointer to a term needs not even a key; its number is kept with the
 * term. Only a description that is met for the first time is read word by word. Its content is
 * hashed, and a term of equal content, whose words are elsewhere in the file, is the same term. All
 * workers share that hash.
 *
 * A unit may define a name twice (struct types inside functions). Then a reference in that unit
 * does not end at the name: the content of the definition goes into it.
 */
#ifndef BTFGEN_INTERNED_H
#define BTFGEN_INTERNED_H

#include "btfgen/hash_table.h"
#include "btfgen/unit.h"

enum { TERM_NONE, TERM_LOOP, TERM_VOID };

struct term {
	struct h128 hash; /* of the content, the same in every worker */
	/* for a term with a record: its class + 1, or for a name, its group + 1 */
	uint32_t number;
	uint32_t ptr, const_; /* interned: a pointer to it, const of it; TERM_NONE when not met */
	uint32_t def;         /* of a name: the first that defined it in a unit at hand */
};

/* A type whose term waits for another term; its elements before @elem have theirs. */
struct unmade {
	uint32_t type, elem;
};

struct interned {
	VEC(struct term) v;
	struct hash_table by_key, by_hash;
	struct name_cache *names;
	VEC(struct unmade) stack;
};

/* 0 or -ENOMEM. */
int interned_init(struct interned *s);
void interned_fini(struct interned *s);

/*
 * interned_of_unit - the interned of all types of a unit that was read
 *
 * Sets u->edges, and type_die.own and .conflicts of definitions. Afterwards a type with an empty
 * name has no name.
 * Returns 0 or -ENOMEM, -ERANGE.
 */
int interned_of_unit(struct interned *s, struct unit_types *u);

/*
 * The term of a function's prototype, that of a TYPE_PROTO that says the same. 0 or -ENOMEM,
 * -ERANGE.
 */
int interned_of_proto(struct interned *s, const struct unit_types *u, const struct func_die *f,
		      uint32_t *ret);

/* The term of the name of @t, a struct, union or enum; TERM_NONE for "". 0 or -ENOMEM, -ERANGE. */
int interned_of_name(struct interned *s, const struct type_die *t, uint32_t *ret);

static inline bool has_typed_elems(const struct type_die *t)
{
	return t->kind == TYPE_STRUCT || t->kind == TYPE_UNION || t->kind == TYPE_PROTO;
}

static inline bool is_definition(const struct type_die *t)
{
	return t->stop && !t->declaration;
}

#endif
