/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Symbols of some names, without a table of all
 *
 * To read and to sort a kernel's 150,000 symbols takes 10 ms, and a question about one function
 * needs a few. Their names are looked for in the strings, and then numbers are compared only. A
 * name that is the end of a longer one has its string there, as linkers keep such strings once.
 */
#include "elf/symbol_scan.h"

#include <stdlib.h>

#include "base/vec.h"

/* Shorter names are at too many places of the strings. */
enum { NAME_MIN = 4, PLACES_MAX = 4096 };

enum { NEAR = 1 << 16 };

bool symbol_scan_begin(const struct elf *e, struct symbol_table *ret)
{
	return symbol_table_find(e, SHT_SYMTAB, ret, NULL) == 1;
}

/* Offsets in the strings, in their order; most others differ in the lowest bits of one. */
struct places {
	VEC(uint32_t) v;
	bool may_be[PLACES_MAX];
};

static int find_strings(const struct symbol_table *t, const char *name, struct places *ret)
{
	const char *strings = (const char *)t->strings, *end = strings + t->strings_size;
	const size_t n = strlen(name) + 1;

	for (const char *at = strings; (at = memmem(at, (size_t)(end - at), name, n)); at++) {
		if (ret->v.n == PLACES_MAX || at - strings > UINT32_MAX)
			return -EAGAIN;
		if (!VEC_ADD(&ret->v, (uint32_t)(at - strings)))
			return -ENOMEM;
		ret->may_be[(at - strings) % PLACES_MAX] = true;
	}
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool has_place(const struct places *p, uint32_t off)
{
	return p->may_be[off % PLACES_MAX] && bsearch(&off, p->v.p, p->v.n, sizeof(off), by_offset);
}

static int take_places(const struct symbol_table *t, const struct places *places,
		       struct symbol_list *ret)
{
	Elf64_Sym s;
	uint64_t i = 0;
	int rc;

	while ((rc = symbol_scan_next(t, &i, &s)) > 0) {
		rc = has_place(places, s.st_name) ? symbol_scan_add(t, &s, ret) : 0;
		if (rc < 0)
			break;
	}
	return rc;
}

static int put_in_order(struct symbol_list *l)
{
	struct elf_symbol *sorted = calloc(l->v.n + 1, sizeof(*sorted));
	int rc = sorted ? symbols_sort(l->v.p, l->v.n, sorted) : -ENOMEM;

	if (rc == 0 && l->v.n)
		memcpy(l->v.p, sorted, l->v.n * sizeof(*sorted));
	free(sorted);
	return rc;
}

/* A name with a version, "memcpy@GLIBC_2.14", has another string. */
static int find_named(const struct symbol_table *t, const char *name, struct symbol_list *ret)
{
	struct places places = {0};
	int rc = strlen(name) < NAME_MIN || memchr(t->strings, '@', t->strings_size)
			 ? -EAGAIN
			 : find_strings(t, name, &places);

	if (rc == 0)
		rc = take_places(t, &places, ret);
	if (rc == 0)
		rc = put_in_order(ret);
	VEC_FREE(&places.v);
	return rc;
}

/* True once elf_symbols() was called, and where it has to be. */
static bool needs_all(const struct elf *e, struct symbol_table *ret)
{
	return atomic_load_explicit(&e->symbols_ready, memory_order_acquire) ||
	       !symbol_scan_begin(e, ret);
}

/* ---- the whole table, where it is there ---- */

static int find_in_all(struct elf *e, const char *name, struct symbol_list *ret,
		       struct cairn_err *err)
{
	const struct elf_symbol *p;
	size_t n = 0;
	int rc = elf_symbols(e, &p, &n, err);

	for (size_t i = 0; i < n && rc >= 0; i++)
		/* A call costs more than most comparisons. */
		if (p[i].name[0] == name[0] && !strcmp(p[i].name, name) && !VEC_ADD(&ret->v, p[i]))
			rc = err_nomem(err, "symbols");
	return rc;
}

int elf_symbols_named(struct elf *e, const char *name, struct symbol_list *ret,
		      struct cairn_err *err)
{
	struct symbol_table t;
	int rc = needs_all(e, &t) ? -EAGAIN : find_named(&t, name, ret);

	if (rc == -ENOMEM)
		return err_nomem(err, "symbols");
	if (rc != -EAGAIN)
		return rc;
	ret->v.n = 0;
	return find_in_all(e, name, ret, err);
}

/* ---- several names ---- */

void name_set_fini(struct name_set *s)
{
	while (s->v.n)
		free(s->v.p[--s->v.n]);
	VEC_FREE(&s->v);
}

int name_set_add(struct name_set *s, const char *name, size_t n)
{
	for (size_t i = 0; i < s->v.n; i++)
		if (!strncmp(s->v.p[i], name, n) && !s->v.p[i][n])
			return 0;
	char *copy = strndup(name, n);
	if (copy && VEC_ADD(&s->v, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

enum { BEGINNING_BYTES = 6, BEGINNINGS = 4096 };

/* The beginnings of names: most others differ. */
struct beginnings {
	bool is_one[BEGINNINGS];
};

static unsigned int beginning_of(const char *name)
{
	unsigned int h = 0;

	for (int i = 0; i < BEGINNING_BYTES && name[i]; i++)
		h = h * 37 + (uint8_t)name[i];
	return (h ^ h >> 12) % BEGINNINGS;
}

static struct beginnings beginnings_of(const struct name_set *names)
{
	struct beginnings b = {0};

	for (size_t i = 0; i < names->v.n; i++)
		b.is_one[beginning_of(names->v.p[i])] = true;
	return b;
}

static bool has_name(const struct name_set *names, const struct beginnings *b, const char *name)
{
	if (!b->is_one[beginning_of(name)])
		return false;
	for (size_t i = 0; i < names->v.n; i++)
		if (names->v.p[i][0] == name[0] && !strcmp(names->v.p[i], name))
			return true;
	return false;
}

static int scan_names(const struct symbol_table *t, const struct name_set *names,
		      struct symbol_list *ret)
{
	const struct beginnings b = beginnings_of(names);
	Elf64_Sym s;
	uint64_t i = 0;
	int rc;

	while ((rc = symbol_scan_next(t, &i, &s)) > 0) {
		rc = has_name(names, &b, symbol_scan_name(t, &s)) ? symbol_scan_add(t, &s, ret) : 0;
		if (rc < 0)
			break;
	}
	return rc < 0 ? rc : put_in_order(ret);
}

int elf_symbols_of_names(struct elf *e, const struct name_set *names, struct symbol_list *ret,
			 struct cairn_err *err)
{
	const struct beginnings b = beginnings_of(names);
	const struct elf_symbol *p;
	struct symbol_table t;
	size_t n = 0;
	int rc = -EAGAIN;

	if (!needs_all(e, &t) && !memchr(t.strings, '@', t.strings_size))
		rc = scan_names(&t, names, ret);
	if (rc == -ENOMEM)
		return err_nomem(err, "symbols");
	if (rc != -EAGAIN)
		return rc;
	ret->v.n = 0;
	rc = elf_symbols(e, &p, &n, err);
	for (size_t i = 0; i < n && rc >= 0; i++)
		if (has_name(names, &b, p[i].name) && !VEC_ADD(&ret->v, p[i]))
			rc = err_nomem(err, "symbols");
	return rc;
}

/* ---- before an address ---- */

/* 1: @ret has what begins in [@at - NEAR, @at]; 0: nothing begins there. */
static int take_near(const struct symbol_table *t, uint64_t at, struct symbol_list *ret)
{
	Elf64_Sym s;
	uint64_t i = 0;
	int rc;

	while ((rc = symbol_scan_next(t, &i, &s)) > 0) {
		struct elf_symbol symbol;

		if (at - s.st_value > NEAR || s.st_value > at)
			continue;
		rc = symbol_scan_take(t, &s, &symbol);
		if (rc == 0 && !VEC_ADD(&ret->v, symbol))
			rc = -ENOMEM;
		if (rc < 0)
			break;
	}
	if (rc == 0)
		rc = put_in_order(ret);
	return rc < 0 ? rc : ret->v.n > 0;
}

int elf_symbols_before(struct elf *e, struct cairn_vaddr at, struct symbol_list *ret)
{
	struct symbol_table t;
	int rc = needs_all(e, &t) ? 0 : take_near(&t, at.v, ret);

	if (rc <= 0 || at.v - ret->v.p[ret->v.n - 1].at.v > NEAR - ELF_SYMBOLS_BEFORE)
		return rc == -ENOMEM ? rc : 0;
	return 1;
}

/* ---- bounds ---- */

static bool is_bound(uint8_t type, uint8_t binding)
{
	return type == STT_NOTYPE && binding == STB_GLOBAL;
}

/* Others are stepped over: few are of this kind. */
static int scan_bounds(const struct symbol_table *t,
		       void (*visit)(void *ctx, const struct elf_symbol *s), void *ctx)
{
	const uint64_t n = t->size / sizeof(Elf64_Sym);
	struct elf_symbol symbol;
	Elf64_Sym s;

	for (uint64_t i = 0; i < n; i++) {
		uint8_t info = t->symbols[i * sizeof(s) + offsetof(Elf64_Sym, st_info)];
		uint64_t at = i;
		if (!is_bound(ELF64_ST_TYPE(info), ELF64_ST_BIND(info)))
			continue;
		int rc = symbol_scan_next(t, &at, &s);
		if (rc > 0 && at == i + 1)
			rc = symbol_scan_take(t, &s, &symbol);
		else if (rc >= 0)
			continue;
		if (rc < 0)
			return rc;
		visit(ctx, &symbol);
	}
	return 0;
}

int elf_visit_bounds(struct elf *e, void (*visit)(void *ctx, const struct elf_symbol *s), void *ctx,
		     struct cairn_err *err)
{
	const struct elf_symbol *p;
	struct symbol_table t;
	size_t n = 0;

	if (!needs_all(e, &t) && scan_bounds(&t, visit, ctx) == 0)
		return 0;
	int rc = elf_symbols(e, &p, &n, err);
	for (size_t i = 0; i < n && rc >= 0; i++)
		if (is_bound(p[i].type, p[i].binding))
			visit(ctx, &p[i]);
	return rc;
}
