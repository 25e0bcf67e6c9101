/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A .gopclntab as Go's linker writes it, of three functions; the format is in
 * src/ground/elf/gopclntab.c.
 */
#ifndef SAMPLES_GO_TABLE_H
#define SAMPLES_GO_TABLE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
	GO_TABLE_TEXT = 0x401000,
	GO_TABLE_FUNCTIONS = 3,
	GO_TABLE_RECORD = 48,
	GO_1_18 = 37,
	GO_1_20 = 41
};

struct go_table {
	uint8_t bytes[512];
	size_t n;
};

static inline void go_put32(struct go_table *t, uint32_t v)
{
	memcpy(t->bytes + t->n, &v, sizeof(v));
	t->n += sizeof(v);
}

static inline void go_put64(struct go_table *t, uint64_t v)
{
	memcpy(t->bytes + t->n, &v, sizeof(v));
	t->n += sizeof(v);
}

/*
 * runtime.main, main.f and runtime.goexit, of 32 bytes each; the last one is outermost. @flag_at:
 * GO_1_18 or GO_1_20.
 */
static inline void go_table_make(size_t flag_at, struct go_table *t)
{
	static const char names[] = "\0runtime.main\0main.f\0runtime.goexit";
	static const uint32_t name_of[GO_TABLE_FUNCTIONS] = {1, 14, 21};
	/* -1 + 1 for 4 bytes, + 24 for 20, - 24 for the rest. */
	static const uint8_t pcs[] = {0, 2, 4, 48, 20, 47, 8, 0};
	uint64_t at_names = 72, at_pcs = at_names + sizeof(names),
		 at_functions = at_pcs + sizeof(pcs);
	*t = (struct go_table){.n = 0};
	go_put32(t, flag_at == GO_1_20 ? 0xfffffff1 : 0xfffffff0);
	go_put32(t, 8 << 24 | 1 << 16);
	go_put64(t, GO_TABLE_FUNCTIONS);
	go_put64(t, 1);
	go_put64(t, GO_TABLE_TEXT);
	go_put64(t, at_names);
	go_put64(t, 0);
	go_put64(t, 0);
	go_put64(t, at_pcs);
	go_put64(t, at_functions);
	memcpy(t->bytes + t->n, names, sizeof(names));
	memcpy(t->bytes + t->n + sizeof(names), pcs, sizeof(pcs));
	t->n = at_functions;
	for (uint32_t i = 0; i < GO_TABLE_FUNCTIONS; i++) {
		go_put32(t, 32 * i);
		go_put32(t, 8 * GO_TABLE_FUNCTIONS + 4 + GO_TABLE_RECORD * i);
	}
	go_put32(t, 32 * GO_TABLE_FUNCTIONS);
	for (uint32_t i = 0; i < GO_TABLE_FUNCTIONS; i++) {
		uint8_t *record = t->bytes + t->n;
		uint32_t entry = 32 * i, name = name_of[i], pcsp = 1;
		memcpy(record, &entry, 4);
		memcpy(record + 4, &name, 4);
		memcpy(record + 16, &pcsp, 4);
		record[flag_at] = i == GO_TABLE_FUNCTIONS - 1;
		t->n += GO_TABLE_RECORD;
	}
}

#endif
