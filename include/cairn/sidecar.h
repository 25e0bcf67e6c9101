/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sidecar: the facts of the debug information of one build-id, ready for queries
 *
 * DWARF is a language that has to be interpreted; finding one function in a kernel's DWARF takes a
 * pass over 160 MB. A sidecar is made from it once. It is an ELF file of some megabytes that is
 * mapped and queried without parsing; docs/formats/sidecar.md has its bytes.
 *
 *	struct cairn_sidecar *sidecar;
 *	struct cairn_frame frames[CAIRN_FRAMES_MAX];
 *	struct cairn_vaddr at = {0x9d3f0};
 *	if (cairn_sidecar_open("libc.so.6.cairn", NULL, &sidecar, &err) < 0)
 *		return fail(err.msg);
 *	size_t n = cairn_sidecar_frames(sidecar, at, frames, CAIRN_FRAMES_MAX);
 *	for (size_t i = 0; i < n; i++)		// innermost first
 *		printf("%s at %s:%u\n", frames[i].function, frames[i].file, frames[i].line);
 *	cairn_sidecar_close(sidecar);
 *
 * After opening, nothing is written, allocated or locked: any number of threads may query it, also
 * in a signal handler. The library reads no environment: the caller names the cache directory.
 */
#ifndef CAIRN_SIDECAR_H
#define CAIRN_SIDECAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/binary.h>
#include <cairn/err.h>
#include <cairn/hazards.h>
#include <cairn/sites.h>
#include <cairn/source.h>

CAIRN_BEGIN_DECLS

/* ---- making one ---- */

struct cairn_sidecar_make_opts {
	/* sizeof(struct cairn_sidecar_make_opts); a longer, unknown tail must be zero */
	size_t size;
	unsigned int threads; /* 0: one per processor */
	/*
	 * Include all facts of cairn/sites.h, so that cairn_sidecar_sites() can answer. Without it
	 * a sidecar answers about addresses only, and is made ten times faster.
	 */
	bool sites;
	/*
	 * With sites: include .BTF.inline, too, and .BTF as cairn_btf_from_dwarf() makes both by
	 * default, for tools that read BTF. They have the facts about sites that BTF can express,
	 * and add a ninth to a kernel's sidecar. This library does not read them.
	 */
	bool btf_inline;
	/*
	 * With sites: include the data for cairn_sites_at() and cairn_sites_call_value(), too: the
	 * locations of parameters in the middle of functions. Without it they refuse. It adds a
	 * twentieth to a half to the size; the file has to have its code.
	 */
	bool args;
};

/* A section of the new sidecar, for a report of its size. */
struct cairn_sidecar_image_section {
	const char *name; /* static */
	uint64_t size;    /* bytes */
	uint64_t n;       /* the number of its items: functions, rows, ... */
	const char *what; /* "functions"; static */
};

/*
 * Version 3 of the format has at most 25 (docs/formats/sidecar.md); the rest is for sections that
 * may be added.
 */
#define CAIRN_SIDECAR_SECTIONS_MAX 32

struct cairn_sidecar_image {
	void *bytes; /* the file */
	size_t size;
	size_t n_sections;
	struct cairn_sidecar_image_section sections[CAIRN_SIDECAR_SECTIONS_MAX];
	/* functions with the code of another function: a linker folded identical code */
	uint64_t n_overlaps;
	/*
	 * The number of .dwo files (split DWARF) that were not found, and their names, as
	 * cairn_sites_missing(). Such a sidecar is kept in no cache.
	 */
	size_t n_missing;
	char *missing;
	uint32_t n_left_out;           /* damaged units, which are not in it */
	struct cairn_err left_out_why; /* the damage of the first of them */
};

/*
 * cairn_sidecar_make - make the sidecar of a binary
 *
 * @bin   with DWARF, or symbols only: the sidecar then has only these. Borrowed for the call.
 * @opts  may be NULL
 * @ret   the caller's: cairn_sidecar_image_free(); all zero after an error. Write it with
 *        cairn_file_write().
 * Returns 0, or negative:
 *   -ENODATA     neither DWARF nor symbols (err: where they were searched)
 *   -EBADMSG     damaged DWARF (err: section and offset). Without sites, only if all units are
 *                damaged: whole units are included, and damaged ones are counted
 *   -EOPNOTSUPP  a form or version that is not known
 *   -ERANGE      code that spans 4 GiB or more; or more strings, functions or sites than 32 bits
 *                can number
 *   -EINVAL      @opts has something set that this version does not know
 *   -ENOMEM
 * Cost: one pass over all DIEs and all line programs, in parallel by unit. The same bytes for any
 * number of threads. Threads: any.
 */
int cairn_sidecar_make(const struct cairn_binary *bin, const struct cairn_sidecar_make_opts *opts,
		       struct cairn_sidecar_image *ret, struct cairn_err *err);

/* Takes NULL, and an image that is all zero. */
void cairn_sidecar_image_free(struct cairn_sidecar_image *image);

/* ---- opening one ---- */

struct cairn_sidecar;

struct cairn_sidecar_opts {
	size_t size; /* sizeof(struct cairn_sidecar_opts); a longer, unknown tail must be zero */
	/* The build-id that it must have; NULL accepts any. */
	const uint8_t *build_id;
	size_t build_id_len;
	/*
	 * Refuse a file that another user could have written. It, and every directory on its path,
	 * must belong to root or to the caller. No other user may have permission to write it (a
	 * directory with the sticky bit may be writable). No component may be another user's
	 * symbolic link. For files found in a cache; a file that the user names is trusted as the
	 * user is.
	 */
	bool must_be_trusted;
	/*
	 * The binary that it must describe; NULL: the caller has none. It must have that build-id,
	 * and the segments that a loader maps must be equal. A page of its code is compared when a
	 * query is about an address in it: cairn_sidecar_covers(). Needed for the call only: the
	 * sidecar keeps the file open.
	 */
	const struct cairn_binary *binary;
};

/*
 * cairn_sidecar_open - map a sidecar
 *
 * @opts  may be NULL
 * @ret   cairn_sidecar_close()
 * Returns 0, or negative:
 *   -ENOENT      no such file
 *   -EBADMSG     not an ELF file, not a sidecar, or damaged (err: section, offset, expected)
 *   -EOPNOTSUPP  of another version of the format, or of a newer analysis (err: both)
 *   -ESTALE      of another build-id than the wanted one (err: both), or of another file than
 *                @opts->binary (err: the difference)
 *   -EPERM       not to be trusted (err: which file or directory, and why)
 *   -EINVAL      @opts has something set that this version does not know
 *   -ENOMEM, and the errors of open(2) and mmap(2)
 * Cost: headers of sections, and the checksums of pages: some 30 microseconds. Bytes that a lookup
 * reads are compared with their checksum then. If it differs, the lookup returns less, and
 * cairn_sidecar_trouble() reports it. Threads: any.
 */
int cairn_sidecar_open(const char *path, const struct cairn_sidecar_opts *opts,
		       struct cairn_sidecar **ret, struct cairn_err *err);

/* The same from memory, which must outlive it; aligned to 8 bytes. */
int cairn_sidecar_open_mem(const void *bytes, size_t size, const char *name,
			   const struct cairn_sidecar_opts *opts, struct cairn_sidecar **ret,
			   struct cairn_err *err);

/*
 * The same from an image that was just made: its bytes move to *@ret, and @packed is empty
 * afterwards, with nothing to free.
 */
int cairn_sidecar_open_image(struct cairn_sidecar_image *image, const char *name,
			     struct cairn_sidecar **ret, struct cairn_err *err);

/* Takes NULL. Everything borrowed from @sidecar ends here. */
void cairn_sidecar_close(struct cairn_sidecar *sidecar);

/*
 * cairn_sidecar_check - decode every record, and report the first that is wrong
 *
 * First all checksums, then each record. Lookups never read outside the file, whatever its content;
 * a damaged record makes them return less. This call finds it. Returns 0 or -EBADMSG (err: section,
 * offset, expected). Cost: all of the file is read.
 */
int cairn_sidecar_check(const struct cairn_sidecar *sidecar, struct cairn_err *err);

/*
 * cairn_sidecar_compare - compare all code of the binary that it was opened for
 *
 * Returns 0 if each page is as it was when the sidecar was made, or negative:
 *   -ESTALE   it is of another file (err: the address of a page that differs)
 *   -ENODATA  there is nothing to compare (err: the sidecar is unbound, or no binary with code was
 *             named when it was opened)
 * Cost: reads the code, 1 ms for 1 MB.
 */
int cairn_sidecar_compare(const struct cairn_sidecar *sidecar, struct cairn_err *err);

/* False: it was made of a debug file alone, and cannot be compared with any code. */
bool cairn_sidecar_is_bound(const struct cairn_sidecar *sidecar);

/* The BTF of a kernel or a module: its .BTF, as sysfs shows it when it runs. */
struct cairn_sidecar_btf_hash {
	uint64_t n_bytes;
	uint8_t sha256[32];
};

/*
 * cairn_sidecar_kernel_btf - which BTF the kernel has that the sidecar describes
 *
 * False: it describes no kernel, the file that it was made of had no .BTF, or a .BTF.base, or an
 * older version of the library made it. cairn_kernel_bind() compares it. Cost: none. Threads: any.
 */
bool cairn_sidecar_kernel_btf(const struct cairn_sidecar *sidecar,
			      struct cairn_sidecar_btf_hash *ret);

/*
 * Units that were left out when it was made, because they are damaged: the sidecar has only symbols
 * at their addresses.
 */
uint32_t cairn_sidecar_left_out(const struct cairn_sidecar *sidecar);

/*
 * cairn_sidecar_covers - whether the code at an address is the code that the sidecar describes
 *
 * @at  link-time address; its page is compared, and the one in which an instruction there may end
 * True also if nothing can be compared: the sidecar is unbound, no binary is known, or no code is
 * there.
 * Cost: each page is hashed once, some 5 microseconds. No allocation. Threads: any. Signals: safe.
 */
bool cairn_sidecar_covers(const struct cairn_sidecar *sidecar, struct cairn_vaddr at);

/*
 * cairn_sidecar_trouble - why lookups returned less than they could have
 *
 * Returns 0 if lookups returned all facts, or negative:
 *   -EBADMSG  bytes that a lookup read do not have their checksum (err: where)
 *   -ESTALE   the code of a lookup is not the code that the sidecar describes (err: where)
 * Call it after lookups that cannot return an error; cairn_sidecar_sites() returns these itself.
 * Threads: any.
 */
int cairn_sidecar_trouble(const struct cairn_sidecar *sidecar, struct cairn_err *err);

/* The path that was opened. Borrowed. */
const char *cairn_sidecar_path(const struct cairn_sidecar *sidecar);

/*
 * Its file's name, if the file became shorter while it was open; else NULL. Borrowed. Cost: a
 * stat(2). Threads: any.
 */
const char *cairn_sidecar_shortened(const struct cairn_sidecar *sidecar);

/*
 * True if this version's analysis made the sidecar. False: an older one made it and may differ; a
 * newer one's is not opened.
 */
bool cairn_sidecar_is_current(const struct cairn_sidecar *sidecar);

/* The build-id of the binary that it describes; *@ret_len is 0 if that has none. Borrowed. */
const uint8_t *cairn_sidecar_build_id(const struct cairn_sidecar *sidecar, size_t *ret_len);

/*
 * Sections as in cairn_sidecar_image, up to @max of them. Returns their number, which may be any in
 * a file that another program made.
 */
size_t cairn_sidecar_sections(const struct cairn_sidecar *sidecar,
			      struct cairn_sidecar_image_section *ret, size_t max);

/*
 * Bytes of a section by name (".BTF"), borrowed; NULL when it has none of this name. ".cairn.cfi"
 * is an unwind table for cairn_unwind_open_mem().
 */
const void *cairn_sidecar_section(const struct cairn_sidecar *sidecar, const char *name,
				  size_t *ret_size);

/* ---- finding one ---- */

struct cairn_sidecar_search {
	size_t size; /* sizeof(struct cairn_sidecar_search); a longer, unknown tail must be zero */
	unsigned int threads; /* for making one, as in cairn_sidecar_make_opts */
	/*
	 * The directory of BUILD-ID.cairn files, made if it is missing; NULL: use no cache.
	 */
	const char *cache_dir;
	/*
	 * The least recently used files are removed when the cache grows beyond this; 0:
	 * CAIRN_SIDECAR_CACHE_BYTES.
	 */
	uint64_t cache_bytes;
	bool sites; /* it must have the sites of functions; one without is made again */
	/*
	 * no user waits for cairn_sidecar_keep(): an attempt that failed minutes ago is not
	 * repeated
	 */
	bool background;
	/* if there is none, make it from the debug information and keep it in the cache */
	bool may_make;
	bool anew; /* with may_make: the existing one was found to be wrong, and is ignored */
	/*
	 * cairn_sidecar_keep(): make it with cairn_sidecar_make_opts.args; one without is made
	 * again
	 */
	bool args;
	/* Filled in: the files that were not used and why, one per line; "" if there are none. */
	char note[512];
};

#define CAIRN_SIDECAR_CACHE_BYTES ((uint64_t)1 << 30)

/*
 * cairn_sidecar_for - the sidecar of a binary
 *
 * It is searched as PATH.cairn beside the binary, then in the cache. It must have the binary's
 * build-id and segments, and its pages are compared as cairn_sidecar_covers() says. Root uses only
 * one that no other user can have written. A refusal is noted in @search->note. An unbound one is
 * used if @bin has no debug information. The cache is not used for a debug file alone, which has no
 * code to compare. A sidecar of another library version (cairn_sidecar_is_current(); in the cache
 * any other build of it) is used only if @bin has no debug information, and noted; otherwise it is
 * ignored. For a binary without a build-id no sidecar can be found: one is made, and not kept. A
 * sidecar whose content another user decides is not kept either, as cairn_sidecar_keep() says; it
 * is noted.
 *
 * @ret  cairn_sidecar_close(); independent of @bin
 * Returns 0. -ENOENT: there is none, and @search does not allow making one, or there is no source
 * for it. Otherwise as cairn_sidecar_make(). A cache that cannot be written is no error, but noted.
 */
int cairn_sidecar_for(const struct cairn_binary *bin, struct cairn_sidecar_search *search,
		      struct cairn_sidecar **ret, struct cairn_err *err);

/*
 * cairn_sidecar_keep - make sure that the cache has a sidecar of a binary, with sites
 *
 * For callers that have used the debug information and want the next result at once. Makers for one
 * cache take turns, so that several that start at the same time do the work once; this call waits
 * for its turn.
 *
 * @search  cache_dir, cache_bytes, threads and background count
 * @ret     the new sidecar, for reports; all zero if none was made. cairn_sidecar_image_free().
 * Returns 1 if it was made, 0 if there was one already, or negative:
 *   -EINVAL   no cache_dir, or a binary without a build-id or without code: a debug file alone
 *   -ENODATA  a binary without debug information
 *   -EPERM    the caller is root, and others could write the cache; or another user decides what
 *             the sidecar would say (err: by which file). The files that decide are the binary, its
 *             debug files and its .dwo files. Root keeps nothing when another user owns one of
 *             them, can write it, or can replace it in a directory on its path. Other callers keep
 *             nothing when one of them belongs neither to root nor to the caller.
 *   -EAGAIN   it failed minutes ago, and @search->background is set
 *   else as cairn_sidecar_make() and cairn_file_write()
 */
int cairn_sidecar_keep(const struct cairn_binary *bin, const struct cairn_sidecar_search *search,
		       struct cairn_sidecar_image *ret, struct cairn_err *err);

/*
 * cairn_sidecar_keep_copy - put a copy of an open sidecar into the cache, for callers that got it
 * from elsewhere
 *
 * With a copy of a downloaded sidecar the network is not needed again. A file under the same
 * build-id is replaced.
 *
 * @search  cache_dir and cache_bytes count
 * Returns 0, or negative:
 *   -EINVAL   no cache_dir, or a sidecar without a build-id
 *   -EBADMSG  cairn_sidecar_check() finds it damaged
 *   -ESTALE, -ENODATA  as cairn_sidecar_compare(): only a sidecar that was compared with its binary
 *             is kept
 *   -EPERM    others could write there, and the caller is root
 *   else as cairn_file_write()
 * Cost: all of the sidecar is read.
 */
int cairn_sidecar_keep_copy(const struct cairn_sidecar *sidecar,
			    const struct cairn_sidecar_search *search, struct cairn_err *err);

/*
 * cairn_sidecar_cached_path - where a cache has the sidecar of a build-id, for callers that have no
 * binary to search with
 *
 * cairn_sidecar_open() with that build-id, and must_be_trusted, says whether it may be used.
 * Returns the path, to be freed; NULL: no memory. Cost: none. Threads: any.
 */
char *cairn_sidecar_cached_path(const char *cache_dir, const uint8_t *build_id, size_t len);

struct cairn_sidecar_pruned {
	uint64_t n_kept, kept_bytes;
	uint64_t n_removed, removed_bytes;
};

/*
 * cairn_sidecar_prune - remove the least recently used sidecars, until the rest takes at most
 * @max_bytes
 *
 * Other files in the directory are left alone, except for those that killed makers left there.
 * Returns 0, also if there is no such directory; -EPERM: the caller is root, and others could write
 * there; or an error of opendir(3).
 */
int cairn_sidecar_prune(const char *cache_dir, uint64_t max_bytes, struct cairn_sidecar_pruned *ret,
			struct cairn_err *err);

/* ---- serving one ---- */

/*
 * cairn_sidecar_served_id - the build-id under which a debuginfod has the sidecar of a binary
 *
 * @build_id  of the binary
 * @ret       room for CAIRN_SIDECAR_SERVED_ID_MAX bytes
 * Returns its length; 0 when @build_id is empty or too long to be derived from.
 */
#define CAIRN_SIDECAR_SERVED_ID_MAX 64
size_t cairn_sidecar_served_id(const uint8_t *build_id, size_t len, uint8_t *ret);

/*
 * cairn_sidecar_wrap - the file that a debuginfod serves: a sidecar in a section .debug_cairn, with
 * that build-id
 *
 * cairn_sidecar_open() reads it as it reads the sidecar.
 *
 * @bytes  a sidecar, aligned to 8; @name for errors
 * @ret    free()
 * Returns 0. -EINVAL: it has no build-id, or too long a one. -ENOMEM, and as cairn_sidecar_open().
 */
int cairn_sidecar_wrap(const void *bytes, size_t size, const char *name, void **ret,
		       size_t *ret_size, struct cairn_err *err);

/* ---- by address ---- */

/* Compilers nest less deeply; of more frames the innermost are returned, and the outermost. */
#define CAIRN_FRAMES_MAX 64

/*
 * A function whose code an address belongs to. frames[0] is the innermost: its line is that of the
 * address. Each further frame is the function into which the previous one was inlined, and its line
 * is that of the call.
 */
struct cairn_frame {
	/*
	 * The linker's name if there is one: the symbol ("foo.constprop.0") for the outermost
	 * frame, the mangled name for C++ functions. NULL when unknown.
	 */
	const char *function;
	const char *name; /* as the source names it, not qualified; NULL when unknown */
	const char *file; /* NULL when unknown */
	/* 0: the compiler assigns the code to no line, or the line is unknown */
	uint32_t line;
	uint32_t column; /* 0 when unknown */
};

/*
 * cairn_sidecar_frames - the functions that an address belongs to, innermost first
 *
 * @at   link-time address. For a return address look up the byte before it.
 * @ret  room for @max frames, at least 1
 * Returns their number: 0 if the address belongs to no known function and no known line. Code
 * without debug information gives one frame, with the symbol's name.
 * Cost: some 200 ns, no allocation. Threads: any. Signals: safe.
 */
size_t cairn_sidecar_frames(const struct cairn_sidecar *sidecar, struct cairn_vaddr at,
			    struct cairn_frame *ret, size_t max);

/* As cairn_binary_symbol_of(), from the sidecar. */
bool cairn_sidecar_symbol_of(const struct cairn_sidecar *sidecar, struct cairn_vaddr at,
			     const char **ret_name, struct cairn_vaddr *ret_start);

/*
 * cairn_sidecar_hazards - as cairn_hazards(), with the functions of the sidecar
 *
 * A stripped binary has no symbols that show where its functions begin and end.
 *
 * @bin  the binary that it describes
 */
int cairn_sidecar_hazards(const struct cairn_sidecar *sidecar, const struct cairn_binary *bin,
			  int (*visit)(void *ctx, struct cairn_vaddr at, enum cairn_hazard hazard),
			  void *ctx, struct cairn_err *err);

/* ---- by name ---- */

/* A function of the sidecar, by number. */
struct cairn_sidecar_function {
	const char *name;    /* as the source names it, not qualified */
	const char *linkage; /* NULL when the same or unknown */
	const char *file;    /* of the declaration; NULL when unknown */
	uint32_t line;
};

/*
 * cairn_sidecar_find - the functions of a name
 *
 * @name  source name, not qualified, or linkage name
 * @ret   numbers, ascending; up to @max
 * Returns their number, which may exceed @max; 0 if there is none.
 * Cost: below 1 microsecond, no allocation. Threads: any. Signals: safe.
 */
size_t cairn_sidecar_find(const struct cairn_sidecar *sidecar, const char *name, uint32_t *ret,
			  size_t max);

/* False when there is no function of this number. */
bool cairn_sidecar_function(const struct cairn_sidecar *sidecar, uint32_t number,
			    struct cairn_sidecar_function *ret);

/* ---- sites ---- */

/* True if it has the data that cairn_sidecar_sites() needs. */
bool cairn_sidecar_has_sites(const struct cairn_sidecar *sidecar);

/*
 * True if it was made with cairn_sidecar_make_opts.args, so that its sites answer cairn_sites_at().
 */
bool cairn_sidecar_has_args(const struct cairn_sidecar *sidecar);

/*
 * cairn_sidecar_sites - the queries of cairn/sites.h, answered from a sidecar
 *
 * The results are those of the debug information.
 *
 * @sidecar  must outlive the result
 * @bin      the binary that it describes, for cairn_sites_binary(); must outlive the result
 * @ret      cairn_sites_close(). Threads: one at a time per handle.
 * Returns 0. -ENODATA: it has no sites. -ENOMEM.
 * Cost: data is read when a query needs it; a name costs microseconds.
 */
int cairn_sidecar_sites(const struct cairn_sidecar *sidecar, const struct cairn_binary *bin,
			struct cairn_sites **ret, struct cairn_err *err);

/*
 * cairn_sidecar_source - the types of a sidecar, as cairn_source_open() reads those of the debug
 * information
 *
 * @sidecar  must outlive the result
 * @ret      cairn_source_close(); of kind DWARF. Threads: one at a time per handle.
 * Returns 0. -ENODATA: it was made without sites, and has no types. -ENOMEM.
 * Cost: data is read when a query needs it.
 */
int cairn_sidecar_source(const struct cairn_sidecar *sidecar, struct cairn_source **ret,
			 struct cairn_err *err);

struct cairn_sidecar_btf {
	const void *types; /* as cairn_btf_from_dwarf() writes them into the main blob */
	size_t types_size;
	/* as into the inline blob; NULL: made without cairn_sidecar_make_opts.btf_inline */
	const void *sites;
	size_t sites_size;
};

/*
 * cairn_sidecar_btf - the BTF in a sidecar, compared with its checksums
 *
 * @ret  borrowed until cairn_sidecar_close()
 * Returns 0. -ENODATA: it was made without sites, and has no BTF. -ESTALE: it is of another file
 * than the binary that it was opened for. -EBADMSG, -ENOMEM.
 * Cost: compares the code with the sidecar, if the code is available; decompresses the sites.
 */
int cairn_sidecar_btf(const struct cairn_sidecar *sidecar, struct cairn_sidecar_btf *ret,
		      struct cairn_err *err);

/*
 * The number of types that cairn_sites_complete_type() had to leave unread; @sites is from
 * cairn_sidecar_sites().
 */
size_t cairn_sidecar_sites_lost(const struct cairn_sites *sites);

CAIRN_END_DECLS
#endif
