/* SPDX-License-Identifier: BSD-2-Clause */
/* A registry in somebody else's memory: what is read of a sound one, and why others are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "code/registry.h"

enum { AT = 0x10000, N_ENTRIES = 4, ROOM = 24 };

/* A registry by the letter of the ABI, at address AT. */
struct image {
	struct codectl_registry head;
	struct codectl_entry entries[ROOM];
	char path[16], link[16], name[8];
	uint8_t build_id[20];
	char end[28]; /* what is not a string any more */
};

static struct image image;
static unsigned int n_reads;
static void (*on_read)(unsigned int n); /* changes the image before read @n, from 1 */

static uint64_t at(const void *p)
{
	return AT + (uint64_t)((const uint8_t *)p - (const uint8_t *)&image);
}

static size_t n_there = sizeof(image);

static size_t read_image(void *ctx, uint64_t from, void *ret, size_t n)
{
	n_reads++;
	if (on_read)
		on_read(n_reads);
	const struct code_block block = {(const uint8_t *)&image, n_there, AT};
	struct code_memory m = code_memory_of_block(&block);
	return m.read(m.ctx, from, ret, n);
}

static struct codectl_entry elf_entry(uint64_t epoch, uint64_t lo)
{
	struct codectl_entry e = {.epoch = epoch, .since_ns = 100, .option = CODE_REGISTER_ELF};
	e.info.elf = (struct code_elf_info){.elf_start = lo,
					    .elf_end = lo + 0x3000,
					    .text_start = lo + 0x1000,
					    .text_end = lo + 0x2000,
					    .pathname = at(image.path),
					    .build_id = at(image.build_id),
					    .build_id_len = 20,
					    .debug_link_pathname = at(image.link)};
	return e;
}

static struct codectl_entry jit_entry(uint64_t epoch, uint64_t lo)
{
	struct codectl_entry e = {.epoch = epoch, .since_ns = 200, .option = CODE_REGISTER_JIT};
	e.info.jit = (struct code_jit_info){.text_start = lo,
					    .text_end = lo + 0x1000,
					    .unwind_head = 8,
					    .extended = CODE_JIT_EXTENDED,
					    .name = at(image.name)};
	return e;
}

/* Entry 2 was removed, entry 3 was never used. */
static void make_sound(void)
{
	on_read = NULL;
	n_reads = 0;
	n_there = sizeof(image);
	memset(&image, 0, sizeof(image));
	memset(image.end, 'x', sizeof(image.end));
	memcpy(image.head.magic, CODECTL_REGISTRY_MAGIC, sizeof(image.head.magic));
	image.head.version = CODECTL_REGISTRY_VERSION;
	image.head.header_size = sizeof(image.head);
	image.head.self = AT;
	image.head.size = sizeof(image);
	image.head.entries = at(image.entries);
	image.head.entry_stride = sizeof(image.entries[0]);
	image.head.n_entries = N_ENTRIES;
	image.head.changes = 4;
	strcpy(image.path, "/lib/one.so");
	strcpy(image.link, "one.debug");
	strcpy(image.name, "traces");
	image.build_id[0] = 7;
	image.entries[0] = elf_entry(1, 0x100000);
	image.entries[1] = jit_entry(3, 0x200000);
	image.entries[2] = elf_entry(0, 0x300000);
	image.entries[2].last_epoch = 2;
	image.entries[2].until_ns = 150;
}

static struct registry open_image(void)
{
	return (struct registry){.memory = {read_image, NULL}, .lo = AT, .hi = AT + sizeof(image)};
}

static int read_all(struct registry *r, struct cairn_err *err)
{
	int rc = registry_copy(r, CODECTL_MAX_ENTRIES, err);
	if (rc == 0)
		rc = registry_parse(r, true, err);
	if (rc == 0)
		rc = registry_strings(r, err);
	return rc < 0 ? rc : registry_check(r, err);
}

static void a_sound_registry_is_read(void **state)
{
	make_sound();
	struct registry r = open_image();
	assert_int_equal(read_all(&r, NULL), 0);
	assert_int_equal(r.entries.n, 3);
	assert_int_equal(r.head.changes, 4);
	const struct registry_entry *e = r.entries.p;
	assert_true(e[0].epoch == 1 && e[0].option == CODE_REGISTER_ELF && !e[0].why &&
		    !e[0].is_removed);
	assert_string_equal(e[0].name, "/lib/one.so");
	assert_string_equal(e[0].debug_link, "one.debug");
	assert_true(e[0].elf.build_id_len == 20 && e[0].build_id[0] == 7);
	assert_true(e[1].epoch == 3 && e[1].option == CODE_REGISTER_JIT &&
		    e[1].jit.unwind_head == 8 && !e[1].why);
	assert_string_equal(e[1].name, "traces");
	assert_true(e[2].is_removed && e[2].epoch == 2 && e[2].until_ns == 150 && e[2].number == 2);
	assert_true(registry_is_epoch(&r, 1, 3) && !registry_is_epoch(&r, 1, 4) &&
		    !registry_is_epoch(&r, 2, 2));
	/*
	 * Two for the copy, one for all strings, one for the check, and three epochs: however many
	 * entries there are.
	 */
	assert_int_equal(n_reads, 7);
	registry_fini(&r);
}

static void entries_of_a_newer_writer_are_stepped_over(void **state)
{
	static struct {
		struct codectl_entry entry;
		uint64_t more[3];
	} wide[2];
	make_sound();
	wide[0].entry = image.entries[0];
	wide[1].entry = image.entries[1];
	memcpy(image.entries, wide, sizeof(wide));
	image.head.entry_stride = sizeof(wide[0]);
	image.head.n_entries = 2;
	struct registry r = open_image();
	assert_int_equal(read_all(&r, NULL), 0);
	assert_int_equal(r.entries.n, 2);
	assert_true(r.entries.p[1].epoch == 3 && !r.entries.p[1].why);
	registry_fini(&r);
}

/* What the head says must be possible; each lie has its own words. */
static void a_head_that_lies_is_refused(void **state)
{
	/* clang-format off */
	static const struct {
		size_t off, n;
		uint64_t value;
		int rc;
		const char *says;
	} lies[] = {
		{offsetof(struct codectl_registry, magic), 1, 0, -ENOENT, "magic"},
		{offsetof(struct codectl_registry, version), 4, 2, -EOPNOTSUPP, "version 2"},
		{offsetof(struct codectl_registry, header_size), 4, 8, -EBADMSG, "header of 8"},
		{offsetof(struct codectl_registry, self), 8, AT + 8, -EBADMSG, "says that it is at"},
		{offsetof(struct codectl_registry, size), 8, sizeof(image) + 1, -EBADMSG, "in a mapping of"},
		{offsetof(struct codectl_registry, size), 8, UINT64_MAX, -EBADMSG, "in a mapping of"},
		{offsetof(struct codectl_registry, entries), 8, AT - 8, -EBADMSG, "not within it"},
		{offsetof(struct codectl_registry, entries), 8, UINT64_MAX, -EBADMSG, "not within it"},
		{offsetof(struct codectl_registry, entries), 8, AT + sizeof(image) - 8, -EBADMSG, "not within it"},
		{offsetof(struct codectl_registry, entry_stride), 4, 8, -EBADMSG, "8 bytes apart"},
		{offsetof(struct codectl_registry, entry_stride), 4, 0, -EBADMSG, "0 bytes apart"},
		{offsetof(struct codectl_registry, entry_stride), 4, 1 << 20, -EBADMSG, "bytes apart"},
		{offsetof(struct codectl_registry, n_entries), 4, 1000, -EBADMSG, "not within it"},
		{offsetof(struct codectl_registry, n_entries), 4, UINT32_MAX, -EBADMSG, "at most"},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct cairn_err err = {0};
		make_sound();
		memcpy((uint8_t *)&image.head + lies[i].off, &lies[i].value, lies[i].n);
		struct registry r = open_image();
		assert_int_equal(read_all(&r, &err), lies[i].rc);
		assert_non_null(strstr(err.msg, lies[i].says));
		assert_non_null(strstr(err.msg, "registry at 0x10000"));
		assert_int_equal(r.n, 0);
		registry_fini(&r);
	}
}

/* The entry alone is refused; the others are as sound as before. */
static void an_entry_that_lies_is_refused_alone(void **state)
{
	static const struct {
		size_t off; /* in the info */
		uint64_t value;
		const char *says;
	} lies[] = {
		{offsetof(struct code_elf_info, text_start), 0x102000, "empty"},
		{offsetof(struct code_elf_info, text_end), 0x100000, "ends before"},
		{offsetof(struct code_elf_info, elf_start), 0x101001, "not within the object"},
		{offsetof(struct code_elf_info, elf_end), 0x101fff, "not within the object"},
		{offsetof(struct code_elf_info, sframe_start), 1, "SFrame"},
		{offsetof(struct code_elf_info, unwind_kind), 3, "kind"},
		{offsetof(struct code_elf_info, unwind_kind), 1, "no bytes"},
		{offsetof(struct code_elf_info, pathname), 8, "not within the registry"},
		{offsetof(struct code_elf_info, pathname), UINT64_MAX, "not within the registry"},
		{offsetof(struct code_elf_info, build_id), AT + sizeof(image),
		 "not within the registry"},
		{offsetof(struct code_elf_info, build_id), AT + sizeof(image) - 19,
		 "cannot be read"},
		{offsetof(struct code_elf_info, build_id_len), 65, "longer than any"},
		{offsetof(struct code_elf_info, debug_link_pathname),
		 AT + offsetof(struct image, end), "no end"},
	};
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		make_sound();
		memcpy((uint8_t *)&image.entries[0].info + lies[i].off, &lies[i].value,
		       lies[i].off == offsetof(struct code_elf_info, build_id_len) ? 4 : 8);
		struct registry r = open_image();
		assert_int_equal(read_all(&r, NULL), 0);
		assert_non_null(r.entries.p[0].why);
		assert_non_null(strstr(r.entries.p[0].why, lies[i].says));
		assert_null(r.entries.p[1].why);
		registry_fini(&r);
	}
}

static void a_region_that_lies_is_refused_alone(void **state)
{
	make_sound();
	image.entries[1].info.jit.text_end += UINT64_C(1) << 32;
	image.entries[2] = image.entries[1];
	image.entries[2].epoch = 9;
	image.entries[2].option = 77;
	struct registry r = open_image();
	assert_int_equal(read_all(&r, NULL), 0);
	assert_non_null(strstr(r.entries.p[1].why, "4 GiB"));
	assert_non_null(strstr(r.entries.p[2].why, "kind that is not known"));
	registry_fini(&r);
}

/* Without the mark, what is after the RFC's part is not looked at. */
static void a_region_of_the_rfcs_form_has_nothing_after_it(void **state)
{
	make_sound();
	image.entries[1].info.jit.extended = 0;
	image.entries[1].info.jit.name = 8;
	image.entries[1].info.jit.unwind_kind = 99;
	struct registry r = open_image();
	assert_int_equal(read_all(&r, NULL), 0);
	assert_null(r.entries.p[1].why);
	assert_true(!r.entries.p[1].name && !r.entries.p[1].jit.unwind_kind);
	registry_fini(&r);
}

/* ---- what changes while it is read ---- */

static void replace_entry_1(unsigned int n)
{
	if (n == 4)
		image.entries[1].epoch = 8;
}

static void remove_entry_0(unsigned int n)
{
	if (n == 3) {
		image.entries[0].last_epoch = 1;
		image.entries[0].epoch = 0;
	}
}

/* As a copy would be whose epoch was read after the rest: that is not an entry of any moment. */
static void change_without_an_epoch(unsigned int n)
{
	if (n == 4)
		image.entries[1].info.jit.text_end++;
}

static void forget_entry_2(unsigned int n)
{
	if (n == 4)
		image.entries[2].last_epoch = 0;
}

static void an_entry_that_changes_is_told_and_no_other(void **state)
{
	static const struct {
		void (*change)(unsigned int n);
		unsigned int entry;
	} changes[] = {{replace_entry_1, 1},
		       {remove_entry_0, 0},
		       {change_without_an_epoch, 1},
		       {forget_entry_2, 2}};
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		make_sound();
		on_read = changes[i].change;
		struct registry r = open_image();
		assert_int_equal(read_all(&r, NULL), 1);
		for (unsigned int k = 0; k < 3; k++)
			assert_int_equal(r.entries.p[k].is_changing, k == changes[i].entry);
		registry_fini(&r);
	}
}

static void shrink(unsigned int n)
{
	if (n == 3)
		n_there = offsetof(struct image, entries[1]);
}

static void a_mapping_that_shrinks_refuses_what_is_not_there_any_more(void **state)
{
	make_sound();
	on_read = shrink;
	struct registry r = open_image();
	/* Its strings are gone for all; of entry 0 alone the second copy is there. */
	assert_int_equal(read_all(&r, NULL), 2);
	for (size_t i = 0; i < 3; i++)
		assert_non_null(r.entries.p[i].why);
	registry_fini(&r);
}

static void what_ends_at_any_byte_is_refused_or_read_in_part(void **state)
{
	for (size_t n = 0; n < sizeof(image); n++) {
		struct cairn_err err = {0};
		make_sound();
		n_there = n;
		struct registry r = open_image();
		int rc = read_all(&r, &err);
		assert_int_equal(rc, n < offsetof(struct image, entries[N_ENTRIES]) ? -EFAULT : 0);
		assert_true(rc == 0 || strstr(err.msg, "can"));
		for (size_t i = 0; i < r.entries.n; i++)
			if (!r.entries.p[i].why)
				assert_true(n > offsetof(struct image, path));
		registry_fini(&r);
	}
}

/* Nothing is asserted about what it says: sanitizers are the judge, and that it ends. */
static void no_flipped_bit_does_harm(void **state)
{
	for (size_t bit = 0; bit < sizeof(image) * 8; bit++) {
		make_sound();
		((uint8_t *)&image)[bit / 8] ^= (uint8_t)(1 << bit % 8);
		struct registry r = open_image();
		read_all(&r, NULL);
		for (size_t i = 0; i < r.entries.n; i++)
			assert_true(!r.entries.p[i].name ||
				    strlen(r.entries.p[i].name) < sizeof(image));
		registry_fini(&r);
	}
}

static void more_entries_than_are_asked_for_are_left_out(void **state)
{
	make_sound();
	struct registry r = open_image();
	assert_int_equal(registry_copy(&r, 2, NULL), 0);
	assert_int_equal(registry_parse(&r, true, NULL), 0);
	assert_int_equal(r.entries.n, 2);
	assert_int_equal(r.head.n_entries - r.n, 2);
	registry_fini(&r);
}

static void add_far_entry(void)
{
	image.entries[ROOM - 1] = jit_entry(9, 0x400000);
	image.head.n_entries = ROOM;
}

static void change_far_entry(unsigned int n)
{
	if (n == 4)
		image.entries[ROOM - 1].epoch = 10;
}

static void removed_entries_are_passed_over_unless_they_are_asked_for(void **state)
{
	make_sound();
	struct registry r = open_image();
	assert_int_equal(registry_copy(&r, ROOM, NULL), 0);
	assert_int_equal(registry_parse(&r, false, NULL), 0);
	assert_int_equal(r.entries.n, 2);
	assert_true(!r.entries.p[0].is_removed && !r.entries.p[1].is_removed);
	assert_int_equal(registry_parse(&r, true, NULL), 0);
	assert_int_equal(r.entries.n, 3);
	registry_fini(&r);
}

static void what_is_between_entries_that_are_far_apart_is_not_read_again(void **state)
{
	make_sound();
	add_far_entry();
	on_read = change_far_entry;
	struct registry r = open_image();
	assert_int_equal(registry_copy(&r, ROOM, NULL), 0);
	assert_int_equal(registry_parse(&r, false, NULL), 0);
	assert_int_equal(registry_check(&r, NULL), 1);
	/* Two for the copy, one for the first two entries, one for the last. */
	assert_int_equal(n_reads, 4);
	assert_true(!r.entries.p[0].is_changing && !r.entries.p[1].is_changing &&
		    r.entries.p[2].is_changing);
	registry_fini(&r);
}

static void every_allocation_may_fail(void **state)
{
	for (unsigned int n = 1;; n++) {
		make_sound();
		struct registry r = open_image();
		alloc_fail_at(n);
		int rc = read_all(&r, NULL);
		bool failed = alloc_fail_end();
		registry_fini(&r);
		if (!failed)
			break;
		assert_int_equal(rc, -ENOMEM);
		assert_true(n < 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_registry_is_read),
		cmocka_unit_test(entries_of_a_newer_writer_are_stepped_over),
		cmocka_unit_test(a_head_that_lies_is_refused),
		cmocka_unit_test(an_entry_that_lies_is_refused_alone),
		cmocka_unit_test(a_region_that_lies_is_refused_alone),
		cmocka_unit_test(a_region_of_the_rfcs_form_has_nothing_after_it),
		cmocka_unit_test(an_entry_that_changes_is_told_and_no_other),
		cmocka_unit_test(a_mapping_that_shrinks_refuses_what_is_not_there_any_more),
		cmocka_unit_test(what_ends_at_any_byte_is_refused_or_read_in_part),
		cmocka_unit_test(no_flipped_bit_does_harm),
		cmocka_unit_test(more_entries_than_are_asked_for_are_left_out),
		cmocka_unit_test(removed_entries_are_passed_over_unless_they_are_asked_for),
		cmocka_unit_test(what_is_between_entries_that_are_far_apart_is_not_read_again),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
