/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of frames that were written before
 *
 * The threads of a pool stand at the same addresses, and a recursion is at one address many times.
 * So the text for an address of a file is found and written once. A hash table of open addressing,
 * never more than half full.
 */
#ifndef CLI_STACK_MEMO_H
#define CLI_STACK_MEMO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stack_memo_key {
	const void *bin; /* NULL: an empty slot */
	uint64_t vaddr, pc;
};

/* Whole lines, each with room for a number at its begin, which may be overwritten. */
struct stack_lines {
	char *text;
	size_t n, n_lines; /* bytes; lines */
};

struct stack_memo_entry {
	struct stack_memo_key key;
	size_t at, n, n_lines; /* of the text */
};

struct stack_memo {
	struct stack_memo_entry *slots;
	size_t n_slots, n_used; /* a power of two */
	char *text;
	size_t n_text, text_room;
};

/* The lines kept for @key, until the next stack_memo_put(); false when there are none. */
bool stack_memo_find(const struct stack_memo *memo, const struct stack_memo_key *key,
		     struct stack_lines *ret);

/* Keep a copy of @lines for @key, which has none. Nothing is kept when there is no memory. */
void stack_memo_put(struct stack_memo *memo, const struct stack_memo_key *key,
		    const struct stack_lines *lines);

void stack_memo_fini(struct stack_memo *memo);

#endif
