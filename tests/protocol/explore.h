/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All that a reader can see of a writer
 *
 * The writer is the real one: its stores are recorded while it works (recorded_stores.h), with
 * their order. What is explored is in which order they become visible: a store may pass earlier
 * ones unless it is a store-release, goes to the same word, or a fence is between them. The writer
 * may stop for ever after any of them, as by kill -9. Readers read one word at a time, and between
 * two of their reads any stores may become visible.
 *
 * Not every interleaving is walked through, but every thing that a reader can see. What it read
 * makes some stores visible for certain, with all that had to be visible before them. Its next read
 * of a word gives the last of those to that word, or what any later store put there, since all else
 * may become visible at any time or never. The two differ in nothing that a reader can tell.
 *
 * A reader is a function that asks view_word() for words and returns what it concludes. It is run
 * again from its start for each word more, with those that it has read before: so the words are all
 * its state.
 */
#ifndef PROTOCOL_EXPLORE_H
#define PROTOCOL_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- recording ---- */

/*
 * Stores to [@at, @at + @n_bytes) are of interest; what is there when this is called is what
 * readers see at first.
 */
void record_memory(const void *at, size_t n_bytes);
void record_start(void);
void record_stop(void);
size_t recorded(void); /* stores so far: a moment, for the claims below */
void record_forget(void);

/* ---- exploring ---- */

struct view;

/* The word at @at now; the reader's next read. */
uint64_t view_word(struct view *v, uint64_t at);

struct explorer {
	/* What is concluded, after any number of view_word(); it may keep state nowhere else. */
	uint64_t (*read)(struct view *v);
	/*
	 * Whether that may be: it began when all stores before @from were visible, and may have
	 * ended when none from @to on was.
	 */
	bool (*is_right)(uint64_t result, size_t from, size_t to);
	/*
	 * As if nothing ordered the stores: to show that it is seen. Ends at the first wrong
	 * result.
	 */
	bool is_lawless;
	/* Words that the reader never asks for need not be told apart. NULL: all matter. */
	bool (*is_of_interest)(uint64_t at);
};

struct explored {
	uint64_t n_states;  /* visible stores and words read */
	uint64_t n_results; /* ends of the reader */
	uint64_t n_wrong;
	uint64_t wrong;  /* the first wrong one */
	size_t n_stores; /* of interest */
};

/*
 * explore - all that readers can see that begin at these moments or later
 *
 * A result that was right once, and is not when the reader begins later, needs that later moment
 * among them: the ends of what it may tell. Exits when there is no memory.
 */
void explore(const struct explorer *e, const size_t *from, size_t n_from, struct explored *ret);

#endif
