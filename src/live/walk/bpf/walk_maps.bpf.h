/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The tables of a walk as maps, and the memory of the running task. */
#ifndef WALK_WALK_MAPS_BPF_H
#define WALK_WALK_MAPS_BPF_H

#include "walk.bpf.h"

/* Sizes and no types: clang leaves out the types of maps in maps. */
#define CHUNK(name, n, type_of_value)                                                              \
	struct chunk_##name {                                                                      \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                  \
		__uint(max_entries, n);                                                            \
		__uint(map_flags, BPF_F_MMAPABLE);                                                 \
		__uint(key_size, 4);                                                               \
		__uint(value_size, sizeof(type_of_value));                                         \
	}

CHUNK(rows, WALK_CHUNK_ROWS / ROWS_PER_ELEMENT, struct rows_element);
CHUNK(pages, WALK_CHUNK_PAGES, struct walk_page);
CHUNK(segments, WALK_CHUNK_SEGMENTS, struct walk_segment);
CHUNK(regions, WALK_CHUNK_REGIONS, struct walk_region);

#define CHUNKS(name)                                                                               \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);                                          \
		__uint(max_entries, WALK_MAX_CHUNKS);                                              \
		__type(key, __u32);                                                                \
		__array(values, struct chunk_##name);                                              \
	} name SEC(".maps")

CHUNKS(rows);
CHUNKS(pages);
CHUNKS(segments);
CHUNKS(regions);

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_MAX_RULES + 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct walk_rule);
} rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_CACHE_SLOTS); /* for each processor */
	__type(key, __u32);
	__type(value, struct cached);
} cache SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, WALK_CACHE_SLOTS); /* for each processor */
	__type(key, __u32);
	__type(value, struct cached_row);
} row_cache SEC(".maps");

static __always_inline struct walk_segment *segment_at(__u32 i)
{
	__u32 chunk = i / WALK_CHUNK_SEGMENTS, in = i % WALK_CHUNK_SEGMENTS;
	void *map = bpf_map_lookup_elem(&segments, &chunk);

	return map ? bpf_map_lookup_elem(map, &in) : NULL;
}

static __always_inline struct walk_page *page_at(__u32 i)
{
	__u32 chunk = i / WALK_CHUNK_PAGES, in = i % WALK_CHUNK_PAGES;
	void *map = bpf_map_lookup_elem(&pages, &chunk);

	return map ? bpf_map_lookup_elem(map, &in) : NULL;
}

static __always_inline struct rows_element *rows_at(__u32 chunk, __u32 element)
{
	void *map = bpf_map_lookup_elem(&rows, &chunk);

	return map ? bpf_map_lookup_elem(map, &element) : NULL;
}

static __always_inline struct walk_rule *rule_at(__u32 number)
{
	return bpf_map_lookup_elem(&rules, &number);
}

static __always_inline struct cached *cache_slot(__u32 i)
{
	return bpf_map_lookup_elem(&cache, &i);
}

static __always_inline struct cached_row *row_slot(__u32 i)
{
	return bpf_map_lookup_elem(&row_cache, &i);
}

static __always_inline struct walk_region *region_at(__u32 i)
{
	__u32 chunk = i / WALK_CHUNK_REGIONS, in = i % WALK_CHUNK_REGIONS;
	void *map = bpf_map_lookup_elem(&regions, &chunk);

	return map ? bpf_map_lookup_elem(map, &in) : NULL;
}

static __always_inline long read_user(void *to, __u32 n, __u64 from)
{
	return bpf_probe_read_user(to, n, (void *)from);
}

#endif
