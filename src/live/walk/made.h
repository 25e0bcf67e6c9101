/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code made at run time as its process describes it to others: GDB's list, jitdump files
 *
 *	made_read.c    entries of lists and records of dumps become rows
 *	made_pages.c   rows of all of them, the newest first, become pages for the kernel's program
 *
 * Neither has generations. So what a walk has used is compared with what is there afterwards: a
 * look tells which rules do not hold any more, and until when they did.
 */
#ifndef WALK_MADE_H
#define WALK_MADE_H

#include <sys/stat.h>

#include "base/vec.h"
#include "code/gdb_list.h"
#include "walk/tables_made.h"

/* The code that one FDE describes, or a function without any: rows [first, first + n). */
struct made_span {
	uint64_t lo, hi;
	uint32_t first, n;
};

/* The later of two spans of an address counts. */
struct made_rows {
	VEC(struct made_span) spans;
	VEC(struct made_row) rows;
};

/* An entry of GDB's list. */
struct made_symfile {
	struct gdb_entry entry;
	uint64_t hash; /* of the file's bytes */
	struct made_rows rows;
	bool is_read;
};

/* Addresses [lo, hi). */
struct made_interval {
	uint64_t lo, hi;
};

struct made_list {
	uint64_t head[3];    /* the bytes of the descriptor */
	uint64_t descriptor; /* its address */
	bool is_unsteady; /* the last look found entries replaced or gone, or not the whole list */
	VEC(struct made_symfile) symfiles; /* the newest first */
};

struct made_dump {
	char *path;                     /* as the process has it */
	struct stat st;                 /* when it was read last */
	size_t n_known;                 /* functions whose rows were taken */
	bool is_behind;                 /* it has more functions */
	VEC(struct made_interval) code; /* of all its functions, by address */
	struct made_rows rows;
};

/* 64 KiB of code in the kernel. */
struct made_page {
	uint64_t at;
	uint32_t record;
	uint16_t before;
	size_t first, n; /* of rows */
};

struct made_code {
	VEC(struct made_list) lists;
	VEC(struct made_dump) dumps;
	VEC(struct made_row) rows;   /* by address */
	VEC(struct made_page) pages; /* by address, with at least a rule */
	/*
	 * Code that was made anew since the last made_build(), perhaps with the same rows as
	 * before.
	 */
	VEC(struct made_interval) touched;
	uint64_t looked_ns; /* then the rows held; CLOCK_MONOTONIC */
	bool has_replaced;  /* code that was described before, at least once */
	bool is_cut;        /* there was more than is taken */
	bool is_behind;     /* a dump has more than was read yet */
	bool is_unsure;     /* reports were lost since the last look */
	bool is_moved;      /* the memory around it has changed: the pages are made anew */
};

/* The sources in a process. */
struct made_sources {
	int pid;                   /* a thread of it that lives */
	VEC(uint64_t) descriptors; /* of GDB's lists */
	VEC(const char *) dumps;   /* paths of jitdumps, as the process has them */
};

/*
 * made_read - read what has changed
 *
 * *@ret_changed: the spans are others now, or may have been meanwhile. Memory that cannot be read
 * has none. Reads, bytes and entries are limited (made->is_cut). Returns 0 or -ENOMEM. Cost: a read
 * for each entry, the bytes of all symbol files, up to 4 MB; dumps only if they have grown.
 */
int made_read(struct made_code *made, const struct made_sources *from, struct walk_tables *tables,
	      bool *ret_changed);

struct made_change {
	VEC(struct made_interval) stale; /* a rule was there that is there no more */
	VEC(uint32_t) dropped;           /* records of pages */
};

/*
 * made_build - pages of all that was read
 *
 * @within  [0, @n_within): memory that can have code, by address
 * @ret     made_change_fini(); the dropped pages may still be read by a walk
 * Returns 0; -ENOMEM: the earlier pages stay. Where there is no room for more, made->is_cut is set.
 */
int made_build(struct made_code *made, struct walk_tables *tables,
	       const struct made_interval *within, size_t n_within, struct made_change *ret);
void made_change_fini(struct made_change *c);

void made_free(struct made_code *made); /* takes NULL; its pages are the caller's */

#endif
