/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tables of a JIT in somebody else's memory: sound chains, lying ones, and chains that grow while
 * they are read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "between.h"
#include "code/jit_table.h"

enum { AT = 0x50000, TEXT = 0x700000, TEXT_SIZE = 0x10000, PLENTY = 1 << 30 };

/* Room for tables, at address AT; 0 is no table. */
static uint8_t room[1 << 16];
static size_t n_room, n_there;
static unsigned int n_reads;
static void (*on_read)(unsigned int n);

static void clear(void)
{
	memset(room, 0, sizeof(room));
	n_room = 64;
	n_there = sizeof(room);
	n_reads = 0;
	on_read = NULL;
}

static size_t read_room(void *ctx, uint64_t from, void *ret, size_t n)
{
	if (on_read)
		on_read(++n_reads);
	const struct code_block block = {room, n_there, AT};
	struct code_memory m = code_memory_of_block(&block);
	return m.read(m.ctx, from, ret, n);
}

static const struct code_memory memory = {read_room, NULL};

static struct code_jit_table *table_at(uint64_t at)
{
	return (struct code_jit_table *)(room + (at - AT));
}

/* A table of @n elements, with room for some more. */
static uint64_t put_table(const void *elements, size_t n, uint32_t stride, uint64_t next)
{
	struct code_jit_table *t = (struct code_jit_table *)(room + n_room);
	*t = (struct code_jit_table){.reserved_len = (n + 4) * stride,
				     .used_len = n * stride,
				     .next = next,
				     .stride = stride,
				     .size = stride};
	if (n)
		memcpy(t + 1, elements, n * stride);
	n_room += sizeof(*t) + (n + 4) * stride;
	assert_true(n_room <= sizeof(room));
	return AT + (uint64_t)((uint8_t *)t - room);
}

static uint64_t put_rows(const struct code_jit_unwind_fre *rows, size_t n, uint64_t next)
{
	return put_table(rows, n, sizeof(*rows), next);
}

static struct code_jit_info region_of(uint64_t rows, uint64_t symbols, uint64_t lines)
{
	return (struct code_jit_info){.text_start = TEXT,
				      .text_end = TEXT + TEXT_SIZE,
				      .extended = CODE_JIT_EXTENDED,
				      .unwind_head = rows,
				      .symbols_head = symbols,
				      .lines_head = lines};
}

static struct jit_tables read_tables(const struct code_jit_info *info)
{
	struct jit_tables t = {0};
	uint64_t budget = PLENTY;
	assert_int_equal(jit_tables_read(&memory, info, &budget, &t, NULL), 0);
	return t;
}

static const struct code_jit_unwind_fre low_rows[] = {{.size = 10, .ip_off = 0, .cfa_off = 8},
						      {.size = 20, .ip_off = 10, .cfa_off = 16},
						      {.size = 5, .ip_off = 40, .cfa_off = 24}};
static const struct code_jit_unwind_fre high_rows[] = {{.size = 10, .ip_off = 100, .cfa_off = 32}};

static void rows_are_found_over_a_chain(void **state)
{
	clear();
	struct code_jit_info info =
		region_of(put_rows(low_rows, 3, put_rows(high_rows, 1, 0)), 0, 0);
	struct jit_tables t = read_tables(&info);
	assert_null(t.rows_why);
	assert_int_equal(t.rows.n, 4);
	assert_int_equal(jit_row_at(&t, 0)->cfa_off, 8);
	assert_int_equal(jit_row_at(&t, 9)->cfa_off, 8);
	assert_int_equal(jit_row_at(&t, 29)->cfa_off, 16);
	assert_null(jit_row_at(&t, 30));
	assert_int_equal(jit_row_at(&t, 44)->cfa_off, 24);
	assert_null(jit_row_at(&t, 45));
	assert_int_equal(jit_row_at(&t, 109)->cfa_off, 32);
	assert_null(jit_row_at(&t, 110));
	jit_tables_fini(&t);
}

static void withdrawn_rows_are_none(void **state)
{
	struct code_jit_unwind_fre rows[3];
	clear();
	memcpy(rows, low_rows, sizeof(rows));
	rows[1].size = 0;
	struct code_jit_info info = region_of(put_rows(rows, 3, 0), 0, 0);
	struct jit_tables t = read_tables(&info);
	assert_int_equal(t.rows.n, 2);
	assert_null(jit_row_at(&t, 15));
	jit_tables_fini(&t);
}

static void the_rfcs_form_is_read_without_the_mark(void **state)
{
	clear();
	struct code_jit_unwind_table *t = (struct code_jit_unwind_table *)(room + 64);
	*t = (struct code_jit_unwind_table){.reserved_len = 480, .used_len = sizeof(low_rows)};
	memcpy(t + 1, low_rows, sizeof(low_rows));
	struct code_jit_info info = {
		.text_start = TEXT, .text_end = TEXT + TEXT_SIZE, .unwind_head = AT + 64};
	struct jit_tables tables = read_tables(&info);
	assert_null(tables.rows_why);
	assert_int_equal(jit_row_at(&tables, 29)->cfa_off, 16);
	jit_tables_fini(&tables);
}

/*
 * Members beyond size are absent, whatever is there; those beyond what is known are stepped over.
 */
static void elements_are_stepped_over_by_the_stride(void **state)
{
	struct {
		struct code_jit_unwind_fre row;
		uint64_t newer;
	} wide[] = {{low_rows[0], 1}, {low_rows[1], 2}};
	clear();
	struct code_jit_info info = region_of(put_table(wide, 2, sizeof(wide[0]), 0), 0, 0);
	struct code_jit_symbol symbol = {
		.size = 10, .ip_off = 5, .name = 0x1234, .depth = 77, .call_line = 78};
	info.symbols_head = put_table(&symbol, 1, sizeof(symbol), 0);
	table_at(info.symbols_head)->size = offsetof(struct code_jit_symbol, depth);
	struct jit_tables t = read_tables(&info);
	assert_true(!t.rows_why && !t.symbols_why);
	assert_int_equal(jit_row_at(&t, 29)->cfa_off, 16);
	const struct jit_symbol *found;
	assert_int_equal(jit_symbols_at(&t, 5, &found, 1), 1);
	assert_true(found->name == 0x1234 && !found->depth && !found->call_line);
	jit_tables_fini(&t);
}

static void copies_are_found_within_their_function(void **state)
{
	static const struct code_jit_symbol symbols[] = {{100, 0, 1, 0, 0, 0},
							 {50, 10, 2, 1, 7, 0},
							 {10, 20, 3, 2, 8, 0},
							 {10, 70, 4, 1, 9, 0},
							 {100, 200, 5, 0, 0, 0}};
	const struct jit_symbol *found[4];
	clear();
	struct code_jit_info info = region_of(0, put_table(symbols, 5, sizeof(symbols[0]), 0), 0);
	struct jit_tables t = read_tables(&info);
	assert_null(t.symbols_why);
	assert_int_equal(jit_symbols_at(&t, 25, found, 4), 3);
	assert_true(found[0]->name == 1 && found[1]->name == 2 && found[2]->name == 3);
	assert_int_equal(jit_symbols_at(&t, 25, found, 2), 2);
	assert_int_equal(jit_symbols_at(&t, 75, found, 4), 2);
	assert_int_equal(found[1]->name, 4);
	assert_int_equal(jit_symbols_at(&t, 99, found, 4), 1);
	assert_int_equal(jit_symbols_at(&t, 150, found, 4), 0);
	assert_int_equal(jit_symbols_at(&t, 200, found, 4), 1);
	assert_int_equal(found[0]->name, 5);
	assert_int_equal(jit_symbols_at(&t, 300, found, 4), 0);
	jit_tables_fini(&t);
}

static void what_was_inlined_goes_with_a_withdrawn_function(void **state)
{
	static const struct code_jit_symbol symbols[] = {
		{100, 0, 1, 0, 0, 0}, {0, 10, 2, 1, 7, 0},  {10, 20, 3, 2, 8, 0},
		{0, 200, 4, 0, 0, 0}, {9, 210, 5, 1, 0, 0}, {9, 300, 6, 0, 0, 0}};
	const struct jit_symbol *found[4];
	clear();
	struct code_jit_info info = region_of(0, put_table(symbols, 6, sizeof(symbols[0]), 0), 0);
	struct jit_tables t = read_tables(&info);
	assert_null(t.symbols_why);
	assert_int_equal(t.symbols.n, 2);
	assert_int_equal(jit_symbols_at(&t, 25, found, 4), 1);
	assert_int_equal(jit_symbols_at(&t, 212, found, 4), 0);
	assert_int_equal(jit_symbols_at(&t, 303, found, 4), 1);
	jit_tables_fini(&t);
}

static void of_several_lines_at_an_address_the_last_counts(void **state)
{
	static const struct code_jit_line lines[] = {{10, 1, 0}, {20, 2, 0}, {20, 3, 0},
						     {20, 0, 0}, {20, 4, 0}, {30, 0, 0}};
	clear();
	struct code_jit_info info = region_of(0, 0, put_table(lines, 6, sizeof(lines[0]), 0));
	struct jit_tables t = read_tables(&info);
	assert_null(t.lines_why);
	assert_null(jit_line_at(&t, 9));
	assert_int_equal(jit_line_at(&t, 19)->line, 1);
	assert_int_equal(jit_line_at(&t, 20)->line, 4);
	assert_int_equal(jit_line_at(&t, 29)->line, 4);
	assert_int_equal(jit_line_at(&t, 1000)->line, 0);
	jit_tables_fini(&t);
}

/* ---- lies ---- */

static void refuse_rows(const struct code_jit_info *info, const char *says)
{
	struct jit_tables t = read_tables(info);
	assert_non_null(t.rows_why);
	assert_non_null(strstr(t.rows_why, says));
	assert_int_equal(t.rows.n, 0);
	jit_tables_fini(&t);
}

static void a_table_that_lies_refuses_its_chain(void **state)
{
	static const struct {
		size_t off, n;
		uint64_t value;
		const char *says;
	} lies[] = {
		{offsetof(struct code_jit_table, used_len), 8, 8 * 24, "more bytes than it has"},
		{offsetof(struct code_jit_table, used_len), 8, UINT64_MAX,
		 "more bytes than it has"},
		{offsetof(struct code_jit_table, used_len), 8, 25, "within an element"},
		{offsetof(struct code_jit_table, stride), 4, 0, "no size that can be"},
		{offsetof(struct code_jit_table, stride), 4, 5000, "no size that can be"},
		{offsetof(struct code_jit_table, size), 4, 25, "no size that can be"},
		{offsetof(struct code_jit_table, size), 4, 20, "no size that can be"},
		{offsetof(struct code_jit_table, next), 8, 1, "not in memory"},
		{offsetof(struct code_jit_table, next), 8, UINT64_MAX, "not in memory"},
		{offsetof(struct code_jit_table, next), 8, AT + sizeof(room) - 8, "not in memory"},
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		clear();
		uint64_t at = put_rows(low_rows, 3, 0);
		memcpy((uint8_t *)table_at(at) + lies[i].off, &lies[i].value, lies[i].n);
		struct code_jit_info info = region_of(at, 0, 0);
		refuse_rows(&info, lies[i].says);
	}
}

/* A table that claims all that can be claimed: what its lengths promise is not in memory. */
static void a_table_of_a_whole_address_space_is_refused(void **state)
{
	clear();
	uint64_t at = put_rows(low_rows, 3, 0);
	table_at(at)->reserved_len = UINT64_MAX;
	table_at(at)->used_len = UINT64_MAX / 24 * 24;
	struct code_jit_info info = region_of(at, 0, 0);
	refuse_rows(&info, "larger, than real ones");
	table_at(at)->used_len = 24 * 10000;
	refuse_rows(&info, "elements are not in memory");
}

static void rows_that_do_not_ascend_or_overlap_are_refused(void **state)
{
	static const struct code_jit_unwind_fre pairs[][2] = {
		{{.size = 10, .ip_off = 100}, {.size = 10, .ip_off = 0}},
		{{.size = 10, .ip_off = 100}, {.size = 10, .ip_off = 109}},
		{{.size = 10, .ip_off = 100}, {.size = 10, .ip_off = 100}},
	};
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		clear();
		struct code_jit_info info = region_of(put_rows(pairs[i], 2, 0), 0, 0);
		refuse_rows(&info, "order of address");
		info.unwind_head = put_rows(&pairs[i][0], 1, put_rows(&pairs[i][1], 1, 0));
		refuse_rows(&info, "order of address");
	}
}

static void rows_outside_of_the_region_are_refused(void **state)
{
	static const struct code_jit_unwind_fre rows[] = {{.size = 2, .ip_off = TEXT_SIZE - 1},
							  {.size = UINT32_MAX, .ip_off = 1},
							  {.size = 1, .ip_off = UINT32_MAX}};
	for (size_t i = 0; i < 3; i++) {
		clear();
		struct code_jit_info info = region_of(put_rows(&rows[i], 1, 0), 0, 0);
		refuse_rows(&info, "not within the region");
	}
}

static void a_chain_that_leads_back_is_left(void **state)
{
	for (int n = 1; n <= 7; n++) {
		clear();
		uint64_t last = put_rows(NULL, 0, 0), at = last;
		for (int i = 1; i < n; i++)
			at = put_rows(NULL, 0, at);
		table_at(last)->next = at;
		struct code_jit_info info = region_of(at, 0, 0);
		refuse_rows(&info, "back to themselves");
	}
}

/* Memory in which every address is a table, and the next one is a new one. */
static size_t read_endless(void *ctx, uint64_t from, void *ret, size_t n)
{
	struct code_jit_table t = {.reserved_len = 0, .next = from + 32, .stride = 24, .size = 24};
	++*(unsigned int *)ctx;
	memcpy(ret, &t, n < sizeof(t) ? n : sizeof(t));
	return n;
}

static void an_endless_chain_is_left(void **state)
{
	unsigned int reads = 0;
	struct code_memory endless = {read_endless, &reads};
	struct code_jit_info info = region_of(0x1000, 0, 0);
	struct jit_tables t = {0};
	uint64_t budget = PLENTY;
	assert_int_equal(jit_tables_read(&endless, &info, &budget, &t, NULL), 0);
	assert_non_null(strstr(t.rows_why, "than real ones"));
	assert_between(reads, 1000, 100000);
	jit_tables_fini(&t);
}

/* Regions together have a limit, too, so that many of them do not multiply one's. */
static void what_is_read_is_taken_off_the_budget(void **state)
{
	unsigned int reads = 0;
	struct code_memory endless = {read_endless, &reads};
	struct code_jit_info info = region_of(0x1000, 0, 0);
	struct jit_tables t = {0};
	uint64_t budget = 100 << 10;
	assert_int_equal(jit_tables_read(&endless, &info, &budget, &t, NULL), 0);
	assert_non_null(strstr(t.rows_why, "of the process"));
	assert_between(reads, 50, 110);
	assert_true(budget < 2048);
	jit_tables_fini(&t);
}

static void copies_that_are_in_nothing_are_refused(void **state)
{
	static const struct {
		struct code_jit_symbol symbols[3];
		const char *says;
	} cases[] = {
		{{{10, 0, 1, 1, 0, 0}}, "into nothing"},
		{{{10, 0, 1, 0, 0, 0}, {5, 0, 1, 2, 0, 0}}, "into nothing"},
		{{{10, 0, 1, 0, 0, 0}, {11, 0, 1, 1, 0, 0}}, "not within the function"},
		{{{10, 5, 1, 0, 0, 0}, {5, 4, 1, 1, 0, 0}}, "not within the function"},
		{{{10, 0, 1, 0, 0, 0}, {5, 0, 1, UINT32_MAX, 0, 0}}, "into nothing"},
		{{{10, 0, 1, 0, 0, 0}, {5, 0, 1, 1, 0, 0}, {10, 0, 1, 0, 0, 0}},
		 "order of address"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		clear();
		size_t n = cases[i].symbols[2].size ? 3 : cases[i].symbols[1].size ? 2 : 1;
		struct code_jit_info info = region_of(
			0, put_table(cases[i].symbols, n, sizeof(cases[i].symbols[0]), 0), 0);
		struct jit_tables t = read_tables(&info);
		assert_non_null(t.symbols_why);
		assert_non_null(strstr(t.symbols_why, cases[i].says));
		assert_int_equal(t.symbols.n, 0);
		jit_tables_fini(&t);
	}
}

/* Each copy is compared with what it may be in, not with all before it. */
static void a_thousand_copies_of_one_function_are_each_found(void **state)
{
	enum { N = 1000 };
	static struct code_jit_symbol symbols[N + 1];
	const struct jit_symbol *found[2];
	clear();
	symbols[0] = (struct code_jit_symbol){.size = TEXT_SIZE};
	for (uint32_t i = 1; i <= N; i++)
		symbols[i] = (struct code_jit_symbol){.size = 1, .ip_off = i, .depth = 1};
	struct code_jit_info info =
		region_of(0, put_table(symbols, N + 1, sizeof(symbols[0]), 0), 0);
	struct jit_tables t = read_tables(&info);
	assert_null(t.symbols_why);
	for (uint32_t i = 1; i <= N; i++)
		assert_int_equal(jit_symbols_at(&t, i, found, 2), 2);
	jit_tables_fini(&t);
}

/* ---- while it grows ---- */

static uint64_t growing;
static uint64_t between;

/* After the head of the first table: it grows, and a table is put between it and the next. */
static void grow(unsigned int n)
{
	static const struct code_jit_unwind_fre more = {.size = 5, .ip_off = 60, .cfa_off = 48},
						middle = {.size = 5, .ip_off = 80, .cfa_off = 56};
	if (n != 2)
		return;
	struct code_jit_table *t = table_at(growing);
	memcpy((uint8_t *)(t + 1) + t->used_len, &more, sizeof(more));
	t->used_len += sizeof(more);
	between = put_rows(&middle, 1, t->next);
	t->next = between;
}

static void what_was_there_before_is_found_while_tables_grow(void **state)
{
	clear();
	growing = put_rows(low_rows, 3, put_rows(high_rows, 1, 0));
	struct code_jit_info info = region_of(growing, 0, 0);
	on_read = grow;
	struct jit_tables t = read_tables(&info);
	assert_null(t.rows_why);
	assert_true(jit_row_at(&t, 15) && jit_row_at(&t, 44) && jit_row_at(&t, 105));
	jit_tables_fini(&t);
	on_read = NULL;
	t = read_tables(&info);
	assert_null(t.rows_why);
	assert_int_equal(t.rows.n, 6);
	assert_int_equal(jit_row_at(&t, 62)->cfa_off, 48);
	assert_int_equal(jit_row_at(&t, 82)->cfa_off, 56);
	jit_tables_fini(&t);
}

static struct code_jit_info all_kinds(void)
{
	static const struct code_jit_symbol symbols[] = {{100, 0, 1, 0, 0, 0},
							 {50, 10, 2, 1, 7, 0}};
	static const struct code_jit_line lines[] = {{10, 1, 0}, {20, 0, 0}};
	clear();
	return region_of(put_rows(low_rows, 3, put_rows(high_rows, 1, 0)),
			 put_table(symbols, 2, sizeof(symbols[0]), 0),
			 put_table(lines, 2, sizeof(lines[0]), 0));
}

static void memory_that_ends_at_any_byte_refuses_the_chain(void **state)
{
	struct code_jit_info info = all_kinds();
	for (n_there = 0; n_there < n_room; n_there++) {
		struct jit_tables t = read_tables(&info);
		assert_true(t.rows_why ? !t.rows.n : t.rows.n == 4);
		assert_true(t.symbols_why ? !t.symbols.n : t.symbols.n == 2);
		assert_true(t.lines_why ? !t.lines.n : t.lines.n == 2);
		jit_tables_fini(&t);
	}
}

static void no_flipped_bit_does_harm(void **state)
{
	struct code_jit_info info = all_kinds();
	const struct jit_symbol *found[4];
	for (size_t bit = 0; bit < n_room * 8; bit++) {
		room[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct jit_tables t = read_tables(&info);
		for (uint64_t off = 0; off < 200; off++) {
			const struct jit_row *row = jit_row_at(&t, off);
			assert_true(!row || (off >= row->off && off - row->off < row->size));
			jit_symbols_at(&t, off, found, 4);
			jit_line_at(&t, off);
		}
		jit_tables_fini(&t);
		room[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}

static void every_allocation_may_fail(void **state)
{
	struct code_jit_info info = all_kinds();
	for (unsigned int n = 1;; n++) {
		struct jit_tables t = {0};
		uint64_t budget = PLENTY;
		alloc_fail_at(n);
		int rc = jit_tables_read(&memory, &info, &budget, &t, NULL);
		bool failed = alloc_fail_end();
		jit_tables_fini(&t);
		if (!failed)
			break;
		assert_int_equal(rc, -ENOMEM);
	}
}

/* ---- rules ---- */

static void a_row_is_a_rule(void **state)
{
	struct rule_words w;
	struct jit_row row = {
		.size = 1, .cfa_off = 16, .fp_off = -16, .info = CODE_ROW_CFA_FP | CODE_ROW_FP};
	jit_row_rule(&row, EM_X86_64, &w);
	const struct cairn_unwind_rule *rule = (const struct cairn_unwind_rule *)w.words;
	assert_true(rule->cfa == CAIRN_UNWIND_CFA_REG && rule->reg == 6 && rule->off == 16 &&
		    !rule->flags);
	row.info = CODE_ROW_UNDESCRIBED;
	jit_row_rule(&row, EM_X86_64, &w);
	assert_int_equal(w.words[0], 0);
	row.info = CODE_ROW_OUTERMOST | CODE_ROW_SIGNAL;
	jit_row_rule(&row, EM_X86_64, &w);
	assert_int_equal(rule->flags, CAIRN_UNWIND_OUTERMOST | CAIRN_UNWIND_SIGNAL);
	assert_int_equal(rule->reg, 7);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_found_over_a_chain),
		cmocka_unit_test(withdrawn_rows_are_none),
		cmocka_unit_test(the_rfcs_form_is_read_without_the_mark),
		cmocka_unit_test(elements_are_stepped_over_by_the_stride),
		cmocka_unit_test(copies_are_found_within_their_function),
		cmocka_unit_test(what_was_inlined_goes_with_a_withdrawn_function),
		cmocka_unit_test(of_several_lines_at_an_address_the_last_counts),
		cmocka_unit_test(a_table_that_lies_refuses_its_chain),
		cmocka_unit_test(a_table_of_a_whole_address_space_is_refused),
		cmocka_unit_test(rows_that_do_not_ascend_or_overlap_are_refused),
		cmocka_unit_test(rows_outside_of_the_region_are_refused),
		cmocka_unit_test(a_chain_that_leads_back_is_left),
		cmocka_unit_test(an_endless_chain_is_left),
		cmocka_unit_test(what_is_read_is_taken_off_the_budget),
		cmocka_unit_test(copies_that_are_in_nothing_are_refused),
		cmocka_unit_test(a_thousand_copies_of_one_function_are_each_found),
		cmocka_unit_test(what_was_there_before_is_found_while_tables_grow),
		cmocka_unit_test(memory_that_ends_at_any_byte_refuses_the_chain),
		cmocka_unit_test(no_flipped_bit_does_harm),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(a_row_is_a_rule),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
