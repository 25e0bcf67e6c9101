/* SPDX-License-Identifier: BSD-2-Clause */
/* Hazards of a stripped binary; only its sidecar names the functions. */
#include <errno.h>

#include "base/err.h"
#include "insn/insn.h"
#include "sidecar/sidecar_impl.h"

struct record_functions {
	VEC(uint32_t) v;
};

/* Record @i. @of_record: the number of each record's function. */
static int read_function(const struct cairn_sidecar *p, uint32_t i,
			 struct record_functions *of_record, struct hazard_functions *ret)
{
	uint32_t kind = table_get(&p->symbols, i, SYMBOL_KIND), start = i;
	uint64_t lo = p->header->base + table_get(&p->symbols, i, SYMBOL_AT);
	uint64_t hi = lo + table_get(&p->symbols, i, SYMBOL_SIZE);
	if (kind == SYMBOL_KIND_REST)
		start = table_get(&p->symbols, i, SYMBOL_NAME);
	uint32_t number = start < i ? of_record->v.p[start] : (uint32_t)ret->v.n;
	if (!VEC_ADD(&of_record->v, number))
		return -ENOMEM;
	if (kind == SYMBOL_KIND_LOCAL_LABEL)
		return 0;
	if (number < ret->v.n)
		ret->v.p[number].hi = hi;
	else if (!VEC_ADD(&ret->v, ((struct hazard_function){lo, hi})))
		return -ENOMEM;
	return 0;
}

/* The table has them flattened: a rest says which record its symbol starts at. */
static int read_functions(const struct cairn_sidecar *p, struct hazard_functions *ret)
{
	struct record_functions of_record = {0};
	int rc = 0;
	for (uint32_t i = 0; i < p->symbols.n && rc >= 0; i++)
		rc = read_function(p, i, &of_record, ret);
	VEC_FREE(&of_record.v);
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
