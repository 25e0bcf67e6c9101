/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code made at run time, written by the real library in this process or a child, and read from
 * outside.
 */
#include "runtime_fixture.h"

#include <stdlib.h>

#include <cairn/code.h>
#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "alloc_fail.h"

/* ---- a process ---- */

static struct cairn_jit *open_region(uint32_t flags)
{
	struct cairn_jit_opts opts = {sizeof(opts), "traces", flags};
	struct cairn_jit *jit;
	if (cairn_jit_open(region, REGION, &opts, &jit) != 0)
		abort();
	return jit;
}

static void publish(struct cairn_jit *jit, size_t off, uint32_t size, int32_t cfa, const char *name)
{
	struct cairn_jit_info info = {.size = sizeof(info), .name = name};
	struct cairn_jit_frame frame;
	cairn_jit_begin(&frame, region + off);
	cairn_jit_cfa(&frame, region + off + 1, CAIRN_JIT_SP, cfa);
	if (cairn_jit_publish(jit, &frame, region + off + size, &info) != 0)
		abort();
}

static void withdraw(struct cairn_jit *jit, size_t off, uint32_t size)
{
	cairn_jit_withdraw(jit, region + off, region + off + size);
}

static void remove_range(const void *lo, size_t n)
{
	struct code_unregister_info range = {(uintptr_t)lo, (uintptr_t)lo + n};
	if (codectl(CODE_UNREGISTER, &range, sizeof(range), 0))
		abort();
}

/* ---- claims ---- */

static struct cairn_jit *jit; /* of the child */

static void step_publish(char what)
{
	switch (what) {
	case 'o':
		jit = open_region(CAIRN_JIT_COPY_NAMES);
		break;
	case 'a':
		publish(jit, 1000, 100, 32, "first");
		break;
	case 'b':
		publish(jit, 2000, 100, 48, "second");
		break;
	case 'r': /* another function at the first one's place */
		withdraw(jit, 1000, 100);
		publish(jit, 1000, 100, 64, "third");
		break;
	case 'w':
		withdraw(jit, 1000, 100);
		break;
	case 'c':
		cairn_jit_close(jit);
		break;
	case 'f':
		jit = open_region(CAIRN_JIT_FRAME_POINTERS);
		break;
	case 'x': /* as memory is before code is in it, and then */
	case 'X':
		mprotect(region, REGION, PROT_READ | (what == 'x' ? PROT_WRITE : PROT_EXEC));
		break;
	}
}

static void a_function_is_found_with_its_rule_and_name(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].function, "first");
	assert_true(f.has_off && f.off == 50);
	assert_string_equal(f.range->owner, "traces");
	assert_true(f.range->source == CAIRN_CODE_JIT && f.range->is_trusted &&
		    f.range->generation);
	f = find(&r, region + 1000);
	assert_int_equal(cfa_of(&f), 8);
	close_reader(&r);
	end_child(&c);
}

/*
 * Rows are there for other code: to assume a frame pointer for this would be against what its owner
 * says.
 */
static void nothing_is_assumed_where_the_owner_describes_other_code(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "and not this"));
	tell(&c, 'c');
	tell(&c, 'f');
	close_reader(&r);
	r = look(c.pid);
	f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_FP);
	assert_null(f.why);
	close_reader(&r);
	end_child(&c);
}

static void memory_that_nobody_describes_is_assumed_to_keep_a_frame_pointer(void **state)
{
	struct child c = start_child(step_publish);
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 5000);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ASSUMED);
	assert_int_equal(cfa_of(&f), 16);
	assert_int_equal(f.range->source, CAIRN_CODE_ANONYMOUS);
	close_reader(&r);
	end_child(&c);
}

/* What was there at the mark is not taken for what is there when the tables are read. */
static void code_that_was_made_anew_since_the_mark_has_no_rule(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	tell(&c, 'r');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.n_functions, 0);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "since"));
	assert_false(code_runtime_is_steady(r.rt));
	/* At another mark it is there. */
	mark(&r, c.pid);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 64);
	assert_string_equal(f.functions[0].name, "third");
	assert_true(code_runtime_is_steady(r.rt));
	close_reader(&r);
	end_child(&c);
}

static void code_that_was_made_anew_since_the_settling_has_no_rule(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	tell(&c, 'r');
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_NONE);
	assert_non_null(strstr(f.why, "since"));
	assert_int_equal(f.n_functions, 0);
	close_reader(&r);
	end_child(&c);
}

/*
 * In one epoch an address is described once: what was read of it stays right for stacks of that
 * epoch.
 */
static void what_was_read_of_an_epoch_stays_known(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 32);
	uint64_t generation = f.range->generation;
	mark(&r, c.pid);
	tell(&c, 'r');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.range->generation, generation);
	close_reader(&r);
	end_child(&c);
}

/* As stacks are taken: what they lead to is read while nothing runs. */
static void what_was_caught_at_the_mark_outlives_its_code(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	/* Words of a stack, at any alignment: most are something else. */
	const uint64_t words[] = {0,
				  1,
				  UINT64_MAX,
				  (uintptr_t)region - 1,
				  (uintptr_t)region + 1050,
				  (uintptr_t)region + REGION + 1};
	uint8_t bytes[sizeof(words) + 1];
	memcpy(bytes + 1, words, sizeof(words));
	assert_int_equal(
		code_runtime_snapshot(r.rt, bytes + 1, sizeof(words) / sizeof(*words), NULL), 0);
	tell(&c, 'r');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ROWS);
	assert_int_equal(cfa_of(&f), 32);
	assert_int_equal(f.n_functions, 1);
	assert_string_equal(f.functions[0].name, "first");
	/* The next mark is another moment. */
	mark(&r, c.pid);
	assert_int_equal(code_runtime_snapshot(r.rt, words, sizeof(words) / sizeof(*words), NULL),
			 0);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	f = find(&r, region + 1050);
	assert_int_equal(cfa_of(&f), 64);
	assert_string_equal(f.functions[0].name, "third");
	close_reader(&r);
	end_child(&c);
}

/* Memory that was not code when the mappings were read, and is when the stacks are. */
static void mappings_that_are_older_than_the_code_are_noticed(void **state)
{
	struct child c = start_child(step_publish);
	const uint64_t word = (uintptr_t)region + 1050;
	tell(&c, 'x');
	struct reader r = open_reader(c.pid);
	assert_int_equal(code_space_refresh_pid(r.space, c.pid, NULL), 0);
	assert_int_equal(code_runtime_prepare(r.rt, r.space, NULL), 0);
	tell(&c, 'o');
	tell(&c, 'a');
	tell(&c, 'X');
	for (int i = 0; i < 2; i++) {
		mark(&r, c.pid);
		assert_false(code_runtime_is_ahead(r.rt));
		assert_int_equal(code_runtime_snapshot(r.rt, &word, 1, NULL), 0);
		assert_true(code_runtime_is_ahead(r.rt) == (i == 1));
		tell(&c, i ? 'X' : 'x');
	}
	close_reader(&r);
	end_child(&c);
}

/* A region that keeps its epoch is read once, and again when it has grown. */
static void a_region_that_grew_is_caught_with_what_is_new(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	const uint64_t words[] = {(uintptr_t)region + 1050, (uintptr_t)region + 2050};
	for (size_t i = 0; i < 3; i++) {
		mark(&r, c.pid);
		assert_int_equal(code_runtime_snapshot(r.rt, words, i < 2 ? 1 : 2, NULL), 0);
		if (i == 1)
			tell(&c, 'b');
		assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	}
	tell(&c, 'r');
	struct code_found f = find(&r, region + 2050);
	assert_int_equal(cfa_of(&f), 48);
	assert_string_equal(f.functions[0].name, "second");
	f = find(&r, region + 1050);
	assert_string_equal(f.functions[0].name, "first");
	close_reader(&r);
	end_child(&c);
}

static void tables_that_grow_are_read_again_when_they_are_asked(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	tell(&c, 'b');
	mark(&r, c.pid);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	f = find(&r, region + 2050);
	assert_int_equal(cfa_of(&f), 48);
	assert_string_equal(f.functions[0].name, "second");
	close_reader(&r);
	end_child(&c);
}

static void a_region_that_was_closed_is_shown_as_removed_to_who_asks(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	tell(&c, 'c');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 1050);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_ASSUMED);
	for (size_t i = 0; i < code_runtime_n_ranges(r.rt); i++)
		assert_int_not_equal(code_runtime_range(r.rt, i)->source, CAIRN_CODE_JIT);
	code_runtime_list_removed(r.rt);
	mark(&r, c.pid);
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	size_t n = 0;
	for (size_t i = 0; i < code_runtime_n_ranges(r.rt); i++) {
		const struct cairn_code_range *range = code_runtime_range(r.rt, i);
		if (range->source != CAIRN_CODE_JIT)
			continue;
		assert_true(range->is_removed && range->until_ns >= range->since_ns);
		assert_string_equal(range->owner, "traces");
		n++;
	}
	assert_true(n > 0);
	close_reader(&r);
	end_child(&c);
}

static void every_allocation_may_fail(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	add_elf(region, 4096, "x", NULL, 0);
	for (unsigned int n = 1;; n++) {
		struct reader r = open_reader(c.pid);
		struct code_found f;
		const uint64_t word = (uintptr_t)region + 1050;
		mark(&r, c.pid);
		alloc_fail_at(n);
		int rc = code_runtime_snapshot(r.rt, &word, 1, NULL);
		if (rc == 0)
			rc = code_runtime_resolve(r.rt, NULL);
		if (rc == 0)
			rc = code_runtime_find(r.rt, (uintptr_t)region + 1050, &f, NULL);
		bool failed = alloc_fail_end();
		close_reader(&r);
		if (!failed)
			break;
		assert_true(rc == -ENOMEM || rc == 0);
		assert_true(n < 10000);
	}
	remove_range(region, 4096);
	end_child(&c);
}

static void what_is_listed_may_fail_at_every_allocation(void **state)
{
	struct child c = start_child(step_publish);
	tell(&c, 'o');
	tell(&c, 'a');
	for (unsigned int n = 1;; n++) {
		struct cairn_code *code = NULL;
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_code_open_pid(c.pid, NULL, &code, &err);
		bool failed = alloc_fail_end();
		if (rc == 0)
			assert_true(cairn_code_n_ranges(code) > 0);
		else
			assert_true(rc == -ENOMEM && err.msg[0]);
		cairn_code_close(rc == 0 ? code : NULL);
		if (!failed)
			break;
		assert_true(n < 10000);
	}
	end_child(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_with_its_rule_and_name),
		cmocka_unit_test(nothing_is_assumed_where_the_owner_describes_other_code),
		cmocka_unit_test(memory_that_nobody_describes_is_assumed_to_keep_a_frame_pointer),
		cmocka_unit_test(code_that_was_made_anew_since_the_mark_has_no_rule),
		cmocka_unit_test(code_that_was_made_anew_since_the_settling_has_no_rule),
		cmocka_unit_test(what_was_read_of_an_epoch_stays_known),
		cmocka_unit_test(what_was_caught_at_the_mark_outlives_its_code),
		cmocka_unit_test(a_region_that_grew_is_caught_with_what_is_new),
		cmocka_unit_test(mappings_that_are_older_than_the_code_are_noticed),
		cmocka_unit_test(tables_that_grow_are_read_again_when_they_are_asked),
		cmocka_unit_test(a_region_that_was_closed_is_shown_as_removed_to_who_asks),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(what_is_listed_may_fail_at_every_allocation),
	};
	return cmocka_run_group_tests(tests, make_region, NULL);
}
