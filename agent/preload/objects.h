/* SPDX-License-Identifier: BSD-2-Clause */
/* The ELF objects of this process, registered: one registration for each range of code. */
#ifndef AGENT_OBJECTS_H
#define AGENT_OBJECTS_H

/*
 * objects_update - register the objects loaded since the last time
 *
 * Cost: O(1) when the loader has loaded nothing since. Threads: any. Signals: no, as
 * dl_iterate_phdr(3). errno is kept.
 */
void objects_update(void);

/* The object that @inside is an address of is being unloaded. Takes NULL, and addresses of none. */
void objects_remove(const void *inside);

#endif
