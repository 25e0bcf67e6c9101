/* SPDX-License-Identifier: BSD-2-Clause */
/* The hash of the index of names; part of the format: FNV-1a on 32 bits, its halves mixed at the end. */
#ifndef PACK_NAME_HASH_H
#define PACK_NAME_HASH_H

#include <stdint.h>

static inline uint32_t pack_name_hash(const char *name)
{
	uint32_t h = 2166136261u;
	for (; *name; name++)
		h = (h ^ (uint8_t)*name) * 16777619u;
	return h ^ h >> 15;
}

#endif
