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

#include <cairn/unwind.h>

#include "alloc_fail.h"

enum { RBP = 6, RSP = 7, R10 = 10, RA = 16 };

/* A rule and its words. */
struct built_rule {
	struct cairn_unwind_rule rule;
	uint32_t words[4];
};

static uint32_t word(unsigned int reg, enum cairn_unwind_saved saved, int32_t value)
{
	return reg | (uint32_t)saved << 5 | (uint32_t)value << 8;
}

static struct built_rule cfa(uint8_t reg, int32_t off)
{
	return (struct built_rule){.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = reg, .off = off}};
}

static struct built_rule with(struct built_rule r, uint32_t w)
{
	r.words[r.rule.n_regs++] = w;
	return r;
}

static struct cairn_sframe_writer *writer(unsigned int version)
{
	struct cairn_sframe_writer *w = NULL;
	assert_int_equal(cairn_sframe_writer_new(version, EM_X86_64, &w, NULL), 0);
	return w;
}

static int add(struct cairn_sframe_writer *w, uint64_t at, uint32_t size,
	       const struct built_rule *rules, size_t n)
{
	struct cairn_sframe_row rows[8];
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct cairn_sframe_row){(uint32_t)i, &rules[i].rule};
	return cairn_sframe_add(w, (struct cairn_vaddr){at}, size, rows, n, NULL);
}

/* push %rbp; mov %rsp,%rbp; ... at 0x1000, a leaf at 0x900 */
static void add_usual(struct cairn_sframe_writer *w)
{
	uint32_t pushed = word(RBP, CAIRN_UNWIND_AT_CFA, -16);
	const struct built_rule framed[] = {cfa(RSP, 8), with(cfa(RSP, 16), pushed),
					    with(cfa(RBP, 16), pushed)};
	const struct built_rule leaf[] = {cfa(RSP, 8), cfa(RSP, 408)};
	assert_int_equal(add(w, 0x1000, 0x40, framed, 3), 1);
	assert_int_equal(add(w, 0x900, 0x20, leaf, 2), 1);
}

static size_t finish(struct cairn_sframe_writer *w, uint64_t section, uint8_t **ret)
{
	size_t size;
	struct cairn_err err = {0};
	if (cairn_sframe_finish(w, (struct cairn_vaddr){section}, ret, &size, &err) < 0)
		fail_msg("%s", err.msg);
	cairn_sframe_writer_free(w);
	return size;
}

static struct cairn_sframe *reopen(const uint8_t *bytes, size_t size, uint64_t section)
{
	struct cairn_sframe *s = NULL;
	struct cairn_err err = {0};
	if (cairn_sframe_open(bytes, size, (struct cairn_vaddr){section}, "sample", &s, &err) < 0)
		fail_msg("%s", err.msg);
	return s;
}

/* Rows in words: "0 cfa 7+8; 1 cfa 7+16 6@-16; " */
static int spell(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule)
{
	char *text = ctx;
	text += strlen(text);
	text += sprintf(
		text, "%u %s%s%u%+d", off, rule->flags & CAIRN_UNWIND_OUTERMOST ? "outermost " : "",
		rule->cfa == CAIRN_UNWIND_CFA_DEREF ? "deref " : "cfa ", rule->reg, rule->off);
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t w = cairn_unwind_words(rule)[i];
		text += sprintf(text, " %u%c%+d", cairn_unwind_word_reg(w),
				"@=bf>sl"[cairn_unwind_word_saved(w)], cairn_unwind_word_value(w));
	}
	strcpy(text, "; ");
	return 0;
}

static void assert_rows(const struct cairn_sframe *s, uint32_t function, const char *expected)
{
	char text[512] = "";
	assert_int_equal(cairn_sframe_rows(s, function, spell, text), 0);
	assert_string_equal(text, expected);
}

/* ---- read(write(x)) = x ---- */

static void what_was_written_is_read(void **state)
{
	for (unsigned int version = 2; version <= 3; version++) {
		struct cairn_sframe_writer *w = writer(version);
		uint8_t *bytes;
		add_usual(w);
		size_t size = finish(w, 0x8000, &bytes);
		struct cairn_sframe *s = reopen(bytes, size, 0x8000);
		struct cairn_sframe_info info;
		struct cairn_sframe_function f;
		cairn_sframe_info(s, &info);
		assert_int_equal(info.version, version);
		assert_int_equal(info.n_functions, 2);
		assert_int_equal(info.n_rows, 5);
		assert_int_equal(info.machine, EM_X86_64);
		/* Sorted, whatever the order in which they came. */
		cairn_sframe_function(s, 0, &f);
		assert_int_equal(f.at.v, 0x900);
		assert_int_equal(f.size, 0x20);
		assert_rows(s, 0, "0 cfa 7+8; 1 cfa 7+408; ");
		cairn_sframe_function(s, 1, &f);
		assert_int_equal(f.at.v, 0x1000);
		assert_rows(s, 1, "0 cfa 7+8; 1 cfa 7+16 6@-16; 2 cfa 6+16 6@-16; ");
		cairn_sframe_close(s);
		free(bytes);
	}
}

static void version_3_says_more(void **state)
{
	const struct built_rule drap[] = {
		cfa(R10, 0),
		with(
			(struct built_rule){
				.rule = {.cfa = CAIRN_UNWIND_CFA_DEREF, .reg = RBP, .off = -8}},
			word(RBP, CAIRN_UNWIND_AT_BASE, 0)),
		with(cfa(RSP, 16), word(RA, CAIRN_UNWIND_IN_REG, 2))};
	const struct built_rule last[] = {{.rule = {.cfa = CAIRN_UNWIND_CFA_REG,
						    .flags = CAIRN_UNWIND_OUTERMOST,
						    .reg = RSP}}};
	const struct built_rule signal[] = {
		{.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .flags = CAIRN_UNWIND_SIGNAL, .reg = RSP}}};
	struct cairn_sframe_writer *w = writer(2);
	assert_int_equal(add(w, 0x1000, 0x40, drap, 3), 0);
	assert_int_equal(add(w, 0x2000, 0x40, last, 1), 1);
	assert_int_equal(add(w, 0x3000, 0x40, signal, 1), 0);
	cairn_sframe_writer_free(w);
	w = writer(3);
	assert_int_equal(add(w, 0x1000, 0x40, drap, 3), 1);
	assert_int_equal(add(w, 0x2000, 0x40, last, 1), 1);
	assert_int_equal(add(w, 0x3000, 0x40, signal, 1), 1);
	uint8_t *bytes;
	size_t size = finish(w, 0, &bytes);
	struct cairn_sframe *s = reopen(bytes, size, 0);
	struct cairn_sframe_function f;
	assert_rows(s, 0, "0 cfa 10+0; 1 deref 6-8 6b+0; 2 cfa 7+16 16>+2; ");
	assert_rows(s, 1, "0 outermost cfa 7+0; ");
	cairn_sframe_function(s, 2, &f);
	assert_true(f.is_signal);
	assert_int_equal(f.n_rows, 0);
	cairn_sframe_close(s);
	free(bytes);
}

static void a_function_with_a_row_that_cannot_be_said_is_left_out(void **state)
{
	const struct built_rule undescribed[] = {cfa(RSP, 8),
						 {.rule = {.cfa = CAIRN_UNWIND_UNDESCRIBED}}};
	const struct built_rule openssl[] = {
		{.rule = {.cfa = CAIRN_UNWIND_CFA_DEREF, .reg = RSP, .off = 40, .add = 8}}};
	const struct built_rule lost[] = {with(cfa(RSP, 16), word(RBP, CAIRN_UNWIND_LOST, 0))};
	const struct built_rule far[] = {cfa(RSP, 70000), cfa(RSP, 70000)};
	struct cairn_sframe_writer *w = writer(3);
	assert_int_equal(add(w, 0x1000, 0x40, undescribed, 2), 0);
	assert_int_equal(add(w, 0x1000, 0x40, openssl, 1), 0);
	assert_int_equal(add(w, 0x1000, 0x40, lost, 1), 0);
	/*
	 * A row that repeats the one before is dropped; a function of 65,536 bytes has offsets of
	 * 4.
	 */
	assert_int_equal(add(w, 0x1000, 0x10000, far, 2), 1);
	struct cairn_sframe_row backwards[] = {{0, &far[0].rule}, {0, &far[1].rule}};
	assert_int_equal(cairn_sframe_add(w, (struct cairn_vaddr){0}, 16, backwards, 2, NULL),
			 -EINVAL);
	uint8_t *bytes;
	size_t size = finish(w, 0, &bytes);
	struct cairn_sframe *s = reopen(bytes, size, 0);
	assert_rows(s, 0, "0 cfa 7+70000; ");
	cairn_sframe_close(s);
	free(bytes);
}

static void version_2_reaches_2_gib(void **state)
{
	struct cairn_sframe_writer *w = writer(2);
	const struct built_rule leaf[] = {cfa(RSP, 8)};
	uint8_t *bytes;
	size_t size;
	struct cairn_err err = {0};
	assert_int_equal(add(w, 0x100000000, 0x40, leaf, 1), 1);
	assert_int_equal(cairn_sframe_finish(w, (struct cairn_vaddr){0}, &bytes, &size, &err),
			 -ERANGE);
	assert_non_null(strstr(err.msg, "version 3"));
	assert_int_equal(
		cairn_sframe_finish(w, (struct cairn_vaddr){0xc0000000}, &bytes, &size, &err), 0);
	free(bytes);
	cairn_sframe_writer_free(w);
}

/* ---- what others write ---- */

/*
 * gas 2.40, version 1: f is push %rbp, mov, nop, pop, ret; g subtracts 400 from the stack pointer.
 */
static const uint8_t gas_2_40[] = {
	0xe2, 0xde, 1,    0, 3,    0,    0xf8, 0,    2,    0,    0,    0, 7,    0,
	0,    0,    25,   0, 0,    0,    0,    0,    0,    0,    0x22, 0, 0,    0, /* header */
	0,    1,    0,    0, 7,    0,    0,    0,    0,    0,    0,    0, 4,    0,
	0,    0,    0, /* f */
	7,    1,    0,    0, 16,   0,    0,    0,    15,   0,    0,    0, 3,    0,
	0,    0,    0, /* g */
	0,    0x03, 8,    1, 0x05, 0x10, 0xf0, 4,    0x04, 0x10, 0xf0, 6, 0x05, 0x08,
	0xf0, 0,    0x03, 8, 7,    0x23, 0x98, 0x01, 14,   0x03, 8,
};

static void version_1_is_read(void **state)
{
	struct cairn_sframe *s = reopen(gas_2_40, sizeof(gas_2_40), 0x5000);
	struct cairn_sframe_function f;
	cairn_sframe_function(s, 1, &f);
	/* Addresses count from the start of the section. */
	assert_int_equal(f.at.v, 0x5107);
	assert_rows(s, 0, "0 cfa 7+8; 1 cfa 7+16 6@-16; 4 cfa 6+16 6@-16; 6 cfa 7+8 6@-16; ");
	assert_rows(s, 1, "0 cfa 7+8; 7 cfa 7+408; 14 cfa 7+8; ");
	cairn_sframe_close(s);
}

static void a_linkage_table_is_one_function_of_blocks(void **state)
{
	enum { INFO = 28 + 16, BLOCKS = 1 << 4 }; /* of f, after the header */
	uint8_t bytes[sizeof(gas_2_40)];
	struct cairn_sframe_function f;
	memcpy(bytes, gas_2_40, sizeof(bytes));
	bytes[INFO] |= BLOCKS;
	struct cairn_sframe *s = reopen(bytes, sizeof(bytes), 0x5000);
	cairn_sframe_function(s, 0, &f);
	/* Version 1 has no size for them: it is that of x86-64. */
	assert_int_equal(f.block_size, 16);
	assert_rows(s, 0, "0 cfa 7+8; 1 cfa 7+16 6@-16; 4 cfa 6+16 6@-16; 6 cfa 7+8 6@-16; ");
	cairn_sframe_function(s, 1, &f);
	assert_int_equal(f.block_size, 0);
	cairn_sframe_close(s);
}

static void a_linkage_table_without_the_size_of_its_blocks_is_refused(void **state)
{
	enum {
		INFO = 28 + 16,
		BLOCK_SIZE = INFO + 1,
		BLOCKS = 1 << 4
	}; /* version 2, of the first function */
	struct cairn_sframe_writer *w = writer(2);
	struct cairn_err err = {0};
	struct cairn_sframe_function f;
	struct cairn_sframe *s;
	uint8_t *bytes;
	add_usual(w);
	size_t size = finish(w, 0x8000, &bytes);
	bytes[INFO] |= BLOCKS;
	bytes[BLOCK_SIZE] = 0;
	assert_int_equal(
		cairn_sframe_open(bytes, size, (struct cairn_vaddr){0x8000}, "sample", &s, &err),
		-EBADMSG);
	assert_non_null(strstr(err.msg, "blocks without a size"));
	/* Its second row begins at 1: not after the end of a block of 8, but of one of 1. */
	bytes[BLOCK_SIZE] = 1;
	s = reopen(bytes, size, 0x8000);
	cairn_sframe_function(s, 0, &f);
	assert_non_null(strstr(f.refused, "after the end"));
	assert_rows(s, 0, "");
	cairn_sframe_close(s);
	bytes[BLOCK_SIZE] = 8;
	s = reopen(bytes, size, 0x8000);
	cairn_sframe_function(s, 0, &f);
	assert_int_equal(f.block_size, 8);
	cairn_sframe_close(s);
	free(bytes);
}

static void blocks_are_written_as_they_are_read(void **state)
{
	const struct built_rule entry[] = {cfa(RSP, 8), cfa(RSP, 16)};
	const struct cairn_sframe_row rows[] = {{0, &entry[0].rule}, {11, &entry[1].rule}};
	for (unsigned int version = 2; version <= 3; version++) {
		struct cairn_sframe_writer *w = writer(version);
		struct cairn_sframe_function f;
		uint8_t *bytes;
		assert_int_equal(cairn_sframe_add_blocks(w, (struct cairn_vaddr){0x1010}, 0x1000,
							 16, rows, 2, NULL),
				 1);
		assert_int_equal(cairn_sframe_add_blocks(w, (struct cairn_vaddr){0x3008}, 0x20, 16,
							 rows, 2, NULL),
				 0);
		assert_int_equal(cairn_sframe_add_blocks(w, (struct cairn_vaddr){0x3000}, 0x28, 16,
							 rows, 2, NULL),
				 0);
		assert_int_equal(cairn_sframe_add_blocks(w, (struct cairn_vaddr){0x3000}, 0x200,
							 256, rows, 2, NULL),
				 0);
		size_t size = finish(w, 0x8000, &bytes);
		struct cairn_sframe *s = reopen(bytes, size, 0x8000);
		cairn_sframe_function(s, 0, &f);
		assert_int_equal(f.at.v, 0x1010);
		assert_int_equal(f.size, 0x1000);
		assert_int_equal(f.block_size, 16);
		assert_rows(s, 0, "0 cfa 7+8; 11 cfa 7+16; ");
		cairn_sframe_close(s);
		free(bytes);
	}
}

/* The others keep theirs. */
static void an_odd_row_refuses_its_function_only(void **state)
{
	struct cairn_sframe_writer *w = writer(2);
	struct cairn_sframe_info info;
	struct cairn_sframe_function f;
	uint8_t *bytes;
	add_usual(w);
	size_t size = finish(w, 0x8000, &bytes);
	/* The leaf was added last, and its rows are last: offset, info, a word of 2 bytes. */
	bytes[size - 4] = 0xff;
	struct cairn_sframe *s = reopen(bytes, size, 0x8000);
	cairn_sframe_info(s, &info);
	cairn_sframe_function(s, 0, &f);
	assert_non_null(f.refused);
	assert_int_equal(info.n_refused, 1);
	assert_rows(s, 0, "");
	cairn_sframe_function(s, 1, &f);
	assert_null(f.refused);
	assert_rows(s, 1, "0 cfa 7+8; 1 cfa 7+16 6@-16; 2 cfa 6+16 6@-16; ");
	cairn_sframe_close(s);
	free(bytes);
}

static void the_header_may_fix_where_the_frame_pointer_is(void **state)
{
	for (unsigned int version = 2; version <= 3; version++) {
		struct cairn_sframe_writer *w = writer(version);
		struct built_rule flexible = {.rule = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = R10}};
		struct cairn_sframe_info info;
		uint8_t *bytes;
		add_usual(w);
		add(w, 0x2000, 0x10, &flexible, 1);
		size_t size = finish(w, 0x8000, &bytes);
		bytes[5] = 0xf0;
		struct cairn_sframe *s = reopen(bytes, size, 0x8000);
		assert_rows(s, 0, "0 cfa 7+8 6@-16; 1 cfa 7+408 6@-16; ");
		assert_rows(s, 1, "0 cfa 7+8 6@-16; 1 cfa 7+16 6@-16; 2 cfa 6+16 6@-16; ");
		if (version == 3)
			assert_rows(s, 2, "0 cfa 10+0 6@-16; ");
		cairn_sframe_close(s);
		/* Rows that say another place contradict it. */
		bytes[5] = 0xe8;
		s = reopen(bytes, size, 0x8000);
		cairn_sframe_info(s, &info);
		assert_int_equal(info.n_refused, 1);
		cairn_sframe_close(s);
		free(bytes);
	}
}

/* As libsframe does, each version has its own. */
static void flags_that_a_version_does_not_have_are_refused(void **state)
{
	static const uint8_t known[] = {[1] = 3, [2] = 7, [3] = 5};
	for (unsigned int version = 1; version <= 3; version++)
		for (unsigned int flag = 1; flag < 256; flag <<= 1) {
			struct cairn_sframe_writer *w = writer(version == 1 ? 2 : version);
			struct cairn_sframe *s;
			struct cairn_err err = {0};
			uint8_t *bytes;
			size_t size = finish(w, 0x8000, &bytes);
			bytes[2] = (uint8_t)version;
			bytes[3] = (uint8_t)flag;
			int rc = cairn_sframe_open(bytes, size, (struct cairn_vaddr){0x8000},
						   "sample", &s, &err);
			assert_int_equal(rc, known[version] & flag ? 0 : -EOPNOTSUPP);
			if (rc == 0)
				cairn_sframe_close(s);
			else
				assert_non_null(strstr(err.msg, "flags"));
			free(bytes);
		}
}

static void what_is_not_known_is_refused_by_name(void **state)
{
	uint8_t bytes[sizeof(gas_2_40)];
	struct cairn_sframe *s;
	struct cairn_err err = {0};
	memcpy(bytes, gas_2_40, sizeof(bytes));
	bytes[4] = 4;
	assert_int_equal(
		cairn_sframe_open(bytes, sizeof(bytes), (struct cairn_vaddr){0}, "s", &s, &err),
		-EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "s390x"));
	bytes[4] = 3;
	bytes[2] = 4;
	assert_int_equal(
		cairn_sframe_open(bytes, sizeof(bytes), (struct cairn_vaddr){0}, "s", &s, &err),
		-EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "version 4"));
}

/* ---- bad input ---- */

static void ask_all(const struct cairn_sframe *s)
{
	struct cairn_sframe_info info;
	cairn_sframe_info(s, &info);
	for (uint32_t i = 0; i < info.n_functions; i++) {
		char text[4096] = "";
		struct cairn_sframe_function f;
		cairn_sframe_function(s, i, &f);
		cairn_sframe_rows(s, i, spell, text);
	}
}

static void damage(const uint8_t *bytes, size_t size)
{
	size_t refused = 0;
	for (size_t n = 0; n < size; n++) {
		struct cairn_sframe *s;
		uint8_t *cut = malloc(n ? n : 1);
		memcpy(cut, bytes, n);
		assert_int_equal(
			cairn_sframe_open(cut, n, (struct cairn_vaddr){0}, "cut", &s, NULL),
			-EBADMSG);
		free(cut);
	}
	uint8_t *flipped = malloc(size);
	memcpy(flipped, bytes, size);
	for (size_t bit = 0; bit < size * 8; bit++) {
		struct cairn_sframe *s;
		flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
		int rc = cairn_sframe_open(flipped, size, (struct cairn_vaddr){0}, "flipped", &s,
					   NULL);
		assert_true(rc == 0 || rc == -EBADMSG || rc == -EOPNOTSUPP);
		refused += rc < 0;
		if (rc == 0)
			ask_all(s);
		if (rc == 0)
			cairn_sframe_close(s);
		flipped[bit / 8] ^= (uint8_t)(1u << bit % 8);
	}
	assert_true(refused > 100);
	free(flipped);
}

static void cut_and_flipped_sections_are_refused_or_harmless(void **state)
{
	damage(gas_2_40, sizeof(gas_2_40));
	for (unsigned int version = 2; version <= 3; version++) {
		struct cairn_sframe_writer *w = writer(version);
		uint8_t *bytes;
		add_usual(w);
		size_t size = finish(w, 0, &bytes);
		damage(bytes, size);
		free(bytes);
	}
}

static void every_failing_allocation_is_reported(void **state)
{
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	if (cairn_binary_open("/lib64/ld-linux-x86-64.so.2", NULL, &bin, &err) < 0)
		fail_msg("%s", err.msg);
	struct cairn_sframe_encoded whole = {0};
	assert_int_equal(cairn_sframe_encode(bin, 3, (struct cairn_vaddr){0}, &whole, NULL), 0);
	unsigned int n_refused = 0;
	for (unsigned int n = 1;; n++) {
		struct cairn_sframe_encoded e = {0};
		alloc_fail_at(n);
		int rc = cairn_sframe_encode(bin, 3, (struct cairn_vaddr){0}, &e, NULL);
		bool was_hit = alloc_fail_end();
		/* Without memory to count in, FDEs are sorted in place, into the same order. */
		assert_true(rc == -ENOMEM || rc == 0);
		if (rc == 0) {
			assert_int_equal(e.size, whole.size);
			assert_memory_equal(e.bytes, whole.bytes, e.size);
		}
		n_refused += rc < 0;
		free(e.bytes);
		if (!was_hit)
			break;
	}
	assert_true(n_refused > 10);
	free(whole.bytes);
	cairn_binary_close(bin);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_written_is_read),
		cmocka_unit_test(version_3_says_more),
		cmocka_unit_test(a_function_with_a_row_that_cannot_be_said_is_left_out),
		cmocka_unit_test(version_2_reaches_2_gib),
		cmocka_unit_test(version_1_is_read),
		cmocka_unit_test(a_linkage_table_is_one_function_of_blocks),
		cmocka_unit_test(a_linkage_table_without_the_size_of_its_blocks_is_refused),
		cmocka_unit_test(blocks_are_written_as_they_are_read),
		cmocka_unit_test(an_odd_row_refuses_its_function_only),
		cmocka_unit_test(the_header_may_fix_where_the_frame_pointer_is),
		cmocka_unit_test(flags_that_a_version_does_not_have_are_refused),
		cmocka_unit_test(what_is_not_known_is_refused_by_name),
		cmocka_unit_test(cut_and_flipped_sections_are_refused_or_harmless),
		cmocka_unit_test(every_failing_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
