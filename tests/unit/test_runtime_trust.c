/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a process says of its code, against what is mapped, against what else it says, and when it
 * makes no sense.
 */
#include "runtime_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

/* ---- verified against the mappings ---- */

static struct cairn_jit *jit; /* of the child */
static char other_name[64];   /* a symbolic link to this program */

static void step_lie(char what)
{
	static const uint8_t id[20] = {1, 2, 3};
	switch (what) {
	case 'm': /* a JIT where a file is mapped: this program's code */
		if (cairn_jit_open((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, NULL,
				   &jit))
			abort();
		break;
	case 'n':
		if (cairn_jit_open((void *)0x10000, 4096, NULL, &jit))
			abort();
		break;
	case 'p': /* another file's name */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, "/usr/bin/sudo",
			    NULL, 0))
			abort();
		break;
	case 'i':
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, "/proc/self/exe",
			    id, 20))
			abort();
		break;
	case 't': /* the truth, by another name */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 4096, other_name, NULL,
			    0))
			abort();
		break;
	case 'l': /* more than there is */
		if (add_elf((void *)((uintptr_t)step_lie & ~UINT64_C(4095)), 1 << 30, NULL, NULL,
			    0))
			abort();
		break;
	}
}

static void what_contradicts_the_mappings_is_shown_and_not_trusted(void **state)
{
	static const struct {
		char what;
		enum cairn_code_source source;
		const char *says;
	} lies[] = {
		{'m', CAIRN_CODE_JIT, "test_runtime_trust is mapped there"},
		{'n', CAIRN_CODE_JIT, "nothing is mapped there"},
		{'p', CAIRN_CODE_ELF, "test_runtime_trust is mapped there"},
		{'i', CAIRN_CODE_ELF, "build-id is not that"},
		{'l', CAIRN_CODE_ELF, "less code"},
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct child c = start_child(step_lie);
		tell(&c, lies[i].what);
		struct reader r = look(c.pid);
		const void *at = lies[i].what == 'n'
					 ? (void *)0x10000
					 : (void *)((uintptr_t)step_lie & ~UINT64_C(4095));
		const struct cairn_code_range *range = range_at(&r, at, lies[i].source, false);
		assert_non_null(range);
		assert_non_null(strstr(range->why, lies[i].says));
		assert_null(range_at(&r, at, lies[i].source, true));
		struct code_found f = find(&r, at);
		assert_null(f.range);
		close_reader(&r);
		end_child(&c);
	}
}

static void another_name_of_the_same_file_is_no_contradiction(void **state)
{
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	assert_true(n > 0);
	path[n] = 0;
	snprintf(other_name, sizeof(other_name), "/tmp/test_runtime_trust.%d", getpid());
	assert_return_code(symlink(path, other_name), errno);
	struct child c = start_child(step_lie);
	tell(&c, 't');
	struct reader r = look(c.pid);
	assert_non_null(range_at(&r, (void *)((uintptr_t)step_lie & ~UINT64_C(4095)),
				 CAIRN_CODE_ELF, true));
	unlink(other_name);
	close_reader(&r);
	end_child(&c);
}

/* ---- overlaps, which the library never makes but in a renewal ---- */

/* Entries as another writer could leave them: a registry of two regions that are both valid. */
static struct codectl_registry *forge(size_t n_entries, int share)
{
	size_t size = 4096 + n_entries * sizeof(struct codectl_entry) + 4096;
	int fd = memfd_create(CODECTL_REGISTRY_NAME, 0);
	if (fd < 0 || ftruncate(fd, (off_t)size))
		abort();
	struct codectl_registry *h = mmap(NULL, size, PROT_READ | PROT_WRITE, share, fd, 0);
	close(fd);
	*h = (struct codectl_registry){.magic = CODECTL_REGISTRY_MAGIC,
				       .version = CODECTL_REGISTRY_VERSION,
				       .header_size = sizeof(*h),
				       .self = (uintptr_t)h,
				       .size = size,
				       .entries = (uintptr_t)h + 4096,
				       .entry_stride = sizeof(struct codectl_entry),
				       .n_entries = (uint32_t)n_entries};
	return h;
}

static struct codectl_entry *entry_of(struct codectl_registry *h, size_t i)
{
	return (struct codectl_entry *)(uintptr_t)h->entries + i;
}

static void put_jit(struct codectl_registry *h, size_t i, uint64_t epoch, size_t lo, size_t hi,
		    uint32_t flags)
{
	*entry_of(h, i) =
		(struct codectl_entry){.epoch = epoch, .since_ns = 1, .option = CODE_REGISTER_JIT};
	entry_of(h, i)->info.jit = (struct code_jit_info){.text_start = (uintptr_t)region + lo,
							  .text_end = (uintptr_t)region + hi,
							  .extended = CODE_JIT_EXTENDED,
							  .flags = flags};
}

static void step_overlap(char what)
{
	struct codectl_registry *h;
	switch (what) {
	case 'g': /* generations: the newer one comes first */
		h = forge(2, MAP_PRIVATE);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
		put_jit(h, 1, 5, 0, 4096, CODE_JIT_FRAME_POINTER);
		break;
	case 'a': /* an assumption, and what is said within it, earlier */
		h = forge(2, MAP_PRIVATE);
		put_jit(h, 0, 1, 4096, 8192, CODE_JIT_FRAME_POINTER);
		put_jit(h, 1, 2, 0, 65536, CODE_JIT_FRAME_POINTER | CODE_JIT_ASSUMED);
		break;
	case 's':
		h = forge(1, MAP_SHARED);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
		break;
	case 'm': /* a million */
		h = forge(1000000, MAP_PRIVATE);
		for (size_t i = 0; i < 1000000; i++)
			put_jit(h, i, i + 1, i % REGION, i % REGION + 1, 0);
		break;
	}
}

static void of_registrations_that_overlap_the_higher_epoch_counts(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'g');
	struct reader r = look(c.pid);
	struct code_found f = find(&r, region + 100);
	assert_int_equal(f.unwind, CAIRN_CODE_UNWIND_FP);
	assert_int_equal(f.range->generation, 7);
	const struct cairn_code_range *older = range_at(&r, region + 100, CAIRN_CODE_JIT, false);
	assert_non_null(older);
	assert_int_equal(older->generation, 5);
	assert_non_null(strstr(older->why, "superseded"));
	close_reader(&r);
	end_child(&c);
}

static void what_is_said_counts_before_what_is_assumed(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'a');
	struct reader r = look(c.pid);
	assert_int_equal(find(&r, region + 4095).range->generation, 2);
	assert_int_equal(find(&r, region + 4095).unwind, CAIRN_CODE_UNWIND_ASSUMED);
	assert_int_equal(find(&r, region + 4096).range->generation, 1);
	assert_int_equal(find(&r, region + 8191).unwind, CAIRN_CODE_UNWIND_FP);
	assert_int_equal(find(&r, region + 8192).range->generation, 2);
	close_reader(&r);
	end_child(&c);
}

static void a_shared_registry_is_refused_with_words(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 's');
	struct reader r = look(c.pid);
	assert_true(has_note(&r, "shared mapping"));
	assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
	close_reader(&r);
	end_child(&c);
}

static void of_a_million_registrations_it_is_told_what_is_left_out(void **state)
{
	struct child c = start_child(step_overlap);
	tell(&c, 'm');
	struct reader r = look(c.pid);
	assert_true(has_note(&r, "1000000 entries; the first 65536 are read, 934464 are left out"));
	assert_int_equal(find(&r, region + 100).range->generation, 101);
	assert_int_equal(code_runtime_load_all(r.rt, NULL), 0);
	close_reader(&r);
	end_child(&c);
}

/* ---- hostile registries in a real process ---- */

static void step_damage(char what)
{
	struct codectl_registry *h = forge(4, MAP_PRIVATE);
	put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
	switch (what) {
	case 'v':
		h->version = 9;
		break;
	case 'n':
		h->n_entries = UINT32_MAX;
		break;
	case 'u': /* its entries' pages are not there any more */
		if (munmap((char *)h + 4096, 4096))
			abort();
		break;
	}
}

static void a_damaged_registry_is_told_in_words(void **state)
{
	static const struct {
		char what;
		const char *says;
	} cases[] = {{'v', "of version 9"}, {'n', "4294967295 entries"}, {'u', "in a mapping of"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct child c = start_child(step_damage);
		tell(&c, cases[i].what);
		struct reader r = look(c.pid);
		assert_true(has_note(&r, cases[i].says));
		assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
		close_reader(&r);
		end_child(&c);
	}
}

/* Between the mark, which looked at it, and the settling. */
static void step_go_away(char what)
{
	static struct codectl_registry *h;
	if (what == 'a') {
		h = forge(4, MAP_PRIVATE);
		put_jit(h, 0, 7, 0, 4096, CODE_JIT_FRAME_POINTER);
	} else {
		munmap(h, h->size);
	}
}

static void a_registry_that_goes_away_leaves_nothing_that_is_trusted(void **state)
{
	struct child c = start_child(step_go_away);
	tell(&c, 'a');
	struct reader r = open_reader(c.pid);
	mark(&r, c.pid);
	tell(&c, 'b');
	assert_int_equal(code_runtime_resolve(r.rt, NULL), 0);
	assert_null(range_at(&r, region, CAIRN_CODE_JIT, true));
	const struct cairn_code_range *range = range_at(&r, region, CAIRN_CODE_JIT, false);
	assert_non_null(range);
	assert_non_null(strstr(range->why, "while it was read"));
	close_reader(&r);
	end_child(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_contradicts_the_mappings_is_shown_and_not_trusted),
		cmocka_unit_test(another_name_of_the_same_file_is_no_contradiction),
		cmocka_unit_test(of_registrations_that_overlap_the_higher_epoch_counts),
		cmocka_unit_test(what_is_said_counts_before_what_is_assumed),
		cmocka_unit_test(a_shared_registry_is_refused_with_words),
		cmocka_unit_test(of_a_million_registrations_it_is_told_what_is_left_out),
		cmocka_unit_test(a_damaged_registry_is_told_in_words),
		cmocka_unit_test(a_registry_that_goes_away_leaves_nothing_that_is_trusted),
	};
	return cmocka_run_group_tests(tests, make_region, NULL);
}
