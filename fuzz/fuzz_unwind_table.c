/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwind tables as they are mapped from a file: checked once, or where they are asked, and asked
 * everywhere.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/unwind.h>

#include "cfi/table.h"

static void ask_opened(const uint8_t *bytes, size_t size)
{
	struct cairn_unwind *table;
	struct cairn_err err = {0};
	__attribute__((unused)) volatile uint32_t sink = 0;
	int rc = cairn_unwind_open_mem(bytes, size, "input", &table, &err);
	assert(rc == 0 || err.code == rc);
	if (rc < 0)
		return;
	const struct cairn_unwind_header *h = (const struct cairn_unwind_header *)bytes;
	for (uint32_t i = 0; i < h->n_rows; i++) {
		struct cairn_vaddr lo, hi;
		const struct cairn_unwind_rule *r = cairn_unwind_row(table, i, &lo, &hi);
		assert(lo.v <= hi.v);
		assert(cairn_unwind_find(table, lo) == r);
		for (uint32_t k = 0; k < r->n_regs; k++)
			sink += cairn_unwind_words(r)[k];
	}
	for (uint64_t at = 0; at < 1 << 20; at += 4099)
		sink += cairn_unwind_find(table, (struct cairn_vaddr){h->base + at})->off;
	cairn_unwind_close(table);
}

/* What a search touches is checked then. */
static void ask_unread(const uint8_t *bytes, size_t size)
{
	struct unwind_table t;
	struct cairn_err err = {0};
	__attribute__((unused)) volatile uint32_t sink = 0;
	int rc = unwind_table_open_unread(bytes, size, "input", "table", &t, &err);
	assert(rc == 0 || err.code == rc);
	for (uint64_t at = 0; rc == 0 && at < 1 << 20; at += 4099) {
		const struct cairn_unwind_rule *r =
			unwind_table_find(&t, (struct cairn_vaddr){t.base + at});
		for (uint32_t k = 0; k < r->n_regs; k++)
			sink += cairn_unwind_words(r)[k];
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	/* Aligned, as files are mapped, and without a byte after. */
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	memcpy(copy, bytes, size);
	ask_opened(copy, size);
	ask_unread(copy, size);
	free(copy);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	struct {
		struct cairn_unwind_header header;
		struct cairn_unwind_page pages[3];
		struct cairn_unwind_row rows[4];
		uint32_t rules[3 + 3 + 4];
	} seed = {
		.header = {.version = 1, .header_size = 64, .machine = EM_X86_64,
			   .base = 0x10000, .n_pages = 2, .n_rows = 4, .rules_size = 40},
		.pages = {{0, 0}, {2, 2}, {UINT32_MAX, 4}},
		.rows = {{16, 3}, {17, 6}, {5, 3}, {9, 0}},
		.rules = {0, 0, 0, 0x00070001, 8, 0, 0x01070001, 16, 0, 0xfffff006},
	};
	/* clang-format on */
	/* Its NUL does not fit: it is no string to initialise an array with. */
	memcpy(seed.header.magic, CAIRN_UNWIND_MAGIC, sizeof(seed.header.magic));
	put(&seed, sizeof(seed));
}
