/* SPDX-License-Identifier: BSD-2-Clause */
#include "insn/insn.h"

#include <stdlib.h>
#include <string.h>

bool insn_starts_find(struct insn_starts *s, const uint8_t *code, size_t n)
{
	size_t need = (n + 7) / 8;
	if (need > s->cap) {
		uint8_t *grown = realloc(s->bits, need);
		if (!grown)
			return false;
		s->bits = grown;
		s->cap = need;
	}
	memset(s->bits, 0, need);
	insn_boundaries(code, n, s->bits);
	return true;
}

void insn_starts_fini(struct insn_starts *s)
{
	free(s->bits);
	*s = (struct insn_starts){0};
}
