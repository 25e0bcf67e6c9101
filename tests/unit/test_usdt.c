/* SPDX-License-Identifier: BSD-2-Clause */
/* USDT probes: the notes, the operands in them, and what is left of them when they are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include <cairn/usdt.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "sites/usdt.h"
#include "usdt_notes.h"

struct program {
	struct elf_builder *b;
	struct cairn_binary *bin;
};

static struct program with_notes(const void *bytes, size_t n, uint64_t base)
{
	struct program p = {.b = usdt_program(bytes, n, base)};
	size_t size;
	const uint8_t *file = eb_finish(p.b, &size);
	assert_int_equal(binary_open_mem(file, size, "program", &p.bin, NULL), 0);
	return p;
}

static void close_program(struct program *p)
{
	cairn_binary_close(p->bin);
	eb_free(p->b);
}

/* The first argument of a program's only probe, whose note has @args. */
struct one {
	struct program p;
	struct cairn_usdt *usdt;
	const struct cairn_usdt_site *site;
};

static struct one with_args(const char *args)
{
	struct usdt_notes notes = {.n = 0};
	struct one o;
	usdt_note(&notes, USDT_TEXT + 4, 0, "p", "n", args);
	o.p = with_notes(notes.bytes, notes.n, USDT_BASE);
	assert_int_equal(cairn_usdt_open(o.p.bin, &o.usdt, NULL), 0);
	assert_int_equal(cairn_usdt_sites(o.usdt, &o.site), 1);
	return o;
}

static void close_one(struct one *o)
{
	cairn_usdt_close(o->usdt);
	close_program(&o->p);
}

static void an_operand_becomes_the_location_that_it_means(void **state)
{
	static const struct {
		const char *args, *loc;
		int size, is_signed;
	} known[] = {
		{"-4@%eax", "%rax", 4, 1},
		{"8@%r15", "%r15", 8, 0},
		{"1@%ah", "%rax>>8", 1, 0},
		{"2@%r9w", "%r9", 2, 0},
		{"1@%sil", "%rsi", 1, 0},
		{"-8@%rdi", "%rdi", 8, 1},
		{"-4@%rax", "%rax", 4, 1},
		{"-4@$-22", "const -22", 4, 1},
		{"4@$0x10", "const 16", 4, 0},
		{"8@(%rsp)", "*(%rsp)", 8, 0},
		{"8@-16(%rbp)", "*(%rbp-0x10)", 8, 0},
		{"8@8+8(%rbp)", "*(%rbp+0x10)", 8, 0},
		{"4@(%rax,%rbx)", "*(%rbx+%rax)", 4, 0},
		{"4@12(%rax,%rbx,4)", "*(%rbx<<2+%rax+0xc)", 4, 0},
		{"4@counter(%rip)", "*(&0x2010)", 4, 0},
		{"4@4+counter(%rip)", "*(&0x2014)", 4, 0},
		{"4@counter+4(%rip)", "*(&0x2014)", 4, 0},
		{"4@counter-4", "*(&0x200c)", 4, 0},
		{"8@$counter", "&0x2010", 8, 0},
		{"4@counter(,%rbx,4)", "*((%rbx<<2)+(&0x2010))", 4, 0},
		{"8@0x10", "*(0x10)", 8, 0},
		{"%eax", "%rax", 4, 0}, /* before sizes were written */
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct one o = with_args(known[i].args);
		char text[256];
		assert_int_equal(o.site->n_args, 1);
		const struct cairn_usdt_arg *arg = &o.site->args[0];
		cairn_location_text(&arg->loc, NULL, NULL, text, sizeof(text));
		assert_string_equal(text, known[i].loc);
		assert_string_equal(arg->text, known[i].args);
		assert_int_equal(arg->size, known[i].size);
		assert_int_equal(arg->is_signed, known[i].is_signed);
		close_one(&o);
	}
}

static void an_operand_that_no_probe_can_read_is_unavailable_with_the_reason(void **state)
{
	static const struct {
		const char *args;
		enum cairn_unavailable why;
	} known[] = {
		{"8f@%xmm0", CAIRN_UNAVAIL_VECTOR_REGISTER},
		{"8@%fs:-8", CAIRN_UNAVAIL_THREAD_LOCAL},
		{"8@%gs:8", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@nowhere(%rip)", CAIRN_UNAVAIL_NO_SYMBOL},
		{"8@twice(%rip)", CAIRN_UNAVAIL_AMBIGUOUS},
		{"8@%eax", CAIRN_UNAVAIL_UNSUPPORTED}, /* the upper half is not known */
		{"16@(%rax)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"0@(%rax)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@16(%rip)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@(%eax)", CAIRN_UNAVAIL_UNSUPPORTED}, /* an address of 32 bits */
		{"8@(%rax,%rbx,3)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@(%rax", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@(%rax))", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@%st(1)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@$", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@-counter", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@counter+counter", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@0x", CAIRN_UNAVAIL_UNSUPPORTED},
		{"8@99999999999999999999(%rax)", CAIRN_UNAVAIL_UNSUPPORTED},
		{"-4@DWORD PTR [rbp-4]", CAIRN_UNAVAIL_UNSUPPORTED}, /* Intel's syntax */
		{"(%rax)", CAIRN_UNAVAIL_UNSUPPORTED}, /* no size, and no register's */
	};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		struct one o = with_args(known[i].args);
		assert_int_equal(o.site->n_args, 1);
		assert_int_equal(o.site->args[0].loc.why, known[i].why);
		close_one(&o);
	}
}

static void arguments_are_told_apart_also_where_operands_have_blanks(void **state)
{
	struct one o = with_args("  -4@%eax 8@DWORD PTR [rbp - 4]  1@$7 ");
	assert_int_equal(o.site->n_args, 3);
	assert_string_equal(o.site->args[1].text, "8@DWORD PTR [rbp - 4]");
	assert_string_equal(o.site->args[2].text, "1@$7");
	close_one(&o);
	o = with_args("");
	assert_int_equal(o.site->n_args, 0);
	close_one(&o);
}

static void addresses_move_with_the_base_section(void **state)
{
	struct usdt_notes notes = {.n = 0};
	const struct cairn_usdt_site *s;
	struct cairn_usdt *usdt;
	usdt_note(&notes, USDT_TEXT - 0x800, USDT_DATA - 0x800, "p", "n", "8@%rax");
	struct program p = with_notes(notes.bytes, notes.n, USDT_BASE + 0x800);
	assert_int_equal(cairn_usdt_open(p.bin, &usdt, NULL), 0);
	assert_int_equal(cairn_usdt_sites(usdt, &s), 1);
	assert_int_equal(s->at.v, USDT_TEXT);
	assert_int_equal(s->semaphore.v, USDT_DATA);
	assert_true(s->has_off && s->has_semaphore_off);
	assert_string_equal(s->symbol, "serve");
	cairn_usdt_close(usdt);
	close_program(&p);
}

static void equal_notes_are_one_site_and_others_are_sorted(void **state)
{
	static const char *const names[] = {"a", "b", "b"};
	struct usdt_notes notes = {.n = 0};
	const struct cairn_usdt_site *s;
	struct cairn_usdt *usdt;
	for (int i = 0; i < 2; i++)
		usdt_note(&notes, USDT_TEXT + 9, 0, "p", "b", "8@%rax");
	usdt_note(&notes, USDT_TEXT + 8, 0, "p", "b", "8@%rax");
	usdt_note(&notes, USDT_TEXT + 9, 0, "p", "a", "8@%rax");
	struct program p = with_notes(notes.bytes, notes.n, 0);
	assert_int_equal(cairn_usdt_open(p.bin, &usdt, NULL), 0);
	assert_int_equal(cairn_usdt_sites(usdt, &s), 3);
	for (int i = 0; i < 3; i++)
		assert_string_equal(s[i].name, names[i]);
	assert_true(s[1].at.v < s[2].at.v);
	cairn_usdt_close(usdt);
	close_program(&p);
}

/* ---- as functions ---- */

static void sites_that_differ_have_arguments_of_one_type(void **state)
{
	struct usdt_notes notes = {.n = 0};
	struct usdt_functions found;
	struct cairn_usdt *usdt;
	struct arena arena;
	char text[256];
	usdt_note(&notes, USDT_TEXT, USDT_DATA, "p", "n", "-4@(%rax) 8@%rdi 8f@(%rsp)");
	usdt_note(&notes, USDT_TEXT + 1, USDT_DATA, "p", "n", "1@%bl 8@%rsi");
	usdt_note(&notes, USDT_TEXT + 1, 0, "p", "other", "");
	struct program p = with_notes(notes.bytes, notes.n, 0);
	assert_int_equal(cairn_usdt_open(p.bin, &usdt, NULL), 0);
	arena_init(&arena);
	assert_int_equal(usdt_functions_find(usdt, "p", "n*", &arena, &found, NULL), 0);
	assert_int_equal(found.n, 1);
	const struct cairn_function *f = &found.p[0].function;
	assert_int_equal(f->n_params, 3);
	assert_int_equal(f->n_sites, 2);
	struct cairn_foff semaphore;
	assert_true(cairn_binary_foff(p.bin, (struct cairn_vaddr){USDT_DATA}, &semaphore));
	assert_int_equal(found.p[0].semaphores[0], semaphore.v);
	const struct cairn_types *types = usdt_types(usdt);
	static const char *const names[] = {"int64_t", "uint64_t", "double"};
	for (int i = 0; i < 3; i++) {
		cairn_types_name(types, f->params[i].type, text, sizeof(text));
		assert_string_equal(text, names[i]);
	}
	const struct cairn_piece *wide = f->sites[0].args[0].loc.pieces;
	assert_int_equal(wide->kind, CAIRN_PIECE_VALUE);
	assert_int_equal(wide->steps[wide->n_steps - 1].op, CAIRN_LOC_SEXT);
	wide = f->sites[1].args[0].loc.pieces;
	assert_int_equal(wide->steps[wide->n_steps - 1].op, CAIRN_LOC_ZEXT);
	assert_int_equal(wide->steps[wide->n_steps - 1].size, 1);
	assert_int_equal(f->sites[0].args[1].loc.pieces->n_steps, 1);
	assert_int_equal(f->sites[1].args[2].loc.why, CAIRN_UNAVAIL_NO_DESCRIPTION);
	arena_fini(&arena);
	cairn_usdt_close(usdt);
	close_program(&p);
}

static void a_semaphore_outside_of_the_file_is_told(void **state)
{
	struct usdt_notes notes = {.n = 0};
	struct usdt_functions found;
	struct cairn_usdt *usdt;
	struct arena arena;
	usdt_note(&notes, USDT_TEXT, 0x999999, "p", "n", "");
	struct program p = with_notes(notes.bytes, notes.n, 0);
	assert_int_equal(cairn_usdt_open(p.bin, &usdt, NULL), 0);
	arena_init(&arena);
	assert_int_equal(usdt_functions_find(usdt, "p", "n", &arena, &found, NULL), 0);
	assert_true(found.p[0].semaphores[0] == USDT_SEMAPHORE_NOWHERE);
	arena_fini(&arena);
	cairn_usdt_close(usdt);
	close_program(&p);
}

/* ---- damage ---- */

static void some_notes(struct usdt_notes *notes)
{
	usdt_note(notes, USDT_TEXT, USDT_DATA, "provider", "first", "-4@%eax 8@counter(%rip)");
	usdt_note(notes, USDT_TEXT + 1, 0, "provider", "second", "");
}

/* A cut between two notes leaves a whole table; every other cut is damage. */
static void notes_that_are_cut_are_damaged_at_every_byte(void **state)
{
	struct usdt_notes notes = {.n = 0}, first = {.n = 0};
	usdt_note(&first, USDT_TEXT, USDT_DATA, "provider", "first", "-4@%eax 8@counter(%rip)");
	some_notes(&notes);
	for (size_t n = 0; n < notes.n; n++) {
		uint8_t *bytes = malloc(n + 1);
		struct cairn_usdt *usdt = NULL;
		struct cairn_err err = {0};
		memcpy(bytes, notes.bytes, n);
		struct program p = with_notes(bytes, n, USDT_BASE);
		int rc = cairn_usdt_open(p.bin, &usdt, &err);
		/* The padding after the last string may be missing. */
		bool is_whole = n == 0 || (n <= first.n && n + 3 >= first.n) || n + 3 >= notes.n;
		if (is_whole && rc == 0)
			cairn_usdt_close(usdt);
		else
			assert_int_equal(rc, -EBADMSG);
		assert_true(is_whole || strstr(err.msg, ".note.stapsdt"));
		close_program(&p);
		free(bytes);
	}
}

static void a_text_beyond_the_limit_is_refused(void **state)
{
	struct usdt_notes notes = {.n = 0};
	char text[20000 - 4000 + 400];
	struct cairn_usdt *usdt;
	struct cairn_err err = {0};
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	uint8_t bytes[20000];
	usdt_note(&notes, USDT_TEXT, 0, "p", "n", "");
	/* The description is replaced by a longer one. */
	uint32_t header[3] = {8, 24 + 4 + sizeof(text), 3};
	memcpy(bytes, header, sizeof(header));
	memcpy(bytes + 12, notes.bytes + 12, 8 + 24 + 4);
	memcpy(bytes + 48, text, sizeof(text));
	struct program p = with_notes(bytes, 48 + sizeof(text), 0);
	assert_int_equal(cairn_usdt_open(p.bin, &usdt, &err), -ERANGE);
	close_program(&p);
}

static void without_memory_there_are_no_probes(void **state)
{
	struct usdt_notes notes = {.n = 0};
	bool failed = true;
	some_notes(&notes);
	for (unsigned int n = 1; failed; n++) {
		struct program p = with_notes(notes.bytes, notes.n, USDT_BASE);
		struct usdt_functions found;
		struct cairn_usdt *usdt = NULL;
		struct arena arena;
		arena_init(&arena);
		alloc_fail_at(n);
		int rc = cairn_usdt_open(p.bin, &usdt, NULL);
		if (rc == 0)
			rc = usdt_functions_find(usdt, "*", "*", &arena, &found, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		cairn_usdt_close(usdt);
		arena_fini(&arena);
		close_program(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_operand_becomes_the_location_that_it_means),
		cmocka_unit_test(an_operand_that_no_probe_can_read_is_unavailable_with_the_reason),
		cmocka_unit_test(arguments_are_told_apart_also_where_operands_have_blanks),
		cmocka_unit_test(addresses_move_with_the_base_section),
		cmocka_unit_test(equal_notes_are_one_site_and_others_are_sorted),
		cmocka_unit_test(sites_that_differ_have_arguments_of_one_type),
		cmocka_unit_test(a_semaphore_outside_of_the_file_is_told),
		cmocka_unit_test(notes_that_are_cut_are_damaged_at_every_byte),
		cmocka_unit_test(a_text_beyond_the_limit_is_refused),
		cmocka_unit_test(without_memory_there_are_no_probes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
