/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside of the writer of .cairn.dwarf; reduced.c has the essay. */
#ifndef SIDECAR_REDUCED_WRITE_H
#define SIDECAR_REDUCED_WRITE_H

#include <errno.h>

#include "base/err.h"
#include "dwarf/params.h"
#include "sidecar/reduced.h"
#include "sidecar/reduced_out.h"
#include "sites/provider.h"
#include "sites/scopes_at.h"

enum {
	/* call rel32 */
	CALL_BYTES = 5,
	CALL_OPCODE = 0xe8,
	ADDRESS_BYTES = 8,
	/* Open entries: deeper inlining than this is not queried (sites/scopes_at.c). */
	DEPTH_MAX = 1024,
};

/* A worker's own. */
struct reducer {
	struct arena arena;
	struct abstracts abstracts;
	struct dw_range_list ranges;
	/* Facts that the copies of one function share; copies_of is the function. */
	uint32_t copies_of;
	bool has_copies;
	struct arena copies;
	struct site_worker worker;
	struct map asked;   /* origins of copies that were looked at */
	struct map removed; /* copy and parameter, if it was removed */
};

struct entry_asks {
	uint64_t at;
	uint32_t asked;
};

struct unit_asks {
	VEC(struct entry_asks) v;
};

struct reducing {
	struct site_table *p;
	struct site_env env;
	size_t n_units;
	uint32_t *first; /* of each unit, its first entry; one more */
	uint32_t *unit_of, *die_at, *formals_at, *types_at, *asked; /* of each entry */
	uint8_t *is_kept;                                           /* has code */
	/* as abstract instance; written by several workers, all of which write 1 */
	uint8_t *is_needed;
	VEC(uint32_t) types; /* numbers */
	struct unit_asks *unit_asks;
	struct map asked_at; /* address of a function, to the registers its callers must describe */
	struct out_unit *units;
	struct reducer *reducers;
};

static inline const struct dw_func *entry_at(const struct reducing *r, uint32_t i)
{
	return &r->env.index->p[i];
}

static inline bool is_copy(const struct reducing *r, uint32_t i)
{
	return entry_at(r, i)->flags & DW_FUNC_INLINED;
}

static inline int reduced_ranges_of(struct reducer *x, const struct dw_die *die,
				    struct cairn_err *err)
{
	x->ranges.n = 0;
	int rc = dw_ranges_append(die, &x->ranges, err);
	return rc == -ENOMEM ? err_nomem(err, "ranges of code") : rc;
}

/* One entry of the index at hand. */
struct writing {
	struct reducing *r;
	struct reducer *x;
	struct out_unit *u;
	uint32_t entry;
	struct dw_die die;
	const struct abstract *instance;
	uint32_t instance_entry; /* DW_FUNC_NONE: it is its own */
};

struct location {
	unsigned int kind;      /* OUT_AT_* */
	struct expression expr; /* OUT_AT_EXPR, OUT_AT_BYTES */
	int64_t number;
	uint32_t list;
};

/* ---- reduced_formals.c: parameters and their locations ---- */

int reduced_instance_of(const struct reducing *r, struct reducer *x, uint32_t i,
			const struct dw_die *die, const struct abstract **ret,
			struct cairn_err *err);
struct location reduced_read_location(struct writing *w, const struct dw_die *die, uint16_t at);
void reduced_put_location(struct writing *w, const struct location *l);
int reduced_put_formals(struct writing *w, struct cairn_err *err);
int reduced_put_abstract_formals(struct writing *w, struct cairn_err *err);

/* ---- reduced_entry.c: functions, copies and calls ---- */

void reduced_leave_copies(struct reducer *x);
int reduced_put_entry(struct writing *w, struct cairn_err *err);

#endif
