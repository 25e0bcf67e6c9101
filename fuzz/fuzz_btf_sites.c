/* SPDX-License-Identifier: BSD-2-Clause */
/* A program that answers about its functions by .BTF and .BTF.inline. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <cairn/btf/sites.h>

#include "elf/elf.h"
#include "sites_file.h"

static volatile uint64_t sink;

static int visit(void *ctx, const struct cairn_function *f)
{
	char text[256];
	sink += strlen(f->name);
	for (uint32_t i = 0; i < f->n_sites; i++)
		for (uint32_t k = 0; k < f->sites[i].n_args; k++)
			sink += cairn_location_text(&f->sites[i].args[k].loc, cairn_sites_symbol,
						    ctx, text, sizeof(text));
	return 0;
}

static void ask(struct cairn_sites *sites)
{
	static const char *const specs[] = {"inl", "body", "*", "x"};
	struct cairn_function_list list;
	struct cairn_err err = {0};
	const char *near[4];
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++)
		if (cairn_sites_find(sites, specs[i], &list, &err) > 0)
			for (size_t k = 0; k < list.n; k++)
				visit(sites, list.p[k]);
	sink += (uint64_t)cairn_sites_visit(sites, visit, sites, &err);
	sink += (uint64_t)cairn_sites_suggest(sites, "bod", near, 4, &err);
	sink += (uint64_t)cairn_btf_sites_at(sites, (struct cairn_vaddr){SITES_FILE_FIRST}, near, 4,
					     &err);
	for (uint32_t id = 0; id < 30; id++)
		sink += (uint64_t)cairn_sites_complete_type(sites, id, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct cairn_binary *bin;
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	if (binary_open_mem(bytes, size, "input", &bin, &err) < 0)
		return 0;
	if (cairn_btf_sites_open(bin, NULL, &sites, &err) >= 0) {
		ask(sites);
		cairn_sites_close(sites);
	}
	cairn_binary_close(bin);
	return 0;
}

static void put_file(struct sites_file_opts opts, void (*put)(const void *bytes, size_t size))
{
	size_t size;
	uint8_t *bytes = sites_file(&opts, &size);
	put(bytes, size);
	free(bytes);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	put_file((struct sites_file_opts){0}, put);
	put_file((struct sites_file_opts){.without_symbols = true}, put);
	put_file((struct sites_file_opts){.comment = "clang version 14"}, put);
	put_file((struct sites_file_opts){.label = "inline.text", .wrong_func = true}, put);
	put_file((struct sites_file_opts){.v1 = true}, put);
	put_file((struct sites_file_opts){.link = true}, put);
}
