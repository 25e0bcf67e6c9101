/* SPDX-License-Identifier: BSD-2-Clause */
/* The memory of the kernel that runs, as /proc/kcore has it. */
#ifndef KERNEL_KCORE_H
#define KERNEL_KCORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A kernel has some ten; more are not looked at. */
enum { KCORE_SEGMENTS_MAX = 256 };

struct kcore_segment {
	uint64_t at, n_bytes, off;
};

struct kcore {
	int fd;
	size_t n;
	struct kcore_segment segments[KCORE_SEGMENTS_MAX];
};

/*
 * kcore_open - where in a core file the parts of memory are
 *
 * @fd  of an ELF core of 64 bits, little-endian; the caller's, until nothing is read any more. One
 *      that is negative, or none, or cannot be read, has no memory.
 */
void kcore_open(struct kcore *k, int fd);

/* The @n bytes at @at; false: they are not there as a whole, and *@ret means nothing. */
bool kcore_read(const struct kcore *k, uint64_t at, void *ret, size_t n);

#endif
