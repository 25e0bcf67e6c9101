/* SPDX-License-Identifier: BSD-2-Clause */
/* Which processes are followed, by reports that come in the order in which a kernel sends them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "walk/watched_impl.h"

static struct walk_files files;
static struct watched sampled;

static int begin(void **state)
{
	struct cairn_err err = {0};

	watched_init(&sampled, &files, -1, -1, -1, false);
	return files_init(&files, &err);
}

static int end(void **state)
{
	watched_fini(&sampled);
	files_fini(&files);
	return 0;
}

/* A process that has ended and is not waited for has no mappings, like a thread of the kernel. */
static pid_t without_mappings(void)
{
	pid_t pid = fork();
	siginfo_t info;

	if (pid == 0)
		_exit(0);
	assert_true(pid > 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

static const struct walk_known *last(void)
{
	return &sampled.list.p[sampled.list.n - 1];
}

static void a_child_has_the_mappings_of_its_parent(void **state)
{
	struct cairn_err err = {0};
	int child = 1 << 23;

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	size_t n = last()->mappings.n;
	assert_true(n > 1);
	assert_int_equal(watched_forked(&sampled, getpid(), child, 5, &err), 0);
	assert_int_equal(last()->pid, child);
	assert_int_equal(last()->mappings.n, n);
	assert_true(last()->has_mappings);
	assert_int_equal(watched_frame(&sampled, child, (uintptr_t)begin),
			 watched_frame(&sampled, getpid(), (uintptr_t)begin));
}

static void a_child_of_a_process_without_mappings_has_none(void **state)
{
	struct cairn_err err = {0};
	pid_t parent = without_mappings();

	assert_int_equal(watched_add(&sampled, parent, false, &err), 0);
	assert_int_equal(last()->mappings.n, 0);
	assert_int_equal(watched_forked(&sampled, parent, parent + 1, 5, &err), 0);
	assert_int_equal(last()->pid, parent + 1);
	assert_int_equal(last()->mappings.n, 0);
	assert_int_equal(watched_frame(&sampled, parent + 1, 0x400000), 0);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
}

static void the_child_of_one_that_is_not_followed_is_not(void **state)
{
	struct cairn_err err = {0};

	assert_int_equal(watched_forked(&sampled, 1 << 23, getpid(), 5, &err), 0);
	assert_int_equal(sampled.list.n, 0);
}

/* Code of this program as its mapping. */
static struct code_mapping own_mapping(uint64_t lo, uint64_t hi)
{
	return (struct code_mapping){.lo = lo, .hi = hi, .is_executable = true, .path = ""};
}

static void assert_mappings(const struct walk_known *k, size_t n, const uint64_t (*expected)[2])
{
	assert_int_equal(k->mappings.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(k->mappings.p[i].lo, expected[i][0]);
		assert_int_equal(k->mappings.p[i].hi, expected[i][1]);
	}
}

static void a_mapping_replaces_what_was_there(void **state)
{
	struct cairn_err err = {0};
	pid_t pid = without_mappings();
	static const uint64_t in[][2] = {{0x5000, 0x9000}, {0x1000, 0x3000}, {0xa000, 0xb000}};
	static const uint64_t hole[][2] = {{0x1000, 0x3000},
					   {0x5000, 0x6000},
					   {0x6000, 0x7000},
					   {0x7000, 0x9000},
					   {0xa000, 0xb000}};
	static const uint64_t over[][2] = {{0x1000, 0x2000}, {0x2000, 0xa800}, {0xa800, 0xb000}};
	struct code_mapping m;

	assert_int_equal(watched_add(&sampled, pid, false, &err), 0);
	for (size_t i = 0; i < 3; i++) {
		m = own_mapping(in[i][0], in[i][1]);
		assert_int_equal(watched_mapped(&sampled, pid, 1, &m, &err), 0);
	}
	m = own_mapping(0x6000, 0x7000);
	assert_int_equal(watched_mapped(&sampled, pid, 2, &m, &err), 0);
	assert_mappings(last(), 5, hole);
	m = own_mapping(0x2000, 0xa800);
	assert_int_equal(watched_mapped(&sampled, pid, 3, &m, &err), 0);
	assert_mappings(last(), 3, over);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* There is no map here, so the kernel has no room for any process. */
static void a_process_without_room_is_counted_and_the_run_goes_on(void **state)
{
	struct cairn_err err = {0};

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(sampled.n_left_out, 1);
	assert_int_equal(watched_forked(&sampled, getpid(), 1 << 23, 5, &err), 0);
	assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(sampled.n_left_out, 2);
	assert_int_equal(watched_look(&sampled, getpid(), 1000000000, &err), 0);
	assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(sampled.n_left_out, 2);
}

static void a_process_with_more_mappings_than_a_search_reaches_is_left_out(void **state)
{
	struct cairn_err err = {0};
	pid_t pid = without_mappings();
	struct walk_known *k;

	assert_int_equal(watched_add(&sampled, pid, false, &err), 0);
	k = &sampled.list.p[sampled.list.n - 1];
	for (size_t i = 0; i <= 1 << (WALK_SIZE_CLASSES - 1); i++)
		assert_true(VEC_ADD(&k->mappings,
				    ((struct walk_mapping){.lo = 2 * i, .hi = 2 * i + 1})));
	assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(sampled.n_left_out, 1);
	assert_int_equal(k->size_class, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_child_has_none_of_its_parents_regions(void **state)
{
	struct cairn_err err = {0};
	int child = 1 << 23;
	struct walk_known *k;

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	k = &sampled.list.p[0];
	size_t n = k->mappings.n;
	k->mappings.p[0].region = 7;
	k->registry_lo = 0x1000;
	k->registry_hi = 0x2000;
	k->registry_changes = 3;
	assert_int_equal(watched_forked(&sampled, getpid(), child, 5, &err), 0);
	assert_int_equal(last()->mappings.n, n - 1);
	assert_int_equal(last()->mappings.p[0].region, 0);
	/* Its own ones are read as soon as it can be. */
	assert_int_equal(last()->registry_lo, 0x1000);
	assert_true(last()->registry_changes != 3);
	assert_int_equal(sampled.with_registry.n, 1);
	assert_int_equal(sampled.with_registry.p[0], 1);
}

static void the_frames_of_a_process_that_has_ended_are_known_for_some_rounds(void **state)
{
	struct cairn_err err = {0};
	int child = 1 << 23;
	uint64_t at = (uintptr_t)begin, frame;

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	frame = watched_frame(&sampled, getpid(), at);
	assert_true(frame);
	assert_int_equal(watched_forked(&sampled, getpid(), child, 50, &err), 0);
	assert_int_equal(watched_exited(&sampled, child, 90, &err), 0);
	assert_int_equal(watched_frame(&sampled, child, at), 0);
	assert_int_equal(watched_frame_at(&sampled, child, at, 49), 0);
	assert_int_equal(watched_frame_at(&sampled, child, at, 50), frame);
	assert_int_equal(watched_frame_at(&sampled, child, at, 89), frame);
	assert_int_equal(watched_frame_at(&sampled, child, at, 90), 0);
	for (int i = 0; i < 8; i++)
		assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(watched_frame_at(&sampled, child, at, 89), 0);
	assert_int_equal(sampled.past.n, 0);
}

/* Days of short processes. */
static void memory_does_not_grow_with_the_processes_that_have_ended(void **state)
{
	struct cairn_err err = {0};

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	for (int i = 0; i < 50000; i++) {
		int child = (1 << 23) + i;
		assert_int_equal(watched_forked(&sampled, getpid(), child, 5, &err), 0);
		assert_int_equal(watched_exited(&sampled, child, 6, &err), 0);
		if (i % 10 == 0)
			assert_int_equal(watched_publish(&sampled, &err), 0);
	}
	assert_true(sampled.list.n < 8);
	assert_true(sampled.ids.n < 10000);
	assert_true(sampled.past.cap < 1000 && sampled.freed.cap < 1000);
	/* The others are still known. */
	assert_true(watched_frame(&sampled, getpid(), (uintptr_t)begin) != 0);
}

/* A sample of a process is taken over after the report of its end; no report comes after that. */
static void a_sample_does_not_bring_back_a_process_that_has_ended(void **state)
{
	struct cairn_err err = {0};
	pid_t unwaited = without_mappings();

	sampled.all = true;
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(watched_look(&sampled, unwaited, 1, &err), 0);
		assert_int_equal(watched_look(&sampled, (1 << 23) + i, 1, &err), 0);
	}
	for (size_t i = 0; i < sampled.list.n; i++)
		assert_true(sampled.list.p[i].has_ended);
	assert_true(sampled.list.n < 8);
	assert_int_equal(waitpid(unwaited, NULL, 0), unwaited);
}

static void after_lost_reports_one_that_was_not_waited_for_has_ended(void **state)
{
	struct cairn_err err = {0};
	pid_t unwaited = without_mappings();

	assert_int_equal(watched_add(&sampled, getpid(), true, &err), 0);
	assert_int_equal(watched_add(&sampled, unwaited, true, &err), 0);
	assert_int_equal(sampled.n_listed, 2);
	assert_int_equal(watched_recover(&sampled, 1, &err), 0);
	assert_int_equal(sampled.n_listed, 1);
	assert_true(last()->has_ended);
	assert_false(sampled.list.p[0].has_ended);
	assert_int_equal(waitpid(unwaited, NULL, 0), unwaited);
}

/* ---- code made at run time that is described in another way ---- */

enum { MADE_AT = 0x70000, MADE_SIZE = 0x2000, LOOKED = 500, REPORTED = 1000 };

static void map_memory(uint64_t time_ns, bool is_writable)
{
	struct code_mapping m = {
		.lo = MADE_AT,
		.hi = MADE_AT + MADE_SIZE,
		.is_executable = true,
		.is_readable = true,
		.is_writable = is_writable,
		.path = "",
	};
	struct cairn_err err = {0};

	assert_int_equal(watched_mapped(&sampled, getpid(), time_ns, &m, &err), 0);
}

/* This process, with memory of a JIT that was looked at. */
static struct walk_known *with_made(bool is_writable)
{
	struct cairn_err err = {0};
	struct walk_known *k;

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	k = watched_find(&sampled, getpid());
	map_memory(100, is_writable);
	k->made = calloc(1, sizeof(*k->made));
	assert_non_null(k->made);
	k->made->looked_ns = LOOKED;
	k->generation = 7;
	sampled.reported_ns = REPORTED;
	return k;
}

/* Whether a sample of then may have all these frames, by the rows of @generation. */
static bool is_sound(const uint64_t *frames, uint16_t n, uint64_t time_ns, uint32_t generation)
{
	const struct walk_taken taken = {.pid = getpid(),
					 .time_ns = time_ns,
					 .generation = generation,
					 .n = n,
					 .frames = frames};

	return watched_sound(&sampled, &taken) == n;
}

static bool is_sound_at(uint64_t time_ns, uint32_t generation)
{
	const uint64_t frames[] = {WALK_RAW | (MADE_AT + 0x10), WALK_RAW | 0x10};

	return is_sound(frames, 2, time_ns, generation);
}

static void code_that_cannot_be_written_was_what_it_was_until_it_is_mapped_anew(void **state)
{
	struct walk_known *k = with_made(false);

	map_memory(800, false);
	map_memory(900, false);
	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_true(is_sound_at(799, 7));
	assert_false(is_sound_at(800, 7));
	assert_true(is_sound_at(800, 8));
}

static void code_that_is_only_described_no_more_is_what_it_was(void **state)
{
	struct walk_known *k = with_made(false);

	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_true(is_sound_at(UINT32_MAX, 7));
	/* Walks may use it until the next generation is there, and the memory may be used anew. */
	k->generation = 8;
	map_memory(1200, false);
	assert_true(is_sound_at(1199, 7));
	assert_false(is_sound_at(1200, 7));
	assert_true(is_sound_at(1200, 8));
}

static void code_that_can_be_written_may_be_other_code_since_the_last_look(void **state)
{
	struct walk_known *k = with_made(true);

	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_true(is_sound_at(LOOKED - 1, 7));
	assert_false(is_sound_at(LOOKED, 7));
}

static void code_that_could_be_written_until_it_was_protected_too(void **state)
{
	struct walk_known *k = with_made(true);

	map_memory(800, false);
	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_false(is_sound_at(LOOKED, 7));
}

static void after_lost_reports_no_code_is_known_since_the_last_look(void **state)
{
	struct walk_known *k = with_made(false);
	struct cairn_err err = {0};

	assert_int_equal(watched_recover(&sampled, 600, &err), 0);
	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_false(is_sound_at(LOOKED, 7));
}

static void what_changed_its_description_is_remembered_for_some_rounds(void **state)
{
	struct walk_known *k = with_made(false);
	struct cairn_err err = {0};

	assert_int_equal(dated_stale(&sampled, k, MADE_AT, MADE_AT + 0x100), 0);
	assert_int_equal(sampled.undated.n, 1);
	for (int i = 0; i < 8; i++)
		assert_int_equal(watched_publish(&sampled, &err), 0);
	assert_int_equal(sampled.undated.n, 0);
}

static void a_report_of_what_was_read_meanwhile_replaces_nothing(void **state)
{
	struct cairn_err err = {0};
	struct code_maps maps;

	assert_int_equal(watched_add(&sampled, getpid(), false, &err), 0);
	struct walk_known *k = watched_find(&sampled, getpid());
	k->generation = 7;
	uint64_t frame = watched_frame(&sampled, getpid(), (uintptr_t)begin);
	assert_true(frame);
	assert_int_equal(code_maps_read(getpid(), &maps, &err), 0);
	struct code_mapping m = *code_maps_find(&maps, (uintptr_t)begin);
	assert_int_equal(watched_mapped(&sampled, getpid(), 100, &m, &err), 0);
	assert_int_equal(watched_frame(&sampled, getpid(), (uintptr_t)begin), frame);
	assert_true(is_sound(&frame, 1, 200, 7));

	/* The same file, and other bytes of it. */
	m.off += 0x1000;
	assert_int_equal(watched_mapped(&sampled, getpid(), 300, &m, &err), 0);
	assert_true(is_sound(&frame, 1, 299, 7));
	assert_false(is_sound(&frame, 1, 300, 7));
	assert_true(is_sound(&frame, 1, 300, 8));
	code_maps_fini(&maps);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_child_has_the_mappings_of_its_parent, begin, end),
		cmocka_unit_test_setup_teardown(a_child_of_a_process_without_mappings_has_none,
						begin, end),
		cmocka_unit_test_setup_teardown(the_child_of_one_that_is_not_followed_is_not, begin,
						end),
		cmocka_unit_test_setup_teardown(a_mapping_replaces_what_was_there, begin, end),
		cmocka_unit_test_setup_teardown(
			a_process_without_room_is_counted_and_the_run_goes_on, begin, end),
		cmocka_unit_test_setup_teardown(
			a_process_with_more_mappings_than_a_search_reaches_is_left_out, begin, end),
		cmocka_unit_test_setup_teardown(a_child_has_none_of_its_parents_regions, begin,
						end),
		cmocka_unit_test_setup_teardown(
			the_frames_of_a_process_that_has_ended_are_known_for_some_rounds, begin,
			end),
		cmocka_unit_test_setup_teardown(
			memory_does_not_grow_with_the_processes_that_have_ended, begin, end),
		cmocka_unit_test_setup_teardown(
			a_sample_does_not_bring_back_a_process_that_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(
			after_lost_reports_one_that_was_not_waited_for_has_ended, begin, end),
		cmocka_unit_test_setup_teardown(
			code_that_cannot_be_written_was_what_it_was_until_it_is_mapped_anew, begin,
			end),
		cmocka_unit_test_setup_teardown(code_that_is_only_described_no_more_is_what_it_was,
						begin, end),
		cmocka_unit_test_setup_teardown(
			code_that_can_be_written_may_be_other_code_since_the_last_look, begin, end),
		cmocka_unit_test_setup_teardown(
			code_that_could_be_written_until_it_was_protected_too, begin, end),
		cmocka_unit_test_setup_teardown(
			after_lost_reports_no_code_is_known_since_the_last_look, begin, end),
		cmocka_unit_test_setup_teardown(
			what_changed_its_description_is_remembered_for_some_rounds, begin, end),
		cmocka_unit_test_setup_teardown(
			a_report_of_what_was_read_meanwhile_replaces_nothing, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
