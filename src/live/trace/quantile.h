/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The buckets of quantiles, for the kernel's program and for its reader
 *
 * Numbers below 32 have a bucket each. Above, each power of two has 16 buckets of one width:
 *
 *	0 1 ... 31   32-33 34-35 ... 62-63   64-67 ... 124-127   128-135 ...
 *
 * A bucket is at most 1/16 as wide as its least number is large. So its middle is within 1/32 of
 * each number in it.
 */
#ifndef TRACE_QUANTILE_H
#define TRACE_QUANTILE_H

/* The binary logarithm of the buckets of a power of two. */
#define QUANTILE_LOG     4
#define QUANTILE_STEPS   (1 << QUANTILE_LOG)
#define QUANTILE_BUCKETS ((64 - QUANTILE_LOG + 1) * QUANTILE_STEPS)
/* Those of negative numbers, by size; there is no negative 0. */
#define QUANTILE_BELOW   (QUANTILE_BUCKETS - 1)

/* @log2  of @v, the whole part; not used below 16 */
static inline __attribute__((always_inline)) __u32 quantile_bucket(__u64 v, __u32 log2)
{
	if (v < QUANTILE_STEPS)
		return v;
	return (log2 - QUANTILE_LOG + 1) * QUANTILE_STEPS +
	       ((v >> (log2 - QUANTILE_LOG)) & (QUANTILE_STEPS - 1));
}

/* The least number of a bucket, and how many it has. */
static inline void quantile_bounds(__u32 bucket, __u64 *ret_from, __u64 *ret_n)
{
	__u32 shift = bucket < QUANTILE_STEPS ? 0 : bucket / QUANTILE_STEPS - 1;
	__u64 step = bucket % QUANTILE_STEPS;

	*ret_n = (__u64)1 << shift;
	*ret_from = bucket < QUANTILE_STEPS ? step : (QUANTILE_STEPS + step) << shift;
}

#endif
