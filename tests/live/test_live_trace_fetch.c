/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The BPF interpreter against the reference interpreter
 *
 * A program without relocation sets every register to a known value and comes by one nop. On that
 * nop sit hundreds of sites whose argument locations are random programs over those registers and
 * over a table in memory, which the test knows byte for byte. One pass gives one event per site;
 * each must be what fetch_run() makes of the same fetch program.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "trace/trace.h"
#include "trace_session.h"
#include "types/build.h"
#include "workspace.h"

enum { N_SITES = 400, N_PARAMS = 4, N_STEPS = 12, TABLE_BYTES = 2048, N_POINTERS = 64 };

/* DWARF numbers of the registers that the program sets; rsp keeps its own value. */
static const char *const names[16] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", NULL,
				      "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

static struct workspace ws;
static uint64_t state_of_random = 88172645463325252u;
static uint64_t regs[16];
static uint64_t table_at;
static uint8_t table[TABLE_BYTES];

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

/* Addresses are fixed, so that pointers into the table can be written down. */
static void write_program(uint64_t table_base)
{
	char *source = NULL;
	size_t size;
	FILE *out = open_memstream(&source, &size);

	for (unsigned int i = 0; i < TABLE_BYTES; i += 8) {
		/* The first slots point into the table, the rest is text with NULs and numbers. */
		uint64_t v = i / 8 < N_POINTERS
				     ? table_base + 8 * below(TABLE_BYTES / 8 - 4)
				     : random_u64() & (below(3) ? 0x7f7f7f7f007f7f7f : UINT64_MAX);
		memcpy(table + i, &v, 8);
	}
	for (int i = 0; i < 16; i++)
		regs[i] = below(2) ? table_base + 8 * below(N_POINTERS) : random_u64();
	fputs(".globl _start, probe_me, table\n.text\n_start:\n", out);
	for (int i = 0; i < 16; i++)
		if (names[i])
			fprintf(out, "movabs $0x%llx, %%%s\n", (unsigned long long)regs[i],
				names[i]);
	fputs(".type probe_me, @function\nprobe_me: nop\n.size probe_me, 1\nmov $60, %eax\nxor "
	      "%edi, %edi\nsyscall\n"
	      ".section .table, \"aw\"\ntable:\n",
	      out);
	for (unsigned int i = 0; i < TABLE_BYTES; i++)
		fprintf(out, ".byte %u\n", table[i]);
	fclose(out);
	workspace_write(&ws, "fetch.s", source);
	free(source);
	workspace_run(
		&ws,
		"gcc -static -nostdlib -no-pie -Wl,--section-start=.table=0x%llx -o fetch fetch.s",
		(unsigned long long)table_base);
}

static int read_table(void *ctx, uint64_t from, void *to, size_t n)
{
	if (from < table_at || from - table_at > TABLE_BYTES || n > TABLE_BYTES - (from - table_at))
		return -1;
	memcpy(to, table + (from - table_at), n);
	return 0;
}

static uint8_t random_register(void)
{
	uint8_t reg = (uint8_t)below(16);

	return names[reg] ? reg : 0;
}

/* Steps that leave a number. */
static uint32_t random_value(struct cairn_loc_step *steps)
{
	uint32_t n = 1 + below(N_STEPS - 1);
	bool saved = false;

	steps[0] = (struct cairn_loc_step){.op = below(3) ? CAIRN_LOC_REG : CAIRN_LOC_CONST,
					   .reg = random_register(),
					   .imm = (int64_t)random_u64()};
	for (uint32_t i = 1; i < n; i++) {
		struct cairn_loc_step *s = &steps[i];
		*s = (struct cairn_loc_step){
			.op = (uint8_t)(CAIRN_LOC_SEXT + below(CAIRN_LOC_GE - CAIRN_LOC_SEXT + 1)),
			.operand = (uint8_t)below(saved ? 3 : 2),
			.reg = random_register(),
			.size = (uint8_t)(1 + below(8)),
			.imm = below(2) ? (int64_t)random_u64() : (int64_t)below(70)};
		if (s->op == CAIRN_LOC_SAVE || s->operand == CAIRN_LOC_SLOT)
			s->imm = 2;
		saved |= s->op == CAIRN_LOC_SAVE;
	}
	return n;
}

/*
 * Steps that leave an address: mostly in the table, sometimes through a pointer there, sometimes
 * wild.
 */
static uint32_t random_address(struct cairn_loc_step *steps)
{
	uint32_t n = 0;

	steps[n++] = (struct cairn_loc_step){.op = below(2) ? CAIRN_LOC_ADDR : CAIRN_LOC_CONST,
					     .imm = (int64_t)(table_at + 8 * below(N_POINTERS))};
	for (unsigned int i = below(3); i > 0; i--)
		steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_LOAD, .size = 8};
	if (!below(8))
		steps[n++] = (struct cairn_loc_step){.op = CAIRN_LOC_AND, .imm = 0xfff};
	return n;
}

static void random_location(struct arena *a, struct cairn_location *ret, uint32_t size)
{
	struct cairn_piece *pieces = arena_array(a, 4, sizeof(*pieces));
	uint32_t n = 0, n_pieces = size > 8 ? 1 + below(3) : 1;

	for (uint32_t off = 0; off < size; n++) {
		struct cairn_piece *p = &pieces[n];
		struct cairn_loc_step *steps = arena_array(a, N_STEPS, sizeof(*steps));
		uint32_t rest = size - off;
		p->off = off;
		p->size = n + 1 == n_pieces ? rest : 1 + below(rest < 8 ? rest : 8);
		bool memory = p->size > 8 || below(2);
		p->kind = memory ? CAIRN_PIECE_MEMORY : CAIRN_PIECE_VALUE;
		p->steps = steps;
		p->n_steps = memory ? random_address(steps) : random_value(steps);
		off += p->size;
	}
	*ret = (struct cairn_location){.n_pieces = n, .pieces = pieces};
}

/* int, long, char *, a struct of 29 bytes. */
static void make_types(struct cairn_types *types, struct cairn_param *params)
{
	uint32_t ids[6];

	for (int i = 0; i < 6; i++)
		ids[i] = types_reserve(types);
	types_set(types, ids[0],
		  &(struct cairn_type){.kind = CAIRN_T_INT, .name = "int", .size = 4});
	types_set(types, ids[1],
		  &(struct cairn_type){.kind = CAIRN_T_INT, .name = "long", .size = 8});
	types_set(types, ids[2],
		  &(struct cairn_type){.kind = CAIRN_T_INT, .name = "char", .size = 1});
	types_set(types, ids[3],
		  &(struct cairn_type){.kind = CAIRN_T_PTR, .size = 8, .ref = ids[2]});
	types_set(types, ids[4],
		  &(struct cairn_type){.kind = CAIRN_T_STRUCT, .name = "s", .size = 29});
	params[0] = (struct cairn_param){"i", ids[0]};
	params[1] = (struct cairn_param){"l", ids[1]};
	params[2] = (struct cairn_param){"s", ids[3]};
	params[3] = (struct cairn_param){"v", ids[4]};
}

static void make_sites(struct arena *a, const struct cairn_types *types, struct cairn_function *f,
		       struct cairn_vaddr at, struct cairn_foff off)
{
	struct cairn_site *sites = arena_array(a, N_SITES, sizeof(*sites));

	for (int i = 0; i < N_SITES; i++) {
		struct cairn_arg *args = arena_array(a, N_PARAMS, sizeof(*args));
		for (int k = 0; k < N_PARAMS; k++) {
			args[k] = (struct cairn_arg){.name = f->params[k].name,
						     .type = f->params[k].type};
			random_location(a, &args[k].loc,
					(uint32_t)cairn_types_size(types, args[k].type));
		}
		sites[i] = (struct cairn_site){.at = at,
					       .off = off,
					       .has_off = true,
					       .n_args = N_PARAMS,
					       .args = args,
					       .symbol = "probe_me"};
	}
	session_make_copies(sites, N_SITES);
	f->sites = sites;
	f->n_sites = N_SITES;
}

struct comparison {
	struct cairn_trace *t;
	uint64_t site_at;
	unsigned int n, readable, unreadable;
};

static void same_value(const struct cairn_event_value *a, const struct cairn_event_value *b,
		       uint32_t site, uint32_t value)
{
	if (a->state == b->state && a->n_bytes == b->n_bytes && a->truncated == b->truncated &&
	    (a->state != CAIRN_VALUE_OK || !a->n_bytes || !memcmp(a->bytes, b->bytes, a->n_bytes)))
		return;
	fail_msg("site %u value %u: state %d, %u bytes; the reference has state %d, %u bytes", site,
		 value, a->state, a->n_bytes, b->state, b->n_bytes);
}

static int compare(void *ctx, const struct cairn_event *event)
{
	struct comparison *c = ctx;
	static uint8_t record[4096];
	static struct decode_space space;
	struct trace_record *rec = (struct trace_record *)record;
	struct fetch_machine m = {.read = read_table, .record = record, .n_record = sizeof(record)};
	uint32_t site = 0;

	while (cairn_trace_site(c->t, site) != event->site)
		site++;
	const struct trace_program *program = &c->t->programs.p[event->site->program];
	memcpy(m.file, regs, sizeof(regs));
	m.file[FETCH_FILE_IP] = c->site_at;
	assert_int_equal(fetch_run(&m, c->t->ops.p + program->op, program->n, false), FETCH_DONE);
	*rec = (struct trace_record){.site = site, .faults = m.faults};
	assert_true(decode_record(c->t, rec, sizeof(record), &space));
	for (uint32_t i = 0; i < event->n_values; i++) {
		same_value(&event->values[i], &space.values[i], site, i);
		c->readable += event->values[i].state == CAIRN_VALUE_OK;
		c->unreadable += event->values[i].state == CAIRN_VALUE_UNREADABLE;
	}
	c->n++;
	return 0;
}

static struct cairn_vaddr symbol(const struct cairn_binary *bin, const char *name)
{
	const struct elf_symbol *symbols;
	size_t n;

	assert_true(elf_symbols(binary_main(bin), &symbols, &n, NULL) >= 0);
	for (size_t i = 0; i < n; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].at;
	fail_msg("no symbol %s", name);
	return (struct cairn_vaddr){0};
}

static void kernel_and_reference_agree_on_random_programs(void **state)
{
	const char *missing = session_missing(), *path = workspace_path(&ws, "fetch");
	char *argv[] = {(char *)path, NULL};
	struct cairn_trace_opts opts = {
		.size = sizeof(opts), .exe = path, .argv = argv, .string_bytes = 16};
	struct cairn_param params[N_PARAMS];
	struct cairn_function f = {.name = "probe_me", .n_params = N_PARAMS, .params = params};
	struct cairn_types *types = types_new();
	struct cairn_binary *bin;
	struct cairn_err err = {0};
	struct cairn_foff off;
	struct trace_file *file;
	struct arena a = {0};
	struct comparison c = {0};

	if (missing) {
		print_message("%s\n", missing);
		types_free(types);
		skip();
	}
	table_at = 0x10000000;
	write_program(table_at);
	assert_int_equal(cairn_binary_open(path, NULL, &bin, &err), 0);
	struct cairn_vaddr at = symbol(bin, "probe_me");
	assert_int_equal(symbol(bin, "table").v, table_at);
	assert_true(cairn_binary_foff(bin, at, &off));
	make_types(types, params);
	make_sites(&a, types, &f, at, off);
	assert_int_equal(cairn_trace_open(&opts, &c.t, &err), 0);
	assert_int_equal(trace_add_file(c.t, path, path, bin, NULL, &file, &err), 0);
	if (trace_add_function(c.t, file, &f, types, "probe_me", &err) < 0 ||
	    cairn_trace_attach(c.t, &err) != N_SITES || cairn_trace_start(c.t, &err) < 0)
		fail_msg("%s", err.msg);
	c.site_at = at.v;
	while (!cairn_trace_target_gone(c.t))
		cairn_trace_poll(c.t, 10, compare, &c, &err);
	cairn_trace_poll(c.t, 0, compare, &c, &err);
	assert_int_equal(c.n, N_SITES);
	/* The test is worth something: both kinds of result occur often. */
	print_message("%u values read, %u not readable\n", c.readable, c.unreadable);
	assert_true(c.readable > N_SITES);
	assert_true(c.unreadable > N_SITES / 8);
	cairn_trace_close(c.t);
	types_free(types);
	arena_fini(&a);
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
		cmocka_unit_test(kernel_and_reference_agree_on_random_programs),
	};
	return cmocka_run_group_tests(tests, build, clean);
}
