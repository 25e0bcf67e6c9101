/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent reads in a program it is a guest of: sections of FDEs, symbol files for GDB.
 * Nothing outside of them is touched.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "agent/preload/fde.h"
#include "agent/preload/symfile.h"

enum {
	CIE_BYTES = 24,
	FDE_BYTES = 32,
	N_FDES = 3,
	SECTION_BYTES = CIE_BYTES + N_FDES * FDE_BYTES + 4
};

/* Relative addresses, in 4 bytes: "zR" 0x1b; or absolute ones. */
static void put_section(uint8_t *to, bool is_relative)
{
	const uint8_t cie[CIE_BYTES] = {
		20, 0, 0, 0,    0, 0, 0, 0, 1, 'z', 'R', 0, 1, 0x78, 16, 1, is_relative ? 0x1b : 0,
		12, 7, 8, 0x90, 1};
	memcpy(to, cie, CIE_BYTES);
	memset(to + CIE_BYTES, 0, SECTION_BYTES - CIE_BYTES);
	for (uint32_t i = 0; i < N_FDES; i++) {
		uint8_t *fde = to + CIE_BYTES + i * FDE_BYTES;
		uint32_t head[2] = {FDE_BYTES - 4, (uint32_t)(fde + 4 - to)};
		uint64_t lo = 0x100000 + i * 0x1000, n = 0x100;
		int32_t near[2] = {(int32_t)(i * 0x1000) + 0x10000, 0x100};
		memcpy(fde, head, 8);
		memcpy(fde + 8, is_relative ? (void *)near : (void *)&lo, 8);
		if (!is_relative)
			memcpy(fde + 16, &n, 8);
	}
}

static size_t count(const uint8_t *at, size_t n_bytes, struct fde *last)
{
	struct fde_walk walk;
	size_t n = 0;
	fde_walk_begin_within(&walk, at, n_bytes);
	while (fde_walk_next(&walk, last))
		n++;
	return n;
}

static void sections_are_walked_in_both_encodings(void **state)
{
	uint8_t *section = malloc(SECTION_BYTES);
	struct fde fde, single;
	struct fde_walk walk;
	put_section(section, false);
	assert_int_equal(count(section, SECTION_BYTES, &fde), N_FDES);
	assert_true(fde.lo == 0x102000 && fde.hi == 0x102100 && fde.cie == (uintptr_t)section);
	fde_walk_begin(&walk, section + CIE_BYTES + FDE_BYTES, FDE_RUN_SINGLE);
	assert_true(fde_walk_next(&walk, &single) && single.lo == 0x101000 &&
		    single.cie == (uintptr_t)section);
	assert_false(fde_walk_next(&walk, &single));
	assert_true(fde_is_one(section + CIE_BYTES) && !fde_is_one(section));
	put_section(section, true);
	assert_int_equal(count(section, SECTION_BYTES, &fde), N_FDES);
	assert_int_equal(fde.lo, (uintptr_t)section + CIE_BYTES + 2 * FDE_BYTES + 8 + 0x12000);
	assert_int_equal(fde.hi - fde.lo, 0x100);
	free(section);
}

/* Each in memory of its own size: a sanitizer sees a byte too many. */
static void cut_and_damaged_sections_end(void **state)
{
	uint8_t whole[SECTION_BYTES];
	struct fde fde;
	put_section(whole, true);
	for (size_t n = 1; n < SECTION_BYTES; n++) {
		uint8_t *part = malloc(n);
		memcpy(part, whole, n);
		assert_true(count(part, n, &fde) <= N_FDES);
		free(part);
	}
	uint8_t *section = malloc(SECTION_BYTES);
	for (size_t bit = 0; bit < SECTION_BYTES * 8; bit++) {
		memcpy(section, whole, SECTION_BYTES);
		section[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* A length that is shorter by a bit may make two of one. */
		assert_true(count(section, SECTION_BYTES, &fde) <= SECTION_BYTES / 8);
	}
	free(section);
}

/* ---- symbol files ---- */

struct file {
	Elf64_Ehdr head;
	Elf64_Shdr s[5];
	Elf64_Sym sym[4];
	uint8_t cfi[SECTION_BYTES];
	char names[64];
};

static void put_file(struct file *f)
{
	*f = (struct file){
		.head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
			 .e_type = ET_REL,
			 .e_shoff = offsetof(struct file, s),
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = 5,
			 .e_shstrndx = 4},
		.s = {{0},
		      {.sh_type = SHT_NOBITS,
		       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
		       .sh_addr = 0x100000,
		       .sh_size = 0x3000},
		      {.sh_type = SHT_PROGBITS,
		       .sh_name = 1,
		       .sh_offset = offsetof(struct file, cfi),
		       .sh_size = SECTION_BYTES},
		      {.sh_type = SHT_SYMTAB,
		       .sh_offset = offsetof(struct file, sym),
		       .sh_size = sizeof(f->sym),
		       .sh_link = 4},
		      {.sh_type = SHT_STRTAB,
		       .sh_offset = offsetof(struct file, names),
		       .sh_size = sizeof(f->names)}},
		.sym = {{0},
			{.st_name = 17,
			 .st_info = STT_FUNC,
			 .st_shndx = 1,
			 .st_value = 0x1000,
			 .st_size = 0x100},
			{.st_name = 11,
			 .st_info = STT_FUNC,
			 .st_shndx = 1,
			 .st_value = 0,
			 .st_size = 0x100},
			{.st_name = 11,
			 .st_info = STT_FUNC,
			 .st_shndx = 1,
			 .st_value = 0x80,
			 .st_size = 0x100}},
		.names = "\0.eh_frame\0first\0second",
	};
	put_section(f->cfi, false);
}

/* All that the agent asks; how many functions. */
static size_t read_file(const void *at, size_t n_bytes)
{
	struct symfile s;
	struct symfile_function functions[4];
	const Elf64_Shdr *section;
	uint64_t lo, hi;
	unsigned i = 0;
	size_t n = 0;
	if (!symfile_open(at, n_bytes, &s))
		return 0;
	while ((section = symfile_code(&s, &i))) {
		n += symfile_functions(&s, section->sh_addr, section->sh_addr + section->sh_size,
				       functions, 4);
		symfile_cfi(&s, section->sh_addr, section->sh_addr + section->sh_size, &lo, &hi);
	}
	return n;
}

static void functions_come_by_address_and_do_not_overlap(void **state)
{
	static struct file f;
	struct symfile s;
	struct symfile_function functions[4];
	uint64_t lo, hi;
	put_file(&f);
	assert_true(symfile_open(&f, sizeof(f), &s));
	assert_int_equal(symfile_functions(&s, 0x100000, 0x103000, functions, 4), 2);
	assert_true(functions[0].lo == 0x100000 && !strcmp(functions[0].name, "first"));
	assert_true(functions[1].lo == 0x101000 && !strcmp(functions[1].name, "second"));
	assert_int_equal(symfile_functions(&s, 0x100000, 0x100100, functions, 4), 1);
	assert_true(symfile_cfi(&s, 0x100000, 0x103000, &lo, &hi));
	assert_true(lo == (uintptr_t)f.cfi && hi == lo + SECTION_BYTES);
	/*
	 * One about other code; and an address where nothing is mapped, beside which the file's own
	 * is good.
	 */
	assert_false(symfile_cfi(&s, 0x200000, 0x203000, &lo, &hi));
	f.s[2].sh_addr = 8;
	assert_true(symfile_cfi(&s, 0x100000, 0x103000, &lo, &hi) && lo == (uintptr_t)f.cfi);
}

static void cut_and_damaged_symbol_files_end(void **state)
{
	static struct file whole;
	put_file(&whole);
	for (size_t n = 0; n < sizeof(whole); n++) {
		uint8_t *part = aligned_alloc(8, (n + 7) & ~(size_t)7);
		memcpy(part, &whole, n);
		assert_true(read_file(part, n) <= 2);
		free(part);
	}
	struct file *f = malloc(sizeof(*f));
	/*
	 * Where CFI was loaded to is any memory of the program; a sanitizer does not stand that its
	 * own is read.
	 */
	size_t address = (offsetof(struct file, s[2]) + offsetof(Elf64_Shdr, sh_addr)) * 8;
	for (size_t bit = 0; bit < sizeof(whole) * 8; bit++) {
		if (bit >= address && bit < address + 64)
			continue;
		*f = whole;
		((uint8_t *)f)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_true(read_file(f, sizeof(*f)) <= 4);
	}
	free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sections_are_walked_in_both_encodings),
		cmocka_unit_test(cut_and_damaged_sections_end),
		cmocka_unit_test(functions_come_by_address_and_do_not_overlap),
		cmocka_unit_test(cut_and_damaged_symbol_files_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
