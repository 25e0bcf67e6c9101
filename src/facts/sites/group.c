/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gathering index entries into functions
 *
 * The same inline function of a header is compiled in thousands of units. In each it has a
 * declaration DIE of its own, to which the copies of that unit point. So an entry is followed to
 * its root (over abstract origins and specifications), and roots with the same name, file and line
 * are one function:
 *
 *	unit 1:  DIE 0x2d  subprogram list_add, list.h:77  <── 0x90 inlined, 0xb2 inlined
 *	unit 2:  DIE 0x8f1 subprogram list_add, list.h:77  <── 0x9c0 inlined
 *	         one function, 3 sites
 *	unit 3:  DIE 0xa11 subprogram list_add, mylist.c:9 <── 0xa80 body
 *	         another one
 *
 * Two static functions of one name at the same line of one file included twice stay one function:
 * they are the same source text.
 */
#include "sites/group.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/large_vec.h"
#include "base/pool.h"
#include "dwarf/constants.h"
#include "dwarf/near.h"
#include "sites/spelling.h"

/* Longest qualified name that is shown in full. */
enum { NAME_MAX_BYTES = 4096 };

static bool has_namespaces(const struct dw_unit *u)
{
	return !dw_unit_is_c(u) && dw_unit_language(u) != DW_LANG_Mips_Assembler;
}

/* The entry of an origin that was looked for, direct-mapped: the copies of a unit have few. */
struct known_origins {
	struct {
		dw_off die;
		uint32_t entry;
	} slot[256];
};

static uint32_t origin_of(const struct dw_func_index *index, uint32_t i,
			  struct known_origins *known)
{
	dw_off die = index->p[i].origin;
	size_t at = (size_t)(die ^ die >> 8) % (sizeof(known->slot) / sizeof(known->slot[0]));
	if (known->slot[at].die != die) {
		known->slot[at].die = die;
		known->slot[at].entry = dw_func_index_find_near(index, i, die);
	}
	return known->slot[at].entry;
}

/* The entry at the end of @i's origins. */
static uint32_t root_of(const struct dw_func_index *index, uint32_t i, struct known_origins *known)
{
	for (int links = 0; links < DW_ORIGIN_MAX && index->p[i].origin; links++) {
		uint32_t next = origin_of(index, i, known);
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

/*
 * "ns::f<int>::g<2>" without the text between < and >, as "ns::f::g"; the < of an operator stays.
 */
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

/* Compilers and demanglers spell types in template arguments in many ways. */
static bool is_tail_respelled(const char *name, const char *tail)
{
	char one[NAME_MAX_BYTES], other[NAME_MAX_BYTES];
	return strchr(tail, '<') && strchr(name, '<') && spelling_of(name, one, sizeof(one)) &&
	       spelling_of(tail, other, sizeof(other)) && is_tail(one, other, ":");
}

static bool matches(const struct group_filter *want, const char *name)
{
	if (!want->is_pattern)
		return is_tail(name, want->name, ":") || is_tail_respelled(name, want->name);
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

static const char *qualified(const struct site_env *env, struct arena *names,
			     const struct dw_die *root, const char *plain)
{
	char buf[NAME_MAX_BYTES];
	if (!has_namespaces(root->unit) || dw_qualified_name(env->dw, root, buf, sizeof(buf)) < 0)
		return plain;
	return arena_strdup(names, buf);
}

/*
 * Take "." and "DIR/.." out of a path, so that a header that is reached by two paths is one file.
 * Only the text counts: a symbolic link for DIR would make it another file, but compilers' own
 * paths have none.
 */
static void tidy_path(char *path)
{
	char *end = path; /* after the last component that stays */
	for (const char *p = path; *p;) {
		const char *slash = strchrnul(p, '/');
		size_t n = (size_t)(slash - p) + (*slash == '/');
		bool up = n == 3 && !memcmp(p, "../", 3), here = n == 2 && !memcmp(p, "./", 2);
		char *last = end;
		while (last > path && (last == end || last[-1] != '/'))
			last--;
		bool has_last =
			last < end && end[-1] == '/' && strncmp(last, "../", 3) && *last != '/';
		if (up && has_last) {
			end = last;
		} else if (!here || end == path) {
			memmove(end, p, n);
			end += n;
		}
		p += n;
	}
	*end = 0;
}

/* A file of any unit: its path is long, and thousands of units name it. */
struct known_path {
	struct dw_path pieces;
	const char *path; /* tidy; NULL when unknown */
	uint64_t hash;
};

/* A file as a unit numbers it. The functions of a header come one by one. */
struct known_file {
	const struct dw_unit *unit;
	uint64_t number;
	const struct known_path *is;
};

/* The state of one worker. */
struct known_files {
	struct known_file slot[64]; /* direct-mapped by number */
	struct map by_pieces;       /* struct known_path */
};

static const struct known_path *new_path(struct arena *names, const struct dw_path *pieces)
{
	struct known_path *known = arena_alloc(names, sizeof(*known));
	char *path = arena_alloc(names, dw_path_write(pieces, NULL));
	if (!known || !path)
		return NULL;
	dw_path_write(pieces, path);
	tidy_path(path);
	*known = (struct known_path){
		.pieces = *pieces, .path = *path ? path : NULL, .hash = map_hash_str(path)};
	return known;
}

static bool same_pieces(const struct dw_path *a, const struct dw_path *b)
{
	return a->base == b->base && a->dir == b->dir && a->name == b->name;
}

/* NULL when out of memory. */
static const struct known_path *path_of(struct known_files *known, struct arena *names,
					const struct dw_path *pieces)
{
	const uintptr_t addrs[] = {(uintptr_t)pieces->base, (uintptr_t)pieces->dir,
				   (uintptr_t)pieces->name};
	uint64_t found;
	for (uint64_t key = map_hash_bytes(addrs, sizeof(addrs));; key++) {
		if (!map_get(&known->by_pieces, key, &found)) {
			const struct known_path *path = new_path(names, pieces);
			return path && !map_put(&known->by_pieces, key, (uintptr_t)path) ? path
											 : NULL;
		}
		const struct known_path *path = (const struct known_path *)(uintptr_t)found;
		if (same_pieces(&path->pieces, pieces))
			return path;
	}
}

static const struct known_file *file_of(struct known_files *known, struct arena *names,
					const struct dw_die *root)
{
	static const struct dw_path nowhere = {"", "", ""};
	uint64_t number = dw_udata_at(root, DW_SLOT_DECL_FILE, DW_AT_decl_file, 0);
	struct known_file *f = &known->slot[number % 64];
	struct dw_path pieces;
	if (f->unit == root->unit && f->number == number)
		return f;
	if (!dw_unit_path(root->unit, number, &pieces))
		pieces = nowhere;
	const struct known_path *is = path_of(known, names, &pieces);
	*f = (struct known_file){.unit = is ? root->unit : NULL, .number = number, .is = is};
	return is ? f : NULL;
}

static uint64_t key_hash(const struct group *g, uint64_t file_hash)
{
	return (map_hash_str(g->name) ^ file_hash * 3) + g->line * 0x9e3779b97f4a7c15;
}

static bool same_text(const char *a, const char *b)
{
	return a == b || !strcmp(a ? a : "", b ? b : "");
}

/* Overloads that a macro puts on one line differ in their linkage names. */
static bool same(const struct group *a, const struct group *b)
{
	if (a->linkage_name && b->linkage_name && strcmp(a->linkage_name, b->linkage_name))
		return false;
	return a->line == b->line && same_text(a->name, b->name) && same_text(a->file, b->file);
}

static int by_declaration(const void *a, const void *b)
{
	const struct group *x = a, *y = b;
	int c = strcmp(x->file ? x->file : "", y->file ? y->file : "");
	if (!c)
		c = x->line < y->line ? -1 : x->line > y->line;
	return c ? c : strcmp(x->name, y->name);
}

/* True if one of the functions has the name and the declaration of @g. */
static bool groups_have(const struct groups *gs, const struct group *g)
{
	return gs->v.n && bsearch(g, gs->v.p, gs->v.n, sizeof(*g), by_declaration);
}

/* ---- roots ---- */

/* Entries, and roots, that a worker takes at a time. */
enum { CHUNK = 1024 };

/* A root as a function by itself. */
struct root {
	dw_off die;
	const char *name; /* NULL when it has none, or the filter refuses it */
	const char *linkage_name;
	const char *path;
	uint64_t hash;
	uint32_t line;
	uint32_t file, column; /* of its declaration, as its unit numbers them; 0 unknown */
	bool has_decl;         /* it is among groups.decls */
};

struct grouping {
	const struct site_env *env;
	const struct group_filter *want;
	struct groups *ret;
	/* per entry: its root's entry, later its number; DW_FUNC_NONE for one that is not wanted */
	uint32_t *root_of;
	VEC(uint32_t) entries; /* of roots, in the order in which they are met */
	struct root *roots;    /* as those */
	struct arena *arenas;  /* per worker: names */
	struct known_files *files;
};

static int read_root(const struct grouping *all, uint32_t entry, unsigned int worker,
		     struct root *ret, struct cairn_err *err)
{
	struct arena *names = &all->arenas[worker];
	struct dw_die die;
	int rc = dw_func_die(all->env->dw, &all->env->index->p[entry], &die, err);
	if (rc < 0)
		return rc;
	const char *name = dw_str_deep(&die, DW_AT_name);
	if (!name)
		return 0;
	const struct known_file *file = file_of(&all->files[worker], names, &die);
	if (!file)
		return err_nomem(err, "a file's name");
	struct group g = {
		.name = qualified(all->env, names, &die, name),
		.linkage_name = dw_str(&die, DW_AT_linkage_name),
		.file = file->is->path,
		.line = (uint32_t)dw_udata_at(&die, DW_SLOT_DECL_LINE, DW_AT_decl_line, 0)};
	if (!g.name)
		return err_nomem(err, "a function's name");
	bool passes = group_passes(all->want, &g) ||
		      (all->want->also && groups_have(all->want->also, &g));
	*ret = (struct root){
		.die = all->env->index->p[entry].die,
		.name = passes ? g.name : NULL,
		.linkage_name = g.linkage_name,
		.path = g.file,
		.hash = key_hash(&g, file->is->hash),
		.line = g.line,
		.file = (uint32_t)file->number,
		.column = (uint32_t)dw_udata_at(&die, DW_SLOT_DECL_COLUMN, DW_AT_decl_column, 0)};
	return 0;
}

static int read_roots(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	enum { AHEAD = 8 };
	const struct grouping *all = arg;
	int rc = 0;
	for (size_t i = item * CHUNK; i < all->entries.n && i < (item + 1) * CHUNK && rc >= 0;
	     i++) {
		if (i + AHEAD < all->entries.n)
			dw_func_prefetch(all->env->dw,
					 &all->env->index->p[all->entries.p[i + AHEAD]]);
		rc = read_root(all, all->entries.p[i], worker, &all->roots[i], err);
	}
	return rc;
}

/* The group equal to @r, new if there is none; *@ret its index. */
static int intern(struct groups *gs, const struct root *r, uint32_t *ret)
{
	struct group g = {.root = r->die,
			  .name = r->name,
			  .linkage_name = r->linkage_name,
			  .file = r->path,
			  .line = r->line};
	for (uint64_t h = r->hash, known;; h++) {
		if (!map_get(&gs->by_key, h, &known)) {
			*ret = g.number = (uint32_t)gs->v.n;
			return LARGE_ADD(&gs->v, g) ? map_put(&gs->by_key, h, *ret) : -ENOMEM;
		}
		*ret = (uint32_t)known;
		if (same(&gs->v.p[known], &g))
			return 0;
	}
}

static int take_first(void *ctx, struct dw_range r)
{
	*(struct cairn_vaddr *)ctx = r.lo;
	return 1;
}

/*
 * A body whose entry is one of the addresses. A damaged body begins nowhere here; building it
 * reports the damage.
 */
static bool begins_at(const struct site_env *env, const struct dw_func *f,
		      const struct symbol_name *s)
{
	struct dw_die die;
	struct dw_value v;
	struct cairn_vaddr at;
	if (f->flags & DW_FUNC_INLINED || dw_func_die(env->dw, f, &die, NULL) <= 0)
		return false;
	if (dw_attr(&die, DW_AT_entry_pc, &v, NULL) > 0 && v.cls == DW_CLASS_ADDRESS)
		at = v.addr;
	else if (dw_ranges(&die, take_first, &at, NULL) <= 0)
		return false;
	return symbol_name_has(s, at);
}

/* ---- entries ---- */

static bool is_wanted(const struct grouping *all, const struct dw_func *f)
{
	if (!(f->flags & (DW_FUNC_INLINED | DW_FUNC_HAS_CODE)))
		return false;
	return !all->want->begins || begins_at(all->env, f, all->want->begins);
}

static int find_roots(void *arg, size_t item, unsigned int worker, struct cairn_err *err)
{
	const struct grouping *all = arg;
	const struct dw_func_index *index = all->env->index;
	struct known_origins known = {0};
	for (size_t i = item * CHUNK; i < index->n && i < (item + 1) * CHUNK; i++)
		all->root_of[i] = is_wanted(all, &index->p[i]) ? root_of(index, (uint32_t)i, &known)
							       : DW_FUNC_NONE;
	return 0;
}

/* Number the roots in the order in which they are met, and let root_of say the numbers. */
static int number_roots(struct grouping *all)
{
	size_t n = all->env->index->n;
	uint32_t *number = malloc((n + 1) * sizeof(*number));
	int rc = number ? 0 : -ENOMEM;
	if (number)
		memset(number, 0xff, n * sizeof(*number));
	for (size_t i = 0; i < n && !rc; i++) {
		uint32_t root = all->root_of[i];
		if (root == DW_FUNC_NONE)
			continue;
		if (number[root] == DW_FUNC_NONE) {
			number[root] = (uint32_t)all->entries.n;
			rc = VEC_ADD(&all->entries, root) ? 0 : -ENOMEM;
		}
		all->root_of[i] = number[root];
	}
	free(number);
	all->roots = rc ? NULL : pages_zeroed(all->entries.n + 1, sizeof(*all->roots));
	return all->roots ? 0 : -ENOMEM;
}

/*
 * Adds the declaration of a copy's function, if this entry is the first in its unit with that
 * declaration. The declaration at a copy's own origin was read with the roots. Other chains, such
 * as those of members in C++, are few and are followed when they are needed.
 */
static int add_decl(struct grouping *all, uint32_t i, uint32_t group)
{
	const struct dw_func *f = &all->env->index->p[i];
	struct root *root = &all->roots[all->root_of[i]];
	const struct dw_func *at = &all->env->index->p[all->entries.p[all->root_of[i]]];
	struct group_decl d = {.unit = f->unit, .group = group, .line = i};
	if (f->origin == at->die && !at->origin && f->unit == at->unit) {
		if (root->has_decl)
			return 0;
		root->has_decl = true;
		d.file = root->file;
		d.line = root->line;
		d.column = root->column;
		if (!d.file || !d.line || !d.column)
			return 0;
	}
	return VEC_ADD(&all->ret->decls, d) ? 0 : -ENOMEM;
}

/* Entries of a group; apart from it, as all entries are counted in the order of DIEs. */
struct tally {
	uint32_t with_code, without;
	uint32_t at; /* where the next one stands */
};

/*
 * @group  per root; DW_FUNC_NONE: no group. From here on root_of has the groups of entries with
 *         code.
 */
static int count_entries(struct grouping *all, const uint32_t *group, struct tally *tally)
{
	const struct dw_func_index *index = all->env->index;
	int rc = 0;
	for (uint32_t i = 0; i < index->n && !rc; i++) {
		enum {
			NEEDED = DW_FUNC_INLINED | DW_FUNC_HAS_CODE | DW_FUNC_ENTRY_VIEW,
			AHEAD = 8
		};
		uint32_t flags = index->p[i].flags, root = all->root_of[i];
		uint32_t g = root == DW_FUNC_NONE ? DW_FUNC_NONE : group[root];
		if (i + AHEAD < index->n && all->root_of[i + AHEAD] != DW_FUNC_NONE)
			__builtin_prefetch(&all->roots[all->root_of[i + AHEAD]].file);
		if (g != DW_FUNC_NONE && (flags & NEEDED) == NEEDED)
			rc = add_decl(all, i, g);
		if (g != DW_FUNC_NONE && flags & DW_FUNC_HAS_CODE)
			tally[g].with_code++;
		else if (g != DW_FUNC_NONE)
			tally[g].without++;
		all->root_of[i] = flags & DW_FUNC_HAS_CODE ? g : DW_FUNC_NONE;
	}
	return rc;
}

/* Entries are counted first; the counts give the position of each group's entries. */
static int site_entries(struct grouping *all, const uint32_t *group)
{
	struct groups *gs = all->ret;
	struct tally *tally = calloc(gs->v.n + 1, sizeof(*tally));
	int rc = tally ? count_entries(all, group, tally) : -ENOMEM;
	uint32_t total = 0;
	for (size_t g = 0; g < gs->v.n && !rc; g++) {
		tally[g].at = total;
		total += tally[g].with_code;
	}
	gs->entries = rc ? NULL : malloc(((size_t)total + 1) * sizeof(*gs->entries));
	for (uint32_t i = 0; i < all->env->index->n && gs->entries; i++)
		if (all->root_of[i] != DW_FUNC_NONE)
			gs->entries[tally[all->root_of[i]].at++] = i;
	for (size_t g = 0; g < gs->v.n && gs->entries; g++) {
		gs->v.p[g].n_without_code = tally[g].without;
		gs->v.p[g].entries =
			(struct entry_list){.p = gs->entries + tally[g].at - tally[g].with_code,
					    .n = tally[g].with_code};
	}
	free(tally);
	return gs->entries ? 0 : -ENOMEM;
}

/* Put the entries into the groups of their roots. */
static int gather(struct grouping *all)
{
	enum { AHEAD = 8 };
	size_t n = all->entries.n;
	uint32_t *group = malloc((n + 1) * sizeof(*group));
	int rc = group ? 0 : -ENOMEM;
	for (size_t i = 0; i < n && !rc; i++) {
		if (i + AHEAD < n)
			map_prefetch(&all->ret->by_key, all->roots[i + AHEAD].hash);
		group[i] = DW_FUNC_NONE;
		if (all->roots[i].name)
			rc = intern(all->ret, &all->roots[i], &group[i]);
	}
	if (!rc)
		rc = site_entries(all, group);
	free(group);
	return rc;
}

static int group_all(struct grouping *all, unsigned int threads, struct cairn_err *err)
{
	size_t n = all->env->index->n;
	int rc = pool_run((n + CHUNK - 1) / CHUNK, threads, find_roots, all, err);
	if (rc >= 0 && number_roots(all) < 0)
		rc = err_nomem(err, "functions");
	if (rc >= 0)
		rc = pool_run((all->entries.n + CHUNK - 1) / CHUNK, threads, read_roots, all, err);
	if (rc >= 0 && gather(all) < 0)
		rc = err_nomem(err, "the sites of a function");
	return rc;
}

/* ---- order ---- */

struct path {
	const char *text;
	uint32_t number;
};

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct path *)a)->text, ((const struct path *)b)->text);
}

/* The site of each path among all of them, by its number; equal ones have one site. */
static int rank_paths(struct path *paths, size_t n, uint32_t **ret)
{
	uint32_t *rank = *ret = malloc((n + 1) * sizeof(*rank));
	if (!rank)
		return -ENOMEM;
	if (n)
		qsort(paths, n, sizeof(*paths), by_text);
	for (size_t i = 0; i < n; i++) {
		bool same = i && !by_text(&paths[i - 1], &paths[i]);
		rank[paths[i].number] = same ? rank[paths[i - 1].number] : (uint32_t)i;
	}
	return 0;
}

/*
 * Paths are long and begin alike, and a file has many functions: each path is compared once and not
 * for each of them.
 */
static int rank_files(const struct groups *gs, struct keyed *order)
{
	VEC(struct path) paths = {0};
	struct map known;
	uint32_t *rank = NULL;
	int rc = 0;
	map_init(&known);
	for (size_t i = 0; i < gs->v.n && !rc; i++) {
		const char *text = gs->v.p[order[i].value].file;
		uint64_t number = paths.n;
		text = text ? text : "";
		if (!map_get(&known, (uintptr_t)text, &number) &&
		    (!VEC_ADD(&paths, ((struct path){text, (uint32_t)number})) ||
		     map_put(&known, (uintptr_t)text, number) < 0))
			rc = -ENOMEM;
		order[i].key = (uint32_t)number;
	}
	if (!rc)
		rc = rank_paths(paths.p, paths.n, &rank);
	for (size_t i = 0; i < gs->v.n && !rc; i++)
		order[i].key = rank[order[i].key];
	free(rank);
	VEC_FREE(&paths);
	map_fini(&known);
	return rc;
}

/* Functions declared on one line: those of one name stay in the order in which they were met. */
static int by_name(const void *a, const void *b, void *arg)
{
	const struct group *groups = arg;
	const struct group *x = &groups[((const struct keyed *)a)->value],
			   *y = &groups[((const struct keyed *)b)->value];
	int c = strcmp(x->name, y->name);
	return c ? c : x->number < y->number ? -1 : x->number > y->number;
}

static int find_order(const struct groups *gs, struct keyed *order)
{
	struct group *groups = gs->v.p;
	size_t n = gs->v.n;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct keyed){.key = groups[i].line, .value = (uint32_t)i};
	if (keyed_sort(order, n) < 0 || rank_files(gs, order) < 0 || keyed_sort(order, n) < 0)
		return -ENOMEM;
	for (size_t i = 0, end; i < n; i = end) {
		uint32_t file = order[i].key, line = groups[order[i].value].line;
		for (end = i + 1;
		     end < n && order[end].key == file && groups[order[end].value].line == line;)
			end++;
		if (end - i > 1)
			qsort_r(order + i, end - i, sizeof(*order), by_name, groups);
	}
	return 0;
}

/* Sort the groups, and let the entries and the declarations follow. */
static int sort_groups(struct groups *gs)
{
	enum { AHEAD = 8 };
	size_t n = gs->v.n;
	uint32_t *now = malloc((n + 1) * sizeof(*now));
	struct keyed *order = malloc((n + 1) * sizeof(*order));
	struct group *sorted = pages_zeroed(n + 1, sizeof(*sorted));
	int rc = now && order && sorted ? find_order(gs, order) : -ENOMEM;
	for (size_t i = 0; i < n && !rc; i++) {
		if (i + AHEAD < n)
			__builtin_prefetch(&gs->v.p[order[i + AHEAD].value]);
		sorted[i] = gs->v.p[order[i].value];
		now[order[i].value] = (uint32_t)i;
	}
	for (size_t i = 0; i < gs->decls.n && !rc; i++)
		gs->decls.p[i].group = now[gs->decls.p[i].group];
	for (size_t i = 0; i < gs->n_of_entry && !rc; i++)
		if (gs->of_entry[i] != DW_FUNC_NONE)
			gs->of_entry[i] = now[gs->of_entry[i]];
	if (!rc) {
		LARGE_FREE(&gs->v);
		gs->v.p = sorted;
		gs->v.n = n;
		gs->v.cap = n + 1;
		sorted = NULL;
	}
	pages_free(sorted, n + 1, sizeof(*sorted));
	free(order);
	free(now);
	return rc;
}

int group_entries(const struct site_env *env, unsigned int threads,
		  const struct group_filter *filter, struct groups *ret, struct cairn_err *err)
{
	unsigned int width = pool_width(threads);
	struct grouping all = {.env = env, .want = filter, .ret = ret};
	*ret = (struct groups){0};
	all.root_of = malloc((env->index->n + 1) * sizeof(*all.root_of));
	all.arenas = calloc(width, sizeof(*all.arenas));
	all.files = calloc(width, sizeof(*all.files));
	int rc = all.root_of && all.arenas && all.files ? group_all(&all, threads, err)
							: err_nomem(err, "functions");
	for (unsigned int i = 0; all.arenas && i < width; i++)
		arena_adopt(&ret->arena, &all.arenas[i]);
	for (unsigned int i = 0; all.files && i < width; i++)
		map_fini(&all.files[i].by_pieces);
	free(all.arenas);
	free(all.files);
	ret->of_entry = all.root_of;
	ret->n_of_entry = env->index->n;
	pages_free(all.roots, all.entries.n + 1, sizeof(*all.roots));
	VEC_FREE(&all.entries);
	if (rc >= 0 && sort_groups(ret) < 0)
		rc = err_nomem(err, "functions");
	return rc < 0 ? rc : 0;
}

void groups_fini(struct groups *g)
{
	free(g->entries);
	free(g->of_entry);
	pages_free(g->rows, g->n_rows, sizeof(*g->rows));
	VEC_FREE(&g->decls);
	LARGE_FREE(&g->v);
	map_fini(&g->by_key);
	arena_fini(&g->arena);
}
