/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Meanings: which of a program's descriptions of structs, unions and enums are one type
 *
 * Every unit describes the types that it uses. Descriptions that use the same words and lead to the
 * same types in their units have one meaning; it is an instance of name_variants.h. A declaration
 * means the definition that its unit has, or else the only one that the program has. If other units
 * have several, its meaning is not known here.
 *
 *	a.c  0x2d  struct s { int x; }      meaning 1, defined at 0x2d
 *	a.c  0x51  struct { int a; }        meaning 2, defined at 0x51
 *	a.c  0x80  struct s;                meaning 1
 *	b.c  0xd0  struct s { int x; }      meaning 1
 *	c.c  0xf1  struct s;                meaning 1
 */
#ifndef BTFGEN_MEANINGS_H
#define BTFGEN_MEANINGS_H

#include <cairn/btf/from_dwarf.h>

#include "base/vec.h"
#include "btfgen/named_groups.h"
#include "dwarf/dwarf.h"

struct dw_func_index;
struct variants;

struct meant {
	dw_off die;
	uint32_t meaning;
};

struct meanings {
	VEC(struct meant) v; /* by DIE */
	/* by meaning: the first DIE that defines it; of number 0 nothing is known */
	VEC(dw_off) definition;
	struct named_types named;
};

/*
 * Finds the meanings of classes that were read with want_contents, from @n_units units. Returns 0
 * or -ENOMEM. @ret, all zero before, is for meanings_fini() in either case.
 */
int meanings_find(const struct variants *v, size_t n_units, struct meanings *ret,
		  struct cairn_err *err);
void meanings_fini(struct meanings *m);

/* The meaning of the DIE of a struct, union or enum; 0: it is not known. Cost: O(log n). */
uint32_t meaning_of(const struct meanings *m, dw_off die);

/*
 * distil_with_meanings - cairn_btf_from_dwarf() of debug information that the caller has open, with
 * more that the same reading of its units found
 *
 * @ret_meanings   of all descriptions; meanings_fini()
 * @ret_functions  the index of all functions; dw_func_index_fini(). It stays empty if @opts ask for
 *                 sites, which use it up.
 * Both are all zero before, and to be freed also after an error.
 */
int distil_with_meanings(const struct dwarf *dw, const struct cairn_btfgen_opts *opts,
			 struct cairn_btfgen *ret, struct meanings *ret_meanings,
			 struct dw_func_index *ret_functions, struct cairn_err *err);

#endif
