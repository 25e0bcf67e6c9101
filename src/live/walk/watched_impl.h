/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared by the files that follow processes
 *
 *	watched_recover.c  what is done when reports were lost
 *	watched.c          the processes, and what happens to them
 *	watched_known.c    one process, and its mappings in order
 *	watched_regions.c  regions of JITs
 *	watched_made.c     code that processes describe to others
 *	watched_dated.c    since when they have described other code
 *	watched_past.c     mappings that are not there any more
 *	watched_publish.c  segments for the kernel's program
 */
#ifndef WALK_WATCHED_IMPL_H
#define WALK_WATCHED_IMPL_H

#include "code/runtime.h"
#include "walk/watched.h"

/* Rounds of watched_publish(): a child's fork is reported before the second one after it. */
enum { WATCHED_ROUNDS_KEPT = 3 };

/* The process, followed and alive; NULL: it is neither. */
struct walk_known *watched_find(const struct watched *p, int pid);

/* It has ended as a whole. 0 or -ENOMEM. */
int watched_ended(struct watched *p, int pid, uint64_t time_ns, struct cairn_err *err);

/* It is to be published. 0 or -ENOMEM. */
int known_mark(struct watched *p, struct walk_known *k);

/* Its mappings are to be read when it is time. 0 or -ENOMEM. */
int watched_note_outdated(struct watched *p, struct walk_known *k, struct cairn_err *err);

/* ---- mappings of one process; 0 or -ENOMEM ---- */

/* Put in at its place; it overlaps none. */
int known_put(struct walk_known *k, struct walk_mapping m);
/* [lo, hi) belongs to nothing; parts of mappings on both sides stay. */
int known_cut_out(struct walk_known *k, uint64_t lo, uint64_t hi);
/* The mappings [*@ret_first, *@ret_end) have a byte of [lo, hi). */
void known_range(const struct walk_known *k, uint64_t lo, uint64_t hi, size_t *ret_first,
		 size_t *ret_end);
/* The frame of an address; 0: it is in no known file. */
uint64_t mappings_frame(const struct walk_mapping *mappings, size_t n, uint64_t at);

/* ---- regions of JITs; 0 or -ENOMEM ---- */

/* The present contents of its registry. One that cannot be read has nothing. */
int known_read_registry(struct watched *p, struct walk_known *k, struct cairn_err *err);
/* They lie over the anonymous memory that the code is in. */
int known_lay_regions(struct walk_known *k);
int known_forget_regions(struct watched *p, struct walk_known *k);

/* ---- other code made at run time; 0 or -ENOMEM ---- */

/* If a mapping is memory with code, the process is looked at. */
int known_note_memory(struct watched *p, struct walk_known *k, const struct code_mapping *m);
/* Its pages lie over the memory that the code is in. */
int known_lay_made(struct walk_known *k);
int known_forget_made(struct watched *p, struct walk_known *k);

/* Memory is reported, and not in k->mappings yet. */
int dated_note(struct watched *p, struct walk_known *k, uint64_t time_ns,
	       const struct code_mapping *m);
/* A look found that [lo, hi) is not described as before. */
int dated_stale(struct watched *p, const struct walk_known *k, uint64_t lo, uint64_t hi);
/* Those for which no walk can come any more. */
void dated_forget(struct watched *p);

/* ---- what was there before; 0 or -ENOMEM ---- */

/* Frames [at, at + size) are none after @time_ns; size 0: those of all files. */
int past_note_stale(struct watched *p, const struct walk_known *k, uint64_t time_ns, uint64_t at,
		    uint64_t size);
/* Those that a new mapping replaces; @by_at: files_at() of it. */
int past_note_replaced(struct watched *p, const struct walk_known *k, uint64_t time_ns,
		       const struct code_mapping *by, uint64_t by_at);
/* Its mappings until @time_ns go from @k into the past; those after it begin. */
int past_keep(struct watched *p, struct walk_known *k, uint64_t time_ns);
/* What is so old that no sample of it can come. */
void past_forget(struct watched *p);
void past_fini(struct watched *p);

/* ---- to the kernel; 0 or -ENOMEM ---- */

int known_forget_segments(struct watched *p, struct walk_known *k);

#endif
