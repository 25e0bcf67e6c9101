/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Definitions that the linker did not take
 *
 * When another file overrides a weak definition, the weak code stays in the file and so does its
 * description. It differs from the description of the function that is called:
 *
 *	weak.o    long __attribute__((weak)) sys_foo(const struct regs *__unused)
 *	foo.o     long sys_foo(const struct regs *regs)
 *
 * A kernel has 400 such for system calls. The symbols tell: none begins at the code of the first
 * one, and one with its name begins elsewhere.
 */
#ifndef BTFGEN_DEAD_H
#define BTFGEN_DEAD_H

#include "base/map.h"
#include "base/vec.h"
#include "btfgen/type_classes.h"

struct dead_body {
	const char *name; /* the linker's */
	struct body *body;
	uint32_t next; /* with that name; UINT32_MAX at the end */
};

/* Bodies without a symbol. All zero at first. */
struct dead {
	VEC(struct dead_body) v;
	struct map by_name; /* hash to the last of v */
};

/* A body where no symbol begins. Nothing is done for functions of one file. 0 or -ENOMEM. */
int dead_note(struct dead *d, const struct dw_die *die, struct body *body);

/*
 * Sets is_dead of each noted definition whose name belongs to a symbol elsewhere; it is no whole
 * body then. 0 or -ENOMEM.
 */
int dead_find(struct dead *d, const struct dwarf *dw);
void dead_fini(struct dead *d);

#endif
