/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries of .eh_frame, as far as their ranges
 *
 *	CIE  u32 length | u32 0 | version | "zR" NUL | code align | data align | register |
 *	     augmentation bytes | program
 *	FDE  u32 length | u32 back to its CIE, from here | begin | bytes | augmentation | program
 *
 * R gives the encoding of begin: 0x1b is relative to itself, in 32 bits. The bytes are the
 * program's own, and the unwinder would trust them just as much. The only check is that a walk
 * ends.
 */
#include "fde.h"

#include <stddef.h>
#include <string.h>

enum {
	ENTRIES_MAX = 1 << 22, /* a section of 100 MB; more means that the end mark is missing */
	LENGTH_MAX = 1 << 24,
	PE_OMIT = 0xff,
	PE_INDIRECT = 0x80,
};

struct entry {
	const uint8_t *at, *id, *end; /* id: the word after the length */
};

static uint64_t read_word(const uint8_t *at, size_t n)
{
	uint64_t word = 0;
	memcpy(&word, at, n);
	return word;
}

static bool read_entry(const uint8_t *at, struct entry *ret)
{
	uint64_t length = read_word(at, 4);
	*ret = (struct entry){.at = at, .id = at + 4};
	if (length == UINT32_MAX) {
		length = read_word(at + 4, 8);
		ret->id = at + 12;
	}
	if (length < 4 || length > LENGTH_MAX)
		return false;
	ret->end = ret->id + length;
	return true;
}

static uint64_t read_uleb(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;
	for (unsigned shift = 0; *at < end; shift += 7) {
		uint8_t byte = *(*at)++;
		value |= shift < 64 ? (uint64_t)(byte & 0x7f) << shift : 0;
		if (!(byte & 0x80))
			break;
	}
	return value;
}

/*
 * Bytes of a pointer that is written as @encoding; 0: of changing length, which pointers to code do
 * not have.
 */
static size_t pointer_bytes(uint8_t encoding)
{
	static const uint8_t bytes[8] = {sizeof(void *), 0, 2, 4, 8};
	return bytes[encoding & 7];
}

static bool read_pointer(uint8_t encoding, const uint8_t *at, uint64_t *ret)
{
	size_t n = pointer_bytes(encoding);
	uint64_t value = read_word(at, n), sign = n ? UINT64_C(1) << (8 * n - 1) : 0;
	if (!n || encoding & PE_INDIRECT)
		return false;
	if (encoding & 8)
		value = (value ^ sign) - sign;
	/*
	 * Relative to a base that only the unwinder knows: no compiler for 64 bits writes that.
	 */
	if (encoding & 0x60)
		return false;
	*ret = encoding & 0x10 ? value + (uintptr_t)at : value;
	return true;
}

/* How the CIE's FDEs write addresses; PE_OMIT: not understood. */
static uint8_t encoding_of(const struct entry *cie)
{
	const uint8_t *at = cie->id + 4, *end = cie->end;
	if (end - at < 2)
		return PE_OMIT;
	uint8_t version = *at++;
	const char *augmentation = (const char *)at;
	at += strnlen(augmentation, (size_t)(end - at)) + 1;
	if (*augmentation != 'z')
		return *augmentation ? PE_OMIT : 0;
	read_uleb(&at, end); /* code alignment */
	read_uleb(&at, end); /* data alignment: as long as a signed one */
	if (version == 1)
		at++;
	else
		read_uleb(&at, end);
	read_uleb(&at, end);
	for (const char *c = augmentation + 1; *c && at < end; c++) {
		if (*c == 'R')
			return *at;
		if (*c == 'L')
			at++;
		else if (*c == 'P')
			at += 1 + pointer_bytes(*at);
		else if (*c != 'S' && *c != 'B')
			return PE_OMIT;
	}
	return 0;
}

/* Is there room for @n bytes at @at? */
static bool is_within(const struct fde_walk *walk, const uint8_t *at, uint64_t n)
{
	if (!walk->end)
		return true;
	return at >= walk->begin && at <= walk->end && n <= (uint64_t)(walk->end - at);
}

static bool read_entry_within(const struct fde_walk *walk, const uint8_t *at, struct entry *ret)
{
	/* The longest head is 4 + 8 bytes, and the id. */
	bool has_head = is_within(walk, at, 16) ||
			(is_within(walk, at, 8) && read_word(at, 4) != UINT32_MAX);
	return has_head && read_entry(at, ret) && is_within(walk, at, (uint64_t)(ret->end - at));
}

static bool read_fde(const struct fde_walk *walk, const struct entry *fde, struct fde *ret)
{
	struct entry cie;
	uint64_t lo, n;
	if (!read_entry_within(walk, fde->id - read_word(fde->id, 4), &cie))
		return false;
	uint8_t encoding = encoding_of(&cie);
	size_t bytes = encoding == PE_OMIT ? 0 : pointer_bytes(encoding);
	const uint8_t *at = fde->id + 4;
	if (!bytes || at + 2 * bytes > fde->end || !read_pointer(encoding, at, &lo))
		return false;
	n = read_word(at + bytes, bytes);
	/* A linker sets begin to 0 in the FDE of a function that it dropped. */
	if (!lo || !n || lo + n < lo)
		return false;
	*ret = (struct fde){lo, lo + n, (uintptr_t)cie.at};
	return true;
}

bool fde_is_one(const void *begin)
{
	struct entry entry;
	return read_entry(begin, &entry) && read_word(entry.id, 4) != 0;
}

void fde_walk_begin_within(struct fde_walk *walk, const void *begin, uint64_t n_bytes)
{
	fde_walk_begin(walk, begin, FDE_RUN_SECTION);
	walk->end = walk->begin + n_bytes;
}

void fde_walk_begin(struct fde_walk *walk, const void *begin, enum fde_run run)
{
	*walk = (struct fde_walk){.begin = begin, .at = begin, .run = run};
}

bool fde_walk_next(struct fde_walk *walk, struct fde *ret)
{
	struct entry entry;
	while (walk->n < ENTRIES_MAX && (walk->run == FDE_RUN_SECTION || !walk->n)) {
		if (!read_entry_within(walk, walk->at, &entry)) {
			walk->at += 4;
			return false;
		}
		walk->n++;
		walk->at = entry.end;
		if (read_word(entry.id, 4) && read_fde(walk, &entry, ret))
			return true;
	}
	return false;
}
