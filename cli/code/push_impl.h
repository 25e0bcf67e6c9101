/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of a push: push_open.c, push_add.c, push.c, push_report.c. */
#ifndef CLI_PUSH_IMPL_H
#define CLI_PUSH_IMPL_H

#include "push.h"
#include "push_http.h"

/* Sends a batch from memory, where the spool cannot be written. An exit status, after a message. */
int push_unspooled(struct push *p, const struct batch *b);

enum push_word {
	WORD_SENT,
	WORD_TWICE,
	WORD_REFUSED,
	WORD_WAITS,
	WORD_LOST,
};

/* A line about a batch, or an object. */
void push_tell_batch(const struct push *p, const struct batch *b, enum push_word word,
		     const struct http_answer *answer);

#endif
