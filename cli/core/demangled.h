/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names that a linker knows, as C++ and Rust write them: "_ZN4deep6SorterIiE3runEv" is
 * deep::Sorter<int>::run
 *
 * Without parameters, as in perf and gdb, so that the name can be given to `cairn trace`; for a
 * clone with the part that the compiler appended to the name (" [clone .isra.0]"). JSON has the
 * linkage names unchanged.
 */
#ifndef CLI_DEMANGLED_H
#define CLI_DEMANGLED_H

#include <stddef.h>

/* In the option table of a verb that shows such names. */
#define DEMANGLE_OPT_OFF(at)                                                                       \
	{                                                                                          \
		0, "no-demangle", OPT_FLAG, NULL, at,                                              \
			"show names of C++ and Rust as the linker knows them"                      \
	}

/* From here on demangled() returns its argument. */
void demangle_never(void);

/*
 * demangled - the name to show for @linker_name
 *
 * Returns @linker_name itself when it is not mangled, cannot be understood, or comes out longer
 * than DEMANGLED_MAX (a name of some bytes can stand for any number: it refers to parts of itself).
 * Otherwise a text that the next call may overwrite. Cost: some microseconds; for a recently used
 * name, a hash of it. Threads: one.
 */
const char *demangled(const char *linker_name);

/*
 * demangled_or - the name to show for a function with a linkage name and one in the source
 *
 * The demangled one, if it is that of @source_name; where the linker folded functions it may be
 * another's. Otherwise @source_name. Either may be NULL; NULL when both are. As demangled().
 */
const char *demangled_or(const char *linker_name, const char *source_name);

/*
 * shown_name - the same, without the part that the compiler appended to the name of a clone
 *
 * For the function around a site: a cairn_show_name. @source_name NULL: a clone's symbol is wanted,
 * and shown whole.
 */
size_t shown_name(const char *linker_name, const char *source_name, char *buf, size_t size);

/* Comes before the part of a clone's name that the compiler appended. */
#define DEMANGLED_CLONE " [clone "

/*
 * The longest name that is shown demangled; templates of templates reach some ten thousand
 * characters.
 */
enum { DEMANGLED_MAX = 65536 };

#endif
