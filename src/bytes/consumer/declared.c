/* SPDX-License-Identifier: BSD-2-Clause */
/* The declarations, collected: names, members, forms of types, and nodes of the graph. */
#include <errno.h>
#include <string.h>

#include "consumer/impl.h"

struct declared *declare_as(struct reader *r, enum declared_kind kind, const struct token *at,
			    const char *name)
{
	struct declared *d = arena_alloc(r->arena, sizeof(*d));
	char *known_as = at->n ? copy_token(r, at) : NULL;
	uint64_t hash = known_as ? map_hash_str(known_as) : 0, known;

	if (!d || (at->n && !known_as) || !VEC_ADD(&r->decls, d) ||
	    (known_as && !map_get(&r->by_name, hash, &known) &&
	     map_put(&r->by_name, hash, r->decls.n - 1) < 0)) {
		err_nomem(r->err, "declarations");
		return NULL;
	}
	d->kind = kind;
	d->name = name ? name : known_as;
	d->known_as = known_as;
	d->at = *at;
	return d;
}

struct declared *declare(struct reader *r, enum declared_kind kind, const struct token *name)
{
	return declare_as(r, kind, name, NULL);
}

int declare_next(struct reader *r, enum declared_kind kind, struct declared **ret)
{
	struct token name;
	int rc = need_name(r, &name);

	if (rc)
		return rc;
	*ret = declare(r, kind, &name);
	return *ret ? 0 : -ENOMEM;
}

struct declared *find_declared(const struct reader *r, const char *name, size_t n)
{
	uint64_t at;

	if (!map_get(&r->by_name, map_hash_bytes(name, n), &at))
		return NULL;
	struct declared *d = r->decls.p[at];
	return strlen(d->known_as) == n && !memcmp(d->known_as, name, n) ? d : NULL;
}

struct declared_member *add_member(struct reader *r, struct declared *d, const struct token *name)
{
	struct declared_member *m = NULL;
	char *copy = name->n ? copy_token(r, name) : NULL;

	if (r->n_members++ == FOREIGN_MEMBERS_MAX) {
		complain_at(r, name, -ERANGE, "more than %d members", FOREIGN_MEMBERS_MAX);
		return NULL;
	}
	if (copy || !name->n)
		m = VEC_PUSH(&d->members);
	if (!m) {
		err_nomem(r->err, "members");
		return NULL;
	}
	m->name = copy;
	m->at = *name;
	return m;
}

struct form_type *new_form(struct reader *r, enum form form, const struct token *at)
{
	struct form_type *t = arena_alloc(r->arena, sizeof(*t));

	if (!t) {
		err_nomem(r->err, "types of members");
		return NULL;
	}
	t->form = form;
	t->at = *at;
	return t;
}

struct form_type *array_of(struct reader *r, struct form_type *of, struct spot count,
			   const struct token *at)
{
	struct form_type *t = new_form(r, FORM_ARRAY, at);

	if (t) {
		t->of = of;
		t->count = count;
	}
	return t;
}

int add_node(struct reader *r, const struct cairn_type *t, uint32_t *ret)
{
	*ret = types_reserve(r->types);
	if (!*ret)
		return err_nomem(r->err, "types");
	types_set(r->types, *ret, t);
	return 0;
}

int note_problem(struct reader *r, const struct declared *d, const char *text, bool laid_out)
{
	struct cairn_decl_problem p = {.laid_out = laid_out};

	if (!d->name)
		return 0;
	p.type = d->name;
	p.text = arena_strdup(r->arena, text);
	return p.text && VEC_ADD(&r->f->problems, p) ? 0 : err_nomem(r->err, "problems of types");
}
