/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BTF of the kernel that a sidecar describes
 *
 * A kernel patches its code when it starts, so pages of code cannot be compared with one that runs.
 * Its BTF stays as it was linked, and sysfs shows it. So a sidecar has its hash.
 *
 * A module that has .BTF.base is left out: the kernel moves the ids of its BTF when it is loaded, and
 * sysfs shows what came of that.
 */
#include "sidecar/kernel_btf.h"

#include <elf.h>
#include <string.h>

#include <nettle/sha2.h>

#include "base/err.h"
#include "elf/elf.h"
#include "sidecar/format.h"

static const struct elf_section *section_of(const struct elf *e, const char *name)
{
	for (size_t i = 0; i < elf_n_sections(e); i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (!strcmp(s->name, name) && s->type != SHT_NOBITS && s->size)
			return s;
	}
	return NULL;
}

bool kernel_btf_is_there(const struct elf *e)
{
	return elf_is_kernel(e) && section_of(e, ".BTF") && !section_of(e, ".BTF.base");
}

int kernel_btf_encode(struct elf *e, struct bytes *ret, struct cairn_err *err)
{
	const struct elf_section *s;
	struct sidecar_kernel_btf out;
	struct sha256_ctx c;
	int rc = elf_section(e, ".BTF", &s, err);
	if (rc < 0 || !s || !s->data)
		return rc;
	sha256_init(&c);
	sha256_update(&c, s->size, s->data);
	sha256_digest(&c, sizeof(out.sha256), out.sha256);
	out.size = s->size;
	put_bytes(ret, &out, sizeof(out));
	return 0;
}
