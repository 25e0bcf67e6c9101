/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that are compressed as a whole. */
#include "fuzz.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "elf/unpack.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	uint8_t *unpacked;
	size_t n;
	int rc = unpack(bytes, size, "input", &unpacked, &n, NULL);
	assert(rc <= 0 && (rc == 0 || !unpacked));
	free(unpacked);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char text[] = "what a module has, what a module has, what a module has";
	struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
	char packed[512];
	size_t n = ZSTD_compress(packed, sizeof(packed), text, sizeof(text), 3);
	put(packed, n);
	put(packed, libdeflate_gzip_compress(c, text, sizeof(text), packed, sizeof(packed)));
	put("\xfd\x37\x7a\x58\x5a\0", 6);
	libdeflate_free_compressor(c);
}
