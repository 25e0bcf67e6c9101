/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing what cairn/sites.h tells: functions, their places, argument locations and the types' names
 *
 * The functions are evaluated by the loc module and written as they come; nothing is kept but their bytes.
 */
#ifndef PACK_PLACES_H
#define PACK_PLACES_H

#include <cairn/sites.h>

#include "pack/join.h"

/* A type by what its name needs; equal ones have one number. */
struct type_table {
	const struct cairn_types *graph;
	struct strings *strings;
	VEC(uint32_t) number; /* by id of the graph: number + 1, 0 not yet, or TYPE_BUSY */
	VEC(uint32_t) stack;
	VEC(uint32_t) starts; /* of each record in data */
	struct bytes data, scratch;
	struct map by_hash;
};

/* Number of a type; 0 is void. Returns 0, -ENOMEM, -ERANGE. */
int type_table_add(struct type_table *t, uint32_t id, uint32_t *ret);
void type_table_fini(struct type_table *t);

/* An address that a location names, with the text for it. */
struct named_address {
	uint64_t at;
	uint32_t name;
};

/* A function's code begins at a link-time address. */
struct body {
	uint64_t at;
	uint32_t function; /* its number */
};

struct place_table {
	struct cairn_sites *sites;
	const struct joined *joined;
	struct code_span span;
	struct strings *strings;
	struct map frame_of_die;
	struct type_table types;
	struct map location_of; /* hash of its bytes to offset */
	struct bytes locations, scratch;
	struct map known_address;
	VEC(struct named_address) addresses;
	VEC(uint32_t) starts; /* of each function in data */
	struct map known_names; /* hashes of names that lead to a function */
	VEC(struct body) bodies; /* by address when all functions were seen */
	VEC(uint64_t) hashes; /* of its names: bucket hash << 32 | function */
	struct bytes data;
	uint64_t n_sites;
};

/* Everything about all functions of @bin. Returns 0 or as cairn_sites_visit(). place_table_fini() also after an error. */
int place_table_make(struct place_table *p, const struct cairn_binary *bin, unsigned int threads, const struct joined *j,
		  struct code_span span, struct strings *strings, struct cairn_err *err);
void place_table_fini(struct place_table *p);

/* Sections. */
void encode_places(const struct place_table *p, struct bytes *ret);
void encode_place_names(struct place_table *p, struct bytes *ret);
void encode_types(const struct place_table *p, struct bytes *ret);
void encode_addresses(struct place_table *p, struct bytes *ret);

#endif
