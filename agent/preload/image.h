/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The facts that an ELF object loaded in this process gives about itself, in memory and in its
 * file.
 */
#ifndef AGENT_IMAGE_H
#define AGENT_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	IMAGE_PATH_MAX = 4096,
	/* a debug link is the name of a file, without a directory: NAME_MAX */
	IMAGE_LINK_MAX = 256,
};

/* Addresses of this process; 0 where there is nothing. */
struct image {
	uint64_t base;   /* the number added to the addresses in its headers */
	uint64_t lo, hi; /* of all its segments */
	const ElfW(Phdr) *headers;
	size_t n_headers;
	uint64_t build_id;
	uint32_t build_id_bytes;
	uint64_t eh_frame_hdr, eh_frame_hdr_end;
	uint64_t sframe, sframe_end;
};

/* The part that takes system calls. */
struct image_file {
	/* "": not known, or the file at the object's name is another one */
	char path[IMAGE_PATH_MAX];
	char debug_link[IMAGE_LINK_MAX]; /* "": none */
	uint32_t debug_link_crc;
};

/* From the program headers. False when it has no segment. */
bool image_of(const struct dl_phdr_info *info, struct image *ret);

/*
 * image_file - the object's file, when it can be read and is the one that was loaded
 *
 * @name  as the loader knows it: "" is the program, a relative one is of the working directory
 * Cost: half a dozen system calls; descriptors are closed again. errno is not kept.
 */
void image_file(const struct image *image, const char *name, struct image_file *ret);

#endif
