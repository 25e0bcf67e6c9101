/* SPDX-License-Identifier: BSD-2-Clause */
/* perf-map files. */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "code/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct perf_map m = {0};
	uint64_t lo;
	char *text = malloc(size + 1);
	if (!text)
		return 0;
	memcpy(text, bytes, size);
	text[size] = 0;
	assert(perf_map_parse(text, size, &m) == 0);
	for (size_t i = 0; i < m.items.n; i++) {
		const char *name = perf_map_find(&m, m.items.p[i].lo, &lo);
		assert(name && *name && lo <= m.items.p[i].lo);
	}
	perf_map_fini(&m);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char v8[] = "7f3a4c000 1c0 LazyCompile:~fib /srv/a.js:3\n7f3a4c100 10 new\n";
	static const char jvm[] =
		"0x00007fff00001000 0x0000000000000020 int java.lang.Math.abs(int)\n";
	put(v8, strlen(v8));
	put(jvm, strlen(jvm));
}
