/* SPDX-License-Identifier: BSD-2-Clause */
#include "walk/tables_made.h"

#include <errno.h>
#include <string.h>

#include "base/err.h"

/* Rows of a page are taken in pieces of powers of two, which are used again. */
enum { SMALLEST_CLASS = 3 };

static unsigned int class_for(size_t n)
{
	unsigned int class = SMALLEST_CLASS;

	while ((size_t)1 << class < n)
		class ++;
	return class;
}

int tables_made_rule(struct walk_tables *t, const struct cairn_unwind_rule *rule, uint16_t *ret)
{
	struct walk_rule r;
	uint32_t before = t->n_rules;
	int rc;

	*ret = 0;
	if (!tables_rule(rule, &r))
		return 0;
	if (t->n_made_rules >= TABLES_MADE_RULES && !tables_has_rule(t, &r))
		return 0;
	rc = tables_number(t, &r, ret);
	t->n_made_rules += t->n_rules - before;
	return rc;
}

/* Room for 2^@class rows, in one block. */
static int take_rows(struct walk_tables *t, unsigned int class, struct walk_piece *ret)
{
	struct cairn_err full = {0};
	uint32_t n = 1u << class;

	if (t->unused_rows[class].n) {
		*ret = t->unused_rows[class].p[--t->unused_rows[class].n];
		return 0;
	}
	int rc = tables_reserve_rows(t, n, &full);
	if (rc < 0)
		return rc == -ENOMEM ? rc : -ENOSPC;
	*ret = (struct walk_piece){t->row_block, t->row_next};
	t->row_next += n;
	return 0;
}

static void give_rows_back(struct walk_tables *t, unsigned int class, struct walk_piece piece)
{
	/* Without memory for the list they are not used again. */
	if (!VEC_ADD(&t->unused_rows[class], piece))
		t->n_unsaid++;
}

static int take_record(struct walk_tables *t, uint32_t *ret)
{
	struct cairn_err full = {0};

	if (t->unused_pages.n) {
		*ret = t->unused_pages.p[--t->unused_pages.n];
		return 0;
	}
	int rc = tables_reserve_pages(t, 1, &full);
	if (rc < 0)
		return rc == -ENOMEM ? rc : -ENOSPC;
	*ret = t->n_pages++;
	return 0;
}

static void fill(const struct walk_tables *t, struct walk_page *page, uint64_t at,
		 const struct made_row *rows)
{
	struct walk_row *to = (struct walk_row *)t->rows.blocks.p[page->chunk] + page->first;
	uint32_t block = 0;

	for (uint32_t i = 0; i < page->n_rows; i++) {
		to[i] = (struct walk_row){(uint16_t)(rows[i].at - at), rows[i].rule};
		for (; block <= (uint32_t)to[i].off >> WALK_BLOCK_SHIFT; block++)
			page->begins[block] = (uint16_t)i;
	}
	for (; block < WALK_BLOCKS; block++)
		page->begins[block] = page->n_rows;
}

int tables_put_page(struct walk_tables *t, uint64_t at, const struct made_row *rows, size_t n,
		    uint16_t before, uint32_t *ret)
{
	struct walk_page page = {.n_rows = (uint16_t)(n > UINT16_MAX ? UINT16_MAX : n),
				 .before = before};
	struct walk_piece piece = {0};
	int rc = t->n_made_rows + page.n_rows > TABLES_MADE_ROWS ? -ENOSPC : take_record(t, ret);

	if (rc < 0)
		return rc;
	rc = n ? take_rows(t, class_for(page.n_rows), &piece) : 0;
	if (rc < 0) {
		if (!VEC_ADD(&t->unused_pages, *ret))
			t->n_unsaid++;
		return rc;
	}
	page.chunk = piece.block;
	page.first = piece.first;
	if (n)
		fill(t, &page, at, rows);
	*(struct walk_page *)chunks_at(&t->pages, *ret) = page;
	t->n_rows += page.n_rows;
	t->n_made_rows += page.n_rows;
	return 0;
}

void tables_drop_page(struct walk_tables *t, uint32_t record)
{
	const struct walk_page *page = chunks_at(&t->pages, record);
	struct walk_piece piece = {page->chunk, page->first};

	t->n_rows -= page->n_rows;
	t->n_made_rows -= page->n_rows;
	if (page->n_rows)
		give_rows_back(t, class_for(page->n_rows), piece);
	if (!VEC_ADD(&t->unused_pages, record))
		t->n_unsaid++;
}
