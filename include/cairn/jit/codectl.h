/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * codectl(): registers the code of this process, and how to unwind it
 *
 * This is the system call of the RFC of July 2025, in user space. Registrations are kept in memory
 * of the process. Processes with the permission to trace it read them there at any moment, without
 * stopping it. The structs are in cairn/shared/codectl.h, the reasons for the design in
 * docs/formats/codectl.md. Link with -lcairn-codectl; it needs only libc.
 *
 *	struct code_elf_info elf = {
 *		.elf_start = lo, .elf_end = hi, .text_start = text, .text_end = text_end,
 *		.pathname = (uintptr_t)"/usr/lib/libexample.so",
 *	};
 *	long rc = codectl(CODE_REGISTER_ELF, &elf, sizeof(elf), 0);
 *	...
 *	struct code_unregister_info range = {elf.text_start, elf.text_end};
 *	rc = codectl(CODE_UNREGISTER, &range, sizeof(range), 0);
 *
 * A JIT that writes its tables with cairn/jit/jit.h does not call this. Only the addresses of the
 * calling process can be registered. Their description is believed here: readers compare it with
 * the process's mappings.
 */
#ifndef CAIRN_JIT_CODECTL_H
#define CAIRN_JIT_CODECTL_H

#include <cairn/shared/codectl.h>
#include <cairn/api.h>

CAIRN_BEGIN_DECLS

/*
 * codectl - register a range of code, or remove its registration
 *
 * @option     CODE_REGISTER_ELF, CODE_REGISTER_JIT, CODE_UNREGISTER
 * @info       struct code_elf_info, code_jit_info, code_unregister_info. Strings and build-id are
 *             copied. A JIT's tables, and the data at unwind_start and sframe_start, stay the
 *             caller's, and must stay there until the registration is removed
 * @info_size  of the struct as the caller knows it: missing members are 0, members that are not
 *             known here must be 0
 * @flags      0
 * Returns 0, or a negative errno, as the system call itself would; errno is kept:
 *   -EINVAL        flags, no such option; an empty or inverted range, or addresses that no process
 *                  has; an object without its own range around the code; a JIT without tables, or
 *                  tables that are not aligned to 8; a reserved member
 *   -E2BIG         members that are not known here are not 0; more than a page
 *   -ERANGE        a JIT's region of more than 4 GiB; a build-id of more than 64 bytes
 *   -EEXIST        a registration overlaps it
 *   -ENOENT        nothing is registered for exactly this range
 *   -ENOSPC        there are 65,536 registrations, or no room for the strings (4,096 if a limit of
 *                  the process, such as RLIMIT_AS, forbade the larger registry)
 *   -ENAMETOOLONG  a string of more than 4,095 bytes
 *   -EFAULT        info is NULL; other wrong pointers end the process, as with any function
 *   -EBUSY         this is a signal handler that interrupted the same thread in here
 *   errors of memfd_create(2), mmap(2) and madvise(2), from the first call, which may then be
 *   repeated
 * Cost: O(log registrations), a fraction of a microsecond; the first call maps the registry, later
 * ones make no system call unless another thread is in here. Threads: any. Signals: safe. After
 * fork() the child's registry is its own.
 */
long codectl(unsigned int option, const void *info, size_t info_size, unsigned int flags);

/*
 * codectl_rfc - the same with the numbers that the RFC was posted with: enum code_opt_rfc
 *
 * A call that was made for the other function fails, with -EINVAL or -E2BIG.
 */
long codectl_rfc(unsigned int option, const void *info, size_t info_size, unsigned int flags);

CAIRN_END_DECLS
#endif
