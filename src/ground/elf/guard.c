/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/guard.h"

#include <errno.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#include <cairn/text.h>

#include "base/err.h"

static const char magic[8] = {'c', 'a', 'i', 'r', 'n', 's', 'u', 'm'};

/* The section's first bytes. */
struct seal {
	char magic[8];
	uint64_t file_size;
	uint32_t n_pages;
	uint32_t sum; /* of the head, with this field 0 */
};
_Static_assert(sizeof(struct seal) == GUARD_HEAD, "the seal has no holes");

static size_t pages_of(size_t n_bytes)
{
	return (n_bytes + GUARD_PAGE - 1) / GUARD_PAGE;
}

size_t guard_section_size(size_t n_bytes)
{
	return (GUARD_HEAD + pages_of(n_bytes) * sizeof(uint32_t) + 7) & ~(size_t)7;
}

static uint32_t sum_of(const uint8_t *p, size_t n)
{
	return libdeflate_crc32(0, p, n);
}

/* The checksum of the bytes up to the first page, as if the field for it were 0. */
static uint32_t sum_of_head(const uint8_t *file, const uint8_t *pages)
{
	static const uint8_t zero[sizeof(uint32_t)];
	const uint8_t *field = file + GUARD_AT + offsetof(struct seal, sum);
	uint32_t sum = libdeflate_crc32(0, file, (size_t)(field - file));
	sum = libdeflate_crc32(sum, zero, sizeof(zero));
	return libdeflate_crc32(sum, field + sizeof(zero), (size_t)(pages - field) - sizeof(zero));
}

static size_t page_size(const struct guard *g, size_t page)
{
	size_t left = g->n_bytes - page * GUARD_PAGE;
	return left < GUARD_PAGE ? left : GUARD_PAGE;
}

static size_t head_size(size_t n_pages)
{
	return GUARD_AT + guard_section_size(n_pages * GUARD_PAGE);
}

/*
 * The pages of a file of @size bytes: just enough for the bytes after the head, which grows with
 * their number.
 */
static size_t pages_in(size_t size)
{
	size_t n = pages_of(size - GUARD_AT - GUARD_HEAD);
	while (n && head_size(n - 1) + (n - 1) * GUARD_PAGE >= size)
		n--;
	return n;
}

void guard_seal(uint8_t *file, size_t size)
{
	struct seal s = {.file_size = size, .n_pages = (uint32_t)pages_in(size)};
	/* No room for the checksums: no writer makes such a file, and no reader takes it. */
	if (head_size(s.n_pages) > size)
		return;
	struct guard g = {.pages = file + head_size(s.n_pages),
			  .n_bytes = size - head_size(s.n_pages)};
	memcpy(s.magic, magic, sizeof(magic));
	for (size_t i = 0; i < s.n_pages; i++) {
		uint32_t sum = sum_of(g.pages + i * GUARD_PAGE, page_size(&g, i));
		memcpy(file + GUARD_AT + GUARD_HEAD + i * sizeof(sum), &sum, sizeof(sum));
	}
	memcpy(file + GUARD_AT, &s, sizeof(s));
	s.sum = sum_of_head(file, g.pages);
	memcpy(file + GUARD_AT, &s, sizeof(s));
}

static int damaged(const char *name, const char *what, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: damaged: " GUARD_SECTION ": %s", name, what);
}

static int check_head(const uint8_t *file, size_t size, const char *name, struct cairn_err *err)
{
	struct seal s;
	memcpy(&s, file + GUARD_AT, sizeof(s));
	if (s.file_size != size)
		return err_set(err, -EBADMSG, "%s: damaged: %s, expected %llu; is it truncated?",
			       name, cairn_counted(size, "byte").text,
			       (unsigned long long)s.file_size);
	if (s.n_pages != pages_in(size) || head_size(s.n_pages) > size)
		return damaged(name, "another number of pages than the file has", err);
	if (s.sum != sum_of_head(file, file + head_size(s.n_pages)))
		return damaged(
			name, "the checksum of the first bytes of the file does not fit them", err);
	return 0;
}

int guard_open(const uint8_t *file, size_t size, const char *name, struct guard **ret,
	       struct cairn_err *err)
{
	*ret = NULL;
	if (size < GUARD_AT + GUARD_HEAD || memcmp(file + GUARD_AT, magic, sizeof(magic)))
		return 0;
	int rc = check_head(file, size, name, err);
	if (rc < 0)
		return rc;
	size_t n = pages_in(size);
	struct guard *g = calloc(1, sizeof(*g) + n + 1);
	if (!g)
		return err_nomem(err, "the pages of a sidecar");
	*g = (struct guard){.file = file,
			    .pages = file + head_size(n),
			    .n_bytes = size - head_size(n),
			    .n_pages = n,
			    .sums = file + GUARD_AT + GUARD_HEAD,
			    .state = (uint8_t *)(g + 1)};
	*ret = g;
	return 0;
}

void guard_close(struct guard *g)
{
	free(g);
}

static void set_state(struct guard *g, size_t page, uint8_t bit)
{
	__atomic_fetch_or(&g->state[page], bit, __ATOMIC_RELAXED);
}

static bool check_page(struct guard *g, size_t page)
{
	uint32_t expected;
	uint64_t none = 0;
	if (page >= g->n_pages || __atomic_load_n(&g->state[page], __ATOMIC_RELAXED) & GUARD_GOOD)
		return true;
	memcpy(&expected, g->sums + page * sizeof(expected), sizeof(expected));
	if (sum_of(g->pages + page * GUARD_PAGE, page_size(g, page)) == expected) {
		set_state(g, page, GUARD_GOOD);
		return true;
	}
	__atomic_compare_exchange_n(&g->bad, &none,
				    1 + (uint64_t)(g->pages - g->file) + page * GUARD_PAGE, false,
				    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
	return false;
}

bool guard_check(struct guard *g, const uint8_t *p, size_t n)
{
	/* The head was checked when it was opened. */
	if (!n || p + n <= g->pages)
		return true;
	size_t page = p < g->pages ? 0 : (size_t)(p - g->pages) / GUARD_PAGE;
	bool good = true;
	for (; good && g->pages + page * GUARD_PAGE < p + n; page++)
		good = check_page(g, page);
	return good;
}

bool guard_check_near(struct guard *g, size_t page)
{
	/*
	 * Only bytes of sections are read there, and sections were found to lie in the file.
	 */
	if (page >= g->n_pages)
		return false;
	if (!check_page(g, page) || !check_page(g, page + 1))
		return false;
	set_state(g, page, GUARD_GOOD_WITH_NEXT);
	return true;
}

int guard_verdict(const struct guard *g, const char *name, struct cairn_err *err)
{
	uint64_t bad = g ? __atomic_load_n(&g->bad, __ATOMIC_RELAXED) : 0;
	if (!bad)
		return 0;
	uint64_t from = bad - 1, end = (uint64_t)(g->pages - g->file) + g->n_bytes;
	return err_set(err, -EBADMSG,
		       "%s: damaged: bytes 0x%llx to 0x%llx do not have their checksum: make it "
		       "again with cairn sidecar",
		       name, (unsigned long long)from,
		       (unsigned long long)(from + GUARD_PAGE < end ? from + GUARD_PAGE : end));
}

int guard_check_all(struct guard *g, const char *name, struct cairn_err *err)
{
	guard_check(g, g->pages, g->n_bytes);
	return guard_verdict(g, name, err);
}
