/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module walk finds stacks in the kernel, of processes while they run.
 *
 * This header: what a walk in the kernel needs, kept up to date. Files get unwind tables, which go
 * into the maps of the program; the mappings of the watched processes go there, too. All of it
 * happens in the caller's thread, but for the making of tables.
 *
 *	walker_init(&w, &err);
 *	...                                  // load the program with the maps of bpf/walk_run.bpf.h
 *	walker_open(&w, &maps, false, &err);
 *	walker_add(&w, pid, &err);
 *	walker_publish(&w, &err);
 *	walker_wait_for_tables(&w, ...);
 *	for (;;) {			     // ten times a second, or more often
 *		walker_follow(&w, &err);
 *		walker_tell(&w, &err);
 *		...                          // take stacks, each with walker_resolve()
 *		walker_look(&w, &err);
 *	}
 *
 *	walker.c         all of it
 *	files.c          files by number, and their tables; identity.c: have they been written again
 *	command.c        the files of a command that does not run yet
 *	tables.c         unwind tables in maps, whose blocks are in chunks.c; gaps.c: room of files
 *	that
 *	                 are gone
 *	watched.c        processes and their mappings; watched_dated.c, watched_known.c,
 *	watched_made.c,
 *	                 watched_past.c, watched_publish.c, watched_recover.c, watched_regions.c
 *	made_read.c, made_pages.c, tables_made.c  rows of code made at run time
 *	bpf/             the walk itself
 */
#ifndef WALK_WALKER_H
#define WALK_WALKER_H

#include "base/vec.h"
#include "perf/reports.h"
#include "walk/abi.h"
#include "walk/files.h"
#include "walk/tables.h"
#include "walk/watched.h"

/* File descriptors of the program's maps. */
struct walker_maps {
	int rows, pages, rules, segments, regions, processes, inodes;
};

/* From a skeleton whose program includes walk_maps.bpf.h. */
#define WALKER_MAPS_OF(bpf)                                                                        \
	((struct walker_maps){                                                                     \
		.rows = bpf_map__fd((bpf)->maps.rows),                                             \
		.pages = bpf_map__fd((bpf)->maps.pages),                                           \
		.rules = bpf_map__fd((bpf)->maps.rules),                                           \
		.segments = bpf_map__fd((bpf)->maps.segments),                                     \
		.regions = bpf_map__fd((bpf)->maps.regions),                                       \
		.processes = bpf_map__fd((bpf)->maps.processes),                                   \
		.inodes = bpf_map__fd((bpf)->maps.inodes),                                         \
	})

struct walker {
	struct walk_tables tables;
	struct walk_files files;
	struct watched processes;
	struct reports reports;
	uint64_t n_files;                       /* that have a table */
	uint64_t n_recovered, recover_after_ns; /* lost reports that were made up for; not before */
	uint64_t files_after_ns;                /* the same, of a look at all files */
	VEC(int) to_look; /* processes of which stacks show that their mappings are not known */
};

/* Returns 0; -ENOMEM, the errors of pthread_create(3). walker_fini() in both cases. */
int walker_init(struct walker *w, struct cairn_err *err);
void walker_fini(struct walker *w);

/*
 * walker_open - from now on the program's maps are kept up to date
 *
 * @all  every process, also those that begin later
 * Returns 0; -ENOMEM, the errors of perf_event_open(2) and mmap(2).
 */
int walker_open(struct walker *w, const struct walker_maps *maps, bool all, struct cairn_err *err);

/* As those of watched.h. */
int walker_add(struct walker *w, int pid, struct cairn_err *err);
int walker_add_running(struct walker *w, struct cairn_err *err);
int walker_add_command(struct walker *w, int pid, struct cairn_err *err);
int walker_publish(struct walker *w, struct cairn_err *err);
/* command_know_files(), before the child is forked. */
int walker_know_command(struct walker *w, const char *program, struct cairn_err *err);

/*
 * walker_prepare - take tables that are ready, after @timeout_ms at most
 *
 * Returns the number of those that are still to be made; -EINTR; -ENOMEM.
 */
int walker_prepare(struct walker *w, int timeout_ms, struct cairn_err *err);
/*
 * The same until all are made, or for 10 s, 100 ms of all processes: the first stacks need them.
 * Returns 0, also when a signal ended the wait; -ENOMEM.
 */
int walker_wait_for_tables(struct walker *w, struct cairn_err *err);

/*
 * Follows the kernel's reports of processes, and their descriptions of code that they make. 0 or
 * -ENOMEM.
 */
int walker_follow(struct walker *w, struct cairn_err *err);
/* Tell the program what has changed. 0 or -ENOMEM. */
int walker_tell(struct walker *w, struct cairn_err *err);
/* Look at processes that stacks have shown to be unknown, and tell the program. 0 or -ENOMEM. */
int walker_look(struct walker *w, struct cairn_err *err);
/* walker_follow() and walker_tell(). */
int walker_update(struct walker *w, struct cairn_err *err);

/* Whether the rows that a walk has used are to be looked at again first. */
bool walker_is_uncertain(const struct walker *w, int pid, uint64_t time_ns);

/*
 * walker_resolve - a stack's frames as they are known by now
 *
 * Mappings that were reported since may tell the file of a frame, or that there is no such frame.
 * @own  room for as many frames as the stack has
 * Returns whether they are others; then *@ret has them, and their end.
 */
bool walker_resolve(const struct walker *w, const struct walk_taken *taken, uint64_t *own,
		    struct walk_taken *ret);

/*
 * walker_learn - what a stack shows to be unknown is looked at in the next walker_look()
 *
 * @end     after walker_resolve()
 * @is_new  the program sends it for the first time
 * Returns 0 or -ENOMEM.
 */
int walker_learn(struct walker *w, const struct walk_taken *taken, uint8_t end, bool is_new);

#endif
