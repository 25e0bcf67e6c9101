/* SPDX-License-Identifier: BSD-2-Clause */
/* Structs beside the accessors (shape.c), one function per language. */
#ifndef BIND_STRUCTS_H
#define BIND_STRUCTS_H

#include "bind/walk.h"

/* "// No struct event here: ...", after @before. */
void bind_put_why_not(const struct bind_file *file, const struct bind_shape *s, const char *before);

void bind_rust_struct(const struct bind_file *file, const struct bind_shape *s);
void bind_python_struct(const struct bind_file *file, const struct bind_shape *s);
void bind_go_struct(const struct bind_file *file, const struct bind_shape *s);
void bind_java_record(const struct bind_file *file, const struct bind_shape *s);
void bind_typescript_struct(const struct bind_file *file, const struct bind_shape *s);

#endif
