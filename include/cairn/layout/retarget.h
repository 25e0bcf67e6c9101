/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retargeting: lays out compiled types as another ABI would
 *
 * Debug information has offsets, but not always the declarations that led to them. So the
 * attributes of each struct are deduced, with which the ABI that it was compiled for gives exactly
 * those offsets. With them it is placed again.
 *
 *	struct cairn_retarget *r;
 *	if (cairn_layout_retarget(types, cairn_abi_find("bpf"), cairn_abi_find("i386"), ids, n,
 *				  &r, &err) < 0)
 *		return fail(err.msg);
 *	cairn_types_get(cairn_retarget_types(r), ids[0])->size;	// ids are the same
 *	cairn_retarget_free(r);
 *
 * An attribute that changed nothing is not visible: a packed struct without holes, an aligned(8) on
 * a member that was there anyway. An #if cannot be undone, either: members that the other ABI would
 * not have are there.
 */
#ifndef CAIRN_LAYOUT_RETARGET_H
#define CAIRN_LAYOUT_RETARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/layout.h>
#include <cairn/types.h>

CAIRN_BEGIN_DECLS

struct cairn_retarget;

/*
 * cairn_layout_retarget - lay types out for another ABI
 *
 * @types  outlives the result, which borrows its names, and does not grow meanwhile
 * @from   which they were compiled for
 * @ids    those that are wanted, with all that they contain; others keep their layout
 * Returns 0 with *@ret owned by the caller, cairn_retarget_free(); -ENOMEM.
 * Cost: O(types) memory; O(members) per struct, O(members^2) where attributes have to be found.
 * Threads: any, while no reader adds. Signals: no.
 */
int cairn_layout_retarget(const struct cairn_types *types, const struct cairn_abi *from,
			  const struct cairn_abi *to, const uint32_t *ids, size_t n,
			  struct cairn_retarget **ret, struct cairn_err *err);
void cairn_retarget_free(struct cairn_retarget *r);

/* A graph with the same ids; borrowed until cairn_retarget_free(). */
const struct cairn_types *cairn_retarget_types(const struct cairn_retarget *r);

/* The attributes deduced for one struct, beyond those in the debug information. */
struct cairn_deduced {
	bool packed;
	uint32_t pack;                /* #pragma pack(N); 0: none */
	uint32_t aligned;             /* the struct, at least; 0: nothing seen */
	uint32_t n_aligned, n_packed; /* members with an attribute of their own */
	/* holes that no alignment explains, kept as bytes or bits without a name */
	uint32_t n_fillers;
	/*
	 * No attributes give these offsets (a C++ class, damaged input), or a type of it has no
	 * counterpart on the other ABI: its layout there is a guess.
	 */
	bool unexplained;
	/* members that are structs, or arrays of them, of which one of the above holds */
	uint32_t n_deduced_members;
	uint32_t n_guessed_members; /* those of them whose layout is a guess */
};

/* False if nothing was deduced, also for a type that was not laid out. */
bool cairn_retarget_deduced(const struct cairn_retarget *r, uint32_t id, struct cairn_deduced *ret);

/*
 * cairn_layout_guess_abi - the ABI that laid these structs out
 *
 * The result is the ABI with that pointer size and byte order under which the most of @ids need no
 * attributes. Among equals it is the first of the list (x86-64, i386, ...). BTF alone does not
 * record it. NULL: no ABI has these properties, or no memory.
 */
const struct cairn_abi *cairn_layout_guess_abi(const struct cairn_types *types, const uint32_t *ids,
					       size_t n, unsigned int pointer_size,
					       bool big_endian);

CAIRN_END_DECLS
#endif
