/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files that follow processes share
 *
 *	sampled_recover.c  what is done when reports were lost
 *	sampled.c          the processes, and what happens to them
 *	sampled_known.c    one process, and its mappings in order
 *	sampled_regions.c  regions of JITs
 *	sampled_made.c     code that processes describe to others
 *	sampled_dated.c    since when they have described other code
 *	sampled_past.c     mappings that are not there any more
 *	sampled_publish.c  segments for the kernel's program
 */
#ifndef PROF_SAMPLED_IMPL_H
#define PROF_SAMPLED_IMPL_H

#include "code/runtime.h"
#include "prof/sampled.h"

/* Rounds of sampled_publish(): a child's fork is reported before the second one after it. */
enum { SAMPLED_ROUNDS_KEPT = 3 };

/* The process, followed and alive; NULL: it is neither. */
struct prof_known *sampled_find(const struct sampled *p, int pid);

/* It has ended as a whole. 0 or -ENOMEM. */
int sampled_ended(struct sampled *p, int pid, uint64_t time_ns, struct cairn_err *err);

/* It is to be published. 0 or -ENOMEM. */
int known_mark(struct sampled *p, struct prof_known *k);

/* Its mappings are to be read when it is time. 0 or -ENOMEM. */
int sampled_note_outdated(struct sampled *p, struct prof_known *k, struct cairn_err *err);

/* ---- mappings of one process; 0 or -ENOMEM ---- */

/* Put in at its place; it overlaps none. */
int known_put(struct prof_known *k, struct prof_mapping m);
/* [lo, hi) belongs to nothing; parts of mappings on both sides stay. */
int known_cut_out(struct prof_known *k, uint64_t lo, uint64_t hi);
/* The mappings [*@ret_first, *@ret_end) have a byte of [lo, hi). */
void known_range(const struct prof_known *k, uint64_t lo, uint64_t hi, size_t *ret_first,
		 size_t *ret_end);
/* The frame of an address; 0: it is in no known file. */
uint64_t mappings_frame(const struct prof_mapping *mappings, size_t n, uint64_t at);

/* ---- regions of JITs; 0 or -ENOMEM ---- */

/* What its registry has now. One that cannot be read has nothing. */
int known_read_registry(struct sampled *p, struct prof_known *k, struct cairn_err *err);
/* They lie over the anonymous memory that the code is in. */
int known_lay_regions(struct prof_known *k);
int known_forget_regions(struct sampled *p, struct prof_known *k);

/* ---- other code made at run time; 0 or -ENOMEM ---- */

/* If a mapping is memory with code, the process is looked at. */
int known_note_memory(struct sampled *p, struct prof_known *k, const struct code_mapping *m);
/* Its pages lie over the memory that the code is in. */
int known_lay_made(struct prof_known *k);
int known_forget_made(struct sampled *p, struct prof_known *k);

/* Memory is reported, and not in k->mappings yet. */
int dated_note(struct sampled *p, struct prof_known *k, uint64_t time_ns,
	       const struct code_mapping *m);
/* A look found that [lo, hi) is not described as before. */
int dated_stale(struct sampled *p, const struct prof_known *k, uint64_t lo, uint64_t hi);
/* Those for which no walk can come any more. */
void dated_forget(struct sampled *p);

/* ---- what was there before; 0 or -ENOMEM ---- */

/* Frames [at, at + size) are none after @time_ns; size 0: those of all files. */
int past_note_stale(struct sampled *p, const struct prof_known *k, uint64_t time_ns, uint64_t at,
		    uint64_t size);
/* Those that a new mapping replaces. */
int past_note_replaced(struct sampled *p, const struct prof_known *k, uint64_t time_ns,
		       const struct code_mapping *by);
/* Its mappings until @time_ns go from @k into the past; those after it begin. */
int past_keep(struct sampled *p, struct prof_known *k, uint64_t time_ns);
/* What is so old that no sample of it can come. */
void past_forget(struct sampled *p);
void past_fini(struct sampled *p);

/* ---- to the kernel; 0 or -ENOMEM ---- */

int known_forget_segments(struct sampled *p, struct prof_known *k);

#endif
