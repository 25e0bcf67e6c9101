/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What compilers really write, read by us and by others: libdw for everything it knows, readelf for
 * the views of location lists and of line rows, which libdw does not tell.
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

#include "against_libdw.h"
#include "base/vec.h"
#include "dwarf/constants.h"
#include "dwarf_walk.h"
#include "workspace.h"

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

static const char c_source[] =
	"#include <stdio.h>\n"
	"struct list { struct list *next, *prev; };\n"
	"union u { int i; float f; };\n"
	"enum color { RED, GREEN = -5, BLUE = 1000000 };\n"
	"typedef int (*callback)(const struct list *, enum color, ...);\n"
	"static inline __attribute__((always_inline)) void list_add(struct list *n, struct list "
	"*head)\n"
	"{\n"
	"	struct list *next = head->next;\n"
	"	next->prev = n; n->next = next; n->prev = head; head->next = n;\n"
	"}\n"
	"static inline __attribute__((always_inline)) int clamp(int v, int lo, int hi)\n"
	"{\n"
	"	if (v < lo) v = lo;\n"
	"	if (v > hi) v = hi;\n"
	"	return v;\n"
	"}\n"
	"static __attribute__((noinline)) int sum(struct list *head, callback f)\n"
	"{\n"
	"	struct list a, b = {head, head};\n"
	"	int n = 0;\n"
	"	list_add(&a, head);\n"
	"	for (struct list *l = head->next; l != head; l = l->next)\n"
	"		n = clamp(n + f(l, RED), -10, n * 3);\n"
	"	list_add(&b, &a);\n"
	"	return clamp(n, 1, 7) + __builtin_expect(n == 99, 0);\n"
	"}\n"
	"static int one(const struct list *l, enum color c, ...) { return l ? c + 1 : GREEN; }\n"
	"union u shared;\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	struct list head = {&head, &head};\n"
	"	shared.f = (float)argc;\n"
	"	int outer(int x) { return x + argc; }\n"
	"	printf(\"%d %s\\n\", sum(&head, one) + clamp(argc, 2, 5), argv[0]);\n"
	"	return NESTED;\n"
	"}\n";

static const char cxx_source[] =
	"#include <string>\n"
	"#include <vector>\n"
	"#include <map>\n"
	"#include <algorithm>\n"
	"namespace outer { namespace {\n"
	"struct base { virtual ~base() {} virtual int get() const = 0; };\n"
	"template <typename T> struct box : base {\n"
	"	T value;\n"
	"	explicit box(T v) : value(v) {}\n"
	"	int get() const override { return int(value) + bits; }\n"
	"	unsigned bits : 5; static int count;\n"
	"};\n"
	"template <typename T> int box<T>::count = 3;\n"
	"} }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	std::vector<std::string> v(argv, argv + argc);\n"
	"	std::map<std::string, int> m;\n"
	"	struct local { int operator()(const std::string &s) { return int(s.size()); } } "
	"f;\n"
	"	for (auto &s : v) m[s] += f(s);\n"
	"	std::sort(v.begin(), v.end(), [](const std::string &a, const std::string &b) { "
	"return b < a; });\n"
	"	outer::box<long> b(argc);\n"
	"	outer::base *p = &b;\n"
	"	return p->get() + m.begin()->second + b.count;\n"
	"}\n";

struct build {
	const char *compiler, *flags;
};

/* Nested functions are GNU C. */
static const struct build c_builds[] = {
	{"gcc", "-O2 -gdwarf-4"},
	{"gcc", "-O2 -gdwarf-5"},
	{"gcc", "-O1 -gdwarf-5 -gdwarf64"},
	{"gcc", "-O2 -gdwarf-3 -gstrict-dwarf"},
	{"gcc", "-O2 -gdwarf-2 -gstrict-dwarf"},
	{"gcc", "-O2 -gdwarf-5 -flto"},
	{"gcc", "-O0 -gdwarf-5"},
	{"gcc", "-O2 -gdwarf-5 -ffunction-sections -Wl,--gc-sections"},
	{"clang", "-O2 -gdwarf-4 -DCLANG"},
	{"clang", "-O2 -gdwarf-5 -DCLANG"},
	{"clang", "-O1 -gdwarf-5 -DCLANG -ffunction-sections"},
};

static const struct build cxx_builds[] = {
	{"g++", "-O2 -gdwarf-4"},
	{"g++", "-O2 -gdwarf-5"},
	{"g++", "-O2 -gdwarf-4 -fdebug-types-section"},
	{"g++", "-O2 -gdwarf-5 -fdebug-types-section"},
	{"clang++", "-O2 -gdwarf-4"},
	{"clang++", "-O2 -gdwarf-5"},
	{"clang++", "-O2 -gdwarf-5 -fdebug-types-section"},
};

/* Replaces the nested function where the compiler has none. */
static char *c_program(const char *compiler)
{
	bool nested = !strstr(compiler, "clang");
	const char *cut = strstr(c_source, "	int outer"), *after = strchr(cut, '\n') + 1;
	char *text = NULL;
	int n = nested ? asprintf(&text, "#define NESTED outer(1)\n%s", c_source)
		       : asprintf(&text, "#define NESTED 0\n%.*s%s", (int)(cut - c_source),
				  c_source, after);
	assert_true(n > 0);
	return text;
}

/* False when there is no such compiler, or it does not know the flags. */
static bool compile(const struct workspace *w, const struct build *b, bool cxx)
{
	char *text = cxx ? NULL : c_program(b->compiler);
	workspace_write(w, cxx ? "s.cc" : "s.c", cxx ? cxx_source : text);
	free(text);
	return workspace_try(w, "%s %s -g -o s %s", b->compiler, b->flags, cxx ? "s.cc" : "s.c");
}

struct opened {
	struct cairn_binary *bin;
	struct dwarf *dw;
};

static struct opened open_file(const char *path)
{
	struct opened o;
	struct cairn_err err = {0};
	if (cairn_binary_open(path, NULL, &o.bin, &err) < 0 ||
	    dwarf_open(o.bin, 2, &o.dw, &err) < 0)
		fail_msg("%s", err.msg);
	return o;
}

static void shut(struct opened *o)
{
	dwarf_close(o->dw);
	cairn_binary_close(o->bin);
}

/* ---- libdw ---- */

static void compare_with_libdw(const char *path, const struct build *b)
{
	struct opened o = open_file(path);
	struct against_libdw r;
	struct dw_func_index index;
	assert_int_equal(against_libdw(o.dw, path, &r), 0);
	if (r.differences || !r.dies || !r.attrs || !r.ranges || !r.rows)
		fail_msg("%s %s: %" PRIu64 " differences in %" PRIu64 " DIEs, %" PRIu64
			 " attributes, %" PRIu64 " ranges, %" PRIu64 " rows",
			 b->compiler, b->flags, r.differences, r.dies, r.attrs, r.ranges, r.rows);
	struct dwarf_walk seen;
	dwarf_walk(o.dw, &seen);
	assert_int_equal(seen.errors, 0);
	assert_int_equal(seen.walked, r.dies);
	assert_int_equal(dwarf_index_functions(o.dw, 2, &index, NULL), 0);
	assert_true(index_agrees(&index, &r));
	dw_func_index_fini(&index);
	shut(&o);
}

static void all_builds(const struct build *builds, size_t n, bool cxx)
{
	size_t compared = 0;
	struct workspace w;
	workspace_open(&w);
	for (size_t i = 0; i < n; i++) {
		if (!compile(&w, &builds[i], cxx)) {
			print_message("skipped: %s %s does not work here\n", builds[i].compiler,
				      builds[i].flags);
			continue;
		}
		compare_with_libdw(workspace_path(&w, "s"), &builds[i]);
		compared++;
	}
	workspace_close(&w);
	if (!compared)
		skip();
}

static void c_programs_read_as_libdw_reads_them(void **state)
{
	all_builds(c_builds, ARRAY_SIZE(c_builds), false);
}

static void cplusplus_programs_read_as_libdw_reads_them(void **state)
{
	all_builds(cxx_builds, ARRAY_SIZE(cxx_builds), true);
}

static void a_file_compressed_by_dwz_reads_as_libdw_reads_it(void **state)
{
	struct workspace w;
	workspace_open(&w);
	bool done = compile(&w, &cxx_builds[1], true) && workspace_try(&w, "dwz s");
	if (done)
		compare_with_libdw(workspace_path(&w, "s"), &cxx_builds[1]);
	else
		print_message("skipped: no dwz\n");
	workspace_close(&w);
	if (!done)
		skip();
}

static void names_in_dwzs_alternate_file_are_read(void **state)
{
	struct workspace w;
	workspace_open(&w);
	bool done = compile(&w, &cxx_builds[1], true) &&
		    workspace_try(&w, "cp s t && dwz -m common -M common s t");
	if (done) {
		struct opened o = open_file(workspace_path(&w, "s"));
		struct dw_func_index all, found;
		size_t in_alt = 0, refers_to_alt = 0;
		assert_int_equal(dwarf_index_functions(o.dw, 2, &all, NULL), 0);
		for (size_t i = 0; i < all.n; i++) {
			in_alt += (all.p[i].die & DW_OFF_ALT) != 0;
			refers_to_alt +=
				!(all.p[i].die & DW_OFF_ALT) && (all.p[i].origin & DW_OFF_ALT);
		}
		assert_true(in_alt > 10);
		assert_true(refers_to_alt > 0);
		/* A function that is declared in the alternate file and inlined in this one. */
		assert_int_equal(dwarf_functions_named(o.dw, 2, "push_back", &found, NULL), 0);
		dw_func_index_fini(&found);
		dw_func_index_fini(&all);
		shut(&o);
	} else {
		print_message("skipped: no dwz\n");
	}
	workspace_close(&w);
	if (!done)
		skip();
}

/* ---- readelf: views of location lists ---- */

struct entry {
	uint64_t lo, hi, view_lo, view_hi;
};

struct entries {
	VEC(struct entry) v;
};

static int keep_entry(void *ctx, const struct dw_loc_entry *e)
{
	struct entry entry = {e->lo.v, e->hi.v, e->view_lo, e->view_hi};
	struct entries *out = ctx;
	if (e->has_views)
		assert_true(VEC_ADD(&out->v, entry));
	return 0;
}

static int compare_entries(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct entry));
}

static void our_entries(const struct dwarf *dw, struct entries *out)
{
	struct dw_die die[64];
	for (size_t i = 0; i < dwarf_n_units(dw); i++) {
		int depth = dw_unit_root(dwarf_unit(dw, i), &die[0], NULL) == 1 ? 0 : -1;
		while (depth >= 0) {
			assert_true(dw_locations(&die[depth], DW_AT_location, keep_entry, out,
						 NULL) >= 0);
			if (dw_die_child(&die[depth], &die[depth + 1], NULL) == 1) {
				assert_true(++depth < 63);
				continue;
			}
			while (depth >= 0 &&
			       (!depth || dw_die_sibling(&die[depth], &die[depth], NULL) != 1))
				depth--;
		}
	}
}

/*
 * "    0000001d v000000000000000 v000000000000001 views at 0000000c for:"
 * "             0000000000001050 000000000000106c (DW_OP_reg5 (rdi))"
 */
static void readelf_entries(FILE *in, struct entries *out)
{
	char line[1024];
	struct entry e;
	while (fgets(line, sizeof(line), in)) {
		if (sscanf(line, " %*x v%" SCNx64 " v%" SCNx64 " views at", &e.view_lo,
			   &e.view_hi) != 2 ||
		    !strstr(line, "views at"))
			continue;
		assert_non_null(fgets(line, sizeof(line), in));
		assert_int_equal(sscanf(line, " %" SCNx64 " %" SCNx64, &e.lo, &e.hi), 2);
		assert_true(VEC_ADD(&out->v, e));
	}
}

static void compare_views(const struct workspace *w, const char *name)
{
	struct opened o = open_file(workspace_path(w, name));
	struct entries ours = {0}, theirs = {0};
	size_t with_view = 0;
	workspace_run(w, "readelf --debug-dump=loc %s > loc.txt", name);
	FILE *in = fopen(workspace_path(w, "loc.txt"), "re");
	assert_non_null(in);
	readelf_entries(in, &theirs);
	fclose(in);
	our_entries(o.dw, &ours);
	assert_int_equal(ours.v.n, theirs.v.n);
	assert_true(ours.v.n > 10);
	qsort(ours.v.p, ours.v.n, sizeof(struct entry), compare_entries);
	qsort(theirs.v.p, theirs.v.n, sizeof(struct entry), compare_entries);
	for (size_t i = 0; i < ours.v.n; i++) {
		assert_memory_equal(&ours.v.p[i], &theirs.v.p[i], sizeof(struct entry));
		with_view += ours.v.p[i].view_lo || ours.v.p[i].view_hi;
	}
	assert_true(with_view > 0);
	VEC_FREE(&ours.v);
	VEC_FREE(&theirs.v);
	shut(&o);
}

static void views_of_location_lists_are_those_of_readelf(void **state)
{
	struct workspace w;
	bool done = false;
	workspace_open(&w);
	for (int i = 0; i < 2; i++) {
		if (!compile(&w, &c_builds[i], false) ||
		    !workspace_try(&w, "readelf --version > version.txt"))
			continue;
		compare_views(&w, "s");
		done = true;
	}
	workspace_close(&w);
	if (!done) {
		print_message("skipped: no gcc or readelf\n");
		skip();
	}
}

/* ---- readelf: views of line rows ---- */

struct view {
	uint64_t at;
	uint32_t line, view;
	uint8_t end, stmt;
};

struct views {
	VEC(struct view) v;
};

static int compare_view(const void *a, const void *b)
{
	const struct view *x = a, *y = b;
	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->end != y->end)
		return y->end - x->end;
	if (x->view != y->view)
		return x->view < y->view ? -1 : 1;
	return x->line < y->line ? -1 : x->line > y->line;
}

/* "s.c     3     0x1050       2       x", without the 2 for view 0, with - for an end row. */
static void readelf_views(FILE *in, struct views *out)
{
	char text[1024], line[32], at[32], a[32], b[32];
	while (fgets(text, sizeof(text), in)) {
		int n = sscanf(text, "%*s %31s %31s %31s %31s", line, at, a, b);
		if (n < 2 || strncmp(at, "0x", 2))
			continue;
		struct view v = {.at = strtoull(at, NULL, 16), .end = line[0] == '-'};
		if (!v.end) {
			v.line = (uint32_t)strtoul(line, NULL, 10);
			v.view = n > 2 && a[0] != 'x' ? (uint32_t)strtoul(a, NULL, 10) : 0;
			v.stmt = (n > 2 && a[0] == 'x') || (n > 3 && b[0] == 'x');
		}
		assert_true(VEC_ADD(&out->v, v));
	}
}

static void our_views(const struct dwarf *dw, struct views *out)
{
	for (size_t i = 0; i < dwarf_n_units(dw); i++) {
		const struct dw_row *rows;
		int64_t n = dw_unit_rows(dwarf_unit(dw, i), &rows, NULL);
		assert_true(n >= 0);
		for (int64_t k = 0; k < n; k++) {
			struct view v = {.at = rows[k].at.v, .end = rows[k].end_sequence};
			if (!v.end) {
				v.line = rows[k].line;
				v.view = rows[k].view;
				v.stmt = rows[k].is_stmt;
			}
			assert_true(VEC_ADD(&out->v, v));
		}
	}
}

static void compare_rows(const struct workspace *w)
{
	struct opened o = open_file(workspace_path(w, "s"));
	struct views ours = {0}, theirs = {0};
	workspace_run(w, "readelf --debug-dump=decodedline s > line.txt");
	FILE *in = fopen(workspace_path(w, "line.txt"), "re");
	assert_non_null(in);
	readelf_views(in, &theirs);
	fclose(in);
	our_views(o.dw, &ours);
	assert_int_equal(ours.v.n, theirs.v.n);
	assert_true(ours.v.n > 20);
	qsort(ours.v.p, ours.v.n, sizeof(struct view), compare_view);
	qsort(theirs.v.p, theirs.v.n, sizeof(struct view), compare_view);
	for (size_t i = 0; i < ours.v.n; i++) {
		assert_int_equal(compare_view(&ours.v.p[i], &theirs.v.p[i]), 0);
		assert_int_equal(ours.v.p[i].stmt, theirs.v.p[i].stmt);
	}
	VEC_FREE(&ours.v);
	VEC_FREE(&theirs.v);
	shut(&o);
}

static void line_rows_and_their_views_are_those_of_readelf(void **state)
{
	static const size_t which[] = {0, 1, 6, 8, 9};
	struct workspace w;
	bool done = false;
	workspace_open(&w);
	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		if (!compile(&w, &c_builds[which[i]], false) ||
		    !workspace_try(&w, "readelf --version > version.txt"))
			continue;
		compare_rows(&w);
		done = true;
	}
	workspace_close(&w);
	if (!done) {
		print_message("skipped: no compiler or readelf\n");
		skip();
	}
}

/* ---- paths, names ---- */

/* The position of each address is that of the last row there. Returns how many have line 0. */
static uint64_t check_positions(const struct dw_row *rows, int64_t n, const struct dw_position *p,
				int64_t n_positions)
{
	uint64_t without_line = 0;
	for (int64_t k = 0; k + 1 < n; k++) {
		if (rows[k].end_sequence || rows[k].at.v == rows[k + 1].at.v)
			continue;
		for (uint64_t at = rows[k].at.v; at < rows[k + 1].at.v; at++) {
			size_t i = dw_positions_from(p, (size_t)n_positions, at);
			assert_true(i < (size_t)n_positions && p[i].at == rows[k].at.v &&
				    !p[i].is_end);
			assert_int_equal(p[i].line, rows[k].line);
			assert_int_equal(p[i].column, rows[k].column);
			assert_int_equal(p[i].is_stmt, rows[k].is_stmt);
			without_line += !p[i].line;
		}
	}
	return without_line;
}

static void positions_are_what_the_rows_say(void **state)
{
	(void)state;
	struct workspace w;
	workspace_open(&w);
	if (!compile(&w, &(struct build){"clang", "-O2 -DCLANG"}, false)) {
		workspace_close(&w);
		print_message("no clang\n");
		skip();
	}
	struct opened o = open_file(workspace_path(&w, "s"));
	uint64_t without_line = 0;
	for (size_t i = 0; i < dwarf_n_units(o.dw); i++) {
		const struct dw_row *rows;
		const struct dw_position *positions;
		int64_t n = dw_unit_rows(dwarf_unit(o.dw, i), &rows, NULL);
		int64_t n_positions = dw_unit_positions(dwarf_unit(o.dw, i), &positions, NULL);
		without_line += check_positions(rows, n, positions, n_positions);
		assert_true(n_positions > 0);
		assert_int_equal(
			dw_positions_from(positions, (size_t)n_positions, positions[0].at - 1),
			n_positions);
	}
	assert_true(without_line > 0);
	shut(&o);
	workspace_close(&w);
}

static void file_numbers_give_absolute_paths(void **state)
{
	static const size_t which[] = {0, 1, 8, 9};
	struct workspace w;
	size_t done = 0;
	workspace_open(&w);
	for (size_t i = 0; i < ARRAY_SIZE(which); i++) {
		if (!compile(&w, &c_builds[which[i]], false))
			continue;
		struct opened o = open_file(workspace_path(&w, "s"));
		struct dw_func_index found;
		struct dw_die die;
		assert_int_equal(dwarf_functions_named(o.dw, 1, "list_add", &found, NULL), 0);
		size_t copies = 0;
		for (size_t k = 0; k < found.n; k++)
			copies += found.p[k].flags & DW_FUNC_INLINED && !found.p[k].name;
		assert_true(copies >= 2);
		assert_int_equal(dw_die_at(o.dw, found.p[0].die, &die, NULL), 1);
		const char *path = dw_unit_file(die.unit, dw_udata(&die, DW_AT_decl_file, 99));
		assert_string_equal(path, workspace_path(&w, "s.c"));
		assert_null(dw_unit_file(die.unit, 9999));
		assert_null(dw_unit_file(die.unit, UINT64_MAX));
		dw_func_index_fini(&found);
		shut(&o);
		done++;
	}
	workspace_close(&w);
	if (!done)
		skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(c_programs_read_as_libdw_reads_them),
		cmocka_unit_test(cplusplus_programs_read_as_libdw_reads_them),
		cmocka_unit_test(a_file_compressed_by_dwz_reads_as_libdw_reads_it),
		cmocka_unit_test(names_in_dwzs_alternate_file_are_read),
		cmocka_unit_test(views_of_location_lists_are_those_of_readelf),
		cmocka_unit_test(positions_are_what_the_rows_say),
		cmocka_unit_test(line_rows_and_their_views_are_those_of_readelf),
		cmocka_unit_test(file_numbers_give_absolute_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
