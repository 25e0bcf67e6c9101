/* SPDX-License-Identifier: BSD-2-Clause */
/* The notes of USDT probes: their layout, and the operands that compilers write into them. */
#include "fuzz.h"

#include <assert.h>
#include <string.h>

#include <cairn/usdt.h>

#include "elf/elf.h"
#include "sites/usdt.h"
#include "usdt_notes.h"

static void look_at(const struct cairn_usdt_arg *arg)
{
	char text[256];
	assert(strlen(arg->text) && arg->size <= 8);
	assert(arg->loc.why != CAIRN_AVAILABLE || (arg->size && arg->loc.n_pieces == 1));
	cairn_location_text(&arg->loc, NULL, NULL, text, sizeof(text));
}

static void look_at_all(struct cairn_usdt *usdt)
{
	const struct cairn_usdt_site *sites;
	struct usdt_functions found;
	struct arena arena;
	size_t n = cairn_usdt_sites(usdt, &sites), n_sites = 0;
	for (size_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < sites[i].n_args; k++)
			look_at(&sites[i].args[k]);
	arena_init(&arena);
	if (usdt_functions_find(usdt, "*", "*", &arena, &found, NULL) == 0)
		for (size_t i = 0; i < found.n; i++)
			n_sites += found.p[i].function.n_sites;
	assert(n_sites == n);
	arena_fini(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct elf_builder *b = usdt_program(bytes, size, USDT_BASE);
	struct cairn_binary *bin;
	struct cairn_usdt *usdt;
	struct cairn_err err;
	size_t n;
	const uint8_t *file = eb_finish(b, &n);
	if (binary_open_mem(file, n, "input", &bin, &err) == 0) {
		if (cairn_usdt_open(bin, &usdt, &err) == 0) {
			look_at_all(usdt);
			cairn_usdt_close(usdt);
		}
		cairn_binary_close(bin);
	}
	eb_free(b);
	return 0;
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	static const char *const args[] = {
		"",
		"-4@%eax 8@16(%rsp) 1@%ah 2@%r9w",
		"8@counter(%rip) -4@$-22 4@4+counter(,%rbx,4) 8@$counter+8 8@twice(%rip)",
		"8f@%xmm0 8@%fs:-8 -4@DWORD PTR [rbp-4] %eax (%rdi)",
	};
	struct usdt_notes notes = {.n = 0};
	for (unsigned int i = 0; i < sizeof(args) / sizeof(args[0]); i++)
		usdt_note(&notes, USDT_TEXT + i, i % 2 ? USDT_DATA : 0, "provider", "name",
			  args[i]);
	put(notes.bytes, notes.n);
}
