/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shapes: the meaning of the words of a record, for each kind
 *
 * A record is three words (name, info, size or id), then a fixed part, then vlen elements:
 *
 *	OFFSET              SIZE             MEANING
 *	0                   4                name, an offset in the strings
 *	4                   4                info: bits 0-23 vlen, 24-30 kind, 31 kflag
 *	8                   4                size, or the id of another type, or unused
 *	12                  4 * n_fixed      the fixed part
 *	12 + 4 * n_fixed    4 * n_elem * vlen
 *
 * All code that walks, rewrites, compares and checks records reads this one table. So a new kind is
 * a new row: add it to enum cairn_btf_kind, to the table in shape.c, to the rules in check_kind.c,
 * and to the printers.
 */
#ifndef BTF_SHAPE_H
#define BTF_SHAPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/btf.h>

#define BTF_BLOB_MAGIC   0xeb9f
#define BTF_BLOB_VERSION 1
#define BTF_HEADER_OLD   24 /* bytes; without the site of a layout section */
#define BTF_HEADER_NEW   32

#define BTF_VLEN_MAX 0xffffff
#define BTF_KIND_MAX 0x7f

#define BTF_INFO(kind, kflag, vlen) ((uint32_t)(kflag) << 31 | (uint32_t)(kind) << 24 | (vlen))
#define BTF_KIND_OF(info)           ((info) >> 24 & BTF_KIND_MAX)
#define BTF_VLEN_OF(info)           ((info)&BTF_VLEN_MAX)
#define BTF_KFLAG_OF(info)          ((info) >> 31)

enum { BTF_RECORD_NAME, BTF_RECORD_INFO, BTF_RECORD_REF, BTF_RECORD_WORDS }; /* word numbers */

struct btf_shape {
	uint8_t n_fixed, n_elem; /* words */
	bool ref_is_id;
	uint8_t fixed_ids;            /* bit i: word i of the fixed part is an id */
	uint8_t elem_ids, elem_names; /* the same of an element's words: ids, string offsets */
	bool known;                   /* false: only the sizes are, from a layout section */
};

/*
 * The shape of a known kind; NULL for VOID, for kinds above the last, and for LOC kinds without a
 * dialect.
 */
const struct btf_shape *btf_shape(uint32_t kind, enum cairn_btf_dialect dialect);

/* FUNC keeps its linkage where others keep a count. */
static inline uint32_t btf_n_elems(uint32_t kind, uint32_t vlen)
{
	return kind == CAIRN_BTF_FUNC ? 0 : vlen;
}

/*
 * The number of words after the first three; at most 3 * 2^24 for known kinds, so that 64 bits
 * always suffice.
 */
static inline uint64_t btf_n_words(const struct btf_shape *shape, uint32_t kind, uint32_t vlen)
{
	return shape->n_fixed + (uint64_t)shape->n_elem * btf_n_elems(kind, vlen);
}

/* "STRUCT" and so on; "UNKNOWN" for others. */
const char *btf_kind_name(uint32_t kind);

/*
 * One pass over the words of a record that are ids (the third word first, if it is one), or over
 * those that are string offsets (the record's own name first).
 *
 *	struct btf_fields f = btf_ids_of(shape, record);
 *	for (uint32_t *id; (id = btf_next(&f));)
 *		*id = map[*id];
 */
struct btf_fields {
	uint32_t *first;   /* NULL when it was given, or is none */
	uint32_t *p, *end; /* next word; end of the record */
	uint8_t elem_mask, n_elem;
	uint8_t mask, left; /* of the words left in this element, or in the fixed part */
};

static inline struct btf_fields btf_fields_of(const struct btf_shape *shape, uint32_t *record,
					      uint8_t fixed_mask, uint8_t elem_mask)
{
	uint32_t info = record[BTF_RECORD_INFO];
	uint32_t *words = record + BTF_RECORD_WORDS;
	uint64_t n = elem_mask ? btf_n_words(shape, BTF_KIND_OF(info), BTF_VLEN_OF(info))
			       : shape->n_fixed;
	return (struct btf_fields){
		.p = words,
		.end = words + n,
		.elem_mask = elem_mask,
		.n_elem = shape->n_elem,
		.mask = fixed_mask,
		.left = shape->n_fixed,
	};
}

/* @record  its first word; the words that its info and @shape demand are there */
static inline struct btf_fields btf_ids_of(const struct btf_shape *shape, uint32_t *record)
{
	struct btf_fields f = btf_fields_of(shape, record, shape->fixed_ids, shape->elem_ids);
	if (shape->ref_is_id)
		f.first = &record[BTF_RECORD_REF];
	return f;
}

static inline struct btf_fields btf_names_of(const struct btf_shape *shape, uint32_t *record)
{
	struct btf_fields f = btf_fields_of(shape, record, 0, shape->elem_names);
	f.first = &record[BTF_RECORD_NAME];
	return f;
}

/* The next one, or NULL. */
static inline uint32_t *btf_next(struct btf_fields *f)
{
	if (f->first) {
		uint32_t *first = f->first;
		f->first = NULL;
		return first;
	}
	while (f->p < f->end) {
		if (!f->left) {
			f->left = f->n_elem;
			f->mask = f->elem_mask;
		}
		bool hit = f->mask & 1;
		uint32_t *word = f->p++;
		f->mask >>= 1;
		f->left--;
		if (hit)
			return word;
	}
	return NULL;
}

#endif
