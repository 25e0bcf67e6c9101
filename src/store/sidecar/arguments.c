/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Locations, and the parts of them that a site has
 *
 * An argument in %rdi is the same everywhere, and so is a pair of arguments in %rdi and %rsi: a
 * kernel has 600,000 arguments in 18,000 locations, and 360,000 sites with 48,000 lists of them.
 */
#include <errno.h>

#include "sidecar/format.h"
#include "sidecar/site_table.h"
#include "sites/provider.h"

/* An address in the text of a location must be known without symbols, too. */
static int note_address(struct site_table *p, uint64_t at)
{
	char name[1024];
	uint64_t known;
	struct address_name a = {.at = at};
	if (map_get(&p->known_address, at, &known) ||
	    !p->sites->ops->symbol(p->sites, (struct cairn_vaddr){at}, name, sizeof(name)))
		return 0;
	int rc = strings_add(p->strings, name, &a.name);
	if (rc < 0)
		return rc;
	return VEC_ADD(&p->addresses, a) ? map_put(&p->known_address, at, 1) : -ENOMEM;
}

static int put_piece(struct site_table *p, const struct cairn_piece *piece, struct bytes *b)
{
	int rc = 0;
	put_u8(b, (uint8_t)piece->kind);
	put_uleb(b, piece->off);
	put_uleb(b, piece->size);
	put_uleb(b, piece->n_steps);
	for (uint32_t i = 0; rc >= 0 && i < piece->n_steps; i++) {
		const struct cairn_loc_step *s = &piece->steps[i];
		put_u8(b, s->op);
		put_u8(b, (uint8_t)(s->operand | s->size << 4));
		put_u8(b, s->reg);
		put_sleb(b, s->imm);
		if (s->op == CAIRN_LOC_ADDR)
			rc = note_address(p, (uint64_t)s->imm);
	}
	if (piece->kind == CAIRN_PIECE_BYTES)
		put_bytes(b, piece->bytes, piece->size);
	return rc;
}

int add_location(struct site_table *p, const struct cairn_location *loc, uint32_t *ret)
{
	struct bytes *b = &p->locations.record;
	int rc = 0;
	put_u8(b, (uint8_t)(loc->quirk ? LOCATION_BY_QUIRK | loc->quirk : loc->why));
	put_uleb(b, loc->n_pieces);
	for (uint32_t i = 0; rc >= 0 && i < loc->n_pieces; i++)
		rc = put_piece(p, &loc->pieces[i], b);
	return rc < 0 ? rc : record_set_add(&p->locations, ret);
}

int add_arguments(struct site_table *p, const struct cairn_site *s, uint32_t *ret)
{
	int rc = 0;
	for (uint32_t i = 0; rc >= 0 && i < s->n_args; i++) {
		uint32_t location = 0;
		rc = add_location(p, &s->args[i].loc, &location);
		put_uleb(&p->arguments.records.record, location);
	}
	return rc < 0 ? rc : ranked_set_add(&p->arguments, ret);
}

int args_are_params(struct site_table *p, const struct cairn_function *f,
		    const struct cairn_site *s, bool *ret)
{
	*ret = false;
	if (s->n_args != f->n_params)
		return 0;
	for (uint32_t i = 0; i < s->n_args; i++) {
		uint32_t own, declared;
		int rc = type_table_add(&p->types, s->args[i].type, &own);
		if (rc >= 0)
			rc = type_table_add(&p->types, f->params[i].type, &declared);
		if (rc < 0)
			return rc;
		if (own != declared || !same_string(s->args[i].name, f->params[i].name))
			return 0;
	}
	*ret = true;
	return 0;
}
