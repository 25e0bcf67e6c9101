/* SPDX-License-Identifier: BSD-2-Clause */
/* Placing members: shared by the three sets of rules. */
#ifndef LAYOUT_PLACE_H
#define LAYOUT_PLACE_H

#include <cairn/layout.h>

/*
 * As cairn_layout_place(), for a record that was checked: 0 or -ERANGE. Members are placed after
 * the bit @start, where no unit of bit-fields is open by Microsoft's rules; @ret_end is the bit
 * where they end. May be NULL.
 */
int layout_place_from(const struct cairn_abi *abi, struct cairn_place_record *rec, uint64_t start,
		      uint64_t *ret_end);
int layout_place_ms_struct(struct cairn_place_record *rec, uint64_t start, uint64_t *ret_end);
int layout_place_ms(const struct cairn_abi *abi, struct cairn_place_record *rec, uint64_t start,
		    uint64_t *ret_end);

/* @to is a power of 2. */
static inline uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) & ~(to - 1);
}

static inline uint64_t max_u64(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static inline uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#endif
