/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading all of a sidecar, and telling the first record that is wrong. */
#include <cairn/sidecar.h>

#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "cfi/table.h"
#include "sidecar/sidecar_impl.h"
#include "sidecar/reduced.h"

static int bad(const struct cairn_sidecar *p, const char *section, uint64_t record,
	       const char *expected, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: record %llu: expected %s", elf_path(p->elf), section,
		       (unsigned long long)record, expected);
}

static bool is_string(const struct cairn_sidecar *p, uint32_t off)
{
	return !off || off < p->strings_size;
}

static int check_tables(const struct cairn_sidecar *p, struct cairn_err *err)
{
	for (uint32_t i = 0; i < p->files.n; i++)
		if (!is_string(p, table_get(&p->files, i, 0)))
			return bad(p, ".cairn.files", i, "a path inside .cairn.strings", err);
	for (uint32_t i = 0; i < p->functions.n; i++) {
		uint32_t file = table_get(&p->functions, i, FUNCTION_FILE);
		if (!is_string(p, table_get(&p->functions, i, FUNCTION_NAME)) ||
		    !is_string(p, table_get(&p->functions, i, FUNCTION_LINKAGE)))
			return bad(p, ".cairn.functions", i, "names inside .cairn.strings", err);
		if (file && file >= p->files.n)
			return bad(p, ".cairn.functions", i, "the number of a file", err);
	}
	return 0;
}

static int check_symbols(const struct cairn_sidecar *p, struct cairn_err *err)
{
	uint64_t end = 0;
	for (uint32_t i = 0; i < p->symbols.n; i++) {
		uint32_t at = table_get(&p->symbols, i, SYMBOL_AT),
			 name = table_get(&p->symbols, i, SYMBOL_NAME);
		bool rest = table_get(&p->symbols, i, SYMBOL_KIND) == SYMBOL_KIND_REST;
		if (at < end)
			return bad(p, ".cairn.symbols", i, "an address after the previous symbol",
				   err);
		end = (uint64_t)at + table_get(&p->symbols, i, SYMBOL_SIZE);
		if (end > p->header->span)
			return bad(p, ".cairn.symbols", i, "an end inside the code", err);
		if (table_get(&p->symbols, i, SYMBOL_KIND) > SYMBOL_KIND_LOCAL_LABEL)
			return bad(p, ".cairn.symbols", i, "one of three kinds", err);
		if (rest ? name >= i ||
				    table_get(&p->symbols, name, SYMBOL_KIND) == SYMBOL_KIND_REST
			 : !is_string(p, name))
			return bad(p, ".cairn.symbols", i,
				   "a name, or the number of a record before it", err);
	}
	return 0;
}

/* @n things are numbered, of which 0 is none when @from is 1. */
static int check_names(const struct cairn_sidecar *p, const char *section, const struct names *x,
		       uint32_t from, uint32_t n, struct cairn_err *err)
{
	for (uint32_t i = 0; i + 1 < x->buckets.n; i++)
		if (table_get(&x->buckets, i, 0) > table_get(&x->buckets, i + 1, 0))
			return bad(p, section, i,
				   "a bucket that begins at the end of the previous one", err);
	if (x->buckets.n && table_get(&x->buckets, x->buckets.n - 1, 0) != x->entries.n)
		return bad(p, section, x->buckets.n, "the number of entries", err);
	for (uint32_t i = 0; i < x->entries.n; i++)
		if (table_get(&x->entries, i, 0) < from || table_get(&x->entries, i, 0) >= n)
			return bad(p, section, i, "the number of a function", err);
	return 0;
}

static int check_frames(const struct cairn_sidecar *p, struct cairn_err *err)
{
	for (uint32_t i = 0; i < p->header->n_frames; i++) {
		struct frame f;
		if (!frame_at(p, i, &f))
			return bad(p, ".cairn.frames", i, "a frame whose parent is before it", err);
		if (f.function && f.function >= p->functions.n)
			return bad(p, ".cairn.frames", i, "the number of a function", err);
		if (f.own_file > p->files.n)
			return bad(p, ".cairn.frames", i, "the number of a file", err);
	}
	return 0;
}

static int check_page(const struct cairn_sidecar *p, const struct page *page, uint32_t number,
		      uint32_t size, struct cairn_err *err)
{
	struct here here;
	for (uint32_t row = 0; row < page->n_rows; row++) {
		if (row ? page->offsets[row] <= page->offsets[row - 1] || page->offsets[row] >= size
			: page->offsets[0])
			return bad(p, ".cairn.code", number,
				   "rows in order, from the start of the page on", err);
		if (!page_here(p, page, row, &here))
			return bad(p, ".cairn.code", number, "rows of contexts of frames", err);
		if (here.has_position && here.position.file && here.position.file >= p->files.n)
			return bad(p, ".cairn.code", number, "the number of a file", err);
	}
	if (page->symbol > p->symbols.n)
		return bad(p, ".cairn.code", number, "the number of a symbol", err);
	return 0;
}

static int check_pages(const struct cairn_sidecar *p, struct cairn_err *err)
{
	struct page page;
	for (uint32_t i = 0; i < p->spans.n; i++) {
		uint32_t size = table_get(&p->spans, i, SPAN_SIZE);
		for (uint32_t k = 0; (uint64_t)k * SIDECAR_PAGE_SIZE < size; k++) {
			uint32_t number = table_get(&p->spans, i, SPAN_FIRST_PAGE) + k;
			int rc = page_read(p, i, k, &page);
			if (rc < 0)
				return bad(p, ".cairn.code", number,
					   "a page after the previous one", err);
			if (rc > 0)
				rc = check_page(p, &page, number, size - k * SIDECAR_PAGE_SIZE,
						err);
			if (rc < 0)
				return rc;
		}
	}
	return 0;
}

static int ignore(void *ctx, const struct cairn_function *function)
{
	return 0;
}

static int check_symbol_names(const struct cairn_sidecar *p, struct cairn_err *err)
{
	const char *before = "";
	for (uint32_t i = 0; i < p->n_symbol_names; i++) {
		const struct sidecar_symbol_name *s = sidecar_symbol(p, i);
		const char *name = sidecar_string(p, s->name);
		if (!name || strcmp(before, name) > 0)
			return bad(p, ".cairn.symbol_names", i,
				   "a name not before the last in the alphabet", err);
		if (!(s->what & (SYMBOL_BARE | SYMBOL_IMPORTED)) &&
		    (s->what & SYMBOL_FUNCTION_MASK) >= p->sites.n)
			return bad(p, ".cairn.symbol_names", i, "the number of a function", err);
		before = name;
	}
	return 0;
}

/* Sites are read as for an answer. */
static int check_sites(const struct cairn_sidecar *p, struct cairn_err *err)
{
	struct cairn_sites *sites;
	int rc = check_names(p, ".cairn.site_names", &p->site_names, 0, p->sites.n, err);
	if (rc >= 0)
		rc = check_symbol_names(p, err);
	if (rc >= 0)
		rc = cairn_sidecar_sites(p, NULL, &sites, err);
	if (rc < 0)
		return rc;
	rc = cairn_sites_visit(sites, ignore, NULL, err);
	cairn_sites_close(sites);
	return rc;
}

static int check_unwind(const struct cairn_sidecar *p, struct cairn_err *err)
{
	struct unwind_table table;
	size_t size;
	const void *bytes = cairn_sidecar_section(p, ".cairn.cfi", &size);
	return bytes ? unwind_table_open(bytes, size, elf_path(p->elf), ".cairn.cfi", &table, err)
		     : 0;
}

/* Includes the checksum of the wrapper in which a debuginfod serves it. */
static int check_sums(const struct cairn_sidecar *p, struct cairn_err *err)
{
	int rc = guard_check_all(p->guard, elf_path(p->elf), err);
	if (rc < 0 || !p->wrapper)
		return rc;
	if (!elf_guard(p->wrapper))
		return err_set(err, -EBADMSG, "%s: damaged: it has no checksums around the sidecar",
			       elf_path(p->wrapper));
	return guard_check_all(elf_guard(p->wrapper), elf_path(p->wrapper), err);
}

int cairn_sidecar_check(const struct cairn_sidecar *p, struct cairn_err *err)
{
	int rc = check_sums(p, err);
	if (rc >= 0)
		rc = check_tables(p, err);
	if (rc >= 0)
		rc = check_symbols(p, err);
	if (rc >= 0)
		rc = check_names(p, ".cairn.names", &p->names, 1, p->functions.n, err);
	if (rc >= 0)
		rc = check_frames(p, err);
	if (rc >= 0)
		rc = check_pages(p, err);
	if (rc >= 0)
		rc = check_unwind(p, err);
	if (rc >= 0)
		rc = reduced_check(p, err);
	return rc < 0 || !cairn_sidecar_has_sites(p) ? rc : check_sites(p, err);
}
