/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Indices of packages of .dwo files (.debug_cu_index, .debug_tu_index), for tests
 *
 *	struct package_index x = {.version = 5, .n_columns = 2, .columns = {1, 3}, .n_rows = 1,
 *				  .rows = {{.signature = 0x1234, .off = {0, 8}, .size = {100, 20}}}};
 *	size_t n = package_index_write(&x, bytes);
 */
#ifndef SAMPLES_PACKAGE_INDEX_H
#define SAMPLES_PACKAGE_INDEX_H

#include <stddef.h>
#include <stdint.h>

enum { PACKAGE_ROWS_MAX = 4, PACKAGE_COLUMNS_MAX = 8, PACKAGE_INDEX_BYTES = 512 };

struct package_row {
	uint64_t signature;
	uint32_t off[PACKAGE_COLUMNS_MAX], size[PACKAGE_COLUMNS_MAX];
};

struct package_index {
	uint16_t version; /* 2 is written as 4 bytes, 5 as 2 and 2 of padding: the same bytes */
	uint32_t n_columns, n_rows;
	uint32_t columns[PACKAGE_COLUMNS_MAX];
	struct package_row rows[PACKAGE_ROWS_MAX];
};

static inline size_t package_put(uint8_t *bytes, size_t at, uint64_t v, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		bytes[at + i] = (uint8_t)(v >> 8 * i);
	return at + size;
}

/* Twice as many slots as units, every second one in use. Returns the bytes of it. */
static inline size_t package_index_write(const struct package_index *x,
					 uint8_t bytes[PACKAGE_INDEX_BYTES])
{
	uint32_t n_slots = 2 * x->n_rows;
	size_t at = package_put(bytes, 0, x->version, 4);
	at = package_put(bytes, at, x->n_columns, 4);
	at = package_put(bytes, at, x->n_rows, 4);
	at = package_put(bytes, at, n_slots, 4);
	for (uint32_t i = 0; i < n_slots; i++)
		at = package_put(bytes, at, i % 2 ? x->rows[i / 2].signature : 0, 8);
	for (uint32_t i = 0; i < n_slots; i++)
		at = package_put(bytes, at, i % 2 ? i / 2 + 1 : 0, 4);
	for (uint32_t i = 0; i < x->n_columns; i++)
		at = package_put(bytes, at, x->columns[i], 4);
	for (uint32_t r = 0; r < x->n_rows; r++)
		for (uint32_t i = 0; i < x->n_columns; i++)
			at = package_put(bytes, at, x->rows[r].off[i], 4);
	for (uint32_t r = 0; r < x->n_rows; r++)
		for (uint32_t i = 0; i < x->n_columns; i++)
			at = package_put(bytes, at, x->rows[r].size[i], 4);
	return at;
}

/* Two units of each version, as dwp writes them; the second stands first in its section. */
static const struct package_index package_v2 = {
	.version = 2,
	.n_columns = 4,
	.columns = {1, 3, 5, 6}, /* info, abbrev, loc, str_offsets */
	.n_rows = 2,
	.rows = {{0x1122334455667788, {0x40, 0x20, 0x10, 8}, {0x30, 0x18, 0x10, 12}},
		 {0x99, {0, 0, 0, 0}, {0x40, 0x20, 0x10, 8}}},
};

static const struct package_index package_v5 = {
	.version = 5,
	.n_columns = 6,
	.columns = {1, 3, 4, 5, 6, 8}, /* info, abbrev, line, loclists, str_offsets, rnglists */
	.n_rows = 2,
	.rows = {{0xaa, {0x50, 1, 2, 3, 4, 5}, {0x20, 1, 1, 1, 1, 1}},
		 {0xbb, {0, 6, 7, 8, 9, 10}, {0x50, 1, 1, 1, 1, 1}}},
};

static const struct package_index package_types = {
	.version = 2,
	.n_columns = 3,
	.columns = {2, 3, 6}, /* types, abbrev, str_offsets */
	.n_rows = 1,
	.rows = {{0xcc, {0x10, 0x60, 0x70}, {0x22, 8, 8}}},
};

#endif
