/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Addresses: which section and which byte of the file is at a link-time address
 *
 * In an executable or shared object the program headers decide, because the kernel maps by them:
 *
 *	PT_LOAD  p_offset 0x1000  p_vaddr 0x401000  p_filesz 0x200
 *	0x401010  <->  file offset 0x1010
 *
 * A relocatable file has no addresses. Its allocated sections are laid out one after the other, in
 * the order of their headers and at their alignment, from RELOCATABLE_BASE up:
 *
 *	.text       0x95 bytes, align 16    0x1000
 *	.init.text  0x20 bytes, align 16    0x10a0
 *	.bss        0x40 bytes, align 32    0x10c0
 *
 * The rule depends on headers only, so that a .ko and its debug file, where the same sections have
 * no bytes, get the same addresses.
 *
 * Both directions are binary searches in tables sorted at open.
 */
#include "elf/segments.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>

#include "base/search.h"
#include "elf/section_raw.h"

/* Not 0: linkers write 0 for code they threw away, and readers of DWARF skip data there. */
#define RELOCATABLE_BASE 0x1000

/* User space of x86-64; nothing that could be loaded is larger. */
#define MAX_LAID_OUT (1ull << 47)

/* Code alignment beyond a huge page is damage, not a wish. */
#define MAX_ALIGN (1ull << 30)

int elf_lay_out(struct elf *e, struct cairn_err *err)
{
	uint64_t next = RELOCATABLE_BASE;
	for (size_t i = 1; i < e->n_sections; i++) {
		struct section *s = &e->sections[i];
		s->file.addr.v = 0;
		if (!(s->file.flags & SHF_ALLOC))
			continue;
		uint64_t align = s->align ? s->align : 1;
		if ((align & (align - 1)) || align > MAX_ALIGN)
			return err_set(err, -EBADMSG,
				       "%s: %s: alignment 0x%" PRIx64
				       "; expected a power of two up to 0x%llx",
				       e->path, s->file.name, align, MAX_ALIGN);
		next = (next + align - 1) & ~(align - 1);
		s->file.addr.v = next;
		if (s->file_size > MAX_LAID_OUT || next + s->file_size > MAX_LAID_OUT)
			return err_set(err, -ERANGE,
				       "%s: %s: allocated sections of more than 0x%llx bytes",
				       e->path, s->file.name, MAX_LAID_OUT);
		next += s->file_size;
	}
	return 0;
}

/* .tbss has an address and a size, but lies in no address: the next section starts there too. */
static bool occupies_addresses(const struct section *s)
{
	bool tbss = s->file.type == SHT_NOBITS && (s->file.flags & SHF_TLS);
	return (s->file.flags & SHF_ALLOC) && s->file_size && !tbss;
}

static int by_section_addr(const void *a, const void *b, void *ctx)
{
	const struct elf *e = ctx;
	uint32_t ia = *(const uint32_t *)a, ib = *(const uint32_t *)b;
	uint64_t va = e->sections[ia].file.addr.v, vb = e->sections[ib].file.addr.v;
	if (va != vb)
		return va < vb ? -1 : 1;
	return ia < ib ? -1 : ia > ib;
}

static int section_segments(struct elf *e, struct cairn_err *err)
{
	struct segment_header *p = arena_array(&e->arena, e->n_by_addr, sizeof(*p));
	if (!p)
		return err_nomem(err, "segments");
	size_t n = 0;
	for (size_t i = 0; i < e->n_by_addr; i++) {
		const struct section *s = &e->sections[e->by_addr[i]];
		if (s->file.type != SHT_NOBITS)
			p[n++] = (struct segment_header){s->file.addr.v, s->file.foff.v,
							 s->file_size};
	}
	return elf_set_segments(e, p, n, err);
}

int elf_index_sections(struct elf *e, struct cairn_err *err)
{
	e->by_addr = arena_array(&e->arena, e->n_sections, sizeof(*e->by_addr));
	if (!e->by_addr)
		return err_nomem(err, "sections by address");
	for (size_t i = 1; i < e->n_sections; i++) {
		const struct section *s = &e->sections[i];
		const uint8_t *bytes;
		if (!occupies_addresses(s))
			continue;
		if (s->file.addr.v + s->file_size < s->file.addr.v)
			return err_set(err, -EBADMSG,
				       "%s: %s: address 0x%" PRIx64 ", 0x%" PRIx64
				       " bytes: leaves the address space",
				       e->path, s->file.name, s->file.addr.v, s->file_size);
		int r = section_raw(e, i, &bytes, err);
		if (r < 0)
			return r;
		e->by_addr[e->n_by_addr++] = i;
	}
	qsort_r(e->by_addr, e->n_by_addr, sizeof(*e->by_addr), by_section_addr, e);
	return e->type == ET_REL ? section_segments(e, err) : 0;
}

static uint64_t nth_addr(const struct elf *e, size_t n)
{
	return e->sections[e->by_addr[n]].file.addr.v;
}

static bool is_nth(const struct elf *e, size_t n, struct cairn_vaddr at)
{
	return n < e->n_by_addr && nth_addr(e, n) <= at.v &&
	       (n + 1 == e->n_by_addr || at.v < nth_addr(e, n + 1));
}

/* How many sections begin at @at or before. */
static size_t n_up_to(const struct elf *e, struct cairn_vaddr at)
{
	size_t lo = SEARCH(0, e->n_by_addr, mid, nth_addr(e, mid) <= at.v);
	return lo;
}

const struct section *elf_section_holding(const struct elf *e, struct cairn_vaddr at)
{
	size_t n = __atomic_load_n(&e->last_by_addr, __ATOMIC_RELAXED);
	if (!is_nth(e, n, at)) {
		n = n_up_to(e, at);
		if (!n--)
			return NULL;
		/* A hint, which any thread may change: the object is never a constant. */
		__atomic_store_n((uint32_t *)&e->last_by_addr, (uint32_t)n, __ATOMIC_RELAXED);
	}
	const struct section *s = &e->sections[e->by_addr[n]];
	return at.v - s->file.addr.v < s->file_size ? s : NULL;
}

static int by_vaddr(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

static int by_foff(const void *a, const void *b)
{
	const struct segment *x = a, *y = b;
	return x->foff < y->foff ? -1 : x->foff > y->foff;
}

int elf_set_segments(struct elf *e, const struct segment_header *p, size_t n, struct cairn_err *err)
{
	if (e->debug_only)
		return 0; /* its headers describe another file */
	e->by_vaddr = arena_array(&e->arena, n, sizeof(*e->by_vaddr));
	e->by_foff = arena_array(&e->arena, n, sizeof(*e->by_foff));
	if (!e->by_vaddr || !e->by_foff)
		return err_nomem(err, "segments");
	for (size_t i = 0; i < n; i++) {
		if (p[i].foff > e->size || p[i].file_size > e->size - p[i].foff)
			return err_set(
				err, -EBADMSG,
				"%s: loaded segment at offset 0x%" PRIx64 ", 0x%" PRIx64
				" bytes: ends after the end of the file, 0x%zx; is it truncated?",
				e->path, p[i].foff, p[i].file_size, e->size);
		if (p[i].vaddr + p[i].file_size < p[i].vaddr)
			return err_set(err, -EBADMSG,
				       "%s: loaded segment at address 0x%" PRIx64 ", 0x%" PRIx64
				       " bytes: leaves the address space",
				       e->path, p[i].vaddr, p[i].file_size);
		e->by_vaddr[i] = (struct segment){p[i].vaddr, p[i].foff, p[i].file_size};
		e->by_foff[i] = e->by_vaddr[i];
	}
	e->n_segments = n;
	qsort(e->by_vaddr, n, sizeof(*e->by_vaddr), by_vaddr);
	qsort(e->by_foff, n, sizeof(*e->by_foff), by_foff);
	return 0;
}

bool elf_foff(const struct elf *e, struct cairn_vaddr at, struct cairn_foff *ret)
{
	size_t lo = SEARCH(0, e->n_segments, mid, e->by_vaddr[mid].vaddr <= at.v);
	if (!lo || at.v - e->by_vaddr[lo - 1].vaddr >= e->by_vaddr[lo - 1].size)
		return false;
	ret->v = at.v - e->by_vaddr[lo - 1].vaddr + e->by_vaddr[lo - 1].foff;
	return true;
}

bool elf_vaddr(const struct elf *e, struct cairn_foff off, struct cairn_vaddr *ret)
{
	size_t lo = SEARCH(0, e->n_segments, mid, e->by_foff[mid].foff <= off.v);
	if (!lo || off.v - e->by_foff[lo - 1].foff >= e->by_foff[lo - 1].size)
		return false;
	ret->v = off.v - e->by_foff[lo - 1].foff + e->by_foff[lo - 1].vaddr;
	return true;
}

bool elf_is_code(const struct elf *e, struct cairn_vaddr at, const uint8_t **ret, uint64_t *ret_len)
{
	const struct section *s = elf_section_holding(e, at);
	if (!s || !(s->file.flags & SHF_EXECINSTR))
		return false;
	uint64_t off = at.v - s->file.addr.v;
	*ret = s->file.data ? s->file.data + off : NULL;
	*ret_len = s->file.size - off;
	return true;
}

bool elf_code_at(const struct elf *e, struct cairn_vaddr at, const uint8_t **ret, size_t *ret_len)
{
	const struct section *s = elf_section_holding(e, at);
	if (!s || !(s->file.flags & SHF_EXECINSTR) || !s->file.data)
		return false;
	uint64_t off = at.v - s->file.addr.v;
	*ret = s->file.data + off;
	*ret_len = s->file.size - off;
	return true;
}
