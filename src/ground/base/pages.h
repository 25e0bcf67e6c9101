/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for large tables
 *
 * A hash table of a kernel's types has 16 MB. In pages of 4 KiB each page costs a fault, and nearly
 * each look-up an entry of the processor's cache of addresses that another page needed. So the
 * system is asked for large pages for a table that fills some; it need not follow. Tables smaller
 * than such a page come from the allocator; of a larger table less than one page is lost.
 */
#ifndef BASE_PAGES_H
#define BASE_PAGES_H

#include <stddef.h>

/*
 * pages_zeroed - memory for @n items of @size bytes, all zero
 *
 * Returns NULL when out of memory. A few items come from calloc(). Threads: any.
 */
void *pages_zeroed(size_t n, size_t size);

/*
 * pages_cleared - the same for memory that is read at random before it is written, as a hash table
 * is
 *
 * A page that is read first is the system's page of zeros, and the first write changes the
 * address's mapping, which all processors have to be notified of. So all pages are made now, which
 * takes the memory of all of them.
 */
void *pages_cleared(size_t n, size_t size);

/*
 * pages_grown - the same memory with room for @want items instead of @n
 *
 * @p  from pages_zeroed() or here, for @n items; NULL for none
 * Returns it, usually at another address, with the bytes after the @n items not cleared; NULL when
 * out of memory: @p stays. Cost: pages are moved and not copied, once they are large ones. Threads:
 * any.
 */
void *pages_grown(void *p, size_t n, size_t want, size_t size);

/* Give it back; @n and @size as they were. Takes NULL. */
void pages_free(void *p, size_t n, size_t size);

#endif
