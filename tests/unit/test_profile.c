/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles: the model, what formats keep of it, and damaged input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/profile.h>

#include "alloc_fail.h"
#include "export/gzip.h"
#include "export/profile_impl.h"

static const struct cairn_profile_type two_types[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};

/* ---- a profile with everything in it ---- */

/* 0, or the first failure. */
static int fill(struct cairn_profile *p)
{
	struct cairn_profile_mapping maps[] = {
		{0x400000, 0x500000, 0x1000, "/usr/bin/prog", "ab12", CAIRN_PROFILE_USER},
		{0xffff0000, 0xffffff00, 0, "[kernel.kallsyms]", NULL, CAIRN_PROFILE_KERNEL},
		{0x7f0000, 0x7f1000, 0, "[jit]", NULL, CAIRN_PROFILE_JIT}};
	struct cairn_profile_function functions[] = {
		{"main", "main", "main.c", 10},
		{"put", "put", "put.c", 3},
		{"a::f(int)", "_ZN1a1fEi", "a;b.cc", 7},
		{"do_sys_open", NULL, NULL, 0},
		{"\xff bad\n", NULL, "", 0},
	};
	uint32_t m[3], f[5], l[5];
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < 3; i++)
		rc = cairn_profile_add_mapping(p, &maps[i], &m[i], NULL);
	for (size_t i = 0; rc == 0 && i < 5; i++)
		rc = cairn_profile_add_function(p, &functions[i], &f[i], NULL);
	if (rc < 0)
		return rc;
	struct cairn_profile_line lines[] = {
		{f[1], 4}, {f[0], 12}, {f[2], 9}, {f[3], 0}, {f[4], 0}};
	struct cairn_profile_location locations[] = {
		{0x400123, m[0], lines, 2}, /* put() inlined into main() */
		{0x400200, m[0], lines + 2, 1}, {0xffff0010, m[1], lines + 3, 1},
		{0x7f0010, m[2], lines + 4, 1}, {0x400777, m[0], NULL, 0}, /* in no function */
	};
	for (size_t i = 0; rc == 0 && i < 5; i++)
		rc = cairn_profile_add_location(p, &locations[i], &l[i], NULL);
	if (rc < 0)
		return rc;
	uint32_t stacks[][3] = {{l[0], l[1], l[0]}, {l[2], l[4], l[1]}, {l[3], l[1], l[1]}};
	int64_t values[][2] = {{61, 610}, {5, 50}, {-3, 30}};
	struct cairn_profile_label labels[] = {{"thread", "worker", 0, ""},
					       {"bytes", "", 4096, "bytes"}};
	for (size_t i = 0; rc == 0 && i < 6; i++) {
		struct cairn_profile_sample s = {stacks[i % 3], 3, values[i % 3], labels, i % 3};

		rc = cairn_profile_add_sample(p, &s, NULL);
	}
	return rc == 0 ? cairn_profile_set_run(p,
					       &(struct cairn_profile_run){
						       1000, 2000, {"cpu", "nanoseconds"}, 10},
					       NULL)
		       : rc;
}

static struct cairn_profile *sample(void)
{
	struct cairn_profile *p;

	assert_int_equal(cairn_profile_new(two_types, 2, &p, NULL), 0);
	assert_int_equal(fill(p), 0);
	return p;
}

/* ---- comparing everything ---- */

static void same_location(const struct cairn_profile *a, uint32_t x, const struct cairn_profile *b,
			  uint32_t y)
{
	const struct cairn_profile_location *l = cairn_profile_location(a, x),
					    *k = cairn_profile_location(b, y);
	const struct cairn_profile_mapping *m = cairn_profile_mapping(a, l->mapping),
					   *n = cairn_profile_mapping(b, k->mapping);

	assert_int_equal(l->address, k->address);
	assert_string_equal(m->path, n->path);
	assert_string_equal(m->build_id, n->build_id);
	assert_true(m->start == n->start && m->limit == n->limit && m->offset == n->offset &&
		    m->code == n->code);
	assert_int_equal(l->n_lines, k->n_lines);
	for (size_t i = 0; i < l->n_lines; i++) {
		const struct cairn_profile_function *f =
			cairn_profile_function(a, l->lines[i].function);
		const struct cairn_profile_function *g =
			cairn_profile_function(b, k->lines[i].function);

		assert_int_equal(l->lines[i].line, k->lines[i].line);
		assert_int_equal(f->line, g->line);
		assert_string_equal(f->file, g->file);
		/* Bytes that are no UTF-8 are U+FFFD then. */
		if (f->name[0] == '\xff' && g->name[0] != '\xff')
			assert_string_equal("\xef\xbf\xbd bad\n", g->name);
		else
			assert_string_equal(f->name, g->name);
	}
}

static void same_sample_at(const struct cairn_profile *a, size_t i, const struct cairn_profile *b,
			   size_t j)
{
	struct cairn_profile_sample s = cairn_profile_sample(a, i), t = cairn_profile_sample(b, j);

	assert_int_equal(s.n_stack, t.n_stack);
	for (size_t k = 0; k < s.n_stack; k++)
		same_location(a, s.stack[k], b, t.stack[k]);
	assert_memory_equal(s.values, t.values, cairn_profile_n_types(a) * sizeof(*s.values));
	assert_int_equal(s.n_labels, t.n_labels);
	for (size_t k = 0; k < s.n_labels; k++) {
		assert_string_equal(s.labels[k].key, t.labels[k].key);
		assert_string_equal(s.labels[k].text, t.labels[k].text);
		assert_string_equal(s.labels[k].unit, t.labels[k].unit);
		assert_int_equal(s.labels[k].number, t.labels[k].number);
	}
}

static void same_sample(const struct cairn_profile *a, const struct cairn_profile *b, size_t i)
{
	same_sample_at(a, i, b, i);
}

static void pprof_keeps_everything(void **state)
{
	struct cairn_profile *p = sample(), *again;
	struct cairn_profile_bytes bytes;

	assert_int_equal(cairn_profile_pprof(p, &bytes, NULL), 0);
	assert_int_equal(cairn_profile_read(bytes.bytes, bytes.size, "x", &again, NULL), 0);
	assert_int_equal(cairn_profile_n_samples(p), 3);
	assert_int_equal(cairn_profile_n_samples(again), 3);
	assert_int_equal(cairn_profile_n_types(again), 2);
	assert_string_equal(cairn_profile_type(again, 1)->unit, "nanoseconds");
	for (size_t i = 0; i < 3; i++)
		same_sample(p, again, i);
	struct cairn_profile_run run = cairn_profile_run(again);
	assert_true(run.time_ns == 1000 && run.duration_ns == 2000 && run.period == 10);
	assert_string_equal(run.each.type, "cpu");
	free(bytes.bytes);
	cairn_profile_close(again);
	cairn_profile_close(p);
}

static void equal_stacks_are_one_sample_and_values_add_up(void **state)
{
	struct cairn_profile *p = sample();

	assert_int_equal(cairn_profile_sample(p, 0).values[0], 122);
	assert_int_equal(cairn_profile_sample(p, 0).values[1], 1220);
	assert_int_equal(cairn_profile_sample(p, 2).values[0], -6);
	cairn_profile_close(p);
}

static const char folded[] = "a::f(int);a::f(int);? bad?_[j] 60\n"
			     "a::f(int);prog+0x1777;do_sys_open_[k] 100\n"
			     "main;put_[i];a::f(int);main;put_[i] 1220\n";

static void folded_stacks_are_those_of_the_samples(void **state)
{
	struct cairn_profile *p = sample(), *again;
	struct cairn_profile_bytes bytes, once_more;

	assert_int_equal(cairn_profile_folded(p, 1, &bytes, NULL), 0);
	assert_string_equal(bytes.bytes, folded);
	assert_int_equal(cairn_profile_folded(p, 2, &once_more, NULL), -EINVAL);
	assert_int_equal(cairn_profile_read(bytes.bytes, bytes.size, "x", &again, NULL), 0);
	assert_int_equal(cairn_profile_folded(again, 0, &once_more, NULL), 0);
	assert_string_equal(once_more.bytes, folded);
	free(bytes.bytes);
	free(once_more.bytes);
	cairn_profile_close(again);
	cairn_profile_close(p);
}

static void shares_count_recursion_once(void **state)
{
	struct cairn_profile *p = sample();
	struct cairn_profile_shares s;

	assert_int_equal(cairn_profile_shares(p, 1, &s, NULL), 0);
	assert_int_equal(s.sum, 1220 + 100 + 60);
	assert_int_equal(s.n, 6);
	assert_string_equal(s.list[0].function, "put");
	assert_true(s.list[0].self == 1220 && s.list[0].total == 1220 && s.list[0].inlined == 1220);
	assert_string_equal(s.list[1].function, "do_sys_open");
	assert_int_equal(s.list[1].code, CAIRN_PROFILE_KERNEL);
	for (size_t i = 0; i < s.n; i++)
		if (!strcmp(s.list[i].function, "a::f(int)"))
			assert_true(s.list[i].self == 0 && s.list[i].total == s.sum);
	cairn_profile_shares_free(&s);
	assert_int_equal(cairn_profile_shares(p, 2, &s, NULL), -EINVAL);
	cairn_profile_close(p);
}

static void add_of_thread(struct cairn_profile *p, const char *name, int64_t tid, int64_t value)
{
	struct cairn_profile_label labels[] = {{.key = "tid", .number = tid},
					       {.key = "thread", .text = name}};
	int64_t values[] = {value, 1};
	struct cairn_profile_sample s = {.values = values, .labels = labels, .n_labels = 2};

	assert_int_equal(cairn_profile_add_sample(p, &s, NULL), 0);
}

static void threads_are_counted_by_their_names(void **state)
{
	struct cairn_profile *p;
	struct cairn_profile_sample nobody = {.values = (int64_t[]){7, 1}};
	struct cairn_profile_thread *list;
	size_t n;

	assert_int_equal(cairn_profile_new(two_types, 2, &p, NULL), 0);
	assert_int_equal(cairn_profile_threads(p, 0, &list, &n, NULL), 0);
	assert_true(!list && !n);
	add_of_thread(p, "worker", 3, 10);
	add_of_thread(p, "worker", 4, 20);
	add_of_thread(p, "main", 2, 30);
	add_of_thread(p, "worker", 3, 5);
	add_of_thread(p, "worker", INT32_MAX, 6);
	/* Renamed. */
	add_of_thread(p, "main", 4, 1);
	assert_int_equal(cairn_profile_add_sample(p, &nobody, NULL), 0);
	assert_int_equal(cairn_profile_threads(p, 0, &list, &n, NULL), 0);
	assert_int_equal(n, 3);
	assert_string_equal(list[0].name, "worker");
	assert_true(list[0].self == 41 && list[0].n_threads == 3);
	assert_string_equal(list[1].name, "main");
	assert_true(list[1].self == 31 && list[1].n_threads == 2);
	assert_string_equal(list[2].name, "");
	assert_true(list[2].self == 7 && list[2].n_threads == 0);
	free(list);
	assert_int_equal(cairn_profile_threads(p, 2, &list, &n, NULL), -EINVAL);
	assert_null(list);
	cairn_profile_close(p);
}

static void sums_beyond_64_bits_are_refused(void **state)
{
	int64_t half[] = {INT64_MAX / 2 + 1, 1};
	struct cairn_profile_sample s = {.values = half};
	struct cairn_profile *p;

	assert_int_equal(cairn_profile_new(two_types, 2, &p, NULL), 0);
	assert_int_equal(cairn_profile_add_sample(p, &s, NULL), 0);
	assert_int_equal(cairn_profile_add_sample(p, &s, NULL), -ERANGE);
	/* Nothing of the second was added. */
	assert_int_equal(cairn_profile_sample(p, 0).values[0], half[0]);
	assert_int_equal(cairn_profile_sample(p, 0).values[1], 1);
	cairn_profile_close(p);
}

static void what_does_not_exist_is_refused(void **state)
{
	struct cairn_profile *p = sample();
	int64_t values[2] = {1, 1};
	uint32_t id = cairn_profile_n_locations(p);
	struct cairn_profile_sample s = {&id, 1, values, NULL, 0};
	struct cairn_profile_line line = {99, 0};
	struct cairn_profile_location l = {0, 99, NULL, 0}, k = {0, 1, &line, 1};

	assert_int_equal(cairn_profile_add_sample(p, &s, NULL), -EINVAL);
	assert_int_equal(cairn_profile_add_location(p, &l, &id, NULL), -EINVAL);
	assert_int_equal(cairn_profile_add_location(p, &k, &id, NULL), -EINVAL);
	assert_null(cairn_profile_function(p, 0));
	assert_null(cairn_profile_location(p, 99));
	assert_int_equal(cairn_profile_sample(p, 99).n_stack, 0);
	cairn_profile_close(p);
	assert_int_equal(cairn_profile_new(two_types, 0, &p, NULL), -EINVAL);
	assert_int_equal(cairn_profile_new(two_types, 65, &p, NULL), -EINVAL);
}

/* ---- damaged input ---- */

static void cut_input_is_refused_or_shorter(void **state)
{
	struct cairn_profile *p = sample(), *cut;
	struct cairn_profile_bytes bytes;
	uint8_t *plain;
	size_t n, n_whole = 0;

	assert_int_equal(cairn_profile_pprof(p, &bytes, NULL), 0);
	assert_int_equal(gzip_inflate(bytes.bytes, bytes.size, "x", &plain, &n, NULL), 0);
	for (size_t i = 0; i < bytes.size; i++)
		assert_int_equal(cairn_profile_read(bytes.bytes, i, "x", &cut, NULL), -EBADMSG);
	for (size_t i = 0; i < n; i++) {
		uint8_t *copy = malloc(i ? i : 1);
		memcpy(copy, plain, i);
		int rc = cairn_profile_read(copy, i, "x", &cut, NULL);
		free(copy);
		/* A cut between two messages leaves a smaller profile. */
		assert_true(rc == -EBADMSG || rc == 0);
		n_whole += rc == 0;
		cairn_profile_close(cut);
	}
	assert_true(n_whole < n / 4);
	free(plain);
	free(bytes.bytes);
	cairn_profile_close(p);
}

static void cut_folded_stacks_are_refused_or_shorter(void **state)
{
	for (size_t i = 0; i < sizeof(folded) - 1; i++) {
		struct cairn_err err = {0};
		struct cairn_profile *p;
		int rc = cairn_profile_read(folded, i, "x", &p, &err);

		assert_true(rc == 0 || (rc == -EBADMSG && err.code == rc));
		cairn_profile_close(p);
	}
}

static void what_is_no_profile_is_refused(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"", "empty"},
		{"\x7f"
		 "ELF\x02\x01\x01",
		 "neither"},
		{"main;f 12x\n", "x:1: not a stack and a number"},
		{"main;f 12\nmain\n", "x:2: not a stack and a number"},
		{"main;f 99999999999999999999\n", "x:1:"},
		{"\x1f\x8b\x08 not gzip", "gzip data are damaged"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_err err = {0};
		struct cairn_profile *p;

		assert_int_equal(
			cairn_profile_read(cases[i].text, strlen(cases[i].text), "x", &p, &err),
			-EBADMSG);
		if (!strstr(err.msg, cases[i].says))
			fail_msg("%s", err.msg);
	}
}

static void a_line_with_nul_is_refused(void **state)
{
	static const char text[] = "main;f 1\nmain;\0g 1\n";
	struct cairn_err err = {0};
	struct cairn_profile *p;

	assert_int_equal(cairn_profile_read(text, sizeof(text) - 1, "x", &p, &err), -EBADMSG);
	assert_non_null(strstr(err.msg, "x:2:"));
}

static void memory_that_is_not_there_is_said(void **state)
{
	struct cairn_profile *whole = sample();
	struct cairn_profile_bytes bytes;
	bool failed = true;
	unsigned int n = 0;

	assert_int_equal(cairn_profile_pprof(whole, &bytes, NULL), 0);
	while (failed) {
		struct cairn_profile *p = NULL;
		struct cairn_profile_bytes out = {0}, text = {0}, html = {0};
		struct cairn_profile_shares shares = {0};
		struct cairn_profile_thread *threads = NULL;
		size_t n_threads;
		alloc_fail_at(++n);
		int rc = cairn_profile_read(bytes.bytes, bytes.size, "x", &p, NULL);
		if (rc == 0)
			rc = cairn_profile_pprof(p, &out, NULL);
		if (rc == 0)
			rc = cairn_profile_folded(p, 0, &text, NULL);
		if (rc == 0)
			rc = cairn_profile_html(p, 0, "x", &html, NULL);
		if (rc == 0)
			rc = cairn_profile_shares(p, 0, &shares, NULL);
		if (rc == 0)
			rc = cairn_profile_threads(p, 0, &threads, &n_threads, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		cairn_profile_shares_free(&shares);
		free(threads);
		free(out.bytes);
		free(text.bytes);
		free(html.bytes);
		cairn_profile_close(p);
	}
	assert_true(n > 30);
	free(bytes.bytes);
	cairn_profile_close(whole);
}

/* ---- moments ---- */

/* Of the sample that fill() adds last; the first one is the later one. */
static int add_moments(struct cairn_profile *p)
{
	int64_t values[][2] = {{-2, 20}, {-1, 15}};
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < 2; i++)
		rc = cairn_profile_add_moment(
			p,
			&(struct cairn_profile_moment){.time_ns = i ? -500 : 1500,
						       .cpu = i ? UINT32_MAX : 3,
						       .values = values[i]},
			NULL);
	return rc;
}

static void a_sample_has_the_moments_that_followed_it(void **state)
{
	struct cairn_profile *p, *whole = sample();
	int64_t values[2] = {1, 1};
	struct cairn_profile_moment m = {.values = values};

	assert_int_equal(cairn_profile_new(two_types, 2, &p, NULL), 0);
	assert_int_equal(cairn_profile_add_moment(p, &m, NULL), -EINVAL);
	assert_int_equal(cairn_profile_n_moments(p), 0);
	cairn_profile_close(p);
	assert_int_equal(add_moments(whole), 0);
	assert_int_equal(cairn_profile_n_moments(whole), 2);
	m = cairn_profile_moment(whole, 0);
	/* fill() adds each of three samples twice. */
	assert_true(m.sample == 2 && m.time_ns == 1500 && m.cpu == 3);
	assert_true(m.values[0] == -2 && m.values[1] == 20);
	assert_null(cairn_profile_moment(whole, 2).values);
	cairn_profile_close(whole);
}

/* ---- parts ---- */

static void a_part_has_its_samples_and_what_they_refer_to(void **state)
{
	struct cairn_profile *whole = sample(), *part;
	struct cairn_err err;

	assert_int_equal(add_moments(whole), 0);
	for (size_t first = 0; first <= 3; first++)
		for (size_t n = 0; first + n <= 3; n++) {
			assert_int_equal(cairn_profile_part(whole, first, n, &part, &err), 0);
			assert_int_equal(cairn_profile_n_samples(part), n);
			for (size_t i = 0; i < n; i++)
				same_sample_at(whole, first + i, part, i);
			assert_int_equal(cairn_profile_n_moments(part),
					 first + n == 3 && n ? 2 : 0);
			assert_int_equal(cairn_profile_run(part).period, 10);
			cairn_profile_close(part);
		}
	/* The first sample is in main() and what it called; the kernel is of another one. */
	assert_int_equal(cairn_profile_part(whole, 0, 1, &part, &err), 0);
	assert_int_equal(cairn_profile_n_locations(part), 2);
	assert_null(cairn_profile_mapping(part, 2));
	assert_null(cairn_profile_function(part, 4));
	cairn_profile_close(part);
	assert_int_equal(cairn_profile_part(whole, 2, 2, &part, &err), -EINVAL);
	assert_int_equal(cairn_profile_part(whole, 1, SIZE_MAX, &part, &err), -EINVAL);
	assert_null(part);
	cairn_profile_close(whole);
}

static void a_moment_of_a_part_is_that_of_its_sample(void **state)
{
	struct cairn_profile *whole = sample(), *part;

	assert_int_equal(add_moments(whole), 0);
	assert_int_equal(cairn_profile_part(whole, 1, 2, &part, NULL), 0);
	struct cairn_profile_moment first = cairn_profile_moment(part, 0),
				    second = cairn_profile_moment(part, 1);
	assert_true(first.sample == 1 && first.time_ns == 1500 && first.cpu == 3);
	assert_true(first.values[0] == -2 && second.values[1] == 15 && second.time_ns == -500);
	cairn_profile_close(part);
	cairn_profile_close(whole);
}

static void a_part_without_memory_is_said(void **state)
{
	struct cairn_profile *whole = sample();
	bool failed = true;

	assert_int_equal(add_moments(whole), 0);
	for (unsigned int n = 1; failed; n++) {
		struct cairn_profile *part;
		alloc_fail_at(n);
		int rc = cairn_profile_part(whole, 0, 3, &part, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		assert_true((part == NULL) == failed);
		cairn_profile_close(part);
	}
	cairn_profile_close(whole);
}

/* Each moment has its time; the rest of the values comes last, by sample. */
static void records_have_all_of_the_values(void **state)
{
	static const struct profile_record expected[] = {{2, UINT32_MAX, -500, 15, true},
							 {2, 3, 1500, 20, true},
							 {0, UINT32_MAX, 0, 1220, false},
							 {1, UINT32_MAX, 0, 100, false},
							 {2, UINT32_MAX, 0, 25, false}};
	struct cairn_profile *p = sample();
	struct profile_records r;

	assert_int_equal(add_moments(p), 0);
	assert_int_equal(profile_records(p, 1, &r, NULL), 0);
	assert_int_equal(r.n, 5);
	assert_int_equal(r.n_without_time, 3);
	for (size_t i = 0; i < r.n; i++) {
		const struct profile_record *a = &r.list[i], *b = &expected[i];

		assert_true(a->sample == b->sample && a->cpu == b->cpu && a->time_ns == b->time_ns);
		assert_true(a->value == b->value && a->has_time == b->has_time);
	}
	free(r.list);
	cairn_profile_close(p);
}

static void a_moment_larger_than_its_sample_leaves_a_negative_rest(void **state)
{
	struct cairn_profile *p = sample();
	struct cairn_profile_bytes out;
	struct profile_records r;
	int64_t values[2] = {INT64_MAX, INT64_MIN};
	struct cairn_profile_moment m = {.values = values};

	assert_int_equal(cairn_profile_add_moment(p, &m, NULL), 0);
	assert_int_equal(profile_records(p, 0, &r, NULL), -ERANGE);
	assert_int_equal(cairn_profile_firefox(p, 1, "x", true, &out, NULL), -ERANGE);
	assert_null(out.bytes);
	values[0] = 6;
	cairn_profile_close(p);
	p = sample();
	assert_int_equal(cairn_profile_add_moment(p, &m, NULL), 0);
	assert_int_equal(profile_records(p, 0, &r, NULL), 0);
	assert_true(r.n == 4 && r.list[0].value == 6 && r.list[3].value == -12);
	free(r.list);
	cairn_profile_close(p);
}

static void times_without_memory_are_said(void **state)
{
	unsigned int n = 0;
	bool failed;

	do {
		struct cairn_profile *p = sample();
		struct cairn_profile_bytes out = {0};
		struct cairn_profile_ctf ctf = {0};
		int rc;

		alloc_fail_at(++n);
		rc = add_moments(p);
		if (rc == 0)
			rc = cairn_profile_firefox(p, 1, "x", true, &out, NULL);
		if (rc == 0)
			rc = cairn_profile_ctf(p, 1, "x", &ctf, NULL);
		failed = alloc_fail_end();
		assert_int_equal(rc, failed ? -ENOMEM : 0);
		assert_true(failed ? !ctf.stream.bytes && !ctf.metadata.bytes
				   : out.size > 100 && ctf.stream.size > 100);
		cairn_profile_ctf_free(&ctf);
		free(out.bytes);
		cairn_profile_close(p);
	} while (failed);
	assert_true(n > 20);
}

/* ---- requests to servers ---- */

static int request(const struct cairn_profile *p, enum cairn_profile_server to, const char *key,
		   const char *text, struct cairn_profile_bytes *ret, struct cairn_err *err)
{
	struct cairn_profile_label labels[] = {{.key = "a", .text = "1"},
					       {.key = key, .text = text}};
	struct cairn_profile_push push = {.to = to,
					  .labels = labels,
					  .n_labels = 2,
					  .id = "01234567-89ab-4def-8123-456789ABCDEF"};

	return cairn_profile_push_request(p, &push, ret, err);
}

static void a_request_without_memory_is_said(void **state)
{
	static const enum cairn_profile_server servers[] = {
		CAIRN_PROFILE_PYROSCOPE, CAIRN_PROFILE_PARCA, CAIRN_PROFILE_OTLP};
	struct cairn_profile *p = sample();

	assert_int_equal(add_moments(p), 0);
	for (size_t i = 0; i < 3; i++) {
		bool failed = true;
		unsigned int n = 0;

		while (failed) {
			struct cairn_profile_bytes out;

			alloc_fail_at(++n);
			int rc = request(p, servers[i], "b", "2", &out, NULL);
			failed = alloc_fail_end();
			assert_int_equal(rc, failed ? -ENOMEM : 0);
			assert_true(failed ? !out.bytes : out.size > 100);
			free(out.bytes);
		}
		assert_true(n > 5);
	}
	cairn_profile_close(p);
}

static void labels_that_servers_refuse_are_refused(void **state)
{
	static const struct {
		const char *key, *text;
	} bad[] = {{"", "x"}, {"1a", "x"}, {"a-b", "x"}, {"a\nb", "x"}, {"a", "x"}, {"b", "\xff"}};
	struct cairn_profile *p = sample(), *empty;
	struct cairn_profile_bytes out;
	struct cairn_err err;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(
			request(p, CAIRN_PROFILE_PARCA, bad[i].key, bad[i].text, &out, &err),
			-EINVAL);
		assert_null(out.bytes);
	}
	assert_int_equal(cairn_profile_new(two_types, 2, &empty, NULL), 0);
	assert_int_equal(request(empty, CAIRN_PROFILE_PARCA, "b", "x", &out, &err), -ENODATA);
	cairn_profile_close(empty);
	cairn_profile_close(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_without_memory_is_said),
		cmocka_unit_test(labels_that_servers_refuse_are_refused),
		cmocka_unit_test(pprof_keeps_everything),
		cmocka_unit_test(equal_stacks_are_one_sample_and_values_add_up),
		cmocka_unit_test(folded_stacks_are_those_of_the_samples),
		cmocka_unit_test(shares_count_recursion_once),
		cmocka_unit_test(threads_are_counted_by_their_names),
		cmocka_unit_test(sums_beyond_64_bits_are_refused),
		cmocka_unit_test(what_does_not_exist_is_refused),
		cmocka_unit_test(cut_input_is_refused_or_shorter),
		cmocka_unit_test(cut_folded_stacks_are_refused_or_shorter),
		cmocka_unit_test(what_is_no_profile_is_refused),
		cmocka_unit_test(a_line_with_nul_is_refused),
		cmocka_unit_test(memory_that_is_not_there_is_said),
		cmocka_unit_test(a_sample_has_the_moments_that_followed_it),
		cmocka_unit_test(a_part_has_its_samples_and_what_they_refer_to),
		cmocka_unit_test(a_moment_of_a_part_is_that_of_its_sample),
		cmocka_unit_test(a_part_without_memory_is_said),
		cmocka_unit_test(records_have_all_of_the_values),
		cmocka_unit_test(a_moment_larger_than_its_sample_leaves_a_negative_rest),
		cmocka_unit_test(times_without_memory_are_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
