/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes the data of cairn/sites.h: functions, their sites, argument locations and the types' names
 *
 * The sites module evaluates the functions, and they are written as they come. Most sites belong to
 * a frame that .cairn.frames already has, so only the frame's mark remains to be written. Marks are
 * kept until all functions were seen.
 *
 *	site_table.c  functions, and the few sites that are no marks
 *	frame_sites.c  marks
 *	arguments.c    locations, and the parts of them that a site has
 *	type_table.c   types
 *	symbol_table.c names that only symbol tables know
 */
#ifndef SIDECAR_SITE_TABLE_H
#define SIDECAR_SITE_TABLE_H

#include <cairn/sites.h>

#include "sidecar/join.h"
#include "sidecar/name_index.h"
#include "sidecar/record_set.h"
#include "sidecar/type_table.h"

/* Records that are numbered in the end in order of use. */
struct ranked_set {
	struct record_set records;
	struct ranking ranking;
};

int ranked_set_add(struct ranked_set *s, uint32_t *ret);
/* Fills the ranking, then writes the records in its order. */
void ranked_set_put(struct ranked_set *s, struct bytes *ret);
void ranked_set_fini(struct ranked_set *s);

/* The site of a frame. Numbers are by appearance. */
struct mark {
	uint64_t at, die;
	int64_t container_off;
	uint32_t attrs, arguments;
	bool is_set;
};

/* A function's code begins at a link-time address, or that of a split-off part of it. */
struct body {
	uint64_t at;
	uint32_t function; /* its number */
	bool is_part;
};

/* A name and a function that it leads to, in site_table.known_names. */
static inline uint64_t known_pair(uint64_t name_hash, uint32_t function)
{
	return (name_hash + function + 1) * UINT64_C(0x9e3779b97f4a7c15);
}

struct site_table {
	struct cairn_sites *sites;
	const struct joined *joined;
	struct code_span span;
	struct strings *strings;
	struct map frame_of_die; /* to its unit, and its number in that */
	struct type_table types;
	struct record_set locations;
	VEC(uint32_t) parameters; /* two numbers each */
	struct map parameter_of;  /* both in one, to the number */
	struct record_set prototypes;
	struct ranked_set site_attrs, arguments;
	struct map known_address;
	VEC(struct address_name {
		uint64_t at;
		uint32_t name;
	})
	addresses;
	struct name_index names;
	/* hashes of names that lead to a function, and of each with the function's number */
	struct map known_names;
	VEC(struct body) bodies; /* by address when all functions were seen */
	struct bytes data;
	VEC(uint32_t) starts; /* of each function in data */
	/* of the current function: for each site the frame whose mark it is, or NO_FRAME */
	VEC(uint32_t) frames;
	struct mark *marks;
	uint64_t n_sites;
	/* .cairn.dwarf, and how many functions and copies it has. */
	bool is_reduced_wanted;
	struct bytes reduced;
	uint64_t n_reduced;
};

/*
 * Everything about all functions of p->sites, which were opened from debug information, and all
 * types. Returns 0 or as cairn_sites_visit(). site_table_fini(), also after an error, closes the
 * sites. @meanings: of the types of the same debug information.
 */
int site_table_make(struct site_table *p, unsigned int threads, const struct joined *j,
		    struct code_span span, const struct meanings *meanings, struct strings *strings,
		    struct cairn_err *err);
void site_table_fini(struct site_table *p);

/* ---- parts ---- */

static inline bool same_string(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* The offset of a string, the number of a type, to the end of @b. */
int put_string(struct site_table *p, struct bytes *b, const char *string);
int put_type_number(struct site_table *p, struct bytes *b, uint32_t id);

/* Number of a location; of all locations of a site. */
int add_location(struct site_table *p, const struct cairn_location *loc, uint32_t *ret);
int add_arguments(struct site_table *p, const struct cairn_site *s, uint32_t *ret);

/* True if the arguments of a site are the function's parameters, unchanged: *@ret. */
int args_are_params(struct site_table *p, const struct cairn_function *f,
		    const struct cairn_site *s, bool *ret);

/* The attributes of a site besides its address and its arguments. */
void put_site_attrs(const struct cairn_site *s, struct bytes *b);

/*
 * *@ret: the frame whose mark this site is now; NO_FRAME when the site has to be written in full.
 */
int mark_site(struct site_table *p, const struct cairn_function *f, const struct cairn_site *s,
	      uint32_t *ret);
/* The frame that says where the site stands, marked or not; NO_FRAME when there is none. */
uint32_t frame_of_site(const struct site_table *p, const struct cairn_site *s);
/* The function of a frame, by appearance. */
uint32_t function_of(const struct joined *j, uint32_t frame);

/* ---- sections ---- */

void encode_sites(const struct site_table *p, struct bytes *ret);
/* Call it after site_attrs and arguments, whose order it uses. */
void encode_marks(const struct site_table *p, struct bytes *ret);
void encode_parameters(const struct site_table *p, struct bytes *ret);
void encode_addresses(struct site_table *p, struct bytes *ret);
/*
 * .cairn.symbol_names, after all functions. Returns 0, -ENOMEM, -ERANGE, -EBADMSG (a symbol table).
 */
int encode_symbol_names(const struct site_table *p, const struct cairn_binary *bin,
			struct bytes *ret, struct cairn_err *err);

#endif
