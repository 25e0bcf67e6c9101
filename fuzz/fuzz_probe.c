/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Probes as text
 *
 * The input is a probe, and once more the keys and the number of an aggregate, and a format. It is
 * parsed,
 * checked against a function with parameters of every kind, compiled for a site, and run by the
 * reference interpreter over a little memory: whatever a person can type must end in an error with
 * a place in the text, or in a program that ends.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/expr/compile.h"
#include "trace/show/format.h"
#include "../tests/unit/trace_fixture.h"

enum { TEXT_MAX = 600, MEMORY = 0x1000, MEMORY_SIZE = 256 };

static const uint8_t memory[MEMORY_SIZE] = {1, 2, 3, 'a', 'b', 0, 0x40, 0x10};

static int read_memory(void *ctx, uint64_t from, void *to, size_t n)
{
	if (from < MEMORY || from - MEMORY > MEMORY_SIZE || n > MEMORY_SIZE - (from - MEMORY))
		return -1;
	memcpy(to, memory + (from - MEMORY), n);
	return 0;
}

static void simulate(struct fetch_program *p, bool has_condition)
{
	uint8_t record[4096];
	struct fetch_machine m = {
		.read = read_memory, .record = record, .n_record = sizeof(record)};

	fetch_emit(p, FETCH_END);
	if (p->full)
		return;
	for (int i = 0; i < 16; i++)
		m.file[i] = MEMORY + (uint64_t)i * 8;
	assert(fetch_run(&m, p->ops, p->n, has_condition) != FETCH_BROKEN);
}

static void compile(const struct fixture *f, const struct probe_text *text)
{
	static const struct cairn_loc_step steps[] = {{.op = CAIRN_LOC_REG, .reg = 5}};
	static const struct cairn_piece pieces[] = {
		{.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = steps},
		{.kind = CAIRN_PIECE_MEMORY, .n_steps = 1, .steps = steps},
	};
	struct cairn_arg args[N_PARAMS];
	struct cairn_site site = {.n_args = N_PARAMS, .args = args};
	struct fetch_program p = {0};
	struct compiler c = {.types = f->types, .site = &site, .program = &p};

	for (int i = 0; i < N_PARAMS; i++)
		args[i] = (struct cairn_arg){.type = f->params[i].type,
					     .loc = {.n_pieces = 1, .pieces = &pieces[i == P_V]}};
	bool has_condition =
		text->condition && compile_condition(&c, text->condition) == CAIRN_AVAILABLE;
	for (uint32_t i = 0; i < text->n_values; i++) {
		struct value_layout l = {.out = (uint16_t)(40 + 16 * i), .n_bytes = 16};
		if (text->values[i].n_bytes)
			compile_bytes(&c, text->values[i].expr, text->values[i].n_bytes, &l, i);
		else
			compile_value(&c, text->values[i].expr, text->values[i].as_string, &l, i);
	}
	simulate(&p, has_condition);
}

static void compile_keys(const struct expr_scope *scope, const struct fixture *f,
			 struct probe_value_text *keys, uint32_t n)
{
	static const struct cairn_loc_step steps[] = {{.op = CAIRN_LOC_REG, .reg = 5}};
	static const struct cairn_piece piece = {
		.kind = CAIRN_PIECE_VALUE, .n_steps = 1, .steps = steps};
	struct cairn_arg args[N_PARAMS];
	struct cairn_site site = {.n_args = N_PARAMS, .args = args};
	struct fetch_program p = {0};
	struct compiler c = {.types = f->types, .site = &site, .program = &p};

	for (int i = 0; i < N_PARAMS; i++)
		args[i] = (struct cairn_arg){.type = f->params[i].type,
					     .loc = {.n_pieces = 1, .pieces = &piece}};
	for (uint32_t i = 0; i < n; i++) {
		struct cairn_err err = {0};
		uint32_t out = 24 * i;
		if (keys[i].as_string) {
			if (expr_type_path(scope, keys[i].expr, &err) == 0)
				compile_key_string(&c, keys[i].expr, out, 4, i);
		} else if (expr_type_condition(scope, keys[i].expr, &err) == 0) {
			compile_number(&c, keys[i].expr, out, i);
		}
	}
	simulate(&p, false);
}

static void aggregate(const struct expr_scope *scope, const struct fixture *f, struct arena *a)
{
	enum { KEYS_MAX = 16 };
	struct probe_value_text keys[KEYS_MAX], number;
	struct cairn_err err = {0};
	int64_t range[3];
	uint32_t n;
	int r = probe_parse_keys(a, scope->text, KEYS_MAX, keys, &n, &err);

	assert(r == 0 || (err.code == r && err.msg[0]));
	if (r == 0)
		compile_keys(scope, f, keys, n);
	err = (struct cairn_err){0};
	r = probe_parse_number(a, scope->text, range, &number, &err);
	assert(r == 0 || (err.code == r && err.msg[0]));
}

static void format(const char *text, struct arena *a)
{
	struct trace_format *f = NULL;
	struct cairn_err err = {0};
	int r = format_parse(a, text, &f, &err);

	assert(r == 0 || (err.code == r && err.msg[0]));
	assert(r < 0 || f->end_from + f->n_end <= strlen(text));
	for (uint32_t i = 0; r == 0 && i < f->n_fields; i++)
		assert(f->fields[i].from + f->fields[i].n_text <= strlen(text));
	if (r == 0)
		format_free(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char text[TEXT_MAX + 1];
	struct probe_text probe;
	struct cairn_err err = {0};
	struct arena a = {0};
	struct fixture f;

	if (size > TEXT_MAX)
		return 0;
	memcpy(text, bytes, size);
	text[size] = 0;
	fixture_init(&f);
	const struct expr_scope scope = {.types = f.types, .function = &f.function, .text = text};
	int r = probe_parse(&a, text, &probe, &err);
	for (uint32_t i = 0; r == 0 && i < probe.n_values; i++)
		r = probe.values[i].n_bytes
			    ? expr_type_condition(&scope, probe.values[i].n_bytes, &err)
			    : 0;
	for (uint32_t i = 0; r == 0 && i < probe.n_values; i++)
		r = expr_type_value(&scope, probe.values[i].expr, &err);
	if (r == 0 && probe.condition)
		r = expr_type_condition(&scope, probe.condition, &err);
	assert(r == 0 || (err.code == r && err.msg[0]));
	if (r == 0)
		compile(&f, &probe);
	aggregate(&scope, &f, &a);
	format(text, &a);
	fixture_fini(&f);
	arena_fini(&a);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char *const seeds[] = {
		"f",
		"{$time} {{x}}\\t{i} {p->s:str:*>12.3s} {u:#010x} {d:+.2e} {$delta:-9}",
		("/lib/libc.so.6:malloc.c:f(i, u:hex, p->next->x, *p, &p->in, s:str, v.name[3], "
		 "p->arr[2])"),
		"uprobe:a.out:f() if i < 0 && u == 0xffffffff || l / 3 % 2 == -1",
		"f(s) if s == \"abc\\n\" && v.name != \"x\" && p->c == GREEN",
		"f(d, r, *r) if ~i ^ (u << 3 | l >> 1) & 'a' + - -1 * !p->in.b",
		"std::vector<int>::operator()(i) if true",
		"i, u / 3:hex, s, p->s:str, v.name:str, p->in.b, $pid, &p->in, l >> 2 & u",
		"p->x * u - -l,-10,0x20,3",
		"usdt:a.out:p*:name($arg1, $arg2:str) if $arg1 > 3",
		"a.out:main.c:12() if i",
		"f+0x1c",
		"f((struct outer *)l, ((struct outer *)p->s)->x, *(p + i), p->arr[u & 3], sizeof "
		"*p)",
		"f(str(l, 20), buf(p->s, i + 3), (unsigned char)-i, $cpu) if $comm == \"sh\" || d "
		"< 1.5",
		"f if str(l) == \"x\" && (s[i] == 'a' || p - p->next > 1 || d == d)",
	};
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put(seeds[i], strlen(seeds[i]));
}
