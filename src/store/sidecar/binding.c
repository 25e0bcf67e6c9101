/* SPDX-License-Identifier: BSD-2-Clause */
#include "sidecar/binding.h"

#include <elf.h>
#include <errno.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "insn/insn.h"

enum {
	PAGE_SAME = 1,
	PAGE_DIFFERS = 2,
};

static bool is_code(uint32_t flags)
{
	return flags & PF_X;
}

/*
 * Pages begin at multiples of their size; the first and the last one of a segment may be shorter.
 */
static uint64_t page_number(uint64_t at)
{
	return at / SIDECAR_CODE_PAGE;
}

static uint64_t n_pages_of(uint64_t at, uint64_t n_bytes)
{
	return n_bytes ? page_number(at + n_bytes - 1) - page_number(at) + 1 : 0;
}

/* The hash of page @i of a segment's @n_bytes. */
static void hash_page(const struct elf *e, const struct elf_load *l, uint64_t i,
		      uint8_t ret[SIDECAR_CODE_HASH])
{
	uint8_t bytes[SIDECAR_CODE_PAGE];
	uint64_t from = i ? (page_number(l->at) + i) * SIDECAR_CODE_PAGE : l->at,
		 end = l->at + l->n_bytes;
	uint64_t to = (page_number(from) + 1) * SIDECAR_CODE_PAGE;
	size_t n = (size_t)((to < end ? to : end) - from);
	struct sha256_ctx c;
	elf_load_copy(e, l, from - l->at, n, bytes);
	sha256_init(&c);
	sha256_update(&c, sizeof(from), (const uint8_t *)&from);
	sha256_update(&c, n, bytes);
	sha256_digest(&c, SIDECAR_CODE_HASH, ret);
}

/* ---- writing ---- */

static bool has_code_bytes(const struct elf_load *l, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is_code(l[i].flags) && l[i].n_bytes)
			return true;
	return false;
}

static void put_load(const struct elf_load *l, bool is_bound, uint32_t *page, struct bytes *ret)
{
	bool hashed = is_bound && is_code(l->flags);
	struct sidecar_load out = {.at = l->at,
				   .size = l->size,
				   .n_bytes = hashed ? l->n_bytes : 0,
				   .flags = l->flags,
				   .first_page = *page};
	*page += hashed ? (uint32_t)n_pages_of(l->at, l->n_bytes) : 0;
	put_bytes(ret, &out, sizeof(out));
}

bool binding_has_code(const struct elf *e)
{
	const struct elf_load *l;
	size_t n = elf_loads(e, &l);
	return has_code_bytes(l, n);
}

void encode_binding(const struct elf *e, struct bytes *ret)
{
	const struct elf_load *l;
	size_t n = elf_loads(e, &l);
	bool is_bound = has_code_bytes(l, n);
	struct sidecar_binding head = {
		.n_loads = (uint32_t)n, .is_bound = is_bound, .names = elf_names_print(e)};
	size_t at = ret->v.n;
	put_bytes(ret, &head, sizeof(head));
	for (size_t i = 0; i < n; i++)
		put_load(&l[i], is_bound, &head.n_pages, ret);
	for (size_t i = 0; is_bound && i < n; i++)
		for (uint64_t k = 0; is_code(l[i].flags) && k < n_pages_of(l[i].at, l[i].n_bytes);
		     k++) {
			uint8_t hash[SIDECAR_CODE_HASH];
			hash_page(e, &l[i], k, hash);
			put_bytes(ret, hash, sizeof(hash));
		}
	if (!ret->failed)
		memcpy(ret->v.p + at, &head, sizeof(head));
}

/* ---- reading ---- */

static int bad(const struct elf_section *s, const char *expected, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: expected %s", s->src.file, s->name, expected);
}

int binding_read(const struct elf_section *s, struct binding *ret, struct cairn_err *err)
{
	struct sidecar_binding head;
	uint64_t pages = 0;
	*ret = (struct binding){0};
	if (s->size < sizeof(head))
		return bad(s, "the number of segments", err);
	memcpy(&head, s->data, sizeof(head));
	if (s->size != sizeof(head) + (uint64_t)head.n_loads * sizeof(*ret->loads) +
			       (uint64_t)head.n_pages * SIDECAR_CODE_HASH)
		return bad(s, "segments, and a hash for each page of code", err);
	ret->loads = (const struct sidecar_load *)(s->data + sizeof(head));
	for (uint32_t i = 0; i < head.n_loads; i++) {
		const struct sidecar_load *l = &ret->loads[i];
		if (l->first_page != pages || l->n_bytes > UINT64_MAX - l->at ||
		    (l->n_bytes && !is_code(l->flags)))
			return bad(s, "segments one after the other", err);
		pages += n_pages_of(l->at, l->n_bytes);
		if (pages > head.n_pages)
			return bad(s, "a hash for each page of code", err);
	}
	if (pages != head.n_pages || head.is_bound > 1 || (pages && !head.is_bound))
		return bad(s, "a hash for each page of code", err);
	ret->n_loads = head.n_loads;
	ret->n_pages = head.n_pages;
	ret->hashes = s->data + sizeof(head) + (size_t)head.n_loads * sizeof(*ret->loads);
	ret->is_bound = head.is_bound;
	ret->names = head.names;
	return 0;
}

void binding_fini(struct binding *b)
{
	elf_unref(b->code);
	free(b->state);
	*b = (struct binding){0};
}

/* ---- comparing ---- */

static int another(const char *name, const struct elf *e, struct cairn_err *err, const char *what,
		   uint64_t at)
{
	return err_set(err, -ESTALE, "%s: this sidecar is of another file than %s: %s at 0x%llx",
		       name, elf_path(e), what, (unsigned long long)at);
}

static int compare_loads(const struct binding *b, const struct elf *e, bool has_code,
			 const char *name, struct cairn_err *err)
{
	const struct elf_load *l;
	size_t n = elf_loads(e, &l);
	for (size_t i = 0; i < n && i < b->n_loads; i++) {
		const struct sidecar_load *own = &b->loads[i];
		if (own->at != l[i].at || own->flags != l[i].flags)
			return another(name, e, err, "it has no such segment as that", l[i].at);
		if (own->size != l[i].size || (has_code && b->is_bound && is_code(own->flags) &&
					       own->n_bytes != l[i].n_bytes))
			return another(name, e, err, "it has another size of the segment", l[i].at);
	}
	if (n == b->n_loads)
		return 0;
	return another(name, e, err,
		       n > b->n_loads ? "it has no segment" : "it has one more segment,",
		       n > b->n_loads ? l[b->n_loads].at : b->loads[n].at);
}

int binding_hold(struct binding *b, struct elf *e, const char *name, struct cairn_err *err)
{
	const struct elf_load *l;
	size_t n = elf_loads(e, &l);
	bool has_code = has_code_bytes(l, n);
	int rc = compare_loads(b, e, has_code, name, err);
	if (rc < 0 || !has_code || !b->is_bound)
		return rc;
	b->state = calloc(b->n_pages + 1u, 1);
	if (!b->state)
		return err_nomem(err, "the pages of a sidecar");
	b->code = elf_ref(e);
	return 0;
}

static bool compare_page(struct binding *b, size_t load, uint64_t i)
{
	const struct elf_load *l;
	uint8_t hash[SIDECAR_CODE_HASH];
	uint64_t none = 0;
	uint32_t page = b->loads[load].first_page + (uint32_t)i;
	uint8_t state = __atomic_load_n(&b->state[page], __ATOMIC_RELAXED);
	if (state)
		return state == PAGE_SAME;
	elf_loads(b->code, &l);
	hash_page(b->code, &l[load], i, hash);
	bool same = !memcmp(hash, b->hashes + (size_t)page * SIDECAR_CODE_HASH, sizeof(hash));
	__atomic_store_n(&b->state[page], same ? PAGE_SAME : PAGE_DIFFERS, __ATOMIC_RELAXED);
	if (!same)
		__atomic_compare_exchange_n(
			&b->other, &none,
			1 + (i ? (page_number(l[load].at) + i) * SIDECAR_CODE_PAGE : l[load].at),
			false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return same;
}

bool binding_covers(struct binding *b, struct cairn_vaddr at)
{
	for (uint32_t i = 0; b->code && i < b->n_loads; i++) {
		const struct sidecar_load *l = &b->loads[i];
		if (at.v - l->at >= l->n_bytes)
			continue;
		uint64_t page = page_number(at.v) - page_number(l->at),
			 left = l->at + l->n_bytes - at.v;
		/* The instruction that begins there may end in the next page. */
		uint64_t last = at.v + (left < INSN_MAX_BYTES ? left : INSN_MAX_BYTES) - 1;
		if (!compare_page(b, i, page))
			return false;
		return page_number(last) == page_number(at.v) || compare_page(b, i, page + 1);
	}
	return true;
}

int binding_verdict(const struct binding *b, const char *name, struct cairn_err *err)
{
	uint64_t other = __atomic_load_n(&b->other, __ATOMIC_RELAXED);
	return other ? another(name, b->code, err, "it describes other code", other - 1) : 0;
}

int binding_compare_all(struct binding *b, const char *name, struct cairn_err *err)
{
	if (!b->is_bound)
		return err_set(err, -ENODATA,
			       "%s: unbound: made of a debug file alone, so no code can be "
			       "compared with it",
			       name);
	if (!b->code)
		return err_set(err, -ENODATA, "%s: no code to compare it with", name);
	for (uint32_t i = 0; i < b->n_loads; i++)
		for (uint64_t k = 0; k < n_pages_of(b->loads[i].at, b->loads[i].n_bytes); k++)
			compare_page(b, i, k);
	return binding_verdict(b, name, err);
}
