/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading all of a sidecar, and telling the first record that is wrong. */
#include <cairn/pack.h>

#include <errno.h>

#include "base/err.h"
#include "pack/pack_impl.h"

static int bad(const struct cairn_pack *p, const char *section, uint64_t record, const char *expected,
	       struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: record %llu: expected %s", elf_path(p->elf), section,
		       (unsigned long long)record, expected);
}

static bool is_string(const struct cairn_pack *p, uint32_t off)
{
	return !off || off < p->strings_size;
}

static int check_tables(const struct cairn_pack *p, struct cairn_err *err)
{
	for (uint32_t i = 0; i < p->n_files; i++)
		if (!is_string(p, p->files[i]))
			return bad(p, ".cairn.files", i, "a path inside .cairn.strings", err);
	for (uint32_t i = 0; i < p->n_functions; i++) {
		const struct pack_function *f = &p->functions[i];
		if (!is_string(p, f->name) || !is_string(p, f->linkage))
			return bad(p, ".cairn.functions", i, "names inside .cairn.strings", err);
		if (f->file && f->file >= p->n_files)
			return bad(p, ".cairn.functions", i, "the number of a file", err);
	}
	return 0;
}

static int check_symbols(const struct cairn_pack *p, struct cairn_err *err)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < p->n_symbols; i++) {
		const struct pack_symbol *s = &p->symbols[i];
		bool rest = s->size & PACK_SYMBOL_REST;
		if (s->at < end)
			return bad(p, ".cairn.symbols", i, "an address behind the symbol before", err);
		end = (uint64_t)s->at + (s->size & ~PACK_SYMBOL_REST);
		if (end > p->header->span)
			return bad(p, ".cairn.symbols", i, "an end inside the code", err);
		if (rest ? s->name >= i || p->symbols[s->name].size & PACK_SYMBOL_REST : !is_string(p, s->name))
			return bad(p, ".cairn.symbols", i, "a name, or the number of a record before it", err);
	}
	return 0;
}

static int check_names(const struct cairn_pack *p, struct cairn_err *err)
{
	for (uint32_t i = 0; i < p->n_buckets; i++)
		if (p->buckets[i] > p->buckets[i + 1])
			return bad(p, ".cairn.names", i, "a bucket that begins where the one before ends", err);
	if (p->n_buckets && p->buckets[p->n_buckets] != p->n_entries)
		return bad(p, ".cairn.names", p->n_buckets, "the number of entries", err);
	for (uint32_t i = 0; i < p->n_entries; i++)
		if (!pack_function(p, p->entries[i]))
			return bad(p, ".cairn.names", i, "the number of a function", err);
	return 0;
}

static int check_frames(const struct cairn_pack *p, struct cairn_err *err)
{
	for (uint32_t i = 0, number = 0; i < p->n_frame_blocks; i++) {
		struct cursor c = frame_block(p, i, err);
		struct pack_frame f = {0};
		for (uint32_t k = 0; k < PACK_FRAMES_PER_BLOCK && number < p->header->n_frames; k++, number++) {
			frame_next(&c, &f);
			if (c.failed)
				return -EBADMSG;
			if (f.distance > number)
				return bad(p, ".cairn.frames", number, "a parent before it", err);
			if (f.function && f.function >= p->n_functions)
				return bad(p, ".cairn.frames", number, "the number of a function", err);
			if (f.call_file && f.call_file >= p->n_files)
				return bad(p, ".cairn.frames", number, "the number of a file", err);
		}
		if (cur_left(&c))
			return bad(p, ".cairn.frames", number - 1, "the end of the block behind it", err);
	}
	return 0;
}

static int check_page_frames(const struct cairn_pack *p, struct page *page, uint32_t number, struct cairn_err *err)
{
	uint32_t known = 0, at = page->lo;
	for (bool first = true; first || cur_more(&page->frames); first = false) {
		at += first ? 0 : cur_small(&page->frames);
		uint32_t frame = frame_code_next(&page->frames, &known);
		if (page->frames.failed)
			return -EBADMSG;
		if (frame > p->header->n_frames)
			return bad(p, ".cairn.code", number, "the number of a frame", err);
		if (at >= page->hi)
			return bad(p, ".cairn.code", number, "a change inside the page", err);
	}
	return 0;
}

static int check_page_lines(const struct cairn_pack *p, struct page *page, uint32_t number, struct cairn_err *err)
{
	struct line_state s = {0};
	uint32_t at = page->lo;
	for (bool first = true; first || cur_more(&page->lines); first = false) {
		at += first ? 0 : cur_small(&page->lines);
		line_next(&page->lines, &s);
		if (page->lines.failed)
			return -EBADMSG;
		if (s.known && s.slots[0].file && s.slots[0].file >= p->n_files)
			return bad(p, ".cairn.code", number, "the number of a file", err);
		if (at >= page->hi)
			return bad(p, ".cairn.code", number, "a change inside the page", err);
	}
	return 0;
}

static int check_pages(const struct cairn_pack *p, struct cairn_err *err)
{
	struct page page;
	for (uint32_t i = 0; i < p->n_spans; i++)
		for (uint32_t k = 0; (uint64_t)k * PACK_PAGE_SIZE < p->spans[i].size; k++) {
			uint32_t number = p->spans[i].first_page + k;
			if (p->pages[number] > p->pages[number + 1] || p->pages[number + 1] > p->code_size)
				return bad(p, ".cairn.pages", number, "a page behind the one before", err);
			if (!page_read(p, &p->spans[i], k, &page, err))
				continue;
			int rc = page.frames.failed ? -EBADMSG : check_page_frames(p, &page, number, err);
			if (rc >= 0)
				rc = check_page_lines(p, &page, number, err);
			if (rc < 0)
				return rc;
			if (page.symbol > p->n_symbols)
				return bad(p, ".cairn.code", number, "the number of a symbol", err);
		}
	return 0;
}

static int ignore(void *ctx, const struct cairn_function *function)
{
	return 0;
}

static int check_symbol_names(const struct cairn_pack *p, struct cairn_err *err)
{
	const char *before = "";
	for (uint32_t i = 0; i < p->n_symbol_names; i++) {
		const struct pack_symbol_name *s = &p->symbol_names[i];
		const char *name = pack_string(p, s->name);
		if (!name || strcmp(before, name) > 0)
			return bad(p, ".cairn.symbol_names", i, "a name not before the last in the alphabet", err);
		if (!(s->what & (SYMBOL_BARE | SYMBOL_IMPORTED)) && (s->what & SYMBOL_FUNCTION_MASK) >= p->places.n)
			return bad(p, ".cairn.symbol_names", i, "the number of a function", err);
		before = name;
	}
	return 0;
}

/* Places are read as they are for an answer. */
static int check_places(const struct cairn_pack *p, struct cairn_err *err)
{
	struct cairn_sites *sites;
	for (uint32_t i = 0; i < p->n_place_entries; i++)
		if (p->place_entries[i] >= p->places.n)
			return bad(p, ".cairn.place_names", i, "the number of a function", err);
	int rc = check_symbol_names(p, err);
	if (rc >= 0)
		rc = cairn_pack_sites(p, NULL, &sites, err);
	if (rc < 0)
		return rc;
	rc = cairn_sites_visit(sites, ignore, NULL, err);
	cairn_sites_close(sites);
	return rc;
}

int cairn_pack_check(const struct cairn_pack *p, struct cairn_err *err)
{
	int rc = check_tables(p, err);
	if (rc >= 0)
		rc = check_symbols(p, err);
	if (rc >= 0)
		rc = check_names(p, err);
	if (rc >= 0)
		rc = check_frames(p, err);
	if (rc >= 0)
		rc = check_pages(p, err);
	return rc < 0 || !cairn_pack_has_places(p) ? rc : check_places(p, err);
}
