/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sections of a sidecar: names, numbers, and records; docs/formats/sidecar.md has the tables
 *
 * All numbers are little-endian. Data for random access is in tables of equal records (bits.h).
 * Data read in sequence is LEB128 numbers; signed ones are folded first (0, -1, 1, -2 are 0, 1, 2,
 * 3). Addresses are distances from the base in the header.
 */
#ifndef SIDECAR_FORMAT_H
#define SIDECAR_FORMAT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sidecars are used as they are mapped");

#define SIDECAR_MAGIC "cairnpk"

enum {
	/*
	 * A reader knows this version and no other. Raised when the same bytes would say something
	 * else.
	 */
	SIDECAR_VERSION = 6,

	/*
	 * Raised whenever the same binary would give other sites, locations, chains or lines than
	 * before, in the same format. So a user with only an older sidecar gets a note.
	 */
	SIDECAR_ANALYSIS = 10,

	/*
	 * Bytes of code that a page describes; with this size, the offset of a row in it is one
	 * byte.
	 */
	SIDECAR_PAGE_SIZE = 256,

	/* Bytes of code per hash in .cairn.binding, and bytes of the hash. */
	SIDECAR_CODE_PAGE = 4096,
	SIDECAR_CODE_HASH = 16,

	/* In the first byte of a location: the rest of it is an enum cairn_quirk. */
	LOCATION_BY_QUIRK = 0x80,

	SIDECAR_FRAMES_PER_BLOCK = 16,
	SIDECAR_MARKS_PER_BLOCK = 16,
};

/* .cairn.symbols is made of a .symtab: it has all functions, also those that are not exported. */
#define SIDECAR_HAS_SYMTAB 1u

struct sidecar_header {
	char magic[8];
	uint32_t version;
	uint32_t header_size; /* of this struct, as the writer knew it */
	uint64_t base;        /* link-time address that all others count from */
	uint32_t span;        /* bytes of code from there: every address is below */
	uint32_t n_frames;
	uint32_t analysis;    /* SIDECAR_ANALYSIS */
	uint32_t maker;       /* fingerprint of the sources that made it: fingerprint.py */
	uint32_t string_max;  /* bytes of the longest string, with its NUL */
	uint32_t n_left_out;  /* units that are damaged, and are not in it */
	uint32_t flags;       /* SIDECAR_HAS_SYMTAB */
	uint32_t debug_names; /* elf_names_print() of the separate debug file; 0: there was none */
};
_Static_assert(sizeof(struct sidecar_header) == 56, "the header has no holes");

/* .cairn.binding: this, the segments, the hashes. */
struct sidecar_binding {
	uint32_t n_loads;
	uint32_t n_pages;  /* hashes */
	uint32_t is_bound; /* 0: made of a file without code */
	uint32_t names;    /* elf_names_print() of that file; 0: it had none */
};
_Static_assert(sizeof(struct sidecar_binding) == 16, "the binding has no holes");

/* .cairn.kernel_btf: of a kernel or a module that has BTF. */
struct sidecar_kernel_btf {
	uint64_t size; /* of its .BTF */
	uint8_t sha256[32];
};
_Static_assert(sizeof(struct sidecar_kernel_btf) == 40, "the hash has no holes");

struct sidecar_load {
	uint64_t at, size; /* in memory */
	/* that have hashes: all that the file has of an executable segment; else 0 */
	uint64_t n_bytes;
	uint32_t flags; /* PF_* */
	uint32_t first_page;
};
_Static_assert(sizeof(struct sidecar_load) == 32, "a segment has no holes");

/* SYMBOL_KIND: a function or global label; its rest after another that lies in it; a local one. */
enum {
	SYMBOL_KIND_START = 0,
	SYMBOL_KIND_REST,
	SYMBOL_KIND_LOCAL_LABEL,
};

/* Fields of tables. Strings are offsets in .cairn.strings, 0 none. */
enum {
	/* .cairn.symbols: [at, at + size) is named. Sorted, without overlaps. */
	SYMBOL_AT = 0,
	SYMBOL_SIZE,
	/* string; of a rest: the number of the record with the symbol's start and name */
	SYMBOL_NAME,
	SYMBOL_KIND,

	/* .cairn.functions; number 0 is a function of which nothing is known. */
	FUNCTION_NAME = 0,
	FUNCTION_LINKAGE,
	FUNCTION_FILE, /* number of a file; 0 none */
	FUNCTION_LINE,

	/*
	 * .cairn.pages: stretches of code, sorted; the bytes between them (data, in a kernel) need
	 * no pages.
	 */
	SPAN_AT = 0,
	SPAN_SIZE,
	SPAN_FIRST_PAGE, /* its number */

	/* .cairn.parameters */
	PARAMETER_NAME = 0,
	PARAMETER_TYPE,

	/*
	 * .cairn.type_names: in the order of the debug information: definitions, typedefs, types of
	 * functions.
	 */
	TYPE_NAME_TYPE = 0,
	TYPE_NAME_KIND,   /* 0; 1: a typedef or a base type; 2: a function's own */
	TYPE_NAME_SCOPED, /* of a function's own: string, "ns::f::inner" */

	/* .cairn.addresses: the names of locations' addresses. Sorted. */
	ADDRESS_HIGH = 0, /* bits 32 and up */
	ADDRESS_LOW,
	ADDRESS_NAME,
};

/*
 * Widths of the bit fields before a page, in this order. Two more fields come next, and the tables'
 * sizes give their widths: the base of the page's frame numbers, and the first symbol that ends
 * after the start of the page.
 */
enum {
	PAGE_ROWS_WIDTH = 8,     /* number of rows - 1 */
	PAGE_CONTEXTS_WIDTH = 8, /* number of contexts - 1 */
	PAGE_WIDTH_WIDTH = 6,    /* each of the widths of: frame, base, line, column */

	/*
	 * Before a block of frames: widths of distance, line and column; whether calls have files
	 * of their own.
	 */
	FRAMES_WIDTH_WIDTH = 6,
	FRAMES_HEAD_WIDTH = 3 * FRAMES_WIDTH_WIDTH + 1,
};

/* Functions of .cairn.sites. */
enum {
	/* file and line follow: they are not those of a function in .cairn.functions */
	SITES_OWN_FUNCTION = 1 << 0,
	SITES_OWN_NAME = 1 << 1, /* name and linkage name follow */
	/* a byte before each site tells whether the site is in full, or a frame's mark */
	SITES_OWN_SITES = 1 << 2,
};

/* Flags of a site in full; of a mark the first three, in its attrs. */
enum {
	SITE_HAS_OFF = 1 << 0, /* it is in the file */
	SITE_HAZARD = 1 << 1,  /* follows */
	SITE_DOUBTS = 1 << 2,  /* count_caveats and n_bypasses follow */
	/* container, and chain in full, instead of the number of its frame */
	SITE_OWN_CHAIN = 1 << 3,
	/* number, and of each name and type: not the function's parameters */
	SITE_OWN_ARGS = 1 << 4,
};

enum {
	PROTOTYPE_VARIADIC = 1 << 0,
	PROTOTYPE_PARAMS_UNKNOWN = 1 << 1,

	/*
	 * Facts of a type; the fields of its record follow in this order except for the inside,
	 * which is last.
	 */
	TYPE_NAME = 1 << 0,
	TYPE_SIZE = 1 << 1, /* not sidecar_usual_size() */
	TYPE_REF = 1 << 2,
	TYPE_BARE_NAME = 1 << 3,
	TYPE_ENCODING = 1 << 4,
	TYPE_HAS_COUNT = 1 << 5, /* follows */
	TYPE_INSIDE = 1 << 6,    /* members, enumerators or parameters */
	TYPE_DECLARATION = 1 << 7,
	TYPE_PROTOTYPED = 1 << 8,
	TYPE_VARIADIC = 1 << 9,
	TYPE_VECTOR = 1 << 10,
	TYPE_BYTE_SWAPPED = 1 << 11,
	TYPE_CONTAINER = 1 << 12,
	TYPE_ALIGN = 1 << 13,
	TYPE_IS_VARIANT = 1 << 15,
	TYPE_VARIANTS = 1 << 14, /* of a union: after its members, which of them is there */

	MEMBER_NAME = 1 << 0,
	MEMBER_BITS = 1 << 1, /* of a bit-field */
	MEMBER_DYNAMIC = 1 << 2,
	MEMBER_BASE = 1 << 3,
	MEMBER_ALIGN = 1 << 4,
	MEMBER_OFF_IN_BITS = 1 << 5,
	MEMBER_DISCRIMINANT = 1 << 6,
};

/*
 * .cairn.symbol_names: sorted by name, then functions by number, then bare addresses. They give the
 * meaning of a name that no function has: the functions that begin at its symbol's addresses, the
 * addresses where nothing describes the code, or that the binary imports it.
 */
struct sidecar_symbol_name {
	uint32_t name; /* string */
	uint32_t at;   /* of a bare one */
	/* SYMBOL_*, with a function's number, or of a bare one its enum cairn_hazard */
	uint32_t what;
	uint32_t off; /* file offset of a bare one; SYMBOL_NOWHERE: none */
};
#define SYMBOL_INDIRECT                                                                            \
	0x80000000u /* one of the implementations; bare and nowhere: they are not known */
#define SYMBOL_IMPORTED      0x40000000u
#define SYMBOL_BARE          0x20000000u
/*
 * A split-off part of a function begins at the symbol. It has two records. A pattern, which finds
 * functions, finds the function by the one. The name alone finds the part by the other, which is
 * bare.
 */
#define SYMBOL_PART          0x10000000u
#define SYMBOL_FUNCTION_MASK 0x0fffffffu
#define SYMBOL_NOWHERE       0xffffffffu

#endif
