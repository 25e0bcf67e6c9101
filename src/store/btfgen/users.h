/* SPDX-License-Identifier: BSD-2-Clause */
/* The graph of classes backwards: which classes refer to a class, and which to a group. */
#ifndef BTFGEN_USERS_H
#define BTFGEN_USERS_H

#include "btfgen/type_classes.h"

/* from[first[i]] ... from[first[i + 1] - 1] are the classes that refer to i. */
struct user_list {
	uint32_t *first, *from;
};

struct users {
	struct user_list of_class, of_group;
};

/* Arrays and enums have elements that are no references. */
static inline bool class_has_typed_elems(const struct type_class *k)
{
	return k->kind != TYPE_ENUM && k->kind != TYPE_ARRAY;
}

/* Calls for each edge: first the class's own, then those of its elements. */
#define FOR_CLASS_EDGES(k, e)                                                                      \
	for (uint32_t i_ = 0, n_ = 1 + (class_has_typed_elems(k) ? (k)->n_elems : 0); i_ < n_;     \
	     i_++)                                                                                 \
		if (((e) = i_ ? ((k)->elems[i_ - 1].what != ELEM_PLAIN ? 0                         \
								       : (k)->elems[i_ - 1].edge)  \
			      : (k)->edge))

/* Returns 0 or -ENOMEM. @ret is for users_fini() also then. */
int users_find(const struct classes *c, struct users *ret);
void users_fini(struct users *u);

#endif
