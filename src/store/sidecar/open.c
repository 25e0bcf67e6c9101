/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening a sidecar: which sections it has, and that their sizes fit together. */
#include <cairn/sidecar.h>
#include <cairn/text.h>

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/opts.h"
#include "base/scope.h"
#include "elf/guard.h"
#include "sidecar/kernel_btf.h"
#include "sidecar/sidecar_impl.h"
#include "sidecar/trust.h"
#include "sidecar/wrap.h"

/* ---- sections ---- */

static int wrong(const struct elf_section *s, const char *expected, struct cairn_err *err)
{
	return err_set(err, -EBADMSG, "%s: %s: %s, expected %s", s->src.file, s->name,
		       cairn_counted(s->size, "byte").text, expected);
}

/*
 * A section with its bytes aligned for 64-bit numbers, which are not checked yet. Its data is NULL
 * when there is none. Sizes are below 4 GiB, so that offsets of 32 bits reach all.
 */
static int find_section(struct cairn_sidecar *p, const char *name, struct elf_section *ret,
			struct cairn_err *err)
{
	elf_section_unchecked(p->elf, name, ret);
	if (ret->data && ret->size > UINT32_MAX)
		return wrong(ret, "less than 4 GiB", err);
	if ((uintptr_t)ret->data % sizeof(uint64_t))
		return err_set(err, -EBADMSG,
			       "%s: %s: begins at offset 0x%llx, expected a multiple of 8",
			       ret->src.file, name, (unsigned long long)ret->foff.v);
	return 0;
}

/* Bytes [@off, @off + @n) of a section, which has them. */
static int check_bytes(const struct cairn_sidecar *p, const struct elf_section *s, uint64_t off,
		       uint64_t n, struct cairn_err *err)
{
	return guard_check(p->guard, s->data + off, n)
		       ? 0
		       : guard_verdict(p->guard, elf_path(p->elf), err);
}

static int by_site(const void *a, const void *b)
{
	const struct elf_section *x = *(const struct elf_section *const *)a,
				 *y = *(const struct elf_section *const *)b;
	return x->foff.v < y->foff.v ? -1 : x->foff.v > y->foff.v;
}

/*
 * If two sections share bytes, at least one of them is wrong, and nothing in the bytes tells which.
 */
static int check_overlaps(const struct cairn_sidecar *p, struct cairn_err *err)
{
	size_t all = elf_n_sections(p->elf), n = 0;
	SCOPE_FREE const struct elf_section **s = malloc((all + 1) * sizeof(*s));
	if (!s)
		return err_nomem(err, "the sections of a sidecar");
	for (size_t i = 0; i < all; i++) {
		s[n] = elf_section_at(p->elf, i);
		n += s[n]->type != SHT_NULL && s[n]->type != SHT_NOBITS && s[n]->size;
	}
	qsort(s, n, sizeof(*s), by_site);
	for (size_t i = 0; i < n; i++) {
		uint64_t end = i ? s[i - 1]->foff.v + s[i - 1]->size : sizeof(Elf64_Ehdr);
		if (s[i]->foff.v < end)
			return err_set(
				err, -EBADMSG,
				"%s: %s: begins at offset 0x%llx, inside %s, which ends at 0x%llx",
				elf_path(p->elf), s[i]->name, (unsigned long long)s[i]->foff.v,
				i ? s[i - 1]->name : "the ELF header", (unsigned long long)end);
	}
	return 0;
}

/*
 * The version is read before anything else of the header, which has another size in other versions.
 * Checksums of these bytes were compared if the file has any.
 */
static int check_version(const struct cairn_sidecar *p, const struct elf_section *s,
			 struct cairn_err *err)
{
	struct sidecar_header h;
	size_t n = offsetof(struct sidecar_header, header_size);
	if (!s->data)
		return err_set(err, -EBADMSG, "%s: not a sidecar: it has no section .cairn",
			       elf_path(p->elf));
	if (s->size < n)
		return wrong(s, "at least 56", err);
	memcpy(&h, s->data, n);
	if (memcmp(h.magic, SIDECAR_MAGIC, sizeof(SIDECAR_MAGIC)))
		return err_set(err, -EBADMSG, "%s: .cairn+0x0: expected the bytes \"%s\"",
			       elf_path(p->elf), SIDECAR_MAGIC);
	if (h.version == SIDECAR_VERSION)
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "%s: version %u of the format; this program knows version %u%s",
		       elf_path(p->elf), h.version, SIDECAR_VERSION,
		       h.version < SIDECAR_VERSION ? ": make it again with cairn sidecar" : "");
}

/* A file without checksums is no sidecar, or one of another version. */
static int no_checksums(struct cairn_sidecar *p, struct cairn_err *err)
{
	const struct elf_section *s, none = {0};
	int rc = elf_section(p->elf, SIDECAR_HEADER, &s, err);
	if (rc >= 0)
		rc = check_version(p, s ? s : &none, err);
	return rc < 0 ? rc
		      : err_set(err, -EBADMSG,
				"%s: damaged: it has no checksums: make it again with cairn "
				"sidecar",
				elf_path(p->elf));
}

static int read_header(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct elf_section s;
	size_t n = sizeof(*p->header);
	int rc = find_section(p, SIDECAR_HEADER, &s, err);
	if (rc >= 0 && s.data)
		rc = check_bytes(p, &s, 0, s.size < n ? s.size : n, err);
	if (rc >= 0)
		rc = check_version(p, &s, err);
	if (rc < 0)
		return rc;
	if (s.size < n)
		return wrong(&s, "at least 56", err);
	p->header = (const struct sidecar_header *)s.data;
	/* A hazard or a caveat that is not known here would be taken for none. */
	if (p->header->analysis > SIDECAR_ANALYSIS)
		return err_set(err, -EOPNOTSUPP,
			       "%s: made by a newer version of cairn: analysis %u; this program "
			       "knows %u",
			       elf_path(p->elf), p->header->analysis, SIDECAR_ANALYSIS);
	return 0;
}

static int find_binding(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct elf_section s;
	int rc = find_section(p, ".cairn.binding", &s, err);
	if (rc < 0)
		return rc;
	if (!s.data)
		return err_set(err, -EBADMSG, "%s: expected a section .cairn.binding",
			       elf_path(p->elf));
	rc = check_bytes(p, &s, 0, s.size, err);
	return rc < 0 ? rc : binding_read(&s, p->binding, err);
}

static int find_strings(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct elf_section s;
	int rc = find_section(p, ".cairn.strings", &s, err);
	if (rc < 0 || !s.data)
		return rc;
	rc = check_bytes(p, &s, s.size - 1, 1, err);
	if (rc < 0)
		return rc;
	if (s.data[s.size - 1])
		return err_set(err, -EBADMSG,
			       "%s: .cairn.strings+0x%llx: expected a NUL at the end",
			       elf_path(p->elf), (unsigned long long)s.size - 1);
	p->strings = (const char *)s.data;
	p->strings_size = (uint32_t)s.size;
	return 0;
}

const char *sidecar_long_string(const struct cairn_sidecar *p, uint32_t off)
{
	uint32_t left = p->strings_size - off,
		 n = p->header->string_max < left ? p->header->string_max : left;
	return guard_check(p->guard, (const uint8_t *)p->strings + off, n) ? p->strings + off
									   : NULL;
}

/* The table at *@off of a section; moves *@off past it. Does nothing when there is no section. */
static int read_table(struct cairn_sidecar *p, const struct elf_section *s, uint64_t *off,
		      struct table *ret, struct cairn_err *err)
{
	if (!s->data)
		return 0;
	uint64_t size = table_read(ret, p->guard, s->data + *off, s->size - *off);
	if (!size) {
		*ret = (struct table){0};
		int rc = guard_verdict(p->guard, elf_path(p->elf), err);
		return rc < 0 ? rc
			      : err_set(err, -EBADMSG, "%s: %s+0x%llx: expected a table, in %s",
					s->src.file, s->name, (unsigned long long)*off,
					cairn_counted(s->size - *off, "byte").text);
	}
	*off += size;
	return 0;
}

/* A section of @n tables. */
static int find_tables(struct cairn_sidecar *p, const char *name, struct table *const *ret,
		       size_t n, struct cairn_err *err)
{
	struct elf_section s;
	uint64_t off = 0;
	int rc = find_section(p, name, &s, err);
	for (size_t i = 0; rc >= 0 && i < n; i++)
		rc = read_table(p, &s, &off, ret[i], err);
	return rc;
}

static int find_table(struct cairn_sidecar *p, const char *name, struct table *ret,
		      struct cairn_err *err)
{
	return find_tables(p, name, &ret, 1, err);
}

static int find_names(struct cairn_sidecar *p, const char *name, struct names *ret,
		      struct cairn_err *err)
{
	struct table *const tables[] = {&ret->buckets, &ret->entries};
	int rc = find_tables(p, name, tables, 2, err);
	uint32_t n = ret->buckets.n - 1;
	if (rc < 0 || !ret->buckets.n)
		return rc;
	if (!n || n & (n - 1))
		return err_set(err, -EBADMSG, "%s: %s+0x0: %u buckets, expected a power of two",
			       elf_path(p->elf), name, n);
	return 0;
}

/* A table of where each record begins, and the records. */
static int find_records(struct cairn_sidecar *p, const char *name, struct records *ret,
			struct cairn_err *err)
{
	struct elf_section s;
	uint64_t off = 0;
	int rc = find_section(p, name, &s, err);
	if (rc >= 0)
		rc = read_table(p, &s, &off, &ret->starts, err);
	if (rc < 0 || !s.data)
		return rc;
	if (!ret->starts.n)
		return wrong(&s, "the begin of the first record", err);
	ret->n = ret->starts.n - 1;
	ret->data = s.data + off;
	ret->size = (uint32_t)(s.size - off);
	ret->src = (struct cursor_src){s.src.file, s.src.section, ret->data};
	return 0;
}

/* Blocks of bits: their begins are in @starts already, or are stored before them. */
static int find_blocks(struct cairn_sidecar *p, const char *name, bool has_starts,
		       struct blocks *ret, struct cairn_err *err)
{
	struct elf_section s;
	uint64_t off = 0;
	int rc = find_section(p, name, &s, err);
	if (rc >= 0 && !has_starts)
		rc = read_table(p, &s, &off, &ret->starts, err);
	if (rc < 0 || !s.data)
		return rc;
	if (!ret->starts.n || s.size - off < BITS_SLACK)
		return wrong(&s, "blocks, and their begins", err);
	ret->n = ret->starts.n - 1;
	ret->data = s.data + off;
	ret->size = (uint32_t)(s.size - off - BITS_SLACK);
	return 0;
}

/* Each span comes after the previous one, lies inside the code, and has the pages that it needs. */
static int check_spans(const struct cairn_sidecar *p, struct cairn_err *err)
{
	uint64_t pages = 0, end = 0;
	for (uint32_t i = 0; i < p->spans.n; i++) {
		uint32_t at = table_get(&p->spans, i, SPAN_AT),
			 size = table_get(&p->spans, i, SPAN_SIZE);
		if (table_get(&p->spans, i, SPAN_FIRST_PAGE) != pages || at < end ||
		    (uint64_t)at + size > p->header->span)
			return err_set(err, -EBADMSG,
				       "%s: .cairn.pages: span %u: expected one after the previous "
				       "span, inside the code",
				       elf_path(p->elf), i);
		pages += ((uint64_t)size + SIDECAR_PAGE_SIZE - 1) / SIDECAR_PAGE_SIZE;
		end = (uint64_t)at + size;
	}
	if (p->spans.n && pages != p->pages.n)
		return err_set(err, -EBADMSG, "%s: .cairn.pages: %s, expected %llu",
			       elf_path(p->elf), cairn_counted(p->pages.n, "page").text,
			       (unsigned long long)pages);
	return 0;
}

static int find_code(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct table *const tables[] = {&p->spans, &p->pages.starts};
	int rc = find_tables(p, ".cairn.pages", tables, 2, err);
	if (rc >= 0)
		rc = find_blocks(p, ".cairn.code", true, &p->pages, err);
	if (rc >= 0)
		rc = check_spans(p, err);
	if (rc >= 0)
		rc = find_blocks(p, ".cairn.frames", false, &p->frames, err);
	if (rc >= 0 && p->header->n_frames > (uint64_t)p->frames.n * SIDECAR_FRAMES_PER_BLOCK)
		return err_set(err, -EBADMSG, "%s: .cairn.frames: %s, expected all of %s",
			       elf_path(p->elf), cairn_counted(p->frames.n, "block").text,
			       cairn_counted(p->header->n_frames, "frame").text);
	p->frame_width = bits_width(p->header->n_frames);
	p->symbol_width = bits_width(p->symbols.n);
	p->function_width = p->functions.n ? bits_width(p->functions.n - 1) : 0;
	p->file_width = bits_width(p->files.n);
	return rc;
}

static int find_sites(struct cairn_sidecar *p, struct cairn_err *err)
{
	/* clang-format off */
	const struct {
		const char *name;
		struct records *ret;
	} sections[] = {
		{".cairn.sites", &p->sites},
		{".cairn.frame_sites", &p->marks},
		{".cairn.site_attrs", &p->site_attrs},
		{".cairn.arguments", &p->arguments},
		{".cairn.locations", &p->locations},
		{".cairn.prototypes", &p->prototypes},
		{".cairn.types", &p->types},
	};
	/* clang-format on */
	struct elf_section s;
	int rc = find_section(p, ".cairn.symbol_names", &s, err);
	if (rc >= 0 && s.data) {
		p->symbol_names = (const struct sidecar_symbol_name *)s.data;
		p->n_symbol_names = (uint32_t)(s.size / sizeof(*p->symbol_names));
	}
	for (size_t i = 0; rc >= 0 && i < sizeof(sections) / sizeof(sections[0]); i++)
		rc = find_records(p, sections[i].name, sections[i].ret, err);
	if (rc >= 0)
		rc = find_names(p, ".cairn.site_names", &p->site_names, err);
	if (rc >= 0)
		rc = find_table(p, ".cairn.parameters", &p->parameters, err);
	if (rc >= 0)
		rc = find_table(p, ".cairn.type_names", &p->type_names, err);
	return rc < 0 ? rc : find_table(p, ".cairn.addresses", &p->addresses, err);
}

static int find_all(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct elf_section unwind;
	int rc = read_header(p, err);
	if (rc >= 0)
		rc = find_binding(p, err);
	if (rc >= 0)
		rc = find_strings(p, err);
	if (rc >= 0)
		rc = find_table(p, ".cairn.symbols", &p->symbols, err);
	if (rc >= 0)
		rc = find_table(p, ".cairn.files", &p->files, err);
	if (rc >= 0)
		rc = find_table(p, ".cairn.functions", &p->functions, err);
	if (rc >= 0)
		rc = find_names(p, ".cairn.names", &p->names, err);
	if (rc >= 0)
		rc = find_code(p, err);
	/* For cairn_sidecar_section(): its callers may read its bytes as numbers. */
	if (rc >= 0)
		rc = find_section(p, ".cairn.cfi", &unwind, err);
	return rc < 0 ? rc : find_sites(p, err);
}

/* ---- opening ---- */

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

static int check_build_id(const struct cairn_sidecar *p, const uint8_t *wanted_id,
			  size_t wanted_len, struct cairn_err *err)
{
	char found[256], wanted[256];
	size_t len;
	const uint8_t *id = elf_build_id(p->elf, &len);
	if (len == wanted_len && (!len || !memcmp(id, wanted_id, len)))
		return 0;
	hex(id, len, found, sizeof(found));
	hex(wanted_id, wanted_len, wanted, sizeof(wanted));
	return err_set(err, -ESTALE, "%s: sidecar of build-id %s, expected %s", elf_path(p->elf),
		       len ? found : "(none)", wanted_len ? wanted : "(none)");
}

/* True if it describes the caller's binary. */
static int check_subject(struct cairn_sidecar *p, const struct cairn_sidecar_opts *opts,
			 struct cairn_err *err)
{
	size_t len;
	const uint8_t *id = opts->binary ? cairn_binary_build_id(opts->binary, &len) : NULL;
	int rc = opts->build_id ? check_build_id(p, opts->build_id, opts->build_id_len, err) : 0;
	if (rc < 0 || !opts->binary)
		return rc;
	rc = check_build_id(p, id, len, err);
	return rc < 0 ? rc
		      : binding_hold(p->binding, binary_main(opts->binary), elf_path(p->elf), err);
}

/* A file from a debuginfod has the sidecar inside. */
static int unwrap(struct cairn_sidecar *p, struct cairn_err *err)
{
	struct elf *inner;
	int rc = wrap_open(p->elf, &inner, err);
	if (rc < 0 || !inner)
		return rc;
	p->wrapper = p->elf;
	p->elf = inner;
	return 0;
}

static int adopt(struct elf *e, const struct cairn_sidecar_opts *opts, struct cairn_sidecar **ret,
		 struct cairn_err *err)
{
	struct cairn_sidecar *p = calloc(1, sizeof(*p) + sizeof(*p->binding));
	if (!p) {
		elf_unref(e);
		return err_nomem(err, "a sidecar");
	}
	p->elf = e;
	p->binding = (struct binding *)(p + 1);
	int rc = unwrap(p, err);
	p->guard = elf_guard(p->elf);
	if (rc >= 0 && !p->guard)
		rc = no_checksums(p, err);
	if (rc >= 0)
		rc = check_overlaps(p, err);
	if (rc >= 0)
		rc = find_all(p, err);
	if (rc >= 0)
		rc = check_subject(p, opts, err);
	if (rc < 0) {
		cairn_sidecar_close(p);
		return rc;
	}
	*ret = p;
	return 0;
}

int cairn_sidecar_open(const char *path, const struct cairn_sidecar_opts *opts,
		       struct cairn_sidecar **ret, struct cairn_err *err)
{
	struct cairn_sidecar_opts o;
	struct elf *e;
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc < 0)
		return rc;
	SCOPE_CLOSE int fd = o.must_be_trusted
				     ? trusted_open(path, err)
				     : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 && o.must_be_trusted)
		return fd;
	if (fd < 0)
		return err_set(err, -errno, "%s: %m", path);
	rc = elf_open_fd(fd, path, &e, err);
	return rc < 0 ? rc : adopt(e, &o, ret, err);
}

int cairn_sidecar_open_mem(const void *bytes, size_t size, const char *name,
			   const struct cairn_sidecar_opts *opts, struct cairn_sidecar **ret,
			   struct cairn_err *err)
{
	struct cairn_sidecar_opts o;
	struct elf *e;
	int rc = opts_take(&o, sizeof(o), opts, err);
	if (rc >= 0)
		rc = elf_open_mem(bytes, size, name, &e, err);
	return rc < 0 ? rc : adopt(e, &o, ret, err);
}

const char *cairn_sidecar_shortened(const struct cairn_sidecar *p)
{
	return elf_shortened(p->wrapper ? p->wrapper : p->elf);
}

void cairn_sidecar_close(struct cairn_sidecar *p)
{
	if (!p)
		return;
	binding_fini(p->binding);
	elf_unref(p->elf);
	elf_unref(p->wrapper);
	free(p->owned);
	free(p);
}

int cairn_sidecar_open_image(struct cairn_sidecar_image *image, const char *name,
			     struct cairn_sidecar **ret, struct cairn_err *err)
{
	int rc = cairn_sidecar_open_mem(image->bytes, image->size, name, NULL, ret, err);
	if (rc < 0)
		return rc;
	(*ret)->owned = image->bytes;
	image->bytes = NULL;
	cairn_sidecar_image_free(image);
	return 0;
}

/* ---- attributes ---- */

const char *cairn_sidecar_path(const struct cairn_sidecar *p)
{
	return elf_path(p->elf);
}

bool cairn_sidecar_is_current(const struct cairn_sidecar *p)
{
	return p->header->version == SIDECAR_VERSION && p->header->analysis == SIDECAR_ANALYSIS;
}

const uint8_t *cairn_sidecar_build_id(const struct cairn_sidecar *p, size_t *ret_len)
{
	return elf_build_id(p->elf, ret_len);
}

size_t cairn_sidecar_sections(const struct cairn_sidecar *p,
			      struct cairn_sidecar_image_section *ret, size_t max)
{
	size_t n = 0;
	for (size_t i = 0; i < elf_n_sections(p->elf); i++) {
		const struct elf_section *s = elf_section_at(p->elf, i);
		if (!s->name[0] || !s->size || s->type == SHT_NOBITS ||
		    !strcmp(s->name, ".shstrtab"))
			continue;
		if (n < max)
			ret[n] = (struct cairn_sidecar_image_section){
				.name = s->name, .size = s->size, .what = ""};
		n++;
	}
	return n;
}

const void *cairn_sidecar_section(const struct cairn_sidecar *p, const char *name, size_t *ret_size)
{
	const struct elf_section *s = NULL;
	*ret_size = 0;
	if (elf_section(p->elf, name, &s, NULL) < 0 || !s || !s->data)
		return NULL;
	*ret_size = s->size;
	return s->data;
}

/* ---- whether it may be believed ---- */

bool cairn_sidecar_is_bound(const struct cairn_sidecar *p)
{
	return p->binding->is_bound;
}

bool cairn_sidecar_kernel_btf(const struct cairn_sidecar *p, struct cairn_sidecar_btf_hash *ret)
{
	struct sidecar_kernel_btf in;
	struct elf_section s;
	if (find_section((struct cairn_sidecar *)p, KERNEL_BTF_SECTION, &s, NULL) < 0 || !s.data ||
	    s.size < sizeof(in) || check_bytes(p, &s, 0, sizeof(in), NULL) < 0)
		return false;
	memcpy(&in, s.data, sizeof(in));
	ret->n_bytes = in.size;
	memcpy(ret->sha256, in.sha256, sizeof(in.sha256));
	return true;
}

uint32_t cairn_sidecar_left_out(const struct cairn_sidecar *p)
{
	return p->header->n_left_out;
}

bool cairn_sidecar_covers(const struct cairn_sidecar *p, struct cairn_vaddr at)
{
	return binding_covers(p->binding, at);
}

int cairn_sidecar_trouble(const struct cairn_sidecar *p, struct cairn_err *err)
{
	int rc = guard_verdict(p->guard, elf_path(p->elf), err);
	return rc < 0 ? rc : binding_verdict(p->binding, elf_path(p->elf), err);
}

int cairn_sidecar_compare(const struct cairn_sidecar *p, struct cairn_err *err)
{
	return binding_compare_all(p->binding, elf_path(p->elf), err);
}
