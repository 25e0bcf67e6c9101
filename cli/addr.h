/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `cairn addr` share: from an address of a file or a process to frames, and how they are written. */
#ifndef CLI_ADDR_H
#define CLI_ADDR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <cairn/pack.h>

#include "sidecar.h"

/* Where addresses belong: one file, or what a process has mapped. */
struct addr_space;

/* @word is a file, a sidecar or a process; an exit status. */
int addr_space_open(const char *word, const struct cairn_binary_opts *opts, const struct sidecar_wish *wish,
		    struct addr_space **ret);
void addr_space_close(struct addr_space *space);

/* What is known of one address. */
struct addr_answer {
	uint64_t addr;
	const char *path; /* of a process: the file that is mapped there; NULL: nothing is, or there is one file only */
	uint64_t vaddr;   /* link-time address in it */
	size_t n;
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
};

/* @back: look up the byte before, as for a return address. */
void addr_space_ask(struct addr_space *space, uint64_t addr, bool back, struct addr_answer *ret);

void addr_text(FILE *out, const struct addr_answer *answer);
void addr_json(FILE *out, const struct addr_answer *answer);

#endif
