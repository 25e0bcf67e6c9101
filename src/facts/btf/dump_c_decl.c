/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Declarators
 *
 * C writes a type around the name, from the inside out; BTF is a chain that starts at the
 * outermost:
 *
 *	[9] PTR -> ARRAY of 4 -> CONST -> PTR -> INT char           name
 *	    PTR                                                    *name
 *	    ARRAY of 4, after a pointer                           (*name)[4]
 *	    CONST, of the next one
 *	    PTR                                             *const (*name)[4]
 *	    INT char                                  char  *const (*name)[4]
 *
 * Types that C refuses (an array of void, a function that returns an array, as Rust has them) are
 * written as the nearest type that it takes, with the real type in a comment.
 */
#include "btf/dump_c.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/quote.h"

/* ---- text ---- */

static bool make_room(struct dump_c *d, struct c_text *t, size_t n)
{
	if (t->cap - t->n > n)
		return true;
	size_t cap = (t->cap + n + 32) * 2;
	char *p = realloc(t->p, cap);

	if (!p) {
		d->nomem = true;
		return false;
	}
	t->p = p;
	t->cap = cap;
	return true;
}

void c_append(struct dump_c *d, struct c_text *t, const char *s)
{
	size_t n = strlen(s);

	if (!make_room(d, t, n))
		return;
	memcpy(t->p + t->n, s, n + 1);
	t->n += n;
}

void c_prepend(struct dump_c *d, struct c_text *t, const char *s)
{
	size_t n = strlen(s);

	if (!make_room(d, t, n))
		return;
	memmove(t->p + n, t->p, t->n);
	memcpy(t->p, s, n);
	t->n += n;
	t->p[t->n] = '\0';
}

void c_appendf(struct dump_c *d, struct c_text *t, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int n = vsnprintf(NULL, 0, fmt, ap);
	if (n >= 0 && make_room(d, t, (size_t)n)) {
		vsnprintf(t->p + t->n, (size_t)n + 1, fmt, again);
		t->n += (size_t)n;
	}
	va_end(again);
	va_end(ap);
}

void c_text_fini(struct c_text *t)
{
	free(t->p);
	*t = (struct c_text){0};
}

void c_append_comment(struct dump_c *d, struct c_text *t, const char *text)
{
	char *quoted = NULL;
	size_t n;
	FILE *out = open_memstream(&quoted, &n);

	if (!out) {
		d->nomem = true;
		return;
	}
	c_put_quoted(out, text);
	if (fclose(out) || !quoted)
		d->nomem = true;
	else
		c_appendf(d, t, " /* %s */", quoted);
	free(quoted);
}

static void c_append_string(struct dump_c *d, struct c_text *t, const char *text)
{
	const char *quoted = arena_quote(&d->arena, text, CAIRN_QUOTE_C);

	if (quoted)
		c_append(d, t, quoted);
	else
		d->nomem = true;
}

/* ---- qualifiers ---- */

/* The qualifiers that wait for the next pointer or the base. */
struct waiting {
	bool is_const, is_volatile, is_restrict;
	struct c_text tags;
};

/*
 * BTF's attributes are text. The one that programs need is taken; more could change the meaning of
 * a declaration.
 */
static bool is_address_space(const char *s)
{
	static const char start[] = "address_space(";
	size_t n = sizeof(start) - 1;

	if (strncmp(s, start, n))
		return false;
	s += n;
	return *s && !strcmp(s + strspn(s, "0123456789"), ")");
}

static void wait_tag(struct dump_c *d, struct waiting *w, const struct cairn_btf_type *t)
{
	if (t->kflag && is_address_space(t->name)) {
		c_appendf(d, &w->tags, "__btf_attribute(%s) ", t->name);
		return;
	}
	if (t->kflag) {
		c_append_comment(d, &w->tags, t->name);
		c_append(d, &w->tags, " ");
		return;
	}
	c_append(d, &w->tags, "__btf_type_tag(\"");
	c_append_string(d, &w->tags, t->name);
	c_append(d, &w->tags, "\") ");
}

static void wait_for(struct dump_c *d, struct waiting *w, const struct cairn_btf_type *t)
{
	if (t->kind == CAIRN_BTF_CONST)
		w->is_const = true;
	else if (t->kind == CAIRN_BTF_VOLATILE)
		w->is_volatile = true;
	else if (t->kind == CAIRN_BTF_RESTRICT)
		w->is_restrict = true;
	else
		wait_tag(d, w, t);
}

static void stop_waiting(struct waiting *w)
{
	c_text_fini(&w->tags);
	*w = (struct waiting){0};
}

/* Only pointers to objects can be restrict. */
static bool takes_restrict(const struct dump_c *d, const struct cairn_btf_type *t)
{
	struct cairn_btf_type ptr = c_resolve(d, t->id);

	return ptr.kind == CAIRN_BTF_PTR && c_resolve(d, ptr.ref).kind != CAIRN_BTF_FUNC_PROTO;
}

/* ---- from the outside to the base ---- */

struct declarator {
	struct dump_c *d;
	struct waiting waiting;
	uint32_t depth;      /* of parameters in parameters */
	uint32_t last;       /* kind of the link before; VOID: none */
	struct c_text *text; /* around the name */
};

static void declare(struct dump_c *d, uint32_t id, const char *name, uint32_t depth,
		    struct c_decl *ret);

static void link_pointer(struct declarator *w, const struct cairn_btf_type *t)
{
	struct c_text star = {0};

	c_append(w->d, &star, "*");
	c_append(w->d, &star, w->waiting.is_const ? "const " : "");
	c_append(w->d, &star, w->waiting.is_volatile ? "volatile " : "");
	c_append(w->d, &star,
		 w->waiting.is_restrict && takes_restrict(w->d, t) ? "__restrict " : "");
	c_append(w->d, &star, c_str(&w->waiting.tags));
	c_prepend(w->d, w->text, c_str(&star));
	c_text_fini(&star);
	stop_waiting(&w->waiting);
}

/* The text after the name binds closer than a star before it. */
static void wrap_pointer(struct declarator *w)
{
	if (w->last != CAIRN_BTF_PTR)
		return;
	c_prepend(w->d, w->text, "(");
	c_append(w->d, w->text, ")");
}

/* A name for people, in the prototype of a function itself. */
static const char *param_name(struct declarator *w, struct map *scope, uint32_t name_off)
{
	const char *name = cairn_btf_string(w->d->btf, name_off);

	return w->last == CAIRN_BTF_VOID && name && *name ? c_scoped(w->d, scope, name) : "";
}

/* Nothing that a variable can be of. */
static bool is_void(const struct dump_c *d, uint32_t id)
{
	uint32_t kind = c_resolve(d, id).kind;

	return kind == CAIRN_BTF_VOID || kind == CAIRN_BTF_FUNC || kind == CAIRN_BTF_VAR ||
	       kind == CAIRN_BTF_DATASEC || kind == CAIRN_BTF_DECL_TAG ||
	       kind >= CAIRN_BTF_LOC_PARAM;
}

static void append_param(struct declarator *w, uint32_t type, const char *name)
{
	struct dump_c *d = w->d;
	struct c_decl one = {0};

	declare(d, type, name, w->depth + 1, &one);
	/* No parameter is void; a type that C cannot express is written as a pointer. */
	if (is_void(d, one.base) && one.second.n == strlen(name))
		c_prepend(d, &one.second, "*");
	while (one.first.n && !one.second.n && one.first.p[one.first.n - 1] == ' ')
		one.first.p[--one.first.n] = '\0';
	c_append(d, w->text, c_str(&one.first));
	c_append(d, w->text, c_str(&one.second));
	c_decl_fini(&one);
}

static void link_params(struct declarator *w, const struct cairn_btf_type *t)
{
	struct dump_c *d = w->d;
	struct map scope = {0};

	/* A function without parameters, and one with unknown parameters. */
	if (t->vlen == 0 || (t->vlen == 1 && !cairn_btf_param(t, 0).type)) {
		c_append(d, w->text, t->vlen ? "()" : "(void)");
		return;
	}
	for (uint32_t i = 0; i < t->vlen; i++) {
		struct cairn_btf_param p = cairn_btf_param(t, i);

		c_append(d, w->text, i ? ", " : "(");
		if (p.type)
			append_param(w, p.type, param_name(w, &scope, p.name_off));
		else
			c_append(d, w->text, i + 1 == t->vlen ? "..." : "int /* void */");
	}
	c_append(d, w->text, ")");
	map_fini(&scope);
}

/* Takes one link into the text; false: C has no such type. */
static bool take_link(struct declarator *w, const struct cairn_btf_type *t)
{
	if (c_is_qualifier(t->kind)) {
		wait_for(w->d, &w->waiting, t);
		return true;
	}
	if (t->kind == CAIRN_BTF_PTR) {
		link_pointer(w, t);
	} else if (t->kind == CAIRN_BTF_ARRAY) {
		if (w->last == CAIRN_BTF_FUNC_PROTO)
			return false;
		wrap_pointer(w);
		c_appendf(w->d, w->text, "[%" PRIu32 "]", t->words[2]);
	} else {
		if (w->last == CAIRN_BTF_FUNC_PROTO || w->last == CAIRN_BTF_ARRAY ||
		    w->depth > C_PROTO_DEPTH_MAX)
			return false;
		wrap_pointer(w);
		link_params(w, t);
		/* A function cannot be const. */
		stop_waiting(&w->waiting);
	}
	w->last = t->kind;
	return true;
}

/* Can @t stand where the declarator ends: after an array, or as the result of a function? */
static bool takes_base(const struct declarator *w, const struct cairn_btf_type *t)
{
	struct cairn_btf_type real = c_resolve(w->d, t->id);
	uint64_t bytes;

	if (w->last == CAIRN_BTF_FUNC_PROTO)
		return real.kind != CAIRN_BTF_ARRAY && real.kind != CAIRN_BTF_FUNC_PROTO;
	return w->last != CAIRN_BTF_ARRAY || c_size(w->d, t->id, &bytes);
}

static void put_base_name(struct dump_c *d, struct c_text *text, const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		c_append(d, text, c_builtin(d, t) ? c_builtin(d, t) : c_name(d, t));
		break;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
	case CAIRN_BTF_FWD:
		c_appendf(d, text, "%s %s", c_keyword(t), c_name(d, t));
		break;
	case CAIRN_BTF_TYPEDEF:
		c_append(d, text, strcmp(t->name, "__builtin_va_list") ? c_name(d, t) : t->name);
		break;
	case CAIRN_BTF_FUNC_PROTO:
		c_append(d, text, c_name(d, t));
		break;
	default:
		c_append(d, text, "void");
		if (t->id)
			c_appendf(d, text, " /* %s %" PRIu32 " */", btf_kind_name(t->kind), t->id);
	}
	c_append(d, text, " ");
}

static void put_qualifiers(struct declarator *w, struct c_text *text,
			   const struct cairn_btf_type *t)
{
	c_append(w->d, text, w->waiting.is_const ? "const " : "");
	c_append(w->d, text, w->waiting.is_volatile ? "volatile " : "");
	c_append(w->d, text,
		 w->waiting.is_restrict && takes_restrict(w->d, t) ? "__restrict " : "");
}

/* A type like it that C takes, and a comment. */
static void put_stand_in(struct declarator *w, struct c_text *text, const struct cairn_btf_type *t)
{
	c_append(w->d, text, w->last == CAIRN_BTF_ARRAY ? "unsigned char" : "void");
	c_append_comment(w->d, text, *t->name ? t->name : btf_kind_name(t->kind));
	c_append(w->d, text, " ");
}

static void declare(struct dump_c *d, uint32_t id, const char *name, uint32_t depth,
		    struct c_decl *ret)
{
	struct declarator w = {.d = d, .depth = depth, .text = &ret->second};
	struct cairn_btf_type t = c_get(d, id);
	bool says = true, was_cut = false;

	c_append(d, &ret->second, name);
	for (uint32_t i = 0; says && i < C_CHAIN_MAX; i++) {
		struct cairn_btf_type link = t;

		if (!c_next_link(d, &t, true))
			break;
		was_cut = link.kind == CAIRN_BTF_PTR && d->types[link.id].cut;
		says = take_link(&w, &link);
		if (!says)
			t = link;
	}
	ret->base = t.id;
	if (!says || !takes_base(&w, &t)) {
		ret->base = 0;
		put_stand_in(&w, &ret->first, &t);
	} else {
		put_qualifiers(&w, &ret->first, &t);
		if (!c_in_place(d, &t))
			put_base_name(d, &ret->first, &t);
		c_append(d, &ret->first, c_str(&w.waiting.tags));
	}
	if (was_cut)
		c_append(d, &ret->first, "/* a pointer to itself */ ");
	stop_waiting(&w.waiting);
}

void c_declare(struct dump_c *d, uint32_t id, const char *name, struct c_decl *ret)
{
	*ret = (struct c_decl){0};
	declare(d, id, name, 0, ret);
}

void c_decl_fini(struct c_decl *decl)
{
	c_text_fini(&decl->first);
	c_text_fini(&decl->second);
}
