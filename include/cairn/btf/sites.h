/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sites from BTF: a stripped file that has .BTF and .BTF.inline answers as its debug information
 *
 * BTF with LOC kinds (cairn/btf/from_dwarf.h makes it, docs/formats/btf-loc.md has the bytes)
 * records the sites of functions and the locations of their arguments there. This header gives a
 * struct cairn_sites (cairn/sites.h) that answers from it:
 *
 *	struct cairn_sites *sites;
 *	if (cairn_btf_sites_open(bin, NULL, &sites, &err) < 0)
 *		return fail(err.msg);
 *	cairn_sites_find(sites, "tcache_get", &found, &err);
 *	cairn_sites_close(sites);
 *
 * The address of a body is that of the symbol with the function's name, and its arguments are where
 * the calling convention puts them. Facts that BTF does not record are computed from the code of
 * the file (hazards, the containing function, bodies entered again by a jump), or are unknown:
 *
 *	declaration's file and line, calls around a copy, its DIE    NULL, 0
 *	whether events count calls, at a copy                        CAIRN_COUNT_UNKNOWN
 *	why an argument has no location                              CAIRN_UNAVAIL_NOT_RECORDED
 *	split-off parts (foo.part.0)                                 not listed
 *	functions in the middle of which an address lies             cairn_sites_at(): -EOPNOTSUPP
 *
 * Functions of one name and one prototype are one function, wherever they are declared. Functions
 * of one name and several prototypes cannot be told apart by name: all of them are found.
 */
#ifndef CAIRN_BTF_SITES_H
#define CAIRN_BTF_SITES_H

#include <stddef.h>

#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/sites.h>

CAIRN_BEGIN_DECLS

struct cairn_btf_sites_opts {
	size_t size; /* sizeof(struct cairn_btf_sites_opts) */
	/*
	 * FILE with types, where FILE.inline has the sites; or FILE.inline; or an ELF file with
	 * .BTF and .BTF.inline. NULL: the sections of the binary; or its .BTF and BINARY.inline; or
	 * BINARY.btf and BINARY.btf.inline.
	 */
	const char *file;
	/* The bases of split types, parent first: for a module its kernel's BTF */
	const char *const *bases;
	size_t n_bases;
	/* Has vmlinux, the base of modules without @bases. NULL: /sys/kernel/btf */
	const char *sysfs;
};

/*
 * cairn_btf_sites_open - prepare to query a binary's functions by its BTF
 *
 * @bin   must outlive the result; its code is read, and its symbols
 * @opts  may be NULL
 * Returns 0, or negative:
 *   -ENODATA     no BTF with sites (err: what was looked for)
 *   -ENOLINK     @bin is a kernel whose sites are in a module (err: which); name its file
 *   -ESTALE      @opts->file is not what .BTF.inline.link of @bin names (err: both hashes); or @bin
 *                is of the kernel that runs, and many sites are not at starts of its instructions
 *   -EBADMSG     damaged, split from another base, or sites of sections that the binary does not
 *                have
 *   -EOPNOTSUPP  the v1 dialect (err: how to convert it), an unknown kind, another architecture
 *   -ENOENT, -ERANGE, -ENOMEM as cairn_btf_open()
 * Later queries return -ENODATA for a function that has code without a symbol, and no other site;
 * and -ESTALE if the BTF is not a section of @bin, and a site is not at the start
 * of an instruction: it is another build's. No other error of that kind can be seen, as BTF has no
 * build-id.
 * Cost: one pass over the records. Threads: one at a time per handle. Signals: no.
 */
int cairn_btf_sites_open(const struct cairn_binary *bin, const struct cairn_btf_sites_opts *opts,
			 struct cairn_sites **ret, struct cairn_err *err);

/*
 * cairn_btf_sites_path - the file that the sites are read from
 *
 * Returns NULL if @sites are not from BTF. Borrowed until cairn_sites_close(). Cost: none. Threads:
 * any.
 */
const char *cairn_btf_sites_path(const struct cairn_sites *sites);

/*
 * cairn_btf_sites_at - the names of the functions of which an inlined copy, or a clone's entry, is
 * at exactly that address
 *
 * BTF does not record where a copy ends: an address after a site's has no answer.
 * @ret  up to @max names, borrowed until cairn_sites_close()
 * Returns their number, 0 if there is no site. -EINVAL: @sites are not from BTF. -EBADMSG, -ESTALE,
 * -ENOMEM.
 * Cost: the first call sorts all sites; later ones take O(log sites). Threads: as the handle.
 * Signals: no.
 */
int cairn_btf_sites_at(struct cairn_sites *sites, struct cairn_vaddr at, const char **ret,
		       size_t max, struct cairn_err *err);

CAIRN_END_DECLS
#endif
