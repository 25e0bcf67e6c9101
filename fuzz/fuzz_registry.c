/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A codectl registry, and all that its entries lead to, in memory of somebody else
 *
 * The input is the memory at AT, with the registry at its beginning: tables, strings, .eh_frame lie
 * after it.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "code/region.h"

enum { AT = 0x10000, PLENTY = 1 << 24 };

/* Addresses at and around the borders of what was read. */
static void ask(struct region *r, const struct code_memory *memory)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	struct rule_words rule;
	struct arena arena;
	uint64_t size = r->range.hi.v - r->range.lo.v, lo;
	arena_init(&arena);
	for (uint64_t off = 0; off < 64; off++) {
		uint64_t at = r->range.lo.v + (off < 32 ? off : size - (off - 31)) % size;
		const char *why;
		region_rule(r, at, EM_X86_64, &rule, &why);
		assert(rule.n <= RULE_MAX_WORDS);
		int n = region_names(r, memory, at, &arena, frames, CAIRN_FRAMES_MAX, &lo);
		assert(n <= 0 || lo <= at);
		for (int i = 0; i < n; i++)
			assert(!frames[i].name || strlen(frames[i].name) < 4096);
	}
	region_unwind(r);
	arena_fini(&arena);
}

static void load(const struct registry *registry, const struct registry_entry *e, uint64_t *budget)
{
	struct region r = {.registry = registry, .number = e->number, .info = e->jit};
	r.range = (struct cairn_code_range){.lo = {e->jit.text_start},
					    .hi = {e->jit.text_end},
					    .generation = e->epoch,
					    .is_removed = e->is_removed};
	if (region_load(&r, &registry->memory, EM_X86_64, budget, NULL) == 0)
		ask(&r, &registry->memory);
	region_fini(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct code_block block = {bytes, size, AT};
	struct registry r = {.memory = code_memory_of_block(&block), .lo = AT, .hi = AT + size};
	struct cairn_err err = {0};
	uint64_t budget = PLENTY;
	int rc = registry_copy(&r, 64, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc == 0)
		rc = registry_parse(&r, true, &err);
	if (rc == 0)
		rc = registry_strings(&r, &err);
	if (rc == 0)
		rc = registry_check(&r, &err);
	/* Nobody changes it. */
	assert(rc <= 0);
	for (size_t i = 0; rc == 0 && i < r.entries.n; i++) {
		const struct registry_entry *e = &r.entries.p[i];
		assert(e->epoch && !e->is_changing);
		if (e->option == CODE_REGISTER_JIT && !e->why)
			load(&r, e, &budget);
		else if (e->name)
			assert(strlen(e->name) < REGISTRY_MAX_STRING);
	}
	registry_fini(&r);
	return 0;
}

/* ---- seeds ---- */

struct seed {
	struct codectl_registry head;
	struct codectl_entry entries[4];
	char path[16], name[8], function[8];
	uint8_t build_id[24];
	struct {
		struct code_jit_table head;
		struct code_jit_unwind_fre rows[2];
	} rows[2];
	struct {
		struct code_jit_table head;
		struct code_jit_symbol symbols[2];
	} symbols;
	struct {
		struct code_jit_table head;
		struct code_jit_line lines[2];
	} lines;
	struct {
		struct code_jit_unwind_table head;
		struct code_jit_unwind_fre rows[1];
	} rfc;
	/* A CIE and an FDE for [0x800000, 0x800040): CFA = rsp + 8, after one byte rsp + 16. */
	uint8_t eh_frame[64];
};

static uint64_t at(size_t off)
{
	return AT + off;
}

static void put_eh_frame(uint8_t *to)
{
	static const uint8_t cie[] = {20, 0,    0,  0, 0,    0,    0, 0, 1,    'z', 'R', 0,
				      1,  0x78, 16, 1, 0x04, 0x0c, 7, 8, 0x90, 1,   0,   0};
	static const uint8_t fde[] = {28,   0, 0, 0, 28, 0, 0, 0, 0, 0,    0x80, 0,  0, 0, 0, 0,
				      0x40, 0, 0, 0, 0,  0, 0, 0, 0, 0x41, 0x0e, 16, 0, 0, 0, 0};
	memcpy(to, cie, sizeof(cie));
	memcpy(to + sizeof(cie), fde, sizeof(fde));
}

static void put_tables(struct seed *s)
{
	s->rows[0].head =
		(struct code_jit_table){48, 48, at(offsetof(struct seed, rows[1])), 24, 21};
	s->rows[0].rows[0] = (struct code_jit_unwind_fre){.size = 1, .cfa_off = 8};
	s->rows[0].rows[1] = (struct code_jit_unwind_fre){
		.size = 31, .ip_off = 1, .cfa_off = 16, .fp_off = -16, .info = 5};
	s->rows[1].head = (struct code_jit_table){48, 24, 0, 24, 24};
	s->rows[1].rows[0] = (struct code_jit_unwind_fre){.size = 9, .ip_off = 100, .cfa_off = 8};
	s->symbols.head = (struct code_jit_table){64, 64, 0, 32, 32};
	s->symbols.symbols[0] =
		(struct code_jit_symbol){32, 0, at(offsetof(struct seed, function)), 0, 0, 0};
	s->symbols.symbols[1] =
		(struct code_jit_symbol){8, 4, at(offsetof(struct seed, name)), 1, 7, 0};
	s->lines.head = (struct code_jit_table){32, 32, 0, 16, 16};
	s->lines.lines[0] = (struct code_jit_line){0, 3, at(offsetof(struct seed, path))};
	s->lines.lines[1] = (struct code_jit_line){32, 0, 0};
	s->rfc.head = (struct code_jit_unwind_table){24, 24, 0};
	s->rfc.rows[0] = (struct code_jit_unwind_fre){.size = 16, .ip_off = 8, .cfa_off = 24};
}

static void put_entries(struct seed *s)
{
	for (int i = 0; i < 4; i++)
		s->entries[i] = (struct codectl_entry){
			.epoch = (uint64_t)i + 1, .since_ns = 5, .option = CODE_REGISTER_JIT};
	s->entries[0].option = CODE_REGISTER_ELF;
	s->entries[0].info.elf =
		(struct code_elf_info){.elf_start = 0x400000,
				       .elf_end = 0x500000,
				       .text_start = 0x401000,
				       .text_end = 0x402000,
				       .pathname = at(offsetof(struct seed, path)),
				       .build_id = at(offsetof(struct seed, build_id)),
				       .build_id_len = 20};
	s->entries[1].info.jit =
		(struct code_jit_info){.text_start = 0x700000,
				       .text_end = 0x700100,
				       .unwind_head = at(offsetof(struct seed, rows)),
				       .extended = CODE_JIT_EXTENDED,
				       .symbols_head = at(offsetof(struct seed, symbols)),
				       .lines_head = at(offsetof(struct seed, lines)),
				       .name = at(offsetof(struct seed, name))};
	s->entries[2].info.jit =
		(struct code_jit_info){.text_start = 0x900000,
				       .text_end = 0x900100,
				       .unwind_head = at(offsetof(struct seed, rfc))};
	s->entries[3].info.jit =
		(struct code_jit_info){.text_start = 0x800000,
				       .text_end = 0x800040,
				       .extended = CODE_JIT_EXTENDED,
				       .unwind_start = at(offsetof(struct seed, eh_frame)),
				       .unwind_end = at(sizeof(struct seed)),
				       .unwind_kind = CODE_UNWIND_EH_FRAME,
				       .flags = CODE_JIT_FRAME_POINTER};
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static struct seed s;
	memset(&s, 0, sizeof(s));
	s.head = (struct codectl_registry){.magic = CODECTL_REGISTRY_MAGIC,
					   .version = CODECTL_REGISTRY_VERSION,
					   .header_size = sizeof(s.head),
					   .self = AT,
					   .size = sizeof(s),
					   .entries = at(offsetof(struct seed, entries)),
					   .entry_stride = sizeof(s.entries[0]),
					   .n_entries = 4};
	strcpy(s.path, "/lib/one.so");
	strcpy(s.name, "traces");
	strcpy(s.function, "hot");
	put_tables(&s);
	put_entries(&s);
	put_eh_frame(s.eh_frame);
	put(&s, sizeof(s));
}
