/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checksums of a file that this project wrote
 *
 * A disk, a copy or a careless tool changes bytes, and a sidecar of other bytes gives other
 * answers. So a sidecar begins with a section .cairn.seal, which has a CRC-32 (that of zlib and
 * gzip) for every KiB of the file:
 *
 *	OFFSET  SIZE   MEANING
 *	0       64     ELF header
 *	64      8      "cairnsum"
 *	72      8      size of the file
 *	80      4      number of pages
 *	84      4      CRC-32 of bytes 0 to the end of this section, where this field counts as 0
 *	88      4 x n  CRC-32 of each page; then zeros up to a multiple of 8
 *	...            pages of 1024 bytes; the last one ends with the file
 *
 * Opening checks the head, which ends with the section. A page is checked when it is first read, so
 * a question about one function of a 32 MB file costs some dozens of pages. No byte of the file is
 * outside of both. Records are small and far apart, so pages are small, too: pages of 4 KiB would
 * save three quarters of opening, and double the cost of a question about 2,000 places.
 *
 * A CRC-32 finds every damage of up to 32 adjacent bits, and misses one in 2^32 of any other. It
 * does not stop an attacker: the writer of the bytes also writes the checksums.
 */
#ifndef ELF_GUARD_H
#define ELF_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/err.h>

#define GUARD_SECTION  ".cairn.seal"
/* The section of files that must have checksums. */
#define SIDECAR_HEADER ".cairn"

enum {
	GUARD_PAGE = 1024,
	GUARD_AT = 64,               /* where the section begins */
	GUARD_HEAD = 24,             /* bytes of the section before the checksums */
	GUARD_MAX_READ = GUARD_PAGE, /* bytes that guard_near() vouches for */
};

/* The state of a page. */
enum {
	GUARD_GOOD = 1,
	GUARD_GOOD_WITH_NEXT = 2,
};

struct guard {
	const uint8_t *file, *pages; /* where the file and its first page begin */
	size_t n_bytes;              /* of all pages */
	size_t n_pages;
	const uint8_t *sums;
	uint8_t *state; /* of each page; only ever set, by any thread */
	uint64_t bad;   /* 1 + offset of the first damaged page that was met; 0: none */
};

/* Bytes of a section that covers @n_bytes after it. */
size_t guard_section_size(size_t n_bytes);

/*
 * guard_seal - fill in the section of a file that is complete but for it; the section has the right
 * size.
 */
void guard_seal(uint8_t *file, size_t size);

/*
 * guard_open - check the head of a file
 *
 * @ret  guard_close(); NULL for a file that has no such section
 * Returns 0; -EBADMSG (err: the difference); -ENOMEM. Cost: the head is read, 1 byte for 250 of the
 * file: 50 microseconds for 32 MB.
 */
int guard_open(const uint8_t *file, size_t size, const char *name, struct guard **ret,
	       struct cairn_err *err);
void guard_close(struct guard *g); /* takes NULL */

/*
 * guard_check - whether the pages of @n bytes at @p, which lie in the file, are as they were
 * written
 *
 * Cost: a byte per page that was checked before, else some 400 instructions. No allocation.
 * Threads: any. Signals: safe.
 */
bool guard_check(struct guard *g, const uint8_t *p, size_t n);

/* guard_near() for a page that it does not know yet. */
bool guard_check_near(struct guard *g, size_t page);

/*
 * The same for up to GUARD_MAX_READ bytes, which may end after the file: for reads of which there
 * are millions.
 */
static inline bool guard_near(struct guard *g, const uint8_t *p)
{
	if (!g)
		return true;
	size_t page = (size_t)(p - g->pages) / GUARD_PAGE;
	return __builtin_expect(__atomic_load_n(&g->state[page], __ATOMIC_RELAXED) &
					GUARD_GOOD_WITH_NEXT,
				1) ||
	       guard_check_near(g, page);
}

/* 0; -EBADMSG when a page was damaged that guard_check() met (err: its offset). @name is shown. */
int guard_verdict(const struct guard *g, const char *name, struct cairn_err *err);

/* guard_check_all - check all pages; as guard_verdict(). */
int guard_check_all(struct guard *g, const char *name, struct cairn_err *err);

#endif
