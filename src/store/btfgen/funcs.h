/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions: which FUNC a DIE is
 *
 * BTF names a function by name and prototype. DWARF describes the same static inline function in a
 * thousand units; with one prototype, whatever its parameters are called, all are one FUNC. It goes
 * to main when some code has its name and its very prototype, so that it can be called, and probed
 * by name; else to the inline blob:
 *
 *	it was inlined everywhere
 *	all of its code is foo.isra.0 and such, with other parameters than the declaration says
 *	the compiler changed its parameters and left its name (changed.h)
 *	nothing describes its parameters (-g1, an assembler)
 *	the linker took another file's function of that name: a weak definition, whose code stays
 *	functions of that name have several prototypes, and the name alone does not tell which
 *
 * Overloaded functions of C++ and Rust have a linker's name each, which their FUNC in main has
 * then: _ZN2ns1fEi, as the symbol.
 */
#ifndef BTFGEN_FUNCS_H
#define BTFGEN_FUNCS_H

#include "base/map.h"
#include "btfgen/emit.h"

/* A function as BTF has it. */
struct btf_func {
	const char *name;
	const char *said; /* the name of its FUNC: the name, or the linkage name */
	dw_off body;      /* DIE of its code, when it has some */
	uint32_t proto;   /* instance */
	uint32_t id;      /* of its FUNC; 0 not written yet */
	uint32_t next;    /* of the same name; UINT32_MAX at the end */
	/* DIE that has its name and prototype; of one with code that of its code */
	dw_off said_by;
	bool external;
	bool has_dead; /* some code of it was overridden: the first DIE may be of that */
	bool has_body; /* code with this name and prototype */
	/* the debug information of some code of it has no prototype: never in main */
	bool is_silent;
	/* some code of it has other parameters than its prototype says: never in main */
	bool is_changed;
	bool declared; /* the prototype is of a declaration: its parameters may have no names */
	bool in_main;
	bool is_first; /* of those of its name */
};

struct func_table {
	const struct classes *c;
	const struct variants *variants;
	VEC(struct btf_func) v; /* in the order of their first DIE */
	/* of the functions in classes.lists, in order; those are gone once main is made */
	dw_off *dies;
	uint32_t *of_die; /* per one of them: into v */
	size_t n_dies;
	struct map by_name;    /* hash of name to the first of v */
	bool has_dead;         /* of some function */
	bool has_equal_hashes; /* of two names; then some stand at the next number */
	bool *skip;            /* per instance: a prototype that nothing in main refers to */
};

/*
 * Examine the code of all bodies; the functions below use the result.
 *
 * Returns 0 or -ENOMEM. Cost: a search among the symbols for each, and changed_has().
 */
int func_bodies_see(const struct dwarf *dw, struct classes *c, struct cairn_err *err);

/* Which DIEs are one function. Returns 0, -ENOMEM. @ret is for func_table_fini() also then. */
int func_table_number(const struct variants *variants, struct func_table *ret,
		      struct cairn_err *err);

/* Which of them have code and are in main. Returns 0, -ENOMEM. */
int func_table_choose(const struct dwarf *dw, struct func_table *f, uint64_t *losses,
		      struct cairn_err *err);
void func_table_fini(struct func_table *f);

/* Writes FUNC records of the functions in main, where their types are. */
int func_table_emit(struct func_table *f, const struct emit *e, uint32_t *ret_n,
		    struct cairn_err *err);

/*
 * func_table_at - the function that a DIE is a body or a copy of
 *
 * @abstract  DIE without DW_AT_abstract_origin
 * @near      0 at first, then as it was left: where to begin to look
 * Returns the index in func_table.v; UINT32_MAX when it has no name.
 */
uint32_t func_table_at(const struct func_table *f, dw_off abstract, uint32_t *near);

#endif
