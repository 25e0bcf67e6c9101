/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sites of a kernel go by a kprobe_multi link: those at which it gives what a kprobe gives. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "trace/attach/kernel_multi.h"

enum { RAX, RBX = 3, RDI = 5, R9 = 9, R10 = 10, R15 = 15, N_GOOD = KERNEL_MULTI_MIN };

/* No more is looked at of a kernel than that there is one. */
static const char a_kernel;

struct made {
	struct cairn_trace t;
	struct trace_file file;
	struct trace_probe probe;
	struct cairn_site facts[16];
	struct trace_site sites[16];
};

static void begin(struct made *m)
{
	memset(m, 0, sizeof(*m));
	m->file.kernel = (const void *)&a_kernel;
	m->probe.file = &m->file;
	assert_true(VEC_ADD(&m->t.probes, &m->probe));
}

static void end(struct made *m)
{
	VEC_FREE(&m->t.probes);
	VEC_FREE(&m->t.sites);
	VEC_FREE(&m->t.programs);
	VEC_FREE(&m->t.ops);
}

/* An entry whose program is one operation, and two of text after that. */
static struct trace_site *add(struct made *m, struct fetch_op op)
{
	size_t i = m->t.sites.n;
	struct trace_program program = {.op = (uint32_t)m->t.ops.n, .n = 4};
	const struct fetch_op text = {.code = FETCH_REG, .reg = RBX}, last = {.code = FETCH_END};

	if (op.code != FETCH_STREQ)
		program.n = 2;
	assert_true(VEC_ADD(&m->t.ops, op));
	for (int k = 0; k < 2 && op.code == FETCH_STREQ; k++)
		assert_true(VEC_ADD(&m->t.ops, text));
	assert_true(VEC_ADD(&m->t.ops, last));
	m->facts[i] = (struct cairn_site){.kind = CAIRN_SITE_OUT_OF_LINE};
	m->sites[i].pub.site = &m->facts[i];
	m->sites[i].pub.running = 0x1000 * (i + 1);
	m->sites[i].pub.program = (uint32_t)m->t.programs.n;
	assert_true(VEC_ADD(&m->t.programs, program));
	assert_true(VEC_ADD(&m->t.sites, &m->sites[i]));
	return &m->sites[i];
}

static void add_good(struct made *m)
{
	for (int i = 0; i < N_GOOD; i++)
		add(m, (struct fetch_op){.code = FETCH_STORE_REG, .reg = RDI, .size = 8});
}

static void needs_registers_that_ftrace_saves(void **state)
{
	static const struct {
		struct fetch_op op;
		bool is_taken;
	} cases[] = {
		{{.code = FETCH_REG, .reg = RAX}, true},
		{{.code = FETCH_REG, .reg = R9}, true},
		{{.code = FETCH_REG, .reg = RBX}, false},
		{{.code = FETCH_STORE_REG, .reg = R10}, false},
		{{.code = FETCH_BYTES, .reg = R15}, false},
		{{.code = FETCH_BYTES, .reg = FETCH_TEMP}, true},
		{{.code = FETCH_ADD, .reg = RBX, .flags = FETCH_F_FILE}, false},
		{{.code = FETCH_ADD, .imm = RBX}, true},
		{{.code = FETCH_STREQ}, true}, /* what follows is text */
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		begin(&m);
		add_good(&m);
		const struct trace_site *site = add(&m, cases[i].op);
		assert_int_equal(kernel_multi_choose(&m.t), N_GOOD + cases[i].is_taken);
		assert_int_equal(site->by_multi, cases[i].is_taken);
		end(&m);
	}
}

static void takes_entries_alone_at_their_address(void **state)
{
	const struct fetch_op op = {.code = FETCH_REG, .reg = RDI};
	struct made m;

	(void)state;
	begin(&m);
	add_good(&m);
	struct trace_site *same = add(&m, op), *copy = add(&m, op), *refused = add(&m, op),
			  *followed = add(&m, op);
	same->pub.running = m.sites[0].pub.running;
	m.facts[copy - m.sites].kind = CAIRN_SITE_INLINED;
	refused->pub.refused = "a hazard";
	followed->follows = true;
	add(&m, op);
	assert_int_equal(kernel_multi_choose(&m.t), N_GOOD);
	assert_false(m.sites[0].by_multi || same->by_multi);
	assert_false(copy->by_multi || refused->by_multi || followed->by_multi);
	end(&m);
}

static void takes_none_if_there_are_few(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	for (int i = 0; i < KERNEL_MULTI_MIN - 1; i++)
		add(&m, (struct fetch_op){.code = FETCH_REG, .reg = RDI});
	assert_int_equal(kernel_multi_choose(&m.t), 0);
	assert_false(m.sites[0].by_multi);
	end(&m);
}

/* They could not be unloaded. Walking a stack needs all registers. */
static void takes_none_of_modules_nor_with_stacks(void **state)
{
	struct made m;

	(void)state;
	begin(&m);
	add_good(&m);
	m.file.module = "loop";
	assert_int_equal(kernel_multi_choose(&m.t), 0);
	m.file.module = NULL;
	m.t.stacks = (struct trace_stacks *)&m;
	assert_int_equal(kernel_multi_choose(&m.t), 0);
	m.t.stacks = NULL;
	m.t.opts.backend = CAIRN_BACKEND_KPROBE;
	assert_int_equal(kernel_multi_choose(&m.t), 0);
	m.t.opts.backend = CAIRN_BACKEND_AUTO;
	assert_int_equal(kernel_multi_choose(&m.t), N_GOOD);
	end(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(needs_registers_that_ftrace_saves),
		cmocka_unit_test(takes_entries_alone_at_their_address),
		cmocka_unit_test(takes_none_if_there_are_few),
		cmocka_unit_test(takes_none_of_modules_nor_with_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
