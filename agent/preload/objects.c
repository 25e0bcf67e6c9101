/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * There is no list of objects here but the registry itself: an object is known when its first range
 * of code is registered with the same build-id and tables. So there is nothing to keep in step, in
 * a child after fork() neither.
 *
 * A registration that is in the way of a new one belongs to an object that has gone without
 * unregistering (_exit from its destructors, an object without crti.o): two objects are never at
 * one address. It is removed.
 */
#include "objects.h"

#include <errno.h>
#include <link.h>
#include <string.h>

#include <cairn/jit/codectl.h>

#include "../process.h"
#include "image.h"

/* The loader's numbers at the last look; -1: never. Both only grow. */
static unsigned long long n_loaded = -1ULL, n_unloaded = -1ULL;

static const void *pointer(uint64_t at)
{
	return (const void *)(uintptr_t)at;
}

/* The next range of code at or after header @i; @i is then its header. */
static bool next_text(const struct image *image, size_t *i, struct code_unregister_info *ret)
{
	for (; *i < image->n_headers; (*i)++) {
		const ElfW(Phdr) *h = &image->headers[*i];
		if (h->p_type != PT_LOAD || !(h->p_flags & PF_X) || !h->p_memsz)
			continue;
		ret->text_start = image->base + h->p_vaddr;
		ret->text_end = ret->text_start + h->p_memsz;
		return true;
	}
	return false;
}

static bool is_same(const struct code_elf_info *elf, const struct image *image)
{
	return elf->elf_start == image->lo && elf->elf_end == image->hi &&
	       elf->unwind_start == image->eh_frame_hdr && elf->sframe_start == image->sframe &&
	       elf->build_id_len == image->build_id_bytes &&
	       !memcmp(pointer(elf->build_id), pointer(image->build_id), elf->build_id_len);
}

static bool is_known(const struct image *image, const struct code_unregister_info *text)
{
	struct registry_writer *w;
	if (process_enter(&w) < 0)
		return true; /* then there is no other process to report it to */
	const struct codectl_entry *e = registry_writer_find(w, text->text_start, text->text_end);
	bool is = e && e->option == CODE_REGISTER_ELF &&
		  e->info.elf.text_start == text->text_start && is_same(&e->info.elf, image);
	process_leave();
	return is;
}

static struct code_unregister_info text_of(const struct codectl_entry *e)
{
	if (e->option == CODE_REGISTER_ELF)
		return (struct code_unregister_info){e->info.elf.text_start, e->info.elf.text_end};
	return (struct code_unregister_info){e->info.jit.text_start, e->info.jit.text_end};
}

static void remove_entry(struct registry_writer *w, const struct codectl_entry *e)
{
	struct code_unregister_info text = text_of(e);
	registry_writer_remove(w, text.text_start, text.text_end);
}

/* Whatever overlaps @text is not registered any more. */
static void clear(const struct code_unregister_info *text)
{
	struct registry_writer *w;
	const struct codectl_entry *e;
	if (process_enter(&w) < 0)
		return;
	while ((e = registry_writer_find(w, text->text_start, text->text_end)))
		remove_entry(w, e);
	process_leave();
}

static uint64_t address_or_none(const char *text)
{
	return *text ? (uintptr_t)text : 0;
}

static void add(const struct image *image, const char *name)
{
	struct code_unregister_info text;
	struct image_file file;
	image_file(image, name, &file);
	for (size_t i = 0; next_text(image, &i, &text); i++) {
		struct code_elf_info elf = {
			.elf_start = image->lo,
			.elf_end = image->hi,
			.text_start = text.text_start,
			.text_end = text.text_end,
			.sframe_start = image->sframe,
			.sframe_end = image->sframe_end,
			.pathname = address_or_none(file.path),
			.build_id = image->build_id,
			.build_id_len = image->build_id_bytes,
			.debug_link_pathname = address_or_none(file.debug_link),
			.debug_link_crc = file.debug_link_crc,
			.unwind_start = image->eh_frame_hdr,
			.unwind_end = image->eh_frame_hdr_end,
			.unwind_kind =
				image->eh_frame_hdr ? CODE_UNWIND_EH_FRAME_HDR : CODE_UNWIND_NONE,
		};
		if (codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0) == -EEXIST) {
			clear(&text);
			codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
		}
	}
}

static int look_at(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct image image;
	struct code_unregister_info text;
	size_t i = 0;
	if (image_of(info, &image) && next_text(&image, &i, &text) && !is_known(&image, &text))
		add(&image, info->dlpi_name ? info->dlpi_name : "");
	return 0;
}

static int count(struct dl_phdr_info *info, size_t size, void *ctx)
{
	unsigned long long *n = ctx;
	n[0] = info->dlpi_adds;
	n[1] = info->dlpi_subs;
	return 1;
}

void objects_update(void)
{
	int saved = errno;
	unsigned long long n[2] = {0, 0};
	dl_iterate_phdr(count, n);
	if (n[0] != __atomic_exchange_n(&n_loaded, n[0], __ATOMIC_ACQ_REL) ||
	    n[1] != __atomic_exchange_n(&n_unloaded, n[1], __ATOMIC_ACQ_REL))
		dl_iterate_phdr(look_at, NULL);
	errno = saved;
}

static bool is_around(const struct codectl_entry *e, uint64_t at)
{
	return e && e->option == CODE_REGISTER_ELF && at >= e->info.elf.elf_start &&
	       at < e->info.elf.elf_end;
}

void objects_remove(const void *inside)
{
	struct registry_writer *w;
	uint64_t at = (uintptr_t)inside;
	const struct codectl_entry *e;
	if (!at || process_enter(&w) < 0)
		return;
	/* @inside is data: linkers put it above all code, but need not. */
	while (is_around((e = registry_writer_before(w, at)), at) ||
	       is_around((e = registry_writer_find(w, at, UINT64_MAX)), at))
		remove_entry(w, e);
	process_leave();
}
