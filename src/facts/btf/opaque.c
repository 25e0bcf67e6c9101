/* SPDX-License-Identifier: BSD-2-Clause */
#include "btf/opaque.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/err.h"

bool btf_has_opaque(const struct cairn_btf *btf)
{
	for (uint32_t id = btf->start_id; id < btf->end_id; id++)
		if (btf_is_opaque(BTF_KIND_OF(btf_record(btf, id)[BTF_RECORD_INFO])))
			return true;
	return false;
}

/*
 * The number of the first word after the kind that may be an id and not hold in the result; 0:
 * none.
 */
static uint32_t first_that_moves(const struct btf_move *m, const uint32_t *record, uint32_t n)
{
	for (uint32_t i = BTF_RECORD_REF; i < n; i++)
		if (record[i] < m->btf->end_id && m->map[record[i]] != record[i])
			return i;
	return 0;
}

int btf_carry_opaque(const struct btf_move *m, uint32_t id, struct cairn_err *err)
{
	const uint32_t *from = btf_record(m->btf, id);
	uint32_t moves = first_that_moves(m, from, btf_record_size(m->btf, id)), *record;
	if (moves)
		return err_set(err, -EOPNOTSUPP,
			       "%s: BTF: record %u is of kind %u, which is not known: its word at "
			       "offset 0x%" PRIx64 " may be id %u, which would be another one",
			       m->btf->name, id, BTF_KIND_OF(from[BTF_RECORD_INFO]),
			       btf_record_off(m->btf, id) + sizeof(uint32_t) * moves, from[moves]);
	return btf_copy_record(m, m->btf, id, &record, err);
}

int btf_copy_record(const struct btf_move *m, const struct cairn_btf *owner, uint32_t id,
		    uint32_t **ret, struct cairn_err *err)
{
	const uint32_t *from = btf_record(owner, id);
	uint32_t n = btf_record_size(owner, id) - BTF_RECORD_WORDS, new_id;
	int rc;
	uint32_t *space = btf_add_space(m->b, from[BTF_RECORD_NAME], from[BTF_RECORD_INFO],
					from[BTF_RECORD_REF], n, &new_id, &rc);
	if (!space)
		return err_set(err, rc, "no room for another record of %s", m->btf->name);
	if (n)
		memcpy(space, from + BTF_RECORD_WORDS, n * sizeof(*space));
	*ret = space - BTF_RECORD_WORDS;
	return 0;
}
