/* SPDX-License-Identifier: BSD-2-Clause */
/* One argument's location as a LOC_PARAM record. */
#ifndef BTFGEN_LOC_RECORD_H
#define BTFGEN_LOC_RECORD_H

#include <cairn/btf.h>
#include <cairn/btf/from_dwarf.h>
#include <cairn/location.h>

/* The facts besides the location on which the record depends. */
struct loc_value {
	uint64_t bytes; /* of the argument; 0 when that is not known */
	bool is_signed; /* its type is a signed integer or enum */
	/* lowest address of the object's sections that are loaded (docs/formats/btf-loc.md) */
	uint64_t base;
};

/*
 * loc_record - the record that says the same as @loc, for every value of every register
 *
 * @ret_loss  set when the result is 0: the obstacle, or CAIRN_N_LOSSES when there is no
 *	       location at all
 * Returns true and *@ret; false when no record says it.
 * Cost: none. Threads: any. No allocation.
 */
bool loc_record(const struct cairn_location *loc, const struct loc_value *value,
		struct cairn_btf_loc_param *ret, enum cairn_btfgen_loss *ret_loss);

#endif
