/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Merging: the records of several blobs after one another, then dedup
 *
 * All are complete, or split from the same base. Ids and strings are all new, so records of kinds
 * that are not known are refused.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "btf/move.h"
#include "btf/opaque.h"

/*
 * Takes the form of the result from the inputs: their base, byte order of the first, the only
 * dialect, a layout section if one has it.
 */
static int choose_form(const struct cairn_btf *const *in, size_t n,
		       struct cairn_btf_build_opts *ret, struct cairn_err *err)
{
	*ret = (struct cairn_btf_build_opts){
		.size = sizeof(*ret), .base = in[0]->base, .big_endian = in[0]->big_endian};
	for (size_t i = 0; i < n; i++) {
		if (in[i]->base != ret->base)
			return err_set(err, -EINVAL, "%s and %s are not split from the same base",
				       in[0]->name, in[i]->name);
		if (btf_has_opaque(in[i]))
			return err_set(err, -EOPNOTSUPP,
				       "%s: BTF: has records of kinds that are not known, whose "
				       "ids would move",
				       in[i]->name);
		if (ret->dialect && in[i]->dialect && ret->dialect != in[i]->dialect)
			return err_set(err, -EOPNOTSUPP,
				       "%s: LOC records of another dialect than those before",
				       in[i]->name);
		ret->dialect = in[i]->dialect ? in[i]->dialect : ret->dialect;
		ret->layout |= in[i]->layout != NULL;
	}
	return 0;
}

static int append(struct cairn_btf_builder *b, const struct cairn_btf *btf, struct cairn_err *err)
{
	uint32_t *map = malloc(btf->end_id * sizeof(*map)), next = btf_builder_next_id(b);
	struct btf_move m = {.btf = btf, .b = b, .map = map};
	int rc = map ? 0 : err_nomem(err, "a map of BTF ids");
	for (uint32_t id = 0; rc == 0 && id < btf->end_id; id++)
		map[id] = id < btf->start_id ? id : next++;
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++)
		rc = btf_move_record(&m, id, err);
	free(map);
	return rc;
}

static int append_all(const struct cairn_btf *const *in, size_t n,
		      const struct cairn_btf_build_opts *opts, void **ret, size_t *ret_size,
		      struct cairn_err *err)
{
	struct cairn_btf_builder *b;
	int rc = cairn_btf_builder_new(opts, &b, err);
	if (rc < 0)
		return rc;
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = append(b, in[i], err);
	if (rc == 0)
		rc = cairn_btf_finish(b, ret, ret_size, err);
	cairn_btf_builder_free(b);
	return rc;
}

int cairn_btf_merge(const struct cairn_btf *const *in, size_t n, void **ret, size_t *ret_size,
		    struct cairn_err *err)
{
	struct cairn_btf_build_opts form;
	struct cairn_btf *all = NULL;
	void *bytes = NULL;
	size_t size;
	int rc = n ? choose_form(in, n, &form, err)
		   : err_set(err, -EINVAL, "there is nothing to merge");
	if (rc == 0)
		rc = append_all(in, n, &form, &bytes, &size, err);
	struct cairn_btf_open_opts opts = {.size = sizeof(opts),
					   .base = n ? in[0]->base : NULL,
					   .dialect = rc == 0 ? form.dialect : 0};
	if (rc == 0)
		rc = cairn_btf_open_mem(bytes, size, in[0]->name, &opts, &all, err);
	if (rc == 0)
		rc = cairn_btf_dedup(all, NULL, ret, ret_size, err);
	cairn_btf_close(all);
	free(bytes);
	for (size_t i = 0; i < n; i++)
		rc = btf_verdict(in[i], rc, ret, err);
	return rc;
}
