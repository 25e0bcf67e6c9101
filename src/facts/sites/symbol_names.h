/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Resolves names that only the symbol tables have
 *
 * The debug information of a C library calls malloc __libc_malloc, and it has the implementations
 * of memcpy but not that name. Users type an ELF symbol; symbol_names.c leads from it to addresses.
 */
#ifndef SITES_SYMBOL_NAMES_H
#define SITES_SYMBOL_NAMES_H

#include <cairn/sites.h>

#include "base/arena.h"
#include "base/vec.h"

enum symbol_origin {
	SYMBOL_OF_CODE,
	SYMBOL_OF_RESOLVER, /* of an indirect function */
	SYMBOL_OF_ELSEWHERE /* taken from a shared library; without address */
};

/* @size  in bytes, as the symbol says */
typedef int symbol_visitor(void *ctx, const char *name, struct cairn_vaddr at, uint64_t size,
			   enum symbol_origin origin);

/*
 * symbol_names_visit - every name that symbol_name_find() can find, and those taken from elsewhere
 *
 * A name may come several times. Returns 0, or a result of @visit other than 0, which ends the
 * walk; damaged names are left out. Names are borrowed from @bin.
 */
int symbol_names_visit(const struct cairn_binary *bin, symbol_visitor *visit, void *ctx);

/* The addresses of the functions that a name stands for. */
struct symbol_name {
	VEC(struct cairn_vaddr) at; /* each once, in order */
	bool indirect; /* of an indirect function: its implementations, not the resolver */
};

/*
 * symbol_name_find - look a function's name up in the symbol tables of the binary and of its debug
 * file
 *
 * @name  "memcpy" finds "memcpy@GLIBC_2.2.5" and "memcpy@@GLIBC_2.14", which may differ; with its
 *        version it stands for that one
 * @ret   symbol_name_fini() frees it
 * Returns the number of addresses, 0 when no function has that name; -EBADMSG, -ERANGE, -ENOMEM.
 * Cost: one pass over the symbols.
 */
int symbol_name_find(const struct cairn_binary *bin, const char *name, struct symbol_name *ret,
		     struct cairn_err *err);

/*
 * symbol_name_add_implementations - what the resolver of an indirect function can return
 *
 * @resolver, @size  its code
 * @to               symbol_name_settle() puts it in order when all are added
 * Returns 0 or -ENOMEM. Cost: decodes the resolver.
 */
int symbol_name_add_implementations(const struct cairn_binary *bin, struct cairn_vaddr resolver,
				    uint64_t size, struct symbol_name *to, struct cairn_err *err);

/*
 * symbol_names_match - the same for all functions whose symbol a pattern matches, as fnmatch() does
 *
 * Returns 0; errors as above. Cost: a pass over the symbols.
 */
int symbol_names_match(const struct cairn_binary *bin, const char *pattern, struct symbol_name *ret,
		       struct cairn_err *err);

/* Whether a pattern matches a symbol's name, and that is a function's. */
bool symbol_name_matches(const char *pattern, const char *name);

/* Put addresses that were added in order, each once. */
void symbol_name_settle(struct symbol_name *s);

/* O(log addresses). */
bool symbol_name_has(const struct symbol_name *s, struct cairn_vaddr at);
void symbol_name_fini(struct symbol_name *s);

/*
 * symbol_function - a function of which nothing but its address is known
 *
 * @ret  all that it points to is in @arena or borrowed from @bin; no parameters, one site
 * Returns 0 or -ENOMEM.
 */
int symbol_function(const struct cairn_binary *bin, const char *name, struct cairn_vaddr at,
		    struct arena *arena, struct cairn_function *ret);

#endif
