/* SPDX-License-Identifier: BSD-2-Clause */
/* Questions about few symbols: the answers are those of the order of all. */
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

#include "alloc_fail.h"
#include "base/search.h"
#include "elf/elf.h"
#include "elf/functions_around.h"
#include "elf_builder.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { TEXT = 0x100000, TEXT_SIZE = 1 << 18, FEW = 3 };

static uint32_t seed;

static uint32_t next_number(uint32_t below)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % below;
}

/* The file twice: one whose symbols are read as a whole, and one whose are not. */
struct pair {
	struct elf *all, *few;
	struct functions functions;
};

static void pair_open(struct pair *p, const void *bytes, size_t size)
{
	assert_int_equal(elf_open_mem(bytes, size, "built", &p->all, NULL), 0);
	assert_int_equal(elf_open_mem(bytes, size, "built", &p->few, NULL), 0);
	assert_int_equal(functions_init(&p->functions, p->all, NULL), 0);
}

static void pair_close(struct pair *p)
{
	functions_fini(&p->functions);
	elf_unref(p->all);
	elf_unref(p->few);
}

static const struct function_range *range_at(const struct functions *f, uint64_t at)
{
	size_t n = SEARCH(0, f->ranges.n, i, f->ranges.p[i].lo <= at);
	return n && f->ranges.p[n - 1].hi > at ? &f->ranges.p[n - 1] : NULL;
}

static void check_range(const struct functions *want, const struct functions *have, uint64_t at)
{
	const struct function_range *w = range_at(want, at), *h = range_at(have, at);
	if (!w != !h)
		fail_msg("at 0x%jx: %s, expected %s", (uintmax_t)at, h ? h->symbol->name : "none",
			 w ? w->symbol->name : "none");
	if (w && (w->lo != h->lo || w->hi != h->hi || strcmp(w->symbol->name, h->symbol->name)))
		fail_msg("at 0x%jx: [0x%jx, 0x%jx) %s, expected [0x%jx, 0x%jx) %s", (uintmax_t)at,
			 (uintmax_t)h->lo, (uintmax_t)h->hi, h->symbol->name, (uintmax_t)w->lo,
			 (uintmax_t)w->hi, w->symbol->name);
}

/* Of a gap, the ends of the functions before and after it. */
static void check_gap(const struct functions *want, const struct functions *have, uint64_t at)
{
	size_t w = SEARCH(0, want->ranges.n, i, want->ranges.p[i].lo <= at);
	size_t h = SEARCH(0, have->ranges.n, i, have->ranges.p[i].lo <= at);
	if (range_at(want, at) || at < TEXT || at >= TEXT + TEXT_SIZE)
		return;
	if (w)
		assert_int_equal(want->ranges.p[w - 1].hi, h ? have->ranges.p[h - 1].hi : 0);
	if (w < want->ranges.n)
		assert_int_equal(want->ranges.p[w].lo,
				 h < have->ranges.n ? have->ranges.p[h].lo : 0);
}

static int check_around(const struct pair *p, const uint64_t *at, size_t n)
{
	struct functions_around f;
	int rc = functions_around_init(&f, p->few, at, n);
	assert_true(rc >= 0);
	for (size_t i = 0; i < n && rc; i++) {
		assert_true(functions_around_has(&f, at[i]));
		check_range(&p->functions, &f.functions, at[i]);
		check_gap(&p->functions, &f.functions, at[i]);
	}
	functions_around_fini(&f);
	return rc;
}

/* Functions, labels and aliases of any size, nested and apart, some far from the others. */
static struct elf_builder *built(size_t n)
{
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .type = SHT_NOBITS,
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = TEXT,
							  .size = TEXT_SIZE});
	for (size_t i = 0; i < n; i++) {
		static const uint64_t sizes[] = {0, 1, 16, 300, 5000, 30000};
		static char names[64][8];
		uint64_t size = sizes[next_number(ARRAY_SIZE(sizes))];
		uint64_t at = TEXT + next_number(TEXT_SIZE);
		snprintf(names[i % 64], sizeof(names[0]), "%s%u", next_number(9) ? "f" : ".L",
			 next_number(40));
		eb_symbol(b, (struct eb_symbol){names[i % 64], text, at, size,
						next_number(3) ? STT_FUNC : STT_NOTYPE,
						i < n / 2 ? STB_LOCAL : STB_GLOBAL});
	}
	return b;
}

static void what_is_at_few_addresses_is_what_an_order_of_all_says(void **state)
{
	unsigned int n_answered = 0, n = 0;
	for (seed = 1; n < 400; n++) {
		struct elf_builder *b = built(next_number(60));
		struct pair p;
		uint64_t at[FEW];
		size_t size;
		const uint8_t *bytes = eb_finish(b, &size);
		pair_open(&p, bytes, size);
		for (int i = 0; i < 20; i++) {
			for (size_t k = 0; k < ARRAY_SIZE(at); k++)
				at[k] = TEXT + next_number(TEXT_SIZE);
			n_answered += (unsigned int)check_around(&p, at, 1 + next_number(FEW));
		}
		pair_close(&p);
		eb_free(b);
	}
	/* The others need all symbols. */
	assert_true(n_answered > n * 20 / 2);
}

/* ---- this program ---- */

static void open_self(struct elf **ret)
{
	FILE *f = fopen("/proc/self/exe", "re");
	assert_non_null(f);
	assert_int_equal(elf_open_fd(fileno(f), "self", ret, NULL), 0);
	fclose(f);
}

static void functions_of_this_program_are_found_one_by_one(void **state)
{
	struct pair p = {0};
	open_self(&p.all);
	open_self(&p.few);
	assert_int_equal(functions_init(&p.functions, p.all, NULL), 0);
	unsigned int n = 0, n_answered = 0;
	for (size_t i = 0; i < p.functions.ranges.n; i++) {
		const struct function_range *r = &p.functions.ranges.p[i];
		const uint64_t at[] = {r->lo, r->hi - 1, r->lo + (r->hi - r->lo) / 2};
		n_answered += (unsigned int)check_around(&p, at, ARRAY_SIZE(at));
		n++;
	}
	assert_true(n > 50 && n_answered > n * 8 / 10);
	pair_close(&p);
}

static void check_list(const struct symbol_list *have, const struct symbol_list *want,
		       const char *what)
{
	if (have->v.n != want->v.n)
		fail_msg("%s: %zu symbols, expected %zu", what, have->v.n, want->v.n);
	for (size_t i = 0; i < want->v.n; i++)
		if (strcmp(have->v.p[i].name, want->v.p[i].name) ||
		    have->v.p[i].at.v != want->v.p[i].at.v ||
		    have->v.p[i].size != want->v.p[i].size)
			fail_msg("%s: %s, expected %s", what, have->v.p[i].name, want->v.p[i].name);
}

static void symbols_of_a_name_are_found_without_reading_all(void **state)
{
	struct elf *all, *few;
	const struct elf_symbol *p;
	struct name_set names = {0};
	struct symbol_list of_all = {0}, of_few = {0};
	size_t n;
	open_self(&all);
	open_self(&few);
	assert_int_equal(elf_symbols(all, &p, &n, NULL), 0);
	for (size_t i = 0; i < n; i += 3) {
		struct symbol_list have = {0}, want = {0};
		assert_int_equal(elf_symbols_named(all, p[i].name, &want, NULL), 0);
		assert_int_equal(elf_symbols_named(few, p[i].name, &have, NULL), 0);
		assert_true(want.v.n > 0);
		check_list(&have, &want, p[i].name);
		assert_int_equal(name_set_add(&names, p[i].name, strlen(p[i].name)), 0);
		VEC_FREE(&have.v);
		VEC_FREE(&want.v);
	}
	assert_int_equal(elf_symbols_of_names(all, &names, &of_all, NULL), 0);
	assert_int_equal(elf_symbols_of_names(few, &names, &of_few, NULL), 0);
	check_list(&of_few, &of_all, "all of them");
	VEC_FREE(&of_all.v);
	VEC_FREE(&of_few.v);
	name_set_fini(&names);
	elf_unref(all);
	elf_unref(few);
}

static void the_last_symbols_before_an_address_are_those_of_all(void **state)
{
	struct elf *all, *few;
	const struct elf_symbol *p;
	size_t n, n_answered = 0;
	open_self(&all);
	open_self(&few);
	assert_int_equal(elf_symbols(all, &p, &n, NULL), 0);
	for (size_t i = 0; i < n; i++) {
		struct symbol_list before = {0};
		uint64_t at = p[i].at.v + 1;
		size_t end = SEARCH(i, n, k, p[k].at.v <= at);
		if (elf_symbols_before(few, (struct cairn_vaddr){at}, &before) == 1) {
			n_answered++;
			for (size_t k = 1; k <= before.v.n && k <= end &&
					   p[end - 1].at.v - p[end - k].at.v < ELF_SYMBOLS_BEFORE;
			     k++)
				assert_string_equal(before.v.p[before.v.n - k].name,
						    p[end - k].name);
		}
		VEC_FREE(&before.v);
	}
	assert_true(n_answered > n / 2);
	elf_unref(all);
	elf_unref(few);
}

/* ---- what cannot be done ---- */

static void a_name_outside_the_strings_needs_the_reader_that_reports_it(void **state)
{
	struct elf_builder *b = built(20);
	struct functions_around f;
	struct symbol_list list = {0};
	struct cairn_err err = {0};
	struct elf *e;
	const uint64_t at = TEXT;
	size_t size;
	uint8_t *bytes = eb_finish(b, &size);
	Elf64_Ehdr *head = (Elf64_Ehdr *)bytes;
	Elf64_Shdr *sections = (Elf64_Shdr *)(bytes + head->e_shoff);
	for (int i = 0; i < head->e_shnum; i++)
		if (sections[i].sh_type == SHT_SYMTAB)
			((Elf64_Sym *)(bytes + sections[i].sh_offset))[7].st_name = 1 << 30;
	assert_int_equal(elf_open_mem(bytes, size, "damaged", &e, NULL), 0);
	assert_int_equal(functions_around_init(&f, e, &at, 1), 0);
	assert_int_equal(elf_symbols_named(e, "never", &list, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "symbol 7"));
	VEC_FREE(&list.v);
	elf_unref(e);
	eb_free(b);
}

static void without_memory_nothing_is_said(void **state)
{
	struct elf_builder *b = built(40);
	const uint64_t at[] = {TEXT + 100, TEXT + TEXT_SIZE / 2};
	struct elf *e;
	size_t size;
	const uint8_t *bytes = eb_finish(b, &size);
	assert_int_equal(elf_open_mem(bytes, size, "built", &e, NULL), 0);
	for (unsigned int n = 1;; n++) {
		struct functions_around f;
		alloc_fail_at(n);
		int rc = functions_around_init(&f, e, at, ARRAY_SIZE(at));
		if (!alloc_fail_end()) {
			functions_around_fini(&f);
			assert_true(n > 5);
			break;
		}
		assert_int_equal(rc, -ENOMEM);
	}
	elf_unref(e);
	eb_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_at_few_addresses_is_what_an_order_of_all_says),
		cmocka_unit_test(functions_of_this_program_are_found_one_by_one),
		cmocka_unit_test(symbols_of_a_name_are_found_without_reading_all),
		cmocka_unit_test(the_last_symbols_before_an_address_are_those_of_all),
		cmocka_unit_test(a_name_outside_the_strings_needs_the_reader_that_reports_it),
		cmocka_unit_test(without_memory_nothing_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
