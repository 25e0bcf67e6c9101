/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "decl/parse.h"

/* Tags are one name space, ordinary names another. */
static bool same_space(enum symbol_kind a, enum symbol_kind b)
{
	bool tag_a = a == SYMBOL_STRUCT || a == SYMBOL_UNION || a == SYMBOL_ENUM;
	bool tag_b = b == SYMBOL_STRUCT || b == SYMBOL_UNION || b == SYMBOL_ENUM;

	return tag_a == tag_b;
}

static uint64_t hash_of(enum symbol_kind kind, const char *name, size_t n)
{
	return map_hash_bytes(name, n) ^ (same_space(kind, SYMBOL_STRUCT) ? UINT64_C(1) << 40 : 0);
}

/* Any symbol of that name space; the caller checks its kind. */
const struct symbol *symbol_find(const struct decl *d, enum symbol_kind kind, const char *name,
				 size_t n)
{
	uint64_t at;

	if (!map_get(&d->by_name, hash_of(kind, name, n), &at))
		return NULL;
	for (size_t i = at + 1; i; i = d->symbols.p[i - 1].next) {
		const struct symbol *s = &d->symbols.p[i - 1];

		if (same_space(s->kind, kind) && strlen(s->name) == n && !memcmp(s->name, name, n))
			return s;
	}
	return NULL;
}

int symbol_add(struct parser *p, const struct symbol *s)
{
	struct decl *d = p->decl;
	uint64_t hash = hash_of(s->kind, s->name, strlen(s->name)), at;
	struct symbol *to = VEC_PUSH(&d->symbols);

	if (!to)
		return err_nomem(p->err, "names of declarations");
	*to = *s;
	if (map_get(&d->by_name, hash, &at))
		to->next = at + 1;
	if (map_put(&d->by_name, hash, d->symbols.n - 1) < 0)
		return err_nomem(p->err, "names of declarations");
	return 0;
}
