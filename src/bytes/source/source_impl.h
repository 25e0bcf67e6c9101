/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A source of types, as the files of this module share it
 *
 * source.c opens and closes it, dwarf.c lists what DWARF defines, query.c says which types a
 * pattern means, and select.c finds them in each kind of source. names.c finds types of a list by
 * their names, spelling.c knows the spellings of one C type, and btf_abi.c the machine of BTF.
 */
#ifndef SOURCE_IMPL_H
#define SOURCE_IMPL_H

#include <cairn/source.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "btf/types.h"
#include "dwarf/types.h"
#include "source/names.h"
#include "source/provider.h"

/* Types of a provider, which lists them once. */
struct listed {
	bool is_read;
	VEC(uint32_t) ids;
	VEC(char *) names; /* of the types of functions: with their scopes */
	struct names by_name;
};

struct cairn_source {
	enum cairn_source_kind kind;
	const struct cairn_abi *abi;
	bool big_endian;
	struct cairn_types *types; /* of a declaration: owned by it */
	struct decl *decl;
	struct consumer *foreign;
	struct cairn_btf *btf;
	struct btf_types *btf_reader;
	struct cairn_binary *bin; /* NULL: the caller's, or none */
	struct dwarf *dw;
	struct dw_types *reader;
	const struct source_ops *ops; /* for DWARF, and the provider that answers */
	void *provider;
	const struct cairn_types *provided; /* the provider's graph; NULL: types */
	unsigned int threads;
	bool with_typedefs;
	/* All definitions of DWARF; typedefs of unnamed types; what functions define. */
	struct listed defs, typedefs, locals;
	struct names by_name; /* of BTF and of declarations: places are ids */
};

/* The reader of DWARF as a provider, which is the source itself. */
extern const struct source_ops source_dwarf_ops;

#endif
