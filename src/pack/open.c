/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a sidecar: which sections it has, and that their sizes fit together. */
#include <cairn/pack.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "pack/pack_impl.h"
#include "pack/trust.h"
#include "pack/wrap.h"

/* ---- sections ---- */

static int wrong(const struct elf_section *s, const char *expected, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: %llu bytes, expected %s", s->src.file, s->name,
		       (unsigned long long)s->size, expected);
}

/*
 * A section with its bytes aligned for 32-bit numbers. *@ret is NULL when there is none, or it is empty. Sizes are below
 * 4 GiB, so that offsets of 32 bits reach all.
 */
static int find_section(struct cairn_pack *p, const char *name, const struct elf_section **ret,
			struct cairn_err *err)
{
	int rc = elf_section(p->elf, name, ret, err);
	if (rc < 0 || !*ret)
		return rc;
	if (!(*ret)->data || !(*ret)->size) {
		*ret = NULL;
		return 0;
	}
	if ((*ret)->size > UINT32_MAX)
		return wrong(*ret, "less than 4 GiB", err);
	if ((uintptr_t)(*ret)->data % sizeof(uint64_t))
		return err_set(err, -EBADMSG, "%s: %s: begins at offset 0x%llx, expected a multiple of 8",
			       (*ret)->src.file, name, (unsigned long long)(*ret)->foff.v);
	return 0;
}

static int read_header(struct cairn_pack *p, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_section(p, ".cairn", &s, err);
	if (rc < 0)
		return rc;
	if (!s)
		return err_set(err, -EBADMSG, "%s: not a sidecar: it has no section .cairn", elf_path(p->elf));
	if (s->size < sizeof(*p->header))
		return wrong(s, "at least 48", err);
	p->header = (const struct pack_header *)s->data;
	if (memcmp(p->header->magic, PACK_MAGIC, sizeof(PACK_MAGIC)))
		return err_set(err, -EBADMSG, "%s: .cairn+0x0: expected the bytes \"%s\"", elf_path(p->elf), PACK_MAGIC);
	if (p->header->version > PACK_VERSION || !p->header->version)
		return err_set(err, -EOPNOTSUPP, "%s: version %u of the format; this program knows versions up to %u",
			       elf_path(p->elf), p->header->version, PACK_VERSION);
	if (p->header->page_size != PACK_PAGE_SIZE)
		return err_set(err, -EBADMSG, "%s: .cairn: pages of %u bytes, expected %u", elf_path(p->elf),
			       p->header->page_size, PACK_PAGE_SIZE);
	return 0;
}

/* An array of records of @size bytes. */
static int find_array(struct cairn_pack *p, const char *name, size_t size, const void *ret_p, uint32_t *ret_n,
		      struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_section(p, name, &s, err);
	if (rc < 0 || !s)
		return rc;
	if (s->size % size)
		return wrong(s, "a multiple of a record's size", err);
	*(const void **)ret_p = s->data;
	*ret_n = (uint32_t)(s->size / size);
	return 0;
}

static int find_strings(struct cairn_pack *p, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_section(p, ".cairn.strings", &s, err);
	if (rc < 0 || !s)
		return rc;
	if (s->data[s->size - 1])
		return err_set(err, -EBADMSG, "%s: .cairn.strings+0x%llx: expected a NUL at the end", elf_path(p->elf),
			       (unsigned long long)s->size - 1);
	p->strings = (const char *)s->data;
	p->strings_size = (uint32_t)s->size;
	return 0;
}

/* The index of pages: spans, and as many pages as they take. */
static int find_pages(struct cairn_pack *p, struct cairn_err *err)
{
	const struct elf_section *s, *code;
	int rc = find_section(p, ".cairn.pages", &s, err);
	if (rc >= 0)
		rc = find_section(p, ".cairn.code", &code, err);
	if (rc < 0 || !s || !code)
		return rc;
	uint64_t spans = (uint64_t)p->header->n_spans * sizeof(*p->spans), n = 0;
	if (spans + sizeof(*p->pages) > s->size)
		return wrong(s, "all spans and an end", err);
	p->spans = (const struct pack_span *)s->data;
	for (uint32_t i = 0; i < p->header->n_spans; i++) {
		const struct pack_span *span = &p->spans[i];
		if (span->first_page != n || (uint64_t)span->at + span->size > p->header->span ||
		    (i && span->at < (span - 1)->at + (span - 1)->size))
			return err_set(err, -EBADMSG, "%s: %s: span %u: expected one behind that before it, inside the code",
				       elf_path(p->elf), s->name, i);
		n += ((uint64_t)span->size + PACK_PAGE_SIZE - 1) / PACK_PAGE_SIZE;
	}
	if (s->size != spans + (n + 1) * sizeof(*p->pages))
		return wrong(s, "spans and their pages", err);
	p->n_spans = p->header->n_spans;
	p->n_pages = (uint32_t)n;
	p->pages = (const uint32_t *)(s->data + spans);
	p->code = code->data;
	p->code_size = (uint32_t)code->size;
	p->code_src = code->src;
	return 0;
}

/* An index of names: number of buckets, where each begins, the end, entries. */
static int find_names(struct cairn_pack *p, const char *name, const uint32_t **ret_buckets, uint32_t *ret_n_buckets,
		      const uint32_t **ret_entries, uint32_t *ret_n_entries, struct cairn_err *err)
{
	const uint32_t *words;
	uint32_t n = 0;
	int rc = find_array(p, name, sizeof(*words), &words, &n, err);
	if (rc < 0 || !n)
		return rc;
	uint32_t buckets = words[0];
	if (!buckets || buckets & (buckets - 1) || buckets > n - 1 || n - 1 - buckets < 1)
		return err_set(err, -EBADMSG, "%s: %s+0x0: %u buckets in %u numbers, expected a power of two",
			       elf_path(p->elf), name, buckets, n);
	*ret_n_buckets = buckets;
	*ret_buckets = words + 1;
	*ret_entries = words + 1 + buckets + 1;
	*ret_n_entries = n - 2 - buckets;
	return 0;
}

/* Number of records, where each starts, the end of the last, the records. */
static int find_records(struct cairn_pack *p, const char *name, struct records *ret, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_section(p, name, &s, err);
	if (rc < 0 || !s)
		return rc;
	uint32_t n = s->size >= sizeof(n) ? *(const uint32_t *)s->data : 0;
	uint64_t index = ((uint64_t)n + 2) * sizeof(n);
	if (index > s->size)
		return wrong(s, "an index of all records", err);
	*ret = (struct records){.starts = (const uint32_t *)s->data + 1,
				.n = n,
				.data = s->data + index,
				.size = (uint32_t)(s->size - index),
				.src = {s->src.file, s->src.section, s->data + index}};
	return 0;
}

static int find_places(struct cairn_pack *p, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_records(p, ".cairn.places", &p->places, err);
	if (rc >= 0)
		rc = find_records(p, ".cairn.types", &p->types, err);
	if (rc >= 0)
		rc = find_names(p, ".cairn.place_names", &p->place_buckets, &p->n_place_buckets, &p->place_entries,
				&p->n_place_entries, err);
	if (rc >= 0)
		rc = find_array(p, ".cairn.symbol_names", sizeof(*p->symbol_names), &p->symbol_names, &p->n_symbol_names, err);
	if (rc >= 0)
		rc = find_array(p, ".cairn.addresses", sizeof(*p->addresses), &p->addresses, &p->n_addresses, err);
	if (rc >= 0)
		rc = find_section(p, ".cairn.locations", &s, err);
	if (rc < 0 || !s)
		return rc;
	p->locations_src = s->src;
	p->locations_size = (uint32_t)s->size;
	return 0;
}

static int find_frames(struct cairn_pack *p, struct cairn_err *err)
{
	const struct elf_section *s;
	int rc = find_section(p, ".cairn.frames", &s, err);
	if (rc < 0 || !s)
		return rc;
	uint64_t n = ((uint64_t)p->header->n_frames + PACK_FRAMES_PER_BLOCK - 1) / PACK_FRAMES_PER_BLOCK;
	uint64_t index = (n + 1) * sizeof(uint32_t);
	if (index > s->size)
		return wrong(s, "an index of all frames", err);
	p->frame_blocks = (const uint32_t *)s->data;
	p->n_frame_blocks = (uint32_t)n;
	p->frames = s->data + index;
	p->frames_size = (uint32_t)(s->size - index);
	p->frames_src = (struct cursor_src){s->src.file, s->src.section, p->frames};
	return 0;
}

static int find_all(struct cairn_pack *p, struct cairn_err *err)
{
	int rc = read_header(p, err);
	if (rc >= 0)
		rc = find_strings(p, err);
	if (rc >= 0)
		rc = find_array(p, ".cairn.symbols", sizeof(*p->symbols), &p->symbols, &p->n_symbols, err);
	if (rc >= 0)
		rc = find_array(p, ".cairn.files", sizeof(*p->files), &p->files, &p->n_files, err);
	if (rc >= 0)
		rc = find_array(p, ".cairn.functions", sizeof(*p->functions), &p->functions, &p->n_functions, err);
	if (rc >= 0)
		rc = find_names(p, ".cairn.names", &p->buckets, &p->n_buckets, &p->entries, &p->n_entries, err);
	if (rc >= 0)
		rc = find_frames(p, err);
	if (rc >= 0)
		rc = find_pages(p, err);
	if (rc >= 0)
		rc = find_places(p, err);
	return rc;
}

/* ---- opening ---- */

static int read_opts(const struct cairn_pack_opts *opts, struct cairn_pack_opts *ret, struct cairn_err *err)
{
	*ret = (struct cairn_pack_opts){.size = sizeof(*ret)};
	if (!opts)
		return 0;
	for (size_t i = sizeof(*ret); i < opts->size; i++)
		if (((const char *)opts)[i])
			return err_set(err, -EINVAL, "struct cairn_pack_opts: byte %zu is set, and only %zu are known", i,
				       sizeof(*ret));
	memcpy(ret, opts, opts->size < sizeof(*ret) ? opts->size : sizeof(*ret));
	return 0;
}

static void hex(const uint8_t *p, size_t n, char *buf, size_t size)
{
	buf[0] = 0;
	for (size_t i = 0; i < n && 2 * i + 3 <= size; i++) {
		static const char digits[] = "0123456789abcdef";
		buf[2 * i] = digits[p[i] >> 4];
		buf[2 * i + 1] = digits[p[i] & 15];
		buf[2 * i + 2] = 0;
	}
}

static int check_build_id(const struct cairn_pack *p, const struct cairn_pack_opts *opts, struct cairn_err *err)
{
	char found[256], wanted[256];
	size_t len;
	const uint8_t *id = elf_build_id(p->elf, &len);
	if (!opts->build_id || (len == opts->build_id_len && (!len || !memcmp(id, opts->build_id, len))))
		return 0;
	hex(id, len, found, sizeof(found));
	hex(opts->build_id, opts->build_id_len, wanted, sizeof(wanted));
	return err_set(err, -ESTALE, "%s: sidecar of build-id %s, expected %s", elf_path(p->elf), len ? found : "(none)",
		       wanted);
}

/* A file from a debuginfod has the sidecar inside. */
static int unwrap(struct cairn_pack *p, struct cairn_err *err)
{
	struct elf *inner;
	int rc = wrap_open(p->elf, &inner, err);
	if (rc < 0 || !inner)
		return rc;
	p->wrapper = p->elf;
	p->elf = inner;
	return 0;
}

static int adopt(struct elf *e, const struct cairn_pack_opts *opts, struct cairn_pack **ret, struct cairn_err *err)
{
	struct cairn_pack *p = calloc(1, sizeof(*p));
	if (!p) {
		elf_close(e);
		return err_nomem(err, "a sidecar");
	}
	p->elf = e;
	int rc = unwrap(p, err);
	if (rc >= 0)
		rc = find_all(p, err);
	if (rc >= 0)
		rc = check_build_id(p, opts, err);
	if (rc < 0) {
		cairn_pack_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

int cairn_pack_open(const char *path, const struct cairn_pack_opts *opts, struct cairn_pack **ret,
		    struct cairn_err *err)
{
	struct cairn_pack_opts o;
	struct elf *e;
	int rc = read_opts(opts, &o, err);
	if (rc < 0)
		return rc;
	SCOPE_CLOSE int fd = o.must_be_trusted ? trusted_open(path, err) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && o.must_be_trusted)
		return fd;
	if (fd < 0)
		return err_set(err, -errno, "%s: %m", path);
	rc = elf_open_fd(fd, path, &e, err);
	return rc < 0 ? rc : adopt(e, &o, ret, err);
}

int cairn_pack_open_mem(const void *bytes, size_t size, const char *name, const struct cairn_pack_opts *opts,
			struct cairn_pack **ret, struct cairn_err *err)
{
	struct cairn_pack_opts o;
	struct elf *e;
	int rc = read_opts(opts, &o, err);
	if (rc >= 0)
		rc = elf_open_mem(bytes, size, name, &e, err);
	return rc < 0 ? rc : adopt(e, &o, ret, err);
}

void cairn_pack_close(struct cairn_pack *p)
{
	if (!p)
		return;
	elf_close(p->elf);
	elf_close(p->wrapper);
	free(p->owned);
	free(p);
}

int cairn_pack_open_packed(struct cairn_packed *packed, const char *name, struct cairn_pack **ret,
			   struct cairn_err *err)
{
	int rc = cairn_pack_open_mem(packed->bytes, packed->size, name, NULL, ret, err);
	if (rc < 0)
		return rc;
	(*ret)->owned = packed->bytes;
	packed->bytes = NULL;
	return 0;
}

/* ---- what it is ---- */

const char *cairn_pack_path(const struct cairn_pack *p)
{
	return elf_path(p->elf);
}

bool cairn_pack_is_current(const struct cairn_pack *p)
{
	return p->header->version == PACK_VERSION && p->header->analysis == PACK_ANALYSIS;
}

const uint8_t *cairn_pack_build_id(const struct cairn_pack *p, size_t *ret_len)
{
	return elf_build_id(p->elf, ret_len);
}

size_t cairn_pack_sections(const struct cairn_pack *p, struct cairn_packed_section *ret, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < elf_n_sections(p->elf); i++) {
		const struct elf_section *s = elf_section_at(p->elf, i);
		if (!s->name[0] || !s->size || !strcmp(s->name, ".shstrtab"))
			continue;
		if (n < max)
			ret[n] = (struct cairn_packed_section){.name = s->name, .size = s->size, .what = ""};
		n++;
	}
	return n;
}

const void *cairn_pack_section(const struct cairn_pack *p, const char *name, size_t *ret_size)
{
	const struct elf_section *s = NULL;
	*ret_size = 0;
	if (elf_section(p->elf, name, &s, NULL) < 0 || !s || !s->data)
		return NULL;
	*ret_size = s->size;
	return s->data;
}
