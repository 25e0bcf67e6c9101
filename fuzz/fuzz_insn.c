/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bytes taken for code: every answer about them must come back, and the answers must fit together.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>

#include "insn/insn.h"

static void ask(const uint8_t *code, size_t n, size_t at, bool is_boundary)
{
	struct insn insn;
	bool valid = insn_decode(code + at, n - at, at, &insn);
	struct insn_uprobe u = insn_uprobe(code + at, n - at);
	enum cairn_hazard hazard = insn_hazard_in(code, n, at);
	assert(!valid || (insn.len >= 1 && insn.len <= 15 && insn.len <= n - at));
	assert(valid || u.hazard == CAIRN_HAZARD_NOT_PROBEABLE);
	assert(u.hazard != CAIRN_HAZARD_NOT_A_BOUNDARY);
	assert(is_boundary == (hazard != CAIRN_HAZARD_NOT_A_BOUNDARY));
	assert(!is_boundary || hazard == u.hazard || u.hazard == CAIRN_HAZARD_NOP5_RED_ZONE);
	assert(cairn_hazard_text(hazard) && cairn_hazard_id(u.hazard));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *bits = calloc(1, size / 8 + 1);
	if (!bits)
		return 0;
	assert(insn_boundaries(bytes, size, bits) <= size);
	insn_uses_red_zone(bytes, size);
	/* Asking at every byte decodes from the start each time. */
	for (size_t at = 0; at < size && at < 512; at++)
		ask(bytes, size, at, bits[at / 8] >> at % 8 & 1);
	assert(insn_hazard_in(bytes, size, size) == CAIRN_HAZARD_NOT_A_BOUNDARY);
	free(bits);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const uint8_t code[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20, 0x89,
		0x7d, 0xec, 0x0f, 0x1f, 0x44, 0x00, 0x00, 0xf0, 0xff, 0x07, 0x74, 0x05, 0xe8,
		0x00, 0x01, 0x00, 0x00, 0xc5, 0xf9, 0xeb, 0xc0, 0x62, 0xf1, 0x7d, 0x48, 0xfe,
		0xc1, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00, 0xf3, 0xa4, 0xc9,
		0xc3, 0xcc, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00,
	};
	put(code, sizeof(code));
}
