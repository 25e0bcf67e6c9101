/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions whose parameters the compiler changed without renaming the function
 *
 * If no other file can call a function, Clang removes its parameters, splits structs, and passes
 * the value that a pointer points to. GCC calls such code foo.isra.0; Clang leaves the name. DWARF
 * keeps the parameters of the source, so a FUNC with them would be wrong:
 *
 *	static int f(int a, int b, int c)  only ever called with b = 2
 *	at the entry                       a in rdi, b nowhere, c in rsi, where the prototype says b
 *
 * The description at the entry decides: each parameter has to be where the calling convention puts
 * it.
 */
#ifndef BTFGEN_CHANGED_H
#define BTFGEN_CHANGED_H

#include "base/arena.h"
#include "dwarf/types.h"
#include "sites/abstract.h"

/* The state for queries about each function; one thread's. */
struct changed {
	const struct dwarf *dw;
	struct elf *code;    /* the file with the instructions */
	struct elf *symbols; /* the file with the symbols */
	struct cairn_types *graph;
	struct dw_types *types;
	struct arena arena; /* of the function at hand */
};

/* Returns 0 or -ENOMEM; changed_fini() in both cases. */
int changed_init(struct changed *c, const struct dwarf *dw, struct cairn_err *err);
void changed_fini(struct changed *c);

/*
 * changed_has - whether some parameter of a body is not where its prototype says
 *
 * Clang may have changed a function that no other file calls, and it records if a function follows
 * another convention (ms_abi). GCC names changed functions by their symbols.
 *
 * @body  DIE with code; true also when its parameters cannot be read
 * @at    its entry
 * Returns 1, 0, -ENOMEM.
 * Cost: nothing for GCC's code; a search for functions that other files can call; else the types
 * and descriptions of its parameters; for a parameter in a stack slot a decode of the code.
 */
int changed_has(struct changed *c, const struct dw_die *body, struct cairn_vaddr at,
		struct cairn_err *err);

#endif
