/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading a blob
 *
 *	OFFSET  SIZE  MEANING
 *	0       2     magic 0xeb9f; its byte order is that of the whole blob
 *	2       1     version, 1
 *	3       1     flags, 0
 *	4       4     size of the header: 24, or 32 with the last two fields
 *	8       4     type section: offset from the end of the header, a multiple of 4
 *	12      4     its size
 *	16      4     string section: offset from the end of the header
 *	20      4     its size
 *	24      4     layout section: offset from the end of the header, a multiple of 4
 *	28      4     its size; 0: none
 *
 * The sections lie in the order types, layout, strings. The rest of a longer header is not known
 * here, and is ignored, as libbpf does.
 *
 * The header and the layout are read through cursors. The type section is checked once from end to
 * end: every record lies inside it. From then on its words are used as an array, and no record can
 * reach out of it.
 *
 * Which dialect? Kinds 20 to 22 have two layouts, and nothing in the header shows which one is
 * used. The layout section decides; else the section's name in the ELF file (the caller passes the
 * dialect that it implies); else both are tried. The records must then fill the type section
 * exactly, and v1's LOC_PARAM has a vlen of 0 where N's has at least 1. A blob that passes as both
 * has no LOC_PARAM; it is N if the first site of its first LOCSEC names a FUNC.
 */
#include "btf/btf.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "base/err.h"

/* Offsets and ids are 31 bits wide for libbpf and for us; a kernel's BTF is 10 MB. */
#define BLOB_BYTES_MAX (2ull << 30)

static int damaged(struct cairn_err *err, const struct cairn_btf *btf, uint64_t off,
		   const char *what)
{
	return err_set(err, -EBADMSG, "%s: BTF: offset 0x%" PRIx64 ": %s", btf->name, off, what);
}

struct header {
	uint32_t types_off, types_size, strings_off, strings_size, layout_off, layout_size;
};

/* Byte order from the magic; the rest of the first 8 bytes. */
static int parse_prefix(struct cairn_btf *btf, const uint8_t *bytes, size_t size, struct cursor *c,
			struct cairn_err *err)
{
	if (size < 2 || (bytes[0] != 0x9f && bytes[0] != 0xeb) ||
	    bytes[0] + bytes[1] != 0x9f + 0xeb)
		return damaged(err, btf, 0, "not BTF: it does not begin with the magic 0xeb9f");
	btf->big_endian = c->big_endian = bytes[0] == 0xeb;
	cur_u16(c);
	uint8_t version = cur_u8(c);
	btf->flags = cur_u8(c);
	btf->header_bytes = cur_u32(c);
	if (c->failed)
		return -EBADMSG;
	if (version != BTF_BLOB_VERSION)
		return err_set(err, -EOPNOTSUPP, "%s: BTF: offset 0x2: version %u; only 1 is known",
			       btf->name, version);
	if (btf->header_bytes < BTF_HEADER_OLD || btf->header_bytes > size)
		return damaged(err, btf, 4,
			       "the header's size is less than 24 or more than the blob's");
	return 0;
}

static int check_header(struct cairn_btf *btf, const struct header *h, uint64_t size,
			struct cairn_err *err)
{
	uint64_t types_end = (uint64_t)h->types_off + h->types_size;
	uint64_t layout_end = (uint64_t)h->layout_off + h->layout_size;
	uint64_t strings_end = (uint64_t)h->strings_off + h->strings_size;
	if (h->types_off % 4 || h->types_size % 4)
		return damaged(err, btf, 8, "the type section is not made of 4-byte words");
	if (strings_end > size)
		return damaged(err, btf, 16, "the string section ends after the blob");
	if (types_end > h->strings_off)
		return damaged(err, btf, 8, "the type section does not end before the strings");
	if (!h->layout_size) {
		btf->gap = h->types_off || types_end != h->strings_off || strings_end != size;
		return 0;
	}
	if (h->layout_off % 4 || h->layout_size % 4)
		return damaged(err, btf, 24, "the layout section is not made of 4-byte entries");
	if (h->layout_off < types_end || layout_end > h->strings_off)
		return damaged(err, btf, 24, "the layout section is not between types and strings");
	btf->gap = h->types_off || types_end != h->layout_off || layout_end != h->strings_off ||
		   strings_end != size;
	return 0;
}

/* The words of the type section, in this machine's byte order. */
static int take_words(struct cairn_btf *btf, const uint8_t *types, uint32_t size,
		      struct cairn_err *err)
{
	bool swap = btf->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
	btf->n_words = size / 4;
	/*
	 * A big-endian blob is copied by a big-endian machine too: v1's 16-bit halves are put in
	 * order.
	 */
	if (!btf->big_endian && !swap && (uintptr_t)types % 4 == 0) {
		btf->words = (const uint32_t *)types;
		return 0;
	}
	btf->words = btf->owned_words = malloc(size ? size : 1);
	if (!btf->words)
		return err_nomem(err, "a copy of BTF records");
	if (size)
		memcpy(btf->owned_words, types, size);
	for (uint32_t i = 0; swap && i < btf->n_words; i++)
		btf->owned_words[i] = __builtin_bswap32(btf->owned_words[i]);
	return 0;
}

static int check_strings(const struct cairn_btf *btf, uint64_t off, struct cairn_err *err)
{
	if (btf->strings_size && btf->strings[btf->strings_size - 1])
		return damaged(err, btf, off + btf->strings_size - 1, "the last string has no end");
	if (btf->base)
		return 0;
	if (!btf->strings_size || btf->strings[0])
		return damaged(err, btf, off,
			       "the strings do not begin with an empty one: this is split BTF, "
			       "which needs its base (-B BASE, parents first)");
	return 0;
}

static int parse_header(struct cairn_btf *btf, const uint8_t *bytes, size_t size,
			struct cairn_err *err)
{
	struct cursor_src src = {btf->name, "BTF", bytes};
	struct cursor c = cursor_of(&src, bytes, size, false, err);
	struct header h = {0};
	int rc = parse_prefix(btf, bytes, size, &c, err);
	if (rc < 0)
		return rc;
	c.end = bytes + btf->header_bytes;
	h.types_off = cur_u32(&c);
	h.types_size = cur_u32(&c);
	h.strings_off = cur_u32(&c);
	h.strings_size = cur_u32(&c);
	if (btf->header_bytes >= BTF_HEADER_NEW) {
		h.layout_off = cur_u32(&c);
		h.layout_size = cur_u32(&c);
	}
	if (c.failed)
		return -EBADMSG;
	rc = check_header(btf, &h, size - btf->header_bytes, err);
	if (rc < 0)
		return rc;
	const uint8_t *body = bytes + btf->header_bytes;
	btf->types_off = btf->header_bytes + h.types_off;
	btf->strings = (const char *)body + h.strings_off;
	btf->strings_size = h.strings_size;
	btf->n_layout = h.layout_size / 4;
	btf->layout_off = btf->header_bytes + h.layout_off;
	btf->layout = btf->n_layout ? body + h.layout_off : NULL;
	rc = check_strings(btf, btf->header_bytes + (uint64_t)h.strings_off, err);
	return rc < 0 ? rc : take_words(btf, body + h.types_off, h.types_size, err);
}

static struct btf_kind_layout layout_entry(const struct cairn_btf *btf, uint32_t kind)
{
	const uint8_t *e = btf->layout + 4 * (size_t)kind;
	uint16_t flags =
		btf->big_endian ? (uint16_t)(e[2] << 8 | e[3]) : (uint16_t)(e[3] << 8 | e[2]);
	return (struct btf_kind_layout){e[0], e[1], flags};
}

bool btf_layout_of(const struct cairn_btf *btf, uint32_t kind, struct btf_kind_layout *ret)
{
	while (btf && kind >= btf->n_layout)
		btf = btf->base;
	if (!btf)
		return false;
	*ret = layout_entry(btf, kind);
	return true;
}

static bool says(struct btf_kind_layout l, const struct btf_shape *shape)
{
	return l.fixed_bytes == 4 * shape->n_fixed && l.elem_bytes == 4 * shape->n_elem;
}

/*
 * The blob's own layout section must agree with the kinds that we know: otherwise two readers would
 * see different records. It also gives the dialect; a blob without one has that of its base.
 */
static int check_layout(struct cairn_btf *btf, struct cairn_err *err)
{
	enum cairn_btf_dialect told = CAIRN_BTF_NO_LOC;
	for (uint32_t kind = 1; kind < btf->n_layout && kind < CAIRN_BTF_N_KINDS; kind++) {
		struct btf_kind_layout l = layout_entry(btf, kind);
		bool n = says(l, btf_shape(kind, CAIRN_BTF_LOC_N));
		bool v1 = says(l, btf_shape(kind, CAIRN_BTF_LOC_V1));
		if (n && v1)
			continue;
		if ((!n && !v1) || told == (n ? CAIRN_BTF_LOC_V1 : CAIRN_BTF_LOC_N))
			return err_set(err, -EBADMSG,
				       "%s: BTF: offset 0x%x: the layout section gives a %s %u "
				       "bytes and %u per "
				       "element, which is not its size",
				       btf->name, btf->layout_off + 4 * kind, btf_kind_name(kind),
				       l.fixed_bytes, l.elem_bytes);
		told = n ? CAIRN_BTF_LOC_N : CAIRN_BTF_LOC_V1;
	}
	if (told == CAIRN_BTF_NO_LOC && btf->base)
		told = btf->base->layout_dialect;
	btf->layout_dialect = told;
	return 0;
}

/*
 * The number of words of the record at @p after the first three. Negative: its kind is not known,
 * and no layout helps.
 */
static int64_t words_of(const struct cairn_btf *btf, const uint32_t *p,
			enum cairn_btf_dialect dialect)
{
	uint32_t kind = BTF_KIND_OF(p[BTF_RECORD_INFO]), vlen = BTF_VLEN_OF(p[BTF_RECORD_INFO]);
	const struct btf_shape *shape = btf_shape(kind, dialect);
	struct btf_kind_layout l;
	if (shape)
		return (int64_t)btf_n_words(shape, kind, vlen);
	if (kind < CAIRN_BTF_N_KINDS || !btf_layout_of(btf, kind, &l) || l.fixed_bytes % 4 ||
	    l.elem_bytes % 4)
		return -1;
	return l.fixed_bytes / 4 + (int64_t)(l.elem_bytes / 4) * vlen;
}

struct walk {
	uint32_t n;      /* records */
	uint32_t bad_at; /* word number of the first that is wrong */
	int bad;         /* 0, -EBADMSG (cut), -EOPNOTSUPP (size not known) */
	bool has_loc, has_param, other_dialect;
	uint32_t first_site; /* word number in the first LOCSEC that has sites; 0: none */
};

static void note_loc(struct walk *w, uint32_t at, uint32_t info, enum cairn_btf_dialect dialect)
{
	uint32_t kind = BTF_KIND_OF(info), vlen = BTF_VLEN_OF(info);
	w->has_loc = true;
	if (kind == CAIRN_BTF_LOCSEC && !w->first_site && vlen)
		w->first_site = at + BTF_RECORD_WORDS;
	if (kind != CAIRN_BTF_LOC_PARAM)
		return;
	w->has_param = true;
	w->other_dialect |= (vlen == 0) != (dialect == CAIRN_BTF_LOC_V1);
}

/* The shapes of all known kinds: to look one up takes most of a walk. */
struct kinds {
	enum cairn_btf_dialect dialect;
	struct btf_shape shapes[BTF_KIND_MAX + 1]; /* known: it is one */
};

static struct kinds kinds_of(enum cairn_btf_dialect dialect)
{
	struct kinds k = {.dialect = dialect};
	for (uint32_t kind = 0; kind < CAIRN_BTF_N_KINDS; kind++) {
		const struct btf_shape *shape = btf_shape(kind, dialect);
		if (shape)
			k.shapes[kind] = *shape;
	}
	return k;
}

static inline int64_t words_after(const struct cairn_btf *btf, const struct kinds *k,
				  const uint32_t *p, uint32_t info)
{
	const struct btf_shape *shape = &k->shapes[BTF_KIND_OF(info)];
	if (!shape->known)
		return words_of(btf, p, k->dialect);
	return (int64_t)btf_n_words(shape, BTF_KIND_OF(info), BTF_VLEN_OF(info));
}

/* Steps over all records; @records, when not NULL, has room for their word numbers. */
static struct walk walk_records(const struct cairn_btf *btf, enum cairn_btf_dialect dialect,
				uint32_t *records)
{
	const struct kinds kinds = kinds_of(dialect);
	struct walk w = {0};
	for (uint32_t at = 0; at < btf->n_words; w.n++) {
		uint32_t left = btf->n_words - at;
		w.bad_at = at;
		w.bad = -EBADMSG;
		if (left < BTF_RECORD_WORDS)
			return w;
		uint32_t info = btf->words[at + BTF_RECORD_INFO];
		int64_t n = words_after(btf, &kinds, btf->words + at, info);
		if (n < 0)
			w.bad = -EOPNOTSUPP;
		if (n < 0 || n > left - BTF_RECORD_WORDS)
			return w;
		if (BTF_KIND_OF(info) - CAIRN_BTF_LOC_PARAM <=
		    (uint32_t)CAIRN_BTF_LOCSEC - CAIRN_BTF_LOC_PARAM)
			note_loc(&w, at, info, dialect);
		if (records)
			records[w.n] = at;
		at += BTF_RECORD_WORDS + (uint32_t)n;
		w.bad = 0;
	}
	return w;
}

static int bad_record(const struct cairn_btf *btf, const struct walk *w, struct cairn_err *err)
{
	uint32_t id = btf->start_id + w->n, kind = 0;
	uint64_t off = btf->types_off + 4ull * w->bad_at;
	if (btf->n_words - w->bad_at > BTF_RECORD_INFO)
		kind = BTF_KIND_OF(btf->words[w->bad_at + BTF_RECORD_INFO]);
	if (w->bad == -EOPNOTSUPP)
		return err_set(err, kind ? w->bad : -EBADMSG,
			       "%s: BTF: record %u at offset 0x%" PRIx64
			       ": kind %u is not known, and no layout "
			       "section gives the size of its records",
			       btf->name, id, off, kind);
	return err_set(err, -EBADMSG,
		       "%s: BTF: record %u (%s) at offset 0x%" PRIx64
		       " ends after the type section, which is "
		       "at 0x%x to 0x%" PRIx64,
		       btf->name, id, btf_kind_name(kind), off, btf->types_off,
		       (uint64_t)btf->types_off + 4 * (uint64_t)btf->n_words);
}

/*
 * For blobs without LOC_PARAM: in N the first word of a site is the id of a FUNC, in v1 a name's
 * offset.
 */
static bool first_site_is_func(const struct cairn_btf *btf, const struct walk *w)
{
	struct cairn_btf_type t;
	return !w->first_site ||
	       (cairn_btf_type(btf, btf->words[w->first_site], &t) && t.kind == CAIRN_BTF_FUNC);
}

/* Room for as many as there can be; what is not used is never in memory. */
static int index_as(struct cairn_btf *btf, enum cairn_btf_dialect dialect, struct cairn_err *err)
{
	free(btf->records);
	btf->records = malloc((btf->n_words / BTF_RECORD_WORDS + 1) * sizeof(*btf->records));
	if (!btf->records)
		return err_nomem(err, "an index of BTF records");
	struct walk w = walk_records(btf, dialect, btf->records);
	if (w.bad)
		return bad_record(btf, &w, err);
	btf->end_id = btf->start_id + w.n;
	btf->dialect = w.has_loc ? dialect : CAIRN_BTF_NO_LOC;
	return 0;
}

/*
 * @dialect  from the layout or the caller; NO_LOC: find out
 */
static int index_records(struct cairn_btf *btf, enum cairn_btf_dialect dialect,
			 struct cairn_err *err)
{
	struct walk n, v1;
	if (dialect != CAIRN_BTF_NO_LOC)
		return index_as(btf, dialect, err);
	n = walk_records(btf, CAIRN_BTF_LOC_N, NULL);
	if (!n.has_loc)
		return index_as(btf, CAIRN_BTF_LOC_N, err);
	v1 = walk_records(btf, CAIRN_BTF_LOC_V1, NULL);
	bool n_fits = !n.bad && !n.other_dialect, v1_fits = !v1.bad && !v1.other_dialect;
	if (!v1_fits || (n_fits && n.has_param))
		return index_as(btf, CAIRN_BTF_LOC_N, err);
	if (!n_fits || v1.has_param)
		return index_as(btf, CAIRN_BTF_LOC_V1, err);
	int rc = index_as(btf, CAIRN_BTF_LOC_N, err);
	if (rc < 0 || first_site_is_func(btf, &n))
		return rc;
	return index_as(btf, CAIRN_BTF_LOC_V1, err);
}

/*
 * Two 16-bit numbers share a word of v1's LOC_PARAM: the register low, its flags high, on any
 * machine.
 */
static void order_halves(struct cairn_btf *btf)
{
	for (uint32_t id = btf->start_id; id < btf->end_id; id++) {
		uint32_t *p = btf->owned_words + btf->records[id - btf->start_id];
		uint32_t info = p[BTF_RECORD_INFO];
		if (BTF_KIND_OF(info) == CAIRN_BTF_LOC_PARAM && !BTF_KFLAG_OF(info))
			p[BTF_RECORD_WORDS] = p[BTF_RECORD_WORDS] << 16 | p[BTF_RECORD_WORDS] >> 16;
	}
}

/*
 * A base that is not the one the blob was split from gives wrong names and types without any offset
 * being out of range. But names then point into the middle of strings, because writers share whole
 * strings only.
 */
static int check_base(const struct cairn_btf *btf, struct cairn_err *err)
{
	for (uint32_t id = btf->start_id; btf->base && id < btf->end_id; id++) {
		uint32_t name = btf_record(btf, id)[BTF_RECORD_NAME];
		if (name < btf_end_string(btf) && btf_string_starts(btf, name))
			continue;
		return err_set(err, -EBADMSG,
			       "%s: BTF: record %u at offset 0x%" PRIx64
			       ": its name is at %u, where no string "
			       "begins: %s is not the base that this was split from",
			       btf->name, id, btf_record_off(btf, id), name, btf->base->name);
	}
	return 0;
}

int btf_parse(struct cairn_btf *btf, const void *bytes, size_t size, enum cairn_btf_dialect dialect,
	      struct cairn_err *err)
{
	if (size > BLOB_BYTES_MAX)
		return err_set(err, -ERANGE, "%s: BTF of %zu bytes; the limit is 2 GiB", btf->name,
			       size);
	btf->raw = bytes;
	btf->raw_size = size;
	btf->start_id = btf->end_id = btf->base ? btf->base->end_id : 1;
	btf->start_string = btf->base ? btf_end_string(btf->base) : 0;
	int rc = parse_header(btf, bytes, size, err);
	if (rc < 0)
		return rc;
	if (btf->strings_size > INT32_MAX - btf->start_string ||
	    btf->n_words / BTF_RECORD_WORDS > INT32_MAX - btf->start_id)
		return err_set(err, -ERANGE,
			       "%s: BTF: with its bases more than 2^31 ids or bytes of strings",
			       btf->name);
	rc = check_layout(btf, err);
	if (rc == 0 && btf->layout_dialect != CAIRN_BTF_NO_LOC)
		dialect = btf->layout_dialect;
	if (rc == 0)
		rc = index_records(btf, dialect, err);
	if (rc == 0 && btf->big_endian && btf->dialect == CAIRN_BTF_LOC_V1)
		order_halves(btf);
	return rc < 0 ? rc : check_base(btf, err);
}
