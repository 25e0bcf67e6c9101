/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Distilling the base
 *
 * A module built outside the kernel's tree is split from a base that the running kernel need not
 * have. The least that is needed to find the same types in another base by name travels with it
 * (.BTF.base):
 *
 *	in the distilled base    INT, FLOAT, FWD, STRUCT, UNION and ENUM with a name, of their size,
 *	                         without members or values; an ENUM stands for an ENUM64, too
 *	moved to the split blob  everything else of the base that it refers to: pointers, arrays,
 *	                         typedefs, functions and nameless types; and their references
 *
 * A base that is split itself becomes one blob. The split blob keeps its own records in order;
 * those moved follow, in the order of the base. Ids and strings of the base are all new, so records
 * of unknown kinds are refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/vec.h"
#include "btf/opaque.h"

struct distiller {
	const struct cairn_btf *btf;
	uint8_t *used;      /* by id of the base */
	VEC(uint32_t) left; /* own, or moved: their references are not yet marked */
	uint32_t *map;
	struct cairn_btf *base; /* the new one, opened */
};

/*
 * Types that another base is searched for by name and size: the relocation of libbpf and of the
 * kernel needs a name for each.
 */
static bool stays_in_base(const struct cairn_btf_type *t)
{
	switch (t->kind) {
	case CAIRN_BTF_INT:
	case CAIRN_BTF_FLOAT:
	case CAIRN_BTF_FWD:
	case CAIRN_BTF_STRUCT:
	case CAIRN_BTF_UNION:
	case CAIRN_BTF_ENUM:
	case CAIRN_BTF_ENUM64:
		return *t->name;
	default:
		return false;
	}
}

static int use(struct distiller *d, uint32_t id)
{
	struct cairn_btf_type t;
	if (!id || id >= d->btf->start_id || d->used[id])
		return 0;
	d->used[id] = 1;
	cairn_btf_type(d->btf, id, &t);
	return stays_in_base(&t) || VEC_ADD(&d->left, id) ? 0 : -ENOMEM;
}

static int use_all(struct distiller *d)
{
	const struct cairn_btf *btf = d->btf;
	int rc = 0;
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++)
		rc = VEC_ADD(&d->left, id) ? 0 : -ENOMEM;
	while (rc == 0 && d->left.n) {
		uint32_t id = d->left.p[--d->left.n], *p;
		const struct cairn_btf *owner = btf_owner(btf, id);
		uint32_t *record = (uint32_t *)btf_record(owner, id);
		const struct btf_shape *shape =
			btf_shape(BTF_KIND_OF(record[BTF_RECORD_INFO]), owner->dialect);
		struct btf_fields f = btf_ids_of(shape, record);
		while (rc == 0 && (p = btf_next(&f)))
			rc = use(d, *p);
	}
	return rc;
}

/* A type of the base as far as another base must have it. */
static int add_distilled(struct cairn_btf_builder *b, const struct cairn_btf_type *t, uint32_t *ret)
{
	struct cairn_btf_type bare = *t;
	bool has_words = t->kind == CAIRN_BTF_INT;
	int rc = cairn_btf_add_string(b, t->name, &bare.name_off);
	bare.vlen = 0;
	bare.kflag = t->kflag && t->kind == CAIRN_BTF_FWD;
	/* A relocation takes it for either, and an ENUM64 of the distilled base for damage. */
	if (t->kind == CAIRN_BTF_ENUM64)
		bare.kind = CAIRN_BTF_ENUM;
	return rc < 0 ? rc
		      : cairn_btf_add_record(b, &bare, t->words, has_words ? t->n_words : 0, ret);
}

static int write_base(struct distiller *d, void **ret, size_t *ret_size, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .big_endian = d->btf->big_endian,
					    .dialect = d->btf->dialect,
					    .layout = d->btf->layout != NULL};
	struct cairn_btf_builder *b;
	struct cairn_btf_type t;
	int rc = cairn_btf_builder_new(&opts, &b, err);
	if (rc < 0)
		return rc;
	for (uint32_t id = 1; rc == 0 && id < d->btf->start_id; id++)
		if (d->used[id] && cairn_btf_type(d->btf, id, &t) && stays_in_base(&t))
			rc = add_distilled(b, &t, &d->map[id]);
	rc = rc < 0 ? err_set(err, rc, "no room for a distilled base")
		    : cairn_btf_finish(b, ret, ret_size, err);
	cairn_btf_builder_free(b);
	return rc;
}

/* The next id of all that goes to the split blob: own records, then those moved. */
static void number_split(struct distiller *d, uint32_t next)
{
	struct cairn_btf_type t;
	for (uint32_t id = d->btf->start_id; id < d->btf->end_id; id++)
		d->map[id] = next++;
	for (uint32_t id = 1; id < d->btf->start_id; id++)
		if (d->used[id] && cairn_btf_type(d->btf, id, &t) && !stays_in_base(&t))
			d->map[id] = next++;
}

static int write_split(struct distiller *d, void **ret, size_t *ret_size, struct cairn_err *err)
{
	struct cairn_btf_build_opts opts = {.size = sizeof(opts),
					    .base = d->base,
					    .big_endian = d->btf->big_endian,
					    .dialect = d->btf->dialect,
					    .layout = d->btf->layout != NULL};
	struct btf_move m = {.btf = d->btf, .map = d->map};
	struct cairn_btf_type t;
	int rc = cairn_btf_builder_new(&opts, &m.b, err);
	if (rc < 0)
		return rc;
	number_split(d, btf_builder_next_id(m.b));
	for (uint32_t id = d->btf->start_id; rc == 0 && id < d->btf->end_id; id++)
		rc = btf_move_record(&m, id, err);
	for (uint32_t id = 1; rc == 0 && id < d->btf->start_id; id++)
		if (d->used[id] && cairn_btf_type(d->btf, id, &t) && !stays_in_base(&t))
			rc = btf_move_record(&m, id, err);
	if (rc == 0)
		rc = cairn_btf_finish(m.b, ret, ret_size, err);
	cairn_btf_builder_free(m.b);
	return rc;
}

static int distil(struct distiller *d, void **base, size_t *base_size, void **split,
		  size_t *split_size, struct cairn_err *err)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts)};
	d->used = calloc(d->btf->start_id, 1);
	d->map = calloc(d->btf->end_id, sizeof(*d->map));
	if (!d->used || !d->map || use_all(d) < 0)
		return err_nomem(err, "the marks of BTF records");
	int rc = write_base(d, base, base_size, err);
	if (rc == 0)
		rc = cairn_btf_open_mem(*base, *base_size, "distilled base", &opts, &d->base, err);
	return rc < 0 ? rc : write_split(d, split, split_size, err);
}

static int refuse_opaque(const struct cairn_btf *btf, struct cairn_err *err)
{
	if (!btf_has_opaque(btf))
		return 0;
	return err_set(
		err, -EOPNOTSUPP,
		"%s: BTF: has records of kinds that are not known, which may refer to its base",
		btf->name);
}

int cairn_btf_distil_base(const struct cairn_btf *split, void **ret_base, size_t *ret_base_size,
			  void **ret_split, size_t *ret_split_size, struct cairn_err *err)
{
	struct distiller d = {.btf = split};
	void *base = NULL;
	size_t base_size = 0;
	int rc =
		split->base ? 0 : err_set(err, -EINVAL, "%s is not split from a base", split->name);
	for (const struct cairn_btf *p = split; rc == 0 && p; p = p->base) {
		rc = refuse_opaque(p, err);
		if (rc == 0)
			rc = btf_check_movable(p, err);
	}
	if (rc == 0)
		rc = distil(&d, &base, &base_size, ret_split, ret_split_size, err);
	cairn_btf_close(d.base);
	free(d.used);
	free(d.map);
	VEC_FREE(&d.left);
	rc = btf_verdict(split, rc, ret_split, err);
	if (rc < 0) {
		free(base);
		return rc;
	}
	*ret_base = base;
	*ret_base_size = base_size;
	return 0;
}
