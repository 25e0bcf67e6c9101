/* SPDX-License-Identifier: BSD-2-Clause */
/* From aggregates as text to what a fetch program writes into a slot, without a kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "alloc_fail.h"
#include "trace/aggregate/aggregate.h"
#include "workspace.h"

static const char one_c[] =
	"enum colour { RED, GREEN = 5 };\n"
	"struct pair { int a : 5; unsigned b : 9; char name[8]; enum colour colour; };\n"
	"volatile int sink;\n"
	"__attribute__((noinline, noclone, noipa)) int take(int n, const char *s, struct pair *p, "
	"unsigned long u, double d) { sink = n; return n; }\n"
	"__attribute__((noinline, noclone, noipa)) int other(short n, const char *s) { return n; "
	"}\n"
	"int main(int argc, char **argv)\n"
	"{ struct pair p = { 1, 2 }; return take(argc, argv[0], &p, 1, 1.5) + other(1, argv[0]); "
	"}\n";

static struct workspace ws;
static const char *program;

/*
 * Memory of the traced program: a pair {.a = -1, .b = 0x55} at 0x1000, a string at 0x1100, nothing
 * else.
 */
static int read_memory(void *ctx, uint64_t from, void *to, size_t n)
{
	uint8_t memory[0x140] = {0xbf, 0x0a, 'a', 'b', 0, [12] = 5};

	memcpy(memory + 0x100, "text", 5);
	if (from < 0x1000 || from - 0x1000 > sizeof(memory) || n > sizeof(memory) - (from - 0x1000))
		return -1;
	memcpy(to, memory + (from - 0x1000), n);
	return 0;
}

static struct cairn_trace *open_trace(const struct cairn_aggregate *items, size_t n, const char *by,
				      int expected, struct cairn_err *err)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .exe = program};
	struct cairn_aggregate_opts sums = {
		.size = sizeof(sums), .items = items, .n_items = n, .by = by};
	struct cairn_trace *t;

	assert_int_equal(cairn_trace_open(&opts, &t, NULL), 0);
	*err = (struct cairn_err){0};
	assert_int_equal(cairn_trace_aggregate(t, &sums, err), expected);
	return t;
}

/* Runs the program of the first site on rdi, rsi, rdx and rcx. */
static uint32_t run(const struct cairn_trace *t, const uint64_t args[4], uint8_t *slot)
{
	const struct trace_program *p = &t->programs.p[t->sites.p[0]->pub.program];
	struct fetch_machine m = {.read = read_memory, .record = slot, .n_record = 512};

	memset(slot, 0, 512);
	m.file[5] = args[0];
	m.file[4] = args[1];
	m.file[1] = args[2];
	m.file[2] = args[3];
	assert_int_equal(fetch_run(&m, t->ops.p + p->op, p->n, p->has_condition), FETCH_DONE);
	return m.faults;
}

static uint64_t word(const uint8_t *slot, uint32_t at)
{
	uint64_t v;

	memcpy(&v, slot + at, sizeof(v));
	return v;
}

static const struct aggregate_part *part(const struct cairn_trace *t, uint32_t i)
{
	return &t->probes.p[0]->parts[i];
}

static void numbers_come_first_and_are_extended(void **state)
{
	const struct cairn_aggregate items[] = {{CAIRN_AGGREGATE_SUM, "n"},
						{CAIRN_AGGREGATE_MAX, "u >> 1"},
						{CAIRN_AGGREGATE_AVG, "n"},
						{CAIRN_AGGREGATE_HIST, "p->a"}};
	struct cairn_err err;
	struct cairn_trace *t = open_trace(items, 4, NULL, 0, &err);
	uint8_t slot[512];

	assert_int_equal(cairn_trace_add(t, "take if n < 0", &err), 0);
	assert_int_equal(aggregates_finish(t, &err), 0);
	/* The same number is fetched once. */
	assert_int_equal(t->aggregates->n_numbers, 3);
	assert_int_equal(t->aggregates->plan.n_key, 0);
	assert_int_equal(run(t, (uint64_t[]){0xfffffffb, 0, 0x1000, UINT64_MAX}, slot), 0);
	assert_true(word(slot, 0) == (uint64_t)-5);
	assert_true(word(slot, 8) == UINT64_MAX >> 1);
	assert_true(word(slot, 16) == (uint64_t)-1);
	assert_int_equal(t->probes.p[0]->is_signed, 1 | 4 | 8);
	/* A number that cannot be read has its bit, and the others are there. */
	assert_int_equal(run(t, (uint64_t[]){0xfffffffb, 0, 8, 6}, slot), 4);
	assert_true(word(slot, 8) == 3);
	cairn_trace_close(t);
}

static void keys_have_the_bytes_of_values_and_strings(void **state)
{
	const struct cairn_aggregate count = {.kind = CAIRN_AGGREGATE_COUNT};
	struct cairn_err err;
	struct cairn_trace *t =
		open_trace(&count, 1, "$tid, n, s, p->b, p->colour, p->name, n / 2", 0, &err);
	const struct key_string *s;
	uint8_t slot[512];

	assert_int_equal(cairn_trace_add(t, "take", &err), 0);
	assert_int_equal(aggregates_finish(t, &err), 0);
	assert_int_equal(cairn_trace_n_keys(t), 7);
	assert_string_equal(cairn_trace_key_text(t, 6), "n / 2");
	assert_int_equal(t->aggregates->plan.tid, AGGREGATE_HEADER);
	assert_int_equal(run(t, (uint64_t[]){77, 0x1100, 0x1000, 0}, slot), 0);
	assert_int_equal(slot[part(t, 0)->out], 77);
	s = (const void *)(slot + part(t, 1)->out);
	assert_false(s->is_null);
	assert_string_equal(s->bytes, "text");
	assert_int_equal(word(slot, part(t, 2)->out), 0x55);
	assert_int_equal(slot[part(t, 3)->out], 5);
	s = (const void *)(slot + part(t, 4)->out);
	assert_string_equal(s->bytes, "ab");
	assert_int_equal(word(slot, part(t, 5)->out), 38);
	/* A NULL pointer and a wild one are told apart. */
	assert_int_equal(run(t, (uint64_t[]){1, 0, 0x1000, 0}, slot), 2);
	assert_true(((const struct key_string *)(const void *)(slot + part(t, 1)->out))->is_null);
	assert_int_equal(run(t, (uint64_t[]){1, 8, 0x1000, 0}, slot), 2);
	assert_false(((const struct key_string *)(const void *)(slot + part(t, 1)->out))->is_null);
	cairn_trace_close(t);
}

static void probes_of_other_types_share_the_layout_of_the_kernels_keys(void **state)
{
	const struct cairn_aggregate sum = {CAIRN_AGGREGATE_SUM, "n"};
	struct cairn_err err;
	struct cairn_trace *t = open_trace(&sum, 1, "s, $comm, n, $cgroup, $site", 0, &err);

	assert_int_equal(cairn_trace_add(t, "take", &err), 0);
	assert_int_equal(cairn_trace_add(t, "other", &err), 1);
	assert_int_equal(aggregates_finish(t, &err), 0);
	const struct trace_aggregate_plan *plan = &t->aggregates->plan;
	assert_int_equal(plan->comm, 16);
	assert_int_equal(plan->cgroup, 32);
	assert_int_equal(plan->site, 40);
	assert_int_equal(plan->pid, 0);
	assert_int_equal(plan->n_probes, 2);
	assert_int_equal(t->probes.p[0]->parts[1].out, t->probes.p[1]->parts[1].out);
	assert_int_equal(t->probes.p[0]->parts[2].n_bytes, 4);
	assert_int_equal(t->probes.p[1]->parts[2].n_bytes, 2);
	assert_int_equal(plan->n_key % 8, 0);
	assert_int_equal(t->probes.p[0]->n_record, t->probes.p[1]->n_record);
	cairn_trace_close(t);
}

static void what_is_no_key_or_number_is_refused(void **state)
{
	static const struct {
		struct cairn_aggregate item;
		const char *by;
		int code; /* of setting it, or, positive, of adding a probe */
	} cases[] = {
		{{CAIRN_AGGREGATE_SUM, ""}, NULL, -EINVAL},
		{{CAIRN_AGGREGATE_SUM, NULL}, NULL, -EINVAL},
		{{CAIRN_AGGREGATE_SUM, "n,0,10,1"}, NULL, -EINVAL},
		{{CAIRN_AGGREGATE_LHIST, "n"}, NULL, -EINVAL},
		{{CAIRN_AGGREGATE_LHIST, "n,-9223372036854775808,9223372036854775807,1"},
		 NULL,
		 -ERANGE},
		{{CAIRN_AGGREGATE_LHIST, "n,0,9223372036854775808,1"}, NULL, -ERANGE},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "", -EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "n:odd", -EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", -ERANGE},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "$stack, $caller", -EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "$tid:hex", -EINVAL},
		{{CAIRN_AGGREGATE_SUM, "d"}, NULL, EINVAL},
		{{CAIRN_AGGREGATE_SUM, "n + str(s)"}, NULL, EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "buf(s, n)", EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "*p", EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "RED", EINVAL},
		{{CAIRN_AGGREGATE_COUNT, NULL}, "missing", EINVAL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct cairn_err err;
		int code = cases[i].code;
		struct cairn_trace *t =
			open_trace(&cases[i].item, 1, cases[i].by, code < 0 ? code : 0, &err);
		if (code > 0)
			assert_int_equal(cairn_trace_add(t, "take", &err), -code);
		assert_true(err.msg[0]);
		cairn_trace_close(t);
	}
}

static void they_are_set_once_and_before_probes(void **state)
{
	const struct cairn_aggregate count = {.kind = CAIRN_AGGREGATE_COUNT};
	const struct cairn_aggregate_opts opts = {
		.size = sizeof(opts), .items = &count, .n_items = 1};
	const struct cairn_aggregate_opts none = {.size = sizeof(none), .items = &count};
	struct cairn_aggregates *table;
	struct cairn_err err;
	struct cairn_trace *t = open_trace(&count, 1, NULL, 0, &err);

	assert_int_equal(cairn_trace_aggregate(t, &opts, &err), -EINVAL);
	assert_int_equal(cairn_trace_aggregates(t, &table, &err), -EINVAL);
	assert_null(cairn_trace_key_text(t, 0));
	assert_null(cairn_trace_aggregate_text(t, 1));
	assert_int_equal(cairn_trace_add(t, "take(n)", &err), -EINVAL);
	cairn_trace_close(t);
	assert_int_equal(cairn_trace_open(NULL, &t, NULL), 0);
	assert_int_equal(cairn_trace_aggregate(t, &none, &err), -ERANGE);
	cairn_trace_close(t);
}

static void numbers_are_written_in_decimal(void **state)
{
	static const struct {
		struct cairn_number n;
		const char *text;
	} cases[] = {
		{{false, 0, 0}, "0"},
		{{true, 0, 1}, "-1"},
		{{false, 1, 0}, "18446744073709551616"},
		{{true, UINT64_C(1) << 63, 0}, "-170141183460469231731687303715884105728"},
	};
	char text[64];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(cairn_number_text(&cases[i].n, text, sizeof(text)),
				 strlen(cases[i].text));
		assert_string_equal(text, cases[i].text);
	}
}

static void planning_survives_lack_of_memory(void **state)
{
	const struct cairn_aggregate items[] = {{CAIRN_AGGREGATE_SUM, "n * 2"},
						{CAIRN_AGGREGATE_LHIST, "u,0,10,1"}};
	const struct cairn_aggregate_opts opts = {
		.size = sizeof(opts), .items = items, .n_items = 2, .by = "s, n, $tid"};
	bool failed = true;

	for (unsigned int n = 1; failed; n++) {
		struct cairn_trace_opts trace_opts = {.size = sizeof(trace_opts), .exe = program};
		struct cairn_err err = {0};
		struct cairn_trace *t;
		assert_int_equal(cairn_trace_open(&trace_opts, &t, NULL), 0);
		alloc_fail_at(n);
		int r = cairn_trace_aggregate(t, &opts, &err);
		failed = alloc_fail_end();
		assert_true(r == 0 || (failed && r == -ENOMEM));
		cairn_trace_close(t);
	}
	failed = true;
	for (unsigned int n = 1; failed; n++) {
		struct cairn_err err;
		struct cairn_trace *t = open_trace(items, 2, "s, n, $tid", 0, &err);
		assert_int_equal(cairn_trace_add(t, "take", &err), 0);
		alloc_fail_at(n);
		int r = cairn_trace_add(t, "take if n", &err);
		r = r < 0 ? r : aggregates_finish(t, &err);
		failed = alloc_fail_end();
		assert_true(r == 0 || (failed && r == -ENOMEM));
		cairn_trace_close(t);
	}
}

static int build(void **state)
{
	static char path[100];

	workspace_open(&ws);
	workspace_write(&ws, "one.c", one_c);
	workspace_run(&ws, "gcc -g -O2 -o prog one.c");
	snprintf(path, sizeof(path), "%s", workspace_path(&ws, "prog"));
	program = path;
	return 0;
}

static int clean(void **state)
{
	workspace_close(&ws);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_come_first_and_are_extended),
		cmocka_unit_test(keys_have_the_bytes_of_values_and_strings),
		cmocka_unit_test(probes_of_other_types_share_the_layout_of_the_kernels_keys),
		cmocka_unit_test(what_is_no_key_or_number_is_refused),
		cmocka_unit_test(they_are_set_once_and_before_probes),
		cmocka_unit_test(numbers_are_written_in_decimal),
		cmocka_unit_test(planning_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
