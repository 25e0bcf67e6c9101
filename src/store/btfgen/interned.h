/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Terms: what types say, by number
 *
 * Two DIEs say the same when they say it with the same words. What a DIE refers to is part of what
 * it says, up to the next struct, union or enum with a name: of that only kind and name count. So
 * references end soon and have no circles (in C nothing without a name can refer to itself), and
 * what is said can be a term, made from smaller ones:
 *
 *	struct file { struct inode *i; };	4  the name "struct inode"
 *						5  a pointer to 4
 *						6  the name "struct file"
 *						7  struct file, 8 bytes, "i" at 0: 5
 *
 * A kernel says 100,000 different things, and each of them thirty times. So a worker keeps every
 * term that it has met under a key that costs little: the addresses of names, not what stands
 * there, and the numbers of the interned inside. A pointer to a term needs not even that, its
 * number is kept with the term. Only what is met for the first time is read word by word: its
 * content is hashed, and a term of equal content, whose words stand elsewhere in the file, is the
 * same term. That hash is what workers have in common.
 *
 * A unit may define a name twice (struct types inside functions). Then a reference in that unit
 * does not end at the name: what the definition says goes into it.
 */
#ifndef BTFGEN_INTERNED_H
#define BTFGEN_INTERNED_H

#include "btfgen/hash_table.h"
#include "btfgen/unit.h"

enum { TERM_NONE, TERM_LOOP, TERM_VOID };

struct term {
	struct h128 hash; /* of the content, the same in every worker */
	/* for who has a record of it: that of its class or, of a name, of its group, + 1 */
	uint32_t number;
	uint32_t ptr, const_; /* interned: a pointer to it, const of it; TERM_NONE when not met */
	uint32_t def;     /* of a name: the first that defined it in a unit at hand */
};

/* A type whose term waits for that of another; its elements before @elem have theirs. */
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
 * Sets u->edges, and type_die.own and .conflicts of definitions. What has a name of no length has
 * none from then on.
 * Returns 0 or -ENOMEM, -ERANGE.
 */
int interned_of_unit(struct interned *s, struct unit_types *u);

/*
 * The term of a function's prototype, that of a TYPE_PROTO that says the same. 0 or -ENOMEM,
 * -ERANGE.
 */
int interned_of_proto(struct interned *s, const struct unit_types *u, const struct func_die *f,
		      uint32_t *ret);

/* That of the name of @t, a struct, union or enum; TERM_NONE of "". 0 or -ENOMEM, -ERANGE. */
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
