/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of btf encode. */
#ifndef CLI_BTF_ENCODE_H
#define CLI_BTF_ENCODE_H

#include <cairn/btf/from_dwarf.h>
#include <cairn/sidecar.h>

#include "cmd.h"

/*
 * encode_by_sidecar - types and functions of a sidecar; with @want_sites sites, where it has them
 *
 * @ret  bytes and counts, no losses. The bytes are the sidecar's: not for cairn_btfgen_free().
 * Returns an exit status. Reports missing parts on stderr.
 */
int encode_by_sidecar(const struct cairn_sidecar *sidecar, bool want_sites,
		      struct cairn_btfgen *ret);

#endif
