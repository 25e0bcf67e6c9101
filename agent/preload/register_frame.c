/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The __register_frame family of libgcc and of LLVM's libunwind, before the unwinder's own
 *
 *     libgcc     @begin is a section: a CIE, FDEs, .., a length of 0; the _table form has a list of
 *                them, with NULL at the end
 *     libunwind  @begin is one FDE
 *
 * An FDE at @begin is alone, unless libgcc comes next, which reads on to the length of 0. Unwinders
 * keep a table under its address, and so is it removed by a function that takes sections otherwise;
 * which addresses are tables is kept here.
 *
 * Code is registered before the unwinder knows it, and removed before: its memory may be gone after
 * that.
 */
#include <dlfcn.h>
#include <stddef.h>

#include "frames.h"
#include "hooks.h"
#include "next.h"

enum {
	REGISTER,
	REGISTER_INFO,
	REGISTER_INFO_BASES,
	REGISTER_TABLE,
	REGISTER_INFO_TABLE,
	REGISTER_INFO_TABLE_BASES,
	DEREGISTER,
	DEREGISTER_INFO,
	DEREGISTER_INFO_BASES,
	N_FUNCTIONS,
};

static struct next functions[N_FUNCTIONS] = {
	[REGISTER] = {.name = "__register_frame"},
	[REGISTER_INFO] = {.name = "__register_frame_info"},
	[REGISTER_INFO_BASES] = {.name = "__register_frame_info_bases"},
	[REGISTER_TABLE] = {.name = "__register_frame_table"},
	[REGISTER_INFO_TABLE] = {.name = "__register_frame_info_table"},
	[REGISTER_INFO_TABLE_BASES] = {.name = "__register_frame_info_table_bases"},
	[DEREGISTER] = {.name = "__deregister_frame"},
	[DEREGISTER_INFO] = {.name = "__deregister_frame_info"},
	[DEREGISTER_INFO_BASES] = {.name = "__deregister_frame_info_bases"},
};

/* No program in Debian registers a table; more than this number are only forwarded. */
enum { TABLES_MAX = 256 };
static const void *tables[TABLES_MAX];

static bool change_table(const void *from, const void *to)
{
	for (size_t i = 0; i < TABLES_MAX; i++) {
		const void *expected = from;
		if (__atomic_compare_exchange_n(&tables[i], &expected, to, false, __ATOMIC_ACQ_REL,
						__ATOMIC_RELAXED))
			return true;
	}
	return false;
}

static bool is_libunwind(void *function)
{
	Dl_info info;
	void *handle = function && dladdr(function, &info)
			       ? dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)
			       : NULL;
	if (!handle)
		return false;
	bool is = dlsym(handle, "__unw_add_dynamic_fde");
	dlclose(handle);
	return is;
}

static enum fde_run run_of(const void *begin, void *next)
{
	return fde_is_one(begin) && (!next || is_libunwind(next)) ? FDE_RUN_SINGLE
								  : FDE_RUN_SECTION;
}

static void add_table(void *const *begin)
{
	if (begin && change_table(NULL, begin))
		for (; *begin; begin++)
			frames_add(*begin, FDE_RUN_SECTION);
}

static void remove_any(const void *begin, void *next)
{
	if (!begin)
		return;
	if (!change_table(begin, NULL)) {
		frames_remove(begin, run_of(begin, next));
		return;
	}
	for (void *const *section = begin; *section; section++)
		frames_remove(*section, FDE_RUN_SECTION);
}

void register_frame_forget(void)
{
	for (size_t i = 0; i < N_FUNCTIONS; i++)
		next_forget(&functions[i]);
}

/* Declared as in libgcc; struct object is its memory. */
struct object;

EXPORTED void __register_frame(void *begin)
{
	void (*next)(void *) = next_function(&functions[REGISTER], __builtin_return_address(0));
	if (begin)
		frames_add(begin, run_of(begin, next));
	if (next)
		next(begin);
}

EXPORTED void __register_frame_info(const void *begin, struct object *object)
{
	void (*next)(const void *, struct object *) =
		next_function(&functions[REGISTER_INFO], __builtin_return_address(0));
	if (begin)
		frames_add(begin, FDE_RUN_SECTION);
	if (next)
		next(begin, object);
}

EXPORTED void __register_frame_info_bases(const void *begin, struct object *object, void *text,
					  void *data)
{
	void (*next)(const void *, struct object *, void *, void *) =
		next_function(&functions[REGISTER_INFO_BASES], __builtin_return_address(0));
	if (begin)
		frames_add(begin, FDE_RUN_SECTION);
	if (next)
		next(begin, object, text, data);
}

EXPORTED void __register_frame_table(void *begin)
{
	void (*next)(void *) =
		next_function(&functions[REGISTER_TABLE], __builtin_return_address(0));
	add_table(begin);
	if (next)
		next(begin);
}

EXPORTED void __register_frame_info_table(void *begin, struct object *object)
{
	void (*next)(void *, struct object *) =
		next_function(&functions[REGISTER_INFO_TABLE], __builtin_return_address(0));
	add_table(begin);
	if (next)
		next(begin, object);
}

EXPORTED void __register_frame_info_table_bases(void *begin, struct object *object, void *text,
						void *data)
{
	void (*next)(void *, struct object *, void *, void *) =
		next_function(&functions[REGISTER_INFO_TABLE_BASES], __builtin_return_address(0));
	add_table(begin);
	if (next)
		next(begin, object, text, data);
}

EXPORTED void __deregister_frame(void *begin)
{
	void (*next)(void *) = next_function(&functions[DEREGISTER], __builtin_return_address(0));
	remove_any(begin, next);
	if (next)
		next(begin);
}

EXPORTED void *__deregister_frame_info(const void *begin)
{
	void *(*next)(const void *) =
		next_function(&functions[DEREGISTER_INFO], __builtin_return_address(0));
	remove_any(begin, next);
	return next ? next(begin) : NULL;
}

EXPORTED void *__deregister_frame_info_bases(const void *begin)
{
	void *(*next)(const void *) =
		next_function(&functions[DEREGISTER_INFO_BASES], __builtin_return_address(0));
	remove_any(begin, next);
	return next ? next(begin) : NULL;
}
