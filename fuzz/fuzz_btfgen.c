/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DWARF to BTF: types, functions, variables and sites of a damaged file. What comes out can be
 * opened again.
 */
#include "fuzz.h"

#include <stdlib.h>

#include <cairn/btf/from_dwarf.h>

#include "dwarf_seeds.h"
#include "elf/elf.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_btfgen_opts opts = {.size = sizeof(opts),
					 .threads = 1,
					 .vars = CAIRN_BTFGEN_VARS_SPLIT,
					 .dialect = CAIRN_BTF_LOC_N};
	struct cairn_binary *bin;
	struct cairn_btfgen d;
	struct cairn_btf *btf;
	if (binary_open_mem(bytes, size, "input", &bin, NULL) < 0)
		return 0;
	if (cairn_btf_from_dwarf(bin, &opts, &d, NULL) == 0) {
		if (cairn_btf_open_mem(d.main.bytes, d.main.size, "main", NULL, &btf, NULL) < 0)
			abort();
		cairn_btf_close(btf);
		cairn_btfgen_free(&d);
	}
	cairn_binary_close(bin);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	dwarf_seeds_put(put);
}
