/* SPDX-License-Identifier: BSD-2-Clause */
/* Entries of the function index gathered into functions: same name and declaration is one. */
#ifndef SITES_GROUP_H
#define SITES_GROUP_H

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"
#include "dwarf/index.h"
#include "sites/site.h"
#include "sites/symbol_names.h"

/* A line row at the position of a function's declaration: an entry of a copy, see entry_rows.h. */
struct entry_row {
	struct cairn_vaddr at;
	struct enclosing around;
	uint32_t unit;
	uint32_t view;
	uint32_t group;
	/* of the statement before it, which is the call's own; 0: there is none */
	uint32_t call_line, call_column;
};

/*
 * Those of one function. They are kept for all functions in one array, so that a function costs no
 * allocation.
 */
struct entry_list {
	uint32_t *p;
	size_t n;
};

struct row_list {
	struct entry_row *p;
	size_t n;
};

struct group {
	dw_off root;      /* DIE of the declaration, in the first unit that has it */
	const char *name; /* qualified in C++ */
	const char *linkage_name;
	const char *file; /* NULL when unknown */
	uint32_t line;
	struct entry_list entries; /* with code, in order of DIE */
	uint32_t n_without_code;
	struct row_list rows; /* entry_rows_collect(), as the members below */
	bool from_macro;      /* its rows do not identify entries, see entry_rows.h */
	/* in the order in which they were met; for a part (by_unit.h) the number of its group */
	uint32_t number;
};

/* A function's declaration in a unit that has a copy of it with an entry view. */
struct group_decl {
	uint32_t unit, group;
	/*
	 * file 0: not known yet; line is then that copy's index entry, whose origins have the
	 * declaration
	 */
	uint32_t file, line, column;
};

struct groups {
	VEC(struct group) v; /* large */
	uint32_t *entries;   /* of all groups */
	/* per entry of the index: its group, if it has code; else DW_FUNC_NONE */
	uint32_t *of_entry;
	size_t n_of_entry;
	struct entry_row *rows; /* n_rows, of all groups */
	size_t n_rows;
	VEC(struct group_decl) decls; /* in order of unit */
	struct arena arena;           /* names */
	struct map by_key;
};

/* The user's query; a NULL or 0 member matches everything. */
struct group_filter {
	/* tail of a qualified name, also without its template arguments; or a linkage name */
	const char *name;
	bool is_pattern;                  /* the name is one for fnmatch() */
	const struct groups *also;        /* functions that pass whatever their name; NULL: none */
	const struct symbol_name *begins; /* only entries that begin at one of these addresses */
	const char *file;                 /* tail of a path */
	uint32_t line;
};

/*
 * group_entries - gather all entries of @env->index that pass the filter
 *
 * @ret  sorted by file, line and name; groups_fini() frees it, also after an error
 * Returns 0, -EBADMSG, -ENOMEM.
 */
int group_entries(const struct site_env *env, unsigned int threads,
		  const struct group_filter *filter, struct groups *ret, struct cairn_err *err);
void groups_fini(struct groups *g);

/*
 * Whether a function (its name, linkage_name, file and line) is one that the filter wants; @begins
 * is not used.
 */
bool group_passes(const struct group_filter *want, const struct group *g);

#endif
