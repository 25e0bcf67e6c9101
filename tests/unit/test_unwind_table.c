/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "cfi/table.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "frame_builder.h"

enum { TEXT = 0xf000, TEXT_SIZE = 0x3000, FRAME = 0x40000, RBX = 3, RBP = 6, RSP = 7, RA = 16 };

/* A file with code and .eh_frame, and its table. */
struct sample {
	struct elf_builder *b;
	uint8_t *bytes;
	size_t size;
	struct cairn_binary *bin;
	struct cfi *cfi;
	uint8_t *table;
	size_t table_size;
	struct unwind_table t;
	struct cairn_err err;
};

static void must(const struct sample *s, int rc)
{
	if (rc < 0)
		fail_msg("%s", s->err.msg);
}

static void sample_open(struct sample *s, const struct frames *f)
{
	static const uint8_t code[TEXT_SIZE] = {0x90};
	*s = (struct sample){.b = eb_new(ET_DYN)};
	uint32_t text = eb_section(s->b, (struct eb_section){.name = ".text",
							     .flags = SHF_ALLOC | SHF_EXECINSTR,
							     .addr = TEXT,
							     EB_BYTES(code)});
	eb_load(s->b, text);
	eb_section(s->b, (struct eb_section){.name = ".eh_frame",
					     .flags = SHF_ALLOC,
					     .addr = FRAME,
					     .data = f->bytes,
					     .size = f->n});
	s->bytes = eb_finish(s->b, &s->size);
	must(s, binary_open_mem(s->bytes, s->size, "sample", &s->bin, &s->err));
	must(s, cfi_open(s->bin, &s->cfi, &s->err));
}

static struct sample table_of(const struct frames *f)
{
	struct sample s;
	sample_open(&s, f);
	must(&s, unwind_table_build(s.cfi, UNWIND_PROVED, 1, &s.table, &s.table_size, &s.err));
	must(&s, unwind_table_open(s.table, s.table_size, "sample", "table", &s.t, &s.err));
	return s;
}

static void sample_end(struct sample *s)
{
	free(s->table);
	cfi_close(s->cfi);
	cairn_binary_close(s->bin);
	eb_free(s->b);
}

static const struct cairn_unwind_header *header(const struct sample *s)
{
	return (const struct cairn_unwind_header *)s->table;
}

static const struct cairn_unwind_rule *find(const struct sample *s, uint64_t at)
{
	return unwind_table_find(&s->t, (struct cairn_vaddr){at});
}

static void assert_cfa(const struct sample *s, uint64_t at, unsigned int reg, int32_t off)
{
	const struct cairn_unwind_rule *r = find(s, at);
	if (r->cfa != CAIRN_UNWIND_CFA_REG || r->reg != reg || r->off != off)
		fail_msg("0x%lx: kind %d, register %d%+d; expected register %u%+d",
			 (unsigned long)at, r->cfa, r->reg, r->off, reg, off);
}

static void assert_undescribed(const struct sample *s, uint64_t at)
{
	if (find(s, at)->cfa != CAIRN_UNWIND_UNDESCRIBED)
		fail_msg("0x%lx is described", (unsigned long)at);
}

static bool word_of(const struct cairn_unwind_rule *r, unsigned int reg,
		    enum cairn_unwind_saved *ret, int32_t *ret_value)
{
	for (uint32_t i = 0; i < r->n_regs; i++)
		if (cairn_unwind_word_reg(cairn_unwind_words(r)[i]) == reg) {
			*ret = cairn_unwind_word_saved(cairn_unwind_words(r)[i]);
			*ret_value = cairn_unwind_word_value(cairn_unwind_words(r)[i]);
			return true;
		}
	return false;
}

static void assert_saved(const struct cairn_unwind_rule *r, unsigned int reg,
			 enum cairn_unwind_saved saved, int32_t value)
{
	enum cairn_unwind_saved have;
	int32_t have_value;
	assert_true(word_of(r, reg, &have, &have_value));
	assert_int_equal(have, saved);
	assert_int_equal(have_value, value);
}

/* push %rbp at +0, mov %rsp,%rbp at +1 */
static const uint8_t prologue[] = {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6};

/* ---- what the rows say ---- */

static void rows_follow_the_prologue(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x20, prologue, sizeof(prologue));
	struct sample s = table_of(&f);
	assert_undescribed(&s, 0);
	assert_undescribed(&s, TEXT + 0xf);
	assert_cfa(&s, TEXT + 0x10, RSP, 8);
	assert_int_equal(find(&s, TEXT + 0x10)->n_regs, 0);
	assert_cfa(&s, TEXT + 0x11, RSP, 16);
	assert_saved(find(&s, TEXT + 0x11), RBP, CAIRN_UNWIND_AT_CFA, -16);
	assert_cfa(&s, TEXT + 0x14, RBP, 16);
	assert_cfa(&s, TEXT + 0x2f, RBP, 16);
	assert_undescribed(&s, TEXT + 0x30);
	assert_undescribed(&s, UINT64_MAX);
	assert_int_equal(header(&s)->n_rows, 4);
	assert_int_equal(header(&s)->text_bytes, 0x20);
	sample_end(&s);
}

static void a_row_holds_over_the_end_of_its_page(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	/* The page ends at 0x10000, in the middle of it. */
	frames_fde_eh(&f, FRAME, cie, TEXT + 0xff0, 0x20, prologue, sizeof(prologue));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x1040, 0x10, NULL, 0);
	struct sample s = table_of(&f);
	assert_cfa(&s, 0xffff, RBP, 16);
	assert_cfa(&s, 0x10000, RBP, 16);
	assert_cfa(&s, 0x1000f, RBP, 16);
	assert_undescribed(&s, 0x10010);
	assert_cfa(&s, 0x10040, RSP, 8);
	assert_int_equal(header(&s)->n_pages, 2);
	sample_end(&s);
}

static void equal_rows_of_neighbours_are_one(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	/* A row that changes a register without a column: nothing that the table keeps. */
	static const uint8_t vector[] = {0x41, 0x80 + 0x20, 4};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, vector, sizeof(vector));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, NULL, 0);
	struct sample s = table_of(&f);
	assert_int_equal(header(&s)->n_rows, 2);
	assert_cfa(&s, TEXT + 0x1f, RSP, 8);
	sample_end(&s);
}

static void rules_beyond_register_plus_offset(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	static const uint8_t openssl[] = {0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8}; /* *(rsp+40)+8 */
	static const uint8_t realigned[] = {
		0x10, 6,    2,    0x76, 0, 0x0f, 3,   0x76,
		0x78, 0x06, 0x10, 3,    2, 0x76, 0x70}; /* rbp, rbx by rbp; CFA *(rbp-8) */
	static const uint8_t realigning[] = {0x0c, 10, 0,    0x10,
					     6,    2,  0x76, 0}; /* r10+0, rbp at *(rbp) */
	static const uint8_t by_rbx[] = {0x0d, 3, 0x09, RA, 2,
					 0x08, 5, 0x07, 12}; /* RA in rcx, rdi same, r12 gone */
	static const uint8_t outermost[] = {0x07, RA};
	static const uint8_t other[] = {0x0f, 3, 0x77, 0, 0x1f};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, openssl, sizeof(openssl));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, realigned, sizeof(realigned));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x20, 0x10, by_rbx, sizeof(by_rbx));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x30, 0x10, outermost, sizeof(outermost));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x40, 0x10, other, sizeof(other));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x50, 0x10, realigning, sizeof(realigning));
	struct sample s = table_of(&f);
	const struct cairn_unwind_rule *r = find(&s, TEXT);
	assert_int_equal(r->cfa, CAIRN_UNWIND_CFA_DEREF);
	assert_int_equal(r->off, 40);
	assert_int_equal(r->add, 8);
	r = find(&s, TEXT + 0x10);
	assert_int_equal(r->cfa, CAIRN_UNWIND_CFA_DEREF);
	assert_int_equal(r->off, -8);
	assert_saved(r, RBP, CAIRN_UNWIND_AT_BASE, 0);
	assert_saved(r, RBX, CAIRN_UNWIND_AT_BASE, -16);
	r = find(&s, TEXT + 0x20);
	assert_int_equal(r->reg, RBX);
	assert_saved(r, RA, CAIRN_UNWIND_IN_REG, 2);
	assert_saved(r, 5, CAIRN_UNWIND_SAME, 0);
	assert_saved(r, 12, CAIRN_UNWIND_LOST, 0);
	assert_int_equal(find(&s, TEXT + 0x30)->flags, CAIRN_UNWIND_OUTERMOST);
	assert_undescribed(&s, TEXT + 0x40);
	assert_saved(find(&s, TEXT + 0x50), RBP, CAIRN_UNWIND_AT_FP, 0);
	assert_int_equal(header(&s)->n_dropped, 0);
	sample_end(&s);
}

static void a_signal_trampoline_restores_every_register(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zRS", "\x1b");
	static const uint8_t program[] = {0x0f, 4,  0x77, 0xa0, 0x01, 0x06, /* CFA = *(rsp+160) */
					  0x10, 0,  3,    0x77, 0x90, 0x01, /* rax at rsp+144 */
					  0x10, RA, 3,    0x77, 0xa8, 0x01};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, program, sizeof(program));
	struct sample s = table_of(&f);
	const struct cairn_unwind_rule *r = find(&s, TEXT);
	assert_int_equal(r->flags, CAIRN_UNWIND_SIGNAL);
	assert_saved(r, 0, CAIRN_UNWIND_AT_BASE, 144);
	assert_saved(r, RA, CAIRN_UNWIND_AT_BASE, 168);
	sample_end(&s);
}

static void a_procedure_linkage_table_has_two_rows_per_entry(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	static const uint8_t program[] = {0x0e, 16, 0x46, 0x0e, 24,   0x4a, 0x0f, 11,   0x77, 8,
					  0x80, 0,  0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x40, program, sizeof(program));
	struct sample s = table_of(&f);
	assert_cfa(&s, TEXT, RSP, 16);
	assert_cfa(&s, TEXT + 6, RSP, 24);
	for (uint64_t at = TEXT + 0x10; at < TEXT + 0x40; at++)
		assert_cfa(&s, at, RSP, at % 16 >= 11 ? 16 : 8);
	assert_undescribed(&s, TEXT + 0x40);
	sample_end(&s);
}

/*
 * What stubs of old glibc have, which are jumped to and jump back: the caller goes on at a distance
 * from here.
 */
static void a_return_address_may_be_the_pc_and_a_number(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zRS", "\x1b");
	static const uint8_t simple[] = {0x16, RA, 2, 0x80, 0x1b}; /* pc+27 */
	static const uint8_t folded[] = {
		0x16, RA,   14,   0x80, 4, 0x0d, 16, 0,   0,
		0,    0x1c, 0x0d, 2,    1, 0,    0,  0x22}; /* pc+4-16+258 */
	static const uint8_t skipping[] = {0x16, RA, 8,    0x80, 5, 0x2f,
					   1,    0,  0x96, 0x23, 3};          /* pc+5+3 */
	static const uint8_t twice[] = {0x16, RA, 5, 0x80, 4, 0x80, 4, 0x22}; /* 2 pc + 8 */
	static const uint8_t other[] = {0x16, RA, 3, 0x80, 4, 0x06};          /* *(pc+4) */
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, simple, sizeof(simple));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, folded, sizeof(folded));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x20, 0x10, skipping, sizeof(skipping));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x30, 0x10, twice, sizeof(twice));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x40, 0x10, other, sizeof(other));
	struct sample s = table_of(&f);
	assert_saved(find(&s, TEXT), RA, CAIRN_UNWIND_IS_PC, 27);
	assert_saved(find(&s, TEXT + 0x10), RA, CAIRN_UNWIND_IS_PC, 246);
	assert_saved(find(&s, TEXT + 0x20), RA, CAIRN_UNWIND_IS_PC, 8);
	assert_saved(find(&s, TEXT + 0x30), RA, CAIRN_UNWIND_LOST, 0);
	assert_saved(find(&s, TEXT + 0x40), RA, CAIRN_UNWIND_LOST, 0);
	assert_int_equal(header(&s)->version, 2);
	assert_int_equal(header(&s)->row_size, 4);
	sample_end(&s);
}

static size_t cie_with_column(struct frames *f, uint8_t column)
{
	size_t at = frames_entry_begin(f, 0, false);
	const uint8_t rest[] = {1, 'z', 'R', 0, 1, 0x78, column, 1, 0x1b, 0x0c, RSP, 8};
	frames_put(f, rest, sizeof(rest));
	frames_entry_end(f, at);
	return at;
}

static void another_column_may_have_the_return_address(void **state)
{
	struct frames f = {0};
	static const uint8_t saved[] = {0x80 + 15, 2}, gone[] = {0x07, 15};
	size_t cie = cie_with_column(&f, 15);
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, NULL, 0);
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, saved, sizeof(saved));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x20, 0x10, gone, sizeof(gone));
	cie = cie_with_column(&f, 77);
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x30, 0x10, NULL, 0);
	struct sample s = table_of(&f);
	assert_saved(find(&s, TEXT), RA, CAIRN_UNWIND_IN_REG, 15);
	assert_saved(find(&s, TEXT + 0x10), RA, CAIRN_UNWIND_AT_CFA, -16);
	assert_int_equal(find(&s, TEXT + 0x20)->flags, CAIRN_UNWIND_OUTERMOST);
	/* No register of that number: left out, and counted. */
	assert_undescribed(&s, TEXT + 0x30);
	assert_int_equal(header(&s)->n_dropped, 1);
	sample_end(&s);
}

static void put_uleb(uint8_t **to, uint32_t v)
{
	for (; v > 0x7f; v >>= 7)
		*(*to)++ = (uint8_t)(v | 0x80);
	*(*to)++ = (uint8_t)v;
}

/* A rule for each byte of code, of 9 words: more than 16 bits can number. */
static void more_rules_than_16_bits_can_number_have_wide_rows(void **state)
{
	enum { RULES = TEXT_SIZE - 16 };
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	uint8_t *program = malloc(16 + RULES * 5), *p = program;
	for (unsigned int reg = 10; reg < 16; reg++) {
		*p++ = (uint8_t)(0x80 + reg);
		*p++ = 2;
	}
	for (uint32_t i = 0; i < RULES; i++) {
		*p++ = 0x0e;
		put_uleb(&p, 8 + i);
		*p++ = 0x41;
	}
	frames_fde_eh(&f, FRAME, cie, TEXT, RULES + 1, program, (size_t)(p - program));
	struct sample s;
	sample_open(&s, &f);
	must(&s, unwind_table_build(s.cfi, UNWIND_AS_WRITTEN, 1, &s.table, &s.table_size, &s.err));
	must(&s, unwind_table_open(s.table, s.table_size, "sample", "table", &s.t, &s.err));
	assert_int_equal(header(&s)->version, 2);
	assert_int_equal(header(&s)->row_size, 8);
	assert_true(header(&s)->rules_size / 4 > 65536);
	struct unwind_table unread;
	must(&s,
	     unwind_table_open_unread(s.table, s.table_size, "sample", "table", &unread, &s.err));
	must(&s, unwind_table_index(&s.t));
	for (uint32_t i = 0; i < RULES; i++) {
		struct cairn_vaddr lo, hi;
		assert_cfa(&s, TEXT + i, RSP, (int32_t)(8 + i));
		assert_ptr_equal(unwind_table_find(&unread, (struct cairn_vaddr){TEXT + i}),
				 find(&s, TEXT + i));
		assert_ptr_equal(unwind_table_row(&s.t, i, &lo, &hi), find(&s, TEXT + i));
		assert_int_equal(lo.v, TEXT + i);
	}
	assert_undescribed(&s, TEXT + RULES + 1);
	unwind_table_fini(&s.t);
	sample_end(&s);
	frames_free(&f);
	free(program);
}

static void overlapping_entries_give_the_innermost_as_a_single_lookup_does(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	static const uint8_t off16[] = {0x0e, 16}, off24[] = {0x0e, 24}, off32[] = {0x0e, 32};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x100, prologue, sizeof(prologue));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x20, 0x20, off16, sizeof(off16));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x20, 0x40, off24, sizeof(off24));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x50, 0x200, off32, sizeof(off32));
	struct sample s = table_of(&f);
	for (uint64_t at = TEXT; at < TEXT + 0x260; at++) {
		struct cfi_row row;
		if (cfi_row_at(s.cfi, (struct cairn_vaddr){at}, &row, NULL) == 1)
			assert_cfa(&s, at, row.cfa_reg, (int32_t)row.cfa_off);
		else
			assert_undescribed(&s, at);
	}
	sample_end(&s);
}

static void code_of_a_damaged_entry_is_not_described(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	static const uint8_t damaged[] = {0x41, 0x0e, 16, 0x41, 0x3d};
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, damaged, sizeof(damaged));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, NULL, 0);
	/* Outside the code, and over the end of it. */
	frames_fde_eh(&f, FRAME, cie, TEXT + TEXT_SIZE, 0x10, NULL, 0);
	frames_fde_eh(&f, FRAME, cie, TEXT + TEXT_SIZE - 0x10, 0x7fffffff, NULL, 0);
	struct sample s = table_of(&f);
	assert_undescribed(&s, TEXT);
	assert_undescribed(&s, TEXT + 0xf);
	assert_cfa(&s, TEXT + 0x10, RSP, 8);
	assert_cfa(&s, TEXT + TEXT_SIZE - 1, RSP, 8);
	assert_undescribed(&s, TEXT + TEXT_SIZE);
	/* The damaged one, the one outside, and what of the last is outside after that. */
	assert_int_equal(header(&s)->n_dropped, 3);
	sample_end(&s);
}

static void a_file_without_call_frame_information_has_an_empty_table(void **state)
{
	struct frames f = {0};
	frames_u32(&f, 0);
	struct sample s = table_of(&f);
	assert_int_equal(header(&s)->n_rows, 0);
	assert_undescribed(&s, TEXT);
	sample_end(&s);
}

/* ---- against the single lookup, over whole libraries ---- */

/* The rule says of a register what the row says, or says that it is lost. */
static void assert_register(const struct cairn_unwind_rule *r, const struct cfi_row *row,
			    unsigned int reg, size_t *n_lost)
{
	const struct cfi_reg *have = &row->regs[reg];
	enum cairn_unwind_saved saved = CAIRN_UNWIND_SAME;
	int32_t value = 0;
	bool is_said = word_of(r, reg, &saved, &value);
	if (is_said && saved == CAIRN_UNWIND_LOST) {
		*n_lost += 1;
		assert_true(have->kind != CFI_REG_AT_CFA && have->kind != CFI_REG_UNSPECIFIED);
		return;
	}
	switch (have->kind) {
	case CFI_REG_UNSPECIFIED:
		assert_false(is_said);
		break;
	case CFI_REG_AT_CFA:
		if (!is_said) {
			assert_int_equal(reg, RA);
			assert_int_equal(have->off, -8);
			break;
		}
		assert_int_equal(saved, CAIRN_UNWIND_AT_CFA);
		assert_int_equal(value, have->off);
		break;
	case CFI_REG_AT_REG:
		assert_int_equal(saved,
				 r->reg == have->base ? CAIRN_UNWIND_AT_BASE : CAIRN_UNWIND_AT_FP);
		assert_int_equal(value, have->off);
		assert_true(r->reg == have->base || have->base == RBP);
		break;
	case CFI_REG_REGISTER:
		assert_int_equal(saved, CAIRN_UNWIND_IN_REG);
		assert_int_equal(value, have->off);
		break;
	case CFI_REG_SAME:
		assert_int_equal(saved, CAIRN_UNWIND_SAME);
		break;
	default:
		fail_msg("register %u has kind %d", reg, have->kind);
	}
}

static void assert_row(const struct cairn_unwind_rule *r, const struct cfi_row *row, size_t *n_lost)
{
	if (row->regs[RA].kind == CFI_REG_UNDEFINED) {
		assert_true(r->flags & CAIRN_UNWIND_OUTERMOST);
		return;
	}
	assert_int_equal(!!(r->flags & CAIRN_UNWIND_SIGNAL), row->signal_frame);
	if (row->cfa == CFI_CFA_REG_OFFSET) {
		assert_int_equal(r->cfa, CAIRN_UNWIND_CFA_REG);
		assert_int_equal(r->reg, row->cfa_reg);
		assert_int_equal(r->off, row->cfa_off);
	} else if (r->cfa == CAIRN_UNWIND_UNDESCRIBED) {
		*n_lost += 1;
		return;
	}
	for (unsigned int reg = 0; reg < CFI_N_REGS; reg++)
		assert_register(r, row, reg, n_lost);
}

static void compare_library(const char *path)
{
	struct sample s = {0};
	if (access(path, R_OK) < 0) {
		print_message("%s: not here\n", path);
		return;
	}
	must(&s, cairn_binary_open(path, NULL, &s.bin, &s.err));
	must(&s, cfi_open(s.bin, &s.cfi, &s.err));
	must(&s, unwind_table_build(s.cfi, UNWIND_AS_WRITTEN, 2, &s.table, &s.table_size, &s.err));
	must(&s, unwind_table_open(s.table, s.table_size, path, "table", &s.t, &s.err));
	size_t n_lost = 0, n_described = 0;
	for (uint32_t i = 0; i < s.t.n_rows; i++) {
		struct cairn_vaddr lo, hi;
		const struct cairn_unwind_rule *r = unwind_table_row(&s.t, i, &lo, &hi);
		/* The row begins and ends there: the byte before has another rule. */
		assert_ptr_equal(r, unwind_table_find(&s.t, lo));
		assert_true(hi.v == lo.v ||
			    r == unwind_table_find(&s.t, (struct cairn_vaddr){hi.v - 1}));
		assert_ptr_not_equal(r, unwind_table_find(&s.t, (struct cairn_vaddr){lo.v - 1}));
		/* Rows of the call frame information within it: all of them have this rule. */
		for (struct cairn_vaddr at = lo; at.v < hi.v;) {
			struct cfi_row row;
			int rc = cfi_row_at(s.cfi, at, &row, NULL);
			assert_int_equal(rc == 0, rc == 0 && r->cfa == CAIRN_UNWIND_UNDESCRIBED);
			if (rc == 0)
				break;
			assert_row(r, &row, &n_lost);
			n_described++;
			at = row.hi;
		}
	}
	print_message("%s: %zu FDEs, %u rows, %u bytes of rules, %zu bytes; %zu not expressed\n",
		      path, cfi_n_fdes(s.cfi), s.t.n_rows, header(&s)->rules_size, s.table_size,
		      n_lost);
	assert_true(n_described > 1000);
	assert_true(n_lost * 1000 < n_described);
	assert_int_equal(header(&s)->n_dropped, 0);
	free(s.table);
	cfi_close(s.cfi);
	cairn_binary_close(s.bin);
}

/* The same as without the index: where rows begin, before that, and at random. */
static void compare_index(const char *path)
{
	struct sample s = {0};
	must(&s, cairn_binary_open(path, NULL, &s.bin, &s.err));
	must(&s, cfi_open(s.bin, &s.cfi, &s.err));
	must(&s, unwind_table_build(s.cfi, UNWIND_PROVED, 2, &s.table, &s.table_size, &s.err));
	must(&s, unwind_table_open(s.table, s.table_size, path, "table", &s.t, &s.err));
	struct unwind_table indexed = s.t, unread;
	must(&s, unwind_table_open_unread(s.table, s.table_size, path, "table", &unread, &s.err));
	assert_int_equal(unwind_table_index(&indexed), 0);
	assert_non_null(indexed.blocks);
	struct cairn_vaddr lo = {0}, hi, last;
	uint64_t random = 88172645463325252u;
	unwind_table_row(&s.t, s.t.n_rows - 1, &last, &hi);
	for (uint32_t i = 0; i < s.t.n_rows; i++) {
		unwind_table_row(&s.t, i, &lo, &hi);
		random = random * 6364136223846793005u + 1442695040888963407u;
		const uint64_t places[] = {lo.v, lo.v - 1, lo.v + (random >> 33) % 512,
					   (random >> 20) % (last.v + 70000)};
		for (size_t k = 0; k < sizeof(places) / sizeof(places[0]); k++) {
			struct cairn_vaddr at = {places[k]};
			assert_ptr_equal(unwind_table_find(&indexed, at),
					 unwind_table_find(&s.t, at));
			assert_ptr_equal(unwind_table_find(&unread, at),
					 unwind_table_find(&s.t, at));
		}
	}
	unwind_table_fini(&indexed);
	free(s.table);
	cfi_close(s.cfi);
	cairn_binary_close(s.bin);
}

static void neither_an_index_nor_an_unread_table_changes_an_answer(void **state)
{
	if (access("/lib/x86_64-linux-gnu/libc.so.6", R_OK) < 0)
		skip();
	compare_index("/lib/x86_64-linux-gnu/libc.so.6");
	compare_index("/lib64/ld-linux-x86-64.so.2");
}

static void a_table_of_few_rows_has_no_index(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x20, NULL, 0);
	struct sample s = table_of(&f);
	assert_int_equal(unwind_table_index(&s.t), 0);
	assert_null(s.t.blocks);
	unwind_table_fini(&s.t);
	sample_end(&s);
	frames_free(&f);
}

static void rows_of_debian_libraries_are_those_of_single_lookups(void **state)
{
	compare_library("/lib/x86_64-linux-gnu/libc.so.6");
	compare_library("/lib64/ld-linux-x86-64.so.2");
	compare_library("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
	compare_library("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
}

static void the_bytes_do_not_depend_on_the_threads(void **state)
{
	struct sample s = {0};
	must(&s, cairn_binary_open("/lib/x86_64-linux-gnu/libc.so.6", NULL, &s.bin, &s.err));
	must(&s, cfi_open(s.bin, &s.cfi, &s.err));
	must(&s, unwind_table_build(s.cfi, UNWIND_PROVED, 1, &s.table, &s.table_size, &s.err));
	for (unsigned int threads = 2; threads <= 8; threads += 3) {
		uint8_t *other;
		size_t size;
		must(&s, unwind_table_build(s.cfi, UNWIND_PROVED, threads, &other, &size, &s.err));
		assert_int_equal(size, s.table_size);
		assert_memory_equal(other, s.table, size);
		free(other);
	}
	free(s.table);
	cfi_close(s.cfi);
	cairn_binary_close(s.bin);
}

/* ---- bad input ---- */

static struct sample rich_table(void)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT + 0xff0, 0x20, prologue, sizeof(prologue));
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x1040, 0x10, prologue, sizeof(prologue));
	return table_of(&f);
}

static void ask_addresses(const struct unwind_table *t)
{
	__attribute__((unused)) volatile unsigned int sink = 0;
	for (uint64_t at = TEXT; at < TEXT + TEXT_SIZE; at += 5) {
		const struct cairn_unwind_rule *r = unwind_table_find(t, (struct cairn_vaddr){at});
		for (uint32_t i = 0; i < r->n_regs; i++)
			sink += cairn_unwind_words(r)[i];
	}
}

static void ask_everywhere(const struct unwind_table *t)
{
	__attribute__((unused)) volatile unsigned int sink = 0;
	ask_addresses(t);
	for (uint32_t i = 0; i < t->n_rows; i++) {
		struct cairn_vaddr lo, hi;
		sink += unwind_table_row(t, i, &lo, &hi)->off;
	}
}

static void a_table_cut_at_every_byte_is_refused(void **state)
{
	struct sample s = rich_table();
	for (size_t n = 0; n < s.table_size; n++) {
		struct unwind_table t;
		uint8_t *cut = malloc(n ? n : 1);
		memcpy(cut, s.table, n);
		assert_int_equal(unwind_table_open(cut, n, "cut", "table", &t, &s.err), -EBADMSG);
		assert_non_null(strstr(s.err.msg, "cut: table: "));
		assert_int_equal(unwind_table_open_unread(cut, n, "cut", "table", &t, &s.err),
				 -EBADMSG);
		free(cut);
	}
	sample_end(&s);
}

static void flipped_bits_are_refused_or_harmless(void **state)
{
	struct sample s = rich_table();
	size_t refused = 0;
	for (size_t bit = 0; bit < s.table_size * 8; bit++) {
		struct unwind_table t;
		s.table[bit / 8] ^= (uint8_t)(1u << bit % 8);
		int rc = unwind_table_open(s.table, s.table_size, "flipped", "table", &t, &s.err);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -EOPNOTSUPP);
		refused += rc < 0;
		if (rc == 0)
			ask_everywhere(&t);
		if (unwind_table_open_unread(s.table, s.table_size, "flipped", "table", &t,
					     &s.err) == 0)
			ask_addresses(&t);
		s.table[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(refused > 300);
	sample_end(&s);
}

static void a_rule_that_is_read_first_when_it_is_asked_for_is_checked_then(void **state)
{
	struct sample s = rich_table();
	struct unwind_table t;
	struct cairn_unwind_rule *first;
	assert_int_equal(
		unwind_table_open_unread(s.table, s.table_size, "unread", "table", &t, &s.err), 0);
	first = (struct cairn_unwind_rule *)(uintptr_t)unwind_table_find(
		&t, (struct cairn_vaddr){TEXT + 0xff0});
	assert_int_equal(first->cfa, CAIRN_UNWIND_CFA_REG);
	first->n_regs = 31;
	assert_int_equal(unwind_table_open(s.table, s.table_size, "read", "table", &t, &s.err),
			 -EBADMSG);
	assert_int_equal(
		unwind_table_open_unread(s.table, s.table_size, "unread", "table", &t, &s.err), 0);
	assert_int_equal(unwind_table_find(&t, (struct cairn_vaddr){TEXT + 0xff0})->cfa,
			 CAIRN_UNWIND_UNDESCRIBED);
	sample_end(&s);
}

static void a_newer_version_is_refused_by_name(void **state)
{
	struct sample s = rich_table();
	struct unwind_table t;
	((struct cairn_unwind_header *)s.table)->version = 3;
	assert_int_equal(unwind_table_open(s.table, s.table_size, "new", "table", &t, &s.err),
			 -EOPNOTSUPP);
	assert_non_null(strstr(s.err.msg, "version 3"));
	/* One that says of its rows what nobody knows. */
	((struct cairn_unwind_header *)s.table)->version = 2;
	((struct cairn_unwind_header *)s.table)->row_size = 6;
	assert_int_equal(unwind_table_open(s.table, s.table_size, "new", "table", &t, &s.err),
			 -EBADMSG);
	assert_non_null(strstr(s.err.msg, "size of its rows"));
	sample_end(&s);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct sample s = rich_table();
	unsigned int n = 1;
	for (;; n++) {
		uint8_t *bytes = NULL;
		size_t size;
		alloc_fail_at(n);
		int rc = unwind_table_build(s.cfi, UNWIND_PROVED, 1, &bytes, &size, &s.err);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			assert_memory_equal(bytes, s.table, size);
			free(bytes);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_null(bytes);
	}
	assert_true(n > 8);
	sample_end(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_prologue),
		cmocka_unit_test(a_row_holds_over_the_end_of_its_page),
		cmocka_unit_test(equal_rows_of_neighbours_are_one),
		cmocka_unit_test(rules_beyond_register_plus_offset),
		cmocka_unit_test(a_signal_trampoline_restores_every_register),
		cmocka_unit_test(a_procedure_linkage_table_has_two_rows_per_entry),
		cmocka_unit_test(a_return_address_may_be_the_pc_and_a_number),
		cmocka_unit_test(another_column_may_have_the_return_address),
		cmocka_unit_test(more_rules_than_16_bits_can_number_have_wide_rows),
		cmocka_unit_test(overlapping_entries_give_the_innermost_as_a_single_lookup_does),
		cmocka_unit_test(code_of_a_damaged_entry_is_not_described),
		cmocka_unit_test(a_file_without_call_frame_information_has_an_empty_table),
		cmocka_unit_test(rows_of_debian_libraries_are_those_of_single_lookups),
		cmocka_unit_test(the_bytes_do_not_depend_on_the_threads),
		cmocka_unit_test(neither_an_index_nor_an_unread_table_changes_an_answer),
		cmocka_unit_test(a_table_of_few_rows_has_no_index),
		cmocka_unit_test(a_table_cut_at_every_byte_is_refused),
		cmocka_unit_test(flipped_bits_are_refused_or_harmless),
		cmocka_unit_test(a_rule_that_is_read_first_when_it_is_asked_for_is_checked_then),
		cmocka_unit_test(a_newer_version_is_refused_by_name),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
