/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions folded by the linker (identical code folding)
 *
 * With --icf=all lld and gold keep one of several functions with the same code. Each has its symbol
 * still, all at one address, and its DIE. gold's DIEs have that address, too; lld's DIEs of dropped
 * functions have none. An event there does not show which of them was called:
 *
 *	0x16a0  first	 int a, int b		two names, two declarations: folded
 *	0x16a0  second	 int b, int a
 *	0x9c70  malloc, __libc_malloc		two names, and a body of one declaration: an alias
 *
 * Two symbols at one address are cheap to find, and rare. Only then all bodies are read: if several
 * declarations have a body at one address, or had one, they were folded. Bodies of one declaration,
 * in several units or as clones, are quirks/icf_args.c's.
 *
 * Two cases are not seen: a function whose symbol was stripped, and functions that GCC itself
 * unifies (-fipa-icf), which leaves one DIE with code.
 */
#include "sites/icf.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "dwarf/constants.h"
#include "elf/elf.h"
#include "sites/abstract.h"

/* Up to the version, or the suffix of a clone. */
static size_t base_length(const char *name)
{
	return strcspn(name, "@.");
}

static int compare_bases(const char *a, const char *b)
{
	size_t n = base_length(a), m = base_length(b);
	int c = memcmp(a, b, n < m ? n : m);
	return c ? c : (n > m) - (n < m);
}

static int by_name(const void *a, const void *b)
{
	const struct icf_name *x = a, *y = b;
	return compare_bases(x->name, y->name);
}

/* Add the addresses at which one symbol table, which is in order of address, has several names. */
static int add_several(struct elf *e, struct icf_candidates *ret, struct cairn_err *err)
{
	const struct elf_symbol *symbols, *first = NULL;
	size_t n;
	int rc = elf_symbols(e, &symbols, &n, err);
	for (size_t i = 0; i < n && rc >= 0; i++) {
		const struct elf_symbol *s = &symbols[i];
		if (s->type != STT_FUNC)
			continue;
		if (!first || s->at.v != first->at.v) {
			first = s;
		} else if (compare_bases(s->name, first->name)) {
			if (!VEC_ADD(&ret->at.at, s->at) ||
			    !VEC_ADD(&ret->names, ((struct icf_name){s->name, s->at})) ||
			    !VEC_ADD(&ret->names, ((struct icf_name){first->name, s->at})))
				return err_nomem(err, "addresses of functions");
		}
	}
	return rc < 0 ? rc : 0;
}

int icf_candidates_find(const struct cairn_binary *bin, struct icf_candidates *ret,
			struct cairn_err *err)
{
	struct elf *main = binary_main(bin), *debug = binary_debug(bin);
	*ret = (struct icf_candidates){0};
	int rc = add_several(main, ret, err);
	if (!rc && debug && debug != main)
		rc = add_several(debug, ret, err);
	symbol_name_settle(&ret->at);
	if (ret->names.n)
		qsort(ret->names.p, ret->names.n, sizeof(*ret->names.p), by_name);
	return rc;
}

void icf_candidates_fini(struct icf_candidates *c)
{
	symbol_name_fini(&c->at);
	VEC_FREE(&c->names);
}

/*
 * Whether an entry of the index is a body, and where it begins: 0 where the linker dropped its
 * code.
 */
static bool is_body(const struct site_env *env, uint32_t entry, struct dw_die *die,
		    struct cairn_vaddr *ret)
{
	const struct dw_func *f = &env->index->p[entry];
	const uint8_t *code;
	size_t n;
	if (f->flags & DW_FUNC_INLINED || !(f->flags & DW_FUNC_HAS_CODE) ||
	    dw_func_die(env->dw, f, die, NULL) != 1)
		return false;
	if (site_entry_of(die, ret) != 1 || !elf_code_at(env->code, *ret, &code, &n))
		ret->v = 0;
	return true;
}

bool fold_concerns(const struct site_env *env, const struct groups *groups,
		   const struct icf_candidates *candidates)
{
	struct dw_die die;
	struct cairn_vaddr at;
	for (size_t g = 0; g < groups->v.n && candidates->at.at.n; g++)
		for (size_t i = 0; i < groups->v.p[g].entries.n; i++)
			if (is_body(env, groups->v.p[g].entries.p[i], &die, &at) &&
			    symbol_name_has(&candidates->at, at))
				return true;
	return false;
}

/* A function that has a symbol where it begins, or had its code there. */
struct beginning {
	struct cairn_vaddr at;
	const char *name, *file;
	uint64_t line;
};

static int by_address(const void *a, const void *b)
{
	const struct beginning *x = a, *y = b;
	return x->at.v < y->at.v ? -1 : x->at.v > y->at.v;
}

static bool is_same_function(const struct beginning *a, const struct beginning *b)
{
	return a->line == b->line && !strcmp(a->name, b->name) && !strcmp(a->file, b->file);
}

struct beginnings {
	VEC(struct beginning) v;
};

/* The dropped code's address now: the symbol that is left of it. */
static bool symbol_of(const struct icf_candidates *candidates, const struct dw_die *abstract,
		      struct cairn_vaddr *ret)
{
	const char *linkage = dw_str_deep(abstract, DW_AT_linkage_name);
	struct icf_name key = {.name = linkage ? linkage : dw_str_deep(abstract, DW_AT_name)};
	const struct icf_name *hit = NULL;
	if (key.name && candidates->names.n)
		hit = bsearch(&key, candidates->names.p, candidates->names.n, sizeof(*hit),
			      by_name);
	if (hit)
		*ret = hit->at;
	return hit;
}

static int list_beginnings(const struct site_env *env, const struct icf_candidates *candidates,
			   struct beginnings *ret, struct cairn_err *err)
{
	enum { AHEAD = 64 };
	for (uint32_t i = 0; i < env->index->n; i++) {
		struct dw_die die, abstract;
		struct cairn_vaddr at;
		if (i + AHEAD < env->index->n &&
		    !(env->index->p[i + AHEAD].flags & DW_FUNC_INLINED))
			dw_func_prefetch(env->dw, &env->index->p[i + AHEAD]);
		if (!is_body(env, i, &die, &at) || (at.v && !symbol_name_has(&candidates->at, at)))
			continue;
		int rc = abstract_die(env->dw, die.unit, die.off, &abstract, err);
		if (rc < 0)
			return rc;
		if (!at.v && !symbol_of(candidates, &abstract, &at))
			continue;
		const char *name = dw_str_deep(&abstract, DW_AT_name);
		const char *file =
			dw_unit_file(abstract.unit, dw_udata(&abstract, DW_AT_decl_file, 0));
		struct beginning b = {.at = at,
				      .name = name ? name : "",
				      .file = file ? file : "",
				      .line = dw_udata(&abstract, DW_AT_decl_line, 0)};
		if (!VEC_ADD(&ret->v, b))
			return err_nomem(err, "addresses of functions");
	}
	if (ret->v.n)
		qsort(ret->v.p, ret->v.n, sizeof(*ret->v.p), by_address);
	return 0;
}

int icf_find(const struct site_env *env, const struct icf_candidates *candidates,
	     struct symbol_name *ret, struct cairn_err *err)
{
	struct beginnings b = {0};
	*ret = (struct symbol_name){0};
	int rc = candidates->at.at.n ? list_beginnings(env, candidates, &b, err) : 0;
	for (size_t i = 1; i < b.v.n && !rc; i++)
		if (b.v.p[i].at.v == b.v.p[i - 1].at.v &&
		    !is_same_function(&b.v.p[i], &b.v.p[i - 1]) && !VEC_ADD(&ret->at, b.v.p[i].at))
			rc = err_nomem(err, "addresses of functions");
	symbol_name_settle(ret);
	VEC_FREE(&b.v);
	return rc;
}
