/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * btf encode of a file without debug information, by its sidecar
 *
 * A sidecar has the types as btf encode writes them, and with --btf-inline the sites, too. It does
 * not list the facts that BTF could not express.
 */
#include <errno.h>

#include <cairn/btf.h>

#include "btf_encode.h"
#include "say.h"

static void count_records(const struct cairn_btf *btf, struct cairn_btfgen *d)
{
	struct cairn_btf_type t;

	for (uint32_t id = cairn_btf_start_id(btf); id < cairn_btf_end_id(btf); id++) {
		d->n_types++;
		if (!cairn_btf_type(btf, id, &t))
			continue;
		d->n_functions += t.kind == CAIRN_BTF_FUNC;
		d->n_variables += t.kind == CAIRN_BTF_VAR;
	}
}

int encode_by_sidecar(const struct cairn_sidecar *sidecar, bool want_sites,
		      struct cairn_btfgen *ret)
{
	struct cairn_btf_open_opts opts = {.size = sizeof(opts)};
	struct cairn_sidecar_btf btf;
	struct cairn_btf *types;
	struct cairn_err err = {0};
	int r = cairn_sidecar_btf(sidecar, &btf, &err);

	if (r >= 0)
		r = cairn_btf_open_mem(btf.types, btf.types_size, cairn_sidecar_path(sidecar),
				       &opts, &types, &err);
	if (r < 0)
		return fail_err(r, &err, STATUS_USAGE);
	*ret = (struct cairn_btfgen){.main = {(void *)btf.types, btf.types_size}};
	count_records(types, ret);
	cairn_btf_close(types);
	if (want_sites && btf.sites)
		ret->inlined = (struct cairn_btfgen_blob){(void *)btf.sites, btf.sites_size};
	else if (want_sites)
		say(stderr,
		    "cairn: %s has no sites as BTF: only types are written. cairn sidecar "
		    "--btf-inline FILE keeps the sites, if there are any\n",
		    cairn_sidecar_path(sidecar));
	return STATUS_YES;
}
