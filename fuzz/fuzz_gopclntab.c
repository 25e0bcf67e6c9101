/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions of a Go program: names and frames, which become symbols and rows. */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/cfi.h"
#include "cfi/table.h"
#include "elf/elf.h"
#include "elf/gopclntab.h"
#include "elf_builder.h"
#include "go_table.h"

enum { TEXT_BYTES = 0x100 };

static int look_at_frame(void *ctx, uint64_t lo, uint64_t hi, int64_t below)
{
	const struct go_function *f = ctx;
	assert(f->lo <= lo && lo < hi && hi <= f->hi && below >= 0);
	return 0;
}

static void read_functions(const struct elf *e)
{
	struct gopclntab t;
	struct go_function f;
	if (!gopclntab_open(e, &t))
		return;
	for (uint32_t i = 0; i < t.n && i < 1000; i++)
		if (gopclntab_function(&t, i, &f)) {
			assert(f.lo < f.hi && strlen(f.name));
			gopclntab_frames(&t, &f, look_at_frame, &f);
		}
}

static void make_rows(struct cairn_binary *bin)
{
	struct cairn_err err;
	struct cfi *cfi;
	uint8_t *table;
	size_t size;
	if (cfi_open(bin, &cfi, &err) < 0)
		return;
	if (unwind_table_build(cfi, UNWIND_AS_WRITTEN, 1, &table, &size, &err) == 0)
		free(table);
	cfi_close(cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const uint8_t code[TEXT_BYTES] = {0xc3};
	struct elf_builder *b = eb_new(ET_EXEC);
	struct cairn_binary *bin;
	struct cairn_err err;
	const struct elf_symbol *symbols;
	size_t n;
	eb_section(b, (struct eb_section){.name = ".text",
					  .flags = SHF_ALLOC | SHF_EXECINSTR,
					  .addr = GO_TABLE_TEXT,
					  EB_BYTES(code)});
	eb_section(b, (struct eb_section){.name = ".gopclntab",
					  .flags = SHF_ALLOC,
					  .addr = 2 * GO_TABLE_TEXT,
					  .data = bytes,
					  .size = size});
	const uint8_t *file = eb_finish(b, &n);
	if (binary_open_mem(file, n, "input", &bin, &err) == 0) {
		read_functions(binary_main(bin));
		elf_symbols(binary_main(bin), &symbols, &n, &err);
		make_rows(bin);
		cairn_binary_close(bin);
	}
	eb_free(b);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	struct go_table t;
	go_table_make(GO_1_18, &t);
	put(t.bytes, t.n);
	go_table_make(GO_1_20, &t);
	put(t.bytes, t.n);
}
