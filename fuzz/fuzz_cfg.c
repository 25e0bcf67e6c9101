/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes taken for the code of a function with inlined copies
 *
 * The input is a byte for each end of the ranges of two copies, one for where an entry is said to
 * be, then code. Whatever jumps where, the copies must be judged, and their places and ends lie in
 * the function. Tables of jumps lie in the code, too.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include <cairn/sites.h>

#include "dwarf/constants.h"
#include "dwarf_builder.h"
#include "elf/elf.h"
#include "sites/copy_exits.h"

enum { START = 0x1000, HEAD = 5, CODE_MAX = 256 };

static void put_copy(struct db *db, int callee, uint8_t lo, uint8_t hi, uint8_t entry)
{
	uint64_t from = START + lo, to = START + (hi > lo ? hi : lo + 1);
	if (entry)
		DB_DIE(db, DW_TAG_inlined_subroutine, DB_LEAF,
		       DB_REF(DW_AT_abstract_origin, callee), DB_ADDR(DW_AT_low_pc, from),
		       DB_U(DW_AT_high_pc, DW_FORM_data4, to - from),
		       DB_ADDR(DW_AT_entry_pc, START + entry),
		       DB_U(DW_AT_call_line, DW_FORM_data1, 30));
	else
		DB_DIE(db, DW_TAG_inlined_subroutine, DB_LEAF,
		       DB_REF(DW_AT_abstract_origin, callee), DB_ADDR(DW_AT_low_pc, from),
		       DB_U(DW_AT_high_pc, DW_FORM_data4, to - from),
		       DB_U(DW_AT_call_line, DW_FORM_data1, 31));
}

static struct db *build(const uint8_t head[HEAD], const uint8_t *code, size_t n)
{
	struct db *db = db_new((struct db_format){.version = 5});
	int callee = db_label(db);
	db_code(db, code, n);
	db_unit(db, DW_UT_compile);
	DB_DIE(db, DW_TAG_compile_unit, DB_CHILDREN, DB_STR(DW_AT_name, "unit.c"),
	       DB_STR(DW_AT_producer, head[4] ? "GNU C17 12.2.0 -O2 -g" : "clang version 14.0.6"));
	db_here(db, callee);
	DB_DIE(db, DW_TAG_subprogram, DB_LEAF, DB_STR(DW_AT_name, "callee"),
	       DB_U(DW_AT_inline, DW_FORM_data1, 1));
	DB_DIE(db, DW_TAG_subprogram, DB_CHILDREN, DB_STR(DW_AT_name, "caller"),
	       DB_ADDR(DW_AT_low_pc, START), DB_U(DW_AT_high_pc, DW_FORM_data4, n));
	put_copy(db, callee, head[0], head[1], head[4]);
	put_copy(db, callee, head[2], head[3], 0);
	db_null(db);
	db_null(db);
	db_unit_end(db);
	return db;
}

static void check(const struct cairn_function *f, size_t n)
{
	for (uint32_t i = 0; i < f->n_sites; i++) {
		const struct cairn_site *s = &f->sites[i];
		/* A range may say anything; a way that was found is in the code. */
		assert(s->rule != CAIRN_AT_CFG_ENTRY || (s->at.v >= START && s->at.v < START + n));
		assert(!s->n_bypasses == !(s->count_caveats & CAIRN_COUNT_BYPASSED));
	}
}

static void check_ends(struct cairn_sites *sites, const struct cairn_function *f, size_t n)
{
	struct copy_ends *ends;
	struct arena arena = {0};
	if (copy_ends_new(sites, &ends) < 0)
		return;
	for (uint32_t i = 0; i < f->n_sites; i++) {
		struct copy_exits exits;
		const char *why;
		if (f->sites[i].kind != CAIRN_SITE_INLINED ||
		    copy_ends_find(ends, f, &f->sites[i], &arena, &exits, &why) < 0 || why)
			continue;
		assert(exits.n);
		for (uint32_t k = 0; k < exits.n; k++)
			assert(exits.p[k].at.v >= START && exits.p[k].at.v < START + n);
	}
	arena_fini(&arena);
	copy_ends_free(ends);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
	if (size <= HEAD || size > HEAD + CODE_MAX)
		return 0;
	struct db *db = build(bytes, bytes + HEAD, size - HEAD);
	size_t n;
	uint8_t *file = db_finish(db, &n);
	if (binary_open_mem(file, n, "input", &bin, NULL) == 0) {
		if (cairn_sites_open(bin, NULL, &sites, NULL) == 0) {
			if (cairn_sites_find(sites, "callee", &found, NULL) == 1) {
				check(found.p[0], size - HEAD);
				check_ends(sites, found.p[0], size - HEAD);
			}
			cairn_sites_close(sites);
		}
		cairn_binary_close(bin);
	}
	db_free(db);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* je over a store; a jump back; an indirect jump; a call; padding. */
	static const uint8_t clang[] = {2,    8,    6,    12,   0,    0x74, 0x02, 0x89, 0x07,
					0x31, 0xc0, 0x89, 0x07, 0x74, 0xf8, 0xff, 0xe0, 0x89,
					0x07, 0xe8, 0,    0,    0,    0,    0x66, 0x90, 0xc3};
	static const uint8_t gcc[] = {4,    12,   2,    4,    8,    0x74, 0x06, 0x31, 0xc0,
				      0x89, 0x07, 0xc3, 0x90, 0x31, 0xc0, 0xeb, 0xf6};
	/* A table of two targets; then cmp, ja, lea of it, movslq, add, jmp; then the targets. */
	static const uint8_t table[HEAD + 54] = {
		8,    53,   0,    1,    8,    0x30, 0,    0,    0,    0x33, 0,    0,
		0,    0x83, 0xff, 0x01, 0x77, 0x28, 0x89, 0xf8, 0x48, 0x8d, 0x15, 0xea,
		0xff, 0xff, 0xff, 0x48, 0x63, 0x04, 0x82, 0x48, 0x01, 0xd0, 0xff, 0xe0,
		0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90,
		0x90, 0x90, 0x90, 0x90, 0x90, 0x31, 0xc0, 0x90, 0x89, 0x07, 0xc3};
	put(clang, sizeof(clang));
	put(table, sizeof(table));
	put(gcc, sizeof(gcc));
}
