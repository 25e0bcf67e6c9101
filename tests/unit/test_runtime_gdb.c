/* SPDX-License-Identifier: BSD-2-Clause */
/* A process that registers code with GDB, and frees it while it is read. */
#include "runtime_fixture.h"

#include <stdlib.h>

#include "elf_builder.h"
#include "frame_builder.h"

enum { CODE = 64, EH_FRAME = 4096 }; /* in the region */

struct jit_entry {
	struct jit_entry *next, *previous;
	const void *symfile;
	uint64_t size;
};

/* As GDB's manual has it: readers find it by its name. */
extern struct jit_descriptor {
	uint32_t version, action;
	struct jit_entry *relevant, *first;
} __jit_debug_descriptor;
struct jit_descriptor __jit_debug_descriptor = {.version = 1};

static struct jit_entry entry;

/*
 * Code at the region's beginning, its .eh_frame loaded after it; 'r' registers, 'f' frees and uses
 * the memory for something else.
 */
static void register_code(void)
{
	static const uint8_t push_rbp[] = {0x41, 0x0e, 16};
	struct elf_builder *b = eb_new(ET_REL);
	struct frames eh = {0};
	uint64_t at = (uintptr_t)region;
	size_t n, cie = frames_cie_eh(&eh, "zR", "\x1b");
	frames_fde_eh(&eh, at + EH_FRAME, cie, at, CODE, push_rbp, sizeof(push_rbp));
	memcpy(region + EH_FRAME, eh.bytes, eh.n);
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .type = SHT_NOBITS,
							  .addr = at,
							  .size = CODE,
							  .flags = SHF_ALLOC | SHF_EXECINSTR});
	eb_section(b, (struct eb_section){.name = ".eh_frame",
					  .flags = SHF_ALLOC,
					  .addr = at + EH_FRAME,
					  .data = eh.bytes,
					  .size = eh.n});
	eb_symbol(b, (struct eb_symbol){"evalexpr_0_0", text, 0, CODE, STT_FUNC, STB_GLOBAL});
	entry.symfile = eb_finish(b, &n);
	entry.size = n;
	__jit_debug_descriptor.first = &entry;
}

static void free_code(void)
{
	__jit_debug_descriptor.first = NULL;
	memset((void *)(uintptr_t)entry.symfile, 0xff, entry.size);
	memset(region + EH_FRAME, 0xff, 128);
	entry = (struct jit_entry){0};
}

static void step(char what)
{
	if (what == 'r')
		register_code();
	else
		free_code();
}

static void assert_known(struct reader *r)
{
	struct code_found f = find(r, region + 30);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_EH_FRAME);
	assert_int_equal(cfa_of(&f), 16);
	assert_int_equal(f.n_functions, 1);
	assert_int_equal(f.named_by, CAIRN_CODE_GDB);
	assert_string_equal(f.functions[0].name, "evalexpr_0_0");
}

static void code_of_gdbs_list_is_named_and_unwound(void **state)
{
	struct child c = start_child(step);
	tell(&c, 'r');
	struct reader r = look(c.pid);
	assert_known(&r);
	close_reader(&r);
	end_child(&c);
}

static void what_a_stack_led_to_is_known_though_it_was_freed_since(void **state)
{
	struct child c = start_child(step);
	tell(&c, 'r');
	struct reader r = open_reader(c.pid);
	uint64_t words[] = {1, (uintptr_t)region + 31, 3};
	mark(&r, c.pid);
	assert_int_equal(code_runtime_snapshot(r.rt, words, 3, NULL), 0);
	tell(&c, 'f');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	assert_known(&r);
	/* And the next moment knows that it is gone. */
	mark(&r, c.pid);
	assert_int_equal(code_runtime_snapshot(r.rt, words, 3, NULL), 0);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	struct code_found f = find(&r, region + 30);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ASSUMED);
	assert_int_equal(f.n_functions, 0);
	close_reader(&r);
	end_child(&c);
}

static void what_no_stack_led_to_is_not_believed_when_it_was_freed(void **state)
{
	struct child c = start_child(step);
	tell(&c, 'r');
	struct reader r = open_reader(c.pid);
	uint64_t words[] = {1, (uintptr_t)&entry, (uintptr_t)region - 100};
	mark(&r, c.pid);
	assert_int_equal(code_runtime_snapshot(r.rt, words, 3, NULL), 0);
	tell(&c, 'f');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	assert_int_equal(find(&r, region + 30).n_functions, 0);
	close_reader(&r);
	end_child(&c);
}

static void what_was_caught_and_not_settled_is_freed(void **state)
{
	struct child c = start_child(step);
	tell(&c, 'r');
	struct reader r = open_reader(c.pid);
	uint64_t word = (uintptr_t)region + 31;
	for (int i = 0; i < 2; i++) {
		mark(&r, c.pid);
		assert_int_equal(code_runtime_snapshot(r.rt, &word, 1, NULL), 0);
	}
	close_reader(&r);
	end_child(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(code_of_gdbs_list_is_named_and_unwound),
		cmocka_unit_test(what_a_stack_led_to_is_known_though_it_was_freed_since),
		cmocka_unit_test(what_no_stack_led_to_is_not_believed_when_it_was_freed),
		cmocka_unit_test(what_was_caught_and_not_settled_is_freed),
	};
	return cmocka_run_group_tests(tests, make_region, NULL);
}
