/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/bits_out.h"

/* The width that each field needs in the record that needs most. */
static void measure(const uint32_t *values, size_t n, unsigned int n_fields, uint8_t *ret)
{
	uint32_t all[TABLE_FIELDS] = {0};
	for (size_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < n_fields; k++)
			all[k] |= values[i * n_fields + k];
	for (unsigned int k = 0; k < TABLE_FIELDS; k++)
		ret[k] = (uint8_t)bits_width(all[k]);
	if (n > 1 && !(all[0] | all[1] | all[2] | all[3]))
		ret[0] = 1;
}

void put_table(const uint32_t *values, size_t n, unsigned int n_fields, struct bytes *ret)
{
	uint8_t width[TABLE_FIELDS];
	struct bits_out out = {.to = ret};
	measure(values, n, n_fields, width);
	put_u32(ret, (uint32_t)n);
	put_bytes(ret, width, sizeof(width));
	for (size_t i = 0; i < n; i++)
		for (unsigned int k = 0; k < n_fields; k++)
			put_bits(&out, values[i * n_fields + k], width[k]);
	end_bits(&out);
	put_zeroes(ret, BITS_SLACK + -(ret->v.n + BITS_SLACK) % 8);
}
