/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sampled processes: what they have mapped as code, here and in the kernel's program
 *
 * Changes are collected, and published together: a process's segments are written to another place,
 * and then its entry leads there. So the kernel never sees half of a change.
 */
#ifndef PROF_SAMPLED_H
#define PROF_SAMPLED_H

#include "base/map.h"
#include "prof/files.h"
#include "prof/made.h"

/* An executable mapping. */
struct prof_mapping {
	uint64_t lo, hi;
	uint64_t at; /* a frame's number for lo; 0: no file */
	uint32_t file;
	uint32_t region;  /* of a JIT: its number + 1; 0: none */
	uint32_t made;    /* a page of rows for memory: its record + 1; 0: none */
	bool is_writable; /* or the memory of a file, which others may write */
};

/* Memory with code that was mapped or protected anew. */
struct prof_remade {
	uint64_t time_ns, lo, hi;
	bool was_writable; /* before */
};

/*
 * Code [lo, hi) that is described in another way now, and that nothing has replaced yet. Walks by
 * the generation or an earlier one may use what it was until then.
 */
struct prof_undated {
	int pid;
	uint32_t generation;
	uint64_t round, lo, hi;
};

/* A region of a JIT, by its registration. */
struct prof_registered {
	uint64_t epoch, lo, hi;
	uint32_t region; /* number + 1 */
};

struct prof_known {
	int pid;
	int via; /* the thread by which /proc has it: @pid, until its main thread has ended */
	bool is_target;  /* sampled, with its children */
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
	VEC(struct prof_mapping) mappings; /* by address, without overlaps */
	uint64_t registry_lo, registry_hi; /* of codectl; 0: none */
	uint64_t registry_changes;         /* when it was read last */
	VEC(struct prof_registered) registered;
	bool has_memory;                /* with code, that is looked at */
	bool is_searched;               /* for lists and dumps, since its mappings are these */
	struct made_code *made;         /* of it, as it describes that to others; NULL: nothing */
	VEC(struct prof_remade) remade; /* since the last look at that */
};

enum { FREED_PAGE = 255 };

/* Segments that are free, but may still be used by a child whose fork is not known yet. */
struct prof_freed {
	uint32_t first, size_class; /* size_class 0: a region; FREED_PAGE: a page of rows */
	uint64_t round;
};

/*
 * A mapping that is not there any more since @time_ns. A walk later than that by the generation or
 * an earlier one may have found it; its frame is none.
 */
struct prof_stale {
	int pid;
	uint32_t generation;
	uint64_t time_ns, round;
	uint64_t at, size; /* frames [at, at + size); size 0: all */
};

/* Mappings of an image or a process that is gone. */
struct prof_past {
	int pid;
	uint64_t since_ns, until_ns, round;
	VEC(struct prof_mapping) mappings;
};

/* A search in the kernel takes 18 steps. */
enum { PROF_SIZE_CLASSES = 18 };

struct sampled {
	VEC(struct prof_known) list;
	struct map ids; /* by pid: index in list + 1; 0: it has ended */
	struct prof_files *files;
	struct prof_tables *tables; /* NULL: code made at run time is not looked at */
	struct chunks segments, regions;
	VEC(uint32_t) unused_regions;
	uint32_t n_regions;
	int map_fd;
	uint32_t next_segment, generation;
	uint64_t round;
	VEC(uint32_t) unused[PROF_SIZE_CLASSES]; /* of 2^n segments */
	VEC(struct prof_freed) freed;
	VEC(struct prof_stale) stale;
	VEC(struct prof_past) past;
	VEC(struct prof_undated) undated;
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

void sampled_init(struct sampled *p, struct prof_files *files, int segments_fd, int regions_fd,
		  int map_fd, bool all);
void sampled_fini(struct sampled *p);

/*
 * sampled_add - from now on follow a process
 *
 * Returns 0; -ESRCH, -EACCES, -ENOMEM.
 */
int sampled_add(struct sampled *p, int pid, bool is_listed, struct cairn_err *err);

/* All that run now, but this one; -ENOMEM, or 0. */
int sampled_add_running(struct sampled *p, struct cairn_err *err);

/* Follow a child of ours that is to execute a command: it is sampled from then on. 0 or -ENOMEM. */
int sampled_add_command(struct sampled *p, int pid, struct cairn_err *err);

/*
 * What the kernel reports; of processes that are not followed nothing is kept. Each returns 0 or
 * -ENOMEM.
 */
int sampled_mapped(struct sampled *p, int pid, uint64_t time_ns, const struct code_mapping *m,
		   struct cairn_err *err);
int sampled_forked(struct sampled *p, int parent, int child, uint64_t time_ns,
		   struct cairn_err *err);
int sampled_execed(struct sampled *p, int pid, uint64_t time_ns, struct cairn_err *err);
/* Of its main thread. A process whose other threads run goes on until they have ended. */
int sampled_exited(struct sampled *p, int pid, uint64_t time_ns, struct cairn_err *err);

/* Those without a main thread: have they ended? 0 or -ENOMEM. Ten times a second at most. */
int sampled_look_for_ends(struct sampled *p, uint64_t now_ns, struct cairn_err *err);

/* Sets is_used of the files that processes have mapped, or had until a moment ago. */
void sampled_mark_used(const struct sampled *p);

/* A file was written again: its mappings are read anew. 0 or -ENOMEM. */
int sampled_file_written(struct sampled *p, uint32_t number, struct cairn_err *err);

/*
 * sampled_look - read the mappings of a process that a sample shows to be unknown, or changed
 *
 * At most ten times a second for each. Returns 0 or -ENOMEM.
 */
int sampled_look(struct sampled *p, int pid, uint64_t now_ns, struct cairn_err *err);

/* Read the registries of JITs that have changed. Returns 0 or -ENOMEM. A read for each registry. */
int sampled_look_at_registries(struct sampled *p, struct cairn_err *err);

/*
 * sampled_look_at_made - look at what processes describe of code made at run time
 *
 * When it is time; @is_last: now, all of them. Returns 0 or -ENOMEM.
 */
int sampled_look_at_made(struct sampled *p, bool is_last, struct cairn_err *err);

/* Whether the rows that a walk of the process at this time has used are to be looked at again. */
bool sampled_is_uncertain(const struct sampled *p, int pid, uint64_t time_ns);

/* Read the mappings of processes that have too many to follow each report. 0 or -ENOMEM. */
int sampled_read_outdated(struct sampled *p, uint64_t now_ns, struct cairn_err *err);

/* Reports were lost: what is known of all processes is read once more. 0 or -ENOMEM. */
int sampled_recover(struct sampled *p, uint64_t now_ns, struct cairn_err *err);

/*
 * The frame of an address of a process at a time, also of one that has ended in the last rounds; 0:
 * it is in no known file.
 */
uint64_t sampled_frame_at(const struct sampled *p, int pid, uint64_t at, uint64_t time_ns);

/* The same for now. */
uint64_t sampled_frame(const struct sampled *p, int pid, uint64_t at);

/* The file's table is in the kernel: segments of it lead there. */
void sampled_file_ready(struct sampled *p, uint32_t number, const struct prof_file *file);

/*
 * sampled_sound - how many of a sample's frames are of mappings that were there
 *
 * @frames  all of its @n frames, the innermost first
 * Returns @n, or the number of those before the first one that is not.
 */
size_t sampled_sound(const struct sampled *p, const struct prof_sample *s, const uint64_t *frames,
		     size_t n);

/* The process is counted as one that had no room. */
void sampled_leave_out(struct sampled *p, struct prof_known *k);

/*
 * sampled_publish - tell the kernel's program what has changed
 *
 * A process that has no room there is left out: its stacks end with CAIRN_PROF_NO_PROCESS. Returns
 * 0 or -ENOMEM.
 */
int sampled_publish(struct sampled *p, struct cairn_err *err);

#endif
