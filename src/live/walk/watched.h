/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The watched processes: what they have mapped as code, here and in the kernel's program
 *
 * Changes are collected, and published together: a process's segments are written to another place,
 * and then its entry leads there. So the kernel never sees half of a change.
 */
#ifndef WALK_WATCHED_H
#define WALK_WATCHED_H

#include "base/map.h"
#include "walk/abi.h"
#include "walk/files.h"
#include "walk/made.h"

/* An executable mapping. */
struct walk_mapping {
	uint64_t lo, hi;
	uint64_t at; /* a frame's number for lo; 0: no file */
	uint32_t file;
	uint32_t region;  /* of a JIT: its number + 1; 0: none */
	uint32_t made;    /* a page of rows for memory: its record + 1; 0: none */
	bool is_writable; /* or the memory of a file, which others may write */
};

/* Memory with code that was mapped or protected anew. */
struct walk_remade {
	uint64_t time_ns, lo, hi;
	bool was_writable; /* before */
};

/*
 * Code [lo, hi) that is described in another way now, and that nothing has replaced yet. Walks by
 * the generation or an earlier one may use what it was until then.
 */
struct walk_undated {
	int pid;
	uint32_t generation;
	uint64_t round, lo, hi;
};

/* A region of a JIT, by its registration. */
struct walk_registered {
	uint64_t epoch, lo, hi;
	uint32_t region; /* number + 1 */
};

struct walk_known {
	int pid;
	int via; /* the thread by which /proc has it: @pid, until its main thread has ended */
	bool is_target;  /* its stacks are wanted, and those of its children */
	bool is_command; /* becomes one by its exec */
	bool is_listed;  /* one of those that were named: their end is the end of the run */
	bool has_mappings, is_changed, has_ended;
	bool is_outdated;  /* to be read anew */
	bool is_young;     /* the kernel's program may put its parent's mappings in its place yet */
	bool is_left_out;  /* there was no room for all of it */
	bool has_registry; /* that is looked at */
	bool has_no_main;  /* its main thread has ended, and others run: its end is not reported */
	uint64_t since_ns; /* its program runs; 0: since before the profile */
	uint32_t generation;
	uint32_t first, size_class;        /* of its segments; size_class 0: none */
	uint64_t read_ns;                  /* when its mappings were read last */
	VEC(struct walk_mapping) mappings; /* by address, without overlaps */
	uint64_t registry_lo, registry_hi; /* of codectl; 0: none */
	uint64_t registry_changes;         /* when it was read last */
	VEC(struct walk_registered) registered;
	bool has_memory;                /* with code, that is looked at */
	bool is_searched;               /* for lists and dumps, since its mappings are these */
	struct made_code *made;         /* of it, as it describes that to others; NULL: nothing */
	VEC(struct walk_remade) remade; /* since the last look at that */
};

enum { FREED_PAGE = 255 };

/* Segments that are free, but may still be used by a child whose fork is not known yet. */
struct walk_freed {
	uint32_t first, size_class; /* size_class 0: a region; FREED_PAGE: a page of rows */
	uint64_t round;
};

/*
 * A mapping that is not there any more since @time_ns. A walk later than that by the generation or
 * an earlier one may have found it; its frame is none.
 */
struct walk_stale {
	int pid;
	uint32_t generation;
	uint64_t time_ns, round;
	uint64_t at, size; /* frames [at, at + size); size 0: all */
	uint64_t noted_ns; /* reported_ns when it was noted */
};

/* Mappings of an image or a process that is gone. */
struct walk_past {
	int pid;
	uint64_t since_ns, until_ns, round;
	VEC(struct walk_mapping) mappings;
};

/* A search in the kernel takes 18 steps. */
enum { WALK_SIZE_CLASSES = 18 };

struct watched {
	VEC(struct walk_known) list;
	struct map ids; /* by pid: index in list + 1; 0: it has ended */
	struct walk_files *files;
	struct walk_tables *tables; /* NULL: code made at run time is not looked at */
	struct chunks segments, regions;
	VEC(uint32_t) unused_regions;
	uint32_t n_regions;
	int map_fd;
	uint32_t next_segment, generation;
	uint64_t round;
	VEC(uint32_t) unused[WALK_SIZE_CLASSES]; /* of 2^n segments */
	VEC(struct walk_freed) freed;
	VEC(struct walk_stale) stale;
	VEC(struct walk_past) past;
	VEC(struct walk_undated) undated;
	uint64_t reported_ns; /* what happened before has been reported; 0: unknown */
	/*
	 * Numbers in the list: of those that changed, are free, have a registry, are to be read,
	 * have no main thread, or have memory with code.
	 */
	VEC(size_t) changed, slots, with_registry, outdated, without_main, with_memory;
	size_t n_made;                        /* processes that describe such code to others */
	size_t next_made;                     /* of with_memory, that was looked at last */
	uint64_t made_after_ns;               /* not to be looked at before */
	uint64_t made_began_ns, made_took_ns; /* the first look, and all of them */
	bool keeps_past; /* samples wait: what was there before is not forgotten */
	uint64_t ends_looked_ns;
	uint64_t n_left_out; /* processes that had no room, here or in the kernel */
	size_t n_listed;     /* that have not ended */
	bool all;
};

void watched_init(struct watched *p, struct walk_files *files, int segments_fd, int regions_fd,
		  int map_fd, bool all);
void watched_fini(struct watched *p);

/*
 * watched_add - from now on follow a process
 *
 * Returns 0; -ESRCH, -EACCES, -ENOMEM.
 */
int watched_add(struct watched *p, int pid, bool is_listed, struct cairn_err *err);

/* All that run now, but this one; -ENOMEM, or 0. */
int watched_add_running(struct watched *p, struct cairn_err *err);

/*
 * Follow a child of ours that is to execute a command: its stacks are wanted from then on. 0 or
 * -ENOMEM.
 */
int watched_add_command(struct watched *p, int pid, struct cairn_err *err);

/*
 * Takes the kernel's reports; those of processes that are not followed are not kept. Each returns 0
 * or -ENOMEM.
 */
int watched_mapped(struct watched *p, int pid, uint64_t time_ns, const struct code_mapping *m,
		   struct cairn_err *err);
int watched_forked(struct watched *p, int parent, int child, uint64_t time_ns,
		   struct cairn_err *err);
int watched_execed(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err);
/* The name of its main thread. A process whose other threads run goes on until they have ended. */
int watched_exited(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err);

/* Those without a main thread: have they ended? 0 or -ENOMEM. Ten times a second at most. */
int watched_look_for_ends(struct watched *p, uint64_t now_ns, struct cairn_err *err);

/* Sets is_used of the files that processes have mapped, or had until a moment ago. */
void watched_mark_used(const struct watched *p);

/* A file was written again: its mappings are read anew. 0 or -ENOMEM. */
int watched_file_written(struct watched *p, uint32_t number, struct cairn_err *err);

/*
 * watched_look - read the mappings of a process that a sample shows to be unknown, or changed
 *
 * At most ten times a second for each. Returns 0 or -ENOMEM.
 */
int watched_look(struct watched *p, int pid, uint64_t now_ns, struct cairn_err *err);

/* Read the registries of JITs that have changed. Returns 0 or -ENOMEM. A read for each registry. */
int watched_look_at_registries(struct watched *p, struct cairn_err *err);

/*
 * watched_look_at_made - look at what processes describe of code made at run time
 *
 * When it is time; @is_last: now, all of them. Returns 0 or -ENOMEM.
 */
int watched_look_at_made(struct watched *p, bool is_last, struct cairn_err *err);

/* Whether the rows that a walk of the process at this time has used are to be looked at again. */
bool watched_is_uncertain(const struct watched *p, int pid, uint64_t time_ns);

/* Read the mappings of processes that have too many to follow each report. 0 or -ENOMEM. */
int watched_read_outdated(struct watched *p, uint64_t now_ns, struct cairn_err *err);

/* Reports were lost: what is known of all processes is read once more. 0 or -ENOMEM. */
int watched_recover(struct watched *p, uint64_t now_ns, struct cairn_err *err);

/*
 * The frame of an address of a process at a time, also of one that has ended in the last rounds; 0:
 * it is in no known file.
 */
uint64_t watched_frame_at(const struct watched *p, int pid, uint64_t at, uint64_t time_ns);

/* The other way: where a process has a frame of a file; 0: it is not known. */
uint64_t watched_address_at(const struct watched *p, int pid, uint64_t frame, uint64_t time_ns);

/* The same as watched_frame_at() for now. */
uint64_t watched_frame(const struct watched *p, int pid, uint64_t at);

/* The file's table is in the kernel: segments of it lead there. */
void watched_file_ready(struct watched *p, uint32_t number, const struct walk_file *file);

/* A stack that a walk took, with the frames of the kernel first; the innermost comes first. */
struct walk_taken {
	int pid;
	uint64_t time_ns;
	uint32_t generation; /* of the process's mappings that it used; 0: none */
	uint8_t end;         /* enum walk_end */
	size_t n_kernel, n;
	const uint64_t *frames;
};

/*
 * watched_sound - how many of a stack's frames are of mappings that were there
 *
 * Returns their number, or that of those before the first one that is not.
 */
size_t watched_sound(const struct watched *p, const struct walk_taken *taken);

/* The process is counted as one that had no room. */
void watched_leave_out(struct watched *p, struct walk_known *k);

/*
 * watched_publish - tell the kernel's program what has changed
 *
 * A process that has no room there is left out: its stacks end with WALK_END_NO_PROCESS. Returns
 * 0 or -ENOMEM.
 */
int watched_publish(struct watched *p, struct cairn_err *err);

#endif
