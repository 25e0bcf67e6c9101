/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "cfi/cfi.h"
#include "elf_builder.h"
#include "frame_builder.h"
#include "need.h"
#include "insn/insn.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { TEXT = 0x1000, TEXT_SIZE = 0x1000, FRAME = 0x4000 };

/* An ELF file with code at TEXT and one frame section; free with eb_free(). */
struct sample {
	struct elf_builder *b;
	uint8_t *bytes;
	size_t size;
	uint32_t section;
	struct cairn_binary *bin;
	struct cfi *cfi;
	struct cairn_err err;
};

static int sample_open(struct sample *s)
{
	int rc = binary_open_mem(s->bytes, s->size, "sample", &s->bin, &s->err);
	if (rc == 0)
		rc = cfi_open(s->bin, &s->cfi, &s->err);
	return rc;
}

static void sample_build(struct sample *s, const char *section, const struct frames *f)
{
	static const uint8_t code[TEXT_SIZE] = {0x90};
	*s = (struct sample){.b = eb_new(ET_DYN)};
	uint32_t text = eb_section(s->b, (struct eb_section){.name = ".text",
							     .flags = SHF_ALLOC | SHF_EXECINSTR,
							     .addr = TEXT,
							     EB_BYTES(code)});
	eb_load(s->b, text);
	s->section = eb_section(s->b, (struct eb_section){.name = section,
							  .flags = SHF_ALLOC,
							  .addr = FRAME,
							  .data = f->bytes,
							  .size = f->n});
	s->bytes = eb_finish(s->b, &s->size);
}

static void sample_close(struct sample *s)
{
	cfi_close(s->cfi);
	cairn_binary_close(s->bin);
	s->cfi = NULL;
	s->bin = NULL;
}

static struct sample eh_sample(const struct frames *f)
{
	struct sample s;
	sample_build(&s, ".eh_frame", f);
	if (sample_open(&s) < 0)
		fail_msg("%s", s.err.msg);
	return s;
}

static void sample_end(struct sample *s)
{
	sample_close(s);
	eb_free(s->b);
}

static struct cfi_row row_at(const struct sample *s, uint64_t at)
{
	struct cfi_row row;
	struct cairn_err err = {0};
	int rc = cfi_row_at(s->cfi, (struct cairn_vaddr){at}, &row, &err);
	if (rc != 1)
		fail_msg("0x%lx: %d %s", (unsigned long)at, rc, err.msg);
	assert_true(row.lo.v <= at && at < row.hi.v);
	return row;
}

static int error_at(const struct sample *s, uint64_t at)
{
	struct cfi_row row;
	struct cairn_err err = {0};
	int rc = cfi_row_at(s->cfi, (struct cairn_vaddr){at}, &row, &err);
	assert_int_equal(err.code, rc);
	if (rc < 0)
		assert_non_null(strstr(err.msg, "sample: .eh_frame+0x"));
	return rc;
}

static void assert_cfa(const struct cfi_row *row, uint32_t reg, int64_t off)
{
	assert_int_equal(row->cfa, CFI_CFA_REG_OFFSET);
	assert_int_equal(row->cfa_reg, reg);
	assert_int_equal(row->cfa_off, off);
}

/* ---- what the rows say ---- */

static void rows_follow_the_prologue(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	/* push %rbp; mov %rsp,%rbp; ...; leave */
	/* clang-format off */
	static const uint8_t program[] = {
		0x41, 0x0e, 16, 0x86, 2, /* advance 1; def_cfa_offset 16; rbp at cfa-16 */
		0x43, 0x0d, 6,           /* advance 3; def_cfa_register rbp */
		0x02, 0x40,              /* advance1 0x40 */
		0x0c, 7, 8, 0xc6,        /* def_cfa rsp+8; restore rbp */
	};
	/* clang-format on */
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x60, program, sizeof(program));
	struct sample s = eh_sample(&f);
	struct cfi_row row = row_at(&s, TEXT);
	assert_cfa(&row, 7, 8);
	assert_int_equal(row.hi.v, TEXT + 1);
	assert_int_equal(row.regs[16].kind, CFI_REG_AT_CFA);
	assert_int_equal(row.regs[16].off, -8);
	assert_int_equal(row.regs[6].kind, CFI_REG_UNSPECIFIED);
	row = row_at(&s, TEXT + 3);
	assert_cfa(&row, 7, 16);
	assert_int_equal(row.lo.v, TEXT + 1);
	assert_int_equal(row.hi.v, TEXT + 4);
	assert_int_equal(row.regs[6].kind, CFI_REG_AT_CFA);
	assert_int_equal(row.regs[6].off, -16);
	row = row_at(&s, TEXT + 0x43);
	assert_cfa(&row, 6, 16);
	row = row_at(&s, TEXT + 0x5f);
	assert_cfa(&row, 7, 8);
	assert_int_equal(row.lo.v, TEXT + 0x44);
	assert_int_equal(row.hi.v, TEXT + 0x60);
	assert_int_equal(row.regs[6].kind, CFI_REG_UNSPECIFIED);
	assert_false(row.signal_frame);
	sample_end(&s);
}

static void address_outside_of_every_fde_has_no_row(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, NULL, 0);
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x40, 0x10, NULL, 0);
	struct sample s = eh_sample(&f);
	struct cfi_row row;
	struct cairn_vaddr lo, hi;
	static const uint64_t outside[] = {0,           TEXT + 0xf,  TEXT + 0x20,
					   TEXT + 0x3f, TEXT + 0x50, UINT64_MAX};
	for (size_t i = 0; i < ARRAY_SIZE(outside); i++) {
		struct cairn_vaddr at = {outside[i]};
		assert_int_equal(cfi_row_at(s.cfi, at, &row, NULL), 0);
		assert_false(cfi_fde_at(s.cfi, at, &lo, &hi));
	}
	assert_true(cfi_fde_at(s.cfi, (struct cairn_vaddr){TEXT + 0x4f}, &lo, &hi));
	assert_int_equal(lo.v, TEXT + 0x40);
	assert_int_equal(hi.v, TEXT + 0x50);
	assert_int_equal(cfi_n_fdes(s.cfi), 2);
	sample_end(&s);
}

static void every_instruction_that_compilers_do_not_use_daily(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zRS", "\x1b");
	/* clang-format off */
	static const uint8_t program[] = {
		0x0a,                         /* remember_state */
		0x0f, 2, 0x77, 0x08,          /* def_cfa_expression */
		0x10, 3, 1, 0x50,             /* rbx: expression */
		0x16, 12, 1, 0x50,            /* r12: val_expression */
		0x07, 13,                     /* r13: undefined */
		0x08, 14,                     /* r14: same_value */
		0x10, 6, 2, 0x77, 0x70,       /* rbp: saved at rsp-16 */
		0x16, 1, 3, 0x76, 0x80, 0x01, /* rdx: is rbp+128 */
		0x09, 15, 1,                  /* r15: in register rdx */
		0x14, 8, 2,                   /* r8: is cfa-16 */
		0x15, 9, 0x7e,                /* r9: is cfa+16 */
		0x11, 10, 0x7f,               /* r10: at cfa+8 */
		0x05, 11, 3,                  /* r11: at cfa-24 */
		0x2f, 5, 1,                   /* rdi: at cfa+8 */
		0x2e, 0x80, 0x01,             /* args_size */
		0x85 + 0x1f, 1,               /* register 36: dropped */
		0x03, 0x04, 0x00,             /* advance2 4 */
		0x0b,                         /* restore_state */
		0x04, 0x04, 0, 0, 0,          /* advance4 4 */
		0x12, 7, 0x7e,                /* def_cfa_sf rsp+16 */
		0x1d, 4, 0, 0, 0, 0, 0, 0, 0, /* advance8 4 */
		0x13, 0x7d, 0x06, 16,         /* def_cfa_offset_sf 24; restore_extended ra */
	};
	/* clang-format on */
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x100, program, sizeof(program));
	struct sample s = eh_sample(&f);
	struct cfi_row row = row_at(&s, TEXT);
	assert_true(row.signal_frame);
	assert_int_equal(row.cfa, CFI_CFA_EXPR);
	assert_int_equal(row.cfa_expr_len, 2);
	assert_memory_equal(row.cfa_expr, "\x77\x08", 2);
	static const struct {
		int reg;
		enum cfi_reg_kind kind;
		int64_t off;
	} rules[] = {
		{3, CFI_REG_EXPR, 0},     {12, CFI_REG_VAL_EXPR, 0}, {13, CFI_REG_UNDEFINED, 0},
		{14, CFI_REG_SAME, 0},    {15, CFI_REG_REGISTER, 1}, {8, CFI_REG_IS_CFA, -16},
		{9, CFI_REG_IS_CFA, 16},  {10, CFI_REG_AT_CFA, 8},   {11, CFI_REG_AT_CFA, -24},
		{5, CFI_REG_AT_CFA, 8},   {16, CFI_REG_AT_CFA, -8},  {6, CFI_REG_AT_REG, -16},
		{1, CFI_REG_IS_REG, 128},
	};
	for (size_t i = 0; i < ARRAY_SIZE(rules); i++) {
		assert_int_equal(row.regs[rules[i].reg].kind, rules[i].kind);
		assert_int_equal(row.regs[rules[i].reg].off, rules[i].off);
	}
	assert_int_equal(row.regs[6].base, 7);
	assert_int_equal(row.regs[1].base, 6);
	row = row_at(&s, TEXT + 4);
	assert_cfa(&row, 7, 8);
	assert_int_equal(row.regs[3].kind, CFI_REG_UNSPECIFIED);
	row = row_at(&s, TEXT + 8);
	assert_cfa(&row, 7, 16);
	row = row_at(&s, TEXT + 0xff);
	assert_cfa(&row, 7, 24);
	assert_int_equal(row.lo.v, TEXT + 12);
	sample_end(&s);
}

static void set_loc_is_encoded_like_the_fde(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x04"); /* udata8, absolute */
	uint8_t program[] = {0x01, 0x08, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16};
	size_t at = frames_entry_begin(&f, cie, true);
	frames_u64(&f, TEXT);
	frames_u64(&f, 0x20);
	frames_u8(&f, 0);
	frames_put(&f, program, sizeof(program));
	frames_entry_end(&f, at);
	struct sample s = eh_sample(&f);
	struct cfi_row row = row_at(&s, TEXT + 7);
	assert_cfa(&row, 7, 8);
	row = row_at(&s, TEXT + 8);
	assert_cfa(&row, 7, 16);
	sample_end(&s);
}

static void fde_addresses_in_every_encoding(void **state)
{
	static const struct {
		uint8_t encoding;
		bool pcrel;
		unsigned int size; /* 0: LEB128 of 2 bytes for the values used here */
	} cases[] = {
		{0x00, false, 8}, {0x02, false, 2}, {0x03, false, 4}, {0x04, false, 8},
		{0x01, false, 0}, {0x08, false, 8}, {0x0a, false, 2}, {0x0b, false, 4},
		{0x0c, false, 8}, {0x1a, true, 2},  {0x1b, true, 4},  {0x1c, true, 8},
		{0x10, true, 8},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frames f = {0};
		char encoding[2] = {(char)cases[i].encoding, 0};
		size_t cie = frames_cie_eh_n(&f, "zR", encoding, 1);
		size_t at = frames_entry_begin(&f, cie, true);
		uint64_t lo = TEXT - (cases[i].pcrel ? FRAME + f.n : 0);
		if (cases[i].size) {
			frames_put(&f, &lo, cases[i].size);
			frames_put(&f, &(uint64_t){0x80}, cases[i].size);
		} else {
			frames_put(&f, "\x80\x20\x80\x01", 4);
		}
		frames_u8(&f, 0);
		frames_entry_end(&f, at);
		struct sample s = eh_sample(&f);
		print_message("encoding 0x%x\n", cases[i].encoding);
		struct cairn_vaddr lo_at, hi_at;
		assert_int_equal(cfi_damaged(s.cfi), 0);
		assert_true(cfi_fde_at(s.cfi, (struct cairn_vaddr){TEXT}, &lo_at, &hi_at));
		assert_int_equal(lo_at.v, TEXT);
		assert_int_equal(hi_at.v, TEXT + 0x80);
		sample_end(&s);
	}
}

static void augmentations(void **state)
{
	static const struct {
		const char *letters, *data;
		size_t n;
		bool is_known;
	} cases[] = {
		{"zPLR", "\x9b\1\2\3\4\x1b\x1b", 7, true}, /* indirect pcrel sdata4 */
		{"zPLR", "\x00\1\2\3\4\5\6\7\x8\x1b\x1b", 11, true},
		{"zPR", "\xff\x1b", 2, true}, /* personality omitted */
		{"zRB", "\x1b", 1, true},
		{"zRx", "\x1b", 1, false},
		{"R", "\x1b", 1, false},
		{"zR", "\x9b", 1, false}, /* indirect address of code */
		{"zR", "\x3b", 1, false}, /* relative to data */
		{"zR", "\x05", 1, true},  /* no such format: the FDE is damaged instead */
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frames f = {0};
		size_t cie = frames_cie_eh_n(&f, cases[i].letters, cases[i].data, cases[i].n);
		frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, NULL, 0);
		struct sample s = eh_sample(&f);
		print_message("%s\n", cases[i].letters);
		bool is_bad_format = cases[i].data[0] == 0x05;
		assert_int_equal(cfi_damaged(s.cfi), !cases[i].is_known || is_bad_format);
		assert_int_equal(cfi_n_fdes(s.cfi), cases[i].is_known && !is_bad_format);
		sample_end(&s);
	}
}

static void debug_frame_in_32_and_64_bit_form(void **state)
{
	for (int is_64 = 0; is_64 < 2; is_64++)
		for (uint8_t version = 3; version <= 4; version++) {
			struct frames f = {0};
			frames_u8(&f, 0); /* CIE not at offset 0: the pointer is no distance */
			f.n = 0;
			size_t first = frames_cie_debug(&f, version, is_64, 8);
			size_t cie = frames_cie_debug(&f, version, is_64, 16);
			frames_fde_debug(&f, first, is_64, TEXT, 0x10, NULL, 0);
			frames_fde_debug(&f, cie, is_64, TEXT + 0x10, 0x10, NULL, 0);
			frames_fde_debug(&f, cie, is_64, 0, 0x10, NULL,
					 0); /* dropped by the linker */
			struct sample s;
			sample_build(&s, ".debug_frame", &f);
			assert_int_equal(sample_open(&s), 0);
			assert_int_equal(cfi_damaged(s.cfi), 0);
			assert_int_equal(cfi_n_fdes(s.cfi), 2);
			struct cfi_row row = row_at(&s, TEXT);
			assert_cfa(&row, 7, 8);
			row = row_at(&s, TEXT + 0x10);
			assert_cfa(&row, 7, 16);
			sample_end(&s);
		}
}

static void terminator_in_the_middle_does_not_end_the_section(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, NULL, 0);
	frames_u32(&f, 0);
	cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, NULL, 0);
	frames_u32(&f, 0);
	struct sample s = eh_sample(&f);
	assert_int_equal(cfi_n_fdes(s.cfi), 2);
	sample_end(&s);
}

static void of_overlapping_fdes_the_innermost_is_found(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x100, NULL, 0);
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x10, 0x10, NULL, 0);
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x30, 0x10, NULL, 0);
	struct sample s = eh_sample(&f);
	struct cairn_vaddr lo, hi;
	static const uint64_t at[][2] = {{TEXT + 0x18, TEXT + 0x10},
					 {TEXT + 0x20, TEXT},
					 {TEXT + 0x50, TEXT},
					 {TEXT + 0x30, TEXT + 0x30}};
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		assert_true(cfi_fde_at(s.cfi, (struct cairn_vaddr){at[i][0]}, &lo, &hi));
		assert_int_equal(lo.v, at[i][1]);
	}
	sample_end(&s);
}

/* ---- damage ---- */

static void damaged_programs_are_refused(void **state)
{
	static const struct {
		const char *what, *program;
		size_t n;
		int rc;
	} cases[] = {
		{"unknown instruction", "\x3f", 1, -EOPNOTSUPP},
		{"restore without remember", "\x0b", 1, -EBADMSG},
		{"expression beyond the end", "\x0f\x7f", 2, -EBADMSG},
		{"uleb without end", "\x0e\x80\x80\x80", 4, -EBADMSG},
		{"offset of 2^63", "\x0e\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 11, -EBADMSG},
		{"scaled offset of 2^63", "\x86\xff\xff\xff\xff\xff\xff\xff\xff\x7f", 10, -EBADMSG},
		{"offset of an expression", "\x0f\x01\x50\x0e\x10", 5, -EBADMSG},
		{"register of an expression", "\x0f\x01\x50\x0d\x06", 5, -EBADMSG},
		{"backwards", "\x44\x01\x00\xc0\xff\xff", 6, -EBADMSG},
		{"nested too deep", "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n", 17, -ERANGE},
	};
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct frames f = {0};
		size_t cie = frames_cie_eh(&f, "zR", "\x1b");
		size_t at = frames_entry_begin(&f, cie, true);
		frames_u32(&f, (uint32_t)(TEXT - (FRAME + f.n)));
		frames_u32(&f, 0x10);
		frames_u8(&f, 0);
		frames_put(&f, cases[i].program, cases[i].n);
		frames_entry_end_exactly(&f, at);
		struct sample s = eh_sample(&f);
		print_message("%s\n", cases[i].what);
		assert_int_equal(error_at(&s, TEXT + 8), cases[i].rc);
		sample_end(&s);
	}
}

static void a_million_remembered_states_are_refused_and_not_stored(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	enum { N = 1000000 };
	uint8_t *program = malloc(N);
	memset(program, 0x0a, N);
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, program, N);
	free(program);
	struct sample s = eh_sample(&f);
	assert_int_equal(error_at(&s, TEXT), -ERANGE);
	sample_end(&s);
	frames_free(&f);
}

static void register_without_a_column_makes_the_cfa_undescribed(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, (const uint8_t *)"\x0c\x91\x01\x08", 4);
	struct sample s = eh_sample(&f);
	assert_int_equal(row_at(&s, TEXT).cfa, CFI_CFA_UNDESCRIBED);
	sample_end(&s);
}

static void entry_that_leads_out_of_the_section_is_an_error_with_its_place(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x10, NULL, 0);
	f.bytes[f.n - 4 - frames_last_length(&f)] += 1;
	struct sample s;
	sample_build(&s, ".eh_frame", &f);
	assert_int_equal(sample_open(&s), -EBADMSG);
	assert_int_equal(s.err.code, -EBADMSG);
	assert_non_null(strstr(s.err.msg, "sample: .eh_frame+0x"));
	sample_end(&s);
}

static void build_rich(struct frames *f)
{
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x86, 2,    0x43, 0x0d, 6,
					  0x0a, 0x48, 0x0c, 7,    8,    0x41, 0x0b, 0x0f,
					  2,    0x77, 8,    0x10, 3,    1,    0x50, 0x44,
					  0x16, 12,   1,    0x50, 0x2e, 8};
	size_t cie = frames_cie_eh(f, "zPLR", "\x1b\1\2\3\4\x1b\x1b");
	frames_fde_eh(f, FRAME, cie, TEXT, 0x40, program, sizeof(program));
	cie = frames_cie_eh(f, "zRS", "\x1b");
	frames_fde_eh(f, FRAME, cie, TEXT + 0x40, 0x40, program, sizeof(program));
	frames_u32(f, 0);
}

/* Every lookup must come back with an answer; a sanitizer watches. */
static unsigned int probe_all(struct sample *s)
{
	unsigned int rows = 0;
	for (uint64_t at = TEXT; at < TEXT + 0x80; at++) {
		struct cfi_row row;
		int rc = cfi_row_at(s->cfi, (struct cairn_vaddr){at}, &row, &s->err);
		assert_true(rc == 1 || rc == 0 || rc == -EBADMSG || rc == -EOPNOTSUPP ||
			    rc == -ERANGE);
		if (rc == 1)
			assert_true(row.lo.v <= at && at < row.hi.v);
		rows += rc == 1;
	}
	return rows;
}

static void section_cut_at_every_byte_never_crashes(void **state)
{
	struct frames f = {0};
	build_rich(&f);
	struct sample s;
	sample_build(&s, ".eh_frame", &f);
	unsigned int opened = 0;
	for (size_t n = 0; n <= f.n; n++) {
		eb_header(s.b, s.section)->sh_size = n;
		int rc = sample_open(&s);
		assert_true(rc == 0 || rc == -EBADMSG);
		if (rc == 0)
			probe_all(&s);
		opened += rc == 0;
		sample_close(&s);
	}
	/* At the end of each of the 5 entries, and with no entry. */
	assert_int_equal(opened, 6);
	sample_end(&s);
}

static void flipped_bits_never_crash(void **state)
{
	struct frames f = {0};
	build_rich(&f);
	struct sample s;
	sample_build(&s, ".eh_frame", &f);
	uint8_t *data = eb_data(s.b, s.section);
	unsigned int damaged = 0, rows = 0;
	for (size_t bit = 0; bit < f.n * 8; bit++) {
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
		int rc = sample_open(&s);
		assert_true(rc == 0 || rc == -EBADMSG);
		if (rc == 0)
			rows += probe_all(&s);
		damaged += rc == 0 && cfi_damaged(s.cfi) > 0;
		sample_close(&s);
		data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(damaged > 0);
	assert_true(rows > 0);
	sample_end(&s);
}

static void every_failing_allocation_is_reported(void **state)
{
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	for (unsigned int i = 0; i < 40; i++)
		frames_fde_eh(&f, FRAME, cie, TEXT + i * 0x10, 0x10, NULL, 0);
	struct sample s;
	sample_build(&s, ".eh_frame", &f);
	assert_int_equal(binary_open_mem(s.bytes, s.size, "sample", &s.bin, &s.err), 0);
	unsigned int n = 1;
	for (;; n++) {
		s.cfi = NULL;
		s.err = (struct cairn_err){0};
		alloc_fail_at(n);
		int rc = cfi_open(s.bin, &s.cfi, &s.err);
		if (!alloc_fail_end()) {
			assert_int_equal(rc, 0);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
		assert_int_equal(s.err.code, -ENOMEM);
		assert_null(s.cfi);
	}
	assert_true(n > 4);
	sample_end(&s);
}

/* ---- the second opinion: readelf ---- */

/* One FDE as "readelf --debug-dump=frames-interp" prints it. */
struct printed {
	uint64_t lo, hi, bias;
	int columns[CFI_N_REGS];
	size_t n_columns;
	/* The latest row; it ends where the next one begins. */
	bool has_row;
	uint64_t loc;
	char cells[CFI_N_REGS + 1][24];
};

struct comparison {
	const struct cfi *cfi;
	struct printed fde;
	size_t n_fdes, n_rows;
};

static int column_of(const char *name)
{
	if (strcmp(name, "ra") == 0)
		return 16;
	for (int reg = 0; reg < 16; reg++)
		if (strcmp(name, insn_reg_name((unsigned int)reg)) == 0)
			return reg;
	return -1;
}

static void spell_cfa(const struct cfi_row *row, char *buf, size_t size)
{
	if (row->cfa == CFI_CFA_EXPR)
		snprintf(buf, size, "exp");
	else if (row->cfa == CFI_CFA_REG_OFFSET)
		snprintf(buf, size, "%s%+ld", insn_reg_name(row->cfa_reg), (long)row->cfa_off);
	else
		snprintf(buf, size, "?");
}

static void spell_reg(const struct cfi_reg *reg, char *buf, size_t size)
{
	switch (reg->kind) {
	case CFI_REG_UNSPECIFIED:
	case CFI_REG_UNDEFINED:
		snprintf(buf, size, "u");
		break;
	case CFI_REG_SAME:
		snprintf(buf, size, "s");
		break;
	case CFI_REG_AT_CFA:
		snprintf(buf, size, "c%+ld", (long)reg->off);
		break;
	case CFI_REG_IS_CFA:
		snprintf(buf, size, "v%+ld", (long)reg->off);
		break;
	case CFI_REG_REGISTER:
		snprintf(buf, size, "r%ld", (long)reg->off);
		break;
	case CFI_REG_AT_REG:
	case CFI_REG_EXPR:
		snprintf(buf, size, "exp");
		break;
	case CFI_REG_IS_REG:
	case CFI_REG_VAL_EXPR:
		snprintf(buf, size, "vexp");
		break;
	}
}

static void compare_at(struct comparison *cmp, uint64_t at, uint64_t end)
{
	const struct printed *fde = &cmp->fde;
	struct cfi_row row;
	struct cairn_err err = {0};
	int rc = cfi_row_at(cmp->cfi, (struct cairn_vaddr){at + fde->bias}, &row, &err);
	if (rc != 1)
		fail_msg("0x%lx: %d %s", (unsigned long)at, rc, err.msg);
	char mine[24];
	spell_cfa(&row, mine, sizeof(mine));
	if (strcmp(mine, fde->cells[0]) != 0)
		fail_msg("CFA at 0x%lx: %s, readelf: %s", (unsigned long)at, mine, fde->cells[0]);
	for (size_t i = 0; i < fde->n_columns; i++) {
		spell_reg(&row.regs[fde->columns[i]], mine, sizeof(mine));
		if (strcmp(mine, fde->cells[i + 1]) != 0)
			fail_msg("register %d at 0x%lx: %s, readelf: %s", fde->columns[i],
				 (unsigned long)at, mine, fde->cells[i + 1]);
	}
	assert_int_equal(row.lo.v, fde->loc + fde->bias);
	assert_int_equal(row.hi.v, end + fde->bias);
}

/* The row that was printed last holds up to @end: ask for its first and its last byte. */
static void finish_row(struct comparison *cmp, uint64_t end)
{
	struct printed *fde = &cmp->fde;
	if (!fde->has_row || fde->loc == end)
		return;
	compare_at(cmp, fde->loc, end);
	compare_at(cmp, end - 1, end);
	cmp->n_rows++;
}

static void finish_fde(struct comparison *cmp)
{
	finish_row(cmp, cmp->fde.hi);
	cmp->fde.has_row = false;
	cmp->fde.hi = 0;
}

static void read_columns(struct printed *fde, char *line)
{
	char *save;
	fde->n_columns = 0;
	strtok_r(line, " \n", &save);
	strtok_r(NULL, " \n", &save);
	for (char *word; (word = strtok_r(NULL, " \n", &save));) {
		int reg = column_of(word);
		assert_true(reg >= 0);
		fde->columns[fde->n_columns++] = reg;
	}
}

static void read_row(struct comparison *cmp, char *line)
{
	struct printed *fde = &cmp->fde;
	char *save;
	uint64_t loc = strtoull(strtok_r(line, " \n", &save), NULL, 16);
	finish_row(cmp, loc);
	fde->loc = loc;
	fde->has_row = true;
	for (size_t i = 0; i <= fde->n_columns; i++) {
		char *word;
		/* A register is written as number and name: "r9 (r9)", "r5 (rdi)". */
		do
			word = strtok_r(NULL, " \n", &save);
		while (word && *word == '(');
		assert_non_null(word);
		snprintf(fde->cells[i], sizeof(fde->cells[i]), "%s", word);
	}
}

static void read_line(struct comparison *cmp, char *line)
{
	unsigned long lo, hi;
	const char *pc = strstr(line, " pc=");
	if (strstr(line, " FDE ") && pc && sscanf(pc, " pc=%lx..%lx", &lo, &hi) == 2) {
		finish_fde(cmp);
		struct cairn_vaddr found_lo, found_hi, at = {lo + cmp->fde.bias};
		cmp->fde.lo = lo;
		cmp->fde.hi = hi;
		if (lo == hi)
			return;
		assert_true(cfi_fde_at(cmp->cfi, at, &found_lo, &found_hi));
		assert_int_equal(found_lo.v, lo + cmp->fde.bias);
		assert_int_equal(found_hi.v, hi + cmp->fde.bias);
		cmp->n_fdes++;
	} else if (strstr(line, " CIE ")) {
		finish_fde(cmp);
	} else if (strstr(line, "   LOC ") && cmp->fde.hi) {
		read_columns(&cmp->fde, line);
	} else if (strlen(line) > 17 && strspn(line, "0123456789abcdef") == 16 && line[16] == ' ' &&
		   cmp->fde.hi && !strstr(line, "ZERO")) {
		read_row(cmp, line);
	}
}

/* Compares every row of @path; returns their number. */
static size_t agree_with_readelf(const char *path, bool is_relocatable)
{
	struct cairn_binary *bin;
	struct cfi *cfi = NULL;
	struct cairn_err err = {0};
	if (cairn_binary_open(path, NULL, &bin, &err) < 0 || cfi_open(bin, &cfi, &err) < 0)
		fail_msg("%s", err.msg);
	struct comparison cmp = {.cfi = cfi};
	const struct elf_section *text;
	assert_int_equal(elf_section(binary_main(bin), ".text", &text, &err), 0);
	cmp.fde.bias = is_relocatable ? text->addr.v : 0;
	char cmd[512], line[1024];
	snprintf(cmd, sizeof(cmd), "readelf -W --debug-dump=frames-interp '%s' 2>/dev/null", path);
	FILE *f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		read_line(&cmp, line);
	finish_fde(&cmp);
	/*
	 * readelf exits with 1 when it misses a debug file; that it said enough is checked below.
	 */
	pclose(f);
	print_message("%s: %zu FDEs, %zu rows\n", path, cmp.n_fdes, cmp.n_rows);
	assert_int_equal(cfi_damaged(cfi), 0);
	assert_int_equal(cfi_n_fdes(cfi), cmp.n_fdes);
	cfi_close(cfi);
	cairn_binary_close(bin);
	return cmp.n_rows;
}

static void rows_of_debian_libraries_are_those_of_readelf(void **state)
{
	static const struct {
		const char *path;
		size_t rows;
	} libraries[] = {
		{"/lib/x86_64-linux-gnu/libc.so.6", 10000},
		{"/usr/lib/x86_64-linux-gnu/libstdc++.so.6", 5000},
		{"/lib64/ld-linux-x86-64.so.2", 1000},
	};
	need("readelf");
	size_t compared = 0;
	for (size_t i = 0; i < ARRAY_SIZE(libraries); i++) {
		if (access(libraries[i].path, R_OK) != 0)
			continue;
		assert_true(agree_with_readelf(libraries[i].path, false) > libraries[i].rows);
		compared++;
	}
	if (!compared) {
		print_message("skipped: none of the libraries is here\n");
		skip();
	}
}

static const char *const sample_source =
	"#include <stdarg.h>\n"
	"int sink(int, ...);\n"
	"__attribute__((noinline)) int many(int n, ...) {\n"
	"	va_list ap; va_start(ap, n); int s = 0;\n"
	"	while (n--) s += sink(va_arg(ap, int), s, n, 4, 5, 6, 7, 8);\n"
	"	va_end(ap); return s; }\n"
	"int big(int n) { char b[n]; sink(n, b); return b[n / 2]; }\n"
	"int early(int n) { if (n < 3) return n; sink(1, big(n)); return many(n, 1, 2, 3); }\n"
	"__attribute__((force_align_arg_pointer)) int aligned(int n) { char b[64] "
	"__attribute__((aligned(64))); sink(n, b); return b[1]; }\n"
	"int sink(int n, ...) { return n; }\n"
	"int main(int c, char **v) { return early(c) + aligned(c); }\n";

static void rows_of_compiled_samples_are_those_of_readelf(void **state)
{
	static const char *const compilers[] = {"gcc", "clang"};
	static const char *const flags[] = {
		"-O0",
		"-O2",
		"-O2 -fno-omit-frame-pointer",
		"-O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables",
		"-O2 -c -Dmain=other",
		"-O2 -g -c -Dmain=other -fno-asynchronous-unwind-tables -fno-unwind-tables",
	};
	need("readelf");
	char dir[] = "/tmp/cairn-cfi-XXXXXX";
	assert_non_null(mkdtemp(dir));
	char source[64], out[64], cmd[512];
	snprintf(source, sizeof(source), "%s/s.c", dir);
	snprintf(out, sizeof(out), "%s/s.out", dir);
	FILE *f = fopen(source, "w");
	assert_non_null(f);
	fputs(sample_source, f);
	fclose(f);
	size_t compared = 0;
	for (size_t i = 0; i < ARRAY_SIZE(compilers) * ARRAY_SIZE(flags); i++) {
		const char *cc = compilers[i / ARRAY_SIZE(flags)],
			   *flag = flags[i % ARRAY_SIZE(flags)];
		snprintf(cmd, sizeof(cmd), "%s -w %s -o %s %s 2>/dev/null", cc, flag, out, source);
		if (system(cmd) != 0) {
			print_message("not compiled: %s %s\n", cc, flag);
			continue;
		}
		print_message("%s %s: ", cc, flag);
		assert_true(agree_with_readelf(out, strstr(flag, "-c") != NULL) > 8);
		compared++;
	}
	snprintf(cmd, sizeof(cmd), "rm -r %s", dir);
	assert_int_equal(system(cmd), 0);
	if (!compared) {
		print_message("skipped: neither gcc nor clang works here\n");
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_follow_the_prologue),
		cmocka_unit_test(address_outside_of_every_fde_has_no_row),
		cmocka_unit_test(every_instruction_that_compilers_do_not_use_daily),
		cmocka_unit_test(set_loc_is_encoded_like_the_fde),
		cmocka_unit_test(fde_addresses_in_every_encoding),
		cmocka_unit_test(augmentations),
		cmocka_unit_test(debug_frame_in_32_and_64_bit_form),
		cmocka_unit_test(terminator_in_the_middle_does_not_end_the_section),
		cmocka_unit_test(of_overlapping_fdes_the_innermost_is_found),
		cmocka_unit_test(damaged_programs_are_refused),
		cmocka_unit_test(a_million_remembered_states_are_refused_and_not_stored),
		cmocka_unit_test(register_without_a_column_makes_the_cfa_undescribed),
		cmocka_unit_test(entry_that_leads_out_of_the_section_is_an_error_with_its_place),
		cmocka_unit_test(section_cut_at_every_byte_never_crashes),
		cmocka_unit_test(flipped_bits_never_crash),
		cmocka_unit_test(every_failing_allocation_is_reported),
		cmocka_unit_test(rows_of_debian_libraries_are_those_of_readelf),
		cmocka_unit_test(rows_of_compiled_samples_are_those_of_readelf),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
