/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * .eh_frame and .debug_frame
 *
 * The first byte of the input says which of the two; the rest is the section, in a file with code
 * at 0x1000. Rows are asked for all over that code and where the FDEs say they are. A table is made
 * of them, too.
 */
#include "fuzz.h"

#include <assert.h>

#include <cairn/unwind.h>

#include "cfi/cfi.h"
#include "elf_builder.h"
#include "frame_builder.h"

enum { TEXT = 0x1000, FRAME = 0x4000 };

static void touch(const uint8_t *data, uint64_t size)
{
	__attribute__((unused)) volatile uint8_t sink = 0;
	for (uint64_t i = 0; i < size; i++)
		sink ^= data[i];
}

static void ask(const struct cfi *cfi, uint64_t at)
{
	struct cfi_row row;
	struct cairn_err err = {0};
	struct cairn_vaddr lo, hi;
	bool is_covered = cfi_fde_at(cfi, (struct cairn_vaddr){at}, &lo, &hi);
	int rc = cfi_row_at(cfi, (struct cairn_vaddr){at}, &row, &err);
	assert((rc == 0) == !is_covered);
	assert(rc >= 0 || err.code == rc);
	if (rc != 1)
		return;
	assert(lo.v <= row.lo.v && row.lo.v <= at && at < row.hi.v && row.hi.v <= hi.v);
	assert(row.cfa != CFI_CFA_REG_OFFSET || row.cfa_reg < CFI_N_REGS);
	touch(row.cfa_expr, row.cfa_expr_len);
	if (row.hi.v < hi.v && row.hi.v - at < 64)
		ask(cfi, row.hi.v);
}

/* What was made can be opened, and each row is found where it begins. */
static void make_table(const struct cairn_binary *bin)
{
	struct cairn_unwind *made, *opened;
	struct cairn_err err = {0};
	struct cairn_vaddr lo, hi;
	size_t size;
	int rc = cairn_unwind_make(bin, 1, &made, &err);
	assert(rc == 0 || (err.code == rc && err.msg[0]));
	if (rc < 0)
		return;
	const struct cairn_unwind_header *h = cairn_unwind_bytes(made, &size);
	rc = cairn_unwind_open_mem(h, size, "made", &opened, &err);
	assert(rc == 0);
	for (uint32_t i = 0; i < h->n_rows; i++) {
		const struct cairn_unwind_rule *r = cairn_unwind_row(opened, i, &lo, &hi);
		assert(lo.v <= hi.v &&
		       (lo.v == hi.v ||
			cairn_unwind_find(made, lo) == cairn_unwind_row(made, i, &lo, &hi)));
		touch((const uint8_t *)cairn_unwind_words(r),
		      r->n_regs * sizeof(*cairn_unwind_words(r)));
	}
	cairn_unwind_close(opened);
	cairn_unwind_close(made);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const uint8_t code[0x100] = {0x90};
	if (size == 0)
		return 0;
	struct elf_builder *b = eb_new(ET_DYN);
	uint32_t text = eb_section(b, (struct eb_section){.name = ".text",
							  .flags = SHF_ALLOC | SHF_EXECINSTR,
							  .addr = TEXT,
							  EB_BYTES(code)});
	eb_load(b, text);
	eb_section(b, (struct eb_section){.name = bytes[0] & 1 ? ".debug_frame" : ".eh_frame",
					  .flags = SHF_ALLOC,
					  .addr = FRAME,
					  .data = bytes + 1,
					  .size = size - 1});
	size_t file_size;
	const uint8_t *file = eb_finish(b, &file_size);
	struct cairn_binary *bin = NULL;
	struct cfi *cfi = NULL;
	struct cairn_err err;
	if (binary_open_mem(file, file_size, "input", &bin, &err) == 0 &&
	    cfi_open(bin, &cfi, &err) == 0)
		for (uint64_t at = 0; at < 2 * TEXT;
		     at += at >= TEXT && at < TEXT + 0x100 ? 7 : 0x100)
			ask(cfi, at);
	if (cfi)
		make_table(bin);
	cfi_close(cfi);
	cairn_binary_close(bin);
	eb_free(b);
	return 0;
}

static void put_seed(void (*put)(const void *bytes, size_t size), uint8_t kind, struct frames *f)
{
	uint8_t *seed = malloc(f->n + 1);
	if (!seed)
		abort();
	seed[0] = kind;
	memcpy(seed + 1, f->bytes, f->n);
	put(seed, f->n + 1);
	free(seed);
	frames_free(f);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x86, 2,    0x43, 0x0d, 6,
					  0x0a, 0x48, 0x0c, 7,    8,    0x41, 0x0b, 0x0f,
					  2,    0x77, 8,    0x10, 3,    1,    0x50, 0x44,
					  0x16, 12,   1,    0x50, 0x2e, 8};
	static const uint8_t rare[] = {0x07, 13, 0x08, 14,   0x09, 15,   1,    0x14, 8,    2,
				       0x15, 9,  0x7e, 0x11, 10,   0x7f, 0x05, 11,   3,    0x2f,
				       5,    1,  0x03, 4,    0,    0x12, 7,    0x7e, 0x04, 4,
				       0,    0,  0,    0x13, 0x7d, 0x06, 16};
	struct frames f = {0};
	size_t cie = frames_cie_eh(&f, "zPLR", "\x1b\1\2\3\4\x1b\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, 0x40, program, sizeof(program));
	cie = frames_cie_eh(&f, "zRS", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT + 0x40, 0x40, rare, sizeof(rare));
	frames_u32(&f, 0);
	put_seed(put, 0, &f);
	for (int is_64 = 0; is_64 < 2; is_64++) {
		f = (struct frames){0};
		cie = frames_cie_debug(&f, is_64 ? 4 : 3, is_64, 8);
		frames_fde_debug(&f, cie, is_64, TEXT, 0x40, program, sizeof(program));
		frames_fde_debug(&f, cie, is_64, TEXT + 0x20, 0x40, rare, sizeof(rare));
		put_seed(put, 1, &f);
	}
}
