/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathering index entries into functions
 *
 * The same inline function of a header is compiled in thousands of units, and in each it has a
 * declaration DIE of its own, to which the copies of that unit point. So an entry is followed to its root (over
 * abstract origins and specifications), and roots with the same name, file and line are one function:
 *
 *	unit 1:  DIE 0x2d  subprogram list_add, list.h:77  <── 0x90 inlined, 0xb2 inlined
 *	unit 2:  DIE 0x8f1 subprogram list_add, list.h:77  <── 0x9c0 inlined		  one function, 3 sites
 *	unit 3:  DIE 0xa11 subprogram list_add, mylist.c:9 <── 0xa80 body		  another one
 *
 * Two static functions of one name at the same line of one file included twice stay one function: they are
 * the same source text.
 */
#include "loc/group.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"

/* Longest qualified name that is shown in full. */
enum { NAME_MAX_BYTES = 4096 };

static bool has_namespaces(const struct dw_unit *u)
{
	switch (dw_unit_language(u)) {
	case DW_LANG_C89:
	case DW_LANG_C:
	case DW_LANG_C99:
	case DW_LANG_C11:
	case DW_LANG_Mips_Assembler:
		return false;
	}
	return true;
}

/* The entry at the end of @i's origins. */
static uint32_t root_of(const struct dw_func_index *index, uint32_t i)
{
	for (int links = 0; links < DW_ORIGIN_MAX && index->p[i].origin; links++) {
		uint32_t next = dw_func_index_find(index, index->p[i].origin);
		if (next == DW_FUNC_NONE)
			break;
		i = next;
	}
	return i;
}

static bool is_tail(const char *whole, const char *tail, const char *separators)
{
	size_t n = strlen(whole), m = strlen(tail);
	if (m > n || strcmp(whole + n - m, tail))
		return false;
	return n == m || strchr(separators, whole[n - m - 1]);
}

/* "ns::f<int>::g<2>" without what stands between < and >, as "ns::f::g"; the < of an operator stays. */
static void without_arguments(const char *name, char *buf, size_t size)
{
	size_t n = 0;
	unsigned int depth = 0;
	for (const char *p = name; *p && n + 1 < size; p++) {
		bool is_operator = p - name >= 8 && !memcmp(p - 8, "operator", 8);
		if (*p == '<' && !is_operator)
			depth++;
		if (!depth)
			buf[n++] = *p;
		if (*p == '>' && depth)
			depth--;
	}
	buf[n] = 0;
}

static bool matches(const struct group_filter *want, const char *name)
{
	if (!want->is_pattern)
		return is_tail(name, want->name, ":");
	const char *last = strrchr(name, ':');
	return !fnmatch(want->name, name, 0) || (last && !fnmatch(want->name, last + 1, 0));
}

static bool passes_name(const struct group_filter *want, const struct group *g)
{
	char plain[NAME_MAX_BYTES];
	if (matches(want, g->name))
		return true;
	if (g->linkage_name && (want->is_pattern ? !fnmatch(want->name, g->linkage_name, 0)
						 : !strcmp(g->linkage_name, want->name)))
		return true;
	if (!strchr(g->name, '<'))
		return false;
	without_arguments(g->name, plain, sizeof(plain));
	return matches(want, plain);
}

bool group_passes(const struct group_filter *want, const struct group *g)
{
	if (want->line && want->line != g->line)
		return false;
	if (want->file && (!g->file || !is_tail(g->file, want->file, "/")))
		return false;
	return !want->name || passes_name(want, g);
}

static const char *qualified(const struct site_env *env, struct groups *gs, const struct dw_die *root,
			     const char *plain)
{
	char buf[NAME_MAX_BYTES];
	if (!has_namespaces(root->unit) || dw_qualified_name(env->dw, root, buf, sizeof(buf)) < 0)
		return plain;
	return arena_strdup(&gs->arena, buf);
}

/*
 * The path without "." and without "DIR/..", so that a header reached on two ways is one file. By the text alone: a
 * symbolic link for DIR would make it another file, which compilers' own paths do not have.
 */
static const char *tidy_path(struct groups *gs, const char *path)
{
	if (!path || (!strstr(path, "/../") && !strstr(path, "/./")))
		return path;
	char *out = arena_strdup(&gs->arena, path);
	if (!out)
		return NULL;
	char *end = out; /* behind the last component that stays */
	for (const char *p = path; *p;) {
		const char *slash = strchrnul(p, '/');
		size_t n = (size_t)(slash - p) + (*slash == '/');
		bool up = n == 3 && !memcmp(p, "../", 3), here = n == 2 && !memcmp(p, "./", 2);
		char *last = end;
		while (last > out && (last == end || last[-1] != '/'))
			last--;
		bool has_last = last < end && end[-1] == '/' && strncmp(last, "../", 3) && *last != '/';
		if (up && has_last) {
			end = last;
		} else if (!here || end == out) {
			memmove(end, p, n);
			end += n;
		}
		p += n;
	}
	*end = 0;
	return out;
}

static uint64_t key_hash(const struct group *g)
{
	uint64_t h = map_hash_str(g->name) ^ map_hash_str(g->file ? g->file : "") * 3;
	return h + g->line * 0x9e3779b97f4a7c15;
}

/* Overloads that a macro puts on one line differ in their linkage names. */
static bool same(const struct group *a, const struct group *b)
{
	if (a->linkage_name && b->linkage_name && strcmp(a->linkage_name, b->linkage_name))
		return false;
	return a->line == b->line && !strcmp(a->name, b->name) &&
	       !strcmp(a->file ? a->file : "", b->file ? b->file : "");
}

/* The group equal to @g, new if there is none; *@ret its index. */
static int intern(struct groups *gs, const struct group *g, uint64_t *ret)
{
	for (uint64_t h = key_hash(g);; h++) {
		if (!map_get(&gs->by_key, h, ret)) {
			*ret = gs->v.n;
			return VEC_ADD(&gs->v, *g) ? map_put(&gs->by_key, h, *ret) : -ENOMEM;
		}
		if (same(&gs->v.p[*ret], g))
			return 0;
	}
}

static int by_declaration(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int c = strcmp(x->file ? x->file : "", y->file ? y->file : "");
	if (!c)
		c = x->line < y->line ? -1 : x->line > y->line;
	return c ? c : strcmp(x->name, y->name);
}

bool groups_have(const struct groups *gs, const struct group *g)
{
	return gs->v.n && bsearch(g, gs->v.p, gs->v.n, sizeof(*g), by_declaration);
}

/* Roots that the filter refuses, or that have no name. */
#define NO_GROUP UINT64_MAX

static int group_of_root(const struct site_env *env, const struct group_filter *want, uint32_t root,
			 struct groups *gs, uint64_t *ret, struct cairn_err *err)
{
	dw_off off = env->index->p[root].die;
	if (map_get(&gs->by_root, off, ret))
		return 0;
	struct dw_die die;
	int rc = dw_die_at(env->dw, off, &die, err);
	if (rc < 0)
		return rc;
	struct group g = {.root = off, .name = dw_str_deep(&die, DW_AT_name)};
	*ret = NO_GROUP;
	if (g.name) {
		g.file = tidy_path(gs, dw_unit_file(die.unit, dw_udata(&die, DW_AT_decl_file, 0)));
		g.line = (uint32_t)dw_udata(&die, DW_AT_decl_line, 0);
		g.linkage_name = dw_str(&die, DW_AT_linkage_name);
		g.name = qualified(env, gs, &die, g.name);
		if (!g.name)
			return err_nomem(err, "a function's name");
		if ((group_passes(want, &g) || (want->also && groups_have(want->also, &g))) && intern(gs, &g, ret) < 0)
			return err_nomem(err, "a function");
	}
	return map_put(&gs->by_root, off, *ret) < 0 ? err_nomem(err, "a function") : 0;
}

static int take_first(void *ctx, struct dw_range r)
{
	*(struct cairn_vaddr *)ctx = r.lo;
	return 1;
}

/* A body whose entry is one of the addresses. What is damaged begins nowhere here; building it tells. */
static bool begins_at(const struct site_env *env, const struct dw_func *f, const struct symbol_name *s)
{
	struct dw_die die;
	struct dw_value v;
	struct cairn_vaddr at;
	if (f->flags & DW_FUNC_INLINED || dw_die_at(env->dw, f->die, &die, NULL) <= 0)
		return false;
	if (dw_attr(&die, DW_AT_entry_pc, &v, NULL) > 0 && v.cls == DW_CLASS_ADDRESS)
		at = v.addr;
	else if (dw_ranges(&die, take_first, &at, NULL) <= 0)
		return false;
	return symbol_name_has(s, at);
}

int group_entries(const struct site_env *env, const struct group_filter *filter, struct groups *ret,
		  struct cairn_err *err)
{
	*ret = (struct groups){0};
	for (uint32_t i = 0; i < env->index->n; i++) {
		const struct dw_func *f = &env->index->p[i];
		bool inlined = f->flags & DW_FUNC_INLINED;
		if (!inlined && !(f->flags & DW_FUNC_HAS_CODE))
			continue;
		if (filter->begins && !begins_at(env, f, filter->begins))
			continue;
		uint64_t g;
		int rc = group_of_root(env, filter, root_of(env->index, i), ret, &g, err);
		if (rc < 0)
			return rc;
		if (g == NO_GROUP)
			continue;
		if (!(f->flags & DW_FUNC_HAS_CODE))
			ret->v.p[g].n_without_code++;
		else if (!VEC_ADD(&ret->v.p[g].entries, i))
			return err_nomem(err, "the sites of a function");
	}
	if (ret->v.n)
		qsort(ret->v.p, ret->v.n, sizeof(*ret->v.p), by_declaration);
	return 0;
}

void groups_fini(struct groups *g)
{
	for (size_t i = 0; i < g->v.n; i++) {
		VEC_FREE(&g->v.p[i].entries);
		VEC_FREE(&g->v.p[i].rows);
	}
	VEC_FREE(&g->v);
	map_fini(&g->by_key);
	map_fini(&g->by_root);
	arena_fini(&g->arena);
}
