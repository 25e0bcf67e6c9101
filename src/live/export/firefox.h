/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a Firefox profile, as firefox_tables.c makes them and firefox.c writes them
 *
 * The members of a row are 64-bit numbers: indices of other tables, or numbers as the format has
 * them. Names and meanings are those of the format (src/types/profile.ts of
 * github.com/firefox-devtools/profiler).
 */
#ifndef EXPORT_FIREFOX_H
#define EXPORT_FIREFOX_H

#include "export/profile_impl.h"

/* The versions that are written: of the processed format, and of Firefox's own beneath it. */
#define FIREFOX_PROCESSED_VERSION 70
#define FIREFOX_GECKO_VERSION     36

#define FIREFOX_NONE (-1)      /* where the format wants -1 */
#define FIREFOX_NULL INT64_MIN /* where it wants null */

enum { FIREFOX_OTHER, FIREFOX_USER, FIREFOX_KERNEL, FIREFOX_JIT }; /* categories */
enum { FIREFOX_ANY, FIREFOX_INLINED };                             /* subcategories of each */

struct firefox_lib {
	int64_t path, build_id; /* strings */
};

struct firefox_source {
	int64_t file; /* string */
};

struct firefox_function {
	int64_t name, resource, source, line; /* a resource is a library */
};

struct firefox_symbol {
	int64_t lib, address, name;
};

struct firefox_frame {
	int64_t address, lib, depth, category, subcategory, function, symbol, line;
};

struct firefox_stack {
	int64_t parent, frame;
};

/* Different rows, in the order in which they came. */
struct firefox_table {
	char *rows;
	size_t n, cap, size;
	struct map ids; /* by hash */
};

/* The frames of a location, in the array of all; n 0: not made yet. */
struct firefox_frames {
	uint32_t first, n;
};

struct firefox_sample {
	uint32_t thread, stack;
};

struct firefox_thread {
	int64_t pid, tid;
	const char *name;
	VEC(const struct profile_record *) records;
};

struct firefox {
	const struct cairn_profile *p;
	size_t type;
	struct arena arena;
	VEC(const char *) strings;
	struct map string_ids, thread_ids;
	struct firefox_table libs, sources, functions, symbols, frames, stacks;
	struct firefox_frames *locations;
	VEC(uint32_t) location_frames;
	struct firefox_sample *samples; /* parallel to those of the profile */
	struct profile_records records;
	VEC(struct firefox_thread) threads;
};

/*
 * firefox_tables_make - the tables of a profile
 *
 * Returns 0; errors as cairn_profile_firefox(). Call firefox_tables_fini() in any case.
 */
int firefox_tables_make(struct firefox *f, const struct cairn_profile *p, size_t type,
			struct cairn_err *err);
void firefox_tables_fini(struct firefox *f);

/* The number of a string, or -ENOMEM. */
int64_t firefox_string(struct firefox *f, const char *text);

#endif
