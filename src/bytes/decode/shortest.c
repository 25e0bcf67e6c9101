/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The shortest decimal of a binary float
 *
 * Everything that a reader rounds to the float c * 2^q lies between the middles to its neighbours.
 * For single 0.1, which is 13421773 * 2^-27 = 0.100000001490116..., that is
 *
 *	0.0999999977648...  <  0.1  <  0.1000000052154...
 *
 * The result is the decimal with the fewest digits in there, and among those the nearest. With k
 * chosen so that 10^k is just below the width of the interval, one or two multiples of 10^k lie
 * inside, and at most one of 10^(k+1), which then is shorter. So four candidates are compared with
 * both ends, all scaled by 10^-k to integers: a product of 128 with 64 bits of which the upper 64
 * are kept, and one more bit, sticky, that tells whether a part was cut off. This is exact for
 * every double although 10^-k itself is rounded. R. Giulietti proves it in "The Schubfach way to
 * render doubles" (2020), whose method this is. Narrower formats are doubles with fewer bits.
 *
 * Rejected: printf with rising precision until it reads back, as was done before; it took 3
 * microseconds, this 30 ns.
 */
#include "decode/out.h"

struct power {
	uint64_t high, low;
};

#include "decode/powers.h"

/*
 * floor(log10(2^e)); of an interval with a short lower half: floor(log10(3/4 * 2^e)). Right for |e|
 * below 1,650.
 */
static int floor_log10_pow2(int e, bool irregular)
{
	return (e * 1262611 - (irregular ? 524031 : 0)) >> 22;
}

static int floor_log2_pow10(int e)
{
	return e * 1741647 >> 19;
}

/* The upper 64 of the 192 bits of g * v, the lowest of them set when any bit below it is. */
static uint64_t scale(struct power g, uint64_t v)
{
	value_u128 low = (value_u128)g.low * v;
	value_u128 high = (value_u128)g.high * v + (uint64_t)(low >> 64);

	return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

static uint64_t strip_zeros(uint64_t digits, int *exponent)
{
	for (; digits % 10 == 0; digits /= 10)
		++*exponent;
	return digits;
}

uint64_t shortest_decimal(uint64_t c, int q, bool irregular, int *ret_exponent)
{
	bool even = c % 2 == 0;
	int k = floor_log10_pow2(q, irregular);
	int h = q + floor_log2_pow10(-k) + 1;
	struct power g = powers[-k - POWER_LOW];
	/*
	 * In quarters of a unit, which makes the middles whole. An even float owns the middles
	 * themselves.
	 */
	uint64_t lower = scale(g, (4 * c - 2 + irregular) << h) + !even;
	uint64_t value = scale(g, 4 * c << h);
	uint64_t upper = scale(g, (4 * c + 2) << h) - !even;
	uint64_t s = value / 4;

	*ret_exponent = k;
	if (s >= 10) {
		uint64_t tens = s / 10;
		bool below = lower <= 40 * tens, above = 40 * tens + 40 <= upper;
		if (below != above) {
			++*ret_exponent;
			return strip_zeros(tens + above, ret_exponent);
		}
	}
	bool below = lower <= 4 * s, above = 4 * s + 4 <= upper;
	if (below != above)
		return strip_zeros(s + above, ret_exponent);
	/*
	 * Both are inside, or only this one's middle decides: the nearer; if both are equally near,
	 * the even one.
	 */
	uint64_t middle = 4 * s + 2;
	bool up = value > middle || (value == middle && s % 2);
	return strip_zeros(s + up, ret_exponent);
}
