/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/dump_c.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>

/* ---- types printed in place, and hoisted types ---- */

static void note_user(struct dump_c *d, uint32_t user, uint32_t kind, uint32_t type)
{
	struct cairn_btf_type t = c_get(d, c_base(d, type, false));
	struct c_type *c = &d->types[t.id];

	if (*t.name || !(c_is_struct(t.kind) || c_is_enum(t.kind)))
		return;
	c->user = c->user ? C_MANY : user;
	if (kind == CAIRN_BTF_FUNC_PROTO)
		c->hoisted = true;
}

/* Finds the users of nameless types. Variables count if they are to be printed. */
static void note_users(struct dump_c *d, const struct cairn_btf_type *t, bool vars)
{
	if (t->kind == CAIRN_BTF_TYPEDEF || t->kind == CAIRN_BTF_FUNC_PROTO ||
	    (t->kind == CAIRN_BTF_VAR && vars))
		note_user(d, t->id, t->kind, t->ref);
	for (uint32_t i = 0; i < t->vlen && t->kind == CAIRN_BTF_FUNC_PROTO; i++)
		note_user(d, t->id, t->kind, cairn_btf_param(t, i).type);
	for (uint32_t i = 0; i < t->vlen && c_is_struct(t->kind); i++)
		note_user(d, t->id, t->kind, cairn_btf_member(t, i).type);
}

/* Enumerators may be printed once only. */
static bool is_printed_once(const struct dump_c *d, uint32_t id)
{
	for (uint32_t i = 0; i < C_CHAIN_MAX; i++) {
		uint32_t user = d->types[id].user;

		if (user == C_MANY)
			return false;
		struct cairn_btf_type t = c_get(d, user);

		if (!c_is_struct(t.kind) || *t.name)
			return true;
		id = user;
	}
	return false;
}

static void find_users(struct dump_c *d, bool vars, bool *has_tags)
{
	uint32_t end = cairn_btf_end_id(d->btf);

	for (uint32_t id = 1; id < end; id++) {
		struct cairn_btf_type t = c_get(d, id);

		*has_tags = *has_tags || t.kind == CAIRN_BTF_TYPE_TAG;
		note_users(d, &t, vars);
	}
	for (uint32_t id = 1; id < end; id++) {
		struct cairn_btf_type t = c_get(d, id);

		if (c_is_enum(t.kind) && !*t.name && !is_printed_once(d, id))
			d->types[id].hoisted = true;
	}
}

/* ---- all of them ---- */

static int print_asked(struct dump_c *d, const struct dump *asked)
{
	for (size_t i = 0; i < asked->n_ids; i++) {
		struct cairn_btf_type t;

		if (!cairn_btf_type(d->btf, asked->ids[i], &t))
			return err_set(d->err, -ENOENT, "%s: no record %" PRIu32, d->btf->name,
				       asked->ids[i]);
		/* A requested record is printed even if nothing uses it. */
		if (!*t.name &&
		    (c_is_struct(t.kind) || c_is_enum(t.kind) || t.kind == CAIRN_BTF_FUNC_PROTO))
			d->types[t.id].hoisted = true;
	}
	for (size_t i = 0; i < asked->n_ids && !ferror(d->out); i++) {
		int r = c_need(d, asked->ids[i], C_DEFINED);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Functions and variables are left out: a program that includes the header would have to agree with
 * all of them.
 */
static bool is_type(const struct dump_c *d, const struct cairn_btf_type *t)
{
	if (c_is_struct(t->kind) || c_is_enum(t->kind))
		return *t->name || d->types[t->id].hoisted;
	return t->kind == CAIRN_BTF_TYPEDEF || t->kind == CAIRN_BTF_FWD;
}

static int print_own(struct dump_c *d)
{
	for (uint32_t id = d->btf->start_id; id < d->btf->end_id && !ferror(d->out); id++) {
		struct cairn_btf_type t = c_get(d, id);

		if (is_type(d, &t)) {
			int r = c_need(d, id, C_DEFINED);
			if (r < 0)
				return r;
		} else if (c_is_enum(t.kind) && !d->types[id].user) {
			/* Nothing has this type; its enumerators are constants. */
			c_begin(d, false);
			c_print_definition(d, &t);
		}
	}
	return 0;
}

/*
 * Functions of the kernel that BPF programs may call; a tag marks them. As in bpftool's header,
 * with a macro against them for programs that declare some themselves.
 */
static int print_kfuncs(struct dump_c *d)
{
	bool first = true;

	for (uint32_t id = d->btf->start_id; id < d->btf->end_id && !ferror(d->out); id++) {
		struct cairn_btf_type tag = c_get(d, id), func = c_get(d, tag.ref);

		if (tag.kind != CAIRN_BTF_DECL_TAG || strcmp(tag.name, "bpf_kfunc") ||
		    func.kind != CAIRN_BTF_FUNC || d->types[func.id].state[C_DECLARED] == C_DONE)
			continue;
		int r = c_need(d, func.ref, C_DECLARED);
		if (r < 0)
			return r;
		/* Under another name it would be another function. */
		if (strcmp(c_name(d, &func), func.name))
			continue;
		if (first)
			fputs("\n#ifndef BPF_NO_KFUNC_PROTOTYPES\n"
			      "#ifndef __ksym\n#define __ksym "
			      "__attribute__((section(\".ksyms\")))\n#endif\n"
			      "#ifndef __weak\n#define __weak __attribute__((weak))\n#endif\n",
			      d->out);
		first = false;
		d->types[func.id].state[C_DECLARED] = C_DONE;
		c_print_extern(d, &func, " __weak __ksym");
	}
	if (!first)
		fputs("#endif /* BPF_NO_KFUNC_PROTOTYPES */\n", d->out);
	return 0;
}

/* ---- around them ---- */

/* GNU's C predefines these as macros, and would turn a member of the name into 1. */
static void undefine(const struct dump_c *d)
{
	static const char *const macros[] = {"linux", "unix", "i386"};

	for (size_t i = 0; i < sizeof(macros) / sizeof(macros[0]); i++) {
		size_t n = strlen(macros[i]) + 1;
		bool found = false;

		for (const struct cairn_btf *btf = d->btf; btf && !found; btf = btf->base)
			found = btf->strings_size &&
				memmem(btf->strings, btf->strings_size, macros[i], n);
		if (found)
			fprintf(d->out, "#undef %s\n", macros[i]);
	}
}

/*
 * Programs for the kernel expect what "bpftool btf dump file vmlinux format c" defines: libbpf's
 * headers look for __VMLINUX_H__, and the attribute lets it relocate accesses. For a user program's
 * types there is nothing to relocate to.
 */
static bool is_kernel(const struct dump_c *d)
{
	return cairn_btf_find(d->btf, "task_struct", CAIRN_BTF_STRUCT, 0) != 0;
}

static void print_head(struct dump_c *d, bool kernel, bool has_tags)
{
	if (kernel)
		fputs("#ifndef __VMLINUX_H__\n#define __VMLINUX_H__\n\n", d->out);
	undefine(d);
	if (has_tags)
		fputs("#ifndef __has_attribute\n#define __has_attribute(x) 0\n#endif\n"
		      "#if __has_attribute(btf_type_tag)\n"
		      "#define __btf_type_tag(x) __attribute__((btf_type_tag(x)))\n"
		      "#else\n#define __btf_type_tag(x)\n#endif\n"
		      "#if defined(__clang__) && defined(__bpf__)\n"
		      "#define __btf_attribute(x) __attribute__((x))\n"
		      "#else\n#define __btf_attribute(x)\n#endif\n",
		      d->out);
	if (kernel)
		fputs("#if defined(__clang__) && defined(__bpf__) && "
		      "!defined(BPF_NO_PRESERVE_ACCESS_INDEX)\n"
		      "#pragma clang attribute push (__attribute__((preserve_access_index)), "
		      "apply_to = record)\n"
		      "#endif\n",
		      d->out);
}

static void print_foot(struct dump_c *d, bool kernel)
{
	if (kernel)
		fputs("\n#if defined(__clang__) && defined(__bpf__) && "
		      "!defined(BPF_NO_PRESERVE_ACCESS_INDEX)\n"
		      "#pragma clang attribute pop\n"
		      "#endif\n\n#endif /* __VMLINUX_H__ */\n",
		      d->out);
}

static uint32_t pointer_bytes(const struct dump_c *d)
{
	static const char *const longs[] = {"long int", "long unsigned int", "long",
					    "unsigned long"};
	struct cairn_btf_type t;

	if (d->machine)
		return d->machine == EM_386 || d->machine == EM_ARM || d->machine == EM_MIPS ||
				       d->machine == EM_PPC
			       ? 4
			       : 8;
	for (size_t i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
		if (cairn_btf_type(d->btf, cairn_btf_find(d->btf, longs[i], CAIRN_BTF_INT, 0), &t))
			return t.ref == 4 ? 4 : 8;
	return 8;
}

static int print_everything(struct dump_c *d, const struct dump *asked)
{
	bool has_tags = false, kernel = is_kernel(d);

	find_users(d, asked->ids, &has_tags);
	print_head(d, kernel, has_tags);
	int r = asked->ids ? print_asked(d, asked) : print_own(d);
	if (r == 0 && !asked->ids && kernel)
		r = print_kfuncs(d);
	if (r < 0)
		return r;
	print_foot(d, kernel);
	return d->nomem ? err_nomem(d->err, "C declarations") : 0;
}

int dump_c(const struct dump *asked, struct cairn_err *err)
{
	struct dump_c d = {.btf = asked->btf,
			   .out = asked->out,
			   .machine = asked->machine,
			   .err = err,
			   .was_line = true};

	arena_init(&d.arena);
	d.ptr_bytes = pointer_bytes(&d);
	d.types = calloc(asked->btf->end_id ? asked->btf->end_id : 1, sizeof(*d.types));
	d.names = c_names_new(&d.arena);
	int r = d.types && d.names ? print_everything(&d, asked) : err_nomem(err, "C declarations");

	*asked->n_renamed = d.n_renamed;
	c_names_free(d.names);
	free(d.types);
	arena_fini(&d.arena);
	return r;
}
