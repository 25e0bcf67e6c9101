/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Walks over all DIEs of a unit, for callers that read most of them: the encoder of types, the
 * function index
 *
 * dw_attr() looks at the abbreviation again for each attribute of each DIE, which is right for a
 * few DIEs. A walker gets its attributes and tags once. When it enters a unit it turns each
 * abbreviation into a shape, "15 bytes long; the name is at +0, the type at +7", and from then on a
 * DIE costs one addition, and an attribute one load:
 *
 *	enum { NAME, TYPE, SIZE };
 *	static const uint16_t attrs[] = {DW_AT_name, DW_AT_type, DW_AT_byte_size};
 *	enum { STRUCT = 1, MEMBER };
 *	static uint8_t role(uint16_t tag)			// called once per abbreviation
 *	{
 *		return tag == DW_TAG_structure_type ? STRUCT
 *		     : tag == DW_TAG_member	    ? MEMBER
 *		     : tag == DW_TAG_subprogram	    ? DW_ROLE_PRUNE
 *						    : DW_ROLE_PASS;
 *	}
 *
 *	struct dw_walker w;
 *	dw_walker_init(&w, &(struct dw_query){attrs, 3, role});
 *	for (each unit u of this worker) {
 *		rc = dw_walker_enter(&w, u, &err);
 *		while (rc >= 0 && (rc = dw_walker_next(&w)) > 0)	// the role
 *			printf("%lu %s\n", w.depth, dw_seen_str(&w, NAME));
 *	}
 *	dw_walker_fini(&w);
 *
 * DIEs come in the order of the file, a parent before its children. w.depth is that of the DIE, 0
 * for the unit's root. A caller that needs parents keeps a stack by it, and pops the entries that
 * are not above w.lowest: the lowest depth that the walk reached after the previous DIE. It counts
 * DIEs that were not delivered, too. Depth is the input's choice: such a stack is a vector, never
 * recursion. DIEs with DW_ROLE_PASS are stepped over. Their children are walked, and count in
 * depth.
 *
 * Values are read from the DIE when a caller needs them. A damaged value (a reference out of its
 * unit, a string out of its section) reads as absent. The walk then ends with an error at the next
 * dw_walker_next(), as a cursor does: so in the end none is mistaken for absent.
 *
 * A walker belongs to one thread; units can be given to walkers in any order. No DIE costs an
 * allocation; entering a unit may grow the tables to those of the largest unit so far.
 */
#ifndef DWARF_WALK_H
#define DWARF_WALK_H

#include "base/map.h"
#include "dwarf/forms.h"

/*
 * Roles: the results of dw_query.role() for a tag. All but these two are the caller's own, and
 * delivered.
 */
enum {
	DW_ROLE_PASS = 0,     /* not delivered; its children are walked */
	DW_ROLE_PRUNE = 0xff, /* neither it nor anything inside */
};

enum {
	/* Attributes in a query. DWARF 5 has 120; no query has more than some twenty. */
	DW_QUERY_MAX = 40,
	/*
	 * Positions in a DIE where a value of variable length has ended. Values after more of them
	 * are read slowly.
	 */
	DW_RUNS_MAX = 12,
};

/* The wanted attributes and tags; all of it outlives the walker. */
struct dw_query {
	const uint16_t *attrs; /* DW_AT_*; the position is the "slot" below. Each once. */
	unsigned int n_attrs;  /* up to DW_QUERY_MAX */
	uint8_t (*role)(uint16_t tag);
};

/* How a value is read in one load; rarer values go by their form. */
enum dw_how {
	DW_HOW_ABSENT,
	DW_HOW_U8, /* data1, flag */
	DW_HOW_U16,
	DW_HOW_U32,
	DW_HOW_U64,
	DW_HOW_ULEB,
	DW_HOW_SLEB,
	DW_HOW_IMPLICIT, /* off: index into implicit[] */
	DW_HOW_PRESENT,
	DW_HOW_ADDR, /* 8 bytes */
	DW_HOW_REF4,
	DW_HOW_STRP,   /* 4-byte offset in .debug_str */
	DW_HOW_STRING, /* in place */
	DW_HOW_FORM,   /* by dw_form_read() */
	DW_HOW_FAR,    /* after DW_RUNS_MAX runs: by dw_attr() */
};

struct dw_attr_slot {
	uint16_t off; /* from the start of its run */
	uint16_t form;
	uint8_t run;
	uint8_t how;
};

/* An abbreviation as far as stepping over its DIEs goes; as small as that, for the cache. */
struct dw_shape {
	uint32_t places;  /* index of its first; for a delivered one */
	uint16_t fixed;   /* bytes of the first run */
	uint16_t sibling; /* as in struct dw_abbrev */
	uint16_t tag;
	uint8_t then; /* enum dw_then, after the first run */
	uint8_t has_children;
	uint8_t role;
};

/*
 * The meaning of forms for a size of address and offset, by number. Those above 0xff are rare
 * (GNU).
 */
struct dw_form_table {
	uint8_t addr_size, offset_size, ref_addr_size;
	struct {
		struct dw_form_size size;
		uint8_t how;
	} of[256];
};

struct dw_walker {
	uint64_t n_dies; /* stepped over in all units, delivered or not */

	/* The DIE that was delivered last. */
	uint64_t depth, lowest;
	const uint8_t *die;
	const struct dw_shape *shape;
	const struct dw_attr_slot *places; /* query->n_attrs */
	const uint8_t *run[DW_RUNS_MAX];

	/* The walk. */
	const uint8_t *next, *end;
	uint64_t level; /* depth of the DIE at @next */
	int rc;         /* the next result of dw_walker_next(), if negative */
	const struct dw_query *query;
	const struct dw_unit *unit;
	struct cairn_err *err;
	/* references inside the unit: [ref_lo, ref_lo + ref_n) from its header */
	uint64_t ref_lo, ref_n;

	/* For the unit's table, one per abbreviation. */
	const struct dw_abbrevs *table;
	struct dw_shape *shapes;
	size_t cap;
	/*
	 * For all abbreviations that were met: 8,500 are left of the 315,000 in a vmlinux's tables.
	 */
	struct map known_at; /* abbreviation to its shape in known */
	VEC(struct dw_shape) known;
	VEC(struct dw_attr_slot) all_places; /* n_attrs of each that is delivered */
	VEC(int64_t) implicit;
	struct dw_form_table forms;
	/* by the low byte of DW_AT_*: slot + 1 of the first with it, 0 none */
	uint8_t slot_of[256];
};

/*
 * Returns 0, or -EINVAL for a query of more than DW_QUERY_MAX attributes. dw_walker_fini() takes
 * zeroes.
 */
int dw_walker_init(struct dw_walker *w, const struct dw_query *query);
void dw_walker_fini(struct dw_walker *w);

/*
 * dw_walker_enter - go to the root of a unit
 *
 * @err  for this unit's walk; stays the caller's until the next enter
 * Returns 0 or -ENOMEM.
 * Cost: reads the unit's abbreviation table, unless the unit before had the same one.
 */
int dw_walker_enter(struct dw_walker *w, const struct dw_unit *u, struct cairn_err *err);

/*
 * dw_walker_next - to the next DIE that has a role
 *
 * Returns its role; 0 at the end of the unit. -EBADMSG: damaged DIE, or damaged value that was
 * read; -EOPNOTSUPP: unknown form; -ENOENT: a value in an alternate or .dwo file that is not there.
 * Cost: 3 to 7 ns per DIE that is stepped over.
 */
int dw_walker_next(struct dw_walker *w);

/*
 * Go on after the children of the DIE that was delivered last. Cost: one jump if there is a
 * DW_AT_sibling.
 */
void dw_walker_skip_children(struct dw_walker *w);

/* ---- the delivered DIE; its depth is w->depth ---- */

static inline dw_off dw_walker_off(const struct dw_walker *w)
{
	return (uint64_t)(w->die - w->unit->sec->p) | w->unit->tag;
}

static inline uint16_t dw_walker_tag(const struct dw_walker *w)
{
	return w->shape->tag;
}

static inline bool dw_walker_has_children(const struct dw_walker *w)
{
	return w->shape->has_children;
}

/* For other readers: dw_ranges(), dw_locations(), dw_attr_deep(). */
static inline struct dw_die dw_walker_die(const struct dw_walker *w)
{
	return (struct dw_die){.unit = w->unit,
			       .abbrev = w->table->p[w->shape - w->shapes],
			       .off = dw_walker_off(w),
			       .tag = w->shape->tag,
			       .has_children = w->shape->has_children,
			       .attrs = w->run[0]};
}

/* ---- values of the delivered DIE, by slot ---- */

/*
 * dw_seen_value - any value, as dw_attr() gives it
 *
 * Returns 1; 0 when it is absent; negative as dw_attr(), which the walk then ends with.
 */
int dw_seen_value(struct dw_walker *w, unsigned int slot, struct dw_value *ret);

/* The rare cases of the functions below; not to be called from elsewhere. */
uint64_t dw_seen_uint_slow(struct dw_walker *w, unsigned int slot, uint64_t otherwise);
dw_off dw_seen_ref_slow(struct dw_walker *w, unsigned int slot);
const char *dw_seen_str_slow(struct dw_walker *w, unsigned int slot);

static inline bool dw_seen(const struct dw_walker *w, unsigned int slot)
{
	return w->places[slot].how != DW_HOW_ABSENT;
}

static inline const uint8_t *dw_seen_at(const struct dw_walker *w, struct dw_attr_slot attr)
{
	return w->run[attr.run] + attr.off;
}

/*
 * A constant or a flag; @otherwise when it is absent or of another class (an expression, an
 * address). Negative ones (sdata, implicit_const) come sign-extended; data1 ... data8 do not say
 * whether they are.
 */
static inline uint64_t dw_seen_uint(struct dw_walker *w, unsigned int slot, uint64_t otherwise)
{
	struct dw_attr_slot attr = w->places[slot];
	if (attr.how == DW_HOW_ABSENT)
		return otherwise;
	if (attr.how == DW_HOW_U8)
		return *dw_seen_at(w, attr);
	if (attr.how == DW_HOW_U16)
		return dw_load_u16(dw_seen_at(w, attr));
	return dw_seen_uint_slow(w, slot, otherwise);
}

static inline bool dw_seen_flag(struct dw_walker *w, unsigned int slot)
{
	return dw_seen_uint(w, slot, 0) != 0;
}

/* The DIE that is referred to, also by a type's signature; 0 when absent or of another class. */
static inline dw_off dw_seen_ref(struct dw_walker *w, unsigned int slot)
{
	const struct dw_unit *u = w->unit;
	struct dw_attr_slot attr = w->places[slot];
	if (attr.how == DW_HOW_REF4) {
		uint64_t off = dw_load_u32(dw_seen_at(w, attr));
		if (__builtin_expect(off - w->ref_lo < w->ref_n, 1))
			return (u->off + off) | u->tag;
	}
	return attr.how == DW_HOW_ABSENT ? 0 : dw_seen_ref_slow(w, slot);
}

/* A string, borrowed from the file; NULL when absent or of another class. */
static inline const char *dw_seen_str(struct dw_walker *w, unsigned int slot)
{
	struct dw_attr_slot attr = w->places[slot];
	return attr.how == DW_HOW_ABSENT ? NULL : dw_seen_str_slow(w, slot);
}

/*
 * The attr of a string in .debug_str of the unit's file, for callers that compare offsets before
 * strings: a linker writes equal strings once. DW_NO_STRP if it is elsewhere (GCC writes short ones
 * in attr), or nowhere.
 */
#define DW_NO_STRP UINT64_MAX
static inline uint64_t dw_seen_strp(const struct dw_walker *w, unsigned int slot)
{
	struct dw_attr_slot attr = w->places[slot];
	return attr.how == DW_HOW_STRP ? dw_load_u32(dw_seen_at(w, attr)) : DW_NO_STRP;
}

/* DW_AT_low_pc, DW_AT_entry_pc: an address. False when absent or of another class. */
bool dw_seen_addr(struct dw_walker *w, unsigned int slot, struct cairn_vaddr *ret);

/*
 * The code between the values of two slots, DW_AT_low_pc and DW_AT_high_pc, which is an address or
 * a length. False when one is absent, and for code that the linker dropped, as in dw_ranges().
 */
bool dw_seen_range(struct dw_walker *w, unsigned int low, unsigned int high, struct dw_range *ret);

#endif
