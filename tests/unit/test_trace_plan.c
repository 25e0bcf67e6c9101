/* SPDX-License-Identifier: BSD-2-Clause */
/* From probes to sites, and from records to lines, without a kernel. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "alloc_fail.h"
#include "trace/weigh.h"
#include "workspace.h"

static const char one_c[] =
	"struct pair { int a : 5; int b; };\n"
	"volatile int sink;\n"
	"#define NOINLINE __attribute__((noinline, noclone, noipa))\n"
	"static inline __attribute__((always_inline)) int inl(int n, const char *s) { sink += n; "
	"return n + s[0]; }\n"
	"static NOINLINE int same(int n) { sink = n; return n; }\n"
	"NOINLINE int in_register(int n, const char *s) { return inl(n, s) + same(n); }\n"
	"NOINLINE int with_constant(int n) { return inl(42, \"literal\") + same(n); }\n"
	"NOINLINE double vector(double d, int n) { sink = n; return d * 2; }\n"
	"NOINLINE int pairs(struct pair *p, struct pair v) { sink = v.a; return p->b; }\n"
	"int other(int);\n"
	"int main(int argc, char **argv)\n"
	"{ struct pair p = { 1, 2 }; return in_register(argc, argv[0]) + with_constant(argc) + "
	"vector(1, argc) + pairs(&p, p) + other(3); }\n";
static const char two_c[] = "volatile int sink2;\n"
			    "static __attribute__((noinline, noclone, noipa)) int same(int n) { "
			    "sink2 = n; return n + 1; }\n"
			    "int other(int n) { return same(n); }\n";

static struct workspace ws;
static const char *program;

static struct cairn_trace *open_trace(bool best_effort)
{
	struct cairn_trace_opts opts = {
		.size = sizeof(opts), .exe = program, .best_effort = best_effort};
	struct cairn_trace *t;

	assert_int_equal(cairn_trace_open(&opts, &t, NULL), 0);
	return t;
}

static int add(struct cairn_trace *t, const char *probe, struct cairn_err *err)
{
	*err = (struct cairn_err){0};
	return cairn_trace_add(t, probe, err);
}

/* As a profile does it. */
static struct cairn_trace *open_weighed(void)
{
	struct cairn_trace *t = open_trace(false);

	trace_weigh(t);
	return t;
}

static void a_hit_has_a_number_at_each_site_where_it_is_known(void **state)
{
	struct cairn_trace *t = open_weighed();
	struct cairn_err err;
	const char *unit;

	assert_int_equal(add(t, "inl(n * 2 + 1:bytes) if n != 3", &err), 0);
	assert_string_equal(trace_weight(t, &unit), "n * 2 + 1");
	assert_string_equal(unit, "bytes");
	assert_int_equal(cairn_trace_n_sites(t), 2);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(t->sites.p[i]->weight, TRACE_WEIGHT_FETCHED);
		assert_null(cairn_trace_site(t, i)->refused);
		assert_true(t->programs.p[t->sites.p[i]->pub.program].has_condition);
	}
	cairn_trace_close(t);
}

static void a_hit_without_a_list_has_no_number(void **state)
{
	struct cairn_trace *t = open_weighed();
	struct cairn_err err;
	const char *unit;

	assert_null(trace_weight(t, &unit));
	assert_int_equal(add(t, "inl", &err), 0);
	assert_null(trace_weight(t, &unit));
	assert_int_equal(t->sites.p[0]->weight, TRACE_WEIGHT_NONE);
	cairn_trace_close(t);
}

/* What is no number is refused where it is written, and all lacks of memory are told. */
static void a_number_is_checked_and_survives_lack_of_memory(void **state)
{
	struct cairn_trace *t = open_weighed();
	struct cairn_err err;
	int r = -ENOMEM;

	assert_int_equal(add(t, "vector(d)", &err), -EINVAL);
	assert_int_equal(add(t, "pairs(v)", &err), -EINVAL);
	assert_int_equal(add(t, "inl(n", &err), -EINVAL);
	for (unsigned int n = 1; r == -ENOMEM; n++) {
		alloc_fail_at(n);
		r = add(t, "inl(n * 2)", &err);
		bool failed = alloc_fail_end();
		assert_true(failed ? r == -ENOMEM || r == 0 : r == 0);
	}
	cairn_trace_close(t);
}

static void every_site_of_a_function_is_a_site(void **state)
{
	struct cairn_trace *t = open_trace(false);
	struct cairn_err err;
	char where[2][100];

	assert_int_equal(add(t, "inl", &err), 0);
	const struct cairn_trace_probe *p = cairn_trace_probe(t, 0);
	assert_int_equal(p->n_sites, 2);
	assert_int_equal(p->n_ready, 2);
	assert_int_equal(p->n_values, 2);
	assert_string_equal(p->values[0].text, "n");
	assert_true(p->values[1].is_string);
	assert_false(p->values[0].listed);
	assert_int_equal(cairn_trace_n_sites(t), 2);
	for (uint32_t i = 0; i < 2; i++)
		cairn_site_text(p->function, cairn_trace_site(t, i)->site, NULL, where[i],
				sizeof(where[i]));
	assert_true(strstr(where[0], "in_register") || strstr(where[1], "in_register"));
	assert_true(strstr(where[0], "with_constant") || strstr(where[1], "with_constant"));
	assert_null(cairn_trace_site(t, 2));
	cairn_trace_close(t);
}

static const struct cairn_trace_site *site_in(const struct cairn_trace *t, const char *container)
{
	for (uint32_t i = 0; i < cairn_trace_n_sites(t); i++)
		if (!strcmp(cairn_trace_site(t, i)->site->container, container))
			return cairn_trace_site(t, i);
	fail_msg("no site in %s", container);
	return NULL;
}

static void what_is_not_listed_never_refuses_a_site(void **state)
{
	struct cairn_trace *t = open_trace(false);
	struct cairn_err err;

	assert_int_equal(add(t, "inl", &err), 0);
	const struct cairn_trace_site *site = site_in(t, "with_constant");
	assert_null(site->refused);
	assert_null(site->values[0].unavailable);
	assert_non_null(site->values[1].unavailable);
	assert_int_equal(add(t, "inl(n, s)", &err), 1);
	const struct cairn_trace_probe *p = cairn_trace_probe(t, 1);
	assert_int_equal(p->n_ready, 1);
	assert_int_equal(p->n_refused, 1);
	assert_true(p->values[1].listed);
	const struct cairn_trace_site *refused = cairn_trace_site(t, p->first_site);
	if (!refused->refused)
		refused = cairn_trace_site(t, p->first_site + 1);
	assert_non_null(strstr(refused->refused, "s is unavailable: "));
	cairn_trace_close(t);
}

/* All or none is decided before any privilege is needed, so this runs for everybody. */
static void a_refused_site_refuses_the_trace(void **state)
{
	struct cairn_trace *t = open_trace(false);
	struct cairn_err err;

	assert_int_equal(add(t, "inl(s)", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "1 of 2 sites"));
	assert_non_null(strstr(err.msg, "with_constant"));
	cairn_trace_close(t);
	t = open_trace(true);
	assert_int_equal(add(t, "vector(d)", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "a probe cannot read"));
	cairn_trace_close(t);
	t = open_trace(false);
	assert_int_equal(add(t, "inl(n) if s == \"x\"", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "the condition is unavailable, because of s"));
	cairn_trace_close(t);
}

static void errors_of_probes_help(void **state)
{
	static const struct {
		const char *probe;
		int code;
		const char *story;
	} cases[] = {
		{"in_registr", -ENXIO, "in_register"},
		{"same", -ENOTUNIQ, "two.c:2:same"},
		{"inl(m)", -EINVAL, "it has: n, s"},
		{"./nowhere:inl", -ENOENT, "nowhere"},
		{"libnosuch.so.7:f", -ENOENT, "libnosuch.so.7"},
		{"inl(", -EINVAL, "^"},
	};
	struct cairn_trace *t = open_trace(false);
	struct cairn_err err;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int e = add(t, cases[i].probe, &err);
		if (e != cases[i].code || !strstr(err.msg, cases[i].story))
			fail_msg("%s: %d %s", cases[i].probe, e, err.msg);
		assert_int_equal(cairn_trace_n_probes(t), 0);
		assert_int_equal(cairn_trace_n_sites(t), 0);
	}
	cairn_trace_close(t);
}

static void a_source_file_or_a_path_chooses(void **state)
{
	struct cairn_trace *t = open_trace(false);
	struct cairn_err err;
	char probe[200];

	assert_int_equal(add(t, "two.c:same", &err), 0);
	assert_int_equal(add(t, "one.c:same(n)", &err), 1);
	assert_string_not_equal(cairn_trace_probe(t, 0)->function->decl_file,
				cairn_trace_probe(t, 1)->function->decl_file);
	snprintf(probe, sizeof(probe), "%s:two.c:same", program);
	assert_int_equal(add(t, probe, &err), 2);
	assert_string_equal(cairn_trace_probe(t, 0)->function->decl_file,
			    cairn_trace_probe(t, 2)->function->decl_file);
	snprintf(probe, sizeof(probe), "uprobe:%s:same", program);
	assert_int_equal(add(t, probe, &err), -ENOTUNIQ);
	cairn_trace_close(t);
}

static void options_are_checked(void **state)
{
	struct {
		struct cairn_trace_opts opts;
		char newer[8];
	} o = {.opts = {.size = sizeof(o)}};
	struct cairn_trace *t;
	struct cairn_err err = {0};
	char *argv[] = {NULL};

	assert_int_equal(cairn_trace_open(&o.opts, &t, &err), 0);
	cairn_trace_close(t);
	o.newer[3] = 1;
	assert_int_equal(cairn_trace_open(&o.opts, &t, &err), -EINVAL);
	o.opts = (struct cairn_trace_opts){
		.size = sizeof(o.opts), .pid = 1, .argv = argv, .exe = "x"};
	assert_int_equal(cairn_trace_open(&o.opts, &t, &err), -EINVAL);
	o.opts = (struct cairn_trace_opts){.size = sizeof(o.opts), .string_bytes = 4096};
	assert_int_equal(cairn_trace_open(&o.opts, &t, &err), -EINVAL);
	/* Larger than any pid can be. */
	o.opts = (struct cairn_trace_opts){.size = sizeof(o.opts), .pid = 1 << 30};
	assert_int_equal(cairn_trace_open(&o.opts, &t, &err), -ESRCH);
	cairn_trace_close(NULL);
}

/* ---- records to lines ---- */

struct line {
	struct cairn_trace *t;
	uint8_t record[4096];
	const struct trace_probe *probe;
	struct decode_space space;
};

static void line_open(struct line *l, const char *probe)
{
	struct cairn_err err;

	*l = (struct line){.t = open_trace(false)};
	if (add(l->t, probe, &err) < 0)
		fail_msg("%s", err.msg);
	l->probe = l->t->probes.p[0];
	*(struct trace_record *)l->record = (struct trace_record){
		.time_ns = 5000001234, .pid = 12, .tid = 13, .comm = "na\"me"};
	l->t->attached_at_ns = 5000000000;
}

static void line_is(struct line *l, enum cairn_value_style style, const char *expected)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_true(decode_record(l->t, (struct trace_record *)l->record, l->probe->n_record,
				  &l->space));
	assert_int_equal(cairn_event_print(&l->space.event, style, out), 0);
	fclose(out);
	if (!strstr(text, expected))
		fail_msg("%s\nis not in\n%s", expected, text);
	free(text);
}

static void put(struct line *l, uint32_t value, uint32_t at, const void *bytes, size_t n)
{
	memcpy(l->record + l->probe->layouts[value].out + at, bytes, n);
}

static void values_are_printed_as_text_and_json(void **state)
{
	struct line l;
	const uint16_t len = 8, cut = 5 | TRACE_STRING_CUT;
	const uint64_t wild = 0x10;

	line_open(&l, "in_register(n, s, n:hex)");
	struct trace_record *rec = (struct trace_record *)l.record;
	put(&l, 0, 0, &(int){-7}, 4);
	put(&l, 2, 0, &(int){255}, 4);
	put(&l, 1, STRING_POINTER_BYTES, &len, 2);
	put(&l, 1, STRING_POINTER_BYTES + 2, "a\"\n\xff\xc3\xa9z", 8);
	line_is(&l, CAIRN_VALUE_TEXT,
		"    0.000001 12/13 na\\\"me in_register entry: n=-7, "
		"s=\"a\\\"\\n\\377\xc3\xa9z\", n:hex=0xff\n");
	line_is(&l, CAIRN_VALUE_JSON,
		"\"args\":{\"n\":-7,\"s\":\"a\\\"\\n\\ufffd\xc3\xa9z\",\"n:hex\":\"0xff\"}}\n");
	line_is(&l, CAIRN_VALUE_JSON,
		"\"comm\":\"na\\\"me\",\"function\":\"in_register\",\"kind\":\"out-of-line\"");
	put(&l, 1, STRING_POINTER_BYTES, &cut, 2);
	line_is(&l, CAIRN_VALUE_TEXT, "s=\"a\\\"\\n\\377\"..., ");
	line_is(&l, CAIRN_VALUE_JSON, "\"truncated\":[\"s\"]}");
	rec->faults = 1 << 1 | 1 << 0;
	line_is(&l, CAIRN_VALUE_TEXT, "n=<unreadable: memory cannot be read>, s=NULL, n:hex=0xff");
	put(&l, 1, 0, &wild, 8);
	line_is(&l, CAIRN_VALUE_TEXT, "s=<unreadable at 0x10>");
	line_is(&l, CAIRN_VALUE_JSON, "\"s\":{\"unreadable\":\"at 0x10\"}");
	cairn_trace_close(l.t);
}

static void bit_fields_and_structs_are_printed(void **state)
{
	struct line l;
	const uint32_t pair[2] = {0xffffffe0 | 30, 9}; /* a = -2 in 5 bits, what surrounds it set */

	line_open(&l, "pairs(v, v.a, p->a, p->b, p)");
	put(&l, 0, 0, pair, 8);
	put(&l, 1, 0, pair, 1);
	put(&l, 2, 0, pair, 1);
	put(&l, 3, 0, &(int){4}, 4);
	put(&l, 4, 0, &(uint64_t){0xabc}, 8);
	line_is(&l, CAIRN_VALUE_TEXT, "v={.a = -2, .b = 9}, v.a=-2, p->a=-2, p->b=4, p=0xabc\n");
	line_is(&l, CAIRN_VALUE_JSON,
		"\"args\":{\"v\":{\"a\":-2,\"b\":9},\"v.a\":-2,\"p->a\":-2,\"p->b\":4,\"p\":"
		"\"0xabc\"}");
	cairn_trace_close(l.t);
}

static void constants_of_a_site_need_no_record(void **state)
{
	struct line l;

	line_open(&l, "inl");
	struct trace_record *rec = (struct trace_record *)l.record;
	const struct cairn_trace_site *site = site_in(l.t, "with_constant");
	rec->site = cairn_trace_site(l.t, 0) == site ? 0 : 1;
	memset(l.record + sizeof(*rec), 0xee, 100);
	line_is(&l, CAIRN_VALUE_TEXT, "n=42, s=<unavailable: ");
	line_is(&l, CAIRN_VALUE_JSON, "\"n\":42,\"s\":{\"unavailable\":\"");
	cairn_trace_close(l.t);
}

static void records_that_cannot_be_ours_are_refused(void **state)
{
	struct line l;

	line_open(&l, "in_register(n, s)");
	struct trace_record *rec = (struct trace_record *)l.record;
	for (size_t n = 0; n < l.probe->n_record; n++)
		assert_false(decode_record(l.t, rec, n, &l.space));
	/* A length beyond the room is cut to it. */
	put(&l, 1, STRING_POINTER_BYTES, &(uint16_t){0x7fff}, 2);
	assert_true(decode_record(l.t, rec, l.probe->n_record, &l.space));
	assert_int_equal(l.space.values[1].n_bytes, 63);
	rec->site = 1;
	assert_false(decode_record(l.t, rec, l.probe->n_record, &l.space));
	rec->site = UINT32_MAX;
	assert_false(decode_record(l.t, rec, l.probe->n_record, &l.space));
	cairn_trace_close(l.t);
}

/* Memory may run out anywhere on the way; the sites are found beforehand. */
static void planning_survives_lack_of_memory(void **state)
{
	for (unsigned int n = 1;; n++) {
		struct cairn_trace *t = open_trace(false);
		struct cairn_err err;
		assert_int_equal(add(t, "pairs(p, v.a) if v.b > 3", &err), 0);
		alloc_fail_at(n);
		int r = add(t, "inl(n, n:hex) if n > 3", &err);
		bool failed = alloc_fail_end();
		if (!failed)
			assert_int_equal(r, 1);
		else if (r < 0)
			assert_int_equal(r, -ENOMEM);
		assert_int_equal(cairn_trace_n_probes(t), r < 0 ? 1 : 2);
		assert_int_equal(cairn_trace_n_sites(t), r < 0 ? 1 : 3);
		cairn_trace_close(t);
		if (!failed)
			break;
	}
}

static int build(void **state)
{
	static char path[100];

	workspace_open(&ws);
	workspace_write(&ws, "one.c", one_c);
	workspace_write(&ws, "two.c", two_c);
	workspace_run(&ws, "gcc -g -O2 -o prog one.c two.c");
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
		cmocka_unit_test(a_hit_has_a_number_at_each_site_where_it_is_known),
		cmocka_unit_test(a_hit_without_a_list_has_no_number),
		cmocka_unit_test(a_number_is_checked_and_survives_lack_of_memory),
		cmocka_unit_test(every_site_of_a_function_is_a_site),
		cmocka_unit_test(what_is_not_listed_never_refuses_a_site),
		cmocka_unit_test(a_refused_site_refuses_the_trace),
		cmocka_unit_test(errors_of_probes_help),
		cmocka_unit_test(a_source_file_or_a_path_chooses),
		cmocka_unit_test(options_are_checked),
		cmocka_unit_test(values_are_printed_as_text_and_json),
		cmocka_unit_test(bit_fields_and_structs_are_printed),
		cmocka_unit_test(constants_of_a_site_need_no_record),
		cmocka_unit_test(records_that_cannot_be_ours_are_refused),
		cmocka_unit_test(planning_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
