/* SPDX-License-Identifier: BSD-2-Clause */
/* Formats as text: what is understood, and where an error is pointed at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "trace/show/format.h"

static struct arena arena;

static int begin(void **state)
{
	arena_init(&arena);
	return 0;
}

static int end(void **state)
{
	arena_fini(&arena);
	return 0;
}

static struct trace_format *parse(const char *text)
{
	struct trace_format *f = NULL;
	struct cairn_err err = {0};

	if (format_parse(&arena, text, &f, &err) < 0)
		fail_msg("%s: %s", text, err.msg);
	return f;
}

static void text_is(const struct trace_format *f, uint32_t from, uint32_t n, const char *expected)
{
	assert_int_equal(n, strlen(expected));
	assert_memory_equal(f->literal + from, expected, n);
}

static void text_and_fields_alternate(void **state)
{
	const struct trace_format *f = parse("a{{b}}\\t{x}{y:>5}\\\\n\\n{$comm} end");

	assert_int_equal(f->n_fields, 3);
	text_is(f, f->fields[0].from, f->fields[0].n_text, "a{b}\t");
	text_is(f, f->fields[1].from, f->fields[1].n_text, "");
	text_is(f, f->fields[2].from, f->fields[2].n_text, "\\n\n");
	text_is(f, f->end_from, f->n_end, " end");
	assert_int_equal(f->fields[0].known, FORMAT_VALUE);
	assert_int_equal(f->fields[2].known, FORMAT_COMM);
	assert_false(f->needs_delta);
	assert_true(parse("{$delta}")->needs_delta);
	f = parse("");
	assert_int_equal(f->n_fields + f->n_end, 0);
	f = parse("only text");
	assert_int_equal(f->n_fields, 0);
	text_is(f, f->end_from, f->n_end, "only text");
}

static void specs_are_those_of_python(void **state)
{
	const struct format_spec *s = &parse("{x:*^+#012.3e}")->fields[0].spec;

	assert_string_equal(s->fill, "*");
	assert_true(s->align == '^' && s->has_plus && s->is_alternate && s->has_zero);
	assert_true(s->width == 12 && s->has_precision && s->precision == 3 && s->type == 'e');
	s = &parse("{x:str:\xc3\xa4>4s}")->fields[0].spec;
	assert_string_equal(s->fill, "\xc3\xa4");
	assert_true(s->align == '>' && s->width == 4 && s->type == 's');
	s = &parse("{x:-7}")->fields[0].spec;
	assert_true(s->align == '<' && s->width == 7 && !s->type && !strcmp(s->fill, " "));
	s = &parse("{x:<07}")->fields[0].spec;
	assert_true(s->align == '<' && s->width == 7 && !strcmp(s->fill, "0"));
	s = &parse("{x:<<}")->fields[0].spec;
	assert_true(s->align == '<' && !strcmp(s->fill, "<"));
	s = &parse("{(a > b ):x}")->fields[0].spec;
	assert_int_equal(s->type, 'x');
}

/* The last line of a message is the caret. */
static void points_at(const char *text, size_t column, int code)
{
	struct trace_format *f = NULL;
	struct cairn_err err = {0};
	const char *last;

	assert_int_equal(format_parse(&arena, text, &f, &err), code);
	last = strrchr(err.msg, '\n');
	assert_non_null(last);
	if (strlen(last + 1) != column + 1 || last[1 + column] != '^')
		fail_msg("%s: %s", text, err.msg);
}

static void mistakes_are_pointed_at(void **state)
{
	char many[FORMAT_FIELDS_MAX * 3 + 4], *p = many;

	points_at("a {x", 4, -EINVAL);
	points_at("{x:", 3, -EINVAL);
	points_at("{x:5", 4, -EINVAL);
	points_at("{}", 1, -EINVAL);
	points_at("a}b", 1, -EINVAL);
	points_at("a\\", 1, -EINVAL);
	points_at("\\a", 0, -EINVAL);
	points_at("{x:.}", 4, -EINVAL);
	points_at("{x:1001}", 3, -EINVAL);
	points_at("{x:99999999999999999999}", 3, -EINVAL);
	points_at("{x:dd}", 3, -EINVAL);
	points_at("{x!r}", 2, -EINVAL);
	points_at("{$what}", 1, -EINVAL);
	points_at("{$time:str}", 1, -EINVAL);
	points_at("n=%-5d", 2, -EINVAL);
	parse("100% {x}%d");
	parse("100 %");
	for (int i = 0; i <= FORMAT_FIELDS_MAX; i++, p += 3)
		memcpy(p, "{x}", 4);
	points_at(many, (size_t)FORMAT_FIELDS_MAX * 3, -ERANGE);
}

static void parsing_survives_lack_of_memory(void **state)
{
	for (unsigned int n = 1;; n++) {
		struct trace_format *f = NULL;
		struct cairn_err err = {0};
		struct arena a = {0};
		alloc_fail_at(n);
		int r = format_parse(&a, "{p->next->name:str:>20} {a + b * 3:x} text", &f, &err);
		bool failed = alloc_fail_end();
		assert_int_equal(r, failed ? -ENOMEM : 0);
		arena_fini(&a);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_fields_alternate),
		cmocka_unit_test(specs_are_those_of_python),
		cmocka_unit_test(mistakes_are_pointed_at),
		cmocka_unit_test(parsing_survives_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
