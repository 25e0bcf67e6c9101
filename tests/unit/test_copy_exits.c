/* SPDX-License-Identifier: BSD-2-Clause */
/* Where control leaves inlined copies, in compiled programs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "alloc_fail.h"
#include "sites/copy_exits.h"
#include "workspace.h"

static const char source[] =
	"#include <setjmp.h>\n"
	"volatile long sink;\n"
	"jmp_buf point;\n"
	"#define NO __attribute__((noinline, noclone))\n"
	"#define IN static inline __attribute__((always_inline))\n"
	"NO void work(long n) { if (n == 9) longjmp(point, 1); sink = n; }\n"
	"#define CASES \\\n"
	"	case 0: sink = 5; break; case 1: work(n); break; case 2: sink += n; break; \\\n"
	"	case 3: n *= 3; break; case 4: return 4; case 5: sink -= n; break;\n"
	"IN long plain(long n) { sink = n * 7; return n + 1; }\n"
	"IN long cases(long n) { sink = n; switch (n) { CASES default: work(7); } sink++; return "
	"n; }\n"
	"IN long open_cases(long n) { sink = n; switch (n) { CASES default: "
	"__builtin_unreachable(); }\n"
	"	sink++; return n; }\n"
	"NO long of_plain(long n) { n = plain(n); work(n); return n; }\n"
	"NO long of_cases(long n) { n = cases(n); work(n); return n * 5; }\n"
	"NO long of_open_cases(long n) { n = open_cases(n); work(n); return n * 5; }\n"
	"int main(int argc, char **argv)\n"
	"{ return of_plain(argc) + of_cases(argc) + of_open_cases(argc); }\n";

/* What a kernel changes, or goes on after, by its tables: a jump label, a fault, WARN(), BUG(). */
static const char kernel[] =
	"volatile int sink;\n"
	"#define NO __attribute__((noinline, noclone))\n"
	"#define IN static inline __attribute__((always_inline))\n"
	"#define TABLE(name, entry) \".pushsection \" name \",\\\"aw\\\"\\n\" entry "
	"\"\\n.popsection\\n\"\n"
	"#define UD2(flags) asm volatile(\"1: ud2\\n\" TABLE(\"__bug_table\", \".long 1b - ., 0\\n"
	".word 1, \" #flags))\n"
	"NO void work(int n) { sink = n; }\n"
	"IN int labelled(int n) { sink = n;\n"
	"	asm goto(\"1: .byte 0x0f, 0x1f, 0x44, 0, 0\\n\" TABLE(\"__jump_table\", \".balign "
	"8\\n"
	".long 1b - ., %l0 - .\\n.quad 0\") :::: yes);\n"
	"	return 0;\n"
	"yes:	sink = 5; return 1; }\n"
	"IN int faulting(int *p) { sink = 2;\n"
	"	asm goto(\"1: movl $0, (%0)\\n\" TABLE(\"__ex_table\", \".balign 4\\n.long 1b - ., "
	"%l1 "
	"- ., 0\") :: \"r\" (p) : \"memory\" : bad);\n"
	"	return 0;\n"
	"bad:	sink = 6; return 1; }\n"
	"IN int warning(int n) { sink = n; if (n == 9) { UD2(1); sink = 3; return 1; } return 0; "
	"}\n"
	"IN int stopping(int n) { sink = n; if (n == 9) { UD2(0); __builtin_unreachable(); } "
	"return 0; }\n"
	"#define USE(call) { if (call) { work(7); return 3; } work(5); return sink; }\n"
	"NO int of_labelled(int n) USE(labelled(n))\n"
	"NO int of_faulting(int *p) USE(faulting(p))\n"
	"NO int of_warning(int n) USE(warning(n))\n"
	"NO int of_stopping(int n) USE(stopping(n))\n"
	"int first(int n) { return of_labelled(n) + of_faulting(&n) + of_warning(n) + "
	"of_stopping(n); }\n";

static const char *const functions[] = {"plain", "cases", "open_cases"};

static struct workspace ws;

struct opened {
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct copy_ends *ends;
	struct arena arena;
};

static void open_program(const char *name, struct opened *ret)
{
	*ret = (struct opened){0};
	assert_int_equal(cairn_binary_open(workspace_path(&ws, name), NULL, &ret->bin, NULL), 0);
	assert_int_equal(cairn_sites_open(ret->bin, NULL, &ret->sites, NULL), 0);
	assert_int_equal(copy_ends_new(ret->sites, &ret->ends), 0);
	assert_non_null(ret->ends);
}

static void close_program(struct opened *o)
{
	arena_fini(&o->arena);
	copy_ends_free(o->ends);
	cairn_sites_close(o->sites);
	cairn_binary_close(o->bin);
}

/* The copy in the function @container. */
static const struct cairn_site *copy_in(const struct cairn_function *f, const char *container)
{
	for (uint32_t i = 0; i < f->n_sites; i++)
		if (f->sites[i].kind == CAIRN_SITE_INLINED && f->sites[i].container &&
		    !strcmp(f->sites[i].container, container))
			return &f->sites[i];
	fail_msg("no copy in %s", container);
	return NULL;
}

static const char *ends_in(struct opened *o, const char *function, const char *container,
			   struct copy_exits *ret)
{
	struct cairn_function_list found;
	const char *why;

	assert_int_equal(cairn_sites_find(o->sites, function, &found, NULL), 1);
	assert_int_equal(copy_ends_find(o->ends, found.p[0], copy_in(found.p[0], container),
					&o->arena, ret, &why),
			 0);
	return why;
}

static void exits_of(const char *program)
{
	struct copy_exits exits;
	struct opened o;
	const char *why;

	open_program(program, &o);
	assert_null(ends_in(&o, "plain", "of_plain", &exits));
	assert_int_equal(exits.n, 1);
	assert_null(ends_in(&o, "cases", "of_cases", &exits));
	assert_in_range(exits.n, 1, 7);
	why = ends_in(&o, "open_cases", "of_open_cases", &exits);
	assert_non_null(why);
	assert_non_null(strstr(why, "a jump whose targets are not known"));
	close_program(&o);
}

static void a_switch_has_exits_and_one_without_bounds_has_a_reason(void **state)
{
	static const char *const flags[] = {"-O2", "-O2 -fcf-protection", "-O1",
					    "-O2 -fno-pie -no-pie"};

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		workspace_run(&ws, "gcc -g %s -o prog prog.c", flags[i]);
		exits_of("prog");
	}
}

static uint32_t n_exits_of(struct opened *o, const char *function, const char *container)
{
	struct copy_exits exits;
	const char *why = ends_in(o, function, container, &exits);

	if (why)
		fail_msg("%s: %s", function, why);
	return exits.n;
}

#define KERNEL_FLAGS                                                                               \
	"-O2 -nostdlib -static -fno-pic -no-pie -mcmodel=kernel -fno-asynchronous-unwind-tables "  \
	"-Wl,-e,first -Wl,-Ttext=0xffffffff81000000 -Wl,-Tdata=0xffffffff81900000 "                \
	"-Wl,-Tbss=0xffffffff81a00000"
/* The linker has such symbols of sections when something needs them. */
#define KERNEL_TABLES                                                                              \
	"-Wl,-u,__start___jump_table,-u,__stop___jump_table,-u,__start___bug_table,"               \
	"-u,__stop___bug_table,-u,__start___ex_table,-u,__stop___ex_table"

/* The arm that only a table leads to has an exit of its own; after BUG() there is none. */
static void a_kernel_goes_where_its_tables_say(void **state)
{
	struct copy_exits exits;
	struct opened o;
	const char *why;

	workspace_run(&ws, "gcc -g %s %s -o kernel kernel.c", KERNEL_FLAGS, KERNEL_TABLES);
	open_program("kernel", &o);
	assert_int_equal(n_exits_of(&o, "labelled", "of_labelled"), 2);
	assert_int_equal(n_exits_of(&o, "faulting", "of_faulting"), 2);
	assert_int_equal(n_exits_of(&o, "warning", "of_warning"), 2);
	assert_int_equal(n_exits_of(&o, "stopping", "of_stopping"), 1);
	close_program(&o);
	workspace_run(&ws, "gcc -g %s -o kernel kernel.c", KERNEL_FLAGS);
	open_program("kernel", &o);
	why = ends_in(&o, "labelled", "of_labelled", &exits);
	assert_non_null(why);
	assert_non_null(strstr(why, "the tables"));
	close_program(&o);
}

static int find_all(struct opened *o, struct cairn_function_list *found)
{
	struct copy_exits exits;
	const char *why;
	int r = 0;

	for (size_t k = 0; k < sizeof(functions) / sizeof(functions[0]); k++)
		for (uint32_t i = 0; !r && i < found[k].p[0]->n_sites; i++)
			if (found[k].p[0]->sites[i].kind == CAIRN_SITE_INLINED)
				r = copy_ends_find(o->ends, found[k].p[0], &found[k].p[0]->sites[i],
						   &o->arena, &exits, &why);
	return r;
}

/* After a failure the same search can be asked again. */
static void finding_exits_survives_lack_of_memory(void **state)
{
	struct cairn_function_list found[3];
	int r = -ENOMEM;

	workspace_run(&ws, "gcc -g -O2 -o prog prog.c");
	for (unsigned int n = 1; r; n++) {
		struct opened o;
		open_program("prog", &o);
		for (size_t k = 0; k < 3; k++)
			assert_int_equal(cairn_sites_find(o.sites, functions[k], &found[k], NULL),
					 1);
		alloc_fail_at(n);
		r = find_all(&o, found);
		bool failed = alloc_fail_end();
		assert_true(r == 0 || (failed && r == -ENOMEM));
		if (r)
			assert_int_equal(find_all(&o, found), 0);
		close_program(&o);
		r = failed ? -ENOMEM : r;
	}
}

static int set_up(void **state)
{
	workspace_open(&ws);
	workspace_write(&ws, "prog.c", source);
	workspace_write(&ws, "kernel.c", kernel);
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
		cmocka_unit_test(a_switch_has_exits_and_one_without_bounds_has_a_reason),
		cmocka_unit_test(a_kernel_goes_where_its_tables_say),
		cmocka_unit_test(finding_exits_survives_lack_of_memory),
	};
	return cmocka_run_group_tests(tests, set_up, clean);
}
