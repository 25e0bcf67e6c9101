/* SPDX-License-Identifier: BSD-2-Clause */
#include "code/vdso.h"

#include <errno.h>
#include <stdlib.h>

#include "base/err.h"
#include "elf/elf.h"

/* The vDSO is one or two pages; nothing that calls itself so is larger. */
enum { MAX_VDSO = 1 << 20 };

int vdso_open(const struct code_mapping *m, vdso_read *read, const void *ctx,
	      struct cairn_binary **ret, uint8_t **ret_bytes, struct cairn_err *err)
{
	size_t size = m->hi - m->lo;
	if (size > MAX_VDSO) {
		err_set(err, -ERANGE, "[vdso]: %zu bytes", size);
		return 0;
	}
	uint8_t *bytes = *ret_bytes = malloc(size);
	if (!bytes)
		return -ENOMEM;
	if (read(ctx, m->lo, bytes, size, err) < 0)
		return 0;
	int rc = binary_open_mem(bytes, size, "[vdso]", ret, err);
	return rc == -ENOMEM ? rc : 0;
}
