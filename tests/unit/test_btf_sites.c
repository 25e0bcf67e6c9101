/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites from BTF: what a file answers that has .BTF and .BTF.inline, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/btf/sites.h>

#include "alloc_fail.h"
#include "elf/elf.h"
#include "sites_file.h"

struct file {
	uint8_t *bytes;
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_err err;
	int rc;
};

static struct file open_file(struct sites_file_opts opts)
{
	struct file f = {0};
	size_t size;
	f.bytes = sites_file(&opts, &size);
	assert_int_equal(binary_open_mem(f.bytes, size, "file", &f.bin, &f.err), 0);
	f.rc = cairn_btf_sites_open(f.bin, NULL, &f.sites, &f.err);
	return f;
}

static void close_file(struct file *f)
{
	if (f->rc >= 0)
		cairn_sites_close(f->sites);
	cairn_binary_close(f->bin);
	free(f->bytes);
}

static struct file must_open(struct sites_file_opts opts)
{
	struct file f = open_file(opts);
	if (f.rc < 0)
		fail_msg("%s", f.err.msg);
	return f;
}

static const struct cairn_function *must_find(struct file *f, const char *name)
{
	struct cairn_function_list list;
	int rc = cairn_sites_find(f->sites, name, &list, &f->err);
	if (rc != 1)
		fail_msg("%s: %d %s", name, rc, f->err.msg);
	return list.p[0];
}

static void assert_arg(struct file *f, const struct cairn_site *site, uint32_t i, const char *text)
{
	char buf[128];
	cairn_location_text(&site->args[i].loc, cairn_sites_symbol, f->sites, buf, sizeof(buf));
	assert_string_equal(buf, text);
}

static void an_inlined_function_has_its_sites_and_locations(void **state)
{
	static const char *const texts[SITES_FILE_PARAMS] = {
		"%rbx",
		"%rdi-8",
		"{%rdi, %rsi}",
		"const -7",
		"&caller",
		"*(%rsp+0x10)",
		"unavailable: no unwind row gives the frame's address",
		"unavailable: in a register that a probe cannot read",
		"unavailable: partly optimised out",
	};
	struct file f = must_open((struct sites_file_opts){0});
	const struct cairn_function *inl = must_find(&f, "inl");
	assert_int_equal(inl->n_sites, 2);
	assert_int_equal(inl->n_params, SITES_FILE_PARAMS);
	const struct cairn_site *first = &inl->sites[0], *second = &inl->sites[1];
	assert_int_equal(first->at.v, SITES_FILE_FIRST);
	assert_int_equal(second->at.v, SITES_FILE_SECOND);
	assert_int_equal(first->kind, CAIRN_SITE_INLINED);
	assert_int_equal(first->rule, CAIRN_AT_BTF);
	assert_int_equal(first->count_caveats, CAIRN_COUNT_UNKNOWN);
	assert_int_equal(first->hazard, CAIRN_HAZARD_NONE);
	assert_string_equal(first->container, "caller");
	assert_int_equal(first->container_off, SITES_FILE_FIRST - SITES_FILE_CALLER);
	for (uint32_t i = 0; i < SITES_FILE_PARAMS; i++)
		assert_arg(&f, first, i, texts[i]);
	assert_int_equal(second->args[0].loc.why, CAIRN_UNAVAIL_NOT_RECORDED);
	close_file(&f);
}

static void a_body_has_its_arguments_by_the_convention(void **state)
{
	struct file f = must_open((struct sites_file_opts){.comment = "GCC: (x) 12"});
	const struct cairn_function *body = must_find(&f, "body");
	assert_int_equal(body->n_sites, 2);
	assert_int_equal(body->sites[0].kind, CAIRN_SITE_OUT_OF_LINE);
	assert_int_equal(body->sites[0].at.v, SITES_FILE_BODY);
	assert_arg(&f, &body->sites[0], 0, "%rdi");
	assert_arg(&f, &body->sites[0], 1, "%rsi");
	assert_int_equal(body->sites[0].count_caveats, 0);
	assert_int_equal(body->sites[1].kind, CAIRN_SITE_INLINED);
	assert_int_equal(body->sites[1].args[1].loc.why, CAIRN_UNAVAIL_NOT_RECORDED);
	close_file(&f);
}

static void an_argument_that_is_not_used_may_not_be_passed_unless_all_is_gcc(void **state)
{
	static const char *const others[] = {NULL, "clang version 14", "GCC"};
	for (size_t i = 0; i < 3; i++) {
		struct file f = must_open((struct sites_file_opts){.comment = others[i]});
		const struct cairn_site *body = &must_find(&f, "body")->sites[0];
		assert_arg(&f, body, 0, "%rdi");
		assert_int_equal(body->args[1].loc.why, CAIRN_UNAVAIL_MAY_NOT_BE_PASSED);
		close_file(&f);
	}
}

static void without_symbols_inlined_sites_stay(void **state)
{
	struct file f = must_open((struct sites_file_opts){.without_symbols = true});
	const struct cairn_function *inl = must_find(&f, "inl"), *body = must_find(&f, "body");
	assert_int_equal(inl->n_sites, 2);
	assert_null(inl->sites[0].container);
	assert_int_equal(body->n_sites, 1);
	assert_int_equal(body->sites[0].kind, CAIRN_SITE_INLINED);
	struct cairn_function_list list;
	assert_int_equal(cairn_sites_find(f.sites, "caller", &list, &f.err), -ENODATA);
	assert_non_null(strstr(f.err.msg, "No symbol says where"));
	close_file(&f);
}

static int count(void *ctx, const struct cairn_function *f)
{
	*(uint32_t *)ctx += f->n_sites;
	return 0;
}

static void all_are_visited_and_patterns_match(void **state)
{
	struct file f = must_open((struct sites_file_opts){0});
	struct cairn_function_list list;
	uint32_t n = 0;
	assert_int_equal(cairn_sites_visit(f.sites, count, &n, &f.err), 0);
	assert_int_equal(n, 5);
	assert_int_equal(cairn_sites_find(f.sites, "*l*", &list, &f.err), 2);
	assert_int_equal(list.found, CAIRN_FOUND_PATTERN);
	assert_int_equal(cairn_sites_find(f.sites, "nothing", &list, &f.err), 0);
	const char *near[2];
	assert_int_equal(cairn_sites_suggest(f.sites, "bodi", near, 2, &f.err), 1);
	assert_string_equal(near[0], "body");
	close_file(&f);
}

static void an_address_has_the_functions_whose_sites_are_there(void **state)
{
	struct file f = must_open((struct sites_file_opts){0});
	struct cairn_vaddr at = {SITES_FILE_FIRST}, beside = {SITES_FILE_FIRST + 1};
	const char *names[2];
	assert_int_equal(cairn_btf_sites_at(f.sites, at, names, 2, &f.err), 1);
	assert_string_equal(names[0], "inl");
	assert_int_equal(cairn_btf_sites_at(f.sites, at, names, 0, &f.err), 0);
	assert_int_equal(cairn_btf_sites_at(f.sites, beside, names, 2, &f.err), 0);
	close_file(&f);
}

static void what_btf_does_not_record_is_refused(void **state)
{
	struct file f = must_open((struct sites_file_opts){0});
	const struct cairn_scope *scope;
	struct cairn_function_list list;
	struct cairn_vaddr at = {SITES_FILE_FIRST};
	assert_int_equal(cairn_sites_find(f.sites, "x.c:inl", &list, &f.err), -EOPNOTSUPP);
	assert_non_null(strstr(f.err.msg, "inl alone"));
	assert_int_equal(cairn_sites_at(f.sites, at, true, &scope, &f.err), -EOPNOTSUPP);
	close_file(&f);
}

/* ---- what is wrong ---- */

static void assert_refused(struct sites_file_opts opts, int rc, const char *story)
{
	struct file f = open_file(opts);
	assert_int_equal(f.rc, rc);
	if (!strstr(f.err.msg, story))
		fail_msg("not \"%s\": %s", story, f.err.msg);
	close_file(&f);
}

static void a_file_that_lacks_a_part_says_which(void **state)
{
	assert_refused((struct sites_file_opts){.without_sites = true}, -ENODATA,
		       "no .BTF.inline in it");
	assert_refused((struct sites_file_opts){.without_types = true}, -ENODATA,
		       "no BTF with sites");
	/* Which is no link: it has other bytes than tests/cli/test_btf_sites.py makes. */
	assert_refused((struct sites_file_opts){.link = true}, -EBADMSG, "expected 92 bytes");
	assert_refused((struct sites_file_opts){.v1 = true}, -EOPNOTSUPP, "--dialect n");
	assert_refused((struct sites_file_opts){.label = ".init.text"}, -EBADMSG,
		       "no section of code");
}

static void another_base_is_seen(void **state)
{
	struct file f = open_file((struct sites_file_opts){.other_base = true});
	assert_int_equal(f.rc, -EBADMSG);
	close_file(&f);
}

static void assert_damaged(struct sites_file_opts opts, const char *story)
{
	struct file f = must_open(opts);
	struct cairn_function_list list;
	uint32_t n = 0;
	int rc = cairn_sites_find(f.sites, "inl", &list, &f.err);
	if (rc != -EBADMSG || !strstr(f.err.msg, story))
		fail_msg("not \"%s\": %d %s", story, rc, f.err.msg);
	assert_int_equal(cairn_sites_visit(f.sites, count, &n, &f.err), -EBADMSG);
	close_file(&f);
}

static void damaged_sites_are_refused_when_they_are_read(void **state)
{
	assert_damaged((struct sites_file_opts){.past_end = 1 << 20}, "beyond the end of .text");
	assert_damaged((struct sites_file_opts){.wrong_proto = true}, "no LOC_PROTO");
	assert_damaged((struct sites_file_opts){.many_slots = true}, "more locations");
}

static void a_site_of_no_function_is_damage(void **state)
{
	struct file f = must_open((struct sites_file_opts){.wrong_func = true});
	struct cairn_vaddr at = {SITES_FILE_FIRST};
	const char *name;
	assert_int_equal(cairn_btf_sites_at(f.sites, at, &name, 1, &f.err), -EBADMSG);
	assert_int_equal(must_find(&f, "inl")->n_sites, 1);
	close_file(&f);
}

static void the_label_may_have_inline_before_it(void **state)
{
	struct file f = must_open((struct sites_file_opts){.label = "inline.text"});
	assert_int_equal(must_find(&f, "inl")->n_sites, 2);
	close_file(&f);
}

static void a_cut_section_is_an_error_at_every_byte(void **state)
{
	size_t n = sites_file_inline_size(), n_types = sites_file_types_size();
	for (size_t cut = 1; cut <= n; cut++) {
		struct file f = open_file((struct sites_file_opts){.cut = cut});
		assert_true(f.rc == -EBADMSG || f.rc == -ENODATA);
		assert_true(f.err.msg[0]);
		close_file(&f);
	}
	for (size_t cut = 1; cut <= n_types; cut++) {
		struct file f = open_file((struct sites_file_opts){.cut_types = cut});
		assert_true(f.rc == -EBADMSG || f.rc == -ENODATA);
		close_file(&f);
	}
}

static int ask_all(const struct cairn_binary *bin)
{
	struct cairn_sites *sites;
	struct cairn_function_list list;
	uint32_t n = 0;
	int rc = cairn_btf_sites_open(bin, NULL, &sites, NULL);
	if (rc < 0)
		return rc;
	rc = cairn_sites_find(sites, "body", &list, NULL);
	if (rc >= 0)
		rc = cairn_sites_find(sites, "*l*", &list, NULL);
	if (rc >= 0)
		rc = cairn_sites_visit(sites, count, &n, NULL);
	cairn_sites_close(sites);
	return rc;
}

static void every_allocation_may_fail(void **state)
{
	struct sites_file_opts opts = {.comment = "clang"};
	size_t size;
	uint8_t *bytes = sites_file(&opts, &size);
	unsigned int n = 1;
	for (bool has_failed = true; has_failed; n++) {
		struct cairn_binary *bin;
		assert_int_equal(binary_open_mem(bytes, size, "file", &bin, NULL), 0);
		alloc_fail_at(n);
		int rc = ask_all(bin);
		has_failed = alloc_fail_end();
		/* An answer that is kept for the next question is found anew then. */
		assert_true(rc == -ENOMEM || rc == 0);
		cairn_binary_close(bin);
	}
	assert_true(n > 20);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_inlined_function_has_its_sites_and_locations),
		cmocka_unit_test(a_body_has_its_arguments_by_the_convention),
		cmocka_unit_test(an_argument_that_is_not_used_may_not_be_passed_unless_all_is_gcc),
		cmocka_unit_test(without_symbols_inlined_sites_stay),
		cmocka_unit_test(all_are_visited_and_patterns_match),
		cmocka_unit_test(an_address_has_the_functions_whose_sites_are_there),
		cmocka_unit_test(what_btf_does_not_record_is_refused),
		cmocka_unit_test(a_file_that_lacks_a_part_says_which),
		cmocka_unit_test(another_base_is_seen),
		cmocka_unit_test(damaged_sites_are_refused_when_they_are_read),
		cmocka_unit_test(a_site_of_no_function_is_damage),
		cmocka_unit_test(the_label_may_have_inline_before_it),
		cmocka_unit_test(a_cut_section_is_an_error_at_every_byte),
		cmocka_unit_test(every_allocation_may_fail),
	};
	return cmocka_run_group_tests_name("btf_sites", tests, NULL, NULL);
}
