/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module source gives types by name, whatever they are read from.
 *
 * This header: a source that answers as the debug information of a binary does: the reader of DWARF
 * (dwarf.c), or a sidecar (src/store/sidecar).
 *
 * select.c decides which types are selected and in which order, by the same code for both.
 */
#ifndef SOURCE_PROVIDER_H
#define SOURCE_PROVIDER_H

#include <cairn/source.h>

/* Takes the id of a type. A negative result ends the listing and is returned. */
typedef int source_visitor(void *ctx, uint32_t id, struct cairn_err *err);

/* @name: with the function and its scopes, "ns::f::inner"; borrowed during the call. */
typedef int source_local_visitor(void *ctx, uint32_t id, const char *name, struct cairn_err *err);

struct source_ops {
	/*
	 * All structs, unions and enums with a name that the binary defines, or all typedefs and
	 * base types, in the order of the debug information. If units define a name differently,
	 * the first.
	 */
	int (*list)(void *provider, bool typedefs, source_visitor *visit, void *ctx,
		    struct cairn_err *err);
	/* All types with a name, and typedefs, that functions define for themselves. */
	int (*list_locals)(void *provider, source_local_visitor *visit, void *ctx,
			   struct cairn_err *err);
	/* As dwarf_type_complete(). */
	int (*complete)(void *provider, uint32_t id, struct cairn_err *err);
	/* As cairn_source_shortened(). */
	const char *(*shortened)(void *provider);
	void (*close)(void *provider);
};

/*
 * source_provided - a source of kind DWARF
 *
 * @provider  the argument of the operations; closed with the source, and also when this fails
 * @types     the graph that they fill; the provider's
 * Returns 0 or -ENOMEM.
 */
int source_provided(const struct source_ops *ops, void *provider, const struct cairn_types *types,
		    const struct cairn_abi *abi, struct cairn_source **ret, struct cairn_err *err);

#endif
