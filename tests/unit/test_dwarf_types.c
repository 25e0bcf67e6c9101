/* SPDX-License-Identifier: BSD-2-Clause */
/* Types of compiled programs: names, places, scopes, definitions in other units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dwarf/constants.h"
#include "dwarf/types.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* ---- a program, compiled and opened ---- */

struct sample {
	struct workspace w;
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct cairn_types *graph;
	struct dw_types *r;
	struct cairn_err err;
};

static void open_sample(struct sample *s)
{
	s->graph = types_new();
	assert_int_equal(cairn_binary_open(workspace_path(&s->w, "sample"), NULL, &s->bin, &s->err),
			 0);
	assert_int_equal(dwarf_open(s->bin, 0, &s->dw, &s->err), 0);
	assert_int_equal(dw_types_new(s->dw, s->graph, &s->r, &s->err), 0);
}

/* False, and nothing to close, when the compiler cannot do that here. */
static bool compile(struct sample *s, const char *compiler, const char *flags, const char *source)
{
	*s = (struct sample){0};
	workspace_open(&s->w);
	workspace_write(&s->w, "source", source);
	/* C of 2023 has other names, as bool for _Bool. */
	if (!workspace_try(&s->w, "%s %s -x %s source -o sample", compiler, flags,
			   strstr(compiler, "++") ? "c++" : "c -std=gnu17")) {
		print_message("skipped: %s %s does not work here\n", compiler, flags);
		workspace_close(&s->w);
		return false;
	}
	open_sample(s);
	return true;
}

static void close_sample(struct sample *s)
{
	dw_types_free(s->r);
	types_free(s->graph);
	dwarf_close(s->dw);
	cairn_binary_close(s->bin);
	workspace_close(&s->w);
}

/* The type of a global variable of any unit. */
static uint32_t type_of(struct sample *s, const char *variable)
{
	for (size_t i = 0; i < dwarf_n_units(s->dw); i++) {
		struct dw_die die;
		int rc = dw_unit_root(dwarf_unit(s->dw, i), &die, &s->err);
		if (rc > 0)
			rc = dw_die_child(&die, &die, &s->err);
		for (; rc > 0; rc = dw_die_sibling(&die, &die, &s->err)) {
			const char *name = dw_str(&die, DW_AT_name);
			uint32_t id;
			if (die.tag != DW_TAG_variable || !name || strcmp(name, variable) != 0)
				continue;
			assert_int_equal(dwarf_type_of(s->r, &die, &id, &s->err), 0);
			return id;
		}
	}
	fail_msg("no variable %s", variable);
	return 0;
}

static const struct cairn_type *node(struct sample *s, uint32_t id)
{
	return cairn_types_get(s->graph, id);
}

static const struct cairn_type *resolved(struct sample *s, uint32_t id)
{
	return node(s, cairn_types_resolve(s->graph, id));
}

static const char *name_of(struct sample *s, uint32_t id)
{
	static char buf[512];
	cairn_types_name(s->graph, id, buf, sizeof(buf));
	return buf;
}

static struct cairn_member member(struct sample *s, uint32_t id, const char *name)
{
	struct cairn_member m;
	if (!cairn_types_member(s->graph, id, name, &m))
		fail_msg("no member %s", name);
	return m;
}

struct variant {
	const char *compiler, *flags;
};

/* clang-format off */
static const struct variant c_variants[] = {
	{"gcc", "-gdwarf-4"},	{"gcc", "-gdwarf-5"},	{"gcc", "-gdwarf-4 -fdebug-types-section"},
	{"clang", "-gdwarf-4"}, {"clang", "-gdwarf-5"}, {"gcc", "-gdwarf-5 -fdebug-types-section"},
};
/* clang-format on */
static const struct variant cxx_variants[] = {
	{"g++", "-gdwarf-4"},
	{"g++", "-gdwarf-5"},
	{"g++", "-gdwarf-4 -fdebug-types-section"},
	{"clang++", "-gdwarf-4"},
	{"clang++", "-gdwarf-5"},
	{"g++", "-gdwarf-5 -fdebug-types-section"},
};

/* ---- C ---- */

/* Each of these is valid C and what we write for it. %s stands for the variable. */
static const char *const declarations[] = {
	"int %s",
	"const char *%s",
	"char *const %s",
	"const char *const *%s",
	"volatile int *%s",
	"const volatile int %s",
	"char *restrict %s",
	"int %s[3]",
	"int %s[2][3][4]",
	"const int %s[3]",
	"char *%s[4]",
	"int (*%s)[4]",
	"const char (*%s)[2][3]",
	"int (*%s)(void)",
	"void (*%s)(int, char *, ...)",
	"char *(*%s[4])(void *, int (*)(void))",
	"int (*const *%s)(const char *)",
	"int (*(*%s)(int))[3]",
	"struct foo %s",
	"const struct foo *%s",
	"struct unknown *%s",
	"union bar %s[2]",
	"enum color *%s",
	"word %s",
	"const word *%s",
	"handler %s",
	"struct {...} %s",
	"enum {...} %s",
	"_Bool *%s",
	"float __attribute__((vector_size(16))) %s",
};

static void with_name(char *buf, size_t size, const char *declaration, const char *name)
{
	size_t n = (size_t)(strstr(declaration, "%s") - declaration);
	memcpy(buf, declaration, n);
	snprintf(buf + n, size - n, "%s%s", name, declaration + n + 2);
}

static void put_source(char *buf, size_t size)
{
	FILE *f = fmemopen(buf, size, "w");
	fputs("struct foo { int x; };\nunion bar { int i; float f; };\nenum color { RED };\n"
	      "typedef unsigned short word;\ntypedef int (*handler)(struct foo *);\n",
	      f);
	for (size_t i = 0; i < ARRAY_SIZE(declarations); i++) {
		char name[16], text[128];
		const char *in = declarations[i];
		snprintf(name, sizeof(name), "v%zu", i);
		with_name(text, sizeof(text), in, name);
		const char *dots = strstr(text, "{...}");
		if (dots && text[0] == 's')
			fprintf(f, "struct { int x; } %s;\n", name);
		else if (dots)
			fprintf(f, "enum { E%zu } %s;\n", i, name);
		else
			fprintf(f, "%s%s;\n", text, strncmp(in, "const", 5) ? "" : " = {0}");
	}
	fputs("int main(void) { return 0; }\n", f);
	fclose(f);
}

static void a_declaration_reads_as_it_was_written(void **state)
{
	char source[8192], name[16], text[256], expected[256];
	put_source(source, sizeof(source));
	for (size_t v = 0; v < ARRAY_SIZE(c_variants); v++) {
		struct sample s;
		if (!compile(&s, c_variants[v].compiler, c_variants[v].flags, source))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(declarations); i++) {
			snprintf(name, sizeof(name), "v%zu", i);
			with_name(expected, sizeof(expected), declarations[i], name);
			cairn_types_declare(s.graph, type_of(&s, name), name, text, sizeof(text));
			assert_string_equal(text, expected);
		}
		close_sample(&s);
	}
}

static void without_spaces(char *text)
{
	char *to = text;
	for (const char *from = text; *from; from++)
		if (!isspace((unsigned char)*from))
			*to++ = *from;
	*to = 0;
}

static void names_are_gdb_s_names(void **state)
{
	char source[8192], name[16], text[512];
	struct sample s;
	put_source(source, sizeof(source));
	if (!compile(&s, "gcc", "-g", source))
		skip();
	if (!workspace_try(&s.w, "gdb --version > /dev/null")) {
		close_sample(&s);
		print_message("skipped: no gdb\n");
		skip();
	}
	FILE *script = fopen(workspace_path(&s.w, "script"), "w");
	for (size_t i = 0; i < ARRAY_SIZE(declarations); i++)
		fprintf(script, "whatis v%zu\n", i);
	fclose(script);
	workspace_run(&s.w, "gdb -nx -batch -x script sample > said");
	FILE *said = fopen(workspace_path(&s.w, "said"), "r");
	for (size_t i = 0; i < ARRAY_SIZE(declarations); i++) {
		char line[512];
		assert_non_null(fgets(line, sizeof(line), said));
		assert_memory_equal(line, "type = ", 7);
		without_spaces(line);
		/* There gdb 13 writes the number of elements, C takes bytes. */
		if (strstr(line, "vector_size"))
			continue;
		snprintf(name, sizeof(name), "v%zu", i);
		cairn_types_name(s.graph, type_of(&s, name), text, sizeof(text));
		without_spaces(text);
		assert_string_equal(text, line + strlen("type="));
	}
	fclose(said);
	close_sample(&s);
}

static void a_struct_through_a_pointer_is_named_but_not_read(void **state)
{
	static const char source[] =
		"struct far { int x; };\n"
		"struct near { struct far *p; struct { struct far f[2]; } in; };\n"
		"struct near *v; int main(void) { return v != 0; }\n";
	struct sample s;
	if (!compile(&s, "gcc", "-g", source))
		skip();
	uint32_t near_id = node(&s, type_of(&s, "v"))->ref;
	const struct cairn_type *near = node(&s, near_id);
	assert_string_equal(near->name, "near");
	assert_int_equal(near->size, 16);
	assert_true(near->unread);
	assert_false(near->declaration);
	assert_int_equal(near->n_members, 0);
	uint32_t before = cairn_types_n_types(s.graph);
	assert_int_equal(type_of(&s, "v"), type_of(&s, "v"));
	assert_int_equal(cairn_types_n_types(s.graph), before);

	assert_int_equal(dwarf_type_complete(s.r, near_id, &s.err), 0);
	/* In place: the pointer from before sees it. */
	assert_false(near->unread);
	assert_int_equal(near->n_members, 2);
	struct cairn_member in = member(&s, near_id, "in"), f = member(&s, in.type, "f");
	assert_false(resolved(&s, in.type)->unread);
	assert_false(resolved(&s, node(&s, f.type)->ref)->unread);
	before = cairn_types_n_types(s.graph);
	assert_int_equal(dwarf_type_complete(s.r, near_id, &s.err), 0);
	assert_int_equal(cairn_types_n_types(s.graph), before);
	close_sample(&s);
}

static void enumerators_keep_their_sign_and_width(void **state)
{
	static const char source[] =
		"enum plain { A, B = 200 } a; enum negative { N = -200, P = 1 } n;\n"
		"enum wide { W = 0x8000000000000001ULL } w;\n"
		"enum tiny { T = -1, U = 100 } __attribute__((packed)) t;\n"
		"enum byte { X = 255 } __attribute__((packed)) b;\n"
		"int main(void) { return 0; }\n";
	static const struct {
		const char *variable;
		uint64_t size;
		enum cairn_type_encoding encoding;
		uint32_t index;
		int64_t value;
	} cases[] = {
		{"a", 4, CAIRN_ENC_UNSIGNED, 1, 200},
		{"n", 4, CAIRN_ENC_SIGNED, 0, -200},
		{"w", 8, CAIRN_ENC_UNSIGNED, 0, INT64_MIN + 1},
		{"t", 1, CAIRN_ENC_SIGNED, 0, -1},
		{"t", 1, CAIRN_ENC_SIGNED, 1, 100},
		{"b", 1, CAIRN_ENC_UNSIGNED, 0, 255},
	};
	for (size_t v = 0; v < ARRAY_SIZE(c_variants); v++) {
		struct sample s;
		if (!compile(&s, c_variants[v].compiler, c_variants[v].flags, source))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
			uint32_t id = type_of(&s, cases[i].variable);
			assert_int_equal(dwarf_type_complete(s.r, id, &s.err), 0);
			assert_int_equal(node(&s, id)->size, cases[i].size);
			assert_int_equal(node(&s, id)->encoding, cases[i].encoding);
			assert_int_equal(node(&s, id)->enumerators[cases[i].index].value,
					 cases[i].value);
		}
		close_sample(&s);
	}
}

static void arrays_have_counts_and_sizes(void **state)
{
	static const char source[] =
		"int a[2][3]; int zero[0]; char b[256]; short c[65536];\n"
		"struct f { int n; int tail[]; } f; struct { int h; } one[7];\n"
		"int main(void) { return 0; }\n";
	for (size_t v = 0; v < ARRAY_SIZE(c_variants); v++) {
		struct sample s;
		if (!compile(&s, c_variants[v].compiler, c_variants[v].flags, source))
			continue;
		const struct cairn_type *a = node(&s, type_of(&s, "a"));
		assert_int_equal(a->size, 24);
		assert_int_equal(a->count, 2);
		assert_int_equal(node(&s, a->ref)->count, 3);
		assert_int_equal(node(&s, a->ref)->size, 12);
		assert_int_equal(node(&s, type_of(&s, "zero"))->size, 0);
		assert_int_equal(node(&s, type_of(&s, "b"))->size, 256);
		assert_int_equal(node(&s, type_of(&s, "c"))->size, 131072);
		assert_int_equal(node(&s, type_of(&s, "one"))->size, 28);
		uint32_t f = type_of(&s, "f");
		assert_int_equal(dwarf_type_complete(s.r, f, &s.err), 0);
		assert_false(node(&s, member(&s, f, "tail").type)->has_count);
		close_sample(&s);
	}
}

/* ---- C++ ---- */

static const char cxx_source[] =
	"#include <cstddef>\n"
	"namespace ns { struct Base { int b; static int shared; virtual ~Base() {} };\n"
	"  template <class T> struct Box { T value; enum class Mode : signed char { Off = -1, On "
	"}; Mode mode; };\n"
	"  namespace { struct Hidden { int h; }; } Hidden hidden; }\n"
	"struct Other { long o; };\n"
	"class Derived : public ns::Base, public Other { public: int d; union { int i; float f; "
	"};\n"
	"  struct Inner { char c; } inner; };\n"
	"struct Virtual : virtual ns::Base { int v; };\n"
	"class Late { public: struct Part; Part *part; };\n"
	"struct Late::Part { int inside; };\n"
	"ns::Base base; Derived derived; ns::Box<int> box; Derived::Inner inner; Virtual virt; "
	"Late late;\n"
	"ns::Box<int>::Mode mode; Derived &ref = derived; Derived &&rref = static_cast<Derived "
	"&&>(derived);\n"
	"int Derived::*data = &Derived::d; int (Other::*method)(int) const = nullptr;\n"
	"decltype(nullptr) null; const Other *const other = nullptr;\n"
	"int user() { struct Local { int l; }; static Local local; return local.l; }\n"
	"Late::Part part;\n"
	"int main() { return user() + ns::hidden.h + (other != nullptr); }\n";

static void cxx_names_are_qualified_and_stand_alone(void **state)
{
	static const char *const names[][2] = {
		{"base", "ns::Base"},
		{"derived", "Derived"},
		{"box", "ns::Box<int>"},
		{"inner", "Derived::Inner"},
		{"mode", "ns::Box<int>::Mode"},
		{"ref", "Derived &"},
		{"rref", "Derived &&"},
		{"data", "int Derived::*"},
		{"method", "int (Other::*)(int) const"},
		{"null", "decltype(nullptr)"},
		{"other", "const Other *const"},
		{"part", "Late::Part"},
	};
	for (size_t v = 0; v < ARRAY_SIZE(cxx_variants); v++) {
		struct sample s;
		if (!compile(&s, cxx_variants[v].compiler, cxx_variants[v].flags, cxx_source))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			const char *name = name_of(&s, type_of(&s, names[i][0]));
			/* GCC does not say that the function is const; its type is the same. */
			if (!strcmp(names[i][0], "method") && !strstr(name, "const"))
				assert_string_equal(name, "int (Other::*)(int)");
			else
				assert_string_equal(name, names[i][1]);
		}
		close_sample(&s);
	}
}

static void cxx_members_bases_and_what_is_static(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(cxx_variants); v++) {
		struct sample s;
		if (!compile(&s, cxx_variants[v].compiler, cxx_variants[v].flags, cxx_source))
			continue;
		uint32_t derived = type_of(&s, "derived"), virt = type_of(&s, "virt");
		assert_int_equal(dwarf_type_complete(s.r, derived, &s.err), 0);
		assert_int_equal(dwarf_type_complete(s.r, virt, &s.err), 0);
		/* vtable, b and padding, o, then d: the Itanium ABI. */
		assert_int_equal(cairn_types_size(s.graph, derived), 40);
		assert_int_equal(member(&s, derived, "b").bit_off, 8 * 8);
		assert_int_equal(member(&s, derived, "o").bit_off, 16 * 8);
		assert_int_equal(member(&s, derived, "d").bit_off, 24 * 8);
		assert_int_equal(member(&s, derived, "f").bit_off, 28 * 8);
		assert_int_equal(member(&s, derived, "inner").bit_off, 32 * 8);
		struct cairn_member m;
		assert_false(cairn_types_member(s.graph, derived, "shared", &m));
		assert_false(member(&s, virt, "v").dynamic);
		assert_true(member(&s, virt, "b").dynamic);
		uint32_t box = type_of(&s, "box");
		assert_int_equal(dwarf_type_complete(s.r, box, &s.err), 0);
		const struct cairn_type *mode = resolved(&s, member(&s, box, "mode").type);
		/* Clang only declares it, and leaves out the sign. */
		if (mode->declaration) {
			assert_int_equal(mode->encoding, CAIRN_ENC_OPAQUE);
		} else {
			assert_int_equal(mode->encoding, CAIRN_ENC_SIGNED);
			assert_int_equal(mode->enumerators[0].value, -1);
		}
		assert_int_equal(node(&s, type_of(&s, "method"))->size, 16);
		assert_int_equal(node(&s, type_of(&s, "data"))->size, 8);
		close_sample(&s);
	}
}

static void a_class_defined_outside_its_scope_is_found_by_its_full_name(void **state)
{
	for (size_t v = 0; v < ARRAY_SIZE(cxx_variants); v++) {
		struct sample s;
		if (!compile(&s, cxx_variants[v].compiler, cxx_variants[v].flags, cxx_source))
			continue;
		uint32_t late = type_of(&s, "late"), id;
		assert_int_equal(dwarf_type_complete(s.r, late, &s.err), 0);
		uint32_t part = node(&s, member(&s, late, "part").type)->ref;
		assert_string_equal(name_of(&s, part), "Late::Part");
		assert_int_equal(dwarf_type_complete(s.r, part, &s.err), 0);
		assert_int_equal(node(&s, part)->size, 4);
		member(&s, part, "inside");
		/* class or struct is the same. */
		assert_int_equal(
			dwarf_type_definition(s.r, CAIRN_T_CLASS, "Late::Part", &id, &s.err), 1);
		assert_int_equal(
			dwarf_type_definition(s.r, CAIRN_T_STRUCT, "Derived::Inner", &id, &s.err),
			1);
		assert_string_equal(name_of(&s, id), "Derived::Inner");
		assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_CLASS, "Part", &id, &s.err), 0);
		/* Local and private names mean something else in every unit. */
		assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_STRUCT, "Local", &id, &s.err),
				 0);
		assert_int_equal(
			dwarf_type_definition(s.r, CAIRN_T_STRUCT, "ns::Hidden", &id, &s.err), 0);
		close_sample(&s);
	}
}

/* ---- several units ---- */

static bool compile_two(struct sample *s, const char *flags, const char *one, const char *two)
{
	*s = (struct sample){0};
	workspace_open(&s->w);
	workspace_write(&s->w, "one.c", one);
	workspace_write(&s->w, "two.c", two);
	if (!workspace_try(&s->w, "gcc %s one.c two.c -o sample", flags)) {
		print_message("skipped: gcc %s does not work here\n", flags);
		workspace_close(&s->w);
		return false;
	}
	open_sample(s);
	return true;
}

static void a_declared_struct_is_completed_from_another_unit(void **state)
{
	struct sample s;
	uint32_t id;
	if (!compile_two(
		    &s, "-g",
		    "struct foo; struct foo *v; struct never *w; int main(void) { return 0; }\n",
		    "struct foo { int a, b; } x;\n"))
		skip();
	uint32_t foo = node(&s, type_of(&s, "v"))->ref, never = node(&s, type_of(&s, "w"))->ref;
	assert_true(node(&s, foo)->declaration);
	assert_int_equal(dwarf_type_complete(s.r, foo, &s.err), 0);
	assert_false(node(&s, foo)->declaration);
	assert_int_equal(node(&s, foo)->size, 8);
	assert_int_equal(member(&s, foo, "b").bit_off, 32);
	assert_int_equal(dwarf_type_complete(s.r, never, &s.err), 0);
	assert_true(node(&s, never)->declaration);
	assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_STRUCT, "foo", &id, &s.err), 1);
	assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_UNION, "foo", &id, &s.err), 0);
	assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_STRUCT, "never", &id, &s.err), 0);
	assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_INT, "int", &id, &s.err), 0);
	close_sample(&s);
}

static void a_name_with_two_meanings_has_no_definition(void **state)
{
	struct sample s;
	uint32_t id;
	if (!compile_two(
		    &s, "-g",
		    "struct node { int a; } n;\nstruct other *o; int main(void) { return 0; }\n",
		    "struct node { long a; } m;\n"))
		skip();
	assert_int_equal(dwarf_type_definition(s.r, CAIRN_T_STRUCT, "node", &id, &s.err),
			 -ENOTUNIQ);
	assert_non_null(strstr(s.err.msg, "node"));
	/* The units themselves know which one they mean. */
	assert_int_equal(cairn_types_size(s.graph, type_of(&s, "n")), 4);
	assert_int_equal(cairn_types_size(s.graph, type_of(&s, "m")), 8);
	close_sample(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_declaration_reads_as_it_was_written),
		cmocka_unit_test(names_are_gdb_s_names),
		cmocka_unit_test(a_struct_through_a_pointer_is_named_but_not_read),
		cmocka_unit_test(enumerators_keep_their_sign_and_width),
		cmocka_unit_test(arrays_have_counts_and_sizes),
		cmocka_unit_test(cxx_names_are_qualified_and_stand_alone),
		cmocka_unit_test(cxx_members_bases_and_what_is_static),
		cmocka_unit_test(a_class_defined_outside_its_scope_is_found_by_its_full_name),
		cmocka_unit_test(a_declared_struct_is_completed_from_another_unit),
		cmocka_unit_test(a_name_with_two_meanings_has_no_definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
