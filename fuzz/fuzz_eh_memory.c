/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information of a loaded object, as the self walk reads it: the bytes from
 * .eh_frame_hdr on, in memory that ends after them.
 */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "cfi/eh_memory.h"
#include "frame_builder.h"

/* Addresses are relative to the bytes: the code is where a small program has it, before them. */
enum { CODE = 0x1000, N_CODE = 0x200 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct rule_words rule;
	uint8_t *memory = malloc(size + 1);
	if (!memory)
		return 0;
	memcpy(memory, bytes, size);
	const struct eh_memory eh = {.hdr = memory,
				     .lo = memory,
				     .hi = memory + size,
				     .machine = size & 1 ? EM_AARCH64 : EM_X86_64};
	for (uint64_t at = 0; at < N_CODE; at += 16)
		eh_memory_rule(&eh, (uint64_t)(uintptr_t)memory - CODE + at, &rule);
	eh_memory_rule(&eh, 0, &rule);
	eh_memory_rule(&eh, UINT64_MAX, &rule);
	free(memory);
	return 0;
}

static void put_i32(struct frames *f, int64_t v)
{
	frames_u32(f, (uint32_t)(int32_t)v);
}

/* Addresses of the seed count from its first byte. */
void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t program[] = {0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, 6,
					  0x0a, 0x48, 0x0c, 7,    8, 0x41, 0x0b, 0x0f,
					  2,    0x77, 8,    0x10, 3, 1,    0x50};
	static const uint8_t trampoline[] = {0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 16, 3, 0x77, 0xa8, 1};
	enum { HDR = 12 + 2 * 8 };
	struct frames rows = {0}, all = {0};
	size_t first[2];
	size_t cie = frames_cie_eh(&rows, "zPLR", "\x1b\1\2\3\4\x1b\x1b");
	first[0] = rows.n;
	frames_fde_eh(&rows, HDR, cie, -(uint64_t)CODE, 0x100, program, sizeof(program));
	cie = frames_cie_eh(&rows, "zRS", "\x1b");
	first[1] = rows.n;
	frames_fde_eh(&rows, HDR, cie, -(uint64_t)CODE + 0x100, 0x100, trampoline,
		      sizeof(trampoline));
	frames_put(&all, "\x01\x1b\x03\x3b", 4);
	put_i32(&all, HDR - 4);
	frames_u32(&all, 2);
	for (int i = 0; i < 2; i++) {
		put_i32(&all, -CODE + i * 0x100);
		put_i32(&all, HDR + (int64_t)first[i]);
	}
	frames_put(&all, rows.bytes, rows.n);
	put(all.bytes, all.n);
	frames_u8(&all, 0);
	put(all.bytes, all.n);
	frames_free(&rows);
	frames_free(&all);
}
