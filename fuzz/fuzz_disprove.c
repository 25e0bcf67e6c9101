/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Instructions held against rows, both hostile
 *
 *	OFFSET SIZE MEANING
 *	0      1    where in the code the second function begins, in 1/256 of it
 *	1      2    bytes of code, less than 32 KiB, as far as there are
 *	3      n    the code
 *	3+n    1    bytes of the first function's rows; all that is left are those of the second
 *
 * What is shown of each byte of code: the table of rows that instructions leave says no more than
 * that of the rows as written, and nothing else. A register is where it is said to be, or lost, or
 * (rbp, and what is said to be at it) the caller's own. The check of the same file and its SFrame
 * come to an end, and SFrame of what is left can be read.
 */
#include "fuzz.h"

#include <assert.h>

#include <cairn/unwind.h>

#include "cfi/rule.h"
#include "cfi/table.h"
#include "elf_builder.h"
#include "frame_builder.h"

enum { TEXT = 0xf000, FRAME = 0x40000, HEADER = 3, MAX_CODE = 0x7fff, N_REGS = 17, RBP = 6 };

static void open_table(const struct cfi *cfi, enum unwind_belief belief, uint8_t **bytes,
		       struct unwind_table *ret)
{
	struct cairn_err err;
	size_t size;
	int rc = unwind_table_build(cfi, belief, 1, bytes, &size, &err);
	assert(rc == 0);
	rc = unwind_table_open(*bytes, size, "input", "table", ret, &err);
	assert(rc == 0);
}

static bool is_at_fp(uint32_t word)
{
	return word && cairn_unwind_word_saved(word) == CAIRN_UNWIND_AT_FP;
}

static void hold_register(uint32_t written, uint32_t proved, unsigned int reg)
{
	bool is_lost = proved && cairn_unwind_word_saved(proved) == CAIRN_UNWIND_LOST;
	assert(proved == written || is_lost || (!proved && reg == RBP && is_at_fp(written)));
}

static void hold(const struct cairn_unwind_rule *written, const struct cairn_unwind_rule *proved)
{
	if (proved->cfa == CAIRN_UNWIND_UNDESCRIBED)
		return;
	assert(proved->cfa == written->cfa && proved->flags == written->flags &&
	       proved->reg == written->reg);
	assert(proved->off == written->off && proved->add == written->add);
	for (unsigned int reg = 0; reg < N_REGS; reg++)
		hold_register(rule_word_of(written, reg), rule_word_of(proved, reg), reg);
}

static void compare(const struct cfi *cfi, size_t n_code)
{
	uint8_t *written, *proved;
	struct unwind_table w, p;
	open_table(cfi, UNWIND_AS_WRITTEN, &written, &w);
	open_table(cfi, UNWIND_PROVED, &proved, &p);
	for (struct cairn_vaddr at = {TEXT - 1}; at.v <= TEXT + n_code; at.v++)
		hold(unwind_table_find(&w, at), unwind_table_find(&p, at));
	free(written);
	free(proved);
}

static int count(void *ctx, const struct cairn_unwind_disagreement *found)
{
	++*(uint64_t *)ctx;
	return 0;
}

static void check(const struct cairn_binary *bin, size_t n_code)
{
	struct cairn_unwind_checked checked;
	struct cairn_err err;
	uint64_t n = 0;
	int rc = cairn_unwind_check(bin, count, &n, &checked, &err);
	assert(rc == 0 && n == checked.n_disagreements && checked.followed_bytes <= n_code);
}

static void encode(const struct cairn_binary *bin)
{
	struct cairn_sframe_encoded e;
	struct cairn_sframe *sframe;
	struct cairn_err err;
	if (cairn_sframe_encode(bin, 3, (struct cairn_vaddr){0}, &e, &err) < 0)
		return;
	assert(e.n_mended <= e.n_functions && e.n_disproved <= e.n_left_out);
	int rc =
		cairn_sframe_open(e.bytes, e.size, (struct cairn_vaddr){0}, "input", &sframe, &err);
	assert(rc == 0);
	cairn_sframe_close(sframe);
	free(e.bytes);
}

static void try(const uint8_t *code, size_t n_code, size_t second, const struct frames *f)
{
	struct elf_builder *b = eb_new(ET_DYN);
	struct cairn_binary *bin = NULL;
	struct cfi *cfi = NULL;
	struct cairn_err err;
	size_t size;
	eb_load(b, eb_section(b, (struct eb_section){.name = ".text",
						     .flags = SHF_ALLOC | SHF_EXECINSTR,
						     .addr = TEXT,
						     .data = code,
						     .size = n_code}));
	eb_section(b, (struct eb_section){.name = ".eh_frame",
					  .flags = SHF_ALLOC,
					  .addr = FRAME,
					  .data = f->bytes,
					  .size = f->n});
	const uint8_t *file = eb_finish(b, &size);
	if (binary_open_mem(file, size, "input", &bin, &err) == 0 &&
	    cfi_open(bin, &cfi, &err) == 0) {
		compare(cfi, n_code);
		check(bin, n_code);
		encode(bin);
	}
	cfi_close(cfi);
	cairn_binary_close(bin);
	eb_free(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	if (size < HEADER + 2)
		return 0;
	size_t n_code = (bytes[1] | (size_t)bytes[2] << 8) & MAX_CODE;
	n_code = n_code < size - HEADER - 1 ? n_code : size - HEADER - 1;
	const uint8_t *code = bytes + HEADER, *rows = code + n_code + 1;
	size_t n_rows = size - HEADER - n_code - 1, n_first = rows[-1] < n_rows ? rows[-1] : n_rows;
	size_t second = n_code * bytes[0] / 256;
	struct frames f = {0};
	if (!n_code)
		return 0;
	size_t cie = frames_cie_eh(&f, "zR", "\x1b");
	frames_fde_eh(&f, FRAME, cie, TEXT, second ? second : n_code, rows, n_first);
	if (second)
		frames_fde_eh(&f, FRAME, cie, TEXT + second, n_code - second, rows + n_first,
			      n_rows - n_first);
	try(code, n_code, second, &f);
	frames_free(&f);
	return 0;
}

/* ---- seeds ---- */

struct seed {
	uint8_t second, n_code, code[32], n_rows, rows[32];
};

static void put_seed(void (*put)(const void *bytes, size_t size), const struct seed *s)
{
	uint8_t bytes[HEADER + 1 + sizeof(s->code) + sizeof(s->rows)] = {s->second, s->n_code, 0};
	memcpy(bytes + HEADER, s->code, s->n_code);
	bytes[HEADER + s->n_code] = s->n_rows;
	memcpy(bytes + HEADER + s->n_code + 1, s->rows, s->n_rows);
	put(bytes, HEADER + 1 + (size_t)s->n_code + s->n_rows);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	/* clang-format off */
	static const struct seed seeds[] = {
		/*
		 * je +3; xor %r12d,%r12d; mov %rbx,%rax; xor %ebx,%ebx; mov %rax,%rbx; ret: without
		 * rows
		 */
		{0, 15, {0x74, 3, 0x45, 0x31, 0xe4, 0x48, 0x89, 0xd8, 0x31, 0xdb, 0x48, 0x89, 0xc3, 0x90, 0xc3}, 0, {0}},
		/* push %rax; sub $8,%rsp; mov %rsp,%rbp; add $16,%rsp; ret: without rows */
		{0, 13, {0x50, 0x48, 0x83, 0xec, 8, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xc4, 16, 0xc3}, 0, {0}},
		/*
		 * xor %ebx,%ebx; jmp +3; nop; ret; and after it nop; nop; je -3; ret: the first
		 * comes out in the second's middle
		 */
		{0x8c, 11, {0x31, 0xdb, 0xeb, 3, 0x90, 0xc3, 0x90, 0x90, 0x74, 0xfd, 0xc3}, 0, {0}},
		/*
		 * GCC's realigned frame: push %rbp; mov %rsp,%rbp; lea 16(%rbp),%r10; nop; leave;
		 * lea -8(%r10),%rsp; ret
		 */
		{0, 15, {0x55, 0x48, 0x89, 0xe5, 0x4c, 0x8d, 0x55, 0x10, 0x90, 0xc9, 0x49, 0x8d, 0x62, 0xf8, 0xc3}, 21,
		 {0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x44, 0x0c, 10, 0, 0x10, 6, 2, 0x76, 0, 0x46, 0x0c, 7, 8}},
		/* push %rbx; call; pop %rbx; ret: rows with a sum that is wrong at the return */
		{0, 8, {0x53, 0xe8, 0, 0, 0, 0, 0x5b, 0xc3}, 9, {0x41, 0x0e, 16, 0x83, 2, 0x46, 0x0e, 24, 0xc3}},
	};
	/* clang-format on */
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put_seed(put, &seeds[i]);
}
