/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of Java. */
#ifndef BIND_JAVA_H
#define BIND_JAVA_H

#include "bind/walk.h"

/* ---- java_words.c ---- */

/*
 * A ByteOrder; and ".withOrder(...)" for a layout, or nothing where it is in the machine's order.
 */
const char *java_order_of(const struct bind_file *file, bool big_endian);
const char *java_with_order(const struct bind_file *file, const struct bind_field *f);
/*
 * The ValueLayout; the type in memory; the type that callers see; and the conversion: "INT", "int",
 * "long", " & 0xffffffffL".
 */
const char *java_value_of(const struct bind_field *f);
const char *java_carrier(const struct bind_field *f);
const char *java_seen_type(const struct bind_field *f);
const char *java_widen(const struct bind_field *f);

/* ---- java_layout.c ---- */

/* The classes with the record's layout and checks; how many methods check. */
uint64_t java_put_layout(struct bind_file *file, const struct bind_record *r);
/* SIZE, LAYOUT, and the calls of the checks. */
void java_put_layout_use(const struct bind_file *file, const struct bind_record *r,
			 uint64_t n_checks);

#endif
