/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers for another ABI than this machine's: clang finds its own, or else this machine's, with a
 * note.
 */
#ifndef CLI_LAYOUT_HEADERS_H
#define CLI_LAYOUT_HEADERS_H

#include "layout.h"

struct compiler_words;

struct layout_headers {
	const struct cairn_abi *abi;
	char folder[32]; /* of files that stand in for missing ones; "": none are needed */
};

/* An exit status. To be closed in any case. */
int layout_headers_open(struct layout_headers *h, const struct cairn_abi *abi);
void layout_headers_close(struct layout_headers *h);

/* The options of Clang that have it look there last. */
void layout_headers_words(const struct layout_headers *h, struct compiler_words *w);

/*
 * Reports on stderr if @text, which names files that were read, names one of this machine's. @path
 * is the requested file.
 */
void layout_headers_tell(const struct layout_headers *h, const char *path, const char *text,
			 size_t size);

#endif
