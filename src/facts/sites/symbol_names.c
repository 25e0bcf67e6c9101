/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a symbol's name to the code that it stands for
 *
 * A symbol of a function has the function's address. An indirect one (STT_GNU_IFUNC) has that of a
 * resolver, which runs once, when the name is bound, and returns the address of the implementation
 * that suits the processor:
 *
 *	memcpy resolver:  lea  0x...(%rip),%rax    # __memmove_sse2_unaligned
 *	                  ...
 *	                  lea  0x...(%rip),%rdx    # __memmove_avx_unaligned_erms
 *	                  cmovne %rdx,%rax
 *	                  ret
 *
 * So the implementations are the functions whose addresses the resolver's code takes. A resolver
 * that gets them another way (from a table, or through the GOT) shows none. The name then has no
 * site, as the resolver is not the function.
 */
#include "sites/symbol_names.h"

#include <elf.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "elf/versions.h"
#include "insn/insn.h"

enum {
	/* The largest resolver of glibc has 300 bytes. */
	RESOLVER_BYTES_MAX = 4096,
	VERSIONED_MAX = 512,
};

/* A name without its version, and where the symbols of that version are. */
struct wanted_name {
	char text[VERSIONED_MAX];
	const char *name;
	bool has_version;
	struct symbol_name at;
};

static int by_address(const void *a, const void *b)
{
	const struct cairn_vaddr *x = a, *y = b;
	return x->v < y->v ? -1 : x->v > y->v;
}

bool symbol_name_has(const struct symbol_name *s, struct cairn_vaddr at)
{
	return s->at.n && bsearch(&at, s->at.p, s->at.n, sizeof(at), by_address);
}

static int add(struct symbol_name *s, struct cairn_vaddr at, struct cairn_err *err)
{
	return VEC_ADD(&s->at, at) ? 0 : err_nomem(err, "symbols");
}

void symbol_name_settle(struct symbol_name *s)
{
	size_t n = 0;
	if (s->at.n)
		qsort(s->at.p, s->at.n, sizeof(*s->at.p), by_address);
	for (size_t i = 0; i < s->at.n; i++)
		if (!n || s->at.p[n - 1].v != s->at.p[i].v)
			s->at.p[n++] = s->at.p[i];
	s->at.n = n;
}

/* Code that has a function symbol at its first byte: what a resolver can return. */
static bool is_function_start(const struct cairn_binary *bin, struct cairn_vaddr at)
{
	const char *name;
	struct cairn_vaddr start;
	return cairn_binary_symbol_of(bin, at, &name, &start) && start.v == at.v;
}

int symbol_name_add_implementations(const struct cairn_binary *bin, struct cairn_vaddr resolver,
				    uint64_t size, struct symbol_name *s, struct cairn_err *err)
{
	const uint8_t *code;
	size_t n, off = 0;
	struct insn insn;
	if (!elf_code_at(binary_main(bin), resolver, &code, &n))
		return 0;
	if (n > size)
		n = size;
	if (n > RESOLVER_BYTES_MAX)
		n = RESOLVER_BYTES_MAX;
	for (; off < n && insn_decode(code + off, n - off, resolver.v + off, &insn);
	     off += insn.len) {
		struct cairn_vaddr at;
		if (!insn_takes_address(code + off, n - off, resolver.v + off, &at.v) ||
		    !is_function_start(bin, at))
			continue;
		int rc = add(s, at, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static bool is_code(const struct cairn_binary *bin, const struct elf_symbol *symbol)
{
	const uint8_t *code;
	size_t n;
	bool function = symbol->type == STT_FUNC || (symbol->type == STT_NOTYPE && symbol->size);
	if (!function || elf_code_at(binary_main(bin), symbol->at, &code, &n))
		return function;
	/* Of a running kernel there is code in memory alone. */
	return elf_lacks_code_at(binary_main(bin), symbol->at) && elf_is_kernel(binary_main(bin));
}

static int add_versioned(void *ctx, struct cairn_vaddr at)
{
	struct symbol_name *to = ctx;
	return VEC_ADD(&to->at, at) ? 0 : -ENOMEM;
}

/* "memcpy@GLIBC_2.14", or with "@@" as the default is often written. */
static int parse_version(const struct cairn_binary *bin, const char *name, struct wanted_name *ret,
			 struct cairn_err *err)
{
	const char *at = strchr(name, '@');
	*ret = (struct wanted_name){.name = name};
	if (!at || at == name || (size_t)(at - name) >= sizeof(ret->text))
		return 0;
	ret->has_version = true;
	ret->name = memcpy(ret->text, name, (size_t)(at - name));
	int rc = elf_visit_version(binary_main(bin), ret->name, at + strspn(at, "@"), add_versioned,
				   &ret->at, err);
	symbol_name_settle(&ret->at);
	return rc == -ENOMEM ? err_nomem(err, "symbols") : rc;
}

static int find_in(const struct cairn_binary *bin, struct elf *e, const struct wanted_name *wanted,
		   struct symbol_name *s, struct cairn_err *err)
{
	struct symbol_list named = {0};
	int rc = elf_symbols_named(e, wanted->name, &named, err);
	for (size_t i = 0; i < named.v.n && rc >= 0; i++) {
		const struct elf_symbol *symbol = &named.v.p[i];
		if (wanted->has_version && !symbol_name_has(&wanted->at, symbol->at))
			continue;
		if (symbol->type == STT_GNU_IFUNC) {
			s->indirect = true;
			rc = symbol_name_add_implementations(bin, symbol->at, symbol->size, s, err);
		} else if (is_code(bin, symbol)) {
			rc = add(s, symbol->at, err);
		}
	}
	VEC_FREE(&named.v);
	return rc < 0 ? rc : 0;
}

int symbol_name_find(const struct cairn_binary *bin, const char *name, struct symbol_name *ret,
		     struct cairn_err *err)
{
	struct elf *debug = binary_debug(bin), *code = binary_main(bin);
	struct wanted_name wanted;
	*ret = (struct symbol_name){0};
	int rc = parse_version(bin, name, &wanted, err);
	if (rc >= 0)
		rc = find_in(bin, code, &wanted, ret, err);
	if (rc >= 0 && debug && debug != code)
		rc = find_in(bin, debug, &wanted, ret, err);
	symbol_name_fini(&wanted.at);
	if (rc < 0) {
		symbol_name_fini(ret);
		return rc;
	}
	symbol_name_settle(ret);
	return (int)ret->at.n;
}

/* ---- all of them ---- */

struct visit {
	const struct cairn_binary *bin;
	symbol_visitor *fn;
	void *ctx;
};

static int visit_symbols(const struct visit *v, struct elf *e)
{
	const struct elf_symbol *symbols;
	size_t n;
	int rc = 0;
	if (elf_symbols(e, &symbols, &n, NULL) < 0)
		return 0;
	for (size_t i = 0; i < n && !rc; i++) {
		const struct elf_symbol *s = &symbols[i];
		if (s->type == STT_GNU_IFUNC)
			rc = v->fn(v->ctx, s->name, s->at, s->size, SYMBOL_OF_RESOLVER);
		else if (is_code(v->bin, s))
			rc = v->fn(v->ctx, s->name, s->at, s->size, SYMBOL_OF_CODE);
	}
	return rc;
}

static int visit_import(void *ctx, const char *name)
{
	const struct visit *v = ctx;
	return v->fn(v->ctx, name, (struct cairn_vaddr){0}, 0, SYMBOL_OF_ELSEWHERE);
}

int symbol_names_visit(const struct cairn_binary *bin, symbol_visitor *fn, void *ctx)
{
	struct visit v = {bin, fn, ctx};
	struct elf *debug = binary_debug(bin), *code = binary_main(bin);
	int rc = visit_symbols(&v, code);
	if (!rc && debug && debug != code)
		rc = visit_symbols(&v, debug);
	return rc ? rc : elf_visit_imports(code, visit_import, &v);
}

/* ---- those that a pattern matches ---- */

struct match {
	const struct cairn_binary *bin;
	const char *pattern;
	struct symbol_name *into;
	struct cairn_err *err;
};

/* foo.cold is no function: GCC and LLVM moved it out of foo. */
bool symbol_name_matches(const char *pattern, const char *name)
{
	return !fnmatch(pattern, name, 0) && !strstr(name, ".cold");
}

static int add_match(void *arg, const char *name, struct cairn_vaddr at, uint64_t size,
		     enum symbol_origin origin)
{
	struct match *m = arg;
	if (origin == SYMBOL_OF_ELSEWHERE || !symbol_name_matches(m->pattern, name))
		return 0;
	if (origin == SYMBOL_OF_CODE)
		return add(m->into, at, m->err);
	/* Other symbols of the name match, too. */
	return symbol_name_add_implementations(m->bin, at, size, m->into, m->err);
}

int symbol_names_match(const struct cairn_binary *bin, const char *pattern, struct symbol_name *ret,
		       struct cairn_err *err)
{
	struct match m = {.bin = bin, .pattern = pattern, .into = ret, .err = err};
	*ret = (struct symbol_name){0};
	int rc = symbol_names_visit(bin, add_match, &m);
	if (rc < 0) {
		symbol_name_fini(ret);
		return rc;
	}
	symbol_name_settle(ret);
	return 0;
}

void symbol_name_fini(struct symbol_name *s)
{
	VEC_FREE(&s->at);
}

int symbol_function(const struct cairn_binary *bin, const char *name, struct cairn_vaddr at,
		    struct arena *arena, struct cairn_function *ret)
{
	struct cairn_site *site = arena_alloc(arena, sizeof(*site));
	const char *covering;
	struct cairn_vaddr start;
	if (!site)
		return -ENOMEM;
	*site = (struct cairn_site){
		.kind = CAIRN_SITE_OUT_OF_LINE,
		.rule = CAIRN_AT_SYMBOL,
		.at = at,
		.hazard = cairn_hazard_at(bin, at, true),
		.n_shared = 1,
	};
	site->has_off = cairn_binary_foff(bin, at, &site->off);
	if (cairn_binary_symbol_of(bin, at, &covering, &start)) {
		site->symbol = covering;
		site->symbol_off = at.v - start.v;
	}
	*ret = (struct cairn_function){
		.name = arena_strdup(arena,
				     site->symbol && !site->symbol_off ? site->symbol : name),
		.params_unknown = true,
		.n_sites = 1,
		.sites = site,
	};
	return ret->name ? 0 : -ENOMEM;
}
