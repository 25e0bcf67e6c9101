/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/dump.h"

#include <errno.h>
#include <string.h>

#include "elf/elf.h"

/* 0 as long as @out has taken everything, else its error. */
static int status(FILE *out, struct cairn_err *err)
{
	errno = 0;
	if (!fflush(out) && !ferror(out))
		return 0;
	int code = errno ? -errno : -EIO;
	return err_set(err, code, "cannot write the dump: %s", strerror(-code));
}

int cairn_btf_machine(const struct cairn_btf *btf)
{
	return btf->elf ? elf_machine(btf->elf) : 0;
}

int cairn_btf_dump(const struct cairn_btf *btf, enum cairn_btf_format format, const uint32_t *ids,
		   size_t n_ids, int machine, FILE *out, struct cairn_err *err)
{
	uint32_t n_renamed;

	return cairn_btf_dump_renaming(btf, format, ids, n_ids, machine, out, &n_renamed, err);
}

static int dump(struct dump *d, enum cairn_btf_format format, struct cairn_err *err)
{
	switch (format) {
	case CAIRN_BTF_RAW:
		return dump_raw(d, false, err);
	case CAIRN_BTF_PRETTY:
		return dump_raw(d, true, err);
	case CAIRN_BTF_C:
		return dump_c(d, err);
	}
	return err_set(err, -EINVAL, "no dump format %d", (int)format);
}

int cairn_btf_dump_renaming(const struct cairn_btf *btf, enum cairn_btf_format format,
			    const uint32_t *ids, size_t n_ids, int machine, FILE *out,
			    uint32_t *ret_renamed, struct cairn_err *err)
{
	struct dump d = {.btf = btf,
			 .ids = ids,
			 .n_ids = n_ids,
			 .machine = machine ? machine : cairn_btf_machine(btf),
			 .out = out,
			 .n_renamed = ret_renamed};

	*ret_renamed = 0;

	int rc = dump(&d, format, err);

	return btf_verdict(btf, rc < 0 ? rc : status(out, err), NULL, err);
}

const char *cairn_btf_kind_name(uint32_t kind)
{
	return btf_kind_name(kind);
}
