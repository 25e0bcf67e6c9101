/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites: where functions were inlined, and where their arguments are there
 *
 * The sites and locations are sites.h's; here they get records. LOC_PARAMs and LOC_PROTOs are few
 * beside the sites (most arguments are in one of some registers), so each is written once.
 *
 * Code of a function that has its own name and prototype has no site: name and convention say all.
 * foo.isra.0 has one, since its parameters are elsewhere than the prototype says. foo.part.0 has
 * none: reaching it is not a call of foo, and a LOCSEC cannot say so.
 */
#ifndef BTFGEN_SITES_H
#define BTFGEN_SITES_H

#include "btfgen/funcs.h"

struct site {
	uint32_t section; /* sites.sections */
	uint32_t func;    /* func_table.v */
	uint32_t proto;   /* sites.protos */
	uint32_t offset;
};

struct site_section {
	const char *name;
	uint64_t start;
};

struct loc_proto {
	uint32_t first, n; /* slots: params + 1, 0 not located */
};

struct sites {
	bool *has_site;     /* per function of func_table.v; sites_find() */
	VEC(struct site) v; /* large; as all that follows sites_join()'s */
	VEC(struct site_section) sections;
	VEC(struct cairn_btf_loc_param) params;
	VEC(struct loc_proto) protos;
	VEC(uint32_t) slots;
	struct hash_table params_by_hash, protos_by_hash;
};

struct site_opts {
	unsigned int threads;
	bool assume_unmodified;
	/* may be NULL */
	int (*progress)(void *ctx, enum cairn_btfgen_stage stage, uint64_t done, uint64_t total);
	void *ctx;
};

struct site_search;

/*
 * sites_search_new - a search, without the data that it needs of all units
 *
 * @opts  copied
 * @ret   for sites_search_free(), also after an error
 * Returns 0, -ENOMEM.
 */
int sites_search_new(const struct cairn_binary *bin, const struct site_opts *opts,
		     const struct dwarf *dw, struct site_search **ret, struct cairn_err *err);

/* Before all that follows: the index of functions, to be filled. It is freed with the search. */
struct dw_func_index *sites_index(struct site_search *s);

/* And unwind information. Returns as cfi_open(). */
int sites_open_cfi(struct site_search *s, struct cairn_err *err);

/*
 * sites_prepare - the work that does not need functions' numbers: which functions there are, and
 * where their copies are
 *
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 */
int sites_prepare(struct site_search *s, struct cairn_err *err);

/*
 * sites_find_folds - at which addresses the linker folded functions
 *
 * May run beside sites_prepare(). Returns as that.
 */
int sites_find_folds(struct site_search *s, struct cairn_err *err);
void sites_search_free(struct site_search *s);

/*
 * sites_find - all sites of a binary, in no order
 *
 * @s    once
 * @ret  which functions have one; for sites_fini(), also after an error
 * Returns 0, -EBADMSG, -EOPNOTSUPP, -ENOMEM, -ECANCELED.
 */
int sites_find(struct site_search *s, const struct func_table *funcs, const struct emit *e,
	       struct cairn_btfgen *counts, struct sites *ret, struct cairn_err *err);

/* Frees the data for finding sites; the results stay. May run beside sites_join(). */
void sites_search_trim(struct site_search *s);

/*
 * sites_join - put the results in order, and number their records: the rest of sites_find()'s
 * result
 *
 * Returns 0, -ENOMEM.
 */
int sites_join(struct site_search *s, struct cairn_err *err);
void sites_fini(struct sites *p);

/*
 * sites_blob_new - begin the inline blob
 *
 * @main  the blob that it is split from
 * @ret   for sites_blob_free(), also after an error
 * Returns 0, -ENOMEM.
 */
struct site_blob;
int sites_blob_new(const struct cairn_btf *main, struct sites *p, struct func_table *funcs,
		   struct emit *e, struct site_blob **ret, struct cairn_err *err);
void sites_blob_free(struct site_blob *b);

/*
 * sites_blob_funcs - first in it: functions with a site that are not in main
 *
 * May run beside sites_join(). Returns 0, -ERANGE, -ENOMEM.
 */
int sites_blob_funcs(struct site_blob *b, uint32_t *ret_n, struct cairn_err *err);

/*
 * sites_blob_finish - then the joined sites; nothing when there are none
 *
 * Returns 0, -ERANGE, -ENOMEM.
 */
int sites_blob_finish(struct site_blob *b, struct cairn_btfgen_blob *ret, struct cairn_err *err);

#endif
