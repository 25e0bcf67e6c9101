/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/kallsyms, and the notes in which a kernel has its build-id. */
#include "fuzz.h"

#include <assert.h>
#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include "elf/elf.h"
#include "kernel/kernel.h"

static int see(void *ctx, const struct kallsym *s)
{
	const char *end = ctx;
	assert(s->type && s->name[0] && s->name + strlen(s->name) < end);
	assert(!s->module || s->module + strlen(s->module) < end);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	char *text = malloc(size + 1);
	const uint8_t *id;
	size_t used, len;
	assert(text);
	memcpy(text, bytes, size);
	text[size] = 0;
	assert(!kallsyms_parse(text, size, see, text + size + 1, &used) && used <= size);
	free(text);
	if (elf_notes_build_id(bytes, size, &id, &len))
		assert(len && id >= bytes && id + len <= bytes + size);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char symbols[] = "0000000000000000 A fixed_percpu_data\n"
				      "ffffffff81000000 T _text\n"
				      "ffffffffc03a1000 t lo_open\t[loop]\n";
	struct {
		Elf64_Nhdr head;
		char name[4];
		uint8_t id[20];
	} note = {{4, 20, NT_GNU_BUILD_ID}, "GNU", {1, 2, 3}};
	put(symbols, strlen(symbols));
	put(&note, sizeof(note));
}
