/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The agent: how it learns of objects
 *
 * It is preloaded. Its constructor registers all objects that the program starts with; the loader
 * has mapped them by then. For those that come later dlopen() is left alone: a call of it from here
 * would look for the caller's RUNPATH and namespace in this library. Instead two functions are
 * defined that objects call themselves:
 *
 *	__gmon_start__  from _init in crti.o, of all that cc links: first thing, before any
 *	                constructor. A weak reference, for programs that are built with -pg and have
 *	                a gcrt1.o; nobody else has a definition
 *	__cxa_finalize  from crtbegin.o, last thing but the rest of its destructors
 *
 * It does not matter which object calls: the loader's counters show whether there is a new object,
 * and its list which. So when dlopen() maps a group at once, all of it is registered when the first
 * object is initialised.
 *
 * Rejected alternatives: LD_AUDIT with la_objopen() sees all objects, also of other namespaces, but
 * loads a second libc for it, and makes every call between objects slow if glibc is older than
 * 2.35. The rendezvous with debuggers (r_debug) is for tools that can set breakpoints. Polling is
 * code that runs in an idle program.
 *
 * Not seen this way: objects without crti.o (of Debian 12's libraries libc, which is there at the
 * start, and libunwind), those of dlmopen()'s other namespaces, and musl's. The first are
 * registered with the next one that is seen; readers know all of them from the mappings.
 *
 * This file needs nothing: the library names no libc, so that it can be preloaded into programs of
 * glibc and of musl.
 */
#include <stddef.h>

#include "hooks.h"
#include "next.h"
#include "objects.h"

static struct next finalize = {.name = "__cxa_finalize"};

static __attribute__((constructor)) void start(void)
{
	objects_update();
}

EXPORTED void __gmon_start__(void)
{
	objects_update();
}

EXPORTED void __cxa_finalize(void *object)
{
	void (*next)(void *) = next_function(&finalize, __builtin_return_address(0));
	if (next)
		next(object);
	if (!object)
		return;
	objects_remove(object);
	register_frame_forget();
	gdb_jit_forget();
}
