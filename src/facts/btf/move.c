/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/move.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "btf/opaque.h"

/* ---- sites ---- */

static int by_words(const uint32_t *x, const uint32_t *y, const uint8_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x[order[i]] != y[order[i]])
			return x[order[i]] < y[order[i]] ? -1 : 1;
	return 0;
}

static int by_site_n(const void *a, const void *b)
{
	static const uint8_t func_offset_proto[] = {0, 2, 1};
	return by_words(a, b, func_offset_proto, 3);
}

static int by_site_v1(const void *a, const void *b)
{
	static const uint8_t offset_name_protos[] = {3, 0, 1, 2};
	return by_words(a, b, offset_name_protos, 4);
}

void btf_sort_sites(uint32_t *record, enum cairn_btf_dialect dialect)
{
	bool v1 = dialect == CAIRN_BTF_LOC_V1;
	uint32_t n = BTF_VLEN_OF(record[BTF_RECORD_INFO]);
	if (n)
		qsort(record + BTF_RECORD_WORDS, n, 4 * (v1 ? 4 : 3), v1 ? by_site_v1 : by_site_n);
}

/* ---- records ---- */

static int bad_reference(const struct cairn_btf *owner, uint32_t id, const char *what,
			 uint32_t value, struct cairn_err *err)
{
	return err_set(err, -EBADMSG,
		       "%s: BTF: record %u at offset 0x%" PRIx64
		       " refers to %s %u, which does not exist",
		       owner->name, id, btf_record_off(owner, id), what, value);
}

static int check_record(const struct cairn_btf *btf, uint32_t id, struct cairn_err *err)
{
	/* Only read: the fields are found by the same iterator as those that are written. */
	uint32_t *record = (uint32_t *)btf_record(btf, id), *p;
	uint32_t kind = BTF_KIND_OF(record[BTF_RECORD_INFO]);
	const struct btf_shape *shape = btf_shape(kind, btf->dialect);
	if (btf_is_opaque(kind))
		return 0;
	for (struct btf_fields f = btf_ids_of(shape, record); (p = btf_next(&f));)
		if (*p >= btf->end_id)
			return bad_reference(btf, id, "id", *p, err);
	for (struct btf_fields f = btf_names_of(shape, record); (p = btf_next(&f));)
		if (!cairn_btf_string(btf, *p))
			return bad_reference(btf, id, "string", *p, err);
	return 0;
}

int btf_check_movable(const struct cairn_btf *btf, struct cairn_err *err)
{
	int rc = 0;
	for (uint32_t id = btf->start_id; rc == 0 && id < btf->end_id; id++)
		rc = check_record(btf, id, err);
	return rc;
}

int btf_move_record(const struct btf_move *m, uint32_t id, struct cairn_err *err)
{
	const struct cairn_btf *owner = btf_owner(m->btf, id);
	const uint32_t *from = btf_record(owner, id);
	uint32_t *record, *p;
	uint32_t kind = BTF_KIND_OF(from[BTF_RECORD_INFO]);
	const struct btf_shape *shape = btf_shape(kind, owner->dialect);
	if (btf_is_opaque(kind))
		return btf_carry_opaque(m, id, err);
	int rc = check_record(owner, id, err);
	rc = rc < 0 ? rc : btf_copy_record(m, owner, id, &record, err);
	if (rc < 0)
		return rc;
	for (struct btf_fields f = btf_ids_of(shape, record); (p = btf_next(&f));)
		*p = m->map[*p];
	for (struct btf_fields f = btf_names_of(shape, record); rc == 0 && (p = btf_next(&f));)
		rc = *p ? cairn_btf_add_string(m->b, cairn_btf_string(owner, *p), p) : 0;
	if (kind == CAIRN_BTF_LOCSEC)
		btf_sort_sites(record, owner->dialect);
	return rc < 0 ? err_set(err, rc, "no room for the names of %s", m->btf->name) : 0;
}
