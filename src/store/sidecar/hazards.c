/* SPDX-License-Identifier: BSD-2-Clause */
/* Hazards of a stripped binary; only its sidecar names the functions. */
#include <errno.h>

#include "base/err.h"
#include "insn/insn.h"
#include "sidecar/sidecar_impl.h"

/* The table has them flattened: a rest says which record its symbol starts at. */
static int read_functions(const struct cairn_sidecar *p, struct hazard_functions *ret)
{
	VEC(uint32_t) of_record = {0};
	int rc = 0;
	for (uint32_t i = 0; i < p->symbols.n && rc >= 0; i++) {
		uint64_t lo = p->header->base + table_get(&p->symbols, i, SYMBOL_AT);
		uint64_t hi = lo + table_get(&p->symbols, i, SYMBOL_SIZE);
		uint32_t start = table_get(&p->symbols, i, SYMBOL_REST)
					 ? table_get(&p->symbols, i, SYMBOL_NAME)
					 : i;
		uint32_t number = start < i ? of_record.p[start] : (uint32_t)ret->v.n;
		if (number < ret->v.n)
			ret->v.p[number].hi = hi;
		else if (!VEC_ADD(&ret->v, ((struct hazard_function){lo, hi})))
			rc = -ENOMEM;
		if (rc >= 0 && !VEC_ADD(&of_record, number))
			rc = -ENOMEM;
	}
	VEC_FREE(&of_record);
	return rc;
}

int cairn_sidecar_hazards(const struct cairn_sidecar *p, const struct cairn_binary *bin,
			  int (*visit)(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard),
			  void *ctx, struct cairn_err *err)
{
	struct hazard_functions functions = {.are_all = p->header->flags & SIDECAR_HAS_SYMTAB};
	int rc = read_functions(p, &functions);
	rc = rc < 0 ? err_nomem(err, "the list of functions") : cairn_sidecar_trouble(p, err);
	if (rc >= 0)
		rc = hazards_among(bin, &functions, visit, ctx, err);
	VEC_FREE(&functions.v);
	return rc;
}
