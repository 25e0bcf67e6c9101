/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places: where functions were inlined, and where their arguments are there
 *
 * The places and locations are sites.h's; here they get records. LOC_PARAMs and LOC_PROTOs are few beside the places
 * (most arguments are in one of some registers), so each is written once.
 *
 * Code of a function that has its own name and prototype has no place: name and convention say all. foo.isra.0 has
 * one, since its parameters are elsewhere than the prototype says. foo.part.0 has none: reaching it is not a call of foo,
 * and a LOCSEC cannot say so.
 */
#ifndef BTFGEN_SITES_H
#define BTFGEN_SITES_H

#include "btfgen/funcs.h"

struct place {
	uint32_t section; /* places.sections */
	uint32_t func;    /* func_table.v */
	uint32_t proto;   /* places.protos */
	uint32_t offset;
};

struct place_section {
	const char *name;
	uint64_t start;
};

struct loc_proto {
	uint32_t first, n; /* slots: params + 1, 0 not located */
};

struct places {
	bool *has_place; /* per function of func_table.v; places_find() */
	VEC(struct place) v; /* large; as all that follows places_join()'s */
	VEC(struct place_section) sections;
	VEC(struct cairn_btf_loc_param) params;
	VEC(struct loc_proto) protos;
	VEC(uint32_t) slots;
	struct hash_table params_by_hash, protos_by_hash;
};

struct place_opts {
	unsigned int threads;
	bool assume_unmodified;
	int (*progress)(void *ctx, enum cairn_btfgen_stage stage, uint64_t done, uint64_t total); /* may be NULL */
	void *ctx;
};

struct place_search;

/*
 * places_search_new - a search, without what it needs of all units
 *
 * @opts  copied
 * @ret   for places_search_free(), also after an error
 * Returns 0, -ENOMEM.
 */
int places_search_new(const struct cairn_binary *bin, const struct place_opts *opts, const struct dwarf *dw,
		      struct place_search **ret, struct cairn_err *err);

/* Before all that follows: the index of functions, to be filled. It is freed with the search. */
struct dw_func_index *places_index(struct place_search *s);

/* And unwind information. Returns as cfi_open(). */
int places_open_cfi(struct place_search *s, struct cairn_err *err);

/*
 * places_prepare - what can be found out before functions have numbers: which there are, and where their copies are
 *
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 */
int places_prepare(struct place_search *s, struct cairn_err *err);

/*
 * places_find_folds - at which addresses the linker folded functions
 *
 * May run beside places_prepare(). Returns as that.
 */
int places_find_folds(struct place_search *s, struct cairn_err *err);
void places_search_free(struct place_search *s);

/*
 * places_find - all places of a binary, in no order
 *
 * @s    once
 * @ret  which functions have one; for places_fini(), also after an error
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, -ECANCELED.
 */
int places_find(struct place_search *s, const struct func_table *funcs, const struct emit *e,
		struct cairn_btfgen *counts, struct places *ret, struct cairn_err *err);

/* Free what places were found with; what was found stays. May run beside places_join(). */
void places_search_trim(struct place_search *s);

/*
 * places_join - put what was found in order, and number its records: the rest of places_find()'s result
 *
 * Returns 0, -ENOMEM.
 */
int places_join(struct place_search *s, struct cairn_err *err);
void places_fini(struct places *p);

/*
 * places_blob_new - begin the inline blob
 *
 * @main  the blob that it is split from
 * @ret   for places_blob_free(), also after an error
 * Returns 0, -ENOMEM.
 */
struct place_blob;
int places_blob_new(const struct cairn_btf *main, struct places *p, struct func_table *funcs, struct emit *e,
		    struct place_blob **ret, struct cairn_err *err);
void places_blob_free(struct place_blob *b);

/*
 * places_blob_funcs - first in it: functions with a place that are not in main
 *
 * May run beside places_join(). Returns 0, -ERANGE, -ENOMEM.
 */
int places_blob_funcs(struct place_blob *b, uint32_t *ret_n, struct cairn_err *err);

/*
 * places_blob_finish - then the joined places; nothing when there are none
 *
 * Returns 0, -ERANGE, -ENOMEM.
 */
int places_blob_finish(struct place_blob *b, struct cairn_btfgen_blob *ret, struct cairn_err *err);

#endif
