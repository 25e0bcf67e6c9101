/* SPDX-License-Identifier: BSD-2-Clause */
/* The names and functions that come with BTF's types are those that a walk over all DIEs lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "alloc_fail.h"
#include "btfgen/meanings.h"
#include "dwarf/index.h"
#include "dwarf/type_index.h"
#include "dwarf/type_locals.h"
#include "elf/elf.h"
#include "workspace.h"

/* A program by its two ways of listing. */
struct listed {
	struct cairn_binary *bin;
	struct dwarf *dw;
	struct cairn_btfgen btf;
	struct meanings m;
	struct dw_func_index functions;
};

static int distil(struct listed *l, unsigned int threads)
{
	struct cairn_btfgen_opts opts = {
		.size = sizeof(opts), .threads = threads, .dialect = CAIRN_BTF_NO_LOC};
	return distil_with_meanings(l->dw, &opts, &l->btf, &l->m, &l->functions, NULL);
}

static struct listed list_file(const char *path, unsigned int threads)
{
	struct listed l = {0};
	assert_int_equal(cairn_binary_open(path, NULL, &l.bin, NULL), 0);
	assert_int_equal(dwarf_open(l.bin, 1, &l.dw, NULL), 0);
	assert_int_equal(distil(&l, threads), 0);
	return l;
}

static void shut(struct listed *l)
{
	meanings_fini(&l->m);
	dw_func_index_fini(&l->functions);
	cairn_btfgen_free(&l->btf);
	dwarf_close(l->dw);
	cairn_binary_close(l->bin);
}

/* @listed: of an index that lists at least @names. */
static void compare_with(const struct listed *l, enum dw_type_names listed,
			 enum dw_type_names names, const dw_off *offs, size_t n)
{
	struct dw_type_index *index;
	size_t n_index;
	assert_int_equal(dw_type_index_new(l->dw, listed, 1, &index, NULL), 0);
	dw_off *expected = dw_type_index_offsets(index, names, &n_index);
	assert_non_null(expected);
	assert_int_equal(n, n_index);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(offs[i], expected[i]);
	free(expected);
	dw_type_index_free(index);
}

static void compare(const struct listed *l, enum dw_type_names names, const dw_off *offs, size_t n)
{
	compare_with(l, names, names, offs, n);
	compare_with(l, DW_ALL_NAMES, names, offs, n);
}

/* One walk for both lists gives what one for each gives. Returns how many are listed. */
static size_t compare_walks(const struct listed *l, enum dw_type_names names)
{
	struct dw_type_index *index;
	size_t n;
	assert_int_equal(dw_type_index_new(l->dw, names, 1, &index, NULL), 0);
	dw_off *offs = dw_type_index_offsets(index, names, &n);
	assert_non_null(offs);
	compare_with(l, DW_ALL_NAMES, names, offs, n);
	free(offs);
	dw_type_index_free(index);
	return n;
}

static void compare_functions(const struct listed *l)
{
	struct dw_func_index walked;
	assert_int_equal(dwarf_index_functions(l->dw, 1, &walked, NULL), 0);
	assert_int_equal(l->functions.n, walked.n);
	for (size_t i = 0; i < walked.n; i++) {
		const struct dw_func *a = &l->functions.p[i], *b = &walked.p[i];
		assert_true(a->die == b->die && a->origin == b->origin && a->name == b->name);
		assert_true(a->unit == b->unit && a->flags == b->flags && a->parent == b->parent);
	}
	dw_func_index_fini(&walked);
}

/* Returns how many types functions have. */
static size_t compare_locals(const struct listed *l)
{
	struct dw_type_locals all, some;
	assert_int_equal(dw_type_locals_list(l->dw, 1, NULL, &all, NULL), 0);
	assert_int_equal(dw_type_locals_list(l->dw, 1, l->m.named.has_inner, &some, NULL), 0);
	size_t n = all.v.n;
	assert_int_equal(some.v.n, n);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(some.v.p[i].off, all.v.p[i].off);
		assert_string_equal(some.v.p[i].name, all.v.p[i].name);
	}
	dw_type_locals_fini(&all);
	dw_type_locals_fini(&some);
	return n;
}

static size_t compare_all(const struct listed *l)
{
	const struct named_types *n = &l->m.named;
	compare(l, DW_DEFINITIONS, n->definitions.p, n->definitions.n);
	compare(l, DW_TYPEDEFS, n->typedefs.p, n->typedefs.n);
	return compare_locals(l);
}

static const char headers[] = "#include <elf.h>\n#include <netinet/in.h>\n#include "
			      "<pthread.h>\n#include <signal.h>\n#include <stdio.h>\n"
			      "#include <sys/ptrace.h>\n#include <sys/stat.h>\n#include "
			      "<linux/bpf.h>\n#include <linux/perf_event.h>\n";

/* All that the headers of a system declare, in two units. */
static void all_names_of_headers_agree(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "h.h", headers);
	workspace_write(&w, "a.c", "#include \"h.h\"\nint main(void) { return 0; }\n");
	workspace_write(
		&w, "b.c",
		"struct before { int i; };\n#include <linux/if_link.h>\n#include \"h.h\"\n");
	workspace_run(&w, "gcc -g -fno-eliminate-unused-debug-types -o s a.c b.c");
	for (unsigned int threads = 1; threads <= 3; threads++) {
		struct listed l = list_file(workspace_path(&w, "s"), threads);
		assert_true(l.m.named.is_whole);
		assert_true(l.m.named.definitions.n > 150);
		assert_true(l.m.named.typedefs.n > 100);
		compare_all(&l);
		compare_functions(&l);
		assert_true(named_may_be_defined(&l.m.named, CAIRN_T_STRUCT, "before"));
		assert_true(named_may_be_defined(&l.m.named, CAIRN_T_UNION, "bpf_attr"));
		assert_false(named_may_be_defined(&l.m.named, CAIRN_T_STRUCT, "bpf_attr"));
		shut(&l);
	}
	workspace_close(&w);
}

/*
 * Two meanings of a name, types of functions that are also types of files, names that are only
 * declared.
 */
static const char first[] = "struct s { int x; }; enum e { A, B }; typedef struct { short lo; } "
			    "pair; struct absent; enum later;\n"
			    "int f(struct absent *p, pair *q) { struct s { long y; } in = {q->lo}; "
			    "struct only { char c; } o = {1};\n"
			    "	typedef long mine; mine m = in.y; return p != 0 && m + o.c; }\n"
			    "int g(struct s *s, enum e e) { return s->x + e; }\n";
static const char second[] = "struct s { long y; char c[3]; }; typedef long mine; struct only { "
			     "char d; }; union u { int i; float f; };\n"
			     "struct absent *held; mine k(struct s *s, struct only *o, union u *u) "
			     "{ return s->y + o->d + u->i; }\n"
			     "int main(void) { return held != 0; }\n";

static void names_of_files_and_of_functions_are_told_apart(void **state)
{
	static const char *const flags[] = {"-O2", "-O0", "-O1 -gdwarf-4",
					    "-O2 -fdebug-types-section", "-O2 -flto"};
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c", first);
	workspace_write(&w, "b.c", second);
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		workspace_run(&w, "gcc -g %s -o s a.c b.c", flags[i]);
		struct listed l = list_file(workspace_path(&w, "s"), 2);
		/* Units that refer to one another are read as one. */
		assert_int_equal(l.m.named.is_whole, i < 3);
		compare_functions(&l);
		if (l.m.named.is_whole)
			assert_true(compare_all(&l) >= 3);
		shut(&l);
	}
	workspace_close(&w);
}

static void another_language_is_listed_by_the_walk(void **state)
{
	struct workspace w;
	workspace_open(&w);
	workspace_write(&w, "a.c", first);
	workspace_write(&w, "b.cc",
			"namespace ns { struct t { int i; }; } int main() { ns::t t = {0}; return "
			"t.i; }\n");
	workspace_run(&w, "gcc -g -c a.c && g++ -g -o s b.cc a.o");
	struct listed l = list_file(workspace_path(&w, "s"), 2);
	assert_false(l.m.named.is_whole);
	compare_functions(&l);
	assert_true(compare_walks(&l, DW_DEFINITIONS) >= 3);
	assert_true(compare_walks(&l, DW_TYPEDEFS) >= 3);
	assert_true(named_may_be_defined(&l.m.named, CAIRN_T_STRUCT, "anything"));
	assert_int_equal(l.m.named.definitions.n, 0);
	shut(&l);
	workspace_close(&w);
}

static void any_allocation_may_fail(void **state)
{
	struct workspace w;
	unsigned int failed = 0;
	workspace_open(&w);
	workspace_write(&w, "a.c", first);
	workspace_run(&w, "gcc -g -O1 -c a.c");
	for (unsigned int n = 1;; n++) {
		struct listed l = {0};
		assert_int_equal(cairn_binary_open(workspace_path(&w, "a.o"), NULL, &l.bin, NULL),
				 0);
		assert_int_equal(dwarf_open(l.bin, 1, &l.dw, NULL), 0);
		alloc_fail_at(n);
		int rc = distil(&l, 1);
		bool did = alloc_fail_end();
		failed += rc == -ENOMEM;
		assert_true(rc == 0 || (did && rc == -ENOMEM));
		shut(&l);
		if (!did)
			break;
	}
	assert_true(failed > 10);
	workspace_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_names_of_headers_agree),
		cmocka_unit_test(names_of_files_and_of_functions_are_told_apart),
		cmocka_unit_test(another_language_is_listed_by_the_walk),
		cmocka_unit_test(any_allocation_may_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
