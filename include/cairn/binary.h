/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens binaries and finds their debug information
 *
 * A binary is code that runs: an executable, a shared object, a kernel, a relocatable file. Its
 * DWARF may be inside it, or in a separate file found by build-id or debug link. Parts of it may be
 * in a third file, which dwz shared out. cairn_binary_open() finds them all and checks that they
 * belong together:
 *
 *	struct cairn_binary *bin;
 *	struct cairn_err err = {0};
 *	if (cairn_binary_open("/lib/x86_64-linux-gnu/libc.so.6", NULL, &bin, &err) < 0)
 *		return fail(err.msg);
 *	printf("DWARF from %s\n", cairn_binary_debug_path(bin));
 *	cairn_binary_close(bin);
 *
 * It does not read DWARF; sites.h does. Nothing is downloaded.
 */
#ifndef CAIRN_BINARY_H
#define CAIRN_BINARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/err.h>

CAIRN_BEGIN_DECLS

struct cairn_binary;

struct cairn_binary_opts {
	/* sizeof(struct cairn_binary_opts) of the caller; a longer, unknown tail must be zero. */
	size_t size;
	/* Debug directories searched before /usr/lib/debug, in order; may be NULL. */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	/* Use this file for the DWARF, whatever the search would find; NULL: search. */
	const char *debug_file;
};

/*
 * cairn_binary_open - open a binary and find its debug information
 *
 * The DWARF is searched in this order: in the file itself;
 * DIR/.build-id/xx/yyyy.debug for every debug directory; by .gnu_debuglink (CRC checked) beside the
 * file, in .debug beside it, and under every debug directory followed by the file's own directory;
 * for a kernel module also under every debug directory followed by the file's own path. A candidate
 * whose build-id differs is refused and the refusal is part of the error. The alternate file of dwz
 * (.gnu_debugaltlink) is searched the same way.
 *
 * @path  file to open
 * @opts  may be NULL
 * @ret   owned by the caller, cairn_binary_close(); set also if the binary has no DWARF:
 *        cairn_binary_has_dwarf()
 * Returns 0, or negative:
 *   -EBADMSG     not an ELF file, or a damaged one
 *   -EOPNOTSUPP  32-bit, big-endian, or of an architecture that is neither x86-64 nor AArch64.
 *                AArch64 files give types, lines, symbols and unwind rows; functions that decode
 *                instructions return -EOPNOTSUPP
 *   -ENOENT      no such file; or a debug file was named by @opts and is not usable
 *   -ERANGE      more sections or larger ones than any real file has
 *   -EINVAL      @opts has something set that this version does not know
 *   -EISDIR      a directory
 *   -ENOMEM, and the errors of open(2) and mmap(2)
 * Cost: maps the files; decompresses and relocates nothing yet. Threads: any. Signals: no.
 */
int cairn_binary_open(const char *path, const struct cairn_binary_opts *opts,
		      struct cairn_binary **ret, struct cairn_err *err);

/*
 * cairn_binary_open_pid - the executable of a running process, read through /proc/PID/exe. A
 * deleted or replaced file, and a process in another mount namespace, give the code that is really
 * running.
 *
 * Separate debug files are searched under the process's root first, then under ours.
 * Errors: as cairn_binary_open(), and -ESRCH when there is no such process, -EACCES without
 * permission, -ENOENT for a kernel thread or a zombie, which have no executable.
 */
int cairn_binary_open_pid(int pid, const struct cairn_binary_opts *opts, struct cairn_binary **ret,
			  struct cairn_err *err);

/* Takes NULL. Everything borrowed from @bin ends here. */
void cairn_binary_close(struct cairn_binary *bin);

/* Path as given to open; borrowed. */
const char *cairn_binary_path(const struct cairn_binary *bin);

bool cairn_binary_has_dwarf(const struct cairn_binary *bin);

/* File that holds the DWARF, possibly the binary itself; NULL when there is none. Borrowed. */
const char *cairn_binary_debug_path(const struct cairn_binary *bin);

/*
 * The places where the debug information was searched and why each was refused, one per line. The
 * last line says what would help (the Debian package to install, if it is known). Borrowed.
 */
const char *cairn_binary_search_log(const struct cairn_binary *bin);

/*
 * cairn_binary_shortened - a file of the binary that became shorter while it was open
 *
 * Looks at the binary, its debug files and the files with parts of its DWARF. Functions that make
 * bytes of a binary for a file (BTF, SFrame, a sidecar) query it themselves, and return -EBADMSG.
 *
 * Returns the file's name, borrowed; NULL: all are as long as they were. Cost: a stat(2) for each
 * file. Threads: any. Signals: no.
 */
const char *cairn_binary_shortened(const struct cairn_binary *bin);

/* The build-id note's bytes; *@ret_len is 0 and the result NULL when there is none. Borrowed. */
const uint8_t *cairn_binary_build_id(const struct cairn_binary *bin, size_t *ret_len);

/* True for .o and .ko, whose addresses the library lays out: show them as section + offset. */
bool cairn_binary_is_relocatable(const struct cairn_binary *bin);

/*
 * True for a Linux kernel image (vmlinux, its debug file) and a kernel module: no process maps
 * their code, so that user probes never fire there. False for user mode Linux, which is a program.
 * Cost: O(sections).
 */
bool cairn_binary_is_kernel(const struct cairn_binary *bin);

/*
 * cairn_binary_foff - offset in the binary (not its debug file) of the byte at a link-time address
 *
 * Returns true and sets *@ret, or false when no loaded part of the file holds it (.bss, or
 * outside).
 * Cost: O(log segments). Threads: any.
 */
bool cairn_binary_foff(const struct cairn_binary *bin, struct cairn_vaddr at,
		       struct cairn_foff *ret);

/* The reverse; false when the offset is in no loaded part. */
bool cairn_binary_vaddr(const struct cairn_binary *bin, struct cairn_foff off,
			struct cairn_vaddr *ret);

/*
 * cairn_binary_section_of - the section that holds @at
 *
 * @ret_name  its name, borrowed
 * @ret_off   offset of @at in it, in bytes
 * Returns false when none does.
 * Cost: O(log sections). Threads: any.
 */
bool cairn_binary_section_of(const struct cairn_binary *bin, struct cairn_vaddr at,
			     const char **ret_name, uint64_t *ret_off);

/*
 * cairn_binary_symbol_of - the function symbol whose range holds @at, from .symtab of the binary or
 * of its debug file, else from .dynsym
 *
 * Ranges nest and overlap: of those that hold @at, the one that starts last wins. If several start
 * there, a global one wins over a weak and a local one, then the shortest name. A symbol without a
 * size holds what no other does, up to the next function or global label of its section; if only
 * .dynsym is there, its first byte. A label, without type and size, holds what no function does.
 *
 * @ret_name   borrowed; without the version after @
 * @ret_start  its address
 * Returns false when none does, or when the symbol table is damaged.
 * Cost: O(log symbols); the first call sorts them. Threads: any. Signals: no.
 */
bool cairn_binary_symbol_of(const struct cairn_binary *bin, struct cairn_vaddr at,
			    const char **ret_name, struct cairn_vaddr *ret_start);

/*
 * cairn_binary_imports - whether the binary takes a function or variable of that name from a shared
 * library
 *
 * If so, its code is not here. False also when the symbol table is damaged.
 * Cost: one pass over .dynsym. Threads: any. Signals: no.
 */
bool cairn_binary_imports(const struct cairn_binary *bin, const char *name);

/*
 * cairn_binary_symbol_text - what a symbol is that is no function, for a message
 *
 * "again is a label without a type, in the code at 0x1127, of unknown size": mostly a jump's target
 * in assembly. "counter is a variable at 0x4010, of 4 bytes".
 *
 * @name  exactly, without a version after @
 * @buf   cut at its end
 * Returns false when there is no such symbol, when it is a function, and when the symbol table is
 * damaged. Cost: one pass over the symbols; the first call reads them. Threads: any. Signals: no.
 */
bool cairn_binary_symbol_text(const struct cairn_binary *bin, const char *name, char *buf,
			      size_t size);

CAIRN_END_DECLS
#endif
