/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls of codectl() mean, and which make no sense: rules without a process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "agent/arguments.h"

static const struct code_elf_info good_elf = {
	.elf_start = 0x10000,
	.elf_end = 0x20000,
	.text_start = 0x11000,
	.text_end = 0x12000,
	.sframe_start = 0x13000,
	.sframe_end = 0x13100,
	.unwind_start = 0x14000,
	.unwind_end = 0x14100,
	.unwind_kind = CODE_UNWIND_EH_FRAME_HDR,
};

static const struct code_jit_info good_jit = {
	.text_start = 0x50000,
	.text_end = 0x60000,
	.unwind_head = 0x70000,
	.extended = CODE_JIT_EXTENDED,
	.symbols_head = 0x71000,
	.flags = CODE_JIT_FRAME_POINTER,
};

static const struct code_unregister_info good_range = {0x11000, 0x12000};

/* Both steps, as they are called. */
static int ask(enum codectl_numbers numbers, unsigned int option, const void *info, size_t n,
	       struct codectl_request *ret)
{
	enum code_opt meant;
	int rc = codectl_check_call(numbers, option, n, 0, &meant);
	return rc < 0 ? rc : codectl_read_request(meant, info, n, ret);
}

static int elf(const struct code_elf_info *info)
{
	struct codectl_request r;
	return ask(CODECTL_NUMBERS_REVIEWED, CODE_REGISTER_ELF, info, sizeof(*info), &r);
}

static int jit(const struct code_jit_info *info)
{
	struct codectl_request r;
	return ask(CODECTL_NUMBERS_REVIEWED, CODE_REGISTER_JIT, info, sizeof(*info), &r);
}

static void good_calls_are_taken(void **state)
{
	struct codectl_request r;
	assert_int_equal(elf(&good_elf), 0);
	assert_int_equal(jit(&good_jit), 0);
	assert_int_equal(
		ask(CODECTL_NUMBERS_REVIEWED, CODE_UNREGISTER, &good_range, sizeof(good_range), &r),
		0);
	assert_int_equal(r.option, CODE_UNREGISTER);
	assert_int_equal(r.range.text_end, 0x12000);
}

static void flags_and_unknown_options_are_invalid(void **state)
{
	enum code_opt meant;
	for (int numbers = 0; numbers < 2; numbers++) {
		assert_int_equal(codectl_check_call(numbers, 0, 16, 1, &meant), -EINVAL);
		assert_int_equal(codectl_check_call(numbers, 0, 16, 1u << 31, &meant), -EINVAL);
		assert_int_equal(codectl_check_call(numbers, 3, 16, 0, &meant), -EINVAL);
		assert_int_equal(codectl_check_call(numbers, UINT32_MAX, 16, 0, &meant), -EINVAL);
		assert_int_equal(codectl_check_call(numbers, 1, CODECTL_INFO_MAX, 0, &meant), 0);
		assert_int_equal(codectl_check_call(numbers, 1, CODECTL_INFO_MAX + 1, 0, &meant),
				 -E2BIG);
	}
}

static void the_numbers_of_the_rfc_mean_the_same_calls(void **state)
{
	static const unsigned int reviewed[] = {CODE_UNREGISTER, CODE_REGISTER_ELF,
						CODE_REGISTER_JIT};
	static const unsigned int rfc[] = {CODE_RFC_UNREGISTER, CODE_RFC_REGISTER_ELF,
					   CODE_RFC_REGISTER_JIT};
	for (size_t i = 0; i < 3; i++) {
		enum code_opt a, b;
		assert_int_equal(
			codectl_check_call(CODECTL_NUMBERS_REVIEWED, reviewed[i], 16, 0, &a), 0);
		assert_int_equal(codectl_check_call(CODECTL_NUMBERS_RFC, rfc[i], 16, 0, &b), 0);
		assert_int_equal(a, reviewed[i]);
		assert_int_equal(b, a);
	}
}

/* A valid info and its size, of each kind, in all forms that callers may have. */
struct sample {
	enum code_opt kind;
	const void *info;
	size_t size;
};

static void no_call_is_taken_for_one_of_the_other_numbering(void **state)
{
	static const struct code_jit_info only_names = {.text_start = 1 << 20,
							.text_end = 2 << 20,
							.extended = CODE_JIT_EXTENDED,
							.symbols_head = 8};
	static const struct code_elf_info identity = {
		.elf_start = 0x1000, .elf_end = 0x9000, .text_start = 0x2000, .text_end = 0x3000};
	static const struct sample samples[] = {
		{CODE_UNREGISTER, &good_range, sizeof(good_range)},
		{CODE_REGISTER_ELF, &identity, 32},
		{CODE_REGISTER_ELF, &identity, CODE_ELF_INFO_RFC_SIZE},
		{CODE_REGISTER_ELF, &good_elf, sizeof(good_elf)},
		{CODE_REGISTER_JIT, &good_jit, CODE_JIT_INFO_RFC_SIZE},
		{CODE_REGISTER_JIT, &good_jit, sizeof(good_jit)},
		{CODE_REGISTER_JIT, &only_names, sizeof(only_names)},
	};
	static const enum code_opt meant[2][3] = {
		{CODE_UNREGISTER, CODE_REGISTER_ELF, CODE_REGISTER_JIT},
		{CODE_REGISTER_ELF, CODE_REGISTER_JIT, CODE_UNREGISTER},
	};
	size_t n_good = 0, n_wrong = 0;
	for (int numbers = 0; numbers < 2; numbers++)
		for (unsigned int option = 0; option < 3; option++)
			for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++) {
				struct codectl_request r;
				int rc = ask(numbers, option, samples[i].info, samples[i].size, &r);
				if (meant[numbers][option] == samples[i].kind) {
					assert_int_equal(rc, 0);
					n_good++;
				} else {
					assert_true(rc == -EINVAL || rc == -E2BIG);
					n_wrong++;
				}
			}
	assert_int_equal(n_good, 14);
	assert_int_equal(n_wrong, 28);
}

static void a_short_info_is_filled_with_zeros(void **state)
{
	struct codectl_request r;
	uint8_t bytes[sizeof(good_elf)];
	memcpy(bytes, &good_elf, sizeof(bytes));
	/* Cut at every byte: what is missing is 0, and either that makes sense or it is refused. */
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		struct code_elf_info want = {0};
		memcpy(&want, bytes, n);
		memset(&r, 0xff, sizeof(r));
		int rc = ask(CODECTL_NUMBERS_REVIEWED, CODE_REGISTER_ELF, bytes, n, &r);
		if (rc == 0)
			assert_memory_equal(&r.elf, &want, sizeof(want));
		else
			assert_int_equal(rc, -EINVAL);
		if (n == 32 || n == 48 || n == 80)
			assert_int_equal(rc, 0);
	}
	assert_int_equal(ask(CODECTL_NUMBERS_REVIEWED, CODE_REGISTER_JIT, &good_jit, 24, &r), 0);
	assert_int_equal(r.jit.extended, 0);
	assert_int_equal(r.jit.symbols_head, 0);
	assert_int_equal(r.jit.flags, 0);
}

static void an_unknown_tail_has_to_be_zero(void **state)
{
	static const struct sample samples[] = {
		{CODE_UNREGISTER, &good_range, sizeof(good_range)},
		{CODE_REGISTER_ELF, &good_elf, sizeof(good_elf)},
		{CODE_REGISTER_JIT, &good_jit, sizeof(good_jit)},
	};
	for (size_t i = 0; i < 3; i++) {
		uint8_t bytes[CODECTL_INFO_MAX] = {0};
		struct codectl_request r;
		memcpy(bytes, samples[i].info, samples[i].size);
		assert_int_equal(
			ask(CODECTL_NUMBERS_REVIEWED, samples[i].kind, bytes, sizeof(bytes), &r),
			0);
		for (size_t at = samples[i].size; at < sizeof(bytes); at += 97) {
			bytes[at] = 1;
			assert_int_equal(ask(CODECTL_NUMBERS_REVIEWED, samples[i].kind, bytes,
					     sizeof(bytes), &r),
					 -E2BIG);
			assert_int_equal(
				ask(CODECTL_NUMBERS_REVIEWED, samples[i].kind, bytes, at, &r), 0);
			bytes[at] = 0;
		}
	}
}

static void an_info_may_lie_at_any_address(void **state)
{
	uint8_t bytes[sizeof(good_jit) + 1];
	struct codectl_request r;
	memcpy(bytes + 1, &good_jit, sizeof(good_jit));
	assert_int_equal(
		ask(CODECTL_NUMBERS_REVIEWED, CODE_REGISTER_JIT, bytes + 1, sizeof(good_jit), &r),
		0);
	assert_memory_equal(&r.jit, &good_jit, sizeof(good_jit));
}

static void objects_that_cannot_be_are_refused(void **state)
{
	struct code_elf_info e;
#define REFUSED(error, change) (e = good_elf, change, assert_int_equal(elf(&e), error))
	REFUSED(-EINVAL, e.text_end = e.text_start);
	REFUSED(-EINVAL, e.text_end = e.text_start - 1);
	REFUSED(-EINVAL, e.text_end = UINT64_MAX);
	REFUSED(-EINVAL, (e.elf_start = e.elf_end = 0));
	REFUSED(-EINVAL, e.elf_start = e.text_start + 1);
	REFUSED(-EINVAL, e.elf_end = e.text_end - 1);
	REFUSED(-EINVAL, e.sframe_end = e.sframe_start);
	REFUSED(-EINVAL, e.sframe_end = 0);
	REFUSED(-EINVAL, e.unwind_kind = 3);
	REFUSED(-EINVAL, e.unwind_kind = CODE_UNWIND_NONE);
	REFUSED(-EINVAL, (e.unwind_start = e.unwind_end = 0));
	REFUSED(-EINVAL, e.build_id = 0x1000);
	REFUSED(-EINVAL, e.build_id_len = 20);
	REFUSED(-ERANGE, (e.build_id = 0x1000, e.build_id_len = CODECTL_BUILD_ID_MAX + 1));
	REFUSED(-EINVAL, e.reserved = 1);
	/* Larger than 4 GiB it may be. */
	REFUSED(0, (e.text_end = e.elf_end = UINT64_C(0x300000000)));
	REFUSED(0, (e.sframe_start = e.sframe_end = 0));
#undef REFUSED
}

static void regions_that_cannot_be_are_refused(void **state)
{
	struct code_jit_info j;
#define REFUSED(error, change) (j = good_jit, change, assert_int_equal(jit(&j), error))
	REFUSED(-EINVAL, j.text_end = j.text_start);
	REFUSED(-EINVAL, j.text_start = j.text_end + 1);
	REFUSED(-EINVAL, (j.unwind_head = j.symbols_head = 0, j.flags = 0));
	REFUSED(-EINVAL, j.unwind_head += 4);
	REFUSED(-EINVAL, j.symbols_head += 1);
	REFUSED(-EINVAL, j.lines_head = 2);
	REFUSED(-EINVAL, j.unwind_head = UINT64_C(1) << 60);
	REFUSED(-EINVAL, j.flags = 4);
	REFUSED(-EINVAL, j.unwind_kind = CODE_UNWIND_EH_FRAME);
	REFUSED(-EINVAL, j.unwind_start = 8);
	REFUSED(-E2BIG, j.extended = 0);
	REFUSED(-E2BIG, j.extended = 1);
	REFUSED(0, j.text_end = j.text_start + (UINT64_C(1) << 32));
	REFUSED(-ERANGE, j.text_end = j.text_start + (UINT64_C(1) << 32) + 1);
	REFUSED(0, (j.unwind_head = j.symbols_head = 0, j.unwind_start = 8, j.unwind_end = 9,
		    j.unwind_kind = 1));
#undef REFUSED
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good_calls_are_taken),
		cmocka_unit_test(flags_and_unknown_options_are_invalid),
		cmocka_unit_test(the_numbers_of_the_rfc_mean_the_same_calls),
		cmocka_unit_test(no_call_is_taken_for_one_of_the_other_numbering),
		cmocka_unit_test(a_short_info_is_filled_with_zeros),
		cmocka_unit_test(an_unknown_tail_has_to_be_zero),
		cmocka_unit_test(an_info_may_lie_at_any_address),
		cmocka_unit_test(objects_that_cannot_be_are_refused),
		cmocka_unit_test(regions_that_cannot_be_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
