/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Expressions against what GCC computes for the same text
 *
 * Random expressions over variables of every integer type, arrays, pointers and floats are put into
 * a C program, which prints their values, and are compiled to fetch programs, which the reference
 * interpreter runs over a memory with the same variables. Both must agree, in a condition and in a
 * value alike. A division that ends the C program's expression has no result here either.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/expr/compile.h"
#include "types/build.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { N_EXPRS = 4000, TEXT_MAX = 1500, BASE = 0x10000000, ROOM = 4096, N_ELEMENTS = 8 };

/* Variables of the program; all lie in one struct at BASE, in this order. */
enum kind { INTEGER, FLOAT, ARRAY, POINTER };
static const struct var {
	const char *name, *declared;
	enum kind kind;
	unsigned int size;
	bool is_signed;
} vars[] = {
	{"ul", "unsigned long ul", INTEGER, 8, false},
	{"l", "long l", INTEGER, 8, true},
	{"l2", "long l2", INTEGER, 8, true},
	{"i", "int i", INTEGER, 4, true},
	{"i2", "int i2", INTEGER, 4, true},
	{"u", "unsigned int u", INTEGER, 4, false},
	{"u2", "unsigned int u2", INTEGER, 4, false},
	{"h", "short h", INTEGER, 2, true},
	{"uh", "unsigned short uh", INTEGER, 2, false},
	{"c", "signed char c", INTEGER, 1, true},
	{"uc", "unsigned char uc", INTEGER, 1, false},
	{"d", "double d", FLOAT, 8, true},
	{"d2", "double d2", FLOAT, 8, true},
	{"f", "float f", FLOAT, 4, true},
	{"f2", "float f2", FLOAT, 4, true},
	{"ai", "int ai[8]", ARRAY, 4, true},
	{"aul", "unsigned long aul[8]", ARRAY, 8, false},
	{"auh", "unsigned short auh[8]", ARRAY, 2, false},
	{"pi", "int *pi", POINTER, 4, true},
	{"pl", "unsigned long *pl", POINTER, 8, false},
};
enum { N_VARS = ARRAY_SIZE(vars), N_FIRST_FLOAT = 11, N_FIRST_ARRAY = 15, N_FIRST_POINTER = 18 };

static struct workspace ws;
static struct cairn_types *types;
static struct cairn_param params[N_VARS];
static struct cairn_arg args[N_VARS];
static struct cairn_piece pieces[N_VARS];
static struct cairn_loc_step steps[N_VARS];
static uint64_t offsets[N_VARS];
static uint8_t memory[ROOM];
static char texts[N_EXPRS][TEXT_MAX];
static uint64_t state_of_random = 88172645463325252u;

static uint64_t random_u64(void)
{
	state_of_random ^= state_of_random << 13;
	state_of_random ^= state_of_random >> 7;
	return state_of_random ^= state_of_random << 17;
}

static unsigned int below(unsigned int n)
{
	return (unsigned int)(random_u64() >> 33) % n;
}

/* ---- the text ---- */

static void write_expr(FILE *out, unsigned int depth);

static void write_constant(FILE *out)
{
	static const char *const constants[] = {"0",
						"1",
						"2",
						"7",
						"100",
						"0xff",
						"2147483647",
						"2147483648",
						"4294967295",
						"0x80000000",
						"1u",
						"5ul",
						"9223372036854775807",
						"'a'",
						"'\\xff'"};

	fputs(constants[below(ARRAY_SIZE(constants))], out);
}

static void write_type(FILE *out)
{
	static const char *const names[] = {
		"char",           "signed char", "unsigned char",     "short",
		"unsigned short", "int",         "unsigned",          "long",
		"unsigned long",  "long long",   "uint8_t",           "int16_t",
		"uint32_t",       "size_t",      "long unsigned int", "_Bool"};

	fputs(names[below(ARRAY_SIZE(names))], out);
}

/* An element, by an index that is one of the array or sometimes is not one that is a constant. */
static void write_element(FILE *out, unsigned int depth)
{
	unsigned int from = N_FIRST_ARRAY, n = N_VARS - N_FIRST_ARRAY;
	const struct var *v = &vars[from + below(n)];

	if (v->kind == POINTER && below(2)) {
		fprintf(out, "*(%s + (", v->name);
		write_expr(out, depth - 1);
		fputs(") % 3u)", out);
		return;
	}
	fprintf(out, "%s[(", v->name);
	write_expr(out, depth - 1);
	fprintf(out, ") & %d]", v->kind == POINTER ? 3 : N_ELEMENTS - 1);
}

static void write_float_comparison(FILE *out)
{
	static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
	static const char *const numbers[] = {"0",    "-0.0",  "1",      "-1",     "0.1",
					      "1.5",  "1e300", "-1e300", "1e-310", "16777217",
					      "0.1f", "3",     "-2.5",   "1e-45"};
	unsigned int at = N_FIRST_FLOAT + below(4);
	const char *op = ops[below(ARRAY_SIZE(ops))];

	/* The other one of its size comes after it, or before. */
	unsigned int other = N_FIRST_FLOAT + (at - N_FIRST_FLOAT) / 2 * 2 + below(2);
	if (below(3) == 0)
		fprintf(out, "(%s %s %s)", vars[at].name, op, vars[other].name);
	else if (below(3) == 0)
		fprintf(out, "(%s %s %s)", numbers[below(ARRAY_SIZE(numbers))], op, vars[at].name);
	else
		fprintf(out, "(%s %s %s)", vars[at].name, op, numbers[below(ARRAY_SIZE(numbers))]);
}

static void write_pointers(FILE *out)
{
	static const char *const forms[] = {"(pi - ai)",
					    "(&ai[5] - pi)",
					    "(pi == ai)",
					    "(pi + 1 > ai)",
					    "(pl - aul)",
					    "(1 + pl < &aul[7])",
					    "((long)pi == (long)&ai[2])",
					    "(*pl)",
					    "(*pi)",
					    "(*(int *)pl)",
					    "((unsigned char *)pi)[1]",
					    "((short *)pl)[2]",
					    "sizeof(pi)",
					    "sizeof(ai)",
					    "sizeof(*pl)",
					    "sizeof(short)",
					    "sizeof(i + l)",
					    "sizeof((char)i)",
					    "sizeof ai[0]",
					    "sizeof(int *)"};

	fputs(forms[below(ARRAY_SIZE(forms))], out);
}

static void write_binary(FILE *out, unsigned int depth)
{
	static const char *const ops[] = {"+",  "-",  "*",  "/", "%",  "&", "|",  "^",  "<<",
					  ">>", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};
	const char *op = ops[below(ARRAY_SIZE(ops))];

	fputc('(', out);
	write_expr(out, depth - 1);
	fprintf(out, " %s ", op);
	if (!strcmp(op, "<<") || !strcmp(op, ">>")) {
		/* More than the width is undefined in C. */
		fputs("((", out);
		write_expr(out, depth - 1);
		fputs(") & 31)", out);
	} else if ((!strcmp(op, "/") || !strcmp(op, "%")) && below(6)) {
		fputs("((", out);
		write_expr(out, depth - 1);
		fputs(") | 1)", out);
	} else {
		write_expr(out, depth - 1);
	}
	fputc(')', out);
}

static void write_choice(FILE *out, unsigned int depth)
{
	fputc('(', out);
	write_expr(out, depth - 1);
	fputs(" ? ", out);
	write_expr(out, depth - 1);
	fputs(" : ", out);
	write_expr(out, depth - 1);
	fputc(')', out);
}

static void write_expr(FILE *out, unsigned int depth)
{
	static const char *const unary[] = {"-", "~", "!"};

	if (!depth || !below(5)) {
		if (below(4))
			fputs(vars[below(N_FIRST_FLOAT)].name, out);
		else
			write_constant(out);
		return;
	}
	switch (below(10)) {
	case 0:
		fprintf(out, "%s(", unary[below(3)]);
		write_expr(out, depth - 1);
		fputc(')', out);
		return;
	case 1:
		fputc('(', out);
		write_type(out);
		fputc(')', out);
		fputc('(', out);
		write_expr(out, depth - 1);
		fputc(')', out);
		return;
	case 2:
		write_element(out, depth);
		return;
	case 3:
		write_float_comparison(out);
		return;
	case 4:
		write_pointers(out);
		return;
	case 5:
		write_choice(out, depth);
		return;
	default:
		write_binary(out, depth);
	}
}

/* ---- the memory ---- */

static void fill(const struct var *v, uint8_t *to)
{
	static const double doubles[] = {0.0,  -0.0,  1.0,    -1.0, 1.5,        0.1,
					 -2.5, 1e300, 1e-310, 3.0,  16777216.0, __builtin_inf()};
	uint64_t bits = below(3) ? random_u64() >> below(64) : (uint64_t)(int64_t)-below(5);
	double d = below(6) ? doubles[below(ARRAY_SIZE(doubles))] : __builtin_nan("");
	float f = (float)d;

	if (v->kind != FLOAT)
		memcpy(to, &bits, v->size);
	else if (v->size == sizeof(f))
		memcpy(to, &f, sizeof(f));
	else
		memcpy(to, &d, sizeof(d));
}

static void make_memory(void)
{
	uint64_t at = 0;

	for (unsigned int i = 0; i < N_VARS; i++) {
		unsigned int align = vars[i].kind == POINTER ? 8 : vars[i].size;
		at = (at + align - 1) / align * align;
		offsets[i] = at;
		if (vars[i].kind != POINTER)
			for (int k = 0; k < (vars[i].kind == ARRAY ? N_ELEMENTS : 1); k++)
				fill(&vars[i], memory + at + (unsigned int)k * vars[i].size);
		at += vars[i].kind == POINTER ? 8 : vars[i].size;
		at += vars[i].kind == ARRAY ? (N_ELEMENTS - 1) * vars[i].size : 0;
	}
	const uint64_t pi = BASE + offsets[N_FIRST_ARRAY] + 2 * 4;
	const uint64_t pl = BASE + offsets[N_FIRST_ARRAY + 1] + 3 * 8;
	memcpy(memory + offsets[N_FIRST_POINTER], &pi, sizeof(pi));
	memcpy(memory + offsets[N_FIRST_POINTER + 1], &pl, sizeof(pl));
}

static int read_memory(void *ctx, uint64_t from, void *to, size_t n)
{
	if (from < BASE || from - BASE > ROOM || n > ROOM - (from - BASE))
		return -1;
	memcpy(to, memory + (from - BASE), n);
	return 0;
}

static uint32_t add_type(struct cairn_type t)
{
	uint32_t id = types_reserve(types);

	types_set(types, id, &t);
	return id;
}

static uint32_t element_type(const struct var *v)
{
	if (v->kind == FLOAT)
		return add_type((struct cairn_type){
			.kind = CAIRN_T_FLOAT, .name = "float", .size = v->size});
	return add_type((struct cairn_type){.kind = CAIRN_T_INT,
					    .name = "a type",
					    .size = v->size,
					    .encoding = v->is_signed ? CAIRN_ENC_SIGNED
								     : CAIRN_ENC_UNSIGNED});
}

static uint32_t type_of(const struct var *v)
{
	uint32_t element = element_type(v);

	if (v->kind == POINTER)
		return add_type(
			(struct cairn_type){.kind = CAIRN_T_PTR, .size = 8, .ref = element});
	if (v->kind == ARRAY)
		return add_type((struct cairn_type){.kind = CAIRN_T_ARRAY,
						    .size = (uint64_t)N_ELEMENTS * v->size,
						    .ref = element,
						    .has_count = true,
						    .count = N_ELEMENTS});
	return element;
}

static void make_function(struct cairn_function *ret)
{
	/* What a cast to a pointer looks for. */
	add_type((struct cairn_type){
		.kind = CAIRN_T_INT, .name = "int", .size = 4, .encoding = CAIRN_ENC_SIGNED});
	add_type((struct cairn_type){
		.kind = CAIRN_T_INT, .name = "short", .size = 2, .encoding = CAIRN_ENC_SIGNED});
	add_type((struct cairn_type){.kind = CAIRN_T_INT,
				     .name = "unsigned char",
				     .size = 1,
				     .encoding = CAIRN_ENC_UNSIGNED});
	for (unsigned int i = 0; i < N_VARS; i++) {
		params[i] = (struct cairn_param){vars[i].name, type_of(&vars[i])};
		steps[i] = (struct cairn_loc_step){.op = CAIRN_LOC_CONST,
						   .imm = (int64_t)(BASE + offsets[i])};
		pieces[i] = (struct cairn_piece){
			.kind = CAIRN_PIECE_MEMORY, .n_steps = 1, .steps = &steps[i]};
		args[i] = (struct cairn_arg){.name = params[i].name,
					     .type = params[i].type,
					     .loc = {.n_pieces = 1, .pieces = &pieces[i]}};
	}
	*ret = (struct cairn_function){.name = "f", .n_params = N_VARS, .params = params};
}

/* ---- both sides ---- */

static void write_program(void)
{
	char *source = NULL;
	size_t size;
	FILE *out = open_memstream(&source, &size);

	fputs("#include <setjmp.h>\n#include <signal.h>\n#include <stdint.h>\n#include <stdio.h>\n"
	      "#include <stdlib.h>\n#include <sys/mman.h>\n#include <unistd.h>\nstruct vars {\n",
	      out);
	for (unsigned int i = 0; i < N_VARS; i++)
		fprintf(out, "\t%s;\n", vars[i].declared);
	fputs("};\nstatic sigjmp_buf over;\n"
	      "static void on_fpe(int s) { siglongjmp(over, 1); }\n",
	      out);
	for (unsigned int i = 0; i < N_VARS; i++)
		fprintf(out, "#define %s (v->%s)\n", vars[i].name, vars[i].name);
	fputs("#define SHOW(...) if (sigsetjmp(over, 1)) puts(\"fault\"); else "
	      "printf(\"%llx\\n\", (unsigned long long)(__VA_ARGS__));\n",
	      out);
	for (unsigned int i = 0; i < N_EXPRS; i++) {
		if (i % 100 == 0)
			fprintf(out, "%sstatic void part%u(volatile struct vars *v)\n{\n",
				i ? "}\n" : "", i / 100);
		fprintf(out, "\tSHOW(%s)\n", texts[i]);
	}
	fprintf(out,
		"}\nint main(void)\n{\n\tsignal(SIGFPE, on_fpe);\n"
		"\tstruct vars *v = mmap((void *)0x%x, 4096, PROT_READ | PROT_WRITE, "
		"MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);\n"
		"\tif (read(0, v, 4096) != 4096) return 1;\n",
		BASE);
	for (unsigned int i = 0; i < N_EXPRS / 100; i++)
		fprintf(out, "\tpart%u(v);\n", i);
	fputs("\treturn 0;\n}\n", out);
	fclose(out);
	workspace_write(&ws, "exprs.c", source);
	free(source);
}

static void run_program(void)
{
	FILE *out = fopen(workspace_path(&ws, "memory"), "w");

	fwrite(memory, 1, sizeof(memory), out);
	fclose(out);
	workspace_run(&ws, "gcc -std=gnu11 -w -O0 -fwrapv -o exprs exprs.c");
	workspace_run(&ws, "./exprs < memory > results");
}

static struct expr *typed(struct arena *a, const struct cairn_function *f, const char *text,
			  bool is_condition)
{
	const struct expr_scope scope = {.types = types, .function = f, .text = text};
	struct probe_text *p = arena_alloc(a, sizeof(*p));
	struct cairn_err err = {0};
	int r = probe_parse(a, text, p, &err);

	struct expr *e = is_condition ? p->condition : p->values[0].expr;
	if (r == 0)
		r = is_condition ? expr_type_condition(&scope, e, &err)
				 : expr_type_value(&scope, e, &err);
	if (r < 0)
		fail_msg("%s", err.msg);
	return e;
}

/* What an expression makes here; false: it has no result. */
static bool evaluate(const struct cairn_function *f, const char *expr, bool in_condition,
		     uint64_t *ret, bool *is_long)
{
	static char text[TEXT_MAX + 20];
	struct cairn_site site = {.n_args = N_VARS, .args = args};
	struct fetch_program program = {0};
	struct compiler c = {.types = types, .site = &site, .program = &program};
	uint8_t record[64] = {0};
	struct fetch_machine m = {
		.read = read_memory, .record = record, .n_record = sizeof(record)};
	struct arena a = {0};

	snprintf(text, sizeof(text), in_condition ? "f if %s" : "f((%s) + 0)", expr);
	struct expr *e = typed(&a, f, text, in_condition);
	assert_int_equal(in_condition ? compile_condition(&c, e) : compile_number(&c, e, 0, 0),
			 CAIRN_AVAILABLE);
	arena_fini(&a);
	fetch_emit(&program, FETCH_END);
	*is_long |= program.full;
	if (program.full)
		return false;
	enum fetch_result r = fetch_run(&m, program.ops, program.n, in_condition);
	assert_int_not_equal(r, FETCH_BROKEN);
	memcpy(ret, record, 8);
	if (in_condition)
		*ret = r == FETCH_DONE;
	return r != FETCH_UNDECIDED && !m.faults;
}

static void every_expression_has_the_value_that_gcc_computes(void **state)
{
	struct cairn_function function;
	char line[64];
	unsigned int n_same = 0, n_faults = 0, n_wrapped = 0, n_long = 0, n_folded = 0;

	types = types_new();
	make_memory();
	make_function(&function);
	for (unsigned int i = 0; i < N_EXPRS; i++) {
		do {
			FILE *out = fmemopen(texts[i], TEXT_MAX, "w");
			write_expr(out, 1 + below(5));
			fclose(out);
		} while (strlen(texts[i]) > 400);
	}
	write_program();
	run_program();
	FILE *in = fopen(workspace_path(&ws, "results"), "r");
	for (unsigned int i = 0; i < N_EXPRS; i++) {
		uint64_t value = 0, condition = 0;
		assert_non_null(fgets(line, sizeof(line), in));
		bool is_long = false;
		bool has_value = evaluate(&function, texts[i], false, &value, &is_long);
		bool is_decided = evaluate(&function, texts[i], true, &condition, &is_long);
		if (!strcmp(line, "fault\n")) {
			n_faults++;
			/* INT_MIN / -1 ends a C program, too; it wraps here. */
			n_wrapped += has_value || is_decided;
			continue;
		}
		if (is_long) {
			n_long++;
			continue;
		}
		/* GCC takes 0 / x for 0 whatever x is. */
		if (!has_value || !is_decided) {
			n_folded++;
			continue;
		}
		uint64_t wanted = strtoull(line, NULL, 16);
		if (value != wanted || condition != (wanted != 0))
			fail_msg("%s is %s here 0x%" PRIx64 ", and %" PRIu64 " as a condition",
				 texts[i], line, value, condition);
		n_same++;
	}
	fclose(in);
	print_message("%u the same, %u divided by 0, %u too long, %u wrapped, %u folded\n", n_same,
		      n_faults, n_long, n_wrapped, n_folded);
	assert_true(n_same > N_EXPRS * 4 / 5);
	assert_true(n_faults > 2);
	assert_true(n_long < N_EXPRS / 50);
	assert_true(n_wrapped < N_EXPRS / 100);
	assert_true(n_folded < N_EXPRS / 100);
	types_free(types);
}

static int build(void **state)
{
	workspace_open(&ws);
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
		cmocka_unit_test(every_expression_has_the_value_that_gcc_computes),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
