/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From buckets to quantiles
 *
 * The quantile of a share is the number with the rank share * n, rounded up. The bucket of this
 * rank is exact. Of a bucket that has more than one number the middle is taken, unless the largest
 * number of all is below it.
 */
#include "trace/aggregate/aggregate.h"
#include "trace/quantile.h"

/* In thousandths, as enum cairn_quantile. */
static const uint16_t shares[CAIRN_N_QUANTILES] = {500, 900, 990, 999};

struct cairn_number aggregate_number(__int128 v)
{
	unsigned __int128 size = v < 0 ? -(unsigned __int128)v : (unsigned __int128)v;

	return (struct cairn_number){
		.is_negative = v < 0, .high = (uint64_t)(size >> 64), .low = (uint64_t)size};
}

static __int128 middle_of(const struct trace_update *u, uint32_t i)
{
	bool is_negative = i < u->n_below;
	__u64 from, n;

	quantile_bounds(is_negative ? u->n_below - i : i - u->n_below, &from, &n);
	__int128 middle = (__int128)from + (n - 1) / 2;
	return is_negative ? -middle : middle;
}

/* @max  the largest number */
static __int128 number_at(const struct trace_update *u, const uint64_t *buckets, uint64_t rank,
			  __int128 max)
{
	uint64_t seen = 0;
	uint32_t i = 0;

	for (; i < u->n_buckets; i++) {
		seen += buckets[i];
		if (seen >= rank)
			break;
	}
	__int128 middle = i < u->n_buckets ? middle_of(u, i) : max;
	return middle < max ? middle : max;
}

void aggregate_quantiles(const struct trace_update *u, const uint64_t *cells, bool is_signed,
			 struct cairn_aggregate_value *v)
{
	const uint64_t *buckets = cells + 1;
	__int128 max =
		is_signed ? (__int128)(int64_t)(cells[0] ^ UINT64_C(1) << 63) : (__int128)cells[0];
	unsigned __int128 n = 0;

	for (uint32_t i = 0; i < u->n_buckets; i++)
		n += buckets[i];
	for (int i = 0; i < CAIRN_N_QUANTILES; i++) {
		uint64_t rank = (uint64_t)((n * shares[i] + 999) / 1000);
		v->quantiles[i] = aggregate_number(number_at(u, buckets, rank, max));
	}
}
