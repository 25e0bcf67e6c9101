/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The files of `cairn code` share this: ranges, their output, and what is new about them.
 */
#ifndef CLI_CODE_H
#define CLI_CODE_H

#include <cairn/code.h>

#include "style.h"

/* Beside a range that is listed while the process is followed. */
enum code_event { CODE_THERE, CODE_ADDED, CODE_REMOVED, CODE_CHANGED };

/* A line, and one more when it is not trusted or something is wrong with a part of it. */
void code_text(FILE *out, const struct cairn_code_range *r, enum code_event event);
void code_text_head(FILE *out);
/* One object. */
void code_json(FILE *out, const struct cairn_code_range *r, enum code_event event);

/* The notes of a handle: on standard error, or as objects. */
void code_notes(const struct cairn_code *code, bool json);

/* The owner of an address, and the functions there. @r may be NULL. */
void code_at_text(FILE *out, struct cairn_addr at, const struct cairn_code_range *r,
		  const struct cairn_frame *frames, int n, uint64_t off);
void code_at_json(FILE *out, struct cairn_addr at, const struct cairn_code_range *r,
		  const struct cairn_frame *frames, int n, uint64_t off);

/* Ranges as they were seen last; zeroed before the first use. */
struct code_seen {
	struct code_seen_range *p;
	size_t n;
};

/*
 * code_follow - report the changes, and keep the present state
 *
 * @is_wanted  of the ranges that are followed
 * Returns the number of changes reported; -ENOMEM.
 */
int code_follow(struct code_seen *seen, const struct cairn_code *code, bool json,
		bool (*is_wanted)(const struct cairn_code_range *r, void *ctx), void *ctx);
void code_seen_fini(struct code_seen *seen);

#endif
