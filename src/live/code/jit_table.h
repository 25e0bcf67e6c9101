/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of a JIT's region: rows, symbols, lines, in chains that grow while they are read
 *
 * The protocol is that of struct code_jit_table: used_len is read before the elements that it
 * counts. Whatever is wrong with a chain refuses it as a whole, with the reason: half a table would
 * leave out frames silently.
 */
#ifndef CODE_JIT_TABLE_H
#define CODE_JIT_TABLE_H

#include <cairn/shared/codectl.h>
#include <cairn/err.h>

#include "base/vec.h"
#include "cfi/rule.h"
#include "code/memory.h"

struct jit_row {
	uint32_t off, size;
	int32_t cfa_off, ra_off, fp_off;
	uint8_t info;
};

struct jit_symbol {
	uint32_t off, size;
	uint32_t call_line;
	uint32_t depth : 8;
	/* number of the function that it is inlined into; its own of one. A chain has 4 million */
	uint32_t function : 24;
	uint64_t name, call_file; /* addresses of strings in the process */
};

struct jit_line {
	uint32_t off, line;
	uint64_t file;
};

struct jit_tables {
	/* by address, without overlaps or withdrawn ones; so the others */
	VEC(struct jit_row) rows;
	VEC(struct jit_symbol) symbols; /* functions, each followed by its inlined copies */
	VEC(struct jit_line) lines;
	/* Why there are none, though there should be; static words. */
	const char *rows_why, *symbols_why, *lines_why;
};

/*
 * jit_tables_read - all tables of a region
 *
 * @budget  bytes that may still be read from the process; the bytes read are subtracted
 * @tables  zeroed, or of an earlier read, whose memory is used again
 * Returns 0 whatever is wrong with the tables; -ENOMEM. Cost: two reads per table; bounded in
 * tables and bytes.
 *
 * The result belongs to the region's epoch if the epoch is the same after the read as before; else
 * it may be anything.
 */
int jit_tables_read(const struct code_memory *memory, const struct code_jit_info *info,
		    uint64_t *budget, struct jit_tables *tables, struct cairn_err *err);
void jit_tables_fini(struct jit_tables *tables);

/* The row at @off from the beginning of the region's code; NULL: none. O(log rows). */
const struct jit_row *jit_row_at(const struct jit_tables *tables, uint64_t off);

/*
 * Turns a row into a rule. A JIT describes no register except the frame pointer: the others are
 * lost.
 */
void jit_row_rule(const struct jit_row *row, uint16_t machine, struct rule_words *ret);

/* CFA = frame pointer + 16: the rule of code that keeps frame pointers, past its prologue. */
void jit_frame_pointer_rule(uint16_t machine, struct rule_words *ret);

/*
 * jit_symbols_at - the function at @off and the copies inlined there, innermost last
 *
 * @ret  room for @max; deeper nested copies are left out
 */
size_t jit_symbols_at(const struct jit_tables *tables, uint64_t off, const struct jit_symbol **ret,
		      size_t max);

/* The line at @off, NULL when none begins before. */
const struct jit_line *jit_line_at(const struct jit_tables *tables, uint64_t off);

#endif
