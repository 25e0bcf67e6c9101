/* SPDX-License-Identifier: BSD-2-Clause */
/* BTF in ELF files of other machines. */
#ifndef BTF_ANY_ELF_H
#define BTF_ANY_ELF_H

#include "btf/btf.h"

/*
 * btf_read_any_elf - a copy of the first section of those names, as btf->map
 *
 * @names     NULL at the end
 * @ret_name  which it was
 * Returns 0. -ENODATA: there is none. -EBADMSG: no ELF file. -ENOMEM.
 */
int btf_read_any_elf(struct cairn_btf *btf, int fd, const char *const *names, const char **ret_name,
		     struct cairn_err *err);

#endif
