/* SPDX-License-Identifier: BSD-2-Clause */
/* Sidecars: opening, every kind of lookup, and the check that reads all. */
#include "fuzz.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/sidecar.h>

#include "dwarf_seeds.h"
#include "elf/elf.h"
#include "elf/guard.h"
#include "sidecar/elf_out.h"
#include "sidecar/format.h"
#include "sidecar/wrap.h"

/* Lookups per input: enough to touch every page of a small one. */
enum { STEPS = 64, STRIDE = 97, NEAR = 4 };

static void look_up(const struct cairn_sidecar *sidecar)
{
	struct cairn_frame frames[CAIRN_FRAMES_MAX];
	struct cairn_sidecar_function f;
	struct cairn_vaddr start;
	uint32_t found[4];
	const char *name;
	for (uint64_t i = 0; i < STEPS; i++) {
		struct cairn_vaddr at = {0x1000 + i * STRIDE};
		cairn_sidecar_frames(sidecar, at, frames, i % CAIRN_FRAMES_MAX + 1);
		cairn_sidecar_symbol_of(sidecar, at, &name, &start);
		if (cairn_sidecar_function(sidecar, (uint32_t)i, &f) && f.name)
			cairn_sidecar_find(sidecar, f.name, found, 4);
	}
}

/* Touches all that a function says. */
static int visit(void *ctx, const struct cairn_function *f)
{
	char text[256];
	struct cairn_sites *sites = ctx;
	const struct cairn_types *types = cairn_sites_types(sites);
	for (uint32_t i = 0; i < f->n_params; i++)
		cairn_types_declare(types, f->params[i].type,
				    f->params[i].name ? f->params[i].name : "", text, sizeof(text));
	for (uint32_t i = 0; i < f->n_sites; i++)
		for (uint32_t k = 0; k < f->sites[i].n_args; k++)
			cairn_location_text(&f->sites[i].args[k].loc, cairn_sites_symbol, sites,
					    text, sizeof(text));
	return 0;
}

static void ask_sites(const struct cairn_sidecar *sidecar)
{
	const char *near[NEAR];
	struct cairn_function_list list;
	struct cairn_sites *sites;
	struct cairn_err err = {0};
	if (cairn_sidecar_sites(sidecar, NULL, &sites, &err) < 0)
		return;
	cairn_sites_find(sites, "add", &list, &err);
	cairn_sites_find(sites, "unit.c:a*", &list, &err);
	cairn_sites_find(sites, "helper", &list, &err);
	cairn_sites_visit(sites, visit, sites, &err);
	cairn_sites_suggest(sites, "ad", near, NEAR, &err);
	cairn_sites_imports(sites, "memcpy");
	cairn_sites_close(sites);
}

/*
 * Code for sidecars that say where parameters are in the middle of functions: that of the seed
 * which they are made of.
 */
static const struct cairn_binary *code(void)
{
	static struct cairn_binary *bin;
	size_t size;
	if (bin)
		return bin;
	struct db *seed = dwarf_seed(0);
	const uint8_t *bytes = db_finish(seed, &size);
	/* The binary borrows its bytes; the seed would be lost. */
	uint8_t *kept = malloc(size);
	if (!kept)
		abort();
	memcpy(kept, bytes, size);
	db_free(seed);
	if (binary_open_mem(kept, size, "code", &bin, NULL) < 0)
		abort();
	return bin;
}

static void ask_middle(const struct cairn_sidecar *sidecar)
{
	const struct cairn_loc_step asked = {.op = CAIRN_LOC_ENTRY_REG, .reg = 5};
	struct cairn_location loc;
	struct cairn_sites *sites;
	if (!cairn_sidecar_has_args(sidecar) ||
	    cairn_sidecar_sites(sidecar, code(), &sites, NULL) < 0)
		return;
	for (uint64_t at = 0x1000; at < 0x1000 + STEPS * 8; at += 5) {
		const struct cairn_scope *active;
		cairn_sites_at(sites, (struct cairn_vaddr){at}, at & 1, &active, NULL);
		cairn_sites_call_value(sites, (struct cairn_vaddr){0x1000},
				       (struct cairn_vaddr){at}, &asked, &loc, NULL);
	}
	cairn_sites_close(sites);
}

static void use(const uint8_t *bytes, size_t size)
{
	struct cairn_sidecar_image_section sections[CAIRN_SIDECAR_SECTIONS_MAX];
	struct cairn_sidecar *sidecar;
	struct cairn_err err = {0};
	size_t len;
	if (cairn_sidecar_open_mem(bytes, size, "input", NULL, &sidecar, &err) < 0)
		return;
	look_up(sidecar);
	ask_sites(sidecar);
	ask_middle(sidecar);
	cairn_sidecar_check(sidecar, &err);
	cairn_sidecar_sections(sidecar, sections, CAIRN_SIDECAR_SECTIONS_MAX);
	cairn_sidecar_section(sidecar, ".cairn.strings", &len);
	cairn_sidecar_close(sidecar);
}

/*
 * As it is, which the checksums refuse when anything was changed; and with checksums of what it is
 * now, also inside a wrapper.
 */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	static const char magic[] = "cairnsum";
	uint8_t *sealed = malloc(size + 1);
	use(bytes, size);
	if (!sealed || size < GUARD_AT + GUARD_HEAD || memcmp(bytes + GUARD_AT, magic, 8)) {
		free(sealed);
		return 0;
	}
	memcpy(sealed, bytes, size);
	const uint8_t *inner = memmem(bytes + GUARD_AT + 8, size - GUARD_AT - 8, magic, 8);
	size_t from = inner ? (size_t)(inner - bytes) - GUARD_AT : 0;
	if (from && from % 8 == 0 && size - from >= GUARD_AT + GUARD_HEAD) {
		uint64_t n;
		memcpy(&n, inner + 8, sizeof(n));
		if (n <= size - from && n > GUARD_AT + GUARD_HEAD)
			guard_seal(sealed + from, (size_t)n);
	}
	guard_seal(sealed, size);
	use(sealed, size);
	free(sealed);
	return 0;
}

/*
 * As a debuginfod serves it; of a binary without a build-id, whose derived one is the suffix alone.
 */
static void put_wrapped(void (*put)(const void *bytes, size_t size),
			const struct cairn_sidecar_image *image)
{
	static const uint8_t note[] = {
		4, 0,   0,   0,   6, 0,   0,   0,   3,   0,   0,
		0, 'G', 'N', 'U', 0, 'c', 'a', 'i', 'r', 'n', SIDECAR_VERSION,
		0, 0};
	struct out_section sections[] = {
		{".note.gnu.build-id", SHT_NOTE, note, sizeof(note)},
		{WRAP_SECTION, SHT_PROGBITS, image->bytes, image->size},
	};
	uint8_t *bytes;
	size_t size;
	if (elf_out_make(sections, 2, &bytes, &size, NULL) < 0)
		abort();
	put(bytes, size);
	free(bytes);
}

/* With .cairn.dwarf as it is before it is compressed: what is in it is to be changed, too. */
static void put_reduced(void (*put)(const void *bytes, size_t size),
			const struct cairn_sidecar_image *image)
{
	struct out_section sections[CAIRN_SIDECAR_SECTIONS_MAX];
	uint8_t *bytes;
	size_t size, n = 0;
	struct elf *e;
	if (elf_open_mem(image->bytes, image->size, "seed", &e, NULL) < 0)
		abort();
	for (size_t i = 0; i < elf_n_sections(e) && n < CAIRN_SIDECAR_SECTIONS_MAX; i++) {
		const struct elf_section *s = elf_section_at(e, i);
		if (!s->name[0] || s->type == SHT_NOBITS || !strcmp(s->name, ".shstrtab") ||
		    !strcmp(s->name, GUARD_SECTION))
			continue;
		if (elf_section_bytes(e, i, &s, NULL) < 0)
			abort();
		sections[n++] = (struct out_section){s->name, s->type, s->data, s->size};
	}
	if (elf_out_make(sections, n, &bytes, &size, NULL) < 0)
		abort();
	put(bytes, size);
	free(bytes);
	elf_unref(e);
}

void fuzz_seeds(void (*put)(const void *bytes, size_t size))
{
	for (unsigned int i = 0; i < DWARF_SEEDS; i++) {
		struct db *d = dwarf_seed(i);
		struct cairn_binary *bin;
		struct cairn_sidecar_make_opts opts = {
			.size = sizeof(opts), .threads = 1, .sites = true};
		struct cairn_sidecar_make_opts args = {
			.size = sizeof(args), .threads = 1, .sites = true, .args = true};
		struct cairn_sidecar_image image;
		size_t size;
		const uint8_t *bytes = db_finish(d, &size);
		if (binary_open_mem(bytes, size, "seed", &bin, NULL) < 0 ||
		    cairn_sidecar_make(bin, &opts, &image, NULL) < 0)
			abort();
		put(image.bytes, image.size);
		put_wrapped(put, &image);
		cairn_sidecar_image_free(&image);
		if (cairn_sidecar_make(bin, &args, &image, NULL) < 0)
			abort();
		put_reduced(put, &image);
		cairn_sidecar_image_free(&image);
		cairn_binary_close(bin);
		db_free(d);
	}
}
