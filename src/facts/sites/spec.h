/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Parses the user's name for a function, [FILE:[LINE:]]NAME, and finds the functions that it means.
 */
#ifndef SITES_SPEC_H
#define SITES_SPEC_H

#include "sites/group.h"

/* Take a spec apart, in place. */
void spec_parse(char *spec, struct group_filter *ret);

/* The first colon before @end that is not part of C++'s "::"; NULL: none. */
const char *spec_colon(const char *s, const char *end);

/* The last component of a qualified name: "size" for "std::vector<a::b>::size". */
const char *spec_base_name(const char *name);

/*
 * The same without template arguments, which may have another spelling in the debug information.
 * False: it is too long for @buf.
 */
bool spec_key(const char *name, char *buf, size_t size);

enum { SPEC_KEY_MAX = 512 };

#endif
