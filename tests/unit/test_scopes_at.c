/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that an address is in, and what their callers passed: answers without memory are
 * errors, and no others.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/sidecar.h>
#include <cairn/sites.h>

#include "alloc_fail.h"
#include "calls.h"
#include "workspace.h"

/*
 * A function with a copy of another in it, whose own parameter is overwritten before the second
 * call.
 */
static const char source[] =
	"volatile long sink;\n"
	"__attribute__((noipa)) long wait_here(long a, const char *text) { sink = 1; return sink + "
	"!text; }\n"
	"static inline __attribute__((always_inline)) long inner(int depth, long product)\n"
	"{ long r = wait_here(depth - 7, \"here\"); return r + product + sink; }\n"
	"__attribute__((noipa)) long loses(long lost) { long r = inner(9, 3); sink = r; return "
	"wait_here(r, \"there\") + 1; }\n"
	"#define NO_REGISTER_IS_LEFT() __asm__ volatile(\"\" : : : \"rbx\", \"rbp\", \"r12\", "
	"\"r13\", \"r14\", \"r15\", \"memory\")\n"
	"__attribute__((noipa)) long spills(long kept)\n"
	"{ NO_REGISTER_IS_LEFT(); sink = wait_here(1, \"spilled\"); NO_REGISTER_IS_LEFT(); return "
	"kept + sink; }\n"
	"int main(void) { return loses(12345) + spills(sink) == 7; }\n";

enum { RDI = 5 };

struct program {
	struct workspace w;
	struct cairn_binary *bin;
	struct cairn_vaddr wait_here, loses, spills;
};

static bool program_open(struct program *p)
{
	workspace_open(&p->w);
	workspace_write(&p->w, "a.c", source);
	if (!workspace_try(&p->w, "gcc -O2 -g -fno-optimize-sibling-calls -o a a.c")) {
		workspace_close(&p->w);
		print_message("no gcc\n");
		return false;
	}
	assert_int_equal(cairn_binary_open(workspace_path(&p->w, "a"), NULL, &p->bin, NULL), 0);
	p->wait_here = address_of(p->bin, "wait_here");
	p->loses = address_of(p->bin, "loses");
	p->spills = address_of(p->bin, "spills");
	return true;
}

static void program_close(struct program *p)
{
	cairn_binary_close(p->bin);
	workspace_close(&p->w);
}

static struct cairn_sites *sites_of(const struct program *p)
{
	struct cairn_sites_opts opts = {.size = sizeof(opts), .threads = 1};
	struct cairn_sites *sites;
	assert_int_equal(cairn_sites_open(p->bin, &opts, &sites, NULL), 0);
	return sites;
}

/* Where the first call of wait_here() in `loses` returns to. */
static struct cairn_vaddr return_address(const struct program *p)
{
	return return_address_of(p->bin, p->loses, p->wait_here);
}

/* "inner(depth, product) < loses(lost)", with the reasons why there is no value. */
static int report_active(struct cairn_sites *sites, struct cairn_vaddr pc, char *text, size_t size,
			 struct cairn_err *err)
{
	const struct cairn_scope *active;
	int n = cairn_sites_at(sites, pc, false, &active, err);
	size_t used = 0;
	text[0] = 0;
	for (int i = 0; i < n; i++) {
		used += (size_t)snprintf(text + used, size - used, "%s(", active[i].name);
		for (uint32_t k = 0; k < active[i].n_args; k++)
			used += (size_t)snprintf(text + used, size - used, " %s:%d",
						 active[i].args[k].name, active[i].args[k].loc.why);
		used += (size_t)snprintf(text + used, size - used, " ) ");
	}
	assert_true(used < size);
	return n;
}

static void functions_at_an_address_without_memory_are_an_error(void **state)
{
	(void)state;
	struct program p;
	char expected[512], text[512];
	unsigned int n = 1, n_errors = 0;
	if (!program_open(&p))
		skip();
	struct cairn_vaddr pc = return_address(&p);
	struct cairn_sites *sites = sites_of(&p);
	assert_int_equal(report_active(sites, pc, expected, sizeof(expected), NULL), 2);
	assert_int_equal(strncmp(expected, "inner( ", 7), 0);
	assert_non_null(strstr(expected, "loses( lost:"));
	cairn_sites_close(sites);
	for (;; n++) {
		struct cairn_err err = {0};
		sites = sites_of(&p);
		alloc_fail_at(n);
		int rc = report_active(sites, pc, text, sizeof(text), &err);
		bool has_failed = alloc_fail_end();
		/* What can be had without that memory is as good. */
		assert_true(rc == 2 || (has_failed && rc == -ENOMEM && err.msg[0]));
		if (rc == 2)
			assert_string_equal(text, expected);
		n_errors += rc < 0;
		/* Nothing half done is left. */
		assert_int_equal(report_active(sites, pc, text, sizeof(text), NULL), 2);
		assert_string_equal(text, expected);
		cairn_sites_close(sites);
		if (!has_failed)
			break;
	}
	print_message("%u of %u allocations are needed\n", n_errors, n - 1);
	assert_true(n_errors > 10);
	program_close(&p);
}

/* GCC describes it in the slot from the call on, where it has been for some instructions. */
static void a_parameter_that_was_put_into_a_slot_is_there_after_a_call(void **state)
{
	(void)state;
	const struct cairn_scope *active;
	struct program p;
	if (!program_open(&p))
		skip();
	struct cairn_sites *sites = sites_of(&p);
	struct cairn_vaddr pc = return_address_of(p.bin, p.spills, p.wait_here);
	assert_int_equal(cairn_sites_at(sites, pc, false, &active, NULL), 1);
	assert_string_equal(active[0].args[0].name, "kept");
	if (active[0].args[0].loc.why != CAIRN_AVAILABLE)
		fail_msg("kept: %s", cairn_unavailable_text(active[0].args[0].loc.why));
	assert_int_equal(active[0].args[0].loc.n_pieces, 1);
	assert_int_equal(active[0].args[0].loc.pieces[0].kind, CAIRN_PIECE_MEMORY);
	/* At the entry it is in its register. */
	assert_int_equal(cairn_sites_at(sites, p.spills, true, &active, NULL), 1);
	assert_int_equal(active[0].args[0].loc.pieces[0].kind, CAIRN_PIECE_VALUE);
	cairn_sites_close(sites);
	program_close(&p);
}

/* What was passed is asked after an answer of the same site. */
static struct cairn_sites *asked_at(const struct program *p, struct cairn_vaddr pc)
{
	const struct cairn_scope *active;
	struct cairn_sites *sites = sites_of(p);
	assert_int_equal(cairn_sites_at(sites, pc, false, &active, NULL), 2);
	return sites;
}

static void what_was_passed_without_memory_is_an_error(void **state)
{
	(void)state;
	struct program p;
	const struct cairn_loc_step in_rdi = {.op = CAIRN_LOC_ENTRY_REG, .reg = RDI};
	struct cairn_location loc;
	unsigned int n = 1;
	if (!program_open(&p))
		skip();
	struct cairn_vaddr pc = return_address(&p);
	struct cairn_sites *sites = asked_at(&p, pc);
	assert_int_equal(cairn_sites_call_value(sites, p.wait_here, pc, &in_rdi, &loc, NULL), 0);
	enum cairn_unavailable expected = loc.why;
	assert_int_equal(expected, CAIRN_AVAILABLE);
	cairn_sites_close(sites);
	for (;; n++) {
		struct cairn_err err = {0};
		sites = asked_at(&p, pc);
		alloc_fail_at(n);
		int rc = cairn_sites_call_value(sites, p.wait_here, pc, &in_rdi, &loc, &err);
		bool has_failed = alloc_fail_end();
		if (has_failed && (rc != -ENOMEM || !err.msg[0]))
			fail_msg("allocation %u: %d, %s: %s", n, rc,
				 cairn_unavailable_text(loc.why), err.msg);
		assert_int_equal(
			cairn_sites_call_value(sites, p.wait_here, pc, &in_rdi, &loc, NULL), 0);
		assert_int_equal(loc.why, expected);
		cairn_sites_close(sites);
		if (!has_failed)
			break;
	}
	print_message("%u allocations\n", n - 1);
	assert_true(n > 1);
	program_close(&p);
}

/* ---- from a sidecar ---- */

static struct cairn_sidecar *sidecar_of(const struct program *p)
{
	struct cairn_sidecar_make_opts opts = {
		.size = sizeof(opts), .threads = 1, .sites = true, .args = true};
	struct cairn_sidecar_image image;
	struct cairn_sidecar *sidecar;
	assert_int_equal(cairn_sidecar_make(p->bin, &opts, &image, NULL), 0);
	assert_int_equal(cairn_sidecar_open_image(&image, "sidecar", &sidecar, NULL), 0);
	return sidecar;
}

static void a_sidecar_without_memory_gives_an_error_or_the_answer(void **state)
{
	(void)state;
	struct program p;
	char expected[512], text[512];
	unsigned int n = 1, n_errors = 0;
	if (!program_open(&p))
		skip();
	struct cairn_vaddr pc = return_address(&p);
	struct cairn_sites *sites = sites_of(&p);
	assert_int_equal(report_active(sites, pc, expected, sizeof(expected), NULL), 2);
	cairn_sites_close(sites);
	for (bool has_failed = true; has_failed; n++) {
		struct cairn_err err = {0};
		struct cairn_sidecar *sidecar = sidecar_of(&p);
		int rc;
		alloc_fail_at(n);
		rc = cairn_sidecar_sites(sidecar, p.bin, &sites, &err);
		if (rc >= 0)
			rc = report_active(sites, pc, text, sizeof(text), &err);
		else
			sites = NULL;
		has_failed = alloc_fail_end();
		if (rc != 2 && !(has_failed && rc == -ENOMEM && err.msg[0]))
			fail_msg("allocation %u: %d %s", n, rc, err.msg);
		if (rc == 2)
			assert_string_equal(text, expected);
		/* Nothing half done is left. */
		if (sites) {
			assert_int_equal(report_active(sites, pc, text, sizeof(text), NULL), 2);
			assert_string_equal(text, expected);
		}
		n_errors += rc < 0;
		cairn_sites_close(sites);
		cairn_sidecar_close(sidecar);
	}
	print_message("%u of %u allocations are needed\n", n_errors, n - 1);
	assert_true(n_errors > 10);
	program_close(&p);
}

/* The section that has them; cairn_sidecar_close(*@ret_sidecar). */
static const void *section_of(struct cairn_sidecar_image *image, struct cairn_sidecar **ret_sidecar,
			      size_t *ret_size)
{
	assert_int_equal(cairn_sidecar_open_image(image, "sidecar", ret_sidecar, NULL), 0);
	const void *bytes = cairn_sidecar_section(*ret_sidecar, ".cairn.dwarf", ret_size);
	assert_non_null(bytes);
	return bytes;
}

static void the_section_with_parameters_is_made_whole_or_not_at_all(void **state)
{
	(void)state;
	struct cairn_sidecar_make_opts opts = {
		.size = sizeof(opts), .threads = 1, .sites = true, .args = true};
	struct cairn_sidecar_image image;
	struct cairn_sidecar *whole, *made;
	struct program p;
	size_t size, made_size;
	unsigned int n = 1, n_errors = 0;
	if (!program_open(&p))
		skip();
	assert_int_equal(cairn_sidecar_make(p.bin, &opts, &image, NULL), 0);
	const void *expected = section_of(&image, &whole, &size);
	for (bool has_failed = true; has_failed; n++) {
		struct cairn_err err = {0};
		alloc_fail_at(n);
		int rc = cairn_sidecar_make(p.bin, &opts, &image, &err);
		has_failed = alloc_fail_end();
		if (rc < 0 && (!has_failed || rc != -ENOMEM || !err.msg[0]))
			fail_msg("allocation %u: %d %s", n, rc, err.msg);
		n_errors += rc < 0;
		if (rc < 0)
			continue;
		const void *bytes = section_of(&image, &made, &made_size);
		if (made_size != size || memcmp(bytes, expected, size) != 0)
			fail_msg("allocation %u: another section", n);
		cairn_sidecar_close(made);
	}
	print_message("%u of %u allocations are needed\n", n_errors, n - 1);
	assert_true(n_errors > 10);
	cairn_sidecar_close(whole);
	program_close(&p);
}

static void a_sidecar_knows_what_was_passed_as_the_debug_information_does(void **state)
{
	(void)state;
	const struct cairn_loc_step in_rdi = {.op = CAIRN_LOC_ENTRY_REG, .reg = RDI};
	const struct cairn_scope *active;
	struct cairn_location loc;
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	struct program p;
	if (!program_open(&p))
		skip();
	struct cairn_sidecar *sidecar = sidecar_of(&p);
	assert_true(cairn_sidecar_has_args(sidecar));
	assert_int_equal(cairn_sidecar_sites(sidecar, p.bin, &sites, NULL), 0);
	struct cairn_vaddr pc = return_address(&p);
	assert_int_equal(cairn_sites_at(sites, pc, false, &active, NULL), 2);
	/*
	 * wait_here() has its parameters in their registers throughout: nobody is asked what they
	 * were, and no call tells.
	 */
	assert_int_equal(cairn_sites_call_value(sites, p.wait_here, pc, &in_rdi, &loc, NULL), 0);
	assert_int_equal(loc.why, CAIRN_UNAVAIL_ENTRY_VALUE);
	cairn_sites_close(sites);
	/* Without the binary nothing can be said of its code. */
	assert_int_equal(cairn_sidecar_sites(sidecar, NULL, &sites, NULL), 0);
	assert_int_equal(cairn_sites_at(sites, pc, false, &active, &err), -EOPNOTSUPP);
	assert_true(err.msg[0]);
	cairn_sites_close(sites);
	cairn_sidecar_close(sidecar);
	program_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_at_an_address_without_memory_are_an_error),
		cmocka_unit_test(a_parameter_that_was_put_into_a_slot_is_there_after_a_call),
		cmocka_unit_test(what_was_passed_without_memory_is_an_error),
		cmocka_unit_test(a_sidecar_without_memory_gives_an_error_or_the_answer),
		cmocka_unit_test(the_section_with_parameters_is_made_whole_or_not_at_all),
		cmocka_unit_test(a_sidecar_knows_what_was_passed_as_the_debug_information_does),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
