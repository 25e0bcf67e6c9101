/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads types of DWARF into the type graph, as far as they are needed
 *
 * Through pointers every kernel struct reaches nearly every other, and a static inline function has
 * a copy of its types in each of a thousand units. So a type is read no further than its name
 * needs: pointers, qualifiers, arrays, function types, and the names and sizes of structs and
 * enums, which are marked "unread". A caller that looks inside requests more:
 *
 *	struct dw_types *r;
 *	dw_types_new(dw, graph, &r, err);
 *	dwarf_type_of(r, &formal, &id, err);		// "struct foo *": its name can be printed
 *	uint32_t foo = cairn_types_get(graph, cairn_types_resolve(graph, id))->ref;
 *	dwarf_type_complete(r, foo, err);		// now it has members and a value
 *	cairn_types_member(graph, foo, "next", &m);
 *	dw_types_free(r);
 *
 * Names are qualified in languages that have scopes ("std::vector<int>"), and stand alone there
 * (bare_name). Types that the graph cannot express exactly (decimal floats, Fortran descriptors)
 * become CAIRN_ENC_OPAQUE: bytes, never a guess.
 *
 * One reader and its graph belong to one thread at a time; several readers of one struct dwarf do
 * not disturb each other.
 */
#ifndef DWARF_TYPES_H
#define DWARF_TYPES_H

#include <cairn/types.h>

#include "dwarf/dwarf.h"
#include "types/build.h"

struct dw_types;

/*
 * dw_types_new - a reader that adds to @graph
 *
 * @dw, @graph  outlive the reader; strings of the graph borrow the mapped sections, so @dw outlives
 *              the graph, too
 * Returns 0 or -ENOMEM. dw_types_free() takes NULL; the graph stays usable without its reader.
 */
int dw_types_new(const struct dwarf *dw, struct cairn_types *graph, struct dw_types **ret,
		 struct cairn_err *err);
void dw_types_free(struct dw_types *r);
struct cairn_types *dw_types_graph(const struct dw_types *r);

/*
 * dw_types_set_pointer_size - bytes of pointers whose DIEs do not record it; otherwise those of an
 * address of their unit
 *
 * For debug information whose types are laid out for another machine than the code. Before the
 * first type is read.
 */
void dw_types_set_pointer_size(struct dw_types *r, uint8_t bytes);

/*
 * dwarf_type - the type that the DIE at @off describes
 *
 * @ret  its id; the same for the same DIE every time
 * Returns 0. -EBADMSG: the DIE, or one that it needs, is damaged (err: where). The unreadable type
 * is then an UNSPECIFIED type named "<damaged>", here and in later calls. -ENOMEM. *@ret is set
 * whenever there is memory for it.
 * Cost: the DIEs on the way to structs, enums and base types, each once per reader. In C++ the
 * scopes of each unit are listed once, by one walk over it.
 */
int dwarf_type(struct dw_types *r, dw_off off, uint32_t *ret, struct cairn_err *err);

/*
 * dwarf_type_of - DW_AT_type of a variable, parameter, function ..., also through
 * DW_AT_abstract_origin and DW_AT_specification; void when there is none. Otherwise as
 * dwarf_type().
 */
int dwarf_type_of(struct dw_types *r, const struct dw_die *die, uint32_t *ret,
		  struct cairn_err *err);

/*
 * dwarf_type_complete - read the parts of a type
 *
 * Typedefs and qualifiers are followed. The call reads members of a struct, and of the structs and
 * elements in it, to any depth, and enumerators. It does not read the types that pointers point to.
 * A struct that is only declared in its unit is looked up, see dwarf_type_definition(); if there is
 * no definition, it stays a declaration. Nodes change in place, ids stay.
 *
 * @id  from this reader; a type that is complete, or has no parts, is left alone
 * Returns 0, also when a definition is missing. -ENOTUNIQ: @id itself is only declared and units
 * define different types of its name (err: which). -EBADMSG, -ENOMEM as dwarf_type(); the node then
 * counts as declared only.
 * Cost: the DIEs that are read, once each. For a declaration one walk over its unit, and the index
 * of all units.
 */
int dwarf_type_complete(struct dw_types *r, uint32_t id, struct cairn_err *err);

/* How a function gets a parameter, and gives back a result. */
enum dw_passing {
	DW_PASSING_UNKNOWN,
	DW_PASSED_BY_VALUE,
	DW_PASSED_BY_ADDRESS, /* C++: the caller makes the object, and passes where it is */
};

/*
 * dwarf_type_passing - whether C++ passes a type by its value or by its address (types_passing.c)
 *
 * @id   from this reader; completed as by dwarf_type_complete() if possible, unless it is passed by
 *       address
 * @by   unit of the function. C passes every struct by value
 * @ret  UNKNOWN if the debug information does not decide it; BY_VALUE for a type that is no class
 * Returns 0 or -ENOMEM.
 * Cost: the class and its parts, each once per reader.
 */
int dwarf_type_passing(struct dw_types *r, uint32_t id, const struct dw_unit *by,
		       enum dw_passing *ret, struct cairn_err *err);

/*
 * dwarf_type_open - read the members or enumerators of one type, and of none that it contains
 *
 * For a caller that reaches the types inside by itself. @id is a struct, class, union or enum
 * itself, no typedef of one. Otherwise as dwarf_type_complete().
 */
int dwarf_type_open(struct dw_types *r, uint32_t id, struct cairn_err *err);

/*
 * dwarf_type_open_undefined - the same of a declaration that, as the caller knows, no unit defines
 *
 * Nothing is searched. A declaration of an enum may record its sign.
 */
int dwarf_type_open_undefined(struct dw_types *r, uint32_t id, struct cairn_err *err);

/*
 * dwarf_type_defined_elsewhere - the definition that stands for a declaration whose own unit has
 * none
 *
 * @id   a struct, class, union or enum that is only declared
 * @ret  the DIE
 * Returns 1; 0 when there is none; -ENOTUNIQ, -EBADMSG, -ENOMEM as dwarf_type_definition().
 */
int dwarf_type_defined_elsewhere(struct dw_types *r, uint32_t id, dw_off *ret,
				 struct cairn_err *err);

/* The DIE of a struct, class, union or enum that this reader has read; 0: @id is none. */
dw_off dwarf_type_die(const struct dw_types *r, uint32_t id);

/*
 * dwarf_type_definition - find a struct, class, union or enum by name in the whole binary
 *
 * @kind  CAIRN_T_STRUCT and CAIRN_T_CLASS mean the same; CAIRN_T_UNION; CAIRN_T_ENUM
 * @name  qualified: "foo", "ns::foo". Types local to a function or in an anonymous namespace are
 *        not found
 * @ret   its id, complete
 * Returns 1; 0 when there is none; -ENOTUNIQ when units define different types of that name (of
 * another size or at another line); -EBADMSG, -ENOMEM.
 * Cost: the first call lists all definitions of the binary, in parallel by unit; then one lookup.
 */
int dwarf_type_definition(struct dw_types *r, enum cairn_type_kind kind, const char *name,
			  uint32_t *ret, struct cairn_err *err);

/*
 * dwarf_type_definitions - every struct, class, union and enum with a name that the whole binary
 * defines
 *
 * @visit  called with the DIE of each, for dwarf_type(), in the order of the input; for a name that
 *         units define differently, with the first. A negative result ends it
 * Returns 0, the result of @visit, -EBADMSG, -ENOMEM. Cost: as dwarf_type_definition().
 */
int dwarf_type_definitions(struct dw_types *r,
			   int (*visit)(void *ctx, dw_off off, struct cairn_err *err), void *ctx,
			   struct cairn_err *err);

/*
 * dwarf_type_typedefs - every typedef of the whole binary, whatever it names, and every base type
 *
 * Otherwise as dwarf_type_definitions(), but each call lists them anew, unless
 * dwarf_types_index_typedefs() was called.
 */
int dwarf_type_typedefs(struct dw_types *r,
			int (*visit)(void *ctx, dw_off off, struct cairn_err *err), void *ctx,
			struct cairn_err *err);

/*
 * For a caller that will list typedefs, and may look for definitions before: typedefs and
 * definitions are then listed at once. It has no effect after the first search for a definition.
 */
void dwarf_types_index_typedefs(struct dw_types *r);

/* @name: with the function and its scopes, "ns::f::inner"; borrowed during the call. */
typedef int dwarf_local_visitor(void *ctx, dw_off off, const char *name, struct cairn_err *err);

/*
 * dwarf_type_locals - every struct, class, union, enum and typedef with a name that is defined in a
 * function
 *
 * @in_units  by number of the unit: whether it is to be scanned, for a caller that knows it; NULL:
 *            each is
 *
 * Otherwise as dwarf_type_definitions(). Cost: a walk over all functions of these units, in
 * parallel by unit, at each call.
 */
int dwarf_type_locals(struct dw_types *r, const bool *in_units, dwarf_local_visitor *visit,
		      void *ctx, struct cairn_err *err);

#endif
