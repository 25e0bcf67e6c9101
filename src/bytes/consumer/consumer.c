/* SPDX-License-Identifier: BSD-2-Clause */
/* The languages, and a text from its first token to the graph. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "consumer/impl.h"

static const struct language *const languages[CAIRN_LANG_N] = {
	[CAIRN_LANG_JAVA] = &java_language,
	[CAIRN_LANG_RUST] = &rust_language,
	[CAIRN_LANG_GO] = &go_language,
	[CAIRN_LANG_PYTHON] = &python_language,
};

enum cairn_lang consumer_lang_of_path(const char *path)
{
	size_t n = strlen(path);

	for (unsigned int i = 0; i < CAIRN_LANG_N; i++) {
		size_t m = strlen(languages[i]->suffix);

		if (n > m && !strcmp(path + n - m, languages[i]->suffix))
			return (enum cairn_lang)i;
	}
	return CAIRN_LANG_N;
}

static void reader_fini(struct reader *r)
{
	for (size_t i = 0; i < r->decls.n; i++) {
		VEC_FREE(&r->decls.p[i]->members);
		VEC_FREE(&r->decls.p[i]->values);
	}
	VEC_FREE(&r->decls);
	map_fini(&r->by_name);
	lex_fini(&r->lx);
}

int consumer_parse(const char *text, size_t size, const char *name, enum cairn_lang lang,
		   const struct cairn_abi *abi, struct consumer **ret, struct cairn_err *err)
{
	struct consumer *f = calloc(1, sizeof(*f));
	/* Errors are formatted where they are caught, so there has to be a place for them. */
	struct cairn_err own = {0};
	struct reader r = {.f = f, .abi = abi, .err = err ? err : &own, .lang = languages[lang]};
	int rc;

	if (f)
		f->types = types_new();
	if (!f || !f->types) {
		consumer_free(f);
		return err_nomem(err, "declarations");
	}
	r.types = f->types;
	r.arena = types_arena(f->types);
	lex_init(&r.lx, text, size, name, r.arena, r.err);
	rc = read_token(&r);
	rc = rc ? rc : r.lang->parse(&r);
	rc = rc ? rc : lay_out_all(&r);
	reader_fini(&r);
	if (rc < 0) {
		consumer_free(f);
		return rc;
	}
	*ret = f;
	return 0;
}

void consumer_free(struct consumer *f)
{
	if (!f)
		return;
	types_free(f->types);
	VEC_FREE(&f->problems);
	free(f);
}

const struct cairn_types *consumer_types(const struct consumer *f)
{
	return f->types;
}

const struct cairn_decl_problem *consumer_problem(const struct consumer *f, size_t i)
{
	return i < f->problems.n ? &f->problems.p[i] : NULL;
}
