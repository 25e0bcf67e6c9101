/* SPDX-License-Identifier: BSD-2-Clause */
/* One-liners of bpftrace: what they become, and what is refused, with its name and place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/script.h>

#include "alloc_fail.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* "probe; probe | by | kind(text) ... | format" */
static void describe(const struct cairn_script *s, char *buf, size_t size)
{
	static const char *const kinds[] = {
		[CAIRN_AGGREGATE_COUNT] = "count", [CAIRN_AGGREGATE_SUM] = "sum",
		[CAIRN_AGGREGATE_AVG] = "avg",     [CAIRN_AGGREGATE_MIN] = "min",
		[CAIRN_AGGREGATE_MAX] = "max",     [CAIRN_AGGREGATE_HIST] = "hist",
		[CAIRN_AGGREGATE_LHIST] = "lhist",
	};
	FILE *out = fmemopen(buf, size, "w");

	for (size_t i = 0; i < s->n_probes; i++)
		fprintf(out, "%s%s", i ? "; " : "", s->probes[i]);
	fprintf(out, " | %s |", s->by ? s->by : "");
	for (size_t i = 0; i < s->n_items; i++)
		fprintf(out, " %s(%s)", kinds[s->items[i].kind],
			s->items[i].text ? s->items[i].text : "");
	fprintf(out, " | %s", s->format ? s->format : "");
	fclose(out);
}

static const struct {
	const char *text, *means;
} taken[] = {
	{"uprobe:/b/a:f { @ = count(); }", "/b/a:f |  | count() | "},
	{"uprobe:/b/a:f /arg0 > 3/ { @[ustack] = count(); }",
	 "/b/a:f if $arg1 > 3 | $stack | count() | "},
	{"u:/b/a:f/pid==4/{@x[comm,arg0]++}", "/b/a:f if $pid==4 | $comm, $arg1 | count() | "},
	{" uprobe:/b/a:f { @[str(arg1), tid] = sum(arg2 * 2); @s[str(arg1),tid]=avg(arg0) ; } ",
	 "/b/a:f | str($arg2), $tid | sum($arg3 * 2) avg($arg1) | "},
	{"uprobe:/b/a:f { @h = hist(arg0 & 0xff); @l = lhist(arg0, 0, 100, 10); }",
	 "/b/a:f |  | hist($arg1 & 0xff) lhist($arg1,0,100,10) | "},
	{"uprobe:/b/a:f { @ = min(args.n); @b = max(args->p->n); }",
	 "/b/a:f |  | min(n) max(p->n) | "},
	{"uprobe:/b/a:f { @ = stats((int32)arg0); }",
	 "/b/a:f |  | count() avg((int32_t)$arg1) sum((int32_t)$arg1) | "},
	{"uretprobe:/b/a:f { @ = hist(retval); }", "/b/a:f |  | hist($ret) | "},
	{"ur:/b/a:f /comm == \"x y\"/ { @[func] = count(); }",
	 "/b/a:f if ($comm == \"x y\") && $duration >= 0 |  | count() | "},
	{"uprobe:/b/a:f,uprobe:/b/a:g* /cpu/ { @[func, pid] = count(); }",
	 "/b/a:f if $cpu; /b/a:g* if $cpu | $pid | count() | "},
	{"usdt:/b/a:prov:name { @[str(arg0)] = count(); }",
	 "usdt:/b/a:prov:name | str($arg1) | count() | "},
	{"U:/b/a:name { @ = count(); }", "usdt:/b/a:*:name |  | count() | "},
	{"uprobe:/b/a:f { printf(\"%s %-5d 100%% {x} %08lx %p\\n\", str(arg0), arg1, pid, arg2); }",
	 "/b/a:f |  | | {str($arg1):s} {$arg2:<5d} 100% {{x}} {$pid:08x} {$arg3:#x}"},
	{"uprobe:/b/a:f { print(((struct rec *)arg0)->pid); }",
	 "/b/a:f |  | | {((struct rec *)$arg1)->pid}"},
	{"uprobe:/b/a:ns::g+0x10 { @[ustack()] = count(); }",
	 "/b/a:ns::g+0x10 | $stack | count() | "},
};

static void what_is_taken_has_its_meaning(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++) {
		struct cairn_script *s = NULL;
		struct cairn_err err = {0};
		char means[1000];
		assert_true(cairn_script_is_one(taken[i].text));
		if (cairn_script_parse(taken[i].text, &s, &err) < 0)
			fail_msg("%s: %s", taken[i].text, err.msg);
		describe(s, means, sizeof(means));
		assert_string_equal(means, taken[i].means);
		cairn_script_free(s);
	}
}

/* The column of the caret, from 0: it is alone in the last line. */
static int caret(const struct cairn_err *err)
{
	const char *last = strrchr(err->msg, '\n');

	return last ? (int)strcspn(last + 1, "^") : -1;
}

static const struct {
	const char *text, *story;
	int column;
} refused[] = {
	{"kprobe:f { @ = count(); }", "kprobe is not taken from bpftrace; -k FUNC", 0},
	{"BEGIN { @ = count(); }", "BEGIN is not taken", 0},
	{"interval:s:1 { @ = count(); }", "interval is not taken", 0},
	{"uprobe:/b/a { @ = count(); }", "PATH:FUNC is needed", 7},
	{"uprobe:/b/a:f { @[kstack] = count(); }", "kstack is not taken from bpftrace", 18},
	{"uprobe:/b/a:f { @[ustack(5)] = count(); }", "ustack(...) is taken without a number", 18},
	{"uprobe:/b/a:f { @[usym(arg0)] = count(); }", "usym is not taken", 18},
	{"uprobe:/b/a:f { @t[tid] = nsecs; }", "nsecs is not taken from bpftrace: how long", 26},
	{"uprobe:/b/a:f { @ = sum(nsecs - @t[tid]); }", "nsecs is not taken", 24},
	{"uprobe:/b/a:f { @ = sum(@t[tid]); }", "a map in an expression", 24},
	{"uprobe:/b/a:f { $x = arg0; }", "this is not taken", 16},
	{"uprobe:/b/a:f { @ = sum($x); }", "a variable is not taken", 24},
	{"uprobe:/b/a:f { @ = quantize(arg0); }", "quantize is no aggregate", 20},
	{"uprobe:/b/a:f { if (arg0) { @ = count(); } }", "if is not taken", 16},
	{"uprobe:/b/a:f { @ = sum(arg0 ? 1 : 2); }", "? : is not taken", 29},
	{"uprobe:/b/a:f { exit(); }", "exit is not taken", 16},
	{"uprobe:/b/a:f { printf(\"%d\", arg0); }", "each event is a line", 26},
	{"uprobe:/b/a:f { printf(\"%r\\n\", arg0); }", "this conversion is not taken", 24},
	{"uprobe:/b/a:f { printf(\"x\\n\"); @ = count(); }", "more than one printf", 31},
	{"uprobe:/b/a:f { @a[pid] = count(); @b[tid] = count(); }", "maps with different keys", 36},
	{"uprobe:/b/a:f { @ = count(); } END { }", "a second block", 31},
	{"uprobe:/b/a:f { @ = count();", "here a } is missing", 28},
	{"uprobe:/b/a:f { }", "a block without a map", 0},
	{"uprobe:/b/a:f { @ = sum(retval); }", "retval is of a uretprobe", 24},
	{"uretprobe:/b/a:f { @ = sum(arg0); }", "arg0 of a uretprobe is no argument", 27},
	{"uprobe:/b/a:f { @ = sum(1e6); }", "this number is not taken", 24},
};

static void what_is_not_taken_is_named_with_a_caret(void **state)
{
	size_t n_wrong = 0;

	for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
		struct cairn_script *s = NULL;
		struct cairn_err err = {0};
		assert_int_equal(cairn_script_parse(refused[i].text, &s, &err), -EINVAL);
		assert_null(s);
		if (strstr(err.msg, refused[i].story) && caret(&err) == refused[i].column)
			continue;
		n_wrong++;
		print_message("%s (column %d)\n", err.msg, caret(&err));
	}
	assert_int_equal(n_wrong, 0);
}

static void a_script_that_is_cut_anywhere_is_refused(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(taken); i++)
		for (size_t n = 0; taken[i].text[n]; n++) {
			struct cairn_script *s = NULL;
			struct cairn_err err = {0};
			char text[200];
			snprintf(text, sizeof(text), "%.*s", (int)n, taken[i].text);
			int r = cairn_script_parse(text, &s, &err);
			bool is_whole = strchr(text, '}') && text[strcspn(taken[i].text, "}") - 1];
			assert_true(r == 0 ? is_whole && s : err.msg[0] && !s);
			cairn_script_free(s);
		}
}

static void probes_are_not_taken_for_scripts(void **state)
{
	static const char *const probes[] = {
		"f",
		"/b/a:f(x) if x > 3",
		"usdt:/b/a:p:n($arg1)",
		"uprobe:/b/a:f",
		"a::{lambda()#1}",
		"uprobe:/b/a::ns::f",
		"x:y{z}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		assert_false(cairn_script_is_one(probes[i]));
}

static void reading_survives_lack_of_memory(void **state)
{
	for (unsigned int n = 1;; n++) {
		struct cairn_script *s = NULL;
		alloc_fail_at(n);
		int r = cairn_script_parse(
			"uprobe:/b/a:f,uprobe:/b/a:g /arg0/ { @[pid, func, str(arg1)] "
			"= lhist(arg0, 0, 10, 1); @[pid, func, str(arg1)] = stats(arg1) }",
			&s, NULL);
		bool failed = alloc_fail_end();
		assert_int_equal(r, failed ? -ENOMEM : 0);
		cairn_script_free(s);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_taken_has_its_meaning),
		cmocka_unit_test(what_is_not_taken_is_named_with_a_caret),
		cmocka_unit_test(a_script_that_is_cut_anywhere_is_refused),
		cmocka_unit_test(probes_are_not_taken_for_scripts),
		cmocka_unit_test(reading_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
