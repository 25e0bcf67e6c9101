/* SPDX-License-Identifier: BSD-2-Clause */
/* One record of BTF as a declaration of C; its parts are printed already. */
#include "btf/dump_c.h"

#include <inttypes.h>

/* Lines stay together; a declaration with a body stands alone. */
void c_begin(struct dump_c *d, bool is_line)
{
	if (!is_line || !d->was_line)
		fputc('\n', d->out);
	d->was_line = is_line;
}

/* "typedef ... name;" with a guard where C23 has the name itself. */
static void print_typedef(struct dump_c *d, const struct cairn_btf_type *t, uint32_t type)
{
	const char *name = c_name(d, t);
	bool c23 = c_is_c23_word(name);
	struct cairn_btf_type base = c_get(d, c_base(d, type, true));

	c_begin(d, !c_in_place(d, &base));
	if (c23)
		fputs(C_BEFORE_C23, d->out);
	c_print_decl(d, "typedef ", type, name, "");
	c_put_original(d, name, *t->name ? t->name : name);
	fputs(c23 ? "\n#endif\n" : "\n", d->out);
}

/* Rust's u8, C++'s char16_t: a type that C has under another name, or bytes. */
static void print_scalar(struct dump_c *d, const struct cairn_btf_type *t)
{
	if (c_builtin(d, t))
		return;
	const char *like = c_builtin_like(d, t), *name = c_name(d, t);
	bool c23 = c_is_c23_word(name);

	c_begin(d, true);
	if (c23)
		fputs(C_BEFORE_C23, d->out);
	if (like)
		fprintf(d->out, "typedef %s %s;", like, name);
	else
		/* In a struct, because functions return no arrays. */
		fprintf(d->out, "typedef struct { unsigned char bytes[%" PRIu32 "]; } %s;", t->ref,
			name);
	c_put_original(d, name, t->name);
	fputs(c23 ? "\n#endif\n" : "\n", d->out);
}

static void print_proto(struct dump_c *d, const struct cairn_btf_type *t)
{
	struct c_type *c = &d->types[t->id];

	if (!c->hoisted)
		return;
	const char *name = c_name(d, t);

	c->hoisted = false;
	c_begin(d, true);
	c_print_decl(d, "typedef ", t->id, name, "");
	fputc('\n', d->out);
	c->hoisted = true;
}

void c_print_extern(struct dump_c *d, const struct cairn_btf_type *t, const char *attributes)
{
	const char *name = c_name(d, t);

	c_begin(d, true);
	c_print_decl(d, "extern ", t->ref, name, attributes);
	c_put_original(d, name, t->name);
	fputc('\n', d->out);
}

static void print_tag(struct dump_c *d, const struct cairn_btf_type *t)
{
	const char *name = c_name(d, t);

	c_begin(d, true);
	fprintf(d->out, "%s %s;", c_keyword(t), name);
	c_put_original(d, name, *t->name ? t->name : name);
	fputc('\n', d->out);
}

void c_print(struct dump_c *d, uint32_t id, enum c_goal goal)
{
	struct cairn_btf_type t = c_get(d, id);

	switch (t.kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
		print_scalar(d, &t);
		return;
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
		if (c_in_place(d, &t))
			return;
		if (goal == C_DECLARED) {
			print_tag(d, &t);
			return;
		}
		c_begin(d, false);
		c_print_definition(d, &t);
		return;
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		if (c_in_place(d, &t))
			return;
		c_begin(d, false);
		c_print_definition(d, &t);
		return;
	case CAIRN_BTF_FWD:
		print_tag(d, &t);
		return;
	case CAIRN_BTF_TYPEDEF:
		/* This one compilers define themselves. */
		if (goal == C_DECLARED && strcmp(t.name, "__builtin_va_list"))
			print_typedef(d, &t, t.ref);
		return;
	case CAIRN_BTF_FUNC_PROTO:
		print_proto(d, &t);
		return;
	case CAIRN_BTF_FUNC:
	case CAIRN_BTF_VAR:
		c_print_extern(d, &t, "");
		return;
	default:
		return;
	}
}
