/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/sites.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/pages.h"
#include "btf/build.h"
#include "btfgen/tags.h"

#define NONE UINT32_MAX

struct site_blob {
	struct sites *p;
	struct func_table *funcs;
	struct emit *e;
	struct cairn_btf_builder *b;
	uint32_t *params, *protos; /* ids */
	uint32_t *func_protos;     /* per instance: of FUNC_PROTO in this blob */
};

static int write_func(struct site_blob *w, struct btf_func *func, uint32_t *n)
{
	uint32_t proto = w->e->ids[func->proto], name;
	int rc = 0;
	if (!proto && !w->func_protos[func->proto])
		rc = emit_proto(w->e, w->b, func->proto, &w->func_protos[func->proto]);
	if (rc >= 0)
		rc = cairn_btf_add_string(w->b, func->name, &name);
	if (rc >= 0)
		rc = btf_add_func(w->b, name, func->external ? CAIRN_BTF_GLOBAL : CAIRN_BTF_STATIC,
				  proto ? proto : w->func_protos[func->proto], &func->id);
	++*n;
	return rc;
}

static int write_locs(struct site_blob *w)
{
	struct sites *p = w->p;
	int rc = 0;
	for (size_t i = 0; i < p->params.n && rc >= 0; i++)
		rc = btf_add_loc_param(w->b, &p->params.p[i], &w->params[i]);
	for (size_t i = 0; i < p->protos.n && rc >= 0; i++) {
		uint32_t *slots = p->protos.p[i].n ? p->slots.p + p->protos.p[i].first : NULL;
		for (uint32_t k = 0; k < p->protos.p[i].n; k++)
			slots[k] = slots[k] ? w->params[slots[k] - 1] : 0;
		rc = btf_add_loc_proto(w->b, slots, p->protos.p[i].n, &w->protos[i]);
	}
	return rc;
}

/* Orders the sites of one function. */
static int by_offset(const void *a, const void *b)
{
	const struct cairn_btf_loc *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->loc_proto < y->loc_proto ? -1 : x->loc_proto > y->loc_proto;
}

/*
 * They come in order of address, but for those of several functions that are one to their callers.
 */
static void sort_function(struct cairn_btf_loc *locs, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		if (by_offset(&locs[i - 1], &locs[i]) > 0) {
			qsort(locs, n, sizeof(*locs), by_offset);
			return;
		}
}

static int write_section(struct site_blob *w, uint32_t section, struct keyed *turns,
			 struct cairn_btf_loc *locs)
{
	struct sites *p = w->p;
	uint32_t n = 0, name, id;
	for (size_t i = 0; i < p->v.n; i++)
		if (p->v.p[i].section == section)
			turns[n++] = (struct keyed){.key = w->funcs->v.p[p->v.p[i].func].id,
						    .value = (uint32_t)i};
	if (keyed_sort(turns, n) < 0)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct site *at = &p->v.p[turns[i].value];
		locs[i] = (struct cairn_btf_loc){.func = turns[i].key,
						 .loc_proto = w->protos[at->proto],
						 .offset = at->offset};
	}
	for (uint32_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && locs[k].func == locs[i].func;)
			k++;
		sort_function(locs + i, k - i);
	}
	int rc = cairn_btf_add_string(w->b, p->sections.p[section].name, &name);
	return rc < 0 ? rc : btf_add_locsec(w->b, name, locs, n, &id);
}

/* Sections in the order of their addresses, whichever was seen first. */
static int write_sections(struct site_blob *w)
{
	struct sites *p = w->p;
	struct cairn_btf_loc *locs = pages_zeroed(p->v.n, sizeof(*locs));
	struct keyed *turns = pages_zeroed(p->v.n, sizeof(*turns));
	int rc = locs && turns ? 0 : -ENOMEM;
	uint64_t from = 0;
	for (size_t done = 0; done < p->sections.n && rc >= 0; done++) {
		uint32_t next = NONE;
		for (uint32_t i = 0; i < p->sections.n; i++)
			if (p->sections.p[i].start >= from &&
			    (next == NONE || p->sections.p[i].start < p->sections.p[next].start))
				next = i;
		from = p->sections.p[next].start + 1;
		rc = write_section(w, next, turns, locs);
	}
	pages_free(locs, p->v.n, sizeof(*locs));
	pages_free(turns, p->v.n, sizeof(*turns));
	return rc;
}

static int too_many(int rc, struct cairn_err *err)
{
	return err_set(err, rc, "sites: more than BTF can number, or out of memory");
}

int sites_blob_new(const struct cairn_btf *main, struct sites *p, struct func_table *funcs,
		   struct emit *e, struct site_blob **ret, struct cairn_err *err)
{
	/*
	 * A reader without support for location records skips them by the layout; libbpf looks for
	 * one here and in the direct base.
	 */
	struct cairn_btf_build_opts opts = {
		.size = sizeof(opts), .base = main, .dialect = CAIRN_BTF_LOC_N, .layout = true};
	struct site_blob *w = *ret = calloc(1, sizeof(*w));
	if (!w)
		return err_nomem(err, "sites");
	*w = (struct site_blob){.p = p, .funcs = funcs, .e = e};
	w->func_protos = calloc(e->v->v.n + 1, sizeof(*w->func_protos));
	return w->func_protos ? cairn_btf_builder_new(&opts, &w->b, err) : err_nomem(err, "sites");
}

void sites_blob_free(struct site_blob *w)
{
	if (!w)
		return;
	cairn_btf_builder_free(w->b);
	free(w->params);
	free(w->protos);
	free(w->func_protos);
	free(w);
}

int sites_blob_funcs(struct site_blob *w, uint32_t *ret_n, struct cairn_err *err)
{
	int rc = 0;
	for (size_t i = 0; i < w->funcs->v.n && rc >= 0; i++)
		if (w->p->has_site[i] && !w->funcs->v.p[i].id)
			rc = write_func(w, &w->funcs->v.p[i], ret_n);
	if (rc >= 0)
		rc = tags_emit_of_functions(w->funcs, false, w->b);
	return rc < 0 ? too_many(rc, err) : 0;
}

int sites_blob_finish(struct site_blob *w, struct cairn_btfgen_blob *ret, struct cairn_err *err)
{
	const struct sites *p = w->p;
	if (!p->v.n)
		return 0;
	w->params = malloc((p->params.n + 1) * sizeof(*w->params));
	w->protos = malloc((p->protos.n + 1) * sizeof(*w->protos));
	int rc = w->params && w->protos ? 0 : -ENOMEM;
	if (rc >= 0)
		rc = write_locs(w);
	if (rc >= 0)
		rc = write_sections(w);
	if (rc >= 0)
		rc = cairn_btf_finish(w->b, &ret->bytes, &ret->size, err);
	return rc < 0 ? too_many(rc, err) : 0;
}
