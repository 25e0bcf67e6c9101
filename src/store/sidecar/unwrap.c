/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the sidecar in a file from a debuginfod; wrap.c has the essay. */
#include "sidecar/wrap.h"

#include <errno.h>
#include <string.h>

static const uint8_t suffix[] = WRAP_ID_SUFFIX;

/* True if the wrapper's id is derived from the id of its contents, by any version. */
static bool ids_match(const struct elf *outer, const struct elf *inner)
{
	size_t n_outer, n_inner;
	const uint8_t *of_outer = elf_build_id(outer, &n_outer),
		      *of_inner = elf_build_id(inner, &n_inner);
	return n_outer == n_inner + sizeof(suffix) &&
	       (!n_inner || !memcmp(of_outer, of_inner, n_inner)) &&
	       !memcmp(of_outer + n_inner, suffix, sizeof(suffix) - 1);
}

int wrap_open(struct elf *outer, struct elf **ret, struct cairn_err *err)
{
	struct elf_section s;
	*ret = NULL;
	/* Its bytes have checksums of their own, which are checked as it is used. */
	elf_section_unchecked(outer, WRAP_SECTION, &s);
	if (!s.data)
		return 0;
	int rc = elf_open_mem(s.data, s.size, elf_path(outer), ret, err);
	if (rc < 0)
		return err_while(err, rc, "in section " WRAP_SECTION);
	if (ids_match(outer, *ret))
		return 0;
	elf_unref(*ret);
	*ret = NULL;
	return err_set(err, -ESTALE,
		       "%s: " WRAP_SECTION ": a sidecar of another build-id than its wrapper's",
		       elf_path(outer));
}
