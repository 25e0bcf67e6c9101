/* SPDX-License-Identifier: BSD-2-Clause */
/* Declarations one after another; those without a layout are skipped. */
#include <errno.h>

#include "decl/parse.h"

/* ---- tokens ---- */

/* ---- declarations ---- */

static bool is_asm(const struct parser *p)
{
	return is_word(p, "asm") || is_word(p, "__asm__") || is_word(p, "__asm");
}

static int declare(struct parser *p, const struct specifiers *specs, const struct declarator *d)
{
	struct symbol s = {.kind = specs->is_typedef ? SYMBOL_TYPEDEF : SYMBOL_VARIABLE,
			   .type = d->type};
	int rc = check_chain(p, d->type, &d->name);

	if (rc)
		return rc;
	s.name = dup_name(p, &d->name);
	if (!s.name)
		return err_nomem(p->err, "names of declarations");
	if (specs->is_typedef) {
		struct cairn_type t = {.kind = CAIRN_T_TYPEDEF, .name = s.name, .ref = d->type};

		/* The attribute replaces the type's alignment, up or down. */
		t.align = d->attrs.aligned > specs->attrs.aligned ? d->attrs.aligned
								  : specs->attrs.aligned;
		rc = node_add(p, &t, &s.type);
	}
	return rc ? rc : symbol_add(p, &s);
}

/* After "=". The name that was declared last gets the count of its elements. */
static int initialise(struct parser *p, const struct declarator *d)
{
	const struct cairn_type *t = cairn_types_get(p->types, d->type);
	size_t last = p->decl->symbols.n - 1;
	uint32_t type = d->type;
	int rc = next(p);

	if (rc || t->kind != CAIRN_T_ARRAY || t->has_count)
		return rc ? rc : skip_initialiser(p);
	rc = count_initialiser(p, &type);
	p->decl->symbols.p[last].type = type;
	return rc;
}

/* The parameters of before the standard: "int f(a, b) int a; char b; {" */
static int skip_old_parameters(struct parser *p)
{
	int rc = 0;

	while (!rc && !is_punct(p, '{')) {
		if (p->tok.kind == TOKEN_END)
			return fail_here(p, "expected '{', and here the text ends");
		rc = next(p);
	}
	return rc;
}

/* One name of a declaration; 1 when a function's body ended it. */
static int parse_name(struct parser *p, const struct specifiers *specs)
{
	struct declarator d;
	int rc = parse_declarator(p, specs->type, false, &d);

	if (rc)
		return rc;
	if (!d.name.n)
		return fail_here(p, "expected a name");
	rc = declare(p, specs, &d);
	if (!rc && is_punct(p, '='))
		rc = initialise(p, &d);
	if (rc || cairn_types_get(p->types, d.type)->kind != CAIRN_T_FUNC)
		return rc;
	if (begins_type(p, &p->tok))
		rc = skip_old_parameters(p);
	if (!rc && is_punct(p, '{')) {
		rc = skip_balanced(p);
		return rc ? rc : 1;
	}
	return rc;
}

static int parse_declaration(struct parser *p)
{
	struct specifiers specs;
	int rc;

	if (is_punct(p, ';'))
		return next(p);
	if (begins_static_assert(p))
		return parse_static_assert(p);
	if (is_asm(p)) {
		do
			rc = next(p);
		while (!rc && p->tok.kind == TOKEN_NAME);
		rc = rc ? rc : skip_balanced(p);
		return rc ? rc : expect(p, ';');
	}
	rc = parse_specifiers(p, &specs);
	if (!rc && is_punct(p, ';'))
		return next(p);
	while (!rc) {
		rc = parse_name(p, &specs);
		if (rc || !is_punct(p, ','))
			break;
		rc = next(p);
	}
	if (rc)
		return rc > 0 ? 0 : rc;
	return expect(p, ';');
}

static int parse_all(struct parser *p)
{
	int rc = next(p);

	while (!rc && p->tok.kind != TOKEN_END)
		rc = parse_declaration(p);
	return rc;
}

int decl_parse(const char *text, size_t size, const char *name, const struct cairn_abi *abi,
	       struct decl **ret, struct cairn_err *err)
{
	struct parser p = {.abi = abi, .err = err, .decl = calloc(1, sizeof(*p.decl))};
	int rc;

	if (p.decl)
		p.decl->types = types_new();
	if (!p.decl || !p.decl->types) {
		decl_free(p.decl);
		return err_nomem(err, "declarations");
	}
	p.types = p.decl->types;
	p.arena = types_arena(p.types);
	lex_init(&p.lx, text, size, name, p.arena, err);
	rc = parse_all(&p);
	lex_fini(&p.lx);
	map_fini(&p.bit_ints);
	if (rc < 0) {
		decl_free(p.decl);
		return rc;
	}
	*ret = p.decl;
	return 0;
}

void decl_free(struct decl *decl)
{
	if (!decl)
		return;
	types_free(decl->types);
	VEC_FREE(&decl->symbols);
	map_fini(&decl->by_name);
	free(decl);
}

/* ---- looking up ---- */

const struct cairn_types *decl_types(const struct decl *decl)
{
	return decl->types;
}

uint32_t decl_find(const struct decl *decl, enum cairn_type_kind kind, const char *name)
{
	enum symbol_kind wanted = SYMBOL_TYPEDEF;

	if (kind == CAIRN_T_STRUCT)
		wanted = SYMBOL_STRUCT;
	else if (kind == CAIRN_T_UNION)
		wanted = SYMBOL_UNION;
	else if (kind == CAIRN_T_ENUM)
		wanted = SYMBOL_ENUM;
	const struct symbol *s = symbol_find(decl, wanted, name, strlen(name));
	return s && s->kind == wanted ? s->type : 0;
}
