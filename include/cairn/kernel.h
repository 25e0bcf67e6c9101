/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The running kernel and its modules: which build runs, and where it was loaded
 *
 * Sites (cairn/sites.h) have link-time addresses. A kernel is loaded elsewhere (KASLR), and each
 * section of a module has a place of its own. This header finds the file or the sidecar of the
 * kernel that runs, shows that it is that build's, and gives the addresses:
 *
 *	struct cairn_kernel *kernel;
 *	struct cairn_binary *bin;
 *	uint64_t at;
 *	if (cairn_kernel_open(NULL, &kernel, &err) < 0 ||
 *	    cairn_kernel_find(kernel, NULL, &bin, &err) < 0 ||
 *	    cairn_kernel_bind(kernel, bin, NULL, true, &err) < 0)
 *		return fail(err.msg);
 *	if (cairn_kernel_address(kernel, site->at, &at))
 *		show(at);
 *	cairn_binary_close(bin);
 *	cairn_kernel_close(kernel);
 */
#ifndef CAIRN_KERNEL_H
#define CAIRN_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/sidecar.h>

CAIRN_BEGIN_DECLS

struct cairn_kernel;

struct cairn_kernel_opts {
	size_t size; /* sizeof(struct cairn_kernel_opts); a longer, unknown tail must be zero */
	/* A loaded module, as /proc/modules names it; NULL: the kernel itself */
	const char *module;
	/* The folder with proc, sys, boot, lib and usr, for tests. NULL: "/" */
	const char *root;
};

/*
 * cairn_kernel_open - see which kernel or module runs, and where
 *
 * Reads the build-id in /sys/kernel/notes and the start of the code in /proc/kallsyms; of a module
 * the build-id and the addresses of sections in /sys/module/NAME.
 *
 * @opts  may be NULL
 * Returns 0, or negative:
 *   -ENOENT   no such module is loaded, it is built into the kernel, or sysfs is not mounted
 *   -EPERM    the kernel hides addresses from the caller (err: which setting shows them)
 *   -ENODATA  no build-id
 *   -EBADMSG  a file of proc or sysfs has no known form
 *   -EINVAL   @opts has something set that this version does not know, or a name with a slash
 *   -ENOMEM, and the errors of open(2) and read(2)
 * Cost: the first lines of /proc/kallsyms. Threads: any. Signals: no.
 */
int cairn_kernel_open(const struct cairn_kernel_opts *opts, struct cairn_kernel **ret,
		      struct cairn_err *err);

/* Takes NULL. The binary of cairn_kernel_image() ends here. */
void cairn_kernel_close(struct cairn_kernel *kernel);

/* As `uname -r` prints it; borrowed. */
const char *cairn_kernel_release(const struct cairn_kernel *kernel);

/* The build-id of what runs, of at least one byte; borrowed. */
const uint8_t *cairn_kernel_build_id(const struct cairn_kernel *kernel, size_t *ret_len);

/*
 * cairn_kernel_find - open the file that the kernel was loaded from, or its debug file
 *
 * The kernel: vmlinux as Linux distributions name it, in the debug directories, /usr/lib/debug,
 * /boot and /lib/modules. A module: its file in /lib/modules/RELEASE, whose debug file is found as
 * cairn_binary_open() finds any. One that is compressed by zstd or gzip is unpacked into memory, up
 * to 256 MB. A file with another build-id is passed over.
 *
 * @opts  the directories are used for both. For the kernel, debug_file is the only candidate. May
 *        be NULL
 * @ret   the caller's: cairn_binary_close()
 * Returns 0. -ENOENT: there is none (err: a line for each place). -ESTALE: opts->debug_file is
 * another kernel's. -EOPNOTSUPP: the module's file is compressed otherwise (xz). -EBADMSG, -ERANGE:
 * it is damaged, or too large. -ENOMEM, and as cairn_binary_open().
 */
int cairn_kernel_find(const struct cairn_kernel *kernel, const struct cairn_binary_opts *opts,
		      struct cairn_binary **ret, struct cairn_err *err);

/*
 * cairn_kernel_image - a binary made of what the kernel tells about itself
 *
 * It has sections of code at their addresses, function symbols, and the build-id, and no types. Its
 * code is that which runs, if /proc/kcore can be read; else there is none. For
 * cairn_btf_sites_open(), when only the BTF of a kernel is there.
 *
 * @ret  borrowed until cairn_kernel_close()
 * Returns 0; -EPERM, -EBADMSG, -ENOMEM as cairn_kernel_open().
 * Cost: the first call reads all of /proc/kallsyms, and the code: 16 MB of memory for Debian's 6.1.
 */
int cairn_kernel_image(struct cairn_kernel *kernel, const struct cairn_binary **ret,
		       struct cairn_err *err);

/*
 * cairn_kernel_bind - show that a binary describes what runs, and learn its addresses
 *
 * The build-ids must be equal, and functions must be where /proc/kallsyms has them. Code is not
 * compared: a kernel changes its code when it starts. Of a sidecar the BTF is compared with
 * /sys/kernel/btf, if it has its hash (cairn_sidecar_kernel_btf()).
 *
 * @bin       of the kernel, its debug file, or a sidecar opened as a binary
 * @sidecar   the source of symbols; NULL: @bin
 * @is_whole  compare all functions, and the BTF. If not, the first 2,000 functions (1 ms); those of
 *            a module are all compared
 * Returns 0. -ESTALE: it is another build's, its functions are elsewhere (err: how many), or its
 * BTF differs (err: both hashes).
 * -ENOENT: no section of code is loaded. -ENOMEM, and the errors of read(2).
 */
int cairn_kernel_bind(struct cairn_kernel *kernel, const struct cairn_binary *bin,
		      const struct cairn_sidecar *sidecar, bool is_whole, struct cairn_err *err);

/*
 * cairn_kernel_address - where a link-time address is now
 *
 * Returns false before cairn_kernel_bind(), and for code that is not there: the sections .init and
 * .exit of a kernel, the .init of a module, which the kernel frees when they have run. Cost:
 * O(sections of code). Threads: any. Signals: safe.
 */
bool cairn_kernel_address(const struct cairn_kernel *kernel, struct cairn_vaddr at, uint64_t *ret);

/*
 * cairn_kernel_data_address - where data is now
 *
 * Returns false before cairn_kernel_bind(), and for data that is not there: of sections that the
 * kernel frees, and those that each processor has its own of. Cost: O(sections of data). Threads:
 * any. Signals: safe.
 */
bool cairn_kernel_data_address(const struct cairn_kernel *kernel, struct cairn_vaddr at,
			       uint64_t *ret);

/*
 * cairn_kernel_link_address - the link-time address of code that runs
 *
 * The other way round: for a frame of a stack. Returns false before cairn_kernel_bind(), and for an
 * address that is in none of the sections of code. Cost and threads as cairn_kernel_address().
 */
bool cairn_kernel_link_address(const struct cairn_kernel *kernel, uint64_t at,
			       struct cairn_vaddr *ret);

/*
 * cairn_kernel_kprobe_type - the type of perf events that are kprobes
 *
 * Returns it, -EOPNOTSUPP: the kernel has none (CONFIG_KPROBE_EVENTS), or -ENOMEM. Cost: a small
 * file.
 */
int cairn_kernel_kprobe_type(const struct cairn_kernel *kernel);

/*
 * Whether what was opened is still loaded. False of a module that was unloaded, also when it was
 * loaded again: its code is elsewhere then. Cost: one stat(2).
 */
bool cairn_kernel_is_there(const struct cairn_kernel *kernel);

/* Whether lockdown(7) forbids probes: its mode is confidentiality. Cost: a small file. */
bool cairn_kernel_is_locked(const struct cairn_kernel *kernel);

CAIRN_END_DECLS
#endif
