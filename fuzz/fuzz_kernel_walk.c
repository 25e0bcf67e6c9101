/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The walk that runs in the kernel, over a hostile process: its stack, its registers, the registry
 * and the tables of its JIT
 *
 *	0   32  struct head
 *	32  n   memory of the process, at MEMORY; nothing else of it can be read
 *
 * The code is a file of a few functions, whose rows are those of the test's own, and a region of a
 * JIT. What the walk reads and how far it goes is limited, whatever is there.
 */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/prof.h>

#include "kernel_walk.h"

enum {
	MEMORY = 0x10000000,
	FILE_AT = 0x400000,
	FILE_BYTES = 0x4000,
	REGION_AT = 0x20000000,
	REGION_BYTES = 0x2000,
	REGISTRY = 0x100, /* in the memory */
	ENTRIES = 0x180,
	/* Frames of one region, each with 9 to 30 reads, and then none. */
	MOST_READS = WALK_MAX_READS + 128,
};

struct head {
	uint16_t pc, sp, fp, bx;
	uint32_t unwind_head, epoch;
	uint8_t in_region, flags, n_steps, reserved[13];
};
_Static_assert(sizeof(struct head) == 32, "as the comment says");

static const uint8_t *memory;
static size_t memory_n;

static long walk_read(void *to, uint32_t n, uint64_t from)
{
	if (from < MEMORY || from - MEMORY > memory_n || memory_n - (from - MEMORY) < n)
		return -EFAULT;
	memcpy(to, memory + (from - MEMORY), n);
	return 0;
}

/* Rules of all kinds, in the order of their numbers. */
static const struct walk_rule kinds[] = {
	{0},
	{WALK_CFA_REG, RSP, 0, WALK_AT_CFA << 4, 8, 0, 0, -8, 0},
	{WALK_CFA_REG | WALK_AT_CFA << 4, RBP, 0, WALK_AT_CFA << 4 | WALK_AT_CFA, 16, 0, -16, -8,
	 -24},
	{WALK_CFA_DEREF, RSP, WALK_SIGNAL, WALK_AT_BASE << 4 | WALK_AT_BASE, 160, 0, 120, 168, 0},
	{WALK_CFA_REG | WALK_AT_BASE << 4, RBX, 0, WALK_AT_CFA << 4 | WALK_AT_FP, 24, 0, -8, -8, 8},
	{WALK_CFA_REG, RSP, 0, WALK_IN_REG << 4, 0, 0, 0, 3, 0},
	{WALK_CFA_REG, RSP, 0, WALK_IS_PC << 4, 0, 0, 0, 5, 0},
	{WALK_CFA_REG, 9, 0, WALK_AT_CFA << 4 | WALK_NOT_SAVED, 8, 0, 0, -8, 0},
	{WALK_CFA_REG, RSP, WALK_OUTERMOST, 0, 0, 0, 0, 0, 0},
};
enum { N_KINDS = sizeof(kinds) / sizeof(*kinds) };

static struct walk_segment segments[] = {
	{FILE_AT, FILE_AT + FILE_BYTES, UINT64_C(1) << WALK_FILE_SHIFT, 0, 1},
	{REGION_AT, REGION_AT + REGION_BYTES, 0, WALK_IN_REGION, 0},
};
static struct walk_region region;

/* A page with a row every 64 bytes, of each rule in turn. */
static void make_tables(void)
{
	static bool is_made;

	if (is_made)
		return;
	is_made = true;
	assert(tables_init(&walk_tables, -1, -1, -1, NULL) == 0);
	memcpy(walk_tables.rules, kinds, sizeof(kinds));
	walk_tables.n_rules = N_KINDS;
	assert(chunks_grow(&walk_tables.rows, NULL) == 0 &&
	       chunks_grow(&walk_tables.pages, NULL) == 0);
	walk_tables.n_pages = 1;
	struct walk_page *page = chunks_at(&walk_tables.pages, 0);
	struct walk_row *rows = (struct walk_row *)walk_tables.rows.blocks.p[0];
	page->n_rows = FILE_BYTES / 64;
	for (int i = 0; i < FILE_BYTES / 64; i++)
		rows[i] = (struct walk_row){(uint16_t)(i * 64), (uint16_t)(i % N_KINDS)};
	for (int b = 0; b < WALK_BLOCKS; b++)
		page->begins[b] = (uint16_t)(b * 8 < FILE_BYTES / 64 ? b * 8 : FILE_BYTES / 64);
}

static void set_region(const struct head *h)
{
	region = (struct walk_region){.text_start = REGION_AT,
				      .text_end = REGION_AT + REGION_BYTES,
				      .epoch = h->epoch,
				      .unwind_head = MEMORY + h->unwind_head,
				      .n_entries_at = MEMORY + REGISTRY,
				      .entries = MEMORY + ENTRIES,
				      .stride = sizeof(struct codectl_entry),
				      .is_extended = h->flags & 1,
				      .flags = h->flags >> 1 & 3};
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static struct walk w;
	struct head h;

	if (size < sizeof(h))
		return 0;
	make_tables();
	memcpy(&h, bytes, sizeof(h));
	memory = bytes + sizeof(h);
	memory_n = size - sizeof(h);
	memset(&w, 0, sizeof(w));
	memset(walk_cache, 0, sizeof(walk_cache));
	memset(walk_rows, 0, sizeof(walk_rows));
	walk_segments = segments;
	n_walk_segments = 2;
	walk_regions = &region;
	n_walk_regions = 1;
	set_region(&h);
	w.process = (struct walk_process){0, 2, 1 + (h.flags >> 3 & 1), WALK_HAS_MAPPINGS};
	w.pc = h.in_region & 1 ? REGION_AT + h.pc % REGION_BYTES : FILE_AT + h.pc % FILE_BYTES;
	w.regs[RSP] = MEMORY + h.sp;
	w.regs[RBP] = h.in_region & 2 ? 0 : MEMORY + h.fp;
	w.regs[RBX] = MEMORY + h.bx;
	w.n_kernel = h.n_steps % (WALK_MAX_KERNEL + 1);
	w.max_frames = WALK_MAX_FRAMES;
	w.n_reads = 0;
	walk_user(&w);
	assert(w.n <= WALK_MAX_FRAMES && w.end < CAIRN_PROF_N_ENDS && w.n_reads <= MOST_READS);
	return 0;
}

/* ---- seeds ---- */

static void put_word(uint8_t *to, size_t at, uint64_t word)
{
	memcpy(to + sizeof(struct head) + at, &word, sizeof(word));
}

/* A stack of frames of 16 bytes that lead through the file, and end in its last rule. */
static size_t seed_stack(uint8_t *to)
{
	struct head h = {.pc = 64, .sp = 0x400, .fp = 0x500};
	size_t at = 0x400;

	memcpy(to, &h, sizeof(h));
	for (int i = 0; i < 20; i++, at += 8)
		put_word(to, at, FILE_AT + 65 + 64 * (uint64_t)(i % 3 ? 0 : N_KINDS));
	put_word(to, at, FILE_AT + 64 * (N_KINDS - 1) + 1);
	return sizeof(h) + at + 64;
}

/* Through a region, by a table of rows of 24 bytes that stands at 0x800. */
static size_t seed_region(uint8_t *to)
{
	struct head h = {.pc = 0x10, .sp = 0x400, .unwind_head = 0x800, .epoch = 7, .in_region = 1};
	struct code_jit_unwind_fre rows[] = {
		{0x100, 0, 16, -8, -16, CODE_ROW_RA | CODE_ROW_FP, {0}},
		{0x100, 0x100, 8, 0, 0, CODE_ROW_OUTERMOST, {0}}};
	uint64_t heads[] = {sizeof(rows), sizeof(rows), 0};

	memcpy(to, &h, sizeof(h));
	put_word(to, REGISTRY, 1);
	put_word(to, ENTRIES, 7);
	put_word(to, 0x408, REGION_AT + 0x21);
	put_word(to, 0x418, REGION_AT + 0x101);
	memcpy(to + sizeof(h) + 0x800, heads, sizeof(heads));
	memcpy(to + sizeof(h) + 0x800 + sizeof(heads), rows, sizeof(rows));
	return sizeof(h) + 0x900;
}

const unsigned int fuzz_places_max = 400;

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static uint8_t seed[0x2000];

	put(seed, seed_stack(seed));
	memset(seed, 0, sizeof(seed));
	put(seed, seed_region(seed));
	/* Another generation, in the next entry. */
	put_word(seed, ENTRIES, 0);
	put(seed, sizeof(struct head) + 0x900);
}
