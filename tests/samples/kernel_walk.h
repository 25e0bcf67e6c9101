/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's walk, as it is, over tables and memory of this process
 *
 * Of the program that includes this: walk_tables, walk_segments and walk_read.
 */
#ifndef SAMPLES_KERNEL_WALK_H
#define SAMPLES_KERNEL_WALK_H

#include <stdint.h>
#include <string.h>

#include <linux/types.h>

#include "walk/tables.h"

#undef __always_inline
#define __always_inline inline __attribute__((always_inline))
#undef __noinline
#define __noinline static __attribute__((noinline, unused))

#define WALK_HEAD                                                                                  \
	struct {                                                                                   \
		uint64_t none;                                                                     \
	}
#define WALK_OWN uint64_t
#include "walk/bpf/walk.bpf.h"

static struct walk_tables walk_tables;
static struct walk_segment *walk_segments;
static size_t n_walk_segments;
static struct cached walk_cache[WALK_CACHE_SLOTS];
static struct cached_row walk_rows[WALK_CACHE_SLOTS];
static struct walk_region *walk_regions;
static size_t n_walk_regions;
/* 0, or negative when the bytes are not there. */
static long walk_read(void *to, uint32_t n, uint64_t from);

/* No mapping is here that was not reported. */
int learn_segment(struct walk *w, __u64 at)
{
	return 0;
}

static inline struct walk_segment *segment_at(__u32 i)
{
	return i < n_walk_segments ? &walk_segments[i] : NULL;
}

static inline struct walk_page *page_at(__u32 i)
{
	return i < walk_tables.n_pages ? chunks_at(&walk_tables.pages, i) : NULL;
}

static inline struct rows_element *rows_at(__u32 chunk, __u32 element)
{
	if (chunk >= walk_tables.rows.blocks.n || element >= WALK_CHUNK_ROWS / ROWS_PER_ELEMENT)
		return NULL;
	return (struct rows_element *)walk_tables.rows.blocks.p[chunk] + element;
}

static inline struct walk_rule *rule_at(__u32 number)
{
	return number <= WALK_MAX_RULES ? &walk_tables.rules[number] : NULL;
}

static inline struct cached *cache_slot(__u32 i)
{
	return i < WALK_CACHE_SLOTS ? &walk_cache[i] : NULL;
}

static inline struct cached_row *row_slot(__u32 i)
{
	return i < WALK_CACHE_SLOTS ? &walk_rows[i] : NULL;
}

static inline struct walk_region *region_at(__u32 i)
{
	return i < n_walk_regions ? &walk_regions[i] : NULL;
}

static inline long read_user(void *to, __u32 n, __u64 from)
{
	return walk_read(to, n, from);
}

#endif
