/* SPDX-License-Identifier: BSD-2-Clause */
/* GDB's list of code made at run time, and the symbol files in it: as LLVM's, built here. */
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
#include "code/gdb_list.h"
#include "code/symfile.h"
#include "elf_builder.h"
#include "frame_builder.h"

/* ---- the list ---- */

/* A descriptor at 0x1000, three entries at 0x1020, 0x1040, 0x1060. */
struct list {
	struct {
		uint32_t version, action;
		uint64_t relevant, first, unused;
	} descriptor;
	struct {
		uint64_t next, previous, symfile, size;
	} entries[3];
};

static struct list three_entries(void)
{
	return (struct list){.descriptor = {.version = 1, .first = 0x1020},
			     .entries = {{.next = 0x1040, .symfile = 0x5000, .size = 1},
					 {.next = 0x1060, .symfile = 0x6000, .size = 2},
					 {.next = 0, .symfile = 0x7000, .size = 3}}};
}

static struct gdb_list read_list(const struct list *l, size_t n, size_t max)
{
	const struct code_block block = {(const uint8_t *)l, n, 0x1000};
	struct code_memory memory = code_memory_of_block(&block);
	struct gdb_list list = {0};
	assert_int_equal(gdb_list_read(&memory, 0x1000, max, &list), 0);
	return list;
}

static void entries_are_read_in_their_order(void **state)
{
	struct list l = three_entries();
	struct gdb_list list = read_list(&l, sizeof(l), GDB_LIST_MAX);
	assert_int_equal(list.entries.n, 3);
	assert_null(list.why);
	assert_int_equal(list.entries.p[0].symfile, 0x5000);
	assert_int_equal(list.entries.p[2].at, 0x1060);
	assert_int_equal(list.entries.p[2].size, 3);
	VEC_FREE(&list.entries);
}

static void a_list_cut_anywhere_has_the_entries_before(void **state)
{
	struct list l = three_entries();
	for (size_t n = 0; n < sizeof(l); n++) {
		struct gdb_list list = read_list(&l, n, GDB_LIST_MAX);
		assert_int_equal(list.entries.n, n < 64 ? 0 : n / 32 - 1);
		assert_string_equal(list.why, n < 24 ? "the descriptor is not in memory"
						     : "an entry is not in memory");
		VEC_FREE(&list.entries);
	}
}

static void a_list_that_leads_back_ends(void **state)
{
	for (uint64_t to = 0x1020; to <= 0x1060; to += 32) {
		struct list l = three_entries();
		l.entries[2].next = to;
		struct gdb_list list = read_list(&l, sizeof(l), GDB_LIST_MAX);
		assert_between(list.entries.n, 3, 9);
		assert_string_equal(list.why, "the list leads back to itself");
		VEC_FREE(&list.entries);
	}
}

static void a_list_longer_than_is_followed_is_told(void **state)
{
	struct list l = three_entries();
	struct gdb_list list = read_list(&l, sizeof(l), 2);
	assert_int_equal(list.entries.n, 2);
	assert_string_equal(list.why, "the list is longer than is followed");
	VEC_FREE(&list.entries);
}

static void a_descriptor_of_another_version_is_not_followed(void **state)
{
	struct list l = three_entries();
	l.descriptor.version = 2;
	struct gdb_list list = read_list(&l, sizeof(l), GDB_LIST_MAX);
	assert_int_equal(list.entries.n, 0);
	assert_string_equal(list.why, "the descriptor is of a version that is not known");
	VEC_FREE(&list.entries);
}

static void an_entry_that_leads_elsewhere_by_now_is_another(void **state)
{
	struct list l = three_entries();
	const struct code_block block = {(const uint8_t *)&l, sizeof(l), 0x1000};
	struct code_memory memory = code_memory_of_block(&block);
	struct gdb_list list = read_list(&l, sizeof(l), GDB_LIST_MAX);
	assert_true(gdb_entry_is_same(&memory, &list.entries.p[1]));
	l.entries[1].symfile = 0x6001;
	assert_false(gdb_entry_is_same(&memory, &list.entries.p[1]));
	VEC_FREE(&list.entries);
}

/* ---- symbol files ---- */

enum { FILE_AT = 0x10000, TEXT = 0x400000, EH_LOADED = 0x500000 };

static const uint8_t code[64] = {0x55};
static const uint8_t push_rbp[] = {0x41, 0x0e, 16};

/* As LLVM has them: relocatable, with the addresses where things were loaded. */
struct sample {
	struct elf_builder *b;
	struct frames eh;
	uint8_t *bytes;
	size_t n;
};

static void build(struct sample *s, uint64_t eh_addr, bool with_relocation, uint32_t relocation)
{
	uint64_t said = with_relocation ? 0 : TEXT;
	*s = (struct sample){.b = eb_new(ET_REL)};
	uint32_t text = eb_section(s->b, (struct eb_section){.name = ".text",
							     .flags = SHF_ALLOC | SHF_EXECINSTR,
							     .addr = TEXT,
							     EB_BYTES(code)});
	size_t cie = frames_cie_eh(&s->eh, "zR", "\x1b");
	frames_fde_eh(&s->eh, eh_addr, cie, said, sizeof(code), push_rbp, sizeof(push_rbp));
	uint32_t eh = eb_section(s->b, (struct eb_section){.name = ".eh_frame",
							   .flags = SHF_ALLOC,
							   .addr = eh_addr,
							   .data = s->eh.bytes,
							   .size = s->eh.n});
	uint32_t section =
		eb_symbol(s->b, (struct eb_symbol){"", text, 0, 0, STT_SECTION, STB_LOCAL});
	eb_symbol(s->b, (struct eb_symbol){"evalexpr_0_0", text, 0, 32, STT_FUNC, STB_GLOBAL});
	eb_symbol(s->b, (struct eb_symbol){"data", text, 32, 8, STT_OBJECT, STB_GLOBAL});
	eb_symbol(s->b, (struct eb_symbol){"deform", text, 40, 0, STT_FUNC, STB_GLOBAL});
	if (with_relocation)
		eb_rela(s->b, eh, (uint32_t)s->eh.last + 8, relocation, section, 0);
	s->bytes = eb_finish(s->b, &s->n);
}

static void sample_free(struct sample *s)
{
	frames_free(&s->eh);
	eb_free(s->b);
}

/* The file, and .eh_frame where it was loaded, when it was. */
struct two_blocks {
	struct code_block file, eh;
};

static size_t read_two(void *ctx, uint64_t at, void *ret, size_t n)
{
	const struct two_blocks *two = ctx;
	struct code_memory file = code_memory_of_block(&two->file),
			   eh = code_memory_of_block(&two->eh);
	size_t got = file.read(file.ctx, at, ret, n);
	return got ? got : eh.read(eh.ctx, at, ret, n);
}

static int read_bytes(const uint8_t *bytes, size_t n, const struct frames *loaded,
		      struct symfile *ret)
{
	struct two_blocks two = {.file = {bytes, n, FILE_AT}};
	struct code_memory memory = {read_two, &two};
	if (loaded)
		two.eh = (struct code_block){loaded->bytes, loaded->n, EH_LOADED};
	return symfile_read(&memory, FILE_AT, n, ret, NULL);
}

static int32_t cfa_off(const struct symfile *s, uint64_t at)
{
	struct rule_words rule;
	struct cairn_unwind_rule head;
	eh_block_rule(s->eh, at, &rule);
	memcpy(&head, rule.words, sizeof(head));
	return head.cfa == CAIRN_UNWIND_CFA_REG ? head.off : -1;
}

static void functions_of_a_symbol_file_are_named(void **state)
{
	struct sample s;
	struct symfile f;
	uint64_t lo;
	build(&s, EH_LOADED, false, 0);
	assert_int_equal(read_bytes(s.bytes, s.n, &s.eh, &f), 0);
	assert_int_equal(f.ranges.n, 1);
	assert_int_equal(f.ranges.p[0].hi, TEXT + sizeof(code));
	assert_string_equal(symfile_find(&f, TEXT + 31, &lo), "evalexpr_0_0");
	assert_int_equal(lo, TEXT);
	assert_null(symfile_find(&f, TEXT + 32, &lo));
	/* Without a size it has one byte. */
	assert_string_equal(symfile_find(&f, TEXT + 40, &lo), "deform");
	assert_null(symfile_find(&f, TEXT + 41, &lo));
	symfile_fini(&f);
	sample_free(&s);
}

static void unwind_information_is_read_where_it_was_loaded(void **state)
{
	struct sample s;
	struct symfile f;
	/* In the file the relocation is still to be done: a kind that is not known. */
	build(&s, EH_LOADED, true, R_X86_64_GOTPCREL);
	struct frames loaded = {0};
	size_t cie = frames_cie_eh(&loaded, "zR", "\x1b");
	frames_fde_eh(&loaded, EH_LOADED, cie, TEXT, sizeof(code), push_rbp, sizeof(push_rbp));
	assert_int_equal(read_bytes(s.bytes, s.n, &loaded, &f), 0);
	assert_non_null(f.eh);
	assert_int_equal(cfa_off(&f, TEXT), 8);
	assert_int_equal(cfa_off(&f, TEXT + 1), 16);
	symfile_fini(&f);
	frames_free(&loaded);
	sample_free(&s);
}

static void unwind_information_that_was_not_loaded_is_relocated(void **state)
{
	struct sample s;
	struct symfile f;
	build(&s, 0, true, R_X86_64_PC32);
	assert_int_equal(read_bytes(s.bytes, s.n, NULL, &f), 0);
	assert_non_null(f.eh);
	assert_int_equal(cfa_off(&f, TEXT), 8);
	assert_int_equal(cfa_off(&f, TEXT + 1), 16);
	assert_int_equal(cfa_off(&f, TEXT + sizeof(code)), -1);
	symfile_fini(&f);
	sample_free(&s);
}

static int32_t cfa_of_file(const struct symfile *s, uint64_t at)
{
	struct rule_words rule;
	struct cairn_unwind_rule head;
	symfile_rule(s, at, &rule);
	memcpy(&head, rule.words, sizeof(head));
	return head.cfa == CAIRN_UNWIND_CFA_REG ? head.off : -1;
}

/* As QEMU has them. */
static void debug_frame_serves_where_there_is_no_other(void **state)
{
	struct elf_builder *b = eb_new(ET_EXEC);
	struct frames debug = {0};
	struct symfile f;
	size_t n;
	eb_section(b, (struct eb_section){.name = ".text",
					  .flags = SHF_ALLOC | SHF_EXECINSTR,
					  .addr = TEXT,
					  EB_BYTES(code)});
	size_t cie = frames_cie_debug(&debug, 3, false, 8);
	frames_fde_debug(&debug, cie, false, TEXT, sizeof(code), push_rbp, sizeof(push_rbp));
	eb_section(b, (struct eb_section){
			      .name = ".debug_frame", .data = debug.bytes, .size = debug.n});
	const uint8_t *bytes = eb_finish(b, &n);
	assert_int_equal(read_bytes(bytes, n, NULL, &f), 0);
	assert_null(f.eh);
	assert_int_equal(symfile_n_fdes(&f), 1);
	assert_int_equal(cfa_of_file(&f, TEXT), 8);
	assert_int_equal(cfa_of_file(&f, TEXT + 1), 16);
	assert_int_equal(cfa_of_file(&f, TEXT + sizeof(code)), -1);
	symfile_fini(&f);
	frames_free(&debug);
	eb_free(b);
}

/* As LuaJIT and PHP have them; where there are two sections of code nobody knows from which one. */
static void addresses_may_count_from_the_only_section_of_code(void **state)
{
	for (unsigned int n_sections = 1; n_sections <= 2; n_sections++) {
		static const char *const names[] = {".text", ".text.more"};
		struct elf_builder *b = eb_new(ET_REL);
		struct frames eh = {0};
		struct symfile f;
		size_t n;
		for (unsigned int i = 0; i < n_sections; i++)
			eb_section(b, (struct eb_section){.name = names[i],
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = TEXT + i * 0x1000,
							  EB_BYTES(code)});
		size_t cie = frames_cie_eh(&eh, "zR", "\x23");
		size_t fde = frames_entry_begin(&eh, cie, true);
		frames_u32(&eh, 16);
		frames_u32(&eh, 32);
		frames_u8(&eh, 0);
		frames_put(&eh, push_rbp, sizeof(push_rbp));
		frames_entry_end(&eh, fde);
		eb_section(b, (struct eb_section){
				      .name = ".eh_frame", .data = eh.bytes, .size = eh.n});
		const uint8_t *bytes = eb_finish(b, &n);
		assert_int_equal(read_bytes(bytes, n, NULL, &f), 0);
		assert_int_equal(cfa_of_file(&f, TEXT + 15), -1);
		assert_int_equal(cfa_of_file(&f, TEXT + 16), n_sections == 1 ? 8 : -1);
		assert_int_equal(cfa_of_file(&f, TEXT + 47), n_sections == 1 ? 16 : -1);
		assert_int_equal(cfa_of_file(&f, TEXT + 48), -1);
		symfile_fini(&f);
		frames_free(&eh);
		eb_free(b);
	}
}

static void a_relocation_that_is_not_known_leaves_no_rules(void **state)
{
	struct sample s;
	struct symfile f;
	uint64_t lo;
	build(&s, 0, true, R_X86_64_GOTPCREL);
	assert_int_equal(read_bytes(s.bytes, s.n, NULL, &f), 0);
	assert_null(f.eh);
	assert_non_null(symfile_find(&f, TEXT, &lo));
	symfile_fini(&f);
	sample_free(&s);
}

static void what_cannot_be_a_symbol_file_is_refused(void **state)
{
	const struct code_block block = {code, sizeof(code), FILE_AT};
	struct code_memory memory = code_memory_of_block(&block);
	struct symfile f;
	struct cairn_err err = {0};
	assert_int_equal(symfile_read(&memory, FILE_AT, sizeof(code), &f, &err), -EBADMSG);
	symfile_fini(&f);
	assert_int_equal(symfile_read(&memory, FILE_AT, sizeof(code) + 1, &f, &err), -EFAULT);
	symfile_fini(&f);
	assert_int_equal(symfile_read(&memory, FILE_AT, UINT64_MAX, &f, &err), -ERANGE);
	symfile_fini(&f);
	assert_int_equal(symfile_read(&memory, FILE_AT, 0, &f, &err), -EBADMSG);
	symfile_fini(&f);
}

static void a_symbol_file_cut_anywhere_is_refused(void **state)
{
	struct sample s;
	build(&s, 0, true, R_X86_64_PC32);
	for (size_t n = 0; n < s.n; n++) {
		struct symfile f;
		assert_int_equal(read_bytes(s.bytes, n, NULL, &f), -EBADMSG);
		symfile_fini(&f);
	}
	sample_free(&s);
}

static void no_bit_that_is_flipped_in_a_symbol_file_does_harm(void **state)
{
	struct sample s;
	build(&s, 0, true, R_X86_64_PC32);
	for (size_t bit = 0; bit < s.n * 8; bit++) {
		struct symfile f;
		uint64_t lo;
		s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
		int rc = read_bytes(s.bytes, s.n, NULL, &f);
		assert_true(rc == 0 || rc == -EBADMSG);
		for (size_t i = 0; i < f.symbols.n; i++)
			symfile_find(&f, f.symbols.p[i].lo, &lo);
		if (rc == 0 && f.eh)
			cfa_off(&f, TEXT);
		symfile_fini(&f);
		s.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	sample_free(&s);
}

static void a_symbol_file_without_memory_says_so(void **state)
{
	struct sample s;
	build(&s, 0, true, R_X86_64_PC32);
	for (unsigned int n = 1;; n++) {
		struct symfile f;
		alloc_fail_at(n);
		int rc = read_bytes(s.bytes, s.n, NULL, &f);
		bool has_failed = alloc_fail_end();
		symfile_fini(&f);
		if (!has_failed)
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	sample_free(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_are_read_in_their_order),
		cmocka_unit_test(a_list_cut_anywhere_has_the_entries_before),
		cmocka_unit_test(a_list_that_leads_back_ends),
		cmocka_unit_test(a_list_longer_than_is_followed_is_told),
		cmocka_unit_test(a_descriptor_of_another_version_is_not_followed),
		cmocka_unit_test(an_entry_that_leads_elsewhere_by_now_is_another),
		cmocka_unit_test(functions_of_a_symbol_file_are_named),
		cmocka_unit_test(unwind_information_is_read_where_it_was_loaded),
		cmocka_unit_test(unwind_information_that_was_not_loaded_is_relocated),
		cmocka_unit_test(debug_frame_serves_where_there_is_no_other),
		cmocka_unit_test(addresses_may_count_from_the_only_section_of_code),
		cmocka_unit_test(a_relocation_that_is_not_known_leaves_no_rules),
		cmocka_unit_test(what_cannot_be_a_symbol_file_is_refused),
		cmocka_unit_test(a_symbol_file_cut_anywhere_is_refused),
		cmocka_unit_test(no_bit_that_is_flipped_in_a_symbol_file_does_harm),
		cmocka_unit_test(a_symbol_file_without_memory_says_so),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
