/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom a call leads to: through tail calls, stubs and slots; and each doubt, which is decided for
 * the callee.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "elf_builder.h"
#include "frame_builder.h"
#include "unwind/called.h"

/* Link-time addresses; the file is loaded at BIAS. */
enum {
	TEXT = 0x1000,
	TEXT_SIZE = 0x2000,
	LARGE = 0x100000,
	LARGE_SIZE = 0x100100,
	PLT = 0x4000,
	GOT = 0x5000,
	DATA = 0x6000
};
enum { SMALL_SIZE = 0x100, FRAMES = 0x7000 };
enum { SLOT = 0x20, N_FUNCTIONS = 48 };
#define BIAS UINT64_C(0x7f0000000000)
#define JIT  UINT64_C(0x7e0000000000)

/*
 * Functions A, B, C and so on have SLOT bytes each, a symbol and an FDE; what is at CALLER has
 * neither.
 */
enum { A, B, C };
enum {
	CALLER = TEXT + TEXT_SIZE - 0x100,
	NAMELESS = TEXT + N_FUNCTIONS * SLOT,
	BARE = NAMELESS + SLOT
};

enum part { IN_TEXT, IN_PLT, IN_GOT, IN_DATA, IN_LARGE, N_PARTS };

struct world {
	uint8_t text[TEXT_SIZE], plt[SMALL_SIZE], got[SMALL_SIZE], data[SMALL_SIZE];
	uint8_t *large;
	bool has_16[N_FUNCTIONS]; /* functions in which the CFA is rsp + 16 */
	bool has_no_row[N_FUNCTIONS];
	uint64_t unreadable; /* an address whose function cannot be read */
	uint8_t *file;
	size_t file_size;
	uint64_t offsets[N_PARTS];
	struct called_known known[CALLED_KNOWN];
	struct code_memory memory;
	struct code_space *space;
	struct called c;
};

static uint64_t function(unsigned int i)
{
	return TEXT + (uint64_t)i * SLOT;
}

static uint8_t *bytes_at(struct world *w, uint64_t at, size_t n)
{
	const struct {
		uint64_t at, size;
		uint8_t *p;
	} parts[] = {{TEXT, TEXT_SIZE, w->text},
		     {PLT, SMALL_SIZE, w->plt},
		     {GOT, SMALL_SIZE, w->got},
		     {DATA, SMALL_SIZE, w->data},
		     {LARGE, LARGE_SIZE, w->large}};
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++)
		if (parts[i].p && at >= parts[i].at && at + n <= parts[i].at + parts[i].size)
			return parts[i].p + (at - parts[i].at);
	return NULL;
}

static size_t read_world(void *ctx, uint64_t at, void *ret, size_t n)
{
	struct world *w = ctx;
	const uint8_t *p = at < BIAS ? NULL : bytes_at(w, at - BIAS, n);
	if (!p || (w->unreadable && at - BIAS == w->unreadable))
		return 0;
	memcpy(ret, p, n);
	return n;
}

static void put(struct world *w, uint64_t at, const void *bytes, size_t n)
{
	memcpy(bytes_at(w, at, n), bytes, n);
}

#define PUT(w, at, bytes) put(w, at, bytes, sizeof(bytes) - 1)

/* @opcode, and the distance from what is after it to @target. */
static void put_rel32(struct world *w, uint64_t at, const char *opcode, uint64_t target)
{
	size_t n = strlen(opcode);
	int32_t distance = (int32_t)(target - (at + n + sizeof(distance)));
	put(w, at, opcode, n);
	put(w, at + n, &distance, sizeof(distance));
}

static void put_slot(struct world *w, uint64_t at, uint64_t target)
{
	uint64_t v = BIAS + target;
	put(w, at, &v, sizeof(v));
}

/* All functions return; a call of A is at CALLER. */
static struct world *make(void)
{
	struct world *w = calloc(1, sizeof(*w));
	assert_non_null(w);
	memset(w->text, 0x90, sizeof(w->text));
	for (unsigned int i = 0; i < N_FUNCTIONS; i++)
		w->text[i * SLOT + SLOT - 1] = 0xc3;
	w->text[NAMELESS + SLOT - 1 - TEXT] = w->text[BARE - TEXT] = 0xc3;
	put_rel32(w, CALLER, "\xe8", function(A));
	return w;
}

static void add_frames(struct world *w, struct elf_builder *b)
{
	static const uint8_t cfa_16[] = {0x0e, 16};
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	for (unsigned int i = 0; i < N_FUNCTIONS; i++)
		if (!w->has_no_row[i])
			frames_fde_eh(&f, FRAMES, cie, function(i), SLOT, cfa_16,
				      w->has_16[i] ? sizeof(cfa_16) : 0);
	frames_fde_eh(&f, FRAMES, cie, NAMELESS, SLOT, NULL, 0);
	frames_u32(&f, 0);
	eb_load(b, eb_section(b, (struct eb_section){.name = ".eh_frame",
						     .flags = SHF_ALLOC,
						     .addr = FRAMES,
						     .data = f.bytes,
						     .size = f.n}));
	frames_free(&f);
}

static void build_file(struct world *w)
{
	struct elf_builder *b = eb_new(ET_DYN);
	const uint64_t code = SHF_ALLOC | SHF_EXECINSTR, data = SHF_ALLOC | SHF_WRITE;
	uint32_t index[N_PARTS], n = w->large ? N_PARTS : IN_LARGE;
	/* clang-format off */
	const struct eb_section parts[N_PARTS] = {
		{.name = ".text", .flags = code, .addr = TEXT, EB_BYTES(w->text)},
		{.name = ".plt.sec", .flags = code, .addr = PLT, EB_BYTES(w->plt)},
		{.name = ".got.plt", .flags = data, .addr = GOT, EB_BYTES(w->got)},
		{.name = ".data", .flags = data, .addr = DATA, EB_BYTES(w->data)},
		{.name = ".text.large", .flags = code, .addr = LARGE, .data = w->large, .size = LARGE_SIZE},
	};
	/* clang-format on */
	for (uint32_t i = 0; i < n; i++) {
		index[i] = eb_section(b, parts[i]);
		eb_load(b, index[i]);
	}
	add_frames(w, b);
	for (unsigned int i = 0; i < N_FUNCTIONS; i++) {
		char name[16];
		snprintf(name, sizeof(name), "f%u", i);
		eb_symbol(b, (struct eb_symbol){name, index[IN_TEXT], function(i), SLOT, STT_FUNC,
						STB_GLOBAL});
	}
	if (w->large)
		eb_symbol(b, (struct eb_symbol){"large", index[IN_LARGE], LARGE, LARGE_SIZE,
						STT_FUNC, STB_GLOBAL});
	const uint8_t *bytes = eb_finish(b, &w->file_size);
	w->file = malloc(w->file_size);
	assert_non_null(w->file);
	memcpy(w->file, bytes, w->file_size);
	for (uint32_t i = 0; i < n; i++)
		w->offsets[i] = eb_header(b, index[i])->sh_offset;
	eb_free(b);
}

static int open_file(void *ctx, const struct code_mapping *m, struct cairn_binary **ret,
		     uint8_t **ret_bytes, struct cairn_err *err)
{
	const struct world *w = ctx;
	int rc = binary_open_mem(w->file, w->file_size, m->path, ret, err);
	return rc == -ENOMEM ? rc : 0;
}

static void open_space(struct world *w)
{
	static const struct {
		uint64_t at, size;
		bool is_code;
	} parts[N_PARTS] = {{TEXT, TEXT_SIZE, true},
			    {PLT, SMALL_SIZE, true},
			    {GOT, SMALL_SIZE, false},
			    {DATA, SMALL_SIZE, false},
			    {LARGE, LARGE_SIZE, true}};
	struct code_maps maps = {0};
	struct cairn_err err = {0};
	const struct code_source source = {open_file, w, 1};
	struct code_mapping m = {.lo = JIT, .hi = JIT + 0x1000, .is_executable = true, .path = ""};
	assert_true(VEC_ADD(&maps.p, m));
	for (size_t i = 0; i < (w->large ? N_PARTS : IN_LARGE); i++) {
		m = (struct code_mapping){.lo = BIAS + parts[i].at,
					  .hi = BIAS + parts[i].at + parts[i].size,
					  .off = w->offsets[i],
					  .ino = 1,
					  .is_readable = true,
					  .is_executable = parts[i].is_code,
					  .path = "/a.so"};
		assert_true(VEC_ADD(&maps.p, m));
		/* Addresses ascend but for LARGE, which is last. */
	}
	assert_int_equal(code_space_new(&maps, &source, &w->space, &err), 0);
	memset(w->known, 0, sizeof(w->known));
	w->memory = (struct code_memory){read_world, w};
	w->c = (struct called){
		.machine = EM_X86_64, .space = w->space, .code = &w->memory, .known = w->known};
}

static void end(struct world *w)
{
	code_space_free(w->space);
	free(w->file);
	free(w->large);
	free(w);
}

static int ask(struct world *w, uint64_t callee, uint64_t ret_addr, uint64_t *ret_target)
{
	struct cairn_err err = {0};
	return called_is_other(&w->c, callee, ret_addr, ret_target, &err);
}

/* Whether the call of 5 bytes at CALLER may have led to @callee. */
static void assert_may(struct world *w, uint64_t callee)
{
	uint64_t target;
	assert_int_equal(ask(w, BIAS + callee, BIAS + CALLER + 5, &target), 0);
}

static void assert_not(struct world *w, uint64_t callee, uint64_t want)
{
	uint64_t target = 0;
	assert_int_equal(ask(w, BIAS + callee, BIAS + CALLER + 5, &target), 1);
	assert_int_equal(target, BIAS + want);
}

static void ready(struct world *w)
{
	build_file(w);
	open_space(w);
}

static void a_call_leads_to_its_target_and_nowhere_else(void **state)
{
	struct world *w = make();
	ready(w);
	assert_may(w, function(A));
	assert_may(w, function(A) + SLOT - 1);
	assert_not(w, function(B), function(A));
	assert_not(w, CALLER, function(A));
	/* The answers that were kept are the same. */
	assert_may(w, function(A));
	assert_not(w, function(B), function(A));
	end(w);
}

static void tail_calls_are_followed(void **state)
{
	struct world *w = make();
	put_rel32(w, function(A) + 3, "\x0f\x84", function(B)); /* je */
	put_rel32(w, function(B), "\xe9", function(C) + 4);
	put_rel32(w, function(C) + 8, "\xe9", function(A)); /* and so on for ever */
	ready(w);
	assert_may(w, function(A));
	assert_may(w, function(B));
	assert_may(w, function(C));
	assert_not(w, function(C + 1), function(A));
	end(w);
}

static void what_a_function_calls_is_not_what_was_called(void **state)
{
	struct world *w = make();
	put_rel32(w, function(A), "\xe8", function(B));
	PUT(w, function(A) + 8, "\xff\xd0"); /* call *%rax */
	ready(w);
	assert_not(w, function(B), function(A));
	end(w);
}

static void a_jump_within_the_function_stays_in_it(void **state)
{
	struct world *w = make();
	PUT(w, function(A), "\xeb\x04");
	PUT(w, function(A) + 8, "\x75\xf6");
	ready(w);
	assert_not(w, function(B), function(A));
	end(w);
}

static void a_function_without_an_end_goes_on_with_the_next(void **state)
{
	struct world *w = make();
	PUT(w, function(A) + SLOT - 1, "\x90");
	ready(w);
	assert_may(w, function(B));
	assert_not(w, function(C), function(A));
	end(w);
}

static void a_stub_leads_to_what_its_slot_holds(void **state)
{
	static const char *const begins[] = {"\xff\x25", "\xf3\x0f\x1e\xfa\xff\x25", "\xf2\xff\x25",
					     "\xf3\x0f\x1e\xfa\xf2\xff\x25"};
	for (size_t i = 0; i < sizeof(begins) / sizeof(*begins); i++) {
		struct world *w = make();
		put_rel32(w, CALLER, "\xe8", PLT + 0x10);
		put_rel32(w, PLT + 0x10, begins[i], GOT + 0x18);
		put_slot(w, GOT + 0x18, function(B));
		ready(w);
		assert_may(w, function(B));
		assert_not(w, function(A), PLT + 0x10);
		end(w);
	}
}

static void a_tail_call_through_a_stub_is_followed(void **state)
{
	struct world *w = make();
	put_rel32(w, function(A), "\xe9", PLT);
	put_rel32(w, PLT, "\xff\x25", GOT);
	put_slot(w, GOT, function(C));
	ready(w);
	assert_may(w, function(C));
	assert_not(w, function(B), function(A));
	end(w);
}

static void a_call_through_a_slot_of_the_got_is_one_of_its_target(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER - 1, "\xff\x15", GOT + 8);
	put_slot(w, GOT + 8, function(B));
	ready(w);
	assert_may(w, function(B));
	assert_not(w, function(A), function(B));
	end(w);
}

/* Anybody may write there at any time. */
static void a_slot_that_is_not_the_loaders_tells_nothing(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER - 1, "\xff\x15", DATA);
	put_slot(w, DATA, function(A));
	ready(w);
	assert_may(w, function(B));
	end(w);

	w = make();
	put_rel32(w, CALLER, "\xe8", PLT);
	put_rel32(w, PLT, "\xff\x25", DATA);
	put_slot(w, DATA, function(A));
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void a_stub_of_another_form_or_to_another_stub_tells_nothing(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER, "\xe8", PLT);
	PUT(w, PLT, "\x68\x00\x00\x00\x00\xc3"); /* push $0; ret */
	ready(w);
	assert_may(w, function(B));
	end(w);

	w = make();
	put_rel32(w, CALLER, "\xe8", PLT);
	put_rel32(w, PLT, "\xff\x25", GOT);
	put_slot(w, GOT, PLT + 0x10);
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void code_that_no_file_has_may_do_anything(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER - 1, "\xff\x15", GOT);
	uint64_t jit = JIT + 0x40, target;
	put(w, GOT, &jit, sizeof(jit));
	put_rel32(w, function(B), "\xe9", function(C)); /* becomes one into no mapping */
	PUT(w, function(B) + 1, "\x00\x00\x00\x70");
	ready(w);
	assert_may(w, function(A));
	put_slot(w, GOT, function(B));
	assert_may(w, function(A));
	/*
	 * A described function that does not leave itself did not lead to made code; where that is
	 * does not matter.
	 */
	put_slot(w, GOT, function(A));
	assert_int_equal(ask(w, JIT + 0x40, BIAS + CALLER + 5, &target), 1);
	assert_int_equal(ask(w, JIT + 0x80, BIAS + CALLER + 5, &target), 1);
	end(w);
}

static void without_a_symbol_the_fde_says_what_the_function_is(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER, "\xe8", NAMELESS);
	ready(w);
	assert_may(w, NAMELESS + SLOT - 1);
	assert_not(w, function(A), NAMELESS);
	end(w);
}

static void without_either_it_may_lead_anywhere(void **state)
{
	struct world *w = make();
	put_rel32(w, CALLER, "\xe8", BARE);
	ready(w);
	assert_may(w, function(A));
	end(w);
}

static void bytes_that_do_not_decode_may_lead_anywhere(void **state)
{
	struct world *w = make();
	PUT(w, function(A) + 4, "\x06");
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void an_indirect_jump_may_be_a_tail_call_where_the_frame_is_as_at_the_entry(void **state)
{
	struct world *w = make();
	PUT(w, function(A) + 4, "\xff\xe0"); /* jmp *%rax */
	ready(w);
	assert_may(w, function(B));
	end(w);

	w = make();
	PUT(w, function(A) + 4, "\xff\xe0");
	w->has_16[A] = true;
	PUT(w, function(A) + SLOT - 1, "\xcc"); /* no return there */
	ready(w);
	assert_not(w, function(B), function(A));
	end(w);

	w = make();
	PUT(w, function(A) + 4, "\xff\xe0");
	w->has_no_row[A] = true;
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void a_switch_stays_in_its_function(void **state)
{
	struct world *w = make();
	/* movslq (%rdx,%rax,4),%rax; add %rdx,%rax; jmp *%rax */
	PUT(w, function(A) + 4, "\x48\x63\x04\x82\x48\x01\xd0\xff\xe0");
	ready(w);
	assert_not(w, function(B), function(A));
	end(w);
}

static void a_return_to_what_was_pushed_may_lead_anywhere(void **state)
{
	struct world *w = make();
	w->has_16[A] = true;
	ready(w);
	assert_may(w, function(B));
	end(w);

	/* Without a row nothing says so. */
	w = make();
	w->has_no_row[A] = true;
	ready(w);
	assert_not(w, function(B), function(A));
	end(w);
}

/* 32 functions are followed. */
static void a_chain_that_is_too_long_may_lead_anywhere(void **state)
{
	for (unsigned int n = 32; n <= 33; n++) {
		struct world *w = make();
		for (unsigned int i = 0; i + 1 < n; i++)
			put_rel32(w, function(i), "\xe9", function(i + 1));
		ready(w);
		if (n == 32)
			assert_not(w, function(40), function(A));
		else
			assert_may(w, function(40));
		end(w);
	}
}

static void a_function_that_is_too_long_may_lead_anywhere(void **state)
{
	struct world *w = make();
	w->large = malloc(LARGE_SIZE);
	assert_non_null(w->large);
	memset(w->large, 0xc3, LARGE_SIZE);
	put_rel32(w, CALLER, "\xe8", LARGE);
	ready(w);
	assert_may(w, function(A));
	end(w);
}

/* call *disp(%rax,%rbp,8), whose last 5 bytes are a call of A. */
static void bytes_that_are_another_call_as_well_tell_nothing(void **state)
{
	struct world *w = make();
	PUT(w, CALLER - 2, "\xff\x94");
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void no_call_before_the_address_tells_nothing(void **state)
{
	struct world *w = make();
	PUT(w, CALLER, "\xe9");
	ready(w);
	assert_may(w, function(B));
	end(w);
}

static void what_cannot_be_read_tells_nothing(void **state)
{
	struct world *w = make();
	ready(w);
	w->unreadable = CALLER + 5 - 7;
	assert_may(w, function(B));
	end(w);

	w = make();
	ready(w);
	w->unreadable = function(A);
	assert_may(w, function(B));
	end(w);
}

static void other_machines_are_not_judged(void **state)
{
	struct world *w = make();
	ready(w);
	w->c.machine = EM_AARCH64;
	assert_may(w, function(B));
	end(w);
}

/*
 * An answer that memory did not suffice for is none, and leaves nothing that changes the next one.
 */
static void assert_out_of_memory_is_told(struct world *w, uint64_t callee, int want)
{
	unsigned int n;
	for (n = 1;; n++) {
		struct cairn_err err = {0};
		uint64_t target;
		open_space(w);
		alloc_fail_at(n);
		int rc = called_is_other(&w->c, BIAS + callee, BIAS + CALLER + 5, &target, &err);
		bool failed = alloc_fail_end();
		if (failed) {
			if (rc != -ENOMEM && rc != want)
				fail_msg("allocation %u failed: %d instead of %d", n, rc, want);
			if (rc == -ENOMEM && !err.msg[0])
				fail_msg("allocation %u failed without a word", n);
		}
		rc = ask(w, callee + BIAS, BIAS + CALLER + 5, &target);
		if (rc != want)
			fail_msg("after allocation %u failed: %d instead of %d", n, rc, want);
		code_space_free(w->space);
		w->space = NULL;
		if (!failed)
			break;
	}
	assert_true(n > 5);
}

static void an_answer_without_memory_is_none(void **state)
{
	struct world *w = make();
	/* The row is asked for: without the rows of the file it may lead anywhere. */
	PUT(w, function(A) + 4, "\xff\xe0");
	w->has_16[A] = true;
	PUT(w, function(A) + SLOT - 1, "\xcc");
	build_file(w);
	assert_out_of_memory_is_told(w, function(B), 1);
	end(w);

	/* Without symbols A would be what its FDE says, and without that anything. */
	w = make();
	w->has_no_row[A] = true;
	build_file(w);
	assert_out_of_memory_is_told(w, function(B), 1);
	end(w);

	w = make();
	put_rel32(w, CALLER, "\xe8", NAMELESS);
	build_file(w);
	assert_out_of_memory_is_told(w, function(B), 1);
	end(w);

	w = make();
	put_rel32(w, CALLER, "\xe8", PLT);
	put_rel32(w, PLT, "\xff\x25", GOT);
	put_slot(w, GOT, function(B));
	put_rel32(w, function(B), "\xe9", function(C));
	build_file(w);
	assert_out_of_memory_is_told(w, function(C), 0);
	end(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_leads_to_its_target_and_nowhere_else),
		cmocka_unit_test(tail_calls_are_followed),
		cmocka_unit_test(what_a_function_calls_is_not_what_was_called),
		cmocka_unit_test(a_jump_within_the_function_stays_in_it),
		cmocka_unit_test(a_function_without_an_end_goes_on_with_the_next),
		cmocka_unit_test(a_stub_leads_to_what_its_slot_holds),
		cmocka_unit_test(a_tail_call_through_a_stub_is_followed),
		cmocka_unit_test(a_call_through_a_slot_of_the_got_is_one_of_its_target),
		cmocka_unit_test(a_slot_that_is_not_the_loaders_tells_nothing),
		cmocka_unit_test(a_stub_of_another_form_or_to_another_stub_tells_nothing),
		cmocka_unit_test(code_that_no_file_has_may_do_anything),
		cmocka_unit_test(without_a_symbol_the_fde_says_what_the_function_is),
		cmocka_unit_test(without_either_it_may_lead_anywhere),
		cmocka_unit_test(bytes_that_do_not_decode_may_lead_anywhere),
		cmocka_unit_test(
			an_indirect_jump_may_be_a_tail_call_where_the_frame_is_as_at_the_entry),
		cmocka_unit_test(a_switch_stays_in_its_function),
		cmocka_unit_test(a_return_to_what_was_pushed_may_lead_anywhere),
		cmocka_unit_test(a_chain_that_is_too_long_may_lead_anywhere),
		cmocka_unit_test(a_function_that_is_too_long_may_lead_anywhere),
		cmocka_unit_test(bytes_that_are_another_call_as_well_tell_nothing),
		cmocka_unit_test(no_call_before_the_address_tells_nothing),
		cmocka_unit_test(what_cannot_be_read_tells_nothing),
		cmocka_unit_test(other_machines_are_not_judged),
		cmocka_unit_test(an_answer_without_memory_is_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
