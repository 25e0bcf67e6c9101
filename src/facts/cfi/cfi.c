/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index of FDEs
 *
 * One walk over all entries keeps the range and the offset of each FDE, sorted by address.
 * .eh_frame_hdr has such a table already. But it does not exist for .debug_frame and in relocatable
 * files, and it would have to be checked against the entries anyway.
 *
 * Ranges should not overlap. They do in damaged files, and if two sections describe the same
 * function. So each item also has the largest end of all items up to it. A search goes backwards
 * from the last item that starts at or before an address, and stops where no earlier one can reach
 * the address. In sound files that is the first step.
 */
#include "cfi/cfi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/keyed.h"
#include "base/scope.h"
#include "base/search.h"
#include "cfi/index.h"
#include "cfi/program.h"

/* By address; at one address, the section that was opened first comes first. */
static int item_order(const void *a, const void *b)
{
	const struct fde_item *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	if (x->section != y->section)
		return x->section < y->section ? -1 : 1;
	return x->off < y->off ? -1 : x->off > y->off;
}

static int cached_cie(const struct frame_section *sec, uint64_t off, struct cie_cache *cache)
{
	if (cache->sec == sec && cache->off == off)
		return cache->rc;
	cache->sec = sec;
	cache->off = off;
	cache->rc = frame_cie_at(sec, off, &cache->cie, NULL);
	return cache->rc;
}

int index_fde(const struct cfi *cfi, const struct fde_item *item, struct cie_cache *cache,
	      const struct frame_section **ret_sec, struct frame_fde *ret)
{
	const struct frame_section *sec = &cfi->sections[item->section];
	struct frame_entry entry;
	int rc = frame_entry_at(sec, item->off, &entry, NULL);
	if (rc == 0)
		rc = cached_cie(sec, entry.cie_off, cache);
	if (rc == 0)
		rc = frame_fde_of(sec, &entry, &cache->cie, ret, NULL);
	*ret_sec = sec;
	return rc;
}

/* A linker that dropped a function leaves its .debug_frame entry at address 0. */
static bool is_dropped(const struct cairn_binary *bin, const struct frame_fde *fde)
{
	const uint8_t *code;
	size_t n;
	return fde->hi == fde->lo ||
	       (fde->lo == 0 && !elf_code_at(binary_main(bin), (struct cairn_vaddr){0}, &code, &n));
}

static int add_entry(struct cfi *cfi, const struct cairn_binary *bin, size_t section,
		     const struct frame_entry *entry, struct cie_cache *cache,
		     struct cairn_err *err)
{
	const struct frame_section *sec = &cfi->sections[section];
	struct frame_fde fde;
	if (entry->is_terminator || (entry->is_cie && !entry->body.failed))
		return 0;
	if (entry->body.failed || cached_cie(sec, entry->cie_off, cache) < 0 ||
	    frame_fde_of(sec, entry, &cache->cie, &fde, NULL) < 0) {
		cfi->damaged++;
		return 0;
	}
	if (is_dropped(bin, &fde))
		return 0;
	struct fde_item item = {.lo = fde.lo, .hi = fde.hi, .off = entry->off, .section = section};
	return LARGE_ADD(&cfi->items, item) ? 0 : err_nomem(err, "the index of FDEs");
}

static int add_section(struct cfi *cfi, const struct cairn_binary *bin, struct elf *e,
		       const char *name, bool is_eh, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = elf_section(e, name, &s, err);
	if (rc < 0 || !s || !s->data)
		return rc;
	size_t i = cfi->n_sections++;
	cfi->machine = elf_machine(e);
	cfi->sections[i] =
		(struct frame_section){.elf = s, .is_eh = is_eh, .machine = elf_machine(e)};
	struct cie_cache cache = {0};
	for (uint64_t off = 0; off < s->size;) {
		struct frame_entry entry;
		rc = frame_entry_at(&cfi->sections[i], off, &entry, err);
		if (rc == 0)
			rc = add_entry(cfi, bin, i, &entry, &cache, err);
		if (rc < 0)
			return rc;
		off = entry.next;
	}
	return 0;
}

static int add_sections(struct cfi *cfi, const struct cairn_binary *bin, struct cairn_err *err)
{
	struct elf *e = binary_main(bin), *debug = binary_debug(bin);
	int rc = add_section(cfi, bin, e, ".eh_frame", true, err);
	if (rc == 0)
		rc = add_section(cfi, bin, e, ".debug_frame", false, err);
	if (rc == 0 && debug && debug != e)
		rc = add_section(cfi, bin, debug, ".debug_frame", false, err);
	return rc;
}

static bool is_sorted(const struct fde_item *p, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (item_order(&p[i - 1], &p[i]) > 0)
			return false;
	return true;
}

/*
 * By counting: items come section by section in the order of their offsets, and those at one
 * address stay in it. False: the addresses are too far apart, or there is no memory.
 */
static bool sort_near(struct fde_item *p, size_t n)
{
	uint64_t least = UINT64_MAX, most = 0;
	for (size_t i = 0; i < n; i++) {
		least = p[i].lo < least ? p[i].lo : least;
		most = p[i].lo > most ? p[i].lo : most;
	}
	if (most - least > UINT32_MAX || n > UINT32_MAX)
		return false;
	SCOPE_FREE struct keyed *keys = malloc(n * sizeof(*keys));
	SCOPE_FREE struct fde_item *items = malloc(n * sizeof(*items));
	if (!keys || !items)
		return false;
	for (size_t i = 0; i < n; i++)
		keys[i] = (struct keyed){(uint32_t)(p[i].lo - least), (uint32_t)i};
	if (keyed_sort(keys, n) < 0)
		return false;
	memcpy(items, p, n * sizeof(*items));
	for (size_t i = 0; i < n; i++)
		p[i] = items[keys[i].value];
	return true;
}

static void sort_items(struct cfi *cfi)
{
	struct fde_item *p = cfi->items.p;
	uint64_t reach = 0;
	/* Most files have them in order. */
	if (!is_sorted(p, cfi->items.n) && !sort_near(p, cfi->items.n))
		qsort(p, cfi->items.n, sizeof(*p), item_order);
	for (size_t i = 0; i < cfi->items.n; i++) {
		if (p[i].hi > reach)
			reach = p[i].hi;
		p[i].reach = reach;
	}
}

int cfi_open(const struct cairn_binary *bin, struct cfi **ret, struct cairn_err *err)
{
	struct cfi *cfi = calloc(1, sizeof(*cfi));
	if (!cfi)
		return err_nomem(err, "the index of FDEs");
	cfi->bin = bin;
	cfi->machine = elf_machine(binary_main(bin));
	int rc = add_sections(cfi, bin, err);
	if (rc < 0) {
		cfi_close(cfi);
		return rc;
	}
	sort_items(cfi);
	*ret = cfi;
	return 0;
}

void cfi_close(struct cfi *cfi)
{
	if (!cfi)
		return;
	LARGE_FREE(&cfi->items);
	free(cfi);
}

static const struct fde_item *find(const struct cfi *cfi, uint64_t at)
{
	const struct fde_item *p = cfi->items.p;
	size_t lo = SEARCH(0, cfi->items.n, mid, p[mid].lo <= at);
	const struct fde_item *found = NULL;
	for (size_t i = lo; i-- > 0 && p[i].reach > at;) {
		/*
		 * If several start at one address, the first counts; of nested ones the innermost.
		 */
		if (found && p[i].lo != found->lo)
			break;
		if (p[i].hi > at)
			found = &p[i];
	}
	return found;
}

int cfi_row_at(const struct cfi *cfi, struct cairn_vaddr at, struct cfi_row *ret,
	       struct cairn_err *err)
{
	const struct fde_item *item = find(cfi, at.v);
	if (!item)
		return 0;
	const struct frame_section *sec = &cfi->sections[item->section];
	struct frame_entry entry;
	struct frame_fde fde;
	struct frame_cie cie;
	int rc = frame_entry_at(sec, item->off, &entry, err);
	if (rc == 0)
		rc = frame_cie_at(sec, entry.cie_off, &cie, err);
	if (rc == 0)
		rc = frame_fde_of(sec, &entry, &cie, &fde, err);
	if (rc == 0)
		rc = program_row_at(sec, &fde, at.v, ret, err);
	return rc < 0 ? rc : 1;
}

bool cfi_fde_at(const struct cfi *cfi, struct cairn_vaddr at, struct cairn_vaddr *ret_lo,
		struct cairn_vaddr *ret_hi)
{
	const struct fde_item *item = find(cfi, at.v);
	if (!item)
		return false;
	ret_lo->v = item->lo;
	ret_hi->v = item->hi;
	return true;
}

bool cfi_may_land(const struct cfi *cfi, struct cairn_vaddr at)
{
	const struct fde_item *item = find(cfi, at.v);
	struct frame_entry entry;
	struct frame_cie cie;
	if (!item)
		return true;
	const struct frame_section *sec = &cfi->sections[item->section];
	return frame_entry_at(sec, item->off, &entry, NULL) < 0 ||
	       frame_cie_at(sec, entry.cie_off, &cie, NULL) < 0 || cie.has_lsda;
}

uint64_t cfi_damaged(const struct cfi *cfi)
{
	return cfi->damaged;
}

size_t cfi_n_fdes(const struct cfi *cfi)
{
	return cfi->items.n;
}
