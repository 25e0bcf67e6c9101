/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes as text: what is understood, and where an error is pointed at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "alloc_fail.h"
#include "trace/expr/expr.h"
#include "trace_fixture.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static struct fixture f;

/* A tree in full parentheses. */
static void write_tree(const struct expr *e, FILE *out)
{
	/* clang-format off */
	static const char *const ops[FETCH_N_CODES] = {
		[FETCH_ADD] = "+",  [FETCH_SUB] = "-",	[FETCH_MUL] = "*", [FETCH_DIV] = "/",
		[FETCH_MOD] = "%",  [FETCH_AND] = "&",	[FETCH_OR] = "|",  [FETCH_XOR] = "^",
		[FETCH_SHL] = "<<", [FETCH_SHR] = ">>", [FETCH_EQ] = "==", [FETCH_NE] = "!=",
		[FETCH_LT] = "<",   [FETCH_LE] = "<=",	[FETCH_GT] = ">",  [FETCH_GE] = ">=",
	};
	/* clang-format on */
	static const char *const unary[] = {[EXPR_DEREF] = "*",
					    [EXPR_ADDRESS] = "&",
					    [EXPR_MINUS] = "-",
					    [EXPR_INVERT] = "~",
					    [EXPR_NOT] = "!"};

	switch (e->kind) {
	case EXPR_NAME:
		fprintf(out, "%s%s%s", e->scopes ? e->scopes : "", e->scopes ? "::" : "", e->name);
		return;
	case EXPR_INT:
		fprintf(out, "%lld%s%s", (long long)e->value, e->is_unsigned ? "u" : "",
			e->is_long ? "l" : "");
		return;
	case EXPR_STRING:
		fprintf(out, "\"%.*s\"", (int)e->n_bytes, e->name);
		return;
	case EXPR_MEMBER:
	case EXPR_ARROW:
		write_tree(e->a, out);
		fprintf(out, "%s%s", e->kind == EXPR_ARROW ? "->" : ".", e->name);
		return;
	case EXPR_INDEX:
		write_tree(e->a, out);
		fputc('[', out);
		write_tree(e->b, out);
		fputc(']', out);
		return;
	case EXPR_CAST:
		fprintf(out, "(%s%.*s)", e->type_name->words, (int)e->type_name->n_pointers,
			"****");
		write_tree(e->a, out);
		return;
	case EXPR_SIZEOF:
		fputs("sizeof ", out);
		if (e->a)
			write_tree(e->a, out);
		else
			fprintf(out, "(%s%.*s)", e->type_name->words, (int)e->type_name->n_pointers,
				"****");
		return;
	case EXPR_CHOICE:
		fputc('(', out);
		write_tree(e->a, out);
		fputs(" ? ", out);
		write_tree(e->b, out);
		fputs(" : ", out);
		write_tree(e->c, out);
		fputc(')', out);
		return;
	case EXPR_BINARY:
	case EXPR_AND:
	case EXPR_OR:
		fputc('(', out);
		write_tree(e->a, out);
		fprintf(out, " %s ",
			e->kind == EXPR_BINARY ? ops[e->op]
			: e->kind == EXPR_AND  ? "&&"
					       : "||");
		write_tree(e->b, out);
		fputc(')', out);
		return;
	default:
		fprintf(out, "%s(", unary[e->kind]);
		write_tree(e->a, out);
		fputc(')', out);
	}
}

static char *tree(const struct expr *e)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	write_tree(e, out);
	fclose(out);
	return text;
}

static void heads_end_where_the_list_or_the_condition_begins(void **state)
{
	static const struct {
		const char *text, *head;
		bool has_list, has_condition;
	} cases[] = {
		{"f", "f", false, false},
		{"  f  ", "f", false, false},
		{"f()", "f", true, false},
		{"f ( ) if 1", "f", true, true},
		{"f if x", "f", false, true},
		{"f if (x)", "f", false, true},
		{"/bin/ls:main(argc)", "/bin/ls:main", true, false},
		{"uprobe:/bin/ls:main", "/bin/ls:main", false, false},
		{"u:/bin/ls:main", "/bin/ls:main", false, false},
		{"uprobe:f", "f", false, false},
		{"std::vector<int(char)>::size(this)", "std::vector<int(char)>::size", true, false},
		{"main.(*T).Inc(x)", "main.(*T).Inc", true, false},
		{"main.(*T).Inc", "main.(*T).Inc", false, false},
		{"f(*x)", "f", true, false},
		{"ns::f(int, char const*)", "ns::f", false, false},
		{"f(T &)(a, b) if a", "f", true, true},
		{"T::get(int) const if x", "T::get", false, true},
		{"f()(x)", "f", true, false},
		{"f(T)(x)", "f", true, false},
		{"operator()(struct rec)", "operator()", false, false},
		{"f(a & b, (int)c, sizeof(int))", "f", true, false},
		{"f(class, s == \"int\")", "f", true, false},
		{"A::operator()(x)", "A::operator()", true, false},
		{"A::operator<(x)", "A::operator<", true, false},
		{"A::operator<<(x)", "A::operator<<", true, false},
		{"A::operator<<=(x)", "A::operator<<=", true, false},
		{"A::operator<< <int>(x)", "A::operator<< <int>", true, false},
		{"malloc.c:12:f iffy", "malloc.c:12:f iffy", false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena a = {0};
		struct probe_text p;
		assert_int_equal(probe_parse(&a, cases[i].text, &p, NULL), 0);
		assert_string_equal(p.head, cases[i].head);
		assert_int_equal(p.has_list, cases[i].has_list);
		assert_int_equal(p.condition != NULL, cases[i].has_condition);
		arena_fini(&a);
	}
}

static void values_keep_their_text_and_modifiers(void **state)
{
	struct arena a = {0};
	struct probe_text p;

	assert_int_equal(
		probe_parse(&a, "f( a , b->c.d [ 3 ] :hex,*p:str, &q->r, s[-1])", &p, NULL), 0);
	assert_int_equal(p.n_values, 5);
	static const char *const texts[] = {"a", "b->c.d [ 3 ]", "*p", "&q->r", "s[-1]"};
	static const char *const trees[] = {"a", "b->c.d[3]", "*(p)", "&(q->r)", "s[-(1)]"};
	for (int i = 0; i < 5; i++) {
		char *t = tree(p.values[i].expr);
		assert_string_equal(p.values[i].text, texts[i]);
		assert_string_equal(t, trees[i]);
		assert_int_equal(p.values[i].hex, i == 1);
		assert_int_equal(p.values[i].as_string, i == 2);
		free(t);
	}
	arena_fini(&a);
}

static void operators_bind_as_in_c(void **state)
{
	static const char *const cases[][2] = {
		{"a + b * c", "(a + (b * c))"},
		{"a * b + c", "((a * b) + c)"},
		{"a - b - c", "((a - b) - c)"},
		{"a == b && c || d && e", "(((a == b) && c) || (d && e))"},
		{"a & b == c", "(a & (b == c))"},
		{"a | b ^ c & d", "(a | (b ^ (c & d)))"},
		{"a << 1 + 2", "(a << (1 + 2))"},
		{"!a == b", "(!(a) == b)"},
		{"-a->b * ~c.d", "(-(a->b) * ~(c.d))"},
		{"*a + *b", "(*(a) + *(b))"},
		{"(a + b) * c", "((a + b) * c)"},
		{"a < b == c >= d", "((a < b) == (c >= d))"},
		{"'a' == '\\n'", "(97 == 10)"},
		{"'\\xff' < 0x80000000", "(-1 < 2147483648u)"},
		{"2147483648 == 0777", "(2147483648l == 511)"},
		{"18446744073709551615 > 1ul", "(-1ul > 1ul)"},
		{"s == \"a\\\"b\"", "(s == \"a\"b\")"},
		{"(int)a + b", "((int)a + b)"},
		{"(unsigned long)a->b * c", "((unsigned long)a->b * c)"},
		{"(a) - b", "(a - b)"},
		{"(a) b", "(a)b"},
		{"(a)(b)", "(a)b"},
		{"(a) * b", "(a * b)"},
		{"(const struct rec *)p->next", "(struct rec*)p->next"},
		{"((ns::rec **)p)->x", "(ns::rec**)p->x"},
		{"sizeof(struct rec) + sizeof a.b", "(sizeof (struct rec) + sizeof a.b)"},
		{"sizeof(a)", "sizeof a"},
		{"a[b + 1][c]", "a[(b + 1)][c]"},
		{"a ? b : c ? d : e", "(a ? b : (c ? d : e))"},
		{"a || b ? c ? 1 : 2 : d", "((a || b) ? (c ? 1 : 2) : d)"},
		{"x.c::f::n.m + 'a-b.c'::p->q", "(x.c::f::n.m + a-b.c::p->q)"},
		{"a.b - ns::c", "(a.b - ns::c)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena a = {0};
		struct probe_text p;
		char text[200];
		snprintf(text, sizeof(text), "f if %s", cases[i][0]);
		assert_int_equal(probe_parse(&a, text, &p, NULL), 0);
		char *t = tree(p.condition);
		assert_string_equal(t, cases[i][1]);
		free(t);
		arena_fini(&a);
	}
}

/* The caret of an error message: its column. */
static int caret(const struct cairn_err *err)
{
	const char *line = strrchr(err->msg, '\n');

	return line ? (int)strcspn(line + 1, "^") : -1;
}

static void errors_point_at_their_site(void **state)
{
	static const struct {
		const char *text;
		int code, column;
		const char *story;
	} cases[] = {
		{"", -EINVAL, 0, "name is missing"},
		{"f(", -EINVAL, 2, "name or a constant"},
		{"f(a", -EINVAL, 3, "closing )"},
		{"f(a,", -EINVAL, 4, "name or a constant"},
		{"f(a,)", -EINVAL, 4, "a value is missing"},
		{"f(a->)", -EINVAL, 5, "member"},
		{"f(a b)", -EINVAL, 4, "comma"},
		{"f(a:dec)", -EINVAL, 4, ":str and :hex"},
		{"f(a[b->])", -EINVAL, 7, "member"},
		{"f(a[)", -EINVAL, 4, "name or a constant"},
		{"f(a[])", -EINVAL, 4, "an index is missing"},
		{"f(a(b))", -EINVAL, 3, "functions cannot be called"},
		{"f(buf(a))", -EINVAL, 7, "a number of bytes"},
		{"f(str(a, b))", -EINVAL, 9, "the limit of str() is a number"},
		{"f(str(a, 9999))", -ERANGE, 9, "1 to 2047"},
		{"f if a ? b", -EINVAL, 10, "a : is missing here"},
		{"f if a ? b :", -EINVAL, 12, "a name or a constant is missing"},
		{"f if", -EINVAL, 4, "name or a constant"},
		{"f if a ==", -EINVAL, 9, "name or a constant"},
		{"f if (a", -EINVAL, 7, "closing )"},
		{"f if a b", -EINVAL, 7, "does not belong"},
		{"f() g", -EINVAL, 4, "does not belong"},
		{"f if \"abc", -EINVAL, 5, "no end"},
		{"f if s == \"a\\q\"", -EINVAL, 13, "escape"},
		{"f if 'ab'", -EINVAL, 5, "character"},
		{"f if 12x", -EINVAL, 7, "integer"},
		{"f if 99999999999999999999", -EINVAL, 5, "64 bits"},
		{"f if a = 1", -EINVAL, 7, "does not belong"},
		{"kprobe:f", -EOPNOTSUPP, 0, "kprobe:"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena a = {0};
		struct cairn_err err = {0};
		struct probe_text p;
		assert_int_equal(probe_parse(&a, cases[i].text, &p, &err), cases[i].code);
		if (!strstr(err.msg, cases[i].story) || caret(&err) != cases[i].column)
			fail_msg("%s: %s (column %d)", cases[i].text, err.msg, caret(&err));
		assert_int_equal(err.code, cases[i].code);
		arena_fini(&a);
	}
}

/* What goes deep or on for long is refused before it costs anything. */
static void depth_and_length_have_limits(void **state)
{
	static const struct {
		const char *before, *again, *after;
	} cases[] = {
		{"f if ", "(", "1"},   {"f if ", "!", "1"}, {"f if 1", "+1", ""},
		{"f if 1", "&&1", ""}, {"f(a", "->b", ")"}, {"f(", "*", "a)"},
		{"f(a", ",a", ")"},    {"f", "f", ""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena a = {0};
		struct probe_text p;
		static char text[5000];
		size_t n = (size_t)sprintf(text, "%s", cases[i].before);
		while (n < 4200)
			n += (size_t)sprintf(text + n, "%s", cases[i].again);
		sprintf(text + n, "%s", cases[i].after);
		assert_int_equal(probe_parse(&a, text, &p, NULL), -ERANGE);
		text[n = 1000] = 0;
		if (i < 7)
			assert_int_equal(probe_parse(&a, text, &p, NULL), -ERANGE);
		arena_fini(&a);
	}
}

static int check(const char *text, struct cairn_err *err)
{
	struct arena a = {0};
	struct probe_text p;
	const struct expr_scope scope = {.types = f.types, .function = &f.function, .text = text};
	int r = probe_parse(&a, text, &p, err);

	for (uint32_t i = 0; r == 0 && i < p.n_values; i++)
		r = expr_type_value(&scope, p.values[i].expr, err);
	if (r == 0 && p.condition)
		r = expr_type_condition(&scope, p.condition, err);
	arena_fini(&a);
	return r;
}

static void names_and_types_are_checked(void **state)
{
	static const char *const good[] = {
		("f(i, p->x, p->in.name, p->next->next->in.b, p->arr[3], p->arr[-0], s[-4], *p, "
		 "*p->next)"),
		"f(&p->x, &p->in, v.a, v.name[7], v, s[GREEN], d, r, *r)",
		"f if i == GREEN && p != NULL && !u && true && p->in.name[0] == 'a'",
		"f if s == \"abc\" || \"abc\" != v.name",
		"f if p->c == MINUS && p->in.b > 3 && *p->arr == l && *r > 2",
		"f if p + 1 > 4096 && &p->x == &p->in",
		"f(i + 1, -i, p->x * 2 > l, $cpu, (char)i, s[i], p->arr[u + 1], *(p + 1), "
		"sizeof(*p))",
		"f(((struct outer *)l)->next->x, (char *)l, (enum color)i, (&p->in)->b)",
		"f if $pid == 1 && $comm == \"sh\" || str(l) == \"x\" || $tid != $pid",
		"f if d > 1.5 && d != -0.0 && -1 < d && d == d",
	};

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct cairn_err err = {0};
		if (check(good[i], &err) != 0)
			fail_msg("%s", err.msg);
	}
}

static void nonsense_is_refused_with_its_reason(void **state)
{
	static const struct {
		const char *text;
		int column;
		const char *story;
	} cases[] = {
		{"f(x)", 2, "work has no parameter x; it has: i, u, l, p, s, v, d, r"},
		{"f(GREEN)", 2, "GREEN is a constant"},
		{"f(i->x)", 5, "int is not a pointer"},
		{"f(i.x)", 4, "int has no members"},
		{"f(p.x)", 4, "struct outer * is a pointer: use ->"},
		{"f(p->y)", 5, "struct outer has no member y"},
		{"f(p->arr[4])", 9, "the array has 4 elements"},
		{"f(p->arr[-1])", 10, "the array has 4 elements"},
		{"f(s[99999999999])", 4, "index is too large"},
		{"f(*i)", 2, "int is not a pointer"},
		{"f(&v.a)", 2, "has no address"},
		{"f(&&i)", 2, "name or a constant"},
		{"f if d + 1 > 1", 5, "cannot calculate with them"},
		{"f if d", 5, "cannot calculate with them"},
		{"f if i && d", 10, "write x != 0"},
		{"f if d > i", 9, "compared with a number"},
		{"f(-d)", 3, "cannot calculate with them"},
		{"f((float)i)", 2, "cannot calculate with them"},
		{"f((struct nothing *)l)", 2, "not a type of C"},
		{"f((struct inner)i)", 2, "nothing can be cast to struct inner"},
		{"f(l->x)", 5, "long is not a pointer"},
		{"f((l + 1)->x)", 11, "not a pointer to a type"},
		{"f(p + p)", 4, "two pointers cannot be added"},
		{"f(i - p)", 4, "cannot be subtracted"},
		{"f($comm)", 2, "$comm is a string"},
		{"f($nothing)", 2, "there are $pid, $tid"},
		{"f($duratoin)", 2, "perhaps you mean $duration"},
		{"f($commm)", 2, "perhaps you mean $comm"},
		{"f if str(i) == \"x\"", 9, "needs a pointer"},
		{"f if str(l) > 1", 5, "a value of its own"},
		{"f(sizeof(p->in.b))", 15, "bit-field"},
		{"f(s[d])", 4, "must be an integer"},
		{"f if v == 1", 5, "struct inner cannot be part of a condition"},
		{"f if r > 1", 5, "reference"},
		{"f if s > \"abc\"", 7, "only be compared with == and !="},
		{"f if \"abc\"", 5, "only be compared"},
		{"f if i == \"abc\"", 5, "not a string"},
		{"f if s == \"0123456789012345678901234567890\"", 10, "at most 30"},
		{"f if nothing", 5, "has no parameter nothing"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_err err = {0};
		assert_int_equal(check(cases[i].text, &err), -EINVAL);
		if (!strstr(err.msg, cases[i].story) || caret(&err) != cases[i].column)
			fail_msg("%s: %s (column %d)", cases[i].text, err.msg, caret(&err));
	}
}

static void parsing_survives_lack_of_memory(void **state)
{
	for (unsigned int n = 1;; n++) {
		struct arena a = {0};
		struct probe_text p;
		alloc_fail_at(n);
		int r = probe_parse(&a, "lib.so:f(a->b[1]:hex, *c) if a == 'x' && s != \"yes\"", &p,
				    NULL);
		bool failed = alloc_fail_end();
		arena_fini(&a);
		assert_int_equal(r, failed ? -ENOMEM : 0);
		if (!failed)
			break;
	}
}

/* The number of a hit is any expression, and may have a unit. */
static void the_number_of_a_hit_is_an_expression_with_a_unit(void **state)
{
	static const struct {
		const char *text, *number, *unit;
	} cases[] = {
		{"f", NULL, NULL},
		{"f()", NULL, NULL},
		{"f(n)", "n", NULL},
		{"f( n * size :bytes) if n", "n * size", "bytes"},
		{"f(q->end - q->start:ns)", "q->end - q->start", "nanoseconds"},
		{"f(a && b || 1)", "a && b || 1", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct arena a = {0};
		struct probe_text p;
		assert_int_equal(probe_parse_weighed(&a, cases[i].text, &p, NULL), 0);
		assert_int_equal(p.n_values, cases[i].number ? 1 : 0);
		if (cases[i].number)
			assert_string_equal(p.values[0].text, cases[i].number);
		if (cases[i].unit)
			assert_string_equal(p.values[0].unit, cases[i].unit);
		arena_fini(&a);
	}
}

static void a_hit_has_one_number_and_a_known_unit(void **state)
{
	static const struct {
		const char *text, *story;
		int column;
	} cases[] = {
		{"f(n, m)", "one number", 5},
		{"f(n:str)", "only the units :bytes and :ns", 4},
		{"f(n:bytes:ns)", "a comma or a closing )", 9},
		{"f(n +)", "a name or a constant", 5},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct cairn_err err = {0};
		struct arena a = {0};
		struct probe_text p;
		assert_int_equal(probe_parse_weighed(&a, cases[i].text, &p, &err), -EINVAL);
		if (!strstr(err.msg, cases[i].story) || caret(&err) != cases[i].column)
			fail_msg("%s: %s (column %d)", cases[i].text, err.msg, caret(&err));
		arena_fini(&a);
	}
}

static int build(void **state)
{
	fixture_init(&f);
	return 0;
}

static int clean(void **state)
{
	fixture_fini(&f);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(heads_end_where_the_list_or_the_condition_begins),
		cmocka_unit_test(values_keep_their_text_and_modifiers),
		cmocka_unit_test(operators_bind_as_in_c),
		cmocka_unit_test(errors_point_at_their_site),
		cmocka_unit_test(depth_and_length_have_limits),
		cmocka_unit_test(names_and_types_are_checked),
		cmocka_unit_test(nonsense_is_refused_with_its_reason),
		cmocka_unit_test(parsing_survives_lack_of_memory),
		cmocka_unit_test(the_number_of_a_hit_is_an_expression_with_a_unit),
		cmocka_unit_test(a_hit_has_one_number_and_a_known_unit),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
