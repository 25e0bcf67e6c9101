/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sections of a sidecar: names, numbers, and what a record is; docs/formats/sidecar.md has the tables
 *
 * Everything is little-endian, and arrays of 32-bit numbers are aligned, so that they are used where they are mapped.
 * Numbers of variable length are LEB128. Signed ones are folded first (0, -1, 1, -2 are 0, 1, 2, 3).
 * Addresses are distances from the base in the header.
 */
#ifndef PACK_FORMAT_H
#define PACK_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sidecars are used as they are mapped");

#define PACK_MAGIC "cairnpk"

enum {
	/* A reader knows versions up to its own; it refuses higher ones. */
	PACK_VERSION = 1,

	/*
	 * Raised whenever the same binary would give other places, locations, chains or lines than before, in the same
	 * format, so that who has nothing but an older sidecar is told. In the cache the maker has to be the same (find.c).
	 */
	PACK_ANALYSIS = 1,

	/* Bytes of code that a page describes: a power of two. More make the index smaller and a lookup slower. */
	PACK_PAGE_SIZE = 512,

	PACK_FRAMES_PER_BLOCK = 4,
};

struct pack_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this struct, as the writer knew it */
	uint64_t base;	      /* link-time address that all others count from */
	uint32_t span;	      /* bytes of code from there: every address is below */
	uint32_t n_frames;
	uint32_t page_size; /* PACK_PAGE_SIZE */
	uint32_t n_spans;   /* in .cairn.pages */
	uint32_t analysis;  /* PACK_ANALYSIS */
	uint32_t maker;	    /* fingerprint of the sources that made it: fingerprint.py */
};
_Static_assert(sizeof(struct pack_header) == 48, "the header has no holes");

/* .cairn.symbols: [at, at + size) is named. Sorted, without overlaps. */
struct pack_symbol {
	uint32_t at;
	uint32_t size; /* with PACK_SYMBOL_REST */
	uint32_t name; /* string; of a rest: the number of the record with the symbol's start and name */
};
/* The rest of a symbol behind another one that lies in it. */
#define PACK_SYMBOL_REST 0x80000000u

/* .cairn.functions; number 0 is a function of which nothing is known. */
struct pack_function {
	uint32_t name, linkage; /* strings; 0 none */
	uint32_t file;		/* number of a file; 0 none */
	uint32_t line;
};

/*
 * .cairn.pages: n_spans of struct pack_span, sorted; then where each page begins in .cairn.code, and the end of
 * the last. Spans are stretches of code, so that what lies between them (data, in a kernel) needs no pages.
 */
struct pack_span {
	uint32_t at, size;
	uint32_t first_page; /* its number */
};

/*
 * A page of .cairn.code; empty when nothing is known about its code:
 *	symbol     number of the first symbol that ends behind the start of the page
 *	frames     length of what follows in bytes; then the innermost frame at the start of the page, then for each
 *	           change the distance to the one before it (at first: to the start of the page) and the frame
 *	lines      the position at the start of the page, then for each change the distance and the position, up
 *	           to the end of the page
 *
 * A frame is 0 for none, else 1 + the folded difference to the frame before that was one; at first to 0. Frames
 * count from 1 here.
 *
 * A position is one byte, slot << 6 | delta. Slots 0 to 2 are the files used last in this page, each with its last line,
 * and delta is the folded difference to that; slot 3 is a further file: its number follows, then the line above its
 * lowest 6 bits, which are delta. Then comes the column.
 */
enum {
	PACK_SLOT_NEW = 3,
	PACK_DELTA_BITS = 6,
	PACK_DELTA_NOWHERE = 62, /* with slot 0: no position is known; nothing follows */
	PACK_DELTA_MORE = 63,	 /* the folded difference follows */
	PACK_BYTE_MORE = 255,	 /* of a distance or column: what is beyond follows */
};

/*
 * A frame: one byte
 *	SAME_FILE | distance to the parent (0: out-of-line function; PARENT_MORE: what is beyond follows)
 * then its function; of a copy then the call: file (unless the same as that of the copy before in this
 * block, or 0), line (folded difference to that of the copy before, or from 0), column.
 */
enum {
	PACK_PARENT_MORE = 63,
	PACK_SAME_FILE = 1 << 6,
};

/*
 * A function of .cairn.places: strings and types by number, LEB128
 *	name, linkage name, file, line, flags, return type, copies without code,
 *	number of parameters: name, type; number of places
 * A place: PLACE_* flags, kind | rule << 2, difference of the address to the place before (at first to the base), of its DIE;
 * then what its flags say, then for each argument its location: an offset in .cairn.locations.
 */
enum {
	PLACE_HAS_OFF = 1 << 0,	    /* it is in the file, as far from its address as that of the place before */
	PLACE_NEW_OFF = 1 << 1,	    /* the difference follows: it is another one */
	PLACE_HAZARD = 1 << 2,	    /* follows */
	PLACE_DOUBTS = 1 << 3,	    /* count_doubts and n_behind follow */
	PLACE_OWN_CHAIN = 1 << 4,   /* container, and chain in full, instead of the number of its frame */
	PLACE_OWN_ARGS = 1 << 5,    /* number, and of each name and type: not the function's parameters */

	FUNCTION_VARIADIC = 1 << 0,
	FUNCTION_PARAMS_UNKNOWN = 1 << 1,

	TYPE_BARE_NAME = 1 << 0,
	TYPE_DECLARATION = 1 << 1,
	TYPE_UNREAD = 1 << 2,
	TYPE_PROTOTYPED = 1 << 3,
	TYPE_VARIADIC = 1 << 4,
	TYPE_HAS_COUNT = 1 << 5,
	TYPE_VECTOR = 1 << 6,
};

/* .cairn.addresses: what a location's address is called. Sorted. */
struct pack_address {
	uint64_t at;
	uint32_t name, reserved;
};

/*
 * .cairn.symbol_names: sorted by name, then functions by number, then bare addresses. What a name means that no function
 * has: the functions that begin at its symbol's addresses, those addresses where nothing describes the code, or that
 * the binary takes it from elsewhere.
 */
struct pack_symbol_name {
	uint32_t name; /* string */
	uint32_t at;   /* of a bare one */
	uint32_t what; /* SYMBOL_*, with a function's number, or of a bare one its enum cairn_hazard */
	uint32_t off;  /* file offset of a bare one; SYMBOL_NOWHERE: none */
};
#define SYMBOL_INDIRECT 0x80000000u /* one of the implementations; bare and nowhere: they are not known */
#define SYMBOL_IMPORTED 0x40000000u
#define SYMBOL_BARE 0x20000000u
#define SYMBOL_FUNCTION_MASK 0x1fffffffu
#define SYMBOL_NOWHERE 0xffffffffu

#endif
