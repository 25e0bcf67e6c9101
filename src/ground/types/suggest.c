/* SPDX-License-Identifier: BSD-2-Clause */
/* Near names of types, by slips of the finger (base/near.h). */
#include <cairn/types.h>

#include <string.h>

#include "base/near.h"

static bool is_offered(const struct cairn_type *t)
{
	switch (t->kind) {
	case CAIRN_T_INT:
	case CAIRN_T_FLOAT:
	case CAIRN_T_STRUCT:
	case CAIRN_T_CLASS:
	case CAIRN_T_UNION:
	case CAIRN_T_ENUM:
	case CAIRN_T_TYPEDEF:
		return t->name && !t->declaration;
	default:
		return false;
	}
}

/* "Job" of "ns::Job"; template arguments may have scopes of their own. */
static const char *last_component(const char *name)
{
	const char *last = name;
	int depth = 0;
	for (const char *p = name; *p; p++) {
		depth += (*p == '<') - (*p == '>');
		if (!depth && p[0] == ':' && p[1] == ':' && p[2])
			last = p + 2;
	}
	return last;
}

/* Without the word that says which kind of type it is. */
static const char *without_kind(const char *name)
{
	static const char *const words[] = {"struct ", "class ", "union ", "enum "};
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(name, words[i], strlen(words[i])))
			return name + strlen(words[i]);
	return name;
}

size_t cairn_types_suggest(const struct cairn_types *types, const char *name, const char **ret,
			   size_t max)
{
	const char *wanted = without_kind(name);
	bool is_scoped = strstr(wanted, "::") != NULL;
	struct near_names near = {.max = max < NEAR_MAX ? max : NEAR_MAX};
	for (uint32_t id = 1; id < cairn_types_n_types(types); id++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		if (!is_offered(t))
			continue;
		const char *found = is_scoped ? t->name : last_component(t->name);
		near_offer(&near, t->name, near_rank(wanted, found));
	}
	memcpy(ret, near.names, near.n * sizeof(*ret));
	return near.n;
}
