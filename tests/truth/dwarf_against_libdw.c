/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * src/facts/dwarf and libdw on large real files: every DIE, attribute, range, location list entry
 * and line row, and the counts of the function index
 *
 *	dwarf_against_libdw [FILE...]	default: what there is of the lab's vmlinux, libstdc++, libc, libjvm
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "against_libdw.h"
#include "dwarf/constants.h"

/*
 * What the search for a name must find, computed another way: from the full index, by following
 * every entry's origins to their end.
 */
static bool belongs(const struct dwarf *dw, const struct dw_func_index *all, size_t i,
		    const char *func)
{
	for (int link = 0; link <= DW_ORIGIN_MAX; link++) {
		const struct dw_func *f = &all->p[i];
		struct dw_die die;
		if (!(f->flags & DW_FUNC_INLINED) && dw_die_at(dw, f->die, &die, NULL) == 1) {
			const char *linkage = dw_str(&die, DW_AT_linkage_name);
			if ((f->name && !strcmp(f->name, func)) ||
			    (linkage && !strcmp(linkage, func)))
				return true;
		}
		if (!f->origin)
			return false;
		i = dw_func_index_find(all, f->origin);
		if (i == DW_FUNC_NONE)
			return false;
	}
	return false;
}

static int check_names(const char *file, const struct dwarf *dw, const struct dw_func_index *all)
{
	static const char *const names[] = {"list_add",   "size",   "get_page",
					    "tcache_get", "main",   "operator()",
					    "_M_data",    "memcpy", "is_null"};
	int bad = 0;
	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		struct dw_func_index found;
		struct cairn_err err = {0};
		size_t expected = 0, missing = 0;
		if (dwarf_functions_named(dw, 0, names[n], &found, &err) < 0) {
			printf("not ok %s: search for %s: %s\n", file, names[n], err.msg);
			return 1;
		}
		for (size_t i = 0; i < all->n; i++) {
			if (!belongs(dw, all, i, names[n]))
				continue;
			expected++;
			missing += dw_func_index_find(&found, all->p[i].die) == DW_FUNC_NONE;
		}
		/* A name that the file does not have proves nothing unless something is found. */
		if (!expected && !found.n) {
			dw_func_index_fini(&found);
			continue;
		}
		missing += !expected;
		printf("%s %s: the search for %s finds all %zu entries of the index\n",
		       missing ? "not ok" : "ok", file, names[n], expected);
		bad |= missing != 0;
		dw_func_index_fini(&found);
	}
	return bad;
}

static int compare(const char *name, const char *path)
{
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct dw_func_index index;
	struct against_libdw r;
	struct cairn_err err = {0};
	int bad = 1;
	if (cairn_binary_open(path, NULL, &bin, &err) < 0) {
		printf("not ok %s opens: %s\n", name, err.msg);
		return 1;
	}
	if (dwarf_open(bin, 0, &dw, &err) < 0) {
		printf("not ok %s has readable DWARF: %s\n", name, err.msg);
		cairn_binary_close(bin);
		return 1;
	}
	if (against_libdw(dw, cairn_binary_debug_path(bin), &r) < 0) {
		printf("skip %s: libdw cannot open it\n", name);
	} else {
		printf("%s %s: %llu DIEs, %llu attributes, %llu ranges, %llu locations, %llu rows "
		       "are libdw's "
		       "(%llu differences)\n",
		       r.differences ? "not ok" : "ok", name, (unsigned long long)r.dies,
		       (unsigned long long)r.attrs, (unsigned long long)r.ranges,
		       (unsigned long long)r.locations, (unsigned long long)r.rows,
		       (unsigned long long)r.differences);
		bad = r.differences != 0;
	}
	if (dwarf_index_functions(dw, 0, &index, &err) < 0) {
		printf("not ok %s is indexed: %s\n", name, err.msg);
		bad = 1;
	} else {
		bool same = index_agrees(&index, &r);
		printf("%s %s: the index has libdw's %llu inlined copies and %llu functions with "
		       "code\n",
		       same ? "ok" : "not ok", name, (unsigned long long)r.inlined_with_code,
		       (unsigned long long)r.subprograms_with_code);
		bad |= !same;
		bad |= check_names(name, dw, &index);
		dw_func_index_fini(&index);
	}
	dwarf_close(dw);
	cairn_binary_close(bin);
	return bad;
}

int main(int argc, char **argv)
{
	static const char *const inputs[] = {"libc.debug", "libstdc++.so.6", "vmlinux",
					     "libjvm.debug"};
	const char *home = getenv("HOME"), *lab = getenv("CAIRN_LAB");
	int bad = 0;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (int i = 1; i < argc; i++)
		bad |= compare(argv[i], argv[i]);
	for (size_t i = 0; argc == 1 && i < sizeof(inputs) / sizeof(inputs[0]); i++) {
		char path[512];
		if (lab)
			snprintf(path, sizeof(path), "%s/in/%s", lab, inputs[i]);
		else
			snprintf(path, sizeof(path), "%s/.cache/cairn-lab/in/%s", home ? home : "",
				 inputs[i]);
		if (access(path, R_OK))
			printf("skip %s: not in the lab\n", inputs[i]);
		else
			bad |= compare(inputs[i], path);
	}
	return bad;
}
