/* SPDX-License-Identifier: BSD-2-Clause */
/* The names of a kernel's code by address. */
#ifndef KERNEL_SYMBOLS_H
#define KERNEL_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>

#include <cairn/kernel.h>

#include "base/vec.h"

struct kernel_symbol {
	uint64_t at;
	const char *name, *module; /* NULL: of the kernel itself */
};

struct kernel_names {
	char *text;                        /* of all names */
	VEC(struct kernel_symbol) symbols; /* by address */
	bool is_read, is_hidden;
};

/*
 * kernel_names_read - read the kernel's symbols, once
 *
 * @path  in the form of /proc/kallsyms. One that cannot be read has none.
 * Returns 0 or -ENOMEM.
 */
int kernel_names_read(struct kernel_names *k, const char *path);
void kernel_names_fini(struct kernel_names *k);
/* The function that has an address, or NULL. */
const struct kernel_symbol *kernel_names_find(const struct kernel_names *k, uint64_t at);

/* The code of a symbol: [at, end). */
struct kernel_code {
	uint64_t at, end;
};

/*
 * kernel_code_find - look a symbol of code up, of the kernel or of the module
 *
 * @ret  the first that has the name; it ends where another one begins
 * Returns how many addresses have it, 0: none; the errors of open(2) and read(2), -ENOMEM.
 * Cost: reads /proc/kallsyms twice.
 */
int kernel_code_find(const struct cairn_kernel *k, const char *name, struct kernel_code *ret,
		     struct cairn_err *err);

/*
 * kernel_is_of_gcc - whether the C code of the kernel, and so of its modules, was compiled by GCC
 *
 * /proc/version says so: "Linux version 6.1.0 (…) (gcc-12 (Debian 12.2.0-14) 12.2.0, …) #1 …". An
 * image has no .comment, and the one of a kernel with Rust names that compiler, too.
 *
 * Returns 1, 0, or -ENOMEM.
 */
int kernel_is_of_gcc(const struct cairn_kernel *k);

#endif
