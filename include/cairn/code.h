/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Finds the owner of an address of a process: a file, a registered object, or code made at run time
 *
 * Several sources describe a process's addresses: its mappings, its codectl registry
 * (cairn/shared/codectl.h), GDB's list of symbol files, jitdump and perf-map files. They are read
 * from outside, without stopping the process, and verified against each other. A range that
 * contradicts the mappings is listed, with the reason, and not used.
 *
 *	struct cairn_code *code;
 *	if (cairn_code_open_pid(pid, NULL, &code, &err) < 0)
 *		return fail(err.msg);
 *	const struct cairn_code_range *range = cairn_code_find(code, at, 0);
 *	if (range && range->is_trusted)
 *		printf("%s, generation %lu\n", range->owner, range->generation);
 *	cairn_code_close(code);
 *
 * Stacks (cairn/stack.h) are unwound through such code by the same sources.
 */
#ifndef CAIRN_CODE_H
#define CAIRN_CODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cairn/addr.h>
#include <cairn/api.h>
#include <cairn/err.h>
#include <cairn/sidecar.h>

CAIRN_BEGIN_DECLS

enum cairn_code_source {
	CAIRN_CODE_FILE, /* a mapped file */
	CAIRN_CODE_VDSO,
	CAIRN_CODE_ELF,       /* the registry: a range of code of an ELF object */
	CAIRN_CODE_JIT,       /* the registry: a region of a JIT */
	CAIRN_CODE_GDB,       /* a symbol file in GDB's list, __jit_debug_descriptor */
	CAIRN_CODE_JITDUMP,   /* a mapping for which a jitdump file has functions */
	CAIRN_CODE_PERF_MAP,  /* the same for a perf-map file */
	CAIRN_CODE_ANONYMOUS, /* executable memory without a description */
};

/* The means by which a frame there is unwound. */
enum cairn_code_unwind {
	CAIRN_CODE_UNWIND_NONE,     /* by nothing */
	CAIRN_CODE_UNWIND_FILE,     /* the file's call frame information */
	CAIRN_CODE_UNWIND_ROWS,     /* rows of the registry */
	CAIRN_CODE_UNWIND_EH_FRAME, /* call frame information in memory, or in a jitdump file */
	CAIRN_CODE_UNWIND_FP,       /* the frame pointer, as its owner declares */
	CAIRN_CODE_UNWIND_ASSUMED,  /* the frame pointer, which no source declares: an assumption */
};

struct cairn_code_range {
	struct cairn_addr lo, hi; /* [lo, hi) */
	enum cairn_code_source source;
	enum cairn_code_unwind unwind; /* the first means that is tried */
	const char *owner;             /* path, or a region's name; NULL: none. Borrowed */
	/* the registration's epoch, which is unique; 0: the source has none */
	uint64_t generation;
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; 0: not known, and still there */
	bool is_removed;
	bool is_trusted;
	/* why it is not trusted, or the error in a part of it; NULL. Borrowed */
	const char *why;
	size_t n_rows, n_names; /* the number that was read */
};

struct cairn_code;

struct cairn_code_opts {
	size_t size; /* sizeof(struct cairn_code_opts); a longer, unknown tail must be zero */
	/*
	 * For a core file; they have to last until cairn_code_close(). As in struct
	 * cairn_stacks_opts.
	 */
	const char *sysroot;
	const char *const *debug_dirs;
	size_t n_debug_dirs;
};

/*
 * cairn_code_open_pid - the code of a running process
 *
 * @opts  may be NULL
 * @ret   cairn_code_close()
 * Returns 0, or negative:
 *   -ESRCH      no such process
 *   -EPERM      the caller may not read it: this takes the permissions of ptrace (err: what would
 *               allow it)
 *   -ETIMEDOUT  the process handles its own page faults (userfaultfd) and did not answer (err:
 *               address). A few such pages are skipped first; cairn_code_note() lists them
 *   -ENOMEM, -EINVAL for @opts
 * Cost: the mappings, the registry, and the files that have code. The process is not stopped, and
 * does not notice.
 * Threads: one at a time per handle; the call starts and ends a thread that reads memory.
 */
int cairn_code_open_pid(int pid, const struct cairn_code_opts *opts, struct cairn_code **ret,
			struct cairn_err *err);

/* The same for a core file: -EBADMSG, -EOPNOTSUPP as cairn_stacks_open_core(). */
int cairn_code_open_core(const char *path, const struct cairn_code_opts *opts,
			 struct cairn_code **ret, struct cairn_err *err);

/* Takes NULL. Everything borrowed from @code ends here. */
void cairn_code_close(struct cairn_code *code);

/*
 * Reads everything again; data borrowed before becomes invalid. Errors as cairn_code_open_pid(),
 * and -EINVAL for a core. After -ETIMEDOUT the handle can only be closed, and its memory is not
 * freed.
 */
int cairn_code_refresh(struct cairn_code *code, struct cairn_err *err);

/* All ranges by address, then by source; overlapping ones included. Borrowed. */
size_t cairn_code_n_ranges(const struct cairn_code *code);
const struct cairn_code_range *cairn_code_range(const struct cairn_code *code, size_t i);

/*
 * cairn_code_find - the owner of an address
 *
 * @time_ns  CLOCK_MONOTONIC: the owner at that time, as far as the registry still records it; 0:
 *           now
 * Returns the range that counts, or NULL if there is none. A trusted one counts before others, a
 * file before registered code, and the newest of several.
 * Cost: O(ranges).
 */
const struct cairn_code_range *cairn_code_find(const struct cairn_code *code, struct cairn_addr at,
					       uint64_t time_ns);

/*
 * cairn_code_frames - the functions at an address of code made at run time, innermost first
 *
 * @ret      strings are borrowed until cairn_code_refresh() or cairn_code_close()
 * @ret_off  bytes from the beginning of the outermost function; may be NULL
 * Returns their number, at most @max; 0 if no name is known, or if a file is there
 * (cairn_sidecar_frames() names those); -ENOMEM, -ETIMEDOUT as cairn_code_refresh().
 */
int cairn_code_frames(struct cairn_code *code, struct cairn_addr at, struct cairn_frame *ret,
		      size_t max, uint64_t *ret_off, struct cairn_err *err);

/*
 * A source that is missing or was refused as a whole: a damaged registry, a map file that belongs
 * to another user. NULL ends the list.
 */
const char *cairn_code_note(const struct cairn_code *code, size_t i);

/*
 * The number of registrations and removals in the process's registries when they were read. 0
 * without a registry.
 */
uint64_t cairn_code_changes(const struct cairn_code *code);

/* "file", "vdso", "elf", "jit", "gdb", "jitdump", "perf-map", "anonymous". Static. */
const char *cairn_code_source_text(enum cairn_code_source source);

/* "none", "file", "rows", "eh-frame", "frame-pointer", "assumed". Static. */
const char *cairn_code_unwind_text(enum cairn_code_unwind unwind);

CAIRN_END_DECLS
#endif
