/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files that watched processes map, by the number that frames have
 *
 * A file is opened when its first mapping is reported, and stays open: it may be gone at the end,
 * when frames are named. Its unwind table is made by another thread, as that takes up to 100 ms,
 * and put into the kernel by the caller.
 *
 * A file that is written again gets another number, and another table: frames keep the number of
 * the content that ran. One that could not be opened is tried again when it is met again, at
 * growing distances.
 */
#ifndef WALK_FILES_H
#define WALK_FILES_H

#include <pthread.h>
#include <stdbool.h>

#include <cairn/binary.h>
#include <cairn/sidecar.h>
#include <cairn/unwind.h>

#include "base/map.h"
#include "base/vec.h"
#include "code/maps.h"
#include "walk/abi.h"
#include "walk/identity.h"
#include "walk/tables.h"

struct walk_file {
	char *path; /* as the process has it mapped; "[vdso]" */
	dev_t dev;  /* as the kernel reports it; stat(2) may say another one */
	ino_t ino;
	struct cairn_binary *bin;       /* NULL: it could not be opened, see note */
	struct cairn_sidecar *sidecar;  /* NULL: none was found, or not queried yet */
	uint64_t base;                  /* what a frame's address is counted from */
	struct walk_pages pages;        /* in the kernel; n 0: none yet */
	char note[CAIRN_ERR_MSG_MAX];   /* why there is no table; "" */
	struct walk_identity identity;  /* of the content; with bin, and not of a vDSO */
	bool is_replaced;               /* another number has this inode now */
	bool is_written;                /* again: what bin reads is not what ran */
	bool is_searched, has_gdb_list; /* files_gdb_list() */
	uint64_t gdb_list;
	bool is_late;               /* it was written after it was mapped, and not opened */
	bool is_released;           /* by files_release_unused() */
	bool is_used;               /* a process has it mapped; of files_release_unused() */
	bool is_spare;              /* its number may be given to another file */
	uint32_t n_unused;          /* its calls in turn that found no such process */
	uint64_t retry_ns, wait_ns; /* CLOCK_MONOTONIC: not to be opened before; 0: never failed */
	/* State of the thread that makes tables. */
	struct cairn_unwind *made;
	bool is_made, is_hurried;
	uint8_t *bytes; /* of a vDSO */
};

struct walk_files {
	VEC(struct walk_file *) list; /* [0] is NULL: no frame has the number 0 */
	VEC(uint32_t) spare;          /* numbers of files that are over */
	struct map ids;               /* by device and inode: the last one of it */
	int inodes_fd;                /* of the kernel's map of them; -1: none */
	/* The thread takes the files in their order, up to n_asked; all but list is guarded. */
	pthread_t thread;
	bool has_thread, is_ending;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct walk_file **asked;
	size_t n_asked, n_begun, n_made, n_taken, asked_cap;
	int done_fd; /* eventfd: a table is made */
};

/* Returns 0; -ENOMEM, the errors of pthread_create(3). files_fini() in both cases. */
int files_init(struct walk_files *f, struct cairn_err *err);
void files_fini(struct walk_files *f);

/*
 * files_number - the number of the file that @m maps
 *
 * @pid      has it mapped; the file is opened through it if it is new
 * @time_ns  when it was mapped, in CLOCK_MONOTONIC; 0: it is mapped now. What was written later is
 *	     not what was mapped
 * Returns 0 and *@ret; 0 and number 0: no file is mapped there, or more than 2^21 were. -ENOMEM.
 * Cost: an fstat(2) for a file that is known.
 */
int files_number(struct walk_files *f, int pid, uint64_t time_ns, const struct code_mapping *m,
		 uint32_t *ret, struct cairn_err *err);

/* Whether what its binary reads is what ran. */
bool files_is_as_it_ran(const struct walk_file *file);

/*
 * files_find_written - the files that were written again since they were opened, each once
 *
 * They are not replaced yet: their mappings are to be read anew. @fn returns 0 or -ENOMEM. Cost: an
 * fstat(2) for each file.
 */
int files_find_written(struct walk_files *f, int (*fn)(void *ctx, uint32_t number), void *ctx);

/*
 * files_at - a frame's number for the first byte of a mapping; 0: it has no place in the file
 */
uint64_t files_at(const struct walk_files *f, uint32_t number, const struct code_mapping *m);

/*
 * files_gdb_list - where a file has the list of a JIT for GDB, as a frame counts addresses of it
 *
 * False: it has none. Cost: the first time a pass over its symbols.
 */
bool files_gdb_list(struct walk_files *f, uint32_t number, uint64_t *ret);

/*
 * files_begins_context - whether a stack that was made by hand begins after the byte of a frame, as
 * the file has the code: in the process its page may not be in memory
 */
bool files_begins_context(const struct walk_files *f, uint64_t frame);

/*
 * files_release_unused - let go of files that nobody can run any more
 *
 * To be called at the end of each window, with is_used set of the files that processes have mapped.
 * A file that was deleted or written again, and was not used at the second end in turn, is closed:
 * no sample of the windows to come is in it, and it takes place on the disk. So is any file at the
 * thirtieth, and earlier, the oldest first, where more than 256 are kept that nobody runs: a
 * machine that builds programs runs thousands. At the next end the room of its rows is given back.
 * A later end gives its number to files to come: no sample has it any more.
 */
void files_release_unused(struct walk_files *f, struct walk_tables *tables);

/* From now on the kernel's program knows the files, those that are there and new ones. */
void files_tell_kernel(struct walk_files *f, int inodes_fd);

/* The number of tables that are still to be made. */
size_t files_n_waited_for(struct walk_files *f);

/* Make this file's table next: samples have met it. */
void files_hurry(struct walk_files *f, uint32_t number);

/*
 * files_put_tables - put the tables that were made since the last call into the kernel
 *
 * @on_ready  called for each; the file's pages are set
 * A table that has no room is left out; the file's note says so. Returns 0; -ENOMEM.
 */
int files_put_tables(struct walk_files *f, struct walk_tables *tables,
		     void (*on_ready)(void *ctx, uint32_t number, const struct walk_file *file),
		     void *ctx, struct cairn_err *err);

#endif
