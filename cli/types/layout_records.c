/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How records reach their reader
 *
 *	ring buffer  a record is as long as the program reserved: exactly the struct, or more with a
 *	             flexible array. It begins at a multiple of 8
 *	perf buffer  4 bytes of length, then the record, the two together padded to 8: a struct of
 *	             280 bytes arrives with 284. It begins 4 bytes after a multiple of 8
 *	map          the kernel copies exactly value_size bytes into the reader's buffer
 *
 * So a reader that takes another size for the struct than the program does loses bytes, reads
 * garbage or has its memory overwritten, which of them depends on the way.
 */
#include <inttypes.h>
#include <string.h>

#include "layout_records.h"
#include "say.h"

/* enum bpf_map_type */
enum { MAP_PERF_EVENT_ARRAY = 4, MAP_RINGBUF = 27 };

/*
 * struct { __uint(type, BPF_MAP_TYPE_RINGBUF); ... }: a pointer to an array; its number of elements
 * is the type.
 */
static uint64_t map_type_of(const struct cairn_types *types, const struct cairn_type *t)
{
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_member *m = &t->members[i];
		const struct cairn_type *p = cairn_types_get(types, m->type);

		if (!m->name || strcmp(m->name, "type") || p->kind != CAIRN_T_PTR)
			continue;
		p = cairn_types_get(types, p->ref);
		return p->kind == CAIRN_T_ARRAY ? p->count : 0;
	}
	return 0;
}

static bool is_word_of_maps(const char *name)
{
	static const char *const words[] = {"type",      "key",        "value",     "max_entries",
					    "key_size",  "value_size", "map_flags", "map_extra",
					    "numa_node", "pinning",    "values"};

	for (size_t i = 0; name && i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(name, words[i]))
			return true;
	return false;
}

bool layout_is_map_definition(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));

	if (t->kind == CAIRN_T_STRUCT && t->name && !strcmp(t->name, "bpf_map_def"))
		return true;
	if (t->kind != CAIRN_T_STRUCT || !map_type_of(types, t))
		return false;
	for (uint32_t i = 0; i < t->n_members; i++) {
		const struct cairn_type *m =
			cairn_types_get(types, cairn_types_resolve(types, t->members[i].type));

		if (m->kind == CAIRN_T_ARRAY)
			m = cairn_types_get(types, cairn_types_resolve(types, m->ref));
		if (m->kind != CAIRN_T_PTR || !is_word_of_maps(t->members[i].name))
			return false;
	}
	return true;
}

struct layout_ways layout_ways_of(const struct cairn_types *types)
{
	struct layout_ways ways = {0};

	for (uint32_t id = 1; id < cairn_types_n_types(types); id++) {
		const struct cairn_type *t = cairn_types_get(types, id);
		uint64_t type = t->kind == CAIRN_T_STRUCT && !t->name ? map_type_of(types, t) : 0;

		ways.ring |= type == MAP_RINGBUF;
		ways.perf |= type == MAP_PERF_EVENT_ARRAY;
		ways.map |= type && type != MAP_RINGBUF && type != MAP_PERF_EVENT_ARRAY;
	}
	/* Nothing is known of maps: it may be any of them. */
	if (!ways.ring && !ways.perf && !ways.map)
		ways = (struct layout_ways){true, true, true};
	return ways;
}

static bool is_flexible(const struct cairn_types *types, uint32_t id)
{
	const struct cairn_type *t = cairn_types_get(types, cairn_types_resolve(types, id));

	if (t->kind != CAIRN_T_STRUCT || !t->n_members)
		return false;
	t = cairn_types_get(types, cairn_types_resolve(types, t->members[t->n_members - 1].type));
	return t->kind == CAIRN_T_ARRAY && !t->count;
}

struct layout_record layout_record_of(const struct cairn_types *types, uint32_t id,
				      uint64_t believed)
{
	uint64_t size = cairn_types_size(types, id);

	return (struct layout_record){.size = size,
				      .perf = ((size + 4 + 7) & ~UINT64_C(7)) - 4,
				      .believed = believed,
				      .flexible = is_flexible(types, id)};
}

static void print_short(const struct layout_record *r, const struct layout_ways *ways)
{
	uint64_t lost = r->size - r->believed;

	if (ways->ring)
		say(stdout,
		    "    ring buffer: a record has %" PRIu64 " bytes, %" PRIu64
		    " more than are read\n",
		    r->size, lost);
	if (ways->map)
		say(stdout,
		    "    map: the kernel copies %" PRIu64 " bytes into a value of %" PRIu64
		    ", %" PRIu64 " after it\n",
		    r->size, r->believed, lost);
}

static void print_long(const struct layout_record *r, const struct layout_ways *ways)
{
	uint64_t after = r->believed - r->size;

	if (ways->ring)
		say(stdout,
		    "    ring buffer: a record has %s%" PRIu64 " bytes, %" PRIu64
		    " less than are read\n",
		    r->flexible ? "at least " : "", r->size, after);
	if (ways->map)
		say(stdout,
		    "    map: a value has %" PRIu64 " bytes, %" PRIu64 " less than are read\n",
		    r->size, after);
}

void layout_print_record(const struct layout_record *r, const struct layout_ways *ways)
{
	if (r->believed < r->size)
		print_short(r, ways);
	if (r->believed > r->size)
		print_long(r, ways);
	if (ways->perf && (r->perf != r->size || r->believed != r->size))
		say(stdout,
		    "    perf buffer: a sample has %" PRIu64 " bytes, of which %" PRIu64
		    " are the struct\n",
		    r->perf, r->size);
}

void layout_json_record(struct json *j, const struct layout_record *r,
			const struct layout_ways *ways)
{
	json_open(j, "record", '{');
	json_uint(j, "bytes", r->size);
	json_uint(j, "read", r->believed);
	json_bool(j, "exact", !r->flexible);
	json_uint(j, "perf_bytes", r->perf);
	json_open(j, "ways", '[');
	if (ways->ring)
		json_text(j, NULL, "ring");
	if (ways->perf)
		json_text(j, NULL, "perf");
	if (ways->map)
		json_text(j, NULL, "map");
	json_close(j);
	json_close(j);
}
