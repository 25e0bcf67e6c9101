/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol of registry and tables, in every order in which the writer's stores can become
 * visible
 *
 * explore.h says how. A script of calls is recorded; readers that go by the letter of
 * cairn/shared/codectl.h look for one address. What they conclude must have been true at a moment
 * while they read, wherever the writer stopped. docs/formats/codectl.md has the results in a table.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include <cairn/jit/codectl.h>
#include <cairn/jit/jit.h>

#include "agent/jit_pool.h"
#include "agent/process.h"
#include "explore.h"

enum { NEVER = -1, AGAIN = -2, TABLES_MAX = 8, ROWS_MAX = 8, ENTRIES_MAX = 8, GENERATIONS = 4 };

static struct registry_writer *writer; /* looked at without its lock, which would order stores */
static struct codectl_registry *head;
static struct codectl_entry *entries;

static void find_registry(void)
{
	assert_int_equal(process_enter(&writer), 0);
	process_leave();
	head = writer->head;
	entries = writer->entries;
}

static uint64_t at(const volatile void *p)
{
	return (uintptr_t)p;
}

static uint64_t n_entries(struct view *v)
{
	/* The upper half of a word. */
	uint64_t n = view_word(v, at(&head->entry_stride)) >> 32;
	return n < ENTRIES_MAX ? n : ENTRIES_MAX;
}

static void show(const char *name, const struct explored *x)
{
	printf("%s: %zu stores, %llu states, %llu ends, %llu wrong\n", name, x->n_stores,
	       (unsigned long long)x->n_states, (unsigned long long)x->n_results,
	       (unsigned long long)x->n_wrong);
}

/* ---- a region of code: the row at one address ---- */

static char *const region = (char *)0x100000000;
static const uint8_t *tables;
static bool is_backwards; /* order of the words in a copy of an entry */

/*
 * What was at the address: a function's CFA tells it, from the call that published it to the end of
 * that which withdrew it.
 */
static struct {
	int64_t cfa;
	size_t from, to;
} lives[8];
static size_t n_lives;

static void publish(struct cairn_jit *jit, int off, int32_t cfa)
{
	struct cairn_jit_frame frame;
	if (off == 0)
		lives[n_lives].cfa = cfa, lives[n_lives].from = recorded(),
		lives[n_lives++].to = SIZE_MAX;
	cairn_jit_begin(&frame, region + off);
	cairn_jit_cfa(&frame, region + off, CAIRN_JIT_SP, cfa);
	assert_int_equal(cairn_jit_publish(jit, &frame, region + off + 16, NULL), 0);
}

static void withdraw(struct cairn_jit *jit)
{
	cairn_jit_withdraw(jit, region, region + 16);
	lives[n_lives - 1].to = recorded();
}

static bool is_row_word(uint64_t word)
{
	uint64_t off = (word - at(tables)) % JIT_BLOCK_BYTES;
	if (off < sizeof(struct code_jit_table))
		return off == offsetof(struct code_jit_table, used_len) ||
		       off == offsetof(struct code_jit_table, next);
	return (off - sizeof(struct code_jit_table)) % sizeof(struct code_jit_unwind_fre) < 16;
}

static bool is_entry_word(uint64_t word)
{
	size_t off = (word - at(entries)) % sizeof(struct codectl_entry);
	return off == offsetof(struct codectl_entry, epoch) ||
	       off == offsetof(struct codectl_entry, info) +
			       offsetof(struct code_jit_info, text_start) ||
	       off == offsetof(struct codectl_entry, info) +
			       offsetof(struct code_jit_info, unwind_head);
}

static bool is_of_region(uint64_t word)
{
	if (word >= at(tables) && word < at(tables) + JIT_CHUNK_BYTES)
		return is_row_word(word);
	return word >= at(entries) ? is_entry_word(word)
				   : word == at(&head->entry_stride) || word == at(&head->changes);
}

struct copy {
	uint64_t epoch, text, unwind;
};

static struct copy copy_entry(struct view *v, uint64_t i)
{
	const struct codectl_entry *e = &entries[i];
	struct copy c;
	if (is_backwards)
		c.unwind = view_word(v, at(&e->info.jit.unwind_head));
	c.epoch = view_word(v, at(&e->epoch));
	c.text = view_word(v, at(&e->info.jit.text_start));
	if (!is_backwards)
		c.unwind = view_word(v, at(&e->info.jit.unwind_head));
	return c;
}

static uint64_t row_at(struct view *v, uint64_t table, uint64_t used)
{
	for (uint64_t i = 0; i < used / sizeof(struct code_jit_unwind_fre) && i < ROWS_MAX; i++) {
		uint64_t row = table + sizeof(struct code_jit_table) +
			       i * sizeof(struct code_jit_unwind_fre);
		uint64_t place = view_word(v, row);
		if (place >> 32 == 0 && (uint32_t)place)
			return (uint32_t)view_word(v, row + 8);
	}
	return (uint64_t)NEVER;
}

/*
 * The CFA of the row at the region's first address; NEVER: nothing is there; AGAIN: it changed
 * meanwhile.
 */
static uint64_t read_region(struct view *v)
{
	struct copy best = {0};
	uint64_t which = 0, changes = view_word(v, at(&head->changes)), n = n_entries(v),
		 found = (uint64_t)NEVER;
	for (uint64_t i = 0; i < n; i++) {
		struct copy first = copy_entry(v, i), second = copy_entry(v, i);
		if (memcmp(&first, &second, sizeof(first)))
			return (uint64_t)AGAIN;
		if (first.epoch > best.epoch && first.text == at(region)) {
			best = first;
			which = i;
		}
	}
	if (!best.epoch)
		return view_word(v, at(&head->changes)) == changes ? 0 : (uint64_t)AGAIN;
	uint64_t table = best.unwind;
	for (int i = 0; table && found == (uint64_t)NEVER && i < TABLES_MAX; i++) {
		uint64_t used = view_word(v, table + offsetof(struct code_jit_table, used_len));
		found = row_at(v, table, used);
		if (found == (uint64_t)NEVER)
			table = view_word(v, table + offsetof(struct code_jit_table, next));
	}
	return view_word(v, at(&entries[which].epoch)) == best.epoch ? found : (uint64_t)AGAIN;
}

/*
 * 0, that nothing is registered, is never right: a new generation begins before the old one ends.
 */
static bool is_right_row(uint64_t result, size_t from, size_t to)
{
	if (result == (uint64_t)AGAIN)
		return true;
	size_t gap = 0;
	for (size_t i = 0; i < n_lives; i++) {
		if ((int64_t)result == lives[i].cfa)
			return lives[i].from < to && lives[i].to > from;
		/* Between two functions nothing is there, also while one of them comes or goes. */
		if (result == (uint64_t)NEVER && gap <= to && lives[i].to > from)
			return true;
		gap = lives[i].to;
	}
	return result == (uint64_t)NEVER;
}

static uint64_t head_of_region(void)
{
	return registry_writer_find(writer, at(region), at(region) + 1)->info.jit.unwind_head;
}

static void reused_addresses_are_never_of_another_generation(void **state)
{
	struct cairn_jit *jit;
	struct explored x;
	uint64_t heads[GENERATIONS];
	assert_int_equal(cairn_jit_open(region, 4096, NULL, &jit), 0);
	find_registry();
	tables = (const uint8_t *)(uintptr_t)entries[0].info.jit.unwind_head - JIT_BLOCK_BYTES;
	record_memory(head, 1 << 20);
	record_memory(tables, JIT_CHUNK_BYTES);
	record_start();
	for (int i = 0; i < GENERATIONS; i++) {
		publish(jit, 0, 101 + i);
		heads[i] = head_of_region();
		publish(jit, 16 + 16 * i, 201 + i);
		if (i + 1 < GENERATIONS)
			withdraw(jit);
	}
	record_stop();
	/* Who reads late is in a block that is used for something else by then. */
	assert_true(heads[2] == heads[0] || heads[3] == heads[1] || heads[3] == heads[0]);

	size_t from[GENERATIONS] = {0, lives[0].to, lives[1].to, lives[2].to};
	struct explorer e = {
		.read = read_region, .is_right = is_right_row, .is_of_interest = is_of_region};
	for (int i = 0; i < 2; i++) {
		is_backwards = i;
		explore(&e, from, GENERATIONS, &x);
		show(i ? "region, epoch read last" : "region, epoch read first", &x);
		assert_int_equal(x.n_wrong, 0);
		assert_true(x.n_results > 500);
	}
	e.is_lawless = true;
	explore(&e, from, GENERATIONS, &x);
	show("region, nothing ordered", &x);
	assert_true(x.n_wrong > 0);
	cairn_jit_close(jit);
	record_forget();
}

/* ---- a place of the registry: what is registered there, with its string ---- */

enum { OLD = 1, A, B, N_NAMES };
static const char *const names[N_NAMES] = {NULL, "/old", "/a", "/b"};
static struct {
	size_t from, to;
	uint64_t epoch;
} terms[N_NAMES]; /* valid, and its number */
static uint64_t place;

static long change(unsigned int option, int name)
{
	uint64_t lo = 0x10000 + (uint64_t)name * 0x1000;
	struct code_elf_info elf = {.elf_start = lo,
				    .elf_end = lo + 0x800,
				    .text_start = lo,
				    .text_end = lo + 0x800,
				    .pathname = (uintptr_t)names[name]};
	struct code_unregister_info range = {lo, lo + 0x800};
	return option == CODE_UNREGISTER ? codectl(option, &range, sizeof(range), 0)
					 : codectl(option, &elf, sizeof(elf), 0);
}

static void add_name(int name)
{
	terms[name].from = recorded();
	terms[name].to = SIZE_MAX;
	assert_int_equal(change(CODE_REGISTER_ELF, name), 0);
	terms[name].epoch = entries[place].epoch;
}

static void remove_name(int name)
{
	assert_int_equal(change(CODE_UNREGISTER, name), 0);
	terms[name].to = recorded();
}

static uint64_t text_word(void)
{
	return at(&entries[place].info.elf.text_start);
}

static uint64_t string_word; /* of the place's block */

static bool is_of_place(uint64_t word)
{
	return word == at(&entries[place].epoch) || word == at(&entries[place].last_epoch) ||
	       word == text_word() || word == at(&entries[place].info.elf.pathname) ||
	       word == string_word;
}

struct place_copy {
	uint64_t text, path, epoch, last;
};

static struct place_copy copy_place(struct view *v)
{
	struct place_copy c;
	const struct codectl_entry *e = &entries[place];
	if (is_backwards) {
		c.path = view_word(v, at(&e->info.elf.pathname));
		c.text = view_word(v, text_word());
	}
	c.epoch = view_word(v, at(&e->epoch));
	c.last = view_word(v, at(&e->last_epoch));
	if (!is_backwards) {
		c.text = view_word(v, text_word());
		c.path = view_word(v, at(&e->info.elf.pathname));
	}
	return c;
}

enum { REMOVED = 16, MIXED = 1000 };

/* Which of the names it is, with REMOVED when it was that; MIXED when it is of two. */
static uint64_t read_place(struct view *v)
{
	struct place_copy first = copy_place(v);
	uint64_t number = first.epoch ? first.epoch : first.last, text = 0;
	if (!number)
		return (uint64_t)NEVER;
	if (first.path)
		text = view_word(v, first.path);
	struct place_copy second = copy_place(v);
	/* last_epoch counts while epoch is 0. */
	if (first.epoch != second.epoch || (!first.epoch && first.last != second.last) ||
	    first.text != second.text || first.path != second.path)
		return (uint64_t)AGAIN;
	for (uint64_t name = OLD; name < N_NAMES; name++) {
		if (terms[name].epoch != number)
			continue;
		bool is_whole = first.text == 0x10000 + name * 0x1000 &&
				!strcmp((const char *)&text, names[name]);
		return is_whole ? name | (first.epoch ? 0 : REMOVED) : MIXED;
	}
	return MIXED;
}

static bool is_right_place(uint64_t result, size_t from, size_t to)
{
	if (result == (uint64_t)AGAIN || result == (uint64_t)NEVER)
		return true;
	uint64_t name = result & 15;
	if (result >= MIXED)
		return false;
	if (name == OLD)
		return result & REMOVED; /* it was gone before all this */
	return result & REMOVED ? terms[name].from < to
				: terms[name].from < to && terms[name].to > from;
}

/* A registration that is removed at once. */
static void come_and_go(void)
{
	struct code_elf_info elf = {
		.elf_start = 0x9000, .elf_end = 0xa000, .text_start = 0x9000, .text_end = 0xa000};
	struct code_unregister_info range = {0x9000, 0xa000};
	assert_int_equal(codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0), 0);
	assert_int_equal(codectl(CODE_UNREGISTER, &range, sizeof(range), 0), 0);
}

static void a_place_that_is_used_again_is_never_mixed(void **state)
{
	struct explored x;
	find_registry();
	/* The place of the registration that was removed first is used again when enough wait. */
	place = head->n_entries;
	add_name(OLD);
	string_word = entries[place].info.elf.pathname;
	remove_name(OLD);
	while (writer->first_removed != place || writer->n_removed < CODECTL_MIN_REMOVED)
		come_and_go();
	terms[OLD].from = terms[OLD].to = 0;
	record_memory(head, head->size);
	record_start();
	add_name(A);
	assert_int_equal(writer->head->n_entries > place, 1);
	remove_name(A);
	/* Its turn again, with all that lies between taken away from the record. */
	record_stop();
	while (writer->first_removed != place)
		come_and_go();
	record_start();
	add_name(B);
	remove_name(B);
	record_stop();
	assert_int_equal(terms[B].epoch > terms[A].epoch, 1);

	size_t from[] = {0, terms[A].to, terms[B].to};
	struct explorer e = {
		.read = read_place, .is_right = is_right_place, .is_of_interest = is_of_place};
	for (int i = 0; i < 2; i++) {
		is_backwards = i;
		explore(&e, from, 3, &x);
		show(i ? "place, epoch read last" : "place, epoch read first", &x);
		assert_int_equal(x.n_wrong, 0);
		assert_true(x.n_results > 100);
	}
	e.is_lawless = true;
	explore(&e, from, 3, &x);
	show("place, nothing ordered", &x);
	assert_true(x.n_wrong > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reused_addresses_are_never_of_another_generation),
		cmocka_unit_test(a_place_that_is_used_again_is_never_mixed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
