/* SPDX-License-Identifier: BSD-2-Clause */
/* A range of code made at run time, and its source's data about it. Within this module only. */
#ifndef CODE_REGION_H
#define CODE_REGION_H

#include <cairn/code.h>
#include <cairn/sidecar.h>

#include "base/arena.h"
#include "code/jit_table.h"
#include "code/registry.h"
#include "code/symfile.h"

/* A string of the process that was read while it could not change. */
struct region_string {
	uint64_t at;
	const char *text; /* NULL: it cannot be read */
};

struct region {
	struct cairn_code_range range;
	/* The registry's; range.generation is its epoch. */
	/* NULL: of another source, or a file is mapped there, which is a better source */
	const struct registry *registry;
	uint64_t registry_lo;
	uint32_t number;
	uint64_t age; /* larger ones are newer, over all registries */
	/* of an object without a file: the parts that it shares with a region */
	struct code_jit_info info;
	bool is_loaded; /* tables and eh are those of some moment of this epoch */
	bool is_fresh;  /* since the last resolve */
	bool is_gone;   /* the epoch was another one by then */
	struct jit_tables tables;
	struct eh_block *eh;              /* NULL: none */
	const char *eh_why;               /* why there is none though there should be */
	VEC(struct region_string) caught; /* in strings */
	struct arena strings;
	/* The file in GDB's list; several regions may share one. */
	struct symfile *symfile;
};

/*
 * region_load - read the tables of a registered region, once for each resolve
 *
 * Data read in an epoch stays valid when the epoch has ended by now, which is_gone reports. In one
 * epoch an address is described at most once, so known data does not become wrong.
 *
 * @budget  bytes that may still be read of the process
 * Returns 0, -ENOMEM.
 */
int region_load(struct region *r, const struct code_memory *memory, uint16_t machine,
		uint64_t *budget, struct cairn_err *err);

/* Moves the data that @from, of the same epoch, has read to @to. */
void region_take_over(struct region *to, struct region *from);
/* Moves only the strings that were read in time. */
void region_take_strings(struct region *to, struct region *from);
void region_fini(struct region *r);

/*
 * region_rule - the rule at @at, undescribed when there is none; reports its source
 *
 * If the owner describes other code of the region, but not this address, nothing is assumed:
 * *@ret_why says so.
 */
enum cairn_code_unwind region_rule(const struct region *r, uint64_t at, uint16_t machine,
				   struct rule_words *ret, const char **ret_why);

/* Whether a row or an FDE describes @at, as far as was read. */
bool region_describes(const struct region *r, uint64_t at, uint16_t machine);

/* The result of region_rule() for most of it, for listings. */
enum cairn_code_unwind region_unwind(const struct region *r);

/* Keep the strings that names at @at need, for region_names(). 0, -ENOMEM. */
int region_catch_names(struct region *r, const struct code_memory *memory, uint64_t at);

/*
 * region_names - the functions at @at, innermost first
 *
 * @arena  holds the strings
 * @ret    room for @max
 * Returns how many, 0 also when the region went meanwhile; -ENOMEM.
 */
int region_names(const struct region *r, const struct code_memory *memory, uint64_t at,
		 struct arena *arena, struct cairn_frame *ret, size_t max, uint64_t *ret_lo);

#endif
