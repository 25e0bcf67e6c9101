/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who owns an address of a process: files, registered objects, code made at run time
 *
 * Several sources say what a process has at an address: its mappings, its codectl registry
 * (cairn/shared/codectl.h), GDB's list of symbol files, jitdump and perf-map files. They are read
 * from outside, without stopping it, and verified against each other: what contradicts what is
 * mapped is shown, with the reason, and not used.
 *
 *	struct cairn_code *code;
 *	if (cairn_code_open_pid(pid, NULL, &code, &err) < 0)
 *		return fail(err.msg);
 *	const struct cairn_code_range *range = cairn_code_find(code, at, 0);
 *	if (range && range->is_trusted)
 *		printf("%s, generation %lu\n", range->owner, range->generation);
 *	cairn_code_close(code);
 *
 * Stacks (cairn/stack.h) go through such code by the same sources.
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
	CAIRN_CODE_FILE,      /* a mapped file */
	CAIRN_CODE_VDSO,
	CAIRN_CODE_ELF,	      /* the registry: a range of code of an ELF object */
	CAIRN_CODE_JIT,	      /* the registry: a region of a JIT */
	CAIRN_CODE_GDB,	      /* a symbol file in GDB's list, __jit_debug_descriptor */
	CAIRN_CODE_JITDUMP,   /* a mapping of which a jitdump file has functions */
	CAIRN_CODE_PERF_MAP,  /* the same of a perf-map file */
	CAIRN_CODE_ANONYMOUS, /* executable memory that nobody describes */
};

/* By what a frame there is left. */
enum cairn_code_unwind {
	CAIRN_CODE_UNWIND_NONE,	     /* by nothing */
	CAIRN_CODE_UNWIND_FILE,	     /* the file's call frame information */
	CAIRN_CODE_UNWIND_ROWS,	     /* rows of the registry */
	CAIRN_CODE_UNWIND_EH_FRAME,  /* call frame information in memory, or in a jitdump file */
	CAIRN_CODE_UNWIND_FP,	     /* the frame pointer, as its owner says */
	CAIRN_CODE_UNWIND_ASSUMED,   /* the frame pointer, which nobody says: an assumption */
};

struct cairn_code_range {
	struct cairn_addr lo, hi; /* [lo, hi) */
	enum cairn_code_source source;
	enum cairn_code_unwind unwind; /* what is tried first */
	const char *owner; /* path, or a region's name; NULL: none. Borrowed */
	/* the registration's epoch, which no other has; 0: the source knows none */
	uint64_t generation;
	uint64_t since_ns, until_ns; /* CLOCK_MONOTONIC; 0: not known, and still there */
	bool is_removed;
	bool is_trusted;
	/* why it is not trusted, or what is wrong with a part of it; NULL. Borrowed */
	const char *why;
	size_t n_rows, n_names; /* that were read */
};

struct cairn_code;

struct cairn_code_opts {
	size_t size; /* sizeof(struct cairn_code_opts); a longer, unknown tail must be zero */
	/*
	 * Of a core file; they have to last until cairn_code_close(). As in struct
	 * cairn_stacks_opts.
	 */
	const char *sysroot;
	const char *const *debug_dirs;
	size_t n_debug_dirs;
};

/*
 * cairn_code_open_pid - what a running process has
 *
 * @opts  may be NULL
 * @ret   cairn_code_close()
 * Returns 0. Negative:
 *   -ESRCH   no such process
 *   -EPERM   it may not be read: it takes what ptrace takes (err: what would allow it)
 *   -ETIMEDOUT  pages of it that it answers the faults of itself, and does not (err: where); some
 *               of them are passed over, and told by cairn_code_note()
 *   -ENOMEM, -EINVAL of @opts
 * Cost: the mappings, the registry, and the files that have code. The process is not stopped, and
 * does not notice.
 * Threads: a handle is for one thread at a time; memory is read by one that is started and ended.
 */
int cairn_code_open_pid(int pid, const struct cairn_code_opts *opts, struct cairn_code **ret,
			struct cairn_err *err);

/* The same of a core file: -EBADMSG, -EOPNOTSUPP as cairn_stacks_open_core(). */
int cairn_code_open_core(const char *path, const struct cairn_code_opts *opts,
			 struct cairn_code **ret, struct cairn_err *err);

/* Takes NULL. Everything borrowed from @code ends here. */
void cairn_code_close(struct cairn_code *code);

/*
 * Reads everything again; what was borrowed before ends. Errors as cairn_code_open_pid(), -EINVAL
 * of a core. After -ETIMEDOUT the handle is only good for being closed, and its memory is not
 * freed.
 */
int cairn_code_refresh(struct cairn_code *code, struct cairn_err *err);

/* All ranges by address, then by source; those that overlap too. Borrowed. */
size_t cairn_code_n_ranges(const struct cairn_code *code);
const struct cairn_code_range *cairn_code_range(const struct cairn_code *code, size_t i);

/*
 * cairn_code_find - who owns an address
 *
 * @time_ns  CLOCK_MONOTONIC: who did at that time, as far as the registry still tells; 0: now
 * Returns the range that counts: a trusted one before others, a file before what is registered, the
 * newest of several; NULL: nothing is there. Cost: O(ranges).
 */
const struct cairn_code_range *cairn_code_find(const struct cairn_code *code, struct cairn_addr at,
					       uint64_t time_ns);

/*
 * cairn_code_frames - the functions at an address of code made at run time, innermost first
 *
 * @ret  strings are borrowed until cairn_code_refresh() or cairn_code_close()
 * @ret_off  bytes from the beginning of the outermost function; may be NULL
 * Returns how many, at most @max; 0 when no name is known, or when a file is there
 * (cairn_sidecar_frames() names those); -ENOMEM, -ETIMEDOUT as cairn_code_refresh().
 */
int cairn_code_frames(struct cairn_code *code, struct cairn_addr at, struct cairn_frame *ret,
		      size_t max, uint64_t *ret_off, struct cairn_err *err);

/*
 * What is missing or was refused as a whole: a damaged registry, a map file that belongs to another
 * user. NULL ends.
 */
const char *cairn_code_note(const struct cairn_code *code, size_t i);

/*
 * How many registrations and removals the process's registries had had when they were read. 0
 * without one.
 */
uint64_t cairn_code_changes(const struct cairn_code *code);

/* "file", "vdso", "elf", "jit", "gdb", "jitdump", "perf-map", "anonymous". Static. */
const char *cairn_code_source_text(enum cairn_code_source source);

/* "none", "file", "rows", "eh-frame", "frame-pointer", "assumed". Static. */
const char *cairn_code_unwind_text(enum cairn_code_unwind unwind);

CAIRN_END_DECLS
#endif
