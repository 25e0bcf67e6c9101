/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A registry as another process sees it, by the letter of cairn/shared/codectl.h and with nothing
 * of our reader
 *
 *	struct view v;
 *	assert_true(view_find(pid, &v));
 *	assert_true(view_read(&v));
 *	const struct codectl_entry *e = view_at(&v, address);
 */
#ifndef SAMPLES_CODECTL_VIEW_H
#define SAMPLES_CODECTL_VIEW_H

#include <cairn/shared/codectl.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum { VIEW_ROWS_MAX = 1 << 16 };

struct view {
	pid_t pid;
	uint64_t at; /* the registry */
	struct codectl_registry head;
	struct codectl_entry *entries;
	uint32_t n, room;
};

/* The last mapping of that name with the magic number; false when there is none. */
bool view_find(pid_t pid, struct view *ret);
bool view_read(struct view *v); /* the entries of this moment; false when they cannot be read */
void view_free(struct view *v);

/* The valid entry at @address, of two the one with the higher epoch; NULL. */
const struct codectl_entry *view_at(const struct view *v, uint64_t address);
size_t view_count(const struct view *v); /* valid ones */

/*
 * The NUL-terminated string at @at; "" for 0, NULL when it cannot be read. Overwritten by the next
 * call.
 */
const char *view_string(const struct view *v, uint64_t at);

/*
 * The elements of a chain, at most @max, @stride bytes each, also withdrawn ones. Returns how many,
 * or -1 when the chain is not one: lengths that do not fit, elements that do not ascend.
 */
long view_chain(const struct view *v, uint64_t head, size_t stride, void *ret, size_t max);

/* The row that covers @address, in @rows. */
const struct code_jit_unwind_fre *view_row(const struct code_jit_unwind_fre *rows, long n,
					   uint64_t off);

#endif
