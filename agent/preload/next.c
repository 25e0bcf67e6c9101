/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The loader searches the global scope first: the program, the preloaded objects, their
 * dependencies. Then it searches the scope of the caller: an object that was loaded with RTLD_LOCAL
 * brings dependencies that only it sees, as a plug-in that uses LLVM brings libgcc_s.so.1.
 * RTLD_NEXT is the first part; the second one is the result of dlsym() for the caller's own handle.
 */
#include "next.h"

#include <dlfcn.h>
#include <stddef.h>

static void *in_scope_of(const void *caller, const char *name)
{
	Dl_info info;
	if (!dladdr(caller, &info) || !info.dli_fname)
		return NULL;
	void *handle = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
	if (!handle)
		return NULL;
	void *found = dlsym(handle, name);
	dlclose(handle);
	return found;
}

void *next_function(struct next *next, const void *caller)
{
	void *found = __atomic_load_n(&next->found, __ATOMIC_RELAXED);
	if (found)
		return found;
	found = dlsym(RTLD_NEXT, next->name);
	if (!found)
		return in_scope_of(caller, next->name);
	__atomic_store_n(&next->found, found, __ATOMIC_RELAXED);
	return found;
}

void next_forget(struct next *next)
{
	__atomic_store_n(&next->found, NULL, __ATOMIC_RELAXED);
}
