/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Brings a name, as several programs spell it, into one spelling
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
 * Words of integer types come in one order, and without "int" where it may be left out. const and
 * volatile come before the type that they qualify, unless that is a pointer. Numbers have no
 * suffix, and blanks stand only between words. Text outside of arguments is copied.
 * Returns false when the result has @size bytes or more, or is nested too deeply: then @buf is of
 * no use.
 */
bool spelling_of(const char *name, char *buf, size_t size);

#endif
