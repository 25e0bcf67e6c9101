/* SPDX-License-Identifier: BSD-2-Clause */
/* jitdump files: records, lines, unwinding records. */
#include "fuzz.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "code/jitdump.h"
#include "jitdump_builder.h"

static void ask(const struct jitdump *d, const struct jitdump_function *f, uint64_t at)
{
	struct rule_words rule;
	const char *file = NULL;
	assert(jitdump_line(d, f, at, &file) == 0 || !file || strlen(file) < d->n);
	assert(jitdump_rule(d, f, at, &rule) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct jitdump d = {0};
	struct cairn_err err = {0};
	uint8_t *copy = malloc(size ? size : 1);
	if (!copy)
		return 0;
	memcpy(copy, bytes, size);
	int rc = jitdump_parse(copy, size, &d, &err);
	assert(rc == 0 || (rc == -EBADMSG && err.code == rc));
	for (size_t i = 0; rc == 0 && i < d.functions.n && i < 64; i++) {
		const struct jitdump_function *f = &d.functions.p[i],
					      *newest = jitdump_find(&d, f->lo);
		assert(newest && newest >= f && newest->lo <= f->lo && f->lo < newest->hi);
		ask(&d, f, f->lo);
		ask(&d, f, f->hi - 1);
	}
	jitdump_fini(&d);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const struct jd_line lines[] = {
		{0x1040, 3, "a.js"}, {0x1048, 4, "\xff"}, {0x104c, 9, "b.js"}};
	struct jitdump_builder b = {0};
	jd_header(&b);
	put(b.bytes, b.n);
	jd_lines(&b, 0x1000, lines, 3);
	jd_unwinding_of_push(&b, 0x1000, 0x14);
	jd_load(&b, 0x1000, 0x14, 1, "f");
	jd_unwinding(&b, "\x01\x1b\x03\x3b", 4, 4, 0);
	jd_load(&b, 0x2000, 0x100, 2, "g");
	jd_move(&b, 0x1000, 0x2040, 0x14, 1);
	jd_end(&b, jd_begin(&b, JD_CLOSE));
	put(b.bytes, b.n);
}
