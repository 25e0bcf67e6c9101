/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command's library tells
 *
 * Whatever the bytes are, a request is of no more bytes than there are, and as its kind has them.
 */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include "cover/command.h"

static void keep(const struct request *r)
{
	struct loaded loaded = {0};

	assert(loaded_keep(&loaded, r, NULL) == 0);
	assert(loaded.programs.n == 1 && loaded.programs.p[0].n * 8 == r->n);
	loaded_fini(&loaded);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	size_t at = 0;

	for (;;) {
		struct request r;
		int n = request_take(bytes + at, size - at, &r, NULL);
		if (n <= 0)
			break;
		assert((size_t)n <= size - at && r.bytes + r.n == bytes + at + n);
		if (r.head.kind == CAIRN_COVER_LOADED)
			keep(&r);
		else if (r.head.kind != CAIRN_COVER_DETACH)
			assert(r.n < REQUEST_TEXT_MAX && !memchr(r.bytes, 0, r.n));
		at += (size_t)n;
	}
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	struct {
		struct cairn_cover_request head;
		char text[8];
	} both[2] = {{{.kind = CAIRN_COVER_LOADED, .program = 7}, {0}},
		     {{.kind = CAIRN_COVER_ATTACH,
		       .program = 7,
		       .probe = CAIRN_COVER_KPROBE,
		       .attached = 1},
		      {'v', 'f', 's', '_', 'r', 'e', 'a', 'd'}}};

	both[0].head.size = both[1].head.size = sizeof(both[0]);
	put(&both[1], sizeof(both[1]));
	put(both, sizeof(both));
}
