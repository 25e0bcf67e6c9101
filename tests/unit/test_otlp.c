/* SPDX-License-Identifier: BSD-2-Clause */
/* OTLP: the times and ids of requests, their limits, and what is read of answers. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <cairn/profile.h>

#include "alloc_fail.h"
#include "export/gzip.h"
#include "otlp.pb-c.h"

#define ID "01234567-89ab-4def-8123-456789ABCDEF"

typedef CairnOtlp__ExportProfilesServiceRequest pb_request;
typedef CairnOtlp__Profile pb_profile;
typedef CairnOtlp__Sample pb_sample;

static const struct cairn_profile_type types[] = {{"samples", "count"}, {"off-cpu", "ns"}};

/* Two samples of different processes on one stack; the second has two moments and a rest. */
static struct cairn_profile *profile(int64_t second_pid)
{
	struct cairn_profile_run run = {.time_ns = 5000, .each = {"cpu", "ns"}, .period = 7};
	int64_t values[2] = {3, 30}, one[2] = {1, 10}, pids[2] = {12, second_pid};
	uint32_t location;
	struct cairn_profile *p;

	assert_int_equal(cairn_profile_new(types, 2, &p, NULL), 0);
	assert_int_equal(cairn_profile_set_run(p, &run, NULL), 0);
	assert_int_equal(cairn_profile_add_location(p,
						    &(struct cairn_profile_location){.address = 1},
						    &location, NULL),
			 0);
	for (size_t i = 0; i < 2; i++) {
		struct cairn_profile_label labels[] = {{.key = "pid", .number = pids[i]},
						       {.key = "k", .text = "v"},
						       {.key = "k", .number = (int64_t)i + 5}};
		struct cairn_profile_sample s = {&location, 1, values, labels, 3};

		assert_int_equal(cairn_profile_add_sample(p, &s, NULL), 0);
	}
	for (int64_t at = 100; at <= 200; at += 100)
		assert_int_equal(
			cairn_profile_add_moment(
				p, &(struct cairn_profile_moment){.time_ns = at, .values = one},
				NULL),
			0);
	return p;
}

static int make(const struct cairn_profile *p, const char *id, struct cairn_profile_bytes *ret,
		struct cairn_err *err)
{
	struct cairn_profile_label labels[] = {{.key = "service_name", .text = "shop"},
					       {.key = "node", .text = "h"},
					       {.key = "deployment.environment.name", .text = "x"}};
	struct cairn_profile_push push = {.to = CAIRN_PROFILE_OTLP,
					  .labels = labels,
					  .n_labels = 3,
					  .id = id,
					  .version = "1"};

	return cairn_profile_push_request(p, &push, ret, err);
}

static pb_request *request(const struct cairn_profile *p)
{
	struct cairn_profile_bytes bytes;
	pb_request *r;
	uint8_t *plain;
	size_t n;

	assert_int_equal(make(p, ID, &bytes, NULL), 0);
	assert_int_equal(gzip_inflate(bytes.bytes, bytes.size, "x", &plain, &n, NULL), 0);
	r = cairn_otlp__export_profiles_service_request__unpack(NULL, n, plain);
	assert_non_null(r);
	free(plain);
	free(bytes.bytes);
	return r;
}

static void release(pb_request *r)
{
	cairn_otlp__export_profiles_service_request__free_unpacked(r, NULL);
}

static const char *text(const pb_request *r, int32_t at)
{
	assert_true(at >= 0 && (size_t)at < r->dictionary->n_string_table);
	return r->dictionary->string_table[at];
}

static pb_profile *profile_of(const pb_request *r, size_t i)
{
	assert_true(i < r->resource_profiles[0]->scope_profiles[0]->n_profiles);
	return r->resource_profiles[0]->scope_profiles[0]->profiles[i];
}

/* ---- requests ---- */

static void each_type_has_a_profile_the_last_one_first(void **state)
{
	static const uint8_t id[16] = {0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0x4d, 0xef,
				       0x81, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef};
	struct cairn_profile *p = profile(12);
	pb_request *r = request(p);

	assert_int_equal(r->resource_profiles[0]->scope_profiles[0]->n_profiles, 2);
	assert_string_equal(text(r, profile_of(r, 0)->sample_type->type_strindex), "off_cpu");
	assert_string_equal(text(r, profile_of(r, 1)->sample_type->type_strindex), "samples");
	for (size_t i = 0; i < 2; i++) {
		const pb_profile *one = profile_of(r, i);

		assert_true(one->time_unix_nano == 5000 && one->period == 7);
		assert_string_equal(text(r, one->period_type->unit_strindex), "ns");
		assert_int_equal(one->profile_id.len, 16);
		assert_memory_equal(one->profile_id.data, id, 15);
	}
	assert_int_equal(profile_of(r, 0)->profile_id.data[15], 0xef);
	assert_int_not_equal(profile_of(r, 1)->profile_id.data[15], 0xef);
	release(r);
	cairn_profile_close(p);
}

static void moments_are_times_and_the_rest_has_none(void **state)
{
	static const int64_t value[] = {10, 1};
	struct cairn_profile *p = profile(13);
	pb_request *r = request(p);

	for (size_t i = 0; i < 2; i++) {
		pb_profile *one = profile_of(r, i);
		pb_sample *const *s = one->samples;

		assert_int_equal(one->n_samples, 3);
		assert_true(s[0]->n_values == 1 && s[0]->n_timestamps_unix_nano == 0);
		assert_int_equal(s[0]->values[0], 3 * value[i]);
		assert_true(s[1]->n_values == 2 && s[1]->n_timestamps_unix_nano == 2);
		assert_true(s[1]->timestamps_unix_nano[0] == 5100 &&
			    s[1]->timestamps_unix_nano[1] == 5200);
		assert_true(s[1]->values[0] == value[i] && s[1]->values[1] == value[i]);
		assert_true(s[2]->n_values == 1 && s[2]->n_timestamps_unix_nano == 0);
		assert_int_equal(s[2]->values[0], value[i]);
		assert_int_equal(s[1]->stack_index, s[2]->stack_index);
	}
	release(r);
	cairn_profile_close(p);
}

/* 0: there is none. */
static int64_t resource_pid(const pb_request *r)
{
	const CairnOtlp__Resource *resource = r->resource_profiles[0]->resource;

	for (size_t i = 0; i < resource->n_attributes; i++)
		if (!strcmp(resource->attributes[i]->key, "process.pid"))
			return resource->attributes[i]->value->int_value;
	return 0;
}

static void the_resource_has_the_process_if_there_is_one(void **state)
{
	for (int64_t second = 12; second <= 13; second++) {
		struct cairn_profile *p = profile(second);
		pb_request *r = request(p);

		assert_int_equal(resource_pid(r), second == 12 ? 12 : 0);
		release(r);
		cairn_profile_close(p);
	}
}

static void a_label_that_comes_again_is_numbered(void **state)
{
	struct cairn_profile *p = profile(13);
	pb_request *r = request(p);
	const pb_sample *s = profile_of(r, 0)->samples[0];

	assert_int_equal(s->n_attribute_indices, 3);
	for (size_t i = 0; i < 3; i++) {
		static const char *const keys[] = {"process.pid", "k", "k#2"};
		const CairnOtlp__KeyValueAndUnit *a =
			r->dictionary->attribute_table[s->attribute_indices[i]];

		assert_string_equal(text(r, a->key_strindex), keys[i]);
	}
	release(r);
	cairn_profile_close(p);
}

static void an_id_that_is_no_uuid_is_refused(void **state)
{
	static const char *const bad[] = {"", "x", ID "0", "01234567-89ab-4def-8123-456789ABCDE",
					  "01234567-89ab-4def-8123-456789ABCDEg"};
	struct cairn_profile *p = profile(12);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cairn_profile_bytes bytes;
		struct cairn_err err;

		assert_int_equal(make(p, bad[i], &bytes, &err), -EINVAL);
		assert_null(bytes.bytes);
	}
	cairn_profile_close(p);
}

static void a_request_of_more_than_64_mib_is_refused(void **state)
{
	size_t n = (size_t)64 << 20;
	struct cairn_profile *p = profile(12);
	char *name = malloc(n + 1);
	struct cairn_profile_bytes bytes;
	struct cairn_err err;
	uint32_t id;

	assert_non_null(name);
	memset(name, 'x', n);
	name[n] = 0;
	assert_int_equal(cairn_profile_add_function(
				 p, &(struct cairn_profile_function){.name = name}, &id, NULL),
			 0);
	assert_int_equal(make(p, ID, &bytes, &err), -EFBIG);
	assert_true(strstr(err.msg, "64 MiB") && !bytes.bytes);
	free(name);
	cairn_profile_close(p);
}

static void labels_of_one_attribute_are_refused(void **state)
{
	static const struct {
		const char *a, *b;
		int rc;
	} cases[] = {{"service_name", "service.name", -EINVAL},
		     {"node", "host.name", -EINVAL},
		     {"", "x", -EINVAL},
		     {"a\nb", "x", -EINVAL},
		     {"\xff", "x", -EINVAL},
		     {"a.b", "a_b", 0}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_profile_label labels[] = {{.key = cases[i].a, .text = "1"},
						       {.key = cases[i].b, .text = "2"}};
		struct cairn_err err;

		assert_int_equal(cairn_profile_check_labels(CAIRN_PROFILE_OTLP, labels, 2, &err),
				 cases[i].rc);
	}
}

/* ---- answers ---- */

/* 3 rejected, "no u-umlaut !". */
static const char rejected[] = "\x0a\x0a\x08\x03\x12\x06no \xc3\xbc!";
static const char status[] = "\x08\x03\x12\x07invalid\x1a\x02\x0a\x00";

static int answer(const void *bytes, size_t size, bool is_failure, struct cairn_profile_answer *ret)
{
	struct cairn_err err = {0};
	void *copy = malloc(size ? size : 1);
	int rc;

	assert_non_null(copy);
	memcpy(copy, bytes, size);
	rc = cairn_profile_read_answer(copy, size, is_failure, ret, &err);
	assert_int_equal(err.code, rc);
	free(copy);
	return rc;
}

static void an_answer_says_what_was_rejected_and_why(void **state)
{
	struct cairn_profile_answer a;

	assert_int_equal(answer("", 0, false, &a), 0);
	assert_true(!a.n_rejected && !*a.text);
	assert_int_equal(answer(rejected, sizeof(rejected) - 1, false, &a), 0);
	assert_int_equal(a.n_rejected, 3);
	assert_string_equal(a.text, "no \xc3\xbc!");
	assert_int_equal(answer(status, sizeof(status) - 1, true, &a), 0);
	assert_true(!a.n_rejected && !strcmp(a.text, "invalid"));
}

static void cut_answers_are_refused_or_shorter(void **state)
{
	struct cairn_profile_answer a;
	size_t n_whole = 0;

	for (size_t i = 0; i < sizeof(rejected) - 1; i++) {
		int rc = answer(rejected, i, false, &a);

		/* Without a byte it is the answer of a success. */
		assert_int_equal(rc, i ? -EBADMSG : 0);
	}
	for (size_t i = 0; i < sizeof(status) - 1; i++) {
		int rc = answer(status, i, true, &a);

		assert_true(rc == 0 || rc == -EBADMSG);
		assert_true(rc == 0 || !*a.text);
		n_whole += rc == 0;
	}
	/* Between its three fields. */
	assert_int_equal(n_whole, 3);
}

static void what_is_no_answer_is_refused(void **state)
{
	static const char negative[] = "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
	size_t n = CAIRN_PROFILE_ANSWER_MAX + 1;
	struct cairn_profile_answer a;
	char *large = calloc(1, n);

	assert_int_equal(answer(negative, sizeof(negative) - 1, false, &a), -EBADMSG);
	assert_int_equal(a.n_rejected, 0);
	assert_int_equal(answer("<html>", 6, false, &a), -EBADMSG);
	assert_int_equal(answer(large, n, false, &a), -ERANGE);
	free(large);
}

/* Fields of two bytes, which are 20 times as much in memory. */
static void an_answer_of_small_fields_takes_bounded_memory(void **state)
{
	size_t n = CAIRN_PROFILE_ANSWER_MAX;
	struct cairn_profile_answer a;
	char *small = malloc(n);
	int rc;

	assert_non_null(small);
	for (size_t i = 0; i < n; i += 2)
		memcpy(small + i, "\x18\x01", 2);
	rc = answer(small, n, false, &a);
	assert_true(rc == 0 || rc == -EBADMSG);
	free(small);
}

static void a_long_text_ends_with_a_whole_character(void **state)
{
	struct cairn_profile_answer a;
	char bytes[3 + 400] = "\x12\x90\x03";

	for (size_t i = 3; i < sizeof(bytes); i += 2)
		memcpy(bytes + i, "\xc3\xbc", 2);
	assert_int_equal(answer(bytes, sizeof(bytes), true, &a), 0);
	assert_int_equal(strlen(a.text), 254);
	assert_int_equal((uint8_t)a.text[253], 0xbc);
}

static void an_answer_without_memory_is_said(void **state)
{
	for (int is_failure = 0; is_failure < 2; is_failure++) {
		bool failed = true;
		unsigned int n = 0;

		while (failed) {
			struct cairn_profile_answer a;
			int rc;

			alloc_fail_at(++n);
			rc = is_failure ? cairn_profile_read_answer(status, sizeof(status) - 1,
								    true, &a, NULL)
					: cairn_profile_read_answer(rejected, sizeof(rejected) - 1,
								    false, &a, NULL);
			failed = alloc_fail_end();
			assert_int_equal(rc, failed ? -ENOMEM : 0);
		}
		assert_true(n > 2);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_type_has_a_profile_the_last_one_first),
		cmocka_unit_test(moments_are_times_and_the_rest_has_none),
		cmocka_unit_test(the_resource_has_the_process_if_there_is_one),
		cmocka_unit_test(a_label_that_comes_again_is_numbered),
		cmocka_unit_test(an_id_that_is_no_uuid_is_refused),
		cmocka_unit_test(a_request_of_more_than_64_mib_is_refused),
		cmocka_unit_test(labels_of_one_attribute_are_refused),
		cmocka_unit_test(an_answer_says_what_was_rejected_and_why),
		cmocka_unit_test(cut_answers_are_refused_or_shorter),
		cmocka_unit_test(what_is_no_answer_is_refused),
		cmocka_unit_test(an_answer_of_small_fields_takes_bounded_memory),
		cmocka_unit_test(a_long_text_ends_with_a_whole_character),
		cmocka_unit_test(an_answer_without_memory_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
