/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module code finds the owner of each address of a process: files, and code made at run time.
 *
 * This header: the code space, which tells from which file the code at an address is.
 *
 * A mapping leads to an image, which is a file (or the vDSO) with its unwind table. An image is
 * opened when the first address in it is looked up, and stays while mappings come and go.
 */
#ifndef CODE_SPACE_H
#define CODE_SPACE_H

#include <cairn/addr.h>
#include <cairn/binary.h>
#include <cairn/sidecar.h>

#include "cfi/table.h"
#include "code/maps.h"

struct code_image {
	const char *path;         /* as the process's maps name it */
	struct cairn_binary *bin; /* NULL: it cannot be read, see note */
	/* its sidecar, which has the table; NULL: none, or not queried yet */
	struct cairn_sidecar *sidecar;
	/*
	 * n_rows 0 when it has no call frame information that can be read, and after
	 * code_space_peek()
	 */
	struct unwind_table table;
	char note[CAIRN_ERR_MSG_MAX]; /* why something is missing; "" */
};

/* How a mapped file is opened; a core's files are looked for otherwise than a process's. */
struct code_source {
	/*
	 * @ret is the caller's; it stays NULL, with an error, when there is none. @ret_bytes: what
	 * @ret borrows and is freed after it, or left NULL. Returns 0, -ENOMEM.
	 */
	int (*open)(void *ctx, const struct code_mapping *m, struct cairn_binary **ret,
		    uint8_t **ret_bytes, struct cairn_err *err);
	void *ctx;
	unsigned int threads; /* for making tables; 0: one per processor */
};

/* The source of sidecars; as find_sidecar of struct cairn_stacks_opts. */
struct code_sidecars {
	int (*find)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
		    struct cairn_err *err);
	void *ctx;
};

struct code_space;

/*
 * code_space_new - the code of a process
 *
 * @maps    taken over, also after an error
 * @source  copied
 * Returns 0, -ENOMEM.
 */
int code_space_new(struct code_maps *maps, const struct code_source *source,
		   struct code_space **ret, struct cairn_err *err);
void code_space_free(struct code_space *space); /* takes NULL */

/*
 * Take the tables of images from sidecars, where there are some. Before the first
 * code_space_find().
 */
void code_space_use_sidecars(struct code_space *space, const struct code_sidecars *sidecars);

/* Replace the mappings; images of files that are still mapped stay. @maps is taken over. */
void code_space_remap(struct code_space *space, struct code_maps *maps);

const struct code_maps *code_space_maps(const struct code_space *space);

/*
 * code_space_find - the image whose code is at @at
 *
 * @ret_image  borrowed; NULL when no file is mapped there
 * @ret_at     link-time address in it; valid when its bin is there
 * Returns 0, -ENOMEM. Cost: O(log mappings) once an image is open. Threads: one at a time.
 */
int code_space_find(struct code_space *space, struct cairn_addr at,
		    const struct code_image **ret_image, struct cairn_vaddr *ret_at,
		    struct cairn_err *err);

/* The same without its unwind table, which costs more than all the rest. */
int code_space_peek(struct code_space *space, struct cairn_addr at,
		    const struct code_image **ret_image, struct cairn_vaddr *ret_at,
		    struct cairn_err *err);

/*
 * code_space_fde - the function at @at, or the part of it, by the file's call frame information
 *
 * @ret_lo, @ret_hi  link-time addresses [lo, hi), set with 1
 * Returns 1; 0: no file is mapped there, none of its FDEs has it, or they cannot be read; -ENOMEM.
 * Cost: cfi_open() once for each image. Threads: one at a time.
 */
int code_space_fde(struct code_space *space, struct cairn_addr at, struct cairn_vaddr *ret_lo,
		   struct cairn_vaddr *ret_hi, struct cairn_err *err);

/*
 * code_open_mapped - the file that a process has mapped at @m, or the vDSO
 *
 * By its name as the process sees it, or by the mapping if another file has that name now.
 * @ret        cairn_binary_close(); NULL, with an error, when it cannot be opened
 * @ret_bytes  what *@ret borrows and is freed after it, or left as it is
 * Returns 0, -ENOMEM.
 */
int code_open_mapped(int pid, const struct code_mapping *m, struct cairn_binary **ret,
		     uint8_t **ret_bytes, struct cairn_err *err);

/*
 * code_space_open_pid - the code of a running process
 *
 * Files are opened as the process sees them, through /proc/PID/root, and by their mapping when they
 * were deleted or replaced; the vDSO is read from its memory.
 * Returns 0; as code_maps_read().
 */
int code_space_open_pid(int pid, unsigned int threads, struct code_space **ret,
			struct cairn_err *err);

/* Read the mappings of the process again. */
int code_space_refresh_pid(struct code_space *space, int pid, struct cairn_err *err);

#endif
