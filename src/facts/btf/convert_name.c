/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of a conversion: the strings of a split blob go on where those of its base end. */
#include "btf/convert.h"

uint32_t btf_convert_name(const struct btf_convert *c, uint32_t off)
{
	const struct cairn_btf *from = c->btf->base, *to = c->base;
	if (off >= c->btf->start_string)
		return off - c->btf->start_string + (to ? btf_end_string(to) : 0);
	for (; from && to && off < from->start_string; from = from->base)
		to = to->base;
	return from && to ? off - from->start_string + to->start_string : off;
}
