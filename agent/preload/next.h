/* SPDX-License-Identifier: BSD-2-Clause */
/* The function that a caller would have called if this library were not there. */
#ifndef AGENT_NEXT_H
#define AGENT_NEXT_H

struct next {
	const char *name;
	/*
	 * in the global scope, where all callers find the same; NULL: not looked for, or not there
	 */
	void *found;
};

/*
 * next_function - the definition after that of this library
 *
 * @caller  an address in the object that called it
 * Returns NULL when there is none. Cost: a load once it was found in the global scope; before, a
 * search of the loader, some microseconds. Threads: any. Signals: no.
 */
void *next_function(struct next *next, const void *caller);

/* An object was unloaded: it may have been the one that had it. */
void next_forget(struct next *next);

#endif
