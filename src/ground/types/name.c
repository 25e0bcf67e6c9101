/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Types as C writes them
 *
 * A C declaration reads from the name outwards, the graph points from the outside in. The type of
 * "const char *(*const table[4])(int)" is this chain:
 *
 *	step      0 ARRAY 4    1 PTR (const)    2 FUNC (int)    3 PTR      base: const char
 *
 * Steps before the name (pointers) are written from the last to the first, then the name, then the
 * steps after it (arrays, functions) from the first to the last:
 *
 *	const char *   (*const   table   [4]   )   (int)
 *	base, step 3   step 1            0     1   2
 *
 * A pointer needs parentheses when the step after it is an array or a function. A qualifier belongs
 * to the step that it wraps, except that a const array is an array of const elements.
 *
 * The chain is walked in a loop; only parameters of functions recurse, and both the depth and the
 * number of types in one name are limited, because damaged input can hold a function that takes
 * itself twice.
 */
#include <cairn/types.h>

#include <inttypes.h>
#include <string.h>

enum {
	MAX_STEPS = 64,   /* real declarations have less than ten */
	MAX_NESTING = 8,  /* parameters of parameters of ... */
	MAX_TYPES = 2048, /* in one name; a function with 2000 parameters is not readable anyway */
};

struct out {
	char *buf;
	size_t size, len;
	bool space; /* one is due before the next word or sign */
	unsigned int types_left;
};

enum { Q_CONST = 1, Q_VOLATILE = 2, Q_RESTRICT = 4, Q_ATOMIC = 8 };

static const struct {
	unsigned int bit;
	const char *word;
} qualifiers[] = {
	{Q_CONST, "const"},
	{Q_VOLATILE, "volatile"},
	{Q_RESTRICT, "restrict"},
	{Q_ATOMIC, "_Atomic"},
};

struct step {
	const struct cairn_type *type;
	unsigned int quals;
};

struct chain {
	struct step steps[MAX_STEPS];
	size_t n;
	const struct cairn_type *base; /* NULL: the chain was cut */
	unsigned int base_quals;
};

static void put(struct out *o, const char *s)
{
	if (o->space) {
		o->space = false;
		put(o, " ");
	}
	size_t n = strlen(s);
	if (o->len < o->size) {
		size_t fits = o->size - o->len - 1;
		memcpy(o->buf + o->len, s, n < fits ? n : fits);
		o->buf[o->len + (n < fits ? n : fits)] = 0;
	}
	o->len += n;
}

/* Puts the next part without the pending space: "char *[4]" but "char [4]". */
static void put_tight(struct out *o, const char *s)
{
	o->space = false;
	put(o, s);
}

static unsigned int qualifier_of(enum cairn_type_kind kind)
{
	switch (kind) {
	case CAIRN_T_CONST:
		return Q_CONST;
	case CAIRN_T_VOLATILE:
		return Q_VOLATILE;
	case CAIRN_T_RESTRICT:
		return Q_RESTRICT;
	case CAIRN_T_ATOMIC:
		return Q_ATOMIC;
	default:
		return 0;
	}
}

static bool is_pointer(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_PTR || t->kind == CAIRN_T_REF || t->kind == CAIRN_T_RREF ||
	       t->kind == CAIRN_T_MEMBER_PTR;
}

/* True if it comes after the name. */
static bool is_suffix(const struct cairn_type *t)
{
	return t->kind == CAIRN_T_FUNC || (t->kind == CAIRN_T_ARRAY && !t->vector);
}

static void follow(const struct cairn_types *types, uint32_t id, struct chain *ret)
{
	unsigned int quals = 0;
	size_t seen = 0;
	ret->n = 0;
	ret->base = NULL;
	ret->base_quals = 0;
	for (; seen < MAX_STEPS; seen++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		unsigned int q = qualifier_of(t->kind);
		quals |= q;
		if (t->kind == CAIRN_T_TYPEDEF && !t->name) {
			/* Stands for a derivation that C has no word for (DW_TAG_packed_type). */
			id = t->ref;
			continue;
		}
		if (!q && !is_pointer(t) && t->kind != CAIRN_T_ARRAY && t->kind != CAIRN_T_FUNC) {
			ret->base = t;
			ret->base_quals = quals;
			return;
		}
		if (!q) {
			bool passes_on = t->kind == CAIRN_T_ARRAY;
			ret->steps[ret->n++] = (struct step){t, passes_on ? 0 : quals};
			quals = passes_on ? quals : 0;
		}
		id = t->ref;
	}
}

static void put_qualifiers(struct out *o, unsigned int quals)
{
	for (size_t i = 0; i < sizeof(qualifiers) / sizeof(qualifiers[0]); i++) {
		if (!(quals & qualifiers[i].bit))
			continue;
		put(o, qualifiers[i].word);
		o->space = true;
	}
}

static void put_tagged(struct out *o, const struct cairn_type *t, const char *tag)
{
	if (!t->name || !t->bare_name) {
		put(o, tag);
		o->space = true;
	}
	put(o, t->name ? t->name : "{...}");
}

static void put_base(struct out *o, const struct cairn_type *t)
{
	switch (t->kind) {
	case CAIRN_T_VOID:
		put(o, "void");
		break;
	case CAIRN_T_STRUCT:
		put_tagged(o, t, "struct");
		break;
	case CAIRN_T_CLASS:
		put_tagged(o, t, "class");
		break;
	case CAIRN_T_UNION:
		put_tagged(o, t, "union");
		break;
	case CAIRN_T_ENUM:
		put_tagged(o, t, "enum");
		break;
	default:
		put(o, t->name ? t->name : "<unnamed>");
	}
}

static void put_pointer(struct out *o, const struct cairn_types *types, const struct cairn_type *t)
{
	const char *class_name = NULL;
	switch (t->kind) {
	case CAIRN_T_REF:
		put(o, "&");
		break;
	case CAIRN_T_RREF:
		put(o, "&&");
		break;
	case CAIRN_T_MEMBER_PTR:
		class_name = cairn_types_get(types, t->container)->name;
		put(o, class_name ? class_name : "<unnamed>");
		put(o, "::*");
		break;
	default:
		put(o, "*");
	}
}

static void put_before_name(struct out *o, const struct cairn_types *types, const struct chain *c)
{
	for (size_t i = c->n; i-- > 0;) {
		const struct step *s = &c->steps[i];
		if (s->type->kind == CAIRN_T_ARRAY && s->type->vector) {
			char text[64];
			snprintf(text, sizeof(text), "__attribute__((vector_size(%" PRIu64 ")))",
				 s->type->size);
			put(o, text);
			o->space = true;
		}
		if (!is_pointer(s->type))
			continue;
		if (i + 1 < c->n && is_suffix(c->steps[i + 1].type))
			put(o, "(");
		put_pointer(o, types, s->type);
		put_qualifiers(o, s->quals);
	}
}

static void put_type(struct out *o, const struct cairn_types *types, uint32_t id, const char *name,
		     unsigned int nesting);

static void put_parameters(struct out *o, const struct cairn_types *types,
			   const struct cairn_type *t, unsigned int nesting)
{
	put(o, "(");
	if (nesting == MAX_NESTING && t->n_members) {
		put(o, "...)");
		return;
	}
	for (uint32_t i = 0; i < t->n_members; i++) {
		if (i)
			put(o, ", ");
		if (!o->types_left) {
			put(o, "...)");
			return;
		}
		put_type(o, types, t->members[i].type, NULL, nesting + 1);
		o->space = false;
	}
	if (t->variadic)
		put(o, t->n_members ? ", ..." : "...");
	/* C++ writes "()" for no parameters, and marks no function as prototyped. */
	else if (!t->n_members && t->prototyped)
		put(o, "void");
	put(o, ")");
}

static void put_after_name(struct out *o, const struct cairn_types *types, const struct chain *c,
			   unsigned int nesting)
{
	for (size_t i = 0; i < c->n; i++) {
		const struct cairn_type *t = c->steps[i].type;
		char text[32] = "[]";
		if (is_pointer(t) && i + 1 < c->n && is_suffix(c->steps[i + 1].type)) {
			put_tight(o, ")");
		} else if (t->kind == CAIRN_T_ARRAY && !t->vector) {
			if (t->has_count)
				snprintf(text, sizeof(text), "[%" PRIu64 "]", t->count);
			put(o, text);
		} else if (t->kind == CAIRN_T_FUNC) {
			put_parameters(o, types, t, nesting);
			o->space = c->steps[i].quals != 0;
			put_qualifiers(o, c->steps[i].quals);
		}
	}
}

static void put_type(struct out *o, const struct cairn_types *types, uint32_t id, const char *name,
		     unsigned int nesting)
{
	struct chain c;
	o->types_left -= o->types_left ? 1 : 0;
	follow(types, id, &c);
	put_qualifiers(o, c.base_quals);
	if (c.base)
		put_base(o, c.base);
	else
		put(o, "...");
	o->space = true;
	put_before_name(o, types, &c);
	if (name && *name)
		put(o, name);
	put_after_name(o, types, &c, nesting);
}

size_t cairn_types_declare(const struct cairn_types *types, uint32_t id, const char *name,
			   char *buf, size_t size)
{
	struct out o = {.buf = buf, .size = size, .types_left = MAX_TYPES};
	if (size)
		buf[0] = 0;
	put_type(&o, types, id, name, 0);
	return o.len;
}

size_t cairn_types_name(const struct cairn_types *types, uint32_t id, char *buf, size_t size)
{
	return cairn_types_declare(types, id, NULL, buf, size);
}
