/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Module kernel answers cairn/kernel.h.
 *
 *	open.c      the build-id and the addresses that proc and sysfs show
 *	kallsyms.c  the symbols of what runs
 *	kcore.c     its memory, by address
 *	bind.c      whether a binary is what runs; its sections there
 *	btf.c       whether a sidecar was made of the kernel that has this BTF
 *	files.c     the files in which a kernel or a module may be
 *	image.c     an ELF file made of symbols and addresses
 *	names.c     names and paths, for all of them
 *	state.c     what the kernel allows, and whether a module is still loaded
 *	symbols.c   names of code by address, for profiles and stacks
 */
#ifndef KERNEL_KERNEL_H
#define KERNEL_KERNEL_H

#include <cairn/kernel.h>

#include "base/vec.h"

/* A section as it is loaded: addresses [from, from + size) of the binary are at @to. */
struct kernel_piece {
	uint64_t from, size, to;
};

/* A section that sysfs lists. */
struct kernel_section {
	char *name;
	uint64_t at;
};

struct kernel_bytes {
	VEC(uint8_t) v;
};

struct cairn_kernel {
	char *root;   /* without a slash at the end */
	char *module; /* NULL: the kernel itself */
	char *release;
	uint8_t *build_id;
	size_t build_id_len;
	uint64_t folder;                     /* of a module in sysfs: its inode */
	uint64_t text;                       /* address of the kernel's first code; 0 of a module */
	VEC(struct kernel_section) sections; /* of a module, by address */
	VEC(struct kernel_piece) pieces, data;
	struct cairn_binary *image;
	struct kernel_bytes image_bytes;
};

/* "ROOT/PATH", malloc()ed; NULL: no memory. */
__attribute__((format(printf, 2, 3))) char *kernel_path(const struct cairn_kernel *k,
							const char *fmt, ...);

/* Whether a section's code is gone when what it is of has started. */
bool kernel_is_gone(const struct cairn_kernel *k, const char *section);

/* Whether a binary has the build-id of what runs. */
bool kernel_is_build(const struct cairn_kernel *k, const struct cairn_binary *bin);

/* "the kernel", or the module's name: for messages. */
const char *kernel_name(const struct cairn_kernel *k);

/* Notes which of the modules of that name is loaded. Returns 0 or -ENOMEM. */
int kernel_see_folder(struct cairn_kernel *k, struct cairn_err *err);

/* ---- btf.c ---- */

/*
 * kernel_compare_btf - compare a sidecar's hash with the BTF of what runs
 *
 * @path  of the sidecar, for messages
 * Returns 0, also if one of both has none; -ESTALE (err: both hashes); -ENOMEM, and the errors of
 * read(2).
 */
int kernel_compare_btf(const struct cairn_kernel *k, const struct cairn_sidecar *sidecar,
		       const char *path, struct cairn_err *err);

/* ---- kallsyms.c ---- */

/* A line of /proc/kallsyms: "ffffffff81000000 T _text" or "... t lo_open\t[loop]". */
struct kallsym {
	uint64_t at;
	char type;          /* as nm prints it */
	const char *name;   /* borrowed for the call */
	const char *module; /* NULL: the kernel's */
};

typedef int kallsyms_visit(void *ctx, const struct kallsym *symbol);

/* True if @s is code of the object: of the kernel, or of the module. */
static inline bool kallsym_is_code(const struct kallsym *s)
{
	return s->type == 't' || s->type == 'T' || s->type == 'w' || s->type == 'W';
}

/*
 * kallsyms_parse - the whole lines of a text
 *
 * @text      is written to
 * @ret_used  bytes of these lines
 * A line of another form is left out. Returns 0, or the first result of @visit that is not 0.
 */
int kallsyms_parse(char *text, size_t n, kallsyms_visit *visit, void *ctx, size_t *ret_used);

/* Reads ROOT/proc/kallsyms until @visit returns something other than 0, which is the result. */
int kallsyms_read(const struct cairn_kernel *k, kallsyms_visit *visit, void *ctx,
		  struct cairn_err *err);

/* -EPERM, with the setting that shows addresses. */
int kallsyms_hidden(const struct cairn_kernel *k, struct cairn_err *err);

/* True if the symbol is the object's own. */
bool kallsyms_is_own(const struct cairn_kernel *k, const struct kallsym *s);

#endif
