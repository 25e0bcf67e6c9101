/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What range lists and location lists of DWARF 5 have in common: a base address, and the ways in which an
 * entry states its bounds.
 *
 *	operands                          range list   location list
 *	base_addressx   ULEB index        0x01         0x01
 *	startx_endx     ULEB, ULEB        0x02         0x02
 *	startx_length   ULEB, ULEB        0x03         0x03
 *	offset_pair     ULEB, ULEB        0x04         0x04
 *	base_address    address           0x05         0x06
 *	start_end       address, address  0x06         0x07
 *	start_length    address, ULEB     0x07         0x08
 *
 * Functions that read bounds return 1, those that set the base 0, both -EBADMSG.
 */
#ifndef DWARF_LISTS_H
#define DWARF_LISTS_H

#include "dwarf/impl.h"

struct dw_list {
	const struct dw_unit *u;
	struct cursor *c;
	uint64_t base;
};

struct dw_bounds {
	uint64_t from; /* the address the linker filled in: base, or the start itself */
	uint64_t lo, hi;
};

int dw_list_base_addressx(struct dw_list *l);
int dw_list_base_address(struct dw_list *l);
int dw_list_startx_endx(struct dw_list *l, struct dw_bounds *ret);
int dw_list_startx_length(struct dw_list *l, struct dw_bounds *ret);
int dw_list_offset_pair(struct dw_list *l, struct dw_bounds *ret);
int dw_list_start_end(struct dw_list *l, struct dw_bounds *ret);
int dw_list_start_length(struct dw_list *l, struct dw_bounds *ret);
int dw_list_unknown(struct dw_list *l, uint8_t kind);

/* Offset of list @index of the unit's table of offsets (rnglistx, loclistx). 1 or -EBADMSG. */
int dw_list_index(const struct dw_unit *u, enum dw_sec sec, uint64_t index, uint64_t *ret,
		  struct cairn_err *err);

static inline uint64_t dw_largest_address(const struct dw_unit *u)
{
	return u->addr_size == 8 ? UINT64_MAX : UINT32_MAX;
}

/* True for the start of something that a linker dropped. In a relocatable file 0 is an address. */
static inline bool dw_is_discarded(const struct dw_unit *u, uint64_t start)
{
	return !u->file->relocatable && (start == 0 || start >= dw_largest_address(u) - 1);
}

#endif
