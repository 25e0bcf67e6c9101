/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inside of the writer of .cairn.dwarf: DIEs of one unit, and references that are filled in when
 * all units are known
 *
 * An abbreviation is identified by a DIE's parts. All possible ones are numbered, and the table has
 * them all.
 */
#ifndef SIDECAR_REDUCED_OUT_H
#define SIDECAR_REDUCED_OUT_H

#include "base/vec.h"
#include "dwarf/dwarf.h"
#include "sidecar/bytes.h"

/* Abbreviations: a base, plus bits for the parts of the DIE. */
enum {
	OUT_UNIT = 1,
	OUT_BASE_TYPE,
	OUT_OBJECT, /* stand-in of a type */
	OUT_OBJECT_BY_REF,
	OUT_REMOVED, /* stands for a parameter that GCC removed */
	OUT_CALL,
	OUT_PASSED, /* + OUT_PASSED_*, of which there is one */

	OUT_PASSED_REG = 1 << 0,
	OUT_PASSED_REMOVED = 1 << 1,
	OUT_PASSED_KINDS = 1 << 2,

	OUT_FORMAL = OUT_PASSED + OUT_PASSED_KINDS,
	/* The formal's identity: 0 if no query needs it. */
	OUT_FORMAL_COPY = 1,      /* with an origin */
	OUT_FORMAL_OWN = 2,       /* with the number of its type */
	OUT_FORMAL_NAMED = 3,     /* and a name */
	OUT_FORMAL_TYPE = 1 << 2, /* with a stand-in */
	OUT_FORMAL_KINDS = 1 << 3,
	/* Times the location. */
	OUT_AT_NONE = 0,
	OUT_AT_EXPR,
	OUT_AT_LIST,
	OUT_AT_NUMBER,
	OUT_AT_BYTES,
	OUT_AT_ODD, /* a constant of a class that is none */
	OUT_AT_KINDS,

	OUT_COPY = OUT_FORMAL + OUT_FORMAL_KINDS * OUT_AT_KINDS,
	OUT_COPY_ORIGIN = 1 << 0,
	OUT_COPY_NAME = 1 << 1,
	OUT_COPY_RANGES = 1 << 2, /* else one range */
	OUT_COPY_REMOVED = 1 << 3,
	OUT_COPY_KINDS = 1 << 4,

	OUT_FUNCTION = OUT_COPY + OUT_COPY_KINDS,
	OUT_FUNCTION_ORIGIN = 1 << 0,
	OUT_FUNCTION_NAME = 1 << 1,
	/* Times the code, times the frame base (OUT_AT_NONE, _EXPR, _LIST). */
	OUT_FUNCTION_KINDS = 1 << 2,
	OUT_CODE_NONE = 0,
	OUT_CODE_RANGE,
	OUT_CODE_RANGES,
	OUT_CODE_RANGE_ENTRY, /* and the entry is not where the first begins */
	OUT_CODE_RANGES_ENTRY,
	OUT_CODE_KINDS,
	OUT_BASE_KINDS = 3,
	OUT_END = OUT_FUNCTION + OUT_FUNCTION_KINDS * OUT_CODE_KINDS * OUT_BASE_KINDS,
};

/* Integer types come first in each unit, so that an expression's reference to one has one byte. */
enum {
	OUT_HEADER_BYTES = 12,
	OUT_ROOT_BYTES = 1 + 4 + 2 + 8,
	OUT_TYPE_BYTES = 3,
	OUT_INT_BYTES_MAX = 8,
	OUT_FIRST_TYPE = OUT_HEADER_BYTES + OUT_ROOT_BYTES,
	OUT_NO_INT_TYPE = OUT_FIRST_TYPE + 2 * OUT_INT_BYTES_MAX * OUT_TYPE_BYTES,
};

static inline uint32_t out_int_type(unsigned int bytes, bool is_signed)
{
	return OUT_FIRST_TYPE + (2 * (bytes - 1) + is_signed) * OUT_TYPE_BYTES;
}

/* The stand-in of a type; 0: nothing is known about the type. */
static inline uint64_t out_stand_in(uint64_t bytes, bool by_ref, bool is_bool)
{
	return bytes << 2 | (uint64_t)by_ref << 1 | is_bool;
}

enum fixup_kind {
	FIX_STRING,   /* key: pointer */
	FIX_FUNCTION, /* key: entry of the index */
	FIX_FORMAL,   /* key: entry, number of the formal */
	FIX_TYPE,     /* key: out_stand_in() */
	FIX_REMOVED,  /* key: its DIE */
	FIX_LOCATIONS,
	FIX_RANGES, /* the value counts from the unit's part of the section */
};

struct fixup {
	uint32_t at; /* in the unit: 4 bytes */
	uint32_t kind;
	uint64_t key;
};

/* An operand that is the site of a parameter that was removed, in the unit. */
struct removed_ref {
	uint32_t at;
	bool in_list; /* in the lists, else in the unit */
	dw_off die;
};

struct removed_at {
	dw_off die;
	uint32_t at;
};

struct out_unit {
	struct bytes info; /* from the unit's length on */
	struct bytes locations, ranges;
	VEC(struct fixup) fixups;
	VEC(uint32_t) formals; /* where those are that copies refer to */
	VEC(struct removed_ref) refs;
	VEC(struct removed_at) removed;
	uint64_t low;
};

/* The header, the root, the integer types. */
void out_unit_begin(struct out_unit *u, const char *producer, uint16_t language, uint64_t low);
void out_unit_end(struct out_unit *u);
void out_unit_fini(struct out_unit *u);

/* Four bytes that are filled in later. */
void out_reference(struct out_unit *u, enum fixup_kind kind, uint64_t key);
void out_u64(struct bytes *b, uint64_t value);

/* The data needed to fill in the references. */
struct out_sites {
	const struct out_unit *units;
	size_t n_units;
	const uint32_t *unit_of;    /* of each entry */
	const uint32_t *die_at;     /* of each entry, in its unit */
	const uint32_t *formals_at; /* of each entry: in the unit's formals */
};

/* All units as an ELF file. Returns 0, -ERANGE, -ENOMEM. */
int out_write(struct out_unit *units, const struct out_sites *sites, struct bytes *ret,
	      struct cairn_err *err);

/* ---- expressions ---- */

/* Register r: bit r. A removed parameter: */
enum { ASKED_REMOVED = 1 << 16 };

/* Registers whose value at the entry the expression needs. Adds to *@ret. */
void out_expr_asks(const uint8_t *expr, uint64_t n, uint32_t *ret);

/*
 * out_expr - an expression as in the section, with its length before it
 *
 * @unit     that it is of
 * @in_list  whether @to are the lists of @u; else it is in the unit
 */
void out_expr(struct out_unit *u, struct bytes *to, bool in_list, const struct dw_unit *unit,
	      const uint8_t *expr, uint64_t n);

#endif
