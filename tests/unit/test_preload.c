/* SPDX-License-Identifier: BSD-2-Clause */
/* What keeps a library from being preloaded, as the headers of a program tell it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/serve.h>

enum { N_HEADERS = 3, SIZE = sizeof(Elf64_Ehdr) + N_HEADERS * sizeof(Elf64_Phdr) };

/* A program of this machine, whose last header is of type @last. */
static void build(uint8_t *to, uint32_t last)
{
	Elf64_Ehdr e = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_DYN,
#ifdef __aarch64__
		.e_machine = EM_AARCH64,
#else
		.e_machine = EM_X86_64,
#endif
		.e_phoff = sizeof(Elf64_Ehdr),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = N_HEADERS,
	};
	Elf64_Phdr p[N_HEADERS] = {{.p_type = PT_LOAD}, {.p_type = PT_DYNAMIC}, {.p_type = last}};
	memcpy(to, &e, sizeof(e));
	memcpy(to + sizeof(e), p, sizeof(p));
}

static enum cairn_preload_obstacle look(const uint8_t *bytes, size_t n)
{
	enum cairn_preload_obstacle ret = (enum cairn_preload_obstacle) - 1;
	struct cairn_err err;
	assert_int_equal(cairn_preload_look_at(bytes, n, &ret, &err), 0);
	return ret;
}

static void a_program_interpreter_is_what_loads(void **state)
{
	uint8_t bytes[SIZE];
	build(bytes, PT_INTERP);
	assert_int_equal(look(bytes, SIZE), CAIRN_PRELOAD_NONE);
	build(bytes, PT_NOTE);
	assert_int_equal(look(bytes, SIZE), CAIRN_PRELOAD_STATIC);
	assert_int_equal(look((const uint8_t *)"#!/bin/sh -e\necho", 17), CAIRN_PRELOAD_NONE);
	assert_int_equal(look(NULL, 0), CAIRN_PRELOAD_NONE);
}

static void other_machines_and_word_sizes_are_foreign(void **state)
{
	uint8_t bytes[SIZE];
	build(bytes, PT_INTERP);
	bytes[offsetof(Elf64_Ehdr, e_machine)] = EM_RISCV;
	assert_int_equal(look(bytes, SIZE), CAIRN_PRELOAD_FOREIGN);
	build(bytes, PT_INTERP);
	bytes[EI_CLASS] = ELFCLASS32;
	assert_int_equal(look(bytes, SIZE), CAIRN_PRELOAD_FOREIGN);
	build(bytes, PT_INTERP);
	bytes[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(look(bytes, SIZE), CAIRN_PRELOAD_FOREIGN);
}

static void every_truncation_is_told_and_every_flipped_bit_survived(void **state)
{
	uint8_t whole[SIZE];
	struct cairn_err err;
	enum cairn_preload_obstacle why;
	build(whole, PT_INTERP);
	for (size_t n = EI_NIDENT; n < SIZE; n++) {
		/* At the end of its memory, where a byte too many is seen. */
		uint8_t *part = malloc(n);
		memcpy(part, whole, n);
		assert_int_equal(cairn_preload_look_at(part, n, &why, &err), -EBADMSG);
		assert_string_not_equal(err.msg, "");
		free(part);
	}
	for (size_t bit = 0; bit < SIZE * 8; bit++) {
		uint8_t *flipped = malloc(SIZE);
		memcpy(flipped, whole, SIZE);
		flipped[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int r = cairn_preload_look_at(flipped, SIZE, &why, &err);
		assert_true(r == 0 || r == -EBADMSG);
		free(flipped);
	}
}

static void files_are_looked_at_by_name(void **state)
{
	struct cairn_err err;
	enum cairn_preload_obstacle why = CAIRN_PRELOAD_STATIC;
	assert_int_equal(cairn_preload_look("/proc/self/exe", &why, &err), 0);
	assert_int_equal(why, CAIRN_PRELOAD_NONE);
	assert_int_equal(cairn_preload_look("/no/such/file", &why, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_interpreter_is_what_loads),
		cmocka_unit_test(other_machines_and_word_sizes_are_foreign),
		cmocka_unit_test(every_truncation_is_told_and_every_flipped_bit_survived),
		cmocka_unit_test(files_are_looked_at_by_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
