/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables of files, namespaces, classes and functions, by name; the essay is in variables.c. */
#ifndef DWARF_VARIABLES_H
#define DWARF_VARIABLES_H

#include "base/vec.h"
#include "dwarf/dwarf.h"

/* The place of a variable: the same everywhere in the program. */
struct dw_variable_place {
	bool is_thread_local;
	/* a link-time address; of a thread-local variable its offset in the file's block */
	uint64_t at;
};

struct dw_variable {
	struct dw_die die;
	struct dw_die function; /* it is declared in it; tag 0: in none */
	bool is_nested;         /* in a block of the function */
	/*
	 * False: the compiler or the linker left it out, it is only declared, or it is on a
	 * function's stack.
	 */
	bool has_place;
	bool is_declaration;
	struct dw_variable_place place;
};

struct dw_variable_list {
	VEC(struct dw_variable) v;
};

/*
 * dwarf_variables_named - variables of a file, a namespace, a class or a function
 *
 * Those without a place hide others of the name. Declarations are those of namespaces and classes.
 *
 * @name  without namespaces; NULL: of any name
 * @ret   in order of the DIEs, one variable perhaps several times; free with
 *        dw_variable_list_fini(), also after an error
 * Returns 0; -EBADMSG, -EOPNOTSUPP, -ENOMEM.
 * Cost: steps over all DIEs, in parallel by unit.
 */
int dwarf_variables_named(const struct dwarf *dw, unsigned int threads, const char *name,
			  struct dw_variable_list *ret, struct cairn_err *err);

/* Those of one unit that have a place, of any name. */
int dw_unit_variables(const struct dw_unit *u, struct dw_variable_list *ret, struct cairn_err *err);

void dw_variable_list_fini(struct dw_variable_list *list);

/* dw_variable_place - where a variable's DIE puts it; false: on the stack, or nowhere */
bool dw_variable_place(const struct dw_die *die, struct dw_variable_place *ret);

#endif
