/* SPDX-License-Identifier: BSD-2-Clause */
#include "btfgen/tags.h"

#include <errno.h>
#include <stdlib.h>

#include "base/search.h"
#include "btf/build.h"

struct func_tag {
	uint32_t func, order;
	int32_t component;
	const char *text;
};

struct func_tags {
	VEC(struct func_tag) v;
};

static int by_what_it_says(const struct func_tag *x, const struct func_tag *y)
{
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	if (x->component != y->component)
		return x->component < y->component ? -1 : 1;
	return strcmp(x->text, y->text);
}

static int equal_ones_together(const void *a, const void *b)
{
	const struct func_tag *x = a, *y = b;
	int by = by_what_it_says(x, y);
	return by ? by : x->order < y->order ? -1 : x->order > y->order;
}

static int by_function(const void *a, const void *b)
{
	const struct func_tag *x = a, *y = b;
	if (x->func != y->func)
		return x->func < y->func ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Each once, in the order of functions. */
static void sort(struct func_tags *t)
{
	size_t n = 0;
	if (!t->v.n)
		return;
	qsort(t->v.p, t->v.n, sizeof(*t->v.p), equal_ones_together);
	for (size_t i = 0; i < t->v.n; i++)
		if (!i || by_what_it_says(&t->v.p[n - 1], &t->v.p[i]))
			t->v.p[n++] = t->v.p[i];
	t->v.n = n;
	qsort(t->v.p, t->v.n, sizeof(*t->v.p), by_function);
}

static int collect(const struct func_table *f, bool in_main, struct func_tags *ret)
{
	uint32_t near = 0;
	for (size_t i = 0; i < f->c->tags.n; i++) {
		const struct decl_tag *t = &f->c->tags.p[i];
		uint32_t func = func_table_at(f, t->die, &near);
		if (func == UINT32_MAX || f->v.p[func].in_main != in_main || !f->v.p[func].id)
			continue;
		struct func_tag to = {.func = func,
				      .order = (uint32_t)i,
				      .component = t->component,
				      .text = t->text};
		if (!VEC_ADD(&ret->v, to))
			return -ENOMEM;
	}
	return 0;
}

static int emit(struct cairn_btf_builder *b, const char *text, uint32_t of, int32_t component)
{
	uint32_t name, id;
	int rc = cairn_btf_add_string(b, text, &name);
	return rc < 0 ? rc : btf_add_decl_tag(b, name, of, component, false, &id);
}

int tags_emit_of_functions(const struct func_table *f, bool in_main, struct cairn_btf_builder *b)
{
	struct func_tags tags = {0};
	int rc = collect(f, in_main, &tags);
	if (rc >= 0)
		sort(&tags);
	for (size_t i = 0; i < tags.v.n && rc >= 0; i++)
		rc = emit(b, tags.v.p[i].text, f->v.p[tags.v.p[i].func].id, tags.v.p[i].component);
	VEC_FREE(&tags.v);
	return rc;
}

int tags_emit_of_variable(const struct classes *c, dw_off die, uint32_t id,
			  struct cairn_btf_builder *b)
{
	size_t lo = SEARCH(0, c->tags.n, mid, c->tags.p[mid].die < die);
	int rc = 0;
	for (; lo < c->tags.n && c->tags.p[lo].die == die && rc >= 0; lo++)
		rc = emit(b, c->tags.p[lo].text, id, c->tags.p[lo].component);
	return rc;
}
