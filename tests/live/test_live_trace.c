/* SPDX-License-Identifier: BSD-2-Clause */
/* What is fetched, and how often: the sample program says what it passed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "workspace.h"
#include "trace/trace.h"
#include "trace_session.h"

static struct workspace ws;

static const char values_c[] =
	"#include <stddef.h>\n"
	"enum color { RED, GREEN = 5 };\n"
	"struct inner { short a : 3; unsigned b : 13; char name[8]; };\n"
	"struct outer { int x; struct inner in; const char *s; enum color c; double d;\n"
	"	struct outer *next; long arr[4]; };\n"
	"volatile long sink;\n"
	"volatile const void *keep;\n"
	"#define NOINLINE __attribute__((noinline, noclone, noipa))\n"
	"#define INLINE static inline __attribute__((always_inline))\n"
	"INLINE int twice(int n, const char *s) { sink += n; sink += s[0]; return 2 * n; }\n"
	"NOINLINE int body(struct outer *p, int n, const char *s, enum color c, struct inner v)\n"
	"{ keep = p; return twice(n, s) + c + v.b; }\n"
	"NOINLINE int other(int n, const char *s) { return twice(n * 3, \"in other\"); }\n"
	"NOINLINE int pointers(const char *literal, const char *null, const char *wild, int *far)\n"
	"{ keep = literal; return 0; }\n"
	"NOINLINE int numbers(int i, unsigned u, long l, unsigned char b, _Bool yes)\n"
	"{ sink += i + u + l + b + yes; return 0; }\n"
	"NOINLINE void branchy(int n, long m) { if (n > 3) sink += m; }\n"
	"NOINLINE void before_main(int n) { sink += n; }\n"
	"__attribute__((constructor)) static void early(void) { before_main(7); }\n"
	"int main(void)\n"
	"{\n"
	"	struct outer two = { 2, { 1, 3, \"two\" }, 0, GREEN, 0.5, 0, { 1, 2, 3, 4 } };\n"
	"	struct outer one = { 1, { -2, 77, \"one\" }, \"first\", RED, 1.5, &two, { 9, 8, 7, "
	"6 } };\n"
	"	for (int n = 0; n < 10; n++) {\n"
	"		sink += body(&one, n, n % 2 ? \"odd\" : \"even\", n % 3 ? RED : GREEN, "
	"one.in);\n"
	"		sink += other(n, \"from other\");\n"
	"		branchy(n, n + 100);\n"
	"	}\n"
	"	pointers(\"never touched before the probe\", 0, (char *)16, (int *)8);\n"
	"	numbers(-1, 0xffffffffu, -5, 200, 1);\n"
	"	numbers(7, 3, 1L << 40, 7, 0);\n"
	"	return 0;\n"
	"}\n";

static void need_tracing(void)
{
	const char *missing = session_missing();

	if (!missing)
		return;
	print_message("%s\n", missing);
	skip();
}

static struct session_opts sample(void)
{
	return (struct session_opts){.program = workspace_path(&ws, "values")};
}

static void every_call_of_an_inlined_function_is_one_event(void **state)
{
	struct session s;
	const struct session_opts opts = sample();

	need_tracing();
	session_run(&s, &opts, "twice(n)");
	assert_int_equal(s.n, 20);
	for (int i = 0; i < 10; i++) {
		char text[20];
		snprintf(text, sizeof(text), "n=%d", i);
		assert_string_equal(s.events[2 * i], text);
		snprintf(text, sizeof(text), "n=%d", 3 * i);
		assert_string_equal(s.events[2 * i + 1], text);
	}
	assert_int_equal(s.stats.total.lost, 0);
	assert_int_equal(s.stats.missed, 0);
	assert_int_equal(s.stats.n_attached, 2);
	session_free(&s);
}

/* Both units have a function "outer" with the same code, and in it a copy of "step". */
static const char step_h[] =
	"extern volatile int sink;\n"
	"static inline void step(int v) { sink = v; sink = v * 3; }\n"
	"static __attribute__((noinline)) int outer(int v) { step(v); return v + 1; }\n";

static void a_call_in_functions_of_one_name_that_the_linker_folded_is_one_event(void **state)
{
	static const char *const builds[] = {"gcc -fuse-ld=gold", "clang -fuse-ld=lld"};
	size_t done = 0;

	need_tracing();
	workspace_write(&ws, "step.h", step_h);
	workspace_write(&ws, "one.c", "#include \"step.h\"\nint one(int v) { return outer(v); }\n");
	workspace_write(&ws, "two.c",
			"#include \"step.h\"\nvolatile int sink;\nint one(int v);\n"
			"int main(void) { return one(sink) + outer(sink) == 0; }\n");
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++) {
		const struct session_opts opts = {.program = workspace_path(&ws, "folded")};
		struct session s;

		if (!workspace_try(
			    &ws,
			    "%s -O2 -g -ffunction-sections -Wl,--icf=all -o folded one.c two.c",
			    builds[i]))
			continue;
		session_run(&s, &opts, "step");
		assert_int_equal(s.n, 2);
		session_free(&s);
		done++;
	}
	if (!done) {
		print_message("neither gold nor lld\n");
		skip();
	}
}

static void arguments_are_typed(void **state)
{
	struct session s;
	const struct session_opts opts = sample();

	need_tracing();
	session_run(&s, &opts,
		    "body(n, s, c, v, p->x, p->s, p->next->in.name, p->in.a, p->in.b:hex, "
		    "p->arr[2], p->d, "
		    "p->next->s, p->next->arr, *p->next, v.b, v.name, s:hex) if n == 3");
	assert_int_equal(s.n, 1);
	char *hex = strstr(s.events[0], ", s:hex=0x");
	assert_non_null(hex);
	*hex = 0;
	assert_string_equal(
		s.events[0],
		"n=3, s=\"odd\", c=GREEN, v={.a = -2, .b = 77, .name = \"one\"}, p->x=1, "
		"p->s=\"first\", p->next->in.name=\"two\", p->in.a=-2, p->in.b=0x4d, "
		"p->arr[2]=7, p->d=1.5, p->next->s=NULL, p->next->arr={1, 2, 3, 4}, "
		"*p->next={.x = 2, .in = {.a = 1, .b = 3, .name = \"two\"}, .s = 0x0, "
		".c = GREEN, .d = 0.5, .next = 0x0, .arr = {1, 2, 3, 4}}, v.b=77, "
		"v.name=\"one\"");
	session_free(&s);
}

static void memory_that_is_not_resident_is_read_and_bad_memory_is_told(void **state)
{
	struct session s;
	const struct session_opts opts = sample();

	need_tracing();
	session_run(&s, &opts, "pointers(literal, null, wild, *far, *null)");
	assert_int_equal(s.n, 1);
	if (!s.stats.sleepable) {
		session_free(&s);
		print_message("this kernel's uprobe programs cannot sleep\n");
		skip();
	}
	assert_string_equal(s.events[0],
			    "literal=\"never touched before the probe\", null=NULL, "
			    "wild=<unreadable at 0x10>, *far=<unreadable: memory cannot be read>, "
			    "*null=<unreadable: memory cannot be read>");
	session_free(&s);
}

static void a_command_is_traced_from_its_first_instruction(void **state)
{
	struct session s;
	const struct session_opts opts = sample();

	need_tracing();
	session_run(&s, &opts, "before_main");
	assert_int_equal(s.n, 1);
	assert_string_equal(s.events[0], "n=7");
	assert_true(WIFEXITED(s.status));
	session_free(&s);
}

static void long_strings_are_cut_with_a_mark(void **state)
{
	struct session s;
	struct session_opts opts = sample();

	need_tracing();
	opts.trace.string_bytes = 16;
	session_run(&s, &opts, "pointers(literal)");
	assert_int_equal(s.n, 1);
	assert_string_equal(s.events[0], "literal=\"never touched be\"...");
	session_free(&s);
	opts.trace.string_bytes = 5;
	session_run(&s, &opts, "pointers(literal)");
	assert_string_equal(s.events[0], "literal=\"never\"...");
	session_free(&s);
}

static void both_back_ends_see_the_same(void **state)
{
	struct session multi, single;
	struct session_opts opts = sample();

	need_tracing();
	opts.trace.backend = CAIRN_BACKEND_UPROBE_MULTI;
	session_run(&multi, &opts, "twice(n)");
	opts.trace.backend = CAIRN_BACKEND_UPROBE;
	session_run(&single, &opts, "twice(n)");
	assert_int_equal(single.stats.backend, CAIRN_BACKEND_UPROBE);
	assert_int_equal(single.stats.n_links, 2);
	assert_int_equal(multi.stats.n_links, 1);
	assert_int_equal(multi.n, 20);
	assert_int_equal(single.n, 20);
	for (size_t i = 0; i < multi.n; i++)
		assert_string_equal(multi.events[i], single.events[i]);
	session_free(&multi);
	session_free(&single);
}

static void all_or_none_unless_told_otherwise(void **state)
{
	struct session s;
	struct session_opts opts = sample();

	need_tracing();
	session_run(&s, &opts, "twice(s)");
	if (s.attached >= 0) {
		session_free(&s);
		print_message("this compiler keeps s at every site\n");
		skip();
	}
	assert_int_equal(s.attached, -ENOENT);
	assert_non_null(strstr(s.err.msg, "1 of 2 sites"));
	assert_non_null(strstr(s.err.msg, "other"));
	session_free(&s);
	opts.trace.best_effort = true;
	session_run(&s, &opts, "twice(s)");
	assert_int_equal(s.attached, 1);
	assert_int_equal(s.n, 10);
	assert_int_equal(s.stats.n_refused, 1);
	session_free(&s);
	/* Not listed: never a reason to refuse. */
	opts.trace.best_effort = false;
	session_run(&s, &opts, "twice");
	assert_int_equal(s.n, 20);
	assert_non_null(strstr(s.events[1], "s=<unavailable: "));
	session_free(&s);
}

/* Conditions whose truth the C compiler itself tells, over the arguments of numbers(). */
static const char *const conditions[] = {
	"i < 0",
	"i == -1",
	"i == 0xffffffff",
	"u == -1",
	"u > 5",
	"l < 0",
	"l == -5",
	"l > 0x7fffffff",
	"b == 200",
	"b + 100 > 255",
	"yes",
	"!yes",
	"i + 1 == 0",
	"u + 1 == 0",
	"u + 1L == 0x100000000",
	"i >> 1 == -1",
	"u >> 31 == 1",
	"u << 1 == 0xfffffffe",
	"l / 2 == -2",
	"l % 3 == -2",
	"i * i == 1",
	"(i & 0xff) == 255",
	"(i | 1) == -1",
	"(u ^ 0xffff) == 0xffff0000",
	"~i == 0",
	"-i == 1",
	"i < 0 && l < 0",
	"i > 0 || b == 7",
	"i > 0 && l / 0",
	"b == i",
	"l >> 40 == 1",
	"(i == -1) + (l == -5) == 2",
	"1 + 2 * 3 == 7 && b",
	"'a' == 97 && i",
	"b - 8 < 0",
	"u - 4 > 100",
	"i < u",
	"l < u",
	"b % 4 == 3",
	"l << 24 != 0",
	"-l > 4",
	"!i == 0",
	"(unsigned char)i == 255",
	"(char)b < 0",
	"(unsigned short)l > 60000",
	"(_Bool)(l & 4)",
	"(long)u - 1 > i",
	"(int)(u + l) == -6",
	"sizeof(l) == 8 && sizeof(b + 1) == 4",
	"(i > 0 && b) || (l < 0 && yes)",
	"(u >> (b & 7)) > 3",
};
#define N_CONDITIONS (sizeof(conditions) / sizeof(conditions[0]))

/* A program that evaluates each condition for the same two calls and prints how often it held. */
static void compiler_says(int *counts)
{
	char *source = NULL, line[64];
	size_t size = 0;
	FILE *out = open_memstream(&source, &size);

	fputs("#include <stdio.h>\nint main(void) {\n", out);
	for (size_t i = 0; i < N_CONDITIONS; i++)
		fprintf(out,
			"{ int n = 0; { volatile int i_ = -1; int i = i_; unsigned u = "
			"0xffffffffu; long l = -5;"
			" unsigned char b = 200; _Bool yes = 1; n += !!(%s); }\n"
			"{ volatile int i_ = 7; int i = i_; unsigned u = 3; long l = 1L << 40;"
			" unsigned char b = 7; _Bool yes = 0; n += !!(%s); } printf(\"%%d\\n\", "
			"n); }\n",
			conditions[i], conditions[i]);
	fputs("return 0; }\n", out);
	fclose(out);
	/*
	 * What divides by zero is not evaluated: i > 0 is false in the first call; the second is
	 * undecided.
	 */
	workspace_write(&ws, "truth.c", source);
	free(source);
	workspace_run(&ws, "sed -i 's,l / 0,0,' truth.c && gcc -w -O0 -o truth truth.c && ./truth "
			   "> truth.txt");
	FILE *in = fopen(workspace_path(&ws, "truth.txt"), "r");
	assert_non_null(in);
	for (size_t i = 0; i < N_CONDITIONS && fgets(line, sizeof(line), in); i++)
		counts[i] = atoi(line);
	fclose(in);
}

static void conditions_mean_what_they_mean_in_c(void **state)
{
	int expected[N_CONDITIONS];
	const struct session_opts opts = sample();

	need_tracing();
	compiler_says(expected);
	/* All at once: each event belongs to one probe, and the counts tell. */
	for (size_t i = 0; i < N_CONDITIONS; i++) {
		struct session s;
		char probe[200];
		snprintf(probe, sizeof(probe), "numbers(i, u, l, b, yes) if %s", conditions[i]);
		session_run(&s, &opts, probe);
		if ((int)s.n != expected[i])
			fail_msg("%s: %zu events, the compiler says %d", conditions[i], s.n,
				 expected[i]);
		assert_int_equal(s.n + s.stats.total.filtered + s.stats.total.undecided, 2);
		assert_int_equal(s.stats.total.undecided, strstr(conditions[i], "/ 0") ? 1 : 0);
		session_free(&s);
	}
}

static void string_conditions_are_decided_in_the_kernel(void **state)
{
	static const struct {
		const char *condition;
		size_t events, undecided;
	} cases[] = {
		{"s == \"odd\"", 5, 0},
		{"s != \"odd\"", 5, 0},
		{"\"even\" == s", 5, 0},
		{"s == \"eve\"", 0, 0},
		{"s == \"evens\"", 0, 0},
		{"p->next->in.name == \"two\"", 10, 0},
		{"p->next->s == \"x\"", 0, 10},
		{"p->next->s && p->next->s == \"x\"", 0, 0},
		{"p->next->next->x == 1", 0, 10},
		{"c == GREEN", 4, 0},
		{"v.a == -2 && v.b == 77", 10, 0},
		{"p->in.a == -2 && p->in.b == 77", 10, 0},
		{"*p->arr == 9", 10, 0},
		{"p->arr[3] == 6 && &p->in == &p->x + 1", 10, 0},
		{"p->arr[n & 3] + p->arr[(n + 1) & 3] > 14", 8, 0},
		{"p->arr[n]", 4, 6},
		{"*(p->arr + 1) == 8 && (&p->arr[3] - p->arr) == 3", 10, 0},
		{"((struct outer *)(long)p)->next->x == 2", 10, 0},
		{"p->d == 1.5 && p->d > 1 && p->d < 1.6 && -2 <= p->d && p->d != 1.25", 10, 0},
		{"p->d > p->next->d", 10, 0},
		{"p->d < p->next->d || p->d == p->next->d", 0, 0},
		{"str(p->next->in.name) == \"two\" && (char *)(long)s != 0", 10, 0},
		{"$comm == \"values\" && $pid == $tid && $uid == 0 && $cpu < 4096", 10, 0},
		{"$comm == \"value\"", 0, 0},
		{"1 / (n % 2)", 5, 5},
	};
	const struct session_opts opts = sample();

	need_tracing();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct session s;
		char probe[200];
		snprintf(probe, sizeof(probe), "body(n) if %s", cases[i].condition);
		session_run(&s, &opts, probe);
		if (s.n != cases[i].events || s.stats.total.undecided != cases[i].undecided)
			fail_msg("%s: %zu events, %llu undecided", cases[i].condition, s.n,
				 (unsigned long long)s.stats.total.undecided);
		session_free(&s);
	}
}

static void a_full_ring_loses_events_and_counts_every_one(void **state)
{
	char *argv[] = {(char *)workspace_path(&ws, "flood"), NULL};
	struct session_opts opts = {.program = argv[0], .argv = argv};
	struct cairn_trace *t;
	struct cairn_err err = {0};
	struct cairn_trace_stats stats = {.size = sizeof(stats)};
	struct session s = {0};
	int n = 0;

	need_tracing();
	struct cairn_trace_opts trace = {
		.size = sizeof(trace), .exe = opts.program, .argv = argv, .ring_bytes = 4096};
	assert_int_equal(cairn_trace_open(&trace, &t, &err), 0);
	assert_int_equal(cairn_trace_add(t, "drop(n)", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), 1);
	assert_int_equal(cairn_trace_start(t, &err), 0);
	/* Nobody reads until it has ended. */
	while (!cairn_trace_target_gone(t))
		;
	while ((n = cairn_trace_poll(t, 0, NULL, &s, &err)) > 0)
		;
	assert_int_equal(n, 0);
	assert_int_equal(cairn_trace_stats(t, &stats, NULL, &err), 0);
	assert_true(stats.total.lost > 0);
	assert_int_equal(stats.total.events + stats.total.lost, 5000);
	cairn_trace_close(t);
}

/* Three inlined copies that share an address are three calls each time the program comes by. */
static void sites_at_one_address_give_one_event_each(void **state)
{
	const char *path = workspace_path(&ws, "values");
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_function_list found;
	struct cairn_err err = {0};
	struct trace_file *file;
	struct cairn_trace *t;
	char *argv[] = {(char *)path, NULL};
	static struct cairn_site three[3];

	need_tracing();
	struct cairn_trace_opts opts = {.size = sizeof(opts), .exe = path, .argv = argv};
	assert_int_equal(cairn_binary_open(path, NULL, &bin, &err), 0);
	assert_int_equal(cairn_sites_open(bin, NULL, &sites, &err), 0);
	assert_int_equal(cairn_sites_find(sites, "other", &found, &err), 1);
	struct cairn_function f = *found.p[0];
	assert_int_equal(f.n_sites, 1);
	for (int i = 0; i < 3; i++)
		three[i] = f.sites[0];
	session_make_copies(three, 3);
	f.sites = three;
	f.n_sites = 3;
	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	assert_int_equal(trace_add_file(t, path, path, bin, sites, &file, &err), 0);
	assert_int_equal(
		trace_add_function(t, file, &f, cairn_sites_types(sites), "other(n)", &err), 0);
	assert_int_equal(cairn_trace_attach(t, &err), 3);
	assert_int_equal(cairn_trace_n_programs(t), 1);
	assert_int_equal(cairn_trace_start(t, &err), 0);
	int n = 0;
	while (!cairn_trace_target_gone(t))
		n += cairn_trace_poll(t, 10, NULL, NULL, &err);
	n += cairn_trace_poll(t, 0, NULL, NULL, &err);
	assert_int_equal(n, 30);
	cairn_trace_close(t);
}

/* The same program with the probes where they are and where they were moved to. */
static void moved_probes_see_the_same(void **state)
{
	static const char *const probes[] = {"twice", "branchy", "body(n, s, c, v, p->x)",
					     "other", "numbers", "pointers(null)",
					     NULL};
	struct session moved, unmoved;
	struct session_opts opts = sample();
	struct cairn_trace *t;
	uint32_t n = 0;

	need_tracing();
	const struct cairn_trace_opts planning = {.size = sizeof(planning), .exe = opts.program};
	assert_int_equal(cairn_trace_open(&planning, &t, NULL), 0);
	for (int i = 0; probes[i]; i++)
		assert_true(cairn_trace_add(t, probes[i], NULL) >= 0);
	for (uint32_t i = 0; i < cairn_trace_n_sites(t); i++)
		n += cairn_trace_site(t, i)->moved;
	cairn_trace_close(t);
	assert_true(n > 0);
	session_run_all(&moved, &opts, probes);
	opts.trace.no_move = true;
	session_run_all(&unmoved, &opts, probes);
	assert_int_equal(moved.n, 20 + 10 + 10 + 10 + 2 + 1);
	assert_int_equal(moved.n, unmoved.n);
	for (size_t i = 0; i < moved.n; i++)
		assert_string_equal(moved.events[i], unmoved.events[i]);
	session_free(&moved);
	session_free(&unmoved);
}

static void two_probes_on_one_function_both_fire(void **state)
{
	struct session s;
	const struct session_opts opts = sample();
	const char *const probes[] = {"other(n)", "other(s)", NULL};

	need_tracing();
	session_run_all(&s, &opts, probes);
	assert_int_equal(s.n, 20);
	session_free(&s);
}

static int build(void **state)
{
	workspace_open(&ws);
	workspace_write(&ws, "values.c", values_c);
	workspace_run(&ws, "gcc -g -O2 -o values values.c");
	workspace_write(&ws, "flood.c",
			"volatile int sink;\n"
			"__attribute__((noinline, noipa)) void drop(int n) { sink = n; }\n"
			"int main(void) { for (int i = 0; i < 5000; i++) drop(i); return 0; }\n");
	workspace_run(&ws, "gcc -g -O2 -o flood flood.c");
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
		cmocka_unit_test(every_call_of_an_inlined_function_is_one_event),
		cmocka_unit_test(
			a_call_in_functions_of_one_name_that_the_linker_folded_is_one_event),
		cmocka_unit_test(arguments_are_typed),
		cmocka_unit_test(memory_that_is_not_resident_is_read_and_bad_memory_is_told),
		cmocka_unit_test(a_command_is_traced_from_its_first_instruction),
		cmocka_unit_test(long_strings_are_cut_with_a_mark),
		cmocka_unit_test(both_back_ends_see_the_same),
		cmocka_unit_test(all_or_none_unless_told_otherwise),
		cmocka_unit_test(conditions_mean_what_they_mean_in_c),
		cmocka_unit_test(string_conditions_are_decided_in_the_kernel),
		cmocka_unit_test(a_full_ring_loses_events_and_counts_every_one),
		cmocka_unit_test(sites_at_one_address_give_one_event_each),
		cmocka_unit_test(moved_probes_see_the_same),
		cmocka_unit_test(two_probes_on_one_function_both_fire),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
