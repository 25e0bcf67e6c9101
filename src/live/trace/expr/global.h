/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in expressions that are variables of files, namespaces, classes and functions. */
#ifndef TRACE_GLOBAL_H
#define TRACE_GLOBAL_H

#include "sites/globals.h"
#include "trace/expr/expr.h"

/*
 * global_find - the variable that a name means
 *
 * Without scopes it is the one that the source means at the function's entry: a static variable of
 * the function; one of a class or a namespace around it; one of its file; the only one that other
 * units may use. The first that exists hides the others, also if it has no place (loc.why).
 *
 * @e    a NAME
 * @ret  borrowed until the sites are closed
 * Returns 1; 0: there is none; -EINVAL: there are several, or one of another file
 * or on the stack (err, with caret and list); -EBADMSG,
 * -ENOMEM.
 */
int global_find(const struct expr_scope *scope, const struct expr *e,
		const struct site_global **ret, struct cairn_err *err);

/*
 * Why a name that is no variable of the debug information is none: the size of its symbol.
 * Returns false if there is no symbol.
 */
bool global_has_symbol(const struct expr_scope *scope, const char *name, uint64_t *ret_size);

#endif
