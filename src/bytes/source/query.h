/* SPDX-License-Identifier: BSD-2-Clause */
/* Which types a pattern means. */
#ifndef SOURCE_QUERY_H
#define SOURCE_QUERY_H

#include <stdbool.h>

#include <cairn/btf.h>
#include <cairn/types.h>

struct type_query {
	const char *name; /* NULL: any that has one */
	bool is_glob;
	bool any_kind;
	bool values; /* numbers, pointers and arrays: types without members, but with a value */
	bool tail;   /* the name may lack scopes: "Job" for "ns::Job" */
	enum cairn_type_kind kind;
};

/* For a pattern of cairn_source_select(). */
struct type_query type_query_of(const char *pattern);

/* The one name that is wanted, or its end; NULL: there are more. Numbers have several spellings. */
const char *type_query_name(const struct type_query *w);

/* @with_typedefs: a query for all means typedefs of unnamed structs, too. */
bool type_query_takes(const struct type_query *w, const struct cairn_types *types,
		      const struct cairn_type *t, bool with_typedefs);

/* The same for a type of a function, by its name with all scopes. */
bool type_query_takes_local(const struct type_query *w, const struct cairn_types *types,
			    const struct cairn_type *t, const char *name);

/* By its record of BTF alone: could it be wanted? */
bool type_query_may_take(const struct type_query *w, const struct cairn_btf_type *t);

#endif
