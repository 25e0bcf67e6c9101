/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Results of Go's functions
 *
 *	func f(a int) (n int, err error)	formal_parameter a
 *						formal_parameter n, variable_parameter
 *						formal_parameter err, variable_parameter
 *
 * One result is the function's return value. Several are a type that has a name and no value, "(int
 * n, error err)". The compiler calls the unnamed ones ~r0, ~r1; these names are not in the source.
 */
#include "sites/go.h"

#include <errno.h>

#include "base/err.h"
#include "dwarf/constants.h"

/* Longer ones are cut with "...". */
enum { RESULTS_TEXT_MAX = 1024 };

struct text {
	char buf[RESULTS_TEXT_MAX];
	size_t n;
};

static void put_result(struct text *t, const struct cairn_types *graph, uint32_t type,
		       const char *name)
{
	static const char separator[] = ", ";
	size_t room = sizeof(t->buf) - t->n, before = t->n ? strlen(separator) : 0;
	if (room <= before)
		return;
	memcpy(t->buf + t->n, separator, before);
	t->n += before;
	t->n += cairn_types_declare(graph, type, name && *name != '~' ? name : NULL, t->buf + t->n,
				    room - before);
}

static int put_results(struct dw_types *types, const struct dw_die *function, struct text *t,
		       struct cairn_err *err)
{
	struct dw_die child;
	int rc = dw_param_child(function, &child, err);
	for (; rc == 1; rc = dw_param_sibling(&child, &child, err)) {
		uint32_t type = 0;
		if (!dw_flag(&child, DW_AT_variable_parameter))
			continue;
		int read = dwarf_type_of(types, &child, &type, err);
		if (read < 0 && read != -EBADMSG)
			return read;
		put_result(t, dw_types_graph(types), type, dw_str(&child, DW_AT_name));
	}
	return rc;
}

int go_results(const struct site_env *env, struct dw_types *types, dw_off function, uint32_t *ret,
	       struct cairn_err *err)
{
	struct cairn_types *graph = dw_types_graph(types);
	struct text t = {.n = 0};
	struct dw_die die;
	int rc = dw_die_at(env->dw, function, &die, err);
	if (rc > 0)
		rc = put_results(types, &die, &t, err);
	if (rc < 0)
		return rc == -ENOMEM ? rc : 0;
	const char *cut = t.n < sizeof(t.buf) ? "" : "...";
	const char *name = arena_printf(types_arena(graph), "(%s%s)", t.buf, cut);
	uint32_t id = types_reserve(graph);
	if (!name || !id)
		return err_nomem(err, "results of functions");
	types_set(graph, id, &(struct cairn_type){.kind = CAIRN_T_UNSPECIFIED, .name = name});
	*ret = id;
	return 0;
}
