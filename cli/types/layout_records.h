/* SPDX-License-Identifier: BSD-2-Clause */
/* Ring buffers, perf buffers and maps: how long a record is where it is read. */
#ifndef CLI_LAYOUT_RECORDS_H
#define CLI_LAYOUT_RECORDS_H

#include <cairn/types.h>

#include "json.h"

/* The ways that records can go by. */
struct layout_ways {
	bool ring, perf, map;
};

struct layout_record {
	uint64_t size;     /* bytes of the struct */
	uint64_t perf;     /* of a sample that holds it */
	uint64_t believed; /* bytes that its reader takes it for */
	bool flexible;     /* it ends in a flexible array: @size is the least */
};

/* Those of a BPF object's maps; all of them when it defines none. */
struct layout_ways layout_ways_of(const struct cairn_types *types);
struct layout_record layout_record_of(const struct cairn_types *types, uint32_t id,
				      uint64_t believed);

/* The effect of the reader's size on each way; nothing when it is right everywhere. */
void layout_print_record(const struct layout_record *r, const struct layout_ways *ways);
/* "record": docs/json.md. */
void layout_json_record(struct json *j, const struct layout_record *r,
			const struct layout_ways *ways);

/*
 * A struct from which libbpf makes a map: pointers called type, key, max_entries... No record has
 * it.
 */
bool layout_is_map_definition(const struct cairn_types *types, uint32_t id);

#endif
