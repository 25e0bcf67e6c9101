/* SPDX-License-Identifier: BSD-2-Clause */
/* Plans: records of any length, either byte order, arms, padding, and rings in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "alloc_fail.h"
#include "decl/decl.h"
#include "decode/bpfmap.h"

struct parsed {
	struct decl *decl;
	const struct cairn_types *types;
	uint32_t id;
};

static struct parsed parse(const char *text, const char *abi)
{
	struct cairn_err err = {0};
	struct parsed p;

	if (decl_parse(text, strlen(text), "test.h", cairn_abi_find(abi), &p.decl, &err) < 0)
		fail_msg("%s", err.msg);
	p.types = decl_types(p.decl);
	p.id = decl_find(p.decl, CAIRN_T_STRUCT, "s");
	assert_int_not_equal(p.id, 0);
	return p;
}

/* In a buffer of the smallest size, so that it is emptied often. */
struct text {
	char *p;
	size_t n;
};

static int add_text(void *ctx, const char *text, size_t n)
{
	struct text *t = ctx;

	t->p = realloc(t->p, t->n + n + 1);
	assert_non_null(t->p);
	memcpy(t->p + t->n, text, n);
	t->n += n;
	t->p[t->n] = 0;
	return 0;
}

static char *decoded(const struct cairn_decode *d, const void *bytes, size_t n)
{
	char buf[CAIRN_TEXT_OUT_MIN];
	struct text text = {0};
	struct cairn_text_out out = {
		.buf = buf, .size = sizeof(buf), .flush = add_text, .ctx = &text};
	/* Of exactly this size: a sanitizer sees what is read beyond it. */
	void *copy = malloc(n ? n : 1);

	memcpy(copy, bytes, n);
	assert_int_equal(cairn_decode_run(d, copy, n, &out), 0);
	add_text(&text, buf, out.n);
	free(copy);
	return text.p;
}

static void assert_decodes(const struct parsed *p, struct cairn_value_opts opts, const void *bytes,
			   size_t n, const char *expected)
{
	struct cairn_err err = {0};
	struct cairn_decode *d;

	opts.size = sizeof(opts);
	if (cairn_decode_new(p->types, p->id, &opts, &d, &err) < 0)
		fail_msg("%s", err.msg);
	char *text = decoded(d, bytes, n);
	assert_string_equal(text, expected);
	free(text);
	cairn_decode_free(d);
}

#define JSON                                                                                       \
	{                                                                                          \
		.style = CAIRN_VALUE_JSON                                                          \
	}

static void bit_fields_of_either_byte_order(void **state)
{
	static const char text[] =
		"struct s { unsigned a : 3; int b : 5; unsigned long long c : 40; short d; };";
	/* What GCC stores for {5, -3, 0x123456789a, -2} on x86-64 and on s390x. */
	static const uint8_t little[] = {0xed, 0x9a, 0x78, 0x56, 0x34, 0x12, 0xfe, 0xff};
	static const uint8_t big[] = {0xbd, 0x12, 0x34, 0x56, 0x78, 0x9a, 0xff, 0xfe};
	struct parsed le = parse(text, "x86-64"), be = parse(text, "s390x");

	assert_decodes(&le, (struct cairn_value_opts)JSON, little, sizeof(little),
		       "{\"a\":5,\"b\":-3,\"c\":78187493530,\"d\":-2}");
	assert_decodes(&be,
		       (struct cairn_value_opts){.style = CAIRN_VALUE_JSON, .big_endian = true},
		       big, sizeof(big), "{\"a\":5,\"b\":-3,\"c\":78187493530,\"d\":-2}");
	decl_free(le.decl);
	decl_free(be.decl);
}

static void numbers_of_big_endian_machines(void **state)
{
	struct parsed p = parse("struct s { short a; unsigned b; double c; float d[2]; _Bool e; "
				"__int128 f; long double g; };",
				"s390x");
	static const uint8_t bytes[] = {
		0xff, 0xfe, 0,    0,    0,    0,    1,    0,    0x3f, 0xf8, 0,    0,    0,
		0,    0,    0,    0x3f, 0x80, 0,    0,    0xc0, 0,    0,    0,    1,    0,
		0,    0,    0,    0,    0,    0,    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xf9, 0x40, 0x00, 0x80, 0,
		0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0};

	assert_decodes(&p,
		       (struct cairn_value_opts){.style = CAIRN_VALUE_JSON,
						 .big_endian = true,
						 .long_double = CAIRN_LONG_DOUBLE_QUAD},
		       bytes, sizeof(bytes),
		       "{\"a\":-2,\"b\":256,\"c\":1.5,\"d\":[1,-2],\"e\":true,\"f\":-7,\"g\":3}");
	decl_free(p.decl);
}

static void wide_characters_of_big_endian_machines(void **state)
{
	struct parsed p =
		parse("typedef unsigned short char16_t; struct s { char16_t t[4]; };", "s390x");
	const uint8_t bytes[] = {0, 'a', 0xd8, 0x3d, 0xde, 0, 0, 0};

	assert_decodes(&p, (struct cairn_value_opts){.big_endian = true}, bytes, sizeof(bytes),
		       "{.t = \"a😀\"}");
	decl_free(p.decl);
}

/* Every length from nothing to whole gives text that ends, and what is missing is said to be. */
static void a_record_may_be_cut_at_every_byte(void **state)
{
	struct parsed p =
		parse("struct s { int a; struct { char t[4]; short n[3]; } in[2]; unsigned b : 9;"
		      " union { long l; char c; } u; char tail[]; };",
		      "x86-64");
	struct cairn_value_opts opts = {
		.size = sizeof(opts), .style = CAIRN_VALUE_JSON, .padding = true};
	uint8_t bytes[80];
	struct cairn_decode *d;

	memset(bytes, 'a', sizeof(bytes));
	assert_int_equal(cairn_decode_new(p.types, p.id, &opts, &d, NULL), 0);
	for (size_t n = 0; n <= sizeof(bytes); n++) {
		char *text = decoded(d, bytes, n);
		bool whole = n >= cairn_decode_size(d);
		assert_true(n == 0 ? !strcmp(text, "null")
				   : text[0] == '{' && text[strlen(text) - 1] == '}');
		assert_int_equal(strstr(text, "null") == NULL, whole);
		assert_int_equal(cairn_decode_check(d, n, CAIRN_RECORD_EXACT, NULL),
				 whole ? 0 : -EBADMSG);
		free(text);
	}
	cairn_decode_free(d);
	decl_free(p.decl);
}

static void lengths_are_those_of_ring_and_perf_buffers(void **state)
{
	struct parsed plain =
		parse("struct s { unsigned pid; char file[256]; char comm[16]; };", "bpf");
	/* The flexible array begins in the padding at the end: sizeof is 8, and 6 are enough. */
	struct parsed flexible = parse("struct s { int n; short k; char text[]; };", "bpf");
	struct cairn_err err = {0};
	struct cairn_decode *d;

	assert_int_equal(cairn_decode_new(plain.types, plain.id, NULL, &d, NULL), 0);
	assert_int_equal(cairn_decode_size(d), 276);
	assert_int_equal(cairn_decode_check(d, 276, CAIRN_RECORD_EXACT, NULL), 0);
	assert_int_equal(cairn_decode_check(d, 275, CAIRN_RECORD_EXACT, &err), -EBADMSG);
	assert_string_equal(err.msg, "275 bytes, but the type has 276");
	assert_int_equal(cairn_decode_check(d, 280, CAIRN_RECORD_EXACT, &err), -EBADMSG);
	assert_string_equal(err.msg, "280 bytes, 4 more than the type");
	assert_int_equal(cairn_decode_check(d, 283, CAIRN_RECORD_PERF, NULL), 0);
	assert_int_equal(cairn_decode_check(d, 284, CAIRN_RECORD_PERF, NULL), -EBADMSG);
	assert_int_equal(cairn_decode_check(d, 275, CAIRN_RECORD_PERF, NULL), -EBADMSG);
	cairn_decode_free(d);
	assert_int_equal(cairn_decode_new(flexible.types, flexible.id, NULL, &d, NULL), 0);
	assert_true(cairn_decode_is_flexible(d));
	assert_int_equal(cairn_decode_size(d), 6);
	assert_int_equal(cairn_decode_check(d, 6, CAIRN_RECORD_EXACT, NULL), 0);
	assert_int_equal(cairn_decode_check(d, 600, CAIRN_RECORD_EXACT, NULL), 0);
	assert_int_equal(cairn_decode_check(d, 5, CAIRN_RECORD_EXACT, NULL), -EBADMSG);
	cairn_decode_free(d);
	assert_decodes(&flexible, (struct cairn_value_opts){0}, "\1\0\0\0\2\0hello", 11,
		       "{.n = 1, .k = 2, .text = \"hello\"}");
	decl_free(plain.decl);
	decl_free(flexible.decl);
}

static void one_arm_of_a_union_is_shown_as_another_member_says(void **state)
{
	struct parsed p = parse("enum kind { K_TCP = 6, K_UDP = 17 };"
				"struct s { union { short first; char x; }; enum kind kind; struct "
				"{ union { int tcp; unsigned char udp[4]; } l4; } p[2];"
				" enum kind of; union { int tcp; unsigned char udp[4]; } l4; };",
				"x86-64");
	static const struct cairn_value_arm always[] = {{.of = "", .arm = "first"},
							{.of = "l4", .arm = "tcp"}};
	static const struct cairn_value_arm by_kind[] = {
		{.of = "l4", .arm = "tcp", .when = "of", .value = "K_TCP"},
		{.of = "l4", .arm = "udp", .when = "of", .value = "17"}};
	static const uint32_t words[] = {1, 6, 2, 3, 17, 0x04030201};
	struct cairn_value_opts o = {.style = CAIRN_VALUE_JSON, .arms = always, .n_arms = 2};

	assert_decodes(&p, o, words, sizeof(words),
		       "{\"first\":1,\"kind\":\"K_TCP\",\"p\":[{\"l4\":{\"tcp\":2}},{\"l4\":{"
		       "\"tcp\":3}}],\"of\":\"K_UDP\","
		       "\"l4\":{\"tcp\":67305985}}");
	/* In p[] there is no member "of": the choice is refused rather than half made. */
	struct cairn_err err = {0};
	struct cairn_decode *d;
	o.size = sizeof(o);
	o.arms = by_kind;
	assert_int_equal(cairn_decode_new(p.types, p.id, &o, &d, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "no member of"));
	decl_free(p.decl);

	p = parse("enum kind { K_TCP = 6, K_UDP = 17 };"
		  "struct s { union { int tcp; unsigned char udp[4]; } l4; enum kind of : 5; };",
		  "x86-64");
	static const uint8_t tcp[8] = {1, 2, 3, 4, 6}, udp[8] = {1, 2, 3, 4, 17},
			     other[8] = {1, 2, 3, 4, 9};
	assert_decodes(&p, o, tcp, 8, "{\"l4\":{\"tcp\":67305985},\"of\":\"K_TCP\"}");
	assert_decodes(&p, o, udp, 8, "{\"l4\":{\"udp\":[1,2,3,4]},\"of\":\"K_UDP\"}");
	assert_decodes(&p, o, other, 8, "{\"l4\":{\"<l4>\":\"01020304\"},\"of\":9}");
	/* What decides is not there: nothing is guessed. */
	assert_decodes(&p, o, tcp, 4, "{\"l4\":{\"<l4>\":\"01020304\"},\"of\":null}");
	o.style = CAIRN_VALUE_TEXT;
	assert_decodes(&p, o, udp, 8, "{.l4 = {.udp = {1, 2, 3, 4}}, .of = K_UDP}");
	static const struct cairn_value_arm wrong[] = {{.of = "l4", .arm = "sctp"}};
	o.arms = wrong;
	o.n_arms = 1;
	assert_int_equal(cairn_decode_new(p.types, p.id, &o, &d, &err), -EINVAL);
	assert_string_equal(err.msg, "the type has no union l4 with an arm sctp");
	decl_free(p.decl);
}

static void bytes_of_no_member_are_shown_on_request(void **state)
{
	struct parsed p = parse("struct s { char c; long l; int i; };", "x86-64");
	uint8_t bytes[24];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i + 1);
	bytes[0] = 'c';
	assert_decodes(&p, (struct cairn_value_opts){.style = CAIRN_VALUE_JSON, .padding = true},
		       bytes, sizeof(bytes),
		       "{\"c\":\"c\",\"<padding "
		       "1>\":\"02030405060708\",\"l\":1157159078456920585,\"i\":336794129,"
		       "\"<padding 20>\":\"15161718\"}");
	assert_decodes(&p, (struct cairn_value_opts){.padding = true}, bytes, 9,
		       "{.c = 'c', <padding 1> = 02030405060708, .l = <cut off>, .i = <cut off>, "
		       "<padding 20> = <cut off>}");
	decl_free(p.decl);
}

/* ---- sharing, memory ---- */

static void *run_many(void *ctx)
{
	static const uint8_t bytes[] = {1, 0, 0, 0, 'a', 'b', 0, 0};
	char buf[CAIRN_TEXT_OUT_MIN];

	for (int i = 0; i < 20000; i++) {
		struct cairn_text_out out = {.buf = buf, .size = sizeof(buf)};
		if (cairn_decode_run(ctx, bytes, sizeof(bytes), &out) || out.n != 16 ||
		    memcmp(buf, "{\"a\":1,\"t\":\"ab\"}", 16))
			return ctx;
	}
	return NULL;
}

static void threads_share_a_plan_and_running_it_allocates_nothing(void **state)
{
	struct parsed p = parse("struct s { int a; char t[4]; };", "x86-64");
	struct cairn_value_opts opts = {.size = sizeof(opts), .style = CAIRN_VALUE_JSON};
	struct cairn_decode *d;
	pthread_t threads[4];

	assert_int_equal(cairn_decode_new(p.types, p.id, &opts, &d, NULL), 0);
	/* The graph is not used any more. */
	decl_free(p.decl);
	char buf[CAIRN_TEXT_OUT_MIN];
	struct cairn_text_out out = {.buf = buf, .size = sizeof(buf)};
	alloc_fail_at(1);
	assert_int_equal(cairn_decode_run(d, "\1\0\0\0ab\0", 8, &out), 0);
	assert_false(alloc_fail_end());
	assert_int_equal(out.n, 16);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, run_many, d);
	for (int i = 0; i < 4; i++) {
		void *wrong;
		pthread_join(threads[i], &wrong);
		assert_null(wrong);
	}
	cairn_decode_free(d);
}

static int refuse(void *ctx, const char *text, size_t n)
{
	return -EPIPE;
}

static void output_that_fails_is_told_and_a_full_buffer_without_a_way_out(void **state)
{
	struct parsed p = parse("struct s { int a[10000]; };", "x86-64");
	struct cairn_value_opts opts = {.size = sizeof(opts)};
	static uint8_t bytes[40000];
	char buf[CAIRN_TEXT_OUT_MIN];
	struct cairn_text_out out = {.buf = buf, .size = sizeof(buf), .flush = refuse};
	struct cairn_decode *d;

	assert_int_equal(cairn_decode_new(p.types, p.id, &opts, &d, NULL), 0);
	assert_int_equal(cairn_decode_run(d, bytes, sizeof(bytes), &out), -EPIPE);
	out = (struct cairn_text_out){.buf = buf, .size = sizeof(buf)};
	assert_int_equal(cairn_decode_run(d, bytes, sizeof(bytes), &out), -ENOSPC);
	cairn_decode_free(d);
	decl_free(p.decl);
}

/* ---- rings in memory ---- */

enum { RING = 256 };

struct ring_image {
	uint64_t consumer, producer;
	uint8_t data[2 * RING];
};

/* A record of @n bytes, all of them @fill. */
static void put_record(struct ring_image *r, uint32_t n, uint32_t flags, uint8_t fill)
{
	uint32_t head = n | flags;
	uint64_t step = (n + 8 + 7) / 8 * 8;

	for (uint64_t i = 0; i < step; i++) {
		uint8_t byte = i < 4 ? ((uint8_t *)&head)[i] : i < 8 ? 0 : fill;
		uint64_t at = (r->producer + i) % RING;
		r->data[at] = r->data[at + RING] = byte;
	}
	r->producer += step;
}

struct seen {
	char text[256];
	struct ring_image *ring; /* whose reader runs ahead when the first record is shown */
	uint64_t runs_to;
};

static int on_entry(void *ctx, const struct cairn_bpfmap_entry *e)
{
	struct seen *s = ctx;
	size_t n = strlen(s->text);

	for (uint32_t i = 1; i < e->n_value; i++)
		assert_int_equal(e->value[i], e->value[0]);
	snprintf(s->text + n, sizeof(s->text) - n, "%c%u ", e->n_value ? e->value[0] : '-',
		 e->n_value);
	if (s->ring && s->runs_to)
		s->ring->consumer = s->runs_to;
	s->runs_to = 0;
	return 0;
}

static int peek(struct ring_image *r, struct seen *s, struct cairn_bpfmap_stats *stats,
		struct cairn_err *err)
{
	*stats = (struct cairn_bpfmap_stats){0};
	s->text[0] = 0;
	return ring_peek(&r->consumer, &r->producer, r->data, RING, on_entry, s, stats, err);
}

static void a_ring_is_walked_over_busy_and_discarded_records_and_its_end(void **state)
{
	struct ring_image r = {.consumer = 200, .producer = 200};
	struct cairn_bpfmap_stats stats;
	struct cairn_err err = {0};
	struct seen s = {0};

	assert_int_equal(peek(&r, &s, &stats, &err), 0);
	assert_string_equal(s.text, "");
	put_record(&r, 5, 0, 'a');
	put_record(&r, 16, 1u << 31, 'b');
	put_record(&r, 60, 0, 'c'); /* over the end */
	put_record(&r, 8, 1u << 30, 'd');
	put_record(&r, 0, 0, 'e');
	put_record(&r, 1, 0, 'f');
	uint64_t before = r.consumer;
	for (int i = 0; i < 2; i++) {
		assert_int_equal(peek(&r, &s, &stats, &err), 0);
		assert_string_equal(s.text, "a5 c60 -0 f1 ");
		assert_int_equal(stats.entries, 4);
		assert_int_equal(stats.busy, 1);
		assert_int_equal(stats.discarded, 1);
		assert_int_equal(stats.overtaken, 0);
	}
	assert_int_equal(r.consumer, before);
}

static void a_reader_that_runs_ahead_is_followed(void **state)
{
	struct ring_image r = {0};
	struct cairn_bpfmap_stats stats;
	struct cairn_err err = {0};
	struct seen s = {.ring = &r, .runs_to = 48};

	for (char c = 'a'; c < 'f'; c++)
		put_record(&r, 8, 0, (uint8_t)c);
	/* The reader takes a, b and c while a is shown; b cannot be trusted any more. */
	assert_int_equal(peek(&r, &s, &stats, &err), 0);
	assert_string_equal(s.text, "a8 d8 e8 ");
	assert_int_equal(stats.overtaken, 1);
	/* It takes everything, and more than was there at the start. */
	r.consumer = 0;
	s.runs_to = 4096;
	assert_int_equal(peek(&r, &s, &stats, &err), 0);
	assert_string_equal(s.text, "a8 ");
}

static void positions_and_lengths_that_make_no_sense_are_errors(void **state)
{
	static const struct {
		uint64_t consumer, producer;
		uint32_t n;
	} cases[] = {{3, 64, 8}, {0, 8192, 8}, {0, 64, 1u << 20}, {0, 64, 0x3fffffff}, {0, 8, 1}};
	struct cairn_bpfmap_stats stats;
	struct seen s = {0};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ring_image r = {.consumer = cases[i].consumer,
				       .producer = cases[i].producer};
		struct cairn_err err = {0};
		memcpy(r.data, &cases[i].n, 4);
		assert_int_equal(peek(&r, &s, &stats, &err), -EBADMSG);
		assert_int_not_equal(strlen(err.msg), 0);
	}
	/* A reader ahead of the writer has nothing left to read. */
	struct ring_image r = {.consumer = 4096, .producer = 64};
	assert_int_equal(peek(&r, &s, &stats, NULL), 0);
}

/* ---- failing allocations ---- */

static int make_plan(void *ctx)
{
	static const struct cairn_value_arm arms[] = {
		{.of = "u", .arm = "i", .when = "k", .value = "A"}};
	struct cairn_value_opts opts = {.size = sizeof(opts), .arms = arms, .n_arms = 1};
	const struct parsed *p = ctx;
	struct cairn_err err = {0};
	struct cairn_decode *d = NULL;
	int rc = cairn_decode_new(p->types, p->id, &opts, &d, &err);

	if (rc)
		assert_int_not_equal(strlen(err.msg), 0);
	cairn_decode_free(d);
	return rc;
}

static void no_memory_is_an_error_at_every_allocation(void **state)
{
	struct parsed p = parse("enum e { A, B }; struct s { enum e k; float f[3]; struct { int x; "
				"} in[2]; union { int i; float g; } u; };",
				"x86-64");

	unsigned int n = 1;
	int rc;

	for (;; n++) {
		alloc_fail_at(n);
		rc = make_plan(&p);
		if (!alloc_fail_end())
			break;
		assert_int_equal(rc, -ENOMEM);
	}
	assert_int_equal(rc, 0);
	assert_true(n > 5);
	decl_free(p.decl);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bit_fields_of_either_byte_order),
		cmocka_unit_test(numbers_of_big_endian_machines),
		cmocka_unit_test(wide_characters_of_big_endian_machines),
		cmocka_unit_test(a_record_may_be_cut_at_every_byte),
		cmocka_unit_test(lengths_are_those_of_ring_and_perf_buffers),
		cmocka_unit_test(one_arm_of_a_union_is_shown_as_another_member_says),
		cmocka_unit_test(bytes_of_no_member_are_shown_on_request),
		cmocka_unit_test(threads_share_a_plan_and_running_it_allocates_nothing),
		cmocka_unit_test(output_that_fails_is_told_and_a_full_buffer_without_a_way_out),
		cmocka_unit_test(a_ring_is_walked_over_busy_and_discarded_records_and_its_end),
		cmocka_unit_test(a_reader_that_runs_ahead_is_followed),
		cmocka_unit_test(positions_and_lengths_that_make_no_sense_are_errors),
		cmocka_unit_test(no_memory_is_an_error_at_every_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
