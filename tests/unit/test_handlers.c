/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows of arguments for BPF programs, and what describes the kernel. At a function's first
 * instruction the calling convention of x86-64 says where each argument is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <cairn/trace.h>

#include "alloc_fail.h"
#include "handlers/handlers.h"
#include "workspace.h"

/* Words of struct pt_regs. */
enum { SI = 13, DI = 14, DX = 12, CX = 11, R8 = 9, R9 = 8, SP = 19 };

static const char takes_c[] =
	"volatile long sink;\n"
	"struct three { char b[3]; };\n"
	"struct wide { long a, b; };\n"
	"struct large { char b[24]; };\n"
	"__attribute__((noinline, noipa)) void take(int a, unsigned b, signed char c, long d,\n"
	"	const char *e, unsigned short f, int on_stack, struct large g)\n"
	"{ sink += a + b + c + d + *e + f + on_stack + g.b[1]; }\n"
	"__attribute__((noinline, noipa)) void pair(struct wide w, struct three t)\n"
	"{ sink += w.a + w.b + t.b[2]; }\n"
	"static inline __attribute__((always_inline)) void copy(int a, long b)\n"
	"{ take(a, 1, 2, b, \"x\", 3, 4, (struct large){{5}}); }\n"
	"int main(int argc, char **argv)\n"
	"{ copy(7, argc); copy(7, argc); pair((struct wide){argc, 1}, (struct three){{1}});\n"
	"  return 0; }\n";

static struct workspace ws;
static const char *program;

static struct cairn_trace *plan(const char *function)
{
	struct cairn_trace_opts opts = {.size = sizeof(opts), .exe = program};
	struct cairn_err err = {0};
	struct cairn_trace *t;

	assert_int_equal(cairn_trace_open(&opts, &t, &err), 0);
	trace_locate(t, 0);
	if (cairn_trace_add(t, function, &err) < 0)
		fail_msg("%s", err.msg);
	return t;
}

static void assert_entry(const struct cairn_loc_entry *e, int kind, int reg, int size, int flags,
			 uint64_t imm)
{
	assert_int_equal(e->kind, kind);
	assert_int_equal(e->reg, reg);
	assert_int_equal(e->size, size);
	assert_int_equal(e->flags, flags);
	assert_int_equal(e->imm, imm);
}

static void entries_are_where_the_calling_convention_has_arguments(void **state)
{
	static const struct {
		int kind, reg, size, flags;
		uint64_t imm;
	} want[] = {
		{CAIRN_LOC_IS_HEAD, 0, 0, 0, 99},
		{CAIRN_LOC_IN_REG, DI, 4, CAIRN_LOC_F_SIGNED, 0},
		{CAIRN_LOC_IN_REG, SI, 4, 0, 0},
		{CAIRN_LOC_IN_REG, DX, 1, CAIRN_LOC_F_SIGNED, 0},
		{CAIRN_LOC_IN_REG, CX, 8, CAIRN_LOC_F_SIGNED, 0},
		{CAIRN_LOC_IN_REG, R8, 8, 0, 0},
		{CAIRN_LOC_IN_REG, R9, 2, 0, 0},
		{CAIRN_LOC_IN_MEMORY, SP, 4, CAIRN_LOC_F_SIGNED, 8},
		{CAIRN_LOC_IS_NONE, 0, 0, 0, (uint64_t)(int64_t)-E2BIG},
	};
	struct cairn_trace *t = plan("take");
	struct loc_rows rows;

	assert_int_equal(rows_make(t, 99, &rows, NULL), 0);
	assert_int_equal(cairn_trace_n_sites(t), 1);
	const struct cairn_loc_entry *row = rows.entries.p + rows.row_of[0];
	assert_int_equal(row->to, 8);
	for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++)
		assert_entry(row + i, want[i].kind, want[i].reg, want[i].size, want[i].flags,
			     want[i].imm);
	rows_fini(&rows);
	cairn_trace_close(t);
}

static void an_argument_of_two_registers_has_operations(void **state)
{
	struct cairn_trace *t = plan("pair");
	struct loc_rows rows;

	assert_int_equal(rows_make(t, 0, &rows, NULL), 0);
	const struct cairn_loc_entry *row = rows.entries.p + rows.row_of[0];
	assert_entry(row + 1, CAIRN_LOC_BY_OPS, 0, 16, 0, 0);
	const struct cairn_loc_entry *op = row + row[1].to;
	assert_entry(op, CAIRN_LOC_OP_REG, DI, 0, 0, 0);
	assert_int_equal(op[1].kind, CAIRN_LOC_OP_STORE);
	assert_int_equal(op[1].to, 0);
	assert_entry(op + 2, CAIRN_LOC_OP_REG, SI, 0, 0, 0);
	assert_int_equal(op[3].kind, CAIRN_LOC_OP_STORE);
	assert_int_equal(op[3].to, 8);
	assert_int_equal(op[4].kind, CAIRN_LOC_OP_END);
	rows_fini(&rows);
	cairn_trace_close(t);
}

static void a_cookie_has_the_arguments_that_are_near(void **state)
{
	static const uint32_t want = (DI + 1u) | 2u << 5 | 1u << 7 | ((SI + 1u) | 2u << 5) << 8 |
				     ((DX + 1u) | 0u << 5 | 1u << 7) << 16 |
				     ((CX + 1u) | 3u << 5 | 1u << 7) << 24;
	struct cairn_trace *t = plan("take");
	struct loc_rows rows;

	assert_int_equal(rows_make(t, 0, &rows, NULL), 0);
	uint64_t cookie = rows_cookie(&rows, 0, 1234);
	assert_int_equal((uint32_t)cookie, want);
	assert_int_equal(CAIRN_LOC_COOKIE_HEAD(cookie), 1234);
	assert_int_equal(cookie >> 52, CAIRN_LOC_COOKIE_MARK);
	rows_fini(&rows);
	cairn_trace_close(t);
	/* One in two registers, and one of three bytes, are not. */
	t = plan("pair");
	assert_int_equal(rows_make(t, 0, &rows, NULL), 0);
	assert_int_equal((uint32_t)rows_cookie(&rows, 0, 1), 0);
	rows_fini(&rows);
	cairn_trace_close(t);
}

static void equal_sites_share_a_row(void **state)
{
	struct cairn_trace *t = plan("copy");
	struct loc_rows rows;

	assert_int_equal(rows_make(t, 0, &rows, NULL), 0);
	assert_int_equal(cairn_trace_n_sites(t), 2);
	const struct cairn_loc_entry *row = rows.entries.p + rows.row_of[0];
	assert_entry(row + 1, CAIRN_LOC_IS_CONST, 0, 4, CAIRN_LOC_F_SIGNED, 7);
	assert_true(rows.starts.n >= 1 && rows.starts.n <= 2);
	if (!memcmp(row, rows.entries.p + rows.row_of[1], 3 * sizeof(*row)))
		assert_int_equal(rows.row_of[0], rows.row_of[1]);
	rows_fini(&rows);
	cairn_trace_close(t);
}

static void rows_survive_lack_of_memory(void **state)
{
	static const char *const functions[] = {"take", "pair", "copy"};

	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		struct cairn_trace *t = plan(functions[i]);
		bool failed = true;
		for (unsigned int n = 1; failed; n++) {
			struct loc_rows rows;
			struct cairn_err err = {0};
			alloc_fail_at(n);
			int r = rows_make(t, 1, &rows, &err);
			failed = alloc_fail_end();
			assert_int_equal(r, failed ? -ENOMEM : 0);
			assert_true(!failed || err.msg[0]);
			rows_fini(&rows);
		}
		cairn_trace_close(t);
	}
}

/* ---- the kernel ---- */

static void put(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(workspace_path(&ws, name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void put_root(void)
{
	static const char symbols[] = "ffffffff81000000 T _text\nffffffff81000000 T first\n"
				      "ffffffff81001000 T _etext\n";
	const struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[8];
	} note = {{4, 8, NT_GNU_BUILD_ID}, "GNU", "buildid"};

	workspace_run(&ws, "mkdir -p root/proc/sys/kernel root/sys/kernel "
			   "root/sys/bus/event_source/devices/kprobe");
	put("root/proc/sys/kernel/osrelease", "6.1.0-test\n", 11);
	put("root/sys/kernel/notes", &note, sizeof(note));
	put("root/proc/kallsyms", symbols, sizeof(symbols) - 1);
}

static int find(const struct cairn_loc_opts *opts, const char *module, struct cairn_err *err)
{
	struct kernels kernels = {.opts = opts, .root = workspace_path(&ws, "root")};
	struct cairn_trace_kernel source;

	kernels_lock();
	int r = kernels_find(&kernels, module, &source, err);
	kernels_unlock();
	return r;
}

static void a_kernel_without_kprobes_is_told(void **state)
{
	const struct cairn_loc_opts opts = {.size = sizeof(opts)};
	struct cairn_err err = {0};

	assert_int_equal(find(&opts, NULL, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.msg, "no kprobes"));
	assert_int_equal(find(&opts, "no_such_module", &err), -ENOENT);
}

static void another_file_than_the_kernels_is_refused(void **state)
{
	const struct cairn_loc_opts none = {.size = sizeof(none)};
	const struct cairn_loc_opts other = {.size = sizeof(other), .kernel_file = program};
	const struct cairn_loc_opts gone = {.size = sizeof(gone), .kernel_file = "/no/such/file"};
	struct cairn_err err = {0};
	bool failed = true;

	put("root/sys/bus/event_source/devices/kprobe/type", "8\n", 2);
	assert_int_equal(find(&none, NULL, &err), -ENOENT);
	assert_int_equal(find(&other, NULL, &err), -ESTALE);
	assert_int_equal(find(&gone, NULL, &err), -ENOENT);
	for (unsigned int n = 1; failed; n++) {
		alloc_fail_at(n);
		int r = find(&other, NULL, &err);
		failed = alloc_fail_end();
		assert_int_equal(r, failed ? -ENOMEM : -ESTALE);
	}
	kernels_forget();
}

static int build(void **state)
{
	static char path[100];

	workspace_open(&ws);
	workspace_write(&ws, "takes.c", takes_c);
	workspace_run(&ws, "gcc -g -O2 -o takes takes.c");
	snprintf(path, sizeof(path), "%s", workspace_path(&ws, "takes"));
	program = path;
	put_root();
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
		cmocka_unit_test(entries_are_where_the_calling_convention_has_arguments),
		cmocka_unit_test(an_argument_of_two_registers_has_operations),
		cmocka_unit_test(a_cookie_has_the_arguments_that_are_near),
		cmocka_unit_test(equal_sites_share_a_row),
		cmocka_unit_test(rows_survive_lack_of_memory),
		cmocka_unit_test(a_kernel_without_kprobes_is_told),
		cmocka_unit_test(another_file_than_the_kernels_is_refused),
	};

	return cmocka_run_group_tests(tests, build, clean);
}
