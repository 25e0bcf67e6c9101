/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One-liners of bpftrace
 *
 * Whatever is typed ends in an error with a place in the text, or in probes, keys and numbers that
 * the parser of probes reads to their end or refuses.
 */
#include "fuzz.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/script.h>

#include "trace/expr/expr.h"

enum { TEXT_MAX = 600, KEYS_MAX = 16 };

static void parse_parts(const struct cairn_script *s)
{
	struct probe_value_text keys[KEYS_MAX], number;
	struct probe_text probe;
	struct arena a = {0};
	int64_t range[3];
	uint32_t n;

	for (size_t i = 0; i < s->n_probes; i++)
		probe_parse(&a, s->probes[i], &probe, NULL);
	if (s->by)
		probe_parse_keys(&a, s->by, KEYS_MAX, keys, &n, NULL);
	for (size_t i = 0; i < s->n_items; i++)
		if (s->items[i].text)
			probe_parse_number(&a, s->items[i].text,
					   s->items[i].kind == CAIRN_AGGREGATE_LHIST ? range : NULL,
					   &number, NULL);
	arena_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char text[TEXT_MAX + 1];
	struct cairn_script *s = NULL;
	struct cairn_err err = {0};

	if (size > TEXT_MAX)
		return 0;
	memcpy(text, bytes, size);
	text[size] = 0;
	cairn_script_is_one(text);
	int r = cairn_script_parse(text, &s, &err);
	assert(r == 0 || (err.code == r && err.msg[0]));
	if (r == 0) {
		assert(s->n_probes && (s->n_items || s->format));
		parse_parts(s);
	}
	cairn_script_free(s);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char *const seeds[] = {
		"uprobe:/bin/a:f /arg0 > 3 && comm == \"x\"/ { @[comm, str(arg1)] = count(); }",
		"uretprobe:/bin/a:f { @h = hist(retval); @l = lhist(retval >> 3, 0, 100, 10); }",
		("u:/bin/a:f*,u:/bin/b:g { @[ustack] = sum(*(uint32 *)(arg0 + 8)); @[ustack] = "
		 "avg(arg1) }"),
		"usdt:/bin/a:p:n { printf(\"%-10s %5d {%%} %p\\n\", str(args->name), pid, arg2); }",
		"U:/bin/a:n/pid==3/{@[func]++}",
		"uprobe:/bin/a:f { print(((struct x *)arg0)->y[2].z); }",
		"kprobe:f { @ = count(); }",
	};
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++)
		put(seeds[i], strlen(seeds[i]));
}
