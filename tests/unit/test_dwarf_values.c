/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * 200 random structs, whose programs say what is in them
 *
 * A generator writes a C program: structs with fields of every kind, code that fills them, and code
 * that prints each field in the words of cairn_value_print(), by the compiler's own idea of where
 * it is. The program also prints the bytes. What we make of those bytes with the program's DWARF
 * must be the same text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/decode.h>

#include "dwarf/types.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

enum { N_STRUCTS = 200, DEPTH = 3, FIELDS_MAX = 10 };

/* ---- the generator ---- */

/* What is written at the same time: declaration, assignments, printing. */
struct gen {
	FILE *decl, *fill, *print;
	uint64_t seed;
	unsigned int n_names;
	bool clang;
};

static uint64_t rnd(struct gen *g)
{
	/* xorshift64*: the same programs in every run. */
	g->seed ^= g->seed >> 12;
	g->seed ^= g->seed << 25;
	g->seed ^= g->seed >> 27;
	return g->seed * 0x2545f4914f6cdd1d;
}

static unsigned int below(struct gen *g, unsigned int n)
{
	return (unsigned int)(rnd(g) >> 33) % n;
}

struct scalar {
	const char *type, *print; /* print: function of the program's prelude */
	unsigned int bits;        /* widest bit-field; 0 none */
	const char *values[3];    /* what it may hold; NULL: any number, in @cast */
};

static const struct scalar scalars[] = {
	{"int", "p_int", 32, {0}},
	{"unsigned int", "p_unsigned", 32, {0}},
	{"long", "p_int", 64, {0}},
	{"unsigned long long", "p_unsigned", 64, {0}},
	{"short", "p_int", 16, {0}},
	{"unsigned short", "p_unsigned", 16, {0}},
	{"signed char", "p_int", 8, {0}},
	{"unsigned char", "p_unsigned", 8, {0}},
	{"number", "p_int", 64, {0}},
	{"__int128", "p_int128", 128, {0}},
	{"unsigned __int128", "p_unsigned128", 128, {0}},
	{"char", "p_char", 0, {"'a'", "'\\''", "'\\n'"}},
	{"bool", "p_bool", 1, {"1", "0", "1"}},
	{"enum color", "p_color", 0, {"GREEN", "(enum color)77", "RED"}},
	{"enum negative", "p_negative", 0, {"MINUS", "PLUS", "(enum negative)-5"}},
	{"enum wide", "p_wide", 0, {"HUGE_ONE", "SMALL_ONE", "HUGE_ONE"}},
	{"enum flags", "p_flags", 0, {"(enum flags)(F_A | F_D)", "F_NONE", "F_ALL"}},
	{"void *", "p_pointer", 0, {"(void *)0x7ffe12345678", "0", "(void *)-1L"}},
	{"const char *const *", "p_pointer", 0, {"0", "(const char *const *)0x10", "0"}},
	{"handler", "p_pointer", 0, {"(handler)0x401000", "0", "0"}},
	{"float", "p_float", 0, {"0.1f", "-1e30f", "1.0f / 3"}},
	{"double", "p_double", 0, {"0.1", "-0.0", "1.0 / 3"}},
	{"long double", "p_long_double", 0, {"0.1L", "1e4000L", "1.0L / 3"}},
	{"_Complex double", "p_complex", 0, {"1.5 + 2.0i", "0", "-1.0 - 0.5i"}},
};

static const char prelude[] =
	"#include <stdbool.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <stdlib.h>\n"
	"#include <string.h>\n"
	"typedef long number;\n"
	"typedef int (*handler)(void *, const char *);\n"
	"enum color { RED, GREEN = 5, BLUE };\n"
	"enum negative { MINUS = -1, ZERO, PLUS };\n"
	"enum wide { SMALL_ONE = 1, HUGE_ONE = 0x123456789abcdefULL };\n"
	"enum flags { F_NONE, F_A = 1, F_B = 2, F_D = 8, F_ALL = 11 };\n"
	"static void p_int(long long v) { printf(\"%lld\", v); }\n"
	"static void p_unsigned(unsigned long long v) { printf(\"%llu\", v); }\n"
	"static void p_unsigned128(unsigned __int128 v)\n"
	"{ if (v > 9) p_unsigned128(v / 10); putchar('0' + (int)(v % 10)); }\n"
	"static void p_int128(__int128 v)\n"
	"{ if (v < 0) putchar('-'); p_unsigned128(v < 0 ? -(unsigned __int128)v : (unsigned "
	"__int128)v); }\n"
	"static void p_char(char v) { printf(v == '\\n' ? \"'\\\\n'\" : v == '\\'' ? \"'\\\\''\" : "
	"\"'%c'\", v); }\n"
	"static void p_bool(bool v) { printf(v ? \"true\" : \"false\"); }\n"
	"static void p_color(enum color v)\n"
	"{ if (v == RED) printf(\"RED\"); else if (v == GREEN) printf(\"GREEN\"); else "
	"printf(\"%d\", (int)v); }\n"
	"static void p_negative(enum negative v)\n"
	"{ if (v == MINUS) printf(\"MINUS\"); else if (v == ZERO) printf(\"ZERO\");\n"
	"  else if (v == PLUS) printf(\"PLUS\"); else printf(\"%d\", (int)v); }\n"
	"static void p_wide(enum wide v)\n"
	"{ if (v == SMALL_ONE) printf(\"SMALL_ONE\"); else if (v == HUGE_ONE) "
	"printf(\"HUGE_ONE\");\n"
	"  else printf(\"%llu\", (unsigned long long)v); }\n"
	"static void p_flags(enum flags v)\n"
	"{ printf(v == F_NONE ? \"F_NONE\" : v == F_ALL ? \"F_ALL\" : \"F_A|F_D\"); }\n"
	"static void p_pointer(const volatile void *v) { printf(\"0x%lx\", (unsigned long)v); }\n"
	"static void p_handler(handler v) { p_pointer((void *)v); }\n"
	"static void p_float(float v)\n"
	"{ char s[64]; for (int d = 1; d < 10; d++) { sprintf(s, \"%.*g\", d, v); if (strtof(s, 0) "
	"== v) break; }\n"
	"  printf(\"%s\", s); }\n"
	"static void p_double(double v)\n"
	"{ char s[64]; for (int d = 1; d < 18; d++) { sprintf(s, \"%.*g\", d, v); if (strtod(s, 0) "
	"== v) break; }\n"
	"  printf(\"%s\", s); }\n"
	"static void p_long_double(long double v)\n"
	"{ char s[64]; for (int d = 1; d < 22; d++) { sprintf(s, \"%.*Lg\", d, v); if (strtold(s, "
	"0) == v) break; }\n"
	"  printf(\"%s\", s); }\n"
	"static void p_complex(_Complex double v)\n"
	"{ double i = __imag__ v; p_double(__real__ v); if (!__builtin_signbit(i)) putchar('+'); "
	"p_double(i);\n"
	"  putchar('i'); }\n"
	"static void p_bytes(const void *p, size_t n)\n"
	"{ for (size_t i = 0; i < n; i++) printf(\"%02x\", ((const unsigned char *)p)[i]); }\n";

static void put_random_value(struct gen *g, const struct scalar *s, unsigned int bits)
{
	if (s->values[0])
		fputs(s->values[below(g, 3)], g->fill);
	else if (bits > 64)
		fprintf(g->fill, "(%s)((unsigned __int128)0x%llxULL << 64 | 0x%llxULL)", s->type,
			(unsigned long long)rnd(g), (unsigned long long)rnd(g));
	else
		fprintf(g->fill, "(%s)0x%llxULL", s->type, (unsigned long long)rnd(g));
}

static void put_fill(struct gen *g, const char *path, const struct scalar *s, unsigned int bits)
{
	fprintf(g->fill, "\t%s = ", path);
	put_random_value(g, s, bits);
	fputs(";\n", g->fill);
}

static void put_print(struct gen *g, const char *path, const struct scalar *s)
{
	const char *print = strcmp(s->type, "handler") ? s->print : "p_handler";
	fprintf(g->print, "\t%s(%s);\n", print, path);
}

static void put_text(struct gen *g, const char *text)
{
	fprintf(g->print, "\tprintf(\"%s\");\n", text);
}

static void gen_fields(struct gen *g, const char *path, bool is_union, unsigned int depth);

static void gen_plain(struct gen *g, const char *path, const char *name, const struct scalar *s)
{
	fprintf(g->decl, "\t%s %s;\n", s->type, name);
	put_fill(g, path, s, 128);
	put_print(g, path, s);
}

static void gen_bit_field(struct gen *g, const char *path, const char *name, const struct scalar *s)
{
	unsigned int width = 1 + below(g, s->bits);
	/*
	 * Clang does not describe a field of the full width:
	 * docs/findings/clang-full-width-bit-field.md
	 */
	width -= g->clang && width == s->bits && width > 1;
	fprintf(g->decl, "\t%s %s : %u;\n", s->type, name, width);
	put_fill(g, path, s, s->bits);
	put_print(g, path, s);
	if (!below(g, 4))
		fprintf(g->decl, "\tint : 0;\n");
}

static void gen_array(struct gen *g, const char *path, const char *name, const struct scalar *s)
{
	unsigned int n = 1 + below(g, 4), m = 1 + below(g, 3);
	char elem[320];
	/* Arrays of char are text, see gen_string(). */
	if (!strcmp(s->type, "char"))
		s = &scalars[0];
	fprintf(g->decl, "\t%s %s[%u][%u];\n", s->type, name, n, m);
	put_text(g, "{");
	for (unsigned int i = 0; i < n; i++) {
		put_text(g, i ? ", {" : "{");
		for (unsigned int k = 0; k < m; k++) {
			if (k)
				put_text(g, ", ");
			snprintf(elem, sizeof(elem), "%s[%u][%u]", path, i, k);
			put_fill(g, elem, s, 128);
			put_print(g, elem, s);
		}
		put_text(g, "}");
	}
	put_text(g, "}");
}

static void gen_string(struct gen *g, const char *path, const char *name)
{
	static const char *const texts[] = {"", "cairn", "a\\tb\\\"c", "0123456789"};
	static const char *const shown[] = {"", "cairn", "a\\\\tb\\\\\\\"c", "0123456789"};
	unsigned int which = below(g, 4), n = 6 + 4 * (which > 1) + below(g, 5);
	fprintf(g->decl, "\tchar %s[%u];\n", name, n);
	fprintf(g->fill, "\tmemcpy(%s, \"%s\", strlen(\"%s\"));\n", path, texts[which],
		texts[which]);
	fprintf(g->print, "\tprintf(\"\\\"%s\\\"\");\n", shown[which]);
}

static void gen_nested(struct gen *g, const char *path, const char *name, bool anonymous,
		       unsigned int depth)
{
	bool is_union = !below(g, 3);
	fprintf(g->decl, "\t%s {\n", is_union ? "union" : "struct");
	put_text(g, "{");
	gen_fields(g, path, is_union, depth + 1);
	put_text(g, "}");
	fprintf(g->decl, "\t} %s;\n", anonymous ? "" : name);
}

static const struct scalar *pick(struct gen *g, bool is_union)
{
	/*
	 * The arms of a union are read as something else: only types to which every bit pattern is
	 * a value.
	 */
	return &scalars[below(g, is_union ? 11 : ARRAY_SIZE(scalars))];
}

static void gen_field(struct gen *g, const char *path, bool is_union, unsigned int depth,
		      bool first)
{
	char name[32], at[256];
	unsigned int kind = below(g, 10);
	bool anonymous = kind == 9 && depth < DEPTH;
	const struct scalar *s = pick(g, is_union);
	snprintf(name, sizeof(name), "f%u", g->n_names++);
	snprintf(at, sizeof(at), "%s.%s", path, name);
	if (!first)
		put_text(g, ", ");
	if (!anonymous)
		fprintf(g->print, "\tprintf(\".%s = \");\n", name);
	if (kind < 4 && s->bits)
		gen_bit_field(g, at, name, s);
	else if (kind == 5)
		gen_array(g, at, name, s);
	else if (kind == 6 && !is_union)
		gen_string(g, at, name);
	else if (kind == 7 && depth < DEPTH)
		gen_nested(g, at, name, false, depth);
	else if (anonymous)
		gen_nested(g, path, name, true, depth);
	else
		gen_plain(g, at, name, s);
}

static void gen_fields(struct gen *g, const char *path, bool is_union, unsigned int depth)
{
	/* Every arm of a union is filled, and the last one stays. */
	unsigned int n = 1 + below(g, depth ? 4 : FIELDS_MAX);
	for (unsigned int i = 0; i < n; i++)
		gen_field(g, path, is_union, is_union ? DEPTH : depth, !i);
}

static void gen_struct(struct gen *g, FILE *out, unsigned int i)
{
	static const char *const attributes[] = {"",
						 "",
						 "",
						 "__attribute__((packed))",
						 "__attribute__((packed, aligned(4)))",
						 "__attribute__((aligned(64)))"};
	char *decl, *fill, *print, path[16];
	size_t n;
	g->decl = open_memstream(&decl, &n);
	g->fill = open_memstream(&fill, &n);
	g->print = open_memstream(&print, &n);
	snprintf(path, sizeof(path), "v%u", i);
	gen_fields(g, path, false, 0);
	fclose(g->decl);
	fclose(g->fill);
	fclose(g->print);
	fprintf(out,
		"struct s%u {\n%s} %s;\nstatic struct s%u v%u;\nstatic void run%u(void)\n{\n%s", i,
		decl, attributes[below(g, 6)], i, i, i, fill);
	fprintf(out,
		"\tp_bytes(&v%u, sizeof(v%u));\n\tprintf(\"\\n{\");\n%s\tprintf(\"}\\n\");\n}\n", i,
		i, print);
	free(decl);
	free(fill);
	free(print);
}

static void gen_program(const char *path, uint64_t seed, bool clang)
{
	struct gen g = {.seed = seed, .clang = clang};
	FILE *out = fopen(path, "w");
	assert_non_null(out);
	fputs(prelude, out);
	for (unsigned int i = 0; i < N_STRUCTS; i++)
		gen_struct(&g, out, i);
	fputs("int main(void)\n{\n", out);
	for (unsigned int i = 0; i < N_STRUCTS; i++)
		fprintf(out, "\trun%u();\n", i);
	fputs("\treturn 0;\n}\n", out);
	fclose(out);
}

/* ---- the comparison ---- */

static size_t unhex(const char *text, uint8_t *bytes, size_t max)
{
	size_t n = 0;
	for (unsigned int v; n < max && sscanf(text, "%2x", &v) == 1; text += 2)
		bytes[n++] = (uint8_t)v;
	return n;
}

static void compare_struct(struct dw_types *r, unsigned int i, const char *hex,
			   const char *expected)
{
	static uint8_t bytes[1 << 16];
	char name[16], *text;
	uint32_t id;
	size_t n = unhex(hex, bytes, sizeof(bytes)), len;
	struct cairn_err err = {0};
	snprintf(name, sizeof(name), "s%u", i);
	if (dwarf_type_definition(r, CAIRN_T_STRUCT, name, &id, &err) != 1)
		fail_msg("struct %s: not found: %s", name, err.msg);
	assert_int_equal(cairn_types_size(dw_types_graph(r), id), n);
	FILE *out = open_memstream(&text, &len);
	assert_int_equal(cairn_value_print(dw_types_graph(r), id, bytes, n, NULL, out), 0);
	fclose(out);
	if (strcmp(text, expected) != 0)
		fail_msg("struct %s:\n%s\nprogram says\n%s", name, text, expected);
	free(text);
}

static void compare_program(const struct workspace *w)
{
	struct cairn_err err = {0};
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct dw_types *r;
	struct cairn_types *graph = types_new();
	assert_int_equal(cairn_binary_open(workspace_path(w, "sample"), NULL, &bin, &err), 0);
	assert_int_equal(dwarf_open(bin, 0, &dw, &err), 0);
	assert_int_equal(dw_types_new(dw, graph, &r, &err), 0);
	workspace_run(w, "./sample > said");
	FILE *said = fopen(workspace_path(w, "said"), "r");
	assert_non_null(said);
	char *hex = NULL, *text = NULL;
	size_t hex_cap = 0, text_cap = 0;
	for (unsigned int i = 0; i < N_STRUCTS; i++) {
		assert_true(getline(&hex, &hex_cap, said) > 0);
		ssize_t n = getline(&text, &text_cap, said);
		assert_true(n > 0);
		text[n - 1] = 0;
		compare_struct(r, i, hex, text);
	}
	free(hex);
	free(text);
	fclose(said);
	dw_types_free(r);
	types_free(graph);
	dwarf_close(dw);
	cairn_binary_close(bin);
}

static void random_structs(const char *compiler, const char *flags, uint64_t seed)
{
	struct workspace w;
	workspace_open(&w);
	gen_program(workspace_path(&w, "sample.c"), seed, !strcmp(compiler, "clang"));
	workspace_write(&w, "empty.c", "int main(void) { return 0; }\n");
	if (!workspace_try(&w, "%s %s empty.c -o empty", compiler, flags)) {
		print_message("skipped: %s %s does not work here\n", compiler, flags);
		workspace_close(&w);
		skip();
	}
	workspace_run(&w, "%s %s -w -fno-strict-aliasing sample.c -o sample", compiler, flags);
	compare_program(&w);
	workspace_close(&w);
}

#define VARIANT(name, compiler, flags, seed)                                                       \
	static void name(void **state)                                                             \
	{                                                                                          \
		random_structs(compiler, flags, seed);                                             \
	}

VARIANT(structs_of_gcc_dwarf_4, "gcc", "-gdwarf-4", 0x1001)
VARIANT(structs_of_gcc_dwarf_5, "gcc", "-gdwarf-5", 0x1002)
VARIANT(structs_of_gcc_dwarf_2, "gcc", "-gdwarf-2 -gstrict-dwarf", 0x1003)
VARIANT(structs_of_gcc_in_type_units_4, "gcc", "-gdwarf-4 -fdebug-types-section", 0x1004)
VARIANT(structs_of_gcc_in_type_units_5, "gcc", "-gdwarf-5 -fdebug-types-section", 0x1005)
VARIANT(structs_of_gxx, "g++ -x c++", "-gdwarf-5", 0x1006)
VARIANT(structs_of_clang_dwarf_4, "clang", "-gdwarf-4", 0x1007)
VARIANT(structs_of_clang_dwarf_5, "clang", "-gdwarf-5", 0x1008)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(structs_of_gcc_dwarf_4),
		cmocka_unit_test(structs_of_gcc_dwarf_5),
		cmocka_unit_test(structs_of_gcc_dwarf_2),
		cmocka_unit_test(structs_of_gcc_in_type_units_4),
		cmocka_unit_test(structs_of_gcc_in_type_units_5),
		cmocka_unit_test(structs_of_gxx),
		cmocka_unit_test(structs_of_clang_dwarf_4),
		cmocka_unit_test(structs_of_clang_dwarf_5),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
