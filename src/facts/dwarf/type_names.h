/* SPDX-License-Identifier: BSD-2-Clause */
/* Qualified names of types. */
#ifndef DWARF_TYPE_NAMES_H
#define DWARF_TYPE_NAMES_H

#include "dwarf/dwarf.h"

/* Longest qualified name that is kept; templates of templates reach some thousand characters. */
enum { DW_TYPE_NAME_MAX = 16 << 10 };

/*
 * dw_type_name - @name after the scopes that enclose the DIE at @off
 *
 * Returns its length; 0 when it is longer than @size or nested too deep; negative as
 * dw_scopes_around().
 * @ret_private  it is local to a function or in an anonymous namespace; may be NULL
 */
int64_t dw_type_name(const struct dwarf *dw, dw_off off, const char *name, char *buf, size_t size,
		     bool *ret_private, struct cairn_err *err);

#endif
