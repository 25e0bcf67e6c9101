/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/meanings.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btfgen/name_variants.h"

/* The definition in the current unit: by group, with the unit as a stamp. */
struct definition {
	uint32_t unit; /* + 1 */
	edge_t edge;   /* 0: several things */
};

struct finding {
	const struct variants *v;
	struct meanings *ret;
	struct definition *defs; /* per group */
	uint32_t *numbers;       /* per instance: its meaning; 0 not yet */
};

static bool is_declaration(const struct content *x)
{
	return x->edge & EDGE_GROUP;
}

static void note_definition(struct finding *f, uint32_t unit, const struct content *x)
{
	uint32_t group = x->edge && !is_declaration(x) ? f->v->c->v.p[x->edge - 1].group : 0;
	if (!group)
		return;
	struct definition *d = &f->defs[group - 1];
	if (d->unit != unit + 1)
		*d = (struct definition){unit + 1, x->edge};
	else if (d->edge != x->edge)
		d->edge = 0;
}

/*
 * The definition in the declaration's unit, or else the program's only definition, + 1. 0: there is
 * none.
 */
static uint32_t instance_declared(const struct finding *f, uint32_t unit, const struct content *x)
{
	const struct definition *d = &f->defs[x->edge & ~EDGE_GROUP];
	if (d->unit == unit + 1)
		return d->edge ? name_variants_instance(f->v, unit, d->edge - 1) + 1 : 0;
	edge_t only = name_variants_resolve(f->v, x->edge);
	return only & EDGE_GROUP ? 0 : only;
}

/* The instance that a description means, + 1; 0: it is not known. */
static uint32_t instance_of(const struct finding *f, uint32_t unit, const struct content *x)
{
	if (is_declaration(x))
		return instance_declared(f, unit, x);
	return x->edge ? name_variants_instance(f->v, unit, x->edge - 1) + 1 : 0;
}

static int add_meaning(struct finding *f, uint32_t unit, const struct content *x)
{
	uint32_t instance = instance_of(f, unit, x);
	if (!instance)
		return 0;
	uint32_t *number = &f->numbers[instance - 1];
	if (!*number) {
		*number = (uint32_t)f->ret->definition.n;
		if (!VEC_ADD(&f->ret->definition, 0))
			return -ENOMEM;
	}
	dw_off *definition = &f->ret->definition.p[*number];
	if (!*definition && !is_declaration(x))
		*definition = x->die;
	return VEC_ADD(&f->ret->v, ((struct meant){x->die, *number})) ? 0 : -ENOMEM;
}

static int find_in_unit(struct finding *f, const struct unit_span *s)
{
	const struct content *x = f->v->c->contents.p;
	int rc = 0;
	for (uint32_t i = s->contents.from; i < s->contents.to; i++)
		note_definition(f, s->unit, &x[i]);
	for (uint32_t i = s->contents.from; i < s->contents.to && rc >= 0; i++)
		rc = add_meaning(f, s->unit, &x[i]);
	return rc;
}

static int by_die(const void *a, const void *b)
{
	const struct meant *x = a, *y = b;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* Units are mostly in the order of the file already. */
static void sort(struct meanings *m)
{
	for (size_t i = 1; i < m->v.n; i++)
		if (m->v.p[i].die < m->v.p[i - 1].die) {
			qsort(m->v.p, m->v.n, sizeof(*m->v.p), by_die);
			return;
		}
}

int meanings_find(const struct variants *v, size_t n_units, struct meanings *ret,
		  struct cairn_err *err)
{
	struct finding f = {.v = v, .ret = ret};
	f.defs = calloc(v->c->groups.n + 1, sizeof(*f.defs));
	f.numbers = calloc(v->v.n + 1, sizeof(*f.numbers));
	int rc = f.defs && f.numbers && VEC_ADD(&ret->definition, 0) &&
				 VEC_RESERVE(&ret->v, v->c->contents.n)
			 ? 0
			 : -ENOMEM;
	for (size_t i = 0; i < v->c->spans.n && rc >= 0; i++)
		rc = find_in_unit(&f, &v->c->spans.p[i]);
	if (rc >= 0)
		rc = named_find(v->c, n_units, &ret->named);
	if (rc >= 0)
		sort(ret);
	free(f.defs);
	free(f.numbers);
	return rc < 0 ? err_nomem(err, "the types of a program") : 0;
}

void meanings_fini(struct meanings *m)
{
	VEC_FREE(&m->v);
	VEC_FREE(&m->definition);
	named_fini(&m->named);
}

uint32_t meaning_of(const struct meanings *m, dw_off die)
{
	const struct meant key = {.die = die};
	const struct meant *found =
		m->v.n ? bsearch(&key, m->v.p, m->v.n, sizeof(key), by_die) : NULL;
	return found ? found->meaning : 0;
}
