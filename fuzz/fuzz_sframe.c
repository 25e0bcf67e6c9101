/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * SFrame sections: the first byte says how far from the address space's start the section is, the
 * rest is the section.
 */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/unwind.h>

static int touch(void *ctx, uint32_t off, const struct cairn_unwind_rule *rule)
{
	volatile uint32_t *sink = ctx;
	*sink += off;
	for (uint32_t i = 0; i < rule->n_regs; i++)
		*sink += cairn_unwind_words(rule)[i];
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_sframe *s;
	struct cairn_sframe_info info;
	struct cairn_err err = {0};
	volatile uint32_t sink = 0;
	if (size == 0)
		return 0;
	int rc = cairn_sframe_open(bytes + 1, size - 1,
				   (struct cairn_vaddr){(uint64_t)bytes[0] << 56}, "input", &s,
				   &err);
	assert(rc == 0 || err.code == rc);
	if (rc < 0)
		return 0;
	cairn_sframe_info(s, &info);
	for (uint32_t i = 0; i < info.n_functions; i++) {
		struct cairn_sframe_function f;
		cairn_sframe_function(s, i, &f);
		cairn_sframe_rows(s, i, touch, (void *)&sink);
	}
	cairn_sframe_close(s);
	return 0;
}

static void put_version(void (*put)(const void *bytes, size_t size), unsigned int version)
{
	static const struct cairn_unwind_rule
		entry = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = 7, .off = 8},
		far = {.cfa = CAIRN_UNWIND_CFA_REG, .reg = 6, .off = 70000},
		drap = {.cfa = CAIRN_UNWIND_CFA_DEREF, .reg = 6, .off = -8};
	const struct cairn_sframe_row rows[] = {{0, &entry}, {4, &far}, {9, &drap}};
	struct cairn_sframe_writer *w;
	uint8_t *bytes;
	size_t size;
	if (cairn_sframe_writer_new(version, EM_X86_64, &w, NULL) < 0 ||
	    cairn_sframe_add(w, (struct cairn_vaddr){0x1000}, 0x40, rows, 2, NULL) < 0 ||
	    cairn_sframe_add(w, (struct cairn_vaddr){0x2000}, 0x400, rows, 3, NULL) < 0 ||
	    cairn_sframe_finish(w, (struct cairn_vaddr){0}, &bytes, &size, NULL) < 0)
		abort();
	uint8_t *seed = malloc(size + 1);
	if (!seed)
		abort();
	seed[0] = 0;
	memcpy(seed + 1, bytes, size);
	put(seed, size + 1);
	free(seed);
	free(bytes);
	cairn_sframe_writer_free(w);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_version(put, 2);
	put_version(put, 3);
}
