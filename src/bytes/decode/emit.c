/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations of a plan, one after another, with the text between them. */
#include "decode/compile.h"

#include <errno.h>
#include <stdio.h>

#include "base/err.h"

const struct cairn_type *type_of(const struct compiler *c, uint32_t id)
{
	return cairn_types_get(c->types, cairn_types_resolve(c->types, id));
}

/* Numbers say it themselves; of enums the struct around them does. */
bool is_big_endian(const struct compiler *c, const struct cairn_type *t, struct view v)
{
	return c->look.big_endian != (t->byte_swapped || (v.swapped && t->kind == CAIRN_T_ENUM));
}

void out_of_memory(struct compiler *c)
{
	if (!c->rc)
		c->rc = err_nomem(c->err, "a plan for decoding");
}

static int add_piece(void *ctx, const char *text, size_t n)
{
	struct compiler *c = ctx;

	for (size_t i = 0; i < n && !c->rc; i++)
		if (!VEC_ADD(&c->text, text[i]))
			out_of_memory(c);
	return c->rc;
}

void add_text(struct compiler *c, const char *text)
{
	add_piece(c, text, strlen(text));
}

void add_name(struct compiler *c, const char *name)
{
	char buf[CAIRN_TEXT_OUT_MIN];
	struct cairn_text_out out = {.buf = buf, .size = sizeof(buf), .flush = add_piece, .ctx = c};

	out_name(&out, c->look.json, name);
	add_piece(c, buf, out.n);
}

void add_note(struct compiler *c, const char *text)
{
	add_text(c, c->look.json ? "null" : "<");
	if (c->look.json)
		return;
	add_text(c, text);
	add_text(c, ">");
}

void add_separator(struct compiler *c, bool *first)
{
	if (!*first)
		add_text(c, c->look.json ? "," : ", ");
	*first = false;
}

uint32_t emit(struct compiler *c, struct op op)
{
	op.text = c->pending;
	op.n_text = (uint32_t)c->text.n - c->pending;
	c->pending = (uint32_t)c->text.n;
	if (!c->rc && !VEC_ADD(&c->ops, op))
		out_of_memory(c);
	return c->rc ? 0 : (uint32_t)c->ops.n - 1;
}

uint32_t label(struct compiler *c)
{
	if (c->text.n > c->pending)
		emit(c, (struct op){.code = OP_TEXT});
	return (uint32_t)c->ops.n;
}

void set_next(struct compiler *c, uint32_t op, uint32_t next)
{
	if (!c->rc)
		c->ops.p[op].next = next;
}

bool is_outside(struct view v, uint64_t off, uint64_t size)
{
	if (off > OFF_MAX || size > OFF_MAX || v.off > OFF_MAX)
		return true;
	return v.end != UINT64_MAX && v.off + off + size > v.end;
}

static void add_base_key(struct compiler *c, const struct cairn_member *m)
{
	const struct cairn_type *base = type_of(c, m->type);

	add_text(c, "<");
	add_name(c, base->name ? base->name : "base class");
	add_text(c, ">");
}

void add_key(struct compiler *c, const struct cairn_member *m, uint32_t i)
{
	char number[16];

	snprintf(number, sizeof(number), "#%u", i);
	add_text(c, c->look.json ? "\"" : "");
	if (m->is_base_class) {
		add_base_key(c, m);
	} else if (m->name) {
		add_text(c, c->look.json ? "" : ".");
		add_name(c, m->name);
	} else if (c->look.json) {
		/* JSON needs some key for an anonymous member that is no struct, or not shown. */
		add_text(c, number);
	}
	add_text(c, c->look.json ? "\":" : m->name || m->is_base_class ? " = " : "");
}
