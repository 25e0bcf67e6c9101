/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One name, as several programs spell it
 *
 * Template arguments are types, and each compiler, debugger and demangler writes those in its own
 * way:
 *
 *	GCC's DWARF     box<long unsigned int, const char*>::at
 *	Clang's DWARF   box<unsigned long, const char *>::at
 *	libiberty       box<unsigned long, char const*>::at
 *	a person        box<unsigned long,const char*>::at
 *
 * and a lambda's type is <lambda(int)> in one and {lambda(int)#1} in the other.
 */
#ifndef SITES_SPELLING_H
#define SITES_SPELLING_H

#include <stdbool.h>
#include <stddef.h>

/*
 * spelling_of - @name with its template arguments in one spelling
 *
 * Words of integer types in one order and without "int" where that may be left out; const and
 * volatile in front of what they qualify, unless that is a pointer; numbers without suffix; no
 * blanks but between words. What stands outside of arguments is copied.
 * Returns false when it is no shorter than @size bytes, or nested deeper than anybody nests: then
 * @buf is of no use.
 */
bool spelling_of(const char *name, char *buf, size_t size);

#endif
