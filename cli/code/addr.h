/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of `cairn addr` share this: from an address of a file or a process to frames, and their
 * output.
 */
#ifndef CLI_ADDR_H
#define CLI_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/code.h>
#include <cairn/sidecar.h>

#include "sidecar.h"

/* The space of addresses: one file, or the mappings of a process. */
struct addr_space;

/* @word is a file, a sidecar or a process; an exit status. */
int addr_space_open(const char *word, const struct cairn_binary_opts *opts,
		    const struct sidecar_wish *wish, struct addr_space **ret);
/*
 * STATUS_DAMAGED when answers are missing because a sidecar could not be believed, else STATUS_YES.
 */
int addr_space_status(const struct addr_space *space);
/* For an object file, reports on standard error why addresses may belong to nothing. */
void addr_space_tell_object(const struct addr_space *space);
void addr_space_close(struct addr_space *space);

/* Copies that begin at one address; a kernel has up to 8. */
enum { ADDR_BEGIN_MAX = 16 };

/* The facts about one address. */
struct addr_answer {
	uint64_t addr;
	/*
	 * of a process: the file that is mapped there; NULL: nothing is, or there is one file only
	 */
	const char *path;
	uint64_t vaddr; /* link-time address in it */
	/* of a process, if no file is mapped: the owner of the code; NULL: none */
	const struct cairn_code_range *code;
	size_t n;
	const struct cairn_frame *frames;
	/* of BTF, without lines: the functions of which a copy begins exactly there */
	size_t n_begin;
	const char *begin[ADDR_BEGIN_MAX];
};

/*
 * @back: look up the byte before, as for a return address. @frames: room for CAIRN_FRAMES_MAX of
 * the answer.
 */
void addr_space_ask(struct addr_space *space, uint64_t addr, bool back, struct cairn_frame *frames,
		    struct addr_answer *ret);

/* How many addresses belonged to something, and how many to nothing. */
struct addr_tally {
	uint64_t n_known, n_unknown;
};

/* addr_text() or addr_json(). The latter writes to the text's file at once. */
struct text;
typedef void addr_writer(struct text *to, const struct addr_answer *answer);

/* Up to @room addresses that are answered at once. NULL: no memory. */
struct addr_batch *addr_batch_new(size_t room);
void addr_batch_free(struct addr_batch *b);
/* True when there is no room for a further one. */
bool addr_batch_add(struct addr_batch *b, uint64_t addr);
/*
 * Answers on stdout, in the order in which they were added, and empties the batch. An exit status.
 */
int addr_batch_answer(struct addr_batch *b, struct addr_space *space, bool back,
		      addr_writer *writer, struct addr_tally *tally);

addr_writer addr_text, addr_json;

#endif
