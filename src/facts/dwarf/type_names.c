/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Qualified names of types
 *
 * "std::vector<int>" is the name of a type after those of its scopes. The content of a function, or
 * of a namespace without a name, is private: its name has a meaning in one scope only.
 */
#include <errno.h>

#include "dwarf/constants.h"
#include "dwarf/scopes.h"
#include "dwarf/type_names.h"

static bool append(char *buf, size_t size, size_t *at, const char *s)
{
	size_t n = strlen(s);
	if (n >= size - *at)
		return false;
	memcpy(buf + *at, s, n + 1);
	*at += n;
	return true;
}

/* The number of scopes that belong to a type's name: those in a function do not. */
static int cut_at_function(const struct dw_scope *const *around, int n, bool *ret_private)
{
	for (int i = 0; i < n; i++)
		if (around[i]->tag == DW_TAG_subprogram) {
			*ret_private = true;
			return 0;
		}
	return n;
}

int64_t dw_type_name(const struct dwarf *dw, dw_off off, const char *name, char *buf, size_t size,
		     bool *ret_private, struct cairn_err *err)
{
	const struct dw_scope *around[DW_SCOPES_MAX];
	size_t at = 0;
	bool private = false, fits = true;
	int n = dw_scopes_around(dw, off, around, err);
	if (n == -ERANGE)
		return 0;
	if (n < 0)
		return n;
	for (n = cut_at_function(around, n, &private); fits && n--;) {
		const char *scope = around[n]->name;
		if (!scope && around[n]->tag == DW_TAG_namespace) {
			private = true;
			scope = "(anonymous namespace)";
		}
		if (scope)
			fits = append(buf, size, &at, scope) && append(buf, size, &at, "::");
	}
	fits = fits && append(buf, size, &at, name);
	if (ret_private)
		*ret_private = private;
	return fits ? (int64_t)at : 0;
}
