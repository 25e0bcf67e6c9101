/* SPDX-License-Identifier: BSD-2-Clause */
/* docs/sites-by-example.md follows what becomes of clip: a copy with a condition, in a loop. */
static unsigned long n_clipped;

static inline unsigned long clip(unsigned long level, unsigned long limit)
{
	if (level > limit) {
		n_clipped++;
		return limit;
	}
	return level;
}

__attribute__((noinline)) unsigned long loudness(const unsigned long *samples, int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n; i++)
		if (samples[i])
			sum += clip((samples[i] - 1) >> 4, 100);
	return sum;
}

int main(void)
{
	const unsigned long samples[] = {161, 0, 4801, 17};

	return loudness(samples, 4) != 111 || n_clipped != 1;
}
