/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of a sidecar by name, for callers that would otherwise read all debug information. */
#include <cairn/sidecar.h>

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "sidecar/sites_types.h"
#include "source/provider.h"

/* One of the two takes the type. */
struct visitor {
	source_visitor *visit;
	source_local_visitor *visit_local;
	void *ctx;
};

static int visit_row(struct sidecar_types *t, uint32_t row, const struct visitor *v,
		     struct cairn_err *err)
{
	const struct table *names = &t->sidecar->type_names;
	int rc = 0;
	uint32_t id = sidecar_types_read(t, table_get(names, row, TYPE_NAME_TYPE), &rc);
	if (rc < 0)
		return err_nomem(err, "types");
	const char *scoped =
		v->visit_local ? sidecar_string(t->sidecar, table_get(names, row, TYPE_NAME_SCOPED))
			       : NULL;
	rc = cairn_sidecar_trouble(t->sidecar, err);
	if (rc < 0)
		return rc;
	return v->visit_local ? v->visit_local(v->ctx, id, scoped ? scoped : "", err)
			      : v->visit(v->ctx, id, err);
}

static int visit_rows(struct sidecar_types *t, uint32_t kind, const struct visitor *v,
		      struct cairn_err *err)
{
	const struct table *names = &t->sidecar->type_names;
	for (uint32_t i = 0; i < names->n; i++) {
		int rc = table_get(names, i, TYPE_NAME_KIND) == kind ? visit_row(t, i, v, err) : 0;
		if (rc < 0)
			return rc;
	}
	return cairn_sidecar_trouble(t->sidecar, err);
}

static int list(void *provider, bool typedefs, source_visitor *visit, void *ctx,
		struct cairn_err *err)
{
	return visit_rows(provider, typedefs, &(struct visitor){.visit = visit, .ctx = ctx}, err);
}

static int list_locals(void *provider, source_local_visitor *visit, void *ctx,
		       struct cairn_err *err)
{
	return visit_rows(provider, 2, &(struct visitor){.visit_local = visit, .ctx = ctx}, err);
}

static int complete(void *provider, uint32_t id, struct cairn_err *err)
{
	struct sidecar_types *t = provider;
	int rc = sidecar_types_complete(t, id, err),
	    trouble = rc == -ENOMEM ? 0 : cairn_sidecar_trouble(t->sidecar, err);
	return trouble < 0 ? trouble : rc;
}

static const char *shortened(void *provider)
{
	return cairn_sidecar_shortened(((struct sidecar_types *)provider)->sidecar);
}

static void close_types(void *provider)
{
	sidecar_types_fini(provider);
	free(provider);
}

static const struct source_ops ops = {.list = list,
				      .list_locals = list_locals,
				      .complete = complete,
				      .shortened = shortened,
				      .close = close_types};

int cairn_sidecar_source(const struct cairn_sidecar *p, struct cairn_source **ret,
			 struct cairn_err *err)
{
	if (!p->types.n)
		return err_set(err, -ENODATA,
			       "%s: a sidecar without types; make it with: cairn sidecar FILE",
			       elf_path(p->elf));
	/* Types belong to no page: all code is compared, where it can be. */
	if (cairn_sidecar_compare(p, err) == -ESTALE)
		return -ESTALE;
	struct sidecar_types *t = malloc(sizeof(*t));
	if (!t)
		return err_nomem(err, "types");
	if (sidecar_types_init(t, p) < 0) {
		close_types(t);
		return err_nomem(err, "types");
	}
	/* Sites are those of x86-64, and types come with sites. */
	return source_provided(&ops, t, t->graph, cairn_abi_find("x86-64"), ret, err);
}

/* 1 and its bytes; 0: there is no such section. */
static int section(const struct cairn_sidecar *p, const char *name, const void **ret, size_t *ret_n,
		   struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = elf_section(p->elf, name, &s, err);
	if (rc < 0 || !s || !s->data)
		return rc < 0 ? rc : 0;
	*ret = s->data;
	*ret_n = s->size;
	return 1;
}

int cairn_sidecar_btf(const struct cairn_sidecar *p, struct cairn_sidecar_btf *ret,
		      struct cairn_err *err)
{
	*ret = (struct cairn_sidecar_btf){0};
	/* As of types: no page of code is theirs alone. */
	int rc = cairn_sidecar_compare(p, err) == -ESTALE ? -ESTALE : 0;
	if (!rc)
		rc = section(p, ".BTF", &ret->types, &ret->types_size, err);
	if (!rc)
		rc = err_set(err, -ENODATA,
			     "%s: a sidecar without types; make it with: cairn sidecar FILE",
			     elf_path(p->elf));
	if (rc > 0)
		rc = section(p, ".BTF.inline", &ret->sites, &ret->sites_size, err);
	return rc < 0 ? rc : 0;
}
