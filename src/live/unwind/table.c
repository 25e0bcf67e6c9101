/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind tables as the public header has them. */
#include <stdlib.h>

#include <cairn/unwind.h>

#include "base/err.h"
#include "cfi/table.h"

struct cairn_unwind {
	struct unwind_table table;
	const void *bytes;
	size_t size;
	uint8_t *owned; /* NULL when the bytes are borrowed */
};

static int open_bytes(const uint8_t *bytes, size_t size, const char *name, uint8_t *owned,
		      struct cairn_unwind **ret, struct cairn_err *err)
{
	struct cairn_unwind *u = malloc(sizeof(*u));
	if (!u)
		return err_nomem(err, "an unwind table");
	*u = (struct cairn_unwind){.bytes = bytes, .size = size, .owned = owned};
	int rc = unwind_table_open(bytes, size, name, "unwind table", &u->table, err);
	if (rc == 0 && unwind_table_index(&u->table) < 0)
		rc = err_nomem(err, "an unwind table");
	if (rc < 0)
		free(u);
	else
		*ret = u;
	return rc;
}

int cairn_unwind_make(const struct cairn_binary *bin, unsigned int threads,
		      struct cairn_unwind **ret, struct cairn_err *err)
{
	struct cfi *cfi;
	uint8_t *bytes = NULL;
	size_t size;
	int rc = cfi_open(bin, &cfi, err);
	if (rc < 0)
		return rc;
	rc = unwind_table_build(cfi, UNWIND_PROVED, threads, &bytes, &size, err);
	if (rc == 0 && !((const struct cairn_unwind_header *)bytes)->n_rows && cfi_n_fdes(cfi)) {
		free(bytes);
		bytes = NULL;
		rc = unwind_table_build(cfi, UNWIND_WITHOUT_CODE, threads, &bytes, &size, err);
	}
	cfi_close(cfi);
	if (rc == 0)
		rc = open_bytes(bytes, size, cairn_binary_path(bin), bytes, ret, err);
	if (rc < 0)
		free(bytes);
	return rc;
}

int cairn_unwind_open_mem(const void *bytes, size_t size, const char *name,
			  struct cairn_unwind **ret, struct cairn_err *err)
{
	return open_bytes(bytes, size, name, NULL, ret, err);
}

void cairn_unwind_close(struct cairn_unwind *table)
{
	if (!table)
		return;
	unwind_table_fini(&table->table);
	free(table->owned);
	free(table);
}

const void *cairn_unwind_bytes(const struct cairn_unwind *table, size_t *ret_size)
{
	*ret_size = table->size;
	return table->bytes;
}

const struct cairn_unwind_rule *cairn_unwind_find(const struct cairn_unwind *table,
						  struct cairn_vaddr at)
{
	return unwind_table_find(&table->table, at);
}

const struct cairn_unwind_rule *cairn_unwind_row(const struct cairn_unwind *table, uint32_t row,
						 struct cairn_vaddr *ret_lo,
						 struct cairn_vaddr *ret_hi)
{
	return unwind_table_row(&table->table, row, ret_lo, ret_hi);
}
