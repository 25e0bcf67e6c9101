/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads a blob in memory, for the files of this module
 *
 * Its type section is an array of words of this machine's byte order. It is used in place if the
 * input has that order and is aligned, else it is a copy. records[] has the number of the first
 * word of each own record, so that a record is found by id without a search.
 */
#ifndef BTF_BTF_H
#define BTF_BTF_H

#include <cairn/btf.h>

#include "btf/shape.h"

struct elf;
struct btf_names;

/* One entry of the layout section: the size of a kind's records, which is the entry's index. */
struct btf_kind_layout {
	uint8_t fixed_bytes, elem_bytes;
	uint16_t flags;
};

struct cairn_btf {
	const struct cairn_btf *base;
	char *name;      /* for errors */
	struct elf *elf; /* that the bytes are in, or NULL */
	void *map;       /* mapping that the bytes are in, or NULL */
	size_t map_size;
	const uint8_t *raw; /* the blob as it was read */
	size_t raw_size;
	uint8_t flags;         /* of the header */
	uint32_t header_bytes; /* hdr_len; offsets in the blob count from its end */
	uint32_t types_off;    /* of the type section, from the start of the blob */
	const uint32_t *words; /* type section */
	uint32_t *owned_words; /* the same when it is a copy */
	uint32_t n_words;
	const char *strings; /* string section, ends with NUL unless it is empty */
	uint32_t strings_size;
	const uint8_t *layout; /* layout section, 4 bytes per kind; NULL: none */
	uint32_t n_layout;
	uint32_t layout_off; /* of it, from the start of the blob */
	/* the dialect that it, or a base, states for LOC kinds; NO_LOC: none */
	enum cairn_btf_dialect layout_dialect;
	uint32_t *records;         /* word number of each own record */
	uint32_t start_id, end_id; /* own ids */
	uint32_t start_string;     /* string offset that the own strings begin at */
	enum cairn_btf_dialect dialect;
	bool big_endian;
	bool gap;                /* bytes that belong to no section; check reports it */
	struct btf_names *names; /* made by the first cairn_btf_find() */
};

/*
 * btf_parse - check and index a blob; the second half of opening
 *
 * @btf      zeroed but for base, name, elf, map; closed by the caller, also on an error
 * @dialect  of LOC kinds if the blob does not show it; NO_LOC: find out
 */
int btf_parse(struct cairn_btf *btf, const void *bytes, size_t size, enum cairn_btf_dialect dialect,
	      struct cairn_err *err);

/*
 * The entry of @kind in the layout section of @btf or the nearest of its bases that has one; false:
 * none.
 */
bool btf_layout_of(const struct cairn_btf *btf, uint32_t kind, struct btf_kind_layout *ret);

/* The blob of the chain that has @id as its own; NULL: none. */
const struct cairn_btf *btf_owner(const struct cairn_btf *btf, uint32_t id);

/* First word of an own record. */
static inline const uint32_t *btf_record(const struct cairn_btf *btf, uint32_t id)
{
	return btf->words + btf->records[id - btf->start_id];
}

/* Kind of a record of @btf or its bases; @id has to be below end_id, and not 0. */
static inline uint32_t btf_kind_at(const struct cairn_btf *btf, uint32_t id)
{
	while (id < btf->start_id)
		btf = btf->base;
	return BTF_KIND_OF(btf_record(btf, id)[BTF_RECORD_INFO]);
}

/* Offset of an own record in the blob, in bytes. */
static inline uint64_t btf_record_off(const struct cairn_btf *btf, uint32_t id)
{
	return btf->types_off + 4ull * btf->records[id - btf->start_id];
}

/* Words of an own record, the first three included. */
static inline uint32_t btf_record_size(const struct cairn_btf *btf, uint32_t id)
{
	uint32_t i = id - btf->start_id;
	uint32_t end = id + 1 < btf->end_id ? btf->records[i + 1] : btf->n_words;
	return end - btf->records[i];
}

/*
 * Offset of an own string in the blob, or a base's; true when @off is 0 or the first byte of a
 * string.
 */
bool btf_string_starts(const struct cairn_btf *btf, uint32_t off);

/* One past the last string offset of @btf and its bases. */
static inline uint32_t btf_end_string(const struct cairn_btf *btf)
{
	return btf->start_string + btf->strings_size;
}

void btf_names_free(struct btf_names *names);

/*
 * btf_verdict - the end of a function that made something of @btf
 *
 * @rc    what the function returns otherwise
 * @made  freed if the bytes are not reliable; NULL: there is nothing to free
 * Returns -EBADMSG (err: the file) if a file of @btf or of a base became shorter, which also
 * explains a damage that was found; else @rc. @btf may be NULL.
 */
int btf_verdict(const struct cairn_btf *btf, int rc, void **made, struct cairn_err *err);

#endif
