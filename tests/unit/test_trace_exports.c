/* SPDX-License-Identifier: BSD-2-Clause */
/* Events made by hand, as a tree and in the formats of other programs, while memory runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/trace_export.h>

#include "alloc_fail.h"
#include "trace_fixture.h"
#include "workspace.h"

enum { N_EVENTS = 6 };

static struct fixture fixture;
static struct workspace space;
static struct cairn_trace_probe probe;
static struct cairn_event events[N_EVENTS];
static struct cairn_event_call calls[N_EVENTS];
static const struct cairn_trace_style plain = {"", "", "", ""};
static const struct cairn_trace_stats stats = {.size = sizeof(stats), .missed = 3};

/* Two threads; in the first a call within another one, and of one no return. */
static const struct {
	enum cairn_call_moment moment;
	uint32_t tid, depth;
} moments[N_EVENTS] = {
	{CAIRN_CALL_ENTRY, 7, 0}, {CAIRN_CALL_ENTRY, 7, 1},  {CAIRN_CALL_ENTRY, 8, 0},
	{CAIRN_CALL_NONE, 7, 2},  {CAIRN_CALL_RETURN, 7, 1}, {CAIRN_CALL_RETURN, 7, 0},
};

static int begin(void **state)
{
	static struct cairn_trace_value whats[3];
	static struct cairn_event_value values[3];
	static const uint8_t number[] = {41, 0, 0, 0};
	static const struct cairn_site site = {.kind = CAIRN_SITE_OUT_OF_LINE, .symbol = "work"};
	static const struct cairn_trace_site place = {.site = &site};

	fixture_init(&fixture);
	workspace_open(&space);
	whats[0] = (struct cairn_trace_value){.text = "i", .type = fixture.t_int};
	whats[1] = (struct cairn_trace_value){.text = "s", .is_string = true};
	whats[2] = (struct cairn_trace_value){.text = "p->x", .type = fixture.t_int};
	values[0] = (struct cairn_event_value){.what = &whats[0], .bytes = number, .n_bytes = 4};
	values[1] = (struct cairn_event_value){
		.what = &whats[1], .bytes = (const uint8_t *)"tex\"t", .n_bytes = 5};
	values[2] = (struct cairn_event_value){
		.what = &whats[2], .state = CAIRN_VALUE_UNAVAILABLE, .reason = "optimized out"};
	probe = (struct cairn_trace_probe){.text = "work",
					   .path = "/bin/work",
					   .function = &fixture.function,
					   .types = fixture.types,
					   .n_values = 3,
					   .values = whats};
	for (uint32_t i = 0; i < N_EVENTS; i++) {
		uint64_t now = 1000000 * (i + 1);
		calls[i] = (struct cairn_event_call){moments[i].moment, moments[i].depth, now};
		/* Of the entry that it belongs to. */
		if (moments[i].moment == CAIRN_CALL_RETURN)
			calls[i].entered_ns = 1000000 * (moments[i].depth + 1);
		events[i] = (struct cairn_event){.time_ns = now,
						 .wall_ns = now,
						 .since_ns = now,
						 .pid = 7,
						 .tid = moments[i].tid,
						 .comm = "work",
						 .probe = &probe,
						 .site = &place,
						 .n_values = 3,
						 .values = values,
						 .style = &plain,
						 .call = &calls[i]};
	}
	return 0;
}

static int end(void **state)
{
	workspace_close(&space);
	fixture_fini(&fixture);
	return 0;
}

static int print_tree(FILE *out)
{
	struct cairn_trace_graph_opts opts = {.size = sizeof(opts), .with_time = true};
	struct cairn_trace_graph *g = NULL;
	int rc = cairn_trace_graph_new(&opts, &g, NULL);

	for (int i = 0; i < N_EVENTS && rc == 0; i++)
		rc = cairn_trace_graph_print(g, &events[i], out);
	if (rc == 0)
		rc = cairn_trace_graph_end(g, out);
	cairn_trace_graph_free(g);
	return rc;
}

static int write_perfetto(FILE *out)
{
	struct cairn_perfetto *p = NULL;
	int rc = cairn_perfetto_new(&p, NULL);

	if (rc == 0)
		rc = cairn_perfetto_begin(p, out);
	for (int i = 0; i < N_EVENTS && rc == 0; i++)
		rc = cairn_perfetto_event(p, &events[i], out);
	if (rc == 0)
		rc = cairn_perfetto_end(p, &stats, out);
	cairn_perfetto_free(p);
	return rc;
}

static int write_ctf(FILE *out)
{
	struct cairn_event_ctf *c = NULL;
	int rc = cairn_event_ctf_new(&c, NULL);

	for (int i = 0; i < N_EVENTS && rc == 0; i++)
		rc = cairn_event_ctf_event(c, &events[i]);
	if (rc == 0)
		rc = cairn_event_ctf_write(c, workspace_path(&space, "out.ctf"), &stats, NULL);
	cairn_event_ctf_free(c);
	return rc;
}

/* Each allocation fails once. What is written without a failure is as long as before. */
static void says_that_memory_is_not_there(int (*write)(FILE *out), unsigned int least)
{
	static char bytes[65536];
	unsigned int n = 0;
	bool failed = true;
	long size = -1;

	while (failed) {
		FILE *out = fmemopen(bytes, sizeof(bytes), "w");
		workspace_run(&space, "rm -rf out.ctf");
		assert_int_equal(size < 0 ? write(out) : 0, 0);
		size = size < 0 ? ftell(out) : size;
		rewind(out);
		alloc_fail_at(++n);
		int rc = write(out);
		failed = alloc_fail_end();
		if (rc != (failed ? -ENOMEM : 0))
			fail_msg("allocation %u: %d", n, rc);
		if (!failed)
			assert_int_equal(ftell(out), size);
		fclose(out);
	}
	assert_true(n > least);
}

static void a_tree_says_that_memory_is_not_there(void **state)
{
	says_that_memory_is_not_there(print_tree, 3);
}

static void perfetto_says_that_memory_is_not_there(void **state)
{
	says_that_memory_is_not_there(write_perfetto, 10);
}

static void ctf_says_that_memory_is_not_there(void **state)
{
	says_that_memory_is_not_there(write_ctf, 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_says_that_memory_is_not_there),
		cmocka_unit_test(perfetto_says_that_memory_is_not_there),
		cmocka_unit_test(ctf_says_that_memory_is_not_there),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
