/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Loc: BPF programs of your own, attached to functions wherever they were inlined
 *
 * A program that includes cairn/loc.bpf.h runs at each call of a function and has its arguments.
 * It is an ordinary program of libbpf: in a skeleton, attached on its own, with a struct bpf_link.
 *
 *	SEC("uloc/PATH:FUNC")		// in the program's source: a function of programs
 *	SEC("kloc/[MODULE:]FUNC")	// of the kernel
 *
 *	struct cairn_loc_opts opts = {.size = sizeof(opts)};
 *	if (cairn_loc_register(&opts, &err) < 0)	// once, before objects are opened
 *		return fail(err.msg);
 *	skel = tool_bpf__open_and_load();
 *	tool_bpf__attach(skel);
 *
 * PATH is absolute, or the name of a library (libc.so.6) or of a program in $PATH. FUNC is
 * [FILE[:LINE]:]NAME as in cairn_sites_find(). All sites are attached or none: the body, and each
 * inlined copy. With SEC("uloc.best_effort/...") sites that cannot be probed, or that lack an
 * argument of BPF_LOC_PROG(), are left out, and how many is said through libbpf's print callback
 * (libbpf_set_print()), as errors are. Hazardous sites (hazards.h) are never probed.
 *
 * In the kernel each site has a kprobe of its own.
 *
 * Needs the debug information of PATH or of the kernel, and Linux 5.15. libbpf 1.1 is enough.
 */
#ifndef CAIRN_LOC_H
#define CAIRN_LOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/sidecar.h>

CAIRN_BEGIN_DECLS

struct bpf_link;
struct bpf_program;

struct cairn_loc_opts {
	size_t size; /* sizeof(struct cairn_loc_opts); a longer, unknown tail must be zero */
	/*
	 * As of struct cairn_trace_opts (trace.h); what they point to stays valid until
	 * unregistering.
	 */
	const char *const *debug_dirs;
	size_t n_debug_dirs;
	int (*find_sidecar)(void *ctx, const struct cairn_binary *bin, struct cairn_sidecar **ret,
			    struct cairn_err *err);
	void *find_sidecar_ctx;
	/*
	 * A sidecar of the kernel that runs, or its vmlinux, which may be stripped if it has .BTF
	 * and .BTF.inline; NULL: vmlinux is searched as cairn_kernel_find() does. Modules are
	 * searched in any case.
	 */
	const char *kernel_file;
	/*
	 * Where the kernel's BTF is: vmlinux and vmlinux.inline, MODULE and MODULE.inline. They
	 * describe what no file does (cairn/btf/sites.h). NULL: /sys/kernel/btf
	 */
	const char *sysfs;
};

/*
 * cairn_loc_register - let libbpf know SEC("uloc"), SEC("kloc"), and both with .best_effort
 *
 * Objects that are opened from then on may have them. A SEC() without a target is not attached by
 * itself: cairn_loc_attach() does it. A second call changes the options.
 *
 * @opts  may be NULL; copied
 * Returns 0. -EINVAL: @opts has something set that this version does not know. Negative errors of
 * libbpf_register_prog_handler().
 * Cost: nothing. Threads: as libbpf_register_prog_handler(), one at a time, and none may be
 * attaching. Signals: no.
 */
int cairn_loc_register(const struct cairn_loc_opts *opts, struct cairn_err *err);
/* Takes back the registration. No object with such a SEC() may be open. Threads: one at a time. */
void cairn_loc_unregister(void);

struct cairn_loc_attach_opts {
	size_t size;     /* sizeof(struct cairn_loc_attach_opts); as above */
	uint64_t cookie; /* what bpf_loc_cookie() returns */
	int pid;         /* only hits of this process; 0: of all, as in the kernel always */
	bool best_effort;
	/* Set on success; NULL: not. */
	uint32_t *n_sites;    /* that are attached */
	uint32_t *n_left_out; /* with best_effort */
};

/*
 * cairn_loc_attach - attach a program to all sites of a function
 *
 * @prog    loaded, from a SEC() that cairn_loc_register() made known
 * @target  PATH:FUNC, of a "kloc" [MODULE:]FUNC
 * @opts    may be NULL
 * @ret     bpf_link__destroy() detaches all sites. It is one link of the kernel where that has
 *          uprobe_multi (Linux 6.6), and for a single site of the kernel; else its descriptor
 *          stands for many links, and cannot be pinned
 * Returns 0, or negative:
 *   -ENOENT      a site cannot be probed, or lacks an argument (err: which and why)
 *   -ENXIO       no such function, or no code is left of it
 *   -ENODATA     no debug information
 *   -EINVAL      the target is no function's name, the program takes more arguments than the
 *                function has, or is not loaded
 *   -EOPNOTSUPP  an argument of BPF_LOC_PROG() has more than 8 bytes, or the kernel has no kprobes
 *   -ESTALE      what describes the kernel is of another build than what runs
 *   -ENOSPC      the program's table is full: BPF_LOC_TABLE_ENTRIES, or bpf_map__set_max_entries()
 *                of bpf_loc_table_2 before loading; a row takes an entry, one for each argument,
 *                and some for arguments that are computed
 *   -EPROTO      the program includes another version's loc.bpf.h
 *   -EBUSY       another process attached programs that have the same table
 *   -EPERM, -ENOMEM, -EMFILE, and as cairn_trace_add() and cairn_trace_attach()
 * Cost: finding the function, as cairn_sites_find(); then that of the links. The source that
 * describes the kernel is found once, and kept until cairn_loc_unregister().
 * Threads: any. Signals: no.
 */
int cairn_loc_attach(const struct bpf_program *prog, const char *target,
		     const struct cairn_loc_attach_opts *opts, struct bpf_link **ret,
		     struct cairn_err *err);

/*
 * cairn_loc_missed - hits of a link's sites in the kernel that its program did not run for
 *
 * The kernel drops a hit of a kprobe that comes while the handler of another one runs on the same
 * processor, and counts it. Programs see no such loss of uprobes: their number is 0. A run that is
 * refused because the same program already runs there is counted by program, and not here:
 * recursion_misses of struct bpf_prog_info.
 *
 * @link  of cairn_loc_attach(), or of libbpf for a SEC() of ours, that was not destroyed
 * Returns 0; -EOPNOTSUPP: the kernel does not count (before Linux 6.7); the errors of bpf(2) and
 * recvmsg(2). Cost: some system calls for each site. Threads: any, one at a time per link. Signals:
 * no.
 */
int cairn_loc_missed(const struct bpf_link *link, uint64_t *ret, struct cairn_err *err);

CAIRN_END_DECLS
#endif
