/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of one name, told apart by the types of their parameters: f(int, char const*). */
#ifndef TRACE_OVERLOAD_H
#define TRACE_OVERLOAD_H

#include <cairn/sites.h>
#include <cairn/types.h>

/*
 * overload_length - the length of a list of types at @s, with the words after it: "(int) const"
 *
 * 0: the list is one of expressions. A list is one of types if an element can be nothing else, as
 * "int" or "T *", or if another list or "const" comes after it.
 *
 * @s  at "("
 */
size_t overload_length(const char *s);

/*
 * overload_is - whether a function has the parameters of a list
 *
 * A type may be written as the debug information has it, or with its typedefs resolved. "this" is
 * not in the list; "const" after it is the method's.
 */
bool overload_is(const struct cairn_types *types, const struct cairn_function *function,
		 const char *list);

/* The list of a function as it can be typed. As snprintf. */
size_t overload_list(const struct cairn_types *types, const struct cairn_function *function,
		     char *buf, size_t size);

#endif
