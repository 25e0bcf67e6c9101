/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parts of code/runtime.h
 *
 *	runtime.c		life, mark, listing
 *	runtime_snapshot.c	tables that are read while threads stand still
 *	runtime_prepare.c	where registries and lists are
 *	runtime_resolve.c	entries become regions, of which the newest counts
 *	runtime_verify.c	a region against the mapping there
 *	runtime_files.c		jitdump and perf-map files
 *	runtime_find.c		the choice between sources that describe an address
 */
#ifndef CODE_RUNTIME_IMPL_H
#define CODE_RUNTIME_IMPL_H

#include "code/gdb_list.h"
#include "code/jitdump.h"
#include "code/perf_map.h"
#include "code/region.h"
#include "code/runtime.h"

enum {
	/* one per copy of the library that is linked into something, and a served one */
	RUNTIME_MAX_REGISTRIES = 16,
	RUNTIME_MAX_LISTS = 16,
	RUNTIME_MAX_DUMPS = 16,
	RUNTIME_MAX_NOTES = 32,
	/*
	 * Entries of a registry: the number that the library has room for. 11 MB, which are copied
	 * while threads wait.
	 */
	RUNTIME_MAX_ENTRIES = 1 << 16,
	RUNTIME_MAX_GDB = 1024, /* of a list: a read each */
	/* Bytes of tables and symbol files, of all regions together. */
	RUNTIME_MAX_BYTES = 512 << 20,
};

/* A file that was looked through for __jit_debug_descriptor. */
struct runtime_searched {
	const struct cairn_binary *bin;
	bool has_it;
	struct cairn_vaddr at;
};

struct runtime_list {
	uint64_t descriptor;
	struct gdb_list list;
	/* of the first entries: read while threads stood still; NULL: not */
	VEC(struct symfile *) caught;
};

/* A region of a registry that was marked, by address. */
struct runtime_frozen {
	uint64_t lo, hi;
	const struct registry *registry;
	const struct registry_entry *entry;
	struct region *region; /* the data read from it; NULL: none */
	bool has_read;         /* since the mark */
};

struct code_runtime {
	struct code_memory memory;
	int pid;
	uint16_t machine;
	bool lists_removed;
	struct code_space *space;
	/* prepared */
	VEC(struct runtime_searched) searched;
	struct registry registries[RUNTIME_MAX_REGISTRIES];
	size_t n_registries;
	VEC(struct runtime_list) lists; /* the first n_lists of them are there now */
	size_t n_lists;
	bool has_more;                        /* registries or lists than there is room for */
	char notice_story[CAIRN_ERR_MSG_MAX]; /* why a notice is not believed; "" */
	/* marked */
	/* why a copy is empty; code 0: it is not for that reason */
	struct cairn_err stories[RUNTIME_MAX_REGISTRIES];
	VEC(struct runtime_frozen) marked;
	VEC(struct region *) caught;
	uint64_t snapshot_budget; /* bytes */
	bool has_caught_lists;
	bool is_ahead; /* code_runtime_is_ahead() */
	/* resolved */
	struct arena arena;
	uint64_t budget;              /* the rest of RUNTIME_MAX_BYTES */
	VEC(struct region *) regions; /* by address, then source, then generation */
	/* those that count: the ones that jit_map and gdb_map number, newer ones higher */
	VEC(struct region *) ranked;
	VEC(struct region *) mappings; /* CAIRN_CODE_ANONYMOUS, by address */
	VEC(struct symfile *) symfiles;
	struct name_map jit_map, gdb_map;
	const char *notes[RUNTIME_MAX_NOTES + 1];
	size_t n_notes;
	/* set at the first query that needs them */
	bool has_read_files;
	struct perf_map perf;
	struct jitdump dumps[RUNTIME_MAX_DUMPS];
	size_t n_dumps;
};

/* @text is copied; beyond RUNTIME_MAX_NOTES it is lost. */
void runtime_note(struct code_runtime *rt, const char *text);

/* For code_runtime_snapshot(): the regions of the copies. 0, -ENOMEM. */
int runtime_snapshot_begin(struct code_runtime *rt, struct cairn_err *err);
void runtime_snapshot_fini(struct code_runtime *rt);

/* Not trusted, for the first reason that is given. */
void runtime_distrust(struct region *r, const char *why);

/* A region of code made at run time, against the mappings. */
void runtime_verify_jit(struct code_runtime *rt, struct region *r);

/*
 * runtime_verify_elf - an object, against the file that is mapped where its code is
 *
 * *@ret_has_file: one is. 0, -ENOMEM.
 */
int runtime_verify_elf(struct code_runtime *rt, struct region *r, const struct registry_entry *e,
		       bool *ret_has_file, struct cairn_err *err);

/* Read jitdump and perf-map files, once for each resolve. 0, -ENOMEM. */
int runtime_read_files(struct code_runtime *rt, struct cairn_err *err);

/*
 * A path that stands for memory: shared anonymous mappings, by which JITs write code in one place
 * and run it in another.
 */
bool runtime_is_memory_file(const char *path);

#endif
